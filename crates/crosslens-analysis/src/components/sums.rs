//! The four sums.

use crosslens_kernels::{Aligned, fetch_ahead, fetch_line, vectorised};

use super::rows::TokenRows;
use crate::Token;

/// Sums over all states of one stream, enough to fit every estimator:
///
/// ```text
/// n[t], H[t] = Σ h at step t      m[w], H[w] = Σ h where the token is w      c[w,t] how often w stands at t      Q = Σ ‖h‖²
/// ```
///
/// Kept in `f64`, rows only for tokens seen, `c` sparse: memory does not grow with the number of sentences once every token was seen at
/// every step. Sums are equal where their numbers are, whichever token was seen first.
#[derive(Clone, Debug)]
pub struct Sums {
    pub(super) d: usize,
    /// `n[t]`.
    pub(super) n: Vec<u64>,
    /// `H[t]`, `[step, d]`.
    pub(super) by_step: Aligned<f64>,
    rows: TokenRows,
    /// In the order they were first seen.
    pub(super) tokens: Vec<TokenSum>,
    /// `Q`.
    pub(super) squares: f64,
}

impl PartialEq for Sums {
    fn eq(&self, other: &Self) -> bool {
        let of_states = |sums: &Self| (sums.d, sums.tokens.len(), sums.squares);
        of_states(self) == of_states(other) && self.n == other.n && self.by_step == other.by_step && self.ascending().eq(other.ascending())
    }
}

/// The sums of one token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenSum {
    pub(crate) token: Token,
    /// `m[w]`.
    pub(crate) count: u64,
    /// `H[w]`.
    pub(crate) sum: Aligned<f64>,
    /// `(t, c[w,t])` where `c` is not 0, ascending in `t`.
    pub(crate) steps: Vec<(u32, u64)>,
}

/// A state among those of several sentences, ordered by the row of its token and then as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    row: u32,
    sentence: u32,
    step: u32,
}

