//! Flowtune in the network: rates follow flows within microseconds, over control connections that share the network;
//! and the effects of losses of the allocator or its messages.

use crate::common::{Recorder, algorithm, config, flow, run};
use fairrate_sim::topology::{LeafSpine, Topology};
use fairrate_sim::{
    AllocatorConfig, Burst, DropCause, ExternalFlow, FaultConfig, FaultPackets, Flap, FlowSpec, NodeId, Pfc, PortId,
    ProbeSpec, SimConfig, StopRule, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

const G10: Rate = Rate::from_gbps(10);
/// Usable rate of a link: a hundredth less than its capacity.
const USABLE: f64 = 9.9e9;

const TCP: TcpConfig = TcpConfig { rto_min: Time::from_ms(1), rto_max: Time::from_ms(100), ..crate::common::TCP };

const fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// Three racks of four hosts (0 to 11) under two spines, with the paper's rates and delays.
fn fabric() -> Topology {
    LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        host_rate: G10,
        host_delay: Time::from_ns(3_500),
        uplink_rate: Rate::from_gbps(40),
        uplink_delay: Time::from_ns(1_500),
    }
    .build()
}

/// Returns the fabric with an allocator and some intermediaries, until `end`; all flows are sampled every 10 us.
fn flowtune(n_intermediaries: u32, flows: Vec<FlowSpec>, end: Time) -> SimConfig {
    let mut c = config(fabric(), algorithm("flowtune"), flows);
    let host = c.topology.attach_allocator(Rate::from_gbps(40), Time::from_ns(1_500), us(2));
    let tors = c.topology.tors();
    let intermediary = |i: u32| c.topology.attach_host("intermediary", tors[i as usize], G10, Time::from_ns(3_500));
    let intermediaries = (0..n_intermediaries).map(intermediary).collect();
    c.transport.kind = Transport::Tcp(TCP);
    (c.transport.mtu, c.transport.header, c.transport.ack) = (Bytes::new(1_460), Bytes::new(78), Bytes::new(84));
    c.fabric.pfc = Pfc::Off;
    c.fabric.ingress_alpha = None;
    c.fabric.egress_alpha = Some(1.0);
    c.allocator = Some(AllocatorConfig { intermediaries, ..crate::common::allocator(host) });
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    c.probes.push(ProbeSpec::Flows { flows: None, every: us(10) });
    c
}

fn endless(src: u32, dst: u32, start: Time, stop: Time) -> FlowSpec {
    FlowSpec { stop, ..flow(src, dst, u64::MAX, start) }
}

/// Returns the rates, by flow, of the flows that have a rate from the allocator at `t`.
fn allocated(recorder: &Recorder, t: Time) -> Vec<(u32, f64)> {
    let at = recorder.rates.iter().filter(|s| s.t == t && s.cwnd_bytes == u64::MAX);
    let mut rates: Vec<(u32, f64)> = at.map(|s| (s.flow.0, s.rate_bps as f64)).collect();
    rates.sort_by_key(|r| r.0);
    rates
}

/// Returns the payload that all flows together deliver between two times.
fn delivered(recorder: &Recorder, from: Time, to: Time) -> u64 {
    let at = |t: Time| recorder.rates.iter().filter(|s| s.t == t).map(|s| s.delivered_bytes).sum::<u64>();
    at(to) - at(from)
}

fn is_near(rate: f64, expected: f64, tolerance: f64) -> bool {
    (rate - expected).abs() <= tolerance * expected
}

/// Returns the ports of both directions between the allocator's switch and the spines.
fn allocator_ports(topology: &Topology) -> Vec<PortId> {
    let nic = topology.node("allocator-nic").expect("it is attached");
    (0..topology.n_ports() as u32)
        .map(PortId)
        .filter(|&p| (topology.from(p) == nic || topology.to(p) == nic) && !topology.is_host(topology.from(p)))
        .filter(|&p| !topology.is_host(topology.to(p)))
        .collect()
}

