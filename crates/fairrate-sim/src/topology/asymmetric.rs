use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Slow hosts on `sw0`, fast hosts on `sw1`, both switches connected to `sw2`, and the receiver, the last host,
/// on `sw2` (RoCC Fig. 12b). The bottleneck is the link from `sw2` to the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asymmetric {
    /// Number of slow hosts: `h0` ...
    pub slow_hosts: u32,
    /// Rate of their links.
    pub slow_rate: Rate,
    /// Number of fast hosts, numbered after the slow ones.
    pub fast_hosts: u32,
    /// Rate of their links.
    pub fast_rate: Rate,
    /// Rate of the links between switches and of the receiver's.
    pub core_rate: Rate,
    /// Delay of every link.
    pub delay: Time,
}

impl Asymmetric {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        build::positive("slow_hosts", self.slow_hosts)?;
        build::positive("fast_hosts", self.fast_hosts)?;
        build::size("slow_hosts", &[self.slow_hosts])?;
        build::size("fast_hosts", &[self.fast_hosts])?;
        build::rate("slow_rate", self.slow_rate)?;
        build::rate("fast_rate", self.fast_rate)?;
        build::rate("core_rate", self.core_rate)?;
        build::delay("delay", self.delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        let slow = b.hosts(0, self.slow_hosts);
        let fast = b.hosts(1, self.fast_hosts);
        let receiver = b.hosts(2, 1)[0];
        let switches = b.switches(3, "sw", Tier::Tor);
        for host in slow {
            b.link(host, switches[0], self.slow_rate, self.delay);
        }
        for host in fast {
            b.link(host, switches[1], self.fast_rate, self.delay);
        }
        b.link(switches[0], switches[2], self.core_rate, self.delay);
        b.link(switches[1], switches[2], self.core_rate, self.delay);
        let bottleneck = b.n_links();
        b.link(switches[2], receiver, self.core_rate, self.delay);
        b.finish(&[bottleneck])
    }
}
