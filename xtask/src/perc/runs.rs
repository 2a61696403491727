//! The runs behind the claims about PERC: sections 3.1 and 4.

use std::path::Path;

use fairrate_allocate::{Flow, Link, LinkId, Network, SyncPerc, max_min, overload};
use fairrate_report::stats;
use fairrate_sim::NodeId;
use fairrate_units::{Bytes, Rate, Time};

use crate::lab::{self, Record, settle};
use crate::paper::{Job, Numbers, Options, algorithm, numbers};
use crate::seeds::over_seeds;

/// Algorithms of Figures 1, 4 and 5; `ideal` is what they are normalised by.
pub const FCT: [&str; 7] = ["perc", CHARGED, HEADROOM, "rcp", "dctcp", "charny", "ideal"];
/// PERC whose flows' rates include their control packets.
pub const CHARGED: &str = "perc:charged";
/// PERC that leaves a twentieth of every link free, which drains queues.
pub const HEADROOM: &str = "perc:headroom";
/// PERC at Figure 4 with one thing changed, for the cause of its queue: control packets of a byte, and first rates that wait
/// as raises do.
pub const WHY: [&str; 2] = [SMALL_CONTROL, FIRST_WAITS];
pub const SMALL_CONTROL: &str = "perc:control-1B";
pub const FIRST_WAITS: &str = "perc:first-rate-waits";
/// Algorithms of Figure 6.
pub const FIG6: [&str; 3] = ["perc", "charny", "rcp"];
/// Algorithms of Figures 7 and 8; `perc:no-wait` raises rates at once.
pub const FIG8: [&str; 5] = ["perc", "perc:no-wait", "charny", "rcp", "ideal"];
/// Algorithms of Figure 2.
pub const FIG2: [&str; 2] = ["perc", "rcp"];

/// A link of Figures 1, 4 and 5.
#[derive(Clone, Copy)]
struct Setting {
    job: &'static str,
    rate: &'static str,
    /// With a packet and its acknowledgment on three links and 1 us a host link, the base RTT below.
    delay: &'static str,
    rtt: &'static str,
    /// Until when flows arrive: about 6,500 of them, of which 900 are small (`--full`, three seeds); and a sixth of that
    /// (five seeds). Without charged control packets Figure 4 takes minutes for some seeds of the former.
    until: [&'static str; 2],
}

const SETTINGS: [Setting; 3] = [
    Setting { job: "fig1", rate: "100Gbps", delay: "57865ns", rtt: "120us", until: ["1500ms", "250ms"] },
    Setting { job: "fig4", rate: "10Gbps", delay: "2670ns", rtt: "12us", until: ["15s", "2500ms"] },
    Setting { job: "fig5", rate: "100Gbps", delay: "3865ns", rtt: "12us", until: ["1500ms", "250ms"] },
];

/// All runs.
pub fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let mut jobs = vec![Job::new("fig3", "", fig3), Job::new("fig7", "", fig7)];
    let mut add = |name: &str, cc: &'static str, measure: fn(&Path, bool, &str) -> Result<Numbers, String>| {
        let (root, quick) = (root.to_owned(), options.quick);
        jobs.push(Job::new(name, cc, move || measure(&root, quick, cc)));
    };
    for cc in FIG8 {
        add("fig8", cc, |root, _, cc| fig8(root, cc));
    }
    for cc in FIG2 {
        add("fig2", cc, |root, _, cc| fig2(root, cc));
    }
    for cc in FIG6.iter().rev() {
        add("fig6", cc, fig6);
    }
    for setting in SETTINGS {
        let why = if setting.job == "fig4" { &WHY[..] } else { &[] };
        for &cc in FCT.iter().chain(why) {
            let (root, until, seeds) = match (options.full, options.quick) {
                (true, _) => (root.to_owned(), setting.until[0], 3),
                (false, quick) => (root.to_owned(), setting.until[1], if quick { 1 } else { 5 }),
            };
            let measure = move |seed| completion_times(&root, until, setting, cc, seed);
            jobs.push(Job::new(setting.job, cc, move || over_seeds(seeds, &measure)));
        }
    }
    jobs
}

/// A network of links in Gb/s, and flows with their links.
fn network(capacities_gbps: &[u64], flows: &[&[u32]]) -> Network {
    let flow = |links: &&[u32]| Flow::new("", links.iter().map(|&l| LinkId(l)).collect::<Vec<_>>());
    Network {
        links: capacities_gbps.iter().map(|&gbps| Link::new("", Rate::from_gbps(gbps))).collect(),
        flows: flows.iter().map(flow).collect(),
    }
}

