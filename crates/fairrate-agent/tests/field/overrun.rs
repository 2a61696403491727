//! More events than the kernel keeps for the agent.

use std::time::Duration;

use nix::sys::signal::Signal;
use socket2::{Domain, Socket, Type};

use crate::rack::{Flow, Rack, agents_metrics, until};

/// Number of connections; twice as many events are more than there is room for (1 MiB).
const SHORT: u32 = 12_000;

/// A stopped agent gets no events of flowlets' ends. The look at all sockets afterwards finds them, and flowlets that
/// go on stay.
#[test]
fn no_phantom_stays_after_an_overrun() {
    let rack = Rack::new();
    let _allocator = rack.allocator(4_600);
    let agent = rack.agent(0, &[4_600], &agents_metrics(0));
    rack.wait_for_agents(1);
    let receiver = rack.receiver(5_001);
    let mut flows: Vec<Flow> = (0..3).map(|_| rack.flow(0, &receiver)).collect();
    until("all flows are known", || rack.allocators("fairrate_flows") == 3.0);
    agent.signal(Signal::SIGSTOP);
    let to = receiver.address();
    rack.at(0, || {
        for _ in 0..SHORT {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_linger(Some(Duration::ZERO))?;
            socket.connect(&to.into())?;
            let (accepted, _) = receiver.accept()?;
            socket.send(b"hi")?;
            drop((socket, accepted));
        }
        Ok(())
    });
    flows.drain(1..).for_each(Flow::stop);
    agent.signal(Signal::SIGCONT);
    until("one flow is left", || rack.allocators("fairrate_flows") == 1.0);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((rack.allocators("fairrate_flows"), rack.agents(0, "fairrate_agent_flows")), (1.0, 1.0));
    assert!(0.0 < rack.agents(0, "fairrate_agent_events_lost_total"), "there was room for all events");
    flows.into_iter().for_each(Flow::stop);
    until("no flow is left", || rack.allocators("fairrate_flows") == 0.0);
}
