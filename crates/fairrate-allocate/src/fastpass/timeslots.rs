//! Timeslot allocation: maximal matchings, a batch of timeslots at a time.

use super::{FastpassConfig, FastpassError};

/// Which pairs are tried first in a timeslot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whoever was allocated longest ago: max-min fairness over time.
    LeastRecent,
    /// Whoever has the fewest timeslots left: shortest remaining processing time.
    ShortestRemaining,
}

/// A pair with demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    /// The timeslot it was allocated last, counted from 1; 0: never.
    last: u64,
    /// Timeslots it still wants, of those known when it came or was refilled.
    left: u32,
    src: u16,
    dst: u16,
}

/// A pair that has a timeslot, and what it wants then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Granted {
    left: u32,
    src: u16,
    dst: u16,
}

/// What `Timeslots::last` has for a pair that waits.
const WAITS: u64 = u64::MAX;

/// Allocates timeslots. Nothing is allocated on the heap once there were as many waiting pairs as there ever will be.
#[derive(Clone, Debug)]
pub struct Timeslots {
    n_hosts: usize,
    batch: u32,
    order: Order,
    n_slots: u64,
    /// For each pair, by `src * n_hosts + dst`: when it was allocated last, or [`WAITS`].
    last: Vec<u64>,
    /// For each pair: demand that its entry in `waiting` does not know of yet.
    unseen: Vec<u32>,
    /// Whether a pair that waits has unseen demand.
    more: bool,
    /// Pairs with demand, by `last`.
    waiting: Vec<Waiting>,
    /// Pairs with demand since the last batch.
    fresh: Vec<Waiting>,
    /// What will be `waiting`.
    next: Vec<Waiting>,
    free_src: Vec<u64>,
    free_dst: Vec<u64>,
    /// Who has each timeslot of the batch, in the order of taking it, and with what is left then: `n_hosts` places for
    /// each, since a host sends once.
    granted: Vec<Granted>,
    n_granted: Vec<u32>,
}

impl Timeslots {
    /// An allocator for hosts without demand.
    ///
    /// # Errors
    /// If the network or the batch is not one that can be arbitrated.
    pub fn new(config: &FastpassConfig) -> Result<Self, FastpassError> {
        config.check()?;
        let (n_hosts, slots) = (usize::from(config.hosts), config.batch as usize);
        Ok(Self {
            n_hosts,
            batch: config.batch,
            order: config.order,
            n_slots: 0,
            last: vec![0; n_hosts * n_hosts],
            unseen: vec![0; n_hosts * n_hosts],
            more: false,
            waiting: Vec::new(),
            fresh: Vec::new(),
            next: Vec::new(),
            free_src: vec![0; n_hosts],
            free_dst: vec![0; n_hosts],
            granted: vec![Granted::default(); n_hosts * slots],
            n_granted: vec![0; slots],
        })
    }

    /// Adds demand. Hosts must exist and differ.
    pub fn request(&mut self, src: u16, dst: u16, timeslots: u32) {
        assert!(src != dst, "host {src} sends to itself");
        assert!(usize::from(src.max(dst)) < self.n_hosts, "hosts {src} and {dst} of {}", self.n_hosts);
        if timeslots == 0 {
            return;
        }
        let pair = self.pair(src, dst);
        let last = std::mem::replace(&mut self.last[pair], WAITS);
        if last == WAITS {
            self.unseen[pair] = self.unseen[pair].saturating_add(timeslots);
            self.more = true;
        } else {
            self.fresh.push(Waiting { last, left: timeslots, src, dst });
        }
    }

    /// Allocates the next batch. Returns the number of packets in it.
    pub fn allocate(&mut self) -> usize {
        let all = u64::MAX >> (64 - self.batch);
        self.free_src.fill(all);
        self.free_dst.fill(all);
        self.n_granted.fill(0);
        self.next.clear();
        self.next.reserve(self.waiting.len() + self.fresh.len());
        match self.order {
            Order::LeastRecent => self.by_age(),
            Order::ShortestRemaining => self.by_length(),
        }
        std::mem::swap(&mut self.waiting, &mut self.next);
        self.n_slots += u64::from(self.batch);
        self.n_granted.iter().map(|&n| n as usize).sum()
    }

