//! Sums on disk: what is written is read, and what is merged is what one pass gives.

use std::path::{Path, PathBuf};

use crosslens_analysis::{Consumed, Existing, Mismatch, Recording, RecordingWriter, Stats, StatsError, StreamSums, Sums};
use proptest::prelude::*;

use crate::fixtures::{Draw, read, small_description, small_sentence, small_stats};

impl Draw {
    /// Some sentences of a stream: tokens and states.
    fn sentences(&mut self, n: usize, n_tokens: u32, d: usize) -> Vec<(Vec<u32>, Vec<f32>)> {
        let mut sentences = Vec::new();
        for _ in 0..n {
            let n_steps = 1 + self.below(5);
            let tokens = (0..n_steps).map(|_| self.below(n_tokens as usize) as u32).collect();
            // Numbers of one size: sums of them are the same in any order to about 1e-15 of it.
            let states = (0..n_steps * d).map(|_| self.below(2_000_001) as f32 / 1e6 - 1.0).collect();
            sentences.push((tokens, states));
        }
        sentences
    }
}

fn summed<'a>(d: usize, sentences: impl IntoIterator<Item = &'a (Vec<u32>, Vec<f32>)>) -> Stats {
    let mut sums = Sums::new(d);
    sentences.into_iter().for_each(|(tokens, states)| sums.add(tokens, states));
    let stream = StreamSums { name: "a \"näme\"/..".into(), consumed: Consumed::Previous, n_tokens: 6, sums };
    Stats { model_hash: "00ff".into(), streams: vec![stream] }
}

/// Every number that is no count.
fn numbers(sums: &Sums) -> Vec<f64> {
    let by_token = sums.by_token().into_iter().flat_map(|(_, sum)| sum.to_vec());
    sums.by_step().iter().copied().chain(by_token).chain([sums.squares()]).collect()
}

