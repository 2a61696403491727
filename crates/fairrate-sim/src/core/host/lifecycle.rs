//! The life of a flow: start, stop, and acknowledgment of its last byte.

use fairrate_control::Controller;
use fairrate_units::Time;

use super::Hosts;
use crate::config::{Milestone, Trigger};
use crate::core::observations::Notification;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, SenderIdx};
use crate::output::Cause;

impl Hosts {
    /// Schedules the next of the flows that start at a given time.
    pub(in crate::core) fn schedule_next_start(&mut self, w: &mut World) {
        if let Some(&next) = self.starts.get(self.next_start) {
            let rank = w.clock.rank_of_flow_start();
            let at = w.run.config.flows[next.index()].start.as_ps();
            w.clock.push(at, EventKind::FlowStart, next, rank);
        }
    }

    /// Starts a flow.
    pub(in crate::core) fn on_flow_start(&mut self, w: &mut World, id: FlowId) {
        if w.run.config.flows[id.index()].trigger == Trigger::Time {
            self.next_start += 1;
            self.schedule_next_start(w);
        }
        self.start(w, id);
    }

    /// Starts a flow now.
    pub(super) fn start(&mut self, w: &mut World, id: FlowId) {
        w.observed.begin(Cause::Start);
        let end = &mut self.sending[id];
        (end.start_ps, end.has_started) = (w.clock.now_ps, true);
        if self.may_begin(w, id) {
            self.open(w, id);
        }
    }

    /// Begins a flow that has arrived.
    pub(super) fn open(&mut self, w: &mut World, id: FlowId) {
        w.run.flow(id).transport.open(self, w, id);
        self.note_start(w, id);
        self.begin(w, id);
        self.may_send(w, w.run.flow(id).src_host);
    }

    /// Opens line `id` of the allocator, if its sender is here.
    pub(in crate::core) fn open_line(&mut self, w: &mut World, id: FlowId) {
        let flow = w.run.flow(id);
        if self.has(flow.src_host) {
            flow.transport.open(self, w, id);
            self.begin(w, id);
        }
    }

    /// Asks the controllers of a flow that has just been opened for their first decision.
    fn begin(&mut self, w: &mut World, id: FlowId) {
        for sending in self.connections.sending_ids(id) {
            let slot = self.sending[sending].sender;
            let allowance = self.controller(slot).on_start(w.clock.now());
            self.apply(w, slot, allowance);
        }
        let transport = w.run.flow(id).transport;
        transport.written(self, w, id);
        transport.begin(self, w, id);
    }

    /// Marks a user's flow as active from now on.
    fn note_start(&mut self, w: &mut World, id: FlowId) {
        self.active += 1;
        self.last_progress_ps = w.clock.now_ps;
        let stop = w.run.config.flows[id.index()].stop;
        if stop < Time::MAX && w.run.flow(id).is_endless() {
            w.clock.schedule(stop.as_ps().max(w.clock.now_ps), EventKind::FlowStop, id);
        }
        self.arrive(w, id);
    }

    /// Stops an endless flow: it sends no data beyond the bytes sent so far.
    pub(in crate::core) fn on_flow_stop(&mut self, w: &mut World, id: FlowId) {
        w.observed.begin(Cause::Other);
        let slot = self.sending[id].sender;
        if slot.is_none() {
            return;
        }
        let transport = w.run.flow(id).transport;
        let is_done = transport.stop(self, w, id);
        self.depart(w, id);
        transport.stopped(self, w, id, is_done);
        if is_done {
            self.finish(w, id);
        } else {
            if self.sender(slot).flow == id {
                self.ask_for_control(w, slot);
            }
            self.nic_send(w, w.run.flow(id).src_host);
        }
        self.run_deferred(w);
    }

    /// Ends a user's flow, all data of which is acknowledged, and removes its senders.
    pub(super) fn finish(&mut self, w: &mut World, id: FlowId) {
        for sending in self.connections.sending_ids(id) {
            let slot = self.sending[sending].sender;
            self.ask_for_control(w, slot);
            self.retire(w, slot);
        }
        let flow = w.run.flow(id);
        flow.transport.close(self, w, id);
        let (host, successor) = (flow.src_host, flow.successor);
        let at = w.clock.now_ps + flow.successor_delay_ps;
        let end = &mut self.sending[id];
        (end.sender, end.is_over) = (SenderIdx::NONE, true);
        if !flow.is_endless() {
            end.fct_ack_ps = w.clock.now_ps - end.start_ps;
            self.finite_left -= 1;
            w.observed.totals.flows_done += 1;
        }
        self.active -= 1;
        if !successor.is_none() && at < w.run.config.flows[successor.index()].stop.as_ps() {
            self.finite_left += u64::from(!w.run.flow(successor).is_endless());
            w.clock.schedule(at, EventKind::FlowStart, successor);
        }
        // Data that was to be sent again may have arrived after all, so that its sending did not mark the end.
        self.note_milestone(w, id, Milestone::Sent);
        self.note_milestone(w, id, Milestone::Acknowledged);
        self.depart(w, id);
        w.observed.push(Notification::Flow(id, self.ideal_fct(&w.run, id)));
        self.hand_on(w, id);
        self.nic_send(w, host);
    }
}
