//! Heat maps of two traffic blocks that share a port: the goodput of a flow of the first block over a fair one, as
//! colours over the cases of a study.

mod draw;

use serde::{Deserialize, Serialize};

pub(crate) use self::draw::{chapter, csv, file, section};
use crate::bootstrap::Estimate;
use crate::comparison::estimate;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::model::Variant;

/// Shares that count as fair, in per cent of a fair one.
pub const FAIR: std::ops::RangeInclusive<f64> = 90.0..=110.0;
/// Name of the metric that the cells have.
const METRIC: &str = "fair-share:block0";

/// The place of each case of a study in its heat maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Names of the two traffic blocks.
    pub blocks: [String; 2],
    /// The key that differs between the columns of all maps, as `buffer`.
    pub key: String,
    /// The meaning of the columns, as `buffer, in times of what the path holds`.
    pub across: String,
    /// Values of the key as written, each with the head of its column.
    pub columns: Vec<(String, String)>,
    /// The maps.
    pub maps: Vec<Arrangement>,
}

/// The cases of one map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrangement {
    /// Title of the map.
    pub title: String,
    /// Heads of the rows, each with the line of its columns.
    pub rows: Vec<(String, String)>,
}

/// A share beside a fair one, judged by its interval over seeds, or by its value if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All of it is below a fair one.
    Less,
    /// All of it is in [`FAIR`].
    Fair,
    /// All of it is above a fair one.
    More,
    /// The interval reaches over an end of [`FAIR`].
    Undecided,
}

impl Verdict {
    /// Returns the verdict on a share in per cent of a fair one.
    pub fn of(share: &Estimate) -> Self {
        let (low, high) = share.interval.map_or((share.mean, share.mean), |i| (i.low, i.high));
        match () {
            () if high < *FAIR.start() => Self::Less,
            () if *FAIR.end() < low => Self::More,
            () if FAIR.contains(&low) && FAIR.contains(&high) => Self::Fair,
            () => Self::Undecided,
        }
    }

    /// Returns the verdict in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::Fair => "fair",
            Self::More => "more",
            Self::Undecided => "undecided",
        }
    }
}

/// A heat map with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Title.
    pub title: String,
    /// Name of its files, without ending.
    pub file: String,
    /// The meaning of the rows, as `flows, dctcp:cubic`.
    pub down: String,
    /// The meaning of the columns.
    pub across: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Heads of the rows, each with its cells: shares in per cent of a fair one. `None` if no seed has one.
    pub rows: Vec<(String, Vec<Option<Estimate>>)>,
}

impl Layout {
    /// Returns the layout as JSON, as `compare.json` has it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Layout::to_json`] gave; `None` if it is not that.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the maps of the columns `variants` with the numbers `metrics`; those without any number are left out.
    pub fn fill(&self, variants: &[Variant], metrics: &[Metrics]) -> Vec<HeatMap> {
        let Some(metric) = Metric::by_name(METRIC, &[]) else { return Vec::new() };
        let share = |line: &str, value: &str| {
            let is_here = |v: &&Variant| {
                let place = v.first().grid.iter().find(|(key, _)| *key == self.key);
                v.first().line == line && place.is_some_and(|(_, have)| have == value)
            };
            let at = variants.iter().position(|v| is_here(&v))?;
            estimate(metrics.get(at)?, &|m| metric.value(m))
        };
        let map = |arrangement: &Arrangement| {
            let cells = |line: &str| self.columns.iter().map(|(value, _)| share(line, value)).collect();
            let [a, b] = &self.blocks;
            HeatMap {
                title: arrangement.title.clone(),
                file: crate::figures::file_name(&format!("share {a} beside {b} {}", arrangement.title)),
                down: format!("flows, {a}:{b}"),
                across: self.across.clone(),
                columns: self.columns.iter().map(|(_, head)| head.clone()).collect(),
                rows: arrangement.rows.iter().map(|(head, line)| (head.clone(), cells(line))).collect(),
            }
        };
        let has_number = |map: &HeatMap| map.rows.iter().flat_map(|(_, cells)| cells).any(Option::is_some);
        self.maps.iter().map(map).filter(has_number).collect()
    }
}

#[cfg(test)]
mod tests;
