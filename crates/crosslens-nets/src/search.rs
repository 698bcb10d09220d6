//! Writing a target for each source: the likeliest word at every step, or several hypotheses side by side.

use std::rc::Rc;

use crosslens_analysis::Token;
use crosslens_kernels::{Real, Threads, log_sum_exp, place_of_highest};

use crate::network::{Network, Stepper, Stepping};

/// How targets are searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Hypotheses followed side by side; 1 takes the likeliest word at every step.
    pub beams: usize,
    /// A hypothesis of `n` tokens is rated by its log probability over `n` to this power; 0 rates by the probability alone.
    pub length_penalty: f64,
    /// Hypotheses to return for each source, at most as many as there are beams.
    pub n_best: usize,
    /// The token that ends a target.
    pub end: Token,
    /// A target has at most this many tokens and `steps_per_source` for each of its source's, its end included.
    pub steps: usize,
    /// See `steps`.
    pub steps_per_source: usize,
    /// What is kept of the attention that tokens are written with.
    pub keep: Keep,
}

/// What is kept of the attention that tokens are written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// For each token where it looked most.
    Places,
    /// That, and all weights: as many numbers for each token as the source has, for each head.
    Weights,
}

impl Search {
    /// The likeliest word at every step, up to twice the source's tokens and ten more.
    pub fn greedy(end: Token) -> Self {
        Self { beams: 1, length_penalty: 1.0, n_best: 1, end, steps: 10, steps_per_source: 2, keep: Keep::Nothing }
    }

    /// Most tokens of the target for a source of so many.
    pub fn most_tokens(&self, n_source: usize) -> usize {
        (self.steps + self.steps_per_source * n_source).max(1)
    }

    fn rate(&self, log_probability: f64, n_tokens: usize) -> f64 {
        log_probability / (n_tokens.max(1) as f64).powf(self.length_penalty)
    }
}

/// A target somebody may want.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis<F> {
    /// Its tokens, the end included where it was reached.
    pub tokens: Vec<Token>,
    /// Of each token, the natural logarithm of its probability.
    pub log_probabilities: Vec<f64>,
    /// What it is rated by.
    pub score: f64,
    /// Of each token the source step with most weight, the mean over heads; the last step, which ends the source, is none to look at, the
    /// first among equals is taken. Empty without attention, or where [`Keep::Nothing`] is kept.
    pub looked_at: Vec<usize>,
    /// `[target step, head, source step]`, of a Transformer `[target step, layer, head, source step]`: the weights with which each token
    /// was written; empty without attention, or where they are not kept.
    pub attention: Vec<F>,
}

impl<F> Hypothesis<F> {
    /// Logarithm of the probability of all tokens.
    pub fn log_probability(&self) -> f64 {
        self.log_probabilities.iter().sum()
    }
}

/// Most sources that are written for together, most beams of them all, and most tokens that these look at, so that memory grows neither with
/// their length nor with the beams of each. A step reads all weights once, however many sources go along: of a readout that no cache holds,
/// that is much of its time.
const GROUP: usize = 64;
const GROUP_BEAMS: usize = 256;
const GROUP_TOKENS: usize = 16_384;

/// Sources in a group of so many, each with so many beams: few groups, and as many for each thread.
fn group_size(n_sources: usize, beams: usize, n_threads: usize) -> usize {
    let most = (GROUP_BEAMS / beams).clamp(1, GROUP);
    let n_groups = n_sources.div_ceil(most).next_multiple_of(n_threads);
    n_sources.div_ceil(n_groups.max(1)).max(1)
}

/// The best hypotheses for each source, the best first.
///
/// A source's result does not depend on the others, nor on the threads. Panics where [`Stepper::start`] does, and if there are no beams.
pub fn search<F: Real>(
    network: &Network,
    weights: &[F],
    sources: &[Vec<Token>],
    how: &Search,
    threads: &Threads,
) -> Vec<Vec<Hypothesis<F>>> {
    let longest = sources.iter().map(Vec::len).max().unwrap_or(0);
    if longest == 0 {
        return Vec::new();
    }
    let stepper = Stepper::new(network, weights, longest.max(how.most_tokens(longest)), threads);
    write(&stepper, network.start_token(), sources, how, threads)
}

