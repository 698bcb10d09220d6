//! What changes with the task.

use super::super::claim::Head;
use super::super::numbers::{correlation, rank_correlation};
use super::super::{Check, Claim, Evidence, Figure, Origin, Series, Study};
use super::{average_attention, bars, seed};

/// Residual of a stream by name; also of networks without attention.
fn residual(study: &Study, stream: &str) -> f64 {
    study.report.streams.iter().find(|found| found.name == stream).map_or(f64::NAN, |stream| stream.variance.rest)
}

pub(super) const BOTTLENECK: Claim = Claim {
    id: "final-state-bottleneck",
    sentence: "Without attention all memory is in the final state: accuracy falls with length, with attention it does not.",
    origin: Origin::Paper,
    networks: &["ved-short", "ved-long", "copy-aed"],
    is_quick: false,
    measure: |evidence| {
        let phrases = |id| evidence.study(id).phrase_accuracy();
        vec![
            Check::at_least("phrases right at 5 to 8 words less those at 15 to 19, ved", phrases("ved-short") - phrases("ved-long"), 0.50),
            Check::at_least("phrases right at 15 to 19 words, aed", phrases("copy-aed"), 0.97),
        ]
    },
    figure: |all| bars(all, "Phrases right without attention, short and long, and with it.", "phrases right", Study::phrase_accuracy),
};

pub(super) const VED_RESIDUAL: Claim = Claim {
    id: "ved-residual",
    sentence: "Step and token explain less of a network without attention: its decoder must carry the sentence in the residual.",
    origin: Origin::Restated("at 5 to 8 words, where both learn: a network that learns nothing stores little and has a small residual"),
    networks: &["ved-short", "aed-short"],
    is_quick: false,
    measure: |evidence| {
        let of = |id| residual(evidence.study(id), "decoder");
        vec![
            Check::at_least("residual of the decoder, ved less aed", of("ved-short") - of("aed-short"), 0.05),
            Check::reported("ved", of("ved-short")),
            Check::reported("aed", of("aed-short")),
        ]
    },
    figure: |all| {
        bars(all, "Share of the decoder's variance that neither step nor token explains.", "residual", |study| residual(study, "decoder"))
    },
};

pub(super) const REVERSE: Claim = Claim {
    id: "reverse",
    sentence: "On reversed one-to-one attention is anti-diagonal.",
    origin: Origin::Restated("for the encoder-decoder within one place: its states remember the word before"),
    networks: &["reverse-aed", "reverse-ao"],
    is_quick: true,
    measure: |evidence| {
        let looks = |id| &evidence.study(id).notes.looks;
        vec![
            Check::at_least("steps within one place of the anti-diagonal, aed", looks("reverse-aed").near_antidiagonal(1), 0.95),
            Check::at_least("steps at the anti-diagonal, ao", looks("reverse-ao").near_antidiagonal(0), 0.95),
            Check::reported("steps at the anti-diagonal, aed", looks("reverse-aed").near_antidiagonal(0)),
        ]
    },
    figure: |all| average_attention(all, "The average attention of an attention encoder-decoder that reverses.", "reverse-aed"),
};

fn right_on_rule(study: &Study) -> f64 {
    study.notes.looks.right("O0P").unwrap_or(f64::NAN)
}

pub(super) const PREVIOUS_WORD: Claim = Claim {
    id: "previous-word",
    sentence: "A network with recurrence learns a word that depends on the word before.",
    origin: Origin::Restated(
        "the paper expects attention-only networks to fail here; they do not have to, since the decoder reads the word it wrote last. Both are reported",
    ),
    networks: &["previous-aed", "previous-ao"],
    is_quick: false,
    measure: |evidence| {
        vec![
            Check::at_least("right where the rule applies, aed", right_on_rule(evidence.study("previous-aed")), 0.97),
            Check::reported("right where the rule applies, ao", right_on_rule(evidence.study("previous-ao"))),
            Check::reported("phrases right, ao", evidence.study("previous-ao").phrase_accuracy()),
        ]
    },
    figure: |all| bars(all, "Right where the previous-word rule applies.", "words right", right_on_rule),
};

