//! From a scenario to the files of the ns-3 code: the settings that it has, and a sentence for each that it has not.

use std::fmt::Write as _;

use fairrate_sim::topology::Topology;
use fairrate_sim::{Connection, EcmpHash, FlowSpec, Pfc, SimConfig, Transport, Trigger, WindowRule};
use fairrate_units::{Bytes, Rate, Time};

use super::MODES;
use crate::Overrides;
use crate::scenario::Scenario;

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Each file's name and text, `config.txt` first.
    pub files: Vec<(&'static str, String)>,
    /// Parts of the scenario that the files lack, a sentence each.
    pub left_out: Vec<String>,
}

/// A message and a suggestion.
type Refusal = (String, String);

/// Largest size of a flow, which the ns-3 code keeps in 32 bits.
const LARGEST_FLOW: u64 = u32::MAX as u64;

/// Returns the files of a scenario.
///
/// # Errors
/// A message and a suggestion, if the ns-3 code has no such network, transport, algorithm or traffic.
pub fn export(scenario: &Scenario) -> Result<Exported, (String, String)> {
    let config = scenario.sim_config();
    let (mode, options) = mode_of(config.cc.info().name)?;
    check(config)?;
    let stop = config.stop.at.unwrap_or_else(|| last_start(&config.flows).saturating_add(Time::from_ms(100)));
    let files = vec![
        ("config.txt", settings(scenario, mode, stop)),
        ("topology.txt", topology(&config.topology)),
        ("flow.txt", flows(&config.flows, config.transport.data_class)),
        ("trace.txt", "0\n\n".to_owned()),
    ];
    let mut left_out = left_out(config, options);
    left_out.extend(other_keys(scenario));
    Ok(Exported { files, left_out })
}

/// Returns the number of the algorithm `name` in `CC_MODE`, and the options of PowerTCP's code if it alone has it.
fn mode_of(name: &str) -> Result<(u32, Option<&'static str>), Refusal> {
    match (MODES.iter().find(|(_, cc)| *cc == name), name) {
        (Some(&(mode, _)), _) => Ok((mode, None)),
        (None, "powertcp") => Ok((3, Some("--wien=1 --delayWien=0"))),
        (None, "theta-powertcp") => Ok((3, Some("--wien=1 --delayWien=1"))),
        _ => refuse(
            &format!("the ns-3 code has no `{name}`"),
            "it has dcqcn, hpcc, timely and dctcp, and PowerTCP's has powertcp and theta-powertcp",
        ),
    }
}

/// Checks that the ns-3 code has the stacks, the transport, the kind of network and the starts of flows of `config`.
fn check(config: &SimConfig) -> Result<(), Refusal> {
    if !config.beside.is_empty() {
        return refuse(
            "the ns-3 code has one algorithm a run",
            "remove `cc` and `transport` of the `[[traffic]]` blocks",
        );
    }
    if config.transport.kind != Transport::Rdma {
        return refuse("the ns-3 code has RDMA alone", "write `kind = \"rdma\"` in `[transport]`");
    }
    if config.topology.circuits.is_some() {
        return refuse("the ns-3 code has no circuits", "take another `kind` of network");
    }
    if !config.changes.is_empty() || config.flows.iter().any(|flow| flow.trigger != Trigger::Time) {
        return refuse(
            "flows that wait for others, or for rates to settle, have no place in a list of starts",
            "take `poisson`, `incast` or another kind of traffic whose flows start at their times",
        );
    }
    Ok(())
}

/// Returns a refusal with this `message` and the suggestion `help`.
fn refuse<T>(message: &str, help: &str) -> Result<T, Refusal> {
    Err((message.to_owned(), help.to_owned()))
}

