//! The demo: seven networks, trained and explained in about two minutes.

use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{ExplainError, Explained, Options, SaveError};
use crosslens_analysis::page::{Page, PageError};
use crosslens_analysis::replace_file;
use crosslens_analysis::report::Report;
use crosslens_nets::train::{Ending, Event, Run, RunConfig, RunFolder, Wish};

use crate::cost::cost;
use crate::recipes::RECIPES;
use crate::recorder::{RecordedTrainError, train};
use crate::reproduce::{Watch, Work};
use crate::{ImportedOptions, OpenError, Sentences, ShowError, ShowOptions, TrainedModel};

/// One network of the demo.
#[derive(Clone, Debug)]
pub struct DemoNetwork {
    /// What it is called, and the folder it is kept in.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// How it is trained.
    pub config: RunConfig,
}

/// Recipes and what they are, in the order of the story.
const NETWORKS: [(&str, &str); 7] = [
    ("one-to-one-aed", "AED on one-to-one"),
    ("one-to-one-ao", "AO on one-to-one"),
    ("one-to-one-ved", "VED on short one-to-one"),
    ("escan-bahdanau", "Bahdanau on eSCAN"),
    ("escan-luong", "Luong on eSCAN"),
    ("escan-aed", "AED on eSCAN"),
    ("escan-ao", "AO on the small eSCAN"),
];
/// What they are called.
pub const NAMES: [&str; NETWORKS.len()] = {
    let mut names = [""; NETWORKS.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = NETWORKS[place].0;
        place += 1;
    }
    names
};

/// The page, in the folder of the demo.
pub const PAGE_FILE: &str = "report.html";
/// What says that the demo made a run: its configuration, beside it, and while a run is replaced also that of the run before. A run that
/// somebody trained further or anew differs from it.
const MARK_FILE: &str = "demo.json";
/// Largest mark that is read.
const MAX_MARK_BYTES: u64 = 1 << 20;
/// Fresh sentences each is explained on, and those it is run again on.
const N_SENTENCES: u64 = 500;
const N_CAUSAL: u64 = 200;
/// Draws them.
const FRESH: u64 = 0x5EED_0006;
/// Draws the untrained weights shown for comparison.
const UNTRAINED: u64 = 7;
/// The report of a network, in its run's folder.
const REPORT_FILE: &str = "report.json";

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Training failed.
    #[error(transparent)]
    Train(#[from] RecordedTrainError),
    /// A trained network cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be explained.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// A report cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// Something the demo would replace and did not make.
    #[error("`{path}` is there already, and this demo did not make it")]
    Foreign {
        /// The run's folder or the page.
        path: PathBuf,
    },
    /// A run cannot be marked as the demo's.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An older result cannot be removed.
    #[error("cannot remove `{path}`")]
    Remove {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// What was saved cannot be shown.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The page cannot be written.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The watcher asked to stop; what was trained is kept.
    #[error("stopped; what was trained is kept")]
    Interrupted,
}

/// One network of the demo, trained and explained.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Which.
    pub network: DemoNetwork,
    /// Where its run and its report are.
    pub folder: PathBuf,
    /// What was found.
    pub report: Report,
    /// Whether it was there already.
    pub is_found: bool,
}

/// All networks of the demo: the recipes, which stop before their last step where they are done.
pub fn networks() -> Vec<DemoNetwork> {
    let network = |(name, about): (&'static str, &'static str)| {
        let recipe = RECIPES.iter().find(|recipe| recipe.name == name).expect("the demo shows shipped recipes: built in the tests");
        let mut config = recipe.config();
        config.training.stop_at = 1.0;
        DemoNetwork { name, about, config }
    };
    NETWORKS.into_iter().map(network).collect()
}

/// What each costs to train, in any unit.
pub fn costs(networks: &[DemoNetwork]) -> Vec<f64> {
    networks.iter().map(|network| cost(&network.config)).collect()
}

