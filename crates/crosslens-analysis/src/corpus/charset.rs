//! The encodings of catalogues.

use std::borrow::Cow;
use std::path::Path;

use super::{CorpusError, Reason};

/// How the bytes of a catalogue become text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Charset {
    /// UTF-8, and ASCII, which is part of it.
    #[default]
    Utf8,
    /// ISO-8859-1: each byte is the character of its number.
    Latin1,
    /// ISO-8859-15: the same but for eight characters.
    Latin9,
}

impl Charset {
    /// What the header of a catalogue says: `Content-Type: text/plain; charset=UTF-8`. UTF-8 where it says nothing, or `CHARSET` as
    /// templates do.
    pub(super) fn of_header(path: &Path, header: &[u8]) -> Result<Self, CorpusError> {
        let header = String::from_utf8_lossy(header).to_ascii_lowercase();
        let Some((_, rest)) = header.split_once("charset=") else { return Ok(Self::Utf8) };
        let name = rest.split(|letter: char| letter.is_whitespace() || letter == ';').next().unwrap_or_default();
        match name.replace('_', "-").as_str() {
            "" | "utf-8" | "utf8" | "us-ascii" | "ascii" | "charset" => Ok(Self::Utf8),
            "iso-8859-1" | "iso8859-1" | "latin1" | "latin-1" => Ok(Self::Latin1),
            "iso-8859-15" | "iso8859-15" | "latin9" | "latin-9" => Ok(Self::Latin9),
            _ => Err(CorpusError::Charset { path: path.to_owned(), charset: name.chars().take(40).collect() }),
        }
    }

    /// The text of some bytes.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Reason> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Reason::InvalidUtf8),
            Self::Latin1 => Ok(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Self::Latin9 => Ok(bytes.iter().map(|&byte| latin9(byte)).collect()),
        }
    }
}

fn latin9(byte: u8) -> char {
    match byte {
        0xa4 => '€',
        0xa6 => 'Š',
        0xa8 => 'š',
        0xb4 => 'Ž',
        0xb8 => 'ž',
        0xbc => 'Œ',
        0xbd => 'œ',
        0xbe => 'Ÿ',
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_how_to_read_the_rest() {
        let of = |header: &str| Charset::of_header(Path::new("x.mo"), header.as_bytes());
        let decode = |header: &str, bytes: &[u8]| of(header).expect("it is read").decode(bytes).map(Cow::into_owned);
        assert_eq!(decode("Content-Type: text/plain; charset=ISO-8859-1\nX: y", b"\xe9t\xe9\xa4"), Ok("été¤".into()));
        assert_eq!(decode("charset=iso-8859-15", b"\xa4\xbdil"), Ok("€œil".into()));
        assert_eq!(decode("", "été".as_bytes()), Ok("été".into()));
        assert_eq!(decode("charset=UTF-8", b"\xe9"), Err(Reason::InvalidUtf8));
        let error = of("charset=EUC-JP\n").expect_err("not read").to_string();
        assert!(error.contains("`euc-jp`") && error.contains("msgconv -t UTF-8"), "{error}");
    }
}
