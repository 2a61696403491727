//! What the RateMP paper states in words and numbers about Table I and Figures 4 to 8. The figures themselves have no
//! numbers in the text; a word as "slightly" has ours.

use super::fabric::{Hosts, LOADS, job_name};
use super::settings::{MULTIPATH, Marks, SINGLE_PATH, WHY};
use super::testbed::{DOWNLOADS, RUNS as TESTBED, download_name};
use crate::paper::{Claim, Claims, Measured, Says, Unit};
use crate::seeds::{Estimate, each};

/// Those that the paper has as loss-based.
const LOSSES: [&str; 2] = ["lia", "balia"];

/// All claims, in the order of the figures.
pub fn all(measured: &Measured) -> Vec<Claim> {
    let mut claims = Claims::default();
    table1(&mut claims, measured);
    fig4(&mut claims, measured);
    fig5(&mut claims, measured);
    for (hosts, marks) in Hosts::ALL.into_iter().flat_map(|hosts| Marks::ALL.map(|marks| (hosts, marks))) {
        let of = |figure, name| Fabric { claims: Claims::default(), measured, hosts, marks, figure, name };
        for (figure, name) in [("fig6-websearch", "Fig 6, web search"), ("fig6-fb-cache", "Fig 6, cache follower")] {
            claims.0.extend(fig6(of(figure, name)));
        }
        claims.0.extend(fig7(of("fig7", "Fig 7")));
        claims.0.extend(fig8(of("fig8", "Fig 8")));
    }
    why(&mut claims, measured);
    claims.0
}

fn table1(claims: &mut Claims, measured: &Measured) {
    let get = |cc: &str, what: &str| measured.get("fig4", cc, what);
    for (cc, mean, deviation) in
        [("ratemp", 236.0, 12.2), ("dctcp", 615.0, 229.0), ("balia", 7_350.0, 3_140.0), ("lia", 8_560.0, 2_750.0)]
    {
        // The steps of DCTCP and the buffer were chosen from these means.
        let ours = |says| if cc == "ratemp" { says } else { Says::Words };
        let text = format!("Table I: {cc}: mean RTT (paper: {mean} us)");
        let says = ours(Says::About(mean, 0.05));
        claims.add(format!("table1-mean-{cc}"), "fig4", text, says, Unit::Us, get(cc, "rtt_us"));
        let text = format!("Table I: {cc}: deviation of the RTT (paper: {deviation} us)");
        let says = ours(Says::About(deviation, 0.25));
        claims.add(format!("table1-deviation-{cc}"), "fig4", text, says, Unit::Us, get(cc, "deviation_us"));
    }
    let others = ["dctcp", "balia", "lia"].map(|cc| get(cc, "rtt_us"));
    let text = "Table I: mean RTT of ratemp over the next smallest (paper: at most half)";
    claims.add("table1-half", "fig4", text, Says::AtMost(0.5), Unit::Ratio, get("ratemp", "rtt_us") / least(others));
}

fn fig4(claims: &mut Claims, measured: &Measured) {
    let get = |cc: &str, what: &str| measured.get("fig4", cc, what);
    for cc in TESTBED {
        let (words, says) = match cc {
            "ratemp" => (" (paper: the optimum)", Says::About(500.0, 0.02)),
            "dctcp" | "lia" => (" (paper: low)", Says::AtMost(450.0)),
            _ => ("", Says::Words),
        };
        let text = format!("Fig 4: {cc}: rate of the flow on AB{words}");
        claims.add(format!("fig4-flow-{cc}"), "fig4", text, says, Unit::Mbps, get(cc, "flow"));
        for (what, words) in [("alone", "alone"), ("beside", "beside it"), ("after", "after it")] {
            let text = format!("Fig 4: {cc}: rate of the connection {words}");
            claims.add(format!("fig4-{what}-{cc}"), "fig4", text, Says::Words, Unit::Mbps, get(cc, what));
        }
        let text = format!("Fig 4: {cc}: until that flow has 95 % of AB");
        let says = if cc == "ratemp" { Says::AtMost(100.0) } else { Says::Words };
        claims.add(format!("fig4-leave-{cc}"), "fig4", text, says, Unit::Ms, get(cc, "leave_ms"));
        let text = format!("Fig 4: {cc}: deviation of the connection's rate over 100 ms beside it");
        let says = if cc == "ratemp" { Says::AtMost(25.0) } else { Says::Words };
        claims.add(format!("fig4-swing-{cc}"), "fig4", text, says, Unit::Mbps, get(cc, "swing"));
    }
    let value = get("balia", "flow") / most(["dctcp", "lia"].map(|cc| get(cc, "flow")));
    let text = "Fig 4: rate of the flow on AB with balia over the larger of dctcp's and lia's (paper: better)";
    claims.add("fig4-balia", "fig4", text, Says::AtLeast(1.0), Unit::Ratio, value);
    let value = get("ratemp", "after") / get("ratemp", "alone");
    let text = "Fig 4: ratemp: the connection's rate after the flow over that before";
    claims.add("fig4-back", "fig4", text, Says::About(1.0, 0.02), Unit::Ratio, value);
}

