//! `[[traffic]]`: who sends what to whom, and when. Each block is one generator of the simulator.

mod generate;

use fairrate_control::AlgorithmConfig;
use fairrate_sim::topology::TOPOLOGIES;
use fairrate_sim::workload::{
    AllToAll, Churn, ClosedLoop, Deadlines, Incast, IncastQueries, Peers, Permutation, Poisson, Responders, Sampling,
    Senders, SizeDistribution, Sleep, Spread, Staggered, WORKLOADS,
};
use fairrate_sim::{Burst, Transport};
use fairrate_units::{Bytes, Rate, Time};

use super::files::{Files, Text, file_problem};
use super::names::NodeName;
use super::transport::{check_class, checked_subflows};
use crate::error::Report;
use crate::reader::{Anchor, OrWord, Section, list};
use crate::scalar::quote;
use crate::tree::{Node, Value};

pub(super) use generate::build;

/// A block that was read.
pub(super) struct Block<'a> {
    anchor: Anchor<'a>,
    kind: Kind,
    class: Option<u8>,
    weight: f64,
    demand: Rate,
    deadlines: Option<Deadlines>,
    subflows: Option<u8>,
    burst: Option<Burst>,
}

/// Senders as the file has them.
enum SenderNames {
    Hosts(Vec<NodeName>),
    Count { n: u32, from: Peers },
}

/// A generator, with nodes still by name.
enum Kind {
    Poisson { poisson: Poisson, hosts: Option<Vec<NodeName>>, receivers: Option<Vec<NodeName>> },
    ClosedLoop { loops: ClosedLoop, senders: Option<Vec<NodeName>>, receivers: Option<Vec<NodeName>> },
    Incast { incast: Incast, receiver: NodeName, senders: SenderNames },
    IncastQueries(IncastQueries),
    Staggered { staggered: Staggered, receiver: NodeName, senders: SenderNames },
    Permutation(Permutation),
    AllToAll(AllToAll),
    Churn { churn: Churn, hosts: Option<Vec<NodeName>> },
    List { file: Text, ignore_columns: Vec<String> },
}

const KINDS: &[&str] =
    &["poisson", "closed-loop", "incast", "incast-queries", "staggered", "permutation", "all-to-all", "churn", "list"];

const PEERS: &[(&str, Peers)] = &[
    ("other-rack", Peers::OtherRack),
    ("other-host", Peers::OtherHost),
    ("same-rack", Peers::SameRack),
    ("from-own-rack-on", Peers::FromOwnRackOn),
];

/// Reads all blocks. `end` is where arrivals stop unless the block says otherwise.
pub(super) fn read<'a>(
    root: &mut Section<'a>,
    files: &Files<'_>,
    end: Option<Time>,
    shape: &str,
    transport: Transport,
) -> Vec<Block<'a>> {
    let given = root.has("traffic");
    let sections = root.children("traffic");
    if sections.is_empty() && !given {
        let help = "add `[[traffic]]` and below it for instance `kind = \"poisson\"`, `sizes = \"websearch\"` and `load = 0.6`";
        root.report.problem(
            "scenario::missing_key",
            root.anchor.site,
            "the scenario needs `[[traffic]]`",
            "none in here",
            help,
        );
    }
    let (mut blocks, mut out) = (Vec::new(), Vec::new());
    for mut s in sections {
        let Some(kind) = read_kind(&mut s, files, end, shape) else { continue };
        let is_list = matches!(kind, Kind::List { .. });
        let (class, weight) = if is_list { (None, 1.0) } else { read_treatment(&mut s) };
        let (demand, subflows) = (read_demand(&mut s), read_subflows(&mut s, transport));
        let deadlines = if is_list { None } else { read_deadline(&mut s) };
        let burst = read_burst(&mut s, subflows, transport);
        blocks.push(Block { anchor: s.anchor, kind, class, weight, demand, deadlines, subflows, burst });
        out.push(s.finish());
    }
    root.out.arrays.push(("traffic".into(), out));
    blocks
}

