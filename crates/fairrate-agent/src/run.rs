//! The main loop of the agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairrate_daemon::http::PageServer;
use fairrate_daemon::systemd::Notifier;
use fairrate_daemon::{Client, ClientOptions};

use crate::agent::Agent;
use crate::cgroups;
use crate::config::Config;
use crate::flowlets::{Flowlets, FlowletsError, Pacer, own_netns};
use crate::lock::{DIRECTORY, Lock, LockError};
use crate::metrics::{Metrics, Worker};
use crate::watch::Watch;

/// The longest time that a thread sleeps before it checks whether it has to end.
pub(crate) const BREATH: Duration = Duration::from_millis(250);

/// The error that ends the agent.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another agent is running already, or the lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The kernel refused an action.
    #[error(transparent)]
    Kernel(#[from] FlowletsError),
    /// The client of the allocator cannot be started.
    #[error("talking to the allocator: {0}")]
    Client(std::io::Error),
    /// Metrics cannot be served.
    #[error("serving metrics at {0}: {1}")]
    Metrics(std::net::SocketAddr, std::io::Error),
    /// No thread, or no notification socket of systemd, is available.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reports the flowlets of this network namespace to the allocator and paces them at its rates, until `stop` is set.
/// Then removes all limits.
///
/// # Errors
/// If there is another agent, the kernel refuses, or the keys cannot be used. The allocator need not be up.
pub fn run(config: &Config, metrics: &Arc<Metrics>, stop: &AtomicBool) -> Result<(), RunError> {
    let _alone = Lock::take(DIRECTORY.as_ref(), own_netns()?)?;
    let flowlets = Flowlets::watch(config)?;
    let (servers, security) = (&config.allocator.servers, config.allocator.security.clone());
    let client = Client::connect(servers, security, ClientOptions::default()).map_err(RunError::Client)?;
    let _pages = serve_pages(config, metrics)?;
    let agent = Mutex::new(Agent::new(config));
    for path in lock(&agent).weights().missing(cgroups::number) {
        tracing::warn!(path = %path.display(), "there is no such control group yet: its weight is not in use");
    }
    let worked = work(config, metrics, stop, Parts { flowlets: &flowlets, client: &client, agent: &agent });
    drop(client);
    let let_go = let_go(&flowlets, &lock(&agent));
    worked.and(let_go.map_err(RunError::Kernel))
}

#[derive(Clone, Copy)]
struct Parts<'a> {
    flowlets: &'a Flowlets,
    client: &'a Client,
    agent: &'a Mutex<Agent>,
}

fn work(config: &Config, metrics: &Metrics, stop: &AtomicBool, parts: Parts<'_>) -> Result<(), RunError> {
    let notifier = Notifier::from_env()?;
    let mut watch = Watch::new(config, parts.flowlets, parts.client, parts.agent, metrics, notifier.as_ref())?;
    let (pacer, leaving) = (parts.flowlets.pacer()?, AtomicBool::new(false));
    let (client, agent, every) = (parts.client, parts.agent, config.flowlets.every);
    std::thread::scope(|scope| {
        let work = || pace(client, agent, &pacer, metrics, every, &leaving);
        let pacing = std::thread::Builder::new().name("fairrate-pace".into()).spawn_scoped(scope, work)?;
        tracing::info!(?every, "ready");
        if let Some(notifier) = &notifier {
            notifier.ready(&format!("looks after flowlets to {:?}", config.fabric));
        }
        let watched = loop {
            if stop.load(Ordering::Acquire) || pacing.is_finished() {
                break Ok(());
            }
            if let Err(error) = watch.turn() {
                break Err(error);
            }
        };
        leaving.store(true, Ordering::Release);
        if let Some(notifier) = &notifier {
            notifier.stopping();
        }
        // A panic of that thread has ended the process.
        let paced = pacing.join().unwrap_or(Ok(()));
        watch.let_go(&lock(agent))?;
        Ok(watched.and(paced)?)
    })
}

/// Puts rates of the allocator into force. They arrive in batches, at most one every `every`.
fn pace(
    client: &Client,
    agent: &Mutex<Agent>,
    pacer: &Pacer,
    metrics: &Metrics,
    every: Duration,
    leaving: &AtomicBool,
) -> Result<(), FlowletsError> {
    while !leaving.load(Ordering::Acquire) {
        let grants = client.grants(BREATH);
        metrics.hear(Worker::Pace);
        if grants.is_empty() {
            continue;
        }
        metrics.rates.inc_by(grants.len() as u64);
        {
            // While the lock is held no flow ends, so no rate stays behind.
            let agent = lock(agent);
            for pace in grants.iter().filter_map(|grant| agent.on_grant(grant.flow, grant.rate_bps)) {
                pacer.pace(pace.cookie, pace.rate_bps)?;
            }
        }
        std::thread::sleep(every);
    }
    Ok(())
}

/// Removes all rates.
fn let_go(flowlets: &Flowlets, agent: &Agent) -> Result<(), FlowletsError> {
    let pacer = flowlets.pacer()?;
    agent.connections().try_for_each(|cookie| pacer.pace(cookie, None))?;
    flowlets.look_at_all(&[])?;
    Ok(())
}

fn serve_pages(config: &Config, metrics: &Arc<Metrics>) -> Result<Option<PageServer>, RunError> {
    let Some(address) = config.metrics else { return Ok(None) };
    let metrics = Arc::clone(metrics);
    let started = PageServer::start(address, move |path| metrics.page(path));
    let pages = started.map_err(|e| RunError::Metrics(address, e))?;
    tracing::info!(address = %pages.address(), "metrics");
    if !address.ip().is_loopback() {
        tracing::warn!("whoever can connect to the metrics port may read it");
    }
    Ok(Some(pages))
}

pub(crate) fn lock(agent: &Mutex<Agent>) -> MutexGuard<'_, Agent> {
    // A panic ends the process.
    agent.lock().unwrap_or_else(PoisonError::into_inner)
}
