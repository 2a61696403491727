//! Compiles the BPF program.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "bpf/flowlets.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let object = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("flowlets.bpf.o");
    if let Err(why) = compile(Path::new(SOURCE), &object) {
        println!("cargo::error={why}");
    }
}

fn compile(source: &Path, object: &Path) -> Result<(), String> {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let kernel_arch = match arch.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        other => other,
    };
    // libbpf's headers, and those of the architecture, which are in a directory of their own on Debian.
    let libbpf = std::env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys says nothing of its headers")?;
    let of_arch = format!("/usr/include/{arch}-linux-gnu");
    let wanted = std::env::var("CLANG").ok();
    let names = wanted.as_deref().map_or(vec!["clang", "clang-19", "clang-16", "clang-14"], |name| vec![name]);
    for clang in names {
        let mut command = Command::new(clang);
        command.args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-I", &libbpf, "-I", &of_arch]);
        command.arg(format!("-D__TARGET_ARCH_{kernel_arch}")).arg("-c").arg(source).arg("-o").arg(object);
        match command.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).replace('\n', " ")),
            Err(_) => {}
        }
    }
    Err("the feature `bpf` needs clang: install it, or name it in CLANG".to_owned())
}
