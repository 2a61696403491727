//! The mean and the deviation of sources' rates, each taken as a source sends a packet.

use fairrate_sim::{SenderEvent, SenderStep};
use fairrate_units::Rate;

use crate::moments::Moments;

/// Rates of the sources of a run at all packets that they send while they are limited.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// The rate from which a source is not limited: that of its link.
    line_rate: Rate,
    n_unlimited: u64,
    mbps: Moments,
}

impl Rates {
    /// Returns an empty distribution of rates below `line_rate`.
    pub fn below(line_rate: Rate) -> Self {
        Self { line_rate, n_unlimited: 0, mbps: Moments::default() }
    }

    /// Adds the rate of a source, if `event` is a packet that it sends.
    pub fn add(&mut self, event: &SenderEvent) {
        let SenderStep::Send { rate, .. } = event.step else { return };
        if self.line_rate <= rate {
            self.n_unlimited += 1;
            return;
        }
        self.mbps.add(rate.as_bps() as f64 * 1e-6);
    }

    /// Returns the mean in Mb/s.
    pub fn mean_mbps(&self) -> f64 {
        self.mbps.mean()
    }

    /// Returns the standard deviation in Mb/s.
    pub fn deviation_mbps(&self) -> f64 {
        self.mbps.deviation()
    }

    /// Returns the share of packets that were sent by a source with a limit.
    pub fn limited_share(&self) -> f64 {
        self.mbps.len() as f64 / (self.mbps.len() + self.n_unlimited) as f64
    }
}

#[cfg(test)]
mod tests {
    use fairrate_sim::{Cause, FlowId};
    use fairrate_units::Time;

    use super::*;

    /// Senders at 1, 3 and 40 Gb/s have a mean of 2 Gb/s, as the last is at its link's rate; one that only may send
    /// does not count.
    #[test]
    fn rates_are_those_of_packets_from_limited_sources() {
        let mut rates = Rates::below(Rate::from_gbps(40));
        let send = |gbps: u64| SenderStep::Send {
            seq: 0,
            data_seq: 0,
            payload: 1,
            paced_until: Time::ZERO,
            rate: Rate::from_gbps(gbps),
        };
        for step in [send(1), SenderStep::Open(Cause::Start), send(3), send(40), SenderStep::TimedOut] {
            rates.add(&SenderEvent { t: Time::ZERO, flow: FlowId(0), lane: FlowId(0), step });
        }
        assert_eq!((rates.mean_mbps(), rates.deviation_mbps()), (2_000.0, 1_000.0));
        assert!((rates.limited_share() - 2.0 / 3.0).abs() < 1e-12);
    }
}
