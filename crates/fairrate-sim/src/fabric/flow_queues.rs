//! Physical queues of one class at an egress port: flows are spread over them, they take turns, and single flows can be
//! paused by the next hop (per-hop per-flow flow control).
//!
//! P. Goyal et al., "Backpressure Flow Control", NSDI 2022, defines the mechanism; the assignment of flows to queues
//! and the decision to pause are elsewhere. The differences from the paper are:
//!
//! - A pause or resume is a frame of its own that names one flow. In the paper each link carries a Bloom filter of all
//!   paused flows at a fixed period. So no flow is paused by a false positive here; and no frame is ever lost, so none
//!   has to be repeated.
//! - The turn is deficit round robin with a quantum of one full packet. A queue that runs empty or is blocked loses its
//!   deficit, and joins the round again at its end.

use std::collections::VecDeque;

use super::packet_fifo::PacketFifo;
use crate::ids::{FlowId, PacketIdx};
use crate::packet::PacketPool;

/// The physical queues of one class.
pub struct FlowQueues {
    /// Wire bytes that a queue may send in a turn.
    quantum: u32,
    queues: Vec<Queue>,
    /// The queues that may send, starting with the queue whose turn it is.
    round: VecDeque<u16>,
    /// Set when the first queue of the round has received this turn's quantum.
    granted: bool,
    /// Flows that the next hop has paused, sorted.
    paused: Vec<FlowId>,
}

#[derive(Clone, Copy)]
struct Queue {
    packets: PacketFifo,
    /// Wire bytes that the queue may still send in this turn.
    deficit: u32,
    in_round: bool,
}

impl FlowQueues {
    /// Creates the queues without packets; `quantum`, the bytes of a turn, is at least the size of a full packet.
    pub fn new(quantum: u32) -> Self {
        Self { quantum, queues: Vec::new(), round: VecDeque::new(), granted: false, paused: Vec::new() }
    }

    /// Returns `true` if some queue has a packet that may be sent.
    pub fn can_send(&self) -> bool {
        !self.round.is_empty()
    }

    /// Appends a packet to a queue.
    pub fn push(&mut self, pool: &mut PacketPool, packet: PacketIdx, queue: u16) {
        let at = usize::from(queue);
        if self.queues.len() <= at {
            let empty = Queue { packets: PacketFifo::EMPTY, deficit: 0, in_round: false };
            self.queues.resize(at + 1, empty);
        }
        let was_empty = self.queues[at].packets.is_empty();
        self.queues[at].packets.push(pool, packet);
        if was_empty {
            self.refresh(pool, queue);
        }
    }

    /// Takes the next packet; [`FlowQueues::can_send`] must hold.
    pub fn pop(&mut self, pool: &PacketPool) -> PacketIdx {
        loop {
            let turn = self.round[0];
            let queue = &mut self.queues[usize::from(turn)];
            if !self.granted {
                queue.deficit += self.quantum;
                self.granted = true;
            }
            let wire = u32::from(pool.get(queue.packets.head()).wire);
            if wire <= queue.deficit {
                queue.deficit -= wire;
                let packet = queue.packets.pop(pool);
                self.refresh(pool, turn);
                return packet;
            }
            self.round.rotate_left(1);
            self.granted = false;
        }
    }

    /// Pauses or resumes a flow.
    pub fn set_paused(&mut self, pool: &PacketPool, flow: FlowId, paused: bool) {
        match (self.paused.binary_search(&flow), paused) {
            (Err(at), true) => self.paused.insert(at, flow),
            (Ok(at), false) => {
                self.paused.remove(at);
            }
            _ => {}
        }
        for queue in 0..self.queues.len() as u16 {
            self.refresh(pool, queue);
        }
    }

    /// Returns the packet lists of all queues.
    pub fn lists(&self) -> impl Iterator<Item = &PacketFifo> {
        self.queues.iter().map(|queue| &queue.packets)
    }

    /// Adds a queue to the round or removes it, after its first packet or the set of paused flows has changed.
    fn refresh(&mut self, pool: &PacketPool, queue: u16) {
        let q = &mut self.queues[usize::from(queue)];
        let may_send = !q.packets.is_empty() && self.paused.binary_search(&pool.get(q.packets.head()).flow).is_err();
        if may_send == q.in_round {
            return;
        }
        q.in_round = may_send;
        if may_send {
            self.round.push_back(queue);
            return;
        }
        q.deficit = 0;
        let at = self.round.iter().position(|&other| other == queue).expect("a queue in the round is listed");
        self.round.remove(at);
        self.granted &= at > 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Packet, PacketKind};
    use proptest::prelude::*;

    const QUANTUM: u32 = 1_048;

