//! Observations of a run, and the choice of those that a sink receives.

use fairrate_units::Time;

use super::{ReceiverEvent, SenderEvent, TaskOutcome};
use crate::ids::{FlowId, NodeId, PortId};

/// An observation of a run, in the order of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observation {
    /// A task has ended.
    Task(TaskOutcome),
    /// A sample of a probed port.
    Port(PortSample),
    /// A sample of a host's receive buffer.
    Host(HostSample),
    /// A sample of a probed flow.
    Rate(RateSample),
    /// A port was paused or resumed.
    Pfc(PfcEvent),
    /// A sender has measured a round-trip time, as it does at every acknowledgment; see [`Wants::rtts`].
    Rtt(RttSample),
    /// A sender took a step, at its place among the steps of packets; see [`Wants::senders`]. Senders of fluids take no
    /// steps.
    Sender(SenderEvent),
    /// A receiver that gives grants acts on a data packet, and steps of its answer follow; see [`Wants::senders`].
    Receiver(ReceiverEvent),
    /// Rates have converged after a change, or have not in the time they had.
    Convergence(ConvergenceSample),
}

/// The results that a run reports only to a sink that wants them, as they cost time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Round-trip times.
    pub rtts: bool,
    /// Steps of packets, [`Sink::packet`](super::Sink::packet).
    pub packets: bool,
    /// The headers of packets, with their steps.
    pub headers: bool,
    /// Steps of senders and of receivers that give grants.
    pub senders: bool,
    /// Snapshots, [`Sink::snapshot`](super::Sink::snapshot).
    pub snapshots: bool,
}

impl Wants {
    /// Returns `true` if `observation` is wanted, or of a kind that every sink receives.
    pub(super) fn has(self, observation: &Observation) -> bool {
        match observation {
            Observation::Rtt(_) => self.rtts,
            Observation::Sender(_) | Observation::Receiver(_) => self.senders,
            Observation::Task(_)
            | Observation::Port(_)
            | Observation::Host(_)
            | Observation::Rate(_)
            | Observation::Pfc(_)
            | Observation::Convergence(_) => true,
        }
    }
}

/// Counters of an egress port at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSample {
    /// Time of the sample.
    pub t: Time,
    /// The port.
    pub port: PortId,
    /// Bytes waiting, all classes, without the packet on the wire.
    pub qlen_bytes: u64,
    /// Bytes handed to the wire since the start.
    pub tx_bytes: u64,
    /// Packets dropped at this port since the start.
    pub drops: u64,
    /// Packets marked at this port since the start.
    pub ecn_marks: u64,
    /// Time this port has been paused by its peer (any class) since the start.
    pub pfc_pause: Time,
}

/// Counters of a host's receive buffer at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSample {
    /// Time of the sample.
    pub t: Time,
    /// The host.
    pub host: NodeId,
    /// Bytes in the receive buffer. A packet counts until its last byte is in memory.
    pub held_bytes: u64,
    /// Bytes of data that have been drained into memory since the start.
    pub drained_bytes: u64,
    /// Packets that found no room since the start.
    pub drops: u64,
    /// Time for which the host has paused its switch since the start.
    pub pausing: Time,
}

/// State of a sender at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Time of the sample.
    pub t: Time,
    /// The flow.
    pub flow: FlowId,
    /// Congestion window in payload bytes; `u64::MAX`: none.
    pub cwnd_bytes: u64,
    /// Pacing rate.
    pub rate_bps: u64,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// Values that only real hosts report; `None`: a simulation.
    pub measured: Option<MeasuredSender>,
}

/// The state of a connection as the TCP of a real host reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSender {
    /// Smoothed round-trip time.
    pub rtt: Time,
    /// Payload bytes sent again since the start.
    pub retransmitted_bytes: u64,
}

/// A round-trip time that a sender has measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// Time at which the acknowledgment arrived.
    pub t: Time,
    /// The flow; for a subflow, its connection.
    pub flow: FlowId,
    /// Time from the start of the acknowledged packet's transmission to `t`.
    pub rtt: Time,
}

/// A pause or resume frame that a switch or host obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcEvent {
    /// Time at which the frame arrived.
    pub t: Time,
    /// The port that stops or starts sending.
    pub port: PortId,
    /// The class.
    pub class: u8,
    /// `true` for a pause, `false` for a resume.
    pub pause: bool,
}

/// The convergence of rates after a flow's arrival or departure. Changes at the same time give one sample, with the
/// flow of the last one; a departure that leaves no flow gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvergenceSample {
    /// Time at which the flow arrived or departed.
    pub t: Time,
    /// The flow.
    pub flow: FlowId,
    /// `true` for an arrival, `false` for a departure.
    pub arrival: bool,
    /// Number of active flows after the change.
    pub n_flows: u32,
    /// Time from the change until all rates were within tolerance of the optimum and stayed there; `None`: they were
    /// not in the time they had, or the next change or the end of the run came first.
    pub time: Option<Time>,
    /// `time` in base RTTs of the network.
    pub rtts: Option<f64>,
}
