//! The critical path of an iteration of a job or of a collective operation: the computations and messages that waited
//! for each other and ended last.
//!
//! [`Milestones`] is a sink that notes when flows and tasks of a run started and ended; tables of results have the same
//! times, to the nanosecond. [`CriticalPaths`] goes back from the part that ended last: from each flow or task to the
//! one for which it waited last. So its stages follow each other without gaps, and their times add up to that of the
//! iteration.

mod waits;
mod walk;

use fairrate_sim::{
    Activity, Dependency, FlowId, FlowOutcome, FlowSpec, JobSpec, NodeId, Observation, OperationKind, SimConfig, Sink,
    TaskId, TaskSpec,
};
use fairrate_units::Time;

use crate::piece::Piece;

use self::waits::Waits;
use self::walk::Walk;

/// The event of a stage of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A rank computes.
    Computes,
    /// A message is on its way, from its start to the arrival of its last byte.
    Moves(FlowId),
    /// A message leaves its rank, from its start until its last byte is at the NIC: the next one of its stream waits
    /// for that.
    Leaves(FlowId),
    /// A rank adds up what it has received.
    Adds,
    /// A rank begins to send: the latency of a step.
    Begins,
    /// Nothing happens for which the next stage waits: the job has not begun.
    Waits,
}

impl Doing {
    /// Returns the message that moves or leaves.
    #[must_use]
    pub const fn message(self) -> Option<FlowId> {
        match self {
            Self::Moves(flow) | Self::Leaves(flow) => Some(flow),
            Self::Computes | Self::Adds | Self::Begins | Self::Waits => None,
        }
    }
}

/// A stage of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The event.
    pub doing: Doing,
    /// The rank; of a message, that of the sender.
    pub rank: u32,
    /// The operation: a position in [`JobSpec::operations`]; 0 in a collective operation, which is one.
    pub operation: u32,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}

impl Stage {
    /// Returns the chain of causes of a message, as far as it is within the stage.
    #[must_use]
    pub fn part_of(&self, chain: &[Piece]) -> Vec<Piece> {
        let within = chain.iter().filter(|piece| piece.from < self.end && self.start < piece.to);
        let part = |piece: &Piece| {
            let (from, to) = (piece.from.max(self.start), piece.to.min(self.end));
            let share = |bytes: u64| {
                let (part, whole) = ((to - from).as_ps(), (piece.to - piece.from).as_ps());
                (u128::from(bytes) * u128::from(part) / u128::from(whole.max(1))) as u64
            };
            Piece { from, to, bytes: share(piece.bytes), ..*piece }
        };
        within.map(part).collect()
    }
}

/// A traffic block that has iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iterated {
    /// The job at this position of [`SimConfig::jobs`].
    Job(usize),
    /// The collective operation at this position of [`SimConfig::collectives`].
    Collective(usize),
}

impl Iterated {
    /// Returns all jobs and then all collective operations of a run.
    pub fn all(config: &SimConfig) -> impl Iterator<Item = Self> + use<> {
        let (n_jobs, n_collectives) = (config.jobs.len(), config.collectives.len());
        (0..n_jobs).map(Self::Job).chain((0..n_collectives).map(Self::Collective))
    }

    /// Returns the number of the traffic block.
    ///
    /// # Panics
    /// If the run has no such job or collective operation.
    #[must_use]
    pub fn group(self, config: &SimConfig) -> u32 {
        match self {
            Self::Job(at) => config.jobs[at].group,
            Self::Collective(at) => config.collectives[at].group,
        }
    }

    fn start(self, config: &SimConfig) -> Time {
        match self {
            Self::Job(at) => config.jobs[at].start,
            Self::Collective(at) => config.collectives[at].start,
        }
    }

    /// Returns name and kind of the operation of a stage: `compute`, `message`, or the collective operation. In a
    /// collective block it has no name.
    ///
    /// # Panics
    /// If the stage is not one of this block.
    #[must_use]
    pub fn operation<'a>(self, config: &'a SimConfig, stage: &Stage) -> (&'a str, &'static str) {
        match self {
            Self::Job(job) => {
                let spec = &config.jobs[job];
                let operation = &spec.operations[stage.operation as usize];
                (&spec.names[operation.name as usize], operation.kind.name())
            }
            Self::Collective(_) if stage.doing == Doing::Computes => ("", "compute"),
            Self::Collective(at) => ("", config.collectives[at].op.name()),
        }
    }

    /// Returns the host of each rank.
    ///
    /// # Panics
    /// If the run has no such job or collective operation.
    #[must_use]
    pub fn ranks(self, config: &SimConfig) -> &[NodeId] {
        match self {
            Self::Job(at) => &config.jobs[at].ranks,
            Self::Collective(at) => &config.collectives[at].ranks,
        }
    }
}

