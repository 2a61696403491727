//! The tables of `docs/results.md` have every column, and the Python package names columns that there are. To write the
//! columns again: `FAIRRATE_BLESS=1 cargo test -p fairrate-results --test docs`.

use std::path::{Path, PathBuf};

use fairrate_results::{ColumnSpec, TABLES};
use fairrate_sim::{Counts, DropCause};

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

#[test]
fn the_page_on_results_has_every_column() {
    let path = root().join("docs/results.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let mut written = text.clone();
    for table in TABLES {
        assert!(text.contains(&format!("\n| `{}.parquet` |", table.name)), "the list of files lacks `{}`", table.name);
        let row = |c: &ColumnSpec| format!("| `{}` | {} | {} |\n", c.name, c.unit, c.meaning);
        assert!(table.columns.iter().all(|c| !c.meaning.contains('|')), "{}: a table cannot hold `|`", table.name);
        let rows: String = table.columns.iter().map(row).collect();
        written = with_table(&written, table.name, &format!("| column | unit | meaning |\n|---|---|---|\n{rows}"));
    }
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        std::fs::write(&path, written).expect("the page can be written");
    } else {
        assert_eq!(text, written, "docs/results.md: run this test with FAIRRATE_BLESS=1");
    }
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

/// The docstrings of the Python package name columns that the tables have.
#[test]
fn python_names_columns_of_tables() {
    let text = std::fs::read_to_string(root().join("python/fairrate/_result.py")).expect("a source");
    let mut n = 0;
    for table in TABLES {
        let Some((before, _)) = text.split_once(&format!("self._table(\"{}\")", table.name)) else { continue };
        let doc = before.rsplit("\"\"\"").nth(1).expect("a docstring");
        for column in doc.split("``").skip(1).step_by(2) {
            assert!(table.columns.iter().any(|c| c.name == column), "{} has no `{column}`", table.name);
            n += 1;
        }
    }
    assert!(20 < n, "{n}");
}
