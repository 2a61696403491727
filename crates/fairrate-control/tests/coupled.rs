//! The algorithms that couple the subflows of a connection: one model for all of them, and their equilibria on two
//! paths of fixed loss and delay, without a network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, CoupledAlgorithm, CoupledController,
    FlowContext, Loss, Parameters, PathState, Profile, RawValue,
};
use fairrate_units::{Bytes, Rate, Time};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const MSS: u64 = 1_000;

fn flow(path_base_rtt: Time) -> FlowContext {
    FlowContext {
        mtu: Bytes::new(MSS),
        wire_mtu: Bytes::new(1_090),
        n_hops: 4,
        ..FlowContext::on(Rate::from_gbps(100), path_base_rtt)
    }
}

fn flows(n: usize) -> Vec<FlowContext> {
    vec![flow(Time::from_us(10)); n]
}

fn config(name: &str) -> AlgorithmConfig {
    AlgorithmConfig::by_name(name, Profile::Paper).expect("listed")
}

fn connection(name: &str, n: usize) -> CoupledAlgorithm {
    config(name).build_connection(&flows(n)).expect("coupled")
}

/// Returns the names of all algorithms that couple subflows.
fn coupled() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|a| a.name).filter(|name| config(name).build_connection(&flows(1)).is_some())
}

#[derive(Clone, Debug)]
enum Event {
    Ack { newly_acked: u64, in_flight: u64, rtt: Time, marked: bool },
    Loss(Loss),
    Path(PathState),
    Timer,
}

/// A subflow, the time since the last event, and the event.
type Input = (usize, Time, Event);

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let newly_acked = prop_oneof![1 => Just(0), 6 => 1_u64..20_000, 1 => 0_u64..1 << 40];
    let in_flight = prop_oneof![1 => Just(0), 6 => 0_u64..400_000, 1 => 0_u64..1 << 40];
    let rtt = prop_oneof![1 => Just(Time::ZERO), 8 => (1_u64..800_000).prop_map(Time::from_ns)];
    let ack = (newly_acked, in_flight, rtt, prop::bool::weighted(0.2));
    let ack = ack.prop_map(|(newly_acked, in_flight, rtt, marked)| Event::Ack { newly_acked, in_flight, rtt, marked });
    let event = prop_oneof![
        20 => ack,
        1 => Just(Event::Loss(Loss::Gap)),
        1 => Just(Event::Loss(Loss::Timeout)),
        1 => any::<bool>().prop_map(|alive| Event::Path(if alive { PathState::Alive } else { PathState::Dead })),
        1 => Just(Event::Timer),
    ];
    prop::collection::vec((0_usize..4, (0_u64..50_000).prop_map(Time::from_ns), event), 1..200)
}

/// Starts a connection of `n` subflows and feeds it `inputs`; returns its answers.
fn feed(control: &mut impl CoupledController, n: usize, inputs: &[Input]) -> Vec<Allowance> {
    let mut answers: Vec<Allowance> = (0..n).map(|r| control.on_start(Time::ZERO, r)).collect();
    let (mut now, mut una) = (Time::ZERO, vec![0; n]);
    for (r, dt, event) in inputs {
        let r = r % n;
        now += *dt;
        answers.push(match event {
            Event::Ack { newly_acked, in_flight, rtt, marked } => {
                una[r] += newly_acked;
                control.on_ack(r, &ack(now, una[r], *newly_acked, *in_flight, *rtt, *marked))
            }
            Event::Loss(loss) => control.on_loss(r, now, *loss),
            Event::Path(state) => {
                control.on_path(r, now, *state);
                continue;
            }
            Event::Timer => control.on_timer(r, now),
        });
    }
    answers
}

