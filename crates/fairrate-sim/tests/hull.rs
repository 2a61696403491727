//! DCTCP with phantom queues: M. Alizadeh et al., "Less is More: Trading a little Bandwidth for Ultra-Low Latency in
//! the Data Center" (HULL), NSDI 2012.

use crate::common::{algorithm_with, config, flow, probe, run};
use fairrate_control::RawValue;
use fairrate_sim::topology::Star;
use fairrate_sim::{EcnConfig, FlowSpec, MarkAt, MarkBy, MarkDraws, NonEct, StopRule};
use fairrate_units::{Bytes, Rate, Time};

const FROM: Time = Time::from_ms(5);
const UNTIL: Time = Time::from_ms(25);

/// Runs four paced flows through one port of 40 Gb/s that marks above 40 KB of its own queue or of a phantom queue;
/// returns the share of the port that is used, and its mean queue in bytes, both from 5 ms on. In a base RTT of 41 us
/// the flows grow by 4 packets together, 2 % of the port's capacity in that time: less than any phantom queue leaves
/// free here.
fn bottleneck(phantom: Option<f64>) -> (f64, f64) {
    let topology = Star { hosts: 5, rate: Rate::from_gbps(40), delay: Time::from_us(10) }.build();
    let start = |i: u32| Time::from_us(37 * u64::from(i));
    let flows = (1..5).map(|i| FlowSpec { stop: UNTIL, ..flow(i, 0, u64::MAX, start(i)) }).collect();
    let mut c = config(topology, algorithm_with("dctcp", &[("pacing", RawValue::Bool(true))]), flows);
    let k = Bytes::new(40_000);
    let (at, draws) = (MarkAt::Enqueue, MarkDraws::PerPort);
    c.fabric.ecn = Some(EcnConfig {
        phantom,
        kmin: k,
        kmax: k,
        pmax: 1.0,
        kmin_per: None,
        kmax_per: None,
        average: None,
        at,
        draws,
        to_hosts: true,
        non_ect: NonEct::Mark,
        by: MarkBy::Class,
    });
    c.stop = StopRule { at: Some(UNTIL), when_flows_done: false };
    probe(&mut c, 5, 0, Time::from_us(1));
    let samples: Vec<_> = run(c).0.ports.into_iter().filter(|s| FROM <= s.t).collect();
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let bits = (last.tx_bytes - first.tx_bytes) as f64 * 8.0;
    let queue = samples.iter().map(|s| s.qlen_bytes as f64).sum::<f64>() / samples.len() as f64;
    (bits / (40e9 * (last.t - first.t).as_secs_f64()), queue)
}

/// A phantom queue lets its share through, less the reduction of windows after a cut: a cut takes alpha / 2, a few
/// percent of a window of 50 packets. DCTCP fills the link and holds a queue of about K; a phantom queue leaves less
/// than a tenth of that, as paced flows collide now and then.
#[test]
fn a_phantom_queue_trades_its_share_of_the_link_for_the_queue() {
    let (full, queue) = bottleneck(None);
    assert!(0.99 < full && (20_000.0..60_000.0).contains(&queue), "{full}, {queue}");
    for share in [0.95, 0.9, 0.8] {
        let (used, left) = bottleneck(Some(share));
        assert!(share - 0.04 < used && used < share + 0.002, "{used} of {share}");
        assert!(10.0 * left < queue, "{left} with {share}, {queue} without");
    }
}
