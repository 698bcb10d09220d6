//! What must hold for the terms, the shares and the report of any corpus.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crosslens_analysis::explain::{Corpus, CorpusError, Live, Options, Rank, explain};
use crosslens_analysis::report::Report;
use crosslens_analysis::{
    Answer, Breakdown, Components, Description, Estimator, Fed, Intervene, Pair, Part, RecordError, Recordable, Recorded, ScoreMap,
    ShareTally, Shrinkage, Signal, SiteSplit, Subset, Sums, Token,
};
use proptest::prelude::*;
use serde_json::Value;

use super::planted::{D, KEY, Plan, Planted, QUERY, Random, Sizes, dot, every_map, rows, score};

/// Corpora of all kinds: short and long, one word or many, parts of any size.
fn plans() -> impl Strategy<Value = Plan> {
    let sizes = (0.0f64..2.0, 0.0f64..2.0, 0.05f64..1.0).prop_map(|(time, token, rest)| Sizes { time, token, rest });
    (0u64..1 << 32, 2usize..24, 1usize..5, 1usize..4, 2usize..6, sizes).prop_map(|(seed, n_sentences, shortest, more, n_words, sizes)| {
        Plan { seed, n_sentences, lengths: shortest..shortest + more, n_words, sizes }
    })
}

/// Numbers of either precision as `f64`.
trait Number: crosslens_kernels::Real {}
impl Number for f32 {}
impl Number for f64 {}

fn components<F: Number>(planted: &Planted, stream: usize, estimator: Estimator) -> Components<F> {
    let (description, mut sums) = (&planted.description, Sums::new(D));
    let stream_of = &description.streams[stream];
    for sentence in &planted.sentences {
        sums.add(&sentence.tokens(stream_of, description.words(stream_of.side)), &sentence.states[stream]);
    }
    sums.fit(estimator, Shrinkage::None).expect("there are states").components
}

/// Largest |sum of pieces − score by the book| over Σ |pieces| + |score|, at every site.
fn error_of_sums<F: Number>(planted: &Planted, estimator: Estimator) -> f64 {
    let (query, key) = (components::<F>(planted, QUERY, estimator), components::<F>(planted, KEY, estimator));
    let (mut breakdown, mut sum, mut worst) = (Breakdown::default(), Vec::new(), 0.0f64);
    for site in &planted.description.sites {
        let split = SiteSplit::new(&planted.description, site, &query, &key).expect("sizes fit");
        let is_additive = site.map.is_additive();
        for sentence in &planted.sentences {
            split.split(sentence, &mut breakdown);
            assert_eq!(breakdown.n_pieces(), if is_additive { 6 } else { 9 });
            let (queries, keys) = (rows(&sentence.states[QUERY]), rows(&sentence.states[KEY]));
            for (q, z) in queries.iter().enumerate() {
                breakdown.sum(Subset::all(is_additive), q, &mut sum);
                for (k, h) in keys.iter().enumerate() {
                    let truth = score(&site.map, z, h, q, k);
                    let size: f64 = (0..breakdown.n_pieces()).map(|piece| breakdown.piece(piece, q)[k].to_f64().abs()).sum();
                    worst = worst.max((sum[k].to_f64() - truth).abs() / (size + truth.abs()).max(1e-3));
                }
            }
        }
    }
    worst
}

/// The tally of some sentences at one site.
fn tally(planted: &Planted, site: usize, sentences: std::ops::Range<usize>) -> ShareTally {
    let (query, key) = (components::<f64>(planted, QUERY, Estimator::Joint), components::<f64>(planted, KEY, Estimator::Joint));
    let site = &planted.description.sites[site];
    let split = SiteSplit::new(&planted.description, site, &query, &key).expect("sizes fit");
    let is_additive = site.map.is_additive();
    let (mut breakdown, mut sum) = (Breakdown::default(), Vec::new());
    let mut tally = ShareTally::new(if is_additive { 6 } else { 9 }, &[1, 3]);
    for sentence in &planted.sentences[sentences] {
        split.split(sentence, &mut breakdown);
        for query in 0..breakdown.n_queries() {
            breakdown.sum(Subset::all(is_additive), query, &mut sum);
            tally.add_row(&breakdown, query, &sum);
        }
    }
    tally
}

