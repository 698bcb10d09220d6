//! What the paper does not say.

use crosslens_analysis::timeline::TimelinePoint;

use super::super::claim::{Head, higher, lower};
use super::super::{Check, Claim, Evidence, Figure, Origin, Proof, Series, Study};
use super::bars;
use super::readout::input_values;

pub(super) const SHARES_PROVE_NOTHING: Claim = Claim {
    id: "shares-prove-nothing",
    sentence: "Untrained attention-only networks have high temporal shares already: shares count only once the task is done and an ablation agrees.",
    origin: Origin::New("a control: the temporal term is the largest at the highest score though nothing was learnt"),
    proof: Proof::OfMethod("untrained weights do no task that a change could spoil"),
    networks: &["copy-ao"],
    is_quick: true,
    measure: |evidence| {
        let head = evidence.head("copy-ao");
        vec![
            Check::at_least("share at the highest score, untrained", head.untrained_temporal("top1"), 0.40),
            Check::reported("centred share, untrained", head.untrained_temporal("centred")),
            Check::reported("share at the highest score, trained", head.temporal("top1")),
        ]
    },
    figure: |all| {
        bars(all, "Share of the temporal term at the highest score, with untrained weights.", "share", |study| {
            Head(study.site()).untrained_temporal("top1")
        })
    },
};

/// Two by two: Adam's ε, large and small, and what the decoder reads while it learns, its own words and the right ones.
const LEVERS: &[&str] = &["free-aed", "forced-aed", "adam-free-aed", "adam-aed"];

/// What a number of a network gains by the small ε, free-running and forced.
fn by_epsilon(evidence: &Evidence<'_>, of: impl Fn(&Study) -> f64) -> [f64; 2] {
    [("adam-free-aed", "free-aed"), ("adam-aed", "forced-aed")].map(|(small, large)| of(evidence.study(small)) - of(evidence.study(large)))
}

/// What it gains by forcing, with the large and the small ε.
fn by_forcing(evidence: &Evidence<'_>, of: impl Fn(&Study) -> f64) -> [f64; 2] {
    [("forced-aed", "free-aed"), ("adam-aed", "adam-free-aed")].map(|(forced, free)| of(evidence.study(forced)) - of(evidence.study(free)))
}

fn encoder_residual(study: &Study) -> f64 {
    Head(study.site()).encoder_residual()
}

fn offset(study: &Study) -> f64 {
    study.site().and_then(|site| site.diagonal.as_ref()).map_or(f64::NAN, |diagonal| diagonal.offset as f64)
}

pub(super) const OPTIMISER: Claim = Claim {
    id: "optimiser",
    sentence: "The optimiser decides where a network looks: with Adam's usual ε one place late, the word kept in the residual, whether it is forced or not.",
    origin: Origin::New(
        "two by two with `forcing`: same task, β2 of .99, cosine over 1,000 updates and end after 700; ε 0.1 with rate 0.1 against ε 1e-8 with rate 3e-3 and 20 updates of warm-up, the rate each needs",
    ),
    proof: Proof::Causal,
    networks: LEVERS,
    is_quick: false,
    measure: |evidence| {
        let [free, forced] = by_epsilon(evidence, encoder_residual);
        let [offset_free, offset_forced] = by_epsilon(evidence, offset);
        let [moved_large, moved_small] = by_forcing(evidence, offset).map(f64::abs);
        let [lost_free, lost_forced] = by_epsilon(evidence, |study| -input_values(study));
        let residual = |id| encoder_residual(evidence.study(id));
        vec![
            Check::at_least("residual of the encoder, ε 1e-8 less ε 0.1, free-running", free, 0.15),
            Check::at_least("the same, forced", forced, 0.15),
            Check::at_least("least offset of the diagonal, ε 1e-8 less ε 0.1", lower(offset_free, offset_forced), 1.0),
            Check::at_most("most the offset moves by forcing", higher(moved_large, moved_small), 0.0),
            Check::at_least("least words lost by ε 1e-8 with values of input alone", lower(lost_free, lost_forced), 0.20).causal(),
            Check::reported("residual, ε 0.1, free-running", residual("free-aed")),
            Check::reported("residual, ε 0.1, forced", residual("forced-aed")),
            Check::reported("residual, ε 1e-8, free-running", residual("adam-free-aed")),
            Check::reported("residual, ε 1e-8, forced", residual("adam-aed")),
        ]
    },
    figure: |all| bars(all, "Residual of the encoder under two optimisers, free-running and forced.", "residual", encoder_residual),
};

