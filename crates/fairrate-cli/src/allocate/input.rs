//! The network of an allocation: from a file of links, or from a topology of the simulator.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use fairrate_allocate::{FileError, Flow, HostFlow, Link, LinkId, Network};
use fairrate_allocate::{parse_flows, parse_host_flows, parse_links};
use fairrate_control::Registry;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::topology::{TOPOLOGIES, Topology, parse_topology_file};
use fairrate_sim::workload::default_ports;
use fairrate_sim::{NodeId, PortId, SimConfig};

use super::Args;
use crate::failure::Failure;

/// Reads the files that the arguments name.
pub fn network(args: &Args, registry: &Registry) -> Result<Network, Failure> {
    if let Some(links) = &args.links {
        let links = read(links, parse_links)?;
        let flows = read(&args.flows, |text| parse_flows(text, &links))?;
        return Ok(Network { links, flows });
    }
    let topology = args.topology.as_deref().expect("clap asks for links or a topology");
    let config = fabric(topology, args.seed, registry)?;
    if config.topology.circuits.is_some() {
        let message =
            "an allocation has to know the one path of each flow, and circuits give it a second one".to_owned();
        return Err(Failure::Usage { message, help: "choose another `kind` of network".to_owned() });
    }
    let flows = read(&args.flows, |text| parse_host_flows(text, |name| host(&config.topology, name)))?;
    let network = Network { links: links(&config.topology), flows: route(&config, flows) };
    Ok(network)
}

/// Reads a file and parses it.
fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, FileError>) -> Result<T, Failure> {
    let text = read_text(path).map_err(|cause| Failure::Unreadable { path: path.to_owned(), cause })?;
    parse(&text).map_err(|error| Failure::input_file(path, &text, error))
}

/// Largest size of a file; a larger one is surely a mistake, and some are endless.
const MAX_FILE_BYTES: u64 = 256 << 20;

fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|e| describe(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| describe(&e))?;
    if MAX_FILE_BYTES < bytes.len() as u64 {
        return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the configuration of the network that `--topology` names, with the seed and the hash that select paths:
/// those of a scenario, or the defaults.
fn fabric(topology: &Path, seed: Option<u64>, registry: &Registry) -> Result<SimConfig, Failure> {
    let overrides = Overrides { seed, ..Overrides::default() };
    // A topology of kind `file` needs a path, so it is not among the names.
    let kinds: Vec<&str> = TOPOLOGIES.iter().map(|t| t.name).filter(|name| *name != "file").collect();
    let of_kind = |kind: &str| {
        // A scenario needs traffic; it is not used here.
        let traffic = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
        let text = format!("duration = \"1us\"\n[topology]\nkind = \"{kind}\"\n{traffic}");
        Scenario::from_toml(&text, "--topology", Path::new(""), &overrides).map(Scenario::into_sim_config)
    };
    if let Some(kind) = kinds.iter().find(|kind| Path::new(kind) == topology) {
        return Ok(of_kind(kind)?);
    }
    let named = topology.to_string_lossy();
    if topology.extension().is_none() && !topology.exists() && topology.file_name() == Some(topology.as_os_str()) {
        return Err(Failure::unknown_name("topology", &named, &kinds));
    }
    if topology.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Scenario::with_algorithms(registry).load(topology, &overrides)?.into_sim_config());
    }
    let topology = read(&PathBuf::from(topology), parse_topology_file)?;
    Ok(SimConfig { topology, ..of_kind("star")? })
}

/// Returns a link for each port, with the port's name: `from->to`, and `from->to#2` for the second of parallel ones.
fn links(topology: &Topology) -> Vec<Link> {
    let mut seen: HashMap<(NodeId, NodeId), u32> = HashMap::new();
    let name = |node: NodeId| topology.nodes[node.index()].name.as_str();
    let link = |port: PortId| {
        let (from, to) = (topology.from(port), topology.to(port));
        let n = seen.entry((from, to)).and_modify(|n| *n += 1).or_insert(1);
        let number = if *n == 1 { String::new() } else { format!("#{n}") };
        Link::new(format!("{}->{}{number}", name(from), name(to)), topology.link(port).rate)
    };
    (0..topology.n_ports() as u32).map(PortId).map(link).collect()
}

/// Returns the host with this name, or with this decimal id.
fn host(topology: &Topology, name: &str) -> Result<NodeId, (String, Option<String>)> {
    match topology.node(name) {
        Some(node) if topology.is_host(node) => Ok(node),
        Some(_) => Err((format!("`{name}` is a switch, not a host"), None)),
        None => {
            let names: Vec<&str> = topology.hosts().map(|host| topology.nodes[host.index()].name.as_str()).collect();
            let help = fairrate_text::did_you_mean(name, names.iter().copied()).or_else(|| match names.as_slice() {
                [first, .., last] => Some(format!("hosts go from `{first}` to `{last}`")),
                _ => None,
            });
            Err((format!("there is no host `{name}`"), help))
        }
    }
}

/// Returns the flows with their paths as the simulator selects them. Ports that the file does not give are numbered by
/// pair, as in flow lists.
fn route(config: &SimConfig, flows: Vec<HostFlow<NodeId>>) -> Vec<Flow> {
    let routes = Routes::of(config);
    let mut pairs: HashMap<(NodeId, NodeId), u32> = HashMap::new();
    let mut path = Vec::new();
    let mut route = |flow: HostFlow<NodeId>| {
        let count = pairs.entry((flow.src, flow.dst)).or_default();
        let (sport, dport) = default_ports(*count, 0);
        *count += 1;
        let (sport, dport) = (flow.ports.0.unwrap_or(sport), flow.ports.1.unwrap_or(dport));
        let key = FlowKey { src: flow.src, dst: flow.dst, sport, dport };
        routes.path(config.fabric.ecmp, config.seed, key, &mut path);
        let name = |node: NodeId| &config.topology.nodes[node.index()].name;
        let number = if *count == 1 { String::new() } else { format!("#{count}") };
        let name = flow.name.unwrap_or_else(|| format!("{}->{}{number}", name(flow.src), name(flow.dst)));
        Flow::new(name, path.iter().map(|port| LinkId(port.0)).collect::<Vec<_>>()).weight(flow.weight)
    };
    flows.into_iter().map(&mut route).collect()
}
