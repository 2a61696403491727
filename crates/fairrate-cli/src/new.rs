//! `fairrate new`: writes a commented scenario of a leaf-spine fabric.

use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use fairrate_control::Registry;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::workload::WORKLOADS;
use fairrate_units::Rate;

use crate::failure::Failure;
use crate::output;

/// Arguments of `new`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File to write
    #[arg(value_name = "SCENARIO.toml")]
    file: PathBuf,
    /// Number of hosts [default: 256]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Number of hosts on each leaf switch [default: 16]
    #[arg(long, value_name = "N")]
    per_leaf: Option<u32>,
    /// Rate of the hosts' links [default: 100Gbps]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Rates of a leaf's hosts together over those of its uplinks [default: 1]
    #[arg(long, value_name = "RATIO")]
    oversubscription: Option<u32>,
    /// Sizes of flows: a name of `fairrate list workloads`, or the path of a file with a CDF [default: websearch]
    #[arg(long, value_name = "NAME")]
    sizes: Option<String>,
}

/// The answers to the five questions.
#[derive(Debug, PartialEq)]
struct Answers {
    hosts: u32,
    per_leaf: u32,
    rate: Rate,
    oversubscription: u32,
    sizes: String,
}

/// Asks what is not given if there is a terminal to ask at, otherwise takes the defaults; checks and writes the
/// scenario.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let answers = if std::io::stdin().is_terminal() {
        answers(args, &mut std::io::stdin().lock(), &mut std::io::stderr())
    } else {
        answers(args, &mut std::io::empty(), &mut std::io::sink())
    }?;
    let beside = args.file.parent().unwrap_or(Path::new(""));
    let text = scenario(&answers, beside)?;
    let name = args.file.display().to_string();
    // Bad answers, such as a file with no CDF, have the same messages as a scenario that was written by hand.
    Scenario::with_algorithms(registry).from_toml(&text, &name, beside, &Overrides::default())?;
    write(&args.file, &text)?;
    output::print_text(&format!(
        "{name}\n\nfairrate check {name}    describes it\nfairrate run {name}      runs it\n\
         fairrate compare {name} --cc powertcp,dcqcn,swift    holds algorithms against each other\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that does not exist yet.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::Usage {
            message: format!("`{}` exists", path.display()),
            help: "give another name, or remove it first".to_owned(),
        }),
        done => done.map_err(|error| Failure::io("writing", path, error)),
    }
}

/// Writes files into a directory that does not exist yet, and makes it and those above it.
pub fn write_dir(dir: &Path, files: &[(&str, &str)]) -> Result<(), Failure> {
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    above.map_or(Ok(()), std::fs::create_dir_all).map_err(|error| Failure::io("making", dir, error))?;
    std::fs::create_dir(dir).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::Usage {
            message: format!("`{}` exists", dir.display()),
            help: "give another directory, or remove it first".to_owned(),
        },
        _ => Failure::io("making", dir, error),
    })?;
    files.iter().try_for_each(|(name, text)| write(&dir.join(name), text))
}

/// Returns what is given, or else answered, or else the defaults.
fn answers(args: &Args, input: &mut impl BufRead, out: &mut impl Write) -> Result<Answers, Failure> {
    Ok(Answers {
        hosts: ask(args.hosts, "Number of hosts", 256, input, out)?,
        per_leaf: ask(args.per_leaf, "Hosts on each leaf switch", 16, input, out)?,
        rate: ask(args.rate, "Rate of the hosts' links", Rate::from_gbps(100), input, out)?,
        oversubscription: ask(args.oversubscription, "Oversubscription of the leaves (1: none)", 1, input, out)?,
        sizes: ask(args.sizes.clone(), "Flow sizes, as `fairrate list workloads`", "websearch".to_owned(), input, out)?,
    })
}

/// Returns `given`, or the answer to a question. An empty line, or the end of the input, is the default.
fn ask<T: FromStr + ToString>(
    given: Option<T>,
    question: &str,
    default: T,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<T, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let asking = |error| Failure::io("asking at", Path::new("the terminal"), error);
    loop {
        write!(out, "{question} [{}]: ", default.to_string()).and_then(|()| out.flush()).map_err(asking)?;
        let mut line = String::new();
        input.read_line(&mut line).map_err(asking)?;
        let answer = line.trim();
        if answer.is_empty() {
            return Ok(default);
        }
        match answer.parse() {
            Ok(answer) => return Ok(answer),
            Err(_) => {
                writeln!(out, "`{answer}` is no answer; write it as {}", default.to_string()).map_err(asking)?;
            }
        }
    }
}

/// Returns the keys of a traffic's flow sizes: a workload's name, or a file, whose path is from the directory `beside`.
fn size_keys(sizes: &str, beside: &Path) -> Result<String, Failure> {
    let names = || WORKLOADS.iter().map(|workload| workload.name);
    if names().any(|name| name == sizes) {
        return Ok(format!("sizes = \"{sizes}\""));
    }
    if !beside.join(sizes).exists() {
        let message = format!("`{sizes}` is neither a workload nor a file beside the scenario");
        let help = fairrate_text::did_you_mean(sizes, names())
            .unwrap_or_else(|| "`fairrate list workloads` has the names".to_owned());
        return Err(Failure::Usage { message, help });
    }
    Ok(format!("sizes = \"file\"\npath = {sizes:?}"))
}

