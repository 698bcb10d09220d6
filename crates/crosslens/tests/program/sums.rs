//! Sums: made in shards, put together, and fitted from.

use std::path::Path;

use super::common::{TINY, assert_alike, crosslens, explain, run, seen, shown, succeed, train};

fn snapshot(name: &str, folder: &Path, arguments: &[&str]) {
    insta::assert_snapshot!(name, seen(folder, arguments));
}

#[test]
fn sums_made_in_shards_are_those_made_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "100");
    succeed(folder, &["record", "run", "--samples", "200", "-o", "rec"]);
    for model in ["run", "rec"] {
        let name = |part: &str| format!("{model}-{part}.stats.safetensors");
        let samples: &[&str] = if model == "run" { &["--samples", "200"] } else { &[] };
        for shard in 1..=3 {
            let (text, out) = (format!("{shard}/3"), name(&shard.to_string()));
            succeed(folder, &[&["fit", model, "--shard", &text, "-o", &out], samples].concat());
        }
        succeed(folder, &["merge", &name("1"), &name("2"), &name("3"), "-o", &name("merged")]);
        succeed(folder, &[&["fit", model, "-o", &name("whole")], samples].concat());
        let (merged, whole) = (Sums::read(&folder.join(name("merged"))), Sums::read(&folder.join(name("whole"))));
        merged.assert_alike(&whole);

        let own = explain(folder, &[&[model], samples].concat());
        let given = explain(folder, &[&[model, "--components", &name("merged")], samples].concat());
        assert_alike(&own, &given, 1e-6, &[]);
        assert_eq!(given["corpus"]["held_out"], false, "they are the sums of the very sentences explained");
        let others = explain(folder, &[&[model, "--components", &name("1")], samples].concat());
        assert_eq!(others["corpus"]["held_out"], serde_json::Value::Null, "a third of them: neither others nor the same");
    }
    let (run, rec) = (Sums::read(&folder.join("run-whole.stats.safetensors")), Sums::read(&folder.join("rec-whole.stats.safetensors")));
    run.assert_alike(&rec);

    snapshot("help of fit", folder, &["fit", "--help"]);
    snapshot("help of merge", folder, &["merge", "--help"]);
    snapshot("fit", folder, &["fit", "rec", "-o", "x.stats.safetensors"]);
    snapshot("fit a shard", folder, &["fit", "rec", "--shard", "2/3", "-o", "x.stats.safetensors"]);
    snapshot("merge", folder, &["merge", "run-1.stats.safetensors", "rec-2.stats.safetensors", "-o", "x.stats.safetensors"]);
    snapshot("merge one twice", folder, &["merge", "x.stats.safetensors", "./x.stats.safetensors", "-o", "y.stats.safetensors"]);
    snapshot("an empty shard", folder, &["fit", "rec", "--samples", "2", "--shard", "3/3", "-o", "y.stats.safetensors"]);
    for shard in ["0/3", "4/3", "1", "a/b", "1/0"] {
        assert_eq!(
            crosslens(folder, &["fit", "rec", "--shard", shard, "-o", "y"]).output().expect("it runs").status.code(),
            Some(2),
            "{shard}"
        );
    }
}

#[test]
fn sums_of_another_model_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "1");
    succeed(folder, &["train", TINY, "--steps", "1", "--seed", "8", "--out", "other", "--quiet"]);
    succeed(folder, &["fit", "run", "--samples", "5", "-o", "run.stats.safetensors"]);
    succeed(folder, &["fit", "other", "--samples", "5", "-o", "other.stats.safetensors"]);
    let explained = shown(&run(folder, &["explain", "run", "--components", "other.stats.safetensors"]));
    assert!(explained.starts_with("exit 1"), "{explained}");
    for words in ["`other.stats.safetensors`", "`run`", "two models", "crosslens fit run -o other.stats.safetensors"] {
        assert!(explained.contains(words), "{explained}");
    }
    let merged = shown(&run(folder, &["merge", "run.stats.safetensors", "other.stats.safetensors", "-o", "x.stats.safetensors"]));
    assert!(merged.starts_with("exit 1"), "{merged}");
    for words in ["`run.stats.safetensors` and `other.stats.safetensors` cannot be merged", "two models"] {
        assert!(merged.contains(words), "{merged}");
    }
    assert!(!folder.join("x.stats.safetensors").exists());
    snapshot("components that are none", folder, &["explain", "run", "--components", "run/model.safetensors"]);
}

/// The numbers of a file of sums, by name; of tokens in the order of the tokens.
struct Sums(Vec<(String, Vec<f64>)>);

