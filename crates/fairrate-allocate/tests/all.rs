//! Tests of allocations in one program, which takes less time to build than a program for each file takes.
//! `realtime_allocations.rs` counts what its process allocates, so it is a program of its own.

mod common;

mod fastpass;
mod max_min;
mod num;
mod read;
mod realtime;
mod sync_perc;

/// A file of tests that is not named here would not be run.
#[test]
fn all_files_are_named() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(dir).expect("the directory of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let is_own = ["all", "realtime_allocations"].contains(&module);
        assert!(is_own || include_str!("all.rs").contains(&format!("\nmod {module};\n")), "{name}");
    }
}
