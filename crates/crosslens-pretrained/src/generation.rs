//! How a model writes by its own files: `generation_config.json`, or, where there is none, what older models keep in `config.json`.
//!
//! transformers takes one of the two files and nothing of the other, and no family brings tokens that its file does not name: what has no
//! `eos_token_id` there never ends.

use std::path::Path;

use crosslens_analysis::Token;

use crate::PretrainedError;
use crate::decode::Drawing;
use crate::fields::Fields;
use crate::model::Model;
use crate::speech::TimestampRule;
use crate::text::Opening;

/// Tokens a model writes at most where its files do not say.
const MAX_TOKENS: usize = 256;
/// No file may ask for more: a beam keeps keys and values for every token.
const MOST_TOKENS: usize = 1 << 16;
/// No file may ask for more.
const MOST_BEAMS: usize = 1024;

/// Settings of transformers' that change what a model writes and that are not followed here, with the values that change nothing.
const UNHEEDED: [(&str, &[&str]); 10] = [
    ("repetition_penalty", &["1.0", "1"]),
    ("encoder_repetition_penalty", &["1.0", "1"]),
    ("encoder_no_repeat_ngram_size", &["0"]),
    ("exponential_decay_length_penalty", &[]),
    ("sequence_bias", &["[]", "{}"]),
    ("force_words_ids", &["[]"]),
    ("num_beam_groups", &["1"]),
    ("penalty_alpha", &["0.0", "0"]),
    ("guidance_scale", &["1.0", "1"]),
    ("do_sample", &["false"]),
];

/// Characters of a setting's value that are shown.
pub(crate) const MOST_SHOWN: usize = 40;

/// When a beam search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When no hypothesis can be bettered, taken at the present length.
    No,
    /// As soon as there are as many whole hypotheses as beams.
    Yes,
    /// When no hypothesis can be bettered at any length.
    Never,
}

/// The rules a model writes by.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generation {
    /// Read first by the decoder.
    pub start: Token,
    /// Any of them ends a sentence.
    pub ends: Vec<Token>,
    /// Fills batches in other programs; never written here unless the model does.
    pub pad: Option<Token>,
    /// Written first, whatever the model finds likely.
    pub forced_first: Option<Token>,
    /// One of them is written last where the length runs out.
    pub forced_last: Vec<Token>,
    /// Never written.
    pub suppressed: Vec<Token>,
    /// Never written first.
    pub suppressed_first: Vec<Token>,
    /// Sequences that are never completed.
    pub bad_words: Vec<Vec<Token>>,
    /// Sequences of this length are never written twice; 0 for no such rule.
    pub no_repeat: usize,
    /// Fewest tokens before the end, all that was read counted.
    pub min_length: usize,
    /// Fewest tokens before the end, what was given not counted; said, it counts instead of `min_length`.
    pub min_new: Option<usize>,
    /// Whether the log probabilities that a beam search adds up are made anew of what the rules leave.
    pub renormalizes: bool,
    /// Most tokens, the start token not counted.
    pub max_tokens: usize,
    /// Whether what was given counts among them, as it does where the files say `max_length`.
    pub prefix_counts: bool,
    /// Hypotheses that are followed side by side.
    pub n_beams: usize,
    /// A hypothesis' log probability is divided by its length to this power.
    pub length_penalty: f64,
    /// When a beam search ends.
    pub early_stopping: EarlyStopping,
    /// The first and the last token that tell a model of speech what to write; before a target they are given, never written.
    pub prompts: Option<(Token, Token)>,
    /// Settings of the files that are not followed, as they stand there: other programs may write other words.
    pub unheeded: Vec<String>,
    /// How tokens are drawn, where they are drawn.
    pub drawing: Drawing,
    /// How timestamps are written; of models of speech, where they are asked for.
    pub timestamps: Option<TimestampRule>,
}

impl Model {
    /// Lets it write in the language that was chosen for its tokenizer.
    pub fn open_with(&mut self, opening: Opening) -> Result<(), PretrainedError> {
        let (Opening::Start(token) | Opening::First(token)) = opening;
        self.check_fed(&[token])?;
        (self.generation.start, self.generation.forced_first) = match opening {
            Opening::Start(token) => (token, None),
            Opening::First(token) => (self.generation.start, Some(token)),
        };
        Ok(())
    }
}

impl Generation {
    /// Whether a token tells a model of speech what to write.
    pub(crate) fn is_prompt(&self, token: Token) -> bool {
        self.prompts.is_some_and(|(first, last)| (first..=last).contains(&token))
    }

