use std::path::PathBuf;

use crosslens_lab::analysis::{AttendFormat, Description, Recordable};
use crosslens_lab::{AttendOptions, Attention, ImportedModel, Sentence, Shard, TrainedModel};

use super::explain::given_sums;
use super::opening::Reading;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Writes every attention matrix of a sentence to a file, and nothing else.
///
/// Arrays `cross_attentions.{layer}` have the shape [head, target, source]; so do `encoder_attentions.{layer}` and
/// `decoder_attentions.{layer}` with their own sides, where there are any. The words of both sides come along.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, or a model of another program: its weights, or the import.toml that says how to read them.
    #[arg(value_name = "DIR|MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The sentence, words separated by blanks; a model of characters reads a text as it is. Default: a fresh one of the run's task.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// What the decoder reads. Default: its own words.
    #[arg(long, value_name = "TEXT", requires = "source")]
    target: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// Draws the fresh sentence, and those that components are fitted on.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// The file; its extension says how it is written.
    #[arg(short, long, value_name = "x.safetensors|x.npz|x.json")]
    out: PathBuf,
    /// Scores before the softmax too: `scores.cross.{layer}`, [head, target, source].
    #[arg(long)]
    scores: bool,
    /// The nine terms of every score too (six for an additive one): `terms.cross.{layer}`, [head, term, target, source].
    #[arg(long)]
    terms: bool,
    /// The states that feed attention too: `states.{stream}`, [step, d].
    #[arg(long)]
    states: bool,
    /// Of sounds and pictures: attention of both sides to themselves too, which of 30 seconds of sound is some 9 MB a head.
    #[arg(long)]
    self_attention: bool,
    /// Sums to fit the components behind the terms from. Default: 1000 fresh sentences of the run's task, if it has one.
    #[arg(long, value_name = "X.stats.safetensors", requires = "terms")]
    components: Option<PathBuf>,
    /// Sentences to fit them on instead, of a model that was not trained here; of sounds and pictures a folder of them, or a list.
    #[arg(long, value_name = "FILE", requires = "terms", conflicts_with = "components")]
    corpus: Option<PathBuf>,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    AttendFormat::of(&arguments.out)?;
    let model = Model::open(arguments)?;
    let bar = SentenceBar::new();
    let given = match (&arguments.corpus, &model) {
        (None, _) => given_sums(arguments.components.as_deref(), &arguments.model, &model.description()?)?,
        (Some(corpus), Model::Imported(model)) => {
            let sentences = model.sentences(corpus, arguments.threads, &mut |progress| bar.show(progress))?;
            sentences.warnings().iter().for_each(|warning| output::note(&format!("warning: {warning}")));
            let stats = model.fit(&sentences, Shard::WHOLE, arguments.threads, &mut |progress| bar.show(progress))?;
            Some(stats.streams.into_iter().map(|stream| stream.sums).collect())
        }
        (Some(_), Model::Trained(_)) => {
            let message = "--corpus is for models that were not trained here: a run has a task to draw sentences from";
            let hint = format!("crosslens fit {} --corpus FILE -o x.stats.safetensors, then --components that", arguments.model.display());
            return Err(Failure::usage(message).hint(hint));
        }
    };
    let sentence = match (&arguments.source, &arguments.target) {
        (None, _) => Sentence::Fresh(arguments.seed),
        (Some(source), None) => Sentence::Source(source),
        (Some(source), Some(target)) => Sentence::Pair(source, target),
    };
    let options = AttendOptions {
        scores: arguments.scores,
        terms: arguments.terms,
        states: arguments.states,
        given: given.as_deref(),
        seed: arguments.seed,
        n_threads: arguments.threads,
    };
    let attended = match &model {
        Model::Trained(model) => model.attend(sentence, &options, &mut |progress| bar.show(progress))?,
        Model::Imported(model) => model.attend(sentence, &options, &mut |warning| output::note(&format!("warning: {warning}")))?,
    };
    drop(bar);
    attended.save(&arguments.out)?;
    match (&model, &arguments.source) {
        (Model::Imported(model), Some(file)) if model.reads_files() => output::note(&format!("source:    {file}")),
        _ => output::note(&format!("source:    {}", attended.source.join(" "))),
    }
    output::note(&format!("predicted: {}", attended.predicted.join(" ")));
    for array in &attended.arrays {
        output::note(&format!("  {} {:?}", array.name, array.shape));
    }
    let out = arguments.out.display();
    let corpus = if matches!(model, Model::Imported(_)) { " --corpus words.txt" } else { "" };
    output::note(&format!("saved in {out}; next: crosslens explain {}{corpus}", arguments.model.display()));
    Ok(())
}

/// What can be asked about a sentence.
enum Model {
    Trained(Box<TrainedModel>),
    Imported(Box<ImportedModel>),
}

impl Model {
    fn open(Arguments { model: path, reading, self_attention, .. }: &Arguments) -> Result<Self, Failure> {
        if ImportedModel::is_at(path) {
            let model = ImportedModel::open_with(path, &reading.choices(), Attention::All)?;
            let model = if model.reads_files() && !self_attention { model.crossing()? } else { model };
            return Ok(Self::Imported(Box::new(model)));
        }
        reading.refuse()?;
        Ok(Self::Trained(Box::new(TrainedModel { attention: Attention::All, ..TrainedModel::open(path)? })))
    }

    fn description(&self) -> Result<Description, Failure> {
        match self {
            Self::Imported(model) => Ok(model.description().clone()),
            Self::Trained(model) => {
                let subject = model.subject(1).map_err(|error| Failure::refused(format!("cannot start a thread: {error}")))?;
                Ok(subject.description().clone())
            }
        }
    }
}
