//! The agent's configuration, a TOML file.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use fairrate_daemon::config::ConfigError;
use fairrate_daemon::config::duration;
use fairrate_daemon::{KeyFiles, Security};
use ipnet::IpNet;
use serde::Deserialize;

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the allocator is.
    pub allocator: Allocator,
    /// What counts as a flowlet.
    #[serde(default)]
    pub flowlets: Flowlets,
    /// How rates become paces.
    #[serde(default)]
    pub pacing: Pacing,
    /// Destinations whose flows the allocator is told of.
    pub fabric: Vec<IpNet>,
    /// Weights of control groups, and of those below them; all others have 1.
    #[serde(default)]
    pub weight: Vec<Weight>,
}

/// Where the allocator is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocator {
    /// Addresses: the first is asked first, the others stand by.
    pub servers: Vec<SocketAddr>,
    /// Keys of this host: its certificate names its addresses.
    pub keys: Option<KeyFiles>,
    /// Plain TCP, for tests: whoever can connect may speak for everybody.
    #[serde(default)]
    pub insecure: bool,
}

impl Allocator {
    /// How connections to it are secured.
    pub fn security(&self) -> Security {
        self.keys.clone().map_or(Security::Insecure, Security::Tls)
    }
}

/// What counts as a flowlet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Flowlets {
    /// The idle time that ends one.
    #[serde(deserialize_with = "duration")]
    pub gap: Duration,
    /// Time between two looks at all sockets: rates come into force and ends are found.
    #[serde(deserialize_with = "duration")]
    pub every: Duration,
}

impl Default for Flowlets {
    fn default() -> Self {
        Self { gap: Duration::from_millis(5), every: Duration::from_millis(1) }
    }
}

/// How rates become paces.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pacing {
    /// The part of a rate on the wire that is payload, which is what TCP paces.
    pub payload_share: f64,
}

impl Default for Pacing {
    /// 1,448 of the 1,538 bytes that a full segment takes on Ethernet: headers, timestamps, preamble and gap come on top.
    fn default() -> Self {
        Self { payload_share: 1448.0 / 1538.0 }
    }
}

/// What the flows of a control group count for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Its directory, such as `/sys/fs/cgroup/gold`.
    pub cgroup: PathBuf,
    /// Its weight: 2 gets twice the rate of 1 where they share a link.
    pub weight: f64,
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// If it cannot be read, has unknown or missing keys, or values that cannot be.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let own = || path.to_owned();
        let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable { path: own(), cause })?;
        let config: Self = toml::from_str(&text).map_err(|cause| ConfigError::Wrong { path: own(), cause })?;
        config.check().map_err(|what| ConfigError::Value { path: own(), what })?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if self.allocator.servers.is_empty() {
            return Err("`allocator.servers` is empty: name the allocator, such as \"10.0.0.9:4600\"".to_owned());
        }
        if self.allocator.keys.is_some() == self.allocator.insecure {
            return Err("`allocator` needs either keys, as `keys = { ca = ..., certificate = ..., key = ... }`, or `insecure = true`"
                .to_owned());
        }
        if self.fabric.is_empty() {
            return Err(
                "`fabric` is empty: no flow would have a rate; name the hosts' network, such as \"10.0.0.0/16\""
                    .to_owned(),
            );
        }
        if self.flowlets.every.is_zero() || self.flowlets.gap < self.flowlets.every {
            return Err("`flowlets.every` is to be above 0 and at most `flowlets.gap`".to_owned());
        }
        if !(0.0 < self.pacing.payload_share && self.pacing.payload_share <= 1.0) {
            return Err("`pacing.payload_share` is to be above 0 and at most 1".to_owned());
        }
        match self.weight.iter().find(|of| !(of.weight.is_finite() && 0.0 < of.weight)) {
            Some(of) => Err(format!("the weight {} of {} is not above 0", of.weight, of.cgroup.display())),
            None => Ok(()),
        }
    }

    /// Whether the allocator is told of flows to this address.
    pub fn has_fabric(&self, address: IpAddr) -> bool {
        self.fabric.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "fabric = [\"10.0.0.0/16\", \"fd00::/8\"]\n[allocator]\nservers = [\"10.0.0.9:4600\"]\ninsecure = true\n";

    fn read(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn little_is_needed_and_the_rest_has_defaults() {
        let config = read(LEAST).unwrap();
        assert_eq!(config.flowlets.gap, Duration::from_millis(5));
        assert!(config.has_fabric("10.0.3.4".parse().unwrap()) && config.has_fabric("fd00::1".parse().unwrap()));
        assert!(!config.has_fabric("10.1.0.1".parse().unwrap()) && !config.has_fabric("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (more, expected) in [
            ("", "`allocator.servers` is empty"),
            ("[flowlets]\ngap = \"5 parsecs\"\n", "line 6"),
            ("[flowlets]\ngip = \"5ms\"\n", "expected `gap` or `every`"),
            ("[flowlets]\ngap = \"100us\"\n", "at most `flowlets.gap`"),
            ("[[weight]]\ncgroup = \"/sys/fs/cgroup/gold\"\nweight = -1.0\n", "is not above 0"),
        ] {
            let text = if more.is_empty() { LEAST.replace("\"10.0.0.9:4600\"", "") } else { LEAST.to_owned() + more };
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
