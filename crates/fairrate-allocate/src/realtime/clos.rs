//! Folded Clos networks of two and three tiers: their links, paths and blocks.

use super::partition::{Partition, Place, Side};
use crate::network::LinkId;

/// A folded Clos network: servers in racks, racks in pods with spines, pods under cores. It has two tiers if there is
/// one pod.
///
/// Upward links are numbered rack by rack, servers' links before the rack's links to spines, and after the racks of a
/// pod its links to cores. Downward links follow in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clos {
    /// Number of pods; 1: two tiers, and no cores.
    pub pods: u32,
    /// Racks of a pod.
    pub racks: u32,
    /// Servers of a rack.
    pub servers: u32,
    /// Spines of a pod; every rack has a link to each.
    pub spines: u32,
    /// Cores above each spine of a pod; not used if there is one pod.
    pub cores: u32,
    /// Capacity of a server's link in bit/s.
    pub server_bps: f64,
    /// Capacity of the links between switches in bit/s.
    pub fabric_bps: f64,
}

impl Clos {
    /// Returns the number of servers.
    pub const fn n_servers(&self) -> u32 {
        self.pods * self.racks * self.servers
    }

    /// Returns the number of links, up and down.
    pub const fn n_links(&self) -> u32 {
        2 * self.pods * self.pod_links()
    }

    /// Returns each link's capacity in bit/s.
    pub fn capacities_bps(&self) -> Vec<f64> {
        let capacity = |link: u32| {
            let in_pod = link % self.pod_links();
            let is_server = in_pod < self.racks * self.rack_links() && in_pod % self.rack_links() < self.servers;
            if is_server { self.server_bps } else { self.fabric_bps }
        };
        (0..self.n_links()).map(capacity).collect()
    }

    /// Returns the path from server `src` to server `dst`. `choice` selects spine and core, as a hash of the flow
    /// would.
    pub fn path(&self, src: u32, dst: u32, choice: u32) -> Vec<LinkId> {
        let down = self.n_links() / 2;
        let mut path = vec![self.server_link(src), down + self.server_link(dst)];
        let (from, to) = (src / self.servers, dst / self.servers);
        if from != to {
            let spine = choice % self.spines;
            path.splice(1..1, [self.spine_link(from, spine), down + self.spine_link(to, spine)]);
            let (from, to) = (from / self.racks, to / self.racks);
            if from != to {
                let core = spine * self.cores + choice / self.spines % self.cores;
                path.splice(2..2, [self.core_link(from, core), down + self.core_link(to, core)]);
            }
        }
        path.into_iter().map(LinkId).collect()
    }

    /// Returns the network in blocks of racks, or of pods if there are several.
    ///
    /// # Panics
    /// If the blocks would not be equal.
    pub fn partition(&self, n_blocks: u32) -> Partition {
        let (units, of) = if self.pods == 1 { (self.racks, self.rack_links()) } else { (self.pods, self.pod_links()) };
        assert!(
            0 < n_blocks && units.is_multiple_of(n_blocks),
            "{units} racks or pods do not make {n_blocks} equal blocks"
        );
        let half = self.n_links() / 2;
        let place = |link: u32| {
            let side = if link < half { Side::Up } else { Side::Down };
            Place { side, block: link % half / of / (units / n_blocks) }
        };
        Partition { n_blocks, places: (0..self.n_links()).map(place).collect() }
    }

    const fn rack_links(&self) -> u32 {
        self.servers + self.spines
    }

    const fn pod_links(&self) -> u32 {
        self.racks * self.rack_links() + if self.pods == 1 { 0 } else { self.spines * self.cores }
    }

    const fn rack_start(&self, rack: u32) -> u32 {
        rack / self.racks * self.pod_links() + rack % self.racks * self.rack_links()
    }

    const fn server_link(&self, server: u32) -> u32 {
        self.rack_start(server / self.servers) + server % self.servers
    }

    const fn spine_link(&self, rack: u32, spine: u32) -> u32 {
        self.rack_start(rack) + self.servers + spine
    }

    const fn core_link(&self, pod: u32, core: u32) -> u32 {
        pod * self.pod_links() + self.racks * self.rack_links() + core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(path: &[LinkId]) -> Vec<u32> {
        path.iter().map(|link| link.0).collect()
    }

    #[test]
    fn two_tiers() {
        // 4 racks of 2 servers and 3 spines: 5 links a rack, 20 up and 20 down.
        let clos = Clos { pods: 1, racks: 4, servers: 2, spines: 3, cores: 0, server_bps: 1.0, fabric_bps: 2.0 };
        assert_eq!((clos.n_servers(), clos.n_links()), (8, 40));
        assert_eq!(clos.capacities_bps()[..7], [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
        assert_eq!(numbers(&clos.path(2, 3, 1)), [5, 26]);
        assert_eq!(numbers(&clos.path(2, 7, 4)), [5, 8, 38, 36]);
        let blocks = clos.partition(2).places;
        assert_eq!(blocks[9], Place { side: Side::Up, block: 0 });
        assert_eq!(blocks[30], Place { side: Side::Down, block: 1 });
    }

    #[test]
    fn three_tiers() {
        // 2 pods of 2 racks of 1 server and 2 spines, 2 cores a spine: 3 links a rack, 10 a pod, 20 up and 20 down.
        let clos = Clos { pods: 2, racks: 2, servers: 1, spines: 2, cores: 2, server_bps: 1.0, fabric_bps: 2.0 };
        assert_eq!((clos.n_servers(), clos.n_links()), (4, 40));
        assert_eq!(clos.capacities_bps()[..10], [1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(numbers(&clos.path(0, 1, 1)), [0, 2, 25, 23]);
        // Spine 1, its core 1: the pod's fourth link to a core.
        assert_eq!(numbers(&clos.path(1, 2, 3)), [3, 5, 9, 39, 32, 30]);
        assert!(clos.partition(2).places.iter().enumerate().all(|(link, place)| place.block == link as u32 % 20 / 10));
    }
}
