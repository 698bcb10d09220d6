//! Errors as the user sees them: one sentence, its causes, what to do, and the exit code.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use crosslens_lab::analysis::explain::{ExplainError, SaveError, SharesError};
use crosslens_lab::analysis::figure::FigureError;
use crosslens_lab::analysis::page::PageError;
use crosslens_lab::analysis::tsv::TsvError;
use crosslens_lab::analysis::{AttendSaveError, RecordingError, StatsError};
use crosslens_lab::speech::SpeechError;
use crosslens_lab::train::{ConfigError, FolderError, TrainError};
use crosslens_lab::{
    AlignError, AttendError, CaptionError, ListedError, OpenError, PretrainedError, PretrainedModelError, RecordRunError,
    RecordedTrainError, SentenceFileError, SentencesError, ShowError, WriteError,
};
use crosslens_server::{LibraryError, ServerError};

use crate::choices::{listed, near, nearest};
use crate::hub;
use crate::output::note;

/// What most commands take, and how one comes by it.
const A_RUN: &str = "the folder of a run, which `crosslens train one-to-one --arch aed` makes";

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// The run failed or was refused: exit 1.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    /// Wrong usage: exit 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::refused(message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names the file the error comes from.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.message = format!("`{}`: {}", path.display(), self.message);
        self
    }

    /// The same failure with its message put another way.
    pub(crate) fn worded(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    pub(crate) fn of(error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        Self::refused(message)
    }

    /// Prints it and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        self.tell();
        ExitCode::from(self.code)
    }

    /// Prints it, where the work goes on.
    pub(crate) fn tell(&self) {
        note(&format!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            note(&format!("  hint: {hint}"));
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::of(&error)
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let failure = Self::of(&error);
        match error {
            FolderError::Config { unknown: Some(unknown), .. } => {
                let failure = Self { code: 2, ..failure };
                match nearest(&unknown.written, unknown.known.iter().map(String::as_str)) {
                    Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                    None => failure,
                }
            }
            FolderError::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded => {
                    failure.hint("make room on that disk; what was saved before is kept, and --resume goes on from it")
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => failure.hint("a folder you may write to"),
                _ => failure,
            },
            FolderError::Taken { .. } => failure.hint("another --out"),
            _ => failure,
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Config(error) => error.into(),
            TrainError::Folder(error) => error.into(),
            TrainError::Diverged { .. } => Self::of(&error).hint("a new run with a smaller training.learning_rate or optimizer.clip"),
            TrainError::BatchTooLarge { .. } => Self::of(&error).hint("a smaller training.batch"),
            TrainError::NetworkTooLarge { .. } => Self::of(&error)
                .hint("fewer network.hidden or network.layers, or a training.batch of 16: each 16 sentences keep a gradient"),
            TrainError::AlreadyFurther { made, .. } => Self::of(&error).hint(format!("--steps {made} or more")),
            _ => Self::of(&error),
        }
    }
}

impl From<RecordedTrainError> for Failure {
    fn from(error: RecordedTrainError) -> Self {
        match error {
            RecordedTrainError::Train(error) => error.into(),
            RecordedTrainError::Folder(error) => error.into(),
            RecordedTrainError::Sums(error) => error.into(),
            error => Self::of(&error),
        }
    }
}

impl From<PretrainedModelError> for Failure {
    fn from(error: PretrainedModelError) -> Self {
        let failure = Self::of(&error);
        match error {
            PretrainedModelError::Model(PretrainedError::NotAModel { path, .. }) => failure
                .hint(hub::hint(&path).unwrap_or_else(|| "a folder of Hugging Face's with config.json, weights and tokenizer".to_owned())),
            PretrainedModelError::Model(PretrainedError::UnknownToken { .. }) => {
                failure.hint("the tokenizer beside the model has more tokens than it: they do not belong together")
            }
            PretrainedModelError::NoLanguage { side, known, .. } => {
                let field = if side == "source" { "src_lang" } else { "tgt_lang" };
                let known = listed(known.iter().map(String::as_str));
                Self { code: 2, ..failure }.hint(format!("--{side}-language CODE, or `{field}` in tokenizer_config.json, one of {known}"))
            }
            PretrainedModelError::UnknownLanguage { side, code, known, .. } => {
                let near = near(&code, known.iter().map(String::as_str));
                Self { code: 2, ..failure }.hint(format!("--{side}-language CODE; the nearest are {}", listed(near)))
            }
            PretrainedModelError::NoDevice { .. } => Self { code: 2, ..failure }.hint("leave --device out"),
            PretrainedModelError::NoLanguages { .. } => {
                Self { code: 2, ..failure }.hint("leave --source-language and --target-language out")
            }
            _ => failure,
        }
    }
}

