//! The common part of Figures 8, 9 and 11 to 14: variants of RoCC, the star of Figure 8, and the numbers read from
//! rates and queues.
//!
//! The paper's rates are those of links, and so are ours: payload is counted with its headers.

use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::moments::{mean_of, means_of};
use crate::points::{Point, Points};
use crate::record::{Record, seconds, settle};
use crate::variant::Variant;

const SCENARIO: &str = include_str!("../../scenarios/rocc-star.toml");
/// Time between samples of rates and queues.
pub const SAMPLE: &str = "20us";
pub const SAMPLE_US: usize = 20;
/// Length of the windows over which rates and queues are averaged before they count as settled: five of RoCC's periods.
const WINDOW_US: usize = 200;

pub const ROCC: Variant = Variant::of("rocc");
/// RoCC whose gains are whole while a queue is nearly empty, as in the switch of the authors' DPDK testbed.
pub const FULL: Variant = ROCC.with("rocc-full", "rocc, whole gains", &[("transport.rocc.low_queue_gain", "full")]);
const NO_DECREASE: &str = "rocc, no multiplicative decrease";
/// RoCC whose queues never reach the thresholds of the multiplicative decrease, at 40 Gb/s.
const NO_DECREASE_40: Variant = ROCC.with(
    "rocc-no-decrease",
    NO_DECREASE,
    &[("transport.rocc.thresholds", "given"), ("transport.rocc.q_mid", "10MB"), ("transport.rocc.q_max", "10MB")],
);
/// The same at 100 Gb/s, with the paper's gains and reference for that rate.
const NO_DECREASE_100: Variant = ROCC.with(
    "rocc-no-decrease",
    NO_DECREASE,
    &[
        ("transport.rocc.thresholds", "given"),
        ("transport.rocc.q_ref", "300KB"),
        ("transport.rocc.q_mid", "10MB"),
        ("transport.rocc.q_max", "10MB"),
        ("transport.rocc.alpha", "0.45"),
        ("transport.rocc.beta", "2.25"),
    ],
);
/// RoCC whose switch pauses a port by the bytes that arrived through it, above 500 KB of the buffer of 15 MB.
const INGRESS_40: Variant =
    ROCC.with("rocc-ingress", INGRESS, &[("switch.pfc", "true"), ("switch.dt_alpha", "0.0333")]);
/// The same at 100 Gb/s, above 800 KB.
const INGRESS_100: Variant =
    ROCC.with("rocc-ingress", INGRESS, &[("switch.pfc", "true"), ("switch.dt_alpha", "0.0533")]);
const INGRESS: &str = "rocc, PFC by ingress";
/// RoCC whose paused ports resume at 10 KB, as in the authors' code.
const LATE_RESUME_40: Variant =
    ROCC.with("rocc-resume", LATE_RESUME, &[("switch.pfc", "{ pause = \"500KB\", resume = \"10KB\" }")]);
/// The same at 100 Gb/s.
const LATE_RESUME_100: Variant =
    ROCC.with("rocc-resume", LATE_RESUME, &[("switch.pfc", "{ pause = \"800KB\", resume = \"10KB\" }")]);
