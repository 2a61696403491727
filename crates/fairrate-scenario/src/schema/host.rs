//! `[host]` and `[[host]]`: hosts that are not ideal.

mod receive;

use fairrate_sim::{
    Distribution, FullBuffer, HostConfig, Jitter, NodeId, Noise, Pfc, SimConfig, Transport, TransportConfig,
};
use fairrate_units::{Bytes, Rate, Time};

use self::receive::read_receive;
use super::names::{Names, NodeName};
use super::traffic::hosts::read_hosts;
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};
use crate::tree::{Node, Value};

/// Largest delay of a host, and largest standard deviation of the logarithm of a lognormal one.
const MOST_DELAY: Time = Time::from_ms(1_000);
const MOST_SIGMA: f64 = 4.0;

/// A section that was read; its hosts are found later.
pub(super) struct Host {
    names: Option<Vec<NodeName>>,
    pub config: HostConfig,
    /// The place of the section, and that of `rx_buffer`.
    site: Site,
    buffer_site: Site,
}

/// Reads `[host]`, or all of `[[host]]`. With `pfc` a full receive buffer pauses by default.
pub(super) fn read(root: &mut Section<'_>, pfc: &Pfc) -> Vec<Host> {
    let sections = match root.peek("host") {
        Some(Node { value: Value::Table(_), .. }) => vec![root.child("host", "`[host]`")],
        _ => root.children("host"),
    };
    let (mut hosts, mut out) = (Vec::new(), Vec::new());
    for mut s in sections {
        let names = read_hosts(&mut s, "hosts");
        let processing = read_delay(&mut s, "processing");
        let (jitter, noise) = (read_jitter(&mut s), read_noise(&mut s));
        let nic_rate = read_nic_rate(&mut s);
        let receive = read_receive(&mut s, pfc);
        let config = HostConfig { hosts: Vec::new(), processing, jitter, noise, nic_rate, receive };
        hosts.push(Host { names, config, site: s.anchor.site, buffer_site: s.site_of("rx_buffer") });
        out.push(s.finish());
    }
    if !out.is_empty() {
        root.out.arrays.push(("host".into(), out));
    }
    hosts
}

/// Reads a delay of packets.
fn read_delay(s: &mut Section<'_>, key: &str) -> Time {
    let delay = s.get(key, Time::ZERO).value;
    check_delay(s, key, delay);
    delay
}

fn check_delay(s: &Section<'_>, key: &str, delay: Time) {
    if MOST_DELAY < delay {
        let message = format!("`{key}` of {delay} is too long");
        s.problem_at(
            "scenario::out_of_range",
            key,
            message,
            format!("write {MOST_DELAY} at most, as `{key} = \"2us\"`"),
        );
    }
}

/// Reads the inline table at `key`; `None` if there is none, or `false`. `example` shows one.
fn table<'a>(s: &mut Section<'a>, key: &str, example: &str) -> Option<Section<'a>> {
    match s.node(key) {
        None | Some(Node { value: Value::Bool(false), .. }) => {
            s.out.push(key, "false".into());
            None
        }
        Some(Node { value: Value::Table(table), site }) => {
            Some(Section::new(s.report, *site, format!("`{key}`"), Some(table)))
        }
        Some(node) => {
            let message = format!("expected a table for `{key}`, found {}", node.value.describe());
            s.problem_at("scenario::wrong_type", key, message, format!("write `{key} = {example}` or `{key} = false`"));
            None
        }
    }
}

/// Reads `jitter = { distribution = "exponential", mean = "2us" }`, or `false`.
fn read_jitter(s: &mut Section<'_>) -> Option<Jitter> {
    const EXAMPLE: &str = "{ distribution = \"exponential\", mean = \"2us\" }";
    const NAMES: [(&str, Distribution); 3] = [
        ("uniform", Distribution::Uniform),
        ("exponential", Distribution::Exponential),
        ("lognormal", Distribution::Lognormal(0.0)),
    ];
    let mut j = table(s, "jitter", EXAMPLE)?;
    if !j.has("distribution") {
        j.missing("distribution", "\"exponential\"");
    }
    let mut distribution = j.choice("distribution", &NAMES, Distribution::Exponential).value;
    let mean = j.require::<Time>("mean", "\"2us\"").value;
    check_delay(&j, "mean", mean);
    if mean == Time::ZERO {
        let help = "write for instance `mean = \"2us\"`, or `jitter = false`";
        j.problem_at("scenario::out_of_range", "mean", "a jitter of no time", help);
    }
    if let Distribution::Lognormal(_) = distribution {
        let sigma = j.require::<f64>("sigma", "0.5").value;
        if !(0.0 < sigma && sigma <= MOST_SIGMA) && j.has("sigma") {
            let help = format!("write a number above 0 and up to {MOST_SIGMA}, as `sigma = 0.5`");
            j.problem_at("scenario::out_of_range", "sigma", format!("`sigma = {sigma}` is out of range"), help);
        }
        distribution = Distribution::Lognormal(sigma);
    } else if j.node("sigma").is_some() {
        let help = "remove `sigma`, or write `distribution = \"lognormal\"`";
        j.problem_at("scenario::conflict", "sigma", "`sigma` is of the lognormal distribution alone", help);
    }
    s.out.push("jitter", j.finish().render_inline());
    Some(Jitter { distribution, mean })
}

