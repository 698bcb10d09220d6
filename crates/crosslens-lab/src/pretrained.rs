//! Pretrained models by path: text in, tokens and attention out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::timing::Grouped;
use crosslens_analysis::{Description, Pair, RecordError, Recordable, Signal, SiteKind, Token};
use crosslens_pretrained::speech::{AlignmentHeads, SpeechError, SpeechTokens, Task};
use crosslens_pretrained::text::{Encoded, Languages, TextTokenizer, TokenizerError};
use crosslens_pretrained::{Decoding, Device, Model, PretrainedError, Source, Subject, TokenNames, Wanted, Written};

use crate::signals::{DEFAULT_CODES, ReadFile, Senses, SignalError};

/// Why a pretrained model cannot be opened or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PretrainedModelError {
    /// Its weights or its configuration.
    #[error(transparent)]
    Model(#[from] PretrainedError),
    /// Its tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A sound or a picture.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// Its tokens for speech.
    #[error(transparent)]
    Speech(#[from] Box<SpeechError>),
    /// A text for a model that reads none.
    #[error("the model `{path}` reads no text; give it the path of a {wanted}")]
    NoText {
        /// The model.
        path: PathBuf,
        /// `sound` or `picture`.
        wanted: &'static str,
    },
    /// A multilingual model, and nothing says which language is meant.
    #[error("`{path}` tells {} languages apart, and nothing says which the {side} is in", .known.len())]
    NoLanguage {
        /// The model.
        path: PathBuf,
        /// Source or target.
        side: &'static str,
        /// The languages it knows.
        known: Vec<String>,
    },
    /// A language that the model does not know.
    #[error("`{path}` has no language `{code}` for the {side} among its {}", .known.len())]
    UnknownLanguage {
        /// The model.
        path: PathBuf,
        /// Source or target.
        side: &'static str,
        /// What was asked for.
        code: String,
        /// The languages it knows.
        known: Vec<String>,
    },
    /// A device for a model that knows the CPU alone.
    #[error("`{path}` computes on the CPU alone: devices are for models of Hugging Face's")]
    NoDevice {
        /// The model.
        path: PathBuf,
    },
    /// A language for a model that tells none apart.
    #[error("`{path}` tells no languages apart, so none can be chosen")]
    NoLanguages {
        /// The model.
        path: PathBuf,
    },
}

/// How a model is opened, where it can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// For models of many languages.
    pub languages: LanguageChoice,
    /// For models of sounds or pictures: codes for their steps, at most.
    pub n_codes: usize,
    /// For models of speech: heads that the times of words are taken from, each a layer and a head; empty for those that the model's
    /// files name.
    pub heads: Vec<(usize, usize)>,
    /// Where the products of its weights are made.
    pub device: Device,
}

impl Default for Choices {
    fn default() -> Self {
        Self { languages: LanguageChoice::default(), n_codes: DEFAULT_CODES, heads: Vec::new(), device: Device::default() }
    }
}

impl Choices {
    /// Fails if a language or a device is chosen for a model that has none to choose from.
    pub(crate) fn refuse(&self, path: &Path) -> Result<(), PretrainedModelError> {
        if self.device != Device::default() {
            return Err(PretrainedModelError::NoDevice { path: path.to_owned() });
        }
        self.languages.refuse(path)
    }
}

impl From<LanguageChoice> for Choices {
    fn from(languages: LanguageChoice) -> Self {
        Self { languages, ..Self::default() }
    }
}

/// In which languages a multilingual model reads and writes; what is not said here its files must say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanguageChoice {
    /// Of sources, such as `en_XX` (mBART), `en` (M2M100) or `eng_Latn` (NLLB).
    pub source: Option<String>,
    /// Of targets.
    pub target: Option<String>,
}

impl LanguageChoice {
    /// Fails if a language is chosen for a model that tells none apart.
    fn refuse(&self, path: &Path) -> Result<(), PretrainedModelError> {
        if *self == Self::default() { Ok(()) } else { Err(PretrainedModelError::NoLanguages { path: path.to_owned() }) }
    }

