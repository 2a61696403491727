//! FCT slowdown against flow size: a figure for each percentile, with intervals over the seeds.

use std::collections::BTreeMap;
use std::str::FromStr;

use fairrate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::bootstrap::Estimate;
use crate::format;
use crate::model::Variant;
use crate::panel::{Axis, Panel, Series};
use crate::stats;
use crate::style::Style;

/// Largest number of percentiles.
const MOST_PERCENTILES: usize = 6;
/// Largest number of ends of ranges of sizes.
const MOST_ENDS: usize = 30;

/// The percentiles and the ranges of sizes that are drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BySize {
    /// The percentiles.
    pub percentiles: Percentiles,
    /// The ranges.
    pub sizes: Sizes,
}

/// Percentiles in percent, ascending; read from `50,99,99.9`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles(Vec<f64>);

impl Default for Percentiles {
    fn default() -> Self {
        Self(vec![50.0, 99.0, 99.9])
    }
}

impl FromStr for Percentiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| {
            let p = part.trim().parse::<f64>().ok().filter(|p| 0.0 < *p && *p < 100.0);
            let p = p.ok_or_else(|| format!("`{}` is no percentile; write numbers such as 50,99,99.9", part.trim()))?;
            let percent = (p * 1e8).round() / 1e6;
            if p < 1.0 {
                Err(format!("percentiles are in percent: write {percent} for `{}`", part.trim()))
            } else {
                Ok(p)
            }
        };
        let mut all = text.split(',').map(one).collect::<Result<Vec<f64>, String>>()?;
        all.sort_by(f64::total_cmp);
        all.dedup();
        if MOST_PERCENTILES < all.len() {
            return Err(format!("these are more than {MOST_PERCENTILES} percentiles"));
        }
        Ok(Self(all))
    }
}

/// Ranges of flow sizes by their inner ends in bytes, ascending; read from `10KB,100KB,1MB`, which makes four ranges.
/// Without ends the ranges are half decades.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes(Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| part.trim().parse::<Bytes>().map(Bytes::as_u64).map_err(|e| e.to_string());
        let ends = text.split(',').map(one).collect::<Result<Vec<u64>, String>>()?;
        if !ends.windows(2).all(|pair| pair[0] < pair[1]) || ends[0] == 0 {
            return Err(format!("`{text}` are no ends of ranges; write sizes that ascend, such as 10KB,100KB,1MB"));
        }
        if MOST_ENDS < ends.len() {
            return Err(format!("these are more than {MOST_ENDS} sizes"));
        }
        Ok(Self(ends))
    }
}

impl Sizes {
    /// Returns the number of the range of a flow; ranges ascend.
    fn range(&self, bytes: u64) -> usize {
        if self.0.is_empty() {
            return ((bytes.max(1) as f64).log10() * 2.0 + 1e-9).floor() as usize;
        }
        self.0.partition_point(|end| *end < bytes)
    }

    /// Returns the ranges in words.
    fn words(&self) -> String {
        if self.0.is_empty() {
            return "A point per half decade of sizes".to_owned();
        }
        let ends: Vec<String> = self.0.iter().map(|end| format::bytes(*end as f64)).collect();
        format!("A point per range of sizes with ends at {}", ends.join(", "))
    }
}

/// Returns a figure for each percentile of `wanted`, with a line for each variant. Where they would leave a gap the
/// last one is wide. Returns none if all flows are of one range.
pub(crate) fn figures(variants: &[(&Variant, Style)], wanted: &BySize, unfinished: &str) -> Vec<Panel> {
    let flows: Vec<(&Variant, Style, Vec<Range>)> =
        variants.iter().map(|(v, style)| (*v, *style, ranges(v, &wanted.sizes))).collect();
    // Flows of one size are a point, not a line.
    if flows.iter().all(|(.., ranges)| ranges.len() < 2) {
        return Vec::new();
    }
    let n = wanted.percentiles.0.len();
    let figure = |(i, p): (usize, &f64)| Panel {
        title: format!("FCT slowdown by flow size, {}", words(*p)),
        note: note(&flows, *p, wanted) + unfinished,
        choice: if 1 < n { format!("p{p}") } else { String::new() },
        x: Axis::new("flow size (bytes)").logarithmic(),
        y: Axis::new("FCT / ideal FCT").logarithmic().showing(1.0, 2.0),
        series: flows.iter().map(|(v, style, ranges)| line(v, *style, ranges, *p)).collect(),
        wide: i + 1 == n && n % 2 == 1,
        ..Panel::default()
    };
    wanted.percentiles.0.iter().enumerate().map(figure).collect()
}

