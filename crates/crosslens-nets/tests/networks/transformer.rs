//! Transformers: what they see, how they write, what is recorded of them, and what is refused.

use super::common::{SOURCE_WORDS, TARGET_WORDS, name, network, pairs, transformer_configs, weights};
use crosslens_analysis::explain::{Live, Options, explain};
use crosslens_analysis::{
    AttentionRow, Fed, Intervene, Linear, Pair, Probe, RecordError, Recordable, Recorded, ScoreMap, Side, SiteKind, Token, Untouched,
    Vocabulary,
};
use crosslens_nets::network::{
    Engine, Family, Feeding, Network, NetworkConfig, NetworkError, Observation, StepVectors, Stepper, TransformerConfig,
};
use crosslens_nets::tasks::TaskConfig;
use crosslens_nets::train::{Event, OptimizerConfig, Run, RunConfig, RunFolder, TrainingConfig, Wish};
use crosslens_nets::{Subject, Threads};

fn single(network: &Network, seed: u64) -> Vec<f32> {
    weights(network, seed).into_iter().map(|weight| weight as f32).collect()
}

fn observe(network: &Network, weights: &[f32], pairs: &[Pair], feeding: Feeding) -> Vec<Observation<f32>> {
    Engine::new(1).expect("one thread").observe(network, weights, pairs, feeding)
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// A target token is fed one step later: changing the one at step 3 changes logits from step 4 on, and nothing before.
#[test]
fn a_later_word_changes_nothing_before_it() {
    for config in transformer_configs() {
        let network = network(&config);
        let weights = single(&network, 3);
        let pair = Pair::new(vec![1, 3, 0], vec![2, 0, 4, 1, 3, 2, 0]);
        let mut changed = pair.clone();
        changed.target[3] = 4;
        let seen = [pair, changed].map(|pair| observe(&network, &weights, &[pair], Feeding::Forced).remove(0).logits);
        let (before, after) = (4 * TARGET_WORDS, 5 * TARGET_WORDS);
        assert_eq!(bits(&seen[0][..before]), bits(&seen[1][..before]), "{}", name(&config));
        assert_ne!(seen[0][before..after], seen[1][before..after], "{}: the word is read", name(&config));
    }
}

#[test]
fn own_attention_sums_to_one_over_what_may_be_seen() {
    for config in transformer_configs() {
        let network = network(&config);
        let weights = single(&network, 4);
        let pairs = pairs(6, 7, 2);
        for (pair, seen) in pairs.iter().zip(observe(&network, &weights, &pairs, Feeding::Forced)) {
            let (n_source, n_target) = (pair.source.len(), pair.target.len());
            let decoder_layers = config.transformer.and_then(|own| own.decoder_layers).unwrap_or(config.layers);
            assert_eq!(seen.encoder_self.weights.len(), config.layers * config.heads * n_source * n_source);
            assert_eq!(seen.decoder_self.weights.len(), decoder_layers * config.heads * n_target * n_target);
            let sums_to_one = |row: &[f32]| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6;
            assert!(seen.encoder_self.weights.chunks(n_source).all(|row| sums_to_one(row) && row.iter().all(|&weight| weight > 0.0)));
            for (number, row) in seen.decoder_self.weights.chunks(n_target).enumerate() {
                let (visible, hidden) = row.split_at(number % n_target + 1);
                assert!(sums_to_one(visible) && visible.iter().all(|&weight| weight > 0.0) && hidden.iter().all(|&weight| weight == 0.0));
            }
        }
    }
}

/// Longer than any sentence here.
const MOST_STEPS: usize = 12;

fn one_thread() -> Threads {
    Threads::new(1).expect("one thread is the caller's own")
}

/// Feeds each hypothesis the tokens a pass over whole sentences was fed; sentences that end drop out from behind.
#[test]
fn writing_step_by_step_gives_the_logits_of_a_whole_pass() {
    for config in transformer_configs() {
        let network = network(&config);
        let weights = single(&network, 5);
        let mut pairs = pairs(7, 9, 8);
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.target.len()));
        let whole = observe(&network, &weights, &pairs, Feeding::Forced);
        let stepper = Stepper::new(&network, &weights, MOST_STEPS, &one_thread());
        let sources: Vec<&[Token]> = pairs.iter().map(|pair| &pair.source[..]).collect();
        let mut stepping = stepper.start(&sources);
        for step in 0..pairs[0].target.len() {
            let running: Vec<&Observation<f32>> = whole.iter().filter(|seen| seen.fed.len() > step).collect();
            let tokens: Vec<Token> = running.iter().map(|seen| seen.fed[step]).collect();
            let expected: Vec<f32> = running.iter().flat_map(|seen| seen.logits[step * TARGET_WORDS..][..TARGET_WORDS].to_vec()).collect();
            stepping.keep(&(0..running.len()).collect::<Vec<_>>());
            assert_eq!(bits(stepping.step(&tokens)), bits(&expected), "{} step {step}", name(&config));
        }
    }
}

