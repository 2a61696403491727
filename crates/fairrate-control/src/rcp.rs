//! `rcp`: the Rate Control Protocol. N. Dukkipati, "Rate Control Protocol (RCP): Congestion control to make flows
//! complete quickly", PhD thesis, Stanford, 2007, as L. Jose et al., "High Speed Networks Need Proactive Congestion
//! Control", HotNets 2015, section 2.1, uses it (one RTT for all), and as the authors' ns-2 code has it (`rcp.cc`).
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
//! Every port has one rate R for all flows. A flow asks for it with a control packet (SYN), sends nothing until that is
//! back, and then paces at the least R of its path, which every data packet brings anew.
//!
//! Readings: a host's link is a link of the path, so host ports have an R too. As a host's data waits in no queue, its
//! flows say in a header word how far they have fallen behind their pace, and the port counts that as input and as
//! queue ([`LinkQueue`]). y counts all that the link carries, acknowledgments too; a packet whose transmission would
//! end after the interval counts in part in the next one, as in ns-2. Ports start at different phases of the interval,
//! by a draw. They have no timer: updates that were due are made up for, one by one, when the next packet comes, as
//! nobody sees R in between; that the numbers are those of ticking is tested. A flow slower than a packet a round trip
//! asks again every round trip with a control packet (ns-2: REF). A SYN or REF that does not come back is sent again,
//! each time after twice as long. R never falls below `min_packets` a round trip (ns-2); a loss changes nothing.
//! In the form of ns-2, d starts at the base RTT: ns-2 starts at 200 ms, from which it would take hours to come down.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Needs};
use crate::draws::Draws;
use crate::link_queue::LinkQueue;
use crate::port::{Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortView};

choice! {
    /// Where d and T come from.
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
        form: RcpForm = RcpForm::PercPaper, ns3 = RcpForm::PercPaper;
        /// Part of the spare capacity given out in an RTT (PERC section 4: 0.5; ns-2: 0.4).
        alpha: f64 = 0.5, ns3 = 0.5, in 0.0..=10.0;
        /// Part of the queue drained in an RTT (PERC section 4: 0.5; ns-2: 0.4).
        beta: f64 = 0.5, ns3 = 0.5, in 0.0..=10.0;
        /// Part of the capacity that is given out at all (PERC, ns-2: 1).
        gamma: f64 = 1.0, ns3 = 1.0, in 0.01..=1.0;
        /// First R of a port, as a part of its capacity (PERC section 4: 0.5; ns-2: 0.05).
        initial_rate: f64 = 0.5, ns3 = 0.5, in 0.000_001..=1.0;
        /// Least R, in packets an RTT (ns-2: 0.01 of 1,000 bytes).
        min_packets: f64 = 0.01, ns3 = 0.01, in 0.000_001..=1000.0;
        /// Packets that a flow which had to wait for its NIC may send in a row (ours: flows have to send at their rate on
        /// average even on a full NIC, or the rest of it goes to one of them).
        pacing_credit: u32 = 1, ns3 = 1, in 0.0..=1000.0;
        /// Longest interval between updates, in the form of ns-2 (ns-2: 10 ms).
        timeslot: Time = Time::from_ms(10), ns3 = Time::from_ms(10);
        /// When a SYN that is not back is sent again, in base RTTs, at least 20 us (our choice).
        syn_timeout: f64 = 5.0, ns3 = 5.0, in 1.0..=1_000_000.0;
    }
}

/// Header: the rate in bit/s, which ports lower.
const RATE: usize = 0;
/// Header: the sender's smoothed RTT in seconds, 0 if it has none yet.
const RTT: usize = 1;
/// Header: bytes by which the flow has fallen behind its pace since its packet before.
const BEHIND: usize = 2;
/// A host's timer asks for a rate again no sooner, and no sooner without an answer.
const ASK_AGAIN: Time = Time::from_us(5);
const ASK_TIMEOUT: Time = Time::from_us(20);

