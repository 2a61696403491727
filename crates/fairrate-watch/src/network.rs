//! The network of a run, and the places of its nodes on the page.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::{Component, Path};

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::topology::{Tier, Topology};
use fairrate_sim::{NodeId, PortId};
use serde::Serialize;

use crate::files;
use crate::run::Problem;

/// Largest length of a scenario, in bytes.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;
/// Largest length of a topology file, in bytes.
const TOPOLOGY_BYTES_MAX: u64 = 64 << 20;

/// The parts without which no scenario is complete, and which its network does not depend on. Queues of hosts need TCP.
const OTHERWISE: &str = "duration = '1ms'\ntransport = { kind = 'tcp', cc = 'line-rate' }\n\
                         [[traffic]]\nkind = 'permutation'\nbytes = '1KB'\n";

/// The transport that networks with a central allocator have.
const TRANSPORT: [(&str, &str); 2] = [("cc", "flowtune"), ("kind", "tcp")];

/// A network with the places of its nodes.
#[derive(Clone, Debug, Serialize)]
pub struct Network {
    /// The shape, as `fat-tree`.
    pub kind: String,
    /// The name of each node.
    pub nodes: Vec<String>,
    /// The ends of each link. Port 2l sends from the first end of link l, and port 2l + 1 from the second.
    pub links: Vec<[u32; 2]>,
    /// The rate of each link, in bit/s.
    pub rates: Vec<u64>,
    /// The rows of the picture, from the lowest to the highest.
    pub rows: Vec<Row>,
    /// The number of each port by its name.
    #[serde(skip)]
    pub ports: HashMap<String, u32>,
}

/// A row of nodes of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The kind of the nodes, as `hosts`.
    pub name: &'static str,
    /// The places in the row from left to right: a switch each, or the hosts of a switch or server.
    pub slots: Vec<Slot>,
}

/// A place in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slot {
    /// The left end, from 0 to 1.
    pub from: f64,
    /// The right end.
    pub to: f64,
    /// The nodes there.
    pub nodes: Vec<u32>,
}

impl Network {
    /// Reads the network from the resolved scenario in the results directory `dir`.
    ///
    /// # Errors
    /// If the scenario has no network that can be built.
    pub fn read(dir: &Path) -> Result<Self, Problem> {
        let text = files::text(dir, "scenario.toml", SCENARIO_BYTES_MAX)?;
        let wrong = |why: String| Problem::new(&dir.join("scenario.toml"), &why);
        let scenario: toml::Table = toml::from_str(&text).map_err(|e| wrong(e.message().to_owned()))?;
        let table = scenario.get("topology").and_then(toml::Value::as_table);
        let table = table.ok_or_else(|| wrong("it has no [topology]".to_owned()))?;
        let kind = table.get("kind").and_then(toml::Value::as_str).unwrap_or_default();
        let named = table.get("path").and_then(toml::Value::as_str);
        let file = named.map(|name| topology_file(dir, name).map(|text| (name, text))).transpose()?;
        let attached: Vec<(&str, &str)> = file.iter().map(|(name, text)| (*name, text.as_str())).collect();
        // The rest of a scenario may name files elsewhere and load libraries: the page needs its network alone.
        let mut alone: toml::Table = toml::from_str(OTHERWISE).map_err(|e| wrong(e.message().to_owned()))?;
        alone.insert("topology".to_owned(), table.clone().into());
        if let Some(allocator) = scenario.get("allocator") {
            // It has a host of its own, and only this algorithm has it.
            alone.insert("allocator".to_owned(), allocator.clone());
            alone.insert(
                "transport".to_owned(),
                toml::Table::from_iter(TRANSPORT.map(|(key, value)| (key.to_owned(), value.into()))).into(),
            );
        }
        let read = Scenario::from_texts(&alone.to_string(), "scenario.toml", &attached, &Overrides::default());
        let topology = read.map_err(|e| wrong(e.to_string()))?.into_sim_config().topology;
        Ok(Self::of(kind, &topology))
    }

    /// Returns the network of `topology`, a shape called `kind`.
    pub fn of(kind: &str, topology: &Topology) -> Self {
        let ports = (0..topology.n_ports() as u32).rev().map(|port| (topology.port_name(PortId(port)), port));
        Self {
            kind: kind.to_owned(),
            nodes: topology.nodes.iter().map(|node| node.name.clone()).collect(),
            links: topology.links.iter().map(|link| [link.a.0, link.b.0]).collect(),
            rates: topology.links.iter().map(|link| link.rate.as_bps()).collect(),
            rows: rows(topology),
            ports: ports.collect(),
        }
    }

