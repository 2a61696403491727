//! The list of all transports, one line each.

/// Passes the list to the macro `$then`, after the arguments `$extra`: the name of each transport, and the type that
/// implements it.
macro_rules! for_each_transport {
    ($then:ident $extra:tt) => {
        $then! {
            $extra
            /// Windows and rates over a network that rarely loses a packet.
            Rdma => rdma::Rdma,
            /// TCP over one path.
            Tcp => tcp::Tcp<tcp::OwnData>,
            /// TCP over several paths: a connection, and its subflows.
            Mptcp => tcp::Tcp<mptcp::Pieces>,
            /// TCP over one path, at rates that a central allocator assigns.
            Ruled => tcp::Tcp<allocator::RuledData>,
            /// TCP that carries the messages between the allocator and the hosts whose rates it assigns.
            Line => tcp::Tcp<allocator::Messages>,
            /// HOMA, in which receivers grant what senders may send.
            Homa => homa::Homa,
            /// Ultra Ethernet's, which takes packets in any order.
            Uet => uet::Uet,
        }
    };
}
pub(crate) use for_each_transport;

macro_rules! kinds {
    ([] $($(#[$doc:meta])* $name:ident => $type:ty,)+) => {
        /// The transport of a flow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name,)+
        }
    };
}
for_each_transport!(kinds []);
