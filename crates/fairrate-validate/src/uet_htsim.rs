//! `cargo xtask validate uet-htsim`: compares the transport of Ultra Ethernet with the consortium's simulator;
//! `validation/uet-htsim/README.md` describes the runs. `cargo xtask validate csg-htsim` does the same for EQDS and
//! NDP, with the simulator of their authors; `validation/csg-htsim/README.md` describes those runs.
//!
//! The rule, committed before each command first ran. In a case marked `exact`, nothing is random: the time of every
//! flow, rounded to the six digits that uet-htsim prints (csg-htsim's are printed to the picosecond, and not rounded),
//! is equal to theirs, and as many packets are sent again; where flows end at several times (`apart`), the largest is
//! equal, and the mean within 0.0005 us, which rounding can make. In any other, ours are means over ten seeds, or over
//! as many as the case says, and theirs over the seeds in the table: the mean completion time is within 1 %; the
//! largest is within 5 %, or within the range of theirs over their seeds; packets sent again are within 10 % or 30
//! packets. A completion time begins with the run and ends with the last acknowledgment at the sender, as theirs does.

mod reference;

use std::path::Path;

use clap::Args;
use fairrate_report::stats::mean;
use fairrate_sim::{FlowOutcome, Recorder, SimConfig};
use serde::Deserialize;

use self::reference::Reference;
use crate::rows::{Findings, Range, Row, Tolerance, Verdict};
use crate::suite::{self, Suite, key_and_value};
use crate::to_end::run_to_end;
use crate::{runs, show};

/// Largest difference of the mean completion time.
const MEAN: Tolerance = Tolerance::relative(0.01);
/// Largest difference of the largest completion time.
const LARGEST: Tolerance = Tolerance::relative(0.05);
/// Largest difference of the number of packets sent again.
const SENT_AGAIN: Tolerance = Tolerance { relative: 0.1, absolute: 30.0 };
/// Largest difference of means of equal times that are printed with six digits: half of the last digit of some hundred
/// microseconds.
const ROUNDING: Tolerance = Tolerance::absolute(0.0005);
/// Tolerance of numbers that are equal.
const EQUAL: Tolerance = Tolerance::absolute(0.0);

/// A simulator that prints completion times of connection matrices.
pub struct Witness {
    /// Name of the command, and of the directory of its runs.
    name: &'static str,
    /// Significant digits that it prints; `None`: picoseconds.
    digits: Option<usize>,
}

/// The Ultra Ethernet consortium's simulator.
pub const UET: Witness = Witness { name: "uet-htsim", digits: Some(6) };
/// The simulator of NDP's and EQDS's authors, which was made to print picoseconds.
pub const CSG: Witness = Witness { name: "csg-htsim", digits: None };

/// Options of `validate uet-htsim` and `validate csg-htsim`.
#[derive(Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Also the cases that take minutes, which the checks leave out
    #[arg(long)]
    long: bool,
}

/// A job of uet-htsim.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Algorithm of congestion control.
    #[serde(default = "nscc")]
    cc: String,
    /// Number of runs with seeds from 1 on; `None`: one if the case is exact, else ten.
    seeds: Option<u64>,
    /// `true` if nothing is random.
    #[serde(default)]
    exact: bool,
    /// `true` if flows of an exact case end at several times.
    #[serde(default)]
    apart: bool,
    /// `true` if the case takes minutes.
    #[serde(default)]
    long: bool,
    /// Scenario file; `None`: that of the suite.
    scenario: Option<String>,
    /// Keys that differ from the scenario's, as for `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Blocks that follow the scenario: its traffic, and faults if there are any.
    blocks: String,
}

fn nscc() -> String {
    "nscc".to_owned()
}

impl Case {
    fn n_seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.exact { 1 } else { 10 })
    }
}

/// A run of ours.
#[derive(Clone, Debug)]
struct Ours {
    /// Completion times in microseconds; not a number for a flow that did not finish.
    times: Vec<f64>,
    /// Packets sent again, after a trimmed one or a timeout.
    sent_again: f64,
}

