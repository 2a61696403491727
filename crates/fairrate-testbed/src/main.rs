//! `fairrate-testbed`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairrate_testbed::cli::main()
}
