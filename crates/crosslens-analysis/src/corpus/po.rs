//! Catalogues as translators write them, `.po`.

use std::path::Path;
use std::sync::Arc;

use super::charset::Charset;
use super::entry::{Entries, Entry, Texts};
use super::{BytesRead, CorpusError, Line, Lines, MAX_LINE_BYTES, Reason, gettext};

pub(super) struct Po {
    lines: Lines,
    charset: Charset,
    draft: Draft,
    is_over: bool,
}

impl Po {
    pub(super) fn open(path: &Path) -> Result<Self, CorpusError> {
        Ok(Self { lines: Lines::open(path, MAX_LINE_BYTES)?, charset: Charset::Utf8, draft: Draft::default(), is_over: false })
    }

    /// The next entry that has begun, as it stands in the file.
    fn next_draft(&mut self) -> Result<Option<Draft>, CorpusError> {
        while let Some((number, line)) = self.lines.next_line()? {
            let statement = match line {
                Line::TooLong => Statement::Fault(Reason::OverlongLine),
                Line::Bytes(bytes) => Statement::read(bytes.trim_ascii()),
            };
            let ended = (self.draft.is_ended_by(&statement)).then(|| std::mem::take(&mut self.draft));
            self.draft.add(number, statement);
            if ended.is_some() {
                return Ok(ended);
            }
        }
        self.is_over = true;
        let last = std::mem::take(&mut self.draft);
        Ok(last.has_begun().then_some(last))
    }
}

impl Entries for Po {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        while !self.is_over {
            let Some(draft) = self.next_draft()? else { break };
            if draft.is_header() {
                self.charset = Charset::of_header(self.lines.path(), &draft.translation)?;
                continue;
            }
            let texts = draft.texts(self.charset);
            return Ok(Some(Entry { path: Arc::clone(self.lines.path()), line: draft.line, texts }));
        }
        Ok(None)
    }

    fn bytes_read(&self) -> BytesRead {
        self.lines.bytes_read()
    }
}

/// Where a string goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    /// Before the first keyword.
    #[default]
    None,
    Original,
    /// The first form where there are several.
    Translation,
    /// Context, plurals and their forms.
    Other,
}

/// One line of a catalogue.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    Blank,
    /// A comment, which says whether the entry it stands before is fuzzy.
    Comment {
        is_fuzzy: bool,
    },
    /// The original of an entry that is no longer used.
    Obsolete,
    /// A keyword that begins an entry.
    Begin(Field, Vec<u8>),
    /// A keyword within an entry.
    Field(Field, Vec<u8>),
    /// A string that goes on from the line before.
    More(Vec<u8>),
    Fault(Reason),
}

impl Statement {
    fn read(line: &[u8]) -> Self {
        const MALFORMED: Statement = Statement::Fault(Reason::Malformed);
        match line.first() {
            None => return Self::Blank,
            Some(b'#') => return Self::read_comment(line),
            Some(b'"') => return unquoted(line).map_or(MALFORMED, Self::More),
            Some(_) => {}
        }
        let end = line.iter().position(|&byte| byte == b'"' || byte.is_ascii_whitespace()).unwrap_or(line.len());
        let (keyword, string) = line.split_at(end);
        let Some(string) = unquoted(string.trim_ascii()) else { return MALFORMED };
        match keyword {
            b"msgctxt" => Self::Begin(Field::Other, string),
            b"msgid" => Self::Begin(Field::Original, string),
            b"msgid_plural" => Self::Field(Field::Other, string),
            b"msgstr" | b"msgstr[0]" => Self::Field(Field::Translation, string),
            _ if keyword.starts_with(b"msgstr[") && keyword.ends_with(b"]") => Self::Field(Field::Other, string),
            _ => MALFORMED,
        }
    }

    fn read_comment(line: &[u8]) -> Self {
        if let Some(rest) = line.strip_prefix(b"#~") {
            return if rest.trim_ascii_start().starts_with(b"msgid ") { Self::Obsolete } else { Self::Comment { is_fuzzy: false } };
        }
        let flags = line.strip_prefix(b"#,").unwrap_or_default();
        Self::Comment { is_fuzzy: flags.split(|&byte| byte == b',').any(|flag| flag.trim_ascii() == b"fuzzy") }
    }
}

/// An entry of which some lines were read.
#[derive(Debug, Default)]
struct Draft {
    line: u64,
    field: Field,
    is_fuzzy: bool,
    has_original: bool,
    has_translation: bool,
    original: Vec<u8>,
    translation: Vec<u8>,
    fault: Option<Reason>,
}

impl Draft {
    fn has_begun(&self) -> bool {
        self.has_original || self.fault.is_some()
    }

