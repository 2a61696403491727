//! Stochastic fair queueing with CoDel: flows are spread over queues by a hash, queues take turns by deficit round
//! robin, newly active queues first, and each has CoDel of its own.
//!
//! T. Hoeiland-Joergensen et al., "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm", RFC
//! 8290; ns-2's `sfqcodel` differs in its default quantum, a packet, and in its drop when full: the last packet of the
//! longest queue, where the RFC drops the first. Both drops are available here; the longest queue is the one with most
//! bytes.

use std::collections::VecDeque;

use super::DropCause;
use super::codel::{CoDel, CoDelRule};
use super::discipline::{Limit, Verdicts, Waiting, flow_key};
use crate::config::{Overflow, SfqCoDelConfig};
use crate::ids::PacketIdx;
use crate::packet::{Packet, PacketPool};
use crate::rng::mix64;

/// Value of a bin that has no queue yet.
const NO_QUEUE: u32 = u32::MAX;

/// The queues of one class.
pub struct SfqCoDel {
    rule: CoDelRule,
    /// Wire bytes of a turn.
    quantum: i64,
    limit: Limit,
    overflow: Overflow,
    /// Salt of the hash.
    salt: u64,
    /// Index in `queues` of each bin's queue.
    bins: Vec<u32>,
    /// The queues of bins that were ever used.
    queues: Vec<Queue>,
    /// Active queues that have not had their first turn (`new`), and those that have (`old`).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: u64,
    packets: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    waiting: Waiting,
    codel: CoDel,
    /// Wire bytes that the queue may still send in its turn; below zero it has sent too many.
    credit: i64,
    active: bool,
}

