//! Fat trees of htsim.

use fairrate_sim::FileError;

use super::{held, number};

/// A tier of switches; links are those to the tier below, or to hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tier {
    gbps: u32,
    latency_ns: u32,
    radix_down: u32,
    radix_up: u32,
    bundle: u32,
    switch_latency_ns: u32,
    has_queues: bool,
    line: usize,
}

/// A fat tree of two or three tiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    hosts: u32,
    pod: u32,
    tiers: Vec<Tier>,
}

impl Tree {
    /// Reads a topology.
    ///
    /// # Errors
    /// If a line is not understood, or the tiers do not fit together.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let (mut hosts, mut pod, mut announced) = (None, None, None);
        let mut tiers: Vec<Tier> = Vec::new();
        for (at, line) in held(text) {
            let mut words = line.split_whitespace();
            let key = words.next().unwrap_or_default().to_lowercase();
            let mut value = |name: &str| number::<u32>(at, name, words.next());
            match (key.as_str(), tiers.last_mut()) {
                ("nodes", _) => hosts = Some(value("Nodes")?),
                ("podsize", _) => pod = Some(value("Podsize")?),
                ("tiers", _) => announced = Some((at, value("Tiers")?)),
                ("tier", _) => {
                    let n = value("Tier")?;
                    if n as usize != tiers.len() {
                        let message = format!("tier {n} is where tier {} is expected", tiers.len());
                        return Err(FileError::new(at, message).help("tiers are in order, from 0, the ToRs"));
                    }
                    tiers.push(Tier { bundle: 1, line: at, ..Tier::default() });
                }
                ("downlink_speed_gbps", Some(tier)) => tier.gbps = value("Downlink_speed_Gbps")?,
                ("downlink_latency_ns", Some(tier)) => tier.latency_ns = value("Downlink_Latency_ns")?,
                ("radix_down", Some(tier)) => tier.radix_down = value("Radix_Down")?,
                ("radix_up", Some(tier)) => tier.radix_up = value("Radix_Up")?,
                ("bundle", Some(tier)) => tier.bundle = value("Bundle")?,
                ("switch_latency_ns", Some(tier)) => tier.switch_latency_ns = value("Switch_Latency_ns")?,
                ("queue_up" | "queue_down", Some(tier)) => tier.has_queues = true,
                ("oversubscribed", Some(_)) => drop(value("Oversubscribed")?),
                (key, _) => {
                    let message = format!("`{}` is no key here", key.escape_debug());
                    let help =
                        "a topology begins with `Nodes`, `Tiers` and `Podsize`; then come the keys of each `Tier`";
                    return Err(FileError::new(at, message).help(help));
                }
            }
        }
        let hosts = hosts.filter(|n| 1 < *n).ok_or_else(|| FileError::new(1, "the topology has no line `Nodes`"))?;
        let (at, n_tiers) = announced.ok_or_else(|| FileError::new(1, "the topology has no line `Tiers`"))?;
        if n_tiers as usize != tiers.len() || !matches!(n_tiers, 2 | 3) {
            let message = format!("{n_tiers} tiers are announced, {} follow", tiers.len());
            return Err(FileError::new(at, message).help("there are 2 or 3"));
        }
        let pod = pod.filter(|_| n_tiers == 3).unwrap_or(hosts);
        let tree = Self { hosts, pod, tiers };
        tree.check()?;
        Ok(tree)
    }

    /// Checks that the tiers make a tree that scenarios can have.
    fn check(&self) -> Result<(), FileError> {
        let top = self.tiers.len() - 1;
        for (i, tier) in self.tiers.iter().enumerate() {
            let error = |message: &str| Err(FileError::new(tier.line, format!("tier {i} {message}")));
            match tier {
                Tier { gbps: 0, .. } => return error("has no `Downlink_speed_Gbps`"),
                Tier { latency_ns: 0, .. } => return error("has no `Downlink_Latency_ns`"),
                Tier { radix_down: 0, .. } => return error("has no `Radix_Down`"),
                Tier { radix_up: 0, .. } if i < top => return error("has no `Radix_Up`"),
                Tier { bundle, .. } if *bundle != 1 => {
                    return error("has several cables to each switch below, which no scenario has");
                }
                _ => {}
            }
        }
        let odd =
            |line: usize, what: &str| Err(FileError::new(line, format!("the numbers of ports do not fit: {what}")));
        let [tor, agg] = [self.tiers[0], self.tiers[1]];
        if !self.hosts.is_multiple_of(self.pod) || !self.pod.is_multiple_of(tor.radix_down) {
            return odd(tor.line, "hosts are no whole number of ToRs and pods");
        }
        if self.pod / tor.radix_down != agg.radix_down {
            return odd(agg.line, "`Radix_Down` of tier 1 is not the number of ToRs in a pod");
        }
        let Some(core) = self.tiers.get(2) else { return Ok(()) };
        if core.gbps != agg.gbps {
            return Err(FileError::new(
                core.line,
                "tiers 1 and 2 have links of different rates, which no scenario has",
            ));
        }
        if core.radix_down != self.pods() {
            return odd(core.line, "`Radix_Down` of tier 2 is not the number of pods");
        }
        Ok(())
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    fn pods(&self) -> u32 {
        self.hosts / self.pod
    }

    /// Returns sentences about what a scenario lacks.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.tiers.iter().any(|tier| 0 < tier.switch_latency_ns) {
            all.push("The latency of switches: add it to the delays of links.".to_owned());
        }
        if self.tiers.iter().any(|tier| tier.has_queues) {
            all.push("The sizes of queues: set `buffer` in `[switch]`.".to_owned());
        }
        all
    }

    /// Returns the section `[topology]` of a scenario.
    pub(super) fn to_toml(&self) -> String {
        let [tor, agg] = [self.tiers[0], self.tiers[1]];
        let rates = |fabric: &str| format!("host_rate = \"{}Gbps\"\n{fabric} = \"{}Gbps\"\n", tor.gbps, agg.gbps);
        match self.tiers.get(2) {
            None => format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n{}host_delay = \"{}ns\"\n\
                 uplink_delay = \"{}ns\"\n",
                self.hosts / tor.radix_down,
                tor.radix_up,
                tor.radix_down,
                rates("uplink_rate"),
                tor.latency_ns,
                agg.latency_ns
            ),
            Some(core) => format!(
                "[topology]\nkind = \"fat-tree\"\npods = {}\ntors_per_pod = {}\naggs_per_pod = {}\ncores = {}\nhosts_per_tor = {}\n\
                 {}host_delay = \"{}ns\"\ntor_delay = \"{}ns\"\ncore_delay = \"{}ns\"\n",
                self.pods(),
                agg.radix_down,
                tor.radix_up,
                u64::from(tor.radix_up) * u64::from(agg.radix_up),
                tor.radix_down,
                rates("fabric_rate"),
                tor.latency_ns,
                agg.latency_ns,
                core.latency_ns
            ),
        }
    }
}
