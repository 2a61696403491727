//! Dense indices: every entity is a position in a vector.

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the vector of such entities.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A host or a switch.
    NodeId
}
id! {
    /// An egress port: one direction of a link. Link `i` has ports `2i` (from `a` to `b`) and `2i + 1`.
    PortId
}
id! {
    /// A flow, in the order of the flow list.
    FlowId
}

impl PortId {
    /// The port of the same link in the other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}
