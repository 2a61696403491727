//! The price update and the pass over flows with AVX2 and AVX-512.
//!
//! Flows are processed in chunks. For a chunk, prices are gathered and rates computed, as many at once as the
//! instructions can, and left in a buffer; then loads are added to links one by one, in the order of flows. One loop
//! for both would make the processor wait: gathers of the next flows may not pass the additions before them until their
//! addresses are known to differ.
//!
//! Every number is computed by the same operations in the same order as in the portable pass. None of them is fused and
//! none approximate, so that the bits are the same.
//!
//! All `unsafe` of the engine is here, for two reasons. Functions for instructions that not every processor has are
//! called only through [`Avx2`] and [`Avx512`], which exist only where the processor was tested for them. And links are
//! read and written without a check of their number: [`check`] ensures, once a pass, that all columns have equal length
//! and the tables of links are longer than the largest number, which [`super::flows::FlowTable::add`] guards.
#![allow(unsafe_code)]
// Names of intrinsics are descriptive; and a function that is not inlined is compiled without the instructions of its
// caller.
#![allow(clippy::wildcard_imports, clippy::inline_always)]

use std::arch::x86_64::*;

use super::flows::{self, Columns};
use super::links::{self, Rule};

/// Number of flows that are computed before their loads are added: long enough for the two phases not to meet, short
/// enough for the buffer to stay in cache.
const CHUNK: usize = 64;

/// Rates and slopes of a chunk.
#[repr(align(64))]
struct Buffer([[f32; 2]; CHUNK]);

/// Proof that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

/// Proof that the processor has AVX-512 (F, VL and DQ) and AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

/// The two loops, for one set of instructions.
pub(super) trait Lanes: Copy {
    /// Updates prices as [`links::update`] does.
    fn update(self, seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule);

    /// Runs the pass as [`flows::pass`] does.
    fn pass<I: Number, const N: usize>(self, flows: &mut Columns<'_, I, N>, seen: &[[f32; 2]], sums: &mut [[f32; 2]]);
}

/// A type of link numbers.
pub(super) trait Number: Copy + Into<u32> {
    /// Loads eight numbers as 32 bits each.
    ///
    /// # Safety
    /// There must be eight numbers at `from`.
    unsafe fn load8(from: *const Self, _: Avx2) -> __m256i;
}

impl Number for u16 {
    #[inline(always)]
    unsafe fn load8(from: *const Self, _: Avx2) -> __m256i {
        // SAFETY: 16 bytes are there, and so is AVX2.
        unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())) }
    }
}

impl Number for u32 {
    #[inline(always)]
    unsafe fn load8(from: *const Self, _: Avx2) -> __m256i {
        // SAFETY: 32 bytes are there, and so is AVX2.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
}

impl Avx2 {
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

impl Avx512 {
    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx2");
        has.then_some(Self(()))
    }
}

impl Lanes for Avx2 {
    fn update(self, seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
        // SAFETY: `self` is the proof that AVX2 is there.
        unsafe { update_avx2(seen, sums, capacities, rule) }
    }

    fn pass<I: Number, const N: usize>(self, flows: &mut Columns<'_, I, N>, seen: &[[f32; 2]], sums: &mut [[f32; 2]]) {
        check(flows, seen, sums);
        // SAFETY: `self` is the proof that AVX2 is there, and columns and tables are checked.
        unsafe { pass_avx2(flows, seen, sums, self) }
    }
}

impl Lanes for Avx512 {
    fn update(self, seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
        // SAFETY: `self` is the proof that AVX-512 is there.
        unsafe { update_avx512(seen, sums, capacities, rule) }
    }

