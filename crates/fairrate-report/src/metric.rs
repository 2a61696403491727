//! The numbers that can be drawn against a parameter, by their names in `--metric`.

mod numbers;
mod unknown;

pub use unknown::UnknownMetric;

use std::collections::BTreeSet;

use self::numbers::{OF_WINDOW, OTHERS, SHARES, STATISTICS, TIME_NS, USUAL};
use crate::completion::Completion;
use crate::metrics::{BucketSlowdown, Metrics, SIZE_BUCKETS, Share, block_words};
use crate::stats::Percentile;

/// A number of a column that can be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric(Kind);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A statistic of the FCT slowdown of flows, by an index into [`STATISTICS`].
    Slowdown(usize, Flows),
    /// The share of flows that did not finish.
    Unfinished(Flows),
    /// The time from the first start to the last completion.
    Completion(Flows),
    /// A share of a traffic block, by an index into [`SHARES`].
    Share(usize, u32),
    /// A statistic of the times of queries, by an index into [`STATISTICS`].
    Query(usize, Flows),
    /// Any other number, by an index into [`OTHERS`].
    Other(usize),
}

/// Flow sizes: name, bucket of the tables, words. Short, medium and long are defined as in the PowerTCP paper.
const SIZES: [(&str, &str, &str); 5] = [
    ("all", "all sizes", "all flows"),
    ("short", "<= 10 KB", "short flows (up to 10 KB)"),
    ("10-100KB", "10-100 KB", "flows of 10 to 100 KB"),
    ("medium", "100 KB-1 MB", "medium flows (100 KB to 1 MB)"),
    ("long", "> 1 MB", "long flows (above 1 MB)"),
];

/// Returns the names of flow sizes in metrics.
pub fn size_classes() -> [&'static str; 5] {
    SIZES.map(|size| size.0)
}

/// Returns the range of flow sizes called `name` in metrics, as `short`: the payload that a flow is above, and at most.
pub fn size_class(name: &str) -> Option<(u64, u64)> {
    if name == SIZES[0].0 {
        return Some((0, u64::MAX));
    }
    let (_, bucket, _) = SIZES.iter().find(|size| size.0 == name)?;
    let bucket = SIZE_BUCKETS.iter().find(|known| known.name == *bucket)?;
    Some((bucket.above, bucket.up_to))
}

/// The beginning of the numbers of traffic blocks in metrics: `block1` is the second block.
const BLOCK: &str = "block";

/// The flows that a metric is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flows {
    /// A range of sizes of [`SIZES`].
    Size(usize),
    /// The traffic block with this number, where there are several.
    Block(u32),
}

impl Flows {
    /// Returns the flows called `name` in metrics, where traffic blocks have the names `blocks`; if there are none, any
    /// number is that of a block. Sizes and numbers of blocks come before names: a block that is called `short` or
    /// `block0` goes by its number.
    fn by_name(name: &str, blocks: &[String]) -> Option<Self> {
        if let Some(size) = SIZES.iter().position(|size| size.0 == name) {
            return Some(Self::Size(size));
        }
        let number = name.strip_prefix(BLOCK).and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| name == format!("{BLOCK}{number}")) {
            let is_there = blocks.is_empty() || (number as usize) < blocks.len();
            return is_there.then_some(Self::Block(number));
        }
        (0..).zip(blocks).find_map(|(number, block)| (!name.is_empty() && block == name).then_some(Self::Block(number)))
    }

    /// Returns the name in metrics: that of the block among `blocks` if it stands for the block, otherwise its number.
    fn name(self, blocks: &[String]) -> String {
        match self {
            Self::Size(size) => SIZES[size].0.to_owned(),
            Self::Block(number) => {
                let named = blocks.get(number as usize).filter(|name| Self::by_name(name, blocks) == Some(self));
                named.cloned().unwrap_or_else(|| format!("{BLOCK}{number}"))
            }
        }
    }

    /// Returns the flows in words, with the name that a block has in the columns `columns`.
    fn words<'a>(self, columns: impl Iterator<Item = &'a Metrics>) -> String {
        match self {
            Self::Size(size) => SIZES[size].2.to_owned(),
            Self::Block(number) => format!("flows of {}", block_words(columns, number)),
        }
    }

    /// Returns the flows called `name` as [`Flows::by_name`] does, but for ranges of sizes: a query has flows of
    /// several.
    fn whole(name: &str, blocks: &[String]) -> Option<Self> {
        Self::by_name(name, blocks).filter(|flows| matches!(flows, Self::Size(0) | Self::Block(_)))
    }

    /// Returns the completion of the flows in a column.
    fn completion(self, m: &Metrics) -> Option<&Completion> {
        match self {
            Self::Size(_) => m.completion_of(None),
            Self::Block(number) => m.completion_of(Some(number)),
        }
    }

    /// Returns the slowdown of the flows in a column.
    fn of(self, m: &Metrics) -> Option<&BucketSlowdown> {
        match self {
            Self::Size(size) => m.bucket(SIZES[size].1),
            Self::Block(number) => m.of_block(number),
        }
    }
}

