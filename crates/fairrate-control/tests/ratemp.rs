//! RateMP in a closed loop: its connections over links with nothing but a FIFO queue and RED marks, without a simulator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairrate_control::ratemp::{RateMpCapacity, RateMpConfig, RateMpWindow};
use fairrate_control::{Ack, Allowance, Controller, CoupledController, CoupledSpec, FlowContext, Loss};
use fairrate_units::{Bytes, Rate, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const MTU: u64 = 1_500;

/// A bottleneck: an endless FIFO queue that is empty at `free_at`, and RED with Kmin = 0 and Pmax = 1 (eq. 5).
struct Link {
    rate: Rate,
    kmax: f64,
    draws: Xoshiro256PlusPlus,
    free_at: Time,
    seen: Time,
    /// Since the last reset: the integral of the wait in s², and the time not idle in s.
    wait_area: f64,
    busy: f64,
}

impl Link {
    fn new(rate: Rate, kmax: Bytes, seed: u64) -> Self {
        let draws = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { rate, kmax: kmax.as_f64(), draws, free_at: Time::ZERO, seen: Time::ZERO, wait_area: 0.0, busy: 0.0 }
    }

    fn advance(&mut self, now: Time) {
        let before = self.free_at.saturating_sub(self.seen).as_secs_f64();
        let after = self.free_at.saturating_sub(now).as_secs_f64();
        self.wait_area += (before * before - after * after) / 2.0;
        self.busy += before - after;
        self.seen = now;
    }

    /// Takes a full packet in; when it leaves, and whether it is marked.
    fn enqueue(&mut self, now: Time) -> (Time, bool) {
        self.advance(now);
        let queue = self.rate.bytes_in(self.free_at.saturating_sub(now)).as_f64();
        let uniform = (self.draws.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.free_at = self.free_at.max(now) + self.rate.tx_time(Bytes::new(MTU));
        (self.free_at, uniform < queue / self.kmax)
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
    /// The pending send event; older ones are void.
    wake: Time,
    /// Packets since the last reset.
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
    /// Sum and sum of squares of the round-trip times in s, and their number.
    rtts: (f64, f64, f64),
}

/// Base round trips without the transmission at the bottleneck are what `base` says.
fn context(line_rate: Rate, link: Rate, base: Time) -> FlowContext {
    FlowContext {
        line_rate,
        base_rtt: base + link.tx_time(Bytes::new(MTU)),
        path_base_rtt: base + link.tx_time(Bytes::new(MTU)),
        mtu: Bytes::new(MTU),
        wire_mtu: Bytes::new(MTU),
        n_hops: 2,
        weight: 1.0,
        start: Time::ZERO,
        size: Bytes::MAX,
        demand: Rate::MAX,
    }
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

    /// A RateMP connection with a subflow over each of `paths`, which starts at `start`.
    fn add(&mut self, config: &RateMpConfig, line_rate: Rate, base: Time, paths: &[usize], start: Time) -> usize {
        let contexts: Vec<_> = paths.iter().map(|&l| context(line_rate, self.links[l].rate, base)).collect();
        self.add_controlled(Box::new(config.build_connection(&contexts)), base, paths, start)
    }

    fn add_controlled(
        &mut self, control: Box<dyn CoupledController>, base: Time, paths: &[usize], start: Time,
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

    /// Sends what the allowance lets a subflow send now, and plans the next packet.
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
            rtt,
            cwnd_at_send: s.allowance.cwnd.as_u64(),
            in_flight: s.in_flight,
            delivery_rate: Rate::ZERO,
            app_limited: false,
            ecn_marked: marked,
            int: &[],
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

    /// Measures from now on.
    fn reset(&mut self) {
        self.reset_at = self.now;
        self.rtts = (0.0, 0.0, 0.0);
        self.links.iter_mut().for_each(|l| (l.wait_area, l.busy) = (0.0, 0.0));
        self.connections.iter_mut().flat_map(|c| &mut c.subflows).for_each(|s| s.n_delivered = 0);
    }

    fn measured(&self) -> f64 {
        (self.now - self.reset_at).as_secs_f64()
    }

    /// Mean queue in bytes, the packet in transmission included.
    fn queue(&self, link: usize) -> f64 {
        self.links[link].wait_area / self.measured() * self.links[link].rate.as_bytes_per_sec()
    }

    fn utilisation(&self, link: usize) -> f64 {
        self.links[link].busy / self.measured()
    }

    /// What a subflow has delivered, as a share of its link.
    fn share(&self, connection: usize, subflow: usize) -> f64 {
        let s = &self.connections[connection].subflows[subflow];
        (s.n_delivered * MTU) as f64 / self.measured() / self.links[s.link].rate.as_bytes_per_sec()
    }

    fn shares(&self, connection: usize) -> Vec<f64> {
        (0..self.connections[connection].subflows.len()).map(|s| self.share(connection, s)).collect()
    }

    /// Mean and standard deviation of the round-trip times in s.
    fn rtt(&self) -> (f64, f64) {
        let (sum, squares, n) = self.rtts;
        let mean = sum / n;
        (mean, (squares / n - mean * mean).max(0.0).sqrt())
    }
}

struct Plain<C>(C);

/// A flow of another algorithm, as a connection.
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

fn at_100g(window: RateMpWindow) -> RateMpConfig {
    RateMpConfig { capacity: RateMpCapacity::Rate(G100), window, ..RateMpConfig::default() }
}

fn explore(name: &str, rate: Rate, base: Time, kmax: Bytes, n: usize, subflows: usize, window: RateMpWindow, warm: Time, dur: Time) {
    let config = RateMpConfig { capacity: RateMpCapacity::Rate(rate), kmax, window, ..RateMpConfig::default() };
    let mut w = World::new(vec![Link::new(rate, kmax, 1)]);
    let line = Rate::from_bps(rate.as_bps() * 2);
    for i in 0..n {
        w.add(&config, line, base, &vec![0; subflows], Time::from_ns(100 * i as u64));
    }
    w.run_until(warm);
    w.reset();
    w.run_until(warm + dur);
    let shares: Vec<f64> = (0..n).map(|c| w.shares(c).iter().sum()).collect();
    let (min, max) = shares.iter().fold((f64::MAX, 0.0f64), |(a, b), &s| (a.min(s), b.max(s)));
    let sum: f64 = shares.iter().sum();
    let sq: f64 = shares.iter().map(|s| s * s).sum();
    let (m, sd) = w.rtt();
    println!(
        "{name} n={n} sub={subflows} {window:?}: util {:.4} queue {:.0} B (q* {:.0}) rtt {:.2} us sd {:.2}; min*n {:.3} max*n {:.3} jain {:.4}",
        w.utilisation(0), w.queue(0), kmax.as_f64() * n as f64 / 100.0, m * 1e6, sd * 1e6,
        min * n as f64, max * n as f64, sum * sum / sq / n as f64
    );
}

#[test]
fn exploring() {
    for window in [RateMpWindow::BaseRtt, RateMpWindow::Rtt] {
        for subflows in [1, 4] {
            for n in [1, 2, 10, 32, 100, 300] {
                explore("100G/5us", G100, Time::from_us(5), KB40, n, subflows, window, Time::from_ms(10), Time::from_ms(20));
            }
        }
        for n in [1, 2, 8, 32, 100] {
            explore(".5G/200us", Rate::from_mbps(500), Time::from_us(200), Bytes::new(150_000), n, 1, window, Time::from_ms(2000), Time::from_ms(4000));
        }
    }
}
