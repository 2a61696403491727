//! Nodes and ports by their names in a scenario.

mod pattern;

use std::collections::{BTreeSet, HashMap, HashSet};

use fairrate_sim::topology::Topology;
use fairrate_sim::{NodeId, PortId};
use fairrate_text::{did_you_mean, nearest, one_of};

use self::pattern::{is_pattern, matches, range};
use crate::error::{Report, Site};
use crate::reader::{Section, list};
use crate::scalar::quote;
use crate::tree::{Node, Value};

/// The name of a node in the file.
#[derive(Clone, Debug)]
pub(crate) struct NodeName {
    pub name: String,
    pub site: Site,
}

impl NodeName {
    /// Reads a name, or an id in a topology file.
    pub fn read(key: &str, node: &Node, report: &Report) -> Self {
        let name = match &node.value {
            Value::Text(name) => name.clone(),
            Value::Integer(id) if 0 <= *id => id.to_string(),
            other => {
                let message = format!("expected a node for `{key}`, found {}", other.describe());
                report.problem(
                    "scenario::wrong_type",
                    node.site,
                    message,
                    format!("`{key}`"),
                    "write a node by name or id, as \"h0\" or 0",
                );
                String::new()
            }
        };
        Self { name, site: node.site }
    }

    /// Returns `true` if the name stands for several nodes.
    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.name)
    }

    /// Returns the name as TOML.
    pub fn write(&self) -> String {
        quote(&self.name)
    }
}

/// Names of ports in the file.
#[derive(Clone, Debug)]
pub(crate) enum PortNames {
    /// Single ports or patterns.
    List(Vec<(String, Site)>),
    /// All ports of a link set; `key` is for messages.
    Set { key: &'static str, name: String, site: Site },
}

impl PortNames {
    /// Reads `key = ["a->b", ...]`, a single pattern, or the name of a link set. Messages call them `what`.
    pub fn read(s: &mut Section<'_>, key: &'static str, what: &str) -> Self {
        if let Some(Node { value: Value::Text(name), site }) = s.node(key) {
            s.out.push(key, quote(name));
            if name.contains("->") {
                return Self::List(vec![(name.clone(), *site)]);
            }
            return Self::Set { key, name: name.clone(), site: *site };
        }
        let help = format!("write `{key} = [\"tor0->h0\", \"tor0->h1\"]`");
        let mut ports = Vec::new();
        let is_empty = |node: &Node| matches!(&node.value, Value::Array(items) if items.is_empty());
        if s.node(key).is_none_or(is_empty) {
            let message = format!("{} names no {what}", s.name);
            s.report.problem(
                "scenario::missing_key",
                s.site_of(key),
                message,
                format!("no `{key}` here"),
                help.clone(),
            );
        }
        for node in s.items(key).unwrap_or_default() {
            if let Value::Text(port) = &node.value {
                ports.push((port.clone(), node.site));
                continue;
            }
            let message = format!("expected a port, found {}", node.value.describe());
            s.report.problem("scenario::wrong_type", node.site, message, format!("`{key}`"), help.clone());
        }
        s.out.push(key, list(ports.iter().map(|p| quote(&p.0))));
        Self::List(ports)
    }

    /// Returns the ports; problems are added to `report`.
    pub fn find(&self, names: &Names<'_>, report: &Report) -> Vec<PortId> {
        let (key, name, site) = match self {
            Self::List(ports) => {
                let mut seen = HashSet::new();
                let found = ports.iter().flat_map(|(name, site)| names.ports(name, *site, report));
                return found.filter(|port| seen.insert(*port)).collect();
            }
            Self::Set { key, name, site } => (key, name, site),
        };
        names.topology.link_sets.get(name).cloned().unwrap_or_else(|| {
            let sets: Vec<&str> = names.topology.link_sets.keys().map(String::as_str).collect();
            let message = format!("this topology has no link set `{name}`");
            let question = did_you_mean(name, sets.iter().copied()).map_or_else(String::new, |question| question + " ");
            let help =
                format!("{question}write ports, as `{key} = [\"tor0->h0\", \"tor*->h*\"]`, or {}", one_of(&sets));
            report.problem("scenario::unknown_name", *site, message, format!("`{key}`"), help);
            Vec::new()
        })
    }
}

/// The nodes and ports of a network by name.
pub(crate) struct Names<'a> {
    topology: &'a Topology,
    by_name: HashMap<&'a str, NodeId>,
    ports: HashMap<(NodeId, NodeId), PortId>,
}

impl<'a> Names<'a> {
    pub fn new(topology: &'a Topology) -> Self {
        let by_name = (0u32..).zip(&topology.nodes).map(|(i, n)| (n.name.as_str(), NodeId(i))).collect();
        // In reverse, so that the name refers to the first of parallel links.
        let ports = (0..topology.n_ports() as u32).rev().map(PortId);
        let ports = ports.map(|p| ((topology.from(p), topology.to(p)), p)).collect();
        Self { topology, by_name, ports }
    }