    /// Lets a model and its tokenizer speak these languages.
    fn apply(&self, path: &Path, model: &mut Model, text: &mut TextTokenizer) -> Result<(), PretrainedModelError> {
        let Some(languages) = text.languages() else { return self.refuse(path) };
        let known = || languages.codes().map(str::to_owned).collect::<Vec<_>>();
        let find = |side: &'static str, asked: Option<&str>| {
            let code = asked.ok_or_else(|| PretrainedModelError::NoLanguage { path: path.to_owned(), side, known: known() })?;
            match languages.token(code) {
                Some(_) => Ok(code.to_owned()),
                None => Err(PretrainedModelError::UnknownLanguage { path: path.to_owned(), side, code: code.to_owned(), known: known() }),
            }
        };
        // Models of one target language force it as the first token, or start from it.
        let rules = model.generation();
        let written = rules.forced_first.into_iter().chain([rules.start]).find_map(|token| languages.code(token));
        let source = find("source", self.source.as_deref().or(languages.usual_source()))?;
        let target = find("target", self.target.as_deref().or(languages.usual_target()).or(written))?;
        text.choose_languages(&source, &target)?;
        if let Some(opening) = text.languages().and_then(Languages::opening) {
            model.open_with(opening)?;
        }
        Ok(())
    }
}

/// A pretrained model with its tokenizer.
#[derive(Debug)]
pub struct PretrainedModel {
    text: TextTokenizer,
    subject: Subject,
    /// Where it reads sounds or pictures.
    senses: Option<Senses>,
    /// Where it writes down speech: how it is told to.
    speech: Option<SpeechTokens>,
    /// Where it writes down speech: layer and head of those that follow the sound; none where its files name some that it does not have.
    follows: Option<AlignmentHeads>,
}

/// A source as a model reads it: tokens, or codes and the signal they stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReadSource {
    pub(crate) tokens: Vec<Token>,
    pub(crate) signal: Option<Signal>,
    /// What is wrong with its file, in words for its user.
    pub(crate) warning: Option<String>,
}

impl ReadSource {
    /// A text.
    pub(crate) fn text(tokens: Vec<Token>) -> Self {
        Self { tokens, signal: None, warning: None }
    }

    pub(crate) fn paired(self, target: Vec<Token>) -> Pair {
        Pair { source: self.tokens, target, signal: self.signal }
    }

    fn as_source(&self) -> Source<'_> {
        self.signal.as_ref().map_or(Source::Tokens(&self.tokens), Source::Signal)
    }
}

/// What a model wrote for one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// As text.
    pub text: String,
    /// As tokens, the end token included.
    pub tokens: Vec<Token>,
    /// Log probability, by length where it was searched with beams.
    pub score: f64,
}

impl PretrainedModel {
    /// Whether a path is a folder with a model of Hugging Face's.
    pub fn is_at(path: &Path) -> bool {
        path.join("config.json").is_file()
    }

    /// Opens a folder. Attention of these kinds can be explained. A multilingual model must say itself which languages are meant.
    pub fn open(path: &Path, kinds: &[SiteKind], n_threads: usize) -> Result<Self, PretrainedModelError> {
        Self::open_with(path, &Choices::default(), kinds, n_threads)
    }

    /// The same, as somebody chose.
    pub fn open_with(path: &Path, choices: &Choices, kinds: &[SiteKind], n_threads: usize) -> Result<Self, PretrainedModelError> {
        let (mut model, mut text) = (Model::open_on(path, &choices.device)?, TextTokenizer::open(path)?);
        choices.languages.apply(path, &mut model, &mut text)?;
        let senses = Senses::of(&model, choices.n_codes)?;
        let speech = senses.as_ref().filter(|senses| senses.hears()).map(|_| SpeechTokens::of(&model, Some(&text))).transpose();
        let speech = speech.map_err(Box::new)?;
        let follows = match &choices.heads[..] {
            _ if speech.is_none() => None,
            [] => AlignmentHeads::of(&model).ok(),
            given => Some(AlignmentHeads::given(&model, given).map_err(Box::new)?),
        };
        let name = |token: Option<&str>| token.unwrap_or_default().to_owned();
        // A tokenizer may claim any number of tokens; those that the model does not know are never named.
        let n_source = text.source_size().min(model.n_source_tokens());
        let n_target = text.target_size().min(model.n_target_tokens());
        let words = || (0..n_source).map(|token| name(text.source_token(token as Token))).collect();
        let names = TokenNames {
            source: senses.as_ref().map_or_else(words, Senses::code_names),
            target: (0..n_target).map(|token| name(text.target_token(token as Token))).collect(),
        };
        let wanted = Wanted { kinds: kinds.to_vec(), states: true, answers: true };
        Ok(Self { text, subject: Subject::new(Arc::new(model), names, wanted, n_threads)?, senses, speech, follows })
    }

