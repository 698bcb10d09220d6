use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::transformer::TransformerConfig;

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
    /// Layers of attention and feed-forward maps on both sides, no recurrence.
    Transformer,
}

impl Family {
    /// Every family, in the order of the help text.
    pub const ALL: [Self; 6] = [Self::Ved, Self::Aed, Self::Ao, Self::Bahdanau, Self::Luong, Self::Transformer];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ved => "ved",
            Self::Aed => "aed",
            Self::Ao => "ao",
            Self::Bahdanau => "bahdanau",
            Self::Luong => "luong",
            Self::Transformer => "transformer",
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
///
/// What a family does not have stays as [`NetworkConfig::of`] says and is not written to files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct NetworkConfig {
    /// How it is put together.
    pub family: Family,
    /// Its recurrent cell. Default: `gru`.
    pub cell: Cell,
    /// Layers on each side; of a Transformer, of its encoder. Default: 1.
    pub layers: usize,
    /// Size `n` of a hidden state. Default: 128.
    pub hidden: usize,
    /// Whether the encoder also reads backwards.
    pub bidirectional: bool,
    /// How attention scores are formed; none for `ved` and `transformer`.
    pub score: Option<Score>,
    /// Attention heads; more than one only with `qkv` and in a Transformer. Default: 1, of a Transformer 4.
    pub heads: usize,
    /// Whether the attentional state is fed to the next step (`luong` only).
    pub input_feeding: bool,
    /// Whether the readout has a bias.
    pub readout_bias: bool,
    /// Share of the inputs of upper layers and of the readout, or of what a Transformer's sublayers give, that training sets to zero.
    pub dropout: f64,
    /// What tokens look like. Default: one-hot. A Transformer's are always learned rows of `hidden` numbers.
    pub inputs: Inputs,
    /// Encoding of positions in the input; `ao` needs it to attend by position, and has it unless its file says `positions = false`.
    pub positions: Option<Positions>,
    /// What only a Transformer has.
    pub transformer: Option<TransformerConfig>,
}

/// A network as it stands in a file: what is left out is the family's usual.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    family: Family,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cell: Option<Cell>,
    #[serde(default = "one")]
    layers: usize,
    #[serde(default = "default_hidden")]
    hidden: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bidirectional: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<Score>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heads: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_feeding: Option<bool>,
    #[serde(default)]
    readout_bias: bool,
    #[serde(default)]
    dropout: f64,
    /// Before the tables, since it may be a plain value.
    #[serde(default, deserialize_with = "spelled_out", skip_serializing_if = "Option::is_none")]
    positions: Option<WrittenPositions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<Inputs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transformer: Option<TransformerConfig>,
}

/// Positions that a file speaks of: a table, or `false` for none, in JSON `null` too.
struct WrittenPositions(Option<Positions>);

/// A field that is there, whatever it holds: `null` is not the same as nothing.
fn spelled_out<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WrittenPositions>, D::Error> {
    WrittenPositions::deserialize(deserializer).map(Some)
}

impl Serialize for WrittenPositions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(positions) => positions.serialize(serializer),
            None => serializer.serialize_bool(false),
        }
    }
}

