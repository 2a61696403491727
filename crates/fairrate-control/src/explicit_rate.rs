//! What PERC and Charny's algorithm share: the control packet that every flow keeps going round, raises that wait until
//! others have made room, the demand of short flows, and the rates a link remembers.
//!
//! The source's rules are those of L. Jose et al., "High Speed Networks Need Proactive Congestion Control", HotNets
//! 2015, section 3.2 with its footnotes 2 and 3.

use std::collections::{BTreeMap, VecDeque};

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, Allowance, Controller, FlowContext, Loss};

choice! {
    /// What a flow does that has less to send than its share carries in a round trip.
    pub enum ShortFlows {
        /// Nothing special.
        Off = "off",
        /// It tells links that it needs no more, and sends at its share nevertheless.
        Advertise = "advertise",
        /// It tells links that it needs no more, and sends no faster than it told them.
        Pace = "pace",
    }
}

algorithm_config! {
    /// Parameters that PERC and Charny's algorithm share.
    pub struct ExplicitRateConfig {
        /// How long a raise of the rate waits, in base RTTs of the flow's path; 0: not at all (PERC footnote 3: 2).
        increase_wait: f64 = 2.0, ns3 = 2.0, in 0.0..=1000.0;
        /// Whether a flow's first rate waits as raises do (PERC is silent; in its Fig. 8 a flow has its final rate after
        /// two RTTs).
        first_rate_waits: bool = false, ns3 = false;
        /// What a flow tells links and does when what it has left needs less than its share for one
        /// RTT (PERC section 3.2: demand is size / RTT).
        short_flows: ShortFlows = ShortFlows::Pace, ns3 = ShortFlows::Pace;
        /// Rate before the first reply, as a share of the line rate (PERC is silent: 0).
        initial_rate: f64 = 0.0, ns3 = 0.0, in 0.0..=1.0;
        /// Share of every link's capacity that is left free (PERC has none: 0).
        headroom: f64 = 0.0, ns3 = 0.0, in 0.0..=0.99;
        /// Size of a control packet on the wire (PERC section 5: 40 bytes).
        control_packet: Bytes = Bytes::new(40), ns3 = Bytes::new(40);
        /// Time without a reply after which a control packet is sent again, in base RTTs of the network; it
        /// doubles with every one in a row (our choice).
        resend: f64 = 3.0, ns3 = 3.0, in 1.0..=1_000_000.0;
        /// Time without a control packet after which a link forgets a flow, in base RTTs of the network (our choice).
        state_timeout: f64 = 10.0, ns3 = 10.0, in 1.0..=1_000_000.0;
    }
}

impl ExplicitRateConfig {
    /// The part of a link's capacity that flows may use, in bit/s.
    pub(crate) fn usable(&self, link: Rate) -> f64 {
        link.as_bps_f64() * (1.0 - self.headroom)
    }
}

/// Header word with the number of the control packet: only the last one sent counts.
const SEQ: usize = 0;
/// Header word that is 1 in the message of a flow that leaves.
pub(crate) const EXIT: usize = 1;
/// Words before those of the algorithm.
pub(crate) const COMMON_WORDS: usize = 2;

/// `n` times `t`, at least a picosecond.
pub(crate) fn times(t: Time, n: f64) -> Time {
    Time::from_ps((t.as_ps() as f64 * n) as u64).max(Time::from_ps(1))
}

/// What a control packet says of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// It is there and asks for a rate.
    Request,
    /// It has nothing left to send.
    Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The flow asks for rates.
    Member,
    /// Its exit message is on its way.
    Leaving,
    /// All links know that it has left.
    Gone,
}

/// The one control packet of a flow that goes round: the next leaves when the last is back or given up.
#[derive(Clone, Debug)]
struct Circulation {
    timeout: Time,
    /// How long the packet on its way is waited for: the timeout, and twice as long after every packet given up.
    patience: Time,
    seq: u64,
    sent: Time,
    /// Whether a packet leaves when next asked.
    due: bool,
    phase: Phase,
    /// When to look after a flow that had left and may be back, because bytes of it were lost: the packet by which it
    /// asks again leaves without a timer.
    look_again: Time,
}

