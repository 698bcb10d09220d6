//! A model of pictures that was built by hand looks where it was told to.

mod planted;

use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Signal, SiteKind, Token};
use crosslens_pretrained::{Decoding, Grid, Model, Subject, TokenNames, Wanted};
use planted::{COLUMNS, NAMED, ROWS, STEPS, plant, step};

#[test]
fn planted_patches_are_looked_at_whatever_the_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    plant(folder.path());
    let model = Arc::new(Model::open(folder.path()).expect("a model"));
    assert_eq!(model.grid(), Some(Grid { special: 1, rows: ROWS, columns: COLUMNS, height: 32, width: 40 }));
    let names = TokenNames { source: (0..STEPS).map(|step| format!("step {step}")).collect(), target: Vec::new() };
    let wanted = Wanted { kinds: vec![SiteKind::Cross], states: true, answers: true };
    let subject = Subject::new(model.clone(), names, wanted, 1).expect("a subject");
    for tint in [0.0, 0.7] {
        let picture = Signal::new((0..3 * 32 * 40).map(|at| (at as f32 * 0.01).sin() * tint).collect());
        let written = model.write(&picture, &Decoding::greedy(&model)).expect("a caption").remove(0).tokens;
        assert_eq!(written, [3, 4, 2], "red bus </s>");
        let pair = Pair { signal: Some(picture), ..Pair::new((0..STEPS as Token).collect(), written) };
        let recorded = subject.record(&[pair], Fed::Target).expect("attention").remove(0);
        for (row, (word, patch)) in NAMED.iter().enumerate() {
            let weight = |head: usize, step: usize| recorded.attention[head][row * STEPS + step];
            assert!(weight(0, step(*patch)) > 0.99, "{word} is looked at in {patch:?}");
            assert!(weight(1, 0) > 0.99, "the other head looks at the class vector");
        }
    }
}
