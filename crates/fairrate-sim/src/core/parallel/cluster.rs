//! The parts of a network, each with its own clock and events, and the windows of time in which no part can be affected
//! by another (conservative synchronisation: K. M. Chandy and J. Misra, IEEE TSE 1979; windows as in B. D. Lubachevsky,
//! CACM 1989).
//!
//! A window begins with the next event of all parts and is as long as the least delay of a link between two of them.
//! Parts send packets to each other as mail, which they read when their next round begins.
//!
//! Probes sample between two epochs, and a run whose work is done ends with an epoch. The length of an epoch is the
//! least delay of a link between racks, whether or not such a link is cut, or a microsecond if that is longer. Epochs
//! begin with the next event too. So nothing depends on the number of parts, and results are the same bits for one part
//! and for many. A single part processes an epoch at once.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use fairrate_units::Time;

use super::crew::{Crew, Habits, lock};
use super::merge;
use super::meter::Work;
use crate::config::SimConfig;
use crate::core::build::plan;
use crate::core::probes::Probes;
use crate::core::run::Run;
use crate::core::stall::{self, FiniteWatch};
use crate::core::{Mode, Part};
use crate::engine::Event;
use crate::ids::{FlowId, PortId};
use crate::output::{Drops, FlowOutcome, GroupTotals, PortTotals, RunTotals, Sink};
use crate::simulation::{SimError, Switching};

/// Number of events between two checks for stalls.
const CHECK_EVERY: u64 = 1 << 16;

/// Least length of an epoch in picoseconds.
const LEAST_EPOCH_PS: u64 = 1_000_000;

/// The step that follows an epoch.
enum Next {
    /// Another epoch.
    Events,
    /// Probes have sampled; this is their number.
    Probes(u64),
    /// The end of the run.
    Nothing,
}

/// A run: the parts of its network, and the state shared by all of them.
pub(crate) struct Cluster {
    run: Arc<Run>,
    parts: Vec<Mutex<Part>>,
    /// State that the crews of two slices of the run share.
    habits: Habits,
    probes: Probes,
    /// Number of the run's snapshots that have been taken.
    n_snapshots: usize,
    /// Least time, in picoseconds, until an action of one part can affect another.
    cut_ps: u64,
    /// The same time if all links between racks were cut: the least length of an epoch.
    lookahead_ps: u64,
    end_ps: u64,
    /// The epoch ends before this time.
    epoch_end_ps: u64,
    /// `true` if events are left in the epoch.
    is_open: bool,
    /// Simulated time between two epochs.
    now_ps: u64,
    n_probed: u64,
    /// Number of events since the last check for stalls.
    checked_events: u64,
    /// Watch over finite flows, if endless ones could hide that they are stuck.
    finite: Option<FiniteWatch>,
}

impl Cluster {
    /// Builds the network in up to `threads` parts, whose switches work as `switching` says.
    pub(crate) fn new(config: SimConfig, threads: usize, switching: Switching) -> Self {
        let plan = plan(config, threads, switching);
        let build = |number: usize| Mutex::new(Part::new(&plan, number as u16));
        let parts = std::thread::scope(|scope| {
            let others: Vec<_> = (1..plan.n_parts()).map(|number| scope.spawn(move || build(number))).collect();
            let built = others.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            std::iter::once(build(0)).chain(built).collect()
        });
        let run = plan.run;
        Self {
            parts,
            habits: Habits::default(),
            probes: Probes::new(&run.config),
            n_snapshots: 0,
            cut_ps: plan.cut_ps,
            lookahead_ps: plan.lookahead_ps,
            end_ps: run.config.stop.at.map_or(u64::MAX, Time::as_ps),
            epoch_end_ps: 0,
            is_open: false,
            now_ps: 0,
            n_probed: 0,
            checked_events: 0,
            finite: FiniteWatch::new(&run),
            run,
        }
    }

    /// Lets the calling thread do all parts in turn and measure their work.
    pub(crate) fn measure_work(&mut self) {
        self.habits.work = Some(Mutex::new(Work::new(self.parts.len())));
    }

    /// Returns the work so far, if it is measured.
    pub(crate) fn measured(&self) -> Option<Work> {
        self.habits.work.as_ref().map(|work| lock(work).clone())
    }

    /// Returns the simulated time.
    pub(crate) fn now(&self) -> Time {
        Time::from_ps(reached_ps(&self.parts).max(self.now_ps))
    }

    /// Returns the run's configuration.
    pub(crate) fn config(&self) -> &SimConfig {
        &self.run.config
    }

    /// Returns how the run is simulated: the reasons of all parts together, so that they do not depend on the number of
    /// threads.
    pub(crate) fn mode(&self) -> Mode {
        let mut mode = Mode::default();
        for part in &self.parts {
            let Mode { switches, in_batches, hosts, one_part } = &lock(part).mode;
            mode.in_batches |= in_batches;
            mode.switches.extend(switches);
            mode.hosts.extend(hosts);
            mode.one_part.extend(one_part);
        }
        for reasons in [&mut mode.switches, &mut mode.hosts, &mut mode.one_part] {
            reasons.sort_unstable();
            reasons.dedup();
        }
        mode
    }