/// Returns the text of the scenario, which goes into the directory `beside`.
fn scenario(answers: &Answers, beside: &Path) -> Result<String, Failure> {
    let Answers { hosts, per_leaf, rate, oversubscription, sizes } = answers;
    let wrong = |message: String, help: &str| Err(Failure::Usage { message, help: help.to_owned() });
    if *per_leaf == 0 || *hosts < 2 * per_leaf || !hosts.is_multiple_of(*per_leaf) {
        let message = format!("{hosts} hosts make no two leaves or more with {per_leaf} hosts each");
        return wrong(message, "the number of hosts is a multiple of that on a leaf, as 256 and 16");
    }
    if *oversubscription == 0 || !per_leaf.is_multiple_of(*oversubscription) {
        let message = format!("{per_leaf} hosts of a leaf cannot be oversubscribed {oversubscription} to 1");
        return wrong(message, "the number of hosts on a leaf is a multiple of the oversubscription, as 16 and 2");
    }
    let uplinks = per_leaf / oversubscription;
    // Uplinks are four times as fast as hosts' links where that comes out even, as most fabrics have them.
    let factor = if uplinks.is_multiple_of(4) { 4 } else { 1 };
    let spines = uplinks / factor;
    let uplink = Rate::from_bps(rate.as_bps() * u64::from(factor));
    let sizes = size_keys(sizes, beside)?;
    Ok(format!(
        r#"# Every key and its default is in docs/scenario.md; `fairrate check` says what this file comes to.
description = "{hosts} hosts at {rate} under {leaves} leaves and {spines} spines, oversubscribed {oversubscription} to 1"

duration = "20ms"          # the run ends here,
stop = "all-flows-done"    # or when all flows are done

[topology]
kind = "leaf-spine"
leaves = {leaves}
spines = {spines}
hosts_per_leaf = {per_leaf}
host_rate = "{rate}"
host_delay = "500ns"
uplink_rate = "{uplink}"
uplink_delay = "500ns"

[switch]
buffer = "16MiB"           # shared by all ports of a switch
# pfc = false              # lossy: then set `recovery = "selective-repeat"` below

[transport]
cc = "powertcp"            # `fairrate list cc` has all algorithms
# recovery = "selective-repeat"

# Flows arrive at random: payload over the capacity of the leaves' uplinks. They stop before the end, so that most finish.
[[traffic]]
name = "background"        # tables and metrics have it, as `--metric slowdown-p99:background`
kind = "poisson"
{sizes}
load = 0.6
stop = "3ms"

# Requests that 16 hosts answer at once: 5 % of each host's link.
[[traffic]]
name = "queries"
kind = "incast-queries"
request_size = "1MB"
responders = {responders}
load = 0.05
stop = "3ms"

# The queues of all ports to hosts.
[[probe]]
queues = "tor-downlinks"
"#,
        leaves = hosts / per_leaf,
        responders = (hosts - per_leaf).min(16),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Args =
        Args { file: PathBuf::new(), hosts: None, per_leaf: None, rate: None, oversubscription: None, sizes: None };

    fn asked(args: &Args, typed: &str) -> (Answers, String) {
        let mut out = Vec::new();
        let answers = answers(args, &mut typed.as_bytes(), &mut out).unwrap();
        (answers, String::from_utf8(out).unwrap())
    }

    #[test]
    fn empty_lines_and_the_end_of_input_are_defaults() {
        let (defaults, out) = asked(&NOTHING, "");
        let sizes = "websearch".to_owned();
        let rate = Rate::from_gbps(100);
        assert_eq!(defaults, Answers { hosts: 256, per_leaf: 16, rate, oversubscription: 1, sizes });
        assert_eq!(out.matches(']').count(), 5);
        assert_eq!(asked(&NOTHING, "\n\n\n").0, defaults);
    }

    #[test]
    fn what_is_given_is_not_asked_and_a_wrong_answer_is_asked_again() {
        let args = Args { hosts: Some(64), ..NOTHING };
        let (answers, out) = asked(&args, "8\nfast\n25Gbps\n2\nfb-hadoop\n");
        let sizes = "fb-hadoop".to_owned();
        let rate = Rate::from_gbps(25);
        assert_eq!(answers, Answers { hosts: 64, per_leaf: 8, rate, oversubscription: 2, sizes });
        assert!(!out.contains("Number of hosts") && out.contains("`fast` is no answer; write it as 100Gbps"), "{out}");
    }

    #[test]
    fn uplinks_have_the_capacity_that_was_asked_for() {
        let with = |per_leaf, oversubscription| {
            let sizes = "websearch".to_owned();
            let rate = Rate::from_gbps(25);
            scenario(&Answers { hosts: 4 * per_leaf, per_leaf, rate, oversubscription, sizes }, Path::new(""))
        };
        let text = with(16, 2).unwrap();
        assert!(text.contains("spines = 2\n") && text.contains("uplink_rate = \"100Gbps\""), "{text}");
        let text = with(6, 2).unwrap();
        assert!(text.contains("spines = 3\n") && text.contains("uplink_rate = \"25Gbps\""), "{text}");
        assert!(with(6, 4).is_err() && with(0, 1).is_err() && with(6, 0).is_err());
    }
}
