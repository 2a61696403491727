//! A check of PERC on Linux: flows that come and go over two bottlenecks reach the exact max-min rates in the kernel,
//! as in the simulator, and how many round trips that takes.

use std::path::Path;

use fairrate_allocate::{LinkId, MaxMin};
use fairrate_experiment::drive;
use fairrate_results::{RateRow, Results};
use fairrate_scenario::{Overrides, Scenario};

use super::{Bench, expect};

/// The bottlenecks of `examples/field/perc.toml` in bit/s, and the links of its flows.
const LINKS: [f64; 2] = [100e6, 60e6];
const PATHS: [&[u32]; 4] = [&[0, 1], &[0], &[1], &[1]];
/// Payload and wire bytes of a full packet: TCP's pacing rate on Linux counts payload.
const PAYLOAD: f64 = 1_420.0 / 1_514.0;
/// Base round-trip time of the longest path without the hosts' part: both links and back.
const RTT_NS: u64 = 8_000_000;
/// Rates have converged at the first time from which on they are near the exact ones for this long: PERC's section 4.2
/// has 10 round trips and 10 %.
const HOLDS_NS: u64 = 10 * RTT_NS;
const NEAR: f64 = 0.1;
/// Time before the end of a flow that is left out: a short flow then asks for less.
const END_NS: u64 = 50_000_000;
/// Relative error of the median of a rate once it has converged. It is the error of a record's words and of whole
/// bytes.
const EXACT: f64 = 1e-4;
/// Relative errors of a goodput. Where programs wait for a processor, sockets run empty.
const GOODPUT: std::ops::RangeInclusive<f64> = -0.15..=0.03;

/// A time in which the same flows are active: their numbers and their exact rates in bit/s.
struct Phase {
    from_ns: u64,
    until_ns: u64,
    flows: Vec<(u32, f64)>,
}

