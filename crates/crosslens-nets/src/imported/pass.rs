//! One forward pass over a few sentences, with an intervention.

use std::ops::Range;

use crosslens_analysis::{Answer, AttentionRow, Fed, Intervene, Pair, Token};
use crosslens_kernels::{Matrix, MatrixMut, Real, Write, dots, log_sum_exp, product_of_rows, softmax, vectorised};

use super::between_grus::BetweenGrus;
use super::gru::Gru;
use crate::network::{Observation, Packing, likeliest};

/// What to run.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) pairs: &'a [Pair],
    /// The number of the first of them in the batch asked for.
    pub(super) first_pair: usize,
    pub(super) fed: Fed<'a>,
    /// The token the decoder reads first.
    pub(super) start: Token,
    pub(super) how: &'a dyn Intervene,
}

impl Work<'_> {
    /// What the decoder reads of a sentence at a step, after it wrote `predicted`.
    fn token(&self, sentence: usize, step: usize, predicted: &[Token]) -> Token {
        match (self.fed, step) {
            (Fed::Given(lists), _) => lists[self.first_pair + sentence][step],
            (_, 0) => self.start,
            (Fed::Target, _) => self.pairs[sentence].target[step - 1],
            (Fed::Own, _) => predicted[step - 1],
        }
    }
}

/// What happened; rows lie sentence after sentence, step after step.
#[derive(Debug, Default)]
pub(super) struct Trace {
    source: Packing,
    target: Packing,
    /// `[row, d_key]`.
    keys: Vec<f32>,
    /// By head, `[row, d_value / heads]`.
    values: Vec<Vec<f32>>,
    /// `[row, d_score]`.
    projected_keys: Vec<f32>,
    /// `[row, d_first]`: the states that ask.
    queries: Vec<f32>,
    /// `[row, d_second]`: the states that are read out.
    states: Vec<f32>,
    /// `[row, target word]`.
    logits: Vec<f32>,
    /// By sentence, `[head, target step, source step]`.
    attention: Vec<Vec<f32>>,
    fed: Vec<Token>,
    predicted: Vec<Token>,
    losses: Vec<f64>,
}

impl Trace {
    /// A sentence's predictions and its mean cross-entropy.
    pub(super) fn answer(&self, sentence: usize) -> Answer {
        let rows = self.target.sentence_rows(sentence);
        let losses = &self.losses[rows.clone()];
        Answer { predicted: self.predicted[rows].to_vec(), loss: losses.iter().sum::<f64>() / losses.len() as f64 }
    }

    /// All that was seen of a sentence.
    pub(super) fn observation(&self, sentence: usize) -> Observation<f32> {
        let (source, target) = (self.source.sentence_rows(sentence), self.target.sentence_rows(sentence));
        Observation {
            fed: self.fed[target.clone()].to_vec(),
            predicted: self.predicted[target.clone()].to_vec(),
            logits: rows_of(&self.logits, &target, self.fed.len()).to_vec(),
            attention: self.attention[sentence].clone(),
            encoder: rows_of(&self.keys, &source, self.source.n_rows()).to_vec(),
            decoder: rows_of(&self.states, &target, self.fed.len()).to_vec(),
            queries: rows_of(&self.queries, &target, self.fed.len()).to_vec(),
            ..Observation::default()
        }
    }
}

/// Some of `n_rows` rows of equal width.
fn rows_of<'a>(all: &'a [f32], rows: &Range<usize>, n_rows: usize) -> &'a [f32] {
    let d = all.len() / n_rows;
    &all[rows.start * d..rows.end * d]
}

/// The rows of a table that belong to tokens.
fn look_up(table: &[f32], d: usize, tokens: impl Iterator<Item = Token>) -> Vec<f32> {
    tokens.flat_map(|token| &table[token as usize * d..][..d]).copied().collect()
}