/// The name of [`Kind::Unfinished`], without the size.
const UNFINISHED: &str = "unfinished-share";
/// The name of [`Kind::Completion`], without the flows.
const COMPLETION: &str = "completion";
/// The beginning of the names of [`Kind::Query`].
const QUERY: &str = "query-";

impl Metric {
    /// Returns the metric of a name, where traffic blocks have the names `blocks`, empty for those without one. A
    /// slowdown without a size or a block is that of all flows.
    pub fn by_name(name: &str, blocks: &[String]) -> Option<Self> {
        if let Some(other) = OTHERS.iter().position(|o| o.name == name) {
            return Some(Self(Kind::Other(other)));
        }
        if let Some(rest) = name.strip_prefix(UNFINISHED) {
            let size = if rest.is_empty() { "all" } else { rest.strip_prefix(':')? };
            return Flows::by_name(size, blocks).map(|flows| Self(Kind::Unfinished(flows)));
        }
        if let Some(rest) = name.strip_prefix(COMPLETION) {
            let flows = if rest.is_empty() { "all" } else { rest.strip_prefix(':')? };
            return Flows::whole(flows, blocks).map(|flows| Self(Kind::Completion(flows)));
        }
        if let Some(rest) = name.strip_prefix(QUERY) {
            let (statistic, flows) = rest.split_once(':').unwrap_or((rest, "all"));
            let statistic = STATISTICS.iter().position(|s| s.0 == statistic)?;
            return Some(Self(Kind::Query(statistic, Flows::whole(flows, blocks)?)));
        }
        if let Some((name, block)) = name.split_once(':')
            && let Some(share) = SHARES.iter().position(|share| share.0 == name)
        {
            let Flows::Block(block) = Flows::by_name(block, blocks)? else { return None };
            return Some(Self(Kind::Share(share, block)));
        }
        let (statistic, size) = name.strip_prefix("slowdown-")?.split_once(':').unwrap_or((&name[9..], "all"));
        let statistic = STATISTICS.iter().position(|s| s.0 == statistic)?;
        Some(Self(Kind::Slowdown(statistic, Flows::by_name(size, blocks)?)))
    }

    /// Returns the metrics that a column may have values of: those with [`Metric::names`], and those of its traffic
    /// blocks.
    pub fn all_of(m: &Metrics) -> Vec<Self> {
        let sizes = Self::names().into_iter().filter_map(|name| Self::by_name(&name, &[]));
        let shares = m.groups.iter().flat_map(|g| (0..SHARES.len()).map(|share| Self(Kind::Share(share, g.block))));
        let blocks: BTreeSet<u32> = m
            .slowdown
            .iter()
            .filter_map(|bucket| bucket.block)
            .chain(m.completion.iter().filter_map(|c| c.block))
            .collect();
        sizes.chain(blocks.into_iter().flat_map(Self::of_block)).chain(shares).collect()
    }

    /// Returns the metrics of the flows of a traffic block.
    fn of_block(block: u32) -> impl Iterator<Item = Self> {
        let flows = Flows::Block(block);
        let statistics = (0..STATISTICS.len()).map(move |i| Self(Kind::Slowdown(i, flows)));
        let queries = (0..STATISTICS.len()).map(move |i| Self(Kind::Query(i, flows)));
        statistics.chain([Self(Kind::Unfinished(flows)), Self(Kind::Completion(flows))]).chain(queries)
    }

    /// Returns the names of the metrics of all flows, of flows by size and of ports.
    pub fn names() -> Vec<String> {
        let sizes = |statistic: &str| SIZES.map(|size| format!("slowdown-{statistic}:{}", size.0));
        let slowdowns = STATISTICS.iter().flat_map(|s| sizes(s.0));
        let unfinished = SIZES.map(|size| format!("{UNFINISHED}:{}", size.0));
        let completion = std::iter::once(format!("{COMPLETION}:all"));
        let queries = STATISTICS.iter().map(|s| format!("{QUERY}{}:all", s.0));
        let others = OTHERS.iter().map(|o| o.name.to_owned());
        slowdowns.chain(unfinished).chain(completion).chain(queries).chain(others).collect()
    }

