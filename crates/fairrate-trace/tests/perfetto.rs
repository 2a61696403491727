//! Traces for Perfetto, read by a reader that knows only the encoding of protocol buffers.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Traced, config, trace_into};
use fairrate_trace::{End, Filter, Format, Perfetto};

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Int(u64),
    Bytes(Vec<u8>),
}

/// Takes an integer of variable length off `bytes`.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first().expect("an integer ends");
        *bytes = rest;
        value |= u64::from(first & 0x7F) << shift;
        if first < 0x80 {
            return value;
        }
    }
    panic!("an integer is too long");
}

/// Returns the fields of a message with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Int(varint(&mut bytes)),
            1 => {
                let (first, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Int(u64::from_le_bytes(first.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (first, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(first.to_vec())
            }
            kind => panic!("fields of kind {kind} are not written"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// A message by the numbers of its fields; of repeated ones, the last.
struct Message(BTreeMap<u64, Value>);

impl Message {
    fn of(bytes: &[u8]) -> Self {
        Self(fields(bytes).into_iter().collect())
    }
    fn int(&self, field: u64) -> Option<u64> {
        self.0.get(&field).map(|value| match value {
            Value::Int(value) => *value,
            Value::Bytes(_) => panic!("field {field} is a number"),
        })
    }
    fn text(&self, field: u64) -> String {
        match self.0.get(&field) {
            Some(Value::Bytes(bytes)) => String::from_utf8(bytes.clone()).unwrap(),
            _ => String::new(),
        }
    }
    fn message(&self, field: u64) -> Option<Self> {
        match self.0.get(&field) {
            Some(Value::Bytes(bytes)) => Some(Self::of(bytes)),
            _ => None,
        }
    }
}

/// An event of a trace.
#[derive(Clone, Debug)]
struct Event {
    ns: u64,
    kind: u64,
    track: String,
    name: String,
    value: Option<u64>,
    starts: Option<u64>,
    ends: Option<u64>,
}

/// Reads a trace. Events are in order of time, and those of the same time in the order of the file.
fn read(file: &[u8]) -> Vec<Event> {
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut events = Vec::new();
    for (field, value) in fields(file) {
        let (1, Value::Bytes(packet)) = (field, value) else { panic!("a trace has packets") };
        let packet = Message::of(&packet);
        assert_eq!(packet.int(10), Some(1));
        if let Some(track) = packet.message(60) {
            let above = track.int(5).map(|parent| tracks[&parent].clone() + "/").unwrap_or_default();
            assert!(tracks.insert(track.int(1).unwrap(), above + &track.text(2)).is_none());
            continue;
        }
        let event = packet.message(11).expect("other packets are events");
        events.push(Event {
            ns: packet.int(8).unwrap(),
            kind: event.int(9).unwrap(),
            track: tracks[&event.int(11).unwrap()].clone(),
            name: event.text(23),
            value: event.int(30),
            starts: event.int(47),
            ends: event.int(48),
        });
    }
    events.sort_by_key(|event| event.ns);
    events
}

fn traced(transport: &str, limit: u64) -> Traced {
    let begin = |network, out| Box::new(Perfetto::new(network, out)) as Box<dyn Format>;
    trace_into(&config(transport), begin, Filter::ALL, limit)
}

const CUBIC: &str = "cc = \"cubic\"\nkind = \"tcp\"";

#[test]
fn ports_transmit_one_packet_after_another() {
    let traced = traced(CUBIC, u64::MAX);
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut n = 0;
    for event in read(&traced.file) {
        match event.kind {
            1 => {
                assert!(open.insert(event.track.clone()), "{event:?}");
                n += 1;
            }
            2 => assert!(open.remove(&event.track), "{event:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty() && n == traced.counts.sent);
}

#[test]
fn an_arrow_leads_from_each_drop_to_where_it_is_sent_again() {
    let traced = traced(CUBIC, u64::MAX);
    let events = read(&traced.file);
    let starts: BTreeMap<u64, &Event> = events.iter().filter_map(|e| Some((e.starts?, e))).collect();
    let ends: BTreeMap<u64, &Event> = events.iter().filter_map(|e| Some((e.ends?, e))).collect();
    // Each packet that is dropped is sent again once, as each drop is of its own.
    assert_eq!(starts.len() as u64, traced.totals.drops.total());
    assert_eq!(ends.len() as u64 * 1_000, traced.retransmitted);
    for (arrow, end) in ends {
        let start = starts[&arrow];
        assert!(start.ns < end.ns && start.name.contains(" dropped: ") && start.kind == 3, "{start:?} {end:?}");
        assert_eq!(start.track, "sw0/sw0->h0");
        assert!(end.track.starts_with('h') && start.name.starts_with(&end.name), "{start:?} {end:?}");
    }
}

#[test]
fn counters_have_queues_and_windows() {
    let traced = traced(CUBIC, u64::MAX);
    let events = read(&traced.file);
    let of = |track: &str| -> Vec<u64> { events.iter().filter(|e| e.track == track).filter_map(|e| e.value).collect() };
    let queue = of("sw0/sw0->h0/queue");
    assert!(queue.iter().max().is_some_and(|&most| (40_000..=100_000).contains(&most)) && queue.last() == Some(&0));
    let windows = of("flows/flow 3/window");
    assert!(1 < windows.len() && windows.iter().all(|&window| 1_000 <= window), "{windows:?}");
}

#[test]
fn a_limit_is_kept_and_told() {
    let traced = traced(CUBIC, 20_000);
    assert!(traced.file.len() <= 20_000 && traced.end == End::Limit, "{}", traced.file.len());
    let last = read(&traced.file).into_iter().rfind(|event| event.kind == 3).unwrap();
    assert_eq!(last.name, "the trace ends here: the file has reached its largest size");
}
