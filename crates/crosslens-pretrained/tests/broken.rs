//! Models that lie: one test for each way the files of a folder can be wrong. Each is refused with a message that names the file and what is
//! wrong in it, without a panic and without memory for what the file only claims.

#[path = "tokenizers/allocation.rs"]
mod allocation;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, SiteKind, Token, Untouched};
use crosslens_pretrained::{Decoding, DeviceKind, Model, PretrainedError, Subject, TokenNames, Wanted};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use allocation::{largest_of, most_held};

/// What a broken folder may make the reader ask for at once: a buffer for reading, no more.
const SMALL: usize = 4 << 20;
/// What it may make the reader hold altogether: the folder's own numbers, which are few, and some such buffers.
const FEW: usize = 16 << 20;
/// A matrix of the T5.
const MATRIX: &str = "encoder.block.1.layer.0.SelfAttention.q.weight";
const WORDS: &str = "shared.weight";

struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Tensor {
    fn zeros(shape: &[usize]) -> Self {
        Self { dtype: Dtype::F32, shape: shape.to_vec(), data: vec![0; 4 * shape.iter().product::<usize>()] }
    }
}

/// A copy of a golden model, to be damaged.
struct Folder(TempDir);

impl Folder {
    fn of(case: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
        for entry in std::fs::read_dir(golden).expect("golden models are committed").flatten() {
            std::fs::copy(entry.path(), folder.path(&entry.file_name().to_string_lossy())).expect("a copy");
        }
        Model::open(folder.0.path()).expect("whole before it is damaged");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("writable");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("readable")
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("it was there");
    }

    /// Sets fields of a file; null removes one.
    fn set(&self, file: &str, fields: &Value) {
        let mut object: Map<String, Value> = serde_json::from_slice(&self.bytes(file)).expect("an object");
        object.extend(fields.as_object().expect("an object").clone());
        object.retain(|_, value| !value.is_null());
        self.write(file, Value::Object(object).to_string());
    }

    /// Sets fields of a configuration within `config.json`.
    fn set_in(&self, half: &str, fields: &Value) {
        let mut config: Value = serde_json::from_slice(&self.bytes("config.json")).expect("a configuration");
        config[half].as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        self.write("config.json", config.to_string());
    }

    /// Changes the tensors of `model.safetensors`.
    fn change(&self, damage: impl FnOnce(&mut BTreeMap<String, Tensor>)) {
        let bytes = self.bytes("model.safetensors");
        let read = safetensors::SafeTensors::deserialize(&bytes).expect("whole");
        let tensor = |view: TensorView<'_>| Tensor { dtype: view.dtype(), shape: view.shape().to_vec(), data: view.data().to_vec() };
        let mut tensors: BTreeMap<String, Tensor> = read.tensors().into_iter().map(|(name, view)| (name, tensor(view))).collect();
        damage(&mut tensors);
        let views = tensors
            .iter()
            .map(|(name, tensor)| (name, TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.data).expect("a tensor")));
        self.write("model.safetensors", safetensors::serialize(views, None).expect("tensors"));
    }

    /// Changes the header of `model.safetensors` and leaves its data.
    fn change_header(&self, damage: impl FnOnce(&mut Value)) {
        let bytes = self.bytes("model.safetensors");
        let (length, rest) = bytes.split_first_chunk::<8>().expect("a length");
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let mut header: Value = serde_json::from_slice(header).expect("a header");
        damage(&mut header);
        let header = header.to_string();
        self.write("model.safetensors", [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat());
    }

    /// Opening fails with a message that has all these words in it.
    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let ((result, largest), most) = most_held(|| largest_of(|| Model::open(self.0.path())));
        let error = chain(&result.map(drop).expect_err("refused"));
        for word in [&self.0.path().to_string_lossy()[..]].iter().chain(words) {
            assert!(error.contains(word), "`{word}` is not in: {error}");
        }
        assert!(largest < SMALL, "{largest} bytes at once");
        assert!(most < FEW, "{most} bytes altogether");
    }
}

fn chain(error: &PretrainedError) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        texts.push(error.to_string());
        source = error.source();
    }
    texts.join(": ")
}

/// A T5 whose tensors are damaged.
#[track_caller]
fn refused_tensors(damage: impl FnOnce(&mut BTreeMap<String, Tensor>), words: &[&str]) {
    refused_tensors_of("t5", damage, words);
}

/// A model whose tensors are damaged.
#[track_caller]
fn refused_tensors_of(case: &str, damage: impl FnOnce(&mut BTreeMap<String, Tensor>), words: &[&str]) {
    let folder = Folder::of(case);
    folder.change(damage);
    folder.refused(words);
}

/// A model with these fields in its config.json, and no other file on how to write.
#[track_caller]
fn refused_config(case: &str, fields: &Value, words: &[&str]) {
    let folder = Folder::of(case);
    if folder.path("generation_config.json").exists() {
        folder.remove("generation_config.json");
    }
    folder.set("config.json", fields);
    folder.refused(&[&["config.json"], words].concat());
}

fn take(tensors: &mut BTreeMap<String, Tensor>, name: &str) -> Tensor {
    tensors.remove(name).unwrap_or_else(|| panic!("no tensor {name}"))
}

#[test]
fn tensor_missing() {
    refused_tensors(|tensors| drop(take(tensors, MATRIX)), &["has no tensor", MATRIX]);
}

#[test]
fn table_of_words_missing() {
    refused_tensors(|tensors| drop(take(tensors, WORDS)), &["has no tensor", WORDS]);
}

/// A tensor is named as files have it, whichever is missing.
#[test]
fn the_first_tensor_missing_is_named() {
    let first = "model.encoder.layers.0.self_attn.q_proj.weight";
    refused_tensors_of("bart", |tensors| drop(take(tensors, first)), &["has no tensor", first]);
}