fn all_shares(tally: &ShareTally) -> Vec<f64> {
    let top = tally
        .top()
        .into_iter()
        .flat_map(|top| [top.absolute, top.signed, top.centred])
        .flat_map(|top| top.pieces.into_iter().chain([top.bias]));
    tally.centred().into_iter().chain(top).chain(tally.query_mean()).chain([tally.centred_bias(), tally.rows()]).collect()
}

/// The first number in which two reports differ by more than a tolerance, or anything else in which they do.
fn difference(a: &Value, b: &Value, tolerance: f64, path: &str) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().find_map(|(name, value)| difference(value, b.get(name)?, tolerance, &format!("{path}/{name}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(place, (a, b))| difference(a, b, tolerance, &format!("{path}/{place}")))
        }
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64()?, y.as_f64()?);
            ((x - y).abs() > tolerance * (1.0 + x.abs())).then(|| format!("{path}: {x} and {y}"))
        }
        _ => (a != b).then(|| format!("{path}: {a} and {b}")),
    }
}

/// A report as JSON, without the errors of rounding it measured and the words that name numbers.
fn comparable(report: &Report) -> Value {
    let mut value: Value = serde_json::from_str(&report.to_json()).expect("a report is JSON");
    for site in value["sites"].as_array_mut().expect("a list") {
        site["error"] = Value::Null;
        site["verdict"]["text"] = Value::Null;
    }
    value
}

fn everything() -> Options {
    Options {
        estimator: Estimator::Joint,
        bootstrap: 7,
        step_intervals: true,
        rank: Some(Rank::Entropy),
        n_threads: 1,
        ..Options::default()
    }
}

/// An orthogonal matrix of [`D`] dimensions: a product of reflections.
fn rotation(seed: u64) -> impl Fn(&mut [f32]) {
    let mut random = Random::new(seed);
    let mirrors: Vec<Vec<f64>> = (0..4).map(|_| random.vector(D, 1.0)).collect();
    move |state: &mut [f32]| {
        let mut x: Vec<f64> = state.iter().map(|&x| f64::from(x)).collect();
        for mirror in &mirrors {
            let factor = 2.0 * super::planted::product(&x, mirror) / super::planted::product(mirror, mirror);
            x.iter_mut().zip(mirror).for_each(|(x, m)| *x -= factor * m);
        }
        state.iter_mut().zip(x).for_each(|(state, x)| *state = x as f32);
    }
}

