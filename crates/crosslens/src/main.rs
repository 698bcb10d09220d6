//! `crosslens`: trains encoder-decoder networks with attention and shows how they attend.

mod choices;
mod commands;
mod failure;
mod interrupt;
mod machine;
mod output;
mod picture;
mod progress;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Shows how an encoder-decoder network attends, and why.
///
/// Without a command: trains seven small networks, explains them and tells what was found; about two minutes.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Results go to standard output, everything else to standard error. Exit: 0 done, 1 failed or refused, 2 wrong usage."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: commands::demo::Arguments,
}

#[derive(Subcommand)]
enum Command {
    Train(Box<commands::train::Arguments>),
    Eval(commands::eval::Arguments),
    Explain(Box<commands::explain::Arguments>),
    Attend(Box<commands::attend::Arguments>),
    Report(commands::report::Arguments),
    Figure(commands::figure::Arguments),
    Record(commands::record::Arguments),
    Fit(commands::fit::Arguments),
    Merge(commands::merge::Arguments),
    Reproduce(commands::reproduce::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        None => commands::demo::run(&arguments.demo),
        Some(Command::Train(arguments)) => commands::train::run(&arguments),
        Some(Command::Eval(arguments)) => commands::eval::run(&arguments),
        Some(Command::Explain(arguments)) => commands::explain::run(&arguments),
        Some(Command::Attend(arguments)) => commands::attend::run(&arguments),
        Some(Command::Report(arguments)) => commands::report::run(&arguments),
        Some(Command::Figure(arguments)) => commands::figure::run(&arguments),
        Some(Command::Record(arguments)) => commands::record::run(&arguments),
        Some(Command::Fit(arguments)) => commands::fit::run(&arguments),
        Some(Command::Merge(arguments)) => commands::merge::run(&arguments),
        Some(Command::Reproduce(arguments)) => commands::reproduce::run(&arguments),
    };
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
