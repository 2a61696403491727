//! The account of a flow in one sentence.

use fairrate_explain::{Behind, Explanation, Reason, Way};
use fairrate_report::format;
use fairrate_units::Time;

use super::names::Names;
use super::rows::{Row, in_words};

/// Smallest share of a reason that the sentence names beside the longest one, and of the flow itself among those ahead.
const SHARE: f64 = 0.1;
/// Largest number of reasons in the sentence.
const REASONS: usize = 3;
/// Largest number of traffic blocks in the sentence; the others are named together.
const BLOCKS: usize = 3;
/// Share of a wait from which on the flow ahead is named alone.
const MOST: f64 = 0.6;

/// Returns the sentence: the longest reasons, as
/// `3.1 of 4.7 ms behind flow 812 at tor3->h17, 0.9 ms in a timeout after a drop at agg1->tor3 (buffer full)`.
pub fn sentence(explanation: &Explanation, rows: &[Row], names: &Names<'_>) -> String {
    let fct = explanation.fct;
    let end = if explanation.is_finished { "" } else { "unfinished: " };
    let is_long = |row: &&Row| SHARE * fct.as_ps() as f64 <= row.time.as_ps() as f64;
    let longest = rows.iter().take(1).chain(rows.iter().skip(1).take(REASONS - 1).filter(is_long));
    let words = longest.enumerate().map(|(i, row)| {
        let time = if i == 0 { share_of(row.time, fct) } else { time(row.time) };
        format!("{time} {}", phrase(row, explanation.round_trips, names))
    });
    format!("{end}{}", words.collect::<Vec<_>>().join(", "))
}

/// Returns `part` of `whole` in the unit of `whole`: `3.1 of 4.7 ms`.
fn share_of(part: Time, whole: Time) -> String {
    let (whole, part_in_own) = (time(whole), time(part));
    let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    match part_in_own.rsplit_once(' ') {
        Some((number, own)) if unit(&whole).as_deref() == Some(own) => format!("{number} of {whole}"),
        _ => format!("{part_in_own} of {whole}"),
    }
}

fn time(t: Time) -> String {
    format::time_ns(t.as_ns_f64())
}

/// Returns a reason as a part of a sentence.
fn phrase(row: &Row, round_trips: u32, names: &Names<'_>) -> String {
    let port = |port| names.port(port);
    match row.reason {
        Reason::Propagation(_) if row.way == Way::Ack => "on the way back of acknowledgments".to_owned(),
        Reason::Propagation(_) if 0 < round_trips => format!("of propagation in {}", trips(round_trips)),
        Reason::Propagation(_) => "of propagation".to_owned(),
        Reason::Serialisation(at) => format!("transmitting its own bytes at {}", port(at)),
        Reason::Queue(at, _) if row.way == Way::Ack => {
            format!("with acknowledgments behind {} at {}", whom(row, names), port(at))
        }
        Reason::Queue(at, _) => match names.slow(at, row.span) {
            slow if slow.is_empty() => format!("behind {} at {}", whom(row, names), port(at)),
            slow => format!("behind {} at {}, {slow}", whom(row, names), port(at)),
        },
        Reason::Turn(at, _) => format!("waiting for the turns of {} at {}", whom(row, names), port(at)),
        Reason::Pause(at) => format!("in PFC pauses of {}", port(at)),
        Reason::Blocked(at) => format!("while {} transmitted nothing", port(at)),
        Reason::Down(at) => format!("while the link {} was down ({})", port(at), names.outages(at, row.span)),
        Reason::LateLink(at) => format!("late on the faulty link {}", port(at)),
        Reason::Host(at) => format!("until the host behind {} acted on packets", port(at)),
        Reason::SlowNic(at) => format!("while the slow NIC of {} rested", port(at)),
        Reason::Pacing => "paced below the line rate".to_owned(),
        Reason::Window => "waiting for its window".to_owned(),
        Reason::Credit => "waiting for credit".to_owned(),
        Reason::Notice => "waiting for a rate from the network".to_owned(),
        Reason::Held => "held back by the first switch".to_owned(),
        Reason::Connection => "waiting for its connection, which an earlier flow used".to_owned(),
        Reason::Handshake => "in the handshake".to_owned(),
        Reason::Timeout(None) => "in timeouts without a loss of data".to_owned(),
        Reason::Timeout(Some(loss)) if row.pieces == 1 => format!("in a timeout after {}", names.loss(loss)),
        Reason::Timeout(Some(loss)) => format!("in {} timeouts, each after {}", row.pieces, names.loss(loss)),
        Reason::Recovery(None) => "in loss recovery".to_owned(),
        Reason::Recovery(Some(loss)) => format!("until bytes were sent again after {}", names.loss(loss)),
        Reason::Receiver => "with acknowledgments that the receiver held back".to_owned(),
        Reason::LastPacket => "on the way of the last packet".to_owned(),
        Reason::Unsent => "until the end of the run without sending anything further".to_owned(),
        Reason::Unknown => "for reasons that are not known".to_owned(),
    }
}

/// Returns a number of round trips and the way of the last packet in words.
fn trips(n: u32) -> String {
    if n == 1 { "a round trip and a half".to_owned() } else { format!("{n} round trips and a half") }
}

/// Returns the flows ahead: the one that took most of the time, their traffic block, or their number.
fn whom(row: &Row, names: &Names<'_>) -> String {
    let Some(&(first, longest, _)) = row.behind.first() else { return "others".to_owned() };
    if MOST * row.time.as_ps() as f64 <= longest.as_ps() as f64 {
        return if first == Behind::Itself { "its own packets".to_owned() } else { names.behind(first) };
    }
    let block = |behind: Behind| match behind {
        Behind::Itself => None,
        Behind::Flow(flow) => names.block_of(flow),
    };
    let is_own = |&&(behind, ..): &&(Behind, Time, u64)| behind == Behind::Itself;
    let own = row.behind.iter().find(is_own).map_or(Time::ZERO, |own| own.1);
    let others: Vec<Behind> = row.behind.iter().map(|b| b.0).filter(|&b| b != Behind::Itself).collect();
    let shared = others.first().and_then(|&b| block(b)).filter(|&of| others.iter().all(|&b| block(b) == Some(of)));
    let of = shared.and_then(|of| names.block_name(of)).map_or_else(String::new, |name| format!(" of block {name}"));
    let with_own = if SHARE * row.time.as_ps() as f64 <= own.as_ps() as f64 { " and its own packets" } else { "" };
    match &others[..] {
        [one] => format!("{}{with_own}", names.behind(*one)),
        others if shared.is_some() => format!("{} flows{of}{with_own}", others.len()),
        others => {
            let blocks = in_words(&row.blocks(names), BLOCKS);
            format!("{} flows{with_own} ({blocks})", others.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_unit_of_the_whole_once() {
        let us = Time::from_us;
        assert_eq!(share_of(us(3_100), us(4_700)), "3.10 of 4.70 ms");
        assert_eq!(share_of(us(31), us(4_700)), "31.0 µs of 4.70 ms");
    }
}