/// Runs the validation. Returns `true` if every row is inside or in the file of findings.
pub fn run(root: &Path, witness: &Witness, options: &Options) -> Result<bool, String> {
    let name = witness.name;
    let dir = root.join("validation").join(name);
    let Suite { scenario, case: cases } = Suite::<Case>::read(&dir)?;
    let references = reference::read(&dir.join("reference.csv"))?;
    let findings = Findings::read(&dir.join("findings.toml"))?;
    let only = options.suite.only.as_deref().unwrap_or("");
    let is_selected = |case: &&Case| case.name.starts_with(only) && (options.long || !case.long);
    let selected: Vec<&Case> = cases.iter().filter(is_selected).collect();
    if selected.is_empty() {
        let is_long = cases.iter().any(|case| case.name.starts_with(only));
        let hint = if is_long { "; with `--long` there is one" } else { "" };
        return Err(format!("no case in validation/{name}/suite.toml begins with `{only}`{hint}"));
    }
    let measure = |case: &&Case, seed| {
        let config = configure(&dir, &scenario, case, seed, &options.suite.set)?;
        simulate(config).map_err(|e| format!("{}, seed {seed}: {e}", case.name))
    };
    let todo = runs::of_cases(&selected, |case| 1..=case.n_seeds());
    let mut rows = Vec::new();
    for (case, ours) in selected.iter().zip(runs::measure(&selected, &todo, options.suite.jobs, &measure)) {
        let ours = ours.into_iter().collect::<Result<Vec<_>, _>>()?;
        let theirs = references.get(&case.name);
        let theirs = theirs.ok_or_else(|| format!("validation/{name}/reference.csv has no case `{}`", case.name))?;
        rows.extend(compare(witness, case, theirs, &ours));
    }
    findings.explain_all(&mut rows);
    Ok(show::finish(&rows, options.suite.json))
}

/// Returns the simulation of a case with a seed, with the keys in `set` changed. `scenario` is the file of cases that
/// name none.
fn configure(dir: &Path, scenario: &str, case: &Case, seed: u64, set: &[String]) -> Result<SimConfig, String> {
    let scenario = suite::read(&dir.join(case.scenario.as_deref().unwrap_or(scenario)))?;
    let mut sets = vec![("seed".to_owned(), seed.to_string()), ("transport.cc".to_owned(), case.cc.clone())];
    sets.extend(case.set.iter().chain(set).filter_map(key_and_value));
    let text = format!("{scenario}\n{}", case.blocks);
    suite::configure(dir, "fabric.toml", &text, sets).map_err(|e| format!("{}: {e}", case.name))
}

/// Runs a simulation.
fn simulate(config: SimConfig) -> Result<Ours, String> {
    let mut recorder = Recorder::default();
    let ended = run_to_end(config, &mut recorder)?;
    let flows: Vec<FlowOutcome> = recorder.flows.into_iter().chain(ended.unfinished).collect();
    let time = |flow: &FlowOutcome| flow.fct_ack.map_or(f64::NAN, |fct| (flow.start + fct).as_ps() as f64 / 1e6);
    Ok(Ours {
        times: flows.iter().map(time).collect(),
        sent_again: flows.iter().map(|flow| f64::from(flow.recoveries) + f64::from(flow.timeouts)).sum(),
    })
}

