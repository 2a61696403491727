//! The telemetry with which an algorithm compares the next one: that of the flow's last packet, or of the last one on
//! each path.

use std::collections::BTreeMap;

use crate::int::IntHop;

/// The telemetry of earlier packets of a flow. A record tells something only beside one of the same port.
///
/// It is as large as a `Vec`: the state of a flow fills whole cache lines.
#[derive(Clone, Debug)]
pub(crate) enum Records {
    /// That of the last packet, if it took the present path.
    OfOne {
        /// Empty if there is none to compare with.
        last: Box<[IntHop]>,
        /// The present path.
        path: u16,
        /// `true` once any records have been kept.
        has_begun: bool,
    },
    /// That of the last packet on each path.
    OfAll(Box<ByPath>),
}

/// The telemetry of the last packet on each path.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPath {
    path: u16,
    records: BTreeMap<u16, Box<[IntHop]>>,
}

impl Records {
    /// Returns no records; `is_per_path`: those of all paths will be kept.
    pub(crate) fn new(is_per_path: bool) -> Self {
        if is_per_path {
            return Self::OfAll(Box::default());
        }
        Self::OfOne { last: Box::default(), path: 0, has_begun: false }
    }

    /// Turns to the records of `path`.
    #[inline]
    pub(crate) fn turn_to(&mut self, path: u16) {
        match self {
            Self::OfOne { last, path: before, .. } if *before != path => (*last, *before) = (Box::default(), path),
            Self::OfOne { .. } => {}
            Self::OfAll(all) => all.path = path,
        }
    }

    /// Returns the last records of the path.
    #[inline]
    pub(crate) fn last(&self) -> &[IntHop] {
        match self {
            Self::OfOne { last, .. } => last,
            Self::OfAll(all) => all.records.get(&all.path).map_or(&[], |last| last),
        }
    }

    /// Returns `true` if any records have been kept.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            Self::OfOne { has_begun, .. } => *has_begun,
            Self::OfAll(all) => !all.records.is_empty(),
        }
    }

    /// Returns `true` if records are kept of other paths than the present one.
    pub(crate) fn has_others(&self) -> bool {
        match self {
            Self::OfOne { .. } => false,
            Self::OfAll(all) => all.records.keys().any(|&path| path != all.path),
        }
    }

    /// Begins with records of zero bytes at time zero.
    pub(crate) fn begin_with_zeros(&mut self, int: &[IntHop]) {
        let zeros: Vec<IntHop> = int.iter().map(|hop| IntHop { rate: hop.rate, ..IntHop::ABSENT }).collect();
        self.keep(&zeros);
    }

    /// Keeps the records of a packet on the path.
    #[inline]
    pub(crate) fn keep(&mut self, int: &[IntHop]) {
        let last = match self {
            Self::OfOne { last, has_begun, .. } => {
                *has_begun = true;
                last
            }
            Self::OfAll(all) => all.records.entry(all.path).or_default(),
        };
        if last.len() == int.len() {
            last.copy_from_slice(int);
        } else {
            *last = int.into();
        }
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
            let mut records = Records::new(is_per_path);
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