impl From<SpeechError> for Failure {
    fn from(error: SpeechError) -> Self {
        match error {
            SpeechError::Model(error) => PretrainedModelError::Model(error).into(),
            SpeechError::NotSpeech { ref folder, .. } => {
                let hint = format!("crosslens translate {} TEXT", folder.display());
                Self::of(&error).hint(hint)
            }
            SpeechError::Language { .. } => Self::of(&error).hint("leave --language out, and the model listens for it"),
            _ => Self::of(&error),
        }
    }
}

impl From<CaptionError> for Failure {
    fn from(error: CaptionError) -> Self {
        match error {
            CaptionError::Model(error) => PretrainedModelError::Model(error).into(),
            CaptionError::Blind { hears: true, .. } => Self::of(&error).hint("`crosslens transcribe` lets it write what it hears"),
            CaptionError::Blind { ref model, .. } => {
                Self::of(&error).hint(format!("crosslens translate {} \"some text\"", model.display()))
            }
            _ => Self::of(&error),
        }
    }
}

impl From<AlignError> for Failure {
    fn from(error: AlignError) -> Self {
        let failure = Self::of(&error);
        match error {
            AlignError::OtherGold { .. } => failure.hint("a line of links for each pair, an empty one where there are none"),
            AlignError::NoSuchHead { .. } => failure.hint("--heads auto, or some of these: a layer and a head, both from 0, as in 1.2"),
            _ => failure,
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Folder(error) => error.into(),
            OpenError::Recording(error) => error.into(),
            OpenError::Pretrained(error) => error.into(),
            OpenError::Import(_) => Self::of(&error).hint("docs/import.md says what a mapping holds and what is made of which tensor"),
            OpenError::Nothing { ref path } => {
                let hint = hub::hint(path).unwrap_or_else(|| format!("{A_RUN}, a recording, or a .npz or .safetensors dump"));
                Self::of(&error).hint(hint)
            }
            OpenError::Neither { .. } | OpenError::NoRun { .. } => Self::of(&error).hint("crosslens train one-to-one --arch aed"),
            OpenError::NoModel { ref path } => {
                let path = path.display();
                let hint = format!("crosslens train {path}/run.toml --out {path} --overwrite, which begins it again");
                Self::of(&error).hint(hint)
            }
            _ => Self::of(&error),
        }
    }
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Self {
        let failure = Self::of(&error);
        match error {
            RecordingError::Exists { .. } => failure.hint("--overwrite, or another -o"),
            RecordingError::Foreign { .. } => failure.hint("another -o"),
            RecordingError::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded => failure.hint("make room on that disk"),
                _ => failure,
            },
            _ => failure,
        }
    }
}

impl From<StatsError> for Failure {
    fn from(error: StatsError) -> Self {
        match error {
            StatsError::File(error) => error.into(),
            _ => Self::of(&error),
        }
    }
}

impl From<SharesError> for Failure {
    fn from(error: SharesError) -> Self {
        match error {
            SharesError::File(error) => error.into(),
            SharesError::Sums(error) => error.into(),
            SharesError::Name { .. } => Self { code: 2, ..Self::of(&error) },
            SharesError::Other { .. } => Self::of(&error).hint("give the --components and options that the parts were explained with"),
            _ => Self::of(&error),
        }
    }
}

impl From<RecordRunError> for Failure {
    fn from(error: RecordRunError) -> Self {
        match error {
            RecordRunError::Recording(error) => error.into(),
            _ => Self::of(&error),
        }
    }
}

impl From<AttendError> for Failure {
    fn from(error: AttendError) -> Self {
        let failure = Self::of(&error);
        match error {
            AttendError::Sums(error) => error.into(),
            AttendError::NoTask => failure.hint("--source TEXT"),
            AttendError::NoSums { reads_files: true } => failure.hint("--corpus DIR, a folder of such files to fit them on in the same go"),
            AttendError::NoSums { reads_files: false } => failure
                .hint("--corpus words.txt, or: crosslens fit MODEL --corpus words.txt -o x.stats.safetensors, then --components that"),
            AttendError::NoAttention => failure.hint("a run of another --arch has some: aed, ao, bahdanau, luong, transformer"),
            AttendError::UnknownWord { word, known, .. } => match nearest(&word, known.iter().map(String::as_str)) {
                Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                None => failure.hint(format!("it knows {}", some_of(&known))),
            },
            _ => failure,
        }
    }
}

impl From<AttendSaveError> for Failure {
    fn from(error: AttendSaveError) -> Self {
        match error {
            AttendSaveError::File(error) => error.into(),
            AttendSaveError::Format { .. } => Self { code: 2, ..Self::of(&error) },
            _ => Self::of(&error),
        }
    }
}

/// The first words of a vocabulary.
fn some_of(words: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = if words.len() > SHOWN { ", …" } else { "" };
    words.iter().take(SHOWN).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ") + more
}

impl From<ExplainError> for Failure {
    fn from(error: ExplainError) -> Self {
        Self::of(&error)
    }
}

