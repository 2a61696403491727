//! `fairrate report`: the page of a directory that is already there.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::{compare, output};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of `run` or `compare`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes it.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let dir = &args.dir;
    if dir.join("compare.json").exists() {
        compare::report(dir)?;
    } else {
        output::write_report(dir, fairrate_report::load::run(dir)?)?;
    }
    output::print_text(&format!("{}\n", dir.join("report.html").display()))?;
    Ok(ExitCode::SUCCESS)
}
