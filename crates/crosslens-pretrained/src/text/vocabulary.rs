//! The vocabulary of a Marian or M2M100 model: one JSON object of tokens and their ids.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::error::TokenizerError;
use super::files;

/// Tokens by ids and ids by tokens.
#[derive(Clone, Debug)]
pub(super) struct Vocabulary {
    ids: HashMap<String, u32>,
    tokens: HashMap<u32, String>,
}

impl Vocabulary {
    pub(super) fn open(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = files::json_bytes(path)?;
        let entries: Entries = serde_json::from_slice(&bytes).map_err(|source| TokenizerError::Json { path: path.to_owned(), source })?;
        let tokens = entries.0.iter().map(|(token, id)| (*id, token.clone())).collect();
        Ok(Self { ids: entries.0.into_iter().collect(), tokens })
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(&id).map(String::as_str)
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// One more than the largest id.
    pub(super) fn size(&self) -> usize {
        self.ids.values().max().map_or(0, |&id| id as usize + 1)
    }
}

/// The object's entries in the order of the file: of a token or an id that is there twice, the last one counts.
struct Entries(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of tokens and their ids, such as {\"</s>\": 0, \"<unk>\": 1}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Object)
    }
}
