//! `fairrate NAME`: runs the program `fairrate-NAME` that lies beside this one or in PATH, as git and cargo do.

use std::env::consts::EXE_EXTENSION;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::CommandFactory;

use crate::failure::Failure;

/// Commands of `fairrate-kernel`, a single program for all of them.
const OF_KERNEL: [&str; 3] = ["attach", "detach", "status"];

/// The way to the program of `watch` and of `run --watch`.
pub const HOW_TO_WATCH: &str = "`fairrate-watch` is a program of its own, which a release has; in a clone, with Node.js and npm:\n\
                                `cargo install --path crates/fairrate-watch`";

/// Runs the program that the first word names, with the remaining words, and returns its exit code. On Unix it takes
/// the place of this program, with its number: signals to this one are signals to it.
pub fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    let Some((name, rest)) = words.split_first() else { return Ok(ExitCode::from(2)) };
    // A name with a separator would be a path, and PATH would not be searched.
    if Path::new(name).components().count() != 1 || name.to_string_lossy().contains(std::path::is_separator) {
        let name = name.to_string_lossy();
        return Err(unknown(&name, &format!("fairrate-{name}")));
    }
    let of_kernel = OF_KERNEL.iter().any(|&of_kernel| name == of_kernel);
    let mut full_name = OsString::from("fairrate-");
    full_name.push(if of_kernel { "kernel".as_ref() } else { name.as_os_str() });
    let program = program(&full_name);
    let rest = if of_kernel { words } else { rest };
    let mut command = Command::new(&program);
    command.args(rest);
    match take_over(&mut command) {
        Ok(code) => Ok(code),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(unknown(&name.to_string_lossy(), &full_name.to_string_lossy()))
        }
        Err(error) => Err(Failure::io("starting", &program, error)),
    }
}

/// Returns the path of the program `name` if it lies beside this one, otherwise the name alone, to be searched for in
/// PATH.
pub fn program(name: &OsStr) -> PathBuf {
    let beside = std::env::current_exe().map(|this| this.with_file_name(name).with_extension(EXE_EXTENSION));
    beside.ok().filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(name))
}

/// Makes the program take the place of this one.
#[cfg(unix)]
fn take_over(command: &mut Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

/// Runs the program and returns its exit code.
#[cfg(not(unix))]
fn take_over(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn unknown(name: &str, program: &str) -> Failure {
    let cli = crate::Cli::command();
    let known: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let failure = Failure::unknown_name("command", name, &known);
    match failure {
        Failure::UnknownName { what, name, help } => {
            let help = if program == "fairrate-tune" {
                "it comes with the Python package, a release's wheel: `pip install 'fairrate[tune] @ file:///PATH/WHEEL'`"
                    .to_owned()
            } else if program == "fairrate-watch" {
                HOW_TO_WATCH.to_owned()
            } else {
                format!("{help}; a program `{program}` beside this one or in PATH would be run")
            };
            Failure::UnknownName { what, name, help }
        }
        other => other,
    }
}
