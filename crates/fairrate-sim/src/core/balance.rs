//! The choice of a port, where several lead to a packet's receiver on shortest paths: one decision, in one place, for
//! all schemes. A scheme is a file of this directory that implements [`Scheme`], a line of [`Balancer::new`], and its
//! entry in `config/balance.rs`.
//!
//! A choice depends on the packet, and on queues and earlier choices of the same switch. A switch is in one part of the
//! network, and its packets come in the same order on any number of threads, so runs have the same bits on all.

mod adaptive;
mod conga;
mod drill;
mod flowlet;
mod hashed;
mod numbered;
mod round_robin;
mod spray;
mod ways;

use std::cell::Cell;

use fairrate_units::{Bytes, Rate};

use self::hashed::Hashed;
pub(super) use self::numbered::n_paths;
use self::ways::Ways;

use super::outages::Outages;
use super::run::Run;
use super::share::Links;
use crate::config::{Balance, EntropyScheme, Rehash, SimConfig};
use crate::fabric::Port;
use crate::ids::{NodeId, PortId, PortIdx};
use crate::packet::{Packet, PacketKind};
use crate::rng::{mix64, pick};
use crate::routing::{FlowKey, weights};

/// A packet at a switch, with two ports or more on shortest paths.
pub(super) struct Crossing<'a> {
    run: &'a Run,
    switch: NodeId,
    /// The host that the packet goes to.
    to: NodeId,
    now_ps: u64,
    packet: &'a Packet,
    ports: &'a [Port],
    /// The ports that the packet may leave by.
    candidates: &'a [PortIdx],
    /// The same with those that are known to be down.
    all: &'a [PortIdx],
    /// The weights of the candidates under WCMP; none: all are equal.
    weights: &'a [u32],
    /// The number in the packet that schemes may write.
    header: Cell<u16>,
}

impl Crossing<'_> {
    /// Returns a candidate at random.
    fn any(&self) -> PortIdx {
        self.candidates[pick(self.draw(), self.candidates.len())]
    }

    /// Returns random bits that are a function of the seed, the switch and the packet.
    fn draw(&self) -> u64 {
        let p = self.packet;
        let words = [u64::from(self.switch.0) << 32 | u64::from(p.flow.0), p.seq, p.data_seq ^ p.sent_ps];
        words.iter().fold(mix64(self.run.config.seed), |mixed, word| mix64(mixed ^ word))
    }

    /// Returns further random bits, others for each `n`.
    fn another_draw(&self, n: u64) -> u64 {
        mix64(self.draw() ^ n)
    }

    /// Returns the addresses and ports of the packet. Its entropy value counts as a part of the source port.
    fn key(&self) -> FlowKey {
        let key = self.run.key_of(self.packet.flow);
        let key = FlowKey { sport: key.sport.wrapping_add(self.packet.entropy), ..key };
        if self.to == key.dst { key } else { key.reversed() }
    }

    /// Returns the switch of the packet's sender, and that of its receiver.
    fn leaves(&self) -> (NodeId, NodeId) {
        let key = self.run.key_of(self.packet.flow);
        let sender = if self.to == key.dst { key.src } else { key.dst };
        let leaf = |host| {
            let up = self.run.routes.host_port(host).expect("packets go between hosts");
            self.run.config.topology.to(up)
        };
        (leaf(sender), leaf(self.to))
    }

    /// Returns the picoseconds until `port` has sent what it is sending and all that waits in its queues.
    fn wait_ps(&self, port: PortIdx) -> u64 {
        let port = &self.ports[port.index()];
        let sending_ps = port.busy_until_ps.saturating_sub(self.now_ps);
        sending_ps.saturating_add(port.rate.tx_time(Bytes::new(port.queued_bytes)).as_ps())
    }

    /// Returns the bytes that wait in the queues of `port`.
    fn queued_bytes(&self, port: PortIdx) -> u64 {
        self.ports[port.index()].queued_bytes
    }

    /// Returns the bytes that `port` has sent so far, and its rate.
    fn sent(&self, port: PortIdx) -> (u64, Rate) {
        let port = &self.ports[port.index()];
        (port.tx_bytes, port.rate)
    }

    /// Returns `true` if the other end of `port` has paused the packet's class.
    fn is_paused(&self, port: PortIdx) -> bool {
        self.ports[port.index()].paused >> self.packet.class & 1 == 1
    }

    /// Returns the port of `these` with the least `load`, one at random if there are several.
    fn least<L: Ord>(&self, these: &[PortIdx], load: impl Fn(PortIdx) -> L) -> PortIdx {
        let best = these.iter().map(|&port| load(port)).min();
        let is_best = |port: &&PortIdx| Some(load(**port)) == best;
        let n = these.iter().filter(is_best).count();
        *these.iter().filter(is_best).nth(pick(self.draw(), n)).expect("a port is the best")
    }

    /// Returns the identity of the set of candidates at this switch: packets to one rack have the same, as a rule.
    fn group(&self) -> (PortIdx, u32) {
        (self.candidates[0], self.candidates.len() as u32)
    }

    /// Returns `true` for data. Other packets are small, and would spoil the turns of large ones.
    fn is_data(&self) -> bool {
        self.packet.kind == PacketKind::Data
    }
}

