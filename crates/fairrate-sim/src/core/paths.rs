//! The paths of all flows, picked before a run begins: every part of the network has all of them.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use super::flow::Flow;
use super::steering::{Exit, NextHop};
use crate::config::{SimConfig, Transport};
use crate::ids::{FlowId, HopId, Number, PortId, PortIdx};
use crate::prefetch::Cache;
use crate::routing::{FlowKey, Routes, subflow_keys};
use crate::table::Table;
use crate::topology::Topology;
use crate::transport::Connections;

/// The egress ports of all paths, one path after the other: each port by its number in the network ([`PortId`]), or by
/// its index in its own part ([`PortIdx`]).
#[derive(Clone)]
pub(crate) struct Paths<P> {
    ports: Arc<[u32]>,
    by: PhantomData<P>,
}

impl<P: Number> Paths<P> {
    /// Returns the egress ports of the path of `n_hops` hops whose second hop is at `second`.
    pub(super) fn path(&self, second: HopId, n_hops: u8) -> impl ExactSizeIterator<Item = P> + '_ {
        let start = second.index() - 1;
        self.ports[start..start + usize::from(n_hops)].iter().map(|&port| P::from_index(port as usize))
    }
}

impl Paths<PortIdx> {
    /// Returns the next step of a packet at a hop.
    #[inline]
    pub(crate) fn exit(&self, hop: HopId) -> Exit {
        NextHop(self.ports[hop.index()]).exit()
    }

    /// Returns the table's entry for a hop; [`NextHop::NOWHERE`] if there is no such hop.
    #[inline]
    pub(super) fn next_hop(&self, hop: HopId) -> NextHop {
        self.ports.get(hop.index()).map_or(NextHop::NOWHERE, |&entry| NextHop(entry))
    }

    /// Prefetches the table's entry for a hop. There may be no such hop.
    #[inline]
    pub(super) fn prefetch(&self, cache: Cache, hop: HopId) {
        cache.fetch_place(self.ports.as_ptr().wrapping_add(hop.index()));
    }

    /// Returns the same paths, with each hop between switches replaced by "any port toward the flow's host"; the last
    /// hop too if switches react to failures, or if the scheme sees packets there.
    pub(super) fn sprayed(mut self, config: &SimConfig, flows: &Table<FlowId, Flow>) -> Self {
        let mut entries = self.ports.to_vec();
        // The first hop is the sender's own port, and the last leads to the receiver.
        let n_fixed = if config.reroute().is_some() || config.fabric.balance.sees_last_hops() { 1 } else { 2 };
        for flow in flows {
            let spec = &config.flows[flow.parent.index()];
            let between =
                |second: HopId| second.index()..second.index() + usize::from(flow.n_hops).saturating_sub(n_fixed);
            entries[between(flow.data_route)].fill(NextHop::TOWARD | spec.dst.0);
            entries[between(flow.ack_route)].fill(NextHop::TOWARD | spec.src.0);
        }
        self.ports = entries.into();
        self
    }
}

impl Paths<PortId> {
    /// Returns the same paths with VOQs: a path leaves a ToR that has circuits by a VOQ, and goes on behind the packet
    /// switch.
    pub(super) fn by_voqs(mut self, topology: &Topology) -> Self {
        let Some(circuits) = &topology.circuits else { return self };
        let mut entries = self.ports.to_vec();
        for at in 1..entries.len() {
            let (up, down) = (PortId(entries[at - 1]), PortId(entries[at]));
            if topology.to(up) == circuits.core && topology.from(down) == circuits.core {
                entries[at - 1] = circuits.port(topology.from(up), topology.to(down)).0;
            }
        }
        self.ports = entries.into();
        self
    }

    /// Converts to indices in the only part of a network, which are the ports' numbers.
    pub(super) fn of_one_part(&self) -> Paths<PortIdx> {
        Paths { ports: Arc::clone(&self.ports), by: PhantomData }
    }

    /// Converts to indices in parts, by `places`.
    pub(super) fn by_place(&self, places: &Table<PortId, PortIdx>) -> Paths<PortIdx> {
        let place = |&port: &u32| places[PortId(port)].0;
        Paths { ports: self.ports.iter().map(place).collect(), by: PhantomData }
    }
}

impl From<Vec<PortId>> for Paths<PortId> {
    fn from(ports: Vec<PortId>) -> Self {
        Self { ports: ports.into_iter().map(|port| port.0).collect(), by: PhantomData }
    }
}

