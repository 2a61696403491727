//! Features of a scenario that the testbed cannot do, or leaves out.

use fairrate_scenario::Scenario;
use fairrate_sim::{NonEct, Pfc, QueueRule, SimConfig, Transport, Trigger};
use fairrate_units::{Bytes, Rate, Time};

use crate::algorithm::marks;
use crate::blocks;
use crate::classes;
use crate::delay;
use crate::failure::Failure;
use crate::field::FULL_PACKET;
use crate::paths::{Ways, n_subflows};
use crate::plan::MOST_SUBFLOWS;

/// Largest number of namespaces: a machine of a few cores does not forward for more.
const MOST_NODES: usize = 250;
/// Largest number of connections; each has two sockets.
const MOST_FLOWS: usize = 10_000;
/// Largest rate that token buckets keep on a machine of a few cores.
const FASTEST: Rate = Rate::from_gbps(2);
/// Largest memory for the packets on links with a delay of their own.
const MOST_KEPT: Bytes = Bytes::new(1_000_000_000);

/// Checks that the workload and the network on the testbed would be those of the scenario.
///
/// # Errors
/// The first feature that the testbed cannot do, with an alternative.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    let config = scenario.sim_config();
    let network = unfit_network(config);
    match network.or_else(|| unfit_flows(config)) {
        Some((what, help)) => Err(Failure::Unfit { scenario: scenario.name().to_owned(), what, help }),
        None => Ok(()),
    }
}

type Problem = (String, String);

fn problem(what: impl Into<String>, help: impl Into<String>) -> Problem {
    (what.into(), help.into())
}

fn unfit_network(config: &SimConfig) -> Option<Problem> {
    let topology = &config.topology;
    if topology.circuits.is_some() {
        return Some(problem("circuits that come and go are not laid out", "choose another topology than `rdcn`"));
    }
    if !config.faults.is_empty() {
        return Some(problem(
            "its links have faults",
            "leave out `[[fault]]`; this network loses only what finds no room",
        ));
    }
    if !config.hosts.is_empty() {
        return Some(problem("its hosts are not ideal in the ways that it says", "leave out `[host]` and `[[host]]`"));
    }
    if config.fabric.buffer_per.is_some() {
        return Some(problem("its buffers go by the rates of ports", "leave out `buffer_per`"));
    }
    if config.fabric.balance.is_by_packet() {
        return Some(problem("packets choose their paths one by one", "set `balance = \"ecmp\"` in `[routing]`"));
    }
    if config.allocator.is_some() {
        return Some(problem("its algorithm has a central allocator", "choose another `cc`"));
    }
    if topology.servers.is_some() {
        return Some(problem("its servers have scale-up networks", "write `scale_up = false` in `[topology]`"));
    }
    if !topology.second_ports.are_none() {
        return Some(problem("its hosts have two ports", "write `kind = \"rail\"` in `[topology]`"));
    }
    if MOST_NODES < topology.nodes.len() {
        let n = topology.nodes.len();
        return Some(problem(format!("{n} hosts and switches are too many"), format!("take at most {MOST_NODES}")));
    }
    let fastest = topology.links.iter().map(|link| link.rate).max()?;
    if FASTEST < fastest {
        let scale = 1e9 / fastest.as_bps_f64();
        let help = format!("add `--scale {scale:.0e}`, which brings it to 1 Gb/s: rates change, sizes and times stay");
        return Some(problem(format!("a link of {fastest} is too fast for namespaces"), help));
    }
    let kept = topology.links.iter().filter(|link| delay::is_laid_out(link.delay)).map(delay::memory);
    let kept = kept.fold(Bytes::ZERO, |sum, bytes| sum + bytes);
    if MOST_KEPT < kept {
        let kept = kept.as_u64().div_ceil(1_000_000);
        let what = format!("keeping packets for the delays of its links takes {kept} MB of memory");
        return Some(problem(
            what,
            format!("lower rates (`--scale`) or delays until it is {} MB at most", MOST_KEPT.as_u64() / 1_000_000),
        ));
    }
    let n_hosts_off_switches =
        topology.links.iter().filter(|link| [link.a, link.b].iter().all(|end| topology.is_host(*end))).count();
    (0 < n_hosts_off_switches).then(|| problem("a link joins two hosts", "put a switch between them"))
}

