//! Networks for text: trained on a corpus, judged, translated with, aligned by, explained.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Output, Stdio};

use super::common::{crosslens, explain, run, shown, succeed};
use serde_json::Value;

const NOUNS: [(&str, &str); 5] = [("cat", "chat"), ("dog", "chien"), ("bird", "coq"), ("wolf", "loup"), ("goat", "bouc")];
const VERBS: [(&str, &str); 4] = [("sees", "voit"), ("eats", "mange"), ("hears", "entend"), ("wants", "veut")];

/// 100 sentences such as "The cat sees the big dog." and "Le chat voit le chien grand.", and the run that learns them.
fn prepare(folder: &Path, family: &str) {
    let mut text = String::new();
    for (subject, sujet) in NOUNS {
        for (verb, verbe) in VERBS {
            for (object, objet) in NOUNS {
                text.push_str(&format!("The {subject} {verb} the big {object}.\tLe {sujet} {verbe} le {objet} grand.\n"));
            }
        }
    }
    fs::write(folder.join("pairs.tsv"), text).expect("a file");
    let toml = format!(
        "seed = 4\n[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 10\nunits = 'words'\nlowercase = true\n\
         [network]\nfamily = '{family}'\nscore = '{}'\nbidirectional = {}\nhidden = 32\ninputs = {{ kind = 'embedding', size = 16 }}\n\
         [training]\nsteps = 300\nbatch = 16\nevaluate_every = 100\nevaluate_samples = 10\nevaluate_feeding = 'forced'\nlearning_rate = 1e-2\nshow = 1\n",
        if family == "luong" { "general" } else { "additive" },
        family == "bahdanau",
    );
    fs::write(folder.join("run.toml"), toml).expect("a file");
    let trained = succeed(folder, &["train", "run.toml", "--out", "run"]);
    let notes = String::from_utf8_lossy(&trained.stderr).into_owned();
    assert!(notes.contains("90 pairs") && notes.contains("    → le "), "{notes}");
}

