use fairrate_control::Ack;
use fairrate_units::{Bytes, Rate, Time};

use super::controlled::Controlled;
use super::list::Kind;
use super::ranges::Ranges;
use super::tcp::TcpSender;
use crate::config::{ClockRule, FlowSpec, Recovery};
use crate::fabric::tx_time_ps;
use crate::ids::{FlowId, HostId, PacketIdx};
use crate::packet::PacketPool;

/// Counts of losses and repairs at a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Payload bytes sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Losses that were found and repaired without a timeout: recoveries of TCP, gaps reported to RDMA.
    pub recoveries: u32,
}

impl Tally {
    /// The counts of a flow that has sent nothing.
    pub const NEW: Self = Self { retransmitted: 0, timeouts: 0, recoveries: 0 };

    /// Adds the counts of another sender of the same connection.
    pub fn add(&mut self, other: &Self) {
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
    }
}

/// The future writes of a flow's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// No more data.
    Done,
    /// More data, some time after all data written so far is sent.
    Burst,
    /// More data, when the present pause is over.
    Pause,
}

/// The sending end of one active flow. The fields that every packet and every acknowledgment use are first, in two
/// cache lines.
#[repr(C, align(64))]
pub struct Sender {
    /// The flow.
    pub flow: FlowId,
    /// The sending host.
    pub host: HostId,
    /// The transport of the flow.
    pub transport: Kind,
    /// Number of the flow's stack.
    pub stack: u8,
    /// Bytes of a data packet on the wire besides payload.
    pub header: u16,
    /// Position among its NIC's flows.
    pub nic_slot: u32,
    /// Wire bytes of the packet sent last; 0 if none has been sent.
    last_wire: u16,
    /// `true` while the switch behind the NIC holds this flow back.
    pub paused: bool,
    /// Bytes of the window that must be free for a full packet: the packet's own bytes, or 1 if it may exceed the
    /// window.
    pub room: u32,
    /// The largest rate it may have: that of its NIC, or what the application offers.
    pub fastest: Rate,
    /// Payload bytes to send; `u64::MAX` while endless. For a subflow: `u64::MAX` while its connection has data for it,
    /// else `snd_nxt`.
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
    /// Time at which the controller's timer expires; `u64::MAX` if it has none.
    pub timer_ps: u64,
    /// Time at which the retransmission timer expires; `u64::MAX` if it is not running.
    pub rto_ps: u64,
    /// Highest byte ever sent: bytes below it that are sent again after `snd_nxt` went back are retransmissions.
    snd_max: u64,
    /// A rate, and the duration of the packet sent last at that rate, in picoseconds; a rate of zero means not computed
    /// yet.
    gap: (Rate, u64),
    /// State of TCP's reliability; `None` if the RDMA transport's rules apply.
    pub tcp: Option<Box<TcpSender>>,
    /// The future writes of its application.
    pub writing: Writing,
    /// Selective repeat: next byte to look for gaps at; `None`: not recovering.
    recovery: Option<Recovering>,
    /// Selective repeat: bytes acknowledged beyond `snd_una`.
    sacked: Ranges,
    /// Bits of credit of its bucket besides those that its NIC's entry has as a time in the past.
    pub more_bits: u64,
    /// Its counts of losses and repairs.
    pub tally: Tally,
    /// The congestion controller.
    pub controlled: Controlled,
}

