//! Speech: a Whisper built by hand, whose words and seconds are known, asked in every way.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::common::{crosslens, page_report, run, seen, shown, succeed};
use super::planted_whisper::{SAID, generation, noise, plant, plant_listening, wav, write};
use super::serve::Serving;
use crosslens_lab::speech::Listening;
use crosslens_lab::{Device, HeardSoFar, SpeechModel};
use safetensors::SafeTensors;
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

/// 33,000 samples at 44.1 kHz are 11,973 at 16 kHz.
#[test]
fn sounds_of_every_format_are_written_down() {
    let folder = folder();
    for name in ["tone.flac", "tone.mp3", "tone.ogg"] {
        let path = format!("{}/../crosslens-pretrained/tests/golden/audio/{name}", env!("CARGO_MANIFEST_DIR"));
        let line: Value = serde_json::from_str(&stdout(folder.path(), &[&path, "--json"])).expect("one line of JSON");
        assert_eq!(line["segments"][0]["text"], "the cat sat down", "{name}");
        assert!(line["duration"].as_f64().is_some_and(|secs| (secs - 11_973.0 / 16_000.0).abs() < 1e-9), "{name}: {line}");
    }
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

/// 70 seconds of silence in floating-point samples, of which the one at 65 seconds is no number.
fn broken_late() -> Vec<u8> {
    let mut samples = vec![0f32; 70 * 16_000];
    samples[65 * 16_000] = f32::NAN;
    let n_bytes = 4 * samples.len() as u32;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(36 + n_bytes).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt \x10\0\0\0\x03\0\x01\0");
    bytes.extend_from_slice(&16_000u32.to_le_bytes());
    bytes.extend_from_slice(&64_000u32.to_le_bytes());
    bytes.extend_from_slice(b"\x04\0\x20\0data");
    bytes.extend_from_slice(&n_bytes.to_le_bytes());
    samples.iter().for_each(|sample| bytes.extend_from_slice(&sample.to_le_bytes()));
    bytes
}

/// Two windows of 30 seconds were heard before it, each 8 seconds of words; without timestamps the two from 0 to 50, joined to one.
#[test]
fn what_was_written_before_a_sound_broke_is_kept() {
    let folder = folder();
    std::fs::write(folder.path().join("broken.wav"), broken_late()).expect("writable");
    let transcribe = |more: &[&str]| run(folder.path(), &[&["transcribe", "whisper", "broken.wav"], more].concat());
    let timed = transcribe(&["--explain", "page.html"]);
    let noted = String::from_utf8_lossy(&timed.stderr).into_owned();
    assert_eq!((timed.status.code(), &*timed.stdout), (Some(1), "the cat sat down\n".repeat(2).as_bytes()), "{noted}");
    assert!(noted.contains("error: `broken.wav` holds a sample of NaN at 65.000 s"), "{noted}");
    assert!(noted.contains("hint: `broken.wav` is written down to 38.0 s"), "{noted}");
    assert_eq!(page_report(&folder.path().join("page.html"))["samples"].as_array().map(Vec::len), Some(1));
    let joined = transcribe(&["--no-timestamps"]);
    let words = String::from_utf8_lossy(&joined.stdout).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((joined.status.code(), words), (Some(1), ["the", "cat", "sat", "down"].map(str::to_owned).to_vec()));
}

/// One is no sound, one breaks late: all is written down that can be heard, and explained.
#[test]
fn a_sound_that_cannot_be_read_takes_nothing_from_the_others() {
    let folder = folder();
    std::fs::write(folder.path().join("broken.wav"), broken_late()).expect("writable");
    let output = run(folder.path(), &["transcribe", "whisper", "notes.wav", "broken.wav", "talk.wav", "--explain", "page.html"]);
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), "the cat sat down\n".repeat(3).as_bytes()), "{noted}");
    for part in ["error: `notes.wav`", "error: `broken.wav` holds a sample", "error: 2 of 3 files could not be read"] {
        assert!(noted.contains(part), "{part}: {noted}");
    }
    assert_eq!(page_report(&folder.path().join("page.html"))["samples"].as_array().map(Vec::len), Some(2));
    let none = run(folder.path(), &["transcribe", "whisper", "notes.wav", "empty.wav", "--explain", "none.html"]);
    assert_eq!(none.status.code(), Some(1), "{}", shown(&none));
    assert!(!folder.path().join("none.html").exists());
}

