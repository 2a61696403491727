//! The allocator's configuration, a TOML file.

mod check;
mod links;
mod place;
mod reload;
pub mod resolve;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use fairrate_sim::topology::Topology;
use serde::{Deserialize, Deserializer, de};

pub use self::links::Link;
use self::place::Fault;
pub use self::place::with_place;
use crate::desk::DeskConfig;
use crate::engine::{Bounds, Pace, Wait};
use crate::network::{LinkState, Network};
use crate::server::ServerConfig;
use crate::tls::{KeyFiles, Security};

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to which agents connect.
    #[serde(deserialize_with = "listen")]
    pub listen: SocketAddr,
    /// Address of the pages for metrics and health; none if missing, and on the loopback address if only a port is
    /// given.
    #[serde(default, deserialize_with = "address_or_port")]
    pub metrics: Option<SocketAddr>,
    /// Plain TCP: any peer may report the flows of all hosts.
    #[serde(default)]
    pub insecure: bool,
    /// Plain TCP on an address that other machines can reach.
    #[serde(default)]
    pub insecure_beyond_loopback: bool,
    /// Keys for TLS.
    #[serde(default)]
    pub keys: Option<KeyFiles>,
    /// Lifetime of flows without a message of their agent, and of rates without a message of the allocator.
    #[serde(default = "default_lease", deserialize_with = "duration")]
    pub lease: Duration,
    /// A scenario file whose topology is used in place of `[topology]`.
    #[serde(default)]
    pub scenario: Option<PathBuf>,
    /// The scenario's section; parsed by the scenario reader.
    #[serde(default)]
    topology: Option<toml::Table>,
    /// Addresses of the hosts in the topology's order: the first address and a plus, or several of these.
    #[serde(default, deserialize_with = "one_or_more")]
    pub hosts: Vec<String>,
    /// Addresses of hosts by name, in place of `hosts`.
    #[serde(default)]
    pub host: Vec<Host>,
    /// Links that are down, or have another rate than the topology's.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Path of the socket for commands of root and of the allocator's own user; none if missing.
    #[serde(default)]
    pub control: Option<PathBuf>,
    /// The optimiser.
    #[serde(default)]
    pub engine: Engine,
    /// The limits of agents, connections, flows and messages.
    #[serde(default)]
    pub limits: Limits,
    /// The agents that decide which allocator decides.
    #[serde(default)]
    pub quorum: Quorum,
}

/// The agents that decide which allocator decides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// Number of hosts with agents, of which more than half have to be with the allocator; 0: of those it knows.
    #[serde(default)]
    pub agents: usize,
}

/// A host's address.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in the topology.
    pub name: String,
    /// Its addresses: one, or those of a name when the configuration was read.
    #[serde(rename = "address", deserialize_with = "addresses")]
    pub addresses: Vec<IpAddr>,
}

/// The optimiser.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    /// Time between iterations (the paper's 10 us).
    #[serde(deserialize_with = "duration")]
    pub interval: Duration,
    /// NED's step (the paper's 0.4).
    pub gamma: f64,
    /// Fairness parameter: 1 is proportional fairness (the paper's); larger values are nearer to max-min; smaller ones
    /// give more throughput.
    pub alpha: f64,
    /// Relative change of a rate beyond which it is sent (the paper's 0.01); links keep the same share free.
    pub threshold: f64,
    /// Behaviour of its thread between iterations.
    pub wait: Wait,
    /// Least time between two batches of rates for an agent.
    #[serde(deserialize_with = "duration")]
    pub batch: Duration,
    /// Number of iterations without a rate to send after which the engine waits for the next flowlet.
    pub rest_after: u32,
    /// Seed of the choice among equal paths.
    pub seed: u64,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            interval: Duration::from_micros(10),
            gamma: 0.4,
            alpha: 1.0,
            threshold: 0.01,
            wait: Wait::Sleep,
            batch: Duration::from_micros(100),
            rest_after: 2_000,
            seed: 1,
        }
    }
}

/// The limits of agents, connections, flows and messages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Number of agents. Beyond it, the connection is closed with a reason.
    pub agents: usize,
    /// Number of connections, including those that have not sent HELLO. Beyond it, they are closed at once.
    pub connections: usize,
    /// Number of agents of one identity. Beyond it, the connection is closed with a reason.
    pub sessions_per_agent: usize,
    /// Number of flows of one identity. Beyond it, a flow has no rate.
    pub flows_per_agent: usize,
    /// Messages of one identity a second. Beyond it, they are read later.
    pub updates_per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            agents: 5_000,
            connections: 10_000,
            sessions_per_agent: 4,
            flows_per_agent: 10_000,
            updates_per_second: 100_000,
        }
    }
}

