//! How a user names a corpus.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::aligned::Aligned;
use super::entry::Entries;
use super::installed::{Installed, roots};
use super::jsonl::Jsonl;
use super::mo::Mo;
use super::po::Po;
use super::tabbed::Tabbed;
use super::{CorpusError, CorpusReader, Filter};

/// Where a corpus is and what it looks like.
///
/// | text | corpus |
/// |---|---|
/// | `x.tsv`, `x.tsv.gz`, any other name | lines of source and target with a tab or `\|\|\|` between them; further columns are passed over |
/// | `a.en,b.fr` | two files, line n of one translating line n of the other |
/// | `x.jsonl`, `x.ndjson`, `.gz` | a JSON object a line: `source` and `target`, `src` and `tgt`, or `translation` with two languages |
/// | `x.po`, `x.mo` | a gettext catalogue; the source is the `msgid` |
/// | `gettext:fr` | all catalogues of a language that are installed on the machine |
///
/// `tsv:`, `jsonl:`, `po:` and `mo:` before a path say the format where its name does not, or where the name has a comma. Files of lines are
/// unpacked where they begin as gzip does, whatever they are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum CorpusSpec {
    /// Lines with a tab.
    Tsv(PathBuf),
    /// Two files.
    Aligned {
        /// Source sentences.
        source: PathBuf,
        /// Their translations.
        target: PathBuf,
    },
    /// Lines of JSON.
    Jsonl(PathBuf),
    /// A catalogue as it is written.
    Po(PathBuf),
    /// A compiled catalogue.
    Mo(PathBuf),
    /// The catalogues of a language that are installed.
    Gettext {
        /// The language, as in the names of folders: `fr`, `pt_BR`, `sr@latin`.
        language: String,
    },
}

/// Why a text names no corpus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusSpecError {
    /// Nothing at all.
    #[error("no corpus is named; write a file such as `pairs.tsv`, two such as `a.en,b.fr`, or `gettext:fr`")]
    Empty,
    /// Not two files.
    #[error("`{text}` does not name two files; write `a.en,b.fr`, or `tsv:` before the path of one file with a comma in its name")]
    NotTwo {
        /// What was written.
        text: String,
    },
    /// No language.
    #[error("`{language}` is no language; write it as the folders of /usr/share/locale are called: `gettext:fr`, `gettext:pt_BR`")]
    Language {
        /// What was written.
        language: String,
    },
    /// A format that is not read.
    #[error("`{path}` is in a format that is not read; {cure}")]
    Format {
        /// The file.
        path: String,
        /// What to do.
        cure: &'static str,
    },
}

impl CorpusSpec {
    /// Opens its files and reads their first bytes; pairs come with the iterator.
    pub fn open(&self, filter: &Filter) -> Result<CorpusReader, CorpusError> {
        let entries: Box<dyn Entries> = match self {
            Self::Tsv(path) => Box::new(Tabbed::open(path)?),
            Self::Aligned { source, target } => Box::new(Aligned::open(source, target)?),
            Self::Jsonl(path) => Box::new(Jsonl::open(path)?),
            Self::Po(path) => Box::new(Po::open(path)?),
            Self::Mo(path) => Box::new(Mo::open(path)?),
            Self::Gettext { language } => Box::new(Installed::open(language, &roots())?),
        };
        Ok(CorpusReader::new(self.clone(), filter.clone(), entries))
    }
}

impl FromStr for CorpusSpec {
    type Err = CorpusSpecError;

    fn from_str(text: &str) -> Result<Self, CorpusSpecError> {
        if text.trim().is_empty() {
            return Err(CorpusSpecError::Empty);
        }
        if let Some((prefix, rest)) = text.split_once(':') {
            let path = PathBuf::from(rest);
            let named = match prefix {
                "tsv" => Self::Tsv(path),
                "jsonl" => Self::Jsonl(path),
                "po" => Self::Po(path),
                "mo" => Self::Mo(path),
                "gettext" => return gettext(rest),
                _ => return by_name(text),
            };
            return if rest.is_empty() { Err(CorpusSpecError::Empty) } else { Ok(named) };
        }
        by_name(text)
    }
}

