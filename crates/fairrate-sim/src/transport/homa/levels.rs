//! The priority classes of packets (section 3.4 of the paper).

use fairrate_control::homa::{Grants, HomaCutoffs, HomaRttBytes};
use fairrate_units::Time;

use crate::config::{Pfc, SimConfig};
use crate::core::{Flow, Paths};
use crate::fabric::N_CLASSES;
use crate::ids::PortId;

/// The classes of packets, and the number of bytes that messages send without a grant. Class 0 is sent first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// The highest class: 0, or 1 where PFC frames use class 0.
    first: u8,
    /// The lowest class.
    lowest: u8,
    /// Number of classes for unscheduled packets, from the highest on. Scheduled packets use the rest, or the same
    /// class if there is only one.
    n_unscheduled: u8,
    /// Messages granted at a time.
    overcommitment: usize,
    /// Payload of a full packet.
    mtu: u64,
    rtt_bytes: HomaRttBytes,
    base_rtt: Time,
}

impl Levels {
    /// Returns the levels of a run in which receivers grant.
    pub(crate) fn new(config: &SimConfig, grants: &Grants, base_rtt: Time) -> Self {
        let first = u8::from(config.fabric.pfc != Pfc::Off);
        let n_levels = grants.levels.clamp(1, N_CLASSES as u32 - u32::from(first)) as u8;
        let n_scheduled = grants.overcommitment.clamp(1, u32::from(n_levels).max(2) - 1) as u8;
        Self {
            first,
            lowest: first + n_levels - 1,
            n_unscheduled: (n_levels - n_scheduled).max(1),
            overcommitment: grants.overcommitment.max(1) as usize,
            mtu: config.transport.mtu.as_u64(),
            rtt_bytes: grants.rtt_bytes,
            base_rtt,
        }
    }

    /// Returns the number of classes.
    pub(crate) fn n_classes(&self) -> u64 {
        u64::from(self.lowest - self.first) + 1
    }

    /// Returns the number of messages that a receiver grants at a time.
    pub(super) fn overcommitment(&self) -> usize {
        self.overcommitment
    }

    /// Returns RTTbytes of a flow in whole packets: the bytes it sends without a grant, and those its receiver keeps on
    /// their way.
    pub(super) fn rtt_bytes(&self, config: &SimConfig, first_port: PortId) -> u64 {
        let bytes = match self.rtt_bytes {
            HomaRttBytes::Bdp => config.topology.link(first_port).rate.bytes_in(self.base_rtt),
            HomaRttBytes::Fixed(bytes) => bytes,
        };
        self.whole_packets(bytes.as_u64().max(1))
    }

    /// Returns `bytes` rounded up to whole packets.
    pub(super) fn whole_packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mtu).saturating_mul(self.mtu)
    }

    /// Returns the payload of a full packet.
    pub(super) fn mtu(&self) -> u64 {
        self.mtu
    }

    /// Returns the class of grants and of all other packets without data: the highest.
    pub(super) fn control(&self) -> u8 {
        self.first
    }

    /// Returns the class of a message's scheduled packets: `rank` is its place among the `n` that are granted, 0 for
    /// the shortest. The longest of them has the lowest class, so that a new and shorter message finds a higher class
    /// free.
    pub(super) fn scheduled(&self, rank: usize, n: usize) -> u8 {
        let above = (n - 1).saturating_sub(rank) as u8;
        self.lowest.saturating_sub(above).max((self.first + self.n_unscheduled).min(self.lowest))
    }

    /// Assigns to every flow the class of its unscheduled packets.
    pub(crate) fn assign(&self, config: &SimConfig, grants: &Grants, flows: &mut [Flow], paths: &Paths<PortId>) {
        let unscheduled = |flow: &Flow| {
            let first_port = flow.data_path(paths).next().expect("a path has a link");
            (flow.bytes, self.rtt_bytes(config, first_port).min(flow.bytes))
        };
        let cutoffs = match grants.cutoffs {
            HomaCutoffs::EqualBytes => {
                equal_bytes(flows.iter().map(unscheduled).collect(), usize::from(self.n_unscheduled))
            }
            HomaCutoffs::Sizes(sizes) => sizes.iter().map(|size| size.as_u64()).collect(),
        };
        for flow in flows {
            let level = cutoffs.iter().filter(|&&cutoff| cutoff < flow.bytes).count() as u8;
            flow.class = self.first + level.min(self.n_unscheduled - 1);
        }
    }
}

/// Returns the largest sizes of all of `n` levels but the last, so that each level has about the same share of
/// unscheduled bytes. `messages` are pairs of size and unscheduled bytes. All messages of a size are in one level,
/// however many bytes they have.
fn equal_bytes(mut messages: Vec<(u64, u64)>, n: usize) -> Vec<u64> {
    messages.sort_unstable();
    let total: u128 = messages.iter().map(|&(_, bytes)| u128::from(bytes)).sum();
    let (mut cutoffs, mut sum) = (Vec::new(), 0);
    for (size, bytes) in messages {
        sum += u128::from(bytes);
        while cutoffs.len() + 1 < n && total * (cutoffs.len() as u128 + 1) <= sum * n as u128 {
            cutoffs.push(size);
        }
    }
    cutoffs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(first: u8, n_unscheduled: u8) -> Levels {
        let rtt_bytes = HomaRttBytes::Bdp;
        Levels { first, lowest: 7, n_unscheduled, overcommitment: 1, mtu: 1_000, rtt_bytes, base_rtt: Time::from_us(8) }
    }

    #[test]
    fn the_longest_granted_message_has_the_lowest_level() {
        let of = |n| (0..n).map(|rank| levels(0, 4).scheduled(rank, n)).collect::<Vec<_>>();
        assert_eq!(of(1), [7]);
        assert_eq!(of(3), [5, 6, 7]);
        assert_eq!(of(4), [4, 5, 6, 7]);
        // Messages beyond the scheduled levels share the highest of these levels.
        assert_eq!(of(6), [4, 4, 4, 5, 6, 7]);
    }

    #[test]
    fn fewer_levels_are_the_highest_classes() {
        // Four levels, of which three are for unscheduled packets: the last is the lowest of them.
        let four = Levels { lowest: 4, ..levels(1, 3) };
        assert_eq!((four.n_classes(), four.scheduled(0, 1), four.scheduled(0, 3)), (4, 4, 4));
        // One level is for all packets.
        let one = Levels { lowest: 0, ..levels(0, 1) };
        assert_eq!((one.n_classes(), one.scheduled(0, 1), one.scheduled(1, 3)), (1, 0, 0));
    }

    #[test]
    fn levels_have_equal_bytes() {
        // Ten messages of sizes 1 to 10, of which 55 bytes are unscheduled: 10 or fewer are below 11, then 15 and 21.
        let messages: Vec<_> = (1..=10).map(|size| (size, size)).collect();
        assert_eq!(equal_bytes(messages.clone(), 5), [5, 7, 8, 9]);
        assert!(equal_bytes(messages, 1).is_empty());
        // One size is one level, the highest.
        assert_eq!(equal_bytes(vec![(7, 5); 10], 4), [7, 7, 7]);
        assert!(equal_bytes(Vec::new(), 4).is_empty());
    }
}
