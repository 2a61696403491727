//! Measurement of the time that rates take to reach the exact max-min optimum after every arrival and departure of a
//! flow (PERC, L. Jose et al., HotNets 2015, section 4.2), and flows that start and stop one after the other, each once
//! rates have settled.
//!
//! - A flow arrives when it starts, and departs when it has nothing left to send: with the last payload byte on the
//!   wire, or when it is stopped. Then it stops competing, though its bytes are still in flight. Retransmissions after
//!   a loss are not counted.
//! - Arrivals and departures of the same moment are one change, named by the last of them. A departure that leaves no
//!   flow is not a change.
//! - The optimum is that of the flows that compete: classes with weights, weights, demands, and the full capacity of
//!   every link of a path, including the hosts' links, in bits on the wire. The share of acknowledgments and control
//!   packets is within the tolerance.
//! - The rate compared is the rate that the sender allows itself: its pacing rate or its window over the base RTT of
//!   its path, whichever is less, in bits on the wire. Both are known at once; the arrival rate follows them by a round
//!   trip.
//! - Rates have converged at the first moment of the first stretch of `hold_rtts` in which all are within tolerance. A
//!   stretch that begins more than `give_up_rtts` after the change is too late.

use fairrate_control::Oracle;
use fairrate_units::Time;

use super::Hosts;
use super::subflows::allowed_bps;
use crate::config::{ProbeSpec, SimConfig};
use crate::core::observations::Observations;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, SenderIdx};
use crate::optimum::Optimum;
use crate::output::{ConvergenceSample, Observation};
use crate::table::Table;

const NO_PLACE: u32 = u32::MAX;
/// The value for "no time".
const NEVER: u64 = u64::MAX;

/// The state of the measurement.
pub(in crate::core) struct Convergence {
    tolerance: f64,
    hold_ps: u64,
    give_up_ps: u64,
    base_rtt: Time,
    solver: Optimum,
    /// Flows that compete, in any order.
    pub(super) active: Vec<Competitor>,
    /// Position in `active`, by flow.
    places: Table<FlowId, u32>,
    /// Number of flows whose rates are out of tolerance.
    n_off: usize,
    /// Time since which all rates are within tolerance; [`NEVER`]: some are not.
    since_ps: u64,
    /// Sample of the change after which rates have not settled yet.
    pub(super) open: Option<ConvergenceSample>,
    /// Samples of changes that were followed by the next change before rates settled.
    pub(super) overtaken: Vec<ConvergenceSample>,
    /// Number of the configuration's changes that are done.
    pub(super) n_changes: usize,
    /// Set while the last of them is a flow that has not started yet.
    pub(super) is_starting: bool,
}

/// The kinds of changes of the competing flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    /// A flow begins to compete.
    Arrival,
    /// A flow stops competing.
    Departure,
}

#[derive(Clone, Copy)]
pub(super) struct Competitor {
    flow: FlowId,
    path_base_rtt: Time,
    allowed_bps: f64,
    optimum_bps: f64,
}

impl Competitor {
    fn is_off(&self, tolerance: f64) -> bool {
        tolerance * self.optimum_bps < (self.allowed_bps - self.optimum_bps).abs()
    }
}

impl Convergence {
    /// Creates the measurement, if a probe asks for it.
    pub(super) fn new(config: &SimConfig, base_rtt: Time) -> Option<Box<Self>> {
        let probe = |probe: &ProbeSpec| match *probe {
            ProbeSpec::Convergence { tolerance, hold_rtts, give_up_rtts } => Some((tolerance, hold_rtts, give_up_rtts)),
            _ => None,
        };
        let (tolerance, hold_rtts, give_up_rtts) = config.probes.iter().find_map(probe)?;
        let rtts = |n: u32| base_rtt.as_ps().saturating_mul(u64::from(n));
        Some(Box::new(Self {
            tolerance,
            hold_ps: rtts(hold_rtts),
            give_up_ps: rtts(give_up_rtts),
            base_rtt,
            solver: Optimum::new(config, Oracle::MaxMin, &config.rates_at(Time::ZERO)),
            active: Vec::new(),
            places: vec![NO_PLACE; config.flows.len()].into(),
            n_off: 0,
            since_ps: NEVER,
            open: None,
            overtaken: Vec::new(),
            n_changes: 0,
            is_starting: false,
        }))
    }

    /// Returns `true` if rates have settled after the last of `n` changes.
    pub(super) fn is_done(&self, n: usize) -> bool {
        n == 0 || (n <= self.n_changes && !self.is_starting && self.open.is_none())
    }

    /// Opens the sample of a change, and ends the sample of the change before.
    fn open(&mut self, now_ps: u64, flow: FlowId, kind: ChangeKind) {
        let t = Time::from_ps(now_ps);
        self.overtaken.extend(self.open.take().filter(|open| open.t < t));
        let n_flows = self.active.len() as u32;
        let sample =
            ConvergenceSample { t, flow, arrival: kind == ChangeKind::Arrival, n_flows, time: None, rtts: None };
        self.open = (0 < n_flows).then_some(sample);
    }

    /// Records that flow `at` may send at `allowed_bps` now; returns `true` if that begins a stretch in which all rates
    /// are within tolerance.
    fn allow(&mut self, at: usize, allowed_bps: f64, now_ps: u64) -> bool {
        let flow = &mut self.active[at];
        let was_off = flow.is_off(self.tolerance);
        flow.allowed_bps = allowed_bps;
        let is_off = flow.is_off(self.tolerance);
        self.n_off = self.n_off + usize::from(is_off) - usize::from(was_off);
        self.restart_stretch(now_ps)
    }

