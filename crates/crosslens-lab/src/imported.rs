//! Models of other programs: read, explained, looked at, recorded.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{
    Corpus, CorpusError, EveryNth, ExplainError, Explained, Extent, First, Live, Options, Phase, Progress, Samples, batch_size, explain,
};
use crosslens_analysis::report::CorpusReport;
use crosslens_analysis::{
    Attended, Description, Fed, Pair, RecordError, Recordable, Recorded, Side, SiteKind, Stats, Sums, Token, Untouched, Wishes,
};
use crosslens_nets::imported::{Imported, UnknownWord};
use crosslens_nets::train::RunFolder;

use crate::attending::{fitted, record_one};
use crate::explaining::{CONTROL_SENTENCES, add_control};
use crate::listed::{ListedError, read_listed};
use crate::pretrained::ReadSource;
use crate::recording::record_corpus;
use crate::signals::{Senses, SignalError};
use crate::{
    AttendError, AttendOptions, Choices, FileKind, OpenError, PretrainedModel, PretrainedModelError, RecordOptions, RecordRunError,
    Sentence, Shard, Translation,
};

/// Why sentences for an imported model cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SentencesError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] ListedError),
    /// What the model writes by itself cannot be had.
    #[error("the sentences cannot be run")]
    Record(#[from] RecordError),
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[from] std::io::Error),
    /// Sounds or pictures that cannot be read.
    #[error(transparent)]
    Files(#[from] Box<PretrainedModelError>),
    /// A folder without them.
    #[error(transparent)]
    Folder(#[from] Box<SignalError>),
}

/// Sentences for an imported model. Where the file names no target, it is what the model writes by itself, and counts as not known.
#[derive(Clone, Debug)]
pub struct ImportedSentences {
    pairs: Vec<Pair>,
    /// By pair: whether the target was given.
    told: Vec<bool>,
    /// By pair, where sources are sounds or pictures: the file.
    files: Vec<PathBuf>,
    /// What is wrong with those.
    warnings: Vec<String>,
}

/// Fewest sentences that are halved unasked: two to fit on, two to explain.
const FEWEST_HALVED: u64 = 4;

impl ImportedSentences {
    /// Whether so many of a corpus are halved unless something else is asked for: shares of the very sentences that components were fitted
    /// on flatter them.
    pub fn are_halved(n_sentences: u64, given: Option<&[Sums]>) -> bool {
        given.is_none() && n_sentences >= FEWEST_HALVED
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.pairs.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// One of them, and whether its target was given; counted round where there are fewer.
    pub(crate) fn around(&self, number: u64) -> Option<(Pair, bool)> {
        let place = usize::try_from(number.checked_rem(self.len())?).ok()?;
        Some((self.pairs[place].clone(), self.told[place]))
    }

    /// The file of a sound or picture.
    pub(crate) fn file(&self, number: u64) -> Option<&Path> {
        self.files.get(usize::try_from(number).ok()?).map(PathBuf::as_path)
    }

    /// What is wrong with files among them, in words for their user: a sound that breaks off.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How long they are and how many different tokens they have, for the model they were read by.
    pub fn extent(&self, description: &Description) -> Extent {
        Extent::in_batches(self.pairs.iter(), self.batch_size(description)).keeping(self.pairs.iter())
    }

    /// How many are in hand at a time.
    fn batch_size(&self, description: &Description) -> u64 {
        let longest = |of: fn(&Pair) -> usize| self.pairs.iter().map(of).max().unwrap_or(0);
        batch_size(description, longest(|pair| pair.source.len()), longest(|pair| pair.target.len()))
    }

    /// These, then others.
    #[must_use]
    pub fn then(mut self, others: Self) -> Self {
        self.pairs.extend(others.pairs);
        self.told.extend(others.told);
        self.files.extend(others.files);
        self.warnings.extend(others.warnings);
        self
    }
}

/// Sources that a model writes the targets of before it says how far it is.
const WRITTEN_AT_ONCE: usize = 64;

/// Sources, each perhaps with a target.
type Lines<S> = Vec<(S, Option<Vec<Token>>)>;

/// A model that another program trained.
#[derive(Debug)]
pub enum ImportedModel {
    /// Read by a mapping of its tensors.
    Mapped(Box<Imported>),
    /// Of Hugging Face's.
    Pretrained(Box<PretrainedModel>),
}

/// What of a model's attention is asked about. A network that was mapped has attention from the decoder to the encoder only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// From the decoder to the encoder.
    Cross,
    /// That, and of both sides to themselves.
    All,
}

impl ImportedModel {
    /// Whether a path leads to one, and not to a run.
    pub fn is_at(path: &Path) -> bool {
        !RunFolder::at(path).holds_run() && (Imported::is_at(path) || PretrainedModel::is_at(path))
    }

    /// Opens a folder with an `import.toml`, a mapping, the weights of a model known to the program, or a folder of Hugging Face's.
    /// A multilingual one must say itself which languages are meant.
    pub fn open(path: &Path, attention: Attention) -> Result<Self, OpenError> {
        Self::open_with(path, &Choices::default(), attention)
    }

    /// The same, as somebody chose.
    pub fn open_with(path: &Path, choices: &Choices, attention: Attention) -> Result<Self, OpenError> {
        if Imported::is_at(path) {
            choices.refuse(path)?;
            return Ok(Self::Mapped(Box::new(Imported::open(path)?)));
        }
        let kinds: &[SiteKind] = if attention == Attention::All { &SiteKind::ALL } else { &[SiteKind::Cross] };
        Ok(Self::Pretrained(Box::new(PretrainedModel::open_with(path, choices, kinds, 0)?)))
    }

    /// The same, only attention from the decoder to the encoder looked at.
    pub fn crossing(self) -> Result<Self, OpenError> {
        Ok(match self {
            Self::Mapped(model) => Self::Mapped(model),
            Self::Pretrained(model) => Self::Pretrained(Box::new(model.crossing()?)),
        })
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        match self {
            Self::Mapped(model) => model.description(),
            Self::Pretrained(model) => model.description(),
        }
    }

    /// Bytes of logits that so many threads (0 for one per core) have in hand at most, of targets of up to so many steps; nothing worth
    /// counting where it was mapped.
    pub fn logit_bytes(&self, n_steps: usize, n_threads: usize) -> usize {
        let Self::Pretrained(model) = self else { return 0 };
        let subject = model.subject();
        // It was opened for all cores.
        let n_threads = if n_threads == 0 { subject.threads().count() } else { n_threads };
        n_threads * subject.logit_bytes(n_steps)
    }

    /// What its decoder reads where nothing else is asked for. A pretrained model is always run on a target, its own where none is given,
    /// so that a row of attention belongs to a token of it.
    pub(crate) fn fed(&self) -> Fed<'static> {
        if matches!(self, Self::Mapped(_)) { Fed::Own } else { Fed::Target }
    }

    pub(crate) fn subject(&self, n_threads: usize) -> std::io::Result<Box<dyn Recordable>> {
        Ok(match self {
            Self::Mapped(model) => Box::new(model.subject(n_threads)?),
            Self::Pretrained(model) => Box::new(model.subject_on(n_threads).map_err(std::io::Error::other)?),
        })
    }

    /// What it writes for each source by itself, at most so many tokens.
    pub(crate) fn write(&self, sources: &[ReadSource], most: usize, n_threads: usize) -> Result<Vec<Vec<Token>>, SentencesError> {
        Ok(match self {
            Self::Mapped(model) => {
                let sources: Vec<Vec<Token>> = sources.iter().map(|source| source.tokens.clone()).collect();
                model.subject(n_threads)?.write(&sources, model.most_steps().min(most))?
            }
            Self::Pretrained(model) => model.write(sources, most, n_threads)?,
        })
    }

    pub(crate) fn source(&self, text: &str) -> Result<Vec<Token>, AttendError> {
        match self {
            Self::Mapped(model) => self.tokens("source", text, |text| model.source(text)),
            Self::Pretrained(model) => Ok(model.source(text)?.ids),
        }
    }

    /// Whether its sources are sounds or pictures, named by their paths, rather than texts.
    pub fn reads_files(&self) -> bool {
        matches!(self, Self::Pretrained(model) if model.senses().is_some())
    }

    /// What kind of files they are.
    pub fn reads(&self) -> Option<FileKind> {
        match self {
            Self::Pretrained(model) => model.senses().map(|senses| if senses.hears() { FileKind::Sound } else { FileKind::Picture }),
            Self::Mapped(_) => None,
        }
    }

    /// A source: a text, or the path of a sound or a picture.
    fn read_source(&self, text: &str) -> Result<ReadSource, AttendError> {
        match self {
            Self::Pretrained(model) if model.senses().is_some() => Ok(model.read_files(&[PathBuf::from(text)])?.remove(0)),
            _ => Ok(ReadSource::text(self.source(text)?)),
        }
    }

    pub(crate) fn target(&self, text: &str) -> Result<Vec<Token>, AttendError> {
        match self {
            Self::Mapped(model) => self.tokens("target", text, |text| model.target(text)),
            Self::Pretrained(model) => Ok(model.target(text)?.ids),
        }
    }

    /// Reads a file of sentences, one a line: a source, or a source and a target separated by a tab; or any other corpus that networks are
    /// trained on. `progress` hears how many targets that are not given the model has written.
    ///
    /// Where sources are sounds or pictures, a line names a file, from where the list lies; a folder stands for all such files in it.
    pub fn sentences(
        &self,
        path: &Path,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportedSentences, SentencesError> {
        self.first_sentences(path, u64::MAX, n_threads, progress)
    }

    /// The same, but only the first so many of them.
    pub fn first_sentences(
        &self,
        path: &Path,
        most: u64,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportedSentences, SentencesError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Pretrained(model) if model.senses().is_some() => {
                let (lines, files) = self.listed_files(model, path, most)?;
                Ok(ImportedSentences { files, ..self.with_targets(lines, n_threads, progress)? })
            }
            _ => {
                let read = |source: &str| self.source(source).map_err(|error| error.to_string());
                let mut lines = self.lines(path, read)?;
                lines.truncate(most);
                let read = |(tokens, target)| (ReadSource::text(tokens), target);
                self.with_targets(lines.into_iter().map(read).collect(), n_threads, progress)
            }
        }
    }

    /// Sounds or pictures by a list or in a folder, with their targets where those are given, and their files.
    fn listed_files(&self, model: &PretrainedModel, path: &Path, most: usize) -> Result<(Lines<ReadSource>, Vec<PathBuf>), SentencesError> {
        let mut lines = match model.senses() {
            Some(senses) if path.is_dir() => senses.files_in(path).map_err(Box::new)?.into_iter().map(|file| (file, None)).collect(),
            _ => {
                let folder = path.parent().unwrap_or(Path::new(""));
                self.lines(path, |source| Ok(folder.join(source.trim())))?
            }
        };
        lines.truncate(most);
        let (files, targets): (Vec<PathBuf>, Vec<_>) = lines.into_iter().unzip();
        let read = model.read_files(&files).map_err(Box::new)?;
        Ok((read.into_iter().zip(targets).collect(), files))
    }

    /// The sentences of one shard of a corpus, and how many the whole holds. Of the others nothing but their number is read.
    pub fn sentences_of_shard(
        &self,
        path: &Path,
        shard: Shard,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(ImportedSentences, u64), SentencesError> {
        let mut n_lines = 0;
        let lines = read_listed(path, |source, target| {
            n_lines += 1;
            let read = |source: &str| self.read_source(source).map_err(|error| error.to_string());
            if shard.holds(n_lines - 1) { self.line(source, target, &read).map(Some) } else { Ok(None) }
        })?;
        Ok((self.with_targets(lines.into_iter().flatten().collect(), n_threads, progress)?, n_lines))
    }

    /// The lines of a file, each a source and perhaps a target.
    fn lines<S>(&self, path: &Path, source_of: impl Fn(&str) -> Result<S, String>) -> Result<Lines<S>, ListedError> {
        read_listed(path, |source, target| self.line(source, target, &source_of))
    }

    fn line<S>(
        &self,
        source: &str,
        target: Option<&str>,
        source_of: &impl Fn(&str) -> Result<S, String>,
    ) -> Result<(S, Option<Vec<Token>>), String> {
        if source.is_empty() {
            return Err("the source is empty".to_owned());
        }
        let target = target.map(|target| self.target(target)).transpose().map_err(|error| error.to_string())?;
        Ok((source_of(source)?, target))
    }

    /// Texts with what the model wrote for them, however it was searched for.
    pub fn written(&self, texts: &[(&str, Vec<Token>)]) -> Result<ImportedSentences, AttendError> {
        let pair = |(source, target): &(&str, Vec<Token>)| Ok(ReadSource::text(self.source(source)?).paired(target.clone()));
        let pairs: Vec<Pair> = texts.iter().map(pair).collect::<Result<_, AttendError>>()?;
        Ok(ImportedSentences { told: vec![false; pairs.len()], pairs, files: Vec::new(), warnings: Vec::new() })
    }

    /// What it makes of a text, the likeliest token each time, at most so many.
    pub fn translate_greedily(&self, text: &str, most: usize) -> Result<Translation, AttendError> {
        let source = ReadSource::text(self.source(text)?);
        let tokens = self.write(std::slice::from_ref(&source), most, 1).map_err(Box::new)?.remove(0);
        let subject = self.subject(1)?;
        let answers = subject.run(&[source.paired(tokens.clone())], Fed::Target, &Untouched)?;
        let loss: f64 = answers.iter().map(|answer| answer.loss).sum();
        let text = match self {
            Self::Mapped(model) => model.table(Side::Target).text(&tokens),
            Self::Pretrained(model) => model.decode(&tokens)?,
        };
        Ok(Translation { text, score: -loss * tokens.len() as f64, tokens })
    }

    /// Sounds or pictures with what the model wrote for them, of long sounds for their first 30 seconds.
    pub fn written_files(&self, files: Vec<(PathBuf, Vec<Token>)>) -> Result<ImportedSentences, AttendError> {
        let Self::Pretrained(model) = self else { return Err(AttendError::NoFiles) };
        let (files, written): (Vec<PathBuf>, Vec<Vec<Token>>) = files.into_iter().unzip();
        let mut sources = model.read_files(&files)?;
        let warnings = sources.iter_mut().filter_map(|source| source.warning.take()).collect();
        let pairs: Vec<Pair> = sources.into_iter().zip(written).map(|(source, written)| source.paired(written)).collect();
        Ok(ImportedSentences { told: vec![false; pairs.len()], pairs, files, warnings })
    }

    /// One sentence.
    pub fn sentence(&self, source: &str, target: Option<&str>, n_threads: usize) -> Result<ImportedSentences, AttendError> {
        let target = target.map(|target| self.target(target)).transpose()?;
        let files = if self.reads_files() { vec![PathBuf::from(source)] } else { Vec::new() };
        let sentences = self.with_targets(vec![(self.read_source(source)?, target)], n_threads, &mut |_| ()).map_err(Box::new)?;
        Ok(ImportedSentences { files, ..sentences })
    }

    /// Where there is no target, the model writes one: a few sources at a time, so that it can be told how far that is.
    fn with_targets(
        &self,
        lines: Lines<ReadSource>,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportedSentences, SentencesError> {
        let told = lines.iter().map(|(_, target)| target.is_some()).collect();
        let warnings = lines.iter().filter_map(|(source, _)| source.warning.clone()).collect();
        let untold: Vec<ReadSource> = lines.iter().filter(|(_, target)| target.is_none()).map(|(source, _)| source.clone()).collect();
        let total = untold.len() as u64;
        let mut tell = |done: usize| progress(Progress { phase: Phase::Writing, done: done as u64, total });
        let mut written = Vec::with_capacity(untold.len());
        for sources in untold.chunks(WRITTEN_AT_ONCE) {
            if written.is_empty() {
                tell(0);
            }
            written.extend(self.write(sources, usize::MAX, n_threads)?);
            tell(written.len());
        }
        let mut written = written.into_iter();
        let mut pair = |(source, target): (ReadSource, Option<Vec<Token>>)| {
            let target = match (self, target) {
                (Self::Pretrained(model), Some(target)) => model.prompted(&source, target)?,
                (_, Some(target)) => target,
                (_, None) => written.next().expect("one was written for each source without a target"),
            };
            Ok(source.paired(target))
        };
        let pairs = lines.into_iter().map(&mut pair).collect::<Result<_, RecordError>>()?;
        Ok(ImportedSentences { pairs, told, files: Vec::new(), warnings })
    }

    /// Explains the model; with `control`, beside what untrained weights of the same shape would give.
    pub fn explain(
        &self,
        sentences: &ImportedSentences,
        given: Option<&[Sums]>,
        options: &Options,
        control: Option<u64>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Explained, ExplainError> {
        let subject = self.subject(options.n_threads)?;
        let mut explained = explain(&sentences.of(subject.as_ref(), self.fed()), given, options, progress)?;
        if let Some(untrained) = control.and_then(|seed| subject.untrained(seed)) {
            let corpus = sentences.of(untrained.as_ref(), self.fed());
            add_control(&mut explained, &First { corpus: &corpus, n_sentences: CONTROL_SENTENCES }, options, progress)?;
        }
        self.stage(sentences, &mut explained.samples, &mut explained.report.corpus)?;
        explained.report.corpus.source = "a file".into();
        Ok(explained)
    }

    /// Adds to an explanation of sounds or pictures what they sound or look like, what their codes are, and what is wrong with the files.
    pub(crate) fn stage(
        &self,
        sentences: &ImportedSentences,
        samples: &mut Samples,
        corpus: &mut CorpusReport,
    ) -> Result<(), ExplainError> {
        let Self::Pretrained(model) = self else { return Ok(()) };
        let unreadable = |error: PretrainedModelError| ExplainError::Corpus { from: 0, to: sentences.len(), source: error.into() };
        model.stage(sentences, samples).map_err(unreadable)?;
        corpus.codes = model.senses().map(Senses::report);
        corpus.warnings.splice(..0, sentences.warnings.iter().cloned());
        Ok(())
    }

    /// Every attention matrix of a sentence; `warned` hears what is wrong with its file. Terms need sums: there is no task to draw
    /// sentences from.
    pub fn attend(
        &self,
        sentence: Sentence<'_>,
        options: &AttendOptions<'_>,
        warned: &mut dyn FnMut(&str),
    ) -> Result<Attended, AttendError> {
        let (source, target) = match sentence {
            Sentence::Fresh(_) => return Err(AttendError::NoTask),
            Sentence::Pair(source, target) => (source, Some(target)),
            Sentence::Source(source) => (source, None),
        };
        if options.terms && options.given.is_none() {
            return Err(AttendError::NoSums { reads_files: self.reads_files() });
        }
        let sentence = self.sentence(source, target, options.n_threads)?;
        sentence.warnings.iter().for_each(|warning| warned(warning));
        let subject = self.subject(options.n_threads)?;
        let fed = if target.is_some() { Fed::Target } else { self.fed() };
        let mut recorded = record_one(subject.as_ref(), sentence.pairs[0].clone(), fed)?;
        if target.is_none() {
            without_target(&mut recorded, fed);
        }
        let components = match (options.terms, options.given) {
            (false, _) | (_, None) => None,
            (true, Some(given)) => Some(fitted(given)?),
        };
        let wishes = Wishes { scores: options.scores, terms: components.as_deref(), states: options.states };
        Ok(Attended::of(subject.description(), &recorded, &wishes)?)
    }

    fn tokens(
        &self,
        side: &'static str,
        text: &str,
        of: impl Fn(&str) -> Result<Vec<Token>, UnknownWord>,
    ) -> Result<Vec<Token>, AttendError> {
        if text.trim().is_empty() {
            return Err(AttendError::Empty { side });
        }
        let table = if side == "source" { &self.description().source } else { &self.description().target };
        of(text).map_err(|unknown| AttendError::UnknownWord { side, word: unknown.word, known: table.names.clone() })
    }

    /// Sums the states of one shard of the sentences.
    pub fn fit(
        &self,
        sentences: &ImportedSentences,
        shard: Shard,
        n_threads: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, ExplainError> {
        let subject = self.subject(n_threads)?;
        let corpus = sentences.of(subject.as_ref(), self.fed());
        Stats::of(&EveryNth { corpus: &corpus, first: shard.number - 1, n: shard.of }, n_threads, progress)
    }

    /// Records the model on sentences, a few at a time; `progress` is told how many are done.
    pub fn record(
        &self,
        sentences: &ImportedSentences,
        path: &Path,
        options: &RecordOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), RecordRunError> {
        let subject = self.subject(options.n_threads)?;
        record_corpus(&sentences.of(subject.as_ref(), options.fed), path, options, progress)
    }
}

impl ImportedSentences {
    pub(crate) fn of<'a>(&'a self, model: &'a dyn Recordable, fed: Fed<'a>) -> OfSentences<'a> {
        OfSentences { model, sentences: self, fed }
    }
}

/// A model and listed sentences, some without a known target.
pub(crate) struct OfSentences<'a> {
    model: &'a dyn Recordable,
    sentences: &'a ImportedSentences,
    fed: Fed<'a>,
}

impl OfSentences<'_> {
    /// What `read` reads of all pairs, without the targets that nobody gave.
    fn read_by(&self, read: impl FnOnce(&Live<'_>) -> Result<Vec<Recorded>, CorpusError>) -> Result<Vec<Recorded>, CorpusError> {
        let pair = |number: u64| self.sentences.pairs[number as usize].clone();
        let mut recorded = read(&Live { model: self.model, pair: &pair, n_pairs: self.sentences.len(), fed: self.fed })?;
        for sentence in recorded.iter_mut().filter(|sentence| !self.sentences.told[sentence.number as usize]) {
            without_target(sentence, self.fed);
        }
        Ok(recorded)
    }
}

impl Corpus for OfSentences<'_> {
    fn description(&self) -> &Description {
        self.model.description()
    }

    fn batch_size(&self) -> u64 {
        self.sentences.batch_size(self.model.description())
    }

    fn n_sentences(&self) -> u64 {
        self.sentences.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.read_by(|live| live.read(range))
    }

    fn read_states(&self, range: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        self.read_by(|live| live.read_states(range))
    }

    fn read_wanted(&self, range: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        self.read_by(|live| live.read_wanted(range, is_wanted))
    }

    fn read_wanted_states(&self, range: Range<u64>, is_wanted: fn(u64) -> bool) -> Result<Vec<Recorded>, CorpusError> {
        self.read_by(|live| live.read_wanted_states(range, is_wanted))
    }

    fn model(&self) -> Option<&dyn Recordable> {
        Some(self.model)
    }
}

/// There was no target to be compared with: it was what the model wrote, which need not be the likeliest token of every step.
pub(crate) fn without_target(sentence: &mut Recorded, fed: Fed<'_>) {
    let written = sentence.target.take();
    if let (Fed::Target, Some(written)) = (fed, written) {
        sentence.predicted = written;
    }
    sentence.loss = None;
}
