//! Control of a running simulation: it advances in slices, so that a caller can show progress and stop.

use fairrate_units::Time;

use crate::config::SimConfig;
use crate::core::{Cluster, Mode, Work};
use crate::fluid::Fluid;
use crate::output::{FlowOutcome, GroupTotals, PortTotals, RunTotals, Sink};

/// The reason why a run cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// No progress although flows are active.
    #[error("no progress since t={since:.3}, {unfinished} flows unfinished: {stuck}")]
    Stalled {
        /// Last time a byte was acknowledged; where endless flows go on, the first sample after the last byte of a
        /// finite one.
        since: Time,
        /// Active flows; where endless flows go on, the finite ones.
        unfinished: u64,
        /// Description of what is stuck.
        stuck: String,
    },
}

/// The way in which switches proceed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// The faster way for the expected traffic.
    Fitting,
    /// In spans of time, where that is possible at all.
    Spans,
    /// The same in batches, with all that large networks fetch ahead.
    Batches,
    /// Event by event.
    Events,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Packets serialised so far.
    pub packet_hops: u64,
    /// Flows finished so far.
    pub flows_done: u64,
    /// `true` if the run is over.
    pub finished: bool,
}

/// A running simulation.
pub struct Simulation {
    run: Run,
    finished: bool,
}

/// The model of the run: packets, or fluids at rates from an oracle.
enum Run {
    Packets(Box<Cluster>),
    Fluids(Box<Fluid>),
}

/// Calls the same method of either variant.
macro_rules! of_run {
    ($run:expr, $method:ident($($argument:expr),*)) => {
        match $run {
            Run::Packets(core) => core.$method($($argument),*),
            Run::Fluids(fluid) => fluid.$method($($argument),*),
        }
    };
}

impl Simulation {
    /// Builds the network and schedules the flows, which must be in order of start.
    pub fn new(config: SimConfig) -> Self {
        Self::with_threads(config, 1)
    }

    /// Does the same as [`Simulation::new`] on up to `threads` threads. Results do not depend on their number, to the
    /// last bit.
    pub fn with_threads(config: SimConfig, threads: usize) -> Self {
        Self::with_switching(config, threads, Switching::Fitting)
    }

    /// Does the same as [`Simulation::with_threads`] with switches that proceed as in `switching`. Results are the same
    /// to the last bit. It lets tests compare the ways.
    #[doc(hidden)]
    pub fn with_switching(config: SimConfig, threads: usize, switching: Switching) -> Self {
        let run = if let Some(oracle) = config.cc.needs().feedback.oracle {
            Run::Fluids(Box::new(Fluid::new(config, oracle)))
        } else {
            Run::Packets(Box::new(Cluster::new(config, threads.max(1), switching)))
        };
        Self { run, finished: false }
    }

    /// Builds a run in up to `parts` parts that one thread does in turn and measures. Results are the same to the last
    /// bit. [`Simulation::work`] tells what each part does, and so how fast the run could be on a core for each part.
    pub fn measured(config: SimConfig, parts: usize) -> Self {
        let mut simulation = Self::with_threads(config, parts);
        if let Run::Packets(cluster) = &mut simulation.run {
            cluster.measure_work();
        }
        simulation
    }

    /// Returns the work so far of the parts of a run that is [`measured`](Self::measured); `None` for others, and if
    /// flows are fluids.
    pub fn work(&self) -> Option<Work> {
        match &self.run {
            Run::Packets(cluster) => cluster.measured(),
            Run::Fluids(_) => None,
        }
    }

    /// Returns the number of threads that the run uses: fewer than asked for where there are fewer racks, and one where
    /// the run needs the state of the whole network at once (ties by the order of insertion, convergence to the
    /// optimum, an allocator with outages).
    pub fn threads(&self) -> usize {
        match &self.run {
            Run::Packets(cluster) => cluster.n_parts(),
            Run::Fluids(_) => 1,
        }
    }

    /// Returns how the run is simulated, and the reasons for which it is not simulated in a faster way.
    pub fn mode(&self) -> Mode {
        match &self.run {
            Run::Packets(cluster) => cluster.mode(),
            Run::Fluids(_) => Mode::fluids(),
        }
    }

    /// Returns the input of the run.
    pub fn config(&self) -> &SimConfig {
        of_run!(&self.run, config())
    }

    /// Processes about `max_events` events: at least as many, unless the run is over before. If the run is over, does
    /// nothing.
    ///
    /// # Errors
    /// [`SimError::Stalled`] if flows are active and nothing moves any more.
    pub fn advance(&mut self, max_events: u64, sink: &mut dyn Sink) -> Result<Progress, SimError> {
        if !self.finished {
            self.finished = match &mut self.run {
                Run::Packets(cluster) => cluster.advance(max_events, sink)?,
                Run::Fluids(fluid) => fluid.advance(max_events, sink),
            };
        }
        let (packet_hops, flows_done) = of_run!(&self.run, progress());
        Ok(Progress { now: of_run!(&self.run, now()), packet_hops, flows_done, finished: self.finished })
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// As [`Simulation::advance`].
    pub fn run(&mut self, sink: &mut dyn Sink) -> Result<Progress, SimError> {
        self.advance(u64::MAX, sink)
    }

    /// Returns the outcomes of the flows that have not finished, for the end of a run or an interrupted one.
    pub fn unfinished(&self) -> Vec<FlowOutcome> {
        of_run!(&self.run, unfinished())
    }

    /// Returns the totals so far of each traffic block, by number; none if all flows are of one block, if there are
    /// more than 1,024, or if flows are fluids.
    pub fn group_totals(&self) -> Vec<GroupTotals> {
        match &self.run {
            Run::Packets(cluster) => cluster.group_totals(),
            Run::Fluids(_) => Vec::new(),
        }
    }

    /// Returns the counters so far of every port, by number.
    pub fn port_totals(&self) -> Vec<PortTotals> {
        of_run!(&self.run, port_totals())
    }

    /// Returns the totals so far. Asserts that bytes are conserved.
    pub fn totals(&self) -> RunTotals {
        of_run!(&self.run, totals())
    }
}
