//! The passes over a corpus.

use std::cell::Cell;

use crosslens_kernels::Threads;
use serde::{Deserialize, Serialize};

use super::answered::Answered;
use super::bootstrap::{mix, weight};
use super::causal::Checks;
use super::conclude::conclude;
use super::measure::{Basis, Measures, Variant, measure, variants};
use super::samples::{Sample, Samples};
use super::seen::Seen;
use super::{Corpus, ExplainError, Options, Phase, Progress, Rank};
use crate::components::WordVariance;
use crate::geometry::{Moments, PcaError, Residual};
use crate::report::*;
use crate::{
    AverageAttention, Breakdown, ClosenessTally, Components, Description, Fit, MAX_STEPS, N_PARTS, N_TERMS, Offsets, Outcome, Recordable,
    Recorded, ShareTally, Side, Site, SiteSplit, Sums, Variance,
};

/// Larger errors than this, and no share is given.
pub(super) const MAX_ERROR: f64 = 1e-4;
/// Most cells of one sentence's attention at one head: a thread has nine numbers for each in hand.
pub const MAX_CELLS: usize = 1 << 24;
/// What the sentences kept for a page may take together. Of 30 seconds of sound, a head and a row have 1500 weights and nine terms each.
pub const SAMPLE_BYTES: usize = 512 << 20;
/// Worst sentences listed.
const RANKED: usize = 20;

/// An explanation and the sentences that show it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What was found.
    pub report: Report,
    /// Some sentences in full.
    pub samples: Samples,
    /// What was counted, where it was asked for.
    pub totals: Option<Box<Totals>>,
}

/// What both passes came to.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Sums and average attention.
    pub first: FirstTotals,
    /// Shares before they are ratios.
    pub second: SecondTotals,
}

/// Sentences that lie together in a corpus.
pub(super) struct Batch {
    pub(super) range: std::ops::Range<u64>,
    pub(super) sentences: Vec<Recorded>,
}

/// What a pass reads, in order.
pub(super) type Batches<'b> = dyn Iterator<Item = Result<Batch, ExplainError>> + 'b;

