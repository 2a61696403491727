//! The cost of an idle agent.

use std::net::TcpStream;
use std::time::Duration;

use crate::rack::{Rack, Running, agents_metrics};

const TIME: Duration = Duration::from_secs(10);

/// Most wake-ups a second of an agent with nothing to do: it and the allocator assure each other that they live, and
/// routine looks are taken once a second. A wake-up costs about a hundred microseconds in a debug build.
const WAKE_UPS: f64 = 100.0;

/// Checks that the agent sleeps. Its share of a processor depends on the machine and on what else runs there; wake-ups
/// do not.
fn assert_idle(agent: &Running, what: &str) {
    let (time, wake_ups) = (agent.processor_time(), agent.wake_ups());
    std::thread::sleep(TIME);
    let a_second = (agent.wake_ups() - wake_ups) as f64 / TIME.as_secs_f64();
    let share = (agent.processor_time() - time).as_secs_f64() / TIME.as_secs_f64();
    println!("{what}: {a_second:.0} wake-ups a second, {:.2} % of a processor", 100.0 * share);
    assert!(a_second < WAKE_UPS, "{what}: {a_second} wake-ups a second");
}

#[test]
fn an_idle_agent_sleeps() {
    let rack = Rack::new().with_agents([0], &agents_metrics());
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
