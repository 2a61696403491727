//! Circuits: the load that a day carries, the transmitter of a VOQ at each time, its telemetry, and prebuffering.

use std::sync::{Arc, Mutex};

use crate::common::{Recorder, TCP, algorithm, config, flow, plug_in, run, steady_with};
use fairrate_control::{Ack, AlgorithmConfig, Allowance, CircuitHelp, Controller, IntHop, Loss, Needs, NetworkNeeds};
use fairrate_sim::topology::Rdcn;
use fairrate_sim::{FaultConfig, Flap, FlowSpec, Pfc, ProbeSpec, Recovery, SimConfig, Simulation, StopRule, Transport};
use fairrate_units::{Bytes, Rate, Time};

/// Wire bytes of a full packet without telemetry.
const FULL: u64 = 1_048;

const fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// Three ToRs with five hosts each: hosts 0 to 4 under `tor0`, node 15, to `tor2`, node 17. A week is 490 us, and the
/// day of `tor0->tor1` begins at 0, that of `tor0->tor2` at 245 us.
fn rdcn() -> Rdcn {
    Rdcn {
        tors: 3,
        hosts_per_tor: 5,
        host_rate: Rate::from_gbps(25),
        host_delay: us(1),
        uplink_rate: Rate::from_gbps(25),
        uplink_delay: Time::from_ns(4_620),
        circuit_rate: Rate::from_gbps(100),
        circuit_delay: Time::from_ns(9_900),
        day: us(225),
        night: us(20),
    }
}

/// Returns a run until `end` over lossy switches with selective repeat, with samples of two VOQs and the uplink of
/// `tor0`.
fn over_circuits(cc: AlgorithmConfig, flows: Vec<FlowSpec>, end: Time, every: Time) -> SimConfig {
    let mut c = config(rdcn().build(), cc, flows);
    (c.fabric.pfc, c.fabric.ingress_alpha, c.transport.recovery) = (Pfc::Off, None, Recovery::SelectiveRepeat);
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    let port = |to: &str| {
        let node = |name: &str| c.topology.node(name).expect("it is there");
        c.topology.port(node("tor0"), node(to)).expect("they are neighbours")
    };
    c.probes = vec![ProbeSpec::Ports { ports: vec![port("tor1"), port("tor2"), port("core0")], every }];
    c
}

/// Returns endless flows, from each of `senders` to a host of the rack with the first host `rack`.
fn endless(senders: std::ops::Range<u32>, rack: u32) -> Vec<FlowSpec> {
    senders.map(|src| flow(src, rack + src % 5, u64::MAX, Time::ZERO)).collect()
}

/// Returns the bytes sent by VOQ 1, VOQ 2 and the uplink, and the bytes in the two VOQs, at each sampling time.
fn samples(told: &Recorder) -> Vec<([u64; 3], [u64; 2])> {
    let of = |chunk: &[fairrate_sim::PortSample]| {
        ([0, 1, 2].map(|i| chunk[i].tx_bytes), [0, 1].map(|i| chunk[i].qlen_bytes))
    };
    told.ports.chunks(3).map(of).collect()
}

/// Returns an algorithm that lets flows send at line rate, with other needs.
fn line_rate_with(needs: &Needs) -> AlgorithmConfig {
    steady_with(needs, |flow| Allowance { cwnd: Bytes::MAX, rate: flow.line_rate, timer: Time::MAX })
}

/// Five hosts at 25 Gb/s offer more than the circuit and the uplink carry. A day of 225 us at 100 Gb/s is 2,683 whole
/// packets of 83.84 ns; the first of them arrives after the hosts have begun. At other times the uplink is busy, except
/// for 8.85 us of a packet's hop at the start.
#[test]
fn a_day_carries_what_it_has_room_for() {
    let c = over_circuits(algorithm("line-rate"), endless(0..5, 10), us(980), us(245));
    let at = samples(&run(c).0);
    // From 245 to 490 us, and from 735 to 980 us: a day and a night of tor0->tor2.
    for (begin, end) in [(1, 2), (3, 4)] {
        let sent = |i: usize| (at[end].0[i] - at[begin].0[i]) / FULL;
        assert_eq!(sent(1), 225_000_000 / 83_840);
        // In the night of 20 us the uplink sends a packet every 335.36 ns.
        assert!(sent(2).abs_diff(20_000_000 / 335_360) <= 1, "{}", sent(2));
    }
    // From 490 to 735 us all packets use the uplink.
    assert!(((at[3].0[2] - at[2].0[2]) / FULL).abs_diff(245_000_000 / 335_360) <= 1);
    assert_eq!((at[3].0[1], at[4].0[0]), (at[2].0[1], 0));
}

