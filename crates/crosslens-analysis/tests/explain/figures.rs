//! Figures of a golden report: what they look like, what they say, and what is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{Explained, Options};
use crosslens_analysis::figure::{
    Choice, Colours, Figure, FigureError, Kind, SampleName, SavedReport, SiteName, Style, Theme, draw, training,
};
use crosslens_analysis::report::Report;
use crosslens_analysis::timeline::{SitePoint, TimelinePoint, TrainingPoint};
use crosslens_analysis::{Linear, Part, Readout, ScoreMap};
use serde_json::Value;

use super::planted::{D, Plan, Planted, Random, every_map};

const SOURCE: [&str; 4] = ["<eos>", "chat", "noir", "dort"];
const TARGET: [&str; 5] = ["<eos>", "black", "cat", "sleeps", "<start>"];

/// Two heads, one with a dot product and one additive, a readout, intervals and a control.
fn explained(source: &[&str], target: &[&str]) -> Explained {
    let maps: Vec<ScoreMap> =
        every_map(3).into_iter().filter(|map| matches!(map, ScoreMap::Dot { .. } | ScoreMap::Additive { .. })).skip(1).collect();
    let mut planted = Planted::of(&Plan { n_sentences: 30, lengths: 3..6, ..Plan::default() }, maps);
    planted.description.source.names = source.iter().map(|&name| name.into()).collect();
    planted.description.target.names = target.iter().map(|&name| name.into()).collect();
    let weights = Random::new(5).vector(D * 5, 0.5).iter().map(|&x| x as f32).collect();
    planted.description.readout = Some(Readout { map: Linear { d_in: D, d_out: 5, weights, bias: Vec::new() }, d_state: 0, d_context: D });
    let mut explained = planted.explain(&Options { bootstrap: 20, geometry: true, samples: 2, n_threads: 1, ..Options::default() });
    for site in &mut explained.report.sites {
        site.control = site.shares.clone();
    }
    explained
}

/// Few digits, so that the last bits of another processor change no figure.
fn rounded(mut explained: Explained) -> Explained {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => *value = ((number.as_f64().expect("a number") * 1e3).round() / 1e3).into(),
            Value::Array(all) => all.iter_mut().for_each(round),
            Value::Object(all) => all.values_mut().for_each(round),
            _ => (),
        }
    }
    let mut report = serde_json::to_value(&explained.report).expect("JSON");
    round(&mut report);
    explained.report = serde_json::from_value(report).expect("still a report");
    for sample in &mut explained.samples.sentences {
        for matrix in sample.attention.iter_mut().chain(&mut sample.pieces) {
            matrix.iter_mut().for_each(|value| *value = (*value * 100.0).round() / 100.0);
        }
    }
    for value in explained.samples.averages.iter_mut().flatten().flatten() {
        *value = (*value * 100.0).round() / 100.0;
    }
    explained
}

/// Saves an explanation, and gives the path of its report.
fn saved(explained: Explained, folder: &Path) -> PathBuf {
    let path = folder.join("report.json");
    let mut explained = explained;
    explained.save(&path).expect("a folder to write to");
    path
}

fn golden(folder: &Path) -> SavedReport {
    SavedReport::open(&saved(rounded(explained(&SOURCE, &TARGET)), folder)).expect("a report")
}

/// One head whose scores turn from the rest to position, the token's share staying at a fifth.
fn recorded() -> Vec<TimelinePoint> {
    (0..=10).map(|place| recorded_at(100 * place, vec![0.08 * place as f64, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0])).collect()
}

fn recorded_at(step: u64, shares: Vec<f64>) -> TimelinePoint {
    let site = SitePoint {
        kind: "cross".into(),
        layer: 0,
        head: 0,
        shares: Some(shares),
        tv: BTreeMap::new(),
        temporal_argmax: None,
        verdict: String::new(),
        attention: None,
    };
    TimelinePoint { step, sentences: None, loss: None, word_accuracy: None, phrase_accuracy: None, sites: vec![site] }
}

