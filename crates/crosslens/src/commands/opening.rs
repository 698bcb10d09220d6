//! Options that say how pretrained models are opened and read: where they compute, in which languages, and by how many codes.

use crosslens_lab::{Choices, DEFAULT_CODES, LanguageChoice};

use crate::device::OnDevice;
use crate::failure::Failure;

// How a pretrained model is opened. A doc comment here would become the help of every command that takes them.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Opening {
    /// The language of sources as a multilingual model names it: en_XX (mBART), en (M2M100), eng_Latn (NLLB). Default: what the model's
    /// files say.
    #[arg(long, value_name = "CODE")]
    source_language: Option<String>,
    /// The language of targets.
    #[arg(long, value_name = "CODE")]
    target_language: Option<String>,
    #[command(flatten)]
    on: OnDevice,
}

impl Opening {
    /// For a model that may need them.
    pub(crate) fn choices(&self) -> Choices {
        let languages = LanguageChoice { source: self.source_language.clone(), target: self.target_language.clone() };
        Choices { languages, device: self.on.device(), ..Choices::default() }
    }

    /// For a model of the other direction.
    pub(crate) fn turned(&self) -> Self {
        Self { source_language: self.target_language.clone(), target_language: self.source_language.clone(), ..self.clone() }
    }

    /// Fails if anything is given for a network trained here or a recording.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        self.on.refuse()?;
        if self.source_language.is_none() && self.target_language.is_none() {
            return Ok(());
        }
        let message = "--source-language and --target-language are for multilingual models, such as mBART, M2M100 or NLLB";
        Err(Failure::usage(message).hint("leave them out: this model has no languages to choose from"))
    }
}

// How sources are read, for commands that explain. A doc comment here would become the help of every command that takes it.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Reading {
    #[command(flatten)]
    opening: Opening,
    /// Of models that read sounds or pictures: codes for frames or patches, which have no tokens. Default: 64.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=4096))]
    codes: Option<u16>,
}

impl Reading {
    /// For a model that may need them.
    pub(crate) fn choices(&self) -> Choices {
        Choices { n_codes: self.codes.map_or(DEFAULT_CODES, Into::into), ..self.opening.choices() }
    }

    /// Fails if anything is given for a network trained here or a recording.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        self.opening.refuse()?;
        if self.codes.is_none() {
            return Ok(());
        }
        let message = "--codes is for pretrained models that read sounds or pictures";
        Err(Failure::usage(message).hint("leave it out: the sources here have tokens"))
    }
}
