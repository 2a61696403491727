//! `xcp`: the eXplicit Control Protocol. D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay
//! Product Networks", SIGCOMM 2002, section 3 (windows, in bytes), and as in ns-2.34 (rates; `xcp/xcpq.cc`).
//!
//! | paper              | here                | unit               |
//! |--------------------|---------------------|--------------------|
//! | d                  | `rtt_s`             | s                  |
//! | S = C - y          | `capacity` - y      | bytes/s            |
//! | Q                  | `persistent_queue`  | bytes              |
//! | φ                  | `aggregate_feedback` | bytes; ns-2: bytes/s |
//! | h                  | `shuffled`          | bytes; ns-2: bytes/s |
//! | ξp, ξn; Cp, Cn     | `positive`, `negative` | per packet      |
//! | rtt, cwnd, H_feedback | header words     | s, bytes, bytes (ns-2: bytes/s) |
//! | α, β, γ            | `alpha`, `beta`, `gamma` | 1             |
//!
//! Every control interval a port computes the change of the total traffic (efficiency) and distributes it over
//! packets: the same increase of rate for every flow, and a decrease in proportion to its rate (fairness). A packet
//! returns to its sender the smallest change that the ports of its path allow.
//!
//! Readings. cwnd in headers is in bytes on the wire. All traffic counts for y, packets that state an RTT for the rest.
//! d is the mean RTT over flows: every packet counts by its x = rtt·s/cwnd (ns-2: rtt/cwnd, as all its packets are
//! equal). In the paper's form a long interval (ns-2's timers) distributes the amount of an interval of length d: Y is
//! y·d. Q is the smallest queue of the interval, or of ns-2's own interval Tq with its timers.
//! `timers = "ns2"` are the constants of ns-2.34: Te is 50 ms at first and after an interval without RTTs, then
//! max(d, 1 ms), and Tq max(2 ms, (d - q/C)/2). They are made for wide areas: at 12 us the loop is some 80 times slower
//! than intended. `ideal` has none of these floors, and d starts at the base RTT. The first intervals end at random
//! times. Intervals without packets are computed when the next packet arrives.
//! A host's link is a link of the path: bytes that windows would have put into its queue count as its input and queue,
//! by a header word (`LinkQueue`).
//! Sender: window at line rate, without pacing (ns-2); two packets at first (ns-2), no feedback before the first RTT
//! (ns-2); smoothed RTT with gain 1/8; a gap halves once a window, a timeout leaves one packet, as in TCP.
//! Each packet has to be acknowledged by itself: its feedback is a share of what the sender gets, and no later header
//! repeats it.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::draws::Draws;
use crate::link_queue::LinkQueue;
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds, WireNeeds};
use crate::port::{Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortView};

choice! {
    /// The quantity that ports distribute.
    pub enum XcpForm {
        /// Bytes of window.
        Paper = "paper",
        /// Rates, limited to the available amount.
        Ns2 = "ns2",
    }
}

choice! {
    /// The length of control intervals.
    pub enum XcpTimers {
        /// A mean RTT.
        Ideal = "ideal",
        /// The length of ns-2, at least a millisecond.
        Ns2 = "ns2",
    }
}

algorithm_config! {
    /// Parameters of XCP.
    pub struct XcpConfig {
        /// Feedback in bytes of window (the paper), or in rates that are used up as they are given (ns-2).
        form: XcpForm = XcpForm::Paper;
        /// Control intervals of a mean RTT (the paper), or with ns-2's floors of 1 and 2 ms, 50 ms at first.
        timers: XcpTimers = XcpTimers::Ideal;
        /// Part of the spare capacity given out in an interval (XCP section 3.5, ns-2: 0.4).
        alpha: f64 = 0.4, in 0.0..=10.0;
        /// Part of the persistent queue drained in an interval (XCP section 3.5, ns-2: 0.226).
        beta: f64 = 0.226, in 0.0..=10.0;
        /// Part of the traffic that is shuffled between flows in an interval (XCP section 3.5, ns-2: 0.1).
        gamma: f64 = 0.1, in 0.0..=1.0;
        /// First window, in packets (ns-2: 2).
        initial_window: f64 = 2.0, in 1.0..=1_000_000.0;
    }
}

