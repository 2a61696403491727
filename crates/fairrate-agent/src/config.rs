//! The agent's configuration, a TOML file.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use fairrate_daemon::config::ConfigError;
use fairrate_daemon::config::{address_or_port, duration, resolve};
use fairrate_daemon::{Client, ClientOptions, KeyFiles, Security};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de};

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The allocator's addresses and security.
    pub allocator: Allocator,
    /// Parameters of flowlet detection.
    #[serde(default)]
    pub flowlets: Flowlets,
    /// Conversion of rates into paces.
    #[serde(default)]
    pub pacing: Pacing,
    /// Upper bounds.
    #[serde(default)]
    pub limits: Limits,
    /// Address of the pages for metrics and health; none if missing, and on the loopback address if only a port is
    /// given.
    #[serde(default, deserialize_with = "address_or_port")]
    pub metrics: Option<SocketAddr>,
    /// Destinations whose flows the allocator is sent.
    #[serde(deserialize_with = "fabric")]
    pub fabric: Vec<IpNet>,
    /// Files of further network namespaces whose connections count. They may be missing for a while.
    #[serde(default, deserialize_with = "namespaces")]
    pub namespaces: Vec<PathBuf>,
    /// `true` if sockets of UDP may ask for rates.
    #[serde(default)]
    pub udp: bool,
    /// Weights of control groups and of the groups below them; all others have 1.
    #[serde(default)]
    pub weight: Vec<Weight>,
}

/// The allocator's addresses and security.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "AllocatorText")]
pub struct Allocator {
    /// Addresses, those of names as they were when the configuration was read: the first one is preferred, the others
    /// are on standby.
    pub servers: Vec<SocketAddr>,
    /// Security of the connections to it.
    pub security: Security,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllocatorText {
    #[serde(deserialize_with = "servers")]
    servers: Vec<SocketAddr>,
    keys: Option<KeyFiles>,
    #[serde(default)]
    insecure: bool,
}

impl TryFrom<AllocatorText> for Allocator {
    type Error = &'static str;

    fn try_from(AllocatorText { servers, keys, insecure }: AllocatorText) -> Result<Self, Self::Error> {
        let security = match (keys, insecure) {
            (Some(keys), false) => Security::Tls(keys),
            (None, true) => Security::Insecure,
            _ => {
                return Err(
                    "`allocator` needs either `keys = { ca = ..., certificate = ..., key = ... }` or `insecure = true`",
                );
            }
        };
        Ok(Self { servers, security })
    }
}

impl Allocator {
    /// Returns the addresses and ports by which connections are recognised as an allocator's. A server on a loopback
    /// address is a process of this host, which other agents reach by any of its addresses: its entry is the
    /// unspecified address. Addresses of IPv4 are mapped into IPv6's.
    pub fn places(&self) -> impl Iterator<Item = (Ipv6Addr, u16)> + '_ {
        self.servers.iter().flat_map(|server| {
            let anywhere = server.ip().to_canonical().is_loopback().then_some(Ipv6Addr::UNSPECIFIED);
            [Some(mapped(server.ip())), anywhere].into_iter().flatten().map(|address| (address, server.port()))
        })
    }
}

/// Parameters of flowlet detection.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "FlowletsText")]
pub struct Flowlets {
    /// Idle time that ends a flowlet.
    pub gap: Duration,
    /// Largest delay in finding an end, and in setting a rate.
    pub every: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FlowletsText {
    #[serde(deserialize_with = "gap")]
    gap: Duration,
    #[serde(deserialize_with = "every")]
    every: Duration,
}

impl Default for FlowletsText {
    fn default() -> Self {
        let Flowlets { gap, every } = Flowlets::default();
        Self { gap, every }
    }
}

impl Default for Flowlets {
    fn default() -> Self {
        Self { gap: Duration::from_millis(5), every: Duration::from_millis(1) }
    }
}

impl TryFrom<FlowletsText> for Flowlets {
    type Error = &'static str;

    fn try_from(FlowletsText { gap, every }: FlowletsText) -> Result<Self, Self::Error> {
        if gap < every {
            return Err("`flowlets.every` is longer than `flowlets.gap`: make it at most as long");
        }
        Ok(Self { gap, every })
    }
}

/// Conversion of rates into paces.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pacing {
    /// The part of a rate on the wire that is payload, which is what TCP paces.
    #[serde(deserialize_with = "share")]
    pub payload_share: f64,
}

impl Default for Pacing {
    /// Returns 1,448 of the 1,538 bytes that a full segment takes on Ethernet, with headers, timestamps, preamble and
    /// gap.
    fn default() -> Self {
        Self { payload_share: 1448.0 / 1538.0 }
    }
}

/// Upper bounds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest number of flowlets that the allocator is sent at a time. Beyond it, the owner with the most loses one.
    #[serde(deserialize_with = "flows")]
    pub flows: u32,
}

impl Default for Limits {
    /// Returns the number that the allocator accepts from an agent.
    fn default() -> Self {
        Self { flows: 10_000 }
    }
}

