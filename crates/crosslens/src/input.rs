//! Lines of standard input, none of which is held in memory beyond a limit.

use std::io::{BufRead, BufReader, Read};

use crate::failure::Failure;

/// Reads texts line by line.
pub(crate) struct Lines<R> {
    input: R,
    max_bytes: usize,
    n_lines: usize,
}

/// Where a line of standard input stands, for a message; from 1.
pub(crate) fn place(line: usize) -> String {
    format!("standard input, line {line}")
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most so many bytes.
    pub(crate) fn of(input: R, max_bytes: usize) -> Self {
        Self { input, max_bytes, n_lines: 0 }
    }

    /// The next line without its end, `\n` or `\r\n`, with its number from 1; none after the last. A line that is too long is refused
    /// before the rest of it is read.
    pub(crate) fn next_line(&mut self) -> Result<Option<(usize, String)>, Failure> {
        let number = self.n_lines + 1;
        let refused = |what: String| Failure::refused(format!("{}: {what}", place(number)));
        let mut bytes = Vec::new();
        let most = self.max_bytes as u64 + 2;
        self.input.by_ref().take(most).read_until(b'\n', &mut bytes).map_err(|error| refused(error.to_string()))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.n_lines = number;
        let has_end = bytes.pop_if(|last| *last == b'\n').is_some();
        bytes.pop_if(|last| has_end && *last == b'\r');
        if bytes.len() > self.max_bytes {
            let failure = refused(format!("it is longer than {} bytes", self.max_bytes));
            return Err(failure.hint("a sentence or a few at a time, each on a line of its own"));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8 text".into()).hint("iconv -t UTF-8"))?;
        Ok(Some((number, text)))
    }
}

impl<R: Read> Lines<BufReader<R>> {
    /// Whether the next line has come already; else whoever asks for it may wait.
    pub(crate) fn has_line(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Result<Vec<String>, String> {
        let mut lines = Lines::of(input, 4);
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next_line().map_err(|failure| format!("{failure:?}"))? {
            all.push(line);
            assert_eq!(number, all.len());
        }
        Ok(all)
    }

    #[test]
    fn lines_come_without_their_ends_up_to_the_limit() {
        assert_eq!(read(b"abcd\r\n\nabcd\nab\rd\nabcd"), Ok(["abcd", "", "abcd", "ab\rd", "abcd"].map(str::to_owned).to_vec()));
        assert_eq!(read(b""), Ok(Vec::new()));
    }

    #[test]
    fn long_lines_and_other_encodings_are_refused_by_their_number() {
        for (input, says) in [
            (&b"a\nabcde\nb\n"[..], "line 2: it is longer than 4 bytes"),
            (b"abcde", "line 1: it is longer"),
            (b"abcdefgh", "line 1: it is longer"),
            (b"a\nb\n\xff\n", "line 3: it is not UTF-8"),
        ] {
            let message = read(input).expect_err("it is refused");
            assert!(message.contains(says), "{message}");
        }
    }

    /// A line without an end is not read to the end that it does not have.
    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::of(std::io::BufReader::new(std::io::repeat(b'a')), 1 << 10);
        assert!(lines.next_line().is_err());
    }
}
