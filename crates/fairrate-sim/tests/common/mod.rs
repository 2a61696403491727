//! Configurations for tests: the paper profile's fabric and transport, without the scenario schema.
#![allow(dead_code)]

use std::sync::Arc;

use fairrate_allocate::{Flow, Link, LinkId, Network, max_min};
use fairrate_control::{
    Ack, Algorithm, AlgorithmConfig, AlgorithmInfo, AlgorithmSpec, Allowance, Controller, CustomAlgorithm, FlowContext,
    Loss, Needs, NoPort, Param, Parameters, Profile, RawValue, SetParamError,
};
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::topology::{LeafSpine, Topology};
use fairrate_sim::{
    AdmissionConfig, AllocatorConfig, Balance, BaseRttRule, ClockRule, EcmpHash, EcnConfig, EcnEcho, FabricConfig,
    FlowSpec, Headroom, LossDetection, MarkAt, MarkBy, MarkDraws, MarkReduction, MptcpConfig, NodeId, NonEct, Pfc,
    PortId, ProbeSpec, QueueConfig, Recovery, RunTotals, Shared, SimConfig, Simulation, StopRule, TcpConfig, TieRule,
    Transport, TransportConfig, WindowRule,
};
use fairrate_units::{Bytes, Rate, Time};

pub use fairrate_sim::Recorder;

/// Returns an algorithm with its defaults in the paper's form.
pub fn algorithm(name: &str) -> AlgorithmConfig {
    AlgorithmConfig::by_name(name, Profile::Paper).expect("the algorithm is registered")
}

/// Returns an algorithm in the paper's form with parameters set.
pub fn algorithm_with(name: &str, params: &[(&str, RawValue<'_>)]) -> AlgorithmConfig {
    let mut config = algorithm(name);
    for (key, value) in params {
        config.set(key, *value).expect("the parameter exists");
    }
    config
}

type Build = dyn Fn(&FlowContext) -> Box<dyn Controller + Send> + Send + Sync;

/// An algorithm whose controllers are made by a function.
#[derive(Clone)]
struct PlugIn {
    needs: Needs,
    build: Arc<Build>,
}

impl Parameters for PlugIn {
    fn params(&self) -> Vec<Param> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: RawValue<'_>) -> Result<(), SetParamError> {
        Err(SetParamError::UnknownName)
    }
}

impl AlgorithmSpec for PlugIn {
    type Controller = Algorithm;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        self.needs
    }
    fn build(&self, flow: &FlowContext) -> Algorithm {
        Algorithm::Custom((self.build)(flow))
    }
}

/// Returns an algorithm with `needs` whose controllers `build` makes.
pub fn plug_in<C: Controller + Send + 'static>(
    needs: &Needs,
    build: impl Fn(&FlowContext) -> C + Send + Sync + 'static,
) -> AlgorithmConfig {
    let info = AlgorithmInfo { name: "plug-in", title: "plug-in", paper: "none", idea: "none" };
    let build = Arc::new(move |flow: &FlowContext| -> Box<dyn Controller + Send> { Box::new(build(flow)) });
    AlgorithmConfig::Custom(CustomAlgorithm::new(info, PlugIn { needs: *needs, build }))
}

/// Returns an algorithm whose allowance for a flow never changes.
pub fn steady(allowance: impl Fn(&FlowContext) -> Allowance + Send + Sync + 'static) -> AlgorithmConfig {
    steady_with(&Needs::NOTHING, allowance)
}

/// Returns an algorithm with `needs` whose allowance for a flow never changes.
pub fn steady_with(
    needs: &Needs,
    allowance: impl Fn(&FlowContext) -> Allowance + Send + Sync + 'static,
) -> AlgorithmConfig {
    struct Steady(Allowance);
    impl Controller for Steady {
        fn on_start(&mut self, _: Time) -> Allowance {
            self.0
        }
        fn on_ack(&mut self, _: &Ack<'_>) -> Allowance {
            self.0
        }
        fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
            self.0
        }
        fn on_cnp(&mut self, _: Time) -> Allowance {
            self.0
        }
        fn on_timer(&mut self, _: Time) -> Allowance {
            self.0
        }
    }
    plug_in(needs, move |flow| Steady(allowance(flow)))
}