    /// The same, only attention from the decoder to the encoder looked at.
    pub fn crossing(self) -> Result<Self, PretrainedModelError> {
        Ok(Self { subject: self.subject.attending(&[SiteKind::Cross])?, ..self })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        self.subject.model()
    }

    /// The model as it is recorded.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The model as it is recorded, on so many threads; 0 means one per core.
    pub fn subject_on(&self, n_threads: usize) -> Result<Subject, PretrainedModelError> {
        Ok(self.subject.on_threads(n_threads)?)
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        self.subject.description()
    }

    /// A source as the encoder reads it, checked.
    pub fn source(&self, text: &str) -> Result<Encoded, PretrainedModelError> {
        refuse_blank("source", text)?;
        if let Some(senses) = &self.senses {
            let wanted = if senses.hears() { "sound" } else { "picture" };
            return Err(PretrainedModelError::NoText { path: self.model().folder().to_owned(), wanted });
        }
        let encoded = self.text.encode_source(text)?;
        self.model().check_source(&encoded.ids)?;
        Ok(encoded)
    }

    /// A target as the decoder should write it, checked.
    pub fn target(&self, text: &str) -> Result<Encoded, PretrainedModelError> {
        refuse_blank("target", text)?;
        // A transcript begins with a space.
        let spaced = self.speech.as_ref().map(|_| format!(" {}", text.trim_start()));
        let mut encoded = self.text.encode_target(spaced.as_deref().unwrap_or(text))?;
        if self.model().family() == "blip" && encoded.words.first() == Some(&None) {
            // Where BERT's tokenizer puts `[CLS]`, BLIP has the token its decoder starts from.
            encoded.remove_first();
        }
        self.model().check_fed(&encoded.ids)?;
        Ok(encoded)
    }

    /// To which word each token that it wrote belongs; nothing for special tokens, nothing at all where tokens do not mark spaces.
    pub fn target_words(&self, tokens: &[Token]) -> Option<Vec<Option<usize>>> {
        self.text.target_words(tokens)
    }

    /// The heads that say when words were said.
    pub(crate) fn follows(&self) -> Option<&AlignmentHeads> {
        self.follows.as_ref()
    }

    /// Whether a token is text, and neither a timestamp nor a word to a model of speech.
    pub(crate) fn is_text(&self, token: Token) -> bool {
        self.speech.as_ref().is_none_or(|speech| token < speech.end())
    }

    /// To which word each token that a model of speech wrote belongs, and the words, in the language that it was told.
    pub(crate) fn spoken_words(&self, written: &[Token]) -> Option<Grouped> {
        let speech = self.speech.as_ref()?;
        let language = speech.languages().find(|(_, token)| written.contains(token)).map(|(name, _)| name);
        Some(speech.words(&self.text, written, language))
    }

    /// The text of what it wrote.
    pub fn decode(&self, tokens: &[Token]) -> Result<String, PretrainedModelError> {
        Ok(self.text.decode(tokens)?)
    }

    /// What it makes of a text, the best first.
    pub fn translate(&self, text: &str, how: &Decoding) -> Result<Vec<Translation>, PretrainedModelError> {
        let source = self.source(text)?;
        let translation = |written: Written| {
            let Written { tokens, score, .. } = written;
            Ok(Translation { text: self.text.decode(&tokens)?, tokens, score })
        };
        self.model().write(&source.ids, how)?.into_iter().map(translation).collect()
    }

