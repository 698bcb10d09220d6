//! What became of the lines of a corpus.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// How many places of each kind a report keeps.
pub const MAX_PLACES: usize = 5;

/// Why a line or an entry gave no pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Nothing but white space.
    Blank,
    /// One of the two texts is missing: no tab, an empty side, an entry without translation.
    OneSided,
    /// A side with fewer words than wanted.
    TooShort,
    /// A side with more words or bytes than wanted.
    TooLong,
    /// The same pair was kept before.
    Duplicate,
    /// Bytes that are no UTF-8.
    InvalidUtf8,
    /// A line or an entry longer than any sentence: its end was looked for, its text was not kept.
    OverlongLine,
    /// No JSON with two texts, or no line of a catalogue.
    Malformed,
    /// An entry of a catalogue that is marked as fuzzy or obsolete.
    Unfinished,
    /// An entry of a catalogue without a letter beside its placeholders, such as `%s: %d`.
    NoWords,
    /// An installed catalogue that cannot be read; its place is the whole file.
    BadCatalogue,
}

impl Reason {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Blank,
        Self::OneSided,
        Self::TooShort,
        Self::TooLong,
        Self::Duplicate,
        Self::InvalidUtf8,
        Self::OverlongLine,
        Self::Malformed,
        Self::Unfinished,
        Self::NoWords,
        Self::BadCatalogue,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::OneSided => "one-sided",
            Self::TooShort => "too short",
            Self::TooLong => "too long",
            Self::Duplicate => "duplicate",
            Self::InvalidUtf8 => "not UTF-8",
            Self::OverlongLine => "over-long line",
            Self::Malformed => "malformed",
            Self::Unfinished => "fuzzy or obsolete",
            Self::NoWords => "without words",
            Self::BadCatalogue => "unreadable catalogue",
        }
    }
}

/// Where a line or an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub path: Arc<Path>,
    /// The line, from 1; in a `.mo` catalogue the entry, from 1; 0 for the whole file.
    pub line: u64,
}

fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// How often something happened, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The first [`MAX_PLACES`] places.
    pub first: Vec<Place>,
}

/// What a reader kept and what it dropped.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CorpusReport {
    kept: u64,
    kept_bytes: u64,
    dropped: [Tally; Reason::ALL.len()],
}

impl CorpusReport {
    /// Pairs that were given out.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Bytes of their texts, both sides.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// What was dropped for one reason.
    pub fn dropped(&self, reason: Reason) -> &Tally {
        &self.dropped[reason as usize]
    }

    /// What was dropped for any reason.
    pub fn n_dropped(&self) -> u64 {
        self.dropped.iter().map(|tally| tally.count).sum()
    }

    /// The reasons for which something was dropped.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, &Tally)> {
        Reason::ALL.into_iter().zip(&self.dropped).filter(|(_, tally)| tally.count > 0)
    }

    pub(super) fn keep(&mut self, n_bytes: usize) {
        self.kept += 1;
        self.kept_bytes += n_bytes as u64;
    }

    pub(super) fn drop_at(&mut self, reason: Reason, path: &Arc<Path>, line: u64) {
        let tally = &mut self.dropped[reason as usize];
        tally.count += 1;
        if tally.first.len() < MAX_PLACES {
            tally.first.push(Place { path: Arc::clone(path), line });
        }
    }
}

/// `3 pairs kept; 2 one-sided (lines 4, 7)`; files are named where the places of one reason lie in several.
impl fmt::Display for CorpusReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} kept", self.kept, if self.kept == 1 { "pair" } else { "pairs" })?;
        for (reason, tally) in self.reasons() {
            write!(out, "; {} {} ({tally})", tally.count, reason.name())?;
        }
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_one_file = self.first.windows(2).all(|pair| pair[0].path == pair[1].path) && self.first.iter().all(|place| place.line > 0);
        if is_one_file {
            out.write_str(if self.count == 1 { "line " } else { "lines " })?;
        }
        for (number, place) in self.first.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match (is_one_file, place.line) {
                (true, line) => write!(out, "{comma}{line}")?,
                (false, 0) => write!(out, "{comma}{}", place.path.display())?,
                (false, line) => write!(out, "{comma}{}:{line}", place.path.display())?,
            }
        }
        out.write_str(if self.count > self.first.len() as u64 { ", …" } else { "" })
    }
}

/// `{"kept": 3, "dropped": {"one-sided": {"count": 2, "first": [{"path": …, "line": 4}, …]}}}`, without reasons that never came up.
impl Serialize for CorpusReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let dropped: std::collections::BTreeMap<Reason, &Tally> = self.reasons().collect();
        let mut report = serializer.serialize_struct("CorpusReport", 2)?;
        report.serialize_field("kept", &self.kept)?;
        report.serialize_field("dropped", &dropped)?;
        report.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_dropped_and_where() {
        let (one, other): (Arc<Path>, Arc<Path>) = (Path::new("a.tsv").into(), Path::new("b.tsv").into());
        let mut report = CorpusReport::default();
        report.keep(7);
        for line in [4, 7, 8, 9, 10, 11] {
            report.drop_at(Reason::OneSided, &one, line);
        }
        report.drop_at(Reason::Duplicate, &one, 2);
        report.drop_at(Reason::Malformed, &one, 3);
        report.drop_at(Reason::Malformed, &other, 5);
        report.drop_at(Reason::BadCatalogue, &other, 0);
        assert_eq!(
            report.to_string(),
            "1 pair kept; 6 one-sided (lines 4, 7, 8, 9, 10, …); 1 duplicate (line 2); 2 malformed (a.tsv:3, b.tsv:5); \
             1 unreadable catalogue (b.tsv)"
        );
        assert_eq!(report.n_dropped(), 10);
        assert_eq!(report.dropped(Reason::OneSided).first.len(), MAX_PLACES);
        let json = serde_json::to_value(&report).expect("a report can be written");
        assert_eq!(json["dropped"]["malformed"]["first"][1], serde_json::json!({"path": "b.tsv", "line": 5}));
        assert!(json["dropped"].get("blank").is_none());
    }

    #[test]
    fn every_reason_has_its_own_tally() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{reason:?}");
        }
    }
}
