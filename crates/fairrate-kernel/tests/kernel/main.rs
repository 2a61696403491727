//! Programs in the running kernel: the tests need root, and print so without it.
//!
//! Names in TCP are shared by the whole machine, so these tests run one after the other and expect that nothing is
//! attached.

mod classes;
mod clean;
mod defaults;
mod hostile;
mod multipath;
mod perc;
mod traffic;

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

static MACHINE: Mutex<()> = Mutex::new(());

/// Locks the machine for a test; returns `None` without root.
fn machine() -> Option<MutexGuard<'static, ()>> {
    if !nix::unistd::geteuid().is_root() {
        println!("not run: needs root");
        return None;
    }
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(clean::is_clean(), "something is attached: `fairrate-kernel detach` before these tests");
    Some(machine)
}

fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairrate-kernel"));
    command.args(args.split_whitespace());
    command
}

fn run(args: &str) -> Output {
    command(args).output().expect("the program starts")
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
fn done(args: &str) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must be refused with exit code 2; returns the message.
#[track_caller]
fn refused(args: &str) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
