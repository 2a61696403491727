//! Agents and allocators against each other, in simulated time and with seeds: connections break on one side or on
//! both, are slow, programs die, hang and restart, and a standby takes over. After a quiet time all have the same
//! state.

mod never_more;
mod world;

use std::time::Duration;

use fairrate_allocate::{Flow, Link, Network, Utility, reference};
use fairrate_daemon::FIRST_LEASE;
use fairrate_sim::rng::{Purpose, Stream};

use world::{CAPACITY_BPS, LEASE, N_HOSTS, N_LINKS, THRESHOLD, World, path};

/// Tolerance of rates, chosen by us: the threshold, the remaining movement of prices, and rounding on the wire.
const TOLERANCE: f64 = THRESHOLD + 0.002;

/// Returns the optimal rates of the flows that the agents have, by agent and flow.
fn optimum(world: &World) -> Vec<(usize, u32, f64)> {
    let link = |i: usize| Link { name: i.to_string(), capacity_bps: world.capacities_bps()[i] * (1.0 - THRESHOLD) };
    let all: Vec<_> = world.flows().collect();
    let flow = |start: &fairrate_daemon::wire::Start| Flow {
        weight: start.weight.as_f64(),
        ..Flow::new("", path(start.src, start.dst))
    };
    let network =
        Network { links: (0..N_LINKS).map(link).collect(), flows: all.iter().map(|(_, start)| flow(start)).collect() };
    let utilities: Vec<Utility> = all.iter().map(|(_, start)| Utility::Log { weight: start.weight.as_f64() }).collect();
    let (solution, _) = reference(&network, &utilities, CAPACITY_BPS).expect("it has an optimum");
    all.iter().zip(solution.rates_bps).map(|(&(agent, start), rate)| (agent, start.flow, rate)).collect()
}

/// Checks the conditions that must hold after a quiet time.
fn check_settled(world: &World, seed: u64) {
    let mut told: Vec<_> = world.flows().map(|(_, start)| start).collect();
    told.sort_by_key(|start| (start.src, start.flow));
    for server in 0..world.n_servers() {
        let mut known: Vec<_> = world.desk(server).flows().map(|(start, _)| start).collect();
        known.sort_by_key(|start| (start.src, start.flow));
        let missing: Vec<_> = told.iter().filter(|start| !known.contains(start)).collect();
        let stale: Vec<_> = known.iter().filter(|start| !told.contains(start)).collect();
        assert!(known == told, "seed {seed}: server {server} does not know {missing:?}, but {stale:?}");
    }
    for (agent, flow, best_bps) in optimum(world) {
        let rate_bps = world.agent(agent).rate_bps(flow).unwrap_or(0.0);
        let error = (rate_bps / best_bps - 1.0).abs();
        assert!(error <= TOLERANCE, "seed {seed}: flow {flow} of agent {agent} has {rate_bps}, not {best_bps}");
        let granted_bps = world.granted(agent, flow);
        assert_eq!(granted_bps, rate_bps, "seed {seed}: the program was told another rate than the one in force");
    }
}

/// Runs one test: trouble and a quiet time, repeatedly.
fn run(seed: u64) {
    let mut draw = Stream::new(seed, 0, Purpose::Test);
    let mut world = World::new(2, seed);
    for _ in 0..3 {
        for _ in 0..400 {
            world.trouble(&mut draw);
            world.step(&mut draw);
        }
        world.mend();
        // A connection whose server never answers is given up after twice the first lease.
        (0..(2 * FIRST_LEASE + 10 * LEASE).as_millis()).for_each(|_| world.step(&mut draw));
        check_settled(&world, seed);
    }
}

#[test]
fn all_know_the_same_after_a_quiet_time() {
    (0..60).for_each(run);
}

