//! Networks as subjects: what is recorded explains what happened, and an intervention does what it says and nothing else.

use std::sync::Mutex;

use super::common::{SOURCE_WORDS, TARGET_WORDS, all_configs, name, network, pairs, weights};
use crosslens_analysis::{
    Answer, AttentionRow, Consumed, Fed, Intervene, Linear, Outcome, Pair, RecordError, Recordable, Recorded, ScoreMap, Site, Token,
    Untouched, Vocabulary,
};
use crosslens_nets::network::{Engine, Family, Feeding, Inputs, Network, NetworkConfig, Score};
use crosslens_nets::{FedError, Subject};

/// Places of the streams.
const ENCODER: usize = 0;
const DECODER: usize = 1;

/// Single precision against double: about 1e-7 for each of a few hundred sums.
const TOLERANCE: f64 = 1e-5;

/// A network and itself as a subject.
struct Case {
    config: NetworkConfig,
    network: Network,
    weights: Vec<f32>,
    subject: Subject,
}

impl Case {
    fn new(config: &NetworkConfig, n_threads: usize) -> Self {
        let network = network(config);
        let weights: Vec<f32> = weights(&network, 11).into_iter().map(|weight| weight as f32).collect();
        let subject = subject(network.clone(), weights.clone(), n_threads);
        Self { config: config.clone(), network, weights, subject }
    }

    fn record(&self, pairs: &[Pair], fed: Fed<'_>) -> Vec<Recorded> {
        self.subject.record(pairs, fed).expect("words it knows")
    }

    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Vec<Answer> {
        self.subject.run(pairs, fed, how).expect("words it knows")
    }

    fn sites(&self) -> &[Site] {
        &self.subject.description().sites
    }

    fn tensor(&self, name: &str) -> Option<&[f32]> {
        let tensor = self.network.layout().tensors().iter().find(|tensor| tensor.name == name)?;
        Some(&self.weights[tensor.range()])
    }

    /// The context of one step, from each head's weights and the states it sums, by `docs/math.md`.
    fn context<'a>(&self, heads: impl Iterator<Item = (&'a [f32], &'a [f32])>) -> Vec<f64> {
        let mut joined = Vec::new();
        for (site, (weights, states)) in self.sites().iter().zip(heads) {
            let values = states.chunks_exact(states.len() / weights.len()).map(|state| match &site.value {
                Some(value) => apply(value, state),
                None => state.iter().map(|&x| f64::from(x)).collect(),
            });
            joined.push(weighted_sum(weights, values));
        }
        let joined = joined.concat();
        let Some(mix) = self.tensor("attention.mix") else { return joined };
        let n = self.config.hidden;
        let mixed = joined.iter().zip(mix.chunks_exact(n)).fold(vec![0.0; n], |sum, (&x, row)| add_scaled(sum, x, row));
        self.tensor("attention.mix_bias").map_or(mixed.clone(), |bias| add_scaled(mixed, 1.0, bias))
    }

    /// Mean cross-entropy of a recorded sentence whose step `step` has the context `context(step)`.
    fn loss(&self, recorded: &Recorded, context: impl Fn(usize) -> Vec<f64>) -> f64 {
        let readout = self.subject.description().readout.as_ref().expect("a linear readout");
        let target = recorded.target.as_ref().expect("a target");
        let n = self.config.hidden;
        let loss_of = |step: usize| {
            let state = recorded.states[DECODER][step * n..][..n].iter().map(|&x| f64::from(x));
            let input: Vec<f64> = state.take(readout.d_state).chain(context(step)).collect();
            assert_eq!(input.len(), readout.d_state + readout.d_context, "what the readout reads");
            let logits = apply_f64(&readout.map, &input);
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[target[step] as usize]
        };
        (0..target.len()).map(loss_of).sum::<f64>() / target.len() as f64
    }
}

fn subject(network: Network, weights: Vec<f32>, n_threads: usize) -> Subject {
    Subject::new(network, weights, &words(SOURCE_WORDS), &words(TARGET_WORDS), n_threads).expect("threads")
}

/// Words of which the last ends a sentence.
fn words(n: usize) -> Vocabulary {
    let names = (0..n - 1).map(|number| format!("w{number}")).chain(["<eos>".to_owned()]);
    Vocabulary::new(names).expect("distinct words")
}

fn cases() -> impl Iterator<Item = Case> {
    all_configs().into_iter().map(|config| Case::new(&config, 1))
}

