use serde::{Deserialize, Serialize};

use super::{OptimizerConfig, Schedule};
use crate::network::{Feeding, NetworkConfig, NetworkError};
use crate::tasks::{CorpusConfig, TaskConfig, TaskError};

/// Everything that decides what a run gives: `run.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Draws the start weights and the training sentences.
    #[serde(default)]
    pub seed: u64,
    /// The program that resolved this file; informative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is learnt.
    pub task: TaskConfig,
    /// What learns it.
    pub network: NetworkConfig,
    /// How.
    #[serde(default)]
    pub training: TrainingConfig,
    /// With which updates.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
}

/// The loop over batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Updates to make.
    pub steps: u64,
    /// Sentences in a batch.
    pub batch: usize,
    /// What the decoder reads while it learns.
    pub feeding: Feeding,
    /// Updates at the start that are forced whatever `feeding` says: free from the first step, some seeds never learn the first word.
    pub forced_steps: u64,
    /// Learning rate before the schedule.
    pub learning_rate: f64,
    /// How it moves.
    pub schedule: Schedule,
    /// Updates over which the learning rate rises from near 0.
    pub warm_up: u64,
    /// Updates between evaluations, each followed by a checkpoint.
    pub evaluate_every: u64,
    /// Fresh sentences in an evaluation.
    pub evaluate_samples: usize,
    /// Free-running phrase accuracy at which the run stops early; above 1 it never does.
    pub stop_at: f64,
    /// What the decoder reads in an evaluation: its own words, or the target's, as text is usually judged while it is learnt.
    #[serde(skip_serializing_if = "is_free")]
    pub evaluate_feeding: Feeding,
    /// Share of the target's probability that is spread over all words.
    #[serde(skip_serializing_if = "is_zero")]
    pub label_smoothing: f64,
    /// Evaluations without a lower loss after which the run stops; the best weights become the model. 0 for never.
    #[serde(skip_serializing_if = "is_never")]
    pub patience: u64,
    /// How many of the last evaluated weights, up to the best where `patience` is set, are averaged to the model; 0 or 1 for none.
    #[serde(skip_serializing_if = "is_never")]
    pub average: u64,
    /// Sentences written at every evaluation, for people to look at; only of text.
    #[serde(skip_serializing_if = "is_never")]
    pub show: u64,
    /// Updates between records of the components along training; 0 for none.
    #[serde(skip_serializing_if = "is_never")]
    pub record_every: u64,
}

fn is_never(every: &u64) -> bool {
    *every == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_free(feeding: &Feeding) -> bool {
    *feeding == Feeding::Free
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch: 128,
            feeding: Feeding::Forced,
            forced_steps: 0,
            learning_rate: 3e-3,
            schedule: Schedule::Constant,
            warm_up: 0,
            evaluate_every: 100,
            evaluate_samples: 500,
            stop_at: 2.0,
            evaluate_feeding: Feeding::Free,
            label_smoothing: 0.0,
            patience: 0,
            average: 0,
            show: 0,
            record_every: 0,
        }
    }
}

impl TrainingConfig {
    /// What the decoder reads in the update after `step` updates.
    pub fn feeding_at(&self, step: u64) -> Feeding {
        if step < self.forced_steps { Feeding::Forced } else { self.feeding }
    }
}

/// Why a configuration cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The task makes no sense.
    #[error("task: {0}")]
    Task(#[from] TaskError),
    /// The network makes no sense.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A number out of its range.
    #[error("{field} is {value}, it must be {range}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
}

/// Largest batch, evaluation and number of updates taken seriously.
const MAX_SENTENCES: usize = 1 << 20;
const MAX_STEPS: u64 = 1 << 40;
const MAX_KEPT: u64 = 1000;

impl RunConfig {
    /// Whether this gives the same weights after the same number of steps; a corpus may lie elsewhere.
    pub(super) fn trains_like(&self, other: &Self) -> bool {
        let decisive = |config: &Self| {
            let TrainingConfig { batch, feeding, forced_steps, learning_rate, schedule, warm_up, label_smoothing, .. } = config.training;
            (batch, feeding, forced_steps, learning_rate, schedule, warm_up, label_smoothing)
        };
        let same_task = match (&self.task, &other.task) {
            (TaskConfig::Corpus(one), TaskConfig::Corpus(another)) => {
                let cut = |corpus: &CorpusConfig| (corpus.units, corpus.vocabulary, corpus.lowercase, corpus.max_words, corpus.held_out);
                cut(one) == cut(another)
            }
            (one, another) => one == another,
        };
        let rest = |config: &Self| (config.seed, config.network.clone(), config.optimizer);
        same_task && rest(self) == rest(other) && decisive(self) == decisive(other)
    }

