use std::path::{Path, PathBuf};

use crosslens_lab::analysis::align::{AlignmentTally, Base, Gold, Links, Row, Symmetrization};
use crosslens_lab::analysis::corpus::CorpusSpec;
use crosslens_lab::train::RunFolder;
use crosslens_lab::{AlignHeads, AlignOptions, Aligned, Aligner, SourceAndTarget};
use serde_json::json;

use super::linked::{LinkFile, read_pairs};
use super::opening::Opening;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;
use crate::progress::SentenceBar;

/// Links the words of sentence pairs by what a model looks at.
///
/// One line of Pharaoh links (`source-target`, from 0) for each pair; with --gold also AER, precision, recall and F1. Words are what blanks
/// separate; a mapped model that reads characters links these.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, one of Hugging Face's, or a model that a mapping says how to read (docs/import.md).
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// Pairs: any corpus that `train` takes; a line without both sides is refused, as links count lines. A network of the task
    /// `translation` needs none: its sentences come with their true links.
    #[arg(long, value_name = "CORPUS")]
    corpus: Option<CorpusSpec>,
    #[command(flatten)]
    opening: Opening,
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
    /// Link all source words with more weight than this, from 0 to 1, instead of the one with most.
    #[arg(long, value_name = "X", value_parser = weight)]
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

#[derive(Clone)]
struct Heads(AlignHeads);

impl std::str::FromStr for Heads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(AlignHeads::Auto));
        }
        let HeadList(heads) = text.parse::<HeadList>().map_err(|error| format!("`auto`, or {error}"))?;
        Ok(Self(AlignHeads::These(heads)))
    }
}

/// Heads as `layer.head`, separated by commas.
#[derive(Clone)]
pub(super) struct HeadList(pub(super) Vec<(usize, usize)>);

impl std::str::FromStr for HeadList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let head = |text: &str| {
            let (layer, head) = text.trim().split_once('.')?;
            Some((layer.parse().ok()?, head.parse().ok()?))
        };
        text.split(',').map(head).collect::<Option<_>>().map(Self).ok_or_else(|| "heads such as 2.0,3.5".into())
    }
}

fn weight(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).ok_or_else(|| "a number from 0 to 1, such as 0.2".into())
}

fn symmetrisation(name: &str) -> Result<Symmetrization, String> {
    let known = Symmetrization::ALL.map(Symmetrization::name).join(", ");
    Symmetrization::from_name(name).ok_or(format!("one of {known}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = open(&arguments.model, &arguments.opening)?;
    let (pairs, gold) = match &arguments.corpus {
        Some(corpus) => {
            let pairs = read_pairs(corpus)?;
            let links = arguments.gold.as_ref().map(|path| LinkFile { path, base: arguments.gold_base });
            let gold = links.map(|links| links.read(&pairs, &model)).transpose()?;
            (pairs, gold)
        }
        None => {
            let (pairs, gold) = model.linked_sentences(arguments.seed, arguments.samples).ok_or_else(|| {
                Failure::usage("there are no pairs to align; only a network of the task `translation` brings its own").hint("--corpus FILE")
            })?;
            (pairs, Some(gold))
        }
    };
    let options = AlignOptions {
        heads: arguments.heads.0.clone(),
        row: if arguments.shifted { Row::Reading } else { Row::Predicting },
        threshold: arguments.threshold,
        keeps_weights: arguments.soft,
        n_threads: arguments.threads,
    };
    let aligned = align(&model, &pairs, gold.as_deref(), &options)?;
    let mut links: Vec<Links> = aligned.sentences.iter().map(|sentence| sentence.links.clone()).collect();
    let mut tally = aligned.tally;
    let list = |heads: &[(usize, usize)]| heads.iter().map(|(layer, head)| format!("{layer}.{head}")).collect::<Vec<_>>().join(", ");
    let mut reverse_heads = String::new();
    if let (Some(reverse), Some(symmetrise)) = (&arguments.reverse, arguments.symmetrise) {
        let turned: Vec<SourceAndTarget> = pairs.iter().map(|(source, target)| (target.clone(), source.clone())).collect();
        let options = AlignOptions { heads: AlignHeads::Auto, keeps_weights: false, ..options };
        let other = align(&open(reverse, &arguments.opening.turned())?, &turned, None, &options)?;
        reverse_heads = format!("; of the other direction: {}", list(&other.heads));
        links = links.iter().zip(&other.sentences).map(|(links, other)| symmetrise.join(links, &other.links.transposed())).collect();
        tally = gold.as_ref().map(|gold| {
            let mut tally = AlignmentTally::default();
            let judged = links.iter().zip(gold).enumerate().filter(|&(number, _)| aligned.is_judged(number));
            judged.for_each(|(_, (links, gold))| tally.add(links, gold));
            tally
        });
    }
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
    output::note(&format!("heads: {}{reverse_heads}", list(&aligned.heads)));
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

/// Opens what links words; only models that were not trained here may have languages to choose from.
fn open(path: &Path, opening: &Opening) -> Result<Aligner, Failure> {
    if RunFolder::at(path).holds_run() {
        opening.refuse()?;
    }
    Ok(Aligner::open(path, &opening.choices())?)
}

fn align(model: &Aligner, pairs: &[SourceAndTarget], gold: Option<&[Gold]>, options: &AlignOptions) -> Result<Aligned, Failure> {
    let bar = SentenceBar::new();
    Ok(model.align(pairs, gold, options, &mut |done, all| bar.set(done, all))?)
}

fn print_soft(aligned: &Aligned) -> Result<(), Failure> {
    for (number, weights) in aligned.sentences.iter().filter_map(|sentence| sentence.weights.as_ref()).enumerate() {
        let block = weights.soft_text(number).map_err(|error| Failure::of(&error))?;
        output::result(block.trim_end_matches('\n'));
        output::result("");
    }
    Ok(())
}
