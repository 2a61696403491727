//! Traffic blocks with algorithms of their own: which algorithms a run uses, and which of them one kernel cannot have
//! at the same time.

use std::collections::BTreeSet;

use fairrate_control::AlgorithmConfig;
use fairrate_scenario::Scenario;
use fairrate_sim::{NodeId, SimConfig};

use crate::algorithm;
use crate::failure::Failure;

/// Returns the algorithms that flows use, each with its stack as in [`FlowSpec::stack`](fairrate_sim::FlowSpec::stack);
/// the scenario's algorithm if there are no flows.
pub fn algorithms(config: &SimConfig) -> impl Iterator<Item = (u8, &AlgorithmConfig)> {
    let used: BTreeSet<u8> = config.flows.iter().map(|flow| flow.stack).collect();
    let used = if used.is_empty() { BTreeSet::from([0]) } else { used };
    used.into_iter().map(|stack| (stack, config.stack(stack).1))
}

/// Checks that one kernel and one network can have the algorithms of all blocks at the same time. The scenario has the
/// facts of Linux already.
///
/// # Errors
/// The first pair of blocks that do not go together, with an alternative.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    let config = scenario.sim_config();
    let all: Vec<(u8, &AlgorithmConfig)> = algorithms(config).collect();
    let fit = |what: String, help: &str| {
        Err(Failure::Unfit { scenario: scenario.name().to_owned(), what, help: help.to_owned() })
    };
    if let Some((stack, _)) = all.iter().find(|(stack, _)| config.stack(*stack).0 != &config.transport) {
        let what = format!("{} has a transport of its own, and TCP of Linux is one for all", block(scenario, *stack));
        return fit(what, "write `cc` in the block, without `transport`");
    }
    for (i, (stack, cc)) in all.iter().enumerate() {
        for (other_stack, other) in &all[..i] {
            let (a, b) = (block(scenario, *other_stack), block(scenario, *stack));
            let (name, other_name) = (cc.info().name, other.info().name);
            if name == other_name {
                let what = format!("{a} and {b} have `{name}` with different parameters, and the kernel has it once");
                return fit(what, "give both the same parameters");
            }
            if algorithm::has_part_at_ports(cc) && algorithm::has_part_at_ports(other) {
                let what = format!(
                    "{a} has `{other_name}` and {b} has `{name}`, and switches would do the work of both at one port"
                );
                return fit(what, "choose for one of them an algorithm without a part at switches");
            }
            let shared = hosts(config, *stack).intersection(&hosts(config, *other_stack)).next().copied();
            let writer = [(name, cc), (other_name, other)].into_iter().find(|(_, cc)| algorithm::writes_records(cc));
            if let (Some(host), Some((writer, _))) = (shared, writer) {
                let host = &config.topology.nodes[host.index()].name;
                let what =
                    format!("`{writer}` puts its telemetry into all packets of a host, and {host} is in {a} and {b}");
                return fit(what, "give the blocks different hosts");
            }
        }
    }
    Ok(())
}

/// Returns the hosts of the flows of a stack.
pub fn hosts(config: &SimConfig, stack: u8) -> BTreeSet<NodeId> {
    let flows = config.flows.iter().filter(|flow| flow.stack == stack);
    flows.flat_map(|flow| [flow.src, flow.dst]).collect()
}

/// Returns the name of the first block of a stack, for messages.
fn block(scenario: &Scenario, stack: u8) -> String {
    let flow = scenario.sim_config().flows.iter().find(|flow| flow.stack == stack);
    let group = flow.map_or(0, |flow| flow.group as usize);
    match scenario.traffic_blocks().get(group).filter(|name| !name.is_empty()) {
        Some(name) => format!("block `{name}`"),
        None => format!("traffic block {group}"),
    }
}
