//! The claims about how encoder-decoder networks attend, each tested on networks trained here.
//!
//! One claim is one entry of [`CLAIMS`]; the networks they are about are [`SPECIMENS`], trained once per seed and shared. Shares alone
//! prove nothing: a network must first do its task ([`Gate`]), then its shares must say what the claim says, then running it with its
//! attention changed must agree.

mod claim;
mod claims;
mod collection;
mod exactness;
mod figure;
mod looks;
mod markdown;
mod numbers;
mod outcome;
mod specimens;
mod study;
mod together;

use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::CorpusError;
use crosslens_analysis::page::PageError;
use crosslens_nets::train::Wish;

pub use claim::{Bound, Check, Claim, Evidence, Origin, Proof};
pub use claims::CLAIMS;
pub use collection::{Entry, Role, TemporalShares, Work};
pub use exactness::Exactness;
pub use figure::{Figure, Series};
pub use looks::{AtOrigin, Displacement, Follows, Looks};
pub use markdown::{Circumstances, asked, found, markdown, number};
pub use outcome::{ClaimOutcome, Reproduction, SeedOutcome};
pub use specimens::{Gate, OnCorpus, SPECIMENS, Scale, Specimen};
pub use study::{GATE, Notes, Study, StudyError, StudyOptions, StudySamples, TEXT_GATE, TEXT_WORDS};
pub use together::Together;

use crate::cost::cost;
use crate::recorder::RecordedTrainError;
use crate::{OpenError, ShowError};
use collection::{Collection, Content};

/// Is told what is done, and may ask to stop.
pub type Watch<'a> = dyn FnMut(Work<'_>) -> Wish + 'a;

/// The first seed. Nothing was trained with those from here on, nor with those of replacements, before claims and floors were as they are:
/// earlier runs had 211 to 213 and, in the place of networks that missed the gate, 311 to 313 and 411 to 413; recipes had lower ones.
pub const FIRST_SEED: u64 = 521;

/// What to reproduce.
#[derive(Clone, Debug)]
pub struct ReproduceOptions {
    /// Claims by name; all of the scale where empty.
    pub claims: Vec<String>,
    /// Seeds each claim is tested on.
    pub seeds: usize,
    /// How much is trained.
    pub scale: Scale,
    /// Real sentences in place of the miniature grammar.
    pub corpus: Option<OnCorpus>,
    /// Where networks and results are kept.
    pub out: PathBuf,
    /// Threads; 0 for one per core. No result depends on it.
    pub n_threads: usize,
}

/// Why claims could not be tested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// A claim nobody knows.
    #[error("there is no claim `{id}`")]
    UnknownClaim {
        /// What was asked for.
        id: String,
    },
    /// A claim that is only tested in full.
    #[error("the claim `{id}` is not among the quick ones")]
    NotQuick {
        /// What was asked for.
        id: String,
    },
    /// No seed.
    #[error("there must be at least one seed")]
    NoSeed,
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] RecordedTrainError),
    /// A trained network cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A trained network cannot be explained.
    #[error(transparent)]
    Study(StudyError),
    /// The watcher asked to stop; what was trained is kept.
    #[error("stopped; what was trained is kept")]
    Interrupted,
    /// A network's report cannot be shown.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The page cannot be written.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The results cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// The claims asked for, in the order of the registry.
pub fn choose(options: &ReproduceOptions) -> Result<Vec<&'static Claim>, ReproduceError> {
    for id in &options.claims {
        let Some(claim) = CLAIMS.iter().find(|claim| claim.id == id) else { return Err(ReproduceError::UnknownClaim { id: id.clone() }) };
        if options.scale == Scale::Quick && !claim.is_quick {
            return Err(ReproduceError::NotQuick { id: id.clone() });
        }
    }
    let is_chosen = |claim: &&Claim| {
        let is_asked = options.claims.is_empty() || options.claims.iter().any(|id| id == claim.id);
        is_asked && (options.scale == Scale::Full || claim.is_quick)
    };
    Ok(CLAIMS.iter().filter(is_chosen).collect())
}

/// What each network costs to train, in any unit, in the order they are taken up.
pub fn costs(options: &ReproduceOptions) -> Result<Vec<f64>, ReproduceError> {
    let of = |specimen: &&'static Specimen| cost(&specimen.config_on(options.corpus.as_ref(), options.scale, FIRST_SEED));
    Ok(wanted(&choose(options)?).iter().map(of).collect::<Vec<f64>>().repeat(options.seeds))
}

/// The networks that claims are about, in the order of the registry.
fn wanted(claims: &[&Claim]) -> Vec<&'static Specimen> {
    SPECIMENS.iter().filter(|specimen| claims.iter().any(|claim| claim.networks.contains(&specimen.id))).collect()
}

/// Trains what is missing, tests every claim asked for and writes `reproduce.json` to the folder.
pub fn reproduce<'a>(options: &ReproduceOptions, watch: &'a mut Watch<'a>) -> Result<Reproduction, ReproduceError> {
    let claims = choose(options)?;
    if options.seeds == 0 {
        return Err(ReproduceError::NoSeed);
    }
    let wanted = wanted(&claims);
    // Before anything is trained: a corpus that cannot be read is refused at once.
    let corpus = options.corpus.as_ref().filter(|_| wanted.iter().any(|specimen| specimen.is_text));
    let corpus = corpus.map(Content::of).transpose()?;
    let networks = options.out.join("networks");
    create(&networks)?;
    let mut collection = Collection::new(&networks, options, corpus, wanted.len() * options.seeds, watch);
    for place in 0..options.seeds {
        for specimen in &wanted {
            collection.obtain(specimen, place, FIRST_SEED + place as u64)?;
        }
    }
    let outcomes = claims.iter().map(|claim| ClaimOutcome::of(claim, options.seeds, &collection)).collect();
    let reproduction = Reproduction::new(outcomes, options.scale, collection.into_entries());
    reproduction.save(&options.out.join("reproduce.json"))?;
    Ok(reproduction)
}

fn create(folder: &Path) -> Result<(), ReproduceError> {
    std::fs::create_dir_all(folder).map_err(|source| ReproduceError::Write { path: folder.to_owned(), source })
}