/// The synchronous form when C joins A and B. The figure's capacities are not in the text: 30 and 20 Gb/s let B's
/// bottleneck move from link 1 to link 2, which is what it shows.
fn fig3() -> Result<Numbers, String> {
    let settled = |perc: &mut SyncPerc<'_>| perc.settle(100).ok_or("synchronous PERC does not settle".to_owned());
    let before = network(&[30, 20], &[&[0], &[0, 1]]);
    let shares = settled(&mut SyncPerc::new(&before).map_err(|e| e.to_string())?)?.last.shares_bps;
    let after = network(&[30, 20], &[&[0], &[0, 1], &[1]]);
    let mut perc = SyncPerc::new(&after).map_err(|e| e.to_string())?.from_shares(shares);
    let settled = settled(&mut perc)?;
    let optimum = max_min(&after).map_err(|e| e.to_string())?.rates_bps;
    let off = settled.last.rates_bps.iter().zip(&optimum).map(|(rate, want)| (rate / want - 1.0).abs());
    Ok(numbers([("iterations", settled.iterations as f64), ("error", off.fold(0.0, f64::max))]))
}

/// Figure 7: A and B on 60 Gb/s, B and C on 30, C and D on 10.
fn chain() -> Network {
    network(&[60, 30, 10], &[&[0], &[0, 1], &[1, 2], &[2]])
}

/// The synchronous form of Figure 7, with all flows starting at once.
fn fig7() -> Result<Numbers, String> {
    let chain = chain();
    let perc = SyncPerc::new(&chain).map_err(|e| e.to_string())?;
    let settled = perc.clone().settle(100).ok_or("synchronous PERC does not settle")?;
    let most = |rates: &[f64]| overload(&chain, rates).into_iter().fold(0.0, f64::max);
    let worst = perc.take(settled.iterations).map(|i| most(&i.rates_bps)).fold(0.0, f64::max);
    let rate = |flow: usize| settled.last.rates_bps[flow] / 1e9;
    Ok(numbers([
        ("iterations", settled.iterations as f64),
        ("us", settled.iterations as f64 * 24.0),
        ("overload_gbps", worst / 1e9),
        ("a", rate(0)),
        ("b", rate(1)),
        ("c", rate(2)),
        ("d", rate(3)),
    ]))
}

/// The same chain on packets: rates every microsecond for 5 ms.
fn fig8(root: &Path, cc: &str) -> Result<Numbers, String> {
    let mut sets = vec![("duration", "5ms")];
    if cc.ends_with(":no-wait") {
        sets.push(("transport.perc.increase_wait", "0.0"));
    }
    let record = lab::run(lab::example(root, "perc-chain", algorithm(cc), &sets)?)?;
    let optimum = [35e9, 25e9, 5e9, 5e9];
    let rates: Vec<_> = (0..4).map(|flow| record.rate(flow)).collect();
    let mut out = Numbers::new();
    for ((name, rate), want) in ["a", "b", "c", "d"].into_iter().zip(&rates).zip(optimum) {
        for (percent, tolerance) in [(5, 0.05), (10, 0.1), (20, 0.2)] {
            out.insert(format!("{name}-{percent}-us"), settle(rate, 0.0, 5e-3, want, tolerance) * 1e6);
        }
    }
    let (chain, mut overload_us, mut most) = (chain(), 0.0, 0.0);
    for i in 0..rates[0].len() {
        let now: Vec<f64> = rates.iter().map(|r| r.get(i).map_or(0.0, |s| s.1)).collect();
        // A bit/s is the resolution of rates.
        let over = overload(&chain, &now).into_iter().fold(0.0, f64::max);
        most = f64::max(most, over);
        overload_us += if 4.0 < over { 1.0 } else { 0.0 };
    }
    out.extend(numbers([("overload_us", overload_us), ("overload_gbps", most / 1e9)]));
    Ok(out)
}

