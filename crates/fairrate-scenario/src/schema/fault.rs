//! `[[fault]]`: faults of links, and of all links of a switch.

use std::collections::BTreeSet;

use fairrate_sim::topology::Topology;
use fairrate_sim::{BurstLoss, FaultConfig, FaultPackets, Flap, PortId, Transport, TransportConfig};
use fairrate_units::Time;

use super::names::{Names, PortNames};
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section, list};
use crate::scalar::quote;
use crate::tree::{Node, Value};

/// A fault that was read; its ports are found later.
pub(super) struct Fault {
    links: Option<PortNames>,
    /// Names of switches, or patterns, all of whose links are affected in both directions.
    switches: Vec<(String, Site)>,
    both_ways: bool,
    config: FaultConfig,
}

/// Reads all faults.
pub(super) fn read(root: &mut Section<'_>, transport: &TransportConfig) -> Vec<Fault> {
    let (mut faults, mut out) = (Vec::new(), Vec::new());
    for mut s in root.children("fault") {
        let switches = read_switches(&mut s);
        let links = (switches.is_empty() || s.has("links")).then(|| PortNames::read(&mut s, "links", "links"));
        let config = read_config(&mut s);
        // A link that goes down does so in both directions.
        let both_ways = s.get("both_ways", config.flap.is_some()).value;
        check(&s, &config, transport);
        faults.push(Fault { links, switches, both_ways, config });
        out.push(s.finish());
    }
    if !out.is_empty() {
        root.out.arrays.push(("fault".into(), out));
    }
    faults
}

/// Reads `switches = ["spine0", "agg*"]`.
fn read_switches(s: &mut Section<'_>) -> Vec<(String, Site)> {
    let mut switches = Vec::new();
    for node in s.items("switches").unwrap_or_default() {
        if let Value::Text(name) = &node.value {
            switches.push((name.clone(), node.site));
            continue;
        }
        let message = format!("expected the name of a switch, found {}", node.value.describe());
        let help = "write names or patterns, as `switches = [\"spine0\", \"agg*\"]`";
        s.report.problem("scenario::wrong_type", node.site, message, "`switches`", help);
    }
    if s.has("switches") {
        s.out.push("switches", list(switches.iter().map(|switch| quote(&switch.0))));
    }
    switches
}

fn read_config(s: &mut Section<'_>) -> FaultConfig {
    let packets = [
        ("all", FaultPackets::All),
        ("data", FaultPackets::Data),
        ("acks", FaultPackets::Acks),
        ("control", FaultPackets::Control),
    ];
    FaultConfig {
        ports: Vec::new(),
        packets: s.choice("packets", &packets, FaultPackets::All).value,
        start: s.get("start", Time::ZERO).value,
        stop: time_or(s, "stop", "never"),
        loss: probability(s, "loss", 0.0),
        burst: read_burst(s),
        corrupt: probability(s, "corrupt", 0.0),
        duplicate: probability(s, "duplicate", 0.0),
        reorder: probability(s, "reorder", 0.0),
        reorder_delay: s.get("reorder_delay", Time::ZERO).value,
        jitter: s.get("jitter", Time::ZERO).value,
        rate: read_rate(s),
        flap: read_flap(s),
    }
}

/// Reads a time, or a `word` that stands for none: [`Time::MAX`].
fn time_or(s: &mut Section<'_>, key: &str, word: &'static str) -> Time {
    match s.value_or::<Time>(key, &[word], OrWord::Word(0)).value {
        OrWord::Value(time) => time,
        OrWord::Word(_) => Time::MAX,
    }
}

fn probability(s: &mut Section<'_>, key: &str, default: f64) -> f64 {
    let p = s.get(key, default).value;
    if !(0.0..=1.0).contains(&p) {
        let help = format!("write a number from 0 to 1, as `{key} = 0.001`");
        s.problem_at("scenario::out_of_range", key, format!("`{key} = {p}` is no probability"), help);
    }
    p
}

/// Reads the share of its rate that a link has, above zero and up to 1.
fn read_rate(s: &mut Section<'_>) -> f64 {
    let share = s.get("rate", 1.0).value;
    if !(0.0 < share && share <= 1.0) {
        let help = "write a share above zero, as `rate = 0.25`; links without any are down: `down_at = \"0s\"`";
        s.problem_at("scenario::out_of_range", "rate", format!("`rate = {share}` is no share of a link's rate"), help);
        return 1.0;
    }
    share
}

/// Reads `burst = { good = 1000, bad = 10 }`, or `false`.
fn read_burst(s: &mut Section<'_>) -> Option<BurstLoss> {
    let (site, table) = match s.node("burst") {
        None | Some(Node { value: Value::Bool(false), .. }) => {
            s.out.push("burst", "false".into());
            return None;
        }
        Some(Node { value: Value::Table(table), site }) => (*site, table),
        Some(node) => {
            let message = format!("expected the lengths of states for `burst`, found {}", node.value.describe());
            let help = "write `burst = { good = 1000, bad = 10 }` or `burst = false`";
            s.problem_at("scenario::wrong_type", "burst", message, help);
            return Some(BurstLoss { good_packets: 1.0, bad_packets: 1.0, loss: 0.0 });
        }
    };
    let mut b = Section::new(s.report, site, "`burst`", Some(table));
    let mut length = |key: &str, example: &str| {
        let packets = b.require::<f64>(key, example).value;
        if !(1.0..=1e15).contains(&packets) && b.has(key) {
            let help = format!("a state lasts one packet at least, as `{key} = {example}`");
            b.problem_at("scenario::out_of_range", key, format!("`{key} = {packets}` is out of range"), help);
        }
        packets
    };
    let (good_packets, bad_packets) = (length("good", "1000"), length("bad", "10"));
    let loss = probability(&mut b, "bad_loss", 1.0);
    s.out.push("burst", b.finish().render_inline());
    Some(BurstLoss { good_packets, bad_packets, loss })
}