    /// Returns the node with this name, or else with this id.
    fn find(&self, name: &str) -> Option<NodeId> {
        let by_id = || {
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
            let id = plain.then(|| name.parse().ok()).flatten().map(NodeId)?;
            (id.index() < self.topology.nodes.len()).then_some(id)
        };
        self.by_name.get(name).copied().or_else(by_id)
    }

    fn near(&self, name: &str) -> String {
        let all: Vec<&str> = self.topology.nodes.iter().map(|n| n.name.as_str()).collect();
        // A name that differs only in its number is no misspelling.
        let letters = |s: &str| s.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        match nearest(name, all.iter().copied()) {
            Some(near) if letters(near) == letters(name) && letters(name) != name => String::new(),
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        }
    }

    /// Returns a list of the nodes, for help texts.
    fn summary(&self) -> String {
        let hosts: Vec<NodeId> = self.topology.hosts().collect();
        let label = |id: NodeId| &self.topology.nodes[id.index()].name;
        let switches: Vec<&str> = self
            .topology
            .nodes
            .iter()
            .filter(|n| n.tier != fairrate_sim::topology::Tier::Host)
            .map(|n| n.name.as_str())
            .collect();
        let span = |first: &str, last: &str| {
            if first == last { format!("`{first}`") } else { format!("`{first}` to `{last}`") }
        };
        match (hosts.first(), hosts.last(), switches.first(), switches.last()) {
            (Some(a), Some(b), Some(c), Some(d)) => {
                format!("hosts are {}, switches {}", span(label(*a), label(*b)), span(c, d))
            }
            _ => String::new(),
        }
    }

    /// Returns the host with this name; problems are added to `report`.
    pub fn host(&self, name: &NodeName, report: &Report) -> NodeId {
        match self.find(&name.name) {
            Some(id) if self.topology.is_host(id) => {
                self.check_is_named(name, id, report);
                id
            }
            Some(_) => {
                let message = format!("`{}` is a switch, not a host", name.name);
                report.problem("scenario::unknown_node", name.site, message, "a switch", self.summary());
                NodeId(0)
            }
            None => {
                let message = format!("there is no node `{}`", name.name);
                report.problem(
                    "scenario::unknown_node",
                    name.site,
                    message,
                    "unknown node",
                    self.near(&name.name) + &self.summary(),
                );
                NodeId(0)
            }
        }
    }

    /// Reports an `end` that is no host, but another end point of one.
    fn check_is_named(&self, name: &NodeName, end: NodeId, report: &Report) {
        if let Some((kind, host)) = self.topology.hidden_end(end) {
            let (message, help) = (format!("`{}` is {kind}", name.name), format!("name its host, `{}`", host.name));
            report.problem("scenario::unknown_node", name.site, message, "no host", help);
        }
    }

    /// Returns the hosts that a name stands for: the host itself, the hosts of a ToR, the NICs of a server whose
    /// scale-up switch it is, or those of all hosts and ToRs that match a pattern, each once and in the order of the
    /// network. Problems are added to `report`.
    pub fn hosts(&self, name: &NodeName, report: &Report) -> Vec<NodeId> {
        let found: Vec<NodeId> = match self.find(&name.name) {
            Some(node) if self.topology.hidden_end(node).is_some() => return vec![self.host(name, report)],
            Some(node) => vec![node],
            None if name.is_pattern() => self.matching(&name.name),
            None => return vec![self.host(name, report)],
        };
        if !self.has_ends(&name.name, name.site, report) {
            return Vec::new();
        }
        let hosts: BTreeSet<NodeId> = found.iter().flat_map(|&node| self.hosts_at(node)).collect();
        if hosts.is_empty() {
            let (message, label) = match found[..] {
                [] => (format!("no node is called `{}`", name.name), "no such host"),
                [_] => (format!("switch `{}` has no hosts", name.name), "no ToR"),
                _ => (format!("no switch of `{}` has hosts", name.name), "no ToR"),
            };
            let near = if found.is_empty() { self.near(&name.name.replace('*', "0")) } else { String::new() };
            report.problem("scenario::unknown_node", name.site, message, label, near + &self.summary());
        }
        hosts.into_iter().collect()
    }

    /// Returns the host `node` itself, or the hosts with a link to the switch `node`.
    fn hosts_at(&self, node: NodeId) -> Vec<NodeId> {
        if self.topology.is_host(node) {
            return vec![self.topology.nic(node)];
        }
        let at = self.topology.host_links().filter(|(_, link)| link.a == node || link.b == node);
        at.map(|(end, _)| self.topology.nic(end)).collect()
    }

    /// Returns the nodes whose names match a pattern, in the order of the network.
    fn matching(&self, pattern: &str) -> Vec<NodeId> {
        let nodes = (0..self.topology.nodes.len() as u32).map(NodeId);
        nodes.filter(|node| matches(pattern, &self.topology.nodes[node.index()].name)).collect()
    }