/// Asserts that two sums are those of the same states up to rounding.
fn alike(a: &Stats, b: &Stats) {
    assert_eq!(a.model_hash, b.model_hash);
    for (a, b) in a.streams.iter().zip(&b.streams) {
        assert_eq!((&a.name, a.consumed, a.n_tokens), (&b.name, b.consumed, b.n_tokens));
        assert_eq!((a.sums.step_counts(), a.sums.token_counts()), (b.sums.step_counts(), b.sums.token_counts()));
        let (a, b) = (numbers(&a.sums), numbers(&b.sums));
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{a} and {b}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_saved_is_loaded_bit_for_bit(seed: u64, n in 0usize..20, d in 1usize..4, n_streams in 0usize..4) {
        let mut draw = Draw(seed);
        let streams = (0..n_streams).map(|number| {
            let consumed = if draw.flip() { Consumed::Current } else { Consumed::Previous };
            let mut sums = Sums::new(d);
            for _ in 0..n {
                let n_steps = 1 + draw.below(4);
                let tokens: Vec<u32> = (0..n_steps).map(|_| draw.below(7) as u32).collect();
                sums.add(&tokens, &draw.floats(n_steps * d));
            }
            StreamSums { name: format!("strëam \"{number}\"\n"), consumed, n_tokens: 7, sums }
        });
        let stats = Stats { model_hash: format!("{n:x}"), streams: streams.collect() };
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.stats.safetensors");
        stats.save(&path)?;
        let loaded = Stats::load(&path)?;
        for (a, b) in stats.streams.iter().zip(&loaded.streams) {
            // Equal and with equal bits: −0 is not 0.
            let bits = |sums: &Sums| numbers(sums).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            prop_assert_eq!(bits(&a.sums), bits(&b.sums));
        }
        prop_assert_eq!(&loaded, &stats);
        let before = std::fs::read(&path)?;
        loaded.save(&path)?;
        prop_assert_eq!(std::fs::read(&path)?, before, "the same sums are the same bytes");
    }

    #[test]
    fn merged_files_are_the_single_pass(seed: u64, n in 1usize..40, d in 1usize..4, parts in 1usize..5) {
        let sentences = Draw(seed).sentences(n, 7, d);
        let folder = tempfile::tempdir()?;
        let paths: Vec<PathBuf> = (0..parts).map(|part| folder.path().join(format!("{part}.stats.safetensors"))).collect();
        for (part, path) in paths.iter().enumerate() {
            summed(d, sentences.iter().skip(part).step_by(parts)).save(path)?;
        }
        alike(&Stats::load_merged(&paths)?, &summed(d, &sentences));
    }
}

/// Saves a small file with something changed; returns its path.
fn saved(folder: &Path, name: &str, change: impl FnOnce(&mut Stats)) -> PathBuf {
    let mut stats = small_stats();
    change(&mut stats);
    let path = folder.join(name);
    stats.save(&path).expect("sums that fit");
    path
}

/// Merges a small file with one that was changed and asserts that both are named.
fn unmergeable(change: impl FnOnce(&mut Stats), words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [saved(folder.path(), "a.stats.safetensors", |_| ()), saved(folder.path(), "b.stats.safetensors", change)];
    let message = Stats::load_merged(&paths).expect_err("a mismatch").to_string();
    for word in words.iter().copied().chain(["a.stats.safetensors", "b.stats.safetensors", "cannot be merged"]) {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

#[test]
fn sums_of_another_model_are_not_merged() {
    unmergeable(|stats| stats.model_hash = "ff00".into(), &["two models, 00ff and ff00"]);
}

#[test]
fn sums_of_other_streams_are_not_merged() {
    unmergeable(|stats| stats.streams[0].name = "top".into(), &["`encoder`, `decoder`", "`top`, `decoder`"]);
    unmergeable(|stats| drop(stats.streams.pop()), &["`encoder`, `decoder`"]);
    unmergeable(|stats| stats.streams.reverse(), &["`decoder`, `encoder`"]);
}

#[test]
fn sums_of_other_dimensions_are_not_merged() {
    unmergeable(|stats| stats.streams[1].sums = Sums::new(3), &["`decoder` have 2 and 3 dimensions"]);
}

#[test]
fn sums_after_other_tokens_are_not_merged() {
    unmergeable(|stats| stats.streams[0].consumed = Consumed::Previous, &["`encoder`", "the step before"]);
}

/// States that have read nothing stand under the number after the last word: another number of words would mix them with a word.
#[test]
fn other_vocabularies_matter_where_a_state_may_have_read_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str, consumed, n_tokens| {
        saved(folder.path(), name, |stats| (stats.streams[0].consumed, stats.streams[0].n_tokens) = (consumed, n_tokens))
    };
    let paths = [of("a", Consumed::Previous, 5), of("b", Consumed::Previous, 6)];
    let error = Stats::load_merged(&paths).expect_err("a mismatch");
    assert!(matches!(error, StatsError::Mismatch { source: Mismatch::Tokens { left: 5, right: 6, .. }, .. }), "{error}");
    // Dumps have as many words as their largest token asks for.
    let merged = Stats::load_merged(&[of("a", Consumed::Current, 5), of("b", Consumed::Current, 6)]).expect("they go together");
    assert_eq!(merged.streams[0].n_tokens, 6);
}

#[test]
fn an_unknown_model_goes_with_any_but_does_not_join_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str, hash: &str| saved(folder.path(), name, |stats| stats.model_hash = hash.into());
    let (unknown, first, second) = (of("unknown", ""), of("first", "aa"), of("second", "bb"));
    assert_eq!(Stats::load_merged(&[&unknown, &first]).expect("they go together").model_hash, "aa");
    assert_eq!(Stats::load_merged(&[&first, &unknown]).expect("they go together").model_hash, "aa");
    let error = Stats::load_merged(&[&unknown, &first, &second]).expect_err("two models");
    let StatsError::Mismatch { left, right, .. } = &error else { panic!("{error}") };
    assert_eq!((left, right), (&first, &second), "the file that named the model is to blame, not the first");
}

#[test]
fn a_mismatch_changes_nothing() {
    let (mut stats, mut other) = (small_stats(), small_stats());
    other.streams[1].sums = Sums::new(7);
    stats.merge(&other).expect_err("other dimensions");
    assert_eq!(stats, small_stats());
}

#[test]
fn sums_are_given_to_their_own_model_only() {
    let description = small_description();
    assert_eq!(small_stats().sums_for(&description).expect("its own").len(), 2);
    let of = |change: &dyn Fn(&mut crosslens_analysis::Description)| {
        let mut description = small_description();
        change(&mut description);
        small_stats().sums_for(&description)
    };
    assert!(matches!(of(&|other| other.model_hash = "ff".into()), Err(Mismatch::Model { .. })));
    assert!(matches!(of(&|other| other.streams[0].name = "top".into()), Err(Mismatch::Streams { .. })));
    assert!(matches!(of(&|other| other.streams[0].d = 3), Err(Mismatch::Dimensions { .. })));
    assert!(of(&|other| other.model_hash.clear()).is_ok(), "an unknown model goes with any");
}

#[test]
fn what_cannot_be_loaded_is_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.stats.safetensors");
    let mut stats = small_stats();
    stats.streams[0].sums.add(&[0], &[f32::NAN, 0.0]);
    let message = stats.save(&path).expect_err("not a number").to_string();
    assert!(message.contains("not finite") && message.contains("x.stats.safetensors"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left behind");
}

/// 200 sentences in many shards: parts of a batch that lie in several of them are read by several threads.
#[test]
fn a_recording_is_summed_to_the_same_bytes_by_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    let mut writer = writer.with_shard_bytes(2000);
    writer.add(&(0..200).map(small_sentence).collect::<Vec<_>>()).expect("sentences that fit");
    writer.finish().expect("a written recording");
    let recording = Recording::open(&path).expect("a recording");
    let file = folder.path().join("all.stats.safetensors");
    let bytes = |n_threads: usize| {
        Stats::of(&recording, n_threads, &mut |_| ()).expect("sums").save(&file).expect("a written file");
        read(&file)
    };
    let one = bytes(1);
    for n_threads in [2, 3, 5] {
        assert!(one == bytes(n_threads), "{n_threads} threads");
    }
}
