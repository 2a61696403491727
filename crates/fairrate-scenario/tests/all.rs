//! Tests of scenarios in one program, which takes less time to build than a program for each file takes. Files that
//! write pages or snapshots are programs of their own, and so are the random scenarios.

mod classes;
mod constants;
mod credit;
mod host_patterns;
mod host_queues;
mod measure;
mod returned;
mod servers;
mod stacks;
mod threads;
mod transports;
mod uet_failures;
mod warnings;
mod weights;
mod without_flows;

/// A file of tests that is not named here would not be run.
#[test]
fn all_files_are_named() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(dir).expect("the directory of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let is_own = ["all", "broken", "docs", "scenario"].contains(&module);
        assert!(is_own || include_str!("all.rs").contains(&format!("\nmod {module};\n")), "{name}");
    }
}
