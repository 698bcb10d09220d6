use std::path::PathBuf;

use super::{CorpusReport, CorpusSpec};

/// Why a corpus cannot be read. Single bad lines are no error: they are counted in the [`CorpusReport`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// The system cannot read the file.
    #[error("cannot read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A folder, a device or a pipe.
    #[error("`{path}` is not a file; a corpus is read from ordinary files, so save it into one first")]
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// Compressed data that cannot be unpacked.
    #[error("`{path}` is damaged gzip, or cut short, after line {after}; fetch it again (`gzip -t` tests a file)")]
    Gzip {
        /// The file.
        path: PathBuf,
        /// The last line that could be read.
        after: u64,
        /// What the decoder says.
        source: std::io::Error,
    },
    /// A file in UTF-16 or UTF-32.
    #[error("`{path}` is UTF-16, not UTF-8; convert it: `iconv -f UTF-16 -t UTF-8`")]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// Two aligned files of different lengths.
    #[error("`{shorter}` ends after {n_lines} lines, but `{longer}` goes on; line n of one must be the translation of line n of the other")]
    UnequalLines {
        /// The file that ends first.
        shorter: PathBuf,
        /// Its lines.
        n_lines: u64,
        /// The other one.
        longer: PathBuf,
    },
    /// A catalogue whose tables cannot be trusted.
    #[error("`{path}` is no gettext catalogue: {what}; compile it again with `msgfmt`")]
    Catalogue {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A catalogue in an encoding that is not read.
    #[error(
        "`{path}` is written in `{charset}`; UTF-8, ASCII, ISO-8859-1 and ISO-8859-15 are read: convert it with `msgconv -t UTF-8` before `msgfmt`"
    )]
    Charset {
        /// The file.
        path: PathBuf,
        /// What its header says.
        charset: String,
    },
    /// A file that would have to be held in memory and is too large for it.
    #[error("`{path}` has {n_bytes} bytes, a catalogue at most {most}; write it as lines, source and target separated by a tab")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        n_bytes: u64,
        /// The most that is read.
        most: u64,
    },
    /// No catalogue of a language.
    #[error(
        "no gettext catalogue of `{language}` is installed; looked for {looked}: install programs with translations or a language pack, or set \
         TEXTDOMAINDIR to a folder with `{language}/LC_MESSAGES/*.mo`"
    )]
    NoCatalogue {
        /// The language.
        language: String,
        /// Where it was looked for.
        looked: String,
    },
    /// No pair was left.
    #[error("`{corpus}` holds no pair that is wanted: {report}")]
    Empty {
        /// The corpus.
        corpus: CorpusSpec,
        /// What became of its lines.
        report: Box<CorpusReport>,
    },
}

impl CorpusError {
    /// Turns the system's complaint about a path into ours.
    pub(super) fn io(path: &std::path::Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