#[test]
fn shares_follow_arrivals_and_departures_within_100_us() {
    // Five senders in other racks to one receiver, one more every 2 ms, then one less every 2 ms.
    let flows = (0..5_u32).map(|i| endless(4 + i, 0, us(2_000 * (u64::from(i) + 1)), us(2_000 * (u64::from(i) + 7))));
    let (recorder, totals) = run(flowtune(0, flows.collect(), us(23_000)));
    for n in 1..=5_u32 {
        for change in [2_000 * u64::from(n), 2_000 * (u64::from(5 - n) + 6)] {
            for t in [us(change + 100), us(change + 1_990)] {
                let rates = allocated(&recorder, t);
                let fair = USABLE / f64::from(n);
                // The last rate sent may be off by a threshold of a hundredth.
                let is_fair = rates.len() == n as usize && rates.iter().all(|r| is_near(r.1, fair, 0.02));
                assert!(is_fair, "{t}: {rates:?} for {n} flows");
            }
        }
    }
    assert_eq!(totals.drops.total(), 0);
    let a = totals.allocator;
    assert_eq!((a.starts, a.ends, a.expired), (5, 5, 0));
}

#[test]
fn every_flow_is_announced_and_ended_and_the_conversation_is_counted() {
    let flows: Vec<FlowSpec> =
        (0..40).map(|i| flow(i % 12, (i + 5) % 12, 20_000 + 700 * u64::from(i), us(30 * u64::from(i)))).collect();
    let mut c = flowtune(0, flows, us(20_000));
    c.stop.when_flows_done = true;
    let (recorder, totals) = run(c);
    assert_eq!((recorder.flows.len(), totals.flows_done), (40, 40));
    let a = totals.allocator;
    assert_eq!((a.starts, a.ends), (40, 40));
    // Every message is a packet of at least 84 bytes in one direction, and at least one acknowledgment for several in
    // the other.
    assert!(84 * a.updates.min(40) <= a.from_allocator_bytes && 84 * 40 <= a.to_allocator_bytes, "{a:?}");
    assert_eq!(a.relayed_bytes, 0);
    // Acknowledgments are not delayed here: one of 84 bytes for each packet the other way, except lost ones.
    let (from, to) =
        (a.from_allocator_bytes - a.from_allocator_ack_bytes, a.to_allocator_bytes - a.to_allocator_ack_bytes);
    assert_eq!((a.from_allocator_ack_bytes % 84, a.to_allocator_ack_bytes % 84), (0, 0));
    assert!(a.from_allocator_ack_bytes <= to && a.to_allocator_ack_bytes <= from, "{a:?}");
    // Packets with only a keep-alive have the least length. The other packets carry updates.
    assert_eq!(a.sign_of_life_bytes % 84, 0);
    assert!(a.sign_of_life_bytes <= 84 * a.signs_of_life && 84 <= from - a.sign_of_life_bytes, "{a:?}");
}

/// One connection with ten bursts: ten flowlets, or one if the pause is shorter than the gap that ends a flowlet.
#[test]
fn bursts_of_a_connection_are_flowlets() {
    let flowlets = |bytes: u64, flowlet_gap: Time| {
        let burst = Some(Burst { bytes: Bytes::new(bytes), pause: us(100) });
        let spec = FlowSpec { burst, ..endless(4, 0, Time::ZERO, us(2_000)) };
        let mut c = flowtune(0, vec![spec], us(3_000));
        c.allocator.as_mut().expect("there is one").flowlet_gap = flowlet_gap;
        let (recorder, totals) = run(c);
        assert!(0 < recorder.flows[0].delivered_bytes);
        (totals.allocator.starts, totals.allocator.ends)
    };
    // A burst of 69 packets takes 85 us at 9.9 Gb/s and somewhat longer from ten segments on.
    let (starts, ends) = flowlets(100_000, us(20));
    assert!((9..=11).contains(&starts) && starts == ends, "{starts}, {ends}");
    assert_eq!(flowlets(100_000, us(150)), (1, 1));
    // Short bursts: the gap that ends a flowlet is not over when the next burst has been sent.
    assert_eq!(flowlets(20_000, us(150)), (1, 1));
}

fn four_flows() -> Vec<FlowSpec> {
    // Two share the link into host 0, two the link out of host 9.
    [(4, 0), (8, 0), (9, 1), (9, 5)].map(|(src, dst)| endless(src, dst, Time::ZERO, Time::MAX)).to_vec()
}