/// Shares that are too large, too many or none.
fn broken_record(number: f64) -> Vec<TimelinePoint> {
    vec![recorded_at(0, vec![number; 9]), recorded_at(1, vec![number; 6]), recorded_at(u64::MAX, vec![number]), recorded_at(2, Vec::new())]
}

fn points() -> Vec<TrainingPoint> {
    let point = |step: u64| {
        let left = 0.5f64.powf(step as f64 / 100.0);
        let right = 1.0 - left;
        TrainingPoint {
            step,
            train_loss: Some(1.2 * left),
            loss: Some(left),
            word_accuracy: Some(right),
            phrase_accuracy: Some(right * right),
        }
    };
    (1..=10).map(|place| point(100 * place)).collect()
}

fn at(site: usize) -> Choice {
    Choice { site: Some(SiteName::Number(site)), ..Choice::default() }
}

/// Every kind of figure of a report, by name.
fn all_of(saved: &SavedReport) -> Vec<(String, Figure)> {
    let drawn = |name: &str, kind: Kind, choice: Choice, style: Style| {
        (name.to_owned(), draw(saved, kind, &choice, &style).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    let (plain, dark) = (Style::default(), Style { theme: Theme::Dark, width_mm: Some(120.0) });
    let average = Choice { sample: SampleName::Average, ..Choice::default() };
    vec![
        drawn("attention", Kind::Attention, at(0), plain),
        drawn("attention average dark", Kind::Attention, average, dark),
        drawn("terms", Kind::Terms, at(0), plain),
        drawn("terms additive", Kind::Terms, at(1), plain),
        drawn("atlas", Kind::Atlas, Choice::default(), plain),
        drawn("components", Kind::Components, Choice::default(), plain),
        drawn("shares", Kind::Shares, Choice::default(), plain),
        drawn("shares of one", Kind::Shares, at(1), plain),
        ("training".to_owned(), training(&points(), &[], None, &plain).expect("points")),
        ("training recorded".to_owned(), training(&points(), &recorded(), None, &plain).expect("points")),
    ]
}

/// All text of a figure. Fails unless it is well-formed and has none but the elements that figures are made of.
fn text_of(figure: &Figure) -> Vec<String> {
    const ELEMENTS: [&str; 9] = ["svg", "title", "g", "rect", "line", "circle", "polyline", "polygon", "text"];
    const ATTRIBUTES: [&str; 27] = [
        "xmlns",
        "role",
        "width",
        "height",
        "viewBox",
        "fill",
        "x",
        "y",
        "x1",
        "y1",
        "x2",
        "y2",
        "cx",
        "cy",
        "r",
        "points",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "stroke-linejoin",
        "stroke-linecap",
        "font-family",
        "font-size",
        "font-weight",
        "text-anchor",
        "transform",
        "fill",
    ];
    let document = roxmltree::Document::parse(&figure.svg).expect("well-formed");
    for node in document.descendants().filter(|node| node.is_element()) {
        assert!(ELEMENTS.contains(&node.tag_name().name()), "{:?}", node.tag_name());
        for attribute in node.attributes() {
            assert!(ATTRIBUTES.contains(&attribute.name()), "{attribute:?}");
            assert!(!attribute.value().contains("NaN") && !attribute.value().contains("inf"), "{attribute:?}");
        }
    }
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_kind_of_figure_looks_as_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, figure) in all_of(&golden(folder.path())) {
        insta::assert_snapshot!(format!("figure {name}"), figure.svg);
    }
}

#[test]
fn figures_say_what_they_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let figures = all_of(&golden(folder.path()));
    let text = |name: &str| text_of(&figures.iter().find(|(other, _)| other == name).expect(name).1);
    let says = |name: &str, words: &[&str]| {
        let text = text(name);
        for word in words {
            assert!(text.iter().any(|text| text == word), "{name} does not say `{word}`: {text:?}");
        }
    };
    says("attention", &["<start>", "<eos>", "chat", "cat", "read", "wrote", "source", "weight"]);
    says("attention average dark", &["0", "1", "step", "Cross-attention, layer 0, head 0, average"]);
    says("terms", &["temporal", "input", "residual", "part of the query", "term, less its row's mean"]);
    says("terms additive", &["query", "key", "temporal"]);
    says(
        "atlas",
        &["driven by", "temporal", "the rest", "disc: its share of the scores", "ring: same token by it alone", "head 0", "layer 0"],
    );
    says("components", &["encoder, temporal", "decoder, temporal", "encoder, input", "chat", "cat"]);
    says("shares", &["temporal × temporal", "residual × residual", "query: input", "untrained", "95 % interval"]);
    says("training", &["Loss, nats", "Accuracy", "updates", "100 %"]);
    says("training recorded", &["Loss, nats", "Scores made of", "position", "token", "the rest", "updates"]);
    assert!(!text("training").iter().any(|text| text == "position"), "nothing was recorded");
}

