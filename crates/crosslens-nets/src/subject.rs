//! Networks as subjects of an explanation: recorded, and run again under changes.

use std::sync::Mutex;

use crosslens_analysis::{
    Answer, AttentionRow, Description, Fed, Intervene, Pair, Probe, RecordError, Recordable, Recorded, SiteKind, Token, Untouched,
    Vocabulary, Words,
};
use crosslens_kernels::Threads;

use crate::network::description::{DECODER, ENCODER};
use crate::network::engine::lock;
use crate::network::hook::{Hook, Row};
use crate::network::observe::Watched;
use crate::network::{Engine, Feeding, Network, NetworkError, Observation};
use crate::tasks::END_WORD;

/// Pairs that are run at a time, so that memory does not grow with the pairs asked for.
const BATCH_PAIRS: usize = 256;
/// The name of the start token.
const START_WORD: &str = "<start>";

/// Why fed tokens do not go with the pairs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FedError {
    /// Not one list for each pair.
    #[error("{lists} lists of fed tokens are given for {pairs} pairs")]
    Pairs {
        /// Lists given.
        lists: usize,
        /// Pairs to run.
        pairs: usize,
    },
    /// A list as long as no target.
    #[error("pair {pair}: {fed} fed tokens are given for {steps} steps of the target")]
    Steps {
        /// The pair's place in the batch.
        pair: usize,
        /// Tokens given.
        fed: usize,
        /// Steps of the target.
        steps: usize,
    },
}

/// A network with its weights, its words and threads, ready to be recorded.
///
/// The streams of a recurrent network are `encoder`, the top outputs of the encoder, and `decoder`, the states that ask: the decoder's top states, which with
/// Bahdanau are those of the step before. Every head is a site. In [`Intervene::readout`] the state is what the readout reads besides the
/// context; Luong's readout reads the attentional state and nothing else, a Transformer's the decoder's last state.
///
/// A Transformer has the streams `encoder`, which all its attention across asks, `cross.L`, the states that ask there in layer L, and
/// `encoder.L` and `decoder.L`, which ask themselves; normed where norms stand before attention.
///
/// ```
/// use crosslens_analysis::{Fed, Pair, Recordable, Untouched, Vocabulary};
/// use crosslens_nets::Subject;
/// use crosslens_nets::network::{Family, Network, NetworkConfig};
///
/// let words = Vocabulary::new(["a", "b", "<eos>"])?;
/// let config = NetworkConfig { hidden: 8, ..NetworkConfig::of(Family::Aed) };
/// let network = Network::new(&config, words.len(), words.len(), 0)?;
/// let weights = network.draw_weights(0);
/// let subject = Subject::new(network, weights, &words, &words, 1)?;
/// let pairs = [Pair::new(vec![0, 1, 2], vec![1, 2])];
/// let recorded = subject.record(&pairs, Fed::Own)?;
/// assert_eq!(recorded[0].attention[0].len(), 2 * 3);
/// let fed = [recorded[0].fed.clone()];
/// let again = subject.run(&pairs, Fed::Given(&fed), &Untouched)?;
/// assert_eq!(again[0].predicted, recorded[0].predicted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Subject {
    network: Network,
    weights: Vec<f32>,
    description: Description,
    is_across_only: bool,
    threads: Threads,
    /// As many as ever ran at once. None is held under the lock while it runs: an intervention may ask for another run.
    engines: Mutex<Vec<Engine<f32>>>,
}

impl Subject {
    /// A network that works on `n_threads` threads; 0 means one per core.
    ///
    /// Panics if the weights or the vocabularies are those of another network.
    pub fn new(network: Network, weights: Vec<f32>, source: &Vocabulary, target: &Vocabulary, n_threads: usize) -> std::io::Result<Self> {
        assert_eq!(source.len(), network.n_source_words(), "source words of another network");
        assert_eq!(target.len(), network.start_token() as usize, "target words of another network");
        let (source, target) = (words(source, None), words(target, Some(START_WORD)));
        Ok(Self::of(network, weights, source, target, Threads::new(n_threads)?))
    }

    fn of(network: Network, weights: Vec<f32>, source: Words, target: Words, threads: Threads) -> Self {
        assert_eq!(weights.len(), network.layout().len(), "weights of another network");
        let description = network.describe(&weights, source, target);
        Self { network, weights, description, is_across_only: false, threads, engines: Mutex::new(Vec::new()) }
    }

    /// The same without a Transformer's attention of a side to itself.
    #[must_use]
    pub fn across(mut self) -> Self {
        let Description { sites, streams, .. } = &mut self.description;
        sites.retain(|site| site.kind == SiteKind::Cross);
        // Streams of attention across come first.
        if let Some(last) = sites.iter().flat_map(|site| [site.query, site.key]).max() {
            streams.truncate(last + 1);
        }
        self.is_across_only = true;
        self
    }

