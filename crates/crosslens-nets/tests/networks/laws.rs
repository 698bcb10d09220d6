//! What must hold for every network, whatever its weights.

use super::common::{SOURCE_WORDS, TARGET_WORDS, all_configs, name, network, pairs, threefold_configs, transformer_configs, weights};
use crosslens_analysis::Pair;
use crosslens_nets::network::{Engine, Family, Feeding, Inputs, Network, NetworkConfig, Observation};
use crosslens_nets::train::{Moments, OptimizerConfig};
use proptest::prelude::*;

fn observe(network: &Network, weights: &[f32], pairs: &[Pair], feeding: Feeding) -> Vec<Observation<f32>> {
    Engine::new(1).expect("one thread").observe(network, weights, pairs, feeding)
}

fn single(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&weight| weight as f32).collect()
}

fn any_config() -> impl Strategy<Value = NetworkConfig> {
    prop_oneof![prop::sample::select(all_configs()), prop::sample::select(transformer_configs())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn attention_rows_sum_to_one_over_the_sentence_alone(config in any_config(), seed: u64) {
        let network = network(&config);
        let weights = single(&weights(&network, seed));
        let pairs = pairs(5, 6, seed);
        for (pair, seen) in pairs.iter().zip(observe(&network, &weights, &pairs, Feeding::Forced)) {
            let n_layers = match config.transformer {
                Some(own) => own.decoder_layers.unwrap_or(config.layers),
                None => usize::from(config.score.is_some()),
            };
            let n_rows = n_layers * config.heads * pair.target.len();
            prop_assert_eq!(seen.attention.len(), n_rows * pair.source.len(), "weights beyond the sentence");
            for row in seen.attention.chunks(pair.source.len()) {
                prop_assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6 && row.iter().all(|&weight| weight >= 0.0));
            }
        }
    }

    /// Other sentences of other lengths are what padding is made of elsewhere: here they change nothing, not a bit.
    #[test]
    fn a_sentence_alone_equals_the_same_sentence_in_a_batch(config in any_config(), seed: u64, n in 2usize..80) {
        let network = network(&config);
        let weights = single(&weights(&network, seed));
        let pairs = pairs(n, 7, seed);
        for feeding in [Feeding::Forced, Feeding::Free] {
            let together = observe(&network, &weights, &pairs, feeding);
            for place in [0, n / 2, n - 1] {
                let alone = observe(&network, &weights, &pairs[place..=place], feeding);
                prop_assert_eq!(&alone[0], &together[place], "{}", name(&config));
            }
        }
    }

    #[test]
    fn running_freely_equals_being_forced_to_the_same_words(config in any_config(), seed: u64) {
        let network = network(&config);
        let weights = single(&weights(&network, seed));
        let mut pairs = pairs(5, 6, seed);
        let free = observe(&network, &weights, &pairs, Feeding::Free);
        for (pair, seen) in pairs.iter_mut().zip(&free) {
            pair.target.clone_from(&seen.predicted);
        }
        prop_assert_eq!(free, observe(&network, &weights, &pairs, Feeding::Forced), "{}", name(&config));
    }

    #[test]
    fn threads_change_no_bit_of_the_weights(config in any_config(), seed: u64, dropout in prop::sample::select(vec![0.0, 0.3])) {
        let config = NetworkConfig { dropout, ..config };
        let network = network(&config);
        let optimizer = OptimizerConfig { l2: 1e-4, ..OptimizerConfig::default() };
        let trained = [1, 2, 3].map(|n_threads| {
            let mut engine = Engine::new(n_threads).expect("a few threads");
            let mut weights = single(&weights(&network, seed));
            let mut moments = Moments::new(weights.len());
            for step in 0..3 {
                engine.differentiate(&network, &weights, &pairs(100, 6, seed ^ step), Feeding::Free, step);
                moments.update(&mut engine, &mut weights, &optimizer, 0.01);
            }
            weights.iter().map(|weight| weight.to_bits()).collect::<Vec<u32>>()
        });
        prop_assert_eq!(&trained[0], &trained[1], "1 and 2 threads");
        prop_assert_eq!(&trained[0], &trained[2], "1 and 3 threads");
    }
}

