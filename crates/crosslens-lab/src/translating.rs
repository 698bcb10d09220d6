//! Writing with networks trained here: texts in, texts out, and the attention they were written with.

use std::collections::HashMap;
use std::path::Path;

use crosslens_analysis::{Token, replace_file};
use crosslens_nets::Threads;
use crosslens_nets::network::{Family, NetworkError, Stepper};
use crosslens_nets::search::{Hypothesis, Search, write};
use crosslens_nets::tasks::END_WORD;
use crosslens_nets::text::UNKNOWN_WORD;
use safetensors::tensor::{Dtype, TensorView};

use crate::{AttendError, TrainedModel};

/// How a network writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Writing {
    /// Hypotheses followed side by side; 1 takes the likeliest word at every step.
    pub beams: usize,
    /// Texts for each source, at most as many as beams.
    pub n_best: usize,
    /// A text's log probability is divided by its length to this power.
    pub length_penalty: f64,
    /// Most tokens of a text; 0 for twice the source's and ten more.
    pub most_tokens: usize,
    /// Whether a word the network has no name for is replaced by the source word most looked at.
    pub replace_unknown: bool,
    /// Threads; 0 for one per core. The texts do not depend on it.
    pub n_threads: usize,
}

impl Default for Writing {
    fn default() -> Self {
        Self { beams: 1, n_best: 1, length_penalty: 1.0, most_tokens: 0, replace_unknown: false, n_threads: 0 }
    }
}

/// Why a network cannot write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A text that cannot be read.
    #[error("text {number}: {source}")]
    Text {
        /// From 1.
        number: usize,
        /// The reason.
        source: AttendError,
    },
    /// Nothing says where a text ends.
    #[error("this network's sentences are all of one length: it has no word that ends a text")]
    NoEnd,
    /// Words cannot be replaced by what is looked at where nothing is.
    #[error("unknown words are replaced by what attention looks at, and this network has none")]
    NoAttention,
    /// A text longer than the positions that the network has learned.
    #[error(transparent)]
    Length(#[from] NetworkError),
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}

/// A text that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Its tokens, the end among them where it was reached.
    pub tokens: Vec<String>,
    /// The source's tokens.
    pub source: Vec<String>,
    /// Natural logarithm of its probability.
    pub log_probability: f64,
    /// What it was rated by.
    pub score: f64,
    /// `[target step, head, source step]`, the heads of a Transformer layer by layer; empty without attention.
    pub attention: Vec<f32>,
    /// Heads of all layers.
    pub n_heads: usize,
}

impl Written {
    /// The weights with which a token was written, averaged over heads.
    pub fn mean_attention(&self, step: usize) -> Vec<f32> {
        let n = self.source.len();
        if self.n_heads == 0 {
            return Vec::new();
        }
        let rows = &self.attention[step * self.n_heads * n..][..self.n_heads * n];
        (0..n).map(|key| rows.iter().skip(key).step_by(n).sum::<f32>() / self.n_heads as f32).collect()
    }
}

/// Texts encoded and written at a time, so that memory does not grow with their number.
const BATCH: usize = 1024;

