//! `flowtune`: the sender of Flowtune. J. Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet Control for Datacenter
//! Networks", MIT-CSAIL-TR-2016-011, sections 2 and 6.2. A central allocator sets the rate of each flow; before its
//! first message, and when it is silent, the flow is under plain TCP. [`Endpoint`] has the messages of a host to the
//! allocator and the lifetime of rates; the optimiser is part of the allocator.
//!
//! Notices carry the allocated rate in bit/s on the wire in their first value. Zero means that the allocator is silent,
//! and its rates have expired.
//!
//! Readings (F12 of the resolutions): before the first rate a flow is NewReno with its first window of ten segments.
//! With a rate its window is open and only the rate limits it; losses are repaired and change nothing. When rates
//! expire, TCP continues from the window that gives the last rate in a round-trip time, in congestion avoidance ("using
//! the previously allocated rates as a starting point", section 2). Rates outlive their flowlet by up to a lifetime; a
//! flowlet that begins later begins as TCP does after idleness (RFC 5681 section 4.1).

mod endpoint;

use fairrate_units::{Bytes, Rate, Time};

pub use self::endpoint::{Endpoint, Grant, Message};
use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::needs::{FeedbackNeeds, Needs};
use crate::newreno::{NewReno, NewRenoConfig};
use crate::port::{NoPort, Notice};

algorithm_config! {
    /// Parameters of Flowtune's senders. The allocator's are the scenario's.
    pub struct FlowtuneConfig {
        include /** TCP, while there is no rate. */ tcp: NewRenoConfig;
    }
}

impl AlgorithmSpec for FlowtuneConfig {
    type Controller = Flowtune;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        // An unlimited window cannot be reduced in proportion.
        let tcp = self.tcp.needs();
        Needs { feedback: FeedbackNeeds { allocator: true, weights: true, prr: false, ..tcp.feedback }, ..tcp }
    }
    fn build(&self, flow: &FlowContext) -> Flowtune {
        Flowtune {
            tcp: self.tcp.build(flow),
            line: flow.line_rate,
            payload_share: flow.mtu.as_f64() / flow.wire_mtu.as_f64().max(1.0),
            srtt: flow.path_base_rtt,
            rate: None,
        }
    }
}

/// A flow under Flowtune.
#[derive(Clone, Debug)]
pub struct Flowtune {
    tcp: NewReno,
    line: Rate,
    /// Payload of a full packet over its bytes on the wire.
    payload_share: f64,
    /// Round-trip time, smoothed as in RFC 6298; the path's base RTT before the first sample.
    srtt: Time,
    /// The allocator's rate, until it expires.
    rate: Option<Rate>,
}

impl Flowtune {
    /// Updates the smoothed round-trip time by RFC 6298 eq. 2.3.
    fn smooth(&mut self, rtt: Time) {
        self.srtt = Time::from_ps((self.srtt.as_ps() / 8).saturating_mul(7).saturating_add(rtt.as_ps() / 8));
    }
}

impl Controller for Flowtune {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.tcp.on_start(now)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.smooth(ack.rtt);
        if self.rate.is_none() { self.tcp.on_ack(ack) } else { self.on_timer(ack.now) }
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        if self.rate.is_none() { self.tcp.on_loss(now, loss) } else { self.on_timer(now) }
    }
    fn on_outstanding(&mut self, in_flight: u64, snd_nxt: u64) {
        self.tcp.on_outstanding(in_flight, snd_nxt);
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.on_timer(now)
    }
    fn on_idle(&mut self, now: Time, timeouts: u32) -> Option<Allowance> {
        if self.rate.is_none() { self.tcp.on_idle(now, timeouts) } else { None }
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        match self.rate {
            Some(rate) => Allowance { cwnd: Bytes::MAX, rate, timer: Time::MAX },
            None => self.tcp.on_timer(now),
        }
    }
    fn on_notice(&mut self, now: Time, notice: &Notice) -> Option<Allowance> {
        let bps = notice.values[0];
        if 0.0 < bps {
            // A rate of at least one bit per second: zero would stop the flow.
            self.rate = Some(Rate::from_bps((bps as u64).max(1)).min(self.line));
        } else if let Some(rate) = self.rate.take() {
            // The rate counts bytes on the wire, the window payload.
            let payload = rate.bytes_in(self.srtt).as_f64() * self.payload_share;
            self.tcp.resume(Bytes::new(payload as u64));
        }
        Some(self.on_timer(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g};

    fn told(flow: &mut Flowtune, bps: f64) -> Allowance {
        let values = [bps, 0.0, 0.0, 0.0];
        flow.on_notice(Time::ZERO, &Notice { flow: 0, port: 0, values }).expect("rates are obeyed at once")
    }

    #[test]
    fn tcp_then_the_rate_then_tcp_from_there() {
        let mut flow = FlowtuneConfig::default().build(&flow_25g());
        assert_eq!(flow.on_start(Time::ZERO).cwnd, Bytes::new(10_000));
        let open = told(&mut flow, 5e9);
        assert_eq!((open.cwnd, open.rate), (Bytes::MAX, Rate::from_gbps(5)));
        // Losses change nothing while a rate is in force.
        assert_eq!(flow.on_loss(Time::ZERO, Loss::Timeout), open);
        assert_eq!(flow.on_ack(&acked(1_000, 8_000, 9_000)), open);
        // 5 Gb/s over the 8 us of the path are 5,000 bytes, 1,000 of each 1,056 payload; then a segment per window.
        let tcp = told(&mut flow, 0.0);
        assert_eq!((tcp.cwnd, tcp.rate), (Bytes::new(4_734), flow_25g().line_rate));
        // 1,000 x 1,000/4,734 = 211.
        let ack = Ack { newly_acked: 1_000, in_flight: 4_000, ..acked(2_000, 8_000, 7_000) };
        assert_eq!(flow.on_ack(&ack).cwnd, Bytes::new(4_945));
        // The silence of an allocator that had sent no rate changes nothing, and rates stay within the NIC's.
        assert_eq!(told(&mut flow, 0.0).cwnd, Bytes::new(4_945));
        assert_eq!(told(&mut flow, 1e12).rate, flow_25g().line_rate);
    }

    #[test]
    fn idleness_is_tcps_without_a_rate() {
        let mut flow = FlowtuneConfig::default().build(&flow_25g());
        told(&mut flow, 25e9);
        assert_eq!(flow.on_idle(Time::ZERO, 9), None);
        // 25 Gb/s over 8 us are 25,000 bytes on the wire; after idleness it is the first window again.
        assert_eq!(told(&mut flow, 0.0).cwnd, Bytes::new(23_674));
        assert_eq!(flow.on_idle(Time::ZERO, 9).map(|a| a.cwnd), Some(Bytes::new(10_000)));
    }
}
