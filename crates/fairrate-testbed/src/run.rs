//! A run from the first namespace to the last row of results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fairrate_experiment::inputs_of;
use fairrate_results::{DelaySummary, LinuxSummary, ResultsDir, ResultsWriter, RunState, Tag};
use fairrate_scenario::Scenario;
use fairrate_sim::{DropCause, FlowId, FlowOutcome, Observation, PortId, RunTotals, SimConfig, Sink as _};
use fairrate_units::{Bytes, Time};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::classes::Classes;
use crate::connections::connect_all;
use crate::failure::Failure;
use crate::field::{FULL_PACKET, Field, HEADER};
use crate::lines::Lines;
use crate::machine::Watch;
use crate::namespaces::{Namespaces, Orphans};
use crate::paths::Ways;
use crate::plan::Plan;
use crate::qdisc::PortCounters;
use crate::receiving::receive;
use crate::sampling::Sampler;
use crate::sending::Sending;
use crate::shared::{Message, Phase, Shared, report_failure};
use crate::{algorithm, idle, network, place, priority, tools};

/// Time from the last preparation to the start.
const LEAD: Duration = Duration::from_millis(50);
/// Time after which the run fails if no data arrives while flows are active.
const PATIENCE: Time = Time::from_ms(30_000);
/// Time between two looks at the clock.
const LOOK: Duration = Duration::from_millis(20);

static STOP: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C and SIGTERM end the run, with the results so far written and the network removed.
pub fn listen_for_interrupts() {
    // The only possible error is a second handler in the same process, and there is none.
    let _ = ctrlc::set_handler(|| {
        if !STOP.swap(true, Ordering::SeqCst) {
            eprintln!("interrupted: writing what there is, and removing the network");
        }
    });
}

/// Returns `true` if the run was interrupted.
fn interrupted() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// A scenario to run, with its settings.
pub struct Job<'a> {
    /// The scenario and the changes to it.
    pub field: Field,
    /// Factor by which its rates were multiplied.
    pub scale: f64,
    /// Round trips of a connection before the start.
    pub warm_up: u32,
    /// Directory of the results.
    pub dir: &'a Path,
    /// Tags of all rows of its tables.
    pub tags: Vec<Tag>,
    /// `true` if nothing is printed on stderr.
    pub quiet: bool,
}

