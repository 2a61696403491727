//! The errors of the crate, each with its remedy.

/// The reason why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such algorithm, or an algorithm that does not run in the kernel.
    #[error("the kernel has no algorithm `{name}`")]
    UnknownAlgorithm {
        /// The given name.
        name: String,
        /// The alternative to write.
        help: String,
    },
    /// The algorithm has no such parameter.
    #[error("`{algorithm}` has no parameter `{name}`")]
    UnknownParameter {
        /// The algorithm.
        algorithm: String,
        /// The given name.
        name: String,
        /// The alternative to write.
        help: String,
    },
    /// A parameter that is not `name=value`, or whose value is out of range.
    #[error("in `{parameter}`: {message}")]
    Parameter {
        /// The given text.
        parameter: String,
        /// Description of the error.
        message: String,
        /// The alternative to write.
        help: String,
    },
    /// A setting that the simulator supports and the kernel does not.
    #[error("the kernel's {algorithm} has no `{setting}`")]
    NotInKernel {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter with its value.
        setting: String,
        /// The settings that the kernel supports.
        help: String,
    },
    /// The machine or its state does not allow it.
    #[error("{message}")]
    Refused {
        /// Description of the error.
        message: String,
        /// The remedy.
        help: String,
    },
    /// Another process prevents it.
    #[error("{message}")]
    Busy {
        /// The process, as text.
        message: String,
        /// The remedy.
        help: String,
    },
}

impl Error {
    /// Returns the exit code of a program that ends with this error: 1 if it may succeed the next time, and 2 for bad
    /// input or an unsuitable machine.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Busy { .. }) { 1 } else { 2 }
    }

    /// Creates the error [`Error::Refused`], with its remedy.
    pub fn refused(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), help: help.into() }
    }

    /// Creates the error of a failed system call.
    pub fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Self::refused(format!("cannot {what}: {error}"), "`fairrate-kernel status` tells what is attached")
    }

    /// Returns the remedy.
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
