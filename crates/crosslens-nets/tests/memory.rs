//! After the first steps a training step allocates next to nothing: all its memory is kept from step to step, and is about as much as was
//! said before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crosslens_analysis::Pair;
use crosslens_nets::network::{
    Activation, Cell, Engine, Family, Feeding, Inputs, Network, NetworkConfig, NormPlace, Score, StepVectors, TransformerConfig,
};
use crosslens_nets::train::{Moments, OptimizerConfig};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);
/// One test at a time: they count together.
static TURN: Mutex<()> = Mutex::new(());

#[expect(unsafe_code, reason = "an allocator that counts what it hands on to the system's")]
// SAFETY: every call is handed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WORDS: usize = 6;

fn pairs() -> Vec<Pair> {
    let sentence = |number: usize, step: usize| (0..1 + number % 11).map(|place| ((place * step + number) % WORDS) as u32).collect();
    (0..64).map(|number| Pair::new(sentence(number, 3), sentence(number * 7, 5))).collect()
}

#[test]
fn a_step_keeps_its_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let plain = Family::ALL.map(NetworkConfig::of);
    let transformer = TransformerConfig {
        norm: NormPlace::Post,
        activation: Activation::Gelu,
        tied_readout: true,
        positions: StepVectors::Learned { size: 11 },
        ..TransformerConfig::default()
    };
    let special = [
        NetworkConfig { transformer: Some(transformer), ..NetworkConfig::of(Family::Transformer) },
        NetworkConfig { inputs: Inputs::Embedding { size: 16 }, ..NetworkConfig::of(Family::Aed) },
        NetworkConfig { score: Some(Score::Qkv), heads: 3, readout_bias: true, ..NetworkConfig::of(Family::Ao) },
        NetworkConfig { bidirectional: true, input_feeding: true, ..NetworkConfig::of(Family::Luong) },
    ];
    for config in plain.into_iter().chain(special) {
        for feeding in [Feeding::Forced, Feeding::Free] {
            let config = NetworkConfig { layers: 2, hidden: 32, dropout: 0.1, ..config.clone() };
            let network = Network::new(&config, WORDS, WORDS, 0).expect("a network that makes sense");
            let mut engine = Engine::new(1).expect("one thread");
            let mut weights = network.draw_weights::<f32>(0);
            let mut moments = Moments::new(weights.len());
            let pairs = pairs();
            let mut step = || {
                engine.differentiate(&network, &weights, &pairs, feeding, 0);
                moments.update(&mut engine, &mut weights, &OptimizerConfig::default(), 1e-3);
            };
            (0..2).for_each(|_| step());
            let before = ALLOCATED.load(Ordering::Relaxed);
            (0..10).for_each(|_| step());
            let per_step = (ALLOCATED.load(Ordering::Relaxed) - before) / 10;
            // Three lists of slices, one entry for every 32,768 parameters; no matrix: one row of gates alone is 384 bytes.
            assert!(per_step < 1024, "{config:?} {feeding:?} allocates {per_step} bytes a step");
        }
    }
}

/// What a step holds is measured where sentences are long and weights few. Buffers may have grown to more than is in them.
#[test]
fn the_memory_of_a_batch_is_known_before() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let plain = Family::ALL.map(NetworkConfig::of);
    let wide = TransformerConfig { feed_forward: Some(512), decoder_layers: Some(1), ..TransformerConfig::default() };
    let special = [
        NetworkConfig { layers: 6, ..NetworkConfig::of(Family::Transformer) },
        NetworkConfig { layers: 3, transformer: Some(wide), ..NetworkConfig::of(Family::Transformer) },
        NetworkConfig { layers: 3, ..NetworkConfig::of(Family::Aed) },
        NetworkConfig { cell: Cell::Lstm, ..NetworkConfig::of(Family::Bahdanau) },
        NetworkConfig { cell: Cell::Vanilla, layers: 2, ..NetworkConfig::of(Family::Ved) },
    ];
    let held = || ALLOCATED.load(Ordering::Relaxed) - FREED.load(Ordering::Relaxed);
    for config in plain.into_iter().chain(special) {
        let config = NetworkConfig { hidden: 32, dropout: 0.1, ..config };
        let network = Network::new(&config, WORDS, WORDS, 0).expect("a network that makes sense");
        let (n_sentences, source, target) = (16, 100, 70);
        let sentence = |length: usize| (0..length).map(|place| (place % WORDS) as u32).collect();
        let pairs: Vec<Pair> = (0..n_sentences).map(|_| Pair::new(sentence(source), sentence(target))).collect();
        let mut engine = Engine::new(1).expect("one thread");
        let weights = network.draw_weights::<f32>(0);
        let before = held();
        engine.differentiate(&network, &weights, &pairs, Feeding::Free, 0);
        let measured = (held() - before) as f64;
        let said = network.batch_bytes(n_sentences, source, target) as f64;
        assert!((0.8..1.5).contains(&(said / measured)), "{config:?}: {said} bytes were said and {measured} are held");
    }
}
