//! What is wrong with a text file, and where.

use std::ops::Range;

/// A text file that cannot be read, with the place of the trouble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Line, from 1.
    pub line: usize,
    /// Bytes of that line that are meant, if not the whole line.
    pub column: Option<(usize, usize)>,
    /// What is wrong, in lower case and with no final stop.
    pub message: String,
    /// What would be right, if that can be said.
    pub help: Option<String>,
}

impl FileError {
    /// An error about a whole line.
    #[must_use]
    pub fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, column: None, message: message.into(), help: None }
    }

    /// The same about some bytes of the line.
    #[must_use]
    pub fn at(self, column: Range<usize>) -> Self {
        Self { column: Some((column.start, column.end)), ..self }
    }

    /// The same with what would be right.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// The member of `names` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    // A name that has the word as one of its parts means the same more likely than one that is spelled alike.
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
