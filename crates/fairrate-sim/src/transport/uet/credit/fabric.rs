//! A receiver's share of its rate of grants, by what meets inside the network (uet-htsim's `oversubscribed_cc.cpp`).
//!
//! The simulator decides by a clock of each host. Here a host catches up with its clock when a packet comes or a turn
//! is taken: nothing else reads the share or changes what it goes by.

use fairrate_control::credits::FabricControl;
use fairrate_units::Time;

use crate::ids::HostId;
use crate::rng::{Purpose, Stream};

/// Time between two decisions, in base RTTs: a mean, and the width of the interval around it.
const PERIOD: (f64, f64) = (1.5, 0.75);
/// Least share in any network.
const LEAST: f64 = 0.01;

/// A packet that comes to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Arrival {
    /// Whole, and marked if `true`; requests for credit are never marked.
    Whole(bool),
    /// Cut, and at the last switch if `true`.
    Cut(bool),
}

/// The share of a receiver and what has come since its last decision.
#[derive(Debug)]
pub(in super::super) struct FabricShare {
    control: FabricControl,
    floor: f64,
    base_rtt_ps: f64,
    random: Stream,
    decides_ps: u64,
    share: f64,
    /// Marked share of packets, as an average.
    marked: f64,
    /// Number of increases in a row.
    n_increases: i32,
    n_packets: u32,
    n_marked: u32,
    n_cut_last: u32,
    n_cut_inside: u32,
}

impl FabricShare {
    /// Returns the share of `host` in a network with this `oversubscription`; `None` if it is not controlled there.
    pub(in super::super) fn new(
        control: FabricControl,
        oversubscription: f64,
        base_rtt: Time,
        seed: u64,
        host: HostId,
    ) -> Option<Self> {
        if control.only_oversubscribed && oversubscription <= 1.0 {
            return None;
        }
        let mut share = Self {
            control,
            floor: (control.floor / oversubscription).max(LEAST),
            base_rtt_ps: base_rtt.as_ps() as f64,
            random: Stream::new(seed, u64::from(host.0), Purpose::Grants),
            decides_ps: 0,
            share: 1.0,
            marked: 0.0,
            n_increases: 0,
            n_packets: 0,
            n_marked: 0,
            n_cut_last: 0,
            n_cut_inside: 0,
        };
        share.decides_ps = share.period_ps();
        Some(share)
    }

    /// Draws the time until the next decision.
    fn period_ps(&mut self) -> u64 {
        let (mean, width) = PERIOD;
        ((mean + width * (self.random.uniform() - 0.5)) * self.base_rtt_ps) as u64
    }

    /// Records a packet that comes at `now_ps`.
    pub(in super::super) fn note(&mut self, arrival: Arrival, now_ps: u64) {
        self.catch_up(now_ps);
        self.n_packets += 1;
        match arrival {
            Arrival::Whole(is_marked) => self.n_marked += u32::from(is_marked),
            Arrival::Cut(true) => self.n_cut_last += 1,
            Arrival::Cut(false) => self.n_cut_inside += 1,
        }
    }

    /// Returns the share of the rate at `now_ps`.
    pub(in super::super) fn at(&mut self, now_ps: u64) -> f64 {
        self.catch_up(now_ps);
        self.share
    }

    fn catch_up(&mut self, now_ps: u64) {
        while self.decides_ps <= now_ps {
            // Nothing has come, and more such decisions change nothing: the clock goes on from now.
            let is_at_rest = self.n_packets == 0 && self.share == 1.0 && self.marked < 1e-9;
            self.decide();
            self.decides_ps = if is_at_rest { now_ps } else { self.decides_ps } + self.period_ps().max(1);
        }
    }

