//! A corpus whose attention is known beforehand: every step has an axis of its own, and looks along it.

use std::sync::Mutex;

use crosslens_analysis::explain::{ExplainError, Live, Options, Rank, Rerun, explain};
use crosslens_analysis::report::Report;
use crosslens_analysis::{
    Answer, AttentionRow, Description, Fed, Intervene, Linear, Pair, Readout, RecordError, Recordable, Recorded, Token,
};

use super::planted::{D, END, KEY, Plan, Planted, QUERY, Random, dot, every_map};

/// A state along the axis of a step: two of one step score 16, of two steps 0.
fn axis(step: usize) -> Vec<f64> {
    (0..D).map(|place| if place == step { 4.0 } else { 0.0 }).collect()
}

/// Sentences of five steps, words 1, 2, 3, 1 from another place each time, then the end token; the target is the source.
fn diagonal(n_sentences: u64) -> Planted {
    let mut planted = Planted::of(&Plan { n_sentences: 0, ..Plan::default() }, vec![dot()]);
    for truth in &mut planted.truth {
        truth.temporal = (0..D).map(axis).collect();
        truth.input.iter_mut().for_each(|input| input.fill(0.0));
    }
    let mut random = Random::new(1);
    for number in 0..n_sentences {
        let words: Vec<Token> = (0..4).map(|step| 1 + ((number + step) % 3) as Token).chain([END]).collect();
        planted.push(number, words.clone(), words, 0.0, &mut random);
    }
    planted
}

/// Gives a query state to a step of a sentence.
fn ask(planted: &mut Planted, sentence: usize, step: usize, state: &[f64]) {
    let states = &mut planted.sentences[sentence].states[QUERY][step * D..][..D];
    states.iter_mut().zip(state).for_each(|(x, &value)| *x = value as f32);
    planted.attend(sentence);
}

fn ranked(planted: &Planted, by: Rank) -> Vec<(u64, f64)> {
    let report = planted.explain(&Options { rank: Some(by), ..Options::default() }).report;
    report.ranking.expect("it was asked for").sentences.iter().map(|sentence| (sentence.number, sentence.value)).collect()
}

/// Sentence 13 of 20 is spoilt. Reversed keys lie 19/20 off the average at four steps of five; a query of nothing looks everywhere; one
/// along the last axis looks at the end token alone, which is no word of the source.
#[test]
fn each_rank_finds_the_sentence_that_was_spoilt() {
    let mut reversed = diagonal(20);
    let keys = &mut reversed.sentences[13].states[KEY];
    *keys = keys.chunks_exact(D).rev().flatten().copied().collect();
    reversed.attend(13);
    let mut diffuse = diagonal(20);
    (0..5).for_each(|step| ask(&mut diffuse, 13, step, &[0.0; D]));
    let mut blind = diagonal(20);
    (0..5).for_each(|step| ask(&mut blind, 13, step, &axis(4)));
    let mut surprised = diagonal(20);
    surprised.sentences[13].loss = Some(9.0);

    let cases = [
        (Rank::Drift, reversed, 0.76, 0.04),
        (Rank::Entropy, diffuse, 1.0, 0.0),
        (Rank::Coverage, blind, 1.0, 0.0),
        (Rank::Loss, surprised, 9.0, 0.25),
    ];
    for (by, planted, worst, others) in cases {
        let ranked = ranked(&planted, by);
        assert_eq!((ranked.len(), ranked[0].0), (20, 13), "{}: {ranked:?}", by.name());
        assert!((ranked[0].1 - worst).abs() < 1e-4, "{}: {ranked:?}", by.name());
        assert!(ranked[1..].iter().all(|(_, value)| (value - others).abs() < 1e-4), "{}: {ranked:?}", by.name());
    }
}

