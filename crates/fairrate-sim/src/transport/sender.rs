use fairrate_control::Ack;
use fairrate_units::{Bytes, Rate, Time};

use super::controlled::Controlled;
use super::list::Kind;
use super::ranges::Ranges;
use super::tcp::TcpSender;
use crate::config::{FlowSpec, Recovery};
use crate::fabric::tx_time_ps;
use crate::ids::{FlowId, HostId, PacketIdx};
use crate::packet::PacketPool;

/// What a flow has been through at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Payload bytes sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Losses that were found and repaired without one: recoveries of TCP, gaps reported to RDMA.
    pub recoveries: u32,
}

impl Tally {
    /// A flow that has sent nothing.
    pub const NEW: Self = Self { retransmitted: 0, timeouts: 0, recoveries: 0 };

    /// Adds what another sender of the same connection has been through.
    pub fn add(&mut self, other: &Self) {
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
    }
}

/// Whether an application writes more than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It does not.
    Done,
    /// It will, some time after all it has written is sent.
    Burst,
    /// It will, when its pause is over.
    Pause,
}

/// The sending end of one active flow. What every packet and every acknowledgment touch comes first, in two cache lines.
#[repr(C, align(64))]
pub struct Sender {
    /// The flow.
    pub flow: FlowId,
    /// The host it is at.
    pub host: HostId,
    /// The transport it goes by.
    pub transport: Kind,
    /// Position among its NIC's flows.
    pub nic_slot: u32,
    /// Wire bytes of the packet sent last; 0: none has been.
    last_wire: u16,
    /// Whether the switch behind the NIC holds this flow back.
    pub paused: bool,
    /// Bytes of its window that must be free for a full packet to go: those of the packet; 1, if it may exceed the window.
    pub room: u32,
    /// The most its rate may be: that of its NIC, or what the application offers.
    pub fastest: Rate,
    /// Payload bytes to send; `u64::MAX` while endless. Of a subflow: `u64::MAX` while its connection has data for it, else
    /// `snd_nxt`.
    pub bytes: u64,
    /// Next new byte.
    pub snd_nxt: u64,
    /// First unacknowledged byte.
    pub snd_una: u64,
    /// Congestion window in payload bytes.
    pub cwnd: u64,
    /// Pacing rate.
    pub rate: Rate,
    /// Start of the transmission of the packet sent last, in picoseconds.
    pub last_start_ps: u64,
    /// When the controller wants to be called; `u64::MAX`: never.
    pub timer_ps: u64,
    /// When the retransmission timer expires; `u64::MAX`: not running.
    pub rto_ps: u64,
    /// Highest byte ever sent: what lies below `snd_nxt` again after a loss is a retransmission.
    snd_max: u64,
    /// How long the packet sent last lasts at a rate, in picoseconds, and that rate; zero: not computed yet.
    gap: (Rate, u64),
    /// Reliability by TCP; otherwise by the RDMA transport's rules.
    pub tcp: Option<Box<TcpSender>>,
    /// What its application still writes.
    pub writing: Writing,
    /// Selective repeat: next byte to look for gaps at; `None`: not recovering.
    recovery: Option<Recovering>,
    /// Selective repeat: acknowledged beyond `snd_una`.
    sacked: Ranges,
    /// What it has been through.
    pub tally: Tally,
    /// The algorithm.
    pub controlled: Controlled,
}

#[derive(Clone, Copy, Debug)]
struct Recovering {
    next: u64,
    until: u64,
    /// After a timeout everything unacknowledged below this is taken for lost.
    lost_below: u64,
}

