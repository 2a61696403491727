//! An estimate, made before a run, of the number of packets that arrive in a span, which decides if spans pay.

use super::flow::Flow;
use super::run::Constants;
use crate::config::{ClockRule, SimConfig};
use crate::fabric::tx_time_ps;
use crate::ids::PortId;
use crate::table::Table;
use crate::topology::Tier;

/// The ratio of spans to packets of a switch above which spans do not pay. In the jobs of `fairrate bench`,
/// permutations and web search are expected to have up to 0.4 and gain; incasts are expected to have 0.7 and lose.
const MOST_SPANS: f64 = 0.5;

/// Estimates the number of packets that `flow` puts onto each link of its path.
pub(super) fn expected_packets(flow: &Flow, constants: &Constants) -> u64 {
    /// Number of packets assumed for a flow without end.
    const ENDLESS: u64 = 10_000;
    if flow.is_endless() { ENDLESS } else { flow.bytes.div_ceil(constants.mtu) }
}

/// Returns `true` if switches are expected to have several packets in most spans. `loads` is the number of packets that
/// each port sends.
///
/// A span begins with a packet, and has as many more as arrive in its length at the mean rate of the run. The mean is
/// taken over the shortest time the run can take.
pub(super) fn is_dense(config: &SimConfig, loads: &Table<PortId, u64>, constants: &Constants) -> bool {
    let topology = &config.topology;
    let mut delays_ps = vec![u64::MAX; topology.nodes.len()];
    let mut of_nodes = vec![0_u64; topology.nodes.len()];
    for link in &topology.links {
        for node in [link.a, link.b] {
            let delay_ps = &mut delays_ps[node.index()];
            *delay_ps = link.delay.as_ps().min(*delay_ps);
        }
    }
    for (port, &packets) in loads.numbered() {
        let load = &mut of_nodes[topology.from(port).index()];
        *load = load.saturating_add(packets);
    }
    let time_ps = shortest_time_ps(config, loads, constants) as f64;
    let (mut spans, mut packets) = (0.0, 0.0);
    for ((node, &load), &delay_ps) in topology.nodes.iter().zip(&of_nodes).zip(&delays_ps) {
        if node.tier != Tier::Host {
            // Every packet has an acknowledgment.
            let more = 2.0 * load as f64 * delay_ps as f64 / time_ps;
            spans += load as f64 / (1.0 + more);
            packets += load as f64;
        }
    }
    spans < MOST_SPANS * packets
}

/// Returns the shortest time that the run can take, in picoseconds: until the last flow has started, and until the
/// busiest port has sent all its packets.
pub(super) fn shortest_time_ps(config: &SimConfig, loads: &Table<PortId, u64>, constants: &Constants) -> u64 {
    let wire_mtu = constants.wire_mtu;
    let rate = |port: PortId| config.topology.link(port).rate;
    let busiest =
        loads.numbered().map(|(port, &n)| tx_time_ps(rate(port), wire_mtu, ClockRule::Picoseconds).saturating_mul(n));
    let last_start = config.flows.iter().map(|flow| flow.start.as_ps()).filter(|&start| start < u64::MAX).max();
    let end_ps = config.stop.at.map_or(u64::MAX, fairrate_units::Time::as_ps);
    busiest.max().max(last_start).unwrap_or(0).min(end_ps).max(1)
}
