//! How long rates take to reach the exact max-min optimum after every arrival and departure of a flow (PERC, L. Jose et
//! al., HotNets 2015, section 4.2), and flows that come and go one after the other, each once rates have settled.
//!
//! - A flow arrives when it starts, and departs when it has nothing left to send: with the last payload byte on the
//!   wire, or when it is stopped. Then it stops competing, though its bytes are still on their way. What it may have to
//!   send again after a loss is not counted.
//! - Arrivals and departures of the same moment are one change, named by the last of them. A departure that leaves no
//!   flow is none.
//! - The optimum is that of the flows that compete: weights, demands, and the full capacity of every link of a path,
//!   the hosts' included, in bits on the wire. What acknowledgments and control packets take is within the tolerance.
//! - The rate compared is what the sender allows itself: its pacing rate or its window over the base RTT of its path,
//!   whichever is less, in bits on the wire. Both are known at once; what arrives follows them by a round trip.
//! - Rates have converged at the first moment of the first stretch of `hold_rtts` in which all are within tolerance. A
//!   stretch that begins more than `give_up_rtts` after the change comes too late.

use fairrate_allocate::{LinkId, MaxMin};
use fairrate_units::{Rate, Time};

use super::Core;
use super::told::Told;
use crate::config::{Change, ProbeSpec, SimConfig};
use crate::engine::EventKind;
use crate::ids::{FlowId, PortId};
use crate::output::ConvergenceSample;
use crate::topology::Topology;
use crate::transport::{NO_SENDER, Sender};

const NO_PLACE: u32 = u32::MAX;
/// No time.
const NEVER: u64 = u64::MAX;

/// A solver for the links of a network: links are numbered as their egress ports.
pub(crate) fn solver_of(topology: &Topology) -> MaxMin {
    MaxMin::new((0..topology.n_ports() as u32).map(|port| topology.link(PortId(port)).rate.as_bps_f64()))
}

/// A flow's demand as the solver wants it.
pub(crate) fn demand_bps(demand: Rate) -> f64 {
    if demand == Rate::MAX { f64::INFINITY } else { demand.as_bps_f64().max(1.0) }
}

/// The state of the measurement.
pub(super) struct Convergence {
    tolerance: f64,
    hold_ps: u64,
    give_up_ps: u64,
    base_rtt: Time,
    solver: MaxMin,
    /// Flows that compete, in no order that matters.
    active: Vec<Competitor>,
    /// For each flow its position among them.
    places: Vec<u32>,
    /// Flows whose rates are out of tolerance.
    n_off: usize,
    /// Since when none is; [`NEVER`]: some are.
    since_ps: u64,
    /// The change that rates have not settled after.
    open: Option<ConvergenceSample>,
    /// Samples of changes that were overtaken by the next.
    overtaken: Vec<ConvergenceSample>,
    /// Changes of the configuration that are done.
    n_changes: usize,
    /// Whether the last of them is a flow that has not started yet.
    is_starting: bool,
}

