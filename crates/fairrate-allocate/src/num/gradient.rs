//! Gradient projection: a price rises with the excess load of its link, whatever its flows' reaction. S. Low, D.
//! Lapsley,
//! "Optimization flow control, I: basic algorithm and convergence", IEEE/ACM ToN 7, 1999.
//!
//! | paper       | here                    | unit                              |
//! |-------------|-------------------------|-----------------------------------|
//! | `p_l`       | `LinkState::price`      | utility a unit of rate            |
//! | `G_l`       | `LinkState::excess`     | units of rate                     |
//! | `gamma`     | [`Gradient::gamma`]     | units of price a unit of rate     |
//!
//! `gamma` has units, so no value serves every network: rates converge if it is below 2 divided by (the largest `1 /
//! |U''|` of a flow x the longest path x the most flows on a link) (theorem 1), which is
//! [`Num::safe_step`](super::Num::safe_step) except for the factor 2 and with sums in place of products. Flowtune does
//! not give its value.

use super::LinkState;

/// The gradient method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    /// Rise of a price for each unit of excess rate.
    pub gamma: f64,
}

impl Gradient {
    /// Updates the prices by `p = [p + gamma G]+`.
    pub(super) fn update(self, links: &mut [LinkState]) {
        for link in links.iter_mut().filter(|link| link.is_used()) {
            link.price = (link.price + self.gamma * link.excess()).max(0.0);
        }
    }
}
