use serde::{Deserialize, Serialize};

/// How the learning rate moves from step to step, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Stays as it is.
    #[default]
    Constant,
    /// Times `factor` every step.
    Exponential {
        /// What is left after one step.
        factor: f64,
    },
    /// Falls along half a cosine to the share `end` over `over` steps, then stays.
    Cosine {
        /// The share of the learning rate left at the end.
        #[serde(default)]
        end: f64,
        /// Steps until then.
        over: u64,
    },
}

impl Schedule {
    /// The factor of the learning rate for the update after `step` updates, the first `warm_up` of which rise linearly.
    ///
    /// ```text
    /// rise        min(1, (step + 1) / (warm_up + 1))
    /// exponential factor^step
    /// cosine      end + (1 − end)·(1 + cos(π·min(step / over, 1))) / 2
    /// ```
    pub fn factor(&self, step: u64, warm_up: u64) -> f64 {
        let rise = ((step + 1) as f64 / (warm_up + 1) as f64).min(1.0);
        let fall = match *self {
            Self::Constant => 1.0,
            Self::Exponential { factor } => factor.powf(step as f64),
            Self::Cosine { end, over } => {
                let progress = (step as f64 / over.max(1) as f64).min(1.0);
                end + (1.0 - end) * (1.0 + (std::f64::consts::PI * progress).cos()) / 2.0
            }
        };
        rise * fall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_follow_their_equations() {
        assert_eq!(Schedule::Constant.factor(7, 0), 1.0);
        assert_eq!(Schedule::Exponential { factor: 0.5 }.factor(3, 0), 0.125);
        let cosine = Schedule::Cosine { end: 0.1, over: 100 };
        assert_eq!(cosine.factor(0, 0), 1.0);
        assert!((cosine.factor(50, 0) - 0.55).abs() < 1e-12);
        assert!((cosine.factor(1000, 0) - 0.1).abs() < 1e-12);
        assert_eq!(Schedule::Constant.factor(0, 3), 0.25);
        assert_eq!(Schedule::Constant.factor(3, 3), 1.0);
    }
}
