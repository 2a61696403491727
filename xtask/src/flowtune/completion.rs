//! Figures 8 to 11: completion times, queues, drops and scores.

use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::{PortId, ProbeSpec, SimConfig};
use fairrate_units::Time;

use super::network::{ALL, GAMMA, IW10, K65, K65_IW10, LOADS, MSS, Run, TINY, arrivals, example, seeds, title};
use crate::lab::{self, Record, seconds};
use crate::paper::{Claims, Measured, Numbers, Options, Says, Unit};
use crate::seeds::{Estimate, each, over_seeds};

/// Classes of Figure 8 by packets of 1,460 bytes, and their names.
const CLASSES: [(f64, f64, &str); 5] = [
    (0.0, 1.0, "1 packet"),
    (1.0, 10.0, "1-10 packets"),
    (10.0, 100.0, "10-100 packets"),
    (100.0, 1_000.0, "100-1000 packets"),
    (1_000.0, f64::INFINITY, "large"),
];
/// Flow sizes, and what runs and claims with them are called. The figures are of Web, whose largest flow has 685 packets
/// here: the class "large" is empty. Hadoop's has flows of all classes; Figure 8 is made of it too.
const SIZES: [(&str, &str, &str); 2] = [("fb-web", "fig8", ""), ("fb-hadoop-all", "fig8.hadoop", "Hadoop, ")];
/// "The network exhibits similar performance" for gamma from 0.2 to 1.5 (section 6.2): within a tenth is ours.
const SIMILAR: Says = Says::About(1.0, 0.1);

