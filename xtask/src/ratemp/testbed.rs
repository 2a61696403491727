//! The testbed: Table I and Figures 4 and 5.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::FlowId;
use fairrate_units::Time;

use super::rtts::Rtts;
use crate::lab::{self, Series, mean_and_deviation};
use crate::paper::{Job, Numbers, Options, numbers};

/// Algorithms of the paper's testbed, and XMP and OLIA.
pub const RUNS: [&str; 6] = ["ratemp", "xmp", "dctcp", "balia", "lia", "olia"];
/// Sizes of Figure 5's downloads and the share of the hosts' link that makes the pauses between them: 20, 20 and 100 ms.
pub const DOWNLOADS: [(&str, &str); 3] = [("10KB", "0.0004"), ("100KB", "0.004"), ("1MB", "0.008")];
/// The bottlenecks of Figure 3a in bit/s.
const LINK_BPS: f64 = 0.5e9;

pub(super) fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    for cc in RUNS {
        let root = root.to_owned();
        jobs.push(Job::new("fig4", cc, move || bottlenecks(&root, cc)));
    }
    for (size, load) in DOWNLOADS {
        for cc in RUNS {
            let (root, duration) = (root.to_owned(), if options.quick { "3s" } else { "10s" });
            jobs.push(Job::new(download_name(size), cc, move || downloads(&root, cc, size, load, duration)));
        }
    }
    jobs
}

/// The name of a run of Figure 5.
pub fn download_name(size: &str) -> String {
    format!("fig5-{size}")
}

/// Marks of the testbed: a step for DCTCP and XMP, none for those that wait for losses.
fn sets(cc: &str) -> Vec<(&'static str, &'static str)> {
    match cc {
        "ratemp" => Vec::new(),
        "xmp" | "dctcp" => {
            vec![("switch.ecn.kmin", "30KB"), ("switch.ecn.kmax", "30KB"), ("switch.ecn.at", "enqueue")]
        }
        _ => vec![("switch.ecn", "false")],
    }
}

/// Table I and Figure 4: the connection is flow 0, the flow on AB is flow 1 and is there from 5 to 10 s. Mb/s on the wire.
fn bottlenecks(root: &Path, cc: &str) -> Result<Numbers, String> {
    let config = lab::example(root, "ratemp-bottlenecks", cc, &sets(cc))?;
    let mut rtts = Rtts::of(FlowId(0), Time::from_ms(1_000));
    let record = lab::watch(config, &mut |sample| rtts.add(sample))?;
    let mbps = |flow, from, to| record.goodput_bps(flow, from, to) / 1e6;
    let windows: Series =
        (60..100).map(|i| (f64::from(i) / 10.0, mbps(0, f64::from(i) / 10.0, f64::from(i + 1) / 10.0))).collect();
    // While the flow is there, AB carries nothing but it and the connection.
    let leave_s = time_to_take(&record, LINK_BPS / 20.0);
    Ok(numbers([
        ("rtt_us", rtts.mean_us()),
        ("deviation_us", rtts.deviation_us()),
        ("alone", mbps(0, 1.0, 5.0)),
        ("beside", mbps(0, 6.0, 10.0)),
        ("flow", mbps(1, 6.0, 10.0)),
        ("after", mbps(0, 11.0, 15.0)),
        ("swing", mean_and_deviation(&windows).1),
        ("leave_ms", leave_s * 1e3),
    ]))
}

/// Seconds after the flow on AB began until it has all but a rate of that link, over 20 ms; infinite if it never does.
fn time_to_take(record: &lab::Record, rest_bps: f64) -> f64 {
    let steps = (0..240).map(|i| 5.0 + f64::from(i) * 0.02);
    let mut taken = steps.map(|t| (t + 0.02, record.goodput_bps(1, t, t + 0.02)));
    taken.find(|&(_, bps)| LINK_BPS - rest_bps <= bps).map_or(f64::INFINITY, |(t, _)| t - 5.0)
}

/// Completion times of Figure 5's downloads in milliseconds.
fn downloads(root: &Path, cc: &str, size: &'static str, load: &'static str, duration: &str) -> Result<Numbers, String> {
    let mut all = vec![("traffic.1.size", size), ("traffic.1.load", load), ("duration", duration)];
    all.extend(sets(cc));
    let record = lab::run(lab::example(root, "ratemp-download", cc, &all)?)?;
    let ms: Vec<f64> = record.flows.iter().filter_map(|f| Some(lab::seconds(f.fct?) * 1e3)).collect();
    let series: Series = ms.iter().map(|&ms| (0.0, ms)).collect();
    Ok(numbers([
        ("n", ms.len() as f64),
        ("fct_ms", stats::mean(&ms).unwrap_or(f64::NAN)),
        ("deviation_ms", mean_and_deviation(&series).1),
    ]))
}
