//! Tests that every byte stream arrives intact and in order, with real bytes: senders and receivers of TCP, alone and
//! under a connection of several subflows, over wires that lose, delay, duplicate and damage packets and
//! acknowledgments, and over paths that die. A hash compares what the application reads with what was sent.
//!
//! The harness takes the place of the simulator's hosts around these types: it sends one packet for each segment and
//! one acknowledgment for each reply of a receiver, and discards damaged packets. Windows are constant, as congestion
//! is not tested here.

mod cases;

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use fairrate_control::{AlgorithmConfig, FlowContext, Profile};
use fairrate_units::{Bytes, Rate, Time};
use twox_hash::XxHash64;

use super::controlled::Controlled;
use super::mptcp::{Connection, MptcpConfig, Reassembly, Scheduler};
use super::receiver::Receiver;
use super::sender::{Segment, Sender};
use super::tcp::{Arrived, DelayedAck, EcnEcho, Expired, MAX_SACKS, TEST_CONFIG, TcpConfig, TcpSender};
use crate::ids::{FlowId, PacketIdx};
use crate::rng::{Purpose, Stream};

const MSS: u64 = 1_000;
const US: u64 = 1_000_000;
/// Time between two segments of a path.
const GAP_PS: u64 = US;

/// The reason why a transfer failed.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// No end after `steps` events: the application has read only `read` bytes.
    NoEnd { steps: u64, read: u64 },
    /// No pending event, although the application has read only `read` bytes.
    Stuck { read: u64 },
    /// A byte that the transport reports as readable but that has not arrived.
    Missing { byte: u64 },
    /// A difference between the bytes read and the bytes sent, by their hashes.
    Differs { sent: u64, read: u64 },
}

/// Returns `len` bytes of a stream, from byte `from` on: each is a function of the stream and its position
/// (SplitMix64).
fn content(stream: u64, from: u64, len: u64) -> Vec<u8> {
    let byte = |at: u64| {
        let mut z = (stream ^ at).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 30)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 56) as u8
    };
    (from..from + len).map(byte).collect()
}

/// The faults of a wire, as probabilities per packet.
#[derive(Clone, Copy, Debug)]
struct Faults {
    loss: f64,
    /// Probabilities that a burst of losses begins, and that it continues with the next packet.
    burst: (f64, f64),
    /// Probability of a delay by up to `late_us`, so that other packets overtake.
    late: f64,
    late_us: u64,
    duplicate: f64,
    corrupt: f64,
}

impl Faults {
    const NONE: Self = Self { loss: 0.0, burst: (0.0, 0.0), late: 0.0, late_us: 1, duplicate: 0.0, corrupt: 0.0 };
}

/// One direction of a path.
struct Wire {
    faults: Faults,
    delay_ps: u64,
    /// Start and end of the time in which no packet gets through.
    dead: (u64, u64),
    in_burst: bool,
    random: Stream,
}

impl Wire {
    /// Returns the arrival time of each copy of a packet that leaves now, and `true` if that copy is damaged.
    fn fates(&mut self, now_ps: u64) -> Vec<(u64, bool)> {
        let f = self.faults;
        let mut happens = |p: f64| self.random.uniform() < p;
        self.in_burst = happens(if self.in_burst { f.burst.1 } else { f.burst.0 });
        let lost = self.in_burst || happens(f.loss) || (self.dead.0 <= now_ps && now_ps < self.dead.1);
        let (copies, late) = (1 + u64::from(happens(f.duplicate)), happens(f.late));
        if lost {
            return Vec::new();
        }
        let at = now_ps + self.delay_ps + if late { US * self.random.below(f.late_us.max(1)) } else { 0 };
        (0..copies).map(|i| (at + i, self.random.uniform() < f.corrupt)).collect()
    }
}

/// A packet on a wire.
#[derive(Clone, Debug)]
enum Packet {
    Data { seq: u64, data_seq: u64, marked: bool, reduced: bool, bytes: Vec<u8>, checksum: u64 },
    Ack { ack: u64, data_ack: u64, sacks: [(u64, u64); MAX_SACKS], checksum: u64 },
}

fn ack_checksum(ack: u64, data_ack: u64, sacks: &[(u64, u64)]) -> u64 {
    let mut hash = XxHash64::with_seed(0);
    let words = [ack, data_ack].into_iter().chain(sacks.iter().flat_map(|s| [s.0, s.1]));
    words.for_each(|word| hash.write_u64(word));
    hash.finish()
}

