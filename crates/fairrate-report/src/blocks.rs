//! Tables split into blocks of columns, where all columns together are wider than a terminal or a page.

use crate::table::{Row, Section, Table, width};

/// Characters that fit into a line of a table on an A4 page, in the type of the style sheet.
const PAGE: usize = 108;

impl Table {
    /// Returns the table as text, split into several tables with the same rows if a line would be longer than `widest`.
    pub fn to_blocks(&self, styled: bool, widest: usize) -> String {
        let line = |table: &Self| table.to_text().lines().map(width).max().unwrap_or(0);
        let mut blocks: Vec<Self> = Vec::new();
        let mut from = 0;
        while from < self.columns.len() {
            let fits = |to: &usize| line(&self.of_columns(from, *to)) <= widest;
            let to = (from + 2..=self.columns.len()).take_while(fits).last().unwrap_or(from + 1);
            blocks.push(self.of_columns(from, to));
            from = to;
        }
        blocks.iter().map(|b| b.to_styled_text(styled)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the table as tables that fit on an A4 page, each with all rows and some of the columns; the numbers of
    /// columns are as equal as possible. Half of a column's cells, and the widest of all numbers and intervals, fit
    /// onto one line.
    pub fn to_pages(&self) -> Vec<Self> {
        let n = self.columns.len();
        let fitting = |n_blocks: &usize| self.split_evenly(*n_blocks).iter().all(|b| b.printed_width() <= PAGE);
        let n_blocks = (1..=n).find(fitting).unwrap_or(n).max(1);
        self.split_evenly(n_blocks)
    }

    fn split_evenly(&self, n_blocks: usize) -> Vec<Self> {
        let at = |i: usize| (i * self.columns.len()).div_ceil(n_blocks);
        (0..n_blocks).map(|i| self.of_columns(at(i), at(i + 1))).collect()
    }

    /// Returns the least width of the table on paper, in characters.
    fn printed_width(&self) -> usize {
        let rows = || self.sections.iter().flat_map(|s| &s.rows);
        let part = |text: &String| text.split(" [").map(width).max().unwrap_or(0);
        let column = |i: usize| {
            let mut whole: Vec<usize> = rows().map(|r| width(&r.cells[i])).collect();
            whole.sort_unstable();
            let parts = rows().map(|r| part(&r.cells[i])).chain(self.columns.get(i).map(|head| longest_word(head)));
            parts.chain(whole.get(whole.len() / 2).copied()).max()
        };
        let names = rows().map(|r| width(&r.head())).max().unwrap_or(0);
        names + (0..self.columns.len()).map(|i| column(i).unwrap_or(0) + 2).sum::<usize>()
    }

    fn of_columns(&self, from: usize, to: usize) -> Self {
        let row = |row: &Row| Row {
            name: row.name.clone(),
            cells: row.cells[from..to].to_vec(),
            best: row.best.iter().filter(|i| (from..to).contains(i)).map(|i| i - from).collect(),
            is_largest: row.is_largest,
        };
        let section = |s: &Section| Section { title: s.title.clone(), rows: s.rows.iter().map(row).collect() };
        let sections = self.sections.iter().map(section).collect();
        Self { caption: self.caption.clone(), columns: self.columns[from..to].to_vec(), sections }
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n: usize, cell: &str) -> Table {
        let columns: Vec<String> = (0..n).map(|i| format!("column {i}")).collect();
        let rows =
            vec![Row { name: "p99".into(), cells: vec![cell.to_owned(); n], best: vec![n - 1], ..Row::default() }];
        Table { caption: "about".into(), columns, sections: vec![Section { title: "queue".into(), rows }] }
    }

    #[test]
    fn pages_have_every_column_once_and_fit() {
        for n in 1..40 {
            let whole = table(n, "7,478,182 [6,865,766, 8,026,338]");
            let pages = whole.to_pages();
            let columns: Vec<&String> = pages.iter().flat_map(|p| &p.columns).collect();
            assert_eq!(columns, whole.columns.iter().collect::<Vec<_>>());
            assert!(pages.iter().all(|p| p.printed_width() <= PAGE && p.caption == "about"));
            let sizes: Vec<usize> = pages.iter().map(|p| p.columns.len()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
            assert_eq!(pages.last().unwrap().sections[0].rows[0].best, [sizes[sizes.len() - 1] - 1]);
        }
    }

    #[test]
    fn a_table_that_fits_is_one_page_and_a_column_that_does_not_has_its_own() {
        assert_eq!(table(6, "21.1").to_pages(), [table(6, "21.1")]);
        assert_eq!(table(3, &"9".repeat(200)).to_pages().len(), 3);
        let empty = Table::default();
        assert_eq!(empty.to_pages(), [empty]);
    }
}
