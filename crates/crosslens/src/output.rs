//! The only place that writes to standard output and standard error.

use std::io::Write;

/// A line of results. A reader that has gone away is no error.
pub(crate) fn result(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}

/// A line for the person at the terminal.
pub(crate) fn note(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}