impl Circulation {
    fn new(timeout: Time) -> Self {
        Self {
            timeout,
            patience: timeout,
            seq: 0,
            sent: Time::ZERO,
            due: true,
            phase: Phase::Member,
            look_again: Time::ZERO,
        }
    }

    /// What leaves now, if anything.
    fn poll(&mut self, now: Time, unsent: u64) -> Option<Message> {
        if (self.phase == Phase::Member) == (unsent == 0) {
            self.phase = if unsent == 0 { Phase::Leaving } else { Phase::Member };
            (self.due, self.patience) = (true, self.timeout);
        }
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.seq += 1;
        self.sent = now;
        Some(if self.phase == Phase::Member { Message::Request } else { Message::Exit })
    }

    /// A packet is back; says what it was, unless it does not count any more.
    fn returned(&mut self, seq: f64) -> Option<Message> {
        if self.due || self.seq == 0 || seq != self.seq as f64 || self.phase == Phase::Gone {
            return None;
        }
        self.patience = self.timeout;
        if self.phase == Phase::Leaving {
            self.phase = Phase::Gone;
            return Some(Message::Exit);
        }
        self.due = true;
        Some(Message::Request)
    }

    /// When a packet is given up; one that is due now will be sent now.
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

    fn check_timeout(&mut self, now: Time) {
        if !self.due && self.phase != Phase::Gone && self.sent.saturating_add(self.patience) <= now {
            self.due = true;
            self.patience = self.patience.saturating_add(self.patience);
        }
    }
}

/// A rate that falls at once and rises after a wait: the least target of the time `wait` before now.
#[derive(Clone, Debug)]
struct PatientRate {
    wait: Time,
    rate: f64,
    /// Raises that wait: when each is due, and to what. Both rise along the queue.
    raises: VecDeque<(Time, f64)>,
}

impl PatientRate {
    fn new(wait: Time, rate: f64) -> Self {
        Self { wait, rate, raises: VecDeque::new() }
    }

    /// Forgets what waits and takes `rate` at once.
    fn jump(&mut self, rate: f64) {
        self.raises.clear();
        self.rate = rate;
    }

    /// A new target. One below a raise that waits takes its place and the time it has waited for.
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

    /// Carries out the raises that are due.
    fn advance(&mut self, now: Time) {
        while let Some((_, rate)) = self.raises.front().copied().filter(|&(due, _)| due <= now) {
            self.rate = rate;
            self.raises.pop_front();
        }
    }

    /// When the next raise is due.
    fn next(&self) -> Time {
        self.raises.front().map_or(Time::MAX, |&(due, _)| due)
    }
}

/// What the links of a path have answered, and how control packets ask and tell it: where the two algorithms differ. Of the
/// header, words from `COMMON_WORDS` on are theirs.
pub trait Answers {
    /// Writes what the flow asks of its links; `limit` is the most it can use until the packet is back, in bit/s.
    fn ask(&self, limit: f64, header: &mut [f64]);
    /// Takes what the links have answered: the rate they allow together, in bit/s.
    fn take(&mut self, header: &[f64]) -> f64;
    /// The flow leaves: nothing is known any more.
    fn forget(&mut self);
}

/// A flow that keeps a control packet going round and sends at the rate that comes back.
#[derive(Clone, Debug)]
pub struct ExplicitRate<A> {
    source: Source,
    answers: A,
}

impl<A> ExplicitRate<A> {
    /// A flow that has had no answers yet.
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
        if !self.source.returned(header) {
            return Some(self.source.tick(now));
        }
        let share = self.answers.take(header);
        Some(self.source.allow(now, share))
    }

    fn control_packet(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        let Some(message) = self.source.poll(now, unsent, header) else { return false };
        if message == Message::Exit {
            self.answers.forget();
        }
        self.answers.ask(self.source.limit, header);
        true
    }
}

