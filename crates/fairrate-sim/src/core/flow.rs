//! The properties of a flow that are fixed for the whole run.

use super::paths::Paths;
use crate::ids::{FlowId, HopId, HostId, PortId};
use crate::transport::Kind;

/// A flow of the user, a subflow of one, or a flow that carries messages: its ends, its paths and its transport. All
/// parts share the flows.
#[derive(Clone)]
pub(crate) struct Flow {
    /// The user's flow that this flow is part of: itself, or the connection of a subflow.
    pub(crate) parent: FlowId,
    pub(crate) src_host: HostId,
    pub(crate) dst_host: HostId,
    /// Position of the data path's second port in the table of paths (the first port is the NIC's own).
    pub(crate) data_route: HopId,
    /// Position of the second port of the acknowledgments' path.
    pub(crate) ack_route: HopId,
    /// Position of the first port of the notices' path: the data path in reverse. Set only if ports have agents.
    pub(crate) notice_route: HopId,
    /// Payload bytes; `u64::MAX` if the flow is endless.
    pub(crate) bytes: u64,
    /// Index of the subflow in its connection, and the class of the flow's data, in a byte: there are many flows.
    lane: u8,
    /// The transport and algorithm of the flow, as [`FlowSpec::stack`](crate::config::FlowSpec::stack) numbers them.
    pub(crate) stack: u8,
    /// Links between sender and receiver.
    pub(crate) n_hops: u8,
    /// The transport of the flow.
    pub(crate) transport: Kind,
    /// The flow that starts after this one ends (`successor`, or [`FlowId::NONE`]), and the time between
    /// (`successor_delay_ps`).
    pub(crate) successor: FlowId,
    pub(crate) successor_delay_ps: u64,
}

impl Flow {
    /// Bits of a class in `lane`.
    const CLASS_BITS: u32 = 3;

    /// Returns a flow without paths: with its `ends`, which are sender and receiver, in the priority class `class`.
    pub(crate) fn new(
        parent: FlowId,
        ends: (HostId, HostId),
        bytes: u64,
        class: u8,
        stack: u8,
        transport: Kind,
    ) -> Self {
        let none = HopId(0);
        Self {
            parent,
            src_host: ends.0,
            dst_host: ends.1,
            data_route: none,
            ack_route: none,
            notice_route: none,
            bytes,
            lane: class,
            stack,
            n_hops: 0,
            transport,
            successor: FlowId::NONE,
            successor_delay_ps: 0,
        }
    }

    /// Returns the flow as the subflow with this index of its connection.
    pub(crate) fn with_subflow(self, subflow: u8) -> Self {
        Self { lane: subflow << Self::CLASS_BITS | self.class(), ..self }
    }

    /// Returns the index of the subflow in its connection.
    #[inline]
    pub(crate) fn subflow(&self) -> u8 {
        self.lane >> Self::CLASS_BITS
    }

    /// Returns the priority class of the flow's data.
    #[inline]
    pub(crate) fn class(&self) -> u8 {
        self.lane & ((1 << Self::CLASS_BITS) - 1)
    }

    /// Sets the priority class of the flow's data.
    pub(crate) fn set_class(&mut self, class: u8) {
        self.lane = self.lane & !((1 << Self::CLASS_BITS) - 1) | class;
    }

    /// Returns `true` if the flow is endless.
    #[inline]
    pub(crate) fn is_endless(&self) -> bool {
        self.bytes == u64::MAX
    }

    /// Returns the egress ports from the sender to the receiver.
    pub(crate) fn data_path<'a>(&self, paths: &'a Paths<PortId>) -> impl ExactSizeIterator<Item = PortId> + use<'a> {
        paths.path(self.data_route, self.n_hops)
    }

    /// Returns the egress ports from the receiver to the sender.
    pub(crate) fn ack_path<'a>(&self, paths: &'a Paths<PortId>) -> impl ExactSizeIterator<Item = PortId> + use<'a> {
        paths.path(self.ack_route, self.n_hops)
    }
}
