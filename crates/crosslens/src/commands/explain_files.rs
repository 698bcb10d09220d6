//! Pages that show how a model of sounds or pictures came to what it wrote.

use std::path::{Path, PathBuf};

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::page::Page;
use crosslens_lab::{Attention, Choices, ImportedModel, ImportedOptions, ShowOptions, Shown};

use super::report::{amount, counted};
use crate::failure::Failure;
use crate::output;
use crate::progress::SentenceBar;

/// Files that are shown in a page; all are explained.
const SHOWN: usize = 20;
/// Files the causal checks run on.
const CAUSAL: u64 = 20;

/// Explains what a model makes of sounds or pictures, each by itself, and writes a page.
pub(crate) fn write(model: &Path, files: &[PathBuf], choices: &Choices, page: &Path) -> Result<(), Failure> {
    let bar = SentenceBar::new();
    let opened = ImportedModel::open_with(model, choices, Attention::Cross)?;
    let sentences = opened.files(files, 0)?;
    let options = ShowOptions {
        n_sentences: sentences.len(),
        seed: 0,
        imported: ImportedOptions { causal: CAUSAL, ..ImportedOptions::default() },
        explain: Options { samples: SHOWN, ..Options::default() },
    };
    let mut shown = Shown::of_imported(&opened, &sentences, None, &options, &mut |progress| bar.show(progress))?.found_at(model)?;
    shown.explained.report.corpus.source = "files named here".into();
    let title = format!("Crosslens: {}", shown.name);
    let size = shown.on(Page::new()).title(title).write(page)?;
    output::note(&format!("{}: {}, {} explained", page.display(), amount(size), counted(files.len(), "file")));
    if files.len() == 1 {
        output::note(
            "what positions and codes are like was taken from this file alone: give more files, of which each position has seen more",
        );
    }
    Ok(())
}