impl TrainedModel {
    /// Writes for each text what the network makes of it, the best first; `done` is told how many of all are written.
    pub fn translate(&self, texts: &[String], how: &Writing, done: &mut dyn FnMut(usize)) -> Result<Vec<Vec<Written>>, WriteError> {
        let end = self.task.target_vocabulary().token(END_WORD).ok_or(WriteError::NoEnd)?;
        if how.replace_unknown && self.network.config().family == Family::Ved {
            return Err(WriteError::NoAttention);
        }
        let sources: Vec<(Vec<Token>, Vec<String>)> = texts
            .iter()
            .enumerate()
            .map(|(number, text)| self.read_source(text).map_err(|source| WriteError::Text { number: number + 1, source }))
            .collect::<Result<_, _>>()?;
        let mut search = Search { beams: how.beams.max(1), n_best: how.n_best, length_penalty: how.length_penalty, ..Search::greedy(end) };
        if how.most_tokens > 0 {
            (search.steps, search.steps_per_source) = (how.most_tokens, 0);
        }
        let longest = sources.iter().map(|(tokens, _)| tokens.len()).max().unwrap_or(1);
        self.network.check_lengths(longest, 1)?;
        let threads = Threads::new(how.n_threads)?;
        let stepper = Stepper::new(&self.network, &self.weights, longest.max(search.most_tokens(longest)), &threads);
        let mut all = Vec::with_capacity(texts.len());
        for batch in sources.chunks(BATCH) {
            let tokens: Vec<Vec<Token>> = batch.iter().map(|(tokens, _)| tokens.clone()).collect();
            let written = write(&stepper, self.network.start_token(), &tokens, &search, &threads);
            for ((_, pieces), hypotheses) in batch.iter().zip(written) {
                all.push(hypotheses.into_iter().map(|hypothesis| self.written(pieces, hypothesis, how)).collect());
            }
            done(all.len());
        }
        Ok(all)
    }

    fn written(&self, source: &[String], hypothesis: Hypothesis<f32>, how: &Writing) -> Written {
        let words = self.task.target_vocabulary();
        let tokens: Vec<String> = hypothesis.tokens.iter().map(|&token| words.word(token).unwrap_or(UNKNOWN_WORD).to_owned()).collect();
        let n_heads = hypothesis.attention.len() / (tokens.len() * source.len()).max(1);
        let mut written = Written {
            text: String::new(),
            source: source.to_vec(),
            log_probability: hypothesis.log_probability(),
            score: hypothesis.score,
            attention: hypothesis.attention,
            n_heads,
            tokens,
        };
        if how.replace_unknown {
            for step in 0..written.tokens.len() {
                if written.tokens[step] == UNKNOWN_WORD {
                    let row = written.mean_attention(step);
                    // The end is no word to take over.
                    let best = (0..row.len().saturating_sub(1)).max_by(|&a, &b| row[a].total_cmp(&row[b]));
                    if let Some(best) = best {
                        written.tokens[step] = source[best].clone();
                    }
                }
            }
        }
        let kept = written.tokens.iter().map(String::as_str).take_while(|&token| token != END_WORD);
        written.text = match self.task.text() {
            Some(text) => text.codec.join(kept),
            None => kept.collect::<Vec<_>>().join(" "),
        };
        written
    }
}

/// Writes the attention of texts into a safetensors file: `cross_attentions.{number}` of shape `[head, target, source]` for each text that
/// has any, its tokens as JSON in the metadata, `tokens.{number}` with `source` and `target`.
pub fn save_attention(path: &Path, texts: &[Written]) -> std::io::Result<()> {
    let mut facts = HashMap::new();
    let mut arrays = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let tokens = serde_json::json!({ "source": text.source, "target": text.tokens });
        facts.insert(format!("tokens.{number}"), tokens.to_string());
        let (n_target, n_source) = (text.tokens.len(), text.source.len());
        if text.n_heads == 0 {
            continue;
        }
        let mut bytes = Vec::with_capacity(4 * text.attention.len());
        for head in 0..text.n_heads {
            for step in 0..n_target {
                let row = &text.attention[(step * text.n_heads + head) * n_source..][..n_source];
                bytes.extend(row.iter().flat_map(|weight| weight.to_le_bytes()));
            }
        }
        arrays.push((format!("cross_attentions.{number}"), vec![text.n_heads, n_target, n_source], bytes));
    }
    let views = arrays.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("as many bytes as the shape says");
        (name.as_str(), view)
    });
    let bytes = safetensors::serialize(views, Some(facts)).map_err(std::io::Error::other)?;
    replace_file(path, |file| file.write_all(&bytes))
}
