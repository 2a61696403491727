//! HOMA against closed forms: messages alone, at a receiver, at a sender, and with losses.

use crate::common::{Recorder, algorithm_with, config, flow, probe, run};
use fairrate_control::{Parameters, RawValue};
use fairrate_sim::topology::{LeafSpine, Star, Topology};
use fairrate_sim::{Burst, FaultConfig, FlowOutcome, FlowSpec, NodeId, Pfc, PortId, RunTotals, SimConfig, StopRule};
use fairrate_units::{Bytes, Rate, Time};

const G10: Rate = Rate::from_gbps(10);
/// Payload of a full packet, and its bytes on the wire.
const MTU: u64 = 1_000;
const WIRE: u64 = 1_048;
/// RTTbytes on a star: 4 us of delay, two packets and two acknowledgments at 10 Gb/s are 7,216 bytes, so eight packets.
const RTT_BYTES: u64 = 8 * MTU;
const RTT_WIRE: u64 = 8 * WIRE;

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: G10, delay: Time::from_us(1) }.build()
}

/// Returns a run on a lossy fabric with room for all packets.
fn homa(topology: Topology, overcommitment: i64, flows: Vec<FlowSpec>) -> SimConfig {
    let params = [("overcommitment", RawValue::Integer(overcommitment))];
    let mut c = config(topology, algorithm_with("homa", &params), flows);
    c.fabric.pfc = Pfc::Off;
    c.fabric.ingress_alpha = None;
    c
}

/// Returns the transmission time of `n` full packets.
fn packets(n: u64) -> Time {
    G10.tx_time(Bytes::new(n * WIRE))
}

/// Returns the arrival time of the last of `n` full packets that a receiver on a star gets in a row.
fn after(n: u64) -> Time {
    Time::from_us(2) + packets(n + 1)
}

fn fct(outcome: &FlowOutcome) -> Time {
    outcome.fct.expect("it is done")
}

/// Returns a network of two racks with two hosts each, and uplinks of 40 Gb/s.
fn leaf_spine() -> Topology {
    let (us, gbps) = (Time::from_us(1), Rate::from_gbps(40));
    let (leaves, spines, hosts_per_leaf) = (2, 2, 2);
    LeafSpine { leaves, spines, hosts_per_leaf, host_rate: G10, host_delay: us, uplink_rate: gbps, uplink_delay: us }
        .build()
}

/// A single message never waits in a queue, and its grants arrive in time, for any length.
#[test]
fn a_message_alone_takes_its_ideal_time() {
    for bytes in [1, MTU, MTU + 1, RTT_BYTES, RTT_BYTES + 1, 99_999, 1_000_000] {
        for pfc in [false, true] {
            for topology in [star(2), leaf_spine()] {
                let last = topology.hosts().count() as u32 - 1;
                let mut c = homa(topology, 1, vec![flow(0, last, bytes, Time::from_us(3))]);
                c.fabric.pfc = if pfc { Pfc::Ingress } else { Pfc::Off };
                let (recorder, totals) = run(c);
                let [outcome] = &recorder.flows[..] else { panic!("one flow") };
                assert_eq!(fct(outcome), outcome.ideal_fct, "{bytes} bytes");
                assert_eq!(totals.sent_bytes, bytes + 48 * bytes.div_ceil(MTU), "nothing is sent twice");
            }
        }
    }
}

/// Returns messages to one receiver, each from a host of its own, that all begin at once: of 100 packets and ten more
/// each.
fn to_one(n: u32, overcommitment: i64, order: &str) -> (Recorder, RunTotals) {
    let flows = (1..=n).map(|i| flow(i, 0, 90_000 + 10_000 * u64::from(i), Time::ZERO)).collect();
    let mut c = homa(star(n + 1), overcommitment, flows);
    c.cc.set("order", RawValue::Text(order)).expect("it is a parameter");
    probe(&mut c, n + 1, 0, Time::from_ns(100));
    let (recorder, totals) = run(c);
    assert_eq!((totals.drops.total(), totals.flows_unfinished), (0, 0));
    (recorder, totals)
}

