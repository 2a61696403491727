//! Feedback of algorithms' ports and receivers to senders: notices, congestion notifications, returned control packets.

use fairrate_control::{Controller, NOTICE_VALUES, Notice};

use super::Hosts;
use crate::core::agents::NOTICE_WORDS;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId, PacketIdx, PortId, PortIdx};
use crate::output::{Cause, SenderStep};
use crate::packet::{Packet, PacketKind, Pausing};

impl Hosts {
    /// Handles a CNP or notice that has reached its host: the NIC acts on it at once or after the reaction delay.
    pub(super) fn on_notification(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let reaction_ps = w.run.rules_of(w.net.pool.get(packet).flow).reaction_ps;
        if reaction_ps == 0 {
            self.react(w, packet);
        } else {
            self.hold_notification(w, host, packet, reaction_ps);
        }
    }

    /// Keeps a notification for `reaction_ps`.
    fn hold_notification(&mut self, w: &mut World, host: HostId, packet: PacketIdx, reaction_ps: u64) {
        let due = w.clock.now_ps + reaction_ps;
        let held = &mut self.nics[host].held;
        // Those of other stacks may be held for longer.
        let at = held.partition_point(|&(of_other, _)| of_other <= due);
        held.insert(at, (due, packet));
        w.clock.schedule(due, EventKind::Reaction, host);
    }

    /// Handles what a host that is not ideal does now; otherwise the notification that its NIC has held for longest.
    pub(in crate::core) fn on_reaction(&mut self, w: &mut World, host: HostId) {
        if self.acts_late(w, host) {
            return;
        }
        w.observed.begin(Cause::Notice);
        let held = &mut self.nics[host].held;
        debug_assert!(held.front().is_some_and(|&(due, _)| due == w.clock.now_ps), "one event for each notification");
        if let Some((_, packet)) = held.pop_front() {
            self.react(w, packet);
        }
        self.run_deferred(w);
    }

    fn react(&mut self, w: &mut World, packet: PacketIdx) {
        let Packet { flow, kind, .. } = *w.net.pool.get(packet);
        let words = w.net.pool.header(packet);
        let notice = (kind == PacketKind::Notice).then(|| {
            let mut values = [0.0; NOTICE_VALUES];
            values.copy_from_slice(&words[1..NOTICE_WORDS]);
            Notice { flow: flow.0, port: words[0] as u32, values }
        });
        w.net.pool.release(packet);
        let now = w.clock.now();
        self.decide(w, flow, |controller| match &notice {
            Some(notice) => controller.on_notice(now, notice),
            None => Some(controller.on_cnp(now)),
        });
        if w.observed.wants.senders
            && let Some(rate) = self.source_rate(w, flow)
        {
            let step = SenderStep::Notified { rate, by: notice.map(|notice| PortId(notice.port)) };
            w.observed.push_sender(&w.run, now, flow, step);
        }
    }

    /// Calls the agent of a host's own port if its timer is due now; an earlier request may have been replaced.
    pub(in crate::core) fn on_port_timer(&mut self, w: &mut World, host: HostId, port: PortIdx) {
        w.observed.begin(Cause::Notice);
        if w.agents.on_timer(&w.net, &w.clock, port) {
            self.do_as_agent_asks(w, host, port);
        }
        self.run_deferred(w);
    }

    /// Carries out the actions that the agent of a host's own port has requested. Its notices are for senders of this
    /// host. There is no previous hop that could pause a flow.
    pub(super) fn do_as_agent_asks(&mut self, w: &mut World, host: HostId, port: PortIdx) {
        if w.agents.ask_for_something() {
            let (notices, pauses) = (w.agents.take_notices(), w.agents.take_pauses());
            debug_assert!(pauses.is_empty(), "a host's own port has no previous hop");
            for notice in &notices {
                self.take_own_notice(w, host, notice);
            }
            w.agents.give_back(notices, pauses);
        }
        w.agents.plan(&mut w.clock, port);
    }

    fn take_own_notice(&mut self, w: &mut World, host: HostId, notice: &Notice) {
        let rules = w.run.rules(w.agents.stack());
        let (class, wire, reaction_ps) = (rules.control_class, rules.cnp_wire, rules.reaction_ps);
        w.observed.totals.counts.notices += 1;
        w.observed.totals.control_bytes += u64::from(wire);
        if reaction_ps == 0 {
            self.deferred.notify(*notice);
            return;
        }
        let packet =
            w.net.pool.take(Packet { flow: FlowId(notice.flow), class, wire, ..Packet::new(PacketKind::Notice) });
        let words = w.net.pool.header_mut(packet);
        words[0] = f64::from(notice.port);
        words[1..NOTICE_WORDS].copy_from_slice(&notice.values);
        self.hold_notification(w, host, packet, reaction_ps);
    }

    /// Pauses or resumes a flow at its NIC, as its first switch requests.
    pub(in crate::core) fn hold_flow(&mut self, w: &mut World, host: HostId, flow: FlowId, pausing: Pausing) {
        w.observed.begin(Cause::Resumed);
        let Some((slot, sender)) = self.sender_of(flow) else { return };
        sender.paused = pausing.is_pause();
        self.refresh(slot);
        if pausing == Pausing::Resume {
            self.may_send(w, host);
        }
    }

    /// Sends a control packet that has reached its receiver back to its source.
    pub(super) fn turn_control(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let p = w.net.pool.get_mut(packet);
        p.kind = PacketKind::ControlBack;
        p.route = w.run.flow(p.flow).ack_route;
        self.enqueue_control(w, host, packet);
        self.nic_send(w, host);
    }

    /// Handles a control packet that has returned to its source.
    pub(super) fn on_control_back(&mut self, w: &mut World, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let (id, is_handshake) = (p.flow, p.is_handshake());
        let flow = w.run.flow(id);
        let (host, transport) = (flow.src_host, flow.transport);
        if is_handshake {
            w.net.pool.release(packet);
            if transport.on_connected(self, w, id) {
                self.nic_send(w, host);
            }
            return;
        }
        let now = w.clock.now();
        let slot = self.sending[id].sender;
        let sender = self.senders.get_mut(slot).and_then(Option::as_mut);
        let decision = sender.and_then(|sender| {
            let header = &w.net.pool.header(packet)[..w.run.rules(sender.stack).header_words];
            self.connections.controller(sender).on_control(now, header)
        });
        w.net.pool.release(packet);
        self.decide(w, id, |_| decision);
    }
}