pub(super) const ESCAN_SHIFT: Claim = Claim {
    id: "escan-shift",
    sentence: "From one-to-one to eSCAN shares move from the temporal term to those with input and residual.",
    origin: Origin::Paper,
    networks: &["copy-aed", "escan-aed"],
    is_quick: true,
    measure: |evidence| {
        let (copy, escan) = (evidence.head("copy-aed"), evidence.head("escan-aed"));
        vec![
            Check::at_least("centred temporal share, one-to-one less eSCAN", copy.temporal("centred") - escan.temporal("centred"), 0.05),
            Check::at_least("share at the highest score, one-to-one less eSCAN", copy.temporal("top1") - escan.temporal("top1"), 0.05),
            Check::at_least(
                "words right with temporal attention, one-to-one less eSCAN",
                copy.words("temporal") - escan.words("temporal"),
                0.05,
            ),
        ]
    },
    figure: |all| {
        bars(all, "Share of the temporal × temporal term, one-to-one and eSCAN.", "centred share", |study| {
            Head(study.site()).temporal("centred")
        })
    },
};

pub(super) const TRANSLATION: Claim = Claim {
    id: "translation",
    sentence: "From one-to-one over eSCAN to translation shares move away from the temporal term.",
    origin: Origin::Restated(
        "on a miniature English–French grammar, or with --corpus on real sentences, where words right say whether it learnt",
    ),
    networks: &["copy-aed", "escan-aed", "translation-aed"],
    is_quick: false,
    measure: |evidence| {
        let share = |id: &str| evidence.head(id).temporal("centred");
        let (escan, translation) = (evidence.head("escan-aed"), evidence.head("translation-aed"));
        vec![
            Check::at_least("centred temporal share, eSCAN less translation", share("escan-aed") - share("translation-aed"), 0.05),
            Check::at_least("centred temporal share, one-to-one less translation", share("copy-aed") - share("translation-aed"), 0.10),
            Check::at_least(
                "words right with temporal attention, eSCAN less translation",
                escan.words("temporal") - translation.words("temporal"),
                0.05,
            ),
            Check::reported("one-to-one", share("copy-aed")),
            Check::reported("eSCAN", share("escan-aed")),
            Check::reported("translation", share("translation-aed")),
        ]
    },
    figure: |all| {
        bars(all, "Share of the temporal × temporal term: one-to-one, eSCAN, translation.", "centred share", |study| {
            Head(study.site()).temporal("centred")
        })
    },
};

/// Networks of several tasks, all of one head and a bilinear score.
const SEVERAL_TASKS: &[&str] = &[
    "copy-aed",
    "copy-ao",
    "reverse-aed",
    "reverse-ao",
    "escan-aed",
    "escan-and-aed",
    "escan-small-ao",
    "escan-luong",
    "aed-short",
    "five-words-aed",
];

/// By network: distance to the average attention, and what is not temporal.
fn law(evidence: &Evidence<'_>) -> Vec<[f64; 2]> {
    let point = |(_, study): (&str, &Study)| {
        let head = Head(study.site());
        [head.tv("average"), 1.0 - head.temporal("centred")]
    };
    evidence.all().map(point).collect()
}

pub(super) const AVERAGE_LAW: Claim = Claim {
    id: "average-law",
    sentence: "The better the average attention stands for that of a sentence, the more of it is temporal.",
    origin: Origin::Restated("in sign only: the networks are not independent, so there is no p-value"),
    networks: SEVERAL_TASKS,
    is_quick: false,
    measure: |evidence| {
        let points = law(evidence);
        let (distances, others): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point[0], point[1])).unzip();
        vec![Check::at_least(
            "rank correlation of the distance to the average with 1 − temporal share",
            rank_correlation(&distances, &others),
            0.20,
        )]
    },
    figure: |all| {
        let series = all.iter().enumerate().map(|(place, evidence)| Series { name: seed(place), points: law(evidence) });
        let (x, y) = ("total variation from the average attention", "1 − centred temporal share");
        Figure::points("Every network: the farther from the average, the less temporal.", x, y, series.collect())
    },
};

