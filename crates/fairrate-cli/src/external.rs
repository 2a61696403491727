//! `fairrate NAME`: runs the program `fairrate-NAME` from PATH, as git and cargo do.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use clap::CommandFactory;

use crate::failure::Failure;

/// Runs it with the remaining words and takes over its exit code.
pub fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    let Some((name, rest)) = words.split_first() else { return Ok(ExitCode::from(2)) };
    let mut program = OsString::from("fairrate-");
    program.push(name);
    let mut command = Command::new(&program);
    command.args(rest);
    // Not `exec`: the standard library's is for Unix alone, and a child gets the terminal's signals as well.
    match command.status() {
        Ok(status) => Ok(status.code().and_then(|c| u8::try_from(c).ok()).map_or(ExitCode::FAILURE, ExitCode::from)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown(&name.to_string_lossy())),
        Err(error) => Err(Failure::io("starting", std::path::Path::new(&program), error)),
    }
}

fn unknown(name: &str) -> Failure {
    let cli = crate::Cli::command();
    let known: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let failure = Failure::unknown_name("command", name, &known);
    match failure {
        Failure::UnknownName { what, name, help } => {
            let help = format!("{help}; a program `fairrate-{name}` in PATH would be run");
            Failure::UnknownName { what, name, help }
        }
        other => other,
    }
}
