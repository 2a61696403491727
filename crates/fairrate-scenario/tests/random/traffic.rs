//! Random traffic and probes.

use std::fmt::Write;

use fairrate_sim::workload::{CollectiveAlgorithm, Op, WORKLOADS};

use super::draw::{Draw, Key, Toml, list};
use super::network::Network;

const KINDS: &[&str] = &[
    "poisson",
    "closed-loop",
    "incast",
    "incast-queries",
    "staggered",
    "permutation",
    "stride",
    "all-to-all",
    "list",
    "collective",
    "training",
];
const BYTES: &[&str] = &["\"1B\"", "\"999B\"", "\"1KB\"", "\"30KB\"", "\"400KB\"", "\"endless\""];
const STARTS: &[&str] = &["\"0s\"", "\"1ns\"", "\"25us\""];
const STOPS: &[&str] = &["\"30us\"", "\"100us\"", "\"200us\""];

const DEADLINES: &[&str] = &["\"1us\"", "\"90us\"", "{ mean = \"40us\", least = \"9us\" }"];

const TREATMENT: &[Key] =
    &[("weight", &["0.5", "3.0"]), ("demand", &["\"100Mbps\"", "\"9Gbps\""]), ("subflows", &["1", "2", "4"])];

/// Writes some `[[traffic]]` blocks, at most one of them a flow list, and returns its text. Few blocks have weights if
/// the algorithm does not support them, since such scenarios are refused.
pub fn traffic(
    draw: &mut Draw,
    toml: &mut Toml,
    network: &Network,
    (tcp, weights): (bool, bool),
    beside: &[(&'static str, bool)],
) -> Option<String> {
    let mut file = None;
    let usual = (tcp, !tcp && !toml.0.contains("kind = \"uet\""));
    let weights = weights || draw.one_in(20);
    for _ in 0..draw.between(1, 3) {
        let kind = *draw.pick(KINDS);
        if kind == "list" && file.is_some() || kind == "incast-queries" && !network.has_racks {
            continue;
        }
        toml.section("[[traffic]]");
        toml.text("kind", kind);
        let other = if beside.is_empty() || draw.one_in(2) { None } else { Some(*draw.pick(beside)) };
        let (tcp, rdma) = other.map_or(usual, |(cc, tcp)| (tcp, stack(draw, toml, cc, tcp)));
        let weights = weights && other.is_none();
        let is_endless = block(draw, toml, network, kind);
        if kind == "list" {
            toml.text("path", "flows.csv");
            let named = if beside.is_empty() || draw.one_in(2) { None } else { Some(*draw.pick(beside)) };
            if let Some((cc, tcp)) = named {
                let kind = kind_of(cc, tcp);
                toml.key(
                    "algorithms",
                    format!("{{ other = {{ kind = \"{kind}\", cc = \"{cc}\", rto = \"100us\" }} }}"),
                );
            }
            file = Some(flow_list(draw, network, weights, named.is_some()));
        } else {
            toml.maybe(draw, 4, &[("class", &["1", "2", "5"])]);
        }
        let keys = if kind == "list" || !weights { &TREATMENT[1..] } else { TREATMENT };
        toml.maybe(draw, 5, &keys[..keys.len() - usize::from(!tcp)]);
        if !is_endless && kind != "list" {
            toml.maybe(draw, 5, &[("deadline", DEADLINES)]);
        }
        if ["poisson", "closed-loop", "collective", "training"].contains(&kind) && rdma && draw.one_in(3) {
            toml.any(draw, ("connection", &["\"per-pair\"", "\"per-flow\""]));
        }
        if is_endless && rdma && draw.one_in(3) {
            toml.all(draw, &[("burst", &["\"1B\"", "\"20KB\""]), ("pause", &["\"0s\"", "\"7us\""])]);
        }
    }
    file
}

/// Writes the algorithm and the transport of a block. Returns `true` if that is RDMA and its connections can be shared.
fn stack(draw: &mut Draw, toml: &mut Toml, cc: &str, tcp: bool) -> bool {
    let kind = kind_of(cc, tcp);
    if draw.one_in(2) {
        toml.key("transport", format!("{{ kind = \"{kind}\", cc = \"{cc}\", rto = \"100us\" }}"));
    } else {
        toml.text("cc", cc);
        toml.text("transport", kind);
    }
    kind == "rdma" && cc != "homa"
}

/// Returns the transport of an algorithm that may go over TCP.
fn kind_of(cc: &str, tcp: bool) -> &'static str {
    match cc {
        "nscc" | "rccc" | "eqds" | "ndp" => "uet",
        _ if tcp => "tcp",
        _ => "rdma",
    }
}

/// Writes the keys of one kind. Returns `true` if its flows are endless.
fn block(draw: &mut Draw, toml: &mut Toml, network: &Network, kind: &str) -> bool {
    let bytes = *draw.pick(BYTES);
    match kind {
        "poisson" => {
            sizes(draw, toml);
            toml.text("link_set", draw.pick(&network.link_sets));
            if !network.has_racks {
                toml.text("destinations", "other-host");
            } else if draw.one_in(3) {
                toml.any(draw, ("destinations", &["\"other-host\"", "\"other-rack\"", "\"from-own-rack-on\""]));
            }
            toml.all(draw, &[("max_flows", &["1", "10", "60"]), ("stop", STOPS)]);
        }
        "closed-loop" => {
            sizes(draw, toml);
            toml.maybe(draw, 2, &[("sleep", &["\"whole-gap\"", "\"rest-of-gap\""])]);
            toml.key("senders", list(&draw.some(&network.hosts, 3)));
            toml.any(draw, ("stop", STOPS));
        }
        "incast" => {
            ends(draw, toml, network);
            toml.key("bytes", bytes);
            toml.maybe(draw, 3, &[("start", STARTS), ("stop", STOPS), ("jitter", &["\"1ns\"", "\"10us\""])]);
        }
        "incast-queries" => {
            toml.any(draw, ("responders", &["1", "2"]));
            if draw.one_in(3) {
                // With a request of a byte, such a load would be millions of flows.
                toml.key("request_size", "\"50KB\"");
                toml.any(draw, ("load", &["0.05", "0.5"]));
            } else {
                toml.any(draw, ("request_size", &["\"1B\"", "\"50KB\""]));
                toml.any(draw, ("rate_per_host_per_s", &["3000.0", "30000.0"]));
            }
            toml.any(draw, ("stop", STOPS));
        }
        "staggered" => {
            ends(draw, toml, network);
            toml.key("bytes", bytes);
            toml.any(draw, ("interval", &["\"0s\"", "\"5us\"", "\"30us\""]));
            toml.maybe(draw, 2, &[("hold", &["\"1us\"", "\"50us\""])]);
        }
        "permutation" | "stride" | "all-to-all" => {
            if kind == "stride" {
                toml.any(draw, ("stride", &["1", "3"]));
            }
            if draw.one_in(3) {
                // With a stride of 1 or 3, each of two hosts sends to the other.
                let n = if kind == "stride" { 2 } else { draw.between(2, network.hosts.len()) };
                toml.key("hosts", list(&draw.some(&network.hosts, n)));
            }
            toml.key("bytes", bytes);
            toml.maybe(draw, 3, &[("start", STARTS)]);
        }
        "collective" => collective(draw, toml, network),
        "training" => training(draw, toml, network),
        _ => return false,
    }
    bytes == "\"endless\"" && ["incast", "staggered", "permutation", "stride", "all-to-all"].contains(&kind)
}

/// Writes the keys of a collective operation.
fn collective(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    let op = draw.pick(Op::NAMES).1;
    toml.text("op", op.name());
    let algorithm = *draw.pick(op.algorithms());
    let needs_power = algorithm == CollectiveAlgorithm::HalvingDoubling && op != Op::AllReduce;
    let n = draw.between(2, network.hosts.len().min(9));
    // Few of the others are refused.
    let n = if network.toml.contains("scale_up = {") && draw.one_in(2) { network.hosts.len() } else { n };
    let n = if needs_power && !draw.one_in(20) { 1 << n.ilog2() } else { n };
    toml.key("hosts", list(&draw.some(&network.hosts, n)));
    toml.text("algorithm", algorithm.name());
    toml.any(draw, ("bytes", &["\"1B\"", "\"5KB\"", "\"33333B\"", "\"200KB\""]));
    let counts: [Key; 3] = [("channels", &["2", "3"]), ("chunks", &["2", "5"]), ("repeat", &["2", "3"])];
    toml.maybe(draw, 3, &counts);
    toml.maybe(draw, 3, &[("start", STARTS), ("compute", &["\"1ns\"", "\"5us\""])]);
    if matches!(op, Op::AllReduce | Op::ReduceScatter) {
        toml.maybe(draw, 3, &[("reduce_rate", &["\"unlimited\"", "\"50Gbps\""])]);
    }
    let of_servers = network.toml.contains("scale_up = {");
    let has_levels = op == Op::AllToAll || algorithm == CollectiveAlgorithm::Ring;
    // Most of these are refused, unless all hosts take part.
    if of_servers && has_levels && draw.one_in(2) {
        toml.key("hierarchy", n == network.hosts.len() || draw.one_in(6));
    }
    if op == Op::AllToAll {
        toml.maybe(draw, 3, &[("imbalance", &["1.0", "1.5", "1.9"])]);
    }
    // Refused with packets, and with pieces.
    if algorithm == CollectiveAlgorithm::Ring && draw.one_in(if has_packets(toml) { 40 } else { 2 }) {
        toml.key("merged_rings", true);
    }
    match algorithm {
        CollectiveAlgorithm::HalvingDoubling => toml.maybe(draw, 2, &[("nearest_first", &["true", "false"])]),
        CollectiveAlgorithm::Direct => toml.maybe(draw, 2, &[("order", &["\"rank\"", "\"shifted\""])]),
        _ => {}
    }
    placement(draw, toml, network);
}

/// Writes the placement of a job's ranks, and how long they compute. Few are refused.
fn placement(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    let of_servers = network.toml.contains("scale_up = {");
    toml.maybe(draw, 3, &[("alpha", &["\"100ns\"", "\"3us\""])]);
    if of_servers || draw.one_in(100) {
        toml.maybe(draw, 4, &[("alpha_inside", &["\"0s\"", "\"70ns\""])]);
    }
    if draw.one_in(3) {
        let by_rail = of_servers || draw.one_in(20);
        toml.text("placement", if by_rail && draw.one_in(2) { "by-rail" } else { "random" });
    }
    // Without computations there are none to vary.
    let computes =
        toml.0.rsplit("[[traffic]]").next().is_some_and(|block| !block.contains("op =") || block.contains("compute ="));
    if computes {
        toml.maybe(draw, 3, &[("compute_jitter", &["0.0", "0.3"])]);
    }
}

/// Writes the keys of a training job. Few jobs are refused: all numbers are powers of two.
fn training(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    let mut left = 1_usize << network.hosts.len().min(8).ilog2();
    let mut of = |draw: &mut Draw, most: usize| {
        let n = 1_usize << draw.between(0, left.min(most).ilog2() as usize);
        left /= n;
        n
    };
    let [tp, pp, cp] = [4, 2, 2].map(|most| of(draw, most));
    let dp = of(draw, 8);
    let ranks = tp * pp * cp * dp;
    toml.key("hosts", list(&draw.some(&network.hosts, ranks)));
    for (key, n) in [("tp", tp), ("pp", pp), ("cp", cp), ("dp", dp)] {
        toml.key(key, n);
    }
    for (key, n) in [("heads", 4), ("hidden", 16), ("vocabulary", 32)] {
        toml.key(key, n);
    }
    toml.any(draw, ("sequence", &["16", "64"]));
    if draw.one_in(2) {
        toml.any(draw, ("experts", &["4", "8"]));
        let ep = 1 << draw.between(0, (cp * dp).min(4).ilog2() as usize);
        toml.key("ep", ep);
        if 1 < ep {
            toml.maybe(draw, 3, &[("imbalance", &["1.0", "1.3", "1.9"])]);
        }
        toml.maybe(draw, 2, &[("top_k", &["1", "3"])]);
    } else if draw.one_in(3) {
        toml.any(draw, ("sequence_parallel", &["true", "false"]));
    }
    if draw.one_in(2) {
        toml.any(draw, ("tflops", &["0.01", "1.0"]));
    } else {
        toml.any(draw, ("forward", &["\"1ns\"", "\"7us\""]));
        toml.maybe(draw, 2, &[("backward", &["\"0s\"", "\"20us\""])]);
    }
    let counts: [Key; 3] = [("tp_channels", &["2"]), ("chunks", &["2"]), ("iterations", &["2"])];
    toml.maybe(draw, 3, &counts);
    if 1 < pp && draw.one_in(3) {
        toml.key("virtual_stages", 2);
        toml.key("layers", 4);
        toml.key("microbatches", 2 * pp);
    } else {
        toml.key("layers", 2);
        toml.maybe(draw, 3, &[("microbatches", &["2", "3"])]);
    }
    let rest: [Key; 6] = [
        ("recompute", &["\"none\"", "\"selective\"", "\"full\""]),
        ("overlap", &["true", "false"]),
        ("distributed_optimizer", &["true", "false"]),
        ("optimizer", &["\"3us\""]),
        ("start", STARTS),
        ("gated", &["true"]),
    ];
    toml.maybe(draw, 3, &rest);
    if network.toml.contains("scale_up = {") {
        toml.maybe(draw, 2, &[("hierarchy", &["true", "false"])]);
    }
    if draw.one_in(if has_packets(toml) { 40 } else { 2 }) {
        toml.key("merged_rings", true);
    }
    placement(draw, toml, network);
}

/// Returns `true` if the scenario so far is one of packets.
fn has_packets(toml: &Toml) -> bool {
    !toml.0.contains("cc = \"ideal\"")
}

/// Writes a size distribution and a load.
fn sizes(draw: &mut Draw, toml: &mut Toml) {
    if draw.one_in(3) {
        toml.text("sizes", "fixed");
        toml.any(draw, ("size", &["\"1999B\"", "\"100KB\""]));
    } else {
        toml.text("sizes", draw.pick(WORKLOADS).name);
    }
    toml.any(draw, ("load", &["0.1", "0.7", "1.5"]));
}

/// Writes a receiver, and its senders by name or number.
fn ends(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    let n_senders = draw.between(1, network.hosts.len() - 1);
    let hosts = draw.some(&network.hosts, 1 + n_senders);
    toml.text("receiver", hosts[0]);
    if draw.one_in(2) {
        toml.key("senders", list(&hosts[1..]));
    } else {
        toml.key("senders", n_senders);
    }
}

/// Draws a flow list with some of its columns; `named`: flows may have the algorithm `other`.
fn flow_list(draw: &mut Draw, network: &Network, weights: bool, named: bool) -> String {
    let columns: [(&str, &[&str]); 3] =
        [("priority", &["1", "3", "6"]), ("weight", &["1", "2.5"]), ("group", &["0", "4"])];
    let mut columns: Vec<_> = columns.into_iter().filter(|_| draw.one_in(3)).collect();
    if named {
        columns.push(("cc", &["other", ""]));
        columns.retain(|(name, _)| *name != "weight");
    }
    columns.retain(|(name, _)| weights || *name != "weight");
    let deadlines = draw.one_in(3);
    let waits = draw.one_in(3);
    let mut text = if waits { "id,after,delay_ns," } else { "" }.to_owned() + "start_ns,src,dst,bytes";
    for (name, _) in &columns {
        write!(text, ",{name}").expect("text");
    }
    text.push_str(if deadlines { ",deadline_ns\n" } else { "\n" });
    let mut earlier: Vec<(u64, [&String; 2])> = Vec::new();
    for id in 0..draw.between(1, 8) as u64 {
        let start = draw.below(40) * 1_000;
        let mut ends = draw.some(&network.hosts, 2);
        let bytes = draw.pick(&["1", "1000", "50001", "1000000000000"]);
        if waits {
            // Back from the receiver of an earlier flow, or on from its sender.
            let after = if earlier.is_empty() || draw.one_in(3) { None } else { Some(*draw.pick(&earlier)) };
            let milestone = *draw.pick(&["", ":arrived", ":sent", ":acked"]);
            match after {
                Some((before, [src, dst])) if ["", ":arrived"].contains(&milestone) => {
                    ends = vec![dst, src];
                    write!(text, "{id},{before}{milestone},{},", draw.pick(&["", "0", "1500"])).expect("text");
                }
                Some((before, [src, dst])) => {
                    ends = vec![src, dst];
                    write!(text, "{id},{before}{milestone},{},", draw.pick(&["", "0", "1500"])).expect("text");
                }
                None => write!(text, "{id},,,").expect("text"),
            }
            if *bytes != "1000000000000" {
                earlier.push((id, [ends[0], ends[1]]));
            }
        }
        write!(text, "{start},{},{},{bytes}", ends[0], ends[1]).expect("text");
        for (_, values) in &columns {
            write!(text, ",{}", draw.pick(values)).expect("text");
        }
        if deadlines {
            let is_endless = *bytes == "1000000000000";
            write!(text, ",{}", if is_endless { "" } else { draw.pick(&["", "900", "70000.5"]) }).expect("text");
        }
        text.push('\n');
    }
    text
}

/// Writes probes: mostly of queues and flows, so that there are samples to check, and sometimes of convergence.
pub fn probes(draw: &mut Draw, toml: &mut Toml, network: &Network, convergence: bool) {
    if draw.one_in(2) {
        toml.section("[[probe]]");
        toml.key("queues", list(&network.ports));
        toml.any(draw, ("every", &["\"1us\"", "\"7us\""]));
    }
    if draw.one_in(3) {
        toml.section("[[probe]]");
        toml.text("flows", "all");
        toml.any(draw, ("every", &["\"3us\"", "\"10us\""]));
    }
    if convergence {
        toml.section("[[probe]]");
        toml.key("convergence", true);
        toml.maybe(draw, 2, &[("hold_rtts", &["1", "10"]), ("give_up_rtts", &["11", "100"])]);
    }
}