const LATE_RESUME: &str = "rocc, resume at 10 KB";
/// RoCC with the gains that the authors' OMNeT++ code has in a comment beside those of the paper.
const GAINS_40: Variant = ROCC.with(
    "rocc-gains",
    GAINS,
    &[
        ("transport.rocc.thresholds", "given"),
        ("transport.rocc.q_ref", "150KB"),
        ("transport.rocc.q_mid", "300KB"),
        ("transport.rocc.q_max", "360KB"),
        ("transport.rocc.alpha", "0.8"),
        ("transport.rocc.beta", "2.4"),
    ],
);
/// The same at 100 Gb/s, where the paper's gains are half as large again.
const GAINS_100: Variant = ROCC.with(
    "rocc-gains",
    GAINS,
    &[
        ("transport.rocc.thresholds", "given"),
        ("transport.rocc.q_ref", "300KB"),
        ("transport.rocc.q_mid", "600KB"),
        ("transport.rocc.q_max", "660KB"),
        ("transport.rocc.alpha", "1.2"),
        ("transport.rocc.beta", "3.6"),
    ],
);
const GAINS: &str = "rocc, gains of 0.8 and 2.4";
/// RoCC as the authors' OMNeT++ code has it, in what `validation/rocc-omnet` found to matter.
pub const AUTHORS: Variant = ROCC.with("rocc-authors", "rocc, authors' code", &AUTHORS_SETS);
pub const AUTHORS_SETS: [(&str, &str); 5] = [
    ("links.frame_overhead", "20B"),
    ("transport.rocc.initial", "zero"),
    ("transport.rocc.fraction_bits", "0"),
    ("transport.rocc.limiter", "bucket"),
    ("transport.rocc.accept", "lower"),
];
/// RoCC on a fabric that drops what does not fit into its buffer. It is run as an experiment of its own.
pub const NO_PFC: Variant = ROCC.with("rocc-no-pfc", "rocc", &[("switch.pfc", "false")]);
/// The same with a buffer of twice the size, and of more than four times the size.
pub const NO_PFC_30MB: Variant =
    NO_PFC.with("rocc-no-pfc-30mb", "rocc, 30 MB", &[("switch.pfc", "false"), ("switch.buffer", "30MB")]);
pub const NO_PFC_70MB: Variant =
    NO_PFC.with("rocc-no-pfc-70mb", "rocc, 70 MB", &[("switch.pfc", "false"), ("switch.buffer", "70MB")]);
/// The same with a switch that computes the fair rate four times as often.
pub const NO_PFC_10US: Variant =
    NO_PFC.with("rocc-no-pfc-10us", "rocc, every 10 us", &[("switch.pfc", "false"), ("transport.rocc.period", "10us")]);

/// Returns the claim that no packet was dropped in the experiment `name`, which has no PFC.
pub fn needs_no_pfc(points: &Points, id: &str, name: &str) -> Claim {
    let sentence = format!("{name}: packets dropped of a buffer of 15 MB (\"RoCC does not require PFC\")");
    Claim::exact(id, &sentence, Rule::AtMost(0.0), "", points.mean(name, NO_PFC.line, "drops"))
}

/// RoCC as printed, as in the authors' switch, and as in their simulator: claims are about each.
pub const JUDGED: [Variant; 3] = [ROCC, FULL, AUTHORS];
/// The looks of the lines of [`forms`].
pub const LOOKS: [&str; 7] = ["powertcp", "hpcc", "swift", "dcqcn", "timely", "dctcp", "line-rate"];

/// Returns the variants that are run on links of `gbps` Gb/s: those that are judged, and those that show the effect of
/// the multiplicative decrease, of PFC and of larger gains.
pub fn forms(gbps: u64) -> [Variant; 7] {
    let [no_decrease, ingress, late_resume, gains] = match gbps {
        40 => [NO_DECREASE_40, INGRESS_40, LATE_RESUME_40, GAINS_40],
        _ => [NO_DECREASE_100, INGRESS_100, LATE_RESUME_100, GAINS_100],
    };
    [ROCC, FULL, AUTHORS, no_decrease, ingress, late_resume, gains]
}

/// Returns a run on a star: hosts around a switch send to one of them, each at 90 % of its link's rate.
pub fn run(
    name: &str,
    variant: &Variant,
    (senders, gbps): (u32, u64),
    duration: &str,
    read: impl Fn(&Record) -> Point + Send + Sync + 'static,
) -> Run {
    let (hosts, senders) = ((senders + 1).to_string(), senders.to_string());
    let (rate, demand) = (format!("{gbps}Gbps"), format!("{}Mbps", gbps * 900));
    let mut sets = vec![
        ("duration", duration),
        ("topology.hosts", hosts.as_str()),
        ("topology.rate", &rate),
        ("traffic.0.senders", &senders),
        ("traffic.0.demand", &demand),
        ("probe.0.every", SAMPLE),
        ("probe.1.every", SAMPLE),
    ];
    sets.extend(variant.sets);
    Run::of(name, SCENARIO, variant.cc, &sets, read).called(variant.line)
}