/// Networks in which contexts change no state, so that the recorded states stay those of a changed run.
fn cases_without_feedback() -> impl Iterator<Item = Case> {
    cases().filter(|case| matches!(case.config.family, Family::Aed | Family::Ao))
}

fn given(recorded: &[Recorded]) -> Vec<Vec<Token>> {
    recorded.iter().map(|recorded| recorded.fed.clone()).collect()
}

fn answers(recorded: &[Recorded]) -> Vec<Answer> {
    let answer = |seen: &Recorded| Answer { predicted: seen.predicted.clone(), loss: seen.loss.expect("a target") };
    recorded.iter().map(answer).collect()
}

fn add_scaled(mut sum: Vec<f64>, factor: f64, row: &[f32]) -> Vec<f64> {
    sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += factor * f64::from(x));
    sum
}

fn weighted_sum(weights: &[f32], mut values: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    for &weight in weights {
        let value = values.next().expect("a value for every weight");
        sum.resize(value.len(), 0.0);
        sum.iter_mut().zip(value).for_each(|(sum, x)| *sum += f64::from(weight) * x);
    }
    sum
}

fn apply_f64(linear: &Linear, x: &[f64]) -> Vec<f64> {
    assert_eq!((x.len(), linear.weights.len()), (linear.d_in, linear.d_in * linear.d_out));
    let start = if linear.bias.is_empty() { vec![0.0; linear.d_out] } else { linear.bias.iter().map(|&b| f64::from(b)).collect() };
    x.iter().zip(linear.weights.chunks_exact(linear.d_out)).fold(start, |sum, (&x, row)| add_scaled(sum, x, row))
}

