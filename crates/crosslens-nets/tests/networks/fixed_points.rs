use crosslens_nets::fixed_points::*;
use crosslens_nets::network::{Cell, Engine, Family, Feeding, Inputs, Network, NetworkConfig, Score};
use crosslens_nets::tasks::Split;
use crosslens_nets::train::{Event, Run, RunFolder, Wish, parse_config};
use nalgebra::{Complex, DMatrix, DVector};
use rand::RngExt;

use crate::common::{SOURCE_WORDS, TARGET_WORDS, generator, network, pairs, weights};

fn f32_weights(network: &Network, seed: u64) -> Vec<f32> {
    weights(network, seed).into_iter().map(|x| x as f32).collect()
}

/// Follows one side over its tokens from a state.
fn follow(network: &Network, weights: &[f32], place: Place, tokens: &[u32], start: Vec<f64>) -> Vec<Vec<f64>> {
    let mut states = vec![start];
    for &token in tokens {
        let recurrence = network.recurrence(weights, place, ConstantInput::Token(token)).expect("a recurrent layer");
        states.push(recurrence.step(&states[states.len() - 1]));
    }
    states.remove(0);
    states
}

fn assert_close(states: &[Vec<f64>], recorded: &[f32], d: usize, what: &str) {
    for (state, recorded) in states.iter().zip(recorded.chunks_exact(d)) {
        // An LSTM's cell follows its hidden state and is not recorded.
        for (a, &b) in state.iter().zip(recorded) {
            assert!((a - f64::from(b)).abs() < 1e-5, "{what}: {a} and {b}");
        }
    }
}

#[test]
fn the_map_is_the_networks_own_step_for_every_cell() {
    for cell in Cell::ALL {
        for inputs in [Inputs::OneHot { size: 6 }, Inputs::Embedding { size: 3 }] {
            let config = NetworkConfig { cell, hidden: 5, inputs, ..NetworkConfig::of(Family::Aed) };
            let network = network(&config);
            let weights = f32_weights(&network, 3);
            let pairs = pairs(4, 7, 11);
            let mut engine = Engine::new(1).expect("a thread");
            for (pair, seen) in pairs.iter().zip(engine.observe(&network, &weights, &pairs, Feeding::Free)) {
                let encoder = network.recurrence(&weights, Place::Encoder(0), ConstantInput::Zero).expect("a recurrent layer");
                let initial = encoder.initial().expect("an encoder starts somewhere").to_vec();
                let states = follow(&network, &weights, Place::Encoder(0), &pair.source, initial);
                assert_close(&states, &seen.encoder, 5, cell.name());
                let last = states[states.len() - 1].clone();
                assert_close(&follow(&network, &weights, Place::Decoder(0), &seen.fed, last), &seen.decoder, 5, cell.name());
            }
        }
    }
}

#[test]
fn the_backward_layer_and_upper_layers_have_their_own_map() {
    let config = NetworkConfig { hidden: 3, bidirectional: true, score: Some(Score::General), ..NetworkConfig::of(Family::Aed) };
    let network = network(&config);
    let weights = f32_weights(&network, 4);
    let pairs = pairs(3, 5, 12);
    let mut engine = Engine::new(1).expect("a thread");
    for (pair, seen) in pairs.iter().zip(engine.observe(&network, &weights, &pairs, Feeding::Forced)) {
        let layer = network.recurrence(&weights, Place::EncoderBackward(0), ConstantInput::Zero).expect("a recurrent layer");
        let reversed: Vec<u32> = pair.source.iter().rev().copied().collect();
        let states = follow(&network, &weights, Place::EncoderBackward(0), &reversed, layer.initial().expect("a start").to_vec());
        let backward: Vec<f32> = seen.encoder.chunks_exact(6).rev().flat_map(|state| state[3..].to_vec()).collect();
        assert_close(&states, &backward, 3, "backward");
    }
}

