//! Where attention happens, and how two states become a score there.

/// Which states ask and which are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// The decoder asks the encoder.
    Cross,
    /// The encoder asks itself.
    EncoderSelf,
    /// The decoder asks itself.
    DecoderSelf,
}

impl SiteKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Cross, Self::EncoderSelf, Self::DecoderSelf];

    /// Its name in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cross => "cross",
            Self::EncoderSelf => "encoder-self",
            Self::DecoderSelf => "decoder-self",
        }
    }
}

/// Which keys a query may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visible {
    /// All valid ones.
    All,
    /// Those at its own step and before.
    Causal,
}

impl Visible {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Causal => "causal",
        }
    }

    /// How many of the first `n_keys` keys the query at step `query` may see.
    #[inline]
    pub fn n_keys(self, query: usize, n_keys: usize) -> usize {
        match self {
            Self::All => n_keys,
            Self::Causal => n_keys.min(query + 1),
        }
    }
}

/// One attention head of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Which states ask which.
    pub kind: SiteKind,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// The stream of the states that ask: an index into [`Description::streams`](crate::Description::streams).
    pub query: usize,
    /// The stream of the states that are asked.
    pub key: usize,
    /// How a score is formed.
    pub map: ScoreMap,
    /// Which keys a query may see.
    pub visible: Visible,
    /// From a key's state to what attention sums; `None` where that is the state itself, or with a projected map not known.
    pub value: Option<Linear>,
}

/// An affine map of row vectors, `x·W + b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Dimensions read.
    pub d_in: usize,
    /// Dimensions written.
    pub d_out: usize,
    /// `W`, `[d_in, d_out]`.
    pub weights: Vec<f32>,
    /// `b`, `[d_out]`, or empty for none.
    pub bias: Vec<f32>,
}

/// How the state `z` of a query and the state `h` of a key become a score.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreMap {
    /// `z·h × scale`.
    Dot {
        /// 1 for the plain dot product.
        scale: f32,
    },
    /// `zᵀ W h`; `W` is `[d_query, d_key]`, without bias.
    Bilinear {
        /// `W`.
        query: Linear,
    },
    /// `(W_Q z + b_Q)·(W_K h + b_K) × scale`, plus a bias of the two positions.
    Projected {
        /// `W_Q, b_Q`.
        query: Linear,
        /// `W_K, b_K`.
        key: Linear,
        /// Often `1/√d`.
        scale: f32,
        /// Added to the score as it is.
        position_bias: Option<PositionBias>,
    },
    /// `Σ_i v_i tanh((W z + U h + b)_i)`; `b` is the key map's bias.
    Additive {
        /// `W`, without bias.
        query: Linear,
        /// `U, b`.
        key: Linear,
        /// `v`.
        vector: Vec<f32>,
    },
}

impl ScoreMap {
    /// Its name in files and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dot { scale: 1.0 } => "dot",
            Self::Dot { .. } => "scaled-dot",
            Self::Bilinear { .. } => "general",
            Self::Projected { .. } => "projected",
            Self::Additive { .. } => "additive",
        }
    }

    /// Whether a score is a sum over the parts of six, not a product of three by three.
    pub fn is_additive(&self) -> bool {
        matches!(self, Self::Additive { .. })
    }

    /// The bias of positions, if there is one.
    pub fn position_bias(&self) -> Option<&PositionBias> {
        match self {
            Self::Projected { position_bias, .. } => position_bias.as_ref(),
            _ => None,
        }
    }
}

/// A score of the two positions alone.
#[derive(Clone, Debug, PartialEq)]
pub enum PositionBias {
    /// By the distance along a sentence or a sound.
    Distance(RelativeBias),
    /// By the distance in a picture.
    Grid(GridBias),
}

impl PositionBias {
    /// The bias of one pair of steps.
    pub fn at(&self, query: usize, key: usize) -> f32 {
        match self {
            Self::Distance(bias) => bias.at(query, key),
            Self::Grid(bias) => bias.at(query, key),
        }
    }

    /// Its values, whatever they belong to.
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Distance(bias) => &bias.values,
            Self::Grid(bias) => &bias.values,
        }
    }
}

impl From<RelativeBias> for PositionBias {
    fn from(bias: RelativeBias) -> Self {
        Self::Distance(bias)
    }
}

