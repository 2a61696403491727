//! What goes wrong, and the exit code it has.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_allocate::FileError;
use fairrate_report::publish::PublishError;
use fairrate_scenario::columns::ColumnsError;
use fairrate_scenario::{ResultsError, ScenarioError, printable};
use miette::{NamedSource, SourceSpan};

use crate::{error_json, terminal};

/// The exit code of a run that was interrupted: 128 and the number of SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum Failure {
    /// The scenario cannot be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    /// Results cannot be written or read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Results(#[from] ResultsError),
    /// A name that is not known.
    #[error("{what} `{name}` is not known")]
    #[diagnostic(code(cli::unknown_name))]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// As written.
        name: String,
        /// What it may have been meant to be.
        #[help]
        help: String,
    },
    /// A directory that is not what a command needs.
    #[error("`{}` {problem}", dir.display())]
    #[diagnostic(code(cli::directory))]
    Directory {
        /// Which.
        dir: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// A file of a network that says something wrong.
    #[error("{message}")]
    #[diagnostic(code(cli::input_file))]
    InputFile {
        /// What is wrong.
        message: String,
        /// The file.
        #[source_code]
        file: Arc<NamedSource<String>>,
        /// Where.
        #[label("here")]
        place: SourceSpan,
        /// What to write.
        #[help]
        help: Option<String>,
    },
    /// A file of a network that cannot be read.
    #[error("`{}` cannot be read: {cause}", path.display())]
    #[diagnostic(code(cli::unreadable))]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        cause: String,
    },
    /// Arguments that do not go together.
    #[error("{message}")]
    #[diagnostic(code(cli::usage))]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// There is too little memory for what was asked.
    #[error("{what} needs {needed} of memory, and there are {available}")]
    #[diagnostic(code(cli::memory))]
    Memory {
        /// What needs it.
        what: String,
        /// How much.
        needed: String,
        /// How much there is.
        available: String,
        /// What to do.
        #[help]
        help: String,
    },
    /// A method of allocation gave up. What it had is printed.
    #[error("{method} is {residual:.1e} from the optimum after {iterations} iterations")]
    #[diagnostic(code(allocate::not_converged))]
    NotConverged {
        /// Which.
        method: &'static str,
        /// After how many iterations.
        iterations: u32,
        /// How far it is from the optimum.
        residual: f64,
        /// What may help.
        #[help]
        help: String,
    },
    /// The reference of allocations cannot prove its rates.
    #[error("{cause}")]
    #[diagnostic(
        code(allocate::no_optimum),
        help("weights or capacities differ by too many orders of magnitude for this alpha")
    )]
    NoOptimum {
        /// By how much it fails.
        cause: String,
    },
    /// Reading or writing another file failed.
    #[error("{doing} `{}` failed: {cause}", path.display())]
    #[diagnostic(code(cli::io))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        cause: String,
    },
    /// A run of a benchmark came to a bad end.
    #[error("{job} under {cc} failed: {cause}")]
    #[diagnostic(code(bench::failed))]
    Bench {
        /// Which.
        job: String,
        /// Under which algorithm.
        cc: String,
        /// Why.
        cause: String,
    },
    /// A run came to a bad end.
    #[error("the run failed: {cause}")]
    #[diagnostic(code(run::failed), help("what there was until then is in `{}`", dir.display()))]
    Run {
        /// Why.
        cause: String,
        /// Its results.
        dir: PathBuf,
    },
    /// Some figures have nothing to be drawn from. The others were drawn.
    #[error("{n_undrawn} of {n_figures} figures could not be drawn")]
    #[diagnostic(code(cli::unreadable), help("{each}"))]
    Undrawn {
        /// How many.
        n_undrawn: usize,
        /// Of how many.
        n_figures: usize,
        /// Which, and why; a line each.
        each: String,
    },
    /// Some runs of a comparison came to a bad end.
    #[error("{n_failed} of {n_runs} runs failed")]
    #[diagnostic(code(run::failed), help("{each}"))]
    Runs {
        /// How many.
        n_failed: usize,
        /// Of how many.
        n_runs: usize,
        /// Where, and why; a line each.
        each: String,
    },
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

impl Failure {
    /// An error of reading or writing.
    pub fn io(doing: &'static str, path: &Path, cause: impl std::fmt::Display) -> Self {
        Self::Io { doing, path: path.to_owned(), cause: cause.to_string() }
    }

    /// An input file's error, shown in its text.
    pub fn input_file(path: &Path, text: &str, error: FileError) -> Self {
        let start: usize = text.split_inclusive('\n').take(error.line.saturating_sub(1)).map(str::len).sum();
        let line = text[start..].lines().next().unwrap_or_default();
        let (from, to) = error.column.unwrap_or((0, line.len()));
        let file = Arc::new(NamedSource::new(path.to_string_lossy(), printable(text).into_owned()));
        Self::InputFile { message: error.message, file, place: (start + from..start + to).into(), help: error.help }
    }

    /// A name that is not among `known`.
    pub fn unknown_name(what: &'static str, name: &str, known: &[&str]) -> Self {
        ColumnsError::unknown_name(what, name, known).into()
    }

    /// The exit code it has.
    fn code(&self) -> u8 {
        let bad_directory = |e: &ResultsError| {
            use ResultsError::{InUse, NoResults, Occupied};
            matches!(e, Occupied { .. } | NoResults { .. } | InUse { .. })
        };
        match self {
            Self::Scenario(_)
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
            | Self::Bench { .. }
            | Self::NotConverged { .. }
            | Self::NoOptimum { .. } => 1,
        }
    }

    /// Prints the error, as JSON or for people, and says which exit code it has.
    pub fn tell(self, json: bool) -> ExitCode {
        let code = self.code();
        let text = if json {
            error_json::line(&self, self.path(), code)
        } else {
            let styled = std::io::stderr().is_terminal();
            let text = format!("{:?}\n", miette::Report::new(self));
            terminal::harmless(&text, styled).into_owned()
        };
        // Where nobody hears it, the exit code still says it.
        let _ = std::io::stderr().write_all(text.as_bytes());
        ExitCode::from(code)
    }

    /// The file or directory it is about, if that is not the text it shows.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Results(error) => Some(error.path()),
            Self::Directory { dir: path, .. }
            | Self::Unreadable { path, .. }
            | Self::Io { path, .. }
            | Self::Run { dir: path, .. } => Some(path),
            _ => None,
        }
    }
}
