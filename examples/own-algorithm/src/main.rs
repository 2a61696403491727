//! `fairrate` with one algorithm more.

use std::process::ExitCode;

use fairrate_control::{Registry, RegistryError};
use own_algorithm::{MY_D2TCP, MyD2tcpConfig};

fn main() -> Result<ExitCode, RegistryError> {
    Ok(fairrate_cli::main_with(&Registry::new().with(MY_D2TCP, MyD2tcpConfig::new)?))
}