fn translate(folder: &Path, arguments: &[&str], text: &[u8]) -> Output {
    let mut child = crosslens(folder, &[&["translate", "run"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that refuses a line reads no further.
    child.stdin.take().expect("a pipe").write_all(text).ok();
    child.wait_with_output().expect("it ends")
}

fn translated(folder: &Path, arguments: &[&str], text: &str) -> String {
    let output = translate(folder, arguments, text.as_bytes());
    assert!(output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_slice(&succeed(folder, arguments).stdout).expect("JSON")
}

#[test]
fn a_corpus_is_learnt_translated_judged_aligned_and_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    prepare(folder, "bahdanau");
    fs::remove_file(folder.join("pairs.tsv")).expect("the run no longer needs it");

    let lines = "The wolf eats the big goat.\n\nThe DOG hears the big cat.\n";
    let expected = "le loup mange le bouc grand.\n\nle chien entend le chat grand.\n";
    assert_eq!(translated(folder, &[], lines), expected);
    assert_eq!(translated(folder, &["--beams", "3"], lines), expected, "several beams");
    let scored = translated(folder, &["--scores", "--threads", "1"], lines);
    let (score, text) = scored.lines().next().and_then(|line| line.split_once('\t')).expect("a score and a text");
    assert!(score.parse::<f64>().is_ok_and(|score| score < 0.0) && text == "le loup mange le bouc grand.", "{scored}");
    let best: Vec<Value> = translated(folder, &["--json", "--beams", "4", "--n-best", "4"], "The cat sees the big dog.\n")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((best.len(), best[0]["text"].as_str()), (4, Some("le chat voit le chien grand.")));
    assert!(best.windows(2).all(|two| two[0]["score"].as_f64() >= two[1]["score"].as_f64()), "{best:?}");

    let judged = json(folder, &["eval", "run", "--json"]);
    assert!(judged["bleu"].as_f64() > Some(90.0) && judged["chrf"].as_f64() > Some(90.0), "{judged}");
    assert_eq!(judged["sources"], 10);
    assert!(judged["bleu_signature"].as_str().is_some_and(|signature| signature.contains("case:lc|eff:no|tok:13a")), "{judged}");

    // Rows that write what changes from sentence to sentence look at it, `bouc` one word further on, since adjectives change places. What is
    // always the same need not be looked at.
    fs::write(folder.join("two.tsv"), "the wolf eats the big goat .\tle loup mange le bouc grand .\n").expect("a file");
    let aligned = json(folder, &["align", "run", "--corpus", "two.tsv", "--json"]);
    let links = aligned["links"][0].as_str().expect("links");
    assert!(["1-1", "2-2", "5-4"].iter().all(|link| links.split(' ').any(|found| found == *link)), "{links}");

    let report = explain(folder, &["run", "--samples", "10", "--causal", "0"]);
    assert_eq!(report["sites"][0]["map"], "additive");
    assert!(report["sites"][0]["error"]["score"].as_f64() < Some(1e-4), "{report}");
    let attended = succeed(folder, &["attend", "run", "--source", "The cat sees the big dog.", "-o", "x.json"]);
    assert!(attended.status.success());
    let attended: Value = serde_json::from_slice(&fs::read(folder.join("x.json")).expect("a file")).expect("JSON");
    assert!(attended.to_string().contains("chien"), "the network's own words: {attended}");
}

#[test]
fn attention_of_every_text_is_kept_and_words_without_a_name_are_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    prepare(folder, "luong");
    // A blank line between them has a number, and no attention; as JSON it is an object too.
    let lines = "The cat sees the big dog.\n\nThe wolf sees the big dog.\n";
    let objects: Vec<Value> = translated(folder, &["--attention", "a.safetensors", "--json"], lines)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((objects.len(), &objects[1]), (3, &serde_json::json!({ "source": "", "text": "", "tokens": [] })));
    let bytes = fs::read(folder.join("a.safetensors")).expect("a file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let first = file.tensor("cross_attentions.0").expect("the first text");
    assert_eq!((first.shape(), file.names().len()), (&[1, 8, 8][..], 2));
    assert!(file.tensor("cross_attentions.2").is_ok() && file.tensor("cross_attentions.1").is_err());
    let rows: Vec<f32> = first.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert!(rows.chunks(8).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));

    // A vocabulary too small for its nouns: what has no name is copied from where the network looks.
    let toml = fs::read_to_string(folder.join("run.toml")).expect("a file").replace("lowercase = true", "lowercase = true\nvocabulary = 9");
    fs::write(folder.join("small.toml"), toml).expect("a file");
    succeed(folder, &["train", "small.toml", "--out", "run", "--overwrite", "--quiet"]);
    let line = "The wolf eats the big bird.\n";
    let plain = translated(folder, &[], line);
    let replaced = translated(folder, &["--replace-unknown"], line);
    assert!(plain.contains("<unk>") && !replaced.contains("<unk>"), "{plain} {replaced}");

    // The word taken over is the source word of the row's maximum, the end of the source left out.
    let tokens = |arguments: &[&str]| -> Vec<String> {
        let object: Value = serde_json::from_str(&translated(folder, arguments, line)).expect("JSON");
        object["tokens"].as_array().expect("a list").iter().map(|token| token.as_str().expect("a word").to_owned()).collect()
    };
    let (plain, replaced) = (tokens(&["--json"]), tokens(&["--json", "--replace-unknown", "--attention", "b.safetensors"]));
    let source = ["the", "wolf", "eats", "the", "big", "bird", ".", "<eos>"];
    let bytes = fs::read(folder.join("b.safetensors")).expect("a file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let weights = file.tensor("cross_attentions.0").expect("the text");
    assert_eq!(weights.shape(), [1, plain.len(), source.len()]);
    let rows: Vec<f32> = weights.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    for ((plain, replaced), row) in plain.iter().zip(&replaced).zip(rows.chunks(source.len())) {
        let best = (0..source.len() - 1).fold(0, |best, step| if row[step] > row[best] { step } else { best });
        assert_eq!(replaced, if plain == "<unk>" { source[best] } else { plain.as_str() }, "{row:?}");
    }
}

/// A person who types, or a program that asks one thing at a time, is answered before the next line comes.
#[test]
fn a_line_is_answered_before_the_next_one_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..60).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    succeed(folder, &["train", "--corpus", "pairs.tsv", "--units", "words", "--steps", "1", "--out", "run", "--quiet"]);
    let mut child = crosslens(folder, &["translate", "run", "-", "--max-tokens", "3", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (mut asks, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut answers = BufReader::new(answers).lines();
    for (asked, n_answers) in [("word 1\n", 1), ("word 2\nword 3 and\n", 2), ("word 4\n", 1)] {
        asks.write_all(asked.as_bytes()).expect("it listens");
        for line in asked.lines().take(n_answers) {
            let answer = answers.next().expect("an answer while the pipe is open").expect("text");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["source"], line);
        }
    }
    drop(asks);
    assert!(answers.next().is_none() && child.wait().expect("it ends").success());
}

/// Lines that cannot be translated are named, blank ones counted among them, and none is read to an end that it does not have.
#[test]
fn a_line_that_cannot_be_translated_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..60).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    let toml = "[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 10\n[network]\nfamily = 'luong'\nscore = 'general'\nhidden = 8\n\
                inputs = { kind = 'embedding', size = 8 }\n[training]\nsteps = 1\nbatch = 8\nevaluate_every = 1\nevaluate_samples = 4\n";
    fs::write(folder.join("run.toml"), toml).expect("a file");
    succeed(folder, &["train", "run.toml", "--out", "run", "--quiet"]);
    let translated = translated(folder, &[], "word 1\n\nword 2\n");
    let before = translated.lines().next().map(|line| format!("{line}\n\n")).expect("a line");
    let long = [&b"word 1\n\n"[..], &vec![b'a'; 100_000], b"\nword 2\n"].concat();
    let other = b"word 1\n\nword 2\nw\xffrd 3\n".to_vec();
    let words = |n: usize| format!("word 1\n\n{}\nword 2\n", "a ".repeat(n)).into_bytes();
    let plain: &[&str] = &[];
    let attended: &[&str] = &["--attention", "a.safetensors", "--beams", "128", "--max-tokens", "264"];
    // 4 bytes · 4,001 source tokens · 264 target tokens · 2 · 128 beams.
    let too_much = "standard input, line 3: it has 4001 tokens: its attention may take 1081614336 bytes, at most 1073741824 are taken";
    for (arguments, text, answered, says) in [
        (plain, long, &before, "standard input, line 3: it is longer than 65536 bytes"),
        (plain, other, &translated, "standard input, line 4: it is not UTF-8 text"),
        (plain, words(20_000), &before, "standard input, line 3: it has 20001 tokens, at most 4096 are taken"),
        (attended, words(4000), &before, too_much),
    ] {
        let output = translate(folder, arguments, &text);
        let seen = shown(&output);
        assert!(output.status.code() == Some(1) && seen.contains(says), "{seen}");
        // Lines before it are answered, though all were read at once; with several beams perhaps otherwise.
        let answers = String::from_utf8_lossy(&output.stdout);
        assert_eq!(answers.lines().count(), answered.lines().count(), "{says}: {answers}");
        assert!(arguments == attended || answers == answered.as_str(), "{says}: {answers}");
    }
    assert!(!folder.join("a.safetensors").exists(), "nothing is half-written");
}

/// The grammar's sentences bring their true links, so nothing but the run is needed.
#[test]
fn the_grammar_rates_alignments_by_its_own_links() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let toml = "seed = 2\n[task]\nname = 'translation'\n[network]\nfamily = 'luong'\nscore = 'general'\nbidirectional = true\nhidden = 48\n\
                inputs = { kind = 'embedding', size = 32 }\n[training]\nsteps = 400\nbatch = 48\nevaluate_every = 400\n\
                evaluate_samples = 50\nlearning_rate = 1e-2\nschedule = { kind = 'cosine', end = 0.05, over = 400 }\n[optimizer]\nclip = 1.0\n";
    fs::write(folder.join("run.toml"), toml).expect("a file");
    succeed(folder, &["train", "run.toml", "--out", "run", "--quiet"]);
    succeed(folder, &["train", "run.toml", "--out", "raw", "--steps", "1", "--quiet"]);
    let [learnt, raw] = ["run", "raw"].map(|run| json(folder, &["align", run, "--samples", "100", "--json"]));
    let quality = &learnt["quality"];
    for name in ["aer", "precision", "recall", "f1"] {
        assert!(quality[name].as_f64().is_some_and(|value| (0.0..=1.0).contains(&value)), "{quality}");
    }
    assert_eq!(learnt["links"].as_array().map(Vec::len), Some(100));
    let aer = |report: &Value| report["quality"]["aer"].as_f64().expect("a rate");
    assert!(aer(&learnt) < 0.5 && aer(&learnt) < aer(&raw) - 0.1, "{} learnt, {} not", aer(&learnt), aer(&raw));
    let again = json(folder, &["align", "run", "--samples", "100", "--json", "--threads", "1"]);
    assert_eq!(again, learnt, "the same sentences");

    let printed = shown(&succeed(folder, &["align", "run", "--samples", "100"]));
    let line = format!("AER {:.3}  precision {:.3}", aer(&learnt), quality["precision"].as_f64().expect("a share"));
    assert!(printed.contains(&line), "{printed}");
    assert!(printed.contains(learnt["links"][0].as_str().expect("links")), "{printed}");
}

