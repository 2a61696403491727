use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Leaves `tor0` ... with hosts, each connected to every spine `spine0` ...
///
/// Oversubscription is `hosts_per_leaf * host_rate` over `spines * uplink_rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Number of leaves.
    pub leaves: u32,
    /// Number of spines.
    pub spines: u32,
    /// Number of hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Delay of the host links.
    pub host_delay: Time,
    /// Rate of the links between leaves and spines.
    pub uplink_rate: Rate,
    /// Delay of the links between leaves and spines.
    pub uplink_delay: Time,
}

impl LeafSpine {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        build::positive("leaves", self.leaves)?;
        build::positive("spines", self.spines)?;
        build::positive("hosts_per_leaf", self.hosts_per_leaf)?;
        build::size("spines", &[self.leaves, self.spines])?;
        build::size("hosts_per_leaf", &[self.leaves, self.hosts_per_leaf])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("uplink_rate", self.uplink_rate)?;
        build::delay("uplink_delay", self.uplink_delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.racks(self.leaves, self.hosts_per_leaf);
        let leaves = b.switches(self.leaves, "tor", Tier::Tor);
        let spines = b.switches(self.spines, "spine", Tier::Core);
        b.host_links(&leaves, self.host_rate, self.host_delay);
        b.mesh(&leaves, &spines, self.uplink_rate, self.uplink_delay);
        b.finish(&[])
    }
}
