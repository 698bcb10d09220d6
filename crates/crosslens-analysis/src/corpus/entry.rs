//! What the readers of the formats give: a pair, or why there is none.

use std::path::Path;
use std::sync::Arc;

use super::{BytesRead, CorpusError, Reason};

/// Source and target, or why they are missing.
pub(super) type Texts = Result<(String, String), Reason>;

/// One line or entry of a file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: Arc<Path>,
    pub(super) line: u64,
    pub(super) texts: Texts,
}

/// A file of pairs in some format, read from front to back.
pub(super) trait Entries: Send {
    /// The next line or entry; none after the last.
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError>;

    /// How much of the file was read.
    fn bytes_read(&self) -> BytesRead;
}

/// White space within a text that would break a line, and blanks around it, become one blank; the ends are trimmed.
pub(super) fn one_line(text: &str) -> String {
    let is_break = |letter: char| letter.is_ascii_whitespace() || letter == '\u{b}';
    let mut line = String::with_capacity(text.len());
    for word in text.split(is_break).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Both texts on one line each; none where one of them or both are blank.
pub(super) fn both(source: &str, target: &str) -> Texts {
    match (source.trim().is_empty(), target.trim().is_empty()) {
        (true, true) => Err(Reason::Blank),
        (false, false) => Ok((one_line(source.trim()), one_line(target.trim()))),
        _ => Err(Reason::OneSided),
    }
}
