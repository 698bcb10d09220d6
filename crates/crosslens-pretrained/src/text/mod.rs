//! Text to tokens and back, with the tokenizer that a pretrained model comes with.
//!
//! [`TextTokenizer::open`] takes what a Hugging Face folder has: `tokenizer.json`, or the files of a Marian, mBART, NLLB, M2M100,
//! Pegasus, T5, GPT-2, RoBERTa, Whisper or BERT tokenizer; nothing has to be converted.

mod byte_level;
mod codes;
mod error;
mod files;
mod languages;
mod library;
mod marian;
mod pieces;
mod sentencepiece;
mod settings;
mod special;
mod steps;
mod t5;
mod vocabulary;
mod word_pieces;
mod words;

use std::path::{Path, PathBuf};

pub use error::TokenizerError;
use languages::Kind;
pub use languages::{Languages, Opening};
use library::Library;
use marian::Marian;
use pieces::Pieces;
pub use sentencepiece::{ModelError, Piece, SentencePiece};
use settings::Settings;
use t5::T5;
use words::Words;

/// The tokenizer of an encoder-decoder model.
///
/// ```no_run
/// # use std::path::Path;
/// # use crosslens_pretrained::text::TextTokenizer;
/// let tokenizer = TextTokenizer::open(Path::new("opus-mt-en-de"))?;
/// let source = tokenizer.encode_source("The cat sat.")?;
/// assert_eq!(source.tokens.last().map(String::as_str), Some("</s>"));
/// assert_eq!(source.words.first(), Some(&Some(0)));
/// # Ok::<(), crosslens_pretrained::text::TokenizerError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextTokenizer {
    folder: PathBuf,
    format: Format,
    languages: Option<Languages>,
}

#[derive(Clone, Debug)]
enum Format {
    Library(Box<Library>),
    Marian(Box<Marian>),
    Pieces(Box<Pieces>),
    T5(Box<T5>),
}

/// A text as a model reads it. The three lists are of the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens' ids.
    pub ids: Vec<u32>,
    /// The tokens as text, `▁` or `Ġ` for spaces; those without an id of their own as they stand in the text.
    pub tokens: Vec<String>,
    /// To which word of the text each token belongs, words being what whitespace separates; nothing for tokens that stand for no
    /// text, such as the `</s>` that ends it. A token that reaches over several words belongs to the first.
    pub words: Vec<Option<usize>>,
}

impl TextTokenizer {
    /// Opens the tokenizer in `folder`: `tokenizer.json` if there is one, else `source.spm`, `target.spm` and `vocab.json` (Marian),
    /// else `sentencepiece.bpe.model` (mBART, NLLB, XLM-RoBERTa, and with `vocab.json` M2M100), else `spiece.model` (Pegasus or T5), else
    /// `vocab.json` with `merges.txt` (older byte-level ones), else `vocab.txt` (BERT's).
    pub fn open(folder: &Path) -> Result<Self, TokenizerError> {
        let of = |format, languages| Self { folder: folder.to_owned(), format, languages };
        if let Some(library) = Library::open(folder)? {
            let settings = Settings::open(folder)?;
            let languages = match Kind::of(folder, &settings)? {
                Some(kind) => library.languages(folder, kind, &settings)?,
                None => None,
            };
            return Ok(of(Format::Library(Box::new(library)), languages));
        }
        if let Some(marian) = Marian::open(folder)? {
            return Ok(of(Format::Marian(Box::new(marian)), None));
        }
        let settings = Settings::open(folder)?;
        if let Some(kind) = Kind::of(folder, &settings)?
            && let Some((pieces, languages)) = Pieces::open(folder, kind, &settings)?
        {
            return Ok(of(Format::Pieces(Box::new(pieces)), languages));
        }
        if let Some(t5) = T5::open(folder)? {
            return Ok(of(Format::T5(Box::new(t5)), None));
        }
        if let Some(library) = Library::assemble(folder)? {
            return Ok(of(Format::Library(Box::new(library)), None));
        }
        Err(TokenizerError::NotFound { folder: folder.to_owned() })
    }

    /// The languages it tells apart, where it does.
    #[must_use]
    pub fn languages(&self) -> Option<&Languages> {
        self.languages.as_ref()
    }

    /// Says in which languages sources and targets are from now on.
    pub fn choose_languages(&mut self, source: &str, target: &str) -> Result<(), TokenizerError> {
        let folder = &self.folder;
        let none = || TokenizerError::NoLanguages { folder: folder.clone() };
        self.languages.as_mut().ok_or_else(none)?.choose(source, target)
    }

    /// A text as the encoder reads it, with what the tokenizer puts around it, the language among it where there are any.
    pub fn encode_source(&self, text: &str) -> Result<Encoded, TokenizerError> {
        self.encode(text, true)
    }

    /// A text as the decoder should write it: with the token that ends it, without the one that the decoder starts from unless the
    /// tokenizer itself puts it there. Where the decoder writes its language first, that is part of it.
    pub fn encode_target(&self, text: &str) -> Result<Encoded, TokenizerError> {
        self.encode(text, false)
    }

