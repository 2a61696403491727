//! Transport of bytes by hosts.

use fairrate_control::{AlgorithmConfig, Needs};
use fairrate_units::{Bytes, Time};

use super::BalanceInfo;
use crate::transport::TcpConfig;

/// The recovery of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Go-back-N: the receiver drops packets that are out of order; the sender returns to the gap (RoCE).
    GoBackN,
    /// Selective repeat: the receiver keeps packets that are out of order; the sender resends the gaps only (IRN).
    SelectiveRepeat,
}

/// The window that bounds the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The algorithm's own (rate-based algorithms have none).
    Algorithm,
    /// Line rate times one base RTT, scaled by rate over line rate. These bytes on the wire are taken as payload bytes,
    /// so the window is larger than the rate needs by the share of headers, as in ns-3.
    RateScaled,
    /// The algorithm's own, and at most the full packets of one base RTT of line rate (IRN's BDP-FC).
    Bdp,
    /// No window: pacing alone.
    None,
    /// As many payload bytes for every flow, whatever its algorithm decides.
    Fixed(Bytes),
}

/// The computation of the network-wide base RTT (τ) from the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRttRule {
    /// A full packet and its acknowledgment over the longest path, all headers counted.
    Exact,
    /// Propagation both ways and the forward serialisations of payload bytes only, in whole ns (ns-3).
    PayloadOnly,
    /// A fixed value.
    Fixed(Time),
}

/// The transport protocol, which recovers lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RDMA over Converged Ethernet: acknowledgments and NACKs of every packet, [`Recovery`].
    Rdma,
    /// TCP with selective acknowledgments and loss detection by time (RFC 2018, RFC 8985).
    Tcp(TcpConfig),
    /// Ultra Ethernet: packets in any order, selective acknowledgments, notices of packets that were cut.
    Uet {
        /// Bytes on the wire after which a receiver acknowledges in any case.
        ack_every: Bytes,
    },
}

impl Transport {
    /// Returns the name in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rdma => "rdma",
            Self::Tcp(_) => "tcp",
            Self::Uet { .. } => "uet",
        }
    }
}

/// The choice of paths by hosts: packets carry values that switches hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entropy {
    /// The scheme.
    pub scheme: EntropyScheme,
    /// Number of values, a power of two up to 2^15. PLB has all 2^16, and a permutation one for each path.
    pub values: u16,
}

/// A scheme by which a sender chooses the value of its next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntropyScheme {
    /// All values in turn, in an order that changes after each round.
    Oblivious,
    /// The same; values whose packets were marked, trimmed or late are passed over for some rounds.
    Bitmap,
    /// Values whose packets came back without a mark are sent once more; random ones if there is none (REPS).
    Reps,
    /// REPS as it was at first: all good values are remembered, and the first packets take all values in turn.
    RepsLegacy,
    /// The good values of [`RepsLegacy`](Self::RepsLegacy), or if there is none, those of [`Bitmap`](Self::Bitmap).
    Mixed,
    /// One value until its path has been congested for some round trips, or after a timeout (PLB).
    Plb,
    /// All values in turn, in an order that changes after each round; those whose packets were marked, trimmed or late
    /// are passed over once (EQDS).
    BitmapOnce,
    /// The numbers of all paths between the two hosts, in a random order that is drawn again after each round (NDP).
    /// Switches go by the number and hash nothing.
    Permutation,
}

impl EntropyScheme {
    /// All schemes.
    pub const ALL: [Self; 8] = [
        Self::Oblivious,
        Self::Bitmap,
        Self::Reps,
        Self::RepsLegacy,
        Self::Mixed,
        Self::Plb,
        Self::BitmapOnce,
        Self::Permutation,
    ];

    /// Returns the name in scenarios.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the description.
    pub fn info(self) -> BalanceInfo {
        let (name, title, source) = match self {
            Self::Oblivious => {
                ("oblivious", "all values in turn, in an order that changes after each round", "uet-htsim")
            }
            Self::Bitmap => {
                ("bitmap", "the same; values that came back badly are passed over for some rounds", "uet-htsim")
            }
            Self::Reps => {
                ("reps", "values that came back without a mark once more, else random ones", "REPS, arXiv 2407.21625")
            }
            Self::RepsLegacy => ("reps-legacy", "REPS's first form: all good values are remembered", "uet-htsim"),
            Self::Mixed => ("mixed", "the good values of reps-legacy, else those of bitmap", "uet-htsim"),
            Self::Plb => ("plb", "one value until its path is congested, or after a timeout", "PLB, SIGCOMM 2022"),
            Self::BitmapOnce => ("bitmap-once", "bitmap that passes over bad values once", "EQDS, NSDI 2022"),
            Self::Permutation => {
                ("permutation", "all paths by number, in a new random order each round", "NDP, SIGCOMM 2017")
            }
        };
        BalanceInfo { name, title, source }
    }
}

/// An algorithm over a transport, which controls some of a run's flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The transport.
    pub transport: TransportConfig,
    /// The algorithm.
    pub cc: AlgorithmConfig,
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
    /// Telemetry bytes on data packets; `None`: the number the algorithm needs.
    pub data_overhead: Option<Bytes>,
    /// Telemetry bytes on acknowledgments; `None`: the number the algorithm needs.
    pub ack_overhead: Option<Bytes>,
    /// Bytes of a congestion notification packet.
    pub cnp: Bytes,
    /// Class of data packets.
    pub data_class: u8,
    /// Class of acknowledgments, NACKs and CNPs in the network.
    pub ack_class: u8,
    /// Class of notices and of control packets, both ways.
    pub control_class: u8,
    /// Time from the arrival of a CNP or notice at a host until its NIC acts on it.
    pub reaction_delay: Time,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Retransmission timeout; `None`: never (lossless fabrics only).
    pub rto: Option<Time>,
    /// RDMA: the retransmission timeout while at most [`FEW_PACKETS`](Self::FEW_PACKETS) are in flight, if it is
    /// another one (IRN).
    pub rto_low: Option<Time>,
    /// Least time between two NACKs of a flow.
    pub nack_interval: Time,
    /// Selective repeat: time for which a gap may be disorder; only then is it reported as a loss.
    pub reorder_window: Time,
    /// RDMA: bytes of payload after which a receiver acknowledges; at once in any case what is marked, out of order,
    /// the end of its flow, or asked for by a sender that has no more to send. `None`: every packet.
    pub ack_every: Option<Bytes>,
    /// The choice of paths by hosts, under [`Balance::Host`](super::Balance::Host).
    pub entropy: Option<Entropy>,
    /// Window rule.
    pub window: WindowRule,
    /// RDMA: `true` if a packet may be sent while less than the window is in flight, even if the packet itself exceeds
    /// it (ns-3's RDMA stack). Otherwise it is sent if it fits into the window. With nothing in flight a packet is
    /// always sent.
    pub window_overshoot: bool,
    /// Rule for the base RTT (τ).
    pub base_rtt: BaseRttRule,
}

impl TransportConfig {
    /// The largest size of any packet on the wire: its length has 16 bits.
    pub const MAX_PACKET: Bytes = Bytes::new(u16::MAX as u64);

    /// Number of packets in flight up to which [`rto_low`](Self::rto_low) holds: IRN's N.
    pub const FEW_PACKETS: u64 = 3;

    /// Returns the bytes of a data packet on the wire besides payload.
    pub fn data_header(&self, needs: &Needs) -> Bytes {
        self.header + self.data_overhead.unwrap_or(needs.wire.data_overhead)
    }
}
