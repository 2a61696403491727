//! Figures 5 to 7: the traffic of the allocator.

use std::path::Path;

use fairrate_sim::SimConfig;

use super::network::{HOST_BPS, LOADS, Run, arrivals, example, seeds};
use crate::lab;
use crate::paper::{Claims, Measured, Numbers, Options, Says, Unit};
use crate::seeds::{Estimate, each, over_seeds};

/// Workloads of Figures 5 and 6, with the largest share of the network's capacity that the allocator's traffic takes, and
/// what a threshold of 0.05 saves of it.
const SIZES: [(&str, &str, f64, f64); 3] =
    [("fb-web", "Web", 0.0113, 0.33), ("fb-cache", "Cache", 0.0057, 0.64), ("fb-hadoop-all", "Hadoop", 0.0017, 0.69)];
const THRESHOLDS: [&str; 4] = ["0.02", "0.03", "0.04", "0.05"];
/// Racks of 16 servers in Figure 7: 128 to 2,048 servers.
const RACKS: [u32; 5] = [8, 16, 32, 64, 128];

/// All runs.
pub fn jobs(add: &mut impl FnMut(String, &'static str, Box<Run>), options: &Options) {
    let (until, seeds) = (arrivals(options), seeds(options));
    let mut add_updates = |name: String, sets: Vec<(&'static str, &'static str)>| {
        let measure = move |root: &Path| over_seeds(seeds, |seed| updates(root, &sets, until, seed));
        add(name, "flowtune", Box::new(measure));
    };
    for (sizes, ..) in SIZES {
        for load in LOADS {
            add_updates(format!("fig5-{sizes}-{load}"), vec![("traffic.0.load", load), ("traffic.0.sizes", sizes)]);
        }
        for threshold in THRESHOLDS {
            let sets = vec![("traffic.0.load", "0.8"), ("traffic.0.sizes", sizes), ("allocator.threshold", threshold)];
            add_updates(format!("fig6-{sizes}-{threshold}"), sets);
        }
    }
    for &n in racks(options) {
        add(format!("fig7-{n}"), "flowtune", Box::new(move |root| growth(root, n)));
    }
}

fn racks(options: &Options) -> &'static [u32] {
    if options.quick { &RACKS[..3] } else { &RACKS }
}

/// Traffic of the allocator as shares of the network's capacity: servers times their links.
fn updates(root: &Path, sets: &[(&str, &str)], until: &str, seed: u64) -> Result<Numbers, String> {
    let seed = seed.to_string();
    let more = [("traffic.0.stop", until), ("duration", until), ("seed", seed.as_str())];
    let sets: Vec<(&str, &str)> = sets.iter().copied().chain(more).collect();
    shares(example(root, "flowtune-web", "flowtune", &sets)?, 144.0)
}

fn shares(mut config: SimConfig, servers: f64) -> Result<Numbers, String> {
    config.probes.clear();
    let record = lab::run(config)?;
    let a = record.totals.allocator;
    let capacity = servers * HOST_BPS / 8.0 * lab::seconds(record.totals.end);
    let share = |bytes: u64| bytes as f64 / capacity;
    let said = a.from_allocator_bytes - a.from_allocator_ack_bytes;
    Ok(crate::paper::numbers([
        ("from", share(a.from_allocator_bytes)),
        ("to", share(a.to_allocator_bytes)),
        ("from-acks", share(a.from_allocator_ack_bytes)),
        ("to-acks", share(a.to_allocator_ack_bytes)),
        ("from-alive", share(a.sign_of_life_bytes)),
        ("from-data", share(said - a.sign_of_life_bytes)),
        ("to-data", share(a.to_allocator_bytes - a.to_allocator_ack_bytes)),
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

/// Their claims. What updates take is judged as the packets that carry them, and what thresholds save as those packets and
/// as the number of updates; acknowledgments and signs of life are shown beside them.
pub fn claims(claims: &mut Claims, measured: &Measured, options: &Options) {
    for (sizes, name, most, saved) in SIZES {
        for load in LOADS {
            fig5(claims, measured, &format!("fig5-{sizes}-{load}"), &format!("{name}, load {load}"), (load, most));
        }
        for threshold in THRESHOLDS {
            fig6(claims, measured, (sizes, name), threshold, saved);
        }
    }
    let small = measured.get("fig7-8", "flowtune", "from-data");
    for &n in racks(options) {
        let job = format!("fig7-{n}");
        let value = measured.get(&job, "flowtune", "from-data") / small;
        let text = format!("Fig 7: {} servers: share of the capacity over that of 128 (paper: the same)", 16 * n);
        claims.add(job.clone(), job, text, Says::About(1.0, 0.1), Unit::Ratio, value);
    }
}

fn fig5(claims: &mut Claims, measured: &Measured, job: &str, at: &str, (load, most): (&str, f64)) {
    let parts = [
        ("from-data", "packets with updates, of the capacity"),
        ("from-alive", "packets with signs of life alone"),
        ("from-acks", "acknowledgments from the allocator"),
        ("from", "all traffic from the allocator"),
        ("to-data", "packets with notifications"),
        ("to-acks", "acknowledgments to the allocator"),
        ("to", "all traffic to the allocator"),
    ];
    for (what, text) in parts {
        let says = if load == "0.8" && what == "from-data" { Says::AtMost(100.0 * most) } else { Says::Words };
        let percent: Vec<f64> = each(measured, job, "flowtune", what).iter().map(|share| 100.0 * share).collect();
        let text = format!("Fig 5: {at}: {text}, in %");
        claims.add_estimate(format!("{job}-{what}"), job, text, says, Unit::Share, Estimate::of(&percent));
    }
    let value = Estimate::of(&each(measured, job, "flowtune", "updates_per_flowlet"));
    claims.add_estimate(
        format!("{job}-each"),
        job,
        format!("Fig 5: {at}: updates for a flowlet"),
        Says::Words,
        Unit::Ratio,
        value,
    );
}

fn fig6(claims: &mut Claims, measured: &Measured, (sizes, name): (&str, &str), threshold: &str, saved: f64) {
    let (job, base) = (format!("fig6-{sizes}-{threshold}"), format!("fig5-{sizes}-0.8"));
    let judged = [("updates", "updates"), ("from-data", "bytes of packets with updates")];
    for (what, text) in judged.into_iter().chain([("from", "bytes of all traffic from the allocator")]) {
        let left = each(measured, &job, "flowtune", what);
        let of = each(measured, &base, "flowtune", what);
        let saved_here: Vec<f64> = left.iter().zip(&of).map(|(left, of)| 1.0 - left / of).collect();
        let says = if threshold == "0.05" && what != "from" { Says::About(saved, 0.25) } else { Says::Words };
        let text = format!("Fig 6: {name}, load 0.8: saved by a threshold of {threshold} over 0.01: {text}");
        claims.add_estimate(format!("{job}-{what}"), &job, text, says, Unit::Share, Estimate::of(&saved_here));
    }
}
