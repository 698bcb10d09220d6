//! Analytic gradients against central differences, in `f64`.

use super::common::{
    SOURCE_WORDS, TARGET_WORDS, all_configs, generator, name, network, pairs, threefold_configs, transformer_configs, weights,
};
use crosslens_analysis::Pair;
use crosslens_nets::network::{Engine, Family, Feeding, NetworkConfig};
use rand::RngExt;

const SEED: u64 = 11;

/// `(L(θ + hd) − L(θ − hd)) / 2h`.
fn slope(config: &NetworkConfig, weights: &[f64], direction: &[f64], feeding: Feeding) -> f64 {
    const H: f64 = 2e-6;
    let (network, pairs) = (network(config), pairs(4, 4, SEED));
    let mut engine = Engine::new(1).expect("one thread");
    let mut loss = |sign: f64| {
        let moved: Vec<f64> = weights.iter().zip(direction).map(|(weight, d)| weight + sign * H * d).collect();
        engine.differentiate(&network, &moved, &pairs, feeding, SEED).loss
    };
    (loss(1.0) - loss(-1.0)) / (2.0 * H)
}

/// The error of a central difference is of the order `h²` of the third derivative and `ε/h` of rounding, both near 1e-10 here.
fn assert_close(analytic: f64, numeric: f64, what: &str) {
    assert!((analytic - numeric).abs() < 1e-8 * (1.0 + numeric.abs()), "{what}: analytic {analytic:e}, central difference {numeric:e}");
}

#[test]
fn every_combination_that_makes_sense_has_the_right_slope_along_a_random_direction() {
    let mut configs = all_configs();
    configs.extend(transformer_configs());
    configs.extend(threefold_configs());
    assert!(configs.len() > 369, "only {} combinations", configs.len());
    for (number, config) in configs.iter().enumerate() {
        let network = network(config);
        let weights = weights(&network, number as u64);
        let mut rng = generator(number as u64 ^ 0xD1);
        let direction: Vec<f64> = weights.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
        for feeding in [Feeding::Forced, Feeding::Free] {
            let mut engine = Engine::new(1).expect("one thread");
            engine.differentiate(&network, &weights, &pairs(4, 4, SEED), feeding, SEED);
            let analytic: f64 = engine.gradient().iter().zip(&direction).map(|(gradient, d)| gradient * d).sum();
            let what = format!("{} {feeding:?}", name(config));
            assert_close(analytic, slope(config, &weights, &direction, feeding), &what);
        }
    }
}

/// Every element of every tensor of networks with one layer, each combination of family, cell, score, directions, feeding and heads: no
/// layer has a part that is in none of these. Three sentences and one direction at a time.
#[test]
fn every_element_of_every_tensor_has_its_own_gradient() {
    const H: f64 = 2e-6;
    let one_layer = all_configs().into_iter().filter(|config| config.layers == 1);
    for config in one_layer.chain(transformer_configs().into_iter().filter(|config| config.layers == 1).step_by(5)) {
        let (network, pairs) = (network(&config), pairs(3, 3, SEED));
        let mut moved = weights(&network, 4);
        let mut engine = Engine::new(1).expect("one thread");
        engine.differentiate(&network, &moved, &pairs, Feeding::Forced, SEED);
        let gradient = engine.gradient().to_vec();
        for tensor in network.layout().tensors() {
            for place in tensor.range() {
                let weight = moved[place];
                let mut loss = |at: f64| {
                    moved[place] = at;
                    engine.evaluate(&network, &moved, &pairs, Feeding::Forced).loss
                };
                let slope = (loss(weight + H) - loss(weight - H)) / (2.0 * H);
                moved[place] = weight;
                let what = || format!("{}: {}[{}]", name(&config), tensor.name, place - tensor.range().start);
                assert_close(gradient[place], slope, &what());
            }
        }
    }
}

/// Work that is done in pieces, beyond the first of each: over 256 rows a shard reach the readout's second piece, over 128 the second group
/// of recurrent gradients, over 128 units the second block of additive scores.
///
/// A direction of length 1 in each tensor. Steps of `h = 2e-5` leave an error of the order `h²/6` of the third derivative and `ε/h` of
/// rounding, both near 1e-10; slopes are of the order 1e-4 and more, so a piece that is lost or counted twice is far outside of 1e-8.
#[test]
fn large_networks_have_the_right_slope_within_every_tensor() {
    const H: f64 = 2e-5;
    let of = |family| NetworkConfig { hidden: 130, readout_bias: true, ..NetworkConfig::of(family) };
    let mut rng = generator(SEED);
    let mut sentence = |words: u32| -> Vec<u32> {
        let length = rng.random_range(18..=20);
        (0..length).map(|_| rng.random_range(0..words)).collect()
    };
    let pairs: Vec<Pair> = (0..20).map(|_| Pair::new(sentence(SOURCE_WORDS as u32), sentence(TARGET_WORDS as u32))).collect();
    for config in [of(Family::Aed), NetworkConfig { input_feeding: true, ..of(Family::Luong) }, of(Family::Bahdanau)] {
        let network = network(&config);
        // Small enough that sums over 130 units do not saturate.
        let mut moved: Vec<f64> = weights(&network, 6).into_iter().map(|weight| weight / 4.0).collect();
        let mut engine = Engine::new(1).expect("one thread");
        engine.differentiate(&network, &moved, &pairs, Feeding::Forced, SEED);
        let gradient = engine.gradient().to_vec();
        for (number, tensor) in network.layout().tensors().iter().enumerate() {
            let mut rng = generator(number as u64);
            let mut direction: Vec<f64> = tensor.range().map(|_| rng.random_range(-1.0..1.0)).collect();
            let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
            direction.iter_mut().for_each(|d| *d /= length);
            let at = moved[tensor.range()].to_vec();
            let mut loss = |sign: f64| {
                let places = moved[tensor.range()].iter_mut().zip(&at).zip(&direction);
                places.for_each(|((weight, at), d)| *weight = at + sign * H * d);
                engine.evaluate(&network, &moved, &pairs, Feeding::Forced).loss
            };
            let numeric = (loss(1.0) - loss(-1.0)) / (2.0 * H);
            moved[tensor.range()].copy_from_slice(&at);
            let analytic: f64 = gradient[tensor.range()].iter().zip(&direction).map(|(gradient, d)| gradient * d).sum();
            assert_close(analytic, numeric, &format!("{}: {}", name(&config), tensor.name));
        }
    }
}

