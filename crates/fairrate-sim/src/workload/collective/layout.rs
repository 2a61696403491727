//! The servers of a collective's ranks.

use std::collections::BTreeMap;

use crate::ids::NodeId;
use crate::topology::Topology;

/// The ranks of each server, in order of servers; all servers have the same number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    servers: Vec<Vec<usize>>,
    /// For each rank, its server and its place there.
    places: Vec<(usize, usize)>,
}

impl Layout {
    /// Returns the layout of ranks on these hosts; `None` if they are in no servers, or not in equal numbers.
    pub(super) fn of(topology: &Topology, ranks: &[NodeId]) -> Option<Self> {
        let mut by_server: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (rank, &host) in ranks.iter().enumerate() {
            by_server.entry(topology.server(host)?).or_default().push(rank);
        }
        let servers: Vec<Vec<usize>> = by_server.into_values().collect();
        let mut places = vec![(0, 0); ranks.len()];
        for (server, ranks) in servers.iter().enumerate() {
            ranks.iter().enumerate().for_each(|(place, &rank)| places[rank] = (server, place));
        }
        servers.windows(2).all(|pair| pair[0].len() == pair[1].len()).then_some(Self { servers, places })
    }

    /// Returns `true` if there are several servers with several ranks each.
    pub(super) fn has_levels(&self) -> bool {
        1 < self.n_servers() && 1 < self.size()
    }

    /// Returns the number of servers.
    pub(super) fn n_servers(&self) -> usize {
        self.servers.len()
    }

    /// Returns the number of ranks of a server.
    pub(super) fn size(&self) -> usize {
        self.servers[0].len()
    }

    /// Returns the server of a rank, and its place there.
    pub(super) fn place(&self, rank: usize) -> (usize, usize) {
        self.places[rank]
    }

    /// Returns the rank at a place of a server; both count in a circle.
    pub(super) fn rank(&self, server: usize, place: usize) -> usize {
        self.servers[server % self.n_servers()][place % self.size()]
    }

    /// Returns all ranks in an order for `from` to send to: at every time each receiver has one sender in each of its
    /// networks.
    pub(super) fn shifted(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        let (server, place) = self.place(from);
        let places = move |ds| (0..self.size()).map(move |dl| self.rank(server + ds, place + dl));
        (0..self.n_servers()).flat_map(places)
    }
}