/// A way to choose among ports, with what it remembers of the switches of a part.
pub(super) trait Scheme: Send {
    /// Returns one of the candidates.
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx;
}

/// The scheme of a run, with what switches know of links that are down.
pub(super) struct Balancer {
    /// `None` if flows have fixed paths.
    scheme: Option<Box<dyn Scheme>>,
    /// `None` if switches do not react to failures.
    outages: Option<Box<Outages>>,
    /// `true` if the scheme sees packets that have one way only, too.
    sees_all: bool,
    /// `true` if ports are picked by weights.
    is_weighted: bool,
    /// The next hops; `None` until a packet needs some.
    ways: Option<Box<Ways>>,
    candidates: Vec<PortIdx>,
    weights: Vec<u32>,
}

impl Balancer {
    /// Creates a scheme that remembers nothing yet.
    pub(super) fn new(config: &SimConfig) -> Self {
        let rehash = config.reroute().map_or(Rehash::Modulo, |reroute| reroute.rehash);
        let is_numbered = config.is_any(|transport, _| {
            transport.entropy.is_some_and(|entropy| entropy.scheme == EntropyScheme::Permutation)
        });
        let scheme: Option<Box<dyn Scheme>> = match config.fabric.balance {
            Balance::Ecmp | Balance::Wcmp if config.reroute().is_none() => None,
            Balance::Host if is_numbered => Some(Box::new(numbered::Numbered)),
            Balance::Ecmp | Balance::Wcmp | Balance::Host => Some(Box::new(Hashed(config.fabric.ecmp, rehash))),
            Balance::Spray => Some(Box::new(spray::Spray)),
            Balance::RoundRobin => Some(Box::<round_robin::RoundRobin>::default()),
            Balance::Flowlet { gap } => Some(Box::new(flowlet::Flowlets::new(gap))),
            Balance::Conga(conga) => Some(Box::new(conga::Conga::new(conga))),
            Balance::Adaptive(adaptive) => Some(Box::new(adaptive::Adaptive::new(adaptive))),
            Balance::Drill { samples, memory } => Some(Box::new(drill::Drill::new(samples, memory))),
        };
        Self {
            scheme,
            outages: Outages::new(config),
            sees_all: config.fabric.balance.sees_last_hops(),
            is_weighted: config.fabric.balance == Balance::Wcmp,
            ways: None,
            candidates: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Returns the port by which `p`, which has come by `ingress`, goes on toward the host `to`: one of those on
    /// shortest paths that are not known to be dead; `None` if there is none. The scheme may write into the packet.
    #[cold]
    #[inline(never)]
    pub(super) fn choose(
        &mut self,
        run: &Run,
        (ports, links): (&[Port], &Links),
        (ingress, to): (PortIdx, NodeId),
        now_ps: u64,
        p: &mut Packet,
    ) -> Option<PortIdx> {
        let topology = &run.config.topology;
        let switch = topology.from(links.id_of(ingress));
        let all = self.ways.get_or_insert_with(|| Box::new(Ways::new(run))).to(run, links, switch, to);
        self.weights.clear();
        let mut candidates = all;
        if let Some(outages) = &mut self.outages {
            outages.advance(now_ps);
            let (routes, id_of) = (&run.routes, |&port: &PortIdx| links.id_of(port));
            if !outages.are_none() {
                let mut is_live = |port: &&PortIdx| {
                    let port = id_of(port);
                    !outages.is_noticed(port) && outages.leads_to(topology, routes, port, to)
                };
                self.candidates.clear();
                self.candidates.extend(all.iter().filter(&mut is_live));
                candidates = &self.candidates;
            }
            if self.is_weighted && 1 < candidates.len() {
                let ports: Vec<PortId> = candidates.iter().map(id_of).collect();
                self.weights = weights::weights(&outages.live_bps(topology, routes, &ports, to));
            }
        }
        let id_of = |port| links.id_of(port);
        match candidates[..] {
            [] => return None,
            [only] if !self.sees_all => {
                p.note_choice(id_of(only));
                return Some(only);
            }
            _ => {}
        }
        let at = Crossing {
            run,
            switch,
            to,
            now_ps,
            header: Cell::new(p.entropy),
            packet: p,
            ports,
            candidates,
            all,
            weights: &self.weights,
        };
        let chosen = self.scheme.as_mut().expect("flows with fixed paths choose no ports").choose(&at);
        p.entropy = at.header.get();
        p.note_choice(id_of(chosen));
        Some(chosen)
    }
}