fn ack(now: Time, ack_seq: u64, newly_acked: u64, in_flight: u64, rtt: Time, ecn_marked: bool) -> Ack<'static> {
    Ack {
        now,
        ack_seq,
        snd_nxt: ack_seq + in_flight,
        newly_acked,
        delivered: newly_acked,
        lost: 0,
        rtt,
        cwnd_at_send: 10_000,
        in_flight,
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        penalty: 0,
        app_limited: false,
        ecn_marked,
        int: &[],
        path: 0,
        header: &[],
    }
}

/// A controller of single flows as a connection of one subflow.
struct Single(Algorithm);

impl CoupledController for Single {
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

/// Returns an upper bound of a window: growth needs a full window, doubles it in slow start, and may double it once
/// more at the end of a round; and algorithms with rates use twice line rate times the longest round-trip time seen.
fn largest_window(inputs: &[Input]) -> u64 {
    let of = |event: &Event| match event {
        Event::Ack { newly_acked, in_flight, rtt, .. } => {
            let at_line_rate = Rate::from_gbps(100).bytes_in((*rtt).max(Time::from_ms(1))).as_u64();
            (newly_acked + in_flight).max(at_line_rate)
        }
        _ => 0,
    };
    4 * inputs.iter().map(|(_, _, event)| of(event)).max().unwrap_or(0).max(10 * MSS) + 10 * MSS
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_connection_stays_in_bounds(n in 1_usize..=4, inputs in inputs()) {
        for name in coupled() {
            let answers = feed(&mut connection(name, n), n, &inputs);
            let line = Rate::from_gbps(100);
            for a in &answers {
                prop_assert!(Bytes::new(1) <= a.cwnd && a.rate <= line, "{name}: {a:?}");
                // A subflow that may not send sets a timer.
                prop_assert!(Rate::ZERO < a.rate || a.timer < Time::MAX, "{name}: {a:?}");
                prop_assert!(a.cwnd.as_u64() <= largest_window(&inputs), "{name}: {a:?}");
            }
            prop_assert_eq!(&answers, &feed(&mut connection(name, n), n, &inputs), "{} is not deterministic", name);
            let mut boxed = CoupledAlgorithm::Custom(Box::new(connection(name, n)));
            prop_assert_eq!(&answers, &feed(&mut boxed, n, &inputs), "{} differs in a box", name);
        }
    }

    #[test]
    fn one_subflow_is_a_flow(inputs in inputs()) {
        let inputs: Vec<_> = inputs.into_iter().filter(|i| !matches!(i.2, Event::Path(_))).collect();
        for name in coupled() {
            let single = Single(config(name).build(&flows(1)[0]));
            prop_assert_eq!(feed(&mut connection(name, 1), 1, &inputs), feed(&mut { single }, 1, &inputs), "{}", name);
        }
    }

    #[test]
    fn a_dead_subflow_is_as_none(inputs in inputs()) {
        let inputs: Vec<_> = inputs.into_iter().filter(|i| !matches!(i.2, Event::Path(_))).collect();
        let of_first: Vec<Input> = inputs.into_iter().map(|(_, dt, event)| (0, dt, event)).collect();
        let dead = [1, 2].map(|r| (r, Time::ZERO, Event::Path(PathState::Dead)));
        let after_death = [&dead[..], &of_first[..]].concat();
        for name in coupled() {
            let answers = feed(&mut connection(name, 3), 3, &after_death);
            let alone = feed(&mut connection(name, 1), 1, &of_first);
            prop_assert_eq!(&answers[3..], &alone[1..], "{}", name);
        }
    }

    #[test]
    fn alone_the_linked_increases_are_newreno(
        events in prop::collection::vec((0_u32..1_000, 1_u64..3_000, 1_u64..1_000_000), 1..400),
    ) {
        for name in ["lia", "olia", "balia"] {
            let mut linked = config(name);
            linked.set("min_window", RawValue::Integer(2)).expect("NewReno's");
            linked.set("ecn", RawValue::Bool(true)).expect("a switch");
            let (mut linked, mut reno) = (linked.build(&flows(1)[0]), config("newreno").build(&flows(1)[0]));
            let (mut una, mut cwnd) = (0, linked.on_start(Time::ZERO).cwnd.as_u64());
            for (i, (dice, newly_acked, rtt_ns)) in events.iter().enumerate() {
                let now = Time::from_us(i as u64);
                // A full window has been sent, and no more than that can be acknowledged.
                let newly_acked = (*newly_acked).min(cwnd);
                una += newly_acked;
                let ack = ack(now, una, newly_acked, cwnd, Time::from_ns(*rtt_ns), (20..60).contains(dice));
                let (mut a, mut b) = (linked.on_ack(&ack), reno.on_ack(&ack));
                if *dice < 20 {
                    let loss = if *dice < 5 { Loss::Timeout } else { Loss::Gap };
                    (a, b) = (linked.on_loss(now, loss), reno.on_loss(now, loss));
                }
                // The sums are rounded in another order.
                prop_assert!(a.cwnd.as_u64().abs_diff(b.cwnd.as_u64()) <= 1, "{name}: {a:?} {b:?}");
                cwnd = a.cwnd.as_u64();
            }
        }
    }
}

#[test]
fn a_path_that_dies_leaves_the_growth_of_one_tcp() {
    for name in ["lia", "olia", "balia", "amp"] {
        let mut control = connection(name, 2);
        let mut cwnd = [0, 1].map(|r| control.on_start(Time::ZERO, r).cwnd.as_u64());
        let mut una = [0, 0];
        let mut step = |control: &mut CoupledAlgorithm, r: usize| {
            una[r] += MSS;
            let ack = ack(Time::from_us(1), una[r], MSS, cwnd[r], Time::from_us(10 + 10 * r as u64), false);
            let before = cwnd[r];
            cwnd[r] = control.on_ack(r, &ack).cwnd.as_u64();
            (before as f64, cwnd[r] as f64 - before as f64)
        };
        // Slow start to 40 segments, a loss each, and past recovery.
        for r in [0, 1] {
            (0..30).map(|_| step(&mut control, r)).for_each(|_| {});
            control.on_loss(r, Time::from_us(1), Loss::Gap);
            (0..100).map(|_| step(&mut control, r)).for_each(|_| {});
        }
        let (before, shared) = step(&mut control, 0);
        let reno = |before| 1e6 / before;
        assert!(shared + 2.0 < reno(before), "{name}: {shared} of {}", reno(before));
        control.on_path(1, Time::from_us(1), PathState::Dead);
        let (before, alone) = step(&mut control, 0);
        // Windows are reported in whole bytes.
        assert!((alone - reno(before)).abs() <= 1.0, "{name}: {alone} of {}", reno(before));
        control.on_path(1, Time::from_us(1), PathState::Alive);
        assert!(step(&mut control, 0).1 < alone, "{name}");
    }
}

/// The packets that a path loses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Losses {
    /// Each packet with the same probability, independent of the others.
    Random,
    /// Packets at regular intervals.
    Regular,
    /// No losses: packets at regular intervals are marked instead.
    Marks,
}

