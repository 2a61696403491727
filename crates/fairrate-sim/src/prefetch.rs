//! Telling the processor what will be read soon: large fabrics do not fit its caches.

/// Fetches the cache line where `value` begins, if the processor can be asked to.
#[allow(unsafe_code)] // There is no safe way to ask, and asking for memory that a reference guarantees does no harm.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of valid memory changes nothing that a program sees.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
