//! The rows of ports over a whole run.

use fairrate_sim::{DropCause, PortTotals};

use crate::rows::LinkRow;
use crate::value::Text;
use crate::value::ns;

impl LinkRow {
    /// Returns the row of the port with the name `port`, which sends from `node` at `rate_bps`.
    pub(super) fn of(node: u32, port: Text, rate_bps: u64, totals: &PortTotals) -> Self {
        let drops = |cause| totals.drops.of(cause);
        Self {
            node,
            port,
            rate_bps,
            tx_bytes: totals.tx_bytes,
            ecn_marks: totals.ecn_marks,
            pfc_pause_ns: ns(totals.pfc_pause),
            drops: totals.drops.total(),
            drops_egress_threshold: drops(DropCause::EgressThreshold),
            drops_ingress_threshold: drops(DropCause::IngressThreshold),
            drops_buffer_full: drops(DropCause::BufferFull),
            drops_headroom: drops(DropCause::Headroom),
            drops_queue_limit: drops(DropCause::QueueLimit),
            drops_early: drops(DropCause::Early),
            drops_sojourn: drops(DropCause::Sojourn),
            drops_priority: drops(DropCause::Priority),
            drops_faults: drops(DropCause::Fault),
            drops_unreachable: drops(DropCause::Unreachable),
            drops_host: drops(DropCause::Host),
        }
    }

    /// Returns each cause of drops by its name in `summary.json` without `drops_`, with the packets dropped for it
    /// here.
    pub fn by_cause(&self) -> [(&'static str, u64); DropCause::ALL.len()] {
        let n: [u64; DropCause::ALL.len()] = [
            self.drops_egress_threshold,
            self.drops_ingress_threshold,
            self.drops_buffer_full,
            self.drops_headroom,
            self.drops_queue_limit,
            self.drops_early,
            self.drops_sojourn,
            self.drops_priority,
            self.drops_faults,
            self.drops_unreachable,
            self.drops_host,
        ];
        std::array::from_fn(|i| (DropCause::ALL[i].name(), n[i]))
    }
}

#[cfg(test)]
mod tests {
    use fairrate_sim::{Drops, PortId};
    use fairrate_units::Time;

    use super::*;

    #[test]
    fn each_cause_has_a_column_of_its_name() {
        let drops: Drops = DropCause::ALL.into_iter().zip(1..).collect();
        let totals = PortTotals { port: PortId(0), tx_bytes: 9, drops, ecn_marks: 8, pfc_pause: Time::from_ns(7) };
        let row = LinkRow::of(3, "a->b".to_owned().into(), 10, &totals);
        let columns = <LinkRow as crate::table::Row>::TABLE.columns;
        let names = columns.iter().filter_map(|column| column.name.strip_prefix("drops_"));
        let by_name: Vec<(&str, u64)> = names.zip(1..).collect();
        assert_eq!(by_name, row.by_cause());
        let all: u64 = by_name.iter().map(|(_, n)| n).sum();
        assert_eq!((row.drops, row.pfc_pause_ns), (all, 7));
    }
}
