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
    /// Bytes that every frame takes on a link besides its own.
    pub overhead: Bytes,
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

/// The packets of a flow, in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Number of full packets.
    pub n_full: u64,
    /// Size of a full packet on the wire.
    pub full: Bytes,
    /// Size on the wire of a packet that is not full and has all full ones behind it; zero if there is none.
    pub lead: Bytes,
    /// Size on the wire of a packet that is not full and has full ones before and behind it; zero if there is none.
    pub middle: Bytes,
    /// Size on the wire of a packet that is not full and has all full ones before it, and the last one behind it; zero
    /// if there is none.
    pub late: Bytes,
    /// Size of the last packet on the wire.
    pub last: Bytes,
}

impl Framing {
    /// Returns the bytes that a full packet takes on a link.
    pub fn full(self) -> Bytes {
        self.mtu + self.header + self.overhead
    }

    /// Returns the packets of `bytes` bytes of payload.
    pub fn train(self, bytes: Bytes) -> Train {
        let mtu = self.mtu.as_u64().max(1);
        let n_full = bytes.as_u64().saturating_sub(1) / mtu;
        let header = self.header + self.overhead;
        let last = Bytes::new(bytes.as_u64() - n_full * mtu) + header;
        let [lead, middle, late] = [Bytes::ZERO; 3];
        Train { n_full, full: self.mtu + header, lead, middle, late, last }
    }
}

/// Returns the time from the start of a flow to its last byte at the receiver, if the flow is alone, sends the packets
/// of `train` at line rate and every node stores packets before it forwards them.
///
/// Up to a hop where packets travel in parallel, the last packet leaves a hop when it has arrived and the packets
/// before it have left. From there on the time is a lower bound, the largest of three: that of the last packet and that
/// of the last full one, which wait for none, and that of a hop which sends all packets from the moment when the first
/// can be there.
pub fn ideal_fct(clock: ClockRule, path: &[Hop], train: Train) -> Time {
    let time = |hop: &Hop, bytes| u128::from(tx_time(clock, hop.rate, bytes).as_ps());
    let n_full = u128::from(train.n_full);
    let mut is_parallel = false;
    // The times at which all packets, the first one, and those that `Train` tells apart are through the hops so far.
    let (mut all, mut first) = (0, 0);
    let (mut lead, mut first_full, mut last_full, mut late, mut last) = (0, 0, 0, 0, 0);
    for hop in path {
        let [full, at_lead, at_middle, at_late, end] =
            [train.full, train.lead, train.middle, train.late, train.last].map(|bytes| time(hop, bytes));
        let work = (n_full * full + at_lead + at_middle + at_late + end) / u128::from(hop.lanes.max(1));
        is_parallel |= 1 < hop.lanes;
        let first_before = first;
        lead += at_lead;
        if is_parallel {
            first_full += full;
            last_full += full;
            last += end;
        } else {
            first_full = first_full.max(lead) + full;
            last_full = (last_full + full).max(first_full + n_full.saturating_sub(1) * full + at_middle);
            let before = if 0 < n_full { last_full } else { 0 };
            late = late.max(before) + at_late;
            last = last.max(late) + end;
        }
        first = if Bytes::ZERO < train.lead {
            lead
        } else if 0 < n_full {
            if is_parallel { first_full.min(last) } else { first_full }
        } else if Bytes::ZERO < train.late {
            late
        } else {
            last
        };
        all = (all + end).max(first_before + work).max(last);
        if 0 < n_full {
            all = all.max(last_full);
        }
    }
    let delays: u128 = path.iter().map(|hop| u128::from(hop.delay.as_ps())).sum();
    Time::from_ps(u64::try_from(all + delays).unwrap_or(u64::MAX))
}

/// Returns the time of a full packet there and its acknowledgment back.
pub fn path_base_rtt(clock: ClockRule, there: &[Hop], back: &[Hop], framing: Framing) -> Time {
    let one_way = |path: &[Hop], bytes| {
        path.iter().fold(Time::ZERO, |sum, hop| sum + tx_time(clock, hop.rate, bytes) + hop.delay)
    };
    one_way(there, framing.full()) + one_way(back, framing.ack + framing.overhead)
}

