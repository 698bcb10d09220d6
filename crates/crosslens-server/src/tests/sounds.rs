//! A model of speech, planted so that its words and the seconds it looks at are known, asked with a sound.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslens_lab::ImportedOptions;
use serde_json::{Value, json};

use super::planted_whisper::{SAID, plant, wav};
use super::{Running, soon};
use crate::Limits;

fn largest(row: &[Value]) -> usize {
    let weight = |place: &usize| row[*place].as_f64().expect("a weight");
    (0..row.len()).max_by(|a, b| weight(a).total_cmp(&weight(b))).expect("weights")
}

#[test]
fn a_sound_that_is_sent_is_explained_where_the_model_looked() {
    let folder = tempfile::tempdir().expect("a folder");
    let sounds = folder.path().join("sounds");
    std::fs::create_dir(&sounds).expect("a folder");
    plant(folder.path());
    for name in ["a.wav", "b.wav"] {
        std::fs::write(sounds.join(name), wav(10.0)).expect("a sound");
    }
    let limits = Limits { upload_bytes: 1 << 20, ..Limits::default() };
    let imported = ImportedOptions { corpus: Some(sounds), causal: 1, ..ImportedOptions::default() };
    let server = Running::with(&[folder.path().into()], imported, "127.0.0.1", limits);
    let asks = server.get("/api/models/0").json()["asks"].clone();
    assert_eq!((&asks["files"], &asks["take"], &asks["sentences"]), (&json!("sound"), &json!("corpus"), &json!(2)));

    let question = json!({ "sentence": { "file": STANDARD.encode(wav(10.0)) }, "sites": [0] });
    let answer = server.post("/api/models/0/explain", &question).json();
    let scene = &answer["sample"]["scene"];
    assert_eq!((&scene["kind"], &scene["n_steps"]), (&json!("sound"), &json!(500)));
    assert!(scene["wave"].as_str().is_some_and(|wave| wave.starts_with("data:audio/wav;base64,")), "{scene}");
    let (site, written) = (&answer["sites"][0], answer["sample"]["predicted"].as_array().expect("tokens"));
    let weights = site["attention"].as_array().expect("weights");
    let n_keys = site["shape"][2].as_u64().expect("keys") as usize;
    for (text, seconds) in &SAID {
        let row = written.iter().position(|token| token.as_str().is_some_and(|token| token.trim_start_matches(['Ġ', ' ']) == *text));
        let row = row.unwrap_or_else(|| panic!("{text} among {written:?}"));
        let step = largest(&weights[row * n_keys..(row + 1) * n_keys]);
        assert!(seconds.contains(&(step / 50)), "{text}: step {step}");
    }
    // Words and their alignment do not depend on which heads are asked for, nor on their order.
    let words = &scene["words"];
    assert_eq!(words.as_array().expect("words").iter().map(|word| &word["text"]).collect::<Vec<_>>(), SAID.map(|(text, _)| text));
    for (word, (_, seconds)) in words.as_array().expect("words").iter().zip(&SAID) {
        let start = word["start"].as_f64().expect("seconds");
        assert!((start - seconds.start as f64).abs() < 0.1, "{word}, {seconds:?}");
    }
    assert!(scene["path"].as_array().is_some_and(|path| !path.is_empty()), "{scene}");
    for sites in [json!([1]), json!([1, 0])] {
        let mut other = question.clone();
        other["sites"] = sites;
        let other = server.post("/api/models/0/explain", &other).json();
        assert_eq!((&other["sample"]["scene"]["words"], &other["sample"]["scene"]["path"]), (words, &scene["path"]));
    }
    let mut again = question.clone();
    again["site"] = json!(0);
    again["off"] = json!([]);
    again.as_object_mut().expect("an object").remove("sites");
    assert_eq!(server.post("/api/models/0/rerun", &again).json()["predicted"], answer["sample"]["predicted"]);
    assert_eq!(answer["warning"], Value::Null);
    let taken = server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 1 }, "sites": [0] })).json();
    assert_eq!(taken["sample"]["scene"]["kind"], "sound");

    // A report of a job shows the sounds and what their codes stand for.
    let started = server.post("/api/jobs", &json!({ "model": 0, "sentences": 2, "samples": 2 }));
    assert_eq!(started.status, 202, "{started:?}");
    assert!(soon(|| server.get("/api/jobs").json()[0]["state"] == "done"));
    let report = server.get("/api/reports/1").json();
    assert_eq!((&report["samples"][1]["scene"]["kind"], &report["report"]["corpus"]["codes"]["of"]), (&json!("sound"), &json!("frames")));
    assert_eq!(report["codes"][0]["examples"][0], json!({ "sample": 0, "step": 0 }), "all frames are alike: the first is shown");

    // 1500 frames, nine terms and their sum at seven rows or more: of so many heads that is beyond what one answer holds.
    let many = server.post("/api/models/0/explain", &json!({ "sentence": { "sample": 1 }, "sites": vec![0; 64] }));
    assert!(many.status == 422 && many.error().contains("at most 4000000 are given: ask for fewer heads"), "{many:?}");

    let refused = |sentence: Value, status: u16, part: &str| {
        let answer = server.post("/api/models/0/explain", &json!({ "sentence": sentence, "sites": [0] }));
        assert!(answer.status == status && answer.error().contains(part), "{answer:?}");
    };
    let no_sound = "the file that was sent does not begin as a sound does; WAV, FLAC, MP3 and Ogg Vorbis are read";
    refused(json!({ "file": STANDARD.encode("no sound at all") }), 422, no_sound);
    refused(json!({ "file": "☃" }), 422, "base64");
    refused(json!({ "source": "some text" }), 422, "reads no text");
    refused(json!({ "file": "A".repeat(2 << 20) }), 413, "1048576 bytes");
}

