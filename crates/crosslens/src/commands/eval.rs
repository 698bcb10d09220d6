use std::path::PathBuf;

use crosslens_lab::analysis::Pair;
use crosslens_lab::analysis::corpus::{CorpusError, CorpusReport, CorpusSpec, TextPair};
use crosslens_lab::network::{Engine, Feeding, Outcome};
use crosslens_lab::tasks::{CorpusConfig, TaskConfig};
use crosslens_lab::text::TextFiles;
use crosslens_lab::{TrainedModel, Writing};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;
use crate::progress::{CorpusBar, SentenceBar, Style};

/// Judges a trained network on fresh sentences, free-running and teacher-forced.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// Fresh sentences to try.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Draws the sentences; the run's own seed gives those of its log.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Of a network for text: judge on this corpus instead of the sentences held out.
    #[arg(long, value_name = "CORPUS")]
    corpus: Option<CorpusSpec>,
    /// Of a network for text: hypotheses followed side by side.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    beams: u16,
    /// Of a network for text: write source and translation of every sentence into this file, a tab between them.
    #[arg(long, value_name = "FILE")]
    written: Option<PathBuf>,
    /// One line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TrainedModel::open(&arguments.model)?;
    let cannot = |error| Failure::refused(format!("cannot start {} threads: {error}", arguments.threads));
    let mut engine = Engine::new(arguments.threads).map_err(cannot)?;
    if let Some(text) = model.task.text() {
        return judge_text(arguments, &model, text, &mut engine);
    }
    if arguments.corpus.is_some() || arguments.written.is_some() {
        return Err(Failure::usage("--corpus and --written are for networks trained on text"));
    }
    let mut judge = |feeding| model.evaluate(&mut engine, arguments.seed, arguments.samples as usize, feeding);
    let (free, forced) = (judge(Feeding::Free), judge(Feeding::Forced));
    if arguments.json {
        let line = json!({
            "model": arguments.model.to_string_lossy(),
            "samples": arguments.samples,
            "seed": arguments.seed,
            "free": numbers(&free),
            "forced": numbers(&forced),
        });
        output::result(&line.to_string());
        return Ok(());
    }
    output::result("                 phrases right   words right     loss");
    for (name, outcome) in [("free-running", free), ("teacher-forced", forced)] {
        output::result(&format!(
            "{name:<16} {:>11.2} % {:>11.2} % {:>8.4}",
            100.0 * outcome.phrase_accuracy(),
            100.0 * outcome.word_accuracy(),
            outcome.loss
        ));
    }
    Ok(())
}

/// BLEU and chrF of what is written, and loss and accuracy of what would be, fed with the target.
fn judge_text(arguments: &Arguments, model: &TrainedModel, text: &TextFiles, engine: &mut Engine<f32>) -> Result<(), Failure> {
    let TaskConfig::Corpus(config) = &model.config.task else {
        return Err(Failure::refused("this network for text was not trained on a corpus"));
    };
    let Judged { corpus, pairs, lines, report } = match &arguments.corpus {
        Some(spec) => read_corpus(spec, config)?,
        None => {
            let pairs = text.held_out.clone();
            Judged { corpus: "the sentences held out".into(), lines: (1..=pairs.len() as u64).collect(), pairs, report: None }
        }
    };
    // Before anything is written, which may take long.
    let sentence = |((source, target), line): (&(String, String), &u64)| -> Result<Pair, Failure> {
        let pair = Pair::new(model.read_source(source)?.0, model.read_target(target)?.0);
        model.network.check_lengths(pair.source.len(), pair.target.len()).map_err(|error| {
            let failure = Failure::refused(format!("{corpus}, line {line}: {error}"));
            failure.hint("a network trained with such positions, or a corpus without sentences of that length")
        })?;
        Ok(pair)
    };
    let sentences: Vec<Pair> = pairs.iter().zip(&lines).map(sentence).collect::<Result<_, _>>()?;
    let how = Writing { beams: arguments.beams.into(), n_threads: arguments.threads, ..Writing::default() };
    let bar = SentenceBar::new();
    let quality = model.quality(&pairs, &how, config.lowercase, &mut |done, all| bar.set(done as u64, all as u64))?;
    drop(bar);
    let evaluate = |pairs: &[Pair]| engine.evaluate(&model.network, &model.weights, pairs, Feeding::Forced);
    let forced = sentences.chunks(256).map(evaluate).fold(Outcome::default(), |all, outcome| all.with(&outcome));
    if let Some(path) = &arguments.written {
        let lines: String = quality.written.iter().map(|(source, written)| format!("{source}\t{written}\n")).collect();
        output::write_file(path, &lines)?;
    }
    if arguments.json {
        let line = json!({
            "model": arguments.model.to_string_lossy(),
            "sources": quality.n_sources,
            "pairs": quality.n_pairs,
            "dropped": report.as_ref().map_or(0, CorpusReport::n_dropped),
            "corpus": report,
            "bleu": quality.bleu.score,
            "bleu_signature": quality.bleu_signature,
            "chrf": quality.chrf,
            "chrf_signature": quality.chrf_signature,
            "exact": quality.exact,
            "forced": numbers(&forced),
        });
        output::result(&line.to_string());
        return Ok(());
    }
    output::result(&format!("BLEU {:.2}  {}", quality.bleu.score, quality.bleu_signature));
    output::result(&format!("chrF {:.2}  {}", quality.chrf, quality.chrf_signature));
    output::result(&format!(
        "{:.1} % of {} sentences exactly as a reference; fed with the target {:.1} % of tokens right, loss {:.4}",
        100.0 * quality.exact,
        quality.n_sources,
        100.0 * forced.word_accuracy(),
        forced.loss
    ));
    Ok(())
}

/// Sentences that a network is judged on.
struct Judged {
    /// Where they are from, for a message.
    corpus: String,
    pairs: Vec<(String, String)>,
    /// Where each pair stands, from 1.
    lines: Vec<u64>,
    /// What became of the lines of a corpus that was read.
    report: Option<CorpusReport>,
}

/// The pairs of a corpus that are as long as those trained on.
fn read_corpus(spec: &CorpusSpec, config: &CorpusConfig) -> Result<Judged, Failure> {
    let failed = |error: CorpusError| Failure::of(&error);
    let filter = config.filter();
    let reader = spec.open(&filter).map_err(failed)?;
    let mut bar = CorpusBar::new(Style::Auto);
    let (read, report) = reader.read_all(&mut |bytes| bar.show_bytes(bytes)).map_err(failed)?;
    drop(bar);
    output::note(&format!("{spec}: {report}"));
    if let Some(ended) = filter.ended(&report) {
        output::note(&format!("{spec}: {ended}, by the run's task.max_pairs"));
    }
    let lines = read.iter().map(|pair| pair.line).collect();
    let pairs = read.into_iter().map(|TextPair { source, target, .. }| (source, target)).collect();
    Ok(Judged { corpus: spec.to_string(), pairs, lines, report: Some(report) })
}

fn numbers(outcome: &Outcome) -> Value {
    json!({"phrase_accuracy": outcome.phrase_accuracy(), "word_accuracy": outcome.word_accuracy(), "loss": outcome.loss})
}