#[derive(Clone, Copy)]
struct Competitor {
    flow: u32,
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
    /// The measurement, if one of the probes asks for it.
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
            solver: solver_of(&config.topology),
            active: Vec::new(),
            places: vec![NO_PLACE; config.flows.len()],
            n_off: 0,
            since_ps: NEVER,
            open: None,
            overtaken: Vec::new(),
            n_changes: 0,
            is_starting: false,
        }))
    }

    /// Whether rates have settled after the last of `n` changes.
    fn is_done(&self, n: usize) -> bool {
        n == 0 || (n <= self.n_changes && !self.is_starting && self.open.is_none())
    }

    /// Opens the sample of a change, which overtakes the one before.
    fn open(&mut self, now_ps: u64, flow: u32, arrival: bool) {
        let t = Time::from_ps(now_ps);
        self.overtaken.extend(self.open.take().filter(|open| open.t < t));
        let n_flows = self.active.len() as u32;
        let sample = ConvergenceSample { t, flow: FlowId(flow), arrival, n_flows, time: None, rtts: None };
        self.open = (0 < n_flows).then_some(sample);
    }

    /// Notes what a flow may send now. True if that begins a stretch in which all rates are within tolerance.
    fn allow(&mut self, at: usize, allowed_bps: f64, now_ps: u64) -> bool {
        let flow = &mut self.active[at];
        let was_off = flow.is_off(self.tolerance);
        flow.allowed_bps = allowed_bps;
        let is_off = flow.is_off(self.tolerance);
        self.n_off = self.n_off + usize::from(is_off) - usize::from(was_off);
        self.restart_stretch(now_ps)
    }

    /// Begins or ends a stretch. True if it begins.
    fn restart_stretch(&mut self, now_ps: u64) -> bool {
        if 0 < self.n_off {
            self.since_ps = NEVER;
            return false;
        }
        let begins = self.since_ps == NEVER;
        self.since_ps = self.since_ps.min(now_ps);
        begins
    }

    /// Closes the open sample if rates have settled, or will not any more.
    fn close(&mut self, now_ps: u64) -> Option<ConvergenceSample> {
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

impl Core {
    /// Whether all changes are done and rates have settled after the last.
    pub(super) fn changes_are_done(&self) -> bool {
        self.convergence.as_ref().is_none_or(|c| c.is_done(self.config.changes.len()))
    }

    /// Plans the first change, if no flow starts by itself.
    pub(super) fn start_convergence(&mut self) {
        debug_assert!(self.config.changes.is_empty() || self.convergence.is_some(), "changes wait for convergence");
        if self.convergence.is_some() && self.starts.is_empty() && !self.config.changes.is_empty() {
            self.schedule(0, EventKind::Settled, 0);
        }
    }

    /// A flow starts to compete. Its rate is told next.
    pub(super) fn arrive(&mut self, id: u32, path_base_rtt: Time) {
        let Some(c) = &mut self.convergence else { return };
        c.places[id as usize] = c.active.len() as u32;
        c.active.push(Competitor { flow: id, path_base_rtt, allowed_bps: 0.0, optimum_bps: 0.0 });
        c.is_starting = false;
        c.open(self.now_ps, id, true);
        self.solve();
    }

    /// A flow has nothing left to send. May be told more than once.
    pub(super) fn depart(&mut self, id: u32) {
        let Some(c) = &mut self.convergence else { return };
        let at = std::mem::replace(&mut c.places[id as usize], NO_PLACE);
        if at == NO_PLACE {
            return;
        }
        c.active.swap_remove(at as usize);
        if let Some(moved) = c.active.get(at as usize) {
            c.places[moved.flow as usize] = at;
        }
        c.open(self.now_ps, id, false);
        self.solve();
    }

    /// Computes the optimum anew and compares all rates with it.
    fn solve(&mut self) {
        let Some(mut c) = self.convergence.take() else { return };
        c.solver.clear();
        for competitor in &c.active {
            let (flow, spec) = (&self.flows[competitor.flow as usize], &self.config.flows[competitor.flow as usize]);
            let start = flow.data_route as usize - 1;
            let ports = self.paths[start..start + flow.n_hops as usize].iter();
            // Where a connection can go around a link, the link does not bind it.
            let binding = ports.filter(|&&port| self.all_subflows_use(competitor.flow, port));
            c.solver.add(binding.map(|&port| LinkId(port)), spec.weight, demand_bps(spec.demand));
        }
        for (competitor, &optimum_bps) in c.active.iter_mut().zip(c.solver.solve()) {
            competitor.optimum_bps = optimum_bps;
        }
        c.n_off = c.active.iter().filter(|competitor| competitor.is_off(c.tolerance)).count();
        c.since_ps = NEVER;
        c.restart_stretch(self.now_ps);
        let (hold_ps, give_up_ps, settled) = (c.hold_ps, c.give_up_ps, c.since_ps != NEVER);
        let has_overtaken = !c.overtaken.is_empty();
        self.convergence = Some(c);
        if has_overtaken {
            self.schedule(self.now_ps, EventKind::Settled, 0);
        }
        if settled {
            self.schedule(self.now_ps.saturating_add(hold_ps), EventKind::Settled, 0);
        }
        self.schedule(self.now_ps.saturating_add(give_up_ps), EventKind::Settled, 0);
    }

    /// Follows the decision of a flow's controller that is in force now.
    pub(super) fn follow(&mut self, slot: u32) {
        let Some(c) = &self.convergence else { return };
        let sender = self.senders[slot as usize].as_ref().expect("the slot is in use");
        let spec = self.flows[sender.flow as usize].spec;
        let at = c.places[spec as usize] as usize;
        let Some(competitor) = c.active.get(at) else { return };
        let allowed_bps =
            self.allowed_by_subflows(spec).unwrap_or_else(|| self.allowed_bps(sender, competitor.path_base_rtt));
        let Some(c) = &mut self.convergence else { return };
        if c.allow(at, allowed_bps, self.now_ps) {
            let at = self.now_ps.saturating_add(c.hold_ps);
            self.schedule(at, EventKind::Settled, 0);
        }
    }

    /// What a sender may send by its rate, and by its window every base round-trip time.
    pub(super) fn allowed_bps(&self, sender: &Sender, path_base_rtt: Time) -> f64 {
        let (mtu, header) = (self.constants.mtu as f64, self.constants.data_header as f64);
        let allowed_bps = sender.rate.as_bps_f64();
        if sender.cwnd == u64::MAX {
            return allowed_bps;
        }
        let wire_bits = sender.cwnd as f64 * (mtu + header) / mtu * 8.0;
        allowed_bps.min(wire_bits * 1e12 / path_base_rtt.as_ps() as f64)
    }

    /// Rates may have settled, or may have had all the time they get.
    pub(super) fn on_settled(&mut self) {
        let Some(c) = &mut self.convergence else { return };
        c.overtaken.drain(..).for_each(|sample| self.story.push(Told::Convergence(sample)));
        let closed = c.close(self.now_ps);
        if let Some(sample) = closed {
            self.story.push(Told::Convergence(sample));
        }
        let nobody_left = c.active.is_empty() && c.open.is_none() && !c.is_starting;
        if closed.is_some() || nobody_left {
            self.change_next();
        }
    }

    /// Does the next of the changes that has an effect.
    fn change_next(&mut self) {
        while let Some(c) = &mut self.convergence
            && let Some(&change) = self.config.changes.get(c.n_changes)
        {
            c.n_changes += 1;
            match change {
                Change::Start(FlowId(id)) => {
                    c.is_starting = true;
                    let flow = &self.flows[id as usize];
                    self.finite_left += u64::from(!flow.endless);
                    let at = self.now_ps.max(flow.start_ps);
                    self.schedule(at, EventKind::FlowStart, id);
                    return;
                }
                Change::Stop(FlowId(id)) if self.flows[id as usize].sender == NO_SENDER => {}
                Change::Stop(FlowId(id)) => {
                    self.on_flow_stop(id);
                    if self.convergence.as_ref().is_some_and(|c| c.open.is_some()) {
                        return;
                    }
                }
            }
        }
    }

    /// The run is over: rates will not settle any more.
    pub(super) fn close_convergence(&mut self) {
        let Some(c) = &mut self.convergence else { return };
        let open = c.open.take();
        c.overtaken.drain(..).chain(open).for_each(|sample| self.story.push(Told::Convergence(sample)));
    }
}
