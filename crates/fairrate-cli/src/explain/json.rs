//! The output of `explain --json`.

use fairrate_explain::{Behind, How, Piece, Reason, Sum, Way, sums};
use fairrate_results::Summary;
use fairrate_units::Time;
use serde::Serialize;

use super::Explained;
use super::names::Names;

/// Name of the schema; its number changes only when a field is removed or changes its meaning.
const SCHEMA: &str = "fairrate.explain/1";

/// All of the output.
#[derive(Serialize)]
pub struct Output<'a> {
    schema: &'static str,
    scenario: &'a str,
    cc: &'a str,
    seed: u64,
    fingerprint: &'a str,
    flows: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    flow: u32,
    from: String,
    to: String,
    block: u32,
    block_name: String,
    bytes: Option<u64>,
    start_ps: u64,
    finished: bool,
    /// The completion time; `None` if it has not finished.
    fct_ps: Option<u64>,
    /// The sum of each account: the completion time, or the time until the run ended.
    time_ps: u64,
    delivered_bytes: u64,
    slowdown: Option<f64>,
    sentence: &'a str,
    /// Acknowledgments that the chain follows.
    round_trips: u32,
    /// Losses that the chain follows.
    losses: u32,
    chain: Vec<Entry>,
    sender: Vec<Entry>,
}

/// A sum of pieces.
#[derive(Serialize)]
pub struct Entry {
    reason: &'static str,
    /// `data`, or `ack` for acknowledgments on their way.
    way: &'static str,
    port: Option<String>,
    /// The flow ahead; of packets of the flow itself, its own number.
    behind_flow: Option<u32>,
    behind_block: Option<String>,
    /// The port at which the packet was lost that was sent again.
    loss_port: Option<String>,
    /// The cause of its loss: `trimmed`, `returned`, or as in the counters `drops_CAUSE` of the summary.
    loss_cause: Option<&'static str>,
    ps: u64,
    bytes: u64,
    pieces: u64,
    /// Start of the first piece and end of the last one.
    first_ps: u64,
    last_ps: u64,
    /// The times between them for which the link of the port is down, of `down`; an end is `None` if it does not come
    /// up again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    down_ps: Vec<(u64, Option<u64>)>,
    /// The times between them for which the link of the port has only a share of its rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow: Vec<SlowEntry>,
}

/// A time for which a link is slow.
#[derive(Serialize)]
struct SlowEntry {
    /// The share of its rate that it has.
    share: f64,
    from_ps: u64,
    /// `None`: for ever.
    to_ps: Option<u64>,
}

impl<'a> Output<'a> {
    /// Returns the output for flows of the run of `summary`.
    pub fn of(summary: &'a Summary, all: &'a [Explained], names: &Names<'_>) -> Self {
        Self {
            schema: SCHEMA,
            scenario: &summary.scenario,
            cc: &summary.cc,
            seed: summary.seed,
            fingerprint: &summary.fingerprint,
            flows: all.iter().map(|explained| Shown::of(explained, names)).collect(),
        }
    }
}

impl<'a> Shown<'a> {
    fn of(explained: &'a Explained, names: &Names<'_>) -> Self {
        let Explained { row, account, sentence, .. } = explained;
        let node = |id: u32| names.node(fairrate_sim::NodeId(id));
        let entries = |pieces: &[Piece]| Entry::all(pieces, row.id, names);
        Self {
            flow: row.id,
            from: node(row.src),
            to: node(row.dst),
            block: row.group,
            block_name: names.block(row.group),
            bytes: row.bytes,
            start_ps: account.start.as_ps(),
            finished: account.is_finished,
            fct_ps: account.is_finished.then(|| account.fct.as_ps()),
            time_ps: account.fct.as_ps(),
            delivered_bytes: row.delivered_bytes,
            slowdown: row.slowdown,
            sentence,
            round_trips: account.round_trips,
            losses: account.losses,
            chain: entries(&account.chain),
            sender: entries(&account.sender),
        }
    }
}

impl Entry {
    /// Returns the sums of the pieces of the flow with the number `own`.
    pub fn all(pieces: &[Piece], own: u32, names: &Names<'_>) -> Vec<Self> {
        sums(pieces).iter().map(|sum| Self::of(sum, own, names)).collect()
    }

    fn of(sum: &Sum, own: u32, names: &Names<'_>) -> Self {
        let loss = sum.reason.loss();
        let end = |t: Time| (t < Time::MAX).then(|| t.as_ps());
        let of_port = |port| names.faults(port, (sum.first, sum.last));
        let (down, slow) = sum.reason.port().map_or_else(Default::default, of_port);
        let down = if matches!(sum.reason, Reason::Down(_)) { down } else { Vec::new() };
        let ahead = match sum.reason.behind() {
            Some(Behind::Flow(flow)) => {
                (Some(names.number(flow)), names.block_of(flow).map(|block| names.block(block)))
            }
            Some(Behind::Itself) => (Some(own), None),
            None => (None, None),
        };
        Self {
            reason: sum.reason.name(),
            way: if sum.way == Way::Data { "data" } else { "ack" },
            port: sum.reason.port().map(|port| names.port(port)),
            behind_flow: ahead.0,
            behind_block: ahead.1,
            loss_port: loss.map(|loss| names.port(loss.port)),
            loss_cause: loss.map(|loss| match loss.how {
                How::Trimmed => "trimmed",
                How::Returned => "returned",
                How::Dropped(cause) => cause.name(),
            }),
            ps: sum.time.as_ps(),
            bytes: sum.bytes,
            pieces: sum.pieces,
            first_ps: sum.first.as_ps(),
            last_ps: sum.last.as_ps(),
            down_ps: down.into_iter().map(|(from, to)| (from.as_ps(), end(to))).collect(),
            slow: slow
                .into_iter()
                .map(|slow| SlowEntry { share: slow.share, from_ps: slow.from.as_ps(), to_ps: end(slow.to) })
                .collect(),
        }
    }
}