/// The weight of the flows of a control group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Directory of the group, such as `/sys/fs/cgroup/gold`.
    #[serde(deserialize_with = "absolute")]
    pub cgroup: PathBuf,
    /// Weight: 2 gets twice the rate of 1 where they share a link.
    #[serde(deserialize_with = "weight")]
    pub weight: f64,
}

impl Config {
    /// Reads and checks a file. Paths of keys in the file are relative to it.
    ///
    /// # Errors
    /// If a file cannot be read, has unknown or missing keys, or invalid values.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let own = || path.to_owned();
        let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable { path: own(), cause })?;
        let mut config: Self = toml::from_str(&text).map_err(|cause| ConfigError::Wrong { path: own(), cause })?;
        if let Security::Tls(keys) = &mut config.allocator.security {
            keys.resolve(path.parent().unwrap_or(Path::new("")));
        }
        Ok(config)
    }

    /// Reads the keys that the agent would use.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn check_keys(&self) -> std::io::Result<()> {
        // A client without servers only reads its keys.
        Client::connect(&[], self.allocator.security.clone(), ClientOptions::default()).map(drop)
    }

    /// Returns the fabric's networks. Those of IPv4 are mapped into IPv6's.
    pub fn fabric(&self) -> impl Iterator<Item = (Ipv6Addr, u8)> + '_ {
        self.fabric.iter().map(|network| match network {
            IpNet::V4(network) => (network.network().to_ipv6_mapped(), 96 + network.prefix_len()),
            IpNet::V6(network) => (network.network(), network.prefix_len()),
        })
    }
}

/// Returns an address of IPv6, into which one of IPv4 is mapped.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn fabric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let fabric = Vec::<IpNet>::deserialize(deserializer)?;
    if !fabric.is_empty() {
        return Ok(fabric);
    }
    Err(de::Error::custom(
        "`fabric` is empty, so no flow would have a rate: name the hosts' network, such as \"10.0.0.0/16\"",
    ))
}

fn servers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let servers: Result<Vec<SocketAddr>, String> = texts.iter().map(|server| resolve::with_port(server)).collect();
    let servers = servers.map_err(de::Error::custom)?;
    if servers.is_empty() {
        return Err(de::Error::custom("`servers` is empty: name the allocator, such as \"10.0.0.9:4600\""));
    }
    let canonical = |server: &SocketAddr| SocketAddr::new(server.ip().to_canonical(), server.port());
    let all: Vec<SocketAddr> = servers.iter().map(canonical).collect();
    for (at, server) in all.iter().enumerate() {
        if let Some(first) = all[..at].iter().position(|other| other == server) {
            return Err(de::Error::custom(format!(
                "`{}` and `{}` are one address, {server}: leave one of them out, or write that of another allocator",
                texts[first], texts[at]
            )));
        }
    }
    Ok(servers)
}

fn every<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    within(duration(deserializer)?, Duration::from_micros(100), Duration::from_secs(1))
}

fn gap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    within(duration(deserializer)?, Duration::from_micros(100), Duration::from_mins(1))
}

fn within<E: de::Error>(time: Duration, least: Duration, most: Duration) -> Result<Duration, E> {
    if least <= time && time <= most {
        return Ok(time);
    }
    Err(E::custom(format!("{time:?} is out of range: write a time from {least:?} to {most:?}")))
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.01..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(de::Error::custom(format!("{share} is out of range: write a share from 0.01 to 1")))
}

fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let flows = u32::deserialize(deserializer)?;
    if (1..=65_536).contains(&flows) {
        return Ok(flows);
    }
    Err(de::Error::custom(format!("{flows} is out of range: write a number from 1 to 65536")))
}

/// The largest weight that the allocator accepts.
const MAX_WEIGHT: f64 = 255.0;

fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let weight = f64::deserialize(deserializer)?;
    if (1.0 / 256.0..=MAX_WEIGHT).contains(&weight) {
        return Ok(weight);
    }
    Err(de::Error::custom(format!(
        "the weight {weight} is out of range: write a number from 1/256 (0.00390625) to 255"
    )))
}

/// Largest number of further network namespaces: each takes a look at all sockets.
const MAX_NAMESPACES: usize = 256;

