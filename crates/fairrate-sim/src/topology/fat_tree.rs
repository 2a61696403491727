use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Pods of ToR and aggregation switches under a core (PowerTCP section 4.1).
///
/// Every ToR is connected to all aggregation switches of its pod. The i-th aggregation switch of each pod is
/// connected to the i-th share of the cores: `cores / aggs_per_pod` of them, or one shared by several
/// aggregation switches where there are fewer cores than aggregation switches in a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Number of pods.
    pub pods: u32,
    /// ToR switches in each pod: `tor0` ...
    pub tors_per_pod: u32,
    /// Aggregation switches in each pod: `agg0` ...
    pub aggs_per_pod: u32,
    /// Core switches: `core0` ...
    pub cores: u32,
    /// Hosts on each ToR: `h0` ...
    pub hosts_per_tor: u32,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Delay of the host links.
    pub host_delay: Time,
    /// Rate of the links between switches.
    pub fabric_rate: Rate,
    /// Delay of the links between ToR and aggregation switches.
    pub tor_delay: Time,
    /// Delay of the links between aggregation and core switches.
    pub core_delay: Time,
}

impl FatTree {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        build::positive("pods", self.pods)?;
        build::positive("tors_per_pod", self.tors_per_pod)?;
        build::positive("aggs_per_pod", self.aggs_per_pod)?;
        build::positive("cores", self.cores)?;
        build::positive("hosts_per_tor", self.hosts_per_tor)?;
        build::size("aggs_per_pod", &[self.pods, self.tors_per_pod, self.aggs_per_pod])?;
        build::size("cores", &[self.pods, self.cores.max(self.aggs_per_pod)])?;
        build::size("hosts_per_tor", &[self.pods, self.tors_per_pod, self.hosts_per_tor])?;
        let (cores, aggs) = (self.cores, self.aggs_per_pod);
        if !cores.is_multiple_of(aggs) && !aggs.is_multiple_of(cores) {
            let message = format!("{cores} cores cannot be shared evenly by the {aggs} aggregation switches of a pod");
            let help = format!("write a multiple of {aggs}, such as `cores = {}`", cores.div_ceil(aggs) * aggs);
            return Err(FieldError::new("cores", message).help(help));
        }
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("fabric_rate", self.fabric_rate)?;
        build::delay("tor_delay", self.tor_delay)?;
        build::delay("core_delay", self.core_delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        let (n_tors, n_aggs) = (self.pods * self.tors_per_pod, self.pods * self.aggs_per_pod);
        b.racks(n_tors, self.hosts_per_tor);
        let tors = b.switches(n_tors, "tor", Tier::Tor);
        let aggs = b.switches(n_aggs, "agg", Tier::Aggregation);
        let cores = b.switches(self.cores, "core", Tier::Core);
        b.host_links(&tors, self.host_rate, self.host_delay);
        let pods = tors.chunks(self.tors_per_pod as usize).zip(aggs.chunks(self.aggs_per_pod as usize));
        for (tors, aggs) in pods {
            for &tor in tors {
                for &agg in aggs {
                    b.link(tor, agg, self.fabric_rate, self.tor_delay);
                }
            }
        }
        let per_agg = (self.cores / self.aggs_per_pod).max(1) as usize;
        for (i, &agg) in aggs.iter().enumerate() {
            let share = i % self.aggs_per_pod as usize * self.cores as usize / self.aggs_per_pod as usize;
            for &core in &cores[share..share + per_agg] {
                b.link(agg, core, self.fabric_rate, self.core_delay);
            }
        }
        b.finish(&[])
    }
}

/// The fat-tree of k-port switches: k pods of k/2 edge and k/2 aggregation switches under (k/2)² cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTreeK {
    /// Ports of a switch, an even number.
    pub k: u32,
    /// Hosts on each edge switch; `None`: k/2, which makes the tree non-blocking.
    pub hosts_per_edge: Option<u32>,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Rate of the links between switches.
    pub fabric_rate: Rate,
    /// Delay of every link below the aggregation switches.
    pub delay: Time,
    /// Delay of the links between aggregation and core switches.
    pub core_delay: Time,
}

impl FatTreeK {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.k < 2 || !self.k.is_multiple_of(2) {
            let message = format!("`k` must be even and at least 2, not {}", self.k);
            return Err(FieldError::new("k", message).help("write the ports of a switch, such as `k = 8`"));
        }
        // There are as many hosts, and fewer switches.
        build::size("k", &[self.k, self.k / 2, self.k / 2])?;
        let rename = |e: FieldError| match e.field {
            "hosts_per_tor" => FieldError { field: "hosts_per_edge", message: e.message.replace("tor", "edge"), ..e },
            "host_delay" | "tor_delay" => {
                FieldError { field: "delay", message: e.message.replace(e.field, "delay"), ..e }
            }
            _ => e,
        };
        self.tree().check().map_err(rename)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        self.tree().build()
    }

    /// Returns the same tree as a [`FatTree`].
    fn tree(&self) -> FatTree {
        let half = self.k / 2;
        FatTree {
            pods: self.k,
            tors_per_pod: half,
            aggs_per_pod: half,
            cores: half * half,
            hosts_per_tor: self.hosts_per_edge.unwrap_or(half),
            host_rate: self.host_rate,
            host_delay: self.delay,
            fabric_rate: self.fabric_rate,
            tor_delay: self.delay,
            core_delay: self.core_delay,
        }
    }
}
