//! Parallel text from files of others: TSV, two aligned files, JSONL and gettext catalogues, a pair at a time.
//!
//! A [`CorpusSpec`] says where the text is, a [`Filter`] which pairs are wanted; a [`CorpusReader`] gives them one by one and counts what it
//! dropped, with the first lines of each kind. Bad lines are counted, never fatal; what makes a whole file unusable (it is a device, it is
//! UTF-16, its gzip is damaged, its neighbour has fewer lines) is an error with the file and the cure.
//!
//! Memory: one line of at most [`MAX_LINE_BYTES`], a `.mo` catalogue of at most 64 MiB, and, where duplicates are dropped, a hash of 8 bytes
//! for each pair kept, 10 to 20 bytes with the table around it.
//!
//! ```
//! use crosslens_analysis::corpus::{CorpusSpec, Filter, Reason};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("corpus.tsv");
//! std::fs::write(&path, "a cat\tun chat\r\nno tab\na cat\tun chat\n")?;
//!
//! let spec: CorpusSpec = path.to_string_lossy().parse()?;
//! let mut corpus = spec.open(&Filter::default())?;
//! let pairs = corpus.by_ref().collect::<Result<Vec<_>, _>>()?;
//! assert_eq!((pairs.len(), pairs[0].target.as_str(), pairs[0].line), (1, "un chat", 1));
//!
//! let report = corpus.into_report();
//! assert_eq!(report.dropped(Reason::OneSided).count, 1);
//! assert_eq!(report.dropped(Reason::Duplicate).first[0].line, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aligned;
mod charset;
mod entry;
mod error;
mod filter;
mod gettext;
mod installed;
mod jsonl;
mod lines;
mod mo;
mod po;
mod reader;
mod report;
mod spec;
mod tabbed;

pub use error::CorpusError;
pub use filter::Filter;
pub use lines::MAX_LINE_BYTES;
pub use reader::{BytesRead, CorpusReader, TextPair};
pub use report::{CorpusReport, MAX_PLACES, Place, Reason, Tally};
pub use spec::{CorpusSpec, CorpusSpecError};

pub(crate) use lines::{Line, Lines};
