//! Multilingual tokenizers: which language a text is in is one of its tokens.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::codes;
use super::error::TokenizerError;
use super::files;
use super::settings::Settings;

/// The tokenizers of BART's relatives, which share file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of 25 languages.
    Mbart,
    /// Of 50 languages.
    Mbart50,
    Nllb,
    M2m100,
    Pegasus,
    /// Without languages: of TrOCR's small models.
    XlmRoberta,
}

/// What `config.json` says about the tokenizer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    tokenizer_class: Option<String>,
    model_type: Option<String>,
}

impl Kind {
    /// By the class that the folder's files name, else by the type of its model.
    pub(super) fn of(folder: &Path, settings: &Settings) -> Result<Option<Self>, TokenizerError> {
        let config: Config = files::json_if_there(&folder.join("config.json"))?.unwrap_or_default();
        let classes = [settings.tokenizer_class.as_deref(), config.tokenizer_class.as_deref()];
        let by_class = classes.into_iter().flatten().find_map(|class| match class.trim_end_matches("Fast") {
            "MBartTokenizer" => Some(Self::Mbart),
            "MBart50Tokenizer" => Some(Self::Mbart50),
            "NllbTokenizer" => Some(Self::Nllb),
            "M2M100Tokenizer" => Some(Self::M2m100),
            "PegasusTokenizer" => Some(Self::Pegasus),
            "XLMRobertaTokenizer" => Some(Self::XlmRoberta),
            _ => None,
        });
        Ok(by_class.or_else(|| match config.model_type.as_deref()? {
            "mbart" if settings.names(&codes::MBART_50[..5]) => Some(Self::Mbart50),
            "mbart" => Some(Self::Mbart),
            "m2m_100" if folder.join("vocab.json").exists() => Some(Self::M2m100),
            "m2m_100" => Some(Self::Nllb),
            "pegasus" => Some(Self::Pegasus),
            "vision-encoder-decoder" | "xlm-roberta" => Some(Self::XlmRoberta),
            _ => None,
        }))
    }

    /// Whether a token is a language of this kind.
    pub(super) fn is_language(self, token: &str) -> bool {
        let letters = |text: &str, is_letter: fn(char) -> bool| !text.is_empty() && text.chars().all(is_letter);
        let is_lower = |character: char| character.is_ascii_lowercase();
        let parted = |is_script: fn(&str) -> bool| {
            token.split_once('_').is_some_and(|(language, script)| letters(language, is_lower) && is_script(script))
        };
        match self {
            Self::Mbart | Self::Mbart50 => parted(|place| place.len() == 2 && place.chars().all(|letter| letter.is_ascii_uppercase())),
            Self::Nllb => parted(|script| script.len() == 4 && script.starts_with(|letter: char| letter.is_ascii_uppercase())),
            Self::M2m100 => letters(bare(token), is_lower) && bare(token) != token,
            Self::Pegasus | Self::XlmRoberta => false,
        }
    }

    /// The tokens of languages in their order, where no file numbers them.
    pub(super) fn language_tokens(self, settings: &Settings) -> Vec<String> {
        let owned = |codes: &str| codes.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        match self {
            Self::Mbart => owned(codes::MBART),
            Self::Mbart50 => [owned(codes::MBART), owned(codes::MBART_50)].concat(),
            Self::Nllb => {
                let own: Vec<String> = settings.additional().filter(|token| self.is_language(token)).map(str::to_owned).collect();
                if own.is_empty() { owned(codes::NLLB) } else { own }
            }
            Self::M2m100 => {
                let codes = if settings.language_codes.as_deref() == Some("wmt21") { codes::WMT21 } else { codes::M2M100 };
                codes.split_whitespace().map(|code| format!("__{code}__")).collect()
            }
            Self::Pegasus | Self::XlmRoberta => Vec::new(),
        }
    }

    fn place(self, settings: &Settings) -> Place {
        match self {
            Self::Mbart => Place::Start,
            Self::Nllb if settings.legacy_behaviour == Some(true) => Place::After,
            _ => Place::Before,
        }
    }
}

/// A language as users write it: M2M100's tokens are `__en__`.
fn bare(token: &str) -> &str {
    token.strip_prefix("__").and_then(|token| token.strip_suffix("__")).unwrap_or(token)
}

/// Where the language stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// `lang X </s>` on both sides.
    Before,
    /// `X </s> lang` in a source, `lang X </s>` in a target.
    After,
    /// `X </s> lang` in a source, and a target `X </s>` is written from `lang` as the decoder's start.
    Start,
}

