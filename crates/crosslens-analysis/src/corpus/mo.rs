//! Compiled catalogues, `.mo`: two tables of places, of originals and of translations, in either byte order.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::charset::Charset;
use super::entry::{Entries, Entry, Texts};
use super::lines::open_file;
use super::{BytesRead, CorpusError, MAX_LINE_BYTES, Reason, gettext};

/// The largest catalogue that is read; those of large programs have 1 or 2 MiB.
const MAX_BYTES: u64 = 64 << 20;
const MAGIC: u32 = 0x9504_12de;
/// Texts may share their ends; a file whose texts add up to more than so many times its size was made to keep its reader busy.
const MAX_SHARING: u64 = 4;

pub(super) struct Mo {
    path: Arc<Path>,
    tables: Tables,
    charset: Charset,
    next: usize,
}

impl Mo {
    pub(super) fn open(path: &Path) -> Result<Self, CorpusError> {
        let file = open_file(path)?;
        let mut bytes = Vec::new();
        let n_bytes = file.metadata().map_err(CorpusError::io(path))?.len();
        if n_bytes <= MAX_BYTES {
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(CorpusError::io(path))?;
        }
        let n_bytes = n_bytes.max(bytes.len() as u64);
        if n_bytes > MAX_BYTES {
            return Err(CorpusError::TooLarge { path: path.to_owned(), n_bytes, most: MAX_BYTES });
        }
        let tables = Tables::new(bytes).map_err(|what| CorpusError::Catalogue { path: path.to_owned(), what })?;
        let header = (0..tables.n_entries).find(|&entry| tables.text(tables.originals, entry).is_empty());
        let header = header.map_or(&[][..], |entry| tables.text(tables.translations, entry));
        let charset = Charset::of_header(path, header)?;
        Ok(Self { path: path.into(), tables, charset, next: 0 })
    }

    /// The pair of an entry; none for the header.
    fn texts(&self, entry: usize) -> Option<Texts> {
        let tables = &self.tables;
        let (original, translation) = (tables.text(tables.originals, entry), tables.text(tables.translations, entry));
        if original.is_empty() {
            return None;
        }
        if original.len().max(translation.len()) > MAX_LINE_BYTES {
            return Some(Err(Reason::OverlongLine));
        }
        // `context EOT singular NUL plural`, and the forms of the translation with NUL between them.
        let source = until_nul(original);
        let source = source.iter().position(|&byte| byte == 4).map_or(source, |end| &source[end + 1..]);
        let decode = |bytes| self.charset.decode(bytes);
        Some(decode(source).and_then(|source| gettext::texts(&source, &decode(until_nul(translation))?)))
    }
}

