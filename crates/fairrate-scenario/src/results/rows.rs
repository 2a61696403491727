//! Rows of the tables of a results directory.

use std::sync::Arc;

/// A row of `flows.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Number of the flow.
    pub id: u32,
    /// Id of the sender.
    pub src: u32,
    /// Id of the receiver.
    pub dst: u32,
    /// Payload bytes; `None`: endless.
    pub bytes: Option<u64>,
    /// Start.
    pub start_ns: f64,
    /// From start to the last byte at the receiver; `None`: unfinished.
    pub fct_ns: Option<f64>,
    /// From start to the last acknowledgment at the sender; `None`: unfinished.
    pub fct_ack_ns: Option<f64>,
    /// The flow alone on an idle network; `None`: endless.
    pub ideal_fct_ns: Option<f64>,
    /// `fct_ns` over `ideal_fct_ns`; `None`: unfinished.
    pub slowdown: Option<f64>,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Whether all of it was acknowledged.
    pub finished: bool,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// The traffic block it came from.
    pub group: u32,
    /// Payload bytes of a multipath connection that arrived and waited for bytes before them.
    pub reordered_bytes: u64,
    /// How long such a byte waited, on average; `None`: none did.
    pub reordering_mean_ns: Option<f64>,
    /// The longest wait.
    pub reordering_max_ns: Option<f64>,
}

/// A row of `ports.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRow {
    /// When.
    pub t_ns: f64,
    /// Id of the node the port sends from.
    pub node: u32,
    /// The port, as `from->to`.
    pub port: Arc<str>,
    /// Bytes waiting, without the packet on the wire.
    pub qlen_bytes: u64,
    /// Bytes handed to the wire since the start.
    pub tx_bytes: u64,
    /// Packets dropped on their way into this port since the start.
    pub drops: u64,
    /// Packets marked since the start.
    pub ecn_marks: u64,
    /// Time paused by the peer since the start.
    pub pfc_pause_ns: f64,
}

/// A row of `rates.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRow {
    /// When.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Congestion window; `None`: the algorithm has none.
    pub cwnd_bytes: Option<u64>,
    /// Pacing rate.
    pub rate_bps: u64,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// Smoothed round-trip time; `None`: a simulation.
    pub rtt_ns: Option<f64>,
    /// Payload bytes sent again since the start; `None`: a simulation.
    pub retransmitted_bytes: Option<u64>,
}

/// A row of `pfc.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcRow {
    /// When the frame arrived.
    pub t_ns: f64,
    /// Id of the node that stops or goes on sending.
    pub node: u32,
    /// Its port, as `from->to`.
    pub port: Arc<str>,
    /// Pause, or resume.
    pub pause: bool,
    /// The class.
    pub class: u8,
}

/// A row of `convergence.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvergenceRow {
    /// When a flow arrived or departed.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Arrival, or departure.
    pub arrival: bool,
    /// Active flows after the change.
    pub n_flows: u32,
    /// From the change until all rates were near the optimum, to stay; `None`: they were not.
    pub time_ns: Option<f64>,
    /// The same in base RTTs.
    pub rtts: Option<f64>,
}