/// Hypotheses of two sources change places, one is doubled and one left out; each must still know what it was fed.
#[test]
fn hypotheses_can_be_put_in_another_order() {
    for config in transformer_configs().into_iter().step_by(5) {
        let network = network(&config);
        let weights = single(&network, 6);
        let (start, sources) = (network.start_token(), [&[0, 1, 2, 3][..], &[2], &[3, 3]]);
        let alone = |source: &[Token], fed: &[Token]| {
            let stepper = Stepper::new(&network, &weights, MOST_STEPS, &one_thread());
            let mut stepping = stepper.start(&[source]);
            fed.iter().fold(Vec::new(), |_, &token| stepping.step(&[token]).to_vec())
        };
        let stepper = Stepper::new(&network, &weights, MOST_STEPS, &one_thread());
        let mut stepping = stepper.start(&sources);
        stepping.step(&[start; 3]);
        stepping.step(&[0, 1, 2]);
        stepping.keep(&[2, 0, 0, 2]);
        assert_eq!(stepping.n_rows(), 4);
        let logits = stepping.step(&[1, 3, 4, 0]).to_vec();
        let expected = [
            alone(sources[2], &[start, 2, 1]),
            alone(sources[0], &[start, 0, 3]),
            alone(sources[0], &[start, 0, 4]),
            alone(sources[2], &[start, 2, 0]),
        ];
        assert_eq!(bits(&logits), bits(&expected.concat()), "{}", name(&config));
    }
}

fn words(n: usize) -> Vocabulary {
    Vocabulary::new((0..n).map(|word| format!("w{word}"))).expect("different words")
}

fn subject(config: &NetworkConfig, n_threads: usize) -> Subject {
    let network = network(config);
    let weights = single(&network, 11);
    Subject::new(network, weights, &words(SOURCE_WORDS), &words(TARGET_WORDS), n_threads).expect("threads")
}

fn apply(linear: &Linear, x: &[f32]) -> Vec<f64> {
    let mut sum: Vec<f64> = linear.bias.iter().map(|&b| f64::from(b)).collect();
    for (&x, row) in x.iter().zip(linear.weights.chunks_exact(linear.d_out)) {
        sum.iter_mut().zip(row).for_each(|(sum, &weight)| *sum += f64::from(x) * f64::from(weight));
    }
    sum
}

/// The softmax of what the site's map makes of the recorded states, over the keys that may be seen.
fn weights_by_description(subject: &Subject, site: usize, recorded: &Recorded, query: usize) -> Vec<f64> {
    let description = subject.description();
    let site = &description.sites[site];
    let ScoreMap::Projected { query: query_map, key: key_map, scale, position_bias: None } = &site.map else { panic!("another map") };
    let d = description.streams[site.key].d;
    let n_keys = recorded.n_steps(description.streams[site.key].side);
    let asking = apply(query_map, &recorded.states[site.query][query * d..][..d]);
    let keys = recorded.states[site.key].chunks_exact(d).take(site.visible.n_keys(query, n_keys)).map(|state| apply(key_map, state));
    let scores: Vec<f64> = keys.map(|key| asking.iter().zip(&key).map(|(a, b)| a * b).sum::<f64>() * f64::from(*scale)).collect();
    let total: f64 = scores.iter().map(|score| score.exp()).sum();
    scores.iter().map(|score| score.exp() / total).collect()
}

