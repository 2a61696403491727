//! Acknowledgments for a controller of any algorithm, as a sender on a path of five switch hops at 100 Gb/s receives
//! them.

use std::hint::black_box;

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, IntHop, Needs, PortRate, Profile,
};
use fairrate_units::{Bytes, Rate, Time};

/// Number of acknowledgments prepared before they are fed, few enough for the first cache.
pub const BATCH: usize = 64;

const HOPS: usize = 5;
const MTU: u64 = 1_452;
const WIRE_MTU: u64 = 1_500;

/// Time of a byte at 100 Gb/s.
const BYTE_PS: u64 = 80;

const BASE_RTT: Time = Time::from_us(12);
const IN_FLIGHT: u64 = 100 * MTU;

/// Time between two acknowledgments: four fifths of the link, so that queues and rates vary.
const GAP: Time = Time::from_ns(150);

/// Number of acknowledgments of which one is marked.
const MARKED: u64 = 16;

/// Period of the queue's pattern in acknowledgments: a few round trips.
const PATTERN: u64 = 512;

const FLOW: FlowContext = FlowContext {
    mtu: Bytes::new(MTU),
    wire_mtu: Bytes::new(WIRE_MTU),
    n_hops: HOPS as u32 + 1,
    ..FlowContext::on(Rate::from_gbps(100), BASE_RTT)
};

/// Returns the names of all algorithms except oracles: those with a controller that gets acknowledgments.
pub fn names() -> impl Iterator<Item = &'static str> {
    let has_senders = |name: &&str| {
        AlgorithmConfig::by_name(name, Profile::Paper).is_some_and(|cc| cc.needs().feedback.oracle.is_none())
    };
    ALGORITHMS.iter().map(|a| a.name).filter(has_senders)
}

/// A sender's view of a path whose last hop has a queue that rises and falls.
pub struct Acks {
    controller: Algorithm,
    needs: Needs,
    allowance: Allowance,
    /// Number of acknowledgments so far.
    fed: u64,
    /// Telemetry of the acknowledgments of a batch, in order.
    hops: Vec<[IntHop; HOPS]>,
    header: Vec<f64>,
}

impl Acks {
    /// Returns the view of a sender with a controller of the algorithm `name`, with its defaults.
    pub fn new(name: &str) -> Self {
        let config = AlgorithmConfig::by_name(name, Profile::Paper).expect("the algorithm is registered");
        let needs = config.needs();
        let n_words = usize::from(needs.wire.header.fixed) + usize::from(needs.wire.header.per_hop) * (HOPS + 1);
        let mut controller = config.build(&FLOW);
        let allowance = controller.on_start(Time::ZERO);
        let hop = IntHop { ts: BASE_RTT, tx_bytes: 0, qlen: 0, rate: PortRate::new(Rate::from_gbps(100)) };
        Self { controller, needs, allowance, fed: 0, hops: vec![[hop; HOPS]; BATCH], header: vec![0.0; n_words] }
    }

    /// Prepares the telemetry and the header of the next batch. Not to be timed.
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

    /// Feeds the batch to the controller, and calls its timers that are due. To be timed.
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
                penalty: 0,
                app_limited: false,
                ecn_marked: self.fed.is_multiple_of(MARKED),
                path: 0,
                int: if self.needs.network.telemetry.is_some() { &self.hops[i] } else { &[] },
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

/// Returns the bytes in the queue when an acknowledgment's packet leaves: up to 32 packets and down again.
fn queue(n_acks: u64) -> u32 {
    let phase = n_acks % PATTERN;
    (phase.min(PATTERN - phase) * WIRE_MTU / 8) as u32
}
