//! The common parts of PowerTCP (Alg. 1) and θ-PowerTCP (Alg. 2): the smoothing of power and UPDATEWINDOW, the control
//! law of eq. (7), in the paper's window form and in the rate form of the ns-3 artifact.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::choice;
use crate::controller::{Ack, Allowance, FlowContext};

choice! {
    /// The quantity that the control law divides by power.
    pub enum Reference {
        /// The window in force when the acknowledged packet was sent; the state is a window.
        WindowAtSend = "window-at-send",
        /// A rate set once per round trip; every acknowledgment applies a new rate computed from it.
        RatePerRtt = "rate-per-rtt",
    }
}

choice! {
    /// The interval between updates of the control law. Power is always measured on every acknowledgment.
    pub enum UpdateInterval {
        /// On every acknowledgment.
        PerAck = "per-ack",
        /// Once per round trip.
        PerRtt = "per-rtt",
    }
}

choice! {
    /// The treatment of the smoothed power when the rate of a port has changed since the last record.
    pub enum RateChange {
        /// The power is smoothed as always.
        Smooth = "smooth",
        /// The smoothed power restarts with the power measured now, since its old value is that of another link.
        Fresh = "fresh",
    }
}

choice! {
    /// The first value of the smoothed power.
    pub enum InitialPower {
        /// The first sample.
        FirstSample = "first-sample",
        /// The value 1, the power of a full link without a queue.
        One = "one",
    }
}

choice! {
    /// The reference for a flow's first acknowledgment, which has no acknowledgment before it.
    pub enum FirstAck {
        /// No reference: the first acknowledgment is only stored.
        Store = "store",
        /// Zeros, as if there were a record at time zero (the ns-3 artifact as published, its memory zeroed): means
        /// since then replace slopes, and the first decision depends on the absolute time.
        ZeroHistory = "zero-history",
    }
}

/// The smoothed power Γ_smooth.
#[derive(Clone, Debug)]
pub(crate) struct SmoothedPower {
    initial: Option<f64>,
    value: Option<f64>,
}

impl SmoothedPower {
    pub(crate) fn new(initial: InitialPower) -> Self {
        let initial = (initial == InitialPower::One).then_some(1.0);
        Self { initial, value: initial }
    }

    /// Updates and returns Γ_smooth ← (Γ_smooth·(τ − Δt) + Γ_norm·Δt)/τ, with Δt at most τ (Alg. 1 line 24, Alg. 2 line
    /// 14).
    pub(crate) fn sample(&mut self, power: f64, dt: f64, tau: f64) -> f64 {
        let dt = dt.min(tau);
        let smoothed = self.value.map_or(power, |old| (old * (tau - dt) + power * dt) / tau);
        self.value = Some(smoothed);
        smoothed
    }

    pub(crate) fn forget(&mut self) {
        self.value = self.initial;
    }
}

/// Smallest power by which the law divides: without floors in the configuration power can be zero.
const LEAST_POWER: f64 = 1e-9;

/// The control law UPDATEWINDOW with its state. `state`, `applied`, `beta`, `least` and `most` are payload bytes with
/// [`Reference::WindowAtSend`] and bit/s with [`Reference::RatePerRtt`].
#[derive(Clone, Debug)]
pub(crate) struct PowerLaw {
    reference: Reference,
    interval: UpdateInterval,
    gamma: f64,
    one_minus_gamma: f64,
    beta: f64,
    least: f64,
    most: f64,
    line_rate: Rate,
    /// cwnd, or the reference rate R.
    state: f64,
    /// The window or rate in force: R can lag behind it by a round trip, cwnd never does.
    applied: f64,
    last_update_seq: u64,
}

