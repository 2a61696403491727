//! The common parts of PERC and Charny's algorithm: the control packet that circulates for every flow, raises that wait
//! until others have made room, and the demand of short flows.
//!
//! The source's rules are those of L. Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets
//! 2015, section 3.2 with its footnotes 2 and 3.

use std::collections::VecDeque;

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, Allowance, Controller, FlowContext, Loss};
use crate::port::PortContext;

choice! {
    /// The behaviour of a flow that has less to send than its share carries in a round trip.
    pub enum ShortFlows {
        /// No special behaviour.
        Off = "off",
        /// The flow reports its lower demand to the links, and nevertheless sends at its share.
        Advertise = "advertise",
        /// The flow reports its lower demand to the links, and sends no faster than that demand.
        Pace = "pace",
    }
}

algorithm_config! {
    /// Parameters that PERC and Charny's algorithm share.
    pub struct ExplicitRateConfig {
        /// Time that a raise of the rate waits, in base RTTs of the flow's path; 0: not at all (PERC footnote 3: 2).
        increase_wait: f64 = 2.0, in 0.0..=1000.0;
        /// If true, a flow's first rate waits as raises do (PERC is silent; in its Fig. 8 a flow has its final rate
        /// after two RTTs).
        first_rate_waits: bool = false;
        /// Demand and behaviour of a flow when the rest of it needs less than its share for one RTT (PERC section 3.2:
        /// demand is size / RTT).
        short_flows: ShortFlows = ShortFlows::Pace;
        /// Rate before the first reply, as a share of the line rate (PERC is silent: 0).
        initial_rate: f64 = 0.0, in 0.0..=1.0;
        /// Share of every link's capacity that is left free (PERC has none: 0).
        headroom: f64 = 0.0, in 0.0..=0.99;
        /// If true, a flow's rate includes its control packets: its data then leave room for one of them in every round
        /// trip of the last one (eq. (2) gives all of a link to rates, and PERC has no word on control packets in it:
        /// false).
        charge_control: bool = false;
        /// Size of a control packet on the wire (PERC section 5: 40 bytes).
        control_packet: Bytes = Bytes::new(40);
        /// Time without a reply after which a control packet is sent again, in base RTTs of the network; it
        /// doubles with every one in a row, while links know the flow up to half of `state_timeout` (our choice).
        resend: f64 = 3.0, in 1.0..=1_000_000.0;
        /// Time without a control packet after which a link forgets a flow, and without a reply after which a flow
        /// falls back to its first rate and joins anew, in base RTTs of the network (our choice).
        state_timeout: f64 = 10.0, in 1.0..=1_000_000.0;
    }
}

impl ExplicitRateConfig {
    /// Returns the part of the link of `port` that rates may use: what `headroom` and the overhead of full packets
    /// leave, of no more than its NIC sends.
    pub(crate) fn usable(&self, port: &PortContext) -> Usable {
        let counted = counted(Bytes::new(port.wire_mtu.into()), Bytes::new(port.frame_overhead.into()));
        Usable { share: (1.0 - self.headroom) * counted, nic_rate: port.nic_rate }
    }

    /// Returns the bits of a rate that a control packet of `flow` uses: none, unless it is charged. Its own overhead
    /// counts as that of full packets does.
    fn control_bits(&self, flow: &FlowContext) -> f64 {
        let bytes = (self.control_packet + flow.frame_overhead).as_f64() * counted(flow.wire_mtu, flow.frame_overhead);
        if self.charge_control { 8.0 * bytes } else { 0.0 }
    }
}

/// The part of a link that rates may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usable {
    share: f64,
    nic_rate: Rate,
}

impl Usable {
    /// Returns that part of a link of `rate`, in bit/s.
    pub(crate) fn of(self, rate: Rate) -> f64 {
        rate.min(self.nic_rate).as_bps_f64() * self.share
    }
}

/// Returns the share of a link's time in which full packets of `wire` bytes send these bytes, and not `overhead` bytes
/// besides. Rates count the former alone.
fn counted(wire: Bytes, overhead: Bytes) -> f64 {
    wire.as_f64().max(1.0) / (wire + overhead).as_f64().max(1.0)
}

/// Header word with the sequence number of the control packet.
const SEQ: usize = 0;
/// Header word that is 1 in the exit message of a flow.
pub(crate) const EXIT: usize = 1;
/// Number of words before those of the algorithm.
pub(crate) const COMMON_WORDS: usize = 2;

