//! What a dump says of itself besides its numbers: where its heads are, and what its tokens are called.
//!
//! ```json
//! {"kind": "cross", "layer": 3, "heads": [0, 5], "key": {"names": ["<eos>", "cat"], "end": 0}, "query": {"names": ["<s>", "chat"], "start": 0}}
//! ```

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use super::RecordingError;
use super::manifest::SiteKindName;
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::{SiteKind, Token, Words};

/// The array of bytes, or the text among a header's metadata, that holds it.
pub(super) const ABOUT: &str = "about";
/// Largest text that is read: room for the names of a million words.
const MAX_ABOUT_BYTES: u64 = 16 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct About {
    #[serde(with = "SiteKindName")]
    pub(super) kind: SiteKind,
    pub(super) layer: usize,
    /// The number of each head; from 0 on where there are none.
    heads: Option<Vec<usize>>,
    key: Option<Named>,
    query: Option<Named>,
}

/// The tokens of one side.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Named {
    /// Of all tokens, or of none.
    names: Vec<String>,
    start: Option<Token>,
    end: Option<Token>,
}

impl Default for About {
    fn default() -> Self {
        Self { kind: SiteKind::Cross, layer: 0, heads: None, key: None, query: None }
    }
}

impl About {
    /// Reads it where it is there.
    pub(super) fn read(arrays: &Arrays) -> Result<Self, RecordingError> {
        let path = arrays.path();
        let parsed = match (arrays.has(ABOUT), arrays.metadata(ABOUT)) {
            (true, Some(_)) => return Err(RecordingError::Duplicate { path: path.to_owned(), name: ABOUT.into() }),
            (true, None) => {
                let [bytes] = arrays.shape(ABOUT, &[Dtype::U8])?;
                if bytes > MAX_ABOUT_BYTES {
                    let what = format!("array `{ABOUT}`");
                    return Err(RecordingError::TooLarge { path: path.to_owned(), what, bytes, most: MAX_ABOUT_BYTES });
                }
                serde_json::from_slice(&arrays.all::<u8>(ABOUT)?)
            }
            (false, Some(text)) => serde_json::from_str(text),
            (false, None) => return Ok(Self::default()),
        };
        parsed.map_err(|error| RecordingError::Damaged { path: path.to_owned(), what: format!("`{ABOUT}`: {error}") })
    }

    /// The number of each of the heads there are.
    pub(super) fn heads(&self, path: &Path, n_heads: usize) -> Result<Vec<usize>, RecordingError> {
        let Some(heads) = &self.heads else { return Ok((0..n_heads).collect()) };
        if heads.len() != n_heads {
            return Err(contradiction(path, format!("`{ABOUT}` numbers {} heads, but there are {n_heads}", heads.len())));
        }
        let mut numbers = HashSet::new();
        match heads.iter().find(|head| !numbers.insert(**head)) {
            Some(head) => Err(contradiction(path, format!("`{ABOUT}` has head {head} twice"))),
            None => Ok(heads.clone()),
        }
    }

    /// The words of both sides; `n_keys` and `n_queries` are one more than the largest token of keys and queries.
    ///
    /// Attention of a side to itself has one side, and what is said of the keys or of the queries holds for both.
    pub(super) fn words(&self, path: &Path, n_keys: u32, n_queries: u32) -> Result<(Words, Words), RecordingError> {
        if self.kind == SiteKind::Cross {
            return Ok((words(path, "key", self.key.as_ref(), n_keys)?, words(path, "query", self.query.as_ref(), n_queries)?));
        }
        if let (Some(key), Some(query)) = (&self.key, &self.query)
            && key != query
        {
            let what = format!("`{ABOUT}` tells keys from queries, but with `{}` they are the same tokens", self.kind.name());
            return Err(contradiction(path, what));
        }
        let (side, about) = if self.key.is_some() { ("key", &self.key) } else { ("query", &self.query) };
        let words = words(path, side, about.as_ref(), n_keys.max(n_queries))?;
        Ok((words.clone(), words))
    }
}

fn contradiction(path: &Path, what: String) -> RecordingError {
    RecordingError::Description { path: path.to_owned(), what }
}

/// The words of one side, of which the first `n_seen` may occur.
fn words(path: &Path, side: &str, named: Option<&Named>, n_seen: u32) -> Result<Words, RecordingError> {
    let Some(named) = named else { return Ok(Words { count: n_seen, ..Words::default() }) };
    let refused = |what: String| contradiction(path, format!("`{ABOUT}`, `{side}`: {what}"));
    let mut count = n_seen;
    if !named.names.is_empty() {
        let mut names = HashSet::new();
        if let Some(name) = named.names.iter().find(|name| !names.insert(name.as_str())) {
            return Err(refused(format!("two tokens are called `{name}`")));
        }
        let n_names = named.names.len();
        count = u32::try_from(n_names).map_err(|_| refused(format!("{n_names} names are too many")))?;
        if n_seen > count {
            return Err(refused(format!("there are {count} names, but token {} occurs", n_seen - 1)));
        }
    }
    for (what, token) in [("start", named.start), ("end", named.end)] {
        let Some(token) = token else { continue };
        match token.checked_add(1) {
            Some(needed) if named.names.is_empty() => count = count.max(needed),
            Some(needed) if needed <= count => {}
            _ => return Err(refused(format!("`{what}` is token {token}, which has no name"))),
        }
    }
    Ok(Words { count, names: named.names.clone(), start: named.start, end: named.end })
}