/// Class and weight of the block's flows; those of a list are columns.
fn read_treatment(s: &mut Section<'_>) -> (Option<u8>, f64) {
    let class = match s.value_or::<u8>("class", &["data"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(class) => {
            check_class(s, "class", class);
            Some(class)
        }
    };
    let weight = s.get("weight", 1.0).value;
    if !(0.0 < weight && weight <= 1e9) {
        let help = "write a number above zero, as `weight = 2.0`";
        s.problem_at("scenario::out_of_range", "weight", format!("`weight = {weight}` is out of range"), help);
    }
    (class, weight)
}

/// What the application of each flow offers at most.
fn read_demand(s: &mut Section<'_>) -> Rate {
    match s.value_or::<Rate>("demand", &["unlimited"], OrWord::Word(0)).value {
        OrWord::Word(_) => Rate::MAX,
        OrWord::Value(Rate::ZERO) => {
            let help = "write a rate above zero, as `demand = \"9Gbps\"`, or \"unlimited\"";
            s.problem_at("scenario::out_of_range", "demand", "flows that want nothing", help);
            Rate::MAX
        }
        OrWord::Value(demand) => demand,
    }
}

/// When each flow should be done, from its start: one time for all, or a distribution to draw from. Those of a list are a
/// column.
fn read_deadline(s: &mut Section<'_>) -> Option<Deadlines> {
    let node = s.node("deadline")?;
    let (deadlines, shortest) = if let Value::Table(table) = &node.value {
        let mut d = Section::new(s.report, node.site, "`deadline`", Some(table));
        let mean = d.require::<Time>("mean", "\"20ms\"").value;
        let spread = d.choice("distribution", Spread::NAMES, Spread::Exponential).value;
        let least = d.get("least", Time::ZERO).value;
        s.out.push("deadline", d.finish().render_inline());
        (Deadlines::Drawn { spread, mean, least }, mean)
    } else {
        match s.value_or::<Time>("deadline", &["none"], OrWord::Word(0)).value {
            OrWord::Word(_) => return None,
            OrWord::Value(deadline) => (Deadlines::Fixed(deadline), deadline),
        }
    };
    if shortest == Time::ZERO {
        let help = "write a time above zero, as `deadline = \"5ms\"` or `deadline = { mean = \"20ms\" }`";
        s.problem_at("scenario::out_of_range", "deadline", "a deadline at the start of its flow", help);
    }
    Some(deadlines)
}

/// Subflows of each flow, if there are not as many as the transport says.
fn read_subflows(s: &mut Section<'_>, transport: Transport) -> Option<u8> {
    if transport == Transport::Rdma {
        if s.node("subflows").is_some() {
            let help = "write `kind = \"tcp\"` in `[transport]`, or remove `subflows`";
            s.problem_at("scenario::conflict", "subflows", "subflows need TCP, and the transport is RDMA", help);
        }
        return None;
    }
    match s.value_or::<u8>("subflows", &["transport"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(subflows) => Some(checked_subflows(s, subflows)),
    }
}

/// `burst = "100KB"` and `pause = "50us"`, for endless flows.
fn read_burst(s: &mut Section<'_>, subflows: Option<u8>, transport: Transport) -> Option<Burst> {
    let conflict = |s: &Section<'_>, key: &str, message: &str, help: &str| {
        s.problem_at("scenario::conflict", key, message, help);
    };
    let Some(bytes) = s.optional::<Bytes>("burst") else {
        if s.node("pause").is_some() {
            conflict(s, "pause", "a `pause` between no bursts", "say how much is written at once: `burst = \"100KB\"`");
        }
        return None;
    };
    let pause = s.require::<Time>("pause", "\"50us\"").value;
    let is_endless = matches!(s.node("bytes"), Some(Node { value: Value::Text(text), .. }) if text == "endless");
    let paths = match transport {
        Transport::Tcp(tcp) => subflows.unwrap_or(tcp.multipath.subflows),
        Transport::Rdma => 1,
    };
    if bytes.value == Bytes::ZERO {
        s.problem_at("scenario::out_of_range", "burst", "bursts of no bytes", "write for instance `burst = \"100KB\"`");
    } else if !is_endless {
        conflict(s, "burst", "`burst` is how endless flows write", "add `bytes = \"endless\"`");
    } else if 1 < paths {
        conflict(s, "burst", "bursts go over a single path", "add `subflows = 1`");
    }
    Some(Burst { bytes: bytes.value, pause })
}

fn read_kind(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>, shape: &str) -> Option<Kind> {
    let kind = match s.node("kind") {
        Some(Node { value: Value::Text(kind), site }) => {
            if !KINDS.contains(&kind.as_str()) {
                s.unknown_word("traffic", kind, *site, KINDS);
                return None;
            }
            kind.clone()
        }
        Some(_) => {
            s.given::<String>("kind");
            return None;
        }
        None => {
            s.missing("kind", "\"poisson\"");
            return None;
        }
    };
    s.out.push("kind", quote(&kind));
    s.name = format!("`[[traffic]]` of kind `{kind}`");
    Some(match kind.as_str() {
        "poisson" => read_poisson(s, files, end, shape)?,
        "closed-loop" => read_closed_loop(s, files, end)?,
        "incast" => read_incast(s),
        "incast-queries" => read_queries(s, end),
        "staggered" => read_staggered(s),
        "permutation" => Kind::Permutation(Permutation { bytes: flow_bytes(s, None), start: start(s) }),
        "all-to-all" => Kind::AllToAll(AllToAll { bytes: flow_bytes(s, None), start: start(s) }),
        "churn" => read_churn(s),
        _ => read_list(s, files)?,
    })
}

fn start(s: &mut Section<'_>) -> Time {
    s.get("start", Time::ZERO).value
}

/// A time, or never.
fn time_or_never(s: &mut Section<'_>, key: &str, default: OrWord<Time>) -> Time {
    match s.value_or::<Time>(key, &["never"], default).value {
        OrWord::Word(_) => Time::MAX,
        OrWord::Value(time) => time,
    }
}

/// Bytes of each flow, or endless.
fn flow_bytes(s: &mut Section<'_>, default: Option<OrWord<Bytes>>) -> Bytes {
    if default.is_none() && !s.has("bytes") {
        s.missing("bytes", "\"1MB\"");
    }
    let default = default.unwrap_or(OrWord::Value(Bytes::new(1)));
    match s.value_or::<Bytes>("bytes", &["endless"], default).value {
        OrWord::Word(_) => Bytes::MAX,
        OrWord::Value(Bytes::ZERO) => {
            s.problem_at(
                "scenario::out_of_range",
                "bytes",
                "a flow of no bytes",
                "write for instance `bytes = \"1MB\"`",
            );
            Bytes::new(1)
        }
        OrWord::Value(bytes) => bytes,
    }
}

fn read_poisson(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>, shape: &str) -> Option<Kind> {
    let sizes = read_sizes(s, files);
    let sampling = s.choice("sampling", Sampling::NAMES, Sampling::Linear).value;
    let load = read_load(s, "the link set's");
    // The load of PowerTCP section 4.1 is that of the ToR uplinks, and destinations are in other racks.
    let sets = TOPOLOGIES.iter().find(|t| t.name == shape).map_or(&[][..], |t| t.link_sets);
    let link_set = ["tor-uplinks", "bottleneck"].into_iter().find(|set| sets.contains(set)).unwrap_or("host-links");
    let link_set = s.get("link_set", link_set.to_owned()).value;
    let hosts = read_hosts(s, "hosts");
    let peers = if shape == "star" { Peers::OtherHost } else { Peers::OtherRack };
    let receivers = read_receivers(s);
    let destinations = if receivers.is_some() { peers } else { s.choice("destinations", PEERS, peers).value };
    let start = start(s);
    let stop = time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value));
    let max_flows = match s.value_or::<u64>("max_flows", &["unlimited"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(n) => Some(n),
    };
    if stop == Time::MAX && max_flows.is_none() {
        s.missing("stop", "\"40ms\"");
    }
    check_order(s, start, stop);
    let (sizes, stop) = (sizes?.sampled(sampling), within_run(start, stop, end));
    let poisson = Poisson { sizes, load, link_set, hosts: None, destinations, receivers: None, start, stop, max_flows };
    Some(Kind::Poisson { poisson, hosts, receivers })
}