impl From<FigureError> for Failure {
    fn from(error: FigureError) -> Self {
        let failure = Self::of(&error);
        match error {
            FigureError::File(error) => error.into(),
            FigureError::NoReport(RecordingError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                failure.hint(format!("{A_RUN}, or a report, which `crosslens explain DIR --geometry --save report.json` writes"))
            }
            FigureError::NoReport(_) | FigureError::NoSamples { .. } => {
                failure.hint("write the report again: crosslens explain DIR --save report.json")
            }
            FigureError::LostSamples { .. } => {
                failure.hint("put it back beside the report, or write both again: crosslens explain DIR --save report.json")
            }
            FigureError::UnknownSite { .. } => failure.hint("--site N, or --site LAYER.HEAD"),
            FigureError::UnknownSample { n_samples, .. } => {
                failure.hint(format!("--sample 0 to {}, or --sample average", n_samples.saturating_sub(1)))
            }
            FigureError::TooLarge { .. } => failure.hint("another --sample, a shorter one"),
            FigureError::TooManySites { .. } => failure.hint("one of them with --site; `atlas` shows many"),
            FigureError::Missing("geometry") => failure.hint("crosslens explain DIR --geometry --save report.json"),
            FigureError::Width(_) => Self { code: 2, ..failure },
            _ => failure,
        }
    }
}

#[cfg(feature = "pictures")]
impl From<crosslens_lab::analysis::figure::pictures::PictureError> for Failure {
    fn from(error: crosslens_lab::analysis::figure::pictures::PictureError) -> Self {
        use crosslens_lab::analysis::figure::pictures::PictureError;
        let failure = Self::of(&error);
        match error {
            PictureError::TooManyDots { .. } => failure.hint("a smaller --dpi or --width, or a .pdf, which has no dots"),
            PictureError::Dpi(_) => Self { code: 2, ..failure },
            _ => failure,
        }
    }
}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Self {
        Self::of(&error)
    }
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::of(&error)
    }
}

impl From<ShowError> for Failure {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::Open(error) => error.into(),
            ShowError::File(error) => error.into(),
            ShowError::Folder(error) => error.into(),
            ShowError::Explain(error) => error.into(),
            ShowError::Sentences(error) => error.into(),
            ShowError::Stats(error) => error.into(),
            ShowError::OtherSums { ref path, ref sums, .. } => {
                let hint = format!("crosslens fit {} --corpus sentences.txt -o {}", path.display(), sums.display());
                Self::of(&error).hint(hint)
            }
            ShowError::NoSentences { ref path } => {
                let hint = format!("crosslens report {} --corpus sentences.txt, one source a line", path.display());
                Self::of(&error).hint(hint)
            }
            ShowError::Nothing { ref path } => {
                let usual = || format!("{A_RUN}, a recording, or a report, which `crosslens explain DIR --save report.json` writes");
                let hint = hub::hint(path).unwrap_or_else(usual);
                Self::of(&error).hint(hint)
            }
            _ => Self::of(&error),
        }
    }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Show(error) => error.into(),
            _ => Self::of(&error),
        }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let failure = Self::of(&error);
        match error {
            ServerError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                failure.hint("another --port; 0 takes a free one")
            }
            ServerError::Listen { source, .. } if source.kind() == ErrorKind::PermissionDenied => failure.hint("a --port from 1024"),
            ServerError::Address { .. } => failure.hint("--host 127.0.0.1 for this machine alone, 0.0.0.0 for others too"),
            _ => failure,
        }
    }
}

impl From<SentencesError> for Failure {
    fn from(error: SentencesError) -> Self {
        let failure = Self::of(&error);
        match error {
            SentencesError::File(ListedError::Lines(TsvError::Line { .. })) => {
                failure.hint("a line is a source, or a source, a tab and a target")
            }
            _ => failure,
        }
    }
}

impl From<SentenceFileError> for Failure {
    fn from(error: SentenceFileError) -> Self {
        match error {
            SentenceFileError::Tsv(error) => error.into(),
            other => Self::of(&other),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let failure = Self::of(&error);
        match error {
            WriteError::NoEnd => failure.hint("crosslens attend RUN --source TEXT, or a network of the task translation or of a corpus"),
            WriteError::NoAttention => failure.hint("leave --replace-unknown out"),
            WriteError::TooLong { .. } => failure.hint("a sentence or a few at a time, each on a line of its own"),
            WriteError::TooMuchAttention { .. } => failure.hint("a smaller --max-tokens, fewer --beams, or shorter lines"),
            _ => failure,
        }
    }
}

impl From<TsvError> for Failure {
    fn from(error: TsvError) -> Self {
        let failure = Self::of(&error);
        match error {
            TsvError::Line { .. } => failure.hint("a line is the source, a tab and the target, words separated by blanks"),
            _ => failure,
        }
    }
}
