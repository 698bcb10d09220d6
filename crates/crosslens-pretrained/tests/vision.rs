//! Models of pictures against transformers: `tests/golden/make_vision.py` built them at random and wrote down what they do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::explain::{Live, Options, explain};
use crosslens_analysis::{
    AttentionRow, Existing, Fed, Intervene, Pair, PositionBias, Recordable, Recorded, Recording, RecordingWriter, Signal, SiteKind, Token,
};
use crosslens_pretrained::{Decoding, EarlyStopping, Grid, Model, PretrainedError, Subject, TokenNames, Wanted};
use safetensors::SafeTensors;

const CASES: [&str; 9] =
    ["vit-trocr", "deit-trocr", "beit-trocr", "beit-shared", "vit-gpt2", "vit-gpt2-projected", "vit-bert", "vit-roberta", "blip"];

fn folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/vision").join(case)
}

fn open(case: &str) -> Model {
    Model::open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// What was written down of one model.
struct Golden(Vec<u8>);

impl Golden {
    fn of(case: &str) -> Self {
        Self(std::fs::read(folder(case).join("golden.safetensors")).expect("golden values are committed"))
    }

    fn floats(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let arrays = SafeTensors::deserialize(&self.0).expect("golden values are whole");
        let array = arrays.tensor(name).unwrap_or_else(|_| panic!("golden values have no {name}"));
        (array.shape().to_vec(), array.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// By row; a single row of an array of one dimension.
    fn tokens(&self, name: &str) -> Vec<Vec<Token>> {
        let arrays = SafeTensors::deserialize(&self.0).expect("golden values are whole");
        let array = arrays.tensor(name).unwrap_or_else(|_| panic!("golden values have no {name}"));
        let numbers: Vec<Token> = array.data().as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as Token).collect();
        let width = array.shape().last().copied().unwrap_or(1);
        numbers.chunks(width).map(<[Token]>::to_vec).collect()
    }

    fn pictures(&self) -> Vec<Signal> {
        let (shape, values) = self.floats("pixels");
        values.chunks(shape[1..].iter().product()).map(|picture| Signal::new(picture.to_vec())).collect()
    }

    fn fed(&self) -> Vec<Vec<Token>> {
        let lengths = self.tokens("target_lengths").remove(0);
        self.tokens("target_in").into_iter().zip(lengths).map(|(row, length)| row[..length as usize].to_vec()).collect()
    }

    /// Pairs of which each step of a picture has its place as its code.
    fn pairs(&self) -> Vec<Pair> {
        let n_steps = self.floats("encoder_states").0[1];
        let pair = |(picture, fed): (Signal, Vec<Token>)| Pair {
            signal: Some(picture),
            ..Pair::new((0..n_steps as Token).collect(), [&fed[1..], &[3]].concat())
        };
        self.pictures().into_iter().zip(self.fed()).map(pair).collect()
    }
}

fn record(case: &str) -> (Golden, Subject, Vec<Recorded>) {
    let golden = Golden::of(case);
    let n_steps = golden.floats("encoder_states").0[1];
    let names = TokenNames { source: (0..n_steps).map(|step| format!("step {step}")).collect(), target: Vec::new() };
    let wanted = Wanted { kinds: SiteKind::ALL.to_vec(), states: true, answers: true };
    let subject = Subject::new(Arc::new(open(case)), names, wanted, 1).expect("a subject");
    let recorded = subject.record(&golden.pairs(), Fed::Given(&golden.fed())).unwrap_or_else(|error| panic!("{case}: {error}"));
    (golden, subject, recorded)
}

#[test]
fn every_attention_and_the_encoder_s_states_are_those_of_transformers() {
    for case in CASES {
        let (golden, subject, recorded) = record(case);
        let description = subject.description();
        let mut worst = 0.0f32;
        for (number, site) in description.sites.iter().enumerate() {
            let name = ["cross", "encoder", "decoder"][SiteKind::ALL.iter().position(|kind| *kind == site.kind).expect("a kind")];
            let (shape, values) = golden.floats(&format!("{name}.{}", site.layer));
            let [_, heads, rows, columns] = shape[..] else { panic!("shape of {name}") };
            for (picture, recorded) in recorded.iter().enumerate() {
                let n_queries = if site.kind == SiteKind::EncoderSelf { recorded.source.len() } else { recorded.fed.len() };
                let n_keys = recorded.attention[number].len() / n_queries;
                for (place, weight) in recorded.attention[number].iter().enumerate() {
                    let (query, key) = (place / n_keys, place % n_keys);
                    worst = worst.max((weight - values[((picture * heads + site.head) * rows + query) * columns + key]).abs());
                }
            }
        }
        assert!(worst < 1e-4, "{case}: attention is off by {worst}");

        let stream = description.streams.iter().position(|stream| stream.name == "encoder").expect("the states that are asked");
        let (_, states) = golden.floats("encoder_states");
        let found = recorded.iter().flat_map(|recorded| &recorded.states[stream]);
        assert_eq!(found.clone().count(), states.len(), "{case}");
        let worst = found.zip(&states).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs() / b.abs().max(1.0)));
        assert!(worst < 1e-4, "{case}: states are off by {worst}");
    }
}