impl Entries for Mo {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        while self.next < self.tables.n_entries {
            self.next += 1;
            if let Some(texts) = self.texts(self.next - 1) {
                return Ok(Some(Entry { path: Arc::clone(&self.path), line: self.next as u64, texts }));
            }
        }
        Ok(None)
    }

    /// The file is in memory; what counts is how many of its entries were taken.
    fn bytes_read(&self) -> BytesRead {
        let total = self.tables.bytes.len() as u64;
        BytesRead { done: total * self.next as u64 / self.tables.n_entries.max(1) as u64, total }
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The content of a catalogue, all of whose texts are known to lie in it.
struct Tables {
    bytes: Vec<u8>,
    is_big_endian: bool,
    n_entries: usize,
    /// Where the table of originals begins.
    originals: usize,
    /// Where the table of translations begins.
    translations: usize,
}

impl Tables {
    fn new(bytes: Vec<u8>) -> Result<Self, &'static str> {
        let mut tables = Self { bytes, is_big_endian: false, n_entries: 0, originals: 0, translations: 0 };
        let field = |tables: &Self, number: usize| tables.number(4 * number).ok_or("it has no header");
        let magic = field(&tables, 0)?;
        tables.is_big_endian = magic == MAGIC.swap_bytes();
        if magic != MAGIC && !tables.is_big_endian {
            return Err("it does not begin with the magic number");
        }
        if field(&tables, 1)? >> 16 > 1 {
            return Err("it is of a revision beyond 1");
        }
        tables.n_entries = field(&tables, 2)? as usize;
        tables.originals = field(&tables, 3)? as usize;
        tables.translations = field(&tables, 4)? as usize;

        for table in [tables.originals, tables.translations] {
            let end = tables.n_entries.checked_mul(8).and_then(|size| size.checked_add(table));
            if end.is_none_or(|end| end > tables.bytes.len()) {
                return Err("a table reaches beyond the end of the file");
            }
            let mut total = 0;
            for entry in 0..tables.n_entries {
                let place = tables.place(table, entry).filter(|place| place.1 <= tables.bytes.len());
                let (begin, end) = place.ok_or("a text reaches beyond the end of the file")?;
                total += (end - begin) as u64;
            }
            if total > MAX_SHARING * tables.bytes.len() as u64 {
                return Err("its texts lie over each other");
            }
        }
        Ok(tables)
    }

    fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Begin and end of a text.
    fn place(&self, table: usize, entry: usize) -> Option<(usize, usize)> {
        let length = self.number(table + 8 * entry)? as usize;
        let begin = self.number(table + 8 * entry + 4)? as usize;
        Some((begin, begin.checked_add(length)?))
    }

    fn text(&self, table: usize, entry: usize) -> &[u8] {
        self.place(table, entry).and_then(|(begin, end)| self.bytes.get(begin..end)).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A catalogue as `msgfmt` writes it, without the table of hashes.
    pub(in crate::corpus) fn catalogue(entries: &[(&str, &str)], is_big_endian: bool) -> Vec<u8> {
        let number = |number: usize| {
            let number = u32::try_from(number).expect("a small file");
            if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
        };
        let n = entries.len();
        let mut bytes: Vec<u8> = [MAGIC as usize, 0, n, 28, 28 + 8 * n, 0, 28 + 16 * n].into_iter().flat_map(number).collect();
        let mut texts = Vec::new();
        for text in entries.iter().map(|entry| entry.0).chain(entries.iter().map(|entry| entry.1)) {
            bytes.extend(number(text.len()));
            bytes.extend(number(28 + 16 * n + texts.len()));
            texts.extend(text.as_bytes());
            texts.push(0);
        }
        bytes.extend(texts);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Texts>, CorpusError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        let mut mo = Mo::open(file.path())?;
        let mut all = Vec::new();
        while let Some(entry) = mo.next_entry()? {
            all.push(entry.texts);
        }
        Ok(all)
    }

    const ENTRIES: [(&str, &str); 5] = [
        ("", "Project-Id-Version: x\nContent-Type: text/plain; charset=UTF-8\n"),
        ("%d cat\0%d cats", "%d chat\0%d chats"),
        ("menu\u{4}_Open", "_Ouvrir"),
        ("late", ""),
        ("a\nb", "é"),
    ];

    #[test]
    fn both_byte_orders_give_the_same_pairs() {
        let pair = |source: &str, target: &str| Ok((source.to_owned(), target.to_owned()));
        for is_big_endian in [false, true] {
            let pairs = read(&catalogue(&ENTRIES, is_big_endian)).expect("a catalogue");
            assert_eq!(pairs, [pair("%d cat", "%d chat"), pair("Open", "Ouvrir"), Err(Reason::OneSided), pair("a b", "é")]);
        }
    }

    #[test]
    fn tables_that_lie_are_refused() {
        let good = catalogue(&ENTRIES, false);
        let with = |at: usize, number: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            read(&bytes).expect_err("the table lies").to_string()
        };
        for (at, number, what) in [
            (0, 7, "magic number"),
            (4, 2 << 16, "revision"),
            (8, u32::MAX, "a table reaches beyond"),
            (12, u32::MAX, "a table reaches beyond"),
            (16, good.len() as u32 - 8, "a table reaches beyond"),
            (28, u32::MAX, "a text reaches beyond"),
            (32, u32::MAX, "a text reaches beyond"),
        ] {
            let error = with(at, number);
            assert!(error.contains(what) && error.contains("msgfmt"), "{error}");
        }
        assert!(read(b"").expect_err("no header").to_string().contains("no header"));
        let error = read(&catalogue(&[("", "charset=KOI8-R")], false)).expect_err("not read");
        assert!(matches!(error, CorpusError::Charset { .. }));
    }

    #[test]
    fn texts_that_lie_over_each_other_do_not_keep_the_reader_busy() {
        let mut bytes = catalogue(&[("a", "b"); 100], false);
        let whole = bytes.len() as u32;
        for entry in 0..100 {
            bytes[28 + 8 * entry..][..8].copy_from_slice(&[whole.to_le_bytes(), 0_u32.to_le_bytes()].concat());
        }
        assert!(read(&bytes).expect_err("made up").to_string().contains("over each other"));
    }

    proptest! {
        #[test]
        fn no_byte_makes_it_panic(at in 0..400_usize, byte: u8, end in 0..400_usize) {
            let mut bytes = catalogue(&ENTRIES, false);
            let at = at % bytes.len();
            bytes[at] = byte;
            read(&bytes).ok();
            bytes.truncate(end);
            read(&bytes).ok();
        }
    }
}