/// How many states before a token's sums are needed they are asked for: memory takes longer to answer than one or two states take to be added.
const SUMS_AHEAD: usize = 3;
/// The same for states, which mostly lie one after the other.
const STATES_AHEAD: usize = 2;

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
        Self { d, n: Vec::new(), by_step: Aligned::default(), rows: TokenRows::default(), tokens: Vec::new(), squares: 0.0 }
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
    pub(crate) fn from_parts(d: usize, n: Vec<u64>, by_step: &[f64], tokens: Vec<TokenSum>, squares: f64) -> Option<Self> {
        let mut rows = TokenRows::default();
        tokens.iter().for_each(|token| _ = rows.get_or_next(token.token));
        let fits = n.len().checked_mul(d) == Some(by_step.len()) && rows.len() == tokens.len();
        (fits && tokens.iter().all(|token| token.sum.len() == d)).then(|| Self { d, n, by_step: by_step.into(), rows, tokens, squares })
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
        self.ascending().map(|token| (token.token, &token.sum[..])).collect()
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

    /// Adds several sentences: token by token, so that each token's sums are fetched once, however often it stands there.
    ///
    /// Panics if the lengths do not fit.
    pub fn add_all(&mut self, sentences: &[(&[Token], &[f32])]) {
        let d = self.d;
        assert!(sentences.iter().all(|(tokens, states)| states.len() == tokens.len() * d), "one state a token");
        self.reach(sentences.iter().map(|(tokens, _)| tokens.len()).max().unwrap_or(0));
        let mut places = Vec::with_capacity(sentences.iter().map(|(tokens, _)| tokens.len()).sum());
        for (number, (tokens, _)) in sentences.iter().enumerate() {
            for (step, &token) in tokens.iter().enumerate() {
                places.push(Place { row: self.row(token) as u32, sentence: number as u32, step: step as u32 });
            }
        }
        places.sort_unstable();
        let state = |place: &Place| &sentences[place.sentence as usize].1[place.step as usize * d..][..d];
        for (number, place) in places.iter().enumerate() {
            let soon = places.get(number + SUMS_AHEAD).map(|soon| soon.row as usize).filter(|&soon| soon != place.row as usize);
            if let Some(later) = places.get(number + SUMS_AHEAD + 1) {
                fetch_ahead(std::slice::from_ref(&self.tokens[later.row as usize]));
            }
            self.add_state(place, state(place), soon, places.get(number + STATES_AHEAD).map_or(&[], state));
        }
    }

    /// Adds a state to the sums of its step and of its token. Asks meanwhile for what is read soon, since memory answers late: the sums of a
    /// token to come, where that is another, and a state to come.
    fn add_state(&mut self, place: &Place, state: &[f32], soon: Option<usize>, later: &[f32]) {
        let (row, step) = (place.row as usize, place.step as usize);
        self.n[step] += 1;
        // Taken out, so that another token's sums can be asked for meanwhile.
        let mut sum = std::mem::take(&mut self.tokens[row].sum);
        if sum.is_empty() {
            sum = Aligned::zeros(self.d);
        }
        let soon = soon.map_or(&[][..], |soon| &self.tokens[soon].sum[..]);
        self.squares += accumulate(state, &mut self.by_step[step * self.d..][..self.d], &mut sum, soon, later);
        let sums = &mut self.tokens[row];
        sums.sum = sum;
        sums.count += 1;
        count(&mut sums.steps, place.step, 1);
    }

    /// Adds what another one has summed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.d != other.d {
            return Err(MergeError { left: self.d, right: other.d });
        }
        self.reach(other.n_steps());
        self.n.iter_mut().zip(&other.n).for_each(|(n, other)| *n += other);
        self.by_step.iter_mut().zip(&other.by_step[..]).for_each(|(sum, other)| *sum += other);
        for token in &other.tokens {
            let row = self.row(token.token);
            let sums = &mut self.tokens[row];
            sums.count += token.count;
            sums.sum.grow(self.d);
            sums.sum.iter_mut().zip(&token.sum[..]).for_each(|(sum, other)| *sum += other);
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
            self.by_step.grow(n_steps * self.d);
        }
    }

    /// The row of a token; a new one's sum is still empty, and filled when the first state is added, so that it is then in the cache.
    fn row(&mut self, token: Token) -> usize {
        let row = self.rows.get_or_next(token);
        if row == self.tokens.len() {
            self.tokens.push(TokenSum { token, count: 0, sum: Aligned::default(), steps: Vec::new() });
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

/// Adds a state to both sums and returns its squared norm: one pass over memory. Of another token's sums and of a later state, which may be
/// empty, a line is asked for at a time, as many as the processor can wait for.
fn accumulate(state: &[f32], by_step: &mut [f64], by_token: &mut [f64], soon_by_token: &[f64], later_state: &[f32]) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let n = state.len();
            let (by_step, by_token) = (&mut by_step[..n], &mut by_token[..n]);
            let mut squares = [0.0; 8];
            let (blocks, rest) = state.as_chunks::<8>();
            let (step_blocks, step_rest) = by_step.as_chunks_mut::<8>();
            let (token_blocks, token_rest) = by_token.as_chunks_mut::<8>();
            for (number, ((block, by_step), by_token)) in blocks.iter().zip(step_blocks).zip(token_blocks).enumerate() {
                if !soon_by_token.is_empty() {
                    fetch_line(soon_by_token, 8 * number);
                }
                if number % 2 == 0 {
                    fetch_line(later_state, 8 * number);
                }
                // Read whole and written whole: the compiler need not fear that one lies in the other, and fills registers.
                let (mut step, mut token) = (*by_step, *by_token);
                for i in 0..8 {
                    let x = f64::from(block[i]);
                    step[i] += x;
                    token[i] += x;
                    squares[i] += x * x;
                }
                (*by_step, *by_token) = (step, token);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers, so that both orders round alike.
    #[test]
    fn sums_are_equal_whichever_token_was_seen_first() {
        let of = |tokens: &[Token], states: &[f32]| {
            let mut sums = Sums::new(1);
            sums.add(tokens, states);
            sums
        };
        let (a, b) = (of(&[5, 2], &[1.0, 2.0]), of(&[2, 7], &[4.0, 8.0]));
        let merged = |left: &Sums, right: &Sums| {
            let mut both = left.clone();
            both.merge(right).expect("of one dimension");
            both
        };
        assert_eq!(merged(&a, &b), merged(&b, &a));
        assert_ne!(merged(&a, &b), merged(&a, &a));
        assert_ne!(of(&[5, 2], &[1.0, 2.0]), of(&[2, 5], &[1.0, 2.0]));
    }

    /// Every number is a sum of whole numbers, so that nothing is rounded.
    #[test]
    fn sums_are_plain_sums_whatever_the_dimensions() {
        for d in [1, 7, 8, 9, 16, 17, 40] {
            let sentences: [(&[Token], usize); 4] = [(&[3, 3, 1], 0), (&[], 3), (&[1, 3], 3), (&[2], 5)];
            let state = |number: usize, i: usize| (number * 7 + i) as f32 - 20.0;
            let states: Vec<f32> = (0..6).flat_map(|number| (0..d).map(move |i| state(number, i))).collect();
            let all: Vec<(&[Token], &[f32])> =
                sentences.iter().map(|&(tokens, from)| (tokens, &states[from * d..][..tokens.len() * d])).collect();
            let mut together = Sums::new(d);
            together.add_all(&all);
            let mut apart = Sums::new(d);
            all.iter().for_each(|(tokens, states)| apart.add(tokens, states));
            assert_eq!(together, apart);
            let sum = |numbers: &[usize], i: usize| numbers.iter().map(|&number| f64::from(state(number, i))).sum::<f64>();
            let expect = |numbers: &[usize]| (0..d).map(|i| sum(numbers, i)).collect::<Vec<f64>>();
            let expected = [(1, expect(&[2, 3])), (2, expect(&[5])), (3, expect(&[0, 1, 4]))];
            assert!(together.by_token().into_iter().eq(expected.iter().map(|(token, sum)| (*token, &sum[..]))));
            assert_eq!(together.by_step(), [expect(&[0, 3, 5]), expect(&[1, 4]), expect(&[2])].concat());
            assert_eq!(together.squares(), states.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>());
        }
    }
}
