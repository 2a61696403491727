//! `[allocator]`: the central allocator of rates, for algorithms that have one.

use fairrate_control::{AlgorithmConfig, Profile};
use fairrate_sim::topology::Topology;
use fairrate_sim::{
    AllocatorConfig, EcnEcho, ExternalFlow, LossDetection, MarkReduction, MptcpConfig, NodeId, TcpConfig, Transport,
    TransportConfig,
};
use fairrate_units::{Bytes, Rate, Time};

use super::names::{Names, NodeName};
use super::transport::check_class;
use crate::error::Report;
use crate::reader::{OrWord, Section};

/// Largest number of intermediaries.
const MAX_INTERMEDIARIES: u32 = 10_000;

/// The values of the section, before its nodes are found.
pub(super) struct Allocator {
    rate: Rate,
    delay: Time,
    host_delay: Time,
    n_intermediaries: u32,
    intermediary_rate: Rate,
    external: Vec<External>,
    config: AllocatorConfig,
}

struct External {
    src: NodeName,
    dst: NodeName,
    weight: f64,
    rate: Rate,
}

/// Reads the section. Returns `None` if the algorithm has no allocator: then the section has no effect.
pub(super) fn read(
    root: &mut Section<'_>,
    transport: &TransportConfig,
    cc: &AlgorithmConfig,
    n_blocks: usize,
) -> Option<Allocator> {
    let needs = cc.needs().feedback.allocator;
    if !needs && !root.has("allocator") {
        root.node("allocator");
        return None;
    }
    let mut s = root.child("allocator", "`[allocator]`");
    let allocator = Allocator {
        // Flowtune section 6.2: 40 Gb/s to each spine; delays are those of the other links by default.
        rate: s.get("rate", Rate::from_gbps(40)).value,
        delay: s.get("delay", Time::from_us(1)).value,
        host_delay: s.get("host_delay", Time::from_us(1)).value,
        n_intermediaries: s.get("intermediaries", 0).value,
        intermediary_rate: s.get("intermediary_rate", Rate::from_gbps(10)).value,
        external: read_external(&mut s),
        config: read_config(&mut s, transport.data_class, n_blocks),
    };
    check(&s, &allocator);
    let out = s.finish();
    root.out.tables.push(("allocator".into(), out));
    if needs {
        check_transport(root, transport, cc);
    }
    needs.then_some(allocator)
}

fn read_config(s: &mut Section<'_>, data_class: u8, n_blocks: usize) -> AllocatorConfig {
    let tcp = TcpConfig {
        // Section 6.2.
        rto_min: s.get("rto_min", Time::from_us(20)).value,
        rto_max: s.get("rto_max", Time::from_us(30)).value,
        clock_granularity: Time::from_us(1),
        loss_detection: LossDetection::Rack,
        tail_loss_probe: false,
        delayed_ack: None,
        handshake: false,
        // The control connections wait for messages most of the time.
        idle_restart: false,
        prr: true,
        mark_reduction: MarkReduction::Rfc9937,
        min_window: 0,
        receive_window: u64::MAX,
        ecn_echo: EcnEcho::Accurate,
        multipath: MptcpConfig::SINGLE,
    };
    AllocatorConfig {
        host: NodeId(0),
        intermediaries: Vec::new(),
        // Sections 6.2 and 6.4.
        interval: s.get("interval", Time::from_us(10)).value,
        gamma: s.get("gamma", 0.4).value,
        threshold: s.get("threshold", 0.01).value,
        // "Every few tens of microseconds" (section 2) means some traffic for each server; with these values it stays
        // below a thousandth of 10 Gb/s.
        lifetime: s.get("lifetime", Time::from_us(200)).value,
        sign_of_life: s.get("sign_of_life", Time::from_us(100)).value,
        flowlet_gap: s.get("flowlet_gap", Time::ZERO).value,
        tcp,
        cc: AlgorithmConfig::by_name("newreno", Profile::Paper).expect("`newreno` is in the table"),
        class: read_class(s, data_class),
        // The smallest Ethernet frame with preamble and gap.
        min_packet: s.get("min_packet", Bytes::new(84)).value,
        outages: read_outages(s),
        external: Vec::new(),
        external_groups: read_groups(s, n_blocks),
    }
}

