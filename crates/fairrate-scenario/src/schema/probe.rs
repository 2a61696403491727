//! `[[probe]]`: the samples taken during the run.

use std::collections::{BTreeSet, HashMap};

use fairrate_sim::{FlowId, FlowSpec, NodeId, ProbeSpec};
use fairrate_text::one_of;
use fairrate_units::Time;

use super::names::{Names, NodeName, PortNames};
use super::traffic::hosts::host_names;
use crate::error::{Report, Site};
use crate::reader::{Field, Section, list};
use crate::tree::{Node, Value};

/// A probe that was read.
pub(super) struct Probe {
    what: What,
    every: Time,
}

impl Probe {
    /// Returns `true` if the probe measures the convergence of rates.
    pub fn is_convergence(&self) -> bool {
        matches!(self.what, What::Convergence(_))
    }

    fn is_rtts(&self) -> bool {
        matches!(self.what, What::Rtts)
    }
}

enum What {
    Ports(PortNames),
    Hosts(Vec<NodeName>),
    AllFlows,
    Flows(Vec<(u32, Site)>),
    Rtts,
    Convergence(Convergence),
    Nothing,
}

/// The conditions under which rates count as converged.
#[derive(Clone, Copy)]
struct Convergence {
    tolerance: f64,
    hold_rtts: u32,
    give_up_rtts: u32,
}

/// Reads all probes.
pub(super) fn read(root: &mut Section<'_>) -> Vec<Probe> {
    let (mut probes, mut out) = (Vec::new(), Vec::new());
    for mut s in root.children("probe") {
        let what = read_what(&mut s);
        if let What::Convergence(_) | What::Rtts = what {
            let help = "remove this `[[probe]]`";
            match what {
                What::Rtts if probes.iter().any(Probe::is_rtts) => {
                    s.problem_at("scenario::conflict", "rtts", "round-trip times are probed already", help);
                }
                What::Convergence(_) if probes.iter().any(Probe::is_convergence) => {
                    s.problem_at("scenario::conflict", "convergence", "convergence is probed already", help);
                }
                _ => {}
            }
            probes.push(Probe { what, every: Time::MAX });
            out.push(s.finish());
            continue;
        }
        // Queues every 1 us and flows every 10 us: the intervals of the ns-3 reference runs.
        let default =
            if matches!(what, What::Ports(_) | What::Hosts(_)) { Time::from_us(1) } else { Time::from_us(10) };
        let every: Field<Time> = s.get("every", default);
        if every.value < Time::from_ns(1) {
            s.problem_at(
                "scenario::out_of_range",
                "every",
                format!("`every` of {} is too short", every.value),
                "write for instance `every = \"1us\"`",
            );
        }
        probes.push(Probe { what, every: every.value });
        out.push(s.finish());
    }
    if !out.is_empty() {
        root.out.arrays.push(("probe".into(), out));
    }
    probes
}

fn read_what(s: &mut Section<'_>) -> What {
    let keys = ["queue", "queues", "host_rx", "flows", "rtts", "convergence"];
    let given: Vec<&str> = keys.into_iter().filter(|k| s.has(k)).collect();
    for key in keys {
        s.node(key);
    }
    match given.as_slice() {
        ["queue"] => match s.optional::<String>("queue") {
            Some(port) => What::Ports(PortNames::List(vec![(port.value, port.site)])),
            None => What::Nothing,
        },
        ["queues"] => What::Ports(PortNames::read(s, "queues", "ports")),
        ["host_rx"] => What::Hosts(host_names(s, "host_rx")),
        ["rtts"] => read_rtts(s),
        ["convergence"] => What::Convergence(read_convergence(s)),
        [_only] => read_flows(s),
        [] => {
            let help = "add for instance `queue = \"tor0->h0\"`, `queues = \"tor-downlinks\"`, `host_rx = \"h0\"`, `flows = \"all\"`, `rtts = true` or `convergence = true`";
            s.report.problem(
                "scenario::missing_key",
                s.anchor.site,
                "`[[probe]]` samples nothing",
                "no `queue`, `host_rx`, `flows`, `rtts` or `convergence` here",
                help,
            );
            What::Nothing
        }
        [_, second, ..] => {
            let message = format!("`[[probe]]` has both {}", one_of(&given).replace(" or ", " and "));
            s.problem_at("scenario::conflict", second, message, "write one `[[probe]]` for each");
            What::Nothing
        }
    }
}

