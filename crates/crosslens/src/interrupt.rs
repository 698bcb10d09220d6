//! Ctrl-C: the first asks the command to save and stop, the second ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Exit code of a program ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// From now on Ctrl-C (and a polite kill) is noticed by [`asked`].
pub(crate) fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    };
    // Where no handler can be set, Ctrl-C ends the program as ever; the last checkpoint stays.
    ctrlc::set_handler(handler).ok();
}

/// Whether the user wants to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
