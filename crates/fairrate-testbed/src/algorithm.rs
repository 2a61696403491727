//! The kernel's congestion controls for a run: its own, and those that `fairrate-kernel` loads into it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use fairrate_control::{AlgorithmConfig, Parameters as _, Profile};
use fairrate_sim::{EcnConfig, NodeId, SimConfig};
use fairrate_units::Rate;

use crate::blocks;
use crate::classes::{self, Classes};
use crate::failure::Failure;
use crate::namespaces::Namespaces;
use crate::plan::{Plan, device};

/// The program that loads algorithms into the kernel.
const PROGRAM: &str = "fairrate-kernel";
/// The environment variable by which tests give its path.
const VARIABLE: &str = "FAIRRATE_KERNEL";

/// The algorithms that kernels have, by their names in scenarios.
const OF_KERNELS: [(&str, &str); 3] = [("newreno", "reno"), ("cubic", "cubic"), ("bbr", "bbr")];

/// Bytes of PERC's control packet in a packet with data.
const PERC_RECORD: u64 = 28;

/// The names for `TCP_CONGESTION` of a run's algorithms, by stack.
pub type Names = BTreeMap<u8, String>;

/// Returns the kernel's name of the algorithm, if kernels have it.
pub fn of_kernel(cc: &AlgorithmConfig) -> Option<&'static str> {
    let name = cc.info().name;
    OF_KERNELS.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

/// Ensures that the kernel has the algorithms of all flows, at hosts and, where they have a part there, at switches;
/// returns their names. They are removed with the namespaces.
///
/// # Errors
/// If `fairrate-kernel` is needed and missing, or refuses.
pub fn bring(config: &SimConfig, plan: &Plan<'_>, namespaces: &Namespaces) -> Result<Names, Failure> {
    let all: Vec<(u8, &AlgorithmConfig)> = blocks::algorithms(config).collect();
    let of_ours = all.iter().map(|(_, cc)| *cc).filter(|cc| of_kernel(cc).is_none());
    let of_ours: Vec<&str> = of_ours.map(|cc| cc.info().name).collect();
    if !of_ours.is_empty() {
        // Recorded so that a later run can clean up after this one if it is killed.
        namespaces.note(&of_ours.join("\n"))?;
    }
    let is_alone = all.len() == 1;
    let name = |(stack, cc): (u8, &AlgorithmConfig)| {
        if let Some(name) = of_kernel(cc) {
            return Ok((stack, name.to_owned()));
        }
        let hosts = if is_alone { config.topology.hosts().collect() } else { blocks::hosts(config, stack) };
        Ok((stack, attach((stack, cc), config, plan, &hosts)?))
    };
    all.into_iter().map(name).collect()
}

