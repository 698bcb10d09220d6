//! Speech: a Whisper built by hand, whose words and seconds are known, asked in every way.

use std::path::Path;

use super::common::{run, seen, shown, succeed};
use super::planted_whisper::{SAID, generation, plant, wav, write};
use serde_json::{Value, json};

/// A folder with the model `whisper`, the sound `talk.wav` and things that are no sounds.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("whisper")).expect("a folder");
    plant(&at("whisper"));
    std::fs::write(at("talk.wav"), wav(10.0)).expect("writable");
    std::fs::write(at("long.wav"), wav(70.0)).expect("writable");
    std::fs::write(at("notes.wav"), "not a sound at all\n").expect("writable");
    std::fs::write(at("empty.wav"), "").expect("writable");
    folder
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let output = succeed(folder, &[&["transcribe", "whisper"], arguments].concat());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_sound_is_written_down_in_every_form() {
    let folder = folder();
    let written = |format: &str| stdout(folder.path(), &["talk.wav", "--format", format]);
    assert_eq!(written("txt"), "the cat sat down\n");
    assert_eq!(stdout(folder.path(), &["talk.wav"]), written("txt"));
    assert_eq!(written("srt").trim_end(), "1\n00:00:00,000 --> 00:00:08,000\nthe cat sat down");
    assert_eq!(written("vtt").trim_end(), "WEBVTT\n\n00:00:00.000 --> 00:00:08.000\nthe cat sat down");
    assert_eq!(written("tsv"), "start\tend\ttext\n0\t8000\tthe cat sat down\n");
    let transcript: Value = serde_json::from_str(&written("json")).expect("JSON");
    assert_eq!(transcript["language"], "en");
    assert_eq!(transcript["duration"], 10.0);
    let segment = &transcript["segments"][0];
    assert_eq!((&segment["text"], &segment["start"], &segment["end"]), (&json!("the cat sat down"), &json!(0.0), &json!(8.0)));
    assert!(segment["confidence"].as_f64().is_some_and(|confidence| confidence > 0.9));
    assert!(segment["no_speech"].as_f64().is_some_and(|silent| silent < 0.1));
    assert_eq!(segment.get("words"), None);
}

#[test]
fn words_have_the_seconds_that_the_model_looked_at() {
    let folder = folder();
    let line: Value = serde_json::from_str(&stdout(folder.path(), &["talk.wav", "--words", "--json"])).expect("one line of JSON");
    assert_eq!(line["file"], "talk.wav");
    let words = line["segments"][0]["words"].as_array().expect("words");
    assert_eq!(words.len(), SAID.len());
    for (word, (text, seconds)) in words.iter().zip(&SAID) {
        assert_eq!(word["text"], *text);
        let near = |field: &str, second: usize| (word[field].as_f64().expect("seconds") - second as f64).abs() < 0.1;
        assert!(near("start", seconds.start) && near("end", seconds.end), "{word}, {seconds:?}");
    }
    let subtitles = stdout(folder.path(), &["talk.wav", "--words", "--format", "srt"]);
    assert_eq!(subtitles.matches(" --> ").count(), SAID.len(), "{subtitles}");
    // Without a word on which heads to ask, all are, and that is said.
    let mut unnamed = generation();
    unnamed["alignment_heads"] = Value::Null;
    write(&folder.path().join("whisper"), "generation_config.json", &unnamed);
    let output = succeed(folder.path(), &["transcribe", "whisper", "talk.wav", "--words"]);
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(noted.contains("names no alignment_heads: times are taken from all 2 heads"), "{noted}");
}

/// Each window of 30 seconds says the same: three in 70 seconds, and without timestamps the overlap is joined.
#[test]
fn long_sounds_go_window_by_window() {
    let folder = folder();
    assert_eq!(stdout(folder.path(), &["long.wav"]), "the cat sat down\n".repeat(3));
    let starts = stdout(folder.path(), &["long.wav", "--format", "tsv"]);
    assert_eq!(starts.lines().skip(1).map(|line| line.split('\t').next().expect("a start")).collect::<Vec<_>>(), ["0", "30000", "60000"]);
    let joined = stdout(folder.path(), &["long.wav", "--no-timestamps"]);
    assert_eq!(joined.split_whitespace().collect::<Vec<_>>(), ["the", "cat", "sat", "down"], "{joined}");
}

#[test]
fn files_are_written_into_a_folder() {
    let folder = folder();
    let output = succeed(folder.path(), &["transcribe", "whisper", "talk.wav", "long.wav", "--format", "vtt", "--output-dir", "out"]);
    assert!(output.stdout.is_empty());
    for (name, n_cues) in [("talk.vtt", 1), ("long.vtt", 3)] {
        let text = std::fs::read_to_string(folder.path().join("out").join(name)).expect("a file for each sound");
        assert!(text.starts_with("WEBVTT\n") && text.matches(" --> ").count() == n_cues, "{text}");
    }
    let both = run(folder.path(), &["transcribe", "whisper", "talk.wav", "long.wav", "--format", "srt"]);
    assert_eq!(both.status.code(), Some(2), "{}", shown(&both));
    std::fs::create_dir(folder.path().join("other")).expect("a folder");
    std::fs::copy(folder.path().join("talk.wav"), folder.path().join("other/talk.wav")).expect("a copy");
    let same = seen(folder.path(), &["transcribe", "whisper", "talk.wav", "other/talk.wav", "--output-dir", "out"]);
    assert!(same.starts_with("exit 2") && same.contains("would both be written to `out/talk.txt`"), "{same}");
}

