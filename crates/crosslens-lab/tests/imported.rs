//! Models that other programs trained, by what their callers are told.

use crosslens_lab::analysis::explain::{Phase, Progress};
use crosslens_lab::{Attention, ImportedModel, Shard};

/// Random weights of the package e2k's shape.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-nets/tests/golden/imported/tiny.safetensors");

/// A hundred and fifty words without targets: the model writes these, and says so as it goes.
#[test]
fn targets_that_the_model_writes_are_counted_as_they_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = folder.path().join("words.txt");
    let letter = |number: u32, i: u32| char::from(b'a' + ((number * 7 + i * i * 5 + i) % 26) as u8);
    let word = |number: u32| (0..2 + number % 5).map(|i| letter(number, i)).collect::<String>();
    std::fs::write(&corpus, (0..150).map(|number| word(number) + "\n").collect::<String>()).expect("sources");
    let model = ImportedModel::open(WEIGHTS.as_ref(), Attention::Cross).expect("a model");

    let mut told = Vec::new();
    let sentences = model.sentences(&corpus, 1, &mut |progress| told.push(progress)).expect("sentences");
    assert_eq!(sentences.len(), 150);
    let at = |done| Progress { phase: Phase::Writing, done, total: 150 };
    assert_eq!(told, [0, 64, 128, 150].map(at));

    let mut last = None;
    let shard = Shard { number: 2, of: 3 };
    let (part, n_all) = model.sentences_of_shard(&corpus, shard, 1, &mut |progress| last = Some(progress)).expect("a third");
    assert_eq!((part.len(), n_all, last), (50, 150, Some(Progress { phase: Phase::Writing, done: 50, total: 50 })));
}
