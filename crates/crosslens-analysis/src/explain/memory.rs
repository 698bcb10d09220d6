//! How much memory an explanation will need, before it starts.

use serde::Serialize;

use super::batch::MOST;
use super::{Options, SAMPLE_BYTES};
use crate::components::TokenSum;
use crate::split::known::MAX_TABLE;
use crate::{Description, N_TERMS, Pair, ScoreMap, Side, Site, SiteKind, Token};

/// What of a corpus decides how much memory it takes: not how many sentences there are, unless they are kept, as sounds and pictures are,
/// but for the steps at which their tokens stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Of the source.
    pub source: SideExtent,
    /// Of the target.
    pub target: SideExtent,
    /// Cells of one head's attention in the largest batch: from the target to the source, of the source to itself, of the target to itself.
    cells: [usize; 3],
    /// Numbers of all sounds or pictures.
    signals: usize,
    /// Bytes of all pairs, where they are kept.
    pairs: usize,
}

/// One side of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideExtent {
    /// Steps of the longest sentence.
    pub steps: usize,
    /// Distinct tokens, the start token among them.
    pub tokens: usize,
    /// Steps of the largest batch.
    batch: usize,
    /// States of all sentences, counted up to two for each token at each step: as many places as two sums can have.
    states: usize,
}

impl SideExtent {
    /// Tokens at steps, of which sums count how often each occurs; the one before the first token among them.
    fn places(&self) -> usize {
        (self.tokens + 1).saturating_mul(self.steps)
    }

    /// Bytes of so many sums of states of `d` numbers, each of other sentences: rows by step and by token, and the steps of each token.
    fn sums(&self, d: usize, n_sums: usize) -> usize {
        let rows = (self.steps + self.tokens) * d * size_of::<f64>();
        // Lists grow by doubling, those of steps from four on; a row begins where a line of the cache does.
        let tokens = self.tokens * (2 * size_of::<TokenSum>() + 4 * PLACE_BYTES + LINE_BYTES);
        let places = self.states.min(n_sums.saturating_mul(self.places()));
        n_sums * (rows + tokens) + 2 * places * PLACE_BYTES
    }
}

/// Room that a row needs beside its numbers, at most.
const LINE_BYTES: usize = 64;

/// A step at which a token is seen, and how often.
const PLACE_BYTES: usize = size_of::<(u32, u64)>();

impl Extent {
    /// Looks at every sentence once.
    pub fn of<'p>(pairs: impl Iterator<Item = &'p Pair>) -> Self {
        Self::in_batches(pairs, MOST)
    }

    /// The same of sentences of which so many are in hand at a time.
    pub fn in_batches<'p>(pairs: impl Iterator<Item = &'p Pair>, batch_size: u64) -> Self {
        let mut extent = Self::default();
        let mut seen: [std::collections::HashSet<Token>; 2] = Default::default();
        let mut batch = (0, [0; 2], [0; 3]);
        let mut n_states = [0usize; 2];
        for pair in pairs {
            let lengths = [pair.source.len(), pair.target.len()];
            n_states.iter_mut().zip(lengths).for_each(|(sum, more)| *sum += more);
            seen[0].extend(&pair.source);
            seen[1].extend(&pair.target);
            extent.signals += pair.signal.as_ref().map_or(0, |signal| signal.values().len());
            if batch.0 == batch_size {
                batch = (0, [0; 2], [0; 3]);
            }
            batch.0 += 1;
            let [source, target] = lengths;
            for (sum, more) in batch.1.iter_mut().zip(lengths) {
                *sum += more;
            }
            for (sum, more) in batch.2.iter_mut().zip([source * target, source * source, target * target]) {
                *sum += more;
            }
            for ((side, steps), sum) in [&mut extent.source, &mut extent.target].into_iter().zip(lengths).zip(batch.1) {
                side.steps = side.steps.max(steps);
                side.batch = side.batch.max(sum);
            }
            extent.cells.iter_mut().zip(batch.2).for_each(|(most, sum)| *most = (*most).max(sum));
        }
        (extent.source.tokens, extent.target.tokens) = (seen[0].len(), seen[1].len() + 1);
        for (side, n_states) in [&mut extent.source, &mut extent.target].into_iter().zip(n_states) {
            side.states = n_states.min(side.places().saturating_mul(2));
        }
        extent
    }

    /// The same of sentences that lie in memory themselves.
    #[must_use]
    pub fn keeping<'p>(self, pairs: impl Iterator<Item = &'p Pair>) -> Self {
        let n_bytes = |pair: &Pair| size_of::<Pair>() + (pair.source.len() + pair.target.len()) * size_of::<Token>();
        Self { pairs: pairs.map(n_bytes).sum(), ..self }
    }

    fn side(&self, side: Side) -> &SideExtent {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

/// Bytes that an explanation will need at most, besides the model and the rows that its layers work on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Sums of states by step and by token, and the components made of them.
    pub components: usize,
    /// Components carried through each head's map, and tables of their products.
    pub heads: usize,
    /// States and attention of the sentences in hand.
    pub batch: usize,
    /// The terms of the sentence that each thread has in hand, at one head.
    pub terms: usize,
    /// What is counted by head, step and resample.
    pub counts: usize,
    /// Rows of attention that the model is run again with, in place of its own at one head.
    pub changed: usize,
    /// Sentences that are shown one by one, with every term at every head.
    pub samples: usize,
    /// What a pretrained model makes of the words it may write, for the rows that its threads read out: whoever runs one says how much.
    pub logits: usize,
    /// The sounds or pictures themselves: this part grows with how many there are.
    pub sources: usize,
    /// The tokens of sentences that were read from a file: this part grows with how many there are.
    pub pairs: usize,
}

