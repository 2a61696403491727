//! `rocc`: RoCC. D. Menikkumbura et al., "Congestion Control for Datacenter Networks: A Control-Theoretic Approach",
//! IEEE TPDS 34(5), 2023, algorithms 1 and 2.
//!
//! | paper            | here                     | unit                  |
//! |------------------|--------------------------|-----------------------|
//! | F, Fmin, Fmax    | `f`, `f_min`, `f_max`    | ΔF                    |
//! | Qcur, Qold       | `q_cur`, `q_old`         | ΔQ                    |
//! | Qref, Qmid, Qmax | `q_ref`, `q_mid`, `q_max` | ΔQ                   |
//! | α̃, β̃             | `alpha`, `beta`          | ΔF/ΔQ                 |
//! | ratio            | 2^`shift`                | 1                     |
//! | T                | `period`                 | time                  |
//! | Rcur, CPcur      | `Limiter`                | bit/s, port           |
//! | Rmax             | `line`                   | bit/s                 |
//!
//! Readings: the assignments of AUTO_TUNE are after its loop, because inside it α and β have no value while F ≥ Fmax/2.
//! The limits "10", "4 K" and "10 K" are in units of ΔF. F starts at Fmax; the authors' code starts at 0. The paper has
//! no duration for the recovery timer; the code's is 55 µs, so that a rate rises as soon as one notice is missing. A
//! limiter is removed when its rate has reached the line rate (code: ≥; paper: >); its flow's data waits at the host,
//! so that no queue of its own has to empty first. A flow without a limiter accepts any notice.
//!
//! If hosts compute (section III-F), F must be stored between periods: here the port stores it, and its notices carry
//! the values at the start of the period, so that every host gets the port's own result.
//!
//! A port's agent ticks at the multiples of T. While F = Fmax and queue, Qold and flow table are empty, a tick changes
//! nothing and sends no notice. The agent then sleeps until the first tick after a packet; the results are the same.

mod law;

use fairrate_units::{Bytes, Rate, Time};

use self::law::{Law, sane};
use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::draws::Draws;
use crate::flow_table::{FlowTable, TableSpec};
use crate::limits::RateLimiter;
use crate::needs::{Bucket, Needs, NetworkNeeds};
use crate::port::{Actions, Notice, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView};

pub use self::law::FairRate;
pub use crate::flow_table::{CircularTable, Recipients};

choice! {
    /// The source of a port's thresholds and gains.
    pub enum Thresholds {
        /// The port's rate.
        ByRate = "by-rate",
        /// The parameters, the same at every port.
        Given = "given",
    }
}

choice! {
    /// The number format of a port's calculation.
    pub enum Arithmetic {
        /// Fixed point: whole multiples of the units, with a few fraction bits for F.
        Fixed = "fixed",
        /// Floating point.
        Float = "float",
    }
}

choice! {
    /// The place where the rate is computed.
    pub enum RateAt {
        /// The port.
        Switch = "switch",
        /// The flow's host.
        Host = "host",
    }
}

choice! {
    /// A port's first fair rate.
    pub enum InitialRate {
        /// Fmax.
        Max = "max",
        /// Zero, which becomes Fmin in the first period.
        Zero = "zero",
    }
}

choice! {
    /// The notices of other ports that a flow takes.
    pub enum Acceptance {
        /// Those with its rate or a lower one.
        LowerOrEqual = "lower-or-equal",
        /// Those with a lower rate.
        Lower = "lower",
    }
}

choice! {
    /// The gains of a port whose queue is nearly empty.
    pub enum LowQueueGain {
        /// The gains of all other cases: divided by the ratio of the rate's region.
        Printed = "printed",
        /// Undivided gains, while Qcur and Qold are below Qref/8.
        Full = "full",
    }
}

