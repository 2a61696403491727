//! Connections that carry all flows of a pair of hosts, one after the other, as RDMA's queue pairs do.
//!
//! A flow that arrives while another flow of its connection is active waits until all bytes of that flow are
//! acknowledged. Then it begins with the controller that the other flow has left. Feedback of ports or receivers to a
//! flow that is over is passed to the controller that it has left, too.

use std::collections::{HashMap, VecDeque};

use fairrate_control::Bucket;
use fairrate_units::{Rate, Time};

use super::Hosts;
use super::bucket::Filled;
use crate::config::Connection;
use crate::core::run::{Rules, Run};
use crate::core::world::World;
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::transport::{Controlled, Lasting, Sender};

/// Key of a connection: its two ends and the traffic block of its flows.
type Name = (HostId, HostId, u32);

/// The connections of the senders of a part. They are only looked up, never iterated: their order does not matter.
#[derive(Default)]
pub(crate) struct QueuePairs(HashMap<Name, QueuePair>);

/// A connection that has carried a flow.
struct QueuePair {
    /// The flow that the connection carries now, or [`FlowId::NONE`].
    active: FlowId,
    /// Flows that wait for their turn.
    waiting: VecDeque<FlowId>,
    /// The connection's controller, while no flow has it.
    idle: Option<Idle>,
}

/// A controller between two flows.
struct Idle {
    lasting: Box<Lasting>,
    /// The time of its next packet, and a bucket's credit, at `rate`.
    filled: Filled,
    rate: Rate,
    /// The last time at which the controller was asked.
    asked: Time,
}

impl Idle {
    /// Runs the controller's timers up to `now`. A bucket keeps its bytes as the rate changes.
    fn catch_up(&mut self, c: &Rules, mtu: u64, line: Rate, now: Time) {
        let Self { lasting, filled, rate, asked } = self;
        let mut change = |at: Time, to: Rate| {
            if c.bucket != Bucket::None && to != *rate {
                *filled = filled.in_bucket_of(c, mtu, at.as_ps(), (*rate, to, line));
                *rate = to;
            }
        };
        // What has changed since was decided when the controller was asked.
        if let Some(last) = lasting.last() {
            change(*asked, last.rate.min(line));
        }
        lasting.catch_up(now, |at, to| change(at, to.min(line)));
        *asked = now;
    }
}

impl QueuePairs {
    /// Takes the controller that flow `id` begins with, if its connection has one.
    fn take_idle(&mut self, run: &Run, id: FlowId) -> Option<Idle> {
        self.0.get_mut(&name(run, id)?)?.idle.take()
    }

    /// Returns the idle controller of the connection of flow `id`, if there is one.
    fn idle_mut(&mut self, run: &Run, id: FlowId) -> Option<&mut Idle> {
        self.0.get_mut(&name(run, id)?)?.idle.as_mut()
    }

    /// Returns the flow that the connection of flow `id` carries now.
    fn active(&self, run: &Run, id: FlowId) -> Option<FlowId> {
        self.0.get(&name(run, id)?)?.active.some()
    }

    /// Adds an arriving flow to its connection; returns `true` if it may begin, and `false` if it has to wait.
    fn open(&mut self, run: &Run, id: FlowId) -> bool {
        let Some(name) = name(run, id) else { return true };
        let new = || QueuePair { active: FlowId::NONE, waiting: VecDeque::new(), idle: None };
        let pair = self.0.entry(name).or_insert_with(new);
        if pair.active.is_none() {
            pair.active = id;
            return true;
        }
        pair.waiting.push_back(id);
        false
    }

    /// Removes a finished flow from its connection; returns the flow that has the connection next.
    fn close(&mut self, run: &Run, id: FlowId) -> Option<FlowId> {
        let pair = self.0.get_mut(&name(run, id)?)?;
        let next = pair.waiting.pop_front();
        pair.active = next.unwrap_or(FlowId::NONE);
        next
    }
}

/// Returns the key of a flow's connection, if the flow shares it with others.
fn name(run: &Run, id: FlowId) -> Option<Name> {
    let spec = run.config.flows.get(id.index())?;
    let flow = run.flow(id);
    (spec.connection == Connection::PerPair).then_some((flow.src_host, flow.dst_host, spec.group))
}

