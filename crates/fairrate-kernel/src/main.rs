//! `fairrate-kernel`: attaches congestion controls of fairrate to the Linux kernel, and detaches them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use fairrate_kernel::classes::{Classes, Port};
use fairrate_kernel::error::Error;
use fairrate_kernel::params::Path;
use fairrate_kernel::setup::{self, PortSetting, Setup};
use fairrate_units::{Rate, Time};

#[derive(Parser)]
#[command(
    name = "fairrate-kernel",
    version,
    about = "Congestion control of fairrate in the Linux kernel",
    after_help = "Exit codes: 0 done, 1 another process kept this one from it, 2 bad input or a machine that cannot."
)]
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
    /// Lays out classes by DSCP at egress ports, or removes them
    Classes {
        #[command(subcommand)]
        what: ClassesCommand,
    },
    /// Shows what is attached, by how many connections it is used, and where it is the default
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Prints completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Writes manual pages
    Man {
        /// Directory for fairrate-kernel.1 and a page a subcommand
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

#[derive(Args)]
struct Attach {
    /// theta-powertcp, powertcp, rocc, ratemp, dctcp or perc, with parameters as in scenarios:
    /// `theta-powertcp:gamma=0.8,beta=10Mbps`
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
    /// DSCP of new connections, unless their program chooses one (cs1 to cs7, af11 to af43, ef, va, le, or 1 to 63)
    #[arg(long, value_name = "DSCP")]
    dscp: Option<String>,
    /// Puts what the algorithm does at switches at an egress port: powertcp stamps telemetry, rocc computes a fair rate
    /// and perc answers control packets, for which they need the port's RATE; dctcp marks from a queue of BYTES on,
    /// ratemp in proportion up to BYTES; after `@DSCP` powertcp stamps the telemetry of that class alone; can be given
    /// several times
    #[arg(long, value_name = "NETNS/DEV:RATE|BYTES[@DSCP]")]
    switch_port: Vec<String>,
    /// Prints the name for TCP_CONGESTION and nothing else
    #[arg(long)]
    print_name: bool,
    /// Longest wait for another attach or detach
    #[arg(long, value_name = "TIME", default_value = WAIT)]
    wait: String,
}

/// Default for the wait of one process for others.
const WAIT: &str = "60s";

#[derive(Args)]
struct Detach {
    /// Which; all if none is named
    algorithm: Option<String>,
    /// Takes it from this network namespace only, and out of the kernel if no other one has it; can be given several
    /// times
    #[arg(long, value_name = "NAME")]
    netns: Vec<String>,
    /// Only if no other network namespace has it, and it was not attached for all; that it is not attached is no error
    #[arg(long)]
    unused: bool,
    /// Although connections use it: they take the default of their network namespace
    #[arg(long)]
    force: bool,
    /// Longest wait for another attach or detach
    #[arg(long, value_name = "TIME", default_value = WAIT)]
    wait: String,
}

#[derive(Subcommand)]
enum ClassesCommand {
    /// Gives ports a class of a queue of its own for each DSCP; each has its share of the port by weight, and what
    /// others leave
    Set(SetClasses),
    /// Removes the classes of ports
    Clear {
        /// Egress port; can be given several times
        #[arg(long = "port", value_name = "NETNS/DEV", required = true)]
        ports: Vec<String>,
        /// Longest wait for another process that changes classes
        #[arg(long, value_name = "TIME", default_value = WAIT)]
        wait: String,
    },
}

#[derive(Args)]
struct SetClasses {
    /// Egress port and the rate that classes share, at most that of its link; without NETNS/ of this network namespace;
    /// can be given several times
    #[arg(long = "port", value_name = "NETNS/DEV:RATE", required = true)]
    ports: Vec<String>,
    /// Class of the packets with a DSCP (cs1 to cs7, af11 to af43, ef, va, le, or 1 to 63), its weight and its longest
    /// queue; can be given several times
    #[arg(long = "class", value_name = "DSCP:WEIGHT[:BYTES]", required = true)]
    classes: Vec<String>,
    /// Weight and longest queue of all other packets
    #[arg(long, value_name = "WEIGHT[:BYTES]", default_value = "1")]
    others: String,
    /// Longest queue of classes without one of their own
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    limit: String,
    /// Longest wait for another process that changes classes
    #[arg(long, value_name = "TIME", default_value = WAIT)]
    wait: String,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Attach(options) => attach(&options),
        Command::Detach(options) => detach(&options),
        Command::Classes { what: ClassesCommand::Set(options) } => set_classes(&options),
        Command::Classes { what: ClassesCommand::Clear { ports, wait } } => clear_classes(&ports, &wait),
        Command::Status { json } => status(json),
        Command::Completions { shell } => completions(shell),
        Command::Man { out } => man(&out),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\n  help: {}", error.help());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints the completions for `shell`.
fn completions(shell: clap_complete::Shell) -> Result<(), Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fairrate-kernel", &mut text);
    let printed = std::io::stdout().write_all(&text);
    printed.map_err(|e| Error::refused(format!("cannot print: {e}"), "give it an output that can be written to"))
}

/// Writes the manual pages to the directory `out`.
fn man(out: &std::path::Path) -> Result<(), Error> {
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out));
    written.map_err(|e| {
        Error::refused(format!("cannot write to {}: {e}", out.display()), "give a directory that you may write to")
    })
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

