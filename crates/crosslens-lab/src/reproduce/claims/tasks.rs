//! What changes with the task.

use super::super::claim::{Head, lower};
use super::super::numbers::{correlation, rank_correlation};
use super::super::study::WITHOUT_INPUT;
use super::super::{AtOrigin, Check, Claim, Displacement, Evidence, Figure, Follows, Origin, Proof, Series, Study};
use super::{average_attention, bars, nine_terms, seed};

/// Residual of a stream by name; also of networks without attention.
fn residual(study: &Study, stream: &str) -> f64 {
    study.report.streams.iter().find(|found| found.name == stream).map_or(f64::NAN, |stream| stream.variance.rest)
}

/// Networks without and with attention, by the middle of their sentences' lengths.
const WITHOUT: &[(f64, &str)] = &[(6.5, "ved-short"), (11.0, "ved-middle"), (17.0, "ved-long")];
const WITH: &[(f64, &str)] = &[(6.5, "aed-short"), (17.0, "copy-aed")];

pub(super) const BOTTLENECK: Claim = Claim {
    id: "final-state-bottleneck",
    sentence: "Without attention all memory is in the final state: accuracy falls with length, with attention it does not.",
    origin: Origin::Paper,
    proof: Proof::Causal,
    networks: &["ved-short", "ved-middle", "ved-long", "aed-short", "copy-aed"],
    is_quick: false,
    measure: |evidence| {
        let phrases = |id| evidence.study(id).phrase_accuracy();
        let falls = WITHOUT.windows(2).map(|pair| phrases(pair[0].1) - phrases(pair[1].1));
        vec![
            Check::at_least("phrases right at 5 to 8 words less those at 15 to 19, ved", phrases("ved-short") - phrases("ved-long"), 0.50),
            Check::at_least("least lost from one length to the next, ved", falls.fold(f64::INFINITY, lower), 0.0),
            Check::at_least(
                "fewest phrases right, short or long, aed",
                evidence.lowest_of(&["aed-short", "copy-aed"], Study::phrase_accuracy),
                0.97,
            ),
            Check::at_most("words right at 15 to 19 words with uniform attention, aed", evidence.head("copy-aed").words("uniform"), 0.65)
                .causal(),
            Check::reported("phrases right at 5 to 8 words, ved", phrases("ved-short")),
            Check::reported("at 10 to 12", phrases("ved-middle")),
            Check::reported("at 15 to 19", phrases("ved-long")),
        ]
    },
    figure: |all| {
        let line = |evidence: &Evidence<'_>, networks: &[(f64, &str)]| {
            networks.iter().map(|&(length, id)| [length, evidence.study(id).phrase_accuracy()]).collect()
        };
        let lines = all.iter().enumerate().flat_map(|(place, evidence)| {
            [("without attention", WITHOUT), ("with attention", WITH)]
                .map(|(name, networks)| Series::new(format!("{name}, {}", seed(place)), line(evidence, networks)))
        });
        Figure::lines(
            "Phrases right by length, with equal training at every length.",
            "words in a sentence",
            "phrases right",
            lines.collect(),
        )
    },
};

