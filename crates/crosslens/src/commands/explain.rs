use std::path::{Path, PathBuf};

use clap::ValueEnum;
use crosslens_lab::analysis::explain::{Chosen, Explained, OWN_AVERAGES, Options, Rank, Rerun, Streamed, Totals};
use crosslens_lab::analysis::{Description, Estimator, Mismatch, Recordable, Recording, Shrinkage, Stats, Sums};
use crosslens_lab::{Attention, Choices, ImportedModel, ImportedSentences, ONE_ALONE, Opened, Sentences, TrainedModel, explain_recording};

use super::memory::state_for_imported;
use super::merge::refuse_twice;
use super::opening::Reading;
use super::report::{note_left_out, note_warnings};
use crate::failure::Failure;
use crate::hub::Hub;
use crate::progress::SentenceBar;
use crate::{output, picture};

/// Says how a network forms its attention, in numbers and in words.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run; a recording: a folder made by `crosslens record`, or a .npz or .safetensors dump of another framework; or a
    /// model of another program: its weights, or the import.toml that says how to read them.
    #[arg(value_name = "DIR|REC|MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Fresh sentences of the run's task to explain it on, 1000 unless given; of a recording its first ones, all unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "corpus")]
    samples: Option<u64>,
    /// A file of pairs instead, one a line, source and target separated by a tab. A model of another program needs one; a line without a
    /// target stands for what the model writes by itself.
    #[arg(long, value_name = "FILE.tsv")]
    corpus: Option<PathBuf>,
    /// One sentence to show first, of a model that was not trained here. --corpus or --components say what positions and tokens are like;
    /// without, its attention and scores are shown, and shares say nothing.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// What the decoder reads for it. Default: its own words.
    #[arg(long, value_name = "TEXT", requires = "source")]
    target: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// Sums to fit from, made by `crosslens fit` or `crosslens merge`, instead of those of the sentences explained.
    #[arg(long, value_name = "X.stats.safetensors", conflicts_with = "held_out")]
    components: Option<PathBuf>,
    /// Keep what was counted in this file, and the sums of these sentences beside it: --from-shares puts the parts of a corpus together.
    #[arg(
        long,
        value_name = "X.shares.jsonl",
        requires = "components",
        conflicts_with_all = ["bootstrap", "rank", "geometry", "control", "source"]
    )]
    keep_shares: Option<PathBuf>,
    /// Run nothing: report what --keep-shares kept of the parts of a corpus, which were explained with the same sums and options.
    #[arg(
        long,
        value_name = "X.shares.jsonl",
        num_args = 1..,
        requires = "components",
        conflicts_with_all = ["keep_shares", "samples", "corpus", "source", "bootstrap", "rank", "geometry", "control", "causal", "free", "live"]
    )]
    from_shares: Vec<PathBuf>,
    /// Draws the sentences, the resamples and the untrained weights.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// How steps and tokens share what both explain.
    #[arg(long, value_enum, default_value = "paper")]
    estimator: EstimatorName,
    /// Pull rare tokens towards nothing by so many observations, or by as many as the data suggest.
    #[arg(long, value_name = "N|auto")]
    shrink: Option<Shrink>,
    /// Fit on one half of the sentences and explain the other. Done by itself with --corpus of a model that was not trained here, from four
    /// sentences on, unless --components gives the sums.
    #[arg(long)]
    held_out: bool,
    /// Explain all sentences of --corpus then, and fit on the same.
    #[arg(long, conflicts_with = "held_out")]
    no_held_out: bool,
    /// Which shares to show: of variance along the source, or at the highest scores.
    #[arg(long, value_enum, default_value = "centred")]
    shares: SharesName,
    /// How many of the highest scores.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// Resamples for 95 % intervals of every share, by step too.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    bootstrap: u16,
    /// Show beside them what untrained weights of the same shape give.
    #[arg(long)]
    control: bool,
    /// Show how states, components and readouts lie to each other, and what the network does without input.
    #[arg(long)]
    geometry: bool,
    /// List the sentences first in which attention drifts, misses source words or is diffuse, or which have a high loss.
    #[arg(long, value_enum)]
    rank: Option<RankName>,
    /// Rebuild attention from these pieces of the scores too: terms named by the parts of query and key, such as tt,ti, or parts of
    /// additive scores, such as qt,ki; t temporal, i input, r residual, and bias. May be given several times.
    #[arg(long, value_name = "PIECES")]
    subset: Vec<Chosen>,
    /// Explain the attention of both sides to themselves too.
    #[arg(long)]
    self_attention: bool,
    /// Sentences the model is run again on with its attention changed, 1000 unless given; 0 for none.
    #[arg(long, value_name = "N")]
    causal: Option<u64>,
    /// Let the model feed itself then, instead of what it read before.
    #[arg(long)]
    free: bool,
    /// In the causal checks, rebuild attention from the states of the changed run instead of those recorded.
    #[arg(long, conflicts_with = "free")]
    live: bool,
    /// Write the report to this file, and single sentences beside it.
    #[arg(long, value_name = "report.json")]
    save: Option<PathBuf>,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// The report as JSON on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum EstimatorName {
    /// The step first, the token from what is left.
    Paper,
    /// Both at once by least squares.
    Joint,
}