#[test]
fn a_dead_allocator_leaves_tcp_and_is_back_within_a_millisecond() {
    let mut c = flowtune(0, four_flows(), us(20_000));
    c.allocator.as_mut().expect("there is one").outages = vec![(us(5_000), us(10_000))];
    let (recorder, totals) = run(c);
    let before = delivered(&recorder, us(1_000), us(5_000)) as f64 / 4_000.0;
    let during = delivered(&recorder, us(5_000), us(10_000)) as f64 / 5_000.0;
    let after = delivered(&recorder, us(11_000), us(19_000)) as f64 / 8_000.0;
    assert!(0.95 * before < during && 0.95 * before < after, "bytes a us: {before}, {during}, {after}");
    assert_eq!(allocated(&recorder, us(5_080)).len(), 4, "rates hold for a while");
    assert_eq!(allocated(&recorder, us(5_310)), [], "and then expire");
    assert_eq!(totals.allocator.expired, 4);
    let rates = allocated(&recorder, us(11_000));
    assert!(rates.len() == 4 && rates.iter().all(|r| is_near(r.1, USABLE / 2.0, 0.02)), "{rates:?}");
}

#[test]
fn an_allocator_that_is_cut_off_is_back_when_links_are() {
    let mut c = flowtune(0, four_flows(), us(20_000));
    let ports = allocator_ports(&c.topology);
    assert_eq!(ports.len(), 4);
    let flap = Some(Flap { down_at: us(5_000), up_at: us(10_000), period: None });
    c.faults.push(FaultConfig { ports, flap, ..FaultConfig::NONE });
    let (recorder, totals) = run(c);
    assert_eq!((allocated(&recorder, us(5_310)), totals.allocator.expired), (vec![], 4));
    let rates = allocated(&recorder, us(11_000));
    assert!(rates.len() == 4 && rates.iter().all(|r| is_near(r.1, USABLE / 2.0, 0.02)), "{rates:?}");
}

#[test]
fn faults_of_the_conversation_change_no_allocation_in_the_end() {
    let flows = || {
        let more = (0..6).map(|i| endless(2 + i, 10, us(500 * u64::from(i)), us(6_000 + 300 * u64::from(i))));
        let mut flows: Vec<FlowSpec> = four_flows().into_iter().chain(more).collect();
        flows.sort_by_key(|f| f.start);
        flows
    };
    let end = us(15_000);
    let clean = allocated(&run(flowtune(0, flows(), end)).0, us(14_990));
    assert_eq!(clean.len(), 4);
    for seed in 1..=4 {
        let mut c = flowtune(0, flows(), end);
        c.seed = seed;
        let ports = allocator_ports(&c.topology);
        let (loss, duplicate, reorder, reorder_delay) = (0.1, 0.1, 0.1, us(15));
        let packets = FaultPackets::All;
        c.faults.push(FaultConfig { ports, packets, loss, duplicate, reorder, reorder_delay, ..FaultConfig::NONE });
        let (recorder, totals) = run(c);
        assert!(50 < totals.drops.of(DropCause::Fault) && 50 < totals.counts.duplicates, "{totals:?}");
        let faulty = allocated(&recorder, us(14_990));
        // Either rate may differ by a threshold from the optimiser's.
        let agree = faulty.iter().zip(&clean).all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1, 0.02));
        assert!(faulty.len() == clean.len() && agree, "seed {seed}: {faulty:?}, without faults {clean:?}");
    }
}

