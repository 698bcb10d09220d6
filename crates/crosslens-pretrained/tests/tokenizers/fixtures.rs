//! Golden files, and folders with tokenizers in them.

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crosslens_pretrained::text::{SentencePiece, TextTokenizer, TokenizerError};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

use crate::allocation::largest_of;

/// The SentencePiece models among the golden files.
pub(crate) const MODELS: [&str; 10] = [
    "unigram-nmt_nfkc",
    "unigram-nmt_nfkc-unused",
    "unigram-nfkc_cf",
    "unigram-identity-spaces-kept",
    "unigram-bytes",
    "unigram-suffix",
    "bpe-identity",
    "bpe-nmt_nfkc",
    "bpe-nmt_nfkc-unused",
    "bpe-bytes",
];

/// The `tokenizer.json` files among them.
pub(crate) const LIBRARY: [&str; 3] = ["t5-tokenizer", "bart-tokenizer", "nllb-tokenizer"];

/// What a broken file may make the reader ask for at once, beyond the file's own size.
const SMALL: usize = 1 << 20;

/// A golden file's content.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tokenizers").join(name);
    let packed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut content = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut content).expect("a gzip file");
    content
}

pub(crate) fn golden_json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&golden(&format!("{name}.json.gz"))).expect("golden JSON")
}

/// One field of a message of the wire format, of the kind that has a length.
pub(crate) fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = payload.len();
    while length > 0x7f {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(payload);
    bytes
}

/// A normaliser's map of characters. The golden file has the units' lowest bytes first, then their second ones, and so on.
pub(crate) fn character_map(rule: &str) -> Vec<u8> {
    let stored = golden(&format!("{rule}.charsmap.gz"));
    let (n_bytes, rest) = stored.split_first_chunk::<4>().expect("a length");
    let (bytes, texts) = rest.split_at(u32::from_le_bytes(*n_bytes) as usize);
    let n_units = bytes.len() / 4;
    let units = (0..n_units).flat_map(|unit| (0..4).map(move |place| bytes[place * n_units + unit]));
    n_bytes.iter().copied().chain(units).chain(texts.iter().copied()).collect()
}

/// The bytes of a golden model, its map of characters put back.
pub(crate) fn model_bytes(name: &str) -> Vec<u8> {
    let mut bytes = golden(&format!("{name}.model.gz"));
    let about: Value = golden_json(name);
    if let Some(rule) = about["rule"].as_str() {
        bytes.extend(field(3, &field(2, &character_map(rule))));
    }
    bytes
}

pub(crate) fn model(name: &str) -> SentencePiece {
    SentencePiece::from_bytes(&model_bytes(name)).expect("a golden model")
}

/// A golden `tokenizer.json`, its map of characters put back.
pub(crate) fn library_file(name: &str) -> Vec<u8> {
    let mut about: Value = golden_json(name);
    if let Some(rule) = about["rule"].as_str().map(str::to_owned) {
        put_map_back(&mut about["tokenizer"]["normalizer"], &rule);
    }
    serde_json::to_vec(&about["tokenizer"]).expect("JSON")
}

fn put_map_back(part: &mut Value, rule: &str) {
    use base64::Engine as _;
    match part {
        Value::Object(fields) => {
            if let Some(map) = fields.get_mut("precompiled_charsmap") {
                assert_eq!(map, rule);
                *map = base64::engine::general_purpose::STANDARD.encode(character_map(rule)).into();
            }
            fields.values_mut().for_each(|inner| put_map_back(inner, rule));
        }
        Value::Array(parts) => parts.iter_mut().for_each(|inner| put_map_back(inner, rule)),
        _ => {}
    }
}

/// A folder of a model, of which only the tokenizer is there.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.path(name), content).expect("a file");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn open(&self) -> Result<TextTokenizer, TokenizerError> {
        TextTokenizer::open(self.0.path())
    }

    pub(crate) fn tokenizer(&self) -> TextTokenizer {
        self.open().unwrap_or_else(|error| panic!("{}", chain(&error)))
    }

    /// Opening fails with a message that names `file` (the folder if that is empty) and says all of `words`, and asks for no memory to speak of.
    pub(crate) fn refused(&self, file: &str, words: &[&str]) {
        let (opened, largest) = largest_of(|| self.open());
        let message = chain(&opened.expect_err("a broken tokenizer"));
        let path = if file.is_empty() { self.0.path().to_owned() } else { self.path(file) };
        assert!(message.contains(&*path.to_string_lossy()), "no `{file}` in: {message}");
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
        let size = fs::metadata(&path).map_or(0, |about| about.len() as usize);
        assert!(largest <= SMALL + 8 * size, "{largest} bytes at once for a file of {size}");
    }
}

