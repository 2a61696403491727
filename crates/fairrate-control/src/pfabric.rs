//! `pfabric`: the rate control of pFabric's hosts. M. Alizadeh, S. Yang, M. Sharif, S. Katti, N. McKeown, B. Prabhakar,
//! S. Shenker, "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, section 4.2. The queues of switches
//! decide which packets they send and drop; this module has the senders, and the priority that packets carry.
//!
//! | paper        | here        | unit    |
//! |--------------|-------------|---------|
//! | cwnd         | `cwnd`      | packets |
//! | ssthresh     | `ssthresh`  | packets |
//! | remaining flow size | header word 0 | bytes |
//!
//! Readings: the transport detects losses by its retransmission timer alone ([`FeedbackNeeds::rto_rtts`]), which is
//! fixed: a packet of a flow may wait for long behind other flows, so gaps are weak evidence. Selective acknowledgments
//! prevent that data which has arrived is sent again. The paper grows the window as TCP does and bounds it; the public
//! simulator's bound is 15 packets where a bandwidth-delay product is 12, which is the default here. Growth is a packet
//! for each acknowledgment of new data. A flow without end has the lowest priority. A probe is a header that carries
//! the flow's priority; its reply, or any other acknowledgment, ends probing.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds, Queueing, WireNeeds};
use crate::port::{HeaderWords, NoPort};

/// Wire bytes of a probe: the size of an acknowledgment.
const PROBE: Bytes = Bytes::new(60);

algorithm_config! {
    /// Parameters of pFabric.
    pub struct PFabricConfig {
        /// First window in bandwidth-delay products of the network (section 4.2), rounded up to whole packets.
        initial_window: f64 = 1.0, in 0.001..=1_000.0;
        /// Largest window, likewise (public simulator: 15 packets where the first window is 12).
        max_window: f64 = 1.25, in 0.001..=1_000.0;
        /// Retransmission timeout in base round-trip times, which never grows (section 4.2: about 3).
        timeout_rtts: f64 = 3.0, in 0.1..=10_000.0;
        /// Timeouts in a row after which only probes are sent until one is answered (section 4.2: 5).
        probe_after: u32 = 5, in 1.0..=1_000_000.0;
    }
}

impl AlgorithmSpec for PFabricConfig {
    type Controller = PFabric;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { queueing: Queueing::Priorities, ..NetworkNeeds::NOTHING },
            wire: WireNeeds {
                header: HeaderWords { fixed: 1, per_hop: 0 },
                control: Some(PROBE),
                // Probes have the priority of their flow.
                control_with_data: true,
                ..WireNeeds::NOTHING
            },
            feedback: FeedbackNeeds { rto_rtts: Some(self.timeout_rtts), ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> PFabric {
        let bdp = flow.line_rate.bytes_in(flow.base_rtt).as_f64() / flow.wire_mtu.as_f64();
        let packets = |bdps: f64| libm::ceil(bdps * bdp).max(1.0);
        let first = packets(self.initial_window);
        PFabric {
            line: flow.line_rate,
            mss: flow.mtu.as_f64(),
            size: flow.size,
            acked: 0,
            cwnd: first,
            max: packets(self.max_window).max(first),
            ssthresh: f64::INFINITY,
            timeouts: 0,
            probe_after: self.probe_after,
            probe_due: false,
        }
    }
}

/// A flow under pFabric.
#[derive(Clone, Debug)]
pub struct PFabric {
    line: Rate,
    mss: f64,
    size: Bytes,
    acked: u64,
    cwnd: f64,
    max: f64,
    ssthresh: f64,
    /// Number of consecutive timeouts.
    timeouts: u32,
    probe_after: u32,
    probe_due: bool,
}

impl PFabric {
    fn is_probing(&self) -> bool {
        self.probe_after <= self.timeouts
    }

    /// Ends probing, because an acknowledgment or reply shows that packets get through.
    fn resume(&mut self) {
        (self.timeouts, self.probe_due) = (0, false);
    }

    /// Grows the window: slow start, then a packet per window, up to the bound.
    fn grow(&mut self) {
        let step = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = (self.cwnd + step).min(self.max);
    }

    /// Returns the bytes not yet acknowledged, the packet's priority: fewer bytes are more urgent.
    fn remaining(&self) -> f64 {
        if self.size == Bytes::MAX { f64::MAX } else { self.size.as_u64().saturating_sub(self.acked) as f64 }
    }

