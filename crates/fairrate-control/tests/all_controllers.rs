//! One model for all controllers: for any input, the allowances stay within bounds, are the same each time and do not
//! depend on the dispatch; and timers do not fire too often.

use std::collections::VecDeque;

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, IntHop, Loss, NOTICE_VALUES,
    Needs, Notice, ParamKind, Parameters, PortRate, Profile, RawValue,
};
use fairrate_units::{Bytes, Rate, Time};
use proptest::prelude::*;

/// Number of timer calls allowed after the last input: QCN at 100 Gb/s needs 20,000 additive steps to recover, DCQCN
/// 2,500.
const WAKES_WHEN_QUIET: u64 = 20_100;
/// Smallest average time between timer calls while there are inputs.
const WAKE_INTERVAL: Time = Time::from_us(4);

#[derive(Clone, Debug)]
enum Kind {
    Ack {
        newly_acked: u64,
        in_flight: u64,
        rtt: Time,
        marked: bool,
        sent_at: usize,
        hops: Vec<HopStep>,
        words: Words,
    },
    Loss(Loss),
    Cnp,
    Notice {
        port: u32,
        value: f64,
    },
    /// The oldest control packet on its way returns or, in some cases, is lost.
    Control {
        words: Words,
        lost: bool,
    },
    /// Number of payload bytes left to send from now on.
    Unsent(u64),
    SpuriousTimer,
    /// The end of an idle period of this number of retransmission timeouts.
    Idle(u32),
    Sent(u64),
}

/// The words of a header that ports have overwritten; `None` for a word as the sender wrote it.
type Words = Vec<Option<f64>>;

/// The change of one port's telemetry.
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
    /// Set when this input comes before a timer of the same time.
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

/// Returns values of a notice: feedback in 63 steps, a rate in bits per second, or an arbitrary number.
fn notice_value() -> impl Strategy<Value = f64> {
    prop_oneof![2 => (0_u32..64).prop_map(f64::from), 2 => 0.0_f64..2e11, 1 => 0.0_f64..1e300]
}

/// Returns header words: flags and counts, rates in bits per second, changes of rates, or arbitrary numbers.
fn words() -> impl Strategy<Value = Words> {
    let word = prop_oneof![
        2 => (0_u32..4).prop_map(f64::from),
        4 => 0.0_f64..2e11,
        1 => -2e11_f64..2e11,
        1 => -1e18_f64..1e18,
    ];
    prop::collection::vec(prop::option::weighted(0.3, word), 0..16)
}

fn kind() -> impl Strategy<Value = Kind> {
    let newly_acked = prop_oneof![1 => Just(0), 6 => 1_u64..20_000, 1 => 0_u64..1 << 40];
    let in_flight = prop_oneof![1 => Just(0), 6 => 0_u64..400_000, 1 => 0_u64..1 << 40];
    let rtt = prop_oneof![1 => Just(Time::ZERO), 8 => (1_u64..800_000).prop_map(Time::from_ns), 1 => gap()];
    let hops = prop::collection::vec(hop(), 1..=8);
    let ack = (newly_acked, in_flight, rtt, any::<bool>(), 0_usize..20, hops, words());
    let ack = ack.prop_map(|(newly_acked, in_flight, rtt, marked, sent_at, hops, words)| Kind::Ack {
        newly_acked,
        in_flight,
        rtt,
        marked,
        sent_at,
        hops,
        words,
    });
    prop_oneof![
        12 => ack,
        1 => Just(Kind::Loss(Loss::Gap)),
        1 => Just(Kind::Loss(Loss::Timeout)),
        1 => Just(Kind::Cnp),
        2 => (0_u32..3, notice_value()).prop_map(|(port, value)| Kind::Notice { port, value }),
        4 => (words(), prop::bool::weighted(0.1)).prop_map(|(words, lost)| Kind::Control { words, lost }),
        1 => prop_oneof![Just(0), 1_u64..100_000, Just(u64::MAX)].prop_map(Kind::Unsent),
        1 => Just(Kind::SpuriousTimer),
        1 => prop_oneof![1_u32..8, Just(u32::MAX)].prop_map(Kind::Idle),
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
    let size = prop_oneof![Just(Bytes::MAX), (1_u64..10_000_000).prop_map(Bytes::new)];
    let deadline = prop::option::of((1_u64..5_000).prop_map(Time::from_us));
    let flow = (line, tau, 1_u64..=4, 1_u32..=8, 0_u64..1_000, size, deadline);
    flow.prop_map(|(gbps, base_rtt, share, n_hops, start_us, size, deadline)| FlowContext {
        path_base_rtt: Time::from_ps(base_rtt.as_ps() / share),
        wire_mtu: Bytes::new(1_090),
        n_hops,
        start: Time::from_us(start_us),
        size,
        deadline,
        ..FlowContext::on(Rate::from_gbps(gbps), base_rtt)
    })
}

/// Sets every switch and choice of `config` by the bits of `switches`.
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

/// A driver that feeds inputs to a controller as a transport would, and checks every answer.
struct Driver<'a> {
    name: &'static str,
    controller: Algorithm,
    flow: &'a FlowContext,
    needs: Needs,
    now: Time,
    snd_una: u64,
    unsent: u64,
    hops: Vec<IntHop>,
    header: Vec<f64>,
    /// Headers of the control packets on their way.
    on_way: VecDeque<Vec<f64>>,
    n_control: u64,
    allowance: Allowance,
    windows: Vec<u64>,
    n_wakes: u64,
    answers: Vec<Allowance>,
}

