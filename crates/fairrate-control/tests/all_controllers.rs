//! One model for all controllers: whatever comes in, what goes out stays within bounds, is the same each
//! time and does not depend on how it is dispatched; and timers do not storm.

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, IntHop, Loss, ParamKind,
    Parameters, Profile, RawValue,
};
use fairrate_units::{Bytes, Rate, Time};
use proptest::prelude::*;

/// Timer calls allowed once no input comes any more: DCQCN at 100 Gb/s needs 2,500 additive steps to recover.
const WAKES_WHEN_QUIET: u64 = 3_000;
/// Least average time between timer calls while inputs come.
const WAKE_INTERVAL: Time = Time::from_us(4);

#[derive(Clone, Debug)]
enum Kind {
    Ack { newly_acked: u64, in_flight: u64, rtt: Time, marked: bool, sent_at: usize, hops: Vec<HopStep> },
    Loss(Loss),
    Cnp,
    SpuriousTimer,
    Sent(u64),
}

/// How one port's telemetry moves on.
#[derive(Clone, Debug)]
struct HopStep {
    dt: Time,
    tx_bytes: u64,
    qlen: u32,
    rate_mbps: u32,
}

#[derive(Clone, Debug)]
struct Input {
    dt: Time,
    /// Whether this input goes before a timer of the same time.
    before_timer: bool,
    kind: Kind,
}

fn gap() -> impl Strategy<Value = Time> {
    prop_oneof![
        2 => Just(Time::ZERO),
        4 => (0_u64..2_000).prop_map(Time::from_ns),
        4 => (0_u64..60).prop_map(Time::from_us),
        2 => (0_u64..20_000_000).prop_map(Time::from_ps),
        1 => (0_u64..50).prop_map(Time::from_ms),
    ]
}

fn hop() -> impl Strategy<Value = HopStep> {
    let rate = prop::sample::select(vec![1_u32, 10_000, 25_000, 100_000, 400_000]);
    let bytes = prop_oneof![4 => 0_u64..200_000, 1 => any::<u64>()];
    let qlen = prop_oneof![2 => Just(0), 4 => 0_u32..1_000_000, 1 => any::<u32>()];
    (gap(), bytes, qlen, rate).prop_map(|(dt, tx_bytes, qlen, rate_mbps)| HopStep { dt, tx_bytes, qlen, rate_mbps })
}

fn kind() -> impl Strategy<Value = Kind> {
    let newly_acked = prop_oneof![1 => Just(0), 6 => 1_u64..20_000, 1 => 0_u64..1 << 40];
    let in_flight = prop_oneof![1 => Just(0), 6 => 0_u64..400_000, 1 => 0_u64..1 << 40];
    let rtt = prop_oneof![1 => Just(Time::ZERO), 8 => (1_u64..800_000).prop_map(Time::from_ns), 1 => gap()];
    let ack = (newly_acked, in_flight, rtt, any::<bool>(), 0_usize..20, prop::collection::vec(hop(), 1..=8)).prop_map(
        |(newly_acked, in_flight, rtt, marked, sent_at, hops)| Kind::Ack {
            newly_acked,
            in_flight,
            rtt,
            marked,
            sent_at,
            hops,
        },
    );
    prop_oneof![
        12 => ack,
        1 => Just(Kind::Loss(Loss::Gap)),
        1 => Just(Kind::Loss(Loss::Timeout)),
        1 => Just(Kind::Cnp),
        1 => Just(Kind::SpuriousTimer),
        2 => (1_u64..20_000_000).prop_map(Kind::Sent),
    ]
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let input = (gap(), any::<bool>(), kind()).prop_map(|(dt, before_timer, kind)| Input { dt, before_timer, kind });
    prop::collection::vec(input, 1..120)
}

fn flow() -> impl Strategy<Value = FlowContext> {
    let line = prop::sample::select(vec![10_u64, 25, 100]);
    let tau = prop_oneof![6 => 4_000_u64..60_000, 1 => 50_u64..1_000].prop_map(Time::from_ns);
    (line, tau, 1_u64..=4, 1_u32..=8, 0_u64..1_000).prop_map(|(gbps, base_rtt, share, n_hops, start_us)| FlowContext {
        line_rate: Rate::from_gbps(gbps),
        base_rtt,
        path_base_rtt: Time::from_ps(base_rtt.as_ps() / share),
        mtu: Bytes::new(1_000),
        wire_mtu: Bytes::new(1_090),
        n_hops,
        weight: 1.0,
        start: Time::from_us(start_us),
        size: Bytes::MAX,
        demand: Rate::MAX,
    })
}

