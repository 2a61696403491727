//! Hosts that are not ideal.

use fairrate_units::{Bytes, Rate, Time};

use super::{Pfc, SimConfig};
use crate::ids::NodeId;

/// Hosts that are not ideal. A host that no configuration names acts on a packet the moment it has arrived, and sends
/// at the rate of its link.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// The hosts. No two configurations of a run name the same one.
    pub hosts: Vec<NodeId>,
    /// Time from the arrival of a packet until the host acts on it; for data in a receive buffer, from the time at
    /// which it is in memory.
    pub processing: Time,
    /// Random time besides. Packets of a host keep their order.
    pub jitter: Option<Jitter>,
    /// Times in which the host acts on nothing.
    pub noise: Option<Noise>,
    /// Rate at which the NIC sends, if that is less than its link's: a packet goes at the rate of the link, and the
    /// next one waits.
    pub nic_rate: Option<Rate>,
    /// The buffer from which data that arrives is drained into memory. `None`: data is in memory the moment it has
    /// arrived.
    pub receive: Option<ReceiveBuffer>,
}

impl HostConfig {
    /// No host, and nothing that is not ideal.
    pub const NONE: Self =
        Self { hosts: Vec::new(), processing: Time::ZERO, jitter: None, noise: None, nic_rate: None, receive: None };

    /// Returns `true` if the hosts may act on a packet later than it arrives.
    #[must_use]
    pub fn delays(&self) -> bool {
        Time::ZERO < self.processing || self.jitter.is_some() || self.noise.is_some() || self.receive.is_some()
    }
}

/// A random delay of each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Its distribution.
    pub distribution: Distribution,
    /// Its mean, above zero.
    pub mean: Time,
}

/// The distribution of a delay with a given mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform from zero to twice the mean.
    Uniform,
    /// Exponential.
    Exponential,
    /// Lognormal: the logarithm has this standard deviation.
    Lognormal(f64),
}

/// Times in which a host acts on nothing, as an operating system that is busy elsewhere. Their starts are one and a
/// half periods apart at most and half a period at least, as drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Mean time from one start to the next.
    pub period: Time,
    /// Length, at most half the period.
    pub length: Time,
}

/// A buffer of a NIC from which data is drained into memory. Only data packets are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// Rates of the drain and the times from which they hold, ascending; the first is from time zero, and none is zero.
    pub rates: Vec<(Time, Rate)>,
    /// Bytes that the buffer holds.
    pub size: Bytes,
    /// The reaction to a buffer that fills.
    pub full: FullBuffer,
    /// Bytes in it from which receivers of Ultra Ethernet ask their senders for a penalty, less than `size`.
    pub penalty_from: Option<Bytes>,
}

impl ReceiveBuffer {
    /// Returns the largest rate of the drain.
    #[must_use]
    pub fn fastest(&self) -> Rate {
        self.rates.iter().map(|step| step.1).max().unwrap_or(Rate::MAX)
    }

    /// Returns the smallest rate of the drain.
    #[must_use]
    pub fn slowest(&self) -> Rate {
        self.rates.iter().map(|step| step.1).min().unwrap_or(Rate::MAX)
    }
}

/// The reaction of a NIC to a receive buffer that fills. A packet that finds no room is dropped in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullBuffer {
    /// Packets are dropped.
    Drop,
    /// PFC frames pause the switch. `None`: the level at which nothing is lost, [`SimConfig::pause_level`].
    Pause {
        /// Bytes above which all classes of data are paused.
        at: Option<Bytes>,
        /// Bytes at or below which they resume. `None`: two of the longest packets below.
        resume: Option<Bytes>,
    },
}

impl SimConfig {
    /// Returns the configuration of a host that is not ideal.
    #[must_use]
    pub fn imperfect_host(&self, host: NodeId) -> Option<&HostConfig> {
        self.hosts.iter().find(|config| config.hosts.contains(&host))
    }

    /// Returns the fixed delay of each node, by its number; nothing if all are zero.
    #[must_use]
    pub(crate) fn processing(&self) -> Vec<Time> {
        if self.hosts.iter().all(|config| config.processing == Time::ZERO) {
            return Vec::new();
        }
        let mut all = vec![Time::ZERO; self.topology.nodes.len()];
        for config in &self.hosts {
            for host in &config.hosts {
                all[host.index()] = config.processing;
            }
        }
        all
    }

    /// Returns the rate at which the receive buffer of `host` drains at most, or that of its link if that is less.
    #[must_use]
    pub fn drain_rate(&self, host: NodeId) -> Rate {
        let link = self.topology.host_links().find(|&(of, _)| of == host).map(|(_, link)| link);
        let drain = self.imperfect_host(host).and_then(|config| config.receive.as_ref()).map(ReceiveBuffer::fastest);
        link.map(|link| link.rate).into_iter().chain(drain).min().unwrap_or(Rate::ZERO)
    }

    /// Returns the classes in which data may come to a host, a bit each.
    #[must_use]
    pub(crate) fn data_classes(&self) -> u8 {
        let classes = self.flows.iter().fold(0, |classes, flow| classes | 1 << self.class_of(flow));
        // HOMA chooses classes by itself, but leaves class 0 to PFC frames: a pause of that would hold back the
        // switch's own frames.
        let of_homa = if self.fabric.pfc == Pfc::Off { u8::MAX } else { !1 };
        if self.is_any(|_, needs| needs.feedback.grants.is_some()) { of_homa } else { classes }
    }

    /// Returns the bytes that may still reach `host` after its receive buffer has passed the level at which it pauses
    /// its switch: what the link carries in a round trip, while the NIC sends a packet that it has begun and another
    /// one, and while it sends a frame for each class; and a packet that the switch has begun. `None`: the host has no
    /// link.
    #[must_use]
    pub fn host_headroom(&self, host: NodeId) -> Option<Bytes> {
        let link = self.topology.links.iter().find(|link| [link.a, link.b].contains(&host))?;
        let nic_rate = self.imperfect_host(host).and_then(|config| config.nic_rate).unwrap_or(Rate::MAX).min(link.rate);
        let (longest, frame) = (self.longest_packet().as_u64(), self.fabric.pfc_frame.as_u64());
        let (overhead, frames) = (self.fabric.frame_overhead.as_u64(), u64::from(self.data_classes().count_ones()));
        let own = 2 * (longest + overhead) + frames * (frame + overhead);
        let wait = link.delay * 2 + nic_rate.tx_time(Bytes::new(own));
        Some(link.rate.bytes_in(wait) + Bytes::new(2 * longest))
    }

    /// Returns the bytes above which a receive buffer of `size` at `host` pauses its switch, so that nothing is lost:
    /// what [`host_headroom`](Self::host_headroom) leaves.
    #[must_use]
    pub fn pause_level(&self, host: NodeId, size: Bytes) -> Bytes {
        Bytes::new(size.as_u64().saturating_sub(self.host_headroom(host).unwrap_or(Bytes::ZERO).as_u64()))
    }

    /// Returns the bytes above which a receive buffer of `size` at `host` pauses its switch, and those at or below
    /// which the switch resumes, where [`FullBuffer::Pause`] has `at` and `resume`.
    #[must_use]
    pub fn pause_levels(&self, host: NodeId, size: Bytes, at: Option<Bytes>, resume: Option<Bytes>) -> [Bytes; 2] {
        let at = at.unwrap_or_else(|| self.pause_level(host, size));
        let below = at.as_u64().saturating_sub(2 * self.longest_packet().as_u64());
        [at, resume.unwrap_or(Bytes::new(below)).min(at)]
    }
}
