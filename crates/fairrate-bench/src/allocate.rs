//! `bench --job allocate`: an iteration of Flowtune's allocator, NED and F-NORM together, in the networks of the
//! Flowtune paper's section 6.1, and for comparison, as in the paper, Fastpass's arbiter.

use std::hint::black_box;

use fairrate_allocate::{Aggregation, Clos, Flow, FlowKey, Instructions, Link, LinkId, RateEngine, RealTime, max_min};
use fairrate_units::Rate;
use serde::Serialize;

use crate::flowtune_networks::{GAMMA, LINK_BPS, Network, TABLE, blocks_for};
use crate::{aligned, fastpass, time_us};

/// Number of iterations before rates are compared. Both engines have settled by then.
const ITERATIONS: u32 = 300;

/// The explanation of a table's columns.
pub const LEGEND: &str = "\
us: an iteration, F-NORM included; Fastpass: a batch of timeslots with the requests before it.
ns each: time of all threads for a flow; Fastpass: for a packet of 1,500 B.
Tb/s/core: nodes x 40 Gb/s / threads, as the Flowtune paper counts, whatever the iteration's time; Fastpass: packets
allocated in a second of one core. Papers: Flowtune 3.84 (4 cores, 8.29 us) and 2.88 (64 cores, 30.71 us), Fastpass 0.28
(2.2 Tb/s on 8 cores).
";

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Numbers of threads, each of which has its rows.
    pub threads: Vec<usize>,
    /// Number of times that each row is timed.
    pub runs: usize,
}

/// The result of a measurement of the allocator.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the job.
    pub job: &'static str,
    /// The network, or the work.
    pub name: String,
    /// Number of servers of the network.
    pub nodes: u32,
    /// Number of its links.
    pub links: u32,
    /// Number of flows, where there are any.
    pub flows: Option<u32>,
    /// Number of blocks of the network; the number of FlowBlocks is its square.
    pub blocks: Option<u32>,
    /// Number of timeslots allocated at a time.
    pub batch: Option<u32>,
    /// Number of threads.
    pub threads: u32,
    /// Time of an iteration, or of a batch.
    pub us_median: f64,
    /// The shortest time.
    pub us_min: f64,
    /// The longest time.
    pub us_max: f64,
    /// Time of all threads together, per flow.
    pub ns_per_flow_median: Option<f64>,
    /// Time per packet, where packets are allocated.
    pub ns_per_packet_median: Option<f64>,
    /// Traffic that a thread allocates, in terabits per second.
    pub tbps_per_core: Option<f64>,
    /// The largest relative difference from rates in double precision.
    pub largest_error: Option<f64>,
}

/// The construction of a network's rows.
trait Rows {
    /// Returns a row of a measurement.
    fn row(&self, name: String, n_flows: u32, blocks_and_threads: [u32; 2], times_us: [f64; 3]) -> Row;
    /// Returns the traffic that a core allocates by the paper's count: the rate of all servers' links, whatever the
    /// time of an iteration.
    fn tbps_per_core(&self, n_threads: usize) -> f64;
}

impl Rows for Network {
    fn row(&self, name: String, n_flows: u32, [n_blocks, n_threads]: [u32; 2], times_us: [f64; 3]) -> Row {
        let [us_median, us_min, us_max] = times_us;
        let ns_per_flow = us_median * 1e3 * f64::from(n_threads) / f64::from(n_flows);
        Row {
            job: "allocate",
            name,
            nodes: self.clos.n_servers(),
            links: self.clos.n_links(),
            flows: Some(n_flows),
            blocks: Some(n_blocks),
            batch: None,
            threads: n_threads,
            us_median,
            us_min,
            us_max,
            ns_per_flow_median: (0 < n_flows).then_some(ns_per_flow),
            ns_per_packet_median: None,
            tbps_per_core: None,
            largest_error: None,
        }
    }

    fn tbps_per_core(&self, n_threads: usize) -> f64 {
        f64::from(self.clos.n_servers()) * LINK_BPS / 1e12 / n_threads as f64
    }
}

/// Returns all rows: the table with every number of threads and in double precision, three tiers, the same work with
/// fewer instructions, any links, arriving and departing flows, exact max-min rates, aggregation alone, and Fastpass.
#[must_use]
pub fn rows(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for row in TABLE {
        rows.extend(case(&Network::two_tiers(row.nodes, row.flows), settings));
    }
    rows.extend(case(&Network::three_tiers(16_384), settings));
    let first = Network::two_tiers(TABLE[0].nodes, TABLE[0].flows);
    rows.extend(instructions(&first, settings));
    rows.extend(general(&first, settings));
    rows.push(churn(&first, settings));
    rows.push(exact(&first, settings));
    rows.extend(aggregation(&Network::two_tiers(TABLE[6].nodes, 0), settings));
    rows.extend(fastpass::rows(settings));
    rows
}