    fn pass<I: Number, const N: usize>(self, flows: &mut Columns<'_, I, N>, seen: &[[f32; 2]], sums: &mut [[f32; 2]]) {
        check(flows, seen, sums);
        // SAFETY: `self` is the proof that AVX-512 and AVX2 are there, and columns and tables are checked.
        unsafe { pass_avx512(flows, seen, sums, Avx2(())) }
    }
}

/// Checks the conditions that the passes below rely on.
fn check<I, const N: usize>(flows: &Columns<'_, I, N>, seen: &[[f32; 2]], sums: &[[f32; 2]]) {
    let n_flows = flows.weights.len();
    let lengths = [flows.limits.len(), flows.ceilings.len(), flows.rates.len(), flows.normalised.len()];
    assert!(lengths == [n_flows; 4] && flows.paths.iter().all(|hop| hop.len() == n_flows), "columns of one length");
    assert!(flows.n_links <= seen.len() && flows.n_links <= sums.len(), "all links are in the tables");
}

#[target_feature(enable = "avx2")]
fn update_avx2(seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
    let n_links = seen.len();
    assert!(sums.len() == n_links && capacities.len() == n_links, "columns of one length");
    let (zero, gamma_lanes) = (_mm256_setzero_ps(), _mm256_set1_ps(rule.gamma));
    let n_whole = n_links / 8 * 8;
    for at in (0..n_whole).step_by(8) {
        // SAFETY: `at` + 8 links are there.
        unsafe {
            let (seen, sums) = (seen.as_mut_ptr().add(at).cast::<f32>(), sums.as_mut_ptr().add(at).cast::<f32>());
            // Links 0, 1, 4, 5, 2, 3, 6, 7: the order in which shuffles leave and take them.
            let first = |pairs: *mut f32| {
                _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_loadu_ps(pairs), _mm256_loadu_ps(pairs.add(8)))
            };
            let second = |pairs: *mut f32| {
                _mm256_shuffle_ps::<0b11_01_11_01>(_mm256_loadu_ps(pairs), _mm256_loadu_ps(pairs.add(8)))
            };
            let capacity = _mm256_castps_pd(_mm256_loadu_ps(capacities.as_ptr().add(at)));
            let capacity = _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(capacity));
            let (load, slope, price) = (first(sums), second(sums), first(seen));
            let divisor = if rule.is_gradient { _mm256_set1_ps(1.0) } else { slope };
            let step = _mm256_mul_ps(gamma_lanes, _mm256_div_ps(_mm256_sub_ps(load, capacity), divisor));
            let moved = _mm256_max_ps(_mm256_add_ps(price, step), zero);
            let moved = _mm256_min_ps(moved, _mm256_set1_ps(links::MAX_PRICE));
            let price = _mm256_blendv_ps(price, moved, _mm256_cmp_ps::<_CMP_LT_OQ>(zero, slope));
            let room = _mm256_min_ps(_mm256_div_ps(capacity, load), _mm256_set1_ps(f32::MAX));
            let room = if rule.is_normalised { room } else { _mm256_set1_ps(1.0) };
            _mm256_storeu_ps(seen, _mm256_unpacklo_ps(price, room));
            _mm256_storeu_ps(seen.add(8), _mm256_unpackhi_ps(price, room));
            _mm256_storeu_ps(sums, zero);
            _mm256_storeu_ps(sums.add(8), zero);
        }
    }
    links::update(&mut seen[n_whole..], &mut sums[n_whole..], &capacities[n_whole..], rule);
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2")]
fn update_avx512(seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
    let n_links = seen.len();
    assert!(sums.len() == n_links && capacities.len() == n_links, "columns of one length");
    let Shuffles { first, second, low, high } = shuffles();
    let (zero, gamma_lanes) = (_mm512_setzero_ps(), _mm512_set1_ps(rule.gamma));
    let n_whole = n_links / 16 * 16;
    for at in (0..n_whole).step_by(16) {
        // SAFETY: `at` + 16 links are there.
        unsafe {
            let (seen, sums) = (seen.as_mut_ptr().add(at).cast::<f32>(), sums.as_mut_ptr().add(at).cast::<f32>());
            let [seen_pairs, sum_pairs] =
                [seen, sums].map(|pairs| [_mm512_loadu_ps(pairs), _mm512_loadu_ps(pairs.add(16))]);
            let capacity = _mm512_loadu_ps(capacities.as_ptr().add(at));
            let load = _mm512_permutex2var_ps(sum_pairs[0], first, sum_pairs[1]);
            let slope = _mm512_permutex2var_ps(sum_pairs[0], second, sum_pairs[1]);
            let price = _mm512_permutex2var_ps(seen_pairs[0], first, seen_pairs[1]);
            let divisor = if rule.is_gradient { _mm512_set1_ps(1.0) } else { slope };
            let step = _mm512_mul_ps(gamma_lanes, _mm512_div_ps(_mm512_sub_ps(load, capacity), divisor));
            let moved = _mm512_max_ps(_mm512_add_ps(price, step), zero);
            let moved = _mm512_min_ps(moved, _mm512_set1_ps(links::MAX_PRICE));
            let price = _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(zero, slope), price, moved);
            let room = _mm512_min_ps(_mm512_div_ps(capacity, load), _mm512_set1_ps(f32::MAX));
            let room = if rule.is_normalised { room } else { _mm512_set1_ps(1.0) };
            _mm512_storeu_ps(seen, _mm512_permutex2var_ps(price, low, room));
            _mm512_storeu_ps(seen.add(16), _mm512_permutex2var_ps(price, high, room));
            _mm512_storeu_ps(sums, zero);
            _mm512_storeu_ps(sums.add(16), zero);
        }
    }
    links::update(&mut seen[n_whole..], &mut sums[n_whole..], &capacities[n_whole..], rule);
}