/// Explains a model's attention over a corpus.
///
/// `given` are sums of each stream, from other sentences or another machine; without them the corpus itself is summed first.
pub fn explain(
    corpus: &dyn Corpus,
    given: Option<&[Sums]>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Explained, ExplainError> {
    let total = corpus.n_sentences();
    if total == 0 {
        return Err(ExplainError::Empty);
    }
    let description = corpus.description();
    let threads = Threads::new(options.n_threads)?;
    check_given(description, given)?;
    let n_unanswered = Cell::new(0);
    let in_batches = |pass: Pass| {
        let (threads, n_unanswered, mut n_read) = (&threads, &n_unanswered, 0);
        batches(corpus).enumerate().map(move |(batch, range)| {
            if options.stop.is_set() {
                return Err(ExplainError::Stopped);
            }
            let (wanted, is_answered) = match pass {
                Pass::First => (Wanted::States, true),
                Pass::Second(answered) => {
                    let is_answered = n_read < options.causal.max(options.samples as u64) || answered.has(batch as u64);
                    (Wanted::of(options.held_out, is_answered), is_answered)
                }
            };
            let sentences = read(corpus, range.clone(), wanted, threads)?;
            n_read += sentences.len() as u64;
            if !is_answered {
                let n = sentences.iter().filter(|sentence| sentence.predicted.is_empty()).count();
                n_unanswered.set(n_unanswered.get() + n as u64);
            }
            Ok(Batch { sentences, range })
        })
    };
    let first = first_pass(description, options, &threads, &mut in_batches(Pass::First), &mut |done| {
        progress(Progress { phase: Phase::Fitting, done, total });
    })?;
    let fitted = Fitted::new(description, &first, given, options)?;
    let pass = Splitting { description, options, threads: &threads, fitted: &fitted, averages: &first.averages, model: corpus.model() };
    let answered = Answered::of(corpus, options);
    let second = pass.run(&mut in_batches(Pass::Second(answered)), &mut |phase, done| progress(Progress { phase, done, total }))?;
    second.check_ranked(options)?;
    let mut explained = conclude(description, given, options, first, &fitted, second, corpus.model());
    if n_unanswered.get() > 0 {
        let CorpusReport { pairs, warnings, .. } = &mut explained.report.corpus;
        warnings.push(format!("accuracy and loss are of {} of the {pairs} sentences that are explained", *pairs - n_unanswered.get()));
    }
    Ok(explained)
}

/// The two times that sentences are read.
#[derive(Clone, Copy)]
enum Pass {
    First,
    Second(Answered),
}

/// Refuses sums of other states.
pub(super) fn check_given(description: &Description, given: Option<&[Sums]>) -> Result<(), ExplainError> {
    let Some(given) = given else { return Ok(()) };
    let sizes = |d: &mut dyn Iterator<Item = usize>| d.map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
    let (given, expected) = (sizes(&mut given.iter().map(Sums::d)), sizes(&mut description.streams.iter().map(|stream| stream.d)));
    if given != expected {
        return Err(ExplainError::OtherSums { given: format!("{given} dimensions"), expected });
    }
    Ok(())
}

/// Refuses what no sentence could answer: ranks by attention where there is none, and pieces of scores that no head has.
fn check_options(description: &Description, options: &Options) -> Result<(), ExplainError> {
    if let Some(by) = options.rank.filter(|&by| by != Rank::Loss && description.sites.is_empty()) {
        return Err(ExplainError::Rank { by: by.name(), why: "the network has no attention" });
    }
    let is_of_no_site = |chosen: &&super::Chosen| !description.sites.iter().any(|site| site.map.is_additive() == chosen.is_additive());
    let Some(chosen) = options.subsets.iter().find(is_of_no_site) else { return Ok(()) };
    let why = match (description.sites.is_empty(), chosen.is_additive()) {
        (true, _) => "the network has no attention",
        (false, true) => "no score is additive: name terms, tt to rr",
        (false, false) => "every score is additive: name parts, qt to kr",
    };
    Err(ExplainError::Subset { subset: chosen.to_string(), why })
}

/// Refuses sentences whose attention would not fit into memory.
fn check_lengths(description: &Description, sentences: &[Recorded]) -> Result<(), ExplainError> {
    for sentence in sentences {
        let steps = |stream: usize| sentence.n_steps(description.streams[stream].side);
        let is_large = |site: &Site| steps(site.query).saturating_mul(steps(site.key)) > MAX_CELLS;
        let (source_steps, target_steps) = (sentence.n_steps(Side::Source), sentence.n_steps(Side::Target));
        if source_steps.max(target_steps) > MAX_STEPS || description.sites.iter().any(is_large) {
            return Err(ExplainError::TooLong { sentence: sentence.number, source_steps, target_steps });
        }
    }
    Ok(())
}

/// Components of every stream, and what of its variance they explain.
pub(super) struct Fitted {
    pub(super) fits: Vec<(Fit<f32>, Variance)>,
    pub(super) components: Vec<Components<f32>>,
}

impl Fitted {
    pub(super) fn new(
        description: &Description,
        first: &FirstTotals,
        given: Option<&[Sums]>,
        options: &Options,
    ) -> Result<Self, ExplainError> {
        for (stream, (fitted, explained)) in description.streams.iter().zip(first.fitted.iter().zip(first.explained())) {
            if !(fitted.is_finite() && explained.is_finite()) {
                return Err(ExplainError::States { stream: stream.name.clone() });
            }
        }
        let mut fits = Vec::new();
        for (number, stream) in description.streams.iter().enumerate() {
            let sums = given.map_or(&first.fitted[number], |given| &given[number]);
            let cannot = |source| ExplainError::Fit { stream: stream.name.clone(), source };
            let fit: Fit<f32> = sums.fit(options.estimator, options.shrinkage).map_err(cannot)?;
            let variance = first.explained()[number].variance_under(sums, options.estimator, fit.shrinkage).map_err(cannot)?;
            fits.push((fit, variance));
        }
        let components = fits.iter().map(|(fit, _)| fit.components.clone()).collect();
        Ok(Self { fits, components })
    }
}

/// Whether a sentence belongs to the half that components are fitted on: of every two that follow each other one, by chance.
fn is_fitted(number: u64) -> bool {
    (mix(number / 2) ^ number) & 1 == 0
}

/// What the first pass over sentences comes to: the sums of every stream and the average attention of every site.
#[derive(Clone, Debug)]
pub struct FirstTotals {
    /// By stream: the sentences to fit on.
    pub(super) fitted: Vec<Sums>,
    /// Those to explain; none where they are the same.
    pub(super) held_out: Option<Vec<Sums>>,
    pub(super) averages: Vec<AverageAttention>,
    /// By stream, of all sentences, where the geometry is asked for and the states are not too wide for it.
    pub(super) moments: Option<Vec<Result<Moments, PcaError>>>,
    pub(super) n_fitted: u64,
    /// Those to fit on and those to explain.
    pub(super) seen: Seen,
}

impl FirstTotals {
    /// By stream: the sentences to explain.
    pub(super) fn explained(&self) -> &[Sums] {
        self.held_out.as_ref().unwrap_or(&self.fitted)
    }
}

/// All sentences, a few at a time.
pub(crate) fn batches(corpus: &dyn Corpus) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
    let (n_sentences, size) = (corpus.n_sentences(), corpus.batch_size().max(1));
    (0..n_sentences.div_ceil(size)).map(move |batch| batch * size..((batch + 1) * size).min(n_sentences))
}