#[derive(Clone, Copy, Debug)]
struct Recovering {
    next: u64,
    until: u64,
    /// End of the bytes considered lost if unacknowledged, after a timeout.
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
    /// Returns a sender that has sent nothing.
    pub fn new(flow: FlowId, bytes: u64, controlled: Controlled) -> Self {
        Self {
            flow,
            host: HostId(0),
            transport: Kind::Rdma,
            stack: 0,
            header: 0,
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
            more_bits: 0,
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

    /// Returns the sender of an application's flow, which may write in bursts.
    pub fn of_application(spec: &FlowSpec, flow: FlowId, controlled: Controlled) -> Self {
        let burst = spec.burst.filter(|_| spec.bytes == Bytes::MAX);
        let bytes = burst.map_or(spec.bytes, |burst| burst.bytes).as_u64();
        let writing = if burst.is_some() { Writing::Burst } else { Writing::Done };
        Self { writing, ..Self::new(flow, bytes, controlled) }
    }

    /// Stops new data: what has been sent so far, before it went back too, is all it will send. Returns `true` if all
    /// of it has been acknowledged.
    pub fn stop(&mut self) -> bool {
        self.bytes = self.snd_max.max(self.snd_una);
        self.writing = Writing::Done;
        self.is_done()
    }

    /// Returns `true`, once, if its receiver must be informed that it has reduced its window.
    #[inline]
    pub fn take_reduced(&mut self) -> bool {
        self.tcp.as_mut().is_some_and(|tcp| std::mem::take(&mut tcp.tell_reduced))
    }

    /// Applies the controller's decision to a recovery: sets how much it may send until the next acknowledgment.
    #[inline]
    pub fn settle(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.settle(self.cwnd);
        }
    }

    /// Lets a subflow send more: its connection has data for it.
    #[inline]
    pub fn offer_more(&mut self) {
        self.bytes = u64::MAX;
    }

    /// Updates a subflow: `is_more` is `true` if its connection has data for it to send.
    #[inline]
    pub fn offer(&mut self, is_more: bool) {
        self.bytes = if is_more { u64::MAX } else { self.snd_nxt };
    }

    /// Returns the bytes in flight: unacknowledged ones; for TCP, without those delivered out of order or lost.
    #[inline]
    pub fn inflight(&self) -> u64 {
        self.tcp.as_ref().map_or(self.snd_nxt - self.snd_una, |tcp| tcp.pipe())
    }

    /// Returns `true` if data that was ever sent has not been acknowledged. After going back, none of it may be in
    /// flight, and the sender still waits for its acknowledgment.
    pub fn has_unacknowledged(&self) -> bool {
        self.snd_una < self.snd_max
    }

    /// Records that a packet of `wire` bytes starts to be sent at `now_ps`.
    #[inline]
    pub fn on_sent(&mut self, wire: u16, now_ps: u64) {
        if wire != self.last_wire {
            self.gap.0 = Rate::ZERO;
        }
        (self.last_wire, self.last_start_ps) = (wire, now_ps);
    }

    /// Returns `true` if any packet has been sent.
    #[inline]
    pub fn has_sent(&self) -> bool {
        0 < self.last_wire
    }

    /// Returns the time that a packet of `wire` bytes takes of the flow's turns: none if the bucket's further credit
    /// pays for it, else `gap_ps`.
    #[inline]
    pub fn gap_beyond_credit(&mut self, gap_ps: u64, wire: u16) -> u64 {
        match self.more_bits.checked_sub(u64::from(wire) * 8) {
            Some(left) if 0 < self.more_bits => {
                self.more_bits = left;
                0
            }
            _ => gap_ps,
        }
    }

    /// Returns the duration of the packet sent last at the pacing rate, which is not zero, in picoseconds.
    #[inline]
    pub fn gap_ps(&mut self, clock: ClockRule) -> u64 {
        // Most packets are as long as the one before, and many are sent at its rate: a comparison replaces a division.
        if self.gap.0 != self.rate {
            self.gap = (self.rate, tx_time_ps(self.rate, u64::from(self.last_wire), clock));
        }
        self.gap.1
    }

    /// Returns two flags: the window lets some data through, and there is data to send at all. They are
    /// [`Sender::is_open`] and [`Sender::has_data`].
    #[inline]
    pub fn outlook(&self) -> (bool, bool) {
        if self.tcp.is_some() || self.recovery.is_some() {
            return (self.is_open(), self.has_data());
        }
        let has_new = self.snd_nxt < self.bytes;
        if self.transport == Kind::Uet {
            // It has looked at its window.
            return (self.may_send() && has_new, has_new);
        }
        (self.may_send() && has_new && self.has_room(), has_new)
    }

    /// Returns `true` if there is data to send, now or when the window opens.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.snd_nxt < self.bytes || self.recovery.is_some() || self.tcp.as_ref().is_some_and(|tcp| tcp.has_lost())
    }

    /// Returns `true` if there is data that the window lets through; one packet may always be in flight.
    pub fn is_open(&self) -> bool {
        if let Some(tcp) = &self.tcp {
            return self.may_send() && tcp.is_open(self.cwnd, self.snd_nxt - self.snd_una, self.snd_nxt < self.bytes);
        }
        if self.recovery.is_some() && self.lost_gap().is_some() {
            return self.may_send();
        }
        self.may_send() && self.snd_nxt < self.bytes && self.has_room()
    }

    /// Returns `true` if the window lets the next new packet through.
    #[inline]
    fn has_room(&self) -> bool {
        let inflight = self.snd_nxt - self.snd_una;
        let room = u64::from(self.room).min(self.bytes.saturating_sub(self.snd_nxt));
        inflight + room <= self.cwnd || inflight == 0
    }

    /// Returns `true` if its rate is not zero and it is not paused.
    #[inline]
    fn may_send(&self) -> bool {
        Rate::ZERO < self.rate && !self.paused
    }

    /// Returns `true` if everything has been acknowledged and the application writes nothing more.
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
        // After going back, acknowledgments of data sent before may pass the new `snd_nxt`.
        self.snd_nxt = self.snd_nxt.max(ack_seq);
        if !self.sacked.is_empty() {
            self.sacked.advance(ack_seq);
        }
        if self.recovery.is_some_and(|r| r.until <= ack_seq) {
            self.recovery = None;
        }
        newly
    }

    /// Reacts to a reported gap, beyond which `[seq, seq + len)` has arrived.
    pub fn on_gap(&mut self, recovery: Recovery, seq: u64, len: u64) {
        match recovery {
            Recovery::GoBackN => {
                self.snd_nxt = self.snd_una;
                self.tally.recoveries += 1;
            }
            Recovery::SelectiveRepeat => {
                self.sacked.insert(seq, seq + len);
                // Each packet beyond a gap reports it; one recovery repairs all gaps of what was in flight.
                if self.recovery.is_none() {
                    let (next, until) = (self.snd_una, self.snd_nxt);
                    self.recovery = Some(Recovering { next, until, lost_below: 0 });
                    self.tally.recoveries += 1;
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

    /// Sends `[from, to)`, which was sent before, again, in place of any other recovery; an empty range ends the
    /// recovery.
    pub fn send_again(&mut self, from: u64, to: u64) {
        self.recovery = (from < to).then_some(Recovering { next: from, until: to, lost_below: to });
    }

    /// Returns the next byte to send again, if any.
    #[inline]
    pub fn next_again(&self) -> Option<u64> {
        self.lost_gap().map(|(from, _)| from)
    }

    /// Returns the next range to send again, if any.
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

/// Returns the contents of the acknowledgment in `packet` for a controller; delivery rates are left unknown.
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
        penalty: 0,
        app_limited: false,
        ecn_marked: p.is_marked(),
        int: pool.int(packet),
        path: p.path,
        header: &pool.header(packet)[..header_words],
    }
}
