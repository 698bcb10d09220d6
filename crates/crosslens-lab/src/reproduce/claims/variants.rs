//! Other ways to attend, other cells.

use super::super::claim::{Head, higher, lower};
use super::super::{Check, Claim, Evidence, Origin, Proof, Study, Together};
use super::bars;
use super::readout::{lowest_cosine, nearest};

fn temporal(study: &Study) -> f64 {
    Head(study.site()).temporal("centred")
}

pub(super) const LEARNED_ATTENTION: Claim = Claim {
    id: "learned-attention",
    sentence: "With learned queries, keys and values the picture is the same once states are carried through them: queries and keys meet by position, values lie along the readouts.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: &["qkv-ao", "qkv-aed"],
    is_quick: false,
    measure: |evidence| {
        let mut checks = by_position(evidence, &["qkv-ao", "qkv-aed"]);
        checks.extend([
            Check::at_least(
                "words whose input component, behind the values' map, is nearest their readout",
                evidence.lowest_of(&["qkv-ao", "qkv-aed"], nearest),
                1.0,
            ),
            Check::at_least("lowest cosine of the two, ao", lowest_cosine(evidence.study("qkv-ao")), 0.40),
            Check::reported("the same, aed, which Adam's usual ε puts one place late", lowest_cosine(evidence.study("qkv-aed"))),
        ]);
        checks
    },
    figure: |all| bars(all, "Share of the temporal term with learned attention.", "centred share", temporal),
};

/// Every head of a network.
fn heads(study: &Study) -> impl Iterator<Item = Head<'_>> {
    study.report.sites.iter().map(|site| Head(Some(site)))
}

pub(super) const TWO_HEADS: Claim = Claim {
    id: "two-heads",
    sentence: "With two heads each is made by the temporal parts, and one of them at least is needed.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: &["two-heads-ao"],
    is_quick: false,
    measure: |evidence| {
        let study = evidence.study("two-heads-ao");
        let lowest = |of: fn(Head<'_>) -> f64| heads(study).map(of).fold(f64::INFINITY, lower);
        let both = |of: fn(&Together) -> f64| study.notes.together.as_ref().map_or(f64::NAN, of);
        vec![
            Check::at_least("lowest centred temporal share of a head", lowest(|head| head.temporal("centred")), 0.90),
            Check::at_least("fewest words right with one head temporal", lowest(|head| head.words("temporal")), 0.90).causal(),
            Check::at_least("words right with both heads temporal", both(|together| together.temporal), 0.90).causal(),
            Check::at_most("words right with both heads without that term", both(|together| together.without_temporal), 0.65).causal(),
            Check::at_most("words right with both heads uniform", both(|together| together.uniform), 0.65).causal(),
            Check::reported("most words right with one head uniform", heads(study).map(|head| head.words("uniform")).fold(0.0, higher))
                .causal(),
        ]
    },
    figure: |all| {
        bars(all, "Lowest share of the temporal term over the heads.", "centred share", |study| {
            heads(study).map(|head| head.temporal("centred")).fold(f64::INFINITY, lower)
        })
    },
};

pub(super) const CONTENT: Claim = Claim {
    id: "content-attention",
    sentence: "Learned attention of a network that reverses few words may go by content instead: the decoder remembers and looks words up.",
    origin: Origin::New(
        "against the paper's picture; seen on one seed before these were run, with Adam as it usually is (β2 .999, ε 1e-8)",
    ),
    proof: Proof::Causal,
    networks: &["qkv-reverse-aed"],
    is_quick: false,
    measure: |evidence| {
        let head = evidence.head("qkv-reverse-aed");
        vec![
            Check::at_most("centred temporal share", head.temporal("centred"), 0.10),
            Check::at_least("words right without the temporal term", head.words("no-temporal"), 0.90).causal(),
            Check::at_least("residual of the decoder", head.decoder_residual(), 0.50),
            Check::reported("words right with uniform attention", head.words("uniform")).causal(),
        ]
    },
    figure: |all| bars(all, "Share of the temporal term where attention goes by content.", "centred share", temporal),
};

pub(super) const LUONG_AND_BAHDANAU: Claim = Claim {
    id: "luong-bahdanau",
    sentence: "Luong's and Bahdanau's attention need more than position on eSCAN, as the attention encoder-decoder does.",
    origin: Origin::New("scores of Bahdanau's are not bilinear: their six parts stand for the nine terms"),
    proof: Proof::Causal,
    networks: &["escan-luong", "escan-bahdanau"],
    is_quick: false,
    measure: |evidence: &Evidence<'_>| {
        let ids = &["escan-luong", "escan-bahdanau"];
        vec![
            Check::at_most("most words right with temporal attention", evidence.highest(ids, |head| head.words("temporal")), 0.90).causal(),
            Check::at_least(
                "least gained by input",
                evidence.lowest(ids, |head| head.words("temporal+input") - head.words("temporal")),
                0.0,
            )
            .causal(),
            Check::at_least("least distance to the average", evidence.lowest(ids, |head| head.tv("average")), 0.30),
        ]
    },
    figure: |all| bars(all, "Words right with temporal attention alone.", "words right", |study| Head(study.site()).words("temporal")),
};

