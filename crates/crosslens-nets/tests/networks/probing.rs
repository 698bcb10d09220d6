use crosslens_analysis::{Probe, Recordable, Vocabulary};
use crosslens_nets::Subject;
use crosslens_nets::fixed_points::{ConstantInput, Place};
use crosslens_nets::network::{Cell, Family, Inputs, Network, NetworkConfig, Positions};

use crate::common::{SOURCE_WORDS, TARGET_WORDS, network, weights};

fn subject(network: &Network, weights: &[f32]) -> Subject {
    let words = |n: usize| Vocabulary::new((0..n).map(|word| format!("w{word}"))).expect("distinct words");
    Subject::new(network.clone(), weights.to_vec(), &words(SOURCE_WORDS), &words(TARGET_WORDS), 1).expect("a thread")
}

fn f32_weights(network: &Network) -> Vec<f32> {
    weights(network, 21).into_iter().map(|x| x as f32).collect()
}

fn tensor<'a>(network: &Network, weights: &'a [f32], name: &str) -> &'a [f32] {
    let tensor = network.layout().tensors().iter().find(|tensor| tensor.name == name).expect("a parameter");
    &weights[tensor.range()]
}

/// h[t] = tanh((x + PE[t])·W + b), with PE = P·R written out from its definition and x all 0, or all 1/d.
#[test]
fn an_attention_only_network_without_input_walks_along_its_positions() {
    const N: usize = 4;
    const D: usize = 6;
    let positions = Positions { amplitude: 0.5, time_scale: 10.0 };
    let inputs = Inputs::OneHot { size: D };
    let config = NetworkConfig { cell: Cell::Vanilla, hidden: N, inputs, positions: Some(positions), ..NetworkConfig::of(Family::Ao) };
    let network = network(&config);
    let weights = f32_weights(&network);
    let rotation = network.rotation().expect("positions are rotated");
    for (probe, x) in [(Probe::Zero, 0.0), (Probe::Average, 1.0 / D as f64)] {
        let found = subject(&network, &weights).probe(probe, 7).expect("networks can be probed");
        for (stream, side) in found.iter().zip(["encoder", "decoder"]) {
            let map = tensor(&network, &weights, &format!("{side}.0.gates_from_input"));
            let bias = tensor(&network, &weights, &format!("{side}.0.gates_bias"));
            assert_eq!(stream.len(), 7 * N);
            for (step, state) in stream.chunks(N).enumerate() {
                let wave = |j: usize| {
                    let angle = step as f64 / 10f64.powf((j - j % 2) as f64 / D as f64);
                    0.5 * if j.is_multiple_of(2) { angle.sin() } else { angle.cos() }
                };
                let input: Vec<f64> = (0..D).map(|i| x + (0..D).map(|j| wave(j) * rotation[j * D + i]).sum::<f64>()).collect();
                for (unit, &state) in state.iter().enumerate() {
                    let gate: f64 = (0..D).map(|i| input[i] * f64::from(map[i * N + unit])).sum();
                    let expected = (gate + f64::from(bias[unit])).tanh();
                    assert!((expected - f64::from(state)).abs() < 1e-5, "{side} step {step}: {state}, expected {expected}");
                }
            }
        }
    }
}

#[test]
fn a_recurrent_network_without_input_follows_its_recurrence() {
    for cell in Cell::ALL {
        for inputs in [Inputs::OneHot { size: 6 }, Inputs::Embedding { size: 3 }] {
            let network = network(&NetworkConfig { cell, hidden: 5, inputs, ..NetworkConfig::of(Family::Aed) });
            let weights = f32_weights(&network);
            let average = match inputs {
                Inputs::OneHot { size } => vec![1.0 / size as f32; size],
                Inputs::Embedding { size } => {
                    let rows = tensor(&network, &weights, "encoder.embedding");
                    (0..size).map(|i| rows.chunks(size).map(|row| row[i]).sum::<f32>() / SOURCE_WORDS as f32).collect()
                }
            };
            for (probe, input) in [(Probe::Zero, ConstantInput::Zero), (Probe::Average, ConstantInput::Vector(&average))] {
                let found = subject(&network, &weights).probe(probe, 6).expect("networks can be probed");
                let recurrence = network.recurrence(&weights, Place::Encoder(0), input).expect("a recurrent layer");
                let mut state = recurrence.initial().expect("an encoder starts somewhere").to_vec();
                for recorded in found[0].chunks(5) {
                    state = recurrence.step(&state);
                    assert!(state.iter().zip(recorded).all(|(a, &b)| (a - f64::from(b)).abs() < 1e-5), "{}", cell.name());
                }
            }
        }
    }
}

#[test]
fn no_steps_have_no_states() {
    let network = network(&NetworkConfig { hidden: 3, ..NetworkConfig::of(Family::Bahdanau) });
    let subject = subject(&network, &f32_weights(&network));
    assert_eq!(subject.probe(Probe::Zero, 0), Some(vec![Vec::new(); 2]));
    let two = subject.probe(Probe::Average, 2).expect("networks can be probed");
    assert_eq!(two.iter().map(Vec::len).collect::<Vec<_>>(), [2 * 6, 2 * 3]);
}
