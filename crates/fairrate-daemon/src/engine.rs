//! The optimiser's thread: it takes what connections say, iterates, and fills their outboxes.
//!
//! A connection has at most one batch of bytes on its way. While its socket does not take them, changed rates stay what they are
//! at the desk: a set of flows. Few connections have bytes that wait for a thread to write them, so that the first rates of
//! flows, which go past, come to the front at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::{Notify, mpsc};

use crate::desk::{ConnectionId, Desk, Identity, Refusal, Urgency};
use crate::peers::{Peer, PeerLog};
use crate::stream::WRITE;
use crate::wire::{FromAgent, Reason};

/// What happens on connections.
pub(crate) enum Event {
    /// There is a new one.
    Connected { id: ConnectionId, identity: Identity, outbox: Arc<Outbox> },
    /// The agent has said this.
    Said(ConnectionId, Vec<FromAgent>),
    /// It is to be closed, for this reason.
    Close(ConnectionId, Reason),
    /// It is gone.
    Disconnected(ConnectionId),
    /// All are to be closed, for this reason.
    CloseAll(Reason),
    /// The thread is to end, and all connections with it.
    Stop,
}

/// Events that wait at most; beyond, connections are not read.
const EVENTS: usize = 256;

/// Messages taken between two iterations at most, about.
const MESSAGES_A_TURN: usize = 4096;

/// Connections with bytes that wait for a thread, beyond which what is not urgent stays at the desk.
const WAITING: usize = 32;

/// Numbers for operators are brought up to date this often.
const PUBLISH: Duration = Duration::from_millis(100);

/// What the thread does until the next iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// It sleeps: iterations come some 60 us late, and the core is free meanwhile.
    #[default]
    Sleep,
    /// It keeps its core busy while there are rates to find: iterations come in time.
    Spin,
}

/// When the thread does what.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between iterations.
    pub interval: Duration,
    /// What it does in between.
    pub wait: Wait,
    /// Least time between two batches of changed rates.
    pub batch: Duration,
    /// After so many iterations without a rate to tell it waits for the next flowlet.
    pub rest_after: u32,
}

/// What is to be written to a connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Whose it is.
    peer: Peer,
    state: Mutex<Outgoing>,
    /// There are bytes, or the connection is to be closed.
    pub changed: Notify,
}

#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// When they were put there.
    since: Duration,
    /// While no thread has taken them.
    waiting: Option<Waiting>,
    /// Whether a thread has taken some and has not come back for more.
    is_writing: bool,
    closed: Option<Reason>,
}

/// Counts one for as long as it lives.
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
    /// The empty outbox of a connection with `peer`.
    pub fn new(peer: Peer) -> Self {
        Self { peer, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Swaps what there is to write into an empty buffer; why the connection is to be closed after that.
    pub fn take(&self, bytes: &mut Vec<u8>) -> Option<Reason> {
        let mut state = self.lock();
        std::mem::swap(&mut state.bytes, bytes);
        state.waiting = None;
        state.is_writing = !bytes.is_empty();
        state.closed
    }

    /// Whether the connection is to be closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    fn close(&self, reason: Reason) {
        self.lock().closed = Some(reason);
        self.changed.notify_one();
    }
}

/// The way to the thread.
#[derive(Clone)]
pub(crate) struct ToEngine {
    events: mpsc::Sender<Event>,
    thread: Thread,
}

impl ToEngine {
    /// Sends an event as soon as there is room. False: the thread has ended.
    pub async fn send(&self, event: Event) -> bool {
        let is_there = self.events.send(event).await.is_ok();
        self.thread.unpark();
        is_there
    }
}

/// Starts the thread.
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
    /// Iterations since a flow changed or a rate was to be told.
    quiet: u32,
    /// Outboxes with bytes that no thread has taken.
    waiting: Arc<AtomicUsize>,
    closed: Vec<(ConnectionId, Reason)>,
}

impl Engine {
    fn run(mut self) {
        loop {
            let now = self.began.elapsed();
            let goes_on = self.take_events(now);
            self.desk.tick(now);
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

    /// Takes some of what waits. False: the thread is to end.
    fn take_events(&mut self, now: Duration) -> bool {
        let mut n_messages = 0;
        while n_messages < MESSAGES_A_TURN {
            let event = match self.incoming.try_recv() {
                Ok(event) => event,
                Err(mpsc::error::TryRecvError::Empty) => return true,
                Err(mpsc::error::TryRecvError::Disconnected) => Event::Stop,
            };
            self.quiet = 0;
            n_messages += 1;
            match event {
                Event::Connected { id, identity, outbox } => {
                    self.outboxes.insert(id, outbox);
                    self.desk.on_connected(now, id, identity);
                }
                Event::Said(id, messages) => {
                    n_messages += messages.len();
                    for message in messages {
                        self.desk.on_message(now, id, message);
                    }
                }
                Event::Close(id, reason) => self.desk.close(now, id, reason),
                Event::Disconnected(id) => {
                    // What it was closed for is logged with its name.
                    self.close_connections();
                    self.part_from(id);
                    self.desk.on_disconnected(now, id);
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

    /// Fills outboxes that are empty, `most` of them.
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

    /// Forgets a connection, after what is to be logged with its name.
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
