//! The objects that algorithms in Python get: flows, acknowledgments, ports and packets.

use fairrate_control::{FlowContext, IntHop as Record, PortContext, PortPacketKind};
use fairrate_units::{Bytes, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The properties of a flow that a sender has before its first packet.
#[pyclass(frozen, get_all, module = "fairrate._native")]
pub struct Flow {
    line_rate_bps: u64,
    base_rtt_ns: f64,
    base_rtt_s: f64,
    path_base_rtt_ns: f64,
    mtu_bytes: u64,
    wire_mtu_bytes: u64,
    n_hops: u32,
    weight: f64,
    start_ns: f64,
    size_bytes: Option<u64>,
    demand_bps: Option<u64>,
    deadline_ns: Option<f64>,
    seed: u64,
}

impl Flow {
    /// Creates the object from the simulator's context.
    pub fn of(flow: &FlowContext) -> Self {
        Self {
            line_rate_bps: flow.line_rate.as_bps(),
            base_rtt_ns: flow.base_rtt.as_ns_f64(),
            base_rtt_s: flow.base_rtt.as_secs_f64(),
            path_base_rtt_ns: flow.path_base_rtt.as_ns_f64(),
            mtu_bytes: flow.mtu.as_u64(),
            wire_mtu_bytes: flow.wire_mtu.as_u64(),
            n_hops: flow.n_hops,
            weight: flow.weight,
            start_ns: flow.start.as_ns_f64(),
            size_bytes: (flow.size != Bytes::MAX).then(|| flow.size.as_u64()),
            demand_bps: (flow.demand != Rate::MAX).then(|| flow.demand.as_bps()),
            deadline_ns: flow.deadline.map(fairrate_units::Time::as_ns_f64),
            seed: flow.seed,
        }
    }
}

/// A record of in-band telemetry.
#[pyclass(frozen, get_all, module = "fairrate._native")]
#[derive(Clone)]
pub struct IntHop {
    ts_ns: f64,
    tx_bytes: u64,
    qlen_bytes: u32,
    rate_bps: f64,
}

/// An acknowledgment.
#[pyclass(frozen, get_all, module = "fairrate._native")]
#[expect(clippy::struct_field_names, reason = "the names are those of the Rust side")]
pub struct Ack {
    now_ns: f64,
    ack_seq: u64,
    snd_nxt: u64,
    newly_acked: u64,
    delivered: u64,
    lost: u64,
    rtt_ns: f64,
    cwnd_at_send: u64,
    in_flight: u64,
    delivery_rate_bps: u64,
    prior_delivered: Option<u64>,
    app_limited: bool,
    ecn_marked: bool,
    int: Vec<IntHop>,
    header: Vec<f64>,
}

impl Ack {
    /// Creates the object from the simulator's acknowledgment.
    pub fn of(ack: &fairrate_control::Ack<'_>) -> Self {
        let hop = |hop: &Record| IntHop {
            ts_ns: hop.ts.as_ns_f64(),
            tx_bytes: hop.tx_bytes,
            qlen_bytes: hop.qlen,
            rate_bps: hop.rate.as_bps_f64(),
        };
        Self {
            now_ns: ack.now.as_ns_f64(),
            ack_seq: ack.ack_seq,
            snd_nxt: ack.snd_nxt,
            newly_acked: ack.newly_acked,
            delivered: ack.delivered,
            lost: ack.lost,
            rtt_ns: ack.rtt.as_ns_f64(),
            cwnd_at_send: ack.cwnd_at_send,
            in_flight: ack.in_flight,
            delivery_rate_bps: ack.delivery_rate.as_bps(),
            prior_delivered: ack.prior_delivered,
            app_limited: ack.app_limited,
            ecn_marked: ack.ecn_marked,
            int: ack.int.iter().map(hop).collect(),
            header: ack.header.to_vec(),
        }
    }
}

/// The properties of an egress port before its first packet.
#[pyclass(frozen, get_all, module = "fairrate._native")]
#[expect(clippy::struct_field_names, reason = "the names are those of the Rust side")]
pub struct Port {
    port: u32,
    rate_bps: u64,
    base_rtt_ns: f64,
    wire_mtu_bytes: u32,
    of_host: bool,
    seed: u64,
}

impl Port {
    /// Creates the object from the simulator's context.
    pub fn of(port: &PortContext) -> Self {
        Self {
            port: port.port,
            rate_bps: port.rate.as_bps(),
            base_rtt_ns: port.base_rtt.as_ns_f64(),
            wire_mtu_bytes: port.wire_mtu,
            of_host: port.of_host,
            seed: port.seed,
        }
    }
}

/// A packet at a port.
#[pyclass(module = "fairrate._native")]
pub struct Packet {
    /// The flow.
    #[pyo3(get)]
    pub flow: u32,
    /// Its priority class.
    #[pyo3(get)]
    pub priority: u8,
    /// `data`, `control` or `other`.
    #[pyo3(get)]
    pub kind: &'static str,
    /// Bytes on the wire.
    #[pyo3(get)]
    pub wire_bytes: u32,
    /// Its header, to read and to write.
    #[pyo3(get, set)]
    pub header: Vec<f64>,
    /// True if the packet gets an ECN mark.
    #[pyo3(get, set)]
    pub mark: bool,
}

/// Returns the name of a kind of packet.
pub fn kind_name(kind: PortPacketKind) -> &'static str {
    match kind {
        PortPacketKind::Data => "data",
        PortPacketKind::Control => "control",
        PortPacketKind::Other => "other",
    }
}

/// Copies the words of a list into a header of the same length.
pub fn copy_words(words: &Bound<'_, PyList>, header: &mut [f64]) -> PyResult<()> {
    let words: Vec<f64> = words.extract()?;
    put_words(&words, header)
}

/// Copies words into a header of the same length.
pub fn put_words(words: &[f64], header: &mut [f64]) -> PyResult<()> {
    if words.len() != header.len() {
        let message = format!("a header of {} words was made one of {}", header.len(), words.len());
        return Err(PyValueError::new_err(message));
    }
    header.copy_from_slice(words);
    Ok(())
}
