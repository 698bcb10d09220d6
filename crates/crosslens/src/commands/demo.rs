use std::path::PathBuf;

use crosslens_lab::demo::{DemoError, demo, write_page};

use crate::failure::Failure;
use crate::progress::NetworkBar;
use crate::{interrupt, output};

/// What `crosslens` does without a command.
#[derive(clap::Args, Default)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Without a command: train and explain everything again.
    #[arg(long)]
    fresh: bool,
    /// Without a command: where the demo is kept.
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    out: PathBuf,
}

const FOLDER: &str = "crosslens-demo";

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    interrupt::listen();
    let mut bar = NetworkBar::new();
    let shown = demo(&arguments.out, arguments.fresh, 0, &mut |work| bar.show(work))?;
    drop(bar);
    let folder = arguments.out.display();
    if shown.iter().all(|shown| shown.is_found) {
        output::note(&format!("found in {folder}; --fresh trains everything again"));
    }
    output::result("How seven networks attend:");
    shown.iter().for_each(|shown| output::result(&format!("  {}", shown.line())));
    let page = arguments.out.join("report.html");
    write_page(&shown, &page)?;
    output::note(&format!("look at them: {} (one file, no network needed); runs and reports are in {folder}", page.display()));
    output::note("next:");
    next_commands(&folder.to_string()).iter().for_each(|command| output::note(&format!("  crosslens {command}")));
    Ok(())
}

/// What to try after the demo.
fn next_commands(folder: &str) -> [String; 3] {
    [
        format!("explain {folder}/escan-aed --samples 200 --control"),
        format!("attend {folder}/one-to-one-aed --terms --out attention.npz"),
        "reproduce --quick".into(),
    ]
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Interrupted => Self::refused(error.to_string()).hint("crosslens goes on"),
            DemoError::Train(error) => error.into(),
            DemoError::Open(error) => error.into(),
            DemoError::Show(error) => error.into(),
            DemoError::Page(error) => error.into(),
            error => Self::of(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::next_commands;

    #[test]
    fn the_commands_to_try_next_are_commands() {
        for command in next_commands("crosslens-demo") {
            let words = std::iter::once("crosslens").chain(command.split(' '));
            assert!(crate::Arguments::try_parse_from(words).is_ok(), "{command}");
        }
    }
}
