//! The list of all figures.

use crate::figure::Figure;
use crate::{beyond, flowtune, perc, powertcp, ratemp, rocc};

/// All figures, paper by paper.
pub const FIGURES: &[Figure] = &[
    powertcp::FIG2,
    powertcp::FIG3,
    powertcp::FIG4,
    powertcp::FIG5,
    powertcp::FIG6,
    powertcp::FIG6_BUFFERS,
    powertcp::FIG7,
    powertcp::FIG7_REQUESTS,
    powertcp::FIG7_BUFFERS,
    powertcp::FIG8,
    powertcp::FIG9,
    powertcp::FIG10,
    powertcp::FIG11,
    rocc::FIG5,
    rocc::FIG6,
    rocc::FIG7,
    rocc::FIG8,
    rocc::FIG9,
    rocc::FIG11,
    rocc::FIG12,
    rocc::FIG13,
    rocc::FIG14,
    rocc::FIG15,
    rocc::FIG16,
    rocc::FIG17,
    rocc::RESUME,
    rocc::TABLE3,
    rocc::HARDWARE,
    ratemp::TABLE1,
    ratemp::FIG4,
    ratemp::FIG5,
    ratemp::FIG6,
    ratemp::FIG6_STEADY,
    ratemp::FIG6_WHY,
    ratemp::FIG7,
    ratemp::FIG7_STEADY,
    ratemp::FIG8,
    ratemp::FIG8_STEADY,
    flowtune::TABLE6_1,
    flowtune::FIG4,
    flowtune::FIG5,
    flowtune::FIG6,
    flowtune::FIG7,
    flowtune::FIG8,
    flowtune::FIG9,
    flowtune::FIG10,
    flowtune::FIG11,
    flowtune::FIG12,
    flowtune::FIG13,
    flowtune::OUTAGE,
    perc::FIG1,
    perc::FIG2,
    perc::FIG3,
    perc::FIG4,
    perc::FIG5,
    perc::FIG6,
    perc::FIG7,
    perc::FIG8,
    beyond::SHOOTOUT,
    beyond::SPINE,
    beyond::COLLISIONS,
    beyond::COEXISTENCE,
    beyond::COLLECTIVES,
    beyond::TRAINING,
];

/// Returns the figures of a name: a single one, as `powertcp/fig8`; those of a paper, as `powertcp`; or `all`.
pub fn matching(name: &str) -> Vec<&'static Figure> {
    FIGURES.iter().filter(|figure| name == "all" || figure.id == name || figure.paper() == name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fairrate_control::Registry;
    use fairrate_scenario::{Overrides, Scenario};

    use super::*;
    use crate::experiment::{Run, Work};
    use crate::figure::{Kind, Scale};
    use crate::points::Points;

    fn scale(quick: bool) -> Scale {
        Scale::new(quick, vec![1, 2])
    }

    #[test]
    fn figures_claims_and_runs_have_names_of_their_own_and_scenarios_are_sound() {
        let ids: HashSet<&str> = FIGURES.iter().map(|figure| figure.id).collect();
        assert_eq!(ids.len(), FIGURES.len());
        let (next, read) = (AtomicUsize::new(0), Mutex::default());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get().min(4)) {
                scope.spawn(|| {
                    while let Some(figure) = FIGURES.get(next.fetch_add(1, Ordering::Relaxed)) {
                        is_sound(figure, &read);
                    }
                });
            }
        });
    }

    /// Checks a figure, and those of its scenarios that are not in `read` yet: figures of a paper share many.
    fn is_sound(figure: &Figure, read: &Mutex<HashSet<String>>) {
        let claims = (figure.claims)(&Points::default());
        let names: HashSet<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(names.len(), claims.len(), "{}", figure.id);
        for scale in [true, false].map(scale) {
            let runs = (figure.runs)(&scale);
            let labels: HashSet<String> = runs.iter().map(Run::label).collect();
            assert_eq!(labels.len(), runs.len(), "{}", figure.id);
            // A scenario that is valid for one seed is valid for the other.
            for run in runs.iter().filter(|run| run.seed != Some(2)) {
                let Work::Scenario { toml, files, overrides, .. } = &run.work else { continue };
                let mut read = read.lock().expect("no figure panics");
                let has_new_flows = read.insert(format!("{}{files:?}", traffic_of(toml, overrides)));
                let is_new = read.insert(format!("{toml}{files:?}{overrides:?}"));
                drop(read);
                if has_new_flows {
                    run.scenario().map(drop).unwrap();
                } else if is_new {
                    let registry = Registry::new();
                    let reader = Scenario::with_algorithms(&registry).without_flows();
                    reader.from_texts(toml, &run.name, files, overrides).map(drop).unwrap();
                }
            }
        }
    }

    /// Returns the part of a scenario that its flows are generated from.
    fn traffic_of(toml: &str, overrides: &Overrides) -> String {
        const OTHERS: [&str; 5] = ["transport", "switch", "routing", "class", "fault"];
        let section = |text: &str| text.split(['.', ']', '=', ' ']).next().unwrap_or_default().to_owned();
        let is_other = |name: &str| OTHERS.contains(&name);
        let mut here = String::new();
        let lines = toml.lines().filter(|line| {
            if line.starts_with('[') {
                here = section(line.trim_start_matches('['));
            }
            !is_other(&here)
        });
        let sets = overrides.sets.iter().filter(|(key, _)| !is_other(&section(key)));
        format!("{:?}{:?}", lines.collect::<Vec<_>>(), sets.collect::<Vec<_>>())
    }

    /// Figures without packets take no time: each of their panels has lines, and each claim a number.
    #[test]
    fn calculations_fill_their_panels_and_claims() {
        for figure in FIGURES.iter().filter(|figure| figure.kind == Kind::Calculation) {
            let mut points = Points::default();
            for run in (figure.runs)(&scale(true)) {
                let point = run.point(|_| true).unwrap().expect("nobody stops it");
                points.add(&run.name, &run.line, run.seed, point);
            }
            let panels = (figure.panels)(&points);
            assert!(panels.iter().flat_map(|panel| &panel.series).all(|s| !s.x.is_empty()), "{}", figure.id);
            assert!((figure.claims)(&points).iter().all(|claim| claim.measured().is_some()), "{}", figure.id);
            let picture = crate::sheet::picture(&panels);
            assert_eq!(picture.matches("<svg ").count(), panels.len() + 1);
        }
    }

    #[test]
    fn names_are_figures_papers_or_all() {
        assert_eq!(matching("rocc/fig6").len(), 1);
        assert_eq!(matching("all").len(), FIGURES.len());
        assert!(1 < matching("powertcp").len() && matching("power").is_empty());
    }
}
