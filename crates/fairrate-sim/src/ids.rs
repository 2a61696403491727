//! Numbers that identify things, with a type for each kind.
//!
//! An `...Id` is a number in the whole network, the same in every part of a run. An `...Idx` is a position in a table
//! of one part, and has no meaning in another part. `Links` in `core/share.rs` converts between [`PortId`] and
//! [`PortIdx`].

/// The index type of a [`Table`](crate::table::Table).
pub trait Number: Copy {
    /// Returns the position in a table of such things.
    fn index(self) -> usize;
    /// Returns the number at a position.
    fn from_index(at: usize) -> Self;
}

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position in a table of such things.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Number for $name {
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
            #[inline]
            fn from_index(at: usize) -> Self {
                Self(at as u32)
            }
        }

        /// Events identify their entities by plain numbers.
        impl From<$name> for u32 {
            #[inline]
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )+};
}

/// Number types with a value for "none".
macro_rules! with_none {
    ($($name:ident)+) => {$(
        #[allow(dead_code)] // Not every kind needs all of it.
        impl $name {
            /// The value for "none".
            pub(crate) const NONE: Self = Self(u32::MAX);

            /// Returns `true` for the value "none".
            #[inline]
            pub(crate) const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// Returns the number, or `None` for the value "none".
            #[inline]
            pub(crate) fn some(self) -> Option<Self> {
                (!self.is_none()).then_some(self)
            }
        }
    )+};
}

numbers! {
    /// A host or a switch.
    NodeId
    /// An egress port: one direction of a link. Link `i` has ports `2i` (from `a` to `b`) and `2i + 1`.
    PortId
    /// A flow, in the order of the flow list; flows that carry messages, and subflows, follow those of the list.
    FlowId
    /// A task: a position in the list of tasks.
    TaskId
    /// A host: its number among hosts, in the order of the nodes.
    HostId
    /// A line of the allocator's conversation: its number among lines, whose flows follow those of the flow list.
    LineId
    /// A hop of a flow's path: its number among the hops of all paths, which are stored path after path.
    HopId
    /// An egress port: its position among those of a part. The ports of a link are adjacent, as their numbers are.
    PortIdx
    /// A switch: its number among those of a part, in the order of the nodes.
    SwitchIdx
    /// A worker that proceeds by spans: the switches of a part and, after them, the hosts of the network if they
    /// do so too.
    WorkerIdx
    /// A link to a switch that proceeds by spans: its position among those of a part.
    DoorIdx
    /// The sender of an active flow: its slot among those of a part.
    SenderIdx
    /// A packet: its position in the [`PacketPool`](crate::packet::PacketPool).
    PacketIdx
}

with_none! { FlowId HostId LineId HopId PortIdx SwitchIdx SenderIdx PacketIdx }

impl PortId {
    /// Returns the port of the same link in the other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl HopId {
    /// Returns the hop `n` positions further on.
    #[inline]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n)
    }
}

impl DoorIdx {
    /// Returns the door `n` positions further on.
    #[inline]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n)
    }
}

impl PortIdx {
    /// Returns the port of the same link in the other direction.
    #[inline]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}