/// A load, of the capacity of `whose` links.
fn read_load(s: &mut Section<'_>, whose: &str) -> f64 {
    let load = s.require::<f64>("load", "0.6").value;
    if !(0.0 < load && load <= 1.5) {
        let help = if 1.5 < load && load <= 100.0 {
            format!("a load is a fraction of {whose} capacity: `load = {}`", load / 100.0)
        } else {
            format!("a load is a fraction of {whose} capacity, above 0 and up to 1.5, as `load = 0.6`")
        };
        s.problem_at("scenario::out_of_range", "load", format!("`load = {load}` is out of range"), help);
    }
    load
}

/// Defaults are what RoCC's public code does: sizes are the points of the CDF, and the pause alone fills the gap.
fn read_closed_loop(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>) -> Option<Kind> {
    let sizes = read_sizes(s, files);
    let sampling = s.choice("sampling", Sampling::NAMES, Sampling::Step).value;
    let load = read_load(s, "the sender's link's");
    let sleep = s.choice("sleep", Sleep::NAMES, Sleep::WholeGap).value;
    let (senders, receivers) = (read_hosts(s, "senders"), read_hosts(s, "receivers"));
    let start = start(s);
    let stop = time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value));
    if stop == Time::MAX {
        s.missing("stop", "\"20ms\"");
    }
    check_order(s, start, stop);
    let stop = within_run(start, stop, end);
    let loops = ClosedLoop { sizes: sizes?, sampling, load, sleep, senders: None, receivers: None, start, stop };
    Some(Kind::ClosedLoop { loops, senders, receivers })
}

