//! Algorithm 1 as a calculation of the next fair rate from the present one and two queue lengths.

use fairrate_units::Rate;

use super::{Arithmetic, LowQueueGain, RoccConfig, Thresholds};

/// Queue lengths in bytes, and gains, at one rate.
pub(super) struct Constants {
    pub(super) q_ref: f64,
    pub(super) q_mid: f64,
    pub(super) q_max: f64,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// The constants of section VI for 40 Gb/s.
const AT_40G: Constants = Constants { q_ref: 150e3, q_mid: 300e3, q_max: 360e3, alpha: 0.3, beta: 1.5 };
/// The constants of section VI for 100 Gb/s.
const AT_100G: Constants = Constants { q_ref: 300e3, q_mid: 600e3, q_max: 660e3, alpha: 0.45, beta: 2.25 };

impl Constants {
    /// Returns the constants of a port of `rate` bit/s. A control loop in which all rates and queues grow by the same
    /// factor keeps its behaviour with the same gains, so only queues scale with the rate.
    pub(super) fn of(config: &RoccConfig, rate: f64) -> Self {
        if config.thresholds == Thresholds::Given {
            let (q_ref, q_mid, q_max) = (config.q_ref.as_f64(), config.q_mid.as_f64(), config.q_max.as_f64());
            return Self { q_ref, q_mid, q_max, alpha: config.alpha, beta: config.beta };
        }
        let (set, of) = if rate * rate < 40e9 * 100e9 { (AT_40G, 40e9) } else { (AT_100G, 100e9) };
        let scale = rate / of;
        Self { q_ref: scale * set.q_ref, q_mid: scale * set.q_mid, q_max: scale * set.q_max, ..set }
    }
}

/// The parameters of algorithm 1 in one number type. In fixed point, F is in units of its last bit, and gains have
/// their own fraction bits.
#[derive(Clone, Debug)]
pub struct FairRate<N> {
    /// Fmin.
    pub f_min: N,
    /// Fmax.
    pub f_max: N,
    /// Qref, in ΔQ.
    pub q_ref: N,
    /// Qmid, in ΔQ.
    pub q_mid: N,
    /// Qmax, in ΔQ.
    pub q_max: N,
    /// The gain α̃.
    pub alpha: N,
    /// The gain β̃.
    pub beta: N,
    /// Queue length, Qref/8 or zero: while both queue lengths are below it, gains are not divided.
    pub whole_below: N,
}

impl RoccConfig {
    /// Returns the parameters of algorithm 1 at a port of `rate` in fixed point, for code that computes elsewhere:
    /// rates in steps of 2^-`fraction_bits` ΔF, gains in 2^-32 steps per ΔQ.
    pub fn fixed_point(&self, rate: Rate) -> FairRate<i128> {
        Law::new(self, rate).fixed
    }
}

/// Number of fraction bits of fixed-point gains.
const GAIN_BITS: u32 = 32;
/// Largest shift: ratio = level/2 and level ends at 64, which gives six regions.
const MOST_SHIFT: u32 = 5;

impl FairRate<i128> {
    /// Returns the next F by lines 2 to 14. Divisions round down, as shifts do.
    fn next(&self, f: i128, q_cur: i128, q_old: i128) -> i128 {
        let fast = self.f_max < 8 * f;
        let f = if self.q_max <= q_cur && fast {
            self.f_min
        } else if self.q_mid <= q_cur - q_old && fast {
            f >> 1
        } else {
            let is_low = q_cur.max(q_old) < self.whole_below;
            let shift = if is_low { 0 } else { self.shift(f) };
            let change = self.alpha * (q_cur - self.q_ref) + self.beta * (q_cur - q_old);
            ((f << (GAIN_BITS + shift)) - change) >> (GAIN_BITS + shift)
        };
        f.clamp(self.f_min, self.f_max)
    }

    /// Returns the shift of the gains (lines 15 to 19).
    pub(super) fn shift(&self, f: i128) -> u32 {
        (0..MOST_SHIFT).take_while(|shift| f << (shift + 1) < self.f_max).count() as u32
    }
}

impl FairRate<f64> {
    /// Returns the next F by lines 2 to 14.
    fn next(&self, f: f64, q_cur: f64, q_old: f64) -> f64 {
        let fast = self.f_max / 8.0 < f;
        let f = if self.q_max <= q_cur && fast {
            self.f_min
        } else if self.q_mid <= q_cur - q_old && fast {
            f / 2.0
        } else {
            let is_low = q_cur.max(q_old) < self.whole_below;
            let ratio = if is_low { 1.0 } else { f64::from(1_u32 << self.shift(f)) };
            f - self.alpha / ratio * (q_cur - self.q_ref) - self.beta / ratio * (q_cur - q_old)
        };
        f.min(self.f_max).max(self.f_min)
    }

