//! `fairrate`, with the built-in algorithms.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairrate_cli::main_with(&fairrate_control::Registry::new())
}