/// Runs the example on Linux and in the simulator.
pub fn settles(bench: &Bench) -> Result<(), String> {
    if let Some(what) = &bench.no_kernel {
        println!("not run: {what}");
        return Ok(());
    }
    let example = crate::root().join("examples/field/perc.toml");
    let linux = bench.run(&example, "perc")?;
    let effective = Scenario::load(&bench.dir.join("perc/scenario.toml"), &Overrides::default());
    let effective = effective.map_err(|e| e.to_string())?;
    let simulated = simulate(&bench.dir.join("perc-sim"), &effective)?;
    for (name, results, payload) in [("Linux", &linux, PAYLOAD), ("simulator", &simulated, 1.0)] {
        let rows = rates(results)?;
        for phase in phases(results)? {
            let after_ns = converged(&phase, &rows, payload).map_err(|e| format!("{name}: {e}"))?;
            let exact: Vec<f64> = phase.flows.iter().map(|(_, rate)| rate / 1e6).collect();
            let (from, round_trips) = (phase.from_ns / 1_000_000, after_ns as f64 / RTT_NS as f64);
            println!("  {name}, from {from} ms: {exact:?} Mb/s after {round_trips:.1} round trips");
            goodputs(&phase, &rows, after_ns).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

fn simulate(dir: &Path, scenario: &Scenario) -> Result<Results, String> {
    let place = fairrate_results::ResultsDir::claim(dir).map_err(|e| e.to_string())?;
    drive(scenario, &std::sync::Arc::new(place), &[], 1, &mut ()).map_err(|e| e.to_string())?;
    Results::open(dir).map_err(|e| e.to_string())
}

fn rates(results: &Results) -> Result<Vec<RateRow>, String> {
    results.rates().map_err(|e| e.to_string())
}

/// Returns the phases between arrivals and departures, with the exact rates of their flows.
fn phases(results: &Results) -> Result<Vec<Phase>, String> {
    let flows = results.flows().map_err(|e| e.to_string())?;
    let lives: Vec<(u32, u64, u64)> = flows
        .iter()
        .map(|flow| (flow.id, flow.start_ns, flow.fct_ns.map_or(u64::MAX, |fct| flow.start_ns + fct)))
        .collect();
    let mut changes: Vec<u64> = lives.iter().flat_map(|&(_, from, until)| [from, until]).collect();
    changes.sort_unstable();
    changes.dedup();
    let last_ns = rates(results)?.iter().map(|row| row.t_ns).max().unwrap_or(0);
    let phase = |pair: &[u64]| {
        let (from_ns, until_ns) = (pair[0], pair[1].min(last_ns));
        let mut ids: Vec<u32> = lives.iter().filter(|(_, a, b)| *a <= from_ns && from_ns < *b).map(|f| f.0).collect();
        ids.sort_unstable();
        let mut exact = MaxMin::new(LINKS);
        for &id in &ids {
            exact.add(PATHS[id as usize].iter().map(|&link| LinkId(link)), 1.0, f64::INFINITY);
        }
        let flows = ids.iter().copied().zip(exact.solve().iter().copied()).collect();
        Phase { from_ns, until_ns, flows }
    };
    let phases: Vec<Phase> = changes.windows(2).map(phase).collect();
    let n = phases.len();
    if n == 6 { Ok(phases) } else { Err(format!("{n} phases instead of 6: {flows:?}")) }
}

/// Returns the samples of a flow in the part of the phase that counts.
fn within<'a>(phase: &'a Phase, rows: &'a [RateRow], flow: u32) -> impl Iterator<Item = &'a RateRow> {
    let until_ns = phase.until_ns.saturating_sub(END_NS);
    rows.iter().filter(move |row| row.flow == flow && phase.from_ns <= row.t_ns && row.t_ns < until_ns)
}

/// Returns the time after which the rates of the phase have converged. Their medians from then on are the exact rates.
fn converged(phase: &Phase, rows: &[RateRow], payload: f64) -> Result<u64, String> {
    let off = |row: &RateRow, exact: f64| (row.rate_bps as f64 / payload - exact) / exact;
    // Times at which a rate is not near, or not known yet.
    let mut far: Vec<u64> = vec![phase.from_ns];
    for &(flow, exact) in &phase.flows {
        far.extend(within(phase, rows, flow).filter(|row| NEAR < off(row, exact).abs()).map(|row| row.t_ns));
        far.extend(within(phase, rows, flow).next().map(|row| row.t_ns));
    }
    far.sort_unstable();
    far.push(phase.until_ns.saturating_sub(END_NS));
    let begin = far
        .windows(2)
        .find(|pair| HOLDS_NS <= pair[1] - pair[0])
        .ok_or_else(|| format!("the rates from {} ms on do not converge", phase.from_ns / 1_000_000))?[0];
    for &(flow, exact) in &phase.flows {
        let mut offs: Vec<f64> =
            within(phase, rows, flow).filter(|row| begin < row.t_ns).map(|row| off(row, exact)).collect();
        offs.sort_unstable_by(f64::total_cmp);
        let median = offs.get(offs.len() / 2).copied().unwrap_or(f64::INFINITY);
        expect(median.abs() <= EXACT, || {
            format!("flow {flow} is {median:e} off {exact} bit/s in half of {} samples", offs.len())
        })?;
    }
    Ok(begin - phase.from_ns)
}

/// Checks the bytes that flows deliver in the phase after `after_ns`.
fn goodputs(phase: &Phase, rows: &[RateRow], after_ns: u64) -> Result<(), String> {
    for &(flow, exact) in &phase.flows {
        let late = |row: &&RateRow| phase.from_ns + after_ns + RTT_NS <= row.t_ns;
        let first = within(phase, rows, flow).find(late).ok_or("a phase is too short")?;
        let last = within(phase, rows, flow).last().ok_or("a phase has no samples")?;
        let bits = 8.0 * (last.delivered_bytes - first.delivered_bytes) as f64;
        let goodput = bits / (last.t_ns - first.t_ns).max(1) as f64 * 1e9;
        let off = goodput / (exact * PAYLOAD) - 1.0;
        expect(GOODPUT.contains(&off), || format!("flow {flow} delivers {goodput} bit/s, {off} off"))?;
    }
    Ok(())
}
