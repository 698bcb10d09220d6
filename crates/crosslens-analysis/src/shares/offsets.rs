//! Whether attention runs along a diagonal, and how far beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which way a diagonal runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonal {
    /// The query at step `s` looks at key `s + offset`.
    Forward,
    /// It looks at key `L − 1 − s + offset`, `L` the keys before the end token.
    Backward,
}

impl Diagonal {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// How often the maximum of attention lies how far from where a diagonal would have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offsets {
    forward: BTreeMap<i64, f64>,
    backward: BTreeMap<i64, f64>,
}

impl Offsets {
    /// Adds one content step: where the query at `query` looks, in a sentence of `n_content` keys before the end token.
    pub fn add(&mut self, query: usize, key: usize, n_content: usize) {
        *self.forward.entry(key as i64 - query as i64).or_default() += 1.0;
        *self.backward.entry(key as i64 - (n_content as i64 - 1 - query as i64)).or_default() += 1.0;
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in [(&mut self.forward, &other.forward), (&mut self.backward, &other.backward)] {
            other.iter().for_each(|(&offset, count)| *own.entry(offset).or_default() += count);
        }
    }

    /// The direction and constant offset that most steps share, and the share of steps that do; `None` without a step.
    ///
    /// A recurrent network may look one step later and be right: the offset says so.
    pub fn most(&self) -> Option<(Diagonal, i64, f64)> {
        let total: f64 = self.forward.values().sum();
        let best = |counts: &BTreeMap<i64, f64>| {
            counts.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.abs().cmp(&a.0.abs()))).map(|(&offset, &count)| (offset, count / total))
        };
        let (forward, backward) = (best(&self.forward)?, best(&self.backward)?);
        Some(if forward.1 >= backward.1 { (Diagonal::Forward, forward.0, forward.1) } else { (Diagonal::Backward, backward.0, backward.1) })
    }
}
