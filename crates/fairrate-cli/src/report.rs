//! `fairrate report`: the page of a directory that is already there.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::{compare, output};

/// Writes DIR/report.html anew, of one run or of a comparison.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of `run` or `compare`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Writes it.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let dir = &args.dir;
    let runs = if dir.join("compare.json").exists() {
        compare::load(dir)?
    } else if dir.join("summary.json").exists() {
        let data = output::load(dir, "")?;
        vec![fairrate_report::model::RunData { label: data.cc.clone(), ..data }]
    } else {
        let problem = if dir.exists() { "holds no results" } else { "does not exist" };
        let help = "name a directory that `fairrate run` or `fairrate compare` wrote".to_owned();
        return Err(Failure::Directory { dir: dir.clone(), problem: problem.to_owned(), help });
    };
    output::write_report(dir, runs)?;
    output::print(&format!("{}\n", dir.join("report.html").display()));
    Ok(ExitCode::SUCCESS)
}