/// Returns the rows of a case.
fn compare(witness: &Witness, case: &Case, theirs: &Reference, ours: &[Ours]) -> Vec<Row> {
    let sent_again: Vec<f64> = ours.iter().map(|run| run.sent_again).collect();
    if case.exact && case.apart {
        let run = ours.first().map_or(&[][..], |run| &run.times);
        let times: Vec<f64> = run.iter().map(|&time| as_printed(time, witness.digits)).collect();
        let largest = times.iter().copied().fold(0.0, |a, b| if a < b || b.is_nan() { b } else { a });
        let mean = mean(&times).unwrap_or(f64::NAN);
        return vec![
            row(case, "mean time", "us", (theirs.mean_us.mean, &[mean]), ROUNDING),
            row(case, "largest time", "us", (theirs.largest_us.mean, &[largest]), EQUAL),
            row(case, "packets sent again", "", (theirs.sent_again, &sent_again), EQUAL),
        ];
    }
    if case.exact {
        // Of all flows, the one that is farthest from theirs.
        let times = ours.iter().flat_map(|run| &run.times).map(|&time| as_printed(time, witness.digits));
        let off = |time: f64| if time.is_nan() { f64::MAX } else { (time - theirs.mean_us.mean).abs() };
        let worst = times.max_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(f64::NAN);
        return vec![
            row(case, "time of every flow", "us", (theirs.mean_us.mean, &[worst]), EQUAL),
            row(case, "packets sent again", "", (theirs.sent_again, &sent_again), EQUAL),
        ];
    }
    let of_runs = |of: fn(&Ours) -> f64| ours.iter().map(of).collect::<Vec<f64>>();
    let means = of_runs(|run| mean(&run.times).unwrap_or(f64::NAN));
    // Not a number if a flow did not finish.
    let most = of_runs(|run| run.times.iter().copied().fold(0.0, |a, b| if a < b || b.is_nan() { b } else { a }));
    let mut largest = row(case, "largest time", "us", (theirs.largest_us.mean, &most), LARGEST);
    if largest.ours.is_some_and(|ours| theirs.largest_us.has(ours)) {
        largest.verdict = Verdict::Inside;
    }
    vec![
        row(case, "mean time", "us", (theirs.mean_us.mean, &means), MEAN),
        largest,
        row(case, "packets sent again", "", (theirs.sent_again, &sent_again), SENT_AGAIN),
    ]
}

/// Rounds `value`, in microseconds, to `digits` significant digits; `None`: to a picosecond.
fn as_printed(value: f64, digits: Option<usize>) -> f64 {
    let text = digits.map_or_else(|| format!("{value:.6}"), |digits| format!("{value:.*e}", digits - 1));
    text.parse().unwrap_or(f64::NAN)
}