    fn packet(pool: &mut PacketPool, flow: u32, wire: u16) -> PacketIdx {
        pool.take(Packet { flow: FlowId(flow), wire, ..Packet::new(PacketKind::Data) })
    }

    fn pop(queues: &mut FlowQueues, pool: &mut PacketPool) -> (u32, u32) {
        let packet = queues.pop(pool);
        let p = *pool.get(packet);
        pool.release(packet);
        (p.flow.0, u32::from(p.wire))
    }

    /// Quantum 1,000. Queue 0 holds 600, 600, 600, 600 of flow 0, queue 1 holds 1,000, 1,000 of flow 1. Turn of 0:
    /// credit 1,000, sends 600, keeps 400. Turn of 1: sends 1,000. Turn of 0: 1,400, sends 600 twice, keeps 200. Turn
    /// of 1: 1,000, and is empty. Then the last of 0.
    #[test]
    fn turns_carry_what_a_packet_did_not_fit() {
        let (mut pool, mut queues) = (PacketPool::new(0, 0), FlowQueues::new(1_000));
        for _ in 0..4 {
            let p = packet(&mut pool, 0, 600);
            queues.push(&mut pool, p, 0);
        }
        for _ in 0..2 {
            let p = packet(&mut pool, 1, 1_000);
            queues.push(&mut pool, p, 1);
        }
        let order: Vec<u32> = (0..6).map(|_| pop(&mut queues, &mut pool).0).collect();
        assert_eq!(order, [0, 1, 0, 0, 1, 0]);
        assert!(!queues.can_send());
    }

    #[test]
    fn a_queue_is_blocked_by_its_first_packet_alone() {
        let (mut pool, mut queues) = (PacketPool::new(0, 0), FlowQueues::new(QUANTUM));
        for (flow, queue) in [(7, 0), (8, 0), (9, 1)] {
            let p = packet(&mut pool, flow, 1_048);
            queues.push(&mut pool, p, queue);
        }
        queues.set_paused(&pool, FlowId(8), true);
        assert_eq!(pop(&mut queues, &mut pool).0, 7, "flow 8 waits behind flow 7, which may go");
        queues.set_paused(&pool, FlowId(9), true);
        assert!(!queues.can_send());
        queues.set_paused(&pool, FlowId(8), false);
        assert_eq!(pop(&mut queues, &mut pool).0, 8);
        assert!(!queues.can_send());
        queues.set_paused(&pool, FlowId(9), false);
        assert_eq!(pop(&mut queues, &mut pool).0, 9);
        assert_eq!(queues.lists().filter(|list| !list.is_empty()).count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Queues that always have packets have each sent k or k + 1 quanta, less a deficit below one: the difference
        /// is never two quanta, for any duration and any packet sizes. Queues of paused flows send nothing. Once they
        /// are back the others may have a deficit from before, so three quanta.
        #[test]
        fn backlogged_queues_share_equally(
            n in 2_u16..12, held in any::<u16>(), sizes in prop::collection::vec(60_u16..=1_048, 1..40), packets in 50_usize..600,
        ) {
            let (mut pool, mut queues) = (PacketPool::new(0, 0), FlowQueues::new(QUANTUM));
            let mut next = 0;
            let mut feed = |queues: &mut FlowQueues, pool: &mut PacketPool, queue: u16| {
                next += 1;
                let p = packet(pool, u32::from(queue), sizes[next % sizes.len()]);
                queues.push(pool, p, queue);
            };
            for queue in (0..n).chain(0..n) {
                feed(&mut queues, &mut pool, queue);
            }
            let is_held = |queue: u16| queue > 0 && held & (1 << queue) != 0;
            for phase in [true, false] {
                for queue in (0..n).filter(|&q| is_held(q)) {
                    queues.set_paused(&pool, FlowId(u32::from(queue)), phase);
                }
                let mut sent = vec![0_u32; usize::from(n)];
                for _ in 0..packets {
                    let (flow, wire) = pop(&mut queues, &mut pool);
                    sent[flow as usize] += wire;
                    feed(&mut queues, &mut pool, flow as u16);
                    let open = (0..n).filter(|&q| !phase || !is_held(q)).map(|q| sent[usize::from(q)]);
                    let (least, most) = (open.clone().min(), open.max());
                    let apart = most.zip(least).map_or(0, |(most, least)| most - least);
                    prop_assert!(apart < 2 * QUANTUM + u32::from(!phase) * QUANTUM, "{sent:?}");
                }
                if phase {
                    prop_assert!((0..n).filter(|&q| is_held(q)).all(|q| sent[usize::from(q)] == 0), "{sent:?}");
                }
            }
        }
    }
}
