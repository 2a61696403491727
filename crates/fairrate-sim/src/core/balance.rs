//! The choice of a port, where several lead to a packet's receiver on shortest paths: one decision, in one place, for all
//! schemes. A scheme is a file of this directory that implements [`Scheme`], a line of [`Balancer::new`], and its entry
//! in `config/balance.rs`.
//!
//! A choice depends on the packet, and on queues and earlier choices of the same switch. A switch is in one part of the
//! network, and its packets come in the same order on any number of threads, so runs have the same bits on all.

mod adaptive;
mod drill;
mod flowlet;
mod hashed;
mod round_robin;
mod spray;

use self::hashed::Hashed;
use fairrate_units::Bytes;

use super::outages::Outages;
use super::run::Run;
use super::share::Links;
use crate::config::{Balance, Rehash, SimConfig};
use crate::fabric::Port;
use crate::ids::{NodeId, PortId, PortIdx};
use crate::packet::{Packet, PacketKind};
use crate::rng::{mix64, pick};
use crate::routing::FlowKey;

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

    /// Returns the port of `these` with the least `load`, one at random if there are several.
    fn least(&self, these: &[PortIdx], load: impl Fn(PortIdx) -> u64) -> PortIdx {
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
    candidates: Vec<PortIdx>,
    all: Vec<PortIdx>,
}

impl Balancer {
    /// Creates a scheme that remembers nothing yet.
    pub(super) fn new(config: &SimConfig) -> Self {
        let rehash = config.reroute().map_or(Rehash::Modulo, |reroute| reroute.rehash);
        let scheme: Option<Box<dyn Scheme>> = match config.fabric.balance {
            Balance::Ecmp if config.reroute().is_none() => None,
            Balance::Ecmp | Balance::Host => Some(Box::new(Hashed(config.fabric.ecmp, rehash))),
            Balance::Spray => Some(Box::new(spray::Spray)),
            Balance::RoundRobin => Some(Box::<round_robin::RoundRobin>::default()),
            Balance::Flowlet { gap } => Some(Box::new(flowlet::Flowlets::new(gap))),
            Balance::Adaptive(signal) => Some(Box::new(adaptive::Adaptive(signal))),
            Balance::Drill { samples, memory } => Some(Box::new(drill::Drill::new(samples, memory))),
        };
        Self { scheme, outages: Outages::new(config), candidates: Vec::new(), all: Vec::new() }
    }

    /// Returns the port by which `p`, which has come by `ingress`, goes on toward the host `to`: one of those on shortest
    /// paths that are not known to be dead; `None` if there is none.
    #[cold]
    #[inline(never)]
    pub(super) fn choose(
        &mut self,
        run: &Run,
        (ports, links): (&[Port], &Links),
        (ingress, to): (PortIdx, NodeId),
        now_ps: u64,
        p: &Packet,
    ) -> Option<PortIdx> {
        let topology = &run.config.topology;
        let switch = topology.from(links.id_of(ingress));
        let place = |port: PortId| links.place_of(port).expect("a switch's ports are in its part");
        self.all.clear();
        self.all.extend(run.routes.next_hops(switch, to).map(place));
        if let Some(outages) = &mut self.outages {
            outages.advance(now_ps);
            if !outages.are_none() {
                return self.choose_live(run, (ports, links), (switch, to), now_ps, p);
            }
        }
        if let [only] = self.all[..] {
            return Some(only);
        }
        let at = Crossing { run, switch, to, now_ps, packet: p, ports, candidates: &self.all, all: &self.all };
        Some(self.scheme.as_mut().expect("flows with fixed paths choose no ports").choose(&at))
    }

    /// Does the same as [`Balancer::choose`] where links are known to be down.
    fn choose_live(
        &mut self,
        run: &Run,
        (ports, links): (&[Port], &Links),
        (switch, to): (NodeId, NodeId),
        now_ps: u64,
        p: &Packet,
    ) -> Option<PortIdx> {
        let outages = self.outages.as_mut().expect("switches react to failures");
        let mut is_live = |&port: &PortIdx| {
            let port = links.id_of(port);
            !outages.is_noticed(port) && outages.leads_to(&run.config.topology, &run.routes, port, to)
        };
        self.candidates.clear();
        self.candidates.extend(self.all.iter().copied().filter(&mut is_live));
        if let [] | [_] = self.candidates[..] {
            return self.candidates.first().copied();
        }
        let (candidates, all) = (&self.candidates, &self.all);
        let at = Crossing { run, switch, to, now_ps, packet: p, ports, candidates, all };
        Some(self.scheme.as_mut().expect("flows with fixed paths choose no ports").choose(&at))
    }
}