fn centred(report: &Report, site: usize) -> Vec<f64> {
    let shares = report.sites[site].shares.as_ref().expect("the terms add up");
    match shares.parts.get("centred") {
        Some(parts) => [parts.query, parts.key].concat(),
        None => shares.tables["centred"].concat(),
    }
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pieces_add_up_to_the_score_of_every_map(plan in plans()) {
        let planted = Planted::of(&plan, every_map(plan.seed));
        for estimator in [Estimator::Paper, Estimator::Joint] {
            let (double, single) = (error_of_sums::<f64>(&planted, estimator), error_of_sums::<f32>(&planted, estimator));
            prop_assert!(double <= 1e-10, "f64: {double}");
            prop_assert!(single <= 1e-5, "f32: {single}");
        }
    }

    /// A query split by itself, as when a model is run again, has the pieces it has among the others.
    #[test]
    fn a_query_alone_has_the_pieces_it_has_among_the_others(plan in plans()) {
        let planted = Planted::of(&plan, every_map(plan.seed));
        let (query, key) = (components::<f64>(&planted, QUERY, Estimator::Paper), components::<f64>(&planted, KEY, Estimator::Paper));
        let (mut all, mut alone) = (Breakdown::default(), Breakdown::default());
        for site in &planted.description.sites {
            let split = SiteSplit::new(&planted.description, site, &query, &key).expect("sizes fit");
            for sentence in &planted.sentences {
                split.split(sentence, &mut all);
                for q in 0..all.n_queries() {
                    split.split_query(sentence, q, &sentence.states[QUERY][q * D..][..D], &sentence.states[KEY], &mut alone);
                    prop_assert_eq!(alone.n_visible(0), all.n_visible(q));
                    prop_assert_eq!(alone.bias(0), all.bias(q));
                    for piece in 0..all.n_pieces() {
                        prop_assert!(furthest(alone.piece(piece, 0), all.piece(piece, q)) < 1e-12);
                    }
                }
            }
        }
    }

    /// `μ + χ + Δ = h`: with one key and one dimension at a time the score is the state, and the three terms of that part its parts.
    #[test]
    fn parts_add_up_to_the_state(plan in plans()) {
        let planted = Planted::of(&plan, vec![dot()]);
        let (query, key) = (components::<f64>(&planted, QUERY, Estimator::Joint), components::<f64>(&planted, KEY, Estimator::Joint));
        let split = SiteSplit::new(&planted.description, &planted.description.sites[0], &query, &key).expect("sizes fit");
        let mut breakdown = Breakdown::default();
        for sentence in &planted.sentences {
            split.split(sentence, &mut breakdown);
            let (queries, keys) = (rows(&sentence.states[QUERY]), rows(&sentence.states[KEY]));
            for (q, z) in queries.iter().enumerate() {
                for (k, h) in keys.iter().enumerate() {
                    for part in Part::ALL {
                        let own = match part {
                            Part::Temporal => key.temporal(k).to_vec(),
                            Part::Input => key.input(sentence.source[k]).to_vec(),
                            Part::Residual => (0..D).map(|i| h[i] - key.temporal(k)[i] - key.input(sentence.source[k])[i]).collect(),
                        };
                        let terms: f64 = (0..3).map(|query_part| breakdown.piece(3 * query_part + part as usize, q)[k]).sum();
                        prop_assert!((terms - super::planted::product(z, &own)).abs() < 1e-10 * (1.0 + terms.abs()), "{part} of the key");
                    }
                }
            }
        }
    }

    #[test]
    fn centred_shares_and_the_position_bias_add_up_to_1(plan in plans()) {
        prop_assume!(plan.lengths.start > 1);
        let report = Planted::of(&plan, every_map(plan.seed)).explain(&Options { n_threads: 1, ..Options::default() }).report;
        for (number, site) in report.sites.iter().enumerate() {
            let total = centred(&report, number).iter().sum::<f64>() + site.shares.as_ref().expect("the terms add up").position_bias;
            prop_assert!((total - 1.0).abs() < 1e-5, "{}: {total}", site.map);
        }
    }

    #[test]
    fn shares_of_two_halves_add_up_to_those_of_the_whole(plan in plans(), cut in 0usize..24) {
        let planted = Planted::of(&plan, every_map(plan.seed));
        let (n, cut) = (planted.sentences.len(), cut.min(planted.sentences.len()));
        for site in 0..planted.description.sites.len() {
            let mut halves = tally(&planted, site, 0..cut);
            halves.add(&tally(&planted, site, cut..n), 1.0);
            prop_assert!(furthest(&all_shares(&halves), &all_shares(&tally(&planted, site, 0..n))) < 1e-9);
        }
    }

    /// Sizes and variance, of the whole and of every step, with what the bias of positions has. A row of one key does not vary.
    #[test]
    fn shares_add_up_to_one_at_every_step(plan in plans()) {
        let planted = Planted::of(&plan, every_map(plan.seed));
        let report = planted.explain(&everything()).report;
        for site in &report.sites {
            let by_step = site.by_step.as_ref().expect("the terms add up");
            for (measure, steps) in by_step.measures.iter().filter(|(measure, _)| !measure.ends_with("_signed")) {
                for (step, pieces) in steps.iter().enumerate() {
                    let bias = by_step.position_bias.get(measure).map_or(0.0, |steps| steps[step]);
                    let total = pieces.iter().sum::<f64>() + bias;
                    let is_still = measure.contains("centred") && pieces.iter().all(|&share| share == 0.0) && bias == 0.0;
                    prop_assert!((total - 1.0).abs() < 1e-3 || is_still, "{}, {measure}, step {step}: {total}", site.map);
                }
            }
            prop_assert_eq!(by_step.query_mean.len(), by_step.rows.len());
            prop_assert_eq!(by_step.position_bias.is_empty(), site.shares.as_ref().expect("the terms add up").position_bias_top.is_empty());
        }
        prop_assert!(report.sites.iter().any(|site| !site.by_step.as_ref().expect("the terms add up").position_bias.is_empty()));
    }

    #[test]
    fn rotating_both_spaces_leaves_the_shares_of_dot_scores(plan in plans()) {
        let planted = Planted::of(&plan, vec![dot(), ScoreMap::Dot { scale: 0.5 }]);
        let mut rotated = planted.clone();
        rotated.change(QUERY, rotation(plan.seed));
        rotated.change(KEY, rotation(plan.seed));
        let (before, after) = (planted.explain(&everything()).report, rotated.explain(&everything()).report);
        for site in 0..2 {
            for name in ["centred", "top1", "top3"] {
                let table = |report: &Report| report.sites[site].shares.as_ref().expect("the terms add up").tables[name].concat();
                prop_assert!(furthest(&table(&before), &table(&after)) < 1e-3, "{name}: {:?} {:?}", table(&before), table(&after));
            }
        }
    }

    /// Softmax ignores what is the same for every key, and so must everything that is said of attention.
    #[test]
    fn a_constant_on_all_keys_changes_no_centred_share_and_no_attention(plan in plans()) {
        let maps: Vec<ScoreMap> = every_map(plan.seed).into_iter().filter(|map| !map.is_additive()).collect();
        let planted = Planted::of(&plan, maps);
        let constant = Random::new(plan.seed).vector(D, 1.0);
        let mut moved = planted.clone();
        moved.change(KEY, |state| state.iter_mut().zip(&constant).for_each(|(x, c)| *x += *c as f32));
        let (before, after) = (planted.explain(&everything()).report, moved.explain(&everything()).report);
        for (site, (was, is)) in before.sites.iter().zip(&after.sites).enumerate() {
            prop_assert!(furthest(&centred(&before, site), &centred(&after, site)) < 1e-3, "{}", was.map);
            for (name, rebuilt) in &was.rebuilt {
                prop_assert!((rebuilt.tv - is.rebuilt[name].tv).abs() < 1e-4, "{}, {name}: {} {}", was.map, rebuilt.tv, is.rebuilt[name].tv);
                prop_assert!((rebuilt.kl - is.rebuilt[name].kl).abs() < 1e-3 * (1.0 + rebuilt.kl), "{}, {name}", was.map);
            }
        }
    }

    #[test]
    fn the_order_of_sentences_is_irrelevant_for_the_whole_report(plan in plans(), turn in 0usize..24) {
        let planted = Planted::of(&plan, every_map(plan.seed));
        let mut turned = planted.clone();
        let n = turned.sentences.len();
        turned.sentences.rotate_left(turn % n);
        turned.sentences.reverse();
        let (one, other) = (planted.explain(&everything()).report, turned.explain(&everything()).report);
        let (mut one, mut other) = (comparable(&one), comparable(&other));
        // Equally bad sentences are listed as they come.
        let values = |report: &Value| report["ranking"]["sentences"].as_array().expect("a list").iter().map(|s| s["value"].clone()).collect::<Vec<_>>();
        let values = (Value::Array(values(&one)), Value::Array(values(&other)));
        prop_assert_eq!(difference(&values.0, &values.1, 1e-4, "ranking"), None);
        (one["ranking"], other["ranking"]) = (Value::Null, Value::Null);
        prop_assert_eq!(difference(&one, &other, 2e-3, ""), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// 150 sentences are three batches.
    #[test]
    fn any_number_of_threads_gives_the_same_report_bit_for_bit(plan in plans()) {
        let planted = Planted::of(&Plan { n_sentences: 150, ..plan }, every_map(plan.seed));
        let text = |n_threads: usize| planted.explain(&Options { n_threads, ..everything() }).report.to_json();
        let one = text(1);
        prop_assert!(one == text(2) && one == text(3));
    }

    #[test]
    fn intervals_hold_the_estimate_and_can_be_repeated(plan in plans()) {
        prop_assume!(plan.lengths.start > 1);
        let planted = Planted::of(&Plan { n_sentences: 60, ..plan }, every_map(plan.seed));
        let options = Options { bootstrap: 200, step_intervals: true, n_threads: 1, ..Options::default() };
        let report = planted.explain(&options).report;
        prop_assert_eq!(&report, &planted.explain(&options).report);
        for (number, site) in report.sites.iter().enumerate() {
            let intervals = site.intervals.as_ref().expect("they were asked for");
            for (share, [low, high]) in centred(&report, number).iter().zip(&intervals.shares["centred"]) {
                prop_assert!(low - 1e-9 <= *share && *share <= high + 1e-9, "{}: {share} in {low}..{high}", site.map);
            }
            let (by_step, of_steps) = (site.by_step.as_ref().expect("the terms add up"), intervals.by_step.as_ref().expect("asked for"));
            for (name, steps) in &by_step.measures {
                for (step, (shares, between)) in steps.iter().zip(&of_steps.measures[name]).enumerate() {
                    prop_assert_eq!(shares.len(), between.len());
                    // A step that one sentence has is drawn or not, but always the same.
                    for (share, [low, high]) in shares.iter().zip(between).filter(|_| by_step.rows[step] >= 20.0) {
                        prop_assert!(low - 1e-9 <= *share && *share <= high + 1e-9, "{} {name} {step}: {share} in {low}..{high}", site.map);
                    }
                }
            }
            for (name, [tv, _, argmax]) in &intervals.rebuilt {
                let rebuilt = &site.rebuilt[name];
                prop_assert!(tv[0] - 1e-9 <= rebuilt.tv && rebuilt.tv <= tv[1] + 1e-9, "{name}: {} in {tv:?}", rebuilt.tv);
                prop_assert!(argmax[0] - 1e-9 <= rebuilt.argmax && rebuilt.argmax <= argmax[1] + 1e-9, "{name}");
            }
        }
    }
}

/// Where all queries are the same, `μ_q` is its own mean: what the mean gives is all that the query's temporal part has.
#[test]
fn the_mean_of_equal_queries_is_all_of_their_temporal_part() {
    let mut planted = Planted::of(&Plan::default(), every_map(3));
    for sentence in &mut planted.sentences {
        sentence.states[QUERY].iter_mut().enumerate().for_each(|(place, x)| *x = [0.5, -1.0, 0.25, 2.0, -0.75][place % D]);
    }
    for (site, described) in planted.description.sites.iter().enumerate() {
        let tally = tally(&planted, site, 0..planted.sentences.len());
        let (mean, centred) = (tally.query_mean(), tally.centred());
        assert_eq!(mean.len(), if described.map.is_additive() { 1 } else { 3 });
        for (part, (mean, share)) in mean.iter().zip(&centred).enumerate() {
            assert!((mean - share).abs() < 1e-9, "{}, part {part}: {mean} and {share}", described.map.name());
            assert!(mean.abs() > 1e-6, "{}, part {part}", described.map.name());
        }
    }
}

/// Sentences that all threads may read, as those of files, and which of them were asked for.
struct InParts<'a> {
    planted: &'a Planted,
    asked: Mutex<Vec<Range<u64>>>,
}

impl Corpus for InParts<'_> {
    fn description(&self) -> &Description {
        self.planted.description()
    }

    fn n_sentences(&self) -> u64 {
        self.planted.n_sentences()
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.asked.lock().expect("no thread has panicked").push(sentences.clone());
        self.planted.read(sentences)
    }

    fn is_read_in_parts(&self) -> bool {
        true
    }

    fn model(&self) -> Option<&dyn Recordable> {
        None
    }
}

