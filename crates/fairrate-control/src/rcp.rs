//! `rcp`: the Rate Control Protocol. N. Dukkipati, "Rate Control Protocol (RCP): Congestion control to make flows
//! complete quickly", PhD thesis, Stanford, 2007, as L. Jose et al., "High Speed Networks Need Proactive Congestion
//! Control", HotNets 2015, section 2.1, uses it (one RTT for all), and as in the authors' ns-2 code (`rcp.cc`).
//!
//! | paper          | here             | unit                      |
//! |----------------|------------------|---------------------------|
//! | R              | `rate`           | bytes/s (header: bit/s)   |
//! | C, γ           | `capacity`, `gamma` | bytes/s, 1             |
//! | y, q           | `input` over the interval, `queue` | bytes   |
//! | d              | `rtt_s`          | s                         |
//! | T              | `slot`           | time                      |
//! | α, β           | `alpha`, `beta`  | 1                         |
//!
//! Every port has one rate R for all flows. A flow asks for it with a control packet (SYN), sends nothing until the SYN
//! has returned, and then paces at the smallest R of its path, which every data packet updates.
//!
//! Readings: a host's link is a link of the path, so host ports have an R too. As a host's data waits in no queue, each
//! flow writes into a header word how many bytes it is behind its pace, and the port counts them as input and as queue
//! (`LinkQueue`). y counts all bytes on the link, also acknowledgments; a packet whose transmission would end after the
//! interval counts in part in the next one, as in ns-2. Ports start at random phases of the interval. They have no
//! timer: updates that were due are computed one by one when the next packet arrives, because R is not read in between;
//! a test shows that the numbers are those of a timer. A flow slower than one packet per round trip asks again every
//! round trip with a control packet (ns-2: REF). A SYN or REF that does not return is sent again, each time after twice
//! as long. R never falls below `min_packets` per round trip (ns-2); a loss changes nothing. In the form of ns-2, d
//! starts at the base RTT: ns-2 starts at 200 ms, from which it would need hours to fall.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::draws::Draws;
use crate::link_queue::LinkQueue;
use crate::needs::{Needs, NetworkNeeds, PacingNeeds, WireNeeds};
use crate::port::{Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortView};

choice! {
    /// The source of d and T.
    pub enum RcpForm {
        /// T = d = the base RTT of the network.
        PercPaper = "perc-paper",
        /// d is a moving average of the RTTs that packets carry; T = min(d, timeslot).
        Ns2 = "ns2",
    }
}

algorithm_config! {
    /// Parameters of RCP.
    pub struct RcpConfig {
        /// Round trip d and interval T: one base RTT for all, or measured and cut to `timeslot` (ns-2, which also has
        /// `alpha` and `beta` 0.4 and `initial_rate` 0.05).
        form: RcpForm = RcpForm::PercPaper;
        /// Part of the spare capacity given out in an RTT (PERC section 4: 0.5; ns-2: 0.4).
        alpha: f64 = 0.5, in 0.0..=10.0;
        /// Part of the queue drained in an RTT (PERC section 4: 0.5; ns-2: 0.4).
        beta: f64 = 0.5, in 0.0..=10.0;
        /// Part of the capacity that is given out at all (PERC, ns-2: 1).
        gamma: f64 = 1.0, in 0.01..=1.0;
        /// First R of a port, as a part of its capacity (PERC section 4: 0.5; ns-2: 0.05).
        initial_rate: f64 = 0.5, in 0.000_001..=1.0;
        /// Least R, in packets an RTT (ns-2: 0.01 of 1,000 bytes; here of a packet on the wire).
        min_packets: f64 = 0.01, in 0.000_001..=1000.0;
        /// Packets that a flow which had to wait for its NIC may send in a row (ours: flows have to send at their rate
        /// on average even on a full NIC, or the rest of it goes to one of them).
        pacing_credit: u32 = 1, in 0.0..=1000.0;
        /// Longest interval between updates, in the form of ns-2 (ns-2: 10 ms).
        timeslot: Time = Time::from_ms(10);
        /// Time after which a SYN that is not back is sent again, in base RTTs, at least 20 us (our choice).
        syn_timeout: f64 = 5.0, in 1.0..=1_000_000.0;
    }
}

