//! RateMP in a closed loop: its connections over links with nothing but a FIFO queue and RED marks, without a
//! simulator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairrate_control::dctcp::DctcpConfig;
use fairrate_control::ratemp::{
    RateMpBaseRtt, RateMpBetaRounds, RateMpCapacity, RateMpConfig, RateMpLowRateStep, RateMpWindow,
};
use fairrate_control::{Ack, AlgorithmSpec, Allowance, Controller, CoupledController, CoupledSpec, FlowContext, Loss};
use fairrate_units::{Bytes, Rate, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const MTU: u64 = 1_500;

/// A bottleneck: an endless FIFO queue that is empty at `free_at`, and RED with Kmin = 0 and Pmax = 1 (eq. 5).
struct Link {
    rate: Rate,
    kmax: f64,
    /// Set to mark no packet up to Kmax, and every packet above.
    is_step: bool,
    draws: Xoshiro256PlusPlus,
    free_at: Time,
    seen: Time,
    /// Integral of the wait in s², and busy time in s, since the last reset.
    wait_area: f64,
    busy: f64,
}

impl Link {
    fn new(rate: Rate, kmax: Bytes, seed: u64) -> Self {
        let draws = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            rate,
            kmax: kmax.as_f64(),
            is_step: false,
            draws,
            free_at: Time::ZERO,
            seen: Time::ZERO,
            wait_area: 0.0,
            busy: 0.0,
        }
    }

    fn advance(&mut self, now: Time) {
        let before = self.free_at.saturating_sub(self.seen).as_secs_f64();
        let after = self.free_at.saturating_sub(now).as_secs_f64();
        self.wait_area += (before * before - after * after) / 2.0;
        self.busy += before - after;
        self.seen = now;
    }

    /// Enqueues a full packet; returns the time it leaves, and `true` if it is marked.
    fn enqueue(&mut self, now: Time) -> (Time, bool) {
        self.advance(now);
        let queue = self.rate.bytes_in(self.free_at.saturating_sub(now)).as_f64();
        let uniform = (self.draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.free_at = self.free_at.max(now) + self.rate.tx_time(Bytes::new(MTU));
        (self.free_at, if self.is_step { self.kmax < queue } else { uniform < queue / self.kmax })
    }
}

struct Subflow {
    link: usize,
    base: Time,
    allowance: Allowance,
    in_flight: u64,
    snd_nxt: u64,
    snd_una: u64,
    last_sent: Option<Time>,
    /// Time of the pending send event; older events are void.
    wake: Time,
    /// Number of packets delivered since the last reset.
    n_delivered: u64,
}

struct Connection {
    control: Box<dyn CoupledController>,
    subflows: Vec<Subflow>,
    active: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack { connection: usize, subflow: usize, sent: Time, marked: bool },
    Send { connection: usize, subflow: usize },
    Start { connection: usize },
    Stop { connection: usize },
}

struct World {
    links: Vec<Link>,
    connections: Vec<Connection>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    n_events: u64,
    now: Time,
    reset_at: Time,
    /// Sum and sum of squares of the round-trip times in s, and the number of samples.
    rtts: (f64, f64, f64),
}

/// Returns the context of a flow. `base` is the base round-trip time without the transmission at the bottleneck.
fn context(line_rate: Rate, link: Rate, base: Time) -> FlowContext {
    let base_rtt = base + link.tx_time(Bytes::new(MTU));
    FlowContext { mtu: Bytes::new(MTU), wire_mtu: Bytes::new(MTU), ..FlowContext::on(line_rate, base_rtt) }
}

impl World {
    fn new(links: Vec<Link>) -> Self {
        Self {
            links,
            connections: Vec::new(),
            events: BinaryHeap::new(),
            n_events: 0,
            now: Time::ZERO,
            reset_at: Time::ZERO,
            rtts: (0.0, 0.0, 0.0),
        }
    }

    fn at(&mut self, at: Time, event: Event) {
        self.n_events += 1;
        self.events.push(Reverse((at, self.n_events, event)));
    }

    /// Adds a RateMP connection with a subflow over each of `paths` that starts at `start`; returns its number.
    fn add(&mut self, config: &RateMpConfig, line_rate: Rate, base: Time, paths: &[usize], start: Time) -> usize {
        let contexts: Vec<_> = paths.iter().map(|&l| context(line_rate, self.links[l].rate, base)).collect();
        self.add_controlled(Box::new(config.build_connection(&contexts)), base, paths, start)
    }

    fn add_controlled(
        &mut self,
        control: Box<dyn CoupledController>,
        base: Time,
        paths: &[usize],
        start: Time,
    ) -> usize {
        let idle = Allowance { cwnd: Bytes::new(1), rate: Rate::ZERO, timer: Time::MAX };
        let subflow = |&link: &usize| Subflow {
            link,
            base,
            allowance: idle,
            in_flight: 0,
            snd_nxt: 0,
            snd_una: 0,
            last_sent: None,
            wake: Time::MAX,
            n_delivered: 0,
        };
        let connection = self.connections.len();
        self.connections.push(Connection { control, subflows: paths.iter().map(subflow).collect(), active: true });
        self.at(start, Event::Start { connection });
        connection
    }

    fn stop_at(&mut self, connection: usize, at: Time) {
        self.at(at, Event::Stop { connection });
    }

    /// Sends the packets that the allowance of a subflow permits now, and schedules the next one.
    fn send(&mut self, connection: usize, subflow: usize) {
        loop {
            let c = &mut self.connections[connection];
            let s = &mut c.subflows[subflow];
            if !c.active || s.allowance.cwnd.as_u64() <= s.in_flight || s.allowance.rate == Rate::ZERO {
                return;
            }
            let gap = s.allowance.rate.tx_time(Bytes::new(MTU));
            let due = s.last_sent.map_or(self.now, |last| last + gap);
            if self.now < due {
                if s.wake != due {
                    s.wake = due;
                    self.at(due, Event::Send { connection, subflow });
                }
                return;
            }
            (s.last_sent, s.wake) = (Some(self.now), Time::MAX);
            s.in_flight += MTU;
            s.snd_nxt += MTU;
            let (left, marked) = self.links[s.link].enqueue(self.now);
            let back = left + s.base;
            self.at(back, Event::Ack { connection, subflow, sent: self.now, marked });
        }
    }

    fn on_ack(&mut self, connection: usize, subflow: usize, sent: Time, marked: bool) {
        let c = &mut self.connections[connection];
        let s = &mut c.subflows[subflow];
        s.in_flight -= MTU;
        s.snd_una += MTU;
        s.n_delivered += 1;
        let rtt = self.now - sent;
        let seconds = rtt.as_secs_f64();
        self.rtts = (self.rtts.0 + seconds, self.rtts.1 + seconds * seconds, self.rtts.2 + 1.0);
        let ack = Ack {
            now: self.now,
            ack_seq: s.snd_una,
            snd_nxt: s.snd_nxt,
            newly_acked: MTU,
            delivered: MTU,
            lost: 0,
            rtt,
            cwnd_at_send: s.allowance.cwnd.as_u64(),
            in_flight: s.in_flight,
            delivery_rate: Rate::ZERO,
            prior_delivered: None,
            penalty: 0,
            app_limited: false,
            ecn_marked: marked,
            int: &[],
            path: 0,
            header: &[],
        };
        s.allowance = c.control.on_ack(subflow, &ack);
        self.send(connection, subflow);
    }

    fn run_until(&mut self, end: Time) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if end < at {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Ack { connection, subflow, sent, marked } => self.on_ack(connection, subflow, sent, marked),
                Event::Send { connection, subflow } => {
                    if self.connections[connection].subflows[subflow].wake == at {
                        self.connections[connection].subflows[subflow].wake = Time::MAX;
                        self.send(connection, subflow);
                    }
                }
                Event::Start { connection } => {
                    for subflow in 0..self.connections[connection].subflows.len() {
                        let c = &mut self.connections[connection];
                        c.subflows[subflow].allowance = c.control.on_start(at, subflow);
                        self.send(connection, subflow);
                    }
                }
                Event::Stop { connection } => self.connections[connection].active = false,
            }
        }
        self.now = end;
        self.links.iter_mut().for_each(|l| l.advance(end));
    }

    /// Resets all measurements.
    fn reset(&mut self) {
        self.reset_at = self.now;
        self.rtts = (0.0, 0.0, 0.0);
        self.links.iter_mut().for_each(|l| (l.wait_area, l.busy) = (0.0, 0.0));
        self.connections.iter_mut().flat_map(|c| &mut c.subflows).for_each(|s| s.n_delivered = 0);
    }

    fn measured(&self) -> f64 {
        (self.now - self.reset_at).as_secs_f64()
    }

    /// Returns the mean queue in bytes behind the packet in transmission, of which half is left on average.
    fn queue(&self, link: usize) -> f64 {
        let unsent = self.links[link].wait_area / self.measured() * self.links[link].rate.as_bytes_per_sec();
        unsent - self.utilisation(link) * MTU as f64 / 2.0
    }

    fn utilisation(&self, link: usize) -> f64 {
        self.links[link].busy / self.measured()
    }

    /// Returns the delivery rate of a subflow as a fraction of its link's rate.
    fn share(&self, connection: usize, subflow: usize) -> f64 {
        let s = &self.connections[connection].subflows[subflow];
        (s.n_delivered * MTU) as f64 / self.measured() / self.links[s.link].rate.as_bytes_per_sec()
    }

    fn shares(&self, connection: usize) -> Vec<f64> {
        (0..self.connections[connection].subflows.len()).map(|s| self.share(connection, s)).collect()
    }

    /// Returns mean and standard deviation of the round-trip times in s.
    fn rtt(&self) -> (f64, f64) {
        let (sum, squares, n) = self.rtts;
        let mean = sum / n;
        (mean, (squares / n - mean * mean).max(0.0).sqrt())
    }
}

