//! Pretrained models as subjects of an explanation: recorded, and run again under changes.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crosslens_analysis::{
    Answer, AttentionRow, Consumed, Description, Fed, Intervene, Pair, RecordError, Recordable, Recorded, ScoreMap, Side, Site, SiteKind,
    Stream, Token, Words,
};
use crosslens_kernels::{Threads, log_sum_exp, unit_rows};

use crate::PretrainedError;
use crate::decode::rules;
use crate::layers::{At, Attention, Linear, Need, Pace, Spans, Unwatched, Watch, evenly};
use crate::model::Model;
use crate::senses::Source;
use crate::stack::{Memory, Pass};

/// Rows of source and target that are run side by side: enough to share the weights that pass by, and so few that a thread that is slowed
/// down leaves the next ones to another.
const BATCH_ROWS: usize = 216;

/// The same, on a matrix unit twice as many as it takes at a time: it is so fast that reading the weights would be felt.
fn batch_rows() -> usize {
    unit_rows().map_or(BATCH_ROWS, |rows| 2 * rows)
}

/// What the logits of the rows that are read out together may take, unless one row alone takes more: of 250,000 words each row has
/// a megabyte.
const LOGIT_BYTES: usize = 64 << 20;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which attention.
    pub kinds: Vec<SiteKind>,
    /// The states that feed it. Without them there is attention to look at, but not to explain.
    pub states: bool,
    /// What the model predicts and its loss. Without them the last layer's end and the readout, a third of the work, are left out.
    pub answers: bool,
}

impl Wanted {
    /// Everything about attention from the decoder to the encoder.
    pub fn cross() -> Self {
        Self { kinds: vec![SiteKind::Cross], states: true, answers: true }
    }
}

/// The names of tokens; shorter than the vocabulary where they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenNames {
    /// What the encoder reads; of a model of sounds or pictures all codes, one name each.
    pub source: Vec<String>,
    /// What the decoder reads and writes.
    pub target: Vec<String>,
}

/// A pretrained model, its tokens' names and threads, ready to be recorded.
///
/// Its streams are `encoder`, the states that all cross-attention asks, `cross.L`, the states that ask them in layer L, and `encoder.L` and
/// `decoder.L`, the states that ask themselves. Where norms stand before attention, the states are the normed ones: what the score map
/// reads.
#[derive(Debug)]
pub struct Subject {
    model: Arc<Model>,
    wanted: Wanted,
    description: Description,
    threads: Threads,
    /// What the last batch came to with nothing changed.
    plain: Mutex<Option<Arc<Plain>>>,
}

/// A batch as it runs with nothing changed.
#[derive(Debug)]
struct Plain {
    pairs: Vec<Pair>,
    fed: Vec<Vec<Token>>,
    shards: Vec<PlainShard>,
}

/// The rows that enter each layer.
#[derive(Debug, Default)]
struct PlainShard {
    encoder: Vec<Vec<f32>>,
    encoded: Vec<f32>,
    decoder: Vec<Vec<f32>>,
}

impl Subject {
    /// A model that works on `n_threads` threads; 0 means one per core.
    pub fn new(model: Arc<Model>, names: TokenNames, wanted: Wanted, n_threads: usize) -> Result<Self, PretrainedError> {
        let threads = threads(&model, n_threads)?;
        let description = describe(&model, names, &wanted)?;
        Ok(Self { model, wanted, description, threads, plain: Mutex::new(None) })
    }

    /// The same on other threads.
    pub fn on_threads(&self, n_threads: usize) -> Result<Self, PretrainedError> {
        let (model, wanted, description) = (self.model.clone(), self.wanted.clone(), self.description.clone());
        Ok(Self { threads: threads(&model, n_threads)?, model, wanted, description, plain: Mutex::new(None) })
    }

    /// The same, recorded where these kinds of attention happen.
    pub fn attending(&self, kinds: &[SiteKind]) -> Result<Self, PretrainedError> {
        let wanted = Wanted { kinds: kinds.to_vec(), ..self.wanted.clone() };
        let Description { source, target, .. } = &self.description;
        let names = TokenNames { source: source.names.clone(), target: target.names.clone() };
        let description = describe(&self.model, names, &wanted)?;
        Ok(Self { model: self.model.clone(), wanted, description, threads: self.threads.clone(), plain: Mutex::new(None) })
    }

