//! Where networks look on one-to-one tasks, and by what.

use super::super::claim::Head;
use super::super::{Check, Claim, Origin, Proof, Study};
use super::{average_attention, bars, nine_terms, paths};

/// All that learn a task by position.
const POSITIONAL: &[&str] = &["copy-aed", "copy-ao", "reverse-aed", "reverse-ao"];

pub(super) const DIAGONAL_AED: Claim = Claim {
    id: "diagonal-aed",
    sentence: "On one-to-one an attention encoder-decoder looks along the diagonal.",
    origin: Origin::Restated("along one constant offset, not exactly at the diagonal: the optimiser may put it one place later"),
    proof: Proof::Causal,
    networks: &["copy-aed"],
    is_quick: true,
    measure: |evidence| {
        let diagonal = evidence.head("copy-aed").0.and_then(|site| site.diagonal.as_ref());
        // Of attention that runs the other way round no step counts.
        let share = diagonal.map_or(f64::NAN, |diagonal| if diagonal.direction == "forward" { diagonal.share } else { 0.0 });
        vec![
            Check::at_least("content steps at one offset", share, 0.90),
            Check::reported("that offset", diagonal.map_or(f64::NAN, |diagonal| diagonal.offset as f64)),
            Check::at_most("words right with uniform attention", evidence.head("copy-aed").words("uniform"), 0.65).causal(),
        ]
    },
    figure: |all| average_attention(all, "The average attention of an attention encoder-decoder on one-to-one.", "copy-aed"),
};

pub(super) const DIAGONAL_AO: Claim = Claim {
    id: "diagonal-ao",
    sentence: "On one-to-one an attention-only network looks at the diagonal.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: &["copy-ao"],
    is_quick: true,
    measure: |evidence| {
        vec![
            Check::at_least("content steps at the diagonal", evidence.study("copy-ao").notes.looks.near_diagonal(0), 0.90),
            Check::at_most("words right with uniform attention", evidence.head("copy-ao").words("uniform"), 0.65).causal(),
        ]
    },
    figure: |all| average_attention(all, "The average attention of an attention-only network on one-to-one.", "copy-ao"),
};

pub(super) const TEMPORAL_SHARE: Claim = Claim {
    id: "temporal-share",
    sentence: "On one-to-one and reversed one-to-one the scores are made by the temporal parts of both sides.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: POSITIONAL,
    is_quick: true,
    measure: |evidence| {
        vec![
            Check::at_least("lowest centred share", evidence.lowest(POSITIONAL, |head| head.temporal("centred")), 0.90),
            Check::at_least("lowest share at the highest score", evidence.lowest(POSITIONAL, |head| head.temporal("top1")), 0.60),
            Check::at_most("most words right without that term", evidence.highest(POSITIONAL, |head| head.words("no-temporal")), 0.65)
                .causal(),
            Check::reported(
                "highest centred share of untrained weights",
                evidence.highest(POSITIONAL, |head| head.untrained_temporal("centred")),
            ),
        ]
    },
    figure: |all| nine_terms(all, "What moves the scores along the source: the nine terms, by network (t: step, i: token, r: the rest)."),
};

pub(super) const TEMPORAL_SUFFICES: Claim = Claim {
    id: "temporal-suffices",
    sentence: "Attention rebuilt from the temporal parts alone keeps the accuracy.",
    origin: Origin::Restated("of words, not of phrases: attention-only networks may lose the step that writes the end token"),
    proof: Proof::Causal,
    networks: POSITIONAL,
    is_quick: true,
    measure: |evidence| {
        vec![
            Check::at_least("fewest words right with temporal attention", evidence.lowest(POSITIONAL, |head| head.words("temporal")), 0.90)
                .causal(),
            Check::at_least("steps with the same maximum, copy-aed", evidence.head("copy-aed").agreement("temporal"), 0.90),
            Check::at_most("most words right with uniform attention", evidence.highest(POSITIONAL, |head| head.words("uniform")), 0.65)
                .causal(),
        ]
    },
    figure: |all| {
        bars(all, "Words right when attention is rebuilt from the temporal parts alone.", "words right", |study| {
            Head(study.site()).words("temporal")
        })
    },
};

/// Order of the path a network takes without input, beside its temporal components, and the cosine of the two.
fn null_path(study: &Study) -> (f64, f64) {
    let paths = study.report.geometry.iter().flat_map(|geometry| &geometry.null_input);
    let path = paths.into_iter().find(|path| path.stream == "encoder");
    path.map_or((f64::NAN, f64::NAN), |path| (path.step_correlation.unwrap_or(f64::NAN), path.cosine))
}

pub(super) const TIME_FROM_RECURRENCE: Claim = Claim {
    id: "time-from-recurrence",
    sentence: "An encoder-decoder without encoded positions makes time by its recurrence: without any input it takes the same path.",
    origin: Origin::Paper,
    proof: Proof::OfStates("the network runs without any input, which changes its states and leaves no attention to judge"),
    networks: &["copy-aed"],
    is_quick: true,
    measure: |evidence| {
        let (order, cosine) = null_path(evidence.study("copy-aed"));
        vec![
            Check::at_least("correlation of a step without input with the nearest temporal component's", order, 0.95),
            Check::at_least("cosine of the two paths", cosine, 0.90),
        ]
    },
    figure: |all| paths(all, "The temporal components of both sides step by step, and the encoder's path without any input.", "copy-aed"),
};

pub(super) const TIME_FROM_POSITIONS: Claim = Claim {
    id: "time-from-positions",
    sentence: "An attention-only network has its time from the encoded positions, and from nothing else.",
    origin: Origin::Restated("with an ablation, since untrained weights follow their positions too"),
    proof: Proof::Causal,
    networks: &["copy-ao"],
    is_quick: true,
    measure: |evidence| {
        let study = evidence.study("copy-ao");
        vec![
            Check::at_least("cosine of the path without input and the temporal components", null_path(study).1, 0.90),
            Check::at_most("words right without positions", study.notes.without_positions.unwrap_or(f64::NAN), 0.65).causal(),
        ]
    },
    figure: |all| {
        bars(all, "Words right once the encoded positions are set to zero.", "words right", |study| {
            study.notes.without_positions.unwrap_or(f64::NAN)
        })
    },
};
