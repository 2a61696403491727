//! Fastpass's arbiter: assigns to every packet a timeslot and a spine.
//!
//! Perry, Ousterhout, Balakrishnan, Shah, Fugal: "Fastpass: A Centralized Zero-Queue Datacenter Network", SIGCOMM 2014,
//! sections 3 (timeslot allocation) and 4 (path selection). It is what Flowtune (MIT-CSAIL-TR-2016-011, section 6.1)
//! compares its allocator with: Fastpass works for every packet, Flowtune for every flowlet.
//!
//! | paper | here | unit |
//! |---|---|---|
//! | demand of a source for a destination | [`Fastpass::request`] | timeslots |
//! | timeslot: a full packet at a host's rate, 1.23 us at 10 Gb/s | a position in a batch | - |
//! | allocation: a maximal matching of sources and destinations | [`Fastpass::grants`] | - |
//! | last allocated timeslot of a pair | `Waiting::last` | timeslots |
//! | bins of pairs by last allocated timeslot | `Timeslots::granted`, one for every timeslot of a batch | - |
//! | bitmaps of free timeslots | `Timeslots::free_src`, `free_dst` | a bit a timeslot |
//! | path: the spine | [`Grant::spine`] | - |
//!
//! **Timeslots.** For every timeslot the arbiter goes through the pairs that have demand, least recently allocated
//! first (max-min fairness) or fewest timeslots left first (completion times), and allocates it to each pair whose
//! source and destination are both still free. Pairs that get no timeslot pass to the next one. The paper runs this as
//! a pipeline: here, as in it, the timeslots of a batch are bits of a word, so a pair finds its first possible timeslot
//! with one AND and one count of zeros. For the least recently allocated this is exactly the slot-by-slot procedure: a
//! pair can only take a timeslot that all pairs before it have passed, and having taken one it goes to the end of those
//! allocated in that timeslot. A pair therefore waits at most as many timeslots as its source and its destination have
//! other pairs.
//!
//! **Paths.** Packets of a timeslot are edges of a bipartite multigraph of racks: sources on one side, destinations on
//! the other. Each edge gets a spine so that no link has more packets than it carries in a timeslot. Edges are coloured
//! one by one with a colour that is free at both racks, again with one AND and one count of zeros, and a spine is a set
//! of colours. If no colour is free at both, two colours are exchanged along an alternating path, which always works
//! with as many colours as a rack has packets. Racks of more than 64 hosts are halved first: edges are paired at each
//! rack, the edges of a pair go to different halves, and every rack has at most half its edges, rounded up, in each
//! half. (Halving down to single spines, the paper's way, takes six times as long here: its branches cannot be
//! predicted.)
//!
//! Readings, where the paper leaves a choice:
//! - Keys of the second order are those at the start of a batch. A batch of one timeslot has no such delay.
//! - Demand that arrives while a batch is allocated counts from the next batch on.
//! - Only networks of full bisection: racks with more hosts than their links carry are refused, because a matching of
//!   hosts could then be more than its racks can send.
//! - One core. In the paper batches follow each other on several cores, each handing over its remaining demand; the
//!   numbers per core compare.

mod paths;
mod timeslots;

pub use paths::Paths;
pub use timeslots::{Order, Timeslots};

/// A network and the rules to allocate it. There are no defaults, since all values depend on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastpassConfig {
    /// Hosts, 2 to [`FastpassConfig::HOSTS_MAX`]; host `h` is in rack `h / hosts_per_rack`.
    pub hosts: u16,
    /// Hosts of a rack; the last rack may have fewer.
    pub hosts_per_rack: u16,
    /// Spines, each with one link to every rack.
    pub spines: u16,
    /// Packets that the link between a rack and a spine carries in a timeslot: its rate over a host's.
    pub packets_per_link: u16,
    /// Order in which pairs are tried.
    pub order: Order,
    /// Timeslots allocated at a time, 1 to 64.
    pub batch: u32,
}

impl FastpassConfig {
    /// Largest number of hosts: with more, the tables of pairs would need more than half a gigabyte.
    pub const HOSTS_MAX: u16 = 6_144;

