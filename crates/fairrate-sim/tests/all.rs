//! All tests of whole networks in one program, which takes a third of the time to build that a program for each file
//! takes. `memory.rs` is a program of its own, as it counts allocations.

mod common;

mod balancing;
mod bfc;
mod bursts;
mod circuits;
mod classes;
mod closed_loop;
mod coalescing;
mod collectives;
mod convergence;
mod dctcp_model;
mod dependencies;
mod determinism;
mod entropy;
mod faults;
mod flowtune;
mod homa;
mod hull;
mod ideal;
mod idle_network;
mod imperfect_hosts;
mod irn;
mod jobs;
mod lossless;
mod mptcp;
mod ns3_marks;
mod packets;
mod path_loads;
mod perc;
mod qcn_pi_pacc;
mod queue_pairs;
mod queues;
mod rcp_xcp;
mod rerouting;
mod rocc;
mod rocc_random;
mod rtts;
mod servers;
mod sprayed_telemetry;
mod stacks;
mod switching;
mod tcp;
mod telemetry;
mod theory;
mod windows;
mod work;

/// A file of tests that is not named here would not be run.
#[test]
fn all_files_are_named() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(dir).expect("the directory of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        let is_own = ["all", "memory"].contains(&module);
        assert!(is_own || include_str!("all.rs").contains(&format!("\nmod {module};\n")), "{name}");
    }
}
