use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Hosts `h0` ... around the switch `sw0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Star {
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of their links.
    pub rate: Rate,
    /// Delay of their links.
    pub delay: Time,
}

impl Star {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.hosts < 2 {
            return Err(FieldError::new("hosts", "`hosts` must be at least 2"));
        }
        build::size("hosts", &[self.hosts])?;
        build::rate("rate", self.rate)?;
        build::delay("delay", self.delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.racks(1, self.hosts);
        let switch = b.switches(1, "sw", Tier::Tor);
        b.host_links(&switch, self.rate, self.delay);
        b.finish(&[])
    }
}