/// OPUS-MT's is trained: a file that lost it would write other words.
#[test]
fn bias_of_marians_words_missing() {
    refused_tensors_of("marian", |tensors| drop(take(tensors, "final_logits_bias")), &["has no tensor", "final_logits_bias"]);
}

/// What each side reads may lie in the file a second time: the same numbers change nothing, other ones are that side's own (the golden
/// models `t5-apart` and `bart-apart`), and none, or of another shape, are refused.
#[test]
fn copies_of_the_words_are_read() {
    for (case, words) in [("t5", WORDS), ("bart", "model.shared.weight"), ("marian", "model.shared.weight")] {
        for side in ["encoder", "decoder"] {
            let name = words.replace("shared", &format!("{side}.embed_tokens"));
            let copied = |tensors: &mut BTreeMap<String, Tensor>| {
                let Tensor { dtype, shape, data } = &tensors[words];
                let copy = Tensor { dtype: *dtype, shape: shape.clone(), data: data.clone() };
                tensors.insert(name.clone(), copy);
            };
            let folder = Folder::of(case);
            folder.change(copied);
            Model::open(folder.0.path()).unwrap_or_else(|error| panic!("{case}: {name}: {error}"));
            let spoilt = |tensors: &mut BTreeMap<String, Tensor>| {
                copied(tensors);
                spoil(tensors, &name);
            };
            refused_tensors_of(case, spoilt, &[&name, "not finite"]);
            let misshapen = |tensors: &mut BTreeMap<String, Tensor>| drop(tensors.insert(name.clone(), Tensor::zeros(&[4, 3])));
            refused_tensors_of(case, misshapen, &[&name, "[4, 3]"]);
        }
    }
}

#[test]
fn one_side_alone_is_no_model() {
    for case in ["t5", "marian", "whisper"] {
        refused_config(case, &json!({ "is_encoder_decoder": false }), &["is_encoder_decoder", "alone"]);
    }
}

/// Settings of transformers' that are not followed are kept to be told; values that change nothing are none.
#[test]
fn settings_that_are_not_followed_are_told() {
    let folder = Folder::of("bart");
    folder.set("generation_config.json", &json!({ "repetition_penalty": 1.0, "do_sample": false, "guidance_scale": null }));
    let rules = |folder: &Folder| Model::open(folder.0.path()).expect("a model").generation().clone();
    assert_eq!(rules(&folder).unheeded, [""; 0]);
    folder.set("generation_config.json", &json!({ "repetition_penalty": 3.0, "do_sample": true }));
    assert_eq!(rules(&folder).unheeded, ["repetition_penalty: 3.0", "do_sample: true"]);
}

/// The configuration says that words are not read out with the table they are read with.
#[test]
fn readout_missing() {
    for case in ["t5-v1_1", "marian-bfloat16", "mt5"] {
        let folder = Folder::of(case);
        folder.change(|tensors| drop(take(tensors, "lm_head.weight")));
        folder.refused(&["has no tensor", "lm_head.weight"]);
    }
    let folder = Folder::of("whisper");
    folder.set("config.json", &json!({ "tie_word_embeddings": false }));
    folder.refused(&["has no tensor", "proj_out.weight"]);
}

/// Decoders of pictures have a configuration of their own within that of the whole.
#[test]
fn readout_of_a_decoder_of_pictures_missing() {
    for (case, half, readout) in [
        ("vision/vit-trocr", "decoder", "decoder.output_projection.weight"),
        ("vision/vit-gpt2", "decoder", "decoder.lm_head.weight"),
        ("vision/vit-bert", "decoder", "decoder.cls.predictions.decoder.weight"),
        ("vision/vit-roberta", "decoder", "decoder.lm_head.decoder.weight"),
        ("vision/blip", "text_config", "text_decoder.cls.predictions.decoder.weight"),
    ] {
        let folder = Folder::of(case);
        folder.change(|tensors| drop(tensors.remove(readout)));
        Model::open(folder.0.path()).expect("tied");
        let mut config: Value = serde_json::from_slice(&folder.bytes("config.json")).expect("a configuration");
        config[half]["tie_word_embeddings"] = json!(false);
        folder.write("config.json", config.to_string());
        folder.refused(&["has no tensor", readout]);
    }
}

/// Published BART has a `version` beside each half, with the readout and without: nothing that a model is computed with.
#[test]
fn versions_say_nothing() {
    for prefix in ["model.", ""] {
        let folder = Folder::of("bart");
        folder.change(|tensors| {
            let names: Vec<String> = tensors.keys().filter(|name| name.starts_with("model.")).cloned().collect();
            for name in names {
                let tensor = take(tensors, &name);
                tensors.insert(format!("{prefix}{}", name.trim_start_matches("model.")), tensor);
            }
            for side in ["encoder", "decoder"] {
                tensors.insert(format!("{prefix}{side}.version"), Tensor::zeros(&[1]));
            }
        });
        Model::open(folder.0.path()).expect("versions are passed over");
    }
}

#[test]
fn tensor_too_many() {
    let extra = "encoder.block.7.layer.0.SelfAttention.q.weight";
    refused_tensors(|tensors| drop(tensors.insert(extra.into(), Tensor::zeros(&[16, 16]))), &[extra, "no use for"]);
}

#[test]
fn tensor_misshapen() {
    refused_tensors(
        |tensors| drop(tensors.insert(MATRIX.into(), Tensor::zeros(&[16, 8]))),
        &["model.safetensors", MATRIX, "[16, 8]", "[16, 16]"],
    );
}

/// As many numbers, of which another part would be taken.
#[test]
fn table_of_words_turned() {
    refused_tensors(|tensors| drop(tensors.insert(WORDS.into(), Tensor::zeros(&[16, 64]))), &[WORDS, "[16, 64]", "[64, 16]"]);
}

#[test]
fn tensor_misnamed() {
    let renamed = |tensors: &mut BTreeMap<String, Tensor>| {
        let tensor = take(tensors, MATRIX);
        tensors.insert(MATRIX.replace("SelfAttention", "self_attn"), tensor);
    };
    refused_tensors(renamed, &["has no tensor", MATRIX]);
}

