//! One acknowledgment for a controller of any algorithm, as a sender on a path of five switch hops at 100 Gb/s sees it.
//!
//! Shared with `fairrate-control`'s bench `controllers`.

use std::hint::black_box;

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, IntHop, Needs, PortRate, Profile,
};
use fairrate_units::{Bytes, Rate, Time};

/// Acknowledgments that are made before they are handed over, few enough for the first cache.
pub const BATCH: usize = 64;

const HOPS: usize = 5;
const MTU: u64 = 1_452;
const WIRE_MTU: u64 = 1_500;

/// A byte at 100 Gb/s.
const BYTE_PS: u64 = 80;

const BASE_RTT: Time = Time::from_us(12);
const IN_FLIGHT: u64 = 100 * MTU;

/// Between two acknowledgments: four fifths of the link, so that queues and rates have something to follow.
const GAP: Time = Time::from_ns(150);

/// An acknowledgment in this many is marked.
const MARKED: u64 = 16;

/// Acknowledgments after which the queue's pattern begins anew: a few round trips.
const PATTERN: u64 = 512;

const FLOW: FlowContext = FlowContext {
    mtu: Bytes::new(MTU),
    wire_mtu: Bytes::new(WIRE_MTU),
    n_hops: HOPS as u32 + 1,
    ..FlowContext::on(Rate::from_gbps(100), BASE_RTT)
};

/// All algorithms with a controller that learns from acknowledgments or may be asked to.
pub fn names() -> impl Iterator<Item = &'static str> {
    let has_senders = |name: &&str| AlgorithmConfig::by_name(name, Profile::Paper).is_some_and(|cc| !cc.needs().oracle);
    ALGORITHMS.iter().map(|a| a.name).filter(has_senders)
}

/// A sender's view of a path whose last hop has a queue that rises and falls.
pub struct Acks {
    controller: Algorithm,
    needs: Needs,
    allowance: Allowance,
    /// Acknowledgments so far.
    fed: u64,
    /// Of the acknowledgments of a batch, one after the other.
    hops: Vec<[IntHop; HOPS]>,
    header: Vec<f64>,
}

impl Acks {
    /// A controller with the defaults of the algorithm called `name`.
    pub fn new(name: &str) -> Self {
        let config = AlgorithmConfig::by_name(name, Profile::Paper).expect("the algorithm is registered");
        let needs = config.needs();
        let n_words = usize::from(needs.header.fixed) + usize::from(needs.header.per_hop) * (HOPS + 1);
        let mut controller = config.build(&FLOW);
        let allowance = controller.on_start(Time::ZERO);
        let hop = IntHop { ts: BASE_RTT, tx_bytes: 0, qlen: 0, rate: PortRate::new(Rate::from_gbps(100)) };
        Self { controller, needs, allowance, fed: 0, hops: vec![[hop; HOPS]; BATCH], header: vec![0.0; n_words] }
    }

    /// Makes the telemetry and the header of the next batch. Not to be timed.
    pub fn prepare(&mut self) {
        for i in 0..BATCH {
            let n = self.fed + i as u64;
            let before = self.hops[if i == 0 { BATCH - 1 } else { i - 1 }];
            for (at, (hop, before)) in self.hops[i].iter_mut().zip(before).enumerate() {
                let qlen = if at == HOPS - 1 { queue(n) } else { 0 };
                *hop = IntHop { ts: before.ts + GAP, tx_bytes: before.tx_bytes + WIRE_MTU, qlen, ..before };
            }
        }
        let now = self.now();
        self.controller.stamp(now, &mut self.header);
    }

    /// Hands the batch over, timers that are due included. To be timed.
    pub fn feed(&mut self) {
        for i in 0..BATCH {
            self.fed += 1;
            let now = self.now();
            while self.allowance.timer <= now {
                self.allowance = self.controller.on_timer(self.allowance.timer);
            }
            let ack_seq = self.fed * MTU;
            let ack = Ack {
                now,
                ack_seq,
                snd_nxt: ack_seq + IN_FLIGHT,
                newly_acked: MTU,
                delivered: MTU,
                lost: 0,
                rtt: BASE_RTT + Time::from_ps(u64::from(queue(self.fed)) * BYTE_PS),
                cwnd_at_send: IN_FLIGHT + MTU,
                in_flight: IN_FLIGHT,
                delivery_rate: Rate::from_gbps(80),
                prior_delivered: None,
                app_limited: false,
                ecn_marked: self.fed.is_multiple_of(MARKED),
                int: if self.needs.int.is_some() { &self.hops[i] } else { &[] },
                header: &self.header,
            };
            self.allowance = self.controller.on_ack(black_box(&ack));
        }
        black_box(self.allowance);
    }

    fn now(&self) -> Time {
        BASE_RTT + Time::from_ps(GAP.as_ps() * self.fed)
    }
}

/// Bytes that wait when an acknowledgment's packet leaves: up to 32 packets and down again.
fn queue(n_acks: u64) -> u32 {
    let phase = n_acks % PATTERN;
    (phase.min(PATTERN - phase) * WIRE_MTU / 8) as u32
}
