//! A model of speech with all it needs: tokenizer, ears, and what its files say about how it writes.

use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::timing::{Grouped, Grouping, Segment, group_pieces, timed_words};
use crosslens_analysis::{Signal, Token};
use crosslens_kernels::softmax;

use super::pieces::pieces;
use super::spoken::{Heard, Hears, Spoken, SpokenSegment};
use super::{AlignmentHeads, Passages, SpeechError, SpeechTokens, Task};
use crate::Device;
use crate::audio::{HOP, LogMel, Samples, WINDOW, Window};
use crate::decode::{Decoding, TakenIn};
use crate::generation::{EarlyStopping, Generation};
use crate::model::Model;
use crate::senses::Source;
use crate::text::TextTokenizer;

/// Written without spaces between words, as Whisper names them.
const WITHOUT_SPACES: [&str; 6] = ["zh", "ja", "th", "lo", "my", "yue"];

/// How to listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Such as `de`. Without, the model says which it hears in the first window.
    pub language: Option<String>,
    /// What to write.
    pub task: Task,
    /// Whether the model is to write no timestamps: for those that were trained without.
    pub without_timestamps: bool,
    /// Whether the times of words are wanted.
    pub words: bool,
    /// Hypotheses followed side by side; 0 for what the model's files say.
    pub n_beams: usize,
}

/// A model that writes down what it hears.
pub struct Speech {
    model: Arc<Model>,
    text: TextTokenizer,
    ears: LogMel,
    tokens: SpeechTokens,
    heads: AlignmentHeads,
}

impl Speech {
    /// Opens a folder with a Whisper: `config.json`, weights, tokenizer, and what it has of `generation_config.json` and
    /// `preprocessor_config.json`.
    pub fn open(folder: &Path) -> Result<Self, SpeechError> {
        Self::open_on(folder, &Device::default())
    }

    /// The same, the products of its weights made on a device.
    pub fn open_on(folder: &Path, device: &Device) -> Result<Self, SpeechError> {
        let model = Arc::new(Model::open_on(folder, device)?);
        if model.family() != "whisper" {
            return Err(SpeechError::NotSpeech { folder: folder.to_owned(), family: model.family() });
        }
        let text = TextTokenizer::open(folder)?;
        let ears = LogMel::read(folder)?;
        // A model of another number of mels or frames says here what it reads.
        model.n_source_steps(&Signal::new(vec![0.0; WINDOW / HOP * ears.n_mels()]))?;
        let tokens = SpeechTokens::of(&model, Some(&text))?;
        let heads = AlignmentHeads::of(&model)?;
        Ok(Self { model, text, ears, tokens, heads })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Its tokenizer.
    pub fn text(&self) -> &TextTokenizer {
        &self.text
    }

    /// Its special tokens.
    pub fn tokens(&self) -> &SpeechTokens {
        &self.tokens
    }

    /// Takes times from these heads, each a layer and a head, whatever the model's files name.
    pub fn align_by(&mut self, heads: &[(usize, usize)]) -> Result<(), SpeechError> {
        self.heads = AlignmentHeads::given(&self.model, heads)?;
        Ok(())
    }

    /// The heads that times are taken from.
    pub fn alignment_heads(&self) -> &AlignmentHeads {
        &self.heads
    }

    /// What the encoder reads of a window.
    pub fn signal(&self, window: Window<'_>) -> Signal {
        Signal::new(self.ears.of(window.samples))
    }

    /// Writes down a sound, window by window. `passages.next()` gives what was understood of the next.
    pub fn listen<S: Samples>(&self, samples: S, how: &Listening) -> Result<Passages<S, Listener<'_>>, SpeechError> {
        let language = how.language.as_deref().map(|asked| self.tokens.language(asked)).transpose()?;
        // Without times where the model has no tokens for them.
        let timestamps = self.tokens.timestamps().filter(|_| !how.without_timestamps);
        let (any, with_times) = (self.tokens.languages().next().map(|(name, _)| name), timestamps.is_some());
        self.tokens.prompt(language.as_deref().or(any), how.task, with_times)?;
        let own = self.model.generation().clone();
        let n_beams = if how.n_beams == 0 { own.n_beams } else { how.n_beams };
        let early_stopping = if n_beams == 1 { EarlyStopping::No } else { own.early_stopping };
        let rules = Generation { timestamps, n_beams, early_stopping, ..own };
        let decoding = Decoding { rules, n_best: 1, sampling: None, prefix: Vec::new() };
        let listener = Listener { speech: self, decoding, language, task: how.task, words: how.words, first: None };
        Ok(Passages::over(samples, listener, timestamps))
    }

    /// A segment as text, with the times of its words if attention gave any.
    pub fn segment(&self, spoken: &SpokenSegment, language: Option<&str>) -> Result<Segment, SpeechError> {
        let SpokenSegment { start, end, tokens, no_speech } = spoken;
        let ids: Vec<Token> = tokens.iter().map(|spoken| spoken.token).collect();
        let pieces = pieces(&self.text, &ids, self.tokens.end());
        let text: String = pieces.iter().flatten().map(String::as_str).collect();
        let timed: Vec<usize> = (0..tokens.len()).filter(|&place| tokens[place].secs.is_some()).collect();
        let mut words = Vec::new();
        if let Some(end) = timed.last().and_then(|&place| tokens[place].secs).map(|(_, to)| to) {
            let of_timed: Vec<Option<&str>> = timed.iter().map(|&place| pieces[place].as_deref()).collect();
            let log_probabilities: Vec<f32> = timed.iter().map(|&place| tokens[place].log_probability).collect();
            let starts: Vec<f64> = timed.iter().filter_map(|&place| tokens[place].secs).map(|(from, _)| from).collect();
            words = timed_words(&group_pieces(&of_timed, grouping(language)), &log_probabilities, &starts, end)?;
        }
        let confidence = spoken.mean_log_probability().exp().min(1.0);
        Ok(Segment { start: *start, end: *end, text: text.trim().to_owned(), confidence, no_speech: *no_speech, words })
    }
}