/// What a pass needs of the sentences it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Of all of them states and attention.
    States,
    /// Of all of them everything.
    All,
    /// Everything, of those that components are not fitted on.
    HeldOut,
    /// Of these states and attention.
    HeldOutStates,
}

impl Wanted {
    /// In the second pass.
    fn of(held_out: bool, is_answered: bool) -> Self {
        match (held_out, is_answered) {
            (true, true) => Self::HeldOut,
            (false, true) => Self::All,
            (true, false) => Self::HeldOutStates,
            (false, false) => Self::States,
        }
    }

    fn read(self, corpus: &dyn Corpus, range: std::ops::Range<u64>) -> Result<Vec<Recorded>, super::CorpusError> {
        match self {
            Self::States => corpus.read_states(range),
            Self::All => corpus.read(range),
            Self::HeldOut => corpus.read_wanted(range, |number| !is_fitted(number)),
            Self::HeldOutStates => corpus.read_wanted_states(range, |number| !is_fitted(number)),
        }
    }
}

/// Reads sentences, where the corpus allows it on all threads, a part each. They come in their order, whatever the number of parts, so that
/// nothing that is summed over them depends on it.
pub(crate) fn read(
    corpus: &dyn Corpus,
    range: std::ops::Range<u64>,
    wanted: Wanted,
    threads: &Threads,
) -> Result<Vec<Recorded>, ExplainError> {
    let (from, to) = (range.start, range.end);
    let cannot = |source| ExplainError::Corpus { from, to, source };
    let (n_sentences, n_threads) = (to - from, threads.count() as u64);
    if n_threads == 1 || !corpus.is_read_in_parts() {
        return wanted.read(corpus, range).map_err(cannot);
    }
    let n_parts = n_threads.min(n_sentences).max(1);
    let place = |part: u64| from + part * n_sentences / n_parts;
    type Part = (std::ops::Range<u64>, Result<Vec<Recorded>, super::CorpusError>);
    let mut parts: Vec<Part> = (0..n_parts).map(|part| (place(part)..place(part + 1), Ok(Vec::new()))).collect();
    threads.for_each(&mut parts, |_, (range, sentences)| *sentences = wanted.read(corpus, range.clone()));
    let mut sentences = Vec::new();
    for (_, part) in parts {
        sentences.append(&mut part.map_err(cannot)?);
    }
    Ok(sentences)
}

