//! The agent at work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairrate_daemon::{Client, ClientOptions};

use crate::agent::{Agent, Tell};
use crate::config::Config;
use crate::flowlets::{Flowlets, FlowletsError};

/// Time between two looks at what seldom changes.
const LOOK: Duration = Duration::from_secs(1);

/// Why the agent stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel refused something.
    #[error(transparent)]
    Kernel(#[from] FlowletsError),
    /// There is no client of the allocator.
    #[error("talking to the allocator: {0}")]
    Client(std::io::Error),
}

/// Tells the allocator of the flowlets of this network namespace and paces them as it says, until `stop`. Then lets go of all.
///
/// # Errors
/// If the kernel refuses, or the keys cannot be used. The allocator need not be there.
pub fn run(config: Config, stop: &AtomicBool) -> Result<(), RunError> {
    let flowlets = Flowlets::watch(config.flowlets.gap)?;
    let security = config.allocator.security();
    let client =
        Client::connect(&config.allocator.servers, security, ClientOptions::default()).map_err(RunError::Client)?;
    let (every, mut agent) = (config.flowlets.every, Agent::new(config));
    for path in agent.weights().missing() {
        tracing::warn!(path = %path.display(), "there is no such control group yet: its weight is not in use");
    }
    tracing::info!(?every, "ready");
    let (mut next_walk, mut next_look, mut missed) = (Instant::now(), Instant::now(), 0);
    while !stop.load(Ordering::Acquire) {
        let patience = next_walk.saturating_duration_since(Instant::now());
        for event in flowlets.events(patience)? {
            match agent.on_event(&event) {
                Some(Tell::Begin { flow, source, destination, weight }) => {
                    client.begin(flow, source, destination, weight);
                }
                Some(Tell::End { flow }) => {
                    client.end(flow);
                    flowlets.pace(event.cookie, None)?;
                }
                None => {}
            }
        }
        // Events may come at any rate; a walk costs time for every socket.
        if Instant::now() < next_walk {
            continue;
        }
        next_walk = Instant::now() + every;
        for grant in client.grants(Duration::ZERO) {
            if let Some(pace) = agent.on_grant(grant.flow, grant.rate_bps) {
                flowlets.pace(pace.cookie, pace.rate_bps)?;
            }
        }
        flowlets.walk()?;
        if next_look <= Instant::now() {
            next_look = Instant::now() + LOOK;
            agent.look_at_groups();
            missed = warn_of_missed(flowlets.missed()?, missed);
        }
    }
    drop(client);
    agent.connections().try_for_each(|cookie| flowlets.pace(cookie, None))?;
    Ok(flowlets.walk()?)
}

/// Says that flowlets were missed, if more were than before; gives how many.
fn warn_of_missed(now: u64, before: u64) -> u64 {
    if before < now {
        tracing::warn!(flowlets = now - before, "there are too many connections or events: flowlets go without rates");
    }
    now
}
