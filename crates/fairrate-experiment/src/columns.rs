//! The columns of a comparison: algorithms and their variants, at every point of a grid. The command line and the
//! Python package give them the same names, so that each finds the runs of the other.

mod label;
mod variant;

use std::collections::HashSet;

use fairrate_control::Registry;
use fairrate_results::{Tag, TagValue};
use fairrate_text::did_you_mean;

pub use self::label::file_name;
pub use self::variant::{Variant, joined, overrides, parse_changes, parse_variant, with_libraries};

/// The reason why algorithms, grids and seeds make no comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// A name that is not known.
    #[error("{what} `{name}` is not known")]
    UnknownName {
        /// The kind of thing it should name.
        what: &'static str,
        /// The name as written.
        name: String,
        /// A suggestion: the nearest known name, or all of them.
        help: String,
    },
    /// Arguments that do not go together.
    #[error("{message}")]
    Usage {
        /// The problem.
        message: String,
        /// The remedy.
        help: String,
    },
}

impl ColumnsError {
    /// Returns the error for a name that is not among `known`.
    pub fn unknown_name(what: &'static str, name: &str, known: &[&str]) -> Self {
        let help =
            did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("known are {}", known.join(", ")));
        Self::UnknownName { what, name: name.to_owned(), help }
    }

    /// Returns the error with a further suggestion.
    fn with_hint(mut self, hint: &str) -> Self {
        let (Self::UnknownName { help, .. } | Self::Usage { help, .. }) = &mut self;
        *help = format!("{help}; {hint}");
        self
    }

    /// Returns the remedy.
    pub fn help(&self) -> &str {
        match self {
            Self::UnknownName { help, .. } | Self::Usage { help, .. } => help,
        }
    }
}

/// Largest number of columns: a slip in a grid is noticed before its runs are planned.
const MOST: usize = 10_000;
/// Largest number of runs, of all columns under all seeds.
pub const MOST_RUNS: usize = 100_000;

/// The key of a scenario's algorithm: its values are lines of figures, not positions on them.
const ALGORITHM: &str = "transport.cc";

/// A list of seeds, as given by `--seeds`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Largest number of seeds.
const MOST_SEEDS: usize = 10_000;

/// Reads `3`, `1..5` or `1,4,7`.
///
/// # Errors
/// A message with the accepted forms.
pub fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = |t: &str| t.trim().parse::<u64>().map_err(|_| format!("`{t}` is no seed; write 3, 1..5 or 1,4,7"));
    let (mut seeds, mut seen) = (Vec::new(), HashSet::new());
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((a, b)) => (number(a)?, number(b.trim_start_matches('='))?),
            None => (number(part)?, number(part)?),
        };
        if last < first || MOST_SEEDS as u64 <= last - first {
            return Err(format!("`{part}` is no range of at most {MOST_SEEDS} seeds, lowest first"));
        }
        seeds.extend((first..=last).filter(|seed| seen.insert(*seed)));
        if MOST_SEEDS < seeds.len() {
            return Err(format!("these are more than {MOST_SEEDS} seeds"));
        }
    }
    Ok(Seeds(seeds))
}

/// A key of the scenario and its values, as given by `--grid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    key: String,
    /// The values as written, each in TOML or a bare word.
    values: Vec<String>,
}

impl Axis {
    /// Returns an axis of a key and its values, each in TOML or a bare word. A repeated value is left out.
    pub fn new(key: &str, values: impl IntoIterator<Item = String>) -> Self {
        let mut kept: Vec<String> = Vec::new();
        for value in values {
            if !kept.contains(&value) {
                kept.push(value);
            }
        }
        Self { key: key.trim().to_owned(), values: kept }
    }

    /// Returns `true` if all values are numbers.
    fn is_of_numbers(&self) -> bool {
        self.values.iter().all(|value| number(value).is_some())
    }
}

