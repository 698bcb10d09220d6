use std::path::PathBuf;

use crosslens_lab::analysis::{Existing, Fed};
use crosslens_lab::{Attention, ImportedModel, RecordOptions, Sentences, TrainedModel};

use super::explain::corpus_of_imported;
use super::opening::Opening;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Sentences whose attention is kept unless all are.
const N_KEPT: u64 = 100;

/// Keeps on disk what a network sees while it works, to be explained later or elsewhere.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("sentences").required(true).args(["samples", "corpus"]))]
pub(crate) struct Arguments {
    /// The folder of a run, or a model of another program.
    #[arg(value_name = "DIR|MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Fresh sentences of the run's task to record.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,
    /// A file of pairs instead, one a line, source and target separated by a tab; for a model of another program also sources alone, or any
    /// corpus that `train` takes.
    #[arg(long, value_name = "FILE.tsv")]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    opening: Opening,
    /// The folder of the recording.
    #[arg(short, long, value_name = "REC")]
    out: PathBuf,
    /// Keep the network's own attention of all sentences; without this, of the first 100, enough to check the explanation against.
    #[arg(long)]
    keep_attention: bool,
    /// Record the attention of both sides to themselves too.
    #[arg(long)]
    self_attention: bool,
    /// Feed the decoder the target instead of its own words.
    #[arg(long)]
    forced: bool,
    /// Replace the recording that is there.
    #[arg(long)]
    overwrite: bool,
    /// Draws the sentences.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = RecordOptions {
        fed: if arguments.forced { Fed::Target } else { Fed::Own },
        n_kept: if arguments.keep_attention { u64::MAX } else { N_KEPT },
        existing: if arguments.overwrite { Existing::Replace } else { Existing::Refuse },
        n_threads: arguments.threads,
    };
    let attention = if arguments.self_attention { Attention::All } else { Attention::Cross };
    let bar = SentenceBar::new();
    let n_sentences = if ImportedModel::is_at(&arguments.model) {
        let model = ImportedModel::open_with(&arguments.model, &arguments.opening.choices(), attention)?;
        let corpus = corpus_of_imported(arguments.corpus.as_deref(), &arguments.model, "record")?;
        let sentences = model.sentences(corpus, arguments.threads, &mut |progress| bar.show(progress))?;
        model.record(&sentences, &arguments.out, &options, &mut |done| bar.set(done, sentences.len()))?;
        sentences.len()
    } else {
        arguments.opening.refuse()?;
        let model = TrainedModel { attention, ..TrainedModel::open(&arguments.model)? };
        let sentences = Sentences::choose(&model, arguments.corpus.as_deref(), arguments.seed, arguments.samples.unwrap_or_default())?;
        model.record(&sentences, &arguments.out, &options, &mut |done| bar.set(done, sentences.len()))?;
        sentences.len()
    };
    drop(bar);
    let out = arguments.out.display();
    output::note(&format!("{n_sentences} sentences are recorded in {out}; next: crosslens explain {out}"));
    Ok(())
}
