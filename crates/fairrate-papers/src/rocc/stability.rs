//! The loop of RoCC's section V: a PI controller at a port, N flows, and a delay of one period.
//!
//! Eq. 6 with eq. 2 is G(s) = K (1 + s/z) e^(-sT) / s², z = a / ((b + a/2) T), K = κ N a / T, κ = ΔF/ΔQ. ΔQ is in bits
//! here: with ΔQ in bytes, as in the paper's table, none of its margins is reproduced.

/// The period T, in seconds.
const PERIOD_S: f64 = 40e-6;
/// The ratio ΔF/ΔQ: 10 Mb/s and 600 bytes.
const KAPPA: f64 = 10e6 / (600.0 * 8.0);

/// The open loop with gains a and b and N flows.
#[derive(Clone, Copy)]
pub struct Loop {
    k: f64,
    z: f64,
}

impl Loop {
    /// Returns the loop with gains `a` and `b` and `flows` flows.
    pub fn new(a: f64, b: f64, flows: f64) -> Self {
        Self { k: KAPPA * flows * a / PERIOD_S, z: a / ((b + a / 2.0) * PERIOD_S) }
    }

    /// Returns |G| at a frequency in rad/s.
    pub fn gain(self, omega: f64) -> f64 {
        self.k * libm::hypot(1.0, omega / self.z) / (omega * omega)
    }

    /// Returns the phase of G at a frequency in rad/s, in degrees.
    pub fn phase(self, omega: f64) -> f64 {
        libm::atan(omega / self.z).to_degrees() - (omega * PERIOD_S).to_degrees() - 180.0
    }

    /// Returns the frequency in rad/s at which the gain is 1: ω⁴ - (K/z)² ω² - K² = 0.
    pub fn crossover(self) -> f64 {
        let p = (self.k / self.z) * (self.k / self.z);
        f64::midpoint(p, libm::sqrt(p * p + 4.0 * self.k * self.k)).sqrt()
    }

    /// Returns the phase margin in degrees: the distance of the phase from -180 degrees where the gain is 1. Below 0
    /// the loop is unstable.
    pub fn margin(self) -> f64 {
        180.0 + self.phase(self.crossover())
    }

    /// Returns the loop bandwidth in Hz.
    pub fn bandwidth_hz(self) -> f64 {
        self.crossover() / std::f64::consts::TAU
    }
}

/// Returns the loop that AUTO_TUNE makes of the gains for N flows which share a link of `fmax` (in ΔF): gains are
/// divided by half the level, which doubles up to 64 as long as the fair rate is below `fmax` over it (Alg. 1).
pub fn auto_tuned(a: f64, b: f64, flows: f64, fmax: f64) -> Loop {
    let rate = fmax / flows;
    let mut level = 2.0;
    while rate < fmax / level && level < 64.0 {
        level *= 2.0;
    }
    let ratio = level / 2.0;
    Loop::new(a / ratio, b / ratio, flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.3 and 3 with two flows: z = 0.3/(3.15·40 us) = 2,381, K = 2083.3·2·0.3/40 us = 3.125e7, (K/z)² = 1.7227e8, ω =
    /// 13,333; the margin is atan(5.6) - 0.5333 rad = 79.87 - 30.56 degrees.
    #[test]
    fn the_margin_by_hand() {
        let of_two = Loop::new(0.3, 3.0, 2.0);
        assert!((of_two.crossover() - 13_333.0).abs() < 5.0 && (of_two.margin() - 49.3).abs() < 0.1);
        assert!((of_two.gain(of_two.crossover()) - 1.0).abs() < 1e-12);
    }

    /// Two flows have level 2, whose ratio is 1; 100 flows level 64: F = 40 is below 4000/32, and 64 is the last.
    #[test]
    fn levels_divide_gains() {
        let of = |flows| auto_tuned(0.3, 1.5, flows, 4_000.0).margin();
        assert_eq!(of(2.0), Loop::new(0.3, 1.5, 2.0).margin());
        assert_eq!(of(100.0), Loop::new(0.3 / 32.0, 1.5 / 32.0, 100.0).margin());
    }
}
