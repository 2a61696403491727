//! Numbers of things, each kind of a type of its own.
//!
//! An `...Id` is a number in the whole network, the same in every part of a run. An `...Idx` is a place in a table of one
//! part, and means nothing in another one. `Links` in `core/share.rs` converts between [`PortId`] and [`PortIdx`].

/// What a [`Table`](crate::table::Table) is indexed by.
pub trait Number: Copy {
    /// The position in a table of such things.
    fn index(self) -> usize;
    /// The number at a position.
    fn from_index(at: usize) -> Self;
}

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in a table of such things.
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

        /// Events name what they happen to by plain numbers.
        impl From<$name> for u32 {
            #[inline]
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )+};
}

/// Numbers with a value that says that there is none.
macro_rules! with_none {
    ($($name:ident)+) => {$(
        #[allow(dead_code)] // Not every kind needs all of it.
        impl $name {
            /// There is none.
            pub(crate) const NONE: Self = Self(u32::MAX);

            /// Whether there is none.
            #[inline]
            pub(crate) const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// The number, if there is one.
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
    /// A flow, in the order of the flow list; behind those of the list come flows that carry messages, and subflows.
    FlowId
    /// A host: its number among hosts, in the order of the nodes.
    HostId
    /// A line of the allocator's conversation: its number among lines, whose flows come behind those of the flow list.
    LineId
    /// A hop of a flow's path: its number among the hops of all paths, one path's behind another's.
    HopId
    /// An egress port: its place among those of a part. The ports of a link stand side by side, as their numbers do.
    PortIdx
    /// A switch: its number among those of a part, in the order of the nodes.
    SwitchIdx
    /// What works through windows: the switches of a part and, behind them, the hosts of the network if these do so too.
    WorkerIdx
    /// A link to a switch that works through windows: its place among those of a part.
    DoorIdx
    /// The sender of an active flow: its slot among those of a part.
    SenderIdx
    /// A packet: its place in the [`PacketPool`](crate::packet::PacketPool).
    PacketIdx
}

with_none! { FlowId HostId LineId HopId PortIdx SwitchIdx SenderIdx PacketIdx }

impl PortId {
    /// The port of the same link in the other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl HopId {
    /// The hop so many further on.
    #[inline]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n)
    }
}

impl DoorIdx {
    /// The door so many further on.
    #[inline]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n)
    }
}

impl PortIdx {
    /// The port of the same link in the other direction.
    #[inline]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}
