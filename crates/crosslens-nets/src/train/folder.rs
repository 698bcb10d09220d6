//! The run folder: `run.toml`, `vocab.json`, `metrics.jsonl`, `checkpoint.safetensors`, `model.safetensors`; where components are recorded
//! along training also `timeline.json` and `timeline/*.stats.safetensors`; where the model is made of weights along the way, `kept/`; of a
//! run on text also what [`TextFiles`](crate::text::TextFiles) names.
//!
//! Every file is written under a temporary name, synced and renamed, so that a kill leaves the old one or the new one. Every file read is
//! checked before it is believed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crosslens_analysis::{Existing, StagedFile, Vocabulary, is_temporary_file, replace_file};
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use super::tensors::{TensorFile, bytes_of, tensor_bytes, view};
use super::{Metrics, Moments, RunConfig};
use crate::network::Network;
use crate::text::TextFiles;

/// Largest `run.toml`, `vocab.json` and `metrics.jsonl` that are read.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// Room for a safetensors header beside the numbers expected.
const MAX_HEADER_BYTES: u64 = 16 << 20;
pub(super) const MODEL_FILE: &str = "model.safetensors";
pub(super) const METRICS_FILE: &str = "metrics.jsonl";
pub(super) const TIMELINE_FILE: &str = "timeline.json";
pub(super) const SUMS_FOLDER: &str = "timeline";
pub(super) const SUMS_ENDING: &str = ".stats.safetensors";
pub(super) const CHECKPOINT_FILE: &str = "checkpoint.safetensors";
const CHECKPOINT_FORMAT: &str = "crosslens-checkpoint/1";
pub(super) const KEPT_FOLDER: &str = "kept";
pub(super) const KEPT_ENDING: &str = ".safetensors";
const KEPT_FORMAT: &str = "crosslens-kept/1";
const MODEL_FORMAT: &str = "crosslens-model/1";
/// What a checkpoint calls the configuration of its run, in the words of `run.toml`.
const RUN_FACT: &str = "run";

/// Why a run folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The system says no.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("`{path}` is damaged or not ours: {what}")]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The configuration cannot be read.
    #[error("`{path}`: {message}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What the parser says, with the line.
        message: String,
        /// The unknown key or value, and what could have been meant.
        unknown: Option<Unknown>,
    },
    /// A run cannot begin here: something came into the folder since it was chosen.
    #[error("`{path}` is no longer empty, another run may have begun there")]
    Taken {
        /// The folder.
        path: PathBuf,
    },
}

/// A key or value nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was written.
    pub written: String,
    /// What is known in that place.
    pub known: Vec<String>,
}

/// Both vocabularies, as in `vocab.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vocabularies {
    /// Words of the source.
    pub source: Vocabulary,
    /// Words of the target.
    pub target: Vocabulary,
}

/// Where training stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The weights.
    pub weights: Vec<f32>,
    /// The optimiser's moments and step.
    pub moments: Moments<f32>,
    /// Sum of the training losses since the last evaluation, and how many.
    pub loss_sum: f64,
    /// How many losses are in the sum.
    pub loss_count: u64,
    /// Seconds trained so far.
    pub seconds: f64,
    /// Whether the run has ended, by its steps or early.
    pub finished: bool,
}

/// A folder that holds a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
    /// What becomes of a run in it when another begins there.
    pub(super) existing: Existing,
}

