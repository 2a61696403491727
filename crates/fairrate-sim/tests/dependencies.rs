//! Flows that wait for others: when they start, in every way to simulate, and with every transport.

use crate::common::{algorithm, config, flow, run};
use fairrate_sim::topology::Star;
use fairrate_sim::{
    Activity, Dependency, DependencyError, FlowId, FlowSpec, Milestone, NodeId, Recorder, SimConfig, Simulation,
    Switching, TaskId, TaskSpec, Transport, Trigger, check_dependencies,
};
use fairrate_units::{Bytes, Rate, Time};

/// Serialisation of a full packet of 1,048 B and of an acknowledgment of 60 B at 100 Gb/s, in picoseconds.
const FULL: u64 = 83_840;
const ACK: u64 = 4_800;
/// A message of ten packets on a star with links of 1 us: ten packets behind each other, the last one once more, and
/// two delays.
const MESSAGE: u64 = 11 * FULL + 2_000_000;

/// Returns a star of 100 Gb/s and 1 us at line rate, with an acknowledgment a message.
fn star(hosts: u32, flows: Vec<FlowSpec>, dependencies: Vec<Dependency>) -> SimConfig {
    let topology = Star { hosts, rate: Rate::from_gbps(100), delay: Time::from_us(1) }.build();
    let mut c = config(topology, algorithm("line-rate"), flows);
    c.transport.ack_every = Some(Bytes::MAX);
    c.dependencies = dependencies.into();
    c
}

/// Returns a flow of 10,000 bytes that waits for others.
fn waits(src: u32, dst: u32) -> FlowSpec {
    FlowSpec { trigger: Trigger::Dependencies, ..flow(src, dst, 10_000, Time::ZERO) }
}

fn after(flow: u32, before: u32, on: Milestone) -> Dependency {
    Dependency { waiter: FlowId(flow).into(), before: FlowId(before).into(), on, delay: Time::ZERO }
}

/// Returns start and arrival of each flow in picoseconds.
fn times(c: SimConfig) -> Vec<(u64, u64)> {
    let (told, _) = run(c);
    let mut flows = told.flows;
    flows.sort_by_key(|outcome| outcome.flow);
    let arrival = |outcome: &fairrate_sim::FlowOutcome| outcome.start + outcome.fct.expect("the flow is done");
    flows.iter().map(|outcome| (outcome.start.as_ps(), arrival(outcome).as_ps())).collect()
}

/// A chain 0 -> 1 -> 2 -> 3: each message starts when the one before has arrived, behind its acknowledgment.
#[test]
fn a_flow_starts_when_another_one_has_arrived_at_its_sender() {
    let flows = vec![flow(0, 1, 10_000, Time::ZERO), waits(1, 2), waits(2, 3)];
    let late = Dependency { delay: Time::from_us(5), ..after(2, 1, Milestone::Arrived) };
    let chain = star(4, flows, vec![after(1, 0, Milestone::Arrived), late]);
    let second = MESSAGE;
    let third = 2 * MESSAGE + ACK + 5_000_000;
    let want = vec![(0, MESSAGE), (second, 2 * MESSAGE + ACK), (third, third + MESSAGE)];
    assert_eq!(times(chain), want, "a pause of 5 us is longer than the acknowledgment takes");
}

/// Ten packets are handed over one after the other, so the last one's transmission begins after nine. Its
/// acknowledgment comes back after a message, two transmissions of 60 B and two delays.
#[test]
fn a_flow_starts_when_one_of_its_sender_has_been_sent_or_acknowledged() {
    let flows = vec![flow(0, 1, 10_000, Time::ZERO), waits(0, 2), waits(0, 3)];
    let c = star(4, flows, vec![after(1, 0, Milestone::Sent), after(2, 0, Milestone::Acknowledged)]);
    let times = times(c);
    assert_eq!(times[1], (9 * FULL, 10 * FULL + MESSAGE), "without a gap");
    assert_eq!(times[2].0, MESSAGE + 2 * ACK + 2_000_000);
}

#[test]
fn a_flow_starts_after_the_last_of_several_and_not_before_its_time() {
    let flows = |start| {
        let late = FlowSpec { start, ..waits(0, 3) };
        let mut flows = vec![flow(1, 0, 10_000, Time::ZERO), flow(2, 0, 10_000, Time::from_us(3)), late];
        flows.sort_by_key(|flow| flow.start);
        flows
    };
    let both = vec![after(2, 0, Milestone::Arrived), after(2, 1, Milestone::Arrived)];
    let last = 3_000_000 + MESSAGE;
    assert_eq!(times(star(4, flows(Time::from_us(3)), both.clone()))[2].0, last);
    assert_eq!(times(star(4, flows(Time::from_us(9)), both))[2].0, 9_000_000);
}

