//! DCTCP against the model of its paper: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3.
//!
//! N flows in step at a link that marks above K packets: each window rises to W* = (C·RTT + K) / N and one packet more,
//! all packets of that round trip are marked, and every flow cuts by α/2. All lengths below are in packets.
//!
//! | paper                      | here              |
//! |----------------------------|-------------------|
//! | W* = (C·RTT + K) / N       | `Model::w`        |
//! | α ≈ √(2/W*)                | `Model::alpha`    |
//! | A = ½ √(2N(C·RTT + K))     | `Model::amplitude`|
//! | Q_max = K + N              | `Model::q_max`    |
//!
//! The model cuts at once. Linux, and this simulator, reduce the bytes in flight over a round trip (PRR, RFC 9937),
//! during which the queue is still above K for its first half. Packets marked then cause a second cut, as the first
//! one's window is acknowledged. So c = 2 cuts, each by α/2, follow m = 1.5 marked round trips, where the model has 1
//! and 1. Its derivation with these numbers, a period of c·W·α/2 round trips of which m are marked: α = √(2m / (c·W*))
//! and A = ½·c·N·W*·α.
//!
//! The differences from the model, and their effects, from which the tolerances follow:
//! - RFC 8257 and Linux do not grow for a round trip after a cut: one more unmarked round trip in a period, so that α
//!   is lower, by one part in the number of round trips of a period at most (N = 1: 9, N = 2: 6, N = 10: 3).
//! - The cut comes with the first mark, by the α of the windows before, where the model takes the mean: with g = 1/16
//!   the cut is lower by up to a sixth, and the mean of α higher by up to a tenth.
//! - Windows are whole packets: the queue may be off by a packet per flow, which is half of its variation for N = 40.
//!
//! The paper finds that the queue of many flows varies less than in the model, since they are not in step. Here nothing
//! disturbs them, and largest queues of K + N show that they stay in step.

use crate::common::{Recorder, TCP, algorithm, config, flow, probe, run};
use fairrate_sim::topology::Dumbbell;
use fairrate_sim::{DelayedAck, FlowSpec, SimConfig, StopRule, TcpConfig, Transport};
use fairrate_units::{Bytes, Rate, Time};

/// Wire bytes of a full packet.
const PACKET: f64 = 1_048.0;
const K: f64 = 40.0;
/// Start of the measurement: hundreds of round trips after the last flow has started.
const FROM: Time = Time::from_ms(100);
const UNTIL: Time = Time::from_ms(200);

struct Model {
    n: f64,
    /// C·RTT + K.
    pipe: f64,
    /// Cuts in a period (`c`), and marked round trips (`m`).
    cuts: f64,
    marked: f64,
}

impl Model {
    /// Without queue, a packet and its acknowledgment take 100 us of propagation and the serialisations of three links
    /// of 40, 10 and 40 Gb/s.
    fn new(n: u32, prr: bool) -> Self {
        let serialised_s = (PACKET + 60.0) * 8.0 * (2.0 / 40e9 + 1.0 / 10e9);
        let (cuts, marked) = if prr { (2.0, 1.5) } else { (1.0, 1.0) };
        Self { n: f64::from(n), pipe: 10e9 / 8.0 * (100e-6 + serialised_s) / PACKET + K, cuts, marked }
    }
    fn w(&self) -> f64 {
        self.pipe / self.n
    }
    fn alpha(&self) -> f64 {
        (2.0 * self.marked / (self.cuts * self.w())).sqrt()
    }
    fn amplitude(&self) -> f64 {
        0.5 * self.cuts * self.n * self.w() * self.alpha()
    }
    fn q_max(&self) -> f64 {
        K + self.n
    }
    /// Round trips of a period, each with the queue at K.
    fn period(&self) -> Time {
        let rtts = self.amplitude() / self.n;
        Time::from_ns((rtts * self.pipe * PACKET * 8.0 / 10.0) as u64)
    }
}

/// Measurements at the bottleneck.
#[derive(Debug)]
struct Seen {
    /// Share of marked packets, which α estimates.
    marked: f64,
    /// Mean of the largest queues of four periods each (`q_max`), and of the smallest (`q_min`).
    q_max: f64,
    q_min: f64,
    utilisation: f64,
}