#[test]
fn every_logit_is_that_of_transformers() {
    for case in CASES {
        let (golden, model) = (Golden::of(case), open(case));
        let (shape, values) = golden.floats("logits");
        let mut worst = 0.0f32;
        for (number, (picture, fed)) in golden.pictures().iter().zip(golden.fed()).enumerate() {
            let logits = model.logits_of(picture, &fed).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(logits.len(), fed.len() * shape[2]);
            let expected = &values[number * shape[1] * shape[2]..];
            worst = logits.iter().zip(expected).fold(worst, |worst, (a, b)| worst.max((a - b).abs()));
        }
        assert!(worst < 1e-4, "{case}: {worst}");
    }
}

#[test]
fn captions_are_those_of_transformers() {
    for case in CASES {
        let (golden, model) = (Golden::of(case), open(case));
        let mut greedy = Decoding::greedy(&model);
        greedy.rules.max_tokens = 12;
        let beam = |length_penalty, early_stopping| {
            let mut how = greedy.clone();
            (how.rules.n_beams, how.rules.length_penalty, how.rules.early_stopping) = (4, length_penalty, early_stopping);
            how
        };
        let ways = [("greedy", greedy.clone()), ("beam", beam(1.0, EarlyStopping::No)), ("beam_lp2", beam(2.0, EarlyStopping::Yes))];
        for (name, how) in ways {
            for (number, (picture, expected)) in golden.pictures().iter().zip(golden.tokens(name)).enumerate() {
                let written = model.write(picture, &how).expect("a caption").remove(0);
                let n = written.tokens.len();
                assert_eq!(model.generation().start, expected[0], "{case}");
                assert_eq!(written.tokens, expected[1..=n], "{case}, {name}");
                assert!(expected[n + 1..].iter().all(|token| Some(*token) == model.generation().pad), "{case}, {name}");
                if name != "greedy" {
                    let score = golden.floats(&format!("{name}.scores")).1[number];
                    assert!((written.score - f64::from(score)).abs() < 1e-4, "{case}, {name}");
                }
            }
        }
    }
}

/// Products do not mix rows, so that company changes no bit.
#[test]
fn a_picture_alone_is_the_same_as_in_a_batch_and_on_any_threads() {
    for case in CASES {
        let (golden, subject, recorded) = record(case);
        let (pairs, fed) = (golden.pairs(), golden.fed());
        assert!(pairs.len() > 1, "{case}");
        for n_threads in [2, 3] {
            let again = subject.on_threads(n_threads).expect("a subject");
            assert_eq!(again.record(&pairs, Fed::Given(&fed)).expect("a recording"), recorded, "{case}");
        }
        for (number, recorded) in recorded.iter().enumerate() {
            let alone = subject.record(&pairs[number..=number], Fed::Given(&fed[number..=number])).expect("a recording").remove(0);
            assert_eq!(Recorded { number: number as u64, ..alone }, *recorded, "{case}");
        }
    }
}

/// Maps out of the middle of a tensor, turned tensors and biases of a grid must be the ones that made the scores.
#[test]
fn terms_add_up_to_the_model_s_own_scores_at_every_site() {
    for case in CASES {
        let (golden, subject, _) = record(case);
        let pairs = golden.pairs();
        let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 3, fed: Fed::Target };
        let options = Options { causal: 0, samples: 0, ..Options::default() };
        let report = explain(&corpus, None, &options, &mut |_| {}).expect("an explanation").report;
        assert_eq!(report.sites.len(), subject.description().sites.len());
        for site in &report.sites {
            let error = site.error.score.max(site.error.attention.expect("attention was recorded"));
            assert!(error < 1e-5, "{case}, {} {}.{}: {error}", site.kind, site.layer, site.head);
        }
    }
}

#[test]
fn running_again_from_the_middle_equals_running_all() {
    struct Uniform(usize, bool);
    impl Intervene for Uniform {
        fn site(&self) -> Option<usize> {
            self.1.then_some(self.0)
        }
        fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
            if row.site == self.0 {
                weights.fill(1.0 / weights.len() as f32);
            }
        }
    }
    for case in ["vit-gpt2-projected", "blip"] {
        let (golden, subject, _) = record(case);
        let (pairs, fed) = (golden.pairs(), golden.fed());
        let run = |how: &dyn Intervene| subject.run(&pairs, Fed::Given(&fed), how).expect("answers");
        for site in 0..subject.description().sites.len() {
            assert_eq!(run(&Uniform(site, true)), run(&Uniform(site, false)), "{case}, site {site}");
        }
    }
}

