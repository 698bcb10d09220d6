//! How a run begins, whoever asks: where it may be kept, and what of a corpus and a network can be chosen.

use std::path::{Path, PathBuf};

use crosslens_analysis::Existing;
use crosslens_analysis::corpus::CorpusSpec;
use crosslens_nets::network::{Cell, Family, Score};
use crosslens_nets::tasks::CorpusConfig;
use crosslens_nets::text::Units;
use crosslens_nets::train::{RunConfig, RunFolder, Schedule};

use crate::recipes::{corpus_config, corpus_defaults};

/// Why a run cannot begin in a folder: something would be lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderTaken {
    /// There is a run.
    #[error("`{path}` already holds a run")]
    ByRun {
        /// The folder.
        path: PathBuf,
    },
    /// It is no folder.
    #[error("`{path}` is a file, a run needs a folder")]
    ByFile {
        /// The file.
        path: PathBuf,
    },
    /// There are files of others.
    #[error("`{path}` is not empty and holds no run")]
    ByOthers {
        /// The folder.
        path: PathBuf,
    },
}

/// The folder for a new run: an empty one, or that of a run which is to be replaced. Files of others are never. Where a run must not be
/// replaced, one that comes there before the new one begins is not either.
pub fn folder_of_new_run(path: &Path, existing: Existing) -> Result<RunFolder, FolderTaken> {
    let folder = match existing {
        Existing::Replace => RunFolder::at(path),
        Existing::Refuse => RunFolder::free_at(path),
    };
    let path = path.to_owned();
    match (folder.holds_run(), existing) {
        (true, Existing::Replace) => Ok(folder),
        (true, Existing::Refuse) => Err(FolderTaken::ByRun { path }),
        (false, _) if path.is_file() => Err(FolderTaken::ByFile { path }),
        (false, _) if folder.is_empty() => Ok(folder),
        (false, _) => Err(FolderTaken::ByOthers { path }),
    }
}

/// What may be chosen of a corpus; what is not is as in `configs/corpus.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusWishes {
    /// What the network is judged on.
    pub dev: Option<CorpusSpec>,
    /// Source sentences kept from training.
    pub held_out: Option<usize>,
    /// Pairs with more words on a side are left out.
    pub max_words: Option<usize>,
    /// Pairs that are read at most.
    pub max_pairs: Option<u64>,
    /// What sentences are cut into.
    pub units: Option<Units>,
    /// The most words of each side, or pieces of both.
    pub vocabulary: Option<usize>,
    /// Whether capitals are kept.
    pub keep_case: bool,
}

impl CorpusWishes {
    /// The run of a network of this family on a corpus; a rate that falls does so over the steps that are made.
    pub fn run(self, train: CorpusSpec, family: Family, steps: Option<u64>) -> RunConfig {
        let defaults = corpus_defaults(train);
        let corpus = CorpusConfig {
            dev: self.dev,
            held_out: self.held_out,
            max_words: self.max_words.unwrap_or(defaults.max_words),
            max_pairs: self.max_pairs.unwrap_or(defaults.max_pairs),
            units: self.units.unwrap_or(defaults.units),
            vocabulary: self.vocabulary.unwrap_or(defaults.vocabulary),
            lowercase: defaults.lowercase && !self.keep_case,
            train: defaults.train,
        };
        let mut config = corpus_config(family, corpus);
        if let (Some(steps), Schedule::Cosine { over, .. }) = (steps, &mut config.training.schedule) {
            *over = steps;
        }
        config
    }
}

/// A part was chosen that networks of a family do not have.
#[derive(Debug, thiserror::Error)]
#[error("{} networks cannot have {part} {value}: {reason}", .family.name())]
pub struct MissingPart {
    /// The family.
    pub family: Family,
    /// `cell` or `score`.
    pub part: &'static str,
    /// What was chosen of it.
    pub value: &'static str,
    /// Why there is none.
    pub reason: &'static str,
    /// Families that have one.
    pub others: &'static str,
}

/// Refuses parts that a family does not have, whatever they are; a value it cannot have is refused with the configuration.
pub fn check_parts(family: Family, cell: Option<Cell>, score: Option<Score>) -> Result<(), MissingPart> {
    let missing = |part, value, reason, others| Err(MissingPart { family, part, value, reason, others });
    match (family, cell, score) {
        (Family::Transformer, Some(cell), _) => {
            missing("cell", cell.name(), "they have no recurrence", "aed, ao, bahdanau, luong or ved has cells")
        }
        (Family::Transformer, None, Some(score)) => {
            let reason = "their scores are always of learned queries and keys";
            missing("score", score.name(), reason, "aed, ao, bahdanau or luong has a score to choose")
        }
        (Family::Ved, _, Some(score)) => {
            missing("score", score.name(), "they have no attention", "aed, ao, bahdanau or luong has a score to choose")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("others")).expect("a folder");
        std::fs::write(path("others/thesis.tex"), "").expect("a file");
        std::fs::create_dir_all(path("empty")).expect("a folder");
        std::fs::create_dir_all(path("run")).expect("a folder");
        std::fs::write(path("run/run.toml"), "").expect("a file");
        std::fs::write(path("file"), "").expect("a file");
        for (name, refuse, replace) in [
            ("others", "not empty and holds no run", "not empty and holds no run"),
            ("file", "is a file", "is a file"),
            ("run", "already holds a run", ""),
            ("empty", "", ""),
            ("new", "", ""),
        ] {
            for (existing, says) in [(Existing::Refuse, refuse), (Existing::Replace, replace)] {
                let seen = folder_of_new_run(&path(name), existing).map_or_else(|error| error.to_string(), |_| String::new());
                assert!(seen.is_empty() == says.is_empty() && seen.contains(says), "{name}, {existing:?}: {seen}");
            }
        }
    }
}
