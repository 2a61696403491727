//! Queueing of one class's data at an egress port where a plain queue is not enough: under a limit of the port's own,
//! under RED or CoDel, in many queues, or by priorities that packets carry.

use fairrate_units::{Bytes, Rate};

use super::DropCause;
use super::codel::{CoDel, CoDelRule};
use super::packet_fifo::PacketFifo;
use super::pfabric::PFabricQueue;
use super::port::tx_time_ps;
use super::red::Red;
use super::sfq_codel::SfqCoDel;
use crate::config::{ClockRule, QueueConfig, QueueRule};
use crate::ids::{PacketIdx, PortId};
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::rng::mix64;

/// Drops and marks of a discipline's operation.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// Packets that were dropped and are in no queue any more, each with the cause.
    pub dropped: Vec<(PacketIdx, DropCause)>,
    /// Number of packets that were marked.
    pub marks: u64,
}

impl Verdicts {
    /// Records a drop.
    pub fn drop(&mut self, packet: PacketIdx, cause: DropCause) {
        self.dropped.push((packet, cause));
    }
}

/// Highest number of bytes and packets that may wait.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Highest number of wire bytes.
    pub bytes: Bytes,
    /// Highest number of packets.
    pub packets: u32,
}

impl Limit {
    /// No limit.
    #[cfg(test)]
    pub const NONE: Self = Self { bytes: Bytes::MAX, packets: u32::MAX };

    /// Returns `true` if `bytes` or `packets` exceeds the limit.
    pub fn is_exceeded(self, bytes: u64, packets: u32) -> bool {
        self.bytes.as_u64() < bytes || self.packets < packets
    }
}

/// A first-in first-out queue that counts its bytes and packets.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    list: PacketFifo,
    /// Wire bytes in the queue.
    pub bytes: u64,
    /// Number of packets in the queue.
    pub packets: u32,
}

impl Waiting {
    /// An empty queue.
    pub const EMPTY: Self = Self { list: PacketFifo::EMPTY, bytes: 0, packets: 0 };

    /// Returns `true` if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Appends a packet.
    pub fn push(&mut self, pool: &mut PacketPool, packet: PacketIdx) {
        self.bytes += u64::from(pool.get(packet).wire);
        self.packets += 1;
        self.list.push(pool, packet);
    }
    /// Takes the first packet; the queue must not be empty.
    pub fn pop(&mut self, pool: &PacketPool) -> PacketIdx {
        let packet = self.list.pop(pool);
        self.bytes -= u64::from(pool.get(packet).wire);
        self.packets -= 1;
        packet
    }
    /// Takes the last packet, by a walk over all packets; the queue must not be empty.
    pub fn pop_last(&mut self, pool: &mut PacketPool) -> PacketIdx {
        let mut kept = Self::EMPTY;
        loop {
            let packet = self.pop(pool);
            if self.is_empty() {
                *self = kept;
                return packet;
            }
            kept.push(pool, packet);
        }
    }
    /// Returns the packets in the queue.
    pub fn packets<'a>(&self, pool: &'a PacketPool) -> impl Iterator<Item = PacketIdx> + use<'a> {
        pool.list(self.list.head())
    }
}

/// Returns a key for the flow of a packet; each direction of a flow has a key of its own.
pub fn flow_key(packet: &Packet) -> u64 {
    let forward = matches!(packet.kind, PacketKind::Data | PacketKind::Control);
    u64::from(packet.flow.0) << 1 | u64::from(!forward)
}

/// The egress port and class of a discipline, with the parameters that it needs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The egress port.
    pub port: PortId,
    /// The class.
    pub class: u8,
    /// Rate of the port.
    pub rate: Rate,
    /// Wire bytes of a full packet.
    pub wire_mtu: u32,
    /// `true` if the flows' algorithm reads marks.
    pub ecn_capable: bool,
    /// The run's seed.
    pub seed: u64,
}

/// The queue of one class's data at an egress port.
pub struct Discipline {
    limit: Limit,
    /// `true` if RED marks data instead of dropping it.
    marks: bool,
    rule: Rule,
}

enum Rule {
    Fifo(Waiting),
    Red(Waiting, Box<Red>),
    CoDel(Waiting, CoDel, CoDelRule),
    SfqCoDel(Box<SfqCoDel>),
    PFabric(PFabricQueue),
}