/// The same with a network that is ready.
pub fn write<F: Real>(
    stepper: &Stepper<'_, F>,
    start: Token,
    sources: &[Vec<Token>],
    how: &Search,
    threads: &Threads,
) -> Vec<Vec<Hypothesis<F>>> {
    assert!(how.beams > 0, "there is at least one beam");
    // Sources of like length end at about the same step.
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(sources[number].len()));
    let lengths: Vec<usize> = order.iter().map(|&number| sources[number].len()).collect();
    let most = group_size(sources.len(), how.beams, threads.count());
    let mut groups: Vec<Written<'_, F>> = Vec::new();
    let mut rest = &order[..];
    while let Some(&longest) = lengths.get(order.len() - rest.len()) {
        let fit = GROUP_TOKENS / (longest.max(1) * how.beams);
        let (numbers, after) = rest.split_at(fit.clamp(1, most).min(rest.len()));
        groups.push(Written { numbers, best: Vec::new() });
        rest = after;
    }
    threads.for_each(&mut groups, |_, group| {
        let sources: Vec<&[Token]> = group.numbers.iter().map(|&number| &sources[number][..]).collect();
        let lengths: Vec<usize> = sources.iter().map(|source| source.len()).collect();
        group.best = Group::new(&sources, how, stepper.most_steps()).write(stepper.start(&sources), start, &lengths);
    });
    let mut results: Vec<Vec<Hypothesis<F>>> = sources.iter().map(|_| Vec::new()).collect();
    for Written { numbers, best } in groups {
        numbers.iter().zip(best).for_each(|(&number, hypotheses)| results[number] = hypotheses);
    }
    results
}

/// The sources of a group, by number, and the best hypotheses for each.
struct Written<'a, F> {
    numbers: &'a [usize],
    best: Vec<Vec<Hypothesis<F>>>,
}

/// What is being written for some sources.
struct Group<'a, F> {
    how: &'a Search,
    /// By source.
    most_tokens: Vec<usize>,
    finished: Vec<Vec<Beam<F>>>,
    /// Row → its beam; rows of one source stand together, the best first.
    running: Vec<Beam<F>>,
}

/// A hypothesis as it grows: beams that begin alike share their beginning, so that a step costs the same however long they are.
#[derive(Clone)]
struct Beam<F> {
    last: Option<Rc<Step<F>>>,
    n_tokens: usize,
    log_probability: f64,
    score: f64,
}

/// A token of a beam, and what was written before it.
struct Step<F> {
    before: Option<Rc<Self>>,
    token: Token,
    log_probability: f64,
    looked_at: Option<usize>,
    attention: Vec<F>,
}

/// One after the other: a chain of many thousands would be too deep for calls within calls.
impl<F> Drop for Step<F> {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut step) = before.and_then(Rc::into_inner) {
            before = step.before.take();
        }
    }
}

impl<F: Real> Beam<F> {
    fn start() -> Self {
        Self { last: None, n_tokens: 0, log_probability: 0.0, score: 0.0 }
    }

    /// All of it, from its first token on.
    fn hypothesis(&self) -> Hypothesis<F> {
        let steps: Vec<&Step<F>> = std::iter::successors(self.last.as_deref(), |step| step.before.as_deref()).collect();
        let in_order = || steps.iter().rev();
        Hypothesis {
            tokens: in_order().map(|step| step.token).collect(),
            log_probabilities: in_order().map(|step| step.log_probability).collect(),
            score: self.score,
            looked_at: in_order().filter_map(|step| step.looked_at).collect(),
            attention: in_order().flat_map(|step| step.attention.iter().copied()).collect(),
        }
    }
}

