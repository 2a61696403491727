//! Determinism: the same seed gives the same bits; and detection of hangs.

use crate::common::{Recorder, TCP, algorithm, config, flow, run};
use fairrate_control::{
    ALGORITHMS, Algorithm, AlgorithmConfig, AlgorithmSpec, CoupledAlgorithm, CoupledSpec, CustomAlgorithm, FlowContext,
    Needs, Param, Parameters, PortAlgorithm, PortContext, RawValue, SetParamError,
};
use fairrate_sim::topology::{LeafSpine, Star, Topology};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{
    FaultConfig, Flap, FlowSpec, MptcpConfig, Pfc, PortId, Recovery, Scheduler, SimError, Simulation, StopRule,
    SubflowPaths, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

fn leaf_spine() -> Topology {
    LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 8,
        host_rate: Rate::from_gbps(25),
        host_delay: Time::from_us(1),
        uplink_rate: Rate::from_gbps(50),
        uplink_delay: Time::from_us(1),
    }
    .build()
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
    for cc in ALGORITHMS {
        let fingerprint = |seed| {
            let topology = leaf_spine();
            let permutation = Permutation { bytes: Bytes::new(300_000), start: Time::from_us(1), hosts: None };
            let flows = permutation.generate(&topology, seed, 0).expect("enough hosts");
            let mut c = config(topology, algorithm(cc.name), flows);
            c.seed = seed;
            run(c).1
        };
        assert_eq!(fingerprint(1), fingerprint(1), "{}", cc.name);
        assert_ne!(fingerprint(1).fingerprint, fingerprint(2).fingerprint, "{}", cc.name);
    }
}

/// A run in slices of any size gives the same result as a run at once.
#[test]
fn slices_do_not_change_a_run() {
    let make = || {
        let flows = (1..9).map(|src| flow(src, 0, 200_000, Time::from_us(u64::from(src)))).collect();
        Simulation::new(config(leaf_spine(), algorithm("hpcc"), flows))
    };
    let mut whole = make();
    whole.run(&mut Recorder::default()).expect("no stall");
    let (mut sliced, mut recorder) = (make(), Recorder::default());
    while !sliced.advance(7, &mut recorder).expect("no stall").finished {}
    assert_eq!(whole.totals(), sliced.totals());
}

/// Losses without a retransmission timer leave a flow waiting forever: the run reports it and stops.
#[test]
fn a_hang_is_an_error_that_names_what_is_stuck() {
    let topology = Star { hosts: 9, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    let flows = (1..9).map(|src| flow(src, 0, 50_000, Time::from_us(1))).collect();
    let mut c = config(topology, algorithm("line-rate"), flows);
    c.fabric.pfc = Pfc::Off;
    c.fabric.buffer = Bytes::new(20_000);
    c.transport.rto = None;
    c.transport.recovery = Recovery::GoBackN;
    let mut simulation = Simulation::new(c);
    let error = simulation.run(&mut Recorder::default()).expect_err("tail losses are never repaired");
    let SimError::Stalled { unfinished, stuck, .. } = &error;
    assert!(*unfinished > 0);
    assert!(stuck.contains("bytes acknowledged and its window is closed"), "{stuck}");
    assert!(error.to_string().starts_with("no progress since t="), "{error}");
    assert_eq!(simulation.unfinished().len() as u64, simulation.totals().flows_unfinished);
}

/// The same beside an endless flow, whose progress hides the others' from the totals: without the last packet of a flow
/// the run would go on forever.
#[test]
fn a_finite_flow_that_hangs_beside_an_endless_one_is_named_at_the_same_time_on_all_threads() {
    let errors = [1, 2, 3].map(|threads| {
        let endless = FlowSpec { demand: Rate::from_gbps(1), ..flow(9, 10, u64::MAX, Time::ZERO) };
        let incast = (1..9).map(|src| flow(src, 0, 50_000, Time::from_us(1)));
        let flows = std::iter::once(endless).chain(incast).collect();
        let mut c = config(leaf_spine(), algorithm("line-rate"), flows);
        c.fabric.pfc = Pfc::Off;
        c.fabric.buffer = Bytes::new(20_000);
        c.transport.rto = None;
        c.transport.recovery = Recovery::GoBackN;
        let mut simulation = Simulation::with_threads(c, threads);
        simulation.run(&mut Recorder::default()).expect_err("tail losses are never repaired")
    });
    let SimError::Stalled { since, unfinished, stuck } = &errors[0];
    assert!(*since < Time::from_ms(100) && 0 < *unfinished && *unfinished < 9, "{}", errors[0]);
    assert!(stuck.contains("of 50000 bytes acknowledged") && !stuck.contains("h10"), "{stuck}");
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0], errors[2]);
}

