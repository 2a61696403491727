use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{ScaleUp, SecondPorts, Tier, Topology};
use crate::ids::NodeId;
use crate::input_error::FieldError;

/// Servers with several GPUs, each with a NIC, under leaves `tor0` ..., each of which is connected to every spine
/// `spine0` ....
///
/// GPU `l` of server `s` is the host `h` of number `s * gpus_per_server + l`. Under [`Wiring::Planes`] it has a second
/// port, `h3.p2` for `h3`.
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
    /// Number of spines; under [`Wiring::Planes`], of each plane.
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
    /// The GPUs with the same number in their servers, a rail, have a leaf for every `servers_per_leaf` servers, as in
    /// NVIDIA's rail-optimised networks.
    Rails,
    /// All NICs of a server are on the same leaf, as in Alibaba's DCN+.
    Servers,
    /// As [`Wiring::Rails`], but each NIC has two ports on two leaves, and the leaves of first ports and those of
    /// second ports have spines of their own: the dual ToR and dual plane of Alibaba's HPN (Qian et al., "Alibaba HPN:
    /// A Data Center Network for Large Language Model Training", SIGCOMM 2024, sections 4 and 5).
    Planes,
}

impl Wiring {
    /// Returns the number of ports of a NIC.
    const fn n_ports(self) -> u32 {
        match self {
            Self::Rails | Self::Servers => 1,
            Self::Planes => 2,
        }
    }
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
        build::size("servers", &[self.servers, self.gpus_per_server, self.wiring.n_ports()])?;
        build::size("spines", &[self.spines, self.n_leaves()])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("uplink_rate", self.uplink_rate)?;
        build::delay("uplink_delay", self.uplink_delay)
    }

    /// Returns the network, without scale-up networks.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        let n_ports = self.wiring.n_ports();
        for (server, gpu) in self.gpus() {
            b.hosts(self.leaf(server, gpu) * n_ports, 1);
        }
        let first = b.n_nodes();
        for port in 1..n_ports {
            for (host, (server, gpu)) in self.gpus().enumerate() {
                b.node(format!("h{host}.p{}", port + 1), Tier::Host, self.leaf(server, gpu) * n_ports + port);
            }
        }
        let second_ports = SecondPorts::new(first..b.n_nodes());
        let leaves = b.switches(self.n_leaves() * n_ports, "tor", Tier::Tor);
        let spines = b.switches(self.spines * n_ports, "spine", Tier::Core);
        b.host_links(&leaves, self.host_rate, self.host_delay);
        for (plane, spines) in spines.chunks(self.spines as usize).enumerate() {
            let leaves: Vec<NodeId> = leaves[plane..].iter().copied().step_by(n_ports as usize).collect();
            b.mesh(&leaves, spines, self.uplink_rate, self.uplink_delay);
        }
        Topology { second_ports, ..b.finish(&[]) }
    }

    /// Returns the GPUs, each as its server and its number there.
    fn gpus(&self) -> impl Iterator<Item = (u32, u32)> {
        let n = self.gpus_per_server;
        (0..self.servers).flat_map(move |server| (0..n).map(move |gpu| (server, gpu)))
    }

    /// Returns the number of the leaf of a GPU; with several ports, among the leaves of a plane.
    fn leaf(&self, server: u32, gpu: u32) -> u32 {
        let segment = server / self.servers_per_leaf;
        match self.wiring {
            Wiring::Rails | Wiring::Planes => segment * self.gpus_per_server + gpu,
            Wiring::Servers => segment,
        }
    }

    /// Returns the scale-up networks of the servers, with links of a rate and delay.
    pub fn scale_up(&self, rate: Rate, delay: Time) -> ScaleUp {
        ScaleUp { size: self.gpus_per_server, rate, delay }
    }

    /// Returns the number of leaves; with several ports, of a plane.
    fn n_leaves(&self) -> u32 {
        let segments = self.servers.div_ceil(self.servers_per_leaf);
        match self.wiring {
            Wiring::Rails | Wiring::Planes => segments.saturating_mul(self.gpus_per_server),
            Wiring::Servers => segments,
        }
    }
}
