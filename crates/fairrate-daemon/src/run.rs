//! `fairrate-allocator run`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_daemon::config::Config;
use fairrate_daemon::http::PageServer;
use fairrate_daemon::logging::Log;
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
    let epoch = getrandom::u64().map_err(|e| shown(&e))?;
    let engine = network.engine(&config.engine);
    let desk = Desk::new(config.desk(epoch), engine, network.into_paths());
    let server = Server::start(config.server(), desk, Arc::clone(&metrics)).map_err(|e| shown(&e))?;
    if config.insecure {
        tracing::warn!("plain TCP: whoever connects may speak for everybody");
    }
    tracing::info!(address = %server.address(), epoch, "ready");
    let _pages = config.metrics.map(|address| serve_metrics(address, metrics)).transpose()?;
    until_signalled(&server).await.map_err(|e| shown(&e))?;
    tracing::info!("shutting down");
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

/// Loads keys again at SIGHUP; returns at SIGTERM and SIGINT.
async fn until_signalled(server: &Server) -> std::io::Result<()> {
    let mut signals: [Signal; 3] =
        [signal(SignalKind::hangup())?, signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let [hangup, terminate, interrupt] = &mut signals;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hangup.recv() => match server.rekey().await {
                Ok(()) => tracing::info!("keys loaded again"),
                Err(error) => tracing::error!(%error, "the keys cannot be used; the old ones stay"),
            },
        }
    }
}
