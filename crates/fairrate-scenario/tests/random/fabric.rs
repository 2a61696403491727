//! Random switches and faults.

use super::draw::{Draw, Key, Toml, list};
use super::network::Network;

const SWITCH: &[Key] = &[
    ("buffer", &["\"40KB\"", "\"100KB\"", "\"400KB\"", "\"4MiB\""]),
    ("buffer_per", &["\"100Gbps\"", "\"400Gbps\""]),
    ("dt_alpha", &["0.0625", "1.0", "8.0", "\"unlimited\""]),
    ("egress_alpha", &["0.125", "1.0", "\"unlimited\""]),
    ("pfc", PFC),
    ("headroom", &["\"auto\"", "\"triple-delay\"", "\"0B\"", "\"20KB\""]),
    ("xon_offset", &["\"0B\"", "\"2496B\"", "\"20KB\""]),
    ("xon_floor", &["\"0B\"", "\"1248B\"", "\"10KB\""]),
    ("pfc_frame", &["\"43B\"", "\"64B\"", "\"1KB\""]),
    ("ecmp", &["\"mix\"", "\"murmur3\""]),
    ("queue_limit", &["\"20KB\"", "\"100KB\""]),
    ("queue_packets", &["1", "10", "100"]),
];

const PFC: &[&str] = &[
    "true",
    "false",
    "{ pause = \"20KB\", resume = \"5KB\" }",
    "{ pause = \"5KB\", resume = \"0B\" }",
    "{ pause = { 10Gbps = \"10KB\", 40Gbps = \"40KB\" }, resume = \"5KB\" }",
    "{ by = \"ingress\", pause = \"20KB\", resume = \"5KB\" }",
    "{ by = \"ingress\", pause = { 10Gbps = \"5KB\", 40Gbps = \"40KB\" }, resume = \"0B\" }",
];

const ECN: &[&str] = &[
    "false",
    "true",
    "{ kmin = \"0B\", kmax = \"0B\", pmax = 1.0 }",
    "{ kmin = \"5KB\", kmax = \"50KB\", pmax = 0.1, per = \"25Gbps\", at = \"enqueue\" }",
    "{ kmin = \"20KB\", kmax = \"20KB\", per = \"any-rate\", at = \"dequeue\" }",
    "{ kmin = \"5KB\", kmax = \"20KB\", pmax = 0.5, draws = \"ns3\" }",
    "{ kmin = \"1B\" }",
    "{ phantom = 0.95 }",
    "{ kmin = \"2KB\", kmax = \"20KB\", pmax = 0.2, average = 0.3, draws = \"per-port\" }",
    "{ phantom = 0.5, kmin = \"1KB\", kmax = \"30KB\", pmax = 0.5, draws = \"ns3\" }",
];

const CODEL: &[Key] =
    &[("target", &["\"1us\"", "\"20us\""]), ("interval", &["\"20us\"", "\"200us\""]), ("ecn", YES_NO)];

const YES_NO: &[&str] = &["true", "false"];

const TRIM: &[Key] = &[
    ("trim", YES_NO),
    ("trim_limit", &["\"12KB\"", "\"50KB\""]),
    ("trim_size", &["\"1B\"", "\"100B\""]),
    ("trim_return", YES_NO),
    ("trim_limit_per", &["\"10Gbps\"", "\"25Gbps\""]),
];

/// Keys with headers so large that some find no room.
const LARGE_HEADERS: &[Key] = &[
    ("trim", &["true"]),
    ("trim_limit", &["\"12KB\""]),
    ("trim_size", &["\"1000B\"", "\"3000B\""]),
    ("trim_return", &["true", "true", "false"]),
];

/// Writes how switches cut packets.
fn trim(draw: &mut Draw, toml: &mut Toml) {
    if draw.one_in(3) {
        toml.all(draw, LARGE_HEADERS);
    } else {
        toml.maybe(draw, 2, TRIM);
    }
}

