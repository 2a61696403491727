//! The payload of TCP's segments: the bytes of a flow, pieces of a connection's data, messages.

use crate::config::{TcpConfig, Transport};
use crate::core::{Hosts, Run, World};
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::packet::Packet;
use crate::transport::controlled::Controlled;
use crate::transport::interface::Load;
use crate::transport::sender::{Segment, Sender};
use crate::transport::tcp::TcpSender;

/// The payload of TCP's segments, and the changes to TCP that it needs.
pub(crate) trait Cargo {
    /// `true` for data of the user: its acknowledgments count as progress of the run, and its round-trip times are
    /// reported.
    const IS_DATA: bool = true;

    /// Returns the parameters of TCP.
    fn config(run: &Run, flow: FlowId) -> &TcpConfig {
        config_of(run, flow)
    }

    /// Makes the senders of `flow`.
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        open_alone(hosts, w, flow);
    }

    /// Handles new data to send on `flow`, when it starts or when an application writes again.
    fn written(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Does the same as [`Transport::whose_turn`](crate::transport::interface::Transport::whose_turn).
    #[inline]
    fn whose_turn(_hosts: &Hosts, _w: &World, _host: HostId, at: usize) -> usize {
        at
    }

    /// Returns the load of a sender's segment.
    #[inline]
    fn load(hosts: &mut Hosts, _: &mut World, slot: SenderIdx, segment: Segment) -> Load {
        Load::own(segment, hosts.sender(slot))
    }

    /// Handles a segment that has been sent.
    #[inline]
    fn sent(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, _wire: u16) {}

    /// Returns `true` if all data has been sent once; `has_data` is set while the sender itself has more.
    #[inline]
    fn has_sent_all(_hosts: &Hosts, _w: &World, _slot: SenderIdx, has_data: bool) -> bool {
        !has_data
    }

    /// Handles the moment at which `flow` has sent all its data.
    #[inline]
    fn on_all_sent(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Returns `true` if nothing receives the packets of `flow` at `host`.
    #[inline]
    fn is_lost(_hosts: &Hosts, _host: HostId, _flow: FlowId) -> bool {
        false
    }

    /// Returns the number of sequence numbers that a segment takes.
    #[inline]
    fn numbers(_run: &Run, segment: &Packet) -> u64 {
        u64::from(segment.payload)
    }

    /// Handles the arrival of a segment's payload.
    #[inline]
    fn deliver(hosts: &mut Hosts, w: &World, segment: &Packet) {
        let flow = w.run.flow(segment.flow);
        if hosts.receiving[segment.flow].note_arrival(flow.bytes, w.clock.now_ps) {
            hosts.deferred.note_arrived(segment.flow, flow.dst_host);
        }
    }

    /// Lets the receiver read its data after its answer has been sent.
    #[inline]
    fn read(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Adds fields to an acknowledgment that is about to be sent.
    #[inline]
    fn write_ack(_hosts: &mut Hosts, _run: &Run, _ack: &mut Packet) {}

    /// Handles an acknowledgment; `delivered` is set if it reports new deliveries.
    #[inline]
    fn acked(_hosts: &mut Hosts, _w: &World, _ack: &Packet, _delivered: bool) {}

    /// Returns `true` if all data of a sender's flow has been acknowledged.
    #[inline]
    fn is_done(_hosts: &Hosts, _w: &World, sender: &Sender) -> bool {
        sender.is_done()
    }

    /// Handles the completion of a flow's handshake.
    fn connected(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Handles the expiry of a flow's retransmission timer.
    fn timed_out(_hosts: &mut Hosts, _w: &World, _flow: FlowId) {}

    /// Does the same as [`Transport::earliest_ps`](crate::transport::interface::Transport::earliest_ps).
    #[inline]
    fn earliest_ps(_hosts: &Hosts, _w: &World, _slot: SenderIdx) -> u64 {
        0
    }

    /// Handles a decision about a sender, after it has been applied.
    #[inline]
    fn decided(_hosts: &mut Hosts, _w: &World, _slot: SenderIdx) {}

    /// Stops a flow; returns `true` if all data sent has been acknowledged.
    fn stop(hosts: &mut Hosts, flow: FlowId) -> bool {
        hosts.sender_of(flow).is_none_or(|(_, sender)| sender.stop())
    }

    /// Follows [`Cargo::stop`]; `is_done` is set if all data of the flow has been acknowledged.
    fn stopped(hosts: &mut Hosts, _w: &mut World, flow: FlowId, is_done: bool) {
        if !is_done {
            hosts.refresh(hosts.sending[flow].sender);
        }
    }

    /// Releases the state of a flow whose senders are gone.
    fn close(_hosts: &mut Hosts, _w: &World, _flow: FlowId) {}
}

/// The bytes of a flow with a single path.
pub(crate) struct OwnData;

impl Cargo for OwnData {}

/// Returns the parameters of a flow's TCP.
pub(crate) fn config_of(run: &Run, id: FlowId) -> &TcpConfig {
    match &run.config.stack(run.flow(id).stack).0.kind {
        Transport::Tcp(config) => config,
        Transport::Rdma | Transport::Uet { .. } => unreachable!("segments are for flows over TCP"),
    }
}

/// Makes the sender of a flow with a single path.
pub(crate) fn open_alone(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
    let context = w.run.flow_context(flow, w.clock.now());
    let control = w.run.algorithm_of(flow).build(&context);
    let mut sender = Sender::of_application(&w.run.config.flows[flow.index()], flow, Controlled::Own(control));
    let mut tcp = TcpSender::new(config_of(&w.run, flow), w.run.constants.mtu, context.path_base_rtt);
    if let Some(rto) = w.run.rules_of(flow).fixed_rto {
        tcp.rely_on_timeouts(rto);
    }
    sender.tcp = Some(Box::new(tcp));
    hosts.add_sender(w, sender);
}