struct Plain<C>(C);

/// A flow of another algorithm as a connection.
impl<C: Controller> CoupledController for Plain<C> {
    fn on_start(&mut self, now: Time, _: usize) -> Allowance {
        self.0.on_start(now)
    }
    fn on_ack(&mut self, _: usize, ack: &Ack<'_>) -> Allowance {
        self.0.on_ack(ack)
    }
    fn on_loss(&mut self, _: usize, now: Time, loss: Loss) -> Allowance {
        self.0.on_loss(now, loss)
    }
    fn on_timer(&mut self, _: usize, now: Time) -> Allowance {
        self.0.on_timer(now)
    }
}

const G100: Rate = Rate::from_gbps(100);
const KB40: Bytes = Bytes::new(40_000);
const US5: Time = Time::from_us(5);

/// Returns the configuration for the simulated fat-tree (§V-B): 100 Gb/s, 5 us, Kmax 40 KB. Senders are twice as fast
/// as the bottleneck.
fn fabric() -> RateMpConfig {
    RateMpConfig { capacity: RateMpCapacity::Rate(G100), ..RateMpConfig::default() }
}

/// Returns configuration, link rate and base RTT of the testbed (§V-A): 0.5 Gb/s, 200 us, Kmax 150 KB.
fn testbed() -> (RateMpConfig, Rate, Time) {
    let rate = Rate::from_mbps(500);
    let config =
        RateMpConfig { capacity: RateMpCapacity::Rate(rate), kmax: Bytes::new(150_000), ..RateMpConfig::default() };
    (config, rate, Time::from_us(200))
}

