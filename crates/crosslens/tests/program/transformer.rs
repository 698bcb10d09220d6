//! A Transformer through the program: trained, judged, resumed, explained, and refused what it cannot have.

use super::common::{crosslens, explain, page_report, run, shown, succeed};
use super::serve::Serving;

#[test]
fn a_transformer_trains_resumes_and_is_explained_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", "reverse", "--arch", "transformer", "--steps", "3", "--out", "run", "--quiet"]);
    succeed(folder, &["train", "run", "--resume", "--steps", "5", "--quiet"]);
    succeed(folder, &["eval", "run", "--json"]);
    let resolved = std::fs::read_to_string(folder.join("run/run.toml")).expect("run.toml");
    assert!(resolved.contains("[network.transformer]") && !resolved.contains("cell"), "{resolved}");

    let report = explain(folder, &["run", "--samples", "20", "--causal", "5"]);
    let sites = report["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), 2, "two heads across");
    assert!(sites.iter().all(|site| site["map"] == "projected" && site["error"]["attention"].as_f64().is_some_and(|error| error < 1e-4)));

    let heads = |arguments: &[&str]| {
        let output = succeed(folder, &[&["heads", "run", "--causal-samples", "5", "--bootstrap", "0", "--json"], arguments].concat());
        let heads: serde_json::Value = serde_json::from_slice(&output.stdout).expect("heads");
        heads["heads"].as_array().expect("a list").len()
    };
    assert_eq!((heads(&[]), heads(&["--self-attention"])), (2, 6));
    // One sentence has no two halves.
    std::fs::write(folder.join("one.tsv"), "I0 I1\tO1 O0\n").expect("a corpus");
    for command in [&["heads", "run"][..], &["compare", "run", "run"]] {
        let refused = run(folder, &[command, &["--corpus", "one.tsv"]].concat());
        assert!(refused.status.code() == Some(1) && shown(&refused).contains("`one.tsv` has one sentence"), "{}", shown(&refused));
    }
    succeed(folder, &["attend", "run", "-o", "x.npz"]);

    // Both sides' attention to themselves: explained live, recorded, and from sums of the same states.
    let kinds = |report: &serde_json::Value| {
        let sites = report["sites"].as_array().expect("sites");
        ["cross", "encoder-self", "decoder-self"].map(|kind| sites.iter().filter(|site| site["kind"] == kind).count())
    };
    let all = ["--samples", "20", "--self-attention"];
    let seen = shown(&succeed(folder, &[&["explain", "run", "--causal", "0"], &all[..]].concat()));
    for (kind, side, fed) in [("cross", "source", "fed"), ("encoder-self", "source", "source"), ("decoder-self", "target", "fed")] {
        let (_, site) = seen.split_once(&format!("{kind} attention")).unwrap_or_else(|| panic!("no {kind} attention: {seen}"));
        let site = site.split_once(" attention, layer").map_or(site, |(site, _)| site);
        for words in [&format!("variance along the {side}, %"), &format!("attend to; {side}: "), &format!(" {fed}  attention")] {
            assert!(site.contains(words.as_str()), "{kind}: no `{words}` in {site}");
        }
        assert_eq!(site.contains("source step = "), kind == "cross" && site.contains("before the end look at"), "{site}");
    }
    assert_eq!(kinds(&explain(folder, &[&["run", "--causal", "0"], &all[..]].concat())), [2, 2, 2]);
    succeed(folder, &[&["record", "run", "-o", "rec"], &all[..]].concat());
    assert_eq!(kinds(&explain(folder, &["rec"])), [2, 2, 2]);
    succeed(folder, &[&["fit", "run", "-o", "all.stats.safetensors"], &all[..]].concat());
    let given = [&["run", "--causal", "0", "--components", "all.stats.safetensors"], &all[..]].concat();
    assert_eq!(explain(folder, &given)["corpus"]["held_out"], false);
    let refused = run(folder, &["explain", "rec", "--self-attention"]);
    assert_eq!(refused.status.code(), Some(1), "{}", shown(&refused));
    assert!(shown(&refused).contains("give it to `crosslens record`"), "{}", shown(&refused));
}

