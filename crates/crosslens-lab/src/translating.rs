//! Writing with networks trained here: texts in, texts out, and the attention they were written with.

use std::collections::HashMap;
use std::path::Path;

use crosslens_analysis::{Token, replace_file};
use crosslens_nets::Threads;
use crosslens_nets::network::{Family, NetworkConfig, NetworkError, Stepper};
use crosslens_nets::search::{Hypothesis, Keep, Search, write};
use crosslens_nets::tasks::END_WORD;
use crosslens_nets::text::{UNKNOWN_WORD, Units};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

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
    /// Whether a word the network has no name for is replaced by the source word most looked at, the whole of it where texts are cut into
    /// pieces.
    pub replace_unknown: bool,
    /// Whether the attention that texts are written with is kept.
    pub keep_attention: bool,
    /// Threads; 0 for one per core. The texts do not depend on it.
    pub n_threads: usize,
}

impl Default for Writing {
    fn default() -> Self {
        Self { beams: 1, n_best: 1, length_penalty: 1.0, most_tokens: 0, replace_unknown: false, keep_attention: false, n_threads: 0 }
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
    /// A text that is no sentence.
    #[error("text {number} has {n_tokens} tokens, at most {MAX_SOURCE_TOKENS} are taken")]
    TooLong {
        /// From 1.
        number: usize,
        /// Its tokens.
        n_tokens: usize,
    },
    /// A text whose attention alone may take too much memory.
    #[error("text {number} has {n_tokens} tokens: its attention may take {n_bytes} bytes, at most {MAX_ATTENTION_BYTES} are taken")]
    TooMuchAttention {
        /// From 1.
        number: usize,
        /// Its tokens.
        n_tokens: usize,
        /// See [`TrainedModel::attention_bytes`].
        n_bytes: usize,
    },
    /// Words cannot be replaced by what is looked at where nothing is.
    #[error("unknown words are replaced by what attention looks at, and this network has none")]
    NoAttention,
    /// A text longer than the positions that the network has learned.
    #[error("text {number}: {source}")]
    Length {
        /// From 1.
        number: usize,
        /// The reason.
        source: NetworkError,
    },
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
}

impl WriteError {
    /// Which of the texts it is about, from 0, and the reason without its number; none where it is about all of them.
    pub fn about_text(&self) -> Option<(usize, String)> {
        match self {
            Self::Text { number, source } => Some((number - 1, source.to_string())),
            Self::Length { number, source } => Some((number - 1, source.to_string())),
            Self::TooLong { number, n_tokens } => {
                Some((number - 1, format!("it has {n_tokens} tokens, at most {MAX_SOURCE_TOKENS} are taken")))
            }
            Self::TooMuchAttention { number, n_tokens, n_bytes } => {
                let reason =
                    format!("it has {n_tokens} tokens: its attention may take {n_bytes} bytes, at most {MAX_ATTENTION_BYTES} are taken");
                Some((number - 1, reason))
            }
            _ => None,
        }
    }
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
    /// `[target step, head, source step]`, the heads of a Transformer layer by layer; empty without attention, or where it is not kept.
    pub attention: Vec<f32>,
    /// Heads of all layers whose attention is kept.
    pub n_heads: usize,
}

/// A text that is to be written from.
struct Source {
    tokens: Vec<Token>,
    words: Vec<String>,
    /// What each token is copied as; empty where none is.
    copied: Vec<String>,
}

/// Texts that each thread encodes and writes before `done` is told, so that memory does not grow with their number and who wants to stop
/// does not wait for long. As many as a search takes at a time: fewer would read the weights more often.
const BATCH_OF_THREAD: usize = 64;
/// Most tokens of a text, the end among them: several times the longest sentence that can be trained on.
pub const MAX_SOURCE_TOKENS: usize = 4096;
/// Most that the attention of a text may take while it is written.
pub const MAX_ATTENTION_BYTES: usize = 1 << 30;

impl Writing {
    fn search(&self, end: Token) -> Search {
        let mut search =
            Search { beams: self.beams.max(1), n_best: self.n_best, length_penalty: self.length_penalty, ..Search::greedy(end) };
        if self.most_tokens > 0 {
            (search.steps, search.steps_per_source) = (self.most_tokens, 0);
        }
        search.keep = match (self.keep_attention, self.replace_unknown) {
            (true, _) => Keep::Weights,
            (false, true) => Keep::Places,
            (false, false) => Keep::Nothing,
        };
        search
    }

    /// Most bytes of the attention of a text of so many tokens: of every beam that runs or has ended, as long as it may be, a row for each of
    /// its tokens. The best are put together while those are there, so that one beam counts as two.
    fn attention_bytes(&self, network: &NetworkConfig, n_tokens: usize) -> usize {
        if !self.keep_attention || network.family == Family::Ved {
            return 0;
        }
        let layers = network.transformer.map_or(1, |transformer| transformer.decoder_layers.unwrap_or(network.layers));
        let search = self.search(Token::MAX);
        let numbers = [network.heads, layers, n_tokens, search.most_tokens(n_tokens), 2 * search.beams];
        numbers.into_iter().fold(size_of::<f32>(), usize::saturating_mul)
    }
}

impl TrainedModel {
    /// Most bytes that the attention of a text takes while it is written; 0 if it is not kept, or the text cannot be read.
    pub fn attention_bytes(&self, text: &str, how: &Writing) -> usize {
        if !how.keep_attention {
            return 0;
        }
        self.read_source(text).map_or(0, |(tokens, _)| how.attention_bytes(self.network.config(), tokens.len()))
    }