/// When arrivals stop: flows that would start behind the end of the run are not made. A block that starts there has none.
fn within_run(start: Time, stop: Time, end: Option<Time>) -> Time {
    end.map_or(stop, |end| stop.min(end)).max(start.saturating_add(Time::from_ps(1)))
}

fn check_order(s: &Section<'_>, start: Time, stop: Time) {
    if stop <= start {
        let message = format!("`stop` at {stop} is not after `start` at {start}");
        let key = if s.has("start") { "start" } else { "stop" };
        s.problem_at(
            "scenario::conflict",
            key,
            message,
            "let `start` be before `stop`, and before the run's `duration`",
        );
    }
}

fn read_sizes(s: &mut Section<'_>, files: &Files<'_>) -> Option<SizeDistribution> {
    let name = s.require::<String>("sizes", "\"websearch\"");
    match name.value.as_str() {
        "fixed" => Some(SizeDistribution::fixed(s.require::<Bytes>("size", "\"100KB\"").value)),
        "file" => {
            let file = files.read(s, "sizes", "txt")?;
            let fallback = "a line is `bytes cdf`, both ascending, and the last cdf is 1 (or 100)";
            SizeDistribution::parse_file(&file.text)
                .map_err(|e| file_problem(s.report, "scenario::sizes_file", &file, &e, fallback))
                .ok()
        }
        text => {
            let found = SizeDistribution::by_name(text);
            if found.is_none() && matches!(s.node("sizes"), Some(Node { value: Value::Text(_), .. })) {
                let words: Vec<&str> = WORKLOADS.iter().map(|w| w.name).chain(["fixed", "file"]).collect();
                s.unknown_word("sizes", text, name.site, &words);
            }
            found
        }
    }
}

/// `key = "all"` or a list of hosts.
fn read_hosts(s: &mut Section<'_>, key: &str) -> Option<Vec<NodeName>> {
    match s.node(key) {
        None | Some(Node { value: Value::Text(_), .. }) => {
            s.choice(key, &[("all", ())], ());
            None
        }
        Some(_) => Some(host_list(s, key)),
    }
}