#[test]
fn every_parameter_of_every_family_and_cell_has_its_own_gradient() {
    let transformers = transformer_configs().into_iter().step_by(3);
    for config in all_configs().iter().filter(|config| config.layers == 2).cloned().chain(transformers) {
        let config = &config;
        let network = network(config);
        let weights = weights(&network, 2);
        let mut engine = Engine::new(1).expect("one thread");
        engine.differentiate(&network, &weights, &pairs(4, 4, SEED), Feeding::Forced, SEED);
        for tensor in network.layout().tensors() {
            // The ends and the middle of each tensor: first and last gate, first and last row.
            let range = tensor.range();
            for place in [range.start, (range.start + range.end) / 2, range.end - 1] {
                let mut direction = vec![0.0; weights.len()];
                direction[place] = 1.0;
                let what = format!("{}: {}[{}]", name(config), tensor.name, place - range.start);
                assert_close(engine.gradient()[place], slope(config, &weights, &direction, Feeding::Forced), &what);
            }
        }
    }
}

/// The masks depend on the seed alone, so the loss with dropout is a smooth function of the weights too.
#[test]
fn dropout_passes_gradients_through_what_it_keeps() {
    for family in Family::ALL {
        let config = NetworkConfig { layers: 2, hidden: 4, dropout: 0.4, ..NetworkConfig::of(family) };
        let network = network(&config);
        let weights = weights(&network, 3);
        let direction: Vec<f64> = (0..weights.len()).map(|i| (i as f64).cos()).collect();
        let mut engine = Engine::new(1).expect("one thread");
        let dropped = engine.differentiate(&network, &weights, &pairs(4, 4, SEED), Feeding::Forced, SEED).loss;
        let analytic: f64 = engine.gradient().iter().zip(&direction).map(|(gradient, d)| gradient * d).sum();
        assert_close(analytic, slope(&config, &weights, &direction, Feeding::Forced), family.name());
        assert_ne!(dropped, engine.evaluate(&network, &weights, &pairs(4, 4, SEED), Feeding::Forced).loss, "nothing was dropped");
    }
}

/// `lse(z) − (1 − ε)·z_y − ε·mean(z)`, and its slope along every parameter.
#[test]
fn label_smoothing_spreads_a_share_over_all_words() {
    const SHARE: f64 = 0.2;
    let config = NetworkConfig { hidden: 4, readout_bias: true, ..NetworkConfig::of(Family::Luong) };
    let network = network(&config);
    let (weights, pairs) = (weights(&network, 5), pairs(4, 4, SEED));
    let mut engine = Engine::new(1).expect("one thread");
    let plain = engine.evaluate(&network, &weights, &pairs, Feeding::Forced).loss;
    engine.set_label_smoothing(SHARE);
    assert_eq!(engine.evaluate(&network, &weights, &pairs, Feeding::Forced).loss, plain, "evaluations are not smoothed");
    let smoothed = engine.differentiate(&network, &weights, &pairs, Feeding::Forced, SEED).loss;

    let (mut expected, mut n_words) = (0.0, 0);
    for (seen, pair) in engine.observe(&network, &weights, &pairs, Feeding::Forced).iter().zip(&pairs) {
        let n = seen.logits.len() / pair.target.len();
        for (logits, &target) in seen.logits.chunks(n).zip(&pair.target) {
            let total = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
            let mean = logits.iter().sum::<f64>() / n as f64;
            expected += total - (1.0 - SHARE) * logits[target as usize] - SHARE * mean;
            n_words += 1;
        }
    }
    assert!((smoothed - expected / f64::from(n_words)).abs() < 1e-12, "{smoothed}");

    engine.differentiate(&network, &weights, &pairs, Feeding::Forced, SEED);
    let gradient = engine.gradient().to_vec();
    for place in (0..weights.len()).step_by(7) {
        let mut at = |h: f64| {
            let mut moved = weights.clone();
            moved[place] += h;
            engine.differentiate(&network, &moved, &pairs, Feeding::Forced, SEED).loss
        };
        assert_close(gradient[place], (at(1e-5) - at(-1e-5)) / 2e-5, &format!("place {place}"));
    }
}