impl PowerLaw {
    /// Creates the law of `flow`. `beta` is the additive increase as a rate: β = `beta`·τ bytes per round trip.
    pub(crate) fn new(
        flow: &FlowContext,
        reference: Reference,
        interval: UpdateInterval,
        gamma: f64,
        beta: Rate,
        min_rate: Rate,
    ) -> Self {
        let line = flow.line_rate.as_bps_f64();
        let beta_bps = beta.as_bps_f64();
        let tau_s = flow.base_rtt.as_secs_f64();
        let (beta, least, most) = match reference {
            Reference::WindowAtSend => (beta_bps * tau_s / 8.0, flow.mtu.as_f64(), line * tau_s / 8.0),
            Reference::RatePerRtt => (beta_bps.trunc(), min_rate.as_bps_f64(), line),
        };
        Self {
            reference,
            interval,
            gamma,
            // The nearest number to the decimal complement, as 0.1 for 0.9: `1.0 - 0.9` itself is a bit less
            // and changes truncated rates by one bit/s.
            one_minus_gamma: ((1.0 - gamma) * 1e9).round() / 1e9,
            beta,
            least: least.min(most),
            most,
            line_rate: flow.line_rate,
            state: most,
            applied: most,
            last_update_seq: 0,
        }
    }

    /// Postpones the next update by a round trip without changing anything.
    pub(crate) fn postpone(&mut self, ack: &Ack<'_>) {
        self.last_update_seq = self.last_update_seq.max(ack.snd_nxt);
    }

    /// Updates window or rate: Alg. 1 line 5, or Alg. 2 lines 16-25 for updates once per round trip.
    pub(crate) fn update(&mut self, ack: &Ack<'_>, power: f64) {
        let is_full = self.last_update_seq < ack.ack_seq;
        if is_full || self.interval == UpdateInterval::PerAck {
            let power = power.max(LEAST_POWER);
            let next = match self.reference {
                Reference::WindowAtSend => self.window(power, ack.cwnd_at_send as f64),
                Reference::RatePerRtt => self.rate(power),
            };
            self.applied = next.clamp(self.least, self.most);
            if is_full || self.reference == Reference::WindowAtSend {
                self.state = self.applied;
            }
        }
        if is_full {
            self.last_update_seq = self.last_update_seq.max(ack.snd_nxt);
        }
    }

    /// Returns eq. (7), Alg. 1 line 27: cwnd ← γ·(cwnd_old/Γ + β) + (1 − γ)·cwnd.
    fn window(&self, power: f64, cwnd_old: f64) -> f64 {
        self.gamma * (cwnd_old.max(self.least) / power + self.beta) + self.one_minus_gamma * self.state
    }

    /// Returns eq. (7) with R for both windows. The artifact stores rates as whole bit/s, so each product is truncated.
    fn rate(&self, power: f64) -> f64 {
        (self.gamma * ((self.state / power).trunc() + self.beta)).trunc() + (self.one_minus_gamma * self.state).trunc()
    }