fn gettext(language: &str) -> Result<CorpusSpec, CorpusSpecError> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_@-".contains(letter);
    if language.starts_with(|letter: char| letter.is_ascii_alphabetic()) && language.len() <= 40 && language.chars().all(is_name) {
        return Ok(CorpusSpec::Gettext { language: language.to_owned() });
    }
    Err(CorpusSpecError::Language { language: language.to_owned() })
}

/// The corpus of a name without prefix.
fn by_name(text: &str) -> Result<CorpusSpec, CorpusSpecError> {
    if let Some((source, target)) = text.split_once(',') {
        if source.trim().is_empty() || target.trim().is_empty() || target.contains(',') {
            return Err(CorpusSpecError::NotTwo { text: text.to_owned() });
        }
        return Ok(CorpusSpec::Aligned { source: source.into(), target: target.into() });
    }
    let name = text.to_ascii_lowercase();
    let is_packed = name.ends_with(".gz");
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let refused = |cure| Err(CorpusSpecError::Format { path: text.to_owned(), cure });
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "jsonl" | "ndjson" => Ok(CorpusSpec::Jsonl(text.into())),
        "po" => Ok(CorpusSpec::Po(text.into())),
        "mo" if is_packed => refused("unpack it first: `gunzip`"),
        "mo" => Ok(CorpusSpec::Mo(text.into())),
        "json" => refused("write one object a line into a file that ends with `.jsonl`: `jq -c '.[]'`"),
        "xz" | "bz2" | "zst" | "zip" => refused("unpack it first, or pack it with `gzip`"),
        _ => Ok(CorpusSpec::Tsv(text.into())),
    }
}

/// The text that names this corpus.
impl fmt::Display for CorpusSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, path) = match self {
            Self::Aligned { source, target } => return write!(out, "{},{}", source.display(), target.display()),
            Self::Gettext { language } => return write!(out, "gettext:{language}"),
            Self::Tsv(path) => ("tsv", path),
            Self::Jsonl(path) => ("jsonl", path),
            Self::Po(path) => ("po", path),
            Self::Mo(path) => ("mo", path),
        };
        let path = path.display().to_string();
        if path.parse().as_ref() == Ok(self) { out.write_str(&path) } else { write!(out, "{prefix}:{path}") }
    }
}

impl TryFrom<String> for CorpusSpec {
    type Error = CorpusSpecError;

    fn try_from(text: String) -> Result<Self, CorpusSpecError> {
        text.parse()
    }
}

impl From<CorpusSpec> for String {
    fn from(spec: CorpusSpec) -> Self {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_corpora_and_names_again() {
        for (text, spec) in [
            ("x.tsv", CorpusSpec::Tsv("x.tsv".into())),
            ("a/x.TSV.gz", CorpusSpec::Tsv("a/x.TSV.gz".into())),
            ("pairs.txt", CorpusSpec::Tsv("pairs.txt".into())),
            ("a.en,b.fr", CorpusSpec::Aligned { source: "a.en".into(), target: "b.fr".into() }),
            ("x.jsonl.gz", CorpusSpec::Jsonl("x.jsonl.gz".into())),
            ("x.po", CorpusSpec::Po("x.po".into())),
            ("x.mo", CorpusSpec::Mo("x.mo".into())),
            ("gettext:pt_BR", CorpusSpec::Gettext { language: "pt_BR".into() }),
            ("tsv:a,b.tsv", CorpusSpec::Tsv("a,b.tsv".into())),
            ("mo:x", CorpusSpec::Mo("x".into())),
            ("C:x.tsv", CorpusSpec::Tsv("C:x.tsv".into())),
        ] {
            assert_eq!(text.parse().as_ref(), Ok(&spec));
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn what_names_no_corpus_is_refused_with_its_cure() {
        let refusal = |text: &str| text.parse::<CorpusSpec>().expect_err("it names no corpus").to_string();
        for (text, cure) in [
            ("", "write a file"),
            ("tsv:", "write a file"),
            ("a,", "a.en,b.fr"),
            ("a,b,c", "a.en,b.fr"),
            ("gettext:", "gettext:fr"),
            ("gettext:../fr", "gettext:fr"),
            ("x.json", "jq -c"),
            ("x.tsv.xz", "unpack"),
            ("x.mo.gz", "gunzip"),
        ] {
            let message = refusal(text);
            assert!(message.contains(cure), "{message}");
        }
    }
}
