//! Where large blocks of memory come from.

/// Lets every block of 128 KiB or more be a mapping of its own, which goes back to the system when it is freed and grows
/// without being copied. The allocator of glibc would otherwise raise that limit to 32 MiB as it goes, and keep the holes
/// that growing tables leave behind: a tenth of the memory of a large run on two threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)] // There is no safe way to ask.
pub(crate) fn are_mapped() {
    // SAFETY: called before there are other threads; it changes where blocks come from, and no block that exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn are_mapped() {}