impl Memory {
    /// For these sentences at these heads.
    pub fn of(description: &Description, extent: &Extent, options: &Options) -> Self {
        // Two sums, of the sentences to fit on and of those to explain; two copies of the components in f32.
        let components = description.streams.iter().map(|stream| {
            let side = extent.side(stream.side);
            side.sums(stream.d, 2) + 2 * (side.steps + side.tokens) * stream.d * size_of::<f32>()
        });
        let states = description.streams.iter().map(|stream| extent.side(stream.side).batch * stream.d * 4);
        let weights = description.sites.iter().map(|site| extent.cells[kind(site)] * 4);
        Self {
            components: components.sum(),
            heads: description.sites.iter().map(|site| head(description, site, extent)).sum(),
            batch: states.chain(weights).sum(),
            terms: n_threads(options) * description.sites.iter().map(|site| terms(description, site, extent)).max().unwrap_or(0),
            counts: description.sites.iter().map(|site| counts(description, site, extent, options)).sum(),
            changed: description.sites.iter().map(|site| changed(description, site, extent, options)).max().unwrap_or(0),
            samples: samples(description, extent, options),
            logits: 0,
            sources: extent.signals * size_of::<f32>(),
            pairs: extent.pairs,
        }
    }

    /// For sums alone, one of every stream; no word is predicted for them.
    pub fn of_sums(description: &Description, extent: &Extent) -> Self {
        let whole = Self::of(description, extent, &Options::default());
        let sums = description.streams.iter().map(|stream| extent.side(stream.side).sums(stream.d, 1));
        Self { components: sums.sum(), batch: whole.batch, sources: whole.sources, pairs: whole.pairs, ..Self::default() }
    }

    /// All of it.
    pub fn total(&self) -> usize {
        let in_hand = self.batch + self.terms + self.changed + self.logits;
        self.components + self.heads + self.counts + self.samples + self.sources + self.pairs + in_hand
    }
}

fn kind(site: &Site) -> usize {
    match site.kind {
        SiteKind::Cross => 0,
        SiteKind::EncoderSelf => 1,
        SiteKind::DecoderSelf => 2,
    }
}

/// Components behind the map of a head, their products, and its average attention.
fn head(description: &Description, site: &Site, extent: &Extent) -> usize {
    let d_state = |stream: usize| description.streams[stream].d;
    let side = |stream: usize| extent.side(description.streams[stream].side);
    let (query, key) = (side(site.query), side(site.key));
    let mapped = match &site.map {
        ScoreMap::Projected { query: to_query, key: to_key, .. } => {
            let of = |side: &SideExtent, d_out: usize, d_in: usize| (side.steps + side.tokens + d_in) * d_out * 4;
            of(query, to_query.d_out, d_state(site.query)) + of(key, to_key.d_out, d_state(site.key))
        }
        // The widest any other map makes of a state.
        _ => (query.steps + query.tokens) * d_state(site.query) * 4 + (key.steps + key.tokens) * d_state(site.key) * 4,
    };
    let tables = [query.steps * key.steps, query.tokens * key.steps, key.tokens * query.steps];
    let tables = if tables.iter().any(|&size| size > MAX_TABLE) { 0 } else { tables.iter().sum::<usize>() * 4 };
    mapped + tables + query.steps * key.steps * 16
}

fn n_threads(options: &Options) -> usize {
    match options.n_threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        n_threads => n_threads,
    }
}

