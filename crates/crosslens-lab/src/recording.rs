//! From a model and sentences to a recording.

use std::path::Path;

use crosslens_analysis::explain::{Corpus, CorpusError, Live};
use crosslens_analysis::{Existing, Fed, RecordingError, RecordingWriter};

use crate::{Sentences, TrainedModel};

/// Sentences in hand at a time.
const BATCH: u64 = 256;

/// How a recording is made.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// What the decoder reads.
    pub fed: Fed<'static>,
    /// Sentences whose attention is kept: the first so many.
    pub n_kept: u64,
    /// What to do where something is already.
    pub existing: Existing,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
}

/// Why a model was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordRunError {
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The model cannot be run.
    #[error("sentences {from} to {to} cannot be recorded")]
    Model {
        /// The first.
        from: u64,
        /// One past the last.
        to: u64,
        /// Why.
        source: CorpusError,
    },
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}

impl TrainedModel {
    /// Records the model on sentences, a few at a time; `progress` is told how many are done. The folder becomes a recording at the very
    /// end: what was begun and failed is taken away, and one that was killed in the middle opens nowhere.
    pub fn record(
        &self,
        sentences: &Sentences,
        path: &Path,
        options: &RecordOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), RecordRunError> {
        let subject = self.subject(options.n_threads)?;
        let pair = |number| sentences.pair(self, number);
        let corpus = Live { model: &subject, pair: &pair, n_pairs: sentences.len(), fed: options.fed };
        record_corpus(&corpus, path, options, progress)
    }
}

/// Records all sentences of a corpus.
pub(crate) fn record_corpus(
    corpus: &dyn Corpus,
    path: &Path,
    options: &RecordOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<(), RecordRunError> {
    let mut writer = RecordingWriter::create(path, corpus.description(), options.existing)?;
    for from in (0..corpus.n_sentences()).step_by(BATCH as usize) {
        let to = corpus.n_sentences().min(from + BATCH);
        let mut batch = corpus.read(from..to).map_err(|source| RecordRunError::Model { from, to, source })?;
        batch.iter_mut().filter(|sentence| sentence.number >= options.n_kept).for_each(|sentence| sentence.attention.clear());
        writer.add(&batch)?;
        progress(to);
    }
    Ok(writer.finish()?)
}
