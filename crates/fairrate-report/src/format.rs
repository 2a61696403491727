//! Number formats for people: three or four digits and the field's units.

/// A number that is not known.
const UNKNOWN: &str = "-";

/// Formats a number with about four digits: `0.0123`, `1.23`, `45.6`, `789`, `12,345`.
pub fn number(x: f64) -> String {
    let a = x.abs();
    match () {
        () if !x.is_finite() => UNKNOWN.to_owned(),
        () if a == 0.0 => "0".to_owned(),
        () if a < 0.001 => format!("{x:.1e}"),
        () if a < 0.1 => format!("{x:.4}"),
        () if a < 10.0 => format!("{x:.2}"),
        () if a < 100.0 => format!("{x:.1}"),
        () => grouped(x),
    }
}

/// Formats a number that may be absent, as `-` if it is.
pub fn optional(x: Option<f64>) -> String {
    x.map_or_else(|| UNKNOWN.to_owned(), number)
}

/// Formats a count: whole numbers in groups of three digits, means over seeds with one decimal.
pub fn count(x: f64) -> String {
    if x.is_nan() {
        return UNKNOWN.to_owned();
    }
    if x.fract() == 0.0 || 1000.0 <= x { grouped(x) } else { format!("{x:.1}") }
}

/// Rounds to a whole number and writes it in groups of three digits.
fn grouped(x: f64) -> String {
    let digits = format!("{:.0}", x.abs());
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i != 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    if x < 0.0 { format!("-{text}") } else { text }
}

/// Formats bytes: `532 B`, `12.3 KB`, `4.56 MB` (decimal, as the field counts).
pub fn bytes(x: f64) -> String {
    scaled(x, &[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")])
}

/// Formats a duration given in ns: `12 ns`, `3.40 µs`, `5.00 ms`, `1.20 s`.
pub fn time_ns(x: f64) -> String {
    scaled(x, &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")])
}

/// Formats a rate given in bit/s: `24.9 Gb/s`.
pub fn rate(x: f64) -> String {
    scaled(x, &[(1.0, "b/s"), (1e3, "kb/s"), (1e6, "Mb/s"), (1e9, "Gb/s"), (1e12, "Tb/s")])
}

/// Formats a fraction as percent: `97.3 %`.
pub fn percent(x: f64) -> String {
    if x.is_nan() { UNKNOWN.to_owned() } else { format!("{:.1} %", x * 100.0) }
}

/// Formats ascending seeds, with runs of three and more as ranges: `1..5, 7, 8`.
pub fn seeds(seeds: &[u64]) -> String {
    let mut parts = Vec::new();
    let mut rest = seeds;
    while let Some(first) = rest.first() {
        let n = rest.iter().zip(*first..).take_while(|(seed, want)| *seed == want).count();
        if 3 <= n {
            parts.push(format!("{first}..{}", rest[n - 1]));
        } else {
            parts.extend(rest[..n].iter().map(u64::to_string));
        }
        rest = &rest[n..];
    }
    parts.join(", ")
}

/// Formats a value in the largest unit in which it is at least 1 once rounded to three digits.
fn scaled(x: f64, units: &[(f64, &str)]) -> String {
    if x.is_nan() {
        return UNKNOWN.to_owned();
    }
    let fits = |(factor, _): &&(f64, &str)| *factor * 0.9995 <= x.abs();
    let (factor, unit) = units.iter().rev().find(fits).or(units.first()).copied().unwrap_or((1.0, ""));
    let value = x / factor;
    let whole = factor == 1.0 && value.fract() == 0.0;
    if whole || 99.95 <= value.abs() {
        format!("{} {unit}", grouped(value))
    } else {
        format!("{} {unit}", three(value))
    }
}

fn three(x: f64) -> String {
    if x.abs() < 9.995 { format!("{x:.2}") } else { format!("{x:.1}") }
}

/// Returns the seeds of columns in words, as `seeds 1..5`; without their numbers if not all columns have the same ones.
pub fn seeds_of<'a>(mut columns: impl Iterator<Item = &'a [u64]>) -> String {
    let first = columns.next().unwrap_or_default();
    if !columns.all(|other| other == first) {
        return "columns of different seeds".to_owned();
    }
    format!("seed{} {}", if first.len() == 1 { "" } else { "s" }, seeds(first))
}

/// Most names that a heading has.
const MOST_NAMES: usize = 3;

/// Lists `names`, each once; of more than three the first one, and the number of the others.
pub fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut each: Vec<&str> = Vec::new();
    for name in names {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    if each.len() <= MOST_NAMES { each.join(", ") } else { format!("{} and {} others", each[0], each.len() - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_four_digits() {
        let got = [0.0, 0.000_012, 0.0123, 1.234, 45.64, 789.4, 1_234_567.0, -2.5].map(number);
        assert_eq!(got, ["0", "1.2e-5", "0.0123", "1.23", "45.6", "789", "1,234,567", "-2.50"]);
        assert_eq!(
            (number(f64::NAN), optional(None), count(3.0), count(2.5)),
            ("-".into(), "-".into(), "3".into(), "2.5".into())
        );
    }

    #[test]
    fn seeds_in_a_row_are_a_range() {
        assert_eq!([&[3][..], &[1, 2], &[1, 2, 3, 4, 7, 9, 10, 11]].map(seeds), ["3", "1, 2", "1..4, 7, 9..11"]);
    }

    /// No column's seeds stand for those of another, and no scenario's name for all.
    #[test]
    fn a_heading_is_about_all_columns() {
        let of = |columns: &[&[u64]]| seeds_of(columns.iter().copied());
        assert_eq!(
            [of(&[&[1], &[1]]), of(&[&[1, 2]]), of(&[&[1], &[2]])],
            ["seed 1", "seeds 1, 2", "columns of different seeds"]
        );
        let listed = |all: &[&str]| names(all.iter().copied());
        assert_eq!([listed(&["a", "b", "a"]), listed(&["a", "b", "c", "d"])], ["a, b", "a and 3 others"]);
    }

    #[test]
    fn quantities_take_the_unit_that_fits() {
        assert_eq!([0.0, 532.0, 12_345.0, 4.56e6].map(bytes), ["0 B", "532 B", "12.3 KB", "4.56 MB"]);
        assert_eq!([12.0, 3_400.0, 999_600.0, 1.2e9].map(time_ns), ["12 ns", "3.40 µs", "1.00 ms", "1.20 s"]);
        assert_eq!([24.94e9, 100e9].map(rate), ["24.9 Gb/s", "100 Gb/s"]);
        assert_eq!(percent(0.9731), "97.3 %");
    }
}
