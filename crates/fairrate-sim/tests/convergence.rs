//! The time that rates take to settle after a change, and changes that wait for it.

use crate::common::{Recorder, algorithm, config, flow, plug_in, run};
use fairrate_control::{Ack, AlgorithmConfig, Allowance, Controller, Loss, Needs};
use fairrate_sim::topology::{Star, Topology};
use fairrate_sim::workload::Churn;
use fairrate_sim::{
    BaseRttRule, Change, ConvergenceSample, FlowId, FlowSpec, ProbeSpec, RunTotals, SimConfig, StopRule, Trigger,
};
use fairrate_units::{Bytes, Rate, Time};

const G25: Rate = Rate::from_gbps(25);
/// Base RTT given to the simulator, so that the times below are round: the true one is 4.7 us.
const RTT: Time = Time::from_us(5);
const HOLD_RTTS: u32 = 10;
const GIVE_UP_RTTS: u32 = 40;

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: G25, delay: Time::from_us(1) }.build()
}

/// Returns a run on a star that measures convergence, until `end_us`.
fn measured(cc: AlgorithmConfig, flows: Vec<FlowSpec>, end_us: u64) -> SimConfig {
    let mut c = config(star(6), cc, flows);
    c.transport.base_rtt = BaseRttRule::Fixed(RTT);
    c.stop = StopRule { at: Some(Time::from_us(end_us)), when_flows_done: false };
    c.probes.push(ProbeSpec::Convergence { tolerance: 0.1, hold_rtts: HOLD_RTTS, give_up_rtts: GIVE_UP_RTTS });
    c
}

fn endless(src: u32, dst: u32, start_us: u64) -> FlowSpec {
    flow(src, dst, u64::MAX, Time::from_us(start_us))
}

/// Returns time in us, flow, arrival or not, number of active flows, and settling time in us, of each sample.
fn told(recorder: &Recorder) -> Vec<(f64, u32, bool, u32, Option<f64>)> {
    let told = |s: &ConvergenceSample| {
        assert_eq!(s.rtts, s.time.map(|time| time.as_us_f64() / RTT.as_us_f64()));
        (s.t.as_us_f64(), s.flow.0, s.arrival, s.n_flows, s.time.map(Time::as_us_f64))
    };
    recorder.convergence.iter().map(told).collect()
}

/// A sender that changes its rate at given times, counted from its start.
struct Scripted {
    start: Time,
    cwnd: Bytes,
    steps: &'static [(u64, u64)],
}

impl Scripted {
    fn at(&self, now: Time) -> Allowance {
        let age = now - self.start;
        let begun = self.steps.iter().take_while(|(us, _)| Time::from_us(*us) <= age);
        let mbps = begun.last().map_or(0, |(_, mbps)| *mbps);
        let next = self.steps.iter().find(|(us, _)| age < Time::from_us(*us));
        let timer = next.map_or(Time::MAX, |(us, _)| self.start + Time::from_us(*us));
        Allowance { cwnd: self.cwnd, rate: Rate::from_mbps(mbps), timer }
    }
}

impl Controller for Scripted {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.at(now)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.at(ack.now)
    }
    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.at(now)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.at(now)
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.at(now)
    }
}

/// Returns an algorithm with which every flow follows `steps` of (us, Mb/s).
fn scripted(steps: &'static [(u64, u64)]) -> AlgorithmConfig {
    scripted_in(u64::MAX, steps)
}

/// Returns the same algorithm with a window of `cwnd` bytes.
fn scripted_in(cwnd: u64, steps: &'static [(u64, u64)]) -> AlgorithmConfig {
    let cwnd = Bytes::new(cwnd);
    plug_in(&Needs::NOTHING, move |flow| Scripted { start: flow.start, cwnd, steps })
}

