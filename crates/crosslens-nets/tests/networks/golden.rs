//! The networks against an independent PyTorch program (`tests/golden/make.py`), both in `f64`.
//!
//! Tolerance `1e-9·|b| + 1e-11`: the two programs sum in different orders and use different exponentials (5e-16 relative); the golden
//! values move by about 1e-14 when every parameter is changed in its last bits.

use std::path::Path;

use crosslens_analysis::{Pair, Token};
use crosslens_nets::network::{Engine, Family, Feeding, Network, NetworkConfig};
use crosslens_nets::train::{Moments, OptimizerConfig};
use safetensors::SafeTensors;
use serde_json::Value;

struct Case<'a> {
    name: &'a str,
    tensors: SafeTensors<'a>,
    network: Network,
    weights: Vec<f64>,
    pairs: Vec<Pair>,
    feeding: Feeding,
    optimizer: OptimizerConfig,
    learning_rate: f64,
}

fn numbers(tensors: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    let tensor = tensors.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    tensor.data().chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect()
}

/// Rows of tokens, each up to the first −1.
fn sentences(tensors: &SafeTensors<'_>, name: &str) -> Vec<Vec<Token>> {
    let tensor = tensors.tensor(name).expect("every case has its sentences");
    let width = tensor.shape()[1];
    let tokens: Vec<i64> = tensor.data().chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect();
    tokens.chunks(width).map(|row| row.iter().take_while(|&&token| token >= 0).map(|&token| token as Token).collect()).collect()
}

impl<'a> Case<'a> {
    fn read(name: &'a str, bytes: &'a [u8]) -> Self {
        let (_, header) = SafeTensors::read_metadata(bytes).expect("a safetensors header");
        let description = &header.metadata().as_ref().expect("metadata")["case"];
        let mut description: Value = serde_json::from_str(description).expect("the case in JSON");
        let fields = description.as_object_mut().expect("an object");
        let mut take = |field: &str| fields.remove(field).unwrap_or_else(|| panic!("{name} has no {field}"));
        let words = |value: Value| value.as_u64().expect("a number of words") as usize;
        let (source_words, target_words) = (words(take("source_words")), words(take("target_words")));
        let feeding = serde_json::from_value(take("feeding")).expect("forced or free");
        let mut optimizer = take("optimizer");
        let settings = optimizer.as_object_mut().expect("an object");
        let learning_rate = settings.remove("learning_rate").and_then(|rate| rate.as_f64()).expect("a learning rate");
        if settings["clip"].is_null() {
            settings.insert("clip".into(), 0.0.into());
        }
        let optimizer = serde_json::from_value(optimizer).expect("settings of the optimiser");
        let config: NetworkConfig = serde_json::from_value(description).expect("a network");

        let tensors = SafeTensors::deserialize(bytes).expect("a safetensors file");
        let mut network = Network::new(&config, source_words, target_words, 0).expect("a network that makes sense");
        if config.positions.is_some() {
            network.set_rotation(numbers(&tensors, "param/positions.rotation"));
        }
        let mut weights = vec![0.0; network.layout().len()];
        for tensor in network.layout().tensors() {
            assert_eq!(
                tensors.tensor(&format!("param/{}", tensor.name)).expect(&tensor.name).shape(),
                tensor.shape,
                "{name}: {}",
                tensor.name
            );
            weights[tensor.range()].copy_from_slice(&numbers(&tensors, &format!("param/{}", tensor.name)));
        }
        let n_golden = tensors.names().iter().filter(|name| name.starts_with("param/") && **name != "param/positions.rotation").count();
        assert_eq!(n_golden, network.layout().tensors().len(), "{name}: number of parameters");
        let pairs = sentences(&tensors, "source").into_iter().zip(sentences(&tensors, "target"));
        let pairs = pairs.map(|(source, target)| Pair::new(source, target)).collect();
        Self { name, tensors, network, weights, pairs, feeding, optimizer, learning_rate }
    }

    fn compare(&self, what: &str, ours: &[f64]) {
        let golden = numbers(&self.tensors, what);
        assert_eq!(golden.len(), ours.len(), "{}: length of {what}", self.name);
        for (place, (&ours, &golden)) in ours.iter().zip(&golden).enumerate() {
            let error = (ours - golden).abs();
            assert!(error <= 1e-9 * golden.abs() + 1e-11, "{}: {what}[{place}] is {ours:e}, golden {golden:e}, error {error:e}", self.name);
        }
    }

    fn compare_parameters(&self, prefix: &str, ours: &[f64]) {
        for tensor in self.network.layout().tensors() {
            self.compare(&format!("{prefix}/{}", tensor.name), &ours[tensor.range()]);
        }
    }

    fn check(mut self) {
        let mut engine = Engine::new(1).expect("one thread");
        let observations = engine.observe(&self.network, &self.weights, &self.pairs, self.feeding);
        let fed = sentences(&self.tensors, "fed");
        for (i, observation) in observations.iter().enumerate() {
            assert_eq!(observation.fed, fed[i], "{}: fed tokens of sentence {i}", self.name);
            self.compare(&format!("encoder/{i}"), &observation.encoder);
            self.compare(&format!("decoder/{i}"), &observation.decoder);
            self.compare(&format!("logits/{i}"), &observation.logits);
            if !observation.attention.is_empty() {
                self.compare(&format!("attention/{i}"), &observation.attention);
            }
            if self.network.config().family == Family::Transformer {
                self.compare(&format!("encoder_self/{i}"), &observation.encoder_self.weights);
                self.compare(&format!("decoder_self/{i}"), &observation.decoder_self.weights);
            }
        }
        let outcome = engine.differentiate(&self.network, &self.weights, &self.pairs, self.feeding, 0);
        self.compare("loss", &[outcome.loss]);
        self.compare_parameters("grad", engine.gradient());

        let mut moments = Moments::new(self.weights.len());
        for step in 1..=5 {
            engine.differentiate(&self.network, &self.weights, &self.pairs, self.feeding, 0);
            moments.update(&mut engine, &mut self.weights, &self.optimizer, self.learning_rate);
            let is_given = self.tensors.names().iter().any(|name| name.starts_with(&format!("after/{step}/")));
            assert!(is_given || (2..5).contains(&step), "{}: no golden values after step {step}", self.name);
            if is_given {
                self.compare_parameters(&format!("after/{step}"), &self.weights);
            }
        }
    }
}

#[test]
fn every_case_agrees_with_pytorch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the golden cases").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() >= 58, "only {} golden cases", files.len());
    for file in files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let bytes = std::fs::read(&file).expect("a readable case");
        Case::read(&name, &bytes).check();
    }
}
