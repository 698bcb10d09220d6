//! After warming up one line `{"ready": true, …}`; then, for every line `go SECONDS` read, work for that long and one line of results.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use serde_json::json;

/// Steps before the first measurement.
const WARM_UP_STEPS: usize = 4;
/// Unmeasured steps at the start of every turn.
const TURN_STEPS: usize = 2;

/// Serves `step`, which does a piece of work and returns its loss, until standard input ends.
pub(crate) fn serve(name: &str, mut step: impl FnMut() -> f64) -> std::io::Result<()> {
    let losses: Vec<f64> = (0..WARM_UP_STEPS).map(|_| step()).collect();
    say(&json!({"ready": true, "name": name, "losses": losses}))?;
    for line in stdin().lock().lines() {
        let line = line?;
        let seconds: f64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|seconds| seconds.parse().ok())
            .ok_or_else(|| std::io::Error::other(format!("expected `go SECONDS`, got `{line}`")))?;
        (0..TURN_STEPS).for_each(|_| {
            step();
        });
        let start = Instant::now();
        let mut n_steps = 0;
        let (loss, elapsed) = loop {
            let loss = step();
            n_steps += 1;
            let elapsed = start.elapsed().as_secs_f64();
            if elapsed > seconds {
                break (loss, elapsed);
            }
        };
        say(&json!({"steps_per_second": f64::from(n_steps) / elapsed, "peak_rss_mb": peak_memory_mb(), "loss": loss}))?;
    }
    Ok(())
}

pub(crate) fn say(line: &serde_json::Value) -> std::io::Result<()> {
    writeln!(stdout(), "{line}")?;
    stdout().flush()
}

/// The process's largest resident size so far, where the system tells it.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?;
    Some(kilobytes.parse::<f64>().ok()? / 1024.0)
}