/// The reason why a file is not a valid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// The file is not valid TOML for a configuration; the parser names the place.
    #[error("{}: {cause}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The parser's error, with its line.
        cause: toml::de::Error,
    },
    /// A value is invalid.
    #[error("{}: {what}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The value, and the valid ones.
        what: String,
    },
    /// The topology is wrong; the error names the place.
    #[error(transparent)]
    Topology(#[from] ScenarioError),
}

const fn default_lease() -> Duration {
    Duration::from_millis(500)
}

impl Config {
    /// Reads and checks a file, and builds the network. Paths in the file are relative to it.
    ///
    /// # Errors
    /// If the file cannot be read, has unknown or missing keys, or invalid values.
    pub fn load(path: &Path) -> Result<(Self, Network), ConfigError> {
        let unreadable = |cause| ConfigError::Unreadable { path: path.to_owned(), cause };
        let text = read_text(path).map_err(unreadable)?;
        Self::from_toml(&text, path)
    }

    /// Checks the text of a file as [`Config::load`] does, and builds the network.
    ///
    /// # Errors
    /// The errors of [`Config::load`].
    pub fn from_toml(text: &str, path: &Path) -> Result<(Self, Network), ConfigError> {
        let wrong = |cause| ConfigError::Wrong { path: path.to_owned(), cause };
        let mut config: Self = toml::from_str(text).map_err(wrong)?;
        let value = |fault: Fault| ConfigError::Value { path: path.to_owned(), what: fault.shown(text) };
        check::check(&config).map_err(value)?;
        let dir = path.parent().unwrap_or(Path::new(""));
        if let Some(keys) = &mut config.keys {
            keys.resolve(dir);
        }
        if let Some(control) = &mut config.control {
            *control = dir.join(&*control);
        }
        let topology = config.read_topology(text, path, dir)?;
        let hosts = config.addresses(&topology).map_err(value)?;
        let network = Network::new(topology, hosts, config.engine.seed);
        links::check(&config.link, &network).map_err(value)?;
        if config.link.is_empty() {
            return Ok((config, network));
        }
        let network =
            network.with_links(&config.link_states()).map_err(|e| value(Fault::new("link", e.to_string())))?;
        Ok((config, network))
    }

    fn read_topology(&self, text: &str, path: &Path, dir: &Path) -> Result<Topology, ConfigError> {
        // A scenario must have a duration, an algorithm and traffic; their values do not matter here.
        let sets = [("duration", "1ms"), ("transport.cc", "newreno"), ("transport.kind", "tcp")];
        let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let scenario = if let Some(file) = &self.scenario {
            Scenario::load(&dir.join(file), &Overrides::default())?
        } else {
            let overrides = Overrides { sets, ..Overrides::default() };
            let Some(topology) = only_topology(text) else {
                let fault =
                    Fault::new("topology", "write it as a section: `[topology]`, and its keys in the lines below");
                return Err(ConfigError::Value { path: path.to_owned(), what: fault.shown(text) });
            };
            let text = topology + "\n\n\n\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n";
            Scenario::from_toml(&text, &path.display().to_string(), dir, &overrides)?
        };
        Ok(scenario.into_sim_config().topology)
    }

    fn addresses(&self, topology: &Topology) -> Result<HashMap<IpAddr, fairrate_sim::NodeId>, Fault> {
        let mut addresses = HashMap::new();
        for hosts in &self.hosts {
            let first = hosts.strip_suffix('+').and_then(|first| first.parse::<IpAddr>().ok());
            let Some(first) = first else {
                let what = format!("`hosts = \"{hosts}\"` is no first address with a plus: write \"10.0.0.1+\"");
                return Err(Fault::new("hosts", what));
            };
            let n = topology.hosts().count();
            let before = addresses.len();
            addresses.extend(addresses_from(first).zip(topology.hosts()));
            if addresses.len() < before + n {
                let n_found = addresses.len() - before;
                let what = format!("there are {n} hosts and {n_found} addresses from {first} on that no other has");
                return Err(Fault::new("hosts", what));
            }
        }
        for (i, host) in self.host.iter().enumerate() {
            let Some(node) = topology.node(&host.name).filter(|&node| topology.is_host(node)) else {
                let names: Vec<&str> =
                    topology.hosts().map(|node| topology.nodes[node.index()].name.as_str()).collect();
                let question = fairrate_text::did_you_mean(&host.name, names.iter().copied());
                let help = question.map_or_else(String::new, |question| format!(": {question}"));
                let what = format!("the topology has no host `{}`{help}", host.name);
                return Err(Fault::new(format!("host.{i}.name"), what));
            };
            for &address in &host.addresses {
                if addresses.insert(address, node).is_some_and(|other| other != node) {
                    let what = format!("the address {address} is of two hosts");
                    return Err(Fault::new(format!("host.{i}.address"), what));
                }
            }
        }
        Ok(addresses)
    }

