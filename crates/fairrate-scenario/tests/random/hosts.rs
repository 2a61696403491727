//! Random transports and algorithms.

use fairrate_control::{AlgorithmConfig, ParamKind, Parameters, Profile};

use super::draw::{Draw, Key, Toml};
use super::network::Network;

const YES_NO: &[&str] = &["true", "false"];
const CLASSES: &[&str] = &["1", "2", "3", "7"];

const TRANSPORT: &[Key] = &[
    ("mtu", &["\"64B\"", "\"500B\"", "\"1460B\"", "\"4KB\"", "\"9000B\""]),
    ("header", &["\"0B\"", "\"78B\""]),
    ("ack", &["\"1B\"", "\"84B\""]),
    ("data_overhead", &["\"algorithm\"", "\"0B\"", "\"42B\""]),
    ("ack_overhead", &["\"algorithm\"", "\"0B\"", "\"42B\""]),
    ("cnp", &["\"1B\"", "\"64B\""]),
    ("data_class", CLASSES),
    ("ack_class", CLASSES),
    ("control_class", CLASSES),
    ("reaction_delay", &["\"0s\"", "\"1ns\"", "\"15us\""]),
    ("recovery", &["\"go-back-n\"", "\"selective-repeat\"", "\"irn\""]),
    ("rto", &["\"none\"", "\"30us\"", "\"100us\"", "\"1ms\""]),
    ("ack_every", &["\"packet\"", "\"message\"", "\"5KB\""]),
    ("nack_interval", &["\"0s\"", "\"10us\"", "\"500us\""]),
    ("rto_low", &["\"none\"", "\"20us\""]),
    ("window", &["\"algorithm\"", "\"rate-scaled\"", "\"bdp\"", "\"none\"", "\"1B\"", "\"20KB\""]),
    ("base_rtt", &["\"exact\"", "\"payload-only\"", "\"10us\""]),
];

const TCP: &[Key] = &[
    ("clock_granularity", &["\"1ns\"", "\"1ms\""]),
    ("loss_detection", &["\"rack\"", "\"sack\""]),
    ("rto_min", &["\"20us\"", "\"200us\""]),
    ("rto_max", &["\"1ms\"", "\"100ms\""]),
    ("tail_loss_probe", YES_NO),
    ("delayed_ack", &["1", "2", "8"]),
    ("delayed_ack_timeout", &["\"1us\"", "\"50us\""]),
    ("handshake", YES_NO),
    ("idle_restart", YES_NO),
    ("prr", YES_NO),
    ("mark_reduction", &["\"rfc9937\"", "\"ns3\""]),
    ("min_window", &["0", "1", "2", "20"]),
    ("receive_window", &["\"10KB\"", "\"100KB\"", "\"unlimited\""]),
    ("ecn_echo", &["\"accurate\"", "\"classic\""]),
    ("subflows", &["2", "3", "8"]),
    ("scheduler", &["\"min-rtt\"", "\"round-robin\"", "\"redundant\""]),
    ("paths", &["\"hashed\"", "\"disjoint\""]),
];

/// Writes `[transport]` with its sections, for an algorithm over TCP or not.
pub fn transport(draw: &mut Draw, toml: &mut Toml, cc: &str, tcp: bool) {
    toml.section("[transport]");
    toml.text("cc", cc);
    if ["nscc", "rccc", "eqds", "ndp"].contains(&cc) {
        toml.text("kind", "uet");
        // Headers that were trimmed go ahead of data, and what does not fit is lost.
        let is_fit = |key: &&Key| !key.0.ends_with("_class") && !["rto", "ack_every"].contains(&key.0);
        let keys: Vec<Key> = TRANSPORT.iter().filter(is_fit).copied().collect();
        toml.maybe(draw, 5, &keys);
        toml.any(draw, ("rto", &["\"30us\"", "\"100us\"", "\"1ms\""]));
        if draw.one_in(2) {
            toml.section("[transport.uet]");
            toml.any(draw, ("ack_every", &["\"0B\"", "\"4KB\"", "\"100KB\""]));
        }
        if cc == "nscc" && draw.one_in(2) {
            toml.section("[transport.nscc]");
            toml.key("credit", "true");
        }
        if cc == "rccc" && draw.one_in(2) {
            toml.section("[transport.rccc]");
            toml.any(draw, ("fabric_control", &["\"on\"", "\"off\""]));
        }
        return;
    }
    toml.text("kind", if tcp { "tcp" } else { "rdma" });
    toml.maybe(draw, 5, TRANSPORT);
    if (toml.0.contains("selective-repeat") || toml.0.contains("\"irn\"")) && draw.one_in(2) {
        toml.text("reorder_window", draw.pick(&["0s", "3us", "100us"]));
    }
    if tcp {
        toml.section("[transport.tcp]");
        toml.maybe(draw, 4, TCP);
    }
    if draw.one_in(3) {
        parameters(draw, toml, cc);
    }
}