/// What the file of single sentences says, as JSON.
fn said_of(samples: &Path, field: &str) -> Value {
    let bytes = std::fs::read(samples).expect("sentences beside the report");
    let (length, rest) = bytes.split_first_chunk().expect("a header");
    let header: Value = serde_json::from_slice(&rest[..u64::from_le_bytes(*length) as usize]).expect("JSON");
    serde_json::from_str(header["__metadata__"][field].as_str().expect("a field")).expect("JSON")
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
    let scene = &said_of(&folder.path().join("report.samples.safetensors"), "scenes")[0];
    assert_eq!((&scene["kind"], &scene["n_steps"], &scene["seconds_per_step"]), (&json!("sound"), &json!(500), &json!(0.02)));
    let words = scene["words"].as_array().expect("words");
    for (text, seconds) in &SAID {
        let word = words.iter().find(|word| word["text"] == *text).unwrap_or_else(|| panic!("{text} among {words:?}"));
        let near = |field: &str, second: usize| (word[field].as_f64().expect("seconds") - second as f64).abs() < 0.1;
        assert!(near("start", seconds.start) && near("end", seconds.end), "{word}, {seconds:?}");
    }
    let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).expect("a report")).expect("JSON");
    assert_eq!(report["corpus"]["codes"], json!({ "of": "frames", "asked": 64, "found": 1, "seed": 0 }), "all frames are alike here");
    assert_eq!(report["corpus"].get("warnings"), None);
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
    let compared = succeed(folder.path(), &["compare", "whisper", "whisper", "--corpus", "sounds"]);
    let compared = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(compared.contains("0 of 2 heads changed their label"), "{compared}");
    let sums = seen(folder.path(), &["fit", "whisper", "--corpus", "sounds", "-o", "x.stats.safetensors"]);
    assert!(sums.starts_with("exit 1") && sums.contains("whose codes are found anew"), "{sums}");
    let text = seen(folder.path(), &["explain", "whisper", "--source", "nowhere.wav"]);
    assert!(text.starts_with("exit 1") && text.contains("nowhere.wav"), "{text}");
}

/// A folder of four sounds, `sounds`, the first of them cut off after so many bytes.
fn sounds(folder: &Path, n_bytes: usize) {
    std::fs::create_dir(folder.join("sounds")).expect("a folder");
    let whole = wav(10.0);
    for (number, name) in ["a.wav", "b.wav", "c.wav", "d.wav"].iter().enumerate() {
        let bytes = if number == 0 { &whole[..n_bytes.min(whole.len())] } else { &whole[..] };
        std::fs::write(folder.join("sounds").join(name), bytes).expect("writable");
    }
}

/// German is asked for, though the model would hear English, and its timestamps are written: so says the page.
#[test]
fn the_page_explains_what_was_printed() {
    let folder = folder();
    for (sound, n_steps) in [("talk.wav", 500), ("long.wav", 1500)] {
        succeed(folder.path(), &["transcribe", "whisper", sound, "--language", "de", "--explain", "page.html"]);
        let page = page_report(&folder.path().join("page.html"));
        let sample = &page["samples"][0];
        let written: Vec<&str> = sample["predicted"]
            .as_array()
            .expect("tokens")
            .iter()
            .filter_map(|token| Some(token.as_str()?.trim_start_matches('Ġ')))
            .collect();
        assert_eq!(
            written,
            ["<|de|>", "<|transcribe|>", "<|0.00|>", "the", "cat", "sat", "down", "<|8.00|>", "<|endoftext|>"],
            "of a long sound its first window"
        );
        assert_eq!(sample["scene"]["n_steps"], n_steps);
    }
}

