//! The flows and ports that `--flow` and `--port` name.

use fairrate_sim::{FlowId, PortId, SimConfig};
use fairrate_trace::{Filter, Network};
use fairrate_units::Time;

use super::Selection;
use crate::failure::Failure;

/// Returns the filter that `selection` describes.
pub fn filter(selection: &Selection, network: &Network, config: &SimConfig) -> Result<Filter, Failure> {
    Ok(Filter {
        flows: flows(&selection.flow, network, config)?,
        ports: ports(&selection.port, network, config)?,
        from: selection.from,
        until: selection.until.unwrap_or(Time::MAX),
    })
}

fn flows(wanted: &[u32], network: &Network, config: &SimConfig) -> Result<Option<Vec<bool>>, Failure> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let numbers: Vec<u32> = (0..config.flows.len() as u32).filter_map(|at| network.number(FlowId(at))).collect();
    if let Some(unknown) = wanted.iter().find(|number| !numbers.contains(number)) {
        let help = match (numbers.iter().min(), numbers.iter().max()) {
            (Some(first), Some(last)) => format!("the run has {} flows, from {first} to {last}", numbers.len()),
            _ => "the run has no flows".to_owned(),
        };
        return Err(Failure::UnknownName { what: "flow", name: unknown.to_string(), help });
    }
    Ok(Some(numbers.iter().map(|number| wanted.contains(number)).collect()))
}

fn ports(wanted: &[String], network: &Network, config: &SimConfig) -> Result<Option<Vec<bool>>, Failure> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let topology = &config.topology;
    let mut chosen = vec![false; network.ports.len()];
    for name in wanted {
        let node = topology.node(name);
        let mut is_known = false;
        for (port, (known, is_chosen)) in (0..).map(PortId).zip(network.ports.iter().zip(&mut chosen)) {
            let is_of_node = node.is_some_and(|node| topology.from(port) == node || topology.to(port) == node);
            if known == name || is_of_node {
                (*is_chosen, is_known) = (true, true);
            }
        }
        if !is_known {
            let nodes = topology.nodes.iter().map(|node| node.name.as_str());
            let known: Vec<&str> = network.ports.iter().map(String::as_str).chain(nodes).collect();
            return Err(unknown(name, &known));
        }
    }
    Ok(Some(chosen))
}

/// Returns the failure for a name that is not among `known`, of which there may be very many.
fn unknown(name: &str, known: &[&str]) -> Failure {
    let help = fairrate_text::did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
        format!("ports have names as `{}`, and `{}` names all ports of a node", known[0], known[known.len() - 1])
    });
    Failure::UnknownName { what: "port", name: name.to_owned(), help }
}
