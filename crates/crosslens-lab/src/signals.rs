//! Sounds and pictures as sources: a file becomes the features its model reads, and every step of them a code.
//!
//! Components are means over positions and over tokens. A frame or a patch has no token, so a code stands in for it: the nearest of some
//! centres that k-means finds among what the encoder's first map makes of all sources, before positions are added. Steps that are no
//! patches, such as a class token, have codes of their own.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crosslens_analysis::codes::{Codebook, CodesError};
use crosslens_analysis::explain::{CodeExample, CodeExamples};
use crosslens_analysis::report::CodesReport;
use crosslens_analysis::{Signal, Token};
use crosslens_pretrained::audio::{AudioError, LogMel, SoundFile, Windows};
use crosslens_pretrained::{Model, PretrainedError, Subject};

use crate::eyes::{Eyes, SightError};

/// Codes that steps are given where nobody asks for another number.
pub const DEFAULT_CODES: usize = 64;
/// Seeds the search for codes: the same sources, the same codes.
const SEED: u64 = 0;
/// Numbers of all signals that are kept together: 2 GiB of them.
const MOST_NUMBERS: usize = 1 << 29;
/// What files that are looked for in a folder end in.
const SOUNDS: &[&str] = &["flac", "mp3", "oga", "ogg", "wav"];
const PICTURES: &[&str] = &["jpeg", "jpg", "png", "webp"];

