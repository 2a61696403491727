//! Accounts of HOMA's messages held against numbers worked by hand: each scenario has one cause beside transmission and
//! propagation.

use fairrate_explain::{Behind, Explanation, How, Loss, Reason, Way, sums};
use fairrate_sim::{DropCause, FlowId, PortId, SimConfig};
use fairrate_units::Time;

mod common;
use common::{PACKET, US, chain, explain, port, star};

/// Picoseconds that a grant or a request of 60 bytes takes.
const GRANT: u64 = 19_200;

/// Returns a traffic block: a message from one host to another.
fn message(from: &str, to: &str, bytes: &str, start: &str) -> String {
    format!(
        "[[traffic]]\nkind = \"incast\"\nsenders = [\"{from}\"]\nreceiver = \"{to}\"\nbytes = \"{bytes}\"\nstart = \"{start}\"\n"
    )
}

/// Returns a star under HOMA with `keys` of its transport and these further parts.
fn homa(keys: &str, rest: &[String]) -> SimConfig {
    star(&format!("[transport]\ncc = \"homa\"\nrto = \"1ms\"\n{keys}\n[switch]\npfc = false\n{}", rest.concat()))
}

const ONE_PACKET: &str = "[transport.homa]\nrtt_bytes = \"1000B\"\novercommitment = 1\n";

/// Returns transmission and propagation of `n` packets one after the other, from `nic` by `last`.
fn trips(n: u64, nic: PortId, last: PortId) -> [(Way, Reason, u64, u64); 4] {
    [
        (Way::Data, Reason::Serialisation(nic), n * PACKET, n * 1_048),
        (Way::Data, Reason::Propagation(nic), n * US, 0),
        (Way::Data, Reason::Serialisation(last), n * PACKET, n * 1_048),
        (Way::Data, Reason::Propagation(last), n * US, 0),
    ]
}

/// Returns transmission and propagation of `n` grants, from the end of `last` to that of `nic`.
fn grants(n: u64, nic: PortId, last: PortId) -> [(Way, Reason, u64, u64); 4] {
    let (first, second) = (last.reverse(), nic.reverse());
    [
        (Way::Ack, Reason::Serialisation(first), n * GRANT, n * 60),
        (Way::Ack, Reason::Propagation(first), n * US, 0),
        (Way::Ack, Reason::Serialisation(second), n * GRANT, n * 60),
        (Way::Ack, Reason::Propagation(second), n * US, 0),
    ]
}

fn time_of(explanation: &Explanation, reason: Reason) -> u64 {
    sums(&explanation.chain).iter().filter(|sum| sum.reason == reason).map(|sum| sum.time.as_ps()).sum()
}

