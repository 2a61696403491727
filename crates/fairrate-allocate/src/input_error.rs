//! Errors about a text file, with their position.

use std::ops::Range;

/// An error in a text file, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Line number, from 1.
    pub line: usize,
    /// Range of bytes in the line, or `None` for the whole line.
    pub column: Option<(usize, usize)>,
    /// Description of the error, in lower case and with no final stop.
    pub message: String,
    /// Suggested correction, if there is one.
    pub help: Option<String>,
}

impl FileError {
    /// Creates an error about a whole line.
    #[must_use]
    pub fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, column: None, message: message.into(), help: None }
    }

    /// Sets the error's range of bytes in the line.
    #[must_use]
    pub fn at(self, column: Range<usize>) -> Self {
        Self { column: Some((column.start, column.end)), ..self }
    }

    /// Sets the suggested correction.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}