/// `receivers`, in place of `destinations`.
fn read_receivers(s: &mut Section<'_>) -> Option<Vec<NodeName>> {
    let Some(Node { value: Value::Array(_), .. }) = s.node("receivers") else {
        s.choice("receivers", &[("destinations", ())], ());
        return None;
    };
    if s.node("destinations").is_some() {
        let help = "remove `destinations`, or `receivers`";
        s.problem_at("scenario::conflict", "destinations", "flows go to the `receivers` already", help);
    }
    Some(host_list(s, "receivers"))
}

fn host_list(s: &mut Section<'_>, key: &str) -> Vec<NodeName> {
    let items = s.items(key).unwrap_or_default();
    let names: Vec<NodeName> = items.iter().map(|n| NodeName::read(key, n, s.report)).collect();
    s.out.push(key, list(names.iter().map(NodeName::write)));
    if names.is_empty() {
        s.problem_at(
            "scenario::out_of_range",
            key,
            format!("`{key}` is empty"),
            format!("write at least one host, as `{key} = [\"h0\"]`"),
        );
    }
    names
}

fn read_receiver(s: &mut Section<'_>) -> NodeName {
    let Some(node) = s.node("receiver") else {
        s.missing("receiver", "\"h0\"");
        return NodeName { name: String::new(), site: s.anchor.site };
    };
    let name = NodeName::read("receiver", node, s.report);
    s.out.push("receiver", name.write());
    name
}

fn read_senders(s: &mut Section<'_>) -> SenderNames {
    match s.node("senders") {
        None => {
            s.missing("senders", "10");
            SenderNames::Hosts(Vec::new())
        }
        Some(Node { value: Value::Array(_), .. }) => SenderNames::Hosts(host_list(s, "senders")),
        Some(_) => {
            let n = s.get::<u32>("senders", 1);
            if n.value == 0 {
                s.problem_at(
                    "scenario::out_of_range",
                    "senders",
                    "no senders",
                    "write how many, as `senders = 10`, or a list of hosts",
                );
            }
            SenderNames::Count { n: n.value, from: s.choice("from", PEERS, Peers::OtherHost).value }
        }
    }
}

fn read_incast(s: &mut Section<'_>) -> Kind {
    let (receiver, senders) = (read_receiver(s), read_senders(s));
    let bytes = flow_bytes(s, None);
    let start = start(s);
    let stop = time_or_never(s, "stop", OrWord::Word(0));
    let jitter = s.get("jitter", Time::ZERO).value;
    check_order(s, start, stop);
    let incast =
        Incast { receiver: fairrate_sim::NodeId(0), senders: Senders::Hosts(Vec::new()), bytes, start, stop, jitter };
    Kind::Incast { incast, receiver, senders }
}

fn read_staggered(s: &mut Section<'_>) -> Kind {
    let (receiver, senders) = (read_receiver(s), read_senders(s));
    let staggered = Staggered {
        receiver: fairrate_sim::NodeId(0),
        senders: Senders::Hosts(Vec::new()),
        start: start(s),
        interval: s.require("interval", "\"1ms\"").value,
        hold: time_or_never(s, "hold", OrWord::Word(0)),
        bytes: flow_bytes(s, Some(OrWord::Word(0))),
    };
    Kind::Staggered { staggered, receiver, senders }
}