/// Header: the sender's smoothed RTT in seconds, 0 if it has none yet.
const RTT: usize = 0;
/// Header: its window in bytes on the wire.
const CWND: usize = 1;
/// Header: the change that it may make, which ports lower.
const FEEDBACK: usize = 2;
/// Header: growth, since the flow's last packet, of the bytes that the window has admitted and the host not sent.
const GROWN: usize = 3;

/// Constants of ns-2: Te at first and when idle, smallest Te, smallest Tq, longest RTT that counts.
const NS2_FIRST: Time = Time::from_ms(50);
const NS2_TE_MIN: Time = Time::from_ms(1);
const NS2_TQ_MIN: Time = Time::from_ms(2);
const RTT_MAX_S: f64 = 1.0;
/// Relative width of the uniform distribution of first intervals, 0.2·√12. It has the deviation of ns-2's normal
/// distribution, 0.2 of the interval.
const NS2_SPREAD: f64 = 0.692_820_323_027_550_9;
/// Largest window in packets; only a bound, far above the capacity of any path.
const WINDOW_MAX: f64 = 1e9;

impl AlgorithmSpec for XcpConfig {
    type Controller = Xcp;
    type Port = XcpPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ports: PortScope::All, ..NetworkNeeds::NOTHING },
            wire: WireNeeds {
                header: HeaderWords { fixed: 4, per_hop: 0 },
                // The header of draft-falk-xcp-spec: RTT, throughput, change, echoed change, and its format.
                data_overhead: Bytes::new(20),
                ack_overhead: Bytes::new(20),
                ..WireNeeds::NOTHING
            },
            // A packet's feedback is a share of what its sender gets.
            feedback: FeedbackNeeds { each_header: true, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Xcp {
        Xcp {
            line_rate: flow.line_rate,
            form: self.form,
            mtu: flow.mtu.as_f64().max(1.0),
            wire_mtu: flow.wire_mtu.as_f64().max(1.0),
            size: flow.size.as_f64(),
            cwnd: self.initial_window,
            srtt_s: 0.0,
            snd_una: 0,
            snd_nxt: 0,
            cut_until: 0,
            held: 0.0,
            grown: 0.0,
        }
    }
    fn build_port(&self, port: &PortContext) -> Option<XcpPort> {
        Some(XcpPort::new(self.clone(), port))
    }
}

/// Sums over the packets of a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Bytes of all packets.
    input: f64,
    /// Sums over packets with an RTT: bytes, x = rtt·s/cwnd, and x times the RTT.
    bytes: f64,
    x: f64,
    rtt_x: f64,
}

/// The two controllers of one egress port.
#[derive(Clone, Debug)]
pub struct XcpPort {
    config: XcpConfig,
    /// C in bytes per second.
    capacity: f64,
    of_host: bool,
    /// Mean RTT of the traffic, at least the time of a packet.
    rtt_s: f64,
    least_rtt_s: f64,
    /// The control interval and its end.
    te: Time,
    te_due: Time,
    /// The queue's interval and its end, with ns-2's timers; otherwise the end is `Time::MAX`.
    tq: Time,
    tq_due: Time,
    sums: Sums,
    queue: LinkQueue,
    /// Smallest queue of the current interval, and of the last interval.
    least_queue: f64,
    persistent_queue: f64,
    /// ξp and ξn, or Cp and Cn.
    positive: f64,
    negative: f64,
    /// Feedback that is still to be distributed (ns-2).
    residue_positive: f64,
    residue_negative: f64,
}

