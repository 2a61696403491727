//! The runs behind the claims about RoCC: the paper's section VI.

use std::fmt::Write as _;

use fairrate_report::stats;
use fairrate_sim::SimConfig;
use fairrate_units::{Rate, Time};

use crate::lab::{self, Record, mean_and_deviation, part, settle, smooth};
use crate::paper::{Job, Numbers, Options, algorithm, numbers};

/// Algorithms of Figure 11; `hpcc:0.99` is HPCC with a headroom of 1 % instead of 5 %.
pub const FIG11: [&str; 9] = ["rocc", "dcqcn", "dcqcn-pi", "timely", "qcn", "hpcc", "hpcc:0.99", "pacc", "bfc"];
/// Algorithms of Figures 12 and 15 to 17.
pub const FIG12: [&str; 5] = ["rocc", "dcqcn", "hpcc", "pacc", "bfc"];
/// Figure 8: flows, link rates and, below, Qref.
pub const FIG8_FLOWS: [u32; 3] = [2, 10, 100];
/// In Gb/s.
pub const FIG8_GBPS: [u64; 2] = [40, 100];
/// Figure 9: active flows, changing every 10 ms.
pub const FIG9_FLOWS: [u32; 11] = [3, 6, 12, 24, 48, 100, 48, 24, 12, 6, 3];
/// Figures 13 and 14: what the three hosts offer in the mixed case, in Gb/s.
pub const FIG13_MIX: [u64; 3] = [10, 3, 1];
/// See above.
pub const FIG14_MIX: [u64; 3] = [40, 30, 10];

/// Windows over which queues and rates are averaged before they are called settled: five of RoCC's periods.
const WINDOW_US: usize = 200;
const SAMPLE_US: usize = 20;

/// All runs.
pub fn jobs(options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    for gbps in FIG8_GBPS {
        for n in FIG8_FLOWS {
            jobs.push(Job::new(fig8_name(gbps, n), "rocc", move || fig8(gbps, n)));
        }
    }
    jobs.push(Job::new("fig9", "rocc", fig9));
    jobs.extend(FIG11.map(|cc| Job::new("fig11", cc, move || fig11(cc))));
    jobs.extend(FIG12.map(|cc| Job::new("fig12a", cc, move || fig12a(cc))));
    jobs.extend(FIG12.map(|cc| Job::new("fig12b", cc, move || fig12b(cc))));
    jobs.push(Job::new("fig13-uni", "rocc", || testbed(10, [10; 3], FIG13)));
    jobs.push(Job::new("fig13-mix", "rocc", || testbed(10, FIG13_MIX, FIG13)));
    jobs.push(Job::new("fig14-uni", "rocc", || testbed(40, [40; 3], FIG14)));
    jobs.push(Job::new("fig14-mix", "rocc", || testbed(40, FIG14_MIX, FIG14)));
    if options.full {
        jobs.extend(super::fabric::jobs());
    }
    jobs
}

/// The name of a run of Figure 8.
pub fn fig8_name(gbps: u64, n: u32) -> String {
    format!("fig8-{gbps}g-n{n}")
}

/// RoCC's section VI: hosts around a switch, 1.5 us a link (the authors' fabric), 15 us of reaction at hosts, 15 MB of
/// buffer with a pause at 500 KB of an ingress (800 KB at 100 Gb/s): as a Dynamic Threshold of an empty buffer.
fn star(hosts: u32, gbps: u64, duration_ms: u32) -> String {
    let dt_alpha = if gbps < 100 { 0.5 / 15.0 } else { 0.8 / 15.0 };
    format!(
        r#"
duration = "{duration_ms}ms"
[topology]
kind = "star"
hosts = {hosts}
rate = "{gbps}Gbps"
delay = "1.5us"
[transport]
reaction_delay = "15us"
[switch]
buffer = "15MB"
dt_alpha = {dt_alpha}
[[traffic]]
kind = "incast"
receiver = "h0"
senders = {}
bytes = "endless"
[[probe]]
queue = "sw0->h0"
every = "{SAMPLE_US}us"
[[probe]]
flows = "all"
every = "{SAMPLE_US}us"
"#,
        hosts - 1
    )
}

/// Each flow offers 90 % of its host's link.
fn offer_90_percent(config: &mut SimConfig) {
    for flow in &mut config.flows {
        let link = config.topology.links.iter().find(|l| l.a == flow.src || l.b == flow.src);
        let rate = link.expect("a host has a link").rate;
        flow.demand = Rate::from_bps(rate.as_bps() * 9 / 10);
    }
}

