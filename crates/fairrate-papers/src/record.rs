//! The output of a simulation, and quantities computed from its samples.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fairrate_experiment::{Watch, drive_and_report, run_into};
use fairrate_report::stats;
use fairrate_results::{ResultsDir, RunState, Tag, TagValue};
use fairrate_scenario::Scenario;
use fairrate_sim::{
    Both, CollectiveBook, ConvergenceSample, FlowOutcome, JobBook, JobIteration, Observation, PfcEvent, PortId,
    PortSample, RateSample, Recorder, RunTotals, SimConfig, Sink, TaskOutcome, Wants,
};
use fairrate_units::Time;

use crate::rates::Rates;
use crate::rtts::Rtts;

/// All samples and totals of a run.
pub struct Record {
    /// The configuration of the run.
    pub config: SimConfig,
    /// Finished flows.
    pub flows: Vec<FlowOutcome>,
    /// Flows that had started and were unfinished at the end.
    pub cut: Vec<FlowOutcome>,
    /// Samples of ports, in order of time.
    pub ports: Vec<PortSample>,
    /// Samples of flows, in order of time.
    pub rates: Vec<RateSample>,
    /// Round-trip times of the flows for which they are counted.
    pub rtts: Rtts,
    /// Rates of sources at packets and notifications, if they are counted.
    pub source_rates: Option<Box<Rates>>,
    /// Results of the convergence probe: changes, and the time until rates have settled, if they have.
    pub convergence: Vec<ConvergenceSample>,
    /// Pauses and resumptions of ports, in order of time.
    pub pauses: Vec<PfcEvent>,
    /// Computations of hosts and other tasks, in order of ends.
    pub tasks: Vec<TaskOutcome>,
    /// Totals at the end.
    pub totals: RunTotals,
}

/// Distributions of what is too much to keep: counted only if given.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Round-trip times.
    pub rtts: Option<Rtts>,
    /// Rates of sources at packets and notifications.
    pub rates: Option<Box<Rates>>,
}

impl Sink for Counted {
    fn wants(&self) -> Wants {
        Wants { rtts: self.rtts.is_some(), senders: self.rates.is_some(), ..Wants::default() }
    }
    fn observe(&mut self, observation: &Observation) {
        match (observation, &mut self.rtts, &mut self.rates) {
            (Observation::Rtt(sample), Some(rtts), _) => rtts.add(sample),
            (Observation::Sender(event), _, Some(rates)) => rates.add(event),
            _ => {}
        }
    }
}

impl Record {
    /// Runs `scenario` to its end, and counts what `counted` selects. Writes its results to
    /// `dir`, if given, with `label` in every row of their tables. Returns `None` if `watch` interrupts it.
    ///
    /// # Errors
    /// If the simulation fails, or results cannot be written.
    pub fn of(
        scenario: Scenario,
        counted: Counted,
        dir: Option<&Path>,
        label: &str,
        watch: &mut dyn Watch,
    ) -> Result<Option<Self>, String> {
        let (mut recorder, mut counted) = (Recorder::default(), counted);
        let mut sink = Both(&mut recorder, &mut counted);
        let ended = match dir {
            None => run_into(scenario.sim_config().clone(), 1, &mut sink, watch),
            Some(dir) => {
                let tags = [Tag::new("label", TagValue::Text(label.to_owned()))];
                let dir = ResultsDir::claim(dir).map(Arc::new);
                dir.and_then(|dir| drive_and_report(&scenario, &dir, &tags, 1, &mut sink, watch))
                    .map_err(|e| e.to_string())?
            }
        };
        match ended.state {
            RunState::Interrupted => return Ok(None),
            RunState::Failed(cause) => return Err(cause),
            RunState::Complete => {}
        }
        let Recorder { flows, ports, rates, pfc: pauses, convergence, tasks, .. } = recorder;
        let (config, totals, cut) = (scenario.into_sim_config(), ended.totals, ended.unfinished);
        let (rtts, source_rates) = (counted.rtts.unwrap_or_default(), counted.rates);
        Ok(Some(Self { config, flows, cut, ports, rates, rtts, source_rates, convergence, pauses, tasks, totals }))
    }