/// Measures a network with every number of threads, and in double precision.
fn case(case: &Network, settings: &Settings) -> Vec<Row> {
    let n_flows = case.paths.len() as u32;
    let mut plain = Plain::new(&case.clos, &case.paths);
    (0..ITERATIONS).for_each(|_| plain.iterate());
    let expected = plain.normalised.clone();
    let mut rows = Vec::new();
    for &n_threads in &settings.threads {
        let n_blocks = blocks_for(n_threads);
        let mut engine = case.engine(n_blocks, n_threads, Aggregation::Diagonals);
        let keys = case.add_flows(&mut engine);
        (0..ITERATIONS).for_each(|_| engine.iterate());
        let error = |(key, rate): (&FlowKey, &f64)| (engine.rate_bps(*key) / LINK_BPS / rate - 1.0).abs();
        let largest_error = keys.iter().zip(&expected).map(error).fold(0.0, f64::max);
        assert!(largest_error < 1e-3, "rates are wrong by {largest_error}, relative to them");
        let times_us = time_us(settings.runs, || engine.iterate());
        let row = case.row(case.name.to_owned(), n_flows, [n_blocks, n_threads as u32], times_us);
        rows.push(Row {
            tbps_per_core: Some(case.tbps_per_core(n_threads)),
            largest_error: Some(largest_error),
            ..row
        });
    }
    let times_us = time_us(settings.runs, || plain.iterate());
    let row = case.row(format!("{}, plain f64", case.name), n_flows, [1, 1], times_us);
    rows.push(Row { tbps_per_core: Some(case.tbps_per_core(1)), ..row });
    rows
}

fn instructions(case: &Network, settings: &Settings) -> Vec<Row> {
    let all = [Instructions::Portable, Instructions::Avx2, Instructions::Avx512];
    let row = |most: Instructions| {
        let mut engine = case.engine(1, 1, Aggregation::Slices).at_most(most);
        case.add_flows(&mut engine);
        (engine.instructions() == most).then(|| {
            let times_us = time_us(settings.runs, || engine.iterate());
            case.row(format!("{most:?}"), case.paths.len() as u32, [1, 1], times_us)
        })
    };
    all.into_iter().filter_map(row).collect()
}

/// Measures the engine for any links: with all flows, a tenth and a hundredth of them.
fn general(case: &Network, settings: &Settings) -> Vec<Row> {
    let row = |n_flows: usize| {
        let mut engine = RealTime::general(&case.clos.capacities_bps(), LINK_BPS, GAMMA);
        for path in &case.paths[..n_flows] {
            engine.add(path, 1.0, f64::INFINITY);
        }
        let times_us = time_us(settings.runs, || engine.iterate());
        case.row("any links".to_owned(), n_flows as u32, [1, 1], times_us)
    };
    [case.paths.len(), case.paths.len() / 10, case.paths.len() / 100].map(row).into()
}

/// Measures iterations in each of which a hundredth of the flows end and as many begin.
fn churn(case: &Network, settings: &Settings) -> Row {
    let mut engine = case.engine(1, 1, Aggregation::Slices);
    let mut keys = case.add_flows(&mut engine);
    let mut next = 0;
    let times_us = time_us(settings.runs, || {
        for _ in 0..case.paths.len() / 100 {
            engine.remove(keys[next]);
            keys[next] = engine.add(&case.paths[next], 1.0, f64::INFINITY);
            next = (next + 1) % keys.len();
        }
        engine.iterate();
    });
    case.row("1 in 100 replaced".to_owned(), case.paths.len() as u32, [1, 1], times_us)
}

/// Measures the exact max-min rates of all flows, from nothing.
fn exact(case: &Network, settings: &Settings) -> Row {
    let link = |bps: f64| Link::new("", Rate::from_bps(bps as u64));
    let network = fairrate_allocate::Network {
        links: case.clos.capacities_bps().into_iter().map(link).collect(),
        flows: case.paths.iter().map(|path| Flow::new("", path.clone())).collect(),
    };
    let times_us = time_us(settings.runs, || _ = black_box(max_min(black_box(&network))));
    case.row("exact max-min".to_owned(), case.paths.len() as u32, [1, 1], times_us)
}

/// Measures iterations without flows: the remaining work is aggregation, the price update, and the distribution of
/// prices.
fn aggregation(case: &Network, settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for aggregation in [Aggregation::Diagonals, Aggregation::Slices] {
        for n_blocks in [2, 4, 8, 16] {
            for &n_threads in settings.threads.iter().filter(|&&n| n <= (n_blocks * n_blocks) as usize) {
                let mut engine = case.engine(n_blocks, n_threads, aggregation);
                let times_us = time_us(settings.runs, || engine.iterate());
                rows.push(case.row(format!("{aggregation:?} alone"), 0, [n_blocks, n_threads as u32], times_us));
            }
        }
    }
    rows
}

