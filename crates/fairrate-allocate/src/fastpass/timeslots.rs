//! Timeslot allocation: one maximal matching for each timeslot, a batch of timeslots at a time.

use super::{FastpassConfig, FastpassError};

/// The order in which pairs are tried in a timeslot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least recently allocated pair first: max-min fairness over time.
    LeastRecent,
    /// Pair with the fewest timeslots left first: shortest remaining processing time.
    ShortestRemaining,
}

/// A pair with demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    /// Timeslot of the pair's last allocation, counted from 1; 0: never.
    last: u64,
    /// Timeslots that the pair still wants, of those known when the entry was made or refilled.
    left: u32,
    src: u16,
    dst: u16,
}

/// A pair that has a timeslot, and the timeslots it wants after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Granted {
    left: u32,
    src: u16,
    dst: u16,
}

/// The value of `Timeslots::last` for a pair that waits.
const WAITS: u64 = u64::MAX;

/// The allocator of timeslots. It allocates no heap memory once the number of waiting pairs has reached its maximum.
#[derive(Clone, Debug)]
pub struct Timeslots {
    n_hosts: usize,
    batch: u32,
    order: Order,
    n_slots: u64,
    /// For each pair, by `src * n_hosts + dst`: timeslot of its last allocation, or [`WAITS`].
    last: Vec<u64>,
    /// For each pair: demand that its entry in `waiting` does not include yet.
    unseen: Vec<u32>,
    /// `true` if a pair that waits has unseen demand.
    more: bool,
    /// Pairs with demand, by `last`.
    waiting: Vec<Waiting>,
    /// Pairs with demand since the last batch.
    fresh: Vec<Waiting>,
    /// The next content of `waiting`.
    next: Vec<Waiting>,
    free_src: Vec<u64>,
    free_dst: Vec<u64>,
    /// The pairs of each timeslot of the batch, in the order of allocation, with the demand left then: `n_hosts` places
    /// for each timeslot, since a host sends once.
    granted: Vec<Granted>,
    n_granted: Vec<u32>,
}

impl Timeslots {
    /// Creates an allocator for hosts without demand.
    ///
    /// # Errors
    /// If the network or the batch cannot be arbitrated.
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

    /// Adds `timeslots` to the demand of `src` for `dst`. Hosts must exist and differ.
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

    /// Allocates the next batch; returns the number of packets in it.
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

    /// Returns the pairs (source, destination) of timeslot `slot` of the last batch, counted from 0.
    pub fn pairs(&self, slot: u32) -> impl Iterator<Item = (u16, u16)> + Clone {
        let granted = &self.granted[slot as usize * self.n_hosts..][..self.n_granted[slot as usize] as usize];
        granted.iter().map(|entry| (entry.src, entry.dst))
    }

    /// Returns the number of timeslots of a batch.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Returns the number of timeslots allocated before the next batch.
    pub fn n_slots(&self) -> u64 {
        self.n_slots
    }

    /// Returns the number of pairs with demand left.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len() + self.fresh.len()
    }

    /// Allocates the batch with the least recently allocated pairs first: waiting and new pairs, merged by age; then
    /// the pairs that were allocated in the batch's first timeslot and want more, those of its second, and so on.
    fn by_age(&mut self) {
        // The key is unique, so that an unstable sort, which needs no memory, has only one result.
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
            // No pair is added to this timeslot any more: each of its pairs found all earlier ones occupied, and they
            // stay so.
            for i in 0..self.n_granted[slot] as usize {
                let Granted { left, src, dst } = self.granted[slot * self.n_hosts + i];
                let entry = Waiting { last: self.n_slots + slot as u64 + 1, left, src, dst };
                if let Some(entry) = self.wants_more(entry) {
                    self.offer(entry);
                }
            }
        }
    }

    /// Allocates the batch with the fewest timeslots left first. The first pair stays first after every timeslot, so it
    /// takes all it can at once.
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

    /// Gives a pair its first timeslot; if there is none, the pair goes on waiting.
    fn offer(&mut self, entry: Waiting) {
        self.take(entry);
    }

    /// Gives a pair the first timeslot that its source and its destination both have free, and returns the pair as it
    /// is then; if there is none, the pair goes on waiting.
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

    /// Returns the pair if it wants more timeslots; otherwise ends its waiting.
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
