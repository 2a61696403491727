//! Prefetching of data that will be read soon: large fabrics do not fit the processor's caches.

/// Prefetches all cache lines of `value`, on processors that support it.
#[inline]
pub(crate) fn prefetch_all<T>(value: &T) {
    for offset in (0..size_of::<T>()).step_by(64) {
        fetch(std::ptr::from_ref(value).cast::<i8>().wrapping_add(offset));
    }
}

/// Prefetches all cache lines of `values`, on processors that support it.
#[inline]
pub(crate) fn prefetch_slice<T>(values: &[T]) {
    for offset in (0..size_of_val(values)).step_by(64) {
        fetch(values.as_ptr().cast::<i8>().wrapping_add(offset));
    }
    if let Some(last) = values.last() {
        prefetch(last);
    }
}

/// Prefetches the cache line of an address, which need not be valid.
#[inline]
pub(crate) fn prefetch_place<T>(place: *const T) {
    fetch(place.cast());
}

/// Prefetches the cache line where `value` begins, on processors that support it.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    fetch(std::ptr::from_ref(value).cast());
}

#[allow(unsafe_code)] // There is no safe way to prefetch, and a prefetch of any address does no harm.
#[inline]
fn fetch(line: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing that a program sees, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
