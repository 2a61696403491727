//! The next hops of switches, as ports of this part: found once for a switch and an edge switch, when a packet needs
//! them first.

use std::collections::HashMap;
use std::ops::Range;

use crate::core::run::Run;
use crate::core::share::Links;
use crate::ids::{NodeId, PortId, PortIdx};

/// The lists of next hops that have been needed. Most switches have few different ones: up, and down to each switch
/// below.
pub(super) struct Ways {
    /// For a switch, its number among switches; for a host, the number of its edge switch among edge switches.
    number: Vec<u32>,
    n_edges: usize,
    /// For a switch and an edge switch, the place of the list in `lists`, plus 1; 0 if it has not been needed.
    list_of: Vec<u32>,
    /// The lists, as ranges of `ports`.
    lists: Vec<Range<usize>>,
    ports: Vec<PortIdx>,
    /// The places of lists that are there already.
    places: HashMap<Vec<PortIdx>, u32>,
    /// The port to a host, at its edge switch.
    last: [PortIdx; 1],
}

impl Ways {
    /// Creates an empty cache for the network of a run.
    pub(super) fn new(run: &Run) -> Self {
        let topology = &run.config.topology;
        let mut number = vec![u32::MAX; topology.nodes.len()];
        let mut edges = HashMap::new();
        let mut n_switches = 0;
        for node in (0..topology.nodes.len() as u32).map(NodeId) {
            if !topology.is_host(node) {
                number[node.index()] = n_switches;
                n_switches += 1;
            } else if let Some(up) = run.routes.host_port(node) {
                let next = edges.len() as u32;
                number[node.index()] = *edges.entry(topology.to(up)).or_insert(next);
            }
        }
        let n_edges = edges.len();
        Self {
            number,
            n_edges,
            list_of: vec![0; n_switches as usize * n_edges],
            lists: Vec::new(),
            ports: Vec::new(),
            places: HashMap::new(),
            last: [PortIdx::NONE],
        }
    }

    /// Returns the ports of a switch on shortest paths to a host, as
    /// [`Routes::next_hops`](crate::routing::Routes::next_hops) orders them.
    #[inline]
    pub(super) fn to(&mut self, run: &Run, links: &Links, switch: NodeId, host: NodeId) -> &[PortIdx] {
        let place = |port: PortId| links.place_of(port).expect("a switch's ports are in its part");
        let Some(up) = run.routes.host_port(host) else { return &[] };
        if run.config.topology.to(up) == switch {
            self.last = [place(up.reverse())];
            return &self.last;
        }
        let at = self.number[switch.index()] as usize * self.n_edges + self.number[host.index()] as usize;
        if self.list_of[at] == 0 {
            self.list_of[at] = 1 + self.place_of(run.routes.next_hops(switch, host).map(place).collect());
        }
        &self.ports[self.lists[self.list_of[at] as usize - 1].clone()]
    }

    /// Returns the place of a list, which is added if it is a new one.
    #[cold]
    fn place_of(&mut self, list: Vec<PortIdx>) -> u32 {
        let (first, next) = (self.ports.len(), self.lists.len() as u32);
        let (ports, lists) = (&mut self.ports, &mut self.lists);
        *self.places.entry(list).or_insert_with_key(|list| {
            ports.extend_from_slice(list);
            lists.push(first..ports.len());
            next
        })
    }
}