/// Reads `down_at`, `up_at` and `period`.
fn read_flap(s: &mut Section<'_>) -> Option<Flap> {
    let (down_at, up_at) = (time_or(s, "down_at", "never"), time_or(s, "up_at", "never"));
    let period = Some(time_or(s, "period", "once")).filter(|&period| period < Time::MAX);
    let conflict = |key: &str, message: String, help: &str| s.problem_at("scenario::conflict", key, message, help);
    if down_at == Time::MAX {
        for (key, given) in [("up_at", up_at < Time::MAX), ("period", period.is_some())] {
            if given {
                conflict(key, format!("`{key}` of links that never go down"), "add for instance `down_at = \"1ms\"`");
            }
        }
        return None;
    }
    if up_at <= down_at {
        conflict(
            "up_at",
            format!("links that go down at {down_at} are up at {up_at}"),
            "let `up_at` be after `down_at`",
        );
    } else if let Some(period) = period.filter(|&period| period <= up_at - down_at) {
        let message = format!("links are to go down every {period}, but each time for longer");
        conflict("period", message, "let `period` be longer than from `down_at` to `up_at`, and say when that is");
    }
    Some(Flap { down_at, up_at, period })
}

fn check(s: &Section<'_>, c: &FaultConfig, transport: &TransportConfig) {
    let conflict = |key: &str, message: &str, help: &str| s.problem_at("scenario::conflict", key, message, help);
    let reorders = 0.0 < c.reorder;
    if reorders != (Time::ZERO < c.reorder_delay) {
        let (key, help) = if reorders {
            ("reorder", "say how much later: `reorder_delay = \"10us\"`")
        } else {
            ("reorder_delay", "say how often: `reorder = 0.01`")
        };
        conflict(key, "`reorder` and `reorder_delay` go together", help);
    }
    if c.stop <= c.start {
        let key = if s.has("stop") { "stop" } else { "start" };
        conflict(key, &format!("a fault from {} until {}", c.start, c.stop), "let `stop` be after `start`");
    }
    let loses = 0.0 < c.loss + c.corrupt || c.burst.is_some();
    if !(loses || reorders || 0.0 < c.duplicate || Time::ZERO < c.jitter || c.rate != 1.0 || c.flap.is_some()) {
        let help = "add for instance `loss = 0.001` or `down_at = \"1ms\"`";
        let message = "`[[fault]]` does nothing";
        s.report.problem("scenario::missing_key", s.anchor.site, message, "no fault here", help);
    }
    let loses = loses && c.packets != FaultPackets::Control || c.flap.is_some();
    if loses {
        check_recovery(s.report, s.anchor.site, transport);
    }
}

/// Checks that lost packets are retransmitted.
fn check_recovery(report: &Report, site: Site, transport: &TransportConfig) {
    if !matches!(transport.kind, Transport::Tcp(_)) && transport.rto.is_none() {
        let help = "set `rto = \"4ms\"` in `[transport]`";
        let message = "a link that loses packets, and without `rto` a lost last packet is never sent again";
        report.problem("scenario::conflict", site, message, "loses packets", help);
    }
}

/// Finds the ports of all faults.
pub(super) fn build(report: &Report, faults: Vec<Fault>, names: &Names<'_>) -> Vec<FaultConfig> {
    let build = |fault: Fault| {
        let ports = fault.links.map_or_else(Vec::new, |links| links.find(names, report));
        let back: Vec<PortId> = ports.iter().filter(|_| fault.both_ways).map(|port| port.reverse()).collect();
        let of_switches = fault.switches.iter().flat_map(|(name, site)| names.links_of_switches(name, *site, report));
        let of_switches: Vec<PortId> = of_switches.flat_map(|port| [port, port.reverse()]).collect();
        let ports: BTreeSet<PortId> = ports.into_iter().chain(back).chain(of_switches).collect();
        FaultConfig { ports: ports.into_iter().collect(), ..fault.config }
    };
    faults.into_iter().map(build).collect()
}

/// Returns the faults of a topology file with error rates: one for each rate, in both directions, for all packets.
pub(super) fn of_topology(
    report: &Report,
    site: Site,
    topology: &Topology,
    transport: &TransportConfig,
) -> Vec<FaultConfig> {
    if !topology.error_rates.is_empty() {
        check_recovery(report, site, transport);
    }
    let mut faults: Vec<FaultConfig> = Vec::new();
    for &(port, loss) in &topology.error_rates {
        match faults.iter_mut().find(|fault| fault.loss == loss) {
            Some(fault) => fault.ports.extend([port, port.reverse()]),
            None => faults.push(FaultConfig { ports: vec![port, port.reverse()], loss, ..FaultConfig::NONE }),
        }
    }
    faults
}
