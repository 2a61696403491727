//! Metrics for operators, in Prometheus's format.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fairrate_daemon::http::Page;
use fairrate_daemon::metrics::{self, register};
use prometheus::{IntCounter, IntGauge, Registry};

/// Time without a sign of life after which a thread counts as dead.
const DEAD_AFTER: Duration = Duration::from_secs(2);

/// The threads that must stay alive.
#[derive(Clone, Copy, Debug)]
pub enum Worker {
    /// The thread that takes events of the kernel and looks at sockets.
    Watch,
    /// The thread that takes rates of the allocator.
    Pace,
}

/// All metrics of the agent.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Number of allocators that the agent is connected to.
    pub allocators: IntGauge,
    /// Number of network namespaces whose connections count.
    pub namespaces: IntGauge,
    /// Number of flowlets that the allocator has been sent.
    pub flows: IntGauge,
    /// Number of flowlets that began.
    pub starts: IntCounter,
    /// Number of flowlets that ended.
    pub ends: IntCounter,
    /// Number of flowlets that were left without a rate, as there were too many.
    pub refused: IntCounter,
    /// Number of rates that the allocator has sent.
    pub rates: IntCounter,
    /// Number of rates dropped, as another allocator has a higher epoch.
    pub dropped: IntCounter,
    /// Number of the kernel's events for which there was no room.
    pub events_lost: IntCounter,
    /// Number of looks at all sockets.
    pub looks: IntCounter,
    log_lines_lost: IntCounter,
    began: Instant,
    /// Time of the last sign of life of each worker, in milliseconds since `began`.
    heard_ms: [AtomicU64; 2],
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates the metrics, all at zero.
    pub fn new() -> Self {
        let registry = metrics::registry();
        let counter = |name, help| register(&registry, IntCounter::new(format!("fairrate_agent_{name}_total"), help));
        let gauge = |name, help| register(&registry, IntGauge::new(format!("fairrate_agent_{name}"), help));
        Self {
            allocators: gauge("allocators", "Allocators that the agent talks to"),
            namespaces: gauge("namespaces", "Network namespaces whose connections count"),
            flows: gauge("flows", "Flowlets that the allocator knows"),
            starts: counter("flow_starts", "Flowlets that began"),
            ends: counter("flow_ends", "Flowlets that ended"),
            refused: counter("refused", "Times that a flowlet went without a rate, as there were too many"),
            rates: counter("rates", "Rates that the allocator has given"),
            dropped: counter("dropped_rates", "Rates of an allocator whose epoch is over"),
            events_lost: counter("events_lost", "Events of the kernel for which there was no room"),
            looks: counter("looks", "Looks at all sockets"),
            log_lines_lost: counter("log_lines_lost", "Log lines that could not be written"),
            registry,
            began: Instant::now(),
            heard_ms: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Returns the counter of log lines that could not be written.
    pub fn log_lines_lost(&self) -> IntCounter {
        self.log_lines_lost.clone()
    }

    /// Records a sign of life of a worker.
    pub fn hear(&self, worker: Worker) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        self.heard_ms[worker as usize].store(now_ms, Ordering::Relaxed);
    }

    /// Returns `true` if all workers have given a recent sign of life.
    pub fn is_healthy(&self) -> bool {
        let heard = |ms: &AtomicU64| Duration::from_millis(ms.load(Ordering::Relaxed));
        self.heard_ms.iter().all(|ms| self.began.elapsed() < heard(ms) + DEAD_AFTER)
    }

    /// Returns a page of the metrics port.
    pub fn page(&self, path: &str) -> Option<Page> {
        let fault = (!self.is_healthy()).then_some("a thread does not answer");
        metrics::page(path, || metrics::text(&self.registry), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_an_operator() {
        let metrics = Metrics::new();
        metrics.starts.inc_by(3);
        let body = metrics.page("/metrics").unwrap().body;
        assert!(body.contains("fairrate_agent_flow_starts_total 3\n"), "{body}");
        assert!(body.contains("process_cpu_seconds_total"), "{body}");
        assert!(metrics.page("/healthz").unwrap().is_ok && metrics.page("/").is_none());
    }

    #[test]
    fn one_silent_worker_is_enough_to_be_ill() {
        let began = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let metrics = Metrics { began, ..Metrics::new() };
        metrics.hear(Worker::Watch);
        assert!(!metrics.is_healthy() && !metrics.page("/healthz").unwrap().is_ok);
        metrics.hear(Worker::Pace);
        assert!(metrics.is_healthy());
    }
}