#[test]
fn an_upper_layer_reads_the_states_below() {
    let config = NetworkConfig { hidden: 4, layers: 2, ..NetworkConfig::of(Family::Aed) };
    let network = network(&config);
    let weights = f32_weights(&network, 5);
    let pair = pairs(1, 6, 13).remove(0);
    let mut engine = Engine::new(1).expect("a thread");
    let seen = engine.observe(&network, &weights, std::slice::from_ref(&pair), Feeding::Forced).remove(0);
    let start = |layer| {
        let layer = network.recurrence(&weights, Place::Encoder(layer), ConstantInput::Zero).expect("a recurrent layer");
        layer.initial().expect("a start").to_vec()
    };
    let below = follow(&network, &weights, Place::Encoder(0), &pair.source, start(0));
    let mut state = start(1);
    let mut states = Vec::new();
    for input in below {
        let input: Vec<f32> = input.iter().map(|&x| x as f32).collect();
        let upper = network.recurrence(&weights, Place::Encoder(1), ConstantInput::Vector(&input)).expect("a recurrent layer");
        state = upper.step(&state);
        states.push(state.clone());
    }
    assert_close(&states, &seen.encoder, 4, "the second layer");
}

/// `(F(s + ε e_j) − F(s − ε e_j)) / 2ε` with ε = 1e-5: the error is ε² times a third derivative, below 1e-8.
#[test]
fn the_derivative_is_that_of_central_differences() {
    const STEP: f64 = 1e-5;
    let mut rng = generator(8);
    for cell in Cell::ALL {
        let network = network(&NetworkConfig { cell, hidden: 4, ..NetworkConfig::of(Family::Aed) });
        let recurrence = network.recurrence(&f32_weights(&network, 6), Place::Encoder(0), ConstantInput::Token(2)).expect("recurrent");
        let state: Vec<f64> = (0..recurrence.d_state()).map(|_| rng.random_range(-0.9..0.9)).collect();
        let jacobian = recurrence.jacobian(&state);
        for j in 0..state.len() {
            let at = |step: f64| {
                let mut moved = state.clone();
                moved[j] += step;
                recurrence.step(&moved)
            };
            let (ahead, behind) = (at(STEP), at(-STEP));
            for i in 0..state.len() {
                let difference = (ahead[i] - behind[i]) / (2.0 * STEP);
                assert!((jacobian[(i, j)] - difference).abs() < 1e-8, "{}: ∂F{i}/∂{j} {} {difference}", cell.name(), jacobian[(i, j)]);
            }
        }
    }
}

/// A vanilla network whose weights are zero but for its recurrence and its bias.
fn plain(hidden: usize, recurrence: &[f32], bias: &[f32]) -> (Network, Vec<f32>) {
    let network = network(&NetworkConfig { cell: Cell::Vanilla, hidden, ..NetworkConfig::of(Family::Aed) });
    let mut weights = vec![0.0; network.layout().len()];
    for (name, values) in [("encoder.0.gates_from_hidden", recurrence), ("encoder.0.gates_bias", bias)] {
        let tensor = network.layout().tensors().iter().find(|tensor| tensor.name == name).expect("a parameter");
        weights[tensor.range()].copy_from_slice(values);
    }
    (network, weights)
}

fn find(network: &Network, weights: &[f32], starts: &[Vec<f32>]) -> Vec<FixedPoint> {
    fixed_points(network, weights, Place::Encoder(0), ConstantInput::Zero, starts, &FixedPointOptions::default())
        .expect("a recurrent layer")
}

/// h′ = tanh(h·W) with W = [½ ¼; ⅛ −¼]: λ² − ¼λ − 5/32 = 0, so λ = ⅛ ± √(1/64 + 10/64) = (1 ± √11)/8. All below 1: the zero state is
/// the one fixed point.
#[test]
fn small_weights_have_one_fixed_point_with_their_own_eigenvalues() {
    let (network, weights) = plain(2, &[0.5, 0.25, 0.125, -0.25], &[0.0, 0.0]);
    let found = find(&network, &weights, &[vec![0.9, -0.7], vec![-0.5, 0.1], vec![0.2, 0.9]]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].n_starts, found[0].n_unstable()), (3, 0));
    assert!(found[0].state.iter().all(|x| x.abs() < 1e-9), "{found:?}");
    let expected = [(1.0 + 11f64.sqrt()) / 8.0, (1.0 - 11f64.sqrt()) / 8.0];
    for (eigenvalue, expected) in found[0].eigenvalues.iter().zip(expected) {
        assert!((eigenvalue.re - expected).abs() < 1e-9 && eigenvalue.im.abs() < 1e-9, "{eigenvalue:?} {expected}");
    }
}

