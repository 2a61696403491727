//! The Newton-like method: Newton steps by link, with flows' reaction estimated from how the load has followed the
//! price. S. Athuraliya, S. Low, "Optimization Flow Control with Newton-Like Algorithm", Telecommunication Systems
//! 15, 2000.
//!
//! | paper    | here                     | unit                           |
//! |----------|--------------------------|--------------------------------|
//! | `p_l`    | `LinkState::price`       | utility a unit of rate         |
//! | `G_l`    | `LinkState::excess`      | units of rate                  |
//! | `H_ll`   | minus `Estimate::sensitivity` | units of rate a unit of price |
//! | `gamma`  | [`NewtonLike::gamma`]    | 1                              |
//!
//! Readings, as Flowtune gives no constants and found the method unstable. Load and price are averaged over windows of
//! [`NewtonLike::window`] iterations, and the estimate is the difference of two windows' loads divided by that of their
//! prices. A difference of 0 or of the wrong sign, as when flows begin or end, leaves the old estimate. A new estimate
//! is held within a factor of 10 of load / price, which is the exact value for logarithms where no flow pays for other
//! links, and which is the estimate before the first. A price of 0 gives no information: the link then takes the
//! capacity as its estimate, as at the price of the start.

use super::LinkState;

/// Largest factor between a new estimate and load / price, in either direction.
const TRUST: f64 = 10.0;

/// The Newton-like method.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonLike {
    /// The part of a Newton step that a price takes.
    gamma: f64,
    /// Iterations of a window.
    window: u32,
    /// Iterations seen of the present window.
    n_seen: u32,
    estimates: Vec<Estimate>,
}

/// Estimate of the reaction of a link's flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Estimate {
    /// Estimated sensitivity; 0: none yet.
    sensitivity: f64,
    /// Sums of the present window.
    load: f64,
    price: f64,
    /// Averages of the last window with flows.
    last: Option<(f64, f64)>,
}

impl NewtonLike {
    pub(super) fn new(gamma: f64, window: u32, n_links: usize) -> Self {
        Self { gamma, window: window.max(1), n_seen: 0, estimates: vec![Estimate::default(); n_links] }
    }

    pub(super) fn update(&mut self, links: &mut [LinkState]) {
        self.n_seen += 1;
        let whole = self.n_seen == self.window;
        for (link, estimate) in links.iter_mut().zip(&mut self.estimates).filter(|(link, _)| link.is_used()) {
            estimate.load += link.load;
            estimate.price += link.price;
            if whole {
                estimate.end_window(f64::from(self.window));
            }
            link.price = (link.price + self.gamma * link.excess() / estimate.of(link)).max(0.0);
        }
        if whole {
            self.n_seen = 0;
        }
    }
}

impl Estimate {
    /// Updates the estimate from this window and the one before.
    fn end_window(&mut self, n: f64) {
        let (load, price) = (self.load / n, self.price / n);
        if let Some((last_load, last_price)) = self.last {
            let observed = (load - last_load) / (last_price - price);
            let alone = load / price;
            if observed.is_finite() && 0.0 < observed && alone.is_finite() {
                self.sensitivity = observed.max(alone / TRUST).min(alone * TRUST);
            }
        }
        (self.load, self.price, self.last) = (0.0, 0.0, Some((load, price)));
    }

    fn of(&self, link: &LinkState) -> f64 {
        match link.price {
            0.0 => link.capacity,
            _ if 0.0 < self.sensitivity => self.sensitivity,
            price => link.load / price,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of one iteration. A link of 2 at price 1 with a load of 4: load / price is 4, so the price rises by half
    /// of 2 / 4 to 1.25. There the load is 3: it fell by 1 for 0.25, an estimate of 4, and 1.25 + 0.5 x 1 / 4 = 1.375.
    #[test]
    fn two_steps_by_hand() {
        let mut links = [LinkState { load: 4.0, n_flows: 1, ..LinkState::new(2.0) }];
        let mut method = NewtonLike::new(0.5, 1, 1);
        method.update(&mut links);
        assert_eq!(links[0].price, 1.25);
        links[0].load = 3.0;
        method.update(&mut links);
        assert_eq!((links[0].price, method.estimates[0].sensitivity), (1.375, 4.0));
    }
}
