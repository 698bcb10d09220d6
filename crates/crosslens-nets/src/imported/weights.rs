//! The tensors of a network with attention between two GRUs: their names, their shapes, and where their numbers come from.

use std::collections::BTreeMap;
use std::path::Path;

use crosslens_analysis::TensorFile;
use rand_distr::{Distribution, StandardNormal};

use super::mapping::{Mapping, Origin, PartOfTensor, Rows};
use super::{Given, ImportError};
use crate::random::generator;

/// Most numbers a network may hold: a gigabyte.
const MAX_NUMBERS: u64 = 1 << 28;
/// Tells the generator of the control from others of the same seed.
const CONTROL: u64 = 0x1A90;

/// Every tensor, by name. Matrices are `[out, in]`; gates stand in the order reset, update, candidate.
pub(super) const TENSORS: &[&str] = &[
    "source.embedding",
    "target.embedding",
    "encoder.forward.gates_from_input",
    "encoder.forward.gates_from_input_bias",
    "encoder.forward.gates_from_hidden",
    "encoder.forward.gates_from_hidden_bias",
    "encoder.backward.gates_from_input",
    "encoder.backward.gates_from_input_bias",
    "encoder.backward.gates_from_hidden",
    "encoder.backward.gates_from_hidden_bias",
    "encoder.join",
    "encoder.join_bias",
    "decoder.first.gates_from_input",
    "decoder.first.gates_from_input_bias",
    "decoder.first.gates_from_hidden",
    "decoder.first.gates_from_hidden_bias",
    "attention.query",
    "attention.query_bias",
    "attention.key",
    "attention.key_bias",
    "attention.value",
    "attention.value_bias",
    "attention.output",
    "attention.output_bias",
    "decoder.second.gates_from_input",
    "decoder.second.gates_from_input_bias",
    "decoder.second.gates_from_hidden",
    "decoder.second.gates_from_hidden_bias",
    "readout",
    "readout_bias",
];

/// How wide everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) heads: usize,
    pub(super) source_words: usize,
    pub(super) target_words: usize,
    /// Dimensions of a source word's vector.
    pub(super) d_source: usize,
    pub(super) d_target: usize,
    /// Units of each direction of the encoder.
    pub(super) d_encoder: usize,
    /// Dimensions of a key's state, the two directions joined.
    pub(super) d_key: usize,
    /// Units of the first decoder, whose states ask.
    pub(super) d_first: usize,
    /// Dimensions of queries and keys, all heads together.
    pub(super) d_score: usize,
    /// Dimensions of values, all heads together.
    pub(super) d_value: usize,
    /// Dimensions of what attention gives.
    pub(super) d_context: usize,
    /// Units of the second decoder.
    pub(super) d_second: usize,
}

impl Sizes {
    /// The shape of a tensor; a bias has as many entries as its matrix has rows.
    fn shape(&self, name: &str) -> Vec<usize> {
        if let Some(matrix) = name.strip_suffix("_bias") {
            return self.shape(matrix)[..1].to_vec();
        }
        let gates = |d_hidden: usize, d_input: usize| match name.ends_with("gates_from_hidden") {
            true => vec![3 * d_hidden, d_hidden],
            false => vec![3 * d_hidden, d_input],
        };
        match name.rsplit_once('.').unwrap_or(("", name)) {
            ("source", _) => vec![self.source_words, self.d_source],
            ("target", _) => vec![self.target_words, self.d_target],
            ("encoder.forward" | "encoder.backward", _) => gates(self.d_encoder, self.d_source),
            ("encoder", _) => vec![self.d_key, 2 * self.d_encoder],
            ("decoder.first", _) => gates(self.d_first, self.d_target),
            ("decoder.second", _) => gates(self.d_second, self.d_first + self.d_context),
            ("attention", "query") => vec![self.d_score, self.d_first],
            ("attention", "key") => vec![self.d_score, self.d_key],
            ("attention", "value") => vec![self.d_value, self.d_key],
            ("attention", "output") => vec![self.d_context, self.d_value],
            ("", "readout") => vec![self.target_words, self.d_second],
            _ => unreachable!("only the names in TENSORS are asked for"),
        }
    }

