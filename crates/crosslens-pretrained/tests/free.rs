//! A decoder that feeds itself while it is recorded writes what it writes when it is asked to: by the rules of its files.

use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Signal, Untouched};
use crosslens_pretrained::{Decoding, Model, Subject, TokenNames, Wanted};

/// Steps that are looked at.
const STEPS: usize = 7;

#[test]
fn own_words_are_those_of_greedy_decoding() {
    let mut forced = 0;
    for case in [
        "t5",
        "mt5",
        "umt5",
        "bart",
        "bart-scaled",
        "marian",
        "marian-bin",
        "marian-separate",
        "mbart",
        "pegasus",
        "m2m_100",
        "m2m_100-odd",
    ] {
        let (model, how) = open(case);
        forced += usize::from(how.rules.forced_first.is_some() || !how.rules.bad_words.is_empty());
        let subject = Subject::new(model, TokenNames::default(), Wanted::cross(), 1).expect(case);
        for source in [vec![5, 6, 7, 1], vec![9, 4, 4, 8, 3, 1], vec![11]] {
            check(case, &subject, &how, Pair::new(source, vec![0; STEPS]));
        }
    }
    assert!(forced > 0, "some model has rules that matter");
}

/// Sounds of 40 frames of 8 mels, pictures of 24 × 24 or 24 × 16 pixels; all of their steps have one code.
#[test]
fn own_words_on_sounds_and_pictures_are_those_of_greedy_decoding() {
    let sizes = [
        ("whisper", 40 * 8),
        ("whisper-en", 40 * 8),
        ("vision/vit-gpt2", 3 * 24 * 24),
        ("vision/blip", 3 * 24 * 24),
        ("vision/vit-trocr", 3 * 24 * 16),
    ];
    for (case, n_numbers) in sizes {
        let (model, how) = open(case);
        let names = TokenNames { source: vec!["code".to_owned()], target: Vec::new() };
        let subject = Subject::new(model.clone(), names, Wanted::cross(), 1).expect(case);
        for pace in [0.1f32, 0.37] {
            let signal = Signal::new((0..n_numbers).map(|place| (pace * place as f32).sin()).collect());
            let n_steps = model.n_source_steps(&signal).expect(case);
            check(case, &subject, &how, Pair { signal: Some(signal), ..Pair::new(vec![0; n_steps], vec![0; STEPS]) });
        }
    }
}

/// A golden model, and greedy decoding that never ends.
fn open(case: &str) -> (Arc<Model>, Decoding) {
    let model = Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case)).expect(case);
    let mut how = Decoding::greedy(&model);
    // One more than is looked at, since the last may be forced.
    how.rules.max_tokens = STEPS + 1;
    how.rules.ends.clear();
    (Arc::new(model), how)
}

fn check(case: &str, subject: &Subject, how: &Decoding, pair: Pair) {
    let written = subject.model().write(&pair, how).expect(case).remove(0).tokens;
    let recorded = subject.record(std::slice::from_ref(&pair), Fed::Own).expect(case).remove(0);
    assert_eq!(recorded.predicted, written[..STEPS], "{case}");
    assert_eq!(recorded.fed[1..], written[..STEPS - 1], "{case}");
    let again = subject.run(&[pair], Fed::Own, &Untouched).expect(case).remove(0);
    assert_eq!(again.predicted, recorded.predicted, "{case}");
}
