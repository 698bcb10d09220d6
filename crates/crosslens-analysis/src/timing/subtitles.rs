//! SubRip and WebVTT.
//!
//! ```text
//! 1                                        WEBVTT
//! 00:00:01,500 --> 00:00:02,000
//! Good day                                 00:00:01.500 --> 00:00:02.000
//!                                          Good day
//! ```
//! A text keeps its lines, without the blank ones, which would end a cue.

use std::io::{Result, Write};

/// A text and when it is shown, in milliseconds.
pub(super) struct Cue<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) text: &'a str,
}

impl<'a> Cue<'a> {
    /// From seconds, rounded; the times are those of a checked transcript.
    pub(super) fn new(start: f64, end: f64, text: &'a str) -> Self {
        let milliseconds = |seconds: f64| (seconds * 1000.0).round() as u64;
        Self { start: milliseconds(start), end: milliseconds(end), text }
    }

    /// Its times by the clock, at least a millisecond apart.
    fn times(&self, point: char) -> String {
        format!("{} --> {}", clock(self.start, point), clock(self.end.max(self.start + 1), point))
    }
}

/// Numbered cues. SubRip has no way to write an arrow in a text, so `-->` becomes `→`.
pub(super) fn write_srt(out: &mut impl Write, cues: Vec<Cue<'_>>) -> Result<()> {
    let mut number = 0;
    for cue in &cues {
        let text = lines(cue.text).join("\n").replace("-->", "→");
        if text.is_empty() {
            continue;
        }
        number += 1;
        if number > 1 {
            writeln!(out)?;
        }
        writeln!(out, "{number}\n{}\n{text}", cue.times(','))?;
    }
    Ok(())
}

/// Cues without names. `&`, `<` and `>` are escaped, so that no text holds a tag or an arrow.
pub(super) fn write_vtt(out: &mut impl Write, cues: Vec<Cue<'_>>) -> Result<()> {
    writeln!(out, "WEBVTT")?;
    for cue in &cues {
        let text = lines(cue.text).join("\n");
        if text.is_empty() {
            continue;
        }
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        writeln!(out, "\n{}\n{text}", cue.times('.'))?;
    }
    Ok(())
}

/// `hh:mm:ss` and milliseconds; hours take more than two digits where they must.
fn clock(milliseconds: u64, point: char) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    format!("{:02}:{:02}:{:02}{point}{rest:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The lines of a text that are not blank, without blanks around them; other control characters become blanks.
fn lines(text: &str) -> Vec<String> {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = text.split(ends).map(|line| line.replace(char::is_control, " "));
    lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}