    /// Who sends to whom in a timeslot of the last batch, from 0.
    pub fn pairs(&self, slot: u32) -> impl Iterator<Item = (u16, u16)> + Clone {
        let granted = &self.granted[slot as usize * self.n_hosts..][..self.n_granted[slot as usize] as usize];
        granted.iter().map(|entry| (entry.src, entry.dst))
    }

    /// Timeslots of a batch.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// How many timeslots were allocated before the next batch.
    pub fn n_slots(&self) -> u64 {
        self.n_slots
    }

    /// How many pairs have demand left.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len() + self.fresh.len()
    }

    /// Least recently allocated first: those who waited and those who are new, merged by age; then those who were
    /// allocated in the batch's first timeslot and want more, those of its second, and so on.
    fn by_age(&mut self) {
        // The whole key, so that an unstable sort, which needs no memory, has one result.
        self.fresh.sort_unstable_by_key(|entry| (entry.last, entry.src, entry.dst));
        let (waiting, fresh) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.fresh));
        let mut new = fresh.iter().copied().peekable();
        for &entry in &waiting {
            while let Some(older) = new.next_if(|new| new.last < entry.last) {
                self.offer(older);
            }
            self.offer(entry);
        }
        for entry in new {
            self.offer(entry);
        }
        (self.waiting, self.fresh) = (waiting, fresh);
        self.fresh.clear();
        for slot in 0..self.batch as usize {
            // Nobody is added to this timeslot any more: whoever took it found all earlier ones occupied, and they stay.
            for i in 0..self.n_granted[slot] as usize {
                let Granted { left, src, dst } = self.granted[slot * self.n_hosts + i];
                let entry = Waiting { last: self.n_slots + slot as u64 + 1, left, src, dst };
                if let Some(entry) = self.wants_more(entry) {
                    self.offer(entry);
                }
            }
        }
    }

    /// Fewest timeslots left first. Whoever is first stays it with every timeslot, so it takes all it can at once.
    fn by_length(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.append(&mut self.fresh);
        if std::mem::take(&mut self.more) {
            for entry in &mut waiting {
                let pair = self.pair(entry.src, entry.dst);
                entry.left = entry.left.saturating_add(std::mem::take(&mut self.unseen[pair]));
            }
        }
        waiting.sort_unstable_by_key(|entry| (entry.left, entry.last, entry.src, entry.dst));
        for &entry in &waiting {
            let mut entry = Some(entry);
            while let Some(now) = entry {
                entry = self.take(now).and_then(|taken| self.wants_more(taken));
            }
        }
        self.waiting = waiting;
    }

    /// Gives a pair its first timeslot; without one it goes on waiting.
    fn offer(&mut self, entry: Waiting) {
        self.take(entry);
    }

    /// The pair as it is with the first timeslot that source and destination have free; without one it goes on waiting.
    fn take(&mut self, entry: Waiting) -> Option<Waiting> {
        let (src, dst) = (&mut self.free_src[usize::from(entry.src)], &mut self.free_dst[usize::from(entry.dst)]);
        let common = *src & *dst;
        if common == 0 {
            self.next.push(entry);
            return None;
        }
        let first = common & common.wrapping_neg();
        *src ^= first;
        *dst ^= first;
        let slot = common.trailing_zeros() as usize;
        let taken = Waiting { last: self.n_slots + slot as u64 + 1, left: entry.left - 1, ..entry };
        self.granted[slot * self.n_hosts + self.n_granted[slot] as usize] =
            Granted { left: taken.left, src: taken.src, dst: taken.dst };
        self.n_granted[slot] += 1;
        Some(taken)
    }

    /// The pair if it wants more timeslots; otherwise it waits no longer.
    fn wants_more(&mut self, entry: Waiting) -> Option<Waiting> {
        if entry.left != 0 {
            return Some(entry);
        }
        let pair = self.pair(entry.src, entry.dst);
        match std::mem::take(&mut self.unseen[pair]) {
            0 => {
                self.last[pair] = entry.last;
                None
            }
            left => Some(Waiting { left, ..entry }),
        }
    }

    fn pair(&self, src: u16, dst: u16) -> usize {
        usize::from(src) * self.n_hosts + usize::from(dst)
    }
}