    /// The threads it works on.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What the decoder reads for each pair, checked.
    fn fed(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Vec<Token>>, RecordError> {
        let refused = |error: PretrainedError| RecordError::Model(Box::new(error));
        let start = self.model.generation.start;
        let mut lists = Vec::with_capacity(pairs.len());
        for (number, pair) in pairs.iter().enumerate() {
            let n_steps = self.model.n_source_steps(pair).map_err(refused)?;
            if pair.source.len() != n_steps {
                return Err(refused(PretrainedError::Codes { found: pair.source.len(), expected: n_steps }));
            }
            let count = self.description.source.count as usize;
            if let Some(&token) = pair.source.iter().find(|&&token| token as usize >= count) {
                return Err(RecordError::UnknownToken { pair: number, side: "source", token, count });
            }
            if pair.target.is_empty() {
                return Err(RecordError::Empty { pair: number, side: "target" });
            }
            let count = self.model.readout.table.rows();
            if let Some(&token) = pair.target.iter().find(|&&token| token as usize >= count) {
                return Err(RecordError::UnknownToken { pair: number, side: "target", token, count });
            }
            let shifted = || std::iter::once(start).chain(pair.target[..pair.target.len() - 1].iter().copied()).collect::<Vec<_>>();
            let list = match fed {
                Fed::Target => shifted(),
                Fed::Given(lists) => match lists.get(number) {
                    Some(list) if list.len() == pair.target.len() => list.clone(),
                    list => {
                        let found = list.map_or(0, Vec::len);
                        let what = format!("pair {number}: {found} fed tokens are given for {} steps of the target", pair.target.len());
                        return Err(RecordError::Model(what.into()));
                    }
                },
                Fed::Own => shifted(),
            };
            self.model.check_fed(&list).map_err(refused)?;
            lists.push(list);
        }
        Ok(lists)
    }

    /// Consecutive pairs that are run side by side.
    fn shards(&self, pairs: &[Pair]) -> Vec<Range<usize>> {
        let n_rows: Vec<usize> = pairs.iter().map(|pair| pair.source.len().max(pair.target.len())).collect();
        shards(&n_rows, self.threads.count(), batch_rows())
    }

    /// What each shard comes to, in order.
    fn in_shards<T: Send>(&self, pairs: &[Pair], work: impl Fn(usize, Range<usize>) -> T + Sync) -> Vec<T> {
        let mut shards: Vec<(Range<usize>, Option<T>)> = self.shards(pairs).into_iter().map(|shard| (shard, None)).collect();
        self.threads.for_each(&mut shards, |number, (shard, result)| *result = Some(work(number, shard.clone())));
        shards.into_iter().filter_map(|(_, result)| result).collect()
    }

    /// Runs freely, by the model's own rules and under an intervention: what it writes for each pair in as many steps as its target has,
    /// after the start token.
    fn run_freely(&self, pairs: &[Pair], how: &dyn Intervene) -> Vec<Vec<Token>> {
        let of_shard = |_, shard: Range<usize>| {
            let mut fed: Vec<Vec<Token>> = Vec::new();
            for (number, pair) in pairs[shard.clone()].iter().enumerate() {
                let given = pair.target.iter().take_while(|&&token| self.model.generation.is_prompt(token));
                let mut read: Vec<Token> = std::iter::once(&self.model.generation.start).chain(given).copied().collect();
                let mut changed = Changed { subject: self, how, first_pair: shard.start + number };
                let encoded = self.model.encode(&[pair.into()], &mut changed);
                while read.len() <= pair.target.len() {
                    let (_, states) = self.model.decode(&encoded, &[&read], Pace::Steps, Need::Output, &mut changed);
                    let last = &states[states.len() - self.model.d_model()..];
                    read.push(self.next(&read, last));
                }
                fed.push(read);
            }
            fed
        };
        self.in_shards(pairs, of_shard).into_iter().flatten().collect()
    }

    /// The likeliest token that the model's rules allow after those it read.
    fn next(&self, read: &[Token], state: &[f32]) -> Token {
        // How long a text may become is the caller's to say, so nothing is forced to be the last.
        const ENDLESS: usize = usize::MAX / 2;
        let mut logits = self.model.logits(state, Pace::Steps);
        rules::apply(&self.model.generation, read, 1, ENDLESS, &mut logits);
        likeliest(&logits)
    }

    /// The batch as it runs with nothing changed, from the last time if it is the same.
    fn plain(&self, pairs: &[Pair], fed: &[Vec<Token>]) -> Arc<Plain> {
        let lock = || self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plain) = lock().as_ref().filter(|plain| plain.pairs == pairs && plain.fed == fed) {
            return plain.clone();
        }
        let shards = self.in_shards(pairs, |_, shard| self.plain_shard(&pairs[shard.clone()], &fed[shard]));
        let plain = Arc::new(Plain { pairs: pairs.to_vec(), fed: fed.to_vec(), shards });
        *lock() = Some(plain.clone());
        plain
    }