/// Returns `n` times `t`, at least a picosecond.
pub(crate) fn times(t: Time, n: f64) -> Time {
    Time::from_ps((t.as_ps() as f64 * n) as u64).max(Time::from_ps(1))
}

/// The message of a control packet about its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// The flow is active and asks for a rate.
    Request,
    /// The flow has nothing left to send.
    Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The flow asks for rates.
    Member,
    /// The exit message is on its way.
    Leaving,
    /// All links have had the exit message.
    Gone,
}

/// The single circulating control packet of a flow: the next is sent when the last has returned or timed out. A packet
/// that returns after it has timed out brings answers all the same, so that round trips longer than all patience do no
/// harm.
#[derive(Clone, Debug)]
struct Circulation {
    timeout: Time,
    /// Present timeout of the packet on its way: `timeout`, doubled after every packet that timed out, within bounds.
    patience: Time,
    /// Number of the last packet sent.
    seq: u32,
    /// Number of the first packet that has not returned: those before are out of date.
    missing: u32,
    sent: Time,
    /// Set when the next `poll` sends a packet.
    due: bool,
    phase: Phase,
    /// Time to check on a flow that had left and may be active again because some of its bytes were lost: no timer
    /// sends the packet by which it asks again.
    look_again: Time,
}

impl Circulation {
    /// Returns the circulation of a flow that has sent no packet.
    fn new(timeout: Time) -> Self {
        Self {
            timeout,
            patience: timeout,
            seq: 0,
            missing: 1,
            sent: Time::ZERO,
            due: true,
            phase: Phase::Member,
            look_again: Time::ZERO,
        }
    }

    /// Returns the message to send now, if any; `unsent` is the number of payload bytes not yet sent.
    fn poll(&mut self, now: Time, unsent: u64) -> Option<Message> {
        if (self.phase == Phase::Member) == (unsent == 0) {
            self.phase = if unsent == 0 { Phase::Leaving } else { Phase::Member };
            self.missing = self.seq + 1;
            self.send_now();
        }
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.seq += 1;
        self.sent = now;
        Some(if self.phase == Phase::Member { Message::Request } else { Message::Exit })
    }

    /// Lets the next `poll` send a packet, as the first in a row.
    fn send_now(&mut self) {
        (self.due, self.patience) = (true, self.timeout);
    }

    /// Returns the time between the departure of the last packet and `now`.
    fn way(&self, now: Time) -> Time {
        now.saturating_sub(self.sent).max(Time::from_ps(1))
    }

    /// Records that packet `seq` has returned; returns its message, or `None` if the packet is out of date. The next
    /// one is due when the last has returned.
    fn returned(&mut self, seq: f64) -> Option<Message> {
        let counts = f64::from(self.missing) <= seq && seq <= f64::from(self.seq);
        if self.due || !counts || self.phase == Phase::Gone {
            return None;
        }
        self.missing = seq as u32 + 1;
        if self.phase == Phase::Leaving {
            self.phase = Phase::Gone;
            return Some(Message::Exit);
        }
        if self.seq < self.missing {
            self.send_now();
        }
        Some(Message::Request)
    }

    /// Returns the time at which the packet times out; a packet that is due counts as sent at `now`.
    fn gives_up_at(&self, now: Time) -> Time {
        match self.phase {
            _ if self.due => now.saturating_add(self.patience),
            Phase::Gone if now < self.look_again => self.look_again,
            Phase::Gone => Time::MAX,
            _ => self.sent.saturating_add(self.patience).max(now.saturating_add(Time::from_ps(1))),
        }
    }

    fn on_loss(&mut self, now: Time) {
        self.look_again = now.saturating_add(self.timeout);
    }

    /// Gives the packet on its way up at `now` if it is overdue; the next one is given no more than `most`.
    fn check_timeout(&mut self, now: Time, most: Time) {
        if !self.due && self.phase != Phase::Gone && self.sent.saturating_add(self.patience) <= now {
            self.due = true;
            self.patience = self.patience.saturating_add(self.patience).min(most.max(self.timeout));
        }
    }
}

/// A rate that falls at once and rises after a wait: the smallest target of the last `wait`.
#[derive(Clone, Debug)]
struct PatientRate {
    wait: Time,
    rate: f64,
    /// Pending raises: the time at which each is due, and its rate. Both increase along the queue.
    raises: VecDeque<(Time, f64)>,
}

impl PatientRate {
    fn new(wait: Time, rate: f64) -> Self {
        Self { wait, rate, raises: VecDeque::new() }
    }

