//! The tables of other simulators' numbers in `validation`: CSV with a header and plain values, none of them in quotes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A CSV file of plain values.
pub struct Table {
    path: PathBuf,
    header: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Table {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, String> {
        Ok(Self::parse(path, &crate::suite::read(path)?))
    }

    /// Reads `text`, the content of the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().unwrap_or_default();
        Self { header, lines: lines.collect(), path: path.to_owned() }
    }

    /// Returns the rows, without the header.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.lines.len()).map(|line| Row { table: self, line })
    }
}

/// A row of a [`Table`].
pub struct Row<'a> {
    table: &'a Table,
    line: usize,
}

impl<'a> Row<'a> {
    /// Returns the value in a column.
    pub fn text(&self, column: &str) -> Result<&'a str, String> {
        let at = self.table.header.iter().position(|name| name == column);
        let value = at.and_then(|i| self.table.lines[self.line].get(i));
        value.map(String::as_str).ok_or_else(|| self.wrong(column, "missing"))
    }

    /// Returns the value in a column as a number.
    pub fn number<T: FromStr>(&self, column: &str) -> Result<T, String> {
        self.text(column)?.parse().map_err(|_| self.wrong(column, "not a number"))
    }

    /// Returns the value in a column as a number; `None` if the field is empty.
    pub fn number_if_any<T: FromStr>(&self, column: &str) -> Result<Option<T>, String> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    /// Returns an error about the value in a column, which is `what`.
    pub fn wrong(&self, column: &str, what: &str) -> String {
        format!("{}: line {}: `{column}` is {what}", self.table.path.display(), self.line + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_column_and_errors_name_their_line() {
        let table = Table::parse(Path::new("t.csv"), "case,n\na,1\nb,\nc");
        let rows: Vec<Row<'_>> = table.rows().collect();
        assert_eq!((rows[0].text("case"), rows[0].number::<u32>("n")), (Ok("a"), Ok(1)));
        assert_eq!((rows[0].number_if_any::<f64>("n"), rows[1].number_if_any::<f64>("n")), (Ok(Some(1.0)), Ok(None)));
        assert_eq!(rows[1].number::<u32>("n"), Err("t.csv: line 3: `n` is not a number".to_owned()));
        assert_eq!(rows[2].text("n"), Err("t.csv: line 4: `n` is missing".to_owned()));
        assert_eq!(rows[0].text("m"), Err("t.csv: line 2: `m` is missing".to_owned()));
    }
}