/// One flow at its sender, but for what its control packets ask and tell.
#[derive(Clone, Debug)]
struct Source {
    line_rate: f64,
    /// The application's limit, or the NIC's.
    own_limit: f64,
    /// Bits on the wire for a byte of payload.
    wire_bits: f64,
    mtu: u64,
    path_rtt_s: f64,
    initial_rate: f64,
    first_rate_waits: bool,
    short_flows: ShortFlows,
    circulation: Circulation,
    rate: PatientRate,
    /// Whether a reply has come since the flow joined.
    joined: bool,
    /// The limit in the packet on its way.
    limit: f64,
}

impl Source {
    fn new(config: &ExplicitRateConfig, flow: &FlowContext) -> Self {
        let line_rate = flow.line_rate.as_bps_f64();
        let own_limit = flow.demand.as_bps_f64().min(line_rate);
        let wait =
            if 0.0 < config.increase_wait { times(flow.path_base_rtt, config.increase_wait) } else { Time::ZERO };
        let initial_rate = (config.initial_rate * line_rate).min(own_limit);
        Self {
            line_rate,
            own_limit,
            wire_bits: 8.0 * flow.wire_mtu.as_f64() / flow.mtu.as_f64().max(1.0),
            mtu: flow.mtu.as_u64().max(1),
            path_rtt_s: flow.path_base_rtt.max(Time::from_ps(1)).as_secs_f64(),
            initial_rate,
            first_rate_waits: config.first_rate_waits,
            short_flows: config.short_flows,
            circulation: Circulation::new(times(flow.base_rtt, config.resend)),
            rate: PatientRate::new(wait, initial_rate),
            joined: false,
            limit: own_limit,
        }
    }

    /// The largest rate the flow can use for a round trip. Bytes in flight need no rate any more, so only those that
    /// have not left count; a last packet needs what a packet needs.
    fn limit_of(&self, unsent: u64) -> f64 {
        if self.short_flows == ShortFlows::Off {
            return self.own_limit;
        }
        (unsent.max(self.mtu) as f64 * self.wire_bits / self.path_rtt_s).min(self.own_limit)
    }

    /// Asked whether a control packet leaves: writes the common part of its header if so.
    fn poll(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> Option<Message> {
        let message = self.circulation.poll(now, unsent)?;
        if message == Message::Exit {
            // What it had, others get. Bytes that are lost and come back have to ask again.
            self.rate.jump(self.initial_rate);
            self.joined = false;
        }
        self.limit = self.limit_of(unsent);
        header[SEQ] = self.circulation.seq as f64;
        header[EXIT] = if message == Message::Exit { 1.0 } else { 0.0 };
        Some(message)
    }

    /// A control packet is back: whether it is the reply to the last request.
    fn returned(&mut self, header: &[f64]) -> bool {
        let seq = header.get(SEQ).copied().unwrap_or(0.0);
        self.circulation.returned(seq) == Some(Message::Request)
    }

    /// The links allow `share`, in bit/s.
    fn allow(&mut self, now: Time, share: f64) -> Allowance {
        let most = if self.short_flows == ShortFlows::Pace { self.limit } else { self.own_limit };
        let target = share.min(most).max(1.0);
        if self.joined || self.first_rate_waits {
            self.rate.aim(now, target);
        } else {
            self.rate.jump(target);
        }
        self.joined = true;
        self.allowance(now)
    }

    /// The timer, or anything else that may make a raise or a control packet due.
    fn tick(&mut self, now: Time) -> Allowance {
        self.rate.advance(now);
        self.circulation.check_timeout(now);
        self.allowance(now)
    }

    /// Bytes were lost, and will be sent again.
    fn on_loss(&mut self, now: Time) -> Allowance {
        self.circulation.on_loss(now);
        self.tick(now)
    }

    fn allowance(&self, now: Time) -> Allowance {
        let timer = self.rate.next().min(self.circulation.gives_up_at(now));
        let rate = Rate::from_bps_f64(self.rate.rate.min(self.line_rate));
        Allowance { cwnd: Bytes::MAX, rate, timer }
    }
}

/// Rates are kept in 2^-16 bit/s, so that sums are exact and do not depend on their history.
const PER_BPS: f64 = 65_536.0;

/// A flow at a link.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rate: i64,
    seen: Time,
}

