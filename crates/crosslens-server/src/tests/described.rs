//! Answers are what `docs/openapi.json` says they are.

use serde_json::{Value, json};

use super::schema::Schema;
use super::{Answer, Running, soon};
use crate::api::OPENAPI;

/// Where an answer to a request breaks its description; empty if it does not.
fn faults(method: &str, path: &str, answer: &Answer) -> Vec<String> {
    let described: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let (path, status) = (path.replace('/', "~1"), answer.status);
    let place = format!("/paths/{path}/{method}/responses/{status}/content/application~1json/schema");
    assert!(described.pointer(&place).is_some(), "{place} is not described");
    let root = json!({ "$ref": format!("#{place}"), "paths": described["paths"], "components": described["components"] });
    Schema { root }.faults(&answer.json())
}

/// Fails where an answer is not as described.
pub(super) fn keeps(method: &str, path: &str, answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{path}: {answer:?}");
    assert_eq!(faults(method, path, answer), Vec::<String>::new(), "{method} {path}");
}

#[test]
fn answers_keep_to_the_published_description() {
    let server = Running::usual();
    let (explain, rerun) = ("/api/models/{id}/explain", "/api/models/{id}/rerun");
    for path in ["/api/openapi.json", "/api/report.schema.json", "/api/models", "/api/reports", "/api/jobs"] {
        keeps("get", path, &server.get(path), 200);
    }
    for path in ["/api/models/{id}", "/api/reports/{id}"] {
        keeps("get", path, &server.get(&path.replace("{id}", "0")), 200);
        keeps("get", path, &server.get(&path.replace("{id}", "7")), 404);
    }
    let post = |path: &str, body: Value| server.post(&path.replace("{id}", "0"), &body);
    let sample = json!({ "sample": 0 });
    for (body, status) in [
        (json!({ "sentence": sample }), 200),
        (json!({ "sentence": { "source": ["<eos>"] }, "estimator": "joint", "sites": [0] }), 200),
        (json!({ "sentence": { "source": "nonsense" } }), 422),
        (json!({ "sentences": [] }), 400),
    ] {
        keeps("post", explain, &post(explain, body), status);
    }
    keeps("post", rerun, &post(rerun, json!({ "sentence": sample, "site": 0, "off": [0, 4] })), 200);
    keeps("post", rerun, &post(rerun, json!({ "sentence": sample, "site": 9, "off": [] })), 422);
    keeps("post", "/api/jobs", &post("/api/jobs", json!({ "model": 0, "sentences": 10 })), 202);
    assert!(soon(|| server.get("/api/jobs/0").json()["state"] == "done"));
    keeps("get", "/api/jobs/{id}", &server.get("/api/jobs/0"), 200);
    keeps("get", "/api/reports", &server.get("/api/reports"), 200);
    keeps("get", "/api/reports/{id}", &server.get("/api/reports/1"), 200);
    keeps("delete", "/api/jobs/{id}", &server.request("DELETE", "/api/jobs/0", &[], ""), 200);
}

/// A field too many, or one of the report's own missing, is a fault: the check above can fail.
#[test]
fn what_is_not_described_is_found() {
    let server = Running::usual();
    let answer = server.get("/api/reports/0");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut json = answer.json();
        change(&mut json);
        let answer = Answer { body: json.to_string().into(), head: answer.head.clone(), ..answer };
        faults("get", "/api/reports/{id}", &answer)
    };
    assert_eq!(changed(&|_| ()), Vec::<String>::new());
    assert_eq!(changed(&|json| json["more"] = json!(1)), ["/more: is unknown"]);
    assert_eq!(changed(&|json| json["report"]["more"] = json!(1)), ["/report/more: is unknown"]);
    assert!(!changed(&|json| json["codes"] = Value::Null).is_empty());
}
