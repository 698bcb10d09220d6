//! Pages that show how a model of sounds or pictures came to what it wrote.

use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Token;
use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::page::Page;
use crosslens_lab::{Attention, Choices, Device, ImportedModel, ImportedOptions, ShowOptions, Shown};

use super::report::{amount, counted, note_left_out};
use crate::failure::Failure;
use crate::output;
use crate::progress::SentenceBar;

/// Files that are shown in a page; all are explained.
const SHOWN: usize = 20;
/// Files the causal checks run on.
const CAUSAL: u64 = 20;

/// The page that is asked for beside what a model writes.
#[derive(clap::Args)]
pub(crate) struct Explaining {
    /// Write a page that shows how the model came to it, for any browser, without a network; of long sounds their first 30 seconds.
    #[arg(long, value_name = "report.html")]
    explain: Option<PathBuf>,
    /// With --explain: codes for frames and patches, which have no tokens.
    #[arg(long, value_name = "K", requires = "explain", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    codes: u16,
}

impl Explaining {
    /// Whether a page is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.explain.is_some()
    }

    /// Explains what a model wrote for sounds or pictures, where that is asked for.
    ///
    /// Times of words are taken from `heads`, each a layer and a head; from those that the model's files name where there are none.
    pub(crate) fn write(
        &self,
        model: &Path,
        written: Vec<(PathBuf, Vec<Token>)>,
        heads: &[(usize, usize)],
        device: Device,
    ) -> Result<(), Failure> {
        let choices = Choices { n_codes: self.codes.into(), heads: heads.to_vec(), device, ..Choices::default() };
        self.explain.as_deref().map_or(Ok(()), |page| write(model, written, &choices, page))
    }
}

/// Files that could not be read, or not to their end: one of several is told of at once, and the others go on.
pub(crate) struct Unread {
    n_files: usize,
    failures: Vec<Failure>,
}

impl Unread {
    /// None yet, of so many.
    pub(crate) fn of(n_files: usize) -> Self {
        Self { n_files, failures: Vec::new() }
    }

    /// One more.
    pub(crate) fn add(&mut self, failure: Failure) {
        if self.n_files > 1 {
            failure.tell();
        }
        self.failures.push(failure);
    }

    /// Whether all could be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// Fails if there was one.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        match self.failures.pop() {
            None => Ok(()),
            Some(only) if self.n_files == 1 => Err(only),
            Some(_) => Err(Failure::refused(format!("{} of {} files could not be read", self.failures.len() + 1, self.n_files))),
        }
    }
}

/// Explains how each text came about, and writes a page.
fn write(model: &Path, written: Vec<(PathBuf, Vec<Token>)>, choices: &Choices, page: &Path) -> Result<(), Failure> {
    let bar = SentenceBar::new();
    let n_files = written.len();
    let opened = ImportedModel::open_with(model, choices, Attention::Cross)?;
    let sentences = opened.written_files(written)?;
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
    output::note(&format!("{}: {}, {} explained", page.display(), amount(size), counted(n_files, "file")));
    note_left_out(SHOWN, &shown.explained);
    if n_files == 1 {
        output::note(
            "what positions and codes are like was taken from this file alone: give more files, of which each position has seen more",
        );
    }
    Ok(())
}
