use std::path::{Path, PathBuf};

use crosslens_lab::analysis::SiteKind;
use crosslens_lab::analysis::align::{
    AlignmentTally, Base, Gold, LinkError, Links, Row, SoftText, Symmetrization, nematus_block, read_gold,
};
use crosslens_lab::analysis::corpus::{CorpusError, CorpusReport, CorpusSpec, Filter};
use crosslens_lab::train::RunFolder;
use crosslens_lab::{AlignHeads, AlignOptions, Aligned, PretrainedModel, TrainedModel};
use serde_json::json;

use super::languages::Languages;
use crate::failure::Failure;
use crate::output;
use crate::progress::SentenceBar;

/// Links the words of sentence pairs by what a model looks at.
///
/// One line of Pharaoh links (`source-target`, from 0) for each pair; with --gold also AER, precision, recall and F1.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, or one of Hugging Face's.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Pairs: any corpus that `train` takes; a line without both sides is refused, as links count lines. A network of the task
    /// `translation` needs none: its sentences come with their true links.
    #[arg(long, value_name = "CORPUS")]
    corpus: Option<CorpusSpec>,
    #[command(flatten)]
    languages: Languages,
    /// Without --corpus: so many sentences of the task.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    samples: u64,
    /// Without --corpus: draws them.
    #[arg(long, value_name = "N", default_value_t = 1_000_003)]
    seed: u64,
    /// Links made by hand, a line for each pair: `2-3` sure, `2p3` possible.
    #[arg(long, value_name = "FILE", requires = "corpus")]
    gold: Option<PathBuf>,
    /// Whether places in that file count from 0 or from 1.
    #[arg(long, value_name = "0|1", default_value_t = 0, requires = "gold", value_parser = clap::value_parser!(u8).range(0..=1))]
    gold_base: u8,
    /// `auto`, or heads as `layer.head`, separated by commas. `auto` takes the head that agrees best with the gold of every other sentence
    /// (quality is then measured on the rest), or without gold the one that goes along the source most steadily.
    #[arg(long, value_name = "auto|L.H,…", default_value = "auto")]
    heads: Heads,
    /// Take the row whose step reads a token instead of the one that predicts it.
    #[arg(long)]
    shifted: bool,
    /// Link all source words with this much weight or more, instead of the one with most.
    #[arg(long, value_name = "X")]
    threshold: Option<f64>,
    /// A model of the other direction, whose links are joined with these.
    #[arg(long, value_name = "MODEL", requires = "symmetrise")]
    reverse: Option<PathBuf>,
    /// How the two directions are joined.
    #[arg(long, value_name = "KIND", requires = "reverse", value_parser = symmetrisation)]
    symmetrise: Option<Symmetrization>,
    /// Soft alignments between tokens instead of links, as text that SoftAlignments and other viewers read.
    #[arg(long, conflicts_with_all = ["symmetrise", "json"])]
    soft: bool,
    /// Threads; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Links, heads and quality as one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Pairs and links are kept in memory.
const MAX_BYTES: u64 = 1 << 28;

#[derive(Clone)]
struct Heads(AlignHeads);

impl std::str::FromStr for Heads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(AlignHeads::Auto));
        }
        let head = |text: &str| {
            let (layer, head) = text.trim().split_once('.')?;
            Some((layer.parse().ok()?, head.parse().ok()?))
        };
        let heads: Option<Vec<_>> = text.split(',').map(head).collect();
        heads.map(|heads| Self(AlignHeads::These(heads))).ok_or_else(|| "`auto`, or heads such as 2.0,3.5".into())
    }
}

