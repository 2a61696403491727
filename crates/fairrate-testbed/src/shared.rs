//! What the threads of a run share: the clock, the connections, how far flows are.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use fairrate_sim::{FlowId, FlowOutcome, PortSample, RateSample};
use fairrate_units::Time;

use crate::connections::Connection;
use crate::failure::Failure;

/// The time of a run, from its start: `CLOCK_MONOTONIC`, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock that is at zero at `zero`.
    pub fn new(zero: Instant) -> Self {
        Self { zero }
    }

    /// The present time; zero before the start.
    pub fn now(self) -> Time {
        Time::from_ns(Instant::now().saturating_duration_since(self.zero).as_nanos() as u64)
    }

    /// When a time of the run is.
    pub fn at(self, t: Time) -> Instant {
        self.zero + std::time::Duration::from_nanos(t.as_ns())
    }
}

/// Whether a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not started.
    Waiting,
    /// It has started and is not done.
    Active,
    /// All of it was acknowledged, or it was stopped.
    Done,
}

/// How far a flow is. The receiver counts; everybody may look.
#[derive(Debug, Default)]
pub struct Progress {
    /// Payload that the receiver has in order.
    pub delivered: AtomicU64,
    /// When the receiver had the last byte, in nanoseconds; 0: it has not.
    pub arrived_ns: AtomicU64,
    /// When the flow started, in nanoseconds.
    pub started_ns: AtomicU64,
    phase: AtomicU8,
}

impl Progress {
    /// Whether it sends.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Waiting,
            1 => Phase::Active,
            _ => Phase::Done,
        }
    }

    /// It starts, or ends.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }
}

/// What a thread tells the one that writes results.
#[derive(Debug)]
pub enum Told {
    /// A flow is done.
    Flow(FlowOutcome),
    /// A port was sampled.
    Port(PortSample),
    /// A flow was sampled.
    Rate(RateSample),
    /// A flow has started, so much after its time.
    Late(Time),
    /// A sample was taken so much after its time.
    SampledLate(Time),
    /// A thread cannot go on.
    Failed(Failure),
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    /// The time.
    pub clock: Clock,
    /// Of each flow.
    pub connections: Vec<Connection>,
    /// Of each flow.
    pub progress: Vec<Progress>,
    stop: AtomicBool,
}

impl Shared {
    /// A run that begins at `zero`.
    pub fn new(zero: Instant, connections: Vec<Connection>) -> Self {
        let progress = connections.iter().map(|_| Progress::default()).collect();
        Self { clock: Clock::new(zero), connections, progress, stop: AtomicBool::new(false) }
    }

    /// All threads are to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether they are to end.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// What became of a flow that has started, up to now.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn outcome(&self, flow: FlowId, ideal_fct: Time) -> Result<FlowOutcome, Failure> {
        let progress = &self.progress[flow.index()];
        let sent = self.connections[flow.index()].sent()?;
        let start = Time::from_ns(progress.started_ns.load(Ordering::Acquire));
        let arrived = Time::from_ns(progress.arrived_ns.load(Ordering::Acquire));
        Ok(FlowOutcome {
            flow,
            start,
            fct: (arrived != Time::ZERO).then(|| arrived.saturating_sub(start)),
            fct_ack: None,
            ideal_fct,
            delivered_bytes: progress.delivered.load(Ordering::Acquire),
            retransmitted_bytes: sent.bytes_retransmitted,
            timeouts: sent.timeouts,
            recoveries: 0,
            connected: None,
            reordering: fairrate_sim::Reordering::default(),
        })
    }
}

/// Runs a thread's work, and tells if it fails.
pub fn telling(told: &Sender<Told>, work: impl FnOnce() -> Result<(), Failure>) {
    if let Err(failure) = work() {
        // Nobody listens only once the run is over.
        let _ = told.send(Told::Failed(failure));
    }
}
