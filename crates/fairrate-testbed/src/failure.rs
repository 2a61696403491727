//! What goes wrong, and the exit code it has.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_report::publish::PublishError;
use fairrate_scenario::columns::ColumnsError;
use fairrate_scenario::{ResultsError, ScenarioError};

/// The exit code of a run that was interrupted: 128 and the number of SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Why a run on the testbed did not come about, or to a bad end.
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
    /// The scenario needs something that the testbed has not.
    #[error("the testbed cannot run `{scenario}`: {what}")]
    #[diagnostic(code(testbed::unfit))]
    Unfit {
        /// Name of the scenario.
        scenario: String,
        /// What it is.
        what: String,
        /// What to write instead.
        #[help]
        help: String,
    },
    /// Arguments that do not go together, or name nothing.
    #[error("{message}")]
    #[diagnostic(code(testbed::usage))]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// This machine or this user cannot have a testbed.
    #[error("{message}")]
    #[diagnostic(code(testbed::machine))]
    Machine {
        /// What is missing.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// The kernel does not have the algorithm.
    #[error("{message}")]
    #[diagnostic(code(testbed::algorithm))]
    Algorithm {
        /// Why not.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// A tool or a call of the system failed.
    #[error("{doing} failed: {cause}")]
    #[diagnostic(code(testbed::system))]
    System {
        /// What was being done.
        doing: String,
        /// Why not.
        cause: String,
    },
    /// The run came to a bad end.
    #[error("the run failed: {cause}")]
    #[diagnostic(code(run::failed), help("what there was until then is in `{}`", dir.display()))]
    Run {
        /// Why.
        cause: String,
        /// Its results.
        dir: PathBuf,
    },
}

impl Failure {
    /// An error of the system while something was being done.
    pub fn system(doing: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::System { doing: doing.into(), cause: cause.to_string() }
    }

    /// An error of reading or writing a file.
    pub fn io(doing: &str, path: &Path, cause: impl std::fmt::Display) -> Self {
        Self::system(format!("{doing} `{}`", path.display()), cause)
    }

    fn code(&self) -> u8 {
        use ResultsError::{InUse, NoResults, Occupied};
        match self {
            Self::Results(error) if !matches!(error, Occupied { .. } | NoResults { .. } | InUse { .. }) => 1,
            Self::System { .. } | Self::Run { .. } => 1,
            _ => 2,
        }
    }

    /// Tells it on stderr, and says which exit code it has.
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
