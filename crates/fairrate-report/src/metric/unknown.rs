//! Metrics by name, all at once, with a remedy for a name that none has.

use std::fmt::Write;

use fairrate_text::did_you_mean;

use super::{Flows, Metric};

/// A name that no metric has, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The name as it was given.
    pub name: String,
    /// The name that was perhaps meant, all metrics in a few words, and the traffic blocks of the scenario.
    pub help: String,
}

impl Metric {
    /// Returns the metrics with these names, each once, where traffic blocks have the names `blocks`, empty for those
    /// without one.
    ///
    /// # Errors
    /// If no metric has one of the names.
    pub fn by_names(names: &[String], blocks: &[String]) -> Result<Vec<Self>, UnknownMetric> {
        let mut found: Vec<Self> = Vec::new();
        for name in names {
            let unknown = || UnknownMetric { name: name.clone(), help: help(name, blocks) };
            let metric = Self::by_name(name, blocks).ok_or_else(unknown)?;
            if !found.contains(&metric) {
                found.push(metric);
            }
        }
        Ok(found)
    }
}

/// Returns the remedy for the name `wrong`.
fn help(wrong: &str, blocks: &[String]) -> String {
    let of_blocks = (0..).zip(blocks).flat_map(|(block, _)| Metric::of_block(block)).map(|metric| metric.name(blocks));
    let known: Vec<String> = Metric::names().into_iter().chain(of_blocks).collect();
    let mut help = String::new();
    if let Some(question) = did_you_mean(wrong, known.iter().map(String::as_str)) {
        let _ = writeln!(help, "{question}");
    }
    let _ = write!(help, "metrics are {}", Metric::summary());
    let names: Vec<String> = (0..).zip(blocks).map(|(i, _)| Flows::Block(i).name(blocks)).collect();
    // A single block without a name is all flows, and has no metrics of its own.
    if 1 < blocks.len() || blocks.iter().any(|name| !name.is_empty()) {
        let _ = write!(help, "\ntraffic blocks of the scenario: {}", names.join(", "));
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_has_the_nearest_one_and_the_blocks_of_the_scenario_for_help() {
        let blocks = ["background", "", "incast"].map(str::to_owned);
        let help = |name: &str| Metric::by_names(&[name.to_owned()], &blocks).unwrap_err().help;
        assert!(help("slowdown-p99:incst").starts_with("did you mean `slowdown-p99:incast`?\nmetrics are slowdown-"));
        assert!(help("slowdown-p99:blok1").starts_with("did you mean `slowdown-p99:block1`?\n"));
        assert!(help("nonsense").starts_with("metrics are "));
        assert!(help("nonsense").ends_with("\ntraffic blocks of the scenario: background, block1, incast"));
    }

    #[test]
    fn a_metric_that_is_asked_for_twice_is_one() {
        let names = ["goodput", "slowdown-p99:incast", "slowdown-p99:block0", "goodput"].map(str::to_owned);
        assert_eq!(Metric::by_names(&names, &["incast".to_owned()]).map(|found| found.len()), Ok(2));
    }
}