    fn plain_shard(&self, pairs: &[Pair], fed: &[Vec<Token>]) -> PlainShard {
        let (encoder, decoder) = (&self.model.encoder, &self.model.decoder);
        let mut plain = PlainShard::default();
        let (source, target) = spans(pairs, fed);
        let mut rows = encoder.embed(pairs.iter().map(Source::from), 0);
        for layer in 0..encoder.layers.len() {
            plain.encoder.push(rows.clone());
            encoder.run(&mut rows, &source, None, Pass::of_sentences(layer..layer + 1), &mut Unwatched);
        }
        encoder.finish(Pace::Sentences, &mut rows);
        plain.encoded = rows;
        let memory = Memory { states: &plain.encoded, spans: &source };
        let mut rows = decoder.embed(fed.iter().map(Source::from), 0);
        for layer in 0..decoder.layers.len() {
            plain.decoder.push(rows.clone());
            decoder.run(&mut rows, &target, Some(memory), Pass::of_sentences(layer..layer + 1), &mut Unwatched);
        }
        plain
    }

    /// Runs a shard from the layer at which something changes; returns the states that the readout reads.
    fn rerun_shard(&self, plain: &PlainShard, at: At, pairs: &[Pair], fed: &[Vec<Token>], watch: &mut dyn Watch) -> Vec<f32> {
        let (encoder, decoder) = (&self.model.encoder, &self.model.decoder);
        let (source, target) = spans(pairs, fed);
        let encoded;
        let (states, first) = if at.kind == SiteKind::EncoderSelf {
            let mut rows = plain.encoder[at.layer].clone();
            encoder.run(&mut rows, &source, None, Pass::of_sentences(at.layer..encoder.layers.len()), watch);
            encoder.finish(Pace::Sentences, &mut rows);
            encoded = rows;
            (&encoded, 0)
        } else {
            (&plain.encoded, at.layer)
        };
        let mut rows = plain.decoder[first].clone();
        let memory = Memory { states, spans: &source };
        decoder.run(&mut rows, &target, Some(memory), Pass::of_sentences(first..decoder.layers.len()), watch);
        decoder.finish(Pace::Sentences, &mut rows);
        rows
    }

    /// Answers of a shard from the states that the readout reads. Logits are there of some rows at a time.
    fn answers(&self, states: &[f32], pairs: &[Pair]) -> Vec<Answer> {
        let (d, n_words) = (self.model.readout.table.d(), self.model.readout.table.rows());
        let n_rows = states.len() / d;
        let together = evenly(n_rows, logit_rows(n_words));
        let mut targets = pairs.iter().flat_map(|pair| &pair.target);
        let mut steps = Vec::with_capacity(n_rows);
        for states in states.chunks(together * d) {
            let mut logits = self.model.logits(states, Pace::Sentences);
            steps.extend(logits.chunks_exact_mut(n_words).zip(&mut targets).map(|(row, &token)| (likeliest(row), surprise(row, token))));
        }
        let mut steps = steps.into_iter();
        let answer = |pair: &Pair| {
            let n_steps = pair.target.len();
            let (predicted, losses): (Vec<Token>, Vec<f64>) = steps.by_ref().take(n_steps).unzip();
            Answer { predicted, loss: losses.iter().sum::<f64>() / n_steps.max(1) as f64 }
        };
        pairs.iter().map(answer).collect()
    }

    /// Bytes of logits that each thread has in hand at most, of targets of up to so many steps.
    pub fn logit_bytes(&self, n_steps: usize) -> usize {
        let n_words = self.model.readout.table.rows();
        logit_rows(n_words).min(n_steps.max(batch_rows())) * n_words * size_of::<f32>()
    }

