//! TCP's window laws compared with their closed forms, without a simulator: a lone flow with a link's rate, a
//! round-trip time and regular losses, whose transport repairs losses in the next round trip.

use std::collections::{BTreeSet, VecDeque};

use fairrate_control::{
    Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, Loss, Parameters, Profile, RawValue,
};
use fairrate_units::{Bytes, Rate, Time};

const MSS: u64 = 1_000;
const LINE: Rate = Rate::MAX;

/// A path: packets are served at `rate` and take `rtt` there and back; the packet numbered `lose_first` is lost, and
/// every `lose_every`th packet after it.
#[derive(Clone, Copy)]
struct Path {
    rate: Rate,
    rtt: Time,
    lose_first: u64,
    lose_every: u64,
}

impl Path {
    fn loses(&self, n: u64) -> bool {
        self.lose_first <= n && (n - self.lose_first).is_multiple_of(self.lose_every)
    }
}

/// A packet that is on its way.
#[derive(Clone, Copy)]
struct Packet {
    number: u64,
    lost: bool,
    sent: Time,
    /// Arrival time of its acknowledgment.
    due: Time,
    /// Bytes delivered when it was sent, and the time of the last delivery.
    delivered: u64,
    delivered_at: Time,
}

struct Flow {
    path: Path,
    controller: Algorithm,
    allowance: Allowance,
    now: Time,
    /// Time at which pacing permits the next packet, and time at which the link has served all packets sent.
    may_send: Time,
    link_free: Time,
    on_way: VecDeque<Packet>,
    /// Lost packets after which no later packet has arrived yet, so that the sender counts them as in flight.
    unnoticed: Vec<u64>,
    /// Packets to be sent again.
    again: VecDeque<u64>,
    /// Packets known to be lost that have not arrived yet.
    missing: BTreeSet<u64>,
    /// The packet before which losses belong to the present recovery.
    recover: u64,
    next: u64,
    highest: u64,
    n_sent: u64,
    in_flight: u64,
    delivered: u64,
    delivered_at: Time,
}

impl Flow {
    fn new(config: &AlgorithmConfig, path: Path) -> Self {
        let context =
            FlowContext { mtu: Bytes::new(MSS), wire_mtu: Bytes::new(MSS), ..FlowContext::on(LINE, path.rtt) };
        let mut controller = config.build(&context);
        let allowance = controller.on_start(Time::ZERO);
        Self {
            path,
            controller,
            allowance,
            now: Time::ZERO,
            may_send: Time::ZERO,
            link_free: Time::ZERO,
            on_way: VecDeque::new(),
            unnoticed: Vec::new(),
            again: VecDeque::new(),
            missing: BTreeSet::new(),
            recover: 0,
            next: 0,
            highest: 0,
            n_sent: 0,
            in_flight: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
        }
    }

    /// Performs the next event: a packet is sent, arrives or is lost.
    fn step(&mut self) {
        let due = self.on_way.front().map_or(Time::MAX, |p| p.due);
        let send_at = self.now.max(self.may_send);
        if self.in_flight + MSS <= self.allowance.cwnd.as_u64() && send_at <= due {
            self.now = send_at;
            return self.send();
        }
        let packet = self.on_way.pop_front().expect("a packet is always on its way");
        self.now = packet.due;
        if packet.lost {
            self.unnoticed.push(packet.number);
        } else {
            self.arrived(&packet);
        }
    }

