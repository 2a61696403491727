//! Claims about large networks: numbers of an algorithm over the best or worst of others, seed by seed.

use super::fabric::{FIRST, Hosts, LAST, LOADS, Traffic};
use super::settings::{MULTIPATH, Marks, SINGLE_PATH};
use crate::claim::{Claim, Rule, Verdict};
use crate::moments::mean;
use crate::points::Points;

/// Text for a claim that is not reproduced, where no single change explains it.
pub const UNKNOWN: &str = "No cause is known.";
/// The change of a number in which MPCC does not count.
pub const WITHOUT_MPCC: &str = "MPCC, which begins with its module's 4 Mb/s, is left out";

/// Text about RateMP's rate with hosts of 100 Gb/s in Figures 7 and 8.
pub const AS_FIG6: &str =
    "In Figure 6 alpha_total of c/100 with a Kmax of 40 KB is the cause (ratemp/fig6-why). Here it was not tried.";

/// Returns the claim with a cause, if its verdict is weaker or not reproduced.
pub fn with_cause(claim: Claim, cause: &str) -> Claim {
    match claim.verdict() {
        Verdict::Weaker | Verdict::NotReproduced => claim.because(cause),
        _ => claim,
    }
}

/// Returns the claims with values; all claims if none has values.
pub fn of_what_was_run(mut claims: Vec<Claim>) -> Vec<Claim> {
    if claims.iter().any(|claim| !claim.values.is_empty()) {
        claims.retain(|claim| !claim.values.is_empty());
    }
    claims
}

/// Returns the ratio of two numbers, seed by seed; none if the numbers of values differ.
pub fn over(above: &[f64], below: &[f64]) -> Vec<f64> {
    if above.len() != below.len() {
        return Vec::new();
    }
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

/// A traffic under one choice of hosts and marks, with the claims about it.
pub struct Setting<'a> {
    pub points: &'a Points,
    pub traffic: &'a Traffic,
    pub hosts: Hosts,
    pub marks: Marks,
    /// Causes that were measured, each for the claims whose ids begin with its first text.
    pub causes: &'a [(&'a str, &'a str)],
    /// Runs of RateMP with one thing changed, with the change in words, for the claims about its rate.
    pub changes: &'a [(&'a str, &'a str)],
    pub claims: Vec<Claim>,
}

