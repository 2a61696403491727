//! The agent at work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairrate_daemon::{Client, ClientOptions};

use crate::agent::{Agent, Tell};
use crate::config::Config;
use crate::flowlets::{Flowlets, FlowletsError};

/// Time between two looks at which control groups there are.
const GROUPS: Duration = Duration::from_secs(1);

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
    let mut looked = Instant::now();
    while !stop.load(Ordering::Acquire) {
        for event in flowlets.events(every)? {
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
        for grant in client.grants(Duration::ZERO) {
            if let Some(pace) = agent.on_grant(grant.flow, grant.rate_bps) {
                flowlets.pace(pace.cookie, pace.rate_bps)?;
            }
        }
        flowlets.walk()?;
        if GROUPS <= looked.elapsed() {
            agent.look_at_groups();
            looked = Instant::now();
        }
    }
    drop(client);
    agent.connections().try_for_each(|cookie| flowlets.pace(cookie, None))?;
    Ok(flowlets.walk()?)
}
