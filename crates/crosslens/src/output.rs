//! The only place that writes to standard output and standard error.

use std::io::{Error, ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;

use crosslens_lab::analysis::replace_file;

use crate::failure::Failure;

/// Why no more results are written.
static LOST: OnceLock<Error> = OnceLock::new();

/// A line of results. Once one could not be written, none that would follow it is; [`check_results`] says why.
pub(crate) fn result(line: &str) {
    if LOST.get().is_none()
        && let Err(error) = writeln!(std::io::stdout(), "{line}")
    {
        LOST.set(error).ok();
    }
}

/// Whether all results are where they should be. A reader that has gone away is no failure.
pub(crate) fn check_results() -> Result<(), Failure> {
    let Some(error) = LOST.get().filter(|error| error.kind() != ErrorKind::BrokenPipe) else { return Ok(()) };
    let failure = Failure::refused(format!("cannot write the results to standard output: {error}"));
    Err(if error.kind() == ErrorKind::StorageFull { failure.hint("make room on that disk") } else { failure })
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

/// A path as a shell takes it: in quotes where it holds more than letters, digits and plain signs.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./+,:@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_cut_them() {
        let cases = [
            ("crosslens-demo/escan-aed", "crosslens-demo/escan-aed"),
            ("my demo/a", "'my demo/a'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
            ("Übung", "Übung"),
        ];
        for (path, expected) in cases {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
