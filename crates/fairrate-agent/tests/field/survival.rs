//! Allocators and agents that die, while connections survive.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::rack::{Flow, LEASE, PAYLOAD_BPS, PORT, Rack, STANDBY, Served, rates};

const FLOWS: u32 = 4;

/// A rack with four flows that an allocator has settled.
struct Busy {
    rack: Served,
    flows: Vec<Flow>,
}

impl Busy {
    fn new(ports: &[u16]) -> Self {
        let rack = Rack::new().with_allocators(ports, 0..FLOWS, "");
        let flows = (0..FLOWS).map(|host| rack.flow(host)).collect();
        std::thread::sleep(Duration::from_secs(1));
        Self { rack, flows }
    }

    fn rates(&self, time: Duration) -> Vec<f64> {
        rates(&self.flows.iter().collect::<Vec<_>>(), time)
    }

    fn goodput(&self, time: Duration) -> f64 {
        self.rates(time).iter().sum()
    }

    /// Returns the largest distance of a rate from their mean, relative to it.
    fn spread(&self, time: Duration) -> f64 {
        let rates = self.rates(time);
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        rates.iter().map(|rate| (rate / mean - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Returns the time until all rates are within 5 % of each other, measured in tenths of a second.
    fn settles_within(&self, limit: Duration) -> Option<Duration> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if self.spread(Duration::from_millis(100)) < 0.05 {
                return Some(began.elapsed());
            }
        }
        None
    }

    fn all_live(&self) -> bool {
        self.flows.iter().all(Flow::lives)
    }
}

/// The requirements: at least 95 % of the goodput without an allocator, no connection broken, recovery within a
/// second.
#[test]
fn a_dead_allocator_costs_nothing_and_a_new_one_takes_over() {
    let mut busy = Busy::new(&[PORT]);
    assert!(busy.spread(Duration::from_secs(1)) < 0.05);
    let before = busy.goodput(Duration::from_secs(2));
    busy.rack.allocators[0].kill();
    let without = busy.goodput(Duration::from_secs(3));
    println!("goodput before and after kill -9: {:.1} and {:.1} Mb/s", before / 1e6, without / 1e6);
    assert!(0.95 * before < without && busy.all_live());
    let _again = busy.rack.allocator(PORT);
    let settled = busy.settles_within(Duration::from_secs(2));
    println!("settled again {settled:?} after the new allocator's start");
    assert!(settled.is_some_and(|time| time < Duration::from_secs(1)));
    assert!(busy.all_live());
    busy.flows.into_iter().for_each(Flow::stop);
}

/// The requirement: within the lease. The additional tenth of a second is the time of one look. A primary that
/// is back decides again, so that the standby is needed no more.
#[test]
fn a_standby_takes_over_within_the_lease_and_gives_back() {
    let mut busy = Busy::new(&[PORT, STANDBY]);
    assert!(busy.spread(Duration::from_secs(1)) < 0.05);
    busy.rack.allocators[0].kill();
    let mut worst = 0.0_f64;
    for _ in 0..10 {
        worst = worst.max(busy.spread(Duration::from_millis(100)));
    }
    std::thread::sleep(LEASE);
    let after = busy.spread(Duration::from_secs(1));
    println!("farthest from equal in the second after: {:.1} %; then {:.1} %", 100.0 * worst, 100.0 * after);
    assert!(after < 0.05 && busy.all_live());
    let _again = busy.rack.allocator(PORT);
    std::thread::sleep(Duration::from_secs(1));
    busy.rack.allocators[1].kill();
    std::thread::sleep(2 * LEASE);
    let by_primary = busy.spread(Duration::from_secs(1));
    println!("the primary back and the standby dead: {:.1} %", 100.0 * by_primary);
    assert!(by_primary < 0.05 && busy.all_live());
    busy.flows.into_iter().for_each(Flow::stop);
}

/// The rate of a dead agent's flow is given to the others within the lease.
#[test]
fn flows_of_a_dead_agent_end_at_the_allocator() {
    let mut busy = Busy::new(&[PORT]);
    busy.rack.agents[0].kill();
    // Its connection keeps its last rate, as no agent removes it; then it ends.
    busy.flows.remove(0).stop();
    std::thread::sleep(LEASE + Duration::from_millis(200));
    let shares = busy.rates(Duration::from_secs(1));
    let fair = PAYLOAD_BPS / f64::from(FLOWS - 1);
    println!("three of four go on at {:.1?} Mb/s", shares.iter().map(|rate| rate / 1e6).collect::<Vec<_>>());
    assert!(shares.iter().all(|rate| (rate / fair - 1.0).abs() < 0.05), "{shares:?}");
    busy.flows.into_iter().for_each(Flow::stop);
}

/// An allocator that is stopped for longer than the lease, and continues.
#[test]
fn a_stopped_allocator_is_silent_and_comes_back() {
    let busy = Busy::new(&[PORT]);
    let before = busy.goodput(Duration::from_secs(1));
    busy.rack.allocators[0].signal(Signal::SIGSTOP);
    let without = busy.goodput(Duration::from_secs(10));
    busy.rack.allocators[0].signal(Signal::SIGCONT);
    let settled = busy.settles_within(Duration::from_secs(2));
    println!("{:.1} and {:.1} Mb/s; settled {settled:?} after SIGCONT", before / 1e6, without / 1e6);
    assert!(0.95 * before < without && settled.is_some() && busy.all_live());
    busy.flows.into_iter().for_each(Flow::stop);
}

/// Four hosts send 80 % of the link in messages at random times, so that flowlets begin and end. The issue's
/// requirement: at least 95 % of the goodput.
#[test]
fn a_dead_allocator_costs_nothing_at_a_load_of_80_percent() {
    let mut rack = Rack::new().with_agents(0..FLOWS, "");
    let share_bps = 0.8 * PAYLOAD_BPS / f64::from(FLOWS);
    let flows: Vec<Flow> = (0..FLOWS).map(|host| rack.messages(host, 50_000, share_bps)).collect();
    let goodput = |seconds| rates(&flows.iter().collect::<Vec<_>>(), Duration::from_secs(seconds)).iter().sum::<f64>();
    goodput(1);
    let before = goodput(5);
    rack.allocators[0].kill();
    let without = goodput(5);
    println!("at a load of 80 %: {:.1} Mb/s, and {:.1} after kill -9", before / 1e6, without / 1e6);
    assert!((before / (0.8 * PAYLOAD_BPS) - 1.0).abs() < 0.1, "the load is what it should be");
    assert!(0.95 * before < without && flows.iter().all(Flow::lives));
    flows.into_iter().for_each(Flow::stop);
}

/// An agent that is stopped for longer than the lease, and continues. Meanwhile the allocator does not have its flow.
#[test]
fn a_stopped_agent_is_let_go_and_comes_back() {
    let busy = Busy::new(&[PORT]);
    busy.rack.agents[0].signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(10));
    assert!(busy.all_live());
    busy.rack.agents[0].signal(Signal::SIGCONT);
    let settled = busy.settles_within(Duration::from_secs(2));
    println!("settled {settled:?} after the agent's SIGCONT");
    assert!(settled.is_some() && busy.all_live());
    busy.flows.into_iter().for_each(Flow::stop);
}
