//! What came out, as it is written to `reproduce.json`.

use std::path::Path;

use crosslens_analysis::explain::Options;
use crosslens_analysis::page::Page;
use crosslens_analysis::replace_file;
use serde::{Serialize, Serializer};

use super::collection::Collection;
use super::numbers::{deviation, mean};
use super::{Bound, CLAIMS, Check, Claim, Entry, Evidence, Figure, Gate, Origin, Proof, ReproduceError, Role, Scale};
use crate::{ImportedOptions, ShowOptions, Shown};

/// Sentences of each network on the page.
const SHOWN_ON_PAGE: usize = 3;

/// Every claim tested.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// By claim, in the order of the registry.
    #[serde(serialize_with = "with_proofs")]
    pub claims: Vec<ClaimOutcome>,
    /// How many hold, on every seed.
    pub held: usize,
    /// Of how many.
    pub of: usize,
    /// Whether fewer and shorter ones were tested.
    pub quick: bool,
    /// The networks, those that missed the gate included.
    pub networks: Vec<Entry>,
}

/// One claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimOutcome {
    /// Its name.
    pub id: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// `paper`, `restated`, `new` or `untested`.
    pub origin: &'static str,
    /// Why it is restated, what is new, or what it needs.
    pub remark: &'static str,
    /// What the number is.
    pub what: &'static str,
    /// Its mean over the seeds; null where it was not tested.
    pub value: Option<f64>,
    /// Its standard deviation over the seeds.
    pub spread: f64,
    /// What was asked for.
    pub floor: Option<f64>,
    /// On which side of it.
    pub bound: Option<Bound>,
    /// Whether every check holds on every seed.
    pub holds: bool,
    /// By seed.
    pub seeds: Vec<SeedOutcome>,
    /// What shows it; null where it was not tested.
    pub figure: Option<Figure>,
}

/// One claim on one seed.
#[derive(Clone, Debug, Serialize)]
pub struct SeedOutcome {
    /// The number the claim is known by; null where it is none.
    pub value: Option<f64>,
    /// Whether every check holds and every network does its task.
    pub holds: bool,
    /// Networks that should do their task and do not.
    pub missed: Vec<&'static str>,
    /// Seeds of the networks, in the order of the claim's.
    pub networks: Vec<(&'static str, u64)>,
    /// Every number.
    pub checks: Vec<Check>,
}

/// A claim as it is written: beside what came out, what it rests on.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    outcome: &'a ClaimOutcome,
    /// `causal`, `method` or `states`; null for a claim that is not in the registry.
    proof: Option<&'static str>,
    /// Why no network is changed for it; empty where one is.
    proof_reason: &'static str,
}

fn with_proofs<S: Serializer>(claims: &[ClaimOutcome], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(claims.iter().map(|outcome| {
        let proof = outcome.proof();
        Written { outcome, proof: proof.map(Proof::name), proof_reason: proof.map_or("", Proof::reason) }
    }))
}

impl ClaimOutcome {
    /// What it rests on once its networks do their task; `None` for a claim that is not in the registry.
    pub fn proof(&self) -> Option<Proof> {
        CLAIMS.iter().find(|claim| claim.id == self.id).map(|claim| claim.proof)
    }

    pub(super) fn of(claim: &Claim, n_seeds: usize, collection: &Collection<'_>) -> Self {
        let evidence = |place| {
            let study = |id: &&'static str| (*id, collection.get(id, place).expect("every network of a claim was obtained"));
            Evidence::new(claim.networks.iter().map(study))
        };
        let all: Vec<Evidence<'_>> =
            if matches!(claim.origin, Origin::Untested(_)) { Vec::new() } else { (0..n_seeds).map(evidence).collect() };
        let seeds: Vec<SeedOutcome> = all
            .iter()
            .enumerate()
            .map(|(place, evidence)| {
                let entries = claim.networks.iter().filter_map(|id| collection.entry(id, place));
                let gate = |id: &str| collection.entry(id, place).map_or(Gate::Phrases, |entry| entry.gate);
                let networks = entries.map(|entry| (entry.network, entry.seed)).collect();
                SeedOutcome { networks, ..SeedOutcome::of(claim, evidence, gate) }
            })
            .collect();
        let known_by = seeds.first().and_then(|seed| seed.checks.first().copied());
        let values: Vec<f64> = seeds.iter().filter_map(|seed| seed.value).collect();
        Self {
            id: claim.id,
            claim: claim.sentence,
            origin: claim.origin.name(),
            remark: claim.origin.remark(),
            what: known_by.map_or("", |check| check.what),
            value: (!values.is_empty()).then(|| mean(&values)),
            spread: deviation(&values),
            floor: known_by.map(|check| check.floor),
            bound: known_by.map(|check| check.bound),
            holds: !seeds.is_empty() && seeds.iter().all(|seed| seed.holds),
            figure: (!all.is_empty()).then(|| (claim.figure)(&all)),
            seeds,
        }
    }
}

impl SeedOutcome {
    /// Judges a claim by the networks of one seed: each does what its gate asks for, and every check holds.
    pub fn of(claim: &Claim, evidence: &Evidence<'_>, gate: impl Fn(&str) -> Gate) -> Self {
        let is_missing = |id: &&&'static str| !evidence.study(id).passes(gate(id));
        let missed: Vec<&'static str> = claim.networks.iter().filter(is_missing).copied().collect();
        let checks = (claim.measure)(evidence);
        Self {
            value: checks.first().map(|check| check.value).filter(|value| value.is_finite()),
            holds: missed.is_empty() && !checks.is_empty() && checks.iter().all(|check| check.holds),
            missed,
            networks: Vec::new(),
            checks,
        }
    }
}

impl Reproduction {
    pub(super) fn new(claims: Vec<ClaimOutcome>, scale: Scale, networks: Vec<Entry>) -> Self {
        let held = claims.iter().filter(|claim| claim.holds).count();
        Self { held, of: claims.len(), claims, quick: scale == Scale::Quick, networks }
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("string keys, and numbers that may be null")
    }

    /// Writes a page with the claims, their figures, and the networks of the first seed; returns its size in bytes.
    pub fn write_page(&self, path: &Path) -> Result<u64, ReproduceError> {
        let explain = Options { samples: SHOWN_ON_PAGE, ..Options::default() };
        let options = ShowOptions { n_sentences: 0, seed: 0, imported: ImportedOptions::default(), explain };
        let claims = serde_json::to_value(self).expect("string keys, and numbers that may be null");
        let mut page = Page::new().title("What holds of how encoder-decoder networks attend").claims(&claims);
        for entry in self.networks.iter().filter(|entry| entry.role.is_used() && entry.place == 0) {
            let mut shown = Shown::open(&entry.folder.join("report.json"), &options, &mut |_| ())?;
            shown.name.clone_from(&entry.about);
            page = shown.on(page);
        }
        Ok(page.write(path)?)
    }

    pub(super) fn save(&self, path: &Path) -> Result<(), ReproduceError> {
        let text = serde_json::to_string_pretty(self).expect("string keys, and numbers that may be null");
        replace_file(path, |file| file.write_all(text.as_bytes())).map_err(|source| ReproduceError::Write { path: path.to_owned(), source })
    }

    /// Networks that missed the gate.
    pub fn missed(&self) -> impl Iterator<Item = &Entry> {
        self.networks.iter().filter(|entry| matches!(entry.role, Role::Missed | Role::Replaced))
    }
}