/// Twenty rounds on a ring of eight hosts, where each message waits for the one before and for one received.
fn rounds(cc: &str) -> SimConfig {
    const HOSTS: u32 = 8;
    let (mut flows, mut dependencies) = (Vec::new(), Vec::new());
    for round in 0..20 {
        for host in 0..HOSTS {
            let (src, dst) = (host, (host + 1 + round % 3) % HOSTS);
            let bytes = 3_000 + u64::from(host * 700 + round * 1_300);
            let id = flows.len() as u32;
            let sport = 10_000 + id as u16;
            if round == 0 {
                flows.push(FlowSpec { sport, ..flow(src, dst, bytes, Time::ZERO) });
                continue;
            }
            flows.push(FlowSpec { sport, trigger: Trigger::Dependencies, ..flow(src, dst, bytes, Time::ZERO) });
            let delay = Time::from_ns(u64::from(round % 2) * 100);
            let from = (host + HOSTS - 1 - (round - 1) % 3) % HOSTS;
            let before = (round - 1) * HOSTS;
            dependencies.push(Dependency { delay, ..after(id, before + from, Milestone::Arrived) });
            dependencies.push(after(
                id,
                before + host,
                if round % 4 == 0 { Milestone::Acknowledged } else { Milestone::Sent },
            ));
        }
    }
    let mut c = config(crate::common::four_spines(2), algorithm(cc), flows);
    c.dependencies = dependencies.into();
    c
}

fn outcome_of(c: &SimConfig, threads: usize, switching: Switching) -> (Recorder, u64) {
    let mut told = Recorder::default();
    let mut simulation = Simulation::with_switching(c.clone(), threads, switching);
    simulation.run(&mut told).expect("it ends");
    (told, simulation.totals().fingerprint)
}

#[test]
fn results_are_the_same_bits_by_events_and_spans_and_on_any_number_of_threads() {
    for cc in ["line-rate", "dctcp", "hpcc"] {
        let c = rounds(cc);
        let (events, fingerprint) = outcome_of(&c, 1, Switching::Events);
        assert_eq!(events.flows.len(), 160, "every flow is told of");
        for (threads, switching) in [(1, Switching::Spans), (2, Switching::Events), (2, Switching::Spans)] {
            let (other, print) = outcome_of(&c, threads, switching);
            assert_eq!((&other.flows, print), (&events.flows, fingerprint), "{cc}, {threads}, {switching:?}");
        }
        let mode = Simulation::with_switching(c, 1, Switching::Spans).mode();
        assert_eq!((mode.switches.len(), mode.hosts.len()), (0, 0), "dependencies forbid no spans: {mode:?}");
    }
}

#[test]
fn every_transport_and_the_fluid_know_dependencies() {
    for cc in ["newreno", "homa", "ideal", "rocc"] {
        let mut c = rounds(cc);
        if cc == "newreno" {
            c.transport.kind = Transport::Tcp(crate::common::TCP);
        }
        let (told, _) = outcome_of(&c, 1, Switching::Fitting);
        let mut flows = told.flows;
        assert_eq!(flows.len(), 160, "{cc}");
        flows.sort_by_key(|outcome| outcome.flow);
        for dependency in &c.dependencies {
            let [before, flow] =
                [dependency.before, dependency.waiter].map(|id| &flows[id.flow().expect("a flow").index()]);
            let arrived = before.start + before.fct.expect("done");
            let met = match dependency.on {
                Milestone::Arrived => arrived <= flow.start,
                Milestone::Sent => before.start < flow.start,
                Milestone::Acknowledged => before.start + before.fct_ack.expect("done") <= flow.start,
            };
            assert!(met, "{cc}: {dependency:?}");
        }
    }
}

/// Returns the dependency of one flow or task on another one.
fn then(before: impl Into<Activity>, waiter: impl Into<Activity>) -> Dependency {
    let (waiter, before) = (waiter.into(), before.into());
    Dependency { waiter, before, on: Milestone::Arrived, delay: Time::ZERO }
}