/// Header: the rate in bit/s, which ports lower.
const RATE: usize = 0;
/// Header: the sender's smoothed RTT in seconds, 0 if it has none yet.
const RTT: usize = 1;
/// Header: bytes by which the flow has fallen behind its pace since its previous packet.
const BEHIND: usize = 2;
/// Shortest period after which a flow asks for a rate again, and shortest timeout of a request without an answer.
const ASK_AGAIN: Time = Time::from_us(5);
const ASK_TIMEOUT: Time = Time::from_us(20);

impl AlgorithmSpec for RcpConfig {
    type Controller = Rcp;
    type Port = RcpPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ports: PortScope::All, ..NetworkNeeds::NOTHING },
            wire: WireNeeds {
                header: HeaderWords { fixed: 3, per_hop: 0 },
                control: Some(Bytes::new(64)),
                // The thesis's header: rate, echoed rate, RTT, protocol.
                data_overhead: Bytes::new(12),
                ack_overhead: Bytes::new(12),
                ..WireNeeds::NOTHING
            },
            pacing: PacingNeeds { pacing_credit: self.pacing_credit, ..PacingNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Rcp {
        let timeout = Time::from_secs_f64(self.syn_timeout * flow.base_rtt.as_secs_f64());
        Rcp {
            line_rate: flow.line_rate,
            fastest: flow.line_rate.min(flow.demand),
            wire_mtu: flow.wire_mtu,
            period: flow.base_rtt.max(ASK_AGAIN),
            base_rtt_s: flow.base_rtt.as_secs_f64(),
            timeout: timeout.max(ASK_TIMEOUT),
            rate: Rate::ZERO,
            srtt_s: 0.0,
            asks: true,
            asked: flow.start,
            ask_due: flow.start,
            n_asked: 0,
            paced: 0.0,
            paced_until: flow.start,
            last_wire: 0.0,
            behind: 0.0,
        }
    }
    fn build_port(&self, port: &PortContext) -> Option<RcpPort> {
        Some(RcpPort::new(self.clone(), port))
    }
}

/// The rate of one egress port.
#[derive(Clone, Debug)]
pub struct RcpPort {
    config: RcpConfig,
    /// C in bytes per second.
    capacity: f64,
    of_host: bool,
    packet: f64,
    /// R in bytes per second.
    rate: f64,
    /// The average round-trip time d, in seconds.
    rtt_s: f64,
    /// The interval T, and the end of the current interval.
    slot: Time,
    due: Time,
    /// Bytes counted in this interval, and bytes already counted for the next one.
    input: f64,
    spill: f64,
    queue: LinkQueue,
    /// Sum of the RTTs in this interval's packets weighted by bytes, the sum of those bytes, and the last mean RTT.
    rtt_sum: f64,
    rtt_bytes: f64,
    rtt_mean: f64,
}

impl RcpPort {
    fn new(config: RcpConfig, port: &PortContext) -> Self {
        let base = port.base_rtt.max(Time::from_ps(1));
        let slot = match config.form {
            RcpForm::PercPaper => base,
            RcpForm::Ns2 => base.min(config.timeslot),
        };
        let phase = Draws::new(port.seed, port.port).uniform();
        let capacity = port.rate.as_bytes_per_sec();
        Self {
            capacity,
            of_host: port.of_host,
            packet: f64::from(port.wire_mtu),
            rate: config.initial_rate * capacity,
            rtt_s: base.as_secs_f64(),
            slot,
            due: slot - Time::from_secs_f64(phase * slot.as_secs_f64()),
            input: 0.0,
            spill: 0.0,
            queue: LinkQueue::new(port.rate),
            rtt_sum: 0.0,
            rtt_bytes: 0.0,
            rtt_mean: 0.0,
            config,
        }
    }

