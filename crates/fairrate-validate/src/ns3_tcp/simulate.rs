//! The run of a case in our simulator, with the same measurements as in ns-3.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use fairrate_experiment::Ended;
use fairrate_report::stats::{jain, mean, percentile, sorted};
use fairrate_sim::{DropCause, FlowOutcome, NodeId, Observation, PortId, SimConfig, Sink};
use fairrate_units::Time;

use super::tables::{Case, Metric};
use crate::suite::{self, key_and_value};
use crate::to_end::run_to_end;

/// Payload of a segment, and its bytes on the wire.
const SEGMENT: u64 = 1_448;
const PACKET: u64 = 1_490;

/// Runs a draw of a case, with the keys in `set` changed as by `--set`; draw 0 has ns-3's own starts.
pub fn measure(dir: &Path, case: &Case, draw: u64, set: &[String]) -> Result<BTreeMap<Metric, f64>, String> {
    let text = scenario_text(case, draw);
    let sets = set.iter().filter_map(key_and_value).collect();
    let mut config = suite::configure(dir, "case.toml", &text, sets)?;
    match &case.beside {
        Some(beside) => spread_starts(&mut config, Time::ZERO, Time::from_ms(beside.spread_ms), draw + 1),
        None if 0 < draw => shift_starts(&mut config, case, draw),
        None => {}
    }
    let mut meter = Meter::new(case, &config);
    let Ended { totals, unfinished, .. } = run_to_end(config, &mut meter)?;
    meter.outcomes.extend(unfinished);
    let mut numbers = meter.numbers(case, totals.end);
    numbers.insert(Metric::Drops, (totals.drops.total() - totals.drops.of(DropCause::Fault)) as f64);
    numbers.insert(Metric::Marks, totals.counts.ecn_marks as f64);
    Ok(numbers)
}

/// Returns the case as a scenario file.
fn scenario_text(case: &Case, draw: u64) -> String {
    let (n, stop) = (case.n_flows(), case.stop_s);
    let (left, right) = match case.list.as_deref() {
        Some("s3") => (8, 8),
        Some(_) => (n, 1),
        None => (n, n),
    };
    let mut text = format!("name = \"case\"\nduration = \"{stop}s\"\nseed = {}\n", 100 * draw + case.seed);
    if case.list.is_some() {
        text += "stop = \"all-flows-done\"\n";
    }
    let limit = case.queue_packets + u64::from(case.red_k.is_some());
    let _ = write!(
        text,
        "[topology]\nkind = \"dumbbell\"\nleft = {left}\nright = {right}\nhost_rate = \"{}\"\nhost_delay = \"{}us\"\n\
         bottleneck_rate = \"{}\"\nbottleneck_delay = \"{}us\"\n\
         [switch]\npfc = false\nbuffer = \"1GB\"\ndt_alpha = \"unlimited\"\nqueue_packets = {limit}\n",
        case.edge, case.edge_delay_us, case.bottleneck, case.bottleneck_delay_us,
    );
    if let Some(k) = case.red_k {
        let bytes = (k + 1) * PACKET;
        let _ = writeln!(
            text,
            "ecn = {{ kmin = \"{bytes}B\", kmax = \"{bytes}B\", pmax = 1.0, at = \"enqueue\", per = \"any-rate\" }}"
        );
    }
    let _ = write!(
        text,
        "[transport]\nkind = \"tcp\"\ncc = \"{}\"\nmtu = \"{SEGMENT}B\"\nheader = \"42B\"\nack = \"42B\"\n\
         data_overhead = \"0B\"\nack_overhead = \"0B\"\n\
         [transport.tcp]\nrto_min = \"{}ms\"\nrto_max = \"60s\"\ntail_loss_probe = false\nhandshake = true\n\
         delayed_ack = {}\ndelayed_ack_timeout = \"1ms\"\n[transport.cubic]\nform = \"linux\"\n",
        case.cc, case.rto_min_ms, case.delayed_ack,
    );
    if 0.0 < case.loss {
        let _ = write!(text, "[[fault]]\nlinks = [\"sw0->sw1\"]\nloss = {}\n", case.loss);
    }
    if case.beside.as_ref().is_some_and(|beside| beside.ecn) {
        text += "ecn = true\n";
    }
    match &case.list {
        Some(list) => {
            let _ = write!(text, "[[traffic]]\nkind = \"list\"\npath = \"flows/{list}.csv\"\n");
        }
        None => (0..n).for_each(|i| {
            let _ = write!(
                text,
                "[[traffic]]\nkind = \"incast\"\nsenders = [\"h{i}\"]\nreceiver = \"h{}\"\nbytes = \"endless\"\nstart = \"{i}ms\"\n",
                n + i
            );
            if let Some(beside) = case.beside.as_ref().filter(|_| case.n <= i) {
                let _ = writeln!(text, "cc = \"{}\"", beside.cc);
            }
        }),
    }
    let flows = if case.list.is_some() { "" } else { "[[probe]]\nflows = \"all\"\nevery = \"10ms\"\n" };
    // Queues of pairs are sampled ten times in a round trip, for their runs are long.
    let rtt_us = 2 * (2 * case.edge_delay_us + case.bottleneck_delay_us);
    let every_us = if case.beside.is_some() { rtt_us / 10 } else { 10 };
    let _ = write!(text, "[[probe]]\nqueue = \"sw0->sw1\"\nevery = \"{every_us}us\"\n{flows}");
    text
}

