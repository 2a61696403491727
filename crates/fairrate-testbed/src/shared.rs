//! The state that the threads of a run share: the clock, the connections, and the progress of flows.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use fairrate_sim::{FlowId, FlowOutcome, FlowSpec, GroupTotals, PortSample, RateSample};
use fairrate_units::Time;

use crate::connections::Connection;
use crate::failure::Failure;

/// The time of a run, from its start: `CLOCK_MONOTONIC`, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Creates a clock that is at zero at `zero`.
    pub fn new(zero: Instant) -> Self {
        Self { zero }
    }

    /// Returns the present time; zero before the start.
    pub fn now(self) -> Time {
        Time::from_ns(Instant::now().saturating_duration_since(self.zero).as_nanos() as u64)
    }

    /// Returns the instant of a time of the run.
    pub fn at(self, t: Time) -> Instant {
        self.zero + std::time::Duration::from_nanos(t.as_ns())
    }
}

/// The state of a flow's sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not started.
    Waiting,
    /// It has started and is not done.
    Active,
    /// All data was acknowledged, or the flow was stopped.
    Done,
}

/// The progress of a flow. The receiver counts; all threads may read.
#[derive(Debug, Default)]
pub struct Progress {
    /// Payload that the receiver has in order.
    pub delivered: AtomicU64,
    /// Time at which the receiver got the last byte, in nanoseconds; 0: not yet.
    pub arrived_ns: AtomicU64,
    /// Time at which the flow started, in nanoseconds.
    pub started_ns: AtomicU64,
    phase: AtomicU8,
}

impl Progress {
    /// Returns the flow's phase.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Waiting,
            1 => Phase::Active,
            _ => Phase::Done,
        }
    }

    /// Sets the flow's phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }
}

/// A message of a thread to the one that writes results.
#[derive(Debug)]
pub enum Message {
    /// A flow is done.
    Flow(FlowOutcome),
    /// A port was sampled.
    Port(PortSample),
    /// A flow was sampled.
    Rate(RateSample),
    /// A flow has started, by this much after its time.
    Late(Time),
    /// A sample was taken, by this much after its time.
    SampledLate(Time),
    /// A thread has failed.
    Failed(Failure),
}

/// The state that the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    /// The clock of the run.
    pub clock: Clock,
    /// Connection of each flow.
    pub connections: Vec<Connection>,
    /// Progress of each flow.
    pub progress: Vec<Progress>,
    stop: AtomicBool,
}

impl Shared {
    /// Creates the state of a run that begins at `zero`.
    pub fn new(zero: Instant, connections: Vec<Connection>) -> Self {
        let progress = connections.iter().map(|_| Progress::default()).collect();
        Self { clock: Clock::new(zero), connections, progress, stop: AtomicBool::new(false) }
    }

    /// Makes all threads end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Returns `true` if the threads have to end.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Returns the outcome, up to now, of a flow that has started.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn outcome(&self, flow: FlowId, ideal_fct: Time) -> Result<FlowOutcome, Failure> {
        let progress = &self.progress[flow.index()];
        let sent = self.connections[flow.index()].sent()?;
        let start = Time::from_ns(progress.started_ns.load(Ordering::Acquire));
        let arrived = Time::from_ns(progress.arrived_ns.load(Ordering::Acquire));
        Ok(FlowOutcome {
            fct: (arrived != Time::ZERO).then(|| arrived.saturating_sub(start)),
            ideal_fct,
            delivered_bytes: progress.delivered.load(Ordering::Acquire),
            retransmitted_bytes: sent.bytes_retransmitted,
            timeouts: sent.timeouts,
            ..FlowOutcome::at_start(flow, start)
        })
    }
}

impl Shared {
    /// Returns what became of the packets of each traffic block, as senders count them: lost is what was sent, was not
    /// acknowledged, and is not under way.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn group_totals(&self, flows: &[FlowSpec]) -> Result<Vec<GroupTotals>, Failure> {
        let n_groups = flows.iter().map(|flow| flow.group as usize + 1).max().unwrap_or(0);
        let mut totals = vec![GroupTotals::default(); n_groups.min(GroupTotals::MOST)];
        for (flow, connection) in flows.iter().zip(&self.connections) {
            let Some(total) = totals.get_mut(flow.group as usize) else { continue };
            let sent = connection.sent()?;
            total.drops += sent.segments_sent.saturating_sub(sent.segments_delivered + sent.segments_in_flight);
            total.marked += sent.segments_marked;
        }
        Ok(totals)
    }
}

/// Runs a thread's work, and sends its error if it fails.
pub fn report_failure(told: &Sender<Message>, work: impl FnOnce() -> Result<(), Failure>) {
    if let Err(failure) = work() {
        // The channel is closed only once the run is over.
        let _ = told.send(Message::Failed(failure));
    }
}