/// Every file of a folder by name.
#[cfg(unix)]
fn files_of(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let files = entries.filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file"))).collect()
}

/// A limit on the size of files stands in for a full disk: what a run on a corpus had saved can still be used, whether the disk is full
/// while it goes on or while another run, on text or not, is to take its place.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_run_on_a_corpus_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..120).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    let toml = |units: &str| {
        format!(
            "seed = 4\n[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 10\nvocabulary = 80\nunits = '{units}'\n[network]\n\
             family = 'luong'\nscore = 'general'\nhidden = 48\ninputs = {{ kind = 'embedding', size = 16 }}\n[training]\nsteps = 4\n\
             batch = 8\nevaluate_every = 2\nevaluate_samples = 4\n"
        )
    };
    for units in ["bpe", "unigram", "words"] {
        fs::write(folder.join(format!("{units}.toml")), toml(units)).expect("a file");
    }
    succeed(folder, &["train", "bpe.toml", "--out", "run", "--quiet"]);
    let before = files_of(&folder.join("run"));
    for name in ["tokenizer.json", "heldout.tsv", "text.json", "vocab.json", "model.safetensors", "checkpoint.safetensors"] {
        assert!(before.contains_key(name), "{name} is not in {:?}", before.keys());
    }
    let program = crosslens(folder, &[]).get_program().to_string_lossy().into_owned();
    let tiny = super::common::TINY;
    // Blocks of 512 bytes: enough for every file but the checkpoint, and enough for none.
    for (arguments, blocks, name) in [
        ("run --resume --steps 8".to_owned(), 64, "checkpoint.safetensors"),
        ("unigram.toml --out run --overwrite".to_owned(), 64, "checkpoint.safetensors"),
        ("words.toml --out run --overwrite".to_owned(), 64, "checkpoint.safetensors"),
        (format!("'{tiny}' --out run --overwrite"), 16, "checkpoint.safetensors"),
        ("unigram.toml --seed 9 --out run --overwrite".to_owned(), 0, "run.toml"),
    ] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec '{program}' train {arguments} --threads 1");
        let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("a shell");
        let seen = shown(&output);
        assert!(!output.status.success() && seen.contains(name) && seen.contains("make room on that disk"), "{arguments}: {seen}");
        let mut after = files_of(&folder.join("run"));
        if arguments.contains("--resume") {
            // What is only added to, or says how long the run should be, may be new.
            for name in ["metrics.jsonl", "run.toml"] {
                after.insert(name.to_owned(), before[name].clone());
                fs::write(folder.join("run").join(name), &before[name]).expect("writable");
            }
        }
        assert!(after == before, "{arguments}: {:?} became {:?}: {seen}", before.keys(), after.keys());
    }
    succeed(folder, &["eval", "run", "--json"]);
    succeed(folder, &["train", "run", "--resume", "--steps", "6", "--quiet"]);
}