/// A word that could come next.
#[derive(Clone, Copy)]
struct Candidate {
    row: usize,
    token: Token,
    /// Of the token alone, and of the hypothesis with it.
    log_probability: f64,
    total: f64,
}

impl<'a, F: Real> Group<'a, F> {
    fn new(sources: &[&[Token]], how: &'a Search, most_steps: usize) -> Self {
        Self {
            how,
            most_tokens: sources.iter().map(|source| how.most_tokens(source.len()).min(most_steps)).collect(),
            finished: sources.iter().map(|_| Vec::new()).collect(),
            running: sources.iter().map(|_| Beam::start()).collect(),
        }
    }

    fn write(mut self, mut stepping: Stepping<'_, F>, start: Token, lengths: &[usize]) -> Vec<Vec<Hypothesis<F>>> {
        while !self.running.is_empty() {
            let fed: Vec<Token> = self.running.iter().map(|beam| beam.last.as_ref().map_or(start, |last| last.token)).collect();
            let n_rows = fed.len();
            let logits = stepping.step(&fed);
            let n_words = logits.len() / n_rows;
            let candidates: Vec<Vec<Candidate>> =
                logits.chunks_exact_mut(n_words).enumerate().map(|(row, logits)| self.candidates(row, logits)).collect();
            let rows = self.choose(&stepping, candidates, lengths);
            stepping.keep(&rows);
        }
        let n_best = self.how.n_best.clamp(1, self.how.beams);
        let best = |mut beams: Vec<Beam<F>>| {
            beams.sort_by(|a, b| b.score.total_cmp(&a.score));
            beams.iter().take(n_best).map(Beam::hypothesis).collect()
        };
        self.finished.into_iter().map(best).collect()
    }

    /// The likeliest continuations of a row, the best first: enough of them that the end may be among them.
    fn candidates(&self, row: usize, logits: &mut [F]) -> Vec<Candidate> {
        let wanted = if self.how.beams == 1 { 1 } else { self.how.beams + 1 };
        let best = highest(logits, wanted);
        let kept: Vec<f64> = best.iter().map(|&token| logits[token as usize].to_f64()).collect();
        let total = log_sum_exp(logits).to_f64();
        let before = self.running[row].log_probability;
        best.iter()
            .zip(kept)
            .map(|(&token, logit)| {
                let log_probability = logit - total;
                Candidate { row, token, log_probability, total: before + log_probability }
            })
            .collect()
    }

    /// Takes the best continuations of every source; returns the rows they go on from.
    fn choose(&mut self, stepping: &Stepping<'_, F>, mut candidates: Vec<Vec<Candidate>>, lengths: &[usize]) -> Vec<usize> {
        let mut running = Vec::with_capacity(self.running.len());
        let mut rows = Vec::with_capacity(self.running.len());
        let mut first = 0;
        while first < candidates.len() {
            let source = stepping.origin(first);
            let end = (first..candidates.len()).find(|&row| stepping.origin(row) != source).unwrap_or(candidates.len());
            let mut of_source: Vec<Candidate> = candidates[first..end].iter_mut().flat_map(std::mem::take).collect();
            of_source.sort_by(|a, b| b.total.total_cmp(&a.total).then(a.row.cmp(&b.row)).then(a.token.cmp(&b.token)));
            if of_source.is_empty() {
                // No logit is a number: what there is must do.
                self.finished[source].push(self.running[first].clone());
            }
            let n_before = rows.len();
            // Those that go on, or would if they were not as long as they may be: of equal length, the best of them are the first.
            let mut n_taken = 0;
            for (rank, candidate) in of_source.iter().enumerate() {
                let is_end = candidate.token == self.how.end;
                if n_taken == self.how.beams {
                    break;
                }
                // An end that is not among the best is no reason to stop there.
                if is_end && rank >= self.how.beams {
                    continue;
                }
                let beam = self.extended(stepping, candidate, lengths[source]);
                n_taken += usize::from(!is_end);
                if is_end || beam.n_tokens >= self.most_tokens[source] {
                    self.finished[source].push(beam);
                } else {
                    running.push(beam);
                    rows.push(candidate.row);
                }
            }
            if self.finished[source].len() >= self.how.beams {
                running.truncate(n_before);
                rows.truncate(n_before);
            }
            first = end;
        }
        self.running = running;
        rows
    }