fn apply(linear: &Linear, x: &[f32]) -> Vec<f64> {
    apply_f64(linear, &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The score of two states, by the definition of [`ScoreMap`].
fn score(map: &ScoreMap, query: &[f32], key: &[f32]) -> f64 {
    let double = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    match map {
        ScoreMap::Dot { scale } => dot(&double(query), &double(key)) * f64::from(*scale),
        ScoreMap::Bilinear { query: map } => dot(&apply(map, query), &double(key)),
        ScoreMap::Projected { query: q, key: k, scale, .. } => dot(&apply(q, query), &apply(k, key)) * f64::from(*scale),
        ScoreMap::Additive { query: q, key: k, vector } => {
            let sums = apply(q, query).into_iter().zip(apply(k, key)).map(|(q, k)| (q + k).tanh());
            dot(&sums.collect::<Vec<_>>(), &double(vector))
        }
    }
}

/// Attention weights of one query over all keys `[key, d]`.
fn attention(map: &ScoreMap, query: &[f32], keys: &[f32], n_keys: usize) -> Vec<f64> {
    let scores = keys.chunks_exact(keys.len() / n_keys).map(|key| score(map, query, key).exp());
    let exponentials: Vec<f64> = scores.collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|x| x / sum).collect()
}

fn largest_difference(exact: &[f64], ours: &[f32]) -> f64 {
    assert_eq!(exact.len(), ours.len());
    exact.iter().zip(ours).map(|(&a, &b)| (a - f64::from(b)).abs()).fold(0.0, f64::max)
}

/// The three architectures of the paper, of n units: without attention the readout reads the decoder's state (n numbers), with it context and
/// state (2n), and without recurrence the context alone (n). Only the last encodes positions: it has no other way to tell steps apart.
#[test]
fn readouts_are_as_wide_as_their_architecture_says_and_only_ao_encodes_positions() {
    let n = 6;
    for (family, d_state, d_context) in [(Family::Ved, n, 0), (Family::Aed, n, n), (Family::Ao, 0, n)] {
        let config = NetworkConfig { hidden: n, ..NetworkConfig::of(family) };
        assert_eq!(config.positions.is_some(), family == Family::Ao, "{}", family.name());
        let case = Case::new(&config, 1);
        let readout = case.subject.description().readout.as_ref().expect("a linear readout");
        assert_eq!((readout.d_state, readout.d_context), (d_state, d_context), "{}", family.name());
        let tensor = case.network.layout().tensors().iter().find(|tensor| tensor.name == "readout").expect("a readout");
        assert_eq!(tensor.shape, [d_state + d_context, TARGET_WORDS], "{}", family.name());
    }
    let mut config = NetworkConfig { hidden: n, ..NetworkConfig::of(Family::Ao) };
    // The same word at every step: by how much does its state change?
    let change = |config: &NetworkConfig| {
        let recorded = Case::new(config, 1).record(&[Pair::new(vec![1, 1, 1], vec![0])], Fed::Target).remove(0);
        let states: Vec<&[f32]> = recorded.states[ENCODER].chunks_exact(n).collect();
        states[2].iter().zip(states[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(change(&config) > 1e-3, "{}", change(&config));
    config.positions.as_mut().expect("those of AO").amplitude = 0.0;
    assert!(change(&config) < 1e-6, "{}", change(&config));
}

#[test]
fn states_and_score_maps_reproduce_the_attention() {
    let pairs = pairs(6, 6, 1);
    for case in cases() {
        let (name, n) = (name(&case.config), case.config.hidden);
        let description = case.subject.description();
        assert_eq!(case.sites().len(), if case.config.score.is_some() { case.config.heads } else { 0 }, "{name}");
        for (pair, seen) in pairs.iter().zip(case.record(&pairs, Fed::Own)) {
            assert_eq!(seen.states[ENCODER].len(), pair.source.len() * description.streams[ENCODER].d, "{name}");
            assert_eq!(seen.states[DECODER].len(), pair.target.len() * description.streams[DECODER].d, "{name}");
            assert_eq!(seen.attention.len(), case.sites().len(), "{name}");
            for (site, weights) in case.sites().iter().zip(&seen.attention) {
                let queries = seen.states[site.query].chunks_exact(n);
                let exact: Vec<f64> = queries.flat_map(|z| attention(&site.map, z, &seen.states[site.key], pair.source.len())).collect();
                assert!(largest_difference(&exact, weights) <= TOLERANCE, "{name}, head {}: {exact:?} and {weights:?}", site.head);
            }
        }
    }
}

#[test]
fn score_maps_have_the_name_of_the_score() {
    for case in cases() {
        let names: Vec<&str> = case.sites().iter().map(|site| site.map.name()).collect();
        let name = case.config.score.map(|score| if score == Score::Qkv { "projected" } else { score.name() });
        assert!(names.iter().all(|&of_site| Some(of_site) == name), "{names:?} and {name:?}");
    }
}

/// The engine without a hook is what training and evaluation use.
#[test]
fn recording_sees_what_the_engine_does() {
    let pairs = pairs(20, 6, 2);
    let mut engine = Engine::new(1).expect("one thread");
    for case in cases() {
        for (fed, feeding) in [(Fed::Own, Feeding::Free), (Fed::Target, Feeding::Forced)] {
            let recorded = case.record(&pairs, fed);
            let observed = engine.observe(&case.network, &case.weights, &pairs, feeding);
            for (seen, observed) in recorded.iter().zip(&observed) {
                assert_eq!((&seen.fed, &seen.predicted), (&observed.fed, &observed.predicted));
                assert_eq!((&seen.states[ENCODER], seen.attention.concat()), (&observed.encoder, observed.attention.clone()));
            }
            let outcomes = answers(&recorded).into_iter().zip(&pairs).map(|(answer, pair)| answer.outcome(&pair.target));
            let total = outcomes.fold(Outcome::default(), |total, outcome| total.with(&outcome));
            let expected = engine.evaluate(&case.network, &case.weights, &pairs, feeding);
            assert!((total.loss - expected.loss).abs() < 1e-12, "{}: {total:?} and {expected:?}", name(&case.config));
            assert_eq!(Outcome { loss: expected.loss, ..total }, expected, "{}", name(&case.config));
        }
    }
}

#[test]
fn the_decoder_stream_holds_the_states_that_ask() {
    let pairs = pairs(5, 6, 3);
    let mut engine = Engine::new(1).expect("one thread");
    for case in cases() {
        let (stream, n) = (&case.subject.description().streams[DECODER], case.config.hidden);
        let observed = engine.observe(&case.network, &case.weights, &pairs, Feeding::Free);
        for (seen, observed) in case.record(&pairs, Fed::Own).iter().zip(&observed) {
            match stream.consumed {
                Consumed::Current => assert_eq!(seen.states[DECODER], observed.decoder, "{}", name(&case.config)),
                Consumed::Previous => {
                    assert_eq!(case.config.family, Family::Bahdanau);
                    assert_eq!(seen.states[DECODER][n..], observed.decoder[..observed.decoder.len() - n]);
                    let tokens = seen.tokens(stream, &case.subject.description().target);
                    assert_eq!(tokens[0], case.subject.description().target.init());
                }
            }
        }
    }
}

#[test]
fn running_untouched_on_the_recorded_input_gives_the_recorded_answers() {
    let pairs = pairs(20, 6, 4);
    for case in cases() {
        for fed in [Fed::Own, Fed::Target] {
            let recorded = case.record(&pairs, fed);
            assert!(recorded.iter().all(|seen| seen.fed[0] == case.network.start_token()));
            let again = case.run(&pairs, Fed::Given(&given(&recorded)), &Untouched);
            assert_eq!(again, answers(&recorded), "{}", name(&case.config));
            assert_eq!(case.record(&pairs, Fed::Given(&given(&recorded))), recorded, "{}", name(&case.config));
        }
    }
}

/// More words than a table of all of them holds, so that those given must be asked for: none of them stands in a target.
#[test]
fn given_words_are_read_even_where_no_target_has_them() {
    const MANY: usize = 3000;
    let config = NetworkConfig { hidden: 3, inputs: Inputs::Embedding { size: 2 }, ..NetworkConfig::of(Family::Aed) };
    let network = Network::new(&config, SOURCE_WORDS, MANY, 0).expect("a network with many words");
    let weights = network.draw_weights(3);
    let subject = Subject::new(network, weights, &words(SOURCE_WORDS), &words(MANY), 1).expect("one thread");
    let pairs = pairs(20, 6, 5);
    let mut others = pairs.clone();
    others.iter_mut().for_each(|pair| pair.target.iter_mut().for_each(|token| *token = 2000 + 7 * *token));
    let forced = subject.record(&others, Fed::Target).expect("words it knows");
    let read = subject.record(&pairs, Fed::Given(&given(&forced))).expect("words it knows");
    for (forced, read) in forced.iter().zip(&read) {
        assert_eq!((&read.fed, &read.states, &read.attention), (&forced.fed, &forced.states, &forced.attention));
        assert_ne!(read.target, forced.target);
    }
}

/// Uses the recorded weights.
struct Replay<'a>(&'a [Recorded]);

impl Intervene for Replay<'_> {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        weights.copy_from_slice(&self.0[row.pair].attention[row.site][row.query * weights.len()..][..weights.len()]);
    }
}

/// Looks at every key alike.
struct Uniform;

impl Intervene for Uniform {
    fn weights(&self, _: AttentionRow<'_>, weights: &mut [f32]) {
        weights.fill(1.0 / weights.len() as f32);
    }
}

#[test]
fn the_recorded_weights_change_nothing() {
    let pairs = pairs(20, 6, 6);
    for case in cases() {
        for fed in [Fed::Own, Fed::Target] {
            let recorded = case.record(&pairs, fed);
            assert_eq!(case.run(&pairs, fed, &Replay(&recorded)), answers(&recorded), "{}", name(&case.config));
        }
    }
}

#[test]
fn uniform_weights_read_the_mean_of_the_values() {
    let pairs = pairs(6, 6, 7);
    for case in cases_without_feedback() {
        let recorded = case.record(&pairs, Fed::Target);
        let changed = case.run(&pairs, Fed::Target, &Uniform);
        assert_ne!(changed, answers(&recorded), "{}: nothing changed", name(&case.config));
        for (seen, answer) in recorded.iter().zip(&changed) {
            let uniform = vec![1.0 / seen.source.len() as f32; seen.source.len()];
            let heads = || case.sites().iter().map(|_| (&uniform[..], &seen.states[ENCODER][..]));
            let expected = case.loss(seen, |_| case.context(heads()));
            assert!((answer.loss - expected).abs() <= TOLERANCE, "{}: {} and {expected}", name(&case.config), answer.loss);
        }
    }
}

/// Weights rebuilt from the states of the row, as a live intervention does it, are the weights that come with it.
#[test]
fn a_row_comes_with_the_states_that_made_it() {
    struct Rebuilt<'a>(&'a [Site]);
    impl Intervene for Rebuilt<'_> {
        fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
            let exact = attention(&self.0[row.site].map, row.query_state, row.key_states, weights.len());
            assert!(largest_difference(&exact, weights) <= TOLERANCE, "site {}: {exact:?} and {weights:?}", row.site);
        }
    }
    let pairs = pairs(6, 6, 8);
    for case in cases() {
        for fed in [Fed::Own, Fed::Target] {
            case.run(&pairs, fed, &Rebuilt(case.sites()));
        }
    }
}

