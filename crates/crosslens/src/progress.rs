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
        self.count(done, total);
        self.0.set_message("");
    }

    fn count(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// Says something while the bar is out of the way.
    pub(crate) fn aside<T>(&self, say: impl FnOnce() -> T) -> T {
        self.0.suspend(say)
    }

    /// How far an explanation is.
    pub(crate) fn show(&self, progress: Progress) {
        self.count(progress.done, progress.total);
        self.0.set_message(match progress.phase {
            Phase::Writing => "letting the model write targets",
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
///
/// Its ticks are expected time: a network that trains for a minute gets as much of the bar as sixty that train for a second. What turns out
/// not to be needed (a network found, one that is done before its last step) leaves the bar, so what is left is never counted as done.
///
/// Where there is no terminal, a line now and then says which network has begun.
pub(crate) struct NetworkBar {
    bar: ProgressBar,
    /// When a line was written last.
    told: Instant,
    /// Ticks by network.
    costs: Vec<u64>,
    about: String,
    /// Ticks of the network at hand, and of all after it.
    cost: u64,
    later: u64,
    /// Updates that were made before.
    resumed_at: u64,
    /// From where to where the bar goes with the work at hand.
    begin: u64,
    end: u64,
    /// How far the pass over sentences at hand is, once the network is explained.
    pass: Option<f64>,
}

/// Lines about networks come no faster.
const BETWEEN_NETWORKS: Duration = Duration::from_secs(10);

/// The whole bar.
const TICKS: f64 = 100_000.0;
/// Of a network's ticks those for training; the rest is for explaining.
const TRAINING: f64 = 0.9;

impl NetworkBar {
    /// `costs` says what each network costs, in any unit.
    pub(crate) fn new(costs: &[f64]) -> Self {
        const TEMPLATE: &str = "{bar:30} {percent} %, {eta} left  {msg}";
        let bar = ProgressBar::no_length();
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self::on(bar, costs)
    }

    fn on(bar: ProgressBar, costs: &[f64]) -> Self {
        let total: f64 = costs.iter().sum();
        let costs = costs.iter().map(|cost| (TICKS * cost / total).max(1.0) as u64).collect();
        Self { bar, told: Instant::now(), costs, about: String::new(), cost: 0, later: 0, resumed_at: 0, begin: 0, end: 0, pass: None }
    }

    pub(crate) fn show(&mut self, work: Work<'_>) -> Wish {
        match work {
            Work::Network { number, of, about, seed, is_found } => {
                self.about = format!("{number}/{of} {about}, seed {seed}");
                self.bar.set_message(self.about.clone());
                let cost = number.checked_sub(1).and_then(|place| self.costs.get(place)).copied().unwrap_or_default();
                self.cost = if is_found { 0 } else { cost };
                self.later = self.costs.iter().skip(number).sum();
                self.pass = None;
                self.expect(self.cost as f64);
                if self.bar.is_hidden() && self.told.elapsed() >= BETWEEN_NETWORKS {
                    self.told = Instant::now();
                    let done = share(self.bar.position(), self.bar.length().unwrap_or(0));
                    output::note(&format!("{:.0} % done: {}", 100.0 * done, self.about));
                }
            }
            Work::Training(Event::Started { steps, step, .. }) => {
                self.resumed_at = step;
                self.expect(self.cost as f64 * (1.0 - TRAINING * share(step, steps)));
            }
            Work::Training(Event::Evaluated(metrics)) => {
                self.bar.set_message(format!("{}: phrases right {:.1} %", self.about, 100.0 * metrics.phrase_accuracy));
            }
            Work::Training(Event::Updated { step, steps, .. }) => {
                let explaining = self.cost as f64 * (1.0 - TRAINING);
                let done = share(step.saturating_sub(self.resumed_at), steps.saturating_sub(self.resumed_at));
                self.advance(done * ((self.end - self.begin) as f64 - explaining));
            }
            Work::Explaining(progress) => {
                self.explain(share(progress.done, progress.total));
                self.bar.set_message(format!("{}: explaining", self.about));
            }
            Work::Missed { about, seed, came_to, is_replaced } => {
                let then = if is_replaced { "another seed is tried" } else { "its claims do not hold" };
                self.bar.suspend(|| output::note(&format!("{about}, seed {seed}: {came_to}; {then}")));
            }
            _ => {}
        }
        if interrupt::asked() { Wish::Stop } else { Wish::GoOn }
    }

    /// From here on, so many ticks for the network at hand.
    fn expect(&mut self, ticks: f64) {
        self.begin = self.bar.position();
        self.end = self.begin + ticks as u64;
        self.bar.set_length(self.end + self.later);
    }

    /// So many ticks of what was expected are done.
    fn advance(&self, ticks: f64) {
        self.bar.set_position((self.begin + ticks.max(0.0) as u64).min(self.end));
    }

    /// Nobody says how many passes over the sentences there will be: each takes half of what is left.
    fn explain(&mut self, done: f64) {
        match self.pass {
            None => self.expect(self.cost as f64 * (1.0 - TRAINING)),
            Some(before) if done < before => self.begin = self.bar.position(),
            Some(_) => {}
        }
        self.pass = Some(done);
        self.advance(done * (self.end - self.begin) as f64 / 2.0);
    }
}

/// How much of it is done, from 0 to 1.
fn share(done: u64, of: u64) -> f64 {
    (done as f64 / of.max(1) as f64).min(1.0)
}

impl Drop for NetworkBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use crosslens_lab::network::Family;
    use crosslens_lab::recipes::default_config;
    use crosslens_lab::train::{Run, RunFolder};
    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal that keeps all that is written on it.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl Paper {
        fn text(&self) -> String {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            200
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(&format!("{line}\n"))
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The first steps of `crosslens train one-to-one --arch aed`, judged after the second.
    #[test]
    fn the_bar_of_a_training_tells_steps_loss_and_accuracy() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = default_config("one-to-one", Family::Aed).expect("a shipped configuration");
        (config.training.steps, config.training.evaluate_every, config.training.evaluate_samples) = (3, 2, 2);
        let run = Run::prepare(config, RunFolder::at(folder.path())).expect("it makes sense");
        let paper = Paper::default();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::term_like(Box::new(paper.clone())));
        let mut shown = Shown { style: Style::Auto, bar, accuracy: None };
        let mut losses = Vec::new();
        let mut look = |event: Event<'_>| {
            if let Event::Updated { loss, .. } = event {
                losses.push(loss);
            }
            let wish = shown.observe(event);
            shown.bar.force_draw();
            wish
        };
        run.start(1, &mut look).expect("a run that ends");
        let metrics = run.folder().read_metrics().expect("metrics");
        let text = paper.text();
        assert!(text.contains("0/3 steps, "), "{text}");
        let lines = |step: usize, message: &str| {
            let is_there = |line: &str| line.contains(&format!("{step}/3 steps, ")) && line.contains(&format!(" left  {message}"));
            assert!(text.lines().any(is_there), "no line of step {step} with `{message}`: {text}");
        };
        lines(1, &format!("loss {:.4}", losses[0]));
        lines(2, &format!("loss {:.4}", losses[1]));
        lines(3, &format!("loss {:.4}, phrases right {:.1} %", losses[2], 100.0 * metrics[0].phrase_accuracy));
        assert!(text.contains('━'), "the bar itself: {text}");
    }

    fn network(number: usize, is_found: bool) -> Work<'static> {
        Work::Network { number, of: 3, about: "AED", seed: 1, is_found }
    }

    fn updated(step: u64) -> Work<'static> {
        Work::Training(Event::Updated { step, steps: 100, loss: 1.0, weights: &[] })
    }

    fn started(step: u64) -> Work<'static> {
        Work::Training(Event::Started { step, steps: 100, parameters: 1, weights: &[] })
    }

    fn explaining(done: u64) -> Work<'static> {
        Work::Explaining(Progress { phase: Phase::Splitting, done, total: 10 })
    }

    /// Shows it and gives position and length in hundredths of the costs 10, 80 and 10, which are `TICKS` in all.
    fn shown(bar: &mut NetworkBar, work: Work<'static>) -> (u64, u64) {
        assert_eq!(bar.show(work), Wish::GoOn);
        let hundredths = |ticks: u64| (100.0 * ticks as f64 / TICKS).round() as u64;
        (hundredths(bar.bar.position()), hundredths(bar.bar.length().expect("it was set")))
    }

    fn hidden() -> NetworkBar {
        NetworkBar::on(ProgressBar::hidden(), &[1.0, 8.0, 1.0])
    }

    /// The second of three takes eight tenths of the time, and so eight tenths of the bar: half of its updates are .9 · 80 / 2 = 36 of it.
    #[test]
    fn a_network_gets_as_much_of_the_bar_as_it_costs() {
        let mut bar = hidden();
        assert_eq!(shown(&mut bar, network(1, false)), (0, 100));
        shown(&mut bar, started(0));
        assert_eq!(shown(&mut bar, updated(100)), (9, 100));
        // All of it but what no pass was needed for: the bar is that much shorter.
        let (position, _) = shown(&mut bar, explaining(10));
        let (begun, length) = shown(&mut bar, network(2, false));
        assert_eq!((begun, length), (position, position + 90));
        shown(&mut bar, started(0));
        assert_eq!(shown(&mut bar, updated(50)), (begun + 36, length));
    }

    #[test]
    fn the_bar_never_goes_back_however_often_a_network_is_explained() {
        let mut bar = hidden();
        shown(&mut bar, network(1, true));
        shown(&mut bar, network(2, false));
        shown(&mut bar, started(0));
        let (mut before, length) = shown(&mut bar, updated(100));
        assert_eq!((before, length), (72, 90), "what was found is no part of it");
        for pass in 0..6 {
            for done in [1, 5, 10] {
                let (now, length) = shown(&mut bar, explaining(done));
                assert!(now >= before && now <= 80 && length == 90, "pass {pass}: {before}, then {now} of {length}");
                before = now;
            }
        }
        assert!(before >= 79, "six passes come near the end, not to {before}");
    }

    #[test]
    fn what_is_not_needed_is_not_counted_as_done() {
        let mut bar = hidden();
        shown(&mut bar, network(1, true));
        assert_eq!(shown(&mut bar, network(2, false)), (0, 90));
        // Resumed after half of its updates: 8 for explaining and 36 for the other half are left of its 80.
        assert_eq!(shown(&mut bar, started(50)), (0, 54));
        assert_eq!(shown(&mut bar, updated(75)), (18, 54));
        // It stops there, done before its last update.
        assert_eq!(shown(&mut bar, explaining(0)), (18, 36));
        // It missed the gate: another seed is as much again.
        assert_eq!(shown(&mut bar, network(2, false)), (18, 108));
        shown(&mut bar, started(0));
        assert_eq!(shown(&mut bar, updated(100)), (90, 108));
        assert_eq!(shown(&mut bar, network(3, true)), (90, 90));
    }

    #[test]
    fn a_network_nobody_counted_on_breaks_nothing() {
        let mut bar = NetworkBar::on(ProgressBar::hidden(), &[]);
        bar.show(network(1, false));
        bar.show(started(0));
        bar.show(updated(50));
        bar.show(explaining(5));
        assert_eq!(bar.bar.position(), 0);
    }

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