impl XcpPort {
    fn new(config: XcpConfig, port: &PortContext) -> Self {
        let base = port.base_rtt.max(Time::from_ps(1));
        let packet = f64::from(port.wire_mtu.max(1));
        let capacity = port.rate.as_bytes_per_sec();
        let phase = Draws::new(port.seed, port.port).uniform();
        let (te, te_due, tq_due) = match config.timers {
            XcpTimers::Ideal => (base, base - Time::from_secs_f64(phase * base.as_secs_f64()), Time::MAX),
            XcpTimers::Ns2 => {
                let first = Time::from_secs_f64(NS2_FIRST.as_secs_f64() * (1.0 + NS2_SPREAD * (phase - 0.5)));
                (NS2_FIRST, first, first)
            }
        };
        Self {
            capacity,
            of_host: port.of_host,
            rtt_s: te.as_secs_f64(),
            least_rtt_s: packet / capacity,
            te,
            te_due,
            tq: te,
            tq_due,
            sums: Sums::default(),
            queue: LinkQueue::new(port.rate),
            least_queue: 0.0,
            persistent_queue: 0.0,
            positive: 0.0,
            negative: 0.0,
            residue_positive: 0.0,
            residue_negative: 0.0,
            config,
        }
    }

    /// Updates d = Σ rtt·x / Σ x, x = rtt·s/cwnd. Without packets d does not change, or returns to 50 ms in ns-2.
    fn average_rtt(&mut self) {
        if 0.0 < self.sums.x {
            self.rtt_s = (self.sums.rtt_x / self.sums.x).max(self.least_rtt_s);
        } else if self.config.timers == XcpTimers::Ns2 {
            self.rtt_s = NS2_FIRST.as_secs_f64();
        }
    }

    /// Returns φ = α·(C - y) - β·Q/d, a rate (ns-2); multiplied by d it is the paper's α·d·S - β·Q in bytes (eq. 1).
    fn aggregate_feedback(&self, y: f64) -> f64 {
        self.config.alpha * (self.capacity - y) - self.config.beta * self.persistent_queue / self.rtt_s
    }

    /// Returns h = max(0, γ·y - |φ|) (section 3.5.2).
    fn shuffled(&self, y: f64, phi: f64) -> f64 {
        (self.config.gamma * y - phi.abs()).max(0.0)
    }

    /// Ends a control interval: computes the feedback per packet of the next one. Without traffic it is zero.
    fn end_interval(&mut self) {
        let y = (self.sums.input / self.te.as_secs_f64()).max(0.0);
        self.average_rtt();
        if self.config.timers == XcpTimers::Ideal {
            self.end_queue_interval(self.te_due);
        }
        let phi = if 0.0 < self.sums.input { self.aggregate_feedback(y) } else { 0.0 };
        let h = self.shuffled(y, phi);
        (self.residue_positive, self.residue_negative) = (h + phi.max(0.0), h + (-phi).max(0.0));
        let (n, d) = (self.sums, self.rtt_s);
        let part = |whole: f64, of: f64| if 0.0 < of { whole / of } else { 0.0 };
        (self.positive, self.negative) = match self.config.form {
            // Eqs. 5 and 7: ξp = (h + max(φ, 0))/(d·Σ rtt·s/cwnd), ξn = (h + max(-φ, 0))/(d·Σ s), h and φ in bytes.
            XcpForm::Paper => (part(self.residue_positive, n.x), part(self.residue_negative, n.bytes)),
            // Cp = (h + max(φ, 0))/Σ x, Cn = (h + max(-φ, 0))/input.
            XcpForm::Ns2 => (part(self.residue_positive, n.x), part(self.residue_negative, n.input)),
        };
        self.sums = Sums::default();
        self.te = match self.config.timers {
            XcpTimers::Ideal => Time::from_secs_f64(d),
            XcpTimers::Ns2 => Time::from_secs_f64(d).max(NS2_TE_MIN),
        };
        self.te_due += self.te;
    }

    fn end_queue_interval(&mut self, now: Time) {
        self.persistent_queue = self.least_queue;
        self.least_queue = self.queue.at(now);
    }

    /// Ends a queue interval; the next one is Tq = max(2 ms, (d - q/C)/2) (ns-2).
    fn end_tq(&mut self) {
        self.end_queue_interval(self.tq_due);
        let left_s = self.rtt_s - self.least_queue / self.capacity;
        self.tq = Time::from_secs_f64(left_s / 2.0).max(NS2_TQ_MIN);
        self.tq_due += self.tq;
    }

