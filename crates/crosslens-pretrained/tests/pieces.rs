//! An encoder keeps no whole matrix of attention where nobody looks at it: above 65,536 weights it works through its queries in pieces.
//! What comes out is what whole matrices give, and those are held against transformers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Signal, SiteKind, Token};
use crosslens_pretrained::{Model, Subject, TokenNames, Wanted};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

/// Patches on a side: with the class vector 290 steps.
const SIDE: usize = 17;
/// Steps of a whole window of Whisper.
const FRAMES: usize = 1500;

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case)
}

/// Numbers between −1 and 1, always the same.
fn chance(n: usize) -> Vec<f32> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// A golden model for larger sources: its configuration changed, and tables whose names end so drawn anew in another shape.
fn enlarged(case: &str, change: impl Fn(&mut Value), tables: &[(&str, &[usize])]) -> Model {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read(golden(case).join(name)).expect("golden models are committed");
    let mut config: Value = serde_json::from_slice(&read("config.json")).expect("JSON");
    change(&mut config);
    std::fs::write(folder.path().join("config.json"), config.to_string()).expect("writable");
    if golden(case).join("generation_config.json").exists() {
        std::fs::write(folder.path().join("generation_config.json"), read("generation_config.json")).expect("writable");
    }
    let bytes = read("model.safetensors");
    let mut n_drawn = 0;
    let stored: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = SafeTensors::deserialize(&bytes)
        .expect("tensors")
        .tensors()
        .into_iter()
        .map(|(name, view)| match tables.iter().find(|(end, _)| name.ends_with(end)) {
            Some((_, shape)) => {
                n_drawn += 1;
                let numbers = chance(shape.iter().product()).into_iter().flat_map(f32::to_le_bytes).collect();
                (name, Dtype::F32, shape.to_vec(), numbers)
            }
            None => (name, view.dtype(), view.shape().to_vec(), view.data().to_vec()),
        })
        .collect();
    assert!(n_drawn >= tables.len(), "{case}: {n_drawn} tables");
    let views = stored.iter().map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).expect("a tensor")));
    let weights = safetensors::serialize(views, None).expect("tensors");
    std::fs::write(folder.path().join("model.safetensors"), weights).expect("writable");
    Model::open(folder.path()).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// The decoder's attention to the source and the states it asks are the same, whether the encoder's own attention is wanted, and there as
/// a whole, or not.
fn check(case: &str, model: Model, pairs: &[Pair]) {
    let model = Arc::new(model);
    let codes = if model.reads_signals() { vec!["code".to_owned()] } else { Vec::new() };
    let names = TokenNames { source: codes, target: Vec::new() };
    let record = |kinds: &[SiteKind]| {
        let wanted = Wanted { kinds: kinds.to_vec(), states: true, answers: true };
        let subject = Subject::new(model.clone(), names.clone(), wanted, 1).expect("a subject");
        let recorded = subject.record(pairs, Fed::Target).unwrap_or_else(|error| panic!("{case}: {error}"));
        let description = subject.description();
        let cross = (0..description.sites.len()).filter(|&site| description.sites[site].kind == SiteKind::Cross).collect::<Vec<_>>();
        let asked = description.streams.iter().position(|stream| stream.name == "encoder").expect("the states that are asked");
        let of_pair = |pair: &crosslens_analysis::Recorded| {
            let attention = cross.iter().flat_map(|&site| pair.attention[site].clone());
            attention.chain(pair.states[asked].iter().copied()).collect::<Vec<f32>>()
        };
        recorded.iter().map(of_pair).collect::<Vec<_>>()
    };
    let (pieces, whole) = (record(&[SiteKind::Cross]), record(&[SiteKind::Cross, SiteKind::EncoderSelf]));
    assert_eq!(pieces.len(), pairs.len());
    for (number, (pieces, whole)) in pieces.iter().zip(&whole).enumerate() {
        assert_eq!(pieces.len(), whole.len(), "{case}");
        let worst = pieces.iter().zip(whole).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(worst < 1e-5, "{case}, source {number}: {worst}");
    }
}

/// A signal whose steps all have one code.
fn signal_pair(n_numbers: usize, n_steps: usize) -> Pair {
    Pair { signal: Some(Signal::new(chance(n_numbers))), ..Pair::new(vec![0; n_steps], vec![5, 6, 7]) }
}

/// By distance; the long source stands behind a short one, so that its rows do not begin at 0.
#[test]
fn relative_biases_are_those_of_the_whole() {
    for case in ["t5", "umt5"] {
        let pair = |n: Token| Pair::new((0..n).map(|step| 2 + step * 7 % 60).collect(), vec![5, 6, 7, 1]);
        check(case, Model::open(&golden(case)).expect("a model"), &[pair(100), pair(300)]);
    }
}

/// By rows and columns, in every layer of its own or shared by all; and without.
#[test]
fn biases_of_a_grid_are_those_of_the_whole() {
    let n_steps = SIDE * SIDE + 1;
    let table: &[usize] = &[(2 * SIDE - 1) * (2 * SIDE - 1) + 3, 4];
    let positions: &[usize] = &[1, n_steps, 16];
    for (case, tables) in [
        ("vision/beit-trocr", &[("relative_position_bias_table", table)][..]),
        ("vision/beit-shared", &[("relative_position_bias_table", table), ("encoder.embeddings.position_embeddings", positions)]),
        ("vision/vit-gpt2", &[("encoder.embeddings.position_embeddings", positions)]),
    ] {
        let model = enlarged(case, |config| config["encoder"]["image_size"] = json!(8 * SIDE), tables);
        check(case, model, &[signal_pair(3 * (8 * SIDE) * (8 * SIDE), n_steps)]);
    }
}

#[test]
fn thirty_seconds_of_sound_are_heard_as_a_whole() {
    let positions: &[usize] = &[FRAMES, 16];
    let larger = |config: &mut Value| config["max_source_positions"] = json!(FRAMES);
    let model = enlarged("whisper", larger, &[("model.encoder.embed_positions.weight", positions)]);
    check("whisper", model, &[signal_pair(2 * FRAMES * 8, FRAMES)]);
}
