//! Corpora at the edge of what can be explained.

use std::sync::Mutex;

use crosslens_analysis::explain::{ExplainError, Live, Options, explain};
use crosslens_analysis::{
    Answer, Description, Estimator, Fed, Intervene, Pair, RecordError, Recordable, Recorded, ScoreMap, Shrinkage, Site, SiteKind, Sums,
    Visible,
};
use serde_json::Value;

use super::planted::{D, KEY, Plan, Planted, QUERY, dot, every_map};
use super::schema::Schema;

fn is_published(planted: &Planted, options: &Options) {
    let report: Value = serde_json::from_str(&planted.explain(options).report.to_json()).expect("a report is JSON");
    assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
}

/// There is nothing to choose, so nothing has a share: numbers all the same, none of them NaN.
#[test]
fn sentences_with_a_single_key() {
    let planted = Planted::of(&Plan { lengths: 1..2, ..Plan::default() }, every_map(1));
    is_published(&planted, &Options { bootstrap: 3, ..Options::default() });
    for site in planted.explain(&Options::default()).report.sites {
        let shares = site.shares.expect("the terms add up");
        assert!(shares.tables.get("centred").is_none_or(|table| table.iter().flatten().all(|&share| share == 0.0)));
        assert_eq!((site.rebuilt["temporal"].argmax, site.average_attention.tv_over_uniform), (1.0, 0.0));
        assert!(site.diagonal.is_none(), "the only step writes the end token");
    }
}

#[test]
fn without_an_end_token_every_step_is_content() {
    let mut planted = Planted::of(&Plan::default(), vec![dot()]);
    (planted.description.source.end, planted.description.target.end) = (None, None);
    let site = planted.explain(&Options::default()).report.sites.remove(0);
    let rebuilt = &site.rebuilt["temporal"];
    assert_eq!((rebuilt.content.tv, rebuilt.content.argmax), (rebuilt.tv, rebuilt.argmax));
}

#[test]
fn predictions_that_were_not_recorded_are_not_taken_for_wrong() {
    let mut planted = Planted::of(&Plan::default(), vec![dot()]);
    planted.sentences.iter_mut().for_each(|sentence| sentence.predicted.clear());
    assert_eq!(planted.explain(&Options::default()).report.task.word_accuracy, None);
    planted.sentences.iter_mut().for_each(|sentence| sentence.target = None);
    let site = planted.explain(&Options::default()).report.sites.remove(0);
    assert!(site.diagonal.is_some(), "where attention looks is known all the same");
    assert_eq!(site.rebuilt["temporal"].content.tv, site.rebuilt["temporal"].tv);
}

#[test]
fn states_and_scores_that_are_no_numbers_are_refused() {
    let refused = |value: f32| {
        let mut planted = Planted::of(&Plan::default(), vec![dot()]);
        planted.sentences[5].states[KEY][2] = value;
        planted.sentences[5].states[QUERY][2] = value;
        explain(&planted, None, &Options::default(), &mut |_| ()).expect_err("no explanation")
    };
    for value in [f32::NAN, f32::INFINITY] {
        let error = refused(value);
        assert!(matches!(&error, ExplainError::States { stream } if stream == "decoder"), "{error}");
    }
    // The means reach every sentence, so that the first is named and not the one to blame.
    let error = refused(1e30);
    assert!(matches!(&error, ExplainError::Scores { kind: "cross", .. }), "{error}");
}

#[test]
fn recorded_attention_that_is_no_number_is_not_exact() {
    let mut planted = Planted::of(&Plan::default(), vec![dot()]);
    planted.sentences[3].attention[0][1] = f32::NAN;
    let site = planted.explain(&Options::default()).report.sites.remove(0);
    assert_eq!((site.shares, site.verdict.label.as_str()), (None, "not exact"));
}

/// A resample that draws no sentence says nothing: it must not pull the interval to 0.
#[test]
fn the_interval_of_one_sentence_is_its_own_value() {
    let planted = Planted::of(&Plan { n_sentences: 1, ..Plan::default() }, vec![dot()]);
    let site = planted.explain(&Options { bootstrap: 50, ..Options::default() }).report.sites.remove(0);
    let intervals = site.intervals.expect("some resamples draw the sentence");
    assert!(intervals.resamples < 50);
    let shares = site.shares.expect("the terms add up").tables["centred"].concat();
    for (share, [low, high]) in shares.iter().zip(&intervals.shares["centred"]) {
        assert!((share - low).abs() < 1e-12 && (share - high).abs() < 1e-12, "{share} {low} {high}");
    }
}

