//! Pretrained models: a tiny T5 of random weights with a tokenizer of numbered words, asked in every way.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use super::common::{assert_alike, crosslens, explain, page_report, run, seen, shown, succeed, train};
use super::numbered::{T5, TOKENS, folder, tokenizer, words};
use super::serve::Serving;
use serde_json::{Map, Value, json};

fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    insta::assert_snapshot!(name, seen(folder, arguments));
}

fn lines(output: &std::process::Output) -> Vec<String> {
    String::from_utf8(output.stdout.clone()).expect("text").lines().map(str::to_owned).collect()
}

fn translate(folder: &Path, arguments: &[&str]) -> Vec<String> {
    lines(&succeed(folder, &[&["translate", "t5", "--max-tokens", "8"], arguments].concat()))
}

#[test]
fn a_text_is_translated_alone_and_from_lines() {
    let folder = folder();
    let folder = folder.path();
    let (first, second) = (translate(folder, &["w5 w6 w7"]), translate(folder, &["w40 w9"]));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(first[0].split(' ').all(|word| word.starts_with('w') || word == "<unk>"), "{first:?}");

    let piped = |input: &str, more: &[&str]| {
        let mut command = crosslens(folder, &[&["translate", "t5", "--max-tokens", "8"], more].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("read");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        lines(&output)
    };
    let [first, second] = [first, second].map(|mut lines| lines.remove(0));
    assert_eq!(piped("w5 w6 w7\nw40 w9\n", &[]), [&first[..], &second]);
    // A blank line stays one, at its place.
    assert_eq!(piped("\nw5 w6 w7\n \n\nw40 w9\n", &[]), ["", &first, "", "", &second]);
    let objects: Vec<Value> =
        piped("w5 w6 w7\n \nw40 w9\n", &["--json"]).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects[1], json!({ "source": " ", "text": "", "tokens": [] }));
    assert_eq!([&objects[0]["text"], &objects[2]["text"]], [&json!(first), &json!(second)]);
}

#[test]
fn the_best_of_a_beam_come_with_their_tokens_and_scores() {
    let folder = folder();
    let best = translate(folder.path(), &["w5 w6 w7", "--beams", "4", "--n-best", "3", "--json"]);
    assert_eq!(best.len(), 3);
    let best: Vec<Value> = best.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let scores: Vec<f64> = best.iter().map(|text| text["score"].as_f64().expect("a score")).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] < 0.0, "{scores:?}");
    for text in &best {
        assert_eq!(text["source"], "w5 w6 w7");
        let tokens: Vec<u64> = serde_json::from_value(text["tokens"].clone()).expect("tokens");
        assert!((1..=8).contains(&tokens.len()));
        let words: Vec<String> = tokens.iter().filter(|&&token| token > 2).map(|token| format!("w{token}")).collect();
        assert_eq!(text["text"].as_str().expect("a text").replace("<unk> ", "").replace("<unk>", "").trim(), words.join(" "));
    }
    assert_ne!(best[0]["tokens"], best[1]["tokens"]);
}

#[test]
fn the_same_seed_draws_the_same_text() {
    let folder = folder();
    let draw = |seed: &str| translate(folder.path(), &["w5 w6 w7", "--sample", "--seed", seed]);
    assert_eq!(draw("1"), draw("1"));
    assert!(["2", "3", "4"].iter().any(|seed| draw(seed) != draw("1")));
}

/// Almost no heat leaves the likeliest token alone, much of it makes all tokens alike.
#[test]
fn a_temperature_says_how_much_is_left_to_chance() {
    let folder = folder();
    let folder = folder.path();
    let greedy = translate(folder, &["w5 w6 w7", "--beams", "1"]);
    let draw = |temperature: &str, seed: &str| translate(folder, &["w5 w6 w7", "--sample", "--temperature", temperature, "--seed", seed]);
    for seed in ["1", "2", "3"] {
        assert_eq!(draw("0.00001", seed), greedy, "seed {seed}");
    }
    assert!(["1", "2", "3"].iter().any(|seed| draw("100", seed) != greedy));
    for (temperature, code) in [("0", Some(2)), ("-1", Some(2)), ("nan", Some(2))] {
        let option = format!("--temperature={temperature}");
        assert_eq!(run(folder, &["translate", "t5", "w5", "--sample", &option]).status.code(), code, "{option}");
    }
    assert_eq!(run(folder, &["translate", "t5", "w5", "--temperature", "0.5"]).status.code(), Some(2), "it is for --sample");
}

/// Adds settings to those of the model `t5`; null takes one out.
fn set(folder: &Path, settings: &Value) {
    let path = folder.join("t5/generation_config.json");
    let text = std::fs::read_to_string(&path).expect("settings");
    let mut all: Map<String, Value> = serde_json::from_str(&text).expect("JSON");
    all.extend(settings.as_object().expect("settings").clone());
    std::fs::write(path, Value::Object(all).to_string()).expect("settings");
}

/// The model's own settings of drawing count where none is asked for.
#[test]
fn a_model_draws_as_its_files_say() {
    let folder = folder();
    let folder = folder.path();
    let greedy = translate(folder, &["w5 w6 w7", "--beams", "1"]);
    let draw = |seed: &str, more: &[&str]| translate(folder, &[&["w5 w6 w7", "--sample", "--seed", seed], more].concat());
    let is_certain = |more: &[&str]| ["1", "2", "3", "4"].iter().all(|seed| draw(seed, more) == greedy);
    assert!(!is_certain(&[]));
    for (settings, freed) in [
        (json!({ "temperature": 1e-5, "top_k": null, "top_p": null }), ["--temperature", "100"]),
        (json!({ "temperature": null, "top_k": 1, "top_p": null }), ["--top-k", "0"]),
        (json!({ "temperature": null, "top_k": null, "top_p": 1e-5 }), ["--top-p", "1"]),
    ] {
        set(folder, &settings);
        assert!(is_certain(&[]), "{settings}");
        assert!(!is_certain(&freed), "{settings} with {freed:?}");
    }
    // From the 50 likeliest where nothing is said, as transformers draws; heat makes all tokens alike.
    set(folder, &json!({ "temperature": 1e4, "top_k": null, "top_p": null }));
    let drawn = |more: &[&str]| -> std::collections::BTreeSet<u64> {
        let token = |seed: usize| {
            let seed = seed.to_string();
            let asked = ["translate", "t5", "w5 w6 w7", "--max-tokens", "1", "--sample", "--json", "--seed", &seed];
            let text: Value = serde_json::from_str(&lines(&succeed(folder, &[&asked, more].concat())).concat()).expect("JSON");
            text["tokens"][0].as_u64().expect("a token")
        };
        (0..60).map(token).collect()
    };
    let (usual, fifty, all) = (drawn(&[]), drawn(&["--top-k", "50"]), drawn(&["--top-k", "0"]));
    assert_eq!(usual, fifty);
    assert_ne!(usual, all);
    assert_eq!(drawn(&["--top-k", "2"]).len(), 2);
}

/// Settings of drawing that make no sense are refused where tokens are drawn by them.
#[test]
fn a_model_does_not_draw_by_nonsense() {
    let folder = folder();
    let folder = folder.path();
    for (field, value) in [("temperature", json!(0)), ("temperature", json!(1e300)), ("top_k", json!(-1)), ("top_p", json!("half"))] {
        set(folder, &json!({ "temperature": null, "top_k": null, "top_p": null }));
        set(folder, &json!({ field: value }));
        let seen = seen(folder, &["translate", "t5", "w5", "--sample"]);
        assert!(seen.starts_with("exit 1") && seen.contains("generation_config.json"), "{seen}");
        assert!(seen.contains(&format!("field `{field}` is {value}; ")), "{seen}");
        let flag = format!("--{}=1", field.replace('_', "-"));
        succeed(folder, &["translate", "t5", "w5", "--sample", &flag]);
        succeed(folder, &["translate", "t5", "w5"]);
    }
}