#[test]
fn all_know_the_same_after_links_have_changed() {
    for seed in 0..20 {
        let mut draw = Stream::new(seed, 5, Purpose::Test);
        let mut world = World::new(2, seed);
        for _ in 0..3 {
            for _ in 0..400 {
                world.trouble(&mut draw);
                if draw.below(20) == 0 {
                    world.change_link(&mut draw);
                }
                world.step(&mut draw);
            }
            world.mend();
            (0..(2 * FIRST_LEASE + 10 * LEASE).as_millis()).for_each(|_| world.step(&mut draw));
            check_settled(&world, seed);
        }
    }
}

#[test]
fn a_standby_takes_over_within_the_lease() {
    for seed in 0..20 {
        let mut draw = Stream::new(seed, 1, Purpose::Test);
        let mut world = World::new(2, seed);
        world.set_delay(Duration::from_millis(2));
        (0..40).for_each(|_| world.begin_any(&mut draw));
        (0..4 * LEASE.as_millis()).for_each(|_| world.step(&mut draw));
        check_settled(&world, seed);
        world.kill(0);
        for _ in 0..2 * LEASE.as_millis() {
            world.step(&mut draw);
            // Rates of the dead allocator hold for the lease, and those of the standby arrive within it.
            let lacking = world.flows().find(|(agent, start)| world.agent(*agent).rate_bps(start.flow).is_none());
            assert_eq!(lacking, None, "seed {seed}, at {:?}: {:?}", world.now(), world.reign(1));
        }
        for (agent, start) in world.flows() {
            let (_, rate) = world.desk(1).flows().find(|(known, _)| *known == start).expect("the standby knows it");
            assert_eq!(world.agent(agent).rate_bps(start.flow), Some(rate.as_bps()));
        }
    }
}

/// Here agents try again within milliseconds. In general they may wait longer: then a restart within the lease is no
/// guarantee.
#[test]
fn a_restart_that_agents_see_within_the_lease_leaves_no_flow_without_a_rate() {
    for seed in 0..20 {
        let mut draw = Stream::new(seed, 2, Purpose::Test);
        let mut world = World::new(1, seed);
        world.set_delay(Duration::from_millis(2));
        (0..40).for_each(|_| world.begin_any(&mut draw));
        (0..4 * LEASE.as_millis()).for_each(|_| world.step(&mut draw));
        world.kill(0);
        (0..LEASE.as_millis() / 4).for_each(|_| world.step(&mut draw));
        world.mend();
        for _ in 0..4 * LEASE.as_millis() {
            world.step(&mut draw);
            assert!(world.flows().all(|(agent, start)| world.agent(agent).rate_bps(start.flow).is_some()));
        }
        check_settled(&world, seed);
    }
}

#[test]
fn rates_end_with_the_lease_if_nobody_is_there() {
    let mut draw = Stream::new(1, 3, Purpose::Test);
    let mut world = World::new(2, 1);
    (0..40).for_each(|_| world.begin_any(&mut draw));
    (0..4 * LEASE.as_millis()).for_each(|_| world.step(&mut draw));
    world.kill(0);
    world.kill(1);
    (0..=LEASE.as_millis()).for_each(|_| world.step(&mut draw));
    assert!(world.flows().all(|(agent, start)| world.agent(agent).rate_bps(start.flow).is_none()));
    assert!(world.flows().all(|(agent, start)| world.granted(agent, start.flow) == 0.0));
}

#[test]
fn the_flows_of_a_dead_agent_end_with_its_lease() {
    let mut draw = Stream::new(1, 4, Purpose::Test);
    let mut world = World::new(1, 1);
    (0..40).for_each(|_| world.begin_any(&mut draw));
    (0..4 * LEASE.as_millis()).for_each(|_| world.step(&mut draw));
    let of_first = world.agent(0).n_flows();
    assert!(0 < of_first && of_first < 40 && N_HOSTS == 6);
    world.silence_agent(0);
    (0..LEASE.as_millis() * 3 / 4).for_each(|_| world.step(&mut draw));
    assert_eq!(world.desk(0).n_flows(), 40, "they stay for the lease");
    (0..LEASE.as_millis()).for_each(|_| world.step(&mut draw));
    assert_eq!(world.desk(0).n_flows(), 40 - of_first);
    assert_eq!(world.desk(0).counts().leases_ended, 1);
}