#[test]
fn held_out_sentences_are_either_fitted_or_explained() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let corpus = planted.explain(&Options { held_out: true, ..Options::default() }).report.corpus;
    assert!(corpus.held_out && corpus.pairs > 0 && corpus.fitted_pairs > 0);
    assert_eq!(corpus.pairs + corpus.fitted_pairs, 40);
    let one = Planted::of(&Plan { n_sentences: 1, ..Plan::default() }, vec![dot()]);
    let error = explain(&one, None, &Options { held_out: true, ..Options::default() }, &mut |_| ()).expect_err("one half is empty");
    assert!(matches!(error, ExplainError::Fit { .. }), "{error}");
}

/// Every head is explained by its own map, and no head by another's: alone it gets the same report.
#[test]
fn heads_do_not_disturb_each_other() {
    let maps = every_map(4);
    let together = Planted::of(&Plan::default(), maps.clone()).explain(&Options::default()).report.sites;
    for (together, map) in together.into_iter().zip(maps) {
        let mut alone = Planted::of(&Plan::default(), vec![map]).explain(&Options::default()).report.sites.remove(0);
        alone.head = together.head;
        assert_eq!(alone, together);
    }
}

/// A model that gives back what was planted, and keeps what an intervention makes of the values at its second site.
struct Puppet {
    planted: Planted,
    seen: Mutex<Vec<Vec<Vec<f32>>>>,
}

impl Recordable for Puppet {
    fn description(&self) -> &Description {
        &self.planted.description
    }

    fn record(&self, pairs: &[Pair], _: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        Ok(self.planted.sentences[..pairs.len()].to_vec())
    }

    fn run(&self, pairs: &[Pair], _: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        let sentences = &self.planted.sentences[..pairs.len()];
        let values = sentences.iter().enumerate().map(|(pair, sentence)| {
            let mut states = sentence.states[QUERY].clone();
            how.values(1, pair, &mut states);
            states
        });
        self.seen.lock().expect("nobody panicked").push(values.collect());
        Ok(pairs.iter().map(|pair| Answer { predicted: pair.target.clone(), loss: 0.0 }).collect())
    }

    fn untrained(&self, _: u64) -> Option<Box<dyn Recordable>> {
        None
    }
}

/// Values at a site that reads the decoder's states are made of the decoder's parts, whatever the first site reads.
#[test]
fn values_are_ablated_with_the_parts_of_their_own_stream() {
    let mut planted = Planted::of(&Plan { n_sentences: 20, ..Plan::default() }, vec![dot()]);
    let map = ScoreMap::Dot { scale: 0.5 };
    let (kind, visible) = (SiteKind::DecoderSelf, Visible::Causal);
    planted.description.sites.push(Site { kind, layer: 0, head: 0, query: QUERY, key: QUERY, map, visible, value: None });
    (0..20).for_each(|sentence| planted.attend(sentence));
    let mut sums = Sums::new(D);
    planted.sentences.iter().for_each(|sentence| sums.add(&sentence.fed, &sentence.states[QUERY]));
    let fit = sums.fit::<f32>(Estimator::Paper, Shrinkage::None).expect("there are states").components;
    let pairs: Vec<Pair> = planted
        .sentences
        .iter()
        .map(|sentence| Pair::new(sentence.source.clone(), sentence.target.clone().expect("planted with a target")))
        .collect();
    let puppet = Puppet { planted, seen: Mutex::default() };
    let pair = |number: u64| pairs[number as usize].clone();
    let corpus = Live { model: &puppet, pair: &pair, n_pairs: 20, fed: Fed::Own };
    let report = explain(&corpus, None, &Options::default(), &mut |_| ()).expect("an explanation").report;
    assert_eq!(report.sites[1].verdict.label, "unused", "a puppet needs no attention");
    assert_eq!(Schema::of_reports().faults(&serde_json::from_str(&report.to_json()).expect("JSON")), Vec::<String>::new());

    // The last four runs keep: temporal, input, input and residual, temporal and input.
    let seen = puppet.seen.into_inner().expect("nobody panicked");
    let temporal = &seen[seen.len() - 4];
    for states in temporal {
        for (step, state) in states.chunks_exact(D).enumerate() {
            assert_eq!(state, fit.temporal(step), "step {step}");
        }
    }
}
