//! Explanations whose sentences come from outside, a batch at a time, on one machine or many.

use crosslens_kernels::Threads;
use serde::{Deserialize, Serialize};

use super::conclude::conclude;
use super::passes::{Batch, Fitted, Splitting, add_steps, check_given, first_pass, no_shares};
use super::seen::Seen;
use super::{ExplainError, Explained, FirstTotals, Options, SecondTotals};
use crate::geometry::Residual;
use crate::{AverageAttention, Consumed, Description, Outcome, Recorded, ShareTally, Stats, StreamSums, Sums, WordVariance};

/// What reports of parts put together warn of, among [`CorpusReport::warnings`](crate::report::CorpusReport::warnings), unless the parts
/// were compared with the average of all as by [`Streamed::second`] under merged sums.
pub const OWN_AVERAGES: &str = "each part was compared with the average attention of its own sentences: average_attention, \
                                rebuilt.average and claim are means of the parts, not those of one pass over all of them";

/// Why totals do not add up or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TotalsError {
    /// Totals of other things.
    #[error("totals of two explanations differ in {what}: only parts of one corpus under the same components and options add up")]
    Differ {
        /// In what.
        what: &'static str,
    },
    /// Totals of another model.
    #[error("totals are of two models, {left} and {right}: every part must be run with the same weights")]
    Model {
        /// One hash.
        left: String,
        /// The other.
        right: String,
    },
    /// Text that holds none.
    #[error("these are no totals of an explanation: {what}")]
    Unreadable {
        /// What is wrong with it.
        what: String,
    },
}

/// A model that is run elsewhere. Two passes over the same sentences explain it: [`Streamed::first`] sums states, [`Streamed::second`]
/// splits scores. What they come to merges, so that the sentences may be spread over machines; [`Streamed::conclude`] makes a report of it.
///
/// The model is never run again: causal fields stay empty.
#[derive(Clone, Copy, Debug)]
pub struct Streamed<'a> {
    /// What is recorded.
    pub description: &'a Description,
    /// How it is explained.
    pub options: &'a Options,
}

impl Streamed<'_> {
    /// Sums states and average attention. No sentence gives empty totals.
    pub fn first(&self, batches: &mut dyn Iterator<Item = Vec<Recorded>>) -> Result<FirstTotals, ExplainError> {
        let threads = Threads::new(self.options.n_threads)?;
        first_pass(self.description, self.options, &threads, &mut counted(batches), &mut |_| ())
    }

    /// Splits scores by the components of these sums, or of those given.
    pub fn second(
        &self,
        first: &FirstTotals,
        given: Option<&[Sums]>,
        batches: &mut dyn Iterator<Item = Vec<Recorded>>,
    ) -> Result<SecondTotals, ExplainError> {
        check_given(self.description, given)?;
        let threads = Threads::new(self.options.n_threads)?;
        let fitted = &Fitted::new(self.description, first, given, self.options)?;
        let Self { description, options } = *self;
        let pass = Splitting { description, options, threads: &threads, fitted, averages: &first.averages, model: None };
        pass.run(&mut counted(batches), &mut |_, _| ())
    }

    /// The report, refused where the two passes went over other sentences, by number and tokens. What was made by
    /// [`Totals::load_merged`](super::Totals::load_merged) shows no sentences.
    pub fn conclude(&self, first: FirstTotals, given: Option<&[Sums]>, second: SecondTotals) -> Result<Explained, ExplainError> {
        check_given(self.description, given)?;
        if second.n_sentences == 0 {
            return Err(ExplainError::Empty);
        }
        if first.seen != second.seen {
            return Err(ExplainError::OtherSentences { first: first.seen.n, second: second.seen.n });
        }
        second.check_ranked(self.options)?;
        let fitted = Fitted::new(self.description, &first, given, self.options)?;
        Ok(conclude(self.description, given, self.options, first, &fitted, second, None))
    }

    /// Reads what [`SecondTotals::to_json`] wrote.
    pub fn second_from_json(&self, text: &str) -> Result<SecondTotals, TotalsError> {
        let kept: Kept = serde_json::from_str(text).map_err(|error| TotalsError::Unreadable { what: error.to_string() })?;
        let mut second = SecondTotals::new(self.description, self.options);
        let mut read = SecondTotals::new(self.description, self.options);
        for (own, site) in read.sites.iter_mut().zip(&kept.sites) {
            let variants = std::mem::take(&mut own.variants);
            *own = super::passes::SiteTotals { variants, ..site.clone() };
        }
        let is_whole = kept.sites.len() == second.sites.len() && kept.word_variance.len() == second.word_variance.len();
        let mut sites = self.description.sites.iter().zip(&read.sites);
        if !is_whole || sites.any(|(site, totals)| !totals.is_whole(self.options, &no_shares(site, self.options))) {
            return Err(TotalsError::Differ { what: "what was counted" });
        }
        (read.n_sentences, read.outcome, read.has_targets, read.losses) = (kept.n_sentences, kept.outcome, kept.has_targets, kept.losses);
        (read.seen, read.word_variance) = (kept.seen, kept.word_variance);
        second.merge(&read)?;
        Ok(second)
    }
}