/// The reason for which there is no critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// The iteration was not complete, or there is none with this number.
    Incomplete,
    /// This flow or task, or one for which it waits, has no time.
    Missing(Activity),
    /// The times contradict each other: this flow or task started before one had ended for which it waits.
    Inconsistent(Activity),
}

/// The times of the flows and tasks of a run.
pub struct Milestones {
    /// Start and arrival of each flow.
    flows: Vec<Option<(Time, Time)>>,
    /// Start and end of each task.
    tasks: Vec<Option<(Time, Time)>>,
    /// The largest error of a difference between two times.
    error: Time,
}

impl Milestones {
    /// The largest difference between a start and the end for which it waited, where times, and times between them, are
    /// rounded to nanoseconds: half for each of three.
    const ROUNDED: Time = Time::from_ps(1_500);

    /// Returns a sink that has noted nothing.
    #[must_use]
    pub fn new(config: &SimConfig) -> Self {
        let (flows, tasks) = (vec![None; config.flows.len()], vec![None; config.tasks.len()]);
        Self { flows, tasks, error: Time::ZERO }
    }

    /// Returns times that are to be noted as tables have them, rounded to nanoseconds.
    #[must_use]
    pub fn of_tables(config: &SimConfig) -> Self {
        Self { error: Self::ROUNDED, ..Self::new(config) }
    }

    /// Notes start and arrival of a flow.
    pub fn note_flow(&mut self, flow: FlowId, start: Time, arrival: Time) {
        if let Some(times) = self.flows.get_mut(flow.index()) {
            *times = Some((start, arrival));
        }
    }

    /// Notes start and end of a part of a job, whose first task is `first`.
    pub fn note_part(&mut self, spec: &JobSpec, (part, first): (usize, TaskId), start: Time, end: Time) {
        let times: &[(Time, Time)] = match n_tasks(spec, part) {
            1 => &[(start, end)],
            _ => &[(start, start), (end, end)],
        };
        for (task, &times) in self.tasks.iter_mut().skip(first.index()).zip(times) {
            *task = Some(times);
        }
    }

    /// Notes when merged rings begin and end, which tables do not have: at the last moment for which each of them
    /// waits, and the latency of its steps later.
    pub fn note_moments(&mut self, config: &SimConfig) {
        let of_jobs: Vec<_> = config.jobs.iter().map(JobSpec::tasks).collect();
        let mut moments =
            (0..config.tasks.len() as u32).filter(|task| !of_jobs.iter().any(|tasks| tasks.contains(task))).peekable();
        if moments.peek().is_none() {
            return;
        }
        let waits = Waits::new(config);
        // What ends a ring comes before what begins the next one.
        for task in moments.map(TaskId) {
            let end = |wait: &Dependency| Some(self.of(wait.before)?.1.saturating_add(wait.delay));
            let TaskSpec { start, duration, .. } = config.tasks[task.index()];
            let at = waits.of(config, task.into()).map(end).try_fold(start, |latest, at| Some(latest.max(at?)));
            self.tasks[task.index()] = at.map(|at| (at, at.saturating_add(duration)));
        }
    }

    /// Returns start and end of a flow or task.
    fn of(&self, activity: Activity) -> Option<(Time, Time)> {
        match (activity.flow(), activity.task()) {
            (Some(flow), _) => self.flows[flow.index()],
            (None, task) => self.tasks[task?.index()],
        }
    }
}

impl Sink for Milestones {
    fn flow(&mut self, outcome: &FlowOutcome) {
        if let Some(fct) = outcome.fct {
            self.note_flow(outcome.flow, outcome.start, outcome.start.saturating_add(fct));
        }
    }

    fn observe(&mut self, observation: &Observation) {
        if let Observation::Task(outcome) = observation {
            self.tasks[outcome.task.index()] = Some((outcome.start, outcome.end));
        }
    }
}

/// Returns the first task of each part of a job.
#[must_use]
pub fn first_tasks(spec: &JobSpec) -> Vec<TaskId> {
    let mut next = spec.first_task;
    let first = |part: usize| {
        let first = TaskId(next);
        next += n_tasks(spec, part);
        first
    };
    (0..spec.parts.len()).map(first).collect()
}

/// Returns the number of tasks of a part.
fn n_tasks(spec: &JobSpec, part: usize) -> u32 {
    match spec.operations[spec.parts[part].operation as usize].kind {
        OperationKind::Compute => 1,
        OperationKind::Collective(_) | OperationKind::Message => 2,
    }
}

