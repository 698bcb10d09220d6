//! Validates JSON against `docs/report.schema.json` and `docs/openapi.json`: the keywords those files use, and no other.
//!
//! Written here because `jsonschema` would bring dozens of crates into the tests, one of them (`borrow-or-share`) under MIT-0, which
//! `deny.toml` does not allow.

use std::path::Path;

use serde_json::{Map, Value};

/// A schema and the definitions it refers to.
pub(crate) struct Schema {
    /// Those stand in it, under `$defs` or as OpenAPI has them.
    pub(crate) root: Value,
}

impl Schema {
    /// The published schema of reports.
    pub(crate) fn of_reports() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
        let text = std::fs::read_to_string(path).expect("the schema is published");
        Self { root: serde_json::from_str(&text).expect("the schema is JSON") }
    }

    /// Where a value breaks the schema, and how; empty if it does not.
    pub(crate) fn faults(&self, value: &Value) -> Vec<String> {
        self.check(&self.root, value, "")
    }

    fn check(&self, schema: &Value, value: &Value, path: &str) -> Vec<String> {
        let schema = schema.as_object().unwrap_or_else(|| panic!("{path}: a schema is an object"));
        let mut faults = Vec::new();
        for (keyword, argument) in schema {
            let fault = match keyword.as_str() {
                "$schema" | "$defs" | "paths" | "components" | "title" | "description" | "default" | "contentEncoding" => None,
                // Read with `properties`.
                "additionalProperties" => None,
                "$ref" => {
                    let target = argument.as_str().expect("the name of a definition");
                    faults.extend(match target.strip_prefix('#') {
                        Some(place) => {
                            let definition = self.root.pointer(place).unwrap_or_else(|| panic!("there is no {target}"));
                            self.check(definition, value, path)
                        }
                        None => {
                            assert_eq!(target, "report.schema.json", "the only other file");
                            let inside = Self::of_reports().faults(value);
                            inside.into_iter().map(|fault| format!("{path}{fault}")).collect()
                        }
                    });
                    None
                }
                "oneOf" => {
                    let n_met = list(argument).iter().filter(|schema| self.check(schema, value, path).is_empty()).count();
                    (n_met != 1).then(|| format!("is {n_met} of {argument}: {value}"))
                }
                "anyOf" => {
                    let tried: Vec<_> = list(argument).iter().map(|schema| self.check(schema, value, path)).collect();
                    let is_met = tried.iter().any(Vec::is_empty);
                    (!is_met).then(|| format!("none of: {}", tried.concat().join(" / ")))
                }
                "type" => (!has_type(argument, value)).then(|| format!("is not {argument}: {value}")),
                "const" => (argument != value).then(|| format!("is not {argument}: {value}")),
                "enum" => (!list(argument).contains(value)).then(|| format!("is none of {argument}: {value}")),
                "minimum" => value.as_f64().filter(|&x| x < number(argument)).map(|x| format!("{x} is below {argument}")),
                "maximum" => value.as_f64().filter(|&x| x > number(argument)).map(|x| format!("{x} is above {argument}")),
                "minItems" => {
                    value.as_array().filter(|all| (all.len() as f64) < number(argument)).map(|_| format!("has fewer than {argument}"))
                }
                "maxItems" => {
                    value.as_array().filter(|all| all.len() as f64 > number(argument)).map(|_| format!("has more than {argument}"))
                }
                "items" => {
                    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                        faults.extend(self.check(argument, item, &format!("{path}/{place}")));
                    }
                    None
                }
                "required" => value.as_object().and_then(|object| {
                    let missing = list(argument).iter().find(|name| !object.contains_key(name.as_str().expect("a name")))?;
                    Some(format!("has no {missing}"))
                }),
                "properties" => None,
                other => panic!("the schema uses `{other}`, which this validator does not know"),
            };
            faults.extend(fault.map(|fault| format!("{path}: {fault}")));
        }
        if let Some(object) = value.as_object() {
            faults.extend(self.check_properties(schema, object, path));
        }
        faults
    }

    fn check_properties(&self, schema: &Map<String, Value>, object: &Map<String, Value>, path: &str) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, value) in object {
            let path = format!("{path}/{name}");
            match (schema.get("properties").and_then(|properties| properties.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) => faults.extend(self.check(schema, value, &path)),
                (None, Some(Value::Bool(false))) => faults.push(format!("{path}: is unknown")),
                (None, Some(schema)) => faults.extend(self.check(schema, value, &path)),
                (None, None) => {}
            }
        }
        faults
    }
}

fn list(argument: &Value) -> &[Value] {
    argument.as_array().expect("a list")
}

fn number(argument: &Value) -> f64 {
    argument.as_f64().expect("a number")
}

fn has_type(names: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type `{other}`"),
    };
    match names {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}
