//! Output of the comparison with the artifact as JSON.

use serde_json::json;

use super::exact::Exactness;
use crate::rows::{Row, Verdict};

/// Prints the rows as JSON.
pub fn print(rows: &[Row], exactness: &Exactness) {
    let count = |v: Verdict| rows.iter().filter(|r| r.verdict == v).count();
    let out = json!({
        "rows": rows,
        "inside": count(Verdict::Inside),
        "outside": count(Verdict::Outside),
        "without_tolerance": count(Verdict::NoTolerance),
        "flows": exactness.n_flows,
        "flows_that_differ": exactness.differ,
    });
    println!("{out:#}");
}
