//! `translate` with a network trained here.

use std::io::BufReader;

use crosslens_lab::{MAX_ATTENTION_BYTES, TrainedModel, Writing, Written, save_attention};
use serde_json::json;

use super::translate::{Arguments, show_blank};
use crate::failure::Failure;
use crate::progress::SentenceBar;
use crate::{input, output};

/// Most lines written at a time, and where all their attention is kept. Fewer where no more have come, so that nobody waits for an answer
/// until others have asked.
const LINES: usize = 2048;
const ATTENDED_LINES: usize = 32;
/// A longer line is no sentence.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Of standard input, what is read at once where so much is there: some thousand lines.
const READ_BYTES: usize = 1 << 20;
/// Attention is kept in memory until all texts are written; no more of it, beside that of the lines at hand.
const MAX_KEPT_BYTES: usize = 4 << 30;

/// The best texts of lines, by the lines' numbers from 0, if their attention is to be kept.
type Kept = Vec<(usize, Written)>;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TrainedModel::open(&arguments.model)?;
    let how = writing(arguments)?;
    let mut kept = Kept::new();
    match arguments.text.as_deref() {
        Some(text) if text.trim().is_empty() => {
            return Err(
                Failure::refused("the text is empty").hint(format!("crosslens translate {} \"some text\"", arguments.model.display()))
            );
        }
        Some(text) if text != "-" => translate_in_parts(&model, &[text.to_owned()], &how, arguments, None, &mut kept)?,
        _ => {
            let stdin = BufReader::with_capacity(READ_BYTES, std::io::stdin().lock());
            let mut input = input::Lines::of(stdin, MAX_LINE_BYTES);
            let at_once = if arguments.attention.is_some() { ATTENDED_LINES } else { LINES };
            let (mut lines, mut first) = (Vec::with_capacity(at_once), 0);
            loop {
                // What stands before a line that cannot be read is answered all the same.
                let (line, failure) = input.next_line().map_or_else(|failure| (None, Some(failure)), |line| (line, None));
                let is_over = line.is_none();
                lines.extend(line.map(|(_, line)| line));
                if is_over || lines.len() == at_once || !input.has_line() {
                    translate_in_parts(&model, &lines, &how, arguments, Some(first), &mut kept)?;
                    first += lines.len();
                    lines.clear();
                }
                match failure {
                    Some(failure) => return Err(failure),
                    None if is_over => break,
                    None => {}
                }
            }
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
        keep_attention: arguments.attention.is_some(),
        n_threads: arguments.threads,
    })
}

/// The same as [`translate`], so many lines at a time that their attention fits into memory.
fn translate_in_parts(
    model: &TrainedModel,
    lines: &[String],
    how: &Writing,
    arguments: &Arguments,
    first: Option<usize>,
    kept: &mut Kept,
) -> Result<(), Failure> {
    let mut n_done = 0;
    while n_done < lines.len() {
        let rest = &lines[n_done..];
        let n_lines = n_fitting(rest.iter().map(|line| model.attention_bytes(line, how)), MAX_ATTENTION_BYTES);
        translate(model, &rest[..n_lines], how, arguments, first.map(|first| first + n_done), kept)?;
        n_done += n_lines;
    }
    Ok(())
}

/// How many of the first sizes, one at least, are together no more than `most`.
fn n_fitting(sizes: impl Iterator<Item = usize>, most: usize) -> usize {
    let mut total = 0_usize;
    let fits = |size: &usize| {
        total = total.saturating_add(*size);
        total <= most
    };
    sizes.take_while(fits).count().max(1)
}

/// Translates lines and shows them in their order; a line without words stays one. `first` is the number of the first line of standard
/// input, from 0; none of a text that was given. Where a line is refused, those before it are shown.
fn translate(
    model: &TrainedModel,
    lines: &[String],
    how: &Writing,
    arguments: &Arguments,
    first: Option<usize>,
    kept: &mut Kept,
) -> Result<(), Failure> {
    let numbers: Vec<usize> = (0..lines.len()).filter(|&number| !lines[number].trim().is_empty()).collect();
    let texts: Vec<String> = numbers.iter().map(|&number| lines[number].clone()).collect();
    let before = first.unwrap_or(0);
    let bar = SentenceBar::new();
    let written = model.translate(&texts, how, &mut |done| bar.set((before + done) as u64, (before + texts.len()) as u64));
    drop(bar);
    let written = match written {
        Ok(written) => written,
        Err(error) => {
            let about = error.about_text();
            let failure = Failure::from(error);
            return Err(match (about, first) {
                (Some((text, reason)), Some(first)) => {
                    translate(model, &lines[..numbers[text]], how, arguments, Some(first), kept)?;
                    failure.worded(format!("{}: {reason}", input::place(first + numbers[text] + 1)))
                }
                (Some((_, reason)), None) => failure.worded(format!("the text: {reason}")),
                (None, _) => failure,
            });
        }
    };
    let mut written = written.into_iter();
    for (number, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            show_blank(arguments, line);
            continue;
        }
        let hypotheses = written.next().expect("one list for each text");
        hypotheses.iter().for_each(|hypothesis| show(arguments, line, hypothesis));
        if arguments.attention.is_some() {
            kept.extend(hypotheses.into_iter().next().map(|best| (before + number, best)));
        }
    }
    let n_bytes: usize = kept.iter().map(|(_, best)| 4 * best.attention.len()).sum();
    if n_bytes > MAX_KEPT_BYTES {
        let message = format!("the attention of {} texts takes {n_bytes} bytes, at most {MAX_KEPT_BYTES} are kept", kept.len());
        return Err(Failure::refused(message).hint("fewer lines at a time"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_written_together_as_fit_and_one_at_least() {
        for (sizes, n_lines) in [(&[3, 3, 3][..], 2), (&[0, 0, 0], 3), (&[7, 1], 1), (&[usize::MAX, usize::MAX], 1), (&[1, usize::MAX], 1)]
        {
            assert_eq!(n_fitting(sizes.iter().copied(), 6), n_lines, "{sizes:?}");
        }
    }
}
