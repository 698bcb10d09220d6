//! Fits the components of many sentences and splits their scores, as an explanation does.

use crosslens_analysis::{
    Breakdown, Components, Consumed, Description, Estimator, Recorded, ScoreMap, ShareTally, Shrinkage, Side, Site, SiteKind, SiteSplit,
    Stream, Subset, Sums, Token, Visible, Words,
};
use crosslens_kernels::Threads;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::protocol::serve;

/// The peers' sizes: sentences, steps on each side, dimensions, words.
const N_SENTENCES: usize = 2000;
const N_STEPS: usize = 25;
const D: usize = 512;
const N_WORDS: u32 = 8000;
/// Sentences that one thread takes at a time.
const CHUNK: usize = 50;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Sentences, in multiples of the peers' 2,000; more than 1 repeats them, so that only the work grows.
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// Only sum and fit, without splitting any score.
    #[arg(long)]
    fit_only: bool,
}

/// One step is one whole pass: temporal and input components of both sides, the nine terms of every score, and their shares at the highest
/// score of every row.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let description = description();
    let sentences = sentences();
    let threads = Threads::new(arguments.threads)?;
    serve("crosslens", || {
        let components = fit(&description, &sentences, arguments.times, &threads);
        if arguments.fit_only {
            return f64::from(components[0].temporal(0)[0]);
        }
        shares(&description, &sentences, arguments.times, &components, &threads)
    })
}

/// One side after the other, or both at once on two threads; the sums of a side are let go as soon as its components are made.
fn fit(description: &Description, sentences: &[Recorded], times: usize, threads: &Threads) -> [Components<f32>; 2] {
    let mut sides = [0, 1].map(|stream| (stream, Components::nothing(D)));
    threads.for_each(&mut sides, |_, (number, components)| {
        let stream = &description.streams[*number];
        let mut sums = Sums::new(D);
        for sentences in (0..times).flat_map(|_| sentences.chunks(CHUNK)) {
            let tokens: Vec<_> = sentences.iter().map(|sentence| sentence.tokens(stream, description.words(stream.side))).collect();
            let states = sentences.iter().zip(&tokens).map(|(sentence, tokens)| (&tokens[..], &sentence.states[*number][..]));
            sums.add_all(&states.collect::<Vec<_>>());
        }
        *components = sums.fit(Estimator::Paper, Shrinkage::None).expect("there are states").components;
    });
    sides.map(|(_, components)| components)
}

fn shares(description: &Description, sentences: &[Recorded], times: usize, components: &[Components<f32>; 2], threads: &Threads) -> f64 {
    let split = SiteSplit::new(description, &description.sites[0], &components[0], &components[1]).expect("sizes fit");
    let mut total = ShareTally::new(9, &[1]);
    let mut chunks: Vec<(&[Recorded], ShareTally)> =
        (0..times).flat_map(|_| sentences.chunks(CHUNK)).map(|chunk| (chunk, ShareTally::new(9, &[1]))).collect();
    threads.for_each(&mut chunks, |_, (sentences, tally)| {
        let (mut breakdown, mut score) = (Breakdown::default(), Vec::new());
        for (number, sentence) in sentences.iter().enumerate() {
            split.split_before(sentence, sentences.get(number + 1), &mut breakdown);
            for query in 0..breakdown.n_queries() {
                breakdown.sum(Subset::all(false), query, &mut score);
                tally.add_row(&breakdown, query, &score);
            }
        }
    });
    chunks.iter().for_each(|(_, tally)| total.add(tally, 1.0));
    total.top()[0].absolute.pieces[0]
}

fn description() -> Description {
    let words = Words { count: N_WORDS, ..Words::default() };
    let stream = |name: &str, side| Stream { name: name.into(), side, consumed: Consumed::Current, d: D };
    let map = ScoreMap::Dot { scale: 1.0 };
    Description {
        model: "random states".into(),
        model_hash: String::new(),
        source: words.clone(),
        target: words,
        streams: vec![stream("decoder", Side::Target), stream("encoder", Side::Source)],
        sites: vec![Site { kind: SiteKind::Cross, layer: 0, head: 0, query: 0, key: 1, map, visible: Visible::All, value: None }],
        readout: None,
    }
}

/// States as the peers make them: half a normal number each, plus a vector of the step and one of the token; tokens after Zipf.
fn sentences() -> Vec<Recorded> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut cumulative: Vec<f64> = (1..=N_WORDS).map(|rank| 1.0 / f64::from(rank)).collect();
    for rank in 1..cumulative.len() {
        cumulative[rank] += cumulative[rank - 1];
    }
    let total = cumulative[cumulative.len() - 1];
    let sides: Vec<(Vec<f32>, Vec<f32>)> =
        (0..2).map(|_| (normal(&mut rng, N_STEPS * D), normal(&mut rng, N_WORDS as usize * D))).collect();
    (0..N_SENTENCES as u64)
        .map(|number| {
            let mut tokens: Vec<Vec<Token>> = Vec::new();
            let mut states = Vec::new();
            for (time, token) in &sides {
                let drawn: Vec<Token> = (0..N_STEPS)
                    .map(|_| {
                        let drawn = rng.random::<f64>() * total;
                        cumulative.partition_point(|&sum| sum < drawn) as Token
                    })
                    .collect();
                let mut side = normal(&mut rng, N_STEPS * D);
                for (step, state) in side.chunks_exact_mut(D).enumerate() {
                    let word = drawn[step] as usize;
                    for (i, x) in state.iter_mut().enumerate() {
                        *x = 0.5 * *x + time[step * D + i] + token[word * D + i];
                    }
                }
                tokens.push(drawn);
                states.push(side);
            }
            let fed = tokens.swap_remove(0);
            Recorded { number, source: tokens.swap_remove(0), predicted: fed.clone(), fed, states, ..Recorded::default() }
        })
        .collect()
}

fn normal(rng: &mut impl Rng, n: usize) -> Vec<f32> {
    (0..n).map(|_| StandardNormal.sample(rng)).collect()
}
