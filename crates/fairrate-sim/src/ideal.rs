//! The behaviour of an idle network: serialisation times, the time of a flow alone, base round-trip times.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{BaseRttRule, ClockRule};
use crate::ids::PortId;
use crate::routing::Routes;
use crate::topology::{Link, Topology};

/// Sizes of packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Payload of a full packet.
    pub mtu: Bytes,
    /// Bytes of a data packet beside its payload, telemetry included.
    pub header: Bytes,
    /// Size of an acknowledgment, telemetry included.
    pub ack: Bytes,
}

/// One link of a path, in the direction of travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its capacity.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Time,
    /// Number of such links that packets may take in parallel: more than one where each packet picks its own path.
    pub lanes: u32,
}

impl Hop {
    /// Returns the hop over the only link that packets take.
    pub fn single(link: &Link) -> Self {
        Self { rate: link.rate, delay: link.delay, lanes: 1 }
    }
}

/// Returns the time that `bytes` take at `rate`.
pub fn tx_time(clock: ClockRule, rate: Rate, bytes: Bytes) -> Time {
    match clock {
        ClockRule::Picoseconds => rate.tx_time(bytes),
        ClockRule::WholeNanoseconds => rate.tx_time(bytes).floor_to_ns(),
    }
}

/// Returns the time from the start of a flow to its last byte at the receiver, if the flow is alone, sends at line rate
/// and every node stores packets before it forwards them.
///
/// The last packet leaves a hop when it has arrived and the full packets before it have left. So the time is the
/// longest way through the grid of (packet, hop) from the first packet at the first hop to the last packet at the last:
/// along the hops with one full packet up to some hop k, waiting for the other full packets at the slowest hop on that
/// way, then on with the last packet from hop k. Where packets travel in parallel, none of them waits for another, but
/// all links together have to send all of them: there the time is a lower bound.
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
            let last_after = last_from_here - last(hop);
            if hop.lanes <= 1 {
                one_up_to_here += full(hop);
                slowest = slowest.max(full(hop));
                let train = one_up_to_here + u128::from(full_packets - 1) * slowest;
                longest = longest.max(train + last_from_here);
            } else {
                let all = (u128::from(full_packets) * full(hop) + last(hop)) / u128::from(hop.lanes);
                longest = longest.max(one_up_to_here + all.max(last(hop)) + last_after);
                one_up_to_here += last(hop);
            }
            last_from_here = last_after;
        }
    }
    Time::from_ps(u64::try_from(longest + delays).unwrap_or(u64::MAX))
}

/// Returns the time of a full packet there and its acknowledgment back.
pub fn path_base_rtt(clock: ClockRule, there: &[Hop], back: &[Hop], framing: Framing) -> Time {
    let one_way = |path: &[Hop], bytes| {
        path.iter().fold(Time::ZERO, |sum, hop| sum + tx_time(clock, hop.rate, bytes) + hop.delay)
    };
    one_way(there, framing.mtu + framing.header) + one_way(back, framing.ack)
}

