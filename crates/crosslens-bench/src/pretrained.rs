//! Every cross-attention matrix of 64 sentence pairs under a pretrained model.

use std::path::PathBuf;
use std::sync::Arc;

use crosslens_analysis::{Fed, Pair, Recordable, SiteKind, Token};
use crosslens_pretrained::{Model, Subject, TokenNames, Wanted};

use crate::protocol::serve;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder that `pretrained_peers.py make` wrote: a model and bench.json.
    folder: PathBuf,
    /// Threads; 0 for one per core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// One step is one teacher-forced pass over all pairs; what is predicted is not asked for.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let other = std::io::Error::other;
    let model = Arc::new(Model::open(&arguments.folder).map_err(other)?);
    let sentences: serde_json::Value = serde_json::from_slice(&std::fs::read(arguments.folder.join("bench.json"))?)?;
    let of = |field: &str| serde_json::from_value::<Vec<Vec<Token>>>(sentences[field].clone());
    let (sources, fed) = (of("source")?, of("target_in")?);
    // What comes after each token does not matter: only what is read does.
    let pairs: Vec<Pair> = sources.into_iter().zip(&fed).map(|(source, fed)| Pair { source, target: fed.clone() }).collect();
    let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
    let subject = Subject::new(model, TokenNames::default(), wanted, arguments.threads).map_err(other)?;
    serve("crosslens", || {
        let recorded = subject.record(&pairs, Fed::Given(&fed)).expect("the benchmark's own sentences are sound");
        f64::from(recorded[0].attention[0].iter().sum::<f32>())
    })
}