/// One path with its ends.
struct Path {
    sender: Sender,
    receiver: Receiver,
    there: Wire,
    back: Wire,
    next_send_ps: u64,
}

/// The reading application. `held` stores data that has arrived but cannot be read yet, by first byte.
struct Application {
    held: BTreeMap<u64, Vec<u8>>,
    read: u64,
    hash: XxHash64,
}

impl Application {
    /// Reads all bytes before byte `to`, which the transport reports as arrived.
    fn read_to(&mut self, to: u64) -> Result<(), Failure> {
        while self.read < to {
            let Some(piece) = self.held.remove(&self.read).filter(|p| self.read + p.len() as u64 <= to) else {
                return Err(Failure::Missing { byte: self.read });
            };
            self.hash.write(&piece);
            self.read += piece.len() as u64;
        }
        // Removes copies of data already read.
        self.held = self.held.split_off(&to);
        Ok(())
    }
}

/// A path of a transfer.
#[derive(Clone, Debug)]
struct PathPlan {
    there: Faults,
    back: Faults,
    delay_us: u64,
    /// Start and end of the time in which the path is dead, in microseconds.
    dead_us: (u64, u64),
    /// Window in segments.
    window: u64,
}

/// A transfer.
#[derive(Clone, Debug)]
struct Plan {
    bytes: u64,
    seed: u64,
    tcp: TcpConfig,
    /// The paths; more than one make a multipath connection.
    paths: Vec<PathPlan>,
    /// `true` if hosts discard damaged packets.
    checks: bool,
}

/// A transfer under way.
struct Transfer {
    plan: Plan,
    now_ps: u64,
    paths: Vec<Path>,
    connection: Option<(Connection, Reassembly)>,
    application: Application,
    /// Packets on their way, each with its path, by arrival time and order of sending.
    wire: BTreeMap<(u64, u64), (usize, Packet)>,
    n_sent: u64,
    marks: Stream,
}

impl Transfer {
    fn new(plan: Plan) -> Self {
        let is_single = plan.paths.len() == 1;
        let connection = (!is_single).then(|| {
            let rtts = plan.paths.iter().map(|p| 2 * US * p.delay_us);
            let (scheduler, window) = (plan.tcp.multipath.scheduler, plan.tcp.receive_window);
            let mut connection = Connection::new(scheduler, MSS, plan.bytes, window, rtts);
            (0..).zip(&plan.paths).for_each(|(i, p)| connection.set_slow(i, p.window == 1));
            (connection, Reassembly::default())
        });
        let path = |(i, p): (usize, &PathPlan)| {
            let control = AlgorithmConfig::by_name("line-rate", Profile::Paper).expect("it is in the table");
            let mut sender = Sender::new(FlowId(i as u32), plan.bytes, Controlled::Own(control.build(&context())));
            (sender.cwnd, sender.rate) = (p.window * MSS, Rate::from_gbps(10));
            let receive_window = if is_single { plan.tcp.receive_window } else { u64::MAX };
            sender.tcp = Some(Box::new(TcpSender::new(
                &TcpConfig { receive_window, ..plan.tcp },
                MSS,
                Time::from_us(2 * p.delay_us),
            )));
            let wire = |faults, entity| Wire {
                faults,
                delay_ps: US * p.delay_us,
                dead: (US * p.dead_us.0, US.saturating_mul(p.dead_us.1)),
                in_burst: false,
                random: Stream::new(plan.seed, entity, Purpose::Test),
            };
            let (there, back) = (wire(p.there, 2 * i as u64), wire(p.back, 2 * i as u64 + 1));
            Path { sender, receiver: Receiver::default(), there, back, next_send_ps: 0 }
        };
        let paths = plan.paths.iter().enumerate().map(path).collect();
        let application = Application { held: BTreeMap::new(), read: 0, hash: XxHash64::with_seed(0) };
        let marks = Stream::new(plan.seed, 1_000, Purpose::Test);
        let mut transfer =
            Self { plan, now_ps: 0, paths, connection, application, wire: BTreeMap::new(), n_sent: 0, marks };
        transfer.share_out();
        transfer
    }

