//! Metrics of a run at a simulated time before its end, from its flows.

use fairrate_results::{FlowRow, Measured};

use crate::load;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::model::{RunData, Totals, variants};

/// The metrics that a run is asked for at a simulated time. They depend on nothing but that time and the flows: a run
/// under way and the table of a complete run give the same values.
#[derive(Clone, Debug)]
pub struct SoFar {
    metrics: Vec<Metric>,
    blocks: Vec<String>,
    from_ns: u64,
    until_ns: Option<u64>,
}

impl SoFar {
    /// Returns the metrics called `names` of a run whose traffic blocks have the names `blocks`, within a measuring
    /// window in ns.
    ///
    /// # Errors
    /// The first of the names that is no [metric of flows](Metric::is_of_flows).
    pub fn new(names: &[String], blocks: Vec<String>, from_ns: u64, until_ns: Option<u64>) -> Result<Self, String> {
        let of_flows =
            |name: &String| Metric::by_name(name, &blocks).filter(|metric| metric.is_of_flows()).ok_or(name.clone());
        let metrics = names.iter().map(of_flows).collect::<Result<_, _>>()?;
        Ok(Self { metrics, blocks, from_ns, until_ns })
    }

    /// Returns the value of each metric at `t_ns`, in the units of [`Metric::value`]; `None` if no such flow has
    /// started before.
    ///
    /// `rows` are the flows that have started before `t_ns`, and any others. A flow is done whose last byte arrived
    /// before `t_ns`. The others count with the slowdown, and the time, that they have at least.
    pub fn values<'a>(&self, rows: impl IntoIterator<Item = &'a FlowRow>, t_ns: u64) -> Vec<Option<f64>> {
        let started = rows.into_iter().filter(|row| row.start_ns < t_ns).map(|row| {
            let is_done = row.fct_ns.is_some_and(|fct_ns| row.start_ns + fct_ns < t_ns);
            let (fct_ns, slowdown) = if is_done { (row.fct_ns, row.slowdown) } else { (None, None) };
            load::flow(&FlowRow { fct_ns, slowdown, ..row.clone() }, t_ns as f64)
        });
        let mut flows: Vec<_> = started.collect();
        flows.sort_by_key(|flow| flow.id);
        let run = RunData {
            blocks: self.blocks.clone(),
            totals: Totals { end_ns: t_ns as f64, ..Totals::default() },
            measured: Measured {
                from_ns: self.from_ns,
                until_ns: self.until_ns.map_or(t_ns, |until_ns| until_ns.min(t_ns)),
                ..Measured::default()
            },
            flows,
            ..RunData::default()
        };
        let all = Metrics::of(&variants(vec![run]).remove(0));
        self.metrics.iter().map(|metric| metric.value(&all)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32, start_ns: u64, fct_ns: Option<u64>) -> FlowRow {
        FlowRow {
            id,
            dst: 1,
            bytes: Some(5_000),
            start_ns,
            fct_ns,
            fct_ack_ns: fct_ns,
            ideal_fct_ns: Some(100),
            slowdown: fct_ns.map(|ns| ns as f64 / 100.0),
            finished: fct_ns.is_some(),
            ..FlowRow::default()
        }
    }

    fn asked(names: &[&str]) -> SoFar {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        SoFar::new(&names, vec![String::new()], 0, None).unwrap()
    }

    #[test]
    fn flows_under_way_count_with_the_slowdown_that_they_have_at_least() {
        let asked = asked(&["slowdown-mean", "slowdown-max:short", "unfinished-share", "slowdown-p50:long"]);
        // The first is done at 300 ns, the second at 900 ns, the third never, and the fourth has not started.
        let rows = [row(0, 100, Some(200)), row(1, 200, Some(700)), row(2, 300, None), row(3, 500, Some(100))];
        // At 500 ns: slowdowns of 2, of at least 3, and of at least 2.
        let shown = asked.values(&rows, 500);
        assert_eq!(shown, [Some(7.0 / 3.0), Some(3.0), Some(100.0 * (2.0 / 3.0)), None]);
        // What happens later does not matter.
        let cut = [row(0, 100, Some(200)), row(1, 200, None), row(2, 300, None)];
        assert_eq!(asked.values(&cut, 500), shown);
        // The ends of flows and runs are exact: a flow that is done at the moment is not done before it.
        assert_eq!(asked.values(&rows, 300)[2], Some(100.0));
        assert_eq!(asked.values(&rows, 301)[2], Some(100.0 * (2.0 / 3.0)));
    }

    #[test]
    fn metrics_of_other_things_than_flows_are_refused() {
        for name in ["goodput", "queue-p99", "completion", "jain", "slowdown-p98"] {
            assert_eq!(SoFar::new(&[name.to_owned()], Vec::new(), 0, None).unwrap_err(), name);
        }
    }
}
