//! The pieces of every score of a sentence.

use crosslens_kernels::{Matrix, MatrixMut, Real, dots, dots_of, fetch_for_later, vectorised};

use super::known::Known;
use super::mapped::{Mapped, Parts, Residuals};
use super::{N_PARTS, N_TERMS, Subset, additive};
use crate::{Components, Description, Recorded, ScoreMap, Site, Token, Visible};

/// A site with its components carried through its score map, ready to split sentences.
pub struct SiteSplit<'a, F: Real> {
    site: &'a Site,
    description: &'a Description,
    query: Mapped<'a, F>,
    key: Mapped<'a, F>,
    /// Terms that are the same for every sentence; `None` for additive maps, and where they would be too many.
    known: Option<Known<F>>,
    /// `v` of an additive map, else empty.
    vector: Vec<F>,
    scale: F,
}

/// Rows of queries that are multiplied between two looks ahead: as many as stay in the nearest cache together.
const ROWS_BETWEEN_REQUESTS: usize = 10;

/// Why a sentence cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The components are of another size than the states.
    #[error("the {side} components have {components} dimensions, the states of stream `{stream}` {states}")]
    Dimensions {
        /// Query or key.
        side: &'static str,
        /// Dimensions of the components.
        components: usize,
        /// The stream's name.
        stream: String,
        /// Dimensions of its states.
        states: usize,
    },
}

/// The pieces of all scores of one sentence at one site; a workspace that is filled again and again.
#[derive(Clone, Debug, Default)]
pub struct Breakdown<F> {
    /// The step of the first query.
    first_query: usize,
    n_queries: usize,
    n_keys: usize,
    n_pieces: usize,
    visible: Option<Visible>,
    /// Terms as `[query part, query, key part, key]`, parts as `[part, query, key]`.
    pieces: Vec<F>,
    /// `[query, key]`, or empty.
    bias: Vec<F>,
    /// What the mean of the query's temporal parts gives: by part of the key as `[key part, key]`, of additive maps as `[query, key]`.
    mean: Vec<F>,
    query: Residuals<F>,
    key: Residuals<F>,
}

impl<'a, F: Real> SiteSplit<'a, F> {
    /// Prepares a site; `query` and `key` are the components of its two streams.
    pub fn new(description: &'a Description, site: &'a Site, query: &'a Components<F>, key: &'a Components<F>) -> Result<Self, SplitError> {
        for (side, components, stream) in [("query", query, site.query), ("key", key, site.key)] {
            let stream = &description.streams[stream];
            if components.d() != stream.d {
                let (components, states) = (components.d(), stream.d);
                return Err(SplitError::Dimensions { side, components, stream: stream.name.clone(), states });
            }
        }
        let (query_map, key_map, scale) = match &site.map {
            ScoreMap::Dot { scale } => (None, None, *scale),
            ScoreMap::Bilinear { query } => (Some(query), None, 1.0),
            ScoreMap::Projected { query, key, scale, .. } => (Some(query), Some(key), *scale),
            ScoreMap::Additive { query, key, .. } => (Some(query), Some(key), 1.0),
        };
        let vector = match &site.map {
            ScoreMap::Additive { vector, .. } => vector.iter().map(|&v| F::of(f64::from(v))).collect(),
            _ => Vec::new(),
        };
        let (query, key) = (Mapped::new(query, query_map), Mapped::new(key, key_map));
        let scale = F::of(f64::from(scale));
        let known = if vector.is_empty() { Known::new(query.components(), key.components(), scale) } else { None };
        Ok(Self { site, description, query, key, known, vector, scale })
    }

