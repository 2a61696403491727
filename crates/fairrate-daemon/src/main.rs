//! `fairrate-allocator`: Flowtune's allocator as a service.

mod check;
mod control;
mod descriptors;
mod reload;
mod run;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fairrate_daemon::config::{Config, ConfigError};
use fairrate_daemon::{keys, load};

/// Flowtune's allocator as a service: agents tell it of flowlets, and it tells them rates.
#[derive(Parser)]
#[command(name = "fairrate-allocator", version, after_help = "Exit codes: 0 done, 1 failed, 2 bad input.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the allocator.
    ///
    /// The keys of the configuration are described in allocator.md, and allocator.toml has them with their defaults.
    /// The Debian package has both in /usr/share/doc/fairrate-allocator, the archive of a release in
    /// share/doc/fairrate/docs and share/fairrate/packaging.
    Run {
        /// The configuration, a TOML file.
        config: PathBuf,
    },
    /// Check a configuration and say what it means.
    Check {
        /// The configuration, a TOML file.
        config: PathBuf,
    },
    /// Make the running allocator load its configuration and keys again.
    ///
    /// Agents stay. A configuration that cannot be used changes nothing. SIGHUP does the same.
    Reload(ControlArgs),
    /// Set the state of a link of the running allocator, or show the links that are not as in the topology.
    ///
    /// It lasts until the allocator ends; write into the configuration what has to last.
    Link {
        #[command(flatten)]
        control: ControlArgs,
        /// Its name, FROM->TO. Without it, links that are not as in the topology are shown.
        #[arg(requires = "state")]
        name: Option<String>,
        /// `down` (both directions), a rate such as 5Gbps (this direction), or `reset`, which goes back to the
        /// configuration.
        state: Option<String>,
    },
    /// Make a certificate authority, a certificate for the allocator and one for each agent.
    Keys(KeysArgs),
    /// Load an allocator on this machine with agents and flows, and measure how fast it answers.
    Load(LoadArgs),
    /// Print completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Write manual pages.
    Man {
        /// Directory for fairrate-allocator.1 and a page a subcommand.
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

#[derive(Args)]
struct ControlArgs {
    /// The allocator's socket, `control` in its configuration.
    #[arg(long, default_value = "/run/fairrate-allocator/control")]
    control: PathBuf,
}

#[derive(Args)]
struct KeysArgs {
    /// Directory of the keys. An authority that is there already signs; it is never replaced.
    dir: PathBuf,
    /// Addresses of the allocators, with commas.
    #[arg(long, value_delimiter = ',', required = true)]
    allocators: Vec<IpAddr>,
    /// Addresses of agents, with commas: each gets a certificate that names this address alone.
    #[arg(long, value_delimiter = ',')]
    agents: Vec<IpAddr>,
    /// Days until certificates of hosts expire.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Days until a new authority expires.
    #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    authority_days: u32,
    /// Replace keys and certificates of these hosts that are there; without it, they are kept.
    #[arg(long)]
    renew: bool,
    /// A group, by name or number, that may read the allocator's key.
    #[arg(long)]
    group: Option<String>,
}

impl KeysArgs {
    fn request(&self) -> Result<keys::Request, String> {
        let day = Duration::from_hours(24);
        Ok(keys::Request {
            lifetime: self.days * day,
            authority_lifetime: self.authority_days * day,
            renew: self.renew,
            group: self.group.as_deref().map(group).transpose()?,
            ..keys::Request::new(&self.allocators, &self.agents)
        })
    }
}

/// Returns the number of the group with the name or number `name`.
fn group(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!("there is no group `{name}`: make it with `groupadd --system {name}`")),
        Err(error) => Err(format!("cannot look for the group `{name}`: {error}")),
    }
}

