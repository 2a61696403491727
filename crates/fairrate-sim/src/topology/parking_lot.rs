use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::input_error::FieldError;

/// Switches `sw0`, `sw1` ... in a line, each with hosts of its own; the bottlenecks are the links of the line,
/// from each switch to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkingLot {
    /// Number of switches.
    pub switches: u32,
    /// Number of hosts on each switch.
    pub hosts_per_switch: u32,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Delay of the host links.
    pub host_delay: Time,
    /// Rate of the links between switches.
    pub link_rate: Rate,
    /// Rate of each link between switches in their order, if they differ.
    pub link_rates: Option<Vec<Rate>>,
    /// Delay of the links between switches.
    pub link_delay: Time,
}

impl ParkingLot {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.switches < 2 {
            return Err(FieldError::new("switches", "`switches` must be at least 2"));
        }
        build::positive("hosts_per_switch", self.hosts_per_switch)?;
        build::size("switches", &[self.switches])?;
        build::size("hosts_per_switch", &[self.switches, self.hosts_per_switch])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("link_rate", self.link_rate)?;
        if let Some(rates) = &self.link_rates {
            let links = self.switches as usize - 1;
            if rates.len() != links {
                let message = format!("{} rates for the {links} links between switches", rates.len());
                return Err(FieldError::new("link_rates", message).help("give one rate for each, in their order"));
            }
            rates.iter().try_for_each(|&rate| build::rate("link_rates", rate))?;
        }
        build::delay("link_delay", self.link_delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.racks(self.switches, self.hosts_per_switch);
        let switches = b.switches(self.switches, "sw", Tier::Tor);
        b.host_links(&switches, self.host_rate, self.host_delay);
        let first = b.n_links();
        for (i, pair) in switches.windows(2).enumerate() {
            let rate = self.link_rates.as_ref().map_or(self.link_rate, |rates| rates[i]);
            b.link(pair[0], pair[1], rate, self.link_delay);
        }
        let line: Vec<usize> = (first..b.n_links()).collect();
        b.finish(&line)
    }
}
