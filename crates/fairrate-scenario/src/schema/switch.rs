//! `[switch]`: buffer, flow control, marking and queues.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_control::{AlgorithmConfig, MarkedQueue, Needs, Profile, RedDefault};
use fairrate_sim::{
    EcmpHash, EcnConfig, FabricConfig, Headroom, LevelsByRate, MarkAt, MarkDraws, PauseLevels, Pfc, SimConfig,
    Transport, TransportConfig,
};
use fairrate_units::{Bytes, Rate};

use super::topology::Shape;
use super::{Timing, queue, routing, trim};
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};
use crate::tree::{Node, Table, Value};

/// Reads `[switch]`.
pub(super) fn read(
    root: &mut Section<'_>,
    profile: Profile,
    (transport, cc): (&TransportConfig, &AlgorithmConfig),
    timing: &Timing,
    shape: &Shape,
) -> FabricConfig {
    let mut s = root.child("switch", "`[switch]`");
    let (ns3, omnet) = (profile == Profile::Ns3, profile == Profile::RoccOmnet);
    let routing = routing::read(root, cc);
    let is_uet = matches!(transport.kind, Transport::Uet { .. });
    // Data that no PFC holds back is limited where it waits. With limits of ingress ports, packets that wait for a slow or dead port would
    // have all others of their host cut too, whatever their ports, and hosts would send those again at once.
    let by_egress = is_uet && s.peek("pfc").is_none_or(|node| matches!(node.value, Value::Bool(false)));
    let (ingress_alpha, egress_alpha) = if by_egress {
        (OrWord::Word(0), OrWord::Value(1.0))
    } else {
        (if omnet { OrWord::Word(0) } else { OrWord::Value(0.125) }, OrWord::Word(0))
    };
    let fabric = FabricConfig {
        // PowerTCP section 4.1 names the bandwidth-to-buffer ratio of Intel Tofino; its public code has 4 MiB for each
        // switch, with Dynamic Thresholds at 1/8 per (ingress port, class) and no limit at the egress.
        buffer: s.get("buffer", if omnet { Bytes::new(15_000_000) } else { Bytes::new(4 << 20) }).value,
        buffer_per: read_buffer_per(&mut s),
        ingress_alpha: alpha(&mut s, "dt_alpha", ingress_alpha),
        egress_alpha: alpha(&mut s, "egress_alpha", egress_alpha),
        // No PFC over circuits, nor where switches trim by default.
        pfc: read_pfc(&mut s, if omnet || is_uet || matches!(shape, Shape::Rdcn(_)) { Pfc::Off } else { Pfc::Ingress }),
        headroom: read_headroom(&mut s, ns3),
        // The artifact's resume offsets.
        xon_offset: s.get("xon_offset", Bytes::new(2_496)).value,
        xon_floor: s.get("xon_floor", Bytes::new(1_248)).value,
        // A pause frame is a smallest Ethernet frame; in the artifact it has 43 B.
        pfc_frame: s.get("pfc_frame", Bytes::new(if ns3 { 43 } else { 64 })).value,
        frame_overhead: timing.frame_overhead.value,
        ecn: read_ecn(&mut s, profile, cc),
        trim: trim::read(&mut s, is_uet.then_some(cc.needs().datagrams), transport.control_class),
        queue: queue::read(&mut s, cc),
        clock: timing.clock,
        ties: timing.ties,
        balance: routing.balance,
        reroute: routing.reroute,
        ecmp: read_hash(&mut s, ns3, routing.has_one_salt),
    };
    check(&s, &fabric);
    root.out.tables.push(("switch".into(), s.finish()));
    fabric
}

