//! The rates that an oracle gives to flows: max-min fair, by class where classes have weights, or what each would have
//! alone.

use fairrate_allocate::{ClassMaxMin, LinkId, MaxMin};
use fairrate_control::Oracle;
use fairrate_units::Rate;

use crate::config::{FlowSpec, SimConfig};
use crate::ids::PortId;

/// A solver for the links of a network, whose numbers are those of their egress ports.
pub(crate) enum Optimum {
    /// All flows are of one class.
    Flat(MaxMin),
    /// Links serve classes, each with the weight of its `[[class]]` or strictly.
    ByClass(ClassMaxMin),
    /// Flows have the rates that they would have alone.
    Alone {
        /// Rates of the links.
        links_bps: Vec<f64>,
        /// Rates of the flows.
        flows_bps: Vec<f64>,
    },
}

impl Optimum {
    /// Returns a solver for the network of `config`, whose links have these `rates`, without flows.
    pub(crate) fn new(config: &SimConfig, oracle: Oracle, rates: &[Rate]) -> Self {
        let capacities = rates.iter().map(|rate| rate.as_bps_f64());
        if oracle == Oracle::Alone {
            return Self::Alone { links_bps: capacities.collect(), flows_bps: Vec::new() };
        }
        if config.fabric.classes.is_empty() {
            return Self::Flat(MaxMin::new(capacities));
        }
        Self::ByClass(ClassMaxMin::new(capacities, config.fabric.all_classes().map(|class| class.weight)))
    }

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Flat(solver) => solver.clear(),
            Self::ByClass(solver) => solver.clear(),
            Self::Alone { flows_bps, .. } => flows_bps.clear(),
        }
    }

    /// Adds the flow `spec` of `config` over the links of `ports`.
    pub(crate) fn add(&mut self, config: &SimConfig, spec: &FlowSpec, ports: impl IntoIterator<Item = PortId>) {
        let links = ports.into_iter().map(|port| LinkId(port.0));
        let demand_bps = if spec.demand == Rate::MAX { f64::INFINITY } else { spec.demand.as_bps_f64().max(1.0) };
        match self {
            Self::Flat(solver) => solver.add(links, spec.weight, demand_bps),
            Self::ByClass(solver) => solver.add(links, config.class_of(spec), spec.weight, demand_bps),
            Self::Alone { links_bps, flows_bps } => {
                flows_bps.push(links.map(|link| links_bps[link.index()]).fold(demand_bps, f64::min));
            }
        }
    }

    /// Returns the rates of the flows in bit/s, in the order in which they were added.
    pub(crate) fn solve(&mut self) -> &[f64] {
        match self {
            Self::Flat(solver) => solver.solve(),
            Self::ByClass(solver) => {
                let is_settled = solver.solve().is_some();
                debug_assert!(is_settled, "rates by class settle");
                solver.rates_bps()
            }
            Self::Alone { flows_bps, .. } => flows_bps,
        }
    }
}