/// The table of paths under construction: egress ports, one path after the other.
pub(super) struct PathTable<'a> {
    config: &'a SimConfig,
    routes: &'a Routes,
    /// `true` if switches send packets back along data paths: notices of ports, and headers.
    has_ways_back: bool,
    /// The source port of each subflow, in order.
    sports: Vec<u16>,
    ports: Vec<PortId>,
    buffer: Vec<PortId>,
    /// The paths of the messages of a job, which has many between the same ports: they share their paths, so that the
    /// table is small and near. Empty in runs without jobs, where hardly any two flows have the same ports.
    shared: HashMap<FlowKey, Ways>,
}

/// The positions of a flow's paths in the table.
#[derive(Clone, Copy)]
struct Ways {
    data: HopId,
    ack: HopId,
    notice: HopId,
    n_hops: u8,
}

impl<'a> PathTable<'a> {
    /// Creates an empty table.
    pub(super) fn new(config: &'a SimConfig, routes: &'a Routes, has_ways_back: bool) -> Self {
        Self {
            config,
            routes,
            has_ways_back,
            sports: Vec::new(),
            ports: Vec::new(),
            buffer: Vec::new(),
            shared: HashMap::new(),
        }
    }

    /// Lays the paths of all flows, stores their positions in `flows`, and returns the table, and the source ports of
    /// all subflows.
    pub(super) fn of_all(mut self, flows: &mut [Flow], connections: &Connections) -> (Paths<PortId>, Vec<u16>) {
        for (id, spec) in (0..).map(FlowId).zip(&self.config.flows) {
            match (self.config.stack(spec.stack).0.kind, connections.first_subflow(id)) {
                (Transport::Tcp(tcp), Some(first)) => {
                    let (own, of_subflows) = flows.split_at_mut(first.index());
                    let of_subflows = &mut of_subflows[..connections.subflow_ids(id).len()];
                    let keys =
                        subflow_keys(self.config, self.routes, spec, tcp.multipath.paths, of_subflows.len() as u16);
                    self.sports.extend(keys.iter().map(|key| key.sport));
                    keys.into_iter().zip(&mut *of_subflows).for_each(|(key, flow)| self.lay(flow, key));
                    // A connection's own path is that of its first subflow.
                    let (first, flow) = (&of_subflows[0], &mut own[id.index()]);
                    (flow.data_route, flow.ack_route) = (first.data_route, first.ack_route);
                    (flow.notice_route, flow.n_hops) = (first.notice_route, first.n_hops);
                }
                _ => self.lay(&mut flows[id.index()], FlowKey::of(spec)),
            }
        }
        (self.ports.into(), self.sports)
    }

    /// Picks a flow's paths, and writes them into the table unless they are there.
    fn lay(&mut self, flow: &mut Flow, key: FlowKey) {
        let ways = if self.config.dependencies.is_empty() {
            self.write_ways(key)
        } else if let Some(&ways) = self.shared.get(&key) {
            ways
        } else {
            let ways = self.write_ways(key);
            self.shared.insert(key, ways);
            ways
        };
        (flow.data_route, flow.ack_route) = (ways.data, ways.ack);
        (flow.notice_route, flow.n_hops) = (ways.notice, ways.n_hops);
    }

    /// Writes a flow's paths into the table.
    fn write_ways(&mut self, key: FlowKey) -> Ways {
        let (data, n_hops) = self.write(key);
        let (ack, _) = self.write(key.reversed());
        let notice = HopId::from_index(self.ports.len());
        if self.has_ways_back {
            let start = data.index() - 1;
            self.ports.extend_from_within(start..start + usize::from(n_hops));
            let back = &mut self.ports[notice.index()..];
            back.reverse();
            for port in back {
                *port = port.reverse();
            }
        }
        Ways { data, ack, notice, n_hops }
    }

    /// Writes a path; returns the position of its second port (the first is the host's own) and its length.
    fn write(&mut self, key: FlowKey) -> (HopId, u8) {
        self.routes.path(self.config.fabric.ecmp, self.config.seed, key, &mut self.buffer);
        let start = HopId::from_index(self.ports.len());
        self.ports.extend_from_slice(&self.buffer);
        (start.plus(1), self.buffer.len() as u8)
    }
}