fn fig5(claims: &mut Claims, measured: &Measured) {
    for (size, _) in DOWNLOADS {
        let job = download_name(size);
        let get = |cc: &str, what: &str| measured.get(&job, cc, what);
        for cc in TESTBED.into_iter().filter(|cc| *cc != "ratemp") {
            let value = get("ratemp", "fct_ms") / get(cc, "fct_ms");
            let (words, says) = match (size, cc) {
                // The paper has neither here.
                (_, "xmp" | "olia") => ("", Says::Words),
                ("100KB", _) => (" (paper: 45 % less)", Says::AtMost(0.55)),
                _ => (" (paper: smallest)", Says::AtMost(1.0)),
            };
            let text = format!("Fig 5: {size}: mean FCT of ratemp over that of {cc}{words}");
            claims.add(format!("fig5-{size}-{cc}"), &job, text, says, Unit::Ratio, value);
        }
        let others = ["dctcp", "balia", "lia"].map(|cc| get(cc, "deviation_ms"));
        let says = if size == "1MB" { Says::Words } else { Says::AtMost(1.0) };
        let text = format!("Fig 5: {size}: deviation of ratemp's FCT over the others' smallest (paper: low)");
        let value = get("ratemp", "deviation_ms") / least(others);
        claims.add(format!("fig5-{size}-deviation"), &job, text, says, Unit::Ratio, value);
    }
}

/// A figure's numbers with one choice of marks, and what is claimed of them.
struct Fabric<'a> {
    claims: Claims,
    measured: &'a Measured,
    hosts: Hosts,
    marks: Marks,
    figure: &'static str,
    name: &'static str,
}

impl Fabric<'_> {
    fn job(&self, load: &str) -> String {
        job_name(self.figure, self.hosts, load)
    }

    fn get(&self, load: &str, cc: &str, what: &str) -> f64 {
        self.measured.get(&self.job(load), self.marks.run_of(cc), what)
    }

    /// The loads that were run.
    fn loads(&self) -> Vec<&'static str> {
        LOADS.into_iter().filter(|load| self.measured.has(&self.job(load))).collect()
    }

    fn several<const N: usize>(&self, load: &str, ccs: [&str; N], what: &str) -> [f64; N] {
        ccs.map(|cc| self.get(load, cc, what))
    }

    /// A number of RateMP over the best of all others; the interval is that of the ratio to this one, seed by seed.
    fn over_the_best(&self, load: &str, what: &str, best: fn(Vec<f64>) -> f64) -> Estimate {
        let others = || MULTIPATH.into_iter().chain(SINGLE_PATH).filter(|cc| *cc != "ratemp");
        let bound = best(others().map(|cc| self.get(load, cc, what)).collect());
        let values = |cc: &str| each(self.measured, &self.job(load), self.marks.run_of(cc), what);
        let holder = others().find(|cc| self.get(load, cc, what) == bound);
        let half = holder.map_or(f64::NAN, |cc| Estimate::of_ratios(&values("ratemp"), &values(cc)).half);
        Estimate { mean: self.get(load, "ratemp", what) / bound, half }
    }

    fn add(&mut self, what: &str, load: &str, text: &str, says: Says, unit: Unit, value: f64) {
        self.add_estimate(what, load, text, says, unit, Estimate { mean: value, half: f64::NAN });
    }

    fn add_estimate(&mut self, what: &str, load: &str, text: &str, says: Says, unit: Unit, value: Estimate) {
        let (marks, job) = (self.marks, self.job(load));
        let (figure, of) = self.figure.split_once('-').unwrap_or((self.figure, "all"));
        let (hosts, name) = match self.hosts {
            Hosts::Gbps25 => ("", ""),
            Hosts::Gbps100 => (".100G", ", hosts of 100 Gb/s"),
        };
        let id = format!("{figure}{hosts}-{what}-{}-{}-{load}", marks.id(), of.replace('-', "."));
        let text = format!("{}{name}, {load}, {}: {text}", self.name, marks.text());
        self.claims.add_estimate(id, job, text, says, unit, value);
    }

    fn ratio(&mut self, what: &str, load: &str, text: &str, says: Says, value: f64) {
        self.add(what, load, text, says, Unit::Ratio, value);
    }

    /// What the text says of RateMP in Figures 6 and 7 alike.
    fn best_rate_and_rtt(&mut self) {
        for load in self.loads() {
            let value = self.over_the_best(load, "rate", most);
            let text = "mean rate of ratemp over the highest other (paper: highest)";
            self.add_estimate("best", load, text, Says::AtLeast(1.0), Unit::Ratio, value);
            let value = self.over_the_best(load, "rtt", least);
            let text = "mean RTT of ratemp over the lowest other (paper: lowest)";
            self.add_estimate("rtt", load, text, Says::AtMost(1.0), Unit::Ratio, value);
        }
        if let [first, .., last] = self.loads()[..] {
            let text = format!("ratemp's RTT over that at {first} (paper: grows slightly; 25 % is ours)");
            let value = self.get(last, "ratemp", "rtt") / self.get(first, "ratemp", "rtt");
            self.ratio("rtt.grows", last, &text, Says::AtMost(1.25), value);
        }
    }
}