/// RTTbytes keep the link busy, so a message never waits for a grant, short or long.
#[test]
fn a_message_alone_is_serialisation_and_propagation() {
    for (bytes, n) in [("10KB", 10), ("500KB", 500)] {
        let c = homa("", &[message("h1", "h0", bytes, "0s")]);
        let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
        let e = explain(&c, 0);
        let expected = [
            (Way::Data, Reason::Serialisation(nic), n * PACKET, n * 1_048),
            (Way::Data, Reason::Propagation(nic), US, 0),
            (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
            (Way::Data, Reason::Propagation(last), US, 0),
        ];
        assert_eq!(chain(&e), expected);
        assert_eq!((e.round_trips, e.losses), (0, 0));
        let of_sender = [Reason::Serialisation(nic), Reason::LastPacket];
        assert!(e.sender.iter().all(|piece| of_sender.contains(&piece.reason)), "{:?}", e.sender);
    }
}

/// With RTTbytes of a packet, each packet but the first waits for the grant that answers the one before.
#[test]
fn grants_of_a_packet_make_a_chain_of_round_trips() {
    let c = homa(ONE_PACKET, &[message("h1", "h0", "5KB", "0s")]);
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    assert_eq!((e.round_trips, e.losses), (4, 0));
    assert_eq!(chain(&e), [trips(5, nic, last), grants(4, nic, last)].concat());
    let credit = sums(&e.sender).into_iter().find(|s| s.reason == Reason::Credit).expect("it waits for grants");
    assert_eq!(credit.time.as_ps(), 4 * (PACKET + 4 * US + 2 * GRANT), "all of a round trip but its own transmission");
}

/// The receiver grants one message at a time. The longer one comes 1 us after the shorter one, and gets its first grant
/// when the fifth packet of the shorter one has led to the last grant of that: four round trips later, but for the
/// microsecond.
#[test]
fn a_message_waits_while_a_shorter_one_is_granted() {
    let c = homa(ONE_PACKET, &[message("h1", "h0", "6KB", "0s"), message("h2", "h0", "7KB", "1us")]);
    let (nic, last) = (port(&c, "h2", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 1);
    let round_trip = 2 * PACKET + 4 * US + 2 * GRANT;
    let credit = (Way::Data, Reason::Credit, 4 * round_trip - US, 0);
    assert_eq!(chain(&e), [&trips(7, nic, last)[..], &[credit], &grants(6, nic, last)].concat());
    assert_eq!((e.round_trips, e.losses), (6, 0));
}

/// Unscheduled packets of two messages meet at the receiver's link: one waits for the other.
#[test]
fn unscheduled_packets_wait_for_each_other() {
    let c = homa("", &[message("h1", "h0", "1KB", "0s"), message("h2", "h0", "1KB", "0s")]);
    let last = port(&c, "sw0", "h0");
    let waits = [0, 1].map(|flow| time_of(&explain(&c, flow), Reason::Queue(last, Behind::Flow(FlowId(1 - flow)))));
    assert_eq!(waits.iter().sum::<u64>(), PACKET, "{waits:?}");
    let first = waits.iter().position(|&wait| wait == 0).expect("one does not wait") as u32;
    assert_eq!(explain(&c, first).fct.as_ps(), 2 * (PACKET + US));
}

/// The NIC sends the message with the fewest bytes left. The longer one has just begun with a packet.
#[test]
fn a_message_waits_at_the_nic_for_a_shorter_one() {
    let c = homa("", &[message("h1", "h0", "10KB", "0s"), message("h1", "h2", "5KB", "100ns")]);
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 10 * PACKET, 10 * 1_048),
        (Way::Data, Reason::Turn(nic, Behind::Flow(FlowId(1))), 5 * PACKET, 5 * 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!(chain(&e), expected);
    assert_eq!(time_of(&explain(&c, 1), Reason::Turn(nic, Behind::Flow(FlowId(0)))), PACKET - 100_000);
}

/// Eleven messages of a packet meet at a port with room for nine. The receiver does not know of the one that is
/// dropped, so the sender's own timer of 1 ms ends.
#[test]
fn a_message_that_was_dropped_comes_again_after_the_timeout_of_its_sender() {
    let buffer = "buffer = \"10KB\"\ndt_alpha = \"unlimited\"\n".to_owned();
    let incast = "[[traffic]]\nkind = \"incast\"\nsenders = 11\nreceiver = \"h0\"\nbytes = \"1KB\"\n".to_owned();
    let c = homa("", &[buffer, incast]);
    let last = port(&c, "sw0", "h0");
    let lossy: Vec<Explanation> = (0..11).map(|flow| explain(&c, flow)).filter(|e| 0 < e.losses).collect();
    let [e] = &lossy[..] else { panic!("one packet is dropped: {lossy:#?}") };
    let loss = Loss { port: last, how: How::Dropped(DropCause::BufferFull) };
    assert_eq!(time_of(e, Reason::Timeout(Some(loss))), 1_000 * US - PACKET - US);
    assert_eq!(e.fct, Time::from_ms(1) + Time::from_ps(2 * (PACKET + US)));
}

/// The second of five packets is lost as it leaves the switch, after two transmissions and 1 us. The receiver asks for
/// it 1 ms after the last one came, after six transmissions and 2 us.
#[test]
fn a_packet_that_was_lost_is_asked_for_after_the_timeout_of_its_receiver() {
    let fault = "[[fault]]\nlinks = [\"sw0->h0\"]\nloss = 1.0\nstart = \"1600ns\"\nstop = \"1800ns\"\n".to_owned();
    let c = homa("", &[message("h1", "h0", "5KB", "0s"), fault]);
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    let loss = Some(Loss { port: last, how: How::Dropped(DropCause::Fault) });
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 3 * PACKET, 3 * 1_048),
        (Way::Data, Reason::Propagation(nic), 2 * US, 0),
        (Way::Data, Reason::Timeout(loss), 1_000 * US + 4 * PACKET + US, 0),
        (Way::Data, Reason::Recovery(loss), 2 * (GRANT + US), 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!((chain(&e), e.losses), (expected.to_vec(), 1));
}

/// The grant for the second packet is lost, so the sender repeats the first one 1 ms after it began to send it. At the
/// same time as that arrives, the receiver asks for the second one. The sender reports the length of its message first,
/// in a packet of 60 bytes.
#[test]
fn a_lost_grant_is_a_timeout_without_a_loss_of_data() {
    let fault = "[[fault]]\nlinks = [\"h0->sw0\"]\nloss = 1.0\nstart = \"2600ns\"\nstop = \"2800ns\"\n".to_owned();
    let c = homa(ONE_PACKET, &[message("h1", "h0", "2KB", "0s"), fault]);
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    assert_eq!((time_of(&e, Reason::Timeout(None)), e.losses), (1_000 * US - PACKET, 0), "{:?}", chain(&e));
    assert_eq!(time_of(&e, Reason::Serialisation(nic)), 3 * PACKET + GRANT);
    assert_eq!(time_of(&e, Reason::Serialisation(last)), 2 * PACKET);
}
