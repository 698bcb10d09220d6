//! One test for each way a dump can be broken.

use serde_json::{Value, json};
use zip::CompressionMethod::{Deflated, Stored};

use crate::fixtures::{DumpFile, Dumped, about, cut, edit_header_text, f32s, f64s, i64s, npy, read, small_dump, small_self_dump, write};

const HUGE: u64 = 1 << 60;

/// The small dump with one array replaced or added, in both containers.
fn with(array: Dumped) -> [DumpFile; 2] {
    let mut arrays = small_dump();
    arrays.retain(|other| other.name != array.name);
    arrays.push(array);
    [DumpFile::npz(&arrays, Deflated), DumpFile::safetensors(&arrays)]
}

fn refused_with(array: Dumped, words: &[&str]) {
    with(array).iter().for_each(|dump| dump.refused(words));
}

/// The small dump with the header of one npy file changed.
fn with_npy_header(from: &str, to: &str) -> DumpFile {
    let mut files: Vec<_> = small_dump().iter().map(|array| (format!("{}.npy", array.name), npy(array, false))).collect();
    let bytes = &files[0].1;
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..end].to_vec()).expect("text");
    assert!(header.contains(from), "{header}");
    let header = header.replace(from, to);
    files[0].1 = [&bytes[..8], &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &bytes[end..]].concat();
    DumpFile::zip(&files, Deflated)
}

#[test]
fn truncated_npz() {
    let dump = DumpFile::npz(&small_dump(), Deflated);
    let whole = read(&dump.path());
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        write(&dump.path(), &whole[..length]);
        dump.refused(&["damaged"]);
    }
}

#[test]
fn truncated_safetensors() {
    let dump = DumpFile::safetensors(&small_dump());
    cut(&dump.path(), 1);
    dump.refused(&["cut short"]);
}

#[test]
fn npz_with_a_broken_array() {
    let dump = DumpFile::npz(&small_dump(), Stored);
    let mut bytes = read(&dump.path());
    let place = bytes.windows(6).position(|window| window == b"\x93NUMPY").expect("an npy file");
    bytes[place + 90] ^= 1;
    write(&dump.path(), &bytes);
    dump.refused(&["damaged"]);
}

#[test]
fn npz_of_other_files() {
    let dump = DumpFile::zip(&[("key_states.npy".into(), b"GIF89a".to_vec())], Stored);
    dump.refused(&["`key_states` has no npy file"]);
}

#[test]
fn npy_that_ends_in_its_header() {
    let whole = npy(&small_dump()[0], false);
    for length in [6, 8, 9, 30] {
        let dump = DumpFile::zip(&[("key_states.npy".into(), whole[..length].to_vec())], Stored);
        dump.refused(&["`key_states` has a header that is cut short"]);
    }
}

#[test]
fn npy_of_an_unknown_version() {
    let mut bytes = npy(&small_dump()[0], false);
    bytes[6] = 4;
    DumpFile::zip(&[("key_states.npy".into(), bytes)], Stored).refused(&["version 4"]);
}

#[test]
fn huge_shape_in_npy() {
    with_npy_header("(2, 2, 2, )", "(1152921504606846976, 2, 2)").refused(&["`key_states`", "not what its shape"]);
    with_npy_header("(2, 2, 2, )", "(2, 2, 1152921504606846976)").refused(&["`key_states`", "not what its shape"]);
}

#[test]
fn shape_beyond_counting_in_npy() {
    with_npy_header("(2, 2, 2, )", "(18446744073709551616,)").refused(&["`key_states`", "a size that is no number"]);
    with_npy_header("(2, 2, 2, )", "(1152921504606846976, 1152921504606846976, 0)").refused(&["not what its shape"]);
}

