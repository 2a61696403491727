//! The backend of a run, which moves its packets: the simulator, or `fairrate-testbed` on network namespaces.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use fairrate_results::Results;
use fairrate_scenario::Overrides;

use crate::drive::End;
use crate::external;
use crate::failure::{Failure, INTERRUPTED};

/// The program that runs scenarios on Linux.
const PROGRAM: &str = "fairrate-testbed";

/// Means by which packets move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The simulator
    Sim,
    /// Network namespaces and the TCP of Linux; needs root
    Linux,
}

impl Backend {
    /// Returns the name of the backend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Linux => "linux",
        }
    }
}

/// The backends of a comparison.
#[derive(Clone, Debug)]
pub struct Backends {
    /// Each backend once, in the order of columns.
    all: Vec<Backend>,
    /// Factor by which rates are multiplied on Linux.
    scale: Option<f64>,
}

impl Backends {
    /// Returns the backends `asked` for. `scale` applies only to runs on Linux.
    ///
    /// # Errors
    /// If there is a scale and no Linux.
    pub fn new(asked: &[Backend], scale: Option<f64>) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for backend in asked {
            if !all.contains(backend) {
                all.push(*backend);
            }
        }
        if scale.is_some() && !all.contains(&Backend::Linux) {
            let help = "add `--backend sim,linux`, or set the rates with `--set`".to_owned();
            return Err(Failure::Usage { message: "`--scale` is for runs on Linux".to_owned(), help });
        }
        Ok(Self { all, scale })
    }

    /// Returns each backend.
    pub fn each(&self) -> impl Iterator<Item = Backend> + '_ {
        self.all.iter().copied()
    }

    /// Returns `true` if some runs are on Linux. Such runs must not be disturbed, and the simulator runs their networks
    /// as they really were.
    pub fn has_linux(&self) -> bool {
        self.all.contains(&Backend::Linux)
    }

    /// Returns the suffix of names of columns and directories, if some runs are on Linux.
    pub fn suffix(&self, backend: Backend) -> Option<&'static str> {
        self.has_linux().then(|| backend.name())
    }

    /// Runs a scenario on Linux. Errors have the text of the program `fairrate-testbed`.
    ///
    /// # Errors
    /// If the program cannot be run, or fails before it has results.
    pub fn run_on_linux(&self, file: &Path, overrides: &Overrides, label: &str, place: &Path) -> Result<End, Failure> {
        let program = external::program(OsStr::new(PROGRAM));
        let mut command = Command::new(&program);
        command.arg(file).arg("--out").arg(place).args(["--label", label, "--quiet"]);
        for (key, value) in &overrides.sets {
            command.args(["--set", &format!("{key}={value}")]);
        }
        let seed = overrides.seed.map(|seed| seed.to_string());
        let scale = self.scale.map(|scale| scale.to_string());
        let options = [("--cc", overrides.cc.clone()), ("--seed", seed), ("--scale", scale)];
        for (name, value) in options {
            command.args(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        let output = command.stdin(Stdio::null()).output().map_err(|e| missing(&program, &e))?;
        match output.status.code() {
            Some(0) => Ok(End::Complete),
            Some(code) if code == i32::from(INTERRUPTED) => Ok(End::Interrupted),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(Failure::Run { cause: said, dir: place.to_owned() })
            }
        }
    }
}

/// Returns the path of the scenario of a run on Linux as it really was.
///
/// # Errors
/// If that run is not complete.
pub fn effective(place: &Path) -> Result<PathBuf, Failure> {
    let state = Results::open(place)?.summary.state;
    if state == "complete" {
        return Ok(place.join("scenario.toml"));
    }
    let cause = format!("its twin on Linux is {state}, so the network to be simulated is not known");
    Err(Failure::Run { cause, dir: place.to_owned() })
}

fn missing(program: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage {
        message: format!("`{}` cannot be run: {error}", program.display()),
        help: format!("build it beside this program: `cargo build --release -p {PROGRAM}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_apart_once_linux_is_there() {
        let alone = Backends::new(&[Backend::Sim], None).unwrap();
        assert_eq!((alone.suffix(Backend::Sim), alone.has_linux()), (None, false));
        let both = Backends::new(&[Backend::Sim, Backend::Linux, Backend::Sim], Some(0.01)).unwrap();
        assert_eq!(both.each().collect::<Vec<_>>(), [Backend::Sim, Backend::Linux]);
        assert_eq!(both.suffix(Backend::Sim), Some("sim"));
    }

    #[test]
    fn a_scale_without_linux_is_refused() {
        let refused = Backends::new(&[Backend::Sim], Some(0.01)).unwrap_err();
        assert_eq!(refused.to_string(), "`--scale` is for runs on Linux");
    }
}
