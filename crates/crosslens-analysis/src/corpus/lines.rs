//! Lines of a file that may be gzipped, none of which is held in memory beyond a limit.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::{BytesRead, CorpusError, Reason};

/// Longest line of a corpus that is read, in bytes without its end.
pub const MAX_LINE_BYTES: usize = 64 << 10;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Opens an ordinary file. Pipes and devices are refused before they can block.
pub(super) fn open_file(path: &Path) -> Result<File, CorpusError> {
    if !std::fs::metadata(path).map_err(CorpusError::io(path))?.is_file() {
        return Err(CorpusError::NotAFile { path: path.to_owned() });
    }
    File::open(path).map_err(CorpusError::io(path))
}

/// A file that counts what is read of it, packed as it may be.
struct Metered {
    file: File,
    n_read: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n_bytes = self.file.read(buffer)?;
        self.n_read.fetch_add(n_bytes as u64, Ordering::Relaxed);
        Ok(n_bytes)
    }
}

/// The content of a file, unpacked where it begins as gzip does, of one member or several.
struct Unpacked {
    content: Box<dyn BufRead + Send>,
    is_gzip: bool,
    /// Bytes of the file.
    n_bytes: u64,
    /// Those read until now.
    n_read: Arc<AtomicU64>,
}

impl Unpacked {
    fn open(path: &Path) -> Result<Self, CorpusError> {
        let file = open_file(path)?;
        let n_bytes = file.metadata().map_err(CorpusError::io(path))?.len();
        let n_read = Arc::new(AtomicU64::new(0));
        let mut file = BufReader::new(Metered { file, n_read: Arc::clone(&n_read) });
        let is_gzip = file.fill_buf().map_err(CorpusError::io(path))?.starts_with(&GZIP);
        let content: Box<dyn BufRead + Send> = if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        Ok(Self { content, is_gzip, n_bytes, n_read })
    }

    /// What lies ready to be read; nothing at the end.
    fn ready(&mut self) -> std::io::Result<&[u8]> {
        while let Err(error) = self.content.fill_buf() {
            if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
        // Asked again, since a loop cannot give away what it borrows; nothing more is read.
        self.content.fill_buf()
    }
}

/// What ends the lines of a file: decided by the first end there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// No end was met yet.
    Unknown,
    /// `\n` or `\r\n`; a `\r` elsewhere is white space, so that line n of two aligned files stays line n.
    Newlines,
    /// A lone `\r`, as old Macintosh programs write it; `\n` and `\r\n` end a line there too.
    Returns,
}

/// A line without its end: `\n`, `\r\n`, or `\r` in a file whose first line ends so.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    Bytes(&'a [u8]),
    /// Longer than the limit.
    TooLong,
}

impl<'a> Line<'a> {
    /// Its text, or why there is none.
    pub(super) fn text(self) -> Result<&'a str, Reason> {
        match self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| Reason::InvalidUtf8),
            Self::TooLong => Err(Reason::OverlongLine),
        }
    }
}

/// Reads a file line by line.
pub(crate) struct Lines {
    path: Arc<Path>,
    file: Unpacked,
    max_bytes: usize,
    n_lines: u64,
    ends: Ends,
    /// The line that was read last, one byte beyond the limit at most.
    buffer: Vec<u8>,
}

impl Lines {
    /// Opens a file whose longer lines are passed over.
    pub(crate) fn open(path: &Path, max_bytes: usize) -> Result<Self, CorpusError> {
        Ok(Self { path: path.into(), file: Unpacked::open(path)?, max_bytes, n_lines: 0, ends: Ends::Unknown, buffer: Vec::new() })
    }

    /// How much of the file was read.
    pub(super) fn bytes_read(&self) -> BytesRead {
        BytesRead { done: self.file.n_read.load(Ordering::Relaxed), total: self.file.n_bytes }
    }

    pub(super) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Lines read until now.
    pub(super) fn n_lines(&self) -> u64 {
        self.n_lines
    }

