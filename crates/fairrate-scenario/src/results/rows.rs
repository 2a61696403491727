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
    /// Payload bytes; `None` if endless.
    pub bytes: Option<u64>,
    /// Time of the start.
    pub start_ns: f64,
    /// Time from start to the last byte at the receiver; `None` if unfinished.
    pub fct_ns: Option<f64>,
    /// Time from start to the last acknowledgment at the sender; `None` if unfinished.
    pub fct_ack_ns: Option<f64>,
    /// Completion time of the flow alone on an idle network; `None` if endless.
    pub ideal_fct_ns: Option<f64>,
    /// `fct_ns` over `ideal_fct_ns`; `None` if unfinished.
    pub slowdown: Option<f64>,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// `true` if the last byte of a finite flow has reached the receiver.
    pub finished: bool,
    /// Payload bytes received in order.
    pub delivered_bytes: u64,
    /// Number of its traffic block.
    pub group: u32,
    /// Payload bytes of a multipath connection that arrived and waited for bytes before them.
    pub reordered_bytes: u64,
    /// Mean time that such a byte waited; `None` if there was none.
    pub reordering_mean_ns: Option<f64>,
    /// The longest such time; `None` if there was none.
    pub reordering_max_ns: Option<f64>,
}

/// A row of `ports.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRow {
    /// Time of the sample.
    pub t_ns: f64,
    /// Id of the node the port sends from.
    pub node: u32,
    /// The port, as `from->to`.
    pub port: Arc<str>,
    /// Bytes in the queue, without the packet being sent.
    pub qlen_bytes: u64,
    /// Bytes sent since the start.
    pub tx_bytes: u64,
    /// Packets dropped on their way into this port since the start.
    pub drops: u64,
    /// Packets marked with ECN since the start.
    pub ecn_marks: u64,
    /// Time during which the peer paused the port since the start.
    pub pfc_pause_ns: f64,
}

/// A row of `rates.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRow {
    /// Time of the sample.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Congestion window; `None` if the algorithm has none.
    pub cwnd_bytes: Option<u64>,
    /// Pacing rate.
    pub rate_bps: u64,
    /// Payload bytes received in order.
    pub delivered_bytes: u64,
    /// Smoothed round-trip time; `None` in a simulation.
    pub rtt_ns: Option<f64>,
    /// Payload bytes retransmitted since the start; `None` in a simulation.
    pub retransmitted_bytes: Option<u64>,
}

/// A row of `pfc.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcRow {
    /// Time at which the frame arrived.
    pub t_ns: f64,
    /// Id of the node that stops or resumes sending.
    pub node: u32,
    /// Its paused port, as `from->to`.
    pub port: Arc<str>,
    /// `true` for a pause frame, `false` for a resume frame.
    pub pause: bool,
    /// Priority class of the frame.
    pub class: u8,
}

/// A row of `convergence.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvergenceRow {
    /// Time of the arrival or departure of a flow.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// `true` for an arrival, `false` for a departure.
    pub arrival: bool,
    /// Number of active flows after the change.
    pub n_flows: u32,
    /// Time from the change until all rates were near the optimum and stayed there; `None` if they were not.
    pub time_ns: Option<f64>,
    /// That time in base RTTs.
    pub rtts: Option<f64>,
}