/// Numbers batches by the sentences before them.
fn counted(batches: &mut dyn Iterator<Item = Vec<Recorded>>) -> impl Iterator<Item = Result<Batch, ExplainError>> {
    let mut from = 0;
    batches.map(move |sentences| {
        let range = from..from + sentences.len() as u64;
        from = range.end;
        Ok(Batch { range, sentences })
    })
}

impl Explained {
    /// The explanation of the sentences of both: parts of one corpus under the same components, given to both, and the same options.
    pub fn merge(&self, other: &Self, description: &Description, given: &[Sums], options: &Options) -> Result<Self, TotalsError> {
        let kept = |explained: &Self| explained.totals.clone().ok_or(TotalsError::Differ { what: "whether totals were kept" });
        let (mut totals, others) = (*kept(self)?, kept(other)?);
        totals.first.merge(&others.first)?;
        totals.second.merge(&others.second)?;
        let unreadable = |error: ExplainError| TotalsError::Unreadable { what: error.to_string() };
        check_given(description, Some(given)).map_err(unreadable)?;
        let fitted = Fitted::new(description, &totals.first, Some(given), options).map_err(unreadable)?;
        let mut merged = conclude(description, Some(given), options, totals.first, &fitted, totals.second, None);
        merged.report.model.path.clone_from(&self.report.model.path);
        merged.report.corpus.source.clone_from(&self.report.corpus.source);
        let told = [self, other].map(|part| part.report.corpus.warnings.iter().map(String::as_str));
        let warnings = &mut merged.report.corpus.warnings;
        for warning in told.into_iter().flatten().chain([OWN_AVERAGES]) {
            if !warnings.iter().any(|known| known == warning) {
                warnings.push(warning.to_owned());
            }
        }
        Ok(merged)
    }
}

impl FirstTotals {
    /// Sentences summed.
    pub fn n_sentences(&self) -> u64 {
        self.n_fitted
    }

    /// Adds those of other sentences of the same model.
    pub fn merge(&mut self, other: &Self) -> Result<(), TotalsError> {
        let sizes = |sums: &[Sums]| sums.iter().map(Sums::d).collect::<Vec<_>>();
        let differ = |what| Err(TotalsError::Differ { what });
        if sizes(&self.fitted) != sizes(&other.fitted) || self.averages.len() != other.averages.len() {
            return differ("streams or sites");
        }
        if self.moments.is_some() != other.moments.is_some() {
            return differ("whether the geometry is asked for");
        }
        match (&mut self.held_out, &other.held_out) {
            (None, None) => {}
            (Some(left), Some(right)) => add_up(left, right),
            _ => return differ("whether sentences are held out"),
        }
        add_up(&mut self.fitted, &other.fitted);
        self.averages.iter_mut().zip(&other.averages).for_each(|(own, other)| own.merge(other));
        for moments in self.moments.iter_mut().flatten().zip(other.moments.iter().flatten()) {
            if let (Ok(own), Ok(other)) = moments {
                own.merge(other).expect("the dimensions were compared");
            }
        }
        self.n_fitted += other.n_fitted;
        self.seen.merge(&other.seen);
        Ok(())
    }