/// Four endless flows, and short ones out of the same hosts that begin in an outage of a millisecond and end about when
/// the allocator is back. Messages sent to it before are nothing to it, as a flowlet whose begin it takes and whose end
/// is lost with the old connection would keep its share for ever.
#[test]
fn an_allocator_obeys_no_message_of_its_former_life() {
    let short = [(7, 3, 1_504_273), (4, 0, 1_507_797), (6, 2, 1_517_833), (5, 1, 1_519_419)];
    for up_us in [2_005, 2_010, 2_015, 2_020, 2_025] {
        let mut flows: Vec<FlowSpec> = (4..8).map(|i| endless(i, i + 4, Time::ZERO, Time::MAX)).collect();
        flows.extend(short.map(|(src, dst, ns)| flow(src, dst, 100_000, Time::from_ns(ns))));
        let mut c = flowtune(0, flows, us(4_000));
        c.allocator.as_mut().expect("there is one").outages = vec![(us(1_000), us(up_us))];
        let rates = allocated(&run(c).0, us(3_990));
        assert!(rates.len() == 4 && rates.iter().all(|r| is_near(r.1, USABLE, 0.02)), "back at {up_us} us: {rates:?}");
    }
}

/// Two flows out of a host share its link. More flows to the receiver of one of them made that receiver's link dear
/// until they stopped in an outage. A restarted allocator has forgotten prices too, and gives each flow a half at once.
#[test]
fn a_restarted_allocator_has_forgotten_prices() {
    let mut flows = vec![endless(4, 0, Time::ZERO, Time::MAX), endless(4, 1, Time::ZERO, Time::MAX)];
    let others = (0..14).map(|i| endless(5 + i % 7, 0, Time::from_ns(u64::from(i) + 1), us(4_000)));
    flows.extend(others);
    let mut c = flowtune(0, flows, us(8_000));
    c.allocator.as_mut().expect("there is one").outages = vec![(us(3_000), us(6_000))];
    let (recorder, _) = run(c);
    let samples: Vec<_> = (6_010..6_200).step_by(10).map(|t| allocated(&recorder, us(t))).collect();
    let first = samples.iter().find(|rates| rates.len() == 2).expect("both flows have rates again");
    assert!(first.iter().all(|r| is_near(r.1, USABLE / 2.0, 0.02)), "{first:?}");
}

/// Two connections with bursts of 2 MB share a link, and an outage begins while the bursts of one go on. A rate lapses
/// once nothing has confirmed it for its lifetime, also if the flowlet it was given for has ended.
#[test]
fn a_rate_lapses_after_its_flowlet() {
    let bursts = |src, start, pause| {
        let burst = Some(Burst { bytes: Bytes::new(2_000_000), pause });
        FlowSpec { burst, ..endless(src, 0, start, Time::MAX) }
    };
    let mut c = flowtune(0, vec![bursts(4, Time::ZERO, us(5_000)), bursts(8, us(2_000), us(3_000))], us(14_000));
    c.fabric.buffer = Bytes::new(450_000);
    c.allocator.as_mut().expect("there is one").outages = vec![(us(5_000), us(13_000))];
    let (recorder, totals) = run(c);
    assert_eq!(allocated(&recorder, us(6_000)), [], "the last flowlet of either ended before the outage");
    assert!(2 <= totals.allocator.expired, "{:?}", totals.allocator);
    assert!(totals.drops.total() < 200, "{:?}", totals.drops);
}

/// Eight connections to one host that had its link alone, one after the other, write again at the same time some
/// milliseconds later. Each begins with TCP's first window and not at the line rate of the last time.
#[test]
fn a_connection_that_writes_again_begins_with_tcp() {
    let flows = (0..8).map(|i| {
        let start = us(500 * u64::from(i));
        // A burst takes 170 to 190 us.
        let pause = us(10_000) - start - us(180);
        FlowSpec { burst: Some(Burst { bytes: Bytes::new(200_000), pause }), ..endless(4 + i, 0, start, Time::MAX) }
    });
    let mut c = flowtune(0, flows.collect(), us(12_000));
    c.fabric.buffer = Bytes::new(300_000);
    let (recorder, totals) = run(c);
    assert_eq!(allocated(&recorder, us(9_000)), [], "rates have lapsed");
    assert_eq!((totals.allocator.starts, totals.drops.total()), (16, 0));
}

