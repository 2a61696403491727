//! The runs behind the claims about RoCC: the paper's section VI.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::SimConfig;
use fairrate_units::Rate;

use crate::lab::{self, Record, mean_and_deviation, part, settle, smooth};
use crate::paper::{Job, Numbers, Options, algorithm, numbers};

/// Algorithms of Figure 11; `hpcc:0.99` is HPCC with a headroom of 1 % instead of 5 %.
pub const FIG11: [&str; 9] = ["rocc", "dcqcn", "dcqcn-pi", "timely", "qcn", "hpcc", "hpcc:0.99", "pacc", "bfc"];
/// Algorithms of Figure 12. `hpcc:by-line-rate` has an additive increase that follows the NIC, for ten flows.
pub const FIG12: [&str; 6] = ["rocc", "dcqcn", "hpcc", "hpcc:by-line-rate", "pacc", "bfc"];
/// What `hpcc:by-line-rate` sets: ten flows meet in Figures 11 and 12a, seven in 12b.
const BY_LINE_RATE: [(&str, &str); 2] =
    [("transport.hpcc.increase", "by-line-rate"), ("transport.hpcc.expected_flows", "10.0")];
/// RoCC as printed, and with whole gains while a queue is nearly empty.
pub const ROCC: [&str; 2] = ["rocc", "rocc:full"];
/// Figure 8: flows, link rates and, below, Qref.
pub const FIG8_FLOWS: [u32; 3] = [2, 10, 100];
/// In Gb/s.
pub const FIG8_GBPS: [u64; 2] = [40, 100];
/// Figure 9: active flows, changing every 10 ms. The paper says up to 100; its public code has 96, and so has the example.
pub const FIG9_FLOWS: [u32; 11] = [3, 6, 12, 24, 48, 96, 48, 24, 12, 6, 3];
/// Figures 13 and 14: what the three hosts offer in the mixed case, in Gb/s.
pub const FIG13_MIX: [u64; 3] = [10, 3, 1];
/// See above.
pub const FIG14_MIX: [u64; 3] = [40, 30, 10];

/// Windows over which queues and rates are averaged before they are called settled: five of RoCC's periods.
const WINDOW_US: usize = 200;
const SAMPLE_US: usize = 20;
const SAMPLE: &str = "20us";
/// How long runs are that compare algorithms, some of which take tens of milliseconds to settle, and the part of it in
/// which they are measured. The paper has no durations.
const LONG: &str = "200ms";
const STEADY_S: (f64, f64) = (0.1, 0.2);

/// All runs.
pub fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut add = |name: &str, cc: &'static str, measure: fn(&Path, &str) -> Result<Numbers, String>| {
        let root = root.to_owned();
        jobs.push(Job::new(name, cc, move || measure(&root, cc)));
    };
    for cc in ROCC {
        add("fig9", cc, fig9);
    }
    for cc in FIG11 {
        add("fig11", cc, fig11);
    }
    for cc in FIG12 {
        add("fig12a", cc, fig12a);
    }
    for cc in FIG12 {
        add("fig12b", cc, fig12b);
    }
    add("fig13-uni", "rocc", |root, _| testbed(root, 10, [10; 3], FIG13));
    add("fig13-mix", "rocc", |root, _| testbed(root, 10, FIG13_MIX, FIG13));
    add("fig14-uni", "rocc", |root, _| testbed(root, 40, [40; 3], FIG14));
    add("fig14-mix", "rocc", |root, _| testbed(root, 40, FIG14_MIX, FIG14));
    for gbps in FIG8_GBPS {
        for n in FIG8_FLOWS {
            for cc in ROCC {
                let root = root.to_owned();
                jobs.push(Job::new(fig8_name(gbps, n), cc, move || fig8(&root, cc, gbps, n)));
            }
        }
    }
    if options.full {
        jobs.extend(super::fabric::jobs(root));
    }
    jobs
}

/// The name of a run of Figure 8.
pub fn fig8_name(gbps: u64, n: u32) -> String {
    format!("fig8-{gbps}g-n{n}")
}

