//! Every way a foreign file or its mapping can be bad: refused with the file and the tensor, never a panic, never memory for what is not
//! there.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crosslens_nets::imported::{Imported, Mapping, SHIPPED};
use rand::RngExt;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::common::generator;
use super::imported::{golden_file, mapping};

/// A safetensors file in memory, to be changed.
struct File {
    tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
    metadata: HashMap<String, String>,
}

impl File {
    fn tiny() -> Self {
        let bytes = std::fs::read(golden_file("tiny.safetensors")).expect("the tiny model");
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let tensors = tensors.tensors().into_iter().map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec())));
        Self { tensors: tensors.collect(), metadata: header.metadata().clone().expect("metadata") }
    }

    fn tensor(&mut self, name: &str) -> &mut (Dtype, Vec<usize>, Vec<u8>) {
        self.tensors.get_mut(name).expect("a tensor of that name")
    }

    fn write(&self, path: &Path) {
        let views = self.tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name, TensorView::new(*dtype, shape.clone(), bytes).expect("as many bytes as the shape says"))
        });
        let bytes = safetensors::serialize(views, Some(self.metadata.clone())).expect("a file");
        std::fs::write(path, bytes).expect("written");
    }

    fn import(&self, mapping: &Mapping) -> Result<Imported, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("w.safetensors");
        self.write(&path);
        Imported::read(&path, mapping).map_err(|error| with_causes(&error).replace(&path.display().to_string(), "FILE"))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", with_causes(cause))).unwrap_or_default();
    format!("{error}{cause}")
}

/// What is said of the tiny model after a change.
fn refusal(change: impl FnOnce(&mut File)) -> String {
    let mut file = File::tiny();
    change(&mut file);
    file.import(&mapping(2)).expect_err("it is broken")
}

/// What is said of the tiny model under a changed mapping.
fn refusal_by(change: impl FnOnce(String) -> String) -> String {
    let text = change(SHIPPED[0].text.replace("heads = 4", "heads = 2"));
    let mapping = Mapping::parse(Path::new("import.toml"), &text).expect("a mapping");
    File::tiny().import(&mapping).expect_err("it does not fit")
}

#[test]
fn the_file_itself_is_good() {
    assert!(File::tiny().import(&mapping(2)).is_ok());
}

#[test]
fn a_missing_tensor() {
    let message = refusal(|file| drop(file.tensors.remove("fc.bias")));
    assert_eq!(message, "`FILE` has no tensor `fc.bias`, of which the mapping makes `readout_bias`");
}

#[test]
fn an_extra_tensor_unless_it_is_ignored() {
    let add = |file: &mut File| drop(file.tensors.insert("fc2.weight".into(), (Dtype::F32, vec![1], vec![0; 4])));
    assert_eq!(refusal(add), "`FILE` has a tensor `fc2.weight`, which the mapping neither uses nor ignores");
    let mut file = File::tiny();
    add(&mut file);
    assert!(file.import(&Mapping { ignored: vec!["fc2.weight".into()], ..mapping(2) }).is_ok());
}

#[test]
fn a_misshapen_tensor() {
    let message = refusal(|file| file.tensor("fc.weight").1.reverse());
    assert_eq!(message, "`FILE`: `fc.weight` gives `readout` the shape [9, 15], [15, 9] was expected");
    let message = refusal(|file| file.tensor("fc.weight").1 = vec![3, 5, 9]);
    assert_eq!(message, "`FILE`: `fc.weight` has the shape [3, 5, 9], of which `readout` cannot be made: it needs 2 axes");
    let message = refusal(|file| *file.tensor("fc.bias") = (Dtype::F16, vec![], vec![0; 2]));
    assert_eq!(message, "`FILE`: `fc.bias` has the shape [], of which `readout_bias` cannot be made: it needs 1 axis");
    let message = refusal(|file| *file.tensor("e_emb.weight") = (Dtype::F16, vec![0, 5], vec![]));
    assert_eq!(message, "`FILE`: `e_emb.weight` has the shape [0, 5], of which `source.embedding` cannot be made: it is empty");
    let message = refusal(|file| file.tensor("pre_decoder.weight_hh_l0").1 = vec![8, 24]);
    assert!(message.contains("`pre_decoder.weight_ih_l0` gives `decoder.first.gates_from_input`"), "{message}");
}

