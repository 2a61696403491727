//! The network without traffic: what a round trip takes, and what that leaves for the delay of a link.

use fairrate_sim::ideal::{Framing, Hop, ideal_fct, path_base_rtt};
use fairrate_sim::{PortId, SimConfig};
use fairrate_units::{Bytes, Time};

use crate::field::{HEADER, MSS};
use crate::paths::Ways;

/// Sizes of packets on the wire.
const FRAMING: Framing = Framing { mtu: Bytes::new(MSS), header: Bytes::new(HEADER), ack: Bytes::new(HEADER) };

fn hops(config: &SimConfig, ports: &[PortId]) -> Vec<Hop> {
    ports.iter().map(|port| Hop::single(config.topology.link(*port))).collect()
}

/// The delay of each link that explains the round-trip times of flows: their median. A token bucket lets a packet through at once
/// that finds it full; a link of the simulator takes the time of serialisation. What that is more than was measured cannot be taken
/// away: the delay is zero then.
pub fn link_delay(config: &SimConfig, ways: &Ways, rtts: &[Time]) -> Time {
    let without_delay = |ports: &[PortId]| {
        hops(config, ports).into_iter().map(|hop| Hop { delay: Time::ZERO, ..hop }).collect::<Vec<_>>()
    };
    let of_flow = |((there, back), rtt): (&(Vec<PortId>, Vec<PortId>), &Time)| {
        let serialised = path_base_rtt(config.fabric.clock, &without_delay(there), &without_delay(back), FRAMING);
        let links = (there.len() + back.len()).max(1) as u64;
        Time::from_ns(rtt.saturating_sub(serialised).as_ns() / links)
    };
    median(ways.ports.iter().zip(rtts).map(of_flow).collect())
}

/// Of each flow, the time that it takes alone.
pub fn ideal_fcts(config: &SimConfig, ways: &Ways) -> Vec<Time> {
    let of_flow = |(flow, (there, _)): (&fairrate_sim::FlowSpec, &(Vec<PortId>, Vec<PortId>))| {
        if flow.bytes == Bytes::MAX {
            return Time::ZERO;
        }
        ideal_fct(config.fabric.clock, &hops(config, there), FRAMING, flow.bytes)
    };
    config.flows.iter().zip(&ways.ports).map(of_flow).collect()
}

/// The middle one; zero of none.
pub fn median(mut times: Vec<Time>) -> Time {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Time::ZERO)
}