/// Sums states and attention; `progress` is told up to where.
pub(super) fn first_pass(
    description: &Description,
    options: &Options,
    threads: &Threads,
    batches: &mut Batches<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<FirstTotals, ExplainError> {
    check_options(description, options)?;
    let nothing: Vec<Components<f32>> = description.streams.iter().map(|stream| Components::nothing(stream.d)).collect();
    let splits = description
        .sites
        .iter()
        .map(|site| SiteSplit::new(description, site, &nothing[site.query], &nothing[site.key]))
        .collect::<Result<Vec<_>, _>>()?;
    // One piece of work per stream and per site, each in the order of the sentences: the sums do not depend on threads.
    enum Work {
        Stream(usize, Sums, Sums),
        Moments(usize, Result<Moments, PcaError>),
        Site(usize, AverageAttention, Breakdown<f32>),
    }
    let streams =
        description.streams.iter().enumerate().map(|(number, stream)| Work::Stream(number, Sums::new(stream.d), Sums::new(stream.d)));
    let sites = (0..splits.len()).map(|site| Work::Site(site, AverageAttention::default(), Breakdown::default()));
    let moments = description.streams.iter().enumerate().map(|(number, stream)| Work::Moments(number, Moments::new(stream.d)));
    let moments = moments.take(if options.geometry { description.streams.len() } else { 0 });
    let mut work: Vec<Work> = streams.chain(moments).chain(sites).collect();
    let (mut n_fitted, mut seen) = (0, Seen::default());
    for batch in batches {
        let Batch { range, sentences: batch } = batch?;
        check_lengths(description, &batch)?;
        batch.iter().for_each(|sentence| seen.add(sentence));
        n_fitted += batch.iter().filter(|sentence| !options.held_out || is_fitted(sentence.number)).count() as u64;
        let fits = |sentence: &Recorded| !options.held_out || is_fitted(sentence.number);
        threads.for_each(&mut work, |_, work| match work {
            Work::Stream(number, fitted, explained) => {
                let stream = &description.streams[*number];
                let tokens: Vec<_> = batch.iter().map(|sentence| sentence.tokens(stream, description.words(stream.side))).collect();
                for (sums, wanted) in [(fitted, true), (explained, false)] {
                    let chosen = batch.iter().zip(&tokens).filter(|(sentence, _)| fits(sentence) == wanted);
                    sums.add_all(&chosen.map(|(sentence, tokens)| (&tokens[..], &sentence.states[*number][..])).collect::<Vec<_>>());
                }
            }
            Work::Moments(number, Ok(moments)) => batch.iter().for_each(|sentence| moments.add(&sentence.states[*number])),
            Work::Moments(_, Err(_)) => {}
            Work::Site(site, average, breakdown) => {
                for sentence in batch.iter().filter(|sentence| !options.held_out || !fits(sentence)) {
                    add_average(&splits[*site], *site, sentence, average, breakdown);
                }
            }
        });
        progress(range.end);
    }
    let mut first = FirstTotals {
        fitted: Vec::new(),
        held_out: options.held_out.then(Vec::new),
        averages: Vec::new(),
        moments: options.geometry.then(Vec::new),
        n_fitted,
        seen,
    };
    for work in work {
        match work {
            Work::Stream(_, fitted, explained) => {
                first.fitted.push(fitted);
                if let Some(held_out) = &mut first.held_out {
                    held_out.push(explained);
                }
            }
            Work::Moments(_, moments) => first.moments.get_or_insert_default().push(moments),
            Work::Site(_, average, _) => first.averages.push(average),
        }
    }
    Ok(first)
}

/// Adds a sentence's attention: the model's own where it was recorded and is made of numbers, else that of its scores.
fn add_average(
    split: &SiteSplit<'_, f32>,
    site: usize,
    sentence: &Recorded,
    average: &mut AverageAttention,
    breakdown: &mut Breakdown<f32>,
) {
    let is_known = |weights: &&Vec<f32>| !weights.is_empty() && weights.iter().all(|weight| weight.is_finite());
    if let Some(weights) = sentence.attention.get(site).filter(is_known) {
        let n_keys = split.n_keys(sentence);
        for (query, row) in weights.chunks_exact(n_keys.max(1)).enumerate() {
            average.add_row(query, &row[..split.site().visible.n_keys(query, n_keys)]);
        }
        return;
    }
    split.split(sentence, breakdown);
    let (mut scores, mut weights) = (Vec::new(), Vec::new());
    split.scores(sentence, breakdown, &mut scores);
    for (query, row) in scores.chunks_exact(breakdown.n_keys().max(1)).enumerate() {
        crate::shares::weights(&row[..breakdown.n_visible(query)], &mut weights);
        average.add_row(query, &weights);
    }
}

/// What the second pass found at one site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SiteTotals {
    /// They follow from the site and the options.
    #[serde(skip)]
    pub(super) variants: Vec<Variant>,
    pub(super) by_step: Vec<ShareTally>,
    pub(super) closeness: Vec<[ClosenessTally; 2]>,
    pub(super) offsets: Offsets,
    /// Sum of the sentences' mean entropies, and how many there are.
    pub(super) entropy: (f64, u64),
    /// Weight along monotone paths and all weight, where they are looked for.
    pub(super) path: Option<(f64, f64)>,
    pub(super) error: f64,
    pub(super) highest: f64,
    pub(super) attention_error: Option<f64>,
    /// By resample: shares, and closeness by variant.
    pub(super) resampled: Vec<(ShareTally, Vec<ClosenessTally>)>,
    /// By resample, then query step; empty where that is not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) resampled_by_step: Vec<Vec<ShareTally>>,
}

