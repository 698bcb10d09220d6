//! Symmetrised alignments against an independent program, `tests/golden/make_align.py`, and gold alignments as they are published.

use std::io::Write as _;
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

type Aligner = fn(&[String], &[String]) -> Links;

/// The aligners of `tests/golden/make_hansards.py`, which counted them apart from this code.
const ALIGNERS: [(&str, Aligner); 3] = [
    ("same place", |source, target| (0..source.len().min(target.len())).map(|place| (place, place)).collect()),
    ("same relative place", |source, target| (0..target.len()).map(|place| (place * source.len() / target.len(), place)).collect()),
    ("same word", |source, target| {
        let places = (0..source.len()).flat_map(|one| (0..target.len()).map(move |other| (one, other)));
        places.filter(|&(one, other)| source[one] == target[other]).collect()
    }),
];

/// The Hansards of the NAACL 2003 shared task, where they lie beside the repository: 447 pairs, 4,038 sure links and 13,400 possible ones.
#[test]
fn the_published_hansards_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/alignments");
    let Ok(gold) = std::fs::read_to_string(folder.join("hansards-en-fr.gold")) else {
        // Not `eprintln!`, which a passing test keeps to itself.
        writeln!(std::io::stderr(), "SKIPPED: the published Hansards are not at {}", folder.display()).expect("stderr is open");
        return;
    };
    let sentences = std::fs::read_to_string(folder.join("hansards-en-fr.src-tgt")).expect("its neighbour is there");
    let pairs = read_gold_pairs(&gold, &sentences, Base::One).expect("links lie within their sentences");
    assert_eq!(pairs.len(), 447);
    assert!(read_gold_pairs(&gold, &sentences, Base::Zero).is_err(), "counted from 0 some links lie outside");

    let counted: Value = serde_json::from_str(include_str!("golden/hansards.json")).expect("it is JSON");
    let mut itself = AlignmentTally::default();
    for pair in &pairs {
        itself.add(pair.gold.sure(), &pair.gold);
    }
    let n_possible: usize = pairs.iter().map(|pair| pair.gold.possible().len()).sum();
    assert_eq!((Value::from(itself.n_sure), Value::from(n_possible)), (counted["n_sure"].clone(), counted["n_possible"].clone()));
    assert_eq!((itself.n_sure, n_possible, itself.aer()), (4038, 4038 + 13400, Some(0.0)));

    for (name, align) in ALIGNERS {
        let mut tally = AlignmentTally::default();
        for pair in &pairs {
            tally.add(&align(&pair.source, &pair.target), &pair.gold);
        }
        let counted = &counted["aligners"][name];
        let counts = ["found", "found_sure", "found_possible"].map(|count| counted[count].as_u64().expect("a count"));
        assert_eq!([tally.n_found, tally.n_found_sure, tally.n_found_possible], counts, "{name}");
        for (measure, found) in [("precision", tally.precision()), ("recall", tally.recall()), ("aer", tally.aer())] {
            let expected = counted[measure].as_f64().expect("a number");
            assert!((found.expect("there are links") - expected).abs() < 1e-15, "{measure} of {name}");
        }
    }

    let lines: Vec<String> = pairs.iter().map(|pair| pair.gold.pharaoh(Base::One)).collect();
    let again = read_gold(&lines.join("\n"), Base::One).expect("what is written is read again");
    assert!(again.iter().zip(&pairs).all(|(gold, pair)| *gold == pair.gold));
}
