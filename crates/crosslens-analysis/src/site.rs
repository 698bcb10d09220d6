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
    /// From a key's state to what attention sums; `None` where that is the state itself.
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
        position_bias: Option<RelativeBias>,
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
    pub fn position_bias(&self) -> Option<&RelativeBias> {
        match self {
            Self::Projected { position_bias, .. } => position_bias.as_ref(),
            _ => None,
        }
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
        let place = (distance - self.lowest).clamp(0, self.values.len() as i64 - 1);
        self.values[place as usize]
    }
}
