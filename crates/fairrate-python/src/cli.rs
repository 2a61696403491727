//! The command line, for the program `fairrate` that comes with the package.

use std::ffi::OsString;
use std::process::ExitCode;

use fairrate_control::Registry;
use pyo3::prelude::*;

/// Runs the command line with the arguments `args`, the first of which is the program's name, and returns its exit
/// code.
#[pyfunction]
pub fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    let code = py.detach(|| fairrate_cli::main_of(&Registry::new(), args));
    // The standard library gives the number of an exit code only to the system.
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(1)
}
