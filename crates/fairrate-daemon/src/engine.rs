//! The optimiser's thread: it takes the messages of connections, iterates, and fills their outboxes.
//!
//! A connection has at most one batch of bytes to write. While its socket does not take them, changed rates stay at the
//! desk, as a set of flows. Only few connections have bytes that wait for a thread to write them, so that the first
//! rates of flows, which overtake the others, are written at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::desk::{Change, ConnectionId, Desk, Identity, Refusal, Urgency};
use crate::peers::{Peer, PeerLog};
use crate::stream::WRITE;
use crate::wire::{FromAgent, Reason};

/// The events of connections.
pub(crate) enum Event {
    /// A new connection.
    Connected { id: ConnectionId, identity: Identity, outbox: Arc<Outbox> },
    /// Messages of an agent.
    Said(ConnectionId, Vec<FromAgent>),
    /// The request to close a connection, with the reason.
    Close(ConnectionId, Reason),
    /// The end of a connection.
    Disconnected(ConnectionId),
    /// The request to close all connections, with the reason.
    CloseAll(Reason),
    /// The request to change the network, if there is one, and the bounds; `done` is told afterwards.
    Change { network: Option<Box<Change>>, bounds: Bounds, done: oneshot::Sender<()> },
    /// The request to end the thread and all connections.
    Stop,
}

/// The bounds of a desk that can change while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest number of agents.
    pub agents: usize,
    /// Largest number of flows of one identity.
    pub flows: usize,
    /// Number of hosts with agents, for the quorum.
    pub quorum: usize,
}

/// Largest number of events that wait; beyond it, connections are not read.
const EVENTS: usize = 256;

/// Approximate largest number of messages taken between two iterations.
const MESSAGES_A_TURN: usize = 4096;

/// Number of connections with bytes that wait for a thread, beyond which non-urgent messages stay at the desk.
const WAITING: usize = 32;

/// Interval at which the metrics are updated.
const PUBLISH: Duration = Duration::from_millis(100);

/// The thread's behaviour until the next iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// It sleeps: iterations begin some 60 us late, and the core is free meanwhile.
    #[default]
    Sleep,
    /// It keeps its core busy while there are rates to compute: iterations begin on time.
    Spin,
}

/// The timing of the thread.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between iterations.
    pub interval: Duration,
    /// The thread's behaviour in between.
    pub wait: Wait,
    /// Least time between two batches of changed rates.
    pub batch: Duration,
    /// Number of iterations without a rate to send after which the thread waits for the next flowlet.
    pub rest_after: u32,
}

/// The bytes to write to a connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The connection's peer.
    peer: Peer,
    state: Mutex<Outgoing>,
    /// The signal that there are bytes, or that the connection is to be closed.
    pub changed: Notify,
}

#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// Time at which the bytes were put there.
    since: Duration,
    /// The place of the bytes in the number of waiting outboxes, until a thread takes them.
    waiting: Option<Waiting>,
    /// `true` if a thread has taken bytes and has not returned for more.
    is_writing: bool,
    closed: Option<Reason>,
}