    /// Returns the configuration of the desk of an allocator with this random number.
    pub fn desk(&self, instance: u64) -> DeskConfig {
        DeskConfig {
            instance,
            lease: self.lease,
            threshold: self.engine.threshold,
            max_agents: self.limits.agents,
            max_sessions: self.limits.sessions_per_agent,
            max_flows: self.limits.flows_per_agent,
            quorum: self.quorum.agents,
        }
    }

    /// Returns the bounds that a running allocator takes over from a new configuration.
    pub fn bounds(&self) -> Bounds {
        Bounds { agents: self.limits.agents, flows: self.limits.flows_per_agent, quorum: self.quorum.agents }
    }

    /// Returns the states of links by name.
    pub fn link_states(&self) -> BTreeMap<String, LinkState> {
        self.link.iter().map(|link| (link.name.clone(), link.state())).collect()
    }

    /// Returns the configuration of the server.
    pub fn server(&self) -> ServerConfig {
        ServerConfig {
            listen: self.listen,
            security: self.keys.clone().map_or(Security::Insecure, Security::Tls),
            pace: Pace {
                interval: self.engine.interval,
                wait: self.engine.wait,
                batch: self.engine.batch,
                rest_after: self.engine.rest_after,
            },
            lease: self.lease,
            max_connections: self.limits.connections,
            // Twice the sessions, since a broken connection of a session may not be detected yet.
            max_of_one: 2 * self.limits.sessions_per_agent,
            max_updates: self.limits.updates_per_second,
        }
    }
}

/// Largest number of bytes of a configuration.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a file that is not too long.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if MAX_BYTES < text.len() as u64 {
        return Err(std::io::Error::other("it is longer than 16 MiB: this is no configuration"));
    }
    Ok(text)
}

/// Returns the addresses from `first` on.
fn addresses_from(first: IpAddr) -> Box<dyn Iterator<Item = IpAddr>> {
    match first.to_canonical() {
        IpAddr::V4(first) => Box::new((u32::from(first)..=u32::MAX).map(|bits| IpAddr::V4(bits.into()))),
        IpAddr::V6(first) => Box::new((u128::from(first)..=u128::MAX).map(|bits| IpAddr::V6(bits.into()))),
    }
}

/// Returns the text with only the lines of `[topology]`: lines stay where they are, so that errors name the right ones.
/// Returns `None` if there is no such section, as in `topology = { .. }`.
fn only_topology(text: &str) -> Option<String> {
    let header = |line: &str| {
        let name = line.trim_start().strip_prefix('[')?.trim_start_matches('[');
        let (name, _) = name.split_once(']')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-\" ".contains(c);
        name.chars().all(is_name).then(|| name.trim().to_owned())
    };
    let (mut is_inside, mut is_found) = (false, false);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if let Some(name) = header(line).filter(|name| !name.starts_with(|c: char| c.is_ascii_digit() || c == '"')) {
            is_inside = name == "topology" || name.starts_with("topology.");
            is_found |= name == "topology";
        }
        out.push_str(if is_inside { line } else { "" });
        out.push('\n');
    }
    is_found.then_some(out)
}

/// Reads a time such as `"500ms"`, for serde's `deserialize_with`.
///
/// # Errors
/// If the text is not a time.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|e| de::Error::custom(format!("{e}: write a time such as \"500ms\"")))
}

/// Reads an address or the name of a host, with a port.
fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    resolve::with_port(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Reads an address or the name of a host, which may have several.
fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpAddr>, D::Error> {
    resolve::addresses(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Reads a text, or a list of them.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "no first address: write \"10.0.0.1+\", or several in brackets")]
    enum Either {
        One(String),
        More(Vec<String>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::One(one) => vec![one],
        Either::More(more) => more,
    })
}

/// Reads the address of the pages for operators, for serde's `deserialize_with`: an address such as `"10.0.0.9:9460"`,
/// or a port, which is used with the loopback address.
///
/// # Errors
/// If it is neither.
pub fn address_or_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "no address: write a port such as 9460, or an address such as \"10.0.0.9:9460\"")]
    enum Either {
        Port(u16),
        Address(SocketAddr),
    }
    Ok(Some(match Either::deserialize(deserializer)? {
        Either::Port(port) => (Ipv4Addr::LOCALHOST, port).into(),
        Either::Address(address) => address,
    }))
}

#[cfg(test)]
mod tests;
