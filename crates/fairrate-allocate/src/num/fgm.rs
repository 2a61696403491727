//! FGM, the fast weighted gradient method: gradient steps with the largest step that is safe for each link, from a
//! point beyond the last one. A. Beck, A. Nedic, A. Ozdaglar, M. Teboulle, "An O(1/k) Gradient Method for Network
//! Resource Allocation Problems", IEEE TCNS 1, 2014.
//!
//! | paper       | here                    | unit                              |
//! |-------------|-------------------------|-----------------------------------|
//! | `lambda`    | `Fgm::settled`          | utility a unit of rate            |
//! | `y`         | `LinkState::price`      | the same: prices flows are shown  |
//! | `t_k`       | `Fgm::momentum`         | 1                                 |
//! | `L_l`       | `LinkState::bend`: the sum over its flows of (links of the path / `sigma_s`) | units of rate a unit of price |
//! | `sigma_s`   | the least `|U''|` of a flow up to its largest rate | utility a squared unit of rate |
//!
//! Readings. A flow's largest rate, on which `sigma_s` depends, is the smallest of its demand and its path's
//! capacities. `y` may be below 0; flows then take their largest rate. Momentum is never reset, although flows begin
//! and end.

use super::LinkState;

/// FGM. It has no parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Fgm {
    /// Prices of the previous iteration, without the momentum.
    settled: Vec<f64>,
    momentum: f64,
}

impl Fgm {
    pub(super) fn new(links: &[LinkState]) -> Self {
        Self { settled: links.iter().map(|link| link.price).collect(), momentum: 1.0 }
    }

    pub(super) fn update(&mut self, links: &mut [LinkState]) {
        let next = next_momentum(self.momentum);
        let beyond = (self.momentum - 1.0) / next;
        for (link, settled) in links.iter_mut().zip(&mut self.settled).filter(|(link, _)| link.is_used()) {
            let stepped = step(link);
            link.price = stepped + beyond * (stepped - *settled);
            *settled = stepped;
        }
        self.momentum = next;
    }
}

/// Returns `lambda_k = [y_k + G / L]+`.
fn step(link: &LinkState) -> f64 {
    (link.price + link.excess() / link.bend).max(0.0)
}

/// Returns `t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2`.
fn next_momentum(t: f64) -> f64 {
    f64::midpoint(1.0, (1.0 + 4.0 * t * t).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first step has no momentum: t goes from 1 to (1 + sqrt 5) / 2 = 1.618, and (1 - 1) / 1.618 = 0. A link of 2
    /// with a load of 5 and a bend of 6: 1 + 3 / 6 = 1.5. The second goes from 1.5 to 1.5 + 3 / 6 = 2, and by
    /// 0.618 / 2.194 = 0.2817 of the step of 0.5 beyond: t is (1 + sqrt(1 + 4 x 2.618)) / 2 = 2.194.
    #[test]
    fn two_steps_by_hand() {
        let link = LinkState { price: 1.0, load: 5.0, bend: 6.0, n_flows: 1, ..LinkState::new(2.0) };
        let mut links = [link];
        let mut fgm = Fgm::new(&links);
        fgm.update(&mut links);
        assert_eq!(links[0].price, 1.5);
        fgm.update(&mut links);
        assert!((links[0].price - 2.140_84).abs() < 1e-4, "{}", links[0].price);
    }
}