impl Job<'_> {
    /// Lays out the network, runs the flows, writes the results, and removes the network.
    ///
    /// # Errors
    /// If the network cannot be laid out, or the run or its results fail.
    pub fn run(self) -> Result<RunState, Failure> {
        let scenario = self.field.load()?;
        let config = scenario.sim_config();
        let ways = Ways::new(config);
        let (namespaces, orphans) = Namespaces::claim()?;
        self.say_what_was_left(&orphans);
        let plan = Plan::new(config, &ways, namespaces.mark());
        network::lay_out(&plan, &namespaces)?;
        Classes::of(config).map_or(Ok(()), |classes| classes.lay_out(config, &plan))?;
        let names = algorithm::bring(config, &plan, &namespaces)?;
        allow_sockets();
        // The priority lets flows start and packets leave on time, whatever else runs. If it is not allowed, the
        // lateness is counted.
        priority::before_other_programs();
        let lines = Lines::begin(&plan)?;
        let connections = connect_all(&plan, config, &ways, &names, self.warm_up)?;
        let rtts: Vec<Time> = connections.iter().map(|c| Time::from_us(u64::from(c.before.min_rtt_us))).collect();
        let mut field = self.field.clone();
        field.set_delay(idle::link_delay(config, &ways, &rtts))?;
        let effective = field.load()?;
        let mut linux = LinuxSummary {
            algorithm: names.values().map(String::as_str).collect::<Vec<_>>().join(", "),
            base_rtt_ns: idle::median(rtts.clone()).as_ns(),
            ..self.about_the_machine()?
        };
        self.say_what_stands(config, &linux);
        // No permanent file has been written so far.
        place::check(self.dir)?;
        let dir = Arc::new(ResultsDir::claim(self.dir)?);
        // Checked again, as another user may have made it in between.
        place::check(self.dir)?;
        let mut writer = ResultsWriter::create_in(&dir, &inputs_of(&effective), &self.tags)?;
        let before = network::counters(config, &plan)?;
        let shared = Shared::new(Instant::now() + LEAD, connections);
        lines.as_ref().map_or(Ok(()), Lines::count_anew)?;
        let off = idle::furthest_off(config, &ways, &rtts).unwrap_or_default();
        let run = Run { shared: &shared, effective: &effective, ways: &ways, plan: &plan, lines, off, before };
        let begun = Instant::now();
        let (state, unfinished, totals) = run.finish(&mut writer, &mut linux).unwrap_or_else(|failure| {
            // The results written so far stay.
            (RunState::Failed(failure.to_string()), Vec::new(), RunTotals::default())
        });
        for limit in &linux.machine_limits {
            self.say(&format!("the machine was the limit: {limit}"));
        }
        writer.set_groups(&shared.group_totals(&effective.sim_config().flows)?);
        writer.set_linux(linux);
        writer.finish(&unfinished, &totals, begun.elapsed(), &state)?;
        Ok(state)
    }

    /// Returns the part of the summary that is known before anything is laid out.
    fn about_the_machine(&self) -> Result<LinuxSummary, Failure> {
        let version = |tool: &str| Ok((tool.to_owned(), tools::version(tool)?));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(LinuxSummary {
            kernel: release.trim().to_owned(),
            tools: ["ip", "tc"].into_iter().map(version).collect::<Result<_, Failure>>()?,
            scale: self.scale,
            notes: self.field.notes.clone(),
            ..LinuxSummary::default()
        })
    }

    fn say_what_was_left(&self, orphans: &Orphans) {
        if 0 < orphans.namespaces {
            self.say(&format!("removed {} namespaces that a killed run had left", orphans.namespaces));
        }
        for why in &orphans.left {
            self.say(&format!(
                "the algorithm of a killed run is still in the kernel, the next start tries again: {why}"
            ));
        }
    }

    fn say_what_stands(&self, config: &SimConfig, linux: &LinuxSummary) {
        let (nodes, flows) = (config.topology.nodes.len(), config.flows.len());
        let (algorithm, base_rtt) = (&linux.algorithm, Time::from_ns(linux.base_rtt_ns));
        self.say(&format!("{nodes} namespaces, {flows} connections by `{algorithm}`, base RTT {base_rtt}"));
        for note in &linux.notes {
            self.say(&format!("note: {note}"));
        }
    }

    fn say(&self, words: &str) {
        if !self.quiet {
            eprintln!("{words}");
        }
    }
}

/// A network with connections, ready to run.
struct Run<'a> {
    shared: &'a Shared,
    effective: &'a Scenario,
    ways: &'a Ways,
    plan: &'a Plan<'a>,
    /// The lines of links with a delay of their own.
    lines: Option<Lines>,
    /// The delays and the round-trip time of the flow where they differ most.
    off: (Time, Time),
    /// Counters of ports before the start.
    before: BTreeMap<PortId, PortCounters>,
}

/// The results that a run has reported so far.
struct Done {
    /// For each flow, `true` if it was reported.
    flows: Vec<bool>,
    finished: u64,
    /// The longest queue seen.
    peak_bytes: u64,
    end: Time,
}

