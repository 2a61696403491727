//! pFabric's queue: a tiny buffer that sends the flow with the fewest bytes left, and drops from the flow with the
//! most.
//!
//! M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, section 4.1. A packet's
//! priority is a number it carries, the remaining bytes of its flow: lower values are sent first. The packet to send is
//! the earliest of the flow that has the packet with the lowest value, so that a flow's packets stay in order. A full
//! buffer drops the packet with the highest value; of several the last, which may be the arriving packet. The buffer
//! holds a few dozen packets, so both operations scan all packets.

use super::DropCause;
use super::discipline::{Limit, Verdicts, flow_key};
use crate::ids::PacketIdx;
use crate::packet::PacketPool;

/// The queue of one class.
pub struct PFabricQueue {
    limit: Limit,
    /// In order of arrival.
    entries: Vec<Entry>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Lower values are sent first.
    priority: f64,
    flow: u64,
    packet: PacketIdx,
    wire: u16,
}

impl PFabricQueue {
    /// Creates an empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { limit, entries: Vec::new(), bytes: 0 }
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the waiting packets in order of arrival.
    pub fn packets(&self) -> impl Iterator<Item = PacketIdx> {
        self.entries.iter().map(|e| e.packet)
    }

    /// Adds a packet, and drops packets for which there is no room, perhaps this packet itself.
    pub fn push(&mut self, pool: &PacketPool, packet: PacketIdx, priority: f64, verdicts: &mut Verdicts) {
        let p = pool.get(packet);
        self.entries.push(Entry { priority, flow: flow_key(p), packet, wire: p.wire });
        self.bytes += u64::from(p.wire);
        while self.limit.is_exceeded(self.bytes, self.entries.len() as u32) {
            let last = self.entries.iter().enumerate().max_by(|a, b| a.1.priority.total_cmp(&b.1.priority));
            let (at, _) = last.expect("what exceeds a limit is not empty");
            let packet = self.take(at);
            verdicts.drop(packet, DropCause::Priority);
        }
    }

    /// Takes the next packet; there must be one.
    pub fn pop(&mut self) -> PacketIdx {
        let first = self.entries.iter().min_by(|a, b| a.priority.total_cmp(&b.priority));
        let flow = first.expect("there is a packet").flow;
        let at = self.entries.iter().position(|e| e.flow == flow).expect("the flow has a packet");
        self.take(at)
    }

    fn take(&mut self, at: usize) -> PacketIdx {
        let entry = self.entries.remove(at);
        self.bytes -= u64::from(entry.wire);
        entry.packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FlowId;
    use crate::packet::{Packet, PacketKind};
    use fairrate_units::Bytes;
    use proptest::prelude::*;

    fn limit(bytes: u64) -> Limit {
        Limit { bytes: Bytes::new(bytes), packets: u32::MAX }
    }

    fn push(queue: &mut PFabricQueue, pool: &mut PacketPool, flow: u32, seq: u64, priority: f64) -> Vec<(u32, u64)> {
        let packet = pool.take(Packet { flow: FlowId(flow), seq, wire: 1_000, ..Packet::new(PacketKind::Data) });
        let mut verdicts = Verdicts::default();
        queue.push(pool, packet, priority, &mut verdicts);
        let name = |&(packet, cause): &(PacketIdx, DropCause)| {
            assert_eq!(cause, DropCause::Priority);
            (pool.get(packet).flow.0, pool.get(packet).seq)
        };
        verdicts.dropped.iter().map(name).collect()
    }

    #[test]
    fn the_least_left_goes_first_and_its_flow_in_order() {
        let (mut pool, mut queue) = (PacketPool::new(0, 0), PFabricQueue::new(limit(10_000)));
        // Flow 1 sends 9, 8 and 7 KB before its end; flow 2 is at 8 KB. A resent packet of flow 1 comes last.
        for (flow, seq, priority) in [(1, 0, 9e3), (2, 0, 8e3), (1, 1, 8e3), (1, 2, 7e3), (3, 0, 1e9)] {
            assert!(push(&mut queue, &mut pool, flow, seq, priority).is_empty());
        }
        let ack = pool.take(Packet { flow: FlowId(3), wire: 60, ..Packet::new(PacketKind::Ack) });
        queue.push(&pool, ack, 0.0, &mut Verdicts::default());
        assert_eq!(queue.pop(), ack, "the acknowledgments of a flow are not the flow");
        let mut order = Vec::new();
        while 0 < queue.len() {
            let packet = queue.pop();
            order.push((pool.get(packet).flow.0, pool.get(packet).seq));
        }
        // Flow 1's third packet has the lowest value, and its flow's two earlier packets go before it; so flow 1's goes
        // first in the tie at 8 KB.
        assert_eq!(order, [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)]);
    }

    #[test]
    fn the_most_left_is_dropped_and_of_equals_the_last() {
        let (mut pool, mut queue) = (PacketPool::new(0, 0), PFabricQueue::new(limit(3_000)));
        for (seq, priority) in [(0, 5e3), (1, 5e3), (2, 4e3)] {
            push(&mut queue, &mut pool, 1, seq, priority);
        }
        assert_eq!(push(&mut queue, &mut pool, 2, 0, 6e3), [(2, 0)]);
        assert_eq!(push(&mut queue, &mut pool, 3, 0, 5e3), [(3, 0)]);
        assert_eq!(push(&mut queue, &mut pool, 4, 0, 1e3), [(1, 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// No drop has a higher priority than a packet that is kept; a pop is of the flow of the best packet, and its
        /// earliest; nothing is lost.
        #[test]
        fn the_rules_hold(
            steps in prop::collection::vec((0_u32..5, 0_u32..8, 60_u16..=1_500, any::<bool>()), 1..300),
            bytes in 1_500_u64..12_000, packets in 2_u32..20,
        ) {
            let mut pool = PacketPool::new(0, 1);
            let mut queue = PFabricQueue::new(Limit { bytes: Bytes::new(bytes), packets });
            let (mut sent, mut dropped) = (0, 0);
            for (i, &(flow, priority, wire, send)) in steps.iter().enumerate() {
                let packet = pool.take(Packet { flow: FlowId(flow), wire, seq: i as u64, ..Packet::new(PacketKind::Data) });
                pool.header_mut(packet)[0] = f64::from(priority);
                let mut verdicts = Verdicts::default();
                queue.push(&pool, packet, f64::from(priority), &mut verdicts);
                let worst_kept = queue.entries.iter().map(|e| e.priority).fold(0.0, f64::max);
                for &(victim, _) in &verdicts.dropped {
                    prop_assert!(worst_kept <= pool.header(victim)[0]);
                    pool.release(victim);
                }
                dropped += verdicts.dropped.len();
                prop_assert!(queue.bytes <= bytes && queue.len() <= packets as usize);
                prop_assert_eq!(queue.bytes, queue.entries.iter().map(|e| u64::from(e.wire)).sum::<u64>());
                if send && 0 < queue.len() {
                    let best = queue.entries.iter().map(|e| e.priority).fold(f64::MAX, f64::min);
                    let before = queue.entries.clone();
                    let packet = queue.pop();
                    let p = *pool.get(packet);
                    let of_flow = || before.iter().filter(|e| e.flow == flow_key(&p));
                    prop_assert!(of_flow().any(|e| e.priority == best));
                    prop_assert_eq!(of_flow().next().map(|e| e.packet), Some(packet));
                    pool.release(packet);
                    sent += 1;
                }
            }
            prop_assert_eq!(steps.len(), sent + dropped + queue.len());
        }
    }
}