/// What the second pass over sentences comes to: the shares of every site, before they are made ratios.
#[derive(Clone, Debug)]
pub struct SecondTotals {
    pub(super) sites: Vec<SiteTotals>,
    pub(super) n_sentences: u64,
    /// Those that are explained and those that are not.
    pub(super) seen: Seen,
    pub(super) outcome: Outcome,
    pub(super) has_targets: bool,
    pub(super) losses: (f64, f64),
    pub(super) word_variance: Vec<WordVariance>,
    pub(super) checks: Checks,
    pub(super) samples: Vec<Sample>,
    /// By stream: the residuals of the first states, where the geometry is asked for.
    pub(super) residuals: Vec<Vec<Residual>>,
    pub(super) ranked: Vec<(f64, Recorded)>,
}

impl SecondTotals {
    pub(super) fn loss(&self) -> Option<f64> {
        (self.losses.1 > 0.0).then(|| self.losses.0 / self.losses.1)
    }

    /// Refuses a list by losses where there are none.
    pub(super) fn check_ranked(&self, options: &Options) -> Result<(), ExplainError> {
        match options.rank.filter(|&by| by == Rank::Loss && self.ranked.is_empty() && self.loss().is_none() && self.n_sentences > 0) {
            Some(by) => Err(ExplainError::Rank { by: by.name(), why: "no sentence has a loss, which needs a target" }),
            None => Ok(()),
        }
    }
}

/// The second pass: everything it needs besides sentences.
pub(super) struct Splitting<'a> {
    pub(super) description: &'a Description,
    pub(super) options: &'a Options,
    pub(super) threads: &'a Threads,
    pub(super) fitted: &'a Fitted,
    /// By site.
    pub(super) averages: &'a [AverageAttention],
    /// Run again under changes, where it can be.
    pub(super) model: Option<&'a dyn Recordable>,
}

impl SecondTotals {
    /// Nothing yet.
    pub(super) fn new(description: &Description, options: &Options) -> Self {
        let of_site = |site: &Site| variants(site.map.is_additive(), site.map.position_bias().is_some(), &options.subsets);
        let site_variants: Vec<Vec<Variant>> = description.sites.iter().map(of_site).collect();
        let sites = site_variants.iter().enumerate().map(|(site, variants)| SiteTotals {
            variants: variants.clone(),
            by_step: Vec::new(),
            closeness: vec![Default::default(); variants.len()],
            offsets: Offsets::default(),
            entropy: (0.0, 0),
            path: None,
            error: 0.0,
            highest: 0.0,
            attention_error: None,
            resampled: vec![
                (no_shares(&description.sites[site], options), vec![ClosenessTally::default(); variants.len()]);
                options.bootstrap
            ],
            resampled_by_step: vec![Vec::new(); if options.step_intervals { options.bootstrap } else { 0 }],
        });
        Self {
            sites: sites.collect(),
            n_sentences: 0,
            seen: Seen::default(),
            outcome: Outcome::default(),
            has_targets: false,
            losses: (0.0, 0.0),
            word_variance: description.streams.iter().map(|_| WordVariance::default()).collect(),
            checks: Checks::new(description, &site_variants),
            samples: Vec::new(),
            residuals: vec![Vec::new(); description.streams.len()],
            ranked: Vec::new(),
        }
    }
}

/// The shares of a site before any row is added.
pub(super) fn no_shares(site: &Site, options: &Options) -> ShareTally {
    ShareTally::new(if site.map.is_additive() { N_PARTS } else { N_TERMS }, &tops(options))
}

