//! Writing of results while a run goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairrate_sim::{
    ConvergenceSample, FlowId, FlowOutcome, FlowSpec, GroupTotals, HostSample, Mode, Observation, PfcEvent, PortSample,
    PortTotals, RateSample, RunTotals, Shared, Sink, TaskOutcome, Trigger, Wants,
};
use fairrate_units::{Bytes, Time};

use crate::collectives::Collectives;
use crate::columns::TableWriter;
use crate::dir::{ResultsDir, remove_if_there, sync_file, write_durably, write_whole};
use crate::first_summary::first_summary;
use crate::growing::GrowingFile;
use crate::inputs::RunInputs;
use crate::jobs::Jobs;
use crate::linux::LinuxSummary;
use crate::measured::Meter;
use crate::names::Names;
use crate::recovery::RecoveryMeter;
use crate::rows::{ConvergenceRow, FlowRow, LinkRow, PfcRow, PortRow, RateRow, TABLES, TableWriters};
use crate::rtts::Rtts;
use crate::summary::{AllocatorSummary, Convergence, Deadlines, RunState, Summary, buckets};
use crate::table::Row;
use crate::tags::{Tag, TagValue};
use crate::value::ns;
use crate::{ResultsError, SCENARIO, SCHEMA, SUMMARY};

/// A writer of the results directory of one run; see the crate's documentation for its files.
///
/// The tables are valid Parquet at every moment. Buffered rows are written by [`ResultsWriter::finish`], or when the
/// writer is dropped, as by a panic. Until then, the state in `summary.json` is `running`; after an error or a panic it
/// is `failed`.
pub struct ResultsWriter {
    dir: Arc<ResultsDir>,
    tables: TableWriters,
    /// Names of the other files, without the summary.
    files: Vec<String>,
    specs: Shared<FlowSpec>,
    /// The traffic blocks whose flows have no rows.
    without_rows: BTreeSet<u32>,
    names: Names,
    meter: Meter,
    recovery: Option<RecoveryMeter>,
    collectives: Option<Collectives>,
    jobs: Option<Jobs>,
    rtts: Option<Rtts>,
    /// For every arrival and departure of a flow, the number of base RTTs until the rates settled, if they did.
    settled: Vec<Option<f64>>,
    /// Deadlines of the finished flows (`deadlines`), and the times at which those of the unfinished flows pass
    /// (`due`).
    deadlines: Deadlines,
    due: Vec<Time>,
    n_flows: u64,
    /// Number of flows that wait for others of which nothing has been told.
    n_waiting: u64,
    n_endless: u64,
    n_finished: u64,
    goodput_bytes: u64,
    retransmitted_bytes: u64,
    summary: Summary,
    /// The first error so far: the methods of a [`Sink`] cannot return it.
    error: Option<ResultsError>,
    closed: bool,
}

impl ResultsWriter {
    /// Creates the directory and holds its lock until the run has ended; see [`ResultsWriter::create_in`].
    ///
    /// # Errors
    /// As [`ResultsDir::claim`]; otherwise if it cannot be written.
    pub fn create(dir: &Path, inputs: &RunInputs<'_>) -> Result<Self, ResultsError> {
        Self::create_in(&Arc::new(ResultsDir::claim(dir)?), inputs, &[])
    }

    /// Notes what became of the packets of each traffic block, at the end of the run.
    pub fn set_groups(&mut self, totals: &[GroupTotals]) {
        self.meter.note_groups(totals);
    }

    /// Adds the counters of all ports, at the end of the run.
    pub fn set_ports(&mut self, totals: &[PortTotals]) {
        for total in totals {
            let (node, port) = self.names.port(total.port);
            self.push(LinkRow::of(node, port, self.names.rate_bps(total.port), total));
        }
    }

    /// Notes how the run is simulated, for the summary.
    pub fn set_mode(&mut self, mode: Mode) {
        self.summary.engine = Some(mode.into());
    }