/// Two flows into one host should have 12.5 Gb/s each. They do from 20 us on, but leave the tolerance at 69.9 us, a
/// hair before the stretch has held for 50 us; at 80 us they are back, 8 % off.
#[test]
fn a_stretch_that_breaks_does_not_count() {
    let steps = &[(0, 25_000), (20, 12_500), (69, 14_000), (80, 11_500)];
    let flows = vec![endless(1, 0, 0), endless(2, 0, 0)];
    let recorder = run(measured(scripted(steps), flows.clone(), 1_000)).0;
    // Both start at once: one change, named by the second.
    assert_eq!(told(&recorder), [(0.0, 1, true, 2, Some(80.0))]);
    // Long enough, and later deviations do not matter.
    let steps = &[(0, 25_000), (20, 12_500), (71, 14_000), (80, 11_500)];
    let recorder = run(measured(scripted(steps), flows.clone(), 1_000)).0;
    assert_eq!(told(&recorder), [(0.0, 1, true, 2, Some(20.0))]);
    // 11 % off is too far; and the end comes before the rates may count as not converged.
    let steps = &[(0, 25_000), (20, 13_900)];
    let recorder = run(measured(scripted(steps), flows.clone(), 199)).0;
    assert_eq!(told(&recorder), [(0.0, 1, true, 2, None)]);
    // A stretch that begins in time may end after the time to give up, 200 us, and one that begins later may not.
    for (start, want) in [(&[(0, 25_000), (200, 12_500)], Some(200.0)), (&[(0, 25_000), (201, 12_500)], None)] {
        let recorder = run(measured(scripted(start), flows.clone(), 1_000)).0;
        assert_eq!(told(&recorder), [(0.0, 1, true, 2, want)]);
    }
}

/// Without control, rates are right exactly if no two flows share a link.
#[test]
fn line_rate_converges_alone_and_not_beside_others() {
    // 1,000 packets from 300 us leave the sender in 335.36 us.
    let flows = vec![
        endless(1, 0, 0),
        endless(2, 3, 100),
        flow(4, 0, 1_000_000, Time::from_us(300)),
        FlowSpec { stop: Time::from_us(1_050), ..endless(5, 3, 1_000) },
    ];
    let recorder = run(measured(algorithm("line-rate"), flows, 2_000)).0;
    let want = [
        (0.0, 0, true, 1, Some(0.0)),
        (100.0, 1, true, 2, Some(0.0)),
        // Shares a link: given up after 200 us, long before it departs.
        (300.0, 2, true, 3, None),
        // Departs with its last byte on the wire, which pauses hold up.
        (recorder.convergence[3].t.as_us_f64(), 2, false, 2, Some(0.0)),
        (1_000.0, 3, true, 3, None),
        (1_050.0, 3, false, 2, Some(0.0)),
    ];
    assert_eq!(told(&recorder), want);
    let departure = recorder.convergence[3].t;
    let fct_at = Time::from_us(300) + recorder.flows[2].fct.expect("done");
    assert!(departure + Time::from_us(2) < fct_at, "it stops competing before its last byte arrives");
}

/// The rate compared is also limited by the window, in bits on the wire over the base RTT of the path: 4 us of delay,
/// and 335.36 and 19.2 ns a link for a packet and its acknowledgment. At 12.5 Gb/s 7,358 bytes fit, 7,021 of them
/// payload.
#[test]
fn windows_count() {
    let flows = vec![endless(1, 0, 0), endless(2, 0, 0)];
    for (cwnd, want) in [(7_021, Some(0.0)), (6_320, Some(0.0)), (6_318, None), (7_722, Some(0.0)), (7_724, None)] {
        let recorder = run(measured(scripted_in(cwnd, &[(0, 25_000)]), flows.clone(), 1_000)).0;
        assert_eq!(told(&recorder), [(0.0, 1, true, 2, want)], "{cwnd}");
    }
}

/// Demands limit both the optimum and the rate that is compared with it: the first flow has its demand, and the second
/// the rest of their link, by its script.
#[test]
fn demands_count() {
    let flows = vec![FlowSpec { demand: Rate::from_gbps(2), ..endless(1, 0, 0) }, endless(2, 0, 0)];
    let recorder = run(measured(scripted(&[(0, 25_000), (30, 23_000)]), flows, 1_000)).0;
    // 25 Gb/s are within 10 % of 23.
    assert_eq!(told(&recorder), [(0.0, 1, true, 2, Some(0.0))]);
    let flows = vec![FlowSpec { demand: Rate::from_gbps(5), ..endless(1, 0, 0) }, endless(2, 0, 0)];
    let recorder = run(measured(scripted(&[(0, 25_000), (30, 20_000)]), flows, 1_000)).0;
    assert_eq!(told(&recorder), [(0.0, 1, true, 2, Some(30.0))]);
}

/// A probe only observes: with it or without it, packets behave the same.
#[test]
fn measuring_changes_nothing() {
    for cc in ["line-rate", "powertcp", "dcqcn"] {
        let flows = (1..6).map(|src| flow(src, 0, 200_000, Time::from_us(u64::from(src)))).collect();
        let watched = measured(algorithm(cc), flows, 1_000);
        let plain = SimConfig { probes: Vec::new(), ..watched.clone() };
        let (watched, plain) = (run(watched), run(plain));
        assert_eq!(watched.0.flows, plain.0.flows, "{cc}");
        let bare = |totals: RunTotals| RunTotals { fingerprint: 0, events: 0, ..totals };
        assert_eq!(bare(watched.1), bare(plain.1), "{cc}");
    }
}

