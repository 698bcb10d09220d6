//! You will see components fitted from sums of two halves of a corpus; they should differ from those of the whole by less than 1e-5.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;

use crosslens_lab::analysis::{Components, Estimator, Shrinkage, Stats};
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::{Sentences, Shard, TrainedModel};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut config = default_config("reverse", Family::Aed).ok_or("a shipped recipe")?;
    config.training.steps = 20;
    Run::prepare(config, RunFolder::at(folder.path()))?.start(0, &mut |_: Event<'_>| Wish::GoOn)?;
    let model = TrainedModel::open(folder.path())?;
    let sentences = Sentences::Task { seed: 1, n_samples: 400 };

    // As two machines would: each sums every second sentence and writes a small file.
    let files = [1, 2].map(|number| folder.path().join(format!("{number}.stats.safetensors")));
    for (file, number) in files.iter().zip(1..) {
        model.fit(&sentences, Shard { number, of: 2 }, 0, &mut |_| ())?.save(file)?;
    }
    let merged = Stats::load_merged(&files)?;
    let whole = model.fit(&sentences, Shard::WHOLE, 0, &mut |_| ())?;

    let mut largest: f64 = 0.0;
    for (a, b) in merged.streams.iter().zip(&whole.streams) {
        let fit = |sums: &crosslens_lab::analysis::Sums| sums.fit::<f64>(Estimator::Paper, Shrinkage::None).map(|fit| fit.components);
        let (left, right): (Components<f64>, Components<f64>) = (fit(&a.sums)?, fit(&b.sums)?);
        for step in 0..b.sums.n_steps() {
            let distance = left.temporal(step).iter().zip(right.temporal(step)).map(|(x, y)| (x - y).abs());
            largest = distance.fold(largest, f64::max);
        }
        println!("{}: {} states, {} steps, {} tokens", b.name, a.sums.n_states(), b.sums.n_steps(), b.sums.n_tokens());
    }
    println!("largest difference of a temporal component: {largest:.1e}");
    assert!(largest < 1e-5);
    Ok(())
}
