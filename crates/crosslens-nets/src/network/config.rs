use serde::{Deserialize, Serialize};

/// How encoder, attention and decoder are put together; the equations stand in `docs/math.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Plain encoder-decoder: no attention.
    Ved,
    /// Attention encoder-decoder: the current state asks, the context goes to the readout only.
    Aed,
    /// Attention only: the recurrent argument is zero, positions are encoded in the input.
    Ao,
    /// The previous state asks, the context enters the decoder's cell.
    Bahdanau,
    /// The current state asks, readout of an attentional state.
    Luong,
}

impl Family {
    /// Every family, in the order of the help text.
    pub const ALL: [Self; 5] = [Self::Ved, Self::Aed, Self::Ao, Self::Bahdanau, Self::Luong];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ved => "ved",
            Self::Aed => "aed",
            Self::Ao => "ao",
            Self::Bahdanau => "bahdanau",
            Self::Luong => "luong",
        }
    }
}

/// The recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// `h = tanh(…)`.
    Vanilla,
    /// One update gate.
    Ugrnn,
    /// Update and reset gate, the reset before the matrix product (the paper's).
    Gru,
    /// Update and reset gate, the reset after the matrix product (PyTorch's and cuDNN's).
    GruResetAfter,
    /// Forget, input and output gate and a cell state.
    Lstm,
}

impl Cell {
    /// Every cell, in the order of the help text.
    pub const ALL: [Self; 5] = [Self::Vanilla, Self::Ugrnn, Self::Gru, Self::GruResetAfter, Self::Lstm];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vanilla => "vanilla",
            Self::Ugrnn => "ugrnn",
            Self::Gru => "gru",
            Self::GruResetAfter => "gru-reset-after",
            Self::Lstm => "lstm",
        }
    }

    /// Number of blocks of `n` columns in the cell's matrices.
    pub(crate) fn n_gates(self) -> usize {
        match self {
            Self::Vanilla => 1,
            Self::Ugrnn => 2,
            Self::Gru | Self::GruResetAfter => 3,
            Self::Lstm => 4,
        }
    }
}

/// How a query and a key give a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// `z·h`.
    Dot,
    /// `z·h / √n`.
    ScaledDot,
    /// `z W h`.
    General,
    /// `v·tanh(W z + U h + b)`, Bahdanau's; Luong's `concat` is the same.
    #[serde(alias = "concat")]
    Additive,
    /// Learned query, key and value, one or more heads.
    Qkv,
}

impl Score {
    /// Every score, in the order of the help text.
    pub const ALL: [Self; 5] = [Self::Dot, Self::ScaledDot, Self::General, Self::Additive, Self::Qkv];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::ScaledDot => "scaled-dot",
            Self::General => "general",
            Self::Additive => "additive",
            Self::Qkv => "qkv",
        }
    }
}

/// What a token looks like to the first layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Inputs {
    /// A unit vector of `size` dimensions; 0 stands for the larger vocabulary.
    OneHot {
        /// Dimensions, at least as many as either vocabulary has words.
        #[serde(default)]
        size: usize,
    },
    /// A learned row of `size` numbers.
    Embedding {
        /// Dimensions.
        size: usize,
    },
}

/// Rotated sinusoids added to the input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Positions {
    /// The amplitude `A`.
    pub amplitude: f64,
    /// The longest wave length over 2π, `τ`.
    pub time_scale: f64,
}

impl Default for Positions {
    fn default() -> Self {
        Self { amplitude: 1.0, time_scale: 100.0 }
    }
}

/// A network as the user describes it; [`NetworkConfig::check`] says whether it can be built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// How it is put together.
    pub family: Family,
    /// Its recurrent cell. Default: `gru`.
    #[serde(default = "default_cell")]
    pub cell: Cell,
    /// Recurrent layers on each side. Default: 1.
    #[serde(default = "one")]
    pub layers: usize,
    /// Size `n` of a hidden state. Default: 128.
    #[serde(default = "default_hidden")]
    pub hidden: usize,
    /// Whether the encoder also reads backwards.
    #[serde(default)]
    pub bidirectional: bool,
    /// How attention scores are formed; none for `ved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// Attention heads; more than one only with `qkv`. Default: 1.
    #[serde(default = "one")]
    pub heads: usize,
    /// Whether the attentional state is fed to the next step (`luong` only).
    #[serde(default)]
    pub input_feeding: bool,
    /// Whether the readout has a bias.
    #[serde(default)]
    pub readout_bias: bool,
    /// Share of the inputs of upper layers and of the readout that training sets to zero.
    #[serde(default)]
    pub dropout: f64,
    /// What tokens look like. Default: one-hot.
    #[serde(default = "default_inputs")]
    pub inputs: Inputs,
    /// Encoding of positions in the input; `ao` needs it to attend by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Positions>,
}

fn default_cell() -> Cell {
    Cell::Gru
}

fn one() -> usize {
    1
}

fn default_hidden() -> usize {
    128
}

fn default_inputs() -> Inputs {
    Inputs::OneHot { size: 0 }
}

/// Why a network cannot be built as described.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A number out of its range.
    #[error("network.{field} is {value}, it must be {range}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        range: &'static str,
    },
    /// Two fields that do not go together.
    #[error("{family} networks cannot have {what}: {reason}")]
    Impossible {
        /// The family.
        family: &'static str,
        /// The field at odds with it.
        what: String,
        /// Why, and what to do instead.
        reason: &'static str,
    },
    /// More parameters than are taken seriously.
    #[error("the network would have {parameters} parameters, at most {most} are taken: use a smaller hidden, fewer layers or heads")]
    TooLarge {
        /// How many there would be.
        parameters: usize,
        /// How many there may be.
        most: usize,
    },
    /// Fewer one-hot dimensions than words.
    #[error("network.inputs.size is {size}, but the {side} vocabulary has {words} words: use at least {words}, or 0 to let it fit")]
    OneHotTooSmall {
        /// Dimensions asked for.
        size: usize,
        /// Words there are.
        words: usize,
        /// Of which side.
        side: &'static str,
    },
}

