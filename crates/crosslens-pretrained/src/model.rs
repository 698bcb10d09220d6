//! A pretrained encoder-decoder: opened from a folder, run on tokens.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crosslens_analysis::{Signal, Token};

use crate::families::{self, Family};
use crate::fields::Fields;
use crate::generation::Generation;
use crate::layers::{Head, Need, Pace, Positions, Spans, Table, Unwatched, Watch};
use crate::senses::{Grid, Source};
use crate::stack::{Memory, Pass, Reads, Stack};
use crate::weights::Weights;
use crate::{Device, PretrainedError};

/// Most tokens of a text where no table of positions bounds them, as in T5: attention takes their square.
const MOST_TOKENS: usize = 1 << 13;

/// From what the decoder ends in to logits.
pub(crate) struct Readout {
    pub(crate) table: Arc<Table>,
    pub(crate) bias: Option<Vec<f32>>,
    pub(crate) scale: f32,
    /// Packed when it is first needed: a recording of attention never does.
    pub(crate) head: OnceLock<Head>,
}

/// A model with its weights.
///
/// On the CPU a sentence gives the same numbers, bit for bit, whatever other sentences it is run with and on however many threads.
pub struct Model {
    pub(crate) folder: PathBuf,
    pub(crate) family: Family,
    pub(crate) encoder: Stack,
    pub(crate) decoder: Stack,
    pub(crate) readout: Readout,
    /// How it writes.
    pub(crate) generation: Generation,
    /// Kept to be read again: for the maps of single heads, or for an untrained model of the same shape.
    pub(crate) weights: Weights,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Model").field("folder", &self.folder).field("family", &self.family.name()).finish_non_exhaustive()
    }
}

/// Sentences side by side, with what the encoder made of their sources.
pub(crate) struct Encoded {
    pub(crate) spans: Spans,
    pub(crate) states: Vec<f32>,
}

impl Model {
    /// Opens a Hugging Face folder: `config.json` and the weights beside it.
    pub fn open(folder: &Path) -> Result<Self, PretrainedError> {
        Self::open_on(folder, &Device::default())
    }

    /// The same, the products of its weights made on a device. There a sentence's numbers may depend on its batch in their last bits.
    pub fn open_on(folder: &Path, device: &Device) -> Result<Self, PretrainedError> {
        let config = read_config(folder)?;
        let family = Family::of(&config)?;
        let weights = Weights::open(folder, device)?;
        families::build(folder, family, &config, weights)
    }

    /// The same model with weights that nobody trained.
    pub fn untrained(&self, seed: u64) -> Result<Self, PretrainedError> {
        let model = families::build(&self.folder, self.family, &read_config(&self.folder)?, self.weights.drawn(seed))?;
        Ok(Self { generation: self.generation.clone(), ..model })
    }