impl Discipline {
    /// Creates an empty queue for `place`; `None` if the port's own queues suffice.
    pub fn new(config: &QueueConfig, place: &Place) -> Option<Self> {
        let limit = Limit { bytes: config.limit_bytes, packets: config.limit_packets };
        let entity = u64::from(place.port.0) << 3 | u64::from(place.class);
        let mut marks = false;
        let codel = |c| CoDelRule::new(c, u64::from(place.wire_mtu), c.ecn && place.ecn_capable);
        let rule = match &config.rule {
            QueueRule::Fifo if limit.bytes == Bytes::MAX && limit.packets == u32::MAX => return None,
            QueueRule::Fifo => Rule::Fifo(Waiting::EMPTY),
            QueueRule::Red(red) => {
                marks = red.ecn && place.ecn_capable;
                let packet_ps = tx_time_ps(place.rate, u64::from(place.wire_mtu), ClockRule::Picoseconds);
                Rule::Red(Waiting::EMPTY, Box::new(Red::new(red, place.rate, packet_ps, place.seed, entity)))
            }
            QueueRule::CoDel(c) => Rule::CoDel(Waiting::EMPTY, CoDel::default(), codel(c)),
            QueueRule::SfqCoDel(c) => {
                let salt = mix64(mix64(place.seed) ^ entity);
                Rule::SfqCoDel(Box::new(SfqCoDel::new(c, codel(&c.codel), place.wire_mtu, limit, salt)))
            }
            QueueRule::PFabric => Rule::PFabric(PFabricQueue::new(limit)),
        };
        Some(Self { limit, marks, rule })
    }

    /// Returns `true` if no packet waits.
    pub fn is_empty(&self) -> bool {
        match &self.rule {
            Rule::Fifo(q) | Rule::Red(q, _) | Rule::CoDel(q, ..) => q.is_empty(),
            Rule::SfqCoDel(q) => q.len() == 0,
            Rule::PFabric(q) => q.len() == 0,
        }
    }

    /// Decides about an arriving packet, before anything else does; it may mark the packet. Disciplines that drop other
    /// packets to make room always admit it here. `Err` holds the cause of a drop.
    pub fn admit(
        &mut self,
        pool: &mut PacketPool,
        packet: PacketIdx,
        now_ps: u64,
        verdicts: &mut Verdicts,
    ) -> Result<(), DropCause> {
        let (Rule::Fifo(queue) | Rule::Red(queue, _) | Rule::CoDel(queue, ..)) = &self.rule else { return Ok(()) };
        let p = pool.get_mut(packet);
        let (bytes, packets) = (queue.bytes, queue.packets);
        if self.limit.is_exceeded(bytes + u64::from(p.wire), packets + 1) {
            return Err(DropCause::QueueLimit);
        }
        let Rule::Red(_, red) = &mut self.rule else { return Ok(()) };
        if !red.hits(bytes, now_ps) {
            return Ok(());
        }
        if !self.marks || p.kind != PacketKind::Data {
            return Err(DropCause::Early);
        }
        p.set_marked(true);
        verdicts.marks += 1;
        Ok(())
    }

    /// Adds an admitted packet, and drops packets for which there is no room, perhaps this packet itself. Lower
    /// `priority` is sent first, if the discipline supports priorities.
    pub fn push(
        &mut self,
        pool: &mut PacketPool,
        packet: PacketIdx,
        priority: f64,
        now_ps: u64,
        verdicts: &mut Verdicts,
    ) {
        // From here until the packet leaves, this is the time at which it joined.
        pool.get_mut(packet).arrival_ps = now_ps;
        match &mut self.rule {
            Rule::Fifo(queue) | Rule::Red(queue, _) | Rule::CoDel(queue, ..) => queue.push(pool, packet),
            Rule::SfqCoDel(queue) => queue.push(pool, packet, verdicts),
            Rule::PFabric(queue) => queue.push(pool, packet, priority, verdicts),
        }
    }

    /// Drops packets as the discipline requires and then takes the packet to send; there must be one.
    pub fn pop(&mut self, pool: &mut PacketPool, now_ps: u64, verdicts: &mut Verdicts) -> PacketIdx {
        match &mut self.rule {
            Rule::Fifo(queue) => queue.pop(pool),
            Rule::Red(queue, red) => {
                let packet = queue.pop(pool);
                if queue.is_empty() {
                    red.on_empty(now_ps);
                }
                packet
            }
            Rule::CoDel(queue, codel, rule) => codel.pop(rule, queue, pool, now_ps, verdicts),
            Rule::SfqCoDel(queue) => queue.pop(pool, now_ps, verdicts),
            Rule::PFabric(queue) => queue.pop(),
        }
    }