impl<'a> Driver<'a> {
    fn new(name: &'static str, mut controller: Algorithm, flow: &'a FlowContext, needs: &Needs) -> Self {
        let n_words =
            usize::from(needs.wire.header.fixed) + usize::from(needs.wire.header.per_hop) * flow.n_hops as usize;
        let allowance = controller.on_start(flow.start);
        let mut driver = Self {
            name,
            controller,
            flow,
            needs: *needs,
            now: flow.start,
            snd_una: 0,
            unsent: u64::MAX,
            hops: vec![IntHop::default(); 8],
            header: vec![0.0; n_words],
            on_way: VecDeque::new(),
            n_control: 0,
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
        // An algorithm that asks the network first may have to wait for the answer.
        let may_stop = self.needs.wire.control.is_some();
        assert!(
            (may_stop || Rate::ZERO < a.rate) && a.rate <= self.flow.line_rate,
            "{name}: rate out of bounds: {a:?}"
        );
        assert!(self.now < a.timer, "{name}: timer not in the future: {a:?} at {}", self.now);
        self.allowance = a;
        self.windows.push(a.cwnd.as_u64());
        self.answers.push(a);
        self.poll_control();
    }

    /// Asks the controller for a control packet.
    fn poll_control(&mut self) {
        if self.needs.wire.control.is_none() {
            return;
        }
        self.header.fill(0.0);
        if self.controller.control_packet(self.now, self.unsent, &mut self.header) {
            assert!(self.header.iter().all(|word| !word.is_nan()), "{}: {:?}", self.name, self.header);
            self.n_control += 1;
            self.on_way.push_back(self.header.clone());
        }
    }

    /// Returns the oldest control packet on its way to the controller, with `words` overwritten.
    fn control_back(&mut self, words: &Words) -> Option<Allowance> {
        let mut header = self.on_way.pop_front()?;
        overwrite(&mut header, words);
        self.controller.on_control(self.now, &header)
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
            Kind::Notice { port, value } => {
                let notice = Notice { flow: 0, port: *port, values: [*value; NOTICE_VALUES] };
                let Some(a) = self.controller.on_notice(at, &notice) else { return };
                a
            }
            Kind::Control { lost: true, .. } => {
                self.on_way.pop_front();
                return;
            }
            Kind::Control { words, .. } => match self.control_back(words) {
                Some(a) => a,
                None => return self.poll_control(),
            },
            Kind::Unsent(bytes) => {
                self.unsent = *bytes;
                return self.poll_control();
            }
            Kind::SpuriousTimer => self.controller.on_timer(at),
            Kind::Idle(timeouts) => {
                let Some(a) = self.controller.on_idle(at, *timeouts) else { return };
                a
            }
            Kind::Sent(bytes) => {
                let Some(a) = self.controller.on_sent(at, Bytes::new(*bytes)) else { return };
                a
            }
            Kind::Ack { newly_acked, in_flight, rtt, marked, sent_at, hops, words } => {
                self.snd_una += newly_acked;
                for (hop, step) in self.hops.iter_mut().zip(hops) {
                    hop.ts += step.dt;
                    hop.tx_bytes = hop.tx_bytes.saturating_add(step.tx_bytes);
                    (hop.qlen, hop.rate) = (step.qlen, PortRate::new(Rate::from_mbps(step.rate_mbps.into())));
                }
                self.header.fill(0.0);
                self.controller.stamp(at, &mut self.header);
                overwrite(&mut self.header, words);
                let ack = Ack {
                    now: at,
                    ack_seq: self.snd_una,
                    snd_nxt: self.snd_una + in_flight,
                    newly_acked: *newly_acked,
                    delivered: *newly_acked,
                    lost: if sent_at % 7 == 2 { *in_flight } else { 0 },
                    rtt: *rtt,
                    cwnd_at_send: self.windows[self.windows.len().saturating_sub(1 + sent_at)],
                    in_flight: *in_flight,
                    delivery_rate: delivery_rate(*newly_acked, *rtt),
                    prior_delivered: (sent_at % 3 != 0).then(|| self.snd_una.saturating_sub(*in_flight)),
                    penalty: 0,
                    app_limited: sent_at % 4 == 1,
                    ecn_marked: *marked,
                    path: 0,
                    int: if self.needs.network.telemetry.is_some() { &self.hops[..hops.len()] } else { &[] },
                    header: &self.header,
                };
                self.controller.on_ack(&ack)
            }
        };
        self.take(a);
    }

