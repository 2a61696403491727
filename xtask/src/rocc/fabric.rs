//! The large simulations: Figures 15 to 17 and Table III.
//!
//! Pairs of hosts keep one connection for all their flows, as in the authors' code (`connection = "per-pair"` of the example).
//! Every run is repeated with the seeds below; numbers are means over them, and what stands behind ± is half of the 95 %
//! interval by Student's t.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::FlowOutcome;

use crate::lab::{self, Record, seconds};
use crate::paper::{Claims, Job, Measured, Numbers, Says, Unit, algorithm};

/// The paper has five.
const SEEDS: [u64; 2] = [1, 2];
/// Which algorithms' 99th percentiles the paper has how many times above RoCC's, as a range over its bins.
type Ratios = [(&'static str, f64, f64); 4];

/// One of the two workloads.
struct Workload {
    job: &'static str,
    /// The size distribution.
    sizes: &'static str,
    duration: &'static str,
    /// Flows count that start between these seconds: not those that find the network empty, and not those that could not be
    /// done at the end if they had the ideal 333 Mb/s all the time. The largest ones take 720 and 240 ms.
    counted_s: (f64, f64),
    ratios: Ratios,
}

const WORKLOADS: [Workload; 2] = [
    Workload {
        job: "fig16-websearch",
        sizes: "websearch",
        duration: "1s",
        counted_s: (0.03, 0.28),
        ratios: [("dcqcn", 1.7, 4.5), ("hpcc", 1.4, 3.9), ("pacc", 1.6, 3.6), ("bfc", 1.1, 3.5)],
    },
    Workload {
        job: "fig16-hadoop",
        sizes: "fb-hadoop",
        duration: "400ms",
        counted_s: (0.03, 0.16),
        ratios: [("dcqcn", 2.1, 7.0), ("hpcc", 3.5, 8.2), ("pacc", 1.4, 2.6), ("bfc", 3.3, 19.1)],
    },
];

/// Keys of a scenario and their values.
type Sets = &'static [(&'static str, &'static str)];

/// The algorithms, and what is set for each.
const VARIANTS: [(&str, Sets); 8] = [
    ("rocc", &[]),
    ("rocc:full", &[("transport.rocc.low_queue_gain", "full")]),
    ("dcqcn", &[]),
    (
        "dcqcn:authors",
        &[
            ("transport.dcqcn.ai", "4Mbps"),
            ("switch.ecn.kmin", "5KB"),
            ("switch.ecn.kmax", "200KB"),
            ("switch.ecn.pmax", "0.01"),
        ],
    ),
    ("hpcc", &[]),
    ("hpcc:floor", &[("transport.hpcc.floor", "rate")]),
    ("pacc", &[]),
    ("bfc", &[]),
];

/// What a variant is called in a claim.
fn called(cc: &str) -> &str {
    match cc {
        "rocc:full" => "rocc with whole gains on low queues",
        "dcqcn:authors" => "dcqcn as in the authors' code",
        "hpcc:floor" => "hpcc without its floor of a packet",
        _ => cc,
    }
}

/// Table III: mean and standard deviation of flow rates in Mb/s.
const TABLE_3: [(&str, f64, f64); 5] = [
    ("dcqcn", 378.86, 2635.63),
    ("hpcc", 211.02, 1459.04),
    ("pacc", 301.33, 382.18),
    ("bfc", 208.76, 1341.67),
    ("rocc", 335.86, 232.52),
];

/// Bins with fewer flows than this in one of the runs do not count for the lowest and highest bin. They are shown.
const ENOUGH: f64 = 100.0;

pub(super) fn jobs(root: &Path) -> Vec<Job> {
    let run = |workload: &'static Workload| {
        VARIANTS.map(|(cc, sets)| {
            let root = root.to_owned();
            Job::new(workload.job, cc, move || fabric(&root, workload, cc, sets))
        })
    };
    WORKLOADS.iter().flat_map(run).collect()
}

/// The name of a number of one seed.
fn of_seed(what: &str, seed: u64) -> String {
    format!("{what}@{seed}")
}

/// Every host of two racks sends to every host of the third, flow after flow.
fn fabric(root: &Path, workload: &Workload, cc: &str, more: Sets) -> Result<Numbers, String> {
    let mut out = Numbers::new();
    for seed in SEEDS {
        let text = seed.to_string();
        let mut sets =
            vec![("traffic.0.sizes", workload.sizes), ("duration", workload.duration), ("seed", text.as_str())];
        sets.extend(more);
        let record = lab::run(lab::example(root, "rocc-fabric", algorithm(cc), &sets)?)?;
        let numbers = measure(record, workload.counted_s);
        out.extend(numbers.into_iter().map(|(what, value)| (of_seed(&what, seed), value)));
    }
    Ok(out)
}

/// Times in seconds, rates in Mb/s, queues in KB.
fn measure(mut record: Record, (from_s, to_s): (f64, f64)) -> Numbers {
    let mut out = Numbers::new();
    let counts = |f: &FlowOutcome| (from_s..=to_s).contains(&seconds(f.start));
    record.flows.retain(counts);
    record.cut.retain(counts);
    let end = record.totals.end;
    let mut sizes: Vec<u64> = record.flows.iter().chain(&record.cut).map(|f| record.sizes[f.flow.index()]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let is_so_large = |f: &&FlowOutcome| record.sizes[f.flow.index()] == size;
        let cut = record.cut.iter().filter(is_so_large).filter(|f| f.fct.is_none());
        // At least so long.
        let so_far: Vec<f64> = cut.map(|f| seconds(end.saturating_sub(f.start))).collect();
        let done = record.flows.iter().filter(is_so_large).filter_map(|f| Some(seconds(f.fct?)));
        let fcts = stats::sorted(done.chain(so_far.iter().copied()));
        out.insert(format!("n-{size}"), fcts.len() as f64);
        out.insert(format!("cut-{size}"), so_far.len() as f64);
        out.insert(format!("mean-{size}"), stats::mean(&fcts).unwrap_or(f64::NAN));
        out.insert(format!("p99-{size}"), stats::percentile(&fcts, 0.99).unwrap_or(f64::NAN));
    }
    let (mean, deviation) = rate_over_time(&record);
    let told = record.totals.told_rates.mean_and_deviation_bps().unwrap_or((f64::NAN, f64::NAN));
    let queues: Vec<f64> =
        record.ports.iter().filter(|p| from_s <= seconds(p.t)).map(|p| p.qlen_bytes as f64).collect();
    for (what, value) in [
        ("rate", mean),
        ("rate-deviation", deviation),
        ("told", told.0 / 1e6),
        ("told-deviation", told.1 / 1e6),
        ("told-unlimited", record.totals.told_rates.n_unlimited as f64),
        ("told-limited", record.totals.told_rates.n as f64),
        ("core-queue", stats::mean(&queues).unwrap_or(f64::NAN) / 1e3),
        ("pfc", record.totals.pfc_pauses as f64),
        ("gbps", record.totals.delivered_bytes as f64 * 8.0 / seconds(end) / 1e9),
    ] {
        out.insert(what.to_owned(), value);
    }
    out
}

/// Mean and standard deviation in Mb/s of the rates of flows, each over its own lifetime, weighted by that: what one sees
/// who looks at sources from time to time.
fn rate_over_time(record: &Record) -> (f64, f64) {
    let flow = |f: &FlowOutcome| {
        let life_s = seconds(f.fct?);
        Some((life_s, f.delivered_bytes as f64 * record.wire_factor * 8.0 / life_s / 1e6))
    };
    let flows: Vec<(f64, f64)> = record.flows.iter().filter_map(flow).collect();
    let total: f64 = flows.iter().map(|f| f.0).sum();
    let mean = flows.iter().map(|f| f.0 * f.1).sum::<f64>() / total;
    let variance = flows.iter().map(|f| f.0 * (f.1 - mean) * (f.1 - mean)).sum::<f64>() / total;
    (mean, variance.sqrt())
}

/// A number of every seed, from what was measured.
fn over_seeds(value: impl Fn(u64) -> f64) -> (f64, String) {
    let values = SEEDS.map(value);
    let mean = stats::mean(&values).unwrap_or(f64::NAN);
    let half = stats::student_half_width(&values).unwrap_or(f64::NAN);
    (mean, format!("± {half:.2}"))
}

pub(super) fn claims(claims: &mut Claims, measured: &Measured) {
    for workload in WORKLOADS.iter().filter(|workload| measured.has(workload.job)) {
        for (cc, _) in VARIANTS.iter().filter(|(cc, _)| *cc != "rocc") {
            fcts(claims, measured, workload, cc);
        }
        rocc_bins(claims, measured, workload);
        for (cc, _) in VARIANTS {
            ports(claims, measured, workload, cc);
        }
    }
    if measured.has("fig16-hadoop") {
        table_3(claims, measured);
    }
}

/// The sizes of flows under an algorithm, ascending.
fn sizes(measured: &Measured, job: &str, cc: &str) -> Vec<u64> {
    let size = |name: &str| name.strip_prefix("n-")?.split('@').next()?.parse().ok();
    let mut sizes: Vec<u64> = measured.names(job, cc).filter_map(size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Completion times over RoCC's: of the lowest and highest bin, and of each.
fn fcts(claims: &mut Claims, measured: &Measured, workload: &Workload, cc: &str) {
    let job = workload.job;
    let get = |cc: &str, what: String| measured.get(job, cc, &what);
    let id = |what: &str| format!("{job}-{what}-{}", cc.replace(':', "-"));
    let sizes = sizes(measured, job, cc);
    let is_large = |size: &u64| {
        let n = |cc, seed| get(cc, of_seed(&format!("n-{size}"), seed));
        SEEDS.iter().all(|&seed| ENOUGH <= n(cc, seed).min(n("rocc", seed)))
    };
    let ratio = |what: &str, size: u64, seed| {
        let name = of_seed(&format!("{what}-{size}"), seed);
        get(cc, name.clone()) / get("rocc", name)
    };
    for (what, figure) in [("p99", "Fig 16"), ("mean", "Fig 15")] {
        let of = format!("{figure}: {}: {what} FCT of {} over rocc's", workload.sizes, called(cc));
        let paper = workload.ratios.iter().find(|r| r.0 == algorithm(cc) && what == "p99");
        let bins = |pick: fn(f64, f64) -> f64| {
            over_seeds(|seed| {
                let ratios = sizes.iter().filter(|s| is_large(s)).map(|&size| ratio(what, size, seed));
                ratios.fold(f64::NAN, pick)
            })
        };
        let (low, high) = (bins(f64::min), bins(f64::max));
        let (low_says, high_says) = paper.map_or((Says::Words, Says::Words), |r| (Says::Times(r.1), Says::Times(r.2)));
        let prefix = if what == "p99" { String::new() } else { format!("{what}-") };
        let text = format!("{of}, lowest bin ({})", low.1);
        claims.add(id(&format!("{prefix}low")), job, text, low_says, Unit::Ratio, low.0);
        let text = format!("{of}, highest bin ({})", high.1);
        claims.add(id(&format!("{prefix}high")), job, text, high_says, Unit::Ratio, high.0);
    }
    for &size in &sizes {
        let (value, half) = over_seeds(|seed| ratio("p99", size, seed));
        let text = format!("{}: p99 FCT of {} over rocc's, {size} B ({half}; {})", workload.sizes, called(cc), {
            numbers_of_flows(measured, job, cc, size)
        });
        claims.add(id(&format!("bin-{size}")), job, text, Says::Words, Unit::Ratio, value);
    }
}

/// How many flows of a size there were, and how many of them were not done at the end.
fn numbers_of_flows(measured: &Measured, job: &str, cc: &str, size: u64) -> String {
    let sum =
        |what: &str| SEEDS.iter().map(|&s| measured.get(job, cc, &of_seed(&format!("{what}-{size}"), s))).sum::<f64>();
    format!("{} flows, {} not done", sum("n"), sum("cut"))
}

/// RoCC's own completion times.
fn rocc_bins(claims: &mut Claims, measured: &Measured, workload: &Workload) {
    let job = workload.job;
    for size in sizes(measured, job, "rocc") {
        let (value, half) = over_seeds(|seed| measured.get(job, "rocc", &of_seed(&format!("p99-{size}"), seed)) * 1e3);
        let n = numbers_of_flows(measured, job, "rocc", size);
        let text = format!("{}: p99 FCT of rocc, {size} B ({half}; {n})", workload.sizes);
        claims.add(format!("{job}-bin-{size}-rocc"), job, text, Says::Words, Unit::Ms, value);
    }
}

/// Figure 17, whose numbers the text does not give, and what the network carries.
fn ports(claims: &mut Claims, measured: &Measured, workload: &Workload, cc: &str) {
    let job = workload.job;
    for (what, text, unit) in [
        (
            "core-queue",
            "Fig 17: mean queue at the cores (paper: rocc near 300 KB, dcqcn deep, hpcc very shallow)",
            Unit::Kilobytes,
        ),
        ("pfc", "Fig 17: pause frames (paper: many with dcqcn, hardly any with the others)", Unit::Count),
        ("gbps", "goodput of all", Unit::Gbps),
    ] {
        let (value, half) = over_seeds(|seed| measured.get(job, cc, &of_seed(what, seed)));
        let text = format!("{}, {}: {text} ({half})", workload.sizes, called(cc));
        claims.add(format!("{job}-{what}-{}", cc.replace(':', "-")), job, text, Says::Words, unit, value);
    }
}

/// Rates of flows over their lives, and the rates that sources had after every message about rates.
fn table_3(claims: &mut Claims, measured: &Measured) {
    let job = "fig16-hadoop";
    for (cc, _) in VARIANTS {
        let Some((_, mean, deviation)) = TABLE_3.iter().find(|row| row.0 == algorithm(cc)) else { continue };
        let name = cc.replace(':', "-");
        for (what, of, id) in
            [("rate", "rate of a flow over its life", ""), ("told", "rate after each notice, while limited", "told-")]
        {
            let of_both = |what: &str| over_seeds(|seed| measured.get(job, cc, &of_seed(what, seed)));
            let (rate, spread) = (of_both(what), of_both(&format!("{what}-deviation")));
            if what == "told" && rate.0.is_nan() {
                continue;
            }
            let (rate_says, spread_says) = (Says::About(*mean, 0.2), Says::About(*deviation, 0.5));
            let text = format!("Table III: {}: mean {of} ({})", called(cc), rate.1);
            claims.add(format!("table3-{id}mean-{name}"), job, text, rate_says, Unit::Mbps, rate.0);
            let text = format!("Table III: {}: standard deviation of the {of} ({})", called(cc), spread.1);
            claims.add(format!("table3-{id}deviation-{name}"), job, text, spread_says, Unit::Mbps, spread.0);
        }
    }
}
