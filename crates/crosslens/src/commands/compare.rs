use std::path::{Path, PathBuf};

use crosslens_lab::Opened;
use crosslens_lab::analysis::explain::{ExplainError, HEADS_ANSWERED, Options};
use crosslens_lab::analysis::heads::{Head, HeadChange};
use crosslens_lab::analysis::{Description, Recordable, SiteKind};
use serde_json::json;

use super::heads::{explained, opened};
use super::opening::Reading;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;

/// Says which heads changed their nature between two models of one shape: a base and a fine-tuned one, or two checkpoints.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The first model, as `crosslens heads` takes it.
    #[arg(value_name = "A")]
    pub(super) before: PathBuf,
    /// The second.
    #[arg(value_name = "B")]
    pub(super) after: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Sentences for both, one a line: a source and a target separated by a tab or ` ||| `. Without targets each model's own are used.
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Heads of self-attention too, on both sides.
    #[arg(long)]
    self_attention: bool,
    /// Sentences on which the models are run again with each head changed; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    causal_samples: u64,
    /// Draws fresh sentences of a run.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// All heads of both as JSON on standard output.
    #[arg(long)]
    json: bool,
}

/// Kind, layer and head of all that is compared.
fn sites(arguments: &Arguments, path: &Path) -> Result<Vec<(SiteKind, usize, usize)>, Failure> {
    let places = |description: &Description| description.sites.iter().map(|site| (site.kind, site.layer, site.head)).collect();
    Ok(match opened(path, &arguments.reading, arguments.self_attention)? {
        Opened::Imported(model) => places(model.description()),
        Opened::Model(model) => places(model.subject(1).map_err(ExplainError::from)?.description()),
        Opened::Recording(_) => unreachable!("`opened` refuses recordings"),
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = Options {
        held_out: true,
        causal: arguments.causal_samples,
        answered: HEADS_ANSWERED,
        seed: arguments.seed,
        n_threads: arguments.threads,
        samples: 0,
        ..Options::default()
    };
    let heads = |path| -> Result<Vec<Head>, Failure> {
        let (explained, _) =
            explained(path, &arguments.reading, arguments.corpus.as_deref(), arguments.self_attention, "compare", &options)?;
        Ok(Head::all(&explained.report))
    };
    let unlike = || {
        let message = format!("`{}` and `{}` do not have the same heads", arguments.before.display(), arguments.after.display());
        Failure::refused(message).hint("two models of one shape; crosslens heads looks at each alone")
    };
    // What is wrong with the second is said before the first takes its time.
    if sites(arguments, &arguments.before)? != sites(arguments, &arguments.after)? {
        return Err(unlike());
    }
    let (before, after) = (heads(&arguments.before)?, heads(&arguments.after)?);
    let changes = HeadChange::all(&before, &after).ok_or_else(unlike)?;
    if arguments.json {
        output::result(&json!({ "changes": changes }).to_string());
        return Ok(());
    }
    output::result("head          before          after           moved     pos         tok         sink        rest");
    for change in &changes {
        let HeadChange { before, after, moved } = change;
        let kind = before.kind.strip_suffix("-self").unwrap_or(&before.kind);
        let name = format!("{kind} {}.{}", before.layer, before.head);
        let pair = |a: f64, b: f64| format!("{:>4.0} →{:>4.0}", 100.0 * a + 0.0, 100.0 * b + 0.0);
        let (a, b) = (before.shares, after.shares);
        let shares = [pair(a.positional, b.positional), pair(a.token, b.token), pair(a.sink, b.sink), pair(a.residual, b.residual)];
        let (before, after) = (before.label.name(), after.label.name());
        output::result(&format!("{name:<13} {before:<15} {after:<15} {:>4.0} %  {}", 100.0 * moved, shares.join("  ")));
    }
    let n_changed = changes.iter().filter(|change| change.is_another()).count();
    output::result("");
    output::result(&format!("{n_changed} of {} heads changed their label", changes.len()));
    Ok(())
}
