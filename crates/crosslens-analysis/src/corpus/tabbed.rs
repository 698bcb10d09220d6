//! Lines of source and target with a tab between them; further columns are passed over.

use std::path::Path;
use std::sync::Arc;

use super::entry::{Entries, Entry, Texts, both};
use super::{BytesRead, CorpusError, Line, Lines, MAX_LINE_BYTES};

pub(super) struct Tabbed(Lines);

impl Tabbed {
    pub(super) fn open(path: &Path) -> Result<Self, CorpusError> {
        Lines::open(path, MAX_LINE_BYTES).map(Self)
    }
}

impl Entries for Tabbed {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        let path = Arc::clone(self.0.path());
        let Some((number, line)) = self.0.next_line()? else { return Ok(None) };
        Ok(Some(Entry { path, line: number, texts: texts(line) }))
    }

    fn bytes_read(&self) -> BytesRead {
        self.0.bytes_read()
    }
}

fn texts(line: Line<'_>) -> Texts {
    let mut columns = line.text()?.split('\t');
    both(columns.next().unwrap_or_default(), columns.next().unwrap_or_default())
}
