//! An imported model as the subject of an explanation: recorded, and run again under changes.

use std::sync::Arc;

use crosslens_analysis::{Answer, Description, Fed, Intervene, Pair, RecordError, Recordable, Recorded, Token, Untouched};
use crosslens_kernels::Threads;

use super::between_grus::{BetweenGrus, describe};
use super::pass::{Trace, Work};
use super::tables::SideTable;
use super::weights::Weights;
use crate::network::Observation;
use crate::subject::check_pairs;

/// Sentences that one thread runs at a time.
const SHARD_SENTENCES: usize = 16;

/// A model of another program with threads, ready to be recorded.
///
/// Its streams are `encoder`, the states of both directions joined, and `decoder`, those of the first decoder, which ask. Every head is a
/// site. In [`Intervene::readout`] the state is the second decoder's, and there is no context: what attention gives has gone into it.
#[derive(Debug)]
pub struct ImportedSubject {
    network: Arc<BetweenGrus>,
    name: Arc<str>,
    tables: Arc<[SideTable; 2]>,
    description: Description,
    threads: Threads,
}

impl ImportedSubject {
    pub(super) fn new(
        network: Arc<BetweenGrus>,
        name: Arc<str>,
        tables: Arc<[SideTable; 2]>,
        description: Description,
        threads: Threads,
    ) -> Self {
        Self { network, name, tables, description, threads }
    }

    /// What happens to each pair, logits included.
    pub fn observe(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Observation<f32>>, RecordError> {
        self.watch(pairs, fed, &Untouched, Trace::observation)
    }

    /// What the model writes by itself, its likeliest token at each step: up to and with the end token, or `most_steps` tokens.
    pub fn write(&self, sources: &[Vec<Token>], most_steps: usize) -> Result<Vec<Vec<Token>>, RecordError> {
        let end = self.tables[1].end();
        // Of the target only the length matters, since the decoder reads its own words.
        let pairs: Vec<Pair> = sources.iter().map(|source| Pair::new(source.clone(), vec![end; most_steps])).collect();
        let up_to_the_end = |mut answer: Answer| {
            let length = answer.predicted.iter().position(|&token| token == end).map_or(most_steps, |last| last + 1);
            answer.predicted.truncate(length);
            answer.predicted
        };
        Ok(self.run(&pairs, Fed::Own, &Untouched)?.into_iter().map(up_to_the_end).collect())
    }

    /// Runs pairs in shards that do not depend on the number of threads; gives, in their order, what `look` makes of each.
    fn watch<T: Send>(
        &self,
        pairs: &[Pair],
        fed: Fed<'_>,
        how: &dyn Intervene,
        look: impl Fn(&Trace, usize) -> T + Sync,
    ) -> Result<Vec<T>, RecordError> {
        let Description { source, target, .. } = &self.description;
        check_pairs(pairs, fed, [source.count, target.count, target.count])?;
        let mut shards: Vec<(&[Pair], Vec<T>)> = pairs.chunks(SHARD_SENTENCES).map(|pairs| (pairs, Vec::new())).collect();
        self.threads.for_each(&mut shards, |number, (shard, seen)| {
            let (pairs, first_pair) = (*shard, number * SHARD_SENTENCES);
            let trace = self.network.run(&Work { pairs, first_pair, fed, start: self.tables[1].start(), how });
            *seen = (0..pairs.len()).map(|sentence| look(&trace, sentence)).collect();
        });
        Ok(shards.into_iter().flat_map(|(_, seen)| seen).collect())
    }
}

impl Recordable for ImportedSubject {
    fn description(&self) -> &Description {
        &self.description
    }

    fn record(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        let seen = self.watch(pairs, fed, &Untouched, |trace, sentence| (trace.observation(sentence), trace.answer(sentence)))?;
        let recorded = |(number, (pair, (seen, answer))): (usize, (&Pair, (Observation<f32>, Answer)))| Recorded {
            number: number as u64,
            source: pair.source.clone(),
            signal: None,
            fed: seen.fed,
            predicted: answer.predicted,
            target: Some(pair.target.clone()),
            loss: Some(answer.loss),
            attention: seen.attention.chunks_exact(pair.source.len() * pair.target.len()).map(<[f32]>::to_vec).collect(),
            states: vec![seen.encoder, seen.queries],
        };
        Ok(pairs.iter().zip(seen).enumerate().map(recorded).collect())
    }

    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        self.watch(pairs, fed, how, Trace::answer)
    }

    fn untrained(&self, seed: u64) -> Option<Box<dyn Recordable>> {
        let weights = Weights::draw(self.network.sizes, seed);
        let [source, target] = &*self.tables;
        let description = describe(&weights, &self.name, source, target);
        let network = Arc::new(BetweenGrus::new(&weights));
        Some(Box::new(Self::new(network, self.name.clone(), self.tables.clone(), description, self.threads.clone())))
    }
}
