//! How a model of speech writes when something was said: tokens for times, in pairs, that never go back.

use crosslens_analysis::Token;
use crosslens_kernels::log_sum_exp;

/// Seconds from a timestamp to the next, and of a step of the encoder.
pub const STEP_SECS: f64 = 0.02;

/// What a model may write next where it writes timestamps.
///
/// ```text
/// written so far          next
/// nothing                 a timestamp, at most `latest_first` steps after 0
/// … text time             the same or a later timestamp, or the end
/// … time time, time       text or the end
/// otherwise               text, or a timestamp later than the last
/// ```
/// and a timestamp wherever all of them together are likelier than the likeliest other token. This is
/// `WhisperTimeStampLogitsProcessor` of transformers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampRule {
    /// Of 0 seconds; the token before it says that there are no timestamps, and all from it on are timestamps.
    pub first: Token,
    /// Ends a text; all tokens before it are text.
    pub end: Token,
    /// Steps from 0 that the first timestamp may be at most.
    pub latest_first: Option<usize>,
}

impl TimestampRule {
    /// Whether a token is a timestamp.
    pub fn is_time(&self, token: Token) -> bool {
        token >= self.first
    }

    /// Seconds of a timestamp.
    pub fn secs(&self, token: Token) -> f64 {
        f64::from(token.saturating_sub(self.first)) * STEP_SECS
    }

    /// Changes the log probabilities of the token after what was `written` behind the prompt.
    pub(crate) fn apply(&self, written: &[Token], log_probabilities: &mut [f32]) {
        let n_words = log_probabilities.len();
        let (first, end) = ((self.first as usize).min(n_words), (self.end as usize).min(n_words));
        let mut forbid =
            |from: usize, to: usize| log_probabilities[from.min(n_words)..to.min(n_words).max(from.min(n_words))].fill(f32::NEG_INFINITY);
        forbid(first.saturating_sub(1), first);
        let is_time = |place: usize| self.is_time(written[written.len() - place]);
        let after_time = !written.is_empty() && is_time(1);
        let before_is_time = written.len() < 2 || is_time(2);
        match (after_time, before_is_time) {
            (true, true) => forbid(first, n_words),
            (true, false) => forbid(0, end),
            (false, _) => {}
        }
        if let Some(&last) = written.iter().rev().find(|&&token| self.is_time(token)) {
            let again = after_time && !before_is_time;
            forbid(first, last as usize + usize::from(!again));
        }
        if written.is_empty() {
            forbid(0, first);
            if let Some(latest) = self.latest_first {
                forbid(first.saturating_add(latest).saturating_add(1), n_words);
            }
        }
        let likeliest = log_probabilities[..first].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut times: Vec<f32> = log_probabilities[first..].iter().copied().filter(|value| *value > f32::NEG_INFINITY).collect();
        if !times.is_empty() && log_sum_exp(&mut times) > likeliest {
            log_probabilities[..first].fill(f32::NEG_INFINITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text 0 and 1, the end 2, no timestamps 3, timestamps 4 to 8.
    const RULE: TimestampRule = TimestampRule { first: 4, end: 2, latest_first: Some(1) };

    /// What may follow, if times are unlikely.
    fn allowed(written: &[Token]) -> Vec<usize> {
        let mut row = [0.0, 0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -9.0, -9.0];
        RULE.apply(written, &mut row);
        (0..row.len()).filter(|&token| row[token] > f32::NEG_INFINITY).collect()
    }

    #[test]
    fn timestamps_come_in_pairs_and_never_go_back() {
        assert_eq!(allowed(&[]), [4, 5], "a timestamp, not too late");
        assert_eq!(allowed(&[5]), [0, 1, 2], "then text or the end");
        assert_eq!(allowed(&[5, 0]), [0, 1, 2, 6, 7, 8], "text goes on, or ends later than it began");
        assert_eq!(allowed(&[5, 0, 6]), [2, 6, 7, 8], "a segment begins where the last ended or later, or all ends");
        assert_eq!(allowed(&[5, 0, 6, 6]), [0, 1, 2]);
        assert_eq!(allowed(&[5, 0, 8, 8, 1]), [0, 1, 2], "no time is left");
    }

    /// Five timestamps of e⁻¹ each are likelier together than one token of 1.
    #[test]
    fn likely_times_outweigh_any_one_token() {
        let mut row = [0.0, -2.0, -2.0, -2.0, -1.0, -1.0, -1.0, -1.0, -1.0];
        RULE.apply(&[4, 0], &mut row);
        assert!(row[..4].iter().all(|value| *value == f32::NEG_INFINITY) && row[5] == -1.0);
    }

    #[test]
    fn numbers_beyond_the_vocabulary_do_no_harm() {
        let rule = TimestampRule { first: 90, end: 80, latest_first: Some(usize::MAX) };
        let mut row = [0.0; 3];
        rule.apply(&[], &mut row);
        rule.apply(&[95, 1, 99], &mut row);
        RULE.apply(&[4, 0, Token::MAX], &mut row);
    }
}
