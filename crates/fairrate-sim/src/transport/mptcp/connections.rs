//! The connections of a part's hosts. A subflow is a flow of its own, with a sender, a receiver and a path; its number
//! follows those of the user's flows. The user's flow is the connection, which holds the data.

use std::ops::Range;

use super::connection::Connection;
use super::reassembly::Reassembly;
use crate::config::{FlowSpec, SimConfig, Transport};
use crate::ids::FlowId;
use crate::output::Reordering;
use crate::table::Table;
use crate::transport::controlled::{Controlled, ControllerRef};
use crate::transport::sender::{Segment, Sender};

/// Connections of several subflows, by the number of the user's flow; all tables are empty if every flow has a single
/// path. A flow of one subflow is plain TCP, and has no connection.
#[derive(Default)]
pub(crate) struct Connections {
    /// The active connections.
    active: Table<FlowId, Option<Box<Connection>>>,
    reassembly: Table<FlowId, Reassembly>,
    /// The first subflow of each connection, with one more entry at the end: the subflows of a connection end where
    /// those of the next begin.
    first: Vec<FlowId>,
}

impl Connections {
    /// Returns the connections for the flows of a run, none of them active.
    pub(crate) fn new(config: &SimConfig) -> Self {
        let n_subflows = |flow: &FlowSpec| {
            let Transport::Tcp(tcp) = config.stack(flow.stack).0.kind else { return 0 };
            match flow.subflows.unwrap_or(tcp.multipath.subflows) {
                0 | 1 => 0,
                n => u32::from(n),
            }
        };
        let n_flows = config.flows.len();
        if config.flows.iter().all(|flow| n_subflows(flow) == 0) {
            return Self::default();
        }
        let mut end = n_flows as u32;
        let ends = config.flows.iter().map(|flow| {
            end += n_subflows(flow);
            end
        });
        Self {
            active: (0..n_flows).map(|_| None).collect(),
            reassembly: vec![Reassembly::default(); n_flows].into(),
            first: std::iter::once(n_flows as u32).chain(ends).map(FlowId).collect(),
        }
    }

    /// Returns the subflows of a user's flow; none if it has a single path.
    #[inline]
    pub(crate) fn subflow_ids(&self, user_flow: FlowId) -> impl ExactSizeIterator<Item = FlowId> + Clone + use<> {
        self.subflows(user_flow).map(FlowId)
    }

    /// Returns the first subflow of a user's flow, if it has any.
    pub(crate) fn first_subflow(&self, user_flow: FlowId) -> Option<FlowId> {
        self.subflow_ids(user_flow).next()
    }

    /// Returns the flows that send for a user's flow: its subflows, or itself.
    pub(crate) fn sending_ids(&self, user_flow: FlowId) -> impl Iterator<Item = FlowId> + use<> {
        let subflows = self.subflows(user_flow);
        let senders = if subflows.is_empty() { user_flow.0..user_flow.0 + 1 } else { subflows };
        senders.map(FlowId)
    }

    #[inline]
    fn subflows(&self, user_flow: FlowId) -> Range<u32> {
        match self.first.get(user_flow.index()..user_flow.index() + 2) {
            Some(&[first, end]) => first.0..end.0,
            _ => 0..0,
        }
    }

    /// Returns the active connection of a user's flow, if any.
    #[inline]
    pub(crate) fn get(&self, user_flow: FlowId) -> Option<&Connection> {
        self.active.get(user_flow)?.as_deref()
    }

    /// Returns the active connection of a user's flow, if any, as mutable.
    #[inline]
    pub(crate) fn get_mut(&mut self, user_flow: FlowId) -> Option<&mut Connection> {
        self.active.get_mut(user_flow)?.as_deref_mut()
    }

    /// Takes a piece of data that has arrived; returns the byte of the connection expected next.
    pub(crate) fn reassemble(&mut self, user_flow: FlowId, mss: u64, seq: u64, len: u64, now_ps: u64) -> u64 {
        self.reassembly[user_flow].take(mss, seq, len, now_ps)
    }

    /// Returns the times for which data of a flow has waited for data before it.
    pub(crate) fn reordering(&self, user_flow: FlowId) -> Reordering {
        self.reassembly.get(user_flow).map_or_else(Reordering::default, |r| r.reordering)
    }

    /// Returns the sum of [`Connections::reordering`] over all flows.
    pub(crate) fn all_reordering(&self) -> Reordering {
        let mut all = Reordering::default();
        self.reassembly.iter().for_each(|r| all.merge(&r.reordering));
        all
    }

    /// Returns the controller of a sender.
    #[inline]
    pub(crate) fn controller<'a>(&'a mut self, sender: &'a mut Sender) -> ControllerRef<'a> {
        match &mut sender.controlled {
            Controlled::Own(own) => ControllerRef::Own(own),
            Controlled::Lasting(control) => ControllerRef::Lasting(control),
            Controlled::Coupled { connection, subflow } => {
                let connection = self.active[*connection].as_deref_mut();
                let control = connection.and_then(|c| c.controller.as_mut());
                ControllerRef::Coupled(control.expect("a coupled subflow has a connection"), *subflow as usize)
            }
        }
    }

    /// Stores the connection of a user's flow that becomes active.
    pub(super) fn open(&mut self, user_flow: FlowId, connection: Connection) {
        self.active[user_flow] = Some(Box::new(connection));
    }

    /// Removes the connection of a user's flow that is over.
    pub(super) fn close(&mut self, user_flow: FlowId) {
        self.active[user_flow] = None;
    }

    /// Returns the first byte and the length of the data that the next segment of a subflow carries.
    pub(crate) fn carry(
        &mut self,
        user_flow: FlowId,
        subflow: usize,
        sender: &mut Sender,
        segment: Segment,
    ) -> (u64, u64) {
        let connection = self.get_mut(user_flow).expect("an active subflow has a connection");
        let piece = connection.piece_at(subflow, segment.seq).unwrap_or_else(|| {
            let piece = connection.take(subflow).expect("a subflow sends what it is offered");
            let is_more = connection.offers(subflow);
            sender.offer(is_more);
            if let Some(tcp) = sender.tcp.as_mut().filter(|_| !is_more) {
                tcp.note_last();
            }
            piece
        });
        (connection.data_at(piece), connection.piece_len(piece))
    }
}