/// The rates that the flows of a link have told it, in order.
///
/// `below` is the sum of the first `split` of them. Each question moves the split from where the last one left it,
/// which is near, since one message changes one rate.
#[derive(Clone, Debug)]
pub(crate) struct RateTable {
    capacity: i64,
    timeout: Time,
    flows: BTreeMap<u32, Entry>,
    /// (rate, flow), ascending.
    sorted: Vec<(i64, u32)>,
    split: usize,
    below: i128,
    total: i128,
    /// No flow was seen before this.
    oldest: Time,
}

impl RateTable {
    /// A link of `capacity_bps` that forgets a flow after `timeout`.
    pub(crate) fn new(capacity_bps: f64, timeout: Time) -> Self {
        Self {
            capacity: (capacity_bps * PER_BPS) as i64,
            timeout,
            flows: BTreeMap::new(),
            sorted: Vec::new(),
            split: 0,
            below: 0,
            total: 0,
            oldest: Time::MAX,
        }
    }

    /// Flows.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Capacity in bit/s.
    pub(crate) fn capacity(&self) -> f64 {
        self.capacity as f64 / PER_BPS
    }

    /// Whether the rates fit into the link together.
    pub(crate) fn fit(&self) -> bool {
        self.total <= i128::from(self.capacity)
    }

    /// The sum of all rates and the largest, in bit/s.
    pub(crate) fn total_and_largest(&self) -> (f64, f64) {
        let largest = self.sorted.last().map_or(0, |&(rate, _)| rate);
        (self.total as f64 / PER_BPS, largest as f64 / PER_BPS)
    }

