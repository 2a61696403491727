//! The common part of Figures 5 to 7: the traffic of the allocator as a share of the capacity of all servers' links.
//!
//! The paper has no signs of life, and does not say whether acknowledgments count. So the claims are about packets with
//! updates, and all traffic is drawn beside them.

use super::{CACHE, FLOWTUNE, HADOOP, HOST_BPS, Sizes, WEB};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::Point;
use crate::record::{Record, seconds};

const SCENARIO: &str = include_str!("../../scenarios/flowtune-web.toml");

/// Flow sizes with the paper's numbers for them.
pub struct Said {
    pub sizes: Sizes,
    /// The algorithm whose look the line has.
    pub look: &'static str,
    /// Largest share of the network's capacity that updates take, in % (Figure 5).
    pub most: f64,
    /// Share of it that a threshold of 0.05 saves (Figure 6).
    pub saved: f64,
}

pub const SAID: [Said; 3] = [
    Said { sizes: WEB, look: "powertcp", most: 1.13, saved: 0.33 },
    Said { sizes: CACHE, look: "dcqcn", most: 0.57, saved: 0.64 },
    Said { sizes: HADOOP, look: "hpcc", most: 0.17, saved: 0.69 },
];

/// Returns the time for which flows arrive.
pub fn arrivals(scale: &Scale) -> &'static str {
    if scale.quick { "2ms" } else { "10ms" }
}

/// Returns runs of Flowtune, one run per seed, that stop when arrivals do.
pub fn runs(scale: &Scale, name: &str, until: &str, racks: u32, sets: &[(&str, &str)]) -> Vec<Run> {
    let more = [("traffic.0.stop", until), ("duration", until), ("probe.0.every", "1ms")];
    let sets: Vec<(&str, &str)> = sets.iter().copied().chain(more).collect();
    let run = |&seed: &u64| {
        FLOWTUNE.run(name, SCENARIO, &sets, move |record| read(record, 16.0 * f64::from(racks))).seeded(seed)
    };
    scale.seeds.iter().map(run).collect()
}

fn read(record: &Record, servers: f64) -> Point {
    let told = record.totals.allocator;
    let capacity = servers * HOST_BPS / 8.0 * seconds(record.totals.end);
    let percent = |bytes: u64| 100.0 * bytes as f64 / capacity;
    let acks = told.from_allocator_ack_bytes;
    Point::of([
        ("from", percent(told.from_allocator_bytes)),
        ("from data", percent(told.from_allocator_bytes - acks - told.sign_of_life_bytes)),
        ("from acks", percent(acks)),
        ("from alive", percent(told.sign_of_life_bytes)),
        ("to", percent(told.to_allocator_bytes)),
        ("to data", percent(told.to_allocator_bytes - told.to_allocator_ack_bytes)),
        ("updates", told.updates as f64),
        ("updates per flowlet", told.updates as f64 / told.starts as f64),
    ])
}