/// The next piece of payload to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte.
    pub seq: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(flow: FlowId, bytes: u64, controlled: Controlled) -> Self {
        Self {
            flow,
            host: HostId(0),
            transport: Kind::Rdma,
            nic_slot: 0,
            room: 1,
            fastest: Rate::MAX,
            bytes,
            snd_nxt: 0,
            snd_una: 0,
            cwnd: 0,
            rate: Rate::ZERO,
            last_wire: 0,
            gap: (Rate::ZERO, 0),
            last_start_ps: 0,
            timer_ps: u64::MAX,
            rto_ps: u64::MAX,
            tally: Tally::NEW,
            paused: false,
            writing: Writing::Done,
            snd_max: 0,
            sacked: Ranges::default(),
            recovery: None,
            tcp: None,
            controlled,
        }
    }

    /// The sender of an application's flow, which may write now and then.
    pub fn of_application(spec: &FlowSpec, flow: FlowId, controlled: Controlled) -> Self {
        let burst = spec.burst.filter(|_| spec.bytes == Bytes::MAX);
        let bytes = burst.map_or(spec.bytes, |burst| burst.bytes).as_u64();
        let writing = if burst.is_some() { Writing::Burst } else { Writing::Done };
        Self { writing, ..Self::new(flow, bytes, controlled) }
    }

    /// What has been sent so far is all that will be. Whether that has all been acknowledged.
    pub fn stop(&mut self) -> bool {
        self.bytes = self.snd_nxt.max(self.snd_una);
        self.writing = Writing::Done;
        self.is_done()
    }

    /// Whether its receiver is to learn that it has reduced its window, once.
    #[inline]
    pub fn take_reduced(&mut self) -> bool {
        self.tcp.as_mut().is_some_and(|tcp| std::mem::take(&mut tcp.tell_reduced))
    }

    /// The controller's decision is in force: what a recovery may send until the next acknowledgment.
    #[inline]
    pub fn settle(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.settle(self.cwnd);
        }
    }

    /// Of a subflow: whether its connection has data that it has not sent.
    #[inline]
    pub fn offer(&mut self, is_more: bool) {
        self.bytes = if is_more { u64::MAX } else { self.snd_nxt };
    }

    /// Bytes in flight: unacknowledged; for TCP, without those delivered out of order or lost.
    #[inline]
    pub fn inflight(&self) -> u64 {
        self.tcp.as_ref().map_or(self.snd_nxt - self.snd_una, |tcp| tcp.pipe())
    }

    /// Whether something that was ever sent has not been acknowledged. After going back nothing of it may be in flight, and
    /// yet its acknowledgment is still waited for.
    pub fn has_unacknowledged(&self) -> bool {
        self.snd_una < self.snd_max
    }

    /// A packet of `wire` bytes begins to be sent.
    #[inline]
    pub fn on_sent(&mut self, wire: u16, now_ps: u64) {
        if wire != self.last_wire {
            self.gap.0 = Rate::ZERO;
        }
        (self.last_wire, self.last_start_ps) = (wire, now_ps);
    }

    /// Whether anything has been sent.
    #[inline]
    pub fn has_sent(&self) -> bool {
        0 < self.last_wire
    }

    /// How long the packet sent last lasts at the pacing rate, which is not zero, in picoseconds.
    #[inline]
    pub fn gap_ps(&mut self, whole_ns: bool) -> u64 {
        // Most packets are as long as the one before, and many are sent at its rate: a comparison in place of a division.
        if self.gap.0 != self.rate {
            self.gap = (self.rate, tx_time_ps(self.rate, u64::from(self.last_wire), whole_ns));
        }
        self.gap.1
    }

    /// Whether there is something the window lets through, and whether there is something to send at all: [`Sender::is_open`]
    /// and [`Sender::has_data`].
    #[inline]
    pub fn outlook(&self) -> (bool, bool) {
        if self.tcp.is_some() || self.recovery.is_some() {
            return (self.is_open(), self.has_data());
        }
        let has_new = self.snd_nxt < self.bytes;
        (self.may_send() && has_new && self.has_room(), has_new)
    }

    /// Whether there is something to send, now or when the window opens.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.snd_nxt < self.bytes || self.recovery.is_some() || self.tcp.as_ref().is_some_and(|tcp| tcp.has_lost())
    }

    /// Whether there is something the window lets through; at least one packet always may be in flight.
    pub fn is_open(&self) -> bool {
        if let Some(tcp) = &self.tcp {
            return self.may_send() && tcp.is_open(self.cwnd, self.snd_nxt - self.snd_una, self.snd_nxt < self.bytes);
        }
        if self.recovery.is_some() && self.lost_gap().is_some() {
            return self.may_send();
        }
        self.may_send() && self.snd_nxt < self.bytes && self.has_room()
    }

    /// Whether the window lets the next new packet through.
    #[inline]
    fn has_room(&self) -> bool {
        let inflight = self.snd_nxt - self.snd_una;
        let room = u64::from(self.room).min(self.bytes.saturating_sub(self.snd_nxt));
        inflight + room <= self.cwnd || inflight == 0
    }

    /// Whether it has a rate and is not paused.
    #[inline]
    fn may_send(&self) -> bool {
        Rate::ZERO < self.rate && !self.paused
    }

    /// Whether everything has been acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.bytes <= self.snd_una && self.writing == Writing::Done
    }

    /// Takes the next segment of up to `mtu` bytes; [`Sender::is_open`] must hold.
    #[inline]
    pub fn next_segment(&mut self, mtu: u64, now_ps: u64) -> Segment {
        if let Some(tcp) = &mut self.tcp
            && let Some((seq, len)) = tcp.resend(now_ps, self.snd_nxt < self.bytes)
        {
            self.tally.retransmitted += len;
            return Segment { seq, len };
        }
        if self.recovery.is_some()
            && let Some((start, end)) = self.lost_gap()
        {
            let len = mtu.min(end - start);
            if let Some(r) = &mut self.recovery {
                r.next = start + len;
            }
            self.tally.retransmitted += len;
            return Segment { seq: start, len };
        }
        let (seq, len) = (self.snd_nxt, mtu.min(self.bytes - self.snd_nxt));
        self.snd_nxt += len;
        if let Some(tcp) = &mut self.tcp {
            tcp.send_new(len, self.snd_nxt == self.bytes, now_ps);
        }
        if seq < self.snd_max {
            self.tally.retransmitted += len.min(self.snd_max - seq);
        }
        self.snd_max = self.snd_max.max(self.snd_nxt);
        Segment { seq, len }
    }

    /// Takes a cumulative acknowledgment; returns the bytes it newly acknowledges.
    #[inline]
    pub fn acknowledge(&mut self, ack_seq: u64) -> u64 {
        if ack_seq <= self.snd_una {
            return 0;
        }
        let newly = ack_seq - self.snd_una;
        self.snd_una = ack_seq;
        // After going back, acknowledgments of what was sent before may pass the new `snd_nxt`.
        self.snd_nxt = self.snd_nxt.max(ack_seq);
        if !self.sacked.is_empty() {
            self.sacked.advance(ack_seq);
        }
        if self.recovery.is_some_and(|r| r.until <= ack_seq) {
            self.recovery = None;
        }
        newly
    }

    /// Reacts to a reported gap; `[seq, seq + len)` has arrived beyond it.
    pub fn on_gap(&mut self, recovery: Recovery, seq: u64, len: u64) {
        match recovery {
            Recovery::GoBackN => self.snd_nxt = self.snd_una,
            Recovery::SelectiveRepeat => {
                self.sacked.insert(seq, seq + len);
                if self.recovery.is_none() {
                    let (next, until) = (self.snd_una, self.snd_nxt);
                    self.recovery = Some(Recovering { next, until, lost_below: 0 });
                }
            }
        }
    }

    /// Reacts to a retransmission timeout.
    pub fn on_timeout(&mut self, recovery: Recovery) {
        match recovery {
            Recovery::GoBackN => self.snd_nxt = self.snd_una,
            Recovery::SelectiveRepeat => {
                let (next, until) = (self.snd_una, self.snd_nxt);
                self.recovery = Some(Recovering { next, until, lost_below: until });
            }
        }
    }

    /// Sends `[from, to)` again, which it has sent before, and nothing else of that kind; of no bytes: nothing.
    pub fn send_again(&mut self, from: u64, to: u64) {
        self.recovery = (from < to).then_some(Recovering { next: from, until: to, lost_below: to });
    }

    /// The next byte to send again, if any.
    #[inline]
    pub fn next_again(&self) -> Option<u64> {
        self.lost_gap().map(|(from, _)| from)
    }

    /// The next range to send again, if any.
    fn lost_gap(&self) -> Option<(u64, u64)> {
        let r = self.recovery?;
        let from = r.next.max(self.snd_una);
        if let Some(gap) = self.sacked.gap_after(from) {
            return Some(gap);
        }
        let from = from.max(self.sacked.end());
        (from < r.lost_below).then_some((from, r.lost_below))
    }
}

/// What the acknowledgment in `packet` tells a controller; delivery rates are not known.
#[inline]
pub fn ack_of<'a>(
    pool: &'a PacketPool,
    packet: PacketIdx,
    sender: &Sender,
    newly_acked: u64,
    now: Time,
    header_words: usize,
) -> Ack<'a> {
    let p = pool.get(packet);
    Ack {
        now,
        ack_seq: p.seq,
        snd_nxt: sender.snd_nxt,
        newly_acked,
        delivered: newly_acked,
        lost: 0,
        rtt: Time::from_ps(now.as_ps() - p.sent_ps),
        cwnd_at_send: if p.cwnd_at_send == u32::MAX { u64::MAX } else { u64::from(p.cwnd_at_send) },
        in_flight: sender.inflight(),
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        app_limited: false,
        ecn_marked: p.is_marked(),
        int: pool.int(packet),
        header: &pool.header(packet)[..header_words],
    }
}
