//! The utilities of network utility maximisation, which finds the rates that maximise the sum of all flows' utilities.
//! F. Kelly, A. Maulloo, D. Tan, "Rate control for communication networks: shadow prices, proportional fairness and
//! stability", J. Oper. Res. Soc. 49, 1998; J. Mo, J. Walrand, "Fair end-to-end window-based congestion control",
//! IEEE/ACM ToN 8, 2000 (alpha-fairness).
//!
//! | paper         | here                                  | unit                 |
//! |---------------|---------------------------------------|----------------------|
//! | `U(x)`        | [`Utility::value`]                    | utility              |
//! | `U'(x)`       | [`Utility::derivative`]               | utility a unit of rate |
//! | `(U')^-1(q)`  | [`Response::rate`]                    | units of rate        |
//! | `((U')^-1)'`  | minus [`Response::sensitivity`]       | units of rate a unit of price |
//!
//! Rates are in units that the caller chooses (see [`NumConfig::unit_bps`](crate::NumConfig::unit_bps)), and prices are
//! utility a unit of rate. The optimum of weighted logarithms and of alpha-fair utilities is the same in every unit.

use std::fmt;
use std::sync::Arc;

/// A user-defined utility. It is strictly concave and increasing for rates above 0, and all four functions belong to
/// the same utility.
pub trait UtilityFunction: fmt::Debug + Send + Sync {
    /// Returns `U(x)`.
    fn value(&self, rate: f64) -> f64;

    /// Returns `U'(x)`, which is above 0 and falls as the rate rises.
    fn derivative(&self, rate: f64) -> f64;

    /// Returns `(U')^-1(q)`, the rate beyond which a flow wants no more at this price, above 0.
    fn inverse(&self, price: f64) -> f64;

    /// Returns `((U')^-1)'(q)`, the change of the rate with the price, below 0.
    fn inverse_slope(&self, price: f64) -> f64;
}

/// The utility of a flow's rate.
#[derive(Clone, Debug)]
pub enum Utility {
    /// `w log x`: weighted proportional fairness.
    Log {
        /// `w`, above 0.
        weight: f64,
    },
    /// `w x^(1 - A) / (1 - A)`: near the largest throughput for small `A`, `w log x` for 1, the least delay for 2,
    /// towards max-min for large ones.
    AlphaFair {
        /// `w`, above 0.
        weight: f64,
        /// `A`, above 0.
        alpha: f64,
    },
    /// A user-defined utility.
    Custom(Arc<dyn UtilityFunction>),
}

/// A flow's reaction to a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// The rate the flow takes.
    pub rate: f64,
    /// Fall of the rate for each unit that the price rises, not below 0.
    pub sensitivity: f64,
}

impl Utility {
    /// Creates the utility `w log x`.
    pub const fn log(weight: f64) -> Self {
        Self::Log { weight }
    }

    /// Creates the utility `w x^(1 - A) / (1 - A)`, which is `w log x` for 1.
    pub fn alpha_fair(weight: f64, alpha: f64) -> Self {
        if alpha == 1.0 { Self::Log { weight } } else { Self::AlphaFair { weight, alpha } }
    }

    /// Creates a user-defined utility.
    pub fn custom(function: impl UtilityFunction + 'static) -> Self {
        Self::Custom(Arc::new(function))
    }

    /// Returns `true` if weight and alpha are usable: numbers above 0, not infinite. A weight of 0 would mean a flow
    /// that takes no rate at any price, which has no logarithm: it is refused, and is not a flow without a rate.
    pub fn is_usable(&self) -> bool {
        let usable = |x: f64| x.is_finite() && 0.0 < x;
        match self {
            Self::Log { weight } => usable(*weight),
            Self::AlphaFair { weight, alpha } => usable(*weight) && usable(*alpha),
            Self::Custom(_) => true,
        }
    }

    /// Returns `U(x)`.
    pub fn value(&self, rate: f64) -> f64 {
        match self {
            Self::Log { weight } => weight * libm::log(rate),
            Self::AlphaFair { weight, alpha } => weight * libm::pow(rate, 1.0 - alpha) / (1.0 - alpha),
            Self::Custom(function) => function.value(rate),
        }
    }

