//! Explanations on disk, and what is refused there.

use std::path::Path;

use crosslens_analysis::explain::{CodeExample, CodeExamples, Explained, MAX_WAVE_BYTES, Options, Scene, SceneWord, Spectrum};
use crosslens_analysis::report::Report;
use crosslens_analysis::timeline::{Timeline, TimelinePoint};
use crosslens_analysis::{Estimator, RecordingError, SiteKind, Visible};
use serde_json::{Value, json};

use super::planted::{Plan, Planted, QUERY, Sizes, dot, every_map};

fn saved(folder: &Path) -> Explained {
    let mut planted = Planted::of(&Plan::default(), every_map(2));
    planted.description.source.names = vec!["<eos>".into(), "猫".into()];
    let site = &mut planted.description.sites[4];
    (site.kind, site.visible, site.key) = (SiteKind::DecoderSelf, Visible::Causal, QUERY);
    (0..planted.sentences.len()).for_each(|sentence| planted.attend(sentence));
    let mut explained = planted.explain(&Options { samples: 5, ..Options::default() });
    explained.save(&folder.join("report.json")).expect("writable");
    explained
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let explained = saved(folder.path());
    let loaded = Explained::load(&folder.path().join("report.json"), 100).expect("just saved");
    assert_eq!(loaded.report, explained.report);
    let (one, other) = (&loaded.samples, &explained.samples);
    assert_eq!((&one.source, &one.target, &one.visible), (&other.source, &other.target, &other.visible));
    assert_eq!((one.source.name(1), one.source.name(2)), ("猫".into(), "#2".into()));
    assert_eq!(one.sentences.len(), 5);
    for (one, other) in one.sentences.iter().zip(&other.sentences) {
        assert_eq!(one.sentence, other.sentence);
        assert_eq!((&one.shapes, &one.attention, &one.pieces), (&other.shapes, &other.attention, &other.pieces));
        assert_eq!((&one.bias, &one.value_weighted), (&other.bias, &other.value_weighted));
        assert!(one.bias[4].iter().any(|&bias| bias != 0.0) && one.bias[0].is_empty());
    }
    for (one, other) in one.averages.iter().flatten().flatten().zip(other.averages.iter().flatten().flatten()) {
        assert!((one - other).abs() < 1e-7);
    }
    assert_eq!(Explained::load(&folder.path().join("report.json"), 2).expect("just saved").samples.sentences.len(), 2);
}

/// The first sentence as a sound, changed as a test wants it, the second as a picture.
fn with_scenes(folder: &Path, change: impl FnOnce(&mut Scene)) -> Explained {
    let mut explained = saved(folder);
    let n_source = |explained: &Explained, sentence: usize| explained.samples.sentences[sentence].sentence.source.len();
    let mut sound = Scene::Sound {
        seconds_per_step: 0.02,
        n_steps: n_source(&explained, 0) - 1,
        spectrum: Spectrum { seconds_per_frame: 0.01, n_bands: 3, levels: (0..12).collect() },
        wave: Some(b"RIFF\x04\0\0\0WAVE".to_vec()),
        words: vec![SceneWord { text: "猫".into(), start: 0.0, end: 0.04, first_row: 0, last_row: 0 }],
        path: vec![(0, 0), (0, 1), (1, 1)],
    };
    change(&mut sound);
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01".to_vec();
    let picture = Scene::Picture { png, n_special: 1, rows: 1, columns: n_source(&explained, 1) - 1 };
    (explained.samples.sentences[0].scene, explained.samples.sentences[1].scene) = (Some(sound), Some(picture));
    let examples = vec![CodeExample { sample: 0, step: 1 }, CodeExample { sample: 1, step: 0 }];
    explained.samples.codes = vec![CodeExamples { code: 1, examples }];
    explained.save(&folder.join("report.json")).expect("writable");
    explained
}