/// Mixtures of parts count as the rest: 1 − 0.25 − 0.1 = 0.65. The ring is what is looked at, not total variation.
#[test]
fn the_atlas_reads_as_the_page_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut explained = explained(&SOURCE, &TARGET);
    let site = &mut explained.report.sites[0];
    let shares = site.shares.as_mut().expect("a score with shares");
    shares.tables.insert("centred".into(), [[0.25, 0.3, 0.0], [0.3, 0.1, 0.0], [0.0, 0.0, 0.05]]);
    shares.position_bias = 0.0;
    let rebuilt = site.rebuilt.get_mut("residual").expect("rebuilt from the rest");
    (rebuilt.argmax, rebuilt.tv) = (0.5, 0.9);
    let saved = SavedReport::open(&saved(explained, folder.path())).expect("a report");
    let figure = draw(&saved, Kind::Atlas, &Choice::default(), &Style::default()).expect("a figure");
    let colour = Colours::of(Theme::Light).part(Part::Residual).hex();
    // Sizes of the page's 50 pixels in 17 points.
    let disc = format!("r=\"{:.2}\" fill=\"{colour}\"/>", (4.0 + 11.0 * 0.65f64.sqrt()) / 50.0 * 17.0);
    let around = std::f64::consts::TAU * 6.8;
    let ring = format!("stroke=\"{colour}\" stroke-width=\"1.36\" stroke-dasharray=\"{:.2} {around:.2}\"", 0.5 * around);
    assert!(figure.svg.contains(&disc) && figure.svg.contains(&ring), "neither {disc} nor {ring}: {}", figure.svg);
}

#[test]
fn the_width_asked_for_is_the_width_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = golden(folder.path());
    for kind in Kind::ALL {
        for width in [60.0, 85.0, 250.0] {
            let style = Style { width_mm: Some(width), ..Style::default() };
            let figure = draw(&saved, kind, &Choice::default(), &style).expect("a figure");
            assert!((figure.width_mm - width).abs() < 1e-9, "{}: {}", kind.name(), figure.width_mm);
            assert!(figure.svg.contains(&format!("width=\"{width}mm\"")), "{}", kind.name());
        }
        for width in [0.0, -1.0, 1e9, f64::NAN] {
            let style = Style { width_mm: Some(width), ..Style::default() };
            assert!(matches!(draw(&saved, kind, &Choice::default(), &style), Err(FigureError::Width(_))), "{}", kind.name());
        }
    }
}

#[test]
fn hostile_tokens_are_shown_as_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(100_000);
    let source = ["</text><script>alert(1)</script>", "\"'&amp;]]>", "\u{0}\u{1b}[31m\u{ffff}", &long];
    let target = ["שלום", "你好", "\u{202e}abc\n", "<!--", "<?xml ?>"];
    let saved = SavedReport::open(&saved(explained(&source, &target), folder.path())).expect("a report");
    let figures = all_of(&saved);
    let mut texts = Vec::new();
    for (name, figure) in &figures {
        assert!(figure.svg.len() < 300_000, "{name}: {} bytes", figure.svg.len());
        texts.extend(text_of(figure));
    }
    for expected in [
        "</text><script>alert(1)…",
        "\"'&amp;]]>",
        "\\u{0}\\u{1b}[31m\\u{ffff}",
        "xxxxxxxxxxxxxxxxxxxxxxx…",
        "שלום",
        "你好",
        "\\u{202e}abc\\n",
        "<!--",
    ] {
        assert!(texts.iter().any(|text| text == expected), "`{expected}` is not shown");
    }
}

