//! Captures, read by an independent reader and held against what the runs count.

mod common;

use std::collections::BTreeMap;

use common::{Traced, trace};
use fairrate_trace::{End, Filter};
use fairrate_units::Time;
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator as _};
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, PcapNGReader};

/// A packet of a capture.
#[derive(Clone, Debug, PartialEq)]
struct Packet {
    port: String,
    ps: u64,
    bytes: Vec<u8>,
    length: u32,
    comments: Vec<String>,
}

impl Packet {
    fn is_drop(&self) -> bool {
        self.comments.iter().any(|comment| comment.starts_with("dropped: "))
    }
    /// Returns the two bits of ECN.
    fn ecn(&self) -> u8 {
        self.bytes[15] & 3
    }
    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }
    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.bytes[at..at + 2].try_into().unwrap())
    }
    /// Returns the payload of a segment of TCP, as IPv4's length leaves it.
    fn tcp_len(&self) -> u64 {
        u64::from(self.half(16)) - 20 - u64::from(self.bytes[46] >> 4) * 4
    }
}

/// Reads a capture.
fn read(file: &[u8]) -> Vec<Packet> {
    let mut reader = PcapNGReader::new(1 << 16, file).expect("a section begins");
    let (mut ports, mut packets) = (Vec::new(), Vec::new());
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text is UTF-8");
    loop {
        let (length, block) = match reader.next() {
            Ok(next) => next,
            Err(PcapError::Eof) => return packets,
            Err(PcapError::Incomplete(_)) => {
                reader.refill().expect("the file is whole");
                continue;
            }
            Err(error) => panic!("{error:?}"),
        };
        match block {
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let name = interface.options.iter().find(|o| o.code == OptionCode(2)).expect("a name");
                ports.push(text(&name.value[..usize::from(name.len)]));
                assert_eq!((interface.if_tsresol, interface.linktype.0), (12, 1));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let comments = packet.options.iter().filter(|o| o.code == OptionCode::Comment);
                packets.push(Packet {
                    port: ports[packet.if_id as usize].clone(),
                    ps: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
                    bytes: packet.packet_data().to_vec(),
                    length: packet.origlen,
                    comments: comments.map(|o| text(&o.value[..usize::from(o.len)])).collect(),
                });
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {}
            _ => panic!("another kind of block"),
        }
        reader.consume(length);
    }
}

fn traced(transport: &str) -> (Traced, Vec<Packet>) {
    let traced = trace(transport, Filter::ALL, u64::MAX);
    let packets = read(&traced.file);
    (traced, packets)
}

/// Checks what holds for every capture: a packet for each packet-hop, in order of time, with the checksum of its IPv4
/// header.
fn check(traced: &Traced, packets: &[Packet]) {
    let is_frame = |p: &&Packet| p.bytes[12..14] == [0x88, 0x08];
    let is_again = |p: &&Packet| p.comments == ["sent again"];
    let hops = packets.iter().filter(|p| (p.comments.is_empty() || is_again(p)) && !is_frame(p)).count() as u64;
    assert_eq!(hops, traced.counts.sent);
    let pauses = packets.iter().filter(is_frame).count() as u64;
    assert_eq!((pauses, pauses), (traced.n_pauses, traced.counts.pauses));
    assert_eq!(hops + pauses, traced.totals.packet_hops);
    let drops = packets.iter().filter(|p| p.is_drop()).count() as u64;
    assert_eq!(drops, traced.totals.drops.total());
    assert!(packets.is_sorted_by_key(|p| p.ps));
    for packet in packets.iter().filter(|p| p.bytes[12..14] == [8, 0]) {
        let words = packet.bytes[14..34].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        assert_eq!(words.sum::<u32>() % 0xFFFF, 0, "{packet:?}");
        assert!(packet.bytes.len() as u32 <= packet.length && u32::from(packet.half(16)) + 14 <= packet.length);
    }
}

#[test]
fn rdma_is_roce_with_numbers_of_packets_and_notifications() {
    let (traced, packets) = traced("cc = \"dcqcn\"");
    check(&traced, &packets);
    let of = |opcode| packets.iter().filter(move |p| p.bytes[42] == opcode);
    assert!(packets.iter().filter(|p| p.bytes[12..14] == [8, 0]).all(|p| p.half(36) == 4791));
    // Eight flows of 100 packets: 98 in the middle, on two links each.
    assert_eq!([0x06, 0x07, 0x08].map(|opcode| of(opcode).count()), [16, 8 * 98 * 2, 16]);
    let numbers: Vec<u32> = of(0x07).filter(|p| p.port == "h1->sw0").map(|p| p.word(50) & 0xFF_FFFF).collect();
    assert!(numbers.iter().copied().eq(1..99), "{numbers:?}");
    // 1,000 bytes and 48 of headers.
    assert!(of(0x07).all(|p| p.length == 1_048));
    // The length of the message is in its first packet.
    assert!(of(0x06).all(|p| p.word(66) == 100_000));
    let marked = of(0x07).chain(of(0x06)).chain(of(0x08)).filter(|p| p.ecn() == 3).count() as u64;
    // The last port marks, so a packet is seen with its mark once at most.
    assert!(0 < marked && marked == traced.totals.counts.ecn_marks, "{marked} of {}", traced.totals.counts.ecn_marks);
    assert!(of(0x81).count() > 0 && of(0x81).all(|p| p.bytes[46] == 0x40));
}