/// Sums something else in the last head.
struct LastValues {
    site: usize,
    factor: f32,
}

impl Intervene for LastValues {
    fn values(&self, site: usize, _: usize, states: &mut [f32]) {
        if site == self.site {
            states.iter_mut().for_each(|x| *x *= self.factor);
        }
    }
}

#[test]
fn values_are_replaced_head_by_head_and_scores_stay() {
    let pairs = pairs(6, 6, 9);
    for case in cases_without_feedback() {
        let recorded = case.record(&pairs, Fed::Target);
        let site = case.sites().len() - 1;
        let changed = case.run(&pairs, Fed::Target, &LastValues { site, factor: -2.0 });
        for (seen, answer) in recorded.iter().zip(&changed) {
            let own = &seen.states[ENCODER];
            let scaled: Vec<f32> = own.iter().map(|&x| -2.0 * x).collect();
            let n_keys = seen.source.len();
            let row = |head: usize, step: usize| &seen.attention[head][step * n_keys..][..n_keys];
            let expected = case.loss(seen, |step| {
                case.context((0..=site).map(|head| (row(head, step), if head == site { &scaled[..] } else { &own[..] })))
            });
            assert!((answer.loss - expected).abs() <= TOLERANCE, "{}: {} and {expected}", name(&case.config), answer.loss);
        }
    }
}