fn number(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Reads `KEY=VALUE,VALUE`. Commas inside of quotes or brackets are part of a value.
///
/// # Errors
/// A message with the accepted form.
pub fn parse_axis(text: &str) -> Result<Axis, String> {
    let wrong = || "write it as key=value,value, as in traffic.0.load=0.4,0.6".to_owned();
    let (key, rest) = text.split_once('=').ok_or_else(wrong)?;
    let axis = Axis::new(key, split_values(rest)?);
    if axis.key.is_empty() || axis.values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(axis)
}

fn split_values(text: &str) -> Result<Vec<String>, String> {
    let (mut values, mut value, mut quote, mut depth) = (Vec::new(), String::new(), None, 0_u32);
    for c in text.chars() {
        match (quote, c) {
            (None, ',') if depth == 0 => values.push(std::mem::take(&mut value)),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c != ',' || quote.is_some() || depth != 0 {
            value.push(c);
        }
    }
    if quote.is_some() || depth != 0 {
        return Err(format!("`{text}` has a quote or bracket without its end"));
    }
    values.push(value);
    Ok(values.into_iter().map(|v| v.trim().to_owned()).collect())
}

/// Largest number of characters of a list in labels.
const LONGEST_LIST: usize = 40;

/// Returns a value as labels show it: text without its quotes, and the members of a short list with `+` between them.
/// Returns `None` for a table, a nested or a long list, whose TOML would hide the rest of a label.
fn in_words(value: &str) -> Option<String> {
    let without_quotes = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let Some(list) = value.trim().strip_prefix('[') else {
        return (!value.trim().starts_with('{')).then(|| without_quotes(value));
    };
    let members = split_values(list.strip_suffix(']')?).ok()?;
    let words: Vec<String> = members.iter().map(|member| without_quotes(member)).collect();
    let words = words.join("+");
    (!words.contains(['[', '{']) && words.chars().count() <= LONGEST_LIST).then_some(words)
}

/// The names of one run of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNames {
    /// Label of the column.
    pub label: String,
    /// Its line in figures over the grid.
    pub line: String,
    /// Directory of the run.
    pub dir: String,
}

/// One column of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Label of the column, different from all others. Empty without `--cc` and `--grid`: then the column runs the
    /// scenario's algorithm.
    pub label: String,
    /// Name of the column's directories, different from all others.
    pub name: String,
    /// Its point of the grid, as `load=0.6`; empty without a grid.
    pub point: String,
    /// Its point of the grid, as pairs of key and value.
    pub grid: Vec<(String, String)>,
    /// Keys of the grid that are numbers at all of its points.
    numbers: Vec<String>,
    /// The line that the column is a point of in figures over the grid: its algorithm, as written; empty for the
    /// scenario's algorithm.
    pub line: String,
    /// Its position on that line, as pairs of short key and plain value.
    pub place: Vec<(String, String)>,
    /// Its algorithm, if not the scenario's.
    pub cc: Option<String>,
    /// The keys that it changes, with their values.
    pub sets: Vec<(String, String)>,
}

impl Column {
    /// Returns the names of the run under `seed`, if seeds are given, of a scenario with the algorithm `cc`. `suffix`
    /// tells apart runs that differ in something else.
    pub fn names(&self, cc: &str, seed: Option<u64>, suffix: Option<&str>) -> RunNames {
        let or_cc = |name: &str| if name.is_empty() { cc.to_owned() } else { name.to_owned() };
        let called = |name: &str| or_cc(name) + &suffix.map_or(String::new(), |suffix| format!(" ({suffix})"));
        let [suffix, seed] = [suffix.map(str::to_owned), seed.map(|seed| format!("seed{seed}"))]
            .map(|part| part.map_or(String::new(), |part| format!("-{part}")));
        RunNames { label: called(&self.label), line: called(&self.line), dir: or_cc(&self.name) + &suffix + &seed }
    }

    /// Returns the tags of its point of the grid for the rows of its tables: a number if all values of the key are
    /// numbers, otherwise text.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        self.grid.iter().map(|(key, value)| {
            let text = || TagValue::Text(value.trim_matches(['"', '\'']).to_owned());
            let as_number = number(value).filter(|_| self.numbers.contains(key));
            Tag::new(key.as_str(), as_number.map_or_else(text, TagValue::Number))
        })
    }
}

