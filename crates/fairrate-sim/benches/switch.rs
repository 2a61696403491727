//! A flow of 1 MB through 16 switches in a line, a hop at a time: of 17 hops in each direction 16 leave a switch. Under
//! `line-rate`, and with the telemetry of PowerTCP.
//!
//! `cargo bench -p fairrate-sim --bench switch`; `fairrate bench --job kernels` measures the same.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use fairrate_sim::topology::ParkingLot;
use fairrate_sim::{Recorder, SimConfig, Simulation};
use fairrate_units::{Bytes, Rate, Time};

#[path = "../tests/common/mod.rs"]
mod common;

const SWITCHES: u32 = 16;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("switch");
    for cc in ["line-rate", "powertcp"] {
        let config = config(cc);
        group.bench_function(BenchmarkId::from_parameter(cc), |b| {
            b.iter_custom(|n| time(&config, n));
        });
    }
    group.finish();
    criterion.final_summary();
}

fn config(cc: &str) -> SimConfig {
    let line = ParkingLot {
        switches: SWITCHES,
        hosts_per_switch: 1,
        host_rate: Rate::from_gbps(100),
        host_delay: Time::from_us(1),
        link_rate: Rate::from_gbps(100),
        link_rates: None,
        link_delay: Time::from_us(1),
    };
    let flow = common::flow(0, SWITCHES - 1, 1_000_000, Time::ZERO);
    let mut config = common::config(line.build(), common::algorithm(cc), vec![flow]);
    config.transport.mtu = Bytes::new(1_452);
    config
}

/// Returns the time of `n` packet-hops of `config`, from whole runs.
fn time(config: &SimConfig, n: u64) -> Duration {
    let (mut took, mut hops) = (Duration::ZERO, 0);
    while hops < n {
        let mut simulation = Simulation::new(config.clone());
        let start = Instant::now();
        let progress = simulation.run(&mut Recorder::default()).expect("a flow alone does not stall");
        took += start.elapsed();
        hops += progress.packet_hops;
    }
    took.mul_f64(n as f64 / hops as f64)
}