    /// Returns the names in a few words, for help and errors.
    pub fn summary() -> String {
        let join = |names: Vec<&str>| names.join("|");
        format!(
            "slowdown-{}[:FLOWS], {UNFINISHED}[:FLOWS], where FLOWS is {}, or a traffic block by its name or number, as incast or \
             {BLOCK}1 for the second one; {COMPLETION}[:BLOCK], the time from the first start to the last completion, and {QUERY}{}[:BLOCK], \
             the time of flows that start together towards one receiver, where BLOCK is all or a traffic block; {}:BLOCK, what a traffic block \
             got beside others; {}",
            join(STATISTICS.iter().map(|s| s.0).collect()),
            join(SIZES.iter().map(|s| s.0).collect()),
            join(STATISTICS.iter().map(|s| s.0).collect()),
            join(SHARES.iter().map(|s| s.0).collect()),
            OTHERS.iter().map(|o| o.name).collect::<Vec<_>>().join(", "),
        )
    }

    /// Returns the metrics that are drawn by default: those of which some column has a value other than zero.
    pub fn usual(columns: &[Metrics]) -> Vec<Self> {
        let told = |metric: &Self| columns.iter().any(|m| metric.value(m).is_some_and(|x| x != 0.0));
        USUAL.iter().filter_map(|name| Self::by_name(name, &[])).filter(told).collect()
    }

    /// Returns the metric's name, with the names `blocks` of traffic blocks; those without one go by number.
    pub fn name(self, blocks: &[String]) -> String {
        match self.0 {
            Kind::Slowdown(statistic, flows) => format!("slowdown-{}:{}", STATISTICS[statistic].0, flows.name(blocks)),
            Kind::Unfinished(flows) => format!("{UNFINISHED}:{}", flows.name(blocks)),
            Kind::Completion(flows) => format!("{COMPLETION}:{}", flows.name(blocks)),
            Kind::Query(statistic, flows) => format!("{QUERY}{}:{}", STATISTICS[statistic].0, flows.name(blocks)),
            Kind::Share(share, block) => format!("{}:{}", SHARES[share].0, Flows::Block(block).name(blocks)),
            Kind::Other(i) => OTHERS[i].name.to_owned(),
        }
    }

