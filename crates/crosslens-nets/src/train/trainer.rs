//! The loop: batches, updates, evaluations, checkpoints.

use std::time::Instant;

use crosslens_analysis::Token;
use serde::{Deserialize, Serialize};

use super::beginning::Start;
use super::folder::{FolderError, Progress, RunFolder, Vocabularies};
use super::{ConfigError, Moments, RunConfig, kept};
use crate::network::{Engine, Feeding, Network, Outcome, shard_count};
use crate::search::{Search, search};
use crate::tasks::{Preparing, Split, Task, TaskError};
use crate::text::{TextError, TextFiles};

/// One line of `metrics.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Updates made.
    pub step: u64,
    /// Mean cross-entropy of the training batches since the line before.
    pub train_loss: f64,
    /// Free-running cross-entropy on fresh sentences.
    pub loss: f64,
    /// Share of fresh sentences with every step right, free-running.
    pub phrase_accuracy: f64,
    /// Share of their steps right.
    pub word_accuracy: f64,
    /// Norm of the last gradient, L2 included, before clipping.
    pub gradient_norm: f64,
    /// Learning rate of the last update.
    pub learning_rate: f64,
    /// Seconds trained so far.
    pub seconds: f64,
}

/// What happens while a network trains.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training begins, or goes on after `step` updates.
    Started {
        /// Updates already made.
        step: u64,
        /// Updates to make in all.
        steps: u64,
        /// Trained numbers.
        parameters: usize,
        /// The weights to go on from, in the order of the network's layout.
        weights: &'a [f32],
    },
    /// An update was made.
    Updated {
        /// Updates made.
        step: u64,
        /// Updates to make in all.
        steps: u64,
        /// Cross-entropy of the batch.
        loss: f64,
        /// The weights it came to.
        weights: &'a [f32],
    },
    /// Fresh sentences were tried.
    Evaluated(&'a Metrics),
    /// A sentence of text that was not trained on was written, for people to look at.
    Wrote {
        /// What was read.
        source: &'a str,
        /// What it should become.
        target: &'a str,
        /// What it became.
        written: &'a str,
    },
}

/// What an observer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To go on.
    GoOn,
    /// To save and stop.
    Stop,
}

/// Is told what happens and may ask to stop.
pub trait Observer {
    /// Something happened.
    fn observe(&mut self, event: Event<'_>) -> Wish;
}

impl<O: FnMut(Event<'_>) -> Wish> Observer for O {
    fn observe(&mut self, event: Event<'_>) -> Wish {
        self(event)
    }
}

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All steps were made, the accuracy asked for was reached, or the loss has not fallen for as long as was to be waited.
    Finished,
    /// The observer asked to stop; the run can go on.
    Interrupted,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// Why it ended.
    pub ending: Ending,
    /// The last evaluation, if there was one.
    pub metrics: Option<Metrics>,
    /// Updates made.
    pub steps: u64,
    /// Seconds trained, over all sessions.
    pub seconds: f64,
    /// Trained numbers.
    pub parameters: usize,
}

/// Why training failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The files of a run on text cannot be written.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Threads cannot be started.
    #[error("cannot start {n_threads} threads")]
    Threads {
        /// How many were asked for.
        n_threads: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// More updates were made than the run should have.
    #[error("{made} steps are made already, training.steps is {steps}")]
    AlreadyFurther {
        /// Updates in the checkpoint.
        made: u64,
        /// Updates asked for.
        steps: u64,
    },
    /// A batch too large for any memory.
    #[error(
        "training.batch is {batch} sentences of up to {steps} steps and {hidden} units: that is {gigabytes} GB, at most {most} are taken"
    )]
    BatchTooLarge {
        /// Sentences in a batch.
        batch: usize,
        /// Longest source and target together.
        steps: usize,
        /// Units of a state.
        hidden: usize,
        /// What a pass over it would hold, about.
        gigabytes: u64,
        /// The limit.
        most: u64,
    },
    /// A network too large for any memory, with the gradients of a batch.
    #[error(
        "network.hidden is {hidden}: {parameters} parameters, their moments and a gradient for each of the {shards} parts of a batch of \
         {batch} sentences are {gigabytes} GB, at most {most} are taken"
    )]
    NetworkTooLarge {
        /// Units of a state.
        hidden: usize,
        /// Trained numbers.
        parameters: usize,
        /// Parts of a batch, each with a gradient of its own.
        shards: usize,
        /// Sentences in a batch.
        batch: usize,
        /// What training would hold in all, about.
        gigabytes: u64,
        /// The limit.
        most: u64,
    },
    /// The loss, its gradient or a weight is no longer a number.
    #[error("the {what} became {value} at step {step}; the checkpoint of step {kept} is kept")]
    Diverged {
        /// Loss or gradient.
        what: &'static str,
        /// What it was.
        value: f64,
        /// The update it happened in, counted from 1.
        step: u64,
        /// The last good checkpoint.
        kept: u64,
    },
}

