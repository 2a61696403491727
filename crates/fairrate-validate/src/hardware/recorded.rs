//! Recorded simulations: all calls of an algorithm's ports in a scenario, with the answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fairrate_control::{
    Actions, AlgorithmInfo, AlgorithmSpec, CustomAlgorithm, FlowContext, MadeFor, Needs, Notice, Param, Parameters,
    PortAgent, PortContext, PortPacket, PortPacketKind, PortStep, PortView, RawValue, Registry, SetParamError,
};
use fairrate_scenario::{Overrides, Scenario};

use crate::to_end::run_to_end;

/// A call of a port's agent.
#[derive(Clone, Debug)]
pub enum Call {
    /// A packet joined the queue, with its header before and after the call.
    Enqueue { flow: u32, kind: PortPacketKind, before: Vec<f64>, after: Vec<f64> },
    /// The timer expired, with the bytes in the queue and the notices sent.
    Timer { queue_bytes: u64, notices: Vec<Notice> },
}

/// The calls of all ports, each with the number of its port.
type Log = Arc<Mutex<Vec<(u32, Call)>>>;

/// The calls of one port.
pub struct Recording {
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The port, as its agent was told.
    pub port: PortContext,
}

/// Runs the scenario in `file` with `spec` as its algorithm. Returns the calls of the port with the most of them.
///
/// # Errors
/// If the scenario cannot be read or run.
pub fn record<S>(file: &Path, spec: S) -> Result<Recording, String>
where
    S: AlgorithmSpec<Controller: Send + 'static, Port: Send + 'static> + Send + Sync + 'static,
{
    let (log, ports) = (Log::default(), Arc::default());
    let recorded = Recorded { spec, log: Arc::clone(&log), ports: Arc::clone(&ports) };
    let info = AlgorithmInfo { name: "recorded", title: "recorded", paper: "none", idea: "records its ports" };
    let registry = Registry::new().with_algorithm(CustomAlgorithm::new(info, recorded)).map_err(|e| e.to_string())?;
    let overrides = Overrides { cc: Some("recorded".to_owned()), ..Overrides::default() };
    let scenario = Scenario::with_algorithms(&registry).load(file, &overrides).map_err(|e| e.to_string())?;
    run_to_end(scenario.into_sim_config(), &mut ())?;
    let calls = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    let mut counts = BTreeMap::new();
    for (port, _) in &calls {
        *counts.entry(*port).or_insert(0_usize) += 1;
    }
    let busiest = counts.iter().max_by_key(|&(port, n)| (n, std::cmp::Reverse(port))).map(|(port, _)| *port);
    let busiest = busiest.ok_or_else(|| format!("{}: no port was called", file.display()))?;
    let ports = ports.lock().unwrap_or_else(PoisonError::into_inner);
    let port = *ports.get(&busiest).expect("an agent was made for each port that is called");
    let calls = calls.into_iter().filter(|(port, _)| *port == busiest).map(|(_, call)| call).collect();
    Ok(Recording { calls, port })
}

/// An algorithm whose ports are recorded.
#[derive(Clone)]
struct Recorded<S> {
    spec: S,
    log: Log,
    ports: Arc<Mutex<BTreeMap<u32, PortContext>>>,
}

impl<S: Parameters> Parameters for Recorded<S> {
    fn params(&self) -> Vec<Param> {
        self.spec.params()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        self.spec.set(name, value)
    }
}

impl<S: AlgorithmSpec> AlgorithmSpec for Recorded<S> {
    type Controller = S::Controller;
    type Port = RecordedPort<S::Port>;
    fn needs(&self) -> Needs {
        self.spec.needs()
    }
    fn made_for(&self) -> &'static [MadeFor] {
        self.spec.made_for()
    }
    fn build(&self, flow: &FlowContext) -> S::Controller {
        self.spec.build(flow)
    }
    fn build_port(&self, port: &PortContext) -> Option<Self::Port> {
        let agent = self.spec.build_port(port)?;
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(port.port, *port);
        Some(RecordedPort { agent, port: port.port, log: Arc::clone(&self.log) })
    }
}

/// A port whose calls are recorded.
struct RecordedPort<P> {
    agent: P,
    port: u32,
    log: Log,
}

impl<P> RecordedPort<P> {
    fn add(&self, call: Call) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push((self.port, call));
    }
}

impl<P: PortAgent> PortAgent for RecordedPort<P> {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        self.agent.watches(kind, step)
    }
    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        let before = packet.header.to_vec();
        self.agent.on_enqueue(view, packet, actions);
        let after = packet.header.to_vec();
        self.add(Call::Enqueue { flow: packet.flow, kind: packet.kind, before, after });
    }
    fn on_dequeue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        self.agent.on_dequeue(view, packet, actions);
    }
    fn assign(&self, class: u8, flow: u32) -> Option<u16> {
        self.agent.assign(class, flow)
    }
    fn on_flow_pause(&mut self, flow: u32, pause: bool) {
        self.agent.on_flow_pause(flow, pause);
    }
    fn on_rate(&mut self, rate: fairrate_units::Rate) {
        self.agent.on_rate(rate);
    }
    fn on_timer(&mut self, view: &PortView, actions: &mut Actions) {
        let n_before = actions.notices.len();
        let was_due = self.agent.timer();
        self.agent.on_timer(view, actions);
        if was_due <= view.now {
            let notices = actions.notices[n_before..].to_vec();
            self.add(Call::Timer { queue_bytes: view.queue_bytes, notices });
        }
    }
    fn timer(&self) -> fairrate_units::Time {
        self.agent.timer()
    }
}
