//! `xcp`: the eXplicit Control Protocol. D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay
//! Product Networks", SIGCOMM 2002, section 3 (windows, in bytes), and as ns-2.34 has it (rates; `xcp/xcpq.cc`).
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
//! Every control interval a port works out how much the traffic as a whole should grow (efficiency) and hands it out
//! packet by packet, the same increase of rate for every flow and a decrease in proportion to it (fairness). A packet
//! brings its sender the least that the ports of its path have for it.
//!
//! Readings. cwnd in headers is in bytes on the wire. All traffic counts for y, packets that state an RTT for the rest.
//! d is the mean RTT over flows: every packet counts by its x = rtt·s/cwnd (ns-2: rtt/cwnd, as all its packets are
//! equal). In the paper's form a long interval (ns-2's timers) hands out what one of length d would: Y is y·d. Q is the
//! least queue of the interval, or of ns-2's own interval Tq with its timers.
//! `timers = "ns2"` are the constants of ns-2.34: Te is 50 ms at first and after an interval without RTTs, then
//! max(d, 1 ms), and Tq max(2 ms, (d - q/C)/2). They are made for wide areas: at 12 us the loop is some 80 times slower
//! than meant. `ideal` has none of these floors, and d starts at the base RTT. First intervals end at different times,
//! by a draw. Intervals without packets are made up for when the next one comes.
//! A host's link is a link of the path: what windows would have put into its queue counts as its input and queue,
//! by a header word ([`LinkQueue`]).
//! Sender: window at line rate, without pacing (ns-2); two packets at first (ns-2), no feedback before it knows an RTT
//! (ns-2); smoothed RTT with gain 1/8; a gap halves once a window, a timeout leaves one packet, as in TCP.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Needs};
use crate::draws::Draws;
use crate::link_queue::LinkQueue;
use crate::port::{Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortView};

choice! {
    /// What is handed out.
    pub enum XcpForm {
        /// Bytes of window.
        Paper = "paper",
        /// Rates, and no more than there is.
        Ns2 = "ns2",
    }
}

choice! {
    /// How long control intervals are.
    pub enum XcpTimers {
        /// A mean RTT.
        Ideal = "ideal",
        /// As in ns-2: no less than a millisecond.
        Ns2 = "ns2",
    }
}

algorithm_config! {
    /// Parameters of XCP.
    pub struct XcpConfig {
        /// Feedback in bytes of window (the paper), or in rates that are used up as they are given (ns-2).
        form: XcpForm = XcpForm::Paper, ns3 = XcpForm::Paper;
        /// Control intervals of a mean RTT (the paper), or with ns-2's floors of 1 and 2 ms, 50 ms at first.
        timers: XcpTimers = XcpTimers::Ideal, ns3 = XcpTimers::Ideal;
        /// Part of the spare capacity given out in an interval (XCP section 3.5, ns-2: 0.4).
        alpha: f64 = 0.4, ns3 = 0.4, in 0.0..=10.0;
        /// Part of the persistent queue drained in an interval (XCP section 3.5, ns-2: 0.226).
        beta: f64 = 0.226, ns3 = 0.226, in 0.0..=10.0;
        /// Part of the traffic that is shuffled between flows in an interval (XCP section 3.5, ns-2: 0.1).
        gamma: f64 = 0.1, ns3 = 0.1, in 0.0..=1.0;
        /// First window, in packets (ns-2: 2).
        initial_window: f64 = 2.0, ns3 = 2.0, in 1.0..=1_000_000.0;
    }
}

/// Header: the sender's smoothed RTT in seconds, 0 if it has none yet.
const RTT: usize = 0;
/// Header: its window in bytes on the wire.
const CWND: usize = 1;
/// Header: the change that it may make, which ports lower.
const FEEDBACK: usize = 2;
/// Header: bytes by which what the window has admitted and the host not sent has grown since the flow's packet before.
const GROWN: usize = 3;

/// ns-2: first and idle Te, least Te, least Tq, longest RTT that counts.
const NS2_FIRST: Time = Time::from_ms(50);
const NS2_TE_MIN: Time = Time::from_ms(1);
const NS2_TQ_MIN: Time = Time::from_ms(2);
const RTT_MAX_S: f64 = 1.0;
/// ns-2 draws first intervals from a normal distribution with 0.2 of their length as deviation; so wide is a uniform
/// one of that deviation: 0.2·√12.
const NS2_SPREAD: f64 = 0.692_820_323_027_550_9;
/// Largest window in packets; only a bound, far above what any path holds.
const WINDOW_MAX: f64 = 1e9;