/// Reads the class, by default the data's. A wrong class of the data is reported where it is read.
fn read_class(s: &mut Section<'_>, data_class: u8) -> u8 {
    let class = s.get("class", data_class).value;
    if s.has("class") {
        check_class(s, "class", class);
    }
    class
}

/// Reads `[[allocator.outage]]`: pairs of start and end.
fn read_outages(s: &mut Section<'_>) -> Vec<(Time, Time)> {
    let (mut outages, mut out) = (Vec::new(), Vec::new());
    for mut o in s.children("outage") {
        let down = o.require::<Time>("down_at", "\"10ms\"").value;
        let up = match o.value_or::<Time>("up_at", &["never"], OrWord::Word(0)).value {
            OrWord::Value(up) => up,
            OrWord::Word(_) => Time::MAX,
        };
        let before = outages.last().map_or(Time::ZERO, |&(_, up): &(Time, Time)| up);
        if up <= down {
            let message = format!("the allocator is to be dead from {down} until {up}");
            o.problem_at("scenario::conflict", "up_at", message, "let `up_at` be after `down_at`");
        } else if down < before {
            let message = format!("the allocator dies at {down}, but has been dead until {before}");
            o.problem_at("scenario::conflict", "down_at", message, "write outages in order, one after the other");
        }
        outages.push((down, up));
        out.push(o.finish());
    }
    if !out.is_empty() {
        s.out.arrays.push(("outage".into(), out));
    }
    outages
}

/// Reads `[[allocator.external]]`.
fn read_external(s: &mut Section<'_>) -> Vec<External> {
    let (mut flows, mut out) = (Vec::new(), Vec::new());
    for mut e in s.children("external") {
        let mut node = |key: &str, example: &str| {
            let Some(node) = e.node(key) else {
                e.missing(key, example);
                return None;
            };
            let name = NodeName::read(key, node, e.report);
            e.out.push(key, name.write());
            Some(name)
        };
        let (src, dst) = (node("src", "\"h0\""), node("dst", "\"h1\""));
        let weight = e.get("weight", 1.0);
        if !(1e-6..=1e6).contains(&weight.value) {
            let message = format!("`weight = {}` is out of range", weight.value);
            e.problem_at("scenario::out_of_range", "weight", message, "write a number from 1e-6 to 1e6");
        }
        let rate = match e.value_or::<Rate>("rate", &["unlimited"], OrWord::Word(0)).value {
            OrWord::Value(rate) => rate,
            OrWord::Word(_) => Rate::MAX,
        };
        if let (Some(src), Some(dst)) = (src, dst) {
            flows.push(External { src, dst, weight: weight.value, rate });
        }
        out.push(e.finish());
    }
    if !out.is_empty() {
        s.out.arrays.push(("external".into(), out));
    }
    flows
}

/// Reads `external_traffic = [1]`: numbers of traffic blocks.
fn read_groups(s: &mut Section<'_>, n_blocks: usize) -> Vec<u32> {
    let nodes = s.items("external_traffic").unwrap_or_default();
    let groups: Vec<u32> = nodes.iter().map(|node| s.read_node("external_traffic", node)).collect();
    for group in &groups {
        if n_blocks <= *group as usize {
            let message = format!("there is no traffic block {group}");
            let help = format!("blocks of `[[traffic]]` count from 0 to {}", n_blocks.saturating_sub(1));
            s.problem_at("scenario::unknown_name", "external_traffic", message, help);
        }
    }
    let list: Vec<String> = groups.iter().map(u32::to_string).collect();
    s.out.push("external_traffic", format!("[{}]", list.join(", ")));
    groups
}

