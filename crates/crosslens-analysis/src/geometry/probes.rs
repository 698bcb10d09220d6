//! What a model does when it reads nothing, or one word again and again.

use super::paths::Path;
use crate::{Description, Fed, Pair, Probe, RecordError, Recordable, Side, Token};

/// The path of each stream under no input; `None` where the model cannot be probed.
pub(super) fn null_input(model: &dyn Recordable, n_steps: usize) -> Option<Vec<Path>> {
    let states = model.probe(Probe::Zero, n_steps)?;
    Some(states.iter().zip(&model.description().streams).map(|(states, stream)| Path::of(states, stream.d)).collect())
}

/// By word, the path of each stream over a source of that word alone, with the end token last where there is one.
pub(super) fn constant_words(model: &dyn Recordable, words: &[Token], n_steps: usize) -> Result<Vec<Vec<Path>>, RecordError> {
    let description = model.description();
    let pairs: Vec<Pair> = words.iter().map(|&word| constant(description, word, n_steps)).collect();
    let recorded = model.record(&pairs, Fed::Target)?;
    let path = |states: &[f32], stream: usize| Path::of(states, description.streams[stream].d);
    Ok(recorded.iter().map(|seen| seen.states.iter().enumerate().map(|(stream, states)| path(states, stream)).collect()).collect())
}

fn constant(description: &Description, word: Token, n_steps: usize) -> Pair {
    let mut source = vec![word; n_steps.max(1)];
    if let (Some(end), [_, .., last]) = (description.words(Side::Source).end, source.as_mut_slice()) {
        *last = end;
    }
    // Only the source's states are looked at; a target has one word at least.
    Pair::new(source, vec![description.words(Side::Target).end.unwrap_or(0)])
}