#[test]
fn sentences_are_not_ranked_by_what_they_do_not_have() {
    let mut planted = diagonal(20);
    planted.sentences.iter_mut().step_by(2).for_each(|sentence| sentence.loss = None);
    let ranked = ranked(&planted, Rank::Loss);
    assert!(ranked.len() == 10 && ranked.iter().all(|(number, _)| number % 2 == 1), "{ranked:?}");
    planted.sentences.iter_mut().for_each(|sentence| sentence.loss = None);
    let refused = |planted: &Planted, by: Rank| {
        let error = explain(planted, None, &Options { rank: Some(by), ..Options::default() }, &mut |_| ()).expect_err("no list");
        assert!(matches!(error, ExplainError::Rank { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(refused(&planted, Rank::Loss), "sentences cannot be ranked by loss: no sentence has a loss, which needs a target");
    let without_attention = Planted::of(&Plan::default(), Vec::new());
    for by in [Rank::Drift, Rank::Coverage, Rank::Entropy] {
        let said = refused(&without_attention, by);
        assert_eq!(said, format!("sentences cannot be ranked by {}: the network has no attention", by.name()));
    }
}

#[test]
fn losses_that_are_no_numbers_are_refused() {
    for loss in [f64::INFINITY, f64::NAN] {
        let mut planted = diagonal(20);
        planted.sentences[7].loss = Some(loss);
        let error = explain(&planted, None, &Options::default(), &mut |_| ()).expect_err("no loss");
        assert!(matches!(error, ExplainError::Loss { sentence: 7, .. }), "{error}");
    }
}

/// The last step looks at key 0 or key 1, in half of the sentences each, whatever the token: position gives both 1/2, which is 1/2 off.
#[test]
fn steps_before_the_end_are_measured_apart() {
    let mut planted = diagonal(18);
    (0..18).for_each(|sentence| ask(&mut planted, sentence, 4, &axis(sentence % 2)));
    let site = planted.explain(&Options::default()).report.sites.remove(0);
    let rebuilt = &site.rebuilt["temporal"];
    assert!(rebuilt.content.tv < 1e-5 && rebuilt.content.kl.abs() < 1e-5, "{rebuilt:?}");
    assert!((rebuilt.tv - 0.1).abs() < 1e-3, "{rebuilt:?}");
    assert!((rebuilt.content.argmax - 1.0).abs() < 1e-12 && (rebuilt.argmax - 0.9).abs() < 1e-12, "{rebuilt:?}");
}

/// Where every sentence attends alike by its steps, the average and position say all there is.
#[test]
fn the_average_is_held_against_position_in_one_number() {
    let claim = diagonal(20).explain(&Options::default()).report.claim.expect("a head across");
    assert!(claim.average > 0.999 && claim.temporal > 0.999 && claim.difference.abs() < 1e-3, "{claim:?}");
    assert_eq!(claim.heads, 1);

    let report = Planted::of(&Plan::default(), every_map(3)).explain(&Options::default()).report;
    let claim = report.claim.expect("heads across");
    let mean = |of: &dyn Fn(&crosslens_analysis::report::SiteReport) -> f64| report.sites.iter().map(of).sum::<f64>() / 6.0;
    let average = mean(&|site| 1.0 - site.average_attention.tv_over_uniform);
    let temporal = mean(&|site| {
        let position = site.rebuilt.get("temporal+bias").unwrap_or(&site.rebuilt["temporal"]);
        1.0 - position.tv / site.rebuilt["uniform"].tv
    });
    assert!((claim.average - average).abs() < 1e-12 && (claim.temporal - temporal).abs() < 1e-12, "{claim:?} {average} {temporal}");
    assert!((claim.difference - (average - temporal)).abs() < 1e-12 && claim.heads == 6, "{claim:?}");
    assert_eq!(Planted::of(&Plan::default(), Vec::new()).explain(&Options::default()).report.claim, None);
}

/// What a sample's file says of its distance is what sentences are ranked by.
#[test]
fn a_samples_distance_from_the_average_is_its_drift() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let mut explained = planted.explain(&Options { rank: Some(Rank::Drift), samples: 40, ..Options::default() });
    let ranking = explained.report.ranking.clone().expect("it was asked for");
    assert_eq!(explained.samples.distances.len(), 40);
    for sentence in &ranking.sentences {
        let distance = explained.samples.distances[sentence.number as usize][0];
        assert!((distance - sentence.value).abs() < 1e-6, "{distance} and {}", sentence.value);
    }
    let folder = tempfile::tempdir().expect("a folder");
    explained.save(&folder.path().join("report.json")).expect("writable");
    let loaded = crosslens_analysis::explain::Explained::load(&folder.path().join("report.json"), 3).expect("just saved");
    assert_eq!(loaded.samples.distances, explained.samples.distances[..3]);
}

/// A model that writes the source word its attention looks at most, through a context that it needs and a state that it does not.
struct Copier {
    planted: Planted,
    /// What the decoder read in each run.
    fed: Mutex<Vec<&'static str>>,
}

impl Recordable for Copier {
    fn description(&self) -> &Description {
        &self.planted.description
    }

    fn record(&self, pairs: &[Pair], _: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        Ok(self.planted.sentences[..pairs.len()].to_vec())
    }

    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        self.fed.lock().expect("nobody panicked").push(match fed {
            Fed::Own => "own",
            Fed::Target => "target",
            Fed::Given(_) => "given",
        });
        let write = |pair: usize, query: usize| -> Token {
            let sentence = &self.planted.sentences[pair];
            let mut weights = sentence.attention[0][query * 5..][..5].to_vec();
            let (query_state, key_states) = (&sentence.states[QUERY][query * D..][..D], &sentence.states[KEY][..]);
            how.weights(AttentionRow { site: 0, pair, query, query_state, key_states }, &mut weights);
            let looked = (0..5).fold(0, |best, key| if weights[key] > weights[best] { key } else { best });
            let (mut state, mut context) = ([1.0], [sentence.source[looked] as f32]);
            how.readout(pair, query, &mut state, &mut context);
            context[0] as Token
        };
        let answer = |pair: usize| Answer { predicted: (0..5).map(|query| write(pair, query)).collect(), loss: 0.5 };
        Ok((0..pairs.len()).map(answer).collect())
    }

    fn untrained(&self, _: u64) -> Option<Box<dyn Recordable>> {
        None
    }
}

fn copied(rerun: Rerun) -> (Report, Vec<&'static str>) {
    let mut planted = diagonal(20);
    let d_out = planted.description.target.count as usize;
    let map = Linear { d_in: 2, d_out, weights: vec![0.0; 2 * d_out], bias: Vec::new() };
    planted.description.readout = Some(Readout { map, d_state: 1, d_context: 1 });
    let copier = Copier { planted, fed: Mutex::default() };
    let pair = |number: u64| {
        let sentence = &copier.planted.sentences[number as usize];
        Pair::new(sentence.source.clone(), sentence.source.clone())
    };
    let corpus = Live { model: &copier, pair: &pair, n_pairs: 20, fed: Fed::Own };
    let report = explain(&corpus, None, &Options { rerun, ..Options::default() }, &mut |_| ()).expect("an explanation").report;
    (report, copier.fed.into_inner().expect("nobody panicked"))
}

/// Uniform attention looks at the first key: of the words 1, 2, 3, 1 and the end, three are others. Without the context all words become
/// 0, which is the end token: four are others.
#[test]
fn changed_predictions_are_counted() {
    let (report, _) = copied(Rerun::Recorded);
    let site = &report.sites[0];
    assert_eq!(site.verdict.label, "positional", "{}", site.verdict.text);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} and {b}");
    for (name, changed, right, content) in [
        ("temporal", 0.0, 1.0, 1.0),
        ("average", 0.0, 1.0, 1.0),
        ("uniform", 0.6, 0.4, 0.5),
        // Tokens say nothing here: scores of 0 are uniform attention.
        ("input", 0.6, 0.4, 0.5),
    ] {
        let causal = site.rebuilt[name].causal.expect("it was run");
        close(causal.changed, changed);
        close(causal.word_accuracy, right);
        close(causal.content_word_accuracy, content);
        close(causal.phrase_accuracy, if changed == 0.0 { 1.0 } else { 0.0 });
        close(causal.loss, 0.5);
    }
    let halves = report.readout.as_ref().expect("it was run");
    assert_eq!(halves.keys().collect::<Vec<_>>(), ["context", "state"]);
    close(halves["context"].changed, 0.0);
    close(halves["context"].word_accuracy, 1.0);
    close(halves["state"].changed, 0.8);
    close(halves["state"].word_accuracy, 0.2);
    close(report.unchanged.expect("it was run").changed, 0.0);
}

#[test]
fn a_free_rerun_lets_the_model_feed_itself() {
    for (rerun, name, expected) in [(Rerun::Recorded, "recorded", "given"), (Rerun::Live, "live", "given"), (Rerun::Free, "free", "own")] {
        let (report, fed) = copied(rerun);
        assert_eq!(report.rerun.as_deref(), Some(name));
        assert!(fed.len() > 10 && fed.iter().all(|&fed| fed == expected), "{name}: {fed:?}");
    }
}