fn namespaces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let paths = Vec::<PathBuf>::deserialize(deserializer)?;
    if MAX_NAMESPACES < paths.len() {
        return Err(de::Error::custom(format!("there are {} namespaces: name at most {MAX_NAMESPACES}", paths.len())));
    }
    match paths.iter().find(|path| !path.is_absolute()) {
        Some(path) => {
            let path = path.display();
            Err(de::Error::custom(format!("`{path}` is no whole path: write one such as \"/run/netns/web\"")))
        }
        None => Ok(paths),
    }
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    if path.is_absolute() {
        return Ok(path);
    }
    Err(de::Error::custom(format!("`{}` is no whole path: write one such as \"/sys/fs/cgroup/gold\"", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "fabric = [\"10.0.0.0/16\", \"fd00::/8\"]\n[allocator]\nservers = [\"10.0.0.9:4600\"]\ninsecure = true\n";

    fn read(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn little_is_needed_and_the_rest_has_defaults() {
        let config = read(LEAST).unwrap();
        assert_eq!(config.flowlets.gap, Duration::from_millis(5));
        assert_eq!((config.limits.flows, config.metrics), (10_000, None));
        assert_eq!(
            config.fabric().collect::<Vec<_>>(),
            [("::ffff:10.0.0.0".parse().unwrap(), 112), ("fd00::".parse().unwrap(), 8)]
        );
        assert!(matches!(config.allocator.security, Security::Insecure));
    }

    #[test]
    fn every_wrong_value_is_shown_with_its_line() {
        let weight = |weight: &str| format!("[[weight]]\ncgroup = \"/sys/fs/cgroup/gold\"\nweight = {weight}\n");
        for (more, line, expected) in [
            ("[flowlets]\ngap = \"5 parsecs\"\n", 6, "write a time such as"),
            ("[flowlets]\ngip = \"5ms\"\n", 6, "expected `gap` or `every`"),
            ("[flowlets]\nevery = \"0s\"\n", 6, "from 100µs to 1s"),
            ("[flowlets]\ngap = \"2min\"\n", 6, "from 100µs to 60s"),
            ("[flowlets]\ngap = \"100us\"\n", 5, "`flowlets.every` is longer"),
            ("[pacing]\npayload_share = 0.0\n", 6, "from 0.01 to 1"),
            ("[pacing]\npayload_share = nan\n", 6, "from 0.01 to 1"),
            ("[limits]\nflows = 0\n", 6, "from 1 to 65536"),
            (&weight("-1.0"), 7, "from 1/256"),
            (&weight("0.003"), 7, "from 1/256"),
            (&weight("100000"), 7, "from 1/256"),
            (&weight("inf"), 7, "from 1/256"),
            ("[[weight]]\ncgroup = \"gold\"\nweight = 2.0\n", 6, "is no whole path"),
        ] {
            let error = read(&(LEAST.to_owned() + more)).unwrap_err();
            assert!(error.contains(expected) && error.contains(&format!("line {line},")), "{more}: {error}");
        }
    }

    #[test]
    fn what_is_needed_is_missed_with_its_line() {
        for (what, by, line, expected) in [
            ("\"10.0.0.9:4600\"", "", 3, "`servers` is empty"),
            (
                "\"10.0.0.9:4600\"",
                "\"10.0.0.9:4600\", \"[::ffff:10.0.0.9]:4600\"",
                3,
                "`10.0.0.9:4600` and `[::ffff:10.0.0.9]:4600` are one address, 10.0.0.9:4600: leave one of them out",
            ),
            ("\"10.0.0.9:4600\"", "\"[::1]:1\", \"[::1]:2\", \"[::1]:1\"", 3, "are one address, [::1]:1"),
            ("\"10.0.0.0/16\", \"fd00::/8\"", "", 1, "`fabric` is empty"),
            ("fabric", "namespaces = [\"web\"]\nfabric", 1, "write one such as \"/run/netns/web\""),
            ("insecure = true", "", 2, "`allocator` needs either"),
            (
                "insecure = true",
                "insecure = true\nkeys = { ca = \"a\", certificate = \"b\", key = \"c\" }",
                2,
                "needs either",
            ),
            ("fabric", "metrics = \"nowhere\"\nfabric", 1, "write a port such as"),
        ] {
            let error = read(&LEAST.replace(what, by)).unwrap_err();
            assert!(error.contains(expected) && error.contains(&format!("line {line},")), "{by}: {error}");
        }
    }

    #[test]
    fn paths_of_keys_are_relative_to_the_file() {
        let dir = std::env::temp_dir().join(format!("fairrate-config-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let keys = "keys = { ca = \"ca.pem\", certificate = \"/etc/host.pem\", key = \"keys/host.key\" }";
        std::fs::write(dir.join("agent.toml"), LEAST.replace("insecure = true", keys)).unwrap();
        let config = Config::load(&dir.join("agent.toml")).unwrap();
        let Security::Tls(files) = config.allocator.security else { panic!("it has keys") };
        assert_eq!(
            [files.ca, files.certificate, files.key],
            [dir.join("ca.pem"), "/etc/host.pem".into(), dir.join("keys/host.key")]
        );
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_server_on_this_host_is_known_by_its_port_alone() {
        let text = LEAST
            .replace("\"10.0.0.9:4600\"", "\"10.0.0.9:4600\", \"127.0.0.1:4700\", \"[::1]:4800\", \"[fd00::9]:4900\"");
        let place = |address: &str, port| (address.parse().unwrap(), port);
        let expected = [
            place("::ffff:10.0.0.9", 4600),
            place("::ffff:127.0.0.1", 4700),
            place("::", 4700),
            place("::1", 4800),
            place("::", 4800),
            place("fd00::9", 4900),
        ];
        assert_eq!(read(&text).unwrap().allocator.places().collect::<Vec<_>>(), expected);
    }
}
