//! Models that are named as on the Hugging Face Hub, `owner/name`. Nothing is fetched unless --download asks for it.
//!
//! Fetching is left to `hf`, the Hub's own program. Where Crosslens is built the Hub cannot be reached, so that the transfer itself is
//! untested; what is done before and after it is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crosslens_lab::PretrainedModel;

use crate::failure::Failure;
use crate::output;

/// Fetches a model.
const PROGRAM: &str = "hf";
/// Weights for other programs, which are not read and may be as large as all the rest.
const UNREAD: [&str; 7] = ["*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.tflite", "openvino*"];

// A doc comment here would become the help of every command that takes it.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Hub {
    /// Where MODEL is `owner/name` of the Hugging Face Hub: let `hf download` fetch it into a folder `name` here first. Untested: the Hub
    /// cannot be reached where this is built.
    #[arg(long)]
    download: bool,
}

impl Hub {
    /// Fetches what `model` names, where that is asked for, and lets it name the folder. A folder that is there is taken as it is.
    pub(crate) fn fetch(self, model: &mut PathBuf) -> Result<(), Failure> {
        if !self.download || model.exists() {
            return Ok(());
        }
        let Some((id, name)) = hub_id(model) else {
            let message = format!("`{}` names no model of the Hugging Face Hub", model.display());
            return Err(Failure::usage(message).hint("owner/name --download, or the folder of a model without it"));
        };
        let folder = PathBuf::from(name);
        if folder.exists() {
            if !PretrainedModel::is_at(&folder) {
                let message = format!("`{name}` is there already and holds no model: nothing is fetched into it");
                return Err(Failure::refused(message).hint("another working folder, or remove it"));
            }
            output::note(&format!("`{name}` is there already and is taken for {id}"));
        } else {
            download(id, &folder)?;
        }
        *model = folder;
        Ok(())
    }
}

/// Fetches into a folder beside it first, so that one that is there is whole; what was broken off goes on from there.
fn download(id: &str, folder: &Path) -> Result<(), Failure> {
    let part = folder.with_added_extension("part");
    let cannot = |what: String| Failure::refused(format!("cannot fetch {id}: {what}"));
    output::note(&format!("fetching {id} from the Hugging Face Hub into {}", folder.display()));
    let mut command = Command::new(PROGRAM);
    command.args(["download", id, "--local-dir"]).arg(&part).args(UNREAD.iter().flat_map(|pattern| ["--exclude", pattern]));
    let run = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = run.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            cannot(format!("there is no program `{PROGRAM}`")).hint("pip install huggingface_hub, which brings it; or copy the folder here")
        }
        _ => cannot(format!("`{PROGRAM}` cannot be run: {error}")),
    })?;
    if !status.success() {
        return Err(cannot(format!("`{PROGRAM} download` failed, {status}")).hint("what it said stands above; the same command goes on"));
    }
    if !PretrainedModel::is_at(&part) {
        return Err(cannot(format!("what came, in `{}`, is no model: it has no config.json", part.display())));
    }
    std::fs::rename(&part, folder).map_err(|error| cannot(format!("`{}` cannot be renamed: {error}", part.display())))
}

/// The name of a model on the Hub, and its last part, where a path can be one and is nothing here.
fn hub_id(path: &Path) -> Option<(&str, &str)> {
    let text = path.to_str().filter(|_| !path.exists())?;
    let (owner, name) = text.split_once('/')?;
    let is_word = |word: &str| {
        let is_sign = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        word.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && word.chars().all(is_sign)
    };
    (is_word(owner) && is_word(name) && !Path::new(owner).exists()).then_some((text, name))
}

/// How to come by a model that is named as on the Hub, and is no folder here.
pub(crate) fn hint(path: &Path) -> Option<String> {
    let (id, name) = hub_id(path)?;
    Some(format!(
        "if a model of the Hugging Face Hub is meant, fetch it first: hf download {id} --local-dir {name}, then name `{name}`; \
         --download does both"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hub_are_told_from_paths() {
        let hint = |text: &str| hint(Path::new(text));
        assert!(
            hint("Helsinki-NLP/opus-mt-en-de")
                .is_some_and(|hint| hint.contains("hf download Helsinki-NLP/opus-mt-en-de --local-dir opus-mt-en-de"))
        );
        assert!(hint("google/flan-t5.1_small").is_some());
        for path in ["nowhere", "./a/b", "/a/b", "../b", "a/b/c", "a/", "~/b", "a b/c", "src/nothing-there", "-a/b", "a/-b"] {
            assert_eq!(hint(path), None, "{path}");
        }
    }
}