#[derive(Clone, Copy, ValueEnum)]
enum SharesName {
    /// Of the score's variance along the source.
    Centred,
    /// Of the terms' sizes at the highest scores.
    Topk,
}

#[derive(Clone, Copy, ValueEnum)]
enum RankName {
    Drift,
    Coverage,
    Entropy,
    Loss,
}

/// By how much rare tokens are shrunk.
#[derive(Clone, Copy)]
enum Shrink {
    By(f64),
    Auto,
}

impl std::str::FromStr for Shrink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse()
            .ok()
            .filter(|value: &f64| value.is_finite() && *value >= 0.0)
            .map(Self::By)
            .ok_or_else(|| "a number from 0, or `auto`".into())
    }
}

fn opened(arguments: &Arguments) -> Result<Opened, Failure> {
    if !ImportedModel::is_at(&arguments.model) {
        arguments.reading.refuse()?;
    }
    open(&arguments.model, &arguments.reading.choices(), arguments.self_attention)
}

/// Opens what can be explained, with the attention of both sides to themselves where that is asked for.
pub(crate) fn open(path: &Path, choices: &Choices, self_attention: bool) -> Result<Opened, Failure> {
    if self_attention && ImportedModel::is_at(path) {
        return Ok(Opened::Imported(Box::new(ImportedModel::open_with(path, choices, Attention::All)?)));
    }
    match Opened::open_with(path, choices)? {
        Opened::Model(model) if self_attention => Ok(Opened::Model(Box::new(TrainedModel { attention: Attention::All, ..*model }))),
        Opened::Recording(_) if self_attention => {
            let message = format!("`{}` is a recording, which has the attention it was made with", path.display());
            Err(Failure::refused(message).hint("leave --self-attention out here, and give it to `crosslens record`"))
        }
        opened => Ok(opened),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.keep_shares.as_deref().map_or(Ok(()), Totals::check_name)?;
    let (mut explained, description) = match opened(arguments)? {
        opened if !arguments.from_shares.is_empty() => explain_kept(arguments, &opened)?,
        Opened::Model(_) | Opened::Recording(_) if arguments.source.is_some() => {
            let message =
                format!("`{}` has its own sentences: --source is for models that were not trained here", arguments.model.display());
            let hint = format!("crosslens attend {} --source TEXT -o x.npz", arguments.model.display());
            return Err(Failure::refused(message).hint(hint));
        }
        Opened::Model(model) => explain_model(arguments, &model)?,
        Opened::Imported(model) => explain_imported(arguments, &model)?,
        Opened::Recording(recording) => explain_recorded(arguments, &recording)?,
    };
    explained.report.model.path = Some(arguments.model.to_string_lossy().into_owned());
    note_warnings(&explained);
    keep_shares(arguments, &explained, &description)?;
    if let Some(path) = &arguments.save {
        // Parts that were explained before have no sentences to show.
        note_left_out(if arguments.from_shares.is_empty() { Options::default().samples } else { 0 }, &explained);
        explained.save(path)?;
        output::note(&format!("the report is in {}", path.display()));
    }
    if arguments.json {
        output::result(&explained.report.to_json());
        return Ok(());
    }
    let measure = match arguments.shares {
        SharesName::Centred => "centred".to_owned(),
        SharesName::Topk => format!("top{}", arguments.k),
    };
    picture::report(&explained.report, &explained.samples, &description, &measure).iter().for_each(|line| output::result(line));
    if let Some(ranking) = &explained.report.ranking {
        output::result("");
        output::result(&format!("sentences by {}, the worst first", ranking.by));
        for sentence in &ranking.sentences {
            output::result(&format!("  {:>8}  {:.3}  {}  →  {}", sentence.number, sentence.value, sentence.source, sentence.predicted));
        }
    }
    if arguments.save.is_none() && arguments.from_shares.is_empty() {
        let control = if explained.report.task.can_rerun { " --control" } else { "" };
        let corpus = match &arguments.corpus {
            Some(corpus) => format!(" --corpus {}", corpus.display()),
            // One sentence alone is no corpus to resample.
            None if ImportedModel::is_at(&arguments.model) => " --corpus FILE".to_owned(),
            None => String::new(),
        };
        output::note(&format!("next: crosslens explain {}{corpus} --save report.json --bootstrap 200{control}", arguments.model.display()));
    }
    Ok(())
}

fn explain_model(arguments: &Arguments, model: &TrainedModel) -> Result<(Explained, Description), Failure> {
    let sentences = Sentences::choose(model, arguments.corpus.as_deref(), arguments.seed, arguments.samples.unwrap_or(1000))?;
    let subject = model.subject(1).map_err(|error| Failure::refused(format!("cannot start a thread: {error}")))?;
    let given = given_sums(arguments.components.as_deref(), &arguments.model, subject.description())?;
    let control = arguments.control.then_some(arguments.seed);
    let bar = SentenceBar::new();
    let explained = model.explain(&sentences, given.as_deref(), &options(arguments), control, &mut |progress| bar.show(progress))?;
    Ok((explained, subject.description().clone()))
}

fn explain_imported(arguments: &Arguments, model: &ImportedModel) -> Result<(Explained, Description), Failure> {
    let given = given_sums(arguments.components.as_deref(), &arguments.model, model.description())?;
    let bar = SentenceBar::new();
    let mut show = |progress| bar.show(progress);
    // The corpus first: of sounds and pictures, what is read first decides what the codes are.
    let others = arguments.corpus.as_deref().map(|corpus| model.sentences(corpus, arguments.threads, &mut show)).transpose()?;
    let asked = match &arguments.source {
        Some(source) => Some(model.sentence(source, arguments.target.as_deref(), arguments.threads)?),
        None => None,
    };
    let sentences = match (asked, others) {
        (Some(asked), Some(others)) => asked.then(others),
        (None, Some(others)) => others,
        // Sums say what a position and a token are like; without them and without others the sentence is taken for itself.
        (Some(asked), None) => asked,
        (None, None) => model.sentences(corpus_of_imported(None, &arguments.model, "explain")?, arguments.threads, &mut show)?,
    };
    if arguments.held_out && sentences.len() < 2 {
        let message = "one sentence has no two halves, to fit on and to explain";
        return Err(Failure::refused(message).hint("leave --held-out out, or more sentences with --corpus"));
    }
    // One sentence that is asked for comes first, and the first is always explained.
    let is_halved =
        arguments.corpus.is_some() && !arguments.no_held_out && ImportedSentences::are_halved(sentences.len(), given.as_deref());
    let held_out = arguments.held_out || is_halved;
    let (options, control) = (Options { held_out, ..options(arguments) }, arguments.control.then_some(arguments.seed));
    bar.aside(|| state_for_imported(model, &sentences, &options));
    let mut explained = model.explain(&sentences, given.as_deref(), &options, control, &mut show)?;
    if sentences.len() == 1 && given.is_none() {
        explained.report.corpus.warnings.push(format!("{ONE_ALONE}; --corpus FILE or --components takes them from other sentences"));
    }
    Ok((explained, model.description().clone()))
}

/// The sentences for a model that has no task to draw them from.
pub(crate) fn corpus_of_imported<'a>(corpus: Option<&'a Path>, model: &Path, command: &str) -> Result<&'a Path, Failure> {
    corpus.ok_or_else(|| {
        let message = format!("`{}` was not trained here and has no task to draw sentences from: it needs --corpus", model.display());
        Failure::refused(message).hint(format!("crosslens {command} {} --corpus words.txt, one source a line", model.display()))
    })
}

