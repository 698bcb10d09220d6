//! The files a transcript is written as.

use std::io::Write;
use std::str::FromStr;

use super::subtitles::{self, Cue};
use super::transcript::MAX_SECONDS;
use super::{Transcript, WriteError};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// All that is known, indented.
    Json,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// A line `start`, `end`, `text` for each cue under a line with these names; times in milliseconds.
    Tsv,
    /// A line of text for each segment.
    Txt,
}

/// A name of no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no transcript format `{name}`; there are json, srt, vtt, tsv and txt")]
pub struct UnknownFormat {
    /// What was given.
    pub name: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Json, Self::Srt, Self::Vtt, Self::Tsv, Self::Txt];

    /// As users write it, and as files end.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
            Self::Tsv => "tsv",
            Self::Txt => "txt",
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// What stands on the screen at a time. JSON and plain text do not ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cues {
    /// A segment.
    #[default]
    Segments,
    /// A word; a segment whose words are not known.
    Words,
}

impl Transcript {
    /// Writes a file. Give it a buffer: lines are written piece by piece.
    ///
    /// Subtitles and tables are sorted by start, cues that begin together stay in order. What has no text is no subtitle, and a subtitle
    /// takes at least a millisecond, since a player shows no shorter one.
    pub fn write(&self, out: &mut impl Write, format: Format, cues: Cues) -> Result<(), WriteError> {
        self.check()?;
        match format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Format::Srt => subtitles::write_srt(out, self.cues(cues))?,
            Format::Vtt => subtitles::write_vtt(out, self.cues(cues))?,
            Format::Tsv => {
                writeln!(out, "start\tend\ttext")?;
                for Cue { start, end, text } in self.cues(cues) {
                    writeln!(out, "{start}\t{end}\t{}", one_line(text))?;
                }
            }
            Format::Txt => {
                for segment in &self.segments {
                    writeln!(out, "{}", one_line(&segment.text))?;
                }
            }
        }
        Ok(out.flush()?)
    }

    /// Every time must be one that a clock can show.
    fn check(&self) -> Result<(), WriteError> {
        for (number, segment) in self.segments.iter().enumerate() {
            let words = segment.words.iter().map(|word| (word.start, word.end));
            for (start, end) in [(segment.start, segment.end)].into_iter().chain(words) {
                if !(0.0 <= start && start <= end && end <= MAX_SECONDS) {
                    return Err(WriteError::Time { segment: number, start, end });
                }
            }
        }
        Ok(())
    }

    /// What is shown, by start.
    fn cues(&self, which: Cues) -> Vec<Cue<'_>> {
        let mut cues = Vec::new();
        for segment in &self.segments {
            if which == Cues::Segments || segment.words.is_empty() {
                cues.push(Cue::new(segment.start, segment.end, &segment.text));
            } else {
                cues.extend(segment.words.iter().map(|word| Cue::new(word.start, word.end, &word.text)));
            }
        }
        cues.sort_by_key(|cue| cue.start);
        cues
    }
}

/// A text without tabs, line ends and other control characters: a blank stands for each run of them, and of blanks.
fn one_line(text: &str) -> String {
    let pieces = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|piece| !piece.is_empty());
    pieces.collect::<Vec<&str>>().join(" ")
}
