//! Packets of a Perfetto trace: descriptions of tracks, and events on them. Numbers of fields are those of Perfetto's
//! `trace_packet.proto`, `track_descriptor.proto` and `track_event.proto`.

use std::fmt::Display;

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

/// Adds the description of a track below `parent`, or at the top for 0.
pub(super) fn track(buffer: &mut Vec<u8>, id: u64, parent: u64, name: &str) {
    described(buffer, (id, parent), name, |_| ());
}

/// Adds the description of a counter below `parent`.
pub(super) fn counter_track(buffer: &mut Vec<u8>, id: u64, parent: u64, name: &str, unit: Unit) {
    let counter = |counter: &mut Message<'_>| match unit {
        Unit::Bytes => _ = counter.int(3, 3),
        Unit::BitsPerSecond => _ = counter.text(6, "bit/s"),
    };
    described(buffer, (id, parent), name, |track| _ = track.message(8, counter));
}

fn described(buffer: &mut Vec<u8>, (id, parent): (u64, u64), name: &str, more: impl FnOnce(&mut Message<'_>)) {
    packet(buffer, None, 60, |track| {
        track.int(1, id).text(2, name);
        if parent != 0 {
            track.int(5, parent);
        }
        more(track);
    });
}

/// Adds the begin of a slice.
pub(super) fn begin(
    buffer: &mut Vec<u8>,
    (t, track): (Time, u64),
    name: impl Display,
    facts: Option<Facts>,
    arrow: Arrow,
) {
    event(buffer, t, |event| show(event.int(9, BEGIN).int(11, track).text(23, name), facts, arrow));
}

/// Adds the end of the last slice that began on `track`.
pub(super) fn end(buffer: &mut Vec<u8>, (t, track): (Time, u64)) {
    event(buffer, t, |event| _ = event.int(9, END).int(11, track));
}

/// Adds a moment.
pub(super) fn instant(
    buffer: &mut Vec<u8>,
    (t, track): (Time, u64),
    name: impl Display,
    facts: Option<Facts>,
    arrow: Arrow,
) {
    event(buffer, t, |event| show(event.int(9, INSTANT).int(11, track).text(23, name), facts, arrow));
}

/// Adds a value of a counter.
pub(super) fn value(buffer: &mut Vec<u8>, (t, track): (Time, u64), value: u64) {
    event(buffer, t, |event| _ = event.int(9, COUNTER).int(11, track).int(30, value));
}

fn show(event: &mut Message<'_>, facts: Option<Facts>, arrow: Arrow) {
    if let Some(Facts { seq, bytes, class, marked }) = facts {
        let facts =
            [("seq", seq), ("bytes", u64::from(bytes)), ("class", u64::from(class)), ("marked", u64::from(marked))];
        for (name, value) in facts {
            event.message(4, |fact| _ = fact.text(10, name).int(3, value));
        }
    }
    match arrow {
        Arrow::None => {}
        Arrow::Starts(id) => _ = event.fixed(47, id),
        Arrow::Ends(id) => _ = event.fixed(48, id),
    }
}

fn event(buffer: &mut Vec<u8>, t: Time, write: impl FnOnce(&mut Message<'_>)) {
    packet(buffer, Some(t), 11, write);
}

/// Adds a packet of the trace, with the field of the trace that it is. Perfetto counts time in nanoseconds.
fn packet(buffer: &mut Vec<u8>, t: Option<Time>, field: u64, write: impl FnOnce(&mut Message<'_>)) {
    Message::at_end_of(buffer).message(1, |packet| {
        if let Some(t) = t {
            packet.int(8, t.as_ns());
        }
        packet.int(10, SEQUENCE).message(field, write);
    });
}