/// Returns the base RTT (τ) of the whole network: the largest of any shortest path between two hosts and back the same
/// way. `processing` has the time by node after which a host acts on a packet; nodes that it lacks act at once.
pub fn network_base_rtt(
    topology: &Topology,
    routes: &Routes,
    clock: ClockRule,
    framing: Framing,
    rule: BaseRttRule,
    processing: &[Time],
) -> Time {
    // The port of a host stands for its end of a path.
    let of_host = |port: PortId| processing.get(topology.from(port).index()).copied().unwrap_or(Time::ZERO);
    let cost = |port: PortId| {
        let link = topology.link(port);
        let packets = match rule {
            BaseRttRule::Exact => {
                tx_time(clock, link.rate, framing.full()) + tx_time(clock, link.rate, framing.ack + framing.overhead)
            }
            BaseRttRule::PayloadOnly => tx_time(ClockRule::WholeNanoseconds, link.rate, framing.mtu),
            BaseRttRule::Fixed(_) => Time::ZERO,
        };
        (link.delay * 2 + packets + of_host(port)).as_ps()
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

    const FRAMING: Framing =
        Framing { mtu: Bytes::new(1_000), header: Bytes::new(90), ack: Bytes::new(88), overhead: Bytes::ZERO };

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
        let fct =
            |path: &[Hop], bytes| ideal_fct(ClockRule::Picoseconds, path, FRAMING.train(Bytes::new(bytes))).as_ps();
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

    /// Packets of 436 and 416 ns on two parallel links do not wait for each other there, but at the link after them,
    /// where the first full one can be after 523.2 ns. With a third packet the parallel links have 644 ns of work each.
    #[test]
    fn packets_side_by_side_do_not_wait_for_each_other() {
        let path = [hop(100, 0), Hop { lanes: 2, ..hop(20, 0) }, hop(100, 0)];
        let fct = |bytes| ideal_fct(ClockRule::Picoseconds, &path, FRAMING.train(Bytes::new(bytes))).as_ps();
        assert_eq!(fct(1_950), 523_200 + 87_200 + 83_200);
        assert_eq!(fct(2_950), 87_200 + 644_000 + 83_200);
        // A last packet of 1 B overtakes the full one before it, which then takes its whole time at every link.
        assert_eq!(fct(1_001), 87_200 + 436_000 + 87_200);
    }

    /// Computes the time that the closed form describes: every packet at every hop. The one in the middle comes behind
    /// `n_before` full ones.
    fn packet_by_packet(clock: ClockRule, path: &[Hop], train: Train, n_before: u64) -> u64 {
        let mut packets = vec![train.full; train.n_full as usize];
        packets.insert(n_before as usize, train.middle);
        packets.insert(0, train.lead);
        packets.extend([train.late, train.last]);
        let mut free_at = vec![0; path.len()];
        let mut arrival = 0;
        for packet in packets.into_iter().filter(|packet| Bytes::ZERO < *packet) {
            arrival = 0;
            for (hop, free_at) in path.iter().zip(&mut free_at) {
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
            [lead, middle, late] in [(); 3].map(|()| prop_oneof![Just(0.0), 0.0..1.0]),
            n_before in 1u64..10,
            clock in prop_oneof![Just(ClockRule::Picoseconds), Just(ClockRule::WholeNanoseconds)],
        ) {
            let [mtu, header, ack] = [mtu, header, 60].map(Bytes::new);
            let framing = Framing { mtu, header, ack, overhead: Bytes::ZERO };
            let mut train = framing.train(Bytes::new(bytes));
            let part = |share| Bytes::new((train.full.as_f64() * share) as u64);
            let (lead, middle, late) = (part(lead), part(middle), part(late));
            train.late = late;
            if 0 < train.n_full {
                train.lead = lead;
            }
            if 1 < train.n_full {
                train.middle = middle;
            }
            let n_before = n_before.min(train.n_full.saturating_sub(1));
            prop_assert_eq!(ideal_fct(clock, &path, train).as_ps(), packet_by_packet(clock, &path, train, n_before));
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
            let rtt = |rule| network_base_rtt(topology, &routes, ClockRule::Picoseconds, FRAMING, rule, &[]);
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
