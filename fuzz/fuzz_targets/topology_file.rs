//! Any text is a topology or an error.
#![no_main]

use fairrate_sim::topology::parse_topology_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(topology) = parse_topology_file(text) {
        assert!(2 <= topology.nodes.len());
        assert!(!topology.links.is_empty());
    }
});
