//! `fairrate export`: files for other simulators from scenarios.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use fairrate_control::Registry;
use fairrate_scenario::ns3;

use crate::failure::Failure;
use crate::run::What;
use crate::{new, output};

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    to: To,
}

/// The simulators that files are for.
#[derive(Debug, Subcommand)]
enum To {
    /// The files of HPCC's ns-3 code: config.txt, topology.txt, flow.txt and trace.txt
    ///
    /// Prints what they lack.
    Ns3(Ns3),
}

#[derive(Debug, clap::Args)]
struct Ns3 {
    #[command(flatten)]
    what: What,
    /// Directory to write to, which must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Reads the scenario, and writes its files.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let To::Ns3(args) = &args.to;
    let scenario = args.what.load(registry)?;
    let exported = ns3::export(&scenario).map_err(|(message, help)| Failure::Usage { message, help })?;
    let files: Vec<(&str, &str)> = exported.files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    new::write_dir(&args.out, &files)?;
    let config = args.out.join("config.txt");
    let (flows, lacks) = (scenario.sim_config().flows.len(), exported.left_out.join("\n- "));
    output::print_text(&format!("{}: {flows} flows\n\nNot carried over:\n- {lacks}\n", config.display()))?;
    Ok(ExitCode::SUCCESS)
}