    /// Returns the allowance: rate = cwnd/τ (Alg. 1 line 6), or cwnd = rate·τ in the rate form.
    pub(crate) fn allowance(&self, tau: Time) -> Allowance {
        let (cwnd, rate) = match self.reference {
            Reference::WindowAtSend => {
                let rate = Rate::from_bps_f64(self.applied * 8.0 / tau.as_secs_f64());
                (self.applied, rate.min(self.line_rate))
            }
            // In the artifact's order of operations.
            Reference::RatePerRtt => (self.applied * tau.as_ns_f64() * 1e-9 / 8.0, Rate::from_bps_f64(self.applied)),
        };
        Allowance { cwnd: Bytes::new((cwnd as u64).max(1)), rate, timer: Time::MAX }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use fairrate_units::Time;

    use crate::controller::Ack;
    use crate::int::IntHop;

    /// Returns the acknowledgment of byte `ack_seq` when `snd_nxt` is next, of a packet sent with a window of 20,000.
    pub(crate) fn ack(now_ns: u64, rtt_ns: u64, ack_seq: u64, snd_nxt: u64, int: &[IntHop]) -> Ack<'_> {
        let (now, rtt, cwnd_at_send) = (Time::from_ns(now_ns), Time::from_ns(rtt_ns), 20_000);
        Ack {
            now,
            ack_seq,
            snd_nxt,
            newly_acked: 1_000,
            delivered: 1_000,
            lost: 0,
            rtt,
            cwnd_at_send,
            in_flight: 0,
            delivery_rate: fairrate_units::Rate::ZERO,
            prior_delivered: None,
            penalty: 0,
            app_limited: false,
            ecn_marked: false,
            int,
            path: 0,
            header: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::flow_25g;

    fn law(reference: Reference, interval: UpdateInterval) -> PowerLaw {
        PowerLaw::new(&flow_25g(), reference, interval, 0.9, Rate::from_mbps(150), Rate::from_mbps(100))
    }

    fn ack(ack_seq: u64, cwnd_at_send: u64) -> Ack<'static> {
        Ack { cwnd_at_send, ..testing::ack(9_000, 9_000, ack_seq, ack_seq + 5_000, &[]) }
    }

    #[test]
    fn smoothing_weighs_by_elapsed_time_and_never_more_than_tau() {
        let mut power = SmoothedPower::new(InitialPower::FirstSample);
        assert_eq!(power.sample(3.0, 1.0, 8.0), 3.0);
        // (3·(8 − 2) + 1·2)/8 = 2.5
        assert_eq!(power.sample(1.0, 2.0, 8.0), 2.5);
        assert_eq!(power.sample(1.25, 20.0, 8.0), 1.25);
        power.forget();
        assert_eq!(power.sample(7.0, 1.0, 8.0), 7.0);
        // (1·(8 − 2) + 3·2)/8 = 1.5
        assert_eq!(SmoothedPower::new(InitialPower::One).sample(3.0, 2.0, 8.0), 1.5);
    }

    #[test]
    fn windows_stay_between_one_packet_and_the_bandwidth_delay_product() {
        let mut law = law(Reference::WindowAtSend, UpdateInterval::PerAck);
        law.update(&ack(1_000, 25_000), 1e-9);
        assert_eq!(law.applied, 25_000.0);
        (0..9).for_each(|_| law.update(&ack(2_000, 1_000), 1e9));
        // The last step gives 0.9·(0 + 150) + 0.1·1,000 = 235 bytes.
        let allowance = law.allowance(Time::from_us(8));
        assert_eq!((allowance.cwnd, allowance.rate), (Bytes::new(1_000), Rate::from_gbps(1)));
    }

    #[test]
    fn once_a_round_trip_means_the_packets_in_between_change_nothing() {
        let mut law = law(Reference::WindowAtSend, UpdateInterval::PerRtt);
        law.update(&ack(1_000, 20_000), 2.0);
        // 0.9·(20,000/2 + 150) + 0.1·25,000 = 11,635
        assert_eq!(law.applied, 11_635.0);
        law.update(&ack(6_000, 20_000), 2.0);
        assert_eq!(law.applied, 11_635.0);
        law.update(&ack(7_000, 11_635), 1.0);
        // 0.9·(11,635 + 150) + 0.1·11,635 = 11,770
        assert_eq!(law.applied, 11_770.0);
    }

    #[test]
    fn the_rate_form_moves_its_reference_once_a_round_trip() {
        let mut law = law(Reference::RatePerRtt, UpdateInterval::PerAck);
        law.update(&ack(1_000, 0), 2.0);
        // 0.9·(12,500 + 150) + 0.1·25,000 = 13,885 Mb/s; its window is 13,885 bytes in 8 µs.
        let allowance = law.allowance(Time::from_us(8));
        assert_eq!((allowance.cwnd, allowance.rate), (Bytes::new(13_885), Rate::from_mbps(13_885)));
        law.update(&ack(2_000, 0), 1.0);
        // From R = 13,885: 0.9·(13,885 + 150) + 0.1·13,885 = 14,020; R stays.
        assert_eq!((law.applied, law.state), (14_020e6, 13_885e6));
        law.update(&ack(7_000, 0), 1.0);
        assert_eq!((law.applied, law.state), (14_020e6, 14_020e6));
    }
}