/// Makes the last number of a tensor none.
fn spoil(tensors: &mut BTreeMap<String, Tensor>, name: &str) {
    let mut tensor = take(tensors, name);
    let last = tensor.data.len() - 4;
    tensor.data[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    tensors.insert(name.into(), tensor);
}

#[test]
fn weight_that_is_no_number() {
    refused_tensors(|tensors| spoil(tensors, MATRIX), &["model.safetensors", MATRIX, "not finite"]);
    refused_tensors(|tensors| spoil(tensors, WORDS), &["model.safetensors", WORDS, "not finite"]);
}

/// Missing, too many, misnamed, misshapen, no number: of sounds, of pictures and of many languages too.
#[test]
fn tensors_of_other_families_are_held_to_their_configuration() {
    for (case, matrix) in [
        ("whisper", "model.encoder.layers.1.self_attn.k_proj.weight"),
        ("whisper", "model.decoder.layers.1.encoder_attn.q_proj.weight"),
        ("mbart", "model.decoder.layers.1.encoder_attn.k_proj.weight"),
        ("pegasus", "model.encoder.layers.1.self_attn.q_proj.weight"),
        ("m2m_100", "model.decoder.layers.1.fc1.weight"),
        ("vision/vit-gpt2", "encoder.encoder.layer.1.attention.attention.query.weight"),
        ("vision/vit-gpt2", "decoder.transformer.h.1.crossattention.c_attn.weight"),
        ("vision/blip", "vision_model.encoder.layers.1.self_attn.qkv.weight"),
        ("vision/blip", "text_decoder.bert.encoder.layer.1.crossattention.self.query.weight"),
    ] {
        refused_tensors_of(case, |tensors| drop(take(tensors, matrix)), &["has no tensor", matrix]);
        let misname = |tensors: &mut BTreeMap<String, Tensor>| {
            let tensor = take(tensors, matrix);
            tensors.insert(matrix.replace(".weight", ".kernel"), tensor);
        };
        refused_tensors_of(case, misname, &["has no tensor", matrix]);
        let extra = matrix.replace(".1.", ".7.");
        refused_tensors_of(case, |tensors| drop(tensors.insert(extra.clone(), Tensor::zeros(&[16, 16]))), &[&extra, "no use for"]);
        let misshape = |tensors: &mut BTreeMap<String, Tensor>| drop(tensors.insert(matrix.into(), Tensor::zeros(&[5, 7])));
        refused_tensors_of(case, misshape, &["model.safetensors", matrix, "the shape [5, 7]"]);
        refused_tensors_of(case, |tensors| spoil(tensors, matrix), &["model.safetensors", matrix, "not finite"]);
    }
}

/// Keys of Whisper have none: a file with one is of another model.
#[test]
fn keys_with_a_bias_are_no_whisper() {
    for side in ["encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.1.encoder_attn"] {
        let stray = format!("model.{side}.k_proj.bias");
        refused_tensors_of("whisper", |tensors| drop(tensors.insert(stray.clone(), Tensor::zeros(&[16]))), &[&stray, "no use for"]);
    }
}

/// A double that single precision does not reach.
#[test]
fn weight_beyond_single_precision() {
    for name in [MATRIX, WORDS] {
        let doubles = |tensors: &mut BTreeMap<String, Tensor>| {
            let mut tensor = take(tensors, name);
            tensor.dtype = Dtype::F64;
            tensor.data = vec![1e300f64.to_le_bytes(); tensor.shape.iter().product()].concat();
            tensors.insert(name.into(), tensor);
        };
        refused_tensors(doubles, &[name, "not finite"]);
    }
}

#[test]
fn weights_that_are_whole_numbers() {
    for name in [MATRIX, WORDS] {
        refused_tensors(|tensors| tensors.get_mut(name).expect("a tensor").dtype = Dtype::I32, &["model.safetensors", name, "I32"]);
    }
}

#[test]
fn file_cut_short() {
    let folder = Folder::of("t5");
    let bytes = folder.bytes("model.safetensors");
    for (length, words) in [(bytes.len() - 1, "truncated"), (100, "truncated"), (7, "too short"), (0, "too short")] {
        folder.write("model.safetensors", &bytes[..length]);
        folder.refused(&["model.safetensors", words]);
    }
}

#[test]
fn file_with_more_than_its_tensors() {
    let folder = Folder::of("t5");
    folder.write("model.safetensors", [folder.bytes("model.safetensors"), vec![0; 4]].concat());
    folder.refused(&["model.safetensors", "its header asks for"]);
}

#[test]
fn header_that_claims_more_than_there_is() {
    let folder = Folder::of("t5");
    let bytes = folder.bytes("model.safetensors");
    for length in [1u64 << 60, u64::MAX, 1 << 25, bytes.len() as u64 - 7] {
        folder.write("model.safetensors", [&length.to_le_bytes()[..], &bytes[8..]].concat());
        folder.refused(&["model.safetensors", "header claims", &length.to_string()]);
    }
}

#[test]
fn header_that_is_not_json() {
    let folder = Folder::of("t5");
    let mut bytes = folder.bytes("model.safetensors");
    bytes[8] = b'[';
    folder.write("model.safetensors", bytes);
    folder.refused(&["model.safetensors", "header is damaged"]);
}

#[test]
fn offsets_that_overlap() {
    let folder = Folder::of("t5");
    folder.change_header(|header| {
        let other = header["encoder.block.0.layer.0.SelfAttention.q.weight"]["data_offsets"].clone();
        header[MATRIX]["data_offsets"] = other;
    });
    folder.refused(&["model.safetensors", "header is damaged", "offset"]);
}

#[test]
fn offsets_beyond_all_numbers() {
    for offsets in [json!([0, u64::MAX]), json!([u64::MAX, u64::MAX]), json!([64, 0]), json!([0, 1u64 << 62])] {
        let folder = Folder::of("t5");
        folder.change_header(|header| *header = json!({ WORDS: { "dtype": "F32", "shape": [64, 16], "data_offsets": offsets } }));
        folder.refused(&["model.safetensors", "header is damaged"]);
    }
}

#[test]
fn shape_beyond_all_numbers() {
    let folder = Folder::of("t5");
    folder.change_header(|header| header[WORDS]["shape"] = json!([1u64 << 40, 1u64 << 40]));
    folder.refused(&["model.safetensors", "header is damaged"]);
}

#[test]
fn weights_that_are_a_folder() {
    let folder = Folder::of("t5");
    folder.remove("model.safetensors");
    std::fs::create_dir(folder.path("model.safetensors")).expect("a folder");
    folder.refused(&["model.safetensors", "not a file"]);
}

#[test]
fn no_weights() {
    let folder = Folder::of("t5");
    folder.remove("model.safetensors");
    folder.refused(&["holds no weights", "model.safetensors", "pytorch_model.bin"]);
}

const INDEX: &str = "model.safetensors.index.json";

#[test]
fn index_that_leaves_its_folder() {
    for name in ["../x", "/etc/passwd", "..", ".", "", "a/b.safetensors"] {
        let folder = Folder::of("bart-sharded");
        folder.set(INDEX, &json!({ "weight_map": { "model.shared.weight": name } }));
        folder.refused(&[INDEX, "weight_map", "model.shared.weight", "in the same folder"]);
    }
}

#[test]
fn index_of_no_files() {
    for map in [json!(null), json!("all"), json!({ "model.shared.weight": 3 })] {
        let folder = Folder::of("bart-sharded");
        folder.set(INDEX, &json!({ "weight_map": map }));
        folder.refused(&[INDEX, "weight_map"]);
    }
}

#[test]
fn shard_that_is_not_there() {
    let folder = Folder::of("bart-sharded");
    folder.remove("model-00002-of-00003.safetensors");
    folder.refused(&["model-00002-of-00003.safetensors"]);
}

#[test]
fn tensor_in_two_shards() {
    let folder = Folder::of("bart-sharded");
    folder.write("model-00002-of-00003.safetensors", folder.bytes("model-00001-of-00003.safetensors"));
    folder.refused(&["model-00002-of-00003.safetensors", "another shard"]);
}

#[test]
fn pickle_of_rubbish() {
    let folder = Folder::of("marian-bin");
    let whole = folder.bytes("pytorch_model.bin");
    for bytes in [b"not weights at all".to_vec(), Vec::new(), whole[..whole.len() / 2].to_vec(), b"PK\x03\x04".repeat(64)] {
        folder.write("pytorch_model.bin", bytes);
        folder.refused(&["pytorch_model.bin", "cannot be unpickled"]);
    }
}

#[test]
fn legacy_pickle_cut_short_or_of_another_kind() {
    let folder = Folder::of("bart-legacy");
    let whole = folder.bytes("pytorch_model.bin");
    let mut other = whole.clone();
    other[4] ^= 1;
    for (bytes, why) in [
        (&whole[..whole.len() - 1], "more than the file has: truncated?"),
        (&whole[..whole.len() / 2], "truncated?"),
        (&whole[..100], "ends within an instruction"),
        (&other[..], "magic number"),
    ] {
        folder.write("pytorch_model.bin", bytes);
        folder.refused(&["pytorch_model.bin", why]);
    }
}

#[test]
fn shards_of_pickles_that_are_not_there_or_doubled() {
    let [index, first, second] = ["pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"];
    let folder = Folder::of("marian-bin-sharded");
    folder.write(second, folder.bytes(first));
    folder.refused(&[second, "another shard"]);
    folder.remove(second);
    folder.refused(&[second]);
    folder.set(index, &json!({ "weight_map": { "model.shared.weight": "../x.bin" } }));
    folder.refused(&[index, "weight_map", "in the same folder"]);
}

/// A dictionary of a `pytorch_model.bin` that says little again and again.
mod pickled {
    use std::io::Write as _;

    pub(super) fn text(text: &str) -> Vec<u8> {
        [b"X".as_slice(), &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
    }

    /// What is made, and kept under a number.
    pub(super) fn kept(made: &[u8], number: u8) -> Vec<u8> {
        [made, b"q", &[number]].concat()
    }

    /// A tensor of single precision in the storage `0`, of a shape and with the strides of another.
    pub(super) fn tensor(shape: &[u8], strides: &[u8]) -> Vec<u8> {
        let storage = [b"(".as_slice(), &text("storage"), b"ctorch\nFloatStorage\n", &text("0"), &text("cpu"), b"K\x01NtQ"].concat();
        [b"ctorch._utils\n_rebuild_tensor_v2\n(".as_slice(), &storage, b"K\x00", shape, strides, b"\x89tR"].concat()
    }

    /// A dictionary of these entries, after something that is made and not put into it.
    pub(super) fn dictionary(before: &[u8], entries: &[u8]) -> Vec<u8> {
        [b"\x80\x02".as_slice(), before, b"}(", entries, b"u."].concat()
    }

    /// An archive of that dictionary and a storage of so many numbers.
    pub(super) fn archive(pickle: &[u8], n_numbers: usize) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in [("archive/data.pkl", pickle), ("archive/data/0", &vec![0; 4 * n_numbers])] {
            zip.start_file(name, stored).expect("an entry");
            zip.write_all(bytes).expect("written");
        }
        zip.finish().expect("an archive").into_inner()
    }
}

/// One shape of 20,000 sizes for every of 2,000 tensors: 60 KB that would become 640 MB.
#[test]
fn shape_of_a_pickle_that_many_tensors_share() {
    let folder = Folder::of("marian-bin");
    let ones = [b"(".as_slice(), &b"K\x01".repeat(20_000), b"t"].concat();
    let shared = pickled::kept(&pickled::tensor(&pickled::kept(&ones, 0), b"h\x00"), 1);
    let entries: Vec<u8> = (0..2_000).flat_map(|number| [pickled::text(&number.to_string()), b"h\x01".to_vec()].concat()).collect();
    folder.write("pytorch_model.bin", pickled::archive(&pickled::dictionary(&shared, &entries), 1));
    folder.refused(&["pytorch_model.bin", "tensor `0`", "20000 dimensions", "at most 8"]);
}

/// One name of 128 KB for every of 2,000 entries: copies of it would take 256 MB.
#[test]
fn name_of_a_pickle_that_many_tensors_share() {
    let folder = Folder::of("marian-bin");
    let tensor = pickled::kept(&pickled::tensor(b"K\x01\x85", b"K\x01\x85"), 1);
    let before = [pickled::kept(&pickled::text(&"n".repeat(1 << 17)), 0), tensor].concat();
    folder.write("pytorch_model.bin", pickled::archive(&pickled::dictionary(&before, &b"h\x00h\x01".repeat(2_000)), 1));
    folder.refused(&["pytorch_model.bin", "a name of 131072 bytes", "at most 1024"]);
}

/// The same entry forty thousand times is one tensor; more tensors than the file has numbers for are refused, though each lies within it.
#[test]
fn numbers_of_a_pickle_that_many_tensors_share() {
    let folder = Folder::of("marian-bin");
    let tensor = pickled::kept(&pickled::tensor(b"(M\x00\x40t", b"K\x01\x85"), 1);
    let named = pickled::kept(&pickled::text("n"), 0);
    let again = pickled::dictionary(&[&named[..], &tensor].concat(), &b"h\x00h\x01".repeat(40_000));
    folder.write("pytorch_model.bin", pickled::archive(&again, 1 << 14));
    folder.refused(&["has no tensor"]);
    let entries: Vec<u8> = (0..20).flat_map(|number| [pickled::text(&number.to_string()), b"h\x01".to_vec()].concat()).collect();
    folder.write("pytorch_model.bin", pickled::archive(&pickled::dictionary(&tensor, &entries), 1 << 14));
    folder.refused(&["pytorch_model.bin", "its tensors have 1310720 bytes together", "8 times"]);
}

/// Every part of the file is hit in turn. Where only numbers change, the model opens.
#[test]
fn pickle_with_one_bit_changed_never_panics() {
    let whole = Folder::of("marian-bin").bytes("pytorch_model.bin");
    let pickled = whole.windows(8).position(|window| window == b"data.pkl").expect("an archive");
    one_bit_changed("marian-bin", pickled);
    one_bit_changed("bart-legacy", 0);
}

fn one_bit_changed(case: &str, pickled: usize) {
    let folder = Folder::of(case);
    let whole = folder.bytes("pytorch_model.bin");
    let mut n_refused = 0;
    for place in (pickled..pickled + 6000).step_by(23).chain((0..whole.len()).step_by(997)) {
        let mut bytes = whole.clone();
        bytes[place] ^= [1, 0x80][place % 2];
        folder.write("pytorch_model.bin", bytes);
        let (opened, largest) = largest_of(|| Model::open(folder.0.path()));
        assert!(largest < SMALL, "byte {place} asks for {largest} bytes");
        if let Err(error) = opened {
            assert!(chain(&error).contains(&*folder.0.path().to_string_lossy()), "byte {place}: {error}");
            n_refused += 1;
        }
    }
    assert!(n_refused > 50, "{n_refused} were refused");
}

/// 1000 rows of 30,000 logits are 120 MB, which are made in two halves: what is asked for at once is one of them.
#[test]
fn logits_of_a_long_target_are_never_there_as_a_whole() {
    const MANY_WORDS: usize = 30_000;
    const STEPS: Token = 1000;
    let folder = Folder::of("t5");
    folder.change(|tensors| {
        let words = tensors.get_mut(WORDS).expect("a table of words");
        let row = words.data.len() / words.shape[0];
        words.data.resize(row * MANY_WORDS, 0);
        words.shape[0] = MANY_WORDS;
    });
    folder.set("config.json", &json!({ "vocab_size": MANY_WORDS }));
    let model = Arc::new(Model::open(folder.0.path()).expect("a model of many words"));
    let subject = Subject::new(model.clone(), TokenNames::default(), Wanted::cross(), 1).expect("a subject");
    let pair = Pair::new(vec![5], (0..STEPS).map(|step| 3 + step * step % 61).collect());
    let (answers, largest) = largest_of(|| subject.run(std::slice::from_ref(&pair), Fed::Target, &Untouched).expect("answers"));
    let whole = pair.target.len() * MANY_WORDS * size_of::<f32>();
    assert!(largest <= subject.logit_bytes(pair.target.len()) && 2 * largest >= whole, "{largest} bytes at once, {whole} for all rows");

    let fed: Vec<Token> = std::iter::once(model.generation().start).chain(pair.target.iter().copied()).take(pair.target.len()).collect();
    let logits = model.logits_of(&pair, &fed).expect("logits");
    let highest = |row: &[f32]| (0..row.len()).fold(0, |best, word| if row[word] > row[best] { word } else { best }) as Token;
    assert!(logits.chunks(MANY_WORDS).map(highest).eq(answers[0].predicted.iter().copied()), "the rows are in their order");
    assert!(answers[0].loss.is_finite());
}

/// Eight million words of half precision are 256 MB, a hole in the file that takes no room on the disk: opening and asking the model holds
/// none of them but those that are asked for.
#[test]
fn a_table_of_words_stays_in_its_file() {
    const MANY_WORDS: usize = 1 << 23;
    let folder = Folder::of("t5");
    let width = std::cell::Cell::new(0);
    folder.change(|tensors| width.set(take(tensors, WORDS).shape[1]));
    let mut n_bytes = 0;
    folder.change_header(|header| {
        let ends = header.as_object().expect("tensors").values().filter_map(|tensor| tensor["data_offsets"][1].as_u64());
        let end = ends.max().expect("tensors");
        n_bytes = (2 * MANY_WORDS * width.get()) as u64;
        header[WORDS] = json!({ "dtype": "F16", "shape": [MANY_WORDS, width.get()], "data_offsets": [end, end + n_bytes] });
    });
    let file = std::fs::OpenOptions::new().write(true).open(folder.path("model.safetensors")).expect("the file");
    file.set_len(file.metadata().expect("a size").len() + n_bytes).expect("a hole");
    folder.set("config.json", &json!({ "vocab_size": MANY_WORDS }));

    let pair = Pair::new(vec![MANY_WORDS as Token - 1, 5], vec![7, MANY_WORDS as Token - 2]);
    let ((recorded, largest), most) = most_held(|| {
        largest_of(|| {
            let model = Arc::new(Model::open(folder.0.path()).expect("a model of many words"));
            // Attention alone: what a model answers is read out with the whole table.
            let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
            let subject = Subject::new(model, TokenNames::default(), wanted, 1).expect("a subject");
            subject.record(std::slice::from_ref(&pair), Fed::Target).expect("attention")
        })
    });
    assert_eq!(recorded.len(), 1);
    assert!(largest < SMALL && most < FEW, "{largest} bytes at once, {most} altogether, of {n_bytes}");
}

#[test]
fn configuration_that_is_not_json() {
    let folder = Folder::of("t5");
    for text in ["{\"d_model\": 16", "", "d_model: 16", "{\"a\": NaN}"] {
        folder.write("config.json", text);
        folder.refused(&["config.json", "not JSON"]);
    }
    folder.write("config.json", [0xff, 0xfe, b'{']);
    folder.refused(&["config.json", "not JSON"]);
    folder.write("config.json", "[".repeat(100_000));
    folder.refused(&["config.json", "not JSON"]);
}

#[test]
fn configuration_that_is_no_object() {
    let folder = Folder::of("t5");
    for text in ["[16]", "16", "null", "\"t5\""] {
        folder.write("config.json", text);
        folder.refused(&["config.json", "not a JSON object"]);
    }
}

#[test]
fn configuration_without_end() {
    let folder = Folder::of("t5");
    let file = std::fs::File::create(folder.path("config.json")).expect("a file");
    file.set_len(1 << 40).expect("a hole");
    let (result, largest) = largest_of(|| Model::open(folder.0.path()));
    let error = chain(&result.map(drop).expect_err("refused"));
    assert!(error.contains("config.json") && error.contains("longer than"), "{error}");
    assert!(largest <= 32 << 20, "{largest} bytes at once");
}

#[test]
fn no_configuration() {
    let folder = Folder::of("t5");
    folder.remove("config.json");
    folder.refused(&["no config.json"]);
}

#[test]
fn sizes_that_are_none() {
    for size in [json!(0), json!(-16), json!(16.5), json!("16"), json!([16]), json!(true), json!(1u64 << 60), json!(1e60)] {
        refused_config("t5", &json!({ "d_model": size }), &["`d_model`", &size.to_string()]);
        refused_config("bart", &json!({ "d_model": size }), &["`d_model`", &size.to_string()]);
    }
    for field in ["d_kv", "num_heads", "d_ff", "num_layers", "num_decoder_layers", "vocab_size", "relative_attention_num_buckets"] {
        refused_config("t5", &json!({ field: 0 }), &[&format!("`{field}`")]);
    }
    for field in ["encoder_layers", "decoder_ffn_dim", "encoder_attention_heads", "max_position_embeddings", "vocab_size"] {
        refused_config("bart", &json!({ field: 0 }), &[&format!("`{field}`")]);
    }
}

/// Sizes within reason that the file does not keep: nothing is asked for before the tensors are seen.
#[test]
fn sizes_larger_than_the_file() {
    let large = 1 << 24;
    for (case, field) in [
        ("t5", "d_model"),
        ("t5", "d_kv"),
        ("t5", "num_heads"),
        ("t5", "d_ff"),
        ("t5", "num_layers"),
        ("t5", "num_decoder_layers"),
        ("t5", "vocab_size"),
        ("t5", "relative_attention_max_distance"),
        ("bart", "encoder_layers"),
        ("bart", "decoder_layers"),
        ("bart", "encoder_ffn_dim"),
        ("bart", "max_position_embeddings"),
        ("marian", "encoder_layers"),
        ("marian", "max_position_embeddings"),
    ] {
        let folder = Folder::of(case);
        folder.set("config.json", &json!({ field: large }));
        folder.refused(&[]);
    }
}

/// A width that the table of words has and nothing else, times positions that are computed: 32 MB of them for 4 KB more in the file.
#[test]
fn computed_positions_of_a_width_that_one_tensor_claims() {
    const WIDTH: usize = 1 << 10;
    let fields = json!({ "d_model": WIDTH, "max_position_embeddings": 1 << 13, "vocab_size": 1 });
    let words = |tensors: &mut BTreeMap<String, Tensor>, name: &str| drop(tensors.insert(name.into(), Tensor::zeros(&[1, WIDTH])));
    for case in ["marian", "m2m_100"] {
        let folder = Folder::of(case);
        folder.set("config.json", &fields);
        folder.change(|tensors| words(tensors, "model.shared.weight"));
        folder.refused(&["self_attn.q_proj.weight", "[1024, 1024]"]);
    }
    let folder = Folder::of("vision/vit-trocr");
    folder.set_in("decoder", &fields);
    folder.set_in("decoder", &json!({ "use_learned_position_embeddings": false }));
    folder.change(|tensors| words(tensors, "decoder.model.decoder.embed_tokens.weight"));
    folder.refused(&["self_attn.q_proj.weight", "[1024, 1024]"]);
}

/// Each head keeps a bias for every distance, up to a largest one that only the configuration knows: 268 MB for each side of a T5 whose
/// tensors have 4096 heads, of one number each, and 34 MB where only one tensor says that there are 512.
#[test]
fn biases_of_distances_times_heads() {
    let bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    for (n_heads, is_whole, words) in [(1 << 12, true, "`relative_attention_max_distance`"), (1 << 9, false, "SelfAttention.q.weight")] {
        let folder = Folder::of("t5");
        folder.set("config.json", &json!({ "num_heads": n_heads, "d_kv": 1, "relative_attention_max_distance": 1 << 13 }));
        folder.change(|tensors| {
            tensors.insert(bias.into(), Tensor::zeros(&[8, n_heads]));
            if is_whole {
                for (part, shape) in [("q", [n_heads, 16]), ("k", [n_heads, 16]), ("v", [n_heads, 16]), ("o", [16, n_heads])] {
                    tensors.insert(format!("encoder.block.0.layer.0.SelfAttention.{part}.weight"), Tensor::zeros(&shape));
                }
            }
        });
        folder.refused(&[words]);
    }
}

/// Of umT5 each layer has its own.
#[test]
fn biases_of_distances_times_layers() {
    let fields = json!({ "relative_attention_max_distance": 1 << 14, "num_layers": 1 << 10 });
    refused_config("umt5", &fields, &["`relative_attention_max_distance`", "1026 layers"]);
}

/// BEiT may have no table of positions, so that nothing but the configuration says how many patches a picture has.
#[test]
fn patches_without_end() {
    let folder = Folder::of("vision/beit-trocr");
    let fields = json!({ "image_size": 1 << 20, "use_absolute_position_embeddings": false, "use_relative_position_bias": false });
    folder.set_in("encoder", &fields);
    folder.refused(&["config.json", "`image_size`", "patches; at most"]);
}

/// Positions that are computed rather than read.
#[test]
fn positions_without_end() {
    for model in ["marian", "m2m_100"] {
        refused_config(model, &json!({ "max_position_embeddings": 1 << 20 }), &["`max_position_embeddings`", "at most"]);
    }
    refused_config("t5", &json!({ "relative_attention_max_distance": 1 << 20 }), &["`relative_attention_max_distance`", "at most"]);
}

#[test]
fn norm_of_a_negative_number() {
    refused_config("t5", &json!({ "layer_norm_epsilon": -1 }), &["`layer_norm_epsilon`", "-1"]);
}

#[test]
fn heads_that_do_not_divide_the_model() {
    refused_config("bart", &json!({ "encoder_attention_heads": 5 }), &["`encoder_attention_heads`", "does not divide d_model"]);
    refused_config("bart", &json!({ "decoder_attention_heads": 7 }), &["`decoder_attention_heads`", "does not divide d_model"]);
}

#[test]
fn norms_elsewhere() {
    refused_config("bart", &json!({ "normalize_before": true }), &["`normalize_before`", "is true"]);
    refused_config("pegasus", &json!({ "normalize_before": false }), &["`normalize_before`", "is false"]);
    refused_config("marian", &json!({ "add_final_layer_norm": true }), &["`add_final_layer_norm`", "is true"]);
}

#[test]
fn unknown_activation() {
    refused_config("t5", &json!({ "feed_forward_proj": "gated-snake" }), &["`feed_forward_proj`", "gated-snake", "relu"]);
    refused_config("bart", &json!({ "activation_function": "snake" }), &["`activation_function`", "snake", "relu"]);
}

#[test]
fn unknown_model_type() {
    refused_config(
        "t5",
        &json!({ "model_type": "bert" }),
        &["`model_type`", "bert", "t5, mt5, umt5, bart, marian, mbart, pegasus, m2m_100"],
    );
    refused_config("t5", &json!({ "model_type": null }), &["`model_type`", "missing"]);
    refused_config("t5", &json!({ "model_type": 5 }), &["`model_type`"]);
}

#[test]
fn model_without_an_encoder() {
    for found in ["gpt2", "llama"] {
        refused_config("t5", &json!({ "model_type": found }), &[found, "decoder only"]);
    }
    refused_config("t5", &json!({ "model_type": "new", "architectures": ["NewForCausalLM"] }), &["new", "decoder only"]);
}

#[test]
fn tokens_beyond_the_vocabulary() {
    for field in ["decoder_start_token_id", "eos_token_id", "pad_token_id", "forced_bos_token_id", "suppress_tokens"] {
        refused_config("t5", &json!({ field: 64 }), &[&format!("`{field}`"), "64"]);
    }
    refused_config("t5", &json!({ "decoder_start_token_id": -1 }), &["`decoder_start_token_id`", "-1"]);
    refused_config("t5", &json!({ "decoder_start_token_id": null, "pad_token_id": null }), &["`decoder_start_token_id`", "missing"]);
    refused_config("t5", &json!({ "bad_words_ids": [[3], [4, 99]] }), &["`bad_words_ids`", "99"]);
}

#[test]
fn generation_without_measure() {
    for (field, value) in [
        ("num_beams", json!(1_000_000_000)),
        ("num_beams", json!(2000)),
        ("num_beams", json!("four")),
        ("max_length", json!(1_000_000)),
        ("max_new_tokens", json!(1u64 << 60)),
        ("no_repeat_ngram_size", json!(-1)),
        ("length_penalty", json!("long")),
        ("early_stopping", json!("soon")),
        ("decoder_start_token_id", json!(64)),
    ] {
        let folder = Folder::of("t5");
        folder.set("generation_config.json", &json!({ field: value }));
        folder.refused(&["generation_config.json", &format!("`{field}`")]);
    }
    let folder = Folder::of("t5");
    folder.write("generation_config.json", "{");
    folder.refused(&["generation_config.json", "not JSON"]);
}

/// Rules that leave no token are obeyed as far as they can be.
#[test]
fn rules_that_allow_nothing_do_not_panic() {
    let all: Vec<u32> = (0..64).collect();
    for n_beams in [1, 4, 1024] {
        let folder = Folder::of("t5");
        folder.set("generation_config.json", &json!({ "suppress_tokens": all, "num_beams": n_beams, "max_length": 4 }));
        let model = Model::open(folder.0.path()).expect("a model");
        let written = model.write(&[5, 6, 1], &Decoding::of(&model)).expect("a source that can be read");
        assert!(written.iter().all(|text| text.tokens.len() <= 3), "{written:?}");
    }
}

#[track_caller]
fn refused_source(case: &str, source: &[u32], words: &[&str]) {
    let folder = Folder::of(case);
    let model = Model::open(folder.0.path()).expect("a model");
    let refused = [
        model.write(source, &Decoding::of(&model)).map(drop),
        model.check_source(source),
        model.logits_of(source, &[model.generation().start]).map(drop),
        model.write_all(&[(&[3, 4]).into(), source.into()], &Decoding::greedy(&model), 2).map(drop),
    ];
    for result in refused {
        let error = result.expect_err("refused").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} are not in: {error}");
    }
}

