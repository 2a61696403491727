//! `[switch]`: buffer, flow control and queues.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_control::Profile;
use fairrate_sim::{
    EcmpHash, FabricConfig, Headroom, LevelsByRate, PauseLevels, Pfc, PortId, SimConfig, Stack, Transport,
    TransportConfig,
};
use fairrate_units::{Bytes, Rate};

use super::stacks::Stacks;
use super::topology::Shape;
use super::{Timing, admission, class, ecn, queue, routing};
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};
use crate::tree::{Node, Table, Value};

/// Reads `[switch]`.
pub(super) fn read(
    root: &mut Section<'_>,
    profile: Profile,
    stacks: &Stacks,
    timing: &Timing,
    shape: &Shape,
) -> FabricConfig {
    let mut s = root.child("switch", "`[switch]`");
    let (ns3, omnet) = (profile == Profile::Ns3, profile == Profile::RoccOmnet);
    let Stack { transport, cc } = stacks.first();
    let routing = routing::read(root, stacks);
    let is_uet = matches!(transport.kind, Transport::Uet { .. });
    // Data that no PFC holds back is limited where it waits. With limits of ingress ports, packets that wait for a slow
    // or dead port would have all others of their host cut too, whatever their ports, and hosts would send those again
    // at once.
    let by_egress = is_uet && s.peek("pfc").is_none_or(|node| matches!(node.value, Value::Bool(false)));
    let (ingress_alpha, egress_alpha) = if by_egress {
        (OrWord::Word(0), OrWord::Value(1.0))
    } else {
        (if omnet { OrWord::Word(0) } else { OrWord::Value(0.125) }, OrWord::Word(0))
    };
    let mut fabric = FabricConfig {
        // PowerTCP section 4.1 names the bandwidth-to-buffer ratio of Intel Tofino; its public code has 4 MiB for each
        // switch, with Dynamic Thresholds at 1/8 per (ingress port, class) and no limit at the egress.
        buffer: s.get("buffer", if omnet { Bytes::new(15_000_000) } else { Bytes::new(4 << 20) }).value,
        buffer_per: read_buffer_per(&mut s),
        ingress_alpha: alpha(&mut s, "dt_alpha", ingress_alpha),
        egress_alpha: alpha(&mut s, "egress_alpha", egress_alpha),
        // No PFC over circuits, nor where switches trim by default.
        pfc: read_pfc(&mut s, if omnet || is_uet || matches!(shape, Shape::Rdcn(_)) { Pfc::Off } else { Pfc::Ingress }),
        headroom: read_headroom(&mut s, if ns3 { Headroom::TripleDelay } else { Headroom::Auto }),
        // The artifact's resume offsets.
        xon_offset: s.get("xon_offset", Bytes::new(2_496)).value,
        xon_floor: s.get("xon_floor", Bytes::new(1_248)).value,
        // A pause frame is a smallest Ethernet frame; in the artifact it has 43 B.
        pfc_frame: s.get("pfc_frame", Bytes::new(if ns3 { 43 } else { 64 })).value,
        frame_overhead: timing.frame_overhead.value,
        ecn: ecn::read(&mut s, profile, stacks, &stacks.listed),
        admission: admission::read(&mut s, is_uet.then_some(cc.needs().datagrams), transport.control_class),
        queue: queue::read(&mut s, stacks),
        clock: timing.clock,
        ties: timing.ties,
        balance: routing.balance,
        reroute: routing.reroute,
        ecmp: read_hash(&mut s, if ns3 { EcmpHash::Murmur3 } else { EcmpHash::Mix }, routing.has_one_salt),
        classes: BTreeMap::new(),
    };
    check(&s, &fabric);
    root.out.tables.push(("switch".into(), s.finish()));
    fabric.classes = class::read(root, profile, stacks, &fabric, shape);
    class::check_marks(root, &fabric, root.site_of("class"));
    fabric
}

