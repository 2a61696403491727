//! Never more than the link: the sum of the rates in force on each link, and the time that flows are without one,
//! through partitions, restarts, delays, losses and clocks that differ.

use std::collections::HashMap;
use std::time::Duration;

use fairrate_sim::rng::{Purpose, Stream};

use crate::world::{CAPACITY_BPS, LEASE, N_HOSTS, N_LINKS, World};

/// Largest sum of rates in force, as a share of the link: 1.02 by the rule.
const MOST: f64 = 1.02;

/// The figures of many runs.
#[derive(Debug, Default)]
struct Figures {
    runs: u64,
    faults: u64,
    largest: f64,
    /// Longest time that a flow was without a rate, though its host could reach an allocator that could decide.
    gap: Duration,
    /// The same, counted anew when an allocator dies, hangs or comes back.
    gap_of_one_fault: Duration,
    /// Longest time without an allocator that decided, though one could.
    vacancy: Duration,
    takeovers: u64,
}

/// The times since which conditions hold.
struct Watch {
    /// Time since which a host reaches an allocator that could decide, by host.
    reaches_since: Vec<Option<Duration>>,
    /// Time since which a flow has no rate, and its host reaches such an allocator.
    lacks_since: HashMap<(usize, u32), Duration>,
    vacant_since: Option<Duration>,
    last: Option<usize>,
    /// The allocators that work, and since when they are these.
    working: Vec<bool>,
    working_since: Duration,
}

impl Watch {
    fn new() -> Self {
        Self {
            reaches_since: vec![None; N_HOSTS],
            lacks_since: HashMap::new(),
            vacant_since: None,
            last: None,
            working: Vec::new(),
            working_since: Duration::ZERO,
        }
    }

    fn look(&mut self, world: &World, figures: &mut Figures) {
        let sums = world.sums_bps();
        figures.largest = sums.iter().fold(figures.largest, |most, sum| most.max(sum / CAPACITY_BPS));
        let now = world.now();
        // An agent that has just started does not vote.
        let votes = |server: usize| {
            (0..N_HOSTS).filter(|&host| world.reaches(host, server) && 3 * LEASE / 2 < world.age(host)).count()
        };
        let working: Vec<bool> = (0..world.n_servers()).map(|server| world.reign(server).is_some()).collect();
        if working != self.working {
            (self.working, self.working_since) = (working, now);
        }
        let reach = |server: usize| (0..N_HOSTS).filter(|&host| world.reaches(host, server)).count();
        let able: Vec<usize> = (0..world.n_servers())
            .filter(|&server| if world.n_servers() == 1 { 0 < reach(server) } else { N_HOSTS / 2 < votes(server) })
            .collect();
        let deciding = (0..world.n_servers()).find(|&server| world.reign(server).is_some_and(|reign| reign.decides));
        if deciding.is_some() && deciding != self.last {
            (self.last, figures.takeovers) = (deciding, figures.takeovers + 1);
        }
        if able.is_empty() || deciding.is_some() {
            self.vacant_since = None;
        } else {
            let since = *self.vacant_since.get_or_insert(now);
            figures.vacancy = figures.vacancy.max(now.saturating_sub(since));
        }
        for host in 0..N_HOSTS {
            // The one that decides may be another one than those that could.
            let can = match deciding {
                Some(server) => world.reaches(host, server),
                None => able.iter().any(|&server| world.reaches(host, server)),
            };
            let since = &mut self.reaches_since[host];
            *since = if can { since.or(Some(now)) } else { None };
        }
        let mut lacking = HashMap::new();
        for (host, start) in world.flows() {
            if self.reaches_since[host].is_some() && world.agent(host).rate_bps(start.flow).is_none() {
                let since = *self.lacks_since.get(&(host, start.flow)).unwrap_or(&now);
                figures.gap = figures.gap.max(now.saturating_sub(since));
                figures.gap_of_one_fault =
                    figures.gap_of_one_fault.max(now.saturating_sub(since.max(self.working_since)));
                lacking.insert((host, start.flow), since);
            }
        }
        self.lacks_since = lacking;
    }
}

fn run(seed: u64, n_servers: usize, quorum: usize, figures: &mut Figures) {
    let mut draw = Stream::new(seed, 10, Purpose::Test);
    let mut world = World::with_quorum(n_servers, seed, quorum);
    let mut watch = Watch::new();
    world.set_delay(Duration::from_millis(2));
    world.lose_bytes();
    figures.runs += 1;
    (0..20).for_each(|_| world.begin_any(&mut draw));
    for _ in 0..4 {
        for step in 0..600 {
            match step {
                0..300 => figures.faults += u64::from(world.trouble(&mut draw)),
                300 => world.mend(),
                _ => {}
            }
            world.step(&mut draw);
            watch.look(&world, figures);
            assert!(
                figures.largest < MOST,
                "seed {seed}, {n_servers} servers, at {:?}: {}",
                world.now(),
                figures.largest
            );
        }
    }
}

fn runs() -> std::ops::Range<u64> {
    let of = |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let first = of("FAIRRATE_SEED", 1);
    first..first + of("FAIRRATE_CASES", 40)
}

#[test]
fn rates_never_exceed_the_link_with_two_allocators() {
    let mut figures = Figures::default();
    runs().for_each(|seed| run(seed, 2, N_HOSTS, &mut figures));
    println!("two allocators: {figures:?}");
}

#[test]
fn rates_never_exceed_the_link_with_three_allocators() {
    let mut figures = Figures::default();
    runs().for_each(|seed| run(seed, 3, N_HOSTS, &mut figures));
    println!("three allocators: {figures:?}");
}

#[test]
fn rates_never_exceed_the_link_with_one_allocator() {
    let mut figures = Figures::default();
    runs().for_each(|seed| run(seed, 1, 0, &mut figures));
    println!("one allocator: {figures:?}");
}