/// Leaves the readout without a context.
struct NoContext;

impl Intervene for NoContext {
    fn readout(&self, _: usize, _: usize, _: &mut [f32], context: &mut [f32]) {
        context.fill(0.0);
    }
}

#[test]
fn values_of_zero_and_no_context_both_leave_the_state_alone() {
    let pairs = pairs(6, 6, 10);
    for case in cases_without_feedback().filter(|case| case.config.heads == 1) {
        let recorded = case.record(&pairs, Fed::Target);
        let n = case.subject.description().readout.as_ref().expect("a linear readout").d_context;
        let without_values = case.run(&pairs, Fed::Target, &LastValues { site: 0, factor: 0.0 });
        assert_eq!(without_values, case.run(&pairs, Fed::Target, &NoContext), "{}", name(&case.config));
        for (seen, answer) in recorded.iter().zip(&without_values) {
            let expected = case.loss(seen, |_| vec![0.0; n]);
            assert!((answer.loss - expected).abs() <= TOLERANCE, "{}: {} and {expected}", name(&case.config), answer.loss);
        }
    }
}

#[test]
fn the_readout_is_shown_in_its_two_parts() {
    struct Widths(usize, usize);
    impl Intervene for Widths {
        fn readout(&self, _: usize, _: usize, state: &mut [f32], context: &mut [f32]) {
            assert_eq!((state.len(), context.len()), (self.0, self.1));
        }
    }
    let pairs = pairs(3, 4, 11);
    for case in cases() {
        let n = case.config.hidden;
        let widths = match &case.subject.description().readout {
            Some(readout) => Widths(readout.d_state, readout.d_context),
            None => Widths(n, 0),
        };
        assert_eq!(case.subject.description().readout.is_none(), case.config.family == Family::Luong);
        case.run(&pairs, Fed::Own, &widths);
    }
}

/// Changes everything that can be changed, by what is seen alone and not by its place in the batch; at one pair only, if so told.
struct Meddle(Option<usize>);

impl Meddle {
    fn acts_on(&self, pair: usize) -> bool {
        self.0.is_none_or(|only| only == pair)
    }
}

impl Intervene for Meddle {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if self.acts_on(row.pair) {
            weights.rotate_left((row.query + row.site + usize::from(row.query_state[0] > 0.0)) % weights.len());
        }
    }

    fn values(&self, site: usize, pair: usize, states: &mut [f32]) {
        if self.acts_on(pair) {
            states.iter_mut().enumerate().for_each(|(place, x)| *x = 1.5 * *x + 0.01 * (place + site) as f32);
        }
    }

    fn readout(&self, pair: usize, query: usize, state: &mut [f32], context: &mut [f32]) {
        if self.acts_on(pair) {
            state.iter_mut().chain(context).for_each(|x| *x *= 1.0 + query as f32);
        }
    }
}

