use std::io::BufRead;
use std::path::PathBuf;

use crosslens_lab::analysis::SiteKind;
use crosslens_lab::train::RunFolder;
use crosslens_lab::{Decoding, EarlyStopping, PretrainedModel, Sampling, Translation};
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// Lets a model write: translate, summarise, or whatever it was trained for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, or one of Hugging Face's: config.json, weights and tokenizer.
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// The text; `-` or nothing for lines from standard input.
    #[arg(value_name = "TEXT")]
    pub(super) text: Option<String>,
    /// Hypotheses that are followed side by side. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) beams: Option<u16>,
    /// Texts for each source, the best first; at most as many as there are beams.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) n_best: u16,
    /// A text's log probability is divided by its length to this power.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(super) length_penalty: Option<f64>,
    /// Most tokens to write. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_tokens: Option<u16>,
    /// Draw tokens by their probability instead of taking the likeliest.
    #[arg(long, conflicts_with_all = ["beams", "n_best"])]
    pub(super) sample: bool,
    /// With --sample: below 1 likelier tokens gain.
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "sample")]
    temperature: f32,
    /// With --sample: draw from so many likeliest tokens; 0 for all.
    #[arg(long, value_name = "K", default_value_t = 0, requires = "sample")]
    top_k: usize,
    /// With --sample: draw from the likeliest tokens that together reach this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0, requires = "sample")]
    top_p: f32,
    /// With --sample: the same seed, the same text.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Let every text begin like this.
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,
    /// Begin each line with its score and a tab. Of a run only.
    #[arg(long, conflicts_with = "json")]
    pub(super) scores: bool,
    /// Replace words without a name by the source word most looked at. Of a run only.
    #[arg(long)]
    pub(super) replace_unknown: bool,
    /// Write the attention of every text into a .safetensors file. Of a run only.
    #[arg(long, value_name = "FILE")]
    pub(super) attention: Option<PathBuf>,
    /// Threads; 0 for one per core. Of a run only.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,
    /// One JSON object a text on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if RunFolder::at(&arguments.model).holds_run() {
        return super::translate_run::run(arguments);
    }
    if arguments.scores || arguments.replace_unknown || arguments.attention.is_some() {
        return Err(Failure::usage("--scores, --replace-unknown and --attention are for networks trained here")
            .hint("--json, or `crosslens attend`"));
    }
    let model = PretrainedModel::open(&arguments.model, &[SiteKind::Cross], 0)?;
    let how = decoding(arguments, &model)?;
    let translate = |text: &str| -> Result<(), Failure> {
        let translations = model.translate(text, &how)?;
        translations.iter().for_each(|translation| show(arguments, text, translation));
        Ok(())
    };
    match arguments.text.as_deref() {
        Some(text) if text.trim().is_empty() => {
            Err(Failure::refused("the text is empty").hint(format!("crosslens translate {} \"some text\"", arguments.model.display())))
        }
        Some(text) if text != "-" => translate(text),
        _ => {
            for (number, line) in std::io::stdin().lock().lines().enumerate() {
                let line = line.map_err(|error| Failure::refused(format!("standard input, line {}: {error}", number + 1)))?;
                translate(&line).map_err(|failure| failure.in_file(format!("standard input, line {}", number + 1).as_ref()))?;
            }
            Ok(())
        }
    }
}

fn decoding(arguments: &Arguments, model: &PretrainedModel) -> Result<Decoding, Failure> {
    let mut how = Decoding::of(model.model());
    if let Some(beams) = arguments.beams {
        how.rules.n_beams = beams.into();
    }
    if arguments.length_penalty.is_some_and(|power| !power.is_finite()) {
        return Err(Failure::usage("--length-penalty is not a finite number"));
    }
    how.rules.length_penalty = arguments.length_penalty.unwrap_or(how.rules.length_penalty);
    how.rules.max_tokens = arguments.max_tokens.map_or(how.rules.max_tokens, Into::into);
    how.n_best = arguments.n_best.into();
    if how.n_best > how.rules.n_beams {
        let message = format!("{} texts of {} beams were asked for", how.n_best, how.rules.n_beams);
        return Err(Failure::usage(message).hint(format!("--beams {}", how.n_best)));
    }
    if arguments.sample {
        if !(arguments.temperature.is_finite() && arguments.temperature > 0.0 && arguments.top_p > 0.0) {
            return Err(Failure::usage("--temperature and --top-p are positive numbers"));
        }
        (how.rules.n_beams, how.rules.early_stopping) = (1, EarlyStopping::No);
        let Arguments { temperature, top_k, top_p, seed, .. } = *arguments;
        how.sampling = Some(Sampling { temperature, top_k, top_p, seed });
    }
    if let Some(prefix) = &arguments.prefix {
        let mut tokens = model.target(prefix)?.ids;
        // What ends a text cannot begin one.
        tokens.retain(|token| !how.rules.ends.contains(token));
        how.prefix = tokens;
    }
    Ok(how)
}

fn show(arguments: &Arguments, source: &str, translation: &Translation) {
    if arguments.json {
        let Translation { text, tokens, score } = translation;
        output::result(&json!({ "source": source, "text": text, "tokens": tokens, "score": score }).to_string());
    } else if arguments.n_best > 1 {
        output::result(&format!("{:>9.4}  {}", translation.score, translation.text));
    } else {
        output::result(&translation.text);
    }
}