    /// Writes for each text what the network makes of it, the best first; `done` is told how many of all are written.
    pub fn translate(&self, texts: &[String], how: &Writing, done: &mut dyn FnMut(usize)) -> Result<Vec<Vec<Written>>, WriteError> {
        let end = self.task.target_vocabulary().token(END_WORD).ok_or(WriteError::NoEnd)?;
        if how.replace_unknown && self.network.config().family == Family::Ved {
            return Err(WriteError::NoAttention);
        }
        let read = |(number, text): (usize, &String)| self.read_to_write(number + 1, text, how);
        let sources: Vec<Source> = texts.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let search = how.search(end);
        let longest = sources.iter().map(|source| source.tokens.len()).max().unwrap_or(1);
        let threads = Threads::new(how.n_threads)?;
        let stepper = Stepper::new(&self.network, &self.weights, longest.max(search.most_tokens(longest)), &threads);
        let mut all = Vec::with_capacity(texts.len());
        for batch in sources.chunks(BATCH_OF_THREAD * threads.count()) {
            let tokens: Vec<Vec<Token>> = batch.iter().map(|source| source.tokens.clone()).collect();
            let written = write(&stepper, self.network.start_token(), &tokens, &search, &threads);
            for (source, hypotheses) in batch.iter().zip(written) {
                all.push(hypotheses.into_iter().map(|hypothesis| self.written(source, hypothesis)).collect());
            }
            done(all.len());
        }
        Ok(all)
    }

    /// A text that is not too long, with what its tokens are copied as where that is asked for.
    fn read_to_write(&self, number: usize, text: &str, how: &Writing) -> Result<Source, WriteError> {
        let is_copied = how.replace_unknown;
        let (tokens, words) = self.read_source(text).map_err(|source| WriteError::Text { number, source })?;
        let n_tokens = tokens.len();
        if n_tokens > MAX_SOURCE_TOKENS {
            return Err(WriteError::TooLong { number, n_tokens });
        }
        let n_bytes = how.attention_bytes(self.network.config(), n_tokens);
        if n_bytes > MAX_ATTENTION_BYTES {
            return Err(WriteError::TooMuchAttention { number, n_tokens, n_bytes });
        }
        self.network.check_lengths(n_tokens, 1).map_err(|source| WriteError::Length { number, source })?;
        let copied = match self.task.text().filter(|_| is_copied) {
            Some(files) => files.codec.copied(text).map_err(|source| WriteError::Text { number, source: AttendError::Text(source) })?,
            None if is_copied => words.clone(),
            None => Vec::new(),
        };
        Ok(Source { tokens, words, copied })
    }

    fn written(&self, source: &Source, hypothesis: Hypothesis<f32>) -> Written {
        let Source { words: source, copied, .. } = source;
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
        let mut is_copy = vec![false; written.tokens.len()];
        if !copied.is_empty() {
            for ((token, is_copy), &place) in written.tokens.iter_mut().zip(&mut is_copy).zip(&hypothesis.looked_at) {
                // The end is no word to take over.
                if token == UNKNOWN_WORD && copied[place] != END_WORD {
                    token.clone_from(&copied[place]);
                    *is_copy = true;
                }
            }
        }
        // Unknown pieces one after another that look at one word are that word.
        let is_of_pieces = self.task.text().is_some_and(|text| text.codec.config().units != Units::Words);
        let repeats = |step: usize| {
            is_of_pieces && step > 0 && is_copy[step] && is_copy[step - 1] && written.tokens[step] == written.tokens[step - 1]
        };
        let steps = (0..written.tokens.len()).filter(|&step| !repeats(step));
        let kept: Vec<&str> = steps.map(|step| written.tokens[step].as_str()).take_while(|&token| token != END_WORD).collect();
        written.text = match self.task.text() {
            Some(text) => text.codec.join(kept),
            None => kept.join(" "),
        };
        written
    }
}

/// Readers of safetensors files take no longer header.
const MAX_HEADER_BYTES: usize = 100_000_000;

/// Writes the attention of texts into a safetensors file: `cross_attentions.{number}` of shape `[head, target, source]` for each text that
/// has any, its tokens as JSON in the metadata, `tokens.{number}` with `source` and `target`. Each text comes with its number. Nothing is
/// held twice but a row at a time.
pub fn save_attention(path: &Path, texts: &[(usize, Written)]) -> std::io::Result<()> {
    let mut facts = HashMap::new();
    let (mut tensors, mut n_bytes) = (Vec::new(), 0);
    for (number, text) in texts {
        let tokens = serde_json::json!({ "source": text.source, "target": text.tokens });
        facts.insert(format!("tokens.{number}"), tokens.to_string());
        if text.n_heads > 0 {
            let shape = vec![text.n_heads, text.tokens.len(), text.source.len()];
            let before = n_bytes;
            n_bytes += size_of::<f32>() * text.attention.len();
            let tensor = TensorInfo { dtype: Dtype::F32, shape, data_offsets: (before, n_bytes) };
            tensors.push((format!("cross_attentions.{number}"), tensor));
        }
    }
    let header = Metadata::new(Some(facts), tensors).map_err(std::io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
    if header.len() > MAX_HEADER_BYTES {
        return Err(std::io::Error::other(format!("its header would have {} bytes, at most {MAX_HEADER_BYTES} are read", header.len())));
    }
    replace_file(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        for (_, text) in texts {
            let n_source = text.source.len();
            for head in 0..text.n_heads {
                for step in 0..text.tokens.len() {
                    let row = &text.attention[(step * text.n_heads + head) * n_source..][..n_source];
                    let bytes: Vec<u8> = row.iter().flat_map(|weight| weight.to_le_bytes()).collect();
                    file.write_all(&bytes)?;
                }
            }
        }
        Ok(())
    })
}
