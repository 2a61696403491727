//! The cost of an idle agent.

use std::net::TcpStream;
use std::time::Duration;

use crate::rack::{Rack, Running, agents_metrics};

const TIME: Duration = Duration::from_secs(10);

/// Checks the requirement: under a hundredth of a processor. On a busy machine everything takes longer, so it
/// is measured up to three times.
fn assert_idle(agent: &Running, what: &str) {
    let costs_little = || {
        let before = agent.processor_time();
        std::thread::sleep(TIME);
        let share = (agent.processor_time().saturating_sub(before)).as_secs_f64() / TIME.as_secs_f64();
        println!("{what}: {:.2} % of a processor", 100.0 * share);
        share < 0.01
    };
    assert!((0..3).any(|_| costs_little()));
}

#[test]
fn an_idle_agent_costs_less_than_a_hundredth_of_a_processor() {
    let rack = Rack::new().with_agents([0], &agents_metrics(0));
    assert_idle(&rack.agents[0], "no connection");
    let connect = || {
        let to = &rack.receiver;
        let pair = || Ok::<_, std::io::Error>((TcpStream::connect(to.address())?, to.accept()?));
        (0..400).map(|_| pair()).collect::<std::io::Result<Vec<_>>>()
    };
    let connections = rack.at(0, connect);
    assert_idle(&rack.agents[0], "400 idle connections");
    // The kernel's table of all sockets is read once a second, and not more often.
    let looks = || rack.agent_metric(0, "fairrate_agent_looks_total");
    let before = looks();
    std::thread::sleep(TIME);
    assert!(looks() - before <= TIME.as_secs_f64() + 1.0);
    drop(connections);
}