    /// Returns `true` if `pattern` is no range, or a range from one node to another; reports an end that is none.
    fn has_ends(&self, pattern: &str, site: Site, report: &Report) -> bool {
        let Some(range) = range(pattern).filter(|_| !self.by_name.contains_key(pattern)) else { return true };
        let lost = [range.first, range.last].into_iter().find(|end| !self.by_name.contains_key(end));
        if let Some(end) = lost {
            let message = format!("there is no node `{end}`, an end of `{pattern}`");
            report.problem("scenario::unknown_node", site, message, "no such end", self.near(end) + &self.summary());
        }
        lost.is_none()
    }

    /// Returns the egress ports of the switches with this name, or of those that match a pattern. Problems are added to
    /// `report`.
    pub fn links_of_switches(&self, name: &str, site: Site, report: &Report) -> Vec<PortId> {
        if !self.has_ends(name, site, report) {
            return Vec::new();
        }
        let is_switch = |node: &NodeId| !self.topology.is_host(*node);
        let nodes = || (0..self.topology.nodes.len() as u32).map(NodeId);
        let named = |node: &NodeId| matches(name, &self.topology.nodes[node.index()].name);
        let mut found: HashSet<NodeId> = nodes().filter(is_switch).filter(named).collect();
        if found.is_empty() {
            found.extend(self.find(name).filter(is_switch));
        }
        if found.is_empty() {
            let is_host = nodes().any(|node| named(&node));
            let (message, label) = if is_host {
                (format!("`{name}` is a host, not a switch"), "a host")
            } else {
                (format!("there is no switch `{name}`"), "unknown switch")
            };
            let help = self.near(&name.replace('*', "0")) + &self.summary();
            report.problem("scenario::unknown_node", site, message, label, help);
        }
        let ports = (0..self.topology.n_ports() as u32).map(PortId);
        ports.filter(|&port| found.contains(&self.topology.from(port))).collect()
    }

    /// Returns the egress ports that match `from->to`, in the order of the network: both are names of nodes or
    /// patterns.
    fn ports(&self, text: &str, site: Site, report: &Report) -> Vec<PortId> {
        let ends = text.split_once("->").map(|(from, to)| (from.trim(), to.trim()));
        let Some((from, to)) = ends.filter(|(from, to)| is_pattern(from) || is_pattern(to)) else {
            return self.port(text, site, report).into_iter().collect();
        };
        if ![from, to].into_iter().all(|end| self.has_ends(end, site, report)) {
            return Vec::new();
        }
        let name = |node: NodeId| self.topology.nodes[node.index()].name.as_str();
        let ports = || (0..self.topology.n_ports() as u32).map(PortId);
        let leaves = |port: &PortId| matches(from, name(self.topology.from(*port)));
        let found: Vec<PortId> = ports().filter(leaves).filter(|p| matches(to, name(self.topology.to(*p)))).collect();
        if found.is_empty() {
            let lost = [from, to].into_iter().find(|end| !self.topology.nodes.iter().any(|n| matches(end, &n.name)));
            let message = lost.map_or_else(
                || format!("no link goes from `{from}` to `{to}`"),
                |end| format!("no node is called `{end}`"),
            );
            let near = lost.map_or_else(String::new, |end| self.near(&end.replace('*', "0")));
            report.problem("scenario::unknown_port", site, message, "no such port", near + &self.summary());
        }
        found
    }

    /// Returns the egress port `from->to`; problems are added to `report`.
    fn port(&self, text: &str, site: Site, report: &Report) -> Option<PortId> {
        let problem = |message: String, label: &str, help: String| {
            report.problem("scenario::unknown_port", site, message, label, help);
        };
        let Some((from, to)) = text.split_once("->") else {
            let is_set = self.topology.link_sets.contains_key(text);
            let set = if is_set { format!("a link set is probed by `queues = \"{text}\"`; ") } else { String::new() };
            let help = set + "write an egress port as \"FROM->TO\", as \"tor0->h16\"";
            problem(format!("`{text}` is no port"), "no `->` in here", help);
            return None;
        };
        let node = |name: &str| {
            let found = self.find(name.trim());
            if found.is_none() {
                let help = self.near(name.trim()) + &self.summary();
                problem(format!("there is no node `{}`", name.trim()), "unknown node", help);
            }
            found
        };
        let (from, to) = (node(from), node(to));
        let (from, to) = (from?, to?);
        let found = self.ports.get(&(from, to)).copied();
        if found.is_none() {
            let label = |id: NodeId| &self.topology.nodes[id.index()].name;
            let mut peers: Vec<NodeId> = self.ports.keys().filter(|k| k.0 == from).map(|k| k.1).collect();
            peers.sort();
            let shown: Vec<String> =
                peers.iter().take(4).map(|&p| format!("`{}->{}`", label(from), label(p))).collect();
            let more = if shown.len() < peers.len() { " ..." } else { "" };
            let help = format!("ports of `{}` are {}{more}", label(from), shown.join(", "));
            problem(format!("there is no link from `{}` to `{}`", label(from), label(to)), "no such port", help);
        }
        found
    }
}
