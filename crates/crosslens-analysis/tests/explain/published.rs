//! Reports are what `docs/report.schema.json` says they are.

use crosslens_analysis::explain::{Options, Rank};
use serde_json::Value;

use super::planted::{Plan, Planted, every_map};
use super::schema::Schema;

/// With everything that can be asked for, and with as little as possible.
fn reports() -> Vec<Value> {
    let every = Planted::of(&Plan::default(), every_map(3));
    let without_attention = Planted::of(&Plan::default(), Vec::new());
    let mut silent = every.clone();
    for sentence in &mut silent.sentences {
        (sentence.predicted, sentence.target, sentence.loss) = (Vec::new(), None, None);
        sentence.attention.clear();
    }
    let all = Options { bootstrap: 5, rank: Some(Rank::Drift), k: 5, held_out: true, ..Options::default() };
    let mut reports = Vec::new();
    for (corpus, options) in [(&every, &all), (&every, &Options::default()), (&without_attention, &all), (&silent, &all)] {
        let mut report = corpus.explain(options).report;
        reports.push(report.to_json());
        for site in &mut report.sites {
            site.control = site.shares.clone();
        }
        reports.push(report.to_json());
    }
    reports.iter().map(|text| serde_json::from_str(text).expect("a report is JSON")).collect()
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

/// Checks the check: no object of a report may lose a field, have one too many, or have one of another type.
#[test]
fn a_missing_a_surplus_and_a_wrong_field_break_the_schema() {
    let schema = Schema::of_reports();
    let mut reports = reports();
    let report = &mut reports[1];
    let mut paths = Vec::new();
    objects(report, String::new(), &mut paths);
    assert!(paths.len() > 100, "a report has many objects");
    for path in paths {
        let fields = report.pointer(&path).and_then(Value::as_object).expect("an object").clone();
        let mut breaks = |what: &str, changed: serde_json::Map<String, Value>| {
            *report.pointer_mut(&path).expect("an object") = Value::Object(changed);
            assert!(!schema.faults(report).is_empty(), "{path} {what}");
        };
        let mut surplus = fields.clone();
        surplus.insert("surplus".into(), "text".into());
        breaks("has a surplus field", surplus);
        for name in fields.keys() {
            let mut wrong = fields.clone();
            wrong.insert(name.clone(), Value::Array(vec![Value::Array(Vec::new())]));
            breaks(&format!("has a wrong {name}"), wrong);
            // The K that was asked for, and a site's own extra attention, have no place of their own in the schema.
            if !name.starts_with("top5") && !name.ends_with("+bias") && !path.ends_with("intervals/rebuilt") {
                let mut missing = fields.clone();
                missing.remove(name);
                breaks(&format!("has no {name}"), missing);
            }
        }
        *report.pointer_mut(&path).expect("an object") = Value::Object(fields);
    }
    assert_eq!(schema.faults(report), Vec::<String>::new(), "all changes were undone");
}

#[test]
fn a_geometry_is_allowed_and_another_version_is_not() {
    let schema = Schema::of_reports();
    let mut report = reports().remove(0);
    for geometry in [Value::Null, serde_json::json!({ "anything": [1, 2] })] {
        report["geometry"] = geometry;
        assert_eq!(schema.faults(&report), Vec::<String>::new());
    }
    report["schema"] = "crosslens-report/2".into();
    assert!(!schema.faults(&report).is_empty());
}