/// Writes `[transport.NAME]` with some of the algorithm's parameters changed.
fn parameters(draw: &mut Draw, toml: &mut Toml, cc: &str) {
    let config = AlgorithmConfig::by_name(cc, Profile::Paper).expect("it is of the table");
    let params = config.params();
    if params.is_empty() {
        return;
    }
    toml.section(&format!("[transport.{cc}]"));
    for param in draw.some(&params, 2) {
        let factor = draw.pick(&[0.5, 0.9, 1.5, 4.0]);
        match param.kind {
            ParamKind::Float => {
                let value: f64 = param.toml.parse().expect("a float is written as one");
                toml.key(param.name, format!("{:?}", value * factor));
            }
            ParamKind::Count => {
                let value: f64 = param.toml.parse().expect("a count is written as one");
                toml.key(param.name, (value * factor).ceil() as u64);
            }
            ParamKind::Bool => toml.any(draw, (param.name, YES_NO)),
            ParamKind::Choice(words) => toml.text(param.name, draw.pick(words)),
            ParamKind::Time | ParamKind::Rate | ParamKind::Bytes => toml.key(param.name, &param.toml),
        }
    }
}

const ALLOCATOR: &[Key] = &[
    ("rate", &["\"1Gbps\"", "\"100Gbps\""]),
    ("delay", &["\"0s\"", "\"5us\""]),
    ("host_delay", &["\"0s\"", "\"5us\""]),
    ("interval", &["\"1us\"", "\"30us\""]),
    ("gamma", &["0.1", "1.5"]),
    ("threshold", &["0.0", "0.1", "0.5"]),
    ("flowlet_gap", &["\"0s\"", "\"10us\""]),
    ("intermediaries", &["0", "1", "3"]),
    ("class", CLASSES),
    ("min_packet", &["\"1B\"", "\"500B\""]),
    ("external_traffic", &["[0]"]),
];

/// Writes `[allocator]` and its subsections.
pub fn allocator(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    toml.section("[allocator]");
    toml.maybe(draw, 3, ALLOCATOR);
    if draw.one_in(4) {
        toml.section("[[allocator.outage]]");
        toml.any(draw, ("down_at", &["\"0s\"", "\"20us\""]));
        toml.maybe(draw, 2, &[("up_at", &["\"50us\"", "\"150us\""])]);
    }
    if draw.one_in(4) {
        let ends = draw.some(&network.hosts, 2);
        toml.section("[[allocator.external]]");
        toml.text("src", ends[0]);
        toml.text("dst", ends[1]);
        toml.maybe(draw, 2, &[("weight", &["0.5", "3.0"]), ("rate", &["\"2Gbps\""])]);
    }
}

/// Returns the keys by which hosts choose paths. Answers of a transport with grants say nothing of single packets.
pub fn entropy(draw: &mut Draw, cc: &str) -> String {
    let schemes = ["oblivious", "bitmap", "reps", "reps-legacy", "mixed", "plb", "bitmap-once", "permutation"];
    let scheme = if cc == "homa" { "oblivious" } else { draw.pick(&schemes) };
    format!("entropy = \"{scheme}\"\nentropy_values = {}\n", draw.pick(&["1", "4", "64", "32768"]))
}