#[test]
fn what_is_recorded_gives_the_attention_of_every_site() {
    for config in transformer_configs() {
        let subject = subject(&config, 2);
        let description = subject.description();
        let decoder_layers = config.transformer.and_then(|own| own.decoder_layers).unwrap_or(config.layers);
        assert_eq!(description.sites.len(), (config.layers + 2 * decoder_layers) * config.heads);
        let pairs = pairs(5, 6, 9);
        for fed in [Fed::Target, Fed::Own] {
            for recorded in subject.record(&pairs, fed).expect("words it knows") {
                for (number, site) in description.sites.iter().enumerate() {
                    let n_keys = recorded.n_steps(description.streams[site.key].side);
                    for (query, row) in recorded.attention[number].chunks_exact(n_keys).enumerate() {
                        let expected = weights_by_description(&subject, number, &recorded, query);
                        assert!(row[expected.len()..].iter().all(|&weight| weight == 0.0));
                        for (weight, expected) in row.iter().zip(expected) {
                            assert!((f64::from(*weight) - expected).abs() < 1e-5, "{} site {number}", name(&config));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn streams_and_sites_are_named_as_those_of_pretrained_models() {
    let own = TransformerConfig { decoder_layers: Some(1), ..TransformerConfig::default() };
    let config = NetworkConfig { layers: 2, heads: 2, hidden: 4, transformer: Some(own), ..NetworkConfig::of(Family::Transformer) };
    let subject = subject(&config, 1);
    let description = subject.description();
    let names: Vec<(&str, Side)> = description.streams.iter().map(|stream| (stream.name.as_str(), stream.side)).collect();
    let (source, target) = (Side::Source, Side::Target);
    assert_eq!(names, [("encoder", source), ("cross.0", target), ("encoder.0", source), ("encoder.1", source), ("decoder.0", target)]);
    let sites: Vec<_> = description.sites.iter().map(|site| (site.kind, site.layer, site.head, site.query, site.key)).collect();
    let (cross, encoder, decoder) = (SiteKind::Cross, SiteKind::EncoderSelf, SiteKind::DecoderSelf);
    let expected = [(cross, 0, 1, 0), (encoder, 0, 2, 2), (encoder, 1, 3, 3), (decoder, 0, 4, 4)];
    let expected = expected.into_iter().flat_map(|(kind, layer, query, key)| [0, 1].map(|head| (kind, layer, head, query, key)));
    assert_eq!(sites, expected.collect::<Vec<_>>());
    let across = subject.across();
    assert_eq!(across.description().streams.len(), 2);
    assert!(across.description().sites.iter().all(|site| site.kind == cross));
    let recorded = across.record(&pairs(1, 4, 1), Fed::Own).expect("words it knows");
    assert_eq!((recorded[0].states.len(), recorded[0].attention.len()), (2, 2));
    assert_eq!(across.untrained(1).expect("a control").description().sites.len(), 2);
}

/// At every site the nine terms add up to the score, and the softmax of the sum is the network's own attention.
#[test]
fn the_terms_of_every_site_add_up() {
    for config in transformer_configs().into_iter().step_by(7) {
        let subject = subject(&config, 1);
        let pairs = pairs(40, 6, 3);
        let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 40, fed: Fed::Own };
        let options = Options { n_threads: 1, causal: 10, ..Options::default() };
        let report = explain(&corpus, None, &options, &mut |_| ()).expect("it can be explained").report;
        assert_eq!(report.sites.len(), subject.description().sites.len());
        for site in &report.sites {
            assert_eq!(site.map, "projected");
            let attention = site.error.attention.expect("attention is recorded");
            assert!(site.error.score < 1e-5 && attention < 1e-5, "{} {}: {:?}", name(&config), site.kind, site.error);
            assert!(site.shares.is_some() && site.rebuilt["uniform"].causal.is_some());
        }
    }
}

/// Makes one site look everywhere alike.
struct Uniform {
    site: usize,
}

impl Intervene for Uniform {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if row.site == self.site {
            let share = 1.0 / weights.len() as f32;
            weights.fill(share);
        }
    }
}

#[test]
fn an_intervention_reaches_its_site_and_freely_written_words() {
    for config in transformer_configs().into_iter().step_by(9) {
        let subject = subject(&config, 2);
        let pairs = pairs(20, 6, 5);
        let plain = subject.run(&pairs, Fed::Target, &Untouched).expect("words it knows");
        let recorded = subject.record(&pairs, Fed::Target).expect("words it knows");
        assert!(plain.iter().zip(&recorded).all(|(answer, recorded)| Some(answer.loss) == recorded.loss));
        for site in 0..subject.description().sites.len() {
            let changed = subject.run(&pairs, Fed::Target, &Uniform { site }).expect("words it knows");
            assert!(plain.iter().zip(&changed).any(|(plain, changed)| plain.loss != changed.loss), "{} site {site}", name(&config));

            let free = subject.run(&pairs, Fed::Own, &Uniform { site }).expect("words it knows");
            let start = TARGET_WORDS as Token;
            let shifted = |answer: &crosslens_analysis::Answer| -> Vec<Token> {
                std::iter::once(start).chain(answer.predicted[..answer.predicted.len() - 1].iter().copied()).collect()
            };
            let fed: Vec<Vec<Token>> = free.iter().map(shifted).collect();
            let given = subject.run(&pairs, Fed::Given(&fed), &Uniform { site }).expect("words it knows");
            assert_eq!(free, given, "{} site {site}: what it wrote is what it was fed", name(&config));
        }
    }
}

/// Keeps nothing of the states that one site sums.
struct NoValues {
    site: usize,
}

impl Intervene for NoValues {
    fn values(&self, site: usize, _: usize, states: &mut [f32]) {
        if site == self.site {
            states.fill(0.0);
        }
    }
}

/// Values of zero states are the value map's bias: whatever the weights, the same.
#[test]
fn values_are_replaced_before_the_value_map() {
    struct Both(Uniform, NoValues);
    impl Intervene for Both {
        fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
            self.0.weights(row, weights);
        }

        fn values(&self, site: usize, pair: usize, states: &mut [f32]) {
            self.1.values(site, pair, states);
        }
    }
    let subject = subject(&transformer_configs()[33], 1);
    let pairs = pairs(10, 6, 5);
    for site in 0..subject.description().sites.len() {
        let run = |how: &dyn Intervene| subject.run(&pairs, Fed::Target, how).expect("words it knows");
        let (plain, emptied) = (run(&Untouched), run(&NoValues { site }));
        let both = run(&Both(Uniform { site }, NoValues { site }));
        assert!(plain.iter().zip(&emptied).any(|(plain, emptied)| (plain.loss - emptied.loss).abs() > 1e-4));
        assert!(emptied.iter().zip(&both).all(|(emptied, both)| (emptied.loss - both.loss).abs() < 1e-5));
    }
}

#[test]
fn sentences_beyond_the_learned_positions_are_refused() {
    let own = TransformerConfig { positions: StepVectors::Learned { size: 4 }, ..TransformerConfig::default() };
    let network = NetworkConfig { hidden: 4, heads: 2, transformer: Some(own), ..NetworkConfig::of(Family::Transformer) };
    let subject = subject(&network, 1);
    let pair = |n_source: usize, n_target: usize| [Pair::new(vec![1; n_source], vec![2; n_target])];
    assert!(subject.record(&pair(4, 4), Fed::Own).is_ok());
    for (long, side) in [(pair(5, 4), "source"), (pair(4, 6), "target")] {
        let Err(RecordError::Model(error)) = subject.record(&long, Fed::Own) else { panic!("{side} of more than 4 steps") };
        assert!(error.to_string().contains(side) && error.to_string().contains("positions.size is 4"), "{error}");
    }
    assert!(subject.probe(Probe::Zero, 5).is_none() && subject.probe(Probe::Zero, 4).is_some());
    let task = TaskConfig::named("sort").expect("a task of that name");
    let config = RunConfig { network, ..run(task) };
    let refused = Run::prepare(config, RunFolder::at("nowhere")).err().expect("longer sentences than positions");
    assert!(refused.to_string().contains("network.transformer.positions.size is 4"), "{refused}");
    let too_long = NetworkError::TooLong { side: "source", steps: 5, most: 4 };
    assert!(too_long.to_string().contains("use at least 5"));
}

/// Without a token only positions are left: the same whatever the probe's side, and not those of a token.
#[test]
fn a_probe_reads_positions_alone() {
    let subject = subject(&transformer_configs()[0], 1);
    let zero = subject.probe(Probe::Zero, 5).expect("states");
    let average = subject.probe(Probe::Average, 5).expect("states");
    assert_eq!(zero.iter().map(Vec::len).collect::<Vec<_>>(), vec![5 * 4; subject.description().streams.len()]);
    assert_ne!(zero, average);
}

fn run(task: TaskConfig) -> RunConfig {
    RunConfig {
        seed: 5,
        version: None,
        task,
        network: NetworkConfig { hidden: 8, heads: 2, dropout: 0.1, ..NetworkConfig::of(Family::Transformer) },
        training: TrainingConfig {
            steps: 23,
            batch: 20,
            feeding: Feeding::Free,
            forced_steps: 5,
            evaluate_every: 10,
            ..TrainingConfig::default()
        },
        optimizer: OptimizerConfig::default(),
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_as_if_nothing_had_happened() {
    let config = run(TaskConfig::named("sort").expect("a task of that name"));
    let (whole, stopped) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let run = |folder: &std::path::Path| Run::prepare(config.clone(), RunFolder::at(folder)).expect("it makes sense");
    let mut stop = |event: Event<'_>| if matches!(event, Event::Updated { step: 13, .. }) { Wish::Stop } else { Wish::GoOn };
    run(whole.path()).start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    run(stopped.path()).start(2, &mut stop).expect("a run that stops");
    run(stopped.path()).resume(3, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    let model = |folder: &std::path::Path| std::fs::read(folder.join("model.safetensors")).expect("a model");
    assert!(model(whole.path()) == model(stopped.path()), "the same bytes");
    assert_eq!(RunFolder::at(whole.path()).read_config().expect("run.toml"), config);
}
