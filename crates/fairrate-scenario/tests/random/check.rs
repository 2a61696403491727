//! The properties that every run must have.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fairrate_control::Oracle;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::topology::Tier;
use fairrate_sim::{
    Both, ClockRule, DropCause, Drops, FlowOutcome, FlowSpec, FullBuffer, Headroom, NonEct, PacketEvent, Pfc, PortId,
    PortTotals, QueueConfig, Reason, ReceiverEvent, Recorder, Recovery, RunTotals, SenderEvent, SimConfig, SimError,
    Simulation, Sink, Switching, Transport, TransportConfig, Trigger,
};
use fairrate_units::{Bytes, Rate, Time};

use super::case::Case;
use super::explained::Explainer;
use super::observer::{self, Observer};
use super::traced;

/// Number of events after which a run is cut: the part until then is checked.
const MAX_EVENTS: u64 = 40_000;

/// The result of a check without a violation.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Verdict {
    /// The scenario was refused with a message.
    Refused,
    /// The scenario ran.
    Ran,
    /// The run stalled and reported that.
    Stalled,
}

/// The observable results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub recorder: Recorder,
    pub totals: RunTotals,
    ports: Vec<PortTotals>,
    pub unfinished: Vec<FlowOutcome>,
    error: Option<SimError>,
}

/// The results of a run but for those that a sink receives.
pub type Results = (RunTotals, Vec<PortTotals>, Vec<FlowOutcome>, Option<SimError>);

impl Run {
    fn new(recorder: Recorder, (totals, ports, unfinished, error): Results) -> Self {
        Self { recorder, totals, ports, unfinished, error }
    }
}

/// Checks a scenario, whose files are in `dir`.
///
/// # Errors
/// The property that does not hold.
pub fn check(case: &Case, dir: &Path) -> Result<Verdict, String> {
    let result = catch_unwind(AssertUnwindSafe(|| check_case(case, dir)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown type");
        Err(format!("panic: {text}"))
    })
}

fn check_case(case: &Case, dir: &Path) -> Result<Verdict, String> {
    case.write_files(dir);
    let read = |overrides: &Overrides| Scenario::from_toml(&case.toml, "case.toml", dir, overrides);
    let mut overrides = Overrides::default();
    let mut scenario = match read(&overrides) {
        Ok(scenario) => scenario,
        Err(error) if error.to_string().is_empty() => return Err("it is refused without a word".to_owned()),
        Err(_) => return Ok(Verdict::Refused),
    };
    if sends_without_time(scenario.sim_config()) {
        return Ok(Verdict::Refused);
    }
    let trial = trial(scenario.sim_config())?;
    if let Trial::Cut(at) = trial {
        overrides.sets.push(("duration".to_owned(), format!("\"{at}\"")));
        scenario = match read(&overrides) {
            Ok(scenario) => scenario,
            // Flows that would start later are not generated, so no finite flow may be left.
            Err(error) if error.to_string().contains("all are endless") => return Ok(Verdict::Refused),
            Err(error) => return Err(format!("with a duration of {at} it is refused: {error}")),
        };
    }
    let config = scenario.sim_config();
    let (run, by_spans) = both_ways(config, trial);
    holds(config, &run)?;
    same(&run, &by_spans, "by spans")?;
    check_repetitions(&scenario, &run, dir)?;
    check_observed(config, &run)?;
    Ok(if run.error.is_some() { Verdict::Stalled } else { Verdict::Ran })
}

/// A run of [`MAX_EVENTS`] events at most, on one thread.
enum Trial {
    /// The whole run, if it has no more events, and the way of its switches.
    Whole(Box<Run>, Switching),
    /// The time that a longer run reaches.
    Cut(Time),
}

/// Runs a trial.
fn trial(config: &SimConfig) -> Result<Trial, String> {
    let mut simulation = Simulation::new(config.clone());
    let is_by_event = simulation.mode().switches.contains(&Reason::FewPackets);
    let mut recorder = Recorder::default();
    let error = match simulation.advance(MAX_EVENTS, &mut recorder) {
        Ok(progress) if progress.finished => None,
        Ok(progress) if progress.now == Time::ZERO => return Err("time stands still".to_owned()),
        Ok(progress) => return Ok(Trial::Cut(progress.now)),
        Err(error) => Some(error),
    };
    let run = Run::new(recorder, results(&simulation, error));
    Ok(Trial::Whole(Box::new(run), if is_by_event { Switching::Events } else { Switching::Spans }))
}

