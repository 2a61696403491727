//! `host_queues` of `[topology]`: queues between hosts and their links.

use fairrate_sim::topology::{NODES_MAX, Topology};
use fairrate_sim::{Balance, Transport, TransportConfig};

use super::{Network, Shape};
use crate::error::{Report, Site};
use crate::reader::Section;
use crate::schema::host::Host;

/// Reads `host_queues = true`; returns its place. Shapes in which hosts have several ends or circuits do not have the
/// key.
pub(super) fn read(s: &mut Section<'_>, shape: &Shape, has_scale_up: bool) -> Option<Site> {
    if matches!(shape, Shape::Rdcn(_) | Shape::Cluster(_)) || !s.get("host_queues", false).value {
        return None;
    }
    let site = s.site_of("host_queues");
    if has_scale_up {
        let message = "queues of hosts are for hosts with one link, and GPUs have two";
        let help = "write `host_queues = false` or `scale_up = false`";
        s.problem_at("scenario::conflict", "host_queues", message, help);
    }
    Some(site)
}

/// Checks that no key needs hosts that are at their switches themselves, or NICs that take packets from flows.
pub(in crate::schema) fn check_network(report: &Report, network: &Network, balance: Balance, hosts: &[Host]) {
    let Some(site) = network.host_queues else { return };
    let problem = |message: String, help: &str| {
        report.problem("scenario::conflict", site, message, "`host_queues`", help);
    };
    let by_switches = match balance {
        Balance::Wcmp => Some("wcmp"),
        Balance::Conga(_) => Some("conga"),
        _ => None,
    };
    if let Some(name) = by_switches {
        let message = format!("`{name}` goes by the switches at which hosts are, and queues of hosts come between");
        problem(message, "write another `balance` in `[routing]`, or `host_queues = false`");
    }
    if hosts.iter().any(|host| host.config.nic_rate.is_some()) {
        let message =
            "a NIC below the rate of its link takes packets from flows, and with queues of hosts they have left them";
        problem(
            message.to_owned(),
            "remove `nic_rate` from `[[host]]` and lower the rate of the link, or write `host_queues = false`",
        );
    }
}

/// Checks that hosts with queues use TCP. A NIC for RDMA takes packets from flows itself.
pub(in crate::schema) fn check(report: &Report, network: &Network, transport: &TransportConfig) {
    let Some(site) = network.host_queues.filter(|_| !matches!(transport.kind, Transport::Tcp(_))) else { return };
    let message =
        format!("queues of hosts are for TCP: with `{}` the NIC takes packets from flows", transport.kind.name());
    let help = "write `kind = \"tcp\"` in `[transport]`, or `host_queues = false`";
    report.problem("scenario::conflict", site, message, "`host_queues`", help);
}

/// Adds the queues to a network.
pub(super) fn add(report: &Report, topology: &mut Topology, site: Site) {
    let n = topology.nodes.len() + topology.hosts().count();
    if NODES_MAX < n as u64 {
        let message = format!("with queues of hosts there are {n} nodes");
        let help = format!("fairrate takes networks up to {NODES_MAX} nodes");
        report.problem("scenario::bad_topology", site, message, "`host_queues`", help);
    } else {
        topology.queue_hosts();
    }
}
