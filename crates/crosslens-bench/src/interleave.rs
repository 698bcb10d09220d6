//! Takes turns between programs that speak the benchmarks' protocol, so that none profits from a quiet moment of the machine.

use std::io::{BufRead, BufReader, Error, Write, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::protocol::say;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What is compared, the first being what the others are measured by: `torch=python bench/translation_peers.py train 2`. Variables may
    /// stand before the program: `torch=OMP_NUM_THREADS=1 python …`.
    #[arg(value_name = "NAME=COMMAND", required = true)]
    contenders: Vec<String>,
    /// Turns of each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// End with one line of JSON.
    #[arg(long)]
    json: bool,
}

/// A program at work, and what it said of each turn.
struct Contender {
    name: String,
    child: Child,
    asked: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    turns: Vec<Turn>,
}

struct Turn {
    steps_per_second: f64,
    peak_rss_mb: Option<f64>,
}

/// Starts all, lets each work for one turn after the other, and prints medians: of the speeds, and of the ratios within each round.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let mut running = arguments.contenders.iter().map(|contender| Contender::start(contender)).collect::<std::io::Result<Vec<_>>>()?;
    for _ in 0..arguments.rounds {
        running.iter_mut().try_for_each(|contender| contender.take_turn(arguments.seconds))?;
    }
    let rows = compare(&running.iter().map(|contender| (&contender.name[..], &contender.turns[..])).collect::<Vec<_>>());
    if arguments.json {
        return say(&rows.iter().map(Row::json).collect());
    }
    rows.iter().try_for_each(|Row { name, speed, ratio, peak_rss_mb }| {
        writeln!(stdout(), "{name:<24} {speed:10.2} /s   x{ratio:.2}   {:8.0} MB", peak_rss_mb.unwrap_or(0.0))
    })
}

impl Contender {
    /// Starts `NAME=COMMAND` and waits until it is warm.
    fn start(contender: &str) -> std::io::Result<Self> {
        let (name, command) = contender.split_once('=').ok_or_else(|| Error::other(format!("`{contender}` is no NAME=COMMAND")))?;
        let mut child = Command::new("sh")
            // In place of the shell, so that it is the program itself that is ended; `env` lets variables stand before it.
            .args(["-c", &format!("exec env {command}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::other(format!("{name}: {error}")))?;
        let (asked, answers) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let answers = answers.ok_or_else(|| Error::other("a program was started without a pipe"))?;
        let mut contender = Self { name: name.to_owned(), child, asked, answers, turns: Vec::new() };
        match contender.answer()?["ready"] {
            Value::Bool(true) => Ok(contender),
            _ => Err(Error::other(format!("{name}: its first line does not say that it is ready"))),
        }
    }

    fn take_turn(&mut self, seconds: f64) -> std::io::Result<()> {
        let asked = self.asked.as_mut().ok_or_else(|| Error::other("a program was started without a pipe"))?;
        writeln!(asked, "go {seconds}").and_then(|()| asked.flush()).map_err(|error| Error::other(format!("{}: {error}", self.name)))?;
        let answer = self.answer()?;
        let steps_per_second = answer["steps_per_second"].as_f64().filter(|speed| *speed > 0.0);
        let steps_per_second =
            steps_per_second.ok_or_else(|| Error::other(format!("{}: `{answer}` has no steps_per_second", self.name)))?;
        self.turns.push(Turn { steps_per_second, peak_rss_mb: answer["peak_rss_mb"].as_f64() });
        Ok(())
    }

    fn answer(&mut self) -> std::io::Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(Error::other(format!("{}: it ended before it answered", self.name)));
        }
        serde_json::from_str(&line).map_err(|error| Error::other(format!("{}: `{}` is no JSON: {error}", self.name, line.trim_end())))
    }
}

/// A program ends when its standard input does; one that does not is ended.
impl Drop for Contender {
    fn drop(&mut self) {
        drop(self.asked.take());
        if std::thread::panicking() || self.turns.is_empty() {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

struct Row {
    name: String,
    speed: f64,
    ratio: f64,
    peak_rss_mb: Option<f64>,
}

impl Row {
    fn json(&self) -> Value {
        let Self { name, speed, ratio, peak_rss_mb } = self;
        json!({ "name": name, "median": speed, "ratio": ratio, "peak_rss_mb": peak_rss_mb })
    }
}

/// Ratios are taken within a round, against the first contender, before their median is.
fn compare(contenders: &[(&str, &[Turn])]) -> Vec<Row> {
    let Some(&(_, base)) = contenders.first() else { return Vec::new() };
    let row = |&(name, turns): &(&str, &[Turn])| Row {
        name: name.to_owned(),
        speed: median(turns.iter().map(|turn| turn.steps_per_second).collect()),
        ratio: median(turns.iter().zip(base).map(|(turn, base)| turn.steps_per_second / base.steps_per_second).collect()),
        peak_rss_mb: turns.iter().filter_map(|turn| turn.peak_rss_mb).reduce(f64::max),
    };
    contenders.iter().map(row).collect()
}

/// The middle one, of an even number the mean of both; nothing has a median of NaN.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (_, 0) if values.is_empty() => f64::NAN,
        (half, 0) => (values[half - 1] + values[half]) / 2.0,
        (half, _) => values[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(speeds: &[f64]) -> Vec<Turn> {
        speeds.iter().map(|&steps_per_second| Turn { steps_per_second, peak_rss_mb: Some(10.0 * steps_per_second) }).collect()
    }

    /// Speeds 1, 2, 4 and 3, 2, 20: medians 2 and 3, ratios 3, 1, 5 with the median 3, which is not 3/2.
    #[test]
    fn ratios_are_those_within_rounds() {
        let (base, other) = (turns(&[1.0, 2.0, 4.0]), turns(&[3.0, 2.0, 20.0]));
        let rows = compare(&[("base", &base), ("other", &other)]);
        assert_eq!(rows.iter().map(|row| (row.speed, row.ratio)).collect::<Vec<_>>(), [(2.0, 1.0), (3.0, 3.0)]);
        assert_eq!(rows[1].peak_rss_mb, Some(200.0));
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
    }

    #[cfg(unix)]
    #[test]
    fn programs_take_turns_and_are_named_when_they_fail() {
        let loops = |speed: u32| {
            format!("x=sh -c 'echo \"{{\\\"ready\\\": true}}\"; while read line; do echo \"{{\\\"steps_per_second\\\": {speed}}}\"; done'")
        };
        let mut running = [Contender::start(&loops(2)).expect("it starts"), Contender::start(&loops(6)).expect("it starts")];
        for contender in &mut running {
            (0..3).for_each(|_| contender.take_turn(0.1).expect("it answers"));
        }
        let rows = compare(&running.each_ref().map(|contender| (&contender.name[..], &contender.turns[..])));
        assert_eq!((rows[1].ratio, running[1].turns.len()), (3.0, 3));

        // Variables before a program are its own.
        let named = "x=READY=true sh -c 'echo \"{\\\"ready\\\": $READY}\"; read line'";
        assert!(Contender::start(named).is_ok());

        for (contender, says) in [
            ("nothing", "no NAME=COMMAND"),
            ("x=true", "x: it ended before it answered"),
            ("x=echo hello", "`hello` is no JSON"),
            ("x=echo {}", "does not say that it is ready"),
        ] {
            let error = Contender::start(contender).map(|_| ()).expect_err(contender).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
