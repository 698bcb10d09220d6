//! The quick claims hold; networks that learnt something else, or nothing, fail those that depend on learning.

use std::path::Path;

use crosslens_lab::TrainedModel;
use crosslens_lab::analysis::{Pair, Vocabulary};
use crosslens_lab::recipes::RECIPES;
use crosslens_lab::reproduce::{CLAIMS, Evidence, ReproduceOptions, Scale, SeedOutcome, Study, Work, reproduce};
use crosslens_lab::tasks::{Lengths, Split, Task};
use crosslens_lab::train::{Event, Run, RunFolder, Wish};

fn options(out: &Path, claims: &[&str]) -> ReproduceOptions {
    let claims = claims.iter().map(|&id| id.to_owned()).collect();
    ReproduceOptions { claims, seeds: 1, scale: Scale::Quick, corpus: None, out: out.to_owned(), n_threads: 0 }
}

#[test]
fn the_quick_claims_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = reproduce(&options(folder.path(), &[]), &mut |_| Wish::GoOn).expect("claims that can be tested");
    let failed: Vec<_> = found.claims.iter().filter(|claim| !claim.holds).map(|claim| (claim.id, &claim.seeds)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((found.held, found.of), (found.claims.len(), found.claims.len()));
    assert!(found.of >= 15, "{}", found.of);
    let text = std::fs::read_to_string(folder.path().join("reproduce.json")).expect("the results were written");
    assert!(text.contains("\"held\"") && text.contains("\"figure\""));
}

#[test]
fn networks_are_shared_and_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |claims: &[&str]| {
        let (mut trained, mut found) = (0, 0);
        let outcome = reproduce(&options(folder.path(), claims), &mut |work| {
            match work {
                Work::Network { is_found: true, .. } => found += 1,
                Work::Network { .. } => trained += 1,
                _ => {}
            }
            Wish::GoOn
        });
        (outcome.expect("a claim that can be tested"), trained, found)
    };
    let (first, trained, found) = run(&["diagonal-ao"]);
    assert_eq!((trained, found), (1, 0));
    let (second, trained, found) = run(&["diagonal-ao", "shares-prove-nothing"]);
    assert_eq!((trained, found), (0, 1), "another claim needs the same network");
    assert_eq!(first.claims[0].value, second.claims[0].value);
}

#[test]
fn unknown_claims_and_no_seeds_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refuse = |options| reproduce(&options, &mut |_| Wish::GoOn).expect_err("it cannot be tested").to_string();
    assert_eq!(refuse(options(folder.path(), &["diagonal"])), "there is no claim `diagonal`");
    assert_eq!(refuse(options(folder.path(), &["cells"])), "the claim `cells` is not among the quick ones");
    assert_eq!(refuse(ReproduceOptions { seeds: 0, ..options(folder.path(), &[]) }), "there must be at least one seed");
}

/// Gives every source the target of another sentence.
struct Shuffled(Box<dyn Task>);

impl Task for Shuffled {
    fn source_vocabulary(&self) -> &Vocabulary {
        self.0.source_vocabulary()
    }

    fn target_vocabulary(&self) -> &Vocabulary {
        self.0.target_vocabulary()
    }

    fn max_lengths(&self) -> Lengths {
        self.0.max_lengths()
    }

    fn pair(&self, split: Split, seed: u64, index: u64) -> Pair {
        Pair { target: self.0.pair(split, seed, index ^ 1).target, ..self.0.pair(split, seed, index) }
    }
}

/// Trained on shuffled targets; they are all equally long, so that only their words are wrong.
fn taught_wrong(recipe: &str, steps: u64) -> TrainedModel {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = RECIPES.iter().find(|known| known.name == recipe).expect("a shipped recipe").config();
    config.training.steps = steps;
    let task = config.task.build().expect("a task");
    let run = Run::with_task(config, Box::new(Shuffled(task)), RunFolder::at(folder.path())).expect("a shipped configuration");
    run.start(0, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    TrainedModel::open(folder.path()).expect("the model it saved")
}

fn with_random_weights(mut model: TrainedModel) -> TrainedModel {
    model.weights = model.network.draw_weights(99);
    model
}

/// Claims whose own numbers depend on what was learnt, whatever the gate says.
const LEARNT: [&str; 6] = ["diagonal-aed", "diagonal-ao", "temporal-share", "temporal-suffices", "input-drives-readout", "reverse"];

#[test]
fn networks_that_learnt_something_else_or_nothing_fail() {
    let study = |model: &TrainedModel| Study::of(model, None, &mut |_| ()).expect("it can be explained").0;
    let (aed, ao) = (taught_wrong("reverse-aed", 120), taught_wrong("reverse-ao", 200));
    let shuffled = (study(&aed), study(&ao));
    let random = (study(&with_random_weights(aed)), study(&with_random_weights(ao)));
    for (what, (aed, ao)) in [("shuffled targets", &shuffled), ("random weights", &random)] {
        let evidence = Evidence::new([("copy-aed", aed), ("copy-ao", ao), ("reverse-aed", aed), ("reverse-ao", ao)]);
        for id in LEARNT {
            let claim = CLAIMS.iter().find(|claim| claim.id == id).expect("a claim of that name");
            let outcome = SeedOutcome::of(claim, &evidence);
            assert!(!outcome.missed.is_empty(), "{what}, {id}: the gate lets them pass");
            assert!(!outcome.holds, "{what}, {id}");
            assert!(outcome.checks.iter().any(|check| !check.holds), "{what}, {id}: only the gate tells them apart: {:?}", outcome.checks);
        }
    }
}
