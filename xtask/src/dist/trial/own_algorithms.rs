//! The examples of own algorithms, built as the unpacked archive has them, with the commands that they name.

use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::dist::{files, output, succeeds};

/// Builds the examples in the unpacked archive `top`, and runs those that are libraries. The program of
/// `own-algorithm`, with all of fairrate in it, and the client of the allocator are checked and not built. Packages of
/// others are those that this repository was built with.
///
/// # Errors
/// If one does not build or run.
pub fn run(top: &Path) -> Result<(), String> {
    let examples = top.join("share/fairrate/examples");
    let in_c = examples.join("library-c");
    let text = files::read(&in_c.join("theta_powertcp.c"))?;
    let commands = commands(&text);
    if commands.len() != 2 {
        return Err(format!("the head of the example in C names other commands than two: {commands:?}"));
    }
    for command in commands {
        output(shell(top, &in_c).arg(command))?;
    }
    let in_rust = examples.join("library-rust");
    succeeds(cargo_of_user(&in_rust).args(["build", "--release", "--locked", "--offline", "--quiet"]))?;
    output(shell(top, &in_rust).arg("fairrate run ../incast10.toml --cc ../../target/release/libecn_reno.so"))?;
    let packages = ["--package", "own-algorithm", "--package", "fairrate-daemon", "--bins", "--examples"];
    let mut check = cargo_of_user(&examples.join("own-algorithm"));
    succeeds(check.args(["check", "--locked", "--offline", "--quiet"]).args(packages))?;
    println!("tried: own algorithms: the libraries in C and Rust run; the crate and the allocator's client are sound");
    Ok(())
}

/// Returns the commands in the comment at the head of a file in C: lines that are indented by three spaces.
fn commands(text: &str) -> Vec<&str> {
    let head = text.split("*/").next().unwrap_or_default();
    head.lines().filter_map(|line| line.strip_prefix(" *   ")).collect()
}

/// Returns a shell in `dir` that has the programs of the archive in `PATH`, for one command.
fn shell(top: &Path, dir: &Path) -> Command {
    let mut command = Command::new("sh");
    let path = format!("{}:/usr/bin:/bin", top.join("bin").display());
    command.env_clear().env("PATH", path).env("HOME", top).current_dir(dir).arg("-c");
    command
}

/// Returns cargo in `dir`, which builds where it does by default.
fn cargo_of_user(dir: &Path) -> Command {
    let mut command = cargo::command(dir);
    command.env_remove("CARGO_TARGET_DIR");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_the_head() {
        let text =
            "/* An example.\n *\n *   cc -o x.so x.c\n *   fairrate run a.toml\n *\n * Text. */\nint x;\n *   no\n";
        assert_eq!(commands(text), ["cc -o x.so x.c", "fairrate run a.toml"]);
    }
}
