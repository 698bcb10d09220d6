//! What a writer leaves behind, and what it refuses.

use std::collections::BTreeMap;
use std::path::Path;

use crosslens_analysis::{Existing, Recorded, Recording, RecordingError, RecordingWriter};
use safetensors::SafeTensors;

use crate::allocation::largest_of;
use crate::fixtures::{Small, read, small_description, small_sentence, write};

#[test]
fn an_existing_folder_is_refused_and_stays() {
    let small = Small::new();
    let error = RecordingWriter::create(small.path(), &small_description(), Existing::Refuse).expect_err("it exists");
    assert!(matches!(error, RecordingError::Exists { .. }), "{error}");
    assert_eq!(Recording::open(small.path()).expect("the old recording").len(), 4);
}

#[test]
fn a_recording_is_replaced_where_that_is_wanted() {
    let small = Small::new();
    let mut writer = RecordingWriter::create(small.path(), &small_description(), Existing::Replace).expect("a new recording");
    writer.add(&[small_sentence(9)]).expect("a sentence that fits");
    writer.finish().expect("a written recording");
    let recording = Recording::open(small.path()).expect("a recording");
    assert_eq!(recording.read(0..1).expect("one sentence"), [small_sentence(9)]);
    assert!(!small.file("shard-00001.safetensors").exists(), "a shard of the old recording");
}

/// Every file of a folder by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), read(&entry.path()))).collect()
}

#[test]
fn a_recording_stays_until_the_one_that_replaces_it_is_finished() {
    let small = Small::new();
    let before = files(&small.path());
    let begin = || {
        let writer = RecordingWriter::create(small.path(), &small_description(), Existing::Replace).expect("a new recording");
        let mut writer = writer.with_shard_bytes(1);
        writer.add(&[small_sentence(8), small_sentence(9)]).expect("sentences that fit");
        writer
    };
    begin().discard().expect("all files are its own");
    assert!(files(&small.path()) == before, "given up");
    drop(begin());
    assert!(files(&small.path()) == before, "dropped");
    let empty = RecordingWriter::create(small.path(), &small_description(), Existing::Replace).expect("a new recording");
    assert!(matches!(empty.finish(), Err(RecordingError::Empty { .. })));
    assert!(files(&small.path()) == before, "not finished");
    // As in a process that is killed.
    std::mem::forget(begin());
    assert_eq!(Recording::open(small.path()).expect("the old recording").len(), 4);

    begin().finish().expect("a written recording");
    let sentences = Recording::open(small.path()).expect("a recording").read(0..2).expect("two sentences");
    assert_eq!(sentences, [small_sentence(8), small_sentence(9)]);
    let names: Vec<String> = files(&small.path()).into_keys().collect();
    assert_eq!(names, ["maps.safetensors", "recording.json", "shard-00000.safetensors", "shard-00001.safetensors"]);
}

#[test]
fn a_file_of_others_that_comes_meanwhile_keeps_the_recording_that_was_to_be_replaced() {
    let small = Small::new();
    let mut writer = RecordingWriter::create(small.path(), &small_description(), Existing::Replace).expect("a new recording");
    writer.add(&[small_sentence(9)]).expect("a sentence that fits");
    write(&small.file("thesis.tex"), b"ten years of work");
    let before = Recording::open(small.path()).expect("the old recording").read(0..4).expect("four sentences");
    let error = writer.finish().expect_err("not ours alone");
    assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
    assert_eq!(Recording::open(small.path()).expect("the old recording").read(0..4).expect("four sentences"), before);
    assert!(files(&small.path()).keys().all(|name| !name.starts_with('.')), "the new one is taken away");
    assert!(small.file("thesis.tex").exists());
}

#[test]
fn a_folder_with_other_files_is_never_replaced() {
    let small = Small::new();
    write(&small.file("thesis.tex"), b"ten years of work");
    let error = RecordingWriter::create(small.path(), &small_description(), Existing::Replace).expect_err("not ours alone");
    assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
    assert_eq!(Recording::open(small.path()).expect("the old recording").len(), 4);
}

#[test]
fn a_recording_that_is_given_up_leaves_nothing_but_files_of_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let begin = || {
        let mut writer =
            RecordingWriter::create(&path, &small_description(), Existing::Replace).expect("a new recording").with_shard_bytes(1);
        writer.add(&[small_sentence(0)]).expect("a sentence that fits");
        writer
    };
    begin().discard().expect("all files are its own");
    assert!(!path.exists());
    let writer = begin();
    write(&path.join("thesis.tex"), b"ten years of work");
    let error = writer.discard().expect_err("not ours alone");
    assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
    assert!(path.join("thesis.tex").exists());
}

#[test]
fn a_recording_that_was_never_finished_is_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep/recording");
    let begin = |existing| {
        let mut writer = RecordingWriter::create(&path, &small_description(), existing).expect("a new recording").with_shard_bytes(1);
        writer.add(&[small_sentence(0)]).expect("a sentence that fits");
        writer
    };
    // As in a process that is killed.
    std::mem::forget(begin(Existing::Refuse));
    assert!(path.join("shard-00000.safetensors").exists());
    let error = Recording::open(&path).expect_err("no manifest");
    assert!(matches!(error, RecordingError::NotARecording { .. }), "{error}");
    drop(begin(Existing::Replace));
    assert!(!path.exists(), "what is dropped is taken away");
    let writer = begin(Existing::Refuse);
    write(&path.join("thesis.tex"), b"ten years of work");
    drop(writer);
    assert!(path.join("thesis.tex").exists());
}