#[test]
fn three_layers_and_three_heads_obey_the_laws_too() {
    for config in threefold_configs() {
        let network = network(&config);
        let weights = single(&weights(&network, 6));
        let pairs = pairs(40, 6, 6);
        for feeding in [Feeding::Forced, Feeding::Free] {
            let together = observe(&network, &weights, &pairs, feeding);
            for (place, (pair, seen)) in pairs.iter().zip(&together).enumerate() {
                let n_layers = if config.family == Family::Transformer { 3 } else { 1 };
                assert_eq!(seen.attention.len(), n_layers * 3 * pair.target.len() * pair.source.len(), "{}", name(&config));
                for row in seen.attention.chunks(pair.source.len()) {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6 && row.iter().all(|&weight| weight >= 0.0), "{}", name(&config));
                }
                assert_eq!(&observe(&network, &weights, &pairs[place..=place], feeding)[0], seen, "{}", name(&config));
            }
        }
    }
}

/// A vocabulary too large for a table of all its words takes the other way through the embeddings. The same network with only the words
/// that occur, and their rows of the large one's weights, must give the same loss and the same gradients.
#[test]
fn a_table_of_the_words_that_occur_equals_a_table_of_all() {
    const MANY: usize = 3000;
    let config = NetworkConfig { hidden: 3, inputs: Inputs::Embedding { size: 2 }, ..NetworkConfig::of(Family::Aed) };
    let large = Network::new(&config, MANY, TARGET_WORDS, 0).expect("a network with many words");
    let small = Network::new(&config, SOURCE_WORDS, TARGET_WORDS, 0).expect("a network with few words");
    let far = |token: u32| token * 700 + 13;
    let large_weights = weights(&large, 1);
    // Where each number of the small network stands in the large one.
    let mut places = vec![0; small.layout().len()];
    for (few, many) in small.layout().tensors().iter().zip(large.layout().tensors()) {
        for (offset, place) in few.range().enumerate() {
            let is_embedding = few.name == "encoder.embedding";
            places[place] = many.range().start + if is_embedding { far(offset as u32 / 2) as usize * 2 + offset % 2 } else { offset };
        }
    }
    let small_weights: Vec<f64> = places.iter().map(|&place| large_weights[place]).collect();
    let few = pairs(6, 5, 9);
    let mut many = few.clone();
    many.iter_mut().for_each(|pair| pair.source.iter_mut().for_each(|token| *token = far(*token)));

    let mut engine = Engine::new(1).expect("one thread");
    let expected = engine.differentiate(&small, &small_weights, &few, Feeding::Forced, 0);
    let small_gradient = engine.gradient().to_vec();
    assert_eq!(engine.differentiate(&large, &large_weights, &many, Feeding::Forced, 0).loss, expected.loss);
    let mut rest = engine.gradient().to_vec();
    for (&place, gradient) in places.iter().zip(&small_gradient) {
        assert!((rest[place] - gradient).abs() < 1e-14, "{place}: {} and {gradient}", rest[place]);
        rest[place] = 0.0;
    }
    assert!(rest.iter().all(|&gradient| gradient == 0.0), "words that do not occur have no gradient");
}

/// An engine keeps memory from batch to batch, but nothing of one network reaches another.
#[test]
fn an_engine_serves_one_network_after_another() {
    let pairs = pairs(20, 6, 4);
    let mut configs = all_configs();
    drop(configs.splice(5..5, transformer_configs()));
    configs.extend(transformer_configs().into_iter().take(3));
    let mut shared = Engine::new(1).expect("one thread");
    for number in [0, 77, 5, 200, 12, 333, 0, configs.len() - 1] {
        for seed in [1, 2] {
            let network = Network::new(&configs[number], SOURCE_WORDS, TARGET_WORDS, seed).expect("a network that makes sense");
            let weights = weights(&network, seed);
            let shared = shared.evaluate(&network, &weights, &pairs, Feeding::Free);
            assert_eq!(
                shared,
                Engine::new(1).expect("one thread").evaluate(&network, &weights, &pairs, Feeding::Free),
                "{}",
                name(&configs[number])
            );
        }
    }
}