/// Trains and explains what is missing in `folder`; `is_fresh` starts over. What the demo did not make is never replaced.
pub fn demo(
    networks: &[DemoNetwork],
    folder: &Path,
    is_fresh: bool,
    n_threads: usize,
    watch: &mut Watch<'_>,
) -> Result<Vec<Shown>, DemoError> {
    check_is_ours(networks, folder)?;
    let mut shown = Vec::with_capacity(networks.len());
    for (place, network) in networks.iter().enumerate() {
        let at = folder.join(network.name);
        let config = &network.config;
        let found = if is_fresh { None } else { find(&at, config) };
        let is_found = found.is_some();
        let work = Work::Network { number: place + 1, of: networks.len(), about: network.about, seed: config.seed, is_found };
        if watch(work) == Wish::Stop {
            return Err(DemoError::Interrupted);
        }
        let report = match found {
            Some(report) => report,
            None => study(&at, config, is_fresh, n_threads, watch)?,
        };
        shown.push(Shown { network: network.clone(), folder: at, report, is_found });
    }
    Ok(shown)
}

/// With the others of `all` that an earlier call trained and explained in the same folder, in their order: a page of them keeps every one.
pub fn with_found(shown: &[Shown], all: &[DemoNetwork], folder: &Path) -> Vec<Shown> {
    let found = |network: &DemoNetwork| {
        let at = folder.join(network.name);
        let report = if is_ours(&at) { find(&at, &network.config) } else { None };
        report.map(|report| Shown { network: network.clone(), folder: at, report, is_found: true })
    };
    let one = |network: &DemoNetwork| shown.iter().find(|shown| shown.network.name == network.name).cloned().or_else(|| found(network));
    all.iter().filter_map(one).collect()
}

/// Writes a page with all of them in it to the folder of the demo; returns where it is.
pub fn write_page(shown: &[Shown], folder: &Path) -> Result<PathBuf, DemoError> {
    let options = ShowOptions { n_sentences: N_SENTENCES, seed: FRESH, imported: ImportedOptions::default(), explain: Options::default() };
    let mut page = Page::new().title("How these networks attend");
    for network in shown {
        let mut on_page = crate::Shown::open(&network.folder.join(REPORT_FILE), &options, &mut |_| ())?;
        on_page.name = network.network.about.to_owned();
        page = on_page.on(page);
    }
    let path = folder.join(PAGE_FILE);
    page.write(&path)?;
    Ok(path)
}

/// Before any work: every run that might be replaced, and the page, was made by a demo.
fn check_is_ours(networks: &[DemoNetwork], folder: &Path) -> Result<(), DemoError> {
    for network in networks {
        let path = folder.join(network.name);
        if !RunFolder::at(&path).is_empty() && !is_ours(&path) {
            return Err(DemoError::Foreign { path });
        }
    }
    let path = folder.join(PAGE_FILE);
    let is_beside_ours = || std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(|entry| is_ours(&entry.path())));
    if path.exists() && !is_beside_ours() { Err(DemoError::Foreign { path }) } else { Ok(()) }
}

/// Whether a folder holds a run that the demo began, as it began it.
fn is_ours(folder: &Path) -> bool {
    let run = RunFolder::at(folder);
    read_mark(folder).is_some_and(|made| !run.holds_run() || run.read_config().is_ok_and(|kept| made.contains(&kept)))
}

fn read_mark(folder: &Path) -> Option<Vec<RunConfig>> {
    let path = folder.join(MARK_FILE);
    let is_small = std::fs::metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_MARK_BYTES);
    if is_small { serde_json::from_slice(&std::fs::read(&path).ok()?).ok() } else { None }
}

fn write_mark(folder: &Path, configs: &[&RunConfig]) -> Result<(), DemoError> {
    let path = folder.join(MARK_FILE);
    let text = serde_json::to_vec_pretty(configs).expect("a configuration is tables of plain values");
    let write = || {
        std::fs::create_dir_all(folder)?;
        replace_file(&path, |file| file.write_all(&text))
    };
    write().map_err(|source| DemoError::Write { path: path.clone(), source })
}

/// Before the run that is there is replaced by one of `config`: killed until then, the folder holds the run before, which is the demo's too.
fn mark_beginning(folder: &Path, kept: Option<&RunConfig>, config: &RunConfig) -> Result<(), DemoError> {
    let made: Vec<&RunConfig> = kept.into_iter().filter(|kept| *kept != config).chain([config]).collect();
    write_mark(folder, &made)
}

/// The report of an earlier call, if it is whole and of the same configuration.
fn find(folder: &Path, config: &RunConfig) -> Option<Report> {
    let path = folder.join(REPORT_FILE);
    let is_same = RunFolder::at(folder).read_config().is_ok_and(|kept| kept == *config);
    if is_same { Report::load(&path).ok() } else { None }
}