    /// Begins or ends a stretch; returns `true` if it begins.
    fn restart_stretch(&mut self, now_ps: u64) -> bool {
        if 0 < self.n_off {
            self.since_ps = NEVER;
            return false;
        }
        let begins = self.since_ps == NEVER;
        self.since_ps = self.since_ps.min(now_ps);
        begins
    }

    /// Closes the open sample if rates have settled, or the time to settle is over.
    pub(super) fn close(&mut self, now_ps: u64) -> Option<ConvergenceSample> {
        let open = self.open?;
        let last_ps = open.t.as_ps().saturating_add(self.give_up_ps);
        let in_time = self.since_ps <= last_ps && self.since_ps != NEVER;
        if in_time && self.since_ps.saturating_add(self.hold_ps) <= now_ps {
            self.open = None;
            let time = Time::from_ps(self.since_ps) - open.t;
            let rtts = time.as_ps() as f64 / self.base_rtt.as_ps() as f64;
            return Some(ConvergenceSample { time: Some(time), rtts: Some(rtts), ..open });
        }
        (last_ps <= now_ps && !in_time).then(|| self.open.take()).flatten()
    }
}

impl Hosts {
    /// Adds a flow that starts to the competing flows. Its rate is compared with its next decision.
    pub(super) fn arrive(&mut self, w: &mut World, id: FlowId) {
        let Some(c) = &mut self.convergence else { return };
        let first = self.connections.first_subflow(id).unwrap_or(id);
        let path_base_rtt = w.run.flow_context(first, w.clock.now()).path_base_rtt;
        c.places[id] = c.active.len() as u32;
        c.active.push(Competitor { flow: id, path_base_rtt, allowed_bps: 0.0, optimum_bps: 0.0 });
        c.is_starting = false;
        c.open(w.clock.now_ps, id, ChangeKind::Arrival);
        self.solve(w);
    }

    /// Removes a flow that has nothing left to send from the competing flows. May be called more than once.
    #[inline]
    pub(super) fn depart(&mut self, w: &mut World, id: FlowId) {
        if self.convergence.is_some() {
            self.stop_competing(w, id);
        }
    }

    fn stop_competing(&mut self, w: &mut World, id: FlowId) {
        let Some(c) = &mut self.convergence else { return };
        let at = std::mem::replace(&mut c.places[id], NO_PLACE);
        if at == NO_PLACE {
            return;
        }
        c.active.swap_remove(at as usize);
        if let Some(moved) = c.active.get(at as usize) {
            c.places[moved.flow] = at;
        }
        c.open(w.clock.now_ps, id, ChangeKind::Departure);
        self.solve(w);
    }

    /// Computes the optimum anew and compares all rates with it.
    fn solve(&mut self, w: &mut World) {
        let Some(mut c) = self.convergence.take() else { return };
        c.solver.clear();
        for competitor in &c.active {
            let spec = &w.run.config.flows[competitor.flow.index()];
            // A link that a connection can avoid does not bind the connection.
            let path = w.run.path_of(competitor.flow);
            let binding = path.filter(|&port| self.all_subflows_use(&w.run, competitor.flow, port));
            c.solver.add(&w.run.config, spec, binding);
        }
        for (competitor, &optimum_bps) in c.active.iter_mut().zip(c.solver.solve()) {
            competitor.optimum_bps = optimum_bps;
        }
        let now_ps = w.clock.now_ps;
        c.n_off = c.active.iter().filter(|competitor| competitor.is_off(c.tolerance)).count();
        c.since_ps = NEVER;
        c.restart_stretch(now_ps);
        if !c.overtaken.is_empty() {
            w.clock.schedule(now_ps, EventKind::Settled, 0_u32);
        }
        if c.since_ps != NEVER {
            w.clock.schedule(now_ps.saturating_add(c.hold_ps), EventKind::Settled, 0_u32);
        }
        w.clock.schedule(now_ps.saturating_add(c.give_up_ps), EventKind::Settled, 0_u32);
        self.convergence = Some(c);
    }

    /// Compares the rates after a decision of a sender's controller has come into force.
    #[inline]
    pub(super) fn follow(&mut self, w: &mut World, slot: SenderIdx) {
        if self.convergence.is_some() {
            self.compare(w, slot);
        }
    }

    fn compare(&mut self, w: &mut World, slot: SenderIdx) {
        let Some(c) = &self.convergence else { return };
        let sender = self.sender(slot);
        let user_flow = w.run.flow(sender.flow).parent;
        let at = c.places[user_flow] as usize;
        let Some(competitor) = c.active.get(at) else { return };
        let line_rate = self.line_rate(w, sender.host).as_bps_f64();
        let alone = || allowed_bps(&w.run, sender, competitor.path_base_rtt).min(line_rate);
        let allowed_bps = self.allowed_by_subflows(w, user_flow).unwrap_or_else(alone);
        let Some(c) = &mut self.convergence else { return };
        if c.allow(at, allowed_bps, w.clock.now_ps) {
            w.clock.schedule(w.clock.now_ps.saturating_add(c.hold_ps), EventKind::Settled, 0_u32);
        }
    }

    /// Reports the open samples at the end of the run, as rates that have not settled.
    pub(in crate::core) fn close_convergence(&mut self, observed: &mut Observations) {
        let Some(c) = &mut self.convergence else { return };
        let open = c.open.take();
        c.overtaken.drain(..).chain(open).for_each(|sample| observed.add(Observation::Convergence(sample)));
    }
}
