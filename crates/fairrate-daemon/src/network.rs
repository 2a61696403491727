//! The network of the allocation: links of a scenario's topology, and the addresses of its hosts.

use std::collections::HashMap;
use std::net::IpAddr;

use fairrate_allocate::{LinkId, RateEngine, RealTime};
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::topology::Topology;
use fairrate_sim::{EcmpHash, NodeId, PortId};

use crate::config::Engine;
use crate::desk::Paths;
use crate::fair::AlphaFair;

/// Links, hosts and the paths between them.
#[derive(Clone, Debug)]
pub struct Network {
    /// Capacity of each link direction, by port.
    capacities_bps: Vec<f64>,
    /// Capacity of the smallest of the hosts' links.
    host_link_bps: f64,
    hosts: HashMap<IpAddr, NodeId>,
    routes: Routes,
    seed: u64,
}

impl Network {
    /// Creates a network whose hosts have the given addresses. `seed` selects among equal paths.
    pub fn new(topology: &Topology, hosts: HashMap<IpAddr, NodeId>, seed: u64) -> Self {
        let ports = (0..topology.n_ports() as u32).map(PortId);
        let capacities_bps: Vec<f64> = ports.map(|port| topology.link(port).rate.as_bps_f64()).collect();
        let of_host = topology.links.iter().filter(|link| topology.is_host(link.a) || topology.is_host(link.b));
        let host_link_bps = of_host.map(|link| link.rate.as_bps_f64()).fold(f64::INFINITY, f64::min);
        Self { capacities_bps, host_link_bps, hosts, routes: Routes::new(topology), seed }
    }

    /// Returns the number of links, each direction counted separately.
    pub fn n_links(&self) -> usize {
        self.capacities_bps.len()
    }

    /// Returns the number of hosts with an address.
    pub fn n_hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the rates of links, by their numbers.
    pub fn capacities_bps(&self) -> &[f64] {
        &self.capacities_bps
    }

    /// Creates the optimiser for these links. A share of each link, the threshold, is left free, as rates may be off by
    /// that.
    pub fn engine(&self, engine: &Engine) -> Box<dyn RateEngine> {
        let share = 1.0 - engine.threshold;
        let capacities: Vec<f64> = self.capacities_bps.iter().map(|bps| bps * share).collect();
        let unit_bps = self.host_link_bps * share;
        if engine.alpha == 1.0 {
            Box::new(RealTime::general(&capacities, unit_bps, engine.gamma))
        } else {
            Box::new(AlphaFair::new(&capacities, unit_bps, engine.gamma, engine.alpha))
        }
    }

    /// Returns the function that finds the links between addresses. Among equal paths a hash of the two hosts decides,
    /// as ports are not known.
    pub fn into_paths(self) -> Paths {
        Box::new(move |src, dst, out| {
            let (Some(&src), Some(&dst)) = (self.hosts.get(&src), self.hosts.get(&dst)) else { return };
            let mut ports = Vec::new();
            let key = FlowKey { src, dst, sport: 0, dport: 0 };
            self.routes.path(EcmpHash::Mix, self.seed, key, &mut ports);
            out.extend(ports.iter().map(|port| LinkId(port.0)));
        })
    }
}