/// Returns a column for every algorithm of `ccs`, and for each of `changes` as [`parse_changes`] reads them, at every
/// point of the grid: the first axis varies slowest, the algorithm fastest. `seeded` is `true` if `--seeds` is given.
///
/// # Errors
/// If an algorithm is not known, a key is set twice, or there are too many columns.
pub fn columns(
    ccs: &[String],
    changes: &[String],
    axes: &[Axis],
    seeded: bool,
    registry: &Registry,
) -> Result<Vec<Column>, ColumnsError> {
    let mut variants: Vec<Variant> = Vec::new();
    let of_names = ccs.iter().map(|text| parse_variant(text, registry));
    for variant in of_names.chain(changes.iter().map(|text| parse_changes(text, registry))) {
        let variant = variant?;
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    columns_of(&variants, axes, seeded)
}

/// Returns a column for each of `variants` at every point of the grid, as [`columns`] does.
///
/// # Errors
/// If a key is set twice, or there are too many columns.
pub fn columns_of(variants: &[Variant], axes: &[Axis], seeded: bool) -> Result<Vec<Column>, ColumnsError> {
    check_axes(axes, variants, seeded)?;
    let n = axes.iter().fold(variants.len().max(1), |n, a| n.saturating_mul(a.values.len()));
    if MOST < n {
        let help = format!("at most {MOST} are run at once; take fewer values of a key");
        return Err(ColumnsError::Usage { message: format!("these grids have {n} columns"), help });
    }
    let numbers: Vec<String> = axes.iter().filter(|a| a.is_of_numbers()).map(|a| a.key.clone()).collect();
    let mut columns: Vec<Column> = Vec::new();
    for grid in points(axes) {
        let plain = |(key, value): &(String, String)| {
            let number = || axes.iter().find(|a| a.key == *key)?.values.iter().position(|v| v == value);
            let words = in_words(value).or_else(|| Some(format!("#{}", number()? + 1)));
            (short_key(key, axes).to_owned(), words.unwrap_or_default())
        };
        let named = grid.iter().map(plain).map(|(key, value)| format!("{key}={value}"));
        let point = named.collect::<Vec<_>>().join(" ");
        let place: Vec<(String, String)> = grid.iter().filter(|(key, _)| key != ALGORITHM).map(plain).collect();
        let algorithm = grid.iter().find(|(key, _)| key == ALGORITHM).map(|at| plain(at).1);
        let at_point = |variant: Option<&Variant>| {
            let words = variant.map(|v| v.label.as_str()).into_iter().chain([point.as_str()]).filter(|w| !w.is_empty());
            let label = words.collect::<Vec<_>>().join(" ");
            let sets = grid.iter().chain(variant.iter().flat_map(|v| &v.sets)).cloned().collect();
            let cc = variant.map(|v| v.cc.clone()).filter(|cc| !cc.is_empty());
            let line = variant.map(|v| v.label.clone()).or_else(|| algorithm.clone()).unwrap_or_default();
            let (point, grid, place, numbers) = (point.clone(), grid.clone(), place.clone(), numbers.clone());
            Column { name: file_name(&label), label, point, grid, line, place, numbers, cc, sets }
        };
        let first = columns.len();
        columns.extend(variants.iter().map(|v| at_point(Some(v))));
        if columns.len() == first {
            columns.push(at_point(None));
        }
    }
    disambiguate_labels(&mut columns);
    Ok(columns)
}

/// Returns an error if a key is set twice, which would make columns that have different names and are the same.
fn check_axes(axes: &[Axis], variants: &[Variant], seeded: bool) -> Result<(), ColumnsError> {
    for (i, axis) in axes.iter().enumerate() {
        let key = axis.key.as_str();
        let twice = match key {
            _ if axes[..i].iter().any(|a| a.key == key) => "--grid twice",
            "seed" if seeded => "--grid and --seeds",
            ALGORITHM if !variants.is_empty() => "--grid and --cc",
            _ if variants.iter().any(|v| v.sets.iter().any(|(k, _)| k == key)) => "--grid and --cc",
            _ => continue,
        };
        let help = "give all values of a key in one place".to_owned();
        return Err(ColumnsError::Usage { message: format!("`{key}` is set by {twice}"), help });
    }
    Ok(())
}

/// Returns the cartesian product of the axes, the last one fastest; one empty point without axes.
fn points(axes: &[Axis]) -> Vec<Vec<(String, String)>> {
    let none: Vec<Vec<(String, String)>> = vec![Vec::new()];
    axes.iter().fold(none, |points, axis| {
        let with = |point: &Vec<(String, String)>, value: &String| {
            point.iter().cloned().chain([(axis.key.clone(), value.clone())]).collect()
        };
        points.iter().flat_map(|p| axis.values.iter().map(|v| with(p, v)).collect::<Vec<_>>()).collect()
    })
}

/// Returns the shortest end of a dotted key that no other axis has, as `load` of `traffic.0.load`. The end does not
/// begin with a digit.
fn short_key<'a>(key: &'a str, axes: &[Axis]) -> &'a str {
    let starts: Vec<usize> = std::iter::once(0).chain(key.match_indices('.').map(|(i, _)| i + 1)).collect();
    let ends_with = |axis: &Axis, end: &str| axis.key == end || axis.key.ends_with(&format!(".{end}"));
    let is_fit = |end: &&str| {
        let begins_with_number = end.starts_with(|c: char| c.is_ascii_digit());
        !begins_with_number && axes.iter().filter(|a| ends_with(a, end)).count() == 1
    };
    starts.iter().rev().map(|start| &key[*start..]).find(is_fit).unwrap_or(key)
}

/// Appends a number to labels and names that occurred before, as in `x (2)` and `x-2`, and to names that the comparison
/// has for its own files. Names that differ only in case count as equal, as they are one directory on some systems.
fn disambiguate_labels(columns: &mut [Column]) {
    let (mut labels, mut names) = (HashSet::new(), HashSet::from(label::TAKEN.map(str::to_owned)));
    for column in columns {
        let later = (2..).map(|n| format!("{} ({n})", column.label));
        column.label = first_new(&column.label, later, |label| labels.insert(label.to_owned()));
        let later = (2..).map(|n| format!("{}-{n}", column.name));
        column.name = first_new(&column.name, later, |name| names.insert(name.to_ascii_lowercase()));
    }
}

fn first_new(text: &str, later: impl Iterator<Item = String>, mut is_new: impl FnMut(&str) -> bool) -> String {
    std::iter::once(text.to_owned()).chain(later).find(|t| is_new(t)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
