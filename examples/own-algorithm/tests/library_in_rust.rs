//! The Rust library in `../library-rust`: built, and run by this crate's program as by `fairrate`.

use std::path::{Path, PathBuf};
use std::process::Command;

use fairrate_results::Results;

const SCENARIO: &str = r#"
duration = "2ms"
[topology]
kind = "star"
hosts = 6
[switch]
ecn = { kmin = "75KB", kmax = "75KB", pmax = 1.0, at = "enqueue" }
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 5
bytes = "endless"
[[probe]]
flows = "all"
every = "10us"
"#;

/// Builds the library, and says where it is.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library-rust");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../library-rust/Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs its tests with it"));
    cargo.args(["build", "--quiet", "--manifest-path"]).arg(manifest).env("CARGO_TARGET_DIR", &target);
    assert!(cargo.status().expect("cargo starts").success());
    target.join("debug/libecn_reno.so")
}

/// DCTCP whose alpha stays 1 halves the window on a mark.
#[test]
fn the_library_in_rust_repeats_dctcp_with_alpha_one() {
    let library = library();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    std::fs::write(dir.join("marks.toml"), SCENARIO).expect("it can be written");
    let ccs = format!("dctcp:g=0,{0},{0}:decrease=0.75", library.display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_own-algorithm"));
    program.args(["compare", "marks.toml", "--out", "out", "--quiet", "--cc", &ccs]).current_dir(&dir);
    let output = program.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = |run: &str| Results::open(&dir.join("out").join(run)).expect("results");
    let (built_in, own) = (results("dctcp-g=0"), results("ecn-reno"));
    assert!(0 < own.summary.counts.ecn_marks);
    assert_eq!(own.summary.fingerprint, built_in.summary.fingerprint);
    let windows = |results: &Results| results.rates().expect("rates").iter().map(|r| r.cwnd_bytes).collect::<Vec<_>>();
    assert_eq!(windows(&own), windows(&built_in));
    assert_ne!(results("ecn-reno-decrease=0.75").summary.fingerprint, own.summary.fingerprint);
}