    /// Whether a line belongs to the next entry.
    fn is_ended_by(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Blank | Statement::Obsolete | Statement::Begin(..) => self.has_begun(),
            Statement::Comment { .. } => self.has_translation || self.fault.is_some(),
            _ => self.fault == Some(Reason::Unfinished),
        }
    }

    fn add(&mut self, number: u64, statement: Statement) {
        match statement {
            Statement::Blank => {}
            Statement::Comment { is_fuzzy } => self.is_fuzzy |= is_fuzzy,
            Statement::Obsolete => self.fail(number, Reason::Unfinished),
            Statement::Begin(field, string) => {
                if field == Field::Original {
                    self.has_original = true;
                    self.line = number;
                }
                self.field = field;
                self.append(number, &string);
            }
            Statement::Field(field, string) => {
                if !self.has_original || (field == Field::Translation && self.has_translation) {
                    self.fail(number, Reason::Malformed);
                }
                self.has_translation |= field == Field::Translation;
                self.field = field;
                self.append(number, &string);
            }
            Statement::More(string) => self.append(number, &string),
            Statement::Fault(reason) => self.fail(number, reason),
        }
    }

    fn append(&mut self, number: u64, string: &[u8]) {
        let text = match self.field {
            Field::Original => &mut self.original,
            Field::Translation => &mut self.translation,
            Field::Other => return,
            Field::None => return self.fail(number, Reason::Malformed),
        };
        if text.len() + string.len() > MAX_LINE_BYTES {
            return self.fail(number, Reason::OverlongLine);
        }
        text.extend_from_slice(string);
    }

    /// Keeps the first fault and its line.
    fn fail(&mut self, number: u64, reason: Reason) {
        if self.fault.is_none() {
            self.fault = Some(reason);
            self.line = number;
        }
    }

    fn is_header(&self) -> bool {
        self.fault.is_none() && self.original.is_empty()
    }

    fn texts(&self, charset: Charset) -> Texts {
        if let Some(reason) = self.fault {
            return Err(reason);
        }
        if self.is_fuzzy {
            return Err(Reason::Unfinished);
        }
        gettext::texts(&charset.decode(&self.original)?, &charset.decode(&self.translation)?)
    }
}

/// The content of a string in quotes, escapes as in C; none if it is not one.
fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut string = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'"' {
            return None;
        }
        if byte != b'\\' {
            string.push(byte);
            continue;
        }
        string.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            b'x' => digits(&mut bytes, 16, 2, 0)?,
            digit @ b'0'..=b'7' => digits(&mut bytes, 8, 2, u32::from(digit - b'0'))?,
            other @ (b'"' | b'\\' | b'\'' | b'?') => other,
            _ => return None,
        });
    }
    Some(string)
}

/// The byte that up to so many more digits write.
fn digits(bytes: &mut std::iter::Peekable<impl Iterator<Item = u8>>, base: u32, most: usize, first: u32) -> Option<u8> {
    let mut number = first;
    for _ in 0..most {
        let Some(digit) = bytes.peek().and_then(|&byte| char::from(byte).to_digit(base)) else { break };
        number = number * base + digit;
        bytes.next();
    }
    u8::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<(u64, Texts)> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let mut po = Po::open(file.path()).expect("a file");
        let mut all = Vec::new();
        while let Some(entry) = po.next_entry().expect("it is read") {
            all.push((entry.line, entry.texts));
        }
        all
    }

    fn pair(line: u64, source: &str, target: &str) -> (u64, Texts) {
        (line, Ok((source.into(), target.into())))
    }

    #[test]
    fn entries_of_every_kind_are_read() {
        let text = br#"# A comment.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: file.c:3
#, c-format
msgid "one %s"
msgstr "un %s"
#, fuzzy, c-format
#| msgid "old"
msgid "guess"
msgstr "devin"

msgctxt "menu"
msgid ""
"two "
"lines"
msgstr ""
"deux \"lignes\"\n"
"\303\251\x41"
msgid "cat"
msgid_plural "cats"
msgstr[0] "chat"
msgstr[1] "chats"

msgid "late"
msgstr ""

#~ msgid "gone"
#~ msgstr "parti"
#, c-format
msgid "last"
msgstr "dernier""#;
        assert_eq!(
            read(text),
            [
                pair(8, "one %s", "un %s"),
                (12, Err(Reason::Unfinished)),
                pair(16, "two lines", "deux \"lignes\" éA"),
                pair(22, "cat", "chat"),
                (27, Err(Reason::OneSided)),
                (30, Err(Reason::Unfinished)),
                pair(33, "last", "dernier"),
            ]
        );
    }

    #[test]
    fn faults_are_counted_and_the_next_entry_is_read() {
        let text = b"msgstr \"no original\"\n\nmsgid \"a\nmsgstr \"b\"\n\nhello\n\n\"lost\"\n\nmsgid \"\\q\"\nmsgstr \"c\"\n\nmsgid \"d\"\nmsgstr \"\xff\"\n\nmsgid \"e\"\nmsgstr \"f\"\n";
        let bad = |line| (line, Err(Reason::Malformed));
        assert_eq!(read(text), [bad(1), bad(3), bad(6), bad(8), bad(10), (13, Err(Reason::InvalidUtf8)), pair(16, "e", "f")]);
    }

    #[test]
    fn an_entry_without_end_is_not_kept() {
        let text = format!("msgid \"a\"\nmsgstr \"\"\n{}\nmsgid \"b\"\nmsgstr \"c\"\n", "\"0123456789\"\n".repeat(10_000));
        // 6,553 strings of ten letters fit into 64 KiB.
        assert_eq!(read(text.as_bytes()), [(2 + 6_554, Err(Reason::OverlongLine)), pair(10_004, "b", "c")]);
    }

    #[test]
    fn latin_1_is_decoded() {
        let text = b"msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=ISO-8859-1\\n\"\n\nmsgid \"summer\"\nmsgstr \"\xe9t\xe9\"\n";
        assert_eq!(read(text), [pair(4, "summer", "été")]);
    }
}
