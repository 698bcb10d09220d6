//! Shows work as it goes: a bar on a terminal; of training also JSON lines for programs, or nothing.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use crosslens_lab::analysis::corpus::BytesRead;
use crosslens_lab::analysis::explain::{Phase, Progress};
use crosslens_lab::reproduce::Work;
use crosslens_lab::tasks::{Preparing, Stage};
use crosslens_lab::train::{Event, Metrics, Observer, Wish};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{interrupt, output};

/// How progress is shown, on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// A bar on a terminal, nothing elsewhere.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// Nothing.
    Off,
}

/// Turns events into what the style asks for.
pub(crate) struct Shown {
    style: Style,
    bar: ProgressBar,
    accuracy: Option<f64>,
}

impl Shown {
    pub(crate) fn new(style: Style) -> Self {
        let bar = if style == Style::Auto { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Self { style, bar, accuracy: None }
    }

    fn start(&mut self, step: u64, steps: u64) {
        const TEMPLATE: &str = "{bar:30} {pos}/{len} steps, {eta} left  {msg}";
        self.bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
        self.bar.set_length(steps);
        self.bar.set_position(step);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn message(&self, loss: f64) -> String {
        match self.accuracy {
            Some(accuracy) => format!("loss {loss:.4}, phrases right {:.1} %", 100.0 * accuracy),
            None => format!("loss {loss:.4}"),
        }
    }
}

impl Observer for Shown {
    fn observe(&mut self, event: Event<'_>) -> Wish {
        match event {
            Event::Started { step, steps, parameters, .. } => {
                self.start(step, steps);
                if self.style == Style::Json {
                    output::note(&json!({"event": "started", "step": step, "steps": steps, "parameters": parameters}).to_string());
                }
            }
            Event::Updated { step, loss, .. } => {
                self.bar.set_position(step);
                self.bar.set_message(self.message(loss));
            }
            Event::Evaluated(metrics) => {
                let Metrics { step, loss, phrase_accuracy, word_accuracy, .. } = *metrics;
                self.accuracy = Some(phrase_accuracy);
                if self.style == Style::Json {
                    let line = json!({"event": "evaluated", "step": step, "loss": loss, "phrase_accuracy": phrase_accuracy, "word_accuracy": word_accuracy});
                    output::note(&line.to_string());
                }
            }
            Event::Wrote { source, target, written } => match self.style {
                Style::Json => {
                    output::note(&json!({"event": "wrote", "source": source, "target": target, "written": written}).to_string());
                }
                Style::Auto => self.bar.suspend(|| output::note(&format!("  {source}\n    → {written}\n    = {target}"))),
                Style::Off => {}
            },
            _ => {}
        }
        if interrupt::asked() { Wish::Stop } else { Wish::GoOn }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar over what is done with a corpus before it is used: in bytes while its files are read, then in texts.
pub(crate) struct CorpusBar {
    style: Style,
    bar: ProgressBar,
    stage: Option<Stage>,
    /// When a line of JSON was written last.
    told: Instant,
}

/// Lines of JSON about one stage come no faster.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

impl CorpusBar {
    pub(crate) fn new(style: Style) -> Self {
        let bar = if style == Style::Auto { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Self { style, bar, stage: None, told: Instant::now() }
    }

    /// How far the stage at hand is.
    pub(crate) fn show(&mut self, now: Preparing) {
        let Preparing { stage, done, total } = now;
        let is_new = self.stage != Some(stage) || self.bar.length() != Some(total);
        if is_new {
            self.begin(stage, total);
        }
        let is_over = done == total && self.bar.position() != done;
        self.bar.set_position(done);
        let is_told = is_new || is_over || self.told.elapsed() >= BETWEEN_LINES;
        if self.style == Style::Json && is_told {
            self.told = Instant::now();
            output::note(&json!({"event": "preparing", "stage": stage.name(), "done": done, "total": total}).to_string());
        }
    }

    /// How far its files are read.
    pub(crate) fn show_bytes(&mut self, BytesRead { done, total }: BytesRead) {
        self.show(Preparing { stage: Stage::Reading, done, total });
    }

    fn begin(&mut self, stage: Stage, total: u64) {
        let template = match stage {
            Stage::Reading => "{bar:30} {binary_bytes}/{binary_total_bytes}, {eta} left  {msg}",
            // Nobody knows how long it takes; the clock shows that it goes on.
            Stage::Learning => "{spinner} {elapsed}  {msg}",
            _ => "{bar:30} {pos}/{len}, {eta} left  {msg}",
        };
        self.bar.set_style(ProgressStyle::with_template(template).expect("the template is written here").progress_chars("━╸ "));
        self.bar.set_length(total);
        self.bar.set_position(0);
        self.bar.set_message(stage.name());
        self.bar.reset_eta();
        self.bar.reset_elapsed();
        self.bar.enable_steady_tick(Duration::from_millis(200));
        self.stage = Some(stage);
    }
}

impl Drop for CorpusBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that counts sentences, on a terminal.
pub(crate) struct SentenceBar(ProgressBar);

impl SentenceBar {
    pub(crate) fn new() -> Self {
        const TEMPLATE: &str = "{bar:30} {pos}/{len} sentences, {eta} left  {msg}";
        let bar = ProgressBar::no_length();
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
        Self(bar)
    }

    /// So many of so many are done.
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// How far an explanation is.
    pub(crate) fn show(&self, progress: Progress) {
        self.set(progress.done, progress.total);
        self.0.set_message(match progress.phase {
            Phase::Fitting => "summing states",
            Phase::Splitting => "splitting scores",
            Phase::Checking => "splitting scores and running the network again",
        });
    }
}

impl Drop for SentenceBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar that counts seconds of sound, on a terminal.
pub(crate) struct SecondBar(ProgressBar);

impl SecondBar {
    /// `about` names the sound.
    pub(crate) fn new(about: &str) -> Self {
        let bar = ProgressBar::no_length();
        bar.set_style(ProgressStyle::with_template("{pos} s  {msg}").expect("the template is written here"));
        bar.set_message(about.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// So many seconds are done, of so many if that is known.
    pub(crate) fn set(&self, done_secs: f64, of_secs: Option<f64>) {
        const TEMPLATE: &str = "{bar:30} {pos}/{len} s, {eta} left  {msg}";
        if let Some(of_secs) = of_secs {
            self.0.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
            self.0.set_length(of_secs.max(done_secs).ceil() as u64);
        }
        self.0.set_position(done_secs as u64);
    }
}

impl Drop for SecondBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over several networks, trained and explained one after the other.
pub(crate) struct NetworkBar {
    bar: ProgressBar,
    /// Where the network at hand begins.
    begin: u64,
    about: String,
}

/// Of the bar for one network, and of that what explaining takes.
const PER_NETWORK: u64 = 1000;
const EXPLAINING: u64 = 100;

impl NetworkBar {
    pub(crate) fn new() -> Self {
        const TEMPLATE: &str = "{bar:30} {percent} %, {eta} left  {msg}";
        let bar = ProgressBar::no_length();
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, begin: 0, about: String::new() }
    }

    pub(crate) fn show(&mut self, work: Work<'_>) -> Wish {
        match work {
            Work::Network { number, of, about, seed, .. } => {
                self.bar.set_length(of as u64 * PER_NETWORK);
                self.begin = (number as u64 - 1) * PER_NETWORK;
                self.bar.set_position(self.begin);
                self.about = format!("{number}/{of} {about}, seed {seed}");
                self.bar.set_message(self.about.clone());
            }
            Work::Training(Event::Started { steps, step, .. }) => self.train(step, steps),
            Work::Training(Event::Evaluated(metrics)) => {
                self.bar.set_message(format!("{}: phrases right {:.1} %", self.about, 100.0 * metrics.phrase_accuracy));
            }
            Work::Training(Event::Updated { step, steps, .. }) => self.train(step, steps),
            Work::Explaining(progress) => {
                self.bar.set_position(self.begin + PER_NETWORK - EXPLAINING + EXPLAINING * progress.done / progress.total.max(1));
                self.bar.set_message(format!("{}: explaining", self.about));
            }
            Work::Missed { about, seed, phrase_accuracy, is_replaced } => {
                let then = if is_replaced { "another seed is tried" } else { "its claims do not hold" };
                let line = format!("{about}, seed {seed}: only {:.1} % of phrases right; {then}", 100.0 * phrase_accuracy);
                self.bar.suspend(|| output::note(&line));
            }
            _ => {}
        }
        if interrupt::asked() { Wish::Stop } else { Wish::GoOn }
    }

    fn train(&self, step: u64, steps: u64) {
        self.bar.set_position(self.begin + (PER_NETWORK - EXPLAINING) * step / steps.max(1));
    }
}

impl Drop for NetworkBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound may turn out longer than its header said.
    #[test]
    fn a_bar_of_seconds_has_an_end_once_that_is_known() {
        let bar = SecondBar::new("talk.wav 1/1");
        let stands = |bar: &SecondBar| (bar.0.position(), bar.0.length());
        bar.set(12.9, None);
        assert_eq!(stands(&bar), (12, None));
        bar.set(29.9, Some(70.2));
        assert_eq!(stands(&bar), (29, Some(71)));
        bar.set(75.0, Some(70.2));
        assert_eq!(stands(&bar), (75, Some(75)));
    }
}
