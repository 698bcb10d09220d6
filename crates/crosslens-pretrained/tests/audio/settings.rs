//! What a folder says of its model's ears.

use crosslens_pretrained::audio::LogMel;

fn read(name: &str, config: &str) -> Result<usize, String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), config).expect("a file");
    let place = format!("{}/", folder.path().display());
    LogMel::read(folder.path()).map(|mel| mel.n_mels()).map_err(|error| error.to_string().replace(&place, ""))
}

#[test]
fn a_folder_that_says_nothing_has_whispers_first_ears() {
    assert_eq!(read("other.json", "{}"), Ok(80));
    assert_eq!(read("preprocessor_config.json", "{}"), Ok(80));
    assert_eq!(read("processor_config.json", "{}"), Ok(80));
}

#[test]
fn mels_are_read_from_either_file() {
    let whisper = r#"{"chunk_length": 30, "dither": 0.0, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128,
        "hop_length": 160, "n_fft": 400, "n_samples": 480000, "nb_max_frames": 3000, "padding_value": 0.0, "sampling_rate": 16000}"#;
    assert_eq!(read("preprocessor_config.json", whisper), Ok(128));
    assert_eq!(read("processor_config.json", &format!(r#"{{"feature_extractor": {whisper}}}"#)), Ok(128));
}

#[test]
fn other_ears_are_refused_by_their_field() {
    let cases = [
        (r#"{"sampling_rate": 8000}"#, "field `sampling_rate` is 8000; models of speech are read with 16000, as every Whisper has it"),
        (r#"{"hop_length": 320}"#, "field `hop_length` is 320; models of speech are read with 160, as every Whisper has it"),
        (r#"{"n_fft": 512}"#, "field `n_fft` is 512; models of speech are read with 400, as every Whisper has it"),
        (r#"{"chunk_length": 15}"#, "field `chunk_length` is 15; models of speech are read with 30, as every Whisper has it"),
        (r#"{"dither": 0.01}"#, "field `dither` is 0.01; set it to 0, as every Whisper has it"),
        (r#"{"padding_value": 1}"#, "field `padding_value` is 1; set it to 0, as every Whisper has it"),
        (r#"{"feature_size": 129}"#, "field `feature_size` is 129; at most 128 mels can be told apart, and Whisper has 80 or 128"),
        (r#"{"feature_size": 0}"#, "field `feature_size` is 0; a whole number from 1 to 16777216 is meant"),
        (
            r#"{"feature_extractor_type": "SpeechT5FeatureExtractor"}"#,
            "field `feature_extractor_type` is `SpeechT5FeatureExtractor`; only WhisperFeatureExtractor is known here",
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(read("preprocessor_config.json", config), Err(format!("`preprocessor_config.json`: {expected}")));
    }
    let error = read("processor_config.json", r#"{"feature_extractor": 3}"#);
    assert_eq!(error, Err("`processor_config.json`: field `feature_extractor` is 3; an object is meant".into()));
    assert!(read("preprocessor_config.json", "[").is_err());
}