    /// Returns the samples of the port from one node to another.
    pub fn port(&self, from: &str, to: &str) -> Samples<'_> {
        let topology = &self.config.topology;
        let port = topology.node(from).zip(topology.node(to)).and_then(|(from, to)| topology.port(from, to));
        let of_port = self.ports.iter().filter(|sample| Some(sample.port) == port);
        Samples { of: of_port.collect(), bps: port.map_or(f64::NAN, |port| self.rate_bps(port)) }
    }

    /// Returns the share of the run for which a class of a port is paused: the sum over the classes of a port, averaged
    /// over all ports.
    pub fn paused_share(&self) -> f64 {
        let mut since = HashMap::new();
        let mut paused = Time::ZERO;
        for event in &self.pauses {
            let class = (event.port, event.class);
            if event.pause {
                since.entry(class).or_insert(event.t);
            } else if let Some(from) = since.remove(&class) {
                paused += event.t.saturating_sub(from);
            }
        }
        let end = self.totals.end;
        paused = since.into_values().fold(paused, |paused, from| paused + end.saturating_sub(from));
        seconds(paused) / seconds(end) / self.config.topology.n_ports() as f64
    }

    /// Returns the seconds that the slowest rank takes for each complete iteration of a collective, by its position in
    /// the configuration.
    pub fn collective_times(&self, collective: usize) -> Vec<f64> {
        let Some(mut book) = CollectiveBook::new(&self.config) else { return Vec::new() };
        let flows = self.flows.iter();
        let done = flows.flat_map(|outcome| book.note(&self.config.flows[outcome.flow.index()], outcome));
        let of_it = done.filter(|iteration| iteration.collective == collective);
        of_it.filter_map(|iteration| Some(seconds(iteration.slowest()?.0))).collect()
    }

    /// Returns the complete iterations of jobs.
    pub fn job_iterations(&self) -> Vec<JobIteration> {
        let Some(mut book) = JobBook::new(&self.config) else { return Vec::new() };
        for outcome in &self.tasks {
            book.note(outcome);
        }
        book.take_complete()
    }

    /// Returns the rate of a port's link in bit/s.
    pub fn rate_bps(&self, port: PortId) -> f64 {
        self.config.topology.link(port).rate.as_bps_f64()
    }

    /// Returns the bytes on the wire per byte of payload in a full packet.
    pub fn wire_factor(&self) -> f64 {
        let transport = &self.config.transport;
        let overhead = transport.data_overhead.unwrap_or(self.config.cc.needs().wire.data_overhead);
        let mtu = transport.mtu.as_f64();
        (mtu + transport.header.as_f64() + overhead.as_f64()) / mtu
    }

    /// Returns the pacing rate of a flow as pairs of seconds and Gb/s.
    pub fn rate_gbps(&self, flow: u32) -> Vec<(f64, f64)> {
        let samples = self.rates.iter().filter(|rate| rate.flow.0 == flow);
        samples.map(|rate| (seconds(rate.t), rate.rate_bps as f64 * 1e-9)).collect()
    }

    /// Returns completion times in seconds of finished flows of sizes in `(above, up_to]` bytes, ascending.
    pub fn fcts(&self, above: f64, up_to: f64) -> Vec<f64> {
        let size = |flow: &&FlowOutcome| {
            let bytes = self.config.flows[flow.flow.index()].bytes.as_f64();
            above < bytes && bytes <= up_to
        };
        stats::sorted(self.flows.iter().filter(size).filter_map(|flow| Some(seconds(flow.fct?))))
    }

    /// Returns the goodput of the selected flows together in each interval between samples: the interval's end in
    /// seconds, and Gb/s.
    pub fn goodput_gbps(&self, flows: impl Fn(u32) -> bool) -> Vec<(f64, f64)> {
        let mut sums: Vec<(Time, f64)> = Vec::new();
        for rate in self.rates.iter().filter(|rate| flows(rate.flow.0)) {
            match sums.last_mut() {
                Some(last) if last.0 == rate.t => last.1 += rate.delivered_bytes as f64,
                _ => sums.push((rate.t, rate.delivered_bytes as f64)),
            }
        }
        let between = |pair: &[(Time, f64)]| {
            let (from, to) = (pair[0], pair[1]);
            (seconds(to.0), (to.1 - from.1).max(0.0) * 8e-9 / (seconds(to.0) - seconds(from.0)))
        };
        sums.windows(2).map(between).collect()
    }
}

/// Samples of one port, in order of time.
pub struct Samples<'a> {
    of: Vec<&'a PortSample>,
    /// Rate of its link in bit/s.
    pub bps: f64,
}

impl<'a> Samples<'a> {
    /// Returns an iterator over the samples.
    pub fn iter(&self) -> impl Iterator<Item = &'a PortSample> + '_ {
        self.of.iter().copied()
    }

    /// Returns the samples between two times, both included.
    #[must_use]
    pub fn within(&self, from: Time, to: Time) -> Self {
        Self { of: self.iter().filter(|s| from <= s.t && s.t <= to).collect(), bps: self.bps }
    }