pub(super) const APPROXIMATION_GAP: Claim = Claim {
    id: "approximation-gap",
    sentence: "On eSCAN adding the input components brings rebuilt attention much closer; on one-to-one there is little left to gain.",
    origin: Origin::Restated("compared between tasks: on one-to-one the gain is small, not nothing"),
    networks: &["copy-aed", "escan-aed"],
    is_quick: true,
    measure: |evidence| {
        let (copy, escan) = (evidence.head("copy-aed"), evidence.head("escan-aed"));
        let gap = |head: Head<'_>| head.tv("temporal") - head.tv("temporal+input");
        vec![
            Check::at_most("distance with input over distance without, eSCAN", escan.tv("temporal+input") / escan.tv("temporal"), 0.70),
            Check::at_least("gain on eSCAN less twice that on one-to-one", gap(escan) - 2.0 * gap(copy), 0.0),
            Check::at_least(
                "words right with temporal and input less temporal alone, eSCAN",
                escan.words("temporal+input") - escan.words("temporal"),
                0.03,
            ),
            Check::at_most("distance to the average, one-to-one", copy.tv("average"), 0.20),
            Check::at_least("distance to the average, eSCAN", escan.tv("average"), 0.35),
        ]
    },
    figure: |all| {
        bars(all, "Distance of attention rebuilt from steps and tokens, over that from steps alone.", "ratio", |study| {
            let head = Head(study.site());
            head.tv("temporal+input") / head.tv("temporal")
        })
    },
};

pub(super) const OFFSET: Claim = Claim {
    id: "offset",
    sentence: "The temporal parts learn how far the source runs ahead on average.",
    origin: Origin::Restated(
        "on eSCAN without `twice`, whose repetitions undo the drift that `and` makes, and over steps that every sentence has",
    ),
    networks: &["escan-and-aed"],
    is_quick: false,
    measure: |evidence| {
        let displacement = evidence.study("escan-and-aed").notes.looks.displacement.as_ref();
        let of = displacement
            .map_or([f64::NAN; 2], |found| [correlation(&found.temporal, &found.grammar), correlation(&found.temporal, &found.attention)]);
        vec![
            Check::at_least("correlation of the temporal attention's displacement with the grammar's", of[0], 0.60),
            Check::reported("with the true attention's", of[1]),
        ]
    },
    figure: |all| {
        let lines = all.first().and_then(|evidence| evidence.study("escan-and-aed").notes.looks.displacement.as_ref()).map(|found| {
            vec![
                Series::by_step("grammar", &found.grammar),
                Series::by_step("attention", &found.attention),
                Series::by_step("temporal parts alone", &found.temporal),
            ]
        });
        let caption = "How far ahead of its step the decoder looks, and where the grammar would have it look.";
        Figure::lines(caption, "decoder step", "source place − step", lines.unwrap_or_default())
    },
};

pub(super) const OFF_DIAGONAL_AED: Claim = Claim {
    id: "off-diagonal-aed",
    sentence: "What moves a sentence's attention off its average are `and` and `left` before it, through input and residual.",
    origin: Origin::Restated("as a correlation over single steps: exact alignment with the grammar is not found, states remember"),
    networks: &["escan-and-aed"],
    is_quick: false,
    measure: |evidence| {
        let displacement = evidence.study("escan-and-aed").notes.looks.displacement.as_ref();
        let of = displacement.map_or([f64::NAN; 2], |found| [found.own, found.own_of_input]);
        vec![
            Check::at_least("correlation of a sentence's own displacement with that of its attention beyond the temporal", of[0], 0.50),
            Check::reported("the same with attention rebuilt from steps and tokens", of[1]),
        ]
    },
    figure: |all| {
        bars(all, "How attention beyond its temporal part follows a sentence's own `and` and `left`.", "correlation", |study| {
            study.notes.looks.displacement.as_ref().map_or(f64::NAN, |found| found.own)
        })
    },
};

pub(super) const OFF_DIAGONAL_AO: Claim = Claim {
    id: "off-diagonal-ao",
    sentence: "An attention-only network leaves the diagonal at `left` by its input components.",
    origin: Origin::Restated("on the small eSCAN, the one it can learn: it sees the step and the word before, not how far it has drifted"),
    networks: &["escan-small-ao"],
    is_quick: false,
    measure: |evidence| {
        let head = evidence.head("escan-small-ao");
        vec![
            Check::at_least("words right with temporal and input", head.words("temporal+input"), 0.75),
            Check::at_most("words right with temporal alone", head.words("temporal"), 0.60),
            Check::at_least("centred share of all terms with input", with_input(head), 0.15),
        ]
    },
    figure: |all| bars(all, "Centred share of the terms with an input part.", "share", |study| with_input(Head(study.site()))),
};

/// Centred share of the terms with an input part on either side.
fn with_input(head: Head<'_>) -> f64 {
    let table = head.table("centred");
    table[0][1] + table[1][0] + table[1][1] + table[1][2] + table[2][1]
}
