use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Left hosts on `sw0`, right hosts on `sw1`, and the bottleneck from `sw0` to `sw1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// Number of hosts on the left: `h0` ...
    pub left: u32,
    /// Number of hosts on the right, numbered after those on the left.
    pub right: u32,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Delay of the host links.
    pub host_delay: Time,
    /// Rate of the link between the switches.
    pub bottleneck_rate: Rate,
    /// Delay of the link between the switches.
    pub bottleneck_delay: Time,
}

impl Dumbbell {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        build::positive("left", self.left)?;
        build::positive("right", self.right)?;
        build::size("left", &[self.left])?;
        build::size("right", &[self.right])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("bottleneck_rate", self.bottleneck_rate)?;
        build::delay("bottleneck_delay", self.bottleneck_delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.hosts(0, self.left);
        b.hosts(1, self.right);
        let switches = b.switches(2, "sw", Tier::Tor);
        b.host_links(&switches, self.host_rate, self.host_delay);
        let bottleneck = b.n_links();
        b.link(switches[0], switches[1], self.bottleneck_rate, self.bottleneck_delay);
        b.finish(&[bottleneck])
    }
}
