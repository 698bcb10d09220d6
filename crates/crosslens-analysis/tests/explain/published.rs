//! Reports are what `docs/report.schema.json` says they are.

use crosslens_analysis::explain::{Explained, Options, Rank};
use crosslens_analysis::geometry::PathReport;
use crosslens_analysis::report::{CodesReport, Report, Verdict};
use crosslens_analysis::{Linear, Readout};
use serde_json::{Map, Value};

use super::planted::{D, Plan, Planted, Random, dot, every_map};
use super::schema::Schema;

/// A corpus with every map, whose readout reads state and context.
fn every() -> Planted {
    with_readout(Planted::of(&Plan::default(), every_map(3)))
}

fn with_readout(mut planted: Planted) -> Planted {
    let d_out = planted.description.target.count as usize;
    let weights = Random::new(5).vector(2 * D * d_out, 0.5).iter().map(|&x| x as f32).collect();
    planted.description.readout = Some(Readout { map: Linear { d_in: 2 * D, d_out, weights, bias: Vec::new() }, d_state: D, d_context: D });
    planted
}

/// With everything that can be asked for, and with as little as possible.
fn reports() -> Vec<Value> {
    let every = every();
    let without_attention = Planted::of(&Plan::default(), Vec::new());
    let mut silent = every.clone();
    for sentence in &mut silent.sentences {
        (sentence.predicted, sentence.target, sentence.loss) = (Vec::new(), None, None);
        sentence.attention.clear();
    }
    let all = Options { bootstrap: 5, step_intervals: true, rank: Some(Rank::Drift), k: 5, held_out: true, ..Options::default() };
    let by_loss = Options { rank: Some(Rank::Loss), ..all.clone() };
    let mut reports = Vec::new();
    for (corpus, options) in [(&every, &all), (&every, &Options::default()), (&without_attention, &by_loss), (&silent, &all)] {
        let mut report = corpus.explain(options).report;
        reports.push(report.to_json());
        for site in &mut report.sites {
            site.control = site.shares.clone();
        }
        report.corpus.codes = Some(CodesReport { of: "frames".into(), asked: 64, found: 7, seed: 0 });
        report.corpus.warnings = vec!["`a.wav` breaks off at 1.0 s".into()];
        reports.push(report.to_json());
        reports.push(corpus.explain(&Options { geometry: true, ..options.clone() }).report.to_json());
    }
    reports.iter().map(|text| serde_json::from_str(text).expect("a report is JSON")).collect()
}

fn is_published(report: &Report) {
    let report: Value = serde_json::from_str(&report.to_json()).expect("a report is JSON");
    assert_eq!(Schema::of_reports().faults(&report), Vec::<String>::new());
}

/// What is refused is published too, and read again as it was.
#[test]
fn refused_reports_keep_to_the_published_schema() {
    for error in [2e-4, f32::NAN, f32::INFINITY] {
        let mut planted = every();
        planted.sentences[7].attention.iter_mut().for_each(|attention| attention[1] += error);
        let mut explained = planted.explain(&Options { bootstrap: 3, ..Options::default() });
        is_published(&explained.report);
        for site in &explained.report.sites {
            assert_eq!((site.shares.is_none(), site.verdict.label.as_str()), (true, "not exact"));
            assert_eq!(site.rebuilt.keys().collect::<Vec<_>>(), ["average", "uniform"]);
            assert!(site.verdict.text.starts_with("the terms add up to the scores"), "{}", site.verdict.text);
        }
        let folder = tempfile::tempdir().expect("a folder");
        explained.save(&folder.path().join("report.json")).expect("writable");
        assert_eq!(Report::load(&folder.path().join("report.json")).expect("just saved"), explained.report);
    }
}

#[test]
fn a_report_of_no_sentence_keeps_to_the_published_schema() {
    let verdict = Verdict { label: "no corpus".into(), text: "there is no corpus".into() };
    for planted in [every(), Planted::of(&Plan::default(), Vec::new())] {
        is_published(&Explained::of_no_sentence(&planted.description, &verdict).report);
    }
}

/// Nothing is left out of a report whose model was not run: what it would have said is null.
#[test]
fn what_was_not_run_is_null() {
    let report: Value = serde_json::from_str(&every().explain(&Options::default()).report.to_json()).expect("JSON");
    for site in report["sites"].as_array().expect("sites") {
        for (name, rebuilt) in site["rebuilt"].as_object().expect("by name") {
            for field in ["accuracy", "phrase_accuracy", "content_word_accuracy", "loss", "changed"] {
                assert_eq!(rebuilt.get(field), Some(&Value::Null), "{name} {field}");
            }
        }
    }
    for field in ["rerun", "unchanged", "values", "readout"] {
        assert_eq!(report.get(field), Some(&Value::Null), "{field}");
    }
}

#[test]
fn reports_keep_to_the_published_schema() {
    let schema = Schema::of_reports();
    for report in reports() {
        assert_eq!(schema.faults(&report), Vec::<String>::new());
    }
}