    fn extended(&self, stepping: &Stepping<'_, F>, candidate: &Candidate, n_source: usize) -> Beam<F> {
        let Beam { last, n_tokens, .. } = &self.running[candidate.row];
        let n_tokens = n_tokens + 1;
        let weights = if self.how.keep == Keep::Nothing { &[] } else { stepping.attention(candidate.row) };
        let step = Step {
            before: last.clone(),
            token: candidate.token,
            log_probability: candidate.log_probability,
            looked_at: most_looked_at(weights, n_source),
            attention: if self.how.keep == Keep::Weights { weights.to_vec() } else { Vec::new() },
        };
        Beam { last: Some(Rc::new(step)), n_tokens, log_probability: candidate.total, score: self.how.rate(candidate.total, n_tokens) }
    }
}

/// The source step with most weight over all heads but for the last, which ends the source, unless it is the only one; none without weights.
fn most_looked_at<F: Real>(weights: &[F], n_source: usize) -> Option<usize> {
    if weights.is_empty() {
        return None;
    }
    let mut best = (0, f64::NEG_INFINITY);
    for step in 0..n_source.saturating_sub(1).max(1) {
        let weight: f64 = weights.iter().skip(step).step_by(n_source).map(|weight| weight.to_f64()).sum();
        if weight > best.1 {
            best = (step, weight);
        }
    }
    Some(best.0)
}

/// The tokens of the `n` highest logits, the highest first, the lower token among equals; NaN never wins.
fn highest<F: Real>(logits: &[F], n: usize) -> Vec<Token> {
    if n == 1 {
        return place_of_highest(logits).map(|place| place as Token).into_iter().collect();
    }
    let mut best: Vec<(F, Token)> = Vec::with_capacity(n + 1);
    let mut floor = F::of(f64::NEG_INFINITY);
    for (token, &logit) in logits.iter().enumerate() {
        if logit > floor || (best.len() < n && !logit.to_f64().is_nan()) {
            let place = best.partition_point(|&(other, _)| other >= logit);
            best.insert(place, (logit, token as Token));
            best.truncate(n);
            if best.len() == n {
                floor = best[n - 1].0;
            }
        }
    }
    best.into_iter().map(|(_, token)| token).collect()
}

#[cfg(test)]
mod tests {
    use crosslens_analysis::Pair;

    use super::*;
    use crate::network::{Cell, Engine, Family, Feeding, Inputs, NetworkConfig, Score};

    const END: Token = 4;

    fn networks() -> Vec<NetworkConfig> {
        let small = |family| NetworkConfig { hidden: 6, inputs: Inputs::Embedding { size: 5 }, ..NetworkConfig::of(family) };
        let recurrent = Family::ALL.into_iter().filter(|&family| family != Family::Transformer);
        let mut networks: Vec<NetworkConfig> = recurrent.map(small).collect();
        networks.push(NetworkConfig { hidden: 8, heads: 2, ..NetworkConfig::of(Family::Transformer) });
        networks.push(NetworkConfig { cell: Cell::Lstm, layers: 2, ..small(Family::Bahdanau) });
        networks.push(NetworkConfig { input_feeding: true, cell: Cell::GruResetAfter, ..small(Family::Luong) });
        networks.push(NetworkConfig { score: Some(Score::Qkv), heads: 2, ..small(Family::Aed) });
        networks.push(NetworkConfig { inputs: Inputs::OneHot { size: 0 }, readout_bias: true, ..small(Family::Ao) });
        networks
    }

    fn sources() -> Vec<Vec<Token>> {
        vec![vec![0, 1, 2], vec![3], vec![2, 2, 0, 1, 3], vec![1, 0]]
    }