#[test]
fn a_recording_without_a_sentence_is_not_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("empty");
    let writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    assert!(matches!(writer.finish(), Err(RecordingError::Empty { .. })));
    assert!(!path.exists());
}

/// The manifest cannot be written where a folder has its name.
#[test]
fn a_recording_that_cannot_be_finished_leaves_only_what_is_not_its_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    writer.add(&[small_sentence(0)]).expect("a sentence that fits");
    std::fs::create_dir(path.join("recording.json")).expect("a folder");
    std::fs::write(path.join("recording.json/thesis.tex"), "ten years of work").expect("a file");
    assert!(writer.finish().is_err());
    assert!(path.join("recording.json/thesis.tex").exists());
}

#[test]
fn sentences_that_do_not_fit_are_refused_together() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut writer =
        RecordingWriter::create(folder.path().join("recording"), &small_description(), Existing::Refuse).expect("a new recording");
    let good = small_sentence(0);
    let bad = [
        ("`fed`", Recorded { fed: Vec::new(), ..good.clone() }),
        ("token 5", Recorded { source: vec![5, 1], ..good.clone() }),
        ("`target` has 2 numbers, 1 were expected", Recorded { target: Some(vec![1, 1]), ..good.clone() }),
        ("`states.encoder` has 3 numbers, 4 were expected", Recorded { states: vec![vec![0.0; 3], vec![0.0; 2]], ..good.clone() }),
        ("`attention.0` has 1 numbers, 2 were expected", Recorded { attention: vec![vec![1.0]], ..good.clone() }),
        ("not finite", Recorded { states: vec![vec![f32::NAN; 4], vec![0.0; 2]], ..good.clone() }),
        ("`losses` holds a number that is not finite", Recorded { loss: Some(f64::INFINITY), ..good.clone() }),
    ];
    for (words, sentence) in bad {
        let error = writer.add(&[good.clone(), sentence]).expect_err(words).to_string();
        assert!(error.contains(words) || error.contains("no token on its target side"), "{error}");
        assert!(error.contains("sentence 1"), "{error}");
    }
    writer.add(&[good]).expect("a sentence that fits");
    writer.finish().expect("a written recording");
    assert_eq!(Recording::open(folder.path().join("recording")).expect("a recording").len(), 1);
}

/// Kept weights of a sentence are never empty, so empty ones mean what no weights mean.
#[test]
fn empty_weights_are_weights_that_were_not_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    writer.add(&[Recorded { attention: vec![Vec::new()], ..small_sentence(0) }]).expect("a sentence that fits");
    writer.finish().expect("a written recording");
    let sentences = Recording::open(&path).expect("a recording").read(0..1).expect("a sentence");
    assert_eq!(sentences, [Recorded { attention: Vec::new(), ..small_sentence(0) }]);
}

#[test]
fn other_programs_read_the_shards() {
    let small = Small::new();
    let bytes = read(&small.file("shard-00000.safetensors"));
    let tensors = SafeTensors::deserialize(&bytes).expect("a file of the standard format");
    let states = tensors.tensor("states.encoder").expect("states");
    assert_eq!(states.shape(), [4, 2]);
    assert_eq!(states.data()[4..8], 1f32.to_le_bytes());
    let weights = SafeTensors::deserialize(&read(&small.file("maps.safetensors"))).map(|maps| maps.len());
    assert_eq!(weights.expect("a file of the standard format"), 3);
}

/// 2000 sentences of 6 states of 2 numbers take 150 KB; one of them is read with the few KB of a buffer and of lengths.
#[test]
fn memory_is_taken_for_the_range_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, &small_description(), Existing::Refuse).expect("a new recording");
    writer.add(&(0..2000).map(small_sentence).collect::<Vec<_>>()).expect("sentences that fit");
    writer.finish().expect("a written recording");
    let recording = Recording::open(&path).expect("a recording");
    let (sentences, largest) = largest_of(|| recording.read(1990..1991).expect("a sentence"));
    assert_eq!(sentences, [small_sentence(1990)]);
    assert!(largest <= 32 << 10, "{largest} bytes at once");
}

/// The view in `docs/format.md` is that of a shard with sentences 0 and 1 of the tests.
#[test]
fn the_documented_bytes_are_those_that_are_written() {
    let document = include_str!("../../../../docs/format.md");
    let bytes = read(&Small::new().file("shard-00000.safetensors"));
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    for start in [0, 16, 32, data, data + 16, data + 32] {
        let line = hex_line(&bytes, start);
        assert!(document.contains(&line), "docs/format.md lacks\n{line}");
    }
}

/// One line of `xxd`.
fn hex_line(bytes: &[u8], start: usize) -> String {
    let row = &bytes[start..start + 16];
    let hex: Vec<String> = row.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
    let text: String = row.iter().map(|byte| if (32..127).contains(byte) { char::from(*byte) } else { '.' }).collect();
    format!("{start:08x}: {}  {text}", hex.join(" "))
}
