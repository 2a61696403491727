//! The laws in C compared with the Rust controllers, step by step on the same random input.
//!
//! The bound was written down before the first run: a window is within 1e-6 of the Rust controller's or within one
//! byte, a rate within 1e-6 or one bit/s. RoCC's congestion and reaction points compute with the same integers, so they
//! agree exactly.

mod dctcp;
mod perc;
mod power;
mod ratemp;
mod rocc;
mod stream;

/// Number of steps of every comparison.
const STEPS: u64 = 1_000_000;

/// The largest relative error of a comparison, beyond one unit.
#[derive(Default)]
struct Errors {
    largest: f64,
}

impl Errors {
    /// Compares `ours` with `reference`, both in units that are cut to whole ones.
    #[track_caller]
    fn hold(&mut self, step: u64, ours: f64, reference: f64) {
        let off = ((ours - reference).abs() - 1.0).max(0.0) / reference.max(1.0);
        self.largest = self.largest.max(off);
        assert!(off <= 1e-6, "step {step}: {ours} instead of {reference}");
    }
}