/// Writes `[switch]` with its sections.
pub fn switch(draw: &mut Draw, toml: &mut Toml, cc: &str) {
    toml.section("[switch]");
    // pFabric has its own queue; a limit goes with any queue.
    let queue = *draw.pick(&["fifo", "fifo", "fifo", "red", "codel", "sfq-codel"]);
    if !["pfabric", "bfc", "homa", "nscc", "rccc", "eqds", "ndp"].contains(&cc) && queue != "fifo" {
        toml.text("queue", queue);
    }
    // Half of the fabrics have no limits, so that they can be lossless.
    let limited = !["bfc", "homa", "nscc", "rccc", "eqds", "ndp"].contains(&cc) && draw.one_in(2);
    if ["nscc", "rccc", "eqds", "ndp"].contains(&cc) {
        trim(draw, toml);
    }
    let keys = if limited { SWITCH } else { &SWITCH[..SWITCH.len() - 2] };
    toml.maybe(draw, 3, keys);
    if draw.one_in(3) {
        toml.key("ecn", draw.pick(ECN));
    }
    match queue {
        "red" => {
            toml.section("[switch.red]");
            let pmax: Key = ("pmax", &["0.1", "1.0"]);
            let weight: Key = ("weight", &["0.002", "0.5", "1.0"]);
            toml.maybe(draw, 2, &[pmax, weight, ("even", YES_NO), ("ecn", YES_NO), ("per", &["\"25Gbps\""])]);
        }
        "codel" | "sfq-codel" => {
            toml.section(&format!("[switch.{queue}]"));
            toml.maybe(draw, 2, CODEL);
            if queue == "sfq-codel" {
                let quantum: Key = ("quantum", &["\"64B\"", "\"full-packet\"", "\"10KB\""]);
                toml.maybe(
                    draw,
                    2,
                    &[("queues", &["1", "4", "1024"]), quantum, ("overflow", &["\"head\"", "\"tail\""])],
                );
            }
        }
        _ => {}
    }
}

const CLASS: &[Key] = &[
    ("dt_alpha", &["0.0625", "1.0", "\"unlimited\""]),
    ("egress_alpha", &["0.125", "\"unlimited\""]),
    ("headroom", &["\"auto\"", "\"0B\"", "\"20KB\""]),
    ("pfc", &["false"]),
];

const CLASS_ECN: &[&str] = &[
    "false",
    "{ kmin = \"5KB\", kmax = \"20KB\", pmax = 0.5, at = \"enqueue\" }",
    "{ kmin = \"9KB\", kmax = \"9KB\", at = \"enqueue\", compare = \"port\" }",
    "{ kmin = \"9KB\", kmax = \"30KB\", at = \"enqueue\", compare = \"share\" }",
    "{ kmin = \"20KB\", kmax = \"20KB\", at = \"enqueue\", compare = \"round\" }",
    "{ kmin = \"9KB\", kmax = \"9KB\", at = \"enqueue\", non_ect = \"drop\" }",
];

/// Writes some `[[class]]` blocks, whose classes are those of traffic as a rule; `weighs`: they may have weights.
pub fn classes(draw: &mut Draw, toml: &mut Toml, weighs: bool) {
    // All switches mark at the same step.
    let marks = !["ecn =", "ns3", "rocc-omnet"].iter().any(|word| toml.0.contains(word)) && draw.one_in(2);
    if marks && !toml.0.contains("[switch]\n") {
        toml.section("[switch]");
    }
    if marks {
        toml.0 = toml.0.replacen("[switch]\n", "[switch]\necn = { at = \"enqueue\" }\n", 1);
    }
    let n = draw.between(1, 3);
    for class in draw.some(&["1", "2", "3", "3", "5", "6"], n) {
        if toml.0.contains(&format!("[[class]]\nclass = {class}\n")) {
            continue;
        }
        toml.section("[[class]]");
        toml.key("class", class);
        let weight = weighs && !draw.one_in(4);
        if weight {
            toml.any(draw, ("weight", &["1.0", "2.5", "30.0"]));
            toml.maybe(draw, 3, &[("telemetry", &["\"class\""])]);
        }
        toml.maybe(draw, 4, CLASS);
        if marks {
            toml.maybe(draw, 2, &[("ecn", if weight { CLASS_ECN } else { &CLASS_ECN[..3] })]);
        }
    }
}

