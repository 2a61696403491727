//! By which port a packet leaves a switch: that of the path laid for its flow, or one that is chosen when the packet is there.

use std::collections::BTreeSet;

use super::network::Ports;
use super::run::Run;
use super::share::Links;
use crate::ideal::Hop;
use crate::ids::{NodeId, PortId, PortIdx};
use crate::packet::Packet;
use crate::rng::{mix64, pick};
use crate::routing::Routes;
use crate::topology::Topology;

/// How a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By this port.
    By(PortIdx),
    /// By any port on a shortest path to this host.
    Toward(NodeId),
}

/// How a packet goes on, as the table of paths has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Onward(pub(super) u32);

impl Onward {
    /// An entry with this bit says which host it is toward, and not by which port.
    pub(super) const TOWARD: u32 = 1 << 31;
    /// Of what ends at the next node.
    pub(super) const NOWHERE: Self = Self(u32::MAX);

    /// The port, if it is known before the packet is there; otherwise a number that no port has.
    #[inline]
    pub(super) fn port(self) -> PortIdx {
        PortIdx(self.0)
    }

    /// As it is decided on: a port, or a host to choose one for.
    #[inline]
    pub(super) fn exit(self) -> Exit {
        if self.0 < Self::TOWARD { Exit::By(PortIdx(self.0)) } else { Exit::Toward(NodeId(self.0 ^ Self::TOWARD)) }
    }
}

impl Run {
    /// The port by which a packet that came by `ingress` goes on to a host: one of those on shortest paths, each as likely as
    /// the others, without those whose links are down if any is up.
    ///
    /// What decides is what the packet carries, and no state, so that it depends on nothing else that happens.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_exit(
        &self,
        ports: &Ports,
        links: &Links,
        ingress: PortIdx,
        to: NodeId,
        p: &Packet,
    ) -> PortIdx {
        let switch = self.config.topology.from(links.id_of(ingress));
        let place = |port: PortId| links.place_of(port).expect("a switch's ports are in its part");
        let all = || self.routes.next_hops(switch, to).map(place);
        let is_any_up = all().any(|port| !ports[port].is_down());
        let candidates = || all().filter(|&port| !is_any_up || !ports[port].is_down());
        let words = [u64::from(switch.0) << 32 | u64::from(p.flow.0), p.seq, p.data_seq ^ p.sent_ps];
        let mixed = words.iter().fold(mix64(self.config.seed), |mixed, word| mix64(mixed ^ word));
        candidates()
            .nth(pick(mixed, candidates().count()))
            .expect("a host that a path leads to is reached from every switch on the way")
    }
}

/// The links of a path, each with those that packets to the same host may take in its place: the highest rate and the
/// shortest delay of them, which need not be of one link, and how many they are.
pub(super) fn hops_beside(
    topology: &Topology,
    routes: &Routes,
    path: impl Iterator<Item = PortId>,
    to: NodeId,
) -> Vec<Hop> {
    let mut nodes = BTreeSet::new();
    let hop = |port| {
        // The first is the sender's own port.
        let beside: Vec<PortId> = if nodes.is_empty() {
            vec![port]
        } else {
            nodes.iter().flat_map(|&node| routes.next_hops(node, to)).collect()
        };
        nodes = beside.iter().map(|&port| topology.to(port)).collect();
        let links = || beside.iter().map(|&port| topology.link(port));
        let (rate, delay) = (links().map(|link| link.rate).max(), links().map(|link| link.delay).min());
        let (rate, delay) = rate.zip(delay).expect("a path leads there");
        Hop { rate, delay, lanes: beside.len() as u32 }
    };
    path.map(hop).collect()
}
