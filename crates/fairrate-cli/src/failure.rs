//! Failures of commands and their exit codes.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_allocate::FileError;
use fairrate_bench::BenchError;
use fairrate_experiment::columns::ColumnsError;
use fairrate_report::index::IndexError;
use fairrate_report::publish::PublishError;
use fairrate_results::ResultsError;
use fairrate_scenario::{ScenarioError, printable};
use miette::{NamedSource, SourceSpan};

use crate::{error_json, terminal};

/// The exit code of an interrupted run: 128 plus the number of SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum Failure {
    /// A scenario that cannot be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// Results that cannot be written or read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Results(#[from] ResultsError),
    /// A name that is not known.
    #[error("{what} `{name}` is not known")]
    #[diagnostic(code(cli::unknown_name))]
    UnknownName {
        /// The kind of thing it should name.
        what: &'static str,
        /// The name as written.
        name: String,
        /// A suggestion: the nearest known name, or all of them.
        #[help]
        help: String,
    },
    /// A directory that is not of the kind a command needs.
    #[error("`{}` {problem}", dir.display())]
    #[diagnostic(code(cli::directory))]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// A file of a network with an error.
    #[error("{message}")]
    #[diagnostic(code(cli::input_file))]
    InputFile {
        /// The problem.
        message: String,
        /// The file.
        #[source_code]
        file: Arc<NamedSource<String>>,
        /// Place of the error in the file.
        #[label("here")]
        place: SourceSpan,
        /// The text to write instead.
        #[help]
        help: Option<String>,
    },
    /// A file of a network that cannot be read.
    #[error("`{}` cannot be read: {cause}", path.display())]
    #[diagnostic(code(cli::unreadable))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// Arguments that do not go together.
    #[error("{message}")]
    #[diagnostic(code(cli::usage))]
    Usage {
        /// The problem.
        message: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// Too little memory for a command.
    #[error("{what} needs {needed} of memory, and there are {available}")]
    #[diagnostic(code(cli::memory))]
    Memory {
        /// The part that needs the memory.
        what: String,
        /// Amount of memory needed.
        needed: String,
        /// Amount of memory available.
        available: String,
        /// The remedy.
        #[help]
        help: String,
    },
    /// A method of allocation that gave up. Its rates are printed.
    #[error("{method} is {residual:.1e} from the optimum after {iterations} iterations")]
    #[diagnostic(code(allocate::not_converged))]
    NotConverged {
        /// The method.
        method: &'static str,
        /// Number of iterations after which it gave up.
        iterations: u32,
        /// Distance of its rates from the optimum.
        residual: f64,
        /// A suggestion.
        #[help]
        help: String,
    },
    /// A failure of the reference method to prove that its rates are optimal.
    #[error("{cause}")]
    #[diagnostic(
        code(allocate::no_optimum),
        help("weights or capacities differ by too many orders of magnitude for this alpha")
    )]
    NoOptimum {
        /// Description of the gap.
        cause: String,
    },
    /// An error of reading or writing another file.
    #[error("{doing} `{}` failed: {cause}", path.display())]
    #[diagnostic(code(cli::io))]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// A run of a benchmark that failed.
    #[error(transparent)]
    #[diagnostic(code(bench::failed))]
    Bench(BenchError),
    /// A run that failed.
    #[error("the run failed: {cause}")]
    #[diagnostic(code(run::failed), help("what there was until then is in `{}`", dir.display()))]
    Run {
        /// The cause.
        cause: String,
        /// The directory of its results.
        dir: PathBuf,
    },
    /// Figures without data to draw. The other figures were drawn.
    #[error("{n_undrawn} of {n_figures} figures could not be drawn")]
    #[diagnostic(code(cli::unreadable), help("{each}"))]
    Undrawn {
        /// Number of these figures.
        n_undrawn: usize,
        /// Number of all figures.
        n_figures: usize,
        /// Name and cause for each of them, a line each.
        each: String,
    },
    /// Columns of a comparison that the scenario refuses.
    #[error("{n_refused} of {n_columns} columns are refused")]
    #[diagnostic(code(cli::refused), help("{each}"))]
    Refused {
        /// Number of these columns.
        n_refused: usize,
        /// Number of all columns.
        n_columns: usize,
        /// Names, place and reason of each of them, and the remedy.
        each: String,
    },
    /// Runs of a comparison that failed.
    #[error("{n_failed} of {n_runs} runs failed")]
    #[diagnostic(code(run::failed), help("{each}"))]
    Runs {
        /// Number of failed runs.
        n_failed: usize,
        /// Number of all runs.
        n_runs: usize,
        /// Directory and cause for each failed run, a line each.
        each: String,
    },
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Scenario(error) => error.into(),
            error @ BenchError::Run { .. } => Self::Bench(error),
        }
    }
}