/// Runs on one thread, by events and by spans. A whole trial is one of the two.
fn both_ways(config: &SimConfig, trial: Trial) -> (Run, Run) {
    let run = |switching| run(config, 1, u64::MAX, switching);
    match trial {
        Trial::Whole(whole, Switching::Events) => (*whole, run(Switching::Spans)),
        Trial::Whole(whole, _) => (run(Switching::Events), *whole),
        Trial::Cut(_) => (run(Switching::Events), run(Switching::Spans)),
    }
}

/// Returns `true` if hosts may send at once as many packets as their windows have bytes: times are whole nanoseconds,
/// as in ns-3, a short packet takes none, and applications write no more than a byte or so at a time. Such a run does
/// end, but after more events than a test has time for.
fn sends_without_time(config: &SimConfig) -> bool {
    let is_short = |flow: &FlowSpec| flow.burst.is_some_and(|burst| burst.bytes < Bytes::new(100));
    config.fabric.clock != ClockRule::Picoseconds && config.flows.iter().any(is_short)
}

fn run(config: &SimConfig, threads: usize, piece: u64, switching: Switching) -> Run {
    let mut recorder = Recorder::default();
    let results = run_into(&mut recorder, config, threads, piece, switching);
    Run::new(recorder, results)
}

/// The steps of packets, of senders and of receivers.
type Steps = (Vec<PacketEvent>, Vec<SenderEvent>, Vec<ReceiverEvent>);

/// Does the same as [`run`], with every step of every packet, sender and receiver.
fn run_observed(config: &SimConfig, threads: usize, piece: u64, switching: Switching) -> (Run, Steps) {
    let mut observer = Observer::default();
    let results = run_into(&mut observer, config, threads, piece, switching);
    observed(observer, results)
}

/// Returns what an observer has seen of a run.
fn observed(observer: Observer, results: Results) -> (Run, Steps) {
    let Observer { recorder, steps, senders, receivers } = observer;
    (Run::new(recorder, results), (steps, senders, receivers))
}