#[test]
fn a_page_and_a_server_show_the_self_attention_of_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, &["train", "reverse", "--arch", "transformer", "--steps", "3", "--out", "run", "--quiet"]);
    let kinds = |report: &serde_json::Value| {
        let sites = report["report"]["sites"].as_array().expect("sites");
        ["cross", "encoder-self", "decoder-self"].map(|kind| sites.iter().filter(|site| site["kind"] == kind).count())
    };
    let page = |arguments: &[&str]| {
        succeed(folder, &[&["report", "run", "--sentences", "20", "--samples", "2"], arguments].concat());
        kinds(&page_report(&folder.join("report.html")))
    };
    assert_eq!((page(&[]), page(&["--self-attention"])), ([2, 0, 0], [2, 2, 2]));

    let serving = Serving::ready(crosslens(folder, &["serve", "run", "--sentences", "20", "--self-attention", "--json"]));
    assert_eq!(kinds(&serving.ask("GET", "/api/reports/0", &serde_json::Value::Null)), [2, 2, 2]);
    let question = serde_json::json!({ "sentence": { "sample": 0 }, "sites": [4] });
    let answer = serving.ask("POST", "/api/models/0/explain", &question);
    assert_eq!(answer["sample"]["visible"][4], "causal", "a decoder sees no word to come: {answer}");
    serving.stop();

    succeed(folder, &["record", "run", "--samples", "20", "-o", "rec"]);
    for command in ["report", "serve"] {
        let refused = run(folder, &[command, "rec", "--self-attention"]);
        assert_eq!(refused.status.code(), Some(1), "{}", shown(&refused));
        assert!(shown(&refused).contains("give it to `crosslens record`"), "{}", shown(&refused));
    }
}

/// The usual cell too: it would change nothing, and whoever writes it believes that it does.
#[test]
fn options_of_parts_that_a_family_lacks_are_refused_with_the_option_and_the_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    for (family, option, value, cure) in [
        ("transformer", "--cell", "gru", "leave --cell out; --arch aed"),
        ("transformer", "--cell", "lstm", "leave --cell out; --arch aed"),
        ("transformer", "--score", "dot", "leave --score out; --arch aed"),
        ("ved", "--score", "general", "leave --score out; --arch aed"),
    ] {
        let output = run(folder.path(), &["train", "reverse", "--arch", family, option, value]);
        let said = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{family} networks cannot have {option} {value}: ")) && said.contains(cure), "{said}");
    }
    // Of a file too, whose family nobody wrote on the command line.
    std::fs::write(folder.path().join("run.toml"), "[task]\nname = 'sort'\n[network]\nfamily = 'transformer'\n").expect("a file");
    let output = run(folder.path(), &["train", "run.toml", "--cell", "gru"]);
    assert!(shown(&output).contains("cannot have --cell gru"), "{}", shown(&output));
    let output = run(folder.path(), &["train", "reverse", "--corpus", "pairs.tsv"]);
    assert!(shown(&output).contains("two things to learn") && output.status.code() == Some(2), "{}", shown(&output));
    assert!(!folder.path().join("runs").exists(), "nothing is trained");
}

/// Six positions: a source or target of four words and its end fits, one of six does not, whether it stands in a corpus that is judged on or
/// is typed.
#[test]
fn a_sentence_beyond_the_learned_positions_is_refused_by_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines: String = (0..60).map(|number| format!("word {number} and more\tmot {number} et plus\n")).collect();
    std::fs::write(folder.join("pairs.tsv"), lines).expect("a file");
    let toml = "[task]\nname = 'corpus'\ntrain = 'pairs.tsv'\nheld_out = 10\n[network]\nfamily = 'transformer'\nhidden = 8\nheads = 2\n\
                [network.transformer]\npositions = { kind = 'learned', size = 6 }\n\
                [training]\nsteps = 1\nbatch = 8\nevaluate_every = 1\nevaluate_samples = 4\n";
    std::fs::write(folder.join("run.toml"), toml).expect("a file");
    succeed(folder, &["train", "run.toml", "--out", "run", "--quiet"]);
    succeed(folder, &["eval", "run", "--corpus", "pairs.tsv"]);
    for (pair, side) in [("word 1\tmot et mot et mot et", "target"), ("word and word and word and\tmot 1", "source")] {
        std::fs::write(folder.join("long.tsv"), format!("word 3\tmot 3\n\n{pair}\n")).expect("a file");
        let refused = run(folder, &["eval", "run", "--corpus", "long.tsv"]);
        let said = shown(&refused);
        let says = format!("long.tsv, line 3: a {side} may have 7 steps, network.transformer.positions.size is 6: use at least 7");
        assert!(refused.status.code() == Some(1) && said.contains(&says), "{said}");
    }
    let refused = run(folder, &["translate", "run", "word and word and word and"]);
    assert!(refused.status.code() == Some(1) && shown(&refused).contains("the text: a source may have 7 steps"), "{}", shown(&refused));
}
