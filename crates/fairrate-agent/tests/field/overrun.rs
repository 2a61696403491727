//! More events than the kernel keeps for the agent.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::rack::{Flow, Rack, agents_metrics, until};

/// Number of connections; twice as many events are more than there is room for (1 MiB).
const SHORT: u32 = 12_000;

/// A stopped agent gets no events of flowlets' ends. The look at all sockets afterwards finds them, and flowlets that
/// go on stay.
#[test]
fn no_phantom_stays_after_an_overrun() {
    let rack = Rack::new().with_agents([0], &agents_metrics());
    let mut flows: Vec<Flow> = (0..3).map(|_| rack.flow(0)).collect();
    until("all flows are known", || rack.allocator_metric("fairrate_flows") == 3.0);
    rack.agents[0].signal(Signal::SIGSTOP);
    rack.short_connections(0, &rack.receiver, |made| made < SHORT);
    flows.drain(1..).for_each(Flow::stop);
    rack.agents[0].signal(Signal::SIGCONT);
    until("one flow is left", || rack.allocator_metric("fairrate_flows") == 1.0);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((rack.allocator_metric("fairrate_flows"), rack.agent_metric(0, "fairrate_agent_flows")), (1.0, 1.0));
    assert!(0.0 < rack.agent_metric(0, "fairrate_agent_events_lost_total"), "there was room for all events");
    flows.into_iter().for_each(Flow::stop);
    until("no flow is left", || rack.allocator_metric("fairrate_flows") == 0.0);
}
