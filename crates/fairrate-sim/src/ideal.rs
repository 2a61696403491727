//! What an idle network would do: serialisation times, the time of a flow alone, base round-trip times.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{BaseRttRule, ClockRule};
use crate::ids::PortId;
use crate::routing::Routes;
use crate::topology::Topology;

/// Sizes of packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Payload of a full packet.
    pub mtu: Bytes,
    /// Everything a data packet has beside its payload, telemetry included.
    pub header: Bytes,
    /// An acknowledgment, telemetry included.
    pub ack: Bytes,
}

/// One link of a path, in the direction of travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its capacity.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Time,
}

/// How long `bytes` take at `rate`.
pub fn tx_time(clock: ClockRule, rate: Rate, bytes: Bytes) -> Time {
    match clock {
        ClockRule::Picoseconds => rate.tx_time(bytes),
        ClockRule::WholeNanoseconds => rate.tx_time(bytes).floor_to_ns(),
    }
}

/// From the start of a flow to its last byte at the receiver, if it is alone, sends at line rate and every node
/// stores packets before it forwards them.
///
/// The last packet leaves a hop when it has come in and the train of full packets before it has gone. So the
/// time is the longest way through the grid of (packet, hop) from the first packet at the first hop to the last
/// packet at the last: along the hops with one full packet up to some hop k, waiting for the other full packets
/// at the slowest hop on that way, then on with the last packet from hop k.
pub fn ideal_fct(clock: ClockRule, path: &[Hop], framing: Framing, bytes: Bytes) -> Time {
    let mtu = framing.mtu.as_u64().max(1);
    let full_packets = bytes.as_u64().saturating_sub(1) / mtu;
    let rest = Bytes::new(bytes.as_u64() - full_packets * mtu);
    let full = |hop: &Hop| u128::from(tx_time(clock, hop.rate, framing.mtu + framing.header).as_ps());
    let last = |hop: &Hop| u128::from(tx_time(clock, hop.rate, rest + framing.header).as_ps());
    let delays: u128 = path.iter().map(|hop| u128::from(hop.delay.as_ps())).sum();

    let mut last_from_here: u128 = path.iter().map(last).sum();
    let mut longest = if full_packets == 0 { last_from_here } else { 0 };
    if 0 < full_packets {
        let (mut one_up_to_here, mut slowest) = (0, 0);
        for hop in path {
            one_up_to_here += full(hop);
            slowest = slowest.max(full(hop));
            let train = one_up_to_here + u128::from(full_packets - 1) * slowest;
            longest = longest.max(train + last_from_here);
            last_from_here -= last(hop);
        }
    }
    Time::from_ps(u64::try_from(longest + delays).unwrap_or(u64::MAX))
}

/// A full packet there and its acknowledgment back.
pub fn path_base_rtt(clock: ClockRule, there: &[Hop], back: &[Hop], framing: Framing) -> Time {
    let one_way = |path: &[Hop], bytes| {
        path.iter().fold(Time::ZERO, |sum, hop| sum + tx_time(clock, hop.rate, bytes) + hop.delay)
    };
    one_way(there, framing.mtu + framing.header) + one_way(back, framing.ack)
}

/// The base RTT (τ) of the whole network: the largest of any shortest path between two hosts and back the same way.
pub fn network_base_rtt(
    topology: &Topology,
    routes: &Routes,
    clock: ClockRule,
    framing: Framing,
    rule: BaseRttRule,
) -> Time {
    let cost = |port: PortId| {
        let link = topology.link(port);
        let packets = match rule {
            BaseRttRule::Exact => {
                tx_time(clock, link.rate, framing.mtu + framing.header) + tx_time(clock, link.rate, framing.ack)
            }
            BaseRttRule::PayloadOnly => tx_time(ClockRule::WholeNanoseconds, link.rate, framing.mtu),
            BaseRttRule::Fixed(_) => Time::ZERO,
        };
        (link.delay * 2 + packets).as_ps()
    };
    match rule {
        BaseRttRule::Fixed(tau) => tau,
        BaseRttRule::Exact | BaseRttRule::PayloadOnly => Time::from_ps(routes.dearest_path(cost)),
    }
}
