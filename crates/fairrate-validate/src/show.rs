//! Output of the rows as a table or as JSON.

use crate::rows::{Row, Tolerance, Verdict};

/// Prints the rows as a table, and their number.
pub fn table(rows: &[Row]) {
    self::rows(rows);
    let count = |v: Verdict| rows.iter().filter(|r| r.verdict == v).count();
    let explained = rows.iter().filter(|r| r.verdict == Verdict::Outside && r.cause.is_some()).count();
    let without = count(Verdict::NoTolerance);
    let (inside, outside) = (count(Verdict::Inside), count(Verdict::Outside));
    println!();
    println!(
        "rows: {inside} inside, {outside} outside, {without} without tolerance ({explained} of the outside explained)"
    );
}

/// Prints the rows as a table, or as JSON, and their number. Returns `true` if every row is inside or in the file of
/// findings.
pub fn finish(rows: &[Row], as_json: bool) -> bool {
    if as_json {
        println!("{:#}", serde_json::json!({ "rows": rows }));
    } else {
        self::rows(rows);
        let outside = || rows.iter().filter(|row| row.verdict == Verdict::Outside);
        let inside = rows.iter().filter(|row| row.verdict == Verdict::Inside).count();
        let known = outside().filter(|row| row.cause.is_some()).count();
        let open = outside().count() - known;
        println!("\nrows: {inside} inside, {open} outside and new, {known} outside and in findings.toml");
    }
    rows.iter().all(|row| row.verdict != Verdict::Outside || row.cause.is_some())
}

/// Prints the rows as a table.
pub fn rows(rows: &[Row]) {
    let head = ["scenario", "algorithm", "metric", "theirs", "ours", "difference", "tolerance", ""].map(str::to_owned);
    let lines: Vec<[String; 8]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let width = |i: usize| lines.iter().map(|cells| cells[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for (i, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            // Numbers are aligned to the right, words to the left.
            let (left, right) = if (3..=6).contains(&i) { (pad.as_str(), "") } else { ("", pad.as_str()) };
            text.extend([left, cell, right, "  "]);
        }
        println!("{}", text.trim_end());
    }
}

fn cells(row: &Row) -> [String; 8] {
    let ours = row.ours.map_or_else(|| "none".to_owned(), |v| quantity(v, row.unit));
    let ours = row.range.map_or_else(|| ours.clone(), |(lo, hi)| format!("{ours} [{}..{}]", number(lo), number(hi)));
    let verdict = match row.verdict {
        Verdict::Inside => "inside",
        Verdict::Outside => "OUTSIDE",
        Verdict::NoTolerance => "no tolerance set",
    };
    let verdict = row.cause.as_ref().map_or_else(|| verdict.to_owned(), |cause| format!("{verdict}: {cause}"));
    let (scenario, algorithm, metric) = (row.scenario.clone(), row.algorithm.clone(), row.metric.clone());
    let tolerance = row.tolerance.map_or_else(String::new, |t| tolerance(t, row.unit));
    [scenario, algorithm, metric, quantity(row.theirs, row.unit), ours, difference(row), tolerance, verdict]
}

fn difference(row: &Row) -> String {
    let Some(ours) = row.ours else { return String::new() };
    let difference = ours - row.theirs;
    if difference == 0.0 {
        return "0".to_owned();
    }
    let in_bytes = row.tolerance.is_some_and(|t| t.relative * row.theirs.abs() < t.absolute);
    if in_bytes || row.theirs == 0.0 {
        return format!("{}{}", if difference < 0.0 { "-" } else { "+" }, quantity(difference.abs(), row.unit));
    }
    format!("{:+.2} %", 100.0 * difference / row.theirs)
}

fn tolerance(t: Tolerance, unit: &str) -> String {
    let percent = format!("{} %", (t.relative * 1e4).round() / 1e2);
    match (t.relative == 0.0, t.absolute == 0.0) {
        (_, true) => percent,
        (true, false) => quantity(t.absolute, unit),
        (false, false) => format!("{percent} or {}", quantity(t.absolute, unit)),
    }
}

fn quantity(value: f64, unit: &str) -> String {
    if unit.is_empty() { number(value) } else { format!("{} {unit}", number(value)) }
}

/// Returns a number with about four significant digits, and all digits of a whole number.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == m.trunc() && m < 1e15 => 0,
        m if 1000.0 <= m => 1,
        m if 100.0 <= m => 2,
        m if 10.0 <= m => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}