/// A sound of ten seconds cut after five, among those that the model is explained on and among those that are sent.
#[test]
fn a_sound_that_breaks_off_is_told_in_the_report_and_in_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let sounds = folder.path().join("sounds");
    std::fs::create_dir(&sounds).expect("a folder");
    plant(folder.path());
    let cut = wav(10.0)[..44 + 5 * 32_000].to_vec();
    std::fs::write(sounds.join("whole.wav"), wav(10.0)).expect("a sound");
    std::fs::write(sounds.join("cut.wav"), &cut).expect("a sound");
    let imported = ImportedOptions { corpus: Some(sounds), causal: 0, ..ImportedOptions::default() };
    let server = Running::with(&[folder.path().into()], imported, "127.0.0.1", Limits::default());
    let lost = "breaks off at 5.0 s of the 10.0 s that its header promises";
    // Where the file lies is nothing a browser need know.
    let expected = json!([format!("`cut.wav` {lost}")]);
    assert_eq!(server.get("/api/reports/0").json()["report"]["corpus"]["warnings"], expected);
    let answer = server.post("/api/models/0/explain", &json!({ "sentence": { "file": STANDARD.encode(&cut) }, "sites": [0] })).json();
    assert_eq!(
        (&answer["warning"], &answer["sample"]["scene"]["n_steps"]),
        (&json!(format!("the file that was sent {lost}")), &json!(250))
    );
    assert_eq!(server.post("/api/jobs", &json!({ "model": 0, "sentences": 2 })).status, 202);
    assert!(soon(|| server.get("/api/jobs").json()[0]["state"] == "done"));
    assert_eq!(server.get("/api/reports/1").json()["report"]["corpus"]["warnings"], expected);
}

/// What a page lets through, 12 MB, is taken by a server as it is started. The other file is 120 bytes longer in base64 than all that is taken.
#[test]
fn twelve_megabytes_are_taken_and_little_more() {
    let folder = tempfile::tempdir().expect("a folder");
    plant(folder.path());
    let server = Running::with(&[folder.path().into()], ImportedOptions::default(), "127.0.0.1", Limits::default());
    let send = |n_bytes: usize| {
        server.post("/api/models/0/explain", &json!({ "sentence": { "file": STANDARD.encode(vec![0_u8; n_bytes]) }, "sites": [0] }))
    };
    let taken = send(12_000_000);
    assert!(taken.status == 422 && taken.error().contains("does not begin as a sound does"), "{} bytes", taken.body.len());
    let refused = send(12_583_000);
    assert_eq!((refused.status, refused.error().as_str()), (413, "the body is larger than the 16777216 bytes that are taken; send less"));
    server.still_serves();
}
