//! A controller that outlives its flow: the next flow of the same connection continues to use it.

use fairrate_control::{Ack, Algorithm, Allowance, Controller, forward_controller};
use fairrate_units::{Rate, Time};

/// The controller of a connection that carries one flow after the other.
///
/// The algorithm sees all of them as one flow: byte numbers continue from flow to flow, and its timers also expire
/// between flows. It is not notified of pauses, just as it is not notified when an application writes nothing.
pub struct Lasting {
    algorithm: Algorithm,
    /// Payload bytes of the flows before the present one.
    before: u64,
    /// Its last decision; `None` before the first.
    last: Option<Allowance>,
}

impl Lasting {
    /// Returns the controller of a connection that has carried no flow yet.
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, before: 0, last: None }
    }

    /// Records the end of a flow of `bytes` payload bytes.
    pub fn end_flow(&mut self, bytes: u64) {
        self.before += bytes;
    }

    /// Returns the last decision.
    pub fn last(&self) -> Option<Allowance> {
        self.last
    }

    /// Runs each timer that has expired up to `now`, at its own time: between flows nothing else calls them. `changed`
    /// takes these times, with the rates from then on.
    pub fn catch_up(&mut self, now: Time, mut changed: impl FnMut(Time, Rate)) {
        let mut at = Time::ZERO;
        while let Some(last) = self.last.filter(|last| last.timer <= now) {
            at = at.max(last.timer);
            let next = self.algorithm.on_timer(at);
            changed(at, next.rate);
            self.last = Some(next);
        }
    }

    /// Stores `decision` as the last one unless it is `None`, and returns it.
    fn note<D: Copy + Into<Option<Allowance>>>(&mut self, decision: D) -> D {
        self.last = decision.into().or(self.last);
        decision
    }
}

impl Controller for Lasting {
    /// Starts a flow, the first one or a later one.
    fn on_start(&mut self, now: Time) -> Allowance {
        self.catch_up(now, |_, _| {});
        let allowance = self.last.unwrap_or_else(|| self.algorithm.on_start(now));
        self.note(allowance)
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let (ack_seq, snd_nxt) = (ack.ack_seq + self.before, ack.snd_nxt + self.before);
        let allowance = self.algorithm.on_ack(&Ack { ack_seq, snd_nxt, ..*ack });
        self.note(allowance)
    }
    forward_controller!(self => { Self { algorithm, .. } => algorithm }, but on_start, on_ack, noting note);
}

#[cfg(test)]
mod tests {
    use fairrate_control::{AlgorithmConfig, FlowContext, Notice, Profile};
    use fairrate_units::Rate;

    use super::*;

    const US: u64 = 1_000_000;

    fn rocc() -> Lasting {
        let config = AlgorithmConfig::by_name("rocc", Profile::Paper).expect("it is registered");
        Lasting::new(config.build(&FlowContext::on(Rate::from_gbps(40), Time::from_us(10))))
    }

    /// Returns a notice of 500 units of 10 Mb/s, so 5 Gb/s.
    fn notice() -> Notice {
        Notice { flow: 0, port: 7, values: [500.0, 0.0, 0.0, 0.0] }
    }

    #[test]
    fn timers_expire_between_flows_as_if_there_were_one() {
        let mut lasting = rocc();
        lasting.on_start(Time::ZERO);
        lasting.on_notice(Time::from_us(100), &notice());
        lasting.end_flow(1_000);
        // A rate doubles 55 us after the last notice, and again after each 55 us: at 155 us it is 10 Gb/s, and at 320
        // us it has been 40 Gb/s since 265 us and has lost its limit, and with that its timer.
        let at = |us| {
            let mut lasting = rocc();
            lasting.on_start(Time::ZERO);
            lasting.on_notice(Time::from_us(100), &notice());
            let next = lasting.on_start(Time::from_ps(us * US));
            (next.rate, next.timer)
        };
        assert_eq!(at(154), (Rate::from_gbps(5), Time::from_us(155)));
        assert_eq!(at(155), (Rate::from_gbps(10), Time::from_us(210)));
        assert_eq!(at(319), (Rate::from_gbps(40), Time::from_us(320)));
        assert_eq!(at(9_000), (Rate::from_gbps(40), Time::MAX));
    }

    #[test]
    fn bytes_are_numbered_on() {
        // HPCC moves its reference once a round trip, which it detects by byte numbers: if those of the second flow
        // started at 0, the reference would not move for as many bytes as the first flow had.
        let config = AlgorithmConfig::by_name("hpcc", Profile::Paper).expect("it is registered");
        let build = || config.build(&FlowContext::on(Rate::from_gbps(25), Time::from_us(8)));
        let (mut one, mut lasting) = (build(), Lasting::new(build()));
        one.on_start(Time::ZERO);
        lasting.on_start(Time::ZERO);
        for n in 1..200_u64 {
            let (flow, seq) = if n <= 100 { (0, n * 1_000) } else { (1, (n - 100) * 1_000) };
            if n == 101 {
                lasting.end_flow(100_000);
                lasting.on_start(Time::from_us(n));
            }
            let int = hop(n);
            let ack = |ack_seq| Ack {
                now: Time::from_us(n),
                ack_seq,
                snd_nxt: ack_seq + 20_000,
                newly_acked: 1_000,
                delivered: 1_000,
                lost: 0,
                rtt: Time::from_us(9),
                in_flight: 20_000,
                delivery_rate: Rate::ZERO,
                prior_delivered: None,
                penalty: 0,
                app_limited: false,
                ecn_marked: false,
                cwnd_at_send: 25_000,
                int: &int,
                path: 0,
                header: &[],
            };
            assert_eq!(one.on_ack(&ack(n * 1_000)), lasting.on_ack(&ack(seq)), "{flow} {n}");
        }
    }

    /// Returns the telemetry of a port of 25 Gb/s at two thirds of its capacity, sometimes with 10 packets in its
    /// queue.
    fn hop(n: u64) -> [fairrate_control::IntHop; 1] {
        let rate = fairrate_control::PortRate::new(Rate::from_gbps(25));
        let qlen = if n % 40 < 20 { 0 } else { 10_000 };
        [fairrate_control::IntHop { ts: Time::from_us(n), tx_bytes: 2_000 * n, qlen, rate }]
    }
}
