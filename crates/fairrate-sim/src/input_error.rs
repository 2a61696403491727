//! What is wrong with an input: a field of a scenario's block, or a place in a text file.

use std::ops::Range;

/// A parameter that cannot be used, named by its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// The field of the struct that holds it; scenarios call it the same, with `-` for `_`.
    pub field: &'static str,
    /// What is wrong, in lower case and with no final stop.
    pub message: String,
    /// What would be right, if that can be said.
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
    let scored = names.into_iter().map(|name| (edit_distance(word, name), name));
    scored.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name)
}

/// Insertions, deletions and replacements that turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        assert_eq!(nearest("websaerch", ["websearch", "fb-web"]), Some("websearch"));
        assert_eq!(nearest("zzz", ["websearch", "fb-web"]), None);
    }
}
