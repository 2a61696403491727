//! What rides on TCP's segments: the bytes of a flow, pieces of a connection's data, messages.

use crate::config::{TcpConfig, Transport};
use crate::core::{Hosts, Run, World};
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::packet::Packet;
use crate::transport::controlled::Controlled;
use crate::transport::interface::Load;
use crate::transport::sender::{Segment, Sender};
use crate::transport::tcp::TcpSender;

/// What rides on TCP's segments, and what that changes of TCP.
pub(crate) trait Cargo {
    /// Whether it is data of the user: its acknowledgments are progress of the run, its round-trip times are told.
    const IS_DATA: bool = true;

    /// How TCP behaves.
    fn config(run: &Run) -> &TcpConfig {
        config_of_hosts(run)
    }

    /// Makes the senders of a flow.
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        open_alone(hosts, w, flow);
    }

    /// A flow begins to have something to send, as it starts or as an application writes again.
    fn written(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// As [`Transport::whose_turn`](crate::transport::interface::Transport::whose_turn).
    #[inline]
    fn whose_turn(_hosts: &Hosts, _w: &World, _host: HostId, at: usize) -> usize {
        at
    }

    /// What a segment carries.
    #[inline]
    fn load(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, segment: Segment) -> Load {
        Load::own(segment)
    }

    /// A segment has been sent.
    #[inline]
    fn sent(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, _wire: u16) {}

    /// Whether all data has been sent once; the sender itself has more, or not.
    #[inline]
    fn has_sent_all(_hosts: &Hosts, _w: &World, _slot: SenderIdx, has_data: bool) -> bool {
        !has_data
    }

    /// A flow has sent all it has.
    #[inline]
    fn on_all_sent(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Whether nobody listens at a host.
    #[inline]
    fn is_deaf(_hosts: &Hosts, _host: HostId) -> bool {
        false
    }

    /// How many sequence numbers a segment takes.
    #[inline]
    fn numbers(_run: &Run, segment: &Packet) -> u64 {
        u64::from(segment.payload)
    }

    /// What a segment carries has arrived.
    #[inline]
    fn deliver(hosts: &mut Hosts, w: &World, segment: &Packet) {
        let bytes = w.run.flow(segment.flow).bytes;
        hosts.receiving[segment.flow].note_arrival(bytes, w.clock.now_ps);
    }

    /// The receiver has answered.
    #[inline]
    fn read(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Adds to an acknowledgment that is about to be sent.
    #[inline]
    fn write_ack(_hosts: &mut Hosts, _run: &Run, _ack: &mut Packet) {}

    /// An acknowledgment has arrived, by which something was delivered, or not.
    #[inline]
    fn acked(_hosts: &mut Hosts, _w: &World, _ack: &Packet, _delivered: bool) {}

    /// Whether all data of a sender's flow has been acknowledged.
    #[inline]
    fn is_done(_hosts: &Hosts, _w: &World, sender: &Sender) -> bool {
        sender.is_done()
    }

    /// The handshake of a flow is over.
    fn connected(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// The retransmission timer of a flow has expired.
    fn timed_out(_hosts: &mut Hosts, _w: &World, _flow: FlowId) {}

    /// As [`Transport::earliest_ps`](crate::transport::interface::Transport::earliest_ps).
    #[inline]
    fn earliest_ps(_hosts: &Hosts, _w: &World, _slot: SenderIdx) -> u64 {
        0
    }

    /// A decision about a sender is in force.
    #[inline]
    fn decided(_hosts: &mut Hosts, _w: &World, _slot: SenderIdx) {}

    /// A flow stops. Whether all that it has sent has been acknowledged.
    fn stop(hosts: &mut Hosts, flow: FlowId) -> bool {
        hosts.sender_of(flow).is_none_or(|(_, sender)| sender.stop())
    }

    /// A flow was stopped, and all of it has been acknowledged, or not.
    fn stopped(hosts: &mut Hosts, _w: &mut World, flow: FlowId, is_done: bool) {
        if !is_done {
            hosts.refresh(hosts.sending[flow].sender);
        }
    }

    /// The senders of a flow are gone.
    fn close(_hosts: &mut Hosts, _flow: FlowId) {}
}

/// The bytes of a flow with a single path.
pub(crate) struct OwnData;

impl Cargo for OwnData {}

/// How the hosts' TCP behaves.
pub(crate) fn config_of_hosts(run: &Run) -> &TcpConfig {
    match &run.config.transport.kind {
        Transport::Tcp(config) => config,
        Transport::Rdma => unreachable!("segments are for hosts that speak TCP"),
    }
}

/// Makes the sender of a flow with a single path.
pub(crate) fn open_alone(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
    let context = w.run.flow_context(flow, w.clock.now());
    let control = w.run.algorithm_of(flow).build(&context);
    let mut sender = Sender::of_application(&w.run.config.flows[flow.index()], flow, Controlled::Own(control));
    let mut tcp = TcpSender::new(config_of_hosts(&w.run), w.run.constants.mtu, context.path_base_rtt);
    if let Some(rto) = w.run.constants.fixed_rto {
        tcp.rely_on_timeouts(rto);
    }
    sender.tcp = Some(Box::new(tcp));
    hosts.add_sender(w, sender);
}
