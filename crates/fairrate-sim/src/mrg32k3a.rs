//! MRG32k3a, L'Ecuyer's combined multiple recursive generator, with the streams of ns-3.
//!
//! Its period of about 2^191 is divided into streams of 2^127 numbers and those into substreams of 2^76. ns-3 takes the
//! streams from a counter, and the substream is its run number. The constants are those of P. L'Ecuyer, "Good
//! parameters and implementations for combined multiple recursive random number generators", Operations Research 47(1),
//! 1999.

/// Moduli of the two components.
const M: [u64; 2] = [4_294_967_087, 4_294_944_443];
/// One step of each component, as a matrix on its last three values, oldest first. Negative factors are -810728 and
/// -1370589.
const STEP: [Matrix; 2] =
    [[[0, 1, 0], [0, 0, 1], [M[0] - 810_728, 1_403_580, 0]], [[0, 1, 0], [0, 0, 1], [M[1] - 1_370_589, 0, 527_612]]];
/// Binary logarithm of the length of a stream.
const STREAM: u32 = 127;
/// Binary logarithm of the length of a substream.
const SUBSTREAM: u32 = 76;

type Matrix = [[u64; 3]; 3];
type Vector = [u64; 3];

/// Computes `a x` modulo `m`, for entries below `m` < 2^32: each product is below 2^64.
fn apply(a: &Matrix, x: Vector, m: u64) -> Vector {
    a.map(|row| row.iter().zip(x).fold(0, |sum, (&a, x)| (sum + a * x % m) % m))
}

/// Computes `a a` modulo `m`.
fn square(a: &Matrix, m: u64) -> Matrix {
    let column = |j: usize| apply(a, [a[0][j], a[1][j], a[2][j]], m);
    let columns = [column(0), column(1), column(2)];
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| columns[j][i]))
}

/// Computes the matrices of 2^`log2` steps.
fn jump(log2: u32) -> [Matrix; 2] {
    [0, 1].map(|c| (0..log2).fold(STEP[c], |a, _| square(&a, M[c])))
}

/// The state of the generator: the last three values of each component, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mrg32k3a([Vector; 2]);

impl Mrg32k3a {
    /// Returns the generator with all six words equal to `seed`, as in ns-3.
    fn new(seed: u32) -> Self {
        Self([[u64::from(seed); 3]; 2])
    }

    fn advance(&mut self, jump: &[Matrix; 2]) {
        self.0 = [0, 1].map(|c| apply(&jump[c], self.0[c], M[c]));
    }

    /// Advances by `n` jumps of 2^`log2` steps.
    fn advance_by(&mut self, n: u64, log2: u32) {
        let mut power = jump(log2);
        let mut left = n;
        while left > 0 {
            if left & 1 == 1 {
                self.advance(&power);
            }
            left >>= 1;
            power = [0, 1].map(|c| square(&power[c], M[c]));
        }
    }

    /// Returns the next number, uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        self.advance(&STEP);
        let [first, second] = self.0.map(|component| component[2]);
        let difference = if first > second { first - second } else { first + M[0] - second };
        // Divided as in ns-3, for equality to the last bit.
        difference as f64 * (1.0 / (M[0] + 1) as f64)
    }
}

/// ns-3's automatic streams: every random variable takes the next stream, and the RDMA switch makes a new variable for
/// each number it draws, so that each number is the first of its own stream.
#[derive(Clone, Debug)]
pub struct AutomaticStreams {
    /// State at the beginning of the next stream's substream.
    next: Mrg32k3a,
    /// Matrices of a jump by one stream.
    stride: [Matrix; 2],
}

impl AutomaticStreams {
    /// Returns the streams with `seed` and `run` as ns-3's global values of that name, after `taken` streams have been
    /// taken.
    pub fn new(seed: u32, run: u64, taken: u64) -> Self {
        let mut next = Mrg32k3a::new(seed);
        next.advance_by(taken, STREAM);
        next.advance_by(run, SUBSTREAM);
        Self { next, stride: jump(STREAM) }
    }

    /// Returns the streams of the RDMA artifact's run number `run`, at the first event of a network of `n_nodes` nodes.
    /// By then the artifact has taken nine for each node, for the protocols of its internet stack, one for an error
    /// model and one for the variable that the model is given. The number was found by comparing runs.
    pub fn of_artifact(run: u64, n_nodes: usize) -> Self {
        Self::new(1, run, 9 * n_nodes as u64 + 2)
    }

    /// Skips a stream.
    pub fn skip(&mut self) {
        self.next.advance(&self.stride);
    }

    /// Returns the first number of the next stream, uniform in (0, 1).
    #[cold]
    #[inline(never)]
    pub fn uniform(&mut self) -> f64 {
        let mut variable = self.next;
        self.skip();
        variable.uniform()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_are_the_published_ones() {
        // The package RngStreams of L'Ecuyer, Simard, Chen and Kelton, default seed.
        let mut generator = Mrg32k3a::new(12_345);
        for published in [0.127_011_122, 0.318_527_565, 0.309_186_016, 0.825_846_863, 0.221_629_916] {
            assert!((generator.uniform() - published).abs() < 1e-9);
        }
    }

    #[test]
    fn streams_and_substreams_begin_where_the_published_ones_do() {
        let mut second = Mrg32k3a::new(12_345);
        second.advance_by(1, STREAM);
        let state = [[3_692_455_944, 1_366_884_236, 2_968_912_127], [335_948_734, 4_161_675_175, 475_798_818]];
        assert_eq!(second.0, state);
        let mut third = Mrg32k3a::new(12_345);
        third.advance_by(2, STREAM);
        let state = [[1_015_873_554, 1_310_354_410, 2_249_465_273], [994_084_013, 2_912_484_720, 3_876_682_925]];
        assert_eq!(third.0, state);
        let mut substream = Mrg32k3a::new(12_345);
        substream.advance_by(1, SUBSTREAM);
        let state = [[870_504_860, 2_641_697_727, 884_013_853], [339_352_413, 2_374_306_706, 3_651_603_887]];
        assert_eq!(substream.0, state);
    }

    #[test]
    fn jumps_are_steps() {
        let mut walker = Mrg32k3a::new(1);
        (0..5 * 1024).for_each(|_| walker.advance(&STEP));
        let mut jumper = Mrg32k3a::new(1);
        jumper.advance_by(5, 10);
        assert_eq!(walker, jumper);
    }

    #[test]
    fn taken_streams_are_skipped_streams() {
        let mut one_by_one = AutomaticStreams::new(1, 3, 0);
        (0..1_000).for_each(|_| one_by_one.skip());
        let mut at_once = AutomaticStreams::new(1, 3, 1_000);
        let drawn: Vec<f64> = (0..4).map(|_| at_once.uniform()).collect();
        assert_eq!(drawn, (0..4).map(|_| one_by_one.uniform()).collect::<Vec<_>>());
        assert!(drawn.iter().all(|u| (0.0..1.0).contains(u)));
        assert_ne!(drawn[0], AutomaticStreams::new(1, 4, 1_000).uniform(), "runs differ");
    }
}
