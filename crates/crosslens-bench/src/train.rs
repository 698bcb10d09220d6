use clap::ValueEnum;
use crosslens_analysis::Pair;
use crosslens_nets::network::{Cell, Engine, Family, Feeding, Inputs, Network, NetworkConfig};
use crosslens_nets::train::{Moments, OptimizerConfig};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::protocol::serve;

/// Batches prepared beforehand and used in turn.
const N_BATCHES: usize = 16;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Size of the network and of its sentences.
    #[arg(long, value_enum, default_value = "S", ignore_case = true)]
    size: Size,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Size {
    /// 128 units, 8 words, 15 → 15 steps.
    #[value(name = "S")]
    Small,
    /// 256 units, 32 words, 16 → 50 steps.
    #[value(name = "M")]
    Medium,
}

/// The peers' sizes.
struct Shape {
    hidden: usize,
    embedding: usize,
    words: u32,
    sentences: usize,
    source_steps: usize,
    target_steps: usize,
}

impl Size {
    fn shape(self) -> Shape {
        match self {
            Self::Small => Shape { hidden: 128, embedding: 64, words: 8, sentences: 128, source_steps: 15, target_steps: 15 },
            Self::Medium => Shape { hidden: 256, embedding: 128, words: 32, sentences: 128, source_steps: 16, target_steps: 50 },
        }
    }
}

/// The same work per step as the peers: learned embeddings, a GRU with its reset after the product, biases, mean cross-entropy, Adam.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let shape = arguments.size.shape();
    let config = NetworkConfig {
        cell: Cell::GruResetAfter,
        hidden: shape.hidden,
        inputs: Inputs::Embedding { size: shape.embedding },
        readout_bias: true,
        ..NetworkConfig::of(Family::Aed)
    };
    let network = Network::new(&config, shape.words as usize, shape.words as usize, 0).map_err(std::io::Error::other)?;
    let optimizer = OptimizerConfig { clip: 0.0, ..OptimizerConfig::default() };
    let mut weights = network.draw_weights::<f32>(0);
    let mut moments = Moments::new(weights.len());
    let mut engine = Engine::new(arguments.threads)?;
    let batches = batches(&shape);
    let mut number = 0;
    serve("crosslens", || {
        let outcome = engine.differentiate(&network, &weights, &batches[number % N_BATCHES], Feeding::Forced, 0);
        moments.update(&mut engine, &mut weights, &optimizer, 1e-3);
        number += 1;
        outcome.loss
    })
}

fn batches(shape: &Shape) -> Vec<Vec<Pair>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut sentence = |n_steps: usize| (0..n_steps).map(|_| rng.random_range(0..shape.words)).collect();
    (0..N_BATCHES)
        .map(|_| (0..shape.sentences).map(|_| Pair::new(sentence(shape.source_steps), sentence(shape.target_steps))).collect())
        .collect()
}
