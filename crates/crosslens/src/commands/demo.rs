use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use crosslens_lab::demo::{DemoError, NAMES, Shown, costs, demo, networks, with_found, write_page};

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
    /// Without a command: train only this network; may be given several times. Others found in the folder stay on the page.
    #[arg(long, value_name = "NETWORK", value_parser = PossibleValuesParser::new(NAMES))]
    only: Vec<String>,
}

const FOLDER: &str = "crosslens-demo";

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    interrupt::listen();
    let all = networks();
    let mut networks = all.clone();
    networks.retain(|network| arguments.only.is_empty() || arguments.only.iter().any(|name| name == network.name));
    let mut bar = NetworkBar::new(&costs(&networks));
    let shown = demo(&networks, &arguments.out, arguments.fresh, 0, &mut |work| bar.show(work))?;
    drop(bar);
    let folder = arguments.out.display();
    if shown.iter().all(|shown| shown.is_found) {
        output::note(&format!("found in {folder}; --fresh trains everything again"));
    }
    output::result("How these networks attend:");
    shown.iter().for_each(|shown| output::result(&format!("  {}", shown.line())));
    let on_page = with_found(&shown, &all, &arguments.out);
    let page = write_page(&on_page, &arguments.out)?;
    if on_page.len() > shown.len() {
        output::note(&format!("the page also shows {} more, found in {folder}", on_page.len() - shown.len()));
    }
    output::note(&format!("look at them: {} (one file, no network needed); runs and reports are in {folder}", page.display()));
    output::note("next:");
    let attend = |shown: &&Shown| !shown.report.sites.is_empty();
    let folders: Vec<&Path> = shown.iter().filter(attend).map(|shown| shown.folder.as_path()).collect();
    next_commands(&folders).iter().for_each(|command| output::note(&format!("  crosslens {command}")));
    Ok(())
}

/// What to try after the demo, on networks that attend.
fn next_commands(folders: &[&Path]) -> Vec<String> {
    let explain = folders.last().map(|folder| format!("explain {} --samples 200 --control", output::quoted(folder)));
    let attend = folders.first().map(|folder| format!("attend {} --terms --out attention.npz", output::quoted(folder)));
    [explain, attend, Some("reproduce --quick".into())].into_iter().flatten().collect()
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Interrupted => Self::refused(error.to_string()).hint("crosslens goes on"),
            DemoError::Foreign { .. } => Self::refused(error.to_string()).hint("another --out, or move it away"),
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
    use std::path::Path;

    use clap::Parser;

    use super::next_commands;

    #[test]
    fn the_commands_to_try_next_are_commands() {
        let commands = next_commands(&[Path::new("crosslens-demo/one-to-one-aed"), Path::new("crosslens-demo/escan-ao")]);
        assert_eq!(commands.len(), 3);
        for command in commands {
            let words = std::iter::once("crosslens").chain(command.split(' '));
            assert!(crate::Arguments::try_parse_from(words).is_ok(), "{command}");
        }
    }

    #[test]
    fn folders_with_blanks_stay_one_word() {
        let commands = next_commands(&[Path::new("my demo/escan-aed")]);
        assert!(commands[0].starts_with("explain 'my demo/escan-aed' --samples"), "{commands:?}");
        assert!(commands[1].starts_with("attend 'my demo/escan-aed' --terms"), "{commands:?}");
        assert_eq!(next_commands(&[]), ["reproduce --quick"]);
    }
}
