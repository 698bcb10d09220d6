//! Pairs of a corpus and their links made by hand, for commands that hold attention against them.

use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Side;
use crosslens_lab::analysis::align::{Base, Gold, LinkError, read_gold};
use crosslens_lab::analysis::corpus::{CorpusError, CorpusReport, CorpusSpec, Filter};
use crosslens_lab::{AlignError, Aligner, SourceAndTarget};

use crate::failure::Failure;
use crate::output;

/// Pairs and links are kept in memory.
const MAX_BYTES: u64 = 1 << 28;

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
pub(super) fn read_pairs(corpus: &CorpusSpec) -> Result<Vec<SourceAndTarget>, Failure> {
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

/// Links made by hand, a line for each pair.
pub(super) struct LinkFile<'a> {
    pub(super) path: &'a PathBuf,
    /// What the first place is called, 0 or 1.
    pub(super) base: u8,
}

impl LinkFile<'_> {
    /// Reads them, as many lines as pairs; a link to a word that its sentence does not have is refused, which finds out a wrong base too.
    pub(super) fn read(&self, pairs: &[SourceAndTarget], model: &Aligner) -> Result<Vec<Gold>, Failure> {
        let base = if self.base == 0 { Base::Zero } else { Base::One };
        let wrong = |error: LinkError| Failure::of(&error).in_file(self.path);
        let gold = read_gold(&read_text(self.path)?, base).map_err(wrong)?;
        for (number, (gold, (source, target))) in gold.iter().zip(pairs).enumerate() {
            let (n_source, n_target) = (model.n_words(Side::Source, source), model.n_words(Side::Target, target));
            let within = gold.check_within(number + 1, n_source, n_target, base);
            within.map_err(|error| wrong(error).hint("--gold-base 0 or 1, and source before target"))?;
        }
        if gold.len() != pairs.len() {
            let error = AlignError::OtherGold { gold: gold.len(), sentences: pairs.len() };
            return Err(Failure::from(error).in_file(self.path));
        }
        Ok(gold)
    }
}
