//! Tests of the allocator in one program, which takes less time to build than a program for each file takes. Files that
//! read the log or the memory of their process are programs of their own, and so are `docs.rs` and the model.

mod common;

mod agent;
mod binary;
mod check;
mod keys;
mod log;
mod loopback;
mod malformed;
mod metrics_port;
mod oversubscription;
mod quota;
mod reload;
mod systemd;
mod tls;
mod version2;

/// A file of tests that is not named here would not be run.
#[test]
fn all_files_are_named() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(dir).expect("the directory of tests") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let Some(module) = name.strip_suffix(".rs") else { continue };
        let is_own = ["all", "client_log", "docs", "identity", "robust"].contains(&module);
        assert!(is_own || include_str!("all.rs").contains(&format!("\nmod {module};\n")), "{name}");
    }
}
