//! The page that shows reports, and models to be asked, over HTTP.
//!
//! A [`Library`] holds what was named on the command line: runs, recordings and reports. A [`Server`] answers for it: the viewer's files,
//! reports as the page reads them, questions to running models, and long work with its progress; it answers at once, and explains what it
//! holds meanwhile. The API is described in
//! `docs/openapi.json`. Everything that comes in is hostile until checked: see [`Limits`] and `guard.rs`.

mod api;
mod guard;
mod impatient;
mod jobs;
mod library;
mod limits;
mod reply;
mod routes;
mod server;
mod status;
mod viewer;

pub use library::{Library, LibraryError, OpenOptions, Preparing, Summary};
pub use limits::Limits;
pub use server::{Server, ServerError};

#[cfg(test)]
mod tests;