impl Run<'_> {
    fn config(&self) -> &SimConfig {
        self.effective.sim_config()
    }

    /// Runs it, and returns its state, the outcomes of flows that are not done, and the totals.
    fn finish(
        mut self,
        writer: &mut ResultsWriter,
        linux: &mut LinuxSummary,
    ) -> Result<(RunState, Vec<FlowOutcome>, RunTotals), Failure> {
        let (state, done, watch) = self.go(writer)?;
        linux.delays = self.lines.take().map(Lines::end).transpose()?.map(|delays| DelaySummary {
            asked_rtt_ns: self.off.0.as_ns(),
            measured_rtt_ns: self.off.1.as_ns(),
            ..delays
        });
        let after = network::counters(self.config(), self.plan)?;
        let unfinished = self.unfinished(&done)?;
        let totals = self.totals(&done, &unfinished, &after)?;
        linux.largest_mean_packet_bytes = self.largest_mean_packet(&after);
        watch.end(self.config(), linux);
        Ok((state, unfinished, totals))
    }

    /// Runs the threads until the end of the run.
    fn go(&self, writer: &mut ResultsWriter) -> Result<(RunState, Done, Watch), Failure> {
        let config = self.config();
        let ideal = idle::ideal_fcts(config, self.ways);
        let (tell, told) = channel();
        let sending = Sending::new(self.shared, &config.flows, &ideal, tell.clone())?;
        let sampler = Sampler::new(self.shared, config, self.plan, self.before.clone(), tell.clone())?;
        let mut listener = Listener {
            writer,
            watch: Watch::begin(),
            done: Done { flows: vec![false; config.flows.len()], finished: 0, peak_bytes: 0, end: Time::ZERO },
        };
        let state = std::thread::scope(|scope| {
            let (a, b, c) = (tell.clone(), tell.clone(), tell);
            scope.spawn(move || report_failure(&a, || receive(self.shared, &config.flows)));
            scope.spawn(move || report_failure(&b, || sending.run()));
            scope.spawn(move || report_failure(&c, || sampler.run()));
            let state = self.listen(&told, &mut listener);
            listener.done.end = self.shared.clock.now();
            self.shared.stop();
            state
        });
        let mut state = state?;
        // Messages sent while the threads ended. A flow that is done stays done.
        for told in told.try_iter() {
            match told {
                Message::Failed(failure) => state = RunState::Failed(failure.to_string()),
                told => listener.hear(told)?,
            }
        }
        Ok((state, listener.done, listener.watch))
    }

    fn listen(&self, told: &Receiver<Message>, listener: &mut Listener<'_>) -> Result<RunState, Failure> {
        let stop = self.config().stop;
        let finite = self.config().flows.iter().filter(|flow| flow.bytes != Bytes::MAX).count() as u64;
        let mut moved = (0, Time::ZERO);
        let mut snapshots = self.config().snapshots.iter().copied().peekable();
        loop {
            while let Some(at) = snapshots.next_if(|&at| at <= self.shared.clock.now()) {
                listener.writer.snapshot(at, &mut self.delivered());
            }
            let until = |at: &Time| self.shared.clock.at(*at).saturating_duration_since(Instant::now());
            match told.recv_timeout(snapshots.peek().map_or(LOOK, until).min(LOOK)) {
                Ok(Message::Failed(failure)) => return Ok(RunState::Failed(failure.to_string())),
                Ok(told) => listener.hear(told)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(RunState::Complete),
            }
            let now = self.shared.clock.now();
            if interrupted() {
                return Ok(RunState::Interrupted);
            }
            if self.lines.as_ref().is_some_and(Lines::have_failed) {
                return Ok(RunState::Failed("packets no longer pass the links with a delay".to_owned()));
            }
            let is_done = stop.when_flows_done && listener.done.finished == finite;
            if is_done || stop.at.is_some_and(|at| at <= now) {
                return Ok(RunState::Complete);
            }
            let delivered = self.delivered().map(|(_, bytes)| bytes).sum::<u64>();
            if moved.0 != delivered || !self.shared.progress.iter().any(|p| p.phase() == Phase::Active) {
                moved = (delivered, now);
            }
            if PATIENCE < now.saturating_sub(moved.1) {
                return Ok(RunState::Failed(format!("nothing has arrived since t={}", moved.1)));
            }
        }
    }

    /// Returns the payload that has arrived, in bytes, for each flow.
    fn delivered(&self) -> impl Iterator<Item = (FlowId, u64)> {
        (0..).map(FlowId).zip(&self.shared.progress).map(|(flow, p)| (flow, p.delivered.load(Ordering::Relaxed)))
    }

    /// Returns the outcomes of the flows that have started and are not done.
    fn unfinished(&self, done: &Done) -> Result<Vec<FlowOutcome>, Failure> {
        let started = |i: &usize| self.shared.progress[*i].phase() != Phase::Waiting && !done.flows[*i];
        let ideal = idle::ideal_fcts(self.config(), self.ways);
        (0..done.flows.len()).filter(started).map(|i| self.shared.outcome(FlowId(i as u32), ideal[i])).collect()
    }

    /// Returns the totals. Data on the wire is as TCP counts it: every segment has headers of the same size.
    fn totals(
        &self,
        done: &Done,
        unfinished: &[FlowOutcome],
        after: &BTreeMap<PortId, PortCounters>,
    ) -> Result<RunTotals, Failure> {
        let (mut sent_bytes, mut delivered_bytes) = (0, 0);
        for connection in &self.shared.connections {
            let (sent, received) = (connection.sent()?, connection.received()?);
            let wire = sent.bytes_sent + sent.segments_sent * HEADER;
            let arrived = received.segments_received.min(sent.segments_sent);
            sent_bytes += wire;
            delivered_bytes += wire * arrived / sent.segments_sent.max(1);
        }
        let since = |count: fn(&PortCounters) -> u64| {
            let of = |all: &BTreeMap<PortId, PortCounters>| all.values().map(count).sum::<u64>();
            of(after) - of(&self.before)
        };
        let drops = since(|port| port.drops);
        let dropped_bytes = (drops * FULL_PACKET).min(sent_bytes - delivered_bytes);
        let finite = |outcome: &&FlowOutcome| self.config().flows[outcome.flow.index()].bytes != Bytes::MAX;
        Ok(RunTotals {
            end: done.end,
            packet_hops: since(|port| port.tx_packets),
            sent_bytes,
            delivered_bytes,
            dropped_bytes,
            in_flight_bytes: sent_bytes - delivered_bytes - dropped_bytes,
            drops: [(DropCause::QueueLimit, drops)].into_iter().collect(),
            peak_buffer_bytes: done.peak_bytes,
            flows_done: done.finished,
            flows_unfinished: unfinished.iter().filter(finite).count() as u64,
            ..RunTotals::default()
        })
    }

    /// Returns the largest mean packet size of all ports, in bytes; 0 without ports.
    fn largest_mean_packet(&self, after: &BTreeMap<PortId, PortCounters>) -> u64 {
        let mean = |(port, after): (&PortId, &PortCounters)| {
            let before = self.before.get(port).copied().unwrap_or_default();
            (after.tx_bytes - before.tx_bytes) / (after.tx_packets - before.tx_packets).max(1)
        };
        after.iter().map(mean).max().unwrap_or(0)
    }
}

/// The receiver of the threads' messages.
struct Listener<'a> {
    writer: &'a mut ResultsWriter,
    watch: Watch,
    done: Done,
}

impl Listener<'_> {
    fn hear(&mut self, told: Message) -> Result<(), Failure> {
        match told {
            Message::Flow(outcome) => {
                self.done.flows[outcome.flow.index()] = true;
                self.done.finished += 1;
                self.writer.flow(&outcome);
            }
            Message::Port(sample) => {
                self.watch.port(&sample);
                self.done.peak_bytes = self.done.peak_bytes.max(sample.qlen_bytes);
                self.writer.observe(&Observation::Port(sample));
            }
            Message::Rate(sample) => self.writer.observe(&Observation::Rate(sample)),
            Message::Late(late) => self.watch.started_late(late),
            Message::SampledLate(late) => self.watch.sampled_late(late),
            Message::Failed(failure) => return Err(failure),
        }
        Ok(self.writer.check()?)
    }
}

/// Raises the limit of open sockets to the largest that the system allows.
fn allow_sockets() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If the limit is too low, making a connection fails with an error.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
