//! Rules about what may join a queue, besides the limits of the buffer: keys of `[switch]`.

use fairrate_control::AlgorithmConfig;
use fairrate_control::credits::DatagramDefaults;
use fairrate_sim::{AdmissionConfig, FabricConfig, QueueConfig, Transport, TransportConfig, Trim};
use fairrate_units::{Bytes, Rate};

use crate::reader::{OrWord, Section};

/// Reads the rules. `class` is that of control packets. `of_uet`: the algorithm's defaults, if the transport is Ultra
/// Ethernet's.
pub(super) fn read(s: &mut Section<'_>, of_uet: Option<DatagramDefaults>, class: u8) -> AdmissionConfig {
    AdmissionConfig { trim: read_trim(s, of_uet, class) }
}

/// Reads `trim` and the keys that begin so. Headers have the size of uet-htsim's. `of_uet`: as for
/// [`read`].
fn read_trim(s: &mut Section<'_>, of_uet: Option<DatagramDefaults>, class: u8) -> Option<Trim> {
    let trims = s.get("trim", of_uet.is_some()).value;
    let size = s.get("trim_size", Bytes::new(64)).value;
    let default = of_uet.and_then(|defaults| defaults.trim_limit).map_or(OrWord::Word(0), OrWord::Value);
    let limit = match s.value_or::<Bytes>("trim_limit", &["buffer"], default).value {
        OrWord::Word(_) => None,
        OrWord::Value(limit) => Some(limit),
    };
    let limit_per = match s.value_or::<Rate>("trim_limit_per", &["any-rate"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(rate) => Some(rate),
    };
    if limit_per == Some(Rate::ZERO) {
        let help = "write for instance `trim_limit_per = \"100Gbps\"`";
        s.problem_at("scenario::out_of_range", "trim_limit_per", "a limit for ports without a rate", help);
    }
    if size == Bytes::ZERO || TransportConfig::MAX_PACKET < size {
        let message = format!("headers of {size}");
        s.problem_at("scenario::out_of_range", "trim_size", message, "write for instance `trim_size = \"64B\"`");
    }
    let returns = s.get("trim_return", false).value;
    trims.then_some(Trim { size, limit, limit_per, class, returns })
}

/// Checks that hosts understand packets that were cut to their headers, and that nothing else decides about queues.
/// `classes`: those in which this `transport` sends data.
pub(super) fn check(
    root: &Section<'_>,
    fabric: &FabricConfig,
    transport: &TransportConfig,
    cc: &AlgorithmConfig,
    classes: &[u8],
) {
    let Some(trim) = fabric.admission.trim.filter(|_| classes.iter().any(|&class| fabric.class(class).trim)) else {
        return;
    };
    let problem = |message: String, help: &str| {
        let at = if root.has("switch") { "switch" } else { "topology" };
        root.problem_at("scenario::conflict", at, message, help);
    };
    let packet = transport.mtu + transport.data_header(&cc.needs());
    if !matches!(transport.kind, Transport::Uet { .. }) {
        let message = "switches cut packets to their headers, and the hosts' transport does not know what these say";
        problem(message.to_owned(), "write `kind = \"uet\"` in `[transport]`, or `trim = false` in `[switch]`");
    } else if fabric.queue != QueueConfig::FIFO {
        let message = "a queueing discipline or limit and `trim` both say what becomes of a packet that does not fit";
        problem(message.to_owned(), "remove `queue` and its limits, or `trim`; a limit for trimming is `trim_limit`");
    } else if trim.limit.is_some_and(|limit| limit < packet) {
        let message = format!("a `trim_limit` below a packet of {packet} lets none through");
        problem(message, "enlarge `trim_limit`");
    } else if classes.contains(&trim.class) {
        let message = "headers go ahead of data, and `control_class` is the class of data".to_owned();
        problem(message, "let `control_class` be below `data_class` in `[transport]`");
    }
}
