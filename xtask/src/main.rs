//! Development tasks: `cargo xtask test` is every check a change must pass, `cargo xtask validate ns3` compares the
//! simulator with ns-3, `cargo xtask instructions` counts the instructions of a packet-hop.
//!
//! This program has no dependencies. Tasks that need the simulator are those of `fairrate-validate`, which it builds
//! and runs.

mod agent;
mod args;
mod cargo;
mod checks;
mod dependencies;
mod dist;
mod kernel;
mod own_algorithms;
mod prose;
mod python;
mod soak;
mod testbed;
mod vm;
mod watch_page;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::Args;

const HELP: &str = "\
Development tasks of fairrate

Usage: cargo xtask TASK

  test              Every check a change must pass
  prose             Sentences of comments, held against the style of CONTRIBUTING
  dependencies      Licences, sources and versions of all dependencies, held against `deny.toml` by cargo-deny
  own-algorithms    Tests the examples that bring an algorithm of their own, as programs of users do
  python [--if-possible]
                    The Python package: built, its tests, types and notebook, in an environment below `target`
  dist [--dev] [--if-possible] [--packages]
                    A release in `target/dist`: archive, Debian packages, wheel, checksums, each tried. With --dev the programs
                    are those of cargo's profile for development, with --packages there are Debian packages alone
  testbed [--if-possible]
                    The testbed on this machine, as root: small runs, their results, and that nothing is left behind
  agent [--if-possible]
                    Flowtune's agents and allocator on hosts in network namespaces, as root
  soak [--minutes N] [--seed N] [--hosts N] [--load PERCENT] [--out DIR] [--dev]
                    Agents, two allocators and connections under churn on hosts in network namespaces, with a fault every minute, as
                    root: a row a minute and a verdict in DIR. Ctrl-C leaves what was measured
                    [minutes: 60, seed: 1, hosts: 8, load: 80, DIR: target/soak]
  kernel [--if-possible]
                    The congestion controls of `fairrate-kernel` in the running kernel, as root
  watch-page [--if-possible] [--measure] [--shots DIR]
                    The page of `fairrate-watch` in a headless Chromium. With --measure the times between its frames, with --shots
                    pictures of it
  vm SCRIPT [--with PROGRAM].. [--suite SUITE] [--memory MIB] [--limit SECONDS]
                    Runs shell commands in a virtual machine with Debian's kernel: another Linux than this machine's, and with --suite
                    that of another suite than this machine's, as bookworm-backports.
                    Programs named by --with are in PATH, as are ip, tc and busybox's [memory: 768, limit: 300]

Tasks of fairrate-validate, which links the simulator; each has --help:

  validate ns3      PowerTCP's public ns-3 artifact: its figures, carried in `validation/ns3`, beside ours
  validate ns3-tcp  TCP of mainline ns-3: flows over a dumbbell, carried in `validation/ns3-tcp`, beside ours
  validate homa-omnet  HOMA's authors' OMNeT++ code: times of messages, carried in `validation/homa-omnet`, beside ours
  validate rocc-omnet  RoCC's authors' OMNeT++ code: times and queues, carried in `validation/rocc-omnet`, beside ours
  validate uet-htsim  the Ultra Ethernet consortium's simulator: times, carried in `validation/uet-htsim`, beside ours
  validate csg-htsim  the simulator of NDP's and EQDS's authors: times, carried in `validation/csg-htsim`, beside ours
  figures           The part of `docs/figures.md` that is made from committed measurements, with its pictures and tables
  hardware [--check] [--if-possible] [--only MODULE]
                    The modules in `hardware/rtl` beside the laws in Rust, bit by bit, and their size on an FPGA
  header            Writes the C header of algorithms from shared libraries
  instructions      Instructions of a packet-hop, as callgrind counts them, beside the committed ones
";

fn main() -> ExitCode {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&root(), &all) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the task that is the first of the arguments `all`. Returns `true` if it succeeds.
fn run(root: &Path, all: &[OsString]) -> Result<bool, String> {
    let task = all.first().map(|task| task.to_string_lossy().into_owned()).unwrap_or_default();
    if matches!(task.as_str(), "validate" | "figures" | "hardware" | "header" | "instructions") {
        return cargo::validate(root, all);
    }
    let mut args = Args::new(&task, all.iter().skip(1).cloned().collect());
    let asks_for_help = args.flag("--help") || args.flag("-h");
    if asks_for_help || matches!(task.as_str(), "" | "help" | "--help" | "-h") {
        print!("{HELP}");
        return Ok(true);
    }
    if task == "dist" {
        let options = dist::Options::read(&mut args);
        args.end()?;
        return dist::run(root, &options);
    }
    let if_possible = matches!(task.as_str(), "python" | "testbed" | "agent" | "kernel") && args.flag("--if-possible");
    if task == "vm" {
        let options = vm::Options::read(&mut args)?;
        args.end()?;
        return vm::run(root, &options);
    }
    if task == "soak" {
        let options = soak::Options::read(&mut args)?;
        args.end()?;
        return soak::run(root, &options);
    }
    if task == "watch-page" {
        let options = watch_page::Options::read(&mut args)?;
        args.end()?;
        return watch_page::run(root, &options);
    }
    args.end()?;
    match task.as_str() {
        "test" => Ok(checks::run(root)),
        "prose" => prose::run(root),
        "dependencies" => dependencies::run(root),
        "own-algorithms" => own_algorithms::run(root),
        "python" => python::run(root, if_possible),
        "testbed" => testbed::run(root, if_possible),
        "agent" => agent::run(root, if_possible),
        "kernel" => kernel::run(root, if_possible),
        unknown => Err(format!("there is no task `{unknown}`; `cargo xtask help` lists them")),
    }
}

/// Returns the root of the repository, the parent directory of this package, whose path cargo sets.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .and_then(|dir| dir.parent().map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("."))
}
