//! The demo: seven networks, trained and explained in about two minutes.

use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{ExplainError, Explained, Options, SaveError};
use crosslens_analysis::page::{Page, PageError};
use crosslens_analysis::report::Report;
use crosslens_nets::train::{Ending, Event, Run, RunConfig, RunFolder, Wish};

use crate::recipes::RECIPES;
use crate::recorder::{RecordedTrainError, train};
use crate::reproduce::{Watch, Work};
use crate::{ImportedOptions, OpenError, Sentences, ShowError, ShowOptions, TrainedModel};

/// One network of the demo.
#[derive(Clone, Copy, Debug)]
pub struct DemoNetwork {
    /// The recipe, and the folder it is kept in.
    pub recipe: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// In the order of the story.
pub const NETWORKS: &[DemoNetwork] = &[
    DemoNetwork { recipe: "one-to-one-aed", about: "AED on one-to-one" },
    DemoNetwork { recipe: "one-to-one-ao", about: "AO on one-to-one" },
    DemoNetwork { recipe: "one-to-one-ved", about: "VED on short one-to-one" },
    DemoNetwork { recipe: "escan-bahdanau", about: "Bahdanau on eSCAN" },
    DemoNetwork { recipe: "escan-luong", about: "Luong on eSCAN" },
    DemoNetwork { recipe: "escan-aed", about: "AED on eSCAN" },
    DemoNetwork { recipe: "escan-ao", about: "AO on the small eSCAN" },
];

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

/// Trains and explains what is missing in `folder`; `is_fresh` starts over.
pub fn demo(folder: &Path, is_fresh: bool, n_threads: usize, watch: &mut Watch<'_>) -> Result<Vec<Shown>, DemoError> {
    let mut shown = Vec::with_capacity(NETWORKS.len());
    for (place, &network) in NETWORKS.iter().enumerate() {
        let at = folder.join(network.recipe);
        let config = config(network);
        let found = if is_fresh { None } else { find(&at, &config) };
        let is_found = found.is_some();
        let work = Work::Network { number: place + 1, of: NETWORKS.len(), about: network.about, seed: config.seed, is_found };
        if watch(work) == Wish::Stop {
            return Err(DemoError::Interrupted);
        }
        let report = match found {
            Some(report) => report,
            None => study(&at, config, is_fresh, n_threads, watch)?,
        };
        shown.push(Shown { network, folder: at, report, is_found });
    }
    Ok(shown)
}

/// Writes a page with all of them in it; returns its size in bytes.
pub fn write_page(shown: &[Shown], path: &Path) -> Result<u64, DemoError> {
    let options = ShowOptions { n_sentences: N_SENTENCES, seed: FRESH, imported: ImportedOptions::default(), explain: Options::default() };
    let mut page = Page::new().title("How seven networks attend");
    for network in shown {
        let mut on_page = crate::Shown::open(&network.folder.join(REPORT_FILE), &options, &mut |_| ())?;
        on_page.name = network.network.about.to_owned();
        page = on_page.on(page);
    }
    Ok(page.write(path)?)
}

/// The recipe's configuration; networks that are done before its last step stop there.
fn config(network: DemoNetwork) -> RunConfig {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == network.recipe).expect("the demo shows shipped recipes");
    let mut config = recipe.config();
    config.training.stop_at = 1.0;
    config
}

/// The report of an earlier call, if it is whole and of the same configuration.
fn find(folder: &Path, config: &RunConfig) -> Option<Report> {
    let path = folder.join(REPORT_FILE);
    let is_same = RunFolder::at(folder).read_config().is_ok_and(|kept| kept == *config);
    if is_same { Report::load(&path).ok() } else { None }
}

fn study(folder: &Path, config: RunConfig, is_fresh: bool, n_threads: usize, watch: &mut Watch<'_>) -> Result<Report, DemoError> {
    // A report that is there belongs to the run that is about to be replaced.
    let old = folder.join(REPORT_FILE);
    match std::fs::remove_file(&old) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(DemoError::Remove { path: old, source }),
        _ => {}
    }
    let run_folder = RunFolder::at(folder);
    let is_same = run_folder.holds_checkpoint() && run_folder.read_config().is_ok_and(|kept| kept == config);
    let run = Run::prepare(config, run_folder).map_err(|error| RecordedTrainError::Train(error.into()))?;
    let trained = train(&run, n_threads, is_same && !is_fresh, &mut |event: Event<'_>| watch(Work::Training(event)))?;
    if trained.ending == Ending::Interrupted {
        return Err(DemoError::Interrupted);
    }
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
    use super::*;

    #[test]
    fn every_network_of_the_demo_is_a_recipe() {
        for network in NETWORKS {
            config(*network).check().expect("a shipped recipe");
        }
    }
}
