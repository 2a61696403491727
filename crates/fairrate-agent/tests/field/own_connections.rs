//! Connections between agents and allocators are not flowlets, wherever these programs run.

use std::time::Duration;

use crate::rack::{ALLOCATOR, Rack, until};

/// The allocator is in the fabric. If a report were itself reported, there would be reports for ever.
#[test]
fn idle_agents_report_nothing() {
    let rack = Rack::new().with_agents([0, 1, 2], "");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(rack.allocator_metric("fairrate_flow_starts_total"), 0.0);
}

/// An agent on the allocator's own host sees the other ends of all agents' connections, on which the allocator sends
/// rates.
#[test]
fn an_agent_beside_the_allocator_reports_no_rates() {
    let rack = Rack::new().with_agents([0, 1, ALLOCATOR], "");
    let flows = [0, 1].map(|host| rack.flow(host));
    until("both flows are known", || rack.allocator_metric("fairrate_flows") == 2.0);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(rack.allocator_metric("fairrate_flows"), 2.0);
    // On a busy machine a flow may pause and begin again, but not often.
    let starts = rack.allocator_metric("fairrate_flow_starts_total");
    assert!(starts < 20.0, "{starts} flowlets began");
    // A flow of the allocator's host that is not of the allocator still counts.
    let third = rack.flow(ALLOCATOR);
    until("the third flow is known", || rack.allocator_metric("fairrate_flows") == 3.0);
    flows.into_iter().chain([third]).for_each(crate::rack::Flow::stop);
}
