//! The load that flows offer to sets of links.

use std::collections::BTreeSet;

use fairrate_sim::routing::{FlowKey, Routes, subflow_keys};
use fairrate_sim::topology::Topology;
use fairrate_sim::{FlowSpec, PortId, SimConfig, SubflowPaths, Transport, Trigger, message_groups};
use fairrate_units::{Bytes, Time};
use serde::Serialize;

/// The load that finite flows offer to a set of ports between the first start and the last, in shares of their rates.
/// The headers of each packet count, acknowledgments do not; tables of runs have the load of the payload alone. Flows
/// whose starts are not known are left out: see [`LeftOut`].
#[derive(Debug, PartialEq, Serialize)]
pub struct Load {
    /// Name of the set.
    pub links: String,
    /// Load of the whole set.
    pub mean: f64,
    /// Load of the port with the most, on the paths that flows' hashes choose; `None` where packets choose their paths.
    pub most: Option<f64>,
    /// Its name.
    pub most_at: Option<String>,
}

/// The flows of a traffic block that [`Load`] leaves out, as they start when others have ended.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Number of the block.
    pub group: u32,
    /// Number of its finite flows that are left out.
    pub flows: usize,
    /// Number of its finite flows.
    pub of: usize,
}

/// Returns the finite flows whose starts are known, and the others by traffic block. Of a list, flows are left out one
/// by one. Of closed loops, collective operations and jobs all are, as those with a time are only their beginning.
pub(super) fn arrivals(config: &SimConfig) -> (Vec<&FlowSpec>, Vec<LeftOut>) {
    let finite = || config.flows.iter().filter(|flow| flow.bytes != Bytes::MAX);
    let waiting = || finite().filter(|flow| flow.trigger != Trigger::Time);
    let messages = message_groups(&config.collectives, &config.jobs);
    let is_of_loop = |flow: &&FlowSpec| flow.trigger != Trigger::Dependencies || messages.contains(&flow.group);
    let whole: BTreeSet<u32> = waiting().filter(is_of_loop).map(|flow| flow.group).collect();
    let is_known = |flow: &FlowSpec| flow.trigger == Trigger::Time && !whole.contains(&flow.group);
    let groups: BTreeSet<u32> = waiting().map(|flow| flow.group).collect();
    let mut left_out: Vec<LeftOut> = groups.iter().map(|&group| LeftOut { group, flows: 0, of: 0 }).collect();
    for flow in finite() {
        if let Ok(at) = left_out.binary_search_by_key(&flow.group, |left| left.group) {
            left_out[at].of += 1;
            left_out[at].flows += usize::from(!is_known(flow));
        }
    }
    (finite().filter(|flow| is_known(flow)).collect(), left_out)
}

/// Returns the bytes of the headers of a finite flow's packets. A packet that is not full has as many as a full one.
fn header_bytes(config: &SimConfig, flow: &FlowSpec) -> f64 {
    let (transport, cc) = config.stack(flow.stack);
    let packets = flow.bytes.as_u64().div_ceil(transport.mtu.as_u64().max(1));
    packets as f64 * transport.data_header(&cc.needs()).as_f64()
}

/// Returns the headers of `flows` in shares of their payload; `None` without payload.
pub(super) fn headers(config: &SimConfig, flows: &[&FlowSpec]) -> Option<f64> {
    let payload: f64 = flows.iter().map(|flow| flow.bytes.as_f64()).sum();
    let headers: f64 = flows.iter().map(|flow| header_bytes(config, flow)).sum();
    (0.0 < payload).then(|| headers / payload)
}

/// Returns the number of subflows of a flow, and the rule for their paths; `None` if the flow has no subflows.
pub(super) fn subflows(config: &SimConfig, flow: &FlowSpec) -> Option<(u16, SubflowPaths)> {
    let Transport::Tcp(tcp) = config.stack(flow.stack).0.kind else { return None };
    let n = flow.subflows.unwrap_or(tcp.multipath.subflows);
    (1 < n).then_some((n.into(), tcp.multipath.paths))
}

/// Returns the keys of a flow's paths, as the simulator chooses them: one for each subflow.
fn keys(config: &SimConfig, routes: &Routes, flow: &FlowSpec) -> Vec<FlowKey> {
    match subflows(config, flow) {
        Some((n, paths)) => subflow_keys(config, routes, flow, paths, n),
        None => vec![FlowKey::of(flow)],
    }
}

/// Returns `true` if circuits carry a part of what goes to a set of ports: the hashes of flows do not say which part.
fn has_circuits(topology: &Topology, ports: &[PortId]) -> bool {
    topology.circuits.as_ref().is_some_and(|circuits| {
        ports.iter().any(|port| topology.to(*port) == circuits.core || topology.from(*port) == circuits.core)
    })
}

/// Returns the names of the sets of ports that have no [`Load`], as circuits carry a part of it.
pub(super) fn beside_circuits(topology: &Topology) -> Vec<String> {
    let sets = topology.link_sets.iter().filter(|(name, ports)| is_shown(name) && has_circuits(topology, ports));
    sets.map(|(name, _)| name.clone()).collect()
}

/// Returns `true` if a set of links is no union of others, and no set of circuits.
fn is_shown(set: &str) -> bool {
    set != "all-switch-links" && set != "circuits"
}

/// Returns the load that `flows` offer to each set of ports; none if all flows start at once. The bytes of a flow are
/// spread evenly over the paths of its subflows.
pub(super) fn loads(config: &SimConfig, routes: &Routes, flows: &[&FlowSpec]) -> Vec<Load> {
    let topology = &config.topology;
    let starts = || flows.iter().map(|flow| flow.start);
    let span = starts().max().unwrap_or_default().saturating_sub(starts().min().unwrap_or_default());
    if span == Time::ZERO {
        return Vec::new();
    }
    let span_s = span.as_secs_f64();
    let by_flow = !config.fabric.balance.is_by_packet();
    let (mut bits, mut path) = (vec![0.0; topology.n_ports()], Vec::new());
    for flow in flows {
        let on_the_wire = flow.bytes.as_f64() + header_bytes(config, flow);
        let keys = keys(config, routes, flow);
        for key in &keys {
            path.clear();
            routes.path(config.fabric.ecmp, config.seed, *key, &mut path);
            for port in &path {
                bits[port.index()] += on_the_wire * 8.0 / keys.len() as f64;
            }
        }
    }
    let load = |(name, ports): (&String, &Vec<PortId>)| {
        let all: f64 = ports.iter().map(|port| bits[port.index()]).sum();
        let of_port = |port: &PortId| bits[port.index()] / topology.link(*port).rate.as_bps_f64() / span_s;
        let most = ports.iter().max_by(|a, b| of_port(a).total_cmp(&of_port(b))).filter(|_| by_flow);
        Load {
            links: name.clone(),
            mean: all / topology.capacity_bps(ports) / span_s,
            most: most.map(of_port),
            most_at: most.map(|port| topology.port_name(*port)),
        }
    };
    let is_known = |(name, ports): &(&String, &Vec<PortId>)| is_shown(name) && !has_circuits(topology, ports);
    topology.link_sets.iter().filter(is_known).map(load).collect()
}
