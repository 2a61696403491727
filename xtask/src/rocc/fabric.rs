//! The large simulations: Figures 15 and 16 and Table III.

use std::ops::RangeInclusive;
use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::FlowOutcome;

use super::runs::FIG12;
use crate::lab::{self, Record};
use crate::paper::{Claims, Job, Measured, Numbers, Says, Unit, numbers};

/// The two workloads: our name of the size distribution, and which algorithms' 99th percentiles the paper has how many
/// times above RoCC's, as a range over its bins.
type Ratios = [(&'static str, f64, f64); 4];
const WEBSEARCH: Ratios = [("dcqcn", 1.7, 4.5), ("hpcc", 1.4, 3.9), ("pacc", 1.6, 3.6), ("bfc", 1.1, 3.5)];
const HADOOP: Ratios = [("dcqcn", 2.1, 7.0), ("hpcc", 3.5, 8.2), ("pacc", 1.4, 2.6), ("bfc", 3.3, 19.1)];
/// Job, distribution, ratios.
const WORKLOADS: [(&str, &str, Ratios); 2] =
    [("fig16-websearch", "websearch", WEBSEARCH), ("fig16-hadoop", "fb-hadoop", HADOOP)];

/// Table III: mean and standard deviation of flow rates in Mb/s.
const TABLE_3: [(&str, f64, f64); 5] = [
    ("dcqcn", 378.86, 2635.63),
    ("hpcc", 211.02, 1459.04),
    ("pacc", 301.33, 382.18),
    ("bfc", 208.76, 1341.67),
    ("rocc", 335.86, 232.52),
];

/// The paper does not say how long its runs are. Flows count that start within these seconds: not those that find the
/// network empty, and not those of which only the short ones finish.
const DURATION: &str = "200ms";
const COUNTED_S: RangeInclusive<f64> = 0.03..=0.1;

/// Bins with fewer flows than this have no 99th percentile.
const ENOUGH: usize = 100;

pub(super) fn jobs(root: &Path) -> Vec<Job> {
    let run = |(job, sizes, _): (&'static str, &'static str, Ratios)| {
        FIG12.map(|cc| {
            let root = root.to_owned();
            Job::new(job, cc, move || fabric(&root, sizes, cc))
        })
    };
    WORKLOADS.into_iter().flat_map(run).collect()
}

/// Every host of two racks sends to every host of the third, flow after flow.
fn fabric(root: &Path, sizes: &str, cc: &str) -> Result<Numbers, String> {
    let sets = [("traffic.0.sizes", sizes), ("duration", DURATION)];
    let mut record = lab::run(lab::example(root, "rocc-fabric", cc, &sets)?)?;
    record.flows.retain(|f| COUNTED_S.contains(&lab::seconds(f.start)));
    let mut out = Numbers::new();
    let mut sizes: Vec<u64> = record.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let fcts = record.fcts(size as f64 - 0.5, size as f64 + 0.5);
        if ENOUGH <= fcts.len() {
            out.insert(format!("p99-{size}"), stats::percentile(&fcts, 0.99).unwrap_or(f64::NAN));
        }
    }
    let (mean, deviation) = rate_over_time(&record);
    out.extend(numbers([("rate_mbps", mean), ("rate_deviation_mbps", deviation)]));
    Ok(out)
}

/// Mean and standard deviation in Mb/s of the rates of flows, each over its own lifetime, weighted by that: what one sees
/// who looks at sources from time to time.
fn rate_over_time(record: &Record) -> (f64, f64) {
    let flow = |f: &FlowOutcome| {
        let life_s = lab::seconds(f.fct?);
        Some((life_s, f.delivered_bytes as f64 * record.wire_factor * 8.0 / life_s / 1e6))
    };
    let flows: Vec<(f64, f64)> = record.flows.iter().filter_map(flow).collect();
    let total: f64 = flows.iter().map(|f| f.0).sum();
    let mean = flows.iter().map(|f| f.0 * f.1).sum::<f64>() / total;
    let variance = flows.iter().map(|f| f.0 * (f.1 - mean) * (f.1 - mean)).sum::<f64>() / total;
    (mean, variance.sqrt())
}

pub(super) fn claims(claims: &mut Claims, measured: &Measured) {
    for (job, sizes, ratios) in WORKLOADS {
        if !measured.has(job) {
            continue;
        }
        for (cc, least, most) in ratios {
            let ratios: Vec<f64> = measured
                .names(job, "rocc")
                .filter(|name| name.starts_with("p99-"))
                .map(|name| measured.get(job, cc, name) / measured.get(job, "rocc", name))
                .filter(|ratio| !ratio.is_nan())
                .collect();
            let low = ratios.iter().copied().fold(f64::NAN, f64::min);
            let high = ratios.iter().copied().fold(f64::NAN, f64::max);
            let of = format!("Fig 16: {sizes}: p99 FCT of {cc} over rocc's");
            let id = |what: &str| format!("{job}-{what}-{cc}");
            claims.add(id("low"), job, format!("{of}, lowest bin"), Says::Times(least), Unit::Ratio, low);
            claims.add(id("high"), job, format!("{of}, highest bin"), Says::Times(most), Unit::Ratio, high);
        }
    }
    if measured.has("fig16-hadoop") {
        for (cc, mean, deviation) in TABLE_3 {
            let job = "fig16-hadoop";
            let (rate, spread) = (measured.get(job, cc, "rate_mbps"), measured.get(job, cc, "rate_deviation_mbps"));
            let id = |what: &str| format!("table3-{what}-{cc}");
            let (rate_says, spread_says) = (Says::About(mean, 0.2), Says::About(deviation, 0.5));
            claims.add(id("mean"), job, format!("Table III: {cc}: mean rate of a flow"), rate_says, Unit::Mbps, rate);
            let text = format!("Table III: {cc}: standard deviation of flow rates");
            claims.add(id("deviation"), job, text, spread_says, Unit::Mbps, spread);
        }
    }
}
