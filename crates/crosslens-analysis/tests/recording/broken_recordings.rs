//! One test for each way a recording can be broken.

use serde_json::json;

use crate::fixtures::{Small, cut, edit_header_text, read, write};

const MANIFEST: &str = "recording.json";
const MAPS: &str = "maps.safetensors";
const SHARD: &str = "shard-00000.safetensors";
const HUGE: u64 = 1 << 60;

#[test]
fn truncated_manifest() {
    let small = Small::new();
    cut(&small.file(MANIFEST), 30);
    small.refused(MANIFEST, &["damaged", "EOF"]);
}

#[test]
fn manifest_that_is_no_json() {
    let small = Small::new();
    write(&small.file(MANIFEST), b"\xff\x00");
    small.refused(MANIFEST, &["damaged"]);
}

#[test]
fn manifest_with_an_unknown_field() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sentense"] = json!(3));
    small.refused(MANIFEST, &["unknown field `sentense`"]);
}

#[test]
fn newer_schema_version() {
    let small = Small::new();
    // Whatever else a newer version says, the version is what is wrong.
    small.edit_manifest(|manifest| *manifest = json!({ "schema": "crosslens-recording/2", "new": true }));
    small.refused(MANIFEST, &["crosslens-recording/2", "this version reads `crosslens-recording/1`"]);
}

#[test]
fn schema_of_something_else() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["schema"] = json!("recipe/1"));
    small.refused(MANIFEST, &["not a recording"]);
}

#[test]
fn missing_manifest() {
    let small = Small::new();
    std::fs::remove_file(small.file(MANIFEST)).expect("a file that is there");
    crate::fixtures::refused(&small.path(), &small.path(), &["never finished"]);
}

#[test]
fn missing_shard() {
    let small = Small::new();
    std::fs::remove_file(small.file(SHARD)).expect("a file that is there");
    small.refused(SHARD, &["cannot read", "No such file"]);
}

#[test]
fn missing_maps() {
    let small = Small::new();
    std::fs::remove_file(small.file(MAPS)).expect("a file that is there");
    small.refused(MAPS, &["cannot read"]);
}

#[test]
fn shard_that_is_a_folder() {
    let small = Small::new();
    std::fs::remove_file(small.file(SHARD)).expect("a file that is there");
    std::fs::create_dir(small.file(SHARD)).expect("a new folder");
    small.refused(SHARD, &["not a file"]);
}

#[test]
fn shard_name_that_leads_out_of_the_folder() {
    for name in ["../shard-00000.safetensors", "../x", "a/../../x", "..", "", "shard-00000.safetensors/../../x"] {
        let small = Small::new();
        small.edit_manifest(|manifest| manifest["shards"][0]["file"] = json!(name));
        small.refused(MANIFEST, &["no plain file name"]);
    }
}

#[test]
fn shard_name_that_is_absolute() {
    for name in ["/etc/passwd", "C:\\x", "\\\\server\\x"] {
        let small = Small::new();
        small.edit_manifest(|manifest| manifest["shards"][0]["file"] = json!(name));
        small.refused(MANIFEST, &[name, "no plain file name"]);
    }
}

#[test]
fn shard_named_twice() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["shards"][1] = manifest["shards"][0].clone());
    small.refused(MANIFEST, &["`shard-00000.safetensors` twice"]);
}

#[test]
fn zero_sentences() {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sentences"] = json!(0);
        manifest["shards"] = json!([]);
    });
    small.refused(MANIFEST, &["no sentence"]);
}

#[test]
fn sentences_that_are_not_those_of_the_shards() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sentences"] = json!(5));
    small.refused(MANIFEST, &["announces 5 sentences, its shards 4"]);
}

#[test]
fn shard_with_other_sentences_than_announced() {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sentences"] = json!(HUGE + 2);
        manifest["shards"][0]["sentences"] = json!(HUGE);
    });
    small.refused(SHARD, &["shape [2], [1152921504606846976] was expected"]);
}

#[test]
fn truncated_shard() {
    let small = Small::new();
    cut(&small.file(SHARD), 1);
    small.refused(SHARD, &["cut short"]);
}