#[test]
fn rows_that_are_not_there() {
    let message = refusal_by(|text| text.replace("\"1/3\"", "\"1/5\""));
    assert!(message.contains("`attn.in_proj_weight`") && message.contains("24 rows have no 5 equal parts"), "{message}");
    let message = refusal_by(|text| text.replace("\"1/3\"", "\"20..28\""));
    assert!(message.contains("`attn.in_proj_weight`") && message.contains("rows 20..28 are not all there"), "{message}");
    let message = refusal_by(|text| text.replace("\"1/3\"", "\"0..18446744073709551615\""));
    assert!(message.contains("are not all there"), "{message}");
    let text = SHIPPED[0].text.replace("heads = 4", "heads = 2").replace("\"1/3\"", "\"0..8\"");
    let by_range = Mapping::parse(Path::new("import.toml"), &text).expect("a mapping");
    let [part, range] = [mapping(2), by_range].map(|mapping| File::tiny().import(&mapping).expect("the tiny model"));
    assert_eq!(part.description(), range.description());
}

#[test]
fn weights_that_are_no_numbers() {
    for (bits, name) in [(0x7e00u16, "attn.in_proj_weight"), (0x7c00, "encoder.bias_hh_l0_reverse"), (0xfc00, "k_emb.weight")] {
        let message = refusal(|file| {
            let bytes = &mut file.tensor(name).2;
            let last = bytes.len() - 2;
            bytes[last..].copy_from_slice(&bits.to_le_bytes());
        });
        assert_eq!(message, format!("`FILE`: `{name}` holds a number that is not finite"));
    }
}

#[test]
fn numbers_of_another_type() {
    let message = refusal(|file| *file.tensor("fc.bias") = (Dtype::F64, vec![15], vec![0; 120]));
    assert_eq!(message, "`FILE`: `fc.bias` is of type F64, F16 or F32 was expected");
}

/// 1.5 in half precision is 1.5 in single precision too.
#[test]
fn single_precision_is_read_as_half_precision_is() {
    let ones = |dtype, bytes: &[u8]| {
        let mut file = File::tiny();
        *file.tensor("fc.bias") = (dtype, vec![15], bytes.repeat(15));
        file.import(&mapping(2)).expect("both are read").description().model_hash.clone()
    };
    assert_eq!(ones(Dtype::F16, &0x3e00u16.to_le_bytes()), ones(Dtype::F32, &1.5f32.to_le_bytes()));
}

#[test]
fn heads_that_contradict_the_tensors() {
    let says = |heads: usize| File::tiny().import(&mapping(heads)).expect_err("heads that do not fit");
    assert_eq!(says(3), "`FILE`: `attn.in_proj_weight` gives `attention.query` 8 rows, which 3 heads cannot share");
    assert_eq!(says(0), "`FILE`: `attn.in_proj_weight` gives `attention.query` 8 rows, which 0 heads cannot share");
    assert_eq!(says(16), "`FILE`: `attn.in_proj_weight` gives `attention.query` 8 rows, which 16 heads cannot share");
    let by_metadata = |text: String| text.replace("heads = 2", "heads = { metadata = \"n_heads\" }");
    assert_eq!(refusal_by(by_metadata), "`FILE`: its metadata `n_heads` is not there");
}

#[test]
fn metadata_that_are_not_there_or_make_no_sense() {
    let without = |key: &str| refusal(|file| drop(file.metadata.remove(key)));
    for key in ["in_table", "out_table", "sos_idx", "eos_idx"] {
        assert_eq!(without(key), format!("`FILE`: its metadata `{key}` is not there"));
    }
    let with = |key: &str, value: &str| refusal(|file| drop(file.metadata.insert(key.into(), value.into())));
    assert_eq!(with("sos_idx", "one"), "`FILE`: its metadata `sos_idx` is `one`, not a number that fits");
    assert_eq!(with("sos_idx", "-1"), "`FILE`: its metadata `sos_idx` is `-1`, not a number that fits");
    assert_eq!(with("sos_idx", "31"), "`FILE`: the words of the source are 31, and the start token 31 is not among them");
    assert_eq!(with("eos_idx", "20"), "`FILE`: the words of the target are 15, and the end token 20 is not among them");
    assert_eq!(with("eos_idx", "1"), "`FILE`: the words of the source begin and end with the same token, 1");
    assert_eq!(with("in_table", "a\0b"), "`FILE`: the words of the source are 2, but `source.embedding` has 31 rows");
    assert_eq!(with("out_table", "a\0a"), "`FILE`: the words of the target are no table: the word `a` stands twice in the vocabulary");
    assert!(with("in_table", "").contains("are 1, but"), "an empty text is one empty word");
    assert!(refusal_by(|text| text.replace("separator = \"\\u0000\"", "separator = \"\"")).contains("gives it no separator"));
}