    /// Creates a writer: writes the resolved scenario and empty tables to `dir`. Results of an earlier run are
    /// replaced. All rows of all tables have `tags`, and before them `cc`, `label` (the algorithm's name, unless it is
    /// a tag) and `seed`.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn create_in(dir: &Arc<ResultsDir>, inputs: &RunInputs<'_>, tags: &[Tag]) -> Result<Self, ResultsError> {
        let mut summary = first_summary(inputs);
        write_summary(dir.path(), &mut summary)?;
        let made = Self::begin(dir, inputs, tags, summary.clone());
        made.inspect_err(|error| leave_failed(dir.path(), &mut summary, error))
    }

    fn begin(
        dir: &Arc<ResultsDir>,
        inputs: &RunInputs<'_>,
        tags: &[Tag],
        summary: Summary,
    ) -> Result<Self, ResultsError> {
        let path = dir.path();
        remove_earlier(path)?;
        for (name, content) in &inputs.files {
            write_file(path, name, content)?;
        }
        write_file(path, SCENARIO, &inputs.scenario)?;
        let tags = all_tags(&summary, tags);
        let facts = [
            ("fairrate:scenario", summary.scenario.as_str()),
            ("fairrate:scenario_hash", &summary.scenario_hash),
            ("fairrate:version", &summary.version),
            ("fairrate:commit", &summary.commit),
            ("fairrate:schema", SCHEMA),
        ];
        Ok(Self {
            dir: Arc::clone(dir),
            tables: TableWriters::create(|table| TableWriter::create(path, table, &tags, &facts))?,
            files: inputs.files.iter().map(|(name, _)| *name).chain([SCENARIO]).map(str::to_owned).collect(),
            specs: inputs.config.flows.clone(),
            without_rows: inputs.without_rows(),
            names: Names::new(&inputs.config.topology),
            meter: Meter::new(inputs.config, inputs.measured_from, inputs.measured_until),
            recovery: inputs.failure.map(RecoveryMeter::new),
            collectives: Collectives::new(inputs.config),
            jobs: Jobs::new(inputs.config),
            rtts: Rtts::new(inputs.config, inputs.measured_from, inputs.measured_until),
            settled: Vec::new(),
            deadlines: Deadlines::default(),
            due: Vec::new(),
            n_flows: 0,
            n_waiting: inputs.config.flows.iter().filter(|flow| flow.trigger == Trigger::Dependencies).count() as u64,
            n_endless: 0,
            n_finished: 0,
            goodput_bytes: 0,
            retransmitted_bytes: 0,
            summary,
            error: None,
            closed: false,
        })
    }

    /// Marks the run as one on real Linux, described by `linux`.
    pub fn set_linux(&mut self, linux: LinuxSummary) {
        "linux".clone_into(&mut self.summary.backend);
        self.summary.linux = Some(linux);
    }

    /// Returns the first write error so far; to be called now and then during the run. On an error the state in the
    /// summary becomes `failed`.
    ///
    /// # Errors
    /// The first write error, only once.
    pub fn check(&mut self) -> Result<(), ResultsError> {
        let Some(error) = self.error.take() else { return Ok(()) };
        self.fail(&error);
        Err(error)
    }

    /// Completes the directory: writes the flows that have not finished, the buffered rows and the summary, and returns
    /// the summary. All other files are synced to disk before the summary with the final state is written.
    ///
    /// # Errors
    /// If anything could not be written; the state in the summary is then `failed`.
    pub fn finish(
        mut self,
        unfinished: &[FlowOutcome],
        totals: &RunTotals,
        wall: Duration,
        state: &RunState,
    ) -> Result<Summary, ResultsError> {
        for outcome in unfinished {
            self.flow(outcome);
        }
        let (started, to_start): (Vec<_>, Vec<_>) = unfinished.iter().partition(|outcome| outcome.start <= totals.end);
        let is_open = |o: &&&FlowOutcome| o.fct.is_none() && self.specs[o.flow.index()].bytes < Bytes::MAX;
        self.summary.unfinished_flows = started.iter().filter(is_open).count() as u64;
        self.summary.flows_to_start = self.meter.not_started(to_start.iter().map(|o| &self.specs[o.flow.index()]));
        if let Some(collectives) = &self.collectives {
            let rows = collectives.unfinished(totals.end);
            self.summary.collectives = collectives.summaries();
            for row in rows {
                self.push(row);
            }
        }
        for row in self.rtts.as_ref().map_or_else(Vec::new, Rtts::rows) {
            self.push(row);
        }
        self.summary.jobs = self.jobs.as_ref().map_or_else(Vec::new, Jobs::summaries);
        self.check()?;
        self.complete_summary(totals, wall, state);
        let done = self.write_all();
        if let Err(error) = &done {
            self.fail(error);
        }
        done.map(|()| self.summary.clone())
    }

    fn write_all(&mut self) -> Result<(), ResultsError> {
        self.close()?;
        let infos = self.tables.all().map(|table| table.info());
        self.summary.tables = TABLES.iter().map(|table| table.name.to_owned()).zip(infos).collect();
        self.sync()?;
        let path = self.dir.path().join(SUMMARY);
        let text = summary_text(&path, &mut self.summary)?;
        write_durably(&path, &text).map_err(|e| ResultsError::io(&path, e))
    }

    /// Syncs all files except the summary to disk. The syncs run in parallel, which takes little longer than a single
    /// one.
    fn sync(&mut self) -> Result<(), ResultsError> {
        let dir = self.dir.path().to_owned();
        let files = self.files.iter().map(|name| dir.join(name)).collect::<Vec<_>>();
        let file = |path: &Path| sync_file(path).map_err(|e| ResultsError::io(path, e));
        let tables = self.tables.all();
        std::thread::scope(|scope| {
            let mut waits: Vec<_> = tables.iter().map(|table| scope.spawn(|| table.sync())).collect();
            waits.extend(files.iter().map(|path| scope.spawn(|| file(path))));
            waits.into_iter().try_for_each(|wait| wait.join().expect("waiting does not panic"))
        })
    }

    fn close(&mut self) -> Result<(), ResultsError> {
        self.closed = true;
        self.tables.all().into_iter().try_for_each(TableWriter::finish)
    }

    /// Writes `error` and the state `failed` to the summary.
    fn fail(&mut self, error: &ResultsError) {
        self.closed = true;
        // A full disk may have no room for the summary; removing the spare copies of tables frees some.
        self.tables.all().into_iter().for_each(TableWriter::give_up);
        leave_failed(self.dir.path(), &mut self.summary, error);
    }

    fn complete_summary(&mut self, totals: &RunTotals, wall: Duration, state: &RunState) {
        let s = &mut self.summary;
        let (state, error) = match state {
            RunState::Complete => ("complete", None),
            RunState::Interrupted => ("interrupted", None),
            RunState::Failed(why) => ("failed", Some(why.clone())),
        };
        (s.state, s.error) = (state.to_owned(), error);
        s.fingerprint = format!("{:016x}", totals.fingerprint);
        (s.packet_hops, s.events) = (totals.packet_hops, totals.events);
        (s.wall_s, s.sim_s) = (wall.as_secs_f64(), totals.end.as_secs_f64());
        (s.bytes_sent, s.bytes_delivered) = (totals.sent_bytes, totals.delivered_bytes);
        (s.bytes_dropped, s.bytes_in_flight) = (totals.dropped_bytes, totals.in_flight_bytes);
        s.goodput_bytes = self.goodput_bytes;
        s.measured = self.meter.measured(totals);
        let measured_ns = s.measured.until_ns - s.measured.from_ns;
        s.goodput_bps = if measured_ns == 0 { 0.0 } else { s.measured.goodput_bytes as f64 * 8e9 / measured_ns as f64 };
        (s.flows, s.endless_flows) = (self.n_flows - s.flows_to_start, self.n_endless);
        s.flows_to_start += self.n_waiting;
        s.finished_flows = self.n_finished;
        s.retransmitted_bytes = self.retransmitted_bytes;
        s.drops = totals.drops.total();
        (s.drops_by_cause, s.counts) = (totals.drops, totals.counts);
        (s.bytes_trimmed, s.bytes_duplicated) = (totals.trimmed_bytes, totals.duplicated_bytes);
        let a = totals.allocator;
        s.control_bytes = totals.control_bytes + a.from_allocator_bytes + a.to_allocator_bytes + a.relayed_bytes;
        s.allocator = s.allocator.map(|_| AllocatorSummary(a));
        s.peak_buffer_bytes = totals.peak_buffer_bytes;
        s.reordered_bytes = totals.reordering.bytes;
        s.reordering_mean_ns = totals.reordering.mean().as_ns_f64();
        s.reordering_max_ns = totals.reordering.max.as_ns_f64();
        s.fct = buckets(&self.meter.finished, &self.meter.unfinished_at(totals.end));
        s.recovery = self.recovery.as_ref().and_then(RecoveryMeter::summary);
        if let Some(deadlines) = &mut s.deadlines {
            *deadlines = self.deadlines.with_unfinished(&self.due, totals.end);
        }
        if let Some(convergence) = &mut s.convergence {
            *convergence = Convergence::of(&self.settled);
        }
    }

    /// Returns the number of a flow as users see it.
    fn flow_name(&self, flow: FlowId) -> u32 {
        self.specs[flow.index()].name(flow)
    }

    /// Adds a row to its table, and notes the first error.
    fn push<R: Row>(&mut self, row: R) {
        let result = R::writer(&mut self.tables).push(row);
        if let (Err(error), None) = (result, &self.error) {
            self.error = Some(error);
        }
    }
}

