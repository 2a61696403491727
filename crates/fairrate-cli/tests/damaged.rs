//! Damaged results: `report` draws the readable part or prints an error, and never panics.

use std::path::Path;

use crate::common::{run, small_scenario, stderr};
use fairrate_sim::rng::{Purpose, Stream};

/// Number of mutations of each file.
const MUTATIONS: usize = 12;

/// Returns `data` with a byte changed, a piece removed, a piece repeated, or its end cut off.
fn mutated(draws: &mut Stream, data: &[u8]) -> Vec<u8> {
    let mut below = |n: usize| draws.below(n as u64) as usize;
    let (mut data, at, length) = (data.to_vec(), below(data.len()), 1 + below(30));
    let piece = at..(at + length).min(data.len());
    match below(4) {
        0 => data[at] = below(256) as u8,
        1 => drop(data.drain(piece)),
        2 => {
            let again = data[piece].to_vec();
            drop(data.splice(at..at, again));
        }
        _ => data.truncate(at),
    }
    data
}

/// Runs `report` on `dir` with every mutation of one of its files.
fn check(dir: &Path, file: &Path) {
    let whole = std::fs::read(file).unwrap();
    let mut draws = Stream::new(1, 0, Purpose::Test);
    for n in 0..MUTATIONS {
        let data = mutated(&mut draws, &whole);
        std::fs::write(file, &data).unwrap();
        let output = run(&["report", dir.to_str().unwrap()]);
        let (code, text) = (output.status.code(), stderr(&output));
        assert!(matches!(code, Some(0..=2)), "{} mutation {n}: {code:?}\n{text}", file.display());
        assert!(code == Some(0) || !text.is_empty(), "{} mutation {n} fails without a word", file.display());
    }
    std::fs::write(file, whole).unwrap();
}

#[test]
fn a_damaged_comparison_is_drawn_or_refused() {
    let scenario = small_scenario("damaged_comparison");
    let out = scenario.with_file_name("out");
    let output =
        run(&["compare", scenario.to_str().unwrap(), "--out", out.to_str().unwrap(), "--cc", "hpcc,dctcp", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for file in ["compare.json", "hpcc/summary.json", "hpcc/flows.parquet"] {
        check(&out, &out.join(file));
    }
}