fn fig8(gbps: u64, n: u32) -> Result<Numbers, String> {
    let mut config = lab::scenario(&star(n + 1, gbps, 20), "rocc")?;
    offer_90_percent(&mut config);
    let record = lab::run(config)?;
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

fn fig9() -> Result<Numbers, String> {
    let step_s = 0.01;
    let mut config = lab::scenario(&star(101, 40, 110), "rocc")?;
    offer_90_percent(&mut config);
    // The flows that are active in a step are the first ones.
    for (i, flow) in (0..).zip(&mut config.flows) {
        let active = |n: &u32| i < *n;
        let from = FIG9_FLOWS.iter().position(active).unwrap_or(0) as u64;
        let to = FIG9_FLOWS.iter().rposition(active).unwrap_or(0) as u64 + 1;
        (flow.start, flow.stop) = (Time::from_ms(10 * from), Time::from_ms(10 * to));
    }
    config.flows.sort_by_key(|flow| flow.start);
    let record = lab::run(config)?;
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

fn fig11(cc: &str) -> Result<Numbers, String> {
    let mut text = star(11, 40, 60);
    if let Some((name, eta)) = cc.split_once(':') {
        let _ = write!(text, "[transport.{name}]\neta = {eta}\n");
    }
    let mut config = lab::scenario(&text, algorithm(cc))?;
    offer_90_percent(&mut config);
    let record = lab::run(config)?;
    let (from, to) = (0.03, 0.06);
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

/// Figure 10: A0 to A4 (h0 to h4) on one switch, B0 to B5 (h5 to h10) on the other. Di goes from Ai to Bi, and D5 from
/// B5 to B0.
fn fig12a(cc: &str) -> Result<Numbers, String> {
    let text = r#"
duration = "60ms"
[topology]
kind = "dumbbell"
left = 5
right = 6
host_rate = "10Gbps"
host_delay = "1.5us"
bottleneck_rate = "40Gbps"
bottleneck_delay = "1.5us"
[transport]
reaction_delay = "15us"
[switch]
buffer = "15MB"
dt_alpha = 0.0333
[[traffic]]
kind = "incast"
receiver = "h5"
senders = ["h0", "h1", "h2", "h3", "h4", "h10"]
bytes = "endless"
[[probe]]
flows = "all"
every = "20us"
"#;
    let mut config = lab::scenario(text, cc)?;
    offer_90_percent(&mut config);
    config.flows.sort_by_key(|flow| flow.src);
    for (i, flow) in (5..10).zip(&mut config.flows) {
        flow.dst = fairrate_sim::NodeId(i);
    }
    let record = lab::run(config)?;
    let rates = goodputs(&record, 0.03, 0.06);
    Ok(numbers([
        ("d0", rates[0] / 1e9),
        ("d5", rates[5] / 1e9),
        ("d1-4", stats::mean(&rates[1..5]).unwrap_or(f64::NAN) / 1e9),
    ]))
}

fn fig12b(cc: &str) -> Result<Numbers, String> {
    let text = r#"
duration = "60ms"
[topology]
kind = "asymmetric"
[transport]
reaction_delay = "15us"
[switch]
buffer = "15MB"
dt_alpha = 0.0533
[[traffic]]
kind = "incast"
receiver = "h7"
senders = ["h0", "h1", "h2", "h3", "h4", "h5", "h6"]
bytes = "endless"
[[probe]]
flows = "all"
every = "20us"
"#;
    let mut config = lab::scenario(text, cc)?;
    offer_90_percent(&mut config);
    config.flows.sort_by_key(|flow| flow.src);
    let record = lab::run(config)?;
    let rates = goodputs(&record, 0.03, 0.06);
    Ok(numbers([
        ("slow", stats::mean(&rates[..5]).unwrap_or(f64::NAN) / 1e9),
        ("fast", stats::mean(&rates[5..]).unwrap_or(f64::NAN) / 1e9),
        ("worst", worst(&rates, 100e9 / 7.0)),
    ]))
}

/// The DPDK testbed: T = 100 us.
const FIG13: &str = r#"
[transport.rocc]
thresholds = "given"
q_ref = "75KB"
q_mid = "150KB"
q_max = "210KB"
period = "100us"
rise_interval = "137.5us"
"#;
/// The P4 testbed: T = 20 us and units of 80 B instead of 600 B, so the gains are 80/600 of 0.3 and 1.5.
const FIG14: &str = r#"
[transport.rocc]
thresholds = "given"
q_ref = "75KB"
q_mid = "150KB"
q_max = "210KB"
period = "20us"
queue_unit = "80B"
alpha = 0.04
beta = 0.2
"#;

fn testbed(gbps: u64, offers_gbps: [u64; 3], rocc: &str) -> Result<Numbers, String> {
    let mut config = lab::scenario(&(star(4, gbps, 40) + rocc), "rocc")?;
    config.flows.sort_by_key(|flow| flow.src);
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