/// Returns the mean pacing rate of all flows that were sampled at a time, in seconds and bit/s: while RoCC limits all
/// flows, it is the switch's fair rate as the hosts received it.
pub fn fair_rate(record: &Record) -> Vec<(f64, f64)> {
    let at = record.rates.chunk_by(|a, b| a.t == b.t);
    at.map(|rows| (seconds(rows[0].t), mean_of(rows.iter().map(|row| row.rate_bps as f64)))).collect()
}

/// Returns the queue to the receiver, in seconds and bytes.
pub fn queue(record: &Record) -> Vec<(f64, f64)> {
    record.port("sw0", "h0").iter().map(|s| (seconds(s.t), s.qlen_bytes as f64)).collect()
}

/// Returns `series` with its values in multiples of `unit`.
pub fn scaled(series: &[(f64, f64)], unit: f64) -> Vec<(f64, f64)> {
    series.iter().map(|&(t, value)| (t, value / unit)).collect()
}

/// Returns a series of queues in KB, cut at 600 KB: the first packets of many hosts are megabytes, beside which the
/// rest would not be visible.
pub fn cut(series: &[(f64, f64)]) -> Vec<(f64, f64)> {
    series.iter().map(|&(t, kb)| (t, kb.min(600.0))).collect()
}

/// Returns the rate that each flow delivers on the wire between two times, in Gb/s.
pub fn goodputs(record: &Record, (from_s, to_s): (f64, f64)) -> Vec<f64> {
    let of = |flow: u32| {
        let at = |r: &&fairrate_sim::RateSample| r.flow.0 == flow && from_s <= seconds(r.t) && seconds(r.t) <= to_s;
        let inside: Vec<_> = record.rates.iter().filter(at).collect();
        let (first, last) = (inside.first()?, inside.last()?);
        let bytes = (last.delivered_bytes - first.delivered_bytes) as f64 * record.wire_factor();
        Some(bytes * 8e-9 / (seconds(last.t) - seconds(first.t)))
    };
    (0..record.config.flows.len() as u32).filter_map(of).collect()
}

/// Returns the largest relative distance of a rate from the rate `want`.
pub fn worst(rates: &[f64], want: f64) -> f64 {
    rates.iter().map(|rate| (rate / want - 1.0).abs()).fold(0.0, f64::max)
}

/// Returns the part of a series between two times.
pub fn part(series: &[(f64, f64)], (from_s, to_s): (f64, f64)) -> Vec<(f64, f64)> {
    series.iter().copied().filter(|&(t, _)| from_s <= t && t <= to_s).collect()
}

/// Returns the milliseconds until means of a series over windows of 200 us are near a value and stay there until the
/// end. A series that is not near it at the end counts with the whole time.
pub fn settles_ms(series: &[(f64, f64)], span: (f64, f64), value: f64, tolerance: f64) -> f64 {
    settles_over_ms(series, WINDOW_US / SAMPLE_US, span, value, tolerance)
}

/// Returns the same over windows of `n` samples.
pub fn settles_over_ms(series: &[(f64, f64)], n: usize, span: (f64, f64), value: f64, tolerance: f64) -> f64 {
    let after = settle(&means_of(&part(series, span), n), span, value, tolerance);
    if after.is_infinite() { (span.1 - span.0) * 1e3 } else { after * 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_is_of_means() {
        let series = [(1.0, 1.0), (2.0, 3.0), (3.0, 5.0), (4.0, 7.0), (5.0, 100.0)];
        assert_eq!(settles_over_ms(&series, 1, (1.0, 4.0), 6.0, 0.2), 2e3);
        // The series is never near 50, so that the whole time counts.
        assert_eq!(settles_over_ms(&series, 1, (1.0, 5.0), 50.0, 0.2), 4e3);
        assert!((worst(&[3.0, 5.0, 4.4], 4.0) - 0.25).abs() < 1e-12);
    }
}
