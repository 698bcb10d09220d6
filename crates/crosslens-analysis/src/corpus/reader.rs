use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::entry::{Entries, Entry};
use super::{CorpusError, CorpusReport, CorpusSpec, Filter, Reason};

/// A sentence and its translation, each on one line and without white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The sentence.
    pub source: String,
    /// Its translation.
    pub target: String,
    /// Where it stands: the line of its file, from 1; in a `.mo` catalogue its entry, from 1.
    pub line: u64,
}

/// How much of a corpus was read, in bytes of its files as they are, packed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesRead {
    /// Until now.
    pub done: u64,
    /// In all.
    pub total: u64,
}

/// Lines or entries after which [`CorpusReader::read_all`] says how far it is.
const TOLD_EVERY: u64 = 256;

/// The wanted pairs of a corpus, one by one.
///
/// An error ends it. A corpus of which no pair is kept gives [`CorpusError::Empty`] as its last and only item.
pub struct CorpusReader {
    spec: CorpusSpec,
    filter: Filter,
    entries: Box<dyn Entries>,
    /// Hashes of the pairs kept.
    seen: HashSet<u64>,
    report: CorpusReport,
    is_over: bool,
}

impl CorpusReader {
    pub(super) fn new(spec: CorpusSpec, filter: Filter, entries: Box<dyn Entries>) -> Self {
        Self { spec, filter, entries, seen: HashSet::new(), report: CorpusReport::default(), is_over: false }
    }

    /// What was kept and dropped until now.
    pub fn counts(&self) -> &CorpusReport {
        &self.report
    }

    /// What was kept and dropped.
    pub fn into_report(self) -> CorpusReport {
        self.report
    }

    /// All pairs, and what was kept and dropped; `told` hears how far it is, also where nothing is kept for long.
    pub fn read_all(mut self, told: &mut dyn FnMut(BytesRead)) -> Result<(Vec<TextPair>, CorpusReport), CorpusError> {
        let mut pairs = Vec::new();
        let mut n_entries: u64 = 0;
        while let Some(judged) = self.next_judged()? {
            pairs.extend(judged);
            n_entries += 1;
            if n_entries.is_multiple_of(TOLD_EVERY) {
                told(self.entries.bytes_read());
            }
        }
        told(self.entries.bytes_read());
        Ok((pairs, self.report))
    }

    /// The next pair; none at the end.
    fn next_pair(&mut self) -> Result<Option<TextPair>, CorpusError> {
        while let Some(judged) = self.next_judged()? {
            if judged.is_some() {
                return Ok(judged);
            }
        }
        Ok(None)
    }

    /// The next line or entry, its pair if it is wanted; none at the end.
    fn next_judged(&mut self) -> Result<Option<Option<TextPair>>, CorpusError> {
        if self.filter.ended(&self.report).is_some() {
            return Ok(None);
        }
        if let Some(entry) = self.entries.next_entry()? {
            return Ok(Some(self.judge(entry)));
        }
        if self.report.kept() > 0 {
            return Ok(None);
        }
        Err(CorpusError::Empty { corpus: self.spec.clone(), report: Box::new(self.report.clone()) })
    }

    /// The pair of an entry if it is wanted; counts it either way.
    fn judge(&mut self, entry: Entry) -> Option<TextPair> {
        let Entry { path, line, texts } = entry;
        let wanted = texts.and_then(|(source, target)| match self.objection(&source, &target) {
            Some(reason) => Err(reason),
            None => Ok(TextPair { source, target, line }),
        });
        match wanted {
            Ok(pair) => {
                self.report.keep(pair.source.len() + pair.target.len());
                Some(pair)
            }
            Err(reason) => {
                self.report.drop_at(reason, &path, line);
                None
            }
        }
    }

    fn objection(&mut self, source: &str, target: &str) -> Option<Reason> {
        if let Some(reason) = self.filter.objection(source, target) {
            return Some(reason);
        }
        let is_new = !self.filter.dedupe || {
            let mut hasher = DefaultHasher::new();
            (source, target).hash(&mut hasher);
            self.seen.insert(hasher.finish())
        };
        (!is_new).then_some(Reason::Duplicate)
    }
}

impl Iterator for CorpusReader {
    type Item = Result<TextPair, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.next_pair().transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

impl std::fmt::Debug for CorpusReader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CorpusReader").field("spec", &self.spec).field("filter", &self.filter).field("report", &self.report).finish()
    }
}
