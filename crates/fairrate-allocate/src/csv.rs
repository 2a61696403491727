//! Parser of CSV lines that keeps the position of every field for error messages.

use std::borrow::Cow;
use std::ops::Range;

use crate::input_error::FileError;

/// A field of a line: its text without surrounding space and quotes, its line number, and its bytes in that line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub text: Cow<'a, str>,
    pub line: usize,
    range: Range<usize>,
}

impl<'a> Field<'a> {
    /// Returns an error that points at the field.
    pub fn error(&self, message: impl Into<String>) -> FileError {
        FileError::new(self.line, message).at(self.range.clone())
    }

    /// Splits the field at whitespace and returns its words as fields.
    pub fn words(&self) -> impl Iterator<Item = Field<'_>> {
        self.text.split_whitespace().map(|word| {
            let offset = word.as_ptr() as usize - self.text.as_ptr() as usize;
            let start = self.range.start + offset;
            let range = match self.text {
                Cow::Borrowed(_) => start..start + word.len(),
                // Escaped quotes are gone from the text, so offsets in it are not those in the line.
                Cow::Owned(_) => self.range.clone(),
            };
            Field { text: Cow::Borrowed(word), line: self.line, range }
        })
    }

    /// Returns the next field of `line` from byte `start`, and the start of the field after it, if there is one.
    fn next(number: usize, line: &'a str, start: usize) -> Result<(Self, Option<usize>), FileError> {
        let start = start + (line[start..].len() - line[start..].trim_start().len());
        let rest = &line[start..];
        let field = |text, range| Field { text, line: number, range };
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(',');
            let text = rest[..end.unwrap_or(rest.len())].trim_end();
            let found = field(Cow::Borrowed(text), start..start + text.len());
            return Ok((found, end.map(|end| start + end + 1)));
        };
        let Some(len) = closing_quote(quoted) else {
            return Err(FileError::new(number, "a quote that does not end").at(start..line.len()));
        };
        let text = quoted[..len].trim();
        let from = start + 1 + (len - quoted[..len].trim_start().len());
        let range = from..from + text.len();
        let text = if text.contains('"') { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) };
        let found = field(text, range);
        let after = start + len + 2;
        let tail = line[after..].trim_start();
        if tail.is_empty() {
            return Ok((found, None));
        }
        if !tail.starts_with(',') {
            let help = "a field in quotes ends with its quote; a quote in it is written twice";
            return Err(FileError::new(number, "text after a closing quote").at(after..line.len()).help(help));
        }
        Ok((found, Some(line.len() - tail.len() + 1)))
    }
}

/// Returns the position of the quote that ends a quoted text; two quotes in a row stand for one quote in the text.
fn closing_quote(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((i, byte)) = bytes.next() {
        if byte == b'"' && bytes.next_if(|(_, next)| *next == b'"').is_none() {
            return Some(i);
        }
    }
    None
}

/// Splits `line` into its fields; an empty line has one field.
fn fields(number: usize, line: &str) -> Result<Vec<Field<'_>>, FileError> {
    let mut found = Vec::new();
    let mut start = Some(0);
    while let Some(from) = start {
        let (field, next) = Field::next(number, line, from)?;
        found.push(field);
        start = next;
    }
    Ok(found)
}

/// A table's columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
    /// A header with all columns.
    pub example: &'static str,
}

/// A row: its line, and a field for each of the required columns, then of the optional ones. The field of an optional
/// column may be missing or empty, which is the same.
pub(crate) struct Row<'a> {
    fields: Vec<Option<Field<'a>>>,
}

impl<'a> Row<'a> {
    /// Returns the field of the `i`-th required column, or an error if it is empty.
    pub fn required(&self, columns: Columns, i: usize) -> Result<&Field<'a>, FileError> {
        let field = self.fields[i].as_ref().expect("a row without a required column is an error");
        if field.text.is_empty() {
            return Err(FileError::new(field.line, format!("`{}` is empty", columns.required[i])));
        }
        Ok(field)
    }

    /// Returns the field of the `i`-th optional column, or `None` if it is missing or empty.
    pub fn optional(&self, columns: Columns, i: usize) -> Option<&Field<'a>> {
        self.fields[columns.required.len() + i].as_ref().filter(|field| !field.text.is_empty())
    }
}

/// Reads a table: a header, columns in any order, then rows. Blank lines and lines that begin with `#` are skipped.
pub(crate) fn rows(
    text: &str,
    columns: Columns,
) -> Result<impl Iterator<Item = Result<Row<'_>, FileError>>, FileError> {
    let held = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    // Some spreadsheets begin a file with a byte order mark. Places in its line count it.
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = (1..).zip(text[mark..].lines()).filter(move |(_, line)| held(line));
    let Some((number, header)) = lines.next() else {
        return Err(FileError::new(1, "the file is empty").help(format!("the first line is `{}`", columns.example)));
    };
    let shift = |error: FileError| {
        let moved = if number == 1 { mark } else { 0 };
        FileError { column: error.column.map(|(from, to)| (from + moved, to + moved)), ..error }
    };
    let order = read_header(number, header, columns).map_err(shift)?;
    Ok(lines.map(move |(number, line)| read_row(number, line, &order)))
}

/// Returns the position of each known column in the header, `None` for a column that is missing.
fn read_header(number: usize, header: &str, columns: Columns) -> Result<Vec<Option<usize>>, FileError> {
    let known: Vec<&str> = columns.required.iter().chain(columns.optional).copied().collect();
    let mut order = vec![None; known.len()];
    for (position, field) in fields(number, header)?.iter().enumerate() {
        let Some(column) = known.iter().position(|name| *name == field.text) else {
            let help = fairrate_text::did_you_mean(&field.text, known.iter().copied())
                .unwrap_or_else(|| format!("columns are {}", known.join(", ")));
            return Err(field.error(format!("unknown column `{}`", field.text)).help(help));
        };
        if order[column].replace(position).is_some() {
            return Err(field.error(format!("column `{}` comes a second time", field.text)));
        }
    }
    match columns.required.iter().zip(&order).find(|(_, position)| position.is_none()) {
        None => Ok(order),
        Some((missing, _)) => Err(FileError::new(number, format!("column `{missing}` is missing"))
            .help(format!("the first line is `{}`", columns.example))),
    }
}

fn read_row<'a>(number: usize, line: &'a str, order: &[Option<usize>]) -> Result<Row<'a>, FileError> {
    let mut fields: Vec<Option<Field<'a>>> = fields(number, line)?.into_iter().map(Some).collect();
    let n_columns = order.iter().flatten().count();
    if fields.len() != n_columns {
        let of = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let message = format!("{} under a header of {}", of(fields.len(), "field"), of(n_columns, "column"));
        return Err(FileError::new(number, message));
    }
    Ok(Row { fields: order.iter().map(|position| position.and_then(|i| fields[i].take())).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_trimmed_unquoted_and_placed() {
        let line = r#" a , " b, ""c""" ,,"d""#;
        let read = fields(7, line).unwrap();
        let texts: Vec<&str> = read.iter().map(|field| &*field.text).collect();
        assert_eq!(texts, ["a", "b, \"c\"", "", "d"]);
        let places: Vec<&str> = read.iter().map(|field| &line[field.range.clone()]).collect();
        assert_eq!(places, ["a", r#"b, ""c"""#, "", "d"]);
        assert_eq!(fields(7, "\"a").unwrap_err().column, Some((0, 2)));
        assert_eq!(fields(7, "\"a\"b,c").unwrap_err().to_string(), "line 7: text after a closing quote");
        assert_eq!(fields(7, "a,").unwrap().len(), 2);
    }
}
