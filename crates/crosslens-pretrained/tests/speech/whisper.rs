//! The planted model, asked as users ask.

use std::path::Path;

use crosslens_analysis::timing::Segment;
use crosslens_pretrained::audio::{SoundFile, Windows};
use crosslens_pretrained::speech::{Listening, Speech, SpeechError, SpeechTokens, Task};
use serde_json::json;

use crate::planted::{self, SAID, plant};

fn planted_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    plant(folder.path());
    std::fs::write(folder.path().join("sound.wav"), planted::wav(10.0)).expect("writable");
    folder
}

fn transcribe(folder: &Path, how: &Listening) -> Result<(Vec<Segment>, Option<String>), SpeechError> {
    let speech = Speech::open(folder)?;
    let mut passages = speech.listen(SoundFile::open(folder.join("sound.wav"))?, how)?;
    let mut segments = Vec::new();
    for passage in passages.by_ref() {
        segments.extend(passage?.segments);
    }
    let language = passages.hears().language().map(str::to_owned);
    let segments = segments.iter().map(|segment| speech.segment(segment, language.as_deref())).collect::<Result<_, _>>()?;
    Ok((segments, language))
}

fn refused(folder: &Path, how: &Listening) -> String {
    transcribe(folder, how).expect_err("refused").to_string()
}

/// Words are looked at in the seconds that were planted; the path begins with the first, wherever that is.
fn assert_planted(segments: &[Segment]) {
    let [segment] = segments else { panic!("one segment: {segments:#?}") };
    assert_eq!(segment.text, "the cat sat down");
    assert_eq!(segment.words.len(), SAID.len());
    for (word, (text, seconds)) in segment.words.iter().zip(&SAID) {
        assert_eq!(word.text, *text);
        assert!((word.start - seconds.start as f64).abs() < 0.1 && (word.end - seconds.end as f64).abs() < 0.1, "{word:?}, {seconds:?}");
        assert!(word.confidence > 0.9 && word.confidence <= 1.0);
    }
}

#[test]
fn words_are_found_at_the_seconds_where_attention_was_planted() {
    let folder = planted_folder();
    let how = Listening { words: true, ..Listening::default() };
    let (segments, language) = transcribe(folder.path(), &how).expect("a transcript");
    assert_planted(&segments);
    assert_eq!((segments[0].start, segments[0].end, language.as_deref()), (0.0, 8.0, Some("en")));
    assert!(segments[0].no_speech.is_some_and(|silent| silent < 0.1) && segments[0].confidence > 0.9);
    let (segments, _) = transcribe(folder.path(), &Listening { without_timestamps: true, ..how.clone() }).expect("a transcript");
    assert_planted(&segments);
    assert_eq!((segments[0].start, segments[0].end), (0.0, 10.0), "all of the sound");
    let (segments, _) = transcribe(folder.path(), &Listening { n_beams: 3, ..how }).expect("a transcript");
    assert_planted(&segments);
}

/// The other head always looks at the first second: it says nothing of the words, and takes no part unless it is named.
#[test]
fn only_named_heads_are_asked() {
    let folder = planted_folder();
    let times = |heads: serde_json::Value| {
        let mut generation = planted::generation();
        generation["alignment_heads"] = heads;
        planted::write(folder.path(), "generation_config.json", &generation);
        transcribe(folder.path(), &Listening { words: true, ..Listening::default() })
    };
    let starts = |(segments, _): (Vec<Segment>, _)| segments[0].words.iter().map(|word| word.start).collect::<Vec<_>>();
    let right = starts(times(json!([[0, 0]])).expect("a head"));
    let wrong = starts(times(json!([[0, 1]])).expect("a head"));
    assert_ne!(right, wrong);
    assert!(!Speech::open(folder.path()).map(|speech| speech.alignment_heads().heads.clone()).expect("a model").is_empty());
    for (heads, message) in [
        (json!([[1, 0]]), "names layer 1, head 0, which the model does not have"),
        (json!([[0, 2]]), "names layer 0, head 2, which the model does not have"),
        (json!([[0]]), "holds [0]; a layer and a head are meant"),
        (json!(7), "is 7; pairs of a layer and a head are meant"),
    ] {
        let found = times(heads).expect_err("refused").to_string();
        assert!(found.contains(message), "{found}");
    }
    times(json!(null)).expect("all heads of the upper half");
    let heads = Speech::open(folder.path()).expect("a model").alignment_heads().clone();
    assert_eq!((heads.heads, heads.are_named), (vec![(0, 0), (0, 1)], false));
}

#[test]
fn old_folders_say_it_by_the_names_of_their_tokens() {
    let folder = planted_folder();
    let prompts = || {
        let speech = Speech::open(folder.path()).expect("a model");
        let tokens: &SpeechTokens = speech.tokens();
        let prompts = [(Task::Transcribe, true), (Task::Transcribe, false), (Task::Translate, true)];
        prompts.map(|(task, with_times)| tokens.prompt(Some("de"), task, with_times).expect("a prompt"))
    };
    let today = prompts();
    planted::write(folder.path(), "generation_config.json", &planted::old_generation());
    assert_eq!(prompts(), today);
    // Of English alone: the first thing forced is that there are no timestamps.
    let mut english = planted::old_generation();
    english["forced_decoder_ids"] = json!([[1, 15]]);
    planted::write(folder.path(), "generation_config.json", &english);
    let speech = Speech::open(folder.path()).expect("a model");
    assert!(!speech.tokens().is_multilingual());
    assert_eq!(speech.tokens().prompt(None, Task::Transcribe, false).expect("a prompt"), [9, 15]);
}

