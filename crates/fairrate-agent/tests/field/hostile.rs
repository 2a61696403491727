//! Attacks of a host's user on the agent, and their effects on others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rack::{Flow, Rack, agents_metrics, until};
use crate::shares::Group;

const MIB: f64 = 1_048_576.0;

/// Returns the agent's memory in bytes.
fn memory(rack: &Rack) -> f64 {
    rack.agent_metric(0, "process_resident_memory_bytes")
}

/// Flowlets that begin and end as fast as the machine can do not change the rate of another user's flow, and fill no
/// memory.
#[test]
fn a_flood_of_flowlets_takes_nobodys_rate_away() {
    let rack = Rack::new().with_agents([0], &agents_metrics());
    let floods = [5_002, 5_003].map(|port| rack.further_receiver(port));
    let first = rack.flow(0);
    until("it has a rate", || first.limit_bps().is_finite());
    let (enough, before) = (AtomicBool::new(false), memory(&rack));
    std::thread::scope(|scope| {
        for to in &floods {
            scope.spawn(|| rack.short_connections(0, to, |_| !enough.load(Ordering::Relaxed)));
        }
        std::thread::sleep(Duration::from_secs(2));
        let second = rack.flow(0);
        until("a flow that begins has a rate", || second.limit_bps().is_finite());
        std::thread::sleep(Duration::from_secs(2));
        assert!(first.limit_bps().is_finite() && second.limit_bps().is_finite());
        let grown = memory(&rack) - before;
        println!(
            "{:.0} flowlets, {:.1} MiB more",
            rack.agent_metric(0, "fairrate_agent_flow_starts_total"),
            grown / MIB
        );
        assert!(grown < 32.0 * MIB, "{grown}");
        enough.store(true, Ordering::Relaxed);
        second.stop();
    });
    first.stop();
    until("no flow is left", || rack.allocator_metric("fairrate_flows") == 0.0);
}

/// Owners are control groups near the root, and users where there are no groups.
#[test]
fn whoever_has_most_flowlets_gives_way() {
    let Some(group) = Group::new() else {
        println!("not run: needs control groups of version 2");
        return;
    };
    let rack = Rack::new().with_agents([0], &(agents_metrics() + "limits = { flows = 4 }\n"));
    let mut flows: Vec<Flow> = (0..8).map(|_| rack.flow(0)).collect();
    until("there are as many as there may be", || rack.allocator_metric("fairrate_flows") == 4.0);
    let modest = group.inside(|| rack.flow(0));
    until("it has a rate", || modest.limit_bps().is_finite());
    let has_rate = |flow: &&Flow| flow.limit_bps().is_finite();
    until("another one has given way", || flows.iter().filter(has_rate).count() == 3);
    assert!(0.0 < rack.agent_metric(0, "fairrate_agent_refused_total"));
    flows.push(modest);
    flows.into_iter().for_each(Flow::stop);
}
