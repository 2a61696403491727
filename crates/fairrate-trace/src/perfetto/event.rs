//! Packets of a Perfetto trace: descriptions of tracks, and events on them. Numbers of fields are those of Perfetto's `trace_packet.proto`,
//! `track_descriptor.proto` and `track_event.proto`.

use fairrate_units::Time;

use super::proto::Message;

/// The one sequence of packets.
const SEQUENCE: u64 = 1;

/// Kinds of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// An end of an arrow at a slice or a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    None,
    Starts(u64),
    Ends(u64),
}

/// A unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    BitsPerSecond,
}

/// The facts that an event shows when it is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) seq: u64,
    pub(super) bytes: u16,
    pub(super) class: u8,
    pub(super) marked: bool,
}

/// Returns the description of a track below `parent`, or at the top for 0.
pub(super) fn track(id: u64, parent: u64, name: &str) -> Vec<u8> {
    described(id, parent, name, None)
}

/// Returns the description of a counter below `parent`.
pub(super) fn counter_track(id: u64, parent: u64, name: &str, unit: Unit) -> Vec<u8> {
    let counter = match unit {
        Unit::Bytes => Message::default().int(3, 3),
        Unit::BitsPerSecond => Message::default().text(6, "bit/s"),
    };
    described(id, parent, name, Some(&counter))
}

fn described(id: u64, parent: u64, name: &str, counter: Option<&Message>) -> Vec<u8> {
    let mut track = Message::default().int(1, id).text(2, name);
    if parent != 0 {
        track = track.int(5, parent);
    }
    if let Some(counter) = counter {
        track = track.message(8, counter);
    }
    packet(None, 60, &track)
}

/// Returns the begin of a slice.
pub(super) fn begin(t: Time, track: u64, name: &str, facts: Option<Facts>, arrow: Arrow) -> Vec<u8> {
    event(t, &shown(Message::default().int(9, BEGIN).int(11, track).text(23, name), facts, arrow))
}

/// Returns the end of the last slice that began on `track`.
pub(super) fn end(t: Time, track: u64) -> Vec<u8> {
    event(t, &Message::default().int(9, END).int(11, track))
}

/// Returns a moment.
pub(super) fn instant(t: Time, track: u64, name: &str, facts: Option<Facts>, arrow: Arrow) -> Vec<u8> {
    event(t, &shown(Message::default().int(9, INSTANT).int(11, track).text(23, name), facts, arrow))
}

/// Returns a value of a counter.
pub(super) fn value(t: Time, track: u64, value: u64) -> Vec<u8> {
    event(t, &Message::default().int(9, COUNTER).int(11, track).int(30, value))
}

fn shown(mut event: Message, facts: Option<Facts>, arrow: Arrow) -> Message {
    if let Some(Facts { seq, bytes, class, marked }) = facts {
        let facts =
            [("seq", seq), ("bytes", u64::from(bytes)), ("class", u64::from(class)), ("marked", u64::from(marked))];
        for (name, value) in facts {
            event = event.message(4, &Message::default().text(10, name).int(3, value));
        }
    }
    match arrow {
        Arrow::None => event,
        Arrow::Starts(id) => event.fixed(47, id),
        Arrow::Ends(id) => event.fixed(48, id),
    }
}

fn event(t: Time, event: &Message) -> Vec<u8> {
    packet(Some(t), 11, event)
}

/// Returns a packet of the trace, with the field of the trace that it is. Perfetto counts time in nanoseconds.
fn packet(t: Option<Time>, field: u64, content: &Message) -> Vec<u8> {
    let mut packet = Message::default();
    if let Some(t) = t {
        packet = packet.int(8, t.as_ns());
    }
    packet = packet.int(10, SEQUENCE).message(field, content);
    Message::default().message(1, &packet).0
}