impl AlgorithmSpec for RcpConfig {
    type Controller = Rcp;
    type Port = RcpPort;
    fn needs(&self) -> Needs {
        Needs {
            ports: PortScope::All,
            header: HeaderWords { fixed: 3, per_hop: 0 },
            control: Some(Bytes::new(64)),
            pacing_credit: self.pacing_credit,
            // The thesis's header: rate, echoed rate, RTT, protocol.
            data_overhead: Bytes::new(12),
            ack_overhead: Bytes::new(12),
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
    /// d.
    rtt_s: f64,
    /// T, and the end of the interval that runs.
    slot: Time,
    due: Time,
    /// Bytes of this interval, and what has spilled into the next.
    input: f64,
    spill: f64,
    queue: LinkQueue,
    /// Of the RTTs that this interval's packets carry: the sum weighted by bytes, those bytes, and the last mean.
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

    /// R ← R·(1 + (T/d)·(α·(γC - y) - β·q/d)/(γC)), between the least rate and γC (PERC section 2.1 has T = d, γ = 1).
    fn next_rate(&self, y: f64, q: f64) -> f64 {
        let (c, d) = (self.config.gamma * self.capacity, self.rtt_s);
        let spare = self.config.alpha * (c - y) - self.config.beta * q / d;
        let least = (self.config.min_packets * self.packet / d).min(c);
        (self.rate * (1.0 + self.slot.as_secs_f64() / d * spare / c)).clamp(least, c)
    }

    /// d ← g·mean + (1 - g)·d. A longer mean counts by g = T/d, a shorter by less the less this link gives (ns-2).
    fn average_rtt(&mut self) {
        if 0.0 < self.rtt_bytes {
            self.rtt_mean = self.rtt_sum / self.rtt_bytes;
        }
        let (mean, d) = (self.rtt_mean, self.rtt_s);
        let gain = self.slot.as_secs_f64() / d;
        let gain = if d <= mean { gain } else { gain * self.rate / self.capacity * mean / d };
        self.rtt_s = gain * mean + (1.0 - gain) * d;
    }

    /// The interval is over.
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

    /// Makes up for the updates due until `now`. As soon as one changes nothing, the others would not either.
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

    /// Counts a packet of this many bytes and of `beyond` more that its flow might have sent.
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
    /// Line rate, or what the application offers if that is less.
    fastest: Rate,
    wire_mtu: Bytes,
    base_rtt_s: f64,
    /// A flow with packets further apart asks for its rate in between.
    period: Time,
    /// First wait for an answer.
    timeout: Time,
    /// Zero until the SYN is back.
    rate: Rate,
    srtt_s: f64,
    /// Whether a control packet is to leave now, and when one last did.
    asks: bool,
    asked: Time,
    /// When to ask next, and how often it was without an answer.
    ask_due: Time,
    n_asked: u32,
    /// Bytes that the pace allowed since the packet before, until `paced_until`.
    paced: f64,
    paced_until: Time,
    /// Bytes of the packet before; zero before the first.
    last_wire: f64,
    behind: f64,
}

impl Rcp {
    /// The least R of the path.
    fn take_rate(&mut self, now: Time, bps: f64) {
        self.pace(now);
        self.rate = Rate::from_bps_f64(bps).clamp(Rate::from_bps(1), self.line_rate);
        self.n_asked = 0;
        let apart = self.period < self.rate.min(self.fastest).tx_time(self.wire_mtu);
        self.ask_due = if apart { now + self.period } else { Time::MAX };
    }

    /// Adds up what the pace has allowed.
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

    /// What holds now; whoever comes by at the moment the timer is due does its work.
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
        // A longer gap is that of a flow that had nothing to send.
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
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g, port_40g};

    /// A switch's port of 8 Gb/s, a byte each nanosecond, with d = 10 us: 10,000 bytes a round trip.
    fn context() -> PortContext {
        PortContext { rate: Rate::from_gbps(8), base_rtt: Time::from_us(10), wire_mtu: 1_000, ..port_40g() }
    }

    /// Its first interval begins at time zero.
    fn port_of(config: &RcpConfig) -> RcpPort {
        let mut port = config.build_port(&context()).expect("every port has one");
        port.due = port.slot;
        port
    }

    fn port() -> RcpPort {
        port_of(&RcpConfig::default())
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    fn enqueue(port: &mut RcpPort, now: Time, wire: u32, queue_bytes: u64, rtt_s: f64) {
        let mut header = [f64::INFINITY, rtt_s, 0.0];
        let mut packet = PortPacket { flow: 0, kind: PortPacketKind::Data, wire, header: &mut header, mark: false };
        port.on_enqueue(&PortView { now, queue_bytes }, &mut packet, &mut Actions::default());
    }

    /// The rate that a packet which asks for `asked` bit/s leaves with.
    fn dequeue(port: &mut RcpPort, now: Time, queue_bytes: u64, asked: f64, behind: f64) -> f64 {
        let mut header = [asked, 0.0, behind];
        let mut packet =
            PortPacket { flow: 0, kind: PortPacketKind::Data, wire: 1_000, header: &mut header, mark: false };
        port.on_dequeue(&PortView { now, queue_bytes }, &mut packet, &mut Actions::default());
        header[RATE]
    }

    #[test]
    fn the_rate_follows_spare_capacity_and_queue() {
        let mut port = port();
        // C = 1e9 bytes/s, R = C/2, d = T = 10 us.
        assert!(close(port.rate, 5e8));
        // Idle: 1 + 0.5. Half loaded: 1 + 0.25. Full with a queue of 2,000 bytes: q/d = 2e8, 1 - 0.1.
        assert!(close(port.next_rate(0.0, 0.0), 7.5e8));
        assert!(close(port.next_rate(5e8, 0.0), 6.25e8));
        assert!(close(port.next_rate(1e9, 2_000.0), 4.5e8));
        // Twice the capacity and a queue of a round trip: 1 - 0.5 - 0.5 leaves 0.01 packets of 1,000 bytes in 10 us.
        assert!(close(port.next_rate(2e9, 10_000.0), 1e6));
        // No more than the capacity; and what is full and empty stays as it is.
        port.rate = 9e8;
        assert!(close(port.next_rate(0.0, 0.0), 1e9));
        assert!(close(port.next_rate(1e9, 0.0), 9e8));
        // γ = 0.9: 9e8·(1 + 0.5·(9 - 8.1)/9).
        port.config.gamma = 0.9;
        port.rate = 8e8;
        assert!(close(port.next_rate(8.1e8, 0.0), 8.4e8));
        // T = d/2: half the step.
        port.slot = Time::from_us(5);
        assert!(close(port.next_rate(8.1e8, 0.0), 8.2e8));
    }

    #[test]
    fn intervals_count_arrivals_and_see_the_queue_at_their_end() {
        let mut port = port();
        for us in 0..5 {
            enqueue(&mut port, Time::from_us(2 * us), 1_000, 0, 0.0);
            dequeue(&mut port, Time::from_us(2 * us), 0, f64::INFINITY, 0.0);
        }
        // 5,000 bytes in 10 us: 1 + 0.25.
        assert!(close(dequeue(&mut port, Time::from_us(10), 0, f64::INFINITY, 0.0), 8.0 * 6.25e8));
        // The next: 1,000 bytes of a packet whose last quarter is of the interval after, and 3,000 waiting at the end:
        // 6.25e8·(1 + 0.5·(1 - 0.075) - 0.5·0.3) = 8.203125e8.
        enqueue(&mut port, Time::from_ns(19_250), 1_000, 2_000, 0.0);
        port.catch_up(Time::from_us(20));
        assert!(close(port.rate, 8.203_125e8));
        assert!(close(port.input, 250.0) && port.spill == 0.0);
        // A packet that asks for less, or was given less before, keeps it.
        assert!(close(dequeue(&mut port, Time::from_us(21), 2_000, 1e9, 0.0), 1e9));
    }

    #[test]
    fn acknowledgments_are_input_without_a_header() {
        let mut port = port();
        let mut packet = PortPacket { flow: 0, kind: PortPacketKind::Other, wire: 500, header: &mut [], mark: false };
        let view = PortView { now: Time::from_us(1), queue_bytes: 0 };
        port.on_enqueue(&view, &mut packet, &mut Actions::default());
        port.on_dequeue(&view, &mut packet, &mut Actions::default());
        assert!(close(port.input, 500.0));
    }

    #[test]
    fn a_host_counts_what_its_flows_hold_back() {
        let mut port = RcpConfig::default().build_port(&PortContext { of_host: true, ..context() }).expect("has one");
        port.due = port.slot;
        // Two flows at line rate take turns: y = 2C, and after ten packets 9,000 bytes are held back.
        for us in 0..10 {
            let behind = if us == 0 { 0.0 } else { 1_000.0 };
            dequeue(&mut port, Time::from_us(us), 0, f64::INFINITY, behind);
        }
        assert!(close(port.input, 19_000.0));
        port.catch_up(Time::from_us(10));
        // 5e8·(1 + 0.5·(1 - 1.9) - 0.5·0.9) = 0.1 of 5e8.
        assert!(close(port.rate, 5e7));
    }

    #[test]
    fn in_the_form_of_ns2_the_round_trip_is_measured() {
        let config = RcpConfig { form: RcpForm::Ns2, ..RcpConfig::default() };
        let mut port = port_of(&config);
        // Mean (20·3,000 + 40·1,000)/4,000 = 25 us, longer than d = 10 us and T = d: d becomes the mean.
        enqueue(&mut port, Time::ZERO, 3_000, 0, 20e-6);
        enqueue(&mut port, Time::from_us(4), 1_000, 3_000, 40e-6);
        dequeue(&mut port, Time::from_us(5), 0, 0.0, 0.0);
        port.catch_up(Time::from_us(10));
        assert!(close(port.rtt_s * 1e6, 25.0) && port.slot == Time::from_us(25) && port.due == Time::from_us(35));
        // R: T/d = 10/25 with the new d, y = 4e8: 5e8·(1 + 0.4·0.5·0.6).
        assert!(close(port.rate, 5.6e8));
        // A shorter mean of 10 us: gain (25/25)·0.56·(10/25) = 0.224; 0.224·10 + 0.776·25 = 21.64 us.
        enqueue(&mut port, Time::from_us(12), 1_000, 0, 10e-6);
        port.catch_up(Time::from_us(35));
        assert!(close(port.rtt_s * 1e6, 21.64));
        // No longer than a timeslot.
        port.config.timeslot = Time::from_us(15);
        port.catch_up(Time::from_us(35) + port.slot);
        assert_eq!(port.slot, Time::from_us(15));
    }

    /// An agent that is called at every end of an interval, by a timer.
    struct Ticking(RcpPort);

    impl Ticking {
        fn tick_until(&mut self, now: Time) {
            while self.0.due <= now {
                self.0.update();
            }
        }
    }

    #[test]
    fn making_up_for_updates_gives_the_numbers_of_ticking() {
        for form in [RcpForm::PercPaper, RcpForm::Ns2] {
            for of_host in [false, true] {
                let config = RcpConfig { form, ..RcpConfig::default() };
                let build = || config.build_port(&PortContext { of_host, ..context() }).expect("every port has one");
                let (mut lazy, mut ticking) = (build(), Ticking(build()));
                let mut draws = Draws::new(7, 0);
                let mut now = Time::ZERO;
                for step in 0..2_000 {
                    let u = draws.uniform();
                    // Bursts, gaps of some intervals, and a long silence now and then.
                    let gap_ns = if step % 500 == 499 {
                        1e7
                    } else if step % 50 == 49 {
                        1e6 * u
                    } else {
                        3_000.0 * u
                    };
                    now += Time::from_ps((gap_ns * 1e3) as u64);
                    let queue = if of_host { 0 } else { (draws.uniform() * 5_000.0) as u64 };
                    let (rtt_s, behind) = (10e-6 * (1.0 + draws.uniform()), 500.0 * draws.uniform());
                    ticking.tick_until(now);
                    for port in [&mut lazy, &mut ticking.0] {
                        enqueue(port, now, 1_000, queue, rtt_s);
                        dequeue(port, now, queue, f64::INFINITY, behind);
                    }
                    let (a, b) = (&lazy, &ticking.0);
                    assert_eq!((a.rate, a.rtt_s, a.slot, a.due), (b.rate, b.rtt_s, b.slot, b.due), "{form:?} {step}");
                }
            }
        }
    }

    #[test]
    fn a_year_of_silence_is_made_up_for() {
        let mut port = port();
        assert!(close(dequeue(&mut port, Time::from_ms(86_400_000 * 200), 0, f64::INFINITY, 0.0), 8e9));
        assert!(Time::from_ms(86_400_000 * 200) < port.due);
    }

    #[test]
    fn nothing_is_sent_until_the_syn_is_back() {
        let mut rcp = RcpConfig::default().build(&flow_25g());
        let mut header = [0.0; 3];
        // 5 x 8 us; then twice as long.
        let start = rcp.on_start(Time::ZERO);
        assert_eq!((start.rate, start.timer), (Rate::ZERO, Time::from_us(40)));
        assert!(rcp.control_packet(Time::ZERO, 1_000, &mut header) && header == [f64::INFINITY, 0.0, 0.0]);
        assert!(!rcp.control_packet(Time::ZERO, 1_000, &mut header), "one is enough");
        assert_eq!(rcp.on_timer(Time::from_us(39)).timer, Time::from_us(40));
        assert_eq!(rcp.on_timer(Time::from_us(40)).timer, Time::from_us(120));
        assert!(rcp.control_packet(Time::from_us(40), 1_000, &mut header), "the SYN again");
        let a = rcp.on_control(Time::from_us(48), &[5e9, 0.0, 0.0]).expect("a rate");
        assert_eq!((a.rate, a.timer, a.cwnd), (Rate::from_gbps(5), Time::MAX, Bytes::MAX));
        assert!(close(rcp.srtt_s * 1e6, 8.0));
        let a = rcp.on_ack(&Ack { header: &[7e9, 0.0, 0.0], ..acked(1_000, 16_000, 2_000) });
        assert_eq!(a.rate, Rate::from_gbps(7));
        // 8 + (16 - 8)/8.
        assert!(close(rcp.srtt_s * 1e6, 9.0));
        assert_eq!(rcp.on_ack(&Ack { header: &[4e10, 0.0, 0.0], ..acked(1_000, 8_000, 2_000) }).rate, rcp.line_rate);
        assert_eq!(rcp.on_loss(Time::from_ms(2), Loss::Timeout).rate, rcp.line_rate);
    }

    #[test]
    fn a_slow_flow_asks_every_round_trip() {
        let mut rcp = RcpConfig::default().build(&flow_25g());
        let mut header = [0.0; 3];
        rcp.on_start(Time::ZERO);
        rcp.control_packet(Time::ZERO, 1_000, &mut header);
        // 1,056 bytes at 1 Gb/s are 8.448 us, more than the base RTT.
        let a = rcp.on_control(Time::from_us(8), &[1e9, 0.0, 0.0]).expect("a rate");
        assert_eq!(a.timer, Time::from_us(16));
        assert_eq!(rcp.on_timer(Time::from_us(16)).timer, Time::from_us(56));
        assert!(rcp.control_packet(Time::from_us(16), 1_000, &mut header) && header[RTT] > 0.0);
        let a = rcp.on_control(Time::from_us(24), &[2e9, 0.0, 0.0]).expect("a rate");
        assert_eq!(a.timer, Time::MAX, "4.2 us are less");
        rcp.ask(Time::from_us(30));
        assert!(!rcp.control_packet(Time::from_us(30), 0, &mut header), "nothing left to send");
    }

    #[test]
    fn a_flow_says_how_far_it_is_behind_its_pace() {
        let mut rcp = RcpConfig::default().build(&flow_25g());
        let behind_after = |rcp: &mut Rcp, now_ns: u64| {
            let mut header = [0.0; 3];
            rcp.on_sent(Time::from_ns(now_ns), Bytes::new(1_000));
            rcp.stamp(Time::from_ns(now_ns), &mut header);
            header[BEHIND]
        };
        rcp.on_start(Time::ZERO);
        // A byte each nanosecond.
        rcp.on_control(Time::from_us(8), &[8e9, 0.0, 0.0]);
        assert!(behind_after(&mut rcp, 9_000).abs() < 1e-6, "the first packet");
        assert!(behind_after(&mut rcp, 10_000).abs() < 1e-6, "on time");
        assert!((behind_after(&mut rcp, 13_000) - 2_000.0).abs() < 1e-6, "2 us late");
        // Half the pace after 0.5 us: 500 + 750 bytes in 2 us.
        rcp.on_control(Time::from_ns(13_500), &[4e9, 0.0, 0.0]);
        assert!((behind_after(&mut rcp, 15_000) - 250.0).abs() < 1e-6);
        // A long gap counts for a base RTT: 8 us of 0.5 bytes a nanosecond.
        assert!((behind_after(&mut rcp, 1_000_000) - 4_000.0).abs() < 1e-6);
    }
}
