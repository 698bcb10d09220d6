//! Weights kept along a run that its model is made of: the best of them, or the average of some.
//!
//! Which evaluations count is decided by their lines of metrics alone, so that a run that was stopped goes on as if it had not been.

use super::{Metrics, TrainingConfig};

/// The evaluation a run's model goes back to: that of the lowest loss where the run stops for want of a lower one, else the last.
fn best(training: &TrainingConfig, metrics: &[Metrics]) -> Option<usize> {
    if training.patience == 0 {
        return metrics.len().checked_sub(1);
    }
    (0..metrics.len()).min_by(|&a, &b| metrics[a].loss.total_cmp(&metrics[b].loss))
}

/// Whether the loss has not fallen for as long as was to be waited.
pub(super) fn is_exhausted(training: &TrainingConfig, metrics: &[Metrics]) -> bool {
    training.patience > 0 && best(training, metrics).is_some_and(|best| metrics.len() - 1 - best >= training.patience as usize)
}

/// The steps whose weights are averaged to the model, in order; none where the model is what training ends with.
pub(super) fn averaged(training: &TrainingConfig, metrics: &[Metrics]) -> Vec<u64> {
    if training.patience == 0 && training.average <= 1 {
        return Vec::new();
    }
    let Some(best) = best(training, metrics) else { return Vec::new() };
    let first = (best + 1).saturating_sub(training.average.max(1) as usize);
    metrics[first..=best].iter().map(|line| line.step).collect()
}

/// The steps whose weights may still be wanted.
pub(super) fn wanted(training: &TrainingConfig, metrics: &[Metrics]) -> Vec<u64> {
    let mut steps = averaged(training, metrics);
    if training.average > 1 {
        let last = steps.last().copied();
        steps.extend(metrics.iter().map(|line| line.step).filter(|&step| last.is_some_and(|last| step > last)));
    }
    steps
}

/// The mean of several weights, added up in `f64`.
pub(super) fn mean(all: &[Vec<f32>]) -> Vec<f32> {
    let share = 1.0 / all.len() as f64;
    (0..all[0].len()).map(|place| (all.iter().map(|weights| f64::from(weights[place])).sum::<f64>() * share) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(losses: &[f64]) -> Vec<Metrics> {
        let line = |(number, &loss): (usize, &f64)| Metrics {
            step: 10 * (number as u64 + 1),
            train_loss: 0.0,
            loss,
            phrase_accuracy: 0.0,
            word_accuracy: 0.0,
            gradient_norm: 0.0,
            learning_rate: 0.0,
            seconds: 0.0,
        };
        losses.iter().enumerate().map(line).collect()
    }

    fn training(patience: u64, average: u64) -> TrainingConfig {
        TrainingConfig { patience, average, ..TrainingConfig::default() }
    }

    #[test]
    fn a_run_waits_as_long_as_it_is_told() {
        let losses = lines(&[5.0, 3.0, 4.0, 3.5]);
        assert!(!is_exhausted(&training(0, 0), &losses) && !is_exhausted(&training(3, 0), &losses));
        assert!(is_exhausted(&training(2, 0), &losses) && !is_exhausted(&training(2, 0), &losses[..3]));
    }

    #[test]
    fn the_best_or_the_last_are_averaged_and_nothing_else_is_kept() {
        let losses = lines(&[5.0, 3.0, 4.0, 3.5]);
        assert!(averaged(&training(0, 0), &losses).is_empty());
        assert_eq!(averaged(&training(0, 3), &losses), [20, 30, 40]);
        assert_eq!(averaged(&training(2, 0), &losses), [20]);
        assert_eq!(averaged(&training(2, 3), &losses), [10, 20]);
        assert_eq!(wanted(&training(2, 3), &losses), [10, 20, 30, 40]);
        assert_eq!(wanted(&training(2, 0), &losses), [20]);
        assert_eq!(wanted(&training(0, 2), &losses), [30, 40]);
        assert_eq!(mean(&[vec![1.0, 2.0], vec![3.0, 6.0]]), [2.0, 4.0]);
    }
}