    /// Lively weights, so that the words written differ.
    fn drawn(config: &NetworkConfig) -> (Network, Vec<f64>) {
        let network = Network::new(config, 4, 5, 3).expect("a sound network");
        let weights = network.draw_weights::<f64>(9).into_iter().map(|weight| 3.0 * weight).collect();
        (network, weights)
    }

    #[test]
    fn greedy_steps_are_those_of_a_free_pass_bit_for_bit() {
        let threads = Threads::new(2).expect("threads");
        let mut engine = Engine::new(1).expect("an engine");
        for config in networks() {
            let (network, weights) = drawn(&config);
            let how = Search { steps: 6, steps_per_source: 0, end: Token::MAX, keep: Keep::Weights, ..Search::greedy(END) };
            let written = search(&network, &weights, &sources(), &how, &threads);
            let pairs: Vec<Pair> = sources().into_iter().map(|source| Pair::new(source, vec![0; 6])).collect();
            for (seen, written) in engine.observe(&network, &weights, &pairs, Feeding::Free).iter().zip(&written) {
                let [written] = &written[..] else { panic!("one hypothesis") };
                assert_eq!(written.tokens, seen.predicted, "{config:?}");
                let heads = if seen.attention.is_empty() {
                    0
                } else {
                    config.heads * if config.family == Family::Transformer { config.layers } else { 1 }
                };
                let n_source = seen.attention.len() / (6 * heads.max(1));
                for (step, row) in written.attention.chunks(heads.max(1) * n_source.max(1)).enumerate() {
                    for (head, row) in row.chunks(n_source).enumerate() {
                        assert_eq!(row, &seen.attention[(head * 6 + step) * n_source..][..n_source], "{config:?}, step {step}");
                    }
                }
                for (step, (&token, &log)) in written.tokens.iter().zip(&written.log_probabilities).enumerate() {
                    let logits = &seen.logits[step * 5..][..5];
                    let total = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
                    assert!((logits[token as usize] - total - log).abs() < 1e-9, "{config:?}, step {step}");
                }
            }
        }
    }

    /// Every target of up to three tokens, rated one by one.
    fn exhaustive(network: &Network, weights: &[f64], source: &[Token], how: &Search) -> (Vec<Token>, f64) {
        let mut engine = Engine::new(1).expect("an engine");
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        let mut targets = vec![vec![]];
        for _ in 0..3 {
            targets = targets
                .into_iter()
                .flat_map(|target: Vec<Token>| {
                    if target.last() == Some(&END) { vec![target] } else { (0..5).map(|token| [&target[..], &[token]].concat()).collect() }
                })
                .collect();
        }
        for target in targets {
            let pair = Pair::new(source.to_vec(), target.clone());
            let outcome = engine.evaluate(network, weights, &[pair], Feeding::Forced);
            let score = how.rate(-outcome.loss * target.len() as f64, target.len());
            if score > best.1 {
                best = (target, score);
            }
        }
        best
    }

    #[test]
    fn wide_beams_find_the_best_of_all_targets() {
        let threads = Threads::new(1).expect("threads");
        for config in networks() {
            let (network, weights) = drawn(&config);
            for length_penalty in [0.0, 1.0] {
                let how = Search { beams: 64, n_best: 2, length_penalty, end: END, steps: 3, steps_per_source: 0, keep: Keep::Nothing };
                for (source, written) in sources().iter().zip(search(&network, &weights, &sources(), &how, &threads)) {
                    let (target, score) = exhaustive(&network, &weights, source, &how);
                    assert_eq!(written[0].tokens, target, "{config:?}");
                    assert!((written[0].score - score).abs() < 1e-9 && written[0].score >= written[1].score, "{config:?}");
                }
            }
        }
    }

