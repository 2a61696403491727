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
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, column: None, message: message.into(), help: None }
    }

    pub(crate) fn at(self, column: Range<usize>) -> Self {
        Self { column: Some((column.start, column.end)), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// The member of `names` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    let scored = names.into_iter().map(|name| (edits(word, name), name));
    scored.filter(|(n, _)| *n <= limit).min().map(|(_, name)| name)
}

/// Insertions, deletions and replacements of a letter that turn `from` into `to`.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // `row[j]`: edits from what of `from` was seen to the first `j` letters of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for letter in from.chars() {
        let mut before = row[0];
        row[0] += 1;
        for (j, wanted) in to.iter().enumerate() {
            let replaced = before + usize::from(letter != *wanted);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        assert_eq!(nearest("spine1-lef2", ["spine1-leaf2", "spine1-leaf3"]), Some("spine1-leaf2"));
        assert_eq!(nearest("zzz", ["spine1-leaf2"]), None);
        assert_eq!((edits("kitten", "sitting"), edits("", "abc"), edits("abc", "")), (3, 3, 3));
    }
}