impl RunFolder {
    /// The folder at a path, whether it exists or not. A run that begins in it takes the place of one that is there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), existing: Existing::Replace }
    }

    /// The same, where a run begins only if nothing is there, then too: of several that begin at the same moment one does.
    pub fn free_at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), existing: Existing::Refuse }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a run in it.
    pub fn holds_run(&self) -> bool {
        self.file("run.toml").exists()
    }

    /// Whether it holds a trained model.
    pub fn holds_model(&self) -> bool {
        self.file(MODEL_FILE).exists()
    }

    /// Whether training can go on from a checkpoint.
    pub fn holds_checkpoint(&self) -> bool {
        self.file(CHECKPOINT_FILE).exists()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Keeps the weights after `step` updates for the model that may be made of them.
    pub(crate) fn write_kept(&self, weights: &[f32], step: u64) -> Result<(), FolderError> {
        let path = self.file(KEPT_FOLDER);
        std::fs::create_dir_all(&path).map_err(|source| FolderError::Io { action: "create", path, source })?;
        let bytes = bytes_of(weights);
        let tensors = std::iter::once(("weights", view(Dtype::F32, &[weights.len()], &bytes)));
        self.write_tensors(&kept_name(step), tensors, &[("format", KEPT_FORMAT.to_owned())])
    }

    /// Reads the weights kept after `step` updates.
    pub(crate) fn read_kept(&self, network: &Network, step: u64) -> Result<Vec<f32>, FolderError> {
        let (path, n) = (self.file(&kept_name(step)), network.layout().len());
        let bytes = read_bounded(&path, 4 * n as u64 + MAX_HEADER_BYTES)?;
        TensorFile::parse(path, &bytes, KEPT_FORMAT)?.numbers("weights", &[n])
    }

    /// Removes the weights kept after such updates.
    pub(crate) fn remove_kept(&self, is_unwanted: impl Fn(u64) -> bool) -> Result<(), FolderError> {
        self.remove_numbered(KEPT_FOLDER, KEPT_ENDING, is_unwanted)
    }

    /// Where the course of training is kept.
    pub fn timeline_file(&self) -> PathBuf {
        self.file(TIMELINE_FILE)
    }

    /// Where the sums recorded after `step` updates are kept.
    pub fn sums_file(&self, step: u64) -> PathBuf {
        self.file(SUMS_FOLDER).join(format!("{step:08}{SUMS_ENDING}"))
    }

    /// Makes room for sums along training.
    pub fn create_sums_folder(&self) -> Result<(), FolderError> {
        let path = self.file(SUMS_FOLDER);
        std::fs::create_dir_all(&path).map_err(|source| FolderError::Io { action: "create", path, source })
    }

    /// Removes the sums recorded after such updates.
    pub fn remove_sums(&self, is_unwanted: impl Fn(u64) -> bool) -> Result<(), FolderError> {
        self.remove_numbered(SUMS_FOLDER, SUMS_ENDING, is_unwanted)
    }

    /// Removes files that are named by a number of updates, and what a killed run left beside them.
    fn remove_numbered(&self, folder: &str, ending: &str, is_unwanted: impl Fn(u64) -> bool) -> Result<(), FolderError> {
        self.numbered(folder, ending, is_unwanted).try_for_each(|path| remove(&path))
    }

    /// Files that are named by such a number of updates, and what a killed run left beside them.
    pub(super) fn numbered(&self, folder: &str, ending: &str, is_wanted: impl Fn(u64) -> bool) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(self.file(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(move |path| {
            let Some(name) = path.file_name() else { return false };
            let step = name.to_str().and_then(|name| name.strip_suffix(ending)).and_then(|step| step.parse().ok());
            is_temporary_file(name) || step.is_some_and(&is_wanted)
        })
    }

    /// Removes temporary files of a run that was killed. Only who writes here may do it: to a reader they are those of a run at work.
    pub(super) fn sweep(&self) -> Result<(), FolderError> {
        let io = |source| FolderError::Io { action: "read", path: self.path.clone(), source };
        for entry in std::fs::read_dir(&self.path).map_err(io)? {
            let entry = entry.map_err(io)?;
            if is_temporary_file(&entry.file_name()) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Whether there is nothing in the folder, or no folder; temporary files of a killed run are nothing.
    pub fn is_empty(&self) -> bool {
        let Ok(mut entries) = std::fs::read_dir(&self.path) else { return true };
        entries.all(|entry| entry.is_ok_and(|entry| is_temporary_file(&entry.file_name())))
    }

    /// Writes `run.toml`.
    pub(crate) fn write_config(&self, config: &RunConfig) -> Result<(), FolderError> {
        self.write("run.toml", toml_of(config).as_bytes())
    }

    /// Reads `run.toml`.
    pub fn read_config(&self) -> Result<RunConfig, FolderError> {
        read_config(&self.file("run.toml"))
    }

    /// Reads `vocab.json`.
    pub fn read_vocabularies(&self) -> Result<Vocabularies, FolderError> {
        let path = self.file("vocab.json");
        let text = read_text(&path)?;
        serde_json::from_str(&text).map_err(|error| FolderError::Bad { path, what: error.to_string() })
    }

    /// What a run on text keeps beside its network; `None` for any other. The reason is a sentence with the file's name.
    pub fn read_text(&self) -> Result<Option<TextFiles>, String> {
        if !TextFiles::are_in(&self.path) {
            return Ok(None);
        }
        let words = self.read_vocabularies().map_err(|error| error.to_string())?;
        TextFiles::read(&self.path, &words).map(Some).map_err(|error| error.to_string())
    }

    /// Replaces `metrics.jsonl`.
    pub fn write_metrics(&self, metrics: &[Metrics]) -> Result<(), FolderError> {
        let mut text = Vec::new();
        for line in metrics {
            serde_json::to_writer(&mut text, line).expect("metrics are plain numbers");
            text.push(b'\n');
        }
        self.write(METRICS_FILE, &text)
    }

    /// Adds a line to `metrics.jsonl`, all of it or nothing where the disk is full. A kill can leave half a line;
    /// [`RunFolder::read_metrics`] passes over it.
    pub fn append_metrics(&self, metrics: &Metrics) -> Result<(), FolderError> {
        let path = self.file(METRICS_FILE);
        let mut line = serde_json::to_vec(metrics).expect("metrics are plain numbers");
        line.push(b'\n');
        let append = || {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
            let before = file.metadata()?.len();
            let written = file.write_all(&line).and_then(|()| file.sync_data());
            if written.is_err() {
                file.set_len(before)?;
            }
            written
        };
        append().map_err(|source| FolderError::Io { action: "write", path: path.clone(), source })
    }

    /// Reads the whole lines of `metrics.jsonl`; none if it is not there.
    pub fn read_metrics(&self) -> Result<Vec<Metrics>, FolderError> {
        let path = self.file(METRICS_FILE);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut metrics = Vec::new();
        let text = read_text(&path)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (number, line) in whole.lines().enumerate() {
            let bad = |error: serde_json::Error| FolderError::Bad { path: path.clone(), what: format!("line {}: {error}", number + 1) };
            metrics.push(serde_json::from_str(line).map_err(bad)?);
        }
        Ok(metrics)
    }

    /// Writes `checkpoint.safetensors` of a run that is configured like this. A model of before goes first, once the new
    /// checkpoint lies on the disk: a kill never leaves a model older than the checkpoint, a full disk leaves both.
    pub fn write_checkpoint(&self, config: &RunConfig, network: &Network, progress: &Progress) -> Result<(), FolderError> {
        let staged = self.stage(CHECKPOINT_FILE, &checkpoint_bytes(config, network, progress))?;
        remove(&self.file(MODEL_FILE))?;
        staged.persist().map_err(|source| FolderError::Io { action: "write", path: self.file(CHECKPOINT_FILE), source })
    }

    /// Reads `checkpoint.safetensors` of this network and this run. An older one does not say whose it is, and is taken.
    pub fn read_checkpoint(&self, config: &RunConfig, network: &Network) -> Result<Progress, FolderError> {
        let path = self.file(CHECKPOINT_FILE);
        let n = network.layout().len();
        let bytes = read_bounded(&path, 12 * n as u64 + MAX_HEADER_BYTES)?;
        let file = TensorFile::parse(path, &bytes, CHECKPOINT_FORMAT)?;
        let bits = u64::from_str_radix(file.fact("loss_sum_bits")?, 16).map_err(|_| file.bad("its `loss_sum_bits` is not readable"))?;
        let (loss_sum, seconds): (f64, f64) = (f64::from_bits(bits), file.parsed("seconds")?);
        if !(loss_sum.is_finite() && seconds.is_finite() && seconds >= 0.0) {
            return Err(file.bad("its times or losses are no numbers"));
        }
        let progress = Progress {
            weights: file.numbers("weights", &[n])?,
            moments: Moments { first: file.numbers("first", &[n])?, second: file.numbers("second", &[n])?, steps: file.parsed("step")? },
            loss_sum,
            loss_count: file.parsed("loss_count")?,
            seconds,
            finished: file.parsed("finished")?,
        };
        match file.fact(RUN_FACT).ok().map(|text| parse_config(&self.file(CHECKPOINT_FILE), text)).transpose()? {
            Some(own) if !own.trains_like(config) => Err(file.bad("it belongs to another run than the run.toml beside it")),
            _ => Ok(progress),
        }
    }

    /// Writes `model.safetensors`: every parameter by its name, and the rotation of the positions.
    pub fn write_model(&self, network: &Network, weights: &[f32]) -> Result<(), FolderError> {
        let bytes = bytes_of(weights);
        let parameters = network.layout().tensors().iter().map(|tensor| {
            let range = tensor.range();
            (tensor.name.as_str(), view(Dtype::F32, &tensor.shape, &bytes[4 * range.start..4 * range.end]))
        });
        let rotation: Option<Vec<u8>> = network.rotation().map(|rotation| rotation.iter().flat_map(|x| x.to_le_bytes()).collect());
        let d = network.d_input();
        let constants = rotation.iter().map(|bytes| (ROTATION, view(Dtype::F64, &[d, d], bytes)));
        self.write_tensors(MODEL_FILE, parameters.chain(constants), &[("format", MODEL_FORMAT.to_owned())])
    }

    /// Reads `model.safetensors` into this network; returns the weights.
    pub fn read_model(&self, network: &mut Network) -> Result<Vec<f32>, FolderError> {
        let path = self.file(MODEL_FILE);
        let n_constants = network.rotation().map_or(0, <[f64]>::len) as u64;
        let bytes = read_bounded(&path, 4 * network.layout().len() as u64 + 8 * n_constants + MAX_HEADER_BYTES)?;
        let file = TensorFile::parse(path, &bytes, MODEL_FORMAT)?;
        let mut weights = vec![0.0; network.layout().len()];
        for tensor in network.layout().tensors() {
            weights[tensor.range()].copy_from_slice(&file.numbers(&tensor.name, &tensor.shape)?);
        }
        if network.rotation().is_some() {
            let d = network.d_input();
            network.set_rotation(file.numbers_f64(ROTATION, &[d, d])?);
        }
        Ok(weights)
    }

    fn write_tensors<'a>(
        &self,
        name: &str,
        tensors: impl Iterator<Item = (&'a str, TensorView<'a>)>,
        facts: &[(&str, String)],
    ) -> Result<(), FolderError> {
        self.write(name, &tensor_bytes(tensors, facts))
    }

    /// Writes a file that does not take its place yet.
    pub(super) fn stage(&self, name: &str, bytes: &[u8]) -> Result<StagedFile, FolderError> {
        let path = self.file(name);
        StagedFile::write(&path, |file| file.write_all(bytes)).map_err(|source| FolderError::Io { action: "write", path, source })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let path = self.file(name);
        replace_file(&path, |file| file.write_all(bytes)).map_err(|source| FolderError::Io { action: "write", path, source })
    }
}

pub(super) fn toml_of(config: &RunConfig) -> String {
    toml::to_string_pretty(config).expect("a configuration is tables of plain values")
}

/// `checkpoint.safetensors`.
pub(super) fn checkpoint_bytes(config: &RunConfig, network: &Network, progress: &Progress) -> Vec<u8> {
    let vectors = [("weights", &progress.weights), ("first", &progress.moments.first), ("second", &progress.moments.second)];
    let bytes: Vec<(&str, Vec<u8>)> = vectors.iter().map(|(name, vector)| (*name, bytes_of(vector))).collect();
    let views = bytes.iter().map(|(name, bytes)| (*name, view(Dtype::F32, &[network.layout().len()], bytes)));
    let facts = [
        ("format", CHECKPOINT_FORMAT.to_owned()),
        (RUN_FACT, toml_of(config)),
        ("step", progress.moments.steps.to_string()),
        ("loss_sum_bits", format!("{:016x}", progress.loss_sum.to_bits())),
        ("loss_count", progress.loss_count.to_string()),
        ("seconds", progress.seconds.to_string()),
        ("finished", progress.finished.to_string()),
    ];
    tensor_bytes(views, &facts)
}

fn kept_name(step: u64) -> String {
    format!("{KEPT_FOLDER}/{step:08}{KEPT_ENDING}")
}

const ROTATION: &str = "positions.rotation";

/// Reads a configuration from any path.
pub fn read_config(path: &Path) -> Result<RunConfig, FolderError> {
    parse_config(path, &read_text(path)?)
}

/// Parses a configuration; `path` is for messages.
pub fn parse_config(path: &Path, text: &str) -> Result<RunConfig, FolderError> {
    let mut config: RunConfig = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        FolderError::Config {
            path: path.to_owned(),
            message: format!("{place}{}", error.message().lines().next().unwrap_or_default()),
            unknown: Unknown::from_message(error.message()),
        }
    })?;
    // A program resolved this file. An older one wrote nothing of positions where there were none, which no longer means that.
    if config.version.is_some() && !speaks_of_positions(text) {
        config.network.positions = None;
    }
    Ok(config)
}

