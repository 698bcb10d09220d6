//! What a claim is.

use std::collections::BTreeMap;

use crosslens_analysis::report::{Causal, Rebuilt, SharesReport, SiteReport};
use serde::Serialize;

use super::{Figure, Study};

/// One claim and how it is tested.
pub struct Claim {
    /// Its name.
    pub id: &'static str,
    /// What is claimed.
    pub sentence: &'static str,
    /// Who claims it.
    pub origin: Origin,
    /// What it rests on once its networks do their task.
    pub proof: Proof,
    /// The specimens it is tested on, by name.
    pub networks: &'static [&'static str],
    /// Whether it is among the quick ones.
    pub is_quick: bool,
    /// The numbers it stands or falls with, the one it is known by first.
    pub measure: fn(&Evidence<'_>) -> Vec<Check>,
    /// What shows it.
    pub figure: fn(&[Evidence<'_>]) -> Figure,
}

/// Who claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper.
    Paper,
    /// The paper, in other words here, for this reason.
    Restated(&'static str),
    /// Nobody before, with a remark.
    New(&'static str),
    /// The paper or an earlier experiment, but it needs what is not at hand.
    Untested(&'static str),
}

impl Origin {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Restated(_) => "restated",
            Self::New(_) => "new",
            Self::Untested(_) => "untested",
        }
    }

    /// Why it is restated, or what it is; empty for the paper's own words.
    pub fn remark(self) -> &'static str {
        match self {
            Self::Paper => "",
            Self::Restated(remark) | Self::New(remark) | Self::Untested(remark) => remark,
        }
    }
}

/// What a claim rests on once its networks do their task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its networks run with something changed: attention, values or positions.
    Causal,
    /// How scores and states are measured; the reason why no network is changed for it.
    OfMethod(&'static str),
    /// What states are like; the reason why no network is changed for it.
    OfStates(&'static str),
}

impl Proof {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Causal => "causal",
            Self::OfMethod(_) => "method",
            Self::OfStates(_) => "states",
        }
    }

    /// Why nothing is changed; empty where something is.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Causal => "",
            Self::OfMethod(reason) | Self::OfStates(reason) => reason,
        }
    }
}

/// On which side of its floor a number must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At least the floor.
    AtLeast,
    /// At most the floor.
    AtMost,
    /// Anywhere: the number is only reported.
    Reported,
}

/// One number beside its floor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What it is.
    pub what: &'static str,
    /// What was found.
    pub value: f64,
    /// What was asked for.
    pub floor: f64,
    /// How the two are compared.
    pub bound: Bound,
    /// Whether it holds; a number that is none never does.
    pub holds: bool,
    /// Whether a network was run with something changed for it.
    pub causal: bool,
}

impl Check {
    fn new(what: &'static str, value: f64, floor: f64, bound: Bound) -> Self {
        let holds = match bound {
            Bound::AtLeast => value >= floor,
            Bound::AtMost => value <= floor,
            Bound::Reported => true,
        };
        Self { what, value, floor, bound, holds, causal: false }
    }

    /// `value ≥ floor`.
    pub fn at_least(what: &'static str, value: f64, floor: f64) -> Self {
        Self::new(what, value, floor, Bound::AtLeast)
    }

    /// `value ≤ floor`.
    pub fn at_most(what: &'static str, value: f64, floor: f64) -> Self {
        Self::new(what, value, floor, Bound::AtMost)
    }

    /// Only told.
    pub fn reported(what: &'static str, value: f64) -> Self {
        Self::new(what, value, 0.0, Bound::Reported)
    }

    /// The same number, found by running a network with something changed.
    #[must_use]
    pub fn causal(self) -> Self {
        Self { causal: true, ..self }
    }
}

/// The networks of one claim for one seed.
pub struct Evidence<'a> {
    studies: BTreeMap<&'static str, &'a Study>,
}

impl<'a> Evidence<'a> {
    /// Of these networks.
    pub fn new(studies: impl IntoIterator<Item = (&'static str, &'a Study)>) -> Self {
        Self { studies: studies.into_iter().collect() }
    }