    /// Performs the ends of intervals that are due until `now`.
    fn catch_up(&mut self, now: Time) {
        while self.te_due.min(self.tq_due) <= now {
            let at = self.te_due.min(self.tq_due);
            if self.is_at_rest(at) {
                // All further intervals would be the same.
                skip(&mut self.te_due, self.te, now);
                skip(&mut self.tq_due, self.tq, now);
            } else if self.tq_due <= self.te_due {
                self.end_tq();
            } else {
                self.end_interval();
            }
        }
    }

    /// Returns `true` if further intervals without packets change nothing: there has been such an interval, and the
    /// queue has not changed.
    fn is_at_rest(&self, at: Time) -> bool {
        let queue = self.queue.at(at);
        let idle = self.sums.input == 0.0 && self.positive == 0.0 && self.negative == 0.0;
        let no_residue = self.residue_positive == 0.0 && self.residue_negative == 0.0;
        let left_s = self.rtt_s - queue / self.capacity;
        let queue_done = self.persistent_queue == queue && self.least_queue == queue && self.queue.is_still(at);
        let timers_done = self.config.timers == XcpTimers::Ideal
            || (self.te == NS2_FIRST && self.tq == Time::from_secs_f64(left_s / 2.0).max(NS2_TQ_MIN));
        idle && no_residue && queue_done && timers_done
    }

    /// Counts `packet` and the `grown` bytes more that its flow would have put into the queue.
    fn count(&mut self, packet: &PortPacket<'_>, grown: f64) {
        let size = f64::from(packet.wire);
        self.sums.input += size + grown;
        if let Some((rtt_s, cwnd)) = stated(packet.header) {
            let x = rtt_s * size / cwnd;
            self.sums.bytes += size;
            self.sums.x += x;
            self.sums.rtt_x += rtt_s.min(RTT_MAX_S) * x;
        }
    }

    /// Lowers the feedback in the packet's header to the feedback of this port.
    fn give(&mut self, packet: &mut PortPacket<'_>) {
        let (size, stated) = (f64::from(packet.wire), stated(packet.header));
        let Some(asked) = packet.header.get_mut(FEEDBACK) else { return };
        let own = match (stated, self.config.form) {
            (None, _) => 0.0,
            // H = ξp·rtt²·s/cwnd - ξn·rtt·s (eqs. 4, 6, 8). h and φ of the interval were rates: d cancels.
            (Some((rtt_s, cwnd)), XcpForm::Paper) => {
                self.positive * rtt_s * rtt_s * size / cwnd - self.negative * rtt_s * size
            }
            (Some((rtt_s, cwnd)), XcpForm::Ns2) => self.take_from_residues(rtt_s * size / cwnd, size, *asked),
        };
        *asked = asked.min(own);
    }

    /// Returns ns-2's feedback Cp·x - Cn·s for a packet with x = rtt·s/cwnd, limited to the residues. An amount that
    /// another port denies stays in the residues.
    fn take_from_residues(&mut self, x: f64, size: f64, asked: f64) -> f64 {
        let mut positive = (self.positive * x).min(self.residue_positive);
        let mut negative = (self.negative * size).min(self.residue_negative);
        let own = positive - negative;
        if asked < own {
            negative = (negative + (own - asked)).min(self.residue_negative);
            positive = asked + negative;
        }
        self.residue_positive = (self.residue_positive - positive).max(0.0);
        self.residue_negative = (self.residue_negative - negative).max(0.0);
        if self.residue_positive == 0.0 {
            self.positive = 0.0;
        }
        if self.residue_negative == 0.0 {
            self.negative = 0.0;
        }
        own
    }
}

/// Returns the RTT in seconds and the window in bytes from `header`, if the packet states them.
fn stated(header: &[f64]) -> Option<(f64, f64)> {
    let (&rtt_s, &cwnd) = (header.get(RTT)?, header.get(CWND)?);
    (0.0 < rtt_s && 0.0 < cwnd).then_some((rtt_s, cwnd))
}

/// Moves `due`, the end of an interval, to the first end after `now`.
fn skip(due: &mut Time, interval: Time, now: Time) {
    if *due <= now {
        *due += interval * ((now - *due).as_ps() / interval.as_ps() + 1);
    }
}

