//! The changes that a running allocator takes over: a new configuration, and states of links by command.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fairrate_daemon::config::{Config, ConfigError, with_place};
use fairrate_daemon::{KeyFiles, LinkState, Metrics, Network, Security, Server};
use fairrate_units::Rate;

use crate::check;
use crate::run::Loaded;

/// Largest number of links whose state is set by commands.
const MAX_COMMANDED: usize = 10_000;

/// The configuration in force, and the commands since the start.
pub struct Live {
    path: PathBuf,
    config: Config,
    network: Network,
    /// The bytes of the keys in use.
    keys: Option<[Vec<u8>; 3]>,
    /// States of links by command, which prevail over those of the file.
    commanded: BTreeMap<String, LinkState>,
    metrics: Arc<Metrics>,
}

impl Live {
    pub fn new(loaded: &Loaded, metrics: Arc<Metrics>) -> Self {
        let (config, network) = (loaded.config.clone(), loaded.network.clone());
        metrics.note_links(network.n_changed());
        let keys = config.keys.as_ref().and_then(KeyFiles::contents);
        Self { path: loaded.path.clone(), config, network, keys, commanded: BTreeMap::new(), metrics }
    }

    /// Takes over the configuration as it is in its file now, and the keys if they have changed. Returns a description.
    ///
    /// # Errors
    /// If the file or the keys cannot be used, or a value needs a restart; in this case nothing changes.
    pub async fn reload(&mut self, server: &Server) -> Result<String, String> {
        let result = self.try_reload(server).await;
        self.metrics.reloads(result.is_ok()).inc();
        match &result {
            Ok(what) => tracing::info!(what, "configuration loaded again"),
            Err(error) => tracing::error!(error, "the new configuration cannot be used; the old one stays"),
        }
        result
    }

    async fn try_reload(&mut self, server: &Server) -> Result<String, String> {
        let (config, network) = Config::load(&self.path).map_err(|error| shown(&error))?;
        let fixed = config.needs_restart(&self.config);
        if let Some(first) = fixed.first() {
            let keys: Vec<String> = fixed.iter().map(|key| format!("`{key}`")).collect();
            let what =
                format!("{} cannot change without a restart: restart, or put the old value back", keys.join(", "));
            let text = std::fs::read_to_string(&self.path).unwrap_or_default();
            return Err(format!("{}: {}", self.path.display(), with_place(&text, first, &what)));
        }
        let loaded = Loaded { path: self.path.clone(), config, network };
        check::check(&loaded)?;
        let Loaded { config, network, .. } = loaded;
        // A link of a command may be gone.
        let (known, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.commanded.clone().into_iter().partition(|(name, _)| network.find_link(name).is_ok());
        let network = network.with_links(&together(&config, &known)).map_err(|e| e.to_string())?;
        let keys = config.keys.as_ref().and_then(KeyFiles::contents);
        let mut what = vec![format!("{} hosts, {} links", network.n_hosts(), network.n_links())];
        if let (Some(files), true) = (&config.keys, keys != self.keys) {
            // Connections are closed, and come back within the lease.
            server.rekey_from(Security::Tls(files.clone())).await.map_err(|error| check::advise(&error))?;
            what.push("new keys".to_owned());
        }
        server.change(Some(network.change_from(&self.network, &config.engine)), config.bounds()).await;
        if !gone.is_empty() {
            let names: Vec<String> = gone.into_keys().collect();
            what.push(format!("links of commands that are gone: {}", names.join(", ")));
        }
        self.metrics.note_links(network.n_changed());
        (self.config, self.network, self.keys, self.commanded) = (config, network, keys, known);
        Ok(what.join(", "))
    }

    /// Sets the state of a link until the next start: `down`, `up` or a rate; `reset` forgets the command.
    ///
    /// # Errors
    /// If there is no such link or state.
    pub async fn set_link(&mut self, name: &str, state: &str, server: &Server) -> Result<String, String> {
        let [name, back] = self.network.find_link(name).map_err(|e| e.to_string())?;
        let mut commanded = self.commanded.clone();
        // A link is down in both directions, so a command for either replaces that.
        if commanded.get(&back) == Some(&LinkState::Down) {
            commanded.remove(&back);
        }
        match state {
            "down" => _ = commanded.insert(name.clone(), LinkState::Down),
            "reset" => _ = commanded.remove(&name),
            rate => {
                let rate: Rate = rate.parse().map_err(|e| format!("{e}, or write `down` or `reset`"))?;
                if rate == Rate::ZERO {
                    return Err("a link without a rate is down: write `down`".to_owned());
                }
                commanded.insert(name.clone(), LinkState::Rate(rate.as_bps_f64()));
            }
        }
        if MAX_COMMANDED < commanded.len() {
            return Err(format!("there are {MAX_COMMANDED} links with commands: write them into the file"));
        }
        let network = self.network.with_links(&together(&self.config, &commanded)).map_err(|e| e.to_string())?;
        server.change(Some(network.change_from(&self.network, &self.config.engine)), self.config.bounds()).await;
        self.metrics.note_links(network.n_changed());
        (self.network, self.commanded) = (network, commanded);
        tracing::info!(link = name, state, "a link changes by command");
        Ok(self.links())
    }

    /// Describes the links that are not as in the topology.
    pub fn links(&self) -> String {
        let (n_down, n_changed) = self.network.n_changed();
        let line = |(name, state): (String, LinkState)| {
            let by = if self.commanded.contains_key(&name) { "command" } else { "file" };
            match state {
                LinkState::Down => format!("{name} down (by {by})\n"),
                LinkState::Rate(bps) => format!("{name} {} (by {by})\n", Rate::from_bps(bps as u64)),
            }
        };
        let lines: String = together(&self.config, &self.commanded).into_iter().map(line).collect();
        format!("{n_down} links down, {n_changed} with another rate\n{lines}")
    }
}

/// Returns the states of links by the file and by commands, which prevail.
fn together(config: &Config, commanded: &BTreeMap<String, LinkState>) -> BTreeMap<String, LinkState> {
    let mut states = config.link_states();
    states.extend(commanded.iter().map(|(name, state)| (name.clone(), *state)));
    states
}

/// Returns an error with its place and help.
pub fn shown(error: &ConfigError) -> String {
    match error {
        ConfigError::Topology(error) => format!("{:?}", miette::Report::new(error.clone())),
        other => other.to_string(),
    }
}
