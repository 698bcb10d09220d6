//! The project's own commands, run as `cargo xtask <command>`: one command to test everything, the same by hand and in CI.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool speaks on its terminal")]

mod args;
mod cargo;
mod crate_table;
mod direction;
mod golden;
mod licences;
mod metadata;
mod pages;
mod published;
mod python;
mod run;
mod spdx;
mod steps;
mod tools;

use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;

use args::{Command, USAGE};
use metadata::Workspace;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(complaint) => {
            eprintln!("error: {complaint}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };

    execute(command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test(options) => return Ok(run::run(&steps::of_test(options)?)),
        Command::Check => return Ok(run::run(&steps::of_check()?)),
        Command::Golden(programs) => golden::make(&Workspace::load()?.root, &programs)?,
        Command::CratesWrite => crate_table::write(&Workspace::load()?)?,
        Command::CratesCheck => crate_table::check(&Workspace::load()?)?,
        Command::Direction => direction::check(&Workspace::load()?)?,
        Command::Pages => pages::check(&Workspace::load()?.root)?,
        Command::Licences => return licences::check(&Workspace::load()?, false).map(|_| ExitCode::SUCCESS),
        Command::Python(wanted) => return Ok(run::run(&[steps::python(&Rc::new(Workspace::load()?), wanted)])),
        Command::Help => println!("{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}
