//! Every cross-attention matrix of 64 sentence pairs, or of one sound and 50 tokens, under a pretrained model.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, Signal, SiteKind, Token};
use crosslens_pretrained::{Model, Subject, TokenNames, Wanted};
use safetensors::SafeTensors;

use crate::protocol::serve;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder that `pretrained_peers.py make` wrote: a model, and bench.json or bench.safetensors.
    folder: PathBuf,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// One step is one teacher-forced pass over all pairs; what is predicted is not asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let model = Arc::new(Model::open(&arguments.folder).map_err(Error::other)?);
    let (pairs, fed, codes) = if model.reads_signals() { sound(&model, &arguments.folder)? } else { sentences(&arguments.folder)? };
    let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
    let names = TokenNames { source: codes, target: Vec::new() };
    let subject = Subject::new(model, names, wanted, arguments.threads).map_err(Error::other)?;
    serve("crosslens", || {
        let recorded = subject.record(&pairs, Fed::Given(&fed)).expect("the benchmark's own sentences are sound");
        f64::from(recorded[0].attention[0].iter().sum::<f32>())
    })
}

/// Pairs, what the decoder is fed for each, and the names of codes.
type Work = (Vec<Pair>, Vec<Vec<Token>>, Vec<String>);

fn sentences(folder: &Path) -> Result<Work> {
    let sentences: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("bench.json"))?)?;
    let of = |field: &str| serde_json::from_value::<Vec<Vec<Token>>>(sentences[field].clone());
    let (sources, fed) = (of("source")?, of("target_in")?);
    // What comes after each token does not matter: only what is read does.
    let pairs = sources.into_iter().zip(&fed).map(|(source, fed)| Pair::new(source, fed.clone())).collect();
    Ok((pairs, fed, Vec::new()))
}

/// One sound; its steps all have the same code, since nothing is explained.
fn sound(model: &Model, folder: &Path) -> Result<Work> {
    let bytes = std::fs::read(folder.join("bench.safetensors"))?;
    let arrays = SafeTensors::deserialize(&bytes).map_err(Error::other)?;
    let (mel, tokens) = (arrays.tensor("mel").map_err(Error::other)?, arrays.tensor("target_in").map_err(Error::other)?);
    let &[1, n_mels, n_frames] = mel.shape() else { return Err(Error::other("`mel` is not [1, mels, frames]")) };
    let by_mel: Vec<f32> = mel.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let by_frame = (0..n_frames).flat_map(|frame| (0..n_mels).map(move |mel| (mel, frame)));
    let signal = Signal::new(by_frame.map(|(mel, frame)| by_mel[mel * n_frames + frame]).collect());
    let fed: Vec<Token> = tokens.data().as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as Token).collect();
    let source = vec![0; model.n_source_steps(&signal).map_err(Error::other)?];
    Ok((vec![Pair { source, target: fed.clone(), signal: Some(signal) }], vec![fed], vec!["sound".into()]))
}
