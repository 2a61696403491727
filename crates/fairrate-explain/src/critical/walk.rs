//! The walk from the end of an iteration back along what was waited for.

use std::collections::HashMap;

use fairrate_sim::{Activity, Dependency, Milestone, NodeId};
use fairrate_units::Time;

use super::{CriticalPaths, Doing, Iterated, NoPath, Stage};

/// A walk back along what was waited for. It ends, as no dependency is part of a cycle.
pub struct Walk<'a> {
    paths: &'a CriticalPaths<'a>,
    block: Iterated,
    rank_of: HashMap<NodeId, u32>,
    begin: Time,
    now: Time,
    operation: u32,
    /// The stages, the last one first.
    stages: Vec<Stage>,
}

impl<'a> Walk<'a> {
    /// Returns a walk from `end` back to `begin`.
    pub fn new(paths: &'a CriticalPaths<'a>, block: Iterated, (begin, end): (Time, Time)) -> Self {
        let rank_of = block.ranks(paths.config).iter().copied().zip(0..).collect();
        Self { paths, block, rank_of, begin, now: end, operation: 0, stages: Vec::new() }
    }

    /// Returns the stages up to the end of `last`, the first one first.
    pub fn back_from(mut self, last: Activity) -> Result<Vec<Stage>, NoPath> {
        let (mut activity, mut on) = (last, Milestone::Arrived);
        loop {
            let rank = self.stage(activity, on)?;
            if self.now <= self.begin {
                break;
            }
            let latency = self.latency(activity);
            let Some((dependency, ended)) = self.last_before(activity)? else {
                self.add(Doing::Begins, rank, self.now.saturating_sub(latency));
                self.add(Doing::Waits, rank, self.begin);
                break;
            };
            let &Dependency { before, on: milestone, delay, .. } = dependency;
            if let Some(ended) = ended {
                self.add(Doing::Waits, rank, ended);
            }
            let latency = latency.min(delay);
            self.add(Doing::Begins, rank, self.now.saturating_sub(latency));
            self.add(self.during_delay(activity, before), rank, self.now.saturating_sub(delay - latency));
            if self.now <= self.begin {
                break;
            }
            (activity, on) = (before, milestone);
        }
        self.stages.reverse();
        Ok(self.stages)
    }

    /// Adds the stage of a flow or task that ends now; returns the rank at which it started.
    fn stage(&mut self, activity: Activity, on: Milestone) -> Result<u32, NoPath> {
        let CriticalPaths { times, config, .. } = self.paths;
        let unknown = NoPath::Missing(activity);
        if let Some(task) = activity.task() {
            let part = self.paths.parts[task.index()] as usize;
            let part = match self.block {
                Iterated::Job(job) => config.jobs[job].parts.get(part),
                Iterated::Collective(_) => None,
            };
            // A merged ring begins or ends.
            let Some(part) = part else {
                let rank = *self.rank_of.get(&config.tasks[task.index()].host).ok_or(unknown)?;
                self.add(Doing::Begins, rank, times.of(activity).ok_or(unknown)?.0);
                return Ok(rank);
            };
            self.operation = part.operation;
            self.add(Doing::Computes, part.rank, times.of(activity).ok_or(unknown)?.0);
            return Ok(part.rank);
        }
        let flow = activity.flow().ok_or(unknown)?;
        let rank = *self.rank_of.get(&config.topology.nic(config.flows[flow.index()].src)).ok_or(unknown)?;
        let doing = if on == Milestone::Sent { Doing::Leaves(flow) } else { Doing::Moves(flow) };
        self.add(doing, rank, times.of(activity).ok_or(unknown)?.0);
        Ok(rank)
    }

    /// Goes back to `start`, or to the beginning of the walk if that is later; a stage of no time is none.
    fn add(&mut self, doing: Doing, rank: u32, start: Time) {
        let start = start.max(self.begin);
        if start < self.now {
            self.stages.push(Stage { doing, rank, operation: self.operation, start, end: self.now });
            self.now = start;
        }
    }

    /// Returns the latency of the step that is a message; zero for a task.
    fn latency(&self, activity: Activity) -> Time {
        let config = self.paths.config;
        let alpha = match self.block {
            Iterated::Job(at) => config.jobs[at].alpha,
            Iterated::Collective(at) => config.collectives[at].pace.alpha,
        };
        activity.flow().map_or(Time::ZERO, |flow| alpha.of(&config.topology, config.flows[flow.index()].src))
    }

    /// Returns the event of the time between two activities: a rank adds up what it has received or, between two
    /// iterations of a collective operation, computes.
    fn during_delay(&self, activity: Activity, before: Activity) -> Doing {
        let iteration =
            |activity: Activity| activity.flow().map(|flow| self.paths.config.flows[flow.index()].iteration);
        let begins = activity.task().is_some() || iteration(activity) != iteration(before);
        if matches!(self.block, Iterated::Collective(_)) && begins { Doing::Computes } else { Doing::Adds }
    }

    /// Returns the dependency that was met last before the start of `activity`, at the present time. If none was met
    /// then, returns the time at which the last one was.
    fn last_before(&self, activity: Activity) -> Result<Option<(&'a Dependency, Option<Time>)>, NoPath> {
        let CriticalPaths { times, config, waits, .. } = self.paths;
        let mut last: Option<(Time, &Dependency)> = None;
        let mut sent = last;
        for dependency in waits.of(config, activity) {
            let is_sent = dependency.before.flow().is_some() && dependency.on != Milestone::Arrived;
            let (start, end) = times.of(dependency.before).ok_or(NoPath::Missing(activity))?;
            // Outcomes of flows do not have the time at which the last byte was sent, only the start before it.
            let (of, time) =
                if is_sent { (&mut sent, start) } else { (&mut last, end.saturating_add(dependency.delay)) };
            if self.now.saturating_add(times.error) < time {
                return Err(NoPath::Inconsistent(activity));
            }
            if of.is_none_or(|(latest, _)| latest < time || is_sent && latest == time) {
                *of = Some((time, dependency));
            }
        }
        Ok(match (last, sent) {
            (Some((time, dependency)), _) if self.now <= time.saturating_add(times.error) => Some((dependency, None)),
            (_, Some((_, dependency))) => Some((dependency, None)),
            (Some((time, dependency)), None) => Some((dependency, Some(time))),
            (None, None) => None,
        })
    }
}
