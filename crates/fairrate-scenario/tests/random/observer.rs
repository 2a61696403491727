//! An observer of packets, and the properties of what it sees.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fairrate_sim::{
    DropCause, FlowId, FlowOutcome, FullBuffer, HostConfig, Observation, PacketEvent, PacketHeader, PacketStep, PortId,
    ReceiverEvent, Recorder, RunTotals, SenderEvent, SimConfig, Sink, Wants,
};
use fairrate_units::Time;

/// A recorder that also keeps every step of every packet, sender and receiver.
#[derive(Default)]
pub struct Observer {
    pub recorder: Recorder,
    pub steps: Vec<PacketEvent>,
    pub senders: Vec<SenderEvent>,
    pub receivers: Vec<ReceiverEvent>,
}

impl Sink for Observer {
    fn wants(&self) -> Wants {
        Wants { packets: true, senders: true, ..self.recorder.wants() }
    }
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.recorder.flow(outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Sender(event) => self.senders.push(*event),
            Observation::Receiver(event) => self.receivers.push(*event),
            other => self.recorder.observe(other),
        }
    }
    fn packet(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) {
        self.steps.push(*event);
    }
    fn snapshot(&mut self, t: Time, delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {
        self.recorder.snapshot(t, delivered);
    }
}

/// Checks that two observers have seen the same steps in the same order.
pub fn same_steps<T: PartialEq + Debug>(first: &[T], other: &[T], how: &str) -> Result<(), String> {
    if first == other {
        return Ok(());
    }
    let at = first.iter().zip(other).position(|(a, b)| a != b).unwrap_or(first.len().min(other.len()));
    Err(format!("step {at} of {} is {:?}, and {how} {:?}", first.len(), first.get(at), other.get(at)))
}

/// Checks that steps are in the order of time, that each packet that a port sends has joined it, that all drops are
/// seen with their causes, and that the reported queues are those that follow from the steps.
pub fn check_steps(config: &SimConfig, totals: &RunTotals, steps: &[PacketEvent]) -> Result<(), String> {
    if let Some(pair) = steps.windows(2).find(|pair| pair[1].t < pair[0].t) {
        return Err(format!("steps go back in time: {pair:?}"));
    }
    let mut drops = BTreeMap::<usize, u64>::new();
    let mut returns = 0;
    let mut queues = BTreeMap::<PortId, i64>::new();
    // The frame of a host may wait, and be taken back uncounted before it is sent.
    let pauses = |host: &HostConfig| host.receive.as_ref().is_some_and(|buffer| buffer.full != FullBuffer::Drop);
    let hosts_pause = config.hosts.iter().any(pauses);
    for step in steps {
        let bytes = i64::from(step.wire_bytes);
        let queued = queues.entry(step.port).or_default();
        match step.step {
            PacketStep::Queued => *queued += bytes,
            PacketStep::Sent | PacketStep::Trimmed => *queued -= bytes,
            PacketStep::Dropped(cause) => *drops.entry(cause as usize).or_default() += 1,
            PacketStep::Returned => returns += 1,
        }
        // A queue may drop what has joined it or what has not, several transmitters may serve it, frames wait in it
        // unseen, and the order of steps of the same time is another one with faults or with notices of ports.
        let is_plain = config.topology.circuits.is_none() && totals.drops.total() == 0 && config.faults.is_empty();
        let has_frames =
            hosts_pause || 0 < totals.counts.pfc_pauses + totals.counts.flow_pauses + totals.counts.notices;
        if is_plain && !has_frames && *queued != step.queued_bytes.cast_signed() {
            return Err(format!("{queued} bytes have joined and not left: {step:?}"));
        }
    }
    if returns != totals.counts.returns {
        return Err(format!("{} headers were sent back, and {returns} were seen", totals.counts.returns));
    }
    // Frames are not packets here, and links that go down drop some.
    match DropCause::ALL.into_iter().find(|&cause| {
        cause != DropCause::Fault && totals.drops.of(cause) != drops.get(&(cause as usize)).copied().unwrap_or(0)
    }) {
        Some(cause) => Err(format!("{} drops ({cause:?}), and {drops:?} were seen", totals.drops.of(cause))),
        None => Ok(()),
    }
}