    /// The site.
    pub fn site(&self) -> &'a Site {
        self.site
    }

    /// Key steps of a sentence.
    pub fn n_keys(&self, sentence: &Recorded) -> usize {
        sentence.n_steps(self.description.streams[self.site.key].side)
    }

    /// Splits all scores of a sentence.
    pub fn split(&self, sentence: &Recorded, breakdown: &mut Breakdown<F>) {
        self.split_before(sentence, None, breakdown);
    }

    /// The same where the sentence that is split next is known: its states are asked for from memory meanwhile.
    pub fn split_before(&self, sentence: &Recorded, next: Option<&Recorded>, breakdown: &mut Breakdown<F>) {
        let query = &self.description.streams[self.site.query];
        let tokens = sentence.tokens(query, self.description.words(query.side));
        let ahead = next.map_or([&[][..]; 2], |next| self.states_of(next));
        let [query_states, key_states] = self.states_of(sentence);
        self.split_from(0, (&tokens, query_states), (sentence, key_states), ahead, breakdown);
    }

    /// Of its queries and of its keys.
    fn states_of<'r>(&self, sentence: &'r Recorded) -> [&'r [f32]; 2] {
        [self.site.query, self.site.key].map(|stream| &sentence.states[stream][..])
    }

    /// Splits the scores of one query of a sentence whose states are not those recorded; in the breakdown it is query 0.
    pub fn split_query(&self, sentence: &Recorded, query: usize, query_state: &[f32], key_states: &[f32], breakdown: &mut Breakdown<F>) {
        let stream = &self.description.streams[self.site.query];
        let tokens = sentence.tokens(stream, self.description.words(stream.side));
        self.split_from(query, (&tokens[query..=query], query_state), (sentence, key_states), [&[]; 2], breakdown);
    }

    fn split_from(
        &self,
        first_query: usize,
        (query_tokens, query_states): (&[Token], &[f32]),
        (sentence, key_states): (&Recorded, &[f32]),
        ahead: [&[f32]; 2],
        breakdown: &mut Breakdown<F>,
    ) {
        let key = &self.description.streams[self.site.key];
        let key_tokens = sentence.tokens(key, self.description.words(key.side));
        breakdown.first_query = first_query;
        (breakdown.n_queries, breakdown.n_keys) = (query_tokens.len(), key_tokens.len());
        breakdown.visible = Some(self.site.visible);
        self.fill_bias(breakdown);
        let Breakdown { n_pieces, pieces, mean, query, key, .. } = breakdown;
        let queries = self.query.split(first_query, query_tokens, query_states, query);
        let keys = self.key.split(0, &key_tokens, key_states, key);
        if self.vector.is_empty() {
            *n_pieces = N_TERMS;
            pieces.resize(N_TERMS * query_tokens.len() * key_tokens.len(), F::ZERO);
            mean.resize(3 * key_tokens.len(), F::ZERO);
            match self.known.as_ref().filter(|known| first_query == 0 && known.covers(query_tokens.len(), key_tokens.len())) {
                Some(known) => {
                    self.fill_unknown_terms(known, &queries, &keys, ahead, pieces);
                    self.fill_unknown_mean(known, &keys, mean);
                }
                None => {
                    self.fill_terms(&queries, &keys, pieces);
                    self.fill_mean(&keys.all().concat(), mean);
                }
            }
        } else {
            *n_pieces = N_PARTS;
            self.fill_parts(&queries, &keys, pieces, mean);
        }
    }

    /// All nine terms in one product of three by three parts.
    fn fill_terms(&self, queries: &Parts<'_, F>, keys: &Parts<'_, F>, pieces: &mut [F]) {
        let (queries, keys) = (queries.all().concat(), keys.all().concat());
        dots_of(MatrixMut::new(pieces, queries.len(), keys.len()), &queries, &keys, self.scale);
    }

    /// The terms that depend on the sentence in three products, the others from the tables. The first product is made some rows at a time, and
    /// between them a piece of the states `ahead` is asked for: all at once would keep the products waiting.
    fn fill_unknown_terms(&self, known: &Known<F>, queries: &Parts<'_, F>, keys: &Parts<'_, F>, ahead: [&[f32]; 2], pieces: &mut [F]) {
        let (n_queries, n_keys) = (queries.rows.len(), keys.rows.len());
        let width = 3 * n_keys;
        let mut block = |row: usize, column: usize, queries: &[&[F]], keys: &[&[F]]| {
            let result = MatrixMut::strided(&mut pieces[row * width + column..], queries.len(), keys.len(), width);
            dots_of(result, queries, keys, self.scale);
        };
        let (own_queries, own_keys) = ([&queries.input[..], &queries.residual].concat(), [&keys.input[..], &keys.residual].concat());
        let n_turns = own_queries.len().div_ceil(ROWS_BETWEEN_REQUESTS);
        let mut ahead = ahead.map(|states| states.chunks(states.len().div_ceil(n_turns.max(1)).max(1)));
        for (turn, queries) in own_queries.chunks(ROWS_BETWEEN_REQUESTS).enumerate() {
            block(n_queries + turn * ROWS_BETWEEN_REQUESTS, n_keys, queries, &own_keys);
            ahead.iter_mut().filter_map(Iterator::next).for_each(fetch_for_later);
        }
        block(0, 2 * n_keys, &queries.temporal, &keys.residual);
        block(2 * n_queries, 0, &queries.residual, &keys.temporal);
        for (query, row) in pieces.chunks_exact_mut(width).take(n_queries).enumerate() {
            row[..n_keys].copy_from_slice(&known.temporal(query)[..n_keys]);
        }
        for (pieces, &row) in pieces[n_queries * width..].chunks_exact_mut(width).zip(&queries.rows) {
            pieces[..n_keys].copy_from_slice(&known.of_query_token(row)[..n_keys]);
        }
        for (key, &row) in keys.rows.iter().enumerate() {
            let scores = known.of_key_token(row);
            for (pieces, &score) in pieces.chunks_exact_mut(width).zip(&scores[..n_queries]) {
                pieces[n_keys + key] = score;
            }
        }
    }

    /// The mean of the query's temporal parts with some keys.
    fn fill_mean(&self, keys: &[&[F]], mean: &mut [F]) {
        let query = self.query.components().mean();
        dots_of(MatrixMut::new(mean, 1, keys.len()), &[query], keys, self.scale);
    }

    fn fill_unknown_mean(&self, known: &Known<F>, keys: &Parts<'_, F>, mean: &mut [F]) {
        let (steps, others) = mean.split_at_mut(keys.rows.len());
        let (tokens, residuals) = others.split_at_mut(keys.rows.len());
        steps.copy_from_slice(&known.mean_steps()[..steps.len()]);
        tokens.iter_mut().zip(&keys.rows).for_each(|(mean, &row)| *mean = known.mean_of_key_token(row));
        self.fill_mean(&keys.residual, residuals);
    }

    /// Six parts of every score, and what the mean of the query's temporal parts gives of the first.
    fn fill_parts(&self, queries: &Parts<'_, F>, keys: &Parts<'_, F>, pieces: &mut Vec<F>, mean: &mut Vec<F>) {
        let (n_queries, n_keys) = (queries.input.len(), keys.input.len());
        pieces.resize(N_PARTS * n_queries * n_keys, F::ZERO);
        mean.resize(n_queries * n_keys, F::ZERO);
        for q in 0..n_queries {
            for k in 0..n_keys {
                let (query, key) = (queries.all().map(|part| part[q]), keys.all().map(|part| part[k]));
                let [parts @ .., of_mean] = additive::attribute(query, key, self.query.components().mean(), &self.vector);
                mean[q * n_keys + k] = of_mean;
                for (piece, value) in parts.into_iter().enumerate() {
                    pieces[(piece * n_queries + q) * n_keys + k] = value;
                }
            }
        }
    }

    fn fill_bias(&self, breakdown: &mut Breakdown<F>) {
        breakdown.bias.clear();
        if let Some(bias) = self.site.map.position_bias() {
            for query in 0..breakdown.n_queries {
                breakdown.bias.extend((0..breakdown.n_keys).map(|key| F::of(f64::from(bias.at(breakdown.first_query + query, key)))));
            }
        }
    }

    /// The scores of the sentence just split into `breakdown`, `[query, key]`, from its unsplit states, the bias of positions included:
    /// what the pieces must add up to.
    pub fn scores(&self, sentence: &Recorded, breakdown: &Breakdown<F>, scores: &mut Vec<F>) {
        let (n_queries, n_keys, d) = (breakdown.n_queries, breakdown.n_keys, self.query.d());
        scores.clear();
        scores.resize(n_queries * n_keys, F::ZERO);
        let queries = self.query.states(&sentence.states[self.site.query], &breakdown.query);
        let keys = self.key.states(&sentence.states[self.site.key], &breakdown.key);
        if self.vector.is_empty() {
            let result = MatrixMut::new(scores, n_queries, n_keys);
            dots(result, Matrix::new(&queries, n_queries, d), Matrix::new(&keys, n_keys, d), self.scale);
        } else {
            for (query, scores) in queries.chunks_exact(d).zip(scores.chunks_exact_mut(n_keys)) {
                for (key, score) in keys.chunks_exact(d).zip(scores) {
                    *score = query.iter().zip(key).zip(&self.vector).map(|((&q, &k), &v)| v * (q + k).tanh_fast()).sum();
                }
            }
        }
        scores.iter_mut().zip(&breakdown.bias).for_each(|(score, &bias)| *score += bias);
    }
}

