//! NED, Newton-Exact-Diagonal: each price takes a Newton step of its own, with the exact reaction of the link's flows.
//! J. Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, section 3.
//!
//! | paper    | here                       | unit                           |
//! |----------|----------------------------|--------------------------------|
//! | `p_l`    | `LinkState::price`         | utility a unit of rate         |
//! | `G_l`    | `LinkState::excess`        | units of rate                  |
//! | `H_ll`   | minus `LinkState::sensitivity` | units of rate a unit of price |
//! | `gamma`  | [`Ned::gamma`]             | 1                              |
//!
//! Readings. The paper's text adds `gamma G / H` to the price, and equation 4 subtracts it; `H` is below 0, so only
//! equation 4 raises the price of an overloaded link. A link without flows keeps its price: `H` is 0 there. If flows
//! have nearly stopped and `H` is 0 for lack of digits, the step is unbounded, and the price becomes 0.
//!
//! Near the optimum, prices change by `I - gamma D^-1 H` from one iteration to the next, where `D` is the diagonal of
//! `H`. No eigenvalue of `D^-1 H` is above the number of links of the longest path that have a price. So rates converge
//! for `gamma` below 2 divided by that number, and they need not beyond: two flows over the same six links do not at
//! 0.4.

use super::LinkState;

/// NED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ned {
    /// The part of a Newton step that a price takes.
    pub gamma: f64,
}

impl Default for Ned {
    /// Returns 0.4, the value of section 6.
    fn default() -> Self {
        Self { gamma: 0.4 }
    }
}

impl Ned {
    /// Updates the prices by equation 4.
    pub(super) fn update(self, links: &mut [LinkState]) {
        for link in links.iter_mut().filter(|link| link.is_used()) {
            link.price = (link.price + self.gamma * link.excess() / link.sensitivity).max(0.0);
        }
    }
}