pub(super) const VED_RESIDUAL: Claim = Claim {
    id: "ved-residual",
    sentence: "Step and token explain less of a network without attention: its decoder must carry the sentence in the residual.",
    origin: Origin::Restated("at 5 to 8 words, where both learn: a network that learns nothing stores little and has a small residual"),
    proof: Proof::OfStates("a network without attention has none that could be changed"),
    networks: &["ved-short", "aed-short"],
    is_quick: false,
    measure: |evidence| {
        let of = |id| residual(evidence.study(id), "decoder");
        vec![
            Check::at_least("residual of the decoder, ved less aed", of("ved-short") - of("aed-short"), 0.05),
            Check::reported("ved", of("ved-short")),
            Check::reported("aed", of("aed-short")),
            Check::reported("residual of the encoder, ved", residual(evidence.study("ved-short"), "encoder")),
            Check::reported("of the encoder, aed", residual(evidence.study("aed-short"), "encoder")),
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
    proof: Proof::Causal,
    networks: &["reverse-aed", "reverse-ao"],
    is_quick: true,
    measure: |evidence| {
        let looks = |id| &evidence.study(id).notes.looks;
        vec![
            Check::at_least("steps within one place of the anti-diagonal, aed", looks("reverse-aed").near_antidiagonal(1), 0.95),
            Check::at_least("steps at the anti-diagonal, ao", looks("reverse-ao").near_antidiagonal(0), 0.95),
            Check::reported("steps at the anti-diagonal, aed", looks("reverse-aed").near_antidiagonal(0)),
            Check::at_most(
                "most words right without the temporal term",
                evidence.highest(&["reverse-aed", "reverse-ao"], |head| head.words("no-temporal")),
                0.65,
            )
            .causal(),
            Check::at_most(
                "most words right with uniform attention",
                evidence.highest(&["reverse-aed", "reverse-ao"], |head| head.words("uniform")),
                0.65,
            )
            .causal(),
        ]
    },
    figure: |all| average_attention(all, "The average attention of an attention encoder-decoder that reverses.", "reverse-aed"),
};

fn right_on_rule(study: &Study) -> f64 {
    study.notes.looks.right("O0P").unwrap_or(f64::NAN)
}

/// Who always writes the word of the rule is right where it applies, and wrong here.
fn right_elsewhere(study: &Study) -> f64 {
    study.notes.looks.right("O0").unwrap_or(f64::NAN)
}

pub(super) const PREVIOUS_WORD: Claim = Claim {
    id: "previous-word",
    sentence: "A network with recurrence learns a word that depends on the word before.",
    origin: Origin::Restated(
        "the paper expects attention-only networks to fail here; they do not have to, since the decoder reads the word it wrote last. Both are reported",
    ),
    proof: Proof::Causal,
    networks: &["previous-aed", "previous-ao"],
    is_quick: false,
    measure: |evidence| {
        vec![
            Check::at_least("right where the rule applies, aed", right_on_rule(evidence.study("previous-aed")), 0.97),
            Check::at_least(
                "right where the same word stands and it does not apply, aed",
                right_elsewhere(evidence.study("previous-aed")),
                0.97,
            ),
            Check::at_most("words right with uniform attention, aed", evidence.head("previous-aed").words("uniform"), 0.65).causal(),
            Check::reported("words right with temporal attention, aed", evidence.head("previous-aed").words("temporal")).causal(),
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
    proof: Proof::Causal,
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
            )
            .causal(),
        ]
    },
    figure: |all| nine_terms(all, "The nine terms on one-to-one and on eSCAN (t: step, i: token, r: the rest)."),
};

pub(super) const TRANSLATION: Claim = Claim {
    id: "translation",
    sentence: "From one-to-one over eSCAN to translation shares move away from the temporal term.",
    origin: Origin::Restated(
        "on a miniature English–French grammar, or with --corpus on real sentences, where a quarter of the words must be right, and a twentieth more than with uniform attention",
    ),
    proof: Proof::Causal,
    networks: &["copy-aed", "escan-aed", "translation-aed"],
    is_quick: false,
    measure: |evidence| {
        let share = |id: &str| evidence.head(id).temporal("centred");
        let (escan, translation) = (evidence.head("escan-aed"), evidence.head("translation-aed"));
        vec![
            Check::at_least("centred temporal share, eSCAN less translation", share("escan-aed") - share("translation-aed"), 0.30),
            Check::at_least("centred temporal share, one-to-one less translation", share("copy-aed") - share("translation-aed"), 0.35),
            Check::at_least(
                "words right with temporal attention, eSCAN less translation",
                escan.words("temporal") - translation.words("temporal"),
                0.05,
            )
            .causal(),
            Check::reported("one-to-one", share("copy-aed")),
            Check::reported("eSCAN", share("escan-aed")),
            Check::reported("translation", share("translation-aed")),
        ]
    },
    figure: |all| nine_terms(all, "The nine terms on one-to-one, eSCAN and translation (t: step, i: token, r: the rest)."),
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
    "translation-aed",
];

/// By network: distance to the average attention, and a number beside it.
fn law(evidence: &Evidence<'_>, beside: fn(Head<'_>) -> f64) -> Vec<[f64; 2]> {
    evidence.all().map(|(_, study)| [Head(study.site()).tv("average"), beside(Head(study.site()))]).collect()
}