/// Throws every switch and choice of `config` by the bits of `switches`.
fn throw_switches(config: &mut AlgorithmConfig, mut switches: u32) {
    for param in config.params() {
        let value = match param.kind {
            ParamKind::Bool => RawValue::Bool(switches & 1 == 1),
            ParamKind::Choice(words) => RawValue::Text(words[switches as usize % words.len()]),
            _ => continue,
        };
        switches = switches.rotate_right(3).wrapping_mul(0x9E37_79B1);
        config.set(param.name, value).expect("a switch takes its own values");
    }
}

/// Feeds inputs to a controller as a transport would, and checks every answer.
struct Driver<'a> {
    name: &'static str,
    controller: Algorithm,
    flow: &'a FlowContext,
    reads_int: bool,
    now: Time,
    snd_una: u64,
    hops: Vec<IntHop>,
    allowance: Allowance,
    windows: Vec<u64>,
    n_wakes: u64,
    answers: Vec<Allowance>,
}

impl<'a> Driver<'a> {
    fn new(name: &'static str, mut controller: Algorithm, flow: &'a FlowContext, reads_int: bool) -> Self {
        let allowance = controller.on_start(flow.start);
        let mut driver = Self {
            name,
            controller,
            flow,
            reads_int,
            now: flow.start,
            snd_una: 0,
            hops: vec![IntHop::default(); 8],
            allowance,
            windows: Vec::new(),
            n_wakes: 0,
            answers: Vec::new(),
        };
        driver.take(allowance);
        driver
    }

    fn take(&mut self, a: Allowance) {
        let name = self.name;
        assert!(Bytes::new(1) <= a.cwnd, "{name}: no window: {a:?}");
        assert!(Rate::ZERO < a.rate && a.rate <= self.flow.line_rate, "{name}: rate out of bounds: {a:?}");
        assert!(self.now < a.timer, "{name}: timer not in the future: {a:?} at {}", self.now);
        self.allowance = a;
        self.windows.push(a.cwnd.as_u64());
        self.answers.push(a);
    }

    fn wake(&mut self) {
        self.now = self.allowance.timer;
        self.n_wakes += 1;
        let a = self.controller.on_timer(self.now);
        self.take(a);
    }

    fn feed(&mut self, input: &Input) {
        let at = self.now.saturating_add(input.dt);
        while self.allowance.timer < at || (self.allowance.timer == at && !input.before_timer) {
            self.wake();
        }
        self.now = at;
        let a = match &input.kind {
            Kind::Loss(loss) => self.controller.on_loss(at, *loss),
            Kind::Cnp => self.controller.on_cnp(at),
            Kind::SpuriousTimer => self.controller.on_timer(at),
            Kind::Sent(bytes) => {
                let Some(a) = self.controller.on_sent(at, Bytes::new(*bytes)) else { return };
                a
            }
            Kind::Ack { newly_acked, in_flight, rtt, marked, sent_at, hops } => {
                self.snd_una += newly_acked;
                for (hop, step) in self.hops.iter_mut().zip(hops) {
                    hop.ts += step.dt;
                    hop.tx_bytes = hop.tx_bytes.saturating_add(step.tx_bytes);
                    (hop.qlen, hop.rate_mbps) = (step.qlen, step.rate_mbps);
                }
                let ack = Ack {
                    now: at,
                    ack_seq: self.snd_una,
                    snd_nxt: self.snd_una + in_flight,
                    newly_acked: *newly_acked,
                    rtt: *rtt,
                    cwnd_at_send: self.windows[self.windows.len().saturating_sub(1 + sent_at)],
                    ecn_marked: *marked,
                    int: if self.reads_int { &self.hops[..hops.len()] } else { &[] },
                    header: &[],
                };
                self.controller.on_ack(&ack)
            }
        };
        self.take(a);
    }