    /// Runs until the sender has received acknowledgments for all data.
    fn run(mut self) -> Result<(), Failure> {
        let bound = 20_000 + 2_000 * (self.plan.bytes / MSS);
        for _ in 0..bound {
            self.send_all();
            let is_done = |path: &Path| path.sender.is_done();
            if self.connection.as_ref().map_or_else(|| is_done(&self.paths[0]), |(c, _)| c.is_done()) {
                return self.compare();
            }
            self.now_ps = self.next_ps().ok_or(Failure::Stuck { read: self.application.read })?;
            self.step()?;
        }
        Err(Failure::NoEnd { steps: bound, read: self.application.read })
    }

    fn compare(&self) -> Result<(), Failure> {
        let sent = XxHash64::oneshot(0, &content(self.plan.seed, 0, self.plan.bytes));
        let read = self.application.hash.finish();
        if self.application.read == self.plan.bytes && sent == read {
            Ok(())
        } else {
            Err(Failure::Differs { sent, read })
        }
    }

    /// Returns the time of the next event, if any.
    fn next_ps(&self) -> Option<u64> {
        let of_path = |path: &Path| {
            let deadline = path.sender.tcp.as_ref().map_or(u64::MAX, |tcp| tcp.deadline_ps());
            let send = if path.sender.is_open() { path.next_send_ps } else { u64::MAX };
            deadline.min(send).min(path.receiver.due_ps())
        };
        let arrival = self.wire.first_key_value().map_or(u64::MAX, |(key, _)| key.0);
        let at = self.paths.iter().map(of_path).fold(arrival, u64::min);
        (at < u64::MAX).then(|| at.max(self.now_ps))
    }

