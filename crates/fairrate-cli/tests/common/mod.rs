//! Runs the binary as a shell does.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Returns a command of the binary, without the tester's terminal settings.
pub fn fairrate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairrate"));
    command.stdin(Stdio::null()).env_remove("COLUMNS").env("NO_COLOR", "1");
    command
}

/// Runs the binary to its end.
#[allow(dead_code)]
pub fn run(args: &[&str]) -> Output {
    fairrate().args(args).output().expect("the binary starts")
}

/// Returns a directory for this test, which does not exist yet.
pub fn fresh_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("an old directory of this test can go");
    }
    dir
}

/// Runs `scenario` with `more` arguments, from `s.toml` into `out` of a new directory for this test. Returns the
/// directory and the text on stdout.
#[allow(dead_code)]
pub fn simulated(name: &str, scenario: &str, more: &[&str]) -> (PathBuf, String) {
    let dir = fresh_dir(name);
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    let (path, out) = (dir.join("s.toml"), dir.join("out"));
    std::fs::write(&path, scenario).expect("the target directory can be written");
    let output = fairrate().arg("run").args([&path]).arg("--out").args([&out]).args(more).output();
    let output = output.expect("the binary starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (dir, stdout(&output))
}

/// Writes a small scenario to a file: three flows of 50 KB to one host.
#[allow(dead_code)]
pub fn small_scenario(name: &str) -> PathBuf {
    let dir = fresh_dir(name);
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    let path = dir.join("small.toml");
    std::fs::write(&path, SMALL).expect("the target directory can be written");
    path
}

#[allow(dead_code)]
const SMALL: &str = r#"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 4
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 3
bytes = "50KB"
[[probe]]
queue = "sw0->h0"
every = "1us"
[[probe]]
flows = "all"
every = "5us"
"#;

/// Returns a command's output on stdout.
#[allow(dead_code)]
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is UTF-8")
}

/// Returns a command's output on stderr.
#[allow(dead_code)]
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is UTF-8")
}

/// A running program, which is ended with its test, also if that fails.
#[allow(dead_code)]
pub struct Started(pub Option<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a program the signal of Ctrl-C, and returns what it printed until its end.
#[cfg(unix)]
#[allow(dead_code)]
pub fn interrupt(child: Child) -> Output {
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    child.wait_with_output().unwrap()
}
