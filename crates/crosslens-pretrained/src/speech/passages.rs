//! Over a sound of any length: window after window, each going on where the last one stopped understanding.

use super::joining::{Overlap, join};
use super::segments::{Cut, cut};
use super::spoken::{Heard, Hears, Spoken, SpokenSegment};
use super::timestamps::TimestampRule;
use super::{STEP_SECS, SpeechError};
use crate::audio::{SAMPLE_RATE, Samples, WINDOW, Window, Windows};

/// Samples that two windows share where there are no timestamps to go by: 10 seconds.
const OVERLAP: usize = 10 * SAMPLE_RATE as usize;
/// Above, and with words as unlikely as below, nobody speaks.
const SILENT: f64 = 0.6;
const UNLIKELY: f64 = -1.0;

/// What was understood so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// In order; maybe none.
    pub segments: Vec<SpokenSegment>,
    /// Seconds of the sound that are done.
    pub done_secs: f64,
}

/// Walks over a sound and writes down what is said, a window at a time.
///
/// With timestamps a window is followed by one that begins at the end of its last whole segment: nothing is heard twice, and what was cut
/// off is heard again. Without, windows overlap by ten seconds and are joined where both heard the same (so that segments come one window
/// late). Holds one window, whatever the length. Stops by being dropped; after an error there is nothing more.
pub struct Passages<S, H> {
    windows: Windows<S>,
    hears: H,
    timestamps: Option<TimestampRule>,
    /// Without timestamps: what the last window heard and is not yet joined, and where it began.
    pending: Option<SpokenSegment>,
    /// Seconds of the sound read, its length once all is.
    heard_secs: f64,
    ended: bool,
}

impl<S: Samples, H: Hears> Passages<S, H> {
    /// From the beginning of a sound. `timestamps` says how `hears` writes them, if it does.
    pub fn over(samples: S, hears: H, timestamps: Option<TimestampRule>) -> Self {
        Self { windows: Windows::over(samples), hears, timestamps, pending: None, heard_secs: 0.0, ended: false }
    }

    /// Where the samples come from, to ask for what it noticed.
    pub fn source(&self) -> &S {
        self.windows.source()
    }

    /// Who listens.
    pub fn hears(&self) -> &H {
        &self.hears
    }

    /// Seconds of the sound up to the end of the last window; its length, once there is nothing more.
    pub fn heard_secs(&self) -> f64 {
        self.heard_secs
    }

    /// What the last window heard and no other was joined to, for whoever stops before the end; nothing with timestamps.
    pub fn take_unjoined(&mut self) -> Option<SpokenSegment> {
        self.ended = true;
        self.pending.take().filter(|segment| !segment.tokens.is_empty())
    }

    fn step(&mut self) -> Result<Option<Passage>, SpeechError> {
        let Some(window) = self.windows.window()? else {
            self.ended = true;
            let segments: Vec<SpokenSegment> = self.pending.take().into_iter().collect();
            return Ok((!segments.is_empty()).then_some(Passage { segments, done_secs: self.heard_secs }));
        };
        let Window { n_real, .. } = window;
        let (offset, secs) = (window.offset_secs(), seconds(n_real));
        self.heard_secs = self.heard_secs.max(offset + secs);
        let mut heard = self.hears.hear(window)?;
        let is_silent = heard.no_speech.is_some_and(|silent| silent > SILENT) && heard.mean_log_probability() < UNLIKELY;
        if is_silent {
            heard.tokens.clear();
        }
        match self.timestamps {
            Some(rule) => self.go_on_by_times(heard, &rule, offset, n_real).map(Some),
            None => self.go_on_by_overlap(heard, offset, n_real).map(Some),
        }
    }

    fn go_on_by_times(&mut self, heard: Heard, rule: &TimestampRule, offset: f64, n_real: usize) -> Result<Passage, SpeechError> {
        let no_speech = heard.no_speech;
        let Cut { segments, seek } = cut(heard.tokens, rule, seconds(n_real));
        // A segment that ends where the window begins would be heard for ever.
        let n_samples = seek.map(samples).filter(|n_samples| *n_samples > 0).unwrap_or(n_real).min(n_real);
        self.windows.advance(n_samples)?;
        let has_text = |segment: &SpokenSegment| segment.tokens.iter().any(|spoken| spoken.token < rule.end);
        let segments = segments.into_iter().filter(has_text).map(|segment| SpokenSegment { no_speech, ..later(segment, offset) });
        Ok(Passage { segments: segments.collect(), done_secs: offset + seconds(n_samples) })
    }

    fn go_on_by_overlap(&mut self, heard: Heard, offset: f64, n_real: usize) -> Result<Passage, SpeechError> {
        let is_last = n_real < WINDOW;
        self.windows.advance(if is_last { n_real } else { WINDOW - OVERLAP })?;
        let end = offset + seconds(n_real);
        let mut next = later(SpokenSegment { start: 0.0, end: end - offset, tokens: heard.tokens, no_speech: heard.no_speech }, offset);
        let mut segments = Vec::new();
        if let Some(mut last) = self.pending.take() {
            let shared = (last.end - offset).max(0.0);
            let middle = offset + shared / 2.0;
            let overlap = Overlap { parts: [shared / (last.end - last.start), shared / (end - offset)], middle };
            let (kept, from) = join(&last.tokens, &next.tokens, &overlap);
            last.tokens.truncate(kept);
            next.tokens.drain(..from);
            // What one of them alone heard may lie anywhere in its window.
            if !last.tokens.is_empty() && !next.tokens.is_empty() {
                (last.end, next.start) = (middle.max(last.start), middle);
            }
            segments.push(last);
        }
        self.pending = Some(next);
        if is_last {
            self.ended = true;
            segments.extend(self.pending.take());
        }
        segments.retain(|segment| !segment.tokens.is_empty());
        let done_secs = if is_last { end } else { offset + seconds(WINDOW - OVERLAP) };
        Ok(Passage { segments, done_secs })
    }
}

impl<S: Samples, H: Hears> Iterator for Passages<S, H> {
    type Item = Result<Passage, SpeechError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended |= !matches!(step, Some(Ok(_)));
        step
    }
}

/// The same, so many seconds later.
fn later(segment: SpokenSegment, secs: f64) -> SpokenSegment {
    let moved = |spoken: Spoken| Spoken { secs: spoken.secs.map(|(from, to)| (from + secs, to + secs)), ..spoken };
    let tokens = segment.tokens.into_iter().map(moved).collect();
    SpokenSegment { start: segment.start + secs, end: segment.end + secs, tokens, ..segment }
}

fn seconds(n_samples: usize) -> f64 {
    n_samples as f64 / f64::from(SAMPLE_RATE)
}

/// Samples of so many steps of the encoder.
fn samples(steps: usize) -> usize {
    (steps as f64 * STEP_SECS * f64::from(SAMPLE_RATE)).round() as usize
}
