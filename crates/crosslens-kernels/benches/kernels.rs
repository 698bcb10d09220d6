//! Kernels one by one: `cargo bench -p crosslens-kernels`.

use crosslens_kernels::{
    Matrix, MatrixMut, Packed, Real, Write, add, add_scaled, dots, dots_of, log_sum_exp, place_of_highest, product, product_of_many,
    product_of_rows, softmax, squared_norm, sum_rows, transposed_product, vectorised,
};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn noise<F: Real>(n: usize) -> Vec<F> {
    (0..n).map(|i| F::of((i as f64 * 0.7).sin())).collect()
}

/// One recurrent step: a shard's states times the packed recurrent weights. Items are floating-point operations.
#[divan::bench(types = [f32, f64], args = [("S", 32, 128), ("S", 64, 128), ("M", 32, 256), ("M", 64, 256)])]
fn recurrent_step<F: Real>(bencher: Bencher<'_, '_>, (_, rows, n): (&str, usize, usize)) {
    let (states, weights) = (noise::<F>(rows * n), noise::<F>(n * 3 * n));
    let mut gates = noise::<F>(rows * 3 * n);
    let mut packed = Packed::new();
    packed.pack(Matrix::new(&weights, n, 3 * n));
    bencher.counter(ItemsCount::new(2 * rows * n * 3 * n)).bench_local(|| {
        product(MatrixMut::new(&mut gates, rows, 3 * n), Matrix::new(&states, rows, n), &packed, Write::Over);
    });
}

/// Rows times the weights of a large map: feed-forward layers of T5-small, readouts of 8,000 words. Items are floating-point operations.
#[divan::bench(types = [f32], args = [("T5", 96, 512, 512), ("T5", 96, 512, 2048), ("T5", 96, 2048, 512), ("words", 64, 1536, 8000), ("words", 32, 1536, 8000)])]
fn large_map<F: Real>(bencher: Bencher<'_, '_>, (_, rows, d_in, d_out): (&str, usize, usize, usize)) {
    let (states, weights) = (noise::<F>(rows * d_in), noise::<F>(d_in * d_out));
    let mut result = noise::<F>(rows * d_out);
    let mut packed = Packed::new();
    packed.pack(Matrix::new(&weights, d_in, d_out));
    bencher.counter(ItemsCount::new(2 * rows * d_in * d_out)).bench_local(|| {
        product(MatrixMut::new(&mut result, rows, d_out), Matrix::new(&states, rows, d_in), &packed, Write::Over);
    });
}

/// Many rows, on the matrix unit if there is one, through one map, which stays in the cache, or through many, which do not. Items are
/// floating-point operations.
#[divan::bench(args = [(16, 1), (32, 1), (224, 1), (224, 64), (400, 64)])]
fn map_of_many_rows(bencher: Bencher<'_, '_>, (rows, n_maps): (usize, usize)) {
    const N: usize = 512;
    let (states, weights) = (noise::<f32>(rows * N), noise(N * N));
    let mut result = noise::<f32>(rows * N);
    let mut packed = Packed::new();
    packed.pack(Matrix::new(&weights, N, N));
    let maps = vec![packed; n_maps];
    bencher.counter(ItemsCount::new(2 * rows * N * N * n_maps)).bench_local(|| {
        for packed in &maps {
            product_of_many(MatrixMut::new(&mut result, rows, N), Matrix::new(&states, rows, N), packed, Write::Over);
        }
    });
}

