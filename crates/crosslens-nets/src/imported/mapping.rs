//! Which tensors of a foreign file become which of a family's, and where words, heads and lengths come from: a TOML file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::ImportError;
use super::weights::TENSORS;

/// Largest mapping that is read.
const MAX_BYTES: u64 = 1 << 20;
/// The version of the format.
const SCHEMA: &str = "crosslens-import/1";

/// A mapping that comes with the program: its models are known by their tensors.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its file's name without the ending.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All of them.
pub const SHIPPED: &[Shipped] = &[Shipped { name: "e2k", text: include_str!("../../../../configs/import/e2k.toml") }];

impl Shipped {
    /// The mapping it holds.
    pub fn mapping(&self) -> Mapping {
        Mapping::parse(Path::new(self.name), self.text).expect("shipped mappings are read in the tests")
    }
}

/// How the file of another program is read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// `crosslens-import/1`.
    pub schema: String,
    /// What the model is called.
    pub name: String,
    /// What is computed with the tensors.
    pub family: Family,
    /// The file of weights, relative to the mapping's folder.
    pub weights: PathBuf,
    /// Attention heads; those of one head lie together in queries, keys and values.
    pub heads: Given<usize>,
    /// Tokens after which the decoder stops if it has not ended the sentence itself.
    pub most_steps: Given<usize>,
    /// The words of the source.
    pub source: SideMapping,
    /// The words of the target.
    pub target: SideMapping,
    /// Every tensor of the family by its name, and where it comes from.
    pub tensors: BTreeMap<String, Origin>,
    /// Tensors of the file that are not needed.
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// A bidirectional GRU encoder; a decoder of two GRUs, the first asking, the second reading what attention gives.
    AttentionBetweenGrus,
}

/// A value that stands in the mapping, or in the metadata of the weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a number, or { metadata = \"NAME\" }")]
pub enum Given<T> {
    /// This one.
    Here(T),
    /// What the metadata say under a name.
    Metadata(InMetadata),
}

/// A name in the metadata of the weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InMetadata {
    /// The name.
    pub metadata: String,
}

/// The words of one side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideMapping {
    /// All of them, in the order of their numbers.
    pub table: Table,
    /// The number of the one that begins a source, and that the decoder reads first.
    pub start: Given<u32>,
    /// The number of the one that ends a sentence.
    pub end: Given<u32>,
    /// Whether a text that is split into characters is lower-cased before.
    #[serde(default)]
    pub lower_case: bool,
}

/// Words by number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a list of words, or { metadata = \"NAME\", separator = \"TEXT\" }")]
pub enum Table {
    /// These.
    Listed(Vec<String>),
    /// Those in a text of the metadata, separated by another.
    Metadata(JoinedWords),
}

/// A text in the metadata of the weights that holds all words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinedWords {
    /// Its name.
    pub metadata: String,
    /// What stands between two words.
    pub separator: String,
}

/// Where a tensor comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of a tensor, or { tensor = \"NAME\", rows = \"1/3\" }")]
pub enum Origin {
    /// A whole tensor of the file.
    Whole(String),
    /// Some rows of one.
    Part(PartOfTensor),
}

/// Some rows of a tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartOfTensor {
    /// Its name.
    pub tensor: String,
    /// Which rows.
    pub rows: Rows,
}

impl Origin {
    /// The tensor of the file.
    pub fn tensor(&self) -> &str {
        match self {
            Self::Whole(tensor) | Self::Part(PartOfTensor { tensor, .. }) => tensor,
        }
    }
}