/// The same where the model is made of weights along the way: those of the evaluations before stay with the checkpoint that wants them.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_weights_that_are_averaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..120).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    let toml = "seed = 4\n[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 10\nvocabulary = 80\n[network]\nfamily = 'luong'\n\
                score = 'general'\nhidden = 48\ninputs = { kind = 'embedding', size = 16 }\n[training]\nsteps = 12\nbatch = 8\n\
                evaluate_every = 2\nevaluate_samples = 4\naverage = 2\npatience = 3\n";
    fs::write(folder.join("run.toml"), toml).expect("a file");
    succeed(folder, &["train", "run.toml", "--out", "whole", "--quiet", "--threads", "1"]);
    succeed(folder, &["train", "run.toml", "--out", "run", "--steps", "6", "--quiet", "--threads", "1"]);
    let before = [files_of(&folder.join("run")), files_of(&folder.join("run/kept"))];
    let n_bytes = before[0]["checkpoint.safetensors"].len();
    assert!(before[1].values().all(|kept| kept.len() * 2 < n_bytes), "kept weights are a third of a checkpoint");
    // Blocks of 512 bytes: enough for kept weights, not for a checkpoint.
    let program = crosslens(folder, &[]).get_program().to_string_lossy().into_owned();
    let blocks = n_bytes / 2 / 512;
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec '{program}' train run --resume --steps 12 --threads 1");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("a shell");
    let seen = shown(&output);
    assert!(!output.status.success() && seen.contains("checkpoint.safetensors") && seen.contains("make room on that disk"), "{seen}");
    let after = [files_of(&folder.join("run")), files_of(&folder.join("run/kept"))];
    assert!(after[0]["checkpoint.safetensors"] == before[0]["checkpoint.safetensors"], "{seen}");
    for (name, kept) in &before[1] {
        assert!(after[1].get(name) == Some(kept), "{name} is gone: {seen}");
    }
    // With room again the run ends with the weights of one that never stopped.
    succeed(folder, &["train", "run", "--resume", "--steps", "12", "--quiet", "--threads", "1"]);
    let model = |run: &str| fs::read(folder.join(run).join("model.safetensors")).expect("a model");
    assert!(model("run") == model("whole"));
}

