//! The causes of packet drops, each declared once.

/// Declares [`DropCause`]: each cause with the name of its counter, and in words.
macro_rules! drop_causes {
    ($($(#[doc = $doc:literal])+ $cause:ident: $name:literal, $words:literal,)+) => {
        /// The cause of a packet drop.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropCause {
            $($(#[doc = $doc])+ $cause,)+
        }

        impl DropCause {
            /// All causes, each at the place of its discriminant.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$cause),+];

            /// Returns the name of the cause's counter, as in `drops_early`, without the prefix.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$cause => $name,)+
                }
            }

            /// Returns the cause in words.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$cause => $words,)+
                }
            }
        }
    };
}

drop_causes! {
    /// The egress queue was over its Dynamic Threshold.
    EgressThreshold: "egress_threshold", "Dynamic Threshold of the egress queue",
    /// The (ingress port, class) was over its Dynamic Threshold in a lossy fabric.
    IngressThreshold: "ingress_threshold", "Dynamic Threshold of the ingress",
    /// The shared buffer was full.
    BufferFull: "buffer_full", "buffer full",
    /// Lossless headroom was used up.
    Headroom: "headroom", "headroom used up",
    /// The egress port's own limit was reached.
    QueueLimit: "queue_limit", "limit of the queue",
    /// Random early detection.
    Early: "early", "random early detection",
    /// CoDel: the packet had waited for too long.
    Sojourn: "sojourn", "waited too long for CoDel",
    /// pFabric: the packet had the lowest priority in a full buffer.
    Priority: "priority", "lowest priority in a full buffer",
    /// A faulty link lost or damaged the packet.
    Fault: "faults", "faulty link",
    /// Every port toward the receiver is known to be down.
    Unreachable: "unreachable", "no way to the receiver",
    /// The receive buffer of the host was full.
    Host: "host", "receive buffer of the host full",
}
