//! The telemetry with which an algorithm compares the next one: that of the flow's last packet, or of the last one on each path.

use std::collections::BTreeMap;

use crate::int::IntHop;

/// The telemetry of earlier packets of a flow. A record tells something only beside one of the same port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    /// Telemetry of the last packet on `path`; empty if there is none to compare with.
    last: Vec<IntHop>,
    path: u16,
    has_begun: bool,
    /// Telemetry of the last packets on other paths; `None`: a change of path forgets.
    others: Option<BTreeMap<u16, Vec<IntHop>>>,
}

impl Records {
    /// Returns no records, with room for `n_hops`; `is_per_path`: those of all paths are kept.
    pub(crate) fn new(n_hops: u32, is_per_path: bool) -> Self {
        Self {
            last: Vec::with_capacity(n_hops as usize),
            path: 0,
            has_begun: false,
            others: is_per_path.then(BTreeMap::new),
        }
    }

    /// Turns to the records of `path`.
    #[inline]
    pub(crate) fn turn_to(&mut self, path: u16) {
        if path != self.path {
            self.change_to(path);
        }
    }

    #[cold]
    fn change_to(&mut self, path: u16) {
        if let Some(others) = &mut self.others {
            let next = others.remove(&path).unwrap_or_default();
            let before = std::mem::replace(&mut self.last, next);
            if !before.is_empty() {
                others.insert(self.path, before);
            }
        } else {
            self.last.clear();
        }
        self.path = path;
    }

    /// Returns the last records of the path.
    #[inline]
    pub(crate) fn last(&self) -> &[IntHop] {
        &self.last
    }

    /// Returns `true` if any records have been kept.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns `true` if there are records of other paths.
    pub(crate) fn has_others(&self) -> bool {
        self.others.as_ref().is_some_and(|others| !others.is_empty())
    }

    /// Begins with records of zero bytes at time zero.
    pub(crate) fn begin_with_zeros(&mut self, int: &[IntHop]) {
        self.last.extend(int.iter().map(|hop| IntHop { rate: hop.rate, ..IntHop::ABSENT }));
    }

    /// Keeps the records of a packet on the path.
    #[inline]
    pub(crate) fn keep(&mut self, int: &[IntHop]) {
        self.has_begun = true;
        self.last.clear();
        self.last.extend_from_slice(int);
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::{Rate, Time};

    use super::*;
    use crate::int::PortRate;

    fn hop(tx_bytes: u64) -> [IntHop; 1] {
        [IntHop { ts: Time::from_us(1), tx_bytes, qlen: 0, rate: PortRate::new(Rate::from_gbps(25)) }]
    }

    #[test]
    fn a_change_of_path_forgets_unless_paths_are_kept() {
        for is_per_path in [false, true] {
            let mut records = Records::new(1, is_per_path);
            records.turn_to(7);
            records.keep(&hop(1));
            records.turn_to(8);
            assert_eq!((records.last(), records.has_others()), (&[][..], is_per_path));
            records.keep(&hop(2));
            records.turn_to(7);
            assert_eq!(records.last().to_vec(), if is_per_path { hop(1).to_vec() } else { vec![] });
            records.turn_to(8);
            assert_eq!(records.last().to_vec(), if is_per_path { hop(2).to_vec() } else { vec![] });
        }
    }
}