/// Returns the base RTT (τ) of the whole network: the largest of any shortest path between two hosts and back the same
/// way.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::tests::powertcp;
    use crate::topology::{ParkingLot, Star};

    const FRAMING: Framing = Framing { mtu: Bytes::new(1_000), header: Bytes::new(90), ack: Bytes::new(88) };

    fn hop(gbps: u64, delay_ns: u64) -> Hop {
        Hop { rate: Rate::from_gbps(gbps), delay: Time::from_ns(delay_ns), lanes: 1 }
    }

    #[test]
    fn serialisation_is_exact_or_cut_to_nanoseconds() {
        // 1090 B at 25 Gb/s last 348.8 ns.
        let (rate, bytes) = (Rate::from_gbps(25), Bytes::new(1_090));
        assert_eq!(tx_time(ClockRule::Picoseconds, rate, bytes), Time::from_ps(348_800));
        assert_eq!(tx_time(ClockRule::WholeNanoseconds, rate, bytes), Time::from_ns(348));
    }

    #[test]
    fn a_flow_alone_takes_what_store_and_forward_takes() {
        let fct = |path: &[Hop], bytes| ideal_fct(ClockRule::Picoseconds, path, FRAMING, Bytes::new(bytes)).as_ps();
        // One byte makes one packet of 91 B: 29.12 ns at each of two 25G hops of 1 us.
        assert_eq!(fct(&[hop(25, 1_000), hop(25, 1_000)], 1), 2 * 29_120 + 2_000_000);
        // 3000 B at equal rates: the first hop sends three packets, the second the last of them.
        assert_eq!(fct(&[hop(25, 0), hop(25, 0)], 3_000), 3 * 348_800 + 348_800);
        // From 100G (87.2 ns a packet) to 25G the packets wait at the second hop.
        assert_eq!(fct(&[hop(100, 0), hop(25, 0)], 3_000), 87_200 + 3 * 348_800);
        // A last packet of 10 B overtakes no other: at the third hop it waits for the full packet before it, which
        // leaves the second hop 348.8 ns after it went in and takes 348.8 ns more.
        assert_eq!(fct(&[hop(25, 0), hop(25, 0), hop(25, 0)], 1_010), 3 * 348_800 + 32_000);
    }

    /// Packets of 436 and 416 ns on two parallel links do not wait for each other there, but after them. With a third
    /// packet there are 644 ns of work for each link.
    #[test]
    fn packets_side_by_side_do_not_wait_for_each_other() {
        let path = [hop(100, 0), Hop { lanes: 2, ..hop(20, 0) }, hop(100, 0)];
        let fct = |bytes| ideal_fct(ClockRule::Picoseconds, &path, FRAMING, Bytes::new(bytes)).as_ps();
        assert_eq!(fct(1_950), 87_200 + 416_000 + 87_200 + 83_200);
        assert_eq!(fct(2_950), 87_200 + 644_000 + 83_200);
    }

    /// Computes the time that the closed form describes: every packet at every hop.
    fn packet_by_packet(clock: ClockRule, path: &[Hop], framing: Framing, bytes: u64) -> u64 {
        let mtu = framing.mtu.as_u64();
        let mut free_at = vec![0; path.len()];
        let (mut left, mut arrival) = (bytes, 0);
        while 0 < left {
            let payload = left.min(mtu);
            left -= payload;
            arrival = 0;
            for (hop, free_at) in path.iter().zip(&mut free_at) {
                let packet = framing.header + Bytes::new(payload);
                *free_at = arrival.max(*free_at) + tx_time(clock, hop.rate, packet).as_ps();
                arrival = *free_at + hop.delay.as_ps();
            }
        }
        arrival
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_packet_by_packet_time(
            path in prop::collection::vec((1u64..400, 0u64..5_000).prop_map(|(gbps, ns)| hop(gbps, ns)), 1..7),
            bytes in prop_oneof![1u64..3_000, 1u64..60_000],
            mtu in 100u64..2_000,
            header in 0u64..100,
            clock in prop_oneof![Just(ClockRule::Picoseconds), Just(ClockRule::WholeNanoseconds)],
        ) {
            let framing = Framing { mtu: Bytes::new(mtu), header: Bytes::new(header), ack: Bytes::new(60) };
            let ideal = ideal_fct(clock, &path, framing, Bytes::new(bytes));
            prop_assert_eq!(ideal.as_ps(), packet_by_packet(clock, &path, framing, bytes));
        }
    }

    #[test]
    fn base_rtts_are_those_of_the_reference_topologies() {
        let (gbps, us) = (Rate::from_gbps, Time::from_us);
        let star = Star { hosts: 11, rate: gbps(25), delay: Time::from_ns(1_840) }.build();
        let lot = ParkingLot {
            switches: 3,
            hosts_per_switch: 2,
            host_rate: gbps(25),
            host_delay: us(1),
            link_rate: gbps(25),
            link_rates: None,
            link_delay: us(1),
        };
        let fat_tree = powertcp();
        // Exact: 1090 B and 88 B last 348.8 and 28.16 ns at 25G, a quarter of that at 100G.
        let exact = [2 * (3_680_000 + 376_960), 4 * (2_000_000 + 376_960), 28_000_000 + 3 * 376_960];
        for ((topology, tau), exact) in
            [(star, 8_000), (lot.build(), 9_280), (fat_tree.build(), 28_960)].iter().zip(exact)
        {
            let routes = Routes::new(topology);
            let rtt = |rule| network_base_rtt(topology, &routes, ClockRule::Picoseconds, FRAMING, rule);
            assert_eq!(rtt(BaseRttRule::PayloadOnly), Time::from_ns(*tau));
            assert_eq!(rtt(BaseRttRule::Exact), Time::from_ps(exact));
            assert_eq!(rtt(BaseRttRule::Fixed(us(3))), us(3));
        }
    }

    #[test]
    fn the_base_rtt_of_a_path_is_that_of_the_network_around_it() {
        let path = [hop(25, 1_840), hop(25, 1_840)];
        let rtt = path_base_rtt(ClockRule::Picoseconds, &path, &path, FRAMING);
        assert_eq!(rtt, Time::from_ps(2 * (3_680_000 + 376_960)));
    }
}
