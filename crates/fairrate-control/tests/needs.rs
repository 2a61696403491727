//! The union of the needs of two algorithms in one network.

use std::mem::discriminant;

use fairrate_control::credits::DatagramDefaults;
use fairrate_control::{
    ALGORITHMS, AlgorithmConfig, FeedbackNeeds, IntCounter, IntFormat, Needs, NetworkConflict, NetworkNeeds,
    PacingNeeds, PortScope, Profile, Queueing, WireNeeds,
};
use fairrate_units::Bytes;

fn needs(name: &str) -> NetworkNeeds {
    AlgorithmConfig::by_name(name, Profile::Paper).expect("it is registered").needs().network
}

/// Returns the conflict of the same two algorithms in the other order.
fn exchanged(conflict: NetworkConflict) -> NetworkConflict {
    match conflict {
        NetworkConflict::Telemetry(a, b) => NetworkConflict::Telemetry(b, a),
        NetworkConflict::Marking(a, b) => NetworkConflict::Marking(b, a),
        NetworkConflict::Ports(a, b) => NetworkConflict::Ports(b, a),
        NetworkConflict::Queueing(a, b) => NetworkConflict::Queueing(b, a),
        NetworkConflict::Circuits(a, b) => NetworkConflict::Circuits(b, a),
    }
}

#[test]
fn the_default_needs_nothing() {
    assert_eq!(Needs::default(), Needs::NOTHING);
    let parts = (NetworkNeeds::default(), WireNeeds::default(), PacingNeeds::default(), FeedbackNeeds::default());
    let Needs { network, wire, pacing, feedback, datagrams } = Needs::NOTHING;
    assert_eq!(datagrams, DatagramDefaults::UET);
    assert_eq!(parts, (network, wire, pacing, feedback));
}

#[test]
fn the_union_does_not_depend_on_the_order_and_an_algorithm_without_needs_adds_none() {
    for a in ALGORITHMS.iter().map(|a| needs(a.name)) {
        assert_eq!(a.union(&NetworkNeeds::default()), Ok(a));
        assert_eq!(NetworkNeeds::default().union(&a), Ok(a));
        for b in ALGORITHMS.iter().map(|b| needs(b.name)) {
            assert_eq!(a.union(&b), b.union(&a).map_err(exchanged));
            let Ok(both) = a.union(&b) else { continue };
            assert_eq!(both.ecn, a.ecn || b.ecn);
            // What the union asks for is what one of the two asks for, and it leaves nothing of either out.
            for one in [a, b] {
                assert!(one.telemetry.is_none() || both.telemetry == one.telemetry);
                assert!(one.red.is_none() || both.red == one.red);
                assert!(one.circuits.is_none() || both.circuits == one.circuits);
                assert!(one.ports == PortScope::None || both.ports == one.ports);
                assert!(one.queueing == Queueing::Any || both.queueing == one.queueing);
            }
        }
    }
}

/// Needs do not name the agent at ports or the queues of its own, so two algorithms that have them conflict, even if
/// both are the same. Any other algorithm can share a network with itself.
#[test]
fn an_algorithm_with_itself_needs_the_same_unless_it_has_agents_or_queues_of_its_own() {
    for info in ALGORITHMS {
        let a = needs(info.name);
        let is_unnamed = a.ports != PortScope::None || a.queueing == Queueing::Own;
        assert_eq!(a.union(&a).ok(), (!is_unnamed).then_some(a), "{}", info.name);
    }
}

/// Expects that the needs of `a` and `b` conflict as `conflict` does, with the values of `a` first, and with `message`.
fn expect_conflict(a: &NetworkNeeds, b: &NetworkNeeds, conflict: NetworkConflict, message: &str) {
    assert_eq!(a.union(b), Err(conflict));
    assert_eq!(conflict.to_string(), message);
    assert_eq!(b.union(a), Err(exchanged(conflict)));
}

#[test]
fn algorithms_conflict_in_telemetry() {
    let (hpcc, mut counted) = (needs("hpcc"), needs("powertcp"));
    let telemetry = counted.telemetry.as_mut().expect("PowerTCP reads telemetry");
    (telemetry.counter, telemetry.format) = (IntCounter::Enqueued, IntFormat::Packed);
    let of = |needs: &NetworkNeeds| needs.telemetry.expect("both read telemetry");
    expect_conflict(
        &hpcc,
        &counted,
        NetworkConflict::Telemetry(of(&hpcc), of(&counted)),
        "the first reads telemetry of transmitted bytes in exact records, the second of enqueued bytes in packed records, \
         and a switch stamps one kind",
    );
}

#[test]
fn algorithms_conflict_in_marking() {
    let (dctcp, hull) = (needs("dctcp"), needs("hull"));
    let of = |needs: &NetworkNeeds| needs.red.expect("both have a default marking");
    let ratemp = needs("ratemp");
    let ranged = NetworkConflict::Marking(of(&dctcp), of(&ratemp)).to_string();
    assert!(ranged.contains("with probability 1 of the queue left at any rate"), "{ranged}");
    expect_conflict(
        &dctcp,
        &hull,
        NetworkConflict::Marking(of(&dctcp), of(&hull)),
        "the first is made for ECN marking above 30KB of the queue joined at 10Gbps, the second above 1KB of a phantom queue \
         at 95 % at 1Gbps, and the scenario gives none",
    );
}

#[test]
fn algorithms_conflict_in_agents_at_ports() {
    expect_conflict(
        &needs("rocc"),
        &needs("perc"),
        NetworkConflict::Ports(needs("rocc").ports, needs("perc").ports),
        "the first has agents at the ports of switches, the second at all ports, and a port runs one agent",
    );
}

#[test]
fn algorithms_conflict_in_queueing() {
    expect_conflict(
        &needs("pfabric"),
        &needs("homa"),
        NetworkConflict::Queueing(Queueing::Priorities, Queueing::Own),
        "the first queues data by priorities, the second in queues of its own, and a port queues in one way",
    );
}

#[test]
fn algorithms_conflict_in_circuits() {
    let (retcp, mut smaller) = (needs("retcp"), needs("retcp"));
    smaller.circuits.as_mut().expect("reTCP has help").voq = Bytes::new(1_500);
    let of = |needs: &NetworkNeeds| needs.circuits.expect("both need VOQs");
    expect_conflict(
        &retcp,
        &smaller,
        NetworkConflict::Circuits(of(&retcp), of(&smaller)),
        "the first needs VOQs of 144KB, 450KB from 1800us before a circuit, the second of 1500B, 450KB from 1800us before a \
         circuit, and a ToR has one limit",
    );
}

#[test]
fn pairs_of_algorithms_share_a_network_or_conflict() {
    let kind = |a: &str, b: &str| needs(a).union(&needs(b)).err().as_ref().map(discriminant);
    let ports = kind("rocc", "perc");
    let marking = kind("dctcp", "ratemp");
    let queueing = kind("homa", "pfabric");
    assert!(ports.is_some() && marking.is_some() && queueing.is_some());
    assert!(ports != marking && marking != queueing && queueing != ports);
    for (a, b, conflict) in [
        ("rocc", "rocc", ports),
        ("homa", "bfc", queueing),
        ("dctcp", "cubic", None),
        ("dctcp", "d2tcp", None),
        ("powertcp", "hpcc", None),
        ("powertcp", "dctcp", None),
        ("retcp", "cubic", None),
        ("rocc", "swift", None),
    ] {
        assert_eq!(kind(a, b), conflict, "{a} and {b}");
    }
}
