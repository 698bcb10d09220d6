//! Whole training steps: `cargo bench -p crosslens-nets`. Items are target words, so that a constant rate means linear cost.

use crosslens_analysis::Pair;
use crosslens_nets::network::{Engine, Family, Feeding, Network, NetworkConfig};
use crosslens_nets::train::{Moments, OptimizerConfig};
use divan::Bencher;
use divan::counter::ItemsCount;

const WORDS: u32 = 8;

fn main() {
    divan::main();
}

fn sentence(n_steps: usize, number: usize) -> Vec<u32> {
    (0..n_steps).map(|step| ((step * 7 + number * 13 + step * number) as u32) % WORDS).collect()
}

fn step(bencher: Bencher<'_, '_>, family: Family, feeding: Feeding, n_pairs: usize, source_steps: usize, target_steps: usize) {
    let network = Network::new(&NetworkConfig::of(family), WORDS as usize, WORDS as usize, 0).expect("a default network");
    let mut weights = network.draw_weights::<f32>(0);
    let mut moments = Moments::new(weights.len());
    let mut engine = Engine::new(1).expect("one thread");
    let pairs: Vec<Pair> =
        (0..n_pairs).map(|number| Pair::new(sentence(source_steps, number), sentence(target_steps, number + 1))).collect();
    bencher.counter(ItemsCount::new(n_pairs * target_steps)).bench_local(|| {
        engine.differentiate(&network, &weights, &pairs, feeding, 0);
        moments.update(&mut engine, &mut weights, &OptimizerConfig::default(), 1e-3);
    });
}

fn family(name: &str) -> Family {
    *Family::ALL.iter().find(|family| family.name() == name).expect("one of the names given")
}

/// The families at the size of the one-to-one task.
#[divan::bench(args = Family::ALL.map(Family::name), sample_count = 20)]
fn families(bencher: Bencher<'_, '_>, name: &str) {
    step(bencher, family(name), Feeding::Forced, 128, 18, 18);
}

/// Free-running against forced.
#[divan::bench(args = ["forced", "free"], sample_count = 20)]
fn feeding(bencher: Bencher<'_, '_>, feeding: &str) {
    let feeding = if feeding == "free" { Feeding::Free } else { Feeding::Forced };
    step(bencher, Family::Aed, feeding, 128, 18, 18);
}

/// Cost against source and target steps together.
#[divan::bench(args = [10, 20, 40, 80, 160], sample_count = 10)]
fn steps(bencher: Bencher<'_, '_>, n_steps: usize) {
    step(bencher, Family::Ved, Feeding::Forced, 64, n_steps, n_steps);
}

/// Steps of one side, without and with attention.
const LENGTHS: [(&str, usize); 8] =
    [("ved", 20), ("ved", 40), ("ved", 80), ("ved", 160), ("aed", 20), ("aed", 40), ("aed", 80), ("aed", 160)];

/// Cost against source steps alone: 20 target steps whatever the source, so that a constant time for each source step means linear cost.
#[divan::bench(args = LENGTHS, sample_count = 10)]
fn source_steps(bencher: Bencher<'_, '_>, (name, n_steps): (&str, usize)) {
    step(bencher, family(name), Feeding::Forced, 64, n_steps, 20);
}

/// Cost against target steps alone.
#[divan::bench(args = LENGTHS, sample_count = 10)]
fn target_steps(bencher: Bencher<'_, '_>, (name, n_steps): (&str, usize)) {
    step(bencher, family(name), Feeding::Forced, 64, 20, n_steps);
}

/// Cost against the sentences of a batch.
#[divan::bench(args = [32, 64, 128, 256, 512], sample_count = 10)]
fn batch(bencher: Bencher<'_, '_>, n_pairs: usize) {
    step(bencher, Family::Aed, Feeding::Forced, n_pairs, 18, 18);
}