/// Reads `noise = { period = "1ms", length = "20us" }`, or `false`.
fn read_noise(s: &mut Section<'_>) -> Option<Noise> {
    let mut n = table(s, "noise", "{ period = \"1ms\", length = \"20us\" }")?;
    let period = n.require::<Time>("period", "\"1ms\"").value;
    let length = n.require::<Time>("length", "\"20us\"").value;
    let are_given = n.has("period") && n.has("length");
    if are_given && length == Time::ZERO {
        let help = "write for instance `length = \"20us\"`, or `noise = false`";
        n.problem_at("scenario::out_of_range", "length", "a noise of no time", help);
    } else if are_given && (period < length * 2 || MOST_DELAY < length) {
        let message = format!("a host that stands still for {length} every {period}");
        let help = format!("let `length` be at most half of `period`, and {MOST_DELAY}");
        n.problem_at("scenario::out_of_range", "length", message, help);
    }
    s.out.push("noise", n.finish().render_inline());
    Some(Noise { period, length })
}

/// Reads `nic_rate = "90Gbps"`, or `"link"`.
fn read_nic_rate(s: &mut Section<'_>) -> Option<Rate> {
    match s.value_or::<Rate>("nic_rate", &["link"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(rate) => {
            check_rate(s, "nic_rate", rate);
            Some(rate)
        }
    }
}

/// Checks that a rate is above that of the slowest link.
fn check_rate(s: &Section<'_>, key: &str, rate: Rate) {
    if rate < Rate::from_bps(1_000) {
        let help = format!("write 1kbps at least, as `{key} = \"50Gbps\"`");
        s.problem_at("scenario::out_of_range", key, format!("`{key}` of {rate} is too slow"), help);
    }
}

/// Finds the hosts of all sections. Of several that name a host the last one holds.
pub(super) fn build(report: &Report, hosts: &[Host], names: &Names<'_>, all: &[NodeId]) -> Vec<HostConfig> {
    let found: Vec<Vec<NodeId>> = hosts
        .iter()
        .map(|host| match &host.names {
            None => all.to_vec(),
            Some(list) => list.iter().flat_map(|name| names.hosts(name, report)).collect(),
        })
        .collect();
    let n = all.iter().chain(found.iter().flatten()).map(|node| node.index() + 1).max().unwrap_or(0);
    let mut last = vec![usize::MAX; n];
    for (at, nodes) in found.iter().enumerate() {
        for node in nodes {
            last[node.index()] = at;
        }
    }
    let own = |at: usize| (0..n as u32).map(NodeId).filter(|node| last[node.index()] == at).collect();
    hosts.iter().enumerate().map(|(at, host)| HostConfig { hosts: own(at), ..host.config.clone() }).collect()
}

/// Checks the receive buffers of `config`, whose hosts are those of the sections `hosts`.
pub(super) fn check(report: &Report, hosts: &[Host], config: &SimConfig) {
    for (host, built) in hosts.iter().zip(&config.hosts) {
        if let Some(buffer) = &built.receive {
            let needed = built.hosts.iter().filter_map(|&node| config.host_headroom(node)).max().unwrap_or_default();
            check_buffer(report, host, needed, config);
            let mut levels = built.hosts.iter().map(|&node| config.pause_level(node, buffer.size));
            let loses = match buffer.full {
                FullBuffer::Drop => true,
                FullBuffer::Pause { at: Some(at), .. } => levels.any(|level| level < at),
                FullBuffer::Pause { at: None, .. } => false,
            };
            if loses {
                check_recovery(report, host.site, config);
            }
        }
    }
}

/// Checks that a receive buffer holds a packet, and `headroom` bytes besides if it pauses.
fn check_buffer(report: &Report, host: &Host, headroom: Bytes, config: &SimConfig) {
    let Some(buffer) = &host.config.receive else { return };
    let packet = config.longest_packet();
    let (least, what) = match buffer.full {
        FullBuffer::Drop => (packet, "a packet".to_owned()),
        FullBuffer::Pause { at: Some(at), .. } => (at.max(packet), format!("`rx_pause_at` and packets of {packet}")),
        FullBuffer::Pause { at: None, .. } => {
            (headroom + packet, format!("a packet and {headroom} that still come after a pause"))
        }
    };
    if buffer.size < least {
        let message = format!("a receive buffer of {} does not hold {what}", buffer.size);
        let help = format!("write `rx_buffer = \"{least}\"` or more");
        report.problem("scenario::conflict", host.buffer_site, message, "too small", help);
    }
}

/// Checks that lost packets are retransmitted.
fn check_recovery(report: &Report, site: Site, config: &SimConfig) {
    let is_patient = |t: &TransportConfig| !matches!(t.kind, Transport::Tcp(_)) && t.rto.is_none();
    if config.stacks().any(|(transport, _)| is_patient(transport)) {
        let message = "a host that drops packets, and without `rto` a lost last packet is never sent again";
        let help = "set `rto = \"4ms\"` in `[transport]`, or `rx_full = \"pause\"`";
        report.problem("scenario::conflict", site, message, "drops packets", help);
    }
}
