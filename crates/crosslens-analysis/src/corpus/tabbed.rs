//! Lines of source and target with a tab between them; further columns are passed over. A line without a tab may have `|||` instead, as
//! the files of word aligners do.

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
    let text = line.text()?;
    let separator = if text.contains('\t') { "\t" } else { "|||" };
    let mut columns = text.split(separator);
    both(columns.next().unwrap_or_default(), columns.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Reason;

    #[test]
    fn a_tab_separates_before_bars_do() {
        let pair = |source: &str, target: &str| Ok((source.to_owned(), target.to_owned()));
        for (line, expected) in [
            ("a\tb\tc", pair("a", "b")),
            ("a ||| b", pair("a", "b")),
            ("a ||| x\tb", pair("a ||| x", "b")),
            ("a ||| b ||| c", pair("a", "b")),
            ("a|||b", pair("a", "b")),
            ("a || b", Err(Reason::OneSided)),
            (" ||| b", Err(Reason::OneSided)),
        ] {
            assert_eq!(texts(Line::Bytes(line.as_bytes())), expected, "{line:?}");
        }
    }
}