/// The gradient of the recurrent weights over all steps of a shard. Items are floating-point operations.
#[divan::bench(types = [f32, f64], args = [("S", 480, 128), ("S", 960, 128), ("M", 1600, 256)])]
fn weight_gradient<F: Real>(bencher: Bencher<'_, '_>, (_, rows, n): (&str, usize, usize)) {
    let (states, gates) = (noise::<F>(rows * n), noise::<F>(rows * 3 * n));
    let mut gradient = noise::<F>(n * 3 * n);
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
#[divan::bench(types = [f32, f64], args = [("as is", 128), ("transposed", 128), ("as is", 256), ("transposed", 256)])]
fn pack<F: Real>(bencher: Bencher<'_, '_>, (how, n): (&str, usize)) {
    let weights = noise::<F>(n * 3 * n);
    let matrix = Matrix::new(&weights, n, 3 * n);
    let matrix = if how == "transposed" { matrix.transposed() } else { matrix };
    let mut packed = Packed::new();
    bencher.counter(ItemsCount::new(n * 3 * n)).bench_local(|| packed.pack(matrix));
}

/// Scores of one sentence. Items are floating-point operations.
#[divan::bench(types = [f32, f64], args = [("S", 15, 15, 128), ("M", 50, 16, 256), ("analysis", 25, 25, 512)])]
fn scores<F: Real>(bencher: Bencher<'_, '_>, (_, n_queries, n_keys, n): (&str, usize, usize, usize)) {
    let (queries, keys) = (noise::<F>(n_queries * n), noise::<F>(n_keys * n));
    let mut result = noise::<F>(n_queries * n_keys);
    bencher.counter(ItemsCount::new(2 * n_queries * n_keys * n)).bench_local(|| {
        dots(MatrixMut::new(&mut result, n_queries, n_keys), Matrix::new(&queries, n_queries, n), Matrix::new(&keys, n_keys, n), F::ONE);
    });
}

/// The same between rows picked out of a table. Items are floating-point operations.
#[divan::bench(types = [f32, f64], args = [("S", 15, 15, 128), ("analysis", 25, 25, 512)])]
fn scores_of_picked_rows<F: Real>(bencher: Bencher<'_, '_>, (_, n_queries, n_keys, n): (&str, usize, usize, usize)) {
    const ROWS: usize = 97;
    let table = noise::<F>(ROWS * n);
    let rows: Vec<&[F]> = (0..n_queries.max(50) + n_keys).map(|number| &table[number * 31 % ROWS * n..][..n]).collect();
    let (queries, keys) = (&rows[..n_queries], &rows[50..][..n_keys]);
    let mut result = noise::<F>(n_queries * n_keys);
    bencher.counter(ItemsCount::new(2 * n_queries * n_keys * n)).bench_local(|| {
        dots_of(MatrixMut::new(&mut result, n_queries, n_keys), queries, keys, F::ONE);
    });
}

/// Contexts of one sentence: its attention weights times its values. Items are floating-point operations.
#[divan::bench(types = [f32, f64], args = [("S", 15, 15, 128), ("M", 50, 16, 256)])]
fn contexts<F: Real>(bencher: Bencher<'_, '_>, (_, n_queries, n_keys, n): (&str, usize, usize, usize)) {
    let (weights, values) = (noise::<F>(n_queries * n_keys), noise::<F>(n_keys * n));
    let mut result = noise::<F>(n_queries * n);
    bencher.counter(ItemsCount::new(2 * n_queries * n_keys * n)).bench_local(|| {
        let (weights, values) = (Matrix::new(&weights, n_queries, n_keys), Matrix::new(&values, n_keys, n));
        product_of_rows(MatrixMut::new(&mut result, n_queries, n), weights, values, Write::Over);
    });
}

/// Losses of rows of logits: a small vocabulary and a large one. Items are logits.
#[divan::bench(types = [f32, f64], args = [16, 8000])]
fn losses<F: Real>(bencher: Bencher<'_, '_>, n_words: usize) {
    let logits = noise::<F>(n_words);
    let mut row = logits.clone();
    bencher.counter(ItemsCount::new(n_words)).bench_local(|| {
        row.copy_from_slice(&logits);
        log_sum_exp(&mut row)
    });
}

/// The word that a row of logits chooses: a small vocabulary, a large one, and one whose choice stands last. Items are logits.
#[divan::bench(types = [f32, f64], args = [("small", 16), ("large", 8000), ("last", 8000)])]
fn choices<F: Real>(bencher: Bencher<'_, '_>, (which, n_words): (&str, usize)) {
    let mut logits = noise::<F>(n_words);
    if which == "last" {
        logits[n_words - 1] = F::of(2.0);
    }
    bencher.counter(ItemsCount::new(n_words)).bench_local(|| place_of_highest(&logits));
}

/// The gradient of a bias: all rows of a shard added up. Items are numbers.
#[divan::bench(types = [f32, f64], args = [("S", 480, 384), ("M", 1600, 768)])]
fn bias_gradient<F: Real>(bencher: Bencher<'_, '_>, (_, rows, width): (&str, usize, usize)) {
    let gates = noise::<F>(rows * width);
    let mut sums = vec![F::ZERO; width];
    bencher.counter(ItemsCount::new(rows * width)).bench_local(|| sum_rows(&mut sums, Matrix::new(&gates, rows, width)));
}

/// What an update does with whole gradients, a piece at a time. Items are numbers.
#[divan::bench(types = [f32, f64], args = ["add", "add scaled", "squared norm"])]
fn gradients<F: Real>(bencher: Bencher<'_, '_>, what: &str) {
    const N: usize = 1 << 15;
    let (gradient, mut sum) = (noise::<F>(N), noise::<F>(N));
    bencher.counter(ItemsCount::new(N)).bench_local(|| match what {
        "add" => add(&mut sum, &gradient),
        "add scaled" => add_scaled(&mut sum, F::of(1e-9), &gradient),
        _ => divan::black_box_drop(squared_norm(&gradient)),
    });
}

/// Elementary functions. Items are elements.
#[divan::bench(types = [f32, f64], args = ["exp", "tanh", "sigmoid", "softmax"])]
fn elementary<F: Real>(bencher: Bencher<'_, '_>, function: &str) {
    const N: usize = 4096;
    let input = noise::<F>(N);
    let mut output = noise::<F>(N);
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
