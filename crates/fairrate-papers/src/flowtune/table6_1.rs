//! The table of section 6.1: the time of an allocator's iteration, by nodes, flows and cores. It measures this machine
//! during the run, so its numbers are not kept.

use std::thread;

use fairrate_allocate::{Aggregation, RateEngine};
use fairrate_bench::fastpass_arbiter as arbiter;
use fairrate_bench::flowtune_networks::{LINK_BPS, Network, TABLE, TableRow, blocks_for};
use fairrate_bench::timing::times_us;
use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "flowtune/table6.1",
    title: "An iteration of the allocator on this machine, beside the paper's",
    kind: Kind::Measurement,
    quick_s: 5,
    runs,
    panels,
    claims,
};

const NAME: &str = "iteration";
const LINE: &str = "this machine";
/// Numbers of threads; those above the machine's number of cores are left out.
const THREADS: [usize; 2] = [1, 2];
/// Number of iterations until rates have settled, and in a quick figure.
const SETTLING: u32 = 300;
const SETTLING_QUICKLY: u32 = 30;
/// Number of times measured for each row.
const TIMES: usize = 31;
/// Our Fastpass arbiter with paths, in Tb/s of a core: number of hosts and timeslots of a batch.
const FASTPASS: &str = "fastpass";
const FASTPASS_HOSTS: u16 = 512;
const FASTPASS_BATCH: u32 = 64;
/// The row whose iterations without flows are measured too: what is left is the exchange between threads.
const WITHOUT_FLOWS: TableRow = TABLE[6];

/// Returns a single run, since two at the same time would compete for the cores.
fn runs(scale: &Scale) -> Vec<Run> {
    let settling = if scale.quick { SETTLING_QUICKLY } else { SETTLING };
    vec![Run::calculated(NAME, LINE, move || measure(settling))]
}

fn measure(settling: u32) -> Point {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut point = Point::default();
    for threads in THREADS.into_iter().filter(|&threads| threads <= cores) {
        for row in &TABLE {
            point = point.with(&key(row, threads), numbered(iterations_us(row, threads, settling)));
        }
        let without_flows = TableRow { flows: 0, ..WITHOUT_FLOWS };
        point = point.with(&alone(threads), numbered(iterations_us(&without_flows, threads, settling)));
    }
    let [_, with_paths] = arbiter::measure(&arbiter::network(FASTPASS_HOSTS, FASTPASS_BATCH), TIMES);
    point.with(FASTPASS, vec![(0.0, with_paths.tbps())])
}

/// Returns the microseconds of iterations after some for `settling`, each an average over half a millisecond.
fn iterations_us(row: &TableRow, threads: usize, settling: u32) -> Vec<f64> {
    let network = Network::two_tiers(row.nodes, row.flows);
    let mut engine = network.engine(blocks_for(threads), threads, Aggregation::Diagonals);
    network.add_flows(&mut engine);
    (0..settling).for_each(|_| engine.iterate());
    times_us(TIMES, || engine.iterate())
}

fn numbered(values: Vec<f64>) -> Vec<(f64, f64)> {
    (0..).map(f64::from).zip(values).collect()
}

fn key(row: &TableRow, threads: usize) -> String {
    format!("{} {} {threads}", row.nodes, row.flows)
}

/// Returns the name of iterations without flows.
fn alone(threads: usize) -> String {
    format!("without flows {threads}")
}

/// Returns a quantile of the times of a row. Other work of the machine lengthens some of them, so that means are not
/// useful.
fn quantile(points: &Points, key: &str, p: f64) -> Option<f64> {
    stats::percentile(&stats::sorted(points.series(NAME, LINE, key).iter().map(|time| time.1)), p)
}

fn median(points: &Points, key: &str) -> Option<f64> {
    quantile(points, key, 0.5)
}

fn here(threads: usize) -> &'static str {
    if threads == 1 { "here, one thread" } else { "here, two threads" }
}

