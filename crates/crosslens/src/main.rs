//! `crosslens`: trains encoder-decoder networks with attention and shows how they attend.

mod choices;
mod commands;
mod device;
#[cfg(test)]
mod documented;
mod failure;
mod hub;
mod input;
mod interrupt;
mod machine;
mod output;
mod picture;
mod progress;

use std::process::ExitCode;

use clap::Parser;

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
    command: Option<commands::Command>,
    #[command(flatten)]
    demo: commands::demo::Arguments,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        None => commands::demo::run(&arguments.demo),
        Some(mut command) => command.fetch().and_then(|()| command.run()),
    };
    device::tell_trouble();
    done.and_then(|()| output::check_results()).map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
