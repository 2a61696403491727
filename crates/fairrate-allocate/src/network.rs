//! The input of an allocation: links with capacities, and flows with the links they use.

use std::ops::RangeInclusive;

use fairrate_units::Rate;

/// Range of usable capacities: a bit a second up to an exabit a second.
pub(crate) const CAPACITIES_BPS: RangeInclusive<f64> = 1.0..=1e18;
/// Range of usable weights. Sums over a link keep 31 digits: enough for twelve of the lightest flow beside a hundred
/// thousand of the heaviest.
pub(crate) const WEIGHTS: RangeInclusive<f64> = 1e-6..=1e6;

/// The position of a link in [`Network::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Returns the position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The link's name; the allocation does not use it.
    pub name: String,
    /// Largest sum of its flows' rates, in bit/s. Not a [`Rate`], so that any number of a file is kept exactly.
    pub capacity_bps: f64,
}

impl Link {
    /// Creates a link of the given rate.
    pub fn new(name: impl Into<String>, rate: Rate) -> Self {
        Self { name: name.into(), capacity_bps: rate.as_bps_f64() }
    }
}

/// A flow that takes any rate it gets, up to its demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The flow's name; the allocation does not use it.
    pub name: String,
    /// The links of the flow's path, each once, in any order.
    pub links: Vec<LinkId>,
    /// The flow's share relative to other flows: at a common bottleneck, rates are proportional to weights.
    pub weight: f64,
    /// The largest rate the flow asks for, in bit/s; infinity: no limit.
    pub demand_bps: f64,
}

impl Flow {
    /// Creates a flow of weight 1 without limit.
    pub fn new(name: impl Into<String>, links: impl Into<Vec<LinkId>>) -> Self {
        Self { name: name.into(), links: links.into(), weight: 1.0, demand_bps: f64::INFINITY }
    }

    /// Returns the same flow with another weight.
    #[must_use]
    pub fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    /// Returns the same flow with a demand of `demand_bps`, in bit/s.
    #[must_use]
    pub fn demand_bps(self, demand_bps: f64) -> Self {
        Self { demand_bps, ..self }
    }
}

/// A set of links and the flows that share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Links, identified by position.
    pub links: Vec<Link>,
    /// Flows.
    pub flows: Vec<Flow>,
}

/// The reason why a network has no allocation. Links and flows are identified by position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// A capacity that is not a number, not above 0, or out of range.
    #[error("the capacity of link #{link} is {capacity_bps} bit/s; it must be from 1 bit/s to 10^18 bit/s")]
    Capacity {
        /// Position of the link.
        link: usize,
        /// Its capacity.
        capacity_bps: f64,
    },
    /// A weight that is not a number, not above 0, or out of range.
    #[error("the weight of flow #{flow} is {weight}; it must be from 10^-6 to 10^6")]
    Weight {
        /// Position of the flow.
        flow: usize,
        /// Its weight.
        weight: f64,
    },
    /// A weight other than 1, where the algorithm has no weights.
    #[error("the weight of flow #{flow} is {weight}; this algorithm knows no weights, so it must be 1")]
    Weighted {
        /// Position of the flow.
        flow: usize,
        /// Its weight.
        weight: f64,
    },
    /// A demand that is not a number, not above 0, or out of range.
    #[error("the demand of flow #{flow} is {demand_bps} bit/s; it must be from 1 bit/s to 10^18 bit/s, or infinite")]
    Demand {
        /// Position of the flow.
        flow: usize,
        /// Its demand.
        demand_bps: f64,
    },
    /// A flow without links, whose rate nothing limits.
    #[error("flow #{flow} uses no link, so nothing limits its rate")]
    NoLinks {
        /// Position of the flow.
        flow: usize,
    },
    /// A flow over a link that does not exist.
    #[error("flow #{flow} uses link #{}, of {n_links} links", link.0)]
    UnknownLink {
        /// Position of the flow.
        flow: usize,
        /// The link it names.
        link: LinkId,
        /// Number of links.
        n_links: usize,
    },
    /// A flow that lists a link more than once.
    #[error("flow #{flow} uses link #{} more than once", link.0)]
    RepeatedLink {
        /// Position of the flow.
        flow: usize,
        /// The link it repeats.
        link: LinkId,
    },
}

impl Network {
    /// Checks that the network has an allocation.
    ///
    /// # Errors
    /// Names the first link or flow that is invalid.
    pub fn check(&self) -> Result<(), NetworkError> {
        for (link, &Link { capacity_bps, .. }) in self.links.iter().enumerate() {
            if !CAPACITIES_BPS.contains(&capacity_bps) {
                return Err(NetworkError::Capacity { link, capacity_bps });
            }
        }
        // For every link, 1 + the last flow found to use it.
        let mut last_user = vec![0; self.links.len()];
        for (flow, Flow { links, weight, demand_bps, .. }) in self.flows.iter().enumerate() {
            if !WEIGHTS.contains(weight) {
                return Err(NetworkError::Weight { flow, weight: *weight });
            }
            if !CAPACITIES_BPS.contains(demand_bps) && *demand_bps != f64::INFINITY {
                return Err(NetworkError::Demand { flow, demand_bps: *demand_bps });
            }
            if links.is_empty() {
                return Err(NetworkError::NoLinks { flow });
            }
            for &link in links {
                let Some(last) = last_user.get_mut(link.index()) else {
                    return Err(NetworkError::UnknownLink { flow, link, n_links: self.links.len() });
                };
                if std::mem::replace(last, flow + 1) == flow + 1 {
                    return Err(NetworkError::RepeatedLink { flow, link });
                }
            }
        }
        Ok(())
    }
}