    /// Returns the queue as pairs of seconds and kilobytes.
    pub fn queue_kb(&self) -> Vec<(f64, f64)> {
        self.iter().map(|s| (seconds(s.t), s.qlen_bytes as f64 / 1e3)).collect()
    }

    /// Returns the mean queue in kilobytes.
    pub fn mean_queue_kb(&self) -> Option<f64> {
        stats::mean(&self.iter().map(|s| s.qlen_bytes as f64 / 1e3).collect::<Vec<_>>())
    }

    /// Returns the largest queue in kilobytes.
    pub fn peak_queue_kb(&self) -> Option<f64> {
        self.iter().map(|s| s.qlen_bytes as f64 / 1e3).reduce(f64::max)
    }

    /// Returns the throughput over `every` samples: the end of each interval in seconds, and Gb/s.
    pub fn throughput_gbps(&self, every: usize) -> Vec<(f64, f64)> {
        let ends: Vec<&PortSample> = self.iter().step_by(every).collect();
        let between = |pair: &[&PortSample]| {
            let bytes = (pair[1].tx_bytes - pair[0].tx_bytes) as f64;
            (seconds(pair[1].t), bytes * 8e-9 / (seconds(pair[1].t) - seconds(pair[0].t)))
        };
        ends.windows(2).map(between).collect()
    }

    /// Returns the share of the link's rate that is used from the first to the last sample.
    pub fn used(&self) -> Option<f64> {
        let [first, .., last] = self.of[..] else { return None };
        Some((last.tx_bytes - first.tx_bytes) as f64 * 8.0 / self.bps / (seconds(last.t) - seconds(first.t)))
    }
}

/// Returns `t` in seconds.
pub fn seconds(t: Time) -> f64 {
    t.as_ps() as f64 * 1e-12
}

/// Returns the series with x in milliseconds after `zero_s`, cut to `range_ms`.
pub fn ms_from(series: &[(f64, f64)], zero_s: f64, range_ms: (f64, f64)) -> Vec<(f64, f64)> {
    let moved = series.iter().map(|&(x, y)| ((x - zero_s) * 1e3, y));
    moved.filter(|(x, _)| range_ms.0 <= *x && *x <= range_ms.1).collect()
}

/// Returns the seconds from `from_s` until the series is within a relative distance of `value` and stays there until
/// `to_s`: infinite if it is not there at the end, NaN without samples.
pub fn settle(series: &[(f64, f64)], (from_s, to_s): (f64, f64), value: f64, tolerance: f64) -> f64 {
    let inside: Vec<_> = series.iter().filter(|(t, _)| from_s <= *t && *t <= to_s).collect();
    let off = |(_, x): &&(f64, f64)| tolerance * value < (x - value).abs();
    match inside.iter().rposition(off) {
        None if inside.is_empty() => f64::NAN,
        None => 0.0,
        Some(last) => inside.get(last + 1).map_or(f64::INFINITY, |(t, _)| t - from_s),
    }
}

#[cfg(test)]
mod tests {
    use fairrate_scenario::Overrides;

    use super::*;

    #[test]
    fn a_record_has_all_that_a_run_told() {
        let toml = include_str!("../scenarios/perc-fig6.toml");
        let sets = [("traffic.0.changes".to_owned(), "4".to_owned())].into();
        let overrides = Overrides { sets, ..Overrides::default() };
        let scenario = Scenario::from_texts(toml, "perc-fig6", &[], &overrides).expect("it is a scenario");
        let mut all = Recorder::default();
        run_into(scenario.sim_config().clone(), 1, &mut all, &mut ());
        let record =
            Record::of(scenario, Counted::default(), None, "", &mut ()).expect("it runs").expect("nobody stops it");
        assert!(4 <= record.convergence.len(), "{} changes", record.convergence.len());
        assert_eq!((record.convergence, record.pauses), (all.convergence, all.pfc));
        assert_eq!((record.flows, record.ports, record.rates), (all.flows, all.ports, all.rates));
    }

    #[test]
    fn a_series_settles_at_the_first_sample_after_which_all_are_near() {
        let series = [(1.0, 5.0), (2.0, 10.2), (3.0, 12.0), (4.0, 9.8), (5.0, 10.0)];
        assert_eq!(settle(&series, (1.0, 5.0), 10.0, 0.05), 3.0);
        assert_eq!(settle(&series, (4.0, 5.0), 10.0, 0.05), 0.0);
        assert_eq!(settle(&series, (1.0, 3.0), 10.0, 0.05), f64::INFINITY);
        assert!(settle(&series, (6.0, 7.0), 10.0, 0.05).is_nan());
    }
}
