//! What can go wrong, each with what to do about it.

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such algorithm, or none that runs in the kernel.
    #[error("the kernel has no algorithm `{name}`")]
    UnknownAlgorithm {
        /// As given.
        name: String,
        /// What to write instead.
        help: String,
    },
    /// The algorithm has no such parameter.
    #[error("`{algorithm}` has no parameter `{name}`")]
    UnknownParameter {
        /// The algorithm.
        algorithm: String,
        /// As given.
        name: String,
        /// What to write instead.
        help: String,
    },
    /// A parameter that is no `name=value`, or whose value does not fit.
    #[error("in `{parameter}`: {message}")]
    Parameter {
        /// As given.
        parameter: String,
        /// What is wrong.
        message: String,
        /// What to write instead.
        help: String,
    },
    /// The simulator can do it and the kernel not.
    #[error("the kernel's {algorithm} has no `{setting}`")]
    NotInKernel {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter with its value.
        setting: String,
        /// What the kernel has.
        help: String,
    },
    /// The machine or its state does not allow it.
    #[error("{message}")]
    Refused {
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    },
    /// Another process keeps this one from it.
    #[error("{message}")]
    Busy {
        /// Which.
        message: String,
        /// What to do.
        help: String,
    },
}

impl Error {
    /// Returns the exit code of a program that ends by this error: 1 if it may succeed the next time, and 2 for bad input or a machine
    /// that cannot.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Busy { .. }) { 1 } else { 2 }
    }

    /// Refused, and what to do about it.
    pub fn refused(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), help: help.into() }
    }

    /// A call to the system that failed.
    pub fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Self::refused(format!("cannot {what}: {error}"), "`fairrate-kernel status` tells what is attached")
    }

    /// What to do about it.
    pub fn help(&self) -> &str {
        match self {
            Self::UnknownAlgorithm { help, .. }
            | Self::UnknownParameter { help, .. }
            | Self::Parameter { help, .. }
            | Self::NotInKernel { help, .. }
            | Self::Refused { help, .. }
            | Self::Busy { help, .. } => help,
        }
    }
}
