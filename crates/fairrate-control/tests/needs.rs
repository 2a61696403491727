//! The union of the needs of two algorithms in one network.

use fairrate_control::{
    ALGORITHMS, AlgorithmConfig, FeedbackNeeds, Needs, NetworkConflict, NetworkNeeds, PacingNeeds, PortScope, Profile,
    WireNeeds,
};

fn needs(name: &str) -> NetworkNeeds {
    AlgorithmConfig::by_name(name, Profile::Paper).expect("it is registered").needs().network
}

#[test]
fn the_default_needs_nothing() {
    assert_eq!(Needs::default(), Needs::NOTHING);
    let parts = (NetworkNeeds::default(), WireNeeds::default(), PacingNeeds::default(), FeedbackNeeds::default());
    let Needs { network, wire, pacing, feedback } = Needs::NOTHING;
    assert_eq!(parts, (network, wire, pacing, feedback));
}

#[test]
fn the_union_does_not_depend_on_the_order_and_an_algorithm_without_needs_adds_none() {
    for a in ALGORITHMS.iter().map(|a| needs(a.name)) {
        assert_eq!(a.union(&NetworkNeeds::NOTHING), Ok(a));
        for b in ALGORITHMS.iter().map(|b| needs(b.name)) {
            assert_eq!(a.union(&b), b.union(&a));
            let Ok(both) = a.union(&b) else { continue };
            assert_eq!(both.ecn, a.ecn || b.ecn);
            // What the union asks for is what one of the two asks for, and it leaves nothing of either out.
            for one in [a, b] {
                assert!(one.telemetry.is_none() || both.telemetry == one.telemetry);
                assert!(one.red.is_none() || both.red == one.red);
                assert!(one.circuits.is_none() || both.circuits == one.circuits);
                assert!(one.ports == PortScope::None || both.ports == one.ports);
            }
        }
    }
}

#[test]
fn algorithms_that_ask_one_network_for_two_things_conflict() {
    for (a, b, conflict) in [
        ("rocc", "perc", Some(NetworkConflict::Ports)),
        ("rocc", "rocc", Some(NetworkConflict::Ports)),
        ("dctcp", "ratemp", Some(NetworkConflict::Marking)),
        ("homa", "pfabric", Some(NetworkConflict::Queueing)),
        ("homa", "bfc", Some(NetworkConflict::Queueing)),
        ("dctcp", "cubic", None),
        ("dctcp", "d2tcp", None),
        ("powertcp", "hpcc", None),
        ("powertcp", "dctcp", None),
        ("retcp", "cubic", None),
        ("rocc", "swift", None),
    ] {
        assert_eq!(needs(a).union(&needs(b)).err(), conflict, "{a} and {b}");
    }
    let mut counted = needs("powertcp");
    let telemetry = counted.telemetry.as_mut().expect("PowerTCP reads telemetry");
    telemetry.counter = fairrate_control::IntCounter::Enqueued;
    assert_eq!(counted.union(&needs("hpcc")), Err(NetworkConflict::Telemetry));
    let mut larger = needs("retcp");
    larger.circuits.as_mut().expect("reTCP has help").voq = fairrate_units::Bytes::new(1);
    assert_eq!(larger.union(&needs("retcp")), Err(NetworkConflict::Circuits));
    assert!(NetworkConflict::Ports.to_string().contains("agents"));
}
