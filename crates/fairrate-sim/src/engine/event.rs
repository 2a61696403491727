/// What an event is about. The order breaks ties at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A probe of a run of fluids samples; before anything else of that time, so that it sees the state up to then.
    Probe,
    /// A flow starts.
    FlowStart,
    /// An endless flow stops sending.
    FlowStop,
    /// The packet at the head of a port's wire reaches the other end.
    Arrive,
    /// A switch port is done serialising and something waits.
    TxDone,
    /// A host's NIC looks for something to send.
    HostWake,
    /// A host's NIC acts on a notification that has arrived.
    Reaction,
    /// The agent of an egress port asked to be called.
    PortTimer,
    /// A flow's controller asked to be called.
    FlowTimer,
    /// A flow's retransmission timer.
    Rto,
    /// Acknowledgments of a TCP receiver have waited for long enough.
    AckTimer,
    /// Rates may have been converged for long enough.
    Settled,
    /// A packet that a faulty link has held up reaches the other end.
    ArriveLate,
    /// Links go down or come up.
    Flap,
    /// The allocator iterates, or something of the conversation with it is due.
    Allocate,
    /// The application of a flow writes its next burst.
    Burst,
}

const ENTITY_BITS: u32 = 28;

/// Something that will happen: a time, and which entity it happens to.
///
/// Events of the same time are ordered by rank, then (kind, entity). Ranks are zero unless a run asks for ns-3's
/// order of ties. Two events that are equal in everything do the same, so their order is of no consequence, and
/// results do not depend on the order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Time in picoseconds.
    pub time_ps: u64,
    /// Place among the events of the same time.
    pub rank: u32,
    key: u32,
}

impl Event {
    /// An event of `kind` that happens to entity number `entity` (below 2^28), with rank zero.
    #[inline]
    pub fn new(time_ps: u64, kind: EventKind, entity: u32) -> Self {
        debug_assert!(entity < 1 << ENTITY_BITS, "entity {entity} does not fit an event");
        Self { time_ps, rank: 0, key: (kind as u32) << ENTITY_BITS | entity }
    }
    /// Before all others of its time.
    pub(crate) fn earliest(time_ps: u64) -> Self {
        Self { time_ps, rank: 0, key: 0 }
    }
    /// An event without a rank, by its [`Event::key`].
    #[inline]
    pub(super) fn from_key(time_ps: u64, key: u32) -> Self {
        Self { time_ps, rank: 0, key }
    }
    /// The same event with a rank.
    #[must_use]
    #[inline]
    pub fn ranked(self, rank: u32) -> Self {
        Self { rank, ..self }
    }
    /// What it is about.
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
    /// Whom it happens to.
    #[inline]
    pub fn entity(self) -> u32 {
        self.key & ((1 << ENTITY_BITS) - 1)
    }
    /// Whether that is a port.
    #[inline]
    pub fn is_of_port(self) -> bool {
        matches!(self.kind(), EventKind::Arrive | EventKind::TxDone | EventKind::PortTimer | EventKind::ArriveLate)
    }
    /// The same event of another entity.
    #[must_use]
    #[inline]
    pub fn of(self, entity: u32) -> Self {
        Self { key: self.key & !((1 << ENTITY_BITS) - 1) | entity, ..self }
    }
    /// The order of events as one number, which compares without branches.
    #[inline]
    pub fn order(self) -> u128 {
        u128::from(self.time_ps) << 64 | u128::from(self.rank) << 32 | u128::from(self.key)
    }
    /// Kind and entity in one word.
    #[inline]
    pub fn key(self) -> u32 {
        self.key
    }
    /// Behind all others.
    pub const LAST: Self = Self { time_ps: u64::MAX, rank: u32::MAX, key: u32::MAX };

    /// What the event adds to the fingerprint of a run: a number that changes in every bit with each of its own. Events
    /// have a total order, so that a sum says as much as a hash of the sequence, and parts can be added up.
    #[inline]
    #[must_use]
    pub fn print(self) -> u64 {
        let word =
            self.time_ps ^ (u64::from(self.key) << 32 | u64::from(self.rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}