/// Rows put side by side: `[a; b]`.
fn joined(a: &[f32], d_a: usize, b: &[f32], d_b: usize) -> Vec<f32> {
    a.chunks_exact(d_a).zip(b.chunks_exact(d_b)).flat_map(|(a, b)| a.iter().chain(b)).copied().collect()
}

impl BetweenGrus {
    /// Runs sentences, none of them empty on either side.
    pub(super) fn run(&self, work: &Work<'_>) -> Trace {
        let mut trace = Trace::default();
        trace.source.arrange(work.pairs.iter().map(|pair| pair.source.len()));
        trace.target.arrange(work.pairs.iter().map(|pair| pair.target.len()));
        self.encode(work, &mut trace);
        self.decode(work, &mut trace);
        trace
    }

    fn encode(&self, work: &Work<'_>, trace: &mut Trace) {
        let packing = &trace.source;
        let mut tokens = Vec::new();
        packing.tokens(&mut tokens, |sentence| &work.pairs[sentence].source);
        let [forward, backward] = &self.encoder;
        let in_order: Vec<usize> = (0..packing.n_rows()).collect();
        let directions = [(forward, &in_order), (backward, &packing.reversed)];
        let [forward, backward] = directions.map(|((gru, table), order)| walk(gru, table, packing, &tokens, order));

        let mut keys = self.join.apply(&joined(&forward, self.sizes.d_encoder, &backward, self.sizes.d_encoder));
        vectorised(
            #[inline(always)]
            || keys.iter_mut().for_each(|x| *x = x.tanh_fast()),
        );
        let d = self.sizes.d_key;
        trace.keys = vec![0.0; keys.len()];
        for (row, &place) in keys.chunks_exact(d).zip(&packing.to_sentence) {
            trace.keys[place * d..][..d].copy_from_slice(row);
        }
        trace.projected_keys = self.key.apply(&trace.keys);
        for (head, value) in self.values.iter().enumerate() {
            let mut states = trace.keys.clone();
            for sentence in 0..work.pairs.len() {
                let rows = packing.sentence_rows(sentence);
                work.how.values(head, work.first_pair + sentence, &mut states[rows.start * d..rows.end * d]);
            }
            trace.values.push(value.apply(&states));
        }
    }

    fn decode(&self, work: &Work<'_>, trace: &mut Trace) {
        let sizes = &self.sizes;
        let n_rows = trace.target.n_rows();
        trace.queries = vec![0.0; n_rows * sizes.d_first];
        trace.states = vec![0.0; n_rows * sizes.d_second];
        trace.logits = vec![0.0; n_rows * sizes.target_words];
        (trace.fed, trace.predicted, trace.losses) = (vec![0; n_rows], vec![0; n_rows], vec![0.0; n_rows]);
        let n_weights = |pair: &Pair| sizes.heads * pair.source.len() * pair.target.len();
        trace.attention = work.pairs.iter().map(|pair| vec![0.0; n_weights(pair)]).collect();

        let (mut first, mut second) = (Vec::new(), Vec::new());
        for step in 0..trace.target.n_steps() {
            // The sentences still running are the first of those that ran before.
            let n = trace.target.rows(step).len();
            let sentences = trace.target.sentences[..n].to_vec();
            let rows: Vec<usize> = trace.target.rows(step).map(|row| trace.target.to_sentence[row]).collect();
            for (&sentence, &row) in sentences.iter().zip(&rows) {
                trace.fed[row] = work.token(sentence, step, &trace.predicted[row - step..row]);
            }
            let gates = look_up(&self.first_table, 3 * sizes.d_first, rows.iter().map(|&row| trace.fed[row]));
            first = self.first.step(gates, (step > 0).then(|| &first[..n * sizes.d_first]));
            let context = self.output.apply(&self.attend(work, step, &sentences, &first, trace));
            let inputs = joined(&first, sizes.d_first, &context, sizes.d_context);
            second = self.second.step(self.second.gates(&inputs), (step > 0).then(|| &second[..n * sizes.d_second]));

            let mut read = second.clone();
            for (&sentence, state) in sentences.iter().zip(read.chunks_exact_mut(sizes.d_second)) {
                work.how.readout(work.first_pair + sentence, step, state, &mut []);
            }
            let logits = self.readout.apply(&read);
            for (rank, (&sentence, &row)) in sentences.iter().zip(&rows).enumerate() {
                let target = work.pairs[sentence].target[step];
                trace.queries[row * sizes.d_first..][..sizes.d_first].copy_from_slice(&first[rank * sizes.d_first..][..sizes.d_first]);
                trace.states[row * sizes.d_second..][..sizes.d_second].copy_from_slice(&second[rank * sizes.d_second..][..sizes.d_second]);
                let mut logits = logits[rank * sizes.target_words..][..sizes.target_words].to_vec();
                trace.logits[row * sizes.target_words..][..sizes.target_words].copy_from_slice(&logits);
                trace.predicted[row] = likeliest(&logits);
                let of_target = logits[target as usize];
                trace.losses[row] = f64::from(log_sum_exp(&mut logits) - of_target);
            }
        }
    }

