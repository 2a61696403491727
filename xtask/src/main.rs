//! Development tasks: `cargo xtask test` is every check a change must pass, `cargo xtask validate ns3` compares the
//! simulator with ns-3, `cargo xtask instructions` counts the instructions of a packet-hop.

mod agent;
mod checks;
mod dependencies;
mod figures;
mod header;
mod instructions;
mod kernel;
mod ns3;
mod ns3_tcp;
mod own_algorithms;
mod prose;
mod python;
mod testbed;
mod vm;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of fairrate")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Every check a change must pass, in order; stops at the first that fails.
    Test,
    /// The part of `docs/figures.md` that is made from committed measurements, with its pictures and tables.
    Figures(figures::Options),
    /// Sentences of comments, held against the style of CONTRIBUTING.
    Prose,
    /// Licences and sources of all dependencies, held against `deny.toml`.
    Dependencies,
    /// Writes the C header of algorithms from shared libraries.
    Header(header::Options),
    /// Tests the examples that bring an algorithm of their own, outside the workspace.
    OwnAlgorithms,
    /// Instructions of a packet-hop, as callgrind counts them, beside the committed ones.
    Instructions(instructions::Options),
    /// The Python package: built, its tests, types and notebook, in an environment below `target`.
    Python(python::Options),
    /// Runs programs in a virtual machine with Debian's kernel: another Linux than this machine's.
    Vm(vm::Options),
    /// The testbed on this machine, as root: small runs, their results, and that nothing is left behind.
    Testbed(testbed::Options),
    /// Flowtune's agents and allocator on hosts in network namespaces, as root.
    Agent(agent::Options),
    /// The congestion controls of `fairrate-kernel` in the running kernel, as root.
    Kernel(kernel::Options),
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
}

fn main() -> ExitCode {
    let root = root();
    let outcome = match Cli::parse().task {
        Task::Test => checks::run(&root),
        Task::Figures(options) => figures::run(&root, &options),
        Task::Prose => prose::run(&root),
        Task::Dependencies => dependencies::run(&root),
        Task::Header(options) => header::run(&root, &options),
        Task::OwnAlgorithms => own_algorithms::run(&root),
        Task::Instructions(options) => instructions::run(&root, &options),
        Task::Python(options) => python::run(&root, &options),
        Task::Vm(options) => vm::run(&root, &options),
        Task::Testbed(options) => testbed::run(&root, &options),
        Task::Agent(options) => agent::run(&root, &options),
        Task::Kernel(options) => kernel::run(&root, &options),
        Task::Validate { against: Against::Ns3(options) } => ns3::run(&root, &options),
        Task::Validate { against: Against::Ns3Tcp(options) } => ns3_tcp::run(&root, &options),
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

/// Returns the root of the repository, the parent directory of this package, whose path cargo sets.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .and_then(|dir| dir.parent().map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("."))
}