pub(super) const FORCING: Claim = Claim {
    id: "forcing",
    sentence: "Teacher forcing makes a network keep more in the residual, under either optimiser; it does not move where the network looks.",
    origin: Origin::New(
        "two by two with `optimiser`; free-running after 50 forced updates: free from the first, some seeds never learn the first word",
    ),
    proof: Proof::OfStates("it says what states keep and where attention is; what attention needs is another claim: forcing-attention"),
    networks: LEVERS,
    is_quick: false,
    measure: |evidence| {
        let [large, small] = by_forcing(evidence, encoder_residual);
        let [moved_large, moved_small] = by_forcing(evidence, offset).map(f64::abs);
        vec![
            Check::at_least("residual of the encoder, forced less free-running, ε 0.1", large, 0.03),
            Check::at_least("the same, ε 1e-8", small, 0.03),
            Check::at_most("most the offset moves", higher(moved_large, moved_small), 0.0),
        ]
    },
    figure: |all| {
        let lines = all.iter().enumerate().flat_map(|(place, evidence)| {
            [("ε 0.1", ["free-aed", "forced-aed"]), ("ε 1e-8", ["adam-free-aed", "adam-aed"])]
                .map(|(name, ids)| (format!("{name}, {}", super::seed(place)), ids.map(|id| encoder_residual(evidence.study(id))).to_vec()))
        });
        let labels = ["free-running", "forced"].map(String::from).to_vec();
        Figure::bars("Residual of the encoder, free-running and forced.", "residual", labels, lines.collect())
    },
};

pub(super) const FORCING_ATTENTION: Claim = Claim {
    id: "forcing-attention",
    sentence: "With Adam's usual ε, teacher forcing makes attention need more than position: rebuilt from position alone it loses words that a free-running network keeps.",
    origin: Origin::New(
        "two by two with `optimiser`; an independent prototype found 89 % of the words and 9 % of the phrases right where free-running it had all; on seeds 211 to 213 it was a part of `forcing`, whose sentence does not say it, and did not hold",
    ),
    proof: Proof::Causal,
    networks: LEVERS,
    is_quick: false,
    measure: |evidence| {
        let [words_large, words_small] = by_forcing(evidence, |study| -Head(study.site()).words("temporal"));
        let [phrases_large, phrases_small] = by_forcing(evidence, |study| -Head(study.site()).phrases("temporal"));
        vec![
            Check::at_least("words lost by forcing with temporal attention, ε 1e-8", words_small, 0.03).causal(),
            Check::reported("the same, ε 0.1", words_large).causal(),
            Check::reported("phrases lost, ε 1e-8", phrases_small).causal(),
            Check::reported("the same, ε 0.1", phrases_large).causal(),
        ]
    },
    figure: |all| {
        bars(all, "Words right when attention is rebuilt from the temporal parts alone.", "words right", |study| {
            Head(study.site()).words("temporal")
        })
    },
};

/// Of what the paper's estimator credits to the decoder's steps: the share that its tokens explain as well.
fn shared_time(study: &Study) -> f64 {
    study.site().map_or(f64::NAN, |site| site.variance.query.shared / (site.variance.query.time + site.variance.query.shared))
}

pub(super) const JOINT_FIT: Claim = Claim {
    id: "joint-fit",
    sentence: "Part of the variance that the paper's estimator credits to the decoder's steps could as well be its tokens'.",
    origin: Origin::New("on eSCAN; the paper's order of fitting gives all of it to the steps"),
    proof: Proof::OfMethod("it is about whom variance is credited to, and no network is another for it"),
    networks: &["escan-aed"],
    is_quick: true,
    measure: |evidence| {
        let variance = evidence.head("escan-aed").0.map(|site| site.variance.query);
        vec![
            Check::at_least("share of the decoder's time that is shared with its tokens", shared_time(evidence.study("escan-aed")), 0.10),
            Check::reported("variance only the step explains", variance.map_or(f64::NAN, |variance| variance.time)),
            Check::reported("variance either explains", variance.map_or(f64::NAN, |variance| variance.shared)),
        ]
    },
    figure: |all| bars(all, "Share of the decoder's time that its tokens explain as well.", "share", shared_time),
};

pub(super) const JOINT_FIT_TEXT: Claim = Claim {
    id: "joint-fit-text",
    sentence: "In translation most of the decoder's time could as well be its tokens'.",
    origin: Origin::New("on a miniature English–French grammar, or with --corpus on real sentences"),
    proof: Proof::OfMethod("it is about whom variance is credited to, and no network is another for it"),
    networks: &["translation-aed"],
    is_quick: false,
    measure: |evidence| {
        let variance = evidence.head("translation-aed").0.map(|site| site.variance.query);
        vec![
            Check::at_least(
                "share of the decoder's time that is shared with its tokens",
                shared_time(evidence.study("translation-aed")),
                0.50,
            ),
            Check::reported("variance only the step explains", variance.map_or(f64::NAN, |variance| variance.time)),
            Check::reported("variance either explains", variance.map_or(f64::NAN, |variance| variance.shared)),
        ]
    },
    figure: |all| bars(all, "Share of the decoder's time that its tokens explain as well.", "share", shared_time),
};