fn speaks_of_positions(text: &str) -> bool {
    let table = toml::from_str::<toml::Table>(text);
    table.is_ok_and(|table| table.get("network").and_then(|network| network.get("positions")).is_some())
}

impl Unknown {
    /// From messages such as ``unknown field `stepz`, expected one of `steps`, `batch` ``.
    fn from_message(message: &str) -> Option<Self> {
        if !message.starts_with("unknown ") {
            return None;
        }
        let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
        Some(Self { written: quoted.next()?, known: quoted.collect() })
    }
}

pub(super) fn remove(path: &Path) -> Result<(), FolderError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(FolderError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn read_text(path: &Path) -> Result<String, FolderError> {
    let bytes = read_bounded(path, MAX_TEXT_BYTES)?;
    String::from_utf8(bytes).map_err(|_| FolderError::Bad { path: path.to_owned(), what: "it is not UTF-8 text".into() })
}

/// Reads an ordinary file of at most so many bytes. Pipes and devices are refused before they can block or go on for ever.
fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, FolderError> {
    let io = |source| FolderError::Io { action: "read", path: path.to_owned(), source };
    let bad = |what: String| FolderError::Bad { path: path.to_owned(), what };
    let too_long = || bad(format!("it is longer than the {most} bytes expected"));
    let facts = std::fs::metadata(path).map_err(io)?;
    if !facts.is_file() {
        return Err(bad("it is not a file".into()));
    }
    if facts.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}
