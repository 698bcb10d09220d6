//! One file a command.

pub(crate) mod align;
pub(crate) mod attend;
pub(crate) mod caption;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod explain;
mod explain_files;
pub(crate) mod figure;
pub(crate) mod fit;
pub(crate) mod heads;
mod linked;
mod memory;
pub(crate) mod merge;
mod opening;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod serve;
pub(crate) mod train;
pub(crate) mod transcribe;
pub(crate) mod translate;
mod translate_run;

use clap::Subcommand;

use crate::failure::Failure;

/// What the program can do besides its demo.
#[derive(Subcommand)]
pub(crate) enum Command {
    Train(Box<train::Arguments>),
    Eval(eval::Arguments),
    Explain(Box<explain::Arguments>),
    Attend(Box<attend::Arguments>),
    Heads(heads::Arguments),
    Align(align::Arguments),
    Compare(compare::Arguments),
    Translate(translate::Arguments),
    Transcribe(transcribe::Arguments),
    Caption(caption::Arguments),
    Report(report::Arguments),
    Figure(figure::Arguments),
    Serve(serve::Arguments),
    Record(record::Arguments),
    Fit(fit::Arguments),
    Merge(merge::Arguments),
    Reproduce(reproduce::Arguments),
}

impl Command {
    /// Fetches the models that are named, where that is asked for.
    pub(crate) fn fetch(&mut self) -> Result<(), Failure> {
        match self {
            Self::Explain(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Attend(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Heads(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Align(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Translate(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Transcribe(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Caption(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Record(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Fit(arguments) => arguments.hub.fetch(&mut arguments.model),
            Self::Compare(arguments) => {
                arguments.hub.fetch(&mut arguments.before)?;
                arguments.hub.fetch(&mut arguments.after)
            }
            Self::Report(arguments) => arguments.paths.iter_mut().try_for_each(|path| arguments.hub.fetch(path)),
            Self::Serve(arguments) => arguments.paths.iter_mut().try_for_each(|path| arguments.hub.fetch(path)),
            _ => Ok(()),
        }
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Train(arguments) => train::run(arguments),
            Self::Eval(arguments) => eval::run(arguments),
            Self::Explain(arguments) => explain::run(arguments),
            Self::Attend(arguments) => attend::run(arguments),
            Self::Heads(arguments) => heads::run(arguments),
            Self::Compare(arguments) => compare::run(arguments),
            Self::Align(arguments) => align::run(arguments),
            Self::Translate(arguments) => translate::run(arguments),
            Self::Transcribe(arguments) => transcribe::run(arguments),
            Self::Caption(arguments) => caption::run(arguments),
            Self::Report(arguments) => report::run(arguments),
            Self::Figure(arguments) => figure::run(arguments),
            Self::Serve(arguments) => serve::run(arguments),
            Self::Record(arguments) => record::run(arguments),
            Self::Fit(arguments) => fit::run(arguments),
            Self::Merge(arguments) => merge::run(arguments),
            Self::Reproduce(arguments) => reproduce::run(arguments),
        }
    }
}