    /// The next line with its number, from 1; none after the last. A mark of UTF-8 at the beginning of the file is removed.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, Line<'_>)>, CorpusError> {
        let read = self.fill_buffer();
        let Some(is_whole) = read.map_err(|source| failure(&self.path, self.file.is_gzip, self.n_lines, source))? else { return Ok(None) };
        self.n_lines += 1;
        let mut line = self.buffer.as_slice();
        if self.n_lines == 1 {
            if UTF16_MARKS.iter().any(|mark| line.starts_with(mark)) {
                return Err(CorpusError::Utf16 { path: self.path.to_path_buf() });
            }
            line = line.strip_prefix(UTF8_MARK).unwrap_or(line);
        }
        line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_short = is_whole && line.len() <= self.max_bytes;
        Ok(Some((self.n_lines, if is_short { Line::Bytes(line) } else { Line::TooLong })))
    }

    /// Reads to the end of a line, keeping as much of it as is needed; says whether all of it was kept, nothing after the last line.
    fn fill_buffer(&mut self) -> std::io::Result<Option<bool>> {
        self.buffer.clear();
        let mut is_whole = true;
        let mut is_there = false;
        // A mark of three bytes and a `\r` are no part of a line.
        let most = self.max_bytes + 4;
        loop {
            let chunk = self.file.ready()?;
            if chunk.is_empty() {
                return Ok(is_there.then_some(is_whole));
            }
            is_there = true;
            let end = chunk.iter().position(|&byte| byte == b'\n' || (byte == b'\r' && self.ends != Ends::Newlines));
            let is_return = end.is_some_and(|end| chunk[end] == b'\r');
            let content = &chunk[..end.unwrap_or(chunk.len())];
            let kept = content.len().min(most - self.buffer.len());
            self.buffer.extend_from_slice(&content[..kept]);
            is_whole &= kept == content.len();
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.file.content.consume(used);
            if end.is_some() {
                self.end_line(is_return)?;
                return Ok(Some(is_whole));
            }
        }
    }

    /// Passes over the `\n` after a `\r`, and learns from the first end how lines end.
    fn end_line(&mut self, is_return: bool) -> std::io::Result<()> {
        let has_newline = !is_return || self.file.ready()?.first() == Some(&b'\n');
        if is_return && has_newline {
            self.file.content.consume(1);
        }
        if self.ends == Ends::Unknown {
            self.ends = if has_newline { Ends::Newlines } else { Ends::Returns };
        }
        Ok(())
    }
}