/// The flows of a range of sizes.
struct Range {
    /// Median size, in bytes.
    size: f64,
    /// The slowdowns of each seed that has such flows, ascending, and the least lower bound among them.
    seeds: Vec<(Vec<f64>, Option<f64>)>,
}

impl Range {
    fn flows(&self) -> usize {
        self.seeds.iter().map(|(slowdowns, _)| slowdowns.len()).sum()
    }

    fn fewest(&self) -> usize {
        self.seeds.iter().map(|(slowdowns, _)| slowdowns.len()).min().unwrap_or(0)
    }
}

/// Returns the ranges that have flows, ascending by size.
fn ranges(variant: &Variant, sizes: &Sizes) -> Vec<Range> {
    // The sizes of all flows of a range, and the slowdowns of each seed.
    type Found = (Vec<f64>, Vec<(Vec<f64>, Option<f64>)>);
    let mut all: BTreeMap<usize, Found> = BTreeMap::new();
    for run in &variant.runs {
        let mut seed: BTreeMap<usize, (Vec<f64>, Option<f64>)> = BTreeMap::new();
        for flow in run.measured_flows() {
            let (Some(bytes), Some(slowdown)) = (flow.bytes, flow.slowdown_or_bound()) else { continue };
            let number = sizes.range(bytes.get());
            all.entry(number).or_default().0.push(bytes.get() as f64);
            let (slowdowns, least_bound) = seed.entry(number).or_default();
            slowdowns.push(slowdown);
            let bound = flow.at_least.get().filter(|_| flow.slowdown.get().is_none());
            *least_bound = [*least_bound, bound].into_iter().flatten().reduce(f64::min);
        }
        for (number, (slowdowns, bound)) in seed {
            all.entry(number).or_default().1.push((stats::sorted(slowdowns), bound));
        }
    }
    let range =
        |(bytes, seeds): Found| Range { size: stats::percentiles(bytes, [0.5]).map_or(0.0, |[median]| median), seeds };
    all.into_values().map(range).collect()
}

/// Returns the means over the seeds of a percentile, with their intervals. Those that are lower bounds are marked.
fn line(variant: &Variant, style: Style, ranges: &[Range], percent: f64) -> Series {
    let (key, name) = (variant.line.clone(), variant.line.clone());
    let mut out = Series { key, name, style, marks: true, ..Series::default() };
    for range in ranges {
        let at = |sorted: &[f64]| stats::percentile(sorted, percent / 100.0);
        let values: Vec<f64> = range.seeds.iter().filter_map(|(sorted, _)| at(sorted)).collect();
        let Some(estimate) = Estimate::of(&values) else { continue };
        let is_bound = range.seeds.iter().zip(&values).any(|((_, bound), value)| bound.is_some_and(|b| b <= *value));
        if is_bound {
            out.partial.push(out.x.len());
        }
        let flows = format!("{} flows", format::count(range.flows() as f64));
        out.hint.push(if is_bound { format!("{flows}, a lower bound") } else { flows });
        out.x.push(range.size);
        out.y.push(estimate.mean);
        out.low.push(estimate.interval.map_or(f64::NAN, |i| i.low));
        out.high.push(estimate.interval.map_or(f64::NAN, |i| i.high));
    }
    if out.low.iter().all(|x| x.is_nan()) {
        (out.low, out.high) = (Vec::new(), Vec::new());
    }
    out
}

/// Returns a note on the points of a figure.
fn note(flows: &[(&Variant, Style, Vec<Range>)], percent: f64, wanted: &BySize) -> String {
    let mut note = vec![format!("{}, at its median size", wanted.sizes.words())];
    let seeds = flows.iter().map(|(v, ..)| v.runs.len()).max().unwrap_or(0);
    if 1 < seeds {
        note.push(format!("Mean over {seeds} seeds and its 95 % bootstrap interval"));
    }
    let fewest = flows.iter().flat_map(|(.., ranges)| ranges).map(Range::fewest).min().unwrap_or(0);
    let least = (100.0 / (100.0 - percent) - 1e-6).ceil();
    if 50.0 < percent && (fewest as f64) < least {
        let (least, fewest) = (format::count(least), format::count(fewest as f64));
        note.push(format!(
            "With fewer than {least} flows it is their largest value; some points have {fewest} in a seed"
        ));
    }
    note.join(". ")
}

