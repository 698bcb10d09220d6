use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Existing;
use crosslens_lab::analysis::corpus::CorpusSpec;
use crosslens_lab::network::{Cell, Family, NetworkConfig, Score};
use crosslens_lab::recipes::{TASKS, default_config, is_shipped, with_family};
use crosslens_lab::tasks::TaskConfig;
use crosslens_lab::text::Units;
use crosslens_lab::train::{Ending, FolderError, Run, RunConfig, RunFolder, TrainError, Trained, read_config};
use crosslens_lab::{CorpusWishes, FolderTaken, MissingPart, RecordedTrainError, check_parts, folder_of_new_run, train_recorded};
use serde_json::json;

use crate::failure::Failure;
use crate::progress::{CorpusBar, Shown, Style};
use crate::{choices, interrupt, output};

/// Trains a network on a task.
///
/// The defaults of a task and an architecture are the shipped configuration that was measured to solve it; where there is none, one made
/// for a similar task, and a note says so.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// A task (one-to-one, reverse, escan, scan, sort, translation), a run.toml, or with --resume a run folder.
    #[arg(value_name = "TASK|run.toml")]
    what: Option<String>,
    /// Train on a parallel corpus: a .tsv[.gz] or .jsonl[.gz] file, two files `a.en,b.fr`, a .po or .mo catalogue, or `gettext:fr` for
    /// those installed.
    #[arg(long, value_name = "CORPUS", conflicts_with = "resume")]
    corpus: Option<CorpusSpec>,
    /// With --corpus: judge on this one. Default: sentences kept from the corpus.
    #[arg(long, value_name = "CORPUS", requires = "corpus")]
    dev: Option<CorpusSpec>,
    /// With --corpus and without --dev: keep so many source sentences from training, to judge on. Default: 1000, of a small corpus a tenth.
    #[arg(long, value_name = "N", requires = "corpus", conflicts_with = "dev")]
    held_out: Option<usize>,
    /// With --corpus: leave out pairs with more words on a side. Default: 12.
    #[arg(long, value_name = "N", requires = "corpus")]
    max_words: Option<usize>,
    /// With --corpus: read so many pairs at most, all of which are held in memory. Default: 4000000.
    #[arg(long, value_name = "N", requires = "corpus")]
    max_pairs: Option<u64>,
    /// With --corpus: what sentences are cut into. Default: bpe.
    #[arg(long, value_parser = choices::units(), requires = "corpus")]
    units: Option<Units>,
    /// With --corpus: the most words of each side, or pieces of both. Default: 4000.
    #[arg(long, value_name = "N", requires = "corpus")]
    vocabulary: Option<usize>,
    /// With --corpus: keep capitals.
    #[arg(long, requires = "corpus")]
    keep_case: bool,
    /// Architecture. Default: aed, of a corpus bahdanau, or what run.toml says.
    #[arg(long, value_parser = choices::family())]
    arch: Option<Family>,
    /// Recurrent cell.
    #[arg(long, value_parser = choices::cell())]
    cell: Option<Cell>,
    /// How attention scores are formed.
    #[arg(long, value_parser = choices::score())]
    score: Option<Score>,
    /// Updates to make.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Draws start weights and sentences.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads; 0 for one per core. The result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Record the components every N updates, from before the first: timeline.json and timeline/ in the run's folder.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    record_every: Option<u64>,
    /// Where the run is saved. Default: a new folder under runs/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run that was stopped.
    #[arg(long)]
    resume: bool,
    /// Replace the run that is in the folder given by --out.
    #[arg(long, conflicts_with = "resume", requires = "out")]
    overwrite: bool,
    /// End with one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    /// How progress is shown.
    #[arg(long, value_enum, default_value_t = Style::Auto)]
    progress: Style,
    /// Show nothing but errors and the result.
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.resume { resume(arguments) } else { start(arguments) }
}

