//! One exception for each kind of failure. The message names the file or field, the cause and, where there is one, the cure.

use std::any::Any;
use std::error::Error;

use crosslens_lab::analysis::explain::{ExplainError as Explain, SaveError, TotalsError};
use crosslens_lab::analysis::page::PageError;
use crosslens_lab::analysis::{FitError as Fit, MergeError as Merge, Mismatch, RecordingError as Recording, StatsError};
use crosslens_lab::reproduce::ReproduceError as Reproduce;
use crosslens_lab::train::{ConfigError as Config, FolderError, TrainError as Train};
use crosslens_lab::{
    AttendError, FolderTaken, MissingPart, OpenError as Open, PretrainedModelError, RecordRunError, RecordedTrainError, SentenceFileError,
    SentencesError as Unspoken, WriteError,
};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(crosslens, CrosslensError, PyException, "Something Crosslens refuses or cannot do.");
create_exception!(crosslens, OpenError, CrosslensError, "A model or recording that cannot be opened.");
create_exception!(crosslens, FileError, CrosslensError, "A file of Crosslens that is missing, damaged or cannot be written.");
create_exception!(crosslens, ArrayError, CrosslensError, "Arrays that do not fit together.");
create_exception!(crosslens, SentenceError, CrosslensError, "Sentences a model cannot read, or too few of them.");
create_exception!(crosslens, FitError, CrosslensError, "Sums that no components can be fitted from.");
create_exception!(crosslens, MergeError, CrosslensError, "Sums or explanations that do not belong together.");
create_exception!(crosslens, ExplainError, CrosslensError, "An explanation that cannot be had.");
create_exception!(crosslens, ConfigError, CrosslensError, "A configuration or an option that makes no sense.");
create_exception!(crosslens, TrainError, CrosslensError, "Training that failed.");
create_exception!(crosslens, ReproduceError, CrosslensError, "Claims that could not be tested.");

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CrosslensError", py.get_type::<CrosslensError>())?;
    module.add("OpenError", py.get_type::<OpenError>())?;
    module.add("FileError", py.get_type::<FileError>())?;
    module.add("ArrayError", py.get_type::<ArrayError>())?;
    module.add("SentenceError", py.get_type::<SentenceError>())?;
    module.add("FitError", py.get_type::<FitError>())?;
    module.add("MergeError", py.get_type::<MergeError>())?;
    module.add("ExplainError", py.get_type::<ExplainError>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("TrainError", py.get_type::<TrainError>())?;
    module.add("ReproduceError", py.get_type::<ReproduceError>())
}

/// An exception to be raised.
pub(crate) struct Failure(PyErr);

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl Failure {
    pub(crate) fn array(what: impl Into<String>) -> Self {
        Self(ArrayError::new_err(what.into()))
    }

    pub(crate) fn sentence(what: impl Into<String>) -> Self {
        Self(SentenceError::new_err(what.into()))
    }

    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self(ConfigError::new_err(what.into()))
    }

    pub(crate) fn explain(what: impl Into<String>) -> Self {
        Self(ExplainError::new_err(what.into()))
    }

    pub(crate) fn merge(what: impl Into<String>) -> Self {
        Self(MergeError::new_err(what.into()))
    }

    /// A panic that was caught: never the caller's doing.
    pub(crate) fn mistake(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Self(CrosslensError::new_err(format!(
            "a mistake in Crosslens {}, not in what it was given: {}. Please report it to the project, with this message, the call and \
             what stands on standard error",
            env!("CARGO_PKG_VERSION"),
            text.unwrap_or("no reason was given")
        )))
    }

    pub(crate) fn open(what: impl Into<String>) -> Self {
        Self(OpenError::new_err(what.into()))
    }
}

/// An error with its causes, each said once.
fn message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

macro_rules! raised_as {
    ($($error:ty => $exception:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(<$exception>::new_err(message(&error)))
            }
        })+
    };
}

raised_as! {
    Open => OpenError,
    PretrainedModelError => SentenceError,
    Recording => FileError,
    StatsError => FileError,
    SaveError => FileError,
    PageError => FileError,
    FolderError => FileError,
    SentenceFileError => SentenceError,
    Unspoken => SentenceError,
    Fit => FitError,
    Merge => MergeError,
    Mismatch => MergeError,
    TotalsError => MergeError,
    Explain => ExplainError,
    Config => ConfigError,
    MissingPart => ConfigError,
    Reproduce => ReproduceError,
}

impl From<FolderTaken> for Failure {
    fn from(taken: FolderTaken) -> Self {
        let cure = match taken {
            FolderTaken::ByRun { .. } => "another out=, overwrite=True or resume=True",
            _ => "another out=",
        };
        Self::config(format!("{taken}: {cure}"))
    }
}

impl From<AttendError> for Failure {
    fn from(error: AttendError) -> Self {
        match error {
            AttendError::Sums(_) | AttendError::Fit(_) | AttendError::Split(_) | AttendError::NoAttention => Self::explain(message(&error)),
            AttendError::UnknownWord { ref known, .. } if !known.is_empty() => {
                let first = &known[..known.len().min(8)];
                Self::sentence(format!("{}, which begins {}", message(&error), first.join(", ")))
            }
            _ => Self::sentence(message(&error)),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Text { source, .. } => source.into(),
            WriteError::NoEnd => Self::config(format!("{error}: beams, max_tokens and length_penalty search for nothing")),
            error => Self::sentence(message(&error)),
        }
    }
}

impl From<RecordRunError> for Failure {
    fn from(error: RecordRunError) -> Self {
        match error {
            RecordRunError::Recording(error) => error.into(),
            error => Self::explain(message(&error)),
        }
    }
}

impl From<Train> for Failure {
    fn from(error: Train) -> Self {
        match error {
            Train::Config(error) => error.into(),
            Train::Folder(error) => error.into(),
            error => Self(TrainError::new_err(message(&error))),
        }
    }
}

impl From<RecordedTrainError> for Failure {
    fn from(error: RecordedTrainError) -> Self {
        match error {
            RecordedTrainError::Train(error) => error.into(),
            RecordedTrainError::Folder(error) => error.into(),
            error => Self(TrainError::new_err(message(&error))),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(FileError::new_err(message(&error)))
    }
}
