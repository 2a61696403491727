//! The run of a case in our simulator, with the same measurements at the same times as in ns-3.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::Path;

use fairrate_sim::{FlowOutcome, NodeId, Observation, PortId, PortSample, RunTotals, SimConfig, Sink};
use fairrate_units::{Bytes, Time};

use super::tables::{Case, Measured, Queue, Window};
use crate::suite;
use crate::to_end::run_to_end;

/// Interval of the samples of flows: short enough to look back by the delay of an acknowledgment.
const FLOW_SAMPLE: &str = "20ns";

/// Returns the case as a scenario file, with `probes` added.
pub fn scenario_text(case: &Case, seed: u64, probes: &str) -> String {
    let (scenario, run) = (&case.scenario, &case.run);
    let mut text = format!("name = \"{}\"\nprofile = \"ns3\"\nduration = \"{}\"\n", scenario.name, scenario.until);
    if scenario_is_finite(case) {
        text += "stop = \"all-flows-done\"\n";
    }
    let _ = write!(
        text,
        "seed = {seed}\n\n[topology]\nkind = \"file\"\npath = \"topologies/{}.txt\"\n\n[transport]\ncc = \"{}\"\n",
        scenario.topology, run.cc
    );
    if let Some(window) = &run.window {
        let _ = writeln!(text, "window = \"{window}\"");
    }
    if let Some(first_ack) = &run.first_ack {
        let _ = writeln!(text, "\n[transport.{}]\nfirst_ack = \"{first_ack}\"", run.cc);
    }
    let _ = write!(text, "\n[[traffic]]\nkind = \"list\"\npath = \"flows/{}.csv\"\n\n{probes}", scenario.name);
    text
}

/// Returns `true` if all flows are finite, so that the run can end with its last flow.
fn scenario_is_finite(case: &Case) -> bool {
    case.sizes.len() == case.reference.fct_ns.len()
}

/// Returns the probes of ports and flows that the metrics need.
fn probes(case: &Case) -> String {
    let mut text = String::new();
    let mut ports: Vec<&String> = case.reference.queues.keys().map(|(port, _)| port).collect();
    ports.dedup();
    for port in ports {
        let _ = write!(text, "[[probe]]\nqueue = \"{port}\"\nevery = \"{}\"\n\n", case.scenario.sample);
    }
    let mut flows: Vec<u32> = case.reference.goodput.keys().map(|(_, flow)| *flow).collect();
    flows.sort_unstable();
    flows.dedup();
    if !flows.is_empty() {
        let _ = write!(text, "[[probe]]\nflows = {flows:?}\nevery = \"{FLOW_SAMPLE}\"\n");
    }
    text
}

/// Reads the scenario and returns the configuration of the simulation.
pub fn configure(dir: &Path, case: &Case, text: &str) -> Result<SimConfig, String> {
    suite::configure(dir, &format!("{}.toml", case.scenario.name), text, Vec::new())
}

/// Runs a simulation to its end.
pub fn simulate(config: SimConfig, sink: &mut dyn Sink) -> Result<RunTotals, String> {
    Ok(run_to_end(config, sink)?.totals)
}

/// Runs the case and measures it.
pub fn measure(dir: &Path, case: &Case, seed: u64) -> Result<Measured, String> {
    let config = configure(dir, case, &scenario_text(case, seed, &probes(case)))?;
    let mut meter = Meter::new(case, &config);
    let totals = simulate(config, &mut meter)?;
    let mut measured = std::mem::take(&mut meter.measured);
    measured.pauses = totals.counts.pfc_pauses as f64;
    measured.ecn_marks = totals.counts.ecn_marks as f64;
    // ns-3 counts only data and acknowledgments.
    measured.packet_hops = (totals.packet_hops - totals.counts.pfc_pauses - totals.counts.pfc_resumes) as f64;
    for ((port, window), queue) in &mut measured.queues {
        let window = case.windows[window];
        queue.mean /= meter.expected_samples(window);
        queue.sent = meter.tx.edge(port, window);
    }
    for ((window, flow), bytes) in &mut measured.goodput {
        *bytes = meter.delivered.edge(flow, meter.flow_windows[&(window.clone(), *flow)]);
    }
    Ok(measured)
}

/// Values of counters at the ends of windows: the last sample at or before each end.
#[derive(Default)]
struct Edges<K: Ord> {
    /// (end in ns, value) of all windows of a counter.
    ends: BTreeMap<K, Vec<(u64, f64)>>,
}

impl<K: Ord> Edges<K> {
    fn watch(&mut self, key: K, window: Window) {
        self.ends.entry(key).or_default().extend([(window.from_ns, 0.0), (window.to_ns, 0.0)]);
    }

    fn sample(&mut self, key: &K, t_ns: u64, sample: f64) {
        let ends = self.ends.get_mut(key).into_iter().flatten();
        for (_, value) in ends.filter(|(end, _)| t_ns <= *end) {
            *value = sample;
        }
    }