fn study(folder: &Path, config: &RunConfig, is_fresh: bool, n_threads: usize, watch: &mut Watch<'_>) -> Result<Report, DemoError> {
    let run_folder = RunFolder::at(folder);
    let kept = run_folder.read_config().ok();
    let is_same = run_folder.holds_checkpoint() && kept.as_ref() == Some(config);
    let run = Run::prepare(config.clone(), run_folder).map_err(|error| RecordedTrainError::Train(error.into()))?;
    mark_beginning(folder, kept.as_ref(), config)?;
    // A report that is there belongs to the run that is about to be replaced.
    let old = folder.join(REPORT_FILE);
    match std::fs::remove_file(&old) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(DemoError::Remove { path: old, source }),
        _ => {}
    }
    let trained = train(&run, n_threads, is_same && !is_fresh, &mut |event: Event<'_>| watch(Work::Training(event)))?;
    if trained.ending == Ending::Interrupted {
        return Err(DemoError::Interrupted);
    }
    write_mark(folder, &[config])?;
    let model = TrainedModel::open(folder)?;
    let mut explained = explain(&model, n_threads, watch)?;
    explained.report.model.path = Some(folder.to_string_lossy().into_owned());
    explained.save(&old)?;
    Ok(explained.report)
}

fn explain(model: &TrainedModel, n_threads: usize, watch: &mut Watch<'_>) -> Result<Explained, DemoError> {
    let sentences = Sentences::Task { seed: FRESH, n_samples: N_SENTENCES };
    let options = Options { causal: N_CAUSAL, geometry: true, n_threads, ..Options::default() };
    let mut is_stopped = false;
    let explained = model.explain(&sentences, None, &options, Some(UNTRAINED), &mut |progress| {
        is_stopped |= watch(Work::Explaining(progress)) == Wish::Stop;
    })?;
    if is_stopped { Err(DemoError::Interrupted) } else { Ok(explained) }
}

impl Shown {
    /// One line: how well it does, what its scores are made of, the verdict.
    pub fn line(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", (100.0 * share).round() + 0.0);
        let phrases = percent(self.report.task.phrase_accuracy.unwrap_or_default());
        let about = self.network.about;
        let Some(site) = self.report.sites.first() else {
            let decoder = self.report.streams.iter().find(|stream| stream.name == "decoder");
            let rest = decoder.map_or(0.0, |stream| stream.variance.rest);
            return format!(
                "{about}: {phrases} of phrases right; no attention: {} of the decoder's variance is neither step nor token, the sentence it carries",
                percent(rest)
            );
        };
        let ([time, input, _], _) = site.shares.as_ref().map_or(([0.0; 3], 0.0), |shares| shares.totals());
        let verdict = &site.verdict.label;
        format!(
            "{about}: {phrases} of phrases right; scores are {} by step, {} by token, {} mixed or neither: {verdict}",
            percent(time),
            percent(input),
            percent(1.0 - time - input)
        )
    }
}

#[cfg(test)]
mod tests {
    use crosslens_nets::network::Family;

    use super::*;
    use crate::recipes::default_config;

    #[test]
    fn every_network_of_the_demo_is_a_recipe_and_its_mark_can_be_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = networks();
        assert_eq!(all.iter().map(|network| network.name).collect::<Vec<_>>(), NAMES);
        for network in &all {
            network.config.check().expect("a shipped recipe");
            write_mark(folder.path(), &[&network.config]).expect("writable");
            assert_eq!(read_mark(folder.path()), Some(vec![network.config.clone()]), "{}", network.name);
        }
    }

    /// Killed between the mark and the first file of the new run.
    #[test]
    fn a_run_about_to_be_replaced_is_still_the_demos() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let [before, after, foreign] = [3, 4, 5].map(|steps| {
            let mut config = default_config("one-to-one", Family::Ao).expect("a shipped recipe");
            (config.network.hidden, config.training.steps, config.training.batch) = (8, steps, 4);
            (config.training.evaluate_every, config.training.evaluate_samples) = (steps, 4);
            config
        });
        let run = Run::prepare(before.clone(), RunFolder::at(folder)).expect("a run");
        train(&run, 1, false, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        write_mark(folder, &[&after]).expect("writable");
        assert!(!is_ours(folder), "marked by another configuration alone");
        mark_beginning(folder, Some(&before), &after).expect("writable");
        assert!(is_ours(folder));
        mark_beginning(folder, Some(&foreign), &after).expect("writable");
        assert!(!is_ours(folder), "the run there is of neither");
    }
}