/// Whether networks of other cells attend by position.
fn by_position(evidence: &Evidence<'_>, ids: &[&str]) -> Vec<Check> {
    vec![
        Check::at_least("lowest centred temporal share", evidence.lowest(ids, |head| head.temporal("centred")), 0.90),
        Check::at_least("fewest words right with temporal attention", evidence.lowest(ids, |head| head.words("temporal")), 0.90).causal(),
        Check::at_most("most words right without that term", evidence.highest(ids, |head| head.words("no-temporal")), 0.65).causal(),
    ]
}

pub(super) const CELLS: Claim = Claim {
    id: "cells",
    sentence: "The picture does not depend on the cell: networks of vanilla and UGRNN cells attend by position too.",
    origin: Origin::Restated("on one-to-one: vanilla cells reverse 12 words by memory, and do not need their attention"),
    proof: Proof::Causal,
    networks: &["vanilla-aed", "ugrnn-aed"],
    is_quick: false,
    measure: |evidence| {
        let [vanilla, ugrnn] = ["vanilla-aed", "ugrnn-aed"].map(|id| evidence.head(id));
        let mut checks = by_position(evidence, &["vanilla-aed", "ugrnn-aed"]);
        checks.extend([
            Check::reported("centred temporal share, vanilla", vanilla.temporal("centred")),
            Check::reported("ugrnn", ugrnn.temporal("centred")),
            Check::reported("words right with temporal attention, vanilla", vanilla.words("temporal")).causal(),
            Check::reported("ugrnn", ugrnn.words("temporal")).causal(),
            Check::reported("words right without that term, vanilla", vanilla.words("no-temporal")).causal(),
            Check::reported("ugrnn", ugrnn.words("no-temporal")).causal(),
        ]);
        checks
    },
    figure: |all| bars(all, "Share of the temporal term, by cell.", "centred share", temporal),
};

pub(super) const LSTM: Claim = Claim {
    id: "lstm",
    sentence: "A network of LSTM cells attends by position too.",
    origin: Origin::New(
        "the paper's program does not run with LSTM cells; the optimiser is another (Adam as it usually is, β2 .999 and ε 1e-8, rate 1e-2), with that of the rest they learn nothing in 900 updates. They make 1,000 updates: after 600, on seeds 211 to 213, four of seven missed the gate",
    ),
    proof: Proof::Causal,
    networks: &["lstm-aed"],
    is_quick: false,
    measure: |evidence| by_position(evidence, &["lstm-aed"]),
    figure: |all| bars(all, "Share of the temporal term with LSTM cells.", "centred share", temporal),
};
