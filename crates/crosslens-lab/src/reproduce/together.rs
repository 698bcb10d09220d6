//! Every head changed at once: one head may do another's work, so that changing one of them proves little.

use crosslens_analysis::explain::{Sample, Samples};
use crosslens_analysis::{AttentionRow, Fed, Intervene, Outcome, Pair, RecordError, Recordable};
use serde::{Deserialize, Serialize};

use super::looks::scores;
use super::numbers::softmax;

/// Sentences run at a time.
const BATCH: usize = 100;

/// Words right with the attention of all heads changed at once, while the decoder reads what it writes itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    /// Rebuilt from the temporal parts.
    pub temporal: f64,
    /// Rebuilt from everything but the temporal × temporal term.
    pub without_temporal: f64,
    /// The same for every key.
    pub uniform: f64,
}

impl Together {
    /// Runs a model on the first sentences of an explanation; `None` where it has no attention or an additive one.
    pub(super) fn of(model: &dyn Recordable, samples: &Samples, n_sentences: usize) -> Result<Option<Self>, RecordError> {
        let sentences = &samples.sentences[..n_sentences.min(samples.sentences.len())];
        let [Some(temporal), Some(without_temporal), Some(uniform)] =
            [words_right(model, sentences, 0..1)?, words_right(model, sentences, 1..9)?, words_right(model, sentences, 0..0)?]
        else {
            return Ok(None);
        };
        Ok(Some(Self { temporal, without_temporal, uniform }))
    }
}

/// By sentence, site and query: the weights of every key.
struct Replaced(Vec<Vec<Vec<Vec<f64>>>>);

impl Intervene for Replaced {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if let Some(replaced) = self.0.get(row.pair).and_then(|sites| sites.get(row.site)).and_then(|queries| queries.get(row.query)) {
            weights.fill(0.0);
            weights.iter_mut().zip(replaced).for_each(|(weight, &replaced)| *weight = replaced as f32);
        }
    }
}

/// Words right with the scores of every head made of these pieces alone; of none, all keys get the same.
fn words_right(model: &dyn Recordable, sentences: &[Sample], pieces: std::ops::Range<usize>) -> Result<Option<f64>, RecordError> {
    let rows = |sample: &Sample| -> Option<Vec<Vec<Vec<f64>>>> {
        let of_site =
            |site: usize| (0..sample.shapes[site].0).map(|query| Some(softmax(&scores(sample, site, query, pieces.clone())?))).collect();
        (0..sample.shapes.len()).map(of_site).collect()
    };
    let mut outcome = Outcome::default();
    for batch in sentences.chunks(BATCH) {
        let Some(rows) = batch.iter().map(rows).collect::<Option<Vec<_>>>().filter(|rows| rows.iter().all(|sites| !sites.is_empty()))
        else {
            return Ok(None);
        };
        let target = |sample: &Sample| sample.sentence.target.clone().unwrap_or_else(|| sample.sentence.predicted.clone());
        let pairs: Vec<Pair> = batch.iter().map(|sample| Pair::new(sample.sentence.source.clone(), target(sample))).collect();
        for (answer, pair) in model.run(&pairs, Fed::Own, &Replaced(rows))?.iter().zip(&pairs) {
            outcome = outcome.with(&answer.outcome(&pair.target));
        }
    }
    Ok((outcome.words > 0).then(|| outcome.word_accuracy()))
}

#[cfg(test)]
mod tests {
    use crosslens_analysis::explain::{Options, Rerun};
    use crosslens_nets::train::{Event, Run, RunFolder, Wish};

    use super::super::{Scale, Specimen};
    use super::*;
    use crate::{Attention, ImportedModel, Sentences, TrainedModel};

    const N: u64 = 40;

    /// Words right by the report, one head changed at a time, and with all changed at once.
    fn both_ways(n_heads: usize) -> (Vec<[f64; 3]>, [f64; 3]) {
        let mut config = Specimen::named("two-heads-ao").expect("a specimen").config(Scale::Quick, 3);
        (config.network.heads, config.network.hidden, config.training.steps) = (n_heads, 32, 200);
        config.training.evaluate_samples = 10;
        let folder = tempfile::tempdir().expect("a folder");
        let run = Run::prepare(config, RunFolder::at(folder.path())).expect("a specimen's configuration");
        run.start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
        let model = TrainedModel::open(folder.path()).expect("the model it saved");
        let options = Options { samples: N as usize, causal: N, rerun: Rerun::Free, n_threads: 1, ..Options::default() };
        let sentences = Sentences::Task { seed: 5, n_samples: N };
        let explained = model.explain(&sentences, None, &options, None, &mut |_| ()).expect("it can be explained");
        let subject = model.subject(1).expect("a thread");
        let Together { temporal, without_temporal, uniform } =
            Together::of(&subject, &explained.samples, N as usize).expect("it can be run").expect("it has attention");
        let of_head = |site: &crosslens_analysis::report::SiteReport| {
            ["temporal", "no-temporal", "uniform"].map(|name| site.rebuilt[name].causal.expect("it was run").word_accuracy)
        };
        (explained.report.sites.iter().map(of_head).collect(), [temporal, without_temporal, uniform])
    }

    /// A weight is rounded in another place, which may turn a word where two are equally likely.
    #[test]
    fn with_one_head_changing_all_is_changing_that_one() {
        let (heads, together) = both_ways(1);
        for (one, all) in heads[0].iter().zip(together) {
            assert!((one - all).abs() < 0.01, "{heads:?}, {together:?}");
        }
    }

    /// Taken alone, each head leaves the other to look where it should; blurred together, they leave nothing.
    #[test]
    fn with_two_heads_both_are_changed() {
        let (heads, [_, _, uniform]) = both_ways(2);
        assert_eq!(heads.len(), 2);
        assert!(heads.iter().all(|head| uniform <= head[2] + 0.05), "{heads:?}, {uniform}");
    }

    /// The published network that writes English words in katakana (see `tests/heads.rs`), free-running, all four heads changed at once:
    /// places alone keep most signs right, two and a half times as many as looking everywhere alike, and more than all the rest without
    /// them.
    #[test]
    fn all_heads_of_a_published_network_together_go_by_places() {
        let Some(package) = std::env::var_os("CROSSLENS_E2K") else {
            let skipped = "SKIPPED: all heads of e2k. CROSSLENS_E2K is not set; CONTRIBUTING.md says how to get its weights\n";
            return std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes()).expect("standard error");
        };
        let weights = std::path::PathBuf::from(package).join("models/model-c2k.safetensors");
        let model = ImportedModel::open(&weights, Attention::Cross).expect("the package's weights");
        let words = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/words.txt");
        let sentences = model.sentences(&words, 1, &mut |_| ()).expect("words in small letters");
        let n = 100;
        let options = Options { samples: n, causal: 0, held_out: true, n_threads: 1, ..Options::default() };
        let explained = model.explain(&sentences, None, &options, None, &mut |_| ()).expect("an explanation");
        let subject = model.subject(1).expect("a thread");
        let together = Together::of(subject.as_ref(), &explained.samples, n).expect("it can be run").expect("it has attention");
        let Together { temporal, without_temporal, uniform } = together;
        assert!(temporal > 0.55 && temporal > 2.0 * uniform && temporal > without_temporal, "{together:?}");
    }
}
