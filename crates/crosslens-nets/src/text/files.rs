//! What a run on text keeps beside its network: `text.json`, `tokenizer.json` where pieces of words are used, and `heldout.tsv`, sentences
//! that it was not trained on, so that the folder can be judged and explained without the corpus.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crosslens_analysis::replace_file;
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

use super::{TextCodec, TextConfig, TextError, Units};
use crate::train::Vocabularies;

const SETTINGS_FILE: &str = "text.json";
const TOKENIZER_FILE: &str = "tokenizer.json";
/// Sentences a run was not trained on.
pub const HELD_OUT_FILE: &str = "heldout.tsv";
/// Larger than any file of ours.
const MAX_BYTES: u64 = 64 << 20;

/// `text.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    text: TextConfig,
    /// Whether the target sets signs such as `?` apart.
    spaced: bool,
    /// Pairs trained on, and a digest of them: another corpus is another run.
    pairs: u64,
    digest: String,
}

/// What is kept of a corpus.
#[derive(Clone, Debug)]
pub struct TextFiles {
    /// Turns lines into tokens.
    pub codec: TextCodec,
    /// Sentences not trained on, with their translations.
    pub held_out: Vec<(String, String)>,
    /// Pairs trained on.
    pub n_pairs: u64,
    /// A digest of them.
    pub digest: String,
}

impl TextFiles {
    /// Whether a folder holds them.
    pub fn are_in(folder: &Path) -> bool {
        folder.join(SETTINGS_FILE).exists()
    }

    /// Writes them into a folder, each under a temporary name first.
    pub fn write(&self, folder: &Path) -> Result<(), TextError> {
        std::fs::create_dir_all(folder).map_err(|source| TextError::Io { action: "create", path: folder.to_owned(), source })?;
        if let Some(tokenizer) = self.codec.tokenizer() {
            let text = tokenizer.to_string(false).map_err(|error| TextError::Tokenizer { reason: error.to_string() })?;
            replace(&folder.join(TOKENIZER_FILE), text.as_bytes())?;
        } else {
            remove(&folder.join(TOKENIZER_FILE))?;
        }
        let lines: String = self.held_out.iter().map(|(source, target)| format!("{source}\t{target}\n")).collect();
        replace(&folder.join(HELD_OUT_FILE), lines.as_bytes())?;
        let settings =
            Settings { text: self.codec.config(), spaced: self.codec.spaced(), pairs: self.n_pairs, digest: self.digest.clone() };
        replace(&folder.join(SETTINGS_FILE), &serde_json::to_vec_pretty(&settings).expect("settings are plain values"))
    }

    /// Removes what an older run on text may have left.
    pub fn remove(folder: &Path) -> Result<(), TextError> {
        [SETTINGS_FILE, TOKENIZER_FILE, HELD_OUT_FILE].iter().try_for_each(|name| remove(&folder.join(name)))
    }

    /// Reads them; the vocabularies are those of the run.
    pub fn read(folder: &Path, words: &Vocabularies) -> Result<Self, TextError> {
        let path = folder.join(SETTINGS_FILE);
        let bad = |path: &Path, what: String| TextError::Bad { path: path.to_owned(), what };
        let settings: Settings = serde_json::from_str(&read(&path)?).map_err(|error| bad(&path, error.to_string()))?;
        for (side, vocabulary) in [("source", &words.source), ("target", &words.target)] {
            let has_both = vocabulary.token(super::UNKNOWN_WORD) == Some(0)
                && vocabulary.token(crate::tasks::END_WORD).is_some_and(|end| end as usize + 1 == vocabulary.len());
            if !has_both {
                let what = format!("its {side} words do not begin with `<unk>` and end with `<eos>`");
                return Err(bad(&folder.join("vocab.json"), what));
            }
        }
        let tokenizer = match settings.text.units {
            Units::Words => None,
            Units::Bpe | Units::Unigram => {
                let path = folder.join(TOKENIZER_FILE);
                Some(Tokenizer::from_bytes(read(&path)?).map_err(|error| bad(&path, error.to_string()))?)
            }
        };
        let path = folder.join(HELD_OUT_FILE);
        let text = read(&path)?;
        let pair = |(number, line): (usize, &str)| {
            let pair = line.split_once('\t').filter(|(source, target)| !source.trim().is_empty() && !target.trim().is_empty());
            let (source, target) = pair.ok_or_else(|| bad(&path, format!("line {} is not two texts with a tab", number + 1)))?;
            Ok((source.to_owned(), target.to_owned()))
        };
        let held_out: Vec<(String, String)> = text.lines().enumerate().map(pair).collect::<Result<_, TextError>>()?;
        if held_out.is_empty() {
            return Err(bad(&path, "it holds no sentence".into()));
        }
        let codec = TextCodec::from_parts(settings.text, words.source.clone(), words.target.clone(), settings.spaced, tokenizer);
        Ok(Self { codec, held_out, n_pairs: settings.pairs, digest: settings.digest })
    }
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), TextError> {
    replace_file(path, |file| file.write_all(bytes)).map_err(|source| TextError::Io { action: "write", path: path.to_owned(), source })
}

fn remove(path: &Path) -> Result<(), TextError> {
    match std::fs::remove_file(path) {
        Err(source) if !matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Err(TextError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Reads an ordinary file of UTF-8 that is not too large.
fn read(path: &Path) -> Result<String, TextError> {
    let io = |source| TextError::Io { action: "read", path: PathBuf::from(path), source };
    let bad = |what: &str| TextError::Bad { path: PathBuf::from(path), what: what.to_owned() };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(bad("it is not a file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(bad("it is larger than 64 MB"));
    }
    String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8 text"))
}
