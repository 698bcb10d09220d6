//! `translate` with a network trained here.

use std::io::BufRead;

use crosslens_lab::{TrainedModel, Writing, Written, save_attention};
use serde_json::json;

use super::translate::Arguments;
use crate::failure::Failure;
use crate::output;
use crate::progress::SentenceBar;

/// Lines written at a time.
const LINES: usize = 2048;
/// A longer line is no sentence.
const MAX_LINE_BYTES: usize = 64 << 10;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TrainedModel::open(&arguments.model)?;
    let how = writing(arguments)?;
    let mut kept = Vec::new();
    match arguments.text.as_deref() {
        Some(text) if text.trim().is_empty() => {
            return Err(
                Failure::refused("the text is empty").hint(format!("crosslens translate {} \"some text\"", arguments.model.display()))
            );
        }
        Some(text) if text != "-" => kept.extend(translate(&model, &[text.to_owned()], &how, arguments, 0)?),
        _ => {
            let mut lines = Vec::with_capacity(LINES);
            let mut first = 0;
            for (number, line) in std::io::stdin().lock().lines().enumerate() {
                let place = || format!("standard input, line {}", number + 1);
                let line = line.map_err(|error| Failure::refused(format!("{}: {error}", place())))?;
                if line.len() > MAX_LINE_BYTES {
                    return Err(Failure::refused(format!("{}: it has {} bytes, at most {MAX_LINE_BYTES} are taken", place(), line.len())));
                }
                lines.push(line);
                if lines.len() == LINES {
                    kept.extend(translate(&model, &lines, &how, arguments, first)?);
                    first = number + 1;
                    lines.clear();
                }
            }
            kept.extend(translate(&model, &lines, &how, arguments, first)?);
        }
    }
    if let Some(path) = &arguments.attention {
        save_attention(path, &kept).map_err(|error| Failure::refused(format!("cannot write `{}`: {error}", path.display())))?;
    }
    Ok(())
}

fn writing(arguments: &Arguments) -> Result<Writing, Failure> {
    if arguments.sample || arguments.prefix.is_some() {
        return Err(Failure::usage("--sample and --prefix are for pretrained models").hint("--beams N"));
    }
    let length_penalty = arguments.length_penalty.unwrap_or(1.0);
    if !length_penalty.is_finite() {
        return Err(Failure::usage("--length-penalty is not a finite number"));
    }
    let (beams, n_best) = (usize::from(arguments.beams.unwrap_or(1)), usize::from(arguments.n_best));
    if n_best > beams {
        return Err(Failure::usage(format!("{n_best} texts of {beams} beams were asked for")).hint(format!("--beams {n_best}")));
    }
    Ok(Writing {
        beams,
        n_best,
        length_penalty,
        most_tokens: arguments.max_tokens.map_or(0, usize::from),
        replace_unknown: arguments.replace_unknown,
        n_threads: arguments.threads,
    })
}

/// Translates lines and shows them in their order; a line without words stays one. Returns the best of each if attention is to be kept.
fn translate(model: &TrainedModel, lines: &[String], how: &Writing, arguments: &Arguments, first: usize) -> Result<Vec<Written>, Failure> {
    let texts: Vec<String> = lines.iter().filter(|line| !line.trim().is_empty()).cloned().collect();
    let bar = SentenceBar::new();
    let written = model.translate(&texts, how, &mut |done| bar.set((first + done) as u64, (first + texts.len()) as u64));
    drop(bar);
    let mut written = written?.into_iter();
    let mut kept = Vec::new();
    for line in lines {
        if line.trim().is_empty() {
            output::result("");
            continue;
        }
        let hypotheses = written.next().expect("one list for each text");
        hypotheses.iter().for_each(|hypothesis| show(arguments, line, hypothesis));
        if arguments.attention.is_some() {
            kept.extend(hypotheses.into_iter().next());
        }
    }
    Ok(kept)
}

fn show(arguments: &Arguments, source: &str, written: &Written) {
    let Written { text, tokens, score, log_probability, .. } = written;
    if arguments.json {
        let line = json!({ "source": source, "text": text, "tokens": tokens, "score": score, "log_probability": log_probability });
        output::result(&line.to_string());
    } else if arguments.scores {
        output::result(&format!("{score:.6}\t{text}"));
    } else if arguments.n_best > 1 {
        output::result(&format!("{score:>9.4}  {text}"));
    } else {
        output::result(text);
    }
}
