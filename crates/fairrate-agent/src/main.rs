//! `fairrate-agent`: Flowtune's endpoint for the TCP connections of a host.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{CommandFactory, Parser, Subcommand};
use fairrate_agent::config::Config;
use fairrate_agent::metrics::Metrics;
use fairrate_agent::{attach, run};
use fairrate_daemon::logging::Log;

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
    ///
    /// The keys of the configuration are described in agent.md, and agent.toml has them with their defaults. The Debian
    /// package has both in /usr/share/doc/fairrate-agent, the archive of a release in share/doc/fairrate/docs and
    /// share/fairrate/packaging.
    Run {
        /// A TOML file
        config: PathBuf,
    },
    /// Check a configuration, the keys that it names, and that control groups of version 2 are mounted
    Check {
        /// A TOML file
        config: PathBuf,
    },
    /// Print completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Write manual pages
    Man {
        /// Directory for fairrate-agent.1 and a page a subcommand
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

/// The exit code of all failures except bad input.
const EXIT_FAILED: u8 = 1;

/// The exit code of an invalid configuration, key or argument.
const EXIT_BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let (path, runs) = match Cli::parse().command {
        Command::Run { config } => (config, true),
        Command::Check { config } => (config, false),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fairrate-agent", &mut text);
            let printed = std::io::stdout().write_all(&text);
            return printed.map_or_else(|error| failed(&error, EXIT_FAILED), |()| ExitCode::SUCCESS);
        }
        Command::Man { out } => {
            let written = std::fs::create_dir_all(&out).and_then(|()| clap_mangen::generate_to(Cli::command(), &out));
            return written.map_or_else(|error| failed(&error, EXIT_FAILED), |()| ExitCode::SUCCESS);
        }
    };
    let config = match Config::load(&path) {
        Ok(config) => config,
        Err(error) => return failed(&error, EXIT_BAD_INPUT),
    };
    if let Err(error) = config.check_keys() {
        return failed(&error, EXIT_BAD_INPUT);
    }
    if !runs {
        return attach::root_of_groups().map_or_else(|error| failed(&error, EXIT_FAILED), |_| ExitCode::SUCCESS);
    }
    if !nix::unistd::geteuid().is_root() {
        return failed(&"the agent needs root: it loads a program into the kernel", EXIT_BAD_INPUT);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = ctrlc::set_handler(move || asked.store(true, Ordering::Release)) {
        return failed(&error, EXIT_FAILED);
    }
    let metrics = Arc::new(Metrics::new());
    let log = match Log::start(metrics.log_lines_lost()) {
        Ok(log) => log,
        Err(error) => return failed(&error, EXIT_FAILED),
    };
    let result = run::run(&config, &metrics, &stop);
    log.flush();
    result.map_or_else(|error| failed(&error, EXIT_FAILED), |()| ExitCode::SUCCESS)
}

/// Prints an error, if stderr is open, and returns the exit code.
fn failed(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::from(code)
}