    /// What attention sums for the states that ask at one step, `[row, d_value]`.
    fn attend(&self, work: &Work<'_>, step: usize, sentences: &[usize], states: &[f32], trace: &mut Trace) -> Vec<f32> {
        let sizes = &self.sizes;
        let (d_score, d_value) = (sizes.d_score / sizes.heads, sizes.d_value / sizes.heads);
        let queries = self.query.apply(states);
        let mut sums = vec![0.0; sentences.len() * sizes.d_value];
        for (rank, &sentence) in sentences.iter().enumerate() {
            let (keys, n_steps) = (trace.source.sentence_rows(sentence), trace.target.lengths[sentence]);
            let n_keys = keys.len();
            for head in 0..sizes.heads {
                let query = &queries[rank * sizes.d_score + head * d_score..][..d_score];
                let of_head = &trace.projected_keys[keys.start * sizes.d_score + head * d_score..];
                let weights = &mut trace.attention[sentence][(head * n_steps + step) * n_keys..][..n_keys];
                dots(
                    MatrixMut::new(weights, 1, n_keys),
                    Matrix::new(query, 1, d_score),
                    Matrix::strided(of_head, n_keys, d_score, sizes.d_score),
                    self.scale(),
                );
                softmax(weights);
                let row = AttentionRow {
                    site: head,
                    pair: work.first_pair + sentence,
                    query: step,
                    query_state: &states[rank * sizes.d_first..][..sizes.d_first],
                    key_states: &trace.keys[keys.start * sizes.d_key..keys.end * sizes.d_key],
                };
                work.how.weights(row, weights);
                let values = Matrix::new(&trace.values[head][keys.start * d_value..], n_keys, d_value);
                let sum = &mut sums[rank * sizes.d_value + head * d_value..][..d_value];
                product_of_rows(MatrixMut::new(sum, 1, d_value), Matrix::new(weights, 1, n_keys), values, Write::Over);
            }
        }
        sums
    }
}

/// The states of one direction, step after step: at step-major row `i` it reads the token of row `order[i]` and leaves its state there.
fn walk(gru: &Gru, table: &[f32], packing: &Packing, tokens: &[Token], order: &[usize]) -> Vec<f32> {
    let n = gru.n();
    let mut states = vec![0.0; packing.n_rows() * n];
    let mut hidden = Vec::new();
    for step in 0..packing.n_steps() {
        let rows = packing.rows(step);
        let gates = look_up(table, 3 * n, rows.clone().map(|row| tokens[order[row]]));
        hidden = gru.step(gates, (step > 0).then(|| &hidden[..rows.len() * n]));
        for (state, row) in hidden.chunks_exact(n).zip(rows) {
            states[order[row] * n..][..n].copy_from_slice(state);
        }
    }
    states
}
