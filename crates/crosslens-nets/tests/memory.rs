//! After the first one a training step allocates nothing: all its memory is kept from step to step, and is about as much as was said before.

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
    for config in many_configs() {
        for feeding in [Feeding::Forced, Feeding::Free] {
            let mut training = Training::new(&config, feeding, 1);
            training.step();
            // The least of some rounds: the thread that runs the tests may say something between.
            let allocated = (0..3).map(|_| allocated_by(|| (0..10).for_each(|_| training.step()))).min();
            assert_eq!(allocated, Some(0), "bytes in ten steps of {config:?} {feeding:?}");
        }
    }
}

/// Which thread works on which shard is chance, so a workspace may still grow to a shard it has not seen; what every step allocates would
/// show in all rounds. What may remain in a round of ten steps, each of which asks the team twice from outside, is one block of 63 places
/// of the queue that rayon puts such work into (1520 bytes): it takes a new one for every 63 pieces of work.
#[test]
fn a_step_on_two_threads_keeps_its_memory() {
    const BLOCK: usize = 1520;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for config in many_configs() {
        let mut training = Training::new(&config, Feeding::Free, 2);
        let mut round = || allocated_by(|| (0..10).for_each(|_| training.step()));
        let least = (0..20).map(|_| round()).min();
        assert!(least.is_some_and(|least| least <= BLOCK), "{least:?} bytes in ten steps of {config:?}");
    }
}

/// Networks of every family, and others that take other ways through the passes.
fn many_configs() -> Vec<NetworkConfig> {
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
    let small = |config: NetworkConfig| NetworkConfig { layers: 2, hidden: 32, dropout: 0.1, ..config };
    Family::ALL.map(NetworkConfig::of).into_iter().chain(special).map(small).collect()
}

/// A network and all it is trained with.
struct Training {
    network: Network,
    engine: Engine<f32>,
    weights: Vec<f32>,
    moments: Moments<f32>,
    pairs: Vec<Pair>,
    feeding: Feeding,
}

impl Training {
    fn new(config: &NetworkConfig, feeding: Feeding, n_threads: usize) -> Self {
        let network = Network::new(config, WORDS, WORDS, 0).expect("a network that makes sense");
        let weights = network.draw_weights(0);
        let moments = Moments::new(weights.len());
        Self { network, engine: Engine::new(n_threads).expect("a few threads"), weights, moments, pairs: pairs(), feeding }
    }

    fn step(&mut self) {
        let Self { network, engine, weights, moments, pairs, feeding } = self;
        engine.differentiate(network, weights, pairs, *feeding, 0);
        moments.update(engine, weights, &OptimizerConfig { l2: 1e-4, ..OptimizerConfig::default() }, 1e-3);
    }
}

fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATED.load(Ordering::Relaxed);
    work();
    ALLOCATED.load(Ordering::Relaxed) - before
}

fn held() -> usize {
    ALLOCATED.load(Ordering::Relaxed) - FREED.load(Ordering::Relaxed)
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

/// What weights and gradients take is measured where they are many and sentences short; 64 sentences are four shards, which
/// one thread works through one after the other. A checkpoint, for which six numbers a parameter are said, is not written here.
#[test]
fn the_memory_of_weights_and_gradients_is_known_before() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for family in Family::ALL {
        let config = NetworkConfig { hidden: 128, layers: 2, ..NetworkConfig::of(family) };
        let before = held();
        let mut training = Training::new(&config, Feeding::Forced, 1);
        training.pairs = (0..64).map(|number| Pair::new(vec![number % 6, 1], vec![number % 5, 0])).collect();
        training.step();
        let measured = (held() - before) as f64;
        let network = &training.network;
        let checkpoint = 6 * 4 * network.layout().len() as u128;
        let said = (network.weight_bytes(64, 2, 2) - checkpoint + network.batch_bytes(16, 2, 2)) as f64;
        assert!((0.8..1.3).contains(&(said / measured)), "{config:?}: {said} bytes were said and {measured} are held");
    }
}
