//! How well a network translates: its texts held against references.

use std::collections::HashMap;

use crosslens_analysis::quality::{Bleu, BleuScore, Chrf};

use crate::{TrainedModel, WriteError, Writing};

/// What translations are worth.
#[derive(Clone, Debug, PartialEq)]
pub struct TextQuality {
    /// Different sources that were translated.
    pub n_sources: usize,
    /// Pairs they come from; a source's targets are all references of it.
    pub n_pairs: usize,
    /// Corpus BLEU.
    pub bleu: BleuScore,
    /// How it was computed, as sacreBLEU writes it.
    pub bleu_signature: String,
    /// Corpus chrF.
    pub chrf: f64,
    /// How it was computed.
    pub chrf_signature: String,
    /// Share of sources translated exactly as one of the references, case ignored where BLEU ignores it.
    pub exact: f64,
    /// Each source and what was written for it, in the order of the pairs.
    pub written: Vec<(String, String)>,
}

impl TrainedModel {
    /// Translates every different source and holds the text against all its targets; BLEU and chrF ignore case if `lowercase`.
    pub fn quality(
        &self,
        pairs: &[(String, String)],
        how: &Writing,
        lowercase: bool,
        done: &mut dyn FnMut(usize, usize),
    ) -> Result<TextQuality, WriteError> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let (mut sources, mut references): (Vec<String>, Vec<Vec<&str>>) = (Vec::new(), Vec::new());
        for (source, target) in pairs {
            let number = *numbers.entry(source).or_insert_with(|| {
                sources.push(source.clone());
                references.push(Vec::new());
                sources.len() - 1
            });
            references[number].push(target);
        }
        let n_sources = sources.len();
        let written = self.translate(&sources, &Writing { n_best: 1, ..*how }, &mut |n_done| done(n_done, n_sources))?;
        let mut bleu = Bleu { lowercase, ..Bleu::default() }.tally();
        let mut chrf = Chrf { lowercase, ..Chrf::default() }.tally();
        let folded = |text: &str| if lowercase { text.to_lowercase() } else { text.to_owned() };
        let mut n_exact = 0;
        let mut texts = Vec::with_capacity(n_sources);
        for ((source, references), written) in sources.into_iter().zip(&references).zip(written) {
            let text = written.into_iter().next().map(|best| best.text).unwrap_or_default();
            bleu.add(&text, references).expect("every source comes with a target");
            chrf.add(&text, references).expect("every source comes with a target");
            n_exact += usize::from(references.iter().any(|reference| folded(reference) == folded(&text)));
            texts.push((source, text));
        }
        Ok(TextQuality {
            n_sources,
            n_pairs: pairs.len(),
            bleu: bleu.score(),
            bleu_signature: bleu.signature(),
            chrf: chrf.score(),
            chrf_signature: chrf.signature(),
            exact: n_exact as f64 / n_sources.max(1) as f64,
            written: texts,
        })
    }
}