/// Reads `ecmp`, which one salt for all switches narrows down.
fn read_hash(s: &mut Section<'_>, default: EcmpHash, has_one_salt: bool) -> EcmpHash {
    let hashes = [("mix", EcmpHash::Mix), ("murmur3", EcmpHash::Murmur3)];
    let hash = s.choice("ecmp", &hashes, default).value;
    match hash {
        EcmpHash::Mix if has_one_salt => EcmpHash::OneSalt,
        EcmpHash::Murmur3 if has_one_salt => {
            let message = "`murmur3` has the switch as its seed, and `salt = \"one\"` asks for a hash without it";
            s.problem_at("scenario::conflict", "ecmp", message, "write `ecmp = \"mix\"`, or leave `salt` out");
            hash
        }
        _ => hash,
    }
}

/// Reads the alpha of a Dynamic Threshold; `None`: there is no threshold.
pub(super) fn alpha(s: &mut Section<'_>, key: &str, default: OrWord<f64>) -> Option<f64> {
    match s.value_or::<f64>(key, &["unlimited"], default).value {
        OrWord::Word(_) => None,
        OrWord::Value(alpha) => {
            if !(0.0 < alpha && alpha <= 1e6) {
                let help = format!("write a number above zero, as `{key} = 0.125`, or `{key} = \"unlimited\"`");
                s.problem_at("scenario::out_of_range", key, format!("`{key} = {alpha}` is out of range"), help);
            }
            Some(alpha)
        }
    }
}

/// Pause and resume levels of RoCC's public simulation: 500 KB and 10 KB.
const BY_EGRESS: (Bytes, Bytes) = (Bytes::new(500_000), Bytes::new(10_000));

fn read_pfc(s: &mut Section<'_>, default: Pfc) -> Pfc {
    let given = match s.node("pfc") {
        None => default,
        Some(Node { value: Value::Bool(true), .. }) => Pfc::Ingress,
        Some(Node { value: Value::Bool(false), .. }) => Pfc::Off,
        Some(Node { value: Value::Table(table), site }) => return read_levels(s, *site, table),
        Some(node) => {
            let message = format!("expected true, false or levels for `pfc`, found {}", node.value.describe());
            let help = "write `pfc = true`, `pfc = false` or `pfc = { pause = \"500KB\", resume = \"490KB\" }`";
            s.problem_at("scenario::wrong_type", "pfc", message, help);
            default
        }
    };
    s.out.push("pfc", (given != Pfc::Off).to_string());
    given
}

/// Reads fixed levels of PFC, by egress queues or by ingress ports.
fn read_levels(s: &mut Section<'_>, site: Site, table: &Table) -> Pfc {
    let mut levels = Section::new(s.report, site, "`pfc`", Some(table));
    let by = levels.choice("by", &[("egress", false), ("ingress", true)], false).value;
    let (pauses, resumes) = (by_rate(&mut levels, "pause", BY_EGRESS.0), by_rate(&mut levels, "resume", BY_EGRESS.1));
    let rates: BTreeSet<Rate> = pauses.keys().chain(resumes.keys()).copied().flatten().collect();
    let rates = if rates.is_empty() { vec![None] } else { rates.into_iter().map(Some).collect() };
    let mut all = Vec::new();
    for rate in rates {
        // A level that is given once holds for all rates.
        let [pause, resume] = [&pauses, &resumes].map(|of| of.get(&rate).or_else(|| of.get(&None)).copied());
        let at = rate.map_or(String::new(), |rate| format!(" at {rate}"));
        let (Some(pause), Some(resume)) = (pause, resume) else {
            let key = if pause.is_none() { "pause" } else { "resume" };
            let help = format!("give `{key}` for the same rates as the other level, or one for all");
            levels.problem_at("scenario::conflict", key, format!("there is no `{key}`{at}"), help);
            continue;
        };
        if pause <= resume {
            let message = format!("a queue that pauses above {pause} and lets go at {resume}{at}");
            levels.problem_at("scenario::conflict", "resume", message, "make `resume` less than `pause`");
        }
        all.push((rate.unwrap_or(Rate::MAX), PauseLevels { pause, resume }));
    }
    let found = LevelsByRate::by_rate(&all).unwrap_or_else(|| {
        if LevelsByRate::MAX_RATES < all.len() {
            let message = format!("levels for {} rates", all.len());
            let help =
                format!("give them for {} at most: a port takes those of the nearest rate", LevelsByRate::MAX_RATES);
            levels.problem_at("scenario::out_of_range", "pause", message, help);
        }
        LevelsByRate::same(BY_EGRESS.0, BY_EGRESS.1)
    });
    s.out.push("pfc", levels.finish().render_inline());
    if by { Pfc::IngressLevels(found) } else { Pfc::Egress(found) }
}