/// Numbers far beyond any measure still give well-formed figures.
#[test]
fn hostile_numbers_are_drawn_somewhere() {
    fn set(value: &mut Value, to: f64) {
        match value {
            Value::Number(number) if number.is_f64() => *value = to.into(),
            Value::Array(all) => all.iter_mut().for_each(|value| set(value, to)),
            Value::Object(all) => all.values_mut().for_each(|value| set(value, to)),
            _ => (),
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let golden = golden(folder.path());
    for number in [0.0, 1e308, -1e308, 1e-308, 1e15, -7.5] {
        let mut report = serde_json::to_value(&golden.report).expect("JSON");
        set(&mut report, number);
        let report: Report = serde_json::from_value(report).expect("still a report");
        let changed = SavedReport::of(report, &folder.path().join("report.json"));
        for (_, figure) in all_of(&changed) {
            text_of(&figure);
        }
        let point = TrainingPoint {
            step: u64::MAX,
            train_loss: Some(number),
            loss: Some(-number),
            word_accuracy: None,
            phrase_accuracy: Some(f64::NAN),
        };
        text_of(&training(&[point, point], &broken_record(number), None, &Style::default()).expect("points"));
    }
}

#[test]
fn broken_reports_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = saved(explained(&SOURCE, &TARGET), folder.path());
    let whole = std::fs::read_to_string(&path).expect("the report");
    let samples = folder.path().join("report.samples.safetensors");
    let bytes = std::fs::read(&samples).expect("the samples");
    let message = |error: FigureError| error.to_string();
    let attention = || draw(&SavedReport::open(&path)?, Kind::Attention, &Choice::default(), &Style::default());

    for (text, says) in [
        ("", "is damaged"),
        ("{}", "`schema` is missing"),
        ("{\"schema\": \"crosslens-report/2\"}", "has the schema `crosslens-report/2`"),
        ("{\"schema\": \"crosslens-report/1\"}", "missing field"),
        (&whole[..whole.len() / 2], "is damaged"),
        (&whole.replace("report.samples.safetensors", "../report.samples.safetensors"), "must be the name of a file beside it"),
        (&whole.replace("\"report.samples.safetensors\"", "null"), "was written without single sentences"),
    ] {
        std::fs::write(&path, text).expect("writable");
        let error = message(attention().expect_err(says));
        assert!(error.contains(says), "{error}");
    }
    std::fs::write(&path, &whole).expect("writable");

    let with_samples = |bytes: &[u8]| {
        std::fs::write(&samples, bytes).expect("writable");
        attention()
    };
    assert!(with_samples(&bytes).is_ok());
    for cut in (0..bytes.len()).step_by(97) {
        assert!(with_samples(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    let replaced = |from: &str, to: &str| {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        assert_eq!(from.len(), to.len());
        let place = bytes.windows(from.len()).position(|window| window == from).expect("it is there");
        [&bytes[..place], to, &bytes[place + from.len()..]].concat()
    };
    let error = message(with_samples(&replaced("\"sites\":\"2\"", "\"sites\":\"3\"")).expect_err("three sites"));
    assert!(error.contains("it has 3 sites, its report 2"), "{error}");
    let error = message(with_samples(&replaced("\"samples\":\"2\"", "\"samples\":\"x\"")).expect_err("no number"));
    assert!(error.contains("`samples` in its header"), "{error}");
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let nan = [&bytes[..header], &f32::NAN.to_le_bytes().repeat((bytes.len() - header) / 4)].concat();
    let error = message(with_samples(&nan).expect_err("no numbers"));
    assert!(error.contains("holds a number that is not finite"), "{error}");
    std::fs::remove_file(&samples).expect("it was there");
    assert!(matches!(attention(), Err(FigureError::LostSamples { .. })));
}

/// Whatever byte is changed, a figure is drawn or refused.
#[test]
fn changed_bytes_never_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = saved(explained(&SOURCE, &TARGET), folder.path());
    let samples = folder.path().join("report.samples.safetensors");
    let bytes = std::fs::read(&samples).expect("the samples");
    let report = SavedReport::open(&path).expect("a report");
    let mut random = Random::new(11);
    for _ in 0..300 {
        let mut changed = bytes.clone();
        for _ in 0..3 {
            let place = random.below(changed.len());
            changed[place] = random.below(256) as u8;
        }
        std::fs::write(&samples, &changed).expect("writable");
        for kind in [Kind::Attention, Kind::Terms] {
            if let Ok(figure) = draw(&report, kind, &at(random.below(2)), &Style::default()) {
                text_of(&figure);
            }
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut saved = golden(folder.path());
    let tried = |saved: &SavedReport, kind, choice| draw(saved, kind, &choice, &Style::default()).expect_err("refused").to_string();
    assert_eq!(tried(&saved, Kind::Attention, at(2)), "there is no site 2; there are 0 (cross 0.0), 1 (cross 0.1)");
    let place = Choice { site: Some("3.1".parse().expect("a place")), ..Choice::default() };
    assert_eq!(tried(&saved, Kind::Shares, place), "there is no site 3.1; there are 0 (cross 0.0), 1 (cross 0.1)");
    let sample = Choice { sample: SampleName::Number(2), ..Choice::default() };
    assert_eq!(tried(&saved, Kind::Terms, sample), "there is no sample 2: 2 were saved, counted from 0");
    let average = Choice { sample: SampleName::Average, ..Choice::default() };
    assert_eq!(tried(&saved, Kind::Terms, average), "the report has no terms of the average: choose a sentence");
    saved.report.geometry = None;
    assert_eq!(tried(&saved, Kind::Components, Choice::default()), "the report has no geometry");
    saved.report.sites = vec![saved.report.sites[0].clone(); 25];
    assert!(tried(&saved, Kind::Shares, Choice::default()).contains("25 sites are too many"));
    assert!(draw(&saved, Kind::Atlas, &Choice::default(), &Style::default()).is_ok());
    saved.report.sites.clear();
    for kind in [Kind::Attention, Kind::Terms, Kind::Atlas] {
        assert!(tried(&saved, kind, Choice::default()).contains("its network has none"));
    }
    assert!(training(&[], &[], None, &Style::default()).is_err());
    let elsewhere = training(&points(), &recorded(), Some(SiteName::Place(3, 1)), &Style::default());
    assert!(matches!(elsewhere, Err(FigureError::UnknownSite { .. })), "{elsewhere:?}");
    for text in ["", "x", "1.", ".1", "1.2.3", "-1"] {
        assert!(text.parse::<SiteName>().is_err(), "{text}");
    }
}

#[cfg(feature = "pictures")]
mod pictures {
    use std::io::Read;

    use super::*;

    /// Width, height and dots per metre, as the file says.
    fn header(png: &[u8]) -> [u32; 3] {
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let physical = png.windows(4).position(|name| name == b"pHYs").expect("a size on paper");
        [number(16), number(20), number(physical + 4)]
    }

    #[test]
    fn a_png_has_the_dots_of_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, figure) in all_of(&golden(folder.path())) {
            for dpi in [72, 150] {
                let picture = figure.to_png(dpi).expect("a picture");
                assert!(picture.missing.is_empty(), "{name}: {}", picture.missing.text());
                let dots = |mm: f64| (mm / 25.4 * f64::from(dpi)).round() as u32;
                let per_metre = (f64::from(dpi) / 0.0254).round() as u32;
                assert_eq!(header(&picture.bytes), [dots(figure.width_mm), dots(figure.height_mm), per_metre], "{name}");
            }
        }
        let figure = training(&points(), &recorded(), None, &Style { width_mm: Some(1000.0), ..Style::default() }).expect("a figure");
        assert!(figure.to_png(0).is_err() && figure.to_png(10_000).is_err());
        assert!(figure.to_png(2400).expect_err("refused").to_string().contains("dots are too many"));
    }

    /// The streams of a PDF file, unpacked.
    fn unpacked(pdf: &[u8]) -> String {
        let find = |from: usize, what: &[u8]| pdf[from..].windows(what.len()).position(|window| window == what).map(|place| from + place);
        let (mut text, mut from) = (String::from_utf8_lossy(pdf).into_owned(), 0);
        while let Some(start) = find(from, b"stream\n") {
            let end = find(start, b"endstream").expect("it ends");
            let mut bytes = Vec::new();
            flate2::read::ZlibDecoder::new(&pdf[start + 7..end]).read_to_end(&mut bytes).ok();
            text += &String::from_utf8_lossy(&bytes);
            from = end + 9;
        }
        text
    }

    /// Text is drawn by text operators, in an embedded font whose glyphs say which characters they are.
    #[test]
    fn a_pdf_has_text_that_can_be_selected() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, figure) in all_of(&golden(folder.path())) {
            let picture = figure.to_pdf().expect("a picture");
            assert!(picture.bytes.starts_with(b"%PDF-"), "{name}");
            let text = unpacked(&picture.bytes);
            for what in ["/ToUnicode", "/FontFile", "NotoSans", "BT\n", "ET\n"] {
                assert!(text.contains(what), "{name}: no {what}");
            }
            assert!(!text.contains("/Subtype /Image"), "{name}: an image");
            let shown: String = text_of(&figure).concat();
            for character in shown.chars().filter(|character| character.is_alphanumeric()) {
                assert!(text.contains(&format!("{:04X}", u32::from(character))), "{name}: {character} cannot be selected");
            }
            let points = format!("{:.0}", figure.width_mm / 25.4 * 72.0);
            let page = text.split("/MediaBox [0 0 ").nth(1).expect("a page");
            let width: f64 = page.split(' ').next().and_then(|width| width.parse().ok()).expect("a width");
            assert_eq!(format!("{width:.0}"), points, "{name}");
        }
    }

    #[test]
    fn characters_without_a_font_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let saved = SavedReport::open(&saved(explained(&["\u{10fffd}", "b", "c", "d"], &TARGET), folder.path())).expect("a report");
        let figure = draw(&saved, Kind::Attention, &Choice::default(), &Style::default()).expect("a figure");
        for picture in [figure.to_png(72).expect("dots"), figure.to_pdf().expect("a file")] {
            assert!(picture.missing.text().contains("U+10FFFD"), "{}", picture.missing.text());
        }
    }

    /// Whatever fonts this machine has: the SVG carries the words as they are, and each character is drawn as text or named as missing.
    #[test]
    fn words_of_any_script_are_drawn_or_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, target) = (["<eos>", "你好", "世界", "שלום"], ["<eos>", "سلام", "عالم", "ארץ", "<start>"]);
        let saved = SavedReport::open(&saved(explained(&source, &target), folder.path())).expect("a report");
        let words: Vec<&str> = source.into_iter().chain(target).filter(|word| !word.is_ascii()).collect();
        for (name, figure) in all_of(&saved) {
            let shown = text_of(&figure).concat();
            let (pdf, png) = (figure.to_pdf().expect("a file"), figure.to_png(72).expect("dots"));
            assert_eq!(pdf.missing, png.missing, "{name}");
            assert!(header(&png.bytes)[0] > 0);
            let (text, missing) = (unpacked(&pdf.bytes), pdf.missing.text());
            for character in words.iter().filter(|word| shown.contains(**word)).flat_map(|word| word.chars()) {
                let code = format!("{:04X}", u32::from(character));
                assert!(text.contains(&code) || missing.contains(&format!("{character} U+{code}")), "{name}: {code} of {missing}");
            }
        }
        let attention = draw(&saved, Kind::Components, &Choice::default(), &Style::default()).expect("a figure");
        let shown = text_of(&attention);
        for word in words {
            assert!(shown.iter().any(|text| text == word), "{word} is not shown: {shown:?}");
        }
    }
}
