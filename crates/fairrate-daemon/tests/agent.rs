//! Agents at their edges: those that leave before they have said who they are.

use std::time::Duration;

use fairrate_daemon::Agent;
use fairrate_daemon::wire::{Decoder, FromAgent, Reason};

/// Returns the agent's next messages to its only server, and `true` if it stays.
fn said(agent: &mut Agent, now: Duration) -> (Vec<FromAgent>, bool) {
    let (mut out, mut words) = (Vec::new(), Vec::new());
    let stays = agent.write(now, 0, &mut out, 1 << 14);
    Decoder::default().read(&out, |word| words.push(word)).expect("the agent speaks well");
    (words, stays)
}

#[test]
fn an_agent_that_leaves_before_hello_says_nothing() {
    let now = Duration::ZERO;
    let mut agent = Agent::new(now, 1, 1);
    agent.on_connected(now, 0);
    agent.leave();
    assert_eq!(said(&mut agent, now), (vec![], false));
    // After HELLO it says BYE, answered or not.
    let mut agent = Agent::new(now, 1, 1);
    agent.on_connected(now, 0);
    assert!(matches!(said(&mut agent, now).0[..], [FromAgent::Hello { .. }]));
    agent.leave();
    assert_eq!(said(&mut agent, now), (vec![FromAgent::Bye(Reason::Shutdown)], false));
}