/// Go-back-N: from the gap on, all packets are sent again.
#[test]
fn packets_of_rdma_that_are_sent_again_have_the_same_numbers() {
    let (traced, packets) = traced("cc = \"dctcp\"\nrto = \"500us\"");
    check(&traced, &packets);
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let mut again = 0;
    for p in packets.iter().filter(|p| p.port.ends_with("->sw0") && (0x06..=0x08).contains(&p.bytes[42])) {
        let (number, next) = (p.word(50) & 0xFF_FFFF, next.entry(p.word(46)).or_insert(0));
        again += u64::from(number < *next);
        *next = (*next).max(number + 1);
    }
    assert!(0 < again && again * 1_000 == traced.retransmitted, "{again} of {}", traced.retransmitted);
    assert_eq!(packets.iter().filter(|p| p.comments == ["sent again"]).count() as u64, again);
    // Each report of a gap has the number of the first packet that is missing.
    let naks = packets.iter().filter(|p| p.bytes[42] == 0x11 && p.bytes[54] == 0x60 && p.port == "h0->sw0");
    assert!(naks.count() > 0);
}

#[test]
fn pauses_are_frames_at_the_port_that_sends_them() {
    let (traced, packets) = traced("cc = \"line-rate\"");
    check(&traced, &packets);
    let frames: Vec<&Packet> = packets.iter().filter(|p| p.bytes[12..14] == [0x88, 0x08]).collect();
    assert!(!frames.is_empty());
    for frame in frames {
        // Opcode 0x0101, and the time of class 3, in which data is.
        assert!(frame.port.starts_with("sw0->h") && frame.half(14) == 0x0101 && frame.half(16) == 1 << 3, "{frame:?}");
        assert!([0, 0xFFFF].contains(&frame.half(24)));
    }
}

#[test]
fn telemetry_comes_back_behind_the_header() {
    let (traced, packets) = traced("cc = \"powertcp\"");
    check(&traced, &packets);
    // The switch stamps what leaves by its port, and acknowledgments bring that back: 25 Gb/s has number 0, and 24 bits
    // of nanoseconds follow.
    let is_data = |p: &&Packet| (0x06..=0x08).contains(&p.bytes[42]) && p.port == "sw0->h0";
    let left: Vec<u64> = packets.iter().filter(is_data).map(|p| p.ps / 1_000).collect();
    let answers: Vec<&Packet> = packets.iter().filter(|p| p.bytes[42] == 0x11 && p.port == "h0->sw0").collect();
    assert_eq!((left.len(), answers.len()), (800, 800));
    for packet in answers {
        assert_eq!((packet.half(58), packet.bytes[60] >> 5), (1, 0), "{packet:?}");
        let record = u64::from_be_bytes(packet.bytes[60..68].try_into().unwrap());
        assert!(left.contains(&((record >> 37) & 0xFF_FFFF)), "{packet:?}");
    }
}

#[test]
fn segments_of_tcp_that_are_sent_again_are_those_that_the_run_counts() {
    for cc in ["newreno", "cubic"] {
        let (traced, packets) = traced(&format!("cc = \"{cc}\"\nkind = \"tcp\"\n[transport.tcp]\nhandshake = true"));
        check(&traced, &packets);
        let mut next: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut again = 0;
        for p in packets.iter().filter(|p| p.port.ends_with("->sw0") && 0 < p.tcp_len()) {
            let (seq, end) = (u64::from(p.word(38)), next.entry((p.word(26), p.word(34))).or_insert(1));
            if seq < *end {
                again += p.tcp_len();
            }
            *end = (*end).max(seq + p.tcp_len());
        }
        assert!(0 < again && again == traced.retransmitted, "{cc}: {again} of {}", traced.retransmitted);
        assert_eq!(packets.iter().filter(|p| p.comments == ["sent again"]).map(Packet::tcp_len).sum::<u64>(), again);
        // Each connection begins with a packet that only opens it, and its answer.
        let syns = |flags| packets.iter().filter(|p| p.bytes[47] & 0x3F == flags).count();
        assert_eq!((syns(0x02), syns(0x12)), (16, 16));
        // Ranges of selective acknowledgments are above what is acknowledged.
        let mut n_sacks = 0;
        for p in packets.iter().filter(|p| 20 < (p.bytes[46] >> 4) * 4 && p.bytes[47] == 0x10) {
            assert_eq!(p.bytes[54..57], [1, 1, 5]);
            assert!(p.word(42) < p.word(58) && p.word(58) < p.word(62), "{p:?}");
            n_sacks += 1;
        }
        assert!(0 < n_sacks);
    }
}

