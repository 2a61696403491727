//! Completion times that equal ns-3's to the nanosecond. Within tolerances, a flow that ends a nanosecond late would go
//! unnoticed.

use super::tables::{Case, Measured};

/// Number of flows with a completion time in ns-3, and names of those that end at another nanosecond in our runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    pub n_flows: usize,
    /// Names of the flows that differ, as `scenario/algorithm flow 3`.
    pub differ: Vec<String>,
}

impl Exactness {
    /// Compares each case's first run, which has ns-3's own draws, with the reference.
    pub fn of(cases: &[Case], runs: &[Vec<Result<Measured, String>>]) -> Self {
        let mut exactness = Self::default();
        for (case, runs) in cases.iter().zip(runs) {
            let ours = runs.first().and_then(|run| run.as_ref().ok());
            exactness.add(case, ours);
        }
        exactness
    }

    /// Adds the flows of a case. In a failed run (`None`) all of them differ.
    fn add(&mut self, case: &Case, ours: Option<&Measured>) {
        for (flow, ns3_ns) in &case.reference.fct_ns {
            self.n_flows += 1;
            if ours.and_then(|ours| ours.fct_ns.get(flow)) != Some(ns3_ns) {
                self.differ.push(format!("{} flow {flow}", case.name()));
            }
        }
    }

    /// Prints the number of equal times, and the first flows that differ.
    pub fn show(&self) {
        let equal = self.n_flows - self.differ.len();
        println!("completion times: {equal} of {} flows end at ns-3's nanosecond", self.n_flows);
        for flow in self.differ.iter().take(10) {
            println!("  not {flow}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tables;
    use super::*;

    #[test]
    fn a_nanosecond_is_seen() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/ns3");
        let cases = tables::load(&dir).expect("the tables read");
        let cases: Vec<Case> = cases.into_iter().filter(|case| case.scenario.name == "ws60").collect();
        assert_eq!(cases.len(), 6, "one for each algorithm");
        let mut ours: Vec<Measured> = cases.iter().map(|case| case.reference.clone()).collect();
        let run = |ours: &[Measured]| ours.iter().map(|m| vec![Ok(m.clone())]).collect::<Vec<_>>();
        let exactness = Exactness::of(&cases, &run(&ours));
        assert_eq!((exactness.n_flows, exactness.differ.len()), (6 * 2_800, 0));
        ours[2].fct_ns.entry(7).and_modify(|ns| *ns += 1.0);
        ours[3].fct_ns.remove(&8);
        let names: Vec<String> = vec![format!("{} flow 7", cases[2].name()), format!("{} flow 8", cases[3].name())];
        assert_eq!(Exactness::of(&cases, &run(&ours)).differ, names);
    }
}
