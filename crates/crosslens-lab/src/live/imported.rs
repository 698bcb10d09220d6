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
use crate::{AttendError, ImportedModel, ImportedSentences, PretrainedModel, PretrainedModelError, SentencesError};

/// A model with the sentences it was fitted on, where they are known.
pub(super) struct LiveImported {
    pub(super) model: ImportedModel,
    pub(super) sentences: Option<ImportedSentences>,
    most_words: usize,
    source: ByName,
    target: ByName,
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
        let (number, pair, is_told) = self.pair(asked)?;
        let fed = if self.model.fed() == Fed::Own { feeds.fed() } else { Fed::Target };
        let recorded = record_one(subject, pair, fed)?;
        let mut recorded = Recorded { number, ..recorded };
        if is_told {
            return Ok(Heard { recorded, fed });
        }
        without_target(&mut recorded, fed);
        // What it wrote by itself it may write otherwise.
        Ok(Heard { recorded, fed: Fed::Own })
    }

    /// The number of a sentence, its tokens, and whether its target was given.
    fn pair(&self, asked: &Asked) -> Result<(u64, Pair, bool), LiveError> {
        match asked {
            Asked::Task(number) => {
                let (pair, is_told) = self.sentences.as_ref().and_then(|all| all.around(*number)).ok_or(LiveError::NoSentences)?;
                Ok((*number, pair, is_told))
            }
            Asked::File(bytes) => {
                let source = in_file(bytes, |path| Ok(self.pretrained()?.read_files(&[path.to_owned()]).map_err(unreadable)?.remove(0)))?;
                Ok((0, self.written(source)?, false))
            }
            Asked::Typed { source, target } => {
                let source = self.tokens("source", source)?;
                let pair = match target {
                    Some(target) => Pair::new(source, self.tokens("target", target)?),
                    None => self.written(ReadSource::text(source))?,
                };
                Ok((0, pair, target.is_some()))
            }
        }
    }

    /// What the source of a question sounds or looks like, where it is a file.
    pub(super) fn scene(&self, asked: &Asked, recorded: &Recorded) -> Result<Option<Scene>, LiveError> {
        let Ok(model) = self.pretrained() else { return Ok(None) };
        let of = |path: &Path| model.scene(path, recorded, &recorded.attention).map_err(unreadable);
        match (asked, &self.sentences) {
            (Asked::File(bytes), _) => in_file(bytes, of),
            (Asked::Task(number), Some(sentences)) => {
                let number = number.checked_rem(sentences.len()).unwrap_or_default();
                sentences.file(number).map_or(Ok(None), of)
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
fn in_file<T>(bytes: &[u8], then: impl FnOnce(&Path) -> Result<T, LiveError>) -> Result<T, LiveError> {
    let mut file = NamedTempFile::new()?;
    file.write_all(bytes)?;
    file.flush()?;
    then(file.path())
}

fn unreadable(error: PretrainedModelError) -> LiveError {
    LiveError::Text(Box::new(error.into()))
}
