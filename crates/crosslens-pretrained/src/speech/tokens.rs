//! The special tokens of a model of speech: which language, which task, whether times are written.

use std::collections::BTreeMap;

use crosslens_analysis::Token;
use serde_json::Value;

use super::{SpeechError, TimestampRule};
use crate::fields::Fields;
use crate::model::{Model, read_config};
use crate::text::TextTokenizer;

/// From so many tokens on a model knows languages, where its files do not say.
const MULTILINGUAL: usize = 51_865;

/// What to write of what is heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// What is said, in its language.
    #[default]
    Transcribe,
    /// What is said, in English.
    Translate,
}

/// The tokens that begin what a model of speech reads, and those it writes times with.
///
/// ```text
/// <|startoftranscript|> <|de|> <|transcribe|> <|notimestamps|>     no times
/// <|startoftranscript|> <|de|> <|transcribe|>                      then <|0.00|> text <|1.20|> …
/// <|startoftranscript|> <|notimestamps|>                           of a model of English alone
/// ```
#[derive(Clone, Debug)]
pub struct SpeechTokens {
    folder: std::path::PathBuf,
    start: Token,
    end: Token,
    /// By token; none of a model that knows English alone.
    languages: Vec<(String, Token)>,
    transcribe: Option<Token>,
    translate: Option<Token>,
    no_speech: Option<Token>,
    no_timestamps: Option<Token>,
    timestamps: Option<TimestampRule>,
}

impl SpeechTokens {
    /// Reads `generation_config.json`; what older folders do not say there is known from the tokens' names.
    pub fn of(model: &Model, text: Option<&TextTokenizer>) -> Result<Self, SpeechError> {
        let config = read_config(model.folder())?;
        let path = model.folder().join("generation_config.json");
        let own = if path.exists() { Fields::read(&path)? } else { Fields::none(&path) };
        let names = text.map(|text| special_names(text, model.n_target_tokens())).unwrap_or_default();
        let n_words = model.n_target_tokens();
        let known = |field: &str, token: Token| {
            let wrong = || own.wrong(field, format!("names the token {token}; the model writes {n_words}"));
            if (token as usize) < n_words { Ok(token) } else { Err(wrong()) }
        };
        let named = |name: &str| names.get(name).copied().filter(|&token| (token as usize) < n_words);
        let no_timestamps = match own.tokens("no_timestamps_token_id")?.first() {
            Some(&token) => Some(known("no_timestamps_token_id", token)?),
            None => named("<|notimestamps|>"),
        };
        let start = model.generation().start;
        let Some(&end) = model.generation().ends.first() else {
            return Err(own.wrong("eos_token_id", "is missing").into());
        };
        let of_map = |field: &'static str| token_map(&own, field);
        let mut languages: Vec<(String, Token)> = Vec::new();
        for (name, token) in of_map("lang_to_id")? {
            languages.push((name.trim_start_matches("<|").trim_end_matches("|>").to_owned(), known("lang_to_id", token)?));
        }
        let by_name = names.iter().filter_map(|(name, &token)| Some((language_name(name)?, token)));
        if languages.is_empty() {
            languages = by_name.filter(|(_, token)| (*token as usize) < n_words && *token > start).collect();
        }
        languages.sort_by_key(|(_, token)| *token);
        let forced = forced_first(&own).or_else(|| forced_first(&config));
        let knows_languages = match own.get("is_multilingual") {
            Some(_) => own.flag("is_multilingual", true)?,
            None if own.get("lang_to_id").is_some() => true,
            None => forced.map_or(n_words >= MULTILINGUAL, |forced| forced.is_none_or(|token| Some(token) != no_timestamps)),
        };
        if !knows_languages {
            languages.clear();
        }
        let tasks: BTreeMap<String, Token> = of_map("task_to_id")?.into_iter().collect();
        let task = |name: &str| match tasks.get(name) {
            Some(&token) => known("task_to_id", token).map(Some),
            None => Ok(named(&format!("<|{name}|>"))),
        };
        let latest_first = match own.get("max_initial_timestamp_index").map(Value::as_u64) {
            Some(Some(steps)) => Some(usize::try_from(steps).unwrap_or(usize::MAX)),
            Some(None) => return Err(own.wrong("max_initial_timestamp_index", "is no whole number").into()),
            None => None,
        };
        let timestamps = no_timestamps
            .map(|token| TimestampRule { first: token + 1, end, latest_first })
            .filter(|rule| (rule.first as usize) < n_words && end < rule.first);
        Ok(Self {
            folder: model.folder().to_owned(),
            start,
            end,
            transcribe: if knows_languages { task("transcribe")? } else { None },
            translate: if knows_languages { task("translate")? } else { None },
            no_speech: named("<|nospeech|>").or_else(|| named("<|nocaptions|>")).or(no_timestamps.and_then(|token| token.checked_sub(1))),
            no_timestamps,
            timestamps,
            languages,
        })
    }

