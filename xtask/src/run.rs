//! Runs steps one after another and tells how it went.

use std::process::ExitCode;
use std::time::Instant;

use crate::steps::{Outcome, Step};

/// One line of the summary.
struct Line {
    name: &'static str,
    verdict: Verdict,
    /// `None` if it was not run.
    elapsed_secs: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Skipped,
    Failed,
    NotRun,
}

impl Verdict {
    /// What is not a plain pass or a consequence is in capitals, to be seen in a long log.
    fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Skipped => "SKIPPED",
            Self::Failed => "FAILED",
            Self::NotRun => "not run",
        }
    }
}

/// Runs the steps until one fails. The last line printed counts them; after a failure the line above it says how to repeat it.
pub(crate) fn run(steps: &[Step]) -> ExitCode {
    let mut lines: Vec<Line> = Vec::new();
    let mut failed = None;
    for (place, step) in steps.iter().enumerate() {
        if failed.is_some() {
            lines.push(Line { name: step.name, verdict: Verdict::NotRun, elapsed_secs: None });
            continue;
        }

        println!("\n== {}/{} {}", place + 1, steps.len(), step.name);
        let line = run_one(step);
        if line.verdict == Verdict::Failed {
            failed = Some(step);
        }
        lines.push(line);
    }

    println!("\n{}\n", summary(&lines));
    if let Some(step) = failed {
        println!("step `{}` failed; to repeat it alone: {}", step.name, step.command);
    }
    println!("{}", totals(&lines));
    if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run_one(step: &Step) -> Line {
    println!("$ {}", step.command);
    let start = Instant::now();
    let verdict = match (step.action)() {
        Ok(Outcome::Passed) => Verdict::Passed,
        Ok(Outcome::Skipped(reason)) => {
            println!("SKIPPED: {reason}");
            Verdict::Skipped
        }
        Err(error) => {
            println!("error: {error:#}");
            Verdict::Failed
        }
    };
    let elapsed_secs = start.elapsed().as_secs_f64();
    println!("-- {}: {} in {elapsed_secs:.1} s", step.name, verdict.as_str());
    Line { name: step.name, verdict, elapsed_secs: Some(elapsed_secs) }
}

fn summary(lines: &[Line]) -> String {
    let rows = lines.iter().map(|line| {
        let seconds = line.elapsed_secs.map_or("-".to_owned(), |secs| format!("{secs:.1}"));
        row(line.name, line.verdict.as_str(), &seconds)
    });
    let total: f64 = lines.iter().filter_map(|line| line.elapsed_secs).sum();

    let mut table = vec![row("step", "result", "seconds")];
    table.extend(rows);
    table.push(row("total", "", &format!("{total:.1}")));
    table.join("\n")
}

fn row(step: &str, result: &str, seconds: &str) -> String {
    format!("{step:<16}{result:<10}{seconds:>8}")
}

fn totals(lines: &[Line]) -> String {
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let skipped = match count(Verdict::Skipped) {
        0 => String::new(),
        n_skipped => format!(", {n_skipped} skipped"),
    };
    format!("xtask: {} passed, {} failed{skipped}", count(Verdict::Passed), count(Verdict::Failed))
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;

    #[test]
    fn totals_name_skipped_steps_only_if_there_are_some() {
        let totals_of = |verdicts: &[Verdict]| {
            let line = |&verdict| Line { name: "step", verdict, elapsed_secs: Some(1.0) };
            totals(&verdicts.iter().map(line).collect::<Vec<_>>())
        };
        assert_eq!(totals_of(&[Verdict::Passed, Verdict::Passed]), "xtask: 2 passed, 0 failed");
        assert_eq!(totals_of(&[Verdict::Passed, Verdict::Skipped]), "xtask: 1 passed, 0 failed, 1 skipped");
        assert_eq!(totals_of(&[Verdict::Passed, Verdict::Failed, Verdict::NotRun]), "xtask: 1 passed, 1 failed");
    }

    #[test]
    fn a_failure_stops_the_steps_after_it() {
        let step = |name, action: fn() -> Result<Outcome>| Step { name, command: String::new(), action: Box::new(action) };
        let fails = step("fails", || anyhow::bail!("on purpose"));
        let never = step("never", || panic!("a step ran after a failure"));
        assert_eq!(run(&[fails, never]), ExitCode::FAILURE);
    }

    #[test]
    fn a_skipped_step_is_no_failure() {
        let skipped = Step { name: "skipped", command: String::new(), action: Box::new(|| Ok(Outcome::Skipped("a reason".to_owned()))) };
        assert_eq!(run(&[skipped]), ExitCode::SUCCESS);
    }
}
