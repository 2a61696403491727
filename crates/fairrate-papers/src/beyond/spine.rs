//! A spine dies and comes back: goodput over time, for six ways to choose paths under NSCC.
//!
//! 32 hosts of 100 Gb/s on four leaves and four spines. Spine 0 is down from 5 to 65 ms. Switches react after 1 ms, or after
//! 50 ms, which leaves the answer to the hosts for most of the time.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_sim::PortId;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
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

/// The network of uet-htsim's defaults with two tiers: 29 packets in a bandwidth-delay product, marks from a fifth to four
/// fifths of them.
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

const PERMUTATION: &str = concat!(network!(), "kind = \"permutation\"\nbytes = \"endless\"\n");
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
const AVERAGED: usize = 10;
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

/// Returns the goodput of all hosts over time, in Gb/s, for each sample in seconds.
fn goodput(record: &Record) -> Vec<(f64, f64)> {
    let topology = &record.config.topology;
    let to_host = |port: PortId| topology.is_host(topology.to(port));
    let mut sums = std::collections::BTreeMap::<u64, u64>::new();
    for sample in record.ports.iter().filter(|sample| to_host(sample.port)) {
        *sums.entry(sample.t.as_ps()).or_default() += sample.tx_bytes;
    }
    let times: Vec<(u64, u64)> = sums.into_iter().collect();
    let of = |pair: &[(u64, u64)]| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        // Acknowledgments are among the bytes: 64 for four packets of 4,150.
        let gbps = (after - before) as f64 * 8e3 / (to - from) as f64 / record.wire_factor();
        (seconds(fairrate_units::Time::from_ps(to)), gbps)
    };
    times.windows(2).map(of).collect()
}

fn read(record: &Record, up_ms: f64) -> Point {
    let goodput = goodput(record);
    let mean = |from_ms: f64, to_ms: f64| {
        stats::mean(&ms_from(&goodput, 0.0, (from_ms, to_ms)).iter().map(|x| x.1).collect::<Vec<_>>())
            .unwrap_or(f64::NAN)
    };
    let (healthy, degraded) = (mean(DOWN_MS - 2.0, DOWN_MS), mean(up_ms - 2.0, up_ms));
    let late = record.cut.iter().filter(|flow| seconds(flow.start) * 1e3 < 40.0).count();
    let slowdowns =
        stats::sorted(record.flows.iter().filter_map(|flow| Some(seconds(flow.fct?) / seconds(flow.ideal_fct))));
    Point::of([
        ("recovery", recovery_ms(&goodput, DOWN_MS, RECOVERED * degraded)),
        ("return", recovery_ms(&goodput, up_ms, RECOVERED * healthy)),
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
    let mean =
        |part: &[(f64, f64)]| (part[part.len() - 1].0, part.iter().map(|x| x.1).sum::<f64>() / part.len() as f64);
    series.chunks(n).map(mean).collect()
}

/// Returns the time in ms from `from_ms` until the goodput is at least `level` on average, and stays there for ten samples; up to
/// the end of the series if it is never.
fn recovery_ms(series: &[(f64, f64)], from_ms: f64, level: f64) -> f64 {
    let after: Vec<(f64, f64)> = series.iter().copied().filter(|x| from_ms < x.0 * 1e3).collect();
    let is_there = |part: &&[(f64, f64)]| level <= part.iter().map(|x| x.1).sum::<f64>() / part.len() as f64;
    let found = after.windows(AVERAGED).find(is_there).map(|part| part[0].0);
    (found.or(after.last().map(|x| x.0)).unwrap_or(f64::NAN)) * 1e3 - from_ms
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

/// Returns our own questions. That goodput is back within the delay and two round trips, and that nothing is lost for ever, are the
/// rules; a timeout of 100 us is longer than two round trips.
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
        // 100 until 5 ms, then nothing but one sample, and 80 from 6.5 ms on.
        let value = |us: u32| match us {
            0..=5_000 => 100.0,
            5_500 => 500.0,
            6_500.. => 80.0,
            _ => 0.0,
        };
        let series: Vec<(f64, f64)> = (1..=400).map(|i| (f64::from(20 * i) * 1e-6, value(20 * i))).collect();
        assert!((recovery_ms(&series, 5.0, 72.0) - 1.48).abs() < 0.04, "{}", recovery_ms(&series, 5.0, 72.0));
        assert!((recovery_ms(&series, 5.0, 90.0) - 3.0).abs() < 1e-9);
    }
}