fn explain_recorded(arguments: &Arguments, recording: &Recording) -> Result<(Explained, Description), Failure> {
    let asked = [
        ("--control", arguments.control),
        ("--causal", arguments.causal.is_some_and(|n| n > 0)),
        ("--free", arguments.free),
        ("--live", arguments.live),
    ];
    if let Some((option, _)) = asked.iter().find(|(_, is_asked)| *is_asked) {
        let message = format!("`{}` is a recording, which cannot be run again: {option} needs the model", arguments.model.display());
        return Err(Failure::refused(message).hint(format!("leave {option} out, or explain the run itself")));
    }
    if arguments.corpus.is_some() {
        let message = format!("`{}` is a recording, which has its own sentences: --corpus needs the model", arguments.model.display());
        return Err(Failure::refused(message).hint("leave --corpus out, or explain the run itself"));
    }
    let given = given_sums(arguments.components.as_deref(), &arguments.model, recording.description())?;
    let n_sentences = arguments.samples.unwrap_or(u64::MAX);
    let bar = SentenceBar::new();
    let explained = explain_recording(recording, n_sentences, given.as_deref(), &options(arguments), &mut |progress| bar.show(progress))?;
    Ok((explained, recording.description().clone()))
}

/// The report of parts that were explained before.
fn explain_kept(arguments: &Arguments, opened: &Opened) -> Result<(Explained, Description), Failure> {
    let description = match opened {
        Opened::Model(model) => {
            let subject = model.subject(1).map_err(|error| Failure::refused(format!("cannot start a thread: {error}")))?;
            subject.description().clone()
        }
        Opened::Imported(model) => model.description().clone(),
        Opened::Recording(recording) => recording.description().clone(),
    };
    refuse_twice(&arguments.from_shares)?;
    let given = given_sums(arguments.components.as_deref(), &arguments.model, &description)?.unwrap_or_default();
    let options = options(arguments);
    let Totals { first, second } = Totals::load_merged(&description, &given, &options, &arguments.from_shares)?;
    let streamed = Streamed { description: &description, options: &options };
    let mut explained = streamed.conclude(first, Some(&given), second)?;
    explained.report.corpus.source = match arguments.from_shares.len() {
        1 => "a part that was explained before".to_owned(),
        n_parts => format!("{n_parts} parts that were explained before"),
    };
    if arguments.from_shares.len() > 1 {
        explained.report.corpus.warnings.push(OWN_AVERAGES.into());
    }
    Ok((explained, description))
}

