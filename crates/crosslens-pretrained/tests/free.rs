//! A decoder that feeds itself while it is recorded writes what it writes when it is asked to: by the rules of its files.

use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Untouched};
use crosslens_pretrained::{Decoding, Model, Subject, TokenNames, Wanted};

/// Steps that are looked at.
const STEPS: usize = 7;

#[test]
fn own_words_are_those_of_greedy_decoding() {
    let mut forced = 0;
    for case in ["t5", "mt5", "umt5", "bart", "bart-scaled", "marian", "marian-bin", "marian-separate"] {
        let model = Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case)).expect(case);
        let mut how = Decoding::greedy(&model);
        // One more than is looked at, since the last may be forced.
        how.rules.max_tokens = STEPS + 1;
        how.rules.ends.clear();
        forced += usize::from(how.rules.forced_first.is_some() || !how.rules.bad_words.is_empty());
        let model = Arc::new(model);
        let subject = Subject::new(model.clone(), TokenNames::default(), Wanted::cross(), 1).expect(case);
        for source in [vec![5, 6, 7, 1], vec![9, 4, 4, 8, 3, 1], vec![11]] {
            let written = model.write(&source, &how).expect(case).remove(0).tokens;
            let pair = Pair::new(source, vec![0; STEPS]);
            let recorded = subject.record(std::slice::from_ref(&pair), Fed::Own).expect(case).remove(0);
            assert_eq!(recorded.predicted, written[..STEPS], "{case}");
            assert_eq!(recorded.fed[1..], written[..STEPS - 1], "{case}");
            let again = subject.run(&[pair], Fed::Own, &Untouched).expect(case).remove(0);
            assert_eq!(again.predicted, recorded.predicted, "{case}");
        }
    }
    assert!(forced > 0, "some model has rules that matter");
}
