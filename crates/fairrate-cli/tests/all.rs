//! Tests of the command line in one program, which takes less time to build than a program for each file takes.
//! `docs.rs` is a program of its own, as pages are written by it, and so is `robust.rs`, which kills runs at times that
//! it measures beforehand: they are right if the load does not change.

mod common;

mod allocate;
mod check;
mod cli;
mod coexist;
mod damaged;
mod examples;
mod explain;
mod fidelity;
mod figure;
mod figures;
mod fingerprints;
mod import;
mod interrupt;
mod library;
mod many_runs;
mod new;
mod recovery;
mod show;
mod trace;
mod trims;
mod unbegun;
mod watch;

/// A file of tests that is not named here would not be run.
#[test]
fn all_files_are_named() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(dir).expect("the directory of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let is_own = ["all", "docs", "robust"].contains(&module);
        assert!(is_own || include_str!("all.rs").contains(&format!("\nmod {module};\n")), "{name}");
    }
}