    /// Returns the rate of the port with the number `port`, in bit/s.
    pub fn rate(&self, port: usize) -> u64 {
        self.rates[port / 2]
    }

    /// Returns the name of the port with the number `port`.
    pub fn port_name(&self, port: usize) -> String {
        let [a, b] = self.links[port / 2].map(|node| &self.nodes[node as usize]);
        if port.is_multiple_of(2) { format!("{a}->{b}") } else { format!("{b}->{a}") }
    }
}

/// Returns the text of the topology file called `name`, which must lie in the results directory `dir` itself.
fn topology_file(dir: &Path, name: &str) -> Result<String, Problem> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => files::text(dir, name, TOPOLOGY_BYTES_MAX),
        _ => Err(Problem::new(
            &dir.join("scenario.toml"),
            &format!("its topology `{name}` is no file of that directory"),
        )),
    }
}

/// A kind of node with a row of its own, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    ServerSwitch,
    GpuPort,
    Host,
    Nic,
    Tor,
    Aggregation,
    Core,
}

impl Level {
    fn of(topology: &Topology, node: NodeId) -> Self {
        match topology.nodes[node.index()].tier {
            _ if topology.is_server_switch(node) => Self::ServerSwitch,
            _ if topology.is_scale_up(node) => Self::GpuPort,
            Tier::Host => Self::Host,
            Tier::Nic => Self::Nic,
            Tier::Tor => Self::Tor,
            Tier::Aggregation => Self::Aggregation,
            Tier::Core => Self::Core,
        }
    }

    /// Returns the name of the row of nodes of which `first` is one.
    fn name(self, first: &str) -> &'static str {
        match self {
            Self::ServerSwitch => "servers",
            Self::GpuPort => "GPUs",
            Self::Host => "hosts",
            Self::Nic => "NICs",
            Self::Tor => "ToRs",
            Self::Aggregation => "aggregation",
            Self::Core if first.starts_with("spine") => "spines",
            Self::Core => "core",
        }
    }
}

/// Returns the rows of a network: hosts under their switch, or in their server where it has several NICs on different
/// switches, pods side by side, and the core over all of them.
fn rows(topology: &Topology) -> Vec<Row> {
    let ids = (0..topology.nodes.len() as u32).map(NodeId);
    let mut by_level: BTreeMap<Level, Vec<NodeId>> = BTreeMap::new();
    for node in ids {
        by_level.entry(Level::of(topology, node)).or_default().push(node);
    }
    let neighbours = neighbours(topology);
    let on_level = |node: NodeId, level: Level| {
        neighbours[node.index()].iter().copied().filter(move |&other| Level::of(topology, other) == level)
    };
    // The hosts side by side: under their switches, or in their servers.
    let servers = by_level.get(&Level::ServerSwitch).cloned().unwrap_or_default();
    let server_of_nic = server_of_nics(topology, &by_level, &neighbours);
    let mut columns: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for &host in by_level.get(&Level::Host).into_iter().flatten() {
        let switch = || {
            let first = neighbours[host.index()].first().copied()?;
            if topology.is_queue(first) { on_level(first, Level::Tor).next() } else { Some(first) }
        };
        let place = server_of_nic.get(&host).copied().or_else(switch);
        columns.entry(place.unwrap_or(host)).or_default().push(host);
    }
    if servers.is_empty() {
        // Switches of the lowest tier without hosts have a place too.
        for &tor in by_level.get(&Level::Tor).into_iter().flatten() {
            columns.entry(tor).or_default();
        }
    }
    let mut extent: HashMap<NodeId, (f64, f64)> = HashMap::new();
    let n_columns = columns.len().max(1) as f64;
    for (i, (&place, hosts)) in columns.iter().enumerate() {
        let at = (i as f64 / n_columns, (i + 1) as f64 / n_columns);
        extent.extend(hosts.iter().copied().chain([place]).map(|node| (node, at)));
    }
    let mut rows = Vec::new();
    for (&level, nodes) in &by_level {
        let slots = match level {
            Level::Host => columns.values().filter(|hosts| !hosts.is_empty()).map(|h| slot(extent[&h[0]], h)).collect(),
            Level::Nic => {
                let queues = |hosts: &Vec<NodeId>| -> Vec<NodeId> {
                    hosts.iter().flat_map(|&host| on_level(host, Level::Nic)).collect()
                };
                columns
                    .values()
                    .map(|h| (h, queues(h)))
                    .filter(|(_, q)| !q.is_empty())
                    .map(|(h, q)| slot(extent[&h[0]], &q))
                    .collect()
            }
            Level::GpuPort => gpu_ports(&servers, &columns, &neighbours, &extent),
            Level::ServerSwitch => nodes.iter().map(|node| slot(extent[node], &[*node])).collect(),
            Level::Tor if servers.is_empty() => nodes.iter().map(|node| slot(extent[node], &[*node])).collect(),
            Level::Aggregation => {
                pods(nodes, |node| on_level(node, Level::Tor).filter_map(|tor| extent.get(&tor).copied()).collect())
            }
            Level::Tor | Level::Core => evenly((0.0, 1.0), nodes),
        };
        if level == Level::Tor && !servers.is_empty() {
            let at = slots.iter().flat_map(|slot: &Slot| slot.nodes.iter().map(|&n| (NodeId(n), (slot.from, slot.to))));
            extent.extend(at);
        }
        let first = nodes.first().map_or("", |node| topology.nodes[node.index()].name.as_str());
        rows.push(Row { name: level.name(first), slots });
    }
    rows
}

