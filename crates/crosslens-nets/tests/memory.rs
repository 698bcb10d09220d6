//! After the first steps a training step allocates next to nothing: all its memory is kept from step to step.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::pairs;
use crosslens_nets::network::{Engine, Family, Feeding, NetworkConfig};
use crosslens_nets::train::{Moments, OptimizerConfig};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator that counts what it hands on to the system's")]
// SAFETY: every call is handed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_step_keeps_its_memory() {
    for family in Family::ALL {
        for feeding in [Feeding::Forced, Feeding::Free] {
            let config = NetworkConfig { layers: 2, hidden: 32, dropout: 0.1, ..NetworkConfig::of(family) };
            let network = common::network(&config);
            let mut engine = Engine::new(1).expect("one thread");
            let mut weights = network.draw_weights::<f32>(0);
            let mut moments = Moments::new(weights.len());
            let pairs = pairs(64, 12, 3);
            let mut step = || {
                engine.differentiate(&network, &weights, &pairs, feeding, 0);
                engine.update(&mut moments, &mut weights, &OptimizerConfig::default(), 1e-3);
            };
            (0..2).for_each(|_| step());
            let before = ALLOCATED.load(Ordering::Relaxed);
            (0..10).for_each(|_| step());
            let per_step = (ALLOCATED.load(Ordering::Relaxed) - before) / 10;
            // A few lists of slices, no matrix: one row of gates alone is 384 bytes.
            assert!(per_step < 8192, "{} {feeding:?} allocates {per_step} bytes a step", family.name());
        }
    }
}