    /// Forgets the flows that have been silent for too long.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.oldest == Time::MAX || now <= self.oldest.saturating_add(self.timeout) {
            return;
        }
        let timeout = self.timeout;
        let is_silent = |entry: &Entry| entry.seen.saturating_add(timeout) < now;
        let silent: Vec<u32> = self.flows.iter().filter(|(_, e)| is_silent(e)).map(|(&flow, _)| flow).collect();
        for flow in silent {
            self.remove(flow);
        }
        self.oldest = self.flows.values().map(|entry| entry.seen).min().unwrap_or(Time::MAX);
    }

    /// Forgets a flow.
    pub(crate) fn remove(&mut self, flow: u32) {
        let Some(Entry { rate, .. }) = self.flows.remove(&flow) else { return };
        let at = self.sorted.partition_point(|&entry| entry < (rate, flow));
        debug_assert!(self.sorted[at] == (rate, flow), "every flow is in both tables");
        self.sorted.remove(at);
        self.total -= i128::from(rate);
        if at < self.split {
            self.split -= 1;
            self.below -= i128::from(rate);
        }
    }

    /// Notes the rate of a flow in bit/s; one above the capacity is the capacity.
    pub(crate) fn insert(&mut self, now: Time, flow: u32, rate_bps: f64) {
        self.remove(flow);
        // `max` also turns what is no number into 0.
        let rate = ((rate_bps.max(0.0) * PER_BPS) as i64).min(self.capacity);
        self.flows.insert(flow, Entry { rate, seen: now });
        self.oldest = self.oldest.min(now);
        let at = self.sorted.partition_point(|&entry| entry < (rate, flow));
        self.sorted.insert(at, (rate, flow));
        self.total += i128::from(rate);
        if at < self.split {
            self.split += 1;
            self.below += i128::from(rate);
        }
    }

    fn split_up(&mut self) {
        self.below += i128::from(self.sorted[self.split].0);
        self.split += 1;
    }

    fn split_down(&mut self) {
        self.split -= 1;
        self.below -= i128::from(self.sorted[self.split].0);
    }

    /// The f at which Σ min(rate, f) over all flows, and over `n_more` that would take anything, is the capacity; in
    /// bit/s. There must be one: `n_more` is above 0, or the rates do not fit.
    pub(crate) fn level(&mut self, n_more: usize) -> f64 {
        let n = self.sorted.len() + n_more;
        loop {
            let (room, n_above) = (i128::from(self.capacity) - self.below, (n - self.split) as i128);
            let is_below = |at: usize| i128::from(self.sorted[at].0) * n_above <= room;
            if 0 < self.split && (n_above == 0 || !is_below(self.split - 1)) {
                self.split_down();
            } else if 1 < n_above && self.split < self.sorted.len() && is_below(self.split) {
                self.split_up();
            } else {
                return room as f64 / n_above as f64 / PER_BPS;
            }
        }
    }

    /// Number and sum (in bit/s) of the rates up to `at`.
    pub(crate) fn up_to(&mut self, at: f64) -> (usize, f64) {
        let at = (at.max(0.0) * PER_BPS) as i64;
        while self.sorted.get(self.split).is_some_and(|&(rate, _)| rate <= at) {
            self.split_up();
        }
        while 0 < self.split && at < self.sorted[self.split - 1].0 {
            self.split_down();
        }
        (self.split, self.below as f64 / PER_BPS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const G: f64 = 1e9;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    #[test]
    fn a_rate_falls_at_once_and_rises_after_its_wait() {
        let mut rate = PatientRate::new(us(10), 0.0);
        rate.jump(20.0);
        rate.aim(us(0), 30.0);
        assert_eq!((rate.rate, rate.next()), (20.0, us(10)));
        // Higher: waits on its own, behind the first.
        rate.aim(us(4), 50.0);
        // Lower than both: takes the place of both, and the first's time.
        rate.aim(us(6), 25.0);
        assert_eq!((rate.rate, rate.next()), (20.0, us(10)));
        rate.advance(us(10));
        assert_eq!((rate.rate, rate.next()), (25.0, Time::MAX));
        // A cut drops what waits.
        rate.aim(us(12), 40.0);
        rate.aim(us(13), 5.0);
        assert_eq!((rate.rate, rate.next()), (5.0, Time::MAX));
        // Without a wait a raise is immediate.
        let mut hasty = PatientRate::new(Time::ZERO, 1.0);
        hasty.aim(us(1), 7.0);
        assert_eq!((hasty.rate, hasty.next()), (7.0, Time::MAX));
    }

    #[test]
    fn one_packet_goes_round_until_the_flow_has_nothing_left() {
        let mut c = Circulation::new(us(30));
        assert_eq!(c.gives_up_at(us(1)), us(31), "the packet that will leave now");
        assert_eq!(c.poll(us(1), 5), Some(Message::Request));
        assert_eq!(c.poll(us(2), 5), None, "it is on its way");
        assert_eq!(c.returned(1.0), Some(Message::Request));
        assert_eq!(c.returned(1.0), None, "a copy does not count");
        assert_eq!(c.poll(us(11), 5), Some(Message::Request));
        assert_eq!(c.gives_up_at(us(12)), us(41));
        c.check_timeout(us(40));
        assert_eq!(c.poll(us(40), 5), None);
        c.check_timeout(us(41));
        assert_eq!(c.poll(us(41), 5), Some(Message::Request));
        assert_eq!((c.returned(2.0), c.gives_up_at(us(42))), (None, us(101)), "given up; the next has twice the time");
        // The exit does not wait for the packet on its way, which counts no more.
        assert_eq!(c.poll(us(45), 0), Some(Message::Exit));
        assert_eq!(c.returned(3.0), None);
        c.check_timeout(us(75));
        assert_eq!(c.poll(us(75), 0), Some(Message::Exit), "exits are sent again too");
        assert_eq!(c.returned(5.0), Some(Message::Exit));
        assert_eq!((c.poll(us(90), 0), c.gives_up_at(us(90))), (None, Time::MAX));
        // Lost bytes bring the flow back. It is looked after, as the request leaves without a timer.
        c.on_loss(us(94));
        assert_eq!(c.gives_up_at(us(94)), us(124));
        assert_eq!(c.poll(us(95), 1_000), Some(Message::Request));
        assert_eq!(c.returned(6.0), Some(Message::Request));
    }

    #[test]
    fn a_silent_flow_is_forgotten_after_the_timeout() {
        let mut table = RateTable::new(10.0 * G, us(100));
        table.insert(us(0), 1, 4.0 * G);
        table.insert(us(50), 2, 4.0 * G);
        table.expire(us(100));
        assert_eq!(table.len(), 2);
        table.expire(us(101));
        assert_eq!(table.len(), 1);
        // Flow 2's deadline is at 150 us; a message moves it.
        table.insert(us(150), 2, 3.0 * G);
        table.expire(us(200));
        assert_eq!(table.len(), 1);
        table.expire(us(251));
        assert_eq!((table.len(), table.total, table.below, table.split), (0, 0, 0, 0));
    }

    #[test]
    fn the_level_fills_the_link() {
        // 60 Gb/s; 10 + 3 x 16.667 fill it.
        let mut table = RateTable::new(60.0 * G, us(100));
        for (flow, gbps) in [(1, 10.0), (2, 20.0), (3, 40.0)] {
            table.insert(us(0), flow, gbps * G);
        }
        assert!((table.level(1) - 50.0 / 3.0 * G).abs() < 1.0);
        // 10 + 20 + 30: all of 60.
        assert!((table.level(0) - 30.0 * G).abs() < 1.0);
        assert!(!table.fit());
        assert_eq!(table.up_to(20.0 * G), (2, 30.0 * G));
        assert_eq!(table.up_to(9.9 * G), (0, 0.0));
        assert_eq!(table.total_and_largest(), (70.0 * G, 40.0 * G));
    }

    /// f by trying every number of flows below it.
    fn level_by_hand(capacity: f64, rates: &[f64], n_more: usize) -> f64 {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() + n_more;
        let mut sum = 0.0;
        for (k, rate) in sorted.iter().enumerate() {
            let f = (capacity - sum) / (n - k) as f64;
            if f < *rate {
                return f;
            }
            sum += rate;
        }
        (capacity - sum) / n_more as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        /// The moving split finds what a search from scratch finds, whatever came before.
        #[test]
        fn the_split_does_not_depend_on_history(
            steps in prop::collection::vec((0_u32..12, prop::option::of(0_u32..30), 0_u32..40), 1..80)
        ) {
            let mut table = RateTable::new(100.0, Time::MAX);
            let mut rates = BTreeMap::new();
            for (flow, rate, at) in steps {
                if let Some(rate) = rate {
                    table.insert(Time::ZERO, flow, f64::from(rate));
                    rates.insert(flow, f64::from(rate));
                } else {
                    table.remove(flow);
                    rates.remove(&flow);
                }
                let all: Vec<f64> = rates.values().copied().collect();
                let total: f64 = all.iter().sum();
                prop_assert!((table.level(1) - level_by_hand(100.0, &all, 1)).abs() < 1e-9);
                prop_assert_eq!(table.fit(), total <= 100.0);
                if 100.0 < total {
                    prop_assert!((table.level(0) - level_by_hand(100.0, &all, 0)).abs() < 1e-9);
                }
                let below: Vec<f64> = all.iter().copied().filter(|&rate| rate <= f64::from(at)).collect();
                prop_assert_eq!(table.up_to(f64::from(at)), (below.len(), below.iter().sum()));
            }
        }
    }
}