/// A run that can be trained: checked configuration, task, network, folder.
pub struct Run {
    config: RunConfig,
    task: Box<dyn Task>,
    network: Network,
    folder: RunFolder,
}

impl Run {
    /// Checks everything before any work; writes nothing.
    pub fn prepare(config: RunConfig, folder: RunFolder) -> Result<Self, ConfigError> {
        Self::prepare_watched(config, folder, &mut |_| ())
    }

    /// The same; `told` hears how far a corpus is read.
    pub fn prepare_watched(config: RunConfig, folder: RunFolder, told: &mut dyn FnMut(Preparing)) -> Result<Self, ConfigError> {
        config.check()?;
        let task = config.task.build_watched(None, told)?;
        Self::with_task(config, task, folder)
    }

    /// The same for a run that has begun: the vocabularies of text are those in its folder.
    pub fn prepare_again(config: RunConfig, folder: RunFolder) -> Result<Self, ConfigError> {
        Self::prepare_again_watched(config, folder, &mut |_| ())
    }

    /// The same; `told` hears how far a corpus is read.
    pub fn prepare_again_watched(config: RunConfig, folder: RunFolder, told: &mut dyn FnMut(Preparing)) -> Result<Self, ConfigError> {
        config.check()?;
        let known = folder.read_text().map_err(|what| ConfigError::Task(TaskError::Corpus { what }))?;
        let task = config.task.build_watched(known, told)?;
        Self::with_task(config, task, folder)
    }

    /// The same with pairs from elsewhere, such as a [`Listed`](crate::tasks::Listed) corpus, instead of those of `config.task`.
    pub fn with_task(config: RunConfig, task: Box<dyn Task>, folder: RunFolder) -> Result<Self, ConfigError> {
        config.check()?;
        let network = Network::new(&config.network, task.source_vocabulary().len(), task.target_vocabulary().len(), config.seed)?;
        let lengths = task.max_lengths();
        network.check_lengths(lengths.source, lengths.target)?;
        Ok(Self { config, task, network, folder })
    }

    /// The network, without weights.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What it learns.
    pub fn task(&self) -> &dyn Task {
        self.task.as_ref()
    }

    /// How.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Where the run is kept.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The same run, to be kept in another folder.
    pub fn in_folder(self, folder: RunFolder) -> Self {
        Self { folder, ..self }
    }

    /// Trains from the start, in a folder of its own.
    pub fn start(&self, n_threads: usize, observer: &mut dyn Observer) -> Result<Trained, TrainError> {
        let engine = self.engine(n_threads)?;
        let vocabularies = Vocabularies { source: self.task.source_vocabulary().clone(), target: self.task.target_vocabulary().clone() };
        let weights = self.network.draw_weights(self.config.seed);
        let moments = Moments::new(weights.len());
        let progress = Progress { weights, moments, loss_sum: 0.0, loss_count: 0, seconds: 0.0, finished: false };
        let text = self.task.text().map(TextFiles::contents).transpose()?.unwrap_or_default();
        let (config, network) = (&self.config, &self.network);
        self.folder.create(&Start { config, words: &vocabularies, network, progress: &progress, text: &text })?;
        self.train(progress, Vec::new(), engine, observer)
    }

    /// Goes on from the folder's checkpoint.
    ///
    /// With more steps than before the run is made longer; it then has a line of metrics at its old end that a run of that length from the
    /// start would not have.
    pub fn resume(&self, n_threads: usize, observer: &mut dyn Observer) -> Result<Trained, TrainError> {
        let engine = self.engine(n_threads)?;
        let mut progress = self.folder.read_checkpoint(&self.config, &self.network)?;
        let (made, steps) = (progress.moments.steps, self.config.training.steps);
        if made > steps {
            return Err(TrainError::AlreadyFurther { made, steps });
        }
        let mut metrics = self.folder.read_metrics()?;
        metrics.retain(|line| line.step <= made);
        self.folder.sweep()?;
        self.folder.write_config(&self.config)?;
        self.folder.write_metrics(&metrics)?;
        progress.finished = made == steps || self.reached(&metrics);
        self.train(progress, metrics, engine, observer)
    }

    /// About how many bytes training holds: a batch, weights, moments and gradients.
    pub fn training_bytes(&self) -> u128 {
        let (batch, lengths) = (self.config.training.batch, self.task.max_lengths());
        let [a_batch, weights] =
            [Network::batch_bytes, Network::weight_bytes].map(|of| of(&self.network, batch, lengths.source, lengths.target));
        a_batch + weights
    }

