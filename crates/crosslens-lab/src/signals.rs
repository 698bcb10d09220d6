//! Sounds and pictures as sources: a file becomes the features its model reads, and every step of them a code.
//!
//! Components are means over positions and over tokens. A frame or a patch has no token, so a code stands in for it: the nearest of some
//! centres that k-means finds among what the encoder's first map makes of all sources, before positions are added. Steps that are no
//! patches, such as a class token, have codes of their own.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crosslens_analysis::codes::{Codebook, CodesError, Nearest};
use crosslens_analysis::{Signal, Token};
use crosslens_pretrained::audio::{AudioError, LogMel, SoundFile, Windows};
use crosslens_pretrained::picture::{Picture, PictureError, Processor};
use crosslens_pretrained::{Model, PretrainedError, Subject};

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
    /// The picture cannot be read.
    #[error(transparent)]
    Picture(#[from] PictureError),
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
    codebook: OnceLock<Codebook<Place>>,
}

/// A step of a source, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The source.
    pub source: usize,
    /// Its step.
    pub step: usize,
}

/// What files are read with.
#[derive(Debug)]
pub(crate) enum Organ {
    /// Sounds.
    Ears(Box<LogMel>),
    /// Pictures.
    Eyes(Box<Processor>),
}

impl Senses {
    /// Those of a model; none if it reads tokens.
    pub(crate) fn of(model: &Model, n_codes: usize) -> Result<Option<Self>, PretrainedError> {
        if !model.reads_signals() {
            return Ok(None);
        }
        let (organ, n_special) = match model.grid() {
            Some(grid) => (Organ::Eyes(Box::new(Processor::read(model.folder())?)), grid.special),
            None => (Organ::Ears(Box::new(LogMel::read(model.folder())?)), 0),
        };
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
    pub(crate) fn read(&self, path: &Path) -> Result<Signal, SignalError> {
        match &self.organ {
            Organ::Ears(ears) => {
                let mut windows = Windows::over(SoundFile::open(path)?);
                let window = windows.window()?.ok_or_else(|| SignalError::Silent { path: path.to_owned() })?;
                Ok(Signal::new(ears.of(window.samples)))
            }
            Organ::Eyes(eyes) => Ok(Signal::new(eyes.apply(&Picture::open(path)?)?.values)),
        }
    }

    /// The features of several files, kept together.
    pub(crate) fn read_all(&self, paths: &[PathBuf]) -> Result<Vec<Signal>, SignalError> {
        let (mut signals, mut found) = (Vec::new(), 0);
        for path in paths {
            let signal = self.read(path)?;
            found += signal.values().len();
            if found > MOST_NUMBERS {
                return Err(SignalError::TooMany { path: path.clone(), found, most: MOST_NUMBERS });
            }
            signals.push(signal);
        }
        Ok(signals)
    }

    /// The codes of each signal's steps. The first signals that are given decide what the codes are.
    pub(crate) fn codes(&self, subject: &Subject, signals: &[Signal]) -> Result<Vec<Vec<Token>>, SignalError> {
        let sensed = signals.iter().map(|signal| Ok(self.steps(subject.model().sensed(signal)?)));
        let sensed: Vec<Vec<f32>> = sensed.collect::<Result<_, PretrainedError>>()?;
        let book = match self.codebook.get() {
            Some(book) => book,
            None => {
                let found = self.find(subject, &sensed)?;
                self.codebook.get_or_init(|| found)
            }
        };
        let special = 0..self.n_special as Token;
        let of = |rows: Vec<f32>| Ok(special.clone().chain(book.codes(&rows)?.into_iter().map(|code| code + special.end)).collect());
        sensed.into_iter().map(of).collect()
    }

    /// For each code some steps that it stands for best; nothing before there are codes.
    pub(crate) fn examples(&self, n: usize) -> Vec<Vec<Place>> {
        let Some(book) = self.codebook.get() else { return Vec::new() };
        let shown = |place: &Place| Place { source: place.source, step: place.step + self.n_special };
        let of_code = |nearest: Vec<Nearest<'_, Place>>| nearest.iter().map(|near| shown(near.label)).collect();
        (0..self.n_special).map(|_| Vec::new()).chain(book.nearest(n).into_iter().map(of_code)).collect()
    }

    /// Without those that are no frames or patches.
    fn steps(&self, (mut rows, d): (Vec<f32>, usize)) -> Vec<f32> {
        rows.drain(..self.n_special * d);
        rows
    }

    fn find(&self, subject: &Subject, sensed: &[Vec<f32>]) -> Result<Codebook<Place>, CodesError> {
        let mut builder = Codebook::builder(subject.model().d_source(), self.n_codes, SEED)?;
        for (source, rows) in sensed.iter().enumerate() {
            builder.add(rows, |step| Place { source, step })?;
        }
        builder.finish(subject.threads())
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