/// Every object of a value, by its path.
fn objects(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| objects(value, format!("{path}/{name}"), found));
            found.push(path);
        }
        Value::Array(all) => all.iter().enumerate().for_each(|(place, value)| objects(value, format!("{path}/{place}"), found)),
        _ => {}
    }
}

/// Checks the check: no object of a report at or under `root` may lose a field, have one too many, or have one of another type. Gives how many objects there are.
fn every_field_counts(report: &mut Value, root: &str, is_optional: impl Fn(&str, &str) -> bool) -> usize {
    let schema = Schema::of_reports();
    let mut paths = Vec::new();
    objects(report.pointer(root).expect("it is there"), root.to_owned(), &mut paths);
    let n_objects = paths.len();
    for path in paths {
        let fields = report.pointer(&path).and_then(Value::as_object).expect("an object").clone();
        let mut breaks = |what: &str, changed: Map<String, Value>| {
            *report.pointer_mut(&path).expect("an object") = Value::Object(changed);
            assert!(!schema.faults(report).is_empty(), "{path} {what}");
        };
        let mut surplus = fields.clone();
        surplus.insert("surplus".into(), "text".into());
        breaks("has a surplus field", surplus);
        for name in fields.keys() {
            let mut wrong = fields.clone();
            wrong.insert(name.clone(), serde_json::json!([[[]]]));
            breaks(&format!("has a wrong {name}"), wrong);
            if !is_optional(&path, name) {
                let mut missing = fields.clone();
                missing.remove(name);
                breaks(&format!("has no {name}"), missing);
            }
        }
        *report.pointer_mut(&path).expect("an object") = Value::Object(fields);
    }
    assert_eq!(schema.faults(report), Vec::<String>::new(), "all changes were undone");
    n_objects
}

#[test]
fn a_missing_a_surplus_and_a_wrong_field_break_the_schema() {
    // The K that was asked for, and a site's own extra attention, have no place of their own in the schema; texts have no codes, and
    // additive scores no label.
    let n_objects = every_field_counts(&mut reports()[1], "", |path, name| {
        let of_files = path == "/corpus" && ["codes", "warnings"].contains(&name);
        let of_pairs = path.ends_with("/intervals") && name == "head_shares";
        // What the bias of positions has is by measure, and older reports have none of it.
        let of_bias = name == "position_bias_top" || path.ends_with("/position_bias_top") || path.ends_with("/by_step/position_bias");
        // Intervals by step are there only where they were asked for.
        let of_steps = path.ends_with("/by_step") && (name == "position_bias" || name == "query_mean" && !path.contains("/intervals/"))
            || path.ends_with("/intervals") && name == "by_step";
        of_bias
            || of_steps
            || of_files
            || of_pairs
            || name.starts_with("top5")
            || name.ends_with("+bias")
            || path.ends_with("intervals/rebuilt")
    });
    assert!(n_objects > 100, "a report has many objects");
}

/// One head, so that input components are compared with readouts; paths under probes, which need a model, are written by hand.
#[test]
fn a_geometry_is_described_to_its_last_field() {
    let planted = with_readout(Planted::of(&Plan::default(), vec![dot()]));
    let mut report = planted.explain(&Options { geometry: true, ..Options::default() }).report;
    let geometry = report.geometry.as_mut().expect("it was asked for");
    let probed = |word: Option<&str>| PathReport {
        stream: "encoder".into(),
        word: word.map(str::to_owned),
        steps: 2,
        cosine: 0.5,
        step_correlation: word.map(|_| 1.0),
        path: vec![[0.0, 1.0, 2.0]; 2],
    };
    (geometry.null_input, geometry.constant_words) = (vec![probed(None)], vec![probed(Some("a"))]);
    for stream in &mut geometry.streams {
        assert!(!stream.residuals.is_empty() && !stream.inputs.is_empty());
        stream.residuals.truncate(1);
        stream.inputs.truncate(1);
    }
    geometry.notes.push("a note".into());
    let mut report: Value = serde_json::from_str(&report.to_json()).expect("a report is JSON");
    for there in ["frames/0", "readout/state/angles/table", "readout/context", "plane/inputs/0", "cosines/0/words/0", "subspaces/0"] {
        assert!(report["geometry"].pointer(&format!("/{there}")).is_some_and(|value| !value.is_null()), "no {there}");
    }
    let n_objects = every_field_counts(&mut report, "/geometry", |_, name| name == "plane");
    assert!(n_objects > 15, "every kind of object is there: {n_objects}");
    report["geometry"]["frames"][0]["origin"] = serde_json::json!([1.0, 2.0]);
    assert!(!Schema::of_reports().faults(&report).is_empty(), "a place has three numbers");
}

#[test]
fn no_geometry_is_allowed_and_another_version_is_not() {
    let schema = Schema::of_reports();
    let mut report = reports().remove(0);
    report["geometry"] = Value::Null;
    assert_eq!(schema.faults(&report), Vec::<String>::new());
    report["geometry"] = serde_json::json!({ "anything": [1, 2] });
    assert!(!schema.faults(&report).is_empty());
    report["geometry"] = Value::Null;
    report["schema"] = "crosslens-report/2".into();
    assert!(!schema.faults(&report).is_empty());
}
