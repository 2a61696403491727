//! `fairrate allocate`: the ideal rates of flows, by an objective.

mod input;
mod optimum;
mod print;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_allocate::max_min;
use fairrate_control::Registry;

use self::optimum::{Optimum, Solver};
use self::print::Rates;
use crate::failure::Failure;
use crate::output;

/// Arguments of `allocate`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("network").args(["links", "topology"]).required(true))]
pub struct Args {
    /// CSV of links: link,capacity_gbps
    #[arg(long, value_name = "FILE")]
    links: Option<PathBuf>,
    /// In place of --links: a topology by kind, a topology file, or a scenario, of which only the network is taken
    ///
    /// Flows then go from host to host, over the paths that the simulator would pick.
    #[arg(long, value_name = "KIND|FILE")]
    topology: Option<PathBuf>,
    /// Seed of the choice among equal paths, in place of the scenario's
    #[arg(long, value_name = "N", conflicts_with = "links")]
    seed: Option<u64>,
    /// CSV of flows: flow,links,weight; links with spaces between them, weight 1 if there is none
    ///
    /// With --topology: src,dst and, if wanted, flow,weight,sport,dport.
    #[arg(long, value_name = "FILE")]
    flows: PathBuf,
    /// Objective of the rates: max-min, proportional or alpha=A
    ///
    /// max-min: weighted max-min fair, exactly. proportional: the largest sum of weight x log(rate). alpha=A: the
    /// largest sum of weight x rate^(1-A)/(1-A), for A from 0.1 to 16.
    #[arg(long, value_parser = optimum::objective)]
    objective: Objective,
    #[command(flatten)]
    solver: Solver,
    /// Print JSON, with bottlenecks or prices and the load of links, in place of CSV
    #[arg(long)]
    pub json: bool,
}

/// The objective of an allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Objective {
    /// Weighted max-min fair.
    MaxMin,
    /// The largest sum of alpha-fair utilities, with this alpha.
    AlphaFair(f64),
}

/// Computes and prints the rates.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    args.solver.check(args.objective)?;
    let network = input::network(args, registry)?;
    let (rates, failure) = match args.objective {
        Objective::MaxMin => {
            (Rates::MaxMin(max_min(&network).expect("the readers take nothing that has no allocation")), None)
        }
        Objective::AlphaFair(alpha) => {
            let optimum = Optimum::find(&network, alpha, &args.solver)?;
            let failure = optimum.failure(&args.solver);
            if let Some(note) = optimum.note() {
                // A failure to write the note to stderr is ignored: the rates are right all the same.
                let _ = writeln!(std::io::stderr(), "{note}");
            }
            (Rates::Optimum(optimum), failure)
        }
    };
    if args.json {
        output::print_json(&print::json(&network, &rates))?;
    } else {
        output::print(&print::csv(&network, &rates))?;
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}
