//! `fairrate-allocator run`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_daemon::config::Config;
use fairrate_daemon::http::PageServer;
use fairrate_daemon::logging::Log;
use fairrate_daemon::systemd::Notifier;
use fairrate_daemon::{Desk, Metrics, Network, Server, ServerError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::check::{self, advise};
use crate::control::{self, Control};
use crate::descriptors::room_for;
use crate::reload::Live;
use crate::{EXIT_BAD_INPUT, EXIT_FAILED, failed};

/// A configuration with its network.
pub struct Loaded {
    /// The configuration's file.
    pub path: PathBuf,
    pub config: Config,
    pub network: Network,
}

/// Runs the allocator until a signal ends it.
pub fn run(loaded: Loaded) -> ExitCode {
    let metrics = Arc::new(Metrics::new());
    let log = match Log::start(metrics.log_lines_lost()) {
        Ok(log) => log,
        Err(error) => return failed(&format!("cannot start: {error}"), EXIT_FAILED),
    };
    let result = match runtime() {
        Ok(runtime) => runtime.block_on(serve(loaded, metrics)),
        Err(error) => Err(Failure::other(format!("cannot start: {error}"))),
    };
    log.flush();
    result.map_or_else(|error| failed(&error.what, error.code), |()| ExitCode::SUCCESS)
}

/// Largest number of threads that serve connections. More threads do not help an optimiser that has one.
const MAX_WORKERS: usize = 16;

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_WORKERS);
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}

/// The reason why the program ends.
struct Failure {
    what: String,
    code: u8,
}

impl Failure {
    fn other(error: impl std::fmt::Display) -> Self {
        Self { what: error.to_string(), code: EXIT_FAILED }
    }
}

impl From<ServerError> for Failure {
    /// Converts an error: unusable keys are bad input, which stays bad; an address may be free later.
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Keys(keys) => Self { what: advise(&keys), code: EXIT_BAD_INPUT },
            other => Self::other(other),
        }
    }
}

async fn serve(loaded: Loaded, metrics: Arc<Metrics>) -> Result<(), Failure> {
    // An expired certificate may be due to a clock that is not set yet: whether keys can be used at all shows below.
    let warnings = check::check(&loaded).map_or_else(|error| vec![error], |checked| checked.warnings);
    let live = Live::new(&loaded, Arc::clone(&metrics));
    let Loaded { config, network, .. } = loaded;
    // Registered before the program reports that it runs, so that no signal finds it unprepared.
    let mut signals = Signals::new().map_err(Failure::other)?;
    let notifier =
        Notifier::from_env().map_err(|e| Failure::other(format!("cannot use `NOTIFY_SOCKET`: {e}")))?.map(Arc::new);
    let instance = getrandom::u64().map_err(Failure::other)?;
    let engine = network.engine(&config.engine);
    let (capacities_bps, bounds_bps) = (network.capacities_bps().to_vec(), network.bounds_bps());
    let mut desk = Desk::new(config.desk(instance), engine, network.into_paths());
    desk.watch_links(&capacities_bps);
    desk.bound_links(&bounds_bps);
    let mut server = config.server();
    server.max_connections = room_for(server.max_connections);
    let commands = config.control.as_deref().map(|path| {
        Control::listen(path).map_err(|e| Failure::other(format!("cannot listen at {}: {e}", path.display())))
    });
    let commands = commands.transpose()?;
    let pages = config.metrics.map(|address| serve_metrics(address, Arc::clone(&metrics))).transpose()?;
    let server = Server::start(server, desk, Arc::clone(&metrics))?;
    if config.insecure {
        tracing::warn!("plain TCP: whoever connects may speak for everybody");
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(address = %server.address(), instance, "ready");
    if let Some(pages) = &pages {
        note_metrics(pages);
    }
    if let Some(notifier) = &notifier {
        let metrics_at = pages.as_ref().map_or_else(|| "nowhere".to_owned(), |pages| pages.address().to_string());
        notifier.ready(&format!("agents at {}, metrics at {metrics_at}", server.address()));
        let notifier = Arc::clone(notifier);
        tokio::spawn(async move { notifier.keep_alive(|| metrics.is_healthy()).await });
    }
    signals.wait(&server, live, commands).await;
    tracing::info!("shutting down");
    if let Some(notifier) = &notifier {
        notifier.stopping();
    }
    server.stop().await;
    Ok(())
}

fn serve_metrics(address: SocketAddr, metrics: Arc<Metrics>) -> Result<PageServer, Failure> {
    let started = PageServer::start(address, move |path| metrics.page(path));
    started.map_err(|e| Failure::other(format!("cannot listen on {address}: {e}")))
}

fn note_metrics(pages: &PageServer) {
    tracing::info!(address = %pages.address(), "metrics");
    if !pages.address().ip().is_loopback() {
        tracing::warn!("whoever can connect to the metrics port may read it");
    }
}

/// The signals that the program handles.
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

    /// Loads the configuration again at SIGHUP, and obeys commands; returns at SIGTERM and SIGINT.
    async fn wait(&mut self, server: &Server, mut live: Live, commands: Option<Control>) {
        let next = async || match &commands {
            Some(commands) => commands.accept().await,
            None => std::future::pending().await,
        };
        let Self { hangup, terminate, interrupt } = self;
        let mut end = std::pin::pin!(async { tokio::select!(_ = terminate.recv() => {}, _ = interrupt.recv() => {}) });
        loop {
            tokio::select! {
                () = &mut end => return,
                // Its result is in the log.
                _ = hangup.recv() => drop(live.reload(server).await),
                // Whoever is connected may say nothing for a while.
                stream = next() => tokio::select! {
                    () = &mut end => return,
                    () = control::obey(stream, &mut live, server) => {}
                },
            }
        }
    }
}
