//! Figures 9 to 11: HOMA at degrees of overcommitment from 1 to 6 (appendix C). The paper's text says that 1 "performed
//! best across different overcommitment levels".

use fairrate_report::panel::{Axis, Panel};

use super::{fig4, fig5};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};

pub const FIG9: Figure = Figure {
    id: "powertcp/fig9",
    title: "HOMA at six degrees of overcommitment: an incast of 255:1",
    kind: Kind::Simulation,
    quick_s: 5,
    runs: |_| incasts(1),
    panels,
    claims,
};

pub const FIG10: Figure = Figure {
    id: "powertcp/fig10",
    title: "HOMA at six degrees of overcommitment: an incast of 10:1",
    kind: Kind::Simulation,
    quick_s: 5,
    runs: |_| incasts(0),
    panels,
    claims,
};

pub const FIG11: Figure = Figure {
    id: "powertcp/fig11",
    title: "HOMA at six degrees of overcommitment: four flows come and go",
    kind: Kind::Simulation,
    quick_s: 5,
    runs: fairness,
    panels: fairness_panels,
    claims: fairness_claims,
};

/// The scenario of Figure 5, with probes at the senders. With drops an endless message waits for its end until gaps are
/// repaired, so that bytes delivered in order do not show its share.
const FAIRNESS: &str = concat!(
    include_str!("../../scenarios/fairness.toml"),
    "\n[[probe]]\nqueues = [\"h0->tor0\", \"h1->tor0\", \"h2->tor0\", \"h3->tor0\"]\nevery = \"100us\"\n"
);
const LEVELS: [u32; 6] = [1, 2, 3, 4, 5, 6];
/// Algorithms whose looks the lines of levels have.
const LOOKS: [&str; 6] = ["powertcp", "theta-powertcp", "hpcc", "timely", "dcqcn", "dctcp"];

fn line(level: u32) -> String {
    format!("K = {level}")
}

/// Returns a run at a level. HOMA's classes are not for pauses.
fn at_level(name: &str, toml: &'static str, level: u32, read: fn(&Record) -> Point) -> Run {
    let level_text = level.to_string();
    let sets = [("transport.homa.overcommitment", level_text.as_str()), ("switch.pfc", "false")];
    Run::of(name, toml, "homa", &sets, read).called(&line(level))
}

fn incasts(row: usize) -> Vec<Run> {
    LEVELS.map(|level| at_level("incast", fig4::ROWS[row].1, level, fig4::read)).into()
}

fn panels(points: &Points) -> Vec<Panel> {
    let axis = || Axis { link: "time", ..Axis::new("time since the burst (ms)") };
    let lines = |what: &str| {
        let of = |(level, look)| {
            let series = points.series("incast", &line(level), what);
            Line { name: line(level), ..Line::of(look, &ms_from(series, 1e-3, (-0.25, 3.0))) }
        };
        LEVELS.into_iter().zip(LOOKS).map(of).collect()
    };
    let throughput = Axis::new("throughput (Gb/s)").showing(0.0, 26.0);
    vec![
        panel("throughput at the receiver", axis(), throughput, lines("throughput")),
        panel("its queue", axis(), Axis::new("queue (KB)"), lines("queue")),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |level: u32, what: &str| points.mean("incast", &line(level), what);
    let least = |what: &str| {
        let first = of(1, what)?;
        LEVELS[1..]
            .iter()
            .map(|&level| Some(of(level, what)? / first))
            .try_fold(f64::MAX, |least, x| Some(least.min(x?)))
    };
    // The paper's best level is not about queues, and a queue of K - 1 times RTTbytes follows from the scheme.
    let best = "1 is the best level: the least queue of the others over its own, in the last millisecond";
    let mut claims = vec![Claim::exact("best", best, Rule::Words, "", least("last"))];
    for level in LEVELS {
        let (peak, last) =
            (format!("peak of the queue with K = {level}"), format!("its mean in the last ms with K = {level}"));
        claims.push(Claim::exact(&format!("peak-{level}"), &peak, Rule::Words, "KB", of(level, "peak")));
        claims.push(Claim::exact(&format!("last-{level}"), &last, Rule::Words, "KB", of(level, "last")));
    }
    claims
}

fn fairness(_: &Scale) -> Vec<Run> {
    let sent = |record: &Record| {
        fig5::of_flows(["h0", "h1", "h2", "h3"].map(|host| record.port(host, "tor0").throughput_gbps(1)).into())
    };
    LEVELS.map(|level| at_level("fairness", FAIRNESS, level, sent)).into()
}

fn fairness_panels(points: &Points) -> Vec<Panel> {
    LEVELS.map(|level| fig5::draw_flows(points, &line(level), "sent (Gb/s)")).into()
}

fn fairness_claims(points: &Points) -> Vec<Claim> {
    let claim = |level: u32| {
        let sentence = format!("least Jain index of what is sent with K = {level}");
        let jain = points.mean("fairness", &line(level), "jain");
        Claim::exact(&format!("jain-{level}"), &sentence, Rule::Words, "", jain)
    };
    LEVELS.map(claim).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_run_of_its_own() {
        let labels: Vec<String> = (FIG9.runs)(&Scale::new(true, vec![1])).iter().map(Run::label).collect();
        assert_eq!((labels.len(), labels[0].as_str(), labels[5].as_str()), (6, "incast K = 1", "incast K = 6"));
    }
}
