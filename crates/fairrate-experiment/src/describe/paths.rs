//! The choice among paths, and the faults of links.

use std::collections::BTreeSet;

use fairrate_sim::routing::Routes;
use fairrate_sim::topology::Topology;
use fairrate_sim::{
    Adaptive, Balance, FaultConfig, FaultPackets, PortId, Recovery, SimConfig, SubflowPaths, Transport,
};
use fairrate_units::Time;
use serde::Serialize;

use super::load::subflows;

/// Largest number of links of a fault that are named.
const MAX_NAMED: usize = 3;

/// The choice among equal paths, and its meaning for the transport.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Routing {
    /// Name of the scheme, as `balance` in `[routing]`.
    pub balance: &'static str,
    /// `true` if there are several shortest paths between some hosts.
    pub has_choice: bool,
    /// `true` if packets of a flow may overtake each other.
    pub has_disorder: bool,
    /// The meaning for flows and receivers, in words.
    pub meaning: String,
}

/// A `[[fault]]` block.
#[derive(Debug, PartialEq, Serialize)]
pub struct Fault {
    /// Number of links found.
    pub links: usize,
    /// Number of directions of these links.
    pub directions: usize,
    /// The first links, as `from->to`.
    pub first: Vec<String>,
    /// The packets that are lost, damaged, repeated or late: `all`, `data`, `acks` or `control`.
    pub packets: &'static str,
    /// Effects on packets and the time in which they happen, in words; empty if links only go down.
    pub effects: Vec<String>,
    /// Times at which the links go down and come up, in microseconds; `None`: they never do.
    pub down_us: Option<f64>,
    /// The time at which they come up.
    pub up_us: Option<f64>,
    /// Time from one failure to the next.
    pub period_us: Option<f64>,
    /// Time from which no link goes down any more.
    pub last_us: Option<f64>,
}

/// Returns the choice among paths.
pub(super) fn routing(config: &SimConfig, routes: &Routes) -> Routing {
    let balance = config.fabric.balance;
    let has_choice = routes.has_choice();
    let has_disorder = has_choice && config.may_reorder();
    let (taker, ports) = takers(config);
    let hashed = |how: &str| format!("each {taker} by a hash{how}{ports}, and its packets stay in order");
    let (balance, rule) = match balance {
        Balance::Ecmp => ("ecmp", hashed("")),
        Balance::Wcmp => ("wcmp", hashed(" in proportion to capacities")),
        Balance::Host => {
            ("host", format!("hosts choose paths by the values that their packets carry{}", entropy(config)))
        }
        Balance::Spray => ("spray", "each packet takes a port at random".to_owned()),
        Balance::RoundRobin => ("round-robin", "packets take the ports in turn".to_owned()),
        Balance::Flowlet { gap } => {
            ("flowlet", format!("a flow changes its path after a pause of {gap}, which seldom costs its order"))
        }
        Balance::Conga(conga) => (
            "conga",
            format!("after a pause of {} a flow takes the least loaded path, which seldom costs its order", conga.gap),
        ),
        Balance::Adaptive(Adaptive { sticky: Some(sticky), .. }) => {
            ("adaptive", format!("a flow takes the port with the least load, and may move after a pause of {sticky}"))
        }
        Balance::Adaptive(_) => ("adaptive", "each packet takes the port with the least load".to_owned()),
        Balance::Drill { .. } => ("drill", "each packet takes the best of a few ports".to_owned()),
    };
    let meaning = match (has_choice, has_disorder) {
        (false, _) => "there is one shortest path between any two hosts".to_owned(),
        (true, false) => rule,
        (true, true) => format!("{rule}; packets of a flow overtake each other, and {}", receivers(config)),
    };
    Routing { balance, has_choice, has_disorder, meaning }
}

/// Returns the flows or subflows that take one path each, with the verb, and how subflows choose their ports.
fn takers(config: &SimConfig) -> (&'static str, &'static str) {
    let all: Vec<_> = config.flows.iter().filter_map(|flow| subflows(config, flow)).collect();
    let n_disjoint = all.iter().filter(|(_, paths)| *paths == SubflowPaths::Disjoint).count();
    let taker = match all.len() {
        0 => "flow takes one path",
        n if n == config.flows.len() => "subflow takes one path of its own",
        _ => "flow, or each of its subflows, takes one path of its own",
    };
    let ports = match n_disjoint {
        0 => "",
        n if n == all.len() => " with ports for few shared links",
        _ => " with ports for few shared links in some blocks",
    };
    (taker, ports)
}

