use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{ScaleUp, Tier, Topology};
use crate::input_error::FieldError;

/// Servers with several GPUs, each with a NIC, under leaves `tor0` ..., each of which is connected to every spine `spine0` ....
///
/// GPU `l` of server `s` is the host `h` of number `s * gpus_per_server + l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The leaf of each NIC.
    pub wiring: Wiring,
    /// Number of servers.
    pub servers: u32,
    /// Number of GPUs in a server.
    pub gpus_per_server: u32,
    /// Number of servers with NICs on a leaf.
    pub servers_per_leaf: u32,
    /// Number of spines.
    pub spines: u32,
    /// Rate of the links of NICs.
    pub host_rate: Rate,
    /// Delay of the links of NICs.
    pub host_delay: Time,
    /// Rate of the links between leaves and spines.
    pub uplink_rate: Rate,
    /// Delay of the links between leaves and spines.
    pub uplink_delay: Time,
}

/// The choice of a leaf for a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// The GPUs with the same number in their servers, a rail, have a leaf for every `servers_per_leaf` servers, as in NVIDIA's
    /// rail-optimised networks.
    Rails,
    /// All NICs of a server are on the same leaf, as in Alibaba's DCN+.
    Servers,
}

impl Cluster {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        build::positive("servers", self.servers)?;
        build::positive("servers_per_leaf", self.servers_per_leaf)?;
        build::positive("spines", self.spines)?;
        if self.gpus_per_server < 2 {
            return Err(FieldError::new("gpus_per_server", "`gpus_per_server` must be at least 2"));
        }
        build::size("servers", &[self.servers, self.gpus_per_server])?;
        build::size("spines", &[self.spines, self.n_leaves()])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("uplink_rate", self.uplink_rate)?;
        build::delay("uplink_delay", self.uplink_delay)
    }

    /// Returns the network, without scale-up networks.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        for server in 0..self.servers {
            let segment = server / self.servers_per_leaf;
            for gpu in 0..self.gpus_per_server {
                let leaf = match self.wiring {
                    Wiring::Rails => segment * self.gpus_per_server + gpu,
                    Wiring::Servers => segment,
                };
                b.hosts(leaf, 1);
            }
        }
        let leaves = b.switches(self.n_leaves(), "tor", Tier::Tor);
        let spines = b.switches(self.spines, "spine", Tier::Core);
        b.host_links(&leaves, self.host_rate, self.host_delay);
        b.mesh(&leaves, &spines, self.uplink_rate, self.uplink_delay);
        b.finish(&[])
    }

    /// Returns the scale-up networks of the servers, with links of a rate and delay.
    pub fn scale_up(&self, rate: Rate, delay: Time) -> ScaleUp {
        ScaleUp { size: self.gpus_per_server, rate, delay }
    }

    fn n_leaves(&self) -> u32 {
        let segments = self.servers.div_ceil(self.servers_per_leaf);
        match self.wiring {
            Wiring::Rails => segments.saturating_mul(self.gpus_per_server),
            Wiring::Servers => segments,
        }
    }
}
