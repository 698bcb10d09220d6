//! What the two passes of `crosslens heads` cost over a corpus, beside a bare forward pass, and how much memory they take.

use std::path::PathBuf;
use std::sync::Arc;

use crosslens_analysis::explain::{Extent, HEADS_ANSWERED, Live, Memory, Options, Phase, explain};
use crosslens_analysis::{Fed, Pair, Recordable, SiteKind, Token, Untouched};
use crosslens_pretrained::{Model, Subject, TokenNames, Wanted};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use crate::protocol::say;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder of Hugging Face's; of it only config.json and weights are read.
    folder: PathBuf,
    /// Sentence pairs, 10 to 40 tokens on each side, frequent ones more often than rare ones.
    #[arg(long, default_value_t = 10_000)]
    sentences: usize,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Resamples, as `heads` makes them.
    #[arg(long, default_value_t = 100)]
    bootstrap: usize,
    /// Sentences on which the model is run again with each head changed; they count as part of the second pass.
    #[arg(long, default_value_t = 0)]
    causal: u64,
    /// Heads of self-attention too.
    #[arg(long)]
    self_attention: bool,
    /// No bare pass, so that the peak of memory is that of `heads`.
    #[arg(long)]
    no_bare: bool,
}

/// What the bare pass does.
const BARE: &str = "all sentences: encoder, decoder, logits and loss; nothing recorded, nothing watched";
/// Sentences run at a time, as `heads` does.
const BATCH: usize = 64;

pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let other = std::io::Error::other;
    let model = Arc::new(Model::open(&arguments.folder).map_err(other)?);
    let kinds = if arguments.self_attention { SiteKind::ALL.to_vec() } else { vec![SiteKind::Cross] };
    let wanted = Wanted { kinds, states: true, answers: true };
    let subject = Subject::new(model, TokenNames::default(), wanted, arguments.threads).map_err(other)?;
    let pairs = sentences(arguments.sentences, subject.description().source.count, subject.description().target.count);
    let bare_secs = if arguments.no_bare { None } else { Some(bare(&subject, &pairs)?) };

    let options = Options {
        held_out: true,
        causal: arguments.causal,
        answered: HEADS_ANSWERED,
        samples: 0,
        bootstrap: arguments.bootstrap,
        n_threads: arguments.threads,
        ..Options::default()
    };
    let extent = Extent::of(pairs.iter());
    let logits = subject.threads().count() * subject.logit_bytes(extent.target.steps);
    let stated = Memory { logits, ..Memory::of(subject.description(), &extent, &options) }.total();
    let before_bytes = peak_bytes();
    let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: pairs.len() as u64, fed: Fed::Target };
    let start = cpu_secs();
    let mut fitted = start;
    let report = explain(&corpus, None, &options, &mut |progress| {
        if progress.phase == Phase::Fitting {
            fitted = cpu_secs();
        }
    });
    let end = cpu_secs();
    let report = report.map_err(std::io::Error::other)?.report;
    let ratio = |secs: f64| bare_secs.map(|bare| secs / bare);
    say(&json!({
        "sentences": pairs.len(), "explained_sentences": report.corpus.pairs, "heads": report.sites.len(), "threads": arguments.threads,
        "bare": BARE,
        "bare_cpu_secs": bare_secs, "first_cpu_secs": fitted - start, "second_cpu_secs": end - fitted,
        "first_ratio": ratio(fitted - start), "second_ratio": ratio(end - fitted),
        "stated_mb": stated as f64 / 1e6, "before_mb": before_bytes / 1e6, "peak_mb": peak_bytes() / 1e6,
    }))
}

/// A forward pass with its loss, nothing kept: where nothing is changed, the model shows nobody its attention.
fn bare(subject: &Subject, pairs: &[Pair]) -> std::io::Result<f64> {
    let start = cpu_secs();
    for batch in pairs.chunks(BATCH) {
        subject.run(batch, Fed::Target, &Untouched).map_err(std::io::Error::other)?;
    }
    Ok(cpu_secs() - start)
}

/// Pairs whose tokens are drawn so that half of them are among an eighth of the words.
fn sentences(n: usize, n_source: Token, n_target: Token) -> Vec<Pair> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut side = |count: Token| {
        let length = random.random_range(10..=40);
        let token = |u: f64| 3 + (f64::from(count - 3) * u.powi(3)) as Token;
        (0..length).map(|_| token(random.random::<f64>())).collect::<Vec<Token>>()
    };
    (0..n).map(|_| Pair::new(side(n_source), side(n_target))).collect()
}

/// Processor time of this process, all threads: on a busy machine the clock on the wall says nothing.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold blanks; user and system time are the 12th and 13th fields after it, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Most memory that was in use at once.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0);
    1024.0 * kilobytes
}
