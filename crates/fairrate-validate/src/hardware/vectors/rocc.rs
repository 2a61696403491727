//! Periods of RoCC's congestion point: the bytes in the queue, and the fair rate that follows.

use std::io::{self, Write};
use std::path::Path;

use fairrate_control::rocc::{CongestionPoint, InitialRate, LowQueueGain, RateAt, RoccConfig, Thresholds};
use fairrate_control::{Actions, AlgorithmSpec, PortAgent, PortContext, PortPacket, PortPacketKind, PortView};
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_units::{Bytes, Rate, Time};

use super::{Counted, Source, port};
use crate::hardware::recorded::{Call, Recording, record};

/// The power of two that the bench multiplies by the reciprocal of ΔQ.
const RECIPROCAL_BITS: u32 = 34;

/// The law in Rust: a congestion point that leaves the calculation to hosts, so that its notices have all bits of F.
struct Law {
    agent: CongestionPoint,
    config: RoccConfig,
    n_ticks: u64,
}

impl Law {
    /// Returns the law with a flow whose packet stays in the queue, so that every period sends a notice.
    fn new(config: &RoccConfig, context: &PortContext) -> Self {
        let config = RoccConfig { rate_at: RateAt::Host, ..config.clone() };
        let mut agent = config.build_port(context).expect("a switch has one");
        let kind = PortPacketKind::Data;
        let mut packet = PortPacket { flow: 7, class: 0, kind, wire: 1_048, header: &mut [], mark: false };
        agent.on_enqueue(&PortView { now: Time::ZERO, queue_bytes: 0 }, &mut packet, &mut Actions::default());
        Self { agent, config, n_ticks: 0 }
    }

    /// Ends a period with `queue_bytes` in the queue. Returns F before it, in steps.
    fn tick(&mut self, queue_bytes: u64) -> u64 {
        self.n_ticks += 1;
        let mut actions = Actions::default();
        let now = self.config.period * self.n_ticks;
        self.agent.on_timer(&PortView { now, queue_bytes }, &mut actions);
        let notice = actions.notices.first().expect("a flow waits in the queue");
        (notice.values[0] * f64::from(1_u32 << self.config.fraction_bits)) as u64
    }
}

/// Returns F, in steps, before each period with one of the queue lengths `queues`, and after the last.
fn rates(config: &RoccConfig, context: &PortContext, queues: &[u64]) -> Vec<u64> {
    let mut law = Law::new(config, context);
    // F comes with the notice of the next period.
    queues.iter().chain([&0]).map(|&queue| law.tick(queue)).collect()
}

/// Writes the configuration, and periods with the queue lengths `queues`.
fn write(
    out: &mut dyn Write,
    config: &RoccConfig,
    context: &PortContext,
    queues: &[u64],
    rates: &[u64],
) -> io::Result<()> {
    let p = config.fixed_point(context.rate);
    let reciprocal = (1_u64 << RECIPROCAL_BITS).div_ceil(config.queue_unit.as_u64());
    writeln!(
        out,
        "0 {} {} {} {} {} {} {} {} {} {reciprocal}",
        rates[0], p.f_min, p.f_max, p.q_ref, p.q_mid, p.q_max, p.whole_below, p.alpha, p.beta
    )?;
    for (queue, f) in queues.iter().zip(&rates[1..]) {
        writeln!(out, "1 {queue} {f}")?;
    }
    Ok(())
}

/// Returns a random walk of `n` queue lengths up to `most`, with jumps that halve F or set it to Fmin.
fn walk(most: u64, n: u64, seed: u64) -> Vec<u64> {
    let mut draws = Stream::new(seed, 0, Purpose::Test);
    let mut queue = 0;
    let step = |_| {
        let longest = if draws.below(50) == 0 { most } else { most / 20 };
        let by = draws.below(longest);
        queue = if draws.below(2) == 0 { (queue + by).min(most) } else { queue.saturating_sub(by) };
        // A bottleneck whose flows have left, now and then.
        if draws.below(500) == 0 {
            queue = 0;
        }
        queue
    };
    (0..n).map(step).collect()
}

/// Writes `n` random periods under five configurations.
pub fn random(out: &mut dyn Write, n: u64) -> io::Result<Counted> {
    let lab = RoccConfig::default();
    let omnet = RoccConfig { fraction_bits: 0, initial: InitialRate::Zero, ..lab.clone() };
    // Cells of a Tofino, and gains that are whole while the queue is short.
    let cells = RoccConfig {
        queue_unit: Bytes::new(80),
        thresholds: Thresholds::Given,
        q_ref: Bytes::new(75_000),
        q_mid: Bytes::new(150_000),
        q_max: Bytes::new(210_000),
        alpha: 0.3 * 80.0 / 600.0,
        beta: 1.5 * 80.0 / 600.0,
        low_queue_gain: LowQueueGain::Full,
        ..lab.clone()
    };
    let gbps = Rate::from_gbps;
    let cases = [
        (&lab, gbps(40), 700_000),
        (&lab, gbps(100), 1_200_000),
        (&omnet, gbps(40), 700_000),
        (&omnet, gbps(100), 1_200_000),
        (&cells, gbps(40), 600_000),
    ];
    let each = n / cases.len() as u64;
    for (seed, (config, rate, most)) in (1..).zip(cases) {
        let (context, queues) = (port(rate), walk(most, each, seed));
        write(out, config, &context, &queues, &rates(config, &context, &queues))?;
    }
    Ok(Counted { steps: each * cases.len() as u64, source: Source::Random })
}

/// Writes the periods of the busiest port of `examples/rocc-staircase.toml`.
pub fn recorded(out: &mut dyn Write, root: &Path) -> Result<Counted, String> {
    let name = "examples/rocc-staircase.toml";
    let config = RoccConfig::default();
    let Recording { calls, port } = record(&root.join(name), config.clone())?;
    let ticks = calls.iter().filter_map(|call| match call {
        Call::Timer { queue_bytes, notices } => Some((*queue_bytes, notices.first().map(|notice| notice.values[0]))),
        Call::Enqueue { .. } => None,
    });
    let (queues, told): (Vec<u64>, Vec<Option<f64>>) = ticks.unzip();
    let rates = rates(&config, &port, &queues);
    // The rates that the simulation told are those of the law.
    let whole = |f: &u64| (f >> config.fraction_bits) as f64;
    if let Some(at) = told.iter().zip(&rates[1..]).position(|(told, f)| told.is_some_and(|told| told != whole(f))) {
        return Err(format!("{name}: period {at} told another rate than the law has"));
    }
    write(out, &config, &port, &queues, &rates).map_err(|e| e.to_string())?;
    Ok(Counted { steps: queues.len() as u64, source: Source::Recorded(name) })
}
