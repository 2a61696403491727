//! The means and the deviations of sources' rates, each taken as a source sends a packet or acts on a notification.

use std::collections::BTreeMap;

use fairrate_sim::{PortId, SenderEvent, SenderStep};
use fairrate_units::{Rate, Time};

use crate::moments::Moments;

/// Rates of the sources of a run while they are limited, in Mb/s.
#[derive(Clone, Debug)]
pub struct Rates {
    /// The rate from which a source is not limited: that of its link.
    line_rate: Rate,
    /// The end of the warm-up.
    warm_at: Time,
    /// Number of packets from sources without a limit.
    n_unlimited: u64,
    /// The rate of a source at each packet that it sends.
    sent: Moments,
    /// The rate of a source after each notification on which it acts.
    notified: BTreeMap<Notification, Moments>,
}

/// The origin of a notification on which a source acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notification {
    /// The port that sent it; `None` if a receiver did.
    pub by: Option<PortId>,
    /// If it came after the warm-up.
    pub is_late: bool,
}

impl Rates {
    /// Returns an empty distribution of rates below `line_rate`, in a network that is warm at `warm_at`.
    pub fn below(line_rate: Rate, warm_at: Time) -> Self {
        Self { line_rate, warm_at, n_unlimited: 0, sent: Moments::default(), notified: BTreeMap::new() }
    }

    /// Adds the rate of a source, if `event` is a packet that it sends or a notification on which it acts.
    pub fn add(&mut self, event: &SenderEvent) {
        let mbps = |rate: Rate| rate.as_bps() as f64 * 1e-6;
        match event.step {
            SenderStep::Send { rate, .. } if rate < self.line_rate => self.sent.add(mbps(rate)),
            SenderStep::Send { .. } => self.n_unlimited += 1,
            SenderStep::Notified { rate, by } if rate < self.line_rate => {
                self.notified.entry(Notification { by, is_late: self.warm_at <= event.t }).or_default().add(mbps(rate));
            }
            _ => {}
        }
    }

    /// Returns the rates at all packets.
    pub fn sent(&self) -> &Moments {
        &self.sent
    }

    /// Returns the share of packets that were sent by a source with a limit.
    pub fn limited_share(&self) -> f64 {
        self.sent.len() as f64 / (self.sent.len() + self.n_unlimited) as f64
    }

    /// Returns the rates after the notifications for which `counts` returns `true`.
    pub fn notified(&self, counts: impl Fn(Notification) -> bool) -> Moments {
        let mut all = Moments::default();
        self.notified.iter().filter(|&(&of, _)| counts(of)).for_each(|(_, moments)| all.merge(moments));
        all
    }
}

#[cfg(test)]
mod tests {
    use fairrate_sim::{Cause, FlowId};

    use super::*;

    fn of(steps: impl IntoIterator<Item = SenderStep>) -> Rates {
        let mut rates = Rates::below(Rate::from_gbps(40), Time::from_ns(3));
        for (t, step) in (0..).map(Time::from_ns).zip(steps) {
            rates.add(&SenderEvent { t, flow: FlowId(0), lane: FlowId(0), step });
        }
        rates
    }

    /// Senders at 1, 3 and 40 Gb/s have a mean of 2 Gb/s, as the last is at its link's rate; one that only may send
    /// does not count.
    #[test]
    fn rates_are_those_of_packets_from_limited_sources() {
        let send = |gbps: u64| SenderStep::Send {
            seq: 0,
            data_seq: 0,
            payload: 1,
            paced_until: Time::ZERO,
            rate: Rate::from_gbps(gbps),
        };
        let rates = of([send(1), SenderStep::Open(Cause::Start), send(3), send(40), SenderStep::TimedOut]);
        assert_eq!((rates.sent().mean(), rates.sent().deviation()), (2_000.0, 1_000.0));
        assert!((rates.limited_share() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(rates.notified(|_| true).len(), 0);
    }

    #[test]
    fn rates_after_notifications_are_kept_by_port_and_time() {
        let notified =
            |gbps: u64, by: Option<u32>| SenderStep::Notified { rate: Rate::from_gbps(gbps), by: by.map(PortId) };
        let rates = of([notified(1, Some(7)), notified(3, Some(7)), notified(8, Some(9)), notified(4, None)]);
        let of_port = rates.notified(|of| of.by == Some(PortId(7)));
        assert_eq!((of_port.mean(), of_port.deviation()), (2_000.0, 1_000.0));
        let late = rates.notified(|of| of.is_late);
        assert_eq!((late.len(), late.mean()), (1, 4_000.0));
        assert_eq!((rates.notified(|_| true).mean(), rates.sent().len()), (4_000.0, 0));
        assert_eq!(of([notified(40, Some(7))]).notified(|_| true).len(), 0);
    }
}
