//! NDP's choice: the numbers of all paths, in a random order that is drawn again when it is used up (csg-htsim's
//! `ndp.cpp`).

use crate::rng::Stream;

/// NDP's: the numbers of all paths in a random order.
pub(super) struct Permutation {
    paths: Vec<u16>,
    at: usize,
}

impl Permutation {
    pub(super) fn new(n_paths: usize) -> Self {
        let n = u16::try_from(n_paths).unwrap_or(u16::MAX).max(1);
        Self { paths: (0..n).collect(), at: usize::from(n) }
    }

    pub(super) fn next(&mut self, stream: &mut Stream) -> u16 {
        if self.at == self.paths.len() {
            self.at = 0;
            for left in (1..self.paths.len()).rev() {
                self.paths.swap(left, stream.below(left as u64 + 1) as usize);
            }
        }
        self.at += 1;
        self.paths[self.at - 1]
    }
}