fn start(arguments: &Arguments) -> Result<(), Failure> {
    let Choice { name, config, file } = choose(arguments.what.as_deref(), arguments)?;
    let folder = new_folder(&name, arguments)?;
    announce_reading(arguments, &config);
    let mut bar = CorpusBar::new(style(arguments));
    let prepared = Run::prepare_watched(config.clone(), folder, &mut |now| bar.show(now)).map_err(Failure::from);
    drop(bar);
    let mut run = prepared.map_err(|failure| file.iter().fold(failure, |failure, file| failure.in_file(file)))?;
    announce(arguments, &config, &run);
    // Until now there is nothing to save: Ctrl-C ends the program at once, while a corpus is read too.
    interrupt::listen();
    let trained = loop {
        let mut shown = Shown::new(style(arguments));
        match train_recorded(&run, arguments.threads, false, &mut shown) {
            // Another run has taken the name since it was found free, or while a corpus was read.
            Err(RecordedTrainError::Train(TrainError::Folder(FolderError::Taken { .. }))) if arguments.out.is_none() => {
                drop(shown);
                run = run.in_folder(free_folder(&name));
                announce(arguments, &config, &run);
            }
            ended => break ended?,
        }
    };
    conclude(arguments, run.folder(), &trained)
}

fn resume(arguments: &Arguments) -> Result<(), Failure> {
    let path = match (&arguments.what, &arguments.out) {
        (Some(what), None) => PathBuf::from(what),
        (None, Some(out)) => out.clone(),
        _ => return Err(Failure::usage("--resume needs one folder of a run").hint("crosslens train runs/one-to-one-aed --resume")),
    };
    let folder = RunFolder::at(&path);
    if !folder.holds_run() || !folder.holds_checkpoint() {
        let shown = path.display();
        let hint = match folder.holds_run() {
            true => format!("crosslens train {shown}/run.toml --out {shown} --overwrite, which begins it again"),
            false => "crosslens train one-to-one --arch aed".to_owned(),
        };
        return Err(Failure::refused(format!("`{shown}` holds no run that could go on")).hint(hint));
    }
    let mut config = folder.read_config()?;
    if arguments.arch.is_some()
        || arguments.cell.is_some()
        || arguments.score.is_some()
        || arguments.seed.is_some()
        || arguments.record_every.is_some()
    {
        let message =
            format!("--arch, --cell, --score, --seed and --record-every cannot change the run in `{}`, it has begun", path.display());
        return Err(Failure::refused(message).hint("leave them out, or start a new run without --resume"));
    }
    if let Some(steps) = arguments.steps {
        config.training.steps = steps;
    }
    announce_reading(arguments, &config);
    let mut bar = CorpusBar::new(style(arguments));
    let prepared = Run::prepare_again_watched(config.clone(), folder.clone(), &mut |now| bar.show(now));
    drop(bar);
    let run = prepared.map_err(|error| Failure::from(error).in_file(&path.join("run.toml")))?;
    announce(arguments, &config, &run);
    interrupt::listen();
    let mut shown = Shown::new(style(arguments));
    let trained = train_recorded(&run, arguments.threads, true, &mut shown)?;
    drop(shown);
    conclude(arguments, &folder, &trained)
}

/// What is to be trained.
struct Choice {
    /// For the folder under runs/.
    name: String,
    config: RunConfig,
    /// Where the configuration was read from.
    file: Option<PathBuf>,
}

