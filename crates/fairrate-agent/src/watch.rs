//! The thread that takes the kernel's events and looks at sockets.

use std::sync::Mutex;
use std::time::Duration;

use fairrate_daemon::Client;
use fairrate_daemon::logging::Throttle;
use fairrate_daemon::systemd::Notifier;
use nix::time::{ClockId, clock_gettime};

use crate::agent::{Agent, Kind, Nanos, Tell};
use crate::cgroups;
use crate::config::Config;
use crate::flowlets::{Flowlets, FlowletsError, Pacer};
use crate::looks::{Looks, nanos};
use crate::metrics::{Metrics, Worker};
use crate::run::{BREATH, lock};

/// The time between two looks at all sockets that nothing calls for, and at what seldom changes.
const ROUTINE: Nanos = 1_000_000_000;

/// The pause after a look at tracked sockets, in lengths of the look: so they take a twentieth of a processor at most.
const TRACKED_PAUSE: u64 = 20;

/// The same after one at all sockets: a hundredth.
const ALL_PAUSE: u64 = 100;

/// The least time between two looks at all sockets.
const ALL_LEAST_PAUSE: Duration = Duration::from_millis(10);

/// What the thread knows.
pub(crate) struct Watch<'a> {
    flowlets: &'a Flowlets,
    client: &'a Client,
    agent: &'a Mutex<Agent>,
    metrics: &'a Metrics,
    notifier: Option<&'a Notifier>,
    pacer: Pacer,
    gap: Nanos,
    /// At sockets with flowlets; wanted as long as there are any.
    tracked: Looks,
    /// At all sockets.
    all: Looks,
    next_routine: Nanos,
    next_word: Nanos,
    lost: u64,
    warned: Throttle,
}

impl<'a> Watch<'a> {
    pub fn new(
        config: &Config,
        flowlets: &'a Flowlets,
        client: &'a Client,
        agent: &'a Mutex<Agent>,
        metrics: &'a Metrics,
        notifier: Option<&'a Notifier>,
    ) -> Result<Self, FlowletsError> {
        let mut watch = Self {
            flowlets,
            client,
            agent,
            metrics,
            notifier,
            pacer: flowlets.pacer()?,
            gap: nanos(config.flowlets.gap),
            tracked: Looks::new(config.flowlets.every, TRACKED_PAUSE),
            all: Looks::new(ALL_LEAST_PAUSE, ALL_PAUSE),
            next_routine: 0,
            next_word: 0,
            lost: 0,
            warned: Throttle::new(),
        };
        watch.routine()?;
        watch.look_at_all()?;
        // From here on a limit that an agent might have set was set by a program.
        flowlets.has_taken_over()?;
        Ok(watch)
    }

    /// Waits for something to do and does it.
    pub fn turn(&mut self) -> Result<(), FlowletsError> {
        let dues = [self.tracked.due(), self.all.due()];
        let until = dues.into_iter().flatten().fold(now() + nanos(BREATH), Nanos::min);
        let events = self.flowlets.events(Duration::from_nanos(until.saturating_sub(now())))?;
        if events.iter().any(|event| event.kind == Kind::Begins) {
            self.tracked.want(now() + self.gap);
        }
        self.take_in(|agent, tells| events.iter().for_each(|event| agent.on_event(event, tells)))?;
        self.note_lost()?;
        if self.tracked.due().is_some_and(|at| at <= now()) {
            self.look_at_tracked()?;
        }
        if self.all.due().is_some_and(|at| at <= now()) {
            self.look_at_all()?;
        }
        if self.next_routine <= now() {
            self.routine()?;
        }
        self.metrics.allocators.set(count(self.client.n_connected()));
        self.metrics.hear(Worker::Watch);
        self.speak();
        Ok(())
    }

    /// Lets the agent take something in, and tells the allocator what that means.
    fn take_in(&self, what: impl FnOnce(&mut Agent, &mut Vec<Tell>)) -> Result<(), FlowletsError> {
        let (mut agent, mut tells) = (lock(self.agent), Vec::new());
        let refused = agent.n_refused();
        what(&mut agent, &mut tells);
        for tell in tells {
            match tell {
                Tell::Begin { flow, source, destination, weight } => {
                    self.client.begin(flow, source, destination, weight);
                    self.metrics.starts.inc();
                }
                Tell::End { flow, cookie } => {
                    self.client.end(flow);
                    self.pacer.pace(cookie, None)?;
                    self.metrics.ends.inc();
                }
            }
        }
        self.metrics.flows.set(count(agent.n_flows()));
        self.metrics.refused.inc_by(agent.n_refused() - refused);
        Ok(())
    }

    /// Events that are lost leave flowlets that have begun or ended unseen: only a look at all sockets finds them.
    fn note_lost(&mut self) -> Result<(), FlowletsError> {
        let lost = self.flowlets.lost()?;
        if lost == self.lost {
            return Ok(());
        }
        self.metrics.events_lost.inc_by(lost - self.lost);
        if let Some(left_out) = self.warned.pass() {
            let events = lost - self.lost;
            tracing::warn!(
                events,
                left_out,
                "events of the kernel were lost, as they came too fast: looking at all sockets"
            );
        }
        self.lost = lost;
        self.all.want(now());
        Ok(())
    }

    fn look_at_tracked(&mut self) -> Result<(), FlowletsError> {
        let began = now();
        let tracked = self.flowlets.look_at_tracked()?;
        self.tracked.looked(began, now());
        if let Some(at) = tracked.soonest {
            self.tracked.want(at);
        }
        if 0 < tracked.n_late {
            self.all.want(now());
        }
        Ok(())
    }

    fn look_at_all(&mut self) -> Result<(), FlowletsError> {
        let began = now();
        let live = self.flowlets.look_at_all()?;
        self.all.looked(began, now());
        self.all.want(began + ROUTINE);
        self.metrics.looks.inc();
        if !live.is_empty() {
            self.tracked.want(now() + self.gap);
        }
        let reconcile = |agent: &mut Agent, tells: &mut Vec<Tell>| agent.reconcile(began, &live, tells);
        self.take_in(reconcile)
    }

    /// Control groups may have come and gone.
    fn routine(&mut self) -> Result<(), FlowletsError> {
        self.next_routine = now() + ROUTINE;
        let changes = lock(self.agent).look_at_groups(cgroups::number);
        self.flowlets.name_groups(&changes.gone, &changes.come)
    }

    /// Says to systemd that all threads go on, if it is time to.
    fn speak(&mut self) {
        let Some(notifier) = self.notifier else { return };
        let Some(interval) = notifier.interval() else { return };
        if self.next_word <= now() && self.metrics.is_healthy() {
            self.next_word = now() + nanos(interval);
            notifier.alive();
        }
    }
}

/// Returns a number of things as gauges have it.
fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Returns the time of the clock that the program in the kernel has.
fn now() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    nanos(Duration::from(now))
}
