use std::path::{Path, PathBuf};

use crosslens_analysis::{Recording, RecordingError, is_recording};
use crosslens_nets::Subject;
use crosslens_nets::imported::ImportError;
use crosslens_nets::network::{Engine, Feeding, Network, Outcome};
use crosslens_nets::tasks::{Split, Task, TaskError};
use crosslens_nets::train::{ConfigError, FolderError, RunConfig, RunFolder, Samples, evaluate};

use crate::{Attention, Choices, ImportedModel, PretrainedModelError};

/// Why a model cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder holds no run.
    #[error("`{path}` holds no run: there is no run.toml in it")]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Neither a run nor a recording.
    #[error("`{path}` holds neither a run nor a recording: there is no run.toml and no recording.json in it")]
    Neither {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing is there.
    #[error("there is no `{path}`")]
    Nothing {
        /// Where nothing is.
        path: PathBuf,
    },
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A model of another program that cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A pretrained model that cannot be read.
    #[error(transparent)]
    Pretrained(#[from] PretrainedModelError),
    /// The run has no model yet.
    #[error("`{path}` holds a run without a model or a checkpoint")]
    NoModel {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The configuration makes no sense.
    #[error("`{path}`: {source}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ConfigError,
    },
}

/// What can be explained.
pub enum Opened {
    /// A network trained here, which can be run.
    Model(Box<TrainedModel>),
    /// A model of another program, which can be run too, but has no task to draw sentences from.
    Imported(Box<ImportedModel>),
    /// What was recorded of any model, or dumped.
    Recording(Box<Recording>),
}

impl Opened {
    /// Opens the folder of a run or of a recording, a `.npz` or `.safetensors` file of padded arrays, or a model of another program; of
    /// a pretrained one only attention from the decoder to the encoder is looked at.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, &Choices::default())
    }

    /// The same, a pretrained model as somebody chose.
    pub fn open_with(path: &Path, choices: &Choices) -> Result<Self, OpenError> {
        if RunFolder::at(path).holds_run() {
            return Ok(Self::Model(Box::new(TrainedModel::open(path)?)));
        }
        if ImportedModel::is_at(path) {
            return Ok(Self::Imported(Box::new(ImportedModel::open_with(path, choices, Attention::Cross)?)));
        }
        if !path.exists() {
            return Err(OpenError::Nothing { path: path.to_owned() });
        }
        if path.is_dir() && !is_recording(path) {
            return Err(OpenError::Neither { path: path.to_owned() });
        }
        Ok(Self::Recording(Box::new(Recording::open(path)?)))
    }
}

/// A network trained here, with its weights and its task.
pub struct TrainedModel {
    /// How it was trained.
    pub config: RunConfig,
    /// What it learnt.
    pub task: Box<dyn Task>,
    /// What it is made of.
    pub network: Network,
    /// What it learnt it with.
    pub weights: Vec<f32>,
    /// What of its attention is looked at; only a Transformer's sides ask themselves. Opened with [`Attention::Cross`].
    pub attention: Attention,
}

impl TrainedModel {
    /// Opens a run folder; a run that was stopped before it could save its model is opened at its last checkpoint.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let folder = RunFolder::at(path);
        if !folder.holds_run() {
            return Err(OpenError::NoRun { path: path.to_owned() });
        }
        let config = folder.read_config()?;
        let wrong = |source: ConfigError| OpenError::Config { path: path.join("run.toml"), source };
        config.check().map_err(wrong)?;
        let known = folder.read_text().map_err(|what| wrong(TaskError::Corpus { what }.into()))?;
        let task = config.task.open(known).map_err(|error| wrong(error.into()))?;
        let (source, target) = (task.source_vocabulary(), task.target_vocabulary());
        let vocabularies = folder.read_vocabularies()?;
        if (&vocabularies.source, &vocabularies.target) != (source, target) {
            let what = "its words are not those of the task in run.toml".to_owned();
            return Err(FolderError::Bad { path: path.join("vocab.json"), what }.into());
        }
        let mut network = Network::new(&config.network, source.len(), target.len(), config.seed).map_err(|error| wrong(error.into()))?;
        let weights = if folder.holds_model() {
            folder.read_model(&mut network)?
        } else if folder.holds_checkpoint() {
            folder.read_checkpoint(&config, &network)?.weights
        } else {
            return Err(OpenError::NoModel { path: path.to_owned() });
        };
        Ok(Self { config, task, network, weights, attention: Attention::Cross })
    }

    /// Loss and accuracy on fresh test sentences.
    pub fn evaluate(&self, engine: &mut Engine<f32>, seed: u64, n_samples: usize, feeding: Feeding) -> Outcome {
        let samples = Samples { split: Split::Test, seed, n_samples };
        evaluate(self.task.as_ref(), &self.network, engine, &self.weights, samples, feeding)
    }

    /// The model ready to be recorded, on `n_threads` threads; 0 means one per core.
    pub fn subject(&self, n_threads: usize) -> std::io::Result<Subject> {
        let (source, target) = (self.task.source_vocabulary(), self.task.target_vocabulary());
        let subject = Subject::new(self.network.clone(), self.weights.clone(), source, target, n_threads)?;
        Ok(if self.attention == Attention::Cross { subject.across() } else { subject })
    }
}
