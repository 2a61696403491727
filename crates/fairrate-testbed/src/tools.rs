//! The programs that lay out networks: `ip` and `tc` of iproute2.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Runs `lines` as a batch of `ip` or `tc`, after `arguments`. Without lines, nothing is run.
///
/// # Errors
/// If the program is missing, or refuses a line; its own words are in the error.
pub fn batch(program: &str, arguments: &[&str], lines: &str) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    let doing = || format!("`{program} {} -batch`", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| missing(program, &e))?;
    let mut input = child.stdin.take().expect("its input is piped");
    // A program that stops reading prints the reason on stderr.
    let _ = input.write_all(lines.as_bytes());
    drop(input);
    let output = child.wait_with_output().map_err(|e| Failure::system(doing(), e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(Failure::system(doing(), said.trim())) }
}

/// Returns a program's own version text, in one line.
///
/// # Errors
/// If the program is missing.
pub fn version(program: &str) -> Result<String, Failure> {
    let output = Command::new(program).arg("-V").output().map_err(|e| missing(program, &e))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

fn missing(program: &str, error: &std::io::Error) -> Failure {
    if error.kind() != std::io::ErrorKind::NotFound {
        return Failure::system(format!("starting `{program}`"), error);
    }
    let help = "install iproute2, as by `apt-get install iproute2`".to_owned();
    Failure::Machine { message: format!("the program `{program}` is missing"), help }
}
