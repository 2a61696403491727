//! `homa`: B. Montazeri, Y. Li, M. Alizadeh, J. Ousterhout, "Homa: A Receiver-Driven Low-Latency Transport Protocol
//! Using Network Priorities", SIGCOMM 2018.
//!
//! HOMA is a transport: receivers decide by grants which senders send, and in which priority. A sender's controller
//! decides nothing and sends at line rate what its receiver permits. [`FeedbackNeeds::grants`] asks the simulator for
//! the transport; this module has its parameters.
//!
//! | paper                    | here             | unit     |
//! |--------------------------|------------------|----------|
//! | RTTbytes                 | `rtt_bytes`      | bytes    |
//! | degree of overcommitment | `overcommitment` | messages |
//! | priority levels          | `levels`         | 1        |
//! | cutoffs of unscheduled priorities | `cutoffs` | bytes   |
//!
//! The paper orders grants by the bytes that a message has left, and does not say if these are the bytes that have not
//! arrived or those that have not been granted. The authors' simulator (HomaSimulation at ab09ecb,
//! `CompareBytesToGrant`) takes the latter, and hands a whole RTTbytes on at once
//! (`SchedSenders::handleGrantSentEvent`). That is the default here, as the other reading starves: packets granted in
//! the lowest class fill a part of RTTbytes and wait. `order = "received"` is that reading. The parameters below it are
//! further differences between the paper and the simulator; their defaults are the paper's.

use fairrate_units::Bytes;

use crate::config::{ParamKind, ParamType, RawValue, SetParamError, algorithm_config, choice};
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::line_rate::LineRateConfig;
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds, Queueing};
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Homa;

/// Largest number of cutoffs: those between eight levels.
pub const MAX_CUTOFFS: usize = 7;

/// The number of bytes that a sender may have in flight without acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomaRttBytes {
    /// The bytes that its NIC sends in the network's base round-trip time.
    Bdp,
    /// This number of bytes.
    Fixed(Bytes),
}

impl ParamType for HomaRttBytes {
    const KIND: ParamKind = ParamKind::Bytes;
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        if raw == RawValue::Text("bdp") {
            return Ok(Self::Bdp);
        }
        Bytes::from_raw(raw, range).map(Self::Fixed)
    }
    fn to_toml(&self) -> String {
        match self {
            Self::Bdp => "\"bdp\"".to_owned(),
            Self::Fixed(bytes) => bytes.to_toml(),
        }
    }
}

/// The assignment of messages to the levels for unscheduled packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomaCutoffs {
    /// Every level has about as many unscheduled bytes of the run's flows.
    EqualBytes,
    /// Messages up to each of these sizes use its level, the first size the highest; longer messages use the lowest.
    /// [`Bytes::MAX`] fills the rest.
    Sizes([Bytes; MAX_CUTOFFS]),
}

impl HomaCutoffs {
    /// Reads sizes in ascending order, separated by spaces; returns `None` if `text` is anything else.
    fn read(text: &str) -> Option<Self> {
        let sizes: Vec<Bytes> = text.split_whitespace().map(|size| size.parse().ok()).collect::<Option<_>>()?;
        if sizes.is_empty() || MAX_CUTOFFS < sizes.len() || !sizes.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut all = [Bytes::MAX; MAX_CUTOFFS];
        all[..sizes.len()].copy_from_slice(&sizes);
        Some(Self::Sizes(all))
    }
}

impl ParamType for HomaCutoffs {
    const KIND: ParamKind = ParamKind::Bytes;
    fn from_raw(raw: RawValue<'_>, _: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        let found = match raw {
            RawValue::Text("equal-bytes") => Some(Self::EqualBytes),
            RawValue::Text(text) => Self::read(text),
            _ => None,
        };
        found.ok_or_else(|| SetParamError::Invalid {
            message: "expected `equal-bytes`, or up to seven sizes in ascending order".to_owned(),
            help: "write them as \"1KB 10KB 100KB\"".to_owned(),
        })
    }
    fn to_toml(&self) -> String {
        let Self::Sizes(sizes) = self else { return "\"equal-bytes\"".to_owned() };
        let sizes: Vec<String> = sizes.iter().filter(|&&size| size < Bytes::MAX).map(ToString::to_string).collect();
        format!("\"{}\"", sizes.join(" "))
    }
}

choice! {
    /// The bytes by which a receiver orders messages, and the extent of the first grant of a message that comes to be
    /// granted.
    pub enum HomaOrder {
        /// The bytes not yet granted, and all of RTTbytes at once.
        Granted = "granted",
        /// The bytes not yet received, and a packet at each arrival.
        Received = "received",
    }
}

choice! {
    /// The unit of overcommitment.
    pub enum HomaCount {
        /// Messages: several of one sender may be granted at a time.
        Messages = "messages",
        /// Senders: of each sender, only the first message in the order is granted.
        Senders = "senders",
    }
}

choice! {
    /// The quantity that decides the level of an unscheduled packet.
    pub enum HomaUnscheduled {
        /// The size of the message.
        Size = "size",
        /// The bytes of the message that are left when the packet is sent.
        Remaining = "remaining",
    }
}

/// A size that may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomaSize {
    /// No size.
    None,
    /// This number of bytes.
    Of(Bytes),
}

