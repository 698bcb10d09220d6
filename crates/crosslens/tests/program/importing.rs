//! Models of other programs: a tiny one with the tensor names of the package e2k, opened by its weights or by a mapping.

use std::path::Path;

use super::common::{assert_alike, explain, seen, succeed};
use serde_json::Value;

/// Random weights of the package's names; see `crosslens-nets/tests/golden/make_e2k.py`.
const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crosslens-nets/tests/golden/imported/tiny.safetensors");
const MAPPING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/import/e2k.toml");

fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    insta::assert_snapshot!(name, seen(folder, arguments));
}

/// A folder with weights, a mapping for two heads and sources without targets.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(WEIGHTS, at("w.safetensors")).expect("a copy");
    std::fs::create_dir(at("mine")).expect("a folder");
    std::fs::copy(WEIGHTS, at("mine/w.safetensors")).expect("a copy");
    let mapping = std::fs::read_to_string(MAPPING).expect("the shipped mapping");
    let mapping = mapping.replace("heads = 4", "heads = 2").replace("model-c2k.safetensors", "w.safetensors");
    std::fs::write(at("mine/import.toml"), mapping).expect("a mapping");
    let words: String = (0..60u32).map(|i| letters(i) + "\n").collect();
    std::fs::write(at("words.txt"), words).expect("sources");
    folder
}

/// A made-up word of 2 to 9 letters.
fn letters(number: u32) -> String {
    (0..2 + number % 8).map(|i| char::from(b'a' + ((number * 7 + i * i * 5 + i) % 26) as u8)).collect()
}

