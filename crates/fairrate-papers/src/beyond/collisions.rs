//! The cost of collisions under ECMP on the shootout's fabric: web search at 60 and 80 % under ECMP, and with every
//! packet sprayed.
//!
//! Only algorithms whose packets may take several paths are here. RoCC, PERC and Flowtune need to know the path of a
//! flow, and RateMP has several by itself. PowerTCP and HPCC keep the telemetry of each path apart (`per_path`).
//! Receivers wait 100 us for what is late, under both ways, so that disorder is not taken for losses.

use fairrate_report::panel::{Axis, Panel};

use super::shootout::{self, CLASSES, LARGE, SCENARIO, SMALL, key};
use crate::claim::{Claim, Rule};
use crate::curves::{self, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "beyond/collisions",
    title: "ECMP against spraying: how much of a tail is collisions",
    kind: Kind::Simulation,
    quick_s: 60,
    runs,
    panels,
    claims,
};

/// Loads of the uplinks, in per cent.
const LOADS: [u32; 2] = [60, 80];
/// Milliseconds of arrivals, times the load in per cent: about 4,700 flows.
const ARRIVALS: u32 = 4_000;
/// Ways to choose paths, by `balance`.
const WAYS: [&str; 2] = ["ecmp", "spray"];

/// An algorithm with its settings.
struct Taking {
    cc: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

const RECOVERY: (&str, &str) = ("transport.recovery", "selective-repeat");
const WINDOW: (&str, &str) = ("transport.reorder_window", "100us");
const RTO: (&str, &str) = ("transport.rto", "4ms");
const WAITS: [(&str, &str); 3] = [RECOVERY, WINDOW, RTO];

const ALL: [Taking; 7] = [
    Taking { cc: "powertcp", sets: &[RECOVERY, WINDOW, RTO, ("transport.powertcp.per_path", "true")] },
    Taking { cc: "hpcc", sets: &[RECOVERY, WINDOW, RTO, ("transport.hpcc.per_path", "true")] },
    Taking { cc: "dcqcn", sets: &WAITS },
    Taking { cc: "timely", sets: &WAITS },
    Taking { cc: "dctcp", sets: &WAITS },
    Taking { cc: "swift", sets: &WAITS },
    Taking { cc: "homa", sets: &[RTO, ("switch.pfc", "false"), ("switch.dt_alpha", "unlimited")] },
];

fn at(load: u32, way: &str) -> String {
    format!("{load} %, {way}")
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    for load in LOADS {
        let (share, us) =
            ((f64::from(load) / 100.0).to_string(), 1_000 * ARRIVALS / load / if scale.quick { 8 } else { 1 });
        let stop = format!("{us}us");
        for way in WAYS {
            for Taking { cc, sets } in &ALL {
                let mut all = vec![
                    ("traffic.0.load", share.as_str()),
                    ("traffic.0.stop", &stop),
                    ("traffic.1.stop", &stop),
                    ("routing.balance", way),
                ];
                all.extend(*sets);
                runs.extend(
                    scale.seeds.iter().map(|&seed| Run::of(&at(load, way), SCENARIO, cc, &all, read).seeded(seed)),
                );
            }
        }
    }
    runs
}

fn read(record: &Record) -> Point {
    let mut point = Point::of([("unfinished", record.totals.flows_unfinished as f64)]);
    for (class, above, up_to) in CLASSES {
        let which = |group, bytes| group == 0 && above < bytes && bytes <= up_to;
        point.numbers.extend(shootout::slowdowns(record, class, which));
    }
    point
}

fn panels(points: &Points) -> Vec<Panel> {
    let labels = CLASSES.map(|(class, ..)| class);
    let panel = |load: u32, way: &str| {
        let curve = |taking: &Taking| shootout::curve_by_size(points, &at(load, way), taking.cc, "p99");
        let y = Axis::new("slowdown").logarithmic().showing(0.9, 2.0);
        let title = format!("{load} %, {}: p99 by size", if way == "ecmp" { "ECMP" } else { "sprayed" });
        curves::panel(&title, words("flow size", &labels), y, ALL.iter().map(curve).collect())
    };
    LOADS.into_iter().flat_map(|load| WAYS.map(|way| panel(load, way))).collect()
}

/// Returns our own questions: the part of the tail that is gone with collisions. No paper says how much it is.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for load in LOADS {
        for taking in &ALL {
            for (id, class) in [("small", SMALL), ("large", LARGE)] {
                let of = |way: &str| points.values(&at(load, way), taking.cc, &key(class, "p99"));
                let pairs = of("ecmp").into_iter().zip(of("spray"));
                let shares = pairs.map(|(ecmp, spray)| 100.0 * (1.0 - spray / ecmp)).collect();
                let id = format!("{id}-{load}-{}", taking.cc);
                let sentence = format!(
                    "ours: web search at {load} %, {}: part of the p99 slowdown of flows {class} that is gone with spraying",
                    taking.cc
                );
                claims.push(Claim::mean(&id, &sentence, Rule::Words, "%", shares));
            }
            for way in WAYS {
                let id = format!("unfinished-{load}-{way}-{}", taking.cc);
                let sentence = format!("ours: web search at {load} %, {way}, {}: flows left unfinished", taking.cc);
                let values = points.values(&at(load, way), taking.cc, "unfinished");
                claims.push(Claim::mean(&id, &sentence, Rule::AtMost(0.0), "", values));
            }
        }
    }
    claims
}
