//! Limits that programs set themselves (`SO_MAX_PACING_RATE`): the agent's rates are at most these limits, and it
//! restores them.

use std::time::Duration;

use crate::rack::{Flow, PAYLOAD_BPS, PORT, Rack, Running, Served, rates, until};

/// A program's own limit, above the half of a link.
const OWN_BPS: f64 = 60e6;

/// Returns a rack with agents at two hosts.
fn rack() -> Served {
    Rack::new().with_agents([0, 1], "")
}

fn until_limit(flow: &Flow, limit_bps: f64) {
    let is_near = |limit: f64| limit == limit_bps || (limit / limit_bps - 1.0).abs() < 0.05;
    until(&format!("the limit is {:.1} Mb/s", limit_bps / 1e6), || is_near(flow.limit_bps()));
}

/// Two connections of one host: `own` has a limit of its own, and `plain` has none.
struct Pair {
    own: Flow,
    plain: Flow,
}

impl Pair {
    fn new(rack: &Rack, own_bps: f64) -> Self {
        let [own, plain] = [(); 2].map(|()| rack.flow(0));
        own.set_limit_bps(own_bps);
        Self { own, plain }
    }

    /// Returns a pair whose limits the agent has set, as its rates are below [`OWN_BPS`].
    fn limited(rack: &Rack) -> Self {
        let pair = Self::new(rack, OWN_BPS);
        until_limit(&pair.own, PAYLOAD_BPS / 2.0);
        until_limit(&pair.plain, PAYLOAD_BPS / 2.0);
        pair
    }

    /// Returns `true` if both have the limits that they had before the agent's.
    fn is_as_before(&self) -> bool {
        [self.own.limit_bps(), self.plain.limit_bps()] == [OWN_BPS, f64::INFINITY]
    }

    fn stop(self) {
        [self.own, self.plain].into_iter().for_each(Flow::stop);
    }
}

#[test]
fn a_programs_own_limit_is_never_exceeded() {
    let rack = rack();
    let flow = rack.flow(0);
    until_limit(&flow, PAYLOAD_BPS);
    // Set while the agent's rate is in force, which is higher.
    flow.set_limit_bps(10e6);
    std::thread::sleep(Duration::from_secs(1));
    let measured = rates(&[&flow], Duration::from_secs(2))[0];
    println!("a program's own limit of 10 Mb/s: {:.2} Mb/s", measured / 1e6);
    assert_eq!(flow.limit_bps(), 10e6);
    assert!(measured < 1.02 * 10e6, "{measured}");
    // Between the shares of one and of two flows.
    flow.set_limit_bps(80e6);
    let other = rack.flow(1);
    until_limit(&flow, PAYLOAD_BPS / 2.0);
    other.stop();
    until("its own limit is back", || flow.limit_bps() == 80e6);
    // Removed by the program: then only the allocator's rate limits.
    flow.set_limit_bps(f64::INFINITY);
    until_limit(&flow, PAYLOAD_BPS);
    flow.stop();
}

#[test]
fn limits_are_given_back_when_the_agent_ends() {
    let mut rack = rack();
    let pair = Pair::limited(&rack);
    assert!(rack.agents.remove(0).end().success());
    assert!(pair.is_as_before());
    pair.stop();
}

#[test]
fn limits_are_given_back_when_the_allocator_is_silent() {
    let mut rack = rack();
    let pair = Pair::limited(&rack);
    rack.allocators[0].kill();
    until("both are as before", || pair.is_as_before());
    pair.stop();
}

#[test]
fn limits_are_given_back_when_a_flowlet_is_over() {
    let rack = rack();
    let pair = Pair::limited(&rack);
    // Nothing more is sent, and the connections stay.
    [&pair.own, &pair.plain].into_iter().for_each(Flow::pause);
    until("both are as before", || pair.is_as_before());
    pair.stop();
}

/// The limits that a killed agent has set are only removed by the next agent. It leaves alone those that programs have
/// set.
#[test]
fn a_new_agent_gives_back_what_a_killed_one_has_set() {
    let mut rack = rack();
    // Lower than its share, so that it is the program's limit when the agent dies.
    let pair = Pair::new(&rack, 10e6);
    until("the agent has set a limit", || pair.plain.limit_bps().is_finite());
    rack.agents.iter_mut().for_each(Running::kill);
    rack.allocators[0].kill();
    assert!(pair.plain.limit_bps().is_finite());
    let _agent = rack.agent(0, &[PORT], "");
    until("the limit is gone", || pair.plain.limit_bps().is_infinite());
    assert_eq!(pair.own.limit_bps(), 10e6);
    pair.stop();
}
