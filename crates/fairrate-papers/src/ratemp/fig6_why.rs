//! The reason for XMP's higher throughput than RateMP's where hosts have 100 Gb/s: web search of Figure 6 at a load of
//! 0.8, under RateMP's marks, with one thing changed at a time. The paper has no such figure.

use fairrate_report::panel::{Axis, Panel, Series};
use fairrate_report::style::Style;

use super::claims::of_what_was_run;
use super::fabric::{Hosts, LONG, Traffic, WEBSEARCH};
use super::settings::WHY;
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig6-why",
    title: "Why XMP has more throughput than RateMP with hosts of 100 Gb/s",
    kind: Kind::Simulation,
    quick_s: 4,
    runs,
    panels,
    claims,
};

const LOAD: &str = "0.8";
const LONG_RUNS: [(&str, &str); 2] = [("ratemp", "ratemp, 4 ms of arrivals"), ("xmp:red", "xmp, 4 ms of arrivals")];

/// Returns all runs: traffic, run, and its description.
fn all() -> impl Iterator<Item = (&'static Traffic, &'static str, &'static str)> {
    let of_long = LONG_RUNS.into_iter().map(|(run, text)| (&LONG, run, text));
    WHY.into_iter().map(|(run, text)| (&WEBSEARCH, run, text)).chain(of_long)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let of_seed = |&seed: &u64| {
        let all = all().filter(|(traffic, ..)| !scale.quick || traffic.id == WEBSEARCH.id);
        all.map(move |(traffic, run, _)| traffic.run(scale, Hosts::Gbps100, LOAD, run, seed))
    };
    scale.seeds.iter().flat_map(of_seed).collect()
}

fn values(points: &Points, traffic: &Traffic, run: &str, what: &str) -> Vec<f64> {
    points.values(&traffic.run_name(Hosts::Gbps100, LOAD), run, what)
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: (f64, f64), what: &str| {
        let series = |(i, (traffic, run, text)): (usize, (&Traffic, &str, &str))| {
            let mean = |what: &str| fairrate_report::stats::mean(&values(points, traffic, run, what));
            let (x, y) = (mean("rtt")?, mean(what)?);
            let (key, name, style) = (text.to_owned(), text.to_owned(), Style::nth(i));
            Some(Series { key, name, style, marks: true, x: vec![x], y: vec![y], ..Series::default() })
        };
        let series = (0..).zip(all()).filter_map(series).collect();
        let x = Axis { link: "rtt", ..Axis::new("mean RTT (us)").showing(2.5, 5.0) };
        let y = Axis::new("mean throughput (Gb/s)").showing(y.0, y.1);
        Panel { title: title.to_owned(), x, y, series, ..Panel::default() }
    };
    vec![draw("all flows", (30.0, 55.0), "rate"), draw("flows above 100 KB", (30.0, 75.0), "large-rate")]
}

fn claims(points: &Points) -> Vec<Claim> {
    let quantities = [
        ("rate", "mean rate, all flows", "Gb/s"),
        ("small-rate", "mean rate, up to 100 KB", "Gb/s"),
        ("large-rate", "mean rate, above 100 KB", "Gb/s"),
        ("rtt", "mean RTT", "us"),
    ];
    let of_run = |(traffic, run, text): (&'static Traffic, &'static str, &'static str)| {
        quantities.map(|(what, of, unit)| {
            let (id, sentence) = (format!("{}-{run}-{what}", traffic.id), format!("{text}: {of}"));
            Claim::mean(&id, &sentence, Rule::Words, unit, values(points, traffic, run, what))
        })
    };
    of_what_was_run(all().flat_map(of_run).collect())
}