impl<F: Real> Breakdown<F> {
    /// Query steps.
    pub fn n_queries(&self) -> usize {
        self.n_queries
    }

    /// Key steps, visible or not.
    pub fn n_keys(&self) -> usize {
        self.n_keys
    }

    /// Nine for a bilinear map, six for an additive one.
    pub fn n_pieces(&self) -> usize {
        self.n_pieces
    }

    /// Keys the query at this step may see: the first so many.
    pub fn n_visible(&self, query: usize) -> usize {
        self.visible.map_or(0, |visible| visible.n_keys(self.first_query + query, self.n_keys))
    }

    /// One piece of one query's scores, over the visible keys.
    pub fn piece(&self, piece: usize, query: usize) -> &[F] {
        let columns = if self.n_pieces == N_TERMS { 3 } else { 1 };
        let row = piece / columns * self.n_queries + query;
        &self.pieces[(row * columns + piece % columns) * self.n_keys..][..self.n_visible(query)]
    }

    /// The bias of positions of one query, over the visible keys; empty if there is none.
    pub fn bias(&self, query: usize) -> &[F] {
        if self.bias.is_empty() { &[] } else { &self.bias[query * self.n_keys..][..self.n_visible(query)] }
    }

    /// What the mean of the query's temporal parts gives with one part of the keys, over the keys this query sees. An additive map knows no
    /// pairs of parts: there the first is what the mean gives of the query's temporal part, and the others are empty.
    pub fn mean_piece(&self, key_part: usize, query: usize) -> &[F] {
        let row = match (self.n_pieces == N_TERMS, key_part) {
            (true, _) => key_part,
            (false, 0) => query,
            (false, _) => return &[],
        };
        &self.mean[row * self.n_keys..][..self.n_visible(query)]
    }

    /// One query's score from a subset of its pieces, over the visible keys.
    pub fn sum(&self, subset: Subset, query: usize, sum: &mut Vec<F>) {
        sum.clear();
        sum.resize(self.n_visible(query), F::ZERO);
        vectorised(
            #[inline(always)]
            || {
                for piece in (0..self.n_pieces).filter(|&piece| subset.holds(piece)) {
                    add_row(sum, self.piece(piece, query));
                }
                if subset.bias {
                    add_row(sum, self.bias(query));
                }
            },
        );
    }
}

/// Adds a row, or nothing where it is empty: a register at a time, since a compiler left alone takes rows of some tens one by one.
#[inline(always)]
fn add_row<F: Real>(sum: &mut [F], row: &[F]) {
    let ((sums, last), (rows, rest)) = (sum.as_chunks_mut::<8>(), row.as_chunks::<8>());
    for (sum, row) in sums.iter_mut().zip(rows) {
        let mut both = *sum;
        for i in 0..8 {
            both[i] += row[i];
        }
        *sum = both;
    }
    last.iter_mut().zip(rest).for_each(|(sum, &row)| *sum += row);
}