/// Two VOQs share the uplink while neither has its circuit, and each has the uplink alone while the other has its
/// circuit.
#[test]
fn voqs_take_turns_at_the_uplink() {
    let flows = [endless(0..2, 5), endless(2..4, 10)].concat();
    let mut c = over_circuits(algorithm("line-rate"), flows, us(980), us(5));
    // A packet may wait for a long time.
    c.transport.rto = Some(Time::from_ms(100));
    let (told, _) = run(c);
    let delivered = |from: u64, to: u64| {
        let at = samples(&told);
        (at[(to / 5) as usize].0[2] - at[(from / 5) as usize].0[2]) / FULL
    };
    // The uplink is busy all the time: with one VOQ in days, with both in nights.
    for (from, to) in [(20, 225), (225, 245), (245, 470), (470, 490), (490, 980)] {
        assert!(delivered(from, to).abs_diff((to - from) * 1_000_000 / 335_360) <= 1, "{from} to {to} us");
    }
    let (first, second) = (samples(&told)[45].1, samples(&told)[49].1);
    // Both VOQs receive more, 50 Gb/s each, than the half of 25 Gb/s that leaves in 20 us.
    let grown = [0, 1].map(|i| (second[i] - first[i]) as f64);
    assert!((grown[0] - grown[1]).abs() <= 2.0 * FULL as f64, "{grown:?}");
    assert!((grown[0] - (50.0 - 12.5) / 8.0 * 20_000.0).abs() < 4.0 * FULL as f64, "{grown:?}");
}

/// The packets of a single flow never overtake each other when its circuit starts and ends; its bytes all arrive, in
/// order.
#[test]
fn a_flow_alone_stays_in_order() {
    let mut c =
        over_circuits(algorithm("line-rate"), vec![flow(0, 10, 5_000_000, Time::ZERO)], Time::from_ms(5), us(245));
    c.stop.when_flows_done = true;
    c.transport.data_overhead = Some(Bytes::new(42));
    let (told, totals) = run(c);
    let flow = &told.flows[0];
    // Two thirds of the time by the packet switch, the rest by the circuit. 5,000 packets of 1,090 B at the host's 25
    // Gb/s.
    let (fct, ideal) = (flow.fct.expect("it is done"), flow.ideal_fct);
    assert!(ideal <= fct && fct <= ideal + us(1), "{fct} {ideal}");
    assert_eq!((flow.retransmitted_bytes, totals.drops.total()), (0, 0));
    assert!(0 < samples(&told)[2].0[1]);
}

/// The telemetry records of all acknowledgments, in order.
type Records = Arc<Mutex<Vec<Vec<IntHop>>>>;

/// A controller that sends at line rate and keeps the telemetry it receives.
struct Notes(Rate, Records);

impl Controller for Notes {
    fn on_start(&mut self, _: Time) -> Allowance {
        Allowance { cwnd: Bytes::MAX, rate: self.0, timer: Time::MAX }
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.1.lock().expect("one thread").push(ack.int.to_vec());
        self.on_start(ack.now)
    }
    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.on_start(now)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.on_start(now)
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.on_start(now)
    }
}

/// A VOQ's record has the rate of the link that serves it, and its counter continues when that link changes. Packets on
/// a circuit have no record of the packet switch.
#[test]
fn telemetry_tells_of_the_transmitter_of_the_moment() {
    let records = Records::default();
    let told = Arc::clone(&records);
    let cc = plug_in(&Needs::TELEMETRY, move |flow| Notes(flow.line_rate, Arc::clone(&told)));
    run(over_circuits(cc, vec![flow(0, 10, u64::MAX, Time::ZERO)], us(980), us(245)));
    let mut records = std::mem::take(&mut *records.lock().expect("one thread"));
    // As the circuit for acknowledgments ends, the first acknowledgment by the packet switch overtakes one.
    records.sort_by_key(|hops| hops[0].ts);
    let (mut by_circuit, mut by_switch) = (0, 0);
    let mut before: Option<IntHop> = None;
    for hops in &records {
        let [voq, core, last] = hops[..] else { panic!("three hops, {hops:?}") };
        let is_day = [(245, 470), (735, 960)].iter().any(|&(begin, end)| us(begin) <= voq.ts && voq.ts < us(end));
        let (rate, is_absent) = (voq.rate.as_bps_f64(), core == IntHop::ABSENT);
        assert_eq!((rate, is_absent), (if is_day { 100e9 } else { 25e9 }, is_day), "{:?}", voq.ts);
        assert_eq!(last.rate.as_bps_f64(), 25e9);
        by_circuit += u32::from(is_day);
        by_switch += u32::from(!is_day);
        if let Some(before) = before {
            // Packets arrive one by one at 25 Gb/s, and the flow is alone: the counter grows by one packet at a time.
            assert_eq!(voq.tx_bytes - before.tx_bytes, FULL + 42, "{:?}", voq.ts);
        }
        before = Some(voq);
    }
    assert!(1_000 < by_circuit && 1_000 < by_switch, "{by_circuit} {by_switch}");
}

