//! The fractions of time for which queues were longer than a length.

use crate::model::PortSeries;
use crate::panel::{Axis, Panel, Series};
use crate::series::ccdf;

/// Returns a figure of the fractions of time for which queues were longer than a length. Both axes are logarithmic:
/// nearly all of the time queues are short, and the rest matters. Queues that were always empty have no line.
pub(crate) fn figure(series: Vec<Series>) -> Panel {
    Panel {
        x: Axis::new("queue (KB)").logarithmic(),
        y: Axis::new("fraction of time").logarithmic().showing(1.0, 1.0),
        series: series.into_iter().filter(|s| !s.x.is_empty()).collect(),
        ..Panel::default()
    }
}

/// Returns queue lengths, in KB, and the fractions of the time for which they were exceeded.
pub(crate) fn time_above(ports: &[PortSeries], points: usize) -> (Vec<f64>, Vec<f64>) {
    let held = |p: &PortSeries| -> Vec<f64> {
        let until_next = p.t_ns.windows(2).map(|t| t[1] - t[0]);
        until_next.chain([0.0]).take(p.t_ns.len()).collect()
    };
    let weights: Vec<f64> = ports.iter().flat_map(held).collect();
    let kilobytes: Vec<f64> = ports.iter().flat_map(|p| p.qlen_bytes.iter().map(|q| q / 1e3)).collect();
    ccdf(&kilobytes, |i| weights[i], points)
}