/// Runs connections with the given numbers of subflows at one bottleneck of the fabric, measured for `observed` after
/// 10 ms.
fn one_bottleneck(config: &RateMpConfig, subflows: &[usize], observed: Time) -> World {
    let mut world = World::new(vec![Link::new(G100, KB40, 1)]);
    for (i, &n) in subflows.iter().enumerate() {
        world.add(config, Rate::from_gbps(200), US5, &vec![0; n], Time::from_ns(100 * i as u64));
    }
    world.run_until(Time::from_ms(10));
    world.reset();
    world.run_until(Time::from_ms(10) + observed);
    world
}

/// Returns the throughput of each connection in fair shares of the total throughput.
fn fairness(world: &World) -> Vec<f64> {
    let n = world.connections.len();
    let sums: Vec<f64> = (0..n).map(|c| world.shares(c).iter().sum()).collect();
    let total: f64 = sums.iter().sum();
    sums.iter().map(|share| share / total * n as f64).collect()
}

/// Returns the queue in equilibrium. There β = α_total/y (eq. 9), so N connections hold N hundredths of Kmax. A window
/// of x·base_rtt sends at the rate x·base_rtt/rtt, so x is a little more than y and the queue a little less.
fn expected_queue(n: usize, world: &World) -> f64 {
    let base = US5 + G100.tx_time(Bytes::new(MTU));
    KB40.as_f64() * n as f64 / 100.0 * base.as_secs_f64() / world.rtt().0
}