fn choose(what: Option<&str>, arguments: &Arguments) -> Result<Choice, Failure> {
    if let Some(corpus) = &arguments.corpus {
        return choose_corpus(corpus, arguments);
    }
    let what = what.unwrap_or("one-to-one");
    let path = Path::new(what);
    // A file or folder of a task's name does not hide the task: `./sort` is the file.
    let is_task = TASKS.contains(&what);
    let is_file = !is_task && (path.is_file() || path.extension().is_some_and(|ending| ending == "toml"));
    let (task, mut config) = if is_file {
        let mut config = read_config(path)?;
        if let Some(family) = arguments.arch.filter(|&family| family != config.network.family) {
            with_family(&mut config, family);
        }
        (config.task.name().to_owned(), config)
    } else if !is_task && path.is_dir() {
        let message = format!("`{what}` is a folder, a task or a run.toml was expected");
        return Err(Failure::usage(message).hint(format!("crosslens train {what} --resume, if it holds a run")));
    } else {
        let family = arguments.arch.unwrap_or(Family::Aed);
        let config = default_config(what, family).ok_or_else(|| unknown_task(what))?;
        if !is_shipped(what, family) && style(arguments) == Style::Auto {
            output::note(&format!(
                "note: no configuration was measured for {what} with {}; using one made for a similar task",
                family.name()
            ));
        }
        (what.to_owned(), config)
    };
    override_config(&mut config, arguments)?;
    config.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    Ok(Choice { name: format!("{task}-{}", config.network.family.name()), config, file: is_file.then(|| path.to_owned()) })
}

/// A network for a corpus, by the shipped configuration for text.
fn choose_corpus(corpus: &CorpusSpec, arguments: &Arguments) -> Result<Choice, Failure> {
    if let Some(what) = &arguments.what {
        let message = format!("`{what}` and --corpus {corpus} are two things to learn");
        return Err(Failure::usage(message).hint("one of them; a run.toml names its corpus in [task]"));
    }
    let wishes = CorpusWishes {
        dev: arguments.dev.clone(),
        held_out: arguments.held_out,
        max_words: arguments.max_words,
        max_pairs: arguments.max_pairs,
        units: arguments.units,
        vocabulary: arguments.vocabulary,
        keep_case: arguments.keep_case,
    };
    let mut config = wishes.run(corpus.clone(), arguments.arch.unwrap_or(Family::Bahdanau), arguments.steps);
    override_config(&mut config, arguments)?;
    config.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    Ok(Choice { name: format!("corpus-{}", config.network.family.name()), config, file: None })
}

fn unknown_task(what: &str) -> Failure {
    let failure = Failure::usage(format!("there is no task `{what}`; there are {}", TASKS.join(", ")));
    match choices::nearest(what, TASKS.iter().copied()) {
        Some(task) => failure.hint(format!("crosslens train {task}")),
        None => failure,
    }
}

fn override_config(config: &mut RunConfig, arguments: &Arguments) -> Result<(), Failure> {
    let NetworkConfig { cell, score, family, .. } = &mut config.network;
    *family = arguments.arch.unwrap_or(*family);
    check_parts(*family, arguments.cell, arguments.score).map_err(refused_part)?;
    *cell = arguments.cell.unwrap_or(*cell);
    *score = arguments.score.or(*score);
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.training.steps = arguments.steps.unwrap_or(config.training.steps);
    config.training.record_every = arguments.record_every.unwrap_or(config.training.record_every);
    Ok(())
}

fn refused_part(MissingPart { family, part, value, reason, others }: MissingPart) -> Failure {
    let message = format!("{} networks cannot have --{part} {value}: {reason}", family.name());
    Failure::refused(message).hint(format!("leave --{part} out; --arch {others}"))
}

/// The folder asked for, if nothing would be lost, or a new one.
fn new_folder(name: &str, arguments: &Arguments) -> Result<RunFolder, Failure> {
    let Some(out) = &arguments.out else { return Ok(free_folder(name)) };
    let existing = if arguments.overwrite { Existing::Replace } else { Existing::Refuse };
    folder_of_new_run(out, existing).map_err(|taken| {
        let hint = match &taken {
            FolderTaken::ByRun { path } => format!("crosslens train {} --resume, or --overwrite, or another --out", path.display()),
            _ => "another --out".to_owned(),
        };
        Failure::of(&taken).hint(hint)
    })
}

/// The first of `runs/NAME`, `runs/NAME-2`, … where nothing is.
fn free_folder(name: &str) -> RunFolder {
    let numbered = |number: u32| if number == 1 { format!("runs/{name}") } else { format!("runs/{name}-{number}") };
    let free = (1..).map(numbered).find(|path| !Path::new(path).exists()).expect("there are more numbers than folders");
    RunFolder::free_at(free)
}