/// TCP with timeouts from 200 us to 10 ms and defaults for all else.
pub const TCP: TcpConfig = TcpConfig {
    rto_min: Time::from_us(200),
    rto_max: Time::from_ms(10),
    clock_granularity: Time::from_us(1),
    loss_detection: LossDetection::Rack,
    tail_loss_probe: true,
    delayed_ack: None,
    handshake: false,
    idle_restart: true,
    prr: true,
    mark_reduction: MarkReduction::Rfc9937,
    min_window: 0,
    receive_window: u64::MAX,
    ecn_echo: EcnEcho::Accurate,
    multipath: MptcpConfig::SINGLE,
};

/// Returns Flowtune's allocator on a host, with the paper's settings.
pub fn allocator(host: NodeId) -> AllocatorConfig {
    let us = Time::from_us;
    AllocatorConfig {
        host,
        intermediaries: Vec::new(),
        interval: us(10),
        gamma: 0.4,
        threshold: 0.01,
        lifetime: us(200),
        sign_of_life: us(100),
        flowlet_gap: Time::ZERO,
        tcp: TcpConfig { rto_min: us(20), rto_max: us(30), tail_loss_probe: false, idle_restart: false, ..TCP },
        cc: algorithm("newreno"),
        class: 3,
        min_packet: Bytes::new(84),
        outages: Vec::new(),
        external: Vec::new(),
        external_groups: Vec::new(),
    }
}

/// Returns a run on a lossless fabric of 4 MiB switches with per-packet acknowledgments in the data class.
pub fn config(topology: Topology, cc: AlgorithmConfig, flows: Vec<FlowSpec>) -> SimConfig {
    SimConfig {
        beside: Vec::new(),
        topology,
        fabric: fabric(cc.needs().network.ecn.then_some(ECN)),
        transport: TRANSPORT,
        cc,
        flows: flows.into(),
        changes: Vec::new(),
        dependencies: Shared::default(),
        tasks: Vec::new(),
        collectives: Vec::new(),
        jobs: Vec::new(),
        faults: Vec::new(),
        hosts: Vec::new(),
        allocator: None,
        snapshots: Vec::new(),
        probes: Vec::new(),
        stop: StopRule { at: None, when_flows_done: true },
        seed: 1,
    }
}

/// ECN marks between 100 kB and 400 kB at 25 Gb/s, in proportion to the rate of a port.
const ECN: EcnConfig = EcnConfig {
    phantom: None,
    kmin: Bytes::new(100_000),
    kmax: Bytes::new(400_000),
    pmax: 0.2,
    kmin_per: Some(Rate::from_gbps(25)),
    kmax_per: Some(Rate::from_gbps(25)),
    average: None,
    at: MarkAt::Enqueue,
    draws: MarkDraws::PerPort,
    to_hosts: true,
    non_ect: NonEct::Mark,
    by: MarkBy::Class,
};

/// Returns a lossless fabric of 4 MiB switches with these marks.
fn fabric(ecn: Option<EcnConfig>) -> FabricConfig {
    FabricConfig {
        buffer: Bytes::new(4 << 20),
        buffer_per: None,
        ingress_alpha: Some(0.125),
        egress_alpha: None,
        pfc: Pfc::Ingress,
        headroom: Headroom::Auto,
        xon_offset: Bytes::new(2_496),
        xon_floor: Bytes::new(1_248),
        pfc_frame: Bytes::new(64),
        frame_overhead: Bytes::ZERO,
        ecn,
        queue: QueueConfig::FIFO,
        clock: ClockRule::Picoseconds,
        balance: Balance::Ecmp,
        reroute: None,
        admission: AdmissionConfig::default(),
        ecmp: EcmpHash::Mix,
        ties: TieRule::Entity,
        classes: std::collections::BTreeMap::new(),
    }
}

/// RDMA with go-back-N and an acknowledgment for every packet.
const TRANSPORT: TransportConfig = TransportConfig {
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
    rto_low: None,
    ack_every: None,
    reorder_window: Time::ZERO,
    entropy: None,
    window: WindowRule::Algorithm,
    window_overshoot: false,
    base_rtt: BaseRttRule::Exact,
};

/// Returns a flow.
pub fn flow(src: u32, dst: u32, bytes: u64, start: Time) -> FlowSpec {
    FlowSpec { sport: 10_000, dport: 100, ..FlowSpec::new(NodeId(src), NodeId(dst), Bytes::new(bytes), start) }
}