/// The end of an iteration, and the flow or task that ended last.
type End = Option<(Time, Activity)>;

/// The critical paths of a run.
pub struct CriticalPaths<'a> {
    times: &'a Milestones,
    config: &'a SimConfig,
    waits: Waits,
    /// The part of each task; tasks that are of no job have none.
    parts: Vec<u32>,
    /// The ends of the iterations of each job, and of each collective operation.
    jobs: Vec<Vec<End>>,
    collectives: Vec<Vec<End>>,
}

impl<'a> CriticalPaths<'a> {
    /// Returns the paths of a run of `config` with these times.
    #[must_use]
    pub fn new(times: &'a Milestones, config: &'a SimConfig) -> Self {
        let mut parts = vec![u32::MAX; config.tasks.len()];
        let jobs = config.jobs.iter().map(|spec| ends_of_job(spec, times, &mut parts)).collect();
        let collectives = ends_of_collectives(config, times);
        Self { times, config, waits: Waits::new(config), parts, jobs, collectives }
    }

    fn ends(&self, block: Iterated) -> &[End] {
        let all = match block {
            Iterated::Job(at) => self.jobs.get(at),
            Iterated::Collective(at) => self.collectives.get(at),
        };
        all.map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of the iterations that are complete, as are those before them.
    pub fn complete(&self, block: Iterated) -> std::ops::Range<u32> {
        0..self.ends(block).iter().take_while(|end| end.is_some()).count() as u32
    }

    /// Returns the critical path of an iteration, from the end of the one before to its own end. The end is that of the
    /// last rank.
    ///
    /// # Errors
    /// If the iteration or the one before is not complete, or times are missing or contradict each other.
    pub fn path(&self, block: Iterated, iteration: u32) -> Result<Vec<Stage>, NoPath> {
        let end_of =
            |iteration: u32| self.ends(block).get(iteration as usize).copied().flatten().ok_or(NoPath::Incomplete);
        let begin = match iteration.checked_sub(1) {
            None => block.start(self.config),
            Some(before) => end_of(before)?.0,
        };
        let (end, last) = end_of(iteration)?;
        Walk::new(self, block, (begin, end)).back_from(last)
    }
}

/// Returns the ends of the iterations of a job; notes the parts of its tasks in `parts`.
fn ends_of_job(spec: &JobSpec, times: &Milestones, parts: &mut [u32]) -> Vec<End> {
    let mut ends = Ends::new(spec.iterations);
    for (part, first) in first_tasks(spec).into_iter().enumerate() {
        let iteration = spec.operations[spec.parts[part].operation as usize].iteration;
        for task in (first.0..).take(n_tasks(spec, part) as usize).map(TaskId) {
            parts[task.index()] = part as u32;
            ends.add(iteration, times.of(task.into()).map(|(_, end)| end), task.into());
        }
    }
    ends.done()
}

/// Returns the ends of the iterations of each collective operation.
fn ends_of_collectives(config: &SimConfig, times: &Milestones) -> Vec<Vec<End>> {
    let mut all: Vec<Ends> = config.collectives.iter().map(|spec| Ends::new(spec.iterations)).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let at: std::collections::HashMap<u32, usize> =
        config.collectives.iter().zip(0..).map(|(spec, at)| (spec.group, at)).collect();
    for (flow, spec) in (0..).map(FlowId).zip(&config.flows) {
        if spec.iteration != FlowSpec::NO_ITERATION
            && let Some(&at) = at.get(&spec.group)
        {
            all[at].add(spec.iteration, times.of(flow.into()).map(|(_, arrival)| arrival), flow.into());
        }
    }
    all.into_iter().map(Ends::done).collect()
}

/// The ends of iterations while flows and tasks are gone through.
struct Ends {
    /// For each iteration, the end so far: `None` if nothing of it was seen.
    ends: Vec<End>,
    /// Set for iterations of which something has not ended.
    is_open: Vec<bool>,
}

impl Ends {
    fn new(iterations: u32) -> Self {
        Self { ends: vec![None; iterations as usize], is_open: vec![false; iterations as usize] }
    }

    /// Adds a flow or task of an iteration with its end. Of equal ends the first one stays.
    fn add(&mut self, iteration: u32, end: Option<Time>, activity: Activity) {
        let Some(last) = self.ends.get_mut(iteration as usize) else { return };
        match end {
            None => self.is_open[iteration as usize] = true,
            Some(end) if last.is_none_or(|(latest, _)| latest < end) => *last = Some((end, activity)),
            Some(_) => {}
        }
    }

    fn done(self) -> Vec<End> {
        self.ends.into_iter().zip(self.is_open).map(|(end, is_open)| end.filter(|_| !is_open)).collect()
    }
}