fn panels(points: &Points) -> Vec<Panel> {
    let labels = TABLE.map(|row| format!("{}/{}", row.nodes, row.flows));
    let labels = labels.each_ref().map(String::as_str);
    let draw = |title: &str, y: &str, of: fn(f64, f64) -> f64| {
        let x = || (0..).map(f64::from);
        let of_threads = |threads: usize| {
            let at = |row: &TableRow| {
                median(points, &key(row, threads)).map(|us| of(us, threads as f64)).into_iter().collect()
            };
            let cc = if threads == 1 { "powertcp" } else { "dcqcn" };
            Curve { name: here(threads).to_owned(), cc, values: x().zip(TABLE.iter().map(at)).collect() }
        };
        let paper = TABLE.iter().map(|row| vec![of(row.us, f64::from(row.cores))]);
        let paper = Curve {
            name: "paper, 4, 16 and then 64 cores".to_owned(),
            cc: "line-rate",
            values: x().zip(paper).collect(),
        };
        let curves = THREADS.map(of_threads).into_iter().chain([paper]).collect();
        let mut panel = curves::panel(title, words("nodes/flows", &labels), Axis::new(y).logarithmic(), curves);
        for threads in THREADS {
            let ends = |p: f64| {
                let end = |row: &TableRow| quantile(points, &key(row, threads), p).map(|us| of(us, threads as f64));
                TABLE.iter().filter_map(end).collect()
            };
            if let Some(line) = panel.series.iter_mut().find(|line| line.key == here(threads)) {
                (line.low, line.high) = (ends(0.25), ends(0.75));
            }
        }
        panel
    };
    vec![
        draw("an iteration: median and quartiles", "us", |us, _| us),
        draw("the same times cores", "us of all cores together", |us, cores| us * cores),
    ]
}

/// Returns the claims with our medians. They have no rule, since the paper's numbers are of its own machine.
fn claims(points: &Points) -> Vec<Claim> {
    let of_row = |row: &TableRow, threads: usize| {
        let id = format!("{}-{}-{threads}", row.nodes, row.flows);
        let sentence = format!(
            "{} nodes, {} flows, {}; paper: {} us on {} cores",
            row.nodes,
            row.flows,
            here(threads),
            row.us,
            row.cores
        );
        Claim::exact(&id, &sentence, Rule::Words, "us", median(points, &key(row, threads)))
    };
    let rows = THREADS.into_iter().flat_map(|threads| TABLE.iter().map(move |row| of_row(row, threads)));
    rows.chain(scaling(points)).chain([beside_fastpass(points)]).collect()
}

/// Returns the claim of "10.4x more throughput per core" than Fastpass, both sides ours and of this machine. The text
/// has 184 Tb/s of 64 cores in 30.71 us. One thread takes longer here: as many times as longer are counted as cores.
fn beside_fastpass(points: &Points) -> Claim {
    let row = &TABLE[6];
    let ratio = || {
        let cores = median(points, &key(row, 1))? / row.us;
        Some(f64::from(row.nodes) * LINK_BPS / 1e12 / cores / median(points, FASTPASS)?)
    };
    let sentence =
        "\"10.4x more throughput per core\" than Fastpass (4608 nodes in 30.71 us; one thread, our Fastpass)";
    Claim::exact("beside-fastpass", sentence, Rule::AtLeastTimes(10.4), "", ratio())
}

/// Returns the text's statements about the growth of times, with those of one or two threads here.
fn scaling(points: &Points) -> [Claim; 3] {
    let ratio = |over: &str, under: &str| Some(median(points, over)? / median(points, under)?);
    let claim = |id: &str, sentence: &str, ratio| Claim::exact(id, sentence, Rule::Words, "", ratio);
    [
        claim(
            "more-flows",
            "\"rows 3-5 with increasing number of flows\": four times as many, one thread; paper: 1.34 times the time",
            ratio(&key(&TABLE[4], 1), &key(&TABLE[2], 1)),
        ),
        claim(
            "more-nodes",
            "\"rows 5-7 with increasing number of endpoints\": three times as many, one thread; paper: 1.81 times the time",
            ratio(&key(&TABLE[6], 1), &key(&TABLE[4], 1)),
        ),
        claim(
            "without-flows",
            "4608 nodes, two threads: an iteration without flows over one with them; paper: \"communication took more than half\"",
            ratio(&alone(2), &key(&WITHOUT_FLOWS, 2)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_run_that_is_not_kept() {
        let runs = runs(&Scale::new(true, vec![1, 2]));
        assert_eq!(runs.len(), 1);
        assert!(matches!(runs[0].work, crate::experiment::Work::Calculation(_)));
    }

    #[test]
    fn a_row_has_as_many_times_as_are_taken() {
        let row = TableRow { nodes: 64, flows: 200, cores: 4, us: 1.0 };
        assert_eq!(iterations_us(&row, 1, SETTLING_QUICKLY).len(), TIMES);
    }
}