    fn run(mut self, inputs: &[Input]) -> Vec<Allowance> {
        for input in inputs {
            self.feed(input);
        }
        let elapsed = (self.now - self.flow.start).as_ps() / WAKE_INTERVAL.as_ps();
        assert!(
            self.n_wakes <= elapsed + 1,
            "{}: {} wakes in {elapsed} times {WAKE_INTERVAL}",
            self.name,
            self.n_wakes
        );
        let before = self.n_wakes;
        while self.allowance.timer < Time::MAX {
            self.wake();
            assert!(
                self.n_wakes - before <= WAKES_WHEN_QUIET,
                "{}: timer never rests: {:?}",
                self.name,
                self.allowance
            );
        }
        self.answers
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_controller_stays_in_bounds(
        flow in flow(), inputs in inputs(), switches in prop::option::of(any::<u32>()),
    ) {
        for info in ALGORITHMS {
            for profile in [Profile::Paper, Profile::Ns3] {
                let mut config = AlgorithmConfig::by_name(info.name, profile).expect("listed");
                if let Some(switches) = switches {
                    throw_switches(&mut config, switches);
                }
                let reads_int = config.needs().int.is_some();
                let run = |controller| Driver::new(info.name, controller, &flow, reads_int).run(&inputs);
                let answers = run(config.build(&flow));
                prop_assert_eq!(&answers, &run(config.build(&flow)), "{} is not deterministic", info.name);
                let boxed = Algorithm::Custom(Box::new(config.build(&flow)));
                prop_assert_eq!(&answers, &run(boxed), "{} differs in a box", info.name);
            }
        }
    }
}

#[test]
fn a_day_of_silence_is_survived() {
    let flow = FlowContext {
        line_rate: Rate::from_gbps(25),
        base_rtt: Time::from_us(8),
        path_base_rtt: Time::from_us(8),
        mtu: Bytes::new(1_000),
        wire_mtu: Bytes::new(1_048),
        n_hops: 2,
        weight: 1.0,
        start: Time::ZERO,
        size: Bytes::MAX,
        demand: Rate::MAX,
    };
    let hop = HopStep { dt: Time::from_us(1), tx_bytes: 1_000, qlen: 0, rate_mbps: 25_000 };
    let ack = Kind::Ack {
        newly_acked: 1_000,
        in_flight: 25_000,
        rtt: Time::from_us(8),
        marked: true,
        sent_at: 0,
        hops: vec![hop],
    };
    let days = [0, 0, 1, 0, 10, 0, 200].map(|days| Input {
        dt: Time::from_ms(86_400_000 * days),
        before_timer: true,
        kind: ack.clone(),
    });
    for info in ALGORITHMS {
        for profile in [Profile::Paper, Profile::Ns3] {
            let config = AlgorithmConfig::by_name(info.name, profile).expect("listed");
            // Timers held back: the controller has to catch up by itself.
            let mut late = Driver::new(info.name, config.build(&flow), &flow, config.needs().int.is_some());
            for input in &days {
                late.allowance.timer = Time::MAX;
                late.feed(input);
            }
            Driver::new(info.name, config.build(&flow), &flow, config.needs().int.is_some()).run(&days);
        }
    }
}

#[test]
fn every_parameter_reads_back_what_it_writes() {
    for info in ALGORITHMS {
        for profile in [Profile::Paper, Profile::Ns3] {
            let config = AlgorithmConfig::by_name(info.name, profile).expect("listed");
            assert_eq!(config.info().name, info.name);
            for param in config.params() {
                let raw = match param.kind {
                    ParamKind::Float => RawValue::Float(param.toml.parse().expect("a float")),
                    ParamKind::Count => RawValue::Integer(param.toml.parse().expect("a count")),
                    ParamKind::Bool => RawValue::Bool(param.toml == "true"),
                    _ => RawValue::Text(param.toml.trim_matches('"')),
                };
                let mut copy = config.clone();
                copy.set(param.name, raw).unwrap_or_else(|e| panic!("{} {}: {e:?}", info.name, param.name));
                assert_eq!(copy, config, "{} {}", info.name, param.name);
                assert!(param.doc.ends_with('.') && !param.doc.contains("  "), "{} {}", info.name, param.name);
            }
        }
    }
}
