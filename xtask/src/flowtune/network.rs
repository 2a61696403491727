//! Figures 4 to 11: Flowtune and what the paper compares it with, on packets; and what the text says of dead allocators.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::{PortId, ProbeSpec, SimConfig};
use fairrate_units::Time;

use crate::lab::{self, Record, Series, seconds, settle};
use crate::paper::{Claims, Job, Measured, Numbers, Options, Says, Unit, algorithm};

/// Algorithms of Figures 4 and 8 to 11. `flowtune:iw2` begins with ns-2's first window of two segments in place of ten;
/// `xcp:ns2` has the slow timers of ns-2's code. The paper ran ns-2, and says nothing of either. `dctcp:k65` marks from 65
/// packets on, as the DCTCP paper has it at 10 Gb/s, and `cubic:tiny` leaves CoDel its standard times, which nothing
/// reaches here, over a buffer as small as pFabric's.
const ALL: [&str; 9] = ["flowtune", IW2, "dctcp", K65, "pfabric", "cubic", TINY, "xcp", "xcp:ns2"];
const IW2: &str = "flowtune:iw2";
const K65: &str = "dctcp:k65";
const TINY: &str = "cubic:tiny";
const LOADS: [&str; 4] = ["0.2", "0.4", "0.6", "0.8"];
/// Workloads of Figures 5 and 6, with the largest share of the network's capacity that the allocator's traffic takes, and
/// what a threshold of 0.05 saves of it.
const SIZES: [(&str, &str, f64, f64); 3] =
    [("fb-web", "Web", 0.0113, 0.33), ("fb-cache", "Cache", 0.0057, 0.64), ("fb-hadoop-all", "Hadoop", 0.0017, 0.69)];
const THRESHOLDS: [&str; 4] = ["0.02", "0.03", "0.04", "0.05"];
/// Racks of 16 servers in Figure 7: 128 to 2,048 servers.
const RACKS: [u32; 5] = [8, 16, 32, 64, 128];
/// Classes of Figure 8 by packets of 1,460 bytes, and their names.
const CLASSES: [(f64, f64, &str); 5] = [
    (0.0, 1.0, "1 packet"),
    (1.0, 10.0, "1-10 packets"),
    (10.0, 100.0, "10-100 packets"),
    (100.0, 1_000.0, "100-1000 packets"),
    (1_000.0, f64::INFINITY, "large"),
];
const MSS: f64 = 1_460.0;
const HOST_BPS: f64 = 10e9;
/// How far from its share a flow may be in a bin of 100 us: some ten packets at the smallest share, of which one or two
/// fall into the next bin.
const FAIR: f64 = 0.2;

/// Measures with the project's root.
type Run = dyn Fn(&Path) -> Result<Numbers, String> + Send + Sync;

/// All runs.
pub fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut add = |name: String, cc: &'static str, measure: Box<Run>| {
        let root = root.to_owned();
        jobs.push(Job::new(name, cc, move || measure(&root)));
    };
    let until = if options.full {
        "40ms"
    } else if options.quick {
        "2ms"
    } else {
        "10ms"
    };
    for cc in ALL {
        add("fig4".into(), cc, Box::new(move |root| fairness(root, cc)));
    }
    for load in LOADS {
        for cc in ALL {
            add(format!("fig8-{load}"), cc, Box::new(move |root| completion(root, cc, load, until)));
        }
        for (sizes, ..) in SIZES {
            let sets = move || vec![("traffic.0.load", load), ("traffic.0.sizes", sizes)];
            let measure = move |root: &Path| updates(root, &sets(), until);
            add(format!("fig5-{sizes}-{load}"), "flowtune", Box::new(measure));
        }
    }
    for (sizes, ..) in SIZES {
        for threshold in THRESHOLDS {
            let sets =
                move || vec![("traffic.0.load", "0.8"), ("traffic.0.sizes", sizes), ("allocator.threshold", threshold)];
            let measure = move |root: &Path| updates(root, &sets(), until);
            add(format!("fig6-{sizes}-{threshold}"), "flowtune", Box::new(measure));
        }
    }
    let racks = if options.quick { &RACKS[..3] } else { &RACKS[..] };
    for &n in racks {
        add(format!("fig7-{n}"), "flowtune", Box::new(move |root| growth(root, n)));
    }
    add("outage".into(), "flowtune", Box::new(outage));
    jobs
}