/// All runs.
pub fn jobs(add: &mut impl FnMut(String, &'static str, Box<Run>), options: &Options) {
    let (until, seeds) = (arrivals(options), seeds(options));
    for (sizes, figure, _) in SIZES {
        for load in LOADS {
            for cc in ALL.into_iter().chain([K65_IW10, GAMMA]) {
                let measure =
                    move |root: &Path| over_seeds(seeds, |seed| completion(root, cc, sizes, load, until, seed));
                add(format!("{figure}-{load}"), cc, Box::new(measure));
            }
        }
    }
}

/// Figures 8 to 11 at a load.
fn completion(root: &Path, cc: &str, sizes: &str, load: &str, until: &str, seed: u64) -> Result<Numbers, String> {
    let seed = seed.to_string();
    let sets =
        [("traffic.0.sizes", sizes), ("traffic.0.load", load), ("traffic.0.stop", until), ("seed", seed.as_str())];
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

/// What the text says of a class: the least of the range of factors there, if the load is among its.
fn fct_factor(cc: &str, class: &str, load: &str) -> Says {
    match (cc, class, load) {
        ("dctcp" | K65 | K65_IW10, "1 packet", _) => Says::Times(8.6),
        ("dctcp" | K65 | K65_IW10, "1-10 packets", _) | ("cubic" | TINY, "100-1000 packets", "0.2") => Says::Times(2.1),
        ("pfabric", "1 packet", _) => Says::Times(1.7),
        ("cubic" | TINY, "10-100 packets", "0.8") => Says::Times(3.5),
        ("cubic" | TINY, "1 packet" | "1-10 packets", "0.8") => Says::Times(1.6),
        ("xcp:ns2", "1 packet", _) => Says::Times(2.35),
        ("xcp:ns2", "large", _) => Says::Times(1.8),
        ("xcp:ns2", ..) => Says::Times(1.2),
        _ => Says::Words,
    }
}

/// A number of a run over another's, seed by seed.
fn ratio(measured: &Measured, job: &str, what: &str, of: &str, over: &str) -> Estimate {
    Estimate::of_ratios(&each(measured, job, of, what), &each(measured, job, over, what))
}

fn fig8(claims: &mut Claims, measured: &Measured, figure: &str, of: &str, load: &str) {
    let job = format!("{figure}-{load}");
    let bases = [("flowtune", "Flowtune's"), (IW10, "Flowtune's from 10")];
    for cc in ALL.into_iter().chain([K65_IW10]).filter(|&cc| !matches!(cc, "flowtune" | IW10)) {
        for (base, with) in bases {
            for (_, _, class) in CLASSES {
                let value = ratio(measured, &job, &format!("p99-{class}"), cc, base);
                let text = format!("Fig 8: {of}load {load}, {class}: p99 FCT of {} over {with}", title(cc));
                let (id, says) = (format!("{figure}-{cc}-{class}-{base}-{load}"), fct_factor(cc, class, load));
                claims.add_estimate(id, job.clone(), text, says, Unit::Ratio, value);
            }
        }
    }
    for (_, _, class) in CLASSES {
        let value = ratio(measured, &job, &format!("p99-{class}"), GAMMA, "flowtune");
        let text = format!("6.2: {of}load {load}, {class}: p99 FCT with gamma 1.5 over that with 0.4");
        claims.add_estimate(format!("{figure}-gamma-{class}-{load}"), job.clone(), text, SIMILAR, Unit::Ratio, value);
    }
}

/// Their claims.
pub fn claims(claims: &mut Claims, measured: &Measured) {
    for (_, figure, of) in SIZES {
        for load in LOADS {
            fig8(claims, measured, figure, of, load);
        }
    }
    fig9_to_11(claims, measured);
}

fn fig9_to_11(claims: &mut Claims, measured: &Measured) {
    for load in LOADS {
        let job = format!("fig8-{load}");
        let values = |cc: &str, what: &str| each(measured, &job, cc, what);
        for cc in ALL.into_iter().filter(|&cc| !matches!(cc, "flowtune" | IW10)) {
            let points = match cc {
                "dctcp" | K65 => Says::AtLeast(1.0),
                "pfabric" => Says::AtLeast(0.45),
                "cubic" | TINY => Says::AtLeast(0.25),
                "xcp:ns2" => Says::AtLeast(1.3),
                _ => Says::Words,
            };
            let text = format!("Fig 11: load {load}: points of log2(rate) by which Flowtune is ahead of {}", title(cc));
            let value = Estimate::of_differences(&values("flowtune", "score"), &values(cc, "score"));
            claims.add_estimate(format!("fig11-{cc}-{load}"), job.clone(), text, points, Unit::Ratio, value);
        }
        for cc in ALL {
            let text = format!("Fig 9: load {load}: p99 queueing delay of 4 hops, {}", title(cc));
            let says = if matches!(cc, "flowtune" | IW10) { Says::AtMost(8.9) } else { Says::Words };
            let value = Estimate::of(&values(cc, "queue4_us"));
            claims.add_estimate(format!("fig9-{cc}-{load}"), job.clone(), text, says, Unit::Us, value);
            let text = format!("Fig 9: load {load}: p99 queueing delay of 2 hops, {}", title(cc));
            let value = Estimate::of(&values(cc, "queue2_us"));
            claims.add_estimate(format!("fig9-2hop-{cc}-{load}"), job.clone(), text, says, Unit::Us, value);
            let dropped = Estimate::of_ratios(&values(cc, "drops_gbps"), &values(cc, "sent_gbps"));
            let text = format!("Fig 10: load {load}: share of sent bytes that is dropped, {}", title(cc));
            let says = match (cc, load) {
                ("cubic" | TINY, "0.8") => Says::About(0.08, 0.5),
                ("pfabric", "0.8") => Says::About(0.06, 0.5),
                ("flowtune" | IW10 | "dctcp" | K65 | "xcp" | "xcp:ns2", _) => Says::AtMost(0.001),
                _ => Says::Words,
            };
            claims.add_estimate(format!("fig10-{cc}-{load}"), job.clone(), text, says, Unit::Share, dropped);
        }
        if load == "0.8" {
            for (cc, times) in [("dctcp", 12.0), (K65, 12.0), ("xcp:ns2", 3.5)] {
                for (base, with) in [("flowtune", "Flowtune's"), (IW10, "Flowtune's from 10")] {
                    let text = format!("Fig 9: load 0.8: p99 queueing delay of {} over {with}", title(cc));
                    let value = ratio(measured, &job, "queue4_us", cc, base);
                    let id = format!("fig9-times-{cc}-{base}");
                    claims.add_estimate(id, job.clone(), text, Says::Times(times), Unit::Ratio, value);
                }
            }
        }
    }
}