    /// Returns R ← R·(1 + (T/d)·(α·(γC - y) - β·q/d)/(γC)) in bytes/s, between the least rate and γC (PERC section 2.1
    /// has T = d, γ = 1).
    fn next_rate(&self, y: f64, q: f64) -> f64 {
        let (c, d) = (self.config.gamma * self.capacity, self.rtt_s);
        let spare = self.config.alpha * (c - y) - self.config.beta * q / d;
        let least = (self.config.min_packets * self.packet / d).min(c);
        (self.rate * (1.0 + self.slot.as_secs_f64() / d * spare / c)).clamp(least, c)
    }

    /// Updates d ← g·mean + (1 - g)·d. For a mean above d, g = T/d; for a smaller mean, g is also multiplied by R/C and
    /// by mean/d (ns-2).
    fn average_rtt(&mut self) {
        if 0.0 < self.rtt_bytes {
            self.rtt_mean = self.rtt_sum / self.rtt_bytes;
        }
        let (mean, d) = (self.rtt_mean, self.rtt_s);
        let gain = self.slot.as_secs_f64() / d;
        let gain = if d <= mean { gain } else { gain * self.rate / self.capacity * mean / d };
        self.rtt_s = gain * mean + (1.0 - gain) * d;
    }

    /// Ends the interval: computes the next R and T and resets the counters.
    fn update(&mut self) {
        let (y, q) = ((self.input / self.slot.as_secs_f64()).max(0.0), self.queue.at(self.due));
        if self.config.form == RcpForm::Ns2 {
            self.average_rtt();
        }
        self.rate = self.next_rate(y, q);
        (self.input, self.spill) = (self.spill, 0.0);
        (self.rtt_sum, self.rtt_bytes) = (0.0, 0.0);
        if self.config.form == RcpForm::Ns2 {
            self.slot = Time::from_secs_f64(self.rtt_s).min(self.config.timeslot).max(Time::from_ps(1));
        }
        self.due += self.slot;
    }

    /// Performs the updates due until `now`. If an update without traffic changes nothing, the remaining ones are
    /// skipped.
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            let still = self.input == 0.0 && self.spill == 0.0 && self.queue.is_still(self.due);
            let (rate, rtt_s, slot) = (self.rate, self.rtt_s, self.slot);
            self.update();
            if still && (rate, rtt_s, slot) == (self.rate, self.rtt_s, self.slot) && self.due <= now {
                self.due += slot * ((now - self.due).as_ps() / slot.as_ps());
            }
        }
    }

    /// Counts the bytes of `packet` and the `beyond` bytes more that its flow could have sent.
    fn count(&mut self, now: Time, packet: &PortPacket<'_>, beyond: f64) {
        let wire = f64::from(packet.wire);
        let tx_s = wire / self.capacity;
        let late = (tx_s - (self.due - now).as_secs_f64()).max(0.0) / tx_s;
        self.input += (wire + beyond) * (1.0 - late);
        self.spill += (wire + beyond) * late;
        if let Some(&rtt_s) = packet.header.get(RTT)
            && 0.0 < rtt_s
        {
            self.rtt_sum += rtt_s * wire;
            self.rtt_bytes += wire;
        }
    }
}

impl PortAgent for RcpPort {
    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if self.of_host {
            return;
        }
        self.catch_up(view.now);
        self.count(view.now, packet, 0.0);
        self.queue.hold(view.queue_bytes + u64::from(packet.wire));
    }

    fn on_dequeue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        self.catch_up(view.now);
        self.queue.hold(view.queue_bytes);
        if self.of_host {
            let data = packet.kind == PortPacketKind::Data;
            let beyond = if data { packet.header.get(BEHIND).copied().unwrap_or(0.0) } else { 0.0 };
            self.count(view.now, packet, beyond);
            self.queue.leave_host(view.now, f64::from(packet.wire), beyond);
        }
        if let Some(rate) = packet.header.get_mut(RATE) {
            *rate = rate.min(self.rate * 8.0);
        }
    }
}

