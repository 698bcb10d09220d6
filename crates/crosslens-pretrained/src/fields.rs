//! The fields of a configuration, each checked as it is read.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::PretrainedError;

/// No size of a model that can be opened on one machine is larger.
const MAX_SIZE: u64 = 1 << 24;
/// No configuration is longer.
const MAX_BYTES: u64 = 8 << 20;

/// A JSON object and the file it came from. A field that is null counts as absent, as it does for those who write these files.
pub(crate) struct Fields {
    path: PathBuf,
    values: Map<String, Value>,
}

impl Fields {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, PretrainedError> {
        let bytes = read_bounded(path, MAX_BYTES)?;
        let damaged = |what: String| PretrainedError::Damaged { path: path.to_owned(), what };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(values)) => Ok(Self { path: path.to_owned(), values }),
            Ok(_) => Err(damaged("it is not a JSON object".into())),
            Err(error) => Err(damaged(format!("it is not JSON: {error}"))),
        }
    }

    /// The fields of an object within a file.
    pub(crate) fn of(path: &Path, values: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), values }
    }

    /// No field at all.
    pub(crate) fn none(path: &Path) -> Self {
        Self { path: path.to_owned(), values: Map::new() }
    }

    /// The fields of an object that is itself a field.
    pub(crate) fn nested(&self, field: &str) -> Result<Option<Self>, PretrainedError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Object(values)) => Ok(Some(Self { path: self.path.clone(), values: values.clone() })),
            Some(value) => Err(self.wrong(field, format!("is {value}; an object is meant"))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field).filter(|value| !value.is_null())
    }

    pub(crate) fn wrong(&self, field: &str, what: impl Into<String>) -> PretrainedError {
        PretrainedError::Config { path: self.path.clone(), field: field.into(), what: what.into() }
    }

    /// A size: a whole number from 1.
    pub(crate) fn size(&self, field: &str, otherwise: Option<usize>) -> Result<usize, PretrainedError> {
        let Some(value) = self.get(field) else {
            return otherwise.ok_or_else(|| self.wrong(field, "is missing"));
        };
        match value.as_u64() {
            Some(size) if (1..=MAX_SIZE).contains(&size) => Ok(size as usize),
            _ => Err(self.wrong(field, format!("is {value}; a whole number from 1 to {MAX_SIZE} is meant"))),
        }
    }

    /// Two sizes, or one that counts for both.
    pub(crate) fn sizes(&self, field: &str, otherwise: usize) -> Result<[usize; 2], PretrainedError> {
        let Some(Value::Array(values)) = self.get(field) else { return Ok([self.size(field, Some(otherwise))?; 2]) };
        match values.iter().map(|value| value.as_u64().filter(|size| (1..=MAX_SIZE).contains(size))).collect::<Option<Vec<_>>>().as_deref()
        {
            Some([first, second]) => Ok([*first as usize, *second as usize]),
            _ => Err(self.wrong(field, format!("is a list, but not of two whole numbers from 1 to {MAX_SIZE}"))),
        }
    }

    /// These fields, and those of another object that are not among them.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut values = other.values.clone();
        values.extend(self.values.iter().filter(|(_, value)| !value.is_null()).map(|(field, value)| (field.clone(), value.clone())));
        Self { path: self.path.clone(), values }
    }

    /// A token's number, or a list of them.
    pub(crate) fn tokens(&self, field: &str) -> Result<Vec<u32>, PretrainedError> {
        let Some(value) = self.get(field) else { return Ok(Vec::new()) };
        self.token_list(field, value)
    }

    /// Lists of tokens' numbers.
    pub(crate) fn token_lists(&self, field: &str) -> Result<Vec<Vec<u32>>, PretrainedError> {
        match self.get(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(lists)) => lists.iter().map(|list| self.token_list(field, list)).collect(),
            Some(value) => Err(self.wrong(field, format!("is {value}; lists of tokens are meant"))),
        }
    }

    fn token_list(&self, field: &str, value: &Value) -> Result<Vec<u32>, PretrainedError> {
        let one = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
        let tokens = match value {
            Value::Array(values) => values.iter().map(one).collect(),
            value => one(value).map(|token| vec![token]),
        };
        tokens.ok_or_else(|| self.wrong(field, format!("is {value}; a token's number is meant")))
    }

    pub(crate) fn flag(&self, field: &str, otherwise: bool) -> Result<bool, PretrainedError> {
        let Some(value) = self.get(field) else { return Ok(otherwise) };
        value.as_bool().ok_or_else(|| self.wrong(field, format!("is {value}; true or false is meant")))
    }

    pub(crate) fn number(&self, field: &str, otherwise: f64) -> Result<f64, PretrainedError> {
        let Some(value) = self.get(field) else { return Ok(otherwise) };
        value.as_f64().filter(|number| number.is_finite()).ok_or_else(|| self.wrong(field, format!("is {value}; a finite number is meant")))
    }

    pub(crate) fn text<'a>(&'a self, field: &str, otherwise: &'a str) -> Result<&'a str, PretrainedError> {
        let Some(value) = self.get(field) else { return Ok(otherwise) };
        value.as_str().ok_or_else(|| self.wrong(field, format!("is {value}; a text is meant")))
    }
}

/// Reads an ordinary file of at most so many bytes.
pub(crate) fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, PretrainedError> {
    use std::io::Read;
    let io = |source| PretrainedError::Io { action: "read", path: path.to_owned(), source };
    let damaged = |what: String| PretrainedError::Damaged { path: path.to_owned(), what };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(damaged("it is not a file".into()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most { Err(damaged(format!("it is longer than {most} bytes"))) } else { Ok(bytes) }
}