fn dumbbell(n: u32, prr: bool, delayed_ack: Option<DelayedAck>) -> SimConfig {
    let topology = Dumbbell {
        left: n,
        right: n,
        host_rate: Rate::from_gbps(40),
        host_delay: Time::from_us(10),
        bottleneck_rate: Rate::from_gbps(10),
        bottleneck_delay: Time::from_us(30),
    }
    .build();
    // Flows do not start all at once: the first queue is not measured.
    let start = |i: u32| Time::from_us(37 * u64::from(i));
    let flows = (0..n).map(|i| FlowSpec { stop: UNTIL, ..flow(i, n + i, u64::MAX, start(i)) }).collect();
    let mut c = config(topology, algorithm("dctcp"), flows);
    let (rto_min, rto_max) = (Time::from_ms(10), Time::from_ms(100));
    c.transport.kind = Transport::Tcp(TcpConfig { rto_min, rto_max, prr, delayed_ack, ..TCP });
    let ecn = c.fabric.ecn.as_mut().expect("DCTCP needs ECN");
    let k = Bytes::new((K * PACKET) as u64);
    (ecn.kmin, ecn.kmax, ecn.kmin_per, ecn.kmax_per) = (k, k, None, None);
    c.stop = StopRule { at: Some(UNTIL), when_flows_done: false };
    probe(&mut c, 2 * n, 2 * n + 1, Time::from_us(2));
    c
}

fn measure(recorder: &Recorder, model: &Model) -> Seen {
    let late: Vec<_> = recorder.ports.iter().filter(|s| FROM <= s.t).collect();
    let (first, last) = (late[0], late[late.len() - 1]);
    let sent = (last.tx_bytes - first.tx_bytes) as f64;
    let window = (4 * model.period().as_ps() / Time::from_us(2).as_ps()) as usize;
    let (mut high, mut low, mut n) = (0.0, 0.0, 0.0);
    for samples in late.chunks_exact(window) {
        let queues = || samples.iter().map(|s| s.qlen_bytes as f64 / PACKET);
        high += queues().fold(0.0, f64::max);
        low += queues().fold(f64::MAX, f64::min);
        n += 1.0;
    }
    Seen {
        marked: (last.ecn_marks - first.ecn_marks) as f64 / (sent / PACKET),
        q_max: high / n,
        q_min: low / n,
        utilisation: sent * 8.0 / (10e9 * (last.t - first.t).as_secs_f64()),
    }
}

fn seen(n: u32, prr: bool, delayed_ack: Option<DelayedAck>) -> (Model, Seen) {
    let model = Model::new(n, prr);
    let (recorder, totals) = run(dumbbell(n, prr, delayed_ack));
    assert_eq!(totals.drops.total(), 0);
    let seen = measure(&recorder, &model);
    (model, seen)
}

/// Few flows: the model holds within the effects of its simplifications. Delayed acknowledgments change nothing, as
/// each covers packets that were all marked or all not (RFC 8257 section 3.2).
#[test]
fn few_flows_do_what_the_model_says() {
    let every_second = DelayedAck { every: 2, timeout: Time::from_us(500) };
    let cases = [(1, None), (2, None), (1, Some(every_second)), (2, Some(every_second))];
    for ((n, delayed_ack), prr) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let (model, seen) = seen(n, prr, delayed_ack);
        assert!((seen.marked / model.alpha() - 1.0).abs() < 0.2, "{n}: {seen:?}");
        let amplitude = seen.q_max - seen.q_min;
        assert!(0.75 * model.amplitude() - model.n < amplitude, "{n}: {seen:?}");
        assert!(amplitude < 1.1 * model.amplitude() + model.n, "{n}: {seen:?}");
        assert!((seen.q_max - model.q_max()).abs() < model.n + 1.0, "{n}, {prr}: {seen:?}");
        assert!(0.999 < seen.utilisation, "{n}: {seen:?}");
    }
}

/// Many flows: their windows are so small that whole packets count, and the model is an upper bound.
#[test]
fn many_flows_stay_within_what_the_model_says() {
    for n in [10, 40] {
        let (model, seen) = seen(n, true, None);
        assert!(seen.q_max - seen.q_min < 1.1 * model.amplitude() + model.n, "{n}: {seen:?}");
        assert!(seen.q_max < model.q_max() + model.n + 1.0, "{n}: {seen:?}");
        assert!(0.99 < seen.utilisation, "{n}: {seen:?}");
        // Windows of four packets are too small for an α that is linear in anything.
        assert!(n == 40 || (seen.marked / model.alpha() - 1.0).abs() < 0.3, "{n}: {seen:?}");
    }
}
