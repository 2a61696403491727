//! Build script that computes the keys of the crate's figures (`src/keys.rs`).

use std::fmt::Write;
use std::path::PathBuf;

#[path = "src/keys.rs"]
mod keys;

fn main() {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../{}", keys::REPORT);
    let sources = keys::read(&package).unwrap_or_else(|e| panic!("cannot read the sources: {e}"));
    let mut out = String::from("&[\n");
    for (id, key) in keys::of(&sources) {
        let _ = writeln!(out, "    (\"{id}\", \"{key}\"),");
    }
    let target = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("sources.rs");
    std::fs::write(target, out + "]\n").unwrap_or_else(|e| panic!("cannot write the keys: {e}"));
}