algorithm_config! {
    /// Parameters of RoCC.
    pub struct RoccConfig {
        /// Time between two computations of a port, T (§VI).
        period: Time = Time::from_us(40), tune = Log("5us", "200us");
        /// Unit of rates, ΔF (§VI).
        rate_unit: Rate = Rate::from_mbps(10), tune = Log("1Mbps", "100Mbps");
        /// Unit of queue lengths, ΔQ (§VI).
        queue_unit: Bytes = Bytes::new(600), tune = Log("100B", "6KB");
        /// Slowest fair rate, Fmin (§VI: 10 units).
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// Source of a port's five constants: its rate, or the values given. By rate: §VI has them for 40 and 100 Gb/s;
        /// any port takes the nearer set by ratio, and its queue lengths in proportion to its rate.
        thresholds: Thresholds = Thresholds::ByRate;
        /// Reference queue Qref, for `thresholds = "given"` (§VI: 150 KB at 40, 300 KB at 100 Gb/s).
        q_ref: Bytes = Bytes::new(150_000), tune = Log("20KB", "300KB");
        /// Growth in a period that halves F, Qmid, for `thresholds = "given"` (§VI: 300 KB; 600 KB at 100 Gb/s).
        q_mid: Bytes = Bytes::new(300_000), tune = Log("60KB", "2MB");
        /// Queue that sets F to Fmin, Qmax, for `thresholds = "given"` (§VI: 360 KB; 660 KB at 100 Gb/s).
        q_max: Bytes = Bytes::new(360_000), tune = Log("300KB", "4MB");
        /// Gain of the distance to Qref, in rate units a queue unit, for `thresholds = "given"` (§VI: 0.3; 0.45 at 100
        /// Gb/s).
        alpha: f64 = 0.3, in 0.0..=1000.0, tune = Log(0.02, 3.0);
        /// Gain of the growth, in rate units a queue unit, for `thresholds = "given"` (§VI: 1.5; 2.25 at 100 Gb/s).
        beta: f64 = 1.5, in 0.0..=1000.0, tune = Log(0.1, 15.0);
        /// Gains while Qcur and Qold are below Qref/8: divided by ratio as elsewhere (Algorithm 1), or whole (ratio 1),
        /// so that F climbs sooner from Fmin (authors' code of their DPDK switch).
        low_queue_gain: LowQueueGain = LowQueueGain::Printed;
        /// A port's first fair rate (the paper gives none; authors' code: zero).
        initial: InitialRate = InitialRate::Max, omnet = InitialRate::Zero;
        /// Arithmetic of ports: fixed or floating point (§VI: fixed).
        arithmetic: Arithmetic = Arithmetic::Fixed;
        /// Bits behind the point of F in fixed point (ours; authors' code: 0, with which an error of the queue below
        /// 1/alpha units goes unseen; notices tell whole units).
        fraction_bits: u32 = 8, omnet = 0, in 0.0..=16.0, tune = Linear(0, 16);
        /// Place where the rate is computed: the switch (§III-B) or, from what it sends, the host (§III-F).
        rate_at: RateAt = RateAt::Switch;
        /// Time without an accepted notice after which a rate doubles (authors' code; the paper gives none).
        rise_interval: Time = Time::from_us(55), tune = Log("10us", "1ms");
        /// Rate limiter of a flow: packets spaced by the rate (ours; the paper gives none), or the authors' token
        /// bucket, whose credit is not bounded, so that a flow which was paused catches up.
        limiter: RateLimiter = RateLimiter::Spaced, omnet = RateLimiter::Bucket;
        /// Notices of other ports that a flow takes: of its rate or a lower one (algorithm 2), or of a lower one
        /// (authors' code).
        accept: Acceptance = Acceptance::LowerOrEqual, omnet = Acceptance::Lower;
        /// Flows to which a port sends its rate (§III-D; default: those in its queue).
        table: Recipients = Recipients::InQueue;
        /// Entries of a bounded table, or samples of the shadow buffer; 0: Fmax/Fmin, the most flows that a rate of
        /// Fmin leaves room for (§III-D).
        table_size: u32 = 0, in 0.0..=1_000_000.0;
        /// Time without a packet after which `aged` drops a flow (ours: five periods; at Fmin packets are two apart).
        /// For `circular`, rounded down to whole periods, of which there are 1 to 7.
        table_age: Time = Time::from_us(200), tune = Log("40us", "2ms");
        /// Probability that `afd-ft`, `elephant-trap` and `bubble-cache` look at a packet (ours; the paper gives none).
        table_sampling: f64 = 0.1, in 0.0001..=1.0, tune = Log(0.01, 1.0);
        /// Count from which `elephant-trap` tells a flow (ours; the paper gives none).
        table_threshold: u32 = 2, in 1.0..=1_000_000.0, tune = Linear(1, 16);
    }
}

