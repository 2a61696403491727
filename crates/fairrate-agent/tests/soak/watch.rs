//! The observer: a thread that looks at all sending sockets every few milliseconds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::load::{Flow, Load};
use crate::network::{LINK_MBPS, Network, PAYLOAD_SHARE};
use crate::socket;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(5);
/// The lease: the allocator's default.
pub const LEASE: Duration = Duration::from_millis(500);
/// Time without a rate that is written down.
const LONG_GAP: Duration = Duration::from_millis(100);
/// Time after a fault in which the host that it hit is left out of the rules: two leases.
const RECOVERY: Duration = Duration::from_secs(1);
/// Sum of rates in force on a link that is too much, relative to the link.
pub const TOO_MUCH: f64 = 1.02;
/// Time of one update: an agent's look and an iteration, a millisecond each, the batch, and two samples, rounded up.
pub const UPDATE: Duration = Duration::from_millis(15);

/// A fault that hits a host itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Its agent has ended.
    Agent,
    /// Its link is down.
    Link,
    /// One of the allocators cannot be reached.
    Cut,
}

/// A time of a flow without a rate that is longer than a fifth of the lease.
#[derive(Clone, Debug)]
pub struct Gap {
    pub src: u32,
    pub dst: u32,
    /// Time from the start of the observer to the beginning of the gap.
    pub from: Duration,
    pub length: Duration,
    /// Time from the flow's first byte to the beginning of the gap.
    pub age: Duration,
    /// Time since the last acknowledgment, and doublings of the retransmission timeout, at the gap's last sample.
    pub since_ack: Duration,
    pub backoff: u8,
}

/// Observations since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of samples, and of connections in all of them.
    pub samples: u64,
    pub flows: u64,
    /// Largest sum of rates in force on a link, relative to the link.
    pub largest_sum: f64,
    /// The same with flows of hosts whose agent is dead.
    pub largest_with_dead: f64,
    /// Longest time above [`TOO_MUCH`].
    pub longest_above: Duration,
    /// The part of such a time that is beyond a round trip, an update and the lateness of samples: the longest.
    pub longest_beyond: Duration,
    /// Longest time of a flow without a rate, and the longest without the lateness of samples.
    pub longest_gap: Duration,
    pub longest_awake_gap: Duration,
    /// The longer gaps, as they were at their last sample.
    pub gaps: Vec<Gap>,
    /// Times from first bytes to rates.
    pub latencies: Vec<Duration>,
    /// Flows that were over before they had a rate.
    pub unrated: u64,
    /// Longest time between two samples.
    pub longest_pause: Duration,
}

impl Tally {
    /// Adds the observations of another time.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.flows += other.flows;
        self.unrated += other.unrated;
        self.largest_sum = self.largest_sum.max(other.largest_sum);
        self.largest_with_dead = self.largest_with_dead.max(other.largest_with_dead);
        self.longest_above = self.longest_above.max(other.longest_above);
        self.longest_beyond = self.longest_beyond.max(other.longest_beyond);
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.longest_awake_gap = self.longest_awake_gap.max(other.longest_awake_gap);
        self.longest_pause = self.longest_pause.max(other.longest_pause);
        self.latencies.extend_from_slice(&other.latencies);
    }
}

/// The observer.
pub struct Watch {
    shared: Arc<Shared>,
}

struct Shared {
    /// The fault of each host, with the time until which it counts; `None`: it lasts.
    hits: Mutex<Vec<Option<(Hit, Option<Instant>)>>>,
    tally: Mutex<Tally>,
    is_over: AtomicBool,
}