/// What an algorithm needs beside its name. Buffers of DCTCP and XCP and the parameters of CoDel are not in the paper:
/// 150 packets, and an interval of ten round trips with a tenth of that as target.
fn settings(cc: &str) -> Vec<(&'static str, &'static str)> {
    match cc {
        IW2 => vec![("transport.flowtune.initial_window", "2")],
        K65 => vec![("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
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

fn example(root: &Path, name: &str, cc: &str, sets: &[(&str, &str)]) -> Result<SimConfig, String> {
    let sets: Vec<(&str, &str)> = settings(cc).into_iter().chain(sets.iter().copied()).collect();
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

/// Figures 8 to 11 at a load.
fn completion(root: &Path, cc: &str, load: &str, until: &str) -> Result<Numbers, String> {
    let sets = [("traffic.0.load", load), ("traffic.0.stop", until)];
    let mut config = example(root, "flowtune-web", cc, &sets)?;
    let ports = switch_ports(&config);
    // The paper samples every millisecond of a longer run.
    config.probes = vec![ProbeSpec::Ports { ports: ports.clone(), every: Time::from_us(50) }];
    let topology = config.topology.clone();
    let record = lab::run(config)?;
    let mut numbers = Numbers::new();
    for (above, up_to, name) in CLASSES {
        let inside = |f: &&fairrate_sim::FlowOutcome| {
            let bytes = record.sizes[f.flow.index()] as f64;
            above * MSS < bytes && bytes <= up_to * MSS
        };
        let slowdown = |f: &fairrate_sim::FlowOutcome| Some(seconds(f.fct?) / seconds(f.ideal_fct));
        let sorted = stats::sorted(record.flows.iter().filter(inside).filter_map(slowdown));
        numbers.insert(format!("p99-{name}"), stats::percentile(&sorted, 0.99).unwrap_or(f64::NAN));
        numbers.insert(format!("n-{name}"), sorted.len() as f64);
    }
    let scores = record.flows.iter().filter_map(|f| {
        let bits = record.sizes[f.flow.index()] as f64 * 8.0;
        Some((bits / seconds(f.fct?)).log2())
    });
    let (n, sum) = scores.fold((0.0, 0.0), |(n, sum), score| (n + 1.0, sum + score));
    numbers.insert("score".into(), sum / n);
    numbers.insert("unfinished".into(), record.unfinished as f64);
    let end = seconds(record.totals.end);
    // Drops while flows arrive; what is left over afterwards is small.
    let arrivals = parse_ms(until);
    numbers.insert("drops_gbps".into(), record.totals.dropped_bytes as f64 * 8e-9 / arrivals.min(end));
    numbers.insert("sent_gbps".into(), record.totals.sent_bytes as f64 * 8e-9 / arrivals.min(end));
    let (two, four) = queueing(&record, &topology, arrivals);
    numbers.insert("queue2_us".into(), two);
    numbers.insert("queue4_us".into(), four);
    Ok(numbers)
}

fn parse_ms(text: &str) -> f64 {
    text.trim_end_matches("ms").parse::<f64>().map_or(f64::NAN, |ms| ms * 1e-3)
}

fn switch_ports(config: &SimConfig) -> Vec<PortId> {
    let t = &config.topology;
    (0..t.n_ports() as u32)
        .map(PortId)
        .filter(|&p| !t.is_host(t.from(p)) && t.nodes[t.to(p).index()].name != "allocator")
        .collect()
}

/// 99th percentiles of the queueing delay in us, by lengths of queues, of paths within a rack and between racks: at each
/// sample, of all servers, from the servers of the next rack by each spine.
fn queueing(record: &Record, topology: &fairrate_sim::topology::Topology, until_s: f64) -> (f64, f64) {
    let delay = |port: PortId, bytes: u64| bytes as f64 * 8e6 / topology.link(port).rate.as_bps_f64();
    let name = |node: fairrate_sim::NodeId| topology.nodes[node.index()].name.as_str();
    let port = |from: &str, to: &str| Some(topology.port(topology.node(from)?, topology.node(to)?)?.index());
    let (mut two, mut four) = (Vec::new(), Vec::new());
    let paths: Vec<(usize, Vec<[usize; 2]>)> = topology
        .hosts()
        .filter_map(|host| {
            let number: u32 = name(host).strip_prefix('h')?.parse().ok()?;
            let rack = number / 16;
            let (own, next) = (format!("tor{rack}"), format!("tor{}", (rack + 1) % 9));
            let spines = (0..4).filter_map(|s| {
                let spine = format!("spine{s}");
                Some([port(&next, &spine)?, port(&spine, &own)?])
            });
            Some((port(&own, name(host))?, spines.collect()))
        })
        .collect();
    let mut waits = vec![0.0; topology.n_ports()];
    for at in record.ports.chunk_by(|a, b| a.t == b.t) {
        if until_s < seconds(at[0].t) {
            break;
        }
        for sample in at {
            waits[sample.port.index()] = delay(sample.port, sample.qlen_bytes);
        }
        for (last, spines) in &paths {
            two.push(waits[*last]);
            four.extend(spines.iter().map(|[up, down]| waits[*up] + waits[*down] + waits[*last]));
        }
    }
    let p99 = |values: Vec<f64>| stats::percentile(&stats::sorted(values), 0.99).unwrap_or(f64::NAN);
    (p99(two), p99(four))
}

/// Traffic of the allocator as shares of the network's capacity: servers times their links.
fn updates(root: &Path, sets: &[(&str, &str)], until: &str) -> Result<Numbers, String> {
    let sets: Vec<(&str, &str)> =
        sets.iter().copied().chain([("traffic.0.stop", until), ("duration", until)]).collect();
    shares(example(root, "flowtune-web", "flowtune", &sets)?, 144.0)
}

fn shares(mut config: SimConfig, servers: f64) -> Result<Numbers, String> {
    config.probes.clear();
    let record = lab::run(config)?;
    let a = record.totals.allocator;
    let capacity = servers * HOST_BPS / 8.0 * seconds(record.totals.end);
    Ok(crate::paper::numbers([
        ("from", a.from_allocator_bytes as f64 / capacity),
        ("to", a.to_allocator_bytes as f64 / capacity),
        ("updates", a.updates as f64),
        ("updates_per_flowlet", a.updates as f64 / a.starts as f64),
        ("quiet", a.signs_of_life as f64 / (a.updates + a.signs_of_life) as f64),
    ]))
}

/// Figure 7: more racks at 60 % of load. The allocator's links grow with the network, as its traffic does.
fn growth(root: &Path, racks: u32) -> Result<Numbers, String> {
    let (leaves, rate) = (racks.to_string(), format!("{}Gbps", 5 * racks));
    let sets = [
        ("topology.leaves", leaves.as_str()),
        ("allocator.rate", rate.as_str()),
        ("traffic.0.stop", "1ms"),
        ("duration", "1ms"),
    ];
    shares(example(root, "flowtune-web", "flowtune", &sets)?, 16.0 * f64::from(racks))
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
    fig5_to_7(claims, measured, options);
    fig8_to_11(claims, measured);
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

fn title(cc: &str) -> &str {
    match cc {
        "cubic" => "cubic over sfqCoDel",
        TINY => "cubic over a tiny sfqCoDel",
        K65 => "dctcp with K = 65",
        IW2 => "flowtune from 2 segments",
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
            "flowtune" | IW2 => Says::AtMost(100.0),
            "dctcp" => Says::AtLeast(1_000.0),
            _ => Says::Words,
        };
        add("median_us", "until all shares are 1/N after a change, median", settles, Unit::Us);
        let worst = if matches!(cc, "flowtune" | IW2) { Says::AtMost(100.0) } else { Says::Words };
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

fn fig5_to_7(claims: &mut Claims, measured: &Measured, options: &Options) {
    for (sizes, name, most, saved) in SIZES {
        for load in LOADS {
            let job = format!("fig5-{sizes}-{load}");
            for (what, way) in [("from", "from"), ("to", "to")] {
                let says = if load == "0.8" && what == "from" { Says::AtMost(most) } else { Says::Words };
                let text =
                    format!("Fig 5: {name}, load {load}: traffic {way} the allocator in % of the capacity / 100");
                let value = measured.get(&job, "flowtune", what);
                claims.add(format!("{job}-{what}"), job.clone(), text, says, Unit::Share, value);
            }
            let text = format!("Fig 5: {name}, load {load}: updates for a flowlet");
            let value = measured.get(&job, "flowtune", "updates_per_flowlet");
            claims.add(format!("{job}-each"), job.clone(), text, Says::Words, Unit::Ratio, value);
        }
        let base = measured.get(&format!("fig5-{sizes}-0.8"), "flowtune", "from");
        for threshold in THRESHOLDS {
            let job = format!("fig6-{sizes}-{threshold}");
            let value = 1.0 - measured.get(&job, "flowtune", "from") / base;
            let says = if threshold == "0.05" { Says::About(saved, 0.25) } else { Says::Words };
            let text = format!("Fig 6: {name}, load 0.8: saved by a threshold of {threshold} over 0.01");
            claims.add(job.clone(), job, text, says, Unit::Share, value);
        }
    }
    let small = measured.get("fig7-8", "flowtune", "from");
    let racks = if options.quick { &RACKS[..3] } else { &RACKS[..] };
    for &n in racks {
        let job = format!("fig7-{n}");
        let value = measured.get(&job, "flowtune", "from") / small;
        let text = format!("Fig 7: {} servers: share of the capacity over that of 128 (paper: the same)", 16 * n);
        claims.add(job.clone(), job, text, Says::About(1.0, 0.1), Unit::Ratio, value);
    }
}

/// What the text says of a class: the least of the range of factors there, if the load is among its.
fn fct_factor(cc: &str, class: &str, load: &str) -> Says {
    match (cc, class, load) {
        ("dctcp" | K65, "1 packet", _) => Says::Times(8.6),
        ("dctcp" | K65, "1-10 packets", _) | ("cubic" | TINY, "100-1000 packets", "0.2") => Says::Times(2.1),
        ("pfabric", "1 packet", _) => Says::Times(1.7),
        ("cubic" | TINY, "10-100 packets", "0.8") => Says::Times(3.5),
        ("cubic" | TINY, "1 packet" | "1-10 packets", "0.8") => Says::Times(1.6),
        ("xcp:ns2", "1 packet", _) => Says::Times(2.35),
        ("xcp:ns2", "large", _) => Says::Times(1.8),
        ("xcp:ns2", ..) => Says::Times(1.2),
        _ => Says::Words,
    }
}

fn fig8_to_11(claims: &mut Claims, measured: &Measured) {
    for load in LOADS {
        let job = format!("fig8-{load}");
        let get = |cc: &str, what: &str| measured.get(&job, cc, what);
        for cc in ALL.into_iter().filter(|&cc| !matches!(cc, "flowtune" | IW2)) {
            for (base, with) in [("flowtune", "Flowtune's"), (IW2, "Flowtune's from 2")] {
                for (_, _, class) in CLASSES {
                    let what = format!("p99-{class}");
                    let value = get(cc, &what) / get(base, &what);
                    let text = format!("Fig 8: load {load}, {class}: p99 FCT of {} over {with}", title(cc));
                    let says = fct_factor(cc, class, load);
                    claims.add(format!("fig8-{cc}-{class}-{base}-{load}"), job.clone(), text, says, Unit::Ratio, value);
                }
            }
            let points = match cc {
                "dctcp" | K65 => Says::AtLeast(1.0),
                "pfabric" => Says::AtLeast(0.45),
                "cubic" | TINY => Says::AtLeast(0.25),
                "xcp:ns2" => Says::AtLeast(1.3),
                _ => Says::Words,
            };
            let text = format!("Fig 11: load {load}: points of log2(rate) by which Flowtune is ahead of {}", title(cc));
            let value = get("flowtune", "score") - get(cc, "score");
            claims.add(format!("fig11-{cc}-{load}"), job.clone(), text, points, Unit::Ratio, value);
        }
        for cc in ALL {
            let text = format!("Fig 9: load {load}: p99 queueing delay of 4 hops, {}", title(cc));
            let says = if matches!(cc, "flowtune" | IW2) { Says::AtMost(8.9) } else { Says::Words };
            claims.add(format!("fig9-{cc}-{load}"), job.clone(), text, says, Unit::Us, get(cc, "queue4_us"));
            let text = format!("Fig 9: load {load}: p99 queueing delay of 2 hops, {}", title(cc));
            claims.add(format!("fig9-2hop-{cc}-{load}"), job.clone(), text, says, Unit::Us, get(cc, "queue2_us"));
            let dropped = get(cc, "drops_gbps") / get(cc, "sent_gbps");
            let text = format!("Fig 10: load {load}: share of sent bytes that is dropped, {}", title(cc));
            let says = match (cc, load) {
                ("cubic" | TINY, "0.8") => Says::About(0.08, 0.5),
                ("pfabric", "0.8") => Says::About(0.06, 0.5),
                ("flowtune" | IW2 | "dctcp" | K65 | "xcp" | "xcp:ns2", _) => Says::AtMost(0.001),
                _ => Says::Words,
            };
            claims.add(format!("fig10-{cc}-{load}"), job.clone(), text, says, Unit::Share, dropped);
        }
        if load == "0.8" {
            for (cc, times) in [("dctcp", 12.0), (K65, 12.0), ("xcp:ns2", 3.5)] {
                for (base, with) in [("flowtune", "Flowtune's"), (IW2, "Flowtune's from 2")] {
                    let text = format!("Fig 9: load 0.8: p99 queueing delay of {} over {with}", title(cc));
                    let value = get(cc, "queue4_us") / get(base, "queue4_us");
                    claims.add(
                        format!("fig9-times-{cc}-{base}"),
                        job.clone(),
                        text,
                        Says::Times(times),
                        Unit::Ratio,
                        value,
                    );
                }
            }
        }
    }
}