pub fn run_into(sink: &mut dyn Sink, config: &SimConfig, threads: usize, piece: u64, switching: Switching) -> Results {
    let mut simulation = Simulation::with_switching(config.clone(), threads, switching);
    let error = loop {
        match simulation.advance(piece, sink) {
            Ok(progress) if progress.finished => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
    };
    results(&simulation, error)
}

fn results(simulation: &Simulation, error: Option<SimError>) -> Results {
    (simulation.totals(), simulation.port_totals(), simulation.unfinished(), error)
}

/// Checks that a run whose packets are observed is the same run, and that an observer sees the same steps in the same
/// order by events, by spans and on several threads. The first of these runs is explained too.
fn check_observed(config: &SimConfig, first: &Run) -> Result<(), String> {
    let (mut observer, mut explainer) = (Observer::default(), Explainer::new(config)?);
    let mut both = Both(&mut observer, &mut explainer.observer);
    let results = run_into(&mut both, config, 1, u64::MAX, Switching::Events);
    let (run, (steps, senders, receivers)) = observed(observer, results);
    same(first, &run, "when it is observed and explained")?;
    observer::check_steps(config, &run.totals, &steps)?;
    explainer.check(first)?;
    traced::check(config, first)?;
    for (threads, piece, switching, how) in [
        (1, u64::MAX, Switching::Spans, "observed by spans"),
        (2, 4_001, Switching::Batches, "observed by batches of spans on 2 threads in pieces"),
        (3, u64::MAX, Switching::Events, "observed on 3 threads"),
    ] {
        let (run, (other_steps, other_senders, other_receivers)) = run_observed(config, threads, piece, switching);
        same(first, &run, how)?;
        observer::same_steps(&steps, &other_steps, how)?;
        observer::same_steps(&senders, &other_senders, how)?;
        observer::same_steps(&receivers, &other_receivers, how)?;
    }
    Ok(())
}

/// Checks that the same scenario gives the same run: in pieces, on several threads, and read again from its resolved
/// text.
fn check_repetitions(scenario: &Scenario, first: &Run, dir: &Path) -> Result<(), String> {
    let config = scenario.sim_config();
    same(first, &run(config, 1, 997, Switching::Batches), "by batches of spans in pieces")?;
    same(first, &run(config, 2, u64::MAX, Switching::Spans), "by spans on 2 threads")?;
    same(first, &run(config, 3, 4_001, Switching::Events), "on 3 threads in pieces")?;
    let dir = dir.join("resolved");
    std::fs::create_dir_all(&dir).expect("it can be made");
    for (name, text) in scenario.files() {
        std::fs::write(dir.join(name), text).expect("it can be written");
    }
    let again = Scenario::from_toml(&scenario.to_toml(), "case.toml", &dir, &Overrides::default());
    let again = again.map_err(|error| format!("the resolved text is refused: {error}"))?;
    if again.to_toml() != scenario.to_toml() || again.hash() != scenario.hash() {
        return Err("the resolved text resolves to another one".to_owned());
    }
    same(first, &run(again.sim_config(), 1, u64::MAX, Switching::Fitting), "from the resolved text")
}

fn same(first: &Run, other: &Run, how: &str) -> Result<(), String> {
    if first == other {
        return Ok(());
    }
    // The first lines in which the two runs differ.
    let (a, b) = (format!("{first:#?}"), format!("{other:#?}"));
    let lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(5);
    let lines: Vec<String> = lines.map(|(a, b)| format!("{} and {}", a.trim(), b.trim())).collect();
    Err(format!("the run is another one {how}: {}", lines.join("; ")))
}

/// Checks the properties of one run. The conservation of bytes is asserted where totals are computed.
fn holds(config: &SimConfig, run: &Run) -> Result<(), String> {
    check_flows(config, run)?;
    check_snapshots(config, run)?;
    check_ports(config, run)?;
    check_port_totals(run)?;
    check_hosts(config, run)?;
    check_buffers(config, run)?;
    check_stall(config, run)
}

/// Checks that drops and marks of ports add up to those of the run, for each cause.
fn check_port_totals(run: &Run) -> Result<(), String> {
    let marks: u64 = run.ports.iter().map(|port| port.ecn_marks).sum();
    let by_cause = |cause| run.ports.iter().map(|port| port.drops.of(cause)).sum();
    let drops: Drops = DropCause::ALL.into_iter().map(|cause| (cause, by_cause(cause))).collect();
    if (marks, drops) != (run.totals.counts.ecn_marks, run.totals.drops) {
        return Err(format!("ports have {marks} marks and {drops:?}: {:?}", run.totals));
    }
    Ok(())
}

/// Checks that every flow that is due is reported once, finished or not.
fn check_flows(config: &SimConfig, run: &Run) -> Result<(), String> {
    let (flows, totals) = (&run.recorder.flows, &run.totals);
    let is_finite = |o: &FlowOutcome| config.flows[o.flow.0 as usize].bytes < Bytes::MAX;
    let mut told = BTreeSet::new();
    if let Some(twice) = flows.iter().chain(&run.unfinished).find(|o| !told.insert(o.flow)) {
        return Err(format!("flow {} is told of twice", twice.flow.0));
    }
    for (id, flow) in (0u32..).zip(&config.flows) {
        let is_due = flow.trigger == Trigger::Time && flow.bytes < Bytes::MAX;
        if is_due && !told.contains(&fairrate_sim::FlowId(id)) {
            return Err(format!("flow {id} is neither finished nor unfinished"));
        }
    }
    let counts =
        (flows.iter().filter(|o| is_finite(o)).count(), run.unfinished.iter().filter(|o| is_finite(o)).count());
    if (counts.0 as u64, counts.1 as u64) != (totals.flows_done, totals.flows_unfinished) {
        let (done, unfinished) = (totals.flows_done, totals.flows_unfinished);
        return Err(format!("{counts:?} flows are told of, and counted {done} and {unfinished}"));
    }
    flows.iter().filter(|o| is_finite(o)).try_for_each(|outcome| check_finished(config, outcome))
}

/// Checks that snapshots are at the configured times, and that the delivered bytes of a flow only grow, up to its
/// outcome.
fn check_snapshots(config: &SimConfig, run: &Run) -> Result<(), String> {
    let snapshots = &run.recorder.snapshots;
    if !snapshots.iter().map(|s| s.0).eq(config.snapshots.iter().copied().take(snapshots.len())) {
        return Err(format!("snapshots at {:?}", snapshots.iter().map(|s| s.0).collect::<Vec<_>>()));
    }
    let mut last = vec![u64::MAX; config.flows.len()];
    for outcome in run.recorder.flows.iter().chain(&run.unfinished) {
        last[outcome.flow.0 as usize] = outcome.delivered_bytes;
    }
    for (t, delivered) in snapshots.iter().rev() {
        if let Some(flow) = (0..last.len()).find(|&flow| last[flow] < delivered[flow]) {
            return Err(format!("flow {flow} has {} bytes at {t}, and {} later", delivered[flow], last[flow]));
        }
        last.clone_from(delivered);
    }
    Ok(())
}

fn check_finished(config: &SimConfig, o: &FlowOutcome) -> Result<(), String> {
    let (id, spec) = (o.flow.0, &config.flows[o.flow.0 as usize]);
    let (Some(fct), Some(fct_ack)) = (o.fct, o.fct_ack) else {
        return Err(format!("flow {id} is finished without a time"));
    };
    if o.delivered_bytes != spec.bytes.as_u64() {
        return Err(format!("flow {id} is finished with {} of {} delivered", o.delivered_bytes, spec.bytes));
    }
    if fct_ack < fct {
        return Err(format!("flow {id} is acknowledged after {fct_ack} and delivered after {fct}"));
    }
    let subflows = match config.stack(spec.stack).0.kind {
        Transport::Rdma | Transport::Uet { .. } => 1,
        Transport::Tcp(tcp) => spec.subflows.unwrap_or(tcp.multipath.subflows),
    };
    // The ideal FCT is that of a single path.
    if subflows == 1 && fct < o.ideal_fct {
        return Err(format!("flow {id} takes {fct}, which is less than {} alone", o.ideal_fct));
    }
    Ok(())
}

/// Checks that samples are in order of time, counters never decrease, and no port sends faster than its link.
fn check_ports(config: &SimConfig, run: &Run) -> Result<(), String> {
    let ports = &run.recorder.ports;
    let times: Vec<Time> = ports.iter().map(|s| s.t).collect();
    if !times.is_sorted() || times.last().is_some_and(|&t| run.totals.end < t) {
        return Err("samples are not in the order of time, or beyond the end".to_owned());
    }
    let mut before = vec![(0, 0, 0, Time::ZERO); config.topology.n_ports()];
    // Flows that have the rates of lone flows share nothing.
    let may_exceed = config.cc.needs().feedback.oracle == Some(Oracle::Alone);
    for s in ports {
        let now = (s.tx_bytes, s.drops, s.ecn_marks, s.pfc_pause);
        let was = std::mem::replace(&mut before[s.port.index()], now);
        if now.0 < was.0 || now.1 < was.1 || now.2 < was.2 || now.3 < was.3 {
            return Err(format!("counters of port {} go back: {was:?}, then {now:?}", s.port.0));
        }
        if s.t < s.pfc_pause {
            return Err(format!("port {} has been paused for {} at {}", s.port.0, s.pfc_pause, s.t));
        }
        let rate = config.topology.link(s.port).rate;
        // Whole nanoseconds make links faster by up to a nanosecond per packet; a packet counts once its transmission
        // begins.
        let can = rate.bytes_in(s.t).as_u64() + 11_000;
        if config.fabric.clock == ClockRule::Picoseconds && can < s.tx_bytes && !may_exceed {
            return Err(format!("port {} of {rate} has sent {} bytes by {}", s.port.0, s.tx_bytes, s.t));
        }
    }
    Ok(())
}

/// Returns `true` if receive buffers of hosts drop what they have no room for.
fn may_hosts_lose(config: &SimConfig) -> bool {
    let buffers = config.hosts.iter().filter_map(|host| host.receive.as_ref());
    buffers.map(|buffer| buffer.full).any(|full| !matches!(full, FullBuffer::Pause { at: None, .. }))
}

/// Checks that receive buffers hold at most their size and drain no faster than they may, and that those that pause
/// lose nothing.
fn check_hosts(config: &SimConfig, run: &Run) -> Result<(), String> {
    for s in &run.recorder.hosts {
        let buffer = config.imperfect_host(s.host).and_then(|host| host.receive.as_ref());
        let (size, rate) = buffer.map_or((Bytes::ZERO, Rate::ZERO), |buffer| (buffer.size, buffer.fastest()));
        if size.as_u64() < s.held_bytes || rate.bytes_in(s.t).as_u64() < s.drained_bytes || s.t < s.pausing {
            return Err(format!("a receive buffer of {size} with {rate}: {s:?}"));
        }
    }
    // A pause is lost where links go down.
    let lost = run.totals.drops.of(DropCause::Host);
    if 0 < lost && config.faults.is_empty() && !may_hosts_lose(config) {
        return Err(format!("hosts that pause in time lose {lost} packets"));
    }
    Ok(())
}

/// Returns the bytes of the largest buffer of a switch.
fn largest_buffer(config: &SimConfig) -> u64 {
    let mut rates_bps = vec![0; config.topology.nodes.len()];
    for port in (0..config.topology.n_ports() as u32).map(PortId) {
        rates_bps[config.topology.from(port).index()] += config.topology.link(port).rate.as_bps();
    }
    rates_bps.into_iter().map(|bps| config.fabric.buffer_of(bps)).max().unwrap_or(0)
}

/// Checks that queues are within their buffers, headroom not counted, and that a lossless fabric drops nothing.
fn check_buffers(config: &SimConfig, run: &Run) -> Result<(), String> {
    let (fabric, totals) = (&config.fabric, &run.totals);
    let is_switch = |port| config.topology.nodes[config.topology.from(port).index()].tier != Tier::Host;
    let largest = largest_buffer(config);
    if !fabric.pauses_by_ingress() && largest < totals.peak_buffer_bytes {
        return Err(format!("a buffer of {largest} bytes has held {}", totals.peak_buffer_bytes));
    }
    // PFC frames wait outside the buffer, a pause and a resume frame for each class.
    let peak = totals.peak_buffer_bytes + 16 * fabric.pfc_frame.as_u64();
    if let Some(s) = run.recorder.ports.iter().find(|s| is_switch(s.port) && peak < s.qlen_bytes) {
        return Err(format!(
            "{} bytes wait at port {}, and no buffer has held more than {peak}",
            s.qlen_bytes, s.port.0
        ));
    }
    let is_lossless = fabric.pfc == Pfc::Ingress
        && fabric.headroom == Headroom::Auto
        && fabric.egress_alpha.is_none()
        && fabric.queue == QueueConfig::FIFO
        && fabric.all_ecn().all(|ecn| ecn.non_ect != NonEct::Drop)
        && fabric.classes.values().all(|class| class.pfc && class.headroom == Headroom::Auto && class.egress_alpha.is_none())
        // Headers above their limit are dropped, paused or not.
        && fabric.admission.trim.is_none_or(|trim| trim.limit.is_none())
        && config.faults.is_empty()
        && !may_hosts_lose(config);
    if is_lossless && (0 < totals.drops.total() || 0 < totals.dropped_bytes) {
        return Err(format!("a lossless fabric drops: {:?}", totals.drops));
    }
    Ok(())
}

/// Checks that a run does not stall, unless links are faulty, pauses wait for one another in a circle, as they may
/// where paths have circles, or packets are lost that no timeout retransmits: by a switch, or by a receiver that drops
/// those that have overtaken others. It reports a gap once in a while, as ns-3's does; a last packet that is dropped in
/// between is reported by no later one.
fn check_stall(config: &SimConfig, run: &Run) -> Result<(), String> {
    let is_patient =
        |transport: &TransportConfig| !matches!(transport.kind, Transport::Tcp(_)) && transport.rto.is_none();
    let no_timeout = config.stacks().any(|(transport, _)| is_patient(transport));
    let drops_early_packets =
        |transport: &TransportConfig| is_patient(transport) && transport.recovery == Recovery::GoBackN;
    let has_disorder = config.fabric.balance.is_by_packet();
    let receivers_drop = has_disorder && config.stacks().any(|(transport, _)| drops_early_packets(transport));
    let may_stall = !config.faults.is_empty() || no_timeout && 0 < run.totals.drops.total() || receivers_drop;
    let is_deadlock = |error: &SimError| error.to_string().contains("pauses wait for one another in a circle");
    match &run.error {
        Some(error) if !may_stall && !is_deadlock(error) => Err(format!("it stalls: {error}")),
        _ => Ok(()),
    }
}
