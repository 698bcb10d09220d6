use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Recordable;
use crosslens_lab::analysis::corpus::{CorpusSpec, CorpusSpecError};
use crosslens_lab::analysis::explain::{ExplainError, Explained, HEADS_ANSWERED, Memory, Options};
use crosslens_lab::analysis::heads::{Head, HeadLabel, alignment_heads};
use crosslens_lab::analysis::report::Report;
use crosslens_lab::train::RunFolder;
use crosslens_lab::{Aligner, Attention, ImportedModel, Opened, RatedHead, Sentences, TrainedModel};
use serde_json::json;

use super::explain::corpus_of_imported;
use super::linked::{LinkFile, read_pairs};
use super::memory::{state, state_for_imported};
use super::opening::Reading;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Says of every attention head what drives it, and what the model loses without it.
///
/// The rules behind the labels stand in docs/heads.md. Components are fitted on one half of the sentences and heads explained on the other.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder of Hugging Face's, the folder of a run, or another model that can be run.
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Sentences, one a line: a source, or a source and a target separated by a tab or ` ||| `. Without a target the model's own is used.
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Sentences of the other half on which the model is run again with each head changed; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 200)]
    causal_samples: u64,
    /// Resamples for 95 % intervals of every share; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    bootstrap: u16,
    /// Heads of self-attention too, on both sides.
    #[arg(long)]
    self_attention: bool,
    /// Write what other programs read: `alignment-heads` is the list of a generation_config.json, the best heads first.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Rate heads for --emit by how much of their attention lies on one way along the source that never goes back, as in speech.
    #[arg(long, requires = "emit")]
    monotone: bool,
    /// Rate heads for --emit by the alignment error rate of their links against these, made by hand: a line for each pair of --corpus,
    /// `2-3` sure, `2p3` possible. Nothing else is then done.
    #[arg(long, value_name = "FILE", requires_all = ["emit", "corpus"], conflicts_with_all = ["monotone", "save"])]
    gold: Option<PathBuf>,
    /// Whether places in that file count from 0 or from 1.
    #[arg(long, value_name = "0|1", default_value_t = 0, requires = "gold", value_parser = clap::value_parser!(u8).range(0..=1))]
    gold_base: u8,
    /// Heads that --emit lists.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "emit", value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// Write the whole report to this file, and single sentences beside it.
    #[arg(long, value_name = "report.json")]
    save: Option<PathBuf>,
    /// Draws fresh sentences of a run, and the resamples.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// The heads as JSON on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    AlignmentHeads,
}

/// Fresh sentences of a run.
const RUN_SENTENCES: u64 = 1000;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let (Some(gold), Some(corpus)) = (&arguments.gold, &arguments.corpus) {
        return emit_by_links(arguments, corpus, &LinkFile { path: gold, base: arguments.gold_base });
    }
    if arguments.emit.is_some() && !arguments.monotone {
        let message = "which heads align is measured: by how steadily they go along the source, or against links made by hand";
        return Err(Failure::usage(message).hint("--monotone, or --gold FILE with a line of links for each pair of --corpus"));
    }
    let options = Options {
        held_out: true,
        bootstrap: arguments.bootstrap.into(),
        seed: arguments.seed,
        causal: arguments.causal_samples,
        answered: HEADS_ANSWERED,
        monotone: arguments.monotone,
        n_threads: arguments.threads,
        // Single sentences stand beside a saved report, and nowhere else.
        samples: if arguments.save.is_some() { Options::default().samples } else { 0 },
        ..Options::default()
    };
    let (mut explained, memory) = {
        let Arguments { model, corpus, reading, self_attention, .. } = arguments;
        explained(model, reading, corpus.as_deref(), *self_attention, "heads", &options)?
    };
    explained.report.model.path = Some(arguments.model.to_string_lossy().into_owned());
    if let Some(path) = &arguments.save {
        explained.save(path)?;
        output::note(&format!("the report is in {}; look at it: crosslens report {}", path.display(), path.display()));
    }
    let heads = Head::all(&explained.report);
    if arguments.emit.is_some() {
        let chosen = chosen(arguments, &heads);
        output::result(&json!({ "alignment_heads": alignment_heads(chosen) }).to_string());
    } else if arguments.json {
        let Report { model, corpus, .. } = &explained.report;
        let memory = json!({ "bytes": memory.total(), "parts": memory });
        output::result(&json!({ "model": model, "corpus": corpus, "memory": memory, "heads": heads }).to_string());
    } else {
        table(&heads).iter().for_each(|line| output::result(line));
    }
    Ok(())
}

/// Opens a model whose heads are to be looked at.
pub(crate) fn opened(path: &Path, reading: &Reading, self_attention: bool) -> Result<Opened, Failure> {
    let attention = if self_attention { Attention::All } else { Attention::Cross };
    if ImportedModel::is_at(path) {
        return Ok(Opened::Imported(Box::new(ImportedModel::open_with(path, &reading.choices(), attention)?)));
    }
    reading.refuse()?;
    match Opened::open(path)? {
        Opened::Model(model) => Ok(Opened::Model(Box::new(TrainedModel { attention, ..*model }))),
        Opened::Recording(_) => {
            let message = format!("`{}` is a recording, which cannot be run again with a head changed", path.display());
            Err(Failure::refused(message).hint(format!("crosslens explain {}", path.display())))
        }
        opened => Ok(opened),
    }
}

