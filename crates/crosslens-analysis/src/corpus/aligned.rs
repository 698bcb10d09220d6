//! Two files of which line n of one translates line n of the other.

use std::path::Path;
use std::sync::Arc;

use super::entry::{Entries, Entry, both};
use super::{BytesRead, CorpusError, Lines, MAX_LINE_BYTES};

pub(super) struct Aligned {
    source: Lines,
    target: Lines,
}

impl Aligned {
    pub(super) fn open(source: &Path, target: &Path) -> Result<Self, CorpusError> {
        Ok(Self { source: Lines::open(source, MAX_LINE_BYTES)?, target: Lines::open(target, MAX_LINE_BYTES)? })
    }
}

impl Entries for Aligned {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        let paths = [&self.source, &self.target].map(|lines| Arc::clone(lines.path()));
        let n_lines = self.source.n_lines();
        let unequal = |shorter: usize| CorpusError::UnequalLines {
            shorter: paths[shorter].to_path_buf(),
            n_lines,
            longer: paths[1 - shorter].to_path_buf(),
        };
        let (line, source, target) = match (self.source.next_line()?, self.target.next_line()?) {
            (Some((line, source)), Some((_, target))) => (line, source, target),
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(unequal(0)),
            (Some(_), None) => return Err(unequal(1)),
        };
        let [source_path, target_path] = paths;
        Ok(Some(match (source.text(), target.text()) {
            (Ok(source), Ok(target)) => Entry { path: source_path, line, texts: both(source, target) },
            (Err(reason), _) => Entry { path: source_path, line, texts: Err(reason) },
            (_, Err(reason)) => Entry { path: target_path, line, texts: Err(reason) },
        }))
    }

    fn bytes_read(&self) -> BytesRead {
        let [source, target] = [self.source.bytes_read(), self.target.bytes_read()];
        BytesRead { done: source.done + target.done, total: source.total + target.total }
    }
}