/// All unscheduled packets come first. From then on the shortest message has the link, and the next one when that is
/// done, without a gap between them. By the order of granted bytes, the next one has RTTbytes as soon as a message has
/// got its last grant, so the last packets of the one mix with the first of the other. If several messages have grants
/// there are packets of the shortest in low classes, from the time when others were not known; the property that holds
/// is that the link never idles.
#[test]
fn messages_to_a_receiver_come_one_by_one_the_shortest_first() {
    for (n, order) in [2, 4, 8].into_iter().flat_map(|n| [(n, "granted"), (n, "received")]) {
        let (recorder, _) = to_one(n, 1, order);
        let mixed = if order == "granted" { packets(RTT_BYTES / MTU) } else { Time::ZERO };
        let mut arrived = u64::from(n) * RTT_BYTES / MTU;
        for (outcome, i) in recorder.flows.iter().zip(1..) {
            arrived += 90 + 10 * i - RTT_BYTES / MTU;
            let (least, most) = (after(arrived), after(arrived) + mixed);
            assert!(least <= fct(outcome) && fct(outcome) <= most, "{n}, {order}, {i}: {}", fct(outcome));
        }
        for k in 1..=7 {
            let (recorder, _) = to_one(n, k, order);
            assert_eq!(recorder.flows.iter().map(fct).max(), Some(after(arrived)), "{n}, {order}, {k}");
        }
    }
}

/// Returns the mean completion time of 16 equal messages of 100 packets to one receiver, and that of the last.
fn equal_messages(order: &str, counts: &str, src: impl Fn(u32) -> u32) -> (Time, Time) {
    let flows = (1..=16).map(|i| flow(src(i), 0, 100_000, Time::from_ns(10 * u64::from(i)))).collect();
    let mut c = homa(star(17), 4, flows);
    for (name, word) in [("order", order), ("counts", counts)] {
        c.cc.set(name, RawValue::Text(word)).expect("it is a parameter");
    }
    let (recorder, _) = run(c);
    let fcts: Vec<u64> = recorder.flows.iter().map(|outcome| fct(outcome).as_ps()).collect();
    let (sum, max) = (fcts.iter().sum::<u64>(), fcts.iter().max().copied().unwrap_or(0));
    (Time::from_ps(sum / 16), Time::from_ps(max))
}

/// Served one by one, message i of 16 is done after i/16 of the time for all, 17/32 of it in the mean.
#[test]
fn equal_messages_are_served_in_turn() {
    let (mean, last) = equal_messages("granted", "messages", |i| i);
    let in_turn = Time::from_ps(last.as_ps() / 32 * 17);
    assert!(in_turn <= mean && mean.as_ps() < in_turn.as_ps() / 10 * 13, "{mean} and not about {in_turn}");
    let (_, last_received) = equal_messages("received", "messages", |i| i);
    assert!(last.max(last_received) <= last.min(last_received) + packets(1), "all bytes take the same time");
}

/// A sender has one link. Granting several of its messages at a time puts each behind the others.
#[test]
fn counting_senders_grants_one_message_of_each() {
    let two_hosts = |i| 1 + i % 2;
    let (by_sender, _) = equal_messages("granted", "senders", two_hosts);
    let (by_message, _) = equal_messages("granted", "messages", two_hosts);
    assert!(by_sender <= by_message, "{by_sender} and {by_message}");
    // With one message a sender there is no difference.
    assert_eq!(equal_messages("granted", "senders", |i| i), equal_messages("granted", "messages", |i| i));
}

/// Scheduled packets with a header of 34 bytes carry 1,014 bytes: fewer packets of the same size. A message alone takes
/// its ideal time whatever its length, and RTTbytes need not be whole packets.
#[test]
fn scheduled_packets_may_have_headers_of_their_own() {
    for (topology, unasked) in [(star as fn(u32) -> Topology, 7_500), (|_| leaf_spine(), 15_500)] {
        let beyond = [1, 1_014, 1_015, 2_028, 2_029, 99_999, 1_000_000].map(|scheduled| unasked + scheduled);
        for bytes in [1, unasked].into_iter().chain(beyond) {
            let topology = topology(2);
            let last = topology.hosts().count() as u32 - 1;
            let mut c = homa(topology, 1, vec![flow(0, last, bytes, Time::ZERO)]);
            for (name, size) in [("scheduled_header", "34B".to_owned()), ("rtt_bytes", format!("{unasked}B"))] {
                c.cc.set(name, RawValue::Text(&size)).expect("it is a parameter");
            }
            let (recorder, totals) = run(c);
            let (scheduled, blind) = (bytes.saturating_sub(unasked), bytes.min(unasked));
            let sent = bytes + 48 * blind.div_ceil(MTU) + 34 * scheduled.div_ceil(MTU + 14);
            assert_eq!(totals.sent_bytes, sent, "{bytes}");
            let [outcome] = &recorder.flows[..] else { panic!("one flow") };
            assert_eq!(fct(outcome), outcome.ideal_fct, "{bytes} bytes");
        }
    }
}