/// Explains a model that can be run, on a corpus or on fresh sentences of its task.
pub(crate) fn explained(
    path: &Path,
    reading: &Reading,
    corpus: Option<&Path>,
    self_attention: bool,
    command: &str,
    options: &Options,
) -> Result<(Explained, Memory), Failure> {
    let bar = SentenceBar::new();
    let mut show = |progress| bar.show(progress);
    match opened(path, reading, self_attention)? {
        Opened::Imported(model) => {
            let corpus = corpus_of_imported(corpus, path, command)?;
            let sentences = model.sentences(corpus, options.n_threads, &mut show)?;
            refuse_one(sentences.len(), Some(corpus))?;
            sentences.warnings().iter().for_each(|warning| output::note(&format!("warning: {warning}")));
            let memory = bar.aside(|| state_for_imported(&model, &sentences, options));
            let explained = model.explain(&sentences, None, options, None, &mut show)?;
            drop(bar);
            // Of the files it was said before.
            let found = explained.report.corpus.warnings.iter().skip(sentences.warnings().len());
            found.for_each(|warning| output::note(&format!("warning: {warning}")));
            Ok((explained, memory))
        }
        Opened::Model(model) => {
            let sentences = Sentences::choose(&model, corpus, options.seed, RUN_SENTENCES)?;
            refuse_one(sentences.len(), corpus)?;
            let subject = model.subject(1).map_err(ExplainError::from)?;
            let memory = Memory::of(subject.description(), &sentences.extent(&model), options);
            state(&memory, sentences.len());
            Ok((model.explain(&sentences, None, options, None, &mut show)?, memory))
        }
        Opened::Recording(_) => unreachable!("`opened` refuses recordings"),
    }
}

/// One sentence has no other half.
fn refuse_one(n_sentences: u64, corpus: Option<&Path>) -> Result<(), Failure> {
    let Some(corpus) = corpus.filter(|_| n_sentences < 2) else { return Ok(()) };
    let message = format!("`{}` has one sentence; heads are fitted on one half and explained on the other", corpus.display());
    Err(Failure::refused(message).hint("two sentences or more; some hundreds say something"))
}

/// Lists the heads whose links come nearest to those made by hand.
fn emit_by_links(arguments: &Arguments, corpus: &Path, links: &LinkFile<'_>) -> Result<(), Failure> {
    let Arguments { model, reading, threads, .. } = arguments;
    if RunFolder::at(model).holds_run() {
        reading.refuse()?;
    }
    let model = Aligner::open(model, &reading.choices())?;
    let corpus: CorpusSpec = corpus.to_string_lossy().parse().map_err(|error: CorpusSpecError| Failure::of(&error))?;
    let pairs = read_pairs(&corpus)?;
    let gold = links.read(&pairs, &model)?;
    let bar = SentenceBar::new();
    let mut heads = model.rate(&pairs, &gold, *threads, &mut |done, all| bar.set(done, all))?;
    drop(bar);
    heads.truncate(arguments.top.into());
    let list: Vec<_> = heads.iter().map(|head| json!([head.layer, head.head])).collect();
    output::result(&json!({ "alignment_heads": list }).to_string());
    let rate = |head: &RatedHead| {
        let aer = head.tally.aer().map_or_else(|| "–".to_owned(), |aer| format!("{aer:.3}"));
        format!("{}.{} {aer}", head.layer, head.head)
    };
    output::note(&format!("AER over {} pairs: {}", pairs.len(), heads.iter().map(rate).collect::<Vec<_>>().join(", ")));
    Ok(())
}

/// The heads to align by, best first.
fn chosen<'h>(arguments: &Arguments, heads: &'h [Head]) -> Vec<&'h Head> {
    let mut cross: Vec<&Head> = heads.iter().filter(|head| head.kind == "cross").collect();
    cross.sort_by(|a, b| b.monotone.unwrap_or(0.0).total_cmp(&a.monotone.unwrap_or(0.0)));
    cross.truncate(arguments.top.into());
    cross
}

fn table(heads: &[Head]) -> Vec<String> {
    let percent = |share: f64| format!("{:>4.0}", 100.0 * share + 0.0);
    let mut lines = vec![
        "                     what the scores vary by, %                 picks   loss where it is".to_owned(),
        "head          label           pos  tok sink rest    ±  entropy  alike   rebuilt uniform average  verdict".to_owned(),
    ];
    for head in heads {
        let kind = match head.kind.as_str() {
            "cross" => "cross",
            "encoder-self" => "enc",
            _ => "dec",
        };
        let name = format!("{kind} {}.{}", head.layer, head.head);
        let shares = [head.shares.positional, head.shares.token, head.shares.sink, head.shares.residual].map(percent).join(" ");
        // Half of the interval of the share that decided.
        let within = head.deciding_interval().map_or_else(|| "   –".to_owned(), |[low, high]| percent((high - low) / 2.0));
        let effect = head.effect.map_or_else(
            || "      –       –       –".to_owned(),
            |effect| [effect.rebuilt, effect.uniform, effect.average].map(|more| format!("{more:>+7.3}")).join(" "),
        );
        lines.push(format!(
            "{name:<13} {:<14} {shares} {within}  {:>7.2}  {} %  {effect}  {}",
            head.label.name(),
            head.entropy,
            percent(head.agreement),
            head.verdict
        ));
    }
    lines.push(String::new());
    let count = |label: HeadLabel| heads.iter().filter(|head| head.label == label).count();
    let counts = HeadLabel::ALL.map(|label| (label, count(label)));
    let counts: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(label, n)| format!("{n} {}", label.name())).collect();
    lines.push(format!("{} heads: {}", heads.len(), counts.join(", ")));
    lines
}