    fn allowance(&self) -> Allowance {
        let rate = if self.is_probing() { Rate::ZERO } else { self.line };
        Allowance { cwnd: Bytes::new((self.cwnd * self.mss) as u64), rate, timer: Time::MAX }
    }
}

impl Controller for PFabric {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.resume();
        self.acked = ack.ack_seq;
        if 0 < ack.newly_acked {
            self.grow();
        }
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, loss: Loss) -> Allowance {
        if loss == Loss::Timeout {
            self.timeouts = self.timeouts.saturating_add(1);
            self.ssthresh = (self.cwnd / 2.0).max(2.0);
            self.cwnd = 1.0;
            self.probe_due = self.is_probing();
        }
        self.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_control(&mut self, _: Time, _: &[f64]) -> Option<Allowance> {
        self.resume();
        Some(self.allowance())
    }
    fn stamp(&mut self, _: Time, header: &mut [f64]) {
        header[0] = self.remaining();
    }
    fn control_packet(&mut self, _: Time, _: u64, header: &mut [f64]) -> bool {
        header[0] = self.remaining();
        std::mem::take(&mut self.probe_due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g};

    fn flow(size: u64) -> PFabric {
        PFabricConfig::default().build(&FlowContext { size: Bytes::new(size), ..flow_25g() })
    }

    #[test]
    fn the_window_by_hand() {
        // 25,000 bytes are 23.7 packets of 1,056, so 24, and 1.25 of that product are 29.6, so 30.
        let mut flow = flow(1_000_000);
        assert_eq!(flow.on_start(Time::ZERO).cwnd, Bytes::new(24_000));
        let ack = acked(1_000, 8_000, 24_000);
        assert_eq!(flow.on_ack(&ack).cwnd, Bytes::new(25_000));
        (0..9).for_each(|_| _ = flow.on_ack(&ack));
        assert_eq!(flow.cwnd, 30.0);
        // Acknowledgments without new data do not count, and gaps change nothing.
        flow.on_loss(Time::ZERO, Loss::Timeout);
        assert_eq!((flow.cwnd, flow.ssthresh), (1.0, 15.0));
        flow.on_ack(&Ack { newly_acked: 0, ..ack });
        assert_eq!(flow.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(1_000));
        // Slow start to 15, then a packet per window: 15 + 1/15.
        (0..15).for_each(|_| _ = flow.on_ack(&ack));
        assert_eq!(flow.cwnd, 15.0 + 1.0 / 15.0);
        // Down to 2 at least.
        (0..2).for_each(|_| _ = flow.on_loss(Time::ZERO, Loss::Timeout));
        assert_eq!((flow.cwnd, flow.ssthresh), (1.0, 2.0));
    }

    #[test]
    fn packets_carry_what_is_left() {
        let mut header = [0.0];
        let mut flow = flow(100_000);
        flow.stamp(Time::ZERO, &mut header);
        assert_eq!(header, [100_000.0]);
        flow.on_ack(&acked(16_000, 8_000, 40_000));
        flow.stamp(Time::ZERO, &mut header);
        assert_eq!(header, [84_000.0]);
    }

    #[test]
    fn five_timeouts_lead_to_probes_and_an_answer_out_of_them() {
        let mut flow = flow(100_000);
        let mut header = [0.0];
        for n in 1..8 {
            let rate = flow.on_loss(Time::ZERO, Loss::Timeout).rate;
            assert_eq!(rate == Rate::ZERO, 5 <= n);
            assert_eq!(flow.control_packet(Time::ZERO, 0, &mut header), 5 <= n);
            assert!(!flow.control_packet(Time::ZERO, 0, &mut header), "one probe a timeout");
        }
        assert_eq!(header, [100_000.0]);
        let answer = flow.on_control(Time::ZERO, &header).expect("it sends again");
        assert_eq!((answer.rate, answer.cwnd), (Rate::from_gbps(25), Bytes::new(1_000)));
        (0..5).for_each(|_| _ = flow.on_loss(Time::ZERO, Loss::Timeout));
        let allowance = flow.on_ack(&Ack { newly_acked: 0, ..acked(1_000, 8_000, 24_000) });
        assert!(Rate::ZERO < allowance.rate && !flow.control_packet(Time::ZERO, 0, &mut header));
    }
}
