//! What a model's own files say of drawing tokens.

use std::path::PathBuf;

use serde_json::Value;

use super::Sampling;
use crate::PretrainedError;
use crate::fields::Fields;
use crate::generation::{self, MOST_SHOWN};

/// Tokens that transformers draws from where no file says how many.
const TOP_K: usize = 50;

/// Settings of transformers' that change what is drawn and that are not followed here, with the values that change nothing.
const UNHEEDED: [(&str, &[&str]); 6] = [
    ("num_beams", &["1"]),
    ("min_p", &["0.0", "0"]),
    ("typical_p", &["1.0", "1"]),
    ("epsilon_cutoff", &["0.0", "0"]),
    ("eta_cutoff", &["0.0", "0"]),
    ("top_h", &[]),
];

/// How tokens are drawn by the files of a model. Values that make no sense are refused where they are asked for: a model that never draws
/// may have them.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    path: PathBuf,
    temperature: Result<f32, String>,
    top_k: Result<usize, String>,
    top_p: Result<f64, String>,
    /// Settings of the files that are not followed where tokens are drawn, as they stand there.
    pub unheeded: Vec<String>,
}

impl Drawing {
    pub(crate) fn read(own: &Fields) -> Self {
        fn of<T>(own: &Fields, field: &str, otherwise: T, read: fn(&Value) -> Option<T>, meant: &str) -> Result<T, String> {
            own.get(field).map_or(Ok(otherwise), |value| read(value).ok_or_else(|| format!("is {}; {meant} is meant", shown(value))))
        }
        let temperature = |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| *number > 0.0 && number.is_finite());
        let top_k = |value: &Value| value.as_u64().map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let top_p = |value: &Value| value.as_f64().filter(|share| *share >= 0.0);
        Self {
            path: own.path().to_owned(),
            temperature: of(own, "temperature", 1.0, temperature, "a number above 0, of single precision,"),
            top_k: of(own, "top_k", TOP_K, top_k, "a whole number from 0"),
            top_p: of(own, "top_p", 1.0, top_p, "a number from 0 to 1"),
            unheeded: generation::unheeded(own, &UNHEEDED),
        }
    }

    /// What logits are divided by.
    pub fn temperature(&self) -> Result<f32, PretrainedError> {
        self.checked("temperature", &self.temperature)
    }

    /// How many of the likeliest tokens are drawn from; 0 for all.
    pub fn top_k(&self) -> Result<usize, PretrainedError> {
        self.checked("top_k", &self.top_k)
    }

    /// The probability that the likeliest tokens reach that are drawn from.
    pub fn top_p(&self) -> Result<f64, PretrainedError> {
        self.checked("top_p", &self.top_p)
    }

    /// All of it.
    pub fn sampling(&self, seed: u64) -> Result<Sampling, PretrainedError> {
        Ok(Sampling { temperature: self.temperature()?, top_k: self.top_k()?, top_p: self.top_p()?, seed })
    }

    fn checked<T: Copy>(&self, field: &str, value: &Result<T, String>) -> Result<T, PretrainedError> {
        let wrong = |what: &String| PretrainedError::Config { path: self.path.clone(), field: field.into(), what: what.clone() };
        value.as_ref().copied().map_err(wrong)
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > MOST_SHOWN { "something else".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn drawing(settings: &Value) -> Drawing {
        Drawing::read(&Fields::of(Path::new("generation_config.json"), settings.as_object().cloned().unwrap_or_default()))
    }

    /// transformers' defaults: temperature 1, the 50 likeliest, all of their probability.
    #[test]
    fn what_no_file_says_is_as_in_transformers() {
        let sampling = drawing(&json!({ "top_p": null })).sampling(7).expect("settings");
        assert_eq!(sampling, Sampling { temperature: 1.0, top_k: 50, top_p: 1.0, seed: 7 });
        let own = drawing(&json!({ "temperature": 2, "top_k": 0, "top_p": 0.25, "min_p": 0.1, "eta_cutoff": 0.0 }));
        assert_eq!(own.sampling(0).expect("settings"), Sampling { temperature: 2.0, top_k: 0, top_p: 0.25, seed: 0 });
        assert_eq!(own.unheeded, ["min_p: 0.1"]);
        assert_eq!(drawing(&json!({ "top_k": u64::MAX, "top_p": 3.0 })).sampling(0).expect("settings").top_k, usize::MAX);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_file_and_field() {
        for (field, value) in [
            ("temperature", json!(0.0)),
            ("temperature", json!(-1.0)),
            ("temperature", json!(1e300)),
            ("temperature", json!(1e-300)),
            ("temperature", json!("hot")),
            ("top_k", json!(-1)),
            ("top_k", json!(5.5)),
            ("top_p", json!(-0.1)),
            ("top_p", json!([0.5])),
        ] {
            let own = drawing(&json!({ field: value.clone() }));
            let error = own.sampling(0).expect_err("nonsense").to_string();
            assert!(error.starts_with(&format!("`generation_config.json`: field `{field}` is {value}; ")), "{error}");
            assert_eq!([own.temperature().is_ok(), own.top_k().is_ok(), own.top_p().is_ok()].iter().filter(|is_ok| !**is_ok).count(), 1);
        }
        let long = drawing(&json!({ "top_k": "x".repeat(1000) })).top_k().expect_err("nonsense").to_string();
        assert!(long.len() < 120, "{long}");
    }
}
