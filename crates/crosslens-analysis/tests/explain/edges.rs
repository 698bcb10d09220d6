//! Corpora at the edge of what can be explained.

use std::sync::Mutex;

use crosslens_analysis::explain::{ExplainError, Live, MAX_CELLS, Options, Stop, explain};
use crosslens_analysis::page::sample_bytes;
use crosslens_analysis::report::{Report, ThinStep, ThinToken};
use crosslens_analysis::{
    Answer, Description, Estimator, Fed, FitError, Intervene, Linear, MAX_STEPS, Pair, RecordError, Recordable, Recorded, ScoreMap,
    Shrinkage, Site, SiteKind, Sums, Visible,
};
use safetensors::SafeTensors;
use serde_json::Value;

use super::planted::{D, END, KEY, Plan, Planted, QUERY, Random, affine, dot, every_map, product, rows};
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

/// Before it begins, or from within: what is told of the first pass breaks off the second.
#[test]
fn an_explanation_can_be_broken_off() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let explained = |stop: &Stop, progress: &mut dyn FnMut()| {
        let options = Options { stop: stop.clone(), ..Options::default() };
        explain(&planted, None, &options, &mut |_| progress()).map(drop)
    };
    assert!(explained(&Stop::default(), &mut || ()).is_ok());
    let (stop, mut n_told) = (Stop::default(), 0);
    let ended = explained(&stop, &mut || {
        n_told += 1;
        stop.set();
    });
    assert!(matches!(ended, Err(ExplainError::Stopped)) && n_told == 1, "{ended:?} after {n_told} batches");
    assert!(matches!(explained(&stop, &mut || panic!("nothing is read")), Err(ExplainError::Stopped)));
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

/// Sums of every stream of some sentences.
fn sums(sentences: &[Recorded]) -> Vec<Sums> {
    let mut sums = vec![Sums::new(D); 2];
    for sentence in sentences {
        sums[QUERY].add(&sentence.fed, &sentence.states[QUERY]);
        sums[KEY].add(&sentence.source, &sentence.states[KEY]);
    }
    sums
}

/// The half of a sentence: of every two one, as the number of the two is hashed (Splitmix64's finaliser).
fn is_fitted(number: u64) -> bool {
    let x = (number / 2).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31) ^ number) & 1 == 0
}

fn tables(report: &Report) -> Vec<f64> {
    report.sites[0].shares.as_ref().expect("the terms add up").tables["centred"].concat()
}

/// Held out means: fitted on one half, explained on the other, as if the sums of the one had been given for the other.
#[test]
fn components_come_from_the_other_half() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let held_out = planted.explain(&Options { held_out: true, ..Options::default() }).report;
    let (fitted, explained): (Vec<_>, Vec<_>) = planted.sentences.iter().cloned().partition(|sentence| is_fitted(sentence.number));
    assert_eq!(explained[0].number, 0, "the program puts a sentence that is asked for first");
    assert_eq!((held_out.corpus.pairs, held_out.corpus.fitted_pairs), (explained.len() as u64, fitted.len() as u64));
    let others = Planted { sentences: explained, ..planted.clone() };
    let by_hand = explain(&others, Some(&sums(&fitted)), &Options::default(), &mut |_| ()).expect("an explanation").report;
    let in_sample = others.explain(&Options::default()).report;
    let off = |report: &Report| tables(report).iter().zip(tables(&held_out)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off(&by_hand) < 1e-5, "{}", off(&by_hand));
    assert!(off(&in_sample) > 1e-3, "the same half fits itself better: {}", off(&in_sample));
}

/// Sums that were given may be of any sentences: only where they are those of the ones explained is that known.
#[test]
fn sums_of_the_sentences_explained_are_not_held_out() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let held_out = |given: &[Recorded]| {
        let explained = explain(&planted, Some(&sums(given)), &Options::default(), &mut |_| ()).expect("an explanation");
        explained.report.corpus.held_out
    };
    assert_eq!(planted.explain(&Options::default()).report.corpus.held_out, Some(false));
    assert_eq!(held_out(&planted.sentences), Some(false));
    let turned: Vec<Recorded> = planted.sentences.iter().rev().cloned().collect();
    assert_eq!(held_out(&turned), Some(false), "in whatever order");
    assert_eq!(held_out(&planted.sentences[1..]), None);
    let other = Planted::of(&Plan { seed: 2, ..Plan::default() }, vec![dot()]);
    assert_eq!(held_out(&other.sentences), None);
}