impl AlgorithmSpec for RoccConfig {
    type Controller = Rocc;
    type Port = CongestionPoint;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ports: PortScope::Switches, ..NetworkNeeds::NOTHING },
            pacing: self.limiter.needs(Bucket::Emptied),
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Rocc {
        let line = flow.line_rate.as_bps_f64();
        Rocc { config: self.clone(), line, min: self.min_rate.as_bps_f64().min(line), limiter: None, due: Time::MAX }
    }
    fn build_port(&self, port: &PortContext) -> Option<CongestionPoint> {
        let law = Law::new(self, port.rate);
        let (f_min, f_max) = law.bounds();
        let size = if self.table_size == 0 { (f_max / f_min) as usize } else { self.table_size as usize };
        let (age, sampling, threshold) = (self.table_age, self.table_sampling, self.table_threshold);
        let periods = (age.as_ps() / self.period.as_ps().max(1)).clamp(1, MOST_PERIODS) as u32;
        let table = TableSpec { kind: self.table, size, age, sampling, threshold, periods };
        let f = match self.initial {
            InitialRate::Max => f_max,
            InitialRate::Zero => 0.0,
        };
        Some(CongestionPoint {
            port: port.port,
            rate: port.rate,
            period: self.period,
            rate_at: self.rate_at,
            f,
            q_old: 0.0,
            table: FlowTable::new(&table, Draws::new(port.seed, port.port)),
            n_ticks: 0,
            due: if f < f_max { self.period } else { Time::MAX },
            law,
        })
    }
}

/// Most periods without a packet that an entry of the table `circular` counts, with three bits.
const MOST_PERIODS: u64 = 7;

/// An egress port under RoCC.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    port: u32,
    rate: Rate,
    period: Time,
    rate_at: RateAt,
    law: Law,
    f: f64,
    q_old: f64,
    table: FlowTable,
    /// Number of ticks that have happened or been skipped because they change nothing.
    n_ticks: u64,
    /// Time of the next tick; [`Time::MAX`] while asleep.
    due: Time,
}

impl CongestionPoint {
    /// Returns the values of a notice: the computed rate, or the inputs of its calculation if hosts compute.
    fn message(&self, f: f64, q_cur: f64) -> [f64; 4] {
        match self.rate_at {
            RateAt::Switch => [self.law.as_sent(f), 0.0, 0.0, 0.0],
            RateAt::Host => [self.f, q_cur, self.q_old, self.rate.as_bps_f64()],
        }
    }

    /// Returns the time of the first tick, not before `now`, that has not happened.
    fn tick_from(&self, now: Time) -> Time {
        let n = now.as_ps().div_ceil(self.period.as_ps()).max(self.n_ticks + 1);
        Time::from_ps(n.saturating_mul(self.period.as_ps()))
    }
}

