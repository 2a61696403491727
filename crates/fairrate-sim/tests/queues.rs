//! Queueing disciplines of switch ports: their drops and marks, their queue lengths, and the flows they serve.

use crate::common::{TCP, algorithm, config, flow, probe, run};
use fairrate_control::AlgorithmConfig;
use fairrate_sim::topology::Star;
use fairrate_sim::{
    CoDelConfig, DelayedAck, DropCause, FlowId, FlowSpec, Overflow, Pfc, ProbeSpec, QueueConfig, QueueRule, RedConfig,
    SfqCoDelConfig, SimConfig, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

const CODEL: CoDelConfig = CoDelConfig { target: Time::from_us(20), interval: Time::from_us(200), ecn: false };
const SFQ_CODEL: SfqCoDelConfig =
    SfqCoDelConfig { codel: CODEL, queues: 1_024, quantum: None, overflow: Overflow::Head };
const RED: RedConfig = RedConfig {
    kmin: Bytes::ZERO,
    kmax: Bytes::new(40_000),
    pmax: 1.0,
    per_rate: None,
    weight: 1.0,
    even: false,
    ecn: false,
};

/// Returns a star with hosts at 10 Gb/s, 2 us from the switch; TCP, and losses only at ports.
fn lossy(hosts: u32, cc: AlgorithmConfig, queue: QueueConfig, flows: Vec<FlowSpec>) -> SimConfig {
    let topology = Star { hosts, rate: Rate::from_gbps(10), delay: Time::from_us(2) }.build();
    let mut c = config(topology, cc, flows);
    c.transport.kind = Transport::Tcp(TCP);
    c.fabric.pfc = Pfc::Off;
    c.fabric.ingress_alpha = None;
    c.fabric.queue = queue;
    c
}

fn queue(rule: QueueRule) -> QueueConfig {
    QueueConfig { rule, ..QueueConfig::FIFO }
}

fn in_bytes(rule: QueueRule, bytes: u64) -> QueueConfig {
    QueueConfig { rule, limit_bytes: Bytes::new(bytes), ..QueueConfig::FIFO }
}

/// Returns long flows from hosts 1, 2 ... to host 0 for a time.
fn long(n: u32, duration: Time) -> Vec<FlowSpec> {
    (1..=n).map(|i| FlowSpec { stop: duration, ..flow(i, 0, u64::MAX, Time::ZERO) }).collect()
}

fn until(mut c: SimConfig, duration: Time) -> SimConfig {
    c.stop.at = Some(duration);
    c.stop.when_flows_done = false;
    c
}

/// Two hosts send eight packets each at the same time to one port, which sends one of each two. The first is sent at
/// once and the second waits; then one more stays with each pair: 1, 2, 3 wait after the first three pairs. A limit of
/// four admits one of the fourth pair, and of each after that: 5 drops. Retransmissions arrive later.
#[test]
fn a_port_limit_drops_what_arrives_above_it() {
    let limits = [
        QueueConfig { limit_packets: 4, ..QueueConfig::FIFO },
        in_bytes(QueueRule::Fifo, 4 * 1_048),
        in_bytes(QueueRule::Fifo, 5 * 1_048 - 1),
    ];
    for limit in limits {
        let flows = vec![flow(1, 0, 8_000, Time::ZERO), flow(2, 0, 8_000, Time::ZERO)];
        let (_, totals) = run(until(lossy(3, algorithm("line-rate"), limit, flows), Time::from_us(9)));
        assert_eq!(totals.drops, [(DropCause::QueueLimit, 5)].into_iter().collect());
        assert_eq!(totals.dropped_bytes, 5 * 1_048);
    }
}

/// The same with RED that drops each packet that arrives behind another. Of the first pair the second waits. Both of
/// the second pair arrive behind it. Of each later pair the first finds an empty queue and waits, and the second
/// arrives behind it: 2 + 6 drops.
#[test]
fn red_drops_what_finds_too_long_a_queue() {
    let red = RedConfig { kmax: Bytes::ZERO, ..RED };
    let flows = vec![flow(1, 0, 8_000, Time::ZERO), flow(2, 0, 8_000, Time::ZERO)];
    let c = lossy(3, algorithm("line-rate"), queue(QueueRule::Red(red)), flows);
    let (_, totals) = run(until(c, Time::from_us(9)));
    assert_eq!(totals.drops, [(DropCause::Early, 8)].into_iter().collect());
}

/// The shared buffer is so small that dropped packets would fill it if they were not uncharged.
#[test]
fn everything_arrives_whatever_is_dropped() {
    let from_tail = SfqCoDelConfig { overflow: Overflow::Tail, ..SFQ_CODEL };
    let rules = [
        ("newreno", in_bytes(QueueRule::Fifo, 20_000)),
        ("newreno", in_bytes(QueueRule::Red(RedConfig { weight: 0.1, even: true, ..RED }), 40_000)),
        ("newreno", in_bytes(QueueRule::CoDel(CODEL), 100_000)),
        ("newreno", QueueConfig { limit_packets: 60, ..queue(QueueRule::SfqCoDel(SFQ_CODEL)) }),
        ("newreno", QueueConfig { limit_packets: 30, ..queue(QueueRule::SfqCoDel(SFQ_CODEL)) }),
        ("newreno", QueueConfig { limit_packets: 30, ..queue(QueueRule::SfqCoDel(from_tail)) }),
        ("pfabric", in_bytes(QueueRule::PFabric, 36_864)),
    ];
    for (cc, queue) in rules {
        for delayed_ack in [None, Some(DelayedAck { every: 2, timeout: Time::from_us(20) })] {
            let flows: Vec<_> = (0..24).map(|i| flow(1 + i % 8, 0, 400_000 + u64::from(i), Time::ZERO)).collect();
            let flows = flows.into_iter().zip(0..).map(|(f, i)| FlowSpec { sport: 10_000 + i, ..f }).collect();
            let mut c = lossy(9, algorithm(cc), queue.clone(), flows);
            c.transport.kind = Transport::Tcp(TcpConfig { delayed_ack, ..TCP });
            c.transport.control_class = 3;
            c.fabric.buffer = Bytes::new(150_000);
            c.stop.at = Some(Time::from_ms(4_000));
            let (recorder, totals) = run(c);
            assert_eq!(totals.flows_unfinished, 0, "{queue:?}");
            for (outcome, i) in recorder.flows.iter().zip(0..) {
                assert_eq!(outcome.delivered_bytes, 400_000 + i);
            }
            assert_eq!(totals.in_flight_bytes, 0);
            let drops = totals.drops;
            let may_drop: &[DropCause] = match queue.rule {
                QueueRule::Fifo => &[DropCause::QueueLimit],
                QueueRule::Red(_) => &[DropCause::QueueLimit, DropCause::Early],
                QueueRule::CoDel(_) | QueueRule::SfqCoDel(_) => &[DropCause::QueueLimit, DropCause::Sojourn],
                QueueRule::PFabric => &[DropCause::Priority],
            };
            assert!(drops.by_cause().all(|(cause, n)| n == 0 || may_drop.contains(&cause)), "{queue:?} {drops:?}");
            assert!(150 < drops.total(), "{queue:?} {drops:?}");
        }
    }
}

/// Returns the mean wait at the port to host 0 after the first fifth of the samples, in microseconds, and the share of
/// time that the port sends.
fn waits_and_busy(c: SimConfig, duration: Time) -> (f64, f64) {
    let mut c = until(c, duration);
    let switch = c.topology.hosts().count() as u32;
    probe(&mut c, switch, 0, Time::from_us(2));
    let samples = run(c).0.ports;
    let late = &samples[samples.len() / 5..];
    let bytes: f64 = late.iter().map(|s| s.qlen_bytes as f64).sum::<f64>() / late.len() as f64;
    let (first, last) = (late[0], late[late.len() - 1]);
    let sent = (last.tx_bytes - first.tx_bytes) as f64;
    (bytes * 8.0 / 10e3, sent * 8.0 / 10e9 / (last.t - first.t).as_secs_f64())
}

#[test]
fn codel_holds_the_wait_near_its_target() {
    for n in [2, 4, 8] {
        let duration = Time::from_ms(60);
        let with = |queue| waits_and_busy(lossy(9, algorithm("newreno"), queue, long(n, duration)), duration);
        let (wait, busy) = with(queue(QueueRule::CoDel(CODEL)));
        // The link is busy all the time. The wait is within a factor of two of the target, and rises with the number of
        // flows: CoDel must drop more often for more of them, and its law takes time for that.
        assert!((20.0..40.0).contains(&wait) && 0.999 < busy, "{n} flows: {wait} us, {busy}");
        let (tail, _) = with(in_bytes(QueueRule::Fifo, 1_000_000));
        assert!(400.0 < tail, "{tail}");
    }
}

#[test]
fn codel_marks_in_place_of_drops() {
    let codel = CoDelConfig { ecn: true, ..CODEL };
    for rule in [QueueRule::CoDel(codel), QueueRule::SfqCoDel(SfqCoDelConfig { codel, ..SFQ_CODEL })] {
        let duration = Time::from_ms(20);
        let mut c = until(lossy(5, algorithm("dctcp"), queue(rule), long(4, duration)), duration);
        c.fabric.ecn = None;
        let (_, totals) = run(c);
        assert_eq!(totals.drops.total(), 0, "{:?}", totals.drops);
        assert!(0 < totals.counts.ecn_marks);
    }
}

/// Two hosts send at line rate regardless of losses; the application of a third offers 2 Gb/s, less than its third.
#[test]
fn sfq_codel_protects_a_flow_from_those_that_do_not_listen() {
    let duration = Time::from_ms(20);
    let delivered = |queue| {
        let mut flows = long(3, duration);
        flows[0].demand = Rate::from_gbps(2);
        let (recorder, _) = run(until(lossy(4, algorithm("line-rate"), queue, flows), duration));
        recorder.flows.iter().map(|f| f.delivered_bytes as f64 * 8.0 / 20e6).collect::<Vec<_>>()
    };
    let fair = delivered(QueueConfig { limit_packets: 200, ..queue(QueueRule::SfqCoDel(SFQ_CODEL)) });
    let tail = delivered(QueueConfig { limit_packets: 200, ..QueueConfig::FIFO });
    // In payload: 2 Gb/s x 1,000/1,048, and half of the rest of 10 Gb/s for each of the others.
    assert!((1.9..1.91).contains(&fair[0]), "{fair:?}");
    assert!(fair[1..].iter().all(|&rate| (3.6..3.82).contains(&rate)), "{fair:?}");
    // Without queues of their own, packets of one of two that come in step always find the last place taken.
    assert!(tail.iter().any(|&rate| rate < 0.2), "{tail:?}");
}

/// One host has eight flows and the other has one: bandwidth is shared by flow.
#[test]
fn sfq_codel_shares_equally_between_flows() {
    let duration = Time::from_ms(60);
    let delivered = |queue| {
        let mut flows = long(2, duration);
        let others: Vec<_> = (0..7).map(|i| FlowSpec { sport: 20_000 + i, ..flows[1].clone() }).collect();
        flows.extend(others);
        let (recorder, _) = run(until(lossy(3, algorithm("newreno"), queue, flows), duration));
        recorder.flows.iter().map(|f| f.delivered_bytes as f64 * 8.0 / 60e6).collect::<Vec<_>>()
    };
    let fair = delivered(queue(QueueRule::SfqCoDel(SFQ_CODEL)));
    let tail = delivered(in_bytes(QueueRule::Fifo, 100_000));
    // A ninth of 10 Gb/s is 1.0602 Gb/s of payload.
    assert!(fair.iter().all(|&rate| (1.05..1.07).contains(&rate)), "{fair:?}");
    let (one, most) = (tail[0], tail[1..].iter().copied().fold(0.0, f64::max));
    assert!(5.0 * most < one, "what the queues mend: {tail:?}");
}

fn pfabric(hosts: u32, flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = lossy(hosts, algorithm("pfabric"), in_bytes(QueueRule::PFabric, 36_864), flows);
    c.transport.control_class = 3;
    c
}

/// A long flow is active when a short one arrives from another host. The short flow waits for one packet that is being
/// sent, and then has the link alone.
#[test]
fn pfabric_finishes_the_short_flow_as_if_alone_and_starves_the_long_one() {
    let start = Time::from_us(300);
    let flows = vec![flow(1, 0, 5_000_000, Time::ZERO), flow(2, 0, 500_000, start)];
    let mut c = pfabric(3, flows);
    c.probes.push(ProbeSpec::Flows { flows: Some(vec![FlowId(0)]), every: Time::from_us(10) });
    let (recorder, totals) = run(c);
    let [long, short] = [0, 1].map(|i| recorder.flows[i]);
    let packet = Time::from_ps(1_048 * 800);
    let fct = short.fct.expect("it finishes");
    assert!(short.ideal_fct <= fct && fct <= short.ideal_fct + packet, "{short:?}");
    // From the short flow's first packet at the switch to its last, the long one gets nothing; then it continues at its
    // position, within two timeouts of 3 RTT, 11 us each: that of its probe, and that of the packets it has lost.
    let at = |t: Time| recorder.rates.iter().find(|s| t <= s.t).expect("a sample").delivered_bytes;
    assert_eq!(at(start + Time::from_us(10)), at(start + fct - Time::from_us(10)));
    let total = long.ideal_fct + short.ideal_fct;
    let fct = long.fct.expect("it finishes");
    assert!(total - Time::from_us(5) < fct && fct < total + Time::from_us(66), "{long:?}");
    assert!((1..20).contains(&totals.counts.control_packets), "it probes: {}", totals.counts.control_packets);
}

/// Endless flows have the same priority, and lose packets to each other at random. Packets that arrive behind a loss do
/// not postpone the timeout that repairs it: bytes continue to arrive in order.
#[test]
fn pfabric_repairs_losses_of_flows_without_end() {
    let duration = Time::from_ms(20);
    let flows = (1..=6).map(|i| flow(i, 0, u64::MAX, Time::from_us(10 * u64::from(i)))).collect();
    let (recorder, totals) = run(until(pfabric(7, flows), duration));
    let delivered: u64 = recorder.flows.iter().map(|f| f.delivered_bytes).sum();
    let fits = duration.as_secs_f64() * 10e9 / 8.0 * 1_000.0 / 1_048.0;
    assert!(
        0 < totals.drops.of(DropCause::Priority) && 0.8 * fits < delivered as f64,
        "{delivered} of {fits}: {:?}",
        recorder.flows
    );
}

/// Eight flows of 200 KB, 400 KB ... start at once. The best order is one after the other, shortest first. The extra
/// time of a hand-over is at most a timeout until the next flow probes, three round trips, and one in which its window
/// opens.
#[test]
fn pfabric_serves_the_shortest_first() {
    let flows = (1..=8).map(|i| flow(i, 0, 200_000 * u64::from(i), Time::ZERO)).collect();
    let (recorder, totals) = run(pfabric(9, flows));
    assert_eq!(totals.drops.of(DropCause::Priority), totals.drops.total());
    assert!(0 < totals.drops.total());
    let round_trip = Time::from_us(11);
    for (outcome, i) in recorder.flows.iter().zip(1..) {
        let fct = outcome.fct.expect("it finishes");
        // 200 packets of 838.4 ns more for each flow, and the way to host 0.
        let best = Time::from_ps(200 * i * (i + 1) / 2 * 838_400);
        let latest = best + round_trip + round_trip * (4 * (i - 1));
        assert!(best < fct && fct < latest, "flow {i}: {best} < {fct} < {latest}");
    }
}