#[test]
fn words_have_the_same_times_in_the_page_and_in_a_transcript() {
    let folder = folder();
    let line: Value =
        serde_json::from_str(&stdout(folder.path(), &["talk.wav", "--words", "--json", "--explain", "page.html"])).expect("JSON");
    let page = page_report(&folder.path().join("page.html"));
    let (told, shown) = (&line["segments"][0]["words"], &page["samples"][0]["scene"]["words"]);
    assert_eq!((told.as_array().map(Vec::len), shown.as_array().map(Vec::len)), (Some(SAID.len()), Some(SAID.len())), "{shown}");
    for (word, (text, _)) in SAID.iter().enumerate() {
        assert_eq!((&told[word]["text"], &shown[word]["text"]), (&json!(text), &json!(text)));
        for field in ["start", "end"] {
            let secs = |words: &Value| words[word][field].as_f64().expect("seconds");
            assert!((secs(told) - secs(shown)).abs() < 0.1, "{text}: {} and {}", told[word], shown[word]);
        }
        // Rows 0, 1 and 2 write the language, the task and a timestamp.
        assert_eq!((&shown[word]["first_row"], &shown[word]["last_row"]), (&json!(3 + word), &json!(3 + word)));
    }
    let path = page["samples"][0]["scene"]["path"].as_array().expect("a path").clone();
    assert!(path.iter().all(|cell| cell[0].as_u64().is_some_and(|row| (3..=7).contains(&row))), "{path:?}");
}

/// The target is read after the prompt: language, task and no timestamps, four words, the end.
#[test]
fn a_target_of_a_sound_is_read_after_its_prompt() {
    let folder = folder();
    let arguments = ["attend", "whisper", "--source", "talk.wav", "--target", "the cat sat down", "-o", "told.npz"];
    let noted = shown(&succeed(folder.path(), &arguments));
    assert!(noted.contains("cross_attentions.0 [2, 8, 1500]"), "{noted}");
}

#[test]
fn the_terms_of_a_sound_are_fitted_on_others() {
    let folder = folder();
    sounds(folder.path(), usize::MAX);
    let attend = ["attend", "whisper", "--source", "talk.wav", "--terms", "-o", "terms.npz"];
    let refused = seen(folder.path(), &attend);
    assert!(refused.starts_with("exit 1") && refused.contains("hint: --corpus DIR"), "{refused}");
    let noted = shown(&succeed(folder.path(), &[&attend[..], &["--corpus", "sounds", "--codes", "4"]].concat()));
    assert!(noted.contains("terms.cross.0 [2, 9, "), "{noted}");
}

#[test]
fn a_sound_that_breaks_off_is_said_wherever_it_is_explained() {
    let folder = folder();
    sounds(folder.path(), 160_044);
    for arguments in [
        &["heads", "whisper", "--corpus", "sounds", "--causal-samples", "0", "--bootstrap", "0"][..],
        &["explain", "whisper", "--corpus", "sounds", "--causal", "0"],
        &["report", "whisper", "--corpus", "sounds", "--causal", "0", "-o", "page.html"],
        &["attend", "whisper", "--source", "sounds/a.wav", "-o", "cut.npz"],
        &["transcribe", "whisper", "sounds/a.wav"],
    ] {
        let noted = String::from_utf8_lossy(&succeed(folder.path(), arguments).stderr).into_owned();
        assert!(noted.contains("warning: `sounds/a.wav` breaks off at 5.0 s of the 10.0 s"), "{arguments:?}: {noted}");
    }
    let page = page_report(&folder.path().join("page.html"));
    assert_eq!(page["report"]["corpus"]["warnings"].as_array().map(Vec::len), Some(1));
    let serving = Serving::ready(crosslens(folder.path(), &["serve", "whisper", "--corpus", "sounds", "--json"]));
    let noted = String::from_utf8_lossy(&serving.stop().stderr).into_owned();
    assert!(noted.contains("warning: `sounds/a.wav` breaks off at 5.0 s of the 10.0 s"), "{noted}");
}

