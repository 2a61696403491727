//! Normalisers: optimised rates scaled so that no link gets more than its capacity while prices still converge. J.
//! Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, section 4.
//!
//! | paper       | here             | unit  |
//! |-------------|------------------|-------|
//! | `x_s`       | `rate`           | any   |
//! | `r_l`       | `ratio` = load / capacity | 1 |
//! | `r*`        | the largest `ratio` | 1  |
//!
//! Readings. Equations 8 and 9 divide by the largest ratio in every case, also if it is below 1, so rates on links with
//! room rise until one link of the path is full, while the text speaks of scaling down. The equations are the default;
//! `scales_up: false` divides by 1 at least. Links without load are skipped: all rates over them are 0. A flow that is
//! limited by its demand does not rise above it.
//!
//! The `x_s` of `r_l` are those of equation 3, which prices follow too. Here a flow may want more there than it can
//! ever be granted: up to twice the smallest capacity of its path. `bounded: true` counts in `r_l` only what the flow
//! can be granted. Rates still fit, and more of the capacity is given out. The paper has neither bound, so the equation
//! is the default.

/// The method that makes optimised rates fit the capacities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normaliser {
    /// No normalisation.
    None,
    /// U-NORM: all rates by the same factor.
    Uniform {
        /// `true` if rates are also scaled up where no link is full.
        scales_up: bool,
    },
    /// F-NORM: each flow by the factor of the fullest link of its path.
    Flow {
        /// `true` if rates are also scaled up where no link of the path is full.
        scales_up: bool,
        /// `true` if at most a flow's demand and its path's smallest capacity count of its rate.
        bounded: bool,
    },
}

impl Normaliser {
    /// Equation 8 as it is written.
    pub const U_NORM: Self = Self::Uniform { scales_up: true };
    /// Equation 9 as it is written.
    pub const F_NORM: Self = Self::Flow { scales_up: true, bounded: false };
    /// Equation 9, where at most the rate that a flow can be granted counts.
    pub const F_NORM_BOUNDED: Self = Self::Flow { scales_up: true, bounded: true };
}

/// Equations 8 and 9: returns the normalised rate, where `ratio` is the largest of all links or of the flow's path.
pub(crate) fn normalised(rate: f64, ratio: f64, scales_up: bool) -> f64 {
    let divisor = if scales_up { ratio } else { ratio.max(1.0) };
    // Without load on any link there is no rate to scale.
    if 0.0 < divisor { rate / divisor } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_down_and_without_load() {
        assert_eq!(normalised(3.0, 1.5, true), 2.0);
        assert_eq!(normalised(3.0, 0.5, true), 6.0);
        assert_eq!(normalised(3.0, 0.5, false), 3.0);
        assert_eq!(normalised(0.0, 0.0, true), 0.0);
    }
}
