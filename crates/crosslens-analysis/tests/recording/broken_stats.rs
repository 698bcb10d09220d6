//! One test for each way a file of sums can be broken.

use crosslens_analysis::Stats;
use serde_json::{Value, json};

use crate::allocation::largest_of;
use crate::fixtures::{LARGE, StatsFile, cut, read, write};

const HUGE: u64 = 1 << 60;

impl StatsFile {
    /// Asserts that the file is refused, without a panic or much memory, with an error that names it and holds these words.
    fn refused(&self, words: &[&str]) {
        let (result, largest) = largest_of(|| Stats::load(&self.path()));
        let message = result.expect_err("a broken file").to_string();
        let path = self.path().display().to_string();
        for word in words.iter().copied().chain([path.as_str()]) {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
        assert!(largest < LARGE, "{largest} bytes at once for: {message}");
    }

    /// Changes what the header says of the streams.
    fn edit_streams(&self, edit: impl FnOnce(&mut Value)) {
        self.edit_header(|header| {
            let text = header["__metadata__"]["streams"].as_str().expect("a text");
            let mut streams: Value = serde_json::from_str(text).expect("JSON");
            edit(&mut streams);
            header["__metadata__"]["streams"] = json!(streams.to_string());
        });
    }

    fn set_first<const BYTES: usize>(&self, array: &str, number: [u8; BYTES]) {
        self.edit_numbers(array, |bytes| bytes[..BYTES].copy_from_slice(&number));
    }
}

#[test]
fn whole() {
    Stats::load(&StatsFile::new().path()).expect("a file that nobody broke");
}

#[test]
fn truncated() {
    let file = StatsFile::new();
    cut(&file.path(), 1);
    file.refused(&["cut short"]);
}

#[test]
fn truncated_in_its_header() {
    let file = StatsFile::new();
    let bytes = read(&file.path());
    for length in [0, 7, 8, 100] {
        write(&file.path(), &bytes[..length]);
        file.refused(&["cut short"]);
    }
}

#[test]
fn longer_than_its_arrays() {
    let file = StatsFile::new();
    write(&file.path(), &[&read(&file.path())[..], b"more"].concat());
    file.refused(&["4 bytes follow the last array"]);
}

#[test]
fn folder() {
    let file = StatsFile::new();
    std::fs::remove_file(file.path()).expect("a file that is there");
    std::fs::create_dir(file.path()).expect("a new folder");
    file.refused(&["it is a folder"]);
}

#[test]
fn missing() {
    let file = StatsFile::new();
    std::fs::remove_file(file.path()).expect("a file that is there");
    file.refused(&["cannot read"]);
}

#[test]
fn newer_schema() {
    let file = StatsFile::new();
    // Whatever else a newer version says, the version is what is wrong.
    file.edit_header(|header| header["__metadata__"] = json!({ "schema": "crosslens-stats/2" }));
    file.refused(&["crosslens-stats/2", "this version reads `crosslens-stats/1`"]);
}

#[test]
fn schema_of_something_else() {
    let file = StatsFile::new();
    file.edit_header(|header| header["__metadata__"]["schema"] = json!("crosslens-model/1"));
    file.refused(&["holds no sums", "crosslens-model/1"]);
}

#[test]
fn no_schema() {
    let file = StatsFile::new();
    file.edit_header(|header| drop(header.as_object_mut().expect("an object").remove("__metadata__")));
    file.refused(&["holds no sums"]);
}

#[test]
fn metadata_that_is_no_text() {
    let file = StatsFile::new();
    for metadata in [json!(3), json!([]), json!({ "schema": 1 })] {
        file.edit_header(|header| header["__metadata__"] = metadata);
        file.refused(&["holds no sums"]);
    }
}

#[test]
fn no_model() {
    let file = StatsFile::new();
    file.edit_header(|header| drop(header["__metadata__"].as_object_mut().expect("an object").remove("model_hash")));
    file.refused(&["no model"]);
}

#[test]
fn streams_that_are_no_list() {
    let file = StatsFile::new();
    for streams in ["", "{}", "[3]", "[{}]", r#"[{"name":"a","consumed":"next","d":2,"n_tokens":5}]"#] {
        file.edit_header(|header| header["__metadata__"]["streams"] = json!(streams));
        file.refused(&["damaged", "streams"]);
    }
}

#[test]
fn stream_twice() {
    let file = StatsFile::new();
    file.edit_streams(|streams| streams[1]["name"] = json!("encoder"));
    file.refused(&["`encoder` twice"]);
}

#[test]
fn fewer_streams_than_arrays() {
    let file = StatsFile::new();
    file.edit_streams(|streams| drop(streams.as_array_mut().expect("a list").pop()));
    file.refused(&["unknown array `streams.1."]);
}

#[test]
fn more_streams_than_arrays() {
    let file = StatsFile::new();
    file.edit_streams(|streams| {
        let third = json!({ "name": "third", "consumed": "current", "d": 2, "n_tokens": 5 });
        streams.as_array_mut().expect("a list").push(third);
    });
    file.refused(&["no array `streams.2.n`"]);
}

#[test]
fn wrong_dtype() {
    let file = StatsFile::new();
    file.edit_header(|header| header["streams.0.n"]["dtype"] = json!("I64"));
    file.refused(&["`streams.0.n` is of type I64, U64 was expected"]);
}

#[test]
fn unknown_dtype() {
    let file = StatsFile::new();
    file.edit_header(|header| header["streams.0.n"]["dtype"] = json!("F8"));
    file.refused(&["`streams.0.n`", "F8"]);
}

#[test]
fn dimensions_that_lie() {
    for d in [1, 3, HUGE] {
        let file = StatsFile::new();
        file.edit_streams(|streams| streams[0]["d"] = json!(d));
        file.refused(&["`streams.0.by_step` has the shape [2, 2]", &format!("[2, {d}]")]);
    }
}

#[test]
fn no_dimension() {
    let file = StatsFile::new();
    file.edit_streams(|streams| streams[0]["d"] = json!(0));
    file.refused(&["`encoder`", "no dimension"]);
}

#[test]
fn shape_of_two_to_the_sixty() {
    for shape in [json!([HUGE]), json!([HUGE, HUGE]), json!([u64::MAX])] {
        let file = StatsFile::new();
        file.edit_header(|header| header["streams.0.n"]["shape"] = shape);
        file.refused(&["`streams.0.n`", "not what its shape"]);
    }
}

#[test]
fn header_of_two_to_the_sixty() {
    let file = StatsFile::new();
    let mut bytes = read(&file.path());
    bytes[..8].copy_from_slice(&HUGE.to_le_bytes());
    write(&file.path(), &bytes);
    file.refused(&["header", "at most"]);
}

#[test]
fn offsets_out_of_range() {
    let file = StatsFile::new();
    file.edit_header(|header| {
        let first = header["streams.1.tokens"]["data_offsets"][0].as_u64().expect("an offset");
        header["streams.1.tokens"]["shape"] = json!([1000]);
        header["streams.1.tokens"]["data_offsets"] = json!([first, first + 4000]);
    });
    file.refused(&["cut short"]);
}

#[test]
fn arrays_that_overlap() {
    let file = StatsFile::new();
    file.edit_header(|header| header["streams.0.m"]["data_offsets"] = header["streams.0.n"]["data_offsets"].clone());
    file.refused(&["damaged"]);
}

#[test]
fn lengths_that_lie() {
    for length in [0u32, 3, u32::MAX] {
        let file = StatsFile::new();
        file.set_first("streams.0.c_lengths", length.to_le_bytes());
        file.refused(&["`encoder`", "lengths of its rows"]);
    }
}

#[test]
fn token_counts_that_lie() {
    for count in [0, 7, HUGE, u64::MAX] {
        let file = StatsFile::new();
        file.set_first("streams.0.m", count.to_le_bytes());
        file.refused(&["`encoder`", &format!("seen {count} times")]);
    }
}

#[test]
fn step_counts_that_lie() {
    let file = StatsFile::new();
    file.set_first("streams.0.n", 7u64.to_le_bytes());
    file.refused(&["`encoder`", "step 0 was reached 7 times, but by tokens 4 times"]);
}

#[test]
fn counts_of_two_to_the_sixty() {
    for count in [HUGE, u64::MAX] {
        let file = StatsFile::new();
        file.edit_numbers("streams.0.n", |bytes| bytes.as_chunks_mut::<8>().0.fill(count.to_le_bytes()));
        file.refused(&["`encoder`", "more than 2^53"]);
    }
}

#[test]
fn times_that_lie() {
    for (times, words) in [(0, "0 times at step"), (9, "but at its steps 9 times"), (HUGE, "times at step"), (u64::MAX, "times at step")] {
        let file = StatsFile::new();
        file.set_first("streams.0.c_times", times.to_le_bytes());
        file.refused(&["`encoder`", words]);
    }
}

/// The row sums stay right, the column sums do not.
#[test]
fn counts_moved_to_another_step() {
    let file = StatsFile::new();
    file.set_first("streams.0.c_steps", 1u32.to_le_bytes());
    file.refused(&["`encoder`", "step 0 was reached 4 times, but by tokens 3 times"]);
}

#[test]
fn step_beyond_the_last() {
    for step in [2, u32::MAX] {
        let file = StatsFile::new();
        file.set_first("streams.0.c_steps", step.to_le_bytes());
        file.refused(&["`encoder`", &format!("stands at step {step} of 2")]);
    }
}

#[test]
fn steps_that_do_not_ascend() {
    let file = StatsFile::new();
    // The row of token 4, which stands at step 0 once more than in the other sentences.
    file.edit_numbers("streams.1.c_steps", |bytes| bytes.as_chunks_mut::<4>().0.reverse());
    file.refused(&["`decoder`", "do not ascend"]);
}

#[test]
fn token_twice() {
    let file = StatsFile::new();
    file.edit_numbers("streams.0.tokens", |bytes| bytes.copy_within(4..8, 0));
    file.refused(&["`encoder`", "twice"]);
}

#[test]
fn token_beyond_the_vocabulary() {
    for token in [5, u32::MAX] {
        let file = StatsFile::new();
        file.set_first("streams.0.tokens", token.to_le_bytes());
        file.refused(&["`encoder`", &format!("token {token} is beyond the 5 there are")]);
    }
}

#[test]
fn numbers_that_are_not_finite() {
    for array in ["by_step", "by_token", "squares"] {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let file = StatsFile::new();
            file.set_first(&format!("streams.0.{array}"), number.to_le_bytes());
            file.refused(&["`encoder`", "do not fit together"]);
        }
    }
}

#[test]
fn negative_squares() {
    let file = StatsFile::new();
    file.set_first("streams.0.squares", (-1f64).to_le_bytes());
    file.refused(&["`encoder`", "sum of squares is -1"]);
}
