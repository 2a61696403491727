/// The kind of an event. The order breaks ties at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// Sample of a probe in a run of fluids; before any other event of that time, so that it sees the state up to then.
    Probe,
    /// Start of a flow.
    FlowStart,
    /// Stop of an endless flow.
    FlowStop,
    /// Arrival of the packet at the head of a port's wire at the other end.
    Arrive,
    /// End of the serialisation of a packet at a switch port where another packet waits.
    TxDone,
    /// Wake-up of a host's NIC, which looks for a packet to send.
    HostWake,
    /// Processing of a notification that has arrived at a host's NIC.
    Reaction,
    /// Timer of an egress port's agent.
    PortTimer,
    /// Timer of a flow's controller.
    FlowTimer,
    /// Retransmission timer of a flow.
    Rto,
    /// End of the delay of a TCP receiver's acknowledgments.
    AckTimer,
    /// End of the time for which rates must stay converged; they may have changed since.
    Settled,
    /// Arrival at the other end of a packet that a faulty link has delayed.
    ArriveLate,
    /// Failure or recovery of links.
    Flap,
    /// Iteration of the allocator, or another event of its conversation with endpoints.
    Allocate,
    /// Next burst written by a flow's application.
    Burst,
}

const ENTITY_BITS: u32 = 28;

/// A future event: its time, kind and entity.
///
/// Events of the same time are ordered by rank, then (kind, entity). Ranks are zero unless a run breaks ties by the
/// order of insertion. Two events that are equal in all of these have the same effect, so their order does not matter,
/// and results do not depend on the order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Time in picoseconds.
    pub time_ps: u64,
    /// Position among the events of the same time.
    pub rank: u32,
    key: u32,
}

impl Event {
    /// Returns an event of `kind` at entity number `entity` (below 2^28), with rank zero.
    #[inline]
    pub fn new(time_ps: u64, kind: EventKind, entity: u32) -> Self {
        debug_assert!(entity < 1 << ENTITY_BITS, "entity {entity} does not fit an event");
        Self { time_ps, rank: 0, key: (kind as u32) << ENTITY_BITS | entity }
    }
    /// Returns an event before all others at `time_ps`.
    pub(crate) fn earliest(time_ps: u64) -> Self {
        Self { time_ps, rank: 0, key: 0 }
    }
    /// Returns the event with the given [`Event::key`], with rank zero.
    #[inline]
    pub(super) fn from_key(time_ps: u64, key: u32) -> Self {
        Self { time_ps, rank: 0, key }
    }
    /// Returns the same event with a rank.
    #[must_use]
    #[inline]
    pub fn ranked(self, rank: u32) -> Self {
        Self { rank, ..self }
    }
    /// Returns the kind of the event.
    #[inline]
    pub fn kind(self) -> EventKind {
        // The numbers are the discriminants, so this compiles to nothing.
        match self.key >> ENTITY_BITS {
            0 => EventKind::Probe,
            1 => EventKind::FlowStart,
            2 => EventKind::FlowStop,
            3 => EventKind::Arrive,
            4 => EventKind::TxDone,
            5 => EventKind::HostWake,
            6 => EventKind::Reaction,
            7 => EventKind::PortTimer,
            8 => EventKind::FlowTimer,
            9 => EventKind::Rto,
            10 => EventKind::AckTimer,
            11 => EventKind::Settled,
            12 => EventKind::ArriveLate,
            13 => EventKind::Flap,
            14 => EventKind::Allocate,
            _ => EventKind::Burst,
        }
    }
    /// Returns the number of the event's entity.
    #[inline]
    pub fn entity(self) -> u32 {
        self.key & ((1 << ENTITY_BITS) - 1)
    }
    /// Returns `true` if the entity is a port.
    #[inline]
    pub fn is_of_port(self) -> bool {
        matches!(self.kind(), EventKind::Arrive | EventKind::TxDone | EventKind::PortTimer | EventKind::ArriveLate)
    }
    /// Returns the same event of another entity.
    #[must_use]
    #[inline]
    pub fn of(self, entity: u32) -> Self {
        Self { key: self.key & !((1 << ENTITY_BITS) - 1) | entity, ..self }
    }
    /// Returns the order of events as one number, which compares without branches.
    #[inline]
    pub fn order(self) -> u128 {
        u128::from(self.time_ps) << 64 | u128::from(self.rank) << 32 | u128::from(self.key)
    }
    /// Returns kind and entity in one word.
    #[inline]
    pub fn key(self) -> u32 {
        self.key
    }
    /// An event after all others.
    pub const LAST: Self = Self { time_ps: u64::MAX, rank: u32::MAX, key: u32::MAX };

    /// Returns the event's contribution to the fingerprint of a run: a number in which every bit of the event changes
    /// every bit. Events have a total order, so that the sum identifies their sequence as well as a hash does, and the
    /// sums of parts can be added.
    #[inline]
    #[must_use]
    pub fn print(self) -> u64 {
        let word =
            self.time_ps ^ (u64::from(self.key) << 32 | u64::from(self.rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}