/// 150 sentences are three batches, of 64, 64 and 22; both passes read each, a part a thread.
#[test]
fn sentences_read_in_parts_give_the_same_report_bit_for_bit() {
    let planted = Planted::of(&Plan { n_sentences: 150, ..Plan::default() }, every_map(3));
    let whole = planted.explain(&everything()).report.to_json();
    for n_threads in [1, 2, 3] {
        let corpus = InParts { planted: &planted, asked: Mutex::default() };
        let explained = explain(&corpus, None, &Options { n_threads, ..everything() }, &mut |_| ()).expect("sentences");
        assert!(explained.report.to_json() == whole, "{n_threads} threads");
        let asked = corpus.asked.into_inner().expect("no thread has panicked");
        assert_eq!(asked.len(), 2 * 3 * n_threads);
        let mut places: Vec<u64> = asked.into_iter().flatten().collect();
        places.sort_unstable();
        assert_eq!(places, (0..150).flat_map(|place| [place, place]).collect::<Vec<_>>());
    }
}

/// A model that gives back the planted sentence whose number is its signal, and counts those it ran to the end and for their states alone.
struct Sparing {
    planted: Planted,
    whole: AtomicUsize,
    states: AtomicUsize,
}

impl Sparing {
    fn new(planted: Planted) -> Self {
        Self { planted, whole: AtomicUsize::new(0), states: AtomicUsize::new(0) }
    }