#[test]
fn scenes_and_codes_are_saved_with_their_sentences() {
    let folder = tempfile::tempdir().expect("a folder");
    let explained = with_scenes(folder.path(), |_| ());
    let load = |n_samples: usize| Explained::load(&folder.path().join("report.json"), n_samples).expect("just saved").samples;
    let loaded = load(100);
    for (one, other) in loaded.sentences.iter().zip(&explained.samples.sentences) {
        assert_eq!(one.scene, other.scene);
        assert_eq!(one.sentence, other.sentence);
    }
    assert_eq!(loaded.codes, explained.samples.codes);
    assert_eq!(load(1).codes[0].examples, [CodeExample { sample: 0, step: 1 }], "a sentence that is not there is no example");
    // Files without a sound or a picture are as they were before there were any, and open as ever.
    saved(folder.path());
    let bytes = std::fs::read(folder.path().join("report.samples.safetensors")).expect("saved");
    assert!(!String::from_utf8_lossy(&bytes).contains("scene"));
    let plain = load(100);
    assert!(plain.codes.is_empty() && plain.sentences.iter().all(|sample| sample.scene.is_none()));
}

/// Breaks what belongs to a sound: its seconds a step, steps, spectrum, wave and path.
type Break<'a> = &'a dyn Fn(&mut f64, &mut usize, &mut Spectrum, &mut Vec<u8>, &mut Vec<(u32, u32)>);

#[test]
fn scenes_that_are_not_of_their_sentence_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let broken = |says: &str, change: Break<'_>| {
        with_scenes(folder, |scene| {
            let Scene::Sound { seconds_per_step, n_steps, spectrum, wave: Some(wave), path, .. } = scene else { unreachable!("a sound") };
            change(seconds_per_step, n_steps, spectrum, wave, path);
        });
        refused(folder, says);
    };
    broken("`seconds_per_step` must be a number of seconds above 0", &|seconds, _, _, _, _| *seconds = -0.5);
    broken("steps of sound are more than", &|_, n_steps, _, _, _| *n_steps = 1000);
    broken("`seconds_per_frame`", &|_, _, spectrum, _, _| spectrum.seconds_per_frame = 0.0);
    broken("the sound is no WAV file", &|_, _, _, wave, _| wave[0] = b'M');
    broken("bytes, more than", &|_, _, _, wave, _| wave.resize(MAX_WAVE_BYTES + 1, 0));
    broken("the path goes through row 99 and step 0", &|_, _, _, _, path| path.push((99, 0)));
}

/// The pieces and the bias add up to scores whose softmax is the attention, under the mask.
#[test]
fn pieces_and_bias_make_the_attention() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = saved(folder.path()).samples;
    for sample in &samples.sentences {
        for (site, &(n_queries, n_keys)) in sample.shapes.iter().enumerate() {
            let bias = |place: usize| sample.bias[site].get(place).copied().unwrap_or(0.0);
            for query in 0..n_queries {
                let n_seen = samples.visible[site].n_keys(query, n_keys);
                let score = |key: usize| -> f64 {
                    let place = query * n_keys + key;
                    let pieces = sample.pieces[site].iter().skip(place).step_by(n_queries * n_keys);
                    f64::from(pieces.sum::<f32>() + bias(place))
                };
                let total: f64 = (0..n_seen).map(|key| score(key).exp()).sum();
                for key in 0..n_keys {
                    let weight = if key < n_seen { score(key).exp() / total } else { 0.0 };
                    let found = f64::from(sample.attention[site][query * n_keys + key]);
                    assert!((weight - found).abs() < 1e-5, "site {site}, {query}, {key}: {weight} and {found}");
                }
            }
        }
    }
}

fn refused(folder: &Path, says: &str) {
    let error = Explained::load(&folder.join("report.json"), 100).expect_err("a bad report");
    let text = error.to_string();
    assert!(text.contains(says) && text.contains("report"), "{text}, not {says}");
}

fn change(folder: &Path, change: impl Fn(&mut Value)) {
    let path = folder.join("report.json");
    let mut report: Value = serde_json::from_slice(&std::fs::read(&path).expect("saved")).expect("JSON");
    change(&mut report);
    std::fs::write(path, report.to_string()).expect("writable");
}