    /// Returns the growth of a counter over a window.
    fn edge(&self, key: &K, window: Window) -> f64 {
        let ends = self.ends.get(key).map_or(&[][..], Vec::as_slice);
        let at = |t_ns| ends.iter().find(|(end, _)| *end == t_ns).map_or(0.0, |(_, value)| *value);
        at(window.to_ns) - at(window.from_ns)
    }
}

/// The measurements of a run.
struct Meter {
    measured: Measured,
    ports: BTreeMap<PortId, String>,
    windows: BTreeMap<String, Window>,
    sample_ns: u64,
    tx: Edges<String>,
    delivered: Edges<u32>,
    /// Windows of the goodputs, shifted earlier by the flow's acknowledgment delay.
    flow_windows: BTreeMap<(String, u32), Window>,
}

impl Meter {
    fn new(case: &Case, config: &SimConfig) -> Self {
        let mut meter = Self {
            measured: Measured::default(),
            ports: BTreeMap::new(),
            windows: case.windows.clone(),
            sample_ns: case.scenario.sample.parse::<Time>().map_or(1, Time::as_ns),
            tx: Edges::default(),
            delivered: Edges::default(),
            flow_windows: BTreeMap::new(),
        };
        for (port, window) in case.reference.queues.keys() {
            meter.measured.queues.insert((port.clone(), window.clone()), Queue::default());
            meter.tx.watch(port.clone(), case.windows[window]);
        }
        for port in 0..config.topology.n_ports() as u32 {
            meter.ports.insert(PortId(port), config.topology.port_name(PortId(port)));
        }
        for (window, flow) in case.reference.goodput.keys() {
            let spec = &config.flows[*flow as usize];
            let lag_ns = ack_delay(config, spec.dst, spec.src).as_ns();
            let at = case.windows[window];
            let earlier = Window { from_ns: at.from_ns.saturating_sub(lag_ns), to_ns: at.to_ns.saturating_sub(lag_ns) };
            meter.measured.goodput.insert((window.clone(), *flow), 0.0);
            meter.flow_windows.insert((window.clone(), *flow), earlier);
            meter.delivered.watch(*flow, earlier);
        }
        meter
    }

    /// Returns the number of samples that ns-3 took in a window. After the end of our run queues are empty, so fewer
    /// samples of ours are no error.
    fn expected_samples(&self, window: Window) -> f64 {
        let first = u64::from(window.from_ns == 0);
        (window.length_ns() / self.sample_ns + first) as f64
    }

    /// Adds a sample of a port.
    fn port(&mut self, sample: &PortSample) {
        let Some(port) = self.ports.get(&sample.port) else { return };
        let t_ns = sample.t.as_ns();
        self.tx.sample(port, t_ns, sample.tx_bytes as f64);
        let qlen = sample.qlen_bytes as f64;
        for (name, window) in &self.windows {
            let starts_at_zero = window.from_ns == 0 && t_ns == 0;
            if !starts_at_zero && (t_ns <= window.from_ns || window.to_ns < t_ns) {
                continue;
            }
            if let Some(queue) = self.measured.queues.get_mut(&(port.clone(), name.clone())) {
                queue.peak = queue.peak.max(qlen);
                queue.mean += qlen;
            }
        }
    }
}

impl Sink for Meter {
    fn flow(&mut self, outcome: &FlowOutcome) {
        if let Some(fct) = outcome.fct_ack {
            self.measured.fct_ns.insert(outcome.flow.0, fct.as_ps() as f64 / 1e3);
        }
    }

    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Port(sample) => self.port(sample),
            Observation::Rate(sample) => {
                self.delivered.sample(&sample.flow.0, sample.t.as_ns(), sample.delivered_bytes as f64);
            }
            _ => {}
        }
    }
}

/// Returns the travel time of an acknowledgment from `from` to `to` on idle links of the shortest path.
fn ack_delay(config: &SimConfig, from: NodeId, to: NodeId) -> Time {
    let needs = config.cc.needs();
    let bytes = config.transport.ack + config.transport.ack_overhead.unwrap_or(needs.wire.ack_overhead);
    let mut reached: BTreeMap<NodeId, Time> = BTreeMap::from([(from, Time::ZERO)]);
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let so_far = reached[&node];
        for port in (0..config.topology.n_ports() as u32).map(PortId) {
            let next = config.topology.to(port);
            if config.topology.from(port) == node && !reached.contains_key(&next) {
                reached.insert(next, so_far + hop_delay(config, port, bytes));
                queue.push_back(next);
            }
        }
    }
    reached.get(&to).copied().unwrap_or(Time::ZERO)
}

fn hop_delay(config: &SimConfig, port: PortId, bytes: Bytes) -> Time {
    let link = config.topology.link(port);
    Time::from_ns(link.rate.tx_time(bytes).as_ns()) + link.delay
}