fn wait(text: &str) -> Result<Duration, Error> {
    quantity::<Time>("--wait", text, "60s").map(|time| Duration::from_nanos(time.as_ns()))
}

/// Returns the algorithm to attach, and its ports.
fn read(options: &Attach) -> Result<(Setup, Vec<PortSetting>), Error> {
    let dscp = options.dscp.as_deref().map(|text| quantity("--dscp", text, "cs4")).transpose()?;
    let setup = Setup { dscp, ..Setup::parse(&options.setup, &path(options)?)? };
    let ports = options.switch_port.iter().map(|text| PortSetting::parse(text, &setup));
    let ports = ports.collect::<Result<_, _>>()?;
    Ok((setup, ports))
}

/// Returns the classes to lay out, and their ports.
fn read_classes(options: &SetClasses) -> Result<(Classes, Vec<Port>), Error> {
    let limit = quantity("--limit", &options.limit, "1MB")?;
    let classes = Classes::parse(&options.classes, &options.others, limit)?;
    let ports = options.ports.iter().map(|text| Port::parse(text)).collect::<Result<Vec<_>, _>>()?;
    ports.iter().try_for_each(|port| classes.tc(port).map(drop))?;
    Ok((classes, ports))
}

/// Returns ports that are given without a rate.
fn read_places(ports: &[String]) -> Result<Vec<Port>, Error> {
    ports.iter().map(|text| Port::place(text)).collect()
}

#[cfg(feature = "bpf")]
fn set_classes(options: &SetClasses) -> Result<(), Error> {
    let (classes, ports) = read_classes(options)?;
    fairrate_kernel::bpf::set_classes(&classes, &ports, wait(&options.wait)?)?;
    for port in ports {
        println!("{port} has {} classes", classes.all().len());
    }
    Ok(())
}

#[cfg(feature = "bpf")]
fn clear_classes(ports: &[String], longest: &str) -> Result<(), Error> {
    fairrate_kernel::bpf::clear_classes(&read_places(ports)?, wait(longest)?)
}

#[cfg(feature = "bpf")]
fn ready() -> Result<(), Error> {
    fairrate_kernel::bpf::check(std::path::Path::new("/sys/kernel/btf/vmlinux"))
}

#[cfg(feature = "bpf")]
fn named(names: &[String]) -> Result<Vec<fairrate_kernel::bpf::Namespace>, Error> {
    names.iter().map(|name| fairrate_kernel::bpf::Namespace::named(name)).collect()
}

#[cfg(feature = "bpf")]
fn attach(options: &Attach) -> Result<(), Error> {
    use fairrate_kernel::bpf::{self, Namespace};
    let (setup, ports) = read(options)?;
    let wait = wait(&options.wait)?;
    ready()?;
    let mut namespaces = named(&options.netns)?;
    if options.default {
        namespaces.push(Namespace::here()?);
    }
    bpf::attach(&setup, &namespaces, &ports, wait)?;
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
    let algorithm = options.algorithm.as_deref().map(setup::find).transpose()?;
    let wait = wait(&options.wait)?;
    ready()?;
    let namespaces = named(&options.netns)?;
    let (unused, force) = (options.unused, options.force);
    let detach = fairrate_kernel::bpf::Detach { algorithm, namespaces: &namespaces, unused, force, wait };
    for words in fairrate_kernel::bpf::detach(&detach)? {
        eprintln!("note: {words}");
    }
    Ok(())
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
        if let Some(setup) = &a.for_others {
            println!("  in namespaces that have no others: {setup}");
        }
        for n in &a.namespaces {
            let name = n.name.clone().unwrap_or_else(|| format!("with number {}", n.cookie));
            match &n.default {
                Some(default) if default == a.tcp_name => println!("  default of namespace {name}: {}", n.setup),
                Some(default) => println!("  in namespace {name}, whose default is {default}: {}", n.setup),
                None => println!("  in namespace {name}, which is gone: {}", n.setup),
            }
        }
    }
    Ok(())
}

/// Returns the error with which a build without the programs answers all valid commands.
#[cfg(not(feature = "bpf"))]
fn ready() -> Result<(), Error> {
    let help = "build it with `cargo build --release -p fairrate-kernel --features bpf`, which needs clang and libelf";
    Err(Error::refused("this build has no programs for the kernel", help))
}

#[cfg(not(feature = "bpf"))]
fn set_classes(options: &SetClasses) -> Result<(), Error> {
    read_classes(options)?;
    wait(&options.wait)?;
    ready()
}

#[cfg(not(feature = "bpf"))]
fn clear_classes(ports: &[String], longest: &str) -> Result<(), Error> {
    read_places(ports)?;
    wait(longest)?;
    ready()
}

#[cfg(not(feature = "bpf"))]
fn attach(options: &Attach) -> Result<(), Error> {
    read(options)?;
    let _ = (&options.netns, options.default, options.print_name, wait(&options.wait)?);
    ready()
}

#[cfg(not(feature = "bpf"))]
fn detach(options: &Detach) -> Result<(), Error> {
    options.algorithm.as_deref().map(setup::find).transpose()?;
    let _ = (&options.netns, options.unused, options.force, wait(&options.wait)?);
    ready()
}

#[cfg(not(feature = "bpf"))]
fn status(_json: bool) -> Result<(), Error> {
    ready()
}