#[test]
fn source_that_is_empty() {
    refused_source("t5", &[], &["the source is empty"]);
    refused_source("bart", &[], &["the source is empty"]);
}

#[test]
fn source_with_a_token_beyond_the_vocabulary() {
    refused_source("t5", &[3, 64], &["token 64 of the source", "64"]);
    refused_source("bart", &[3, u32::MAX], &["of the source", "4294967295"]);
}

#[test]
fn source_longer_than_the_positions() {
    refused_source("bart", &[5; 41], &["the source has 41 tokens", "40"]);
    refused_source("marian", &[5; 41], &["the source has 41 tokens", "40"]);
    // No table bounds these; their attention would take the square.
    refused_source("t5", &[5; 8193], &["the source has 8193 tokens", "8192"]);
}

/// Read by several threads at once, each gets what one alone gets.
#[test]
fn one_model_is_read_by_many() {
    let folder = Folder::of("t5");
    let model = Arc::new(Model::open(folder.0.path()).expect("a model"));
    let described = || {
        let wanted = Wanted { kinds: SiteKind::ALL.to_vec(), states: true, answers: true };
        let subject = Subject::new(model.clone(), TokenNames::default(), wanted, 1).expect("a subject");
        format!("{:?}", subject.description())
    };
    let alone = described();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..20).all(|_| described() == alone))).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
    });
}