/// By record: how much closer to the true attention than uniform attention is what position makes, and what tokens add to that.
fn formation(points: &[TimelinePoint]) -> [Vec<[f64; 2]>; 2] {
    let of = |from: &str, to: &str| {
        let gain = |point: &TimelinePoint| {
            let tv = |name: &str| point.sites.first().and_then(|site| site.tv.get(name)).copied().unwrap_or(f64::NAN);
            [point.step as f64, tv(from) - tv(to)]
        };
        points.iter().map(gain).collect()
    };
    [of("uniform", "temporal"), of("temporal", "temporal+input")]
}

/// The first record from which on a line stays at half of where it ends or above; no number where it ends at nothing or below.
fn half_way(line: &[[f64; 2]]) -> f64 {
    let Some(&[_, end]) = line.last().filter(|[_, end]| *end > 0.0) else { return f64::NAN };
    let above = line.iter().rev().take_while(|[_, value]| *value >= end / 2.0);
    above.last().map_or(f64::NAN, |[step, _]| *step)
}

pub(super) const FORMATION: Claim = Claim {
    id: "formation",
    sentence: "While a network learns eSCAN its attention forms from time first, from input later.",
    origin: Origin::New(
        "updates until what position makes of attention, and what tokens add to it, is half of what it becomes and stays so; recorded every 50. The numbers marked † are of the network at the end: they say that it needs both, not in which order they came",
    ),
    proof: Proof::Causal,
    networks: &["escan-aed"],
    is_quick: true,
    measure: |evidence| {
        let [time, input] = formation(&evidence.study("escan-aed").timeline).map(|line| half_way(&line));
        let head = evidence.head("escan-aed");
        vec![
            Check::at_least("updates to half of the input's part less updates to half of time's", input - time, 50.0),
            Check::reported("updates to half of time's part", time),
            Check::reported("updates to half of the input's part", input),
            Check::at_least(
                "words right at the end with temporal attention less uniform",
                head.words("temporal") - head.words("uniform"),
                0.05,
            )
            .causal(),
            Check::at_least(
                "words right at the end with temporal and input less temporal alone",
                head.words("temporal+input") - head.words("temporal"),
                0.03,
            )
            .causal(),
        ]
    },
    figure: |all| {
        let caption = "How attention forms: distance gained over uniform attention by position, and by tokens beyond it.";
        let lines = all.iter().enumerate().flat_map(|(place, evidence)| {
            let [time, input] = formation(&evidence.study("escan-aed").timeline);
            [("time", time), ("input", input)].map(|(name, points)| Series::new(format!("{name}, {}", super::seed(place)), points))
        });
        Figure::lines(caption, "updates", "total variation gained", lines.collect())
    },
};

/// Centred share of the temporal term by record.
fn temporal_course(study: &Study) -> Vec<[f64; 2]> {
    let share = |point: &TimelinePoint| point.sites.first().and_then(|site| site.temporal()).unwrap_or(f64::NAN);
    study.timeline.iter().map(|point| [point.step as f64, share(point)]).collect()
}

/// The update after which the networks that reverse read their own words.
const FORCED_UPDATES: f64 = 200.0;

pub(super) const TURN_TO_POSITION: Claim = Claim {
    id: "turn-to-position",
    sentence: "A network that reverses looks by content as long as it is forced, and turns to position once it reads its own words.",
    origin: Origin::New("the opposite of eSCAN's order; seen on one seed before these were run"),
    proof: Proof::Causal,
    networks: &["reverse-aed"],
    is_quick: true,
    measure: |evidence| {
        let course = temporal_course(evidence.study("reverse-aed"));
        let forced = course.iter().find(|[step, _]| *step == FORCED_UPDATES).map_or(f64::NAN, |[_, share]| *share);
        let end = course.last().map_or(f64::NAN, |[_, share]| *share);
        vec![
            Check::at_most("centred temporal share at the last forced update", forced, 0.50),
            Check::at_least("centred temporal share at the end", end, 0.90),
            Check::at_most("words right at the end without the temporal term", evidence.head("reverse-aed").words("no-temporal"), 0.65)
                .causal(),
        ]
    },
    figure: |all| {
        let series =
            all.iter().enumerate().map(|(place, evidence)| Series::new(super::seed(place), temporal_course(evidence.study("reverse-aed"))));
        Figure::lines("Share of the temporal term while a network learns to reverse.", "updates", "centred share", series.collect())
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_way_is_where_a_line_stays_and_nowhere_where_it_comes_to_nothing() {
        let line = |values: &[f64]| values.iter().enumerate().map(|(record, &value)| [50.0 * record as f64, value]).collect::<Vec<_>>();
        assert_eq!(half_way(&line(&[0.0, 0.1, 0.2, 0.3, 0.4])), 100.0);
        assert_eq!(half_way(&line(&[0.0, 0.3, 0.1, 0.2, 0.4])), 150.0, "it fell below again");
        assert_eq!(half_way(&line(&[0.4])), 0.0);
        for nothing in [&[][..], &[0.3, 0.0], &[0.3, -0.1], &[0.3, f64::NAN]] {
            assert!(half_way(&line(nothing)).is_nan(), "{nothing:?}");
        }
    }
}
