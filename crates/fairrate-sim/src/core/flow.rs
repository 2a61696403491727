//! What is fixed of a flow for the whole run.

use super::paths::Paths;
use crate::ids::{FlowId, HopId, HostId, PortId};
use crate::transport::Kind;

/// A flow of the user, or a subflow of one, or one that carries messages: where it goes and how. All parts share these.
#[derive(Clone)]
pub(crate) struct Flow {
    /// The user's flow that it is part of: itself, or the connection of a subflow.
    pub(crate) parent: FlowId,
    pub(crate) src_host: HostId,
    pub(crate) dst_host: HostId,
    /// Where the data path's second port stands in the table of paths (the first is the NIC's own).
    pub(crate) data_route: HopId,
    /// The same for acknowledgments.
    pub(crate) ack_route: HopId,
    /// Where the way back of notices begins: the data path in reverse. Only if ports have agents.
    pub(crate) notice_route: HopId,
    /// Payload bytes; `u64::MAX` if it is endless.
    pub(crate) bytes: u64,
    /// Which of the connection's subflows it is.
    pub(crate) subflow: u8,
    pub(crate) class: u8,
    /// Links between sender and receiver.
    pub(crate) n_hops: u8,
    /// The transport it goes by.
    pub(crate) transport: Kind,
    /// The flow that starts some time after this one, or [`FlowId::NONE`], and that time.
    pub(crate) successor: FlowId,
    pub(crate) successor_delay_ps: u64,
}

impl Flow {
    /// Whether it never ends by itself.
    #[inline]
    pub(crate) fn is_endless(&self) -> bool {
        self.bytes == u64::MAX
    }

    /// The egress ports from the sender to the receiver.
    pub(crate) fn data_path<'a>(&self, paths: &'a Paths<PortId>) -> impl ExactSizeIterator<Item = PortId> + use<'a> {
        paths.path(self.data_route, self.n_hops)
    }

    /// The egress ports from the receiver to the sender.
    pub(crate) fn ack_path<'a>(&self, paths: &'a Paths<PortId>) -> impl ExactSizeIterator<Item = PortId> + use<'a> {
        paths.path(self.ack_route, self.n_hops)
    }
}