/// Hosts around a switch that send to one of them, each 90 % of its link.
fn star(
    root: &Path,
    cc: &str,
    senders: u32,
    gbps: u64,
    duration: &str,
    more: &[(&str, &str)],
) -> Result<SimConfig, String> {
    let (hosts, senders) = ((senders + 1).to_string(), senders.to_string());
    let (rate, demand) = (format!("{gbps}Gbps"), format!("{}Mbps", gbps * 900));
    let mut sets = vec![
        ("duration", duration),
        ("topology.hosts", &hosts),
        ("topology.rate", &rate),
        ("traffic.0.senders", &senders),
        ("traffic.0.demand", &demand),
        ("probe.0.every", SAMPLE),
        ("probe.1.every", SAMPLE),
    ];
    // 800 KB, RoCC's PFC threshold at 100 Gb/s, of 15 MB.
    if gbps == 100 {
        sets.push(("switch.dt_alpha", "0.0533"));
    }
    sets.extend(more);
    lab::example(root, "rocc-star", cc, &sets)
}

/// What a variant sets.
fn sets(cc: &str) -> &'static [(&'static str, &'static str)] {
    match cc {
        "rocc:full" => &[("transport.rocc.low_queue_gain", "full")],
        "hpcc:by-line-rate" => &BY_LINE_RATE,
        _ => &[],
    }
}

fn fig8(root: &Path, cc: &str, gbps: u64, n: u32) -> Result<Numbers, String> {
    let record = lab::run(star(root, algorithm(cc), n, gbps, "20ms", sets(cc))?)?;
    let fair_bps = gbps as f64 * 1e9 / f64::from(n);
    let windows = smooth(&record.mean_rate(), WINDOW_US / SAMPLE_US);
    let (queue, deviation) = mean_and_deviation(&part(&record.queue(), 0.01, 0.02));
    let rates = goodputs(&record, 0.01, 0.02);
    Ok(numbers([
        ("settle_ms", settle(&windows, 0.0, 0.02, fair_bps, 0.05) * 1e3),
        ("rate_gbps", stats::mean(&rates).unwrap_or(f64::NAN) / 1e9),
        ("worst", worst(&rates, fair_bps)),
        ("queue_kb", queue / 1e3),
        ("queue_deviation_kb", deviation / 1e3),
    ]))
}

fn fig9(root: &Path, cc: &str) -> Result<Numbers, String> {
    let step_s = 0.01;
    let sets = [&[("probe.0.every", SAMPLE), ("probe.1.every", SAMPLE)], sets(cc)].concat();
    let record = lab::run(lab::example(root, "rocc-staircase", algorithm(cc), &sets)?)?;
    let (rate, queue) = (record.mean_rate(), record.queue());
    let window = WINDOW_US / SAMPLE_US;
    let mut out = Numbers::new();
    for (i, n) in FIG9_FLOWS.iter().enumerate() {
        // Samples at the boundary are the next step's.
        let (from, to) = (i as f64 * step_s, (i + 1) as f64 * step_s - 1e-6);
        let fair_bps = 40e9 / f64::from(*n);
        let settled = |series: &[(f64, f64)], value, tolerance| {
            settle(&smooth(&part(series, from, to), window), from, to, value, tolerance) * 1e3
        };
        let (rate_ms, queue_ms) = (settled(&rate, fair_bps, 0.05), settled(&queue, 150e3, 0.1));
        out.insert(format!("{i}-rate-ms"), rate_ms);
        out.insert(format!("{i}-queue-ms"), queue_ms);
        let last = mean_and_deviation(&part(&rate, to - step_s / 2.0, to)).0;
        out.insert(format!("{i}-gbps"), last / 1e9);
    }
    Ok(out)
}

fn fig11(root: &Path, cc: &str) -> Result<Numbers, String> {
    let eta = cc.split_once(':').map(|(_, eta)| ("transport.hpcc.eta", eta));
    let record = lab::run(star(root, algorithm(cc), 10, 40, LONG, eta.as_slice())?)?;
    let (from, to) = STEADY_S;
    let rates = goodputs(&record, from, to);
    let (queue, deviation) = mean_and_deviation(&part(&record.queue(), from, to));
    Ok(numbers([
        ("rate_gbps", stats::mean(&rates).unwrap_or(f64::NAN) / 1e9),
        ("worst", worst(&rates, 4e9)),
        ("jain", stats::jain(&rates).unwrap_or(f64::NAN)),
        ("queue_kb", queue / 1e3),
        ("queue_deviation_kb", deviation / 1e3),
        ("utilisation", record.throughput_bps(from, to) / 40e9),
        ("settle_ms", rates_settle(&record, 4e9)),
    ]))
}