/// W = [¼ −¼; ¼ ¼]·√2 turns by 45° and halves: λ = ½ e^(±iπ/4), which decay to 1/e in 1/ln 2 steps.
#[test]
fn a_turn_has_complex_eigenvalues_and_a_time_constant() {
    let w = 0.125f32.sqrt();
    let (network, weights) = plain(2, &[w, -w, w, w], &[0.0, 0.0]);
    let found = find(&network, &weights, &[vec![0.3, 0.3]]);
    for (eigenvalue, sign) in found[0].eigenvalues.iter().zip([1.0, -1.0]) {
        assert!((eigenvalue.re - 0.125f64.sqrt()).abs() < 1e-7 && (eigenvalue.im - sign * 0.125f64.sqrt()).abs() < 1e-7);
        assert!((eigenvalue.time_constant() - 1.0 / 2f64.ln()).abs() < 1e-6);
    }
}

/// h = tanh(2h) at 0 and ±0.9575040240772687; the slopes are 2(1 − h²): 2 at 0, 0.1664 at the others.
#[test]
fn one_unit_that_holds_on_to_itself_has_three_fixed_points() {
    let (network, weights) = plain(1, &[2.0], &[0.0]);
    let mut found = find(&network, &weights, &[vec![0.8], vec![0.01], vec![-0.9], vec![1.0], vec![-0.02]]);
    found.sort_by(|a, b| a.state[0].total_cmp(&b.state[0]));
    let states: Vec<f64> = found.iter().map(|point| point.state[0]).collect();
    assert_eq!(states.len(), 3, "{states:?}");
    for (state, expected) in states.iter().zip([-0.9575040240772687, 0.0, 0.9575040240772687]) {
        assert!((state - expected).abs() < 1e-9, "{states:?}");
    }
    for point in &found {
        assert!((point.eigenvalues[0].re - 2.0 * (1.0 - point.state[0].powi(2))).abs() < 1e-9);
    }
    assert_eq!(found.iter().map(FixedPoint::n_unstable).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(found.iter().map(|point| point.n_starts).collect::<Vec<_>>(), [1, 2, 2]);
}

/// h′ = tanh(2h + 0.55): the two lower fixed points have just met and gone (at 0.533); from −0.75 the speed has a minimum, not a zero.
#[test]
fn a_slow_point_is_no_fixed_point() {
    let (network, weights) = plain(1, &[2.0], &[0.55]);
    assert!(find(&network, &weights, &[vec![-0.75]]).is_empty());
    assert_eq!(find(&network, &weights, &[vec![-0.75], vec![0.9]]).len(), 1);
}

#[test]
fn every_cell_stays_in_the_points_found() {
    for cell in Cell::ALL {
        let network = network(&NetworkConfig { cell, hidden: 8, ..NetworkConfig::of(Family::Aed) });
        let weights = f32_weights(&network, 9);
        let mut rng = generator(10);
        let recurrence = network.recurrence(&weights, Place::Decoder(0), ConstantInput::Token(1)).expect("a recurrent layer");
        let starts: Vec<Vec<f32>> = (0..10).map(|_| (0..recurrence.d_state()).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
        let found = fixed_points(&network, &weights, Place::Decoder(0), ConstantInput::Token(1), &starts, &FixedPointOptions::default())
            .expect("a recurrent layer");
        assert!(!found.is_empty(), "{}", cell.name());
        for point in &found {
            let next = recurrence.step(&point.state);
            assert!(next.iter().zip(&point.state).all(|(a, b)| (a - b).abs() < 1e-9), "{}", cell.name());
            assert_eq!(point.eigenvalues.len(), recurrence.d_state());
            let trace: f64 = point.eigenvalues.iter().map(|eigenvalue| eigenvalue.re).sum();
            assert!((trace - recurrence.jacobian(&point.state).trace()).abs() < 1e-8, "{}", cell.name());
        }
    }
}

#[test]
fn what_cannot_be_asked_has_a_name() {
    let options = FixedPointOptions::default();
    let look = |network: &Network, place, input, start: &[f32]| {
        fixed_points(network, &f32_weights(network, 1), place, input, &[start.to_vec()], &options).expect_err("no such thing")
    };
    let ao = network(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Ao) });
    assert_eq!(look(&ao, Place::Encoder(0), ConstantInput::Zero, &[0.0; 3]), RecurrenceError::NotRecurrent.into());
    let aed = network(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Aed) });
    let place = Place::EncoderBackward(0);
    assert_eq!(look(&aed, place, ConstantInput::Zero, &[0.0; 3]), RecurrenceError::NoLayer { place }.into());
    let unknown = RecurrenceError::UnknownToken { token: SOURCE_WORDS as u32, count: SOURCE_WORDS };
    assert_eq!(look(&aed, Place::Encoder(0), ConstantInput::Token(SOURCE_WORDS as u32), &[0.0; 3]), unknown.into());
    let start = FixedPointError::StartSize { start: 0, found: 2, expected: 3 };
    assert_eq!(look(&aed, Place::Decoder(0), ConstantInput::Token(TARGET_WORDS as u32), &[0.0; 2]), start);
    let size = RecurrenceError::InputSize { found: 1, expected: TARGET_WORDS };
    assert_eq!(look(&aed, Place::Decoder(0), ConstantInput::Vector(&[0.0]), &[0.0; 3]), size.into());
    let few = fixed_points(&aed, &[0.0], Place::Decoder(0), ConstantInput::Zero, &[], &options).expect_err("too few weights");
    assert_eq!(few, RecurrenceError::WeightCount { found: 1, expected: aed.layout().len() }.into());
}

