//! Samples at any pace become samples at 16 kHz.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

use super::SAMPLE_RATE;

/// The fewest samples of a block on either side: a filter as long falls from whole to nothing within 3 % of the band.
const LEAST_BLOCK: usize = 1024;

/// A stream of samples at one pace, resampled in blocks.
///
/// ```text
/// y = (x ∗ w·sinc) at 16 kHz,   w a squared Blackman-Harris window
/// n_y = round(n_x · 16000 / rate)
/// ```
/// The filter is symmetric and its delay taken off, so that a sound stays at its time. Before and after the sound there is silence.
pub(super) struct Resampler {
    rate: u32,
    /// None where nothing needs to be done.
    blocks: Option<Blocks>,
    n_in: u64,
    n_out: u64,
}

/// In `f64`, like the spectra: transforms of one kind of numbers take the compiler half as long as of two.
struct Blocks {
    fft: Fft<f64>,
    /// Samples that do not fill a block yet.
    waiting: Vec<f64>,
    /// How many more samples the filter is late by.
    late: usize,
    resampled: Vec<f64>,
}

impl Resampler {
    /// For so many samples a second; the caller has checked that they are neither 0 nor beyond reason.
    pub(super) fn new(rate: u32) -> Self {
        let blocks = (rate != SAMPLE_RATE).then(|| Blocks::new(rate as usize));
        Self { rate, blocks, n_in: 0, n_out: 0 }
    }

    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    /// Takes samples in and appends to `out` what they settle.
    pub(super) fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        let before = out.len();
        self.n_in += samples.len() as u64;
        match &mut self.blocks {
            None => out.extend_from_slice(samples),
            Some(blocks) => blocks.push(samples, out),
        }
        self.n_out += (out.len() - before) as u64;
    }

    /// Appends what is left, to the exact length of the sound.
    pub(super) fn finish(mut self, out: &mut Vec<f32>) {
        let Some(blocks) = &mut self.blocks else { return };
        let length = (u128::from(self.n_in) * u128::from(SAMPLE_RATE) + u128::from(self.rate / 2)) / u128::from(self.rate);
        // At most two blocks: less than one waits, and the filter is late by half of one.
        let missing = (length as u64).saturating_sub(self.n_out) as usize;
        let end = out.len() + missing;
        let silence = vec![0.0; blocks.fft.fft_size_in()];
        while out.len() < end {
            blocks.push(&silence, out);
        }
        out.truncate(end);
    }
}

impl Blocks {
    fn new(rate: usize) -> Self {
        let common = greatest_common_divisor(rate, SAMPLE_RATE as usize);
        let [least_in, least_out] = [rate, SAMPLE_RATE as usize].map(|rate| rate / common);
        // An even number of them, so that half a block, the delay, is whole on both sides.
        let n = LEAST_BLOCK.div_ceil(least_in.min(least_out)).next_multiple_of(2);
        let fft = Fft::new_custom(rate, SAMPLE_RATE as usize, n * least_in, 1, 1, WindowFunction::BlackmanHarris2, FixedSync::Both)
            .expect("rates and blocks are not 0: checked where the rate was read");
        Self { waiting: Vec::new(), late: fft.output_delay(), resampled: vec![0.0; fft.output_frames_max()], fft }
    }

    fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.waiting.extend(samples.iter().map(|&sample| f64::from(sample)));
        let n_block = self.fft.fft_size_in();
        let n_whole = self.waiting.len() - self.waiting.len() % n_block;
        for block in self.waiting[..n_whole].chunks_exact(n_block) {
            let n_resampled = self.resampled.len();
            let block = InterleavedSlice::new(block, 1, n_block).expect("a block has the length it was cut to");
            let mut resampled = InterleavedSlice::new_mut(&mut self.resampled, 1, n_resampled).expect("a slice has its own length");
            let (_, n_made) = self.fft.process_into_buffer(&block, &mut resampled, None).expect("a whole block fits");
            let skipped = self.late.min(n_made);
            self.late -= skipped;
            out.extend(self.resampled[skipped..n_made].iter().map(|&sample| sample as f32));
        }
        self.waiting.drain(..n_whole);
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