/// One fault at a time, and then four leases without any: no flow is without a rate for longer than a lease, and an
/// allocator that restarts within half a lease leaves none without a rate.
#[test]
fn one_fault_leaves_no_flow_without_a_rate_for_a_lease() {
    let (mut figures, mut restarts) = (Figures::default(), Figures::default());
    for seed in runs() {
        let mut draw = Stream::new(seed, 11, Purpose::Test);
        let mut world = World::with_quorum(2, seed, N_HOSTS);
        world.set_delay(Duration::from_millis(2));
        (0..20).for_each(|_| world.begin_any(&mut draw));
        (0..4 * LEASE.as_millis()).for_each(|_| world.step(&mut draw));
        for _ in 0..10 {
            let decider = (0..2).find(|&server| world.reign(server).is_some_and(|reign| reign.decides)).expect("one");
            let rest = 1 + draw.below(LEASE.as_millis() as u64 / 2);
            let (host, other) = (draw.below(N_HOSTS as u64) as usize, draw.below(2) as usize);
            let kind = draw.below(6);
            match kind {
                0 | 1 => world.kill(decider),
                2 => world.cut(host, decider, draw.below(3)),
                3 => world.kill(other),
                4 => world.restart_agent(host),
                _ => (0..20).for_each(|_| world.change_any(&mut draw)),
            }
            let mut watch = Watch::new();
            let of = if kind == 0 { &mut restarts } else { &mut figures };
            of.runs += 1;
            for ms in 0..4 * LEASE.as_millis() as u64 {
                let back = if kind == 0 { rest } else { 3 * LEASE.as_millis() as u64 };
                if ms == back {
                    world.mend();
                }
                world.step(&mut draw);
                watch.look(&world, of);
            }
        }
    }
    println!("one fault: {figures:?}\nrestarts within half a lease: {restarts:?}");
    assert!(figures.largest.max(restarts.largest) < MOST);
    assert!(figures.gap <= LEASE, "{figures:?}");
    assert!(restarts.gap <= Duration::ZERO, "{restarts:?}");
}

/// The times for which sums were above links that had become slower.
#[derive(Debug, Default)]
struct Falls {
    runs: u64,
    changes: u64,
    faults: u64,
    /// Number of changes after which rates had to fall, the sum of the times that it took, and the longest of them.
    n_slower: u32,
    total: Duration,
    longest: Duration,
    /// Largest sum as a share of what the link had before or has now.
    largest: f64,
}

/// A link that has become slower.
#[derive(Clone, Copy)]
struct Fall {
    /// Rate that it had.
    before_bps: f64,
    since: Duration,
    /// Time at which its flows' sum was last above its rate.
    above: Option<Duration>,
}

/// Links get slower and faster, while connections break and programs die: rates fall first. Until they have, their sum
/// is at most what the link had before.
fn run_with_changes(seed: u64, n_servers: usize, quorum: usize, has_faults: bool, falls: &mut Falls) {
    let mut draw = Stream::new(seed, 12, Purpose::Test);
    let mut world = World::with_quorum(n_servers, seed, quorum);
    world.set_delay(Duration::from_millis(2));
    falls.runs += 1;
    if has_faults {
        world.lose_bytes();
    }
    (0..20).for_each(|_| world.begin_any(&mut draw));
    let mut falling: [Option<Fall>; N_LINKS] = [None; N_LINKS];
    for step in 0..2_400 {
        match step % 600 {
            0..300 if has_faults => falls.faults += u64::from(world.trouble(&mut draw)),
            300 => world.mend(),
            _ => {}
        }
        if draw.below(25) == 0 {
            falls.changes += 1;
            let (link, before_bps) = world.change_link(&mut draw);
            let before_bps = falling[link].map_or(before_bps, |fall| fall.before_bps.max(before_bps));
            let since = world.now();
            falling[link] = Some(Fall { before_bps, since, above: None });
        }
        world.step(&mut draw);
        let (now, sums) = (world.now(), world.sums_bps());
        for (link, capacity) in world.capacities_bps().into_iter().enumerate() {
            let most = falling[link].map_or(capacity, |fall| fall.before_bps.max(capacity));
            falls.largest = falls.largest.max(sums[link] / most);
            assert!(sums[link] < MOST * most, "seed {seed}, at {now:?}, link {link}: {} of {most}", sums[link]);
            let Some(fall) = &mut falling[link] else { continue };
            if MOST * capacity <= sums[link] {
                fall.above = Some(now);
            }
            if fall.since + FALLS_WITHIN <= now {
                if let Some(above) = fall.above {
                    let time = above.saturating_sub(fall.since);
                    (falls.n_slower, falls.total) = (falls.n_slower + 1, falls.total + time);
                    falls.longest = falls.longest.max(time);
                }
                falling[link] = None;
            }
        }
    }
}

/// The longest time until rates fit into a link that has become slower: an allocator dies at once, the next one needs
/// 0.6 of a lease to decide, and rates that it does not prolong end after 1.25 leases.
const FALLS_WITHIN: Duration = Duration::from_millis(2 * LEASE.as_millis() as u64);

#[test]
fn rates_fall_first_when_a_link_gets_slower() {
    for (n_servers, quorum, has_faults) in [(1, 0, true), (2, N_HOSTS, true), (1, 0, false)] {
        let mut falls = Falls::default();
        runs().for_each(|seed| run_with_changes(seed, n_servers, quorum, has_faults, &mut falls));
        let mean = falls.total / falls.n_slower.max(1);
        println!("{n_servers} allocators, links that change: {falls:?}, {mean:?} in the mean");
        assert!(has_faults || falls.longest <= Duration::from_millis(20), "{falls:?}");
    }
}
