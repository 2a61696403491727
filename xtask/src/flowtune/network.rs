//! Figures 4 to 11: Flowtune and what the paper compares it with, on packets; and what the text says of dead allocators.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::SimConfig;
use fairrate_units::Time;

use super::{completion, updates};
use crate::lab::{self, Record, Series, seconds, settle};
use crate::paper::{Claims, Job, Measured, Numbers, Options, Says, Unit, algorithm};

/// Algorithms of Figures 4 and 8 to 11. TCP's first window is ns-2's, two segments, for Flowtune, DCTCP and Cubic; with
/// `iw10` it is ten (RFC 6928). `xcp:ns2` has the slow timers of ns-2's code. The paper ran ns-2, and says nothing of either.
/// `dctcp:k65` marks from 65 packets on, as the DCTCP paper has it at 10 Gb/s, and `cubic:tiny` leaves CoDel its standard
/// times, which nothing reaches here, over a buffer as small as pFabric's.
pub const ALL: [&str; 9] = ["flowtune", IW10, "dctcp", K65, "pfabric", "cubic", TINY, "xcp", "xcp:ns2"];
pub const IW10: &str = "flowtune:iw10";
pub const K65: &str = "dctcp:k65";
pub const TINY: &str = "cubic:tiny";
/// DCTCP with K = 65 from ten segments.
pub const K65_IW10: &str = "dctcp:k65-iw10";
/// Flowtune at the end of the paper's range of gamma.
pub const GAMMA: &str = "flowtune:gamma1.5";
pub const LOADS: [&str; 4] = ["0.2", "0.4", "0.6", "0.8"];
pub const MSS: f64 = 1_460.0;
pub const HOST_BPS: f64 = 10e9;
/// How far from its share a flow may be in a bin of 100 us: some ten packets at the smallest share, of which one or two
/// fall into the next bin.
const FAIR: f64 = 0.2;

/// Measures with the project's root.
pub type Run = dyn Fn(&Path) -> Result<Numbers, String> + Send + Sync;

/// How long flows arrive.
pub fn arrivals(options: &Options) -> &'static str {
    match (options.full, options.quick) {
        (true, _) => "40ms",
        (false, true) => "2ms",
        (false, false) => "10ms",
    }
}

/// Seeds of runs with random flows.
pub fn seeds(options: &Options) -> u64 {
    if options.quick { 1 } else { 5 }
}

/// All runs.
pub fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut add = |name: String, cc: &'static str, measure: Box<Run>| {
        let root = root.to_owned();
        jobs.push(Job::new(name, cc, move || measure(&root)));
    };
    for cc in ALL {
        add("fig4".into(), cc, Box::new(move |root| fairness(root, cc)));
    }
    completion::jobs(&mut add, options);
    updates::jobs(&mut add, options);
    add("outage".into(), "flowtune", Box::new(outage));
    jobs
}

