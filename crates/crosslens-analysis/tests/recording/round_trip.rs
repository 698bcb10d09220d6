//! `read` of `write` is identity, whatever the description, the sentences and the borders of the shards.

use crosslens_analysis::{Existing, Recording, RecordingWriter};
use proptest::prelude::*;

use crate::fixtures::{Draw, Small, small_sentence};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_read(seed: u64, n_sentences in 1usize..20, shard_bytes in 1u64..2000, batch in 1usize..7) {
        let mut draw = Draw(seed);
        let description = draw.description();
        let sentences: Vec<_> = (0..n_sentences).map(|_| draw.sentence(&description)).collect();
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("recording");
        let mut writer = RecordingWriter::create(&path, &description, Existing::Refuse)?.with_shard_bytes(shard_bytes);
        for sentences in sentences.chunks(batch) {
            writer.add(sentences)?;
        }
        writer.finish()?;

        let recording = Recording::open(&path)?;
        prop_assert_eq!(recording.description(), &description);
        prop_assert_eq!(recording.len(), n_sentences as u64);
        prop_assert_eq!(&recording.read(0..n_sentences as u64)?, &sentences);
        let (a, b) = (draw.below(n_sentences + 1), draw.below(n_sentences + 1));
        let range = a.min(b)..a.max(b);
        prop_assert_eq!(&recording.read(range.start as u64..range.end as u64)?, &sentences[range]);
    }
}

/// More sentences than lie between two sums of lengths that a reader keeps (1024), of unequal length.
#[test]
fn any_place_of_a_long_shard_is_found() {
    let mut draw = Draw(7);
    let description = draw.description();
    let sentences: Vec<_> = (0..3000).map(|_| draw.sentence(&description)).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, &description, Existing::Refuse).expect("a new recording");
    writer.add(&sentences).expect("sentences that fit");
    writer.finish().expect("a written recording");
    let recording = Recording::open(&path).expect("a recording");
    for range in [0..3, 1000..1100, 1023..1025, 1024..1025, 2047..2900, 2999..3000, 3000..3000] {
        let expected = &sentences[range.start as usize..range.end as usize];
        assert_eq!(recording.read(range).expect("sentences that are there"), expected);
    }
}

#[test]
fn a_range_may_cross_shards_but_not_the_end() {
    let small = Small::new();
    let recording = Recording::open(small.path()).expect("a recording");
    assert_eq!(recording.read(1..4).expect("three sentences"), [1, 2, 3].map(small_sentence));
    assert_eq!(recording.read(2..2).expect("no sentence"), []);
    let message = recording.read(3..5).expect_err("beyond the end").to_string();
    assert!(message.ends_with("has 4 sentences: 3..5 are not all among them"), "{message}");
}