impl PortAgent for CongestionPoint {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        // Any packet that joins starts the clock.
        kind == PortPacketKind::Data || step == PortStep::Enqueue
    }

    #[inline]
    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind == PortPacketKind::Data {
            self.table.on_enqueue(view.now, packet.flow);
        }
        if self.due == Time::MAX {
            self.due = self.tick_from(view.now);
        }
    }

    fn on_dequeue(&mut self, _: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind == PortPacketKind::Data {
            self.table.on_dequeue(packet.flow);
        }
    }

    /// Ends a period: computes the rate and sends notices to the flows of the table.
    fn on_timer(&mut self, view: &PortView, actions: &mut Actions) {
        if view.now < self.due {
            return;
        }
        let q_cur = self.law.queue(view.queue_bytes);
        let f = self.law.next(self.f, q_cur, self.q_old);
        let values = self.message(f, q_cur);
        (self.f, self.q_old) = (f, q_cur);
        self.table.expire(view.now);
        self.table.for_each(|flow| actions.notices.push(Notice { flow, port: self.port, values }));
        self.n_ticks = view.now.as_ps() / self.period.as_ps();
        let at_rest = view.queue_bytes == 0 && self.law.bounds().1 <= f && self.table.is_silent();
        self.due = if at_rest { Time::MAX } else { self.tick_from(view.now) };
    }

    fn timer(&self) -> Time {
        self.due
    }
}

/// The rate limiter of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limiter {
    /// The rate Rcur, in bit/s.
    rate: f64,
    /// The congestion point CPcur.
    port: u32,
}

/// A flow under RoCC.
#[derive(Clone, Debug)]
pub struct Rocc {
    config: RoccConfig,
    line: f64,
    min: f64,
    limiter: Option<Limiter>,
    /// Expiry of the recovery timer; [`Time::MAX`] without a limiter.
    due: Time,
}

impl Rocc {
    /// Returns the rate in a notice in bit/s (line 2 of algorithm 2), computed here if the port leaves that to hosts.
    fn rate_in(&self, notice: &Notice) -> f64 {
        let [f, q_cur, q_old, port_rate] = notice.values;
        let f = match self.config.rate_at {
            RateAt::Switch => sane(f),
            RateAt::Host => {
                let law = Law::new(&self.config, Rate::from_bps_f64(port_rate));
                law.as_sent(law.next(f, q_cur, q_old))
            }
        };
        (f * self.config.rate_unit.as_bps_f64()).max(self.min)
    }

    /// Applies a notice's rate as PROCESS_CNP, lines 4 to 7.
    fn accept(&mut self, now: Time, rate: f64, port: u32) {
        let is_low = |current: f64| match self.config.accept {
            Acceptance::LowerOrEqual => rate <= current,
            Acceptance::Lower => rate < current,
        };
        if self.limiter.is_none_or(|l| l.port == port || is_low(l.rate)) {
            self.limiter = Some(Limiter { rate, port });
            self.due = now.saturating_add(self.config.rise_interval);
        }
    }

    /// Applies TIMER_EXPIRED, lines 9 to 13, for all expiries up to `now`. A rate doubles at most as often as from the
    /// slowest rate to line rate.
    fn advance(&mut self, now: Time) {
        while self.due <= now
            && let Some(limiter) = &mut self.limiter
        {
            if self.line <= limiter.rate {
                (self.limiter, self.due) = (None, Time::MAX);
            } else {
                limiter.rate *= 2.0;
                self.due = self.due.saturating_add(self.config.rise_interval);
            }
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = self.limiter.map_or(self.line, |l| l.rate.min(self.line));
        Allowance { cwnd: Bytes::MAX, rate: Rate::from_bps_f64(rate), timer: self.due }
    }
}

impl Controller for Rocc {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.on_timer(ack.now)
    }
    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.on_timer(now)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.on_timer(now)
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.advance(now);
        self.allowance()
    }
    fn on_notice(&mut self, now: Time, notice: &Notice) -> Option<Allowance> {
        // A notice at the very end of the timer is in time.
        self.advance(now.saturating_sub(Time::from_ps(1)));
        let rate = self.rate_in(notice);
        self.accept(now, rate, notice.port);
        Some(self.on_timer(now))
    }
}

#[cfg(test)]
mod tests;