    /// Checks the pairs, then does `work` on one batch of them after the other.
    fn in_batches<T>(
        &self,
        pairs: &[Pair],
        fed: Fed<'_>,
        how: &dyn Intervene,
        work: impl Fn(&mut Engine<f32>, &[Pair], Feeding, Rerun<'_>) -> Vec<T>,
    ) -> Result<Vec<T>, RecordError> {
        let Description { source, target, .. } = &self.description;
        check_pairs(pairs, fed, [source.count, self.network.start_token(), target.count])?;
        for pair in pairs {
            let refused = |error: NetworkError| RecordError::Model(Box::new(error));
            self.network.check_lengths(pair.source.len(), pair.target.len()).map_err(refused)?;
        }
        let feeding = if matches!(fed, Fed::Own) { Feeding::Free } else { Feeding::Forced };
        let mut engine = lock(&self.engines).pop().unwrap_or_else(|| Engine::on(self.threads.clone()));
        let n_sites = self.description.sites.len();
        let mut results = Vec::with_capacity(pairs.len());
        for (number, batch) in pairs.chunks(BATCH_PAIRS).enumerate() {
            results.extend(work(&mut engine, batch, feeding, Rerun { how, fed, first_pair: number * BATCH_PAIRS, n_sites }));
        }
        lock(&self.engines).push(engine);
        Ok(results)
    }
}

impl Recordable for Subject {
    fn description(&self) -> &Description {
        &self.description
    }

    fn record(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        let seen = self.in_batches(pairs, fed, &Untouched, |engine, pairs, feeding, rerun| {
            engine.watch(&self.network, &self.weights, pairs, feeding, Some(&rerun), |shard, sentence| {
                (shard.observe(sentence), shard.answer(sentence))
            })
        })?;
        let numbered = pairs.iter().zip(seen).enumerate();
        Ok(numbered.map(|(number, (pair, (seen, answer)))| recorded(number, pair, &seen, answer, &self.description)).collect())
    }

    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        self.in_batches(pairs, fed, how, |engine, pairs, feeding, rerun| {
            engine.watch(&self.network, &self.weights, pairs, feeding, Some(&rerun), |shard, sentence| shard.answer(sentence))
        })
    }

    /// Both sides run over `n_steps` steps, the decoder from where the encoder ends; what is fed back into a decoder is its own.
    fn probe(&self, probe: Probe, n_steps: usize) -> Option<Vec<Vec<f32>>> {
        if n_steps == 0 {
            return Some(vec![Vec::new(); self.description.streams.len()]);
        }
        self.network.check_lengths(n_steps, n_steps).ok()?;
        let pairs = [Pair::new(vec![0; n_steps], vec![0; n_steps])];
        let mut engine = Engine::on(self.threads.clone());
        let look = |shard: &dyn Watched<f32>, sentence| shard.observe(sentence);
        let seen = engine.watch(&self.network, &self.weights, &pairs, Feeding::Forced, Some(&NoToken(probe)), look).pop()?;
        Some(states(&seen, n_steps, &self.description))
    }

    fn untrained(&self, seed: u64) -> Option<Box<dyn Recordable>> {
        let Description { source, target, .. } = &self.description;
        let (network, weights) = (self.network.clone(), self.network.draw_weights(seed));
        let untrained = Self::of(network, weights, source.clone(), target.clone(), self.threads.clone());
        Some(Box::new(if self.is_across_only { untrained.across() } else { untrained }))
    }
}

/// By stream: what all attention across asks, what asks it layer by layer, then what the encoder and the decoder ask themselves with.
fn states(seen: &Observation<f32>, n_target: usize, description: &Description) -> Vec<Vec<f32>> {
    let asking = if seen.queries.is_empty() { &seen.decoder } else { &seen.queries };
    let (n_source, d) = (seen.encoder.len() / description.streams[ENCODER].d, description.streams[DECODER].d);
    let across = asking.chunks_exact(n_target * d);
    let own = seen.encoder_self.states.chunks_exact(n_source * d).chain(seen.decoder_self.states.chunks_exact(n_target * d));
    let all = std::iter::once(&seen.encoder[..]).chain(across).chain(own);
    all.take(description.streams.len()).map(<[f32]>::to_vec).collect()
}

