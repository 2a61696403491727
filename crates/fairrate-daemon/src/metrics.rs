//! Metrics for operators, in Prometheus's format: those of the allocator, and the parts that other services share.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Counter, Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

use crate::desk::{Counts, Desk, Refusal};
use crate::http::{self, Page};
use crate::tls::Certificates;
use crate::wire::{LEAST_VERSION, Reason, VERSION};

/// Time without an update after which the optimiser's thread is considered dead.
const DEAD_AFTER: Duration = Duration::from_secs(2);

/// All metrics of the allocator.
pub struct Metrics {
    registry: Registry,
    agents: IntGauge,
    connections: IntGauge,
    by_version: IntGaugeVec,
    flows: IntGauge,
    oversubscribed: IntGauge,
    oversubscribed_seconds: Counter,
    largest_share: Gauge,
    decides: IntGauge,
    holding: IntGauge,
    voters: IntGauge,
    votes: IntGauge,
    elsewhere: IntGauge,
    without_quorum: IntGauge,
    starts: IntCounter,
    ends: IntCounter,
    rates: IntCounter,
    refused: IntCounterVec,
    leases_ended: IntCounter,
    iterations: IntCounter,
    pub(crate) iteration: Histogram,
    closed: IntCounterVec,
    pub(crate) received: IntCounter,
    pub(crate) sent: IntCounter,
    turned_away: IntCounterVec,
    keys_loaded: IntCounterVec,
    reloads: IntCounterVec,
    links_down: IntGauge,
    links_changed: IntGauge,
    parked: IntGauge,
    cpu: Gauge,
    log_lines_lost: IntCounter,
    days_left: GaugeVec,
    certificates: Mutex<Option<Certificates>>,
    published: Mutex<(Instant, Counts)>,
}

/// The reason why a connection is turned away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TurnedAway {
    /// The connection could not be accepted.
    Accept,
    /// The largest number of connections is reached.
    TooManyConnections,
    /// The largest number of handshakes in progress from its address is reached.
    TooManyHandshakes,
    /// The identity has the largest number of connections.
    TooManyOfOne,
    /// The connection is not TLS, or its certificate is signed by another authority.
    Handshake,
    /// The handshake took longer than a lease.
    SlowHandshake,
}

