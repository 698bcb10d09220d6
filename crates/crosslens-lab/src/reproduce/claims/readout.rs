//! What the words are read from.

use crosslens_analysis::geometry::CosinesReport;
use crosslens_nets::tasks::END_WORD;

use super::super::claim::{Head, higher, lower};
use super::super::{Check, Claim, Evidence, Origin, Proof, Study};
use super::{bars, readout_plane};

fn cosines(study: &Study) -> Option<&CosinesReport> {
    study.report.geometry.as_ref()?.cosines.first()
}

/// The lowest cosine of a content word's input component, behind the map of the values if there is one, and the readout of its translation;
/// −1 where another readout is nearer.
///
/// One-to-one tasks give a word and its translation the same number.
pub(super) fn lowest_cosine(study: &Study) -> f64 {
    let words = cosines(study).into_iter().flat_map(|cosines| &cosines.words).filter(|word| word.source != END_WORD);
    let cosine = words.map(|word| if word.best_token == word.source_token { word.cosine } else { -1.0 });
    cosine.reduce(lower).unwrap_or(f64::NAN)
}

pub(super) fn input_values(study: &Study) -> f64 {
    let values = study.report.values.as_ref();
    values.and_then(|values| values.get("input")).map_or(f64::NAN, |causal| causal.content_word_accuracy)
}

/// Share of content words whose input component is nearest the readout of their translation.
pub(super) fn nearest(study: &Study) -> f64 {
    let words: Vec<_> = cosines(study).into_iter().flat_map(|cosines| &cosines.words).filter(|word| word.source != END_WORD).collect();
    let n_right = words.iter().filter(|word| word.best_token == word.source_token).count();
    if words.is_empty() { f64::NAN } else { n_right as f64 / words.len() as f64 }
}

fn word_variance(study: &Study) -> f64 {
    study.report.streams.iter().find(|stream| stream.name == "encoder").and_then(|stream| stream.word_variance_ratio).unwrap_or(f64::NAN)
}

pub(super) const INPUT_DRIVES_READOUT: Claim = Claim {
    id: "input-drives-readout",
    sentence: "The input components carry the words: each lies along the readout of its translation, and values made of them alone are enough.",
    origin: Origin::Restated("for the encoder-decoder .75 of the words: part of a word is left in the residual"),
    proof: Proof::Causal,
    networks: &["copy-aed", "copy-ao", "reverse-aed", "reverse-ao"],
    is_quick: true,
    measure: |evidence| {
        vec![
            Check::at_least(
                "lowest cosine of a word's input component and its readout",
                evidence.lowest_of(&["copy-aed", "copy-ao", "reverse-aed", "reverse-ao"], lowest_cosine),
                0.40,
            ),
            Check::at_least("words right with input values, aed", evidence.lowest_of(&["copy-aed", "reverse-aed"], input_values), 0.75)
                .causal(),
            Check::at_least("words right with input values, ao", evidence.lowest_of(&["copy-ao", "reverse-ao"], input_values), 0.90)
                .causal(),
        ]
    },
    figure: |all| {
        readout_plane(all, "Words read and words written: each input component lies along the readout of its translation.", "copy-aed")
    },
};

pub(super) const WORD_VARIANCE: Claim = Claim {
    id: "word-variance",
    sentence: "Taking the temporal component away makes the states of a word collapse.",
    origin: Origin::Paper,
    proof: Proof::OfStates("it says how states lie, whatever reads them"),
    networks: &["copy-aed", "copy-ao"],
    is_quick: true,
    measure: |evidence| {
        vec![
            Check::at_most("variance of a word's states after over before, aed", word_variance(evidence.study("copy-aed")), 0.30),
            Check::at_most("the same, ao", word_variance(evidence.study("copy-ao")), 0.30),
        ]
    },
    figure: |all| bars(all, "What is left of the variance of a word's encoder states.", "after / before", word_variance),
};

pub(super) const SMALL_RESIDUAL: Claim = Claim {
    id: "small-residual",
    sentence: "Step and token explain almost all of the states; what is left is small.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: &["copy-aed", "copy-ao", "reverse-aed", "reverse-ao"],
    is_quick: true,
    measure: |evidence| {
        let (aed, ao): (&[&str], &[&str]) = (&["copy-aed", "reverse-aed"], &["copy-ao", "reverse-ao"]);
        let worst = |head: Head<'_>| higher(head.encoder_residual(), head.decoder_residual());
        vec![
            Check::at_most("residual of the encoder, aed", evidence.highest(aed, Head::encoder_residual), 0.20),
            Check::at_most("residual of either side, ao", evidence.highest(ao, worst), 0.05),
            Check::at_least(
                "fewest words right with attention rebuilt without it",
                evidence.lowest(&["copy-aed", "copy-ao", "reverse-aed", "reverse-ao"], |head| head.words("temporal+input")),
                0.90,
            )
            .causal(),
        ]
    },
    figure: |all| {
        bars(all, "Share of the encoder's variance that neither step nor token explains.", "residual", |study| {
            Head(study.site()).encoder_residual()
        })
    },
};

/// How far the angles between content words' context readouts are from those of a regular simplex, degrees, their mean taken off first.
fn simplex_deviation(study: &Study) -> f64 {
    let deviation = || {
        let readout = study.report.geometry.as_ref()?.readout.as_ref()?;
        let angles = readout.context.as_ref()?.centred_angles.as_ref()?;
        let simplex = readout.simplex_angle?;
        Some(higher((angles.lowest - simplex).abs(), (angles.highest - simplex).abs()))
    };
    deviation().unwrap_or(f64::NAN)
}

pub(super) const SIMPLEX: Claim = Claim {
    id: "readout-simplex",
    sentence: "The readouts of content words lie at the corners of a regular simplex.",
    origin: Origin::Restated(
        "with five words and their mean taken off: of three vectors that add up to nothing any with equal lengths are at 120°, and raw angles are 10 to 30° off",
    ),
    proof: Proof::OfStates("it says how weights lie; turning one away from the others would only make its word wrong"),
    networks: &["five-words-aed"],
    is_quick: false,
    measure: |evidence: &Evidence<'_>| {
        vec![Check::at_most("largest deviation from the simplex, degrees", simplex_deviation(evidence.study("five-words-aed")), 5.0)]
    },
    figure: |all| bars(all, "How far readouts are from a regular simplex.", "degrees", simplex_deviation),
};