/// Adds a probe of a port.
pub fn probe(config: &mut SimConfig, from: u32, to: u32, every: Time) {
    let port = config.topology.port(NodeId(from), NodeId(to)).expect("the nodes are neighbours");
    config.probes.push(ProbeSpec::Ports { ports: vec![port], every });
}

/// Number of spines of [`four_spines`].
pub const SPINES: u32 = 4;

/// Returns leaves of four hosts with as many spines; all links have 25 Gb/s and 1 us.
pub fn four_spines(leaves: u32) -> Topology {
    let (rate, us) = (Rate::from_gbps(25), Time::from_us(1));
    LeafSpine {
        leaves,
        spines: SPINES,
        hosts_per_leaf: 4,
        host_rate: rate,
        host_delay: us,
        uplink_rate: rate,
        uplink_delay: us,
    }
    .build()
}

/// Returns the ports of the first leaf that lead to spines.
pub fn uplinks(topology: &Topology) -> Vec<PortId> {
    let leaf = topology.node("tor0").expect("the first leaf");
    let ports = (0..topology.n_ports() as u32).map(PortId).filter(|&port| topology.from(port) == leaf);
    ports.filter(|&port| !topology.is_host(topology.to(port))).collect()
}

/// Returns the packets that each uplink of the first of [`four_spines`]' leaves has sent after 10 ms.
pub fn sent_by_uplinks(mut c: SimConfig) -> Vec<u64> {
    c.probes = vec![ProbeSpec::Ports { ports: uplinks(&c.topology), every: Time::from_ms(10) }];
    c.stop.at = Some(Time::from_ms(10));
    c.stop.when_flows_done = false;
    let (told, totals) = run(c);
    assert_eq!(totals.drops.total(), 0);
    told.ports.iter().rev().take(SPINES as usize).map(|sample| sample.tx_bytes / 1_048).collect()
}

/// Runs to the end; returns the recorded results and the totals.
pub fn run(config: SimConfig) -> (Recorder, RunTotals) {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(config);
    simulation.run(&mut recorder).expect("the run does not stall");
    recorder.flows.extend(simulation.unfinished());
    recorder.flows.sort_by_key(|f| f.flow);
    (recorder, simulation.totals())
}

/// Returns the ports that each flow's data passes.
pub fn paths(c: &SimConfig) -> Vec<Vec<u32>> {
    let routes = Routes::of(c);
    let path = |f: &FlowSpec| {
        let key = FlowKey { src: f.src, dst: f.dst, sport: f.sport, dport: f.dport };
        let mut ports = Vec::new();
        routes.path(c.fabric.ecmp, c.seed, key, &mut ports);
        ports.iter().map(|port| port.0).collect()
    };
    c.flows.iter().map(path).collect()
}

/// Returns the rate of a port's link.
pub fn port_rate(c: &SimConfig, port: u32) -> Rate {
    c.topology.links[port as usize / 2].rate
}

/// Returns the max-min rates in Gb/s of all flows, without demands, if `taken` bit/s of each port are not available to
/// them.
pub fn max_min_gbps(c: &SimConfig, paths: &[Vec<u32>], taken: &[f64]) -> Vec<f64> {
    let link = |(port, taken): (u32, &f64)| {
        let capacity_bps = port_rate(c, port).as_bps_f64() - taken;
        Link { capacity_bps, ..Link::new("", Rate::ZERO) }
    };
    let links = (0..).zip(taken).map(link).collect();
    let flows = paths.iter().map(|path| Flow::new("", path.iter().map(|&p| LinkId(p)).collect::<Vec<_>>())).collect();
    let rates = max_min(&Network { links, flows }).expect("the network is sound").rates_bps;
    rates.into_iter().map(|bps| bps / 1e9).collect()
}

/// Returns the random numbers of a test.
pub fn draws(seed: u64) -> Stream {
    Stream::new(seed, 0, Purpose::Test)
}

/// Returns `n` endless flows between hosts 0 to `hosts` that start within 50 us, in order of start.
pub fn random_flows(hosts: u64, n: u32, draws: &mut Stream) -> Vec<FlowSpec> {
    let mut flows: Vec<_> = (0..n)
        .map(|i| {
            let src = draws.below(hosts);
            let dst = (src + 1 + draws.below(hosts - 1)) % hosts;
            let start = Time::from_ns(draws.below(50_000));
            FlowSpec { sport: 10_000 + i as u16, ..flow(src as u32, dst as u32, u64::MAX, start) }
        })
        .collect();
    flows.sort_by_key(|f| f.start);
    flows
}
