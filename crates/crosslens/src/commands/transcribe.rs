use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use crosslens_lab::analysis::Token;
use crosslens_lab::analysis::timing::{Cues, Format, Transcript};
use crosslens_lab::speech::{Listening, SpeechError, Task};
use crosslens_lab::{HeardSoFar, PretrainedModel, SpeechModel, Transcription};
use serde_json::{Value, json};

use super::align::HeadList;
use super::explain_files::{Explaining, Unread};
use super::report::counted;
use crate::device::OnDevice;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::progress::SecondBar;
use crate::{interrupt, output};

/// Writes down what is said in sounds: WAV, FLAC, MP3 or Ogg Vorbis, of any length.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a Whisper of Hugging Face's: config.json, weights and tokenizer.
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The sounds.
    #[arg(value_name = "AUDIO", required = true)]
    audio: Vec<PathBuf>,
    /// Find out when each word was said, by what the model looked at; in subtitles each word then stands alone.
    #[arg(long)]
    words: bool,
    /// With --words: take times from these heads, as `layer.head` separated by commas, instead of those that generation_config.json names.
    /// `crosslens heads MODEL --corpus FILE --emit alignment-heads --monotone` proposes some.
    #[arg(long, value_name = "L.H,…", requires = "words")]
    heads: Option<HeadList>,
    /// The form of what is written.
    #[arg(long, value_name = "json|srt|vtt|tsv|txt", default_value = "txt", value_parser = format)]
    format: Format,
    /// The language spoken, such as `de`. Default: the model listens for it.
    #[arg(long, value_name = "X")]
    language: Option<String>,
    /// What to write: what is said, or its English translation.
    #[arg(long, value_enum, default_value_t)]
    task: TaskName,
    /// Let the model write no timestamps: for those that were trained without.
    #[arg(long)]
    no_timestamps: bool,
    /// Hypotheses that are followed side by side. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    beams: Option<u16>,
    /// Write a file for each sound into this folder, named after it, instead of standard output.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    on: OnDevice,
    #[command(flatten)]
    explaining: Explaining,
    /// One JSON object a sound on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TaskName {
    #[default]
    Transcribe,
    Translate,
}

fn format(name: &str) -> Result<Format, String> {
    name.parse::<Format>().map_err(|error| error.to_string())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = files(arguments)?;
    if !PretrainedModel::is_at(&arguments.model) {
        let message = format!("`{}` holds no model of Hugging Face's: there is no config.json in it", arguments.model.display());
        return Err(Failure::refused(message).hint("a folder with a Whisper: hf download openai/whisper-tiny --local-dir whisper-tiny"));
    }
    interrupt::listen();
    let mut model = SpeechModel::open(&arguments.model, &arguments.on.device())?;
    let heads = arguments.heads.as_ref().map_or(&[][..], |HeadList(heads)| heads);
    if !heads.is_empty() {
        model.align_by(heads)?;
    }
    let followed = model.speech().alignment_heads();
    if arguments.words && !followed.are_named {
        output::note(&format!(
            "generation_config.json names no alignment_heads: times are taken from all {} heads of the upper half of the layers",
            followed.heads.len()
        ));
    }
    let how = Listening {
        language: arguments.language.clone(),
        task: if arguments.task == TaskName::Translate { Task::Translate } else { Task::Transcribe },
        without_timestamps: arguments.no_timestamps,
        words: arguments.words,
        n_beams: arguments.beams.map_or(0, Into::into),
    };
    let mut written: Vec<(PathBuf, Vec<Token>)> = Vec::new();
    let mut unread = Unread::of(arguments.audio.len());
    for (number, audio) in arguments.audio.iter().enumerate() {
        let bar = SecondBar::new(&format!("{} {}/{}", audio.display(), number + 1, arguments.audio.len()));
        let mut told = |heard: HeardSoFar<'_>| {
            bar.set(heard.done_secs, heard.of_secs);
            if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let heard = model.transcribe(audio, &how, &mut told);
        drop(bar);
        let Transcription { transcript, is_whole, error, warning, first_window } = match heard {
            Err(error @ SpeechError::Audio(_)) => {
                unread.add(error.into());
                continue;
            }
            heard => heard?,
        };
        if let Some(warning) = warning {
            output::note(&format!("warning: {warning}"));
        }
        show(arguments, audio, &transcript, files.get(audio).map(PathBuf::as_path))?;
        let until = transcript.segments.last().map_or(0.0, |segment| segment.end);
        let so_far = format!("`{}` is written down to {until:.1} s", audio.display());
        match error {
            Some(error) => unread.add(Failure::from(error).hint(so_far)),
            None if !is_whole => return Err(Failure::refused(format!("stopped: {so_far}"))),
            None => {}
        }
        if arguments.explaining.is_asked() && !first_window.is_empty() {
            written.push((audio.clone(), first_window));
        }
    }
    if unread.is_empty() || !written.is_empty() {
        arguments.explaining.write(&arguments.model, written, heads, arguments.on.device())?;
    }
    unread.finish()
}

/// The file that each sound is written to; none without a folder for them.
fn files(arguments: &Arguments) -> Result<BTreeMap<&PathBuf, PathBuf>, Failure> {
    let Some(folder) = &arguments.output_dir else {
        if arguments.audio.len() > 1 && !arguments.json && matches!(arguments.format, Format::Srt | Format::Vtt | Format::Tsv) {
            let message = format!("{} sounds do not make one file of the form {}", arguments.audio.len(), arguments.format.name());
            return Err(Failure::usage(message).hint("--output-dir DIR"));
        }
        return Ok(BTreeMap::new());
    };
    std::fs::create_dir_all(folder).map_err(|error| Failure::refused(format!("cannot make the folder `{}`: {error}", folder.display())))?;
    let mut files: BTreeMap<&PathBuf, PathBuf> = BTreeMap::new();
    for audio in &arguments.audio {
        let Some(stem) = audio.file_stem() else {
            return Err(Failure::usage(format!("`{}` is no file", audio.display())));
        };
        let mut name = stem.to_owned();
        name.push(format!(".{}", arguments.format.name()));
        let file = folder.join(name);
        if let Some((other, _)) = files.iter().find(|(other, taken)| **other != audio && **taken == file) {
            let message = format!("`{}` and `{}` would both be written to `{}`", other.display(), audio.display(), file.display());
            return Err(Failure::usage(message).hint("one at a time, each with its own --output-dir"));
        }
        files.insert(audio, file);
    }
    Ok(files)
}

fn show(arguments: &Arguments, audio: &Path, transcript: &Transcript, file: Option<&Path>) -> Result<(), Failure> {
    let cues = if arguments.words { Cues::Words } else { Cues::Segments };
    let mut text = Vec::new();
    transcript.write(&mut text, arguments.format, cues).map_err(|error| Failure::of(&error).in_file(audio))?;
    let text = String::from_utf8_lossy(&text);
    if let Some(file) = file {
        output::write_file(file, &text)?;
        output::note(&format!("{}: {}", file.display(), counted(transcript.segments.len(), "segment")));
    }
    if arguments.json {
        let mut line = serde_json::to_value(transcript).unwrap_or(Value::Null);
        line["file"] = json!(audio.display().to_string());
        output::result(&line.to_string());
    } else if file.is_none() && !text.is_empty() {
        output::result(text.trim_end_matches('\n'));
    }
    Ok(())
}
