//! The choice of a port, where several lead to a packet's receiver on shortest paths: one decision, in one place, for all
//! schemes. A scheme is a file of this directory that implements [`Scheme`], a line of [`Balancer::new`], and its entry
//! in `config/balance.rs`.
//!
//! A choice depends on the packet, and on queues and earlier choices of the same switch. A switch is in one part of the
//! network, and its packets come in the same order on any number of threads, so runs have the same bits on all.

mod adaptive;
mod drill;
mod flowlet;
mod round_robin;
mod spray;

use fairrate_units::Bytes;

use super::run::Run;
use super::share::Links;
use crate::config::Balance;
use crate::fabric::Port;
use crate::ids::{NodeId, PortId, PortIdx};
use crate::packet::{Packet, PacketKind};
use crate::rng::{mix64, pick};

/// A packet at a switch, with two ports or more that it may leave by.
pub(super) struct Crossing<'a> {
    switch: NodeId,
    now_ps: u64,
    packet: &'a Packet,
    /// Random bits that are a function of the seed, the switch and the packet.
    draw: u64,
    ports: &'a [Port],
    candidates: &'a [PortIdx],
}

impl Crossing<'_> {
    /// Returns a candidate at random.
    fn any(&self) -> PortIdx {
        self.candidates[pick(self.draw, self.candidates.len())]
    }

    /// Returns further random bits, others for each `n`.
    fn another_draw(&self, n: u64) -> u64 {
        mix64(self.draw ^ n)
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
        *these.iter().filter(is_best).nth(pick(self.draw, n)).expect("a port is the best")
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

/// The scheme of a run.
pub(super) struct Balancer {
    /// `None` if flows have fixed paths.
    scheme: Option<Box<dyn Scheme>>,
    candidates: Vec<PortIdx>,
}

impl Balancer {
    /// Creates a scheme that remembers nothing yet.
    pub(super) fn new(balance: Balance) -> Self {
        let scheme: Option<Box<dyn Scheme>> = match balance {
            Balance::Ecmp => None,
            Balance::Spray => Some(Box::new(spray::Spray)),
            Balance::RoundRobin => Some(Box::<round_robin::RoundRobin>::default()),
            Balance::Flowlet { gap } => Some(Box::new(flowlet::Flowlets::new(gap))),
            Balance::Adaptive(signal) => Some(Box::new(adaptive::Adaptive(signal))),
            Balance::Drill { samples, memory } => Some(Box::new(drill::Drill::new(samples, memory))),
        };
        Self { scheme, candidates: Vec::new() }
    }

    /// Returns the port by which `p`, which has come by `ingress`, goes on toward the host `to`: one of those on shortest
    /// paths. Ports whose links are down are excluded, unless all are down.
    #[cold]
    #[inline(never)]
    pub(super) fn choose(
        &mut self,
        run: &Run,
        (ports, links): (&[Port], &Links),
        (ingress, to): (PortIdx, NodeId),
        now_ps: u64,
        p: &Packet,
    ) -> PortIdx {
        let switch = run.config.topology.from(links.id_of(ingress));
        let place = |port: PortId| links.place_of(port).expect("a switch's ports are in its part");
        self.candidates.clear();
        self.candidates.extend(run.routes.next_hops(switch, to).map(place));
        let is_up = |port: &PortIdx| !ports[port.index()].is_down();
        if self.candidates.iter().any(is_up) {
            self.candidates.retain(is_up);
        }
        if let [only] = self.candidates[..] {
            return only;
        }
        let words = [u64::from(switch.0) << 32 | u64::from(p.flow.0), p.seq, p.data_seq ^ p.sent_ps];
        let draw = words.iter().fold(mix64(run.config.seed), |mixed, word| mix64(mixed ^ word));
        let at = Crossing { switch, now_ps, packet: p, draw, ports, candidates: &self.candidates };
        self.scheme.as_mut().expect("flows with fixed paths choose no ports").choose(&at)
    }
}