/// Reads `flows = "all"` or `flows = [0, 1]`.
fn read_flows(s: &mut Section<'_>) -> What {
    if let Some(Node { value: Value::Array(items), .. }) = s.node("flows") {
        let mut flows = Vec::new();
        for node in items {
            match &node.value {
                Value::Integer(n) if u32::try_from(*n).is_ok() => flows.push((*n as u32, node.site)),
                other => {
                    let message = format!("expected the number of a flow, found {}", other.describe());
                    s.report.problem(
                        "scenario::wrong_type",
                        node.site,
                        message,
                        "`flows`",
                        "write `flows = [0, 1]` or `flows = \"all\"`",
                    );
                }
            }
        }
        s.out.push("flows", list(flows.iter().map(|f| f.0.to_string())));
        return What::Flows(flows);
    }
    if !matches!(s.node("flows"), Some(Node { value: Value::Text(_), .. })) {
        s.problem_at(
            "scenario::wrong_type",
            "flows",
            "expected flows to sample",
            "write `flows = [0, 1]` or `flows = \"all\"`",
        );
        return What::Nothing;
    }
    s.choice("flows", &[("all", ())], ());
    What::AllFlows
}

/// Reads `rtts = true`.
fn read_rtts(s: &mut Section<'_>) -> What {
    if !s.get("rtts", true).value {
        let help = "write `rtts = true`, or remove this `[[probe]]`";
        s.problem_at("scenario::out_of_range", "rtts", "a probe that is switched off", help);
    }
    What::Rtts
}

/// Reads `convergence = true` and the conditions of convergence. Their defaults are those of PERC section 4.2, which
/// does not say when to give up.
fn read_convergence(s: &mut Section<'_>) -> Convergence {
    if !s.get("convergence", true).value {
        let help = "write `convergence = true`, or remove this `[[probe]]`";
        s.problem_at("scenario::out_of_range", "convergence", "a probe that is switched off", help);
    }
    let tolerance = s.get("tolerance", 0.1).value;
    if !(0.0 < tolerance && tolerance < 1.0) {
        let help = "write a fraction of the optimal rate, as `tolerance = 0.1`";
        let message = format!("`tolerance = {tolerance}` is out of range");
        s.problem_at("scenario::out_of_range", "tolerance", message, help);
    }
    let hold_rtts = s.get("hold_rtts", 10).value;
    let give_up_rtts = s.get("give_up_rtts", 1_000).value;
    if give_up_rtts <= hold_rtts {
        let key = if s.has("give_up_rtts") { "give_up_rtts" } else { "hold_rtts" };
        let message = format!("rates must hold for {hold_rtts} RTTs, but are given up after {give_up_rtts}");
        s.problem_at("scenario::conflict", key, message, "let `give_up_rtts` be above `hold_rtts`");
    }
    Convergence { tolerance, hold_rtts, give_up_rtts }
}

/// Finds the ports and flows of all probes.
pub(super) fn build(report: &Report, probes: &[Probe], names: &Names<'_>, flows: &[FlowSpec]) -> Vec<ProbeSpec> {
    probes.iter().map(|p| build_one(report, p, names, flows)).collect()
}

fn build_one(report: &Report, probe: &Probe, names: &Names<'_>, flows: &[FlowSpec]) -> ProbeSpec {
    let every = probe.every;
    match &probe.what {
        What::Ports(ports) => ProbeSpec::Ports { ports: ports.find(names, report), every },
        What::Hosts(hosts) => {
            let hosts: BTreeSet<NodeId> = hosts.iter().flat_map(|host| names.hosts(host, report)).collect();
            ProbeSpec::Hosts { hosts: hosts.into_iter().collect(), every }
        }
        What::Rtts => ProbeSpec::Rtts,
        &What::Convergence(Convergence { tolerance, hold_rtts, give_up_rtts }) => {
            ProbeSpec::Convergence { tolerance, hold_rtts, give_up_rtts }
        }
        What::AllFlows | What::Nothing => ProbeSpec::Flows { flows: None, every },
        What::Flows(wanted) => ProbeSpec::Flows { flows: Some(find_flows(report, wanted, flows)), every },
    }
}

/// Returns the flows with these ids.
fn find_flows(report: &Report, wanted: &[(u32, Site)], flows: &[FlowSpec]) -> Vec<FlowId> {
    let has_ids = flows.iter().any(|flow| flow.id != FlowSpec::NO_ID);
    let by_id: HashMap<u32, FlowId> = if has_ids {
        (0..).map(FlowId).zip(flows).map(|(at, flow)| (flow.name(at), at)).collect()
    } else {
        HashMap::new()
    };
    let find =
        |id: u32| if has_ids { by_id.get(&id).copied() } else { Some(FlowId(id)).filter(|f| f.index() < flows.len()) };
    let unknown = |id: u32, site: Site| {
        let help = match flows.first() {
            Some(first) if has_ids => format!("flows have the ids of their list, such as {}", first.name(FlowId(0))),
            _ => format!("flows are numbered from 0 to {}", flows.len().saturating_sub(1)),
        };
        report.problem("scenario::unknown_flow", site, format!("there is no flow {id}"), "unknown flow", help);
    };
    let found = wanted.iter().filter_map(|&(id, site)| {
        find(id).or_else(|| {
            unknown(id, site);
            None
        })
    });
    found.collect()
}