impl HomaSize {
    /// Returns the size, if there is one.
    pub fn get(self) -> Option<Bytes> {
        match self {
            Self::None => None,
            Self::Of(bytes) => Some(bytes),
        }
    }
}

impl ParamType for HomaSize {
    const KIND: ParamKind = ParamKind::Bytes;
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        if raw == RawValue::Text("none") {
            return Ok(Self::None);
        }
        Bytes::from_raw(raw, range).map(Self::Of)
    }
    fn to_toml(&self) -> String {
        match self {
            Self::None => "\"none\"".to_owned(),
            Self::Of(bytes) => bytes.to_toml(),
        }
    }
}

algorithm_config! {
    /// Parameters of HOMA.
    pub struct HomaConfig {
        /// Messages a receiver grants at a time, and levels for scheduled packets (authors' simulator: 7 for web
        /// search; PowerTCP section 4.1: 1).
        overcommitment: u32 = 7, ns3 = 1, in 1.0..=7.0;
        /// Priority levels; a fabric that pauses has seven at most, as class 0 is PFC's. With one, short messages wait
        /// behind all others (section 3.4: 8; HOMA's evaluation has 4, 2 and 1 too).
        levels: u32 = 8, in 1.0..=8.0;
        /// RTTbytes: what a message sends unasked and what is kept on its way. A size of payload, or `"bdp"`, rounded
        /// up to whole packets (PowerTCP section 4.1: base RTT times host bandwidth).
        rtt_bytes: HomaRttBytes = HomaRttBytes::Bdp;
        /// Largest messages of each level for unscheduled packets, `"equal-bytes"` or sizes as `"1KB 10KB"` (section
        /// 3.4: equal bytes).
        cutoffs: HomaCutoffs = HomaCutoffs::EqualBytes;
        /// Order of messages at a receiver: by bytes not granted, and the next one gets all of RTTbytes at once, or by
        /// bytes not received, and it gets a packet at each arrival (authors' simulator: granted; section 3.3: fewest
        /// remaining).
        order: HomaOrder = HomaOrder::Granted;
        /// Unit of overcommitment: messages (section 3.5), or senders, one message each (authors' simulator).
        counts: HomaCount = HomaCount::Messages;
        /// Level of unscheduled packets: by the message's size, or by what is left of it at each packet (section 3.4:
        /// size; authors' simulator: remaining).
        unscheduled: HomaUnscheduled = HomaUnscheduled::Size;
        /// Last bytes of each message that are granted in the levels for unscheduled packets, by what is left, or
        /// `"none"` (the paper: none; authors' simulator: 10 KB).
        tail: HomaSize = HomaSize::None;
        /// Header of scheduled packets, whose payload grows by what it is smaller, or `"none"` if it is that of all
        /// packets (authors' simulator: 14 B less).
        scheduled_header: HomaSize = HomaSize::None;
    }
}

impl AlgorithmSpec for HomaConfig {
    type Controller = Homa;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        // Every class is a separate queue, and no discipline or limit can be combined with that.
        Needs {
            network: NetworkNeeds { queueing: Queueing::Own, ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { grants: Some(self.grants()), ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Homa {
        LineRateConfig::default().build(flow)
    }
}

impl HomaConfig {
    fn grants(&self) -> Grants {
        let Self { overcommitment, levels, rtt_bytes, cutoffs, order, counts, unscheduled, .. } = *self;
        let (tail, scheduled_header) = (self.tail.get().unwrap_or(Bytes::ZERO), self.scheduled_header.get());
        Grants { overcommitment, levels, rtt_bytes, cutoffs, order, counts, unscheduled, tail, scheduled_header }
    }
}

/// The parameters of receivers' grants, as [`FeedbackNeeds::grants`] asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grants {
    /// Number of messages granted at a time, at least one.
    pub overcommitment: u32,
    /// Number of priority levels, from one to the number of the fabric's classes.
    pub levels: u32,
    /// Unscheduled bytes of a message, and bytes that grants keep in flight.
    pub rtt_bytes: HomaRttBytes,
    /// The levels of unscheduled packets.
    pub cutoffs: HomaCutoffs,
    /// The order of messages at a receiver.
    pub order: HomaOrder,
    /// The unit of overcommitment.
    pub counts: HomaCount,
    /// The quantity that decides the level of an unscheduled packet.
    pub unscheduled: HomaUnscheduled,
    /// Last bytes of each message that are granted in levels for unscheduled packets.
    pub tail: Bytes,
    /// Header of scheduled packets, if it is another than that of unscheduled ones.
    pub scheduled_header: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutoffs_are_sizes_in_order() {
        let read = |text| HomaCutoffs::from_raw(RawValue::Text(text), None);
        let Ok(cutoffs @ HomaCutoffs::Sizes(sizes)) = read("1KB 10KB") else { panic!("two sizes") };
        assert_eq!(sizes[..3], [Bytes::new(1_000), Bytes::new(10_000), Bytes::MAX]);
        assert_eq!(cutoffs.to_toml(), "\"1KB 10KB\"");
        assert_eq!(read("equal-bytes"), Ok(HomaCutoffs::EqualBytes));
        for wrong in ["", "10KB 1KB", "1KB 1KB", "1KB ten", "1B 2B 3B 4B 5B 6B 7B 8B"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(HomaCutoffs::from_raw(RawValue::Integer(3), None).is_err());
    }
}
