use std::io::Read;

use super::*;
use crate::explain::{CodeExample, CodeExamples, Sample, Scene, SceneWord, Spectrum, TokenNames};
use crate::{Recorded, Visible};

/// One sentence of two steps and three keys at one site of nine terms.
fn samples(scale: f32) -> Samples {
    let pieces: Vec<f32> = (0..54).map(|i| scale * (i as f32 - 20.0) / 7.0).collect();
    let sample = Sample {
        sentence: Recorded { source: vec![0, 1, 2], fed: vec![3, 0], predicted: vec![0, 2], ..Recorded::default() },
        shapes: vec![(2, 3)],
        attention: vec![vec![0.5, 0.25, 0.25, 0.1, 0.2, 0.7]],
        pieces: vec![pieces],
        bias: vec![Vec::new()],
        value_weighted: vec![vec![1.0, 1.0, 0.0, 0.2, 0.8, 0.0]],
        scene: None,
    };
    let names = |start| TokenNames {
        names: [(0, "</script><b>".to_owned()), (1, "猫".to_owned()), (2, "<eos>".to_owned()), (3, "<go>".to_owned())].into(),
        start,
        end: Some(2),
    };
    Samples {
        sentences: vec![sample],
        averages: vec![vec![vec![0.5, 0.5]]],
        source: names(None),
        target: names(Some(3)),
        visible: vec![Visible::All],
        codes: Vec::new(),
        distances: Vec::new(),
    }
}

fn unpacked(html: &str, id: &str) -> Vec<u8> {
    let (_, rest) = html.split_once(&format!("id=\"crosslens-{id}\">")).expect("a block");
    let bytes = STANDARD.decode(rest.split_once("</script>").expect("its end").0).expect("base64");
    let mut data = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut data).expect("gzip");
    data
}

fn report() -> Report {
    serde_json::from_value(json!({
        "schema": "crosslens-report/1", "model": {"description": "</script><script>alert(1)</script>", "hash": "", "path": null},
        "corpus": {"pairs": 1, "fitted_pairs": 1, "held_out": false, "source": ""},
        "task": {"word_accuracy": null, "phrase_accuracy": null, "loss": null, "can_rerun": false},
        "components": {"estimator": "paper", "shrunk": false},
        "streams": [], "sites": [], "values": null, "readout": null, "geometry": null, "ranking": null, "samples": null,
    }))
    .expect("a report")
}

fn page() -> String {
    let report = report();
    Page::new().title("<i>title</i>").report("</script>", &report, &samples(1.0)).report("b", &report, &samples(2.0)).html()
}

#[test]
fn nothing_in_the_data_ends_its_element() {
    let html = page();
    // The style sheet aside, every element that opens closes, and none is added by names or descriptions.
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    assert_eq!(html.matches("<script").count(), 1 + 1 + 2 * 3, "index, viewer, and three blocks a report");
    assert!(!html.contains("alert(1)</script>") && !html.contains("<i>title"));
}

#[test]
fn the_policy_names_script_and_style_by_their_hashes() {
    let html = page();
    let between = |start: &str, end: &str| html.split_once(start).expect(start).1.split_once(end).expect(end).0.to_owned();
    let policy = between("Content-Security-Policy\" content=\"", "\">");
    let (script, style) = (between("<script>", "</script>"), between("<style>", "</style>"));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
            hash(&script),
            hash(&style)
        )
    );
    assert!(Page::new().live("api/").html().contains("; media-src data:; connect-src 'self'; base-uri"));
    for outside in ["http://", "https://", "src=\"", "@import", "url("] {
        let found: Vec<&str> = html.lines().filter(|line| line.contains(outside) && !line.contains("www.w3.org")).collect();
        assert!(found.is_empty(), "{outside}: {found:?}");
    }
}

#[test]
fn the_page_draws_with_the_colours_of_figures() {
    let html = page();
    let (_, rest) = html.split_once("id=\"crosslens-index\">").expect("an index");
    let index: serde_json::Value = serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON");
    for (name, theme) in [("light", Theme::Light), ("dark", Theme::Dark)] {
        let colours = Colours::of(theme);
        let found = &index["colours"][name];
        assert_eq!(found["parts"][2], colours.part(crate::Part::Residual).hex(), "{name}");
        assert_eq!(found["weights"][64], colours.weight(0.25).hex(), "{name}");
        assert_eq!(found["signed"][0], colours.signed(-1.0).hex(), "{name}");
    }
    let live: serde_json::Value = serde_json::from_str(&live_index("a", "api/")).expect("JSON");
    assert_eq!((&live["colours"], &live["api"]), (&index["colours"], &json!("api/")));
    // Places of a ramp are counted in the page, and no colour is made there.
    let text = files().into_iter().find(|file| file.name == "colours.js").expect("a module").text;
    assert!(text.contains(&format!("const LAST = {};", crate::figure::colours::N_STOPS - 1)), "{text}");
    assert!(!text.contains("Math.cos") && !text.contains("\"#"), "{text}");
}

