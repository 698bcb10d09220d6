//! Runs a model again with its attention, its values or its readout changed.

use super::Rerun;
use super::measure::{Basis, Variant, VariantKind, n_content, variant_row};
use crate::report::Causal;
use crate::{
    Answer, AttentionRow, Breakdown, Components, Description, Fed, Intervene, Outcome, Pair, Part, RecordError, Recordable, Recorded, Side,
    SiteSplit, Subset, Token,
};

/// Replaces the attention of one site by rows prepared for it.
pub(super) struct Replaced {
    pub(super) site: usize,
    /// By pair, then query.
    pub(super) rows: Vec<Vec<Vec<f32>>>,
}

impl Intervene for Replaced {
    fn site(&self) -> Option<usize> {
        Some(self.site)
    }

    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if row.site != self.site {
            return;
        }
        if let Some(replaced) = self.rows.get(row.pair).and_then(|rows| rows.get(row.query)) {
            weights.fill(0.0);
            weights.iter_mut().zip(replaced).for_each(|(weight, replaced)| *weight = *replaced);
        }
    }
}

/// Rebuilds the attention of one site from the states as they are in this run.
struct Rebuilt<'a> {
    site: usize,
    split: &'a SiteSplit<'a, f32>,
    subset: Subset,
    batch: &'a [Recorded],
}

impl Intervene for Rebuilt<'_> {
    fn site(&self) -> Option<usize> {
        Some(self.site)
    }

    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if row.site != self.site {
            return;
        }
        let (mut breakdown, mut rebuilt) = (Breakdown::default(), Vec::new());
        self.split.split_query(&self.batch[row.pair], row.query, row.query_state, row.key_states, &mut breakdown);
        breakdown.sum(self.subset, 0, &mut rebuilt);
        crosslens_kernels::softmax(&mut rebuilt);
        weights.fill(0.0);
        weights.iter_mut().zip(rebuilt).for_each(|(weight, rebuilt)| *weight = rebuilt);
    }
}

/// Keeps only some parts of the states that attention sums.
struct KeptValues<'a> {
    description: &'a Description,
    /// By stream.
    components: &'a [Components<f32>],
    keep: &'a [Part],
    batch: &'a [Recorded],
}

impl Intervene for KeptValues<'_> {
    fn values(&self, site: usize, pair: usize, states: &mut [f32]) {
        let key = self.description.sites[site].key;
        let (stream, components) = (&self.description.streams[key], &self.components[key]);
        let tokens = self.batch[pair].tokens(stream, self.description.words(stream.side));
        for (step, (state, &token)) in states.chunks_exact_mut(components.d()).zip(tokens.iter()).enumerate() {
            let parts = components.temporal(step).iter().zip(components.input(token));
            for (h, (&temporal, &input)) in state.iter_mut().zip(parts) {
                let parts = [temporal, input, *h - temporal - input];
                *h = self.keep.iter().map(|&part| parts[part as usize]).sum();
            }
        }
    }
}

/// Keeps only one half of what the readout reads.
struct KeptHalf {
    keep_state: bool,
}

impl Intervene for KeptHalf {
    fn readout(&self, _: usize, _: usize, state: &mut [f32], context: &mut [f32]) {
        if self.keep_state { context.fill(0.0) } else { state.fill(0.0) }
    }
}

/// What running again came to, over all batches.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    outcome: Outcome,
    content: Outcome,
    changed: u64,
}

