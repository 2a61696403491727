//! A capture file for Wireshark: an interface for each port, and a packet for each that leaves one.

mod block;
mod frame;
mod pause;
mod rdma;
mod tcp;

use std::collections::HashMap;
use std::io::{self, Write};

use fairrate_sim::{FlowId, PacketEvent, PacketHeader, PacketKind, PacketStep, PfcEvent, PortId};

use self::block::Block;
use self::frame::Frame;
use crate::network::Network;
use crate::output::Output;
use crate::tracer::{End, Format};

/// The comment that says why the file ends.
const LAST: &str = "the trace ends with this packet: the file has reached its largest size";
/// Bytes that the last packet takes at most, with its interface and comments, besides telemetry and the name of its
/// port: headers take up to 100, blocks with their options 90, the comments 180.
const PACKET: usize = 380;
/// Bytes of a record of telemetry.
const RECORD: usize = 8;

/// A writer of captures in the format pcapng.
pub struct Pcapng {
    network: Network,
    out: Output,
    /// For each port, the number of its interface; `NONE` before its first packet.
    interfaces: Vec<u32>,
    n_interfaces: u32,
    /// For each flow or subflow, the number after the highest one that its sender has sent.
    next: HashMap<FlowId, u64>,
    /// Bytes that the last packet takes at most, which are kept for it.
    reserve: usize,
}

const NONE: u32 = u32::MAX;

/// A step of a packet with the header of the packet.
#[derive(Clone, Copy)]
struct Step<'a> {
    event: &'a PacketEvent,
    header: &'a PacketHeader<'a>,
}

impl Pcapng {
    /// Begins a capture of a run in `network`, which `comment` describes.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(network: Network, mut out: Output, comment: &str) -> io::Result<Self> {
        Block::section(concat!("fairrate ", env!("CARGO_PKG_VERSION")), comment).write(&mut out)?;
        let (interfaces, next) = (vec![NONE; network.ports.len()], HashMap::new());
        let longest_name = network.ports.iter().map(String::len).max().unwrap_or(0);
        let reserve = PACKET + RECORD * network.longest_path as usize + longest_name;
        Ok(Self { interfaces, n_interfaces: 0, next, reserve, network, out })
    }

    /// Returns `true` if data leaves its sender that has left it before.
    fn is_sent_again(&mut self, event: &PacketEvent) -> bool {
        if event.kind != PacketKind::Data || !self.network.is_host(event.port) {
            return false;
        }
        let next = self.next.entry(event.lane).or_default();
        let is_again = event.seq < *next;
        *next = (*next).max(event.seq + 1);
        is_again
    }

    /// Adds a packet at `port`. The last one that there is room for says so in a comment.
    fn put(&mut self, port: PortId, ps: u64, frame: &Frame, comment: Option<&str>) -> io::Result<End> {
        let name = &self.network.ports[port.index()];
        let known = self.interfaces[port.index()];
        let number = if known == NONE { self.n_interfaces } else { known };
        let interface = (known == NONE).then(|| Block::interface(name, self.network.rates[port.index()].as_bps()));
        let mut packet = Block::packet(number, ps, &frame.bytes, frame.length());
        if let Some(comment) = comment {
            packet.comment(comment);
        }
        let len = packet.len() + interface.as_ref().map_or(0, Block::len);
        let end = if self.out.has_room((len + self.reserve) as u64) { End::Whole } else { End::Limit };
        if end == End::Limit {
            packet.comment(LAST);
        }
        debug_assert!(len + LAST.len() + 9 <= self.reserve, "{len} bytes fit into what is kept for the last packet");
        if let Some(interface) = interface {
            interface.write(&mut self.out)?;
            self.interfaces[port.index()] = number;
            self.n_interfaces += 1;
        }
        packet.write(&mut self.out)?;
        Ok(end)
    }
}

impl Format for Pcapng {
    fn wants_headers(&self) -> bool {
        true
    }

    fn step(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) -> io::Result<End> {
        let Some(header) = header else { return Ok(End::Whole) };
        let step = Step { event, header };
        let queued = event.queued_bytes;
        let comment = match event.step {
            PacketStep::Queued => return Ok(End::Whole),
            PacketStep::Sent => self.is_sent_again(event).then(|| "sent again".to_owned()),
            PacketStep::Dropped(cause) => Some(format!("dropped: {}, {queued} bytes queued", cause.words())),
            PacketStep::Trimmed => Some(format!("cut to its header, {queued} bytes queued")),
            PacketStep::Returned => Some(format!("header sent back, {queued} bytes queued")),
        };
        let frame = Frame::of(&self.network, step);
        self.put(event.port, event.t.as_ps(), &frame, comment.as_deref())
    }

    fn pfc(&mut self, event: &PfcEvent) -> io::Result<End> {
        // The frame came from the other end of the link.
        let frame = pause::frame(event.class, event.pause);
        self.put(event.port.reverse(), event.t.as_ps(), &frame, None)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn written(&self) -> u64 {
        self.out.written()
    }
}
