//! The only place that writes to standard output and standard error.

use std::io::Write;
use std::path::Path;

use crosslens_lab::analysis::replace_file;

use crate::failure::Failure;

/// A line of results. A reader that has gone away is no error.
pub(crate) fn result(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}

/// A line for the person at the terminal.
pub(crate) fn note(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Writes a text file, whole or not at all.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    replace_file(path, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::refused(format!("cannot write `{}`: {error}", path.display())))
}