    /// A network of the claim. Panics if the claim does not name it: a mistake in the registry, which the tests run through.
    pub fn study(&self, id: &str) -> &'a Study {
        self.studies.get(id).unwrap_or_else(|| panic!("the claim does not name the network {id}"))
    }

    /// All networks of the claim.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &'a Study)> {
        self.studies.iter().map(|(id, study)| (*id, *study))
    }

    /// The worst of a number over whole networks, for one that must be high.
    pub fn lowest_of(&self, ids: &[&str], of: impl Fn(&Study) -> f64) -> f64 {
        ids.iter().map(|id| of(self.study(id))).fold(f64::INFINITY, lower)
    }

    /// The worst of a number over whole networks, for one that must be low.
    pub fn highest_of(&self, ids: &[&str], of: impl Fn(&Study) -> f64) -> f64 {
        ids.iter().map(|id| of(self.study(id))).fold(f64::NEG_INFINITY, higher)
    }

    /// The first head of a network.
    pub fn head(&self, id: &str) -> Head<'a> {
        Head(self.study(id).site())
    }

    /// The worst of a number over networks, for one that must be high.
    pub fn lowest(&self, ids: &[&str], of: impl Fn(Head<'a>) -> f64) -> f64 {
        ids.iter().map(|id| of(self.head(id))).fold(f64::INFINITY, lower)
    }

    /// The worst of a number over networks, for one that must be low.
    pub fn highest(&self, ids: &[&str], of: impl Fn(Head<'a>) -> f64) -> f64 {
        ids.iter().map(|id| of(self.head(id))).fold(f64::NEG_INFINITY, higher)
    }
}

/// The lower of two; what is no number wins, so that it is seen.
pub(super) fn lower(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// The higher of two; what is no number wins, so that it is seen.
pub(super) fn higher(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Numbers of one head; those that are not there are no numbers, and fail every check.
#[derive(Clone, Copy)]
pub struct Head<'a>(pub(super) Option<&'a SiteReport>);

impl<'a> Head<'a> {
    fn shares(self) -> Option<&'a SharesReport> {
        self.0?.shares.as_ref()
    }

    fn rebuilt(self, name: &str) -> Option<&'a Rebuilt> {
        self.0?.rebuilt.get(name)
    }

    fn causal(self, name: &str) -> Option<&'a Causal> {
        self.rebuilt(name)?.causal.as_ref()
    }

    /// A table of shares by name.
    pub fn table(self, measure: &str) -> [[f64; 3]; 3] {
        self.shares().and_then(|shares| shares.tables.get(measure).copied()).unwrap_or([[f64::NAN; 3]; 3])
    }

    /// Share of the temporal part of both sides.
    pub fn temporal(self, measure: &str) -> f64 {
        self.table(measure)[0][0]
    }

    /// The same with untrained weights.
    pub fn untrained_temporal(self, measure: &str) -> f64 {
        let control = self.0.and_then(|site| site.control.as_ref());
        control.and_then(|shares| shares.tables.get(measure)).map_or(f64::NAN, |table| table[0][0])
    }

    /// Words right with attention rebuilt from some parts, or replaced, while the decoder reads what it writes itself.
    pub fn words(self, name: &str) -> f64 {
        self.causal(name).map_or(f64::NAN, |causal| causal.word_accuracy)
    }

    /// The same of whole phrases.
    pub fn phrases(self, name: &str) -> f64 {
        self.causal(name).map_or(f64::NAN, |causal| causal.phrase_accuracy)
    }

    /// Total variation of attention rebuilt from some parts, or of a baseline, from the true one.
    pub fn tv(self, name: &str) -> f64 {
        self.rebuilt(name).map_or(f64::NAN, |rebuilt| rebuilt.tv)
    }

    /// Share of steps at which attention rebuilt from some parts has its maximum at the same key.
    pub fn agreement(self, name: &str) -> f64 {
        self.rebuilt(name).map_or(f64::NAN, |rebuilt| rebuilt.argmax)
    }

    /// Share of the encoder's variance that neither step nor token explains.
    pub fn encoder_residual(self) -> f64 {
        self.0.map_or(f64::NAN, |site| site.variance.key.rest)
    }

    /// The same of the decoder.
    pub fn decoder_residual(self) -> f64 {
        self.0.map_or(f64::NAN, |site| site.variance.query.rest)
    }
}