impl Hosts {
    /// Returns the controller of a flow that starts, its own or its connection's, the time of its first packet, and the
    /// rate and credit of its bucket, if its connection has one.
    pub(crate) fn controlled(&mut self, w: &World, id: FlowId) -> (Controlled, u64, Option<(Rate, u64)>) {
        let (now, now_ps) = (w.clock.now(), w.clock.now_ps);
        let build = || w.run.algorithm_of(id).build(&w.run.flow_context(id, now));
        if name(&w.run, id).is_none() {
            return (Controlled::Own(build()), now_ps, None);
        }
        let Some(mut idle) = self.queue_pairs.take_idle(&w.run, id) else {
            return (Controlled::Lasting(Box::new(Lasting::new(build()))), now_ps, None);
        };
        let c = w.run.rules_of(id);
        if c.bucket == Bucket::None {
            return (Controlled::Lasting(idle.lasting), idle.filled.next_ps.max(now_ps), None);
        }
        idle.catch_up(c, w.run.constants.mtu, self.line_rate(w, w.run.flow(id).src_host), now);
        (Controlled::Lasting(idle.lasting), idle.filled.next_ps, Some((idle.rate, idle.filled.more_bits)))
    }

    /// Sets the earliest time of the first packet of a flow that has been opened.
    pub(crate) fn pace_first(&mut self, id: FlowId, at_ps: u64) {
        let sender = self.sender(self.sending[id].sender);
        let (host, at) = (sender.host, sender.nic_slot as usize);
        self.nics[host].flows[at].next_send_ps = at_ps;
    }

    /// Returns `true` if an arriving flow may begin. Otherwise it begins as soon as its connection is free.
    pub(super) fn may_begin(&mut self, w: &World, id: FlowId) -> bool {
        self.queue_pairs.open(&w.run, id)
    }

    /// Keeps the controller of a removed sender for its connection; `next_ps`: the time at which its next packet could
    /// have been sent.
    pub(super) fn keep_controller(&mut self, w: &World, sender: Sender, next_ps: u64) {
        let Controlled::Lasting(mut lasting) = sender.controlled else { return };
        lasting.end_flow(sender.snd_una);
        let pair = name(&w.run, sender.flow).and_then(|name| self.queue_pairs.0.get_mut(&name));
        let idle = Idle {
            lasting,
            filled: Filled { next_ps, more_bits: sender.more_bits },
            rate: sender.rate,
            asked: w.clock.now(),
        };
        pair.expect("the flow had a connection").idle = Some(idle);
    }

    /// Ends a flow's use of its connection: the next flow of the connection begins.
    pub(super) fn hand_on(&mut self, w: &mut World, id: FlowId) {
        if let Some(next) = self.queue_pairs.close(&w.run, id) {
            self.open(w, next);
        }
    }

    /// Returns the sender that receives a notice to a flow: its own, or that of the flow that its connection carries
    /// now.
    pub(super) fn slot_of_notice(&self, run: &Run, id: FlowId) -> Option<SenderIdx> {
        let own = self.sending[id].sender;
        own.some().or_else(|| self.sending[self.queue_pairs.active(run, id)?].sender.some())
    }

    /// Returns the controller that a finished flow has left, once its timers are up to date.
    pub(super) fn idle_controller(&mut self, w: &World, id: FlowId) -> Option<&mut Lasting> {
        let line = self.line_rate(w, w.run.flow(id).src_host);
        let idle = self.queue_pairs.idle_mut(&w.run, id)?;
        idle.catch_up(w.run.rules_of(id), w.run.constants.mtu, line, w.clock.now());
        Some(&mut idle.lasting)
    }

    /// Returns the rate of a flow's source, at most that of its link: the rate of its sender, or the one with which the
    /// next flow of its connection would begin.
    pub(super) fn source_rate(&mut self, w: &World, id: FlowId) -> Option<Rate> {
        let line_rate = self.line_rate(w, w.run.flow(id).src_host);
        let rate = match self.slot_of_notice(&w.run, id) {
            Some(slot) => self.sender(slot).rate,
            None => self.queue_pairs.idle_mut(&w.run, id)?.lasting.last()?.rate,
        };
        Some(rate.min(line_rate))
    }
}