fn read_queries(s: &mut Section<'_>, end: Option<Time>) -> Kind {
    let responders = [("other-racks", Responders::OtherRacks), ("one-other-rack", Responders::OneOtherRack)];
    let queries = IncastQueries {
        request_size: s.require("request_size", "\"2MB\"").value,
        responders: s.require("responders", "16").value,
        from: s.choice("from", &responders, Responders::OtherRacks).value,
        rate_per_host_per_s: s.require("rate_per_host_per_s", "4.0").value,
        start: start(s),
        stop: time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value)),
    };
    let rate = queries.rate_per_host_per_s;
    if !(0.0 < rate && rate <= 1e9) {
        let help = "write requests per second of each host, as `rate_per_host_per_s = 4.0`";
        s.problem_at(
            "scenario::out_of_range",
            "rate_per_host_per_s",
            format!("a rate of {rate} is out of range"),
            help,
        );
    }
    if queries.responders == 0 {
        s.problem_at(
            "scenario::out_of_range",
            "responders",
            "nobody responds",
            "write how many hosts, as `responders = 16`",
        );
    }
    if queries.stop == Time::MAX {
        s.missing("stop", "\"40ms\"");
    }
    check_order(s, queries.start, queries.stop);
    let stop = within_run(queries.start, queries.stop, end);
    Kind::IncastQueries(IncastQueries { stop, ..queries })
}

fn read_churn(s: &mut Section<'_>) -> Kind {
    let flows = s.require("flows", "32").value;
    let changes = s.require("changes", "300").value;
    let hosts = read_hosts(s, "hosts");
    Kind::Churn { churn: Churn { flows, changes, hosts: None, start: start(s) }, hosts }
}

/// What bursts cannot go with.
pub(super) fn check_bursts(report: &Report, blocks: &[Block<'_>], has_convergence_probe: bool, oracle: bool) {
    for block in blocks.iter().filter(|block| block.burst.is_some()) {
        let problem = |message, help| {
            report.problem("scenario::conflict", block.anchor.site_of("burst"), message, "`burst`", help);
        };
        if oracle {
            problem(
                "the exact rates of `ideal` are for flows that always have data",
                "remove `burst`, or choose another `cc`",
            );
        } else if has_convergence_probe {
            let help = "remove `burst`, or the probe of `convergence`";
            problem("what rates flows converge to is defined for flows that always have data", help);
        }
    }
}

/// An allocator rules flows of one path. What the transport says for all flows is checked with the allocator.
pub(super) fn check_subflows(report: &Report, blocks: &[Block<'_>], cc: &AlgorithmConfig) {
    let split = |block: &&Block<'_>| block.subflows.is_some_and(|subflows| 1 < subflows);
    for block in blocks.iter().filter(split).filter(|_| cc.needs().allocator) {
        let message = format!("`{}` has one path a flow", cc.info().name);
        let help = "remove `subflows`, or choose another `cc`";
        report.problem("scenario::conflict", block.anchor.site_of("subflows"), message, "`subflows`", help);
    }
}

/// Churn waits until rates have converged, so a probe must tell; and it cannot wait for its own changes and another's.
pub(super) fn check_churn(report: &Report, blocks: &[Block<'_>], has_probe: bool) {
    let mut churns = blocks.iter().filter(|b| matches!(b.kind, Kind::Churn { .. }));
    let Some(first) = churns.next() else { return };
    let problem = |site, message, help| report.problem("scenario::conflict", site, message, "`churn`", help);
    if !has_probe {
        let help = "add `[[probe]]` and below it `convergence = true`";
        problem(first.anchor.site_of("kind"), "flows change once rates have converged, but nothing tells", help);
    }
    if let Some(second) = churns.next() {
        problem(second.anchor.site_of("kind"), "there is `churn` already", "raise `changes` of the first one");
    }
}

fn read_list(s: &mut Section<'_>, files: &Files<'_>) -> Option<Kind> {
    let file = files.read(s, "flows", "csv");
    let mut ignore_columns = Vec::new();
    for node in s.items("ignore_columns").unwrap_or_default() {
        if let Value::Text(name) = &node.value {
            ignore_columns.push(name.clone());
            continue;
        }
        let message = format!("expected the name of a column, found {}", node.value.describe());
        s.report.problem(
            "scenario::wrong_type",
            node.site,
            message,
            "`ignore_columns`",
            "write `ignore_columns = [\"pg\"]`",
        );
    }
    s.out.push("ignore_columns", list(ignore_columns.iter().map(|c| quote(c))));
    Some(Kind::List { file: file?, ignore_columns })
}