/// Indices that split two vectors of eight pairs into all first and all second numbers, and that make pairs of two
/// vectors of sixteen.
struct Shuffles {
    first: __m512i,
    second: __m512i,
    low: __m512i,
    high: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn shuffles() -> Shuffles {
    Shuffles {
        first: _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        second: _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31),
        low: _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
        high: _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
    }
}

/// Runs the pass with AVX-512.
///
/// # Safety
/// [`check`] must pass.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2")]
unsafe fn pass_avx512<I: Number, const N: usize>(
    flows: &mut Columns<'_, I, N>,
    seen: &[[f32; 2]],
    sums: &mut [[f32; 2]],
    avx2: Avx2,
) {
    let Shuffles { first, second, low, high } = shuffles();
    let n_whole = flows.weights.len() / 16 * 16;
    let mut buffer = Buffer([[0.0; 2]; CHUNK]);
    let mut start = 0;
    while start < n_whole {
        let end = n_whole.min(start + CHUNK);
        for at in (start..end).step_by(16) {
            // Prices are added up in the first number of each pair; the second is the minimum.
            let gather = |hop: usize, half: usize| {
                // SAFETY: `at` + 16 flows are there, and all links are in `seen`: both checked. A pair is 8 bytes.
                unsafe {
                    let links = I::load8(flows.paths[hop].as_ptr().add(at + 8 * half), avx2);
                    _mm512_castpd_ps(_mm512_i32gather_pd::<8>(links, seen.as_ptr().cast()))
                }
            };
            let [mut price, mut room] = [[gather(0, 0), gather(0, 1)]; 2];
            for hop in 1..N {
                for half in 0..2 {
                    let pairs = gather(hop, half);
                    price[half] = _mm512_add_ps(price[half], pairs);
                    room[half] = _mm512_min_ps(room[half], pairs);
                }
            }
            let price = _mm512_permutex2var_ps(price[0], first, price[1]);
            let room = _mm512_permutex2var_ps(room[0], second, room[1]);
            // SAFETY: `at` + 16 flows are there, and as many pairs in the buffer.
            unsafe {
                let weight = _mm512_loadu_ps(flows.weights.as_ptr().add(at));
                let limit = _mm512_loadu_ps(flows.limits.as_ptr().add(at));
                let old = _mm512_loadu_ps(flows.rates.as_ptr().add(at));
                let ceiling = _mm512_loadu_ps(flows.ceilings.as_ptr().add(at));
                let normalised = _mm512_min_ps(_mm512_mul_ps(old, room), ceiling);
                _mm512_storeu_ps(flows.normalised.as_mut_ptr().add(at), normalised);
                let inverse = _mm512_min_ps(_mm512_div_ps(_mm512_set1_ps(1.0), price), limit);
                let rate = _mm512_mul_ps(weight, inverse);
                _mm512_storeu_ps(flows.rates.as_mut_ptr().add(at), rate);
                let slope = _mm512_mul_ps(rate, inverse);
                let pairs = buffer.0.as_mut_ptr().add(at - start).cast::<f32>();
                _mm512_store_ps(pairs, _mm512_permutex2var_ps(rate, low, slope));
                _mm512_store_ps(pairs.add(16), _mm512_permutex2var_ps(rate, high, slope));
            }
        }
        // SAFETY: `end` flows are there, and their links are in `sums`.
        unsafe { scatter(&flows.paths, start..end, &buffer, sums) };
        start = end;
    }
    flows::pass(flows, n_whole, seen, sums);
}