#[derive(Args)]
struct LoadArgs {
    /// The allocator, on a loopback address and insecure.
    #[arg(long, default_value = "127.0.0.1:4600")]
    server: SocketAddr,
    /// Its metrics, for its processor time, memory and bytes.
    #[arg(long)]
    metrics: Option<SocketAddr>,
    /// Connections.
    #[arg(long, default_value_t = 1_000)]
    agents: u32,
    /// Flows of all agents.
    #[arg(long, default_value_t = 100_000)]
    flows: u32,
    /// Flowlets that end, each followed by a new one, in a second.
    #[arg(long, default_value_t = 1_000.0)]
    churn: f64,
    /// Duration of the measurement, after all flows are there.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    time: Duration,
    /// Address of the first host; agents are the hosts from there on.
    #[arg(long, default_value = "10.0.0.1")]
    first_host: Ipv4Addr,
    /// Hosts of the allocator's topology.
    #[arg(long, default_value_t = 1_000)]
    hosts: u32,
    /// Seed of the choice of flows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The exit code of all failures except bad input.
const EXIT_FAILED: u8 = 1;

/// The exit code of an invalid configuration, key file or argument.
const EXIT_BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run { config } => load_config(&config).map_or_else(|code| code, run::run),
        Command::Check { config } => load_config(&config).map_or_else(|code| code, |loaded| show_check(&loaded)),
        Command::Reload(args) => command(&args, "reload"),
        Command::Link { control, name: Some(name), state: Some(state) } => {
            if [&name, &state].into_iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) {
                return failed("a name or a state has a space, or is empty", EXIT_BAD_INPUT);
            }
            command(&control, &format!("link {name} {state}"))
        }
        Command::Link { control, .. } => command(&control, "links"),
        Command::Keys(args) => print_or_fail(make_keys(&args)),
        Command::Load(args) => print_or_fail(load::run(&plan(&args)).map(|report| report.to_string())),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fairrate-allocator", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { out } => {
            match std::fs::create_dir_all(&out).and_then(|()| clap_mangen::generate_to(Cli::command(), &out)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&format!("cannot write {}: {error}", out.display()), EXIT_FAILED),
            }
        }
    }
}

fn show_check(loaded: &run::Loaded) -> ExitCode {
    match check::check(loaded) {
        Ok(checked) => {
            for warning in checked.warnings {
                let _ = writeln!(io::stderr(), "warning: {warning}");
            }
            print(&checked.text)
        }
        Err(error) => failed(&error, EXIT_BAD_INPUT),
    }
}

/// Sends a command to the running allocator and prints the answer.
fn command(args: &ControlArgs, command: &str) -> ExitCode {
    match control::send(&args.control, command) {
        Ok(text) => print(&text),
        Err(control::Failed::Refused(error)) => failed(&error, EXIT_BAD_INPUT),
        Err(control::Failed::Unreachable(error)) => failed(&error, EXIT_FAILED),
    }
}

fn make_keys(args: &KeysArgs) -> Result<String, String> {
    let done = keys::make(&args.dir, &args.request()?).map_err(|e| e.to_string())?;
    Ok(done.iter().map(|done| done.to_string() + "\n").collect())
}

/// Prints the output of a command. `println!` would panic if stdout is closed.
fn print(text: &str) -> ExitCode {
    match write!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&format!("cannot write: {error}"), EXIT_FAILED),
    }
}

/// Prints an error, if stderr is open, and returns the exit code.
fn failed(error: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::from(code)
}

fn plan(args: &LoadArgs) -> load::Plan {
    load::Plan {
        server: args.server,
        metrics: args.metrics,
        n_agents: args.agents,
        n_flows: args.flows,
        churn: args.churn,
        time: args.time,
        first_host: args.first_host,
        n_hosts: args.hosts,
        seed: args.seed,
    }
}

/// Prints the output of a command, or its error, which is one of bad input.
fn print_or_fail(result: Result<String, impl std::fmt::Display>) -> ExitCode {
    result.map_or_else(|error| failed(&error.to_string(), EXIT_BAD_INPUT), |text| print(&text))
}

fn load_config(path: &std::path::Path) -> Result<run::Loaded, ExitCode> {
    match Config::load(path) {
        Ok((config, network)) => Ok(run::Loaded { path: path.to_owned(), config, network }),
        Err(ConfigError::Topology(error)) => {
            let _ = writeln!(io::stderr(), "{:?}", miette::Report::new(error));
            Err(ExitCode::from(EXIT_BAD_INPUT))
        }
        Err(error) => Err(failed(&error.to_string(), EXIT_BAD_INPUT)),
    }
}