/// Rows of a tensor, counted along its first axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Rows {
    /// `i/n`: the i-th of n equal parts, from 1.
    Part {
        /// Which.
        number: u64,
        /// Of how many.
        of: u64,
    },
    /// `a..b`: from row `a` to before row `b`.
    Range {
        /// The first.
        from: u64,
        /// The one after the last.
        to: u64,
    },
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` names no rows: write `1/3` for the first of three equal parts, or `0..256`");
        let numbers =
            |pair: Option<(&str, &str)>| -> Option<(u64, u64)> { pair.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))) };
        let part = numbers(text.split_once('/')).filter(|&(number, of)| (1..=of).contains(&number));
        let range = numbers(text.split_once("..")).filter(|(from, to)| from < to);
        let part = part.map(|(number, of)| Self::Part { number, of });
        part.or(range.map(|(from, to)| Self::Range { from, to })).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Rows {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Mapping {
    /// Reads a mapping and checks that it names every tensor of its family and no other.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        use std::io::Read;
        let unreadable = |source| ImportError::Io { path: path.to_owned(), source };
        let wrong = |what: &str| ImportError::Mapping { path: path.to_owned(), what: what.to_owned() };
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(wrong("it is not a file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path).map_err(unreadable)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong("it is longer than a mapping can be"));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text"))?;
        Self::parse(path, &text)
    }

    /// Parses a mapping; `path` is for messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ImportError> {
        let wrong = |what: String| ImportError::Mapping { path: path.to_owned(), what };
        let mapping: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            wrong(format!("{place}{}", error.message().lines().next().unwrap_or_default()))
        })?;
        mapping.check().map_err(wrong)?;
        Ok(mapping)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("its schema is `{}`, this version reads `{SCHEMA}`", self.schema));
        }
        if let Some(name) = self.tensors.keys().find(|name| !TENSORS.contains(&name.as_str())) {
            return Err(format!("it maps `{name}`, which the family does not have; docs/import.md lists those it has"));
        }
        match TENSORS.iter().find(|name| !self.tensors.contains_key(**name)) {
            Some(name) => Err(format!("it does not say where `{name}` comes from")),
            None => Ok(()),
        }
    }

    /// Where a tensor of the family comes from.
    pub(super) fn origin(&self, name: &str) -> &Origin {
        self.tensors.get(name).expect("every tensor of the family is mapped: checked when the mapping was read")
    }

    /// Whether a tensor of the file is spoken of.
    pub(super) fn knows(&self, tensor: &str) -> bool {
        self.tensors.values().any(|origin| origin.tensor() == tensor) || self.ignored.iter().any(|ignored| ignored == tensor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl Fn(&str) -> String) -> String {
        let error = Mapping::parse(Path::new("import.toml"), &change(SHIPPED[0].text)).expect_err("it makes no sense");
        error.to_string()
    }

    #[test]
    fn every_shipped_mapping_is_read_under_its_name() {
        for shipped in SHIPPED {
            assert_eq!(shipped.mapping().name, shipped.name);
        }
    }

    #[test]
    fn rows_are_a_part_or_a_range() {
        assert_eq!("2/3".parse(), Ok(Rows::Part { number: 2, of: 3 }));
        assert_eq!("0..256".parse(), Ok(Rows::Range { from: 0, to: 256 }));
        for text in ["", "0/3", "4/3", "1/0", "3..3", "5..2", "-1..2", "1", "a/b", "1/3/5", "99999999999999999999/3"] {
            assert!(text.parse::<Rows>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_mapping_that_makes_no_sense_is_refused_with_its_name() {
        let says = |change: &dyn Fn(&str) -> String, expected: &str| {
            let message = refusal(change);
            assert!(message.starts_with("`import.toml`: ") && message.contains(expected), "{message}");
        };
        says(&|text| text.replace("crosslens-import/1", "crosslens-import/7"), "its schema is `crosslens-import/7`");
        says(&|text| text.replace("attention-between-grus", "transformer"), "unknown variant `transformer`");
        says(&|text| text.replace("heads = 4", "heads = \"four\""), "expected a number, or { metadata");
        says(&|text| text.replace("heads = 4", "haeds = 4"), "unknown field `haeds`");
        says(&|text| text.replace("\"2/3\"", "\"4/3\""), "expected the name of a tensor, or { tensor");
        says(&|text| text.replace("\"source.embedding\" =", "\"source.embeding\" ="), "it maps `source.embeding`");
        says(&|text| text.replace("\"readout_bias\" = \"fc.bias\"\n", ""), "it does not say where `readout_bias` comes from");
        says(&|text| text.replace("name = ", "name = = "), "line ");
    }
}
