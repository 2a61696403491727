//! `[switch] queue` and the sections of its disciplines: the queues of data at egress ports.

use fairrate_control::{AlgorithmConfig, NetworkNeeds, PortScope, Queueing};
use fairrate_sim::{CoDelConfig, Overflow, QUEUES, QueueConfig, QueueRule, RedConfig, SfqCoDelConfig, TransportConfig};
use fairrate_text::one_of;
use fairrate_units::{Bytes, Rate, Time};

use super::algorithms_that;
use super::stacks::Stacks;
use crate::reader::{OrWord, Section};

/// Limit of RFC 8290 in packets.
const SFQ_CODEL_PACKETS: u32 = 10_240;
/// 24 packets of 1,536 bytes, two bandwidth-delay products of the paper's network.
const PFABRIC_BYTES: Bytes = Bytes::new(36_864);

/// Reads `queue` and its limits, and the sections of all disciplines in the file.
pub(super) fn read(s: &mut Section<'_>, stacks: &Stacks) -> QueueConfig {
    let names: Vec<(&'static str, &'static str)> = QUEUES.iter().map(|q| (q.name, q.name)).collect();
    let default = if stacks.network_needs().queueing == Queueing::Priorities { "pfabric" } else { "fifo" };
    let name = s.choice("queue", &names, default).value;
    let (red, codel, sfq) = (read_red(s, name), read_codel(s, name), read_sfq_codel(s, name));
    let (rule, limit_bytes, limit_packets) = match name {
        "red" => (QueueRule::Red(red), None, None),
        "codel" => (QueueRule::CoDel(codel), None, None),
        "sfq-codel" => (QueueRule::SfqCoDel(sfq), None, Some(SFQ_CODEL_PACKETS)),
        "pfabric" => (QueueRule::PFabric, Some(PFABRIC_BYTES), None),
        _ => (QueueRule::Fifo, None, None),
    };
    let config = QueueConfig {
        rule,
        limit_bytes: limit(s, "queue_limit", limit_bytes).unwrap_or(Bytes::MAX),
        limit_packets: limit(s, "queue_packets", limit_packets).unwrap_or(u32::MAX),
    };
    if config.limit_packets == 0 {
        let help = "write for instance `queue_packets = 100`";
        s.problem_at("scenario::out_of_range", "queue_packets", "a queue of no packets", help);
    }
    stacks.all.iter().for_each(|stack| check_algorithm(s, name, &config, &stack.cc));
    check_marks(s, &config, stacks);
    config
}

/// Checks that a discipline which marks finds flows of one kind: it drops in place of marks, or it does not.
fn check_marks(s: &Section<'_>, config: &QueueConfig, stacks: &Stacks) {
    let marks = match config.rule {
        QueueRule::Red(red) => red.ecn,
        QueueRule::CoDel(codel) => codel.ecn,
        QueueRule::SfqCoDel(sfq) => sfq.codel.ecn,
        QueueRule::Fifo | QueueRule::PFabric => false,
    };
    let n_marked = stacks.all.iter().filter(|stack| stack.cc.needs().network.ecn).count();
    if marks && !(n_marked == 0 || n_marked == stacks.all.len()) {
        let message =
            "some algorithms go by marks and others do not, and this discipline treats all packets of a class alike";
        let help = "set `ecn` of the discipline to false, or take `queue = \"fifo\"` and `ecn` of `[switch]`";
        s.problem_at("scenario::conflict", "queue", message, help);
    }
}

fn limit<T: crate::scalar::Scalar>(s: &mut Section<'_>, key: &str, default: Option<T>) -> Option<T> {
    match s.value_or(key, &["unlimited"], default.map_or(OrWord::Word(0), OrWord::Value)).value {
        OrWord::Word(_) => None,
        OrWord::Value(limit) => Some(limit),
    }
}

/// Checks that packets carry the priorities that the queue needs, that the algorithm has no queues of its own, and that
/// CoDel drops no queued packets that the algorithm has counted.
fn check_algorithm(s: &Section<'_>, name: &str, config: &QueueConfig, cc: &AlgorithmConfig) {
    let algorithm = cc.info().name;
    let problem = |message: String, help: &str| s.problem_at("scenario::conflict", "queue", message, help);
    let NetworkNeeds { queueing, ports, .. } = cc.needs().network;
    let counts = ports != PortScope::None;
    if config.rule == QueueRule::PFabric && queueing != Queueing::Priorities {
        let message = format!("`queue = \"{name}\"` goes by priorities, and packets of `{algorithm}` carry none");
        let known = one_of(&algorithms_that(|needs| needs.network.queueing == Queueing::Priorities));
        problem(message, &format!("set `cc` to {known} in `[transport]`, or take another `queue`"));
    } else if queueing == Queueing::Own && *config != QueueConfig::FIFO {
        let help = "remove `queue` and its limits, or choose another `cc`";
        problem(format!("`{algorithm}` has queues of its own"), help);
    } else if counts && matches!(config.rule, QueueRule::CoDel(_) | QueueRule::SfqCoDel(_)) {
        let message = format!("`{algorithm}` counts what waits at each port, and `{name}` drops from it");
        problem(
            message,
            "set `queue = \"fifo\"` or `queue = \"red\"`, which drop arrivals only, or choose another `cc`",
        );
    }
}