/// Rows of observations.
impl ResultsWriter {
    fn task(&mut self, outcome: &TaskOutcome) {
        let Some((operation, iterations)) = self.jobs.as_mut().map(|jobs| jobs.task(outcome)) else { return };
        if let Some(row) = operation {
            self.push(row);
        }
        for row in iterations {
            self.push(row);
        }
    }

    fn port(&mut self, sample: &PortSample) {
        let (node, port) = self.names.port(sample.port);
        self.push(PortRow {
            t_ns: ns(sample.t),
            node,
            port,
            qlen_bytes: sample.qlen_bytes,
            tx_bytes: sample.tx_bytes,
            drops: sample.drops,
            ecn_marks: sample.ecn_marks,
            pfc_pause_ns: ns(sample.pfc_pause),
        });
    }

    fn host(&mut self, sample: &HostSample) {
        let port = self.names.host(sample.host);
        self.push(PortRow {
            t_ns: ns(sample.t),
            node: sample.host.0,
            port,
            qlen_bytes: sample.held_bytes,
            tx_bytes: sample.drained_bytes,
            drops: sample.drops,
            ecn_marks: 0,
            pfc_pause_ns: ns(sample.pausing),
        });
    }

    fn rate(&mut self, sample: &RateSample) {
        self.push(RateRow {
            t_ns: ns(sample.t),
            flow: self.flow_name(sample.flow),
            cwnd_bytes: (sample.cwnd_bytes != u64::MAX).then_some(sample.cwnd_bytes),
            rate_bps: sample.rate_bps,
            delivered_bytes: sample.delivered_bytes,
            rtt_ns: sample.measured.map(|m| ns(m.rtt)),
            retransmitted_bytes: sample.measured.map(|m| m.retransmitted_bytes),
        });
    }