/// A flow under RCP.
#[derive(Clone, Debug)]
pub struct Rcp {
    line_rate: Rate,
    /// The line rate, or the application's demand if that is less.
    fastest: Rate,
    wire_mtu: Bytes,
    base_rtt_s: f64,
    /// Packet spacing above which the flow asks for its rate between packets; also the period of its requests.
    period: Time,
    /// First timeout of a request.
    timeout: Time,
    /// The pacing rate; zero until the SYN has returned.
    rate: Rate,
    srtt_s: f64,
    /// Set when a control packet is to be sent now, and the time of the last one.
    asks: bool,
    asked: Time,
    /// Time of the next request, and the number of requests since the last answer.
    ask_due: Time,
    n_asked: u32,
    /// Bytes that the pace allowed since the last packet, until `paced_until`.
    paced: f64,
    paced_until: Time,
    /// Bytes of the last packet; zero before the first.
    last_wire: f64,
    behind: f64,
}

impl Rcp {
    /// Applies the smallest R of the path, `bps`.
    fn take_rate(&mut self, now: Time, bps: f64) {
        self.pace(now);
        self.rate = Rate::from_bps_f64(bps).clamp(Rate::from_bps(1), self.line_rate);
        self.n_asked = 0;
        let apart = self.period < self.rate.min(self.fastest).tx_time(self.wire_mtu);
        self.ask_due = if apart { now + self.period } else { Time::MAX };
    }

    /// Adds the bytes that the pace has allowed until `now`.
    fn pace(&mut self, now: Time) {
        let rate = self.rate.min(self.fastest).as_bytes_per_sec();
        self.paced += rate * now.saturating_sub(self.paced_until).as_secs_f64();
        self.paced_until = now;
    }

    fn take_rtt(&mut self, rtt: Time) {
        let rtt_s = rtt.as_secs_f64();
        self.srtt_s = if self.srtt_s == 0.0 { rtt_s } else { self.srtt_s + (rtt_s - self.srtt_s) / 8.0 };
    }

    fn ask(&mut self, now: Time) {
        self.asks = true;
        let wait = self.timeout.as_ps().saturating_mul(1 << self.n_asked.min(40));
        self.ask_due = now.saturating_add(Time::from_ps(wait));
        self.n_asked = self.n_asked.saturating_add(1);
    }

    /// Returns the present allowance. If the timer is due, the request is made first, whatever the event.
    fn allowance(&mut self, now: Time) -> Allowance {
        if self.ask_due <= now {
            self.ask(now);
        }
        Allowance { cwnd: Bytes::MAX, rate: self.rate, timer: self.ask_due }
    }
}

impl Controller for Rcp {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.allowance(now)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.take_rtt(ack.rtt);
        if let Some(&bps) = ack.header.get(RATE) {
            self.take_rate(ack.now, bps);
        }
        self.allowance(ack.now)
    }

    fn on_control(&mut self, now: Time, header: &[f64]) -> Option<Allowance> {
        if self.srtt_s == 0.0 {
            self.take_rtt(now.saturating_sub(self.asked));
        }
        let &bps = header.get(RATE)?;
        self.take_rate(now, bps);
        Some(self.allowance(now))
    }

    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.allowance(now)
    }

    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.allowance(now)
    }

    fn on_timer(&mut self, now: Time) -> Allowance {
        self.allowance(now)
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        self.pace(now);
        let first = self.last_wire == 0.0;
        // In a longer gap the flow had nothing to send.
        let most = self.last_wire + self.rate.as_bytes_per_sec() * self.base_rtt_s;
        self.behind = if first { 0.0 } else { self.paced.min(most) - self.last_wire };
        (self.paced, self.last_wire) = (0.0, bytes.as_f64());
        None
    }

    fn stamp(&mut self, _: Time, header: &mut [f64]) {
        if let [rate, rtt, behind, ..] = header {
            (*rate, *rtt, *behind) = (f64::INFINITY, self.srtt_s, self.behind);
        }
    }

    fn control_packet(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        let asks = std::mem::take(&mut self.asks) && 0 < unsent;
        if asks && let [rate, rtt, ..] = header {
            (*rate, *rtt) = (f64::INFINITY, self.srtt_s);
            self.asked = now;
        }
        asks
    }
}

#[cfg(test)]
mod tests;
