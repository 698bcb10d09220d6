//! Symmetrised alignments against an independent program, `tests/golden/make_align.py`, and gold alignments as they are published.

use std::path::Path;

use crosslens_analysis::align::{AlignmentTally, Base, Links, Symmetrization, read_gold, read_gold_pairs, read_links};
use serde_json::Value;

#[test]
fn two_directions_join_as_the_definitions_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/align.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("the file is committed")).expect("it is JSON");
    let cases = golden["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 120);
    for case in cases {
        let links = |name: &str| {
            let text = case[name].as_str().expect("links");
            read_links(text, Base::Zero).expect("links").pop().unwrap_or_default()
        };
        let (forward, backward) = (links("forward"), links("backward"));
        for kind in Symmetrization::ALL {
            assert_eq!(kind.join(&forward, &backward), links(kind.name()), "{} of {case}", kind.name());
        }
    }
}

/// The Hansards of the NAACL 2003 shared task, where they lie beside the repository: 447 pairs, 4,038 sure links and 13,400 possible ones.
#[test]
fn the_published_hansards_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/alignments");
    let Ok(gold) = std::fs::read_to_string(folder.join("hansards-en-fr.gold")) else { return };
    let sentences = std::fs::read_to_string(folder.join("hansards-en-fr.src-tgt")).expect("its neighbour is there");
    let pairs = read_gold_pairs(&gold, &sentences, Base::One).expect("links lie within their sentences");
    assert_eq!(pairs.len(), 447);
    assert!(read_gold_pairs(&gold, &sentences, Base::Zero).is_err(), "counted from 0 some links lie outside");

    let (mut itself, mut diagonal) = (AlignmentTally::default(), AlignmentTally::default());
    let mut n_possible = 0;
    for pair in &pairs {
        n_possible += pair.gold.possible().len();
        itself.add(pair.gold.sure(), &pair.gold);
        let n_words = pair.source.len().min(pair.target.len());
        diagonal.add(&(0..n_words).map(|place| (place, place)).collect::<Links>(), &pair.gold);
    }
    assert_eq!((itself.n_sure, n_possible), (4038, 4038 + 13400));
    assert_eq!(itself.aer(), Some(0.0));
    // Each word with the one at its own place: far better than nothing, far from an aligner.
    assert!((0.5..0.8).contains(&diagonal.aer().expect("there are links")), "{diagonal:?}");

    let lines: Vec<String> = pairs.iter().map(|pair| pair.gold.pharaoh(Base::One)).collect();
    let again = read_gold(&lines.join("\n"), Base::One).expect("what is written is read again");
    assert!(again.iter().zip(&pairs).all(|(gold, pair)| *gold == pair.gold));
}
