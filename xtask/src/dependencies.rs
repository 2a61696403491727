//! `cargo xtask dependencies`: licences, sources and versions of all packages, held against `deny.toml` by cargo-deny.
//! Advisories need its database, which is on the network: `cargo deny check` alone looks at them.

use std::path::Path;
use std::process::Stdio;

use crate::cargo;

/// Runs `cargo deny`, if it is installed. Returns `true` if it finds no problem.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(root: &Path) -> Result<bool, String> {
    let mut version = cargo::command(root);
    version.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !cargo::succeeds(&mut version)? {
        println!("not run: needs cargo-deny, which `cargo install --locked cargo-deny` installs");
        return Ok(true);
    }
    cargo::run(root, &["deny", "--locked", "check", "licenses", "sources", "bans"])
}