fn fig6(mut at: Fabric<'_>) -> Vec<Claim> {
    at.best_rate_and_rtt();
    for load in at.loads() {
        let (multi, single) = (at.several(load, MULTIPATH, "rate"), at.several(load, SINGLE_PATH, "rate"));
        let says = if load == "0.2" { Says::AtLeast(1.0) } else { Says::Words };
        let text = "lowest mean rate of several paths over the highest of one (paper: higher below 0.4)";
        at.ratio("paths", load, text, says, least(multi) / most(single));
        let multi = at.several(load, ["ratemp", "xmp", "lia", "balia"], "rate");
        let text = "the same without mpcc";
        at.ratio("paths.tcp", load, text, says, least(multi) / most(single));
        let text = "mean rate of xmp over the highest but ratemp's (paper: second)";
        let others = at.several(load, ["mpcc", "lia", "balia", "dctcp", "dcqcn", "bbr", "swift"], "rate");
        at.ratio("second", load, text, Says::AtLeast(1.0), at.get(load, "xmp", "rate") / most(others));
        let text = "mean RTT of ratemp (paper: around 4.5 us)";
        let value = Estimate::of(&each(at.measured, &at.job(load), "ratemp", "rtt"));
        at.add_estimate("us", load, text, Says::About(4.5, 0.1), Unit::Us, value);
        let text = "mean RTT of lia and balia, the lower, over ratemp's (paper: relatively long)";
        let losses = least(at.several(load, LOSSES, "rtt"));
        at.ratio("losses", load, text, Says::AtLeast(1.0), losses / at.get(load, "ratemp", "rtt"));
        let text = "mean utility of ratemp less the highest other, in nats";
        let others = MULTIPATH.into_iter().chain(SINGLE_PATH).filter(|cc| *cc != "ratemp");
        let value = at.get(load, "ratemp", "utility") - most(others.map(|cc| at.get(load, cc, "utility")));
        at.add("utility", load, text, Says::Words, Unit::Share, value);
    }
    if let [first, .., last] = at.loads()[..] {
        let lead = |load: &str| at.get(load, "ratemp", "rate") / at.get(load, "xmp", "rate");
        let text = format!("ratemp's lead over xmp, over that at {first} (paper: more at high load)");
        at.ratio("lead", last, &text, Says::AtLeast(1.0), lead(last) / lead(first));
        let text = "mean rate of mpcc over the lowest of one path (paper: below those)";
        let value = at.get(last, "mpcc", "rate") / least(at.several(last, SINGLE_PATH, "rate"));
        at.ratio("mpcc", last, text, Says::AtMost(1.0), value);
    }
    at.claims.0
}

