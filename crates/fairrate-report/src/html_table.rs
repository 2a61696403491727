//! Tables of the page: one for the screen, which scrolls if it is wide, and for paper as many as its columns need.

use std::fmt::Write;

use fairrate_text::escape;

use crate::table::{LARGEST, Section, Table};

/// Largest number of rows of a section that is kept on one sheet of paper.
const MOST_TOGETHER: usize = 16;

/// Returns a table as HTML. If it is too wide for a sheet of paper, blocks of its columns follow that are only printed.
pub(crate) fn table_html(table: &Table) -> String {
    let pages = table.to_pages();
    if pages.len() < 2 {
        return block(table, "scroll");
    }
    let paper = |page: &Table| block(page, "scroll paper");
    block(table, "scroll screen") + &pages.iter().map(paper).collect::<String>()
}

fn block(table: &Table, class: &str) -> String {
    let corner = if let [only] = table.sections.as_slice() { escape(&only.title) } else { String::new() };
    let caption =
        if table.caption.is_empty() { String::new() } else { format!("<caption>{}</caption>", escape(&table.caption)) };
    let mut out = format!("<div class=\"{class}\"><table>{caption}<thead><tr><th>{corner}</th>");
    for head in &table.columns {
        let _ = write!(out, "<th>{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n");
    for section in &table.sections {
        out.push_str(&body(section, table));
    }
    out + "</table></div>\n"
}

/// Returns a section as a body of the table.
fn body(section: &Section, table: &Table) -> String {
    let class = if section.rows.len() <= MOST_TOGETHER { " class=\"together\"" } else { "" };
    let mut out = format!("<tbody{class}>\n");
    if table.sections.len() != 1 {
        let (columns, title) = (table.columns.len() + 1, escape(&section.title));
        let _ = writeln!(out, "<tr class=\"section\"><th colspan=\"{columns}\">{title}</th></tr>");
    }
    for row in &section.rows {
        let class = if row.is_largest { " class=\"largest\"" } else { "" };
        let _ = write!(out, "<tr{class}><th>{}</th>", escape(&row.head()));
        for (i, text) in row.cells.iter().enumerate() {
            let class = match text.ends_with(LARGEST) {
                true => " class=\"largest\"",
                false if row.best.contains(&i) => " class=\"best\"",
                false => "",
            };
            let _ = write!(out, "<td{class}>{}</td>", cell(text));
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody>\n"
}

/// Returns a cell's text; on paper only the interval may have a line of its own.
fn cell(text: &str) -> String {
    match text.split_once(" [") {
        Some((mean, interval)) => format!("<span>{}</span> <span>[{}</span>", escape(mean), escape(interval)),
        None if text.contains(' ') => format!("<span>{}</span>", escape(text)),
        None => escape(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;
    use crate::metrics::Metrics;
    use crate::{synthetic, table};

    fn html(ccs: &[&str], seeds: &[u64]) -> (Table, String) {
        let metrics = synthetic::comparison(ccs, seeds).iter().map(Metrics::of).collect();
        let table = table::comparison(&Comparison::of(metrics));
        let html = table_html(&table);
        (table, html)
    }

    #[test]
    fn paper_has_every_column_of_a_wide_table() {
        let ccs = ["powertcp", "hpcc", "swift", "dcqcn", "dctcp", "rocc"];
        let (table, html) = html(&ccs, &[1, 2, 3]);
        let paper: Vec<&str> = html.split("<div class=\"scroll paper\">").skip(1).collect();
        assert!(1 < paper.len() && html.matches("<div class=\"scroll screen\">").count() == 1);
        for (i, column) in table.columns.iter().enumerate() {
            let head = format!("<th>{column}</th>");
            assert_eq!(paper.iter().filter(|block| block.contains(&head)).count(), 1, "{column}");
            let cells = table.sections.iter().flat_map(|s| &s.rows).map(|r| cell(&r.cells[i]));
            let block = paper.iter().find(|block| block.contains(&head)).unwrap();
            assert!(cells.into_iter().all(|text| block.contains(&text)), "{column}");
        }
    }

    #[test]
    fn a_narrow_table_is_there_once() {
        let (_, html) = html(&["powertcp", "hpcc"], &[1]);
        assert_eq!((html.matches("<table>").count(), html.matches("paper").count()), (1, 0));
    }

    #[test]
    fn names_cannot_break_out_of_a_cell() {
        assert_eq!(cell("<b> [1, 2]"), "<span>&lt;b&gt;</span> <span>[1, 2]</span>");
    }
}