    /// Numbers held: all weights, and for every word its part of the gates that read it.
    fn n_numbers(&self) -> u64 {
        let product = |factors: &[usize]| factors.iter().fold(1u64, |product, &factor| product.saturating_mul(factor as u64));
        let weights = TENSORS.iter().map(|name| product(&self.shape(name)));
        let tables = [product(&[6, self.source_words, self.d_encoder]), product(&[3, self.target_words, self.d_first])];
        weights.chain(tables).fold(0, u64::saturating_add)
    }
}

/// The numbers of a network.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) sizes: Sizes,
    tensors: BTreeMap<&'static str, Vec<f32>>,
}

impl Weights {
    /// A tensor's numbers.
    pub(super) fn get(&self, name: &str) -> &[f32] {
        self.tensors.get(name).expect("every tensor was read or drawn")
    }

    /// Reads every tensor that the mapping names. All shapes are compared before a single number is read.
    pub(super) fn read(file: &TensorFile, mapping: &Mapping) -> Result<Self, ImportError> {
        let path = || file.path().to_owned();
        for name in TENSORS {
            let tensor = mapping.origin(name).tensor();
            if file.shape(tensor).is_none() {
                return Err(ImportError::Missing { path: path(), tensor: tensor.to_owned(), made: (*name).to_owned() });
            }
        }
        if let Some(tensor) = file.names().find(|tensor| !mapping.knows(tensor)) {
            return Err(ImportError::Unmapped { path: path(), tensor: tensor.to_owned() });
        }
        let parts = TENSORS.iter().map(|name| Ok((*name, Part::of(file, mapping, name)?))).collect::<Result<Vec<_>, ImportError>>()?;
        let sizes = infer(file.path(), &parts, value(file, &mapping.heads)?)?;
        for &(name, ref part) in &parts {
            let expected = sizes.shape(name);
            if !part.shape.iter().copied().eq(expected.iter().map(|&size| size as u64)) {
                let (tensor, found) = (part.tensor.to_owned(), part.shape.clone());
                return Err(ImportError::Shape { path: path(), tensor, made: name, found, expected });
            }
        }
        for (made, width) in [("attention.query", sizes.d_score), ("attention.value", sizes.d_value)] {
            if sizes.heads == 0 || width % sizes.heads != 0 {
                let tensor = mapping.origin(made).tensor().to_owned();
                return Err(ImportError::Heads { path: path(), tensor, made, width, heads: sizes.heads });
            }
        }
        if sizes.n_numbers() > MAX_NUMBERS {
            return Err(ImportError::TooLarge { path: path(), numbers: sizes.n_numbers(), most: MAX_NUMBERS });
        }
        let mut tensors = BTreeMap::new();
        for (name, part) in parts {
            let numbers = file.rows(part.tensor, part.from..part.from + part.shape[0])?;
            if !numbers.iter().all(|number| number.is_finite()) {
                return Err(ImportError::NotFinite { path: path(), tensor: part.tensor.to_owned() });
            }
            tensors.insert(name, numbers);
        }
        Ok(Self { sizes, tensors })
    }

    /// Draws every tensor anew: embeddings from N(0, 1), matrices from N(0, 1/d_in), biases 0.
    pub(super) fn draw(sizes: Sizes, seed: u64) -> Self {
        let mut rng = generator(&[seed, CONTROL]);
        let draw = |name: &&'static str| {
            let shape = sizes.shape(name);
            let deviation = match shape[..] {
                [_] => 0.0,
                _ if name.ends_with("embedding") => 1.0,
                _ => 1.0 / (shape[1] as f64).sqrt(),
            };
            let mut number = || {
                let value: f64 = StandardNormal.sample(&mut rng);
                (deviation * value) as f32
            };
            (*name, (0..shape.iter().product()).map(|_| number()).collect())
        };
        Self { sizes, tensors: TENSORS.iter().map(draw).collect() }
    }

    /// FNV-1a, 64 bits in hexadecimal digits, of the number of heads and all weights.
    pub(super) fn hash(&self) -> String {
        let weights = self.tensors.values().flatten().flat_map(|weight| weight.to_bits().to_le_bytes());
        let bytes = (self.sizes.heads as u64).to_le_bytes().into_iter().chain(weights);
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    }
}

