//! `fairrate-kernel`: attaches congestion controls of fairrate to the Linux kernel, and detaches them.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use fairrate_kernel::error::Error;
use fairrate_kernel::params::Path;
use fairrate_kernel::setup::{self, PortSetting, Setup};
use fairrate_units::{Rate, Time};

#[derive(Parser)]
#[command(name = "fairrate-kernel", version, about = "Congestion control of fairrate in the Linux kernel")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Puts an algorithm into the kernel, as a congestion control that sockets can choose
    Attach(Attach),
    /// Takes an algorithm, or all, out of the kernel
    Detach(Detach),
    /// Shows what is attached, by how many connections it is used, and where it is the default
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
struct Attach {
    /// theta-powertcp, powertcp, rocc, ratemp or dctcp, with parameters as in scenarios: `theta-powertcp:gamma=0.8,beta=10Mbps`
    #[arg(value_name = "ALGORITHM[:PARAMETER=VALUE,...]")]
    setup: String,
    /// Makes it the default of this network namespace, with these parameters; can be given several times
    #[arg(long, value_name = "NAME")]
    netns: Vec<String>,
    /// Makes it the default of the present network namespace
    #[arg(long)]
    default: bool,
    /// Rate of the host's NIC, the papers' HostBw
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    line_rate: String,
    /// The network's base round-trip time τ; without it a flow takes the smallest it has seen
    #[arg(long, value_name = "TIME")]
    tau: Option<String>,
    /// Puts what the algorithm does at switches at an egress port: powertcp stamps telemetry and rocc computes a fair rate,
    /// for which they need the port's RATE; dctcp marks from a queue of so many BYTES, ratemp in
    /// proportion up to so many; can be given several times
    #[arg(long, value_name = "NETNS/DEV:RATE|BYTES")]
    switch_port: Vec<String>,
    /// Prints the name for TCP_CONGESTION and nothing else
    #[arg(long)]
    print_name: bool,
}

#[derive(Args)]
struct Detach {
    /// Which; all if none is named
    algorithm: Option<String>,
    /// Although connections use it: they keep it until they close
    #[arg(long)]
    force: bool,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Attach(options) => attach(&options),
        Command::Detach(options) => detach(&options),
        Command::Status { json } => status(json),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\n  help: {}", error.help());
            ExitCode::from(2)
        }
    }
}

fn quantity<T: std::str::FromStr>(option: &str, text: &str, example: &str) -> Result<T, Error>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e: T::Err| Error::Parameter {
        parameter: format!("{option} {text}"),
        message: e.to_string(),
        help: format!("write it as {example}"),
    })
}

fn path(options: &Attach) -> Result<Path, Error> {
    let line_rate: Rate = quantity("--line-rate", &options.line_rate, "10Gbps")?;
    let tau: Option<Time> = options.tau.as_deref().map(|t| quantity("--tau", t, "300us")).transpose()?;
    Ok(Path { line_rate, tau })
}

/// What is to be attached, and at which ports.
fn read(options: &Attach) -> Result<(Setup, Vec<PortSetting>), Error> {
    let setup = Setup::parse(&options.setup, &path(options)?)?;
    let ports = options.switch_port.iter().map(|text| PortSetting::parse(text, &setup));
    let ports = ports.collect::<Result<_, _>>()?;
    Ok((setup, ports))
}

#[cfg(feature = "bpf")]
fn ready() -> Result<(), Error> {
    fairrate_kernel::bpf::check(std::path::Path::new("/sys/kernel/btf/vmlinux"))
}

#[cfg(feature = "bpf")]
fn attach(options: &Attach) -> Result<(), Error> {
    use fairrate_kernel::bpf::{self, Namespace};
    let (setup, ports) = read(options)?;
    ready()?;
    let here = options.default.then(Namespace::here);
    let named = options.netns.iter().map(|name| Namespace::named(name));
    let namespaces: Vec<Namespace> = named.chain(here).collect::<Result<_, _>>()?;
    bpf::attach(&setup, &namespaces, &ports)?;
    let name = setup.algorithm.tcp_name;
    if options.print_name {
        println!("{name}");
    } else {
        println!("{} is attached: sockets choose it as `{name}`", setup.algorithm.name);
    }
    Ok(())
}

#[cfg(feature = "bpf")]
fn detach(options: &Detach) -> Result<(), Error> {
    use fairrate_kernel::bpf;
    let which = options.algorithm.as_deref().map(setup::find).transpose()?;
    ready()?;
    if let Some(algorithm) = which {
        return bpf::detach(algorithm, options.force);
    }
    bpf::status()?.iter().try_for_each(|a| bpf::detach(setup::find(a.algorithm)?, options.force))
}

#[cfg(feature = "bpf")]
fn status(json: bool) -> Result<(), Error> {
    ready()?;
    let attached = fairrate_kernel::bpf::status()?;
    if json {
        let text = serde_json::to_string_pretty(&attached).map_err(|e| Error::system("write JSON", e))?;
        println!("{text}");
        return Ok(());
    }
    if attached.is_empty() {
        println!("nothing is attached");
    }
    for a in &attached {
        println!("{} ({}): {} connections", a.algorithm, a.tcp_name, a.sockets);
        for n in &a.namespaces {
            let name = n.name.clone().unwrap_or_else(|| format!("with number {}", n.cookie));
            println!("  default of namespace {name}: {}", n.setup);
        }
    }
    Ok(())
}

/// What this build answers to everything that is not wrong in itself.
#[cfg(not(feature = "bpf"))]
fn ready() -> Result<(), Error> {
    let help = "build it with `cargo build --release -p fairrate-kernel --features bpf`, which needs clang and libelf";
    Err(Error::refused("this build has no programs for the kernel", help))
}

#[cfg(not(feature = "bpf"))]
fn attach(options: &Attach) -> Result<(), Error> {
    read(options)?;
    let _ = (&options.netns, options.default, options.print_name);
    ready()
}

#[cfg(not(feature = "bpf"))]
fn detach(options: &Detach) -> Result<(), Error> {
    options.algorithm.as_deref().map(setup::find).transpose()?;
    let _ = options.force;
    ready()
}

#[cfg(not(feature = "bpf"))]
fn status(_json: bool) -> Result<(), Error> {
    ready()
}