impl From<GridBias> for PositionBias {
    fn from(bias: GridBias) -> Self {
        Self::Grid(bias)
    }
}

/// A score of the distance between key and query alone.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeBias {
    /// The distance `key − query` of the first value; nearer the start counts as the first, beyond the end as the last.
    pub lowest: i64,
    /// By distance; never empty.
    pub values: Vec<f32>,
}

impl RelativeBias {
    /// The bias of one pair of steps.
    pub fn at(&self, query: usize, key: usize) -> f32 {
        let distance = key as i64 - query as i64;
        let place = distance.saturating_sub(self.lowest).clamp(0, self.values.len() as i64 - 1);
        self.values[place as usize]
    }
}

/// A score of how many rows and columns of a picture lie between query and key. Step 0 is no patch of it; the patches follow row by row.
///
/// ```text
/// value[(r_q − r_k + rows − 1)·(2·columns − 1) + (c_q − c_k + columns − 1)]    of two patches
/// value[n − 3], value[n − 2], value[n − 1]                                      of step 0 to a patch, a patch to it, it to itself
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GridBias {
    /// Rows of patches, from 1.
    pub rows: usize,
    /// Patches of a row, from 1.
    pub columns: usize,
    /// As many as [`GridBias::n_values`] says.
    pub values: Vec<f32>,
}

impl GridBias {
    /// How many values a grid needs; nothing where they cannot be counted.
    pub fn n_values(rows: usize, columns: usize) -> Option<usize> {
        let twice = |n: usize| n.checked_mul(2)?.checked_sub(1);
        twice(rows)?.checked_mul(twice(columns)?)?.checked_add(3)
    }

    /// The bias of one pair of steps; those beyond the picture count as in its last row.
    pub fn at(&self, query: usize, key: usize) -> f32 {
        let special = self.values.len() - 3;
        let place = match (query.checked_sub(1), key.checked_sub(1)) {
            (None, None) => special + 2,
            (Some(_), None) => special + 1,
            (None, Some(_)) => special,
            (Some(query), Some(key)) => {
                let [of_query, of_key] = [query, key].map(|patch| ((patch / self.columns).min(self.rows - 1), patch % self.columns));
                let (down, right) = (of_query.0 + self.rows - 1 - of_key.0, of_query.1 + self.columns - 1 - of_key.1);
                down * (2 * self.columns - 1) + right
            }
        };
        self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BeitRelativePositionBias.generate_relative_position_index((2, 3))` of transformers 5.22, its values numbered.
    #[test]
    fn a_grid_is_looked_up_by_rows_and_columns() {
        let n = GridBias::n_values(2, 3).expect("a small grid");
        let bias = GridBias { rows: 2, columns: 3, values: (0..n).map(|place| place as f32).collect() };
        let row = |query: usize| (0..7).map(|key| bias.at(query, key)).collect::<Vec<_>>();
        assert_eq!(n, 18);
        assert_eq!(row(0), [17.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0]);
        assert_eq!(row(1), [16.0, 7.0, 6.0, 5.0, 2.0, 1.0, 0.0]);
        assert_eq!(row(6), [16.0, 14.0, 13.0, 12.0, 9.0, 8.0, 7.0]);
    }

    /// A manifest may claim any distance: those beyond the values count as the last or the first.
    #[test]
    fn a_distance_beyond_all_numbers_is_the_nearest_there_is() {
        let at = |lowest: i64, query: usize, key: usize| RelativeBias { lowest, values: vec![1.0, 2.0, 3.0] }.at(query, key);
        assert_eq!((at(i64::MIN, 0, 9), at(i64::MIN, 9, 0)), (3.0, 3.0));
        assert_eq!((at(i64::MAX, 0, 9), at(i64::MAX, 9, 0)), (1.0, 1.0));
        assert_eq!((at(-1, 5, 4), at(-1, 5, 5), at(-1, 5, 6), at(-1, 5, 9), at(-1, 5, 0)), (1.0, 2.0, 3.0, 3.0, 1.0));
    }

    #[test]
    fn a_grid_that_cannot_be_counted_has_no_values() {
        assert_eq!(GridBias::n_values(usize::MAX, 2), None);
        assert_eq!(GridBias::n_values(0, 2), None);
        assert_eq!(GridBias::n_values(1, 1), Some(4));
    }
}