#[test]
fn reports_that_lead_elsewhere_or_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for elsewhere in ["../other.safetensors", "/etc/passwd", "a/b", ".."] {
        saved(folder);
        change(folder, |report| report["samples"] = elsewhere.into());
        refused(folder, "the name of a file beside it");
    }
    saved(folder);
    change(folder, |report| report["schema"] = "crosslens-report/9".into());
    refused(folder, "crosslens-report/9");
    change(folder, |report| *report = json!({ "a": 1 }));
    refused(folder, "`schema` is missing");
    saved(folder);
    change(folder, |report| report["sites"].as_array_mut().expect("sites").truncate(2));
    refused(folder, "it has 6 sites, its report 2");
    saved(folder);
    change(folder, |report| report["sites"][0]["kind"] = "encoder-self".into());
    // Sentences of the plan are as long as their targets; a map of another kind has another number of pieces.
    change(folder, |report| report["sites"][0]["map"] = "additive".into());
    refused(folder, "samples.0.sites.0.pieces");
    saved(folder);
    change(folder, |report| report["samples"] = "gone.safetensors".into());
    let error = Explained::load(&folder.join("report.json"), 1).expect_err("no samples");
    assert!(matches!(error, RecordingError::Io { .. }), "{error}");
    saved(folder);
    let samples = folder.join("report.samples.safetensors");
    let bytes = std::fs::read(&samples).expect("saved");
    std::fs::write(&samples, &bytes[..bytes.len() / 2]).expect("writable");
    refused(folder, "samples");
    assert!(Report::load(&folder.join("report.json")).is_ok(), "the report itself is whole");
}

/// States without noise, fitted jointly: nothing is left over, so every residual lies at the mean.
#[test]
fn residuals_lie_about_the_mean() {
    let plan = Plan { n_sentences: 60, sizes: Sizes { time: 1.0, token: 1.0, rest: 0.0 }, ..Plan::default() };
    let options = Options { geometry: true, estimator: Estimator::Joint, ..Options::default() };
    let geometry = Planted::of(&plan, vec![dot()]).explain(&options).report.geometry.expect("asked for");
    for stream in &geometry.streams {
        assert!(stream.residuals.len() > 100 && stream.residuals.len() <= 256);
        for residual in &stream.residuals {
            let apart: f64 = residual.at.iter().zip(stream.mean).map(|(x, mean)| (x - mean).abs()).sum();
            assert!(apart < 1e-4, "{residual:?} and {:?}", stream.mean);
        }
    }
    let noisy =
        Planted::of(&Plan { n_sentences: 60, ..Plan::default() }, vec![dot()]).explain(&options).report.geometry.expect("asked for");
    let spread = |at: [f64; 3], mean: [f64; 3]| at.iter().zip(mean).map(|(x, mean)| (x - mean).abs()).sum::<f64>();
    let stream = &noisy.streams[0];
    assert!(stream.residuals.iter().map(|residual| spread(residual.at, stream.mean)).sum::<f64>() > 10.0);
}

#[test]
fn a_timeline_says_what_the_reports_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let explained = saved(folder.path());
    let point = TimelinePoint::of(7, &explained.report, Some(&explained.samples));
    let centred = explained.report.sites[0].shares.as_ref().expect("exact").tables["centred"];
    assert_eq!(point.sites[0].shares, Some(centred.concat()));
    assert_eq!(point.sites[5].shares.as_ref().map(Vec::len), Some(6), "an additive map has six parts");
    let average = point.sites[0].attention.as_ref().expect("given");
    assert!((f64::from(average[1][0]) - explained.samples.averages[0][1][0]).abs() <= 5e-5);
    assert_eq!(TimelinePoint::of(7, &explained.report, None).sites[0].attention, None);
    let (timeline, path) = (Timeline::new(vec![point]), folder.path().join("timeline.json"));
    timeline.save(&path).expect("writable");
    assert_eq!(Timeline::load(&path).expect("just saved"), timeline);
    // Files of versions that did not say on how many sentences.
    let said = format!("\"sentences\":{},", explained.report.corpus.pairs);
    let text = std::fs::read_to_string(&path).expect("just saved");
    assert!(text.contains(&said), "{text}");
    std::fs::write(&path, text.replace(&said, "")).expect("writable");
    assert_eq!(Timeline::load(&path).expect("an older file").points[0].sentences, None);
    for bad in [
        "{}",
        "[]",
        "{\"schema\":\"crosslens-timeline/2\",\"points\":[]}",
        "{\"schema\":\"crosslens-timeline/1\",\"points\":[],\"more\":1}",
    ] {
        std::fs::write(&path, bad).expect("writable");
        let error = Timeline::load(&path).expect_err("a bad timeline").to_string();
        assert!(error.contains("timeline.json"), "{error}");
    }
}