/// Marks are random: over 20,000 round trips that leaves an error of a few per cent. A lone connection loses a few per
/// cent of throughput, as its queue in equilibrium, 400 bytes, is less than a packet.
#[test]
fn a_link_is_full_with_a_hundredth_of_kmax_queued_for_each_connection() {
    for n in [1, 2, 10] {
        for subflows in [1, 4] {
            let world = one_bottleneck(&fabric(), &vec![subflows; n], Time::from_ms(100));
            let (used, queue, expected) = (world.utilisation(0), world.queue(0), expected_queue(n, &world));
            let least = if n == 10 { 0.99 } else { 0.96 };
            assert!((least..=1.0).contains(&used), "{n} x {subflows}: {used}");
            assert!((queue / expected - 1.0).abs() < 0.08, "{n} x {subflows}: {queue} of {expected} bytes");
            let shares = fairness(&world);
            assert!(shares.iter().all(|share| (share - 1.0).abs() < 0.04), "{n} x {subflows}: {shares:?}");
        }
    }
}

#[test]
fn connections_share_equally_whatever_the_number_of_their_subflows() {
    let world = one_bottleneck(&fabric(), &[1, 4, 1, 4, 1, 4, 1, 4, 1, 4], Time::from_ms(100));
    let shares = fairness(&world);
    assert!(shares.iter().all(|share| (share - 1.0).abs() < 0.04), "{shares:?}");
}

/// Oscillation with w = x·rtt: at a fair share of four packets, and alone on the slow testbed. Oscillation with steps
/// of 1/(x·rtt) round trips: with four subflows of one packet each, not with one subflow, which is never below a
/// packet.
#[test]
fn the_printed_forms_cycle() {
    let twenty = Time::from_ms(20);
    let window = RateMpConfig { window: RateMpWindow::Rtt, ..fabric() };
    let step = RateMpConfig { low_rate_step: RateMpLowRateStep::Printed, ..fabric() };
    for (subflows, printed) in [(1, &window), (4, &window), (4, &step)] {
        let steady = one_bottleneck(&fabric(), &[subflows; 10], twenty);
        let cycling = one_bottleneck(printed, &[subflows; 10], twenty);
        assert!(0.98 < steady.utilisation(0) && cycling.utilisation(0) < 0.9, "{}", cycling.utilisation(0));
        assert!(4.0 * steady.rtt().1 < cycling.rtt().1, "{:?} {:?}", steady.rtt(), cycling.rtt());
    }
    let alone = one_bottleneck(&step, &[1; 10], twenty);
    assert_eq!(alone.rtt(), one_bottleneck(&fabric(), &[1; 10], twenty).rtt());
}

/// Table I has a mean of 236 us and a deviation (there called variance) of 12.2 us, over a base that the paper rounds
/// to 200 us and that is 224 us here with the packet's transmission.
#[test]
fn the_testbed_s_round_trip_time() {
    let alone = |window| {
        let (config, rate, base) = testbed();
        let config = RateMpConfig { window, ..config };
        let mut world = World::new(vec![Link::new(rate, config.kmax, 1)]);
        world.add(&config, Rate::from_gbps(1), base, &[0], Time::ZERO);
        observe(&mut world, 1_000, 6_000);
        (world.rtt().0 * 1e6, world.rtt().1 * 1e6, world.utilisation(0))
    };
    let (mean, deviation, used) = alone(RateMpWindow::BaseRtt);
    assert!((230.0..250.0).contains(&mean) && deviation < 18.0 && 0.98 < used, "{mean} {deviation} {used}");
    let (mean, deviation, used) = alone(RateMpWindow::Rtt);
    assert!(300.0 < mean && 120.0 < deviation && used < 0.8, "{mean} {deviation} {used}");
}

