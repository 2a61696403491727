//! `cargo xtask validate ns3 --trace`: compares the pacing rate after each of the first acknowledgments with ns-3's, to
//! find the first decision that differs.

use std::path::Path;

use fairrate_sim::{RateSample, Recorder};

use super::simulate::{configure, scenario_text, simulate};
use super::tables::Case;
use crate::csv::Table;

/// Interval of the samples of rates; acknowledgments of these runs arrive at multiples of it.
const STEP_NS: u64 = 4;
/// Largest relative difference of two rates: ns-3 keeps whole bits per second.
const RELATIVE: f64 = 1e-8;
/// Number of lines shown after the first difference.
const AFTER: usize = 12;

/// Compares the existing traces of `cases`. Returns `true` if all agree.
pub fn run(dir: &Path, cases: &[Case]) -> Result<bool, String> {
    let mut agree = true;
    let mut found = false;
    for case in cases {
        let path = dir.join(format!("trace/{}.{}.csv", case.scenario.name, case.run.label));
        if path.exists() {
            found = true;
            agree &= compare(dir, case, &Table::read(&path)?)?;
        }
    }
    if found { Ok(agree) } else { Err("no trace of these in validation/ns3/trace".to_owned()) }
}

fn compare(dir: &Path, case: &Case, reference: &Table) -> Result<bool, String> {
    let last: u64 = reference.rows().map(|row| row.number("t_ns")).collect::<Result<Vec<u64>, _>>()?.pop().unwrap_or(0);
    let probe = format!("[[probe]]\nflows = \"all\"\nevery = \"{STEP_NS}ns\"\n");
    let text = scenario_text(case, 1, &probe);
    let until = format!("duration = \"{}ns\"", last + 10 * STEP_NS);
    let text = text.replace(&format!("duration = \"{}\"", case.scenario.until), &until);
    let mut recorder = Recorder::default();
    simulate(configure(dir, case, &text)?, &mut recorder)?;
    println!("{}: rate in bit/s after each acknowledgment", case.name());
    println!(
        "{:>8}  {:>4}  {:>8}  {:>6}  {:>12}  {:>14}  {:>14}",
        "t_ns", "flow", "ack_seq", "update", "u_smoothed", "ns-3", "ours"
    );
    let mut first_difference = None;
    for (i, row) in reference.rows().enumerate() {
        let (t, flow): (u64, u32) = (row.number("t_ns")?, row.number("flow")?);
        let theirs: f64 = row.number("new_bps")?;
        let ours = rate_after(&recorder.rates, flow, t);
        let differs = ours.is_none_or(|ours| RELATIVE * theirs < (ours - theirs).abs());
        if differs && first_difference.is_none() {
            first_difference = Some(i);
        }
        if first_difference.is_some_and(|first| first + AFTER < i) {
            break;
        }
        println!(
            "{t:>8}  {flow:>4}  {:>8}  {:>6}  {:>12}  {theirs:>14}  {:>14}{}",
            row.text("ack_seq")?,
            row.text("update")?,
            row.text("u_smoothed")?,
            ours.map_or_else(|| "none".to_owned(), |v| v.to_string()),
            if differs { "  <- differs" } else { "" },
        );
    }
    println!();
    Ok(first_difference.is_none())
}

/// Returns the rate just after `t_ns`: that of the first later sample of the flow.
fn rate_after(samples: &[RateSample], flow: u32, t_ns: u64) -> Option<f64> {
    let later = samples.partition_point(|s| s.t.as_ns() <= t_ns);
    let mut near = samples[later..].iter().take_while(|s| s.t.as_ns() <= t_ns + STEP_NS);
    near.find(|s| s.flow.0 == flow).map(|s| s.rate_bps as f64)
}