    /// Processes the events that are due.
    fn step(&mut self) -> Result<(), Failure> {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now_ps) {
            let (path, packet) = entry.remove();
            match packet {
                Packet::Data { .. } => self.on_data(path, packet)?,
                Packet::Ack { .. } => self.on_ack(path, &packet),
            }
        }
        for i in 0..self.paths.len() {
            let path = &mut self.paths[i];
            if path.receiver.tcp().is_due(self.now_ps)
                && let Some((segment, _)) = path.receiver.tcp().take()
            {
                let ack = path.receiver.expected;
                self.send_ack(i, segment, ack);
            }
            self.on_timer(i);
        }
        Ok(())
    }

    fn on_timer(&mut self, i: usize) {
        let sender = &mut self.paths[i].sender;
        let snd_nxt = sender.snd_nxt;
        let Some(tcp) = sender.tcp.as_mut().filter(|tcp| tcp.deadline_ps() <= self.now_ps) else { return };
        if tcp.on_timer(snd_nxt, self.now_ps) == Expired::Timeout
            && let Some((connection, _)) = &mut self.connection
        {
            connection.on_timeout(i, tcp.undelivered());
        }
        tcp.settle(sender.cwnd);
        self.share_out();
    }

    /// Sends the segments that windows and gaps allow.
    fn send_all(&mut self) {
        for i in 0..self.paths.len() {
            let path = &mut self.paths[i];
            if path.next_send_ps <= self.now_ps && path.sender.is_open() {
                let segment = path.sender.next_segment(MSS, self.now_ps);
                path.next_send_ps = self.now_ps + GAP_PS;
                let (data_seq, len) = self.carry(i, segment);
                let bytes = content(self.plan.seed, data_seq, len);
                let (marked, reduced) = (self.marks.uniform() < 0.1, self.marks.uniform() < 0.1);
                let (seq, checksum) = (segment.seq, XxHash64::oneshot(0, &bytes));
                let packet = Packet::Data { seq, data_seq, marked, reduced, bytes, checksum };
                let fates = self.paths[i].there.fates(self.now_ps);
                self.put(i, fates, &packet);
                self.share_out();
            }
        }
    }

    /// Returns the first byte and the length of the data that a segment carries: for a subflow, a piece of the
    /// connection's data.
    fn carry(&mut self, i: usize, segment: Segment) -> (u64, u64) {
        let Some((connection, _)) = &mut self.connection else { return (segment.seq, segment.len) };
        let sender = &mut self.paths[i].sender;
        let piece = connection.piece_at(i, segment.seq).unwrap_or_else(|| {
            let piece = connection.take(i).expect("a subflow sends what it is offered");
            sender.offer(connection.offers(i));
            piece
        });
        (connection.data_at(piece), connection.piece_len(piece))
    }

    /// Updates for each subflow whether the connection has data for it.
    fn share_out(&mut self) {
        let Some((connection, _)) = &mut self.connection else { return };
        for (i, path) in self.paths.iter_mut().enumerate() {
            if let Some(tcp) = path.sender.tcp.as_ref().filter(|tcp| tcp.has_lost()) {
                connection.on_loss(i, tcp.undelivered());
            }
        }
        for (i, path) in self.paths.iter_mut().enumerate() {
            path.sender.offer(connection.offers(i));
        }
    }

    fn put(&mut self, i: usize, fates: Vec<(u64, bool)>, packet: &Packet) {
        for (at, is_damaged) in fates {
            let mut packet = packet.clone();
            if is_damaged {
                match &mut packet {
                    Packet::Data { bytes, .. } => {
                        let at = self.marks.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << self.marks.below(8);
                    }
                    Packet::Ack { ack, .. } => *ack ^= 1 << self.marks.below(20),
                }
            }
            self.wire.insert((at, self.n_sent), (i, packet));
            self.n_sent += 1;
        }
    }

    fn on_data(&mut self, i: usize, packet: Packet) -> Result<(), Failure> {
        let Packet::Data { seq, data_seq, marked, reduced, bytes, checksum } = packet else { return Ok(()) };
        if self.plan.checks && XxHash64::oneshot(0, &bytes) != checksum {
            return Ok(());
        }
        let len = bytes.len() as u64;
        if self.application.read <= data_seq {
            self.application.held.insert(data_seq, bytes);
        }
        // A segment of a subflow takes the sequence numbers of a full one.
        let taken = if self.connection.is_some() { MSS } else { len };
        let receiver = &mut self.paths[i].receiver;
        let prior = receiver.expected;
        let in_order = receiver.take(seq, taken);
        let now = receiver.expected;
        // Here a segment is known by its first byte.
        let segment = PacketIdx(seq as u32);
        let replies =
            receiver.tcp().on_data(&self.plan.tcp, Arrived { segment, marked, reduced, in_order }, self.now_ps);
        let expected = match &mut self.connection {
            Some((_, reassembly)) => reassembly.take(MSS, data_seq, len, self.now_ps),
            None => receiver.expected,
        };
        self.application.read_to(expected)?;
        if let Some(before) = replies.before {
            self.send_ack(i, before, prior);
        }
        if replies.now {
            self.send_ack(i, segment, now);
        }
        Ok(())
    }

    fn send_ack(&mut self, i: usize, segment: PacketIdx, ack: u64) {
        let sacks = self.paths[i].receiver.sacks(u64::from(segment.0));
        let data_ack = self.connection.as_ref().map_or(0, |(_, reassembly)| reassembly.expected);
        let packet = Packet::Ack { ack, data_ack, sacks, checksum: ack_checksum(ack, data_ack, &sacks) };
        let fates = self.paths[i].back.fates(self.now_ps);
        self.put(i, fates, &packet);
    }

    fn on_ack(&mut self, i: usize, packet: &Packet) {
        let Packet::Ack { ack, data_ack, sacks, checksum } = *packet else { return };
        if self.plan.checks && ack_checksum(ack, data_ack, &sacks) != checksum {
            return;
        }
        let sender = &mut self.paths[i].sender;
        let (snd_nxt, tcp) = (sender.snd_nxt, sender.tcp.as_mut().expect("senders here speak TCP"));
        let (acked, _) = tcp.on_ack(ack, &sacks, snd_nxt, self.now_ps);
        tcp.settle(sender.cwnd);
        sender.acknowledge(ack);
        if let Some((connection, _)) = &mut self.connection {
            connection.on_ack(i, ack);
            connection.on_data_ack(data_ack);
            if 0 < acked.delivered {
                connection.on_delivery(i);
            }
        }
        self.share_out();
    }
}

fn context() -> FlowContext {
    FlowContext {
        mtu: Bytes::new(MSS),
        wire_mtu: Bytes::new(MSS + 48),
        ..FlowContext::on(Rate::from_gbps(10), Time::from_us(20))
    }
}

const TCP: TcpConfig = TcpConfig { rto_min: Time::from_us(200), prr: false, ..TEST_CONFIG };