#[test]
fn subflows_are_connections_of_their_own() {
    let (traced, packets) = traced("cc = \"lia\"\nkind = \"tcp\"\n[transport.tcp]\nsubflows = 3");
    check(&traced, &packets);
    let again = packets.iter().filter(|p| p.comments == ["sent again"]).map(Packet::tcp_len).sum::<u64>();
    assert!(0 < again && again == traced.retransmitted, "{again} of {}", traced.retransmitted);
    let ports: std::collections::BTreeSet<_> =
        packets.iter().filter(|p| p.port == "h1->sw0").map(|p| p.word(34)).collect();
    assert_eq!(ports.len(), 3);
}

#[test]
fn other_transports_have_the_simulators_fields() {
    let (traced_, packets) = traced("cc = \"homa\"");
    check(&traced_, &packets);
    assert!(packets.iter().all(|p| p.bytes[23] == 146));
    // Kind 0 is data, and its payload is what the flows have.
    let payload: u64 =
        packets.iter().filter(|p| p.port.ends_with("->sw0") && p.bytes[38] == 0).map(|p| u64::from(p.half(40))).sum();
    assert_eq!(payload, 800_000 + traced_.retransmitted);
    let (traced_, packets) = traced("cc = \"nscc\"");
    let again = packets.iter().filter(|p| p.comments == ["sent again"]).map(|p| u64::from(p.half(44))).sum::<u64>();
    assert!(0 < again && again == traced_.retransmitted, "{again} of {}", traced_.retransmitted);
    let cut = |p: &&Packet| p.comments.iter().any(|comment| comment.starts_with("cut to its header"));
    let cut: Vec<&Packet> = packets.iter().filter(cut).collect();
    assert!(!cut.is_empty() && cut.len() as u64 == traced_.counts.trimmed);
    // The headers that go on are short.
    let headers: Vec<&Packet> = packets.iter().filter(|p| p.bytes[42] == 3).collect();
    assert!(headers.len() == cut.len() && headers.iter().all(|p| p.length < 100), "{}", headers.len());
    assert!(packets.iter().all(|p| p.half(36) == 4793));
}

/// The last packet may be the longest one, the first one of its port, and have comments.
#[test]
fn every_limit_is_kept() {
    for transport in
        ["cc = \"hpcc\"", "cc = \"dcqcn\"", "cc = \"newreno\"\nkind = \"tcp\"", "cc = \"homa\"", "cc = \"nscc\""]
    {
        for limit in (4_000..6_000).step_by(97) {
            let traced = trace(transport, Filter::ALL, limit);
            let len = traced.file.len() as u64;
            assert!(traced.end == End::Limit && len <= limit && limit < len + 600, "{transport}: {len} of {limit}");
        }
    }
}

#[test]
fn a_limit_is_kept_and_told() {
    let traced = trace("cc = \"dcqcn\"", Filter::ALL, 10_000);
    assert!(traced.file.len() <= 10_000 && 9_500 < traced.file.len(), "{}", traced.file.len());
    assert_eq!(traced.end, End::Limit);
    let packets = read(&traced.file);
    let (last, others) = packets.split_last().unwrap();
    assert_eq!(last.comments, ["the trace ends with this packet: the file has reached its largest size"]);
    assert!(others.iter().all(|p| p.comments.is_empty()) && others.len() as u64 + 1 == traced.counts.sent);
    // It is the same run.
    assert_eq!(traced.totals, trace("cc = \"dcqcn\"", Filter::ALL, u64::MAX).totals);
}

#[test]
fn a_filter_keeps_what_it_names() {
    let all = read(&trace("cc = \"dcqcn\"", Filter::ALL, u64::MAX).file);
    let (from, until) = (Time::from_us(20), Time::from_us(60));
    let part = trace("cc = \"dcqcn\"", Filter { from, until, ..Filter::ALL }, u64::MAX);
    let expected: Vec<&Packet> = all.iter().filter(|p| (20_000_000..60_000_000).contains(&p.ps)).collect();
    assert!(!expected.is_empty() && read(&part.file).iter().eq(expected));
    let mut flows = vec![false; 8];
    flows[3] = true;
    let one = trace("cc = \"dcqcn\"", Filter { flows: Some(flows), ..Filter::ALL }, u64::MAX);
    let queue_pair = |p: &&Packet| p.bytes[12..14] == [8, 0] && p.word(46) & 0xFF_FFFF == 3;
    let expected: Vec<&Packet> = all.iter().filter(queue_pair).collect();
    assert!(!expected.is_empty() && read(&one.file).iter().eq(expected));
}