/// Returns the nodes that each node has links to, ascending.
fn neighbours(topology: &Topology) -> Vec<Vec<NodeId>> {
    let mut all = vec![Vec::new(); topology.nodes.len()];
    for link in &topology.links {
        all[link.a.index()].push(link.b);
        all[link.b.index()].push(link.a);
    }
    for nodes in &mut all {
        nodes.sort_unstable();
    }
    all
}

/// Returns the switch of the server of each NIC. GPUs are numbered as their NICs are.
fn server_of_nics(
    topology: &Topology,
    by_level: &BTreeMap<Level, Vec<NodeId>>,
    neighbours: &[Vec<NodeId>],
) -> HashMap<NodeId, NodeId> {
    let nodes = |level: Level| by_level.get(&level).into_iter().flatten().copied();
    let up_name = |nic: NodeId| format!("{}.up", topology.nodes[nic.index()].name);
    let ends: HashMap<&str, NodeId> =
        nodes(Level::GpuPort).map(|end| (topology.nodes[end.index()].name.as_str(), end)).collect();
    let server = |nic: NodeId| neighbours[ends.get(up_name(nic).as_str())?.index()].first().copied();
    nodes(Level::Host).filter_map(|nic| Some((nic, server(nic)?))).collect()
}

/// Returns the places of GPUs on the networks of their servers: each server's below its NICs.
fn gpu_ports(
    servers: &[NodeId],
    columns: &BTreeMap<NodeId, Vec<NodeId>>,
    neighbours: &[Vec<NodeId>],
    extent: &HashMap<NodeId, (f64, f64)>,
) -> Vec<Slot> {
    let there = servers.iter().filter(|server| columns.contains_key(server));
    there.map(|server| slot(extent[server], &neighbours[server.index()])).collect()
}

fn slot((from, to): (f64, f64), nodes: &[NodeId]) -> Slot {
    Slot { from, to, nodes: nodes.iter().map(|node| node.0).collect() }
}

/// Returns a place for each of `nodes`, side by side from `from` to `to`.
fn evenly((from, to): (f64, f64), nodes: &[NodeId]) -> Vec<Slot> {
    let width = (to - from) / nodes.len() as f64;
    nodes
        .iter()
        .enumerate()
        .map(|(i, &node)| slot((from + i as f64 * width, from + (i + 1) as f64 * width), &[node]))
        .collect()
}