/// The K of the top-K shares.
fn tops(options: &Options) -> Vec<usize> {
    let mut ks = vec![1, 3, options.k.max(1)];
    ks.sort_unstable();
    ks.dedup();
    ks
}

impl Splitting<'_> {
    /// Splits scores; `progress` is told what was done last and up to where.
    pub(super) fn run(&self, batches: &mut Batches<'_>, progress: &mut dyn FnMut(Phase, u64)) -> Result<SecondTotals, ExplainError> {
        let Self { description, options, .. } = *self;
        let components = &self.fitted.components;
        let splits = description
            .sites
            .iter()
            .map(|site| SiteSplit::new(description, site, &components[site.query], &components[site.key]))
            .collect::<Result<Vec<_>, _>>()?;
        let mut second = SecondTotals::new(description, options);
        let variants: Vec<Vec<Variant>> = second.sites.iter().map(|site| site.variants.clone()).collect();
        let basis = Basis {
            description,
            components,
            splits: &splits,
            averages: self.averages,
            variants: &variants,
            ks: &tops(options),
            monotone: options.monotone,
        };
        for batch in batches {
            let Batch { range, sentences: mut batch } = batch?;
            batch.iter().for_each(|sentence| second.seen.add(sentence));
            batch.retain(|sentence| !options.held_out || !is_fitted(sentence.number));
            check_lengths(description, &batch)?;
            if let Some((sentence, loss)) = batch.iter().find_map(|one| Some((one.number, one.loss.filter(|loss| !loss.is_finite())?))) {
                return Err(ExplainError::Loss { sentence, loss });
            }
            let mut work: Vec<(&Recorded, Vec<Measures>)> = batch.iter().map(|sentence| (sentence, Vec::new())).collect();
            self.threads.for_each(&mut work, |number, (sentence, measures)| {
                let mut breakdown = Breakdown::default();
                // The states of other sites lie elsewhere: only after the last of them is it the next sentence's turn.
                let next = |site: usize| batch.get(number + 1).filter(|_| site + 1 == splits.len());
                *measures = (0..splits.len()).map(|site| measure(&basis, site, sentence, next(site), &mut breakdown)).collect();
            });
            for (sentence, measures) in work {
                if let Some(site) = measures.iter().position(|measures| !measures.is_finite) {
                    let site = &description.sites[site];
                    let (kind, layer, head) = (site.kind.name(), site.layer, site.head);
                    return Err(ExplainError::Scores { sentence: sentence.number, kind, layer, head });
                }
                second.take(description, components, &splits, options, sentence, measures);
            }
            if let Some(model) = self.model
                && second.checks.sentences < options.causal
                && !batch.is_empty()
            {
                let checked = &batch[..batch.len().min((options.causal - second.checks.sentences) as usize)];
                let cannot = |source| ExplainError::Corpus { from: range.start, to: range.end, source: Box::new(source) };
                second.checks.run(model, checked, &basis, options.rerun).map_err(cannot)?;
                progress(Phase::Checking, range.end);
            } else {
                progress(Phase::Splitting, range.end);
            }
        }
        Ok(second)
    }
}