    #[test]
    fn a_source_alone_and_among_others_gives_the_same() {
        let threads = Threads::new(2).expect("threads");
        let (network, weights) = drawn(&networks()[3]);
        let how = Search { beams: 3, n_best: 3, ..Search::greedy(END) };
        let together = search(&network, &weights, &sources(), &how, &threads);
        for (source, together) in sources().iter().zip(together) {
            assert_eq!(search(&network, &weights, std::slice::from_ref(source), &how, &threads)[0], together);
        }
        assert!(search(&network, &weights, &[], &how, &threads).is_empty());
    }

    /// The place is that of the highest mean over heads, the end of the source left out; beams that share a beginning keep their own rows.
    #[test]
    fn what_is_asked_for_is_kept_of_the_attention() {
        let threads = Threads::new(1).expect("threads");
        for config in networks() {
            let (network, weights) = drawn(&config);
            let with =
                |keep| search(&network, &weights, &sources(), &Search { beams: 3, n_best: 3, keep, ..Search::greedy(END) }, &threads);
            let [nothing, places, all] = [Keep::Nothing, Keep::Places, Keep::Weights].map(with);
            for (source, ((nothing, places), all)) in sources().iter().zip(nothing.iter().zip(&places).zip(&all)) {
                for ((nothing, places), all) in nothing.iter().zip(places).zip(all) {
                    assert!(nothing.attention.is_empty() && nothing.looked_at.is_empty() && places.attention.is_empty());
                    assert_eq!((&places.looked_at, &places.tokens, places.score), (&all.looked_at, &all.tokens, all.score));
                    assert_eq!((&nothing.tokens, nothing.score), (&all.tokens, all.score), "{config:?}");
                    if config.family == Family::Ved {
                        assert!(all.attention.is_empty() && all.looked_at.is_empty());
                        continue;
                    }
                    let n_row = all.attention.len() / all.tokens.len();
                    assert_eq!((all.looked_at.len(), n_row % source.len()), (all.tokens.len(), 0), "{config:?}");
                    for (&place, row) in all.looked_at.iter().zip(all.attention.chunks(n_row)) {
                        assert!(source.len() == 1 || place + 1 < source.len(), "{config:?}: the end is no place");
                        let mean = |step: usize| row.iter().skip(step).step_by(source.len()).sum::<f64>();
                        assert!((0..source.len().saturating_sub(1)).all(|step| mean(step) <= mean(place)), "{config:?}");
                    }
                    // The row of a step does not depend on what comes after it: that of the beam's own tokens, fed again.
                    let pair = Pair::new(source.clone(), all.tokens.clone());
                    let seen = &Engine::new(1).expect("an engine").observe(&network, &weights, &[pair], Feeding::Forced)[0];
                    let (n_heads, n_steps) = (n_row / source.len(), all.tokens.len());
                    for (step, row) in all.attention.chunks(n_row).enumerate() {
                        for (head, row) in row.chunks(source.len()).enumerate() {
                            let expected = &seen.attention[(head * n_steps + step) * source.len()..][..source.len()];
                            assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{config:?}, head {head} of {n_heads}");
                        }
                    }
                }
            }
        }
    }

    /// 20,000 words and 3,000 tokens: all weights would be 60 million numbers, and were once copied at every step.
    #[test]
    fn a_long_line_takes_no_more_memory_than_its_tokens() {
        let config = NetworkConfig { hidden: 2, inputs: Inputs::Embedding { size: 2 }, ..NetworkConfig::of(Family::Aed) };
        let network = Network::new(&config, 4, 5, 3).expect("a sound network");
        let weights = network.draw_weights::<f32>(9);
        let how = Search { keep: Keep::Places, steps_per_source: 0, steps: 3000, ..Search::greedy(Token::MAX) };
        let source: Vec<Token> = (0..20_000).map(|number| number % 4).collect();
        let written = search(&network, &weights, &[source], &how, &Threads::new(1).expect("threads"));
        assert_eq!((written[0][0].tokens.len(), written[0][0].looked_at.len()), (3000, 3000));
        assert!(written[0][0].attention.is_empty());
    }