/// A few of every family: more pairs than one batch holds take their time.
fn some_configs() -> impl Iterator<Item = NetworkConfig> {
    all_configs().into_iter().step_by(13)
}

#[test]
fn threads_and_neighbours_change_no_bit() {
    let pairs = pairs(600, 7, 12);
    for config in some_configs() {
        let cases = [1, 2, 3].map(|n_threads| Case::new(&config, n_threads));
        let recorded = cases.each_ref().map(|case| case.record(&pairs, Fed::Own));
        let run = cases.each_ref().map(|case| case.run(&pairs, Fed::Own, &Meddle(None)));
        assert_ne!(run[0], answers(&recorded[0]), "{}: nothing changed", name(&config));
        for other in [1, 2] {
            assert_eq!(recorded[0], recorded[other], "{}", name(&config));
            assert_eq!(run[0], run[other], "{}", name(&config));
        }
        for place in [0, 17, 255, 256, 300, 599] {
            let alone = &pairs[place..=place];
            let seen = Recorded { number: 0, ..recorded[0][place].clone() };
            assert_eq!((recorded[0][place].number, cases[0].record(alone, Fed::Own)), (place as u64, vec![seen]), "{}", name(&config));
            assert_eq!(cases[0].run(alone, Fed::Own, &Meddle(None))[0], run[0][place], "{}", name(&config));
        }
    }
}

#[test]
fn an_intervention_on_one_pair_leaves_all_others_as_they_were() {
    let pairs = pairs(600, 7, 13);
    for config in some_configs() {
        let case = Case::new(&config, 2);
        let untouched = case.run(&pairs, Fed::Own, &Untouched);
        for only in [3, 300] {
            let mut changed = case.run(&pairs, Fed::Own, &Meddle(Some(only)));
            assert_eq!(changed[only], case.run(&pairs[only..=only], Fed::Own, &Meddle(None))[0], "{}", name(&config));
            assert_ne!(changed[only], untouched[only], "{}", name(&config));
            changed[only] = untouched[only].clone();
            assert_eq!(changed, untouched, "{}", name(&config));
        }
    }
}

/// Looks at the last key alone at the first step, and keeps the state that asks at the third.
#[derive(Default)]
struct FirstStep {
    acts: bool,
    seen: Mutex<Vec<f32>>,
}

impl Intervene for FirstStep {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        match row.query {
            0 if self.acts => {
                weights.fill(0.0);
                weights[weights.len() - 1] = 1.0;
            }
            2 => *self.seen.lock().expect("no panic") = row.query_state.to_vec(),
            _ => {}
        }
    }
}

#[test]
fn changed_attention_reaches_later_states_where_it_is_fed_back() {
    let pairs = [Pair::new(vec![0, 2, 1, 3], vec![1, 0, 4, 2])];
    for case in cases().filter(|case| case.config.score.is_some()) {
        let recorded = case.record(&pairs, Fed::Own);
        let fed = given(&recorded);
        let state_after = |acts: bool, fed: Fed<'_>| {
            let step = FirstStep { acts, seen: Mutex::default() };
            case.run(&pairs, fed, &step);
            step.seen.into_inner().expect("no panic")
        };
        let is_fed_back = case.config.family == Family::Bahdanau || case.config.input_feeding;
        assert_eq!(state_after(true, Fed::Given(&fed)) != state_after(false, Fed::Given(&fed)), is_fed_back, "{}", name(&case.config));
        if is_fed_back {
            assert_ne!(state_after(true, Fed::Own), state_after(false, Fed::Own), "{}", name(&case.config));
        }
    }
}

/// The first step's readout is replaced by one that prefers another word, so that the decoder reads that word next.
#[test]
fn a_changed_word_is_read_at_the_next_step() {
    struct Negated;
    impl Intervene for Negated {
        fn readout(&self, _: usize, query: usize, state: &mut [f32], context: &mut [f32]) {
            if query == 0 {
                state.iter_mut().chain(context).for_each(|x| *x *= -1.0);
            }
        }
    }
    let pairs = [Pair::new(vec![0, 2, 1, 3], vec![1, 0, 4, 2])];
    for config in all_configs().into_iter().filter(|config| !config.readout_bias) {
        let case = Case::new(&config, 1);
        let (own, changed) = (&case.run(&pairs, Fed::Own, &Untouched)[0], &case.run(&pairs, Fed::Own, &Negated)[0]);
        assert_ne!(own.predicted[0], changed.predicted[0], "{}", name(&config));
        let mut fed = vec![case.network.start_token()];
        fed.extend(&changed.predicted[..3]);
        assert_eq!(changed, &case.run(&pairs, Fed::Given(&[fed]), &Negated)[0], "{}", name(&config));
    }
}