impl Sums {
    fn read(path: &Path) -> Self {
        let stats = crosslens_lab::analysis::Stats::load(path).expect("sums");
        let mut numbers = Vec::new();
        for stream in &stats.streams {
            let counts = stream.sums.step_counts().iter().map(|&n| n as f64).collect();
            let token_counts = stream.sums.token_counts().iter().flat_map(|&(token, n)| [f64::from(token), n as f64]).collect();
            let by_token = stream.sums.by_token().into_iter().flat_map(|(_, sum)| sum.to_vec()).collect();
            let squares = vec![stream.sums.squares()];
            let arrays = [
                ("n", counts),
                ("m", token_counts),
                ("by_step", stream.sums.by_step().to_vec()),
                ("by_token", by_token),
                ("squares", squares),
            ];
            numbers.extend(arrays.map(|(name, values)| (format!("{}.{name}", stream.name), values)));
        }
        Self(numbers)
    }

    fn assert_alike(&self, other: &Self) {
        assert_eq!(self.0.len(), other.0.len());
        for ((name, left), (other_name, right)) in self.0.iter().zip(&other.0) {
            assert_eq!((name, left.len()), (other_name, right.len()));
            for (a, b) in left.iter().zip(right) {
                assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "{name}: {a} and {b}");
            }
        }
    }
}

/// Two parts explained apart under the sums of both: their totals, kept in files, make the report of the whole.
#[test]
fn share_totals_of_parts_are_put_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "20");
    let sums = "all.stats.safetensors";
    succeed(folder, &["fit", "run", "--samples", "40", "-o", sums]);
    for (seed, kept) in [("1", "a.shares.jsonl"), ("2", "b.shares.jsonl")] {
        let of_part = ["explain", "run", "--samples", "20", "--seed", seed, "--components", sums, "--causal", "0", "--keep-shares", kept];
        assert!(shown(&succeed(folder, &of_part)).contains(kept));
        assert!(folder.join(kept.replace("jsonl", "sums.safetensors")).exists());
    }
    let whole = explain(folder, &["run", "--components", sums, "--from-shares", "a.shares.jsonl", "b.shares.jsonl"]);
    assert_eq!(whole["corpus"]["pairs"], 40);
    assert_eq!(whole["sites"][0]["verdict"]["label"], "not rerun");
    assert!(whole["sites"][0]["shares"]["centred"].is_array());
    assert_eq!(whole["corpus"]["source"], "2 parts that were explained before");
    assert!(whole["corpus"]["warnings"][0].as_str().expect("a warning").contains("average attention of its own sentences"));
    // One part alone is what was reported when it was explained.
    let alone = explain(folder, &["run", "--components", sums, "--from-shares", "a.shares.jsonl"]);
    let before = explain(folder, &["run", "--samples", "20", "--seed", "1", "--components", sums, "--causal", "0"]);
    assert_eq!((&alone["corpus"]["source"], alone["corpus"].get("warnings")), (&"a part that was explained before".into(), None));
    for what in ["shares", "by_step", "diagonal", "average_attention"] {
        assert_alike(&alone["sites"][0][what], &before["sites"][0][what], 1e-9, &[]);
    }

    let code = |arguments: &[&str]| {
        let output = run(folder, &[&["explain", "run", "--components", sums, "--from-shares"], arguments].concat());
        (output.status.code(), shown(&output))
    };
    let (exit, said) = code(&["a.shares.jsonl", "b.shares.jsonl", "--k", "5"]);
    assert!(exit == Some(1) && said.contains("a.shares.jsonl") && said.contains("the options"), "{said}");
    let (exit, said) = code(&["a.shares.jsonl", "a.shares.jsonl"]);
    assert!(exit == Some(2) && said.contains("given twice"), "{said}");
    std::fs::copy(folder.join("a.shares.jsonl"), folder.join("c.shares.jsonl")).expect("writable");
    std::fs::copy(folder.join("a.shares.sums.safetensors"), folder.join("c.shares.sums.safetensors")).expect("writable");
    let (exit, said) = code(&["a.shares.jsonl", "b.shares.jsonl", "c.shares.jsonl"]);
    assert!(exit == Some(1) && said.contains("`c.shares.jsonl` holds the sentences of `a.shares.jsonl`"), "{said}");
    snapshot("keep shares under another name", folder, &["explain", "run", "--components", sums, "--keep-shares", "part.1"]);
    assert_eq!(code(&["a.shares.jsonl", "--samples", "3"]).0, Some(2));
    assert_eq!(code(&["not-there.shares.jsonl"]).0, Some(1));
}
