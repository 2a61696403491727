//! How hosts move bytes.

use fairrate_control::Needs;
use fairrate_units::{Bytes, Time};

use crate::transport::TcpConfig;

/// How lost packets are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The receiver drops what is out of order; the sender returns to the gap (RoCE).
    GoBackN,
    /// The receiver keeps what is out of order; the sender resends the gaps only (IRN).
    SelectiveRepeat,
}

/// Which window bounds the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The algorithm's own (rate-based algorithms have none).
    Algorithm,
    /// One base-RTT worth of line rate, scaled by rate over line rate. These are bytes on the wire, taken as payload, so the
    /// window is larger than the rate needs by the share of headers, as in ns-3.
    RateScaled,
    /// None: pacing alone.
    None,
}

/// How the network-wide base RTT (τ) is computed from the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRttRule {
    /// A full packet and its acknowledgment over the longest path, all headers counted.
    Exact,
    /// Propagation both ways and the forward serialisations of payload bytes only, in whole ns (ns-3).
    PayloadOnly,
    /// This value.
    Fixed(Time),
}

/// Who recovers what is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RDMA over Converged Ethernet: acknowledgments and NACKs of every packet, [`Recovery`].
    Rdma,
    /// TCP with selective acknowledgments and loss detection by time (RFC 2018, RFC 8985).
    Tcp(TcpConfig),
}

/// The transport of the hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportConfig {
    /// RDMA or TCP.
    pub kind: Transport,
    /// Payload of a full packet.
    pub mtu: Bytes,
    /// Header bytes of a data packet, without the algorithm's telemetry.
    pub header: Bytes,
    /// Bytes of an acknowledgment, without the algorithm's telemetry.
    pub ack: Bytes,
    /// Telemetry bytes on data packets; `None`: what the algorithm needs.
    pub data_overhead: Option<Bytes>,
    /// Telemetry bytes on acknowledgments; `None`: what the algorithm needs.
    pub ack_overhead: Option<Bytes>,
    /// Bytes of a congestion notification packet.
    pub cnp: Bytes,
    /// Class of data packets.
    pub data_class: u8,
    /// Class of acknowledgments, NACKs and CNPs in the network.
    pub ack_class: u8,
    /// Class of notices and of control packets, both ways.
    pub control_class: u8,
    /// From the arrival of a CNP or notice at a host until its NIC acts on it.
    pub reaction_delay: Time,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Retransmission timeout; `None`: never (lossless fabrics only).
    pub rto: Option<Time>,
    /// Least time between two NACKs of a flow.
    pub nack_interval: Time,
    /// Window rule.
    pub window: WindowRule,
    /// RDMA: whether a packet goes while less than the window is in flight, though with it more may be (ns-3's RDMA stack).
    /// Otherwise it goes if it fits into the window. With nothing in flight a packet always goes.
    pub window_overshoot: bool,
    /// τ.
    pub base_rtt: BaseRttRule,
}

impl TransportConfig {
    /// The most that any packet may have on the wire: its length has 16 bits.
    pub const MAX_PACKET: Bytes = Bytes::new(u16::MAX as u64);

    /// What data packets have on the wire besides payload.
    pub fn data_header(&self, needs: &Needs) -> Bytes {
        self.header + self.data_overhead.unwrap_or(needs.data_overhead)
    }
}
