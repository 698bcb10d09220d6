//! How much memory a long command will need, said before it starts.

use crosslens_lab::analysis::explain::{Memory, Options};
use crosslens_lab::{ImportedModel, ImportedSentences};

use super::report::{amount, counted};
use crate::output;

/// Says what will be needed besides the model.
pub(super) fn state(memory: &Memory, n_sentences: u64) {
    let total = amount(memory.total() as u64);
    let grows = match (memory.sources, memory.pairs) {
        (0, 0) => "hardly more however many there are".to_owned(),
        (0, pairs) => format!("of which {} are the sentences themselves", amount(pairs as u64)),
        (files, _) => format!("of which {} are the files themselves", amount(files as u64)),
    };
    let sentences = counted(n_sentences as usize, "sentence");
    output::note(&format!("{sentences}; besides the model this needs at most {total} of memory, {grows}"));
}

/// Says what explaining a model that was not trained here will need.
pub(super) fn state_for_imported(model: &ImportedModel, sentences: &ImportedSentences, options: &Options) -> Memory {
    let description = model.description();
    let extent = sentences.extent(description);
    let logits = model.logit_bytes(extent.target.steps, options.n_threads);
    let memory = Memory { logits, ..Memory::of(description, &extent, options) };
    state(&memory, sentences.len());
    memory
}
