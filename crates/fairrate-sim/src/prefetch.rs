//! Prefetching of data that will be read soon: large fabrics do not fit the processor's caches.

/// The nearest cache that data is fetched into, on processors that support it.
#[derive(Clone, Copy)]
pub enum Cache {
    /// The first level, for what is read at once.
    First,
    /// The second level. The first one has room for few lines, and fewer reads can be under way at a time.
    Second,
}

impl Cache {
    /// Fetches all cache lines of `value`.
    #[inline]
    pub fn fetch_all<T>(self, value: &T) {
        self.fetch_slice(std::slice::from_ref(value));
    }

    /// Fetches all cache lines of `values`.
    #[inline]
    pub fn fetch_slice<T>(self, values: &[T]) {
        for offset in (0..size_of_val(values)).step_by(64) {
            self.fetch_place(values.as_ptr().cast::<u8>().wrapping_add(offset));
        }
        if let Some(last) = values.last() {
            self.fetch(last);
        }
    }

    /// Fetches the cache line where `value` begins.
    #[inline]
    pub fn fetch<T>(self, value: &T) {
        self.fetch_place(value);
    }

    /// Fetches the cache line of an address, which need not be valid.
    #[allow(unsafe_code)] // There is no safe way to prefetch, and a prefetch of any address does no harm.
    #[inline]
    pub fn fetch_place<T>(self, place: *const T) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch changes nothing that a program sees, and never faults.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
            match self {
                Self::First => _mm_prefetch::<_MM_HINT_T0>(place.cast()),
                Self::Second => _mm_prefetch::<_MM_HINT_T1>(place.cast()),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }
}