impl SfqCoDel {
    /// Creates empty queues. `full`: wire bytes of a full packet.
    pub fn new(config: &SfqCoDelConfig, rule: CoDelRule, full: u32, limit: Limit, salt: u64) -> Self {
        let quantum = config.quantum.map_or(full, |q| q.as_u64() as u32);
        Self {
            rule,
            quantum: i64::from(quantum.max(1)),
            limit,
            overflow: config.overflow,
            salt,
            bins: vec![NO_QUEUE; config.queues.max(1) as usize],
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> u32 {
        self.packets
    }

    /// Adds a packet, and drops packets for which there is no room.
    pub fn push(&mut self, pool: &mut PacketPool, packet: PacketIdx, verdicts: &mut Verdicts) {
        let p = pool.get(packet);
        let wire = u64::from(p.wire);
        let at = self.queue_of(p);
        let queue = &mut self.queues[at as usize];
        queue.waiting.push(pool, packet);
        if !queue.active {
            (queue.active, queue.credit) = (true, self.quantum);
            self.new.push_back(at);
        }
        self.packets += 1;
        self.bytes += wire;
        while self.limit.is_exceeded(self.bytes, self.packets) {
            let packet = self.evict(pool);
            verdicts.drop(packet, DropCause::QueueLimit);
        }
    }

    /// Takes the next packet; there must be one. RFC 8290 section 4.2.
    pub fn pop(&mut self, pool: &mut PacketPool, now_ps: u64, verdicts: &mut Verdicts) -> PacketIdx {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = *list.front().expect("a queue with packets is in one of the lists");
            let queue = &mut self.queues[at as usize];
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            if queue.waiting.is_empty() {
                list.pop_front();
                // A new queue that runs empty waits for a turn among the old ones: otherwise it would always be new.
                if is_new {
                    self.old.push_back(at);
                } else {
                    queue.active = false;
                }
                continue;
            }
            let before = (queue.waiting.bytes, queue.waiting.packets);
            let packet = queue.codel.pop(&self.rule, &mut queue.waiting, pool, now_ps, verdicts);
            queue.credit -= i64::from(pool.get(packet).wire);
            self.bytes -= before.0 - queue.waiting.bytes;
            self.packets -= before.1 - queue.waiting.packets;
            return packet;
        }
    }

    /// Returns the packet lists of all queues.
    pub fn lists(&self) -> impl Iterator<Item = &Waiting> {
        self.queues.iter().map(|queue| &queue.waiting)
    }

    /// Takes a packet from the queue with most bytes; of several, from the one whose turn is next.
    fn evict(&mut self, pool: &mut PacketPool) -> PacketIdx {
        let (mut longest, mut most) = (0, 0);
        for &at in self.new.iter().chain(&self.old) {
            let bytes = self.queues[at as usize].waiting.bytes;
            if most < bytes {
                (longest, most) = (at as usize, bytes);
            }
        }
        let waiting = &mut self.queues[longest].waiting;
        let packet = match self.overflow {
            Overflow::Head => waiting.pop(pool),
            Overflow::Tail => waiting.pop_last(pool),
        };
        self.bytes -= most - waiting.bytes;
        self.packets -= 1;
        packet
    }

    fn queue_of(&mut self, packet: &Packet) -> u32 {
        let n_bins = self.bins.len() as u64;
        let bin = &mut self.bins[(mix64(self.salt ^ flow_key(packet)) % n_bins) as usize];
        if *bin == NO_QUEUE {
            *bin = self.queues.len() as u32;
            let (waiting, codel) = (Waiting::EMPTY, CoDel::default());
            self.queues.push(Queue { waiting, codel, credit: 0, active: false });
        }
        *bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CoDelConfig;
    use crate::ids::FlowId;
    use crate::packet::PacketKind;
    use fairrate_units::{Bytes, Time};
    use proptest::prelude::*;

    const QUANTUM: u32 = 1_048;

    fn config(queues: u32, overflow: Overflow, codel: CoDelConfig) -> SfqCoDelConfig {
        SfqCoDelConfig { codel, queues, quantum: None, overflow }
    }

    /// Returns queues whose CoDel never drops.
    fn patient(queues: u32, limit: Limit, overflow: Overflow) -> SfqCoDel {
        let codel = CoDelConfig { target: Time::MAX, interval: Time::MAX, ecn: false };
        let rule = CoDelRule::new(&codel, 1_048, false);
        SfqCoDel::new(&config(queues, overflow, codel), rule, QUANTUM, limit, 7)
    }

    fn push(sfq: &mut SfqCoDel, pool: &mut PacketPool, flow: u32, wire: u16) -> Vec<PacketIdx> {
        let packet = pool.take(Packet { flow: FlowId(flow), wire, ..Packet::new(PacketKind::Data) });
        let mut verdicts = Verdicts::default();
        sfq.push(pool, packet, &mut verdicts);
        verdicts.dropped.iter().map(|&(packet, _)| packet).collect()
    }

    fn pop(sfq: &mut SfqCoDel, pool: &mut PacketPool) -> (u32, u32) {
        let packet = sfq.pop(pool, 0, &mut Verdicts::default());
        let p = *pool.get(packet);
        pool.release(packet);
        (p.flow.0, u32::from(p.wire))
    }

    #[test]
    fn a_new_queue_goes_first_once() {
        let (mut pool, mut sfq) = (PacketPool::new(0, 0), patient(1 << 16, Limit::NONE, Overflow::Head));
        (0..4).for_each(|_| assert!(push(&mut sfq, &mut pool, 1, 1_000).is_empty()));
        // A credit of 1,048 is used up after two packets; then the queue is an old one.
        assert_eq!([pop(&mut sfq, &mut pool).0, pop(&mut sfq, &mut pool).0], [1, 1]);
        push(&mut sfq, &mut pool, 2, 60);
        assert_eq!(pop(&mut sfq, &mut pool), (2, 60));
        // Flow 2 is empty and waits behind flow 1: a packet that it sends now does not make it new.
        assert_eq!(pop(&mut sfq, &mut pool).0, 1);
        push(&mut sfq, &mut pool, 2, 60);
        assert_eq!([pop(&mut sfq, &mut pool).0, pop(&mut sfq, &mut pool).0], [2, 1]);
        assert_eq!((sfq.len(), sfq.bytes), (0, 0));
    }

    #[test]
    fn a_full_buffer_drops_from_the_longest_queue() {
        for (overflow, victim) in [(Overflow::Head, 1_000), (Overflow::Tail, 1_002)] {
            let limit = Limit { bytes: Bytes::MAX, packets: 5 };
            let (mut pool, mut sfq) = (PacketPool::new(0, 0), patient(1 << 16, limit, overflow));
            for wire in [1_000, 1_001, 1_002] {
                push(&mut sfq, &mut pool, 1, wire);
            }
            for _ in 0..2 {
                push(&mut sfq, &mut pool, 2, 1_048);
            }
            let dropped = push(&mut sfq, &mut pool, 3, 60);
            assert_eq!(dropped.iter().map(|&p| pool.get(p).wire).collect::<Vec<_>>(), [victim]);
            let left = 1_000 + 1_001 + 1_002 - u64::from(victim);
            assert_eq!((sfq.len(), sfq.bytes), (5, left + 2 * 1_048 + 60));
            // The queue it was taken from still works.
            let mut sizes = vec![pop(&mut sfq, &mut pool).1];
            push(&mut sfq, &mut pool, 1, 900);
            while 0 < sfq.len() {
                sizes.extend(Some(pop(&mut sfq, &mut pool)).filter(|p| p.0 == 1).map(|p| p.1));
            }
            let expected = if overflow == Overflow::Head { vec![1_001, 1_002, 900] } else { vec![1_000, 1_001, 900] };
            assert_eq!(sizes, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// A queue that always has packets has sent k quanta or up to one packet more after its k-th turn, and turns
        /// differ by one: so two queues differ by less than a quantum and a packet.
        #[test]
        fn backlogged_queues_share_within_a_quantum_and_a_packet(
            n in 2_u32..12, sizes in prop::collection::vec(60_u16..=1_048, 1..40), packets in 50_usize..600,
        ) {
            let (mut pool, mut sfq) = (PacketPool::new(0, 0), patient(1 << 20, Limit::NONE, Overflow::Head));
            let mut sent = vec![0_u32; n as usize];
            for i in 0..2 * n {
                push(&mut sfq, &mut pool, i % n, sizes[i as usize % sizes.len()]);
            }
            for i in 0..packets {
                let (flow, wire) = pop(&mut sfq, &mut pool);
                sent[flow as usize] += wire;
                push(&mut sfq, &mut pool, flow, sizes[i % sizes.len()]);
                let (least, most) = (sent.iter().min(), sent.iter().max());
                let apart = most.zip(least).map_or(0, |(most, least)| most - least);
                prop_assert!(apart < QUANTUM + 1_048, "{sent:?}");
            }
        }

        /// With a real CoDel and a small buffer, every packet that came in is dropped, sent, or waiting; the counts
        /// agree with the lists; and each flow's packets leave in order.
        #[test]
        fn packets_are_conserved(
            steps in prop::collection::vec((0_u32..6, 60_u16..=1_048, any::<bool>()), 1..400), bins in 1_u32..9,
            tail in any::<bool>(),
        ) {
            let codel = CoDelConfig { target: Time::from_us(5), interval: Time::from_us(20), ecn: false };
            let rule = CoDelRule::new(&codel, 1_048, false);
            let limit = Limit { bytes: Bytes::new(20_000), packets: 30 };
            let config = config(bins, if tail { Overflow::Tail } else { Overflow::Head }, codel);
            let (mut pool, mut sfq) = (PacketPool::new(0, 0), SfqCoDel::new(&config, rule, QUANTUM, limit, 7));
            let (mut verdicts, mut sent) = (Verdicts::default(), Vec::new());
            for (i, &(flow, wire, send)) in steps.iter().enumerate() {
                let now = i as u64 * 1_000_000;
                let packet = Packet { flow: FlowId(flow), wire, seq: i as u64, arrival_ps: now, ..Packet::new(PacketKind::Data) };
                let packet = pool.take(packet);
                sfq.push(&mut pool, packet, &mut verdicts);
                if send {
                    sent.push(sfq.pop(&mut pool, now, &mut verdicts));
                }
                prop_assert!(sfq.bytes <= 20_000 && sfq.packets <= 30);
                let counted = sfq.lists().fold((0, 0), |(b, n), w| (b + w.bytes, n + w.packets));
                prop_assert_eq!(counted, (sfq.bytes, sfq.packets));
            }
            prop_assert_eq!(steps.len(), sent.len() + verdicts.dropped.len() + sfq.packets as usize);
            for flow in 0..6 {
                let seqs: Vec<u64> = sent.iter().map(|&p| pool.get(p)).filter(|p| p.flow.0 == flow).map(|p| p.seq).collect();
                prop_assert!(seqs.is_sorted());
            }
        }
    }
}