/// Runs the pass with AVX2.
///
/// # Safety
/// [`check`] must pass.
#[target_feature(enable = "avx2")]
unsafe fn pass_avx2<I: Number, const N: usize>(
    flows: &mut Columns<'_, I, N>,
    seen: &[[f32; 2]],
    sums: &mut [[f32; 2]],
    avx2: Avx2,
) {
    let n_whole = flows.weights.len() / 8 * 8;
    let mut buffer = Buffer([[0.0; 2]; CHUNK]);
    let mut start = 0;
    while start < n_whole {
        let end = n_whole.min(start + CHUNK);
        for at in (start..end).step_by(8) {
            // Pairs of flows 0, 1, 4, 5 and of flows 2, 3, 6, 7: the order in which the shuffles below leave them.
            let gather = |hop: usize| {
                // SAFETY: `at` + 8 flows are there, and all links are in `seen`: both checked. A pair is 8 bytes.
                unsafe {
                    let links =
                        _mm256_permute4x64_epi64::<0b11_01_10_00>(I::load8(flows.paths[hop].as_ptr().add(at), avx2));
                    [_mm256_castsi256_si128(links), _mm256_extracti128_si256::<1>(links)]
                        .map(|links| _mm256_castpd_ps(_mm256_i32gather_pd::<8>(seen.as_ptr().cast(), links)))
                }
            };
            let [mut price, mut room] = [gather(0); 2];
            for hop in 1..N {
                let pairs = gather(hop);
                for half in 0..2 {
                    price[half] = _mm256_add_ps(price[half], pairs[half]);
                    room[half] = _mm256_min_ps(room[half], pairs[half]);
                }
            }
            let price = _mm256_shuffle_ps::<0b10_00_10_00>(price[0], price[1]);
            let room = _mm256_shuffle_ps::<0b11_01_11_01>(room[0], room[1]);
            // SAFETY: `at` + 8 flows are there, and as many pairs in the buffer.
            unsafe {
                let weight = _mm256_loadu_ps(flows.weights.as_ptr().add(at));
                let limit = _mm256_loadu_ps(flows.limits.as_ptr().add(at));
                let old = _mm256_loadu_ps(flows.rates.as_ptr().add(at));
                let ceiling = _mm256_loadu_ps(flows.ceilings.as_ptr().add(at));
                let normalised = _mm256_min_ps(_mm256_mul_ps(old, room), ceiling);
                _mm256_storeu_ps(flows.normalised.as_mut_ptr().add(at), normalised);
                let inverse = _mm256_min_ps(_mm256_div_ps(_mm256_set1_ps(1.0), price), limit);
                let rate = _mm256_mul_ps(weight, inverse);
                _mm256_storeu_ps(flows.rates.as_mut_ptr().add(at), rate);
                let slope = _mm256_mul_ps(rate, inverse);
                let (low, high) = (_mm256_unpacklo_ps(rate, slope), _mm256_unpackhi_ps(rate, slope));
                let pairs = buffer.0.as_mut_ptr().add(at - start).cast::<f32>();
                _mm256_store_ps(pairs, _mm256_permute2f128_ps::<0x20>(low, high));
                _mm256_store_ps(pairs.add(8), _mm256_permute2f128_ps::<0x31>(low, high));
            }
        }
        // SAFETY: `end` flows are there, and their links are in `sums`.
        unsafe { scatter(&flows.paths, start..end, &buffer, sums) };
        start = end;
    }
    flows::pass(flows, n_whole, seen, sums);
}

/// Adds the pairs of a chunk to the sums of their links: one load, one addition and one store for both numbers of a
/// pair.
///
/// # Safety
/// All links of the flows must be in `sums`.
#[inline(always)]
unsafe fn scatter<I: Number, const N: usize>(
    paths: &[&[I]; N],
    flows: std::ops::Range<usize>,
    buffer: &Buffer,
    sums: &mut [[f32; 2]],
) {
    let sums = sums.as_mut_ptr();
    // Copies, so that the compiler can see that no store changes them.
    let paths = paths.map(<[I]>::as_ptr);
    for (at, pair) in flows.zip(&buffer.0) {
        // SAFETY: the caller's; pairs are 8 bytes.
        unsafe {
            let pair = _mm_castsi128_ps(_mm_loadu_si64(pair.as_ptr().cast()));
            for hop in paths {
                let link: u32 = (*hop.add(at)).into();
                let sum = sums.add(link as usize).cast::<u8>();
                let added = _mm_add_ps(_mm_castsi128_ps(_mm_loadu_si64(sum)), pair);
                _mm_storeu_si64(sum, _mm_castps_si128(added));
            }
        }
    }
}