/// Delays the start of each flow by a random part of one packet's time at the bottleneck.
fn shift_starts(config: &mut SimConfig, case: &Case, draw: u64) {
    let rate: fairrate_units::Rate = case.bottleneck.parse().unwrap_or(fairrate_units::Rate::from_gbps(1));
    let starts: Vec<Time> = config.flows.iter().map(|flow| flow.start).collect();
    spread(config, starts.into_iter(), rate.tx_time(fairrate_units::Bytes::new(PACKET)), draw);
}

/// Sets the start of each flow to `from` and a random part of `most`.
fn spread_starts(config: &mut SimConfig, from: Time, most: Time, draw: u64) {
    spread(config, std::iter::repeat(from), most, draw);
}

/// Sets the starts of flows to `from`, each delayed by a random part of `most`.
fn spread(config: &mut SimConfig, from: impl Iterator<Item = Time>, most: Time, draw: u64) {
    let mut state = draw;
    for (flow, from) in config.flows.iter_mut().zip(from) {
        // A linear congruential generator (Knuth's MMIX), whose high bits are used.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let shift_ps = ((u128::from(state >> 32) * u128::from(most.as_ps())) >> 32) as u64;
        flow.start = from + Time::from_ps(shift_ps);
    }
    config.flows.sort_by_key(|flow| flow.start);
}

/// The measurements of a run.
struct Meter {
    bottleneck: PortId,
    warm: Time,
    /// For each endless flow, the payload delivered at the start of the measurement, and at the last sample.
    delivered: BTreeMap<u32, (u64, u64)>,
    /// Flows of the second algorithm, by their number.
    is_beside: Vec<bool>,
    queue: Vec<f64>,
    peak: f64,
    outcomes: Vec<FlowOutcome>,
}

impl Meter {
    fn new(case: &Case, config: &SimConfig) -> Self {
        let name = |id: NodeId| config.topology.nodes[id.index()].name.as_str();
        let is_bottleneck =
            |&port: &PortId| (name(config.topology.from(port)), name(config.topology.to(port))) == ("sw0", "sw1");
        let bottleneck = (0..config.topology.n_ports() as u32).map(PortId).find(is_bottleneck);
        Self {
            bottleneck: bottleneck.unwrap_or(PortId(0)),
            warm: Time::from_ps((case.warm_s * 1e12) as u64),
            delivered: BTreeMap::new(),
            is_beside: config.flows.iter().map(|flow| flow.stack != 0).collect(),
            queue: Vec::new(),
            peak: 0.0,
            outcomes: Vec::new(),
        }
    }

    fn numbers(&self, case: &Case, end: Time) -> BTreeMap<Metric, f64> {
        let seconds = end.as_secs_f64() - case.warm_s;
        let rates: Vec<f64> =
            self.delivered.values().map(|(from, to)| (to - from) as f64 * 8.0 / seconds / 1e6).collect();
        let all: f64 = rates.iter().sum();
        let first: f64 = self
            .delivered
            .keys()
            .zip(&rates)
            .filter(|(flow, _)| !self.is_beside[**flow as usize])
            .map(|(_, rate)| rate)
            .sum();
        let fcts = sorted(self.outcomes.iter().filter_map(|o| o.fct_ack.map(|fct| fct.as_ps() as f64 / 1e6)));
        let sum = |of: &dyn Fn(&FlowOutcome) -> u64| self.outcomes.iter().map(of).sum::<u64>() as f64;
        BTreeMap::from([
            (Metric::Share, 100.0 * first / all),
            (Metric::Goodput, all),
            (Metric::Jain, jain(&rates).unwrap_or(f64::NAN)),
            (Metric::MeanQueue, mean(&self.queue).unwrap_or(f64::NAN)),
            (Metric::PeakQueue, self.peak),
            (Metric::Retransmitted, sum(&|o| o.retransmitted_bytes) / SEGMENT as f64),
            (Metric::Timeouts, sum(&|o| u64::from(o.timeouts))),
            (Metric::Recoveries, sum(&|o| u64::from(o.recoveries))),
            (Metric::MeanFct, mean(&fcts).unwrap_or(f64::NAN)),
            (Metric::MedianFct, percentile(&fcts, 0.5).unwrap_or(f64::NAN)),
            (Metric::TailFct, percentile(&fcts, 0.99).unwrap_or(f64::NAN)),
            (Metric::Late, fcts.iter().filter(|&&fct| 1e5 < fct).count() as f64),
        ])
    }
}

impl Sink for Meter {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.outcomes.push(*outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Port(sample) if sample.port == self.bottleneck => {
                let packets = sample.qlen_bytes as f64 / PACKET as f64;
                if self.warm <= sample.t {
                    self.peak = self.peak.max(packets);
                    self.queue.push(packets);
                }
            }
            Observation::Rate(sample) => {
                let entry = self.delivered.entry(sample.flow.0).or_insert((0, 0));
                if sample.t <= self.warm {
                    entry.0 = sample.delivered_bytes;
                }
                entry.1 = sample.delivered_bytes;
            }
            _ => {}
        }
    }
}
