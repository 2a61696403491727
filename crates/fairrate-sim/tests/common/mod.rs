//! Configurations for tests: the paper profile's fabric and transport, without the scenario schema.
#![allow(dead_code)]

use fairrate_control::{AlgorithmConfig, Parameters, Profile, RawValue};
use fairrate_sim::topology::Topology;
use fairrate_sim::{
    BaseRttRule, ClockRule, ConvergenceSample, EcmpHash, EcnConfig, FabricConfig, FlowOutcome, FlowSpec, Headroom,
    MarkAt, MarkDraws, NodeId, PfcEvent, PortSample, ProbeSpec, QueueConfig, RateSample, Recovery, RunTotals,
    SimConfig, Simulation, Sink, StopRule, TieRule, Transport, TransportConfig, Trigger, WindowRule,
};
use fairrate_units::{Bytes, Rate, Time};

/// Keeps everything a run tells.
#[derive(Default)]
pub struct Recorder {
    pub flows: Vec<FlowOutcome>,
    pub ports: Vec<PortSample>,
    pub rates: Vec<RateSample>,
    pub pfc: Vec<PfcEvent>,
    pub convergence: Vec<ConvergenceSample>,
}

impl Sink for Recorder {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.flows.push(*outcome);
    }
    fn port(&mut self, sample: &PortSample) {
        self.ports.push(*sample);
    }
    fn rate(&mut self, sample: &RateSample) {
        self.rates.push(*sample);
    }
    fn pfc(&mut self, event: &PfcEvent) {
        self.pfc.push(*event);
    }
    fn convergence(&mut self, sample: &ConvergenceSample) {
        self.convergence.push(*sample);
    }
}

/// The defaults of an algorithm in the paper's form.
pub fn algorithm(name: &str) -> AlgorithmConfig {
    AlgorithmConfig::by_name(name, Profile::Paper).expect("the algorithm is registered")
}

/// The same with parameters set.
pub fn algorithm_with(name: &str, params: &[(&str, RawValue<'_>)]) -> AlgorithmConfig {
    let mut config = algorithm(name);
    for (key, value) in params {
        config.set(key, *value).expect("the parameter exists");
    }
    config
}

/// A lossless fabric of 4 MiB switches with per-packet acknowledgments in the data class.
pub fn config(topology: Topology, cc: AlgorithmConfig, flows: Vec<FlowSpec>) -> SimConfig {
    let ecn = cc.needs().ecn.then_some(EcnConfig {
        kmin: Bytes::new(100_000),
        kmax: Bytes::new(400_000),
        pmax: 0.2,
        per_rate: Some(Rate::from_gbps(25)),
        at: MarkAt::Enqueue,
        draws: MarkDraws::PerPort,
    });
    SimConfig {
        topology,
        fabric: FabricConfig {
            buffer: Bytes::new(4 << 20),
            ingress_alpha: Some(0.125),
            egress_alpha: None,
            pfc: true,
            headroom: Headroom::Auto,
            xon_offset: Bytes::new(2_496),
            xon_floor: Bytes::new(1_248),
            pfc_frame: Bytes::new(64),
            ecn,
            queue: QueueConfig::FIFO,
            clock: ClockRule::Picoseconds,
            ecmp: EcmpHash::Mix,
            ties: TieRule::Entity,
        },
        transport: TransportConfig {
            kind: Transport::Rdma,
            mtu: Bytes::new(1_000),
            header: Bytes::new(48),
            ack: Bytes::new(60),
            data_overhead: None,
            ack_overhead: None,
            cnp: Bytes::new(64),
            data_class: 3,
            ack_class: 3,
            control_class: 1,
            reaction_delay: Time::ZERO,
            recovery: Recovery::GoBackN,
            rto: Some(Time::from_ms(4)),
            nack_interval: Time::from_us(500),
            window: WindowRule::Algorithm,
            base_rtt: BaseRttRule::Exact,
        },
        cc,
        flows,
        changes: Vec::new(),
        faults: Vec::new(),
        allocator: None,
        probes: Vec::new(),
        stop: StopRule { at: None, when_flows_done: true },
        seed: 1,
    }
}

/// A flow.
pub fn flow(src: u32, dst: u32, bytes: u64, start: Time) -> FlowSpec {
    FlowSpec {
        src: NodeId(src),
        dst: NodeId(dst),
        bytes: Bytes::new(bytes),
        start,
        trigger: Trigger::Time,
        stop: Time::MAX,
        sport: 10_000,
        dport: 100,
        class: None,
        weight: 1.0,
        demand: Rate::MAX,
        group: 0,
    }
}

/// Samples a port.
pub fn probe(config: &mut SimConfig, from: u32, to: u32, every: Time) {
    let port = config.topology.port(NodeId(from), NodeId(to)).expect("the nodes are neighbours");
    config.probes.push(ProbeSpec::Ports { ports: vec![port], every });
}

/// Runs to the end.
pub fn run(config: SimConfig) -> (Recorder, RunTotals) {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(config);
    simulation.run(&mut recorder).expect("the run does not stall");
    recorder.flows.extend(simulation.unfinished());
    recorder.flows.sort_by_key(|f| f.flow);
    (recorder, simulation.totals())
}