/// Returns the rows in columns.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let titles = [
        "name",
        "nodes",
        "flows",
        "blocks",
        "batch",
        "threads",
        "median us",
        "min",
        "max",
        "ns each",
        "Tb/s/core",
        "error",
    ];
    let texts = rows.iter().map(|row| {
        let count = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let optional = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), text);
        let hundredths = |value: f64| format!("{value:.2}");
        [
            row.name.clone(),
            row.nodes.to_string(),
            count(row.flows),
            count(row.blocks),
            count(row.batch),
            row.threads.to_string(),
            hundredths(row.us_median),
            hundredths(row.us_min),
            hundredths(row.us_max),
            optional(row.ns_per_flow_median.or(row.ns_per_packet_median), hundredths),
            optional(row.tbps_per_core, hundredths),
            optional(row.largest_error, |error| format!("{error:.0e}")),
        ]
    });
    aligned(&titles, texts)
}

/// NED and F-NORM in double precision, in the plainest form: rates, prices, normalised rates.
struct Plain {
    paths: Vec<Vec<usize>>,
    capacities: Vec<f64>,
    prices: Vec<f64>,
    loads: Vec<f64>,
    slopes: Vec<f64>,
    rates: Vec<f64>,
    normalised: Vec<f64>,
}

impl Plain {
    fn new(clos: &Clos, paths: &[Vec<LinkId>]) -> Self {
        let capacities: Vec<f64> = clos.capacities_bps().into_iter().map(|bps| bps / LINK_BPS).collect();
        let n_links = capacities.len();
        Self {
            paths: paths.iter().map(|path| path.iter().map(|link| link.index()).collect()).collect(),
            capacities,
            prices: vec![1.0; n_links],
            loads: vec![0.0; n_links],
            slopes: vec![0.0; n_links],
            rates: vec![0.0; paths.len()],
            normalised: vec![0.0; paths.len()],
        }
    }

    fn iterate(&mut self) {
        self.loads.fill(0.0);
        self.slopes.fill(0.0);
        for (path, rate) in self.paths.iter().zip(&mut self.rates) {
            let price: f64 = path.iter().map(|&link| self.prices[link]).sum();
            // Rates are at most twice the links' capacity, which is 1.
            *rate = 1.0 / price.max(0.5);
            for &link in path {
                self.loads[link] += *rate;
                self.slopes[link] += *rate * *rate;
            }
        }
        for link in 0..self.prices.len() {
            if 0.0 < self.slopes[link] {
                let over = self.loads[link] - self.capacities[link];
                self.prices[link] = (self.prices[link] + GAMMA * over / self.slopes[link]).max(0.0);
            }
        }
        for ((path, rate), normalised) in self.paths.iter().zip(&self.rates).zip(&mut self.normalised) {
            let ratio = path.iter().map(|&link| self.loads[link] / self.capacities[link]).fold(0.0, f64::max);
            *normalised = rate / ratio;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_computes_the_right_rates() {
        let settings = Settings { threads: vec![1, 3], runs: 1 };
        let three_tiers = Clos { racks: 1, ..Network::three_tiers(0).clos };
        for case in [Network::two_tiers(64, 200), Network::new("three tiers", three_tiers, 200)] {
            let rows = super::case(&case, &settings);
            assert_eq!(
                rows.iter().map(|row| (row.threads, row.blocks)).collect::<Vec<_>>(),
                [(1, Some(1)), (3, Some(2)), (1, Some(1))]
            );
            assert!(rows[..2].iter().all(|row| row.largest_error.is_some_and(|error| error < 1e-3)));
            // Servers of 40 Gb/s: 64 are 2.56 Tb/s.
            assert_eq!(rows[0].tbps_per_core, Some(f64::from(rows[0].nodes) * 0.04));
        }
    }

    #[test]
    fn other_rows_are_named_by_what_they_do() {
        let settings = Settings { threads: vec![1], runs: 1 };
        let small = Network::two_tiers(256, 300);
        assert!(instructions(&small, &settings).iter().any(|row| row.name == "Portable"));
        assert_eq!(general(&small, &settings).iter().map(|row| row.flows).collect::<Vec<_>>(), [300, 30, 3].map(Some));
        assert_eq!(churn(&small, &settings).flows, Some(300));
        assert_eq!(exact(&small, &settings).flows, Some(300));
        assert_eq!(aggregation(&small, &settings).len(), 2 * 4);
    }

    #[test]
    fn columns_are_aligned() {
        let row = Row {
            job: "allocate",
            name: "table".to_owned(),
            nodes: 384,
            links: 1_536,
            flows: Some(3_072),
            blocks: Some(1),
            batch: None,
            threads: 1,
            us_median: 6.0,
            us_min: 5.5,
            us_max: 123.456,
            ns_per_flow_median: Some(1.9531),
            ns_per_packet_median: None,
            tbps_per_core: Some(15.36),
            largest_error: None,
        };
        let expected = "name   nodes  flows  blocks  batch  threads  median us   min     max  ns each  Tb/s/core  error\n\
                        table    384   3072       1      -        1       6.00  5.50  123.46     1.95      15.36      -\n";
        assert_eq!(table(&[row]), expected);
    }
}