/// Reads a level of PFC: one for all ports, with the rate `None`, or one for each of some rates.
fn by_rate(s: &mut Section<'_>, key: &str, default: Bytes) -> BTreeMap<Option<Rate>, Bytes> {
    let Some(Node { value: Value::Table(table), .. }) = s.node(key) else {
        return BTreeMap::from([(None, s.get(key, default).value)]);
    };
    let mut levels = BTreeMap::new();
    for entry in &table.entries {
        let bytes = match &entry.node.value {
            Value::Text(text) => text.parse::<Bytes>().ok(),
            _ => None,
        };
        match (entry.key.parse::<Rate>(), bytes) {
            (Ok(rate), Some(bytes)) if Rate::ZERO < rate => _ = levels.insert(Some(rate), bytes),
            _ => {
                let message = format!("`{}` in `{key}` is no rate with a size", entry.key);
                let help =
                    format!("write `{key} = {{ 40Gbps = \"500KB\", 100Gbps = \"800KB\" }}`, or one size for all");
                s.problem_at("scenario::wrong_type", key, message, help);
            }
        }
    }
    let pairs: Vec<String> =
        levels.iter().filter_map(|(rate, bytes)| Some(format!("{} = \"{bytes}\"", (*rate)?))).collect();
    s.out.push(key, format!("{{ {} }}", pairs.join(", ")));
    levels
}

/// Reads the headroom of a lossless (ingress port, class).
pub(super) fn read_headroom(s: &mut Section<'_>, default: Headroom) -> Headroom {
    let default = match default {
        Headroom::Auto => OrWord::Word(0),
        Headroom::TripleDelay => OrWord::Word(1),
        Headroom::Fixed(bytes) => OrWord::Value(bytes),
    };
    match s.value_or::<Bytes>("headroom", &["auto", "triple-delay"], default).value {
        OrWord::Word(0) => Headroom::Auto,
        OrWord::Word(_) => Headroom::TripleDelay,
        OrWord::Value(bytes) => Headroom::Fixed(bytes),
    }
}

/// Reads the rate of ports to which `buffer` belongs. It is not written to the resolved scenario if there is none.
fn read_buffer_per(s: &mut Section<'_>) -> Option<Rate> {
    let OrWord::Value(rate) = s.value_or::<Rate>("buffer_per", &["switch"], OrWord::Word(0)).value else {
        s.out.values.pop();
        return None;
    };
    if rate == Rate::ZERO {
        let help = "write for instance `buffer = \"3.4KB\"` and `buffer_per = \"1Gbps\"`";
        s.problem_at("scenario::out_of_range", "buffer_per", "a buffer for a rate of zero", help);
        return None;
    }
    Some(rate)
}