/// Returns a sentence for each part of `config` that the files lack, and first the `options` of PowerTCP's code.
fn left_out(config: &SimConfig, options: Option<&str>) -> Vec<String> {
    let (fabric, topology, flows) = (&config.fabric, &config.topology, &config.flows);
    let parts = [
        (fabric.balance.is_by_packet(), "The choice of paths: the ns-3 code has ECMP."),
        (
            fabric.ecmp != EcmpHash::Murmur3,
            "The hash of ECMP: flows take other paths there (`ecmp = \"murmur3\"` here takes the same).",
        ),
        (!config.faults.is_empty(), "Faults: `LINK_DOWN` and `ERROR_RATE_PER_LINK` of `config.txt` are not set."),
        (!config.hosts.is_empty(), "Hosts that are not ideal: those of the ns-3 code are."),
        (
            !matches!(fabric.pfc, Pfc::Ingress),
            "PFC as it is set here: the ns-3 code has that of ingress ports by Dynamic Thresholds.",
        ),
        (!fabric.classes.is_empty(), "Classes that switches treat apart (`[[class]]`)."),
        (!fabric.buffer.as_u64().is_multiple_of(1 << 20), "The buffer's size: it is rounded up to whole MiB."),
        (
            flows.iter().any(|flow| LARGEST_FLOW < flow.bytes.as_u64()),
            "Sizes of flows above 4 GB, endless ones among them: the ns-3 code keeps 32 bits.",
        ),
        (flows.iter().any(|flow| flow.weight != 1.0), "Weights of flows."),
        (flows.iter().any(|flow| flow.deadline.is_some()), "Deadlines of flows."),
        (flows.iter().any(|flow| flow.demand < Rate::MAX), "Rates at which applications send (`demand`)."),
        (
            flows.iter().any(|flow| flow.stop < Time::MAX || flow.burst.is_some()),
            "Times at which endless flows stop, and their pauses.",
        ),
        (
            flows.iter().any(|flow| flow.connection == Connection::PerPair),
            "Connections that several flows share (`connection`).",
        ),
        (
            matches!(config.transport.window, WindowRule::Fixed(_) | WindowRule::Bdp),
            "The size of the window: the ns-3 code has the bandwidth-delay product of its network.",
        ),
        (
            true,
            "The algorithm's parameters: `config.txt` has those of HPCC's public code, which are the defaults of `profile = \"ns3\"`.",
        ),
        (
            topology.servers.is_some(),
            "The two end points of a GPU: they are two hosts, and scale-up networks are not connected to the others.",
        ),
        (!topology.second_ports.are_none(), "The two ports of a host: they are two hosts."),
        (
            !topology.long_links.are_none(),
            "Paths between groups with one global link: the ns-3 code takes those with the fewest links, which may have two.",
        ),
        (
            config.stop.at.is_none(),
            "The end of the run: `SIMULATOR_STOP_TIME` is 100 ms after the last start, when flows may not be done.",
        ),
    ];
    let algorithm = options.map(|options| {
        format!(
            "The algorithm: `CC_MODE 3` is HPCC; run PowerTCP's code (ns3-datacenter) with `--algorithm=3 {options}`."
        )
    });
    let lacking = parts.into_iter().filter(|(is_lacking, _)| *is_lacking).map(|(_, sentence)| sentence.to_owned());
    algorithm.into_iter().chain(lacking).collect()
}

/// Keys of sections that the files carry, or that another sentence is about.
const SAID: [(&str, &[&str]); 3] = [
    ("links", &[]),
    ("switch", &["buffer", "ecn", "ecmp", "pfc"]),
    ("transport", &["kind", "cc", "mtu", "window", "data_class"]),
];

/// Returns a sentence with all other keys of links, switches and the transport whose values are not those of
/// `profile = "ns3"`, which are the constants of the ns-3 code.
fn other_keys(scenario: &Scenario) -> Option<String> {
    let own = scenario.to_toml();
    let topology = lines_of(&own, "topology").collect::<Vec<_>>().join("\n");
    let cc = scenario.sim_config().cc.info().name;
    let plain = format!(
        "profile = \"ns3\"\nduration = \"1ms\"\n[topology]\n{topology}\n[transport]\ncc = \"{cc}\"\n\
         [[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n"
    );
    let texts = scenario.files().filter_map(|(name, content)| Some((name, std::str::from_utf8(content).ok()?)));
    let texts: Vec<(&str, &str)> = texts.collect();
    let code = Scenario::from_texts(&plain, "ns3.toml", &texts, &Overrides::default()).ok()?.to_toml();
    let differ = |(section, said): (&'static str, &'static [&str])| {
        let code: Vec<&str> = lines_of(&code, section).collect();
        let others = lines_of(&own, section).filter(move |line| !code.contains(line));
        let keys = others.filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
        keys.filter(|key| !said.contains(key)).map(move |key| format!("`{section}.{key}`"))
    };
    let keys: Vec<String> = SAID.into_iter().flat_map(differ).collect();
    let list = keys.join(", ");
    (!keys.is_empty()).then(|| format!("Keys whose values are not those of `profile = \"ns3\"`: {list}."))
}

/// Returns the lines of a section of a resolved scenario, which has a line for each key.
fn lines_of<'a>(resolved: &'a str, section: &'a str) -> impl Iterator<Item = &'a str> {
    let is_head = move |line: &&str| *line == format!("[{section}]");
    resolved.lines().skip_while(move |line| !is_head(line)).skip(1).take_while(|line| !line.starts_with('['))
}

fn last_start(flows: &[FlowSpec]) -> Time {
    flows.iter().map(|flow| flow.start).max().unwrap_or(Time::ZERO)
}

