use std::path::PathBuf;

use crosslens_lab::analysis::Token;
use crosslens_lab::{CaptionError, Captioner, Decoding};
use serde_json::json;

use super::explain_files::{Explaining, Unread};
use crate::device::OnDevice;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output;

/// Lets a model write what it sees in pictures: captions, or the text of a line with TrOCR.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder of Hugging Face's: config.json, weights, tokenizer and preprocessor_config.json.
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// PNG, JPEG or WebP files.
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// Hypotheses that are followed side by side. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    beams: Option<u16>,
    /// Most tokens to write. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_tokens: Option<u16>,
    #[command(flatten)]
    on: OnDevice,
    #[command(flatten)]
    explaining: Explaining,
    /// One JSON object a picture on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let captioner = Captioner::open(&arguments.model, &arguments.on.device())?;
    let mut how = Decoding::of(captioner.model());
    how.rules.n_beams = arguments.beams.map_or(how.rules.n_beams, Into::into);
    how.rules.max_tokens = arguments.max_tokens.map_or(how.rules.max_tokens, Into::into);
    let mut written: Vec<(PathBuf, Vec<Token>)> = Vec::new();
    let mut unread = Unread::of(arguments.images.len());
    for image in &arguments.images {
        let captions = match captioner.caption(image, &how) {
            Err(error @ CaptionError::Sight(_)) => {
                unread.add(error.into());
                continue;
            }
            captions => captions?,
        };
        if let Some(best) = captions.first().filter(|_| arguments.explaining.is_asked()) {
            written.push((image.clone(), best.tokens.clone()));
        }
        for caption in captions {
            let name = image.display();
            if arguments.json {
                let line = json!({ "image": name.to_string(), "text": caption.text, "tokens": caption.tokens, "score": caption.score });
                output::result(&line.to_string());
            } else if arguments.images.len() > 1 {
                output::result(&format!("{name}\t{}", caption.text));
            } else {
                output::result(&caption.text);
            }
        }
    }
    if unread.is_empty() || !written.is_empty() {
        arguments.explaining.write(&arguments.model, written, &[], arguments.on.device())?;
    }
    unread.finish()
}