    /// Records pairs; with `answers` what is predicted and its loss too.
    fn record_with(&self, pairs: &[Pair], fed: Fed<'_>, answers: Answers) -> Result<Vec<Recorded>, RecordError> {
        self.fed(pairs, fed)?;
        let own = if fed == Fed::Own { Some(Own::of(self.run_freely(pairs, &crosslens_analysis::Untouched))) } else { None };
        let fed = self.fed(pairs, own.as_ref().map_or(fed, |own| Fed::Given(&own.read)))?;
        let of_shard = |_, shard: Range<usize>| {
            let (pairs, fed) = (&pairs[shard.clone()], &fed[shard.clone()]);
            let mut recorder = Recorder::new(self, shard.start, pairs, fed);
            let sources: Vec<Source<'_>> = pairs.iter().map(Source::from).collect();
            let fed: Vec<&[Token]> = fed.iter().map(Vec::as_slice).collect();
            let encoded = self.model.encode(&sources, &mut recorder);
            if answers == Answers::Wanted || self.wanted.kinds != [SiteKind::EncoderSelf] {
                let need = if answers == Answers::Wanted { Need::Output } else { Need::Weights };
                let (_, states) = self.model.decode(&encoded, &fed, Pace::Sentences, need, &mut recorder);
                if answers == Answers::Wanted {
                    for (sentence, answer) in recorder.recorded.iter_mut().zip(self.answers(&states, pairs)) {
                        sentence.predicted = answer.predicted;
                        sentence.loss = Some(answer.loss);
                    }
                }
            }
            recorder.recorded
        };
        let mut recorded: Vec<Recorded> = self.in_shards(pairs, of_shard).into_iter().flatten().collect();
        if let Some(own) = own.filter(|_| answers == Answers::Wanted) {
            recorded.iter_mut().zip(own.written).for_each(|(sentence, written)| sentence.predicted = written);
        }
        Ok(recorded)
    }
}

/// Whether what is predicted and its loss are made: the last layer's end and the readout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Wanted,
    LeftOut,
}

impl Recordable for Subject {
    fn description(&self) -> &Description {
        &self.description
    }

    fn record(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        self.record_with(pairs, fed, if self.wanted.answers { Answers::Wanted } else { Answers::LeftOut })
    }

    fn record_states(&self, pairs: &[Pair], fed: Fed<'_>) -> Result<Vec<Recorded>, RecordError> {
        self.record_with(pairs, fed, Answers::LeftOut)
    }

    fn run(&self, pairs: &[Pair], fed: Fed<'_>, how: &dyn Intervene) -> Result<Vec<Answer>, RecordError> {
        self.fed(pairs, fed)?;
        let own = if fed == Fed::Own { Some(Own::of(self.run_freely(pairs, how))) } else { None };
        let fed = self.fed(pairs, own.as_ref().map_or(fed, |own| Fed::Given(&own.read)))?;
        let site = how.site().and_then(|site| self.description.sites.get(site));
        let plain = site.map(|site| (At { kind: site.kind, layer: site.layer }, self.plain(pairs, &fed)));
        let of_shard = |number: usize, shard: Range<usize>| {
            let mut changed = Changed { subject: self, how, first_pair: shard.start };
            let (pairs, fed) = (&pairs[shard.clone()], &fed[shard]);
            let states = match &plain {
                Some((at, plain)) => self.rerun_shard(&plain.shards[number], *at, pairs, fed, &mut changed),
                None => {
                    let sources: Vec<Source<'_>> = pairs.iter().map(Source::from).collect();
                    let fed: Vec<&[Token]> = fed.iter().map(Vec::as_slice).collect();
                    let encoded = self.model.encode(&sources, &mut changed);
                    self.model.decode(&encoded, &fed, Pace::Sentences, Need::Output, &mut changed).1
                }
            };
            self.answers(&states, pairs)
        };
        let mut answers: Vec<Answer> = self.in_shards(pairs, of_shard).into_iter().flatten().collect();
        if let Some(own) = own {
            answers.iter_mut().zip(own.written).for_each(|(answer, written)| answer.predicted = written);
        }
        Ok(answers)
    }