/// A guard that counts one in the number of waiting outboxes for as long as it lives.
#[derive(Debug)]
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Outbox {
    /// Creates the empty outbox of a connection with `peer`.
    pub fn new(peer: Peer) -> Self {
        Self { peer, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Swaps the pending bytes into an empty buffer; returns the reason if the connection is to be closed after them.
    pub fn take(&self, bytes: &mut Vec<u8>) -> Option<Reason> {
        let mut state = self.lock();
        std::mem::swap(&mut state.bytes, bytes);
        state.waiting = None;
        state.is_writing = !bytes.is_empty();
        state.closed
    }

    /// Returns `true` if the connection is to be closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    fn close(&self, reason: Reason) {
        self.lock().closed = Some(reason);
        self.changed.notify_one();
    }
}

/// The channel to the thread.
#[derive(Clone)]
pub(crate) struct ToEngine {
    events: mpsc::Sender<Event>,
    thread: Thread,
}

impl ToEngine {
    /// Sends an event as soon as there is room; returns `false` if the thread has ended.
    pub async fn send(&self, event: Event) -> bool {
        let is_there = self.events.send(event).await.is_ok();
        self.thread.unpark();
        is_there
    }
}

/// Starts the optimiser's thread; returns the channel to it and its handle.
pub(crate) fn start(
    desk: Desk,
    lease: Duration,
    pace: Pace,
    peers: Arc<PeerLog>,
) -> std::io::Result<(ToEngine, JoinHandle<()>)> {
    let (events, incoming) = mpsc::channel(EVENTS);
    let engine = Engine {
        desk,
        lease,
        pace,
        peers,
        incoming,
        outboxes: HashMap::new(),
        began: Instant::now(),
        next_iteration: Duration::ZERO,
        next_batch: Duration::ZERO,
        next_publish: Duration::ZERO,
        quiet: 0,
        waiting: Arc::default(),
        closed: Vec::new(),
    };
    let thread = std::thread::Builder::new().name("fairrate-engine".into()).spawn(move || engine.run())?;
    Ok((ToEngine { events, thread: thread.thread().clone() }, thread))
}

struct Engine {
    desk: Desk,
    lease: Duration,
    pace: Pace,
    peers: Arc<PeerLog>,
    incoming: mpsc::Receiver<Event>,
    outboxes: HashMap<ConnectionId, Arc<Outbox>>,
    began: Instant,
    next_iteration: Duration,
    next_batch: Duration,
    next_publish: Duration,
    /// Number of iterations since a flow changed or a rate was to be sent.
    quiet: u32,
    /// Number of outboxes with bytes that no thread has taken.
    waiting: Arc<AtomicUsize>,
    closed: Vec<(ConnectionId, Reason)>,
}

impl Engine {
    fn run(mut self) {
        loop {
            let now = self.began.elapsed();
            let goes_on = self.take_events(now);
            let n_ends = self.desk.counts().ends;
            self.desk.tick(now);
            if n_ends != self.desk.counts().ends {
                self.quiet = 0;
            }
            self.iterate(now);
            self.write(now);
            self.close_connections();
            self.publish(now);
            if !goes_on {
                return;
            }
            self.wait();
        }
    }

    /// Takes some of the waiting events; returns `false` if the thread has to end.
    fn take_events(&mut self, now: Duration) -> bool {
        let mut n_messages = 0;
        while n_messages < MESSAGES_A_TURN {
            let event = match self.incoming.try_recv() {
                Ok(event) => event,
                Err(mpsc::error::TryRecvError::Empty) => return true,
                Err(mpsc::error::TryRecvError::Disconnected) => Event::Stop,
            };
            n_messages += 1;
            match event {
                Event::Connected { id, identity, outbox } => {
                    self.outboxes.insert(id, outbox);
                    self.desk.on_connected(now, id, identity);
                }
                Event::Said(id, messages) => {
                    n_messages += messages.len();
                    for message in messages {
                        // Stamps and acknowledgments move no prices.
                        if !matches!(message, FromAgent::Stamp(_) | FromAgent::Ack(_) | FromAgent::Alive) {
                            self.quiet = 0;
                        }
                        self.desk.on_message(now, id, message);
                    }
                }
                Event::Close(id, reason) => self.desk.close(now, id, reason),
                Event::Disconnected(id) => {
                    // The reason for closing is logged with the connection's name.
                    self.close_connections();
                    self.part_from(id);
                    self.desk.on_disconnected(now, id);
                }
                Event::Change { network, bounds, done } => {
                    self.quiet = 0;
                    if let Some(network) = network {
                        self.desk.change(*network);
                    }
                    self.desk.set_bounds(bounds.agents, bounds.flows, bounds.quorum);
                    // Whoever asked may be gone.
                    let _ = done.send(());
                }
                Event::CloseAll(reason) => self.desk.close_all(now, reason),
                Event::Stop => {
                    self.desk.close_all(now, Reason::Shutdown);
                    return false;
                }
            }
        }
        true
    }

    fn has_work(&self) -> bool {
        0 < self.desk.n_flows() && self.quiet < self.pace.rest_after
    }

    fn iterate(&mut self, now: Duration) {
        if now < self.next_iteration || !self.has_work() {
            return;
        }
        self.next_iteration = now + self.pace.interval;
        let has_news = self.desk.iterate();
        self.quiet = if has_news { 0 } else { self.quiet + 1 };
        self.peers.metrics.iteration.observe(self.began.elapsed().saturating_sub(now).as_secs_f64());
    }

    fn write(&mut self, now: Duration) {
        self.fill(now, Urgency::Now, usize::MAX);
        if self.next_batch <= now {
            self.next_batch = now + self.pace.batch;
            self.fill(now, Urgency::Soon, WAITING.saturating_sub(self.waiting.load(Ordering::Relaxed)));
        }
    }

    /// Fills up to `most` outboxes that are empty.
    fn fill(&mut self, now: Duration, urgency: Urgency, most: usize) {
        let mut n_filled = 0;
        for _ in 0..self.desk.n_listed(urgency) {
            if n_filled == most {
                return;
            }
            let Some(id) = self.desk.next_listed(urgency) else { return };
            let Some(outbox) = self.outboxes.get(&id) else { continue };
            let mut outgoing = outbox.lock();
            if outgoing.bytes.is_empty() && !outgoing.is_writing {
                self.desk.write(now, id, &mut outgoing.bytes, WRITE);
                if !outgoing.bytes.is_empty() {
                    outgoing.since = now;
                    outgoing.waiting = Some(Waiting::one(&self.waiting));
                    outbox.changed.notify_one();
                    n_filled += 1;
                }
            } else if outgoing.since + self.lease <= now {
                self.desk.close(now, id, Reason::Slow);
            } else {
                self.desk.list(id, urgency);
            }
        }
    }

    fn close_connections(&mut self) {
        self.desk.take_closed(&mut self.closed);
        let mut closed = std::mem::take(&mut self.closed);
        for (id, reason) in closed.drain(..) {
            match self.part_from(id) {
                Some(outbox) => {
                    self.peers.closed(reason, &outbox.peer);
                    outbox.close(reason);
                }
                None => self.peers.closed(reason, &"a peer that is gone"),
            }
        }
        self.closed = closed;
    }

    /// Forgets a connection, after logging what needs its name.
    fn part_from(&mut self, id: ConnectionId) -> Option<Arc<Outbox>> {
        let is_of = |why: Refusal| self.desk.last_refused(why).is_some_and(|(of, _)| of == id);
        Refusal::ALL.into_iter().filter(|&why| is_of(why)).for_each(|why| self.log_refused(why));
        self.outboxes.remove(&id)
    }

    fn log_refused(&self, why: Refusal) {
        let last = self.desk.last_refused(why);
        let last = last.and_then(|(id, start)| Some((&self.outboxes.get(&id)?.peer, start)));
        self.peers.refused(why, self.desk.counts().refused_for(why), last);
    }

    fn publish(&mut self, now: Duration) {
        if self.next_publish <= now {
            self.next_publish = now + PUBLISH;
            self.peers.metrics.publish(&self.desk);
            for why in Refusal::ALL {
                self.log_refused(why);
            }
        }
    }

    fn wait(&self) {
        if !self.incoming.is_empty() {
            return;
        }
        let now = self.began.elapsed();
        let mut until = now + self.lease / 16;
        if self.has_work() {
            until = until.min(self.next_iteration);
            if self.pace.wait == Wait::Spin {
                return std::hint::spin_loop();
            }
        }
        if 0 < self.desk.n_listed(Urgency::Now) {
            until = until.min(now + self.pace.interval);
        } else if 0 < self.desk.n_listed(Urgency::Soon) {
            until = until.min(self.next_batch.max(now + self.pace.interval));
        }
        std::thread::park_timeout(until.saturating_sub(now));
    }
}
