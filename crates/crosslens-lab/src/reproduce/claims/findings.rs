//! What the paper does not say.

use crosslens_analysis::timeline::TimelinePoint;

use super::super::claim::Head;
use super::super::{Check, Claim, Figure, Origin, Series, Study};
use super::bars;

pub(super) const SHARES_PROVE_NOTHING: Claim = Claim {
    id: "shares-prove-nothing",
    sentence: "Untrained attention-only networks have high temporal shares already: shares count only once the task is done and an ablation agrees.",
    origin: Origin::New("a control: the temporal term is the largest at the highest score though nothing was learnt"),
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

pub(super) const OPTIMISER: Claim = Claim {
    id: "optimiser",
    sentence: "The optimiser decides whether the paper's picture appears: with Adam's usual ε the network looks one place late and keeps the word in the residual.",
    origin: Origin::New(
        "same task, same accuracy; ε 0.1, rate 0.1 and a forced beginning against ε 1e-8, rate 3e-3 and forcing throughout",
    ),
    networks: &["copy-aed", "adam-aed"],
    is_quick: false,
    measure: |evidence| {
        let (clean, adam) = (evidence.head("copy-aed"), evidence.head("adam-aed"));
        let offset = |head: Head<'_>| head.0.and_then(|site| site.diagonal.as_ref()).map_or(f64::NAN, |diagonal| diagonal.offset as f64);
        vec![
            Check::at_least("residual of the encoder, ε 1e-8 less ε 0.1", adam.encoder_residual() - clean.encoder_residual(), 0.15),
            Check::at_least("offset of the diagonal, ε 1e-8 less ε 0.1", offset(adam) - offset(clean), 1.0),
            Check::reported("residual, ε 0.1", clean.encoder_residual()),
            Check::reported("residual, ε 1e-8", adam.encoder_residual()),
        ]
    },
    figure: |all| {
        bars(all, "Residual of the encoder under two optimisers, all words right under both.", "residual", |study| {
            Head(study.site()).encoder_residual()
        })
    },
};

pub(super) const FORCING: Claim = Claim {
    id: "forcing",
    sentence: "The sooner a network reads its own words while it learns, the less it keeps in the residual.",
    origin: Origin::New(
        "teacher forcing for the first 300 updates against the first 50; free from the first, some seeds never learn the first word",
    ),
    networks: &["copy-aed", "free-aed"],
    is_quick: false,
    measure: |evidence| {
        let (forced, free) = (evidence.head("copy-aed").encoder_residual(), evidence.head("free-aed").encoder_residual());
        vec![
            Check::at_least("residual of the encoder, 300 forced updates less 50", forced - free, 0.03),
            Check::reported("300 forced updates", forced),
            Check::reported("50 forced updates", free),
        ]
    },
    figure: |all| {
        bars(all, "Residual of the encoder after a long and a short forced beginning.", "residual", |study| {
            Head(study.site()).encoder_residual()
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

/// The first record from which a line is above half of where it ends.
fn half_way(line: &[[f64; 2]]) -> f64 {
    let Some(&[_, end]) = line.last() else { return f64::NAN };
    line.iter().find(|[_, value]| *value >= end / 2.0).map_or(f64::NAN, |[step, _]| *step)
}

pub(super) const FORMATION: Claim = Claim {
    id: "formation",
    sentence: "While a network learns eSCAN its attention forms from time first, from input later.",
    origin: Origin::New(
        "updates until what position makes of attention, and what tokens add to it, is half of what it becomes; recorded every 50",
    ),
    networks: &["escan-aed"],
    is_quick: true,
    measure: |evidence| {
        let [time, input] = formation(&evidence.study("escan-aed").timeline).map(|line| half_way(&line));
        vec![
            Check::at_least("updates to half of the input's part less updates to half of time's", input - time, 50.0),
            Check::reported("updates to half of time's part", time),
            Check::reported("updates to half of the input's part", input),
        ]
    },
    figure: |all| {
        let caption = "How attention forms: distance gained over uniform attention by position, and by tokens beyond it.";
        let lines = all.iter().enumerate().flat_map(|(place, evidence)| {
            let [time, input] = formation(&evidence.study("escan-aed").timeline);
            [("time", time), ("input", input)].map(|(name, points)| Series { name: format!("{name}, {}", super::seed(place)), points })
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
    networks: &["reverse-aed"],
    is_quick: true,
    measure: |evidence| {
        let course = temporal_course(evidence.study("reverse-aed"));
        let forced = course.iter().find(|[step, _]| *step == FORCED_UPDATES).map_or(f64::NAN, |[_, share]| *share);
        let end = course.last().map_or(f64::NAN, |[_, share]| *share);
        vec![
            Check::at_most("centred temporal share at the last forced update", forced, 0.50),
            Check::at_least("centred temporal share at the end", end, 0.90),
        ]
    },
    figure: |all| {
        let series = all
            .iter()
            .enumerate()
            .map(|(place, evidence)| Series { name: super::seed(place), points: temporal_course(evidence.study("reverse-aed")) });
        Figure::lines("Share of the temporal term while a network learns to reverse.", "updates", "centred share", series.collect())
    },
};
