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