/// Returns the rule by which hosts choose paths, in brackets.
fn entropy(config: &SimConfig) -> String {
    config.transport.entropy.map_or_else(String::new, |entropy| format!(" (`entropy = \"{}\"`)", entropy.scheme.name()))
}

/// Returns what receivers make of packets out of order.
fn receivers(config: &SimConfig) -> String {
    let transport = &config.transport;
    match (transport.kind, transport.recovery) {
        _ if config.cc.needs().feedback.grants.is_some() => "receivers put them in order".to_owned(),
        (Transport::Uet { .. }, _) => "UET's receivers take them in any order".to_owned(),
        (Transport::Tcp(_), _) => "TCP tells disorder from loss by time".to_owned(),
        (_, Recovery::GoBackN) => {
            "go-back-N discards what is out of order and sends it again; `transport.recovery` and `reorder_window` change that".to_owned()
        }
        (_, Recovery::SelectiveRepeat) if transport.reorder_window == Time::ZERO => {
            "receivers report every gap as a loss at once (`reorder_window` is 0)".to_owned()
        }
        _ => format!("receivers wait for {} (`reorder_window`) before they report a gap", transport.reorder_window),
    }
}

/// Returns the `[[fault]]` blocks, in their order.
pub(super) fn faults(config: &SimConfig) -> Vec<Fault> {
    config.faults.iter().map(|fault| of_fault(fault, &config.topology)).collect()
}

fn of_fault(fault: &FaultConfig, topology: &Topology) -> Fault {
    let name = |port: &PortId| topology.port_name(*port);
    // A link's two ports are numbers in a row.
    let link = |port: &PortId| port.index() / 2;
    let us = |time: Time| (time != Time::MAX).then(|| time.as_secs_f64() * 1e6);
    let flap = fault.flap;
    let mut links = BTreeSet::new();
    let first_ways: Vec<PortId> = fault.ports.iter().copied().filter(|port| links.insert(link(port))).collect();
    Fault {
        links: links.len(),
        directions: fault.ports.len(),
        first: first_ways.iter().take(MAX_NAMED).map(name).collect(),
        packets: match fault.packets {
            FaultPackets::All => "all",
            FaultPackets::Data => "data",
            FaultPackets::Acks => "acks",
            FaultPackets::Control => "control",
        },
        effects: effects(fault),
        down_us: flap.and_then(|flap| us(flap.down_at)),
        up_us: flap.and_then(|flap| us(flap.up_at)),
        period_us: flap.and_then(|flap| flap.period).and_then(us),
        last_us: flap.and_then(|_| us(fault.stop)),
    }
}

/// Returns the effects of a fault on packets, in words, and the time in which they happen.
fn effects(fault: &FaultConfig) -> Vec<String> {
    let mut all = Vec::new();
    let share = |p: f64| format!("{} %", (p * 1e8).round() / 1e6);
    for (p, what) in [(fault.loss, "lost"), (fault.corrupt, "damaged"), (fault.duplicate, "repeated")] {
        if 0.0 < p {
            all.push(format!("{} {what}", share(p)));
        }
    }
    if fault.rate != 1.0 {
        all.push(format!("at {} of the rate", share(fault.rate)));
    }
    if let Some(burst) = fault.burst {
        let (bad, good) = (burst.bad_packets, burst.good_packets);
        all.push(format!("{} lost in bursts of {bad} packets, {good} packets apart", share(burst.loss)));
    }
    if 0.0 < fault.reorder {
        all.push(format!("{} late by {}", share(fault.reorder), fault.reorder_delay));
    }
    if fault.jitter != Time::ZERO {
        all.push(format!("each late by up to {}", fault.jitter));
    }
    if !all.is_empty() && (fault.start, fault.stop) != (Time::ZERO, Time::MAX) {
        let until = if fault.stop == Time::MAX { String::new() } else { format!(" until {}", fault.stop) };
        all.push(format!("from {}{until}", fault.start));
    }
    all
}