    fn encode(&self, text: &str, is_source: bool) -> Result<Encoded, TokenizerError> {
        let around = self.languages.as_ref().and_then(|languages| languages.around(is_source));
        match (&self.format, &self.languages, around) {
            (Format::Library(library), _, Some(around)) => Ok(library.encode_bare(text)?.between(&around)),
            (Format::Pieces(pieces), _, Some(around)) => Ok(pieces.encode_bare(text).between(&around)),
            (Format::Pieces(_), Some(languages), None) => Err(languages.not_chosen()),
            (Format::Pieces(pieces), None, None) => Ok(pieces.encode(text)),
            (Format::Library(library), _, None) => library.encode(text),
            (Format::Marian(marian), ..) if is_source => Ok(marian.encode_source(text)),
            (Format::Marian(marian), ..) => Ok(marian.encode_target(text)),
            (Format::T5(t5), ..) => Ok(t5.encode(text)),
        }
    }

    /// The text of what a decoder wrote. Special tokens and ids that name no token are left out.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        match &self.format {
            Format::Library(library) => library.decode(ids),
            Format::Marian(marian) => Ok(marian.decode(ids)),
            Format::Pieces(pieces) => Ok(pieces.decode(ids)),
            Format::T5(t5) => Ok(t5.decode(ids)),
        }
    }

    /// The token that has this id on the source side.
    #[must_use]
    pub fn source_token(&self, id: u32) -> Option<&str> {
        match &self.format {
            Format::Library(library) => library.token(id),
            Format::Marian(marian) => marian.source_token(id),
            Format::Pieces(pieces) => pieces.token(id),
            Format::T5(t5) => t5.token(id),
        }
    }

    /// The token that has this id on the target side; the same as [`source_token`](Self::source_token) unless the model has separate
    /// vocabularies.
    #[must_use]
    pub fn target_token(&self, id: u32) -> Option<&str> {
        match &self.format {
            Format::Library(library) => library.token(id),
            Format::Marian(marian) => marian.target_token(id),
            Format::Pieces(pieces) => pieces.token(id),
            Format::T5(t5) => t5.token(id),
        }
    }

    /// One more than the largest id of the source side.
    #[must_use]
    pub fn source_size(&self) -> usize {
        match &self.format {
            Format::Library(library) => library.size(),
            Format::Marian(marian) => marian.sizes()[0],
            Format::Pieces(pieces) => pieces.size(),
            Format::T5(t5) => t5.size(),
        }
    }

    /// One more than the largest id of the target side.
    #[must_use]
    pub fn target_size(&self) -> usize {
        match &self.format {
            Format::Library(library) => library.size(),
            Format::Marian(marian) => marian.sizes()[1],
            Format::Pieces(pieces) => pieces.size(),
            Format::T5(t5) => t5.size(),
        }
    }

    /// To which word each token of what a decoder wrote belongs, as its marks of spaces say; nothing for special tokens. Nothing at
    /// all if the tokenizer does not mark spaces.
    #[must_use]
    pub fn target_words(&self, ids: &[u32]) -> Option<Vec<Option<usize>>> {
        match &self.format {
            Format::Library(library) => library.words(ids),
            Format::Marian(marian) => Some(marian.target_words(ids)),
            Format::Pieces(pieces) => Some(pieces.words(ids)),
            Format::T5(t5) => Some(t5.words(ids)),
        }
    }
}

impl Encoded {
    /// Whether each token begins a word: the first of its tokens, or a token that belongs to none.
    #[must_use]
    pub fn word_starts(&self) -> Vec<bool> {
        let before = std::iter::once(None).chain(self.words.iter().copied());
        before.zip(&self.words).map(|(before, word)| word.is_none() || before != *word).collect()
    }

    /// Leaves the first token out. Panics where there is none.
    pub fn remove_first(&mut self) {
        self.ids.remove(0);
        self.tokens.remove(0);
        self.words.remove(0);
    }

    /// With these tokens before and after it, which stand for no text.
    fn between(self, [before, after]: &[Vec<&(String, u32)>; 2]) -> Self {
        let mut whole = Self::default();
        before.iter().for_each(|(token, id)| whole.push(*id, token, None));
        whole.ids.extend(self.ids);
        whole.tokens.extend(self.tokens);
        whole.words.extend(self.words);
        after.iter().for_each(|(token, id)| whole.push(*id, token, None));
        whole
    }

    fn push(&mut self, id: u32, token: &str, word: Option<usize>) {
        self.ids.push(id);
        self.tokens.push(token.to_owned());
        self.words.push(word);
    }

    /// Adds the pieces of `text`, which begins at byte `at` of the text with these `words`. `id_of` takes a piece and its id in the
    /// model.
    fn push_pieces(&mut self, model: &SentencePiece, text: &str, at: usize, words: &Words, id_of: impl Fn(&str, u32) -> u32) {
        let mut last = None;
        for piece in model.encode(text) {
            let is_mark = piece.text.trim_start_matches(sentencepiece::SPACE_MARK).is_empty();
            let ends_word = is_mark && model.space_is_suffix() && last.is_some();
            let word = if ends_word { last } else { words.at(at + piece.begin) };
            self.push(id_of(&piece.text, piece.id), &piece.text, word);
            last = word;
        }
    }
}
