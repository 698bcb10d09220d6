use std::path::{Path, PathBuf};

use crosslens_lab::analysis::explain::{Explained, Options, SAMPLE_BYTES};
use crosslens_lab::analysis::page::Page;
use crosslens_lab::train::RunFolder;
use crosslens_lab::{ImportedModel, ImportedOptions, ImportedSentences, Opened, ShowOptions, Shown};
use serde_json::json;

use super::memory::state_for_imported;
use super::opening::Reading;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Writes one page that shows everything, for any browser, without a network.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, a recording, a model that was not trained here, or a report made by `crosslens explain --save`; several to
    /// compare them.
    #[arg(value_name = "DIR|MODEL|REC|report.json", required = true)]
    pub(super) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The page.
    #[arg(short, long, value_name = "report.html", default_value = "report.html")]
    out: PathBuf,
    /// Sentences shown one by one.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    samples: u16,
    #[command(flatten)]
    imported: ImportedArguments,
    /// Sentences on which every head of a model that was not trained here is checked by running it again; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 200)]
    causal: u64,
    /// Sentences to explain a run, a recording or a corpus on, the first ones; of a corpus of four or more one half is fitted on and the other
    /// explained, unless --components gives sums.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    sentences: u64,
    /// Draws the sentences of a run's task.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Say as JSON what was written.
    #[arg(long)]
    json: bool,
}

/// What models that were not trained here are shown with.
#[derive(clap::Args)]
pub(crate) struct ImportedArguments {
    /// Sentences for models that were not trained here, one a line: a source, or a source and a target separated by a tab or ` ||| `.
    /// Without a target the model's own is used.
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Sums that say what positions and tokens of such a model are like, made by `crosslens fit`, instead of those of --corpus.
    #[arg(long, value_name = "X.stats.safetensors")]
    components: Option<PathBuf>,
    /// Heads of self-attention too, on both sides, of such models and of runs that have it.
    #[arg(long)]
    self_attention: bool,
    #[command(flatten)]
    reading: Reading,
}

impl ImportedArguments {
    /// Refused where none of the paths is such a model: runs and recordings have their own sentences. Self-attention is asked of models and
    /// runs; of recordings and reports there is what they were made with.
    pub(crate) fn options(&self, paths: &[PathBuf], causal: u64) -> Result<ImportedOptions, Failure> {
        let Self { corpus, components, self_attention, reading } = self;
        let is_model = paths.iter().any(|path| ImportedModel::is_at(path));
        if !is_model {
            reading.refuse()?;
        }
        let options = ImportedOptions {
            corpus: corpus.clone(),
            components: components.clone(),
            self_attention: *self_attention,
            causal,
            choices: reading.choices(),
        };
        if options.is_asked() && !is_model {
            let message = "--corpus and --components are for models that were not trained here, and none is named";
            return Err(Failure::refused(message).hint("leave them out: runs and recordings have their own sentences"));
        }
        let is_kept = |path: &PathBuf| path.exists() && !RunFolder::at(path).holds_run();
        if options.self_attention && !is_model && paths.iter().all(is_kept) {
            let message =
                "--self-attention is for runs and models, and none is named: recordings and reports show what they were made with";
            return Err(Failure::refused(message).hint("give it to `crosslens record` or `crosslens heads --save`"));
        }
        Ok(options)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = ShowOptions {
        n_sentences: arguments.sentences,
        seed: arguments.seed,
        imported: arguments.imported.options(&arguments.paths, arguments.causal)?,
        explain: Options {
            samples: arguments.samples.into(),
            seed: arguments.seed,
            geometry: true,
            n_threads: arguments.threads,
            ..Options::default()
        },
    };
    let mut page = Page::new();
    let mut names = Vec::new();
    let mut n_samples = 0;
    for path in &arguments.paths {
        let shown = shown(path, &options)?;
        note_warnings(&shown.explained);
        // A saved report has the sentences it was saved with.
        if path.extension().is_none_or(|extension| extension != "json") {
            note_left_out(arguments.samples.into(), &shown.explained);
        }
        n_samples += shown.explained.samples.sentences.len();
        page = shown.on(page);
        names.push(shown.name);
    }
    let size = page.title(format!("Crosslens: {}", names.join(", "))).write(&arguments.out)?;
    let file = arguments.out.display();
    if arguments.json {
        let written = json!({ "file": file.to_string(), "bytes": size, "reports": names, "samples": n_samples });
        output::result(&written.to_string());
        return Ok(());
    }
    output::result(&format!("{file}: {}, {} with {n_samples} sentences", amount(size), counted(names.len(), "report")));
    output::note(&format!("open {file} in a browser; it needs no network"));
    Ok(())
}

/// What a page shows of a path; of a model that was not trained here it is first said what memory that takes.
fn shown(path: &Path, options: &ShowOptions) -> Result<Shown, Failure> {
    let bar = SentenceBar::new();
    let mut show = |progress| bar.show(progress);
    if !ImportedModel::is_at(path) {
        return Ok(Shown::open(path, options, &mut show)?);
    }
    match options.imported.open(path)? {
        Opened::Imported(model) => {
            let mut told = |sentences: &ImportedSentences| {
                bar.aside(|| state_for_imported(&model, sentences, &options.of_imported()));
            };
            Ok(Shown::of_imported_at(path, &model, options, &mut told, &mut show)?)
        }
        opened => Ok(Shown::of(&opened, path, options, &mut show)?),
    }
}

/// Says what is wrong with the files that were explained.
pub(crate) fn note_warnings(explained: &Explained) {
    explained.report.corpus.warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
}

/// Says that fewer sentences are shown than were asked for, where they are too large for more.
pub(crate) fn note_left_out(asked: usize, explained: &Explained) {
    let (shown, wanted) = (explained.samples.sentences.len() as u64, explained.report.corpus.pairs.min(asked as u64));
    if shown < wanted {
        let most = amount(SAMPLE_BYTES as u64);
        output::note(&format!("{shown} of {wanted} are shown one by one: the terms of all their heads are kept up to {most}"));
    }
}

pub(crate) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A size for people.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