fn unfit_flows(config: &SimConfig) -> Option<Problem> {
    if MOST_FLOWS < config.flows.len() {
        let n = config.flows.len();
        let help = format!("take at most {MOST_FLOWS}: shorten `duration`, or set `max_flows`");
        return Some(problem(format!("{n} flows are too many"), help));
    }
    if let Some(problem) = unfit_subflows(config) {
        return Some(problem);
    }
    if let Transport::Tcp(tcp) = config.transport.kind
        && tcp.handshake
    {
        return Some(problem(
            "its flows begin with a handshake",
            "set `handshake = false`: connections stand before the start",
        ));
    }
    if !config.changes.is_empty() {
        return Some(problem("its flows wait until rates have converged", "give flows a `start` and a `stop`"));
    }
    config.flows.iter().find_map(|flow| {
        if flow.burst.is_some() {
            return Some(problem("a flow writes in bursts", "leave out `burst` and `pause`"));
        }
        if flow.demand != Rate::MAX {
            return Some(problem("the application of a flow offers a limited rate", "leave out `demand`"));
        }
        match flow.trigger {
            Trigger::Time | Trigger::After(..) => None,
            Trigger::Change => Some(problem("a flow waits until rates have converged", "give flows a `start`")),
            Trigger::Dependencies => Some(problem(
                "a flow waits for others, as in a collective, a job, or a list with `after`",
                "give flows times of their own; `fairrate run` simulates such traffic",
            )),
        }
    })
}

/// Checks the subflows: a receiver announces all of its addresses to every sender, and a sender makes a subflow to
/// each.
fn unfit_subflows(config: &SimConfig) -> Option<Problem> {
    let most = MOST_SUBFLOWS + 1;
    let n = config.flows.iter().map(|flow| n_subflows(config, flow)).max().filter(|&n| 1 < n)?;
    if most < n {
        return Some(problem(format!("{n} subflows are more than Linux makes"), format!("take at most {most}")));
    }
    let ways = Ways::new(config);
    let flows = ways.ends.iter().zip(&ways.more).filter(|(_, more)| !more.is_empty());
    let mut unlike = flows.filter(|(first, more)| ways.announced_by(first.dst.host).len() != more.len() + 1);
    let (first, _) = unlike.next()?;
    let name = &config.topology.nodes[first.dst.host.index()].name;
    let help = "let subflows have paths of their own (`paths = \"disjoint\"`), the same for all flows to a host, and as many for each";
    Some(problem(
        format!("subflows of one flow to {name} share a path, or those of two flows have different ones"),
        help,
    ))
}

/// Returns notes on features of the scenario that the testbed does in another way. The effective scenario has the
/// actual values.
pub fn notes(scenario: &Scenario) -> Vec<String> {
    let config = scenario.sim_config();
    let mut notes = Vec::new();
    let mut note = |holds: bool, text: &str| {
        if holds {
            notes.push(text.to_owned());
        }
    };
    note(config.transport.kind == Transport::Rdma, "the scenario's hosts use RDMA; here they use TCP");
    note(config.fabric.pfc != Pfc::Off, "links do not pause (PFC); what finds no room is dropped");
    let thresholds = config.fabric.ingress_alpha.is_some() || config.fabric.egress_alpha.is_some();
    note(
        thresholds && !classes::have_weights(config),
        "every egress port has a limit of its own; buffers are not shared by Dynamic Thresholds",
    );
    note(config.fabric.queue.rule != QueueRule::Fifo, "queues are first in, first out");
    note(config.fabric.queue.limit_packets != u32::MAX, "queues are limited in bytes, and not in packets");
    note(config.fabric.ecn.is_some() && !marks(config), "switches do not mark (ECN)");
    let are_several = 1 < blocks::algorithms(config).count();
    let is_passed = config.fabric.ecn.as_ref().is_some_and(|ecn| ecn.non_ect == NonEct::Ignore);
    note(are_several && marks(config) && !is_passed, "packets that cannot be marked pass");
    for text in classes::notes(config) {
        note(true, text);
    }
    note(config.flows.iter().any(|flow| flow.weight != 1.0), "weights have no effect");
    let is_multipath = config.flows.iter().any(|flow| 1 < n_subflows(config, flow));
    note(is_multipath, "who of the subflows takes the next data is Linux's choice, and not the scenario's `scheduler`");
    let limit = crate::field::port_limit(config);
    note(limit < Bytes::new(2 * FULL_PACKET), "a queue has room for less than two packets");
    let delays = config.topology.links.iter().map(|link| link.delay);
    let short = delays.filter(|delay| *delay != Time::ZERO && !delay::is_laid_out(*delay)).max();
    notes.extend(short.map(|short| {
        let least = delay::LEAST;
        format!("delays below {least} are too short to be laid out, as {short} is: such links have the kernel's, which was measured")
    }));
    notes
}