/// Host 1 computes 5 us after a message and then sends one to host 2, which has computed for 20 us by then. The last
/// task of host 2 takes no time and ends with the later of both.
#[test]
fn tasks_start_and_end_between_messages() {
    let task = |host, us| TaskSpec { host: NodeId(host), start: Time::ZERO, duration: Time::from_us(us) };
    let flows = vec![flow(0, 1, 10_000, Time::ZERO), waits(1, 2)];
    let [first, second] = [FlowId(0), FlowId(1)];
    let [work, other, last] = [TaskId(0), TaskId(1), TaskId(2)];
    let dependencies = vec![then(first, work), then(work, second), then(second, last), then(other, last)];
    for (other_us, cc) in [(20, "line-rate"), (2, "line-rate"), (20, "ideal"), (2, "ideal")] {
        let mut c = star(3, flows.clone(), dependencies.clone());
        c.cc = algorithm(cc);
        c.tasks = vec![task(1, 5), task(2, other_us), task(2, 0)];
        let (told, totals) = run(c.clone());
        let mut tasks: Vec<[u64; 3]> =
            told.tasks.iter().map(|t| [u64::from(t.task.0), t.start.as_ps(), t.end.as_ps()]).collect();
        tasks.sort_unstable();
        let us = Time::from_us(1).as_ps();
        // A message that takes longer than 5 us leaves its acknowledgment time to be gone.
        let arrival = 2 * MESSAGE + 5 * us;
        let end = arrival.max(other_us * us);
        assert_eq!(tasks, [[0, MESSAGE, MESSAGE + 5 * us], [1, 0, other_us * us], [2, end, end]], "{cc}, {other_us}");
        assert_eq!(totals.flows_done, 2);
    }
    let mut alone = star(3, Vec::new(), Vec::new());
    alone.tasks = vec![task(1, 5)];
    assert_eq!(run(alone).0.tasks.len(), 1, "a run without flows ends with its tasks");
}

/// A message of ten fluid packets takes as long as one of packets.
#[test]
fn fluids_start_where_packets_do() {
    let flows = vec![flow(0, 1, 10_000, Time::ZERO), waits(1, 2), waits(2, 3)];
    let late = Dependency { delay: Time::from_us(5), ..after(2, 1, Milestone::Arrived) };
    let dependencies = vec![after(1, 0, Milestone::Arrived), late];
    let chain = SimConfig { cc: algorithm("ideal"), ..star(4, flows, dependencies) };
    let third = 2 * MESSAGE + 5_000_000;
    assert_eq!(times(chain), [(0, MESSAGE), (MESSAGE, 2 * MESSAGE), (third, third + MESSAGE)]);
}

#[test]
fn a_run_that_is_stuck_says_which_flow_waits_for_which() {
    let flows = vec![flow(0, 1, 10_000, Time::ZERO), waits(1, 2)];
    let mut c = star(3, flows, vec![after(1, 0, Milestone::Arrived)]);
    (c.fabric.pfc, c.fabric.buffer) = (fairrate_sim::Pfc::Off, Bytes::new(500));
    c.transport.rto = None;
    let error = Simulation::new(c).run(&mut Recorder::default()).expect_err("every packet is dropped").to_string();
    assert!(error.ends_with("flow 1 (h1 to h2) waits until flow 0 (h0 to h1) has arrived"), "{error}");
}

#[test]
fn what_cannot_be_met_is_refused_with_both_flows() {
    let topology = Star { hosts: 4, rate: Rate::from_gbps(100), delay: Time::from_us(1) }.build();
    let refused = |flows: &[FlowSpec], dependencies: &[Dependency]| -> DependencyError {
        check_dependencies(flows, &[], dependencies, &topology).expect_err("it is refused")
    };
    let flows = [flow(0, 1, 10_000, Time::ZERO), waits(0, 2), waits(2, 3)];
    let error = refused(&flows, &[after(1, 0, Milestone::Arrived)]);
    assert_eq!(error.message, "flow 1 starts at `h0` and would wait for flow 0, which arrives at `h1`");
    assert_eq!((error.waiter, error.before), (FlowId(1).into(), FlowId(0).into()));
    let error = refused(&flows, &[after(2, 0, Milestone::Sent)]);
    assert_eq!(error.message, "flow 2 starts at `h2` and would wait for flow 0, which is sent by `h0`");
    let cycle = [waits(0, 1), waits(1, 2), waits(2, 0), waits(2, 3)];
    let ring = [(1, 0), (2, 1), (0, 2), (3, 1)].map(|(flow, before)| after(flow, before, Milestone::Arrived));
    let error = refused(&cycle, &ring);
    let said = "flow 0 waits for flow 2, which waits for flow 1, which waits for flow 0: a cycle";
    assert_eq!(error.message, said);
    let endless = [FlowSpec { bytes: Bytes::MAX, ..flow(0, 1, 1, Time::ZERO) }, waits(1, 2)];
    let error = refused(&endless, &[after(1, 0, Milestone::Arrived)]);
    assert_eq!(error.message, "flow 1 waits for flow 0, which is endless");
    assert_eq!(refused(&flows, &[after(2, 2, Milestone::Sent)]).message, "flow 2 waits for itself");
}