    fn decide(&mut self) {
        let FabricControl { increase, decrease, target, gain, .. } = self.control;
        let n_whole = self.n_packets - self.n_cut_last - self.n_cut_inside;
        let marked = if n_whole == 0 { 0.0 } else { f64::from(self.n_marked) / f64::from(n_whole) };
        self.marked = self.marked * (1.0 - gain) + gain * marked;
        let is_crowded = target < self.marked && 0.0 < decrease;
        if 0 < self.n_cut_inside {
            self.share -= f64::from(self.n_cut_inside) / f64::from(self.n_packets);
        }
        if is_crowded {
            self.share *= 1.0 - (self.marked - target) * decrease;
        }
        if 0 < self.n_cut_inside || is_crowded {
            self.n_increases = 0;
        } else {
            let doublings = if self.n_marked == 0 { self.n_increases } else { 0 };
            self.share += increase * f64::exp2(f64::from(doublings));
            self.n_increases = self.n_increases.saturating_add(1);
        }
        self.share = self.share.clamp(self.floor, 1.0);
        (self.n_packets, self.n_marked, self.n_cut_last, self.n_cut_inside) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use fairrate_control::AlgorithmSpec;
    use fairrate_control::rccc::RcccConfig;

    use super::*;

    const RTT: Time = Time::from_us(10);

    fn share(oversubscription: f64) -> Option<FabricShare> {
        let credit = RcccConfig::default().needs().feedback.credit.expect("receivers give credit");
        let control = credit.fabric.expect("it is on where networks are oversubscribed");
        FabricShare::new(control, oversubscription, RTT, 1, HostId(3))
    }

    /// Lets `share` decide once after `arrivals`, and returns the result.
    fn after(share: &mut FabricShare, arrivals: &[(Arrival, u32)]) -> f64 {
        let now_ps = share.decides_ps - 1;
        for &(arrival, n) in arrivals {
            (0..n).for_each(|_| share.note(arrival, now_ps));
        }
        share.at(now_ps + 1)
    }

    #[test]
    fn only_oversubscribed_networks_are_controlled() {
        assert!(share(1.0).is_none());
        assert!((share(4.0).expect("it is controlled").floor - 0.225).abs() < 1e-12);
        assert!((share(100.0).expect("it is controlled").floor - 0.01).abs() < 1e-12);
    }

    /// Two of ten packets were cut inside: the share falls by a fifth. Then all are marked: averages of 0.5 and 0.75
    /// are above 0.3 by 0.2 and 0.45. Then increases of 0.01, twice and four times as much while nothing is marked; of
    /// 0.01 alone with marks.
    #[test]
    fn shares_follow_cuts_and_marks() {
        let mut share = share(4.0).expect("it is controlled");
        let is = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} is {expected}");
        is(after(&mut share, &[(Arrival::Whole(false), 5), (Arrival::Cut(true), 3), (Arrival::Cut(false), 2)]), 0.8);
        is(after(&mut share, &[(Arrival::Whole(true), 10)]), 0.8 * 0.9);
        is(after(&mut share, &[(Arrival::Whole(true), 10)]), 0.8 * 0.9 * 0.775);
        // The average is 0.375, then 0.1875.
        is(after(&mut share, &[(Arrival::Whole(false), 10)]), 0.558 * (1.0 - 0.075 * 0.5));
        let low = 0.558 * 0.9625;
        is(after(&mut share, &[(Arrival::Whole(false), 10)]), low + 0.01);
        is(after(&mut share, &[]), low + 0.03);
        is(after(&mut share, &[(Arrival::Whole(false), 99), (Arrival::Whole(true), 1)]), low + 0.04);
        is(after(&mut share, &[]), low + 0.12);
        // Packets that were cut at the last switch are not the network's.
        is(after(&mut share, &[(Arrival::Cut(true), 10)]), low + 0.28);
        is(after(&mut share, &[(Arrival::Cut(false), 10)]), 0.225);
    }

    /// A second without packets is not walked through in periods of 15 us once the share is whole.
    #[test]
    fn idle_receivers_come_to_rest() {
        let mut share = share(2.0).expect("it is controlled");
        after(&mut share, &[(Arrival::Cut(false), 10)]);
        let mut draws = share.random.clone();
        share.at(1_000_000_000_000);
        let n_draws = (0..200).find(|_| draws.uniform().to_bits() == share.random.clone().uniform().to_bits());
        assert!(n_draws.is_some(), "few decisions were made");
        assert_eq!(share.share.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn decisions_are_a_quarter_early_or_late() {
        let mut share = share(2.0).expect("it is controlled");
        let periods: Vec<u64> = (0..1000).map(|_| share.period_ps()).collect();
        let (least, most) = (periods.iter().min().expect("drawn"), periods.iter().max().expect("drawn"));
        assert!((11_250_000..11_350_000).contains(least) && (18_650_000..18_750_000).contains(most), "{least}..{most}");
    }
}
