//! The rows of an account: sums of its pieces, as far as people tell them apart.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fairrate_explain::{Behind, Loss, Piece, Reason, Way, sums};
use fairrate_report::format;
use fairrate_sim::PortId;
use fairrate_units::Time;

use super::names::{ITSELF, Names};

/// A row: the sum of pieces that differ in the flows ahead, or in the links of propagation, at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The packets that it is about.
    pub way: Way,
    /// The reason of its pieces, as [`key`] has it.
    pub reason: Reason,
    /// The time.
    pub time: Time,
    /// Bytes on the wire that ports transmitted in it.
    pub bytes: u64,
    /// Number of pieces.
    pub pieces: u64,
    /// Start of the first piece and end of the last one.
    pub span: (Time, Time),
    /// The flows ahead, each with its time and bytes, the longest first.
    pub behind: Vec<(Behind, Time, u64)>,
}

/// Returns the way and the reason of a row for all pieces that go into it: which flow is ahead does not count, nor on
/// which link data propagates, and the whole way of acknowledgments but for queues is one.
fn key(way: Way, reason: Reason) -> (Way, Reason) {
    let reason = match reason {
        Reason::Propagation(_) => Reason::Propagation(PortId(0)),
        Reason::Serialisation(_) if way == Way::Ack => Reason::Propagation(PortId(0)),
        Reason::Queue(port, _) => Reason::Queue(port, Behind::Itself),
        Reason::Turn(port, _) => Reason::Turn(port, Behind::Itself),
        other => other,
    };
    (way, reason)
}

/// Returns the rows of an account, the longest first.
pub fn rows(pieces: &[Piece]) -> Vec<Row> {
    let mut rows = BTreeMap::<(Way, Reason), Row>::new();
    for sum in sums(pieces) {
        let (way, reason) = key(sum.way, sum.reason);
        let empty =
            Row { way, reason, time: Time::ZERO, bytes: 0, pieces: 0, span: (sum.first, sum.last), behind: Vec::new() };
        let row = rows.entry((way, reason)).or_insert(empty);
        row.time += sum.time;
        row.bytes += sum.bytes;
        row.pieces += sum.pieces;
        row.span = (row.span.0.min(sum.first), row.span.1.max(sum.last));
        if let Some(behind) = sum.reason.behind() {
            row.behind.push((behind, sum.time, sum.bytes));
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    for row in &mut rows {
        row.behind.sort_by_key(|&(behind, time, _)| (Reverse(time), behind));
    }
    rows.sort_by_key(|row| (Reverse(row.time), row.way, row.reason));
    rows
}

impl Row {
    /// Returns the reason in words.
    pub fn label(&self, names: &Names<'_>) -> String {
        let after = |loss: Option<Loss>| loss.map_or_else(String::new, |loss| format!(" after {}", names.loss(loss)));
        match self.reason {
            Reason::Propagation(_) if self.way == Way::Ack => "way back of acknowledgments".to_owned(),
            Reason::Propagation(_) => "propagation".to_owned(),
            Reason::Serialisation(port) => format!("transmission at {}", names.port(port)),
            Reason::Queue(port, _) if self.way == Way::Ack => format!("acknowledgments queued at {}", names.port(port)),
            Reason::Queue(port, _) => format!("queue at {}", names.port(port)),
            Reason::Turn(port, _) => format!("turns of others at {}", names.port(port)),
            Reason::Pause(port) => format!("PFC pauses of {}", names.port(port)),
            Reason::Blocked(port) => format!("{} transmitted nothing", names.port(port)),
            Reason::Down(port) => format!("link {} down", names.port(port)),
            Reason::LateLink(port) => format!("faulty link {}", names.port(port)),
            Reason::Host(port) => format!("delay at the host behind {}", names.port(port)),
            Reason::SlowNic(port) => format!("slow NIC at {}", names.port(port)),
            Reason::Pacing => "pacing".to_owned(),
            Reason::Window => "window".to_owned(),
            Reason::Credit => "credit".to_owned(),
            Reason::Notice => "rate from the network".to_owned(),
            Reason::Held => "held back by the first switch".to_owned(),
            Reason::Connection => "connection in use".to_owned(),
            Reason::Handshake => "handshake".to_owned(),
            Reason::Timeout(loss) => format!("timeout{}", after(loss)),
            Reason::Recovery(loss) => format!("recovery{}", after(loss)),
            Reason::Receiver => "acknowledgments held back".to_owned(),
            Reason::LastPacket => "way of the last packet".to_owned(),
            Reason::Unsent => "nothing sent until the end of the run".to_owned(),
            Reason::Unknown => "not known".to_owned(),
        }
    }

    /// Returns what else is known: the flows ahead with their bytes and traffic blocks, or the bytes transmitted; the
    /// times for which the link is down or slow.
    pub fn details(&self, names: &Names<'_>) -> String {
        let faults = self.reason.port().map_or_else(String::new, |port| match self.reason {
            Reason::Down(_) => names.outages(port, self.span),
            _ => names.slow(port, self.span),
        });
        let words = [self.amounts(names), faults];
        words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ")
    }

    fn amounts(&self, names: &Names<'_>) -> String {
        let amount = |bytes: u64| format::bytes(bytes as f64);
        if self.behind.is_empty() {
            return if self.bytes == 0 { String::new() } else { amount(self.bytes) };
        }
        let ahead = |&(behind, _, bytes): &(Behind, Time, u64)| format!("{} ({})", names.behind(behind), amount(bytes));
        let mut words: Vec<String> = self.behind.iter().take(3).map(ahead).collect();
        let rest = &self.behind[words.len()..];
        if !rest.is_empty() {
            let bytes = rest.iter().map(|&(.., bytes)| bytes).sum();
            words.push(format!("{} more ({})", rest.len(), amount(bytes)));
        }
        let blocks = self.blocks(names);
        let others = blocks.iter().filter(|(name, _)| name != ITSELF).count();
        let blocks = if others < 2 { String::new() } else { format!(": {}", in_words(&blocks, usize::MAX)) };
        format!("behind {}{blocks}", words.join(", "))
    }

    /// Returns the traffic blocks of the flows ahead, each with its share of the row's time, the largest first. Packets
    /// of the flow itself are a block of their own.
    pub fn blocks(&self, names: &Names<'_>) -> Vec<(String, f64)> {
        let mut times: Vec<(String, Time)> = Vec::new();
        for &(behind, time, _) in &self.behind {
            let name = names.block_behind(behind);
            match times.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1 += time,
                None => times.push((name, time)),
            }
        }
        times.sort_by_key(|&(_, time)| Reverse(time));
        let whole = self.time.as_ps().max(1) as f64;
        times.into_iter().map(|(name, time)| (name, time.as_ps() as f64 / whole)).collect()
    }
}

/// Returns traffic blocks with their shares in words, as `block burst 80.1 %, block query 19.9 %`; of more than `most`
/// the rest together.
pub fn in_words(blocks: &[(String, f64)], most: usize) -> String {
    let (shown, rest) = blocks.split_at(blocks.len().min(most));
    let mut words: Vec<String> =
        shown.iter().map(|(name, share)| format!("{name} {}", format::percent(*share))).collect();
    if !rest.is_empty() {
        let share = rest.iter().map(|(_, share)| share).sum();
        words.push(format!("{} more {}", rest.len(), format::percent(share)));
    }
    words.join(", ")
}
