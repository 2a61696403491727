//! The hosts that are not ideal.

use std::collections::BTreeSet;

use fairrate_sim::{Distribution, FullBuffer, HostConfig, NodeId, ReceiveBuffer, SimConfig};
use fairrate_units::{Rate, Time};
use serde::Serialize;

/// Largest number of hosts that are named.
const MAX_NAMED: usize = 3;

/// Hosts that one section describes, and what is not ideal about them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ImperfectHosts {
    /// Number of hosts.
    pub n: usize,
    /// Names of the first of them.
    pub first: Vec<String>,
    /// Differences from ideal hosts, in words.
    pub effects: Vec<String>,
}

/// Returns the hosts that are not ideal, section by section.
pub(super) fn imperfect(config: &SimConfig) -> Vec<ImperfectHosts> {
    let hosts = |host: &HostConfig| ImperfectHosts {
        n: host.hosts.len(),
        first: host.hosts.iter().take(MAX_NAMED).map(|&node| name(config, node)).collect(),
        effects: effects(config, host),
    };
    config.hosts.iter().filter(|host| !host.hosts.is_empty()).map(hosts).collect()
}

fn name(config: &SimConfig, node: NodeId) -> String {
    config.topology.nodes[node.index()].name.clone()
}

fn effects(config: &SimConfig, host: &HostConfig) -> Vec<String> {
    let mut all = Vec::new();
    if host.processing != Time::ZERO {
        all.push(format!("act {} after arrivals", host.processing));
    }
    if let Some(jitter) = host.jitter {
        let distribution = match jitter.distribution {
            Distribution::Uniform => "uniform".to_owned(),
            Distribution::Exponential => "exponential".to_owned(),
            Distribution::Lognormal(sigma) => format!("lognormal (sigma {sigma})"),
        };
        all.push(format!("{distribution} jitter of {} on average", jitter.mean));
    }
    if let Some(noise) = host.noise {
        all.push(format!("stand still for {} about every {}", noise.length, noise.period));
    }
    let links = rates(config, host);
    if let Some(rate) = host.nic_rate {
        all.push(format!("send at {rate} over {}", of_links(&links, rate)));
    }
    if let Some(buffer) = &host.receive {
        all.extend(receive(config, host, buffer, &links));
    }
    if all.is_empty() {
        all.push("are ideal".to_owned());
    }
    all
}

/// Returns the rates of the links of hosts.
fn rates(config: &SimConfig, host: &HostConfig) -> BTreeSet<Rate> {
    config.topology.host_links().filter(|(of, _)| host.hosts.contains(of)).map(|(_, link)| link.rate).collect()
}

/// Returns the rates of links beside `rate`, which may be less.
fn of_links(links: &BTreeSet<Rate>, rate: Rate) -> String {
    let text: Vec<String> = links.iter().map(ToString::to_string).collect();
    let is_slower = links.first().is_none_or(|&least| rate < least);
    format!("links of {}{}", text.join(" and "), if is_slower { "" } else { ", which is no limit" })
}

fn receive(config: &SimConfig, host: &HostConfig, buffer: &ReceiveBuffer, links: &BTreeSet<Rate>) -> Vec<String> {
    let rate = match buffer.rates[..] {
        [(_, rate)] => rate.to_string(),
        _ => format!("{} to {}, in {} steps", buffer.slowest(), buffer.fastest(), buffer.rates.len()),
    };
    let drain = format!("drain data into memory at {rate} from {}", of_links(links, buffer.slowest()));
    let full = match buffer.full {
        FullBuffer::Drop => format!("drop what a buffer of {} has no room for", buffer.size),
        FullBuffer::Pause { at, resume } => {
            let levels = host.hosts.iter().map(|&node| config.pause_levels(node, buffer.size, at, resume));
            let [at, resume] = levels.min().unwrap_or_default();
            format!("pause their switches above {at} of {}, until {resume}", buffer.size)
        }
    };
    let penalty =
        buffer.penalty_from.map(|from| format!("ask senders of Ultra Ethernet for a penalty from {from} of it on"));
    [drain, full].into_iter().chain(penalty).collect()
}
