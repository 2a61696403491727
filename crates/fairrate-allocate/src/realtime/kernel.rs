//! The two loops that take most of the time, with the instructions of this processor.

use super::flows::{self, Columns};
use super::links::{self, Rule};
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512, Lanes};

/// The sets of instructions. Results do not depend on them, to the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Instructions of every processor.
    Portable,
    /// Eight numbers at once.
    Avx2,
    /// Sixteen numbers at once.
    Avx512,
}

/// The instructions in use, which the processor has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

#[cfg(target_arch = "x86_64")]
pub(super) use super::simd::Number;
/// A type of link numbers.
#[cfg(not(target_arch = "x86_64"))]
pub(super) trait Number: Copy + Into<u32> {}
#[cfg(not(target_arch = "x86_64"))]
impl<I: Copy + Into<u32>> Number for I {}

impl Kernel {
    /// Returns the best instructions of this processor that are not better than `most`.
    pub fn at_most(most: Instructions) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx512) = (Instructions::Avx512 <= most).then(Avx512::detect).flatten() {
                return Self::Avx512(avx512);
            }
            if let Some(avx2) = (Instructions::Avx2 <= most).then(Avx2::detect).flatten() {
                return Self::Avx2(avx2);
            }
        }
        let _ = most;
        Self::Portable
    }

    pub const fn instructions(self) -> Instructions {
        match self {
            Self::Portable => Instructions::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Instructions::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Instructions::Avx512,
        }
    }

    /// Updates the prices of links.
    pub fn update(self, seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
        match self {
            Self::Portable => links::update(seen, sums, capacities, rule),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.update(seen, sums, capacities, rule),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.update(seen, sums, capacities, rule),
        }
    }

    /// Runs the pass over flows.
    pub fn pass<I: Number, const N: usize>(
        self,
        mut flows: Columns<'_, I, N>,
        seen: &[[f32; 2]],
        sums: &mut [[f32; 2]],
    ) {
        match self {
            Self::Portable => flows::pass(&mut flows, 0, seen, sums),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.pass(&mut flows, seen, sums),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.pass(&mut flows, seen, sums),
        }
    }
}