    fn untrained(&self, seed: u64) -> Option<Box<dyn Recordable>> {
        let model = Arc::new(self.model.untrained(seed).ok()?);
        let Description { source, target, .. } = &self.description;
        let names = TokenNames { source: source.names.clone(), target: target.names.clone() };
        let description = describe(&model, names, &self.wanted).ok()?;
        let (wanted, threads) = (self.wanted.clone(), self.threads.clone());
        Some(Box::new(Self { model, wanted, description, threads, plain: Mutex::new(None) }))
    }
}

/// What a decoder that ran freely read and wrote at each step: the same tokens, one step apart.
struct Own {
    read: Vec<Vec<Token>>,
    written: Vec<Vec<Token>>,
}

impl Own {
    fn of(texts: Vec<Vec<Token>>) -> Self {
        let written = texts.iter().map(|text| text[1..].to_vec()).collect();
        let read = texts.into_iter().map(|mut text| {
            text.pop();
            text
        });
        Self { read: read.collect(), written }
    }
}

pub(crate) fn threads(model: &Model, n_threads: usize) -> Result<Threads, PretrainedError> {
    let io = |source| PretrainedError::Io { action: "start threads for", path: model.folder.clone(), source };
    Threads::new(n_threads).map_err(io)
}

/// Cuts pairs of so many rows each into shards of at most `most`, more only where one pair alone has more: as few as there can be
/// of about the same size, and as many for one thread as for another.
fn shards(n_rows: &[usize], n_threads: usize, most: usize) -> Vec<Range<usize>> {
    let total: usize = n_rows.iter().sum();
    let fewest = total.div_ceil(most).next_multiple_of(n_threads).min(n_rows.len());
    let even = (fewest..=n_rows.len()).step_by(n_threads).map(|n_shards| cut(n_rows, n_shards, most)).find(|(_, is_even)| *is_even);
    even.unwrap_or_else(|| cut(n_rows, fewest, most)).0
}

/// Cuts pairs into about so many shards; and whether each ends where its share of the rows does, but before a pair too large for any.
fn cut(n_rows: &[usize], n_shards: usize, most: usize) -> (Vec<Range<usize>>, bool) {
    let total = n_rows.iter().sum::<usize>().max(1);
    let (mut shards, mut is_even) = (Vec::new(), true);
    // The shard's first pair, the rows before it, and the rows before the pair at hand.
    let (mut first, mut from, mut before) = (0, 0, 0);
    for (number, &rows) in n_rows.iter().enumerate() {
        if first < number && before + rows - from > most {
            shards.push(first..number);
            is_even &= rows > most;
            (first, from) = (number, before);
        }
        before += rows;
        // A shard ends with the pair that brings all up to it to a share of the rows.
        if before * n_shards / total > from * n_shards / total {
            shards.push(first..number + 1);
            (first, from) = (number + 1, before);
        }
    }
    if first < n_rows.len() {
        shards.push(first..n_rows.len());
    }
    (shards, is_even)
}

fn spans(pairs: &[Pair], fed: &[Vec<Token>]) -> (Spans, Spans) {
    (Spans::of(pairs.iter().map(|pair| pair.source.len())), Spans::of(fed.iter().map(Vec::len)))
}

/// Rows whose logits may be there at once.
fn logit_rows(n_words: usize) -> usize {
    (LOGIT_BYTES / (n_words * size_of::<f32>()).max(1)).max(1)
}

/// The likeliest token by a row of logits, the first among equals.
fn likeliest(row: &[f32]) -> Token {
    row.iter().enumerate().fold(0, |best, (token, &logit)| if logit > row[best] { token } else { best }) as Token
}

/// The cross-entropy of a token; afterwards the row of logits holds probabilities.
fn surprise(row: &mut [f32], token: Token) -> f64 {
    let logit = row[token as usize];
    f64::from(log_sum_exp(row) - logit)
}

/// Keeps what is seen of one shard.
struct Recorder<'a> {
    subject: &'a Subject,
    source: Spans,
    target: Spans,
    recorded: Vec<Recorded>,
}

impl<'a> Recorder<'a> {
    fn new(subject: &'a Subject, first: usize, pairs: &[Pair], fed: &[Vec<Token>]) -> Self {
        let (source, target) = spans(pairs, fed);
        let Description { streams, sites, .. } = &subject.description;
        let recorded = pairs.iter().zip(fed).enumerate().map(|(number, (pair, fed))| Recorded {
            number: (first + number) as u64,
            source: pair.source.clone(),
            signal: pair.signal.clone(),
            fed: fed.clone(),
            predicted: Vec::new(),
            target: Some(pair.target.clone()),
            loss: None,
            states: vec![Vec::new(); streams.len()],
            attention: vec![Vec::new(); sites.len()],
        });
        let recorded = recorded.collect();
        Self { subject, source, target, recorded }
    }

