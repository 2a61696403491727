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

/// Returns the member of `names` that `word` was probably meant to be, if one is near enough.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    // A name that has the word as one of its parts is a likelier meaning than a name with similar spelling.
    let score = |name: &'a str| {
        let is_part = 1 < word.len() && name.split(['_', '-']).any(|part| part.eq_ignore_ascii_case(word));
        (!is_part, strsim::levenshtein(word, name), name)
    };
    let near = names.into_iter().map(score).filter(|(is_alike, distance, _)| !is_alike || *distance <= limit);
    near.min().map(|(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        assert_eq!(nearest("spine1-lef2", ["spine1-leaf2", "spine1-leaf3"]), Some("spine1-leaf2"));
        assert_eq!(nearest("zzz", ["spine1-leaf2"]), None);
        assert_eq!(nearest("start", ["sport", "start_ns"]), Some("start_ns"));
        assert_eq!(nearest("size", ["src", "size_bytes"]), Some("size_bytes"));
        assert_eq!(nearest("sports", ["sport", "start_ns"]), Some("sport"));
    }
}