/// Returns a percentile in words.
fn words(percent: f64) -> String {
    if percent == 50.0 {
        return "median".to_owned();
    }
    let ending = match percent.to_string().as_bytes() {
        [.., b'1', b'1' | b'2' | b'3'] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    };
    format!("{percent}{ending} percentile")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::model::{Flow, Maybe, RunData};
    use crate::synthetic;

    fn drawn(variants: &[Variant], percentiles: &str, sizes: &str) -> Vec<Panel> {
        let sizes = if sizes.is_empty() { Sizes::default() } else { sizes.parse().unwrap() };
        let with_style: Vec<(&Variant, Style)> = variants.iter().map(|v| (v, Style::default())).collect();
        figures(&with_style, &BySize { percentiles: percentiles.parse().unwrap(), sizes }, "")
    }

    fn flow(bytes: u64, slowdown: f64) -> Flow {
        Flow { bytes: NonZeroU64::new(bytes), slowdown: Maybe::of(slowdown), ..Flow::default() }
    }

    fn run(seed: u64, flows: Vec<Flow>) -> RunData {
        RunData { label: "hpcc".into(), cc: "hpcc".into(), seed, flows, ..RunData::default() }
    }

    #[test]
    fn percentiles_of_ranges_by_hand() {
        // Seed 1 has slowdowns 1, 2 and 3 of flows up to 10 KB, and 5 above; seed 2 has 3, 4, 5 and 9.
        let runs = [(1, [1.0, 2.0, 3.0, 5.0]), (2, [3.0, 4.0, 5.0, 9.0])].map(|(seed, s)| {
            run(seed, [2_000, 5_000, 10_000, 10_001].into_iter().zip(s).map(|(bytes, s)| flow(bytes, s)).collect())
        });
        let variants = crate::model::variants(runs.to_vec());
        let figures = drawn(&variants, "99,50", "10KB");
        let titles: Vec<&str> = figures.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(titles, ["FCT slowdown by flow size, median", "FCT slowdown by flow size, 99th percentile"]);
        assert_eq!(figures.iter().map(|f| f.choice.as_str()).collect::<Vec<_>>(), ["p50", "p99"]);
        let [median, p99] = [&figures[0].series[0], &figures[1].series[0]];
        assert_eq!((&median.x, &median.y), (&vec![5_000.0, 10_001.0], &vec![3.0, 7.0]));
        assert_eq!((&p99.y, &p99.low, &p99.high), (&vec![4.0, 7.0], &vec![3.0, 5.0], &vec![5.0, 9.0]));
        assert_eq!(median.hint, ["6 flows", "2 flows"]);
        assert!(figures[1].note.contains("With fewer than 100 flows") && !figures[0].note.contains("fewer"));
    }

    #[test]
    fn percentiles_of_unfinished_flows_are_marked() {
        let open = Flow { slowdown: Maybe::NONE, at_least: Maybe::of(7.0), ..flow(900, 0.0) };
        let flows = vec![flow(900, 1.0), flow(900, 2.0), flow(900, 3.0), open, flow(90_000, 4.0)];
        let figures = drawn(&crate::model::variants(vec![run(1, flows)]), "50,99", "");
        let partial: Vec<&[usize]> = figures.iter().map(|f| f.series[0].partial.as_slice()).collect();
        assert_eq!(partial, [&[][..], &[0]]);
        assert_eq!((figures[1].series[0].y.as_slice(), figures[1].series[0].low.len()), (&[7.0, 4.0][..], 0));
    }

    #[test]
    fn one_size_is_no_figure_and_odd_ones_fill_the_row() {
        let one = crate::model::variants(vec![run(1, vec![flow(900, 1.0), flow(950, 2.0)])]);
        assert_eq!(drawn(&one, "50", ""), []);
        let many = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        let wide = |percentiles| drawn(&many, percentiles, "").iter().map(|f| f.wide).collect::<Vec<_>>();
        assert_eq!(
            (wide("50,99,99.9"), wide("50,99"), wide("99")),
            (vec![false, false, true], vec![false; 2], vec![true])
        );
    }

    #[test]
    fn percentiles_and_sizes_are_read_or_refused_with_a_way_out() {
        assert_eq!("99.9, 50,99,50".parse(), Ok(Percentiles(vec![50.0, 99.0, 99.9])));
        assert_eq!("10KB,1MB".parse(), Ok(Sizes(vec![10_000, 1_000_000])));
        let refused = |text: &str| text.parse::<Percentiles>().unwrap_err();
        assert_eq!(refused("0.999"), "percentiles are in percent: write 99.9 for `0.999`");
        assert_eq!(refused("p99"), "`p99` is no percentile; write numbers such as 50,99,99.9");
        assert!(refused("100").contains("no percentile") && refused("1,2,3,4,5,6,7").contains("more than 6"));
        for text in ["1MB,10KB", "0B,1KB", "10"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentiles_in_words() {
        assert_eq!(
            [50.0, 99.9, 91.0, 12.0, 11.5].map(words)[1..4],
            ["99.9th percentile", "91st percentile", "12th percentile"]
        );
    }
}
