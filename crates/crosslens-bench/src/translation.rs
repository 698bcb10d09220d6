use clap::ValueEnum;
use crosslens_analysis::{Pair, Token};
use crosslens_nets::Threads;
use crosslens_nets::network::{Cell, Engine, Family, Feeding, Inputs, Network, NetworkConfig, Stepper};
use crosslens_nets::search::{Search, write};
use crosslens_nets::train::{Moments, OptimizerConfig};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::protocol::serve;

/// Batches prepared beforehand and used in turn.
const N_BATCHES: usize = 8;
/// The peers' sizes: `bench/translation_peers.py`.
const HIDDEN: usize = 512;
const EMBEDDING: usize = 512;
const WORDS: u32 = 8000;
const SENTENCES: usize = 64;
const STEPS: usize = 15;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What is measured.
    #[arg(value_enum)]
    what: What,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Adam steps on batches of 64 sentences, 15 → 15 tokens.
    Train,
    /// Greedy decoding of 64 sentences of 15 tokens, 15 tokens each.
    Decode,
}

/// A step is a batch of 64 sentences of 15 target words, trained on or written: words a second are 960 times the steps.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let config = NetworkConfig {
        cell: Cell::GruResetAfter,
        hidden: HIDDEN,
        inputs: Inputs::Embedding { size: EMBEDDING },
        readout_bias: true,
        ..NetworkConfig::of(Family::Bahdanau)
    };
    let network = Network::new(&config, WORDS as usize, WORDS as usize, 0).map_err(std::io::Error::other)?;
    let mut weights = network.draw_weights::<f32>(0);
    let batches = batches();
    let mut number = 0;
    match arguments.what {
        What::Train => {
            let optimizer = OptimizerConfig { clip: 0.0, ..OptimizerConfig::default() };
            let mut moments = Moments::new(weights.len());
            let mut engine = Engine::new(arguments.threads)?;
            serve("crosslens", || {
                let outcome = engine.differentiate(&network, &weights, &batches[number % N_BATCHES], Feeding::Forced, 0);
                moments.update(&mut engine, &mut weights, &optimizer, 1e-3);
                number += 1;
                outcome.loss
            })
        }
        What::Decode => {
            let threads = Threads::new(arguments.threads)?;
            let stepper = Stepper::new(&network, &weights, STEPS, &threads);
            // No token ends a sentence, so that both sides write as many.
            let how = Search { steps: STEPS, steps_per_source: 0, ..Search::greedy(Token::MAX) };
            let sources: Vec<Vec<Vec<Token>>> =
                batches.iter().map(|batch| batch.iter().map(|pair| pair.source.clone()).collect()).collect();
            serve("crosslens", || {
                let written = write(&stepper, network.start_token(), &sources[number % N_BATCHES], &how, &threads);
                number += 1;
                written[0][0].log_probability()
            })
        }
    }
}

fn batches() -> Vec<Vec<Pair>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut sentence = || (0..STEPS).map(|_| rng.random_range(0..WORDS)).collect();
    (0..N_BATCHES).map(|_| (0..SENTENCES).map(|_| Pair::new(sentence(), sentence())).collect()).collect()
}