/// Every piece of every score of the longest sentence, its scores, a row of attention each, and its residuals behind the map.
fn terms(description: &Description, site: &Site, extent: &Extent) -> usize {
    let side = |stream: usize| (extent.side(description.streams[stream].side).steps, description.streams[stream].d);
    let ((n_queries, d_query), (n_keys, d_key)) = (side(site.query), side(site.key));
    let numbers = n_queries.saturating_mul(n_keys).saturating_mul(N_TERMS + 2) + 2 * (n_queries * d_query + n_keys * d_key);
    numbers.saturating_mul(size_of::<f32>())
}

/// The ways attention is rebuilt, those that are asked for beside.
fn n_variants(options: &Options) -> usize {
    9 + options.subsets.len()
}

/// A row for every query of a batch and every way to rebuild it, where the model is run again.
fn changed(description: &Description, site: &Site, extent: &Extent, options: &Options) -> usize {
    let n_rows = extent.side(description.streams[site.query].side).batch;
    let one = extent.cells[kind(site)].saturating_mul(size_of::<f32>()) + n_rows * size_of::<Vec<f32>>();
    if options.causal > 0 { n_variants(options).saturating_mul(one) } else { 0 }
}

/// Shares by step and by resample, and those of every row of a batch.
fn counts(description: &Description, site: &Site, extent: &Extent, options: &Options) -> usize {
    let query = extent.side(description.streams[site.query].side);
    // A row's shares: at most three K, three measures each, and the centred ones, for nine pieces; room for the variants beside.
    let share = (3 * 3 + 2) * (N_TERMS + 1) * 8;
    let variants = n_variants(options) * 2 * 4 * 8;
    let resampled_steps = if options.step_intervals { query.steps } else { 0 };
    (query.steps + query.batch) * share + options.bootstrap * ((1 + resampled_steps) * share + variants)
}