    fn pair(number: u64) -> Pair {
        Pair { signal: Some(Signal::new(vec![number as f32])), ..Pair::new(vec![0], vec![0]) }
    }

    fn sentences(&self, pairs: &[Pair]) -> Vec<Recorded> {
        let number = |pair: &Pair| pair.signal.as_ref().expect("its number").values()[0] as usize;
        pairs.iter().map(|pair| self.planted.sentences[number(pair)].clone()).collect()
    }
}

impl Recordable for Sparing {
    fn description(&self) -> &Description {
        &self.planted.description
    }

    fn record(&self, pairs: &[Pair], _: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        self.whole.fetch_add(pairs.len(), Ordering::Relaxed);
        Ok(self.sentences(pairs))
    }

    fn record_states(&self, pairs: &[Pair], _: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        self.states.fetch_add(pairs.len(), Ordering::Relaxed);
        Ok(self.sentences(pairs).into_iter().map(|one| Recorded { predicted: Vec::new(), loss: None, ..one }).collect())
    }

    fn run(&self, _: &[Pair], _: Fed<'_>, _: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        unreachable!("no causal check is asked for")
    }

    fn untrained(&self, _: u64) -> Option<Box<dyn Recordable>> {
        None
    }
}

/// All sentences of a model read whole, whatever a pass needs of them.
struct Lavish<'a>(&'a Live<'a>);