/// What of the model's settings is not followed is told; of drawing only where something is drawn.
#[test]
fn settings_that_are_not_followed_are_said() {
    let folder = folder();
    let folder = folder.path();
    let told = |more: &[&str]| {
        let output = succeed(folder, &[&["translate", "t5", "w5", "--max-tokens", "4"], more].concat());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!([told(&[]), told(&["--sample"])], ["", ""]);
    set(folder, &json!({ "do_sample": true, "temperature": 0.5, "min_p": 0.05, "typical_p": 1.0, "num_beams": 2 }));
    let (plain, drawn) = (told(&[]), told(&["--sample"]));
    assert!(plain.contains("do_sample: true; this is not followed") && !plain.contains("min_p"), "{plain}");
    assert!(drawn.contains("num_beams: 2, min_p: 0.05; this is not followed") && !drawn.contains("do_sample"), "{drawn}");
    assert_eq!(told(&["--sample"]).lines().count(), 1);
}

/// Without a token that ends a text it is written until the length runs out, as in transformers, and this is said.
#[test]
fn a_text_without_an_end_is_told() {
    let folder = folder();
    let folder = folder.path();
    let n_tokens = || {
        let output = succeed(folder, &["translate", "t5", "w5 w6 w7", "--max-tokens", "30", "--json"]);
        let text: Value = serde_json::from_str(&lines(&output).concat()).expect("JSON");
        (text["tokens"].as_array().expect("tokens").len(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(n_tokens().1.is_empty());
    set(folder, &json!({ "eos_token_id": null }));
    let (n_tokens, told) = n_tokens();
    assert!(n_tokens == 30 && told.contains("no token that ends a text (`eos_token_id`)"), "{n_tokens}, {told}");
}

/// `max_length` of the files counts what a text begins with, --max-tokens does not.
#[test]
fn a_prefix_counts_into_the_length_of_the_files() {
    let folder = folder();
    let folder = folder.path();
    set(folder, &json!({ "max_length": 7, "min_new_tokens": 30 }));
    let n_tokens = |more: &[&str]| {
        let asked = ["translate", "t5", "w5 w6 w7", "--prefix", "w9 w8 w7", "--json"];
        let text: Value = serde_json::from_str(&lines(&succeed(folder, &[&asked, more].concat())).concat()).expect("JSON");
        text["tokens"].as_array().expect("tokens").len()
    };
    assert_eq!([n_tokens(&[]), n_tokens(&["--max-tokens", "6"])], [6, 9]);
    set(folder, &json!({ "max_length": 4 }));
    let seen = seen(folder, &["translate", "t5", "w5", "--prefix", "w9 w8 w7"]);
    assert!(seen.starts_with("exit 1") && seen.contains("the beginning has 3 tokens; the model takes 2 at most"), "{seen}");
    assert_eq!(n_tokens(&["--max-tokens", "6"]), 9);
}

/// A text's score is its log probability over its length to the power of the penalty: with 0 it is the log probability itself. Of at most
/// two tokens the same hypotheses are found whatever the penalty, but for one that is only an end.
#[test]
fn a_length_penalty_divides_by_the_length() {
    let folder = folder();
    let folder = folder.path();
    let best = |penalty: &str| -> Vec<(Vec<u64>, f64)> {
        let search = ["translate", "t5", "w40 w9", "--max-tokens", "2", "--beams", "4", "--n-best", "4", "--json"];
        let lines = lines(&succeed(folder, &[&search[..], &["--length-penalty", penalty]].concat()));
        let text = |line: &String| serde_json::from_str::<Value>(line).expect("JSON");
        let of = |text: Value| (serde_json::from_value(text["tokens"].clone()).expect("tokens"), text["score"].as_f64().expect("a score"));
        lines.iter().map(text).map(of).collect()
    };
    let plain = best("0");
    for penalty in [1, 2, -1] {
        let rated = best(&penalty.to_string());
        assert!(rated.is_sorted_by(|a, b| a.1 >= b.1), "{rated:?}");
        let mut n_common = 0;
        for (tokens, score) in &rated {
            let Some((_, log_probability)) = plain.iter().find(|(other, _)| other == tokens) else { continue };
            let expected = log_probability / (tokens.len() as f64).powi(penalty);
            assert!((score - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{tokens:?}: {score} and {expected}");
            n_common += usize::from(tokens.len() == 2);
        }
        assert!(n_common > 1, "{rated:?} and {plain:?}");
    }
    assert_eq!(run(folder, &["translate", "t5", "w5", "--length-penalty", "inf"]).status.code(), Some(2));
}

/// A text that is begun keeps its beginning, and each word after it is the model's likeliest on what was written.
#[test]
fn a_prefix_is_kept_and_gone_on_with() {
    let folder = folder();
    let folder = folder.path();
    let written = |prefix: &str| -> Vec<usize> {
        let line = translate(folder, &["w5 w6 w7", "--beams", "1", "--json", "--prefix", prefix]).concat();
        serde_json::from_value(serde_json::from_str::<Value>(&line).expect("JSON")["tokens"].clone()).expect("tokens")
    };
    // Of what random weights write, some cannot be spelled as a target again.
    let is_text = |tokens: &[usize]| {
        tokens[..tokens.len() - 1].iter().all(|&token| token > 2) && tokens.last().is_some_and(|last| ![0, 2].contains(last))
    };
    let prefixes = (0..20).map(|number| words(number, 3));
    let (prefix, tokens) = prefixes.map(|prefix| (prefix.clone(), written(&prefix))).find(|(_, tokens)| is_text(tokens)).expect("words");
    let name = |token: usize| if token == 1 { "</s>".to_owned() } else { format!("w{token}") };
    let names: Vec<String> = tokens.iter().map(|&token| name(token)).collect();
    assert_eq!(names[..3].join(" "), prefix);
    assert!(names.len() > 3, "{names:?}");

    let target = names.iter().filter(|name| *name != "</s>").cloned().collect::<Vec<_>>().join(" ");
    succeed(folder, &["attend", "t5", "--source", "w5 w6 w7", "--target", &target, "-o", "x.json"]);
    let attended: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
    let predicted: Vec<String> = serde_json::from_value(attended["predicted"].clone()).expect("words");
    assert_eq!(predicted[3..names.len()], names[3..]);
}

/// The first number of a tensor becomes no number; a tensor has another name, or its axes another order.
#[test]
fn weights_that_lie_are_refused_by_the_name_of_their_tensor() {
    let folder = folder();
    let folder = folder.path();
    let file = folder.join("t5/model.safetensors");
    let weights = std::fs::read(&file).expect("weights");
    let header = 8 + u64::from_le_bytes(weights[..8].try_into().expect("eight bytes")) as usize;
    let text = String::from_utf8(weights[8..header].to_vec()).expect("a header");
    let name = "decoder.block.1.layer.1.EncDecAttention.k.weight";
    let tensors: Value = serde_json::from_str(&text).expect("JSON");
    let begin = header + tensors[name]["data_offsets"][0].as_u64().expect("an offset") as usize;
    let words = tensors["shared.weight"]["shape"].to_string();
    let turned = json!([tensors["shared.weight"]["shape"][1], tensors["shared.weight"]["shape"][0]]).to_string();
    let refused = |bytes: &[u8], name: &str, says: &str| {
        std::fs::write(&file, bytes).expect("weights");
        for command in [["translate", "t5", "w5"], ["heads", "t5", "--corpus=pairs.tsv"], ["align", "t5", "--corpus=pairs.tsv"]] {
            let seen = seen(folder, &command);
            assert!(seen.starts_with("exit 1") && seen.contains("`t5"), "{seen}");
            assert!(seen.contains(&format!("`{name}`")) && seen.contains(says), "{seen}");
        }
    };
    let mut spoilt = weights.clone();
    spoilt[begin..begin + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    refused(&spoilt, name, "not finite");
    let with_header = |text: &str| {
        assert_eq!(text.len() + 8, header, "the header is as long");
        [&weights[..8], text.as_bytes(), &weights[header..]].concat()
    };
    refused(&with_header(&text.replace(name, &name.replace(".k.", ".x."))), name, "has no tensor");
    let place = text.find("\"shared.weight\"").expect("the words");
    let (before, after) = text.split_at(place);
    refused(&with_header(&(before.to_owned() + &after.replacen(&words, &turned, 1))), "shared.weight", "has the shape");
}

/// Two layers of four heads on each side.
#[test]
fn every_attention_of_a_sentence_is_written() {
    let folder = folder();
    let folder = folder.path();
    let attend = ["attend", "t5", "--source", "w5 w6 w7", "--target", "w8 w9", "-o"];
    succeed(folder, &[&attend[..], &["x.json"]].concat());
    let attended: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
    assert_eq!(attended["source"], json!(["w5", "w6", "w7", "</s>"]));
    assert_eq!(attended["fed"], json!(["<pad>", "w8", "w9"]));
    for (name, n_queries, n_keys) in [("cross_attentions", 3, 4), ("encoder_attentions", 4, 4), ("decoder_attentions", 3, 3)] {
        for layer in 0..2 {
            let array: Vec<Vec<Vec<f64>>> = serde_json::from_value(attended[format!("{name}.{layer}")].clone()).expect(name);
            assert_eq!((array.len(), array[0].len(), array[0][0].len()), (4, n_queries, n_keys), "{name}");
            for row in array.iter().flatten() {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{name}: {row:?}");
            }
            if name == "decoder_attentions" {
                assert!(array.iter().all(|head| head[0] == [1.0, 0.0, 0.0]), "the first step sees nothing else");
            }
        }
    }

    succeed(folder, &[&attend[..], &["x.npz"]].concat());
    let bytes = std::fs::read(folder.join("x.npz")).expect("a file");
    let text = String::from_utf8_lossy(&bytes);
    for (name, shape) in [("cross_attentions", "(4, 3, 4, )"), ("encoder_attentions", "(4, 4, 4, )"), ("decoder_attentions", "(4, 3, 3, )")]
    {
        for layer in 0..2 {
            let file = text.find(&format!("{name}.{layer}.npy")).unwrap_or_else(|| panic!("no {name}.{layer}"));
            let header = &text[file..].chars().take(200).collect::<String>();
            assert!(header.contains(&format!("'shape': {shape}")), "{header}");
        }
    }
}

#[test]
fn a_corpus_is_explained_head_by_head() {
    let folder = folder();
    let folder = folder.path();
    let stated = |arguments: &[&str]| {
        let output = succeed(folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("30 sentences; besides the model this needs at most ") && said.contains(" of memory"), "{said}");
        output
    };
    let output = stated(&["explain", "t5", "--corpus", "pairs.tsv", "--causal", "10", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let halves = |report: &Value| ["pairs", "fitted_pairs", "held_out"].map(|field| report["corpus"][field].clone());
    assert_eq!(halves(&report), [json!(15), json!(15), json!(true)], "one half to fit on, the other to explain");
    let whole = explain(folder, &["t5", "--corpus", "pairs.tsv", "--causal", "0", "--no-held-out"]);
    assert_eq!(halves(&whole), [json!(30), json!(30), json!(false)]);
    assert_eq!(run(folder, &["explain", "t5", "--corpus", "pairs.tsv", "--held-out", "--no-held-out"]).status.code(), Some(2));
    let shown = lines(&succeed(folder, &["explain", "t5", "--corpus", "pairs.tsv", "--causal", "0"])).join("\n");
    assert!(shown.contains("explained on 15 sentences, fitted on 15 others"), "{shown}");
    stated(&["fit", "t5", "--corpus", "pairs.tsv", "-o", "x.stats.safetensors"]);
    stated(&["report", "t5", "--corpus", "pairs.tsv", "--causal", "0"]);
    let sites = report["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), 8, "two layers of four heads");
    assert!(sites.iter().all(|site| site["error"]["score"].as_f64().expect("an error") < 1e-5));

    let heads = |more: &[&str]| succeed(folder, &[&["heads", "t5", "--corpus", "pairs.tsv", "--causal-samples", "10"], more].concat());
    let table = lines(&heads(&["--bootstrap", "0"]));
    assert!(table[1].starts_with("head          label") && table[2].contains(" – "), "without resamples no interval: {table:?}");
    let within = lines(&heads(&["--bootstrap", "20"]))[2].split_whitespace().nth(7).map(str::parse::<f64>);
    assert!(matches!(within, Some(Ok(width)) if width > 0.0), "{within:?}");
    assert!(table[2].starts_with("cross 0.0") && table[9].starts_with("cross 1.3"), "{table:?}");
    assert!(table.last().expect("a sum").starts_with("8 heads: "), "{table:?}");

    let output = stated(&["heads", "t5", "--corpus", "pairs.tsv", "--causal-samples", "10", "--bootstrap", "5", "--json"]);
    let listed: Value = serde_json::from_str(&lines(&output).concat()).expect("JSON");
    let parts = listed["memory"]["parts"].as_object().expect("parts");
    assert_eq!(listed["memory"]["bytes"].as_u64(), parts.values().map(Value::as_u64).sum());
    // Of 64 words and 216 rows, or on a matrix unit 448; single sentences are kept only for a report that is saved.
    let is_of = |bytes: u64| bytes > 0 && [216_u64, 448].iter().any(|rows| bytes.is_multiple_of(rows * 64 * 4));
    assert!(parts["logits"].as_u64().is_some_and(is_of), "{parts:?}");
    let saved: Value = serde_json::from_str(&lines(&heads(&["--bootstrap", "0", "--json", "--save", "s.json"])).concat()).expect("JSON");
    assert_eq!(parts["samples"], 0);
    assert!(saved["memory"]["parts"]["samples"].as_u64().is_some_and(|bytes| bytes > 0), "{}", saved["memory"]);
    let listed = listed["heads"].as_array().expect("heads").clone();
    assert_eq!(listed.len(), 8);
    for (head, line) in listed.iter().zip(&table[2..]) {
        assert_eq!(line.split_whitespace().nth(2), head["label"].as_str(), "{line}");
        assert!(head["effect"]["uniform"].is_f64() && head["diagonal"].is_f64());
        assert_eq!(columns(line), columns_of(head), "{line}");
        assert_eq!(head["intervals"].as_array().map(Vec::len), Some(9), "{head}");
        for (share, value) in head["shares"].as_object().expect("four shares") {
            let [low, high] = [0, 1].map(|end| head["share_intervals"][share][end].as_f64().expect("an interval"));
            let value = value.as_f64().expect("a share");
            assert!(low < high && (low - 0.2..high + 0.2).contains(&value), "{share} {value}: {low} to {high}");
        }
    }
    let all: Value = serde_json::from_str(&lines(&heads(&["--self-attention", "--bootstrap", "0", "--json"])).concat()).expect("JSON");
    assert_eq!(all["heads"].as_array().map(Vec::len), Some(24));

    let emit = ["--bootstrap", "0", "--emit", "alignment-heads", "--monotone", "--top", "3", "--save", "found.json"];
    let emitted: Value = serde_json::from_str(&lines(&heads(&emit)).concat()).expect("JSON");
    let found: Value = serde_json::from_slice(&std::fs::read(folder.join("found.json")).expect("a report")).expect("JSON");
    let mut ranked = found["sites"].as_array().expect("heads").clone();
    ranked.sort_by(|a, b| b["monotone"].as_f64().expect("a share").total_cmp(&a["monotone"].as_f64().expect("a share")));
    let best: Vec<Value> = ranked[..3].iter().map(|head| json!([head["layer"], head["head"]])).collect();
    assert_eq!(emitted["alignment_heads"], json!(best));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let folder = folder();
    let folder = folder.path();
    snapshot("heads without corpus", folder, &["heads", "t5"]);
    snapshot("heads of one sentence", folder, &{
        std::fs::write(folder.join("one.tsv"), "w5 w6\tw7\n").expect("a corpus");
        ["heads", "t5", "--corpus", "one.tsv"]
    });
    std::fs::write(folder.join("gold"), "0-0\n").expect("gold");
    let emit = ["heads", "t5", "--corpus", "pairs.tsv", "--emit", "alignment-heads", "--gold", "gold"];
    let seen = seen(folder, &emit);
    assert!(seen.starts_with("exit 1") && seen.contains("links of 1 sentences are given for 30"), "{seen}");
    for wrong in [&[&emit[..], &["--monotone"]].concat(), &[&emit[..4], &emit[6..]].concat(), &[&emit[..2], &emit[4..]].concat()] {
        assert_eq!(run(folder, wrong).status.code(), Some(2), "{wrong:?}");
    }
    snapshot("heads emitted unrated", folder, &["heads", "t5", "--corpus", "pairs.tsv", "--emit", "alignment-heads"]);
    snapshot("translate nothing", folder, &["translate", "t5", " "]);
    snapshot("translate without a tokenizer", folder, &["translate", "mute", "w5"]);
    snapshot("translate more texts than beams", folder, &["translate", "t5", "w5", "--beams", "2", "--n-best", "3"]);
    snapshot("translate at random with beams", folder, &["translate", "t5", "w5", "--sample", "--beams", "2"]);
    snapshot("translate with no model", folder, &["translate", "nowhere", "w5"]);
    let code = |arguments: &[&str]| run(folder, arguments).status.code();
    assert_eq!(code(&["translate", "t5", "w5", "--n-best", "3", "--beams", "2"]), Some(2));
    snapshot("help of heads", folder, &["heads", "--help"]);
    snapshot("help of translate", folder, &["translate", "--help"]);
}

/// What `align` prints must be what it would print if its own links were the gold.
#[test]
fn words_are_linked_and_held_against_gold() {
    let folder = folder();
    let folder = folder.path();
    let align = |more: &[&str]| lines(&succeed(folder, &[&["align", "t5", "--corpus", "pairs.tsv"], more].concat()));
    let links = align(&["--heads", "1.2"]);
    assert_eq!(links.len(), 30);
    for (number, line) in links.iter().enumerate() {
        // Each target word has one source word, both within their sentences.
        let ends: Vec<(usize, usize)> =
            line.split(' ').filter_map(|link| link.split_once('-')).map(|(s, t)| (s.parse().expect("s"), t.parse().expect("t"))).collect();
        assert_eq!(ends.len(), 2 + number % 6, "{line}");
        assert!(ends.iter().all(|&(source, target)| source < 3 + number % 5 && target < 2 + number % 6), "{line}");
    }
    std::fs::write(folder.join("gold"), links.join("\n") + "\n").expect("gold");
    let json = |more: &[&str]| -> Value {
        let lines = align(&[&["--gold", "gold", "--json"], more].concat());
        serde_json::from_str(&lines[0]).expect("JSON")
    };
    let same = json(&["--heads", "1.2"]);
    assert_eq!((&same["quality"]["aer"], &same["quality"]["f1"]), (&json!(0.0), &json!(1.0)));
    let other = json(&["--heads", "0.1"]);
    assert!(other["quality"]["aer"].as_f64().expect("a rate") > 0.1, "{}", other["quality"]);
    // Chosen by the even sentences, measured on the odd ones.
    let auto = json(&[]);
    assert_eq!((&auto["heads"], &auto["quality"]["aer"]), (&json!([[1, 2]]), &json!(0.0)));
    assert_eq!(auto["rated"].as_array().expect("heads").len(), 8);
    let shifted = align(&["--heads", "1.2", "--shifted"]);
    assert_ne!(shifted, links);
    // One row for each target token and the end, one column for each source token and the end.
    let soft = |model: &str| lines(&succeed(folder, &["align", model, "--corpus", "pairs.tsv", "--heads", "1.2", "--soft"]));
    let head = format!("0 ||| {} ||| 0 ||| {} ||| 4 3", words(1, 2), words(0, 3));
    let weights = |lines: &[String]| -> Vec<Vec<f64>> {
        lines[1..4].iter().map(|line| line.split(' ').map(|weight| weight.parse().expect("a weight")).collect()).collect()
    };
    let with_end = soft("t5");
    assert_eq!(with_end[0], head);
    assert!(weights(&with_end).iter().all(|row| row.len() == 4 && (row.iter().sum::<f64>() - 1.0).abs() < 1e-5), "{with_end:?}");
    // A tokenizer that puts no end to a text: no token is lost, and the end that the format wants has no weight.
    std::fs::create_dir(folder.join("endless")).expect("a folder");
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(folder.join("t5").join(file), folder.join("endless").join(file)).expect("a copy");
    }
    let mut endless = tokenizer();
    endless["post_processor"] = Value::Null;
    std::fs::write(folder.join("endless/tokenizer.json"), endless.to_string()).expect("a tokenizer");
    let without_end = soft("endless");
    assert_eq!(without_end[0], head);
    let rows = weights(&without_end);
    assert!(rows[..2].iter().all(|row| row[3] == 0.0 && (row.iter().sum::<f64>() - 1.0).abs() < 1e-5), "{without_end:?}");
    assert_eq!(rows[2], [0.0; 4]);
    let turned = align(&["--heads", "1.2", "--reverse", "t5", "--symmetrise", "intersection"]);
    for (both, one) in turned.iter().zip(&links) {
        assert!(both.split_whitespace().all(|link| one.split(' ').any(|other| other == link)), "{both} of {one}");
    }
    // By all sentences, each head as `align` rates it alone; the one whose links they are first.
    let mut rated: Vec<(f64, [usize; 2])> = (0..2)
        .flat_map(|layer| (0..4).map(move |head| [layer, head]))
        .map(|[layer, head]| (json(&["--heads", &format!("{layer}.{head}")])["quality"]["aer"].as_f64().expect("a rate"), [layer, head]))
        .collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0));
    let emitted = succeed(folder, &["heads", "t5", "--corpus", "pairs.tsv", "--emit", "alignment-heads", "--gold", "gold", "--top", "3"]);
    let list: Value = serde_json::from_str(&lines(&emitted).concat()).expect("JSON");
    assert_eq!(list, json!({ "alignment_heads": rated[..3].iter().map(|(_, head)| head).collect::<Vec<_>>() }));
    assert_eq!(list["alignment_heads"][0], json!([1, 2]));
    let said = String::from_utf8_lossy(&emitted.stderr).into_owned();
    assert!(said.starts_with("AER over 30 pairs: 1.2 0.000, "), "{said}");
    // The sentences that chose the head do not count for links of both directions either. AER = 1 − 2 hits / (links + gold).
    let joined = json(&["--reverse", "t5", "--symmetrise", "union"]);
    let rate = |is_judged: fn(usize) -> bool| {
        let (mut hits, mut total) = (0, 0);
        for (number, gold) in links.iter().enumerate().filter(|&(number, _)| is_judged(number)) {
            let gold: Vec<&str> = gold.split(' ').collect();
            let found: Vec<&str> = joined["links"][number].as_str().expect("links").split(' ').collect();
            hits += found.iter().filter(|link| gold.contains(link)).count();
            total += found.len() + gold.len();
        }
        1.0 - 2.0 * hits as f64 / total as f64
    };
    let (odd, all) = (rate(|number| number % 2 == 1), rate(|_| true));
    let aer = joined["quality"]["aer"].as_f64().expect("a rate");
    assert!((aer - odd).abs() < 1e-12 && (odd - all).abs() > 1e-9, "{aer}: {odd} of the odd ones, {all} of all");
}

/// The corpora of `train`, and links that count from 1, are possible only, or lie outside their sentences.
#[test]
fn any_corpus_is_aligned_and_gold_is_read_by_its_base() {
    let folder = folder();
    let folder = folder.path();
    let text = std::fs::read_to_string(folder.join("pairs.tsv")).expect("pairs");
    let halves: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    let write = |name: &str, line: &dyn Fn(&(&str, &str)) -> String| {
        std::fs::write(folder.join(name), halves.iter().map(line).collect::<String>()).expect("a file");
    };
    write("bars.txt", &|(source, target)| format!("{source} ||| {target}\n"));
    write("pairs.jsonl", &|(source, target)| json!({ "source": source, "target": target }).to_string() + "\n");
    write("a.en", &|(source, _)| format!("{source}\n"));
    write("b.fr", &|(_, target)| format!("{target}\n"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("into memory");
    std::fs::write(folder.join("pairs.tsv.gz"), packed.finish().expect("into memory")).expect("a file");
    let align =
        |corpus: &str, more: &[&str]| lines(&succeed(folder, &[&["align", "t5", "--heads", "1.2", "--corpus", corpus], more].concat()));
    let links = align("pairs.tsv", &[]);
    for corpus in ["pairs.tsv.gz", "pairs.jsonl", "a.en,b.fr", "bars.txt"] {
        assert_eq!(align(corpus, &[]), links, "{corpus}");
    }

    let shifted = |line: &String, sign: &str, by: usize| {
        let ends = line.split(' ').filter_map(|link| link.split_once('-'));
        let place = |text: &str| text.parse::<usize>().expect("a place") + by;
        ends.map(|(source, target)| format!("{}{sign}{}", place(source), place(target))).collect::<Vec<_>>().join(" ") + "\n"
    };
    for (name, sign, by) in [("from-one", "-", 1), ("possible", "p", 0)] {
        std::fs::write(folder.join(name), links.iter().map(|line| shifted(line, sign, by)).collect::<String>()).expect("gold");
    }
    for (gold, base) in [("from-one", "1"), ("possible", "0")] {
        let lines = align("pairs.tsv", &["--gold", gold, "--gold-base", base, "--json"]);
        let quality = &serde_json::from_str::<Value>(&lines[0]).expect("JSON")["quality"];
        assert_eq!((&quality["aer"], &quality["precision"]), (&json!(0.0), &json!(1.0)), "{gold}: {quality}");
    }
    // The last word of every target is linked, so that counting from 0 leaves the first sentence; its first word has a place 0.
    for (gold, base, says) in [("from-one", "0", "lies outside its sentences"), ("possible", "1", "has a place 0")] {
        let arguments = ["align", "t5", "--heads", "1.2", "--corpus", "pairs.tsv", "--gold", gold, "--gold-base", base];
        let seen = seen(folder, &arguments);
        assert!(seen.starts_with("exit 1") && seen.contains(&format!("`{gold}`: line 1: ")) && seen.contains(says), "{seen}");
    }
    std::fs::write(folder.join("bad.tsv"), [text.as_bytes(), b"w5 \xff\tw6\n"].concat()).expect("a file");
    let seen = seen(folder, &["align", "t5", "--corpus", "bad.tsv"]);
    assert!(seen.starts_with("exit 1") && seen.contains("`bad.tsv`, line 31: it gives no pair: not UTF-8"), "{seen}");
}

#[test]
fn what_cannot_be_aligned_is_refused() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("one.tsv"), "a\tb\nonly one side\nc\td\n").expect("a file");
    snapshot("align without a target", folder, &["align", "t5", "--corpus", "one.tsv"]);
    snapshot("align by a head that is not there", folder, &["align", "t5", "--corpus", "pairs.tsv", "--heads", "7.0"]);
    std::fs::write(folder.join("gold"), "0-0\n").expect("gold");
    snapshot("align against too little gold", folder, &["align", "t5", "--corpus", "pairs.tsv", "--gold", "gold"]);
    snapshot("align against a device", folder, &["align", "t5", "--corpus", "pairs.tsv", "--gold", "/dev/zero"]);
    snapshot("attend to nothing", folder, &["attend", "t5", "--source", " ", "-o", "x.npz"]);
    snapshot("align with a kind of joining", folder, &["align", "t5", "--corpus", "pairs.tsv", "--reverse", "t5", "--symmetrise", "x"]);
}

/// A page of what was written has all of it, however much that is; only a corpus is halved.
#[test]
fn a_page_of_translations_has_all_of_them() {
    let folder = folder();
    let folder = folder.path();
    let mut command = crosslens(folder, &["translate", "t5", "--max-tokens", "4", "--explain", "page.html"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let texts: String = (0..6).map(|number| words(number, 3) + "\n").collect();
    child.stdin.take().expect("an input").write_all(texts.as_bytes()).expect("read");
    assert!(child.wait().expect("it ends").success());
    let page = page_report(&folder.join("page.html"));
    assert_eq!((&page["report"]["corpus"]["pairs"], page["samples"].as_array().map(Vec::len)), (&json!(6), Some(6)));
    succeed(folder, &["report", "t5", "--corpus", "pairs.tsv", "--causal", "0"]);
    let halved = &page_report(&folder.join("report.html"))["report"]["corpus"];
    assert_eq!((&halved["pairs"], &halved["fitted_pairs"], &halved["held_out"]), (&json!(15), &json!(15), &json!(true)));
}

/// Kind and place, four shares, entropy, agreement, three effects: numbers as a line of the table has them, the interval left out.
fn columns(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().filter(|&word| word != "%").collect();
    let is_number = |place: &usize| [0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 12].contains(place);
    words.iter().enumerate().filter(|(place, _)| is_number(place)).map(|(_, word)| (*word).to_owned()).collect()
}

/// The same of a head in JSON.
fn columns_of(head: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_f64().expect("a number");
    let percent = |value: &Value| format!("{:.0}", 100.0 * number(value) + 0.0);
    let place = format!("{}.{}", head["layer"], head["head"]);
    let shares = ["positional", "token", "sink", "residual"].map(|share| percent(&head["shares"][share]));
    let effect = ["rebuilt", "uniform", "average"].map(|change| format!("{:+.3}", number(&head["effect"][change])));
    let rest = [format!("{:.2}", number(&head["entropy"])), percent(&head["agreement"])];
    [head["kind"].as_str().expect("a kind").to_owned(), place].into_iter().chain(shares).chain(rest).chain(effect).collect()
}

/// Of a large corpus the task is judged on a part, which `heads` and `compare` say; what is said of the heads is of all.
#[test]
fn of_many_sentences_some_say_whether_the_task_is_done() {
    let folder = folder();
    let folder = folder.path();
    let pair = |number: usize| format!("{}\t{}\n", words(number, 3), words(number + 1, 2));
    std::fs::write(folder.join("many.tsv"), (0..4000).map(pair).collect::<String>()).expect("a corpus");
    let asked = ["heads", "t5", "--corpus", "many.tsv", "--causal-samples", "0", "--bootstrap", "0", "--json"];
    let output = succeed(folder, &asked);
    let listed: Value = serde_json::from_str(&lines(&output).concat()).expect("JSON");
    // Batches of 64 are answered or not: 32 of the 63 are, the last, of 32, among them.
    let says = "accuracy and loss are of 1008 of the 2000 sentences that are explained";
    assert_eq!((&listed["corpus"]["pairs"], &listed["corpus"]["warnings"]), (&json!(2000), &json!([says])));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("warning: {says}")));
    let compared = succeed(folder, &["compare", "t5", "t5", "--corpus", "many.tsv"]);
    assert_eq!(String::from_utf8_lossy(&compared.stderr).matches(says).count(), 2);
}

/// Links of one model and those of another that reads the other direction, turned round and joined by hand.
#[test]
fn links_of_two_models_are_joined() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("other")).expect("a folder");
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(Path::new(T5).with_file_name("t5-apart").join(file), folder.join("other").join(file)).expect("a copy");
    }
    std::fs::write(folder.join("other/tokenizer.json"), tokenizer().to_string()).expect("a tokenizer");
    let pairs = std::fs::read_to_string(folder.join("pairs.tsv")).expect("pairs");
    let turned: Vec<String> =
        pairs.lines().filter_map(|line| line.split_once('\t')).map(|(source, target)| format!("{target}\t{source}\n")).collect();
    std::fs::write(folder.join("turned.tsv"), turned.concat()).expect("a corpus");
    type Ends = BTreeSet<(usize, usize)>;
    let links = |arguments: &[&str]| -> Vec<Ends> {
        let ends = |link: &str| link.split_once('-').map(|(a, b)| (a.parse().expect("a place"), b.parse().expect("a place")));
        let lines = lines(&succeed(folder, &[&["align"], arguments].concat()));
        lines.iter().map(|line| line.split_whitespace().filter_map(ends).collect()).collect()
    };
    let forward = links(&["t5", "--corpus", "pairs.tsv", "--heads", "1.2"]);
    let back = links(&["other", "--corpus", "turned.tsv"]);
    let turned_back: Vec<Ends> = back.iter().map(|ends| ends.iter().map(|&(a, b)| (b, a)).collect()).collect();
    assert_ne!(back, turned_back);
    let joined = |kind| links(&["t5", "--corpus", "pairs.tsv", "--heads", "1.2", "--reverse", "other", "--symmetrise", kind]);
    let both = |join: fn(&Ends, &Ends) -> Ends| forward.iter().zip(&turned_back).map(|(a, b)| join(a, b)).collect::<Vec<_>>();
    let (common, all) = (both(|a, b| a & b), both(|a, b| a | b));
    assert!(common.iter().any(|ends| !ends.is_empty()) && common != forward && all != forward);
    assert_eq!(joined("intersection"), common);
    assert_eq!(joined("union"), all);
}

/// Rows of soft alignments are those that `--shifted` takes, links above a weight those that have more of it.
#[test]
fn soft_rows_are_shifted_too_and_links_have_more_than_the_threshold() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("pair.tsv"), format!("{}\t{}\n", words(1, 4), words(2, 3))).expect("a corpus");
    let align = |more: &[&str]| lines(&succeed(folder, &[&["align", "t5", "--corpus", "pair.tsv", "--heads", "1.2"], more].concat()));
    let (plain, shifted) = (align(&["--soft"]), align(&["--soft", "--shifted"]));
    // A header, then a row for each of three words and the end, which nothing reads.
    assert_eq!((plain.len(), &shifted[0]), (6, &plain[0]));
    assert_eq!(shifted[1..4], plain[2..5]);
    let weights = |line: &str| line.split(' ').map(|weight| weight.parse().expect("a weight")).collect::<Vec<f64>>();
    assert!(weights(&shifted[4]).iter().all(|&weight| weight == 0.0), "{shifted:?}");
    let rows: Vec<Vec<f64>> = plain[1..4].iter().map(|line| weights(line)).collect();
    for threshold in [0.0, 0.1, 0.25, 1.0] {
        let linked = align(&["--threshold", &threshold.to_string()]).concat();
        let expected = (0..3).flat_map(|t| (0..4).map(move |s| (s, t))).filter(|&(s, t)| rows[t][s] > threshold);
        let mut expected: Vec<String> = expected.map(|(s, t)| format!("{s}-{t}")).collect();
        let mut linked: Vec<String> = linked.split_whitespace().map(str::to_owned).collect();
        expected.sort_unstable();
        linked.sort_unstable();
        assert_eq!(linked, expected, "more than {threshold}");
    }
    for wrong in ["-0.1", "1.5", "NaN", "much"] {
        let output = run(folder, &["align", "t5", "--corpus", "pair.tsv", &format!("--threshold={wrong}")]);
        assert!(output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("from 0 to 1"), "{wrong}");
    }
}

/// A sentence that is asked about comes first among those shown.
#[test]
fn one_sentence_is_explained_among_others_or_by_sums() {
    let folder = folder();
    let folder = folder.path();
    let report = explain(folder, &["t5", "--corpus", "pairs.tsv", "--source", "w5 w6 w7", "--target", "w9 w8", "--causal", "0"]);
    assert_eq!(report["corpus"]["pairs"], 16, "of 31 one half, the sentence that is asked for among them");
    let asked = ["explain", "t5", "--corpus", "pairs.tsv", "--source", "w5 w6 w7", "--target", "w9 w8", "--causal", "0"];
    let shown = lines(&succeed(folder, &asked)).join("\n");
    assert!(shown.contains("source: w5 w6 w7 </s>"), "{shown}");
    succeed(folder, &["fit", "t5", "--corpus", "pairs.tsv", "-o", "x.stats.safetensors"]);
    let report = explain(folder, &["t5", "--components", "x.stats.safetensors", "--source", "w5 w6 w7", "--causal", "0"]);
    assert_eq!(report["corpus"]["pairs"], 1);

    // Alone it shows what it looks at, on the model's own words, and says that shares tell nothing.
    let output = succeed(folder, &["explain", "t5", "--source", "w5 w6 w7", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!((&report["corpus"]["pairs"], report["sites"].as_array().map(Vec::len)), (&json!(1), Some(8)));
    let warning = report["corpus"]["warnings"][0].as_str().expect("a warning").to_owned();
    assert!(warning.starts_with("one sentence shows attention and scores") && warning.contains("--corpus FILE"), "{warning}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("1 sentence; besides the model this needs at most ") && said.contains(&format!("warning: {warning}")),
        "{said}"
    );
    let halved = seen(folder, &["explain", "t5", "--source", "w5 w6 w7", "--held-out"]);
    assert!(halved.starts_with("exit 1") && halved.contains("one sentence has no two halves"), "{halved}");
    let shown = lines(&succeed(folder, &["explain", "t5", "--source", "w5 w6 w7"])).join("\n");
    assert!(shown.contains("explained on 1 sentences"), "{shown}");
    // What is proposed next can be done, once there is a file.
    let said = String::from_utf8_lossy(&succeed(folder, &["explain", "t5", "--source", "w5 w6 w7"]).stderr).into_owned();
    assert!(said.contains("next: crosslens explain t5 --corpus FILE --save report.json"), "{said}");
}

/// Files as `train` takes them: packed, with a mark, two beside each other.
#[test]
fn a_model_that_was_not_trained_here_takes_any_corpus() {
    let folder = folder();
    let folder = folder.path();
    let pairs = std::fs::read_to_string(folder.join("pairs.tsv")).expect("a corpus");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(pairs.as_bytes()).expect("into memory");
    std::fs::write(folder.join("pairs.tsv.gz"), packed.finish().expect("into memory")).expect("a corpus");
    std::fs::write(folder.join("marked.tsv"), format!("\u{feff}{pairs}")).expect("a corpus");
    for (name, column) in [("x.en", 0), ("x.fr", 1)] {
        let side: String = pairs.lines().map(|line| line.split('\t').nth(column).expect("two columns").to_owned() + "\n").collect();
        std::fs::write(folder.join(name), side).expect("a corpus");
    }
    let by = |corpus: &str| explain(folder, &["t5", "--corpus", corpus, "--causal", "0"]);
    let whole = by("pairs.tsv");
    for corpus in ["pairs.tsv.gz", "marked.tsv", "x.en,x.fr"] {
        assert_alike(&by(corpus), &whole, 1e-9, &[]);
    }
    for command in [&["heads", "--causal-samples", "0", "--bootstrap", "0"][..], &["fit", "-o", "x.stats.safetensors"]] {
        succeed(folder, &[&[command[0], "t5", "--corpus", "pairs.tsv.gz"], &command[1..]].concat());
    }
    // Sources alone.
    std::fs::write(folder.join("words.txt"), "w5 w6\nw7\n").expect("a corpus");
    assert_eq!(explain(folder, &["t5", "--corpus", "words.txt", "--causal", "0"])["corpus"]["pairs"], 2);
    let refused = seen(folder, &["explain", "t5", "--corpus", "pairs.json"]);
    assert!(refused.starts_with("exit 1") && refused.contains("jq -c"), "{refused}");
}

/// Shards of a file add up to the whole of it, and one of them reads nothing of the others.
#[test]
fn a_shard_of_a_corpus_reads_its_own_lines_alone() {
    let folder = folder();
    let folder = folder.path();
    for (shard, out) in [("1/2", "1"), ("2/2", "2"), ("1/1", "whole")] {
        succeed(folder, &["fit", "t5", "--corpus", "pairs.tsv", "--shard", shard, "-o", &format!("{out}.stats.safetensors")]);
    }
    succeed(folder, &["merge", "1.stats.safetensors", "2.stats.safetensors", "-o", "merged.stats.safetensors"]);
    let by = |sums: &str| {
        explain(folder, &["t5", "--corpus", "pairs.tsv", "--components", &format!("{sums}.stats.safetensors"), "--causal", "0"])
    };
    assert_alike(&by("merged"), &by("whole"), 1e-6, &[]);

    std::fs::write(folder.join("bad.tsv"), "w5 w6\tw7\n \tw8\nw9\n").expect("a corpus");
    let told = succeed(folder, &["fit", "t5", "--corpus", "bad.tsv", "--shard", "1/2", "-o", "x.stats.safetensors"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains("the sums of 2 sentences"));
    let refused = seen(folder, &["fit", "t5", "--corpus", "bad.tsv", "--shard", "2/2", "-o", "x.stats.safetensors"]);
    assert!(refused.contains("exit 1") && refused.contains("line 2: the source is empty"), "{refused}");
    let empty = seen(folder, &["fit", "t5", "--corpus", "bad.tsv", "--shard", "4/4", "-o", "x.stats.safetensors"]);
    assert!(empty.contains("shard 4/4 of 3 sentences holds none"), "{empty}");
}

/// A model has changed nothing against itself; against one whose keys are others it has, head by head.
#[test]
fn two_models_are_compared_head_by_head() {
    let folder = folder();
    let folder = folder.path();
    let compare = |other: &str| -> Value {
        let lines = lines(&succeed(folder, &["compare", "t5", other, "--corpus", "pairs.tsv", "--json"]));
        serde_json::from_str(&lines[0]).expect("JSON")
    };
    let same = compare("t5");
    let same = same["changes"].as_array().expect("heads");
    assert_eq!(same.len(), 8);
    assert!(same.iter().all(|change| change["moved"] == 0.0 && change["before"] == change["after"]));

    // The keys of layer 1 take the place of those of layer 0 and the other way round.
    std::fs::create_dir(folder.join("turned")).expect("a folder");
    for file in ["config.json", "generation_config.json", "tokenizer.json"] {
        std::fs::copy(folder.join("t5").join(file), folder.join("turned").join(file)).expect("a copy");
    }
    let weights = std::fs::read(folder.join("t5/model.safetensors")).expect("weights");
    let [a, b] = [0, 1].map(|layer| format!("decoder.block.{layer}.layer.1.EncDecAttention.k.weight"));
    let header = 8 + u64::from_le_bytes(weights[..8].try_into().expect("eight bytes")) as usize;
    let text = String::from_utf8(weights[8..header].to_vec()).expect("a header");
    let text = text.replace(&a, "X").replace(&b, &a).replace('X', &b);
    assert_eq!(text.len() + 8, header, "the names are as long");
    let turned = [&weights[..8], text.as_bytes(), &weights[header..]].concat();
    std::fs::write(folder.join("turned/model.safetensors"), turned).expect("weights");
    let table = lines(&succeed(folder, &["compare", "t5", "turned", "--corpus", "pairs.tsv"]));
    let other = compare("turned");
    for (change, line) in other["changes"].as_array().expect("heads").iter().zip(&table[1..]) {
        let (before, after) = (&change["before"], &change["after"]);
        let percent = |value: &Value| format!("{:.0}", 100.0 * value.as_f64().expect("a share") + 0.0);
        let shares =
            ["positional", "token", "sink", "residual"].map(|share| [&before["shares"][share], &after["shares"][share]].map(percent));
        let expected = [before["label"].as_str(), after["label"].as_str()].map(|label| label.expect("a label").to_owned());
        let expected: Vec<String> = expected.into_iter().chain([percent(&change["moved"])]).chain(shares.into_iter().flatten()).collect();
        let line = line.replace('→', " ");
        let found: Vec<&str> = line.split_whitespace().skip(2).filter(|&word| word != "%").collect();
        assert_eq!(found, expected, "{line}");
    }
    let moved: Vec<f64> =
        other["changes"].as_array().expect("heads").iter().map(|change| change["moved"].as_f64().expect("a share")).collect();
    assert!(moved.iter().all(|&moved| moved > 0.0), "{moved:?}");
}

/// Typed text is explained at one head or at all, by the model's own output or a given one, and decoded again.
#[test]
fn a_pretrained_model_answers_what_is_typed() {
    let folder = folder();
    let folder = folder.path();
    let serving = Serving::ready(crosslens(folder, &["serve", "t5", "--corpus", "pairs.tsv", "--json"]));
    assert_eq!(serving.said["models"], json!([{ "name": "t5", "live": true }]));
    let model = serving.ask("GET", "/api/models/0", &Value::Null);
    assert_eq!((&model["kind"], &model["words"]), (&json!("model"), &Value::Null));
    assert_eq!(
        model["asks"],
        json!({ "take": "corpus", "sentences": 30, "fitted": true, "feeding": false, "words": false, "files": null })
    );

    let explain =
        |sentence: Value, sites: Value| serving.ask("POST", "/api/models/0/explain", &json!({ "sentence": sentence, "sites": sites }));
    let own = explain(json!({ "source": "w5 w6 w7" }), json!([5]));
    assert_eq!(own["sample"]["source"], json!(["w5", "w6", "w7", "</s>"]));
    assert_eq!(own["sites"].as_array().map(Vec::len), Some(1));
    let written: Vec<String> = serde_json::from_value(own["sample"]["predicted"].clone()).expect("words");
    // What `translate` writes, its likeliest word each time.
    let text = lines(&succeed(folder, &["translate", "t5", "w5 w6 w7", "--beams", "1", "--json"])).concat();
    let tokens = serde_json::from_str::<Value>(&text).expect("JSON")["tokens"].as_array().map(Vec::len);
    assert_eq!(Some(written.len()), tokens);
    let given = explain(json!({ "source": "w5 w6 w7", "target": "w9 w8" }), json!([5]));
    assert_eq!(given["sample"]["fed"], json!(["<pad>", "w9", "w8"]));
    assert_eq!(given["sample"]["target"], json!(["w9", "w8", "</s>"]));

    let rerun =
        |sentence: Value, off: Value| serving.ask("POST", "/api/models/0/rerun", &json!({ "sentence": sentence, "site": 5, "off": off }));
    let again = rerun(json!({ "source": "w5 w6 w7" }), json!([]));
    assert_eq!((&again["predicted"], &again["loss"]), (&own["sample"]["predicted"], &Value::Null));
    let forced = rerun(json!({ "source": "w5 w6 w7", "target": "w9 w8" }), json!([0, 1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(forced["predicted"].as_array().map(Vec::len), Some(3));
    assert!(forced["loss"].is_f64());
    let refused = explain(json!({ "source": " " }), json!([5]));
    assert_eq!(refused["error"], "the source is empty");
    serving.stop();

    let serving = Serving::ready(crosslens(folder, &["serve", "t5", "--self-attention", "--json"]));
    let all = serving.ask("POST", "/api/models/0/explain", &json!({ "sentence": { "source": "w5 w6" } }));
    assert_eq!(all["sites"].as_array().map(Vec::len), Some(24), "heads of three kinds");
    assert_eq!(all["sites"][0]["verdict"]["label"], "not fitted");
    serving.stop();
}

#[test]
fn a_page_is_written_of_a_model_and_of_translations() {
    let folder = folder();
    let folder = folder.path();
    let report = ["report", "t5", "--corpus", "pairs.tsv", "--samples", "4", "--causal", "5", "--json"];
    let written: Value = serde_json::from_slice(&succeed(folder, &report).stdout).expect("JSON");
    assert_eq!((&written["reports"], &written["samples"]), (&json!(["t5"]), &json!(4)));
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a page");
    assert!(page("report.html").contains("Crosslens: t5"));
    let refused = seen(folder, &["report", "t5"]);
    assert!(refused.contains("exit 1") && refused.contains("it needs --corpus"), "{refused}");
    train(folder, "5");
    let refused = seen(folder, &["report", "run", "--corpus", "pairs.tsv"]);
    assert!(refused.contains("exit 1") && refused.contains("have their own sentences"), "{refused}");

    let translate = ["translate", "t5", "w5 w6 w7", "--max-tokens", "8", "--explain", "x.html"];
    let alone = succeed(folder, &translate);
    assert_eq!(lines(&alone), lines(&succeed(folder, &translate[..5])));
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(said.contains("x.html: ") && said.contains("1 text explained") && said.contains("--corpus FILE"), "{said}");
    assert!(page("x.html").contains("Crosslens: translations of t5"));
    succeed(folder, &["fit", "t5", "--corpus", "pairs.tsv", "-o", "x.stats.safetensors"]);
    for more in [["--corpus", "pairs.tsv"], ["--components", "x.stats.safetensors"]] {
        let said = String::from_utf8_lossy(&succeed(folder, &[&translate[..], &more].concat()).stderr).into_owned();
        assert!(!said.contains("these texts alone"), "{said}");
    }
    assert_eq!(run(folder, &["translate", "t5", "w5", "--corpus", "pairs.tsv"]).status.code(), Some(2), "--corpus is for --explain");
    // Memory for both the text and the corpus is stated before either is explained.
    let both = succeed(folder, &[&translate[..], &["--corpus", "pairs.tsv"]].concat());
    assert!(String::from_utf8_lossy(&both.stderr).starts_with("31 sentences; besides the model this needs at most "), "{both:?}");
}

/// Lines are answered in their order whoever works on them; of blank lines alone there is no page.
#[test]
fn threads_share_lines_and_keep_their_order() {
    let folder = folder();
    let folder = folder.path();
    let piped = |input: &str, more: &[&str]| {
        let mut command = crosslens(folder, &[&["translate", "t5", "--max-tokens", "8"], more].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("read");
        child.wait_with_output().expect("it ends")
    };
    let input: String = (0..70).map(|number| if number % 9 == 4 { "\n".into() } else { words(number, 2 + number % 7) + "\n" }).collect();
    let one = piped(&input, &["--threads", "1"]);
    assert_eq!((lines(&one).len(), one.status.success()), (70, true));
    assert_eq!(lines(&piped(&input, &["--threads", "2"])), lines(&one));
    // What stands before a line that cannot be read is answered, and that line is named.
    let broken = piped(&format!("{}\nw5 w6\n{}\n", words(1, 3), "w5 ".repeat(9000)), &["--threads", "2"]);
    assert_eq!((lines(&broken).len(), broken.status.code()), (2, Some(1)));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("standard input, line 3"), "{broken:?}");

    let blank = piped("\n \n", &["--explain", "none.html"]);
    assert!(blank.status.success() && !folder.join("none.html").exists(), "{blank:?}");
    assert!(String::from_utf8_lossy(&blank.stderr).contains("no text was written"), "{blank:?}");
}

/// The tokenizer knows more words than the model has.
#[test]
fn a_tokenizer_that_is_not_the_models_is_named() {
    let folder = folder();
    let folder = folder.path();
    let mut other = tokenizer();
    other["model"]["vocab"]["w64"] = json!(TOKENS);
    std::fs::write(folder.join("t5/tokenizer.json"), other.to_string()).expect("a tokenizer");
    let refused = seen(folder, &["translate", "t5", "w64 w5"]);
    assert!(refused.contains("exit 1") && refused.contains("token 64 of the source is not among the model's 64"), "{refused}");
    assert!(refused.contains("the tokenizer beside the model has more tokens than it"), "{refused}");
}

/// Settings that the library would panic over are named; where it panics all the same, so is the file.
#[test]
fn a_tokenizer_that_breaks_its_library_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let refused = |part: &str, setting: Value| {
        let mut broken = tokenizer();
        broken[part] = setting;
        std::fs::write(folder.join("t5/tokenizer.json"), broken.to_string()).expect("a tokenizer");
        let refused = seen(folder, &["translate", "t5", "w5 w6"]);
        assert!(refused.starts_with("exit 1") && refused.contains("t5/tokenizer.json"), "{refused}");
        refused
    };
    let named = refused("pre_tokenizer", json!({ "type": "FixedLength", "length": 0 }));
    assert!(named.contains("`length` of its pre_tokenizer FixedLength is 0") && !named.contains("panicked"), "{named}");
    let nothing = json!({ "type": "Replace", "pattern": { "Regex": "." }, "content": "" });
    let strip = json!({ "type": "Strip", "content": "w", "start": 0, "stop": 1 });
    let caught = refused("decoder", json!({ "type": "Sequence", "decoders": [nothing, strip] }));
    assert!(caught.contains("the library that wrote it gives up over one of its settings"), "{caught}");
}

/// The golden BART has learned 40 positions, which its config.json names.
#[test]
fn a_text_longer_than_the_learned_positions_is_refused() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("bart")).expect("a folder");
    for file in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(Path::new(T5).with_file_name("bart").join(file), folder.join("bart").join(file)).expect("a copy");
    }
    std::fs::write(folder.join("bart/tokenizer.json"), tokenizer().to_string()).expect("a tokenizer");
    // With the end of the text, as many as there are positions, and one more.
    let (fits, long) = (words(1, 39), words(1, 40));
    succeed(folder, &["translate", "bart", &fits, "--max-tokens", "4"]);
    let limit = "the source has 41 tokens; the model takes 40 at most";
    let alone = seen(folder, &["translate", "bart", &long]);
    assert!(alone.starts_with("exit 1") && alone.contains(limit), "{alone}");
    let mut command = crosslens(folder, &["translate", "bart", "--max-tokens", "4"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("an input").write_all(format!("{fits}\n{long}\n{fits}\n").as_bytes()).expect("read");
    let among = shown(&child.wait_with_output().expect("it ends"));
    assert!(among.starts_with("exit 1") && among.contains(&format!("`standard input, line 2`: {limit}")), "{among}");

    std::fs::write(folder.join("source.tsv"), format!("w5\tw6\n{long}\tw7\n")).expect("a corpus");
    // A target is fed behind the token that begins it.
    std::fs::write(folder.join("target.tsv"), format!("w5\tw6\nw7\t{long}\n")).expect("a corpus");
    for (corpus, limit) in [("source.tsv", limit.to_owned()), ("target.tsv", limit.replace("source", "target"))] {
        for (command, rest) in [("record", &["--out", "recording"][..]), ("explain", &["--json"]), ("heads", &[])] {
            let refused = seen(folder, &[&[command, "bart", "--corpus", corpus], rest].concat());
            let named = format!("`{corpus}`, line 2: {limit}");
            assert!(refused.starts_with("exit 1") && refused.contains(&named), "{command}: {refused}");
        }
    }
}

/// A pipe has no end: it must not be waited for.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_no_tokenizer() {
    let folder = folder();
    let folder = folder.path();
    std::fs::remove_file(folder.join("t5/tokenizer.json")).expect("it was there");
    let made = std::process::Command::new("mkfifo").arg(folder.join("t5/tokenizer.json")).status().expect("mkfifo runs");
    assert!(made.success());
    let refused = seen(folder, &["translate", "t5", "w5"]);
    assert!(refused.contains("exit 1") && refused.contains("tokenizer.json") && refused.contains("it is not a file"), "{refused}");
}

/// Nobody asks for the names of four billion tokens.
#[test]
fn a_token_of_the_largest_number_takes_no_memory() {
    let folder = folder();
    let path = folder.path().join("t5/tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(&path).expect("a tokenizer")).expect("JSON");
    tokenizer["model"]["vocab"]["far"] = json!(u32::MAX);
    std::fs::write(&path, tokenizer.to_string()).expect("writable");
    succeed(folder.path(), &["translate", "t5", "w5 w6"]);
    let far = seen(folder.path(), &["translate", "t5", "far"]);
    assert!(far.starts_with("exit 1") && far.contains("4294967295"), "{far}");
}

/// A program in the place of `hf` copies the model. What it is asked, where that ends up, and when it is not called.
#[cfg(target_os = "linux")]
#[test]
fn a_model_of_the_hub_is_fetched_only_where_that_is_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("bin")).expect("a folder");
    let script = "#!/bin/sh\necho \"$@\" >> asked\ntest \"$2\" = some/gone && exit 3\ncp -r t5 \"$4\"\n";
    std::fs::write(folder.join("bin/hf"), script).expect("a script");
    std::fs::set_permissions(folder.join("bin/hf"), std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let asked = || std::fs::read_to_string(folder.join("asked")).unwrap_or_default();
    let translate = |model: &str, more: &[&str]| {
        let arguments = [&["translate", model, "w5 w6 w7", "--max-tokens", "8"], more].concat();
        crosslens(folder, &arguments).env("PATH", &path).output().expect("the program starts")
    };
    let local = translate("t5", &["--download"]);
    assert!(local.status.success() && asked().is_empty(), "a folder is taken as it is");
    let unasked = translate("some/tiny", &[]);
    assert_eq!((unasked.status.code(), asked()), (Some(1), String::new()));
    assert!(String::from_utf8_lossy(&unasked.stderr).contains("--download"));

    let fetched = translate("some/tiny", &["--download"]);
    // Weights for other programs stay where they are.
    let unread = ["*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.tflite", "openvino*"].map(|kind| format!(" --exclude {kind}"));
    let asked_for = format!("download some/tiny --local-dir tiny.part{}", unread.concat());
    assert_eq!((lines(&fetched), asked().trim_end()), (lines(&local), asked_for.as_str()));
    assert!(folder.join("tiny/config.json").is_file() && !folder.join("tiny.part").exists());
    assert_eq!(lines(&translate("some/tiny", &["--download"])), lines(&local));
    assert_eq!(asked().lines().count(), 1, "what is there is not fetched again");

    // Whatever takes a model fetches one.
    for (number, (command, more)) in [
        (&["fit"][..], &["--corpus", "pairs.tsv", "-o", "x.stats.safetensors"][..]),
        (&["record"], &["--corpus", "pairs.tsv", "-o", "recorded"]),
        (&["compare", "t5"], &["--corpus", "pairs.tsv"]),
        (&["report"], &["--corpus", "pairs.tsv", "--causal", "0"]),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("some/other{number}");
        let arguments = [command, &[&id, "--download"], more].concat();
        let output = crosslens(folder, &arguments).env("PATH", &path).output().expect("the program starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(asked().lines().last().is_some_and(|line| line.starts_with(&format!("download {id} "))), "{arguments:?}");
    }
    for command in [&["transcribe"][..], &["caption"], &["serve"]] {
        let arguments = [command, &["some/gone", "x", "--download"]].concat();
        let output = crosslens(folder, &arguments).env("PATH", &path).output().expect("the program starts");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot fetch some/gone"), "{arguments:?}: {output:?}");
    }

    let gone = translate("some/gone", &["--download"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("cannot fetch some/gone: `hf download` failed"));
    assert!(!folder.join("gone").exists());
    assert_eq!(translate("no-id", &["--download"]).status.code(), Some(2));
    let without = crosslens(folder, &["translate", "some/other", "w5", "--download"]).env("PATH", folder).output().expect("it starts");
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stderr).contains("there is no program `hf`"));
}

/// Of a build without features the CPU is the only device; who asks for another is told what to do.
#[test]
#[cfg(not(any(feature = "candle", feature = "cuda", feature = "metal")))]
fn devices_that_are_not_there_are_refused() {
    let folder = folder();
    let refused = |arguments: &[&str], exit: &str, words: &[&str]| {
        let seen = seen(folder.path(), arguments);
        assert!(seen.starts_with(exit), "{seen}");
        words.iter().for_each(|word| assert!(seen.contains(word), "no `{word}` in {seen}"));
    };
    let text = ["--source", "w5 w6", "-o", "x.json"];
    succeed(folder.path(), &[&["attend", "t5", "--device", "cpu"], &text[..]].concat());
    for command in
        [&["attend", "t5"][..], &["translate", "t5", "w5"], &["heads", "t5", "--corpus", "pairs.tsv"], &["caption", "t5", "x.png"]]
    {
        let given = if command[0] == "attend" { &text[..] } else { &[] };
        let words = ["this build has no device `cuda:1`", "build with `--features cuda`"];
        refused(&[command, &["--device", "cuda:1"], given].concat(), "exit 1", &words);
    }
    refused(&["translate", "t5", "w5", "--device", "gpu"], "exit 2", &["there is no device `gpu`; known are cpu, candle, cuda and metal"]);
    train(folder.path(), "1");
    refused(&["explain", "run", "--device", "cpu"], "exit 2", &["--device is for pretrained models", "leave it out"]);
}