#[test]
fn huge_shape_without_numbers() {
    let empty = |name, shape: &[u64]| f32s(name, shape, &[]);
    refused_with(empty("key_states", &[HUGE, 2, 0]), &["`key_states`", "at least one dimension"]);
    refused_with(empty("key_states", &[HUGE, 0, 2]), &["was expected"]);
    let heads = [empty("query_weights", &[HUGE, 2, 0]), empty("key_weights", &[HUGE, 2, 0])];
    let dump = DumpFile::safetensors(&[small_dump(), heads.to_vec()].concat());
    dump.refused(&["`query_weights`", "at least one head and one dimension"]);
}

#[test]
fn huge_sizes_in_a_header() {
    let dump = DumpFile::safetensors(&small_dump());
    edit_header_text(&dump.path(), |text| text.replacen("[2,2,2]", "[1152921504606846976,2,2]", 1));
    dump.refused(&["not what its shape"]);
}

/// Changes the header of a `.safetensors` dump.
fn with_header(edit: impl FnOnce(&mut Value)) -> DumpFile {
    let dump = DumpFile::safetensors(&small_dump());
    edit_header_text(&dump.path(), |text| {
        let mut header: Value = serde_json::from_str(&text).expect("a header");
        edit(&mut header);
        header.to_string()
    });
    dump
}

#[test]
fn overlapping_offsets() {
    let dump = with_header(|header| header["query_states"]["data_offsets"] = header["key_states"]["data_offsets"].clone());
    dump.refused(&["overlaps another array"]);
}

#[test]
fn offsets_out_of_range() {
    let dump = with_header(|header| {
        let first = header["query_lengths"]["data_offsets"][0].as_u64().expect("an offset");
        header["query_lengths"]["shape"] = json!([1000]);
        header["query_lengths"]["data_offsets"] = json!([first, first + 8000]);
    });
    dump.refused(&["cut short"]);
}

/// A zip archive may name files that lead out of a folder: here they are arrays nobody knows, and nothing is unpacked.
#[test]
fn npz_with_a_name_that_leads_out_of_the_folder() {
    let dump = DumpFile::npz(&[Dumped { name: "...key_states", ..small_dump()[0].clone() }], Stored);
    let mut bytes = read(&dump.path());
    let places: Vec<usize> = (0..bytes.len() - 13).filter(|at| &bytes[*at..at + 13] == b"...key_states").collect();
    assert_eq!(places.len(), 2, "before the file and in the directory");
    places.into_iter().for_each(|at| bytes[at + 2] = b'/');
    write(&dump.path(), &bytes);
    dump.refused(&["unknown array `../key_states`"]);
}

#[test]
fn big_endian_numbers() {
    with_npy_header("<f4", ">f4").refused(&["`key_states` is of type `>f4`"]);
}

#[test]
fn strings_and_records() {
    with_npy_header("'<f4'", "'<U8'").refused(&["`key_states` is of type `<U8`"]);
    with_npy_header("'<f4'", "[('x', '<f4')]").refused(&["`key_states` is of type `record`"]);
}

/// 64 MB of zeros become 65 KB.
#[test]
fn zip_bomb() {
    let n = 16 << 20;
    let zeros = Dumped { name: "key_states", descr: "<f4", shape: vec![n, 1, 1], bytes: vec![0; 4 * n as usize] };
    let dump = DumpFile::npz(&[zeros], Deflated);
    assert!(read(&dump.path()).len() < 100 << 10);
    dump.refused(&["decoded content takes 671", "at most 16777216 are read"]);
}

/// The directory of the archive says 100 bytes where 64 MB follow: no more than 101 are decoded.
#[test]
fn zip_bomb_that_lies() {
    let n = 16 << 20;
    let zeros = Dumped { name: "key_states", descr: "<f4", shape: vec![n, 1, 1], bytes: vec![0; 4 * n as usize] };
    let announced = npy(&zeros, false).len() as u32;
    let dump = DumpFile::npz(&[zeros], Deflated);
    let mut bytes = read(&dump.path());
    let places: Vec<usize> = (0..bytes.len() - 3).filter(|at| bytes[*at..at + 4] == announced.to_le_bytes()).collect();
    assert!(!places.is_empty(), "the size is nowhere");
    places.into_iter().for_each(|at| bytes[at..at + 4].copy_from_slice(&100u32.to_le_bytes()));
    write(&dump.path(), &bytes);
    dump.refused(&["damaged"]);
}

