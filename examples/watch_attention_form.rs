//! You will see attention form while a network trains, record by record; temporal × temporal should end above 0.90.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;

use crosslens_lab::analysis::timeline::Timeline;
use crosslens_lab::network::Family;
use crosslens_lab::recipes::default_config;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::train_recorded;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut config = default_config("reverse", Family::Ao).ok_or("a shipped recipe")?;
    config.training.record_every = 50;
    let run = Run::prepare(config, RunFolder::at(folder.path()))?;
    train_recorded(&run, 0, false, &mut |_: Event<'_>| Wish::GoOn)?;

    let timeline = Timeline::load(&RunFolder::at(folder.path()).timeline_file())?;
    println!("step  words right  temporal × temporal  distance to uniform attention");
    let mut last = 0.0;
    for point in &timeline.points {
        let site = &point.sites[0];
        last = site.temporal().ok_or("the terms add up")?;
        let bar = "━".repeat((30.0 * site.tv["uniform"]) as usize);
        println!("{:>4}  {:>11.3}  {last:>19.3}  {bar}", point.step, point.word_accuracy.unwrap_or_default());
    }
    assert!(last > 0.90, "{last}");
    Ok(())
}
