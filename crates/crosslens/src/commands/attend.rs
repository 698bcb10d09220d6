use std::path::PathBuf;

use crosslens_lab::analysis::{AttendFormat, Recordable};
use crosslens_lab::{AttendOptions, Sentence, TrainedModel};

use super::explain::given_sums;
use crate::failure::Failure;
use crate::output;
use crate::progress::SentenceBar;

/// Writes every attention matrix of a sentence to a file, and nothing else.
///
/// Arrays `cross_attentions.{layer}` have the shape [head, target, source]; so do `encoder_attentions.{layer}` and
/// `decoder_attentions.{layer}` with their own sides, where there are any. The words of both sides come along.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The sentence, words separated by blanks. Default: a fresh one of the run's task.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// What the decoder reads. Default: its own words.
    #[arg(long, value_name = "TEXT", requires = "source")]
    target: Option<String>,
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
    /// Sums to fit the components behind the terms from. Default: 1000 fresh sentences of the run's task.
    #[arg(long, value_name = "X.stats.safetensors", requires = "terms")]
    components: Option<PathBuf>,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    AttendFormat::of(&arguments.out)?;
    let model = TrainedModel::open(&arguments.model)?;
    let subject = model.subject(1).map_err(|error| Failure::refused(format!("cannot start a thread: {error}")))?;
    let given = given_sums(arguments.components.as_deref(), &arguments.model, subject.description())?;
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
    let bar = SentenceBar::new();
    let attended = model.attend(sentence, &options, &mut |progress| bar.show(progress))?;
    drop(bar);
    attended.save(&arguments.out)?;
    output::note(&format!("source:    {}", attended.source.join(" ")));
    output::note(&format!("predicted: {}", attended.predicted.join(" ")));
    for array in &attended.arrays {
        output::note(&format!("  {} {:?}", array.name, array.shape));
    }
    let out = arguments.out.display();
    output::note(&format!("saved in {out}; next: crosslens explain {}", arguments.model.display()));
    Ok(())
}