#[test]
fn shard_truncated_in_its_header() {
    let small = Small::new();
    let bytes = read(&small.file(SHARD));
    for length in [0, 7, 8, 100] {
        write(&small.file(SHARD), &bytes[..length]);
        small.refused(SHARD, &["cut short"]);
    }
}

#[test]
fn bytes_after_the_last_array() {
    let small = Small::new();
    write(&small.file(SHARD), &[&read(&small.file(SHARD))[..], b"more"].concat());
    small.refused(SHARD, &["4 bytes follow the last array"]);
}

#[test]
fn header_of_huge_size() {
    let small = Small::new();
    let mut bytes = read(&small.file(SHARD));
    bytes[..8].copy_from_slice(&HUGE.to_le_bytes());
    write(&small.file(SHARD), &bytes);
    small.refused(SHARD, &["takes 1152921504606846976 bytes"]);
}

#[test]
fn huge_shape_in_a_header() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["states.encoder"]["shape"] = json!([HUGE, 2]));
    small.refused(SHARD, &["`states.encoder`", "not what its shape"]);
}

#[test]
fn shape_beyond_counting_in_a_header() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["states.encoder"]["shape"] = json!([HUGE, HUGE, 0]));
    small.refused(SHARD, &["`states.encoder`", "not what its shape"]);
}

#[test]
fn huge_shape_and_offsets_in_a_header() {
    let small = Small::new();
    small.edit_header(SHARD, |header| {
        // The last array, so that nothing overlaps.
        assert_eq!(header["target_known"]["dtype"], "U8");
        header["target_known"]["shape"] = json!([HUGE]);
        let first = header["target_known"]["data_offsets"][0].as_u64().expect("an offset");
        header["target_known"]["data_offsets"] = json!([first, first + HUGE]);
    });
    small.refused(SHARD, &["cut short"]);
}

#[test]
fn offsets_out_of_range() {
    let small = Small::new();
    small.edit_header(SHARD, |header| {
        let first = header["target_known"]["data_offsets"][0].as_u64().expect("an offset");
        header["target_known"]["shape"] = json!([1000]);
        header["target_known"]["data_offsets"] = json!([first, first + 1000]);
    });
    small.refused(SHARD, &["cut short"]);
}

#[test]
fn offsets_that_run_backwards() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["losses"]["data_offsets"] = json!([0, -16]));
    small.refused(SHARD, &["`losses`"]);
    small.edit_header(SHARD, |header| header["losses"]["data_offsets"] = json!([u64::MAX, 0]));
    small.refused(SHARD, &["does not begin where the array before it ends"]);
}

#[test]
fn overlapping_offsets() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["fed"]["data_offsets"] = header["predicted"]["data_offsets"].clone());
    small.refused(SHARD, &["`fed` does not begin where the array before it ends"]);
    let small = Small::new();
    small.edit_header(SHARD, |header| header["predicted"]["data_offsets"] = header["fed"]["data_offsets"].clone());
    small.refused(SHARD, &["overlaps another array"]);
}

#[test]
fn array_twice_in_a_header() {
    let small = Small::new();
    edit_header_text(&small.file(SHARD), |text| {
        // An empty array takes no room, so that it could stand twice without an overlap.
        text.replacen(
            '{',
            r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"#,
            1,
        )
    });
    small.refused(SHARD, &["`x` twice"]);
}

#[test]
fn wrong_dtype() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["source"]["dtype"] = json!("F32"));
    small.refused(SHARD, &["`source` is of type F32, U32 was expected"]);
}

#[test]
fn unknown_dtype() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["source"]["dtype"] = json!("F8_E4M3"));
    small.refused(SHARD, &["`source` is of type F8_E4M3"]);
}

#[test]
fn missing_array() {
    let small = Small::new();
    edit_header_text(&small.file(SHARD), |text| text.replace("\"fed\"", "\"fad\""));
    small.refused(SHARD, &["no array `fed`"]);
}

