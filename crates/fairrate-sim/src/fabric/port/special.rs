//! Ports with more than plain queues: flows spread over physical queues, and classes under a discipline.

use super::{N_CLASSES, Port};
use crate::fabric::DropCause;
use crate::fabric::discipline::{Discipline, Verdicts};
use crate::fabric::flow_queues::FlowQueues;
use crate::fabric::weighted::WeightedClasses;
use crate::ids::{FlowId, PacketIdx};
use crate::packet::PacketPool;

impl Port {
    /// Puts a packet into physical queue number `queue` of its class; `quantum`: wire bytes of a full packet.
    pub fn enqueue_flow(&mut self, pool: &mut PacketPool, packet: PacketIdx, queue: u16, quantum: u32) {
        let class = self.count_in(pool, packet);
        self.flow_queues(quantum)[class].push(pool, packet, queue);
        self.refresh_backlog(class);
    }

    /// Applies a pause (if `paused`) or resume of a flow of `class` that the other end requested.
    pub fn set_flow_paused(&mut self, pool: &PacketPool, class: u8, flow: FlowId, paused: bool, quantum: u32) {
        self.flow_queues(quantum)[class as usize].set_paused(pool, flow, paused);
        self.refresh_backlog(class as usize);
    }

    fn flow_queues(&mut self, quantum: u32) -> &mut [FlowQueues; N_CLASSES] {
        self.is_special = true;
        self.flow_queues.get_or_insert_with(|| Box::new(std::array::from_fn(|_| FlowQueues::new(quantum))))
    }

    /// Puts a class under a discipline.
    pub fn set_discipline(&mut self, class: u8, discipline: Discipline) {
        self.is_special = true;
        let disciplines = self.disciplines.get_or_insert_with(Box::default);
        disciplines[class as usize] = Some(discipline);
    }

    /// Lets classes share the port by weights. None of these has physical queues or a discipline.
    pub fn set_weights(&mut self, weighted: WeightedClasses) {
        self.is_special = true;
        self.weighted = Some(Box::new(weighted));
    }

    /// Returns the classes with weights, if there are any.
    #[inline]
    pub fn weighted(&mut self) -> Option<&mut WeightedClasses> {
        self.weighted.as_deref_mut()
    }

    /// Returns `true` if a class has physical queues, a discipline or a weight.
    #[inline]
    pub fn is_special(&self) -> bool {
        self.is_special
    }

    /// Returns the bytes of `class` that the port has sent and those that wait, if telemetry tells of the class alone.
    /// A packet that is about to be sent counts as sent.
    pub fn telemetry_of(&self, class: u8) -> Option<(u64, u64)> {
        let sent = self.weighted.as_ref()?.telemetry_of(class)?;
        Some((sent, u64::from(self.class_bytes(class))))
    }

    /// Lets `class` take its turns among those with weights if it has packets that may be sent.
    #[cold]
    pub(super) fn note_waiting(&mut self, class: usize) {
        if let Some(weighted) = &mut self.weighted
            && self.backlog & !self.pfc & 1 << class != 0
        {
            weighted.join(class as u8, self.tx_bytes);
        }
    }

    /// Returns `true` if any class is under a discipline.
    #[inline]
    pub fn has_disciplines(&self) -> bool {
        self.disciplines.is_some()
    }

    fn discipline(&mut self, class: usize) -> Option<&mut Discipline> {
        self.disciplines.as_mut()?[class].as_mut()
    }

    /// Lets the discipline of the packet's class, if any, admit the packet; it may mark it. `Err` holds the cause of a
    /// drop.
    pub fn admit(
        &mut self,
        pool: &mut PacketPool,
        packet: PacketIdx,
        now_ps: u64,
        verdicts: &mut Verdicts,
    ) -> Result<(), DropCause> {
        let class = pool.get(packet).class as usize;
        self.discipline(class).map_or(Ok(()), |discipline| discipline.admit(pool, packet, now_ps, verdicts))
    }

    /// Puts an admitted packet into the queue of its class, under the class's discipline if it has one. Lower
    /// `priority` is sent first.
    pub fn enqueue_managed(
        &mut self,
        pool: &mut PacketPool,
        packet: PacketIdx,
        priority: f64,
        now_ps: u64,
        verdicts: &mut Verdicts,
    ) {
        let class = pool.get(packet).class as usize;
        let Some(discipline) = self.discipline(class) else {
            self.enqueue(pool, packet);
            return;
        };
        let before = verdicts.dropped.len();
        discipline.push(pool, packet, priority, now_ps, verdicts);
        self.count_in(pool, packet);
        for &(victim, _) in &verdicts.dropped[before..] {
            if victim != packet {
                self.left_unsent(pool.get(victim).wire);
            }
            self.count_out(pool, class, victim);
        }
        self.refresh_backlog(class);
    }

    /// Takes the next packet as [`Port::dequeue`] does, but by the discipline of its class.
    pub fn dequeue_managed(&mut self, pool: &mut PacketPool, now_ps: u64, verdicts: &mut Verdicts) -> PacketIdx {
        let class = (self.backlog & !self.paused).trailing_zeros() as usize;
        let discipline = self.disciplines.as_mut().and_then(|d| d[class].as_mut()).filter(|d| !d.is_empty());
        let Some(discipline) = discipline.filter(|_| self.queues[class].list.is_empty()) else {
            return self.dequeue_among_flows(pool, class);
        };
        let before = verdicts.dropped.len();
        let packet = discipline.pop(pool, now_ps, verdicts);
        for &(victim, _) in &verdicts.dropped[before..] {
            self.left_unsent(pool.get(victim).wire);
            self.count_out(pool, class, victim);
        }
        self.refresh_backlog(class);
        self.count_out(pool, class, packet)
    }

    /// Updates the bit that says that `class` has a packet that may be sent.
    pub(super) fn refresh_backlog(&mut self, class: usize) {
        let may_send = self.flow_queues.as_ref().is_some_and(|queues| queues[class].can_send())
            || self.discipline(class).is_some_and(|discipline| !discipline.is_empty());
        if may_send || !self.queues[class].list.is_empty() {
            self.backlog |= 1 << class;
        } else {
            self.backlog &= !(1 << class);
        }
    }

    /// Takes the next packet of a port with more than plain queues, but without disciplines.
    #[cold]
    pub(super) fn dequeue_special(&mut self, pool: &PacketPool) -> PacketIdx {
        let may_send = self.backlog & !self.paused;
        let Some(weighted) = &mut self.weighted else {
            return self.dequeue_among_flows(pool, may_send.trailing_zeros() as usize);
        };
        let queues = &self.queues;
        let first = |class: u8| u32::from(pool.get(queues[usize::from(class)].list.head()).wire);
        let class = weighted.choose(may_send, self.tx_bytes, first);
        let packet = self.dequeue_among_flows(pool, usize::from(class));
        let (wire, is_empty) = (u32::from(pool.get(packet).wire), self.backlog >> class & 1 == 0);
        if let Some(weighted) = &mut self.weighted {
            weighted.take(class, wire);
            if is_empty {
                weighted.run_out(class, self.tx_bytes + u64::from(wire));
            }
        }
        packet
    }

    /// Takes the next packet of a class, from its own queue before the physical ones.
    #[cold]
    pub(super) fn dequeue_among_flows(&mut self, pool: &PacketPool, class: usize) -> PacketIdx {
        let packet = match &mut self.flow_queues {
            Some(queues) if self.queues[class].list.is_empty() => queues[class].pop(pool),
            _ => self.queues[class].list.pop(pool),
        };
        self.refresh_backlog(class);
        self.count_out(pool, class, packet)
    }
}