    /// Returns the number of parts, each of which has a thread.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of packets serialised so far, and of flows done.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let each = self.parts.iter().map(|part| lock(part).progress());
        each.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    /// Returns the totals so far; checks that bytes are conserved.
    pub(crate) fn totals(&self) -> RunTotals {
        let mut totals = RunTotals::default();
        self.parts.iter().for_each(|part| totals.add(&lock(part).totals()));
        totals.end = self.now();
        totals.events += self.n_probed;
        assert_eq!(
            totals.unaccounted_bytes(),
            0,
            "bytes are conserved: sent + duplicated = delivered + dropped + in flight"
        );
        totals
    }

    /// Returns the totals of each group so far; none if all flows are of one group, or if there are very many.
    pub(crate) fn group_totals(&self) -> Vec<GroupTotals> {
        let mut all: Vec<GroupTotals> = Vec::new();
        for part in &self.parts {
            let part = lock(part);
            all.resize(part.groups().len(), GroupTotals::default());
            for (sum, of_part) in all.iter_mut().zip(part.groups()) {
                sum.drops += of_part.drops;
                sum.marked += of_part.marked;
            }
        }
        all
    }

    /// Returns the counters of all ports so far, by number.
    pub(crate) fn port_totals(&self) -> Vec<PortTotals> {
        let now = self.now();
        let none =
            |port| PortTotals { port, tx_bytes: 0, drops: Drops::default(), ecn_marks: 0, pfc_pause: Time::ZERO };
        let mut all: Vec<PortTotals> = (0..self.run.config.topology.n_ports() as u32).map(PortId).map(none).collect();
        self.parts.iter().for_each(|part| lock(part).add_port_totals(now.as_ps(), &mut all));
        all
    }

    /// Returns the outcomes of all flows that are not over.
    pub(crate) fn unfinished(&self) -> Vec<FlowOutcome> {
        let mut ids: Vec<FlowId> = self.parts.iter().flat_map(|part| lock(part).unfinished()).collect();
        ids.sort_unstable();
        ids.into_iter().map(|id| outcome(&self.parts, id, None)).collect()
    }