#[test]
fn unknown_array() {
    let small = Small::new();
    edit_header_text(&small.file(SHARD), |text| text.replacen('{', r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"#, 1));
    small.refused(SHARD, &["unknown array `x`"]);
}

#[test]
fn lengths_that_add_up_to_more_rows() {
    let small = Small::new();
    small.edit_numbers(SHARD, "source_lengths", |bytes| bytes[..4].copy_from_slice(&3u32.to_le_bytes()));
    small.refused(SHARD, &["add up to 5 rows, but `source` has 4"]);
}

#[test]
fn lengths_that_add_up_to_fewer_rows() {
    let small = Small::new();
    small.edit_numbers(SHARD, "source_lengths", |bytes| bytes[..4].copy_from_slice(&1u32.to_le_bytes()));
    small.refused(SHARD, &["add up to 3 rows, but `source` has 4"]);
}

#[test]
fn lengths_beyond_counting() {
    let small = Small::new();
    for array in ["source_lengths", "target_lengths"] {
        small.edit_numbers(SHARD, array, |bytes| bytes.fill(0xff));
    }
    small.refused(SHARD, &["beyond any file"]);
}

#[test]
fn length_of_zero() {
    let small = Small::new();
    small.edit_numbers(SHARD, "target_lengths", |bytes| bytes[4..].fill(0));
    small.refused(SHARD, &["sentence 1 has no token on its target side"]);
}

#[test]
fn kept_attention_that_is_not_there() {
    let small = Small::new();
    edit_header_text(&small.file(SHARD), |text| {
        let mut header: serde_json::Value = serde_json::from_str(&text).expect("a header");
        header["attention.0"]["shape"] = json!([2, 2]);
        header.to_string()
    });
    small.refused(SHARD, &["`attention.0` has the shape [2, 2], one with 1 axis was expected"]);
    let small = Small::new();
    small.edit_numbers(SHARD, "attention_kept", |bytes| bytes[0] = 0);
    small.refused(SHARD, &["add up to 2 rows, but `attention.0` has 4"]);
}

#[test]
fn nan_in_a_state() {
    let small = Small::new();
    small.edit_numbers("shard-00001.safetensors", "states.decoder", |bytes| bytes[12..].copy_from_slice(&f32::NAN.to_le_bytes()));
    small.refused("shard-00001.safetensors", &["sentence 3: `states.decoder` holds a number that is not finite"]);
}

#[test]
fn infinity_in_a_state() {
    for infinity in [f32::INFINITY, f32::NEG_INFINITY] {
        let small = Small::new();
        small.edit_numbers(SHARD, "states.encoder", |bytes| bytes[..4].copy_from_slice(&infinity.to_le_bytes()));
        small.refused(SHARD, &["sentence 0: `states.encoder`", "not finite"]);
    }
}

#[test]
fn infinite_loss() {
    for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
        let small = Small::new();
        small.edit_numbers(SHARD, "losses", |bytes| bytes[..8].copy_from_slice(&infinity.to_le_bytes()));
        small.refused(SHARD, &["sentence 0: `losses` holds a number that is not finite"]);
    }
}

#[test]
fn nan_in_attention() {
    let small = Small::new();
    small.edit_numbers(SHARD, "attention.0", |bytes| bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes()));
    small.refused(SHARD, &["sentence 0: `attention.0`", "not finite"]);
}

#[test]
fn nan_in_a_map() {
    let small = Small::new();
    small.edit_numbers(MAPS, "sites.0.key.weights", |bytes| bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes()));
    small.refused(MANIFEST, &["score map of site 0", "not finite"]);
}

#[test]
fn token_beyond_the_vocabulary() {
    for (array, side) in [("source", "source"), ("fed", "target"), ("predicted", "target"), ("target", "target")] {
        let small = Small::new();
        small.edit_numbers(SHARD, array, |bytes| bytes[..4].copy_from_slice(&5u32.to_le_bytes()));
        small.refused(SHARD, &[&format!("sentence 0: token 5 of its {side} side is beyond the 5 words")]);
    }
}

#[test]
fn end_beyond_the_vocabulary() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["target"]["end"] = json!(5));
    small.refused(MANIFEST, &["the target ends in token 5 of 5 words"]);
}

#[test]
fn more_names_than_words() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["source"]["count"] = json!(1));
    small.refused(MANIFEST, &["2 names for 1 words of the source"]);
}

#[test]
fn stream_named_twice() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["streams"][1]["name"] = json!("encoder"));
    small.refused(MANIFEST, &["`encoder` twice"]);
}

