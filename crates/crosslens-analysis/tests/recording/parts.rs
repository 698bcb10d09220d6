//! A recording as a corpus: whole, its beginning, and every n-th sentence of it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crosslens_analysis::explain::{Corpus, CorpusError, EveryNth, First};
use crosslens_analysis::{Description, Existing, Recordable, Recorded, Recording, RecordingWriter, Stats};

use crate::fixtures::{DumpFile, f32s, i64s, small_description, small_sentence};

const N_SENTENCES: u64 = 200;

fn with_recording(work: impl FnOnce(&Recording)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    let mut writer = writer.with_shard_bytes(1000);
    writer.add(&(0..N_SENTENCES).map(small_sentence).collect::<Vec<_>>()).expect("sentences that fit");
    writer.finish().expect("a written recording");
    work(&Recording::open(&path).expect("a recording"));
}

/// The numbers of all sentences of a corpus, read a few at a time.
fn numbers(corpus: &dyn Corpus) -> Vec<u64> {
    let total = corpus.n_sentences();
    let ranges = (0..total).step_by(7).map(|from| from..total.min(from + 7));
    ranges.flat_map(|range| corpus.read(range).expect("sentences")).map(|sentence| sentence.number).collect()
}

#[test]
fn every_nth_sentence_of_the_beginning() {
    with_recording(|recording| {
        for (n_sentences, first, n) in
            [(200, 0, 1), (500, 0, 1), (200, 2, 3), (130, 1, 2), (200, 5, 64), (200, 5, 65), (200, 0, 1000), (3, 3, 4)]
        {
            let corpus = First { corpus: recording, n_sentences };
            let expected: Vec<u64> = (0..n_sentences.min(N_SENTENCES)).filter(|number| number % n == first).collect();
            assert_eq!(numbers(&EveryNth { corpus: &corpus, first, n }), expected, "{first} of {n} in {n_sentences}");
        }
    });
}

/// A corpus that counts the sentences read of it.
struct Counted<'a>(&'a Recording, AtomicU64);

impl Corpus for Counted<'_> {
    fn description(&self) -> &Description {
        self.0.description()
    }

    fn n_sentences(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.1.fetch_add(sentences.end - sentences.start, Ordering::Relaxed);
        Ok(self.0.read(sentences)?)
    }

    fn model(&self) -> Option<&dyn Recordable> {
        None
    }
}

/// Many shards together read a recording a few times over at most.
#[test]
fn sentences_far_apart_are_read_without_those_between() {
    with_recording(|recording| {
        for n in [1, 2, 8, 9, 40, 100] {
            let counted = Counted(recording, AtomicU64::new(0));
            let kept: usize = (0..n).map(|first| numbers(&EveryNth { corpus: &counted, first, n }).len()).sum();
            assert_eq!(kept as u64, N_SENTENCES);
            let most = if n <= 8 { n } else { 1 };
            assert!(counted.1.into_inner() <= most * N_SENTENCES, "{n} shards");
        }
    });
}

/// A head over 4,000 queries and 4,000 keys takes 64 MB, and 512 MB may be in hand; whether its attention was kept does not matter, since
/// it is made again.
#[test]
fn fewer_sentences_of_a_recording_are_in_hand_where_they_are_long() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, n_steps, n_in_hand) in [("short", 2, 64), ("long", 4000, 8)] {
        let path = folder.path().join(name);
        let long = Recorded {
            source: vec![1; n_steps],
            fed: vec![3; n_steps],
            states: vec![vec![0.5; 2 * n_steps], vec![0.5; 2 * n_steps]],
            ..Recorded::default()
        };
        let writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
        let mut writer = writer.with_shard_bytes(1);
        writer.add(&[small_sentence(0), long, small_sentence(1)]).expect("sentences that fit");
        writer.finish().expect("a written recording");
        assert_eq!(Recording::open(&path).expect("a recording").batch_size(), n_in_hand, "{name}");
    }
}

#[test]
fn long_rows_of_a_dump_are_in_hand_a_few_at_a_time() {
    let n = 4000;
    let states = vec![0.5; n];
    let (tokens, lengths) = (vec![1; n], [n as i64]);
    let (rows, one) = ([1, n as u64], [1]);
    let dump = DumpFile::safetensors(&[
        f32s("key_states", &[1, n as u64, 1], &states),
        f32s("query_states", &[1, n as u64, 1], &states),
        i64s("key_tokens", &rows, &tokens),
        i64s("query_tokens", &rows, &tokens),
        i64s("key_lengths", &one, &lengths),
        i64s("query_lengths", &one, &lengths),
    ]);
    assert_eq!(Recording::open(dump.path()).expect("a dump").batch_size(), 8);
}

#[test]
fn a_recording_has_no_model_to_run() {
    with_recording(|recording| assert!(recording.model().is_none()));
}

#[test]
fn sums_of_a_recording_do_not_depend_on_threads() {
    with_recording(|recording| {
        let of = |n_threads| Stats::of(recording, n_threads, &mut |_| ()).expect("sums");
        assert_eq!(of(1), of(3));
        assert_eq!(of(1).streams[0].sums.n_states(), 2 * N_SENTENCES);
    });
}