    fn engine(&self, n_threads: usize) -> Result<Engine<f32>, TrainError> {
        let (batch, hidden, lengths) = (self.config.training.batch, self.config.network.hidden, self.task.max_lengths());
        let steps = lengths.source + lengths.target;
        let bytes = self.network.batch_bytes(batch, lengths.source, lengths.target);
        if bytes > MAX_GIGABYTES << 30 {
            let gigabytes = bytes.div_ceil(1 << 30) as u64;
            return Err(TrainError::BatchTooLarge { batch, steps, hidden, gigabytes, most: MAX_GIGABYTES as u64 });
        }
        let bytes = self.training_bytes();
        if bytes > MAX_GIGABYTES << 30 {
            let (parameters, shards) = (self.network.layout().len(), shard_count(batch));
            let (gigabytes, most) = (bytes.div_ceil(1 << 30) as u64, MAX_GIGABYTES as u64);
            return Err(TrainError::NetworkTooLarge { hidden, parameters, shards, batch, gigabytes, most });
        }
        Engine::new(n_threads).map_err(|source| TrainError::Threads { n_threads, source })
    }

    /// Whether a run is good enough to end, or will not become better.
    fn reached(&self, metrics: &[Metrics]) -> bool {
        let training = &self.config.training;
        metrics.last().is_some_and(|metrics| metrics.phrase_accuracy >= training.stop_at) || kept::is_exhausted(training, metrics)
    }

    fn train(
        &self,
        mut progress: Progress,
        mut metrics: Vec<Metrics>,
        mut engine: Engine<f32>,
        observer: &mut dyn Observer,
    ) -> Result<Trained, TrainError> {
        let training = &self.config.training;
        let parameters = self.network.layout().len();
        let mut kept = progress.moments.steps;
        let mut wish = observer.observe(Event::Started { step: kept, steps: training.steps, parameters, weights: &progress.weights });
        let (before, clock) = (progress.seconds, Instant::now());
        let mut pairs = Vec::with_capacity(training.batch);
        engine.set_label_smoothing(training.label_smoothing);
        while !progress.finished && wish == Wish::GoOn && progress.moments.steps < training.steps {
            let step = progress.moments.steps;
            let learning_rate = training.learning_rate * training.schedule.factor(step, training.warm_up);
            self.task.batch(Split::Train, self.config.seed, step * training.batch as u64, training.batch, &mut pairs);
            let dropout_seed = crate::random::mix(self.config.seed ^ crate::random::mix(step));
            let outcome = engine.differentiate(&self.network, &progress.weights, &pairs, training.feeding_at(step), dropout_seed);
            if !outcome.loss.is_finite() {
                return Err(TrainError::Diverged { what: "loss", value: outcome.loss, step: step + 1, kept });
            }
            let gradient_norm = progress.moments.update(&mut engine, &mut progress.weights, &self.config.optimizer, learning_rate);
            if !gradient_norm.is_finite() {
                return Err(TrainError::Diverged { what: "gradient", value: gradient_norm, step: step + 1, kept });
            }
            progress.loss_sum += outcome.loss;
            progress.loss_count += 1;
            let step = step + 1;
            wish = observer.observe(Event::Updated { step, steps: training.steps, loss: outcome.loss, weights: &progress.weights });

            if step.is_multiple_of(training.evaluate_every) || step == training.steps {
                let outcome = self.evaluate(&mut engine, &progress.weights);
                if !outcome.loss.is_finite() {
                    return Err(TrainError::Diverged { what: "loss", value: outcome.loss, step, kept });
                }
                progress.seconds = before + clock.elapsed().as_secs_f64();
                let line = Metrics {
                    step,
                    train_loss: progress.loss_sum / progress.loss_count.max(1) as f64,
                    loss: outcome.loss,
                    phrase_accuracy: outcome.phrase_accuracy(),
                    word_accuracy: outcome.word_accuracy(),
                    gradient_norm,
                    learning_rate,
                    seconds: progress.seconds,
                };
                (progress.loss_sum, progress.loss_count) = (0.0, 0);
                progress.check_finite(kept)?;
                metrics.push(line);
                progress.finished = step == training.steps || self.reached(&metrics);
                self.keep(&progress.weights, &metrics)?;
                self.folder.append_metrics(&line)?;
                self.folder.write_checkpoint(&self.config, &self.network, &progress)?;
                // Only now: a run that goes on from the checkpoint before may still want them.
                self.forget(&metrics)?;
                kept = step;
                if observer.observe(Event::Evaluated(&line)) == Wish::Stop || self.show(&engine, &progress.weights, observer) == Wish::Stop
                {
                    wish = Wish::Stop;
                }
            }
        }
        progress.seconds = before + clock.elapsed().as_secs_f64();
        progress.check_finite(kept)?;
        if kept < progress.moments.steps {
            self.folder.write_checkpoint(&self.config, &self.network, &progress)?;
        }
        let mut last = metrics.last().copied();
        let averaged = if progress.finished { kept::averaged(training, &metrics) } else { Vec::new() };
        if averaged.is_empty() {
            self.folder.write_model(&self.network, &progress.weights)?;
        } else {
            let all: Vec<Vec<f32>> = averaged.iter().map(|&step| self.folder.read_kept(&self.network, step)).collect::<Result<_, _>>()?;
            let weights = kept::mean(&all);
            self.folder.write_model(&self.network, &weights)?;
            let outcome = self.evaluate(&mut engine, &weights);
            if let Some(last) = &mut last {
                (last.loss, last.phrase_accuracy, last.word_accuracy) = (outcome.loss, outcome.phrase_accuracy(), outcome.word_accuracy());
            }
        }
        let ending = if progress.finished { Ending::Finished } else { Ending::Interrupted };
        Ok(Trained { ending, metrics: last, steps: progress.moments.steps, seconds: progress.seconds, parameters })
    }