fn style(arguments: &Arguments) -> Style {
    if arguments.quiet { Style::Off } else { arguments.progress }
}

/// Where there is no terminal for a bar, a line says why nothing happens for a while.
fn announce_reading(arguments: &Arguments, config: &RunConfig) {
    if let TaskConfig::Corpus(corpus) = &config.task
        && style(arguments) == Style::Auto
    {
        output::note(&format!("reading {} and cutting it into tokens", corpus.train));
    }
}

fn announce(arguments: &Arguments, config: &RunConfig, run: &Run) {
    if style(arguments) == Style::Json
        && let Some(became) = run.task().text().and_then(|text| text.became.as_ref())
    {
        let notes = run.task().notes();
        output::note(&json!({"event": "corpus", "became": became, "notes": notes}).to_string());
    }
    if style(arguments) != Style::Auto {
        return;
    }
    run.task().notes().iter().for_each(|note| output::note(note));
    let network = &config.network;
    let parts = match network.transformer {
        Some(own) => format!("{} + {} layers, {} heads", network.layers, own.decoder_layers.unwrap_or(network.layers), network.heads),
        None => format!("{} cell", network.cell.name()),
    };
    let score = network.score.map(|score| format!(", {} score", score.name())).unwrap_or_default();
    let gigabytes = run.training_bytes() as f64 / f64::from(1 << 30);
    let memory = if gigabytes >= 1.0 { format!(", about {gigabytes:.1} GB of memory") } else { String::new() };
    output::note(&format!(
        "{} on {}: {parts}, {} units{score}, {} parameters{memory}, seed {}, in {}",
        network.family.name(),
        config.task.name(),
        network.hidden,
        run.network().layout().len(),
        config.seed,
        run.folder().path().display()
    ));
}

fn conclude(arguments: &Arguments, folder: &RunFolder, trained: &Trained) -> Result<(), Failure> {
    let out = folder.path().display();
    let metrics = trained.metrics;
    if arguments.json {
        let line = json!({
            "out": folder.path().to_string_lossy(),
            "steps": trained.steps,
            "seconds": trained.seconds,
            "phrase_accuracy": metrics.map(|metrics| metrics.phrase_accuracy),
            "word_accuracy": metrics.map(|metrics| metrics.word_accuracy),
            "loss": metrics.map(|metrics| metrics.loss),
            "parameters": trained.parameters,
        });
        output::result(&line.to_string());
    } else if let Some(metrics) = metrics {
        output::result(&format!(
            "{:.1} % of phrases and {:.2} % of words right on fresh sentences, loss {:.4}, after {} steps in {:.1} s",
            100.0 * metrics.phrase_accuracy,
            100.0 * metrics.word_accuracy,
            metrics.loss,
            trained.steps,
            trained.seconds
        ));
    }
    if trained.ending == Ending::Interrupted {
        let message = format!("stopped after step {}; everything is saved in {out}", trained.steps);
        return Err(Failure::refused(message).hint(format!("crosslens train {out} --resume")));
    }
    if style(arguments) == Style::Auto && !arguments.json {
        output::note(&format!("saved in {out}; next: crosslens explain {out}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crosslens_lab::recipes::RECIPES;

    use super::*;

    #[test]
    fn the_defaults_of_a_task_and_an_architecture_are_the_shipped_configuration() {
        for recipe in RECIPES {
            let arguments = Arguments { what: Some(recipe.task.to_owned()), arch: Some(recipe.family), ..Arguments::default() };
            let Ok(Choice { config, file, .. }) = choose(arguments.what.as_deref(), &arguments) else {
                panic!("{} is refused", recipe.name)
            };
            assert_eq!((RunConfig { version: None, ..config }, file), (recipe.config(), None), "{}", recipe.name);
        }
    }
}
