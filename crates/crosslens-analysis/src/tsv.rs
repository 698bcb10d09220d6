//! Pairs of sentences from a file of lines, source and target separated by a tab, words by blanks.

use std::path::{Path, PathBuf};

use crate::corpus::{CorpusError, Line, Lines};
use crate::{Pair, Token, Vocabulary};

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 1 << 20;
/// Most pairs that are held.
const MAX_PAIRS: usize = 1 << 22;
/// Most lines that are read, empty ones among them.
const MAX_LINES: u64 = 1 << 24;

/// Why a file of pairs cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TsvError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line that is no pair.
    #[error("`{path}`, line {line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// No file of lines: a device, damaged gzip, UTF-16.
    #[error(transparent)]
    Corpus(CorpusError),
    /// No pair at all.
    #[error("`{path}` holds no pair")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl From<CorpusError> for TsvError {
    fn from(error: CorpusError) -> Self {
        match error {
            CorpusError::Io { path, source } => Self::Io { path, source },
            other => Self::Corpus(other),
        }
    }
}

/// One side of a corpus: its words and the token that ends its sentences, which is added where it is missing.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Their numbers.
    pub vocabulary: &'a Vocabulary,
    /// Added to the end of a sentence.
    pub end: Option<Token>,
}

impl Words<'_> {
    /// The tokens of a text; the word that is not known, if there is one.
    pub fn tokens<'t>(&self, text: &'t str) -> Result<Vec<Token>, &'t str> {
        let words = text.split_whitespace();
        let mut tokens = words.map(|word| self.vocabulary.token(word).ok_or(word)).collect::<Result<Vec<Token>, _>>()?;
        if let Some(end) = self.end
            && tokens.last() != Some(&end)
        {
            tokens.push(end);
        }
        Ok(tokens)
    }
}

/// Reads pairs; empty lines are passed over.
pub fn read_pairs(path: &Path, source: Words<'_>, target: Words<'_>) -> Result<Vec<Pair>, TsvError> {
    read_lines(path, |line| {
        let (left, right) = line.split_once('\t').ok_or("there is no tab between source and target")?;
        let mut sides = [Vec::new(), Vec::new()];
        for ((side, words), (text, name)) in sides.iter_mut().zip([source, target]).zip([(left, "source"), (right, "target")]) {
            *side = words.tokens(text).map_err(|word| format!("the {name} word `{word}` is not in the model's vocabulary"))?;
            if side.is_empty() {
                return Err(format!("the {name} is empty"));
            }
        }
        let [source, target] = sides;
        Ok(Pair::new(source, target))
    })
}

/// What `parse` makes of each line, without its end; empty lines are passed over. What it says is wrong is said with file and line. Lines
/// are read as those of a [corpus](crate::corpus) are: unpacked where they begin as gzip does, without a mark before the first.
///
/// Memory: one line of a megabyte, and what is made of four million; more lines than sixteen million are refused, empty as they may be.
pub fn read_lines<T>(path: &Path, parse: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, TsvError> {
    read_some_lines(path, MAX_LINES, parse)
}

fn read_some_lines<T>(path: &Path, max_lines: u64, mut parse: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, TsvError> {
    let mut lines = Lines::open(path, MAX_LINE)?;
    let mut parsed = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let wrong = |what: String| TsvError::Line { path: path.to_owned(), line: number, what };
        let Line::Bytes(bytes) = line else { return Err(wrong(format!("it is longer than {MAX_LINE} bytes"))) };
        if number > max_lines {
            return Err(wrong(format!("there are more than {max_lines} lines")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
        if text.trim().is_empty() {
            continue;
        }
        parsed.push(parse(text).map_err(wrong)?);
        if parsed.len() > MAX_PAIRS {
            return Err(wrong(format!("there are more than {MAX_PAIRS} pairs")));
        }
    }
    if parsed.is_empty() { Err(TsvError::Empty { path: path.to_owned() }) } else { Ok(parsed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<Pair>, String> {
        let words = Vocabulary::new(["a", "b", "<eos>"]).expect("three words");
        let side = Words { vocabulary: &words, end: Some(2) };
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let path = file.path().to_string_lossy().into_owned();
        read_pairs(file.path(), side, side).map_err(|error| error.to_string().replace(&path, "FILE"))
    }

    #[test]
    fn lines_become_pairs_and_ends_are_added() {
        let pairs = read(b"a b\tb\r\n\nb <eos>\ta a\n").expect("two pairs");
        assert_eq!(pairs, [Pair::new(vec![0, 1, 2], vec![1, 2]), Pair::new(vec![1, 2], vec![0, 0, 2])]);
    }

    /// A mark before the first line, lines that end with a lone return, and gzip.
    #[test]
    fn files_of_other_programs_are_read() {
        let expected = [Pair::new(vec![0, 2], vec![1, 2]), Pair::new(vec![1, 2], vec![0, 2])];
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, b"a\tb\nb\ta\n").expect("into memory");
        for text in [&b"\xef\xbb\xbfa\tb\nb\ta\n"[..], b"a\tb\rb\ta\r", &packed.finish().expect("into memory")] {
            assert_eq!(read(text).expect("two pairs"), expected);
        }
        assert!(read(b"\xff\xfea\0\t\0").expect_err("UTF-16").contains("iconv"));
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(read(b"a\tb\na b\n").expect_err("no tab"), "`FILE`, line 2: there is no tab between source and target");
        assert_eq!(read(b"a\tx\n").expect_err("unknown"), "`FILE`, line 1: the target word `x` is not in the model's vocabulary");
        assert_eq!(read(b"a\t\xff\n").expect_err("bytes"), "`FILE`, line 1: it is not UTF-8");
        assert_eq!(read(b"\n\n").expect_err("nothing"), "`FILE` holds no pair");
    }

    /// Also where the limit falls into a letter.
    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        for long in ["a".repeat(3 << 20), "é".repeat(3 << 19), format!("a{}", "é".repeat(3 << 19))] {
            assert!(read(long.as_bytes()).expect_err("too long").contains("line 1: it is longer than"));
        }
        let long = [b"a ".repeat(60_000), b"\tb\n".to_vec()].concat();
        assert_eq!(read(&long).expect("a pair of 120 kB")[0].source.len(), 60_001);
    }

    #[test]
    fn an_endless_run_of_empty_lines_ends() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "a\n\n\n\n").expect("written");
        let some = |max_lines| read_some_lines(file.path(), max_lines, |line| Ok(line.to_owned()));
        assert_eq!(some(4).expect("four lines"), ["a"]);
        let error = some(3).expect_err("there is one more").to_string();
        assert!(error.ends_with("line 4: there are more than 3 lines"), "{error}");
    }
}
