//! The project's examples, run to the end, and what is read from the samples.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowOutcome, PortSample, RateSample, Recorder, RunTotals, SimConfig, Simulation};
use fairrate_units::Time;

/// One of the project's examples for this algorithm, with keys changed.
///
/// # Errors
/// What the scenario's reader says.
pub fn example(root: &Path, name: &str, cc: &str, sets: &[(&str, &str)]) -> Result<SimConfig, String> {
    let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
    let path = root.join("examples").join(name).with_extension("toml");
    Ok(Scenario::load(&path, &overrides).map_err(|e| e.to_string())?.into_sim_config())
}

/// Everything a run told.
#[derive(Default)]
pub struct Record {
    /// Finished flows.
    pub flows: Vec<FlowOutcome>,
    /// Samples of ports, in order of time.
    pub ports: Vec<PortSample>,
    /// Samples of flows, in order of time.
    pub rates: Vec<RateSample>,
    /// Bytes on the wire for a byte of payload in a full packet.
    pub wire_factor: f64,
    /// Payload bytes of each flow.
    pub sizes: Vec<u64>,
    /// How far those were that had started.
    pub cut: Vec<FlowOutcome>,
    /// Totals at the end.
    pub totals: RunTotals,
}

/// Runs to the end.
///
/// # Errors
/// If the run stalls.
pub fn run(config: SimConfig) -> Result<Record, String> {
    let transport = &config.transport;
    let overhead = transport.data_overhead.unwrap_or(config.cc.needs().data_overhead);
    let mtu = transport.mtu.as_f64();
    let wire_factor = (mtu + transport.header.as_f64() + overhead.as_f64()) / mtu;
    let sizes = config.flows.iter().map(|f| f.bytes.as_u64()).collect();
    let mut simulation = Simulation::new(config);
    let mut recorder = Recorder::default();
    simulation.run(&mut recorder).map_err(|e| e.to_string())?;
    let Recorder { flows, ports, rates, .. } = recorder;
    let (totals, cut) = (simulation.totals(), simulation.unfinished());
    Ok(Record { flows, ports, rates, wire_factor, sizes, cut, totals })
}

/// Values at times in seconds.
pub type Series = Vec<(f64, f64)>;

/// Seconds.
pub fn seconds(t: Time) -> f64 {
    t.as_ps() as f64 * 1e-12
}

impl Record {
    /// The queue of the only port that is sampled, in bytes.
    pub fn queue(&self) -> Series {
        self.ports.iter().map(|p| (seconds(p.t), p.qlen_bytes as f64)).collect()
    }

    /// What the only port that is sampled sent between two times, in bit/s.
    pub fn throughput_bps(&self, from_s: f64, to_s: f64) -> f64 {
        let inside: Vec<_> = self.ports.iter().filter(|p| within(seconds(p.t), from_s, to_s)).collect();
        match (inside.first(), inside.last()) {
            (Some(a), Some(b)) if a.t < b.t => (b.tx_bytes - a.tx_bytes) as f64 * 8.0 / (seconds(b.t) - seconds(a.t)),
            _ => f64::NAN,
        }
    }

    /// A flow's pacing rate in bit/s.
    pub fn rate(&self, flow: u32) -> Series {
        let samples = self.rates.iter().filter(|r| r.flow.0 == flow);
        samples.map(|r| (seconds(r.t), r.rate_bps as f64)).collect()
    }

    /// The mean pacing rate of all flows that were sampled at a time, in bit/s: while RoCC limits all of them, the
    /// switch's fair rate as hosts have it.
    pub fn mean_rate(&self) -> Series {
        let at = self.rates.chunk_by(|a, b| a.t == b.t);
        at.map(|rows| (seconds(rows[0].t), rows.iter().map(|r| r.rate_bps as f64).sum::<f64>() / rows.len() as f64))
            .collect()
    }

    /// What a flow delivered between two times, in bit/s on the wire; not a number if it was not active then.
    pub fn goodput_bps(&self, flow: u32, from_s: f64, to_s: f64) -> f64 {
        let inside: Vec<_> =
            self.rates.iter().filter(|r| r.flow.0 == flow && within(seconds(r.t), from_s, to_s)).collect();
        match (inside.first(), inside.last()) {
            (Some(a), Some(b)) if a.t < b.t => {
                let bytes = (b.delivered_bytes - a.delivered_bytes) as f64 * self.wire_factor;
                bytes * 8.0 / (seconds(b.t) - seconds(a.t))
            }
            _ => f64::NAN,
        }
    }
}

fn within(t: f64, from: f64, to: f64) -> bool {
    from <= t && t <= to
}

/// The part of a series between two times.
pub fn part(series: &[(f64, f64)], from_s: f64, to_s: f64) -> Series {
    series.iter().copied().filter(|&(t, _)| within(t, from_s, to_s)).collect()
}

/// Mean and standard deviation of evenly spaced samples.
pub fn mean_and_deviation(series: &[(f64, f64)]) -> (f64, f64) {
    let n = series.len() as f64;
    let mean = series.iter().map(|s| s.1).sum::<f64>() / n;
    let variance = series.iter().map(|s| (s.1 - mean) * (s.1 - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// Means over windows of this many samples, at the end of each.
pub fn smooth(series: &[(f64, f64)], n: usize) -> Series {
    series.chunks_exact(n).map(|c| (c[n - 1].0, c.iter().map(|s| s.1).sum::<f64>() / n as f64)).collect()
}

/// Seconds from `from_s` until a series is within a relative distance of a value, to stay until `to_s`; not a number if
/// it is not at the end.
pub fn settle(series: &[(f64, f64)], from_s: f64, to_s: f64, value: f64, tolerance: f64) -> f64 {
    let inside = part(series, from_s, to_s);
    let off = |s: &(f64, f64)| tolerance * value < (s.1 - value).abs();
    match inside.iter().rposition(off) {
        None if inside.is_empty() => f64::NAN,
        None => 0.0,
        Some(last) => inside.get(last + 1).map_or(f64::INFINITY, |s| s.0 - from_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_settles_at_the_first_sample_after_which_all_are_near() {
        let series = [(1.0, 5.0), (2.0, 10.2), (3.0, 12.0), (4.0, 9.8), (5.0, 10.0)];
        assert_eq!(settle(&series, 1.0, 5.0, 10.0, 0.05), 3.0);
        assert_eq!(settle(&series, 4.0, 5.0, 10.0, 0.05), 0.0);
        assert_eq!(settle(&series, 1.0, 3.0, 10.0, 0.05), f64::INFINITY);
        assert!(settle(&series, 6.0, 7.0, 10.0, 0.05).is_nan());
    }

    #[test]
    fn windows_and_moments() {
        let series = [(1.0, 1.0), (2.0, 3.0), (3.0, 5.0), (4.0, 7.0), (5.0, 100.0)];
        assert_eq!(smooth(&series, 2), [(2.0, 2.0), (4.0, 6.0)]);
        assert_eq!(mean_and_deviation(&series[..4]), (4.0, 5.0_f64.sqrt()));
    }
}
