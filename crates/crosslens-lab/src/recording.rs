//! From a model and sentences to a recording.

use std::path::Path;

use crosslens_analysis::explain::{Corpus, CorpusError, Live};
use crosslens_analysis::{Existing, Fed, RecordingError, RecordingWriter};

use crate::{Sentences, TrainedModel};

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
    /// end: what was begun and failed is taken away, and one that was killed in the middle opens nowhere. A recording that is replaced stays
    /// until then.
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
    let (n_sentences, size) = (corpus.n_sentences(), corpus.batch_size().max(1));
    for from in (0..n_sentences).step_by(size as usize) {
        let to = n_sentences.min(from + size);
        let mut batch = corpus.read(from..to).map_err(|source| RecordRunError::Model { from, to, source })?;
        batch.iter_mut().filter(|sentence| sentence.number >= options.n_kept).for_each(|sentence| sentence.attention.clear());
        writer.add(&batch)?;
        progress(to);
    }
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Mutex;

    use crosslens_analysis::{Consumed, Description, Recordable, Recorded, Recording, Side, Stream, Words};

    use super::*;

    /// Ten sentences that may be taken in hand three at a time, and what was read of them.
    struct Large(Description, Mutex<Vec<Range<u64>>>);

    impl Corpus for Large {
        fn description(&self) -> &Description {
            &self.0
        }

        fn n_sentences(&self) -> u64 {
            10
        }

        fn batch_size(&self) -> u64 {
            3
        }

        fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
            self.1.lock().expect("nobody panics").push(sentences.clone());
            let sentence = |number| Recorded { number, source: vec![1], fed: vec![2], states: vec![vec![0.5]], ..Recorded::default() };
            Ok(sentences.map(sentence).collect())
        }

        fn model(&self) -> Option<&dyn Recordable> {
            None
        }
    }

    #[test]
    fn no_more_sentences_are_in_hand_than_the_corpus_allows() {
        let words = Words { count: 9, ..Words::default() };
        let description = Description {
            model: "large".into(),
            model_hash: String::new(),
            source: words.clone(),
            target: words,
            streams: vec![Stream { name: "encoder".into(), side: Side::Source, consumed: Consumed::Current, d: 1 }],
            sites: Vec::new(),
            readout: None,
        };
        let corpus = Large(description, Mutex::default());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        let options = RecordOptions { fed: Fed::Own, n_kept: 0, existing: Existing::Refuse, n_threads: 1 };
        record_corpus(&corpus, &path, &options, &mut |_| ()).expect("a recording");
        assert_eq!(Recording::open(&path).expect("a recording").len(), 10);
        assert_eq!(corpus.1.into_inner().expect("nobody panics"), [0..3, 3..6, 6..9, 9..10]);
    }
}
