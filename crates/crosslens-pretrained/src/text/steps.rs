//! What the steps of a `tokenizer.json` may do to a text, looked at before the library takes them: it panics over some settings and grows a
//! text without end by others.

use serde_json::{Map, Value};

use super::sentencepiece::CharacterMap;

/// Most steps of a kind, one after the other or within each other: published files have ten.
const MOST_STEPS: usize = 64;
/// Most bytes that one byte of a text may become: T5's become 132 at the very most.
const MOST_GROWTH: usize = 4096;
/// Longest text that is put before another one.
const MOST_PREPENDED: usize = 256;
/// Most tokens that are put around a text.
const MOST_AROUND: usize = 1024;
/// The character that grows most, U+FDFA, has 3 bytes and becomes 33.
const UNICODE_GROWTH: usize = 11;

/// The parts of a file that have steps.
pub(super) struct Steps<'v> {
    pub(super) normalizer: &'v Value,
    pub(super) pre_tokenizer: &'v Value,
    pub(super) post_processor: &'v Value,
    pub(super) decoder: &'v Value,
}

impl Steps<'_> {
    /// Says what is wrong with them, if anything is.
    pub(super) fn check(&self) -> Result<(), String> {
        let before = [steps("normalizer", self.normalizer)?, steps("pre_tokenizer", self.pre_tokenizer)?].concat();
        few_enough("normalizer and pre_tokenizer", &before)?;
        few_enough("decoder", &steps("decoder", self.decoder)?)?;
        before.iter().try_for_each(|step| check_step(step))?;
        steps("post_processor", self.post_processor)?.iter().try_for_each(|step| check_template(step))
    }
}

/// All objects of a part that are steps or hold some: neither patterns nor tokens are.
fn steps<'v>(part: &str, value: &'v Value) -> Result<Vec<&'v Map<String, Value>>, String> {
    let (mut open, mut found) = (vec![value], Vec::new());
    while let Some(value) = open.pop() {
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(fields) => {
                found.push(fields);
                let lists = ["normalizers", "pretokenizers", "processors", "decoders"];
                open.extend(lists.iter().filter_map(|list| fields.get(*list)));
            }
            _ => {}
        }
        if found.len() > MOST_STEPS {
            return Err(format!("its {part} has more than {MOST_STEPS} steps"));
        }
    }
    Ok(found)
}

fn few_enough(parts: &str, steps: &[&Map<String, Value>]) -> Result<(), String> {
    let mut growth = 1usize;
    for step in steps {
        growth = growth.saturating_mul(growth_of(step)?);
    }
    if growth > MOST_GROWTH {
        return Err(format!("its {parts} can make a text {growth} times as long; at most {MOST_GROWTH} times is allowed"));
    }
    Ok(())
}

/// How many bytes a step makes of one at most, where another like it could make as many of each of those.
fn growth_of(step: &Map<String, Value>) -> Result<usize, String> {
    if let Some(Value::String(map)) = step.get("precompiled_charsmap") {
        return CharacterMap::from_base64(map).map(|map| map.longest_replacement().max(1));
    }
    if let (Some(pattern), Some(Value::String(content))) = (step.get("pattern"), step.get("content")) {
        return Ok(match pattern.get("String").and_then(Value::as_str) {
            Some(found) if !found.is_empty() => content.len().div_ceil(found.len()).max(1),
            // An expression may find nothing, between any two bytes.
            _ => content.len().saturating_add(1),
        });
    }
    let is_empty = |field: &str| step.get(field).and_then(Value::as_str) == Some("");
    Ok(match step.get("type").and_then(Value::as_str) {
        Some("NFD" | "NFC" | "NFKD" | "NFKC" | "BertNormalizer") => UNICODE_GROWTH,
        Some("Lowercase" | "ByteLevel") => 2,
        // A space between any two bytes.
        _ if is_empty("word_delimiter_token") || is_empty("suffix") => 2,
        _ => 1,
    })
}

fn check_step(step: &Map<String, Value>) -> Result<(), String> {
    if step.get("type").and_then(Value::as_str) == Some("FixedLength") && step.get("length").and_then(Value::as_u64) == Some(0) {
        return Err("`length` of its pre_tokenizer FixedLength is 0; 1 or more is meant".into());
    }
    let n_bytes = step.get("prepend").and_then(Value::as_str).map_or(0, str::len);
    if n_bytes > MOST_PREPENDED {
        return Err(format!("`prepend` of its normalizer has {n_bytes} bytes; at most {MOST_PREPENDED} are allowed"));
    }
    Ok(())
}

/// A template puts tokens around a text, which it names once.
fn check_template(step: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(pieces)) = step.get("single") else { return Ok(()) };
    let n_texts = pieces.iter().filter(|piece| piece.get("Sequence").is_some()).count();
    if n_texts != 1 {
        return Err(format!("`single` of its post_processor names the text {n_texts} times; once is meant"));
    }
    let n_tokens = |piece: &Value| {
        let id = piece.get("SpecialToken")?.get("id")?.as_str()?;
        Some(step.get("special_tokens")?.get(id)?.get("ids")?.as_array()?.len())
    };
    let n_around = pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(n_tokens(piece).unwrap_or(0)));
    if n_around > MOST_AROUND {
        return Err(format!("`single` of its post_processor puts {n_around} tokens around a text; at most {MOST_AROUND} are allowed"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn growth(step: &Value) -> usize {
        growth_of(step.as_object().expect("an object")).expect("no map")
    }

    /// `a` for `aa` halves, `▁` for a space triples, and an expression that finds nothing adds its content to every byte.
    #[test]
    fn growth_is_bytes_for_bytes() {
        for (pattern, content, expected) in [("aa", "a", 1), (" ", "▁", 3), ("aa", "aaa", 2), ("", "ab", 3), ("a", "", 1)] {
            assert_eq!(growth(&json!({ "type": "Replace", "pattern": { "String": pattern }, "content": content })), expected);
        }
        assert_eq!(growth(&json!({ "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": "▁" })), 4);
        assert_eq!(growth(&json!({ "type": "ByteLevel" })), 2);
        assert_eq!(growth(&json!({ "type": "CTC", "word_delimiter_token": "", "pad_token": "<pad>", "cleanup": true })), 2);
        assert_eq!(growth(&json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 })), 1);
    }

    #[test]
    fn steps_within_steps_are_counted() {
        let inner = json!({ "type": "Sequence", "normalizers": [{ "type": "NFC" }, { "type": "NFC" }] });
        assert_eq!(steps("normalizer", &json!({ "type": "Sequence", "normalizers": [inner, { "type": "NFC" }] })).expect("few").len(), 5);
        let many = vec![json!({ "type": "Lowercase" }); MOST_STEPS + 1];
        assert_eq!(steps("decoder", &json!(many)), Err("its decoder has more than 64 steps".to_owned()));
    }
}
