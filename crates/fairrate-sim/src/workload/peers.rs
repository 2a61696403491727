//! The hosts that a host may be paired with.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::Stream;
use crate::topology::Topology;

/// The hosts that a host may be paired with, all with the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Any host of another rack.
    OtherRack,
    /// Any other host.
    OtherHost,
    /// Any other host of the same rack.
    SameRack,
    /// Any other host from the first host of its own rack on: the skewed choice of the workload generator in the public
    /// PowerTCP code.
    FromOwnRackOn,
}

impl Peers {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("other-rack", Self::OtherRack),
        ("other-host", Self::OtherHost),
        ("same-rack", Self::SameRack),
        ("from-own-rack-on", Self::FromOwnRackOn),
    ];

    /// Returns its name in scenarios.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, peers)| *peers == self).map_or("", |(name, _)| name)
    }
}

/// The hosts by rack.
pub(super) struct Racks {
    /// All hosts by rack and id.
    hosts: Vec<NodeId>,
    /// The range of `hosts` of each rack.
    parts: Vec<Range<usize>>,
    /// The position of each node in `hosts`, and its rack as a position in `parts`; `None` for switches.
    places: Vec<Option<(usize, usize)>>,
}

impl Racks {
    pub(super) fn new(topology: &Topology) -> Self {
        let rack = |host: NodeId| topology.nodes[host.index()].rack;
        let mut hosts: Vec<NodeId> = topology.hosts().collect();
        hosts.sort_by_key(|&host| (rack(host), host));
        let mut parts = Vec::new();
        for rack_hosts in hosts.chunk_by(|&a, &b| rack(a) == rack(b)) {
            let start = parts.last().map_or(0, |last: &Range<usize>| last.end);
            parts.push(start..start + rack_hosts.len());
        }
        let mut places = vec![None; topology.nodes.len()];
        for (i, range) in parts.iter().enumerate() {
            for position in range.clone() {
                places[hosts[position].index()] = Some((position, i));
            }
        }
        Self { hosts, parts, places }
    }

    /// Returns the number of racks.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns the rack of a host, as a position.
    pub(super) fn rack_of(&self, host: NodeId) -> usize {
        self.places[host.index()].map_or(0, |(_, rack)| rack)
    }

    /// Returns the hosts of a rack.
    pub(super) fn hosts_of(&self, rack: usize) -> &[NodeId] {
        &self.hosts[self.parts[rack].clone()]
    }

    /// Returns the peers of a host.
    pub(super) fn peers(&self, of: NodeId, peers: Peers) -> PeerSet<'_> {
        let Some((position, rack)) = self.places[of.index()] else {
            return PeerSet { hosts: &[], hole: 0..0 };
        };
        let own = self.parts[rack].clone();
        let itself = position..position + 1;
        let (from, hole) = match peers {
            Peers::OtherRack => (0..self.hosts.len(), own),
            Peers::OtherHost => (0..self.hosts.len(), itself),
            Peers::SameRack => (own, itself),
            Peers::FromOwnRackOn => (own.start..self.hosts.len(), itself),
        };
        let hole = hole.start - from.start..hole.end - from.start;
        PeerSet { hosts: &self.hosts[from], hole }
    }
}

/// The hosts to choose from.
#[derive(Clone, Debug)]
pub(super) struct PeerSet<'a> {
    hosts: &'a [NodeId],
    /// Positions in `hosts` that are left out.
    hole: Range<usize>,
}

impl<'a> PeerSet<'a> {
    /// Returns the set of all of `hosts`.
    pub(super) fn all(hosts: &'a [NodeId]) -> Self {
        Self { hosts, hole: 0..0 }
    }

    /// Returns the set of `hosts`, which must be ascending, without `host`.
    pub(super) fn without(hosts: &'a [NodeId], host: NodeId) -> Self {
        let (from, to) = (hosts.partition_point(|&h| h < host), hosts.partition_point(|&h| h <= host));
        Self { hosts, hole: from..to }
    }

    pub(super) fn len(&self) -> usize {
        self.hosts.len() - self.hole.len()
    }

    fn get(&self, i: usize) -> NodeId {
        self.hosts[if i < self.hole.start { i } else { i + self.hole.len() }]
    }

    /// Draws a host of the set, which must not be empty.
    pub(super) fn pick(&self, stream: &mut Stream) -> NodeId {
        self.get(stream.below(self.len() as u64) as usize)
    }

    /// Draws `n` different hosts, ascending; `n` is at most the size of the set.
    pub(super) fn sample(&self, n: usize, stream: &mut Stream) -> Vec<NodeId> {
        // Floyd's algorithm: n draws, for any size of the set.
        let mut chosen = BTreeSet::new();
        for last in self.len() - n..self.len() {
            let i = stream.below(last as u64 + 1) as usize;
            if !chosen.insert(i) {
                chosen.insert(last);
            }
        }
        chosen.into_iter().map(|i| self.get(i)).collect()
    }

    /// Returns an error unless the set has at least `n` hosts.
    pub(super) fn at_least(
        &self,
        n: usize,
        field: &'static str,
        topology: &Topology,
        of: NodeId,
        peers: &str,
    ) -> Result<(), FieldError> {
        if n <= self.len() {
            return Ok(());
        }
        let name = &topology.nodes[of.index()].name;
        let message = match self.len() {
            0 => format!("host `{name}` has no `{peers}` peers"),
            len => format!("{n} hosts are wanted, but host `{name}` has {len} `{peers}` peers"),
        };
        let others = topology.hosts().count() - 1;
        Err(FieldError::new(field, message).help(format!("it has {others} `other-host` peers")))
    }
}