/// A link has half its rate from 2 to 4 ms. Rates follow, also those of an allocator that restarts meanwhile.
#[test]
fn rates_follow_the_rate_of_a_faulty_link() {
    for outages in [Vec::new(), vec![(us(2_500), us(3_000))]] {
        let flows = vec![endless(4, 0, Time::ZERO, Time::MAX), endless(8, 0, Time::ZERO, Time::MAX)];
        let mut c = flowtune(0, flows, us(6_000));
        let ports: Vec<PortId> = (0..c.topology.n_ports() as u32).map(PortId).collect();
        let ports = ports.into_iter().filter(|&port| c.topology.to(port) == NodeId(0)).collect();
        c.fabric.buffer = Bytes::new(450_000);
        c.faults.push(FaultConfig { ports, rate: 0.5, start: us(2_000), stop: us(4_000), ..FaultConfig::NONE });
        c.allocator.as_mut().expect("there is one").outages = outages;
        let (recorder, totals) = run(c);
        for (t, rate) in [(1_990, USABLE / 2.0), (2_200, USABLE / 4.0), (3_990, USABLE / 4.0), (5_990, USABLE / 2.0)] {
            let rates = allocated(&recorder, us(t));
            assert!(rates.len() == 2 && rates.iter().all(|r| is_near(r.1, rate, 0.02)), "{t} us: {rates:?}");
        }
        assert_eq!(totals.drops.total(), 0);
    }
}

#[test]
fn intermediaries_relay_everything() {
    let rates = |n: u32, outages: Vec<(Time, Time)>| {
        let mut c = flowtune(n, four_flows(), us(12_000));
        c.allocator.as_mut().expect("there is one").outages = outages;
        let (recorder, totals) = run(c);
        (allocated(&recorder, us(11_990)), totals.allocator)
    };
    let (direct, _) = rates(0, Vec::new());
    let (relayed, totals) = rates(3, Vec::new());
    // Either rate may differ by a threshold from the optimiser's.
    let agree =
        |a: &[(u32, f64)]| a.len() == 4 && a.iter().zip(&direct).all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1, 0.02));
    assert!(agree(&relayed), "{relayed:?}, directly {direct:?}");
    assert!(0 < totals.relayed_bytes && totals.starts == 4, "{totals:?}");
    let (again, totals) = rates(3, vec![(us(3_000), us(6_000))]);
    assert!(agree(&again) && totals.starts == 8, "{again:?} {totals:?}");
}

/// Prices are in units of the servers' links. Slower links of intermediaries carry no data. Messages take longer, so
/// rates may be an iteration behind, which is 6 % of them here; prices in another unit made 16 %.
#[test]
fn links_of_intermediaries_are_no_unit_of_prices() {
    let rates = |rate: Rate| {
        let flows =
            [(4, 0), (4, 1), (5, 0), (6, 0)].map(|(src, dst)| endless(src, dst, Time::ZERO, Time::MAX)).to_vec();
        let mut c = flowtune(0, flows, us(300));
        let tor = c.topology.tors()[0];
        let relay = c.topology.attach_host("intermediary", tor, rate, Time::from_ns(3_500));
        c.allocator.as_mut().expect("there is one").intermediaries = vec![relay];
        allocated(&run(c).0, us(100))
    };
    let (fast, slow) = (rates(G10), rates(Rate::from_gbps(1)));
    let agree = fast.iter().zip(&slow).all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1, 0.08));
    assert!(fast.len() == 4 && slow.len() == 4 && agree, "{fast:?}, with slower intermediaries {slow:?}");
}

#[test]
fn room_is_left_for_traffic_that_the_allocator_does_not_rule() {
    let mut c = flowtune(0, four_flows(), us(5_000));
    // Flow 3 is not controlled; 4 Gb/s from host 8 to host 0 are included beside flows 0 and 1.
    c.flows[3].group = 7;
    let allocator = c.allocator.as_mut().expect("there is one");
    allocator.external_groups = vec![7];
    let rate = Rate::from_gbps(3);
    allocator.external.push(ExternalFlow { src: NodeId(8), dst: NodeId(0), weight: 1.0, rate });
    let (recorder, totals) = run(c);
    let rates = allocated(&recorder, us(4_990));
    let left = (USABLE - 3e9) / 2.0;
    let expected = [(0, left), (1, left), (2, USABLE)];
    let agree = rates.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && is_near(a.1, b.1, 0.02));
    assert!(rates.len() == 3 && agree, "{rates:?}");
    assert_eq!(totals.allocator.starts, 3);
}
