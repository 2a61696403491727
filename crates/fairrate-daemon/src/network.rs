//! The network of the allocation: links of a scenario's topology, the addresses of its hosts, and the state of links.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use fairrate_allocate::{LinkId, RateEngine, RealTime};
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::topology::Topology;
use fairrate_sim::{EcmpHash, NodeId, PortId};

use crate::config::Engine;
use crate::desk::{Change, Paths};
use crate::fair::AlphaFair;

/// The state of a link, where it differs from the topology's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkState {
    /// No path leads over it, in either direction.
    Down,
    /// It has another rate, in one direction, in bit/s.
    Rate(f64),
}

/// A link that the topology does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the topology has no link `{name}`{help}")]
pub struct UnknownLink {
    /// Its name.
    pub name: String,
    help: String,
}

/// Links, hosts and the paths between them.
#[derive(Clone, Debug)]
pub struct Network {
    topology: Topology,
    /// Capacity of each link direction, by port.
    capacities_bps: Vec<f64>,
    hosts: HashMap<IpAddr, NodeId>,
    routes: Routes,
    seed: u64,
    n_down: usize,
}

impl Network {
    /// Creates a network whose hosts have the given addresses. `seed` selects among equal paths.
    pub fn new(topology: Topology, hosts: HashMap<IpAddr, NodeId>, seed: u64) -> Self {
        let routes = Routes::new(&topology);
        let capacities_bps = nominal_bps(&topology).collect();
        Self { topology, capacities_bps, hosts, routes, seed, n_down: 0 }
    }

    /// Returns the network with these states of links, and all others as in the topology. A link is named `FROM->TO`.
    ///
    /// # Errors
    /// If the topology has no link of a name.
    pub fn with_links(&self, states: &BTreeMap<String, LinkState>) -> Result<Self, UnknownLink> {
        let mut reduced = self.topology.clone();
        let mut capacities_bps: Vec<f64> = nominal_bps(&self.topology).collect();
        let mut down = vec![false; reduced.links.len()];
        for (name, state) in states {
            let port = self.port(name)?;
            match *state {
                LinkState::Rate(bps) => capacities_bps[port.index()] = bps,
                LinkState::Down => down[port.index() / 2] = true,
            }
        }
        for (link, _) in reduced.links.iter_mut().zip(&down).filter(|(_, is_down)| **is_down) {
            // Numbers of ports stay, and no path leads over a link from a node to itself.
            if self.topology.is_host(link.b) {
                link.a = link.b;
            } else {
                link.b = link.a;
            }
        }
        Ok(Self {
            capacities_bps,
            hosts: self.hosts.clone(),
            routes: Routes::new(&reduced),
            n_down: down.iter().filter(|is_down| **is_down).count(),
            topology: self.topology.clone(),
            seed: self.seed,
        })
    }

    /// Looks for a link by name, and returns the names of it and of its other direction.
    ///
    /// # Errors
    /// If the topology has none of that name.
    pub fn find_link(&self, name: &str) -> Result<[String; 2], UnknownLink> {
        let port = self.port(name)?;
        Ok([port, port.reverse()].map(|port| self.topology.port_name(port)))
    }

    /// Returns the port named `FROM->TO`.
    fn port(&self, name: &str) -> Result<PortId, UnknownLink> {
        let topology = &self.topology;
        let ends = name.split_once("->").and_then(|(from, to)| {
            let (from, to) = (topology.node(from.trim())?, topology.node(to.trim())?);
            topology.port(from, to)
        });
        ends.ok_or_else(|| {
            let names: Vec<String> = ports(topology).map(|port| topology.port_name(port)).collect();
            let question = fairrate_text::did_you_mean(name, names.iter().map(String::as_str));
            let example = || names.first().map_or_else(String::new, |name| format!(": write a name such as `{name}`"));
            let help = question.map_or_else(example, |question| format!(": {question}"));
            UnknownLink { name: crate::logging::harmless(name), help }
        })
    }

    /// Returns the number of links, each direction counted separately.
    pub fn n_links(&self) -> usize {
        self.capacities_bps.len()
    }