/// Largest hidden size, embedding and number of layers taken seriously; beyond it a typo is likelier than a plan.
const MAX_SIZE: usize = 1 << 16;
const MAX_LAYERS: usize = 64;
const MAX_HEADS: usize = 256;

impl NetworkConfig {
    /// The usual network of a family.
    pub fn of(family: Family) -> Self {
        let score = match family {
            Family::Ved => None,
            Family::Aed | Family::Ao => Some(Score::Dot),
            Family::Bahdanau => Some(Score::Additive),
            Family::Luong => Some(Score::General),
        };
        Self {
            family,
            cell: default_cell(),
            layers: 1,
            hidden: default_hidden(),
            bidirectional: family == Family::Bahdanau,
            score,
            heads: 1,
            input_feeding: false,
            readout_bias: false,
            dropout: 0.0,
            inputs: default_inputs(),
            positions: (family == Family::Ao).then(Positions::default),
        }
    }

    /// Says, before any work, whether the network makes sense.
    pub fn check(&self) -> Result<(), NetworkError> {
        let range = |field, value: usize, most, range| {
            if (1..=most).contains(&value) { Ok(()) } else { Err(NetworkError::OutOfRange { field, value: value.to_string(), range }) }
        };
        range("hidden", self.hidden, MAX_SIZE, "between 1 and 65536")?;
        range("layers", self.layers, MAX_LAYERS, "between 1 and 64")?;
        range("heads", self.heads, MAX_HEADS, "between 1 and 256")?;
        match self.inputs {
            Inputs::Embedding { size } => range("inputs.size", size, MAX_SIZE, "between 1 and 65536")?,
            Inputs::OneHot { size: 0 } => {}
            Inputs::OneHot { size } => range("inputs.size", size, MAX_SIZE, "0 or between 1 and 65536")?,
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(NetworkError::OutOfRange { field: "dropout", value: self.dropout.to_string(), range: "at least 0 and below 1" });
        }
        if let Some(positions) = self.positions {
            if !positions.amplitude.is_finite() {
                let value = positions.amplitude.to_string();
                return Err(NetworkError::OutOfRange { field: "positions.amplitude", value, range: "a finite number" });
            }
            if !(positions.time_scale.is_finite() && positions.time_scale >= 1.0) {
                let value = positions.time_scale.to_string();
                return Err(NetworkError::OutOfRange { field: "positions.time_scale", value, range: "a finite number of at least 1" });
            }
        }
        self.check_combination()
    }

    fn check_combination(&self) -> Result<(), NetworkError> {
        let impossible = |what: String, reason| Err(NetworkError::Impossible { family: self.family.name(), what, reason });
        match (self.family, self.score) {
            (Family::Ved, Some(score)) => {
                return impossible(
                    format!("score = \"{}\"", score.name()),
                    "they have no attention; leave the score out or use --arch aed",
                );
            }
            (Family::Ved, None) => {}
            (_, None) => return impossible("no score".into(), "they attend; set score to dot, scaled-dot, general, additive or qkv"),
            (_, Some(Score::Dot | Score::ScaledDot)) if self.bidirectional => {
                return impossible(
                    "a dot score with a bidirectional encoder".into(),
                    "keys are 2n wide and queries n; use score general, additive or qkv",
                );
            }
            (_, Some(_)) => {}
        }
        if self.heads > 1 && self.score != Some(Score::Qkv) {
            return impossible(format!("heads = {}", self.heads), "only score qkv has several heads");
        }
        if self.family == Family::Ao && self.bidirectional {
            return impossible("a bidirectional encoder".into(), "without recurrence both directions are the same");
        }
        if self.input_feeding && self.family != Family::Luong {
            return impossible("input_feeding".into(), "only luong feeds its attentional state back; bahdanau feeds the context anyway");
        }
        Ok(())
    }

    /// Width of a key: the encoder's output.
    pub(crate) fn d_key(&self) -> usize {
        if self.bidirectional { 2 * self.hidden } else { self.hidden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_default_that_makes_sense() {
        for family in Family::ALL {
            assert_eq!(NetworkConfig::of(family).check(), Ok(()));
        }
    }

    #[test]
    fn a_dot_score_refuses_unequal_widths_and_names_the_cure() {
        let config = NetworkConfig { bidirectional: true, ..NetworkConfig::of(Family::Aed) };
        let message = config.check().expect_err("2n against n").to_string();
        assert!(message.contains("bidirectional") && message.contains("general, additive or qkv"), "{message}");
    }

    #[test]
    fn combinations_without_meaning_are_refused() {
        let refused = [
            NetworkConfig { score: Some(Score::Dot), ..NetworkConfig::of(Family::Ved) },
            NetworkConfig { score: None, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { heads: 2, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { bidirectional: true, score: Some(Score::General), ..NetworkConfig::of(Family::Ao) },
            NetworkConfig { input_feeding: true, ..NetworkConfig::of(Family::Bahdanau) },
            NetworkConfig { hidden: 0, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { layers: 0, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { dropout: f64::NAN, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { dropout: 1.0, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { inputs: Inputs::Embedding { size: 0 }, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { positions: Some(Positions { amplitude: 1.0, time_scale: 0.0 }), ..NetworkConfig::of(Family::Ao) },
        ];
        for config in refused {
            assert!(config.check().is_err(), "{config:?}");
        }
    }
}