/// Every architecture through the program with what is shipped for it: on a corpus, after which it translates, and on the grammar, with no
/// data at all, after which it aligns if it attends.
#[test]
fn every_architecture_is_trained_on_a_corpus_and_on_the_grammar() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..1100).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    for family in ["aed", "ao", "bahdanau", "luong", "transformer", "ved"] {
        let [on_corpus, on_grammar] = ["corpus", "grammar"].map(|what| format!("{what}-{family}"));
        let arguments = ["train", "--corpus", "pairs.tsv", "--units", "words", "--arch", family, "--steps", "2", "--out", &on_corpus];
        let trained = shown(&succeed(folder, &arguments));
        assert!(trained.contains(": 990 pairs, "), "{family}: {trained}");
        let resolved = fs::read_to_string(folder.join(&on_corpus).join("run.toml")).expect("run.toml");
        assert!(resolved.contains(&format!("family = \"{family}\"")), "{resolved}");
        let metrics = fs::read_to_string(folder.join(&on_corpus).join("metrics.jsonl")).expect("metrics");
        let last: Value = serde_json::from_str(metrics.lines().next_back().expect("an evaluation")).expect("JSON");
        assert!(last["step"] == 2 && last["loss"].as_f64().is_some_and(f64::is_finite), "{family}: {last}");
        succeed(folder, &["translate", &on_corpus, "word 7 and more"]);

        succeed(folder, &["train", "translation", "--arch", family, "--steps", "2", "--out", &on_grammar, "--quiet"]);
        let aligned = run(folder, &["align", &on_grammar, "--samples", "20", "--json"]);
        assert_eq!(aligned.status.success(), family != "ved", "{family}: {}", shown(&aligned));
    }
}

