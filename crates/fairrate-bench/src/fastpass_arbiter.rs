//! Fastpass's arbiter on one core: requests of ten packets between random hosts, at 0.9 of the hosts' capacity.
//!
//! Its work is by packet, Flowtune's by flow: a packet of 1,500 B is 12 kbit, so the traffic that a core allocates is
//! its packets per second times 12 kbit, whatever the rate of links.

use std::hint::black_box;
use std::time::Instant;

use fairrate_allocate::fastpass::{FastpassConfig, Order, Paths, Timeslots};

use crate::median_min_max;
use crate::timing::{Draws, RUN_US};

/// Number of packets of a request.
const REQUEST: u32 = 10;
/// Requested packets, in percent of those that the hosts could send.
const LOAD_PERCENT: u32 = 90;
/// Number of timeslots after which the backlog is steady.
const SETTLING_SLOTS: u32 = 6_400;
const PACKET_BITS: f64 = 12e3;

/// Returns a network with racks of 32 hosts, and 8 spines with links of four times a host's rate, and an arbiter that
/// allocates `batch` timeslots at a time.
pub fn network(hosts: u16, batch: u32) -> FastpassConfig {
    FastpassConfig { hosts, hosts_per_rack: 32, spines: 8, packets_per_link: 4, order: Order::LeastRecent, batch }
}

/// Times of batches.
pub struct Times {
    /// Microseconds of a batch: median, smallest and largest of all runs.
    pub us: [f64; 3],
    /// Median over the runs of the nanoseconds per packet.
    pub ns_per_packet: f64,
}

impl Times {
    /// Returns the traffic that a core allocates, in Tb/s.
    #[must_use]
    pub fn tbps(&self) -> f64 {
        // Bits per nanosecond are Gb/s.
        PACKET_BITS / self.ns_per_packet / 1e3
    }
}

/// Measures an arbiter `runs` times; returns the times of timeslots alone, and of timeslots with paths.
///
/// # Panics
///
/// If the network has no full bisection.
#[must_use]
pub fn measure(config: &FastpassConfig, runs: usize) -> [Times; 2] {
    let mut traffic = Traffic { draws: Draws(1), hosts: config.hosts.into(), owed_percent: 0 };
    let mut timeslots = Timeslots::new(config).expect("a network of full bisection");
    for _ in 0..SETTLING_SLOTS / config.batch {
        allocate(&mut timeslots, &traffic.requests(config.batch));
    }
    // Both measurements continue from the same backlog, with the same requests.
    let mut same = Traffic { draws: Draws(traffic.draws.0), ..traffic };
    let mut paths = Paths::new(config).expect("a network of full bisection");
    let mut spines = vec![0; usize::from(config.hosts)];
    let mut again = timeslots.clone();
    let alone = time(runs, config.batch, &mut traffic, |requests| allocate(&mut timeslots, requests));
    let both = time(runs, config.batch, &mut same, |requests| {
        let packets = allocate(&mut again, requests);
        (0..config.batch).for_each(|slot| paths.select(again.pairs(slot), &mut spines));
        black_box(&spines);
        packets
    });
    [alone, both]
}

/// Adds requests and allocates a batch. Returns the number of its packets.
fn allocate(timeslots: &mut Timeslots, requests: &[(u16, u16)]) -> usize {
    for &(src, dst) in requests {
        timeslots.request(src, dst, REQUEST);
    }
    timeslots.allocate()
}

/// The source of requests.
struct Traffic {
    draws: Draws,
    hosts: u32,
    /// Hundredths of a packet that do not fill a request, kept for the next batch.
    owed_percent: u32,
}

impl Traffic {
    /// Returns the requests of the next `timeslots` timeslots.
    fn requests(&mut self, timeslots: u32) -> Vec<(u16, u16)> {
        self.owed_percent += self.hosts * timeslots * LOAD_PERCENT;
        let n_requests = self.owed_percent / (100 * REQUEST);
        self.owed_percent %= 100 * REQUEST;
        (0..n_requests).map(|_| self.pair()).collect()
    }

    fn pair(&mut self) -> (u16, u16) {
        let src = self.draws.below(self.hosts);
        let dst = (src + 1 + self.draws.below(self.hosts - 1)) % self.hosts;
        (src as u16, dst as u16)
    }
}

/// Measures `runs` runs, each of a few batches with requests drawn beforehand. `act` takes a batch's requests and
/// returns its packets.
fn time(runs: usize, slots: u32, traffic: &mut Traffic, mut act: impl FnMut(&[(u16, u16)]) -> usize) -> Times {
    let mut run = |n_batches: u32| {
        let requests: Vec<_> = (0..n_batches).map(|_| traffic.requests(slots)).collect();
        let start = Instant::now();
        let packets: usize = requests.iter().map(|requests| act(requests)).sum();
        let us = start.elapsed().as_secs_f64() * 1e6;
        (us / f64::from(n_batches), us * 1e3 / packets as f64)
    };
    // The first batch fills caches.
    run(1);
    let n_batches = (RUN_US / run(1).0.max(0.01)).clamp(1.0, 1e6) as u32;
    let (mut us, mut ns_per_packet): (Vec<f64>, Vec<f64>) = (0..runs).map(|_| run(n_batches)).unzip();
    Times { us: median_min_max(&mut us), ns_per_packet: median_min_max(&mut ns_per_packet)[0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_allocated_once_the_backlog_has_settled() {
        for batch in [64, 8] {
            let config = network(64, batch);
            let mut traffic = Traffic { draws: Draws(1), hosts: 64, owed_percent: 0 };
            let mut timeslots = Timeslots::new(&config).unwrap();
            let mut packets_of = |n_slots: u32| -> usize {
                (0..n_slots / batch).map(|_| allocate(&mut timeslots, &traffic.requests(batch))).sum()
            };
            packets_of(SETTLING_SLOTS);
            // 64 hosts at 0.9 of a packet in each of 6,400 timeslots.
            let asked = f64::from(64 * SETTLING_SLOTS) * 0.9;
            let share = packets_of(SETTLING_SLOTS) as f64 / asked;
            assert!((share - 1.0).abs() < 0.02, "{share} of what was asked for with {batch} timeslots");
        }
    }

    #[test]
    fn a_core_allocates_its_packets_bits() {
        for times in measure(&network(64, 8), 2) {
            // 12 kbit in 12 ns are 1 Tb/s.
            assert!((times.tbps() * times.ns_per_packet - 12.0).abs() < 1e-9);
            assert!(times.us[1] <= times.us[0] && times.us[0] <= times.us[2]);
        }
    }
}