fn not_temporal(head: Head<'_>) -> f64 {
    1.0 - head.temporal("centred")
}

pub(super) const AVERAGE_LAW: Claim = Claim {
    id: "average-law",
    sentence: "The better the average attention stands for that of a sentence, the more of it is temporal.",
    origin: Origin::Restated("in sign only: the networks are not independent, so there is no p-value"),
    proof: Proof::Causal,
    networks: SEVERAL_TASKS,
    is_quick: false,
    measure: |evidence| {
        let correlate = |beside: fn(Head<'_>) -> f64| {
            let (distances, others): (Vec<f64>, Vec<f64>) = law(evidence, beside).iter().map(|point| (point[0], point[1])).unzip();
            rank_correlation(&distances, &others)
        };
        vec![
            Check::at_least("rank correlation of the distance to the average with 1 − temporal share", correlate(not_temporal), 0.20),
            Check::at_least("with the words wrong under temporal attention", correlate(|head| 1.0 - head.words("temporal")), 0.20).causal(),
        ]
    },
    figure: |all| {
        let series = all.iter().enumerate().map(|(place, evidence)| {
            Series::new(seed(place), law(evidence, not_temporal)).named(evidence.all().map(|(id, _)| id.to_owned()))
        });
        let (x, y) = ("total variation from the average attention", "1 − centred temporal share");
        Figure::points("Every network: the farther from the average, the less temporal.", x, y, series.collect())
    },
};