/// Each kind of corpus through the program, an update each.
#[test]
fn every_kind_of_corpus_is_trained_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let pairs: Vec<(String, String)> = (0..30).map(|number| (format!("word {number}"), format!("mot {number}"))).collect();
    let write = |name: &str, line: &dyn Fn(&(String, String)) -> String| {
        fs::write(folder.join(name), pairs.iter().map(line).collect::<String>()).expect("a file");
    };
    write("pairs.jsonl", &|(source, target)| serde_json::json!({ "source": source, "target": target }).to_string() + "\n");
    write("a.en", &|(source, _)| format!("{source}\n"));
    write("b.fr", &|(_, target)| format!("{target}\n"));
    write("pairs.po", &|(source, target)| format!("msgid \"{source}\"\nmsgstr \"{target}\"\n\n"));
    write("old.tsv", &|(source, target)| format!("{source}\t{target}\r"));
    let catalogue = catalogue(&pairs);
    fs::write(folder.join("pairs.mo"), &catalogue).expect("a file");
    // A language that no machine has, so that only this folder's is found.
    let installed = folder.join("locale/qq_TEST/LC_MESSAGES");
    fs::create_dir_all(&installed).expect("a folder");
    fs::write(installed.join("program.mo"), &catalogue).expect("a file");
    for (number, corpus) in ["pairs.jsonl", "a.en,b.fr", "pairs.po", "old.tsv", "pairs.mo", "gettext:qq_TEST"].into_iter().enumerate() {
        let toml = format!(
            "[task]\nname = 'corpus'\ntrain = '{corpus}'\nheld_out = 5\n[network]\nfamily = 'luong'\nscore = 'general'\nhidden = 8\n\
             inputs = {{ kind = 'embedding', size = 8 }}\n[training]\nsteps = 1\nbatch = 8\nevaluate_every = 1\nevaluate_samples = 4\n"
        );
        fs::write(folder.join("run.toml"), toml).expect("a file");
        let run = format!("run{number}");
        let trained = crosslens(folder, &["train", "run.toml", "--out", &run]).env("TEXTDOMAINDIR", folder.join("locale")).output();
        let seen = shown(&trained.expect("the program starts"));
        assert!(seen.starts_with("exit 0") && seen.contains("30 pairs kept") && seen.contains(": 25 pairs, "), "{corpus}: {seen}");
        succeed(folder, &["translate", &run, "word 7"]);
    }
    // By its option too, with the shipped configuration.
    let mut shipped = crosslens(folder, &["train", "--corpus", "gettext:qq_TEST", "--steps", "1", "--out", "shipped"]);
    let seen = shown(&shipped.env("TEXTDOMAINDIR", folder.join("locale")).output().expect("the program starts"));
    assert!(seen.starts_with("exit 0") && seen.contains("held out: 3 sources, 3 pairs; "), "a tenth of 30 sources: {seen}");
    let seen = shown(&run(folder, &["train", "--corpus", "pairs.po", "--steps", "1", "--held-out", "7", "--out", "seven"]));
    assert!(seen.starts_with("exit 0") && seen.contains(": 23 pairs, "), "{seen}");
    let seen = shown(&run(folder, &["train", "--corpus", "pairs.po", "--held-out", "30", "--out", "none"]));
    assert!(seen.starts_with("exit 1") && seen.contains("30 different sources and 30 are to be held out; set task.held_out"), "{seen}");
}

