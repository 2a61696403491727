//! Any text is a flow list or an error.
#![no_main]

use fairrate_sim::topology::Star;
use fairrate_sim::workload::parse_flow_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let star = Star { hosts: 4, rate: "25Gbps".parse().expect("a rate"), delay: "1us".parse().expect("a time") };
    let topology = star.build();
    if let Ok(flows) = parse_flow_list(text, &topology, &["pg".to_owned()]) {
        assert!(flows.is_sorted_by_key(|f| f.start));
        assert!(flows.iter().all(|f| f.src != f.dst && topology.is_host(f.src) && topology.is_host(f.dst)));
    }
});