/// By site, in the order of [`states`].
fn attention(seen: &Observation<f32>, pair: &Pair, description: &Description) -> Vec<Vec<f32>> {
    let (n_source, n_target) = (pair.source.len(), pair.target.len());
    let own =
        seen.encoder_self.weights.chunks_exact(n_source * n_source).chain(seen.decoder_self.weights.chunks_exact(n_target * n_target));
    let all = seen.attention.chunks_exact(n_source * n_target).chain(own);
    all.take(description.sites.len()).map(<[f32]>::to_vec).collect()
}

fn recorded(number: usize, pair: &Pair, seen: &Observation<f32>, answer: Answer, description: &Description) -> Recorded {
    Recorded {
        number: number as u64,
        source: pair.source.clone(),
        signal: None,
        fed: seen.fed.clone(),
        predicted: answer.predicted,
        target: Some(pair.target.clone()),
        loss: Some(answer.loss),
        attention: attention(seen, pair, description),
        states: states(seen, pair.target.len(), description),
    }
}

fn words(vocabulary: &Vocabulary, start: Option<&str>) -> Words {
    let names: Vec<String> = vocabulary.words().iter().map(String::as_str).chain(start).map(str::to_owned).collect();
    let start = start.map(|_| vocabulary.len() as Token);
    Words { count: names.len() as Token, names, start, end: vocabulary.token(END_WORD) }
}

/// Fails for pairs that a model cannot be run on; `counts` are the tokens known of the source, the target and what the decoder reads.
pub(crate) fn check_pairs(pairs: &[Pair], fed: Fed<'_>, counts: [Token; 3]) -> Result<(), RecordError> {
    let [of_source, of_target, of_fed] = counts;
    for (number, pair) in pairs.iter().enumerate() {
        check_sentence(number, "source", &pair.source, of_source)?;
        check_sentence(number, "target", &pair.target, of_target)?;
    }
    let Fed::Given(lists) = fed else { return Ok(()) };
    if lists.len() != pairs.len() {
        return Err(refused(FedError::Pairs { lists: lists.len(), pairs: pairs.len() }));
    }
    for (number, (list, pair)) in lists.iter().zip(pairs).enumerate() {
        if list.len() != pair.target.len() {
            return Err(refused(FedError::Steps { pair: number, fed: list.len(), steps: pair.target.len() }));
        }
        check_sentence(number, "decoder's input", list, of_fed)?;
    }
    Ok(())
}

fn check_sentence(pair: usize, side: &'static str, tokens: &[Token], count: Token) -> Result<(), RecordError> {
    if tokens.is_empty() {
        return Err(RecordError::Empty { pair, side });
    }
    match tokens.iter().find(|&&token| token >= count) {
        Some(&token) => Err(RecordError::UnknownToken { pair, side, token, count: count as usize }),
        None => Ok(()),
    }
}

fn refused(error: FedError) -> RecordError {
    RecordError::Model(Box::new(error))
}

/// One batch of a run: what the decoder is fed, and an intervention.
struct Rerun<'a> {
    how: &'a dyn Intervene,
    fed: Fed<'a>,
    /// The number of the batch's first pair.
    first_pair: usize,
    /// Sites that are recorded; others are nobody's business.
    n_sites: usize,
}

impl Hook<f32> for Rerun<'_> {
    fn fed(&self, sentence: usize) -> Option<&[Token]> {
        match self.fed {
            Fed::Given(lists) => Some(&lists[self.first_pair + sentence]),
            Fed::Target | Fed::Own => None,
        }
    }

    fn weights(&self, row: Row<'_, f32>, weights: &mut [f32]) {
        let Row { site, sentence, step, query_state, key_states } = row;
        if site >= self.n_sites {
            return;
        }
        let pair = self.first_pair + sentence;
        self.how.weights(AttentionRow { site, pair, query: step, query_state, key_states }, weights);
    }

    fn values(&self, site: usize, sentence: usize, states: &mut [f32]) {
        if site >= self.n_sites {
            return;
        }
        self.how.values(site, self.first_pair + sentence, states);
    }

    fn readout(&self, sentence: usize, step: usize, state: &mut [f32], context: &mut [f32]) {
        self.how.readout(self.first_pair + sentence, step, state, context);
    }
}

/// A run whose inputs are no tokens.
struct NoToken(Probe);

impl Hook<f32> for NoToken {
    fn fed(&self, _sentence: usize) -> Option<&[Token]> {
        None
    }

    fn probe(&self) -> Option<Probe> {
        Some(self.0)
    }

    fn weights(&self, _row: Row<'_, f32>, _weights: &mut [f32]) {}

    fn values(&self, _site: usize, _sentence: usize, _states: &mut [f32]) {}

    fn readout(&self, _sentence: usize, _step: usize, _state: &mut [f32], _context: &mut [f32]) {}
}