#[test]
fn stream_without_dimensions() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["streams"][0]["d"] = json!(0));
    small.refused(MANIFEST, &["the states of `encoder` have no dimension"]);
}

#[test]
fn stream_of_other_dimensions() {
    let small = Small::new();
    small.edit_header(SHARD, |header| header["states.encoder"]["shape"] = json!([2, 4]));
    small.refused(SHARD, &["`states.encoder` has the shape [2, 4], [2, 2] was expected"]);
}

#[test]
fn unknown_stream_in_a_site() {
    for field in ["query", "key"] {
        let small = Small::new();
        small.edit_manifest(|manifest| manifest["sites"][0][field] = json!(2));
        small.refused(MANIFEST, &["site 0 reads stream 2, but there are 2"]);
    }
}

#[test]
fn site_whose_kind_is_not_that_of_its_streams() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["kind"] = json!("encoder-self"));
    small.refused(MANIFEST, &["site 0 is of kind `encoder-self`, but `decoder` asks `encoder`"]);
}

#[test]
fn site_with_an_unknown_map() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["map"] = json!("quantum"));
    small.refused(MANIFEST, &["unknown map `quantum`"]);
}

#[test]
fn site_without_its_scale() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["scale"] = json!(null));
    small.refused(MANIFEST, &["site 0 has no `scale`"]);
}

#[test]
fn map_that_reads_other_dimensions() {
    let small = Small::new();
    small.edit_header(MAPS, |header| header["sites.0.query.weights"]["shape"] = json!([3, 2]));
    small.refused(MANIFEST, &["score map of site 0 does not fit"]);
}

#[test]
fn maps_that_write_different_dimensions() {
    let small = Small::new();
    small.edit_header(MAPS, |header| header["sites.0.key.weights"]["shape"] = json!([6, 1]));
    small.refused(MANIFEST, &["score map of site 0 does not fit"]);
}

#[test]
fn map_without_an_axis() {
    let small = Small::new();
    small.edit_header(MAPS, |header| header["sites.0.key.weights"]["shape"] = json!([6]));
    small.refused(MAPS, &["`sites.0.key.weights` has the shape [6], one with 2 axes was expected"]);
}

#[test]
fn map_that_the_manifest_does_not_list() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["tensors"] = json!(["sites.0.query.weights", "sites.0.key.weights"]));
    small.refused(MAPS, &["unknown array `sites.0.query.bias`"]);
}

#[test]
fn listed_map_that_is_not_there() {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sites"][0]["tensors"] =
            json!(["sites.0.query.weights", "sites.0.query.bias", "sites.0.value.weights", "sites.0.key.weights"])
    });
    small.refused(MAPS, &["no array `sites.0.value.weights`"]);
}

#[test]
fn bias_of_a_grid_that_is_not_there() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["grid"] = json!([2, 3]));
    small.refused(MAPS, &["no array `sites.0.position_bias`"]);
}

#[test]
fn bias_of_distances_and_of_a_grid() {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sites"][0]["lowest"] = json!(-1);
        manifest["sites"][0]["grid"] = json!([2, 3]);
    });
    small.refused(MANIFEST, &["site 0 has both `lowest` and `grid`"]);
}

#[test]
fn array_that_no_map_reads() {
    let small = Small::new();
    small.edit_manifest(|manifest| manifest["sites"][0]["map"] = json!("general"));
    small.refused(MANIFEST, &["unknown array `sites.0.key.weights`"]);
}

#[test]
fn array_listed_twice() {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sites"].as_array_mut().expect("a list").push(json!({
            "kind": "cross", "layer": 0, "head": 1, "query": 1, "key": 0, "visible": "all", "map": "dot", "scale": 1, "lowest": null,
            "tensors": ["sites.0.query.bias"]
        }))
    });
    small.refused(MANIFEST, &["`sites.0.query.bias` twice"]);
}

#[test]
fn path_that_is_not_there() {
    let small = Small::new();
    let path = small.folder.path().join("nowhere");
    crate::fixtures::refused(&path, &path, &["cannot read"]);
}

#[test]
fn file_of_another_kind() {
    crate::fixtures::DumpFile::of("notes.txt", b"notes").refused(&["neither a folder nor"]);
}