/// The last bytes of a message overtake scheduled packets of others if they have classes for unscheduled packets.
#[test]
fn the_tail_of_a_message_has_high_classes() {
    let first = |tail| {
        // A message that is nearly done when seven others begin.
        let mut flows = vec![flow(8, 0, 40_000, Time::ZERO)];
        flows.extend((1..=7).map(|i| flow(i, 0, 300_000, Time::from_us(30))));
        let mut c = homa(star(9), 4, flows);
        for (name, word) in [("tail", tail), ("cutoffs", "8KB"), ("unscheduled", "remaining")] {
            c.cc.set(name, RawValue::Text(word)).expect("it is a parameter");
        }
        fct(&run(c).0.flows[0])
    };
    assert!(first("8KB") < first("none"), "{} and {}", first("8KB"), first("none"));
}

/// Each message is shorter than the rest of those before it: it waits only for their packets in flight, and they wait
/// for all of it.
#[test]
fn a_shorter_message_is_served_before_longer_ones() {
    for k in [1, 2, 4] {
        let sizes = [400_000, 300_000, 200_000, 100_000];
        let flows = (1..).zip(sizes).map(|(i, bytes)| flow(i, 0, bytes, Time::from_us(30 * u64::from(i)))).collect();
        let (recorder, _) = run(homa(star(5), k, flows));
        let mut shorter = 0;
        for outcome in recorder.flows.iter().rev() {
            let least = outcome.ideal_fct + packets(shorter);
            let on_their_way = packets(4 * RTT_BYTES / MTU);
            let is_between = least <= fct(outcome) && fct(outcome) <= least + on_their_way;
            assert!(is_between, "{k}: {} and not {least}", fct(outcome));
            shorter += outcome.delivered_bytes / MTU;
        }
    }
}

/// In the first round-trip time all senders but one fill the queue with unscheduled packets. Later a granted message
/// has RTTbytes in flight, and the path holds those of one message.
#[test]
fn the_queue_is_rtt_bytes_of_each_sender_and_then_of_each_granted_message() {
    let cases = [(2, 1), (4, 1), (8, 1), (16, 1), (8, 2), (8, 4), (8, 7)];
    for ((n, k), order) in cases.into_iter().flat_map(|case| [(case, "granted"), (case, "received")]) {
        let (recorder, _) = to_one(n, k, order);
        let max = |from| recorder.ports.iter().filter(|s| from <= s.t).map(|s| s.qlen_bytes).max().expect("samples");
        let (n, k) = (u64::from(n), k as u64);
        let peak = max(Time::ZERO);
        assert!((n - 1) * RTT_WIRE <= peak && peak <= n * RTT_WIRE, "{n}, {k}: {peak}");
        // Eight packets are a little more than one packet above the need of a round trip.
        let rest = max(after((n + 2) * RTT_BYTES / MTU));
        // By granted bytes, a message that takes over adds its RTTbytes to what the one before still has on its way.
        let handed = if order == "granted" { RTT_WIRE } else { 0 };
        assert!(rest <= (k - 1) * RTT_WIRE + 2 * WIRE + handed, "{n}, {k}, {order}: {rest}");
        assert!((k - 1) * (RTT_WIRE - 2 * WIRE) <= rest, "{n}, {k}, {order}: {rest}");
    }
}

/// A sender switches from a message to a shorter one for another receiver. Its first receiver waits, or has granted
/// other messages.
#[test]
fn overcommitment_fills_the_link_of_a_sender_that_has_turned_away() {
    let last = |k| {
        let flows = vec![
            flow(1, 0, 400_000, Time::ZERO),
            flow(2, 0, 500_000, Time::ZERO),
            flow(1, 3, 200_000, Time::from_us(100)),
        ];
        let (recorder, _) = run(homa(star(4), k, flows));
        let other = &recorder.flows[2];
        assert!(fct(other) <= other.ideal_fct + packets(1), "the shorter message goes at once");
        recorder.flows[..2].iter().map(fct).max().expect("two flows")
    };
    let (alone, both) = (last(1), last(2));
    assert!(both <= after(900) + packets(4), "{both}");
    assert!(after(900) + packets(190) <= alone, "{alone}");
}