#[test]
fn a_model_is_explained_by_its_weights_or_its_mapping() {
    let folder = folder();
    let folder = folder.path();
    let report = explain(folder, &["w.safetensors", "--corpus", "words.txt", "--control"]);
    let sites = report["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), 4, "the shipped mapping says four heads");
    assert_eq!((&report["corpus"]["pairs"], &report["corpus"]["fitted_pairs"]), (&Value::from(30), &Value::from(30)), "halves");
    assert_eq!(report["task"]["word_accuracy"], Value::Null, "no target was given");
    for site in sites {
        assert!(site["error"]["score"].as_f64().expect("an error") < 1e-5 && site["error"]["attention"].as_f64().expect("an error") < 1e-5);
        assert!(site["control"]["centred"].is_array(), "untrained weights beside it");
        assert!(site["rebuilt"]["uniform"]["loss"].is_f64(), "the model was run again");
    }
    let by_folder = explain(folder, &["mine", "--corpus", "words.txt"]);
    assert_eq!(by_folder["sites"].as_array().expect("sites").len(), 2);
    let by_file = explain(folder, &["mine/import.toml", "--corpus", "words.txt"]);
    assert_alike(&by_folder, &by_file, 0.0, &["path"]);
}

/// A target that is what the model writes anyway changes what is known, and nothing else.
#[test]
fn a_target_may_be_given() {
    let folder = folder();
    let folder = folder.path();
    let look = |word: &str| {
        let output = succeed(folder, &["attend", "mine", "--source", word, "-o", "x.json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let spelled: Vec<String> = word.chars().map(String::from).collect();
        assert!(said.contains(&format!("source:    <sos> {} <eos>", spelled.join(" "))), "{said}");
        serde_json::from_slice::<Value>(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON")
    };
    let words_of = |attended: &Value, name: &str| -> Vec<String> { serde_json::from_value(attended[name].clone()).expect("words") };
    // Random weights may write special tokens too, which no text spells.
    let is_text = |written: &[String]| {
        written
            .split_last()
            .is_some_and(|(last, text)| last == "<eos>" && !text.is_empty() && text.iter().all(|word| !word.starts_with('<')))
    };
    let looked = (0..60).map(|number| (letters(number), look(&letters(number))));
    let found = looked.into_iter().find(|(_, attended)| is_text(&words_of(attended, "predicted")));
    let (word, attended) = found.expect("a word that the model spells and ends itself");
    let words = |name: &str| words_of(&attended, name);
    let written = words("predicted");
    assert_eq!(words("fed")[0], "<sos>");
    assert_eq!(words("fed")[1..], written[..written.len() - 1]);
    let heads = attended["cross_attentions.0"].as_array().expect("heads");
    assert_eq!((heads.len(), heads[0].as_array().expect("steps").len()), (2, written.len()));

    let text = written[..written.len() - 1].concat();
    std::fs::write(folder.join("pair.tsv"), format!("{word}\t{text}\n")).expect("a pair");
    let report = explain(folder, &["mine", "--corpus", "pair.tsv"]);
    assert_eq!(report["task"]["word_accuracy"], 1.0);
    succeed(folder, &["attend", "mine", "--source", &word, "--target", &text, "-o", "y.json"]);
    let forced: Value = serde_json::from_slice(&std::fs::read(folder.join("y.json")).expect("a file")).expect("JSON");
    assert_alike(&attended, &forced, 0.0, &[]);
}

#[test]
fn what_was_recorded_explains_as_the_model_does() {
    let folder = folder();
    let folder = folder.path();
    succeed(folder, &["record", "w.safetensors", "--corpus", "words.txt", "-o", "rec", "--keep-attention"]);
    let model = explain(folder, &["w.safetensors", "--corpus", "words.txt", "--causal", "0", "--no-held-out"]);
    let recording = explain(folder, &["rec"]);
    assert_alike(&model, &recording, 1e-6, &["path", "source", "can_rerun", "verdict"]);
}

#[test]
fn the_terms_of_a_sentence_come_from_sums() {
    let folder = folder();
    let folder = folder.path();
    succeed(folder, &["fit", "w.safetensors", "--corpus", "words.txt", "-o", "x.stats.safetensors"]);
    let attend =
        ["attend", "w.safetensors", "--source", "it's", "--scores", "--terms", "--components", "x.stats.safetensors", "-o", "x.json"];
    succeed(folder, &attend);
    let json: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
    let flat = |value: &Value| -> Vec<f64> {
        fn flatten(value: &Value, numbers: &mut Vec<f64>) {
            match value.as_array() {
                Some(list) => list.iter().for_each(|value| flatten(value, numbers)),
                None => numbers.push(value.as_f64().expect("a number")),
            }
        }
        let mut numbers = Vec::new();
        flatten(value, &mut numbers);
        numbers
    };
    for (scores, terms) in json["scores.cross.0"].as_array().expect("heads").iter().zip(json["terms.cross.0"].as_array().expect("heads")) {
        let (scores, terms) = (flat(scores), flat(terms));
        assert_eq!(terms.len(), 9 * scores.len());
        for (place, score) in scores.iter().enumerate() {
            let total: f64 = (0..9).map(|term| terms[term * scores.len() + place]).sum();
            assert!((total - score).abs() < 1e-5 * (1.0 + score.abs()), "{total} and {score}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_with_what_can() {
    let folder = folder();
    let folder = folder.path();
    snapshot("imported without corpus", folder, &["explain", "w.safetensors"]);
    snapshot("imported report", folder, &["report", "w.safetensors"]);
    snapshot("imported record samples", folder, &["record", "mine", "--samples", "3", "-o", "rec"]);
    snapshot("imported attend nothing", folder, &["attend", "mine", "-o", "x.json"]);
    snapshot("imported attend terms", folder, &["attend", "mine", "--source", "a", "--terms", "-o", "x.json"]);
    snapshot("imported unknown letter", folder, &["attend", "mine", "--source", "naïve", "-o", "x.json"]);
    snapshot("imported empty source", folder, &["attend", "mine", "--source", " ", "-o", "x.json"]);
    std::fs::write(folder.join("odd.txt"), "fine\nnaïve\n").expect("sources");
    snapshot("imported unknown letter in a file", folder, &["explain", "mine", "--corpus", "odd.txt"]);
    std::fs::remove_file(folder.join("mine/w.safetensors")).expect("it was there");
    snapshot("imported without weights", folder, &["explain", "mine", "--corpus", "words.txt"]);
    let mapping = std::fs::read_to_string(folder.join("mine/import.toml")).expect("the mapping");
    std::fs::write(folder.join("mine/import.toml"), mapping.replace("heads = 2", "haeds = 2")).expect("writable");
    snapshot("imported bad mapping", folder, &["explain", "mine", "--corpus", "words.txt"]);
    std::fs::write(folder.join("mine/import.toml"), mapping.replace("w.safetensors", "../w.safetensors").replace("fc.bias", "fc.bais"))
        .expect("writable");
    snapshot("imported missing tensor", folder, &["explain", "mine", "--corpus", "words.txt"]);
}

/// Before the URL is printed: nothing is served that will not be there.
#[test]
fn a_missing_corpus_or_missing_sums_end_the_server_at_once() {
    let folder = folder();
    for option in ["--corpus", "--components"] {
        let refused = seen(folder.path(), &["serve", "mine", option, "missing.tsv"]);
        assert!(refused.starts_with("exit 1\n--- stdout\n\n--- stderr\n"), "{refused}");
        assert!(refused.contains(&format!("cannot read `missing.tsv`, which {option} names")), "{refused}");
    }
}

/// What is written is what `attend` sees it write, as text; there is no other way to search.
#[test]
fn a_mapped_model_translates() {
    let folder = folder();
    let folder = folder.path();
    let mut n_texts = 0;
    for word in (0..8).map(letters) {
        succeed(folder, &["attend", "mine", "--source", &word, "-o", "x.json"]);
        let attended: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
        let written: Vec<String> = serde_json::from_value(attended["predicted"].clone()).expect("words");
        let text: String = written.iter().take_while(|word| *word != "<eos>").filter(|word| !word.starts_with('<')).cloned().collect();
        n_texts += usize::from(!text.is_empty());

        let line = succeed(folder, &["translate", "mine", &word, "--json"]).stdout;
        let translated: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!((&translated["source"], &translated["text"]), (&Value::from(word.as_str()), &Value::from(text.as_str())));
        assert_eq!(translated["tokens"].as_array().map(Vec::len), Some(written.len()));
        assert!(translated["score"].as_f64().is_some_and(|score| score < 0.0), "{translated}");
        assert_eq!(String::from_utf8_lossy(&succeed(folder, &["translate", "mine", &word]).stdout), format!("{text}\n"));
    }
    assert!(n_texts > 0, "random weights may write special tokens alone, but not always");
    let short: Value =
        serde_json::from_slice(&succeed(folder, &["translate", "mine", "hello", "--max-tokens", "1", "--json"]).stdout).expect("JSON");
    assert_eq!(short["tokens"].as_array().map(Vec::len), Some(1));

    succeed(folder, &["translate", "mine", "hello", "--explain", "x.html", "--corpus", "words.txt"]);
    assert!(std::fs::read_to_string(folder.join("x.html")).expect("a page").contains("Crosslens: translations of mine"));
    let refused = seen(folder, &["translate", "mine", "hello", "--beams", "4"]);
    assert!(refused.starts_with("exit 2") && refused.contains("its likeliest word each time"), "{refused}");
    let unknown = seen(folder, &["translate", "mine", "naïve"]);
    assert!(unknown.starts_with("exit 1") && unknown.contains("`ï`"), "{unknown}");
}

/// Letters are linked with letters: each with the one its row has most weight on, start and end aside.
#[test]
fn a_mapped_model_links_letters() {
    let folder = folder();
    let folder = folder.path();
    let text_of = |word: &str| String::from_utf8(succeed(folder, &["translate", "mine", word]).stdout).expect("text").trim_end().to_owned();
    let pairs: Vec<(String, String)> =
        (0..60).map(letters).map(|word| (text_of(&word), word)).filter(|(text, _)| !text.is_empty()).take(3).map(|(t, w)| (w, t)).collect();
    assert!(!pairs.is_empty(), "the model spells something");
    std::fs::write(folder.join("pairs.tsv"), pairs.iter().map(|(word, text)| format!("{word}\t{text}\n")).collect::<String>())
        .expect("pairs");
    let align = |more: &[&str]| {
        let output = succeed(folder, &[&["align", "mine", "--corpus", "pairs.tsv", "--heads", "0.1"], more].concat());
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let links = align(&[]);
    for ((word, text), line) in pairs.iter().zip(&links) {
        succeed(folder, &["attend", "mine", "--source", word, "--target", text, "-o", "x.json"]);
        let attended: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
        let rows: Vec<Vec<f64>> = serde_json::from_value(attended["cross_attentions.0"][1].clone()).expect("a head");
        let letters = |row: &Vec<f64>| row[1..row.len() - 1].to_vec();
        let most = |row: Vec<f64>| (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("letters");
        let mut expected: Vec<(usize, usize)> =
            rows.iter().take(text.chars().count()).enumerate().map(|(place, row)| (most(letters(row)), place)).collect();
        expected.sort_unstable();
        let mut found: Vec<(usize, usize)> = line
            .split(' ')
            .filter_map(|link| link.split_once('-'))
            .map(|(source, target)| (source.parse().expect("a place"), target.parse().expect("a place")))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{word} {text}: {line}");
    }

    std::fs::write(folder.join("gold"), links.join("\n") + "\n").expect("gold");
    let judged: Value = serde_json::from_str(&align(&["--gold", "gold", "--json"])[0]).expect("JSON");
    assert_eq!(judged["quality"]["aer"], 0.0);
    let emit = ["heads", "mine", "--corpus", "pairs.tsv", "--emit", "alignment-heads", "--gold", "gold", "--top", "1"];
    let emitted: Value = serde_json::from_slice(&succeed(folder, &emit).stdout).expect("JSON");
    assert_eq!(emitted["alignment_heads"].as_array().map(Vec::len), Some(1));
    std::fs::write(folder.join("far"), format!("{}-0\n", pairs[0].0.chars().count())).expect("gold");
    let refused = seen(folder, &["align", "mine", "--corpus", "pairs.tsv", "--gold", "far"]);
    assert!(refused.starts_with("exit 1") && refused.contains("lies outside its sentences"), "{refused}");
}