    /// Returns the heading of the metric's figures, of the columns `columns`.
    pub fn title<'a>(self, columns: impl Iterator<Item = &'a Metrics>) -> String {
        match self.0 {
            Kind::Slowdown(statistic, flows) => {
                format!("FCT slowdown, {}, {}", STATISTICS[statistic].1, flows.words(columns))
            }
            Kind::Unfinished(flows) => format!("Flows that did not finish, {}", flows.words(columns)),
            Kind::Completion(flows) => format!("Completion, {}", flows.words(columns)),
            Kind::Query(statistic, flows) => {
                format!("Completion of queries, {}, {}", STATISTICS[statistic].1, flows.words(columns))
            }
            Kind::Share(share, block) => format!("{}, {}", SHARES[share].1, Flows::Block(block).words(columns)),
            Kind::Other(i) => OTHERS[i].title.to_owned(),
        }
    }

    /// Returns the label of the metric's axis, with the unit.
    pub fn label(self) -> &'static str {
        match self.0 {
            Kind::Slowdown(..) => "FCT / ideal FCT",
            Kind::Unfinished(_) => "share of flows (%)",
            Kind::Completion(_) | Kind::Query(..) => "time (µs)",
            Kind::Share(share, _) => SHARES[share].2,
            Kind::Other(i) => OTHERS[i].label,
        }
    }

    /// Returns the unit of the metric's value; `1` of a plain ratio. KB are 1,000 bytes.
    pub fn unit(self) -> &'static str {
        match self.0 {
            Kind::Slowdown(..) => "1",
            Kind::Unfinished(_) => "%",
            Kind::Completion(_) | Kind::Query(..) => "µs",
            Kind::Other(i) if OTHERS[i].name == "jain" => "1",
            Kind::Share(share, _) if SHARES[share].0 == "jain" => "1",
            Kind::Share(..) | Kind::Other(_) => {
                let label = self.label();
                label.split_once('(').map_or(label, |(_, unit)| unit.trim_end_matches(')'))
            }
        }
    }

    /// Returns the least value that the metric can have, in the unit of its label.
    pub fn least(self) -> f64 {
        if matches!(self.0, Kind::Slowdown(..)) { 1.0 } else { 0.0 }
    }

    /// Returns the metric's value of a column, in the unit of its label.
    pub fn value(self, m: &Metrics) -> Option<f64> {
        match self.0 {
            Kind::Slowdown(statistic, flows) => STATISTICS[statistic].2(&flows.of(m)?.slowdown),
            Kind::Unfinished(flows) => flows.of(m).map(|bucket| 100.0 * bucket.unfinished_share()),
            Kind::Completion(flows) => flows.completion(m)?.time_ns.map(|ns| ns / TIME_NS),
            Kind::Query(statistic, flows) => {
                STATISTICS[statistic].2(&flows.completion(m)?.queries).map(|ns| ns / TIME_NS)
            }
            Kind::Share(share, block) => SHARES[share].4(m.group(block)?).map(|x| x / SHARES[share].3),
            Kind::Other(i) => (OTHERS[i].value)(m).map(|x| x / OTHERS[i].unit),
        }
    }

    /// Returns the number of flows, or queries, from which on a percentile differs from the largest value; `None` for
    /// other metrics.
    pub fn least_flows(self) -> Option<usize> {
        let (Kind::Slowdown(statistic, _) | Kind::Query(statistic, _)) = self.0 else { return None };
        Percentile::by_name(STATISTICS[statistic].0).map(Percentile::least_flows)
    }

    /// Returns `true` if the metric is a percentile that some seed of `columns` has too few flows for: it is their
    /// largest value.
    pub fn is_largest<'a>(self, columns: impl Iterator<Item = &'a Metrics>) -> bool {
        let Some(least) = self.least_flows() else { return false };
        let mut flows = columns.flat_map(Metrics::seeds_alone).filter_map(|m| self.flows(m));
        flows.any(|n| 0 < n && n < least)
    }

    /// Returns `true` if the value is one of the times that single flows or queries take, so that it means something
    /// while a run goes on.
    pub fn is_of_flows(self) -> bool {
        matches!(self.0, Kind::Slowdown(..) | Kind::Unfinished(_) | Kind::Query(..))
    }

    /// Returns `true` if the value is of the measuring window, or of the flows that start within it.
    pub fn is_of_window(self) -> bool {
        match self.0 {
            Kind::Slowdown(..) | Kind::Unfinished(_) | Kind::Query(..) => true,
            Kind::Completion(_) => false,
            Kind::Share(share, _) => OF_WINDOW.contains(&SHARES[share].0),
            Kind::Other(i) => OF_WINDOW.contains(&OTHERS[i].name),
        }
    }

    /// Returns the number of flows, or queries, that the value is made from.
    pub fn flows(self, m: &Metrics) -> Option<usize> {
        match self.0 {
            Kind::Slowdown(_, flows) => flows.of(m).map(|b| b.slowdown.n),
            Kind::Query(_, flows) => flows.completion(m).map(|c| c.queries.n),
            _ => None,
        }
    }

    /// Returns the things that [`Metric::flows`] counts: `flows`, or `queries`.
    pub fn counted(self) -> &'static str {
        if matches!(self.0, Kind::Query(..)) { "queries" } else { "flows" }
    }

    /// Returns the completion whose time the value is, if that is what the metric says.
    pub fn completion(self, m: &Metrics) -> Option<&Completion> {
        let Kind::Completion(flows) = self.0 else { return None };
        flows.completion(m)
    }

    /// Returns the share of flows that finished, if the value is a lower bound since others did not.
    pub fn bound(self, m: &Metrics) -> Option<Share> {
        let (statistic, all) = match self.0 {
            Kind::Slowdown(statistic, flows) => (statistic, flows.of(m)?.slowdown),
            Kind::Query(statistic, flows) => (statistic, flows.completion(m)?.queries),
            _ => return None,
        };
        let value = STATISTICS[statistic].2(&all)?;
        let is_bound = 0 < all.n_bounds && (STATISTICS[statistic].0 == "mean" || all.is_bound(value));
        is_bound.then_some(Share { finished: all.n - all.n_bounds, flows: all.n })
    }
}

#[cfg(test)]
mod tests;
