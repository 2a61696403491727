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
use crate::flowlets::{Flowlets, FlowletsError, Pacer, own_netns};
use crate::lock::DIRECTORY;
use crate::looks::{ALL, ALL_LEAST_PAUSE, Looks, TRACKED, nanos};
use crate::metrics::{Metrics, Worker};
use crate::namespaces::Namespaces;
use crate::run::{BREATH, lock};

/// Time between two routine looks at all sockets, and between two checks of things that seldom change.
const ROUTINE: Nanos = 1_000_000_000;

/// The state of the thread.
pub(crate) struct Watch<'a> {
    flowlets: &'a Flowlets,
    client: &'a Client,
    agent: &'a Mutex<Agent>,
    metrics: &'a Metrics,
    notifier: Option<&'a Notifier>,
    pacer: Pacer,
    gap: Nanos,
    /// Further network namespaces, and the inode of the own one.
    namespaces: Namespaces,
    own_netns: u32,
    /// Looks at sockets with flowlets; wanted as long as there are any.
    tracked: Looks,
    /// Looks at all sockets.
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
            namespaces: Namespaces::new(&config.namespaces),
            own_netns: own_netns()?,
            tracked: Looks::new(config.flowlets.every, TRACKED),
            all: Looks::new(ALL_LEAST_PAUSE, ALL),
            next_routine: 0,
            next_word: 0,
            lost: 0,
            warned: Throttle::new(),
        };
        watch.routine()?;
        watch.look_at_all()?;
        // From here on, a limit that an agent might have set counts as set by a program.
        flowlets.has_taken_over()?;
        Ok(watch)
    }

    /// Waits for the next event or look, and handles it.
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
        let dropped = self.client.n_dropped();
        self.metrics.dropped.inc_by(dropped.saturating_sub(self.metrics.dropped.get()));
        self.metrics.hear(Worker::Watch);
        self.speak();
        Ok(())
    }

    /// Lets `what` change the agent's state, and sends the resulting messages to the allocator.
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

    /// Checks for lost events, which hide the begin or end of flowlets: only a look at all sockets finds these.
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
        let before = spent();
        let tracked = self.flowlets.look_at_tracked()?;
        self.tracked.looked(now(), spent() - before);
        if let Some(at) = tracked.soonest {
            self.tracked.want(at);
        }
        if 0 < tracked.n_late {
            // Nothing is acknowledged there, as where TCP waits to send again: the allocator counts on these rates.
            self.all.hurry(now());
        }
        Ok(())
    }

    fn look_at_all(&mut self) -> Result<(), FlowletsError> {
        let (began, before) = (now(), spent());
        let live = self.flowlets.look_at_all(self.namespaces.there())?;
        self.all.looked(now(), spent() - before);
        self.all.want(began + ROUTINE);
        self.metrics.looks.inc();
        if !live.is_empty() {
            self.tracked.want(now() + self.gap);
        }
        let reconcile = |agent: &mut Agent, tells: &mut Vec<Tell>| agent.reconcile(began, &live, tells);
        self.take_in(reconcile)
    }

    /// Checks for control groups and network namespaces that were made or removed.
    fn routine(&mut self) -> Result<(), FlowletsError> {
        self.next_routine = now() + ROUTINE;
        let changes = self.namespaces.look(DIRECTORY.as_ref(), self.own_netns);
        self.flowlets.name_namespaces(&changes)?;
        self.metrics.namespaces.set(count(1 + self.namespaces.there().len()));
        if !changes.come.is_empty() {
            self.all.want(now());
        }
        let changes = lock(self.agent).look_at_groups(cgroups::number);
        self.flowlets.name_groups(&changes.gone, &changes.come)
    }

    /// Removes all rates, in all network namespaces.
    pub fn let_go(&self, agent: &Agent) -> Result<(), FlowletsError> {
        agent.connections().try_for_each(|cookie| self.pacer.pace(cookie, None))?;
        self.flowlets.look_at_all(self.namespaces.there()).map(drop)
    }

    /// Notifies systemd that all threads are alive, if it is time to.
    fn speak(&mut self) {
        let Some(notifier) = self.notifier else { return };
        let Some(interval) = notifier.interval() else { return };
        if self.next_word <= now() && self.metrics.is_healthy() {
            self.next_word = now() + nanos(interval);
            notifier.alive();
        }
    }
}

/// Returns a number of things in the type of gauges.
fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Returns the time of the clock that the program in the kernel uses.
fn now() -> Nanos {
    time_of(ClockId::CLOCK_MONOTONIC)
}

/// Returns the time for which this thread has had a processor.
fn spent() -> Nanos {
    time_of(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn time_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("Linux has this clock");
    nanos(Duration::from(time))
}