const ROUTING: &[Key] = &[
    ("gap", &["\"1us\"", "\"20us\""]),
    ("samples", &["1", "2", "9"]),
    ("memory", &["0", "1", "3"]),
    ("signal", &["\"levels\"", "\"exact\"", "\"utilization\"", "\"pauses\"", "\"pauses-levels-utilization\""]),
    ("refresh", &["\"0s\"", "\"100ns\"", "\"5us\""]),
    ("sticky", &["\"off\"", "\"0s\"", "\"10us\""]),
    ("salt", &["\"each\"", "\"one\""]),
    ("time_constant", &["\"5us\"", "\"160us\""]),
    ("age", &["\"0s\"", "\"10us\"", "\"10ms\""]),
    ("full", &["\"0B\"", "\"20KB\""]),
    ("rehash", &["\"modulo\"", "\"resilient\""]),
];

/// Writes `[routing]`; `sprays`: packets may take several paths. Returns `true` if hosts choose them.
pub fn routing(draw: &mut Draw, toml: &mut Toml, sprays: bool) -> bool {
    toml.section("[routing]");
    let schemes = ["ecmp", "host", "host", "spray", "round-robin", "flowlet", "conga", "adaptive", "adaptive", "drill"];
    let scheme = if sprays { *draw.pick(&schemes) } else { draw.pick(&["ecmp", "wcmp"]) };
    toml.text("balance", scheme);
    toml.maybe(draw, 2, ROUTING);
    if draw.one_in(2) {
        toml.any(draw, ("reroute_delay", &["\"never\"", "\"0s\"", "\"3us\"", "\"20us\""]));
        toml.maybe(draw, 2, &[("convergence_delay", &["\"never\"", "\"20us\"", "\"50us\""])]);
    }
    scheme == "host"
}

const PROBABILITIES: &[&str] = &["0.001", "0.02", "0.3"];

const FAULT: &[Key] = &[
    ("both_ways", YES_NO),
    ("packets", &["\"all\"", "\"data\"", "\"acks\"", "\"control\""]),
    ("start", &["\"0s\"", "\"10us\""]),
    ("stop", &["\"60us\"", "\"300us\""]),
    ("loss", &["0.001", "0.02", "0.3", "1.0"]),
    ("burst", &["{ good = 100, bad = 5 }", "{ good = 20, bad = 2, bad_loss = 0.5 }"]),
    ("corrupt", PROBABILITIES),
    ("duplicate", PROBABILITIES),
    ("jitter", &["\"1ns\"", "\"3us\""]),
    ("rate", &["0.25", "0.9"]),
];

/// Writes some `[[fault]]` blocks.
pub fn faults(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    for _ in 0..*draw.pick(&[0, 0, 1, 2]) {
        toml.section("[[fault]]");
        if draw.one_in(2) {
            toml.text("links", draw.pick(&network.link_sets));
        } else {
            let n = draw.between(1, 3);
            toml.key("links", list(&draw.some(&network.ports, n)));
        }
        let flaps = draw.one_in(3);
        let loses = !flaps && draw.one_in(2);
        toml.maybe(draw, 3, &FAULT[..4]);
        toml.maybe(draw, if flaps { 6 } else { 3 }, &FAULT[if loses { 5 } else { 4 }..]);
        if loses {
            toml.any(draw, FAULT[4]);
        }
        if draw.one_in(3) {
            toml.all(draw, &[("reorder", PROBABILITIES), ("reorder_delay", &["\"100ns\"", "\"5us\""])]);
        }
        if flaps {
            toml.any(draw, ("down_at", &["\"0s\"", "\"5us\"", "\"40us\""]));
            if !draw.one_in(6) {
                toml.any(draw, ("up_at", &["\"41us\"", "\"60us\"", "\"100us\""]));
                toml.maybe(draw, 2, &[("period", &["\"101us\"", "\"257us\""])]);
            }
        }
    }
}