impl SecondTotals {
    fn take(
        &mut self,
        description: &Description,
        components: &[Components<f32>],
        splits: &[SiteSplit<'_, f32>],
        options: &Options,
        sentence: &Recorded,
        measures: Vec<Measures>,
    ) {
        self.n_sentences += 1;
        if let Some(target) = &sentence.target
            && sentence.predicted.len() == target.len()
        {
            self.has_targets = true;
            let answer = crate::Answer { predicted: sentence.predicted.clone(), loss: sentence.loss.unwrap_or(0.0) };
            self.outcome = self.outcome.with(&answer.outcome(target));
        }
        if let Some(loss) = sentence.loss {
            self.losses.0 += loss * sentence.fed.len() as f64;
            self.losses.1 += sentence.fed.len() as f64;
        }
        for (number, stream) in description.streams.iter().enumerate() {
            let words = description.words(stream.side);
            let tokens = sentence.tokens(stream, words);
            let ignored = [words.start, words.end, Some(words.init())];
            if options.geometry {
                Residual::collect(&tokens, &sentence.states[number], &components[number], &mut self.residuals[number]);
            }
            self.word_variance[number].add(&tokens, &sentence.states[number], &components[number], |token| ignored.contains(&Some(token)));
        }
        let n_bytes = || self.samples.iter().map(|sample| &sample.sentence).chain([sentence]).map(|one| Sample::n_bytes(description, one));
        if self.samples.len() < options.samples && n_bytes().sum::<usize>() <= SAMPLE_BYTES {
            self.samples.push(Sample::of(description, splits, sentence));
        }
        if let Some(by) = options.rank {
            self.rank(by, sentence, &measures);
        }
        let weights: Vec<f64> = (0..options.bootstrap as u64).map(|replicate| weight(options.seed, sentence.number, replicate)).collect();
        for (totals, measures) in self.sites.iter_mut().zip(measures) {
            totals.take(measures, &weights);
        }
    }

    fn rank(&mut self, by: Rank, sentence: &Recorded, measures: &[Measures]) {
        let mean = |of: fn(&Measures) -> f64| measures.iter().map(of).sum::<f64>() / measures.len().max(1) as f64;
        let value = match by {
            Rank::Drift => mean(|measures| measures.drift),
            Rank::Coverage => mean(|measures| measures.uncovered),
            Rank::Entropy => mean(|measures| measures.entropy),
            Rank::Loss => match sentence.loss {
                Some(loss) => loss,
                None => return,
            },
        };
        self.place(value, sentence);
    }

    /// The worst of both.
    pub(super) fn merge_ranked(&mut self, others: &[(f64, Recorded)]) {
        for (value, sentence) in others {
            self.place(*value, sentence);
        }
    }

    fn place(&mut self, value: f64, sentence: &Recorded) {
        let place = self.ranked.iter().position(|(other, _)| value > *other).unwrap_or(self.ranked.len());
        if place < RANKED {
            self.ranked.insert(place, (value, Recorded { states: Vec::new(), attention: Vec::new(), ..sentence.clone() }));
            self.ranked.truncate(RANKED);
        }
    }
}

impl SiteTotals {
    fn take(&mut self, measures: Measures, weights: &[f64]) {
        let sentence = sum(&measures.shares);
        for ((shares, closeness), &weight) in self.resampled.iter_mut().zip(weights) {
            sentence.iter().for_each(|sentence| shares.add(sentence, weight));
            closeness.iter_mut().zip(&measures.closeness).for_each(|(sum, tallies)| sum.add(&tallies[0], weight));
        }
        for (steps, &weight) in self.resampled_by_step.iter_mut().zip(weights) {
            add_steps(steps, &measures.shares, weight);
        }
        add_steps(&mut self.by_step, &measures.shares, 1.0);
        for (sums, tallies) in self.closeness.iter_mut().zip(&measures.closeness) {
            sums.iter_mut().zip(tallies).for_each(|(sum, tally)| sum.add(tally, 1.0));
        }
        measures.looks.iter().for_each(|&(query, key, n_content)| self.offsets.add(query, key, n_content));
        self.entropy = (self.entropy.0 + measures.entropy, self.entropy.1 + 1);
        if let Some((weight, total)) = measures.path {
            let path = self.path.get_or_insert_default();
            *path = (path.0 + weight, path.1 + total);
        }
        self.error = self.error.max(measures.error);
        self.highest = self.highest.max(measures.highest);
        if let Some(error) = measures.attention_error {
            self.attention_error = Some(self.attention_error.unwrap_or(0.0).max(error));
        }
    }
}

/// Adds `weight` times the tallies of some steps, the first of them first.
pub(super) fn add_steps(sums: &mut Vec<ShareTally>, steps: &[ShareTally], weight: f64) {
    for (step, tally) in steps.iter().enumerate() {
        if sums.len() == step {
            sums.push(tally.empty());
        }
        if weight != 0.0 {
            sums[step].add(tally, weight);
        }
    }
}

/// All steps taken together; `None` of none.
pub(super) fn sum(steps: &[ShareTally]) -> Option<ShareTally> {
    let (first, rest) = steps.split_first()?;
    let mut total = first.clone();
    rest.iter().for_each(|step| total.add(step, 1.0));
    Some(total)
}