#[test]
fn languages_and_tasks_are_asked_for() {
    let folder = folder();
    let line: Value = serde_json::from_str(&stdout(folder.path(), &["talk.wav", "--language", "de", "--json"])).expect("JSON");
    assert_eq!(line["language"], "de");
    let unknown = seen(folder.path(), &["transcribe", "whisper", "talk.wav", "--language", "tlh"]);
    assert!(unknown.starts_with("exit 1") && unknown.contains("does not know the language `tlh`; it knows en, de"), "{unknown}");
    assert_eq!(run(folder.path(), &["transcribe", "whisper", "talk.wav", "--task", "sing"]).status.code(), Some(2));
    succeed(folder.path(), &["transcribe", "whisper", "talk.wav", "--task", "translate"]);
}

#[test]
fn what_is_no_sound_and_what_is_no_model_of_speech_is_said() {
    let folder = folder();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let found = seen(folder.path(), arguments);
        assert!(found.starts_with("exit 1\n--- stdout\n\n--- stderr\nerror: "), "{found}");
        parts.iter().for_each(|part| assert!(found.contains(part), "{part}: {found}"));
    };
    refused(&["transcribe", "whisper", "notes.wav"], &["`notes.wav`", "WAV, FLAC, MP3 and Ogg Vorbis are read"]);
    refused(&["transcribe", "whisper", "empty.wav"], &["`empty.wav` is empty"]);
    refused(&["transcribe", "whisper", "nowhere.wav"], &["cannot read `nowhere.wav`"]);
    refused(&["transcribe", "nowhere", "talk.wav"], &["`nowhere` holds no model", "hint: "]);
    refused(&["translate", "whisper", "some text"], &["reads no text: it writes down speech", "hint: crosslens transcribe whisper AUDIO"]);
    let t5 = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-pretrained/tests/golden/t5");
    refused(&["transcribe", t5, "talk.wav"], &["of the family t5, which hears nothing", "hint: crosslens translate "]);
}

/// What the file of single sentences says of the first one's scene.
fn first_scene(samples: &Path) -> Value {
    let bytes = std::fs::read(samples).expect("sentences beside the report");
    let (length, rest) = bytes.split_first_chunk().expect("a header");
    let header: Value = serde_json::from_slice(&rest[..u64::from_le_bytes(*length) as usize]).expect("JSON");
    let scenes: Value = serde_json::from_str(header["__metadata__"]["scenes"].as_str().expect("scenes")).expect("JSON");
    scenes[0].clone()
}

/// The head that follows the sound is driven by the word on one side and by the second on the other; frames, which are all alike here,
/// have one code.
#[test]
fn sounds_are_explained_like_sentences() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("sounds")).expect("a folder");
    for name in ["a.wav", "b.wav", "c.wav", "d.wav"] {
        std::fs::copy(folder.path().join("talk.wav"), folder.path().join("sounds").join(name)).expect("a copy");
    }
    std::fs::write(folder.path().join("list.tsv"), "sounds/a.wav\nsounds/b.wav\n").expect("writable");
    let heads = ["heads", "whisper", "--corpus", "sounds", "--codes", "4", "--causal-samples", "2", "--bootstrap", "0", "--json"];
    let heads: Value = serde_json::from_slice(&succeed(folder.path(), &heads).stdout).expect("JSON");
    assert_eq!(heads["heads"].as_array().map(Vec::len), Some(2), "{heads}");
    succeed(folder.path(), &["explain", "whisper", "--corpus", "list.tsv", "--causal", "1", "--save", "report.json"]);
    let scene = first_scene(&folder.path().join("report.samples.safetensors"));
    assert_eq!((&scene["kind"], &scene["n_steps"], &scene["seconds_per_step"]), (&json!("sound"), &json!(500), &json!(0.02)));
    let words = scene["words"].as_array().expect("words");
    for (text, seconds) in &SAID {
        let word = words.iter().find(|word| word["text"] == *text).unwrap_or_else(|| panic!("{text} among {words:?}"));
        let start = word["start"].as_f64().expect("seconds");
        assert!((start - seconds.start as f64).abs() < 0.5, "{word}, {seconds:?}");
    }
    succeed(folder.path(), &["report", "report.json", "-o", "page.html"]);
    succeed(folder.path(), &["transcribe", "whisper", "talk.wav", "--explain", "talk.html"]);
    for page in ["page.html", "talk.html"] {
        let html = std::fs::read_to_string(folder.path().join(page)).expect("a page");
        assert!(html.starts_with("<!doctype html>") && html.contains("media-src data:"), "{page}");
    }
    let attended = succeed(folder.path(), &["attend", "whisper", "--source", "talk.wav", "-o", "attention.npz"]);
    let noted = String::from_utf8_lossy(&attended.stderr).into_owned();
    assert!(
        noted.contains("source:    talk.wav") && noted.contains("cross_attentions.0") && !noted.contains("encoder_attentions"),
        "{noted}"
    );
    let sums = seen(folder.path(), &["fit", "whisper", "--corpus", "sounds", "-o", "x.stats.safetensors"]);
    assert!(sums.starts_with("exit 1") && sums.contains("whose codes are found anew"), "{sums}");
    let text = seen(folder.path(), &["explain", "whisper", "--source", "nowhere.wav"]);
    assert!(text.starts_with("exit 1") && text.contains("nowhere.wav"), "{text}");
}