    /// Checks that timers stop when there is nothing left to send, all packets on their way have arrived and input
    /// ends.
    fn rest(&mut self) {
        self.unsent = 0;
        self.poll_control();
        let before = self.n_wakes;
        loop {
            while !self.on_way.is_empty() {
                match self.control_back(&Words::new()) {
                    Some(a) => self.take(a),
                    None => self.poll_control(),
                }
            }
            if self.allowance.timer == Time::MAX {
                return;
            }
            self.wake();
            let n_wakes = self.n_wakes - before;
            assert!(n_wakes <= WAKES_WHEN_QUIET, "{}: timer never rests: {:?}", self.name, self.allowance);
        }
    }

    fn run(mut self, inputs: &[Input]) -> Vec<Allowance> {
        for input in inputs {
            self.feed(input);
        }
        // A lost control packet is detected within a few base RTTs; each change by a reply may need a call.
        let least =
            if self.needs.wire.control.is_some() { WAKE_INTERVAL.min(self.flow.base_rtt) } else { WAKE_INTERVAL };
        let allowed = (self.now - self.flow.start).as_ps() / least.as_ps() + 1 + self.n_control;
        assert!(self.n_wakes <= allowed, "{}: {} wakes, not {allowed}", self.name, self.n_wakes);
        self.rest();
        self.answers
    }
}

/// Returns a delivery rate that a transport might have measured; zero if no time has passed.
fn delivery_rate(newly_acked: u64, rtt: Time) -> Rate {
    if rtt == Time::ZERO { Rate::ZERO } else { Rate::from_bps_f64(8.0 * newly_acked as f64 / rtt.as_secs_f64()) }
}

fn overwrite(header: &mut [f64], words: &Words) {
    for (word, new) in header.iter_mut().zip(words) {
        *word = new.unwrap_or(*word);
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
                let needs = config.needs();
                let run = |controller| Driver::new(info.name, controller, &flow, &needs).run(&inputs);
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
    let flow = FlowContext::on(Rate::from_gbps(25), Time::from_us(8));
    let hop = HopStep { dt: Time::from_us(1), tx_bytes: 1_000, qlen: 0, rate_mbps: 25_000 };
    let ack = Kind::Ack {
        newly_acked: 1_000,
        in_flight: 25_000,
        rtt: Time::from_us(8),
        marked: true,
        sent_at: 0,
        hops: vec![hop],
        words: Words::new(),
    };
    let days = [0, 0, 1, 0, 10, 0, 200].map(|days| Input {
        dt: Time::from_ms(86_400_000 * days),
        before_timer: true,
        kind: ack.clone(),
    });
    for info in ALGORITHMS {
        for profile in [Profile::Paper, Profile::Ns3] {
            let config = AlgorithmConfig::by_name(info.name, profile).expect("listed");
            // Timers are held back: the controller has to catch up by itself.
            let mut late = Driver::new(info.name, config.build(&flow), &flow, &config.needs());
            for input in &days {
                late.allowance.timer = Time::MAX;
                late.feed(input);
            }
            Driver::new(info.name, config.build(&flow), &flow, &config.needs()).run(&days);
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