    /// Where it was opened.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What kind of model it is, such as `marian`.
    pub fn family(&self) -> &'static str {
        self.family.name()
    }

    /// How it writes, by its own files.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Dimensions of its decoder's states.
    pub fn d_model(&self) -> usize {
        self.decoder.d()
    }

    /// Dimensions of its encoder's states.
    pub fn d_source(&self) -> usize {
        self.encoder.d()
    }

    /// Whether it reads sounds or pictures rather than tokens.
    pub fn reads_signals(&self) -> bool {
        matches!(self.encoder.reads, Reads::Signal(_))
    }

    /// Where the steps of its encoder lie in a picture; nothing where it reads no pictures.
    pub fn grid(&self) -> Option<Grid> {
        match &self.encoder.reads {
            Reads::Signal(sense) => sense.grid(),
            Reads::Words { .. } => None,
        }
    }

    /// How many tokens it reads; 0 where it reads signals.
    pub fn n_source_tokens(&self) -> usize {
        self.encoder.n_words()
    }

    /// The vectors `[step, d]` that its encoder makes of a signal before positions are added, and `d`: what codes of its steps are made
    /// from.
    pub fn sensed(&self, signal: &Signal) -> Result<(Vec<f32>, usize), PretrainedError> {
        self.n_source_steps(signal)?;
        match &self.encoder.reads {
            Reads::Signal(sense) => Ok((sense.rows(signal.values()), sense.d())),
            Reads::Words { .. } => Err(PretrainedError::NotASignal { model: self.folder.clone() }),
        }
    }

    /// How many states the encoder makes of a source; fails unless it can be read.
    pub fn n_source_steps<'s>(&self, source: impl Into<Source<'s>>) -> Result<usize, PretrainedError> {
        let model = || self.folder.clone();
        match (&self.encoder.reads, source.into()) {
            (Reads::Words { .. }, Source::Tokens(tokens)) => check("source", tokens, &self.encoder).map(|()| tokens.len()),
            (Reads::Words { .. }, Source::Signal(_)) => Err(PretrainedError::NotASignal { model: model() }),
            (Reads::Signal(sense), Source::Tokens(_)) => Err(PretrainedError::NotTokens { model: model(), expected: sense.expects() }),
            (Reads::Signal(sense), Source::Signal(signal)) => {
                let found = signal.values().len();
                let wrong = || PretrainedError::WrongSignal { model: model(), found, expected: sense.expects() };
                if !signal.values().iter().all(|value| value.is_finite()) {
                    return Err(PretrainedError::BrokenSignal { model: model() });
                }
                let fits = |n: &usize| self.encoder.positions.as_ref().is_none_or(|positions| *n <= positions.len());
                sense.n_steps(found).filter(fits).ok_or_else(wrong)
            }
        }
    }

    /// How many tokens it writes.
    pub fn n_target_tokens(&self) -> usize {
        self.readout.table.rows().min(self.decoder.n_words())
    }

    /// Fails unless a sentence can be read.
    pub fn check_source(&self, tokens: &[Token]) -> Result<(), PretrainedError> {
        self.n_source_steps(tokens).map(drop)
    }

    /// Fails unless a sentence can be fed to the decoder.
    pub fn check_fed(&self, tokens: &[Token]) -> Result<(), PretrainedError> {
        check("target", tokens, &self.decoder)
    }

    /// Which rows belong to which source. The sources are checked.
    pub(crate) fn source_spans(&self, sources: &[Source<'_>]) -> Spans {
        let n_steps = |source: &Source<'_>| match (&self.encoder.reads, source) {
            (Reads::Signal(sense), Source::Signal(signal)) => sense.n_steps(signal.values().len()).unwrap_or(0),
            (_, Source::Tokens(tokens)) => tokens.len(),
            _ => 0,
        };
        Spans::of(sources.iter().map(n_steps))
    }

    /// Runs the encoder. The sources are checked.
    pub(crate) fn encode(&self, sources: &[Source<'_>], watch: &mut dyn Watch) -> Encoded {
        let spans = self.source_spans(sources);
        let mut states = self.encoder.embed(sources.iter().copied(), 0);
        self.encoder.run(&mut states, &spans, None, Pass::of_sentences(0..self.encoder.layers.len()), watch);
        self.encoder.finish(Pace::Sentences, &mut states);
        Encoded { spans, states }
    }

    /// Runs the decoder on what it is fed; returns the states `[rows, d]` that the readout reads, or nothing of use where weights are all
    /// that is needed.
    pub(crate) fn decode(&self, encoded: &Encoded, fed: &[&[Token]], pace: Pace, need: Need, watch: &mut dyn Watch) -> (Spans, Vec<f32>) {
        let spans = Spans::of(fed.iter().map(|fed| fed.len()));
        let mut states = self.decoder.embed(fed.iter().map(|&fed| fed.into()), 0);
        let memory = Memory { states: &encoded.states, spans: &encoded.spans };
        self.decoder.run(&mut states, &spans, Some(memory), Pass { layers: 0..self.decoder.layers.len(), need, pace }, watch);
        if need == Need::Output {
            self.decoder.finish(pace, &mut states);
        }
        (spans, states)
    }

    /// The logits `[step, words]` after each token that the decoder is fed.
    pub fn logits_of<'s>(&self, source: impl Into<Source<'s>>, fed: &[Token]) -> Result<Vec<f32>, PretrainedError> {
        let source = source.into();
        self.n_source_steps(source)?;
        self.check_fed(fed)?;
        let encoded = self.encode(&[source], &mut Unwatched);
        Ok(self.logits(&self.decode(&encoded, &[fed], Pace::Sentences, Need::Output, &mut Unwatched).1, Pace::Sentences))
    }

    /// Logits `[rows, words]` from the states the readout reads.
    pub(crate) fn logits(&self, states: &[f32], pace: Pace) -> Vec<f32> {
        let Readout { table, bias, scale, head } = &self.readout;
        head.get_or_init(|| Head::of(table, bias.clone(), *scale, &self.weights.place)).apply(states, pace)
    }
}

pub(crate) fn read_config(folder: &Path) -> Result<Fields, PretrainedError> {
    let path = folder.join("config.json");
    if !path.exists() {
        let what = "holds no model of Hugging Face's: there is no config.json in it";
        return Err(PretrainedError::NotAModel { path: folder.to_owned(), what });
    }
    Fields::read(&path)
}

fn check(side: &'static str, tokens: &[Token], stack: &Stack) -> Result<(), PretrainedError> {
    if tokens.is_empty() {
        return Err(PretrainedError::Empty { side });
    }
    let count = stack.n_words();
    if let Some(&token) = tokens.iter().find(|&&token| token as usize >= count) {
        return Err(PretrainedError::UnknownToken { side, token, count });
    }
    let most = stack.positions.as_ref().map_or(MOST_TOKENS, Positions::len);
    if tokens.len() > most {
        return Err(PretrainedError::TooLong { side, found: tokens.len(), most });
    }
    Ok(())
}