    fn keep(&mut self, stream: usize, rows: &[f32]) {
        let Stream { side, d, .. } = self.subject.description.streams[stream];
        let spans = if side == Side::Source { &self.source } else { &self.target };
        for (sentence, recorded) in self.recorded.iter_mut().enumerate() {
            recorded.states[stream] = spans.of_sentence(sentence, rows, d).to_vec();
        }
    }
}

impl Watch for Recorder<'_> {
    fn looks_at(&self, at: At) -> bool {
        self.subject.description.first_site(at).is_some()
    }

    fn states(&mut self, at: At, queries: &[f32], keys: &[f32]) {
        if !self.subject.wanted.states {
            return;
        }
        let Some(site) = self.subject.description.first_site(at) else { return };
        let Site { query, key, .. } = self.subject.description.sites[site];
        self.keep(query, queries);
        if key != query && at.layer == 0 {
            self.keep(key, keys);
        }
    }

    fn weights(&mut self, at: At, head: usize, sentence: usize, _: [&[f32]; 2], weights: &mut [f32]) {
        if let Some(site) = self.subject.description.first_site(at) {
            self.recorded[sentence].attention[site + head] = weights.to_vec();
        }
    }
}

/// Where the sites of a layer begin.
trait FirstSite {
    fn first_site(&self, at: At) -> Option<usize>;
}

impl FirstSite for Description {
    fn first_site(&self, at: At) -> Option<usize> {
        self.sites.iter().position(|site| site.kind == at.kind && site.layer == at.layer)
    }
}

/// Lets an intervention change what happens.
struct Changed<'a> {
    subject: &'a Subject,
    how: &'a dyn Intervene,
    /// The number of the shard's first pair.
    first_pair: usize,
}

impl Changed<'_> {
    /// Where the sites of a layer begin, if anything is changed.
    fn first_site(&self, at: At) -> Option<usize> {
        self.how.changes().then(|| self.subject.description.first_site(at)).flatten()
    }
}

impl Watch for Changed<'_> {
    fn looks_at(&self, at: At) -> bool {
        self.first_site(at).is_some()
    }

    fn values(&mut self, at: At, head: usize, sentence: usize, keys: &[f32]) -> Option<Vec<f32>> {
        if self.how.site().is_some() {
            return None;
        }
        let site = self.first_site(at)? + head;
        let mut states = keys.to_vec();
        self.how.values(site, self.first_pair + sentence, &mut states);
        (states != keys).then_some(states)
    }

    fn weights(&mut self, at: At, head: usize, sentence: usize, [queries, keys]: [&[f32]; 2], weights: &mut [f32]) {
        let Some(site) = self.first_site(at) else { return };
        let (site, pair) = (site + head, self.first_pair + sentence);
        if self.how.site().is_some_and(|only| only != site) {
            return;
        }
        let Site { query, visible, .. } = self.subject.description.sites[site];
        let d = self.subject.description.streams[query].d;
        let n_keys = weights.len() / (queries.len() / d);
        for (query, (query_state, weights)) in queries.chunks_exact(d).zip(weights.chunks_exact_mut(n_keys)).enumerate() {
            let seen = visible.n_keys(query, n_keys);
            let (seen_weights, unseen) = weights.split_at_mut(seen);
            self.how.weights(AttentionRow { site, pair, query, query_state, key_states: keys }, seen_weights);
            unseen.fill(0.0);
        }
    }
}