    /// Processes about `max_events` events: at least as many, unless the run ends before. Returns `true` if the run is
    /// over.
    pub(crate) fn advance(&mut self, max_events: u64, sink: &mut dyn Sink) -> Result<bool, SimError> {
        self.parts.iter().for_each(|part| lock(part).report(sink));
        // The parts are lent to the threads; all other state stays with this one.
        let (parts, habits) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.habits));
        if let Some(work) = &habits.work {
            lock(work).go_on();
        }
        let over = Crew::with(&parts, &habits, |crew| self.lead(crew, &parts, max_events, sink));
        (self.parts, self.habits) = (parts, habits);
        over
    }

    fn lead(
        &mut self,
        crew: &Crew<'_, Part>,
        parts: &[Mutex<Part>],
        max_events: u64,
        sink: &mut dyn Sink,
    ) -> Result<bool, SimError> {
        let mut left = max_events;
        let mut next = stand(parts).0;
        self.take_snapshots(parts, next.time_ps, sink);
        loop {
            if left == 0 {
                return Ok(false);
            }
            if !self.is_open {
                if let Some(watch) = &mut self.finite {
                    watch.check(parts, next.time_ps)?;
                }
                match self.open_epoch(parts, next.time_ps, sink) {
                    Next::Events => {}
                    Next::Probes(n) => {
                        left = left.saturating_sub(n);
                        continue;
                    }
                    Next::Nothing => return close(parts, sink).map(|()| true),
                }
            }
            let n_events = self.work(crew, parts, next.time_ps, left);
            left = left.saturating_sub(n_events);
            let has_news;
            (next, has_news) = stand(parts);
            if has_news {
                merge::pass_on(parts, Some(next), sink);
            }
            self.is_open = next.time_ps < self.epoch_end_ps;
            let is_over = !self.is_open && self.is_over(parts);
            // Where the run ends, what is left to happen lies behind it.
            let until_ps = if is_over { reached_ps(parts) } else { next.time_ps };
            self.take_snapshots(parts, until_ps, sink);
            if is_over {
                return close(parts, sink).map(|()| true);
            }
            self.checked_events += n_events;
            if CHECK_EVERY <= self.checked_events {
                self.checked_events = 0;
                stall::check_progress(parts)?;
            }
        }
    }

    /// Works through the next window of the epoch, which begins at `next_ps`; if there is one part, through the epoch
    /// or `max_events` of it. Returns the number of events.
    fn work(&self, crew: &Crew<'_, Part>, parts: &[Mutex<Part>], next_ps: u64, max_events: u64) -> u64 {
        let end_ps = self.epoch_end_ps.min(self.snapshot_ps());
        if parts.len() == 1 {
            return crew.run(end_ps, max_events.min(CHECK_EVERY)).1;
        }
        let window_end_ps = next_ps.saturating_add(self.cut_ps).min(end_ps);
        let mut n_events = 0;
        loop {
            let (all_done, n) = crew.run(window_end_ps, CHECK_EVERY);
            n_events += n;
            if all_done {
                return n_events;
            }
        }
    }

    /// Opens the next epoch, which begins at `next_ps`, unless probes are due before, which then sample, or no events
    /// are left.
    fn open_epoch(&mut self, parts: &[Mutex<Part>], next_ps: u64, sink: &mut dyn Sink) -> Next {
        let probe_ps = self.probes.next_ps();
        // If no events are left, probes go on until the end, if there is one.
        let may_probe = if next_ps < u64::MAX { probe_ps <= next_ps } else { self.end_ps < u64::MAX };
        if may_probe && probe_ps <= self.end_ps && probe_ps < u64::MAX {
            self.now_ps = probe_ps;
            let n = self.probes.sample(probe_ps, &self.run, parts, sink);
            self.n_probed += n;
            return Next::Probes(n);
        }
        if next_ps <= self.end_ps && next_ps < u64::MAX {
            let after_end = self.end_ps.saturating_add(1);
            let length_ps = self.lookahead_ps.max(LEAST_EPOCH_PS);
            self.epoch_end_ps = next_ps.saturating_add(length_ps).min(probe_ps).min(after_end);
            self.is_open = true;
            return Next::Events;
        }
        if self.end_ps < u64::MAX {
            self.now_ps = self.end_ps;
            self.take_snapshots(parts, self.end_ps, sink);
        }
        Next::Nothing
    }

    /// Returns the time of the next snapshot in picoseconds; `u64::MAX`: there is none.
    fn snapshot_ps(&self) -> u64 {
        self.run.config.snapshots.get(self.n_snapshots).map_or(u64::MAX, |at| at.as_ps())
    }

    /// Takes the snapshots that are due up to `next_ps`, before which no event happens. A snapshot ends a window of the
    /// parts, but no epoch: it does not change the run.
    fn take_snapshots(&mut self, parts: &[Mutex<Part>], next_ps: u64, sink: &mut dyn Sink) {
        while self.snapshot_ps() <= next_ps && next_ps < u64::MAX {
            let t = Time::from_ps(self.snapshot_ps());
            self.n_snapshots += 1;
            let flows = (0..self.run.config.flows.len() as u32).map(FlowId);
            let mut delivered = flows.take_while(|&flow| self.run.is_users(flow)).map(|flow| {
                let (_, receives) = self.run.parts_of_flow(flow);
                (flow, lock(&parts[receives]).received(flow).bytes)
            });
            if sink.wants().snapshots {
                sink.snapshot(t, &mut delivered);
            }
        }
    }

    /// Returns `true` if the work of the run is done.
    fn is_over(&self, parts: &[Mutex<Part>]) -> bool {
        self.run.config.stop.when_flows_done && parts.iter().all(|part| lock(part).standing.is_done)
    }
}

/// Returns the time of the last event of any part.
fn reached_ps(parts: &[Mutex<Part>]) -> u64 {
    parts.iter().map(|part| lock(part).world.clock.reached_ps()).max().unwrap_or(0)
}

/// Ends the run: reports all that is left to report.
fn close(parts: &[Mutex<Part>], sink: &mut dyn Sink) -> Result<(), SimError> {
    for part in parts {
        lock(part).close();
    }
    merge::pass_on(parts, None, sink);
    stall::check_end(parts)
}

/// Returns the next event of any part, or [`Event::LAST`] if there is none; and `true` if any part has notifications.
fn stand(parts: &[Mutex<Part>]) -> (Event, bool) {
    let each = parts.iter().map(|part| lock(part).standing);
    each.fold((Event::LAST, false), |(next, has_news), part| (part.next.min(next), part.has_news || has_news))
}

/// Returns the time of the next event of any part in picoseconds; `u64::MAX`: there is none.
pub(in crate::core) fn next_ps(parts: &[Mutex<Part>]) -> u64 {
    stand(parts).0.time_ps
}

/// Returns the outcome of a flow so far; `ideal_fct` is its ideal completion time, if that is known.
pub(in crate::core) fn outcome(parts: &[Mutex<Part>], id: FlowId, ideal_fct: Option<Time>) -> FlowOutcome {
    let (sends, receives) = lock(&parts[0]).world.run.parts_of_flow(id);
    let received = lock(&parts[receives]).received(id);
    lock(&parts[sends]).outcome(id, &received, ideal_fct)
}
