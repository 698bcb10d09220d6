//! Labels and causal effects of heads whose work is known because they were taught it.

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::heads::{Head, HeadEffect, HeadLabel};
use crosslens_lab::recipes::RECIPES;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::{Sentences, TrainedModel};

/// Draws sentences that no run has seen.
const FRESH: u64 = 1_000_003;

/// A Transformer that reverses phrases of twelve words can only do so by places: words are drawn at random. What drives its heads is where
/// they stand, and what is left of attention when only that is kept does nearly as well as the whole, where uniform attention does not.
#[test]
fn heads_of_a_transformer_that_reverses_are_positional_and_needed() {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == "reverse-transformer").expect("a shipped recipe");
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::prepare(recipe.config(), RunFolder::at(folder.path())).expect("a shipped configuration");
    run.start(0, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    let model = TrainedModel::open(folder.path()).expect("the model it saved");

    let options = Options { held_out: true, bootstrap: 100, seed: FRESH, causal: 200, ..Options::default() };
    let sentences = Sentences::Task { seed: FRESH, n_samples: 1000 };
    let explained = model.explain(&sentences, None, &options, None, &mut |_| ()).expect("an explanation");
    let heads = Head::all(&explained.report);
    assert_eq!(heads.len(), 2, "one layer of two heads from the decoder to the encoder");

    let effect = |head: &Head| head.effect.expect("it was run again");
    let looks_by_place = |head: &&Head| head.label == HeadLabel::Positional && head.shares.positional > 0.8 && head.agreement > 0.9;
    let head = heads.iter().filter(looks_by_place).max_by(|a, b| effect(a).uniform.total_cmp(&effect(b).uniform));
    let head = head.unwrap_or_else(|| panic!("no positional head: {heads:#?}"));
    let HeadEffect { loss, rebuilt, uniform, .. } = effect(head);
    assert!(loss < 0.1, "it has learnt its task: {loss} nats a word");
    assert!(uniform > 0.5 && uniform > 5.0 * rebuilt.max(0.01), "uniform {uniform}, rebuilt from places {rebuilt}");
    let [low, high] = head.deciding_interval().expect("resamples were asked for");
    assert!(low <= head.shares.positional && head.shares.positional <= high && high - low < 0.1, "{low} to {high}: {head:?}");
}