impl SpeechTokens {
    /// To which word each token of what was written belongs, and the words; special tokens and timestamps belong to none.
    pub fn words(&self, text: &TextTokenizer, tokens: &[Token], language: Option<&str>) -> Grouped {
        let pieces = pieces(text, tokens, self.end());
        group_pieces(&pieces.iter().map(Option::as_deref).collect::<Vec<_>>(), grouping(language))
    }
}

fn grouping(language: Option<&str>) -> Grouping {
    if language.is_some_and(|name| WITHOUT_SPACES.contains(&name)) { Grouping::Pieces } else { Grouping::Spaces }
}

impl Model {
    /// How likely each language is in a sound, the likeliest first; none of a model that knows English alone.
    pub fn detect_language(&self, signal: &Signal, tokens: &SpeechTokens) -> Result<Vec<(String, f64)>, SpeechError> {
        let taken_in = self.take_in(Source::Signal(signal))?;
        Ok(likeliest_languages(tokens, &taken_in.first(&Decoding::greedy(self))?))
    }
}

/// Softmax over the tokens of languages alone.
fn likeliest_languages(tokens: &SpeechTokens, first: &[f32]) -> Vec<(String, f64)> {
    let known: Vec<(&str, Token)> = tokens.languages().filter(|(_, token)| (*token as usize) < first.len()).collect();
    let mut weights: Vec<f64> = known.iter().map(|(_, token)| f64::from(first[*token as usize])).collect();
    if weights.is_empty() {
        return Vec::new();
    }
    softmax(&mut weights);
    let mut found: Vec<(String, f64)> = known.iter().zip(weights).map(|((name, _), weight)| ((*name).to_owned(), weight)).collect();
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found
}

/// A model at work on one sound.
pub struct Listener<'s> {
    speech: &'s Speech,
    decoding: Decoding,
    language: Option<String>,
    task: Task,
    words: bool,
    /// What was written for the first window.
    first: Option<Vec<Token>>,
}

impl Listener<'_> {
    /// The language: the one asked for, or the one heard in the first window.
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// What the decoder wrote for the first window, after its start token: the prompt, the text with its timestamps, the end; also where
    /// that was then taken for silence. Nothing before a window was heard.
    pub fn first_window(&self) -> Option<&[Token]> {
        self.first.as_deref()
    }

    /// Gives tokens of text the times at which attention says they were said.
    fn find_times(&self, heard: &mut Heard, taken_in: &TakenIn<'_>, n_real: usize) -> Result<(), SpeechError> {
        let Speech { model, tokens, heads, .. } = self.speech;
        let places: Vec<usize> = (0..heard.tokens.len()).filter(|&place| heard.tokens[place].token < tokens.end()).collect();
        if places.is_empty() {
            return Ok(());
        }
        let text: Vec<Token> = places.iter().map(|&place| heard.tokens[place].token).collect();
        let prompt = tokens.prompt(self.language(), self.task, false)?;
        let n_steps = n_real.div_ceil(2 * HOP);
        let times = heads.times(taken_in, model, (&prompt, &text), n_steps)?;
        for (place, span) in places.into_iter().zip(times.windows(2)) {
            heard.tokens[place].secs = Some((span[0], span[1]));
        }
        Ok(())
    }
}

impl Hears for Listener<'_> {
    fn hear(&mut self, window: Window<'_>) -> Result<Heard, SpeechError> {
        let Speech { model, tokens, .. } = self.speech;
        let n_real = window.n_real;
        let signal = self.speech.signal(window);
        let taken_in = model.take_in(Source::Signal(&signal))?;
        let first = taken_in.first(&self.decoding)?;
        if self.language.is_none() {
            self.language = likeliest_languages(tokens, &first).into_iter().next().map(|(name, _)| name);
        }
        let no_speech = tokens.no_speech().and_then(|token| first.get(token as usize)).map(|value| f64::from(*value).exp());
        let prompt = tokens.prompt(self.language(), self.task, self.decoding.rules.timestamps.is_some())?;
        self.decoding.prefix = prompt[1..].to_vec();
        let Some(written) = taken_in.write(&self.decoding)?.into_iter().next() else { return Ok(Heard { tokens: Vec::new(), no_speech }) };
        self.first.get_or_insert_with(|| written.tokens.clone());
        let of_text = written.tokens[self.decoding.prefix.len()..].iter().zip(written.log_probabilities);
        let ends = &self.decoding.rules.ends;
        let spoken = of_text.map(|(&token, log_probability)| Spoken { token, log_probability, secs: None });
        let mut heard = Heard { tokens: spoken.take_while(|spoken| !ends.contains(&spoken.token)).collect(), no_speech };
        if self.words {
            self.find_times(&mut heard, &taken_in, n_real)?;
        }
        Ok(heard)
    }
}