    /// Whether it knows several languages; else it writes down English.
    pub fn is_multilingual(&self) -> bool {
        !self.languages.is_empty()
    }

    /// The languages it knows, such as `en`, by their tokens.
    pub fn languages(&self) -> impl Iterator<Item = (&str, Token)> {
        self.languages.iter().map(|(name, token)| (name.as_str(), *token))
    }

    /// How it writes timestamps, if it has tokens for them.
    pub fn timestamps(&self) -> Option<TimestampRule> {
        self.timestamps
    }

    /// The token whose probability after the start says that nobody speaks.
    pub fn no_speech(&self) -> Option<Token> {
        self.no_speech
    }

    /// Ends a text; all tokens before it are text.
    pub fn end(&self) -> Token {
        self.end
    }

    /// A language as the model names it: `de` for `DE` or `<|de|>`.
    pub fn language(&self, asked: &str) -> Result<String, SpeechError> {
        if !self.is_multilingual() {
            return Err(SpeechError::EnglishOnly { folder: self.folder.clone(), what: "the language" });
        }
        let name = asked.trim().trim_start_matches("<|").trim_end_matches("|>").to_lowercase();
        match self.languages.iter().find(|(known, _)| *known == name) {
            Some((known, _)) => Ok(known.clone()),
            None => {
                let known = self.languages.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
                Err(SpeechError::Language { folder: self.folder.clone(), asked: asked.to_owned(), known })
            }
        }
    }

    /// What the decoder reads before it writes, the start token first. A model of English alone has neither a language nor a task.
    pub fn prompt(&self, language: Option<&str>, task: Task, with_times: bool) -> Result<Vec<Token>, SpeechError> {
        let missing = |token, cure| SpeechError::NoToken { folder: self.folder.clone(), token, cure };
        let mut prompt = vec![self.start];
        if self.is_multilingual() {
            if let Some(asked) = language {
                let name = self.language(asked)?;
                prompt.extend(self.languages.iter().find(|(known, _)| *known == name).map(|(_, token)| *token));
            }
            match task {
                Task::Transcribe => prompt.extend(self.transcribe),
                Task::Translate => {
                    let cure = "it cannot translate; let it transcribe";
                    prompt.push(self.translate.ok_or_else(|| missing("<|translate|>", cure))?);
                }
            }
        } else if task == Task::Translate {
            return Err(SpeechError::EnglishOnly { folder: self.folder.clone(), what: "the task" });
        }
        match (with_times, self.timestamps) {
            (true, None) => return Err(missing("of timestamps", "let it write without timestamps")),
            (true, Some(_)) => {}
            (false, _) => prompt.extend(self.no_timestamps),
        }
        Ok(prompt)
    }
}

/// The tokens whose names are those of special ones, of as many as the model writes: a tokenizer may claim any number.
fn special_names(text: &TextTokenizer, n_words: usize) -> BTreeMap<String, Token> {
    let named = |token: usize| {
        let name = text.target_token(token as Token)?;
        (name.starts_with("<|") && name.ends_with("|>")).then(|| (name.to_owned(), token as Token))
    };
    (0..text.target_size().min(n_words)).filter_map(named).collect()
}

/// `de` of `<|de|>`: two or three letters.
fn language_name(token: &str) -> Option<String> {
    let name = token.strip_prefix("<|")?.strip_suffix("|>")?;
    ((2..=3).contains(&name.len()) && name.bytes().all(|letter| letter.is_ascii_lowercase())).then(|| name.to_owned())
}

/// What old files force after the start: a token, or null where the language is to be found.
fn forced_first(fields: &Fields) -> Option<Option<Token>> {
    let first = fields.get("forced_decoder_ids")?.as_array()?.first()?.as_array()?;
    match first.as_slice() {
        [place, token] if place.as_u64() == Some(1) => Some(token.as_u64().and_then(|token| Token::try_from(token).ok())),
        _ => None,
    }
}

fn token_map(fields: &Fields, field: &str) -> Result<Vec<(String, Token)>, SpeechError> {
    let wrong = |what: String| fields.wrong(field, what);
    match fields.get(field) {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => {
            let one = |(name, value): (&String, &Value)| match value.as_u64().and_then(|token| Token::try_from(token).ok()) {
                Some(token) => Ok((name.clone(), token)),
                None => Err(wrong(format!("gives `{name}` the value {value}; a token's number is meant")).into()),
            };
            map.iter().map(one).collect()
        }
        Some(value) => Err(wrong(format!("is {value}; names with tokens' numbers are meant")).into()),
    }
}