/// Keeps what was counted, where that is asked for.
fn keep_shares(arguments: &Arguments, explained: &Explained, description: &Description) -> Result<(), Failure> {
    let (Some(path), Some(totals)) = (&arguments.keep_shares, &explained.totals) else { return Ok(()) };
    let given = given_sums(arguments.components.as_deref(), &arguments.model, description)?.unwrap_or_default();
    totals.save(description, &given, &options(arguments), path)?;
    let (model, path) = (arguments.model.display(), path.display());
    output::note(&format!("what was counted is in {path}; next: crosslens explain {model} --components … --from-shares {path} …"));
    Ok(())
}

/// The sums of a file, which must be those of the model.
pub(crate) fn given_sums(path: Option<&Path>, model: &Path, description: &Description) -> Result<Option<Vec<Sums>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let differ = |mismatch: Mismatch| {
        let message = format!("the sums in `{}` are not those of `{}`: {mismatch}", path.display(), model.display());
        Failure::refused(message).hint(format!("crosslens fit {} -o {}", model.display(), path.display()))
    };
    Stats::load(path)?.sums_for(description).map(Some).map_err(differ)
}

fn options(arguments: &Arguments) -> Options {
    Options {
        estimator: match arguments.estimator {
            EstimatorName::Paper => Estimator::Paper,
            EstimatorName::Joint => Estimator::Joint,
        },
        shrinkage: match arguments.shrink {
            None => Shrinkage::None,
            Some(Shrink::By(value)) => Shrinkage::Given(value),
            Some(Shrink::Auto) => Shrinkage::Estimated,
        },
        held_out: arguments.held_out,
        k: arguments.k.into(),
        bootstrap: arguments.bootstrap.into(),
        step_intervals: true,
        seed: arguments.seed,
        causal: arguments.causal.unwrap_or(1000),
        rerun: if arguments.live {
            Rerun::Live
        } else if arguments.free {
            Rerun::Free
        } else {
            Rerun::Recorded
        },
        rank: arguments.rank.map(|rank| match rank {
            RankName::Drift => Rank::Drift,
            RankName::Coverage => Rank::Coverage,
            RankName::Entropy => Rank::Entropy,
            RankName::Loss => Rank::Loss,
        }),
        geometry: arguments.geometry,
        subsets: arguments.subset.clone(),
        keep_totals: arguments.keep_shares.is_some(),
        n_threads: arguments.threads,
        ..Options::default()
    }
}