impl PortAgent for XcpPort {
    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if self.of_host {
            return;
        }
        self.catch_up(view.now);
        self.least_queue = self.least_queue.min(view.queue_bytes as f64);
        self.count(packet, 0.0);
        self.queue.hold(view.queue_bytes + u64::from(packet.wire));
    }

    fn on_dequeue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        self.catch_up(view.now);
        self.queue.hold(view.queue_bytes);
        self.least_queue = self.least_queue.min(self.queue.at(view.now));
        if self.of_host {
            let data = packet.kind == PortPacketKind::Data;
            let grown = if data { packet.header.get(GROWN).copied().unwrap_or(0.0) } else { 0.0 };
            self.count(packet, grown);
            self.queue.leave_host(view.now, f64::from(packet.wire), grown);
        }
        self.give(packet);
    }
}

/// A flow under XCP.
#[derive(Clone, Debug)]
pub struct Xcp {
    form: XcpForm,
    line_rate: Rate,
    mtu: f64,
    wire_mtu: f64,
    /// Payload bytes of the flow.
    size: f64,
    /// Window in packets.
    cwnd: f64,
    srtt_s: f64,
    snd_una: u64,
    snd_nxt: u64,
    /// A gap does not halve again before this byte is acknowledged.
    cut_until: u64,
    /// Bytes on the wire that the window has admitted and the host not sent, after the last packet; and their growth
    /// since the packet before.
    held: f64,
    grown: f64,
}

impl Xcp {
    /// Applies feedback H: cwnd ← max(cwnd + H, 1 packet). In ns-2's form H is a change of rate, multiplied by the RTT.
    fn take_feedback(&mut self, feedback: f64) {
        let bytes = match self.form {
            XcpForm::Paper => feedback,
            XcpForm::Ns2 => feedback * self.srtt_s,
        };
        if bytes.is_finite() {
            self.cwnd = (self.cwnd + bytes / self.wire_mtu).clamp(1.0, WINDOW_MAX);
        }
    }

    /// Returns the bytes on the wire of the packets that the window now admits.
    fn admitted(&self) -> f64 {
        let in_flight = self.snd_nxt.saturating_sub(self.snd_una) as f64;
        let fit = ((self.cwnd * self.mtu - in_flight) / self.mtu).floor();
        let left = ((self.size - self.snd_nxt as f64) / self.mtu).ceil();
        fit.min(left).max(0.0) * self.wire_mtu
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new((self.cwnd * self.mtu) as u64), rate: self.line_rate, timer: Time::MAX }
    }
}

impl Controller for Xcp {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }

    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        (self.snd_una, self.snd_nxt) = (ack.ack_seq, ack.snd_nxt);
        let rtt_s = ack.rtt.as_secs_f64();
        self.srtt_s = if self.srtt_s == 0.0 { rtt_s } else { self.srtt_s + (rtt_s - self.srtt_s) / 8.0 };
        if let Some(&feedback) = ack.header.get(FEEDBACK) {
            self.take_feedback(feedback);
        }
        self.allowance()
    }

    fn on_loss(&mut self, _: Time, loss: Loss) -> Allowance {
        match loss {
            Loss::Gap if self.cut_until <= self.snd_una => {
                self.cwnd = (self.cwnd / 2.0).max(1.0);
                self.cut_until = self.snd_nxt;
            }
            Loss::Gap => {}
            Loss::Timeout => self.cwnd = 1.0,
        }
        self.allowance()
    }

    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }

    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
    }

    fn on_sent(&mut self, _: Time, bytes: Bytes) -> Option<Allowance> {
        let payload = bytes.as_f64() - (self.wire_mtu - self.mtu);
        self.snd_nxt = self.snd_nxt.saturating_add(payload.max(0.0) as u64);
        let held = self.admitted();
        (self.grown, self.held) = (held - self.held, held);
        None
    }

    fn stamp(&mut self, _: Time, header: &mut [f64]) {
        if let [rtt, cwnd, feedback, grown, ..] = header {
            (*rtt, *cwnd) = (self.srtt_s, self.cwnd * self.wire_mtu);
            (*feedback, *grown) = (f64::INFINITY, self.grown);
        }
    }
}

#[cfg(test)]
mod tests;