/// Flows that arrive and depart between four hosts, one of PERC's experiments in small.
fn churn(cc: AlgorithmConfig, changes: u32, seed: u64) -> SimConfig {
    let topology = Star { hosts: 4, rate: Rate::from_gbps(100), delay: Time::from_ns(2_900) }.build();
    let churn = Churn { flows: 8, changes, hosts: None, start: Time::ZERO };
    let (flows, changes) = churn.generate(&topology, seed, 0).expect("it fits");
    let mut c = config(topology, cc, flows);
    c.changes = changes;
    c.transport.base_rtt = BaseRttRule::Fixed(Time::from_us(12));
    c.probes.push(ProbeSpec::Convergence { tolerance: 0.1, hold_rtts: 10, give_up_rtts: 60 });
    c
}

/// There is one sample for the start and one for each change, in order; each is taken when the one before is complete.
fn assert_serial(c: &SimConfig, recorder: &Recorder, name: &str) {
    let samples = &recorder.convergence;
    assert_eq!(samples.len(), 1 + c.changes.len(), "{name}");
    assert_eq!((samples[0].t, samples[0].n_flows), (Time::ZERO, 8), "{name}");
    for (sample, change) in samples[1..].iter().zip(&c.changes) {
        let (flow, arrival) = match *change {
            Change::Start(flow) => (flow, true),
            Change::Stop(flow) => (flow, false),
        };
        assert_eq!((sample.flow, sample.arrival), (flow, arrival), "{name}");
        assert_eq!(sample.n_flows, if arrival { 9 } else { 8 }, "{name}");
    }
    let hold = Time::from_us(120);
    for pair in samples.windows(2) {
        match pair[0].time {
            Some(time) => assert_eq!(pair[1].t, pair[0].t + time + hold, "{name}"),
            None => assert!(pair[0].t + Time::from_us(720) <= pair[1].t, "{name}"),
        }
    }
}

#[test]
fn changes_wait_until_rates_have_converged_or_time_is_up() {
    for name in ["line-rate", "ideal", "powertcp", "rcp"] {
        let c = churn(algorithm(name), 12, 1);
        let (recorder, totals) = run(c.clone());
        assert_serial(&c, &recorder, name);
        let last = recorder.convergence.last().expect("samples");
        assert!(last.t + Time::from_us(120) <= totals.end && totals.end <= last.t + Time::from_us(840), "{name}");
        assert_eq!(run(c).0.convergence, recorder.convergence, "{name}");
        if name == "ideal" {
            assert!(recorder.convergence.iter().all(|sample| sample.time == Some(Time::ZERO)));
        }
    }
}

/// Explicit rates settle after every change long before the time is up. (RCP's do not: it raises rates until enough
/// arrives, and NICs on whose links flows wait for each other send less than their flows' rates.)
#[test]
fn explicit_rates_converge() {
    for name in ["perc", "charny"] {
        let c = churn(algorithm(name), 40, 1);
        let recorder = run(c.clone()).0;
        assert_serial(&c, &recorder, name);
        let slowest = recorder.convergence.iter().map(|sample| sample.rtts).reduce(|a, b| Some(a?.max(b?))).flatten();
        assert!(slowest.is_some_and(|rtts| rtts < 20.0), "{name}: {slowest:?}");
    }
}

/// A run with no flow at its start begins with the first change. Changes may start finite flows, whose departures
/// count, and a stop of a flow that is over is skipped.
#[test]
fn changes_may_be_all_there_is() {
    for name in ["line-rate", "ideal"] {
        let by_change = |spec: FlowSpec| FlowSpec { trigger: Trigger::Change, ..spec };
        let flows = vec![by_change(flow(1, 0, 10_000, Time::ZERO)), by_change(endless(2, 0, 0))];
        let mut c = measured(algorithm(name), flows, 10_000);
        c.stop.when_flows_done = true;
        let (first, second) = (FlowId(0), FlowId(1));
        c.changes = vec![Change::Start(first), Change::Stop(first), Change::Start(second), Change::Stop(second)];
        let (recorder, totals) = run(c);
        let want = [(0, true), (1, true)];
        let told: Vec<_> = recorder.convergence.iter().map(|s| (s.flow.0, s.arrival)).collect();
        assert_eq!(told, want, "{name}: a departure that leaves nobody is no change of rates");
        assert!(totals.end < Time::from_us(200), "{name}: {}", totals.end);
        assert_eq!((totals.flows_done, totals.flows_unfinished), (1, 0), "{name}");
    }
}