    /// A chain of a million tokens is let go of without a call for each.
    #[test]
    fn long_beams_end_without_deep_calls() {
        let mut beam: Beam<f32> = Beam::start();
        for token in 0..1_000_000 {
            let step = Step { before: beam.last.take(), token, log_probability: 0.0, looked_at: None, attention: Vec::new() };
            beam.last = Some(Rc::new(step));
        }
        let other = beam.clone();
        drop(beam);
        assert_eq!(other.hypothesis().tokens.len(), 1_000_000);
    }

    #[test]
    fn groups_are_few_and_as_many_for_each_thread() {
        for (n_sources, n_threads, size) in [(64, 1, 64), (64, 2, 32), (65, 1, 33), (200, 2, 50), (1000, 2, 63), (3, 8, 1), (0, 2, 1)] {
            assert_eq!(group_size(n_sources, 1, n_threads), size, "{n_sources} sources on {n_threads} threads");
        }
    }

    #[test]
    fn groups_are_smaller_where_sources_have_many_beams() {
        for (beams, size) in [(1, 64), (4, 64), (5, 51), (64, 4), (256, 1), (1024, 1)] {
            assert_eq!(group_size(64 * size, beams, 1), size, "{beams} beams");
        }
    }

    /// Three beams have four continuations each, twelve in all: where targets may not be longer, the best three are enough.
    #[test]
    fn no_more_hypotheses_than_beams_end_at_the_last_step() {
        let threads = Threads::new(1).expect("threads");
        for config in networks() {
            let (network, weights) = drawn(&config);
            let how = Search { beams: 3, n_best: 3, steps: 2, steps_per_source: 0, ..Search::greedy(Token::MAX) };
            let source: &[Token] = &[0, 1, 2];
            let stepper = Stepper::new(&network, &weights, 4, &threads);
            let mut stepping = stepper.start(&[source]);
            let mut group: Group<'_, f64> = Group::new(&[source], &how, stepper.most_steps());
            for (n_running, n_finished) in [(3, 0), (0, 3)] {
                let last = |beam: &Beam<f64>| beam.last.as_ref().map_or(network.start_token(), |last| last.token);
                let fed: Vec<Token> = group.running.iter().map(last).collect();
                let logits = stepping.step(&fed);
                let candidates = logits.chunks_exact_mut(5).enumerate().map(|(row, logits)| group.candidates(row, logits)).collect();
                let rows = group.choose(&stepping, candidates, &[source.len()]);
                assert_eq!((rows.len(), group.finished[0].len()), (n_running, n_finished), "{config:?}");
                stepping.keep(&rows);
            }
        }
    }

    #[test]
    fn sources_of_any_length_are_grouped_and_come_back_in_order() {
        let threads = Threads::new(2).expect("threads");
        let (network, weights) = drawn(&networks()[0]);
        let how = Search { steps: 2, steps_per_source: 0, ..Search::greedy(END) };
        // Longer than a group may have tokens, half as long, and more short ones than a group has.
        let lengths = [3, GROUP_TOKENS / 2, GROUP_TOKENS + 1, 1].into_iter().chain([2; 70]);
        let sources: Vec<Vec<Token>> =
            lengths.enumerate().map(|(number, n)| (0..n).map(|step| ((number + step) % 4) as Token).collect()).collect();
        let together = search(&network, &weights, &sources, &how, &threads);
        for (source, together) in sources.iter().zip(together) {
            assert_eq!(search(&network, &weights, std::slice::from_ref(source), &how, &threads)[0], together);
        }
    }

    #[test]
    fn the_highest_come_first_and_nan_never() {
        assert_eq!(highest(&[1.0, f64::NAN, 3.0, 3.0, 2.0], 3), [2, 3, 4]);
        assert_eq!(highest(&[f64::NAN, -1.0], 2), [1]);
        assert_eq!(highest(&[1.0, f64::NAN, 3.0, 3.0], 1), [2]);
        assert!(highest(&[f64::NAN; 3], 1).is_empty());
    }
}
