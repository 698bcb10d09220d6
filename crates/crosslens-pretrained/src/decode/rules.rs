//! What a model must and must not write next.

use crosslens_analysis::Token;

use crate::generation::Generation;

/// Changes the log probabilities of the next token after `read`, which begins with the start token; `n_prompt` tokens of it were given and
/// at most `n_tokens` follow them.
pub(crate) fn apply(rules: &Generation, read: &[Token], n_prompt: usize, n_tokens: usize, log_probabilities: &mut [f32]) {
    let mut forbid = |token: Token| {
        if let Some(value) = log_probabilities.get_mut(token as usize) {
            *value = f32::NEG_INFINITY;
        }
    };
    if rules.no_repeat > 0 && read.len() + 1 >= rules.no_repeat {
        let (n, last) = (rules.no_repeat, &read[read.len() + 1 - rules.no_repeat..]);
        read.windows(n).filter(|window| &window[..n - 1] == last).for_each(|window| forbid(window[n - 1]));
    }
    for words in &rules.bad_words {
        let Some((&last, before)) = words.split_last() else { continue };
        if !(before.is_empty() && rules.ends.contains(&last)) && read.ends_with(before) {
            forbid(last);
        }
    }
    if read.len() < rules.min_new.map_or(rules.min_length, |n| n_prompt.saturating_add(n)) {
        rules.ends.iter().for_each(|&end| forbid(end));
    }
    if let Some(first) = rules.forced_first
        && read.len() == 1
    {
        force(&[first], log_probabilities);
    }
    if !rules.forced_last.is_empty() && read.len() + 1 == n_prompt + n_tokens {
        force(&rules.forced_last, log_probabilities);
    }
    let mut forbid = |token: Token| {
        if let Some(value) = log_probabilities.get_mut(token as usize) {
            *value = f32::NEG_INFINITY;
        }
    };
    rules.suppressed.iter().for_each(|&token| forbid(token));
    let first = 1 + usize::from(rules.forced_first.is_some());
    if read.len() == first.max(n_prompt) {
        rules.suppressed_first.iter().for_each(|&token| forbid(token));
    }
    if let Some(timestamps) = &rules.timestamps {
        timestamps.apply(&read[n_prompt.min(read.len())..], log_probabilities);
    }
    if rules.renormalizes {
        let highest = log_probabilities.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if highest.is_finite() {
            let total: f32 = log_probabilities.iter().map(|&value| (value - highest).exp()).sum();
            let whole = highest + total.ln();
            log_probabilities.iter_mut().for_each(|value| *value -= whole);
        }
    }
}

/// Leaves nothing but these tokens.
fn force(tokens: &[Token], log_probabilities: &mut [f32]) {
    log_probabilities.fill(f32::NEG_INFINITY);
    for &token in tokens {
        if let Some(value) = log_probabilities.get_mut(token as usize) {
            *value = 0.0;
        }
    }
}