impl From<ColumnsError> for Failure {
    fn from(error: ColumnsError) -> Self {
        match error {
            ColumnsError::UnknownName { what, name, help } => Self::UnknownName { what, name, help },
            ColumnsError::Usage { message, help } => Self::Usage { message, help },
        }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Self::io(error.doing, &error.path, error.source)
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::File(error) => error.into(),
            IndexError::Results(error) => error.into(),
        }
    }
}

impl Failure {
    /// Returns the failure for an error of reading or writing `path`.
    pub fn io(doing: &'static str, path: &Path, cause: impl std::fmt::Display) -> Self {
        Self::Io { doing, path: path.to_owned(), cause: cause.to_string() }
    }

    /// Returns the failure for an error in an input file, shown in its text.
    pub fn input_file(path: &Path, text: &str, error: FileError) -> Self {
        let start: usize = text.split_inclusive('\n').take(error.line.saturating_sub(1)).map(str::len).sum();
        let line = text[start..].lines().next().unwrap_or_default();
        let (from, to) = error.column.unwrap_or((0, line.len()));
        let file = Arc::new(NamedSource::new(path.to_string_lossy(), printable(text).into_owned()));
        Self::InputFile { message: error.message, file, place: (start + from..start + to).into(), help: error.help }
    }

    /// Returns the failure for a name that is not among `known`.
    pub fn unknown_name(what: &'static str, name: &str, known: &[&str]) -> Self {
        ColumnsError::unknown_name(what, name, known).into()
    }

    /// Returns the exit code of the failure.
    fn code(&self) -> u8 {
        let bad_directory = |e: &ResultsError| {
            use ResultsError::{InUse, NoResults, Occupied, OtherKind, Replaced};
            matches!(e, Occupied { .. } | OtherKind { .. } | NoResults { .. } | InUse { .. } | Replaced { .. })
        };
        match self {
            Self::Scenario(_)
            | Self::Refused { .. }
            | Self::UnknownName { .. }
            | Self::Directory { .. }
            | Self::InputFile { .. }
            | Self::Usage { .. }
            | Self::Memory { .. }
            | Self::Undrawn { .. }
            | Self::Unreadable { .. } => 2,
            Self::Results(error) if bad_directory(error) => 2,
            Self::Results(_)
            | Self::Io { .. }
            | Self::Run { .. }
            | Self::Runs { .. }
            | Self::Bench(_)
            | Self::NotConverged { .. }
            | Self::NoOptimum { .. } => 1,
        }
    }

    /// Prints the error, as JSON or as text, and returns its exit code.
    pub fn tell(self, json: bool) -> ExitCode {
        let code = self.code();
        let text = if json {
            error_json::line(&self, self.path(), code)
        } else {
            let styled = std::io::stderr().is_terminal();
            let text = format!("{:?}\n", miette::Report::new(self));
            terminal::harmless(&text, styled).into_owned()
        };
        // If stderr cannot be written, the exit code still reports the failure.
        let _ = std::io::stderr().write_all(text.as_bytes());
        ExitCode::from(code)
    }

    /// Returns the file or directory that the error is about, if that is not the text it shows.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Scenario(error) => error.first_file(),
            Self::Results(error) => Some(error.path()),
            Self::Directory { dir: path, .. }
            | Self::Unreadable { path, .. }
            | Self::Io { path, .. }
            | Self::Run { dir: path, .. } => Some(path),
            _ => None,
        }
    }
}