impl Tally {
    pub(super) fn report(&self) -> Causal {
        Causal {
            word_accuracy: self.outcome.word_accuracy(),
            phrase_accuracy: self.outcome.phrase_accuracy(),
            content_word_accuracy: self.content.word_accuracy(),
            // JSON knows no infinity.
            loss: if self.outcome.loss.is_finite() { self.outcome.loss } else { f64::MAX },
            changed: self.changed as f64 / self.outcome.words.max(1) as f64,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.outcome = self.outcome.with(&other.outcome);
        self.content = self.content.with(&other.content);
        self.changed += other.changed;
    }

    /// Compares answers with the targets, and with what was predicted before.
    fn add(&mut self, description: &Description, batch: &[Recorded], pairs: &[Pair], answers: &[Answer]) {
        for ((sentence, pair), answer) in batch.iter().zip(pairs).zip(answers) {
            let n_content = n_content(description, sentence, Side::Target);
            self.outcome = self.outcome.with(&answer.outcome(&pair.target));
            let content = Answer { predicted: answer.predicted.iter().take(n_content).copied().collect(), loss: 0.0 };
            self.content = self.content.with(&content.outcome(&pair.target[..n_content.min(pair.target.len())]));
            self.changed += answer.predicted.iter().zip(&sentence.predicted).filter(|(a, b)| a != b).count() as u64;
        }
    }
}

/// Everything that is run again for every batch.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    /// Nothing changed.
    pub(super) plain: Tally,
    /// By site, then variant.
    pub(super) variants: Vec<Vec<Tally>>,
    /// Values made of some parts only, at every site.
    pub(super) values: Vec<(&'static str, &'static [Part], Tally)>,
    /// Halves of the readout: the state, the context.
    pub(super) halves: Vec<(&'static str, Tally)>,
    pub(super) sentences: u64,
}

impl Checks {
    pub(super) fn new(description: &Description, variants: &[Vec<Variant>]) -> Self {
        let values: Vec<(&'static str, &'static [Part], Tally)> = if description.sites.is_empty() {
            Vec::new()
        } else {
            vec![
                ("temporal", &[Part::Temporal], Tally::default()),
                ("input", &[Part::Input], Tally::default()),
                ("input+residual", &[Part::Input, Part::Residual], Tally::default()),
                ("temporal+input", &[Part::Temporal, Part::Input], Tally::default()),
            ]
        };
        let has_halves = description.readout.as_ref().is_some_and(|readout| readout.d_state > 0 && readout.d_context > 0);
        let halves = if has_halves { vec![("state", Tally::default()), ("context", Tally::default())] } else { Vec::new() };
        let variants = variants.iter().map(|variants| vec![Tally::default(); variants.len()]).collect();
        Self { plain: Tally::default(), variants, values, halves, sentences: 0 }
    }

    /// Adds those of other sentences of the same model.
    pub(super) fn merge(&mut self, other: &Self) {
        self.plain.merge(&other.plain);
        for (own, other) in self.variants.iter_mut().flatten().zip(other.variants.iter().flatten()) {
            own.merge(other);
        }
        self.values.iter_mut().zip(&other.values).for_each(|(own, other)| own.2.merge(&other.2));
        self.halves.iter_mut().zip(&other.halves).for_each(|(own, other)| own.1.merge(&other.1));
        self.sentences += other.sentences;
    }

    /// Runs one batch under every change.
    pub(super) fn run(&mut self, model: &dyn Recordable, batch: &[Recorded], basis: &Basis<'_>, rerun: Rerun) -> Result<(), RecordError> {
        let description = model.description();
        let pairs: Vec<Pair> = batch
            .iter()
            .map(|sentence| Pair {
                source: sentence.source.clone(),
                target: sentence.target.clone().unwrap_or_else(|| sentence.predicted.clone()),
                signal: sentence.signal.clone(),
            })
            .collect();
        let given: Vec<Vec<Token>> = batch.iter().map(|sentence| sentence.fed.clone()).collect();
        let fed = if rerun == Rerun::Free { Fed::Own } else { Fed::Given(&given) };
        let run = |tally: &mut Tally, how: &dyn Intervene| -> Result<(), RecordError> {
            tally.add(description, batch, &pairs, &model.run(&pairs, fed, how)?);
            Ok(())
        };
        run(&mut self.plain, &crate::Untouched)?;
        let mut breakdown = Breakdown::default();
        let mut row = Vec::new();
        for (site, split) in basis.splits.iter().enumerate() {
            let mut rows: Vec<Vec<Vec<Vec<f32>>>> = vec![Vec::with_capacity(batch.len()); basis.variants[site].len()];
            for sentence in batch {
                split.split(sentence, &mut breakdown);
                for (variant, rows) in basis.variants[site].iter().zip(&mut rows) {
                    let of_sentence = (0..breakdown.n_queries()).map(|query| {
                        variant_row(variant.kind, &breakdown, &basis.averages[site], query, &mut row);
                        row.clone()
                    });
                    rows.push(of_sentence.collect());
                }
            }
            for ((rows, variant), tally) in rows.into_iter().zip(&basis.variants[site]).zip(&mut self.variants[site]) {
                match variant.kind {
                    VariantKind::Rebuilt(subset) if rerun == Rerun::Live => run(tally, &Rebuilt { site, split, subset, batch })?,
                    _ => run(tally, &Replaced { site, rows })?,
                }
            }
        }
        for (_, keep, tally) in &mut self.values {
            run(tally, &KeptValues { description, components: basis.components, keep, batch })?;
        }
        for (name, tally) in &mut self.halves {
            run(tally, &KeptHalf { keep_state: *name == "state" })?;
        }
        self.sentences += batch.len() as u64;
        Ok(())
    }
}