#[test]
fn array_twice_in_npz() {
    let mut arrays = small_dump();
    arrays.push(Dumped { name: "kez_states", ..arrays[0].clone() });
    let dump = DumpFile::npz(&arrays, Stored);
    let mut bytes = read(&dump.path());
    let places: Vec<usize> = (0..bytes.len() - 10).filter(|at| &bytes[*at..at + 10] == b"kez_states").collect();
    places.into_iter().for_each(|at| bytes[at + 2] = b'y');
    write(&dump.path(), &bytes);
    dump.refused(&["two of its arrays have one name"]);
}

#[test]
fn array_with_and_without_its_suffix() {
    let bytes = npy(&small_dump()[0], false);
    DumpFile::zip(&[("key_states.npy".into(), bytes.clone()), ("key_states".into(), bytes)], Stored).refused(&["`key_states` twice"]);
}

#[test]
fn array_twice_in_safetensors() {
    let dump = DumpFile::safetensors(&small_dump());
    edit_header_text(&dump.path(), |text| {
        text.replacen(
            '{',
            r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"#,
            1,
        )
    });
    dump.refused(&["`x` twice"]);
}

#[test]
fn unknown_array() {
    refused_with(f32s("atention", &[1], &[1.0]), &["unknown array `atention`"]);
}

#[test]
fn missing_array() {
    let mut arrays = small_dump();
    arrays.retain(|array| array.name != "key_tokens");
    DumpFile::npz(&arrays, Stored).refused(&["no array `key_tokens`"]);
}

#[test]
fn wrong_dtype() {
    refused_with(f64s("key_tokens", &[2, 2], &[1.0; 4]), &["`key_tokens` is of type F64, U8 or I8"]);
    refused_with(i64s("query_states", &[2, 2, 2], &[1; 8]), &["`query_states` is of type I64, F16 or BF16 or F32 or F64"]);
}

#[test]
fn zero_sentences() {
    let mut arrays = small_dump();
    for array in &mut arrays {
        array.shape[0] = 0;
        array.bytes.clear();
    }
    DumpFile::npz(&arrays, Stored).refused(&["no sentence"]);
    DumpFile::safetensors(&arrays).refused(&["no sentence"]);
}

#[test]
fn nan_in_a_valid_state() {
    let mut states = [1f32; 8];
    states[4] = f32::NAN;
    refused_with(f32s("key_states", &[2, 2, 2], &states), &["sentence 1: `states.key`", "not finite"]);
}

#[test]
fn infinity_in_a_valid_state() {
    let mut states = [1f32; 8];
    states[1] = f32::NEG_INFINITY;
    refused_with(f32s("query_states", &[2, 2, 2], &states), &["sentence 0: `states.query`", "not finite"]);
}

#[test]
fn state_beyond_single_precision() {
    refused_with(f64s("query_states", &[2, 2, 2], &[1e300; 8]), &["sentence 0: `states.query`", "not finite"]);
}

#[test]
fn negative_token() {
    refused_with(i64s("key_tokens", &[2, 2], &[3, -1, 4, 0]), &["`key_tokens` holds a number that is negative or too large"]);
}

#[test]
fn token_too_large() {
    refused_with(i64s("key_tokens", &[2, 2], &[3, 1 << 40, 4, 0]), &["`key_tokens` holds a number that is negative or too large"]);
    refused_with(i64s("key_tokens", &[2, 2], &[3, i64::from(u32::MAX), 4, 0]), &["`key_tokens` holds the token 4294967295"]);
}

#[test]
fn lengths_beyond_the_rows() {
    refused_with(i64s("key_lengths", &[2], &[2, 3]), &["`key_lengths` gives sentence 1 3 steps, but there are 2"]);
    refused_with(i64s("query_lengths", &[2], &[i64::MAX, 1]), &["`query_lengths` gives sentence 0"]);
}

