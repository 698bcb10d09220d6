//! The four sums.

use std::collections::HashMap;

use crosslens_kernels::{fetch_ahead, vectorised};

use crate::Token;

/// Sums over all states of one stream, enough to fit every estimator:
///
/// ```text
/// n[t], H[t] = Σ h at step t      m[w], H[w] = Σ h where the token is w      c[w,t] how often w stands at t      Q = Σ ‖h‖²
/// ```
///
/// Kept in `f64`, rows only for tokens seen, `c` sparse: memory does not grow with the number of sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    pub(super) d: usize,
    /// `n[t]`.
    pub(super) n: Vec<u64>,
    /// `H[t]`, `[step, d]`.
    pub(super) by_step: Vec<f64>,
    rows: HashMap<Token, usize>,
    /// In the order they were first seen.
    pub(super) tokens: Vec<TokenSum>,
    /// `Q`.
    pub(super) squares: f64,
}

/// The sums of one token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenSum {
    pub(crate) token: Token,
    /// `m[w]`.
    pub(crate) count: u64,
    /// `H[w]`.
    pub(crate) sum: Vec<f64>,
    /// `(t, c[w,t])` where `c` is not 0, ascending in `t`.
    pub(crate) steps: Vec<(u32, u64)>,
}

/// Why two sums do not add up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sums of states with {left} and with {right} dimensions cannot be merged")]
pub struct MergeError {
    /// Dimensions on one side.
    pub left: usize,
    /// Dimensions on the other.
    pub right: usize,
}

impl Sums {
    /// No state yet, of `d` dimensions.
    pub fn new(d: usize) -> Self {
        Self { d, n: Vec::new(), by_step: Vec::new(), rows: HashMap::new(), tokens: Vec::new(), squares: 0.0 }
    }

    /// Dimensions of a state.
    pub fn d(&self) -> usize {
        self.d
    }

    /// Steps of the longest sentence.
    pub fn n_steps(&self) -> usize {
        self.n.len()
    }

    /// Tokens seen.
    pub fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// States added.
    pub fn n_states(&self) -> u64 {
        self.n.iter().sum()
    }

    /// Whether every state added was made of finite numbers.
    pub fn is_finite(&self) -> bool {
        self.squares.is_finite()
    }

    /// How often each step was reached.
    pub fn step_counts(&self) -> &[u64] {
        &self.n
    }

    /// Every token seen and how often, ascending.
    pub fn token_counts(&self) -> Vec<(Token, u64)> {
        self.ascending().map(|token| (token.token, token.count)).collect()
    }

    /// Puts sums together that were kept elsewhere; none where the lengths do not fit or a token stands twice.
    pub(crate) fn from_parts(d: usize, n: Vec<u64>, by_step: Vec<f64>, tokens: Vec<TokenSum>, squares: f64) -> Option<Self> {
        let rows: HashMap<Token, usize> = tokens.iter().enumerate().map(|(row, token)| (token.token, row)).collect();
        let fits = n.len().checked_mul(d) == Some(by_step.len()) && rows.len() == tokens.len();
        (fits && tokens.iter().all(|token| token.sum.len() == d)).then_some(Self { d, n, by_step, rows, tokens, squares })
    }

    /// `H[t]`, `[step, d]`.
    pub fn by_step(&self) -> &[f64] {
        &self.by_step
    }

    /// By token, in the order they were first seen.
    pub(crate) fn tokens(&self) -> &[TokenSum] {
        &self.tokens
    }

    /// `H[w]` of every token seen, ascending.
    pub fn by_token(&self) -> Vec<(Token, &[f64])> {
        self.ascending().map(|token| (token.token, token.sum.as_slice())).collect()
    }

    /// `Q`.
    pub fn squares(&self) -> f64 {
        self.squares
    }

    /// Adds one sentence: `states` is `[step, d]`, `tokens` the last token consumed at each step.
    ///
    /// Panics if the lengths do not fit.
    pub fn add(&mut self, tokens: &[Token], states: &[f32]) {
        self.add_all(&[(tokens, states)]);
    }