/// An error with what caused it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

/// A folder with the golden T5 model.
pub(crate) fn t5() -> Folder {
    let about: Value = golden_json("t5");
    let model = about["model"].as_str().expect("a name");
    Folder::new().with("spiece.model", model_bytes(model)).with("tokenizer_config.json", about["config"].to_string())
}

/// A folder with a golden Marian model.
pub(crate) fn marian(name: &str) -> Folder {
    let about: Value = golden_json(name);
    let bytes = |key: &str| model_bytes(about[key].as_str().expect("a name"));
    let folder = Folder::new()
        .with("source.spm", bytes("source_model"))
        .with("target.spm", bytes("target_model"))
        .with("vocab.json", about["vocab"].to_string())
        .with("tokenizer_config.json", about["config"].to_string());
    match &about["target_vocab"] {
        Value::Null => folder,
        vocabulary => folder.with("target_vocab.json", vocabulary.to_string()),
    }
}

/// The tokenizers of BART's relatives among the golden files.
pub(crate) const RELATIVES: [&str; 8] = ["pegasus", "mbart", "mbart50", "nllb", "nllb-legacy", "xlm-roberta", "m2m100", "m2m100-wmt21"];

/// A folder with one of them.
pub(crate) fn relative(name: &str) -> Folder {
    let about: Value = golden_json(name);
    let model = if name == "pegasus" { "spiece.model" } else { "sentencepiece.bpe.model" };
    let folder = Folder::new().with(model, model_bytes(about["model"].as_str().expect("a name")));
    let files = about["files"].as_object().expect("files");
    files.iter().fold(folder, |folder, (name, content)| folder.with(name, content.to_string()))
}

/// The same with its golden languages chosen.
pub(crate) fn speaking(name: &str) -> TextTokenizer {
    let mut tokenizer = relative(name).tokenizer();
    let about: Value = golden_json(name);
    if let Some([source, target]) = about["languages"].as_array().map(Vec::as_slice) {
        tokenizer.choose_languages(source.as_str().expect("a code"), target.as_str().expect("a code")).expect("known languages");
    }
    tokenizer
}

/// A folder of a kind whose added tokens stand in a file of their own, and its tokenizer's golden cases.
pub(crate) fn with_added_tokens(kind: &str) -> (Folder, BothSides) {
    let about: Value = golden_json(&format!("added-{kind}"));
    let folder = match kind {
        "marian" => marian("marian"),
        "t5" => t5(),
        other => relative(other),
    };
    let files = about["files"].as_object().expect("files");
    let folder = files.iter().fold(folder, |folder, (name, content)| folder.with(name, content.to_string()));
    (folder, serde_json::from_value(about).expect("cases"))
}

/// A folder with a golden `tokenizer.json`.
pub(crate) fn library(name: &str) -> Folder {
    Folder::new().with("tokenizer.json", library_file(name))
}

/// What a tokenizer of transformers makes of both sides of many texts.
#[derive(Deserialize)]
pub(crate) struct BothSides {
    /// Text, source ids, target ids, target ids decoded.
    pub(crate) cases: Vec<(String, Vec<u32>, Vec<u32>, String)>,
}

impl BothSides {
    /// Fails unless ours makes the same of them.
    pub(crate) fn holds(&self, name: &str, tokenizer: &TextTokenizer) {
        let mut differences = Vec::new();
        for (text, source, target, decoded) in &self.cases {
            let ours = tokenizer.encode_source(text).expect("ids");
            if ours.ids != *source {
                differences.push(format!("source {text:?} {:?}\n  ours   {:?}\n  golden {source:?}", ours.tokens, ours.ids));
            }
            let ours = tokenizer.encode_target(text).expect("ids");
            if ours.ids != *target {
                differences.push(format!("target {text:?} {:?}\n  ours   {:?}\n  golden {target:?}", ours.tokens, ours.ids));
            }
            let ours = tokenizer.decode(target).expect("text");
            if ours != *decoded {
                differences.push(format!("decoded {target:?}\n  ours   {ours:?}\n  golden {decoded:?}"));
            }
        }
        none_of(name, self.cases.len(), &differences);
    }
}

/// Fails with the first differences of many comparisons.
pub(crate) fn none_of(name: &str, n_cases: usize, differences: &[String]) {
    let shown = differences.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{name}: {} of {n_cases} differ\n{shown}", differences.len());
    assert!(n_cases >= 300, "{name}: only {n_cases} cases");
}
