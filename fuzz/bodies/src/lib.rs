//! What each fuzz target does with an input. The targets in `fuzz` call these functions with what libFuzzer makes up; the
//! tests of this crate call them with a small corpus and a few thousand mutations of it, on any toolchain.
//!
//! A function returns if all is well, and panics otherwise.

mod frames;
mod results;

use std::path::Path;

use fairrate_allocate::{FileError, Network, max_min, parse_flows, parse_host_flows, parse_links};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::topology::{Star, parse_topology_file};
use fairrate_sim::workload::parse_flow_list;
use fairrate_units::{Rate, Time};

pub use frames::frames;
pub use results::{FILES, results, whole};

/// Any text is a scenario or an error, and a scenario's resolved text is that same scenario.
///
/// # Panics
/// If that does not hold.
pub fn scenario(text: &str) {
    // Files are the matter of the other targets, and a fuzzer should not open any.
    if text.contains("path") || text.contains('\\') {
        return;
    }
    let read =
        |text: &str| Scenario::from_toml(text, "fuzz.toml", Path::new("no-such-directory"), &Overrides::default());
    match read(text) {
        Ok(scenario) => {
            let again = read(&scenario.to_toml()).expect("a resolved scenario reads");
            assert_eq!(scenario.to_toml(), again.to_toml());
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says what is wrong"),
    }
}

/// Any text is a flow list or an error.
///
/// # Panics
/// If that does not hold.
pub fn flow_list(text: &str) {
    let topology = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    if let Ok(flows) = parse_flow_list(text, &topology, &["pg".to_owned()]) {
        assert!(flows.is_sorted_by_key(|f| f.start));
        assert!(flows.iter().all(|f| f.src != f.dst && topology.is_host(f.src) && topology.is_host(f.dst)));
    }
}

/// Any text is a topology or an error.
///
/// # Panics
/// If that does not hold.
pub fn topology_file(text: &str) {
    if let Ok(topology) = parse_topology_file(text) {
        assert!(2 <= topology.nodes.len());
        assert!(!topology.links.is_empty());
    }
}

/// Any two texts are the links and flows of an allocation, or an error with a place in the text.
///
/// # Panics
/// If that does not hold.
pub fn allocate_files(links: &str, flows: &str) {
    // Hosts called by a number, as in a topology file.
    let host = |name: &str| name.parse::<u8>().map_err(|e| (e.to_string(), None));
    let _ = parse_host_flows(flows, host).inspect_err(|e| assert_in(flows, e));
    let parsed = parse_links(links).inspect_err(|e| assert_in(links, e));
    let Ok(links) = parsed else { return };
    let parsed = parse_flows(flows, &links).inspect_err(|e| assert_in(flows, e));
    let Ok(flows) = parsed else { return };
    let allocation = max_min(&Network { links, flows }).expect("what is read has an allocation");
    assert!(allocation.rates_bps.iter().all(|rate_bps| rate_bps.is_finite() && 0.0 < *rate_bps));
}

fn assert_in(text: &str, error: &FileError) {
    let line = text.lines().nth(error.line - 1).unwrap_or_default();
    assert!(error.column.is_none_or(|(from, to)| line.get(from..to).is_some()), "{error:?}");
}
