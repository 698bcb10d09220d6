//! You will see a recording explained without its model, which is how models of other frameworks are explained; shares should agree to 1e-6.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::report::Report;
use crosslens_lab::analysis::{Existing, Fed, Recording};
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::{RecordOptions, Sentences, TrainedModel, explain_recording};

fn temporal(report: &Report) -> Result<f64, Box<dyn Error>> {
    Ok(report.sites[0].shares.as_ref().ok_or("the terms add up")?.tables["centred"][0][0])
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (run, recorded) = (folder.path().join("run"), folder.path().join("recording"));
    let config = default_config("reverse", Family::Ao).ok_or("a shipped recipe")?;
    Run::prepare(config, RunFolder::at(&run))?.start(0, &mut |_: Event<'_>| Wish::GoOn)?;
    let model = TrainedModel::open(&run)?;
    let sentences = Sentences::Task { seed: 1, n_samples: 200 };
    let how = RecordOptions { fed: Fed::Own, n_kept: 200, existing: Existing::Refuse, n_threads: 0 };
    model.record(&sentences, &recorded, &how, &mut |_| ())?;

    let recording = Recording::open(&recorded)?;
    let options = Options::default();
    let from_file = explain_recording(&recording, u64::MAX, None, &options, &mut |_| ())?.report;
    let from_model = model.explain(&sentences, None, &options, None, &mut |_| ())?.report;
    println!("from the recording: {}", from_file.sites[0].verdict.text);
    println!("from the model:     {}", from_model.sites[0].verdict.text);
    let difference = (temporal(&from_file)? - temporal(&from_model)?).abs();
    println!("temporal × temporal differs by {difference:.1e}; only the model can be run again, so only its verdict is causal");
    assert!(difference < 1e-6);
    Ok(())
}