    /// Returns `U'(x)`.
    pub fn derivative(&self, rate: f64) -> f64 {
        match self {
            Self::Log { weight } => weight / rate,
            Self::AlphaFair { weight, alpha } => weight * libm::pow(rate, -alpha),
            Self::Custom(function) => function.derivative(rate),
        }
    }

    /// Returns the rate a flow takes at a price, and its sensitivity to the price.
    pub fn response(&self, price: f64) -> Response {
        match self {
            Self::Log { weight } => {
                let rate = weight / price;
                Response { rate, sensitivity: rate / price }
            }
            Self::AlphaFair { weight, alpha } => {
                let rate = libm::pow(weight / price, 1.0 / alpha);
                Response { rate, sensitivity: rate / (alpha * price) }
            }
            Self::Custom(function) => {
                Response { rate: function.inverse(price), sensitivity: -function.inverse_slope(price) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sqrt(x)`, the alpha-fair utility of 1/2 halved: `U' = 1 / (2 sqrt(x))`, `(U')^-1 = 1 / (4 q^2)`.
    #[derive(Debug)]
    struct Root;

    impl UtilityFunction for Root {
        fn value(&self, rate: f64) -> f64 {
            rate.sqrt()
        }
        fn derivative(&self, rate: f64) -> f64 {
            0.5 / rate.sqrt()
        }
        fn inverse(&self, price: f64) -> f64 {
            0.25 / (price * price)
        }
        fn inverse_slope(&self, price: f64) -> f64 {
            -0.5 / (price * price * price)
        }
    }

    /// Weight 3 at price 6: a rate of 1/2, and `w / q^2` = 1/12. Weight 8 and alpha 3: `U' = 8 / x^3`, 1 at 2; the
    /// rate's derivative is `x / (A q)` = 2/3.
    #[test]
    fn responses_by_hand() {
        assert_eq!(Utility::log(3.0).response(6.0), Response { rate: 0.5, sensitivity: 0.5 / 6.0 });
        let cubic = Utility::alpha_fair(8.0, 3.0);
        assert_eq!(cubic.derivative(2.0), 1.0);
        let at_one = cubic.response(1.0);
        assert!((at_one.rate - 2.0).abs() < 1e-15 && (at_one.sensitivity - 2.0 / 3.0).abs() < 1e-15, "{at_one:?}");
        assert_eq!(cubic.value(2.0), -1.0);
        assert!(matches!(Utility::alpha_fair(2.0, 1.0), Utility::Log { weight: 2.0 }));
    }

    #[test]
    fn functions_of_a_utility_belong_together() {
        let all = [
            Utility::log(2.0),
            Utility::alpha_fair(3.0, 0.5),
            Utility::alpha_fair(0.1, 2.0),
            Utility::alpha_fair(1.0, 8.0),
            Utility::custom(Root),
        ];
        for utility in all {
            for rate in [0.01, 0.7, 1.0, 3.0, 40.0] {
                let (d, near) = (rate * 1e-6, |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs());
                let price = utility.derivative(rate);
                let slope = (utility.value(rate + d) - utility.value(rate - d)) / (2.0 * d);
                assert!((slope - price).abs() <= 1e-4 * price, "{utility:?} at {rate}: {slope}, {price}");
                assert!(near(utility.response(price).rate, rate), "{utility:?} at {rate}");
                let e = price * 1e-6;
                let fall = (utility.response(price - e).rate - utility.response(price + e).rate) / (2.0 * e);
                assert!(near(utility.response(price).sensitivity, fall), "{utility:?} at {rate}");
            }
        }
    }

    #[test]
    fn weights_and_alphas_that_cannot_be_used() {
        for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(!Utility::log(bad).is_usable() && !Utility::AlphaFair { weight: 1.0, alpha: bad }.is_usable());
        }
        assert!(Utility::log(1e-6).is_usable() && Utility::alpha_fair(1.0, 2.0).is_usable());
    }
}