/// The message with the fewest bytes left is sent, in any order of arrival, and the other one continues at its
/// position.
#[test]
fn a_sender_goes_by_what_is_left() {
    // After 700 us some 830 packets of the long message have been sent: 170 are left, and messages with more and with
    // fewer arrive.
    for (bytes, overtakes) in [(100_000, true), (250_000, false)] {
        let flows = vec![flow(0, 1, 1_000_000, Time::ZERO), flow(0, 2, bytes, Time::from_us(700))];
        let (recorder, _) = run(homa(star(3), 1, flows));
        let [long, short] = &recorder.flows[..] else { panic!("two flows") };
        let (first, second) = if overtakes { (short, long) } else { (long, short) };
        assert!(fct(first) <= first.ideal_fct + packets(1), "{bytes}: {}", fct(first));
        let end = second.start + fct(second);
        let together = after(1_000 + bytes / MTU);
        assert!(together - packets(1) <= end && end <= together + packets(1), "{bytes}: {end} and not {together}");
    }
}

/// A packet of the highest level waits for one packet of another level on the wire, and for no other.
#[test]
fn short_messages_overtake_scheduled_and_unscheduled_packets() {
    let mut flows: Vec<FlowSpec> = (1..=7).map(|i| flow(i, 0, 300_000, Time::ZERO)).collect();
    // While unscheduled packets wait, and while scheduled ones do.
    flows.extend([(8, 20), (9, 300)].map(|(src, us)| flow(src, 0, 500, Time::from_us(us))));
    for pfc in [false, true] {
        let mut c = homa(star(10), 4, flows.clone());
        c.cc.set("cutoffs", RawValue::Text("1KB")).expect("it is a parameter");
        c.fabric.pfc = if pfc { Pfc::Ingress } else { Pfc::Off };
        let (recorder, _) = run(c);
        for short in &recorder.flows[7..] {
            assert!(fct(short) <= short.ideal_fct + packets(1), "{}", fct(short));
        }
    }
}

/// With one level a short message waits for all data that has arrived before it: RTTbytes of each of seven messages,
/// and the bytes granted meanwhile to the shortest of them, at most RTTbytes.
#[test]
fn with_one_level_short_messages_wait() {
    let mut flows: Vec<FlowSpec> = (1..=7).map(|i| flow(i, 0, 300_000, Time::ZERO)).collect();
    flows.push(flow(8, 0, 500, Time::from_us(20)));
    let mut c = homa(star(9), 1, flows);
    c.cc.set("levels", RawValue::Integer(1)).expect("it is a parameter");
    let (recorder, _) = run(c);
    let short = &recorder.flows[7];
    // The packet is at the switch after 21 us and its own time; the last of the 56 packets has arrived after 56
    // packets' time.
    let waited = after(7 * RTT_BYTES / MTU) - Time::from_us(20);
    let most = waited + packets(RTT_BYTES / MTU);
    assert!(waited <= fct(short) && fct(short) <= most, "{} and not {waited}", fct(short));
}

/// Every message completes, with each byte counted once, for any losses.
fn all_complete(c: SimConfig) -> RunTotals {
    let bytes: Vec<u64> = c.flows.iter().map(|f| f.bytes.as_u64()).collect();
    let (recorder, totals) = run(c);
    for (outcome, bytes) in recorder.flows.iter().zip(bytes) {
        assert_eq!((outcome.delivered_bytes, outcome.fct.is_some()), (bytes, true), "{outcome:?}");
        assert!(outcome.fct_ack.is_some(), "{outcome:?}");
    }
    totals
}

#[test]
fn messages_that_overflow_a_buffer_complete() {
    for (n, bytes, k) in [(16, 3_000, 1), (16, 100_000, 1), (16, 100_000, 7), (60, 8_000, 3)] {
        let flows = (1..=n).map(|i| flow(i, 0, bytes, Time::ZERO)).collect();
        let mut c = homa(star(n + 1), k, flows);
        c.fabric.buffer = Bytes::new(20_000);
        assert!(0 < all_complete(c).drops.total());
    }
}

#[test]
fn messages_complete_over_links_that_lose() {
    for loss in [0.01, 0.3] {
        for bytes in [1, 5_000, 8_001, 200_000] {
            for k in [1, 3] {
                let flows = (1..5).map(|i| flow(i, 0, bytes, Time::ZERO)).collect();
                let mut c = homa(star(5), k, flows);
                c.transport.rto = Some(Time::from_us(100));
                let ports = (0..c.topology.n_ports() as u32).map(PortId).collect();
                c.faults = vec![FaultConfig { ports, loss, ..FaultConfig::NONE }];
                all_complete(c);
            }
        }
    }
}