#[test]
fn length_of_zero() {
    refused_with(i64s("key_lengths", &[2], &[2, 0]), &["sentence 1 has no token on its source side"]);
}

#[test]
fn negative_length() {
    refused_with(i64s("key_lengths", &[2], &[2, -1]), &["`key_lengths` holds a number that is negative"]);
}

#[test]
fn arrays_that_disagree_on_the_sentences() {
    refused_with(i64s("key_lengths", &[3], &[1, 1, 1]), &["`key_lengths` has the shape [3], [2] was expected"]);
}

#[test]
fn attention_of_another_shape() {
    refused_with(f32s("attention", &[2, 2, 2, 1], &[1.0; 8]), &["`attention` has the shape [2, 2, 2, 1], [2, 1, 2, 2] was expected"]);
}

#[test]
fn dot_product_of_different_dimensions() {
    refused_with(f32s("key_states", &[2, 2, 3], &[1.0; 12]), &["score map of site 0", "query and key differ, 2 and 3"]);
}

#[test]
fn head_maps_that_do_not_fit() {
    refused_with(f32s("query_weights", &[1, 2, 3], &[1.0; 6]), &["no array `key_weights`"]);
    let mut arrays = small_dump();
    arrays.push(f32s("query_weights", &[1, 2, 3], &[1.0; 6]));
    arrays.push(f32s("key_weights", &[1, 3, 2], &[1.0; 6]));
    DumpFile::npz(&arrays, Stored).refused(&["`key_weights` has the shape [1, 3, 2], [1, 2, 3] was expected"]);
}

#[test]
fn bias_without_its_weights() {
    refused_with(f32s("key_bias", &[1, 2], &[1.0; 2]), &["no array `query_weights`"]);
}

#[test]
fn additive_maps_that_do_not_fit() {
    let mut arrays = small_dump();
    arrays.push(f32s("additive_query", &[2, 3], &[1.0; 6]));
    arrays.push(f32s("additive_key", &[2, 3], &[1.0; 6]));
    arrays.push(f32s("additive_vector", &[2], &[1.0; 2]));
    DumpFile::npz(&arrays, Stored).refused(&["`additive_query` has the shape [2, 3], [2, 2] was expected"]);
}

#[test]
fn two_kinds_of_score() {
    let mut arrays = small_dump();
    arrays.push(f32s("query_weights", &[1, 2, 3], &[1.0; 6]));
    arrays.push(f32s("additive_key", &[2, 3], &[1.0; 6]));
    DumpFile::npz(&arrays, Stored).refused(&["`query_weights` belongs to a projected score and `additive_key` to an additive one"]);
}

#[test]
fn scale_that_is_no_number() {
    refused_with(f64s("scale", &[], &[f64::NAN]), &["score map of site 0", "not finite"]);
    refused_with(f64s("scale", &[2], &[1.0, 2.0]), &["`scale` has the shape [2], [1] was expected"]);
}

#[test]
fn about_that_is_no_json() {
    refused_with(about("kind: cross"), &["damaged", "`about`: expected"]);
    refused_with(about(""), &["damaged", "`about`: EOF"]);
    refused_with(about("[1]"), &["damaged", "`about`"]);
    let bytes = Dumped { bytes: vec![b'"', 0xff, b'"'], ..about("...") };
    refused_with(bytes, &["damaged", "`about`"]);
}

