//! Compiles the laws for the host, and with the feature `bpf` the programs for the kernel.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The BPF programs, by the name of their file in `bpf`.
const PROGRAMS: [&str; 7] = ["theta", "powertcp", "rocc", "ratemp", "dctcp", "perc", "move"];
/// Names of clang's executable, the usual one first.
const CLANGS: [&str; 6] = ["clang", "clang-19", "clang-17", "clang-16", "clang-15", "clang-14"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=tests/kernel/refused.bpf.c");
    cc::Build::new().file("bpf/native.c").warnings_into_errors(true).opt_level(2).compile("fairrate_laws");
    if env::var_os("CARGO_FEATURE_BPF").is_some() {
        for name in PROGRAMS {
            compile(name, "bpf");
        }
        compile("refused", "tests/kernel");
    }
}

/// Compiles `DIR/NAME.bpf.c` to `OUT_DIR/NAME.bpf.o`.
fn compile(name: &str, dir: &str) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = clang().expect("the feature `bpf` needs clang: install it, or name it in the variable CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join(format!("{name}.bpf.o"));
    // libbpf's own headers, as libbpf-sys has unpacked them.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys tells where its headers are");
    let mut command = Command::new(&clang);
    command.args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-I"]);
    let status = command.arg(headers).args(["-c", &format!("{dir}/{name}.bpf.c"), "-o"]).arg(&out).status();
    assert!(status.is_ok_and(|s| s.success()), "{clang} cannot compile {dir}/{name}.bpf.c");
}

fn clang() -> Option<String> {
    let named = env::var("CLANG").ok();
    let works = |name: &String| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    named.into_iter().chain(CLANGS.map(str::to_owned)).find(works)
}