#[test]
fn a_recording_keeps_the_bias_of_a_grid() {
    let (_, subject, recorded) = record("beit-trocr");
    let n_grids = |description: &crosslens_analysis::Description| {
        description.sites.iter().filter(|site| matches!(site.map.position_bias(), Some(PositionBias::Grid(_)))).count()
    };
    assert_eq!(n_grids(subject.description()), 8, "two layers of four heads");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, subject.description(), Existing::Refuse).expect("a recording");
    writer.add(&recorded).expect("sentences");
    writer.finish().expect("a recording");
    let again = Recording::open(&path).expect("a recording");
    assert_eq!(again.description().sites, subject.description().sites);
}

#[test]
fn the_grid_says_where_steps_lie() {
    let grid = |case: &str| open(case).grid().expect("a model of pictures");
    assert_eq!(grid("vit-trocr"), Grid { special: 1, rows: 2, columns: 3, height: 16, width: 24 });
    assert_eq!(grid("deit-trocr"), Grid { special: 2, rows: 3, columns: 3, height: 24, width: 24 });
    assert_eq!(grid("blip"), Grid { special: 1, rows: 3, columns: 3, height: 24, width: 24 });
    let bart = Model::open(&folder("../bart")).expect("a model of sentences");
    assert_eq!(bart.grid(), None);
}

#[test]
fn pictures_of_another_size_are_refused() {
    let error = open("vit-trocr").n_source_steps(&Signal::new(vec![0.0; 3 * 24 * 24])).expect_err("too many pixels");
    assert!(matches!(error, PretrainedError::WrongSignal { .. }));
    assert!(error.to_string().contains("24 × 16 pixels"), "{error}");
}

/// A folder whose configuration was changed.
fn changed(case: &str, change: impl Fn(&mut serde_json::Value)) -> Result<Model, PretrainedError> {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(folder(case)).expect("a folder").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
    }
    let path = copy.path().join("config.json");
    let mut config = serde_json::from_slice(&std::fs::read(&path).expect("a configuration")).expect("JSON");
    change(&mut config);
    std::fs::write(&path, config.to_string()).expect("a configuration");
    Model::open(copy.path())
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let refused = |case: &str, half: &str, field: &str, value: serde_json::Value, says: &str| {
        let change = |config: &mut serde_json::Value| config[half][field] = value.clone();
        let error = changed(case, change).expect_err("a model that cannot be").to_string();
        assert!(error.contains(says), "{error}");
    };
    refused("vit-trocr", "encoder", "model_type", "swin".into(), "known are vit, deit and beit");
    refused("vit-trocr", "decoder", "model_type", "opt".into(), "known are trocr, gpt2, bert and roberta");
    refused("vit-trocr", "encoder", "patch_size", 99.into(), "larger than a picture");
    refused("vit-trocr", "encoder", "image_size", serde_json::json!([16, 24, 8]), "not of two whole numbers");
    refused("vit-trocr", "encoder", "num_attention_heads", 5.into(), "does not divide hidden_size = 12");
    refused("vit-trocr", "decoder", "cross_attention_hidden_size", 13.into(), "states have 12 dimensions");
    refused("beit-trocr", "encoder", "image_size", serde_json::json!([16, 24]), "square pictures only");
    refused("deit-trocr", "decoder", "max_position_embeddings", 1_000_000.into(), "at most 16384");
    refused("vit-gpt2", "decoder", "add_cross_attention", false.into(), "sees nothing of the picture");
    refused("vit-roberta", "decoder", "pad_token_id", 0.into(), "is 0, the token that this decoder fills up with");
    refused("vit-roberta", "decoder", "max_position_embeddings", 2.into(), "is 2; 2 are for padding");
    refused("blip", "text_config", "sep_token_id", 48.into(), "names the token 48");
    let error = changed("vit-gpt2", |config| config["encoder"] = serde_json::Value::Null).expect_err("half a model");
    assert!(error.to_string().contains("field `encoder` is missing"), "{error}");
}

/// `BlipTextConfig` of transformers has 8 heads and 30524 words where BERT has 12 and 30522; 12 dimensions are no 8 heads.
#[test]
fn what_a_configuration_of_blip_leaves_out_is_as_transformers_has_it() {
    let without = |field: &str| {
        let change = |config: &mut serde_json::Value| drop(config["text_config"].as_object_mut().expect("half a model").remove(field));
        changed("blip", change)
    };
    for (field, says) in [
        ("num_attention_heads", "is 8, which does not divide hidden_size = 12"),
        ("vocab_size", "30524"),
        ("bos_token_id", "names the token 30522"),
        ("sep_token_id", "names the token 102"),
    ] {
        let error = without(field).expect_err("a model of other sizes").to_string();
        assert!(error.contains(says), "{field}: {error}");
    }
}

#[test]
fn untrained_weights_see_as_well() {
    for case in CASES {
        let (golden, model) = (Golden::of(case), open(case));
        let untrained = model.untrained(7).unwrap_or_else(|error| panic!("{case}: {error}"));
        let logits = |model: &Model| model.logits_of(&golden.pictures()[0], &golden.fed()[0]).expect("logits");
        let found = logits(&untrained);
        assert!(found.iter().all(|logit| logit.is_finite()) && found.iter().any(|logit| *logit != found[0]), "{case}");
        assert_ne!(found, logits(&model), "{case}");
    }
}