/// Flow 1 of 10,000 packets from the start, flow 2 of 1,000 packets at 600 us, on one link of 100 Gb/s. The RTT is not in
/// the text: that of Figure 1, which this experiment explains.
fn fig2(root: &Path, cc: &str) -> Result<Numbers, String> {
    let sets =
        [("transport.mtu", "1452B"), ("traffic.0.max_flows", "2"), ("traffic.0.load", "1.0"), ("probe.0.every", "5us")];
    let mut config = lab::example(root, "perc-link", cc, &sets)?;
    let every = Time::from_us(5);
    config.probes.push(fairrate_sim::ProbeSpec::Flows { flows: None, every });
    for (i, (flow, packets)) in (0..).zip(config.flows.iter_mut().zip([10_000, 1_000])) {
        (flow.src, flow.dst) = (NodeId(i), NodeId(20 + i));
        flow.bytes = Bytes::new(packets * 1_452);
        flow.start = Time::from_us(600 * u64::from(i));
    }
    let record = lab::run(config)?;
    let done = |flow: u32| {
        let outcome = record.flows.iter().find(|f| f.flow.0 == flow);
        outcome.and_then(|f| Some(lab::seconds(f.start) + lab::seconds(f.fct?))).unwrap_or(f64::NAN)
    };
    let both_from = 600e-6 + 120e-6;
    Ok(numbers([
        ("flow1_us", done(0) * 1e6),
        ("flow2_us", (done(1) - 600e-6) * 1e6),
        ("use", record.throughput_bps(both_from, done(0).min(2e-3)) / 100e9),
        ("flow1_settle_us", settle(&record.rate(0), 600e-6, done(1), 50e9, 0.1) * 1e6),
        ("lowest_gbps", lab::part(&record.rate(0), 600e-6, done(1)).iter().map(|s| s.1).fold(f64::MAX, f64::min) / 1e9),
    ]))
}

/// Arrivals and departures among 32 flows.
fn fig6(root: &Path, quick: bool, cc: &str) -> Result<Numbers, String> {
    // RCP, most of whose changes never converge, would take a quarter of an hour for 3,000.
    let changes = if quick || cc == "rcp" { "300" } else { "3000" };
    // Well above all times in the paper, and soon enough for an algorithm that does not converge.
    let sets = [("duration", "30s"), ("traffic.0.changes", changes), ("probe.0.give_up_rtts", "200")];
    let record = lab::run(lab::example(root, "perc-fig6", cc, &sets)?)?;
    // The flows of the start are no changes.
    let changes: Vec<_> = record.convergence.iter().filter(|c| Time::ZERO < c.t).collect();
    let rtts = stats::sorted(changes.iter().map(|c| c.rtts.unwrap_or(f64::INFINITY)));
    let quantile = |p| stats::percentile(&rtts, p).unwrap_or(f64::NAN);
    let failed = rtts.iter().filter(|rtts| rtts.is_infinite()).count();
    Ok(numbers([
        ("changes", changes.len() as f64),
        ("median", quantile(0.5)),
        ("p90", quantile(0.9)),
        ("p99", quantile(0.99)),
        ("failed", failed as f64 / rtts.len() as f64),
        ("in10", rtts.iter().filter(|&&rtts| rtts < 10.0).count() as f64 / rtts.len() as f64),
    ]))
}

/// Web search at 60 % on one link.
fn completion_times(root: &Path, until: &str, setting: Setting, cc: &str, seed: u64) -> Result<Numbers, String> {
    let seed = seed.to_string();
    let mut sets = vec![
        ("topology.host_rate", setting.rate),
        ("topology.bottleneck_rate", setting.rate),
        ("topology.bottleneck_delay", setting.delay),
        ("transport.base_rtt", setting.rtt),
        ("traffic.0.stop", until),
        ("probe.0.every", "1ms"),
        ("seed", seed.as_str()),
    ];
    // The paper's DCTCP is ns-2's TCP, which begins with slow start.
    if cc == "dctcp" {
        sets.extend([("transport.dctcp.initial_window", "10mtu"), ("transport.dctcp.slow_start", "true")]);
    }
    sets.extend(match cc {
        HEADROOM => Some(("transport.perc.headroom", "0.05")),
        CHARGED => Some(("transport.perc.charge_control", "true")),
        SMALL_CONTROL => Some(("transport.perc.control_packet", "1B")),
        FIRST_WAITS => Some(("transport.perc.first_rate_waits", "true")),
        _ => None,
    });
    let record = lab::run(lab::example(root, "perc-link", algorithm(cc), &sets)?)?;
    Ok(classes(&record))
}

/// 99th percentiles of small and medium flows and the mean of large ones, in microseconds; and the mean queue.
fn classes(record: &Record) -> Numbers {
    let p99 = |fcts: &[f64]| stats::percentile(fcts, 0.99).unwrap_or(f64::NAN) * 1e6;
    let (small, medium, large) = (record.fcts(0.0, 10e3), record.fcts(10e3, 1e6), record.fcts(1e6, f64::MAX));
    numbers([
        ("small", p99(&small)),
        ("medium", p99(&medium)),
        ("large", stats::mean(&large).unwrap_or(f64::NAN) * 1e6),
        ("queue_kb", lab::mean_and_deviation(&record.queue()).0 * 1e-3),
        ("n_small", small.len() as f64),
        ("n_medium", medium.len() as f64),
        ("n_large", large.len() as f64),
        ("unfinished", record.unfinished as f64),
    ])
}
