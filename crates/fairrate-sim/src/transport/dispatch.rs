//! Dispatch of every function of [`Transport`] to the transport of a flow.

use fairrate_control::Allowance;

use super::interface::{Acked, Answer, Load, Timed, Transport};
use super::list::{Kind, for_each_transport};
use super::{allocator, homa, mptcp, rdma, tcp, uet};
use crate::core::{Hosts, World};
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};

macro_rules! call {
    ([$kind:expr, $function:ident, $arguments:tt] $($(#[$doc:meta])* $name:ident => $type:ty,)+) => {
        match $kind {
            $(Kind::$name => <$type as Transport>::$function $arguments,)+
        }
    };
}

/// See [`Transport`] for each function.
impl Kind {
    pub(crate) fn open(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        for_each_transport!(call [self, open, (hosts, w, flow)]);
    }
    pub(crate) fn begin(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        for_each_transport!(call [self, begin, (hosts, w, flow)]);
    }
    pub(crate) fn written(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        for_each_transport!(call [self, written, (hosts, w, flow)]);
    }
    #[inline]
    pub(crate) fn whose_turn(self, hosts: &Hosts, w: &World, host: HostId, at: usize) -> usize {
        for_each_transport!(call [self, whose_turn, (hosts, w, host, at)])
    }
    #[inline]
    pub(crate) fn after_idle(self, hosts: &mut Hosts, w: &World, slot: SenderIdx) -> Option<Allowance> {
        for_each_transport!(call [self, after_idle, (hosts, w, slot)])
    }
    #[inline]
    pub(crate) fn load(self, hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        for_each_transport!(call [self, load, (hosts, w, slot)])
    }
    #[inline]
    pub(crate) fn sent(self, hosts: &mut Hosts, w: &mut World, slot: SenderIdx, wire: u16) {
        for_each_transport!(call [self, sent, (hosts, w, slot, wire)]);
    }
    #[inline]
    pub(crate) fn has_sent_all(self, hosts: &Hosts, w: &World, slot: SenderIdx, has_data: bool) -> bool {
        for_each_transport!(call [self, has_sent_all, (hosts, w, slot, has_data)])
    }
    pub(crate) fn on_all_sent(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        for_each_transport!(call [self, on_all_sent, (hosts, w, flow)]);
    }
    #[inline]
    pub(crate) fn on_data(self, hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer {
        for_each_transport!(call [self, on_data, (hosts, w, host, packet)])
    }
    #[inline]
    pub(crate) fn read(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        for_each_transport!(call [self, read, (hosts, w, flow)]);
    }
    pub(crate) fn on_ack_timer(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Option<PacketIdx> {
        for_each_transport!(call [self, on_ack_timer, (hosts, w, flow)])
    }
    #[inline]
    pub(crate) fn on_ack(self, hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Option<Acked> {
        for_each_transport!(call [self, on_ack, (hosts, w, host, packet)])
    }
    pub(crate) fn on_connected(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool {
        for_each_transport!(call [self, on_connected, (hosts, w, flow)])
    }
    pub(crate) fn on_timer(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed {
        for_each_transport!(call [self, on_timer, (hosts, w, flow)])
    }
    #[inline]
    pub(crate) fn plan_timer(self, hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
        for_each_transport!(call [self, plan_timer, (hosts, w, slot)]);
    }
    #[inline]
    pub(crate) fn earliest_ps(self, hosts: &Hosts, w: &World, slot: SenderIdx) -> u64 {
        for_each_transport!(call [self, earliest_ps, (hosts, w, slot)])
    }
    #[inline]
    pub(crate) fn decided(self, hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
        for_each_transport!(call [self, decided, (hosts, w, slot)]);
    }
    pub(crate) fn stop(self, hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool {
        for_each_transport!(call [self, stop, (hosts, w, flow)])
    }
    pub(crate) fn stopped(self, hosts: &mut Hosts, w: &mut World, flow: FlowId, is_done: bool) {
        for_each_transport!(call [self, stopped, (hosts, w, flow, is_done)]);
    }
    pub(crate) fn close(self, hosts: &mut Hosts, w: &World, flow: FlowId) {
        for_each_transport!(call [self, close, (hosts, w, flow)]);
    }
}
