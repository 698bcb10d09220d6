//! Questions to a model that another program trained.

use std::io::Write as _;
use std::path::Path;

use crosslens_analysis::explain::{Corpus, ExplainError, Explained, First, Scene};
use crosslens_analysis::{Fed, Pair, Recordable, Recorded, Token};

use tempfile::NamedTempFile;

use super::spelling::{ByName, check_length};
use super::{Asked, Feeds, Heard, LiveError, Spelled, record_one, refused};
use crate::imported::without_target;
use crate::pretrained::ReadSource;
use crate::{AttendError, ImportedModel, ImportedSentences, PretrainedModel, PretrainedModelError, SentencesError, in_words};

/// A model with the sentences it was fitted on, where they are known.
pub(super) struct LiveImported {
    pub(super) model: ImportedModel,
    pub(super) sentences: Option<ImportedSentences>,
    most_words: usize,
    source: ByName,
    target: ByName,
}

/// A sentence as the model is given it.
struct Question {
    number: u64,
    pair: Pair,
    /// Whether its target was given.
    is_told: bool,
    /// What is wrong with its file.
    warning: Option<String>,
}

impl LiveImported {
    pub(super) fn new(model: ImportedModel, sentences: Option<ImportedSentences>, most_words: usize) -> Self {
        let description = model.description();
        let (source, target) = (ByName::new("source", &description.source), ByName::new("target", &description.target));
        Self { model, sentences, most_words, source, target }
    }

    /// A network that was mapped knows so many words; a pretrained model reads any text.
    pub(super) fn words(&self) -> Option<[&[String]; 2]> {
        match &self.model {
            ImportedModel::Mapped(model) => Some([&model.description().source.names, &model.description().target.names]),
            ImportedModel::Pretrained(_) => None,
        }
    }

    pub(super) fn hear(&self, subject: &dyn Recordable, asked: &Asked, feeds: Feeds) -> Result<Heard, LiveError> {
        let Question { number, pair, is_told, warning } = self.question(asked)?;
        let fed = if self.model.fed() == Fed::Own { feeds.fed() } else { Fed::Target };
        let recorded = record_one(subject, pair, fed)?;
        let mut recorded = Recorded { number, ..recorded };
        if is_told {
            return Ok(Heard { recorded, fed, warning });
        }
        without_target(&mut recorded, fed);
        // What it wrote by itself it may write otherwise.
        Ok(Heard { recorded, fed: Fed::Own, warning })
    }

    fn question(&self, asked: &Asked) -> Result<Question, LiveError> {
        match asked {
            Asked::Task(number) => {
                let (pair, is_told) = self.sentences.as_ref().and_then(|all| all.around(*number)).ok_or(LiveError::NoSentences)?;
                Ok(Question { number: *number, pair, is_told, warning: None })
            }
            Asked::File(bytes) => {
                let model = self.pretrained()?;
                let mut source = in_file(bytes, |path| {
                    let mut source = model.read_files(&[path.to_owned()])?.remove(0);
                    source.warning = source.warning.map(|warning| nameless(&warning, path));
                    Ok(source)
                })?;
                let warning = source.warning.take();
                Ok(Question { number: 0, pair: self.written(source)?, is_told: false, warning })
            }
            Asked::Typed { source, target } => {
                let source = self.tokens("source", source)?;
                let pair = match target {
                    Some(target) => Pair::new(source, self.tokens("target", target)?),
                    None => self.written(ReadSource::text(source))?,
                };
                Ok(Question { number: 0, pair, is_told: target.is_some(), warning: None })
            }
        }
    }

    /// What the source of a question sounds or looks like, where it is a file.
    pub(super) fn scene(&self, asked: &Asked, recorded: &Recorded) -> Result<Option<Scene>, LiveError> {
        let Ok(model) = self.pretrained() else { return Ok(None) };
        let of = |path: &Path| model.scene(path, recorded, &recorded.attention);
        match (asked, &self.sentences) {
            (Asked::File(bytes), _) => in_file(bytes, of),
            (Asked::Task(number), Some(sentences)) => {
                let number = number.checked_rem(sentences.len()).unwrap_or_default();
                sentences.file(number).map_or(Ok(None), of).map_err(|error| LiveError::Text(Box::new(error.into())))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn stage(&self, explained: &mut Explained) -> Result<(), ExplainError> {
        let Some(sentences) = &self.sentences else { return Ok(()) };
        self.model.stage(sentences, &mut explained.samples, &mut explained.report.corpus)
    }

    fn pretrained(&self) -> Result<&PretrainedModel, LiveError> {
        match &self.model {
            ImportedModel::Pretrained(model) if self.model.reads().is_some() => Ok(model),
            _ => Err(LiveError::NoFiles),
        }
    }

    fn written(&self, source: ReadSource) -> Result<Pair, LiveError> {
        let cannot = |error: SentencesError| LiveError::Text(Box::new(AttendError::Sentences(Box::new(error))));
        let mut written = self.model.write(std::slice::from_ref(&source), self.most_words, 1).map_err(cannot)?;
        Ok(source.paired(written.remove(0)))
    }

    fn tokens(&self, side: &'static str, spelled: &Spelled) -> Result<Vec<Token>, LiveError> {
        let is_source = side == "source";
        let description = self.model.description();
        let tokens = match spelled {
            Spelled::Text(text) if is_source => self.model.source(text).map_err(refused)?,
            Spelled::Text(text) => self.model.target(text).map_err(refused)?,
            Spelled::Words(words) if is_source => self.source.find(&description.source, words)?,
            Spelled::Words(words) => self.target.find(&description.target, words)?,
        };
        if tokens.is_empty() {
            return Err(LiveError::Empty { side });
        }
        check_length(side, tokens.len(), self.most_words)?;
        Ok(tokens)
    }

    pub(super) fn n_sentences(&self) -> u64 {
        self.sentences.as_ref().map_or(0, ImportedSentences::len)
    }

    pub(super) fn with_corpus<T>(
        &self,
        subject: &dyn Recordable,
        n_sentences: u64,
        then: impl FnOnce(&dyn Corpus, String) -> T,
    ) -> Option<T> {
        let sentences = self.sentences.as_ref()?.of(subject, self.model.fed());
        Some(then(&First { corpus: &sentences, n_sentences }, "a file".to_owned()))
    }
}

/// Lets `then` read what somebody sent as a file that is gone afterwards.
fn in_file<T>(bytes: &[u8], then: impl FnOnce(&Path) -> Result<T, PretrainedModelError>) -> Result<T, LiveError> {
    let laid_down = || -> std::io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new()?;
        file.write_all(bytes)?;
        file.flush()?;
        Ok(file)
    };
    let file = laid_down().map_err(LiveError::NotLaidDown)?;
    then(file.path()).map_err(|error| LiveError::Sent { words: nameless(&in_words(&error), file.path()) })
}

/// Words without the name of a file that was made only to be read.
fn nameless(words: &str, path: &Path) -> String {
    words.replace(&format!("`{}`", path.display()), "the file that was sent")
}
