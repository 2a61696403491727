//! Positions of values in a TOML file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An invalid value.
#[derive(Debug)]
pub(super) struct Fault {
    /// Its key with dots, such as `engine.gamma` or `host.2.name`.
    key: String,
    /// The reason, and the valid values.
    what: String,
}

impl Fault {
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }

    /// Returns the message, with the value's place in the file.
    pub fn shown(&self, text: &str) -> String {
        with_place(text, &self.key, &self.what)
    }
}

/// Returns `what` below the line of a TOML file that has the value of `key`, with carets, in the form of syntax errors.
/// A key is written with dots, such as `engine.gamma` or, for the third `[[host]]`, `host.2.name`. If `text` has no
/// such key, the result is `what` alone.
///
/// ```
/// use fairrate_daemon::config::with_place;
///
/// let shown = with_place("[engine]\ngamma = 3\n", "engine.gamma", "this is too much");
/// assert_eq!(shown, "error at line 2, column 9\n  |\n2 | gamma = 3\n  |         ^\nthis is too much");
/// ```
pub fn with_place(text: &str, key: &str, what: &str) -> String {
    let Some(span) = span(text, key) else { return what.to_owned() };
    let before = &text[..span.start];
    let (number, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
    let line = text[start..].lines().next().unwrap_or_default();
    let column = before[start..].chars().count();
    let end = span.end.min(start + line.len()).max(span.start);
    let carets = "^".repeat(text[span.start..end].chars().count().max(1));
    let (margin, indent) = (" ".repeat(number.to_string().len()), " ".repeat(column));
    let column = column + 1;
    format!(
        "error at line {number}, column {column}\n{margin} |\n{number} | {line}\n{margin} | {indent}{carets}\n{what}"
    )
}

/// Returns the range of bytes of the value of `key`.
fn span(text: &str, key: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let mut steps = key.split('.');
    let mut value: &Spanned<DeValue<'_>> = table.get_ref().get(steps.next()?)?;
    for step in steps {
        value = match value.get_ref() {
            DeValue::Table(table) => table.get(step)?,
            DeValue::Array(array) => array.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value.span())
}