/// Checks that the smallest switch's buffer holds packets, if buffers go by the rates of ports.
pub(super) fn check_buffers(report: &Report, config: &SimConfig, site: Site) {
    if config.fabric.buffer_per.is_none() {
        return;
    }
    let topology = &config.topology;
    let mut total_bps: BTreeMap<usize, u64> = BTreeMap::new();
    for port in (0..topology.n_ports() as u32).map(PortId).filter(|&port| !topology.is_host(topology.from(port))) {
        *total_bps.entry(topology.from(port).index()).or_default() += topology.buffered_link(port).rate.as_bps();
    }
    let smallest = total_bps.iter().map(|(&node, &bps)| (config.fabric.buffer_of(bps), node)).min();
    if let Some((bytes, node)) = smallest.filter(|(bytes, _)| *bytes < 4 * config.transport.mtu.as_u64().max(2_500)) {
        let name = &topology.nodes[node].name;
        let message = format!("switch `{name}` gets a buffer of {bytes} B, which holds only a few packets");
        let help = "enlarge `buffer` or reduce `buffer_per` in `[switch]`";
        report.problem("scenario::out_of_range", site, message, "a small switch", help);
    }
}

fn check(s: &Section<'_>, fabric: &FabricConfig) {
    if fabric.buffer_per.is_none() && fabric.buffer.as_u64() < 10_000 {
        let message = format!("a buffer of {} holds only a few packets", fabric.buffer);
        s.problem_at("scenario::out_of_range", "buffer", message, "write for instance `buffer = \"4MiB\"`");
    }
    if fabric.pfc_frame == Bytes::ZERO || 1_024 < fabric.pfc_frame.as_u64() {
        let message = format!("a pause frame of {}", fabric.pfc_frame);
        s.problem_at("scenario::out_of_range", "pfc_frame", message, "write for instance `pfc_frame = \"64B\"`");
    }
}

/// Checks that packets dropped by the fabric are retransmitted, and that its buffer holds packets. `classes`: those in
/// which this `transport` sends data.
pub(super) fn check_recovery(root: &Section<'_>, fabric: &FabricConfig, transport: &TransportConfig, classes: &[u8]) {
    // TCP has timeouts of its own.
    let lacks_timeout = transport.rto.is_none() && !matches!(transport.kind, Transport::Tcp(_));
    let own = || classes.iter().filter_map(|class| Some((class, fabric.classes.get(class)?)));
    if let Some((class, _)) = own().find(|(_, of)| !of.pfc || of.egress_alpha.is_some())
        && lacks_timeout
    {
        let message = format!("class {class} drops packets, and without `rto` a lost last packet is never sent again");
        let help =
            "set `rto = \"4ms\"` in `[transport]`, or remove `pfc = false` and `egress_alpha` of the `[[class]]`";
        root.problem_at("scenario::conflict", "class", message, help);
    }
    if !fabric.pauses_by_ingress() && lacks_timeout {
        let drops = if fabric.pfc == Pfc::Off { "a fabric without `pfc`" } else { "a fabric without headroom" };
        let message = format!("{drops} drops packets, and without `rto` a lost last packet is never sent again");
        let help = "set `rto = \"4ms\"` in `[transport]`, or `pfc = true` in `[switch]`";
        root.problem_at("scenario::conflict", if root.has("switch") { "switch" } else { "transport" }, message, help);
    }
    if fabric.egress_alpha.is_some() && lacks_timeout {
        let message = "an `egress_alpha` drops packets, and without `rto` a lost last packet is never sent again";
        let help = "set `rto = \"4ms\"` in `[transport]`, or remove `egress_alpha`";
        root.problem_at("scenario::conflict", "switch", message, help);
    }
    queue::check_transport(root, &fabric.queue, transport);
    if fabric.buffer_per.is_none() && fabric.buffer.as_u64() < 4 * transport.mtu.as_u64() {
        let message = format!("a buffer of {} does not hold four packets of {}", fabric.buffer, transport.mtu);
        root.problem_at(
            "scenario::conflict",
            "switch",
            message,
            "enlarge `buffer` in `[switch]` or reduce `mtu` in `[transport]`",
        );
    }
}
