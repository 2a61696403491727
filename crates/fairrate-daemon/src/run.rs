//! `fairrate-allocator run`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_daemon::config::Config;
use fairrate_daemon::http::PageServer;
use fairrate_daemon::logging::Log;
use fairrate_daemon::systemd::Notifier;
use fairrate_daemon::{Desk, Metrics, Network, Server};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{EXIT_FAILED, failed};

/// A configuration with its network.
pub struct Loaded {
    pub config: Config,
    pub network: Network,
}

/// Runs until a signal says otherwise.
pub fn run(loaded: Loaded) -> ExitCode {
    let metrics = Arc::new(Metrics::new());
    let log = match Log::start(metrics.log_lines_lost()) {
        Ok(log) => log,
        Err(error) => return failed(&format!("cannot start: {error}"), EXIT_FAILED),
    };
    let result = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve(loaded, metrics)),
        Err(error) => Err(format!("cannot start: {error}")),
    };
    log.flush();
    result.map_or_else(|error| failed(&error, EXIT_FAILED), |()| ExitCode::SUCCESS)
}

async fn serve(Loaded { config, network }: Loaded, metrics: Arc<Metrics>) -> Result<(), String> {
    let shown = |error: &dyn std::fmt::Display| error.to_string();
    // Before anybody is told that the program runs, so that no signal finds it unprepared.
    let mut signals = Signals::new().map_err(|e| shown(&e))?;
    let notifier = Notifier::from_env().map_err(|e| format!("cannot use `NOTIFY_SOCKET`: {e}"))?.map(Arc::new);
    let epoch = getrandom::u64().map_err(|e| shown(&e))?;
    let engine = network.engine(&config.engine);
    let desk = Desk::new(config.desk(epoch), engine, network.into_paths());
    let server = Server::start(config.server(), desk, Arc::clone(&metrics)).map_err(|e| shown(&e))?;
    if config.insecure {
        tracing::warn!("plain TCP: whoever connects may speak for everybody");
    }
    tracing::info!(address = %server.address(), epoch, "ready");
    let pages = config.metrics.map(|address| serve_metrics(address, Arc::clone(&metrics))).transpose()?;
    if let Some(notifier) = &notifier {
        let metrics_at = pages.as_ref().map_or_else(|| "nowhere".to_owned(), |pages| pages.address().to_string());
        notifier.ready(&format!("agents at {}, metrics at {metrics_at}", server.address()));
        let notifier = Arc::clone(notifier);
        tokio::spawn(async move { notifier.keep_alive(|| metrics.is_healthy()).await });
    }
    signals.wait(&server).await;
    tracing::info!("shutting down");
    if let Some(notifier) = &notifier {
        notifier.stopping();
    }
    server.stop().await;
    Ok(())
}

fn serve_metrics(address: SocketAddr, metrics: Arc<Metrics>) -> Result<PageServer, String> {
    let started = PageServer::start(address, move |path| metrics.page(path));
    let pages = started.map_err(|e| format!("cannot listen on {address}: {e}"))?;
    tracing::info!(address = %pages.address(), "metrics");
    if !address.ip().is_loopback() {
        tracing::warn!("whoever can connect to the metrics port may read it");
    }
    Ok(pages)
}

/// The signals that the program answers.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let [hangup, terminate, interrupt] =
            [SignalKind::hangup(), SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        Ok(Self { hangup: hangup?, terminate: terminate?, interrupt: interrupt? })
    }

    /// Loads keys again at SIGHUP; returns at SIGTERM and SIGINT.
    async fn wait(&mut self, server: &Server) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => match server.rekey().await {
                    Ok(()) => tracing::info!("keys loaded again"),
                    Err(error) => tracing::error!(%error, "the keys cannot be used; the old ones stay"),
                },
            }
        }
    }
}