/// Returns claims about traffics with both rates of hosts and both choices of marks.
pub fn of_all(
    points: &Points,
    traffics: &[Traffic],
    causes: &[(&str, &str)],
    claim: impl Fn(&mut Setting<'_>),
) -> Vec<Claim> {
    let mut all = Vec::new();
    for hosts in Hosts::ALL {
        for (marks, traffic) in Marks::ALL.into_iter().flat_map(|marks| traffics.iter().map(move |t| (marks, t))) {
            let mut setting = Setting { points, traffic, hosts, marks, causes, changes: &[], claims: Vec::new() };
            claim(&mut setting);
            all.append(&mut setting.claims);
        }
    }
    of_what_was_run(all)
}

impl Setting<'_> {
    /// Returns a number of an algorithm at a load, one value per seed.
    pub fn values(&self, load: &str, cc: &str, what: &str) -> Vec<f64> {
        self.of_run(load, self.marks.run_of(cc), what)
    }

    /// Returns a number of a run given by its own name, as `lia:drops`.
    pub fn of_run(&self, load: &str, run: &str, what: &str) -> Vec<f64> {
        self.points.values(&self.traffic.run_name(self.hosts, load), run, what)
    }

    /// Returns the numbers of the algorithm whose mean is the lowest; none if some algorithm was not run.
    pub fn lowest(&self, load: &str, ccs: &[&str], what: &str) -> Vec<f64> {
        self.extreme(load, ccs, what, 1.0)
    }

    /// Returns the numbers of the algorithm whose mean is the highest; none if some algorithm was not run.
    pub fn highest(&self, load: &str, ccs: &[&str], what: &str) -> Vec<f64> {
        self.extreme(load, ccs, what, -1.0)
    }

    fn extreme(&self, load: &str, ccs: &[&str], what: &str, sign: f64) -> Vec<f64> {
        let mean = |values: &Vec<f64>| sign * mean(values);
        let all: Vec<Vec<f64>> = ccs.iter().map(|cc| self.values(load, cc, what)).collect();
        if all.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        all.into_iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default()
    }

    /// Returns all algorithms but RateMP.
    pub fn others() -> Vec<&'static str> {
        MULTIPATH.into_iter().chain(SINGLE_PATH).filter(|cc| *cc != "ratemp").collect()
    }

    /// Adds a claim about a load.
    pub fn add(&mut self, what: &str, load: &str, text: &str, rule: Rule, unit: &'static str, values: Vec<f64>) {
        let (traffic, marks) = (self.traffic, self.marks);
        let id = format!("{}{what}-{}-{}-{load}", self.hosts.prefix(), marks.id(), traffic.id);
        let text = format!("{}, {}, load {load}, {}: {text}", traffic.name, self.hosts.text(), marks.text());
        let cause = self.causes.iter().find(|(begin, _)| id.starts_with(begin));
        let claim = Claim::mean(&id, &text, rule, unit, values);
        self.claims.push(match cause {
            Some((_, cause)) => with_cause(claim, cause),
            None => claim,
        });
    }

    /// Adds to the last claim the ratio that it has if `what` is changed.
    pub fn if_changed(&mut self, what: &str, above: &[f64], below: &[f64]) {
        if let Some(claim) = self.claims.pop() {
            self.claims.push(claim.changing(what, over(above, below)));
        }
    }

    /// Adds a claim about a ratio.
    pub fn ratio(&mut self, what: &str, load: &str, text: &str, rule: Rule, above: &[f64], below: &[f64]) {
        self.add(what, load, text, rule, "", over(above, below));
    }

    /// Adds the text's claims about RateMP that Figures 6 and 7 share.
    pub fn best_rate_and_rtt(&mut self) {
        for load in LOADS {
            self.highest_rate(load);
            let (own, best) = (self.values(load, "ratemp", "rtt"), self.lowest(load, &Self::others(), "rtt"));
            let text = "mean RTT of ratemp over the lowest other: \"the lowest\"";
            self.ratio("rtt", load, text, Rule::AtMost(1.0), &own, &best);
        }
        // Marks for the others change nothing about RateMP.
        if !self.marks.is_own() {
            return;
        }
        let text = format!("ratemp's mean RTT over that at {FIRST}: \"grows slightly\" (25 % is ours)");
        let (last, first) = (self.values(LAST, "ratemp", "rtt"), self.values(FIRST, "ratemp", "rtt"));
        self.ratio("rtt.grows", LAST, &text, Rule::AtMost(1.25), &last, &first);
    }

    /// Adds the claim that RateMP has the highest throughput.
    pub fn highest_rate(&mut self, load: &str) {
        let (own, best) = (self.values(load, "ratemp", "rate"), self.highest(load, &Self::others(), "rate"));
        let text = "mean rate of ratemp over the highest other: \"the highest\"";
        self.ratio("best", load, text, Rule::AtLeast(1.0), &own, &best);
        for (run, what) in self.changes {
            self.if_changed(what, &self.of_run(load, run, "rate"), &best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Point;
    use crate::ratemp::fabric::MANY_TO_MANY;

    #[test]
    fn an_extreme_is_of_the_algorithm_with_the_extreme_mean() {
        let mut points = Points::default();
        let name = MANY_TO_MANY.run_name(Hosts::Gbps25, FIRST);
        for (run, values) in [("lia", [1.0, 6.0]), ("balia", [3.0, 3.0])] {
            for (seed, value) in (1..).zip(values) {
                points.add(&name, run, Some(seed), Point::of([("rtt", value)]));
            }
        }
        let (hosts, marks) = (Hosts::Gbps25, Marks::Own);
        let setting = Setting {
            points: &points,
            traffic: &MANY_TO_MANY,
            hosts,
            marks,
            causes: &[],
            changes: &[],
            claims: Vec::new(),
        };
        assert_eq!(setting.lowest(FIRST, &["lia", "balia"], "rtt"), [3.0, 3.0]);
        assert_eq!(setting.highest(FIRST, &["lia", "balia"], "rtt"), [1.0, 6.0]);
        assert!(setting.lowest(FIRST, &["lia", "xmp"], "rtt").is_empty());
        assert_eq!((over(&[4.0], &[2.0]), over(&[4.0], &[])), (vec![2.0], vec![]));
    }
}
