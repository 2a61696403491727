//! Several transports and algorithms in one run.

use crate::common::{Recorder, TCP, algorithm, config, draws, flow, four_spines, run};
use fairrate_control::{ALGORITHMS, AlgorithmConfig, Needs, PortScope, Queueing};
use fairrate_sim::topology::{Star, Topology};
use fairrate_sim::{FlowSpec, NonEct, Pfc, SimConfig, Simulation, Stack, Switching, Transport, TransportConfig};
use fairrate_units::{Bytes, Rate, Time};

const UET: Transport = Transport::Uet { ack_every: Bytes::new(16_384) };

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build()
}

/// Returns 40 flows of up to 200 KB between 16 hosts, in order of start.
fn some_flows(seed: u64) -> Vec<FlowSpec> {
    let mut draws = draws(seed);
    let mut flows: Vec<FlowSpec> = (0..40)
        .map(|i| {
            let src = draws.below(16) as u32;
            let dst = (src + 1 + draws.below(15) as u32) % 16;
            let start = Time::from_ns(1_000 + draws.below(50_000));
            FlowSpec { sport: 10_000 + i, ..flow(src, dst, 1 + draws.below(200_000), start) }
        })
        .collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

/// Gives every second flow the stack that `beside` makes of the run's own.
fn halved(mut c: SimConfig, beside: impl FnOnce(&TransportConfig) -> Stack) -> SimConfig {
    c.beside = vec![beside(&c.transport)];
    for flow in c.flows.iter_mut().skip(1).step_by(2) {
        flow.stack = 1;
    }
    c
}

/// Returns `true` if an algorithm can be in a run with others, over the transports of this test.
fn can_share(needs: &Needs) -> bool {
    needs.feedback.oracle.is_none() && !needs.feedback.allocator && needs.network.circuits.is_none()
}

/// Returns the transport that an algorithm is made for.
fn transport_for(usual: &TransportConfig, cc: &AlgorithmConfig) -> TransportConfig {
    const OVER_TCP: [&str; 5] = ["newreno", "cubic", "bbr", "dctcp", "pfabric"];
    let kind = match cc.info().name {
        _ if cc.needs().feedback.uet => UET,
        name if OVER_TCP.contains(&name) => Transport::Tcp(TCP),
        _ => Transport::Rdma,
    };
    TransportConfig { kind, ..usual.clone() }
}

/// A stack beside that is the same as the run's own changes nothing.
#[test]
fn two_equal_stacks_are_as_one() {
    let mut n_seen = 0;
    for info in ALGORITHMS {
        let cc = algorithm(info.name);
        let needs = cc.needs();
        // Two sets of agents, of physical queues or of receivers' credit do not fit into one network.
        let has_one_only = needs.network.ports != PortScope::None
            || needs.network.queueing == Queueing::Own
            || needs.feedback.grants.is_some()
            || needs.feedback.credit.is_some();
        if !can_share(&needs) || has_one_only {
            continue;
        }
        let mut c = config(four_spines(4), cc.clone(), some_flows(1));
        c.transport = transport_for(&c.transport, &cc);
        let one = run(c.clone()).1;
        let two = run(halved(c, |transport| Stack { transport: transport.clone(), cc })).1;
        assert_eq!(one, two, "{}", info.name);
        n_seen += 1;
    }
    assert!(20 <= n_seen, "{n_seen}");
}

/// On hosts of its own, the flow of each algorithm goes as in a run with that algorithm alone: it has its own headers,
/// base round-trip time, pacing and timeouts.
#[test]
fn flows_that_share_nothing_go_as_in_runs_of_their_own() {
    let usual = config(star(2), algorithm("line-rate"), Vec::new()).transport;
    // A port runs the agents of one algorithm, receivers give credit by one set of rules, and ports stamp one kind of
    // telemetry.
    let left_out = ["dcqcn-pi", "pacc", "qcn", "bfc", "rcp", "xcp", "perc", "charny", "eqds", "ndp", "pfabric"];
    let ccs: Vec<AlgorithmConfig> = ALGORITHMS
        .iter()
        .map(|info| algorithm(info.name))
        .filter(|cc| can_share(&cc.needs()) && !left_out.contains(&cc.info().name))
        .collect();
    let flow = |at: u32| FlowSpec { stack: at as u8, ..flow(2 * at, 2 * at + 1, 400_000, Time::from_us(1)) };
    let n = ccs.len() as u32;
    let stacks: Vec<Stack> =
        ccs.iter().map(|cc| Stack { transport: transport_for(&usual, cc), cc: cc.clone() }).collect();
    let mut all = config(star(2 * n), ccs[0].clone(), (0..n).map(flow).collect());
    // Marks by a threshold that no lone flow reaches.
    all.fabric.ecn = config(star(2), algorithm("dctcp"), Vec::new()).fabric.ecn;
    all.transport = stacks[0].transport.clone();
    all.beside = stacks[1..].to_vec();
    let together = run(all.clone()).0.flows;
    for (at, Stack { transport, cc }) in (0..).zip(&stacks) {
        // All flows are there, so that random draws are the same, and all have this stack.
        let flows = (0..n).map(|at| FlowSpec { stack: 0, ..flow(at) }).collect();
        let alone =
            SimConfig { flows, beside: Vec::new(), transport: transport.clone(), cc: cc.clone(), ..all.clone() };
        let alone = &run(alone).0.flows[at as usize];
        assert_eq!(&together[at as usize], alone, "{}", cc.info().name);
    }
}

fn mixed(non_ect: NonEct) -> SimConfig {
    let mut c = config(four_spines(4), algorithm("dctcp"), some_flows(3));
    c.transport.kind = Transport::Tcp(TCP);
    let ecn = c.fabric.ecn.as_mut().expect("DCTCP goes by marks");
    (ecn.kmin, ecn.kmax, ecn.non_ect) = (Bytes::new(30_000), Bytes::new(30_000), non_ect);
    (ecn.kmin_per, ecn.kmax_per) = (None, None);
    c.fabric.pfc = Pfc::Off;
    let beside = |name| {
        let cc = algorithm(name);
        Stack { transport: transport_for(&c.transport, &cc), cc }
    };
    c.beside = ["cubic", "hpcc", "swift", "nscc"].map(beside).to_vec();
    (0..).zip(&mut c.flows).for_each(|(at, flow)| flow.stack = (at % 5) as u8);
    c
}

/// TCP and RDMA beside each other, with five algorithms, give the same bits on any number of threads, by spans and by
/// events.
#[test]
fn threads_and_spans_change_nothing() {
    for non_ect in [NonEct::Mark, NonEct::Ignore, NonEct::Drop] {
        let outcome = |threads, switching| {
            let mut simulation = Simulation::with_switching(mixed(non_ect), threads, switching);
            let mut recorder = Recorder::default();
            simulation.run(&mut recorder).expect("no stall");
            recorder.flows.sort_by_key(|outcome| outcome.flow);
            (recorder.flows, simulation.totals())
        };
        let first = outcome(1, Switching::Events);
        for (threads, switching) in
            [(1, Switching::Spans), (2, Switching::Events), (2, Switching::Spans), (3, Switching::Fitting)]
        {
            assert!(outcome(threads, switching) == first, "{non_ect:?}: {threads} threads, {switching:?}");
        }
    }
}

/// A sender without ECN beside one with it: marked like it, passed over, or dropped in its place.
#[test]
fn packets_that_cannot_be_marked_are_treated_as_asked() {
    let treated = |non_ect| {
        let (flows, totals) = {
            let (recorder, totals) = run(mixed(non_ect));
            (recorder.flows, totals)
        };
        let cubic = flows.iter().filter(|outcome| outcome.flow.0 % 5 == 1);
        (totals.counts.ecn_marks, totals.drops.total(), cubic.map(|outcome| outcome.retransmitted_bytes).sum::<u64>())
    };
    let [(marks, drops, again), passed, dropped] = [NonEct::Mark, NonEct::Ignore, NonEct::Drop].map(treated);
    assert_eq!((drops, again), (0, 0));
    assert!(passed.0 < marks, "{} of {marks} marks", passed.0);
    assert_eq!((passed.1, passed.2), (0, 0));
    assert!(0 < dropped.1 && 0 < dropped.2, "{dropped:?}");
}

/// Agents at ports see packets of their own algorithm alone: RoCC's switches tell its own flows their rate, and no
/// other.
#[test]
fn agents_see_their_own_packets() {
    let mut c = config(star(4), algorithm("rocc"), (0..2).map(|src| flow(src, 3, 500_000, Time::from_us(1))).collect());
    let beside = Stack { transport: c.transport.clone(), cc: algorithm("line-rate") };
    c.flows.push(FlowSpec { stack: 1, ..flow(2, 3, 500_000, Time::from_us(1)) });
    c.beside = vec![beside];
    let (recorder, totals) = run(c.clone());
    assert!(recorder.flows.iter().all(|outcome| outcome.fct.is_some()));
    assert!(0 < totals.counts.notices);
    // The same three flows, all RoCC's, get notices for the third too.
    let all = run(SimConfig {
        beside: Vec::new(),
        flows: c.flows.iter().map(|f| FlowSpec { stack: 0, ..f.clone() }).collect(),
        ..c
    })
    .1;
    assert!(totals.counts.notices < all.counts.notices, "{} and {}", totals.counts.notices, all.counts.notices);
}
