//! Models and recordings by path.

use std::path::PathBuf;
use std::sync::Arc;

use crosslens_lab::analysis::explain::{Explained, Options};
use crosslens_lab::analysis::tsv::Words;
use crosslens_lab::analysis::{Description, Existing, Fed, Pair, Recordable, Sums, Token, Vocabulary};
use crosslens_lab::tasks::END_WORD;
use crosslens_lab::{
    AttendOptions, Attention, Decoding, ImportedModel, ImportedSentences, Opened, RecordOptions, Sentence, Sentences, Shard, TrainedModel,
    explain_recording, fit_recording,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::components::ModelSums;
use crate::errors::Failure;
use crate::explanation::{Explanation, Under};
use crate::options;
use crate::watch::{phase, watched};

/// Something that can be explained.
#[pyclass(module = "crosslens._native", frozen)]
pub(crate) struct Model {
    opened: Opened,
    path: PathBuf,
    description: Arc<Description>,
}

/// A source, with its target if that is known.
type Text = (String, Option<String>);

/// Which sentences: these texts, those of a file, or the first so many that the model has itself.
struct Chosen {
    texts: Option<Vec<Text>>,
    corpus: Option<PathBuf>,
    n_sentences: Option<u64>,
    seed: u64,
}

/// Fresh sentences of a run's task, unless told otherwise.
const FRESH: u64 = 1000;

#[pymethods]
impl Model {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, self_attention: bool) -> Result<Self, Failure> {
        py.detach(|| {
            let opened = if self_attention && ImportedModel::is_at(&path) {
                Opened::Imported(Box::new(ImportedModel::open(&path, Attention::All)?))
            } else {
                Opened::open(&path)?
            };
            let description = Arc::new(match &opened {
                Opened::Model(model) => model.subject(1)?.description().clone(),
                Opened::Imported(model) => model.description().clone(),
                Opened::Recording(recording) => recording.description().clone(),
            });
            Ok(Self { opened, path, description })
        })
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
        let chosen = Chosen { texts, corpus, n_sentences, seed };
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
        let (chosen, shard) = (Chosen { texts, corpus, n_sentences, seed }, Shard { number, of });
        let stats = watched(py, progress, |tell| {
            let tell = &mut |progress| tell(phase(progress), progress.done, progress.total);
            Ok::<_, Failure>(match &self.opened {
                Opened::Model(model) => model.fit(&chosen.of_run(model, n_threads)?, shard, n_threads, tell)?,
                Opened::Imported(model) => model.fit(&chosen.of_imported(model, n_threads)?, shard, n_threads, tell)?,
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
        let chosen = Chosen { texts, corpus, n_sentences, seed };
        let existing = if overwrite { Existing::Replace } else { Existing::Refuse };
        let is_pretrained = self.kind() == "pretrained";
        let options = RecordOptions { fed: if is_pretrained { Fed::Target } else { Fed::Own }, n_kept, existing, n_threads };
        watched(py, progress, |tell| match &self.opened {
            Opened::Model(model) => {
                let sentences = chosen.of_run(model, n_threads)?;
                let total = sentences.len();
                Ok(model.record(&sentences, &path, &options, &mut |done| tell("recording", done, total))?)
            }
            Opened::Imported(model) => {
                let sentences = chosen.of_imported(model, n_threads)?;
                let total = sentences.len();
                Ok(model.record(&sentences, &path, &options, &mut |done| tell("recording", done, total))?)
            }
            Opened::Recording(_) => Err(Failure::open(format!("`{}` is a recording already", self.path.display()))),
        })?
    }

    /// Text, tokens and score of each translation, the best first.
    #[pyo3(signature = (text, beams, n_best, max_tokens, length_penalty))]
    fn translate(
        &self,
        py: Python<'_>,
        text: &str,
        beams: Option<usize>,
        n_best: usize,
        max_tokens: Option<usize>,
        length_penalty: Option<f64>,
    ) -> Result<Vec<(String, Vec<Token>, f64)>, Failure> {
        py.detach(|| match &self.opened {
            Opened::Imported(model) => match &**model {
                ImportedModel::Pretrained(model) => {
                    let mut how = Decoding::of(model.model());
                    how.rules.n_beams = beams.unwrap_or(how.rules.n_beams.max(n_best));
                    how.rules.max_tokens = max_tokens.unwrap_or(how.rules.max_tokens);
                    how.rules.length_penalty = length_penalty.unwrap_or(how.rules.length_penalty);
                    how.n_best = n_best;
                    if how.rules.n_beams == 0 || how.rules.n_beams > 1024 || !(1..=how.rules.n_beams).contains(&n_best) {
                        return Err(Failure::config(format!(
                            "{n_best} texts of {} beams: there are 1 to 1024 beams and as many texts at most",
                            how.rules.n_beams
                        )));
                    }
                    let written = model.translate(text, &how)?;
                    Ok(written.into_iter().map(|written| (written.text, written.tokens, written.score)).collect())
                }
                ImportedModel::Mapped(_) => Err(self.cannot_write()),
            },
            Opened::Model(model) => {
                let words = own_words(model, text, 0)?;
                Ok(vec![(words.join(" "), own_tokens(model, &words), f64::NAN)])
            }
            Opened::Recording(_) => Err(self.cannot_write()),
        })
    }
}

impl Model {
    fn cannot_write(&self) -> Failure {
        Failure::open(format!("`{}` cannot write by itself: translate needs a run or a pretrained model", self.path.display()))
    }

    fn explained(
        &self,
        chosen: &Chosen,
        given: Option<&[Sums]>,
        options: &Options,
        control: Option<u64>,
        tell: &mut dyn FnMut(crosslens_lab::analysis::explain::Progress),
    ) -> Result<Explained, Failure> {
        match &self.opened {
            Opened::Model(model) => {
                let sentences = chosen.of_run(model, options.n_threads)?;
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
                let sentences = chosen.of_imported(model, options.n_threads)?;
                if sentences.len() == 1 && given.is_none() {
                    return Err(Failure::sentence(
                        "one sentence says nothing of what a position or a token is like: give components=model.fit(corpus), or more sentences",
                    ));
                }
                Ok(model.explain(&sentences, given, options, control, tell)?)
            }
            Opened::Recording(recording) => Ok(explain_recording(recording, chosen.of_recording()?, given, options, tell)?),
        }
    }
}

impl Chosen {
    fn of_run(&self, model: &TrainedModel, n_threads: usize) -> Result<Sentences, Failure> {
        let Some(texts) = &self.texts else {
            return Ok(Sentences::choose(model, self.corpus.as_deref(), self.seed, self.n_sentences.unwrap_or(FRESH))?);
        };
        let pair = |(source, target): &Text| {
            let target = match target {
                Some(target) => tokens(model.task.target_vocabulary(), "target", target)?,
                None => own_tokens(model, &own_words(model, source, n_threads)?),
            };
            Ok(Pair::new(tokens(model.task.source_vocabulary(), "source", source)?, target))
        };
        Ok(Sentences::Listed(texts.iter().map(pair).collect::<Result<_, Failure>>()?))
    }

    fn of_imported(&self, model: &ImportedModel, n_threads: usize) -> Result<ImportedSentences, Failure> {
        let listed = |texts: &[Text]| {
            let mut all: Option<ImportedSentences> = None;
            for (source, target) in texts {
                let one = model.sentence(source, target.as_deref(), n_threads)?;
                all = Some(match all {
                    Some(all) => all.then(one),
                    None => one,
                });
            }
            all.ok_or_else(|| Failure::sentence("there are no sentences"))
        };
        match (&self.texts, &self.corpus) {
            (Some(texts), _) => listed(texts),
            (None, Some(path)) => Ok(model.sentences(path, n_threads)?),
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

/// What a run writes for a source.
fn own_words(model: &TrainedModel, source: &str, n_threads: usize) -> Result<Vec<String>, Failure> {
    let options = AttendOptions { n_threads, ..AttendOptions::default() };
    Ok(model.attend(Sentence::Source(source), &options, &mut |_| ())?.predicted)
}

/// The tokens of words a run wrote itself, exactly: it may not have come to an end.
fn own_tokens(model: &TrainedModel, words: &[String]) -> Vec<Token> {
    words.iter().filter_map(|word| model.task.target_vocabulary().token(word)).collect()
}

fn tokens(vocabulary: &Vocabulary, side: &str, text: &str) -> Result<Vec<Token>, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::sentence(format!("the {side} is empty")));
    }
    let words = Words { vocabulary, end: vocabulary.token(END_WORD) };
    let unknown = |word: &str| {
        let known: Vec<&str> = vocabulary.words().iter().take(8).map(String::as_str).collect();
        Failure::sentence(format!("the {side} word `{word}` is not in the model's vocabulary, which begins {}", known.join(", ")))
    };
    words.tokens(text).map_err(unknown)
}