    /// Returns the packets that wait, for the final count.
    pub fn packets(&self, pool: &PacketPool) -> Vec<PacketIdx> {
        match &self.rule {
            Rule::Fifo(queue) | Rule::Red(queue, _) | Rule::CoDel(queue, ..) => queue.packets(pool).collect(),
            Rule::SfqCoDel(queue) => queue.lists().flat_map(|list| list.packets(pool)).collect(),
            Rule::PFabric(queue) => queue.packets().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CoDelConfig, Overflow, RedConfig, SfqCoDelConfig};
    use crate::ids::FlowId;
    use fairrate_units::Time;
    use proptest::prelude::*;

    const PLACE: Place =
        Place { port: PortId(3), class: 3, rate: Rate::from_gbps(10), wire_mtu: 1_048, ecn_capable: false, seed: 1 };

    fn config(rule: QueueRule) -> QueueConfig {
        QueueConfig { rule, limit_bytes: Bytes::new(12_000), limit_packets: 20 }
    }

    fn rules() -> [QueueRule; 5] {
        let codel = CoDelConfig { target: Time::from_us(3), interval: Time::from_us(10), ecn: false };
        let (kmin, kmax) = (Bytes::new(1_000), Bytes::new(9_000));
        [
            QueueRule::Fifo,
            QueueRule::Red(RedConfig { kmin, kmax, pmax: 0.5, per_rate: None, weight: 0.3, even: true, ecn: false }),
            QueueRule::CoDel(codel),
            QueueRule::SfqCoDel(SfqCoDelConfig { codel, queues: 4, quantum: None, overflow: Overflow::Head }),
            QueueRule::PFabric,
        ]
    }

    #[test]
    fn without_a_limit_first_in_first_out_needs_no_discipline() {
        assert!(Discipline::new(&QueueConfig::FIFO, &PLACE).is_none());
        assert!(Discipline::new(&config(QueueRule::Fifo), &PLACE).is_some());
    }

    #[test]
    fn drop_tail_counts_bytes_and_packets() {
        let mut pool = PacketPool::new(0, 0);
        for (wire, fits) in [(1_000, 12), (60, 20)] {
            let mut queue = Discipline::new(&config(QueueRule::Fifo), &PLACE).expect("it has a limit");
            for i in 0..25 {
                let packet = pool.take(Packet { wire, ..Packet::new(PacketKind::Data) });
                let admitted = queue.admit(&mut pool, packet, 0, &mut Verdicts::default());
                assert_eq!(admitted, if i < fits { Ok(()) } else { Err(DropCause::QueueLimit) });
                if admitted.is_ok() {
                    queue.push(&mut pool, packet, 0.0, 0, &mut Verdicts::default());
                }
            }
            assert_eq!(queue.packets(&pool).len(), fits);
        }
    }

    #[test]
    fn red_marks_data_that_can_be_marked_and_drops_the_rest() {
        let (kmin, kmax) = (Bytes::ZERO, Bytes::ZERO);
        let red = RedConfig { kmin, kmax, pmax: 1.0, per_rate: None, weight: 1.0, even: false, ecn: true };
        for ecn_capable in [false, true] {
            let place = Place { ecn_capable, ..PLACE };
            let mut queue = Discipline::new(&config(QueueRule::Red(red)), &place).expect("it is no FIFO");
            let mut pool = PacketPool::new(0, 0);
            let mut verdicts = Verdicts::default();
            let mut offer = |kind| {
                let packet = pool.take(Packet { wire: 100, ..Packet::new(kind) });
                let admitted = queue.admit(&mut pool, packet, 0, &mut verdicts).is_ok();
                if admitted {
                    queue.push(&mut pool, packet, 0.0, 0, &mut verdicts);
                }
                (admitted, pool.get(packet).is_marked())
            };
            // Nothing is hit at kmin, and everything above it.
            assert_eq!(offer(PacketKind::Data), (true, false));
            assert_eq!(offer(PacketKind::Data), (ecn_capable, ecn_capable));
            assert_eq!(offer(PacketKind::Ack), (false, false));
            assert_eq!(verdicts.marks, u64::from(ecn_capable));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// For every discipline: each packet has exactly one outcome (refused, dropped, sent or waiting); the limits
        /// hold; and a queue that is not empty sends.
        #[test]
        fn packets_are_conserved(steps in prop::collection::vec((0_u32..6, 60_u16..=1_048, 0_u8..4), 1..300)) {
            for rule in rules() {
                let mut queue = Discipline::new(&config(rule), &PLACE).expect("it has a limit");
                let (mut pool, mut verdicts) = (PacketPool::new(0, 0), Verdicts::default());
                let (mut refused, mut sent, mut taken) = (0, Vec::new(), 0);
                for (i, &(flow, wire, pops)) in steps.iter().enumerate() {
                    let now = i as u64 * 1_000_000;
                    let packet = pool.take(Packet { flow: FlowId(flow), wire, ..Packet::new(PacketKind::Data) });
                    if queue.admit(&mut pool, packet, now, &mut verdicts).is_ok() {
                        queue.push(&mut pool, packet, f64::from(flow), now, &mut verdicts);
                        taken += 1;
                    } else {
                        refused += 1;
                    }
                    for _ in 0..pops.saturating_sub(1) {
                        if !queue.is_empty() {
                            sent.push(queue.pop(&mut pool, now, &mut verdicts));
                        }
                    }
                    let waiting = queue.packets(&pool);
                    let bytes: u64 = waiting.iter().map(|&p| u64::from(pool.get(p).wire)).sum();
                    prop_assert!(bytes <= 12_000 && waiting.len() <= 20);
                    prop_assert_eq!(queue.is_empty(), waiting.is_empty());
                    prop_assert_eq!(taken, sent.len() + verdicts.dropped.len() + waiting.len());
                }
                prop_assert_eq!(refused + taken, steps.len());
                let mut all: Vec<PacketIdx> = verdicts.dropped.iter().map(|d| d.0).chain(sent).collect();
                all.extend(queue.packets(&pool));
                all.sort_unstable();
                all.dedup();
                prop_assert_eq!(all.len(), taken, "no packet has two fates");
            }
        }
    }
}