/// Loads an algorithm into the kernel, for these hosts and all switches; returns its name.
fn attach(
    (stack, cc): (u8, &AlgorithmConfig),
    config: &SimConfig,
    plan: &Plan<'_>,
    hosts: &BTreeSet<NodeId>,
) -> Result<String, Failure> {
    let algorithm = with_parameters(cc);
    let mut attach = Command::new(program());
    attach.args(["attach", &algorithm, "--print-name"]).args(arguments((stack, cc), config, plan, hosts));
    let output = attach.output().map_err(|e| missing(&algorithm, &e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let message = format!("`{PROGRAM} attach {algorithm}` failed: {}", said.trim());
        return Err(Failure::Algorithm { message, help: kernels_own() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Removes an algorithm from namespaces, and from the kernel unless others use it.
///
/// # Errors
/// If `fairrate-kernel` is missing or refuses.
pub fn take_back(algorithm: &str, namespaces: &[String]) -> Result<(), Failure> {
    let doing = || format!("`{PROGRAM} detach {algorithm}`");
    let mut detach = Command::new(program());
    detach.args(["detach", algorithm, "--unused", "--force"]);
    detach.args(namespaces.iter().flat_map(|namespace| ["--netns", namespace]));
    let output = detach.output().map_err(|e| Failure::system(doing(), e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(Failure::system(doing(), said.trim())) }
}

/// Returns the arguments for the algorithm's places: the namespaces of hosts, and egress ports of switches with the
/// setting of its part there. For PERC hosts' links count as links.
fn arguments(
    (stack, cc): (u8, &AlgorithmConfig),
    config: &SimConfig,
    plan: &Plan<'_>,
    hosts: &BTreeSet<NodeId>,
) -> Vec<String> {
    let topology = &config.topology;
    let hosts = hosts.iter().flat_map(|&host| ["--netns".to_owned(), plan.namespace(host)]);
    let rate = topology.hosts().flat_map(|host| plan.ports(host)).map(|port| topology.link(port).rate).max();
    let rate = rate.into_iter().flat_map(|rate| ["--line-rate".to_owned(), format!("{}bps", rate.as_bps())]);
    let own = Classes::of(config).zip(classes::with_own_telemetry(config, stack));
    let class = own.and_then(|(classes, own)| classes.dscp(own)).map_or(String::new(), |dscp| format!("@{dscp}"));
    let nodes = plan.nodes().filter(|&node| !topology.is_host(node) || has_part_at_hosts_ports(cc));
    let ports = nodes.flat_map(|node| plan.ports(node).map(move |port| (node, port)));
    let ports = ports.filter_map(|(node, port)| {
        let setting = at_port(cc, config, topology.link(port).rate)?;
        let place = format!("{}/{}", plan.namespace(node), device(port));
        Some(["--switch-port".to_owned(), format!("{place}:{setting}{class}")])
    });
    hosts.chain(rate).chain(ports.flatten()).collect()
}

/// Returns the setting of the algorithm's part at a port of this rate; `None` if it has no part there.
fn at_port(cc: &AlgorithmConfig, config: &SimConfig, rate: Rate) -> Option<String> {
    match cc.info().name {
        "powertcp" | "rocc" | "perc" => Some(format!("{}bps", rate.as_bps())),
        "dctcp" => marks_at(config, |ecn| ecn.thresholds(rate).0),
        "ratemp" => marks_at(config, |ecn| ecn.thresholds(rate).1),
        _ => None,
    }
}

/// Returns an ECN threshold as an argument in bytes.
fn marks_at(config: &SimConfig, threshold: impl FnOnce(&EcnConfig) -> f64) -> Option<String> {
    Some(format!("{}B", threshold(config.fabric.ecn.as_ref()?) as u64))
}

/// Returns `true` if switches mark packets here: only if an algorithm has its own marker.
pub fn marks(config: &SimConfig) -> bool {
    config.fabric.ecn.is_some() && blocks::algorithms(config).any(|(_, cc)| has_marker(cc))
}

fn has_marker(cc: &AlgorithmConfig) -> bool {
    ["dctcp", "ratemp"].contains(&cc.info().name)
}

/// Returns `true` if the ports of switches write records for the algorithm, into packets of its hosts.
pub fn writes_records(cc: &AlgorithmConfig) -> bool {
    ["powertcp", "rocc", "perc"].contains(&cc.info().name)
}

/// Returns `true` if the algorithm's part at switches is at the ports of hosts too.
fn has_part_at_hosts_ports(cc: &AlgorithmConfig) -> bool {
    cc.info().name == "perc"
}

/// Returns the bytes of a full packet that the algorithm takes from the payload and counts for its rates.
pub fn record_bytes(cc: &AlgorithmConfig) -> u64 {
    if cc.info().name == "perc" { PERC_RECORD } else { 0 }
}

/// Returns `true` if the algorithm has a part at the ports of switches.
pub fn has_part_at_ports(cc: &AlgorithmConfig) -> bool {
    has_marker(cc) || writes_records(cc)
}

/// Returns `NAME:KEY=VALUE,...` with the parameters that differ from the defaults.
fn with_parameters(cc: &AlgorithmConfig) -> String {
    let name = cc.info().name;
    let defaults = AlgorithmConfig::by_name(name, Profile::Paper).map(|cc| cc.params()).unwrap_or_default();
    let other = |p: &fairrate_control::Param| !defaults.iter().any(|d| d.name == p.name && d.toml == p.toml);
    let changed: Vec<String> =
        cc.params().into_iter().filter(other).map(|p| format!("{}={}", p.name, p.toml.trim_matches('"'))).collect();
    if changed.is_empty() { name.to_owned() } else { format!("{name}:{}", changed.join(",")) }
}

/// Returns the path of the program: from the variable, beside this program, or by its name in PATH.
pub fn program() -> PathBuf {
    let said = std::env::var_os(VARIABLE).filter(|path: &OsString| !path.is_empty()).map(PathBuf::from);
    let beside = || std::env::current_exe().ok().map(|this| this.with_file_name(PROGRAM)).filter(|path| path.is_file());
    said.or_else(beside).unwrap_or_else(|| PathBuf::from(PROGRAM))
}

fn missing(algorithm: &str, error: &std::io::Error) -> Failure {
    let message =
        format!("this kernel does not have `{algorithm}`, and `{PROGRAM}`, which brings it, cannot be run: {error}");
    Failure::Algorithm { message, help: format!("build it beside this program, or {}", kernels_own()) }
}

fn kernels_own() -> String {
    let names: Vec<&str> = OF_KERNELS.iter().map(|(name, _)| *name).collect();
    format!("choose an algorithm that kernels have: {}", names.join(", "))
}