/// The only packet of a message is lost, and then its answer: each is sent again after the timeout.
#[test]
fn a_lost_start_is_repeated_after_the_timeout() {
    let alone = |from: u32, to: u32, stop| {
        let mut c = homa(star(2), 1, vec![flow(0, 1, 500, Time::from_us(10))]);
        let ports = vec![c.topology.port(NodeId(from), NodeId(to)).expect("a link")];
        c.faults = vec![FaultConfig { ports, loss: 1.0, stop, ..FaultConfig::NONE }];
        run(c).0.flows.remove(0)
    };
    let rto = Time::from_ms(4);
    let lost = alone(0, 2, Time::from_us(100));
    assert_eq!((fct(&lost), lost.timeouts, lost.retransmitted_bytes), (lost.ideal_fct + rto, 1, 500));
    let answer_lost = alone(1, 2, Time::from_us(100));
    assert_eq!((fct(&answer_lost), answer_lost.timeouts), (answer_lost.ideal_fct, 1));
    assert!(answer_lost.fct_ack.is_some_and(|fct| rto < fct && fct < rto + Time::from_us(10)));
}

/// An endless message leaves the link to others as long as they have data, and ends when it is stopped.
#[test]
fn an_endless_message_is_the_longest_and_can_be_stopped() {
    for loss in [0.0, 0.2] {
        let endless = FlowSpec { stop: Time::from_us(900), ..flow(1, 0, u64::MAX, Time::ZERO) };
        let mut c = homa(star(4), 1, vec![endless, flow(2, 0, 200_000, Time::from_us(300))]);
        c.stop.at = Some(Time::from_ms(40));
        c.stop.when_flows_done = false;
        c.transport.rto = Some(Time::from_us(200));
        if loss > 0.0 {
            let ports = (0..c.topology.n_ports() as u32).map(PortId).collect();
            c.faults = vec![FaultConfig { ports, loss, ..FaultConfig::NONE }];
        }
        c.flows.push(flow(3, 0, 100_000, Time::from_ms(30)));
        let (recorder, totals) = run(c);
        let [endless, short, later] = &recorder.flows[..] else { panic!("three flows") };
        assert_eq!(totals.flows_unfinished, 0);
        if loss == 0.0 {
            // The bytes granted earlier to the endless message are still to arrive.
            assert!(fct(short) <= short.ideal_fct + packets(2 * RTT_BYTES / MTU), "{}", fct(short));
            assert_eq!(fct(later), later.ideal_fct, "nothing is left of it");
            // 900 us less 200 packets and the packets in flight.
            let sent = (Time::from_us(900).as_ps() / packets(1).as_ps() - 200) * MTU;
            assert!(sent.abs_diff(endless.delivered_bytes) <= 3 * RTT_BYTES, "{} of {sent}", endless.delivered_bytes);
        }
    }
}

/// Returns what has arrived of bursts of `bytes` bytes when the application stops in its tenth pause, and the bytes it
/// has written then. Receivers ask for missing bytes after 200 us.
fn ten_bursts(bytes: u64, pause: Time, loss: f64) -> (u64, u64) {
    // The next burst comes a pause after the last packet of one is handed to the wire.
    let period = packets(bytes / MTU - 1) + pause;
    let stop = Time::from_ps(10 * period.as_ps() - pause.as_ps() / 2);
    let burst = Some(Burst { bytes: Bytes::new(bytes), pause });
    let mut c = homa(star(2), 1, vec![FlowSpec { burst, stop, ..flow(0, 1, u64::MAX, Time::ZERO) }]);
    c.transport.rto = Some(Time::from_us(200));
    c.stop = StopRule { at: Some(Time::from_ms(60)), when_flows_done: false };
    if loss > 0.0 {
        let ports = (0..c.topology.n_ports() as u32).map(PortId).collect();
        c.faults = vec![FaultConfig { ports, loss, ..FaultConfig::NONE }];
    }
    let (recorder, _) = run(c);
    (recorder.flows[0].delivered_bytes, 10 * bytes)
}

/// In a pause longer than its timer a receiver asks for bytes that are not written yet. The sender does not know the
/// message's length then, so the answer ends nothing.
#[test]
fn bursts_arrive_whatever_the_pause() {
    for bytes in [5_000, 8_000, 100_000] {
        for pause in [50, 199, 201, 1_000, 4_200].map(Time::from_us) {
            let (arrived, written) = ten_bursts(bytes, pause, 0.0);
            assert_eq!(arrived, written, "bursts of {bytes} bytes, pauses of {pause}");
        }
        // A lost packet may hold a burst up for some timeouts, and the next one with it.
        for pause in [1_000, 4_200].map(Time::from_us) {
            let (arrived, written) = ten_bursts(bytes, pause, 0.05);
            assert!(written / 2 <= arrived, "{arrived} of {written} bytes, pauses of {pause}, with losses");
        }
    }
}