/// A flow waits for 600 ms for its link to come up, longer than a stall takes, and an endless flow goes on: it is not
/// stuck.
#[test]
fn a_planned_outage_beside_an_endless_flow_is_no_hang() {
    let topology = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    let link = (0..topology.n_ports() as u32).map(PortId).filter(|&port| topology.from(port).0 == 1).collect();
    let endless = FlowSpec { demand: Rate::from_mbps(100), ..flow(2, 3, u64::MAX, Time::ZERO) };
    let flows = vec![endless, flow(1, 0, 50_000, Time::from_us(10))];
    let mut c = config(topology, algorithm("line-rate"), flows);
    c.transport.rto = Some(Time::from_ms(1));
    let flap = Some(Flap { down_at: Time::from_us(5), up_at: Time::from_ms(600), period: None });
    c.faults = vec![FaultConfig { ports: link, flap, ..FaultConfig::NONE }];
    let (recorder, totals) = run(c);
    assert_eq!(recorder.flows.iter().filter(|flow| flow.delivered_bytes == 50_000).count(), 1);
    assert!(Time::from_ms(600) < totals.end && totals.end < Time::from_ms(610), "{}", totals.end);
}

/// A run with an end time ends there, even with unfinished flows, and its bytes add up (`totals` asserts it).
#[test]
fn a_run_ends_at_its_end_time() {
    let mut c = config(leaf_spine(), algorithm("powertcp"), vec![flow(0, 9, u64::MAX, Time::ZERO)]);
    c.stop = StopRule { at: Some(Time::from_us(777)), when_flows_done: false };
    let (_, totals) = run(c);
    assert_eq!(totals.end, Time::from_us(777));
    assert!(totals.in_flight_bytes > 0);
}

/// A built-in algorithm, passed as an external one.
#[derive(Clone)]
struct BuiltIn(AlgorithmConfig);

impl Parameters for BuiltIn {
    fn params(&self) -> Vec<Param> {
        self.0.params()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        self.0.set(name, value)
    }
}

impl AlgorithmSpec for BuiltIn {
    type Controller = Algorithm;
    type Port = PortAlgorithm;
    fn needs(&self) -> Needs {
        self.0.needs()
    }
    fn build(&self, flow: &FlowContext) -> Algorithm {
        self.0.build(flow)
    }
    fn build_port(&self, port: &PortContext) -> Option<PortAlgorithm> {
        self.0.build_port(port)
    }
}

impl CoupledSpec for BuiltIn {
    type Connection = CoupledAlgorithm;
    fn build_connection(&self, subflows: &[FlowContext]) -> CoupledAlgorithm {
        self.0.build_connection(subflows).expect("only coupled ones are asked")
    }
}

/// An external algorithm, behind a pointer, gives the same result as the built-in one.
#[test]
fn an_own_algorithm_is_as_good_as_an_entry_of_the_table() {
    let totals = |cc| {
        let flows = (1..9).map(|src| flow(src, 0, 200_000, Time::from_us(u64::from(src)))).collect();
        run(config(leaf_spine(), cc, flows)).1
    };
    for info in ALGORITHMS {
        let inner = algorithm(info.name);
        let own = AlgorithmConfig::Custom(CustomAlgorithm::new(*info, BuiltIn(inner.clone())));
        assert_eq!(totals(own), totals(inner), "{}", info.name);
    }
}

/// The same holds for an algorithm that couples subflows.
#[test]
fn an_own_coupled_algorithm_is_as_good_as_an_entry_of_the_table() {
    let totals = |cc| {
        let flows = (1..5).map(|src| flow(src, 0, 500_000, Time::from_us(u64::from(src)))).collect();
        let mut c = config(leaf_spine(), cc, flows);
        let multipath = MptcpConfig { subflows: 2, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Disjoint };
        c.transport.kind = Transport::Tcp(TcpConfig { multipath, ..TCP });
        run(c).1
    };
    for info in ["ratemp", "lia", "olia", "balia", "xmp", "amp", "mpcc"].map(|name| *algorithm(name).info()) {
        let inner = algorithm(info.name);
        let own = AlgorithmConfig::Custom(CustomAlgorithm::coupled(info, BuiltIn(inner.clone())));
        assert_eq!(totals(own), totals(inner), "{}", info.name);
    }
}
