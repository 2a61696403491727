//! The transports that there are, one line each.

/// Hands the list to a macro, behind something for the macro itself: what each transport is called, and the type that says
/// what it does.
macro_rules! for_each_transport {
    ($then:ident $extra:tt) => {
        $then! {
            $extra
            /// Windows and rates over a network that hardly loses anything.
            Rdma => rdma::Rdma,
            /// TCP over one path.
            Tcp => tcp::Tcp<tcp::OwnData>,
            /// TCP over several paths: a connection, and its subflows.
            Mptcp => tcp::Tcp<mptcp::Pieces>,
            /// TCP over one path, at rates that a central allocator tells.
            Ruled => tcp::Tcp<allocator::RuledData>,
            /// TCP that carries the messages of the allocator and of those it rules.
            Line => tcp::Tcp<allocator::Messages>,
            /// Receivers grant what senders may send.
            Homa => homa::Homa,
        }
    };
}
pub(crate) use for_each_transport;

macro_rules! kinds {
    ([] $($(#[$doc:meta])* $name:ident => $type:ty,)+) => {
        /// The transport that a flow goes by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name,)+
        }
    };
}
for_each_transport!(kinds []);
