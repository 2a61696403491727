//! Four long flows to one receiver that start and end one by one: their fairness, and the time they take to reach it.

use fairrate_report::stats;

use super::contenders::Contender;
use crate::experiment::Run;
use crate::figure::Scale;
use crate::moments::mean_of_series;
use crate::points::Point;
use crate::record::{Record, ms_from, settle};

/// The scenario: PowerTCP's Figure 5, with probes at the senders, since with drops an endless flow may wait for its end
/// until gaps are repaired.
const SCENARIO: &str = concat!(
    include_str!("../../scenarios/fairness.toml"),
    "\n[[probe]]\nqueues = [\"h0->tor0\", \"h1->tor0\", \"h2->tor0\", \"h3->tor0\"]\nevery = \"100us\"\n"
);
/// Name of the runs.
pub const NAME: &str = "four flows";
const SENDERS: [&str; 4] = ["h0", "h1", "h2", "h3"];
/// Time from one flow's start to the next one's, in ms; the first flow starts at 1 ms.
pub const INTERVAL_MS: f64 = 10.0;
/// Numbers of flows after each arrival.
pub const COUNTS: [usize; 3] = [2, 3, 4];
const LINK_GBPS: f64 = 25.0;
/// Largest relative distance of a flow from its fair share.
const NEAR: f64 = 0.1;

pub fn runs(contenders: &[Contender], scale: &Scale) -> Vec<Run> {
    let run =
        |contender: &Contender, seed: u64| Run::of(NAME, SCENARIO, contender.cc, &contender.sets(), read).seeded(seed);
    contenders.iter().flat_map(|contender| scale.seeds.iter().map(move |&seed| run(contender, seed))).collect()
}

/// Reads for each number of flows Jain's index of their sending rates, from 1 ms after the last arrival; and the time
/// until all are within a tenth of their fair share and stay there until the next arrival or departure.
fn read(record: &Record) -> Point {
    let sent = SENDERS.map(|host| record.port(host, "tor0").throughput_gbps(1));
    let mut point = Point::default();
    for count in COUNTS {
        let (begin_ms, there) = (begin_ms(count), &sent[..count]);
        let shares: Vec<f64> = there
            .iter()
            .map(|of| mean_of_series(&ms_from(of, 0.0, (begin_ms + 1.0, begin_ms + INTERVAL_MS - 1.0))))
            .collect();
        point.numbers.extend(stats::jain(&shares).map(|jain| (jain_of(count), jain)));
        point.numbers.insert(time_of(count), time_to_share_ms(there));
    }
    point
}

/// Returns the name of the index with `count` flows.
pub fn jain_of(count: usize) -> String {
    format!("jain {count}")
}

/// Returns the name of the time with `count` flows, in ms.
pub fn time_of(count: usize) -> String {
    format!("time {count}")
}

/// Returns the time at which there are `count` flows for the first time.
fn begin_ms(count: usize) -> f64 {
    1.0 + INTERVAL_MS * (count - 1) as f64
}

/// Returns the time in ms until all flows have their share; the whole interval if some flow does not at its end.
fn time_to_share_ms(sent: &[Vec<(f64, f64)>]) -> f64 {
    let begin_s = begin_ms(sent.len()) * 1e-3;
    // The last sample is from before the next arrival. The rate sent is known at the end of each tenth of a
    // millisecond.
    let range = (begin_s + 1e-9, begin_s + (INTERVAL_MS - 0.05) * 1e-3);
    let fair = LINK_GBPS / sent.len() as f64;
    let times = sent.iter().map(|of| settle(of, range, fair, NEAR) * 1e3);
    times.fold(0.0, f64::max).min(INTERVAL_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_flow_decides_and_nobody_waits_longer_than_the_interval() {
        // Two flows from 11 ms on, sampled each ms: the second one is at its share after 3 ms.
        let old: Vec<(f64, f64)> = (1..=20).map(|ms| (f64::from(ms) * 1e-3, 12.5)).collect();
        let new: Vec<(f64, f64)> = old.iter().map(|&(t, x)| (t, if t < 13.5e-3 { 5.0 } else { x })).collect();
        let never: Vec<(f64, f64)> = old.iter().map(|&(t, x)| (t, 0.8 * x)).collect();
        assert!((time_to_share_ms(&[old.clone(), new]) - 3.0).abs() < 1e-6);
        assert_eq!(time_to_share_ms(&[old, never]), INTERVAL_MS);
    }
}