    fn pfc(&mut self, event: &PfcEvent) {
        let (node, port) = self.names.port(event.port);
        self.push(PfcRow { t_ns: ns(event.t), node, port, pause: event.pause, class: event.class });
    }

    fn convergence(&mut self, sample: &ConvergenceSample) {
        self.settled.push(sample.rtts);
        self.push(ConvergenceRow {
            t_ns: ns(sample.t),
            flow: self.flow_name(sample.flow),
            arrival: sample.arrival,
            n_flows: sample.n_flows,
            time_ns: sample.time.map(ns),
            rtts: sample.rtts,
            converged: sample.time.is_some(),
        });
    }
}

impl Sink for ResultsWriter {
    fn wants(&self) -> Wants {
        Wants { rtts: self.rtts.is_some(), snapshots: true, ..Wants::default() }
    }

    fn is_closed(&self) -> bool {
        self.error.is_some()
    }

    fn snapshot(&mut self, t: Time, delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {
        let mut recovery = self.recovery.as_mut().filter(|recovery| recovery.wants(t));
        let all = if self.meter.has_edge(t) {
            self.meter.snapshot(&self.specs, delivered)
        } else if recovery.is_some() {
            delivered.map(|(_, bytes)| bytes).sum()
        } else {
            return;
        };
        if let Some(recovery) = &mut recovery {
            recovery.add(t, all);
        }
    }

    fn flow(&mut self, outcome: &FlowOutcome) {
        let spec = &self.specs[outcome.flow.index()];
        let endless = spec.bytes == Bytes::MAX;
        let is_finished = outcome.fct.is_some() && !endless;
        self.meter.flow(spec, outcome);
        self.n_finished += u64::from(is_finished);
        match (spec.deadline, outcome.fct) {
            (Some(deadline), Some(fct)) => self.deadlines.add(deadline < fct),
            (Some(deadline), None) => self.due.push(outcome.start.saturating_add(deadline)),
            (None, _) => {}
        }
        self.n_flows += 1;
        self.n_waiting -= u64::from(spec.trigger == Trigger::Dependencies);
        self.n_endless += u64::from(endless);
        self.goodput_bytes += outcome.delivered_bytes;
        self.retransmitted_bytes += outcome.retransmitted_bytes;
        let rows = self.collectives.as_mut().map_or_else(Vec::new, |collectives| collectives.flow(spec, outcome));
        if !self.without_rows.contains(&spec.group) {
            self.push(FlowRow::of(spec, outcome));
        }
        for row in rows {
            self.push(row);
        }
    }

    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Task(outcome) => self.task(outcome),
            Observation::Port(sample) => self.port(sample),
            Observation::Host(sample) => self.host(sample),
            Observation::Rate(sample) => self.rate(sample),
            Observation::Pfc(event) => self.pfc(event),
            Observation::Rtt(sample) => {
                if let Some(rtts) = &mut self.rtts {
                    rtts.add(&self.specs[sample.flow.index()], sample);
                }
            }
            Observation::Convergence(sample) => self.convergence(sample),
            Observation::Sender(_) | Observation::Receiver(_) => {}
        }
    }
}