impl Corpus for Lavish<'_> {
    fn description(&self) -> &Description {
        self.0.description()
    }

    fn n_sentences(&self) -> u64 {
        self.0.n_sentences()
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.0.read(sentences)
    }

    fn model(&self) -> Option<&dyn Recordable> {
        self.0.model()
    }
}

/// 150 sentences: all of them for sums, which need no predictions, then the 75 held out, or all where none is.
#[test]
fn a_model_runs_no_more_than_each_pass_needs() {
    let model = Sparing::new(Planted::of(&Plan { n_sentences: 150, ..Plan::default() }, every_map(3)));
    let live = Live { model: &model, pair: &Sparing::pair, n_pairs: 150, fed: Fed::Target };
    for (held_out, n_second) in [(true, 75), (false, 150)] {
        let options = Options { held_out, causal: 0, bootstrap: 20, rank: Some(Rank::Loss), ..Options::default() };
        let report = |corpus: &dyn Corpus| explain(corpus, None, &options, &mut |_| ()).expect("an explanation").report.to_json();
        let counted = || [&model.whole, &model.states].map(|count| count.swap(0, Ordering::Relaxed));
        let lavish = report(&Lavish(&live));
        assert_eq!(counted(), [300, 0]);
        assert!(report(&live) == lavish, "held out: {held_out}");
        assert_eq!(counted(), [n_second, 150], "held out: {held_out}");
    }
}

/// 640 sentences, the second half of which the model gets wrong: 64 of the 320 that are explained are answered, two batches of ten, one from
/// either half.
#[test]
fn sentences_that_are_answered_are_spread_over_the_corpus() {
    let mut planted = Planted::of(&Plan { n_sentences: 640, ..Plan::default() }, every_map(3));
    for (number, sentence) in planted.sentences.iter_mut().enumerate() {
        sentence.predicted = sentence.target.clone().expect("planted");
        if number >= 320 {
            sentence.predicted.iter_mut().for_each(|word| *word = Token::MAX);
        }
    }
    let model = Sparing::new(planted);
    let live = Live { model: &model, pair: &Sparing::pair, n_pairs: 640, fed: Fed::Target };
    let options = |answered| Options { held_out: true, causal: 0, samples: 0, answered, ..Options::default() };
    let report = |answered| explain(&live, None, &options(answered), &mut |_| ()).expect("an explanation").report;
    let some = report(64);
    assert_eq!([&model.whole, &model.states].map(|count| count.load(Ordering::Relaxed)), [64, 640 + 256]);
    assert_eq!(some.corpus.warnings, ["accuracy and loss are of 64 of the 320 sentences that are explained"]);
    assert_eq!(some.task.phrase_accuracy, Some(0.5));
    let all = report(u64::MAX);
    assert!(all.corpus.warnings.is_empty());
    for (one, other) in some.sites.iter().zip(&all.sites) {
        assert_eq!((&one.shares, &one.rebuilt, one.entropy), (&other.shares, &other.rebuilt, other.entropy));
    }
    let none = report(0);
    assert_eq!(none.task.word_accuracy, None);
    assert_eq!(none.corpus.warnings, ["accuracy and loss are of 0 of the 320 sentences that are explained"]);
}

