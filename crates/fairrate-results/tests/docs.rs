//! The tables of `docs/results.md` have every column, and the Python package has every table. To write both again:
//! `FAIRRATE_BLESS=1 cargo test -p fairrate-results --test docs`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairrate_results::{ColumnSpec, TABLES, TableSpec};
use fairrate_sim::{Counts, DropCause};
use fairrate_text::first_difference;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns `page` with `table` between `<!-- name -->` and `<!-- end -->`.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let begin = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("docs/results.md has no `{begin}`"));
    let (_, after) = rest.split_once("<!-- end -->").expect("the table ends");
    format!("{before}{begin}{table}<!-- end -->{after}")
}

/// Writes `text` to `path` below the root if `FAIRRATE_BLESS` is set; otherwise checks that it is there.
fn hold(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        std::fs::write(&file, text).expect("the file can be written");
    } else {
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        if let Some(difference) = first_difference(&there, text) {
            let bless = "FAIRRATE_BLESS=1 cargo test -p fairrate-results --test docs";
            panic!("{path}: {difference}; `{bless}` writes it");
        }
    }
}

/// Returns the meaning of a row of `table` without its first words.
fn row(table: &TableSpec) -> &'static str {
    let start = format!("A row of `{}.parquet`: ", table.name);
    table.meaning.strip_prefix(&start).unwrap_or_else(|| panic!("{}: a table's meaning begins `{start}`", table.name))
}

/// Returns `page` with a line and a section for `table`, behind those of the table before, if it has none.
fn with_section(mut page: String, table: &TableSpec, before: &TableSpec) -> String {
    let line = |table: &TableSpec| format!("\n| `{}.parquet` |", table.name);
    let heading = |table: &TableSpec| format!("\n## `{}.parquet`\n", table.name);
    let behind = |page: &str, what: &str, end: &str| {
        let at = page.find(what).expect("the table before is there");
        at + what.len() + page[at + what.len()..].find(end).expect("something follows")
    };
    if !page.contains(&line(table)) {
        let at = behind(&page, &line(before), "\n");
        let (first, _) = row(table).split_once(". ").unwrap_or((row(table).trim_end_matches('.'), ""));
        page.insert_str(at, &format!("{} a row {first} |", line(table)));
    }
    if !page.contains(&heading(table)) {
        let at = behind(&page, &heading(before), "\n## ");
        let section = format!("{}\n{}\n\n<!-- {} -->\n<!-- end -->\n", heading(table), table.meaning, table.name);
        page.insert_str(at, &section);
    }
    page
}

#[test]
fn the_page_on_results_has_every_table_and_column() {
    let mut page = std::fs::read_to_string(root().join("docs/results.md")).expect("the page");
    let mut before = &TABLES[0];
    for table in TABLES {
        let row = |c: &ColumnSpec| format!("| `{}` | {} | {} |\n", c.name, c.unit, c.meaning);
        assert!(table.columns.iter().all(|c| !c.meaning.contains('|')), "{}: a table cannot hold `|`", table.name);
        let rows: String = table.columns.iter().map(row).collect();
        page = with_section(page, table, before);
        page = with_table(&page, table.name, &format!("| column | unit | meaning |\n|---|---|---|\n{rows}"));
        before = table;
    }
    hold("docs/results.md", &page);
}

/// Adds `text` to `out` in lines of at most 120 characters, the first behind `first` and the others behind `rest`.
fn wrap(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut line = first.to_owned();
    for word in text.split_whitespace() {
        if 120 < line.chars().count() + word.chars().count() {
            out.push_str(line.trim_end());
            out.push('\n');
            rest.clone_into(&mut line);
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The Python package reads every table by its name, and says what is in it.
#[test]
fn python_has_every_table() {
    let mut text = "\"\"\"The tables of results, as `fairrate-results/src/rows.rs` declares them; its tests write this file.\"\"\"\n\n\
                    from __future__ import annotations\n\nfrom functools import cached_property\n\n\
                    from fairrate._table import Table\n\n\n\
                    class Tables:\n    \"\"\"The tables of a run by their names. Each is read when it is first asked for.\"\"\"\n\n    \
                    def _table(self, name: str) -> Table:\n        raise NotImplementedError\n"
        .to_owned();
    let code = |text: &str| text.replace('`', "``").replace('\\', "\\\\");
    for table in TABLES {
        write!(text, "\n    @cached_property\n    def {}(self) -> Table:\n", table.name).expect("memory");
        wrap(&mut text, "        \"\"\"", "        ", &code(table.meaning));
        text.push_str("\n        Columns:\n");
        for column in table.columns {
            let first = format!("            {} ({}): ", column.name, column.unit);
            wrap(&mut text, &first, "                ", &code(column.meaning));
        }
        write!(text, "        \"\"\"\n        return self._table(\"{}\")\n", table.name).expect("memory");
    }
    hold("python/fairrate/_tables.py", &text);
}

/// The list of `summary.json`'s keys has every counter.
#[test]
fn the_page_on_results_has_every_counter() {
    let text = std::fs::read_to_string(root().join("docs/results.md")).expect("the page");
    let (_, list) = text.split_once("\n## `summary.json`").expect("the section");
    let (list, _) = list.split_once("\n## ").expect("the next section");
    let causes = DropCause::ALL.map(|cause| format!("drops_{}", cause.name()));
    for name in Counts::NAMES.into_iter().chain(causes.iter().map(String::as_str)) {
        assert!(list.contains(&format!("`{name}`")), "docs/results.md: `summary.json` has no `{name}`");
    }
}