    /// Discards pending raises and applies `rate` at once.
    fn jump(&mut self, rate: f64) {
        self.raises.clear();
        self.rate = rate;
    }

    /// Sets a new target. A target at or below a pending raise replaces it and is due when that raise was.
    fn aim(&mut self, now: Time, target: f64) {
        self.advance(now);
        let mut due = now.saturating_add(self.wait);
        while self.raises.back().is_some_and(|&(_, rate)| target <= rate) {
            due = self.raises.pop_back().map_or(due, |(time, _)| time);
        }
        if target <= self.rate {
            self.rate = target;
        } else {
            self.raises.push_back((due, target));
        }
        self.advance(now);
    }

    /// Applies the raises that are due.
    fn advance(&mut self, now: Time) {
        while let Some((_, rate)) = self.raises.front().copied().filter(|&(due, _)| due <= now) {
            self.rate = rate;
            self.raises.pop_front();
        }
    }

    /// Returns the time at which the next raise is due.
    fn next(&self) -> Time {
        self.raises.front().map_or(Time::MAX, |&(due, _)| due)
    }
}

/// The answers of a path's links, and their form in control packets, in which the two algorithms differ. An algorithm's
/// own header words begin at `COMMON_WORDS`.
pub trait Answers {
    /// Writes the flow's request to its links into `header`; `limit` is the largest rate that the flow can use until
    /// the packet returns, in bit/s.
    fn ask(&self, limit: f64, header: &mut [f64]);
    /// Stores the links' answers; returns the rate that all links allow, in bit/s.
    fn take(&mut self, header: &[f64]) -> f64;
    /// Clears the answers, because the flow leaves.
    fn forget(&mut self);
}

/// A flow with a circulating control packet that sends at the rate the packet returns.
#[derive(Clone, Debug)]
pub struct ExplicitRate<A> {
    source: Source,
    answers: A,
}

impl<A> ExplicitRate<A> {
    /// Returns a flow that has had no answers yet.
    pub(crate) fn new(config: &ExplicitRateConfig, flow: &FlowContext, answers: A) -> Self {
        Self { source: Source::new(config, flow), answers }
    }
}

impl<A: Answers> Controller for ExplicitRate<A> {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.source.allowance(now)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.source.tick(ack.now)
    }

    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.source.on_loss(now)
    }

    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.source.tick(now)
    }

    fn on_timer(&mut self, now: Time) -> Allowance {
        self.source.tick(now)
    }

    fn on_control(&mut self, now: Time, header: &[f64]) -> Option<Allowance> {
        if !self.source.returned(now, header) {
            return Some(self.source.tick(now));
        }
        let share = self.answers.take(header);
        Some(self.source.allow(now, share))
    }

    fn control_packet(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        if !self.source.poll(now, unsent, header) {
            return false;
        }
        if !self.source.joined {
            self.answers.forget();
        }
        self.answers.ask(self.source.limit, header);
        true
    }
}

/// The state of a flow at its sender, apart from the requests and answers in its control packets.
#[derive(Clone, Debug)]
struct Source {
    line_rate: f64,
    /// The application's rate limit in bit/s.
    demand: f64,
    /// Bits on the wire per byte of payload.
    wire_bits: f64,
    mtu: u32,
    path_rtt_s: f64,
    initial_rate: f64,
    first_rate_waits: bool,
    short_flows: ShortFlows,
    /// Bits of a control packet if they are charged to the flow, otherwise 0.
    control_bits: f32,
    /// The part of the flow's rate that its control packets use, in bit/s.
    control_rate: f64,
    circulation: Circulation,
    rate: PatientRate,
    /// Set when a reply has arrived since the flow joined.
    joined: bool,
    /// Time without a reply after which the flow no longer counts as joined.
    memory: Time,
    /// Arrival time of the last reply.
    heard: Time,
    /// The demand limit in the packet on its way, in bit/s.
    limit: f64,
}

impl Source {
    fn new(config: &ExplicitRateConfig, flow: &FlowContext) -> Self {
        let line_rate = flow.line_rate.as_bps_f64();
        let demand = flow.demand.as_bps_f64();
        let own_limit = demand.min(line_rate);
        let wait =
            if 0.0 < config.increase_wait { times(flow.path_base_rtt, config.increase_wait) } else { Time::ZERO };
        let initial_rate = (config.initial_rate * line_rate).min(own_limit);
        let memory = times(flow.base_rtt, config.state_timeout);
        Self {
            line_rate,
            demand,
            wire_bits: 8.0 * flow.wire_mtu.as_f64() / flow.mtu.as_f64().max(1.0),
            mtu: u32::try_from(flow.mtu.as_u64()).unwrap_or(u32::MAX).max(1),
            path_rtt_s: flow.path_base_rtt.max(Time::from_ps(1)).as_secs_f64(),
            initial_rate,
            first_rate_waits: config.first_rate_waits,
            short_flows: config.short_flows,
            control_bits: config.control_bits(flow) as f32,
            control_rate: 0.0,
            circulation: Circulation::new(times(flow.base_rtt, config.resend)),
            rate: PatientRate::new(wait, initial_rate),
            joined: false,
            memory,
            heard: Time::ZERO,
            limit: own_limit,
        }
    }