pub(super) const APPROXIMATION_GAP: Claim = Claim {
    id: "approximation-gap",
    sentence: "On eSCAN adding the input components brings rebuilt attention much closer; on one-to-one there is little left to gain.",
    origin: Origin::Restated("compared between tasks: on one-to-one the gain is small, not nothing"),
    proof: Proof::Causal,
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
            )
            .causal(),
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
    proof: Proof::Causal,
    networks: &["escan-and-aed"],
    is_quick: false,
    measure: |evidence| {
        let displacement = evidence.study("escan-and-aed").notes.looks.displacement.as_ref();
        let of = displacement
            .map_or([f64::NAN; 2], |found| [correlation(&found.temporal, &found.grammar), correlation(&found.temporal, &found.attention)]);
        vec![
            Check::at_least("correlation of the temporal attention's displacement with the grammar's", of[0], 0.60),
            Check::reported("with the true attention's", of[1]),
            Check::at_least(
                "words right with temporal attention less uniform",
                evidence.head("escan-and-aed").words("temporal") - evidence.head("escan-and-aed").words("uniform"),
                0.05,
            )
            .causal(),
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

/// How attention leaves its average; no numbers where the task does not say where it should look.
fn displacement(study: &Study) -> Displacement {
    let none = Follows { attention: f64::NAN, input: f64::NAN, residual: f64::NAN, residual_first: f64::NAN };
    study.notes.looks.displacement.clone().unwrap_or(Displacement { own: none, and: none, left: none, ..Displacement::default() })
}

pub(super) const OFF_DIAGONAL_AED: Claim = Claim {
    id: "off-diagonal-aed",
    sentence: "What moves a sentence's attention off its average are `and` and `left` before it; an encoder-decoder knows them by its residual.",
    origin: Origin::Restated(
        "as correlations over single steps: exact alignment with the grammar is not found, states remember. What input and residual could both add is input's; where the residual comes first is reported. The words lost without the residual take the place of those won by input, which the sentence does not name",
    ),
    proof: Proof::Causal,
    networks: &["escan-and-aed"],
    is_quick: false,
    measure: |evidence| {
        let study = evidence.study("escan-and-aed");
        let Displacement { own, and, left, .. } = displacement(study);
        let head = evidence.head("escan-and-aed");
        vec![
            Check::at_least(
                "correlation of a sentence's own displacement with that of its attention beyond the temporal",
                own.attention,
                0.50,
            ),
            Check::at_least("of what `and` adds with that of attention", and.attention, 0.20),
            Check::at_least("of what `and` adds with what the residual adds", and.residual, 0.20),
            Check::reported("of what `and` adds with what input adds", and.input),
            Check::reported("of what `and` adds with what the residual adds before input", and.residual_first),
            Check::at_least("of what `left` adds with that of attention", left.attention, 0.20),
            Check::at_least("of what `left` adds with what the residual adds", left.residual, 0.20),
            Check::reported("of what `left` adds with what input adds", left.input),
            Check::reported("of what `left` adds with what the residual adds before input", left.residual_first),
            Check::at_least("words lost without the residual's terms", study.words_right() - head.words("temporal+input"), 0.03).causal(),
            Check::reported("words right with temporal", head.words("temporal")).causal(),
            Check::reported("with temporal and input", head.words("temporal+input")).causal(),
            Check::reported("with temporal and residual", head.words(WITHOUT_INPUT)).causal(),
        ]
    },
    figure: |all| {
        let parts = ["input", "residual", "residual before input"];
        let labels = ["and", "left"].iter().flat_map(|word| parts.map(|part| format!("{word}, {part}"))).collect();
        let bars = all.iter().enumerate().map(|(place, evidence)| {
            let Displacement { and, left, .. } = displacement(evidence.study("escan-and-aed"));
            (seed(place), [and, left].iter().flat_map(|word| [word.input, word.residual, word.residual_first]).collect())
        });
        Figure::bars("How what each part adds to attention follows `and` and `left`.", "correlation", labels, bars.collect())
    },
};

pub(super) const OFF_DIAGONAL_AO: Claim = Claim {
    id: "off-diagonal-ao",
    sentence: "An attention-only network leaves the diagonal at `left` by its input components.",
    origin: Origin::Restated(
        "on the small eSCAN, the one it can learn: it sees the step and the word before, not how far it has drifted. `left` moves a word by one place: what input adds is judged by the weight of that place, which must rise by what the words right must (.75 less .60). On seeds 211 to 213 it was judged by the centre of attention, which little weight far away moves as much; that is reported",
    ),
    proof: Proof::Causal,
    networks: &["escan-small-ao"],
    is_quick: false,
    measure: |evidence| {
        let head = evidence.head("escan-small-ao");
        let Displacement { left, at_left, .. } = displacement(evidence.study("escan-small-ao"));
        let weight = |of: fn(AtOrigin) -> f64| at_left.map_or(f64::NAN, of);
        vec![
            Check::at_least("words right with temporal and input", head.words("temporal+input"), 0.75).causal(),
            Check::at_most("words right with temporal alone", head.words("temporal"), 0.60).causal(),
            Check::at_least("centred share of all terms with input", with_input(head), 0.15),
            Check::at_least(
                "what input adds to the weight of the right place at the steps that `left` moves",
                weight(|at| at.with_input - at.temporal),
                0.15,
            ),
            Check::reported("that weight, temporal alone", weight(|at| at.temporal)),
            Check::reported("temporal and input", weight(|at| at.with_input)),
            Check::reported("temporal and residual", weight(|at| at.with_residual)),
            Check::reported("of the true attention", weight(|at| at.attention)),
            Check::reported("correlation of what `left` adds with what input adds to the centre of attention", left.input),
            Check::reported("with what the residual adds to it", left.residual),
            Check::reported("with that of the true attention", left.attention),
        ]
    },
    figure: |all| bars(all, "Centred share of the terms with an input part.", "share", |study| with_input(Head(study.site()))),
};

/// Centred share of the terms with an input part on either side.
fn with_input(head: Head<'_>) -> f64 {
    let table = head.table("centred");
    table[0][1] + table[1][0] + table[1][1] + table[1][2] + table[2][1]
}