/// A small network that has learnt its task.
fn trained() -> (Run, Vec<f32>) {
    let text = include_str!("../../../crosslens/tests/tiny.toml");
    let config = parse_config(std::path::Path::new("tiny.toml"), text).expect("a configuration");
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::prepare(config, RunFolder::at(folder.path())).expect("a configuration that makes sense");
    let trained = run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    assert!(trained.metrics.is_some_and(|metrics| metrics.word_accuracy > 0.95), "{trained:?}");
    let weights = run.folder().read_model(&mut run.network().clone()).expect("the model it saved");
    (run, weights)
}

/// `∂F/∂h` by central differences.
fn differences(recurrence: &Recurrence, state: &[f64]) -> DMatrix<f64> {
    const STEP: f64 = 1e-5;
    let columns = (0..state.len()).map(|column| {
        let moved = |by: f64| {
            let mut state = state.to_vec();
            state[column] += by;
            DVector::from_vec(recurrence.step(&state))
        };
        (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
    });
    DMatrix::from_columns(&columns.collect::<Vec<_>>())
}

/// The largest distance of an eigenvalue from its partner, the nearest that no other has.
fn apart(found: &[Eigenvalue], expected: &DMatrix<f64>) -> f64 {
    let mut rest: Vec<_> = expected.complex_eigenvalues().iter().copied().collect();
    assert_eq!(found.len(), rest.len());
    let distances = found.iter().map(|a| {
        let distance = |b: &Complex<f64>| (a.re - b.re).hypot(a.im - b.im);
        let nearest = (0..rest.len()).min_by(|&i, &j| distance(&rest[i]).total_cmp(&distance(&rest[j]))).expect("as many");
        distance(&rest.swap_remove(nearest))
    });
    distances.fold(0.0, f64::max)
}

/// Starts are the states the network goes through on sentences of its task.
#[test]
fn a_trained_network_rests_where_fixed_points_are_found() {
    let (run, weights) = trained();
    let (network, task) = (run.network(), run.task());
    let pairs: Vec<_> = (0..8).map(|number| task.pair(Split::Test, 11, number)).collect();
    let seen = Engine::new(1).expect("a thread").observe(network, &weights, &pairs, Feeding::Free);
    let n_words = task.source_vocabulary().len() as u32;
    let inputs = (0..n_words).map(ConstantInput::Token).chain([ConstantInput::Zero]);
    for (input, place) in inputs.flat_map(|input| [(input, Place::Encoder(0)), (input, Place::Decoder(0))]) {
        let recurrence = network.recurrence(&weights, place, input).expect("a recurrent layer");
        let states = seen.iter().flat_map(|sentence| if place == Place::Encoder(0) { &sentence.encoder } else { &sentence.decoder });
        let states: Vec<f32> = states.copied().collect();
        let starts: Vec<Vec<f32>> = states.chunks_exact(recurrence.d_state()).map(<[f32]>::to_vec).collect();
        let found = fixed_points(network, &weights, place, input, &starts, &FixedPointOptions::default()).expect("starts fit");
        assert!(!found.is_empty(), "{place:?} {input:?}");
        for point in &found {
            let next = recurrence.step(&point.state);
            let speed: f64 = point.state.iter().zip(&next).map(|(a, b)| 0.5 * (a - b) * (a - b)).sum();
            assert!(speed <= 1e-20, "{place:?} {input:?}: {speed}");
            let apart = apart(&point.eigenvalues, &differences(&recurrence, &point.state));
            assert!(apart < 1e-6, "{place:?} {input:?}: eigenvalues are {apart} apart");
        }
    }
}
