use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosslens_server::{Library, Limits, OpenOptions, Preparing, Server};
use serde_json::json;

use super::report::ImportedArguments;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::progress::SentenceBar;
use crate::{interrupt, output};

/// Where runs are when none is named.
const RUNS: &str = "runs";

/// Shows reports in a browser, and lets you ask a running model: type a sentence, see it explained, decode again without some terms.
///
/// The URL is printed at once; the page shows how far the explanation of each model is, until it is there.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folders of runs, recordings, models that were not trained here (a folder of Hugging Face's, or mapped weights), and reports made by
    /// `crosslens explain --save`. Default: every run under runs/.
    #[arg(value_name = "DIR|MODEL|REC|report.json")]
    pub(super) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The port; 0 for any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// The address to listen at. Beyond this machine everybody must bring the token that is printed with the URL.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    imported: ImportedArguments,
    /// Sentences on which every head of a model that was not trained here is checked by running it again; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    causal: u64,
    /// Sentences that components are fitted on, and a first report is made from; of a corpus of four or more one half each, unless
    /// --components gives sums.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    sentences: u64,
    /// Draws the sentences of a run's task.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Say as JSON where it listens.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let paths = if arguments.paths.is_empty() { runs_here()? } else { arguments.paths.clone() };
    interrupt::listen();
    let imported = arguments.imported.options(&paths, arguments.causal)?;
    let options = OpenOptions { n_sentences: arguments.sentences, seed: arguments.seed, imported, ..OpenOptions::default() };
    let server = Server::bind(Library::open(&paths, options)?, &arguments.host, arguments.port, Limits::default())?;
    announce(arguments, &server);
    if arguments.open {
        open_browser(&server.url());
    }
    let n_served = server.library().summaries().len();
    let failures = Arc::new(Mutex::new(Vec::new()));
    let all_failed = || locked(&failures).len() == n_served;
    server.run(|| interrupt::asked() || all_failed(), watch(n_served, Arc::clone(&failures)))?;
    if all_failed()
        && let Some(last) = locked(&failures).pop()
    {
        return Err(last);
    }
    output::note("stopped");
    Ok(())
}

/// Shows how far each explanation is, and says what cannot be shown; the page shows the others.
fn watch(n_served: usize, failures: Arc<Mutex<Vec<Failure>>>) -> impl FnMut(Preparing<'_>) + Send + 'static {
    let mut bar: Option<SentenceBar> = None;
    move |told| match told {
        Preparing::Working { progress, .. } => bar.get_or_insert_with(SentenceBar::new).show(progress),
        Preparing::Failed { error, .. } => {
            bar = None;
            let failure = Failure::from(error);
            let mut failures = locked(&failures);
            // The last of all ends the program, which says it then.
            if failures.len() + 1 < n_served {
                failure.report();
            }
            failures.push(failure);
        }
        Preparing::Ready { warnings, .. } => {
            bar = None;
            warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
        }
        _ => bar = None,
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The URL first: whoever started the program in a script reads one line and goes on.
fn announce(arguments: &Arguments, server: &Server) {
    let url = server.url();
    let summaries = server.library().summaries();
    if arguments.json {
        let models: Vec<_> = summaries.iter().map(|model| json!({ "name": model.name, "live": model.is_live })).collect();
        output::result(&json!({ "url": url, "token": server.token(), "models": models }).to_string());
    } else {
        output::result(&url);
    }
    for model in summaries {
        output::note(&format!("  {}: {}{}", model.name, model.description, if model.is_live { ", answers questions" } else { "" }));
    }
    if server.token().is_some() {
        output::note("others can reach this address: who has the URL with its token can read all of the above");
        if server.address().ip().is_unspecified() {
            output::note("from elsewhere write this machine's IP address in place of localhost");
        }
    }
    output::note("Ctrl-C stops it");
}

/// Every run under `runs/`, by name.
fn runs_here() -> Result<Vec<PathBuf>, Failure> {
    let folders = std::fs::read_dir(RUNS).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = folders.filter(|path| path.join("run.toml").is_file()).collect();
    runs.sort();
    if runs.is_empty() {
        return Err(
            Failure::refused("there is no run under runs/ and nothing else was named").hint("crosslens train one-to-one --arch aed")
        );
    }
    Ok(runs)
}

/// As the user's system does it; without one that can, the URL is on the screen all the same.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if started.is_err() {
        output::note(&format!("`{program}` cannot be started; open the URL yourself"));
    }
}