impl Drop for ResultsWriter {
    fn drop(&mut self) {
        if !self.closed {
            // A drop cannot return an error.
            let _ = self.close();
            if std::thread::panicking() {
                (self.summary.state, self.summary.error) =
                    ("failed".to_owned(), Some("the program broke off".to_owned()));
                let _ = write_summary(self.dir.path(), &mut self.summary);
            }
        }
    }
}

/// Removes the tables and the report of an earlier run.
pub(super) fn remove_earlier(dir: &Path) -> Result<(), ResultsError> {
    let remove = |path: &Path| remove_if_there(path).map_err(|e| ResultsError::io(path, e));
    for table in TABLES {
        let path = dir.join(format!("{}.parquet", table.name));
        GrowingFile::remove_spares(&path).map_err(|e| ResultsError::io(&path, e))?;
        remove(&path)?;
    }
    remove(&dir.join("report.html"))
}

/// Returns the columns that all rows of all tables have in common. A grid's key `seed` in `more` changes no type.
fn all_tags(summary: &Summary, more: &[Tag]) -> Arc<[Tag]> {
    let cc = TagValue::Text(summary.cc.clone());
    let label = more.iter().find(|tag| tag.name == "label").map_or_else(|| cc.clone(), |tag| tag.value.clone());
    let first = [Tag::new("cc", cc), Tag::new("label", label), Tag::new("seed", TagValue::Whole(summary.seed))];
    let others = more.iter().filter(|tag| first.iter().all(|other| other.name != tag.name)).cloned();
    first.iter().cloned().chain(others).collect()
}

/// Writes `error` and the state `failed` to the summary. If that is not possible, removes the summary: no summary is
/// better than one whose state is `running`.
fn leave_failed(dir: &Path, summary: &mut Summary, error: &ResultsError) {
    (summary.state, summary.error) = ("failed".to_owned(), Some(error.to_string()));
    summary.tables = BTreeMap::new();
    if write_summary(dir, summary).is_err() {
        // An error of the removal is ignored: the caller returns the first error.
        let _ = remove_if_there(&dir.join(SUMMARY));
    }
}

fn write_summary(dir: &Path, summary: &mut Summary) -> Result<(), ResultsError> {
    let text = summary_text(&dir.join(SUMMARY), summary)?;
    write_file(dir, SUMMARY, &text)
}

fn summary_text(path: &Path, summary: &mut Summary) -> Result<String, ResultsError> {
    summary.signed_json().map_err(|cause| ResultsError::Summary { path: path.to_owned(), cause })
}

fn write_file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> Result<(), ResultsError> {
    let path = dir.join(name);
    write_whole(&path, content).map_err(|e| ResultsError::io(&path, e))
}