impl AlgorithmSpec for XcpConfig {
    type Controller = Xcp;
    type Port = XcpPort;
    fn needs(&self) -> Needs {
        Needs {
            ports: PortScope::All,
            header: HeaderWords { fixed: 4, per_hop: 0 },
            // The header of draft-falk-xcp-spec: RTT, throughput, change, echoed change, and what kind it is.
            data_overhead: Bytes::new(20),
            ack_overhead: Bytes::new(20),
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

/// What the packets of a control interval add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Bytes of all packets.
    input: f64,
    /// Of packets with an RTT: bytes, rtt·s/cwnd, and that times the RTT.
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
    /// The same for the queue, with ns-2's timers; else `Time::MAX`.
    tq: Time,
    tq_due: Time,
    sums: Sums,
    queue: LinkQueue,
    /// Least queue of the running interval, and of the one before.
    least_queue: f64,
    persistent_queue: f64,
    /// ξp and ξn, or Cp and Cn.
    positive: f64,
    negative: f64,
    /// ns-2: what is still to be given out.
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

    /// d = Σ rtt·x / Σ x, x = rtt·s/cwnd. Without packets it stays, or goes back to 50 ms in ns-2.
    fn average_rtt(&mut self) {
        if 0.0 < self.sums.x {
            self.rtt_s = (self.sums.rtt_x / self.sums.x).max(self.least_rtt_s);
        } else if self.config.timers == XcpTimers::Ns2 {
            self.rtt_s = NS2_FIRST.as_secs_f64();
        }
    }

    /// φ = α·(C - y) - β·Q/d, a rate (ns-2); times d in bytes it is the paper's α·d·S - β·Q (eq. 1).
    fn aggregate_feedback(&self, y: f64) -> f64 {
        self.config.alpha * (self.capacity - y) - self.config.beta * self.persistent_queue / self.rtt_s
    }

    /// h = max(0, γ·y - |φ|) (section 3.5.2).
    fn shuffled(&self, y: f64, phi: f64) -> f64 {
        (self.config.gamma * y - phi.abs()).max(0.0)
    }

    /// A control interval is over: what the packets of the next one get. Without traffic nobody gets any.
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

    /// Tq = max(2 ms, (d - q/C)/2) (ns-2).
    fn end_tq(&mut self) {
        self.end_queue_interval(self.tq_due);
        let left_s = self.rtt_s - self.least_queue / self.capacity;
        self.tq = Time::from_secs_f64(left_s / 2.0).max(NS2_TQ_MIN);
        self.tq_due += self.tq;
    }

    /// Makes up for the intervals that ended until `now`.
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

    /// Whether further intervals without packets change nothing: there has been one, and the queue is as it was.
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

    /// Counts a packet and `grown` bytes more that its flow would have put into the queue.
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

    /// Lowers the feedback in a header to what this port has for the packet.
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

    /// ns-2: Cp·x - Cn·s for a packet with x = rtt·s/cwnd, as far as residues last; what another port denies stays here.
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

/// RTT in seconds and window in bytes of a packet that states them.
fn stated(header: &[f64]) -> Option<(f64, f64)> {
    let (&rtt_s, &cwnd) = (header.get(RTT)?, header.get(CWND)?);
    (0.0 < rtt_s && 0.0 < cwnd).then_some((rtt_s, cwnd))
}

/// Moves an end of an interval to the first one after `now`.
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
    /// Bytes on the wire that the window has admitted and the host not sent, after the last packet; and by how much
    /// they had grown since the one before.
    held: f64,
    grown: f64,
}

impl Xcp {
    /// cwnd ← max(cwnd + H, 1 packet); in ns-2's form H is a change of rate, which makes a window over an RTT.
    fn take_feedback(&mut self, feedback: f64) {
        let bytes = match self.form {
            XcpForm::Paper => feedback,
            XcpForm::Ns2 => feedback * self.srtt_s,
        };
        if bytes.is_finite() {
            self.cwnd = (self.cwnd + bytes / self.wire_mtu).clamp(1.0, WINDOW_MAX);
        }
    }

    /// Bytes on the wire of the packets that the window lets through now.
    fn admitted(&self) -> f64 {
        let in_flight = self.snd_nxt.saturating_sub(self.snd_una) as f64;
        let room = (self.cwnd * self.mtu - in_flight).min(self.size - self.snd_nxt as f64);
        (room.max(0.0) / self.mtu).ceil() * self.wire_mtu
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
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g, port_40g};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    /// A switch's port of 8 Gb/s, a byte each nanosecond, with d = 10 us; its first interval begins at time zero.
    fn port(form: XcpForm, timers: XcpTimers) -> XcpPort {
        let config = XcpConfig { form, timers, ..XcpConfig::default() };
        let context =
            PortContext { rate: Rate::from_gbps(8), base_rtt: Time::from_us(10), wire_mtu: 1_000, ..port_40g() };
        let mut port = config.build_port(&context).expect("every port has one");
        port.te_due = port.te;
        if timers == XcpTimers::Ns2 {
            port.tq_due = port.tq;
        }
        port
    }

    /// A packet of 1,000 bytes passes, before and behind it a queue of so many; its feedback in bytes or bytes/s.
    fn pass(port: &mut XcpPort, now: Time, queue_bytes: u64, rtt_s: f64, cwnd: f64) -> f64 {
        pass_asking(port, now, queue_bytes, rtt_s, cwnd, f64::INFINITY)
    }

    fn pass_asking(port: &mut XcpPort, now: Time, queue_bytes: u64, rtt_s: f64, cwnd: f64, asked: f64) -> f64 {
        let mut header = [rtt_s, cwnd, asked, 0.0];
        let kind = PortPacketKind::Data;
        let mut packet = PortPacket { flow: 0, kind, wire: 1_000, header: &mut header, mark: false };
        let view = PortView { now, queue_bytes };
        port.on_enqueue(&view, &mut packet, &mut Actions::default());
        port.on_dequeue(&view, &mut packet, &mut Actions::default());
        header[FEEDBACK]
    }

    /// Two flows of 2,000 and 3,000 bytes a round trip of 10 us: y = 5e8 bytes/s, half of C. Packets of one come with
    /// x = 10 us/2 and of the other with 10 us/3: 20 us in all.
    fn interval_of_two_flows(port: &mut XcpPort) {
        for (us, cwnd) in [(1, 2e3), (3, 3e3), (5, 2e3), (7, 3e3), (9, 3e3)] {
            assert_eq!(pass(port, Time::from_us(us), 0, 10e-6, cwnd), 0.0, "nothing is known yet");
        }
    }

    #[test]
    fn both_forms_hand_out_the_spare_capacity_and_shuffle() {
        for form in [XcpForm::Paper, XcpForm::Ns2] {
            let mut port = port(form, XcpTimers::Ideal);
            interval_of_two_flows(&mut port);
            port.catch_up(Time::from_us(10));
            assert!(close(port.rtt_s * 1e6, 10.0));
            // φ = 0.4·5e8 = 2e8 bytes/s, 2,000 bytes a round trip; h = max(0, 0.5e8 - 2e8) = 0.
            // Each packet gets its share by x: 5/20 of 2e8 bytes/s, 500 bytes; and 3.33/20, 333.3 bytes. Both flows
            // grow by 1,000 bytes a round trip.
            let unit = if form == XcpForm::Paper { 1.0 } else { 1.0 / 10e-6 };
            let (first, second) =
                (pass(&mut port, Time::from_us(11), 0, 10e-6, 2e3), pass(&mut port, Time::from_us(13), 0, 10e-6, 3e3));
            assert!(close(first, 500.0 * unit) && close(second, 1e3 / 3.0 * unit), "{first} {second}");
        }
    }

    #[test]
    fn a_full_link_shuffles_from_the_large_to_the_small() {
        for form in [XcpForm::Paper, XcpForm::Ns2] {
            let mut port = port(form, XcpTimers::Ideal);
            // 2 packets of a window of 2,000 bytes and 8 of one of 8,000: y = C, φ = 0, h = 0.1 C = 1e8 bytes/s.
            let round = |port: &mut XcpPort, start_us: u64| {
                let mut sums = [0.0; 2];
                for i in 0..10 {
                    let small = i % 5 == 0;
                    let cwnd = if small { 2e3 } else { 8e3 };
                    let now = Time::from_us(start_us + i);
                    sums[usize::from(!small)] += pass(port, now, 0, 10e-6, cwnd);
                }
                sums
            };
            round(&mut port, 0);
            // Half of 1,000 bytes for each flow, minus 0.2 and 0.8 of 1,000: +300 and -300 bytes.
            let [small, large] = round(&mut port, 10);
            let unit = if form == XcpForm::Paper { 1.0 } else { 1.0 / 10e-6 };
            assert!(close(small, 300.0 * unit) && close(large, -300.0 * unit), "{form:?}: {small} {large}");
        }
    }

    #[test]
    fn a_standing_queue_is_drained() {
        let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
        for i in 0..20 {
            pass(&mut port, Time::from_us(i), 4_000, 10e-6, 10e3);
        }
        port.catch_up(Time::from_us(20));
        // Only the second interval knows a least queue of 4,000: φ = -0.226·4,000 = -904 bytes, h = 1,000 - 904 = 96.
        assert!(close(port.persistent_queue, 4_000.0));
        // A tenth for each of ten packets: (96 - 96 - 904)/10.
        assert!(close(pass(&mut port, Time::from_us(20), 4_000, 10e-6, 10e3), -90.4));
        // A moment without queue is enough for there to be none.
        pass(&mut port, Time::from_us(25), 0, 10e-6, 10e3);
        port.catch_up(Time::from_us(30));
        assert!(port.persistent_queue == 0.0);
    }

    #[test]
    fn a_header_keeps_the_least_feedback_and_without_an_rtt_there_is_none() {
        let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
        interval_of_two_flows(&mut port);
        assert!(close(pass_asking(&mut port, Time::from_us(11), 0, 10e-6, 2e3, 80.0), 80.0));
        assert!(close(pass_asking(&mut port, Time::from_us(12), 0, 10e-6, 2e3, -80.0), -80.0));
        assert_eq!(pass(&mut port, Time::from_us(13), 0, 0.0, 2e3), 0.0);
        assert!(close(port.sums.input, 3_000.0) && close(port.sums.bytes, 2_000.0));
    }

    #[test]
    fn residues_end() {
        let mut port = port(XcpForm::Ns2, XcpTimers::Ideal);
        interval_of_two_flows(&mut port);
        // 2e8 bytes/s to give, 0.5e8 to each packet of the first flow: four get it, the fifth none.
        let given: Vec<f64> = (0..5).map(|i| pass(&mut port, Time::from_us(11 + i), 0, 10e-6, 2e3)).collect();
        assert!(given[..4].iter().all(|&g| close(g, 5e7)) && given[4].abs() < 1.0, "{given:?}");
        // What a port before denies (3e7 of 5e7) is taken as negative feedback, of which there is none, so that
        // the packet takes its 2e7 of the residue.
        interval_of_two_flows_again(&mut port);
        assert!(close(pass_asking(&mut port, Time::from_us(31), 0, 10e-6, 2e3, 2e7), 2e7));
        assert!(close(port.residue_positive, 2e8 - 2e7));
    }

    fn interval_of_two_flows_again(port: &mut XcpPort) {
        port.catch_up(Time::from_us(20));
        for (us, cwnd) in [(21, 2e3), (23, 3e3), (25, 2e3), (27, 3e3), (29, 3e3)] {
            pass(port, Time::from_us(us), 0, 10e-6, cwnd);
        }
        port.catch_up(Time::from_us(30));
    }

    #[test]
    fn the_timers_of_ns2_know_no_microseconds() {
        let mut port = port(XcpForm::Ns2, XcpTimers::Ns2);
        assert_eq!((port.te, port.te_due), (Time::from_ms(50), Time::from_ms(50)));
        pass(&mut port, Time::from_ms(49), 0, 12e-6, 2e3);
        port.catch_up(Time::from_ms(50));
        // d = 12 us: Te = 1 ms. Tq was due first and knew of 50 ms only: 25 ms.
        assert_eq!((port.te, port.te_due), (Time::from_ms(1), Time::from_ms(51)));
        assert_eq!((port.tq, port.tq_due), (Time::from_ms(25), Time::from_ms(75)));
        for ms in 50..80 {
            pass(&mut port, Time::from_ms(ms), 0, 12e-6, 2e3);
        }
        assert_eq!((port.tq, port.tq_due), (Time::from_ms(2), Time::from_ms(81)));
        // The last packet came at 79 ms; the interval that ends at 81 ms is the first without, and the next has 50 ms.
        port.catch_up(Time::from_ms(81));
        assert_eq!((port.te, port.te_due), (Time::from_ms(50), Time::from_ms(131)));
    }

    #[test]
    fn making_up_for_intervals_gives_the_numbers_of_ticking() {
        for (form, timers) in [XcpForm::Paper, XcpForm::Ns2].into_iter().zip([XcpTimers::Ideal, XcpTimers::Ns2]) {
            for of_host in [false, true] {
                let mut lazy = port(form, timers);
                lazy.of_host = of_host;
                let mut ticking = lazy.clone();
                let mut draws = Draws::new(7, 0);
                let mut now = Time::ZERO;
                for step in 0..2_000 {
                    let u = draws.uniform();
                    let gap_ns = if step % 500 == 499 {
                        4e8
                    } else if step % 50 == 49 {
                        1e8 * u
                    } else {
                        3_000.0 * u
                    };
                    now += Time::from_ps((gap_ns * 1e3) as u64);
                    let queue = if of_host { 0 } else { (draws.uniform() * 5_000.0) as u64 };
                    while ticking.te_due.min(ticking.tq_due) <= now {
                        if ticking.tq_due <= ticking.te_due { ticking.end_tq() } else { ticking.end_interval() }
                    }
                    let rtt_s = 10e-6 * (1.0 + draws.uniform());
                    let [a, b] = [&mut lazy, &mut ticking].map(|port| pass(port, now, queue, rtt_s, 4e3));
                    assert_eq!(a, b, "{form:?} {step}");
                    let state = |p: &XcpPort| (p.te, p.te_due, p.tq, p.tq_due, p.persistent_queue, p.rtt_s);
                    assert_eq!(state(&lazy), state(&ticking), "{form:?} {step}");
                }
            }
        }
    }

    #[test]
    fn a_host_counts_what_windows_would_have_queued() {
        let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
        port.of_host = true;
        for us in 0..20 {
            // Ten packets admitted at once, of which the first leaves; the others after it.
            let grown = if us == 0 {
                9_000.0
            } else if us < 10 {
                -1_000.0
            } else {
                0.0
            };
            let mut header = [10e-6, 1e4, f64::INFINITY, grown];
            let kind = PortPacketKind::Data;
            let mut packet = PortPacket { flow: 0, kind, wire: 1_000, header: &mut header, mark: false };
            let view = PortView { now: Time::from_us(us), queue_bytes: 0 };
            port.on_dequeue(&view, &mut packet, &mut Actions::default());
            let waiting = if us < 10 { 9_000.0 - 1_000.0 * us as f64 } else { 0.0 };
            assert!((port.queue.at(view.now) - waiting).abs() < 1e-6, "{us}");
        }
        assert!(close(port.sums.input, 10_000.0));
    }

    #[test]
    fn the_window_follows_feedback_in_both_forms() {
        let mut xcp = XcpConfig::default().build(&flow_25g());
        assert_eq!(xcp.on_start(Time::ZERO).cwnd, Bytes::new(2_000));
        let mut header = [0.0; 4];
        xcp.stamp(Time::ZERO, &mut header);
        assert_eq!(header, [0.0, 2.0 * 1_056.0, f64::INFINITY, 0.0]);
        // 528 bytes on the wire are half a packet.
        let ack = |rtt_ns, feedback: &'static [f64]| Ack { header: feedback, ..acked(1_000, rtt_ns, 2_000) };
        assert_eq!(xcp.on_ack(&ack(8_000, &[0.0, 0.0, 528.0, 0.0])).cwnd, Bytes::new(2_500));
        assert!(close(xcp.srtt_s * 1e6, 8.0));
        assert_eq!(xcp.on_ack(&ack(16_000, &[0.0, 0.0, -99_999.0, 0.0])).cwnd, Bytes::new(1_000));
        assert!(close(xcp.srtt_s * 1e6, 9.0));
        // ns-2: 132e6 bytes/s over 8 us are 1,056 bytes.
        let mut xcp = XcpConfig { form: XcpForm::Ns2, ..XcpConfig::default() }.build(&flow_25g());
        assert_eq!(xcp.on_ack(&ack(8_000, &[0.0, 0.0, 132e6, 0.0])).cwnd, Bytes::new(3_000));
    }

    #[test]
    fn losses_are_tcps() {
        let mut xcp = XcpConfig { initial_window: 10.0, ..XcpConfig::default() }.build(&flow_25g());
        xcp.on_ack(&acked(1_000, 8_000, 11_000));
        assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(5_000));
        assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(5_000), "the same window");
        xcp.on_ack(&acked(11_000, 8_000, 16_000));
        assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(2_500));
        assert_eq!(xcp.on_loss(Time::ZERO, Loss::Timeout).cwnd, Bytes::new(1_000));
    }

    #[test]
    fn a_flow_says_by_how_much_its_host_holds_more_back() {
        let mut xcp = XcpConfig { initial_window: 4.0, ..XcpConfig::default() }.build(&flow_25g());
        let grown = |xcp: &mut Xcp| {
            let mut header = [0.0; 4];
            xcp.on_sent(Time::ZERO, Bytes::new(1_056));
            xcp.stamp(Time::ZERO, &mut header);
            header[GROWN]
        };
        // Four packets admitted, three wait behind the first; each further one is one less.
        assert!(close(grown(&mut xcp), 3.0 * 1_056.0));
        assert!(close(grown(&mut xcp), -1_056.0));
        // An acknowledgment admits another: sent one, admitted one.
        xcp.on_ack(&acked(1_000, 8_000, 2_000));
        assert!(close(grown(&mut xcp), 0.0));
    }
}