/// Fitted on three steps and two words, explained at five steps and with a third: what is not known has no part, and the rest has it all.
#[test]
fn steps_and_tokens_that_were_not_fitted_are_all_rest() {
    let mut planted = Planted::of(&Plan { n_sentences: 0, lengths: 3..6, ..Plan::default() }, vec![dot()]);
    let mut random = Random::new(3);
    for number in 0..6 {
        let words = if number % 2 == 0 { vec![1, 2, END] } else { vec![2, 1, END] };
        planted.push(number, words.clone(), words, 0.5, &mut random);
    }
    let given = sums(&planted.sentences);
    planted.sentences.clear();
    planted.push(6, vec![1, 2, 1, 3, END], vec![1, 2, 1, 3, END], 0.5, &mut random);
    let explained = explain(&planted, Some(&given), &Options::default(), &mut |_| ()).expect("an explanation");
    assert!(explained.report.sites[0].shares.is_some(), "the terms add up: {:?}", explained.report.sites[0].error);
    let pieces = &explained.samples.sentences[0].pieces[0];
    let at = |query_part: usize, key_part: usize, query: usize, key: usize| pieces[((3 * query_part + key_part) * 5 + query) * 5 + key];
    for part in 0..3 {
        for step in 0..5 {
            // The fourth and the fifth step were never reached.
            for unknown in [3, 4] {
                assert_eq!((at(part, 0, step, unknown), at(0, part, unknown, step)), (0.0, 0.0), "μ at {unknown}");
            }
            // The fourth key is the word 3, and the fifth query was fed it.
            assert_eq!((at(part, 1, step, 3), at(1, part, 4, step)), (0.0, 0.0), "χ");
        }
    }
    assert!(at(2, 2, 4, 3) != 0.0 && at(0, 0, 0, 0) != 0.0 && at(1, 1, 1, 0) != 0.0, "the others have their parts");
}

/// Six sentences of three words and one of five: steps 3 and 4 and the word 3 were seen once.
#[test]
fn rare_steps_and_tokens_are_named() {
    let mut planted = Planted::of(&Plan { n_sentences: 0, lengths: 3..6, ..Plan::default() }, vec![dot()]);
    planted.description.source.names = ["<eos>", "a", "b", "rare"].map(str::to_owned).to_vec();
    let mut random = Random::new(3);
    for number in 0..7 {
        let words = if number < 6 { vec![1, 2, END] } else { vec![1, 2, 1, 3, END] };
        planted.push(number, words.clone(), words, 0.5, &mut random);
    }
    let report = planted.explain(&Options::default()).report;
    for (stream, rare) in report.streams.iter().zip(["#3", "rare"]) {
        assert_eq!((stream.counts.few_steps, stream.counts.few_tokens), (2, 1), "{}", stream.name);
        assert_eq!(stream.thin.steps, [ThinStep { step: 3, count: 1 }, ThinStep { step: 4, count: 1 }]);
        assert_eq!(stream.thin.tokens, [ThinToken { word: rare.into(), count: 1 }]);
    }
    let words = report.streams[KEY].word_variance.as_ref().expect("words seen twice");
    let names: Vec<&str> = words.widest.iter().map(|word| word.word.as_str()).collect();
    assert_eq!(words.words, 2, "the end token is no word, and a word seen once does not vary: {names:?}");
    assert!(words.widest.is_sorted_by(|a, b| a.before >= b.before) && words.widest.len() == 2, "{words:?}");
    assert_eq!(report.streams[KEY].word_variance_ratio, Some(words.after / words.before));
}

#[test]
fn sentences_beyond_the_limits_are_refused_by_their_number() {
    let refused = |n_source: usize, n_target: usize| {
        let mut planted = Planted::of(&Plan { n_sentences: 2, ..Plan::default() }, vec![dot()]);
        let sentence = &mut planted.sentences[1];
        (sentence.source, sentence.fed) = (vec![1; n_source], vec![1; n_target]);
        (sentence.predicted, sentence.target) = (Vec::new(), None);
        sentence.states = vec![vec![0.5; n_target * D], vec![0.5; n_source * D]];
        sentence.attention.clear();
        explain(&planted, None, &Options::default(), &mut |_| ()).expect_err("too long")
    };
    for (n_source, n_target) in [(MAX_STEPS + 1, 2), (2, MAX_STEPS + 1), (MAX_CELLS / 4096 + 1, 4096)] {
        let error = refused(n_source, n_target);
        assert!(matches!(error, ExplainError::TooLong { sentence: 1, .. }), "{error}");
        assert!(error.to_string().contains(&format!("{n_source} source and {n_target} target steps")), "{error}");
    }
}