/// The later part of a run: each flow's goodput on the wire in bit/s.
fn goodputs(record: &Record, from_s: f64, to_s: f64) -> Vec<f64> {
    (0..record.sizes.len() as u32).map(|flow| record.goodput_bps(flow, from_s, to_s)).collect()
}

/// The largest relative distance of a rate from what it should be.
fn worst(rates: &[f64], want: f64) -> f64 {
    rates.iter().map(|rate| (rate / want - 1.0).abs()).fold(0.0, f64::max)
}

/// Milliseconds until the pacing rates of all flows stay within 25 % of their fair share, over windows of 1 ms.
fn rates_settle(record: &Record, fair_bps: f64) -> f64 {
    let end = record.rates.last().map_or(0.0, |r| lab::seconds(r.t));
    let times = (0..record.sizes.len() as u32).map(|flow| {
        let windows = smooth(&record.rate(flow), 1_000 / SAMPLE_US);
        settle(&windows, 0.0, end, fair_bps, 0.25) * 1e3
    });
    times.fold(0.0, f64::max)
}

/// Figure 10: D0 is flow 0 of the example, and so on.
fn fig12a(root: &Path, cc: &str) -> Result<Numbers, String> {
    let sets = [&[("duration", LONG), ("probe.1.every", SAMPLE)], sets(cc)].concat();
    let record = lab::run(lab::example(root, "rocc-multi-bottleneck", algorithm(cc), &sets)?)?;
    let rates = goodputs(&record, STEADY_S.0, STEADY_S.1);
    Ok(numbers([
        ("d0", rates[0] / 1e9),
        ("d5", rates[5] / 1e9),
        ("d1-4", stats::mean(&rates[1..5]).unwrap_or(f64::NAN) / 1e9),
    ]))
}

fn fig12b(root: &Path, cc: &str) -> Result<Numbers, String> {
    let sets = [&[("duration", LONG), ("probe.1.every", SAMPLE)], sets(cc)].concat();
    let record = lab::run(lab::example(root, "rocc-asymmetric", algorithm(cc), &sets)?)?;
    let rates = goodputs(&record, STEADY_S.0, STEADY_S.1);
    Ok(numbers([
        ("slow", stats::mean(&rates[..5]).unwrap_or(f64::NAN) / 1e9),
        ("fast", stats::mean(&rates[5..]).unwrap_or(f64::NAN) / 1e9),
        ("worst", worst(&rates, 100e9 / 7.0)),
    ]))
}

/// Keys of a scenario and their values.
type Sets = &'static [(&'static str, &'static str)];

/// The DPDK testbed: T = 100 us, and a recovery timer as much longer than T as in the simulations.
const FIG13: Sets = &[
    ("transport.rocc.thresholds", "given"),
    ("transport.rocc.q_ref", "75KB"),
    ("transport.rocc.q_mid", "150KB"),
    ("transport.rocc.q_max", "210KB"),
    ("transport.rocc.period", "100us"),
    ("transport.rocc.rise_interval", "137500ns"),
];
/// The P4 testbed: T = 20 us and units of 80 B instead of 600 B, so the gains are 80/600 of 0.3 and 1.5.
const FIG14: Sets = &[
    ("transport.rocc.thresholds", "given"),
    ("transport.rocc.q_ref", "75KB"),
    ("transport.rocc.q_mid", "150KB"),
    ("transport.rocc.q_max", "210KB"),
    ("transport.rocc.period", "20us"),
    ("transport.rocc.queue_unit", "80B"),
    ("transport.rocc.alpha", "0.04"),
    ("transport.rocc.beta", "0.2"),
];

fn testbed(root: &Path, gbps: u64, offers_gbps: [u64; 3], sets: Sets) -> Result<Numbers, String> {
    let mut config = star(root, "rocc", 3, gbps, "40ms", sets)?;
    for (flow, gbps) in config.flows.iter_mut().zip(offers_gbps) {
        flow.demand = Rate::from_gbps(gbps);
    }
    let record = lab::run(config)?;
    let rates = goodputs(&record, 0.02, 0.04);
    let (queue, deviation) = mean_and_deviation(&part(&record.queue(), 0.02, 0.04));
    Ok(numbers([
        ("d0", rates[0] / 1e9),
        ("d1", rates[1] / 1e9),
        ("d2", rates[2] / 1e9),
        ("queue_kb", queue / 1e3),
        ("queue_deviation_kb", deviation / 1e3),
    ]))
}