    /// Returns the number of hosts with an address, or with several.
    pub fn n_hosts(&self) -> usize {
        self.hosts.values().collect::<HashSet<_>>().len()
    }

    /// Returns the number of links that are down, and of link directions with another rate than the topology's.
    pub fn n_changed(&self) -> (usize, usize) {
        let pairs = self.capacities_bps.iter().zip(nominal_bps(&self.topology));
        (self.n_down, pairs.filter(|(now, nominal)| *now != nominal).count())
    }

    /// Returns the rates of links, by their numbers.
    pub fn capacities_bps(&self) -> &[f64] {
        &self.capacities_bps
    }

    /// Returns the largest rate that each link may have had: agents may still report rates of that time.
    pub fn bounds_bps(&self) -> Vec<f64> {
        self.capacities_bps.iter().zip(nominal_bps(&self.topology)).map(|(now, nominal)| now.max(nominal)).collect()
    }

    /// Creates the optimiser for these links.
    pub fn engine(&self, engine: &Engine) -> Box<dyn RateEngine> {
        let capacities = self.free_bps(engine);
        let of_host =
            |link: &fairrate_sim::topology::Link| self.topology.is_host(link.a) || self.topology.is_host(link.b);
        let rates = self.topology.links.iter().filter(|link| of_host(link)).map(|link| link.rate.as_bps_f64());
        let unit_bps = rates.fold(f64::INFINITY, f64::min) * (1.0 - engine.threshold);
        if engine.alpha == 1.0 {
            Box::new(RealTime::general(&capacities, unit_bps, engine.gamma))
        } else {
            Box::new(AlphaFair::new(&capacities, unit_bps, engine.gamma, engine.alpha))
        }
    }

    /// Returns the optimiser's part of the links' rates. A share of each link, the threshold, is left free, as rates
    /// may be off by that.
    fn free_bps(&self, engine: &Engine) -> Vec<f64> {
        self.capacities_bps.iter().map(|bps| bps * (1.0 - engine.threshold)).collect()
    }

    /// Returns the change of a desk from the network `before` to this one. The optimiser goes on where it is if both
    /// have the same links.
    pub fn change_from(&self, before: &Self, engine: &Engine) -> Change {
        Change {
            engine: (!self.has_links_of(before)).then(|| self.engine(engine)),
            free_bps: self.free_bps(engine),
            capacities_bps: self.capacities_bps.clone(),
            bounds_bps: self.bounds_bps(),
            paths: self.clone().into_paths(),
        }
    }

    /// Returns `true` if both networks have the same links by the same numbers.
    fn has_links_of(&self, other: &Self) -> bool {
        let ends = |of: &Topology, port| {
            (of.nodes[of.from(port).index()].name.clone(), of.nodes[of.to(port).index()].name.clone())
        };
        self.n_links() == other.n_links()
            && ports(&self.topology).all(|port| ends(&self.topology, port) == ends(&other.topology, port))
    }

    /// Returns the function that finds the links between addresses. Among equal paths a hash of the two hosts decides,
    /// as ports are not known.
    pub fn into_paths(self) -> Paths {
        let Self { hosts, routes, seed, .. } = self;
        Box::new(move |src, dst, out| {
            let (Some(&src), Some(&dst)) = (hosts.get(&src), hosts.get(&dst)) else { return };
            let mut ports = Vec::new();
            let key = FlowKey { src, dst, sport: 0, dport: 0 };
            routes.path(EcmpHash::Mix, seed, key, &mut ports);
            out.extend(ports.iter().map(|port| LinkId(port.0)));
        })
    }
}

fn ports(topology: &Topology) -> impl Iterator<Item = PortId> + use<> {
    (0..topology.n_ports() as u32).map(PortId)
}

/// Returns the topology's rate of each link direction, by port.
fn nominal_bps(topology: &Topology) -> impl Iterator<Item = f64> + '_ {
    ports(topology).map(|port| topology.link(port).rate.as_bps_f64())
}

#[cfg(test)]
mod tests;
