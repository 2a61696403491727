//! Random acknowledgments that are possible for a flow.

use fairrate_control::Ack;
use fairrate_kernel::laws::AckInput;
use fairrate_units::{Rate, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random integers from a seed.
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
    /// Returns a number from `least` up to, but without, `end`.
    pub fn between(&mut self, least: u64, end: u64) -> u64 {
        least + self.0.next_u64() % (end - least)
    }
    /// Returns `true` once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.between(0, n) == 0
    }
}

/// The acknowledgments of a flow: queues grow and shrink, some packets are marked, and now and then the flow is idle.
pub struct Stream {
    pub draws: Draws,
    pub base_rtt_ns: u64,
    pub now_ns: u64,
    pub ack_seq: u64,
    queue_ns: u64,
    marks_one_in: u64,
}

impl Stream {
    pub fn new(seed: u64, base_rtt_ns: u64) -> Self {
        Self { draws: Draws::new(seed), base_rtt_ns, now_ns: 1_000_000, ack_seq: 0, queue_ns: 0, marks_one_in: 50 }
    }

    /// Returns the next acknowledgment of a flow with this window in bytes.
    pub fn next(&mut self, cwnd: u64) -> AckInput {
        let d = &mut self.draws;
        let idle = if d.once_in(2_000) { 5 * self.base_rtt_ns } else { 0 };
        self.now_ns += idle + d.between(50, self.base_rtt_ns / 8);
        let walk = d.between(0, self.base_rtt_ns / 8);
        self.queue_ns = if d.once_in(2) { self.queue_ns + walk } else { self.queue_ns.saturating_sub(walk) };
        self.queue_ns = self.queue_ns.min(20 * self.base_rtt_ns);
        if d.once_in(500) {
            self.marks_one_in = [2, 10, 50, 1_000][d.between(0, 4) as usize];
        }
        let newly_acked = [0, 1_000, 1_000, 2_000][d.between(0, 4) as usize];
        self.ack_seq += newly_acked;
        // Clearly full or clearly not: a window that is full by less than a byte would be full for only one of the two.
        let in_flight = if 8_000 < cwnd && d.once_in(3) { cwnd / 4 } else { 2 * cwnd + 4_000 };
        AckInput {
            now_ns: self.now_ns,
            ack_seq: self.ack_seq,
            snd_nxt: self.ack_seq + in_flight,
            rtt_ns: self.base_rtt_ns + self.queue_ns + d.between(0, 100),
            cwnd_at_send: (cwnd * d.between(90, 110) / 100).max(1),
            newly_acked,
            delivered: newly_acked,
            in_flight,
            ecn_marked: u32::from(d.once_in(self.marks_one_in)),
            app_limited: u32::from(d.once_in(20)),
        }
    }
}

/// Converts the acknowledgment for a Rust controller.
pub fn as_ack(a: &AckInput) -> Ack<'static> {
    Ack {
        now: Time::from_ns(a.now_ns),
        ack_seq: a.ack_seq,
        snd_nxt: a.snd_nxt,
        newly_acked: a.newly_acked,
        delivered: a.delivered,
        lost: 0,
        rtt: Time::from_ns(a.rtt_ns),
        cwnd_at_send: a.cwnd_at_send,
        in_flight: a.in_flight,
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        penalty: 0,
        app_limited: a.app_limited != 0,
        ecn_marked: a.ecn_marked != 0,
        int: &[],
        path: 0,
        header: &[],
    }
}
