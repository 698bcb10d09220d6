//! What a run on text keeps beside its network: `text.json`, `tokenizer.json` where pieces of words are used, `heldout.tsv`, sentences
//! that it was not trained on, so that the folder can be judged and explained without the corpus, and `corpus.json`, what became of the
//! lines of the corpus.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crosslens_analysis::Vocabulary;
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

use super::{TextCodec, TextConfig, TextError, Units};
use crate::random::{hash, mix};
use crate::train::Vocabularies;

const SETTINGS_FILE: &str = "text.json";
const TOKENIZER_FILE: &str = "tokenizer.json";
const REPORT_FILE: &str = "corpus.json";
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
    /// Pieces in `tokenizer.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pieces: Option<usize>,
    /// Pairs trained on, and a digest of them: another corpus is another run.
    pairs: u64,
    digest: String,
    /// A digest of the words in `vocab.json`; older runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
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
    /// What became of the lines of each corpus that was read, for people; nobody reads it back.
    pub became: Option<serde_json::Map<String, serde_json::Value>>,
}

impl TextFiles {
    /// What they may be called.
    pub const NAMES: [&str; 4] = [TOKENIZER_FILE, HELD_OUT_FILE, REPORT_FILE, SETTINGS_FILE];

    /// Whether a folder holds them.
    pub fn are_in(folder: &Path) -> bool {
        folder.join(SETTINGS_FILE).exists()
    }

    /// Every file by name, as it is written.
    pub fn contents(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TextError> {
        let mut files = Vec::new();
        if let Some(tokenizer) = self.codec.tokenizer() {
            let text = tokenizer.to_string(false).map_err(|error| TextError::Tokenizer { reason: error.to_string() })?;
            files.push((TOKENIZER_FILE, text.into_bytes()));
        }
        let lines: String = self.held_out.iter().map(|(source, target)| format!("{source}\t{target}\n")).collect();
        files.push((HELD_OUT_FILE, lines.into_bytes()));
        if let Some(became) = &self.became {
            files.push((REPORT_FILE, serde_json::to_vec_pretty(became).expect("counts and places are plain values")));
        }
        let settings = Settings {
            text: self.codec.config(),
            spaced: self.codec.spaced(),
            pieces: self.codec.tokenizer().map(n_pieces),
            pairs: self.n_pairs,
            digest: self.digest.clone(),
            words: Some(digest_of(self.codec.source_vocabulary(), self.codec.target_vocabulary())),
        };
        files.push((SETTINGS_FILE, serde_json::to_vec_pretty(&settings).expect("settings are plain values")));
        Ok(files)
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
        if settings.words.as_ref().is_some_and(|digest| *digest != digest_of(&words.source, &words.target)) {
            let what = "it has other words than the network was trained with: it is of another run; put the run's own back, or train again";
            return Err(bad(&folder.join("vocab.json"), what.into()));
        }
        let tokenizer = match settings.text.units {
            Units::Words => None,
            Units::Bpe | Units::Unigram => {
                let path = folder.join(TOKENIZER_FILE);
                let tokenizer = Tokenizer::from_bytes(read(&path)?).map_err(|error| bad(&path, error.to_string()))?;
                check_pieces(&tokenizer, settings.pieces, words).map_err(|what| bad(&path, what))?;
                Some(tokenizer)
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
        Ok(Self { codec, held_out, n_pairs: settings.pairs, digest: settings.digest, became: None })
    }
}

/// Says why pieces cannot be those the network was trained with: not as many, or not all of its words among them.
fn check_pieces(tokenizer: &Tokenizer, expected: Option<usize>, words: &Vocabularies) -> Result<(), String> {
    const CURE: &str = "it is of another run; put the run's own back, or train again";
    let found = n_pieces(tokenizer);
    if let Some(expected) = expected.filter(|&expected| expected != found) {
        return Err(format!("it has {found} pieces, the network was trained with {expected}: {CURE}"));
    }
    for (side, vocabulary) in [("source", &words.source), ("target", &words.target)] {
        let is_piece = |word: &String| tokenizer.token_to_id(word).is_some() || word == crate::tasks::END_WORD;
        if let Some(word) = vocabulary.words().iter().find(|word| !is_piece(word)) {
            return Err(format!("it lacks `{word}`, a {side} word of vocab.json: {CURE}"));
        }
    }
    Ok(())
}

/// 64 bits of all words of both sides, in their order.
fn digest_of(source: &Vocabulary, target: &Vocabulary) -> String {
    let words = |vocabulary: &Vocabulary| vocabulary.words().iter().fold(0, |total, word| mix(total ^ hash(word)));
    format!("{:016x}", mix(words(source)).wrapping_add(words(target)))
}

fn n_pieces(tokenizer: &Tokenizer) -> usize {
    tokenizer.get_vocab_size(true)
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
