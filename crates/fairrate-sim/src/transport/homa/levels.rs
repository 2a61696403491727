//! The priority classes of packets (section 3.4 of the paper).

use fairrate_control::homa::{Grants, HomaCount, HomaCutoffs, HomaOrder, HomaRttBytes, HomaUnscheduled};
use fairrate_units::{Bytes, Time};

use crate::config::{Pfc, SimConfig};
use crate::core::{Flow, Paths};
use crate::fabric::N_CLASSES;
use crate::ideal::{Framing, Train};
use crate::ids::PortId;
use crate::transport::Kind;

/// Largest number of messages that a receiver grants at a time.
pub(super) const MAX_GRANTED: usize = N_CLASSES - 1;

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
    counts: HomaCount,
    order: HomaOrder,
    unscheduled: HomaUnscheduled,
    /// Largest sizes of the classes for unscheduled packets but the last.
    cutoffs: Vec<u64>,
    /// Last bytes of a message that have classes for unscheduled packets, though they are scheduled.
    tail: u64,
    /// Payload of a full unscheduled packet.
    mtu: u64,
    /// Payload of a full scheduled packet, and its bytes besides.
    scheduled_payload: u64,
    scheduled_header: u64,
    rtt_bytes: HomaRttBytes,
    base_rtt: Time,
}

impl Levels {
    /// Returns the levels of a run in which receivers grant, whose packets have `header` bytes besides their payload.
    pub(crate) fn new(config: &SimConfig, grants: &Grants, base_rtt: Time, header: u64) -> Self {
        let first = u8::from(config.fabric.pfc != Pfc::Off);
        let n_levels = grants.levels.clamp(1, N_CLASSES as u32 - u32::from(first)) as u8;
        let mtu = config.transport.mtu.as_u64();
        let scheduled_header = grants.scheduled_header.map_or(header, |bytes| bytes.as_u64().min(header));
        let n_scheduled = grants.overcommitment.clamp(1, u32::from(n_levels).max(2) - 1) as u8;
        Self {
            first,
            lowest: first + n_levels - 1,
            n_unscheduled: (n_levels - n_scheduled).max(1),
            overcommitment: (grants.overcommitment as usize).clamp(1, MAX_GRANTED),
            counts: grants.counts,
            order: grants.order,
            unscheduled: grants.unscheduled,
            cutoffs: Vec::new(),
            tail: grants.tail.as_u64(),
            mtu,
            scheduled_payload: mtu + header - scheduled_header,
            scheduled_header,
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

    /// Returns what overcommitment counts.
    pub(super) fn counts(&self) -> HomaCount {
        self.counts
    }

    /// Returns the order of messages at a receiver.
    pub(super) fn order(&self) -> HomaOrder {
        self.order
    }

    /// Returns RTTbytes of a flow: the bytes it sends without a grant, and those its receiver keeps on their way.
    pub(super) fn rtt_bytes(&self, config: &SimConfig, first_port: PortId) -> u64 {
        match self.rtt_bytes {
            HomaRttBytes::Bdp => {
                let bytes = config.topology.link(first_port).rate.bytes_in(self.base_rtt).as_u64();
                bytes.max(1).div_ceil(self.mtu).saturating_mul(self.mtu)
            }
            HomaRttBytes::Fixed(bytes) => bytes.as_u64().max(1),
        }
    }

    /// Returns `bytes` rounded up to whole scheduled packets.
    pub(super) fn whole_packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.scheduled_payload).saturating_mul(self.scheduled_payload)
    }

    /// Returns the payload of a full scheduled packet.
    pub(super) fn scheduled_payload(&self) -> u64 {
        self.scheduled_payload
    }

    /// Returns the bytes of a scheduled packet besides its payload.
    pub(super) fn scheduled_header(&self) -> u64 {
        self.scheduled_header
    }

    /// Returns the payload of a full unscheduled packet.
    pub(super) fn mtu(&self) -> u64 {
        self.mtu
    }

    /// Returns the packets of a message of `bytes` bytes, of which the first `unscheduled` need no grant and have
    /// packets of the sizes in `blind`.
    pub(super) fn train(&self, bytes: Bytes, unscheduled: u64, blind: Framing) -> Train {
        let scheduled = bytes.as_u64().saturating_sub(unscheduled);
        if scheduled == 0 {
            return blind.train(bytes);
        }
        let [mtu, header] = [self.scheduled_payload, self.scheduled_header].map(Bytes::new);
        let asked = Framing { mtu, header, ..blind }.train(Bytes::new(scheduled));
        let (n_blind, part) = (unscheduled / self.mtu, unscheduled % self.mtu);
        let all = Train { n_full: n_blind + asked.n_full, ..asked };
        if part == 0 {
            return all;
        }
        let short = Bytes::new(part) + blind.header + blind.overhead;
        match (n_blind, asked.n_full) {
            (_, 0) => Train { late: short, ..all },
            (0, _) => Train { lead: short, ..all },
            _ => Train { middle: short, ..all },
        }
    }

