//! `fairrate-agent`: Flowtune's endpoint for the TCP connections of a host.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use fairrate_agent::config::Config;
use fairrate_agent::run;
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "fairrate-agent", version, about = "Flowtune's endpoint for the TCP connections of a host")]
#[command(after_help = "Exit codes: 0 done, 1 the agent failed, 2 bad input.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tell the allocator of this network namespace's TCP flowlets, and pace them as it says
    ///
    /// Needs root. SIGINT and SIGTERM let go of all connections and end it.
    Run {
        /// A TOML file
        config: PathBuf,
    },
    /// Check a configuration
    Check {
        /// A TOML file
        config: PathBuf,
    },
}

fn main() -> ExitCode {
    let (path, runs) = match Cli::parse().command {
        Command::Run { config } => (config, true),
        Command::Check { config } => (config, false),
    };
    let config = match Config::load(&path) {
        Ok(config) => config,
        Err(error) => return failed(&error, 2),
    };
    if !runs {
        return ExitCode::SUCCESS;
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("error: the agent needs root: it loads a program into the kernel");
        return ExitCode::from(2);
    }
    let has_colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter()).with_ansi(has_colour).with_writer(std::io::stderr).init();
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = ctrlc::set_handler(move || asked.store(true, Ordering::Release)) {
        return failed(&error, 1);
    }
    match run::run(config, &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, 1),
    }
}

/// What is logged: RUST_LOG, or what an operator wants to know.
fn filter() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"))
}

fn failed(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}