/// A VOQ that receives more than it sends is at its limit: except for a packet that does not fit, and the four at most
/// that leave by the circuit before hosts send again. From 100 us before its day its limit is larger.
#[test]
fn voqs_are_enlarged_ahead_of_their_circuits() {
    let help = CircuitHelp { voq: Bytes::new(50_000), enlarged: Bytes::new(200_000), ahead: us(100) };
    let cc = line_rate_with(&Needs {
        network: NetworkNeeds { circuits: Some(help), ..NetworkNeeds::NOTHING },
        ..Needs::NOTHING
    });
    let mut c = over_circuits(cc, endless(0..5, 10), us(735), us(1));
    c.transport.rto = Some(Time::from_ms(100));
    let at = samples(&run(c).0);
    let is_full = |at_us: usize, limit: u64| (limit - 5 * FULL..=limit).contains(&at[at_us].1[1]);
    assert!(is_full(100, 50_000) && is_full(144, 50_000));
    // 125 Gb/s arrive and 25 leave: 150,000 more in 12 us.
    assert!(is_full(160, 200_000) && is_full(244, 200_000) && is_full(400, 200_000));
    // From 470 us on no packet is admitted before 50,000 are left: 48 us at 25 Gb/s. The next day's time begins at 635
    // us.
    assert!(at[515].1[1] > 50_000 && is_full(525, 50_000) && is_full(634, 50_000) && is_full(650, 200_000));
}

/// While a circuit's link is down, the uplink carries its traffic.
#[test]
fn a_circuit_that_is_down_is_made_up_for_by_the_uplink() {
    let mut c = over_circuits(algorithm("line-rate"), endless(0..5, 10), us(490), us(245));
    let nodes = ["tor0", "tor2"].map(|name| c.topology.node(name).expect("it is there"));
    let ports = vec![c.topology.port(nodes[0], nodes[1]).expect("they have a circuit")];
    let flap = Some(Flap { down_at: us(1), up_at: Time::MAX, period: None });
    c.faults = vec![FaultConfig { ports, flap, ..FaultConfig::NONE }];
    let at = samples(&run(c).0);
    assert_eq!(at[2].0[1], 0);
    assert!(((at[2].0[2] - at[1].0[2]) / FULL).abs_diff(245_000_000 / 335_360) <= 1);
}

/// Ten flows of reTCP over TCP: their windows jump when data starts and stops using the circuit. NewReno's do not.
/// Results are the same bits on any number of threads.
#[test]
fn retcp_jumps_with_the_circuit_on_any_number_of_threads() {
    let make = |cc: &str| {
        let mut c = over_circuits(algorithm(cc), endless(0..5, 10), us(980), us(245));
        c.transport.kind = Transport::Tcp(TCP);
        c.probes.push(ProbeSpec::Flows { flows: None, every: us(1) });
        c
    };
    let jumps = |told: &Recorder| {
        let of_first = told.rates.iter().filter(|rate| rate.flow.0 == 0).map(|rate| (rate.t, rate.cwnd_bytes));
        let all: Vec<_> = of_first.collect();
        let ups = all.windows(2).filter(|pair| pair[0].1 * 19 / 10 <= pair[1].1);
        ups.map(|pair| pair[1].0).filter(|&t| us(200) < t).collect::<Vec<_>>()
    };
    let (told, totals) = run(make("retcp"));
    let ups = jumps(&told);
    // A round trip after the day begins, the first acknowledgment of data that has gone by the circuit is back.
    assert!(ups.iter().any(|&t| us(245 + 20) < t && t < us(245 + 60)), "{ups:?}");
    for threads in [2, 3] {
        let mut simulation = Simulation::with_threads(make("retcp"), threads);
        let mut recorder = Recorder::default();
        simulation.run(&mut recorder).expect("no stall");
        assert_eq!((simulation.threads(), simulation.totals()), (threads, totals));
        assert_eq!((&recorder.rates, &recorder.ports), (&told.rates, &told.ports));
    }
}
