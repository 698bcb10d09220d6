//! Models and recordings by path.

use std::path::PathBuf;
use std::sync::Arc;

use crosslens_lab::analysis::explain::{Explained, Options, Phase, Progress};
use crosslens_lab::analysis::{Description, Existing, Fed, Pair, Recordable, Sums, Token};
use crosslens_lab::{
    Attention, Choices, Decoding, Device, DeviceError, ImportedModel, ImportedSentences, LanguageChoice, ONE_ALONE, Opened, RecordOptions,
    Sentences, Shard, TrainedModel, WriteError, Writing, explain_recording, fit_recording,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::components::ModelSums;
use crate::errors::Failure;
use crate::explanation::{Explanation, Under};
use crate::options;
use crate::watch::{detached, phase, watched};

/// Something that can be explained.
#[pyclass(module = "crosslens._native", frozen)]
pub(crate) struct Model {
    opened: Opened,
    path: PathBuf,
    description: Arc<Description>,
    /// To be asked for its trouble.
    device: Device,
}

/// Text, tokens and score of what was written.
type Written = (String, Vec<Token>, f64);

/// A source, with its target if that is known.
type Text = (String, Option<String>);

/// Which sentences: these texts, those of a file, or the first so many that the model has itself.
struct Chosen {
    texts: Option<Vec<Text>>,
    corpus: Option<PathBuf>,
    n_sentences: Option<u64>,
    seed: u64,
    /// Whether it was said if sentences are to be halved.
    is_halving_told: bool,
}

/// Fresh sentences of a run's task, unless told otherwise.
const FRESH: u64 = 1000;

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (path, self_attention, source_language=None, target_language=None, device=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        self_attention: bool,
        source_language: Option<String>,
        target_language: Option<String>,
        device: Option<String>,
    ) -> Result<Self, Failure> {
        detached(py, || {
            let languages = LanguageChoice { source: source_language, target: target_language };
            let has_languages = languages != LanguageChoice::default();
            let device: Device = match &device {
                Some(name) => name.parse().map_err(|error: DeviceError| Failure::open(error.to_string()))?,
                None => Device::default(),
            };
            let has_device = device != Device::default();
            let choices = Choices { device: device.clone(), ..Choices::from(languages) };
            let opened = if self_attention && ImportedModel::is_at(&path) {
                // At once with all heads: a device may have room for one model alone.
                Opened::Imported(Box::new(ImportedModel::open_with(&path, &choices, Attention::All)?))
            } else {
                Opened::open_with(&path, &choices)?
            };
            let opened = match opened {
                Opened::Model(_) | Opened::Recording(_) if has_device => {
                    let path = path.display();
                    return Err(Failure::open(format!("`{path}` computes on the CPU alone: device is for models of Hugging Face's")));
                }
                Opened::Model(_) | Opened::Recording(_) if has_languages => {
                    return Err(Failure::open(format!(
                        "`{}` has no languages to choose from: source_language and target_language are for multilingual models, such as \
                         mBART, M2M100 or NLLB",
                        path.display()
                    )));
                }
                opened @ Opened::Imported(_) => opened,
                opened if !self_attention => opened,
                Opened::Model(mut model) => {
                    model.attention = Attention::All;
                    Opened::Model(model)
                }
                Opened::Recording(_) => {
                    let path = path.display();
                    return Err(Failure::open(format!(
                        "`{path}` is a recording: it has the heads that were recorded, self_attention=True adds none"
                    )));
                }
            };
            let description = Arc::new(match &opened {
                Opened::Model(model) => model.subject(1)?.description().clone(),
                Opened::Imported(model) => model.description().clone(),
                Opened::Recording(recording) => recording.description().clone(),
            });
            Ok(Self { opened, path, description, device })
        })?
    }

    /// Why products were made on the CPU though another device was asked for.
    #[getter]
    fn device_trouble(&self) -> Option<&str> {
        self.device.trouble()
    }

    /// `run`, `pretrained`, `imported` or `recording`.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.opened {
            Opened::Model(_) => "run",
            Opened::Imported(model) if matches!(**model, ImportedModel::Pretrained(_)) => "pretrained",
            Opened::Imported(_) => "imported",
            Opened::Recording(_) => "recording",
        }
    }

    #[getter]
    fn description(&self) -> &str {
        &self.description.model
    }

    #[getter]
    fn model_hash(&self) -> &str {
        &self.description.model_hash
    }

    /// Kind, layer and head of every site.
    fn sites(&self) -> Vec<(&'static str, usize, usize)> {
        self.description.sites.iter().map(|site| (site.kind.name(), site.layer, site.head)).collect()
    }

    #[pyo3(signature = (texts, corpus, n_sentences, seed, components, control, given, progress))]
    #[expect(clippy::too_many_arguments, reason = "all are named in Python")]
    fn explain(
        &self,
        py: Python<'_>,
        texts: Option<Vec<Text>>,
        corpus: Option<PathBuf>,
        n_sentences: Option<u64>,
        seed: u64,
        components: Option<&ModelSums>,
        control: bool,
        given: &Bound<'_, PyDict>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Explanation, Failure> {
        let mut options = options::of(Some(given))?;
        options.keep_totals = components.is_some();
        let chosen = Chosen { is_halving_told: given.contains("held_out")?, ..Chosen::of(texts, corpus, n_sentences, seed)? };
        let sums = components.map(|components| components.stats.clone().sums_for(&self.description)).transpose()?;
        let control = control.then_some(seed);
        let mut explained = watched(py, progress, |tell| {
            self.explained(&chosen, sums.as_deref(), &options, control, &mut |progress| {
                tell(phase(progress), progress.done, progress.total)
            })
        })??;
        explained.report.model.path = Some(self.path.to_string_lossy().into_owned());
        let under = sums.map(|sums| Under { description: self.description.clone(), given: Arc::new(sums), options });
        Ok(Explanation::new(explained, under))
    }

    #[pyo3(signature = (texts, corpus, n_sentences, seed, shard, n_threads, progress))]
    #[expect(clippy::too_many_arguments, reason = "all are named in Python")]
    fn fit(
        &self,
        py: Python<'_>,
        texts: Option<Vec<Text>>,
        corpus: Option<PathBuf>,
        n_sentences: Option<u64>,
        seed: u64,
        shard: (u64, u64),
        n_threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> Result<ModelSums, Failure> {
        let (number, of) = shard;
        if !(1..=of).contains(&number) {
            return Err(Failure::config(format!("shard {number} of {of}: shards are counted from 1")));
        }
        let (chosen, shard) = (Chosen::of(texts, corpus, n_sentences, seed)?, Shard { number, of });
        let stats = watched(py, progress, |tell| {
            let tell = &mut |progress| tell(phase(progress), progress.done, progress.total);
            Ok::<_, Failure>(match &self.opened {
                Opened::Model(model) => model.fit(&chosen.of_run(model, n_threads, tell)?, shard, n_threads, tell)?,
                Opened::Imported(model) if model.reads_files() => {
                    return Err(Failure::explain(format!(
                        "`{}` reads sounds or pictures, whose codes are found anew in every corpus: its sums would add up to nothing; \
                         explain the whole corpus, which fits and explains in one go",
                        self.path.display()
                    )));
                }
                Opened::Imported(model) => {
                    let (sentences, rest) = chosen.shard_of_imported(model, shard, n_threads, tell)?;
                    model.fit(&sentences, rest, n_threads, tell)?
                }
                Opened::Recording(recording) => fit_recording(recording, chosen.of_recording()?, shard, n_threads, tell)?,
            })
        })??;
        Ok(ModelSums { stats })
    }

    #[pyo3(signature = (path, texts, corpus, n_sentences, seed, n_kept, overwrite, n_threads, progress))]
    #[expect(clippy::too_many_arguments, reason = "all are named in Python")]
    fn record(
        &self,
        py: Python<'_>,
        path: PathBuf,
        texts: Option<Vec<Text>>,
        corpus: Option<PathBuf>,
        n_sentences: Option<u64>,
        seed: u64,
        n_kept: u64,
        overwrite: bool,
        n_threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> Result<(), Failure> {
        let chosen = Chosen::of(texts, corpus, n_sentences, seed)?;
        let existing = if overwrite { Existing::Replace } else { Existing::Refuse };
        let is_pretrained = self.kind() == "pretrained";
        let options = RecordOptions { fed: if is_pretrained { Fed::Target } else { Fed::Own }, n_kept, existing, n_threads };
        watched(py, progress, |tell| match &self.opened {
            Opened::Model(model) => {
                let sentences = chosen.of_run(model, n_threads, &mut |progress| tell(phase(progress), progress.done, progress.total))?;
                let total = sentences.len();
                Ok(model.record(&sentences, &path, &options, &mut |done| tell("recording", done, total))?)
            }
            Opened::Imported(model) => {
                let sentences =
                    chosen.of_imported(model, n_threads, &mut |progress| tell(phase(progress), progress.done, progress.total))?;
                let total = sentences.len();
                Ok(model.record(&sentences, &path, &options, &mut |done| tell("recording", done, total))?)
            }
            Opened::Recording(_) => Err(Failure::open(format!("`{}` is a recording already", self.path.display()))),
        })?
    }

    /// What it writes for each text, the best first.
    #[pyo3(signature = (texts, beams, n_best, max_tokens, length_penalty, progress))]
    #[expect(clippy::too_many_arguments, reason = "all are named in Python")]
    fn translate(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        beams: Option<usize>,
        n_best: usize,
        max_tokens: Option<usize>,
        length_penalty: Option<f64>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Vec<Vec<Written>>, Failure> {
        watched(py, progress, |tell| {
            let total = texts.len() as u64;
            let mut tell = |done: usize| tell("translating", done as u64, total);
            match &self.opened {
                Opened::Imported(model) => {
                    let mut how = match &**model {
                        ImportedModel::Pretrained(model) => Some(Decoding::of(model.model())),
                        ImportedModel::Mapped(_) => None,
                    };
                    if let Some(how) = &mut how {
                        how.rules.n_beams = beams.unwrap_or(how.rules.n_beams.max(n_best));
                        how.rules.max_tokens = max_tokens.unwrap_or(how.rules.max_tokens);
                        how.rules.length_penalty = length_penalty.unwrap_or(how.rules.length_penalty);
                        how.n_best = n_best;
                        check_beams(how.rules.n_beams, n_best)?;
                    } else if beams.is_some_and(|beams| beams != 1) || n_best != 1 || length_penalty.is_some() {
                        return Err(Failure::config(format!(
                            "`{}` writes its likeliest word each time: beams, n_best and length_penalty search for nothing",
                            self.path.display()
                        )));
                    }
                    let mut all = Vec::with_capacity(texts.len());
                    for text in &texts {
                        let written = match (&**model, &how) {
                            (ImportedModel::Pretrained(model), Some(how)) => model.translate(text, how)?,
                            _ => vec![model.translate_greedily(text, max_tokens.unwrap_or(usize::MAX))?],
                        };
                        all.push(written.into_iter().map(|written| (written.text, written.tokens, written.score)).collect());
                        tell(all.len());
                    }
                    Ok(all)
                }
                Opened::Model(model) => {
                    let default = Writing::default();
                    let how = Writing {
                        beams: beams.unwrap_or(default.beams.max(n_best)),
                        n_best,
                        most_tokens: max_tokens.unwrap_or(default.most_tokens),
                        length_penalty: length_penalty.unwrap_or(default.length_penalty),
                        ..default
                    };
                    check_beams(how.beams, n_best)?;
                    write(model, &texts, &how, &mut tell)
                }
                Opened::Recording(_) => Err(Failure::open(format!(
                    "`{}` is a recording and cannot write: translate needs the model itself",
                    self.path.display()
                ))),
            }
        })?
    }
}

impl Model {
    fn explained(
        &self,
        chosen: &Chosen,
        given: Option<&[Sums]>,
        options: &Options,
        control: Option<u64>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Explained, Failure> {
        match &self.opened {
            Opened::Model(model) => {
                let sentences = chosen.of_run(model, options.n_threads, tell)?;
                // A few sentences say little about positions and words: the task has more.
                let fresh = match (given, &chosen.texts) {
                    (None, Some(_)) => {
                        let fresh = Sentences::Task { seed: chosen.seed, n_samples: FRESH };
                        Some(model.fit(&fresh, Shard::WHOLE, options.n_threads, tell)?.sums_for(&self.description)?)
                    }
                    _ => None,
                };
                Ok(model.explain(&sentences, given.or(fresh.as_deref()), options, control, tell)?)
            }
            Opened::Imported(model) => {
                let sentences = chosen.of_imported(model, options.n_threads, tell)?;
                let is_alone = sentences.len() == 1 && given.is_none();
                if is_alone && options.held_out {
                    return Err(Failure::sentence("one sentence has no two halves, to fit on and to explain: give more sentences"));
                }
                let is_halved = chosen.corpus.is_some() && ImportedSentences::are_halved(sentences.len(), given);
                let held_out = if chosen.is_halving_told { options.held_out } else { is_halved };
                let mut explained = model.explain(&sentences, given, &Options { held_out, ..options.clone() }, control, tell)?;
                if is_alone {
                    let warning = format!("{ONE_ALONE}; more sentences, or components=model.fit(corpus=…), take them from others");
                    explained.report.corpus.warnings.push(warning);
                }
                Ok(explained)
            }
            Opened::Recording(recording) => Ok(explain_recording(recording, chosen.of_recording()?, given, options, tell)?),
        }
    }
}

impl Chosen {
    /// Refuses two answers to which sentences are meant.
    fn of(texts: Option<Vec<Text>>, corpus: Option<PathBuf>, n_sentences: Option<u64>, seed: u64) -> Result<Self, Failure> {
        if let (Some(_), Some(corpus)) = (&texts, &corpus) {
            let corpus = corpus.display();
            return Err(Failure::sentence(format!("src= and corpus=`{corpus}` are two sets of sentences: give one of them")));
        }
        Ok(Self { texts, corpus, n_sentences, seed, is_halving_told: false })
    }

    fn of_run(&self, model: &TrainedModel, n_threads: usize, tell: &mut dyn FnMut(Progress)) -> Result<Sentences, Failure> {
        let Some(texts) = &self.texts else {
            let mut sentences = Sentences::choose(model, self.corpus.as_deref(), self.seed, self.n_sentences.unwrap_or(FRESH))?;
            if let Sentences::Listed(pairs) = &mut sentences {
                pairs.truncate(self.most());
            }
            return Ok(sentences);
        };
        let texts = &texts[..texts.len().min(self.most())];
        let without: Vec<&str> = texts.iter().filter(|(_, target)| target.is_none()).map(|(source, _)| source.as_str()).collect();
        let total = without.len() as u64;
        let mut wrote = |done: usize| tell(Progress { phase: Phase::Writing, done: done as u64, total });
        let mut written = model.write_alone(&without, n_threads, &mut wrote)?.into_iter();
        let pair = |(source, target): &Text| {
            let target = match target {
                Some(target) => model.read_target(target)?.0,
                None => written.next().expect("one for each source without a target"),
            };
            Ok(Pair::new(model.read_source(source)?.0, target))
        };
        Ok(Sentences::Listed(texts.iter().map(pair).collect::<Result<_, Failure>>()?))
    }

    /// Most sentences of a list or a file.
    fn most(&self) -> usize {
        self.n_sentences.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX)
    }

    /// The sentences of one shard, and what of them is still to be chosen.
    fn shard_of_imported(
        &self,
        model: &ImportedModel,
        shard: Shard,
        n_threads: usize,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(ImportedSentences, Shard), Failure> {
        match (&self.texts, &self.corpus, self.n_sentences) {
            (None, Some(path), None) => Ok((model.sentences_of_shard(path, shard, n_threads, tell)?.0, Shard::WHOLE)),
            _ => Ok((self.of_imported(model, n_threads, tell)?, shard)),
        }
    }

    fn of_imported(&self, model: &ImportedModel, n_threads: usize, tell: &mut dyn FnMut(Progress)) -> Result<ImportedSentences, Failure> {
        let mut listed = |texts: &[Text]| {
            let mut all: Option<ImportedSentences> = None;
            let total = texts.len().min(self.most()) as u64;
            for (done, (source, target)) in texts.iter().take(self.most()).enumerate() {
                let one = model.sentence(source, target.as_deref(), n_threads)?;
                tell(Progress { phase: Phase::Writing, done: done as u64 + 1, total });
                all = Some(match all {
                    Some(all) => all.then(one),
                    None => one,
                });
            }
            all.ok_or_else(|| Failure::sentence("there are no sentences"))
        };
        match (&self.texts, &self.corpus) {
            (Some(texts), _) => listed(texts),
            (None, Some(path)) => Ok(model.first_sentences(path, self.n_sentences.unwrap_or(u64::MAX), n_threads, tell)?),
            (None, None) => Err(Failure::sentence("this model has no task to draw sentences from: give texts, or corpus= a file of them")),
        }
    }

    fn of_recording(&self) -> Result<u64, Failure> {
        if self.texts.is_some() || self.corpus.is_some() {
            return Err(Failure::sentence("a recording has its own sentences, and no model to read others"));
        }
        Ok(self.n_sentences.unwrap_or(u64::MAX))
    }
}

/// The tokens of words a run wrote itself, exactly: it may not have come to an end.
fn own_tokens(model: &TrainedModel, words: &[String]) -> Vec<Token> {
    words.iter().filter_map(|word| model.task.target_vocabulary().token(word)).collect()
}

/// What a run writes for each text, the best first. A task whose sentences are all of one length has no end to search for: its network
/// writes as many words as that, the likeliest at every step.
fn write(model: &TrainedModel, texts: &[String], how: &Writing, tell: &mut dyn FnMut(usize)) -> Result<Vec<Vec<Written>>, Failure> {
    match model.translate(texts, how, tell) {
        Ok(written) => {
            let of_text = |written: Vec<crosslens_lab::Written>| {
                written.into_iter().map(|written| (written.text, own_tokens(model, &written.tokens), written.score)).collect()
            };
            Ok(written.into_iter().map(of_text).collect())
        }
        Err(WriteError::NoEnd) if *how == Writing::default() => {
            let sources: Vec<&str> = texts.iter().map(String::as_str).collect();
            let word = |&token: &Token| model.task.target_vocabulary().word(token).unwrap_or_default();
            let of_text = |tokens: Vec<Token>| {
                let words: Vec<&str> = tokens.iter().map(word).collect();
                vec![(words.join(" "), tokens, f64::NAN)]
            };
            Ok(model.write_alone(&sources, how.n_threads, tell)?.into_iter().map(of_text).collect())
        }
        Err(error) => Err(match error.about_text().filter(|_| texts.len() > 1) {
            Some((number, reason)) => Failure::sentence(format!("text {} of {}: {reason}", number + 1, texts.len())),
            None => error.into(),
        }),
    }
}

fn check_beams(beams: usize, n_best: usize) -> Result<(), Failure> {
    if (1..=1024).contains(&beams) && (1..=beams).contains(&n_best) {
        return Ok(());
    }
    Err(Failure::config(format!("{n_best} texts of {beams} beams: there are 1 to 1024 beams and as many texts at most")))
}