/// Why a sound or a picture is no source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// The sound cannot be read.
    #[error(transparent)]
    Sound(#[from] AudioError),
    /// The picture cannot be seen.
    #[error(transparent)]
    Sight(#[from] SightError),
    /// The model refuses it.
    #[error(transparent)]
    Model(#[from] PretrainedError),
    /// There is no sound in it.
    #[error("`{path}` holds no sound")]
    Silent {
        /// The file.
        path: PathBuf,
    },
    /// No codes are found.
    #[error("no codes can be found for the sources")]
    Codes(#[from] CodesError),
    /// More than is kept in memory.
    #[error("the sources up to `{path}` come to {found} numbers, more than the {most} that are kept at a time; give fewer files")]
    TooMany {
        /// The file that was too much.
        path: PathBuf,
        /// Numbers.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A folder that cannot be listed.
    #[error("cannot list `{path}`")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A folder without a file that could be a source.
    #[error("`{path}` holds no file that ends in {endings}")]
    Nothing {
        /// The folder.
        path: PathBuf,
        /// What is looked for.
        endings: String,
    },
}

/// How files become what a model reads.
#[derive(Debug)]
pub(crate) struct Senses {
    organ: Organ,
    /// Steps before the first frame or patch.
    n_special: usize,
    n_codes: usize,
    /// Found when the first sources are coded, then kept: later sources are coded alike.
    codebook: OnceLock<Codebook<()>>,
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct ReadFile {
    pub(crate) signal: Signal,
    /// What is wrong with the file, in words for its user.
    pub(crate) warning: Option<String>,
}

/// What files are read with.
#[derive(Debug)]
pub(crate) enum Organ {
    /// Sounds.
    Ears(Box<LogMel>),
    /// Pictures.
    Eyes(Box<Eyes>),
}

impl Senses {
    /// Those of a model; none if it reads tokens.
    pub(crate) fn of(model: &Model, n_codes: usize) -> Result<Option<Self>, PretrainedError> {
        if !model.reads_signals() {
            return Ok(None);
        }
        let organ = match Eyes::of(model)? {
            Some(eyes) => Organ::Eyes(Box::new(eyes)),
            None => Organ::Ears(Box::new(LogMel::read(model.folder())?)),
        };
        let n_special = model.grid().map_or(0, |grid| grid.special);
        Ok(Some(Self { organ, n_special, n_codes: n_codes.max(1), codebook: OnceLock::new() }))
    }

    /// What files are read with.
    pub(crate) fn organ(&self) -> &Organ {
        &self.organ
    }

    /// Whether it hears rather than sees.
    pub(crate) fn hears(&self) -> bool {
        matches!(self.organ, Organ::Ears(_))
    }

    /// The names of all codes.
    pub(crate) fn code_names(&self) -> Vec<String> {
        let special = (0..self.n_special).map(|number| format!("<special {number}>"));
        special.chain((0..self.n_codes).map(|code| format!("code {code}"))).collect()
    }

    /// The features of one file; of a long sound those of its first 30 seconds.
    pub(crate) fn read(&self, path: &Path) -> Result<ReadFile, SignalError> {
        match &self.organ {
            Organ::Ears(ears) => {
                let mut windows = Windows::over(SoundFile::open(path)?);
                let window = windows.window()?.ok_or_else(|| SignalError::Silent { path: path.to_owned() })?;
                let signal = Signal::new(ears.of(window.samples));
                Ok(ReadFile { signal, warning: windows.source().warning() })
            }
            Organ::Eyes(eyes) => Ok(ReadFile { signal: eyes.read(path)?, warning: None }),
        }
    }

    /// The features of several files, kept together.
    pub(crate) fn read_all(&self, paths: &[PathBuf]) -> Result<Vec<ReadFile>, SignalError> {
        let (mut files, mut found) = (Vec::new(), 0);
        for path in paths {
            let file = self.read(path)?;
            found += file.signal.values().len();
            if found > MOST_NUMBERS {
                return Err(SignalError::TooMany { path: path.clone(), found, most: MOST_NUMBERS });
            }
            files.push(file);
        }
        Ok(files)
    }

    /// The codes of each signal's steps. The first signals that are given decide what the codes are.
    ///
    /// What the first map makes of a signal, larger than the signal itself, is made twice rather than kept.
    pub(crate) fn codes(&self, subject: &Subject, signals: &[&Signal]) -> Result<Vec<Vec<Token>>, SignalError> {
        let book = match self.codebook.get() {
            Some(book) => book,
            None => {
                let mut builder = Codebook::builder(subject.model().d_source(), self.n_codes, SEED)?;
                signals.iter().try_for_each(|signal| Ok::<_, SignalError>(builder.add(&self.steps(subject, signal)?, |_| ())?))?;
                let found = builder.finish(subject.threads())?;
                self.codebook.get_or_init(|| found)
            }
        };
        let special = 0..self.n_special as Token;
        let of = |signal: &&Signal| {
            let codes = book.codes(&self.steps(subject, signal)?)?;
            Ok(special.clone().chain(codes.into_iter().map(|code| code + special.end)).collect())
        };
        signals.iter().map(of).collect()
    }

    /// What each code stands for: of these signals, each with its codes, the `n` steps nearest to its centre, nearest first and in their
    /// order among equals. Codes that none of the signals has are left out; nothing before there are codes.
    pub(crate) fn examples(&self, subject: &Subject, shown: &[(&Signal, &[Token])], n: usize) -> Result<Vec<CodeExamples>, SignalError> {
        let Some(book) = self.codebook.get() else { return Ok(Vec::new()) };
        let centres: Vec<Vec<f32>> = (0..book.n_codes()).filter_map(|code| book.centre(code as u32)).collect();
        let mut nearest: Vec<Vec<(f32, CodeExample)>> = vec![Vec::new(); centres.len()];
        for (sample, (signal, codes)) in shown.iter().enumerate() {
            let rows = self.steps(subject, signal)?;
            for ((step, row), &code) in rows.chunks_exact(book.d()).enumerate().zip(codes.iter().skip(self.n_special)) {
                let Some((place, centre)) =
                    (code as usize).checked_sub(self.n_special).and_then(|place| Some((place, centres.get(place)?)))
                else {
                    continue;
                };
                let distance = row.iter().zip(centre).map(|(value, centre)| (value - centre).powi(2)).sum::<f32>();
                let found = &mut nearest[place];
                let rank = found.partition_point(|(other, _)| *other <= distance);
                if rank < n {
                    found.insert(rank, (distance, CodeExample { sample, step: step + self.n_special }));
                    found.truncate(n);
                }
            }
        }
        let of_code = |(place, found): (usize, Vec<(f32, CodeExample)>)| CodeExamples {
            code: (place + self.n_special) as Token,
            examples: found.into_iter().map(|(_, example)| example).collect(),
        };
        Ok(nearest.into_iter().enumerate().map(of_code).filter(|code| !code.examples.is_empty()).collect())
    }

    /// What a report says of its codes.
    pub(crate) fn report(&self) -> CodesReport {
        let of = if self.hears() { "frames" } else { "patches" };
        CodesReport { of: of.into(), asked: self.n_codes, found: self.codebook.get().map_or(0, Codebook::n_codes), seed: SEED }
    }

    /// What the first map makes of a signal, without steps that are no frames or patches.
    fn steps(&self, subject: &Subject, signal: &Signal) -> Result<Vec<f32>, PretrainedError> {
        let (mut rows, d) = subject.model().sensed(signal)?;
        rows.drain(..self.n_special * d);
        Ok(rows)
    }

    /// The files of a folder that could be sources, by name.
    pub(crate) fn files_in(&self, folder: &Path) -> Result<Vec<PathBuf>, SignalError> {
        let endings = if self.hears() { SOUNDS } else { PICTURES };
        let refused = |source| SignalError::Folder { path: folder.to_owned(), source };
        let is_source = |path: &PathBuf| {
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
            ending.is_some_and(|ending| endings.contains(&ending.as_str()))
        };
        let entries = std::fs::read_dir(folder).map_err(refused)?.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(is_source).collect();
        files.sort();
        if files.is_empty() {
            return Err(SignalError::Nothing { path: folder.to_owned(), endings: endings.join(", ") });
        }
        Ok(files)
    }
}
