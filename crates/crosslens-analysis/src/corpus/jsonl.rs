//! Lines of JSON: `{"source": …, "target": …}`, `{"src": …, "tgt": …}`, or `{"translation": {"en": …, "fr": …}}`, of which the first two
//! languages are taken as they stand.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::entry::{Entries, Entry, Texts, both};
use super::{BytesRead, CorpusError, Line, Lines, MAX_LINE_BYTES, Reason};

pub(super) struct Jsonl(Lines);

impl Jsonl {
    pub(super) fn open(path: &Path) -> Result<Self, CorpusError> {
        Lines::open(path, MAX_LINE_BYTES).map(Self)
    }
}

impl Entries for Jsonl {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        let path = Arc::clone(self.0.path());
        let Some((number, line)) = self.0.next_line()? else { return Ok(None) };
        Ok(Some(Entry { path, line: number, texts: texts(line) }))
    }

    fn bytes_read(&self) -> BytesRead {
        self.0.bytes_read()
    }
}

fn texts(line: Line<'_>) -> Texts {
    let text = line.text()?;
    if text.trim().is_empty() {
        return Err(Reason::Blank);
    }
    let fields: Fields = serde_json::from_str(text).map_err(|_| Reason::Malformed)?;
    let Translation(mut languages) = fields.translation.unwrap_or_default();
    languages.truncate(2);
    let (target, source) = (languages.pop(), languages.pop());
    let source = fields.source.or(source).ok_or(Reason::OneSided)?;
    let target = fields.target.or(target).ok_or(Reason::OneSided)?;
    both(&source, &target).map_err(|_| Reason::OneSided)
}

/// The fields of a line that are looked at; `null` is a text that is missing.
#[derive(Deserialize)]
struct Fields {
    #[serde(alias = "src")]
    source: Option<String>,
    #[serde(alias = "tgt")]
    target: Option<String>,
    translation: Option<Translation>,
}

/// The texts by language, in the order of the file, which a map would lose; a text that is `null` is empty.
#[derive(Default)]
struct Translation(Vec<String>);

impl<'de> Deserialize<'de> for Translation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Languages)
    }
}

struct Languages;

impl<'de> Visitor<'de> for Languages {
    type Value = Translation;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text for each of two languages")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Translation, M::Error> {
        let mut texts = Vec::new();
        while map.next_key::<IgnoredAny>()?.is_some() {
            if texts.len() < 2 {
                texts.push(map.next_value::<Option<String>>()?.unwrap_or_default());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Translation(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Texts {
        texts(Line::Bytes(line.as_bytes()))
    }

    #[test]
    fn each_way_of_naming_two_texts_is_read() {
        for line in [
            r#"{"source": "a cat", "target": "un chat"}"#,
            r#"{"id": [1, {"x": null}], "tgt": "un chat", "src": "a\ncat "}"#,
            r#"{"translation": {"fr": "a cat", "en": "un chat"}}"#,
            r#"{"translation": {"zz": "a cat", "aa": "un chat", "de": {"more": 1}}}"#,
        ] {
            assert_eq!(read(line), Ok(("a cat".into(), "un chat".into())), "{line}");
        }
    }

    #[test]
    fn what_is_no_pair_is_told_apart() {
        for (line, reason) in [
            ("", Reason::Blank),
            ("{", Reason::Malformed),
            ("[1, 2]", Reason::Malformed),
            (r#"{"source": 3, "target": "b"}"#, Reason::Malformed),
            (r#"{"source": "a", "target": "\ud800"}"#, Reason::Malformed),
            (r#"{"source": "a", "src": "b", "target": "c"}"#, Reason::Malformed),
            (r#"{"source": "a"}"#, Reason::OneSided),
            (r#"{"source": "a", "target": null}"#, Reason::OneSided),
            (r#"{"source": "", "target": ""}"#, Reason::OneSided),
            (r#"{"translation": {"en": "a"}}"#, Reason::OneSided),
            (r#"{"translation": {"en": "a", "fr": null}}"#, Reason::OneSided),
            ("{}", Reason::OneSided),
        ] {
            assert_eq!(read(line), Err(reason), "{line}");
        }
        let deep = format!(r#"{{"x": {}"#, "[".repeat(60_000));
        assert_eq!(read(&deep), Err(Reason::Malformed));
    }
}