fn symmetrisation(name: &str) -> Result<Symmetrization, String> {
    let known = Symmetrization::ALL.map(Symmetrization::name).join(", ");
    Symmetrization::from_name(name).ok_or(format!("one of {known}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = Aligner::open(&arguments.model, &arguments.languages, arguments.threads)?;
    let (pairs, gold) = match &arguments.corpus {
        Some(corpus) => {
            let pairs = read_pairs(corpus)?;
            let gold = arguments.gold.as_deref().map(|path| read_gold_file(path, arguments.gold_base, &pairs)).transpose()?;
            (pairs, gold)
        }
        None => {
            let (pairs, gold) = model.linked_sentences(arguments).ok_or_else(|| {
                Failure::usage("there are no pairs to align; only a network of the task `translation` brings its own").hint("--corpus FILE")
            })?;
            (pairs, Some(gold))
        }
    };
    let options = AlignOptions {
        heads: arguments.heads.0.clone(),
        row: if arguments.shifted { Row::Reading } else { Row::Predicting },
        threshold: arguments.threshold,
        n_threads: arguments.threads,
    };
    let aligned = model.align(&pairs, gold.as_deref(), &options)?;
    let mut links: Vec<Links> = aligned.sentences.iter().map(|sentence| sentence.links.clone()).collect();
    let mut tally = aligned.tally;
    if let (Some(reverse), Some(symmetrise)) = (&arguments.reverse, arguments.symmetrise) {
        let turned: Vec<(String, String)> = pairs.iter().map(|(source, target)| (target.clone(), source.clone())).collect();
        let options = AlignOptions { heads: AlignHeads::Auto, ..options };
        let other = Aligner::open(reverse, &arguments.languages.turned(), arguments.threads)?.align(&turned, None, &options)?;
        links = links.iter().zip(&other.sentences).map(|(links, other)| symmetrise.join(links, &other.links.transposed())).collect();
        tally = gold.as_ref().map(|gold| {
            let mut tally = AlignmentTally::default();
            let judged = links.iter().zip(gold).enumerate().filter(|&(number, _)| aligned.is_judged(number));
            judged.for_each(|(_, (links, gold))| tally.add(links, gold));
            tally
        });
    }
    let heads: Vec<String> = aligned.heads.iter().map(|(layer, head)| format!("{layer}.{head}")).collect();
    if arguments.json {
        let rated = aligned
            .rated
            .iter()
            .map(|head| json!({ "layer": head.layer, "head": head.head, "aer": head.tally.aer(), "monotone": head.monotone }));
        let lines: Vec<String> = links.iter().map(|links| links.pharaoh(Base::Zero)).collect();
        let quality = tally.map(|tally| quality(&tally));
        output::result(
            &json!({ "links": lines, "heads": aligned.heads, "rated": rated.collect::<Vec<_>>(), "quality": quality }).to_string(),
        );
        return Ok(());
    }
    if arguments.soft {
        print_soft(&aligned)?;
    } else {
        links.iter().for_each(|links| output::result(&links.pharaoh(Base::Zero)));
    }
    output::note(&format!("heads: {}", heads.join(", ")));
    if let Some(tally) = tally {
        let show = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
        let [aer, precision, recall, f1] = [tally.aer(), tally.precision(), tally.recall(), tally.f1()].map(show);
        output::note(&format!("AER {aer}  precision {precision}  recall {recall}  F1 {f1}"));
    }
    Ok(())
}

fn quality(tally: &AlignmentTally) -> serde_json::Value {
    json!({ "aer": tally.aer(), "precision": tally.precision(), "recall": tally.recall(), "f1": tally.f1() })
}

/// A source and its target.
type TextPair = (String, String);

/// Whose attention links words.
enum Aligner {
    Run(Box<TrainedModel>),
    Pretrained(Box<PretrainedModel>),
}

impl Aligner {
    fn open(path: &Path, languages: &Languages, n_threads: usize) -> Result<Self, Failure> {
        if RunFolder::at(path).holds_run() {
            languages.refuse()?;
            return Ok(Self::Run(Box::new(TrainedModel::open(path)?)));
        }
        Ok(Self::Pretrained(Box::new(PretrainedModel::open_with(path, &languages.choice().into(), &[SiteKind::Cross], n_threads)?)))
    }

    fn linked_sentences(&self, arguments: &Arguments) -> Option<(Vec<TextPair>, Vec<Gold>)> {
        match self {
            Self::Run(model) => model.linked_sentences(arguments.seed, arguments.samples),
            Self::Pretrained(_) => None,
        }
    }

    fn align(&self, pairs: &[(String, String)], gold: Option<&[Gold]>, options: &AlignOptions) -> Result<Aligned, Failure> {
        let bar = SentenceBar::new();
        let mut progress = |done, all| bar.set(done, all);
        Ok(match self {
            Self::Run(model) => model.align(pairs, gold, options, &mut progress)?,
            Self::Pretrained(model) => model.align(pairs, gold, options, &mut progress)?,
        })
    }
}

fn print_soft(aligned: &Aligned) -> Result<(), Failure> {
    for (number, sentence) in aligned.sentences.iter().enumerate() {
        // The end tokens have weights, but are not written as words.
        let without_end = |tokens: &[String]| tokens[..tokens.len() - 1].to_vec();
        let (source, target) = (without_end(&sentence.source), without_end(&sentence.target));
        let text = SoftText { source: &source, target: &target, alignment: &sentence.soft };
        let block = nematus_block(number, 0.0, &text).map_err(|error| Failure::of(&error))?;
        output::result(block.trim_end_matches('\n'));
        output::result("");
    }
    Ok(())
}

/// A whole file; devices, pipes and what is too long to be kept in memory are refused before they are read.
fn read_text(path: &Path) -> Result<String, Failure> {
    let refused = |what: String| Failure::refused(format!("cannot read `{}`: {what}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(refused(format!("it is not a file of at most {MAX_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))
}

/// The pairs of a corpus, duplicates too. Lines and links by hand belong together, so that a line without a pair is refused; what a
/// catalogue holds beside pairs is only counted.
fn read_pairs(corpus: &CorpusSpec) -> Result<Vec<(String, String)>, Failure> {
    let failed = |error: CorpusError| Failure::of(&error);
    let is_catalogue = matches!(corpus, CorpusSpec::Po(_) | CorpusSpec::Mo(_) | CorpusSpec::Gettext { .. });
    let mut reader = corpus.open(&Filter { dedupe: false, ..Filter::default() }).map_err(failed)?;
    let (mut pairs, mut n_bytes) = (Vec::new(), 0);
    while let Some(pair) = reader.next() {
        let pair = pair.map_err(failed)?;
        if !is_catalogue {
            refuse_dropped(reader.counts())?;
        }
        n_bytes += (pair.source.len() + pair.target.len()) as u64;
        if n_bytes > MAX_BYTES {
            let message = format!("`{corpus}`, line {}: more than {MAX_BYTES} bytes of text are not aligned at once", pair.line);
            return Err(Failure::refused(message).hint("split it into smaller files"));
        }
        pairs.push((pair.source, pair.target));
    }
    let report = reader.into_report();
    if report.n_dropped() > 0 {
        if !is_catalogue {
            refuse_dropped(&report)?;
        }
        output::note(&report.to_string());
    }
    Ok(pairs)
}

/// Refuses a corpus of which a line gave no pair, by the first such line.
fn refuse_dropped(report: &CorpusReport) -> Result<(), Failure> {
    let first = report.reasons().filter_map(|(reason, tally)| Some((tally.first.first()?, reason))).min_by_key(|(place, _)| place.line);
    let Some((place, reason)) = first else { return Ok(()) };
    let message = format!("`{}`, line {}: it gives no pair: {}", place.path.display(), place.line, reason.name());
    Err(Failure::refused(message).hint("source and target, separated by a tab or `|||`"))
}

/// Links made by hand; one to a word that its sentence does not have is refused, which finds out a wrong base too.
fn read_gold_file(path: &Path, base: u8, pairs: &[(String, String)]) -> Result<Vec<Gold>, Failure> {
    let base = if base == 0 { Base::Zero } else { Base::One };
    let wrong = |error: LinkError| Failure::of(&error).in_file(path);
    let gold = read_gold(&read_text(path)?, base).map_err(wrong)?;
    for (number, (gold, (source, target))) in gold.iter().zip(pairs).enumerate() {
        let [n_source, n_target] = [source, target].map(|text| text.split_whitespace().count());
        let within = gold.check_within(number + 1, n_source, n_target, base);
        within.map_err(|error| wrong(error).hint("--gold-base 0 or 1, and source before target"))?;
    }
    Ok(gold)
}
