//! You will see what a network can do with its attention taken away: words right should fall from 1.00 to below 0.65.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;

use crosslens_lab::TrainedModel;
use crosslens_lab::analysis::{AttentionRow, Fed, Intervene, Pair, Recordable, Untouched};
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::tasks::Split;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};

/// Looks at every source word alike.
struct Uniform;

impl Intervene for Uniform {
    fn weights(&self, _row: AttentionRow<'_>, weights: &mut [f32]) {
        weights.fill(1.0 / weights.len() as f32);
    }
}

/// Looks at the first source word, whatever is asked.
struct First;

impl Intervene for First {
    fn weights(&self, _row: AttentionRow<'_>, weights: &mut [f32]) {
        weights.fill(0.0);
        weights[0] = 1.0;
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let config = default_config("reverse", Family::Ao).ok_or("a shipped recipe")?;
    Run::prepare(config, RunFolder::at(folder.path()))?.start(0, &mut |_: Event<'_>| Wish::GoOn)?;
    let model = TrainedModel::open(folder.path())?;
    let subject = model.subject(0)?;
    let pairs: Vec<Pair> = (0..200).map(|number| model.task.pair(Split::Test, 1, number)).collect();
    let right = |how: &dyn Intervene| -> Result<f64, Box<dyn Error>> {
        let answers = subject.run(&pairs, Fed::Own, how)?;
        let shares = answers.iter().zip(&pairs).map(|(answer, pair)| answer.outcome(&pair.target).word_accuracy());
        Ok(shares.sum::<f64>() / pairs.len() as f64)
    };
    let (whole, uniform, first) = (right(&Untouched)?, right(&Uniform)?, right(&First)?);
    println!("words right: {whole:.2} as it is, {uniform:.2} with uniform attention, {first:.2} looking at the first word only");
    assert!(whole > 0.99 && uniform < 0.65 && first < 0.65);
    Ok(())
}
