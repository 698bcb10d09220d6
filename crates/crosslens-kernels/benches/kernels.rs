//! Kernels one by one: `cargo bench -p crosslens-kernels`.

use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, dots, product, softmax, transposed_product, vectorised};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn noise(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.7).sin()).collect()
}

/// One recurrent step: a shard's states times the packed recurrent weights. Items are floating-point operations.
#[divan::bench(args = [("S", 32, 128), ("S", 64, 128), ("M", 32, 256), ("M", 64, 256)])]
fn recurrent_step(bencher: Bencher<'_, '_>, (_, rows, n): (&str, usize, usize)) {
    let (states, weights) = (noise(rows * n), noise(n * 3 * n));
    let mut gates = noise(rows * 3 * n);
    let mut packed = Packed::new();
    packed.pack(Matrix::new(&weights, n, 3 * n));
    bencher.counter(ItemsCount::new(2 * rows * n * 3 * n)).bench_local(|| {
        product(MatrixMut::new(&mut gates, rows, 3 * n), Matrix::new(&states, rows, n), &packed, Write::Over);
    });
}

/// The gradient of the recurrent weights over all steps of a shard. Items are floating-point operations.
#[divan::bench(args = [("S", 480, 128), ("S", 960, 128), ("M", 1600, 256)])]
fn weight_gradient(bencher: Bencher<'_, '_>, (_, rows, n): (&str, usize, usize)) {
    let (states, gates) = (noise(rows * n), noise(rows * 3 * n));
    let mut gradient = noise(n * 3 * n);
    let mut scratch = Packed::new();
    bencher.counter(ItemsCount::new(2 * rows * n * 3 * n)).bench_local(|| {
        transposed_product(
            MatrixMut::new(&mut gradient, n, 3 * n),
            Matrix::new(&states, rows, n),
            Matrix::new(&gates, rows, 3 * n),
            Write::Add,
            &mut scratch,
        );
    });
}

/// Packing the recurrent weights, as they are and transposed. Items are weights.
#[divan::bench(args = [("as is", 128), ("transposed", 128), ("as is", 256), ("transposed", 256)])]
fn pack(bencher: Bencher<'_, '_>, (how, n): (&str, usize)) {
    let weights = noise(n * 3 * n);
    let matrix = Matrix::new(&weights, n, 3 * n);
    let matrix = if how == "transposed" { matrix.transposed() } else { matrix };
    let mut packed = Packed::new();
    bencher.counter(ItemsCount::new(n * 3 * n)).bench_local(|| packed.pack(matrix));
}

/// Scores of one sentence. Items are floating-point operations.
#[divan::bench(args = [("S", 15, 15, 128), ("M", 50, 16, 256), ("analysis", 25, 25, 512)])]
fn scores(bencher: Bencher<'_, '_>, (_, n_queries, n_keys, n): (&str, usize, usize, usize)) {
    let (queries, keys) = (noise(n_queries * n), noise(n_keys * n));
    let mut result = noise(n_queries * n_keys);
    bencher.counter(ItemsCount::new(2 * n_queries * n_keys * n)).bench_local(|| {
        dots(MatrixMut::new(&mut result, n_queries, n_keys), Matrix::new(&queries, n_queries, n), Matrix::new(&keys, n_keys, n), 1.0);
    });
}

/// Elementary functions. Items are elements.
#[divan::bench(args = ["exp", "tanh", "sigmoid", "softmax"])]
fn elementary(bencher: Bencher<'_, '_>, function: &str) {
    const N: usize = 4096;
    let input = noise(N);
    let mut output = vec![0.0f32; N];
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        output.copy_from_slice(&input);
        match function {
            "exp" => vectorised(
                #[inline(always)]
                || output.iter_mut().for_each(|x| *x = x.exp_fast()),
            ),
            "tanh" => vectorised(
                #[inline(always)]
                || output.iter_mut().for_each(|x| *x = x.tanh_fast()),
            ),
            "sigmoid" => vectorised(
                #[inline(always)]
                || output.iter_mut().for_each(|x| *x = x.sigmoid_fast()),
            ),
            _ => output.chunks_exact_mut(16).for_each(softmax),
        }
    });
}