/// A compiled catalogue, as GNU gettext lays it out: a header of seven numbers, two tables of lengths and places, and the texts.
fn catalogue(pairs: &[(String, String)]) -> Vec<u8> {
    let mut pairs = pairs.to_vec();
    pairs.push((String::new(), "Content-Type: text/plain; charset=UTF-8\n".into()));
    pairs.sort();
    let n = pairs.len() as u32;
    let mut file: Vec<u8> =
        [0x9504_12de, 0, n, 28, 28 + 8 * n, 0, 28 + 16 * n].iter().flat_map(|number: &u32| number.to_le_bytes()).collect();
    let mut texts: Vec<u8> = Vec::new();
    let sources = pairs.iter().map(|(source, _)| source);
    for text in sources.chain(pairs.iter().map(|(_, target)| target)) {
        file.extend((text.len() as u32).to_le_bytes());
        file.extend((28 + 16 * n + texts.len() as u32).to_le_bytes());
        texts.extend(text.bytes().chain([0]));
    }
    [file, texts].concat()
}

/// What became of the lines: on standard error, in the run's folder, in lines of JSON, and of a corpus that is judged on.
#[test]
fn what_was_left_out_is_said_with_its_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut lines: Vec<String> = (0..40).map(|number| format!("word {number}\tmot {number}")).collect();
    lines[6] = "only one side".into();
    lines[8] = lines[0].clone();
    fs::write(folder.join("pairs.tsv"), lines.join("\n") + "\n").expect("a file");
    let toml = "[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 5\n[network]\nfamily = 'luong'\nscore = 'general'\nhidden = 8\n\
                inputs = { kind = 'embedding', size = 8 }\n[training]\nsteps = 1\nbatch = 8\nevaluate_every = 1\nevaluate_samples = 4\n";
    fs::write(folder.join("run.toml"), toml).expect("a file");
    let says = "38 pairs kept; 1 one-sided (line 7); 1 duplicate (line 9)";
    let notes = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let trained = notes(&succeed(folder, &["train", "run.toml", "--out", "run"]));
    assert!(trained.contains(&format!("training: {says}")), "{trained}");
    let kept: Value = serde_json::from_slice(&fs::read(folder.join("run/corpus.json")).expect("a file")).expect("JSON");
    assert_eq!(kept["training"]["kept"], 38);
    assert_eq!(kept["training"]["dropped"]["duplicate"]["first"][0]["line"], 9);

    let told = notes(&succeed(folder, &["train", "run.toml", "--out", "told", "--progress", "json"]));
    let corpus = told.lines().map(|line| serde_json::from_str::<Value>(line).expect(line)).find(|line| line["event"] == "corpus");
    assert_eq!(corpus.expect("an event")["became"], kept);
    let quiet = succeed(folder, &["train", "run.toml", "--out", "quiet", "--quiet"]);
    assert!(quiet.stderr.is_empty() && folder.join("quiet/corpus.json").exists(), "{}", shown(&quiet));

    let judged = succeed(folder, &["eval", "run", "--corpus", "pairs.tsv", "--json"]);
    assert!(notes(&judged).contains(&format!("pairs.tsv: {says}")), "{}", shown(&judged));
    let judged: Value = serde_json::from_slice(&judged.stdout).expect("JSON");
    assert_eq!(judged["dropped"], 2);
    assert_eq!(judged["corpus"], kept["training"]);

    // What was too long to be trained on is not judged by either.
    fs::write(folder.join("long.tsv"), format!("word 3\tmot 3\n{}\tmot 4\n", "word ".repeat(31))).expect("a file");
    let judged = json(folder, &["eval", "run", "--corpus", "long.tsv", "--json"]);
    assert_eq!((judged["pairs"].as_u64(), judged["dropped"].as_u64()), (Some(1), Some(1)), "{judged}");
}