/// Returns a time in seconds with all its nanoseconds.
fn seconds(t: Time) -> String {
    let ns = (t.as_ps() + 500) / 1_000;
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn topology(topology: &Topology) -> String {
    let switches: Vec<usize> =
        (0..topology.nodes.len()).filter(|&i| !topology.is_host(fairrate_sim::NodeId(i as u32))).collect();
    let mut text = format!("{} {} {}\n", topology.nodes.len(), switches.len(), topology.links.len());
    let ids: Vec<String> = switches.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "{}", ids.join(" "));
    for link in &topology.links {
        let delay_ns = link.delay.as_ps() as f64 / 1e3;
        let _ = writeln!(text, "{} {} {}bps {delay_ns}ns 0", link.a.0, link.b.0, link.rate.as_bps());
    }
    text
}

fn flows(flows: &[FlowSpec], class: u8) -> String {
    let mut text = format!("{}\n", flows.len());
    for flow in flows {
        let bytes = flow.bytes.min(Bytes::new(LARGEST_FLOW)).as_u64();
        let class = flow.class.unwrap_or(class);
        let _ = writeln!(text, "{} {} {class} {} {bytes} {}", flow.src.0, flow.dst.0, flow.dport, seconds(flow.start));
    }
    text
}

/// Returns `config.txt`, with the constants of HPCC's public code where the scenario has no say.
fn settings(scenario: &Scenario, mode: u32, stop: Time) -> String {
    let config = scenario.sim_config();
    let mut text = format!(
        "ENABLE_QCN {}\nUSE_DYNAMIC_PFC_THRESHOLD 1\n\nPACKET_PAYLOAD_SIZE {}\n\nTOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\n\
         TRACE_FILE trace.txt\nTRACE_OUTPUT_FILE trace.tr\nFCT_OUTPUT_FILE fct.txt\nPFC_OUTPUT_FILE pfc.txt\n\n\
         SIMULATOR_STOP_TIME {}\n\nCC_MODE {mode}\n",
        u8::from(config.fabric.ecn.is_some()),
        config.transport.mtu.as_u64(),
        seconds(stop),
    );
    text.push_str(
        "ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 900\nEWMA_GAIN 0.00390625\n\
         FAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\n\n\
         ERROR_RATE_PER_LINK 0\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\n\n",
    );
    let (has_window, varies) = match config.transport.window {
        // DCQCN and TIMELY have no window in the public code's own runs.
        WindowRule::Algorithm => (!matches!(mode, 1 | 7), true),
        WindowRule::RateScaled | WindowRule::Bdp => (true, true),
        WindowRule::None => (false, true),
        WindowRule::Fixed(_) => (true, false),
    };
    let _ = write!(text, "HAS_WIN {}\nGLOBAL_T 1\nVAR_WIN {}\n", u8::from(has_window), u8::from(varies));
    text.push_str(
        "FAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 5\nINT_MULTI 1\nMULTI_RATE 0\nSAMPLE_FEEDBACK 0\nPINT_LOG_BASE 1.05\n\
         PINT_PROB 1.0\n\nRATE_BOUND 1\n\n",
    );
    let high = u8::from(config.transport.ack_class < config.transport.data_class);
    let _ = write!(text, "ACK_HIGH_PRIO {high}\n\nLINK_DOWN 0 0 0\n\nENABLE_TRACE 0\n\n{}", maps(scenario));
    let buffer = config.fabric.buffer.as_u64().div_ceil(1 << 20);
    let _ = write!(text, "BUFFER_SIZE {buffer}\nQLEN_MON_FILE qlen.txt\nQLEN_MON_START 0\nQLEN_MON_END 0\n");
    text
}

/// Returns ECN's thresholds for each rate of a link.
fn maps(scenario: &Scenario) -> String {
    let config = scenario.sim_config();
    let rates: std::collections::BTreeSet<u64> = config.topology.links.iter().map(|link| link.rate.as_bps()).collect();
    let of = |name: &str, value: &dyn Fn(u64) -> String| {
        let pairs: Vec<String> = rates.iter().map(|&rate| format!("{rate} {}", value(rate))).collect();
        format!("{name} {} {}\n", rates.len(), pairs.join(" "))
    };
    let kilobytes = |bytes: f64| format!("{}", (bytes / 1e3).round());
    let ecn = config.fabric.ecn.as_ref();
    let at = |rate: u64| ecn.map(|ecn| ecn.thresholds(Rate::from_bps(rate)));
    of("KMAX_MAP", &|rate| at(rate).map_or("0".into(), |(_, kmax)| kilobytes(kmax)))
        + &of("KMIN_MAP", &|rate| at(rate).map_or("0".into(), |(kmin, _)| kilobytes(kmin)))
        + &of("PMAX_MAP", &|_| ecn.map_or("0".into(), |ecn| format!("{}", ecn.pmax)))
}
