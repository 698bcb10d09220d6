//! mBART, NLLB, M2M100, Pegasus and XLM-RoBERTa without a `tokenizer.json`: a SentencePiece model whose pieces have other ids.
//!
//! Follows the tokenizers that transformers defined for them on SentencePiece: special tokens are found in a text first, the rest is cut
//! into pieces. With `s` pieces in the file, of which the first three are `<unk>`, `<s>` and `</s>`:
//!
//! ```text
//! mBART, NLLB   <s> 0, <pad> 1, </s> 2, <unk> 3, the piece i ≥ 3 has the id i + 1, languages s + 1 …, <mask> after the last
//! XLM-RoBERTa   the same without languages; a text is <s> X </s>
//! M2M100        what vocab.json says, languages after its last
//! Pegasus       <pad> 0, </s> 1, <mask_1> 2, <mask_2> 3, <unk_2> 4 … <unk_102> 104, the piece i ≥ 2 has the id i + 103
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::Encoded;
use super::error::TokenizerError;
use super::languages::{Kind, Languages};
use super::marian::open_model;
use super::sentencepiece::SentencePiece;
use super::settings::{self, AddedToken, Settings};
use super::special::{Part, Special, is_space};
use super::vocabulary::Vocabulary;
use super::words::{WordCounter, Words};

const FAIRSEQ_MODEL: &str = "sentencepiece.bpe.model";
const PEGASUS_MODEL: &str = "spiece.model";
const VOCABULARY: &str = "vocab.json";
/// By how much Pegasus moves its pieces where its file does not say.
const PEGASUS_OFFSET: u64 = 103;
const MAX_OFFSET: u64 = 100_000;

/// A tokenizer of one of these kinds.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    model: SentencePiece,
    numbers: Numbers,
    special: Special,
    unknown: u32,
    /// Before every text, where anything is.
    start: Option<u32>,
    end: u32,
}

/// How pieces get their ids.
#[derive(Clone, Debug)]
enum Numbers {
    /// The file's own, moved by so many.
    Moved(u32),
    Listed(Vocabulary),
}

/// Special tokens by their ids, as they are gathered.
#[derive(Default)]
struct Gathered(BTreeMap<u32, AddedToken>);

impl Gathered {
    fn add(&mut self, id: u32, content: &str) {
        self.0.insert(id, AddedToken { content: content.to_owned(), lstrip: content == "<mask>", rstrip: false, special: true });
    }
}

impl Pieces {
    /// Opens the tokenizer, and its languages, if the folder has the files of this kind.
    pub(super) fn open(folder: &Path, kind: Kind, settings: &Settings) -> Result<Option<(Self, Option<Languages>)>, TokenizerError> {
        let path = folder.join(if kind == Kind::Pegasus { PEGASUS_MODEL } else { FAIRSEQ_MODEL });
        if !path.exists() {
            return Ok(None);
        }
        let model = open_model(&path)?;
        let n_pieces = model.n_pieces() as u32;
        let mut gathered = Gathered::default();
        let (numbers, unknown, end, first_language) = match kind {
            Kind::Mbart | Kind::Mbart50 | Kind::Nllb | Kind::XlmRoberta => {
                for (token, id) in [("<s>", 0), (settings.padding(), 1), (settings.end(), 2), (settings.unknown(), 3)] {
                    gathered.add(id, token);
                }
                (Numbers::Moved(1), 3, 2, n_pieces + 1)
            }
            Kind::M2m100 => {
                let path = folder.join(VOCABULARY);
                let vocabulary = Vocabulary::open(&path)?;
                let required = |token: &str| {
                    vocabulary.id(token).ok_or_else(|| TokenizerError::MissingToken { path: path.clone(), token: token.to_owned() })
                };
                let (unknown, end) = (required(settings.unknown())?, required(settings.end())?);
                for token in ["<s>", settings.padding(), settings.end(), settings.unknown()] {
                    if let Some(id) = vocabulary.id(token) {
                        gathered.add(id, token);
                    }
                }
                let first = u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
                (Numbers::Listed(vocabulary), unknown, end, first)
            }
            Kind::Pegasus => {
                let offset = pegasus_offset(folder, settings)?;
                let unknown = model.unknown_id() + offset;
                let reserved = ["<mask_1>".to_owned(), "<mask_2>".to_owned()].into_iter();
                let reserved =
                    reserved.chain((2..offset).map(|number| format!("<unk_{number}>"))).take(if offset > 0 { usize::MAX } else { 0 });
                (2..).zip(reserved).for_each(|(id, token)| gathered.add(id, &token));
                for (token, id) in [(settings.padding(), 0), (settings.end(), 1), (settings.unknown(), unknown)] {
                    gathered.add(id, token);
                }
                (Numbers::Moved(offset), unknown, 1, 0)
            }
        };

        // A file that numbers languages itself is believed.
        if !settings.added_tokens_decoder.values().any(|token| kind.is_language(&token.content)) {
            let mask = matches!(kind, Kind::Mbart | Kind::Mbart50 | Kind::Nllb | Kind::XlmRoberta).then(|| "<mask>".to_owned());
            let languages = kind.language_tokens(settings);
            languages.into_iter().chain(mask).zip(first_language..).for_each(|(token, id)| gathered.add(id, &token));
        }
        gathered.0.extend(settings.added());
        let languages = gathered.0.iter().filter(|(_, token)| kind.is_language(&token.content));
        let languages = languages.map(|(&id, token)| (token.content.clone(), id)).collect();
        let languages = Languages::new(folder, kind, settings, languages, (settings.end().to_owned(), end));
        let start = (kind == Kind::XlmRoberta).then_some(0);
        Ok(Some((Self { model, numbers, special: Special::new(gathered.0), unknown, start, end }, languages)))
    }