fn failure(path: &Path, is_gzip: bool, after: u64, source: std::io::Error) -> CorpusError {
    if is_gzip { CorpusError::Gzip { path: path.to_owned(), after, source } } else { CorpusError::Io { path: path.to_owned(), source } }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    /// Lines of a file with that content, over-long ones as `None`.
    fn read(content: &[u8], max_bytes: usize) -> Result<Vec<Option<Vec<u8>>>, CorpusError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("written");
        let mut lines = Lines::open(file.path(), max_bytes)?;
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next_line()? {
            all.push(match line {
                Line::Bytes(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            });
            assert_eq!(number, all.len() as u64);
        }
        Ok(all)
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn some(lines: &[&str]) -> Vec<Option<Vec<u8>>> {
        lines.iter().map(|line| Some(line.as_bytes().to_vec())).collect()
    }

    #[test]
    fn ends_and_the_mark_are_no_part_of_lines() {
        let lines = read(b"\xef\xbb\xbfabcd\r\n\nabcd\nab\rd\r\r\nabcd", 4).expect("a text");
        let expected = [&some(&["abcd", "", "abcd"])[..], &[None], &some(&["abcd"])].concat();
        assert_eq!(lines, expected, "`ab\\rd\\r` is five bytes long");
        assert!(read(b"", 4).expect("an empty text").is_empty());
    }

    /// The second text has its first end at the end of what is read at a time.
    #[test]
    fn a_lone_return_ends_a_line_where_the_first_one_ends_so() {
        assert_eq!(read(b"a\tb\rc\td\r", 100).expect("a text"), some(&["a\tb", "c\td"]));
        assert_eq!(read(b"a\r\rb\nc\r\nd", 100).expect("a text"), some(&["a", "", "b", "c", "d"]));
        assert_eq!(read(b"a\nb\rc\nd\r", 100).expect("a text"), some(&["a", "b\rc", "d"]), "white space elsewhere");
        assert_eq!(read(b"a\r", 100).expect("a text"), some(&["a"]));
        for (end, then) in [("\r\n", "b\rc"), ("\r", "b")] {
            let first = "a".repeat((8 << 10) - 1);
            let lines = read(format!("{first}{end}b\rc").as_bytes(), 10_000).expect("a text");
            assert_eq!(lines[..2], some(&[first.as_str(), then]), "{end:?}");
        }
        let long = [vec![b'a'; 100], b"\rbb\r".to_vec()].concat();
        assert_eq!(read(&long, 4).expect("a text"), [None, Some(b"bb".to_vec())]);
    }

    #[test]
    fn members_of_gzip_are_one_text() {
        let packed = [gzip(b"one\ntw"), gzip(b""), gzip(b"o\nthree\n")].concat();
        assert_eq!(read(&packed, 100).expect("three members"), some(&["one", "two", "three"]));
    }

    #[test]
    fn damaged_gzip_is_named() {
        let packed = gzip(&b"some text\n".repeat(100));
        let error = read(&packed[..packed.len() - 12], 100).expect_err("cut short");
        assert!(matches!(error, CorpusError::Gzip { .. }), "{error}");
        assert!(error.to_string().contains("fetch it again"), "{error}");
        let mut wrong = packed;
        let checksum = wrong.len() - 6;
        wrong[checksum] ^= 1;
        assert!(matches!(read(&wrong, 100), Err(CorpusError::Gzip { .. })), "its checksum is wrong");
    }

    #[test]
    fn utf16_is_refused_with_its_cure() {
        for text in [&b"\xff\xfea\0\n\0"[..], b"\xfe\xff\0a\0\n"] {
            let error = read(text, 100).expect_err("UTF-16").to_string();
            assert!(error.contains("iconv -f UTF-16"), "{error}");
        }
    }

    #[test]
    fn folders_devices_and_pipes_are_refused() {
        for path in [Path::new("/"), Path::new("/dev/zero")] {
            assert!(matches!(Lines::open(path, 100), Err(CorpusError::NotAFile { .. })), "{}", path.display());
        }
        assert!(matches!(Lines::open(Path::new("/no/such/file"), 100), Err(CorpusError::Io { .. })));
    }

    /// 200 kB of one letter are packed into less than a kilobyte, which is what counts.
    #[test]
    fn what_was_read_is_counted_as_it_lies_in_the_file() {
        let text = b"aaaa\n".repeat(40_000);
        for content in [gzip(&text), text] {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &content).expect("written");
            let mut lines = Lines::open(file.path(), 100).expect("a file");
            let total = content.len() as u64;
            let mut before = 0;
            while lines.next_line().expect("a line").is_some() {
                let BytesRead { done, total: of } = lines.bytes_read();
                assert!(before <= done && done <= of && of == total);
                before = done;
            }
            assert_eq!(lines.bytes_read(), BytesRead { done: total, total });
        }
    }

    /// Lines without an end, or without anything in them, are passed over one by one, however many there are.
    #[test]
    fn empty_lines_take_no_memory() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), gzip(&vec![b'\n'; 4 << 20])).expect("written");
        let mut lines = Lines::open(file.path(), MAX_LINE_BYTES).expect("a file");
        let mut n_lines = 0;
        while let Some((_, line)) = lines.next_line().expect("a line") {
            assert!(matches!(line, Line::Bytes(b"")));
            n_lines += 1;
        }
        assert_eq!((n_lines, lines.buffer.capacity()), (4 << 20, 0));
    }

    #[test]
    fn an_over_long_line_takes_no_memory() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [vec![b'a'; 3 << 20], b"\nb\n".to_vec()].concat()).expect("written");
        let mut lines = Lines::open(file.path(), MAX_LINE_BYTES).expect("a file");
        assert!(matches!(lines.next_line(), Ok(Some((1, Line::TooLong)))));
        assert!(lines.buffer.capacity() <= 2 * (MAX_LINE_BYTES + 4), "{}", lines.buffer.capacity());
        assert!(matches!(lines.next_line(), Ok(Some((2, Line::Bytes(b"b"))))));
    }

    proptest! {
        #[test]
        fn packed_or_not_the_lines_are_those_of_the_text(text in "[a-c\n\r]{0,60}") {
            let text = text + "\n";
            let plain = read(text.as_bytes(), 1 << 10).expect("a text");
            prop_assert_eq!(&plain, &read(&gzip(text.as_bytes()), 1 << 10).expect("a packed text"));
            let first = text.find(['\r', '\n']).expect("it ends with one");
            let is_return = !text[first..].starts_with('\n') && !text[first..].starts_with("\r\n");
            let text = if is_return { text.replace("\r\n", "\n").replace('\r', "\n") } else { text };
            prop_assert_eq!(plain, some(&text.lines().collect::<Vec<_>>()));
        }
    }
}