impl<'de> Deserialize<'de> for WrittenPositions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableOrFalse;

        impl<'de> Visitor<'de> for TableOrFalse {
            type Value = WrittenPositions;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a table of amplitude and time_scale, or false")
            }

            fn visit_bool<E: serde::de::Error>(self, is_on: bool) -> Result<WrittenPositions, E> {
                if is_on { Err(E::invalid_value(serde::de::Unexpected::Bool(true), &self)) } else { Ok(WrittenPositions(None)) }
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<WrittenPositions, E> {
                Ok(WrittenPositions(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenPositions, A::Error> {
                Positions::deserialize(MapAccessDeserializer::new(map)).map(|positions| WrittenPositions(Some(positions)))
            }
        }

        deserializer.deserialize_any(TableOrFalse)
    }
}

impl TryFrom<Written> for NetworkConfig {
    type Error = NetworkError;

    fn try_from(written: Written) -> Result<Self, NetworkError> {
        let Written { family, cell, layers, hidden, bidirectional, score, heads, input_feeding, .. } = written;
        let Written { readout_bias, dropout, inputs, positions, transformer, .. } = written;
        let is_transformer = family == Family::Transformer;
        if is_transformer && let Some(cell) = cell {
            return Err(NetworkError::of_transformer(format!("cell = \"{}\"", cell.name()), NO_CELL));
        }
        if is_transformer && inputs.is_some() {
            return Err(NetworkError::of_transformer("inputs".into(), NO_INPUTS));
        }
        let usual = Self::of(family);
        Ok(Self {
            family,
            cell: cell.unwrap_or(usual.cell),
            layers,
            hidden,
            bidirectional: bidirectional.unwrap_or(usual.bidirectional),
            score: score.or(usual.score),
            heads: heads.unwrap_or(usual.heads),
            input_feeding: input_feeding.unwrap_or(usual.input_feeding),
            readout_bias,
            dropout,
            inputs: inputs.unwrap_or(usual.inputs),
            positions: positions.map_or(usual.positions, |WrittenPositions(positions)| positions),
            transformer: transformer.or(usual.transformer),
        })
    }
}

impl From<NetworkConfig> for Written {
    fn from(config: NetworkConfig) -> Self {
        let is_recurrent = config.family != Family::Transformer;
        let tells_positions = config.positions.is_some() || usual_positions(config.family).is_some();
        Self {
            family: config.family,
            cell: is_recurrent.then_some(config.cell),
            layers: config.layers,
            hidden: config.hidden,
            bidirectional: is_recurrent.then_some(config.bidirectional),
            score: config.score,
            heads: Some(config.heads),
            input_feeding: is_recurrent.then_some(config.input_feeding),
            readout_bias: config.readout_bias,
            dropout: config.dropout,
            positions: tells_positions.then_some(WrittenPositions(config.positions)),
            inputs: is_recurrent.then_some(config.inputs),
            transformer: config.transformer,
        }
    }
}

const NO_CELL: &str = "they have no recurrence; leave the cell out or use --arch aed";
const NO_INPUTS: &str = "their tokens are learned rows of `hidden` numbers; leave inputs out";

fn default_cell() -> Cell {
    Cell::Gru
}

fn one() -> usize {
    1
}

fn default_heads(family: Family) -> usize {
    if family == Family::Transformer { 4 } else { 1 }
}

fn default_hidden() -> usize {
    128
}

fn usual_positions(family: Family) -> Option<Positions> {
    (family == Family::Ao).then(Positions::default)
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
    /// A sentence that goes beyond the learned positions.
    #[error("a {side} may have {steps} steps, network.transformer.positions.size is {most}: use at least {steps}, or sinusoidal positions")]
    TooLong {
        /// Source or target.
        side: &'static str,
        /// Steps of the sentence.
        steps: usize,
        /// Steps there are positions for.
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

impl NetworkError {
    fn of_transformer(what: String, reason: &'static str) -> Self {
        Self::Impossible { family: Family::Transformer.name(), what, reason }
    }
}

/// Largest hidden size, embedding and number of layers taken seriously; beyond it a typo is likelier than a plan.
const MAX_SIZE: usize = 1 << 16;
const MAX_LAYERS: usize = 64;
const MAX_HEADS: usize = 256;

impl NetworkConfig {
    /// The usual network of a family.
    pub fn of(family: Family) -> Self {
        let score = match family {
            Family::Ved | Family::Transformer => None,
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
            heads: default_heads(family),
            input_feeding: false,
            readout_bias: false,
            dropout: 0.0,
            inputs: default_inputs(),
            positions: usual_positions(family),
            transformer: (family == Family::Transformer).then(TransformerConfig::default),
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
        if self.family == Family::Transformer {
            self.check_transformer()?;
            return self.transformer.unwrap_or_default().check(self.hidden, self.heads);
        }
        self.check_combination()
    }

    /// Fails for what only recurrent networks have.
    fn check_transformer(&self) -> Result<(), NetworkError> {
        let score = self.score.map(|score| format!("score = \"{}\"", score.name())).unwrap_or_default();
        let foreign = [
            (self.cell != default_cell(), format!("cell = \"{}\"", self.cell.name()), NO_CELL),
            (self.score.is_some(), score, "their scores are always of learned queries and keys; leave the score out"),
            (self.bidirectional, "bidirectional".into(), "their encoder sees both directions anyway; leave it out"),
            (self.input_feeding, "input_feeding".into(), "only luong feeds its attentional state back"),
            (self.inputs != default_inputs(), "inputs".into(), NO_INPUTS),
            (self.positions.is_some(), "positions".into(), "theirs are set by network.transformer.positions"),
        ];
        match foreign.into_iter().find(|(is_there, ..)| *is_there) {
            Some((_, what, reason)) => Err(NetworkError::of_transformer(what, reason)),
            None => Ok(()),
        }
    }

    fn check_combination(&self) -> Result<(), NetworkError> {
        let impossible = |what: String, reason| Err(NetworkError::Impossible { family: self.family.name(), what, reason });
        if self.transformer.is_some() {
            return impossible("[network.transformer]".into(), "it is for --arch transformer; leave it out");
        }
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
    use super::super::transformer::StepVectors;
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
    fn what_a_file_leaves_out_is_the_familys_usual() {
        for family in Family::ALL {
            let read = toml::from_str::<NetworkConfig>(&format!("family = \"{}\"", family.name())).expect("nothing else is needed");
            assert_eq!(read, NetworkConfig::of(family));
        }
    }

    #[test]
    fn what_is_not_the_familys_usual_is_written_and_read_again() {
        let of = NetworkConfig::of;
        for config in [
            NetworkConfig { positions: None, ..of(Family::Ao) },
            NetworkConfig { positions: Some(Positions { amplitude: 2.0, time_scale: 10.0 }), ..of(Family::Ao) },
            NetworkConfig { positions: Some(Positions::default()), ..of(Family::Aed) },
            NetworkConfig { bidirectional: false, score: Some(Score::Dot), ..of(Family::Bahdanau) },
        ] {
            let text = toml::to_string_pretty(&config).expect("a configuration can be written");
            assert_eq!(toml::from_str::<NetworkConfig>(&text).expect("and read"), config, "{text}");
        }
        let text = toml::to_string(&NetworkConfig { positions: None, ..of(Family::Ao) }).expect("a configuration can be written");
        assert!(text.contains("positions = false"), "{text}");
    }

    #[test]
    fn positions_that_are_no_table_and_not_false_are_refused() {
        for (line, word) in [("positions = true", "or false"), ("positions = { amplitud = 1.0 }", "unknown field `amplitud`")] {
            let message = toml::from_str::<NetworkConfig>(&format!("family = \"ao\"\n{line}")).expect_err(line).to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    /// What a file says and what it leaves out.
    #[test]
    fn a_transformer_is_written_without_what_it_does_not_have() {
        let config = NetworkConfig::of(Family::Transformer);
        let text = toml::to_string(&config).expect("a configuration can be written");
        assert!(!text.contains("cell") && !text.contains("inputs ") && !text.contains("bidirectional"), "{text}");
        assert_eq!(toml::from_str::<NetworkConfig>(&text).expect("and read"), config);
        assert_eq!(toml::from_str::<NetworkConfig>("family = \"transformer\"").expect("nothing else is needed"), config);
        for (line, word) in [("cell = \"gru\"", "no recurrence"), ("inputs = { kind = \"one-hot\" }", "learned rows")] {
            let message = toml::from_str::<NetworkConfig>(&format!("family = \"transformer\"\n{line}")).expect_err(line).to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn a_transformer_refuses_by_name_what_it_cannot_have() {
        let of = |change: fn(&mut NetworkConfig, &mut TransformerConfig)| {
            let (mut config, mut own) = (NetworkConfig::of(Family::Transformer), TransformerConfig::default());
            change(&mut config, &mut own);
            config.transformer = Some(own);
            config.check().expect_err("it makes no sense").to_string()
        };
        let refused = [
            (of(|config, _| config.heads = 3), "network.heads is 3, it must be a divisor of network.hidden"),
            (of(|config, _| config.heads = 0), "network.heads is 0"),
            (of(|config, _| config.hidden = 0), "network.hidden is 0"),
            (of(|config, _| config.layers = 0), "network.layers is 0"),
            (of(|_, own| own.decoder_layers = Some(0)), "network.transformer.decoder_layers is 0"),
            (of(|_, own| own.feed_forward = Some(0)), "network.transformer.feed_forward is 0"),
            (of(|_, own| own.embedding_scale = Some(f64::NAN)), "network.transformer.embedding_scale is NaN"),
            (of(|_, own| own.positions = StepVectors::Learned { size: 0 }), "network.transformer.positions.size is 0"),
            (of(|_, own| own.positions = StepVectors::Sinusoidal { time_scale: 0.5 }), "network.transformer.positions.time_scale is 0.5"),
            (of(|config, _| config.cell = Cell::Lstm), "transformer networks cannot have cell = \"lstm\""),
            (of(|config, _| config.score = Some(Score::Dot)), "transformer networks cannot have score = \"dot\""),
            (of(|config, _| config.bidirectional = true), "transformer networks cannot have bidirectional"),
            (of(|config, _| config.input_feeding = true), "transformer networks cannot have input_feeding"),
            (of(|config, _| config.inputs = Inputs::Embedding { size: 4 }), "transformer networks cannot have inputs"),
            (of(|config, _| config.positions = Some(Positions::default())), "transformer networks cannot have positions"),
        ];
        for (message, beginning) in refused {
            assert!(message.starts_with(beginning), "{message}");
        }
    }

    #[test]
    fn combinations_without_meaning_are_refused() {
        let refused = [
            NetworkConfig { score: Some(Score::Dot), ..NetworkConfig::of(Family::Ved) },
            NetworkConfig { score: None, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { heads: 2, ..NetworkConfig::of(Family::Aed) },
            NetworkConfig { bidirectional: true, score: Some(Score::General), ..NetworkConfig::of(Family::Ao) },
            NetworkConfig { input_feeding: true, ..NetworkConfig::of(Family::Bahdanau) },
            NetworkConfig { transformer: Some(TransformerConfig::default()), ..NetworkConfig::of(Family::Aed) },
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
