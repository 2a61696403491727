//! `fairrate completions` and `fairrate man`: completions for shells, and manual pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Arguments of `completions`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Completions {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct Man {
    /// Directory for fairrate.1 and a page a subcommand
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Prints the completions.
pub fn completions(args: Completions, mut command: Command) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "fairrate", &mut text);
    output::print(&String::from_utf8_lossy(&text)).map(|()| ExitCode::SUCCESS)
}

/// Writes the manual pages.
pub fn man(args: &Man, command: Command) -> Result<ExitCode, Failure> {
    let failed = |e: std::io::Error| Failure::io("writing", &args.out, e);
    std::fs::create_dir_all(&args.out).map_err(failed)?;
    clap_mangen::generate_to(command, Path::new(&args.out)).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