fn describe(model: &Model, names: TokenNames, wanted: &Wanted) -> Result<Description, PretrainedError> {
    let (mut streams, mut sites) = (Vec::new(), Vec::new());
    let mut weights = model.weights.clone();
    let mut stream = |name: String, side, d| {
        streams.push(Stream { name, side, consumed: Consumed::Current, d });
        streams.len() - 1
    };
    for kind in SiteKind::ALL.into_iter().filter(|kind| wanted.kinds.contains(kind)) {
        let (stack, side, word) = match kind {
            SiteKind::Cross => (&model.decoder, Side::Target, "cross"),
            SiteKind::EncoderSelf => (&model.encoder, Side::Source, "encoder"),
            SiteKind::DecoderSelf => (&model.decoder, Side::Target, "decoder"),
        };
        let keys = (kind == SiteKind::Cross).then(|| stream("encoder".into(), Side::Source, model.encoder.d_end()));
        for (layer, parts) in stack.layers.iter().enumerate() {
            let Some(attention) = (if kind == SiteKind::Cross { parts.cross.as_ref() } else { Some(&parts.attention) }) else { continue };
            let query = stream(format!("{word}.{layer}"), side, stack.d());
            sites.extend(layer_sites(&mut weights, &attention.1, At { kind, layer }, [query, keys.unwrap_or(query)])?);
        }
    }
    let words = |names: Vec<String>, count: usize, start| Words {
        count: count as Token,
        names: names.into_iter().take(count).collect(),
        start,
        end: model.generation.ends.first().copied(),
    };
    let (encoder, decoder) = (&model.encoder, &model.decoder);
    let what = format!(
        "{}: {} encoder and {} decoder layers of {} heads, d {}",
        model.family(),
        encoder.layers.len(),
        decoder.layers.len(),
        decoder.layers.first().map_or(0, |layer| layer.attention.1.n_heads),
        decoder.d()
    );
    Ok(Description {
        model: what,
        model_hash: model.weights.hash()?,
        source: if model.reads_signals() { codes(names.source) } else { words(names.source, encoder.n_words(), None) },
        target: words(names.target, decoder.n_words(), Some(model.generation.start)),
        streams,
        sites,
        readout: None,
    })
}

/// The codes that stand for the steps of signals; they neither start nor end anything.
fn codes(names: Vec<String>) -> Words {
    Words { count: names.len() as Token, names, start: None, end: None }
}

/// The sites of one layer, a head each.
fn layer_sites(
    weights: &mut crate::weights::Weights,
    attention: &Attention,
    At { kind, layer }: At,
    [query, key]: [usize; 2],
) -> Result<Vec<Site>, PretrainedError> {
    let mut heads = |map: &Linear| map.parts(weights, attention.n_heads);
    let maps = heads(&attention.query)?.into_iter().zip(heads(&attention.key)?).zip(heads(&attention.value)?);
    let site = |(head, ((of_query, of_key), of_value)): (usize, _)| Site {
        kind,
        layer,
        head,
        query,
        key,
        map: ScoreMap::Projected {
            query: of_query,
            key: of_key,
            scale: attention.scale,
            position_bias: attention.bias.as_ref().map(|biases| biases[head].clone()),
        },
        visible: attention.visible,
        value: Some(of_value),
    };
    Ok(maps.enumerate().map(site).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2560 rows would be twelve shards of 214, which pairs of 40 do not fill; of thirteen, 197 rows each, none has more than five pairs.
    #[test]
    fn shards_are_even_and_not_too_large() {
        let lengths =
            |n_rows: &[usize], n_threads| shards(n_rows, n_threads, BATCH_ROWS).iter().map(|shard| shard.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&[40; 64], 1), [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4]);
        assert_eq!(lengths(&[25; 64], 2), [8; 8]);
        assert_eq!(lengths(&[25; 3], 2), [2, 1]);
        assert_eq!(lengths(&[], 2), [0; 0]);
        // Too large for any shard, so alone in one; those around it do not suffer.
        assert_eq!(lengths(&[1, 1, 1000, 1, 1], 1), [2, 1, 2]);
    }

    #[test]
    fn no_shard_has_more_rows_than_a_batch_unless_one_pair_has() {
        for seed in 0..200usize {
            let n_rows: Vec<usize> = (0..1 + seed % 64).map(|pair| 1 + (pair * pair * 31 + seed * 97) % (1 + seed * 4)).collect();
            for n_threads in [1, 2, 3] {
                let shards = shards(&n_rows, n_threads, BATCH_ROWS);
                assert!(shards.iter().cloned().flatten().eq(0..n_rows.len()), "every pair once, in order: {shards:?}");
                for shard in shards {
                    let rows: usize = n_rows[shard.clone()].iter().sum();
                    assert!(rows <= BATCH_ROWS || shard.len() == 1, "{rows} rows of {shard:?}");
                }
            }
        }
    }
}