impl TurnedAway {
    pub(crate) const ALL: [Self; 6] = [
        Self::Accept,
        Self::TooManyConnections,
        Self::TooManyHandshakes,
        Self::TooManyOfOne,
        Self::Handshake,
        Self::SlowHandshake,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::TooManyConnections => "too-many-connections",
            Self::TooManyHandshakes => "too-many-handshakes",
            Self::TooManyOfOne => "too-many-of-one-agent",
            Self::Handshake => "handshake",
            Self::SlowHandshake => "slow-handshake",
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates the metrics, all at zero.
    pub fn new() -> Self {
        let registry = registry();
        let gauge = |name, help| register(&registry, IntGauge::new(name, help));
        let counter = |name, help| register(&registry, IntCounter::new(name, help));
        let by = |name, help, label| register(&registry, IntCounterVec::new(Opts::new(name, help), &[label]));
        // An iteration takes from microseconds to a few milliseconds.
        let buckets = prometheus::exponential_buckets(2e-6, 2.0, 14).expect("the bounds are above 0");
        let iteration = HistogramOpts::new("fairrate_iteration_seconds", "Time of an iteration").buckets(buckets);
        let metrics = Self {
            agents: gauge("fairrate_agents", "Agents with a lease"),
            connections: gauge("fairrate_connections", "Connections of agents"),
            by_version: register(
                &registry,
                IntGaugeVec::new(
                    Opts::new("fairrate_connections_by_version", "Connections of agents by version of the protocol"),
                    &["version"],
                ),
            ),
            flows: gauge("fairrate_flows", "Flows the optimiser knows"),
            oversubscribed: gauge(
                "fairrate_links_oversubscribed",
                "Links whose flows may have more than the link's rate",
            ),
            oversubscribed_seconds: register(
                &registry,
                Counter::new("fairrate_links_oversubscribed_seconds_total", "Time during which there were such links"),
            ),
            decides: gauge("fairrate_decides", "1 if this allocator tells rates"),
            holding: gauge("fairrate_holding", "1 while no rate may grow, after a start or a takeover"),
            voters: gauge("fairrate_quorum_agents", "Agents of which more than half have to accept an allocator"),
            votes: gauge("fairrate_quorum_votes", "Those of them that have accepted this allocator"),
            elsewhere: gauge("fairrate_agents_elsewhere", "Agents with a higher epoch, while this allocator decides"),
            without_quorum: gauge(
                "fairrate_without_quorum",
                "1 if agents want this allocator to decide, but too few of them",
            ),
            largest_share: register(
                &registry,
                Gauge::new("fairrate_link_told_share_max", "Largest share of a link's rate that its flows may have"),
            ),
            starts: counter("fairrate_flow_starts_total", "Flowlets that began"),
            ends: counter("fairrate_flow_ends_total", "Flowlets that ended"),
            rates: counter("fairrate_rates_total", "Rates told"),
            refused: by("fairrate_refused_total", "Flows that got no rate", "why"),
            leases_ended: counter("fairrate_leases_ended_total", "Agents whose lease ended"),
            iterations: counter("fairrate_iterations_total", "Iterations of the optimiser"),
            iteration: register(&registry, Histogram::with_opts(iteration)),
            closed: by("fairrate_connections_closed_total", "Connections the allocator closed", "why"),
            received: counter("fairrate_received_bytes_total", "Bytes from agents"),
            sent: counter("fairrate_sent_bytes_total", "Bytes to agents"),
            turned_away: by("fairrate_turned_away_total", "Connections that came to nothing", "why"),
            keys_loaded: by("fairrate_keys_loaded_total", "Attempts to load keys again", "result"),
            reloads: by("fairrate_reloads_total", "Attempts to load the configuration again", "result"),
            links_down: gauge("fairrate_links_down", "Links that are down by configuration or command"),
            links_changed: gauge("fairrate_links_changed", "Link directions with another rate than the topology's"),
            parked: gauge("fairrate_flows_without_path", "Flows that no path leads for, kept without a rate"),
            cpu: register(&registry, Gauge::new("fairrate_cpu_seconds", "Processor time of all threads")),
            log_lines_lost: counter("fairrate_log_lines_lost_total", "Lines of the log that could not be written"),
            days_left: register(
                &registry,
                GaugeVec::new(Opts::new("fairrate_certificate_days_left", "Days until a certificate expires"), &["of"]),
            ),
            certificates: Mutex::default(),
            published: Mutex::new((Instant::now(), Counts::default())),
            registry,
        };
        metrics.show_zeros();
        metrics
    }

    /// Creates the counters of all reasons before their first event, so that their rates are correct.
    fn show_zeros(&self) {
        self.note_refused(&Counts::default(), &Counts::default());
        self.note_versions(|_| 0);
        for reason in Reason::ALL {
            self.closed_for(reason).inc_by(0);
        }
        for why in TurnedAway::ALL {
            self.turned_away_for(why).inc_by(0);
        }
        for is_ok in [true, false] {
            self.keys_loaded(is_ok).inc_by(0);
            self.reloads(is_ok).inc_by(0);
        }
    }

    /// Returns the counter of lines that a [`Log`](crate::logging::Log) could not write.
    pub fn log_lines_lost(&self) -> IntCounter {
        self.log_lines_lost.clone()
    }

    /// Stores the certificates in use.
    pub(crate) fn note_certificates(&self, certificates: Certificates) {
        *self.certificates.lock().unwrap_or_else(PoisonError::into_inner) = Some(certificates);
    }

    fn count_days(&self) {
        let certificates = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Certificates { own, authorities }) = &*certificates else { return };
        let now = SystemTime::now();
        self.days_left.with_label_values(&["allocator"]).set(own.days_left(now));
        let first = authorities.iter().map(|authority| authority.days_left(now)).reduce(f64::min);
        self.days_left.with_label_values(&["authority"]).set(first.unwrap_or(0.0));
    }

    pub(crate) fn closed_for(&self, reason: Reason) -> IntCounter {
        self.closed.with_label_values(&[&format!("{reason:?}")])
    }

    pub(crate) fn turned_away_for(&self, why: TurnedAway) -> IntCounter {
        self.turned_away.with_label_values(&[why.name()])
    }

    pub(crate) fn keys_loaded(&self, is_ok: bool) -> IntCounter {
        self.keys_loaded.with_label_values(&[if is_ok { "ok" } else { "error" }])
    }

    /// Returns the counter of attempts to load the configuration again.
    pub fn reloads(&self, is_ok: bool) -> IntCounter {
        self.reloads.with_label_values(&[if is_ok { "ok" } else { "error" }])
    }

