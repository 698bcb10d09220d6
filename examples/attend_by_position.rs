//! You will see a network learn to reverse in seconds and its attention explained; temporal × temporal should reach 0.90 of the scores.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::{Sentences, TrainedModel};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let config = default_config("reverse", Family::Ao).ok_or("a shipped recipe")?;
    let run = Run::prepare(config, RunFolder::at(folder.path()))?;
    let trained = run.start(0, &mut |event: Event<'_>| {
        if let Event::Evaluated(metrics) = event {
            println!("step {:>4}: {:.1} % of phrases right", metrics.step, 100.0 * metrics.phrase_accuracy);
        }
        Wish::GoOn
    })?;
    println!("{} steps in {:.1} s", trained.steps, trained.seconds);

    let model = TrainedModel::open(folder.path())?;
    let sentences = Sentences::Task { seed: 1, n_samples: 300 };
    let report = model.explain(&sentences, None, &Options::default(), None, &mut |_| ())?.report;
    let site = &report.sites[0];
    let shares = &site.shares.as_ref().ok_or("the terms add up")?.tables["centred"];
    println!("shares of the score's variance along the source; rows: query, columns: key, by step, token, rest");
    for row in shares {
        println!("  {:>6.3} {:>6.3} {:>6.3}", row[0], row[1], row[2]);
    }
    println!("{}: {}", site.verdict.label, site.verdict.text);
    assert!(shares[0][0] >= 0.90, "{}", shares[0][0]);
    Ok(())
}