#[test]
fn steps_that_make_no_sense() {
    for steps in ["0", "1000000000000"] {
        let message = refusal_by(|text| text.replace("most_steps = 16", &format!("most_steps = {steps}")));
        assert!(message.contains(&format!("`most_steps` of its mapping is {steps}")), "{message}");
    }
}

#[test]
fn a_damaged_file() {
    let good = std::fs::read(golden_file("tiny.safetensors")).expect("the tiny model");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.safetensors");
    let says = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        let message = with_causes(&Imported::read(&path, &mapping(2)).expect_err("it is damaged"));
        assert!(message.contains("w.safetensors"), "{message}");
        message
    };
    assert!(says(&good[..good.len() / 2]).contains("cut short"));
    assert!(says(b"").contains("cut short"));
    let mut lying = good.clone();
    lying[..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(says(&lying).contains("at most"));
    let missing = Imported::read(&folder.path().join("none.safetensors"), &mapping(2)).expect_err("nothing is there");
    assert!(with_causes(&missing).contains("cannot read"), "{missing}");
}

/// Whatever byte is wrong, the file is read or refused.
#[test]
fn no_byte_can_make_it_panic() {
    let good = std::fs::read(golden_file("tiny.safetensors")).expect("the tiny model");
    let n_header = u64::from_le_bytes(good[..8].try_into().expect("8 bytes")) as usize;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.safetensors");
    let mut rng = generator(3);
    let mut n_refused = 0;
    for round in 0..400 {
        let mut bytes = good.clone();
        let end = if round % 4 == 0 { bytes.len() } else { 8 + n_header };
        bytes[rng.random_range(0..end)] = rng.random_range(0..=255);
        std::fs::write(&path, &bytes).expect("written");
        n_refused += usize::from(Imported::read(&path, &mapping(2)).is_err());
    }
    assert!(n_refused > 100, "only {n_refused} refused");
}

/// A file that takes no room on disk but says it holds a network whose tables of words would take gigabytes.
#[test]
fn a_network_beyond_memory_is_refused_before_it_is_read() {
    let (words, wide) = (100_000, 4096);
    let mut file = File::tiny();
    let table = (0..words).map(|word| word.to_string()).collect::<Vec<_>>().join("\0");
    file.metadata.insert("in_table".into(), table);
    file.tensor("e_emb.weight").1 = vec![words, 5];
    for suffix in ["", "_reverse"] {
        file.tensor(&format!("encoder.weight_ih_l0{suffix}")).1 = vec![3 * wide, 5];
        file.tensor(&format!("encoder.weight_hh_l0{suffix}")).1 = vec![3 * wide, wide];
        file.tensor(&format!("encoder.bias_ih_l0{suffix}")).1 = vec![3 * wide];
        file.tensor(&format!("encoder.bias_hh_l0{suffix}")).1 = vec![3 * wide];
    }
    file.tensor("encoder_fc.0.weight").1 = vec![8, 2 * wide];
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".into(), serde_json::to_value(&file.metadata).expect("text"));
    let mut offset = 0;
    for (name, (_, shape, _)) in &file.tensors {
        let end = offset + 2 * shape.iter().product::<usize>();
        header.insert(name.clone(), serde_json::json!({ "dtype": "F16", "shape": shape, "data_offsets": [offset, end] }));
        offset = end;
    }
    let header = serde_json::to_vec(&header).expect("JSON");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.safetensors");
    std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], &header].concat()).expect("written");
    let sparse = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
    sparse.set_len((8 + header.len() + offset) as u64).expect("room for nothing");
    let message = Imported::read(&path, &mapping(2)).expect_err("too large").to_string();
    assert!(message.contains("is refused: the network would hold 2559"), "{message}");
}