/// `‖α·(V h + b)‖` of every cell.
#[test]
fn attention_is_weighted_by_the_norms_of_its_values() {
    let mut planted = Planted::of(&Plan::default(), vec![dot(), dot()]);
    let weights = Random::new(8).vector(D * 2, 1.0).iter().map(|&x| x as f32).collect();
    let value = Linear { d_in: D, d_out: 2, weights, bias: vec![0.5, -1.5] };
    planted.description.sites[1].value = Some(value.clone());
    let explained = planted.explain(&Options::default());
    for sample in &explained.samples.sentences {
        let keys = rows(&planted.sentences[sample.sentence.number as usize].states[KEY]);
        let plain: Vec<f64> = keys.iter().map(|h| product(h, h).sqrt()).collect();
        let mapped: Vec<f64> = keys.iter().map(|h| affine(&value, h)).map(|v| product(&v, &v).sqrt()).collect();
        for (site, norms) in [plain, mapped].iter().enumerate() {
            for (place, (found, weight)) in sample.value_weighted[site].iter().zip(&sample.attention[site]).enumerate() {
                let expected = f64::from(*weight) * norms[place % keys.len()];
                assert!((f64::from(*found) - expected).abs() < 1e-5, "site {site}, cell {place}: {found} and {expected}");
            }
        }
    }
}

/// A dump says how its heads score and not what they sum.
#[test]
fn attention_is_not_weighted_by_values_that_are_not_known() {
    let linear = || Linear { d_in: D, d_out: 2, weights: vec![0.5; 2 * D], bias: Vec::new() };
    let map = ScoreMap::Projected { query: linear(), key: linear(), scale: 1.0, position_bias: None };
    let explained = Planted::of(&Plan::default(), vec![map, dot()]).explain(&Options::default());
    assert!(!explained.samples.sentences.is_empty());
    for sample in &explained.samples.sentences {
        assert!(sample.value_weighted[0].is_empty());
        assert_eq!(sample.value_weighted[1].len(), sample.attention[1].len());
        let page = sample_bytes(&explained.samples, sample);
        let arrays = SafeTensors::deserialize(&page).expect("safetensors");
        assert!(arrays.tensor("sites.0.value_norms").is_err() && arrays.tensor("sites.1.value_norms").is_ok());
    }
}

/// The bias of positions and the mean of the queries have intervals too, which hold what was found.
#[test]
fn every_share_has_its_interval() {
    let planted = Planted::of(&Plan { n_sentences: 200, ..Plan::default() }, every_map(3));
    for site in planted.explain(&Options { bootstrap: 200, ..Options::default() }).report.sites {
        let (shares, intervals) = (site.shares.expect("the terms add up"), site.intervals.expect("they were asked for"));
        let found: Vec<f64> = std::iter::once(shares.position_bias).chain(shares.query_mean).collect();
        let all = [&intervals.shares["position_bias"][..], &intervals.shares["query_mean"][..]].concat();
        assert_eq!(all.len(), found.len());
        assert_eq!(all.len(), if site.map == "additive" { 2 } else { 4 });
        for (share, [low, high]) in found.iter().zip(&all) {
            assert!(low <= share && share <= high, "{}: {share} in {low} to {high}", site.map);
            assert_eq!(low == high, *share == 0.0, "{}: {low} to {high}", site.map);
        }
    }
}

#[test]
fn sums_of_no_sentence_are_refused() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let error = explain(&planted, Some(&[Sums::new(D), Sums::new(D)]), &Options::default(), &mut |_| ()).expect_err("nothing to fit");
    assert!(matches!(error, ExplainError::Fit { source: FitError::Empty, .. }), "{error}");
}

#[test]
fn held_out_sentences_are_either_fitted_or_explained() {
    let planted = Planted::of(&Plan::default(), vec![dot()]);
    let corpus = planted.explain(&Options { held_out: true, ..Options::default() }).report.corpus;
    assert!(corpus.held_out == Some(true) && corpus.pairs > 0 && corpus.fitted_pairs > 0);
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