/// Sums of one are not taken for those of the other.
#[test]
fn models_that_differ_in_their_last_number_have_other_names() {
    let folder = Folder::of("t5");
    let hash = || {
        let model = Arc::new(Model::open(folder.0.path()).expect("a model"));
        let wanted = Wanted { kinds: vec![SiteKind::Cross], states: true, answers: false };
        Subject::new(model, TokenNames::default(), wanted, 1).expect("a subject").description().model_hash.clone()
    };
    let before = hash();
    folder.change(|tensors| *tensors.get_mut(WORDS).expect("words").data.first_chunk_mut::<4>().expect("a number") = 0.5f32.to_le_bytes());
    let first = hash();
    folder.change(|tensors| *tensors.get_mut(WORDS).expect("words").data.last_chunk_mut::<4>().expect("a number") = 0.5f32.to_le_bytes());
    let last = hash();
    assert!(before != first && first != last && before != last, "{before} {first} {last}");
}

#[test]
fn prefix_that_cannot_be_fed() {
    let folder = Folder::of("bart");
    let model = Model::open(folder.0.path()).expect("a model");
    let write = |prefix: Vec<u32>| model.write(&[5, 6], &Decoding { prefix, ..Decoding::of(&model) });
    for (prefix, words) in [(vec![9999], "token 9999 of the target"), (vec![5; 40], "the target has 41 tokens")] {
        let error = write(prefix).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
    // The last position may be read: one token follows it.
    assert_eq!(write(vec![5; 39]).expect("a text")[0].tokens.len(), 40);
}

/// Telling models apart reads every number, so it is done once for each model: a number changed under an open model is not seen.
#[test]
fn weights_are_hashed_once() {
    let folder = Folder::of("t5");
    let hash_of = |model: &Arc<Model>| {
        let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
        let subject = Subject::new(model.clone(), TokenNames::default(), wanted, 1).expect("a subject");
        subject.description().model_hash.clone()
    };
    let model = Arc::new(Model::open(folder.0.path()).expect("a model"));
    let hash = hash_of(&model);
    let mut bytes = folder.bytes("model.safetensors");
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&0.5f32.to_le_bytes());
    let mut file = std::fs::OpenOptions::new().write(true).open(folder.path("model.safetensors")).expect("the same file");
    std::io::Write::write_all(&mut file, &bytes).expect("written in its place");
    assert_eq!(hash_of(&model), hash);
    assert_ne!(hash_of(&Arc::new(Model::open(folder.0.path()).expect("another model"))), hash);
}

/// Features of Cargo's bring devices; who asks for one that is not there is told which.
#[test]
fn a_device_that_was_not_built() {
    let folder = Folder::of("t5");
    let absent = [
        (DeviceKind::Candle, "candle", cfg!(feature = "candle")),
        (DeviceKind::Cuda(1), "cuda", cfg!(feature = "cuda")),
        (DeviceKind::Metal(0), "metal", cfg!(feature = "metal")),
    ];
    for (device, feature, _) in absent.into_iter().filter(|(_, _, is_built)| !is_built) {
        let error = Model::open_on(folder.0.path(), &device.into()).expect_err("a device that is not there");
        let expected = format!(
            "this build has no device `{device}`: build with `--features {feature}` to have it, or leave it out to compute on the CPU"
        );
        assert_eq!(error.to_string(), expected);
    }
    Model::open_on(folder.0.path(), &DeviceKind::Cpu.into()).expect("the CPU is always there");
}