    /// Stores the numbers of links that are down, and of link directions with another rate than the topology's.
    pub fn note_links(&self, (n_down, n_changed): (usize, usize)) {
        set(&self.links_down, n_down);
        set(&self.links_changed, n_changed);
    }

    /// Updates the metrics that the desk counts.
    pub(crate) fn publish(&self, desk: &Desk) {
        let Ok(mut published) = self.published.lock() else { return };
        let (now, before) = (desk.counts(), published.1);
        set(&self.agents, desk.n_agents());
        set(&self.connections, desk.n_connections());
        self.note_versions(|version| desk.n_of_version(version));
        set(&self.flows, desk.n_flows());
        set(&self.parked, desk.n_parked());
        let load = desk.link_load();
        set(&self.oversubscribed, load.n_oversubscribed);
        if 0 < load.n_oversubscribed {
            self.oversubscribed_seconds.inc_by(published.0.elapsed().as_secs_f64());
        }
        self.largest_share.set(load.largest_share);
        let reign = desk.reign();
        set(&self.decides, usize::from(reign.decides));
        set(&self.holding, usize::from(reign.is_holding));
        set(&self.voters, reign.n_voters);
        set(&self.votes, reign.n_with_it);
        set(&self.elsewhere, if reign.decides { reign.n_elsewhere } else { 0 });
        set(&self.without_quorum, usize::from(!reign.decides && 0 < reign.n_willing));
        self.starts.inc_by(now.starts - before.starts);
        self.ends.inc_by(now.ends - before.ends);
        self.rates.inc_by(now.rates - before.rates);
        self.iterations.inc_by(now.iterations - before.iterations);
        self.leases_ended.inc_by(now.leases_ended - before.leases_ended);
        self.note_refused(&before, &now);
        *published = (Instant::now(), now);
    }

    fn note_versions(&self, n: impl Fn(u8) -> usize) {
        for version in LEAST_VERSION..=VERSION {
            set(&self.by_version.with_label_values(&[version.to_string().as_str()]), n(version));
        }
    }

    fn note_refused(&self, before: &Counts, now: &Counts) {
        for why in Refusal::ALL {
            let n = now.refused_for(why) - before.refused_for(why);
            self.refused.with_label_values(&[why.name()]).inc_by(n);
        }
    }

    /// Returns `true` if the optimiser's thread is alive.
    pub fn is_healthy(&self) -> bool {
        self.published.lock().is_ok_and(|published| published.0.elapsed() < DEAD_AFTER)
    }

    /// Returns the page of a [`PageServer`](http::PageServer): `/metrics` or `/healthz`.
    pub fn page(&self, path: &str) -> Option<Page> {
        let fault = (!self.is_healthy()).then_some("the optimiser's thread does not answer");
        page(path, || self.text(), fault)
    }

    /// Returns all metrics as text.
    pub fn text(&self) -> String {
        if let Ok(stat) = procfs::process::Process::myself().and_then(|process| process.stat()) {
            self.cpu.set((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64);
        }
        self.count_days();
        text(&self.registry)
    }
}

fn set(gauge: &IntGauge, n: usize) {
    gauge.set(i64::try_from(n).unwrap_or(i64::MAX));
}

/// Creates a registry with the metrics of this process: its processor time, memory and file descriptors.
pub fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Box::new(ProcessCollector::for_self())).expect("names of metrics differ");
    registry
}

/// Registers `metric` in `registry`, and returns it.
///
/// # Panics
/// If the metric's name is invalid, or another metric of `registry` has it.
pub fn register<M: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<M>) -> M {
    let metric = metric.expect("names of metrics are valid");
    registry.register(Box::new(metric.clone())).expect("names of metrics differ");
    metric
}

/// Returns the metrics of `registry` in Prometheus's text format.
pub fn text(registry: &Registry) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail, and names were checked at registration.
    let _ = TextEncoder::new().encode(&registry.gather(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the page of a service at `path`: `/metrics` has `text`, and `/healthz` has `fault`, or `ok` if there is
/// none.
pub fn page(path: &str, text: impl FnOnce() -> String, fault: Option<&str>) -> Option<Page> {
    match path {
        "/metrics" => Some(Page { is_ok: true, content_type: "text/plain; version=0.0.4", body: text() }),
        "/healthz" => {
            let body = format!("{}\n", fault.unwrap_or("ok"));
            Some(Page { is_ok: fault.is_none(), content_type: http::TEXT, body })
        }
        _ => None,
    }
}
