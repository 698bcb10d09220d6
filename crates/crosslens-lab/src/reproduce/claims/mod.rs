//! The registry: every claim, in the order of the table. Each is written down once, in the file of its subject.
//!
//! Floors are ours, from an independent prototype's measurements with a margin, set before these seeds were ever run. In names of shares
//! the temporal part is what a state owes to its step, the input part what it owes to its token, the residual the rest.

mod attention;
mod findings;
mod method;
mod readout;
mod tasks;
mod variants;

use crosslens_nets::tasks::END_WORD;

use super::claim::Head;
use super::{Claim, Evidence, Figure, Series, Study};

/// Every claim.
pub const CLAIMS: &[Claim] = &[
    attention::DIAGONAL_AED,
    attention::DIAGONAL_AO,
    attention::TEMPORAL_SHARE,
    attention::TEMPORAL_SUFFICES,
    attention::TIME_FROM_RECURRENCE,
    attention::TIME_FROM_POSITIONS,
    readout::INPUT_DRIVES_READOUT,
    readout::WORD_VARIANCE,
    readout::SMALL_RESIDUAL,
    readout::SIMPLEX,
    tasks::BOTTLENECK,
    tasks::VED_RESIDUAL,
    tasks::REVERSE,
    tasks::PREVIOUS_WORD,
    tasks::ESCAN_SHIFT,
    tasks::TRANSLATION,
    tasks::AVERAGE_LAW,
    tasks::APPROXIMATION_GAP,
    tasks::OFFSET,
    tasks::OFF_DIAGONAL_AED,
    tasks::OFF_DIAGONAL_AO,
    variants::LEARNED_ATTENTION,
    variants::TWO_HEADS,
    variants::CONTENT,
    variants::LUONG_AND_BAHDANAU,
    variants::CELLS,
    variants::LSTM,
    method::EXACT,
    method::ESTIMATORS,
    method::KINDS_OF_SHARES,
    method::CONSTANTS,
    method::CONSTANT_FIFTH,
    method::TOP_SHARE_MISLEADS,
    findings::SHARES_PROVE_NOTHING,
    findings::OPTIMISER,
    findings::FORCING,
    findings::JOINT_FIT,
    findings::JOINT_FIT_TEXT,
    findings::FORMATION,
    findings::TURN_TO_POSITION,
];

/// One bar a network and seed.
fn bars(all: &[Evidence<'_>], caption: &'static str, y: &'static str, of: fn(&Study) -> f64) -> Figure {
    let labels = all.first().map_or_else(Vec::new, |evidence| evidence.all().map(|(id, _)| id.to_owned()).collect());
    let series = all.iter().enumerate().map(|(place, evidence)| (seed(place), evidence.all().map(|(_, study)| of(study)).collect()));
    Figure::bars(caption, y, labels, series.collect())
}

/// The average attention of a network, of the first seed.
fn average_attention(all: &[Evidence<'_>], caption: &'static str, id: &str) -> Figure {
    Figure::matrix(caption, all.first().map_or_else(Vec::new, |evidence| evidence.study(id).notes.average.clone()))
}

/// The nine terms, the query's part first: `t` for its step, `i` for its token, `r` for the rest.
const TERMS: [&str; 9] = ["t × t", "t × i", "t × r", "i × t", "i × i", "i × r", "r × t", "r × i", "r × r"];

/// The centred shares of all nine terms, one set of bars a network, of the first seed.
fn nine_terms(all: &[Evidence<'_>], caption: &'static str) -> Figure {
    let terms = |study: &Study| Head(study.site()).table("centred").concat();
    let series = all.first().into_iter().flat_map(|evidence| evidence.all().map(|(id, study)| (id.to_owned(), terms(study))));
    Figure::bars(caption, "centred share, query part × key part", TERMS.map(str::to_owned).to_vec(), series.collect())
}

/// The temporal components of both sides and the path of the encoder without input, on the two axes along which states vary most; of the
/// first seed.
fn paths(all: &[Evidence<'_>], caption: &'static str, id: &str) -> Figure {
    let flat = |path: &[[f64; 3]]| path.iter().map(|&[first, second, _]| [first, second]).collect();
    let geometry = all.first().and_then(|evidence| evidence.study(id).report.geometry.as_ref());
    let series = geometry.into_iter().flat_map(|geometry| {
        let streams = geometry.streams.iter().map(|stream| Series { name: stream.name.clone(), points: flat(&stream.path) });
        let without = geometry.null_input.iter().filter(|path| path.stream == "encoder");
        streams.chain(without.map(|path| Series { name: "encoder without input".into(), points: flat(&path.path) }))
    });
    Figure::lines(caption, "first axis", "second axis", series.collect())
}

/// Readouts of content words and input components of the words read, on the two axes along which readouts differ most; of the first seed.
fn readout_plane(all: &[Evidence<'_>], caption: &'static str, id: &str) -> Figure {
    let flat = |&[first, second, _]: &[f64; 3]| [first, second];
    let plane = all.first().and_then(|evidence| evidence.study(id).report.geometry.as_ref()?.plane.as_ref());
    let series = plane.map_or_else(Vec::new, |plane| {
        let inputs = plane.inputs.iter().filter(|input| input.name != END_WORD).map(|input| flat(&input.at)).collect();
        vec![
            Series { name: "readouts".into(), points: plane.readouts.iter().map(flat).collect() },
            Series { name: "input components".into(), points: inputs },
        ]
    });
    Figure::points(caption, "first axis", "second axis", series)
}

fn seed(place: usize) -> String {
    format!("seed {}", place + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, Specimen};
    use super::*;

    #[test]
    fn every_claim_has_a_name_of_its_own_and_names_networks_there_are() {
        for (place, claim) in CLAIMS.iter().enumerate() {
            assert!(CLAIMS[..place].iter().all(|other| other.id != claim.id), "{} stands there twice", claim.id);
            assert!(claim.networks.iter().all(|id| Specimen::named(id).is_some()), "{}", claim.id);
            let is_untested = matches!(claim.origin, Origin::Untested(_));
            assert_eq!(claim.networks.is_empty(), is_untested, "{}", claim.id);
            assert!(claim.sentence.ends_with('.'), "{}", claim.id);
        }
    }
}
