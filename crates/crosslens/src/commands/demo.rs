use std::path::{Path, PathBuf};

use crosslens_lab::demo::{DemoError, Shown, demo};

use crate::failure::Failure;
use crate::progress::NetworkBar;
use crate::{interrupt, output};

/// What `crosslens` does without a command.
#[derive(clap::Args, Default)]
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
    let page = write_page(&arguments.out, &shown);
    output::note(&match page {
        Some(page) => format!("the page is {}; runs and reports are in {folder}", page.display()),
        None => format!("runs and reports are in {folder}"),
    });
    output::note("next:");
    output::note(&format!("  crosslens explain {folder}/escan-aed --shares topk --control"));
    output::note(&format!("  crosslens attend {folder}/one-to-one-aed"));
    output::note("  crosslens reproduce --quick");
    Ok(())
}

/// The place where `report.html` is written, of all networks shown; `None` while there is no page.
fn write_page(_folder: &Path, _shown: &[Shown]) -> Option<PathBuf> {
    None
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Interrupted => Self::refused(error.to_string()).hint("crosslens goes on"),
            DemoError::Train(error) => error.into(),
            DemoError::Open(error) => error.into(),
            error => Self::of(&error),
        }
    }
}