/// Nothing is saved yet, so that the program ends at once and leaves nothing behind.
#[cfg(unix)]
#[test]
fn a_run_is_stopped_while_its_corpus_is_read() {
    use std::io::BufRead as _;
    use std::os::unix::process::ExitStatusExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..300_000).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    let arguments = ["train", "--corpus", "pairs.tsv", "--progress", "json", "--out", "run"];
    let mut child = crosslens(folder, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut notes = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut first = String::new();
    notes.read_line(&mut first).expect("a line");
    assert!(first.contains("\"preparing\""), "{first}");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(15), "{status:?}");
    assert!(!folder.join("run").exists(), "nothing is half-written");
}

/// Lines of JSON stand in for the bar, which only a terminal sees.
#[test]
fn how_far_a_corpus_is_read_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..2000).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(lines.as_bytes()).expect("into memory");
    let packed = packed.finish().expect("into memory");
    fs::write(folder.join("pairs.tsv.gz"), &packed).expect("a file");
    let arguments = ["--corpus", "pairs.tsv.gz", "--arch", "luong", "--vocabulary", "50", "--steps", "1", "--out", "run"];
    let output = succeed(folder, &[&["train", "--progress", "json"][..], &arguments].concat());
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stderr).lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let prepared: Vec<&Value> = lines.iter().filter(|line| line["event"] == "preparing").collect();
    let stages = ["reading", "learning pieces of words", "counting words", "cutting into tokens"];
    for stage in stages {
        let last = prepared.iter().rfind(|line| line["stage"] == stage).unwrap_or_else(|| panic!("{stage} is not told"));
        assert_eq!(last["done"], last["total"], "{last}");
    }
    let read = prepared.iter().rfind(|line| line["stage"] == "reading").expect("a line");
    assert_eq!(read["total"], packed.len(), "bytes of the packed file");
    let quiet = succeed(folder, &[&["train", "--quiet", "--overwrite"][..], &arguments].concat());
    assert!(quiet.stderr.is_empty(), "{}", shown(&quiet));
}

#[test]
fn what_is_no_corpus_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("one.tsv"), "only one side\nand another\n").expect("a file");
    fs::write(folder.join("empty.tsv"), "").expect("a file");
    fs::write(folder.join("bad.tsv"), [b"a\tb\n".repeat(3), b"\xff\xfe\tb\n".to_vec()].concat()).expect("a file");
    for (arguments, code, says) in [
        (&["train", "--corpus", "none.tsv"][..], 1, "none.tsv"),
        (&["train", "--corpus", "one.tsv"], 1, "one.tsv"),
        (&["train", "--corpus", "empty.tsv"], 1, "empty.tsv"),
        (&["train", "--corpus", "gettext:zz"], 1, "zz"),
        (&["train", "--corpus", "bad.tsv"], 1, "1 are to be held out"),
        (&["train", "--dev", "one.tsv"], 2, "--corpus"),
        (&["train", "--corpus", "a,b,c"], 2, "a.en,b.fr"),
        (&["translate", "nowhere", "text"], 1, "nowhere"),
    ] {
        let output = run(folder, arguments);
        let seen = shown(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {seen}");
        assert!(seen.contains(says) && !seen.contains("panicked"), "{arguments:?}: {seen}");
    }
    assert!(!folder.join("runs").exists(), "nothing is half-written");
}