    fn send(&mut self) {
        let number = self.again.pop_front().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.n_sent += 1;
        self.may_send = self.now + self.allowance.rate.tx_time(Bytes::new(MSS));
        self.link_free = self.link_free.max(self.now) + self.path.rate.tx_time(Bytes::new(MSS));
        self.in_flight += MSS;
        self.on_way.push_back(Packet {
            number,
            lost: self.path.loses(self.n_sent),
            sent: self.now,
            due: self.link_free + self.path.rtt,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
    }

    fn arrived(&mut self, packet: &Packet) {
        let is_new_loss = !self.unnoticed.is_empty();
        self.in_flight -= MSS * (1 + self.unnoticed.len() as u64);
        self.missing.extend(&self.unnoticed);
        self.again.extend(self.unnoticed.drain(..));
        self.missing.remove(&packet.number);
        self.highest = self.highest.max(packet.number + 1);
        self.delivered += MSS;
        let una = self.missing.first().copied().unwrap_or(self.highest);
        let sample = 8.0 * (self.delivered - packet.delivered) as f64 / (self.now - packet.delivered_at).as_secs_f64();
        self.delivered_at = self.now;
        let ack = Ack {
            now: self.now,
            ack_seq: una * MSS,
            snd_nxt: self.next * MSS,
            newly_acked: MSS,
            delivered: MSS,
            lost: 0,
            rtt: self.now - packet.sent,
            cwnd_at_send: u64::MAX,
            in_flight: self.in_flight,
            delivery_rate: Rate::from_bps_f64(sample),
            prior_delivered: None,
            penalty: 0,
            app_limited: false,
            ecn_marked: false,
            int: &[],
            path: 0,
            header: &[],
        };
        self.allowance = self.controller.on_ack(&ack);
        if is_new_loss && self.recover <= una {
            self.recover = self.next;
            self.allowance = self.controller.on_loss(self.now, Loss::Gap);
            // The first repair does not wait for the window (RFC 6675).
            self.send();
        }
    }

    /// Runs until `n` more packets are sent.
    fn send_packets(&mut self, n: u64) {
        let end = self.n_sent + n;
        while self.n_sent < end {
            self.step();
        }
    }
}

fn algorithm(name: &str, params: &[(&str, RawValue<'_>)]) -> AlgorithmConfig {
    let mut config = AlgorithmConfig::by_name(name, Profile::Paper).expect("listed");
    for (key, value) in params {
        config.set(key, *value).expect("a parameter takes its own values");
    }
    config
}

/// Averages over an interval of a flow.
struct Means {
    /// Delivery rate, in payload bits per second.
    rate: f64,
    /// Number of bytes in flight.
    in_flight: f64,
}

/// Returns the averages over the next `n` packets sent.
fn means(flow: &mut Flow, n: u64) -> Means {
    let (began, before, end) = (flow.now, flow.delivered, flow.n_sent + n);
    let mut sum = 0.0;
    while flow.n_sent < end {
        let (last, in_flight) = (flow.now, flow.in_flight);
        flow.step();
        sum += in_flight as f64 * (flow.now - last).as_secs_f64();
    }
    let span = (flow.now - began).as_secs_f64();
    Means { rate: 8.0 * (flow.delivered - before) as f64 / span, in_flight: sum / span }
}

/// Returns the packets delivered per round trip, on average over `n_cycles` losses, after `n_cycles` earlier losses.
fn mean_window(config: &AlgorithmConfig, path: Path, n_cycles: u64) -> f64 {
    let mut flow = Flow::new(config, path);
    flow.send_packets(path.lose_first + n_cycles * path.lose_every);
    means(&mut flow, n_cycles * path.lose_every).rate / 8.0 / MSS as f64 * path.rtt.as_secs_f64()
}

/// Returns the window of RFC 5681 and of every law with the same average: sqrt(3/2p) packets (RFC 3649).
fn reno_response(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// Returns the window of RFC 9438 eq. 5 with C = 0.4, in packets.
fn cubic_response(beta: f64, rtt: Time, p: f64) -> f64 {
    let factor = 0.4 * (3.0 + beta) / (4.0 * (1.0 - beta));
    let x = rtt.as_secs_f64() / p;
    (factor * x * x * x).sqrt().sqrt()
}

/// Returns a path without a queue.
fn pipe(rtt: Time, lose_first: u64, lose_every: u64) -> Path {
    Path { rate: LINE, rtt, lose_first, lose_every }
}

/// The closed form omits effects of a fixed number of packets, independent of p: the round trip of the repair, in which
/// the window does not grow (W/4 below the mean of about W/2 + 1 round trips: half a packet), the lost packet and the
/// packet that revealed the loss, which are not in flight when the window is cut (a trough one packet lower), and whole
/// packets (half). The sawtooth starts late by as much again, since the window has to be full before it grows. So the
/// mean is lower, by no more than 3.5 packets at any p; an error in the law itself would grow with the window.
#[test]
fn the_mean_window_of_newreno_is_that_of_the_square_root_law() {
    for lose_every in [100, 1_000, 10_000, 100_000] {
        let path = pipe(Time::from_us(10), lose_every, lose_every);
        let (mean, law) = (mean_window(&algorithm("newreno", &[]), path, 30), reno_response(1.0 / lose_every as f64));
        assert!(law - 3.5 < mean && mean < law, "1 in {lose_every}: {mean} packets, not {law}");
    }
}

/// At datacenter round-trip times the cubic curve does not move, and W_est gives the window Reno's average.
/// The tolerance is that of NewReno's test; the trough is not a packet lower here, as the window itself is cut.
#[test]
fn cubic_is_reno_friendly_where_round_trips_are_short() {
    for lose_every in [100, 1_000, 10_000, 100_000] {
        let path = pipe(Time::from_us(10), lose_every, lose_every);
        let (mean, law) = (mean_window(&algorithm("cubic", &[]), path, 30), reno_response(1.0 / lose_every as f64));
        assert!(law - 2.5 < mean && mean < law, "1 in {lose_every}: {mean} packets, not {law}");
    }
}

/// The closed form supposes that each loss occurs at the same window as the last one. That window is a neutral
/// equilibrium: the curve is flat there, so that a flow that starts elsewhere returns with the cube of the distance.
/// So slow start is made to end there, by its first loss. The tolerance is one round trip, that of the repair, in the
/// 53 of the shorter period (2 %).
#[test]
fn the_mean_window_of_cubic_is_that_of_its_response_function() {
    let rtt = Time::from_ms(100);
    for (beta, lose_every) in [(0.7, 10_000), (0.7, 100_000), (0.8, 10_000), (0.8, 100_000)] {
        let law = cubic_response(beta, rtt, 1.0 / lose_every as f64);
        let peak = law * 4.0 / (3.0 + beta);
        let half = (peak / 2.0) as u32;
        let config = algorithm(
            "cubic",
            &[
                ("beta", RawValue::Float(beta)),
                ("initial_window", RawValue::Integer(half.into())),
                ("fast_convergence", RawValue::Bool(false)),
            ],
        );
        let mean = mean_window(&config, pipe(rtt, u64::from(half) + 1, lose_every), 10);
        assert!((mean / law - 1.0).abs() < 0.02, "β = {beta}, 1 in {lose_every}: {mean} packets, not {law}");
    }
}

/// Fast convergence lowers the plateau at every loss at a window just below the last one. A lone flow loses rate by it,
/// but less than with the plateau always at (1 + β)/2 of the peak.
#[test]
fn fast_convergence_costs_a_lone_flow_less_than_a_fifth() {
    let rtt = Time::from_ms(100);
    let law = cubic_response(0.7, rtt, 1e-5);
    let half = (law * 2.0 / 3.7) as u32;
    let config = algorithm("cubic", &[("initial_window", RawValue::Integer(half.into()))]);
    let mean = mean_window(&config, pipe(rtt, u64::from(half) + 1, 100_000), 10);
    assert!(0.85 * law < mean && mean < law, "{mean} packets, not {law}");
}

/// Slow start doubles the window each round trip, and no packet is lost.
#[test]
fn slow_start_doubles() {
    for name in ["newreno", "cubic"] {
        let mut flow = Flow::new(&algorithm(name, &[]), pipe(Time::from_us(10), u64::MAX, 1));
        // 10 packets, then 20, 40, ...: 10 x (2^8 - 1) in eight round trips.
        flow.send_packets(10 * 255);
        assert_eq!((flow.now, flow.in_flight), (Time::from_us(70), 1_280 * MSS), "{name}");
    }
}

/// Returns a path of 40 Gb/s and 40 us: a bandwidth-delay product of 200 packets.
fn bbr_path() -> Path {
    Path { rate: Rate::from_gbps(40), rtt: Time::from_us(40), lose_first: u64::MAX, lose_every: 1 }
}

fn bdp(path: Path) -> f64 {
    path.rate.as_bytes_per_sec() * path.rtt.as_secs_f64()
}

/// Pacing uses 1 % less than the bandwidth, and a probe in eight round trips fills the queue with a quarter of the
/// pipe, which the next phase drains: less than 1/16 of the pipe on average; the model's window has three extra
/// packets, and the smallest RTT includes one packet's serialisation (4 of 200).
#[test]
fn bbr_finds_the_bandwidth_and_holds_a_bandwidth_delay_product() {
    let mut flow = Flow::new(&algorithm("bbr", &[]), bbr_path());
    flow.send_packets(20_000);
    let m = means(&mut flow, 100_000);
    assert!(0.985 * 40e9 < m.rate && m.rate <= 40e9 * 1.000_1, "{} Gb/s", m.rate / 1e9);
    let in_flight = m.in_flight / bdp(bbr_path());
    assert!((0.99..1.085).contains(&in_flight), "{in_flight}");
}

/// A drop to a quarter: the maximum holds the old bandwidth for ten rounds, and a round lasts as long as the queue of
/// two old bandwidth-delay products, which are eight new ones: 80 round trips, and six to drain. The window then keeps
/// at most two products and five packets (of 50) in flight; between that and one product only the margin of 1 % drains.
/// A rise: each cycle of eight round trips finds a quarter more, so four times the bandwidth takes seven cycles.
#[test]
fn bbr_follows_the_bandwidth() {
    let mut flow = Flow::new(&algorithm("bbr", &[]), bbr_path());
    flow.send_packets(20_000);
    for (gbps, n_rtts, most) in [(10, 100, 2.1), (40, 56, 1.085)] {
        flow.path.rate = Rate::from_gbps(gbps);
        let until = flow.now + flow.path.rtt * n_rtts;
        while flow.now < until {
            flow.step();
        }
        let product = bdp(flow.path);
        let m = means(&mut flow, 100 * product as u64 / MSS);
        let (rate, in_flight) = (m.rate / f64::from(gbps as u32) / 1e9, m.in_flight / product);
        assert!((0.985..1.000_1).contains(&rate), "{gbps} Gb/s: {rate}");
        assert!((0.99..most).contains(&in_flight), "{gbps} Gb/s: {in_flight}");
    }
}

/// BBR does not treat losses as congestion: with one packet in 100 lost the rate is nearly that without losses, where
/// NewReno has sqrt(150) packets per round trip of 200.
#[test]
fn bbr_does_not_mind_losses() {
    let path = Path { lose_first: 1_000, lose_every: 100, ..bbr_path() };
    let rate = |name| {
        let mut flow = Flow::new(&algorithm(name, &[]), path);
        flow.send_packets(20_000);
        means(&mut flow, 100_000).rate / 40e9
    };
    let (bbr, reno) = (rate("bbr"), rate("newreno"));
    assert!(0.95 < bbr && reno < 0.06, "{bbr} {reno}");
}
