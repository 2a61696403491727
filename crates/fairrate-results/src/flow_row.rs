//! The rows of flows.

use fairrate_sim::{FlowOutcome, FlowSpec};
use fairrate_units::Bytes;

use crate::rows::FlowRow;
use crate::value::ns;

impl FlowRow {
    /// Returns the row of a flow with its outcome so far.
    pub fn of(spec: &FlowSpec, outcome: &FlowOutcome) -> Self {
        let endless = spec.bytes == Bytes::MAX;
        let has_waited = 0 < outcome.reordering.bytes;
        let finite_fct = outcome.fct.filter(|_| !endless);
        let slowdown = finite_fct.map(|fct| fct.as_ps() as f64 / outcome.ideal_fct.as_ps().max(1) as f64);
        Self {
            id: spec.name(outcome.flow),
            src: spec.src.0,
            dst: spec.dst.0,
            bytes: (!endless).then_some(spec.bytes.as_u64()),
            start_ns: ns(outcome.start),
            fct_ns: outcome.fct.map(ns),
            fct_ack_ns: outcome.fct_ack.map(ns),
            ideal_fct_ns: (!endless).then(|| ns(outcome.ideal_fct)),
            slowdown,
            retransmitted_bytes: outcome.retransmitted_bytes,
            finished: finite_fct.is_some(),
            delivered_bytes: outcome.delivered_bytes,
            group: spec.group,
            reordered_bytes: outcome.reordering.bytes,
            reordering_mean_ns: has_waited.then(|| ns(outcome.reordering.mean())),
            reordering_max_ns: has_waited.then(|| ns(outcome.reordering.max)),
            late_packets: outcome.disorder.late_packets,
            reorder_extent_bytes: outcome.disorder.extent_bytes,
            reorder_span_bytes: outcome.disorder.span_bytes,
            timeouts: outcome.timeouts,
            recoveries: outcome.recoveries,
            connected_ns: outcome.connected.map(ns),
            deadline_ns: spec.deadline.map(ns),
        }
    }
}