#[test]
fn unknown_words_and_empty_sentences_are_errors() {
    let case = Case::new(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Aed) }, 1);
    let refused = |source: &[Token], target: &[Token], fed: Fed<'_>| {
        let pairs = [Pair::new(vec![0], vec![0]), Pair::new(source.to_vec(), target.to_vec())];
        let run = case.subject.run(&pairs, fed, &Untouched).expect_err("a pair that makes no sense");
        let recorded = case.subject.record(&pairs, fed).expect_err("a pair that makes no sense");
        assert_eq!(run.to_string(), recorded.to_string());
        run
    };
    let message = |source: &[Token], target: &[Token], fed: Fed<'_>| refused(source, target, fed).to_string();
    let (start, beyond) = (TARGET_WORDS as Token, TARGET_WORDS as Token + 1);
    assert_eq!(message(&[1, 4], &[1], Fed::Own), "pair 1: token 4 of the source is not among the model's 4");
    assert_eq!(message(&[1], &[0, start], Fed::Own), "pair 1: token 5 of the target is not among the model's 5");
    assert_eq!(message(&[1], &[u32::MAX], Fed::Target), format!("pair 1: token {} of the target is not among the model's 5", u32::MAX));
    assert_eq!(message(&[], &[1], Fed::Own), "pair 1: the source is empty");
    assert_eq!(message(&[1], &[], Fed::Target), "pair 1: the target is empty");

    let fed = [vec![start], vec![beyond]];
    assert_eq!(message(&[1], &[1], Fed::Given(&fed)), "pair 1: token 6 of the decoder's input is not among the model's 6");
    let own_reason = |error: RecordError| match error {
        RecordError::Model(reason) => *reason.downcast::<FedError>().expect("what is wrong with the fed tokens"),
        other => panic!("{other}"),
    };
    assert_eq!(own_reason(refused(&[1], &[1], Fed::Given(&fed[..1]))), FedError::Pairs { lists: 1, pairs: 2 });
    assert_eq!(own_reason(refused(&[1], &[1, 2], Fed::Given(&fed))), FedError::Steps { pair: 1, fed: 1, steps: 2 });
    assert_eq!(case.run(&[], Fed::Own, &Untouched), []);
}

#[test]
fn words_are_named_and_the_start_token_is_one_of_them() {
    let case = Case::new(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Aed) }, 1);
    let description = case.subject.description();
    assert_eq!((description.source.count, description.target.count), (4, 6));
    assert_eq!((description.source.end, description.target.end), (Some(3), Some(4)));
    assert_eq!([5, 6].map(|token| description.target.name(token).into_owned()), ["<start>", "<init>"]);
    assert_eq!(description.model, "AED, GRU, 3 units, dot");
}

#[test]
fn an_untrained_subject_differs_in_its_weights_alone() {
    let pairs = pairs(6, 6, 14);
    for config in some_configs() {
        let case = Case::new(&config, 1);
        let control = case.subject.untrained(21).expect("a network can always be drawn anew");
        let drawn = subject(case.network.clone(), case.network.draw_weights(21), 1);
        assert_eq!(control.description(), drawn.description());
        assert_ne!(control.description().model_hash, case.subject.description().model_hash);
        let [control, drawn] = [&*control, &drawn].map(|subject| subject.record(&pairs, Fed::Own).expect("words it knows"));
        assert_eq!(control, drawn, "{}", name(&config));
    }
}

/// An intervention may look at another run of the same subject.
#[test]
fn a_run_may_be_asked_for_within_a_run() {
    struct Nested<'a>(&'a Case, &'a [Pair], &'a [Answer]);
    impl Intervene for Nested<'_> {
        fn values(&self, _: usize, _: usize, _: &mut [f32]) {
            assert_eq!(self.0.run(self.1, Fed::Own, &Untouched), self.2);
        }
    }
    let pairs = pairs(40, 4, 15);
    let case = Case::new(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Aed) }, 2);
    let untouched = case.run(&pairs, Fed::Own, &Untouched);
    assert_eq!(case.run(&pairs, Fed::Own, &Nested(&case, &pairs, &untouched)), untouched);
}
