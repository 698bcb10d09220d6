use std::path::PathBuf;

use crosslens_lab::TrainedModel;
use crosslens_lab::network::{Engine, Feeding, Outcome};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;

/// Judges a trained network on fresh sentences, free-running and teacher-forced.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// Fresh sentences to try.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Draws the sentences; the run's own seed gives those of its log.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// One line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TrainedModel::open(&arguments.model)?;
    let cannot = |error| Failure::refused(format!("cannot start {} threads: {error}", arguments.threads));
    let mut engine = Engine::new(arguments.threads).map_err(cannot)?;
    let mut judge = |feeding| model.evaluate(&mut engine, arguments.seed, arguments.samples as usize, feeding);
    let (free, forced) = (judge(Feeding::Free), judge(Feeding::Forced));
    if arguments.json {
        let line = json!({
            "model": arguments.model.to_string_lossy(),
            "samples": arguments.samples,
            "seed": arguments.seed,
            "free": numbers(&free),
            "forced": numbers(&forced),
        });
        output::result(&line.to_string());
        return Ok(());
    }
    output::result("                 phrases right   words right     loss");
    for (name, outcome) in [("free-running", free), ("teacher-forced", forced)] {
        output::result(&format!(
            "{name:<16} {:>11.2} % {:>11.2} % {:>8.4}",
            100.0 * outcome.phrase_accuracy(),
            100.0 * outcome.word_accuracy(),
            outcome.loss
        ));
    }
    Ok(())
}

fn numbers(outcome: &Outcome) -> Value {
    json!({"phrase_accuracy": outcome.phrase_accuracy(), "word_accuracy": outcome.word_accuracy(), "loss": outcome.loss})
}
