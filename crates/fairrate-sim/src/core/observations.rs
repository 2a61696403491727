//! The results of a part: totals, and notifications of single events.

mod pending;

use std::collections::{BTreeSet, HashMap};

use fairrate_units::Time;

use self::pending::Pending;
use super::run::Run;
use crate::config::{ClockRule, Transport};
use crate::engine::Event;
use crate::fabric::Port;
use crate::ids::{FlowId, PacketIdx, PortId, PortIdx};
use crate::output::{
    Cause, Drops, GroupTotals, Observation, PacketEvent, PacketHeader, PacketStep, ReceiverEvent, RttSample, RunTotals,
    SenderEvent, SenderStep, Wants,
};
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::table::Table;
use crate::transport::Kind;

/// A notification for the run's [`Sink`](crate::output::Sink).
#[derive(Clone, Copy)]
pub(crate) enum Notification {
    /// A flow is over, whose ideal completion time is this. The part computes that, so that the leader need not.
    Flow(FlowId, Time),
    /// A packet took a step. Its header is at this position, if headers are reported.
    Packet(PacketEvent, Option<u32>),
    /// Any other observation.
    Other(Observation),
}

/// The totals of a part, and its notifications that were not yet passed on.
#[derive(Default)]
pub(crate) struct Observations {
    pub(crate) totals: RunTotals,
    /// By group; empty if all flows are of one, or if there are very many.
    pub(crate) groups: Vec<GroupTotals>,
    /// Packets dropped, by port and cause; empty before the first drop.
    pub(crate) drops_at: Table<PortIdx, Drops>,
    /// The results that are reported from now on only as a sink wants them.
    pub(crate) wants: Wants,
    /// The cause of what the hosts do now, kept while the steps of senders are reported.
    pub(crate) cause: Option<Cause>,
    /// The flows of which the last reported step leaves them open, in order.
    open: BTreeSet<FlowId>,
    /// Notifications that were not yet passed on.
    pending: Pending,
    /// Ranges of the acknowledgment whose header is kept.
    sacks: Vec<(u64, u64)>,
    /// `true` if notifications keep the order in which they were added, as in runs whose ties are broken by insertion.
    /// There a packet may take no time, so that of two events of the same time the first to happen sorts last.
    keeps_order: bool,
    /// Where a packet may take no time and ties are not broken by insertion, the place of each port's last steps in the
    /// order of events.
    last_steps: Option<HashMap<PortId, Event>>,
}

impl Observations {
    /// Creates empty observations, which are reported in the order in which they are added if `keeps_order`, and
    /// otherwise in the order of events.
    pub(super) fn new(run: &Run, keeps_order: bool) -> Self {
        let n_groups = run.config.flows.iter().map(|flow| flow.group as usize + 1).max().unwrap_or(0);
        let n_groups = if (2..=GroupTotals::MOST).contains(&n_groups) { n_groups } else { 0 };
        let may_take_no_time = run.config.fabric.clock == ClockRule::WholeNanoseconds;
        let last_steps = (may_take_no_time && !keeps_order).then(HashMap::new);
        Self { keeps_order, last_steps, groups: vec![GroupTotals::default(); n_groups], ..Self::default() }
    }

    /// Returns the totals of the group of a flow, if groups have any.
    #[cold]
    pub(crate) fn group_of(&mut self, run: &Run, flow: FlowId) -> Option<&mut GroupTotals> {
        let parent = run.flow(flow).parent;
        let group = run.is_users(parent).then(|| run.config.flows[parent.index()].group)?;
        self.groups.get_mut(group as usize)
    }

    /// Adds a notification of the event being processed.
    #[inline]
    pub(crate) fn push(&mut self, notification: Notification) {
        self.pending.push(notification);
    }

    /// Adds an observation of the event being processed.
    #[inline]
    pub(crate) fn add(&mut self, observation: Observation) {
        self.push(Notification::Other(observation));
    }

    /// Adds a round-trip time that a sender of a user's flow measured at `t`, if those are reported.
    #[inline]
    pub(crate) fn push_rtt(&mut self, t: Time, flow: FlowId, rtt: Time) {
        if self.wants.rtts {
            self.add(Observation::Rtt(RttSample { t, flow, rtt }));
        }
    }

    /// Adds a `step` of `packet` at time `t` at port number `id`, which is `port`, and in whose queues `queued_bytes`
    /// are after it.
    #[cold]
    pub(crate) fn push_packet(
        &mut self,
        run: &Run,
        (t, id, port, queued_bytes): (Time, PortId, &Port, u64),
        (pool, packet): (&PacketPool, PacketIdx),
        step: PacketStep,
    ) {
        let p = pool.get(packet);
        if !p.kind.is_frame() {
            let header = self.wants.headers.then(|| self.keep_header(run, pool, packet));
            let flow = run.flow(p.flow).parent;
            let (kind, seq, wire_bytes, class, marked) = (p.kind, p.seq, p.wire, p.class, p.is_marked());
            let (answers, payload_bytes) = (answers(p), if kind == PacketKind::Data { p.payload } else { 0 });
            let event = PacketEvent {
                t,
                port: id,
                step,
                flow,
                lane: p.flow,
                kind,
                seq,
                answers,
                payload_bytes,
                wire_bytes,
                class,
                queued_bytes,
                rate: port.rate,
                marked,
            };
            self.push(Notification::Packet(event, header));
        }
    }