    /// A text without what stands around it.
    pub(super) fn encode_bare(&self, text: &str) -> Encoded {
        let words = Words::of(text);
        let mut encoded = Encoded::default();
        for part in self.special.split(text) {
            match part {
                Part::Token(id, range) => encoded.push(id, &text[range.clone()], words.at(range.start)),
                Part::Text(range) => {
                    encoded.push_pieces(&self.model, &text[range.clone()], range.start, &words, |piece, id| self.id(piece, id));
                }
            }
        }
        encoded
    }

    /// A text with what begins and ends it.
    pub(super) fn encode(&self, text: &str) -> Encoded {
        let named = |id: u32| (self.token(id).unwrap_or_default().to_owned(), id);
        let (start, end) = (self.start.map(named), named(self.end));
        self.encode_bare(text).between(&[start.iter().collect(), vec![&end]])
    }

    fn id(&self, piece: &str, id: u32) -> u32 {
        match &self.numbers {
            _ if id == self.model.unknown_id() => self.unknown,
            Numbers::Moved(offset) => id + offset,
            Numbers::Listed(vocabulary) => vocabulary.id(piece).unwrap_or(self.unknown),
        }
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        let piece = || match &self.numbers {
            Numbers::Moved(offset) => self.model.piece(id.checked_sub(*offset)?),
            Numbers::Listed(vocabulary) => vocabulary.token(id),
        };
        self.special.token(id).or_else(piece)
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let tokens = ids.iter().filter(|&&id| !self.special.is_left_out(id)).filter_map(|&id| self.token(id));
        self.model.decode(tokens).trim_matches(is_space).to_owned()
    }

    pub(super) fn size(&self) -> usize {
        let of_pieces = match &self.numbers {
            Numbers::Moved(offset) => self.model.n_pieces() + *offset as usize,
            Numbers::Listed(vocabulary) => vocabulary.size(),
        };
        self.special.last_id().map_or(0, |id| id as usize + 1).max(of_pieces)
    }

    pub(super) fn words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let mut counter = WordCounter::new('\u{2581}', self.model.space_is_suffix());
        let is_text = |id: u32| !self.special.is_left_out(id) || id == self.unknown;
        ids.iter().map(|&id| self.token(id).filter(|_| is_text(id)).map(|token| counter.word_of(token))).collect()
    }
}

fn pegasus_offset(folder: &Path, settings: &Settings) -> Result<u32, TokenizerError> {
    let offset = settings.offset.unwrap_or(PEGASUS_OFFSET);
    if offset > MAX_OFFSET {
        let cure = "no model reserves more than 100,000 tokens";
        return Err(TokenizerError::Setting { path: folder.join(settings::FILE), field: "offset", value: offset.to_string(), cure });
    }
    Ok(offset as u32)
}