/// Attention, terms and what they bring of the sentences shown, as if each were the longest; never more than is kept.
fn samples(description: &Description, extent: &Extent, options: &Options) -> usize {
    let steps = |stream: usize| extent.side(description.streams[stream].side).steps;
    let cells = description.sites.iter().map(|site| steps(site.query).saturating_mul(steps(site.key)));
    let one = cells.fold(0, usize::saturating_add).saturating_mul((N_TERMS + 3) * size_of::<f32>());
    options.samples.saturating_mul(one).min(SAMPLE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: &[Token], target: &[Token]) -> Pair {
        Pair::new(source.to_vec(), target.to_vec())
    }

    /// Tokens 1, 2, 3 and 7, 8 with the start; the longer of two sentences; all of one batch.
    #[test]
    fn an_extent_is_that_of_the_largest() {
        let pairs = [pair(&[1, 2, 1], &[7]), pair(&[3], &[7, 8])];
        let extent = Extent::of(pairs.iter());
        assert_eq!((extent.source.steps, extent.source.tokens, extent.source.batch), (3, 3, 4));
        assert_eq!((extent.target.steps, extent.target.tokens, extent.target.batch), (2, 3, 3));
        assert_eq!(extent.cells, [3 + 2, 9 + 1, 1 + 4]);
        assert_eq!((extent.source.states, extent.target.states), (4, 3));
    }

    /// Batches of one: the longer sentence alone; 5 + 3 numbers of pictures are kept whatever the batch.
    #[test]
    fn smaller_batches_need_less_and_signals_are_kept() {
        let picture = |n: usize, pair: Pair| Pair { signal: Some(crate::Signal::new(vec![0.0; n])), ..pair };
        let pairs = [picture(5, pair(&[1, 2, 1], &[7])), picture(3, pair(&[3], &[7, 8]))];
        let extent = Extent::in_batches(pairs.iter(), 1);
        assert_eq!((extent.source.batch, extent.target.batch, extent.cells), (3, 2, [3, 9, 4]));
        assert_eq!((extent.signals, Extent::of(pairs.iter()).signals), (8, 8));
    }

    #[test]
    fn pairs_that_are_kept_count() {
        let description = Description {
            model: String::new(),
            model_hash: String::new(),
            source: crate::Words::default(),
            target: crate::Words::default(),
            streams: Vec::new(),
            sites: Vec::new(),
            readout: None,
        };
        let pairs = vec![pair(&[1, 2, 1], &[7]); 100];
        let (extent, n_bytes) = (Extent::of(pairs.iter()), 100 * (size_of::<Pair>() + 4 * 4));
        let of = |extent: &Extent| Memory::of(&description, extent, &Options::default()).total();
        assert_eq!(of(&extent.keeping(pairs.iter())), of(&extent) + n_bytes);
        assert_eq!(Memory::of_sums(&description, &extent.keeping(pairs.iter())).pairs, n_bytes);
    }

    #[test]
    fn more_of_the_same_sentences_need_no_more() {
        let some: Vec<Pair> = (0..200u32).map(|number| pair(&[number % 7, 1, 2], &[number % 5, 3])).collect();
        let more: Vec<Pair> = some.iter().cycle().take(20 * some.len()).cloned().collect();
        assert_eq!(Extent::of(some.iter()), Extent::of(more.iter()));
    }

    /// One stream of 4 numbers a state on either side; sources of 3 steps and 3 tokens, targets of 2 steps and 3 tokens with the start.
    /// Sums: (6 + 5) rows × 4 numbers × 8 bytes, the lists of 3 + 3 tokens, and twice the 4 + 3 places. A sentence shown: 2 × 3 cells × 12
    /// numbers × 4 bytes, eight of them unless told.
    #[test]
    fn sums_need_less_than_an_explanation_and_sentences_shown_count() {
        let stream = |side| crate::Stream { name: "some".into(), side, consumed: crate::Consumed::Current, d: 4 };
        let site = Site {
            kind: SiteKind::Cross,
            layer: 0,
            head: 0,
            query: 1,
            key: 0,
            map: ScoreMap::Dot { scale: 1.0 },
            visible: crate::Visible::All,
            value: None,
        };
        let description = Description {
            model: String::new(),
            model_hash: String::new(),
            source: crate::Words::default(),
            target: crate::Words::default(),
            streams: vec![stream(Side::Source), stream(Side::Target)],
            sites: vec![site],
            readout: None,
        };
        let extent = Extent::of([pair(&[1, 2, 1], &[7]), pair(&[3], &[7, 8])].iter());
        let sums = Memory::of_sums(&description, &extent);
        let lists = 6 * (2 * size_of::<TokenSum>() + 4 * 16 + 64) + 2 * 7 * 16;
        assert_eq!((sums.components, sums.heads, sums.counts, sums.samples), (11 * 4 * 8 + lists, 0, 0, 0));
        let whole = Memory::of(&description, &extent, &Options::default());
        assert_eq!((whole.samples, whole.batch), (8 * 6 * 12 * 4, sums.batch));
        assert!(sums.total() < whole.total());
        let many = Options { samples: usize::MAX, ..Options::default() };
        assert_eq!(Memory::of(&description, &extent, &many).samples, SAMPLE_BYTES);
        // The longest: 2 × 3 cells of eleven numbers, and twice the 2 + 3 states of four. Rebuilt nine ways: 3 × 1 + 1 × 2 cells, three rows.
        let of = |n_threads: usize, causal: u64| Memory::of(&description, &extent, &Options { n_threads, causal, ..Options::default() });
        assert_eq!((of(1, 0).terms, of(3, 0).terms), ((6 * 11 + 2 * 20) * 4, 3 * (6 * 11 + 2 * 20) * 4));
        assert_eq!((of(1, 0).changed, of(1, 5).changed), (0, 9 * (5 * 4 + 3 * size_of::<Vec<f32>>())));
    }

    /// What sums hold, with the room their lists have taken: where tokens stand at few steps, and where they stand at all.
    #[test]
    fn sums_take_no_more_than_is_said() {
        for (n_sentences, n_tokens) in [(40, 500u32), (3000, 20)] {
            let word = |sentence: u32, step: u32| (sentence * 37 + step * step * 11 + sentence * step) % n_tokens;
            let source = |sentence: u32| (0..1 + sentence % 12).map(|step| word(sentence, step)).collect::<Vec<Token>>();
            let pairs: Vec<Pair> = (0..n_sentences).map(|sentence| pair(&source(sentence), &[0])).collect();
            let mut halves = [crate::Sums::new(2), crate::Sums::new(2)];
            for (number, pair) in pairs.iter().enumerate() {
                halves[number % 2].add(&pair.source, &vec![1.0; 2 * pair.source.len()]);
            }
            let of_token = |token: &TokenSum| size_of::<TokenSum>() + token.sum.capacity() * 8 + token.steps.capacity() * PLACE_BYTES;
            let bytes = |sums: &crate::Sums| sums.by_step().len() * 8 + sums.tokens().iter().map(of_token).sum::<usize>();
            let held: usize = halves.iter().map(bytes).sum();
            let said = Extent::of(pairs.iter()).source.sums(2, 2);
            assert!(held <= said && said < 6 * held, "{n_sentences} sentences: {held} bytes, {said} said");
        }
    }
}