    /// Keeps the header of a packet that is no frame; returns its position.
    fn keep_header(&mut self, run: &Run, pool: &PacketPool, packet: PacketIdx) -> u32 {
        let p = pool.get(packet);
        let flow = run.flow(p.flow);
        self.sacks.clear();
        if p.kind == PacketKind::Ack && matches!(run.config.stack(flow.stack).0.kind, Transport::Tcp(_)) {
            let pairs = pool.header(packet).get(run.constants.header_words..).unwrap_or_default().chunks_exact(2);
            self.sacks.extend(pairs.take_while(|pair| pair[1] != 0.0).map(|pair| (pair[0] as u64, pair[1] as u64)));
        }
        self.pending.keep_header(PacketHeader {
            sender: flow.src_host,
            receiver: flow.dst_host,
            cwnd: p.cwnd_at_send,
            entropy: p.entropy,
            is_handshake: p.is_handshake(),
            is_reduced: p.is_reduced(),
            sacks: &self.sacks,
            telemetry: pool.int(packet),
        })
    }

    /// Sets the cause of what hosts do from now on, if the steps of senders are reported.
    #[inline]
    pub(crate) fn begin(&mut self, cause: Cause) {
        if self.wants.senders {
            self.cause = Some(cause);
        }
    }

    /// Sets the arrival of `p` at a host, which acts on it at `t`, as the cause of what hosts do from now on.
    #[cold]
    pub(crate) fn begin_with_packet(&mut self, run: &Run, t: Time, p: &Packet) {
        let flow = run.flow(p.flow);
        self.cause = Some(Cause::Packet { flow: flow.parent, lane: p.flow, kind: p.kind, answers: answers(p) });
        if p.kind == PacketKind::Data && flow.transport == Kind::Homa {
            self.add(Observation::Receiver(ReceiverEvent { t, flow: flow.parent, seq: p.seq }));
        }
    }

    /// Adds that the sender of `flow` may send at `t`, or notes that it may not, if that has changed since the last
    /// call.
    #[cold]
    pub(crate) fn note_outlook(&mut self, run: &Run, t: Time, flow: FlowId, is_open: bool) {
        if !is_open {
            self.note_closed(flow);
        } else if self.open.insert(flow) {
            let step = SenderStep::Open(self.cause.unwrap_or(Cause::Other));
            self.push_sender(run, t, flow, step);
        }
    }

    /// Notes that the sender of `flow` may not send.
    pub(crate) fn note_closed(&mut self, flow: FlowId) {
        self.open.remove(&flow);
    }

    /// Adds a step of the sender of `flow` at `t`.
    #[cold]
    pub(crate) fn push_sender(&mut self, run: &Run, t: Time, flow: FlowId, step: SenderStep) {
        self.add(Observation::Sender(SenderEvent { t, flow: run.flow(flow).parent, lane: flow, step }));
    }

    /// Returns `true` if a notification was added since the last call of [`Observations::mark`].
    #[inline]
    pub(crate) fn has_unmarked(&self) -> bool {
        self.pending.has_unmarked()
    }

    /// Records `event` as the cause of the notifications added since the last call. Where packets take no time, an
    /// event may sort before the one that it follows from: then its notifications go behind the steps that ports have
    /// taken before at the same time.
    pub(crate) fn mark(&mut self, event: Event) {
        let place = self.last_steps.as_mut().map_or(event, |last| self.pending.place_behind(event, last));
        self.pending.mark(place, self.keeps_order);
    }

    /// Returns `true` if notifications were not yet passed on.
    pub(super) fn has_news(&self) -> bool {
        self.pending.first().is_some()
    }

    /// Sorts the notifications into the order of events.
    pub(super) fn sort(&mut self) {
        self.pending.sort();
    }

    /// Returns the first event with a notification that was not yet passed on.
    pub(super) fn first(&self) -> Option<Event> {
        self.pending.first()
    }

    /// Takes the first notification that was not yet passed on.
    pub(super) fn take_first(&mut self) -> Option<Notification> {
        self.pending.take_first()
    }

    /// Returns the header at a position, that of a notification which was just taken.
    pub(super) fn header(&self, at: u32) -> PacketHeader<'_> {
        self.pending.header(at)
    }

    /// Removes the notifications that were passed on.
    pub(super) fn forget_done(&mut self) {
        self.pending.forget_done();
    }
}

/// Returns the first payload byte of the data packet that `p` acknowledges; 0 if it is no acknowledgment.
fn answers(p: &Packet) -> u64 {
    if matches!(p.kind, PacketKind::Ack | PacketKind::Nack) { p.data_seq } else { 0 }
}
