use std::path::PathBuf;
use std::str::FromStr;

use crosslens_lab::analysis::explain::Memory;
use crosslens_lab::{ImportedModel, Opened, Sentences, Shard, fit_recording};

use super::explain::{corpus_of_imported, open};
use super::memory::state;
use super::opening::Opening;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Sums the states of a corpus: all that an explanation's components are fitted from.
///
/// A big corpus is summed in shards, by several processes or machines, and `crosslens merge` puts them together.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, a recording, or a model of another program.
    #[arg(value_name = "DIR|REC|MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Fresh sentences of the run's task, 1000 unless given; of a recording its first ones, all unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "corpus")]
    samples: Option<u64>,
    /// A file of pairs instead, one a line, source and target separated by a tab; for a model of another program also sources alone, or any
    /// corpus that `train` takes.
    #[arg(long, value_name = "FILE.tsv")]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    opening: Opening,
    /// Only every n-th sentence, beginning with the i-th.
    #[arg(long, value_name = "i/n", default_value = "1/1")]
    shard: ShardText,
    /// Sum the states behind the attention of both sides to themselves too.
    #[arg(long)]
    self_attention: bool,
    /// The file of the sums.
    #[arg(short, long, value_name = "X.stats.safetensors")]
    out: PathBuf,
    /// Draws the sentences.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

/// `i/n` on the command line.
#[derive(Clone, Copy)]
struct ShardText(Shard);

impl FromStr for ShardText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "two numbers i/n with 1 ≤ i ≤ n, such as 2/3".to_owned();
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of): (u64, u64) = (number.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if (1..=of).contains(&number) { Ok(Self(Shard { number, of })) } else { Err(wrong()) }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shard = arguments.shard.0;
    let not_empty = |n_sentences: u64| match shard.len(n_sentences) {
        0 => Err(Failure::refused(format!("shard {}/{} of {n_sentences} sentences holds none", shard.number, shard.of))),
        n => Ok(n),
    };
    let bar = SentenceBar::new();
    let mut show = |progress| bar.show(progress);
    if !ImportedModel::is_at(&arguments.model) {
        arguments.opening.refuse()?;
    }
    let (stats, n_sentences) = match open(&arguments.model, &arguments.opening.choices(), arguments.self_attention)? {
        Opened::Model(model) => {
            let n_samples = arguments.samples.unwrap_or(1000);
            let sentences = Sentences::choose(&model, arguments.corpus.as_deref(), arguments.seed, n_samples)?;
            let n_sentences = not_empty(sentences.len())?;
            (model.fit(&sentences, shard, arguments.threads, &mut show)?, n_sentences)
        }
        Opened::Imported(model) if model.reads_files() => {
            let message = format!(
                "`{}` reads sounds or pictures, whose codes are found anew in every corpus: its sums would add up to nothing",
                arguments.model.display()
            );
            return Err(Failure::refused(message).hint("explain or heads with the whole --corpus, which fits and explains in one go"));
        }
        Opened::Imported(model) => {
            let corpus = corpus_of_imported(arguments.corpus.as_deref(), &arguments.model, "fit")?;
            let (sentences, n_all) = model.sentences_of_shard(corpus, shard, arguments.threads, &mut show)?;
            let n_sentences = not_empty(n_all)?;
            let description = model.description();
            bar.aside(|| state(&Memory::of_sums(description, &sentences.extent(description)), n_sentences));
            (model.fit(&sentences, Shard::WHOLE, arguments.threads, &mut show)?, n_sentences)
        }
        Opened::Recording(recording) => {
            if arguments.corpus.is_some() {
                let message =
                    format!("`{}` is a recording, which has its own sentences: --corpus needs the model", arguments.model.display());
                return Err(Failure::refused(message).hint("leave --corpus out, or sum the run itself"));
            }
            let n_sentences = arguments.samples.unwrap_or(u64::MAX).min(recording.len());
            let n_in_shard = not_empty(n_sentences)?;
            (fit_recording(&recording, n_sentences, shard, arguments.threads, &mut show)?, n_in_shard)
        }
    };
    drop(bar);
    stats.save(&arguments.out)?;
    let (model, out) = (arguments.model.display(), arguments.out.display());
    let next = match shard {
        Shard::WHOLE => format!("crosslens explain {model} --components {out}"),
        _ => format!("crosslens merge {out} … -o all.stats.safetensors, with the other shards"),
    };
    output::note(&format!("the sums of {n_sentences} sentences are in {out}; next: {next}"));
    Ok(())
}
