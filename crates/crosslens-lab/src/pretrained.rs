//! Pretrained models by path: text in, tokens and attention out.

use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::{Description, RecordError, Recordable, SiteKind, Token};
use crosslens_pretrained::text::{Encoded, TextTokenizer, TokenizerError};
use crosslens_pretrained::{Decoding, Model, PretrainedError, Subject, TokenNames, Wanted, Written};

/// Why a pretrained model cannot be opened or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PretrainedModelError {
    /// Its weights or its configuration.
    #[error(transparent)]
    Model(#[from] PretrainedError),
    /// Its tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// A pretrained model with its tokenizer.
#[derive(Debug)]
pub struct PretrainedModel {
    text: TextTokenizer,
    subject: Subject,
}

/// What a model wrote for one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// As text.
    pub text: String,
    /// As tokens, the end token included.
    pub tokens: Vec<Token>,
    /// Log probability, by length where it was searched with beams.
    pub score: f64,
}

impl PretrainedModel {
    /// Whether a path is a folder with a model of Hugging Face's.
    pub fn is_at(path: &Path) -> bool {
        path.join("config.json").is_file()
    }

    /// Opens a folder. Attention of these kinds can be explained.
    pub fn open(path: &Path, kinds: &[SiteKind], n_threads: usize) -> Result<Self, PretrainedModelError> {
        let model = Arc::new(Model::open(path)?);
        let text = TextTokenizer::open(path)?;
        let name = |token: Option<&str>| token.unwrap_or_default().to_owned();
        let names = TokenNames {
            source: (0..text.source_size()).map(|token| name(text.source_token(token as Token))).collect(),
            target: (0..text.target_size()).map(|token| name(text.target_token(token as Token))).collect(),
        };
        let wanted = Wanted { kinds: kinds.to_vec(), states: true, answers: true };
        Ok(Self { text, subject: Subject::new(model, names, wanted, n_threads)? })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        self.subject.model()
    }

    /// The model as it is recorded.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The model as it is recorded, on so many threads; 0 means one per core.
    pub fn subject_on(&self, n_threads: usize) -> Result<Subject, PretrainedModelError> {
        Ok(self.subject.on_threads(n_threads)?)
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        self.subject.description()
    }

    /// A source as the encoder reads it, checked.
    pub fn source(&self, text: &str) -> Result<Encoded, PretrainedModelError> {
        refuse_blank("source", text)?;
        let encoded = self.text.encode_source(text)?;
        self.model().check_source(&encoded.ids)?;
        Ok(encoded)
    }

    /// A target as the decoder should write it, checked.
    pub fn target(&self, text: &str) -> Result<Encoded, PretrainedModelError> {
        refuse_blank("target", text)?;
        let encoded = self.text.encode_target(text)?;
        self.model().check_fed(&encoded.ids)?;
        Ok(encoded)
    }

    /// To which word each token that it wrote belongs; nothing for special tokens, nothing at all where tokens do not mark spaces.
    pub fn target_words(&self, tokens: &[Token]) -> Option<Vec<Option<usize>>> {
        self.text.target_words(tokens)
    }

    /// The text of what it wrote.
    pub fn decode(&self, tokens: &[Token]) -> Result<String, PretrainedModelError> {
        Ok(self.text.decode(tokens)?)
    }

    /// What it makes of a text, the best first.
    pub fn translate(&self, text: &str, how: &Decoding) -> Result<Vec<Translation>, PretrainedModelError> {
        let source = self.source(text)?;
        let translation = |written: Written| {
            let Written { tokens, score } = written;
            Ok(Translation { text: self.text.decode(&tokens)?, tokens, score })
        };
        self.model().write(&source.ids, how)?.into_iter().map(translation).collect()
    }

    /// What it writes for each source, the likeliest token each time, at most so many.
    pub(crate) fn write(&self, sources: &[Vec<Token>], most: usize, n_threads: usize) -> Result<Vec<Vec<Token>>, RecordError> {
        let refused = |error: PretrainedError| RecordError::Model(Box::new(error));
        let mut how = Decoding::greedy(self.model());
        how.rules.max_tokens = how.rules.max_tokens.min(most);
        let written = self.model().write_all(sources, &how, n_threads).map_err(refused)?;
        Ok(written.into_iter().map(|written| written.tokens).collect())
    }
}

/// A tokenizer makes an end token of nothing, and a model a text of that.
fn refuse_blank(side: &'static str, text: &str) -> Result<(), PretrainedError> {
    if text.trim().is_empty() { Err(PretrainedError::Empty { side }) } else { Ok(()) }
}