#[test]
fn a_sentence_comes_back_from_its_block() {
    let data = unpacked(&page(), "sample-1-0");
    let arrays = safetensors::SafeTensors::deserialize(&data).expect("safetensors");
    let floats = |name: &str| -> Vec<f32> {
        let view = arrays.tensor(name).expect(name);
        view.data().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect()
    };
    assert_eq!(floats("sites.0.pieces"), samples(2.0).sentences[0].pieces[0]);
    // Key 0 weighs most at query 0: 1.0 / 0.5; key 1 at query 0: 1.0 / 0.25; key 2 at query 1: 0 / 0.7.
    assert_eq!(floats("sites.0.value_norms"), [2.0, 4.0, 0.0]);
    let report: serde_json::Value = serde_json::from_slice(&unpacked(&page(), "report-1")).expect("JSON");
    let sample = &report["samples"][0];
    assert_eq!(
        (&sample["source"], &sample["special"]),
        (&json!(["</script><b>", "猫", "<eos>"]), &json!({"source": [2], "fed": [0], "predicted": [1]}))
    );
}

#[test]
fn many_numbers_are_kept_in_sixteen_bits() {
    let mut many = samples(1.0);
    many.sentences[0].shapes[0] = (500, 1000);
    many.sentences[0].attention[0] = vec![0.001; 500_000];
    many.sentences[0].value_weighted[0] = vec![0.001; 500_000];
    many.sentences[0].pieces[0] = (0..4_500_000u64).map(|i| ((i * 7919) % 1000) as f32 / 100.0 - 5.0).collect();
    let data = sample_bytes(&many, &many.sentences[0]);
    let arrays = safetensors::SafeTensors::deserialize(&data).expect("safetensors");
    let scale = f32::from_le_bytes(arrays.tensor("sites.0.pieces.scale").expect("scales").data()[..4].try_into().expect("four"));
    let pieces = arrays.tensor("sites.0.pieces").expect("pieces");
    assert_eq!((pieces.dtype(), pieces.shape()), (safetensors::Dtype::I16, &[9, 500, 1000][..]));
    for (bytes, &exact) in pieces.data().chunks_exact(2).zip(&many.sentences[0].pieces[0]).take(500_000) {
        let value = f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) * scale;
        assert!((value - exact).abs() <= 0.51 * scale, "{value} {exact}");
    }
}

#[test]
fn the_page_is_written_whole_and_its_size_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let page = Page::new().title("small");
    let size = page.write(&path).expect("written");
    assert_eq!(std::fs::read_to_string(&path).expect("a page"), page.html());
    assert_eq!(size, page.html().len() as u64);
    assert!(page.write(&folder.path().join("no/folder.html")).is_err());
}

/// Two steps of sound before one of padding.
fn sound(wave: Option<Vec<u8>>) -> Scene {
    Scene::Sound {
        seconds_per_step: 0.02,
        n_steps: 2,
        spectrum: Spectrum { seconds_per_frame: 0.01, n_bands: 2, levels: vec![0, 255, 7, 8] },
        wave,
        words: vec![SceneWord { text: "cat".into(), start: 0.0, end: 0.04, first_row: 0, last_row: 1 }],
        path: vec![(0, 0), (1, 1)],
    }
}

fn header(scene: Option<Scene>) -> serde_json::Value {
    let mut samples = samples(1.0);
    samples.sentences[0].scene = scene;
    sample_header(&samples, &samples.sentences[0])["scene"].clone()
}

#[test]
fn a_header_says_what_the_source_sounds_or_looks_like() {
    assert!(header(None).is_null());
    let wave = b"RIFF\0\0\0\0WAVE".to_vec();
    assert_eq!(
        header(Some(sound(Some(wave)))),
        json!({
            "kind": "sound", "seconds_per_step": 0.02, "n_steps": 2,
            "spectrum": { "seconds_per_frame": 0.01, "n_bands": 2, "levels": "AP8HCA==" },
            "wave": "data:audio/wav;base64,UklGRgAAAABXQVZF",
            "words": [{ "text": "cat", "start": 0.0, "end": 0.04, "first_row": 0, "last_row": 1 }],
            "path": [[0, 0], [1, 1]],
        })
    );
    let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &[0, 0, 0, 30, 0, 0, 0, 20]].concat();
    let picture = |columns: usize| Scene::Picture { png: png.clone(), n_special: 1, rows: 1, columns };
    let said = header(Some(picture(2)));
    assert_eq!((&said["kind"], &said["width"], &said["height"], &said["columns"]), (&json!("picture"), &json!(30), &json!(20), &json!(2)));
    assert!(said["png"].as_str().is_some_and(|png| png.starts_with("data:image/png;base64,iVBORw0KGgo")));
    assert!(header(Some(picture(3))).is_null(), "not of this sentence: it is left out");
}

#[test]
fn only_pages_with_a_sound_may_play_one() {
    let of = |scene: Option<Scene>| {
        let mut samples = samples(1.0);
        samples.sentences[0].scene = scene;
        samples.codes = vec![CodeExamples { code: 1, examples: vec![CodeExample { sample: 0, step: 2 }] }];
        Page::new().report("a", &report(), &samples).html()
    };
    let heard = of(Some(sound(Some(b"RIFF\0\0\0\0WAVE".to_vec()))));
    assert!(heard.contains("img-src data: blob:; media-src data:; base-uri 'none'"));
    assert!(!of(Some(sound(None))).contains("media-src") && !of(None).contains("media-src"));
    let whole: serde_json::Value = serde_json::from_slice(&unpacked(&heard, "report-0")).expect("JSON");
    assert_eq!(whole["codes"], json!([{ "name": "猫", "examples": [{ "sample": 0, "step": 2 }] }]));
    assert_eq!(whole["samples"][0]["scene"]["kind"], "sound");
}