    /// The sums of every stream as they are kept in files; those of sentences held out are not among them.
    pub fn stats(&self, description: &Description) -> Stats {
        in_file(description, &self.fitted)
    }

    /// Those of sentences held out, where there are such.
    pub fn held_out_stats(&self, description: &Description) -> Option<Stats> {
        self.held_out.as_deref().map(|sums| in_file(description, sums))
    }

    /// The rest, as text: attention, how many sentences there were, and which.
    pub fn averages_json(&self) -> String {
        serde_json::to_string(&(&self.averages, self.n_fitted, self.seen)).expect("numbers only")
    }

    /// Puts totals together from [`FirstTotals::stats`], [`FirstTotals::held_out_stats`] and [`FirstTotals::averages_json`]. What the
    /// geometry needs is not among these.
    pub fn from_parts(description: &Description, stats: Stats, held_out: Option<Stats>, averages: &str) -> Result<Self, TotalsError> {
        let (averages, n_fitted, seen): (Vec<AverageAttention>, u64, Seen) =
            serde_json::from_str(averages).map_err(|error| TotalsError::Unreadable { what: error.to_string() })?;
        if let Some(other) = std::iter::once(&stats).chain(&held_out).find(|stats| stats.model_hash != description.model_hash) {
            return Err(TotalsError::Model { left: description.model_hash.clone(), right: other.model_hash.clone() });
        }
        let like = |stream: &StreamSums, consumed: Consumed, d: usize| stream.consumed == consumed && stream.sums.d() == d;
        let fits = |stats: &Stats| {
            description.streams.len() == stats.streams.len()
                && description.streams.iter().zip(&stats.streams).all(|(stream, sums)| like(sums, stream.consumed, stream.d))
        };
        if !fits(&stats) || !held_out.as_ref().is_none_or(fits) || averages.len() != description.sites.len() {
            return Err(TotalsError::Differ { what: "streams or sites" });
        }
        let sums = |stats: Stats| stats.streams.into_iter().map(|stream| stream.sums).collect();
        Ok(Self { fitted: sums(stats), held_out: held_out.map(sums), averages, moments: None, n_fitted, seen })
    }
}

fn in_file(description: &Description, sums: &[Sums]) -> Stats {
    let mut stats = Stats::new(description);
    stats.streams.iter_mut().zip(sums).for_each(|(stream, sums)| stream.sums.clone_from(sums));
    stats
}

fn add_up(left: &mut [Sums], right: &[Sums]) {
    for (left, right) in left.iter_mut().zip(right) {
        left.merge(right).expect("the dimensions were compared");
    }
}

/// What of the second pass is kept as text: all but sentences shown and causal checks.
#[derive(Serialize, Deserialize)]
struct Kept {
    sites: Vec<super::passes::SiteTotals>,
    n_sentences: u64,
    seen: Seen,
    outcome: Outcome,
    has_targets: bool,
    losses: (f64, f64),
    word_variance: Vec<WordVariance>,
}

impl SecondTotals {
    /// Sentences explained.
    pub fn n_sentences(&self) -> u64 {
        self.n_sentences
    }

    /// As text, without sentences to show, ranks and causal checks.
    pub fn to_json(&self) -> String {
        let mut sites = self.sites.clone();
        // JSON knows no infinity.
        sites.iter_mut().for_each(|site| site.attention_error = site.attention_error.map(|error| error.min(f64::MAX)));
        let kept = Kept {
            sites,
            n_sentences: self.n_sentences,
            seen: self.seen,
            outcome: self.outcome,
            has_targets: self.has_targets,
            losses: self.losses,
            word_variance: self.word_variance.clone(),
        };
        serde_json::to_string(&kept).expect("numbers only")
    }