    fn check(&self) -> Result<(), FastpassError> {
        let Self { hosts, hosts_per_rack, spines, packets_per_link, batch, .. } = *self;
        if !(2..=Self::HOSTS_MAX).contains(&hosts) {
            return Err(FastpassError::Hosts { hosts });
        }
        if !(1..=64).contains(&batch) {
            return Err(FastpassError::Batch { batch });
        }
        let carries = u32::from(spines) * u32::from(packets_per_link);
        if hosts_per_rack == 0 || carries < u32::from(hosts_per_rack.min(hosts)) {
            return Err(FastpassError::Rack { hosts_per_rack, carries });
        }
        Ok(())
    }
}

/// A configuration that the arbiter refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FastpassError {
    /// Too few or too many hosts.
    #[error("{hosts} hosts; there must be 2 to {}", FastpassConfig::HOSTS_MAX)]
    Hosts {
        /// Number of hosts.
        hosts: u16,
    },
    /// A batch that does not fit a word of bits.
    #[error("a batch of {batch} timeslots; it must have 1 to 64")]
    Batch {
        /// Number of timeslots.
        batch: u32,
    },
    /// Racks whose packets have no paths by halving and then colours in a word.
    #[error(
        "{hosts_per_rack} hosts of a rack on {spines} spines: halved as often as spines can be, more than 64 are left"
    )]
    Colours {
        /// Hosts of a rack.
        hosts_per_rack: u16,
        /// Spines.
        spines: u16,
    },
    /// An empty rack, or a rack whose links carry less than its hosts send.
    #[error("racks of {hosts_per_rack} hosts whose links carry {carries} packets in a timeslot")]
    Rack {
        /// Hosts.
        hosts_per_rack: u16,
        /// Packets that all links of the rack carry in a timeslot.
        carries: u32,
    },
}

/// The allocation of one packet: `src` sends to `dst` in a timeslot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Sending host.
    pub src: u16,
    /// Receiving host.
    pub dst: u16,
    /// Spine that carries the packet; `None` within a rack.
    pub spine: Option<u16>,
}

/// Marker of "no spine" in the array of spines.
const NO_SPINE: u16 = u16::MAX;

/// The arbiter: timeslots, then their paths.
#[derive(Clone, Debug)]
pub struct Fastpass {
    timeslots: Timeslots,
    paths: Paths,
    /// Spines of grants: `n_hosts` places for each timeslot.
    spines: Vec<u16>,
    n_hosts: usize,
}

impl Fastpass {
    /// Creates an arbiter for a network without demand.
    ///
    /// # Errors
    /// If the network or the batch cannot be arbitrated.
    pub fn new(config: FastpassConfig) -> Result<Self, FastpassError> {
        config.check()?;
        let n_hosts = usize::from(config.hosts);
        Ok(Self {
            timeslots: Timeslots::new(&config)?,
            paths: Paths::new(&config)?,
            spines: vec![NO_SPINE; n_hosts * config.batch as usize],
            n_hosts,
        })
    }

    /// Adds `timeslots` to the demand of `src` for `dst`. Hosts must exist and differ.
    pub fn request(&mut self, src: u16, dst: u16, timeslots: u32) {
        self.timeslots.request(src, dst, timeslots);
    }

    /// Allocates the next batch of timeslots and their paths; returns the number of packets in it.
    pub fn allocate(&mut self) -> usize {
        let granted = self.timeslots.allocate();
        for slot in 0..self.timeslots.batch() {
            let spines = &mut self.spines[slot as usize * self.n_hosts..][..self.n_hosts];
            self.paths.select(self.timeslots.pairs(slot), spines);
        }
        granted
    }

    /// Returns the packets of timeslot `slot` of the last batch, counted from 0.
    pub fn grants(&self, slot: u32) -> impl Iterator<Item = Grant> {
        let spines = &self.spines[slot as usize * self.n_hosts..];
        self.timeslots.pairs(slot).zip(spines).map(|((src, dst), &spine)| Grant {
            src,
            dst,
            spine: (spine != NO_SPINE).then_some(spine),
        })
    }

    /// Returns the number of timeslots allocated before the next batch.
    pub fn n_slots(&self) -> u64 {
        self.timeslots.n_slots()
    }

    /// Returns the number of pairs with demand left.
    pub fn n_waiting(&self) -> usize {
        self.timeslots.n_waiting()
    }
}
