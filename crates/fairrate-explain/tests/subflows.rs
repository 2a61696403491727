//! Accounts of connections with several subflows.

use fairrate_explain::{Explanation, How, Loss, Reason, Way, sums};
use fairrate_sim::{DropCause, SimConfig};
use fairrate_units::Time;

mod common;
use common::{PACKET, US, chain, config, explain, port, star};

/// Returns a connection of `bytes` from h1 to h0 with two subflows, in a star without PFC, with these keys of switches
/// and TCP.
fn connection(bytes: &str, window: u32, switch: &str, tcp: &str) -> SimConfig {
    star(&format!(
        "[switch]\npfc = false\n{switch}\n[transport]\nkind = \"tcp\"\ncc = \"lia\"\nheader = \"48B\"\nmtu = \"1000B\"\n\
         [transport.tcp]\nsubflows = 2\n{tcp}\n[transport.lia]\ninitial_window = {window}\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"{bytes}\"\n"
    ))
}

fn time_of(explanation: &Explanation, is_of: impl Fn(Reason) -> bool) -> Time {
    let of = sums(&explanation.chain).into_iter().filter(|sum| is_of(sum.reason));
    of.fold(Time::ZERO, |all, sum| all + sum.time)
}

/// Two subflows, with ten packets and two, share the NIC as one flow: what waits for the other one waits for the
/// connection.
#[test]
fn subflows_of_one_nic_are_serialisation_and_propagation() {
    let c = connection("12KB", 10, "", "");
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 12 * PACKET, 12 * 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!(chain(&e), expected);
}

/// Windows of two packets each fill no path of 4 us: the chain goes back by acknowledgments, each to the packet of its
/// subflow.
#[test]
fn windows_of_subflows_lead_back_to_the_packets_that_were_answered() {
    let c = connection("100KB", 2, "", "");
    let e = explain(&c, 0);
    assert!(1 < e.round_trips && e.losses == 0, "{e:#?}");
    assert_eq!(time_of(&e, |reason| matches!(reason, Reason::Unknown)), Time::ZERO, "{:#?}", sums(&e.chain));
    assert!(e.chain.iter().any(|piece| piece.way == Way::Ack));
}

/// The second subflow begins after the handshake of the first, and the first data after its own.
#[test]
fn handshakes_of_subflows_are_named() {
    let c = connection("16KB", 10, "", "handshake = true");
    let e = explain(&c, 0);
    // A round trip of two packets without data.
    assert!(Time::from_us(4) < time_of(&e, |reason| reason == Reason::Handshake), "{:#?}", sums(&e.chain));
}

/// A queue of a few packets drops some of each subflow: losses are found on the subflow that had them.
#[test]
fn losses_of_subflows_are_found() {
    let c = connection("300KB", 10, "dt_alpha = \"unlimited\"\nqueue_limit = \"4KB\"", "");
    let mut c = c;
    // The receiver's link is slower than the sender's.
    let slow = port(&c, "sw0", "h0");
    c.topology.links[slow.0 as usize / 2].rate = fairrate_units::Rate::from_gbps(10);
    let e = explain(&c, 0);
    assert!(0 < e.losses, "{:#?}", sums(&e.chain));
    let lost = time_of(&e, |reason| matches!(reason, Reason::Recovery(Some(_)) | Reason::Timeout(Some(_))));
    assert!(Time::ZERO < lost);
    assert_eq!(time_of(&e, |reason| matches!(reason, Reason::Unknown)), Time::ZERO, "{:#?}", sums(&e.chain));
}

/// One of two paths loses all packets: after two timeouts their bytes go by the other one, and the account names the
/// link that lost them.
#[test]
fn bytes_that_go_by_another_subflow_were_lost_at_a_place() {
    let c = config(
        "duration = \"100ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
         [switch]\npfc = false\n[transport]\nkind = \"tcp\"\ncc = \"lia\"\n\
         [transport.tcp]\nsubflows = 2\npaths = \"disjoint\"\nscheduler = \"round-robin\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h0\"]\nreceiver = \"h1\"\nbytes = \"1MB\"\n\
         [[fault]]\nlinks = [\"spine0->tor1\"]\nloss = 1.0\n",
    );
    let e = explain(&c, 0);
    let loss = Loss { port: port(&c, "spine0", "tor1"), how: How::Dropped(DropCause::Fault) };
    // The first timeout is after 1 ms and the second after two more.
    assert_eq!(
        time_of(&e, |reason| reason == Reason::Timeout(Some(loss))).as_ns() / 100_000,
        29,
        "{:#?}",
        sums(&e.chain)
    );
    let without = |reason| matches!(reason, Reason::Timeout(None) | Reason::Recovery(None) | Reason::Unknown);
    assert_eq!(time_of(&e, without), Time::ZERO, "{:#?}", sums(&e.chain));
    let nowhere_else = |reason: Reason| reason.loss().is_none_or(|at| at == loss);
    assert!(e.chain.iter().all(|piece| nowhere_else(piece.reason)));
}

/// A NIC transmits no more bytes in a time than its rate allows, whichever subflow's packets they are.
#[test]
fn bytes_of_paced_subflows_are_counted_once() {
    let c = config(
        "duration = \"10ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
         host_rate = \"10Gbps\"\nuplink_rate = \"10Gbps\"\n\
         [transport]\nkind = \"tcp\"\ncc = \"mpcc\"\n[transport.mpcc]\ninitial_rate = \"4Gbps\"\n\
         [transport.tcp]\nsubflows = 2\npaths = \"disjoint\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h0\"]\nreceiver = \"h1\"\nbytes = \"200KB\"\n",
    );
    let nic = port(&c, "h0", "tor0");
    let e = explain(&c, 0);
    for (_, reason, ps, bytes) in chain(&e) {
        if reason == Reason::Serialisation(nic) {
            // 800 ps a byte; each of the pieces is cut to whole bytes.
            assert!((bytes * 800).abs_diff(ps) <= 800 * 400, "{bytes} B in {ps} ps");
        }
    }
}
