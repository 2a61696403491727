//! The objects that algorithms in Python get: flows, acknowledgments, ports and packets.

use fairrate_control::{FlowContext, IntHop as Record, PortContext, PortPacketKind};
use fairrate_units::{Bytes, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The properties of a flow that a sender has before its first packet. Times are nanoseconds of simulated time.
#[pyclass(frozen, get_all, module = "fairrate._native")]
pub struct Flow {
    /// Rate of the sender's NIC, in bits per second.
    line_rate_bps: u64,
    /// Largest base round-trip time in the network, in nanoseconds: one value for all flows (the papers' τ).
    base_rtt_ns: f64,
    /// The same in seconds: ``line_rate_bps * base_rtt_s / 8`` is the bandwidth-delay product in bytes.
    base_rtt_s: f64,
    /// Base round-trip time of this flow's own path, in nanoseconds.
    path_base_rtt_ns: f64,
    /// Payload of a full packet, in bytes.
    mtu_bytes: u64,
    /// Size of a full packet on the wire, in bytes, headers included.
    wire_mtu_bytes: u64,
    /// Number of links from sender to receiver.
    n_hops: u32,
    /// Weight of the flow in shares, without a unit; 1.0 unless the workload sets another.
    weight: f64,
    /// Time of the flow's start, in nanoseconds since the run began.
    start_ns: f64,
    /// Payload of the flow, in bytes; ``None``: endless.
    size_bytes: Option<u64>,
    /// Highest rate at which the application offers data, in bits per second; ``None``: no limit. The transport
    /// enforces it.
    demand_bps: Option<u64>,
    /// Time after the start by which the last byte should arrive, in nanoseconds; ``None``: no deadline.
    deadline_ns: Option<f64>,
    /// Seed of the flow's own random draws: a function of the run's seed and the flow alone.
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

/// A record of in-band telemetry: what one switch port wrote into a packet that left it.
#[pyclass(frozen, get_all, module = "fairrate._native")]
#[derive(Clone)]
pub struct IntHop {
    /// Time at which the packet left the port's queue, in nanoseconds.
    ts_ns: f64,
    /// Bytes that the port had sent before this packet, since the run began. Its difference between two packets, over
    /// that of ``ts_ns``, is the rate of sending.
    tx_bytes: u64,
    /// Bytes left in the port's queue after the packet was removed.
    qlen_bytes: u32,
    /// Rate of the port's link, in bits per second.
    rate_bps: f64,
}

/// An acknowledgment as the sender sees it. Sequence numbers and windows are bytes of payload.
#[pyclass(frozen, get_all, module = "fairrate._native")]
#[expect(clippy::struct_field_names, reason = "the names are those of the Rust side")]
pub struct Ack {
    /// Time of arrival, in nanoseconds since the run began.
    now_ns: f64,
    /// Next byte that the receiver expects: all bytes before it have arrived.
    ack_seq: u64,
    /// Next new byte that the sender will send. A decision taken now shows in acknowledgments from this byte on.
    snd_nxt: u64,
    /// Bytes that this acknowledgment acknowledges and no earlier one did; 0 for a duplicate.
    newly_acked: u64,
    /// Bytes delivered that no earlier acknowledgment reported, in order or not.
    delivered: u64,
    /// Bytes that the sender declares lost on this acknowledgment.
    lost: u64,
    /// Time from the start of the acknowledged packet's transmission to now, in nanoseconds.
    rtt_ns: f64,
    /// Window in force when the acknowledged packet was sent, in bytes.
    cwnd_at_send: u64,
    /// Bytes in flight after this acknowledgment: sent, and neither delivered nor declared lost.
    in_flight: u64,
    /// Delivery rate over the round trip that ends now, in bits per second; 0: unknown.
    delivery_rate_bps: u64,
    /// Bytes of the flow that had been delivered when that round trip began; ``None``: the transport does not know.
    prior_delivered: Option<u64>,
    /// 128ths of the newly acknowledged bytes by which a receiver of Ultra Ethernet in trouble asks the window to
    /// shrink, up to 127.
    penalty: u8,
    /// ``True`` if the application had no more data to send as the acknowledged packet was sent.
    app_limited: bool,
    /// ``True`` if the acknowledged packet carried an ECN mark (CE). Needs ``Needs(ecn=True)``.
    ecn_marked: bool,
    /// Telemetry of the acknowledged packet, a record a switch in order of the path; empty without
    /// ``Needs(telemetry=True)``.
    int: Vec<IntHop>,
    /// Words of the acknowledged packet's header as the last port left it, as many as :attr:`Needs.header_words`
    /// says; else empty.
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
            penalty: ack.penalty,
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
    /// Number of the port, unique in the network.
    port: u32,
    /// Rate of its link, in bits per second.
    rate_bps: u64,
    /// Largest base round-trip time in the network, in nanoseconds.
    base_rtt_ns: f64,
    /// Size of a full data packet on the wire, in bytes, headers included.
    wire_mtu_bytes: u32,
    /// ``True`` if it is the port of a host, ``False`` if of a switch.
    of_host: bool,
    /// Seed of the agent's random draws.
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

/// A packet at a port. ``header`` and ``mark`` may be set; what is set travels on with the packet.
#[pyclass(module = "fairrate._native")]
pub struct Packet {
    /// Number of its flow, for notices.
    #[pyo3(get)]
    pub flow: u32,
    /// Number of its priority class.
    #[pyo3(get)]
    pub priority: u8,
    /// ``"data"``: payload; ``"control"``: a flow's control packet on its way to the receiver; ``"other"``: all
    /// else, without a header.
    #[pyo3(get)]
    pub kind: &'static str,
    /// Size on the wire, in bytes.
    #[pyo3(get)]
    pub wire_bytes: u32,
    /// Words of its header, to read and to set; a list of another length raises a ``ValueError`` that ends the run.
    #[pyo3(get, set)]
    pub header: Vec<f64>,
    /// ``True`` if the packet has, or gets, an ECN mark (CE).
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