#[test]
fn vocab_and_merges_of_older_folders_are_read() {
    let folder = planted_folder();
    std::fs::remove_file(folder.path().join("tokenizer.json")).expect("there");
    assert!(refused(folder.path(), &Listening::default()).contains("has no tokenizer"));
    planted::write(folder.path(), "vocab.json", &planted::vocabulary());
    std::fs::write(folder.path().join("merges.txt"), "#version: 0.2\n").expect("writable");
    let added = planted::special_tokens().into_iter().map(|(id, name)| (name, json!(id))).collect();
    planted::write(folder.path(), "added_tokens.json", &serde_json::Value::Object(added));
    let (segments, language) = transcribe(folder.path(), &Listening { words: true, ..Listening::default() }).expect("a transcript");
    assert_planted(&segments);
    assert_eq!(language.as_deref(), Some("en"));
}

#[test]
fn what_a_model_does_not_know_is_refused() {
    let folder = planted_folder();
    let asked = |language: &str| Listening { language: Some(language.into()), ..Listening::default() };
    assert!(refused(folder.path(), &asked("fr")).ends_with("does not know the language `fr`; it knows en, de"));
    assert_eq!(transcribe(folder.path(), &asked("<|DE|>")).expect("a transcript").1.as_deref(), Some("de"));
    let mut generation = planted::generation();
    generation["is_multilingual"] = json!(false);
    planted::write(folder.path(), "generation_config.json", &generation);
    assert!(refused(folder.path(), &asked("de")).contains("leave the language out"));
    assert!(refused(folder.path(), &Listening { task: Task::Translate, ..Listening::default() }).contains("leave the task out"));
    let english = Listening { without_timestamps: true, words: true, ..Listening::default() };
    let (segments, language) = transcribe(folder.path(), &english).expect("a transcript");
    assert_planted(&segments);
    assert_eq!(language, None, "it knows one alone, and is told none");
    for (field, value, message) in [
        ("no_timestamps_token_id", json!(99_999), "`no_timestamps_token_id` names the token 99999; the model writes 1517"),
        ("lang_to_id", json!({ "<|en|>": "x" }), "gives `<|en|>` the value \"x\""),
        ("lang_to_id", json!([3]), "names with tokens' numbers are meant"),
        ("task_to_id", json!({ "transcribe": 99_999 }), "`task_to_id` names the token 99999"),
        ("max_initial_timestamp_index", json!(-1), "is no whole number"),
        ("is_multilingual", json!("yes"), "true or false is meant"),
        ("eos_token_id", json!([]), "is missing"),
    ] {
        let mut generation = planted::generation();
        generation[field] = value;
        planted::write(folder.path(), "generation_config.json", &generation);
        let found = refused(folder.path(), &Listening::default());
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn suppressed_tokens_are_not_written() {
    let folder = planted_folder();
    let text = |field: &str, tokens: serde_json::Value| {
        let mut generation = planted::generation();
        generation[field] = tokens;
        planted::write(folder.path(), "generation_config.json", &generation);
        let how = Listening { without_timestamps: true, ..Listening::default() };
        let (segments, _) = transcribe(folder.path(), &how).expect("a transcript");
        segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text("suppress_tokens", json!([])), "the cat sat down");
    let without_cat = text("suppress_tokens", json!([1]));
    assert!(without_cat.starts_with("the") && !without_cat.contains("cat"), "{without_cat}");
    // Without its first word it would rather repeat the last token of its prompt, which is no text, and then begin as ever.
    let other_beginning = text("begin_suppress_tokens", json!([0, 8, 15]));
    assert!(!other_beginning.starts_with("the"), "{other_beginning}");
}

#[test]
fn other_models_and_other_ears_are_refused() {
    let golden = |case: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
    assert!(Speech::open(&golden("t5")).map(drop).expect_err("text").to_string().contains("family t5, which hears nothing"));
    let folder = planted_folder();
    planted::write(folder.path(), "preprocessor_config.json", &json!({ "feature_size": 128 }));
    let found = refused(folder.path(), &Listening::default());
    assert!(found.contains("is not what the model") && found.ends_with("3000 frames of 80 mels"), "{found}");
}

/// What the convolutions make of a frame is above 0 where there is noise and below where there is silence.
#[test]
fn a_model_that_listens_tells_noise_from_silence() {
    let folder = tempfile::tempdir().expect("a folder");
    planted::plant_listening(folder.path());
    let path = folder.path().join("sound.wav");
    std::fs::write(&path, planted::noise(0..5)).expect("writable");
    let speech = Speech::open(folder.path()).expect("a model");
    let mut windows = Windows::over(SoundFile::open(&path).expect("a sound"));
    let signal = speech.signal(windows.window().expect("a sound").expect("ten seconds of it"));
    let (rows, d) = speech.model().sensed(&signal).expect("frames");
    let loudest = |step: usize| rows[step * d..(step + 1) * d].iter().copied().fold(f32::MIN, f32::max);
    let is_loud = |step: &usize| loudest(*step) > 0.1;
    assert_eq!((5..245).filter(is_loud).count(), 240);
    assert_eq!((255..1500).filter(is_loud).count(), 0);
}
