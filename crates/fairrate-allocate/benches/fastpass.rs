//! Fastpass's arbiter on one core: batches of 64 timeslots for hosts that request ten packets at a time, for random
//! destinations, at 0.9 of their capacity, and for hosts that always have packets for ten others.
//!
//! Throughput is in packets. A packet of 1,500 B is 12 kbit, so 100 M packets/s are 1.2 Tb/s, whatever the links' rate;
//! a higher rate only means more timeslots a second.
//!
//! `cargo bench -p fairrate-allocate --bench fastpass`

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use fairrate_allocate::fastpass::{Fastpass, FastpassConfig, Order, Paths, Timeslots};

/// Number of packets in a request.
const REQUEST: u32 = 10;

/// Returns racks of 32 hosts, and a core of 8 spines with links of four times a host's rate.
fn network(hosts: u16, order: Order) -> FastpassConfig {
    FastpassConfig { hosts, hosts_per_rack: 32, spines: 8, packets_per_link: 4, order, batch: 64 }
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * n) >> 32
    }

    fn pair(&mut self, hosts: u16) -> (u16, u16) {
        let src = self.below(u64::from(hosts)) as u16;
        (src, (src + 1 + self.below(u64::from(hosts) - 1) as u16) % hosts)
    }
}

/// Returns the requests of a batch at `load`, in hundredths.
fn requests(hosts: u16, load: u32, draws: &mut Draws) -> Vec<(u16, u16)> {
    let n = u32::from(hosts) * 64 * load / (100 * REQUEST);
    (0..n).map(|_| draws.pair(hosts)).collect()
}

/// Returns the time to allocate `n` packets once the backlog is steady, without the time of requests.
fn time(n: u64, hosts: u16, load: u32, mut allocate: impl FnMut(&[(u16, u16)]) -> (usize, Duration)) -> Duration {
    let mut draws = Draws(1);
    let (mut packets, mut took) = (0, Duration::ZERO);
    for batch in 0.. {
        let (granted, time) = allocate(&requests(hosts, load, &mut draws));
        if 100 < batch {
            packets += granted as u64;
            took += time;
        }
        if n <= packets {
            // The last batch may exceed the requested number.
            return took.mul_f64(n as f64 / packets as f64);
        }
    }
    took
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = black_box(work());
    (result, start.elapsed())
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("fastpass");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for hosts in [128, 512, 2_048] {
        for (name, order) in [("max-min", Order::LeastRecent), ("srpt", Order::ShortestRemaining)] {
            group.bench_function(BenchmarkId::new(format!("timeslots/{name}/0.9"), hosts), |b| {
                b.iter_custom(|n| {
                    let mut timeslots = Timeslots::new(&network(hosts, order)).expect("a network of full bisection");
                    time(n, hosts, 90, |requests| {
                        let work = || {
                            for &(src, dst) in requests {
                                timeslots.request(src, dst, REQUEST);
                            }
                            timeslots.allocate()
                        };
                        timed(work)
                    })
                });
            });
        }
        group.bench_function(BenchmarkId::new("timeslots/max-min/backlogged", hosts), |b| {
            b.iter_custom(|n| {
                let mut timeslots = Timeslots::new(&network(hosts, Order::LeastRecent)).expect("full bisection");
                let mut draws = Draws(2);
                for _ in 0..10 * u32::from(hosts) {
                    let (src, dst) = draws.pair(hosts);
                    timeslots.request(src, dst, u32::MAX);
                }
                time(n, hosts, 0, |_| timed(|| timeslots.allocate()))
            });
        });
        group.bench_function(BenchmarkId::new("paths", hosts), |b| {
            b.iter_custom(|n| {
                let network = network(hosts, Order::LeastRecent);
                let mut timeslots = Timeslots::new(&network).expect("full bisection");
                let mut paths = Paths::new(&network).expect("full bisection");
                let mut spines = vec![0; usize::from(hosts)];
                time(n, hosts, 90, |requests| {
                    for &(src, dst) in requests {
                        timeslots.request(src, dst, REQUEST);
                    }
                    let granted = timeslots.allocate();
                    let ((), took) =
                        timed(|| (0..64).for_each(|slot| paths.select(timeslots.pairs(slot), &mut spines)));
                    (granted, took)
                })
            });
        });
        group.bench_function(BenchmarkId::new("both/max-min/0.9", hosts), |b| {
            b.iter_custom(|n| {
                let mut arbiter = Fastpass::new(network(hosts, Order::LeastRecent)).expect("full bisection");
                time(n, hosts, 90, |requests| {
                    let work = || {
                        for &(src, dst) in requests {
                            arbiter.request(src, dst, REQUEST);
                        }
                        arbiter.allocate()
                    };
                    timed(work)
                })
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