/// What tells a decoder to write in a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It reads this token first, in place of its usual start.
    Start(u32),
    /// It writes this token first.
    First(u32),
}

/// The languages of a multilingual tokenizer.
#[derive(Clone, Debug)]
pub struct Languages {
    folder: PathBuf,
    tokens: Vec<(String, u32)>,
    place: Place,
    end: (String, u32),
    usual: [Option<String>; 2],
    /// Of source and target.
    chosen: Option<[(String, u32); 2]>,
}

impl Languages {
    /// `tokens` in the order of their ids; nothing where there are none.
    pub(super) fn new(folder: &Path, kind: Kind, settings: &Settings, mut tokens: Vec<(String, u32)>, end: (String, u32)) -> Option<Self> {
        tokens.sort_by_key(|(_, id)| *id);
        let usual = [&settings.src_lang, &settings.tgt_lang].map(|code| code.as_ref().map(|code| bare(code).to_owned()));
        let languages = Self { folder: folder.to_owned(), tokens, place: kind.place(settings), end, usual, chosen: None };
        (!languages.tokens.is_empty()).then_some(languages)
    }

    /// How languages are written, such as `en_XX` (mBART), `en` (M2M100) or `eng_Latn` (NLLB).
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|(token, _)| bare(token))
    }

    /// The token of a language.
    pub fn token(&self, code: &str) -> Option<u32> {
        self.find(code).map(|(_, id)| *id)
    }

    /// The language of this token.
    pub fn code(&self, token: u32) -> Option<&str> {
        self.tokens.iter().find(|(_, id)| *id == token).map(|(token, _)| bare(token))
    }

    /// The language of sources, where the folder names one.
    pub fn usual_source(&self) -> Option<&str> {
        self.usual[0].as_deref()
    }

    /// The language of targets, where the folder names one.
    pub fn usual_target(&self) -> Option<&str> {
        self.usual[1].as_deref()
    }

    /// How the decoder is told the language that was chosen.
    pub fn opening(&self) -> Option<Opening> {
        let [_, (_, target)] = self.chosen.as_ref()?;
        Some(if self.place == Place::Start { Opening::Start(*target) } else { Opening::First(*target) })
    }

    fn find(&self, code: &str) -> Option<&(String, u32)> {
        self.tokens.iter().find(|(token, _)| bare(token) == bare(code))
    }

    pub(super) fn choose(&mut self, source: &str, target: &str) -> Result<(), TokenizerError> {
        let find = |code: &str| {
            let unknown =
                || TokenizerError::UnknownLanguage { folder: self.folder.clone(), code: code.to_owned(), n_known: self.tokens.len() };
            self.find(code).cloned().ok_or_else(unknown)
        };
        self.chosen = Some([find(source)?, find(target)?]);
        Ok(())
    }

    /// What stands before and after a source or a target; nothing before languages are chosen.
    pub(super) fn around(&self, is_source: bool) -> Option<[Vec<&(String, u32)>; 2]> {
        let [source, target] = self.chosen.as_ref()?;
        Some(match (self.place, is_source) {
            (Place::Before, true) => [vec![source], vec![&self.end]],
            (Place::After | Place::Start, true) => [vec![], vec![&self.end, source]],
            (Place::Before | Place::After, false) => [vec![target], vec![&self.end]],
            (Place::Start, false) => [vec![], vec![&self.end]],
        })
    }

    pub(super) fn not_chosen(&self) -> TokenizerError {
        TokenizerError::NoLanguage { folder: self.folder.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_from_other_tokens() {
        let all = ["en_XX", "eng_Latn", "__en__", "en", "<mask>", "_", "__", "____", "a_bc", "é_XX"];
        let found = |kind: Kind| all.into_iter().filter(|token| kind.is_language(token)).collect::<Vec<_>>();
        assert_eq!(found(Kind::Mbart), ["en_XX"]);
        assert_eq!(found(Kind::Nllb), ["eng_Latn"]);
        assert_eq!(found(Kind::M2m100), ["__en__"]);
        assert!(found(Kind::Pegasus).is_empty() && found(Kind::XlmRoberta).is_empty());
    }

    #[test]
    fn every_code_is_one_of_its_kind() {
        let settings = Settings::default();
        for (kind, count) in [(Kind::Mbart, 25), (Kind::Mbart50, 52), (Kind::Nllb, 202), (Kind::M2m100, 100)] {
            let mut tokens = kind.language_tokens(&settings);
            assert!(tokens.iter().all(|token| kind.is_language(token)), "{kind:?}");
            tokens.sort();
            tokens.dedup();
            assert_eq!(tokens.len(), count, "{kind:?}");
        }
    }
}