/// Head 0 follows the words along the sound, head 1 always looks at its first second.
#[test]
fn heads_that_follow_the_sound_are_proposed_and_give_times() {
    let folder = folder();
    sounds(folder.path(), usize::MAX);
    let measured = ["--causal-samples", "0", "--bootstrap", "0"];
    let asked = ["heads", "whisper", "--corpus", "sounds", "--emit", "alignment-heads", "--monotone", "--top", "1"];
    let proposed: Value = serde_json::from_slice(&succeed(folder.path(), &[&asked[..], &measured].concat()).stdout).expect("JSON");
    assert_eq!(proposed, json!({ "alignment_heads": [[0, 0]] }));
    let mut named = generation();
    named["alignment_heads"] = proposed["alignment_heads"].clone();
    write(&folder.path().join("whisper"), "generation_config.json", &named);
    let line: Value = serde_json::from_str(&stdout(folder.path(), &["talk.wav", "--words", "--json"])).expect("JSON");
    let start = |word: usize| line["segments"][0]["words"][word]["start"].as_f64().expect("seconds");
    for (word, (text, seconds)) in SAID.iter().enumerate() {
        assert!((start(word) - seconds.start as f64).abs() < 0.1, "{text}: {line}");
    }
}

/// Heads that somebody names are taken instead of those of generation_config.json.
#[test]
fn times_are_taken_from_the_heads_that_are_named() {
    let folder = folder();
    let mut other = generation();
    other["alignment_heads"] = json!([[0, 1]]);
    write(&folder.path().join("whisper"), "generation_config.json", &other);
    let starts = |more: &[&str]| {
        let line: Value = serde_json::from_str(&stdout(folder.path(), &[&["talk.wav", "--words", "--json"], more].concat())).expect("JSON");
        (0..SAID.len()).map(|word| line["segments"][0]["words"][word]["start"].as_f64().expect("seconds")).collect::<Vec<_>>()
    };
    let is_right = |starts: &[f64]| starts.iter().zip(&SAID).all(|(start, (_, seconds))| (start - seconds.start as f64).abs() < 0.1);
    assert!(!is_right(&starts(&[])), "head 1 looks at the first second");
    assert!(is_right(&starts(&["--heads", "0.0", "--explain", "page.html"])));
    let page = page_report(&folder.path().join("page.html"));
    let shown = page["samples"][0]["scene"]["words"].as_array().expect("words").clone();
    let shown: Vec<f64> = shown.iter().map(|word| word["start"].as_f64().expect("seconds")).collect();
    assert!(shown.len() == SAID.len() && is_right(&shown), "the page takes the same heads: {shown:?}");
    let missing = seen(folder.path(), &["transcribe", "whisper", "talk.wav", "--words", "--heads", "0.0,7.1"]);
    assert!(missing.starts_with("exit 1") && missing.contains("no head 1 in layer 7"), "{missing}");
    assert!(seen(folder.path(), &["transcribe", "whisper", "talk.wav", "--heads", "0.0"]).starts_with("exit 2"));
}

