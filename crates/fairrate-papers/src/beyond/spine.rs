//! A spine dies and comes back: goodput over time, for six ways to choose paths under NSCC.
//!
//! 32 hosts of 100 Gb/s on four leaves and four spines. Spine 0 is down from 5 to 65 ms. Switches react after 1 ms, or
//! after 50 ms, which leaves the answer to the hosts for most of the time. Each host of the permutation sends to a host
//! of the next leaf, so that spines carry all of it and three of four carry three quarters.
//!
//! An earlier form of this figure had a random permutation, a quarter of whose flows stayed within their leaf, and took
//! the first 200 us with enough goodput for the recovery, which was too early where goodput fell late. It was not
//! published.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_of_series;
use crate::points::{Point, Points};
use crate::record::{Record, ms_from, seconds};

pub const FIGURE: Figure = Figure {
    id: "beyond/spine",
    title: "A spine dies and comes back: goodput under six ways to choose paths",
    kind: Kind::Simulation,
    quick_s: 40,
    runs,
    panels,
    claims,
};

/// The network of uet-htsim's defaults with two tiers: 29 packets in a bandwidth-delay product, marks from a fifth to
/// four fifths of them.
macro_rules! network {
    () => {
        "
duration = \"80ms\"
stop = \"duration\"
[topology]
kind = \"leaf-spine\"
leaves = 4
spines = 4
hosts_per_leaf = 8
host_rate = \"100Gbps\"
host_delay = \"1us\"
uplink_rate = \"200Gbps\"
uplink_delay = \"1us\"
[switch]
buffer = \"1GB\"
dt_alpha = \"unlimited\"
trim_limit = \"120350B\"
trim_limit_per = \"100Gbps\"
ecn = { kmin = \"24900B\", kmax = \"99600B\", pmax = 1.0, per = \"100Gbps\", at = \"dequeue\" }
[transport]
cc = \"nscc\"
rto = \"100us\"
[[fault]]
switches = [\"spine0\"]
down_at = \"5ms\"
up_at = \"65ms\"
[[probe]]
queues = \"tor-downlinks\"
every = \"20us\"
[[traffic]]
"
    };
}

const PERMUTATION: &str = concat!(network!(), "kind = \"stride\"\nstride = 8\nbytes = \"endless\"\n");
const WEB_SEARCH: &str =
    concat!(network!(), "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6\nstop = \"60ms\"\n");
/// Kinds of traffic and their scenarios.
const TRAFFIC: [(&str, &str); 2] = [("permutation", PERMUTATION), ("web search", WEB_SEARCH)];

/// A way to choose paths: its name, the look that it is drawn with, `balance`, and `entropy`.
struct Way {
    name: &'static str,
    look: &'static str,
    balance: &'static str,
    entropy: &'static str,
}

const WAYS: [Way; 6] = [
    Way { name: "ECMP", look: "dcqcn", balance: "ecmp", entropy: "none" },
    Way { name: "PLB", look: "timely", balance: "host", entropy: "plb" },
    Way { name: "REPS", look: "powertcp", balance: "host", entropy: "reps" },
    Way { name: "mixed", look: "swift", balance: "host", entropy: "mixed" },
    Way { name: "spray", look: "dctcp", balance: "spray", entropy: "none" },
    Way { name: "adaptive", look: "hpcc", balance: "adaptive", entropy: "none" },
];

/// Times in ms: the failure, the recovery, and the delays until switches react.
const DOWN_MS: f64 = 5.0;
const UP_MS: f64 = 65.0;
const DELAYS: [(&str, f64); 2] = [("1ms", 1.0), ("50ms", 50.0)];
/// Two round trips of the network, in ms.
const ROUND_TRIPS_MS: f64 = 0.019;
/// Share of the goodput that counts as recovered, and the time over which it is averaged, in samples of 20 us.
const RECOVERED: f64 = 0.9;
const AVERAGED: usize = 3;
/// Share of its link below which a host receives nothing but acknowledgments, which take 0.4 %.
const SILENT: f64 = 0.02;
/// Samples of 20 us in a point that is drawn.
const DRAWN: usize = 25;

fn at(traffic: &str, delay: &str) -> String {
    format!("{traffic}, {delay}")
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    for (traffic, toml) in TRAFFIC {
        for (delay, _) in DELAYS {
            for way in &WAYS {
                let mut sets = vec![
                    ("routing.balance", way.balance),
                    ("transport.entropy", way.entropy),
                    ("routing.reroute_delay", delay),
                ];
                if scale.quick {
                    sets.extend([("duration", "14ms"), ("fault.0.up_at", "11ms")]);
                }
                let up_ms = if scale.quick { 11.0 } else { UP_MS };
                let run = |seed| {
                    let run = Run::of(&at(traffic, delay), toml, "nscc", &sets, move |record| read(record, up_ms));
                    run.called(way.name).seeded(seed)
                };
                runs.extend(scale.seeds.iter().map(|&seed| run(seed)));
            }
        }
    }
    runs
}

/// Returns the bytes sent down to hosts over time: for each sample, its time and what each host's port has sent so far.
fn delivered(record: &Record) -> Vec<(Time, Vec<u64>)> {
    let topology = &record.config.topology;
    let mut samples = std::collections::BTreeMap::<Time, Vec<u64>>::new();
    for sample in record.ports.iter().filter(|sample| topology.is_host(topology.to(sample.port))) {
        samples.entry(sample.t).or_default().push(sample.tx_bytes);
    }
    samples.into_iter().collect()
}

/// Returns the goodput of all hosts over time, in Gb/s, for each sample in seconds.
fn goodput(delivered: &[(Time, Vec<u64>)], wire_factor: f64) -> Vec<(f64, f64)> {
    let of = |pair: &[(Time, Vec<u64>)]| {
        let [(from, before), (to, after)] = pair else { unreachable!("pairs have two samples") };
        let bytes = after.iter().sum::<u64>() - before.iter().sum::<u64>();
        // Acknowledgments are among the bytes: 64 for four packets of 4,150.
        (seconds(*to), bytes as f64 * 8e-9 / seconds(*to - *from) / wire_factor)
    };
    delivered.windows(2).map(of).collect()
}

/// Returns the longest time in ms between `from_ms` and `to_ms` for which some host received nothing but
/// acknowledgments.
fn silence_ms(delivered: &[(Time, Vec<u64>)], (from_ms, to_ms): (f64, f64), link_gbps: f64) -> f64 {
    let inside = |pair: &&[(Time, Vec<u64>)]| from_ms < seconds(pair[1].0) * 1e3 && seconds(pair[1].0) * 1e3 <= to_ms;
    let pairs: Vec<&[(Time, Vec<u64>)]> = delivered.windows(2).filter(inside).collect();
    let n_hosts = delivered.first().map_or(0, |sample| sample.1.len());
    let of = |host: usize| {
        let (mut silent_s, mut longest_s) = (0.0, 0.0_f64);
        for pair in &pairs {
            let length_s = seconds(pair[1].0 - pair[0].0);
            let gbps = (pair[1].1[host] - pair[0].1[host]) as f64 * 8e-9 / length_s;
            silent_s = if gbps < SILENT * link_gbps { silent_s + length_s } else { 0.0 };
            longest_s = longest_s.max(silent_s);
        }
        longest_s * 1e3
    };
    (0..n_hosts).map(of).fold(0.0, f64::max)
}

fn read(record: &Record, up_ms: f64) -> Point {
    let delivered = delivered(record);
    let goodput = goodput(&delivered, record.wire_factor());
    let mean = |from_ms: f64, to_ms: f64| mean_of_series(&ms_from(&goodput, 0.0, (from_ms, to_ms)));
    let (healthy, degraded) = (mean(DOWN_MS - 2.0, DOWN_MS), mean(up_ms - 2.0, up_ms));
    let late = record.cut.iter().filter(|flow| seconds(flow.start) * 1e3 < 40.0).count();
    let slowdowns =
        stats::sorted(record.flows.iter().filter_map(|flow| Some(seconds(flow.fct?) / seconds(flow.ideal_fct))));
    Point::of([
        ("recovery", recovery_ms(&goodput, (DOWN_MS, up_ms), RECOVERED * degraded)),
        ("return", recovery_ms(&goodput, (up_ms, f64::INFINITY), RECOVERED * healthy)),
        ("silence", silence_ms(&delivered, (DOWN_MS, up_ms), 100.0)),
        ("healthy", healthy),
        ("degraded", degraded),
        ("first ms", mean(DOWN_MS, DOWN_MS + 1.0)),
        ("late", late as f64),
        ("p99", stats::percentile(&slowdowns, 0.99).unwrap_or(f64::NAN)),
    ])
    .with("goodput", averaged(&goodput, DRAWN))
}

/// Returns the means of each `n` samples, at the time of the last one.
fn averaged(series: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    series.chunks(n).map(|points| (points[points.len() - 1].0, mean_of_series(points))).collect()
}

/// Returns the time in ms from `from_ms` until the goodput, averaged over [`AVERAGED`] samples, is at least `level` and
/// never falls below it again before `to_ms`; up to the end of the samples if it is below `level` there.
fn recovery_ms(series: &[(f64, f64)], (from_ms, to_ms): (f64, f64), level: f64) -> f64 {
    let inside = ms_from(series, 0.0, (from_ms, to_ms));
    let is_low = |part: &[(f64, f64)]| part.iter().map(|x| x.1).sum::<f64>() < level * part.len() as f64;
    match inside.windows(AVERAGED).rposition(is_low) {
        None if inside.is_empty() => f64::NAN,
        None => 0.0,
        // A sample is of the time that ends with it: the first of the next average begins where this one's first ends.
        Some(i) if i + AVERAGED < inside.len() => inside[i].0 - from_ms,
        Some(_) => inside[inside.len() - 1].0 - from_ms,
    }
}

fn panels(points: &Points) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (traffic, _) in TRAFFIC {
        for (delay, _) in DELAYS {
            let line = |way: &Way| {
                let series = ms_from(points.series(&at(traffic, delay), way.name, "goodput"), 0.0, (0.0, 80.0));
                Line { name: way.name.to_owned(), ..Line::of(way.look, &series) }
            };
            let title = format!("{traffic}, switches react after {delay}");
            let (x, y) =
                (Axis { link: "time", ..Axis::new("time (ms)") }, Axis::new("goodput (Gb/s)").showing(0.0, 3_200.0));
            panels.push(Panel { wide: true, ..panel(title, x, y, WAYS.iter().map(line).collect()) });
        }
    }
    panels
}

/// Returns our own questions. That goodput is back within the delay and two round trips, and that nothing is lost for
/// ever, are the rules; a timeout of 100 us is longer than two round trips.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (delay, delay_ms) in DELAYS {
        for way in &WAYS {
            let of = |traffic: &str, what: &str| points.values(&at(traffic, delay), way.name, what);
            let id = |what: &str| format!("{what}-{}-{delay}", way.name);
            let bound = Rule::AtMost(delay_ms + ROUND_TRIPS_MS);
            let sentence = format!(
                "ours: permutation, {delay}, {}: time until goodput is at 0.9 of what three spines give",
                way.name
            );
            claims.push(Claim::mean(&id("recovery"), &sentence, bound, "ms", of("permutation", "recovery")));
            if delay_ms < 15.0 {
                let sentence = format!(
                    "ours: permutation, {delay}, {}: time until goodput is at 0.9 of what it was, after the return",
                    way.name
                );
                claims.push(Claim::mean(&id("return"), &sentence, bound, "ms", of("permutation", "return")));
            }
            let sentence =
                format!("ours: permutation, {delay}, {}: longest time in which a host receives no data", way.name);
            claims.push(Claim::mean(&id("silence"), &sentence, Rule::Words, "ms", of("permutation", "silence")));
            let sentence =
                format!("ours: permutation, {delay}, {}: goodput in the first millisecond, over that before", way.name);
            let shares =
                of("permutation", "first ms").iter().zip(of("permutation", "healthy")).map(|(a, b)| a / b).collect();
            claims.push(Claim::mean(&id("first"), &sentence, Rule::Words, "", shares));
            let sentence =
                format!("ours: web search, {delay}, {}: flows of the first 40 ms that are not finished", way.name);
            claims.push(Claim::mean(&id("late"), &sentence, Rule::AtMost(0.0), "", of("web search", "late")));
            let sentence = format!("ours: web search, {delay}, {}: slowdown, 99th percentile", way.name);
            claims.push(Claim::mean(&id("p99"), &sentence, Rule::Words, "", of("web search", "p99")));
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_when_goodput_stays() {
        // 100 until 5 ms, nothing from 5.2 ms on but one sample, and 80 from 6.5 ms on.
        let value = |us: u32| match us {
            0..=5_200 => 100.0,
            5_500 => 500.0,
            6_520.. => 80.0,
            _ => 0.0,
        };
        let series: Vec<(f64, f64)> = (1..=400).map(|i| (f64::from(20 * i) * 1e-6, value(20 * i))).collect();
        let recovery = |level| recovery_ms(&series, (5.0, 8.0), level);
        assert!((recovery(72.0) - 1.5).abs() < 0.02, "{}", recovery(72.0));
        assert!((recovery(90.0) - 3.0).abs() < 1e-9);
        assert!((recovery_ms(&series, (5.0, 5.2), 72.0)).abs() < 1e-9);
    }

    #[test]
    fn silence_is_the_longest_of_any_host() {
        // A host at 10 Gb/s all the time, and one that receives nothing for 60 us, and then for 40 us.
        let us = |n: u64| Time::from_us(n);
        let (steady, gaps) = ([0_u64, 25, 50, 75, 100, 125, 150, 175], [0_u64, 25, 25, 25, 25, 50, 50, 50]);
        let delivered: Vec<(Time, Vec<u64>)> =
            (0..8).map(|i| (us(20 * i as u64), vec![1_000 * steady[i], 1_000 * gaps[i]])).collect();
        assert!((silence_ms(&delivered, (0.0, 1.0), 10.0) - 0.06).abs() < 1e-9);
        assert!((silence_ms(&delivered, (0.08, 1.0), 10.0) - 0.04).abs() < 1e-9);
    }
}