/// A path that loses or marks a fraction of the packets, with its round-trip time.
#[derive(Clone, Copy, Debug)]
struct Path {
    losses: Losses,
    part: f64,
    rtt: Time,
}

fn path(losses: Losses, part: f64, rtt_us: u64) -> Path {
    Path { losses, part, rtt: Time::from_us(rtt_us) }
}

/// Mean window in segments over time, and segments per second.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    window: f64,
    rate: f64,
}

/// Runs a connection over paths of fixed loss and delay, always with a full window evenly spread, for `n_losses` losses
/// on the path with the smallest loss fraction; returns the means over the second half. (A path that OLIA gives up has
/// few losses, and its window needs many packets to fall.)
fn run(control: &mut impl CoupledController, paths: &[Path], n_losses: f64, seed: u64) -> Vec<Mean> {
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cwnd: Vec<u64> = (0..paths.len()).map(|r| control.on_start(Time::ZERO, r).cwnd.as_u64()).collect();
    let mut next = vec![Time::ZERO; paths.len()];
    let (mut una, mut recover) = (vec![0_u64; paths.len()], vec![0_u64; paths.len()]);
    let mut sums = vec![Mean::default(); paths.len()];
    let least = paths.iter().map(|p| p.part).fold(1.0, f64::min);
    let n_packets = (n_losses / least) as u64;
    let mut measured = Time::ZERO;
    for i in 0..n_packets {
        let r = (0..paths.len()).min_by_key(|&r| next[r]).expect("a path");
        let (path, now) = (paths[r], next[r]);
        let is_measured = n_packets / 2 <= i;
        if i == n_packets / 2 {
            measured = now;
        }
        una[r] += MSS;
        let lost = match path.losses {
            Losses::Random => (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= path.part,
            _ => (una[r] / MSS).is_multiple_of((1.0 / path.part).round() as u64),
        };
        let marked = lost && path.losses == Losses::Marks;
        // One loss per window is reported, as by a transport.
        let allowance = if lost && !marked && recover[r] < una[r] {
            recover[r] = una[r] + cwnd[r];
            control.on_loss(r, now, Loss::Gap)
        } else {
            control.on_ack(r, &ack(now, una[r], MSS, cwnd[r].saturating_sub(MSS), path.rtt, marked))
        };
        cwnd[r] = allowance.cwnd.as_u64();
        let gap = Time::from_ps(path.rtt.as_ps() * MSS / cwnd[r]);
        next[r] = now + gap;
        if is_measured {
            sums[r].window += cwnd[r] as f64 / MSS as f64 * gap.as_secs_f64();
            sums[r].rate += 1.0;
        }
    }
    let seconds = (next.iter().min().expect("a path").saturating_sub(measured)).as_secs_f64();
    sums.iter().map(|sum| Mean { window: sum.window / seconds, rate: sum.rate / seconds }).collect()
}

/// The runs of the tests, by algorithm and paths: several tests look at the same ones.
type Runs = Mutex<BTreeMap<String, Arc<OnceLock<Vec<Mean>>>>>;

/// Returns the means of an algorithm on `paths`, from `run` the first time.
fn once(name: &str, paths: &[Path], run: impl FnOnce() -> Vec<Mean>) -> Vec<Mean> {
    static RUNS: Runs = Mutex::new(BTreeMap::new());
    let key = format!("{name} {paths:?}");
    let means = Arc::clone(RUNS.lock().expect("no test panicked").entry(key).or_default());
    means.get_or_init(run).clone()
}

/// Returns NewReno's means on a path.
fn tcp(path: Path) -> Mean {
    let run = || run(&mut Single(config("newreno").build(&flow(path.rtt))), &[path], 1_000.0, 1);
    once("newreno", &[path], run)[0]
}

fn means(name: &str, paths: &[Path]) -> Vec<Mean> {
    let flows: Vec<_> = paths.iter().map(|p| flow(p.rtt)).collect();
    let run = || run(&mut config(name).build_connection(&flows).expect("coupled"), paths, 1_000.0, 1);
    once(name, paths, run)
}

fn assert_near(what: &str, x: f64, expected: f64, tolerance: f64) {
    assert!((x / expected - 1.0).abs() <= tolerance, "{what}: {x:.4}, not {expected:.4} within {tolerance}");
}

/// Returns pairs of paths, of which the first is the better one for TCP, each with the square of the ratio of TCP's
/// rates.
fn pairs(losses: Losses) -> [([Path; 2], f64); 4] {
    let pair = |a, b, better| ([a, b], better);
    [
        pair(path(losses, 4e-4, 10), path(losses, 1.6e-3, 10), 4.0),
        pair(path(losses, 4e-4, 10), path(losses, 1.6e-3, 20), 16.0),
        pair(path(losses, 4e-4, 10), path(losses, 4e-4, 40), 16.0),
        pair(path(losses, 1.6e-3, 10), path(losses, 4e-4, 40), 4.0),
    ]
}

/// Relative tolerance for effects that the fluid models of mean windows omit: the sawtooth of windows, random losses,
/// and the time in which a window does not grow while it recovers.
const TOLERANCE: f64 = 0.15;

/// Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", CCR 27, 1997: with an
/// acknowledgment per segment, the mean window is 1.31/√p for random and √(3/2)/√p for regular losses.
#[test]
fn newreno_alone_has_its_mean_window() {
    for (losses, constant) in [(Losses::Random, 1.31), (Losses::Regular, 1.5_f64.sqrt())] {
        for part in [4e-4, 1.6e-3] {
            let mean = tcp(path(losses, part, 10));
            assert_near("window", mean.window, constant / part.sqrt(), TOLERANCE);
            assert_near("rate", mean.rate, mean.window / 10e-6, 0.01);
        }
    }
}

/// All three should get the rate of TCP on its best path. Measured: within 9 %, 10 % with two equal paths.
#[test]
fn together_the_subflows_get_one_tcp_on_the_best_path() {
    for losses in [Losses::Random, Losses::Regular] {
        let equal = ([path(losses, 4e-4, 10); 2], 1.0);
        for (paths, _) in pairs(losses).into_iter().chain([equal]) {
            let best = tcp(paths[0]).rate;
            for name in ["lia", "olia", "balia"] {
                let total: f64 = means(name, &paths).iter().map(|m| m.rate).sum();
                assert_near(name, total, best, TOLERANCE);
            }
        }
    }
}

/// LIA (RFC 6356 eq. 1): a/Σw = p_r w_r/2, so windows are proportional to 1/p, whatever the round-trip times. OLIA:
/// only the best path is used. BALIA: growth and fall balance where (1 + α)(4 + α)/10 / min(α, 3/2) is the square of
/// the ratio of TCP's rates on the better path and on this path.
#[test]
fn each_algorithm_shares_out_as_its_equilibrium_says() {
    for losses in [Losses::Random, Losses::Regular] {
        for (paths, better) in pairs(losses) {
            let lia = means("lia", &paths);
            assert_near("LIA", lia[0].window / lia[1].window, paths[1].part / paths[0].part, TOLERANCE);
            // (1 + α)(4 + α) = 15 better, as α exceeds 3/2.
            let alpha = (9.0 + 60.0 * better).sqrt() / 2.0 - 2.5;
            let balia = means("balia", &paths);
            let share = balia[1].rate / (balia[0].rate + balia[1].rate);
            assert_near("BALIA", share, 1.0 / (1.0 + alpha), TOLERANCE);
            let olia = means("olia", &paths);
            if losses == Losses::Regular {
                // Between its smallest window of two segments and one more.
                assert!((2.0..=3.0).contains(&olia[1].window), "OLIA: {olia:?}");
            } else {
                // Now and then the worse path has a longer interval without a loss and counts as the best.
                assert!(olia[1].rate < lia[1].rate && olia[1].rate < balia[1].rate, "OLIA: {olia:?}");
            }
        }
    }
}

/// BOS: growth from 3/4 of the window to all of it in steps of δ per round trip takes 1/p packets: (W/4δ)·(7/8)W = 1/p,
/// and the mean is 7/8 W. Two paths of the same round-trip time and marks have δ = 1/2 each (TraSh).
#[test]
fn xmp_has_the_mean_window_of_bos_and_trash() {
    for part in [4e-4, 1.6e-3] {
        let mark = path(Losses::Marks, part, 10);
        let mean = |delta: f64| 7.0 / 8.0 * (32.0 * delta / (7.0 * part)).sqrt();
        assert_near("XMP alone", means("xmp", &[mark])[0].window, mean(1.0), TOLERANCE);
        for m in means("xmp", &[mark, mark]) {
            assert_near("XMP on two paths", m.window, mean(0.5), TOLERANCE);
        }
    }
}
