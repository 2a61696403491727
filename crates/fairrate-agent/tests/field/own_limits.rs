//! Limits that programs set themselves (`SO_MAX_PACING_RATE`): the agent's rates are at most these limits, and it
//! restores them.

use std::time::Duration;

use crate::rack::{Flow, PAYLOAD_BPS, Rack, Receiver, Running, rates, until};

/// A rack with an allocator, an agent at each of two hosts, and a flow of the first one.
struct Setting {
    rack: Rack,
    allocator: Running,
    agents: [Running; 2],
    receiver: Receiver,
}

impl Setting {
    fn new() -> Self {
        let rack = Rack::new();
        let allocator = rack.allocator(4_600);
        let agents = [0, 1].map(|host| rack.agent(host, &[4_600], ""));
        rack.wait_for_agents(2);
        let receiver = rack.receiver(5_001);
        Self { rack, allocator, agents, receiver }
    }

    fn flow(&self, host: u32) -> Flow {
        self.rack.flow(host, &self.receiver)
    }
}

fn until_limit(flow: &Flow, limit_bps: f64) {
    let is_near = |limit: f64| limit == limit_bps || (limit / limit_bps - 1.0).abs() < 0.05;
    until(&format!("the limit is {:.1} Mb/s", limit_bps / 1e6), || is_near(flow.limit_bps()));
}

#[test]
fn a_programs_own_limit_is_never_exceeded() {
    let setting = Setting::new();
    let flow = setting.flow(0);
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
    let other = setting.flow(1);
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
    let setting = Setting::new();
    let [own, plain] = [setting.flow(0), setting.flow(0)];
    own.set_limit_bps(60e6);
    until_limit(&own, PAYLOAD_BPS / 2.0);
    until_limit(&plain, PAYLOAD_BPS / 2.0);
    let [agent, _other] = setting.agents;
    assert!(agent.end().success());
    assert_eq!([own.limit_bps(), plain.limit_bps()], [60e6, f64::INFINITY]);
    [own, plain].into_iter().for_each(Flow::stop);
}

#[test]
fn limits_are_given_back_when_the_allocator_is_silent() {
    let mut setting = Setting::new();
    let [own, plain] = [setting.flow(0), setting.flow(0)];
    own.set_limit_bps(60e6);
    until_limit(&own, PAYLOAD_BPS / 2.0);
    until_limit(&plain, PAYLOAD_BPS / 2.0);
    setting.allocator.kill();
    until("both are as before", || [own.limit_bps(), plain.limit_bps()] == [60e6, f64::INFINITY]);
    [own, plain].into_iter().for_each(Flow::stop);
}

#[test]
fn limits_are_given_back_when_a_flowlet_is_over() {
    let setting = Setting::new();
    let [own, plain] = [(); 2].map(|()| setting.flow(0));
    own.set_limit_bps(60e6);
    until_limit(&own, PAYLOAD_BPS / 2.0);
    until_limit(&plain, PAYLOAD_BPS / 2.0);
    // Nothing more is sent, and the connections stay.
    [&own, &plain].into_iter().for_each(Flow::pause);
    until("both are as before", || [own.limit_bps(), plain.limit_bps()] == [60e6, f64::INFINITY]);
    [own, plain].into_iter().for_each(Flow::stop);
}

/// The limits that a killed agent has set are only removed by the next agent. It leaves alone those that programs have
/// set.
#[test]
fn a_new_agent_gives_back_what_a_killed_one_has_set() {
    let mut setting = Setting::new();
    let [own, plain] = [setting.flow(0), setting.flow(0)];
    // Lower than its share, so that it is the program's limit when the agent dies.
    own.set_limit_bps(10e6);
    until("the agent has set a limit", || plain.limit_bps().is_finite());
    setting.agents.iter_mut().for_each(Running::kill);
    setting.allocator.kill();
    assert!(plain.limit_bps().is_finite());
    let _agent = setting.rack.agent(0, &[4_600], "");
    until("the limit is gone", || plain.limit_bps().is_infinite());
    assert_eq!(own.limit_bps(), 10e6);
    [own, plain].into_iter().for_each(Flow::stop);
}