    fn evaluate(&self, engine: &mut Engine<f32>, weights: &[f32]) -> Outcome {
        let training = &self.config.training;
        let samples = Samples { split: Split::Test, seed: self.config.seed, n_samples: training.evaluate_samples };
        evaluate(self.task.as_ref(), &self.network, engine, weights, samples, training.evaluate_feeding)
    }

    /// Keeps the weights of the last evaluation if the model may be made of them.
    fn keep(&self, weights: &[f32], metrics: &[Metrics]) -> Result<(), FolderError> {
        let wanted = kept::wanted(&self.config.training, metrics);
        match metrics.last().filter(|last| wanted.contains(&last.step)) {
            Some(last) => self.folder.write_kept(weights, last.step),
            None => Ok(()),
        }
    }

    /// Removes the weights that the model can no longer be made of.
    fn forget(&self, metrics: &[Metrics]) -> Result<(), FolderError> {
        let wanted = kept::wanted(&self.config.training, metrics);
        if wanted.is_empty() { Ok(()) } else { self.folder.remove_kept(|step| !wanted.contains(&step)) }
    }

    /// Shows a few sentences as they are written now.
    fn show(&self, engine: &Engine<f32>, weights: &[f32], observer: &mut dyn Observer) -> Wish {
        let Some(text) = self.task.text() else { return Wish::GoOn };
        let shown = &text.held_out[..text.held_out.len().min(self.config.training.show as usize)];
        let sources: Vec<Vec<Token>> = (0..shown.len()).map(|index| self.task.pair(Split::Test, 0, index as u64).source).collect();
        let written = search(&self.network, weights, &sources, &Search::greedy(text.codec.end()), engine.threads());
        for ((source, target), written) in shown.iter().zip(written) {
            let written = text.codec.decode(&written[0].tokens);
            if observer.observe(Event::Wrote { source, target, written: &written }) == Wish::Stop {
                return Wish::Stop;
            }
        }
        Wish::GoOn
    }
}

impl Progress {
    /// Weights that are no numbers must not take the place of a good checkpoint.
    fn check_finite(&self, kept: u64) -> Result<(), TrainError> {
        for (what, numbers) in [("weight", &self.weights), ("moment", &self.moments.first), ("moment", &self.moments.second)] {
            if let Some(&value) = numbers.iter().find(|number| !number.is_finite()) {
                return Err(TrainError::Diverged { what, value: f64::from(value), step: self.moments.steps, kept });
            }
        }
        Ok(())
    }
}

/// Most memory a run may take.
const MAX_GIGABYTES: u128 = 16;

/// Sentences to judge a network on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// From which stream.
    pub split: Split,
    /// Of which seed.
    pub seed: u64,
    /// How many.
    pub n_samples: usize,
}

/// Sentences evaluated at a time, so that memory does not grow with their number.
const EVALUATION_BATCH: usize = 256;

/// Loss and accuracy on fresh sentences of a task.
pub fn evaluate(
    task: &dyn Task,
    network: &Network,
    engine: &mut Engine<f32>,
    weights: &[f32],
    samples: Samples,
    feeding: Feeding,
) -> Outcome {
    let mut total = Outcome::default();
    let mut pairs = Vec::with_capacity(EVALUATION_BATCH.min(samples.n_samples));
    let mut first = 0;
    while first < samples.n_samples {
        let n_pairs = EVALUATION_BATCH.min(samples.n_samples - first);
        pairs.clear();
        pairs.extend((first..first + n_pairs).map(|index| task.pair(samples.split, samples.seed, index as u64)));
        total = total.with(&engine.evaluate(network, weights, &pairs, feeding));
        first += n_pairs;
    }
    total
}