    /// Adds several sentences.
    ///
    /// Panics if the lengths do not fit.
    pub fn add_all(&mut self, sentences: &[(&[Token], &[f32])]) {
        let d = self.d;
        assert!(sentences.iter().all(|(tokens, states)| states.len() == tokens.len() * d), "one state a token");
        self.reach(sentences.iter().map(|(tokens, _)| tokens.len()).max().unwrap_or(0));
        for (tokens, states) in sentences {
            let rows: Vec<usize> = tokens.iter().map(|&token| self.row(token)).collect();
            for (step, state) in states.chunks_exact(d.max(1)).enumerate() {
                if let Some(&next) = rows.get(step + 1) {
                    fetch_ahead(&self.tokens[next].sum);
                    fetch_ahead(&self.tokens[next].steps);
                }
                if let Some(&later) = rows.get(step + 2) {
                    fetch_ahead(std::slice::from_ref(&self.tokens[later]));
                }
                self.add_state(rows[step], step, state);
            }
        }
    }

    fn add_state(&mut self, row: usize, step: usize, state: &[f32]) {
        self.n[step] += 1;
        let sums = &mut self.tokens[row];
        sums.count += 1;
        count(&mut sums.steps, step as u32, 1);
        self.squares += accumulate(state, &mut self.by_step[step * self.d..][..self.d], &mut sums.sum);
    }

    /// Adds what another one has summed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.d != other.d {
            return Err(MergeError { left: self.d, right: other.d });
        }
        self.reach(other.n_steps());
        self.n.iter_mut().zip(&other.n).for_each(|(n, other)| *n += other);
        self.by_step.iter_mut().zip(&other.by_step).for_each(|(sum, other)| *sum += other);
        for token in &other.tokens {
            let row = self.row(token.token);
            let sums = &mut self.tokens[row];
            sums.count += token.count;
            sums.sum.iter_mut().zip(&token.sum).for_each(|(sum, other)| *sum += other);
            token.steps.iter().for_each(|&(step, times)| count(&mut sums.steps, step, times));
        }
        self.squares += other.squares;
        Ok(())
    }

    /// The tokens' sums in ascending order: what is computed from them does not depend on who came first.
    pub(super) fn ascending(&self) -> impl Iterator<Item = &TokenSum> + Clone {
        let mut order: Vec<&TokenSum> = self.tokens.iter().collect();
        order.sort_unstable_by_key(|token| token.token);
        order.into_iter()
    }

    /// `H[t]`.
    pub(super) fn step_sum(&self, step: usize) -> &[f64] {
        &self.by_step[step * self.d..][..self.d]
    }

    /// `Σ h` over all states.
    pub(super) fn total(&self) -> Vec<f64> {
        let mut total = vec![0.0; self.d];
        for step in 0..self.n_steps() {
            total.iter_mut().zip(self.step_sum(step)).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    fn reach(&mut self, n_steps: usize) {
        if n_steps > self.n.len() {
            self.n.resize(n_steps, 0);
            self.by_step.resize(n_steps * self.d, 0.0);
        }
    }

    fn row(&mut self, token: Token) -> usize {
        let next = self.tokens.len();
        let row = *self.rows.entry(token).or_insert(next);
        if row == next {
            self.tokens.push(TokenSum { token, count: 0, sum: vec![0.0; self.d], steps: Vec::new() });
        }
        row
    }
}

fn count(steps: &mut Vec<(u32, u64)>, step: u32, times: u64) {
    match steps.binary_search_by_key(&step, |&(step, _)| step) {
        Ok(place) => steps[place].1 += times,
        Err(place) => steps.insert(place, (step, times)),
    }
}

/// Adds a state to both sums and returns its squared norm: one pass over memory.
fn accumulate(state: &[f32], by_step: &mut [f64], by_token: &mut [f64]) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let n = state.len();
            let (by_step, by_token) = (&mut by_step[..n], &mut by_token[..n]);
            let mut squares = [0.0; 8];
            let (blocks, rest) = state.as_chunks::<8>();
            let (step_blocks, step_rest) = by_step.as_chunks_mut::<8>();
            let (token_blocks, token_rest) = by_token.as_chunks_mut::<8>();
            for ((block, by_step), by_token) in blocks.iter().zip(step_blocks).zip(token_blocks) {
                for i in 0..8 {
                    let x = f64::from(block[i]);
                    by_step[i] += x;
                    by_token[i] += x;
                    squares[i] += x * x;
                }
            }
            for ((&x, by_step), by_token) in rest.iter().zip(step_rest).zip(token_rest) {
                let x = f64::from(x);
                *by_step += x;
                *by_token += x;
                squares[0] += x * x;
            }
            squares.iter().sum()
        },
    )
}