/// Beyond a hundred connections every packet is marked, and x stays at the equilibrium of eq. (9), c/100 each. Their
/// windows hold one packet each, 300 transmissions of 0.12 us. A connection that measures its base RTT in the burst at
/// the start, without a handshake, includes the queue in its base RTT and keeps the queue filled.
#[test]
fn beyond_a_hundred_connections_marks_say_nothing() {
    let world = one_bottleneck(&fabric(), &[1; 300], Time::from_ms(20));
    assert!((world.rtt().0 * 1e6 - 36.0).abs() < 0.1, "{:?}", world.rtt());
    let late = RateMpConfig { base_rtt: RateMpBaseRtt::Data, ..fabric() };
    let world = one_bottleneck(&late, &[1; 300], Time::from_ms(20));
    assert!(360.0 < world.rtt().0 * 1e6, "{:?}", world.rtt());
}

fn observe(world: &mut World, from_ms: u64, to_ms: u64) {
    world.run_until(Time::from_ms(from_ms));
    world.reset();
    world.run_until(Time::from_ms(to_ms));
}

/// Fig. 3a and 4, five times as fast: a connection over the links AB and CD, and a flow on AB from 1 to 2 s. Meanwhile
/// eq. (4) leaves nothing to the connection's subflow on AB but the smallest rate, 0.1 per cent of the link.
#[test]
fn only_the_cheapest_path_carries_traffic() {
    let (config, rate, base) = testbed();
    let (line, start) = (Rate::from_gbps(1), Time::from_ms(1_000));
    let dctcp = DctcpConfig::default().build(&context(line, rate, base));
    for competitor in ["ratemp", "dctcp"] {
        let mut world = World::new(vec![Link::new(rate, config.kmax, 1), Link::new(rate, config.kmax, 2)]);
        world.add(&config, line, base, &[0, 1], Time::ZERO);
        let flow = match competitor {
            "dctcp" => world.add_controlled(Box::new(Plain(dctcp.clone())), base, &[0], start),
            _ => world.add(&config, line, base, &[0], start),
        };
        world.stop_at(flow, Time::from_ms(2_000));
        observe(&mut world, 200, 1_000);
        assert!(world.shares(0).iter().all(|&share| 0.94 < share), "{competitor}: {:?}", world.shares(0));
        observe(&mut world, 1_100, 2_000);
        let (connection, flow) = (world.shares(0), world.share(flow, 0));
        assert!(connection[0] < 0.04 && 0.98 < connection[1], "{competitor}: {connection:?}");
        assert!(0.95 < flow, "{competitor}: {flow}");
        observe(&mut world, 3_000, 4_000);
        assert!(world.shares(0).iter().all(|&share| 0.92 < share), "{competitor}: {:?}", world.shares(0));
    }
}

/// Returns the milliseconds, in steps of ten, until AB again carries nine tenths of its rate after a flow on it has
/// stopped; and the share of AB that the connection had beside the flow.
fn return_to_a_freed_path(beta_rounds: RateMpBetaRounds, seed: u64) -> (u64, f64) {
    let (config, rate, base) = testbed();
    let config = RateMpConfig { beta_rounds, ..config };
    let line = Rate::from_gbps(1);
    let mut world = World::new([1, 2].map(|i| Link::new(rate, config.kmax, 2 * seed + i)).into());
    world.add(&config, line, base, &[0, 1], Time::ZERO);
    let flow = world.add(&config, line, base, &[0], Time::from_ms(500));
    world.stop_at(flow, Time::from_ms(1_500));
    observe(&mut world, 700, 1_500);
    let share = world.share(0, 0);
    let waited = (1..500).map(|tens| 10 * tens).find(|waited| {
        observe(&mut world, 1_490 + waited, 1_500 + waited);
        0.9 < world.share(0, 0)
    });
    (waited.expect("it comes back"), share)
}