    /// Returns the class of an unscheduled packet of a message that has the class `by_size` and `left` bytes that were
    /// not sent before it.
    pub(super) fn unscheduled(&self, by_size: u8, left: u64) -> u8 {
        match self.unscheduled {
            HomaUnscheduled::Size => by_size,
            HomaUnscheduled::Remaining => self.class_of(left),
        }
    }

    /// Returns the class of a scheduled packet that was granted in `class`, of a message of which `left` bytes were not
    /// sent before it.
    pub(super) fn granted_in(&self, class: u8, left: u64) -> u8 {
        if left <= self.tail { class.min(self.class_of(left)) } else { class }
    }

    /// Returns the class for unscheduled packets of this number of bytes.
    fn class_of(&self, bytes: u64) -> u8 {
        let level = self.cutoffs.iter().filter(|&&cutoff| cutoff < bytes).count() as u8;
        self.first + level.min(self.n_unscheduled - 1)
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

    /// Chooses the sizes of the classes for unscheduled packets, and assigns to every flow of this transport the class
    /// for its size.
    pub(crate) fn assign(&mut self, config: &SimConfig, grants: &Grants, flows: &mut [Flow], paths: &Paths<PortId>) {
        self.cutoffs = match grants.cutoffs {
            HomaCutoffs::EqualBytes => {
                let packets = flows.iter().filter(|flow| flow.transport == Kind::Homa).flat_map(|flow| {
                    let first_port = flow.data_path(paths).next().expect("a path has a link");
                    self.packets(flow.bytes, self.rtt_bytes(config, first_port).min(flow.bytes))
                });
                equal_bytes(packets.collect(), usize::from(self.n_unscheduled))
            }
            HomaCutoffs::Sizes(sizes) => sizes.iter().map(|size| size.as_u64()).collect(),
        };
        for flow in flows.iter_mut().filter(|flow| flow.transport == Kind::Homa) {
            flow.set_class(self.class_of(flow.bytes));
        }
    }

    /// Returns the packets of a message of `bytes` bytes that have classes for unscheduled packets: for each the number
    /// of bytes that decides its class, and its payload. All that go by the message's size are one.
    fn packets(&self, bytes: u64, unscheduled: u64) -> Vec<(u64, u64)> {
        let mut packets = Vec::new();
        let mut add = |from: u64, to: u64, payload: u64| {
            for at in (from..to).step_by(payload as usize) {
                packets.push((bytes - at, payload.min(to - at)));
            }
        };
        let is_by_size = self.unscheduled == HomaUnscheduled::Size || bytes == u64::MAX;
        add(0, unscheduled, if is_by_size { unscheduled.max(1) } else { self.mtu });
        if bytes < u64::MAX {
            add(bytes.saturating_sub(self.tail).max(unscheduled), bytes, self.scheduled_payload);
        }
        packets
    }
}

/// Returns the largest sizes of all of `n` levels but the last, so that each level has about the same share of bytes.
/// `messages` are pairs of the size that decides and the bytes that count. All of a size are in one level, however many
/// bytes they have.
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
        Levels {
            first,
            lowest: 7,
            n_unscheduled,
            overcommitment: 1,
            counts: HomaCount::Messages,
            order: HomaOrder::Granted,
            unscheduled: HomaUnscheduled::Size,
            cutoffs: Vec::new(),
            tail: 0,
            mtu: 1_000,
            scheduled_payload: 1_000,
            scheduled_header: 48,
            rtt_bytes: HomaRttBytes::Bdp,
            base_rtt: Time::from_us(8),
        }
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

    /// A message of 20,000 bytes, of which 8,000 are unscheduled and the last 3,500 have classes of that kind.
    #[test]
    fn packets_count_by_what_decides_their_level() {
        let by_size = Levels { tail: 3_500, ..levels(0, 4) };
        let tail = [(3_500, 1_000), (2_500, 1_000), (1_500, 1_000), (500, 500)];
        assert_eq!(by_size.packets(20_000, 8_000), [&[(20_000, 8_000)], &tail[..]].concat());
        let graded = Levels { unscheduled: HomaUnscheduled::Remaining, cutoffs: vec![900, 2_000, 5_000], ..by_size };
        assert_eq!(graded.packets(20_000, 8_000)[..3], [(20_000, 1_000), (19_000, 1_000), (18_000, 1_000)]);
        assert_eq!(graded.packets(20_000, 8_000)[8..], tail);
        assert_eq!(graded.packets(1_500, 1_500), [(1_500, 1_000), (500, 500)]);
        assert_eq!(graded.packets(u64::MAX, 8_000), [(u64::MAX, 8_000)]);
        // Unscheduled packets go by what is left, and scheduled ones within the tail.
        assert_eq!((graded.unscheduled(3, 1_500), graded.unscheduled(3, 900)), (1, 0));
        assert_eq!((graded.granted_in(7, 3_501), graded.granted_in(7, 3_500), graded.granted_in(7, 500)), (7, 2, 0));
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
