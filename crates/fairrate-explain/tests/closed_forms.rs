//! Accounts held against numbers worked by hand.

use std::path::Path;

use fairrate_explain::{Behind, Explanation, How, Loss, Observer, Reason, Way, sums};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{DropCause, FlowId, PortId, SimConfig, Simulation};
use fairrate_units::Time;

fn config(toml: &str) -> SimConfig {
    let scenario = Scenario::from_toml(toml, "test.toml", Path::new("."), &Overrides::default());
    scenario.expect("the scenario is right").into_sim_config()
}

/// Runs `config` and explains `flow`.
fn explain(config: &SimConfig, flow: u32) -> Explanation {
    let flow = FlowId(flow);
    let mut observer = Observer::new(config, &[flow]).expect("the flow can be explained");
    let mut simulation = Simulation::new(config.clone());
    simulation.run(&mut observer).expect("the run does not stall");
    let explanation = observer.explain(flow).expect("the flow has finished");
    for pieces in [&explanation.chain, &explanation.sender] {
        assert_eq!(pieces.first().map(|p| p.from), Some(explanation.start));
        assert_eq!(pieces.last().map(|p| p.to), Some(explanation.start + explanation.fct));
        assert!(pieces.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].from < pair[0].to), "{pieces:#?}");
    }
    explanation
}

/// Returns the sums of the chain as ways, reasons, picoseconds and bytes.
fn chain(explanation: &Explanation) -> Vec<(Way, Reason, u64, u64)> {
    sums(&explanation.chain).iter().map(|s| (s.way, s.reason, s.time.as_ps(), s.bytes)).collect()
}

fn port(config: &SimConfig, from: &str, to: &str) -> PortId {
    let node = |name| config.topology.node(name).expect("the node exists");
    config.topology.port(node(from), node(to)).expect("the link exists")
}

/// A star of hosts with links of 25 Gb/s and 1 us. Packets of 1,000 bytes have a header of 48 bytes: 1,048 bytes take 335.36 ns.
fn star(rest: &str) -> SimConfig {
    config(&format!(
        "duration = \"100ms\"\n[topology]\nkind = \"star\"\nhosts = 12\nrate = \"25Gbps\"\ndelay = \"1us\"\n{rest}"
    ))
}

const PACKET: u64 = 335_360;
const US: u64 = 1_000_000;

#[test]
fn a_flow_alone_is_serialisation_and_propagation() {
    let c = star("[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"50KB\"\n");
    let (nic, last) = (port(&c, "h1", "switch"), port(&c, "switch", "h0"));
    let e = explain(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 50 * PACKET, 50 * 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!(chain(&e), expected);
    assert_eq!((e.round_trips, e.losses), (0, 0));
}