/// By §IV-B idle bandwidth is used at once. By Algorithm 1 β must fall below 0.02 first, a sixteenth with each packet,
/// 20 ms apart. If every round trip counts, one unmarked packet is enough, also beside a flow that stays: then the
/// connection gets more of AB, where eq. (4) leaves it nothing.
#[test]
fn a_freed_path_is_used_late_unless_every_round_trip_counts() {
    let mean = |beta_rounds| {
        let runs = (0..12).map(|seed| return_to_a_freed_path(beta_rounds, seed));
        runs.fold((0.0, 0.0), |sum, (ms, share)| (sum.0 + ms as f64 / 12.0, sum.1 + share / 12.0))
    };
    let (late, little) = mean(RateMpBetaRounds::Acknowledged);
    assert!(150.0 < late && little < 0.03, "{late} {little}");
    let (soon, more) = mean(RateMpBetaRounds::Elapsed);
    assert!(soon < 60.0 && 0.04 < more && more < 0.1, "{soon} {more}");
}

/// After a flow of 300 us on one of two paths the connection leaves that path for 2,000 round trips and more, whether
/// switches mark by RED or above a step. It returns later: β loses a sixteenth with each packet, 100 round trips apart.
#[test]
fn a_burst_closes_a_path_for_thousands_of_round_trips() {
    let rate = Rate::from_gbps(10);
    for (is_step, beta_rounds) in [true, false]
        .into_iter()
        .flat_map(|step| [RateMpBetaRounds::Acknowledged, RateMpBetaRounds::Elapsed].map(|rounds| (step, rounds)))
    {
        let config = RateMpConfig { capacity: RateMpCapacity::Rate(rate), beta_rounds, ..RateMpConfig::default() };
        let mut world = World::new([1, 2].map(|i| Link { is_step, ..Link::new(rate, KB40, i) }).into());
        let base = Time::from_us(12);
        world.add(&config, rate, base, &[0, 1], Time::ZERO);
        let burst = world.add(&config, rate, base, &[0], Time::from_us(500));
        world.stop_at(burst, Time::from_us(800));
        observe(&mut world, 4, 20);
        let share = world.share(0, 0);
        match beta_rounds {
            RateMpBetaRounds::Acknowledged => assert!(share < 0.01, "{is_step} {share}"),
            RateMpBetaRounds::Elapsed => assert!(0.95 < share, "{is_step} {share}"),
        }
        observe(&mut world, 100, 110);
        assert!(0.95 < world.share(0, 0), "{is_step} {beta_rounds:?} {}", world.share(0, 0));
    }
}

/// When a connection arrives at a link that another connection fills, both leave it half empty for 200 us, 60 round
/// trips, with one subflow each as with four. β keeps the burst's marks for 16 round trips, and rates rise by a
/// hundredth of the link per round trip. With five times that there is hardly a gap: the law is slow by its own
/// α_total.
#[test]
fn after_an_arrival_half_of_the_link_is_unused() {
    let base = Time::from_us(3);
    let used = |alpha, subflows, seed| {
        let config = RateMpConfig { alpha, ..fabric() };
        let mut world = World::new(vec![Link::new(G100, KB40, seed)]);
        for start in [Time::ZERO, Time::from_ms(10)] {
            world.add(&config, Rate::from_gbps(200), base, &vec![0; subflows], start);
        }
        world.run_until(Time::from_ms(10));
        world.reset();
        world.run_until(Time::from_us(10_200));
        world.utilisation(0)
    };
    for subflows in [1, 4] {
        let mean = |alpha| (0..8).map(|seed| used(alpha, subflows, seed)).sum::<f64>() / 8.0;
        let (printed, faster) = (mean(0.01), mean(0.05));
        assert!((0.45..0.65).contains(&printed) && 0.85 < faster, "{subflows}: {printed} {faster}");
    }
}
