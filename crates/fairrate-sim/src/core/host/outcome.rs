//! The outcomes of flows so far.

use fairrate_units::{Bytes, Time};

use super::disorder::DisorderBook;
use super::{Hosts, SendingEnd};
use crate::config::Trigger;
use crate::core::run::Run;
use crate::ideal;
use crate::ids::{FlowId, LineId};
use crate::output::{Disorder, FlowOutcome, Reordering, RunTotals};
use crate::transport::{LineNote, homa_train};

/// The received data of a flow.
pub(in crate::core) struct Received {
    /// Arrival time of the last payload byte, in picoseconds.
    last_ps: Option<u64>,
    /// Number of payload bytes in order.
    pub(in crate::core) bytes: u64,
    reordering: Reordering,
    disorder: Disorder,
}

impl Hosts {
    /// Returns the outcome so far of a flow whose sender is here, and which takes `ideal_fct` alone in the network.
    pub(in crate::core) fn outcome(&self, run: &Run, id: FlowId, received: &Received, ideal_fct: Time) -> FlowOutcome {
        let end = &self.sending[id];
        let sender = self.senders.get(end.sender).and_then(Option::as_ref);
        let tally = self.tally_of_subflows(id).or(sender.map(|s| s.tally)).unwrap_or(end.tally);
        FlowOutcome {
            flow: id,
            start: Time::from_ps(if end.has_started {
                end.start_ps
            } else {
                run.config.flows[id.index()].start.as_ps()
            }),
            fct: received.last_ps.map(|at| Time::from_ps(at - end.start_ps)),
            fct_ack: known(end.fct_ack_ps).map(Time::from_ps),
            sent: self.sent_ps(id).map(|at| Time::from_ps(at - end.start_ps)),
            ideal_fct,
            delivered_bytes: received.bytes,
            retransmitted_bytes: tally.retransmitted,
            timeouts: tally.timeouts,
            recoveries: tally.recoveries,
            connected: known(end.connected_ps).map(|at| Time::from_ps(at - end.start_ps)),
            reordering: received.reordering,
            disorder: received.disorder,
        }
    }

    /// Returns the time that a flow whose sender is here would take alone; zero if it has not started or has no end.
    pub(in crate::core) fn ideal_fct(&self, run: &Run, id: FlowId) -> Time {
        let is_timed = self.sending[id].has_started && !run.flow(id).is_endless();
        if is_timed { ideal_fct(run, id) } else { Time::ZERO }
    }

    /// Returns the received data of a flow whose receiver is here.
    pub(in crate::core) fn received(&self, id: FlowId) -> Received {
        let end = &self.receiving[id];
        let reordering = self.connections.reordering(id);
        let of_all = |book: &DisorderBook| {
            let of_each = self.connections.sending_ids(id).map(|lane| book.of(lane));
            of_each.fold(Disorder::default(), Disorder::with)
        };
        let disorder = self.disorder.as_deref().map_or_else(Disorder::default, of_all);
        Received { last_ps: known(end.arrived_ps), bytes: end.receiver.expected, reordering, disorder }
    }

    /// Returns the user's flows that are sent from here, have started or will at their time, and are not over.
    pub(in crate::core) fn unfinished(&self, run: &Run) -> Vec<FlowId> {
        let is_unfinished = |&(id, end): &(FlowId, &SendingEnd)| {
            let is_due = end.has_started || run.config.flows[id.index()].trigger == Trigger::Time;
            !end.is_over && is_due
        };
        let of_users = self.sending.iter().take_while(|&(id, _)| run.is_users(id));
        of_users.filter(is_unfinished).map(|(id, _)| id).collect()
    }

    /// Returns the user's flows that send here, in any order.
    pub(in crate::core) fn active_flows(&self, run: &Run) -> Vec<FlowId> {
        let flows = self.senders.iter().flatten().map(|s| run.flow(s.flow));
        flows.filter(|f| f.subflow() == 0).map(|f| f.parent).filter(|&f| run.is_users(f)).collect()
    }

    /// Returns the number of active flows, and of finite flows that have started or will start and are not done.
    pub(in crate::core) fn counts(&self) -> (u64, u64) {
        (self.active, self.finite_left)
    }

    /// Returns `true` if all work of these hosts is done.
    pub(in crate::core) fn are_done(&self, run: &Run) -> bool {
        self.finite_left == 0 && self.next_start == self.starts.len() && self.changes_are_done(run)
    }

    /// Adds the hosts' share of the totals.
    pub(in crate::core) fn add_totals(&self, run: &Run, totals: &mut RunTotals) {
        // A flow that waits for others, or for rates to converge, and has not started is not counted.
        let is_finite = |&id: &FlowId| !run.flow(id).is_endless();
        totals.flows_unfinished = self.unfinished(run).iter().filter(|id| is_finite(id)).count() as u64;
        totals.reordering = self.connections.all_reordering();
        totals.allocator = self.allocator.as_ref().map_or_else(Default::default, |allocator| allocator.totals);
        assert!(self.payload_here(run) <= totals.delivered_bytes, "payload comes in packets");
    }

    /// Returns the payload bytes that receivers of this part have, each byte counted once.
    fn payload_here(&self, run: &Run) -> u64 {
        let of_users = self.receiving.iter().take_while(|&(id, _)| run.is_users(id));
        of_users.map(|(_, end)| end.receiver.expected).sum()
    }

    /// Returns the messages about lines for another part.
    pub(in crate::core) fn notes_for(&mut self, part: u16) -> impl Iterator<Item = (LineId, LineNote)> + '_ {
        self.allocator.iter_mut().flat_map(move |allocator| allocator.notes_for(part))
    }

    /// Stores a message of another part about a line.
    pub(in crate::core) fn take_note(&mut self, line: LineId, note: LineNote) {
        if let Some(allocator) = &mut self.allocator {
            allocator.take_note(line, note);
        }
    }
}

fn ideal_fct(run: &Run, id: FlowId) -> Time {
    let bytes = Bytes::new(run.flow(id).bytes);
    let train = homa_train(run, id, bytes).unwrap_or_else(|| run.rules_of(id).framing.train(bytes));
    let receiver = run.config.flows[run.flow(id).parent.index()].dst;
    ideal::ideal_fct(run.config.fabric.clock, &run.best_hops_of(id), train) + run.processing_of(receiver)
}

/// Returns a time, unless it is `u64::MAX`.
fn known(at_ps: u64) -> Option<u64> {
    (at_ps < u64::MAX).then_some(at_ps)
}