/// The error of a mean falls with the root of their number: sixteen times the sentences, a quarter of the width.
#[test]
fn fewer_sentences_give_wider_intervals() {
    let width = |n_sentences: usize| {
        let planted = Planted::of(&Plan { n_sentences, ..Plan::default() }, vec![dot()]);
        let report = planted.explain(&Options { bootstrap: 200, step_intervals: true, ..Options::default() }).report;
        let intervals = report.sites[0].intervals.clone().expect("they were asked for");
        let width = |between: &[[f64; 2]]| between.iter().map(|[low, high]| high - low).sum::<f64>();
        [width(&intervals.shares["centred"]), width(&intervals.by_step.expect("so were these").measures["centred"][0])]
    };
    for (few, many) in width(40).into_iter().zip(width(640)) {
        assert!(few > 2.5 * many && few < 6.5 * many, "{few} {many}");
    }
}

/// Where every sentence has one query, all of a head is its first step.
#[test]
fn the_intervals_of_the_only_step_are_those_of_the_head() {
    let mut planted = Planted::of(&Plan::default(), every_map(3));
    for sentence in &mut planted.sentences {
        let d = sentence.states[0].len() / sentence.fed.len();
        sentence.states[0].truncate(d);
        sentence.fed.truncate(1);
        sentence.predicted.truncate(1);
        sentence.target.iter_mut().for_each(|target| target.truncate(1));
        sentence.attention.clear();
    }
    let report = planted.explain(&Options { bootstrap: 20, step_intervals: true, ..Options::default() }).report;
    for site in &report.sites {
        let intervals = site.intervals.as_ref().expect("they were asked for");
        let by_step = intervals.by_step.as_ref().expect("so were these");
        assert_eq!(by_step.resamples, [20]);
        for (name, steps) in &by_step.measures {
            assert_eq!(steps[..], [intervals.shares[name].clone()], "{} {name}", site.map);
        }
        assert_eq!(by_step.query_mean[..], [intervals.shares["query_mean"].clone()]);
        for (name, steps) in &by_step.position_bias {
            let of_head = if name == "centred" { intervals.shares["position_bias"][0] } else { intervals.position_bias_top[name] };
            assert_eq!(steps[..], [vec![of_head]], "{} {name}", site.map);
        }
    }
    assert!(
        planted
            .explain(&Options { bootstrap: 3, ..Options::default() })
            .report
            .sites
            .iter()
            .all(|site| { site.intervals.as_ref().is_some_and(|intervals| intervals.by_step.is_none()) })
    );
}

/// Two sentences of one target step: the query is +1 after word 1 and −1 after word 2, so μ_q = 0 and χ_q = ±1; the keys are 1 and 3 at
/// their two steps whatever the word, so χ_k = 0. Every score is the query's input part times the key's temporal part: row 1, column 0,
/// which is called `ti` where the encoder's part comes first.
#[test]
fn rows_are_the_querys_parts_and_columns_the_keys() {
    let mut planted = Planted::of(&Plan { n_sentences: 2, lengths: 2..3, ..Plan::default() }, vec![dot()]);
    let state = |x: f32| [x, 0.0, 0.0, 0.0, 0.0];
    for (number, sentence) in planted.sentences.iter_mut().enumerate() {
        let word = 1 + number as Token;
        (sentence.source, sentence.fed, sentence.predicted, sentence.target) = (vec![3, 3], vec![word], vec![word], Some(vec![word]));
        sentence.states[QUERY] = state(if number == 0 { 1.0 } else { -1.0 }).to_vec();
        sentence.states[KEY] = [state(1.0), state(3.0)].concat();
    }
    (0..2).for_each(|sentence| planted.attend(sentence));
    let report = planted.explain(&Options::default()).report;
    let shares = report.sites[0].shares.as_ref().expect("the terms add up");
    for name in ["centred", "top1", "top1_centred"] {
        assert_eq!(shares.tables[name], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "{name}");
    }
    assert_eq!(report.sites[0].by_step.as_ref().expect("the terms add up").measures["centred"][0][3], 1.0);
}
