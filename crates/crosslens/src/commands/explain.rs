use std::path::PathBuf;

use clap::ValueEnum;
use crosslens_lab::analysis::explain::{Options, Phase, Progress, Rank};
use crosslens_lab::analysis::{Estimator, Recordable, Shrinkage};
use crosslens_lab::{Sentences, TrainedModel};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::{output, picture};

/// Says how a network forms its attention, in numbers and in words.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// Fresh sentences of the run's task to explain it on.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "corpus")]
    samples: u64,
    /// A file of pairs instead, one a line, source and target separated by a tab.
    #[arg(long, value_name = "FILE.tsv")]
    corpus: Option<PathBuf>,
    /// Draws the sentences, the resamples and the untrained weights.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// How steps and tokens share what both explain.
    #[arg(long, value_enum, default_value = "paper")]
    estimator: EstimatorName,
    /// Pull rare tokens towards nothing by so many observations, or by as many as the data suggest.
    #[arg(long, value_name = "N|auto")]
    shrink: Option<Shrink>,
    /// Fit on one half of the sentences and explain the other.
    #[arg(long)]
    held_out: bool,
    /// Which shares to show: of variance along the source, or at the highest scores.
    #[arg(long, value_enum, default_value = "centred")]
    shares: SharesName,
    /// How many of the highest scores.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// Resamples for 95 % intervals of every share.
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
    /// Sentences the model is run again on with its attention changed; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    causal: u64,
    /// Let the model feed itself then, instead of what it read before.
    #[arg(long)]
    free: bool,
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

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TrainedModel::open(&arguments.model)?;
    let sentences = match &arguments.corpus {
        Some(path) => Sentences::read(path, &model)?,
        None => Sentences::Task { seed: arguments.seed, n_samples: arguments.samples },
    };
    let options = Options {
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
        seed: arguments.seed,
        causal: arguments.causal,
        causal_free: arguments.free,
        rank: arguments.rank.map(|rank| match rank {
            RankName::Drift => Rank::Drift,
            RankName::Coverage => Rank::Coverage,
            RankName::Entropy => Rank::Entropy,
            RankName::Loss => Rank::Loss,
        }),
        geometry: arguments.geometry,
        n_threads: arguments.threads,
        ..Options::default()
    };
    let bar = bar();
    let control = arguments.control.then_some(arguments.seed);
    let mut explained = model.explain(&sentences, None, &options, control, &mut |progress| show(&bar, progress))?;
    bar.finish_and_clear();
    explained.report.model.path = Some(arguments.model.to_string_lossy().into_owned());
    if let Some(path) = &arguments.save {
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
    let subject = model.subject(1).map_err(|error| Failure::refused(format!("cannot start a thread: {error}")))?;
    picture::report(&explained.report, &explained.samples, subject.description(), &measure).iter().for_each(|line| output::result(line));
    if let Some(ranking) = &explained.report.ranking {
        output::result("");
        output::result(&format!("sentences by {}, the worst first", ranking.by));
        for sentence in &ranking.sentences {
            output::result(&format!("  {:>8}  {:.3}  {}  →  {}", sentence.number, sentence.value, sentence.source, sentence.predicted));
        }
    }
    if arguments.save.is_none() {
        output::note(&format!("next: crosslens explain {} --save report.json --bootstrap 200 --control", arguments.model.display()));
    }
    Ok(())
}

fn bar() -> ProgressBar {
    const TEMPLATE: &str = "{bar:30} {pos}/{len} sentences, {eta} left  {msg}";
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is written here").progress_chars("━╸ "));
    bar
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
    bar.set_message(match progress.phase {
        Phase::Fitting => "summing states",
        Phase::Splitting => "splitting scores",
        Phase::Checking => "splitting scores and running the network again",
    });
}
