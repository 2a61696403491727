//! Runs and accounts that tests share.

use std::path::Path;

use fairrate_explain::{Explanation, Observer, Reason, Way, sums};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowId, PortId, SimConfig, Simulation};

/// Returns the run of a scenario.
pub fn config(toml: &str) -> SimConfig {
    let scenario = Scenario::from_toml(toml, "test.toml", Path::new("."), &Overrides::default());
    scenario.expect("the scenario is right").into_sim_config()
}

/// Runs `config` and explains `flow`.
pub fn explain(config: &SimConfig, flow: u32) -> Explanation {
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
pub fn chain(explanation: &Explanation) -> Vec<(Way, Reason, u64, u64)> {
    sums(&explanation.chain).iter().map(|s| (s.way, s.reason, s.time.as_ps(), s.bytes)).collect()
}

/// Returns the port of the link from one node to another.
pub fn port(config: &SimConfig, from: &str, to: &str) -> PortId {
    let node = |name| config.topology.node(name).expect("the node exists");
    config.topology.port(node(from), node(to)).expect("the link exists")
}

/// Returns a star of hosts with links of 25 Gb/s and 1 us. Packets of 1,000 bytes have a header of 48 bytes: 1,048
/// bytes take 335.36 ns.
pub fn star(rest: &str) -> SimConfig {
    config(&format!(
        "duration = \"100ms\"\n[topology]\nkind = \"star\"\nhosts = 12\nrate = \"25Gbps\"\ndelay = \"1us\"\n{rest}"
    ))
}

/// Picoseconds that a full packet takes.
pub const PACKET: u64 = 335_360;
/// Picoseconds of a microsecond.
pub const US: u64 = 1_000_000;