fn fig7(mut at: Fabric<'_>) -> Vec<Claim> {
    at.best_rate_and_rtt();
    if let [first, .., last] = at.loads()[..] {
        let text = "lower mean rate of lia and balia over the higher of dctcp and dcqcn (paper: higher with few flows)";
        let value = least(at.several(first, LOSSES, "rate")) / most(at.several(first, ["dctcp", "dcqcn"], "rate"));
        at.ratio("few", first, text, Says::AtLeast(1.0), value);
        let text = "higher mean rate of lia and balia over the lower of dctcp and dcqcn (paper: lower with many)";
        let value = most(at.several(last, LOSSES, "rate")) / least(at.several(last, ["dctcp", "dcqcn"], "rate"));
        at.ratio("many", last, text, Says::AtMost(1.0), value);
    }
    for load in at.loads() {
        let others = at.several(load, ["ratemp", "xmp", "dctcp", "dcqcn"], "rtt");
        let text = "lower mean RTT of lia and balia over the highest other (paper: highest)";
        let value = least(at.several(load, LOSSES, "rtt")) / most(others);
        at.ratio("losses", load, text, Says::AtLeast(1.0), value);
    }
    at.claims.0
}

fn fig8(mut at: Fabric<'_>) -> Vec<Claim> {
    for load in at.loads() {
        let value = at.over_the_best(load, "rate", most);
        let text = "mean rate of ratemp, all flows, over the highest other (paper: highest)";
        at.add_estimate("best", load, text, Says::AtLeast(1.0), Unit::Ratio, value);
        let value = at.over_the_best(load, "fct", least);
        let text = "mean FCT of ratemp, all flows, over the lowest other";
        at.add_estimate("fct", load, text, Says::Words, Unit::Ratio, value);
        let others = at.several(load, ["ratemp", "xmp", "mpcc", "dctcp", "dcqcn", "bbr", "swift"], "rate");
        let text = "higher mean rate of lia and balia over the lowest other (paper: worst)";
        let value = most(at.several(load, LOSSES, "rate")) / least(others);
        at.ratio("worst", load, text, Says::AtMost(1.0), value);
        let text = "mean FCT of ratemp, small flows, over the lowest of lia, balia, xmp, mpcc (paper: smaller)";
        let others = at.several(load, ["lia", "balia", "xmp", "mpcc"], "small-fct");
        let value = at.get(load, "ratemp", "small-fct") / least(others);
        at.ratio("small", load, text, Says::AtMost(1.0), value);
        let text = "mean FCT of ratemp, many to one, over the lowest of lia, balia, xmp, mpcc";
        let others = at.several(load, ["lia", "balia", "xmp", "mpcc"], "in-fct");
        at.ratio("in", load, text, Says::Words, at.get(load, "ratemp", "in-fct") / least(others));
    }
    if let [first, .., last] = at.loads()[..] {
        for cc in ["xmp", "dctcp", "dcqcn"] {
            let text = format!("mean rate of {cc}, all flows, over that at {first} (paper: less)");
            let value = at.get(last, cc, "rate") / at.get(first, cc, "rate");
            at.ratio(&format!("degrades.{cc}"), last, &text, Says::AtMost(1.0), value);
        }
    }
    at.claims.0
}

/// RateMP and XMP with one thing changed at a time.
fn why(claims: &mut Claims, measured: &Measured) {
    let mut add = |job: &str, run: &str, text: &str| {
        for (what, of) in [("rate", "all flows"), ("small-rate", "small"), ("large-rate", "large")] {
            let text = format!("Fig 6, web search, 0.8, RateMP's marks: {text}: mean rate, {of}");
            let id = format!("{job}-{}-{what}", run.replace(':', "."));
            claims.add(id, job, text, Says::Words, Unit::Gbps, measured.get(job, run, what));
        }
        let text = format!("Fig 6, web search, 0.8, RateMP's marks: {text}: mean RTT");
        claims.add(
            format!("{job}-{}-rtt", run.replace(':', ".")),
            job,
            text,
            Says::Words,
            Unit::Us,
            measured.get(job, run, "rtt"),
        );
    };
    for (run, text) in WHY {
        add("why", run, text);
    }
    add("why-long", "ratemp", "ratemp, 4 ms of arrivals");
    add("why-long", "xmp:red", "xmp, 4 ms of arrivals");
}

/// The smallest; not a number if one is not.
fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().reduce(|a, b| if b.is_nan() || b < a { b } else { a }).unwrap_or(f64::NAN)
}

/// The largest; not a number if one is not.
fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    -least(values.into_iter().map(|value| -value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_what_was_not_run_is_no_number() {
        assert_eq!((least([2.0, 1.0, 3.0]), most([2.0, 1.0, 3.0])), (1.0, 3.0));
        for values in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            assert!(least(values).is_nan() && most(values).is_nan());
        }
    }
}