    /// Returns the smaller of the application's limit, with control packets added, and the line rate, in bit/s.
    fn own_limit(&self) -> f64 {
        (self.demand + self.control_rate).min(self.line_rate)
    }

    /// Returns the largest rate that the flow can use for a round trip, in bit/s. Bytes in flight need no rate any
    /// more, so only the `unsent` bytes count, at least a full packet.
    fn limit_of(&self, unsent: u64) -> f64 {
        if self.short_flows == ShortFlows::Off {
            return self.own_limit();
        }
        let data = unsent.max(self.mtu.into()) as f64 * self.wire_bits / self.path_rtt_s;
        (data + self.control_rate).min(self.own_limit())
    }

    /// Returns `true` if a control packet leaves now, and writes the common part of its header.
    fn poll(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        let Some(message) = self.circulation.poll(now, unsent) else { return false };
        if message == Message::Exit {
            // If lost bytes are to be sent again, the flow has to ask again.
            self.leave();
        }
        self.limit = self.limit_of(unsent);
        header[SEQ] = f64::from(self.circulation.seq);
        header[EXIT] = if message == Message::Exit { 1.0 } else { 0.0 };
        true
    }

    /// Gives up the flow's rate, as links have given it to other flows, or will.
    fn leave(&mut self) {
        self.rate.jump(self.initial_rate);
        self.joined = false;
    }

    /// Returns the time from which links may have forgotten the flow, as no reply has come.
    fn forgotten_at(&self) -> Time {
        if self.joined { self.heard.saturating_add(self.memory) } else { Time::MAX }
    }

    /// Handles a control packet that has returned; returns `true` if it is the reply to a request that is not out of
    /// date.
    fn returned(&mut self, now: Time, header: &[f64]) -> bool {
        let seq = header.get(SEQ).copied().unwrap_or(0.0);
        let is_reply = self.circulation.returned(seq) == Some(Message::Request);
        if is_reply {
            self.heard = now;
        }
        if is_reply && self.circulation.due {
            self.control_rate = f64::from(self.control_bits) / self.circulation.way(now).as_secs_f64();
        }
        is_reply
    }

    /// Applies the rate `share` that the links allow, in bit/s.
    fn allow(&mut self, now: Time, share: f64) -> Allowance {
        let most = if self.short_flows == ShortFlows::Pace { self.limit } else { self.own_limit() };
        let target = share.min(most).max(1.0);
        if self.joined || self.first_rate_waits {
            self.rate.aim(now, target);
        } else {
            self.rate.jump(target);
        }
        self.joined = true;
        self.allowance(now)
    }

    /// Applies the raises and timeouts that are due at `now`.
    fn tick(&mut self, now: Time) -> Allowance {
        self.rate.advance(now);
        // Links must hear of a flow before they forget it.
        let most = if self.joined { Time::from_ps(self.memory.as_ps() / 2) } else { Time::MAX };
        self.circulation.check_timeout(now, most);
        if self.forgotten_at() <= now {
            self.leave();
            self.circulation.send_now();
        }
        self.allowance(now)
    }

    /// Handles a loss: the lost bytes will be sent again.
    fn on_loss(&mut self, now: Time) -> Allowance {
        self.circulation.on_loss(now);
        self.tick(now)
    }

    /// Returns the rate for data, in bit/s: the flow's rate less its control packets, but at least half of it.
    fn data_rate(&self) -> f64 {
        let rate = self.rate.rate.min(self.line_rate);
        (rate - self.control_rate).max(0.5 * rate)
    }

    fn allowance(&self, now: Time) -> Allowance {
        let timer = self.rate.next().min(self.circulation.gives_up_at(now)).min(self.forgotten_at());
        Allowance { cwnd: Bytes::MAX, rate: Rate::from_bps_f64(self.data_rate()), timer }
    }
}

#[cfg(test)]
mod tests;