    /// Reads `generation_config.json`, or the configuration where there is no such file.
    pub(crate) fn read(folder: &Path, config: &Fields, n_words: usize) -> Result<Self, PretrainedError> {
        let path = folder.join("generation_config.json");
        let beside = if path.exists() { Some(Fields::read(&path)?) } else { None };
        let own = beside.as_ref().unwrap_or(config);
        let known = |of: &Fields, field: &str, tokens: Vec<Token>| match tokens.iter().find(|&&token| token as usize >= n_words) {
            Some(token) => Err(of.wrong(field, format!("names the token {token}; the model writes {n_words}"))),
            None => Ok(tokens),
        };
        let tokens = |field: &str| known(own, field, own.tokens(field)?);
        let token = |field: &str| Ok::<_, PretrainedError>(tokens(field)?.first().copied());
        let size = |field: &str, otherwise: usize, most: usize| match own.get(field).and_then(|value| value.as_u64()) {
            Some(0) => Ok(0),
            _ => {
                let size = own.size(field, Some(otherwise.max(1)))?;
                if size > most { Err(own.wrong(field, format!("is {size}; at most {most} is allowed"))) } else { Ok(size) }
            }
        };
        let pad = token("pad_token_id")?;
        let bos = token("bos_token_id")?;
        // Where its file names neither, transformers writes nothing; attention can be explained all the same. T5's start with the padding
        // token unless they say otherwise.
        let elsewhere = |field: &str| Ok::<_, PretrainedError>(known(config, field, config.tokens(field)?)?.first().copied());
        let start = match token("decoder_start_token_id")?.or(bos) {
            Some(start) => start,
            None => match elsewhere("decoder_start_token_id")?.or(elsewhere("bos_token_id")?).or(pad).or(elsewhere("pad_token_id")?) {
                Some(start) => start,
                None => return Err(config.wrong("decoder_start_token_id", "is missing")),
            },
        };
        let bad_words: Vec<Vec<Token>> = own.token_lists("bad_words_ids")?;
        bad_words.iter().try_for_each(|words| known(own, "bad_words_ids", words.clone()).map(drop))?;
        let early_stopping = match own.get("early_stopping") {
            None => EarlyStopping::No,
            Some(value) if value.as_bool() == Some(false) => EarlyStopping::No,
            Some(value) if value.as_bool() == Some(true) => EarlyStopping::Yes,
            Some(value) if value.as_str() == Some("never") => EarlyStopping::Never,
            Some(value) => {
                return Err(own.wrong("early_stopping", format!("is {value}; true, false or \"never\" is meant")));
            }
        };
        let ends = tokens("eos_token_id")?;
        let prompts = ends.first().zip(token("no_timestamps_token_id")?).map(|(end, last)| (end + 1, last));
        // What tells a model of speech what to write is added to its length, as in transformers, the start token with it.
        let is_told = prompts.is_some();
        let (max_tokens, prefix_counts) = match (own.get("max_new_tokens"), own.get("max_length")) {
            (Some(_), _) => (size("max_new_tokens", 0, MOST_TOKENS)?, false),
            (None, Some(_)) => (size("max_length", 0, MOST_TOKENS)?.saturating_sub(usize::from(!is_told)), !is_told),
            (None, None) => (MAX_TOKENS, false),
        };
        // What BART's of before 2021 say, who have no file of their own for this.
        let is_forced_by_bos = beside.is_none() && own.flag("force_bos_token_to_be_generated", false)?;
        let some = |field: &str, size: Result<usize, PretrainedError>| size.map(|n| if own.get(field).is_some() { n } else { 0 });
        let has_min_new = own.get("min_new_tokens").is_some();
        Ok(Self {
            start,
            unheeded: unheeded(own, &UNHEEDED),
            drawing: Drawing::read(own),
            ends,
            prompts,
            pad,
            forced_first: if is_forced_by_bos { bos } else { token("forced_bos_token_id")? },
            forced_last: tokens("forced_eos_token_id")?,
            suppressed: tokens("suppress_tokens")?,
            suppressed_first: tokens("begin_suppress_tokens")?,
            bad_words,
            no_repeat: some("no_repeat_ngram_size", size("no_repeat_ngram_size", 0, MOST_TOKENS))?,
            min_length: some("min_length", size("min_length", 0, MOST_TOKENS))?,
            min_new: if has_min_new { Some(size("min_new_tokens", 0, MOST_TOKENS)?) } else { None },
            renormalizes: own.flag("renormalize_logits", false)?,
            max_tokens: max_tokens.max(1),
            prefix_counts,
            n_beams: size("num_beams", 1, MOST_BEAMS)?.max(1),
            length_penalty: own.number("length_penalty", 1.0)?,
            early_stopping,
            timestamps: None,
        })
    }
}

/// The settings of a list that are not followed, as they stand in a file; each has the values that change nothing.
pub(crate) fn unheeded(own: &Fields, settings: &[(&str, &[&str])]) -> Vec<String> {
    let told = settings.iter().filter_map(|(field, idle)| {
        let value = own.get(field)?.to_string();
        let shown = |value: String| if value.len() > MOST_SHOWN { "…".to_owned() } else { value };
        (!idle.contains(&value.as_str())).then(|| format!("{field}: {}", shown(value)))
    });
    told.collect()
}