    /// Returns the exponent of the ratio (lines 15 to 19).
    pub(super) fn shift(&self, f: f64) -> u32 {
        (0..MOST_SHIFT).take_while(|shift| f * f64::from(2_u32 << shift) < self.f_max).count() as u32
    }
}

/// Algorithm 1 at one port, in the configured arithmetic. Rates are in ΔF and queue lengths in ΔQ.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// ΔQ in bytes.
    pub(super) queue_unit: u64,
    /// Steps of F in ΔF, in fixed point.
    pub(super) steps: f64,
    pub(super) arithmetic: Arithmetic,
    pub(super) fixed: FairRate<i128>,
    pub(super) float: FairRate<f64>,
}

/// Upper bound of any rate or queue length in units: 2^53, up to which floating point represents integers exactly.
const MOST: f64 = 9_007_199_254_740_992.0;

/// Returns a number from a notice, limited to 0 to [`MOST`]; NaN becomes 0.
pub(super) fn sane(x: f64) -> f64 {
    if MOST < x { MOST } else { x.max(0.0) }
}

impl Law {
    pub(super) fn new(config: &RoccConfig, rate: Rate) -> Self {
        let (rate_unit, queue_unit) = (config.rate_unit.as_bps_f64(), config.queue_unit.as_f64());
        let c = Constants::of(config, rate.as_bps_f64());
        let f_max = (rate.as_bps_f64() / rate_unit).max(1.0);
        let float = FairRate {
            f_min: (config.min_rate.as_bps_f64() / rate_unit).min(f_max),
            f_max,
            q_ref: c.q_ref / queue_unit,
            q_mid: c.q_mid / queue_unit,
            q_max: c.q_max / queue_unit,
            alpha: c.alpha,
            beta: c.beta,
            whole_below: match config.low_queue_gain {
                LowQueueGain::Printed => 0.0,
                LowQueueGain::Full => c.q_ref / queue_unit / 8.0,
            },
        };
        let steps = (1_u64 << config.fraction_bits) as f64;
        let whole = |x: f64| sane(x) as i128;
        let gain = |x: f64| (x * steps * (1_u64 << GAIN_BITS) as f64).round() as i128;
        let whole_rate = |x: f64| sane(x.max(1.0).floor() * steps) as i128;
        let fixed = FairRate {
            f_min: whole_rate(float.f_min),
            f_max: whole_rate(f_max),
            q_ref: whole(float.q_ref),
            q_mid: whole(float.q_mid),
            q_max: whole(float.q_max),
            alpha: gain(c.alpha),
            beta: gain(c.beta),
            whole_below: whole(float.whole_below),
        };
        Self { queue_unit: config.queue_unit.as_u64(), steps, arithmetic: config.arithmetic, fixed, float }
    }

    /// Returns Fmin and Fmax, in steps ΔF.
    pub(super) fn bounds(&self) -> (f64, f64) {
        match self.arithmetic {
            Arithmetic::Fixed => (self.fixed.f_min as f64 / self.steps, self.fixed.f_max as f64 / self.steps),
            Arithmetic::Float => (self.float.f_min, self.float.f_max),
        }
    }

    /// Converts a queue length in bytes to units ΔQ, which are whole in fixed point.
    pub(super) fn queue(&self, bytes: u64) -> f64 {
        match self.arithmetic {
            Arithmetic::Fixed => (bytes / self.queue_unit) as f64,
            Arithmetic::Float => bytes as f64 / self.queue_unit as f64,
        }
    }

    /// Returns the next F as CALCULATE_FAIR_RATE.
    pub(super) fn next(&self, f: f64, q_cur: f64, q_old: f64) -> f64 {
        let (f, q_cur, q_old) = (sane(f), sane(q_cur), sane(q_old));
        match self.arithmetic {
            Arithmetic::Fixed => {
                let f = sane(f * self.steps) as i128;
                self.fixed.next(f, q_cur as i128, q_old as i128) as f64 / self.steps
            }
            Arithmetic::Float => self.float.next(f, q_cur, q_old),
        }
    }

    /// Returns the rate sent to flows: whole units in fixed point.
    pub(super) fn as_sent(&self, f: f64) -> f64 {
        match self.arithmetic {
            Arithmetic::Fixed => f.floor(),
            Arithmetic::Float => f,
        }
    }
}
