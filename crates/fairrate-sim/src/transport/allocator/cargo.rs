//! The payload of TCP under an allocator: data at the rates it assigns, and the messages that carry these rates.

use super::{LinePacket, conversation};
use crate::config::TcpConfig;
use crate::core::{Hosts, Run, World};
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::packet::Packet;
use crate::transport::controlled::Controlled;
use crate::transport::interface::Load;
use crate::transport::sender::{Segment, Sender};
use crate::transport::tcp::{Cargo, TcpSender};

/// The bytes of a flow whose rate an allocator assigns: the allocator is notified when the flow starts and stops having
/// data to send.
pub(crate) struct RuledData;

impl Cargo for RuledData {
    fn written(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        conversation::begin_flowlet(hosts, w, flow);
    }

    fn on_all_sent(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        conversation::note_idle(hosts, w, flow);
    }

    fn stopped(hosts: &mut Hosts, w: &mut World, flow: FlowId, is_done: bool) {
        conversation::end_flowlet(hosts, w, flow);
        if !is_done {
            hosts.refresh(hosts.sending[flow].sender);
        }
    }

    fn close(hosts: &mut Hosts, w: &World, flow: FlowId) {
        conversation::forget_rate(hosts, w, flow);
    }
}

/// The messages of a line.
pub(crate) struct Messages;

impl Cargo for Messages {
    const IS_DATA: bool = false;

    fn config(run: &Run, _: FlowId) -> &TcpConfig {
        &run.config.allocator.as_ref().expect("lines belong to an allocator").tcp
    }

    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let Some(allocator) = &w.run.config.allocator else { return };
        let context = w.run.flow_context(flow, w.clock.now());
        let mut sender = Sender::new(flow, 0, Controlled::Own(w.run.algorithm_of(flow).build(&context)));
        let (mtu, path_rtt) = (w.run.constants.mtu, context.path_base_rtt);
        sender.tcp = Some(Box::new(TcpSender::new(&allocator.tcp, mtu, path_rtt)));
        hosts.add_sender(w, sender);
    }

    fn load(hosts: &mut Hosts, _: &mut World, slot: SenderIdx, segment: Segment) -> Load {
        let sender = hosts.senders[slot].as_mut().expect("lines stay");
        let allocator = hosts.allocator.as_mut().expect("lines belong to an allocator");
        let (payload, min_wire) = (allocator.carry(sender.flow, sender, segment), allocator.min_wire());
        let load = Load::own(segment, sender);
        let wire = (payload + load.header) as u16;
        allocator.count(sender.flow, wire.max(min_wire), LinePacket::Segment(payload));
        Load { payload, min_wire, ..load }
    }

    fn is_lost(hosts: &Hosts, host: HostId, flow: FlowId) -> bool {
        hosts.allocator.as_ref().is_some_and(|allocator| allocator.is_lost(host, flow))
    }

    /// Returns a full segment's numbers, which each segment of a line takes.
    fn numbers(run: &Run, _: &Packet) -> u64 {
        run.constants.mtu
    }

    fn deliver(_: &mut Hosts, _: &World, _: &Packet) {}

    fn read(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        conversation::read_messages(hosts, w, flow);
    }

    fn write_ack(hosts: &mut Hosts, _: &Run, ack: &mut Packet) {
        let Some(allocator) = &mut hosts.allocator else { return };
        ack.wire = ack.wire.max(allocator.min_wire());
        allocator.count(ack.flow, ack.wire, LinePacket::Ack);
    }

    fn acked(hosts: &mut Hosts, _: &World, ack: &Packet, _: bool) {
        if let Some(allocator) = &mut hosts.allocator {
            allocator.on_ack(ack.flow, ack.seq);
        }
    }

    fn is_done(_: &Hosts, _: &World, _: &Sender) -> bool {
        false
    }
}