/// Returns the places of `nodes` over what is below them, as `below` says: those over the same nodes, a pod, share that
/// width.
fn pods(nodes: &[NodeId], below: impl Fn(NodeId) -> Vec<(f64, f64)>) -> Vec<Slot> {
    let mut groups: Vec<((f64, f64), Vec<NodeId>)> = Vec::new();
    for &node in nodes {
        let ends = below(node);
        let from = ends.iter().map(|end| end.0).fold(f64::INFINITY, f64::min);
        let to = ends.iter().map(|end| end.1).fold(f64::NEG_INFINITY, f64::max);
        let at = if ends.is_empty() { (0.0, 1.0) } else { (from, to) };
        match groups.iter_mut().find(|(other, _)| at.0 < other.1 && other.0 < at.1) {
            Some((other, group)) => {
                *other = (other.0.min(at.0), other.1.max(at.1));
                group.push(node);
            }
            None => groups.push((at, vec![node])),
        }
    }
    groups.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
    groups.iter().flat_map(|(at, group)| evenly(*at, group)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(topology: &str) -> Network {
        let text = format!("topology.{}\n{OTHERWISE}", topology.replace('\n', "\ntopology."));
        let read = Scenario::from_texts(&text, "x.toml", &[], &Overrides::default()).expect("it is right");
        let kind = topology.split('"').nth(1).unwrap_or_default();
        Network::of(kind, &read.into_sim_config().topology)
    }

    /// Returns the rows as text: places of nodes by name.
    fn picture(network: &Network) -> Vec<String> {
        let slot = |slot: &Slot| {
            let nodes: Vec<&str> = slot.nodes.iter().map(|&node| network.nodes[node as usize].as_str()).collect();
            format!("{:.2}-{:.2} {}", slot.from, slot.to, nodes.join(" "))
        };
        let row = |row: &Row| format!("{}: {}", row.name, row.slots.iter().map(slot).collect::<Vec<_>>().join(", "));
        network.rows.iter().map(row).collect()
    }

    #[test]
    fn leaves_are_over_their_hosts_and_spines_over_all() {
        let all = network("kind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 2");
        assert_eq!(
            picture(&all),
            [
                "hosts: 0.00-0.50 h0 h1, 0.50-1.00 h2 h3",
                "ToRs: 0.00-0.50 tor0, 0.50-1.00 tor1",
                "spines: 0.00-0.25 spine0, 0.25-0.50 spine1, 0.50-0.75 spine2, 0.75-1.00 spine3",
            ]
        );
    }

    #[test]
    fn queues_of_hosts_are_between_them_and_their_leaf() {
        let shape = "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nhost_queues = true";
        let all = network(shape);
        assert_eq!(
            picture(&all),
            [
                "hosts: 0.00-0.50 h0 h1, 0.50-1.00 h2 h3",
                "NICs: 0.00-0.50 h0-nic h1-nic, 0.50-1.00 h2-nic h3-nic",
                "ToRs: 0.00-0.50 tor0, 0.50-1.00 tor1",
                "spines: 0.00-1.00 spine0",
            ]
        );
    }

    #[test]
    fn aggregation_is_over_its_pod() {
        let all = network("kind = \"fat-tree-k\"\nk = 4");
        let rows = picture(&all);
        assert!(rows[1].starts_with("ToRs: 0.00-0.12 tor0, 0.12-0.25 tor1, 0.25-0.38 tor2"), "{}", rows[1]);
        assert!(rows[2].starts_with("aggregation: 0.00-0.12 agg0, 0.12-0.25 agg1, 0.25-0.38 agg2"), "{}", rows[2]);
        assert!(rows[3].starts_with("core: 0.00-0.25 core0, 0.25-0.50 core1"), "{}", rows[3]);
    }

    /// Two servers of two GPUs: NICs in their servers, rails over all of them.
    #[test]
    fn rails_run_across_servers() {
        let rail = network("kind = \"rail\"\nservers = 2\ngpus_per_server = 2\nservers_per_leaf = 2\nspines = 1");
        assert_eq!(
            picture(&rail),
            [
                "servers: 0.00-0.50 nvswitch0, 0.50-1.00 nvswitch1",
                "GPUs: 0.00-0.50 h0.up h1.up, 0.50-1.00 h2.up h3.up",
                "hosts: 0.00-0.50 h0 h1, 0.50-1.00 h2 h3",
                "ToRs: 0.00-0.50 tor0, 0.50-1.00 tor1",
                "spines: 0.00-1.00 spine0",
            ]
        );
    }

    /// The network without the rest of a scenario is the network of the scenario, with a place for every node.
    #[test]
    fn networks_of_all_examples_are_read() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let paths = std::fs::read_dir(examples).expect("the examples").map(|entry| entry.expect("an entry").path());
        let mut n = 0;
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let scenario = Scenario::load(&path, &Overrides::default()).expect("it is right");
            let dir = std::env::temp_dir().join(format!("fairrate-watch-network-{}", std::process::id()));
            std::fs::create_dir_all(&dir).expect("a directory");
            std::fs::write(dir.join("scenario.toml"), scenario.to_toml()).expect("a file");
            for (name, content) in scenario.files() {
                std::fs::write(dir.join(name), content).expect("a file");
            }
            let read = Network::read(&dir).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let whole = Network::of(&read.kind, &scenario.sim_config().topology);
            let is_same = (&read.nodes, &read.links, &read.rates) == (&whole.nodes, &whole.links, &whole.rates);
            assert!(is_same, "{}", path.display());
            let mut placed: Vec<u32> =
                read.rows.iter().flat_map(|row| &row.slots).flat_map(|s| s.nodes.clone()).collect();
            placed.sort_unstable();
            assert_eq!(placed, (0..read.nodes.len() as u32).collect::<Vec<_>>(), "{}", path.display());
            std::fs::remove_dir_all(&dir).expect("it goes");
            n += 1;
        }
        assert!(20 < n, "{n}");
    }
}