    /// Says, before any work, whether every number makes sense. The task and the network are checked when they are built.
    pub fn check(&self) -> Result<(), ConfigError> {
        let TrainingConfig { steps, batch, learning_rate, schedule, warm_up, evaluate_every, evaluate_samples, stop_at, .. } =
            self.training;
        let OptimizerConfig { beta1, beta2, epsilon, decay, l2, clip } = self.optimizer;
        let finite_from = |least: f64| move |value: f64| value.is_finite() && value >= least;
        let share = |value: f64| (0.0..1.0).contains(&value);
        let sentences = |value: f64| value >= 1.0 && value <= MAX_SENTENCES as f64;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let require = |field, value: f64, holds: bool, range| {
            if holds { Ok(()) } else { Err(ConfigError::OutOfRange { field, value, range }) }
        };
        require("training.steps", steps as f64, (1..=MAX_STEPS).contains(&steps), "between 1 and 2^40")?;
        require("training.warm_up", warm_up as f64, warm_up <= MAX_STEPS, "at most 2^40")?;
        require("training.batch", batch as f64, sentences(batch as f64), "between 1 and 1048576")?;
        require("training.learning_rate", learning_rate, positive(learning_rate), "a finite number above 0")?;
        require("training.evaluate_every", evaluate_every as f64, evaluate_every >= 1, "at least 1")?;
        require("training.evaluate_samples", evaluate_samples as f64, sentences(evaluate_samples as f64), "between 1 and 1048576")?;
        let TrainingConfig { label_smoothing, average, patience, show, .. } = self.training;
        require("training.label_smoothing", label_smoothing, share(label_smoothing), "at least 0 and below 1")?;
        require("training.average", average as f64, average <= MAX_KEPT, "at most 1000")?;
        require("training.patience", patience as f64, patience <= MAX_KEPT, "at most 1000")?;
        require("training.show", show as f64, show <= MAX_KEPT, "at most 1000")?;
        require("training.stop_at", stop_at, finite_from(0.0)(stop_at), "a finite number of at least 0")?;
        match schedule {
            Schedule::Constant => {}
            Schedule::Exponential { factor } => {
                require("training.schedule.factor", factor, positive(factor) && factor <= 1.0, "above 0 and at most 1")?;
            }
            Schedule::Cosine { end, over } => {
                require("training.schedule.end", end, (0.0..=1.0).contains(&end), "between 0 and 1")?;
                require("training.schedule.over", over as f64, over >= 1, "at least 1")?;
            }
        }
        require("optimizer.beta1", beta1, share(beta1), "at least 0 and below 1")?;
        require("optimizer.beta2", beta2, share(beta2), "at least 0 and below 1")?;
        require("optimizer.epsilon", epsilon, positive(epsilon), "a finite number above 0")?;
        require("optimizer.decay", decay, finite_from(0.0)(decay), "a finite number of at least 0")?;
        require("optimizer.l2", l2, finite_from(0.0)(l2), "a finite number of at least 0")?;
        require("optimizer.clip", clip, finite_from(0.0)(clip), "a finite number of at least 0")?;
        self.network.check()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Family;

    fn config() -> RunConfig {
        let task = TaskConfig::named("one-to-one").expect("a task of that name");
        let network = NetworkConfig::of(Family::Aed);
        RunConfig { seed: 3, version: None, task, network, training: TrainingConfig::default(), optimizer: OptimizerConfig::default() }
    }

    #[test]
    fn a_configuration_survives_its_file() {
        let text = toml::to_string(&config()).expect("a configuration can be written");
        assert_eq!(toml::from_str::<RunConfig>(&text).expect("and read"), config());
    }

    #[test]
    fn the_first_steps_can_be_forced() {
        let training = TrainingConfig { feeding: Feeding::Free, forced_steps: 2, ..TrainingConfig::default() };
        let feedings = [0, 1, 2, 3].map(|step| training.feeding_at(step));
        assert_eq!(feedings, [Feeding::Forced, Feeding::Forced, Feeding::Free, Feeding::Free]);
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        let mut refused = Vec::new();
        for change in [
            |config: &mut RunConfig| config.training.learning_rate = f64::NAN,
            |config: &mut RunConfig| config.training.learning_rate = f64::INFINITY,
            |config: &mut RunConfig| config.training.learning_rate = 0.0,
            |config: &mut RunConfig| config.training.batch = 0,
            |config: &mut RunConfig| config.training.steps = 0,
            |config: &mut RunConfig| config.training.evaluate_every = 0,
            |config: &mut RunConfig| config.training.schedule = Schedule::Cosine { end: -1.0, over: 5 },
            |config: &mut RunConfig| config.optimizer.beta2 = 1.0,
            |config: &mut RunConfig| config.optimizer.epsilon = 0.0,
            |config: &mut RunConfig| config.network.hidden = 0,
        ] {
            let mut config = config();
            change(&mut config);
            refused.push(config.check().expect_err("out of range").to_string());
        }
        assert!(refused[0].starts_with("training.learning_rate is NaN, it must be"), "{}", refused[0]);
        assert!(refused[9].starts_with("network.hidden is 0"), "{}", refused[9]);
        assert_eq!(config().check(), Ok(()));
    }
}