    /// What it makes of each text, on the threads of `subject`, which is this model on them; the best first.
    pub fn translate_all(&self, texts: &[&str], how: &Decoding, subject: &Subject) -> Vec<Result<Vec<Translation>, PretrainedModelError>> {
        let mut answers: Vec<_> = texts.iter().map(|&text| (text, None)).collect();
        subject.threads().for_each(&mut answers, |_, (text, answer)| *answer = Some(self.translate(text, how)));
        answers.into_iter().filter_map(|(_, answer)| answer).collect()
    }

    /// Where it reads files rather than text: how.
    pub(crate) fn senses(&self) -> Option<&Senses> {
        self.senses.as_ref()
    }

    /// Sounds or pictures as it reads them, with the codes of their steps. The first that are read decide what the codes are.
    pub(crate) fn read_files(&self, paths: &[PathBuf]) -> Result<Vec<ReadSource>, PretrainedModelError> {
        let Some(senses) = &self.senses else {
            return Err(PretrainedError::NotASignal { model: self.model().folder().to_owned() }.into());
        };
        let files = senses.read_all(paths)?;
        let codes = senses.codes(&self.subject, &files.iter().map(|file| &file.signal).collect::<Vec<_>>())?;
        let read = |(ReadFile { signal, warning }, tokens)| ReadSource { tokens, signal: Some(signal), warning };
        Ok(files.into_iter().zip(codes).map(read).collect())
    }

    /// What it writes for each source, the likeliest token each time, at most so many.
    pub(crate) fn write(&self, sources: &[ReadSource], most: usize, n_threads: usize) -> Result<Vec<Vec<Token>>, RecordError> {
        let refused = |error: PretrainedError| RecordError::Model(Box::new(error));
        let mut how = Decoding::greedy(self.model());
        how.rules.max_tokens = how.rules.max_tokens.min(most);
        if let Some(speech) = &self.speech {
            let written =
                sources.iter().filter_map(|source| source.signal.as_ref()).map(|signal| self.write_down(speech, signal, &mut how));
            return written.collect::<Result<_, SpeechError>>().map_err(|error| RecordError::Model(Box::new(error)));
        }
        let sources: Vec<Source<'_>> = sources.iter().map(ReadSource::as_source).collect();
        let written = self.model().write_all(&sources, &how, n_threads).map_err(refused)?;
        Ok(written.into_iter().map(|written| written.tokens).collect())
    }

    /// A target as the decoder should write it for this source: a model of speech is told the language it hears and its task first.
    pub(crate) fn prompted(&self, source: &ReadSource, target: Vec<Token>) -> Result<Vec<Token>, RecordError> {
        let (Some(speech), Some(signal)) = (&self.speech, &source.signal) else { return Ok(target) };
        let prompt = self.prompt(speech, signal).map_err(|error| RecordError::Model(Box::new(error)))?;
        let is_text = |token: &Token| *token < speech.end();
        Ok(prompt.into_iter().chain(target.into_iter().filter(is_text)).chain([speech.end()]).collect())
    }

    /// What a model of speech reads after the start token.
    fn prompt(&self, speech: &SpeechTokens, signal: &Signal) -> Result<Vec<Token>, SpeechError> {
        let language = self.model().detect_language(signal, speech)?.into_iter().next().map(|(language, _)| language);
        Ok(speech.prompt(language.as_deref(), Task::Transcribe, false)?.split_off(1))
    }

    /// What it hears, in the language it hears, without timestamps.
    fn write_down(&self, speech: &SpeechTokens, signal: &Signal, how: &mut Decoding) -> Result<Vec<Token>, SpeechError> {
        how.prefix = self.prompt(speech, signal)?;
        Ok(self.model().write(signal, how)?.into_iter().next().map(|written| written.tokens).unwrap_or_default())
    }
}

/// A tokenizer makes an end token of nothing, and a model a text of that.
fn refuse_blank(side: &'static str, text: &str) -> Result<(), PretrainedError> {
    if text.trim().is_empty() { Err(PretrainedError::Empty { side }) } else { Ok(()) }
}