/// Noise and silence are two kinds of frames, 250 steps of each five seconds, and what follows a sound is silence too. Half of the files
/// are loud first, half last, so that no position explains what the head that looks at loud frames looks at: their code does.
#[test]
fn codes_tell_noise_from_silence_and_are_what_a_head_looks_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["listens", "sounds"] {
        std::fs::create_dir(at(name)).expect("a folder");
    }
    plant_listening(&at("listens"));
    for (name, loud) in [("a.wav", 0..5), ("b.wav", 5..10), ("c.wav", 0..5), ("d.wav", 5..10)] {
        std::fs::write(at("sounds").join(name), noise(loud)).expect("writable");
    }
    let explain = ["explain", "listens", "--corpus", "sounds", "--no-held-out", "--codes", "2", "--estimator", "joint", "--causal", "0"];
    succeed(folder.path(), &[&explain[..], &["--save", "report.json"]].concat());
    let report: Value = serde_json::from_slice(&std::fs::read(at("report.json")).expect("a report")).expect("JSON");
    assert_eq!(report["corpus"]["codes"], json!({ "of": "frames", "asked": 2, "found": 2, "seed": 0 }));
    let samples = std::fs::read(at("report.samples.safetensors")).expect("sentences");
    let samples = SafeTensors::deserialize(&samples).expect("arrays");
    let mut noise_code = None;
    // Where noise begins or ends, a window of the spectrum holds some of both.
    let is_edge = |step: usize, loud: &Range<usize>| step.abs_diff(loud.start) < 3 || step.abs_diff(loud.end) < 3;
    for (sample, loud) in [(0, 0..250), (1, 250..500)] {
        let codes = samples.tensor(&format!("samples.{sample}.source")).expect("codes");
        let codes: Vec<u32> = codes.data().as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let (noisy, quiet) = (codes[loud.start + 100], codes[1000]);
        assert_ne!(noisy, quiet);
        let right = |step: usize| if loud.contains(&step) { noisy } else { quiet };
        let astray = (0..codes.len()).filter(|&step| !is_edge(step, &loud) && codes[step] != right(step));
        assert_eq!(astray.collect::<Vec<_>>(), Vec::<usize>::new());
        assert_eq!(*noise_code.get_or_insert(noisy), noisy, "the same in all files");
    }
    // What a code stands for is of its own kind; of noise, whose frames all differ, the nearest ones and not the first.
    let stand_for = said_of(&at("report.samples.safetensors"), "codes").as_array().expect("codes").clone();
    assert_eq!(stand_for.len(), 2, "{stand_for:?}");
    for code in &stand_for {
        let is_noise = code["code"].as_u64().map(|code| code as u32) == noise_code;
        let examples = code["examples"].as_array().expect("examples");
        assert_eq!(examples.len(), 4, "{code}");
        let steps: Vec<usize> = examples.iter().map(|example| example["step"].as_u64().expect("a step") as usize).collect();
        for (example, step) in examples.iter().zip(&steps) {
            let loud = if example["sample"].as_u64().is_some_and(|sample| sample % 2 == 0) { 0..250 } else { 250..500 };
            assert_eq!(loud.contains(step), is_noise, "{code}");
        }
        assert!(!is_noise || steps != [0, 1, 2, 3], "{code}");
    }
    // By part of the key, whatever the part of the query: position, code, rest.
    let shares: Vec<Vec<f64>> = serde_json::from_value(report["sites"][1]["shares"]["centred"].clone()).expect("a table");
    let of_key = |part: usize| shares.iter().map(|row| row[part]).sum::<f64>();
    assert!(of_key(1) > 0.8 && of_key(0) < 0.1, "{shares:?}");
}

/// Of 70 seconds there are three windows; whoever wants to stop after the first has that one, and knows that it is not all.
#[test]
fn whoever_listens_along_hears_of_every_window_and_may_stop() {
    let folder = folder();
    let model = SpeechModel::open(&folder.path().join("whisper"), &Device::default()).expect("a model");
    let listen = |most: usize| {
        let mut told: Vec<(f64, Option<f64>, Vec<String>)> = Vec::new();
        let mut hear = |heard: HeardSoFar<'_>| {
            told.push((heard.done_secs, heard.of_secs, heard.new.iter().map(|segment| segment.text.clone()).collect()));
            if told.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let transcription = model.transcribe(&folder.path().join("long.wav"), &Listening::default(), &mut hear).expect("a transcript");
        (transcription, told)
    };
    let said = vec!["the cat sat down".to_owned()];
    let (whole, told) = listen(usize::MAX);
    assert_eq!(told, [30.0, 60.0, 70.0].map(|secs| (secs, Some(70.0), said.clone())));
    assert!(whole.is_whole && whole.transcript.segments.len() == 3 && whole.transcript.duration == 70.0);
    let (stopped, told) = listen(1);
    assert!(!stopped.is_whole && told.len() == 1);
    assert_eq!((stopped.transcript.segments.len(), stopped.transcript.duration), (1, 30.0));
    assert_eq!(stopped.first_window, whole.first_window);
}