impl Watch {
    /// Starts the observer of the connections of `load`.
    pub fn start(network: &Network, load: &Arc<Load>) -> Self {
        let hosts = network.hosts() as usize;
        let hits = Mutex::new(vec![None; hosts]);
        let shared = Arc::new(Shared { hits, tally: Mutex::default(), is_over: AtomicBool::new(false) });
        let (seen, load) = (Arc::clone(&shared), Arc::clone(load));
        std::thread::spawn(move || {
            let above = (0..2 * hosts).map(|_| None).collect();
            let began = Instant::now();
            let mut eye = Eye { flows: BTreeMap::new(), above, began, before: began };
            while !seen.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(PERIOD);
                let now = Instant::now();
                eye.look(now, &load.flows(), &seen.present(now), &mut lock(&seen.tally));
            }
        });
        Self { shared }
    }

    /// Records that a fault hits `host`.
    pub fn hit(&self, host: u32, hit: Hit) {
        lock(&self.shared.hits)[host as usize] = Some((hit, None));
    }

    /// Records that the fault of `host` is over.
    pub fn mended(&self, host: u32) {
        if let Some((_, until)) = &mut lock(&self.shared.hits)[host as usize] {
            *until = Some(Instant::now() + RECOVERY);
        }
    }

    /// Returns the observations since the last call.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut lock(&self.shared.tally))
    }

    /// Ends the observer.
    pub fn stop(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Returns the faults of all hosts at `now`.
    fn present(&self, now: Instant) -> Vec<Option<Hit>> {
        let lasts = |(hit, until): (Hit, Option<Instant>)| until.is_none_or(|until| now < until).then_some(hit);
        lock(&self.hits).iter().map(|hit| hit.and_then(lasts)).collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Observations of a flow.
#[derive(Default)]
struct Seen {
    has_had_rate: bool,
    was_hit: bool,
    /// Time since when it could have had a rate and had none.
    without_since: Option<Instant>,
    /// Time by which samples were late since then.
    late: Duration,
    /// The time without a rate at the last sample, if it is long.
    gap: Option<Gap>,
}

/// Observations that go on from sample to sample.
struct Eye {
    flows: BTreeMap<u64, Seen>,
    /// The excess of each link that is above [`TOO_MUCH`]. Links of senders are first.
    above: Vec<Option<Above>>,
    /// Time of the start, and of the last sample.
    began: Instant,
    before: Instant,
}

/// A time in which a link is above [`TOO_MUCH`].
struct Above {
    since: Instant,
    /// Its longest round trip since then.
    round_trip: Duration,
    /// Time by which samples were late since then: the machine wakes no thread in time, the agents' neither.
    late: Duration,
}

/// A link in a sample.
#[derive(Clone, Copy, Default)]
struct OnLink {
    sum: f64,
    with_dead: f64,
    /// The longest round trip of its flows, or time since an acknowledgment if that is longer.
    round_trip: Duration,
}

impl Eye {
    /// Takes a sample of `flows` at `now`, when hosts have the faults `hits`.
    fn look(&mut self, now: Instant, flows: &[(u64, Arc<Flow>)], hits: &[Option<Hit>], tally: &mut Tally) {
        let n = hits.len();
        let pause = now.saturating_duration_since(self.before);
        let late = pause.saturating_sub(PERIOD);
        self.before = now;
        let mut links = vec![OnLink::default(); 2 * n];
        for (number, flow) in flows {
            let Some(state) = socket::state(&flow.socket) else { continue };
            let (src, dst) = (flow.src as usize, flow.dst as usize);
            let has_rate = state.limit_bps.is_finite();
            if has_rate {
                let share = state.limit_bps / PAYLOAD_SHARE / (f64::from(LINK_MBPS) * 1e6);
                for link in [src, n + dst] {
                    let link = &mut links[link];
                    link.with_dead += share;
                    if hits[src] != Some(Hit::Agent) {
                        link.sum += share;
                        link.round_trip = link.round_trip.max(state.rtt).max(state.since_ack);
                    }
                }
            }
            let is_hit = hits[src].is_some() || hits[dst] == Some(Hit::Link);
            let is_active = state.has_data || !flow.is_written.load(Ordering::Relaxed);
            self.flow((now, late), (*number, flow), &state, (has_rate, is_hit, is_active), tally);
        }
        self.flows.retain(|number, seen| {
            let is_open = flows.binary_search_by_key(number, |(number, _)| *number).is_ok();
            if !is_open {
                tally.gaps.extend(seen.gap.take());
            }
            tally.unrated += u64::from(!is_open && !seen.has_had_rate && !seen.was_hit);
            is_open
        });
        tally.longest_pause = tally.longest_pause.max(pause);
        for (at, link) in links.iter().enumerate() {
            self.link((now, late), at, link, tally);
        }
        tally.samples += 1;
        tally.flows += flows.len() as u64;
    }

    fn flow(
        &mut self,
        (now, late): (Instant, Duration),
        (number, flow): (u64, &Flow),
        state: &socket::State,
        (has_rate, is_hit, is_active): (bool, bool, bool),
        tally: &mut Tally,
    ) {
        let began = flow.began;
        let seen = self.flows.entry(number).or_insert_with(|| Seen { without_since: Some(began), ..Seen::default() });
        seen.was_hit |= is_hit;
        if has_rate && !seen.has_had_rate && !seen.was_hit {
            tally.latencies.push(now.saturating_duration_since(began));
        }
        seen.has_had_rate |= has_rate;
        if is_hit || has_rate || !is_active {
            (seen.without_since, seen.late) = (None, Duration::ZERO);
            tally.gaps.extend(seen.gap.take());
            return;
        }
        let since = *seen.without_since.get_or_insert(now);
        let length = now.saturating_duration_since(since);
        // Of the first sample's lateness only the part after the beginning counts.
        seen.late += late.min(length);
        tally.longest_gap = tally.longest_gap.max(length);
        tally.longest_awake_gap = tally.longest_awake_gap.max(length.saturating_sub(seen.late));
        if LONG_GAP <= length {
            seen.gap = Some(Gap {
                src: flow.src,
                dst: flow.dst,
                from: since.saturating_duration_since(self.began),
                length,
                age: since.saturating_duration_since(began),
                since_ack: state.since_ack,
                backoff: state.backoff,
            });
        }
    }

    fn link(&mut self, (now, late): (Instant, Duration), at: usize, link: &OnLink, tally: &mut Tally) {
        tally.largest_sum = tally.largest_sum.max(link.sum);
        tally.largest_with_dead = tally.largest_with_dead.max(link.with_dead);
        if link.sum <= TOO_MUCH {
            self.above[at] = None;
            return;
        }
        let excess =
            self.above[at].get_or_insert(Above { since: now, round_trip: Duration::ZERO, late: Duration::ZERO });
        excess.round_trip = link.round_trip.max(excess.round_trip);
        excess.late += late;
        let above = now.saturating_duration_since(excess.since);
        tally.longest_above = tally.longest_above.max(above);
        let allowed = excess.round_trip + UPDATE + excess.late;
        tally.longest_beyond = tally.longest_beyond.max(above.saturating_sub(allowed));
    }
}
