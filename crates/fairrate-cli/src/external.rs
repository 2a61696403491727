//! `fairrate NAME`: runs the program `fairrate-NAME` from PATH, as git and cargo do.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use clap::CommandFactory;

use crate::failure::Failure;

/// Runs it with the remaining words and takes over its exit code.
pub fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    let Some((name, rest)) = words.split_first() else { return Ok(ExitCode::from(2)) };
    // With a separator in it the name would be a path, and PATH would not be looked at.
    if Path::new(name).components().count() != 1 || name.to_string_lossy().contains(std::path::is_separator) {
        return Err(unknown(&name.to_string_lossy()));
    }
    let mut program = OsString::from("fairrate-");
    program.push(name);
    let mut command = Command::new(&program);
    command.args(rest);
    // Not `exec`: the standard library's is for Unix alone, and a child gets the terminal's signals as well.
    match command.status() {
        Ok(status) => Ok(exit_code(status)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown(&name.to_string_lossy())),
        Err(error) => Err(Failure::io("starting", Path::new(&program), error)),
    }
}

/// The program's own code; 128 and the number of the signal that killed it, as shells have it.
fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let of_signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let of_signal = None;
    let code = status.code().or(of_signal).and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
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