/// Returns the row of a number: inside if the mean of ours is within the tolerance.
fn row(case: &Case, metric: &str, unit: &'static str, numbers: (f64, &[f64]), tolerance: Tolerance) -> Row {
    Row::of((&case.name, &case.cc), (metric, unit), numbers, Some(tolerance), Range::Shown)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    fn dir(witness: &Witness) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation").join(witness.name)
    }

    fn cases_of(witness: &Witness) -> Vec<Case> {
        Suite::read(&dir(witness)).expect("the suite is sound").case
    }

    fn cases() -> Vec<Case> {
        cases_of(&UET)
    }

    fn references_of(witness: &Witness) -> BTreeMap<String, Reference> {
        reference::read(&dir(witness).join("reference.csv")).expect("the table is sound")
    }

    fn references() -> BTreeMap<String, Reference> {
        references_of(&UET)
    }

    fn case(name: &str) -> (Case, Reference) {
        let case = cases().into_iter().find(|case| case.name == name).expect("the case exists");
        (case, references().remove(name).expect("the table has the case"))
    }

    fn verdicts(name: &str, runs: &[Ours]) -> Vec<Verdict> {
        let (case, theirs) = case(name);
        compare(&UET, &case, &theirs, runs).iter().map(|row| row.verdict).collect()
    }

    fn ours(times: &[f64], sent_again: f64) -> Ours {
        Ours { times: times.to_vec(), sent_again }
    }

    #[test]
    fn every_case_has_a_scenario_that_is_sound_and_numbers_of_its_witness() {
        for witness in [UET, CSG] {
            let dir = dir(&witness);
            let mut references = references_of(&witness);
            for case in cases_of(&witness) {
                assert!(references.remove(&case.name).is_some(), "{}", case.name);
                if let Err(error) = configure(&dir, "fabric.toml", &case, 1, &[]) {
                    panic!("{error}");
                }
            }
            assert_eq!(references.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
        }
    }

    #[test]
    fn the_reference_is_inside_when_held_against_itself() {
        for witness in [UET, CSG] {
            for case in cases_of(&witness) {
                let theirs = references_of(&witness).remove(&case.name).expect("the table has the case");
                // Two flows with their mean and their largest time; in an exact case all have the mean.
                let mean = theirs.mean_us.mean;
                let largest = if case.exact && !case.apart { mean } else { theirs.largest_us.mean };
                let runs = [ours(&[2.0 * mean - largest, largest], theirs.sent_again)];
                for row in compare(&witness, &case, &theirs, &runs) {
                    assert_eq!(row.verdict, Verdict::Inside, "{} {}", row.scenario, row.metric);
                }
            }
        }
    }

    #[test]
    fn picoseconds_are_not_rounded() {
        assert_eq!([as_printed(176.199_523, Some(6)), as_printed(176.199_523, None)], [176.2, 176.199_523]);
        assert_eq!(as_printed(20_138.123_456, None), 20_138.123_456);
    }

    #[test]
    fn exact_times_are_compared_as_printed() {
        use Verdict::{Inside, Outside};
        // The closed form of 490 packets over six links; uet-htsim prints 176.2.
        assert_eq!(verdicts("one", &[ours(&[176.199_52], 0.0)]), [Inside, Inside]);
        assert_eq!(verdicts("one", &[ours(&[176.200_52], 0.0)]), [Outside, Inside]);
        // 99 + 5 packets, one of 4,150 B takes 332 ns; six links there and back, and six acknowledgments of 64 B.
        assert_eq!(verdicts("packets100", &[ours(&[46.890_72], 1.0)]), [Inside, Outside]);
        // The worst of two counts, and one that did not finish is the worst.
        assert_eq!(verdicts("bidir", &[ours(&[176.804, 176.805], 0.0)]), [Outside, Inside]);
        assert_eq!(verdicts("bidir", &[ours(&[f64::NAN, 176.804], 0.0)]), [Outside, Inside]);
    }

    #[test]
    fn largest_times_may_also_be_within_their_range() {
        use Verdict::{Inside, Outside};
        // Theirs: a mean of 197.2 us, and a largest of 216.7 in the mean, 205.3 to 250.0; 66.5 packets sent again.
        let of = |mean: f64, largest: f64| ours(&[2.0 * mean - largest, largest], 96.0);
        assert_eq!(verdicts("perm128_oblivious", &[of(199.1, 249.0)]), [Inside, Inside, Inside]);
        assert_eq!(verdicts("perm128_oblivious", &[of(199.2, 250.1)]), [Outside, Outside, Inside]);
        // 250.1 and 240 are 245.05 in the mean.
        assert_eq!(verdicts("perm128_oblivious", &[of(197.0, 250.1), of(197.0, 240.0)])[1], Inside);
        assert_eq!(verdicts("perm128_oblivious", &[ours(&[197.2, 217.0], 97.0)])[2], Outside);
        assert_eq!(verdicts("perm128_oblivious", &[ours(&[197.2, f64::NAN], 66.0)]), [Outside, Outside, Inside]);
    }

    #[test]
    fn a_message_alone_takes_what_it_takes_in_the_witness() {
        let names = [(UET, "packets10"), (CSG, "ndp_packets100"), (CSG, "eqds_one_path")];
        for (witness, name) in names {
            let dir = dir(&witness);
            let case = cases_of(&witness).into_iter().find(|case| case.name == name).expect("the case exists");
            let theirs = references_of(&witness).remove(name).expect("the table has the case");
            let run = configure(&dir, "fabric.toml", &case, 1, &[]).and_then(simulate).expect("the run ends");
            for row in compare(&witness, &case, &theirs, &[run]) {
                assert_eq!(row.verdict, Verdict::Inside, "{name}, {}: {:?}", row.metric, row.ours);
            }
        }
    }
}
