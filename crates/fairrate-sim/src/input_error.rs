//! Errors of an input: in a field of a scenario's block, or at a place in a text file.

pub use fairrate_allocate::FileError;

/// A parameter that cannot be used, named by its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// The field of the struct that contains it; its name in scenarios is the same, with `-` for `_`.
    pub field: &'static str,
    /// The error, in lower case and with no final stop.
    pub message: String,
    /// A correct value or another remedy, if one is known.
    pub help: Option<String>,
}

impl FieldError {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}
