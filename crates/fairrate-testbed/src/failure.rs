//! The failures of the program, and their exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_experiment::columns::ColumnsError;
use fairrate_report::publish::PublishError;
use fairrate_results::ResultsError;
use fairrate_scenario::ScenarioError;

/// The exit code of an interrupted run: 128 and the number of SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// The reason why a run on the testbed failed or was not possible.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum Failure {
    /// The scenario is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// Results cannot be written or read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Results(#[from] ResultsError),
    /// The scenario needs something that the testbed does not have.
    #[error("the testbed cannot run `{scenario}`: {what}")]
    #[diagnostic(code(testbed::unfit))]
    Unfit {
        /// Name of the scenario.
        scenario: String,
        /// The missing feature.
        what: String,
        /// The alternative to write.
        #[help]
        help: String,
    },
    /// Arguments that contradict each other, or name nothing.
    #[error("{message}")]
    #[diagnostic(code(testbed::usage))]
    Usage {
        /// Description of the error.
        message: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// A testbed is not possible on this machine or for this user.
    #[error("{message}")]
    #[diagnostic(code(testbed::machine))]
    Machine {
        /// The missing requirement.
        message: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// The kernel does not have the algorithm.
    #[error("{message}")]
    #[diagnostic(code(testbed::algorithm))]
    Algorithm {
        /// The reason.
        message: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// A tool or a system call failed.
    #[error("{doing} failed: {cause}")]
    #[diagnostic(code(testbed::system))]
    System {
        /// The action that failed.
        doing: String,
        /// The reason.
        cause: String,
    },
    /// The run failed.
    #[error("the run failed: {cause}")]
    #[diagnostic(code(run::failed), help("what there was until then is in `{}`", dir.display()))]
    Run {
        /// The reason.
        cause: String,
        /// The directory of its results.
        dir: PathBuf,
    },
}

impl Failure {
    /// Creates an error of the system during an action.
    pub fn system(doing: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::System { doing: doing.into(), cause: cause.to_string() }
    }

    /// Creates an error of reading or writing a file.
    pub fn io(doing: &str, path: &Path, cause: impl std::fmt::Display) -> Self {
        Self::system(format!("{doing} `{}`", path.display()), cause)
    }

    fn code(&self) -> u8 {
        use ResultsError::{InUse, NoResults, Occupied, OtherKind};
        match self {
            Self::Results(Occupied { .. } | OtherKind { .. } | NoResults { .. } | InUse { .. }) => 2,
            Self::Results(_) | Self::System { .. } | Self::Run { .. } => 1,
            _ => 2,
        }
    }

    /// Prints the failure on stderr, and returns its exit code.
    pub fn tell(self) -> ExitCode {
        let code = self.code();
        eprintln!("{:?}", miette::Report::new(self));
        ExitCode::from(code)
    }
}

impl From<ColumnsError> for Failure {
    fn from(error: ColumnsError) -> Self {
        Self::Usage { message: error.to_string(), help: error.help().to_owned() }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self::io(error.doing, &error.path, error.source)
    }
}