/// Reads `ecmp`, which one salt for all switches narrows down.
fn read_hash(s: &mut Section<'_>, ns3: bool, has_one_salt: bool) -> EcmpHash {
    let hashes = [("mix", EcmpHash::Mix), ("murmur3", EcmpHash::Murmur3)];
    let hash = s.choice("ecmp", &hashes, if ns3 { EcmpHash::Murmur3 } else { EcmpHash::Mix }).value;
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

fn alpha(s: &mut Section<'_>, key: &str, default: OrWord<f64>) -> Option<f64> {
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

fn read_headroom(s: &mut Section<'_>, ns3: bool) -> Headroom {
    let default = OrWord::Word(usize::from(ns3));
    match s.value_or::<Bytes>("headroom", &["auto", "triple-delay"], default).value {
        OrWord::Word(0) => Headroom::Auto,
        OrWord::Word(_) => Headroom::TripleDelay,
        OrWord::Value(bytes) => Headroom::Fixed(bytes),
    }
}

/// RED as the artifact configures it for every algorithm: 100 and 400 KB at 25 Gb/s, in proportion at other rates.
const RED: EcnConfig = EcnConfig {
    phantom: None,
    kmin: Bytes::new(100_000),
    kmax: Bytes::new(400_000),
    pmax: 0.2,
    kmin_per: Some(Rate::from_gbps(25)),
    kmax_per: Some(Rate::from_gbps(25)),
    average: None,
    at: MarkAt::Dequeue,
    draws: MarkDraws::PerPort,
    to_hosts: true,
};

/// RED as the OMNeT++ code of RoCC's authors has it for DCQCN.
const OMNET_RED: EcnConfig = EcnConfig {
    kmin: Bytes::new(5_000),
    kmax: Bytes::new(200_000),
    pmax: 0.01,
    kmin_per: None,
    kmax_per: None,
    average: Some(0.2),
    at: MarkAt::Enqueue,
    ..RED
};

/// HULL's phantom queue, NSDI 2012: its testbed of 1 Gb/s marks above 1 KB; in proportion at other rates.
const PHANTOM: EcnConfig = EcnConfig {
    phantom: None,
    kmin: Bytes::new(1_000),
    kmax: Bytes::new(1_000),
    pmax: 1.0,
    kmin_per: Some(Rate::from_gbps(1)),
    kmax_per: Some(Rate::from_gbps(1)),
    average: None,
    at: MarkAt::Enqueue,
    draws: MarkDraws::PerPort,
    to_hosts: true,
};

/// Returns the marking that an algorithm requires.
fn own_red(red: RedDefault) -> EcnConfig {
    let RedDefault { kmin, kmax, pmax, per_rate, queue } = red;
    let (phantom, at) = match queue {
        MarkedQueue::Joined => (None, MarkAt::Enqueue),
        MarkedQueue::Left => (None, MarkAt::Dequeue),
        MarkedQueue::Phantom(percent) => (Some(f64::from(percent) / 100.0), MarkAt::Enqueue),
    };
    EcnConfig { phantom, kmin, kmax, pmax, kmin_per: per_rate, kmax_per: per_rate, at, ..RED }
}

/// Returns the default marking: in the paper profile only for algorithms that read marks, in the ns-3 profile, as in
/// the artifact, for all algorithms without circuits.
fn default_ecn(profile: Profile, needs: &Needs) -> Option<EcnConfig> {
    match profile {
        Profile::RoccOmnet if needs.network.ecn => Some(OMNET_RED),
        Profile::Ns3 if needs.network.circuits.is_none() => Some(EcnConfig { draws: MarkDraws::LikeNs3, ..RED }),
        _ => needs.network.ecn.then(|| needs.network.red.map_or(RED, own_red)),
    }
}

fn read_ecn(s: &mut Section<'_>, profile: Profile, cc: &AlgorithmConfig) -> Option<EcnConfig> {
    // Where receivers share out their own links, marks tell of the network alone, as in uet-htsim.
    let to_hosts = cc.needs().feedback.credit.is_none();
    let default = default_ecn(profile, &cc.needs()).map(|ecn| EcnConfig { to_hosts, ..ecn });
    let base = default.unwrap_or(RED);
    let (given, table) = match s.node("ecn") {
        None => (default, None),
        Some(Node { value: Value::Bool(on), .. }) => (on.then_some(base), None),
        Some(node @ Node { value: Value::Table(_), .. }) => (Some(base), Some(node)),
        Some(node) => {
            let message = format!("expected thresholds for `ecn`, found {}", node.value.describe());
            let help = "write `ecn = { kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }` or `ecn = false`";
            s.problem_at("scenario::wrong_type", "ecn", message, help);
            (None, None)
        }
    };
    let Some(base) = given else {
        s.out.push("ecn", "false".into());
        return None;
    };
    let site = table.map_or(s.anchor.site, |n| n.site);
    let table = table.and_then(|n| if let Value::Table(t) = &n.value { Some(t) } else { None });
    let mut e = Section::new(s.report, site, "`ecn`", table);
    let ecn = read_thresholds(&mut e, base);
    s.out.push("ecn", e.finish().render_inline());
    Some(ecn)
}

fn read_thresholds(e: &mut Section<'_>, base: EcnConfig) -> EcnConfig {
    let phantom = read_phantom(e, base.phantom);
    let base =
        if phantom.is_some() && base.phantom.is_none() { EcnConfig { draws: base.draws, ..PHANTOM } } else { base };
    let (kmin, kmax) = (e.get("kmin", base.kmin).value, e.get("kmax", base.kmax).value);
    let pmax = e.get("pmax", base.pmax).value;
    let (kmin_per, kmax_per) = read_per(e, base);
    let at = e.choice("at", &[("enqueue", MarkAt::Enqueue), ("dequeue", MarkAt::Dequeue)], base.at).value;
    let draws = e.choice("draws", &[("per-port", MarkDraws::PerPort), ("ns3", MarkDraws::LikeNs3)], base.draws).value;
    // The order of thresholds for different rates depends on the ports: `check_thresholds`.
    if kmin_per == kmax_per && kmax < kmin {
        let message = format!("`kmin` of {kmin} is above `kmax` of {kmax}");
        let help = "marking begins at `kmin`: make it at most `kmax`, and give both";
        e.problem_at("scenario::conflict", "kmin", message, help);
    }
    if !(0.0..=1.0).contains(&pmax) {
        let message = format!("`pmax = {pmax}` is no probability");
        e.problem_at("scenario::out_of_range", "pmax", message, "write a number from 0 to 1, as `pmax = 0.2`");
    }
    if phantom.is_some() && at == MarkAt::Dequeue {
        let help = "remove `at`, or set `phantom = \"none\"`";
        e.problem_at("scenario::conflict", "at", "packets join a phantom queue, and nothing leaves it", help);
    }
    let average = read_average(e, base.average);
    if average.is_some() && (phantom.is_some() || draws == MarkDraws::LikeNs3) {
        let help = "remove `average`, or `phantom` and `draws`";
        e.problem_at("scenario::conflict", "average", "an average is of the queue, with a stream of each port", help);
    }
    let to_hosts = read_to_hosts(e, base.to_hosts);
    EcnConfig { phantom, kmin, kmax, pmax, kmin_per, kmax_per, average, at, draws, to_hosts }
}

/// Reads the port rates to which `kmin` and `kmax` refer. A threshold given in the file is absolute unless the file
/// gives its rate; a threshold not given keeps the rate of its default.
fn read_per(e: &mut Section<'_>, base: EcnConfig) -> (Option<Rate>, Option<Rate>) {
    let (has_kmin, has_kmax) = (e.has("kmin"), e.has("kmax"));
    let none_given = !has_kmin && !has_kmax;
    let default = if none_given { base.kmin_per } else { None };
    let per = one_per(e, "per", default);
    let says = e.has("per");
    let own = |has: bool, base: Option<Rate>| if has || (none_given && says) { per } else { base };
    let (kmin, kmax) = (own(has_kmin, base.kmin_per), own(has_kmax, base.kmax_per));
    (one_of_two(e, "kmin_per", kmin, per), one_of_two(e, "kmax_per", kmax, per))
}

/// Reads the port rate of one threshold. If it equals `both`, it is not written to the resolved scenario.
fn one_of_two(e: &mut Section<'_>, key: &str, default: Option<Rate>, both: Option<Rate>) -> Option<Rate> {
    let rate = one_per(e, key, default);
    if rate == both {
        e.out.values.pop();
    }
    rate
}

fn one_per(e: &mut Section<'_>, key: &str, default: Option<Rate>) -> Option<Rate> {
    let default = default.map_or(OrWord::Word(0), OrWord::Value);
    let OrWord::Value(rate) = e.value_or::<Rate>(key, &["any-rate"], default).value else { return None };
    if rate == Rate::ZERO {
        let help = format!("write for instance `{key} = \"25Gbps\"`");
        e.problem_at("scenario::out_of_range", key, "thresholds for a rate of zero", help);
    }
    Some(rate)
}

/// Checks that `kmin` is at most `kmax` at the rate of every switch port.
pub(super) fn check_thresholds(report: &Report, config: &SimConfig, site: Site) {
    let Some(ecn) = config.fabric.ecn.filter(|ecn| ecn.kmin_per != ecn.kmax_per) else { return };
    let topology = &config.topology;
    let switches = topology.links.iter().filter(|link| !topology.is_host(link.a) || !topology.is_host(link.b));
    let wrong = switches.map(|link| link.rate).find(|&rate| {
        let (kmin, kmax) = ecn.thresholds(rate);
        kmax < kmin
    });
    if let Some(rate) = wrong {
        let (kmin, kmax) = ecn.thresholds(rate);
        let [kmin, kmax] = [kmin, kmax].map(|bytes| Bytes::new(bytes as u64));
        let message = format!("`kmin` of {kmin} is above `kmax` of {kmax} at ports of {rate}");
        let help = "one of them scales with a port's rate and the other does not: give both in `ecn` of `[switch]`";
        report.problem("scenario::conflict", site, message, "thresholds that cross", help);
    }
}

/// Reads whether ports to hosts mark. It is not written to the resolved scenario if they do.
fn read_to_hosts(e: &mut Section<'_>, default: bool) -> bool {
    let to_hosts = e.get("to_hosts", default).value;
    if default && to_hosts {
        e.out.values.pop();
    }
    to_hosts
}

/// Reads the weight of a packet in the average of a queue. It is not written to the resolved scenario if there is none.
fn read_average(e: &mut Section<'_>, default: Option<f64>) -> Option<f64> {
    let OrWord::Value(weight) =
        e.value_or::<f64>("average", &["none"], default.map_or(OrWord::Word(0), OrWord::Value)).value
    else {
        e.out.values.pop();
        return None;
    };
    if !(0.0 < weight && weight <= 1.0) {
        let help = "write the weight of a packet, as `average = 0.2`";
        e.problem_at("scenario::out_of_range", "average", format!("`average = {weight}` is out of range"), help);
    }
    Some(weight)
}

/// Reads the share of a port's rate at which its phantom queue drains; `None` if marking uses the real queue.
fn read_phantom(e: &mut Section<'_>, default: Option<f64>) -> Option<f64> {
    if default.is_none() {
        e.node("phantom")?;
    }
    let default = default.map_or(OrWord::Word(0), OrWord::Value);
    let OrWord::Value(share) = e.value_or::<f64>("phantom", &["none"], default).value else { return None };
    if !(0.0 < share && share <= 1.0) {
        let help = "write the share of the line rate at which it drains, as `phantom = 0.95`";
        e.problem_at("scenario::out_of_range", "phantom", format!("`phantom = {share}` is out of range"), help);
    }
    Some(share)
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
    for link in &topology.links {
        for end in [link.a, link.b].into_iter().filter(|&end| !topology.is_host(end)) {
            *total_bps.entry(end.index()).or_default() += link.rate.as_bps();
        }
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

/// Checks that packets dropped by the fabric are retransmitted, and that its buffer holds packets.
pub(super) fn check_recovery(root: &Section<'_>, fabric: &FabricConfig, transport: &TransportConfig) {
    if !fabric.pauses_by_ingress() && transport.rto.is_none() {
        let drops = if fabric.pfc == Pfc::Off { "a fabric without `pfc`" } else { "a fabric without headroom" };
        let message = format!("{drops} drops packets, and without `rto` a lost last packet is never sent again");
        let help = "set `rto = \"4ms\"` in `[transport]`, or `pfc = true` in `[switch]`";
        root.problem_at("scenario::conflict", if root.has("switch") { "switch" } else { "transport" }, message, help);
    }
    if fabric.egress_alpha.is_some() && transport.rto.is_none() {
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

#[cfg(test)]
mod tests {
    use fairrate_control::PacingNeeds;

    use super::*;

    /// An algorithm built on DCTCP, with DCTCP's needs, gets DCTCP's marking.
    #[test]
    fn marks_go_by_needs_and_not_by_name() {
        let dctcp = AlgorithmConfig::by_name("dctcp", Profile::Paper).expect("it is registered").needs();
        let derived = Needs { pacing: PacingNeeds { pacing_credit: 1, ..dctcp.pacing }, ..dctcp };
        let step = default_ecn(Profile::Paper, &derived).expect("it reads marks");
        assert_eq!((step.kmin, step.kmax, step.pmax), (Bytes::new(30_000), Bytes::new(30_000), 1.0));
        let per = Some(Rate::from_gbps(10));
        assert_eq!((step.kmin_per, step.kmax_per, step.at), (per, per, MarkAt::Enqueue));
        let hull = AlgorithmConfig::by_name("hull", Profile::Paper).expect("it is registered").needs();
        assert_eq!(default_ecn(Profile::Paper, &hull), Some(EcnConfig { phantom: Some(0.95), ..PHANTOM }));
    }

    #[test]
    fn phantom_queues_have_hulls_thresholds_unless_the_file_has_others() {
        let head =
            "[topology]\nkind = \"star\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n[switch]\necn = ";
        let ecn = |text: &str| {
            let text = format!("{head}{{ phantom = {text} }}");
            let scenario =
                crate::Scenario::from_toml(&text, "x", std::path::Path::new("."), &crate::Overrides::default());
            scenario.expect("it reads").sim_config().fabric.ecn.expect("it marks")
        };
        let kb = |kb: u64| Bytes::new(1_000 * kb);
        assert_eq!(ecn("0.95"), EcnConfig { phantom: Some(0.95), ..PHANTOM });
        let own = EcnConfig { phantom: Some(0.9), kmin: kb(6), kmax: kb(9), kmin_per: None, kmax_per: None, ..PHANTOM };
        assert_eq!(ecn("0.9, kmin = \"6KB\", kmax = \"9KB\""), own);
        assert_eq!(ecn("\"none\"").phantom, None);
    }
}