    /// Adds those of other sentences under the same components.
    pub fn merge(&mut self, other: &Self) -> Result<(), TotalsError> {
        let is_like = self.sites.len() == other.sites.len()
            && self.word_variance.len() == other.word_variance.len()
            && self.sites.iter().zip(&other.sites).all(|(own, other)| own.is_like(other));
        if !is_like {
            return Err(TotalsError::Differ { what: "what was counted" });
        }
        self.sites.iter_mut().zip(&other.sites).for_each(|(own, other)| own.merge(other));
        self.n_sentences += other.n_sentences;
        self.seen.merge(&other.seen);
        self.outcome = self.outcome.with(&other.outcome);
        self.has_targets |= other.has_targets;
        self.losses = (self.losses.0 + other.losses.0, self.losses.1 + other.losses.1);
        self.word_variance.iter_mut().zip(&other.word_variance).for_each(|(own, other)| own.merge(other));
        self.samples.extend_from_slice(&other.samples);
        self.checks.merge(&other.checks);
        self.residuals.iter_mut().zip(&other.residuals).for_each(|(own, other)| Residual::extend(own, other));
        self.merge_ranked(&other.ranked);
        Ok(())
    }
}

impl super::passes::SiteTotals {
    fn is_like(&self, other: &Self) -> bool {
        let like = |(own, other): (&crate::ShareTally, &crate::ShareTally)| own.is_like(other);
        self.variants == other.variants
            && self.closeness.len() == other.closeness.len()
            && self.by_step.iter().zip(&other.by_step).all(like)
            && self.resampled.len() == other.resampled.len()
            && self.resampled.iter().zip(&other.resampled).all(|(own, other)| own.0.is_like(&other.0) && own.1.len() == other.1.len())
            && self.resampled_by_step.len() == other.resampled_by_step.len()
            && self.resampled_by_step.iter().zip(&other.resampled_by_step).all(|(own, other)| own.iter().zip(other).all(like))
    }

    /// Whether it counts what a site with its variants counts; `none` are its shares before any row.
    fn is_whole(&self, options: &Options, none: &ShareTally) -> bool {
        let n = self.variants.len();
        let is_whole = |shares: &ShareTally| shares.is_whole() && shares.is_like(none);
        self.closeness.len() == n
            && self.resampled.len() == options.bootstrap
            && self.by_step.iter().all(is_whole)
            && self.resampled.iter().all(|(shares, closeness)| is_whole(shares) && closeness.len() == n)
            && self.resampled_by_step.len() == if options.step_intervals { options.bootstrap } else { 0 }
            && self.resampled_by_step.iter().all(|steps| steps.len() == self.by_step.len() && steps.iter().all(is_whole))
    }

    fn merge(&mut self, other: &Self) {
        add_steps(&mut self.by_step, &other.by_step, 1.0);
        for (own, other) in self.resampled_by_step.iter_mut().zip(&other.resampled_by_step) {
            add_steps(own, other, 1.0);
        }
        for (own, other) in self.closeness.iter_mut().zip(&other.closeness) {
            own.iter_mut().zip(other).for_each(|(own, other)| own.add(other, 1.0));
        }
        for (own, other) in self.resampled.iter_mut().zip(&other.resampled) {
            own.0.add(&other.0, 1.0);
            own.1.iter_mut().zip(&other.1).for_each(|(own, other)| own.add(other, 1.0));
        }
        self.offsets.merge(&other.offsets);
        self.entropy = (self.entropy.0 + other.entropy.0, self.entropy.1 + other.entropy.1);
        if let Some((weight, total)) = other.path {
            let path = self.path.get_or_insert_default();
            *path = (path.0 + weight, path.1 + total);
        }
        (self.error, self.highest) = (self.error.max(other.error), self.highest.max(other.highest));
        self.attention_error = match (self.attention_error, other.attention_error) {
            (Some(own), Some(other)) => Some(own.max(other)),
            (own, other) => own.or(other),
        };
    }
}