/// What an algorithm needs beside its name and its first window. Buffers of DCTCP and XCP and the parameters of CoDel are not in the paper:
/// 150 packets, and an interval of ten round trips with a tenth of that as target.
fn settings(cc: &str) -> Vec<(&'static str, &'static str)> {
    match cc {
        GAMMA => vec![("allocator.gamma", "1.5")],
        K65 | K65_IW10 => vec![("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
        TINY => vec![("switch.queue", "sfq-codel"), ("switch.queue_limit", "36864B")],
        "pfabric" => vec![("switch.queue_limit", "36864B"), ("switch.dt_alpha", "unlimited")],
        "cubic" => vec![
            ("switch.queue", "sfq-codel"),
            ("switch.sfq-codel.target", "22us"),
            ("switch.sfq-codel.interval", "220us"),
        ],
        "xcp:ns2" => vec![("transport.xcp.timers", "ns2")],
        _ => Vec::new(),
    }
}

/// TCP's first window.
fn first_window(cc: &str) -> Option<(&'static str, &'static str)> {
    match (cc.ends_with("iw10"), algorithm(cc)) {
        (false, "flowtune") => Some(("transport.flowtune.initial_window", "2")),
        (false, "dctcp") => Some(("transport.dctcp.initial_window", "2mtu")),
        (false, "cubic") => Some(("transport.cubic.initial_window", "2")),
        // Examples have ten segments.
        _ => None,
    }
}

pub fn example(root: &Path, name: &str, cc: &str, sets: &[(&str, &str)]) -> Result<SimConfig, String> {
    let own = settings(cc).into_iter().chain(first_window(cc));
    let sets: Vec<(&str, &str)> = own.chain(sets.iter().copied()).collect();
    lab::example(root, name, algorithm(cc), &sets)
}

/// A flow's rate at its receiver in bins of 100 us, in bit/s of payload, at the beginning of each.
fn bins(record: &Record, flow: u32) -> Series {
    let samples: Vec<_> = record.rates.iter().filter(|r| r.flow.0 == flow).collect();
    let per_bin = 10;
    let rate = |pair: (usize, usize)| {
        let (a, b) = (samples[pair.0], samples[pair.1]);
        let bytes = b.delivered_bytes - a.delivered_bytes;
        (seconds(a.t), bytes as f64 * 8.0 / (seconds(b.t) - seconds(a.t)))
    };
    (per_bin..samples.len()).map(|i| rate((i - per_bin, i))).collect()
}

/// Figure 4: one flow more every 10 ms, then one less. For each of the nine times at which the number of flows has
/// changed: the time from which on bins of 100 us have all rates at a fair share, until it changes again.
fn fairness(root: &Path, cc: &str) -> Result<Numbers, String> {
    // pFabric goes by what flows have left: without an end all would be alike.
    let sets: &[(&str, &str)] = if cc == "pfabric" { &[("traffic.0.bytes", "30MB")] } else { &[] };
    let record = lab::run(example(root, "flowtune-fairness", cc, sets)?)?;
    let rates: Vec<Series> = (0..5).map(|flow| bins(&record, flow)).collect();
    let payload = HOST_BPS * MSS / (MSS + 78.0);
    let (mut settled, mut total, mut starved, mut unsteady) = (Vec::new(), 0.0, 0.0_f64, Vec::new());
    for change in 0..9_usize {
        let (from, to) = (0.01 * (change + 1) as f64, 0.01 * (change + 2) as f64);
        let active = change.saturating_sub(4)..(change + 1).min(5);
        let share = payload / active.len() as f64;
        let mut worst = 0.0_f64;
        for flow in active {
            let series = &rates[flow];
            worst = worst.max(settle(series, from, to - 1.1e-4, share, FAIR));
            let inside: Vec<f64> = lab::part(series, from + 5e-3, to - 1.1e-4).into_iter().map(|s| s.1).collect();
            let n = inside.len().max(1) as f64;
            let mean = inside.iter().sum::<f64>() / n;
            let variance = inside.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            unsteady.push(variance.sqrt() / mean.max(1.0));
            let low = inside.iter().filter(|&&x| x < 0.05 * share).count() as f64;
            starved = starved.max(low / n);
            total += mean / 9.0;
        }
        settled.push(worst * 1e6);
    }
    let settled = stats::sorted(settled);
    let unsteady = unsteady.iter().sum::<f64>() / unsteady.len() as f64;
    Ok(crate::paper::numbers([
        ("median_us", settled[4]),
        ("worst_us", settled[8]),
        ("use", total / payload),
        ("starved", starved),
        ("unsteady", unsteady),
    ]))
}

/// The allocator is dead from 7 to 12 ms: payload delivered before and meanwhile, and when rates are back.
fn outage(root: &Path) -> Result<Numbers, String> {
    let record = lab::run(example(root, "flowtune-outage", "flowtune", &[])?)?;
    let delivered = |ms: u64| {
        let t = Time::from_ms(ms);
        let done = record.flows.iter().filter(|f| f.fct_ack.is_some_and(|fct| f.start + fct <= t));
        let done: u64 = done.map(|f| record.sizes[f.flow.index()]).sum();
        let active = record.rates.iter().filter(|r| r.t == t).map(|r| r.delivered_bytes);
        (done + active.sum::<u64>()) as f64
    };
    let rate = |from, to| (delivered(to) - delivered(from)) * 8e-6 / (to - from) as f64;
    let (before, during, after) = (rate(2, 7), rate(7, 12), rate(13, 18));
    let allocated = |at: &[fairrate_sim::RateSample]| {
        at.iter().filter(|r| r.cwnd_bytes == u64::MAX).count() as f64 / at.len() as f64
    };
    // Some flows are always in their first round trip: "back" is the share that was allocated before.
    let shares: Series = record.rates.chunk_by(|a, b| a.t == b.t).map(|at| (seconds(at[0].t), allocated(at))).collect();
    let usual: Vec<f64> = lab::part(&shares, 3e-3, 7e-3).into_iter().map(|s| s.1).collect();
    let usual = usual.iter().sum::<f64>() / usual.len() as f64;
    let back = lab::part(&shares, 12e-3, 20e-3).into_iter().find(|s| 0.95 * usual <= s.1).map_or(f64::NAN, |s| s.0);
    // A flow whose only packets were lost waits for TCP's first timeout, `rto_max` of 10 ms.
    let stalled = record.cut.iter().filter(|f| f.delivered_bytes == 0 && seconds(f.start) < 9.9e-3).count();
    Ok(crate::paper::numbers([
        ("before_gbps", before),
        ("during", during / before),
        ("after", after / before),
        ("back_us", (back - 12e-3) * 1e6),
        ("stalled", stalled as f64),
    ]))
}

/// Their claims.
pub fn claims(claims: &mut Claims, measured: &Measured, options: &Options) {
    fig4(claims, measured);
    updates::claims(claims, measured, options);
    completion::claims(claims, measured);
    let mut add = |what: &str, text: &str, says, unit| {
        claims.add(
            format!("outage-{what}"),
            "outage",
            format!("allocator dead for 5 ms: {text}"),
            says,
            unit,
            measured.get("outage", "flowtune", what),
        );
    };
    add("during", "throughput meanwhile over that before", Says::AtLeast(0.95), Unit::Share);
    add("after", "throughput afterwards over that before", Says::AtLeast(0.95), Unit::Share);
    add("back_us", "as many flows under allocation as usual again, after its return", Says::AtMost(1_000.0), Unit::Us);
    add("stalled", "flows older than TCP's first timeout that have delivered nothing", Says::AtMost(0.0), Unit::Count);
}

pub fn title(cc: &str) -> &str {
    match cc {
        "cubic" => "cubic over sfqCoDel",
        TINY => "cubic over a tiny sfqCoDel",
        K65 => "dctcp with K = 65",
        K65_IW10 => "dctcp with K = 65 from 10 segments",
        IW10 => "flowtune from 10 segments",
        GAMMA => "flowtune with gamma 1.5",
        "xcp:ns2" => "xcp with ns-2's timers",
        _ => cc,
    }
}

fn fig4(claims: &mut Claims, measured: &Measured) {
    for cc in ALL {
        let mut add = |what: &str, text: &str, says, unit| {
            let value = measured.get("fig4", cc, what);
            claims.add(format!("fig4-{what}-{cc}"), "fig4", format!("Fig 4: {}: {text}", title(cc)), says, unit, value);
        };
        let settles = match cc {
            "flowtune" | IW10 => Says::AtMost(100.0),
            "dctcp" => Says::AtLeast(1_000.0),
            _ => Says::Words,
        };
        add("median_us", "until all shares are 1/N after a change, median", settles, Unit::Us);
        let worst = if matches!(cc, "flowtune" | IW10) { Says::AtMost(100.0) } else { Says::Words };
        add("worst_us", "the slowest", worst, Unit::Us);
        let starves = if cc == "pfabric" { Says::AtLeast(0.5) } else { Says::Words };
        add("starved", "largest share of time a flow has below a twentieth of its share", starves, Unit::Share);
        let low = if cc == "xcp:ns2" { Says::AtMost(0.8) } else { Says::Words };
        add("use", "use of the link (paper: xcp low)", low, Unit::Share);
        add(
            "unsteady",
            "deviation of bins of 100 us over their mean (paper: sfqCoDel bursty)",
            Says::Words,
            Unit::Share,
        );
    }
}