fn check(s: &Section<'_>, allocator: &Allocator) {
    let Allocator { config: c, .. } = allocator;
    let range = |key: &str, is_fine: bool, message: String, help: &str| {
        if !is_fine {
            s.problem_at("scenario::out_of_range", key, message, help);
        }
    };
    range("interval", Time::ZERO < c.interval, "iterations without time between them".into(), "write `\"10us\"`");
    let gamma_is_fine = 0.0 < c.gamma && c.gamma < 2.0;
    range("gamma", gamma_is_fine, format!("NED does not converge with `gamma = {}`", c.gamma), "write 0.2 to 1.5");
    let threshold_is_fine = (0.0..=0.5).contains(&c.threshold);
    range("threshold", threshold_is_fine, format!("`threshold = {}`", c.threshold), "write a number from 0 to 0.5");
    range("rate", Rate::ZERO < allocator.rate, "links without rate".into(), "write `rate = \"40Gbps\"`");
    let few = allocator.n_intermediaries <= MAX_INTERMEDIARIES;
    range("intermediaries", few, format!("{} intermediaries", allocator.n_intermediaries), "write a smaller number");
    let min_is_fine = c.min_packet.as_u64() <= 1_000;
    range("min_packet", min_is_fine, format!("`min_packet` of {}", c.min_packet), "write `min_packet = \"84B\"`");
    let conflict = |key: &str, message: String, help: &str| s.problem_at("scenario::conflict", key, message, help);
    if c.tcp.rto_min == Time::ZERO || c.tcp.rto_max < c.tcp.rto_min {
        let message = format!("`rto_min` of {} and `rto_max` of {}", c.tcp.rto_min, c.tcp.rto_max);
        conflict("rto_min", message, "let `rto_min` be above zero and at most `rto_max`");
    }
    if c.lifetime <= c.sign_of_life || c.sign_of_life == Time::ZERO {
        let message = format!("rates hold for {} and are confirmed every {}", c.lifetime, c.sign_of_life);
        let help = "let `lifetime` be some times `sign_of_life`, which is above zero";
        conflict(if s.has("lifetime") { "lifetime" } else { "sign_of_life" }, message, help);
    } else if Time::ZERO < c.interval && c.lifetime <= longest_silence(c) {
        let message =
            format!("rates hold for {} and are confirmed at iterations, every {}", c.lifetime, longest_silence(c));
        let key = if s.has("interval") { "interval" } else { "lifetime" };
        conflict(key, message, "let `lifetime` be some times `interval` and `sign_of_life`");
    }
}

/// Returns the longest time between messages to a server that has flowlets: signs of life, which iterations send.
fn longest_silence(c: &AllocatorConfig) -> Time {
    let n_iterations = c.sign_of_life.as_ps().div_ceil(c.interval.as_ps());
    Time::from_ps(c.interval.as_ps().saturating_mul(n_iterations))
}

/// Checks that hosts use TCP over a single path.
fn check_transport(root: &Section<'_>, transport: &TransportConfig, cc: &AlgorithmConfig) {
    let name = cc.info().name;
    let problem = |message: String, help: &str| {
        root.report.problem("scenario::conflict", root.site_of("transport"), message, "in here", help);
    };
    match transport.kind {
        Transport::Rdma | Transport::Uet { .. } => {
            problem(format!("`{name}` is built on TCP"), "set `kind = \"tcp\"` in `[transport]`");
        }
        Transport::Tcp(tcp) if 1 < tcp.multipath.subflows => {
            problem(format!("`{name}` has one path a flow"), "set `subflows = 1` in `[transport.tcp]`");
        }
        Transport::Tcp(_) => {}
    }
}

/// Attaches the allocator's hosts to the network; returns its configuration.
pub(super) fn attach(
    allocator: Option<Allocator>,
    topology: &mut Topology,
    report: &Report,
) -> Option<AllocatorConfig> {
    let a = allocator?;
    let host = topology.attach_allocator(a.rate, a.delay, a.host_delay);
    let tors = topology.tors();
    let attach = |i: u32| {
        let tor = tors[i as usize % tors.len()];
        topology.attach_host(&format!("intermediary{i}"), tor, a.intermediary_rate, a.host_delay)
    };
    let intermediaries = if tors.is_empty() { Vec::new() } else { (0..a.n_intermediaries).map(attach).collect() };
    let names = Names::new(topology);
    let flow = |e: &External| ExternalFlow {
        src: names.host(&e.src, report),
        dst: names.host(&e.dst, report),
        weight: e.weight,
        rate: e.rate,
    };
    let external = a.external.iter().map(flow).collect();
    Some(AllocatorConfig { host, intermediaries, external, ..a.config })
}
