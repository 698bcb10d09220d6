use std::path::PathBuf;

use crosslens_lab::analysis::Stats;

use crate::failure::Failure;
use crate::output;

/// Puts sums of parts of a corpus together, as if they had been made in one.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files of sums, made by `crosslens fit` from one model.
    #[arg(value_name = "X.stats.safetensors", required = true)]
    parts: Vec<PathBuf>,
    /// The file of their sum.
    #[arg(short, long, value_name = "X.stats.safetensors")]
    out: PathBuf,
}

/// Refuses a file that is named twice, in whatever way.
pub(crate) fn refuse_twice(parts: &[PathBuf]) -> Result<(), Failure> {
    for (number, part) in parts.iter().enumerate() {
        let is_same = |other: &PathBuf| std::fs::canonicalize(other).ok() == std::fs::canonicalize(part).ok() && part.exists();
        if parts[..number].iter().any(is_same) {
            return Err(Failure::usage(format!("`{}` is given twice: its sentences would count twice", part.display())));
        }
    }
    Ok(())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    refuse_twice(&arguments.parts)?;
    let merged = Stats::load_merged(&arguments.parts)?;
    merged.save(&arguments.out)?;
    let states: u64 = merged.streams.iter().map(|stream| stream.sums.n_states()).sum();
    let out = arguments.out.display();
    output::note(&format!(
        "{} files with {states} states are merged in {out}; next: crosslens explain DIR|REC --components {out}",
        arguments.parts.len()
    ));
    Ok(())
}
