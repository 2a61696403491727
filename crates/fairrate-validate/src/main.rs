//! Checks that link the simulator. `cargo xtask` runs them by the same names: `cargo xtask validate ns3` is
//! `fairrate-validate validate ns3`. They are a program of their own, so that `cargo xtask test` begins without
//! building them.

mod csv;
mod figures;
mod hardware;
mod header;
mod homa_omnet;
mod instructions;
mod kept;
mod ns3;
mod ns3_tcp;
mod rocc_omnet;
mod rows;
mod runs;
mod sentences;
mod show;
mod suite;
mod testbed;
mod to_end;
mod uet_htsim;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "fairrate-validate", bin_name = "cargo xtask", about = "Checks of fairrate that link the simulator")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// The part of `docs/figures.md` that is made from committed measurements, with its pictures and tables.
    Figures(figures::Options),
    /// The modules in `hardware/rtl` beside the laws in Rust, bit by bit, and their size on an FPGA.
    Hardware(hardware::Options),
    /// Writes the C header of algorithms from shared libraries.
    Header(header::Options),
    /// Instructions of a packet-hop, as callgrind counts them, beside the committed ones.
    Instructions(instructions::Options),
    /// The testbed on this machine, as root: small runs, their results, and that nothing is left behind.
    Testbed(testbed::Options),
    /// Holds the simulator against another one.
    Validate {
        #[command(subcommand)]
        against: Against,
    },
}

#[derive(Subcommand)]
enum Against {
    /// PowerTCP's public ns-3 artifact: its figures, carried in `validation/ns3`, beside ours.
    Ns3(ns3::Options),
    /// TCP of mainline ns-3: flows over a dumbbell, carried in `validation/ns3-tcp`, beside ours.
    Ns3Tcp(ns3_tcp::Options),
    /// HOMA's authors' OMNeT++ code: times of messages, carried in `validation/homa-omnet`, beside ours.
    HomaOmnet(suite::Options),
    /// RoCC's authors' OMNeT++ code: times of flows and queues, carried in `validation/rocc-omnet`, beside ours.
    RoccOmnet(suite::Options),
    /// The Ultra Ethernet consortium's simulator: completion times, carried in `validation/uet-htsim`, beside ours.
    UetHtsim(uet_htsim::Options),
    /// The simulator of NDP's and EQDS's authors: completion times, carried in `validation/csg-htsim`, beside ours.
    CsgHtsim(uet_htsim::Options),
}

fn main() -> ExitCode {
    let root = root();
    let outcome = match Cli::parse().task {
        Task::Figures(options) => figures::run(&root, &options),
        Task::Hardware(options) => hardware::run(&root, &options),
        Task::Header(options) => header::run(&root, &options),
        Task::Instructions(options) => instructions::run(&root, &options),
        Task::Testbed(options) => testbed::run(&options),
        Task::Validate { against: Against::Ns3(options) } => ns3::run(&root, &options),
        Task::Validate { against: Against::Ns3Tcp(options) } => ns3_tcp::run(&root, &options),
        Task::Validate { against: Against::HomaOmnet(options) } => homa_omnet::run(&root, &options),
        Task::Validate { against: Against::RoccOmnet(options) } => rocc_omnet::run(&root, &options),
        Task::Validate { against: Against::UetHtsim(options) } => uet_htsim::run(&root, &uet_htsim::UET, &options),
        Task::Validate { against: Against::CsgHtsim(options) } => uet_htsim::run(&root, &uet_htsim::CSG, &options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the root of the repository, two directories above this package, whose path cargo sets.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|dir| PathBuf::from(dir).ancestors().nth(2).map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("."))
}