#[test]
fn about_with_an_unknown_field() {
    refused_with(about(r#"{"knd": "cross"}"#), &["`about`: unknown field `knd`"]);
    refused_with(about(r#"{"key": {"words": []}}"#), &["`about`: unknown field `words`"]);
    refused_with(about(r#"{"kind": "self"}"#), &["`about`: unknown variant `self`", "`encoder-self`"]);
}

#[test]
fn about_with_a_field_twice() {
    refused_with(about(r#"{"layer": 1, "layer": 2}"#), &["`about`: duplicate field `layer`"]);
}

#[test]
fn about_of_other_numbers() {
    refused_with(f32s("about", &[2], &[1.0; 2]), &["`about` is of type F32, U8 was expected"]);
    refused_with(Dumped { shape: vec![1, 2], ..about("{}") }, &["`about` has the shape [1, 2], one with 1 axis was expected"]);
}

#[test]
fn about_as_array_and_as_text() {
    let dump = DumpFile::safetensors(&[small_dump(), vec![about("{}")]].concat());
    edit_header_text(&dump.path(), |header| header.replacen('{', r#"{"__metadata__":{"about":"{}"},"#, 1));
    dump.refused(&["has `about` twice"]);
}

#[test]
fn about_larger_than_what_is_read() {
    let long = Dumped { shape: vec![(16 << 20) + 1], bytes: vec![b' '; (16 << 20) + 1], ..about("") };
    DumpFile::safetensors(&[small_dump(), vec![long]].concat())
        .refused(&["its array `about` takes 16777217 bytes, at most 16777216 are read"]);
}

#[test]
fn heads_of_another_number() {
    refused_with(about(r#"{"heads": [0, 1]}"#), &["`about` numbers 2 heads, but there are 1"]);
    refused_with(about(r#"{"heads": []}"#), &["`about` numbers 0 heads, but there are 1"]);
    refused_with(about(r#"{"heads": [-1]}"#), &["`about`: invalid value: integer `-1`"]);
}

#[test]
fn head_twice() {
    let mut arrays = small_dump();
    arrays.push(f32s("query_weights", &[2, 2, 1], &[1.; 4]));
    arrays.push(f32s("key_weights", &[2, 2, 1], &[1.; 4]));
    arrays.push(about(r#"{"heads": [4, 4]}"#));
    DumpFile::npz(&arrays, Stored).refused(&["`about` has head 4 twice"]);
}

#[test]
fn name_twice() {
    refused_with(about(r#"{"key": {"names": ["a", "b", "c", "d", "a", "e"]}}"#), &["`about`, `key`: two tokens are called `a`"]);
}

/// Keys go up to token 5, queries to 6.
#[test]
fn fewer_names_than_tokens() {
    refused_with(about(r#"{"key": {"names": ["a", "b", "c", "d", "e"]}}"#), &["`about`, `key`: there are 5 names, but token 5 occurs"]);
    refused_with(about(r#"{"query": {"names": ["a"]}}"#), &["`about`, `query`: there are 1 names, but token 6 occurs"]);
}

#[test]
fn start_and_end_without_a_name() {
    let names = r#""names": ["a", "b", "c", "d", "e", "f", "g"]"#;
    refused_with(about(&format!(r#"{{"query": {{{names}, "start": 7}}}}"#)), &["`about`, `query`: `start` is token 7, which has no name"]);
    refused_with(about(&format!(r#"{{"key": {{{names}, "end": 9}}}}"#)), &["`about`, `key`: `end` is token 9, which has no name"]);
    refused_with(about(r#"{"key": {"end": 4294967295}}"#), &["`about`, `key`: `end` is token 4294967295, which has no name"]);
}

#[test]
fn self_attention_between_different_tokens() {
    refused_with(about(r#"{"kind": "encoder-self"}"#), &["sentence 0: with `encoder-self`", "must be the same tokens"]);
    let mut arrays = small_self_dump();
    arrays[2] = i64s("key_tokens", &[2, 2], &[3, 1, 0, -100]);
    arrays.push(about(r#"{"kind": "decoder-self"}"#));
    DumpFile::npz(&arrays, Stored).refused(&["sentence 1: with `decoder-self`", "must be the same tokens"]);
}

#[test]
fn self_attention_with_two_vocabularies() {
    let mut arrays = small_self_dump();
    arrays.push(about(r#"{"kind": "encoder-self", "key": {"end": 3}, "query": {"end": 2}}"#));
    DumpFile::npz(&arrays, Stored).refused(&["`about` tells keys from queries, but with `encoder-self` they are the same tokens"]);
}