/// A number of the mapping, or of the metadata.
pub(super) fn value<T: std::str::FromStr + Copy>(file: &TensorFile, given: &Given<T>) -> Result<T, ImportError> {
    match given {
        Given::Here(value) => Ok(*value),
        Given::Metadata(place) => {
            let wrong = |what: String| ImportError::Metadata { path: file.path().to_owned(), key: place.metadata.clone(), what };
            let text = file.metadata(&place.metadata).ok_or_else(|| wrong("is not there".into()))?;
            text.parse().map_err(|_| wrong(format!("is `{}`, not a number that fits", text.chars().take(20).collect::<String>())))
        }
    }
}

/// Some rows of a tensor of the file.
struct Part<'a> {
    tensor: &'a str,
    /// The first row.
    from: u64,
    /// As many rows as are taken.
    shape: Vec<u64>,
}

impl<'a> Part<'a> {
    fn of(file: &TensorFile, mapping: &'a Mapping, name: &str) -> Result<Self, ImportError> {
        let origin = mapping.origin(name);
        let tensor = origin.tensor();
        let whole = file.shape(tensor).unwrap_or_default();
        let wrong = |what: String| {
            let (tensor, found) = (tensor.to_owned(), whole.to_vec());
            Err(ImportError::Rows { path: file.path().to_owned(), tensor, made: name.to_owned(), found, what })
        };
        let n_axes = if name.ends_with("_bias") { 1 } else { 2 };
        if whole.len() != n_axes {
            return wrong(format!("it needs {n_axes} {}", if n_axes == 1 { "axis" } else { "axes" }));
        }
        if whole.contains(&0) {
            return wrong("it is empty".into());
        }
        let rows = match origin {
            Origin::Whole(_) => 0..whole[0],
            Origin::Part(PartOfTensor { rows: Rows::Part { number, of }, .. }) => {
                if !whole[0].is_multiple_of(*of) {
                    return wrong(format!("{} rows have no {of} equal parts", whole[0]));
                }
                let n = whole[0] / of;
                (number - 1) * n..number * n
            }
            Origin::Part(PartOfTensor { rows: Rows::Range { from, to }, .. }) => *from..*to,
        };
        if rows.end > whole[0] {
            return wrong(format!("rows {}..{} are not all there", rows.start, rows.end));
        }
        let mut shape = whole.to_vec();
        shape[0] = rows.end - rows.start;
        Ok(Self { tensor, from: rows.start, shape })
    }
}

/// The sizes that some tensors have; whether all others agree is still to be seen.
fn infer(path: &Path, parts: &[(&'static str, Part<'_>)], heads: usize) -> Result<Sizes, ImportError> {
    let size = |name: &str, axis: usize| {
        let (_, part) = parts.iter().find(|(part, _)| *part == name).expect("every tensor has its part");
        // Beyond this no product of two sizes is in danger, and no file that is read reaches it.
        match usize::try_from(part.shape[axis]) {
            Ok(size) if part.shape[axis] <= MAX_NUMBERS => Ok(size),
            _ => Err(ImportError::TooLarge { path: path.to_owned(), numbers: part.shape[axis], most: MAX_NUMBERS }),
        }
    };
    Ok(Sizes {
        heads,
        source_words: size("source.embedding", 0)?,
        target_words: size("target.embedding", 0)?,
        d_source: size("source.embedding", 1)?,
        d_target: size("target.embedding", 1)?,
        d_encoder: size("encoder.forward.gates_from_hidden", 1)?,
        d_key: size("encoder.join", 0)?,
        d_first: size("decoder.first.gates_from_hidden", 1)?,
        d_score: size("attention.query", 0)?,
        d_value: size("attention.value", 0)?,
        d_context: size("attention.output", 0)?,
        d_second: size("decoder.second.gates_from_hidden", 1)?,
    })
}