/// Checks that a port's queue can hold a packet, and that dropped packets are retransmitted.
pub(super) fn check_transport(root: &Section<'_>, queue: &QueueConfig, transport: &TransportConfig) {
    let packet = transport.mtu + transport.header;
    if queue.limit_bytes < packet {
        let message = format!("a `queue_limit` of {} does not hold a packet of {packet}", queue.limit_bytes);
        root.problem_at("scenario::conflict", "switch", message, "enlarge `queue_limit` in `[switch]`");
    }
    if *queue != QueueConfig::FIFO && transport.rto.is_none() {
        let message = "queues with a limit or a discipline drop packets, and without `rto` a lost last packet is never \
                       sent again";
        let help = "set `rto = \"4ms\"` in `[transport]`, or remove `queue` and its limits";
        root.problem_at("scenario::conflict", "switch", message, help);
    }
}

/// Reads a section. It is part of the resolved scenario if it is given, or its discipline is the chosen one.
fn section<T>(s: &mut Section<'_>, key: &str, chosen: &str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
    let given = s.has(key);
    let mut child = s.child(key, &format!("`[switch.{key}]`"));
    let config = read(&mut child);
    let out = child.finish();
    if given || key == chosen {
        s.out.tables.push((key.to_owned(), out));
    }
    config
}

/// Reads `[switch.red]`. By default it marks by the queue itself, on a line from 0 to 40 KB, as RateMP's evaluation
/// does; 40 KB is its queue limit in large networks.
fn read_red(s: &mut Section<'_>, chosen: &str) -> RedConfig {
    section(s, "red", chosen, |r| {
        let (kmin, kmax) = (r.get("kmin", Bytes::ZERO).value, r.get("kmax", Bytes::new(40_000)).value);
        let pmax = r.get("pmax", 1.0).value;
        let per_rate = match r.value_or::<Rate>("per", &["any-rate"], OrWord::Word(0)).value {
            OrWord::Word(_) => None,
            OrWord::Value(rate) => Some(rate),
        };
        let (weight, even) = (r.get("weight", 1.0).value, r.get("even", false).value);
        let ecn = r.get("ecn", false).value;
        if kmax < kmin {
            let message = format!("`kmin` of {kmin} is above `kmax` of {kmax}");
            r.problem_at("scenario::conflict", "kmin", message, "drops begin at `kmin`: make it at most `kmax`");
        }
        if !(0.0..=1.0).contains(&pmax) {
            let message = format!("`pmax = {pmax}` is no probability");
            r.problem_at("scenario::out_of_range", "pmax", message, "write a number from 0 to 1, as `pmax = 0.1`");
        }
        if !(0.0 < weight && weight <= 1.0) {
            let message = format!("`weight = {weight}` is no weight of an average");
            let help = "write a number above 0 and up to 1: `weight = 1.0` looks at the queue itself";
            r.problem_at("scenario::out_of_range", "weight", message, help);
        }
        if per_rate == Some(Rate::ZERO) {
            let message = "thresholds for a rate of zero";
            r.problem_at("scenario::out_of_range", "per", message, "write for instance `per = \"25Gbps\"`");
        }
        RedConfig { kmin, kmax, pmax, per_rate, weight, even, ecn }
    })
}

/// Reads the keys of CoDel. The defaults follow RFC 8289's rules for RTTs up to 200 us: an interval of the largest
/// usual RTT and a target of a tenth of it. With the internet's 100 ms and 5 ms nothing would ever be dropped.
fn read_codel_keys(c: &mut Section<'_>) -> CoDelConfig {
    let config = CoDelConfig {
        target: c.get("target", Time::from_us(20)).value,
        interval: c.get("interval", Time::from_us(200)).value,
        ecn: c.get("ecn", false).value,
    };
    if config.target == Time::ZERO || config.interval < config.target {
        let message = format!("a `target` of {} and an `interval` of {}", config.target, config.interval);
        let help = "let `target` be above zero and at most `interval`, usually a tenth of it";
        c.problem_at("scenario::conflict", if c.has("target") { "target" } else { "interval" }, message, help);
    }
    config
}

fn read_codel(s: &mut Section<'_>, chosen: &str) -> CoDelConfig {
    section(s, "codel", chosen, read_codel_keys)
}

/// Reads `[switch.sfq-codel]`. The defaults are those of RFC 8290: 1,024 queues, and a quantum of a full packet.
fn read_sfq_codel(s: &mut Section<'_>, chosen: &str) -> SfqCoDelConfig {
    section(s, "sfq-codel", chosen, |q| {
        let codel = read_codel_keys(q);
        let queues = q.get::<u32>("queues", 1_024).value;
        if !(1..=65_536).contains(&queues) {
            let message = format!("{queues} queues");
            q.problem_at("scenario::out_of_range", "queues", message, "write a number from 1 to 65536");
        }
        let quantum = match q.value_or::<Bytes>("quantum", &["full-packet"], OrWord::Word(0)).value {
            OrWord::Word(_) => None,
            OrWord::Value(bytes) => Some(bytes),
        };
        if quantum.is_some_and(|q| !(64..=1_000_000).contains(&q.as_u64())) {
            let help = "write a size from \"64B\" to \"1MB\", or \"full-packet\"";
            q.problem_at("scenario::out_of_range", "quantum", "`quantum` is out of range", help);
        }
        let overflow =
            q.choice("overflow", &[("head", Overflow::Head), ("tail", Overflow::Tail)], Overflow::Head).value;
        SfqCoDelConfig { codel, queues, quantum, overflow }
    })
}
